"""Quizzes that the form of an option does not answer, what counts by the term's secret, points."""

import ast
import json
import re
from collections import Counter

import nbformat
import numpy as np
import pytest
from nbgrader.utils import determine_grade

from osnb.base import workbook
from osnb.teach import course, exercise
from osnb.teach.course import term

SOURCES = sorted((workbook.root() / "notebooks").glob("*.ipynb"))
MOST = 0.4  # of all questions, that a strategy without reading may get right; chance is 0.25
MOST_HERE = 3  # of the five questions of a notebook


def cells(source):
    """Text and metadata of nbgrader of each cell."""
    book = json.loads(source.read_text(encoding="utf8"))["cells"]
    return [("".join(cell["source"]), cell["metadata"].get("nbgrader", {})) for cell in book]


def quiz(source):
    """(lengths of the four options, index of the right one) of each question."""
    text = cells(source)[-2][0]
    questions = re.split(r"^\d\. ", text, flags=re.M)[1:]
    options = [re.split(r"^   - [a-d]\) ", text, flags=re.M)[1:] for text in questions]
    lengths = [[len(" ".join(option.split())) for option in four] for four in options]
    right = ["abcd".index(reason["right"]) for reason in exercise.reasons()[source.stem]]
    return list(zip(lengths, right, strict=True))


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
def test_each_function_is_granted_by_itself(source):
    for text, of in cells(source):
        if of.get("grade"):
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


# What counts


SECRET, OTHER = term.derived("the secret of one term", 1), term.derived("the secret of another", 1)
NUMBERS = [entry for entry in term.bank() if "answer" in entry]


def test_the_bank_has_three_questions_a_session_ten_of_them_in_words_each_of_four_points():
    sessions = Counter(entry["session"] for entry in term.bank())
    assert sessions == dict.fromkeys(range(1, 11), 3)
    assert Counter(entry["session"] for entry in NUMBERS) == dict.fromkeys(range(1, 11), 2)
    for entry in term.bank():
        assert sum(points for points, _ in entry["rubric"]) == 4


def test_the_answer_is_computed_by_a_second_hand():
    """The numbers are read from the text as a learner reads them."""
    for learner in map(str, range(20)):
        auroc, cost = (
            term.question(next(x for x in NUMBERS if x["name"] == name), learner * 12)
            for name in ("auroc with a tie", "cost of a threshold")
        )
        given = [float(x) for x in re.findall(r"\b[\d.]*\d\b", auroc.ask)]
        pairs = [(k > u) + (k == u) / 2 for k in given[:4] for u in given[4:7]]
        assert auroc.answer == f"{np.mean(pairs):.3f}"
        wrong, reject = (int(x) for x in re.findall(r"costs (\d+)", cost.ask))
        assert cost.answer == f"{reject / wrong:.3f}"


@pytest.mark.parametrize("entry", NUMBERS, ids=lambda entry: entry["name"])
def test_four_options_differ_and_numbers_and_order_follow_from_the_secret(entry):
    asked = [term.question(entry, term.derived(SECRET, i)) for i in range(30)]
    assert all(len({text for text, _ in each.options}) == 4 for each in asked)
    assert len({each.letter for each in asked}) == 4
    assert len({each.ask for each in asked}) > 5
    assert asked[0] == term.question(entry, term.derived(SECRET, 0))
    assert not [x for each in asked for x in (each.ask, *each.options[0]) if "{" in str(x)]


def test_learners_and_terms_have_other_quizzes_and_a_learner_always_the_same():
    own = [term.quiz(SECRET, 5, f"learner{i}") for i in range(20)]
    assert len({term.quiz_text(quiz) for quiz in own}) == 20
    assert term.quiz(SECRET, 5, "learner0") == own[0] != term.quiz(OTHER, 5, "learner0")
    letters = Counter(question.letter for quiz in own for question in quiz)
    assert set(letters) == set("abcd")


def test_what_is_handed_out_follows_from_the_visible_questions_alone():
    """Neither a checksum nor an id nor anything else in the file knows the right letter."""
    made = [term.quiz_notebook(4, secret=SECRET, learner="ada") for _ in range(2)]
    hidden = made[1].cells[-1]
    hidden.source = hidden.source.replace("term.marks(answers, ", "print(1, ")
    handed = [nbformat.writes(course.copies.student(book, "quiz")) for book in made]
    assert handed[0] == handed[1]
    assert SECRET not in handed[0]
    assert "HIDDEN" not in handed[0]
    key = "".join(question.letter for question in term.quiz(SECRET, 4, "ada"))
    assert key not in re.findall(r"\w+", handed[0])


