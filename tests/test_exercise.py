"""The self-checks say one of five things, hint at the rule followed, and raise nothing."""

import ast
import sys
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from coursework import graded

from osnb import metrics, protocols, scores
from osnb.protocols import hierarchy
from osnb.teach import exercise

RIGHT = ["right: the same on 50 random inputs"]


def verdict(capsys, mine, theirs=metrics.oscr, inputs=exercise.scores, **settings):
    """The lines that the check prints; it returns nothing."""
    assert exercise.check(mine, theirs, inputs=inputs, **settings) is None
    return capsys.readouterr().out.splitlines()


def nothing(rng):
    return ()


def unwritten(*arguments):
    raise NotImplementedError


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (metrics.oscr, exercise.scores),
        (metrics.auroc, exercise.sides),
        (metrics.aurc, exercise.ranking),
        (metrics.interval, exercise.resamples),
    ],
)
def test_the_package_itself_has_right_values_and_is_no_solution(capsys, function, inputs):
    said = f"a call of osnb.metrics.{function.__name__}, the package's: write it out"
    assert verdict(capsys, function, function, inputs) == [said]


@pytest.mark.parametrize(("tpr", "right"), [(0.9, False), (0.95, True), (1.0, False)])
def test_an_fpr_at_another_tpr_is_told_apart_by_many_known_scores(capsys, tpr, right):
    def mine(known, unknown):
        least = np.sort(known)[-int(np.ceil(tpr * len(known)))]
        return (unknown >= least).mean()

    lines = verdict(capsys, mine, partial(metrics.fpr_at_tpr, tpr=0.95), exercise.many)
    assert (lines == RIGHT) == right


@pytest.mark.parametrize("seed", range(20))
def test_at_least_95_per_cent_is_told_from_more_in_every_term(seed):
    def mine(known, unknown):
        enough = [t for t in known if (known >= t).mean() > 0.95]
        return (unknown >= max(enough)).mean()

    fpr95 = partial(metrics.fpr_at_tpr, tpr=0.95)
    with pytest.raises(AssertionError, match="wrong"):
        exercise.require(mine, fpr95, inputs=exercise.many, seed=seed)


def test_ones_own_function_is_right(capsys):
    def mine(known, unknown):
        return {"gap": known.mean() - unknown}

    assert verdict(capsys, mine, mine, exercise.sides) == RIGHT


@pytest.mark.parametrize("stub", [lambda *a: None, lambda *a: ..., unwritten])
def test_a_stub_is_not_written_yet(capsys, stub):
    assert verdict(capsys, stub) == ["not written yet"]


def test_a_wrong_value_is_shown_with_its_place_and_the_first_input_that_differs(capsys):
    counter = iter(range(99))

    def inputs(rng):
        return (np.array([[0, 1], [next(counter), 9]]),)

    lines = verdict(capsys, lambda x: np.where(x == 3, -1, x), lambda x: x, inputs)
    assert lines == [
        "wrong: at [1, 0] yours is -1; needed 3",
        "  on input 4 of 50: <lambda>([[0, 1], [3, 9]])",
    ]
    lines = verdict(capsys, lambda n: 0, lambda n: n, lambda rng: {"n": 4})
    assert lines == ["wrong: yours is 0; needed 4", "  on input 1 of 50: <lambda>(n=4)"]


@pytest.mark.parametrize(
    ("function", "inputs", "convention"),
    [
        (metrics.oscr, exercise.scores, "bisgin"),
        (metrics.auroc, exercise.sides, "kim"),
        (metrics.aurc, exercise.ranking, "kim"),
    ],
)
def test_who_follows_another_convention_is_told_its_name(capsys, function, inputs, convention):
    mine = partial(function, convention=convention)
    lines = verdict(capsys, mine, function, inputs, conventions=("exact", convention))
    assert lines[0].startswith("wrong: ")
    assert lines[1].startswith("  on input ")
    assert ": yours(" in lines[1]  # a partial has no name
    assert lines[2] == f"  on all 50 inputs yours gives what convention={convention!r} gives"


def test_who_follows_a_convention_on_some_inputs_only_is_not(capsys):
    def accepts_nothing_at_the_threshold(known, correct, unknown, fpr):
        rates = (unknown[:, None] > unknown).mean(axis=0)
        return ((known > unknown[rates <= fpr].min()) & correct).mean()

    def with_rate(rng):
        names = ("known", "correct", "unknown", "fpr")
        return dict(zip(names, (*exercise.scores(rng), rng.choice([0.5, 1])), strict=True))

    mine = accepts_nothing_at_the_threshold
    lines = verdict(capsys, mine, metrics.ccr_at_fpr, with_rate, conventions=("bisgin",))
    assert len(lines) == 2
    assert "fpr=" in lines[1]


