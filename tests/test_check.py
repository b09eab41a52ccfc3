"""`osnb check`: the notebook guide and the params files' rules, each by a fault planted."""

import json
import shutil

import pytest
from test_cli import osnb

from osnb.base import workbook
from osnb.book.check import AFTER, LINES, check

ROOT = workbook.root()


@pytest.fixture
def tour(project):
    """A function that changes the tour of a project, if at all, and gives what is wrong with it."""
    shutil.copytree(ROOT / "params" / "00_tour", project.folder / "params" / "00_tour")
    source = ROOT / "notebooks" / "00_tour.ipynb"

    def checked(change=lambda content: None):
        content = json.loads(source.read_text(encoding="utf8"))
        for cell in content["cells"]:
            cell["source"] = "".join(cell["source"])
        change(content)
        path = project.folder / "notebooks" / "00_tour.ipynb"
        path.write_text(json.dumps(content), encoding="utf8")
        return [*check([path])]

    return checked


def test_a_notebook_without_cells_is_said_to_have_none(tour):
    assert tour(lambda content: content["cells"].clear()) == [
        "notebooks/00_tour.ipynb: it has no cells"
    ]


def code(content):
    return [cell for cell in content["cells"] if cell["cell_type"] == "code"]


def plain(content):
    """A code cell that has no tag, so that it is neither parameters nor checked nor course."""
    return next(cell for cell in code(content)[1:] if not cell["metadata"].get("tags"))


def replaced(old, new):
    """In every cell."""

    def change(content):
        assert any(old in cell["source"] for cell in content["cells"]), old
        for cell in content["cells"]:
            cell["source"] = cell["source"].replace(old, new)

    return change


def added(line):
    """A line at the end of a code cell."""
    return lambda content: plain(content).update(source=plain(content)["source"] + "\n" + line)


def printed(text, *, tags=("nbval-check-output",), kind="text/plain"):
    """An output of a cell with those tags, or of any."""

    def change(content):
        data = {"output_type": "display_data", "metadata": {}, "data": {kind: text}}
        plain(content).update(outputs=[data], metadata={"tags": [*tags]})

    return change


def of_parameters(line):
    """Another line in the cell of parameters."""
    return lambda content: code(content)[0].update(source=code(content)[0]["source"] + "\n" + line)


def graded(content):
    return [cell for cell in content["cells"] if "nbgrader" in cell["metadata"]]


def moved(content):
    """The first code cell of the course to the front of them."""
    cells = content["cells"]
    course = next(i for i, x in enumerate(cells) if "course" in x["metadata"].get("tags", []))
    cells.insert(1, cells.pop(course))


