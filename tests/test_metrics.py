"""Each metric beside its definition read slowly, its laws, and scikit-learn where it agrees."""

import csv
import math
from itertools import groupby, permutations, product
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from osnb import metrics
from osnb.metrics.counts import STEP, pieces, whole
from osnb.metrics.measures import area, harmonic, precision, risks, roc_area

DATA = Path(__file__).parent / "data"
POOL = st.sampled_from([-np.inf, -7.5, -1.0, -0.0, 0.0, 1e-38, 0.5, 1.0, 1.0 + 2**-20, np.inf])
KINDS = st.sampled_from([np.float32, np.float64])
RATES = st.sampled_from([0.05, 0.1, 0.25, 0.3, 0.5, 0.8, 0.95, 1.0])

many = settings(max_examples=100, derandomize=True, database=None, deadline=None)
few = settings(max_examples=60, derandomize=True, database=None, deadline=None)


@st.composite
def columns(draw, most=9):
    """(known, correct, unknown) with many ties, in one of the two kinds of float."""
    score = draw(st.sampled_from([POOL, st.floats(width=32, allow_nan=False)]))
    known = draw(st.lists(st.tuples(score, st.booleans()), min_size=1, max_size=most))
    unknown = draw(st.lists(score, min_size=1, max_size=most))
    kind = draw(KINDS)
    scores, correct = zip(*known, strict=True)
    return np.array(scores, kind), np.array(correct), np.array(unknown, kind)


def drawn(knowns, unknowns, digits=9, *, kind=np.float64, shift=0.0, seed=0):
    """(known, correct, unknown): normal scores, shifted and rounded to some digits."""
    rng = np.random.default_rng(seed)
    known = (rng.normal(1, 1, knowns) + shift).round(digits)
    unknown = (rng.normal(0, 1, unknowns) + shift).round(digits)
    return known.astype(kind), rng.random(knowns) < 0.8, unknown.astype(kind)


def pooled(known, correct, unknown):
    """(score, correct) of unknown detection: every unknown sample is an error."""
    return np.r_[known, unknown], np.r_[correct, np.zeros(len(unknown), bool)]


def thresholds(known, unknown):
    return sorted({*known, *unknown}, reverse=True)


# The definitions, read slowly.


def slow_points(known, correct, unknown, convention):
    """[(fpr, ccr)] in the order of the authors' thresholds."""
    above = np.greater if convention == "palechor" else np.greater_equal
    at = {
        "exact": thresholds(known, unknown),
        "palechor": sorted(set(known))[:-1][::-1],
        "bisgin": sorted(set(unknown), reverse=True),
    }[convention]
    origin = [(0.0, 0.0)] if convention == "exact" else []
    return origin + [
        (sum(above(unknown, t)) / len(unknown), sum(above(known, t) & correct) / len(known))
        for t in at
    ]


@many
@given(columns(), st.sampled_from(["exact", "palechor", "bisgin"]))
def test_oscr_matches_each_definition(sample, convention):
    points = list(zip(*metrics.oscr(*sample, convention=convention), strict=True))
    assert points == slow_points(*sample, convention)


def slow_arpl(rows):
    """Area of the released loop: CCR of the samples after k beside FPR of k and after."""
    knowns, unknowns = (sum(known == kind for _, known, _ in rows) for kind in (True, False))
    points = [(0.0, 0.0)]
    for k in range(len(rows)):
        false = sum(not known for _, known, _ in rows[k:]) / unknowns
        points.append((false, sum(right for *_, right in rows[k + 1 :]) / knowns))
    points.sort()
    return np.trapezoid([ccr for _, ccr in points], [fpr for fpr, _ in points])


@few
@given(columns(most=3))
def test_arpl_is_the_lowest_area_that_an_order_of_tied_rows_gives(sample):
    known, correct, unknown = sample
    rows = [(s, True, c) for s, c in zip(known, correct, strict=True)]
    rows += [(s, False, False) for s in unknown]
    orders = [p for p in permutations(rows) if list(p) == sorted(p, key=lambda row: row[0])]
    lowest = min(slow_arpl(order) for order in orders)
    assert metrics.oscr_area(*sample, convention="arpl") == pytest.approx(lowest, abs=1e-12)