@pytest.mark.parametrize(
    ("theirs", "settings", "reason"),
    [
        (lambda k, c, u: 1 / 0, {}, "ZeroDivisionError: division by zero"),
        (metrics.oscr, {"conventions": ("kim",)}, "ValueError: convention is one of"),
    ],
)
def test_a_reference_that_fails_is_not_the_readers_fault(capsys, theirs, settings, reason):
    (line,) = verdict(capsys, unwritten, theirs, **settings)
    assert line.startswith(f"cannot be checked: {reason}")


def test_an_error_is_named_and_not_raised(capsys):
    lines = verdict(capsys, lambda k, c, u: k[99])
    assert lines[0].startswith("raised IndexError: index 99 is out of bounds")
    assert lines[1].startswith("  on input 1 of 50: <lambda>([")


@pytest.mark.parametrize(
    ("value", "wanted", "reason"),
    [
        (np.zeros(3), np.zeros((3, 1)), "yours has shape (3,); needed (3, 1)"),
        ((1, 2, 3), (1, 2), "yours gives 3 values; needed 2 values"),
        (np.zeros(3), (0, 0), "yours gives 3 values; needed 2 values"),
        (np.zeros((5, 2)), (0, 0), "yours gives an array of shape (5, 2); needed 2 values"),
        (np.float64(1), (0, 0), "yours gives float64; needed 2 values"),
        ("ab", ("a", "b"), "yours gives str; needed 2 values"),
        ({0, 1}, (0, 1), "yours gives set; needed 2 values"),
        (([0, 1], [0, 2]), ([0, 1], [0, 1]), "value 1, at [1] yours is 2; needed 1"),
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
    lines = verdict(capsys, lambda: value, lambda: wanted, nothing)
    assert lines[0].startswith(f"wrong: {reason}")


ROWS = (np.array([1.0, 2]), np.array([3.0, 4]))


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        *((kind([1, 2, 3]), (1, 2, 3)) for kind in (list, np.array, pd.Series)),
        *((kind(ROWS), ROWS) for kind in (list, np.stack, lambda rows: pd.DataFrame([*rows]))),
        *((kind([1, 2]), np.array([1, 2])) for kind in (tuple, list, pd.Series)),
        ({"b": 2, "a": 1}, {"a": 1, "b": 2}),
        *((x, x) for x in (np.nan, np.array([np.nan, np.inf]), np.array(["a"]), True)),
        (1 + 1e-7, 1.0),
    ],
)
def test_equal_values_in_any_sequence_are_right(capsys, value, wanted):
    assert verdict(capsys, lambda: value, lambda: wanted, nothing) == RIGHT
    assert exercise.require(lambda: value, lambda: wanted, inputs=nothing) is None


def test_the_tolerance_may_be_chosen(capsys):
    assert verdict(capsys, lambda: 1 + 1e-5, lambda: 1.0, nothing, rtol=1e-4) == RIGHT


def test_both_get_inputs_that_the_other_has_not_changed(capsys):
    def sums(known, correct, unknown):
        return known.sum(), unknown.sum()

    def spoils(known, correct, unknown):
        values = sums(known, correct, unknown)
        known[:], unknown[:] = 0, 0
        return values

    assert verdict(capsys, spoils, sums) == RIGHT
    assert verdict(capsys, sums, spoils) == RIGHT


def test_warnings_of_either_stay_silent(capsys):
    def noisy(*arguments):
        warnings.warn("loud", stacklevel=1)
        print("louder", file=sys.stderr)
        return np.array([1.0, 0.0]) / 0  # inf and nan

    exercise.check(noisy, noisy, inputs=exercise.scores)
    assert capsys.readouterr() == (f"{RIGHT[0]}\n", "")


def test_the_same_seed_shows_the_same_input(capsys):
    lines = [verdict(capsys, lambda k, c, u: 0, seed=seed)[1] for seed in (3, 3, 4)]
    assert lines[0] == lines[1] != lines[2]


# Inputs


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


def draws(maker):
    rng = np.random.default_rng(0)
    return [maker(rng) for _ in range(50)]


def test_random_scores_hold_ties_and_errors(capsys):
    cases = draws(exercise.scores)
    assert {len(np.unique(np.r_[k, u])) == len(k) + len(u) for k, _, u in cases} == {True, False}
    assert {bool(c.all()) for _, c, _ in cases} == {True, False}

    def auroc_without_ties(known, unknown):
        return np.mean(known[:, None] > unknown)

    lines = verdict(capsys, auroc_without_ties, metrics.auroc, exercise.sides)
    assert lines[0].startswith("wrong: yours is 0.")


