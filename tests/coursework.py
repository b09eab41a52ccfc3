"""A small notebook with an exercise, a quiz and a teacher's cell, for the tests of the course."""

import hashlib
import json

SOLUTION = """fpr = (unknown[:, None] >= known).mean(axis=0)
accepted = np.flatnonzero(fpr <= 0.5)
return correct[accepted].sum() / len(known)"""
KEY = "bdacb"
BLANK = 'def my_ccr(known, correct, unknown):\n    """CCR at half of the unknown."""\n'
HIDDEN = "exercise.require(my_ccr, theirs, inputs=exercise.scores, seed=7)"
ANSWER = "1. b: the largest FPR that is not above the rate; who takes d forgets the ties."


def cell(kind, text, tags=(), **nbgrader):
    """A cell; `nbgrader`: what differs from the metadata of a cell that is neither."""
    made = {"cell_type": kind, "metadata": {"tags": list(tags)} if tags else {}, "source": text}
    made["id"] = hashlib.sha256(text.encode()).hexdigest()[:8]
    if nbgrader:
        own = {"grade": False, "locked": False, "schema_version": 3, "solution": False}
        made["metadata"]["nbgrader"] = own | {"task": False} | nbgrader
    if kind == "code":
        made |= {"execution_count": 3, "outputs": []}
    return made


def region(kind, text, indent=""):
    """Lines between BEGIN and END."""
    lines = [f"### BEGIN {kind}", *text.splitlines(), f"### END {kind}"]
    return "\n".join(indent + line for line in lines)


def notebook(name="50_work", solution=SOLUTION, hidden=HIDDEN, extra=()):
    """A source notebook as a dict; `extra` cells come before the exercise."""
    written = {"grade_id": "my_ccr", "solution": True}
    graded = {"grade": True, "locked": True}
    setup = "import numpy as np\n\nfrom osnb import exercise, repro\n\n"
    setup += f'here = repro.begin("{name}", globals())'
    theirs = (
        "def theirs(known, correct, unknown):\n"
        '    """Slowly."""\n'
        "    rates = [sum(u >= k for u in unknown) / len(unknown) for k in known]\n"
        "    return sum(c for c, r in zip(correct, rates) if r <= 0.5) / len(known)\n\n\n"
        "exercise.check(my_ccr, theirs, inputs=exercise.scores)\n"
    )
    answers = 'answers = ""  # five letters, such as "abcda"\n'
    quiz = "exercise.quiz(answers, questions=5"
    shown = cell("code", "print(known_rows := 3)")
    shown["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "3\n"}]
    cells = [
        cell("markdown", "# Section: claim\n\nWords."),
        cell(
            "code",
            'run: str = "small"  # name\nsize: str = "mini"  # size\nseed: int = 0  # seed',
            ["parameters"],
        ),
        cell("code", setup),
        shown,
        *extra,
        cell("markdown", "## Exercises\n\n1. *build*: CCR."),
        cell("code", BLANK + region("SOLUTION", solution, "    "), **written),
        cell(
            "code",
            theirs + region("HIDDEN TESTS", hidden),
            grade_id="my_ccr-check",
            points=1,
            **graded,
        ),
        cell("markdown", "## Quiz\n\n1. Which?\n   - a) this\n   - b) that"),
        cell(
            "code",
            answers + region("SOLUTION", f'answers = "{KEY}"'),
            ["course"],
            grade_id="quiz",
            solution=True,
        ),
        cell(
            "code",
            f"{quiz})\n" + region("HIDDEN TESTS", f'{quiz}, key="{KEY}")'),
            ["course"],
            grade_id="quiz-check",
            points=5,
            **graded,
        ),
        cell("markdown", f"**Answers.**\n\n{ANSWER}", ["teacher"]),
    ]
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def put(folder, name="50_work", **changes):
    """Write the source notebook among those of a project; its path."""
    path = folder / "notebooks" / f"{name}.ipynb"
    path.write_text(json.dumps(notebook(name, **changes), indent=1))
    return path
