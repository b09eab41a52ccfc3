"""Bootstrap: every resample beside the metric of the samples it repeats, and DeLong's variance."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from test_metrics import drawn

from osnb import metrics
from osnb.metrics import bootstrap

RATES = np.array([0.0, 0.001, 0.05, 0.1, 0.3, 0.5, 0.75, 1.0])
CASES = {
    "distinct": (60, 40, 9),
    "tied": (60, 40, 0),
    "few unknown": (50, 2, 1),
    "few known": (3, 50, 1),
    "one of each": (1, 1, 9),
}


def weights_of(known, unknown, resamples=20, units=None):
    units = units or (np.arange(len(known)), np.arange(len(unknown)))
    return tuple(
        metrics.bootstrap_weights(ids, seed=seed, resamples=resamples)
        for seed, ids in enumerate(units)
    )


def repeated(sample, weights, row):
    """(known, correct, unknown) with every sample written as often as the row says."""
    known, correct, unknown = sample
    return (
        np.repeat(known, weights[0][row]),
        np.repeat(correct, weights[0][row]),
        np.repeat(unknown, weights[1][row]),
    )


@pytest.fixture(params=CASES)
def sample(request):
    return drawn(*CASES[request.param])


def test_each_set_is_drawn_by_itself_and_those_that_share_a_unit_as_one():
    units, sets = np.arange(60) // 3, np.repeat(["a", "b", "c"], 20)  # b holds units of a and of c
    draw = partial(metrics.bootstrap_weights, seed=1, resamples=50)
    assert np.array_equal(draw(units, sets=sets), draw(units))
    nested = np.repeat(["a", "b", "c"], [15, 15, 30])
    copies = draw(units, sets=nested)
    for name in "abc":
        assert (copies[:, nested == name].sum(axis=1) == (nested == name).sum()).all()
    assert (copies.reshape(51, 20, 3) == copies[:, ::3, None]).all()
    assert np.array_equal(draw(units, sets=units), draw(units))  # of one unit each: all are one
    for one, other in ((0, 15), (0, 30), (15, 30)):
        assert not np.array_equal(copies[:, one : one + 15], copies[:, other : other + 15])


# Each row is the metric of the samples that it repeats.


@settings(max_examples=60, derandomize=True, database=None, deadline=None)
@given(
    known=st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=8),
    unknown=st.lists(st.integers(0, 5), min_size=1, max_size=8),
    seed=st.integers(0, 9),
)
def test_rows_agree_on_any_small_sample(known, unknown, seed):
    scores, correct = (np.array(part) for part in zip(*known, strict=True))
    sample = scores, correct, np.array(unknown)
    weights = tuple(
        metrics.bootstrap_weights(np.arange(len(part)), seed=[seed, i], resamples=4)
        for i, part in enumerate((scores, unknown))
    )
    found = metrics.bootstrap_summary(*sample, weights=weights)
    curve = metrics.bootstrap_oscr(*sample, fpr=RATES, weights=weights)
    for row in range(5):
        slow = repeated(sample, weights, row)
        assert {name: v[row] for name, v in found.items()} == pytest.approx(
            metrics.summary(*slow), abs=1e-12
        )
        fpr, ccr = metrics.oscr(*slow)
        assert list(curve[row]) == [ccr[fpr <= q].max() for q in RATES]


COLUMNS = {  # (known, unknown) of kinds that have ties of their own
    "tied infinities": ([np.inf, np.inf, 1.0, -np.inf], [np.inf, -np.inf, -np.inf, 0.0, 1.0]),
    "zeros of both signs": ([0.0, -0.0, 1.0, -1.0], [-0.0, 0.0, -1.0]),
    "float32": (np.float32([0.1, 0.2, 0.2, 7]), np.float32([0.1, 0.2, -3])),
    "float32 beside float64": (np.float32([0.1, 0.2, 0.3, 7]), np.array([0.1, 0.2, 0.3])),
    "neighbours up to 2^53": (2**53 - np.arange(4), 2**53 - np.array([0, 1, 1, 5])),
    "bytes": (np.uint8([0, 255, 3, 3]), np.int8([-128, 3, 127])),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_the_sample_itself_has_its_plain_measures_whatever_its_ties(kind):
    known, unknown = map(np.asarray, COLUMNS[kind])
    sample, weights = (known, np.arange(4) % 3 > 0, unknown), weights_of(known, unknown)
    for row in range(21):
        slow = metrics.summary(*repeated(sample, weights, row))
        found = metrics.bootstrap_summary(*sample, weights=weights)
        assert {name: v[row] for name, v in found.items()} == pytest.approx(slow, abs=1e-12)


def test_each_row_of_many_samples_has_the_measures_of_the_samples_it_repeats():
    sample = drawn(200, 150, digits=1)  # enough that a rate of 0.95 is not that of 0.9 or of 1
    weights = weights_of(sample[0], sample[2], resamples=5)
    found = metrics.bootstrap_summary(*sample, weights=weights)
    for row in range(6):
        slow = metrics.summary(*repeated(sample, weights, row))
        assert {name: v[row] for name, v in found.items()} == pytest.approx(slow, abs=1e-12)


@pytest.mark.parametrize("kind", COLUMNS)
def test_pairs_of_units_give_what_the_sort_gives_to_the_bit(kind):
    known, unknown = (np.repeat(values, 40) for values in map(np.asarray, COLUMNS[kind]))
    rng, sample = np.random.default_rng(0), (known, known > 0, unknown)
    ids = [np.sort(rng.integers(6, size=len(side))) for side in (known, unknown)]
    rows = metrics.role_weights(*ids, seed=1, resamples=100)  # a unit's samples are neighbours
    apart = [rng.permutation(len(side)) for side in (known, unknown)]  # no longer: then by a sort
    mixed = tuple(w[:, order] for w, order in zip(rows, apart, strict=True))
    assert bootstrap._paired(*sample, rows)
    sorted_way = known[apart[0]], (known > 0)[apart[0]], unknown[apart[1]]
    assert not bootstrap._paired(*sorted_way, mixed)
    found = metrics.bootstrap_summary(*sample, weights=rows)
    for name, values in metrics.bootstrap_summary(*sorted_way, weights=mixed).items():
        np.testing.assert_array_equal(found[name], values)
    slow = metrics.summary(*repeated(sample, rows, 7))
    assert {name: v[7] for name, v in found.items()} == pytest.approx(slow, abs=1e-12)


@pytest.mark.parametrize("names", [[name] for name in metrics.MEASURES] + [["aurc", "auroc"]])
def test_measures_asked_for_apart_are_those_of_all_together(sample, names):
    weights = weights_of(sample[0], sample[2])
    together = metrics.bootstrap_summary(*sample, weights=weights)
    apart = metrics.bootstrap_summary(*sample, weights=weights, names=names)
    assert sorted(apart) == sorted(names)
    for name in names:
        np.testing.assert_array_equal(apart[name], together[name])


def test_aurc_of_each_row_is_that_of_the_repeated_samples(sample):
    known, correct, _ = sample
    weights = weights_of(known, known)[0]
    found = metrics.bootstrap_aurc(known, correct, weights=weights)
    for row in range(21):
        score, right = np.repeat(known, weights[row]), np.repeat(correct, weights[row])
        slow = {
            "accuracy": right.mean(),
            "aurc": metrics.aurc(score, right),
            "e_aurc": metrics.e_aurc(score, right),
        }
        assert {name: v[row] for name, v in found.items()} == pytest.approx(slow, abs=1e-12)


def test_augrc_of_each_row_is_that_of_the_repeated_samples(sample):
    known, correct, unknown = sample
    weights = weights_of(known, unknown)
    pooled = metrics.bootstrap_augrc(*sample, weights=weights)
    alone = metrics.bootstrap_augrc(
        known, correct, unknown[:0], weights=(weights[0], weights[1][:, :0])
    )
    for row in range(21):
        k, right, u = repeated(sample, weights, row)
        slow = metrics.augrc(np.r_[k, u], np.r_[right, np.zeros(len(u), bool)])
        assert pooled[row] == pytest.approx(slow, abs=1e-12)
        assert alone[row] == pytest.approx(metrics.augrc(k, right), abs=1e-12)


def test_confidence_of_each_row_is_that_of_the_repeated_samples():
    target, largest = np.random.default_rng(0).random(7), np.random.default_rng(1).random(5)
    weights = weights_of(target, largest)
    found = metrics.bootstrap_confidence(target, largest, offset=0.2, weights=weights)
    for row in range(21):
        parts = (np.repeat(x, w[row]) for x, w in zip((target, largest), weights, strict=True))
        slow = metrics.confidence(*parts, offset=0.2)
        assert {name: v[row] for name, v in found.items()} == pytest.approx(slow, abs=1e-12)


# What is drawn.


@pytest.mark.parametrize("units", [np.arange(60), np.arange(60) % 2])
def test_roles_that_were_drawn_alike_are_refused(units):
    known, correct, unknown = drawn(60, 60)
    weights = (metrics.bootstrap_weights(units, seed=0, resamples=20),) * 2
    for call in (
        lambda: metrics.bootstrap_summary(known, correct, unknown, weights=weights),
        lambda: metrics.bootstrap_augrc(known, correct, unknown, weights=weights),
        lambda: metrics.bootstrap_oscr(known, correct, unknown, fpr=RATES, weights=weights),
        lambda: metrics.bootstrap_confidence(correct * 1.0, unknown, offset=0, weights=weights),
    ):
        with pytest.raises(ValueError, match="draws of each role's own"):
            call()
    metrics.bootstrap_summary(
        known, correct, unknown, weights=metrics.role_weights(units, units, seed=0, resamples=20)
    )


# A second voice for the spread: DeLong, DeLong & Clarke-Pearson 1988, in the slow form.


def placements(known, unknown):
    """(K,) and (U,) shares of the other side that each sample is ranked right against."""
    wins = (known[:, None] > unknown) + (known[:, None] == unknown) / 2
    return wins.mean(axis=1), wins.mean(axis=0)


def delong_covariance(first, second):
    """Covariance of two AUROCs on the same samples, each (known, unknown)."""
    (v, w), (x, y) = placements(*first), placements(*second)
    return np.cov(v, x)[0, 1] / len(v) + np.cov(w, y)[0, 1] / len(w)


@pytest.mark.parametrize("digits", [9, 0])
def test_the_spread_of_auroc_is_delongs(digits):
    known, correct, unknown = drawn(300, 200, digits)
    weights = weights_of(known, unknown, 4000)
    auroc = metrics.bootstrap_summary(known, correct, unknown, weights=weights)["auroc"]
    deviation = delong_covariance((known, unknown), (known, unknown)) ** 0.5
    assert auroc[1:].std() == pytest.approx(deviation, rel=0.05)
    value, low, high = metrics.interval(auroc, level=0.9)
    width = norm.ppf(0.95) * deviation
    assert value == metrics.auroc(known, unknown)
    assert (low, high) == pytest.approx((value - width, value + width), abs=width / 8)


def test_intervals_hold_the_truth_as_often_as_they_say():
    truth, rng, hits = norm.cdf(1 / 2**0.5), np.random.default_rng(0), 0
    for trial in range(300):
        known, unknown = rng.normal(1, 1, 80), rng.normal(0, 1, 80)
        weights = tuple(
            metrics.bootstrap_weights(np.arange(80), seed=[trial, role], resamples=200)
            for role in (0, 1)
        )
        found = metrics.bootstrap_summary(known, np.ones(80, bool), unknown, weights=weights)
        _, low, high = metrics.interval(found["auroc"], level=0.9)
        hits += low <= truth <= high
    assert hits / 300 == pytest.approx(0.9, abs=0.05)  # three standard errors


# Intervals and p-values.


def test_an_interval_leaves_equal_tails_outside():
    values = np.r_[0.3, np.arange(1001) / 1000]
    assert metrics.interval(values, level=0.9) == pytest.approx((0.3, 0.05, 0.95))
    assert metrics.interval(np.r_[2.0, np.full(9, 2.0)]) == (2, 2, 2)


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([1.0] * 99, 2 / 100),
        ([-1.0] * 99, 2 / 100),
        ([0.0] * 99, 1.0),
        ([1.0] * 89 + [-1.0] * 10, 2 * 11 / 100),
        ([1.0] * 89 + [0.0] * 10, 2 * 11 / 100),
        ([1.0, -1.0] * 49 + [1.0], 1.0),
    ],
)
def test_a_p_value_is_twice_the_smaller_tail(differences, p):
    assert metrics.p_value(np.r_[0.5, differences]) == pytest.approx(p)


@pytest.mark.parametrize("differences", [np.full(9, np.nan), [0.1, np.nan, 0.2], np.ones((9, 2))])
def test_no_p_value_counts_what_is_no_number(differences):
    with pytest.raises(ValueError, match="values needs"):
        metrics.p_value(differences)


def test_inputs_are_left_as_they_were(sample):
    weights = weights_of(sample[0], sample[2])
    arrays = [*sample, *weights]
    before = [values.copy() for values in arrays]
    for values in arrays:
        values.setflags(write=False)
    metrics.bootstrap_summary(*sample, weights=weights)
    for values, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(values, copy)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda k, c, u, w: metrics.bootstrap_weights(k[:0], seed=0), "need samples"),
        (lambda k, c, u, w: metrics.bootstrap_weights(k, seed=0, resamples=0), "got 3 and 0"),
        (lambda k, c, u, w: metrics.bootstrap_summary(k[:0], c, u, weights=w), "0 known"),
        (lambda k, c, u, w: metrics.bootstrap_summary(k, c, u, weights=w[::-1]), "need weights"),
        (
            lambda k, c, u, w: metrics.bootstrap_summary(k, c, u, weights=(w[0], w[1][1:])),
            "need weights",
        ),
        (lambda k, c, u, w: metrics.bootstrap_summary(k, c[1:], u, weights=w), "3 booleans"),
        (lambda k, c, u, w: metrics.bootstrap_summary(k * np.nan, c, u, weights=w), "NaN"),
        (
            lambda k, c, u, w: metrics.bootstrap_summary(k, c, u, weights=w, names=["au_roc"]),
            "auroc, fpr95.* got au_roc",
        ),
        (lambda k, c, u, w: metrics.bootstrap_augrc(k[:0], c[:0], u, weights=w), "a known sample"),
        (lambda k, c, u, w: metrics.role_weights(k, u[:0], seed=0), "need samples"),
        (lambda k, c, u, w: metrics.bootstrap_aurc(k[:0], c[:0], weights=w[0]), "got 0"),
        (lambda k, c, u, w: metrics.bootstrap_aurc(torch.ones(0), c[:0], weights=w[0]), "got 0"),
        (
            lambda k, c, u, w: metrics.bootstrap_augrc(torch.ones(0), c[:0], u, weights=w),
            "a known sample",
        ),
        (lambda k, c, u, w: metrics.bootstrap_aurc(k, c, weights=w[1]), "need weights"),
        (lambda k, c, u, w: metrics.bootstrap_confidence(k, u, offset=0, weights=w[:1]), "shapes"),
    ],
)
def test_bad_input_is_refused_with_the_reason(call, reason):
    known, correct, unknown = drawn(3, 2)
    with pytest.raises(ValueError, match=reason):
        call(known, correct, unknown, weights_of(known, unknown, 3))


@pytest.mark.parametrize("fpr", [-0.1, 10, np.nan])
def test_a_rate_outside_0_and_1_is_refused(fpr):
    known, correct, unknown = drawn(3, 2)
    weights = weights_of(known, unknown, 3)
    with pytest.raises(ValueError, match="need rates"):
        metrics.bootstrap_oscr(known, correct, unknown, fpr=[0.5, fpr], weights=weights)


@pytest.mark.parametrize("pair", [(1.5, 0.5), (0.5, -0.5)])
def test_logits_have_no_confidence(pair):
    sides = [np.full(3, x) for x in pair]
    with pytest.raises(ValueError, match="probabilities"):
        metrics.bootstrap_confidence(*sides, offset=0, weights=weights_of(*sides, 3))


@pytest.mark.parametrize("side", [0, 1])
def test_a_share_of_a_sample_is_no_copy(side):
    known, correct, unknown = drawn(3, 2)
    weights = list(weights_of(known, unknown, 3))
    weights[side] = weights[side] / 2
    with pytest.raises(ValueError, match=r"integers.* got float64"):
        metrics.bootstrap_summary(known, correct, unknown, weights=weights)
