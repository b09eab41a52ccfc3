"""What the first cell of a notebook says of its costs is what was measured."""

import json
import re

import pytest

from osnb import index, repro

ROOT = repro.root()
SOURCES = sorted((ROOT / "notebooks").glob("*.ipynb"))
MEASURED = r"Measured: about ([\d.]+) seconds? and ([\d.]+) GB"
FACTOR = 1.5


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_seconds_and_memory_on_top_of_a_notebook_agree_with_those_measured(source):
    top = "".join(json.loads(source.read_text(encoding="utf8"))["cells"][0]["source"])
    said = [float(number) for number in re.search(MEASURED, " ".join(top.split())).groups()]
    for number, known in zip(said, index.measured(ROOT).loc[source.stem], strict=True):
        assert known / FACTOR <= number <= known * FACTOR


def test_the_lecturer_is_told_which_sessions_have_more_to_read_than_their_plan_gives():
    page = (ROOT / "notebooks" / "LECTURER.md").read_text(encoding="utf8")
    day, term = map(int, re.findall(r"^\| (\d+) \| read and run", page, re.M))
    assert _minutes("one day").max() <= day
    named, plan = re.search(r"Sessions ([\d, and]+) have about .*?(\d+) minutes, or", page).groups()
    named, read = {int(n) for n in re.findall(r"\d+", named)}, _minutes("one term")
    assert int(plan) == term
    assert {i for i, minutes in enumerate(read, start=1) if minutes > term} <= named
    assert all(read.iloc[i - 1] >= term for i in named)


def _minutes(name):
    """Minutes to read in each session of a path."""
    return index.path(ROOT, index.PATHS[name])["read, min"].iloc[:-1].astype(int)
