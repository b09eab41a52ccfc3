"""What commands print: a line for each run, tables of frames, and json for programs."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

PAPERS = {"palechor2023": "1", "vaze2022": "2", "kim2021": "3"}  # tens digit of their notebooks
Json = Annotated[
    Path | None, typer.Option("--json", help="File for the same as json; - prints it alone.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]


def written(file: Path, content: Any) -> None:
    """Write json to a file, or print it if that is called -."""
    from osnb.base import workbook

    if str(file) == "-":
        print(json.dumps(content, indent=1, sort_keys=True))
    else:
        workbook.write_json(file, content)


def console(wide: int, **options):
    """rich's, so many columns wide where there is no terminal to ask."""
    from rich.console import Console

    made = Console(**options)
    if not made.is_terminal:
        made.width = wide
    return made


def announced(plans: list, force: bool) -> None:
    """Print what would be done, with the seconds that it took before, or that alike runs did."""
    from osnb.book import record
    from osnb.book.run import done, lacking

    guess, times, lost = _guesses(), [], Counter()
    for plan in plans:
        took = record.seconds(record.read(plan.directory))
        seconds = guess(plan) if took is None else took
        words = "no estimate" if seconds is None else f"about {seconds:.0f} s"
        words = words if took is None else f"{took:.0f} s last time"
        todo = force or not done(plan)
        if todo:
            times.append(seconds)
            lost.update(filter(None, [lacking(plan)]))
        print(f"{plan!s:50} {'would run' if todo else 'up to date':10} {words}")
    known = [seconds for seconds in times if seconds is not None]
    total = f": about {sum(known):.0f} s one after another, from earlier runs" if known else ""
    more = f"; {len(times) - len(known)} without an estimate" if len(times) > len(known) else ""
    print(f"{len(plans)} runs, {len(times)} would run{total}{more}")
    for why, count in sorted(lost.items()):
        print(f"{count} of them would fail without their data: {why}")


def _guesses() -> Callable:
    """Seconds that a plan may take, by the runs that this machine has finished.

    Those of the same experiment, else those of the same notebook and size; the median.
    """
    from statistics import median

    from osnb.base import workbook
    from osnb.book import record

    def keys(notebook: str, parameters: Mapping) -> tuple:
        kept = {k: v for k, v in parameters.items() if k not in workbook.REPEATS}
        return (notebook, repr(sorted(kept.items()))), (notebook, parameters.get("size"))

    here, times = record.owner()["host"], {}
    for run in record.everything():
        seconds = record.seconds(run)
        if seconds is not None and run.get("host") == here:
            for key in keys(run["notebook"], run["parameters"]):
                times.setdefault(key, []).append(seconds)

    def guess(plan) -> float | None:
        alike = (times.get(key) for key in keys(plan.notebook, plan.parameters))
        return next((median(seconds) for seconds in alike if seconds), None)

    return guess


class Lines:
    """One line for every run: its name when it begins, where that can be told, and its end."""

    def __init__(self, count: int, file: TextIO):
        self.count, self.file = count, file
        self.number, self.open, self.waited = 0, "", set()

    def told(self, plan, what: str) -> None:
        """A run begins, or another process is making it."""
        from osnb.book import record

        if str(plan) in self.waited:
            return
        if what == "begins":
            self._begin(plan, self.number + 1)
        elif what == "busy":
            self.waited.add(str(plan))
            run = record.read(plan.directory) or {}
            who = f"process {run.get('pid')} on {run.get('host')}"
            self._end(f"waits: {who} is making it since {run.get('started', 'just now')}")

    def ended(self, plan, end: Mapping) -> None:
        """A run has ended."""
        self.number += 1
        if self.open != str(plan):
            self._begin(plan, self.number)
        self._end(_ending(plan, end))

    def _begin(self, plan, number: int) -> None:
        print(f"[{number}/{self.count}] {plan!s:50} ", end="", flush=True, file=self.file)
        self.open = str(plan)

    def _end(self, line: str) -> None:
        print(line, flush=True, file=self.file)
        self.open = ""


def _ending(plan, end: Mapping) -> str:
    """How a run ended, in a line or three."""
    state = end["state"]
    if state == "skipped":
        return "skipped, up to date"
    spent = f"{state} {end['seconds']:.0f} s" if "seconds" in end else state
    if state == "done":
        large = ", ".join(end["unpublished"])
        return spent + (f"; too large for figures/: {large}" if large else "")
    error = end.get("error", {"name": "", "value": "", "cell": None})
    if error["name"] == "NotRun":
        return f"not run: {error['value']}"
    place = f"cell In [{error['cell']}], " if error["cell"] else ""
    look = plan.directory / "executed.ipynb"
    see = f"\n    see {look}" if look.is_file() else ""
    return f"{spent}\n    {place}{error['name']}: {error['value'].partition(chr(10))[0]}{see}"
