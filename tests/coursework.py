"""A small notebook with an exercise, a quiz and a teacher's note, for the tests of `teach`."""

import hashlib
import json
import os
import subprocess

from osnb.base import workbook

SOLUTION = """fpr = (unknown[:, None] >= known).mean(axis=0)
accepted = np.flatnonzero(fpr <= 0.5)
return correct[accepted].sum() / len(known)"""
BLANK = 'def my_ccr(known, correct, unknown):\n    """CCR at half of the unknown."""\n'
HIDDEN = "exercise.require(my_ccr, theirs, inputs=exercise.scores, seed=7)"
NOTE = "Who is stuck here forgets the ties; ask for the scores that are equal."
PARAMETERS = 'run: str = "small"  # name\nsize: str = "mini"  # size\nseed: int = 0  # seed'
THEIRS = '''def theirs(known, correct, unknown):
    """Slowly."""
    rates = [sum(u >= k for u in unknown) / len(unknown) for k in known]
    return sum(c for c, r in zip(correct, rates) if r <= 0.5) / len(known)


exercise.check(my_ccr, theirs, inputs=exercise.scores)
'''
QUIZ = 'answers = ""  # one letter a question\nexercise.practice(answers, notebook="00_tour")'
WRITTEN, GRADED = {"solution": True}, {"grade": True, "locked": True}


def cell(kind, text, tags=(), **nbgrader):
    """A cell; `nbgrader`: what differs from the metadata of a cell that is neither."""
    made = {"cell_type": kind, "metadata": {"tags": list(tags)} if tags else {}, "source": text}
    made["id"] = hashlib.sha256(text.encode()).hexdigest()[:8]
    if nbgrader:
        plain = {"grade": False, "locked": False, "schema_version": 3, "solution": False}
        made["metadata"]["nbgrader"] = plain | {"task": False} | nbgrader
    return made | ({"execution_count": 3, "outputs": []} if kind == "code" else {})


def region(kind, text, indent=""):
    """Lines between BEGIN and END."""
    lines = [f"### BEGIN {kind}", *text.splitlines(), f"### END {kind}"]
    return "\n".join(indent + line for line in lines)


def notebook(solution=SOLUTION, hidden=HIDDEN, extra=()):
    """A source notebook as a dict; `extra` cells come before the exercise."""
    solution, hidden = region("SOLUTION", solution, "    "), region("HIDDEN TESTS", hidden)
    shown = cell("code", "print(known_rows := 3)")
    shown["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "3\n"}]
    cells = [
        cell("markdown", "# Section: claim\n\nWords."),
        cell("code", PARAMETERS, ["parameters"]),
        cell("code", "import numpy as np\n\nfrom osnb.teach import exercise"),
        shown,
        *extra,
        cell("markdown", NOTE, ["teacher"]),
        cell("markdown", "## Exercises\n\n1. *build*: CCR."),
        cell("code", BLANK + solution, grade_id="my_ccr", **WRITTEN),
        cell("code", THEIRS + hidden, grade_id="my_ccr-check", points=1, **GRADED),
        cell("markdown", "## Quiz\n\n1. Which?\n   - a) this\n   - b) that"),
        cell("code", QUIZ, ["course"]),
    ]
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def put(folder, name="50_work", **changes):
    """Write the source notebook among those of a project; its path."""
    path = folder / "notebooks" / f"{name}.ipynb"
    path.write_text(json.dumps(notebook(**changes), indent=1))
    return path


def graded(notebook):
    """The cells of a notebook that are graded and those that grade, by their names."""
    file = workbook.root() / "notebooks" / f"{notebook}.ipynb"
    cells = [x for x in json.loads(file.read_text())["cells"] if "nbgrader" in x["metadata"]]
    return {x["metadata"]["nbgrader"]["grade_id"]: "".join(x["source"]) for x in cells}


def ran(*words, cwd=None, **env):
    """A process that has ended, with what it said as text; `env`: changed variables."""
    env = os.environ | env
    return subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=300)
