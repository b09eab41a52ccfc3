"""The self-checks say one of five things, hint at the rule followed, and raise nothing."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest

from osnb import exercise, metrics


def verdict(capsys, mine, theirs=metrics.oscr, inputs=exercise.scores, **settings):
    """The lines that the check prints; it returns nothing."""
    assert exercise.check(mine, theirs, inputs=inputs, **settings) is None
    return capsys.readouterr().out.splitlines()


def unwritten(*arguments):
    raise NotImplementedError


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (metrics.oscr, exercise.scores),
        (metrics.auroc, exercise.sides),
        (metrics.aurc, exercise.ranking),
        (metrics.ccr_at_fpr, exercise.at_rate),
        (metrics.interval, exercise.resamples),
        (lambda z, labels: {"loss": z.sum(1) * (labels >= 0)}, exercise.logits),
    ],
)
def test_the_package_itself_is_right(capsys, function, inputs):
    assert verdict(capsys, function, function, inputs) == ["right: the same on 50 random inputs"]


@pytest.mark.parametrize("stub", [lambda *a: None, lambda *a: ..., unwritten])
def test_a_stub_is_not_written_yet(capsys, stub):
    assert verdict(capsys, stub) == ["not written yet"]


def test_a_wrong_value_is_shown_with_its_place_and_its_input(capsys):
    lines = verdict(
        capsys,
        lambda x: np.where(x == 2, -1, x),
        lambda x: x,
        lambda rng: (np.array([[0, 1], [2, 3]]),),
    )
    assert lines == [
        "wrong: at [1, 0] yours is -1; needed 2",
        "  on input 1 of 50: <lambda>([[0, 1], [2, 3]])",
    ]


def test_the_first_input_that_differs_is_the_one_shown(capsys):
    counter = iter(range(1, 99))
    lines = verdict(capsys, lambda n: n + (n > 3), lambda n: n, lambda rng: {"n": next(counter)})
    assert lines == ["wrong: yours is 5; needed 4", "  on input 4 of 50: <lambda>(n=4)"]


def test_strict_acceptance_is_found_on_tied_scores_alone(capsys):
    def auroc_without_ties(known, unknown):
        return np.mean(known[:, None] > unknown)

    lines = verdict(capsys, auroc_without_ties, metrics.auroc, exercise.sides)
    assert lines[0].startswith("wrong: yours is 0.")


@pytest.mark.parametrize(
    ("function", "inputs", "convention"),
    [
        (metrics.oscr, exercise.scores, "bisgin"),
        (metrics.auroc, exercise.sides, "kim"),
        (metrics.aurc, exercise.ranking, "kim"),
        (metrics.ccr_at_fpr, exercise.at_rate, "palechor"),
        (metrics.ccr_at_fpr, exercise.at_rate, "bisgin"),
    ],
)
def test_who_follows_another_convention_is_told_its_name(capsys, function, inputs, convention):
    mine = partial(function, convention=convention)
    lines = verdict(capsys, mine, function, inputs, conventions=("exact", convention))
    assert lines[0].startswith("wrong: ")
    assert lines[1].startswith("  on input ")
    assert ": yours(" in lines[1]  # a partial has no name
    assert lines[2] == f"  on all 50 inputs yours gives what convention={convention!r} gives"


def test_a_convention_that_does_not_exist_is_not_the_readers_fault(capsys):
    lines = verdict(capsys, unwritten, metrics.auroc, exercise.sides, conventions=("palechor",))
    assert lines == [
        "cannot be checked: ValueError: convention is one of exact, kim; got 'palechor'"
    ]


def test_who_follows_a_convention_on_some_inputs_only_is_not(capsys):
    def accepts_nothing_at_the_threshold(known, correct, unknown, fpr):
        rates = (unknown[:, None] > unknown).mean(axis=0)
        lowest = unknown[rates <= fpr].min()
        return ((known > lowest) & correct).mean()

    mine = accepts_nothing_at_the_threshold
    lines = verdict(capsys, mine, metrics.ccr_at_fpr, exercise.at_rate, conventions=("bisgin",))
    assert len(lines) == 2
    assert "fpr=" in lines[1]


@pytest.mark.parametrize(
    "mine",
    [
        lambda v: (v[0], *np.percentile(v, [2.5, 97.5])),  # the sample among its resamples
        lambda v: (v[0], *np.percentile(v[1:], [5, 95])),
        lambda v: (v[0], v[1:].mean() - 1.96 * v[1:].std(), v[1:].mean() + 1.96 * v[1:].std()),
        lambda v: (v[1:].mean(), *np.percentile(v[1:], [2.5, 97.5])),
    ],
)
def test_each_usual_slip_in_an_interval_is_found_at_the_first_input(capsys, mine):
    lines = verdict(capsys, mine, metrics.interval, exercise.resamples)
    assert lines[0].startswith("wrong: value ")
    assert lines[1].startswith("  on input 1 of 50: ")


def test_a_ranking_ties_right_with_wrong_and_more_than_two():
    rng = np.random.default_rng(0)
    draws = [exercise.ranking(rng) for _ in range(50)]
    ties = [right[score == level] for score, right in draws for level in np.unique(score)]
    assert sum(tie.any() and not tie.all() for tie in ties) > 20
    assert max(map(len, ties)) > 2


def test_some_rates_are_met_by_a_threshold_and_some_by_none():
    rng = np.random.default_rng(0)
    draws = [exercise.at_rate(rng) for _ in range(50)]
    met = [any(np.arange(1 + len(d["unknown"])) / len(d["unknown"]) == d["fpr"]) for d in draws]
    assert 10 < sum(met) < 40
    assert all(0 < draw["fpr"] <= 1 for draw in draws)


def test_one_part_of_a_tuple_is_named(capsys):
    lines = verdict(capsys, lambda k, c, u: (metrics.oscr(k, c, u)[0], metrics.oscr(k, c, u)[0]))
    assert lines[0].startswith("wrong: value 1, at [1] yours is")


@pytest.mark.parametrize(
    ("value", "wanted", "reason"),
    [
        (np.zeros(3), np.zeros((3, 1)), "yours has shape (3,); needed (3, 1)"),
        ((1, 2, 3), (1, 2), "yours gives 3 values; needed 2 values"),
        ([1, 2, 3], (1, 2), "yours gives 3 values; needed 2 values"),
        (np.zeros(3), (0, 0), "yours gives 3 values; needed 2 values"),
        (np.zeros((5, 2)), (0, 0), "yours gives an array of shape (5, 2); needed 2 values"),
        (np.float64(1), (0, 0), "yours gives float64; needed 2 values"),
        ("ab", ("a", "b"), "yours gives str; needed 2 values"),
        ({0, 1}, (0, 1), "yours gives set; needed 2 values"),
        ([0, 1], (0, 2), "value 1, yours is 1; needed 2"),
        (np.nan, 1.0, "yours is nan; needed 1."),
        (1.0, np.nan, "yours is 1.; needed nan"),
        ("known", 1.0, "yours is 'known'; needed 1."),
        ({"a": 1}, {"a": 1, "b": 2}, "yours has the keys a; needed a, b"),
        ({"a": 1}, {"a": 2}, "['a'], yours is 1; needed 2"),
        (np.array(["known", "known"]), np.array(["known", "unknown"]), "at [1] yours is 'known'"),
        (1.00001, 1.0, "yours is 1.00001; needed 1."),
    ],
)
def test_the_difference_is_said(capsys, value, wanted, reason):
    lines = verdict(capsys, lambda: value, lambda: wanted, lambda rng: ())
    assert lines[0].startswith(f"wrong: {reason}")


@pytest.mark.parametrize("made", [tuple, list, np.array, pd.Series])
def test_several_values_may_come_in_any_sequence(capsys, made):
    def mine(values):
        return made(metrics.interval(values))

    assert verdict(capsys, mine, metrics.interval, exercise.resamples)[0].startswith("right")
    assert exercise.require(mine, metrics.interval, inputs=exercise.resamples) is None


@pytest.mark.parametrize("made", [tuple, list, np.stack, lambda rows: pd.DataFrame([*rows])])
def test_several_columns_may_be_the_rows_of_one_array(capsys, made):
    lines = verdict(capsys, lambda k, c, u: made(metrics.oscr(k, c, u)))
    assert lines == ["right: the same on 50 random inputs"]


@pytest.mark.parametrize("made", [tuple, list, pd.Series])
def test_one_array_may_come_in_any_sequence(capsys, made):
    lines = verdict(capsys, lambda v: made(v + 1), lambda v: v + 1, exercise.resamples)
    assert lines == ["right: the same on 50 random inputs"]


def test_the_order_of_keys_does_not_matter(capsys):
    lines = verdict(capsys, lambda: {"b": 2, "a": 1}, lambda: {"a": 1, "b": 2}, lambda rng: ())
    assert lines[0].startswith("right")


@pytest.mark.parametrize("value", [np.nan, np.array([np.nan, np.inf]), np.array(["a"]), True])
def test_equal_values_are_right_even_if_not_numbers(capsys, value):
    assert verdict(capsys, lambda: value, lambda: value, lambda rng: ())[0].startswith("right")


def test_a_difference_below_the_tolerance_is_right(capsys):
    close = verdict(capsys, lambda: 1 + 1e-5, lambda: 1.0, lambda rng: (), rtol=1e-4)
    assert close[0].startswith("right")


def test_an_error_is_named_and_not_raised(capsys):
    lines = verdict(capsys, lambda k, c, u: k[99])
    assert lines[0].startswith("raised IndexError: index 99 is out of bounds")
    assert lines[1].startswith("  on input 1 of 50: <lambda>([")


def test_a_reference_that_fails_is_not_the_readers_fault(capsys):
    lines = verdict(capsys, unwritten, lambda k, c, u: 1 / 0)
    assert lines == ["cannot be checked: ZeroDivisionError: division by zero"]


def test_both_get_inputs_that_the_other_has_not_changed(capsys):
    def spoils(known, correct, unknown):
        fpr, ccr = metrics.oscr(known, correct, unknown)
        known[:], unknown[:] = 0, 0
        return fpr, ccr

    assert verdict(capsys, spoils)[0].startswith("right")
    assert verdict(capsys, metrics.oscr, spoils)[0].startswith("right")


def test_warnings_of_either_stay_silent(capsys):
    def noisy(*arguments):
        warnings.warn("loud", stacklevel=1)
        return np.array([1.0, 0.0]) / 0  # inf and nan

    assert verdict(capsys, noisy, noisy)[0].startswith("right")
    assert capsys.readouterr().err == ""


def test_the_same_seed_shows_the_same_input(capsys):
    lines = [verdict(capsys, lambda k, c, u: 0, seed=seed)[1] for seed in (3, 3, 4)]
    assert lines[0] == lines[1] != lines[2]


def test_random_scores_hold_ties_and_errors():
    rng = np.random.default_rng(0)
    draws = [exercise.scores(rng) for _ in range(50)]
    assert any(len(np.unique(np.r_[k, u])) < len(k) + len(u) for k, _, u in draws)
    assert any(len(np.unique(np.r_[k, u])) == len(k) + len(u) for k, _, u in draws)
    assert {bool(c.all()) for _, c, _ in draws} == {True, False}


# Hidden tests and quizzes


def test_require_is_silent_about_what_is_right(capsys):
    settings = {"inputs": exercise.scores, "conventions": ["bisgin"], "seed": 7}
    assert exercise.require(metrics.oscr, metrics.oscr, **settings) is None
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("mine", "said"),
    [
        (lambda k, c, u: None, "not written yet"),
        (lambda k, c, u: k[99], "raised IndexError: index 99"),
        (lambda k, c, u: 0, "wrong: yours gives int; needed 2 values"),
        (partial(metrics.oscr, convention="bisgin"), "convention='bisgin' gives"),
    ],
)
def test_require_raises_the_sentences_of_check(capsys, mine, said):
    settings = {"inputs": exercise.scores, "conventions": ["bisgin"], "seed": 7}
    lines = verdict(capsys, mine, **settings)
    with pytest.raises(AssertionError) as found:
        exercise.require(mine, metrics.oscr, **settings)
    assert [line.strip() for line in str(found.value).splitlines()] == [x.strip() for x in lines]
    assert said in str(found.value)


def test_require_draws_other_inputs_for_another_seed():
    seen = []
    for seed in (0, 1, 1):
        seen.append([])
        mine = seen[-1].append
        with pytest.raises(AssertionError, match="not written yet"):
            exercise.require(
                mine, lambda x: x, inputs=lambda rng: (rng.random(),), cases=1, seed=seed
            )
    assert seen[0] != seen[1] == seen[2]


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ("", "not answered yet"),
        ("  ", "not answered yet"),
        (..., "not answered yet"),
        (None, "not answered yet"),
        ("abcda", "5 of 5 answered"),
        (" ABCDA ", "5 of 5 answered"),
        ("ab", "2 of 5 answered"),
        ("abxda", "answer 3 is 'x'; needed a letter from a to d"),
        ("ab da", "answer 3 is ' '; needed a letter from a to d"),
        ("abcdab", "6 letters for 5 questions"),
        (["a"], 'answers is a text, such as "abcda"; got list'),
    ],
)
def test_a_quiz_without_its_key_says_how_far_it_is_answered(capsys, answers, said):
    assert exercise.quiz(answers, questions=5) is None
    assert capsys.readouterr().out == f"{said}\n"


@pytest.mark.parametrize(
    ("answers", "right"),
    [
        ("bdacb", 5),
        ("BDACB", 5),
        ("bdacc", 4),
        ("bd", 2),
        ("db", 0),
        ("", 0),
        (..., 0),
        (["b"], 0),
        ("xdacb", 4),
        ("bdacbb", 0),
    ],
)
def test_a_quiz_with_its_key_counts_what_is_right_and_prints_nothing(capsys, answers, right):
    assert exercise.quiz(answers, questions=5, key="bdacb") == right
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("key", ["abc", "abcde", "ABCDA"])
def test_a_key_that_does_not_fit_is_the_lecturers_mistake(key):
    with pytest.raises(ValueError, match=f"a key needs 5 letters from a to d; got '{key}'"):
        exercise.quiz("", questions=5, key=key)
