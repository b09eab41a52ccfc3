"""The command `osnb`. Rooms are imported inside the commands, so that `--help` is at once."""

import errno
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from osnb.cli import bench, more
from osnb.cli.more import PAPERS

SIZES = ("mini", "tiny", "paper")
FAILED, REFUSED, INTERRUPTED = 1, 2, 130


class Polite(TyperGroup):
    """Commands whose errors are one sentence and an exit code; OSNB_DEBUG=1 shows where from."""

    def invoke(self, ctx):
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader of our output has seen enough
            raise
        except (OSError, ValueError, KeyError, ImportError) as error:
            if os.environ.get("OSNB_DEBUG"):
                raise
            typer.echo(f"osnb: {_sentence(error)}", err=True)
            refused = isinstance(error, ValueError | KeyError | FileNotFoundError)
            raise typer.Exit(REFUSED if refused else FAILED) from None
        except KeyboardInterrupt:
            typer.echo("\nosnb: interrupted; the same command continues", err=True)
            raise typer.Exit(INTERRUPTED) from None


def _sentence(error: Exception) -> str:
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])
    if not isinstance(error, OSError) or not error.strerror:
        return str(error) or type(error).__name__
    full = "the disk is full, but finished files are whole"
    what = full if error.errno == errno.ENOSPC else error.strerror
    return f"{what}: {error.filename}" if error.filename else what


app = typer.Typer(
    cls=Polite,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Open-set recognition, reproducibly: run notebooks, make lists, see what is done.",
)
for name, command in more.COMMANDS.items():
    app.command(name)(command)
app.add_typer(more.data, name="data")
app.add_typer(bench.app, name="bench")

Force = Annotated[bool, typer.Option("--force", help="Repeat runs that are up to date.")]


@app.command()
def run(
    files: Annotated[list[Path], typer.Argument(help="params/<notebook>/<run>.yaml ...")],
    p: Annotated[
        list[str] | None, typer.Option("-p", metavar="NAME=VALUE", help="Replace a parameter.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds to run, from the file's own up.")] = 1,
    force: Force = False,
):
    """Execute the notebook of each params file, after a strict check."""
    from osnb.run import plan

    overrides = dict(_override(text) for text in p or [])
    plans = []
    for file in files:
        first = plan(file, overrides)
        more = range(first.parameters.get("seed", 0) + 1, first.parameters.get("seed", 0) + seeds)
        plans += [first, *(plan(file, overrides | {"seed": seed}) for seed in more)]
    raise typer.Exit(_carry_out(plans, force=force))


def _override(text: str) -> tuple[str, object]:
    import yaml

    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"-p needs NAME=VALUE, such as seed=3; got {text!r}")
    try:
        return name.strip(), yaml.safe_load(value)
    except yaml.YAMLError:
        raise ValueError(f"-p {name} needs a value that yaml can read; got {value!r}") from None


@app.command()
def reproduce(
    paper: Annotated[str, typer.Option(help=f"One of {', '.join(PAPERS)}; all if left out.")] = "",
    size: Annotated[str, typer.Option(help=f"Of the runs: one of {', '.join(SIZES)}.")] = "mini",
    force: Force = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would run.")] = False,
):
    """Run every params file of a size: first those that train, then those that read the results."""
    from osnb import repro
    from osnb.run import plan

    for value, valid in ((paper, ["", *PAPERS]), (size, SIZES)):
        if value not in valid:
            raise ValueError(f"{value!r} is not one of: {', '.join(filter(None, valid))}")
    digits = ["0", PAPERS[paper]] if paper else ["0", *PAPERS.values()]
    plans = [plan(file) for file in sorted((repro.root() / "params").glob("*/*.yaml"))]
    chosen = [x for x in plans if x.parameters.get("size") == size and x.notebook[0] in digits]
    if not chosen:
        raise ValueError(f"no params file has size: {size}" + (f" for {paper}" if paper else ""))
    chosen.sort(key=lambda x: not x.trains)
    raise typer.Exit(_announce(chosen, force) if dry_run else _carry_out(chosen, force=force))


def _announce(plans: list, force: bool) -> int:
    """Print what would be done, with the seconds that it took before, if it ever was."""
    from osnb import record
    from osnb.run import done

    for plan in plans:
        before = (record.read(plan.directory) or {}).get("seconds")
        todo = "would run" if force or not done(plan) else "up to date"
        print(f"{plan!s:50} {todo:10} {'' if before is None else f'{before:.0f} s last time'}")
    return 0


def _carry_out(plans: list, *, force: bool) -> int:
    """Execute the plans in their order, one line each; the exit code."""
    from osnb import repro

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that a run says interrupted
    start, counts, lost = time.monotonic(), Counter(), {}
    for number, plan in enumerate(plans, start=1):
        print(f"[{number}/{len(plans)}] {plan!s:50} ", end="", flush=True)
        state, line = _one(plan, force=force, lost=lost.get(plan.notebook[0]))
        print(line, flush=True)
        counts[state] += 1
        if state == "failed" and plan.trains:
            lost.setdefault(plan.notebook[0], plan)
    total = ", ".join(f"{counts[state]} {state}" for state in ("done", "skipped", "failed"))
    print(f"{total} in {time.monotonic() - start:.0f} s; figures are in {repro.out() / 'figures'}")
    return FAILED if counts["failed"] else 0


def _one(plan, *, force: bool, lost) -> tuple[str, str]:
    """Execute a plan if that is needed and possible: done, skipped or failed, and its line."""
    from osnb.publish import publish
    from osnb.run import done, execute

    if lost is not None and plan.collects:
        return "failed", f"not run: it reads {lost}, which failed"
    if not force and done(plan):
        publish(plan.directory, plan.figures)  # copies only what somebody took away there
        return "skipped", "skipped, up to date"
    end = execute(plan)
    spent = f"{end['seconds']:.0f} s"
    if end["state"] == "failed":
        error = end["error"]
        place = f"cell In [{error['cell']}], " if error["cell"] else ""
        reason = f"{place}{error['name']}: {error['value'].partition(chr(10))[0]}"
        look = plan.directory / "executed.ipynb"
        see = f"\n    see {look}" if look.is_file() else ""
        return "failed", f"failed {spent}\n    {reason}{see}"
    large = ", ".join(end["unpublished"])
    return "done", f"done {spent}" + (f"; too large for figures/: {large}" if large else "")


@app.command()
def status():
    """A table of the runs and how they went."""
    from rich.console import Console
    from rich.table import Table

    from osnb import record, repro

    runs = record.everything()
    if not runs:
        print(f"no run in {repro.out() / 'runs'} yet; make reproduce makes the miniature ones")
        return
    table = Table("notebook", "run", "state", "seconds", "finished", box=None)
    for found in runs:
        seconds = f"{found['seconds']:.0f}" if "seconds" in found else ""
        cells = (found["notebook"], found["run"], found["state"], seconds)
        table.add_row(*cells, found.get("finished", ""))
    Console().print(table)


@app.command()
def show(name: Annotated[str, typer.Argument(help="<run> or <notebook>/<run>", metavar="RUN")]):
    """What run.json knows about a run, as json."""
    import json

    from osnb import record

    runs = record.everything()
    found = [x for x in runs if name in (x["run"], f"{x['notebook']}/{x['run']}")]
    if not found:
        names = ", ".join(f"{x['notebook']}/{x['run']}" for x in runs)
        raise ValueError(f"no run is called {name!r}; there are: {names or 'none'}")
    for each in found:
        print(json.dumps(each, indent=1))