@many
@given(columns(), RATES)
def test_ccr_at_fpr_matches_each_definition(sample, fpr):
    points = slow_points(*sample, "exact")
    assert metrics.ccr_at_fpr(*sample, fpr=fpr) == max(ccr for f, ccr in points if f <= fpr)

    points = slow_points(*sample, "bisgin")
    below = max((ccr for f, ccr in points if f < fpr), default=np.nan)
    bisgin = metrics.ccr_at_fpr(*sample, fpr=fpr, convention="bisgin")
    np.testing.assert_equal(bisgin, below)

    points = slow_points(*sample, "palechor")[::-1]  # theirs: lowest threshold first
    near, ccr = min(points, key=lambda p: abs(p[0] - fpr), default=(np.inf, np.nan))
    expected = ccr if abs(near - fpr) / fpr < 0.1 else np.nan
    palechor = metrics.ccr_at_fpr(*sample, fpr=fpr, convention="palechor")
    np.testing.assert_equal(palechor, expected)


@many
@given(columns())
def test_auroc_counts_pairs(sample):
    known, _, unknown = sample
    pairs = list(product(known, unknown))
    wins, ties = sum(k > u for k, u in pairs), sum(k == u for k, u in pairs)
    assert metrics.auroc(known, unknown) == pytest.approx((wins + ties / 2) / len(pairs), abs=1e-15)
    kim = metrics.auroc(known, unknown, convention="kim")
    assert kim == pytest.approx(wins / len(pairs), abs=1e-15)


@many
@given(columns(), RATES)
def test_fpr_at_tpr_matches_each_definition(sample, tpr):
    known, _, unknown = sample
    at = max(t for t in known if np.mean(known >= t) >= tpr)
    assert metrics.fpr_at_tpr(known, unknown, tpr=tpr) == np.mean(unknown >= at)

    at = min(t for t in unknown if np.mean(unknown <= t) >= tpr)
    refused = metrics.fpr_at_tpr(known, unknown, tpr=tpr, convention="openood")
    assert refused == np.mean(known <= at)

    # The released loop: refuse one sample at a time, a known one first where two tie.
    rows = sorted([(s, 0) for s in known] + [(s, 1) for s in unknown])
    states = [
        (sum(not u for _, u in rows[i:]) / len(known), sum(u for _, u in rows[i:]) / len(unknown))
        for i in range(len(rows) + 1)
    ]
    nearest = min(states, key=lambda state: abs(state[0] - tpr))
    assert metrics.fpr_at_tpr(known, unknown, tpr=tpr, convention="kim") == nearest[1]


@many
@given(columns())
def test_average_precision_steps_through_the_recalls(sample):
    known, _, unknown = sample
    total = recall = 0
    for t in thresholds(known, unknown)[::-1]:
        found = sum(unknown <= t)
        total += (found / len(unknown) - recall) * found / (found + sum(known <= t))
        recall = found / len(unknown)
    assert metrics.average_precision(known, unknown) == pytest.approx(total, abs=1e-12)


@few
@given(columns(most=3))
def test_aurc_is_the_mean_over_the_orders_within_a_tie(sample):
    score, correct = pooled(*sample)
    rows = sorted(zip(score, correct, strict=True), key=lambda row: -row[0])
    ties = [[not right for _, right in tie] for _, tie in groupby(rows, key=lambda row: row[0])]
    curves = []
    for order in product(*(permutations(tie) for tie in ties)):
        errors = [wrong for tie in order for wrong in tie]
        curves.append([sum(errors[: i + 1]) / (i + 1) for i in range(len(errors))])
    mean = np.mean(curves, axis=0)
    assert metrics.aurc(score, correct) == pytest.approx(mean.mean(), abs=1e-12)
    coverage, risk = metrics.risk_coverage(score, correct)
    np.testing.assert_allclose(risk, mean, atol=1e-12)
    np.testing.assert_array_equal(coverage, [(i + 1) / len(score) for i in range(len(score))])


# Laws.


@many
@given(columns())
def test_summary_is_every_metric_called_by_name(sample):
    known, correct, unknown = sample
    detection = pooled(*sample)
    rates = {q: metrics.ccr_at_fpr(*sample, fpr=q) for q in (0.001, 0.01, 0.1, 1)}
    assert metrics.summary(*sample) == {
        "accuracy": pytest.approx(metrics.accuracy(correct), abs=1e-15),
        "oscr_area": metrics.oscr_area(*sample),
        **{f"ccr_at_fpr_{q}": ccr for q, ccr in rates.items()},
        "auroc": metrics.auroc(known, unknown),
        "fpr95": metrics.fpr_at_tpr(known, unknown, tpr=0.95),
        "average_precision": metrics.average_precision(known, unknown),
        "aurc": pytest.approx(metrics.aurc(*detection), abs=1e-15),
        "e_aurc": pytest.approx(metrics.e_aurc(*detection), abs=1e-15),
    }


