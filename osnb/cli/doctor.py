"""The command that says whether this machine is ready, and what to do if not."""

from typing import Annotated

import typer

COLOURS = {"ok": "green", "warn": "yellow", "fail": "bold red"}
WIDE = 110  # columns where there is no terminal to ask


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print json instead of a table.")] = False,
):
    """Check Python, versions, torch, kernel, disk, folders and data; say what to do about each."""
    from osnb.doctor import examine, failed

    lines = examine()
    if json:
        from json import dumps

        print(dumps({"ready": not failed(lines), "lines": [x._asdict() for x in lines]}, indent=1))
    else:
        _show(lines)
    raise typer.Exit(1 if failed(lines) else 0)


def _show(lines) -> None:
    """A table, the advice below what it is about, and the verdict."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDE
    table = Table(box=None, show_header=False, padding=(0, 1))
    for line in lines:
        state = Text(line.state, style=COLOURS[line.state])
        table.add_row(state, Text(line.name), Text(line.found))
        if line.advice:
            table.add_row("", "", Text(f"-> {line.advice}", style="bold"))
    console.print(table)
    console.print(_verdict([line.state for line in lines]))


def _verdict(states: list[str]) -> str:
    fails, warnings = states.count("fail"), states.count("warn")
    if fails:
        return f"{fails} failed: notebooks will not run until what the arrows say is done."
    if warnings:
        return f"Ready, with {warnings} to look at."
    return "Ready: make lab opens the index of the notebooks."


COMMANDS = {"doctor": doctor}
