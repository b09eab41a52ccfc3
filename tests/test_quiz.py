"""Quizzes that the form of an option does not answer, and points for each function by itself."""

import ast
import json
import re

import pytest

from osnb import exercise, repro

SOURCES = sorted((repro.root() / "notebooks").glob("*.ipynb"))
MOST = 0.4  # of all questions, that a strategy without reading may get right; chance is 0.25
MOST_HERE = 3  # of the five questions of a notebook


def cells(source):
    """Text and metadata of nbgrader of each cell."""
    found = json.loads(source.read_text(encoding="utf8"))["cells"]
    return [("".join(cell["source"]), cell["metadata"].get("nbgrader", {})) for cell in found]


def graded(source):
    """Text and metadata of each check cell of an exercise."""
    found = [(text, of) for text, of in cells(source) if of.get("grade")]
    return [(text, of) for text, of in found if of["grade_id"] != "quiz-check"]


def quiz(source):
    """(lengths of the four options, index of the right one) of each question."""
    words, answers = (text for text, _ in cells(source)[-4:-2])
    (key,) = re.findall(r'^answers = "([a-d]{5})"$', answers, re.M)
    questions = re.split(r"^\d\. ", words, flags=re.M)[1:]
    options = [re.split(r"^   - [a-d]\) ", text, flags=re.M)[1:] for text in questions]
    lengths = [[len(" ".join(option.split())) for option in four] for four in options]
    return list(zip(lengths, ["abcd".index(letter) for letter in key], strict=True))


def guessed(wanted, lengths, right):
    """The chance to be right by an option of the wanted length, ties drawn."""
    return (lengths[right] == wanted(lengths)) / lengths.count(wanted(lengths))


@pytest.fixture(params=SOURCES, ids=lambda source: source.stem)
def source(request):
    return request.param


# Options


@pytest.mark.parametrize("wanted", [max, min], ids=["longest", "shortest"])
def test_the_length_of_an_option_does_not_tell_whether_it_is_right(wanted):
    hits = [guessed(wanted, *question) for source in SOURCES for question in quiz(source)]
    assert sum(hits) <= MOST * len(hits)


@pytest.mark.parametrize("wanted", [max, min], ids=["longest", "shortest"])
def test_no_quiz_is_passed_by_the_length_of_its_options(source, wanted):
    assert sum(guessed(wanted, *question) for question in quiz(source)) <= MOST_HERE


@pytest.mark.parametrize("letter", range(4), ids="abcd")
def test_no_letter_is_right_much_more_often_than_others(letter):
    keys = [right for source in SOURCES for _, right in quiz(source)]
    assert keys.count(letter) <= MOST * len(keys)


def test_an_untouched_quiz_cell_shows_nothing(source):
    (text,) = [text for text, of in cells(source) if of.get("grade_id") == "quiz"]
    last = ast.parse(repro.notebooks.cleared(text, name=source.name)).body[-1]
    assert not isinstance(last, ast.Expr)


# Points


def test_a_function_is_one_point_and_a_capstone_s_own_more(source):
    for text, of in graded(source):
        asked = text.count("exercise.check(")
        assert of["points"] == asked or (source.stem.endswith("_capstone") and asked == 1)


def test_functions_that_share_a_check_cell_are_granted_one_by_one(source):
    for text, of in graded(source):
        hidden = text.partition("### BEGIN HIDDEN TESTS")[2].partition("### END")[0]
        if of["points"] > 1 and hidden.count("exercise.require(") > 1:
            last = ast.parse(hidden).body[-1]
            assert ast.unparse(last).startswith("exercise.granted("), of["grade_id"]
            assert ast.unparse(last).count("lambda: exercise.require(") == of["points"]


def wrong():
    raise AssertionError("wrong: yours is 1; needed 2")


def test_one_wrong_function_of_three_costs_one_point(capsys):
    assert exercise.granted(lambda: None, wrong, lambda: None) == 2
    assert capsys.readouterr().out == "wrong: yours is 1; needed 2\n"


@pytest.mark.parametrize("right", [0, 2, 3])
def test_nbgrader_takes_what_is_granted_for_the_cell_s_points(right):
    import nbformat
    from nbgrader.utils import determine_grade

    shown = nbformat.v4.new_output(
        "execute_result", {"text/plain": str(right)}, execution_count=1, metadata={}
    )
    cell = nbformat.v4.new_code_cell("exercise.granted()", outputs=[shown])
    cell.metadata["nbgrader"] = {"grade": True, "solution": False, "points": 3, "grade_id": "x"}
    assert determine_grade(cell) == (right, 3)