def test_a_ranking_ties_right_with_wrong_and_more_than_two():
    cases = draws(exercise.ranking)
    ties = [right[score == level] for score, right in cases for level in np.unique(score)]
    assert sum(tie.any() and not tie.all() for tie in ties) > 20
    assert max(map(len, ties)) > 2


def test_a_function_that_ends_python_is_told_so(capsys):
    def stop():
        sys.exit("enough")

    assert verdict(capsys, stop, lambda: 1, nothing)[0] == "raised SystemExit: enough"
    (line,) = verdict(capsys, lambda: 1, stop, nothing)
    assert line == "cannot be checked: SystemExit: enough"


# Hidden tests and quizzes


@pytest.mark.parametrize(
    ("notebook", "name", "functions"),
    [
        ("01_curves", "metrics", ["my_oscr", "my_fpr95", "my_interval"]),
        ("10_palechor_protocols", "rules", ["my_distance", "my_roles"]),
    ],
)
def test_a_function_that_is_gone_or_ends_python_costs_its_own_point_alone(
    capsys, notebook, name, functions
):
    cells = graded(notebook)
    *shown, hidden = ast.parse(cells[f"{name}-check"]).body
    for lost in functions:
        for kind in ("is not defined", "raised SystemExit"):
            space = {"np": np, "partial": partial, "exercise": exercise, "metrics": metrics}
            space |= {"hierarchy": hierarchy, "protocols": protocols, "seed": 0}
            exec(cells[name], space)
            space[lost] = lambda *given: sys.exit()
            if kind == "is not defined":
                del space[lost]
            exec(ast.unparse(shown), space)
            assert eval(ast.unparse(hidden), space) == len(functions) - 1
            lines = capsys.readouterr().out.splitlines()
            assert sum(kind in line for line in lines) == 2  # of the check and of the hidden test
            assert lines.count(*RIGHT) == len(functions) - 1


def first_fourteen(leaves):
    """Roles of leaves, right for so many."""
    return [protocols.P3_ROLES[i % 6] for i in range(14)][: len(leaves)]


def first_fork(path_a, path_b):
    """Edges between the ends of two paths, neither of which begins the other."""
    shared = next(i for i in range(99) if path_a[i] != path_b[i])
    return len(path_a) + len(path_b) - 2 * shared


@pytest.mark.parametrize("wrong", [first_fork, first_fourteen])
def test_an_answer_that_forgets_some_paths_or_leaves_loses_its_point(wrong):
    cells = graded("10_palechor_protocols")
    space = {"np": np, "exercise": exercise, "hierarchy": hierarchy, "protocols": protocols}
    space |= {"seed": 0}
    exec(cells["rules"], space)
    *shown, hidden = ast.parse(cells["rules-check"]).body
    exec(ast.unparse(shown), space)
    assert eval(ast.unparse(hidden), space) == 2
    space["my_distance" if wrong is first_fork else "my_roles"] = wrong
    assert eval(ast.unparse(hidden), space) == 1


@pytest.mark.filterwarnings("ignore:(overflow|invalid value):RuntimeWarning")
def test_a_mean_softmax_that_bears_one_large_logit_a_row_and_no_two_is_refused():
    cells, space = graded("31_kim_train"), {"np": np, "scores": scores}
    exec(cells["my_mean_softmax"], space)
    exec(cells["my_mean_softmax-check"], space)

    def no_maximum(logits):
        odds = np.nan_to_num(np.exp(logits))
        return np.nan_to_num(odds / odds.sum(axis=2, keepdims=True)).mean(axis=0)

    space["my_mean_softmax"] = no_maximum
    with pytest.raises(AssertionError, match="wrong: "):
        exec(cells["my_mean_softmax-check"], space)


def slowly(known, correct, unknown):
    """OSCR by its definition, threshold by threshold."""
    thresholds = [np.inf, *sorted({*known, *unknown}, reverse=True)]
    fpr = [(unknown >= threshold).mean() for threshold in thresholds]
    return fpr, [((known >= threshold) & correct).mean() for threshold in thresholds]


