"""Quizzes that the form of an option does not answer, and points for each function by itself."""

import ast
import json
import re

import nbformat
import pytest
from nbgrader.utils import determine_grade

from osnb.base import workbook
from osnb.teach import exercise

SOURCES = sorted((workbook.root() / "notebooks").glob("*.ipynb"))
MOST = 0.4  # of all questions, that a strategy without reading may get right; chance is 0.25
MOST_HERE = 3  # of the five questions of a notebook


def cells(source):
    """Text and metadata of nbgrader of each cell."""
    book = json.loads(source.read_text(encoding="utf8"))["cells"]
    return [("".join(cell["source"]), cell["metadata"].get("nbgrader", {})) for cell in book]


def quiz(source):
    """(lengths of the four options, index of the right one) of each question."""
    words, answers = (text for text, _ in cells(source)[-4:-2])
    (key,) = re.findall(r'^answers = "([a-d]{5})"$', answers, re.M)
    questions = re.split(r"^\d\. ", words, flags=re.M)[1:]
    options = [re.split(r"^   - [a-d]\) ", text, flags=re.M)[1:] for text in questions]
    lengths = [[len(" ".join(option.split())) for option in four] for four in options]
    return list(zip(lengths, ["abcd".index(letter) for letter in key], strict=True))


@pytest.mark.parametrize("wanted", [max, min], ids=["longest", "shortest"])
def test_the_length_of_an_option_does_not_tell_whether_it_is_right(wanted):
    """The chance to be right by an option of the wanted length, ties drawn."""
    hits = [
        [(four[right] == wanted(four)) / four.count(wanted(four)) for four, right in quiz(source)]
        for source in SOURCES
    ]
    assert sum(map(sum, hits)) <= MOST * sum(map(len, hits))
    assert max(map(sum, hits)) <= MOST_HERE


def test_no_letter_is_right_much_more_often_than_others():
    keys = [right for source in SOURCES for _, right in quiz(source)]
    assert max(map(keys.count, range(4))) <= MOST * len(keys)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_each_function_is_granted_by_itself_and_an_untouched_quiz_shows_nothing(source):
    for text, of in cells(source):
        if of.get("grade_id") == "quiz":
            last = ast.parse(workbook.cleared(text, name=source.name)).body[-1]
            assert not isinstance(last, ast.Expr)
        elif of.get("grade") and of["grade_id"] != "quiz-check":
            asked = text.count("exercise.check(")
            assert of["points"] == asked or (source.stem.endswith("_capstone") and asked == 1)
            hidden = text.partition("### BEGIN HIDDEN TESTS")[2].partition("### END")[0]
            if of["points"] > 1 and hidden.count("exercise.require(") > 1:
                last = ast.unparse(ast.parse(hidden).body[-1])
                assert last.startswith("exercise.granted("), of["grade_id"]
                assert last.count("lambda: exercise.require(") == of["points"]


def wrong():
    raise AssertionError("wrong: yours is 1; needed 2")


def test_one_wrong_function_of_three_costs_one_of_the_cells_points(capsys):
    right = exercise.granted(lambda: None, wrong, lambda: None)
    assert capsys.readouterr().out == "wrong: yours is 1; needed 2\n"
    data = {"text/plain": str(right)}
    shown = nbformat.v4.new_output("execute_result", data, execution_count=1, metadata={})
    cell = nbformat.v4.new_code_cell("exercise.granted()", outputs=[shown])
    cell.metadata["nbgrader"] = {"grade": True, "solution": False, "points": 3, "grade_id": "x"}
    assert determine_grade(cell) == (2, 3)