def test_the_letters_do_not_follow_from_another_secret():
    """Whoever has the repository and guesses secrets is right in one letter of four."""
    right = [question.letter for i in range(10) for question in term.quiz(SECRET, 5, f"l{i}")]
    hits = []
    for guess in range(4):
        own = term.derived(f"a guess of the secret {guess}", 1)
        letters = [question.letter for i in range(10) for question in term.quiz(own, 5, f"l{i}")]
        hits.append(np.mean([a == b for a, b in zip(right, letters, strict=True)]))
    assert 0.15 < np.mean(hits) < 0.35
    assert max(hits) < 0.6


def test_marks_say_which_and_why(capsys):
    asked = term.quiz(SECRET, 3, "ada")
    right = "".join(question.letter for question in asked)
    assert term.marks(right, secret=SECRET, session=3, learner="ada") == 1
    wrong = "abcd"[("abcd".index(right[0]) + 1) % 4]
    capsys.readouterr()
    assert term.marks(wrong + right[1:3], secret=SECRET, session=3, learner="ada") == 0.5
    text = re.sub(r"\n {6}", " ", capsys.readouterr().out)
    lines = text.splitlines()
    assert lines[0] == f"1. {wrong}: wrong; right is {right[0]}"
    reasons = dict(zip("abcd", asked[0].options, strict=True))
    said = [f"   {letter}) {': '.join(reasons[letter])}" for letter in sorted({wrong, right[0]})]
    assert lines[1:3] == said
    assert lines[-2] == f"4. no letter: wrong; right is {right[3]}"
    for answers in ("", ..., right + "a"):
        assert term.marks(answers, secret=SECRET, session=3, learner="ada") == 0


def test_the_exam_has_other_numbers_than_a_quiz_and_its_rubric_the_answers():
    pages = term.exam("the secret of one term")
    assert pages["exam.md"].count("\n## ") == pages["rubric.md"].count("\n## ") == 30
    assert "**Answer" not in pages["exam.md"]
    assert pages["rubric.md"].count("**Answer: ") == 20
    assert pages != term.exam("the secret of another")
    assert "{{" not in "".join(pages.values())


@pytest.mark.parametrize("between", ["", " "])
def test_a_letter_too_many_counts_nothing_and_is_told_so(capsys, between):
    asked = [question.letter for question in term.quiz(SECRET, 1, "ada")]
    assert term.marks(between.join(asked) + "-", secret=SECRET, session=1, learner="ada") == 0
    said = capsys.readouterr().out
    signs = len(between.join(asked)) + 1
    assert f"0 points: {signs} signs for {len(asked)} questions; write one letter for each" in said
    assert term.marks("".join(asked), secret=SECRET, session=1, learner="ada") == 1
    assert "points" not in capsys.readouterr().out


@pytest.mark.parametrize("secret", ["", "short", "eleven sign"])
def test_a_secret_that_can_be_tried_out_is_refused(secret):
    with pytest.raises(ValueError, match="12 signs or more"):
        term.derived(secret, "session", 1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name\nada\n", "needs a column id; got name"),
        ("id\nada\nada\n", r"an id a learner: .* got \['ada'\]"),
        ("id\n../ada\n", r"got \['../ada'\]"),
        ("id\n", r"got \[\]"),
    ],
)
def test_a_list_of_learners_that_is_none_is_refused(tmp_path, text, reason):
    (tmp_path / "l.csv").write_text(text)
    with pytest.raises(ValueError, match=reason):
        term.learners(tmp_path / "l.csv")


def test_seeds_change_in_hidden_tests_only():
    text = "check(seed=3)\n### BEGIN HIDDEN TESTS\nrequire(seed=7)\n### END HIDDEN TESTS"
    seeds = [re.findall(r"seed=(\d+)", term.seeded(text, key, "x")) for key in (SECRET, OTHER)]
    assert seeds[0][0] == seeds[1][0] == "3"
    assert len({seeds[0][1], seeds[1][1], "7"}) == 3