def test_rates_that_are_reached_where_a_piece_ends_are_those_of_the_metrics_by_name():
    place = np.arange(2.0 * STEP)[::-1]  # two pieces
    first = (place < 1_000) | (place >= 2 * STEP - 19_000)  # has 0.95 of the known
    both = (place >= 18_000) & (place < 2 * STEP - 2_000)  # 0.1 of the unknown before all known
    for is_known in (first, both):
        known, unknown = place[is_known], place[~is_known]
        correct = np.ones(len(known), bool)
        found = metrics.summary(known, correct, unknown)
        assert found["fpr95"] == metrics.fpr_at_tpr(known, unknown, tpr=0.95)
        assert found["ccr_at_fpr_0.1"] == metrics.ccr_at_fpr(known, correct, unknown, fpr=0.1)


def test_harmonic_numbers_match_their_sum():
    for n in (0, 1, 2, 100, 255, 256, 257, 1_000, 100_000):
        total = math.fsum(1 / i for i in range(1, n + 1))
        assert float(harmonic(np.array(float(n)))) == pytest.approx(total, abs=4e-15)


@many
@given(columns(), st.integers(1, 6))
def test_sums_over_pieces_do_not_depend_on_where_the_pieces_end(sample, step):
    parts, one = list(pieces(*sample, step=step)), whole(*sample)
    for share in (area, roc_area, precision, risks):
        assert sum(map(share, parts)) == pytest.approx(share(one), abs=1e-12)


@many
@given(columns())
def test_nothing_depends_on_the_order_of_the_rows(sample):
    known, correct, unknown = sample
    order = np.random.default_rng(0).permutation(len(known))
    moved = metrics.summary(known[order], correct[order], unknown[::-1])
    assert moved == metrics.summary(*sample)


@many
@given(columns())
def test_nothing_depends_on_more_than_the_order_of_the_scores(sample):
    known, correct, unknown = sample
    ranks = np.unique(np.r_[known, unknown], return_inverse=True)[1]
    moved = np.expm1(ranks * 0.5) - 3
    ours = metrics.summary(moved[: len(known)], correct, moved[len(known) :])
    assert ours == metrics.summary(*sample)


@pytest.mark.parametrize("digits", [0, 1, 9])
def test_both_sorts_give_the_same_numbers(digits):
    known, correct, unknown = drawn(40_000, 40_000, digits, kind=np.float32)
    wide = metrics.summary(known.astype(np.float64), correct, unknown.astype(np.float64))
    assert metrics.summary(known, correct, unknown) == wide


@many
@given(columns())
def test_oscr_area_is_auroc_if_every_prediction_is_right(sample):
    known, _, unknown = sample
    right = np.ones(len(known), bool)
    assert metrics.oscr_area(known, right, unknown) == metrics.auroc(known, unknown)


# Agreement with scikit-learn, and the numbers that others print.


def table(name):
    with (DATA / name).open(newline="") as file:
        return list(csv.DictReader(file))


def read_scores(name):
    """(known, target, correct, unknown) of one set of the vectors."""
    rows = [row for row in table("metric_vectors_scores.csv") if row["set"] == name]
    known = [row for row in rows if row["role"] == "known"]
    columns = [[float(row[key]) for row in known] for key in ("score", "target_score", "correct")]
    unknown = [float(row["score"]) for row in rows if row["role"] != "known"]
    return (*map(np.array, columns[:2]), np.array(columns[2]) == 1, np.array(unknown))


def nearest_point(target, correct, unknown, fpr):
    points = metrics.oscr(target, correct, unknown, convention="palechor")
    return min(zip(*(axis[::-1] for axis in points), strict=True), key=lambda p: abs(p[0] - fpr))