@pytest.mark.parametrize(
    ("mine", "words"),
    [
        (lambda k, c, u: None, "not written yet"),
        (lambda k, c, u: k[99], "raised IndexError: index 99"),
        (lambda k, c, u: 0, "wrong: yours gives int; needed 2 values"),
        (partial(metrics.oscr, convention="bisgin"), "convention='bisgin' gives"),
    ],
)
def test_require_raises_the_sentences_of_check(capsys, mine, words):
    settings = {"inputs": exercise.scores, "conventions": ["bisgin"], "seed": 7}
    exercise.require(slowly, metrics.oscr, **settings)
    assert capsys.readouterr() == ("", "")
    lines = verdict(capsys, mine, **settings)
    with pytest.raises(AssertionError) as caught:
        exercise.require(mine, metrics.oscr, **settings)
    assert str(caught.value).splitlines() == lines
    assert words in str(caught.value)


def test_require_draws_other_inputs_for_another_seed():
    seen = []
    for seed in (0, 1, 1):
        seen.append([])
        settings = {"inputs": lambda rng: (rng.random(),), "cases": 1, "seed": seed}
        with pytest.raises(AssertionError, match="not written yet"):
            exercise.require(seen[-1].append, lambda x: x, **settings)
    assert seen[0] != seen[1] == seen[2]


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        *((blank, "not answered yet") for blank in ("", "  ", ..., None)),
        *((whole, "5 of 5 answered") for whole in ("abcda", " ABCDA ")),
        ("ab", "2 of 5 answered"),
        ("abxda", "answer 3 is 'x'; needed a letter from a to d, or -"),
        ("ab da", "answer 3 is ' '; needed a letter from a to d, or -"),
        ("abcdab", "6 letters for 5 questions"),
        (["a"], 'answers is a text, such as "abcda"; got list'),
    ],
)
def test_a_quiz_says_how_far_it_is_answered_and_so_does_practice(capsys, answers, words):
    exercise.answered(answers, questions=5)
    assert capsys.readouterr().out == f"{words}\n"
    assert exercise.practice(answers, notebook="00_tour").data.endswith(f"*{words}*")


def test_practice_gives_the_reason_of_each_letter_right_and_wrong_and_of_no_other():
    reasons = exercise.reasons()["00_tour"]
    page = exercise.practice("ca-", notebook="00_tour").data
    assert page.split("\n\n") == [
        f"**1. c: right.** {reasons[0]['c']}",
        f"**2. a: right.** {reasons[1]['a']}",
        "*2 of 5 answered*",
    ]
    assert exercise.practice("B", notebook="00_tour").data.startswith(
        f"**1. b: not right.** {reasons[0]['b']}"
    )


def test_practice_of_a_notebook_that_has_none_is_refused_with_those_that_have():
    with pytest.raises(KeyError, match="'99_none' is not one of: 00_tour, 00_why, 01_curves"):
        exercise.practice("", notebook="99_none")


# A call of the package is no solution


@pytest.mark.parametrize(
    "mine",
    [metrics.auroc, lambda known, unknown: metrics.auroc(known, unknown), partial(metrics.auroc)],
)
def test_a_pasted_call_of_what_is_to_be_built_is_named(capsys, mine):
    exercise.check(mine, metrics.auroc, inputs=exercise.sides)
    said = "a call of osnb.metrics.auroc, the package's: write it out\n"
    assert capsys.readouterr().out == said
    with pytest.raises(AssertionError, match=r"a call of osnb\.metrics\.auroc"):
        exercise.require(mine, metrics.auroc, inputs=exercise.sides)


def pairs_ranked_right(known, unknown):
    """AUROC by its definition."""
    return np.mean([(k > u) + (k == u) / 2 for k in known for u in unknown])


def test_a_call_through_a_function_that_the_check_shows_is_named_too(capsys):
    def theirs(known, unknown):
        return metrics.auroc(known, unknown)

    exercise.check(lambda k, u: theirs(k, u), theirs, inputs=exercise.sides)
    assert "a call of osnb.metrics.auroc" in capsys.readouterr().out
    exercise.check(pairs_ranked_right, theirs, inputs=exercise.sides)
    assert capsys.readouterr().out == "right: the same on 50 random inputs\n"


def test_another_function_of_the_package_may_help_unless_all_has_to_be_ones_own(capsys):
    def mine(known, unknown):
        metrics.fpr_at_tpr(known, unknown, tpr=0.95)
        return pairs_ranked_right(known, unknown)

    exercise.check(mine, metrics.auroc, inputs=exercise.sides)
    exercise.check(mine, metrics.auroc, inputs=exercise.sides, own=True)
    first, second = capsys.readouterr().out.splitlines()
    assert first == "right: the same on 50 random inputs"
    assert second == "a call of osnb.metrics.fpr_at_tpr, the package's: write it out"


def test_a_small_value_is_not_right_because_it_is_small(capsys):
    assert verdict(capsys, lambda: 0.0, lambda: 1e-8, nothing).__getitem__(0).startswith("wrong")
