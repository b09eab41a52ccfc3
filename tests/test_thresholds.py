"""Thresholds with a promise: scipy's distributions, the definitions read slowly, and trials."""

import numpy as np
import pytest
from scipy import stats

from osnb import metrics
from tests.benchmarks import thresholds as simulated


def scores(size, digits=9, seed=0):
    return np.random.default_rng(seed).normal(size=size).round(digits)


# What they are


@pytest.mark.parametrize("tpr", [0.5, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("size", [59, 60, 100, 777])
def test_the_bound_is_the_highest_score_whose_tolerance_limit_holds(size, tpr):
    ranked = np.sort(scores(size))
    # accepted by the k-th lowest score: a beta variable, of parameters size - k + 1 and k
    holds = [stats.beta.sf(tpr, size - k + 1, k) >= 0.95 for k in range(1, size + 1)]
    assert metrics.tpr_threshold(ranked[::-1], tpr=tpr) == ranked[sum(holds) - 1]


@pytest.mark.parametrize(("size", "tpr", "place"), [(19, 0.95, 0), (9, 0.9, 0), (99, 0.9, 9)])
def test_the_conformal_quantile_leaves_out_its_share_of_one_more(size, tpr, place):
    found = metrics.tpr_threshold(scores(size), tpr=tpr, promise="conformal")
    assert found == np.sort(scores(size))[place]


@pytest.mark.parametrize("promise", ["bound", "conformal"])
def test_the_unknown_are_held_as_the_known_with_the_sign_turned(promise):
    unknown = scores(500)
    found = metrics.fpr_threshold(unknown, fpr=0.1, promise=promise)
    turned = metrics.tpr_threshold(-unknown, tpr=0.9, promise=promise)
    assert (found > -turned, np.float32(found)) == (True, np.float32(-turned))
    assert (unknown >= found).sum() == (-unknown < turned).sum()


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_of_tied_unknown_none_is_accepted_in_the_precision_of_the_scores(kind):
    unknown = np.repeat([0, 1], [900, 100]).astype(kind)
    found = metrics.fpr_threshold(unknown, fpr=0.05)
    assert (unknown >= found).sum() == 0
    assert 1 < found < 1.001


def test_no_threshold_is_above_an_infinite_score():
    unknown = np.r_[np.full(100, np.inf), scores(100)]
    assert np.isnan(metrics.fpr_threshold(unknown, fpr=0.1))


def slow_risk(score, correct, risk, seed):
    """The definition of `risk_threshold`, one threshold at a time."""

    def p(rows, t):
        accepted = [row for row in rows if score[row] >= t]
        wrong = sum(not correct[row] for row in accepted)
        return stats.binom.cdf(wrong, len(accepted), risk) if accepted else 1.0

    order = np.random.default_rng(seed).permutation(len(score))
    first, others = order[: len(score) // 5], order[len(score) // 5 :]
    start = min({*score[first]}, key=lambda t: (round(p(first, t), 12), t))
    threshold = np.nan
    for t in [start, *sorted({x for x in score[others] if x < start}, reverse=True)]:
        if p(others, t) > 0.05:
            break
        threshold = t
    # between two scores of the tested samples nothing changes: the lower end counts as the upper
    return threshold


@pytest.mark.parametrize("digits", [9, 1, 0])
@pytest.mark.parametrize("seed", range(4))
def test_the_risk_is_tested_from_the_start_downwards_until_a_test_fails(seed, digits):
    score, right, _ = simulated.drawn("normal", 300, np.random.default_rng(seed))
    score = score.round(digits)
    found = metrics.risk_threshold(score, right, risk=0.15, seed=seed)
    np.testing.assert_equal(found, slow_risk(score, right, 0.15, seed))


def test_where_the_first_test_alone_rejects_the_start_itself_is_the_threshold():
    rng = np.random.default_rng(6)
    score = rng.random(20).round(2)
    right = rng.random(20) < 0.5 + score / 2
    found = metrics.risk_threshold(score, right, risk=0.3, seed=6)
    np.testing.assert_equal(found, slow_risk(score, right, 0.3, 6))


def test_a_risk_that_cannot_be_shown_accepts_nothing():
    threshold = metrics.risk_threshold(scores(100), np.zeros(100, bool), risk=0.1, seed=0)
    assert not (scores(100) >= threshold).any()


@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
def test_a_mixture_has_the_share_and_no_sample_twice(share):
    drawn = [metrics.mixture(400, 150, share=share, seed=seed) for seed in range(300)]
    sizes = np.array([[len(part) for part in each] for each in drawn])
    assert len({*sizes.sum(axis=1)}) == 1
    assert abs(sizes[:, 1].sum() / sizes.sum() - share) < 4 * (share / sizes.sum()) ** 0.5
    expected = sizes.sum(axis=1)[0] * share * (1 - share)
    assert 0.7 < sizes[:, 1].var() / expected < 1.4  # binomial, not a fixed number
    for known, unknown in drawn[:5]:
        assert len({*known}) == len(known)
        assert {*unknown} <= {*range(150)}
        assert {*known} <= {*range(400)}


def test_a_mixture_is_as_large_as_one_draw_in_a_thousand_that_wants_more_lets_it_be():
    size = sum(map(len, metrics.mixture(100, 100, share=0.5, seed=0)))
    lost = [2 * stats.binom.sf(100, n, 0.5) for n in (size, size + 1)]  # of either side
    assert lost[0] <= 1e-3 < lost[1]


@pytest.mark.parametrize(("count", "of"), [(0, 10), (3, 20), (20, 20), (500, 1000)])
def test_the_interval_of_a_share_is_scipys(count, of):
    theirs = stats.binomtest(count, of).proportion_ci(0.95, "exact")
    assert metrics.exact_interval(count, of) == pytest.approx((theirs.low, theirs.high))


def test_of_no_sample_nothing_is_known():
    assert metrics.exact_interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize("count", [-1, 4])
def test_no_share_is_below_0_or_above_1(count):
    with pytest.raises(ValueError, match=f"count is from 0 to 3; got {count}"):
        metrics.exact_interval(count, 3)


@pytest.mark.parametrize("level", [0, 1, 95, np.nan])
def test_no_interval_is_of_a_level_outside_0_and_1(level):
    with pytest.raises(ValueError, match="level needs"):
        metrics.exact_interval(1, 3, level=level)


def test_a_promise_that_there_is_not_is_refused_by_its_name():
    with pytest.raises(ValueError, match="promise is one of bound, conformal; got 'always'"):
        metrics.tpr_threshold(np.arange(100.0), tpr=0.9, promise="always")


# What they promise


@pytest.mark.parametrize("shape", simulated.SHAPES)
@pytest.mark.parametrize("rate", simulated.RATES)
def test_the_bound_is_broken_by_at_most_one_set_in_twenty(shape, rate):
    found = simulated.trial(shape, 1000, rate, "bound", sets=400)
    assert found["broken"] <= stats.binom.ppf(0.99, 400, 0.05)  # 31
    # and is no empty promise: it comes near to what was asked for
    assert abs(found["mean rate"] - simulated.RATES[rate]) < 0.035


@pytest.mark.parametrize("shape", simulated.SHAPES)
@pytest.mark.parametrize("rate", ["tpr", "fpr"])
def test_the_conformal_quantile_holds_on_average_and_not_of_each_set(shape, rate):
    found = simulated.trial(shape, 200, rate, "conformal", sets=400)
    asked, sign = simulated.RATES[rate], 1 if rate == "tpr" else -1
    assert sign * (found["mean rate"] - asked) > -3 * (asked * (1 - asked) / 60 / 400) ** 0.5
    assert found["broken"] > 80


def test_errors_at_a_threshold_that_its_own_samples_choose_are_too_few():
    """What the split and the order are for: without them the same test promises too much."""
    rng, broken = np.random.default_rng(0), 0
    for _ in range(400):
        score, right = rng.random(200), rng.random(200) < 0.899  # each threshold's risk is .101
        wrong = np.cumsum(~right[np.argsort(-score)])
        broken += (stats.binom.cdf(wrong, np.arange(1, 201), 0.1) <= 0.05).any()
    assert broken > 50
    found = [
        metrics.risk_threshold(rng.random(200), rng.random(200) < 0.899, risk=0.1, seed=seed)
        for seed in range(400)
    ]
    assert np.isfinite(found).sum() <= 31


# Refusals


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: metrics.tpr_threshold(scores(58), tpr=0.95), "need 59 known samples or more"),
        (lambda: metrics.fpr_threshold(scores(298), fpr=0.01), "need 299 unknown samples or more"),
        (
            lambda: metrics.tpr_threshold(scores(18), tpr=0.95, promise="conformal"),
            r"need 19 known samples or more for 0.05 on the wrong side \(conformal\); got 18",
        ),
        (lambda: metrics.tpr_threshold(scores(99), tpr=1), r"rate needs a number in \(0, 1\)"),
        (lambda: metrics.tpr_threshold(scores(99), tpr=0.9, promise="x"), "one of bound, conform"),
        (lambda: metrics.tpr_threshold(np.full(99, np.nan), tpr=0.9), "99 NaN"),
        (lambda: metrics.mixture(9, 0, share=0.5, seed=0), "9 known, 0 unknown"),
        (lambda: metrics.mixture(9, 9, share=1, seed=0), r"share needs a number in \(0, 1\)"),
        (
            lambda: metrics.risk_threshold(scores(9), np.ones(9, bool), risk=0.1, seed=0),
            "need 10 scores or more; got 9",
        ),
    ],
)
def test_what_no_promise_can_be_made_of_is_refused(call, reason):
    with pytest.raises(ValueError, match=reason):
        call()


@pytest.mark.parametrize(
    ("kind", "tpr", "least"),
    [("bound", 0.95, 59), ("conformal", 0.95, 19), ("conformal", 0.9, 9)],
)
def test_as_many_as_the_refusal_asks_for_are_enough(kind, tpr, least):
    with pytest.raises(ValueError, match=f"need {least} known samples or more"):
        metrics.tpr_threshold(scores(least - 1), tpr=tpr, promise=kind)
    assert metrics.tpr_threshold(scores(least), tpr=tpr, promise=kind) == scores(least).min()