VECTORS = {
    "oscr_area exact": lambda k, t, c, u: metrics.oscr_area(k, c, u),
    "oscr_area arpl": lambda k, t, c, u: metrics.oscr_area(k, c, u, convention="arpl"),
    "oscr_area palechor (trapezoid of its points)": lambda k, t, c, u: metrics.oscr_area(
        t, c, u, convention="palechor"
    ),
    "oscr_area bisgin (trapezoid of its points)": lambda k, t, c, u: metrics.oscr_area(
        k, c, u, convention="bisgin"
    ),
    "ccr_at_fpr 0.1 exact": lambda k, t, c, u: metrics.ccr_at_fpr(k, c, u, fpr=0.1),
    "ccr_at_fpr 0.1 palechor (nearest FPR)": lambda k, t, c, u: nearest_point(t, c, u, 0.1)[1],
    "ccr_at_fpr 0.1 palechor, its FPR": lambda k, t, c, u: nearest_point(t, c, u, 0.1)[0],
    "ccr_at_fpr 0.1 bisgin": lambda k, t, c, u: metrics.ccr_at_fpr(
        k, c, u, fpr=0.1, convention="bisgin"
    ),
    "auroc exact": lambda k, t, c, u: metrics.auroc(k, u),
    "auroc kim": lambda k, t, c, u: metrics.auroc(k, u, convention="kim"),
    "fpr95 known positive, first >= .95": lambda k, t, c, u: metrics.fpr_at_tpr(k, u, tpr=0.95),
    "fpr95 unknown positive, first >= .95": lambda k, t, c, u: metrics.fpr_at_tpr(
        k, u, tpr=0.95, convention="openood"
    ),
    "average_precision unknown positive, step": lambda k, t, c, u: metrics.average_precision(k, u),
    "aurc known only exact": lambda k, t, c, u: metrics.aurc(k, c),
    "aurc pooled exact": lambda k, t, c, u: metrics.aurc(*pooled(k, c, u)),
    "accuracy": lambda k, t, c, u: metrics.accuracy(c),
    "e_aurc pooled kim": lambda k, t, c, u: metrics.e_aurc(*pooled(k, c, u)),
}


@pytest.mark.parametrize(
    "row", table("metric_vectors.csv"), ids=lambda r: f"{r['set']} {r['metric']}"
)
def test_reference_vector_is_reproduced(row):
    ours = VECTORS[row["metric"]](*read_scores(row["set"]))
    assert round(ours, 9) == float(row["value"])


def test_palechor_prints_a_dash_from_ten_percent_on():
    unknown, known = np.arange(16.0), np.array([20.0, 6.5])  # accepts 9 of 16
    sample = known, np.ones(2, bool), unknown
    assert np.isnan(metrics.ccr_at_fpr(*sample, fpr=0.625, convention="palechor"))
    assert metrics.ccr_at_fpr(*sample, fpr=0.62, convention="palechor") == 0.5


def test_palechor_takes_the_lowest_threshold_of_the_nearest_fpr():
    sample = np.array([5, 4, 3, 2, 1]), np.ones(5, bool), np.array([3.5, 0])
    assert metrics.ccr_at_fpr(*sample, fpr=0.5, convention="palechor") == 0.8  # > 1, not > 3


def test_kim_takes_the_larger_of_two_rates_that_are_as_near():
    known, unknown = np.array([1.0]), np.array([0.0])
    assert metrics.fpr_at_tpr(known, unknown, tpr=0.5, convention="kim") == 1
    assert metrics.fpr_at_tpr(known, unknown, tpr=0.4, convention="kim") == 0


@pytest.mark.parametrize(("flips", "value"), [("1010", 1 / 3), ("0101", 2 / 3)])
def test_aurc_of_kim_keeps_the_order_of_the_rows(flips, value):
    correct = np.array([flip == "1" for flip in flips])
    ours = metrics.aurc(np.full(4, 0.5), correct, convention="kim")
    assert ours == pytest.approx(value, abs=1e-15)
    assert metrics.aurc(np.full(4, 0.5), correct) == 0.5


def test_confidence_by_hand():
    ours = metrics.confidence(np.array([0.5, 1.0]), np.array([0.25, 0.75, 0.5]), offset=0.25)
    assert ours == {"gamma_plus": 0.75, "gamma_minus": 0.75, "gamma": 0.75}
    best = metrics.confidence(np.ones(2), np.full(3, 0.1), offset=0.1)
    assert best["gamma"] == pytest.approx(1)  # target at 1 and the others uniform over ten


