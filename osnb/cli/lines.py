"""What commands print of runs: a line for each, and json for programs."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO


def written(file: Path, content: Mapping) -> None:
    """Write json to a file, or print it if that is called -."""
    from osnb import repro

    if str(file) == "-":
        print(json.dumps(content, indent=1, sort_keys=True))
    else:
        repro.write_json(file, content)


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