STDERR = {"output_type": "stream", "name": "stderr", "text": "a warning"}
ERROR = {"output_type": "error", "ename": "E", "evalue": "", "traceback": []}
FAULTS = {
    "20 to 35 cells": lambda x: x.update(cells=x["cells"][:6] + x["cells"][-2:]),
    "about half of the cells are text": lambda x: [
        cell.update(cell_type="markdown") for cell in code(x)[1:9]
    ],
    "'# Section: claim'": lambda x: x["cells"][0].update(source="# A tour\n\nText."),
    "lacks **You need**": replaced("**You need**", "Needed"),
    "'Measured: about N seconds": replaced("Measured: about", "Measured: some"),
    "the last five sections": replaced("## Exercises", "## Tasks"),
    "link to a DOI or to arXiv": replaced("](https://", "](http://"),
    "predicts at least twice": replaced("**Predict", "**Think"),
    "before a cell that is run": lambda x: x["cells"].insert(
        [c["source"].startswith(AFTER) for c in x["cells"]].index(True),
        {"cell_type": "markdown", "metadata": {}, "source": "**Predict** it."},
    ),
    "three to five exercises": replaced("exercise.check(", "exercise.look("),
    "how to tell a right answer": replaced("*Check:*", "Look:"),
    "nbgrader refuses": lambda x: graded(x)[0]["metadata"]["nbgrader"].pop("grade_id"),
    "metadata and regions agree": replaced("### BEGIN SOLUTION", "# solution"),
    "NAME and NAME-check": lambda x: graded(x)[1]["metadata"]["nbgrader"].update(grade_id="x"),
    "each with its seed": replaced("seed=", "draw="),
    "five questions of four options": replaced("\n   - d) ", "\n   - "),
    "ends in a cell with answers": replaced('answers = "', 'answers = "ab'),
    "and exercise.practice": replaced("exercise.practice(answers, n", "exercise.practice(n"),
    "ends in a cell tagged course": lambda x: x["cells"][-1]["metadata"].clear(),
    "cells of the course come last": moved,
    "answers is defined in the course": added("answers"),
    "at most 12 parameters": of_parameters("\n".join(f"p{i}: int = 1  # p" for i in range(12))),
    "at most 6 parameters before '# advanced'": lambda x: code(x)[0].update(
        source="\n".join(f"p{i}: int = 1  # p" for i in range(7)) + "\n# advanced"
    ),
    "the first parameters are run and size": replaced("size: str", "extent: str"),
    "a parameter has its type": of_parameters("rate = 0.5  # not annotated"),
    "not so: more": of_parameters("more: int = 0.5  # another type"),
    "not so: less": of_parameters("less: int = 1"),
    "the defaults are those of": replaced('size: str = "mini"', 'size: str = "tiny"'),
    "the run is opened once": replaced('book.begin("00_tour"', 'book.begin("01_curves"'),
    f"at most {LINES} lines; got ": added("\n".join(["x = 1"] * LINES)),
    "no try": added("try:\n    x = 1\nfinally:\n    x = 2"),
    "no star import": added("from math import *"),
    "no magic": added("get_ipython()"),
    "come through their guard": added("import torchvision"),
    "no loop over epochs": added("for epoch in range(3):\n    x = epoch"),
    "no branch on a parameter": added("if seed:\n    x = 1"),
    "widgets show and give nothing back": added("x = widgets.play()"),
    "cannot be read: ": added("%matplotlib inline"),
    "needs one cell tagged 'parameters'": lambda x: code(x)[0]["metadata"].clear(),
    "the kernel is called python3": lambda x: x["metadata"]["kernelspec"].update(name="mine"),
    "nothing of papermill": lambda x: x["metadata"].update(papermill={}),
    "executed in order, from 1": lambda x: code(x)[2].update(execution_count=9),
    "a checked cell has an output": lambda x: plain(x).update(
        outputs=[], metadata={"tags": ["nbval-check-output"]}
    ),
    "no error and no stderr": lambda x: plain(x).update(outputs=[STDERR]),
    "no error and": lambda x: plain(x).update(outputs=[ERROR]),
    "an image has less than": printed("A" * 400_000, kind="image/png"),
    "an image has words": printed("AAAA", kind="image/png"),
    "got 250,001": printed("<" * 250_001, kind="image/svg+xml"),
    "no address": printed("<Axes at 0x7f0000aa>", tags=()),
    "an absolute path: '/tmp/x/y'": printed("in /tmp/x/y"),
    "a date: '2026-11-23'": printed("on 2026-11-23"),
    "a clock: '10:30:00'": printed("at 10:30:00"),
    "a random id": printed('id="T_a1b2c"', kind="text/html"),
    "a progress bar": printed("40%|####"),
    "a fourth decimal: '0.1234'": printed("0.1234"),
}


def test_the_tour_breaks_no_rule(tour):
    assert tour() == []


@pytest.mark.parametrize("reason", FAULTS)
def test_a_planted_fault_is_told_by_name_and_rule(tour, reason):
    wrong = [line for line in tour(FAULTS[reason]) if reason in line]
    assert wrong
    assert all(line.startswith("notebooks/00_tour.ipynb: ") for line in wrong)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("mini.yaml", "# CPU, 3 seconds\nrun: mini\nsed: 1\n", "unknown parameter 'sed'"),
        ("mini.yaml", "# CPU, 3 seconds\nrun: mini\nsize: tiny\n", "begins with its size"),
        ("mini.yaml", "# 3 seconds\nrun: mini\nsize: mini\n", "no device in its first comment"),
        ("mini.yaml", "# CPU\nrun: mini\nsize: mini\n", "no time in its first comment"),
        ("mini.yml", "# CPU, 3 seconds\nrun: mini\nsize: mini\n", "is called .yaml"),
        ("mini.yaml", "# CPU, 3 seconds\nrun: mini\n", "a training run says its size"),
    ],
)
def test_a_fault_of_a_params_file_is_told(project, name, text, reason):
    project.add("trains", "10_fixture_train")
    file = project.write("10_fixture_train", text)
    (wrong,) = check([file.rename(file.with_name(name))])
    assert wrong.startswith(f"10_fixture_train/{name}: ")
    assert reason in wrong


def test_two_params_files_of_one_experiment_are_told_and_the_command_ends_with_1(project):
    project.add("works", "00_works")
    files = [
        project.write("00_works", f"# CPU, 1 second\nrun: {name}\n", run=name)
        for name in ("mini_a", "mini_b")
    ]
    code, out, _ = osnb("check", *files)
    wrong = ["00_works/mini_b.yaml: repeats mini_a.yaml", "1 broken rules"]
    assert (code, out.splitlines()) == (1, wrong)
    assert osnb("check", files[0])[:2] == (0, "0 broken rules\n")