def test_confidence_is_half_of_a_sum_and_at_most_1():
    rng = np.random.default_rng(0)
    for classes in (2, 5, 30):
        probabilities = rng.dirichlet(np.full(classes, 0.3), 40)
        known, others = probabilities[:25, 0], probabilities[25:].max(axis=1)
        ours = metrics.confidence(known, others, offset=1 / classes)
        slow = sum(known) / len(known) + sum(1 - s + 1 / classes for s in others) / len(others)
        assert ours["gamma"] == pytest.approx(slow / 2)
        assert 0 <= ours["gamma"] <= 1


# Degenerate input.


@pytest.mark.parametrize("value", [1.0, 0.0, -3.5, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("right", [0, 2, 4])
def test_one_score_for_all_is_chance(value, kind, right):
    correct = np.arange(4) < right
    ours = metrics.summary(np.full(4, value, kind), correct, np.full(5, value, kind))
    share = right / 4
    assert ours["auroc"] == 0.5
    assert ours["oscr_area"] == share / 2
    assert (ours["fpr95"], ours["ccr_at_fpr_0.1"], ours["ccr_at_fpr_1"]) == (1, 0, share)
    assert ours["average_precision"] == pytest.approx(5 / 9)
    assert ours["aurc"] == pytest.approx(1 - right / 9)


def test_zero_has_no_sign():
    for kind in (np.float32, np.float64):
        assert metrics.auroc(np.array([-0.0], kind), np.array([0.0], kind)) == 0.5
        assert metrics.auroc(np.array([0.0], kind), np.array([-0.0], kind)) == 0.5


ONES, RIGHT = np.ones(3), np.ones(3, bool)


@pytest.mark.parametrize(
    ("known", "correct", "unknown", "reason"),
    [
        (ONES, RIGHT, np.empty(0), "both kinds; got 3 known, 0 unknown"),
        (np.empty(0), RIGHT[:0], ONES, "both kinds; got 0 known, 3 unknown"),
        (ONES, RIGHT[:2], ONES, "need 3 booleans; got 2 of bool"),
        (ONES, np.array([0, 1, 1]), ONES, r"booleans; got \(3,\) of int64"),
        (np.array([1, np.nan, np.nan]), RIGHT, ONES, "known needs numbers; got 2 NaN"),
        (ONES, RIGHT, np.array([-np.nan], np.float32), "unknown needs numbers; got 1 NaN"),
        (ONES, RIGHT, np.ones((2, 2)), r"unknown needs .* got shape \(2, 2\) of float64"),
        (ONES, RIGHT, np.array(["a"]), "unknown needs .* of <U1"),
        (ONES, RIGHT, np.array([2**53 + 1]), "up to 2\\^53"),
    ],
)
@pytest.mark.parametrize("metric", [metrics.oscr, metrics.oscr_area, metrics.summary])
def test_bad_columns_are_refused_with_the_reason(metric, known, correct, unknown, reason):
    with pytest.raises(ValueError, match=reason):
        metric(known, correct, unknown)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: metrics.auroc(ONES, []), "3 known, 0 unknown"),
        (lambda: metrics.average_precision([], ONES), "0 known, 3 unknown"),
        (lambda: metrics.auroc(torch.zeros(0), torch.ones(3)), "0 known, 3 unknown"),
        (lambda: metrics.fpr_at_tpr(ONES, ONES, tpr=0), r"tpr needs a rate in \(0, 1\]; got 0"),
        (lambda: metrics.ccr_at_fpr(ONES, RIGHT, ONES, fpr=10), r"fpr needs .* got 10"),
        (lambda: metrics.oscr(ONES, RIGHT, ONES, convention="vaze"), "exact, palechor, bisgin"),
        (lambda: metrics.auroc(ONES, ONES, convention="arpl"), "one of exact, kim; got 'arpl'"),
        (lambda: metrics.aurc([], RIGHT[:0]), "at least one; got 0 scores, 0 booleans"),
        (lambda: metrics.aurc(ONES, RIGHT[:2]), "got 3 scores, 2 booleans"),
        (lambda: metrics.aurc([np.nan], RIGHT[:1]), "score needs numbers; got 1 NaN"),
        (lambda: metrics.accuracy(RIGHT[:0]), "at least one known sample; got 0"),
        (lambda: metrics.confidence(ONES, 2 * ONES, offset=0), "probabilities .* 2.0 to 2.0"),
        (lambda: metrics.openness(training=0, target=1, testing=1), "one class each; got 0, 1, 1"),
    ],
)
def test_bad_settings_are_refused_with_the_reason(call, reason):
    with pytest.raises(ValueError, match=reason):
        call()
