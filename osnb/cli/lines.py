"""What commands print of runs: a line for each, and json for programs."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TextIO


def written(file: Path, content: Mapping) -> None:
    """Write json to a file, or print it if that is called -."""
    from osnb import repro

    if str(file) == "-":
        print(json.dumps(content, indent=1, sort_keys=True))
    else:
        repro.write_json(file, content)


def announced(plans: list, force: bool) -> int:
    """Print what would be done, with the seconds that it took before, or that alike runs did."""
    from osnb import record
    from osnb.run import done, lacking

    guess = _guesses()
    total, known, todo, lost = 0.0, 0, 0, []
    for plan in plans:
        took, about = record.seconds(record.read(plan.directory)), guess(plan)
        said = f"about {about:.0f} s" if about is not None else "no estimate"
        said = f"{took:.0f} s last time" if took is not None else said
        if needed := force or not done(plan):
            lost += [why] if (why := lacking(plan)) else []
            seconds = about if took is None else took
            todo, known = todo + 1, known + (seconds is not None)
            total += seconds or 0
        print(f"{plan!s:50} {'would run' if needed else 'up to date':10} {said}")
    when = f": about {total:.0f} s one after another, from earlier runs" if known else ""
    more = f"; {todo - known} without an estimate" if todo > known else ""
    print(f"{len(plans)} runs, {todo} would run{when}{more}")
    for why, count in sorted(Counter(lost).items()):
        print(f"{count} of them would fail without their data: {why}")
    return 0


def _guesses() -> Callable:
    """Seconds that a plan may take, by the runs that this machine has finished.

    Those of the same experiment, else those of the same notebook and size; the median.
    """
    from statistics import median

    from osnb import record, repro

    def keys(notebook: str, parameters: Mapping) -> tuple:
        own = {k: v for k, v in parameters.items() if k not in repro.REPEATS}
        return (notebook, repr(sorted(own.items()))), (notebook, parameters.get("size"))

    here, times = record.owner()["host"], {}
    for run in record.everything():
        seconds = record.seconds(run)
        if seconds is not None and run.get("host") == here:
            for key in keys(run["notebook"], run["parameters"]):
                times.setdefault(key, []).append(seconds)

    def guess(plan) -> float | None:
        alike = (times.get(key) for key in keys(plan.notebook, plan.parameters))
        return next((median(found) for found in alike if found), None)

    return guess


class Lines:
    """One line for every run: its name when it begins, where that can be told, and its end."""

    def __init__(self, count: int, file: TextIO):
        self.count, self.file = count, file
        self.number, self.open, self.waited = 0, "", set()

    def told(self, plan, what: str) -> None:
        """A run begins, or another process is making it."""
        if what == "begins" and str(plan) not in self.waited:
            self._begin(plan, self.number + 1)
        elif what == "busy" and str(plan) not in self.waited:
            self.waited.add(str(plan))
            self._end(_busy(plan))

    def ended(self, plan, end: Mapping) -> None:
        """A run has ended."""
        self.number += 1
        if self.open != str(plan):
            self._begin(plan, self.number)
        self._end(_line(plan, end))

    def _begin(self, plan, number: int) -> None:
        print(f"[{number}/{self.count}] {plan!s:50} ", end="", flush=True, file=self.file)
        self.open = str(plan)

    def _end(self, line: str) -> None:
        print(line, flush=True, file=self.file)
        self.open = ""


def _busy(plan) -> str:
    from osnb import record

    found = record.read(plan.directory) or {}
    who = f"process {found.get('pid')} on {found.get('host')}"
    return f"waits: {who} is making it since {found.get('started', 'just now')}"


def _line(plan, end: Mapping) -> str:
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
