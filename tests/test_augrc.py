"""AUGRC, what each kind adds to AURC, the coverage at a risk: slow formulas and laws."""

from itertools import groupby, pairwise, permutations, product

import numpy as np
import pytest

from osnb import metrics


@pytest.fixture(params=range(12))
def sample(request):
    """(score, correct) of 2 to 8 samples; every second one has scores that tie."""
    rng = np.random.default_rng(request.param)
    n = rng.integers(2, 9)
    return rng.normal(0, 1, n).round(request.param % 2 * 3), rng.random(n) < 0.6


@pytest.fixture(params=[0, 3])
def large(request):
    """(score, kind) of 500 samples."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["", "", "near", "far", "wrong"], 500)
    return rng.normal(kind == "", 1).round(request.param), kind


def slow_augrc(score, correct):
    """The mean over all orders within the ties of the area of trapezoids."""
    rows = sorted(zip(score, correct, strict=True), key=lambda row: -row[0])
    ties = [[not right for _, right in tie] for _, tie in groupby(rows, key=lambda row: row[0])]
    areas, n = [], len(rows)
    for order in product(*(permutations(tie) for tie in ties)):
        errors = [0, *np.cumsum([wrong for tie in order for wrong in tie])]
        areas.append(sum(a + b for a, b in pairwise(errors)) / 2 / n / n)
    return np.mean(areas)


def test_augrc_is_the_mean_over_the_orders_within_a_tie(sample):
    assert metrics.augrc(*sample) == pytest.approx(slow_augrc(*sample), abs=1e-12)


def test_augrc_is_what_traub_writes_with_auroc(large):
    score, kind = large
    right = kind == ""
    a, auroc = right.mean(), metrics.auroc(score[right], score[~right])
    wanted = (1 - auroc) * a * (1 - a) + (1 - a) ** 2 / 2
    assert metrics.augrc(score, right) == pytest.approx(wanted, abs=1e-12)


def test_augrc_lies_between_its_ends_and_follows_the_order_alone(sample):
    score, correct = sample
    found = metrics.augrc(score, correct)
    assert 0 <= found <= 0.5
    order = np.random.default_rng(1).permutation(len(score))
    assert metrics.augrc(np.exp(score[order]), correct[order]) == pytest.approx(found)
    assert metrics.augrc(score, np.ones(len(score), bool)) == 0
    assert metrics.augrc(score, np.zeros(len(score), bool)) == pytest.approx(0.5)
    with_error = correct.copy()
    with_error[0] = False
    assert metrics.augrc(score, with_error) >= found


def test_parts_sum_to_the_aurc_and_each_is_its_slow_formula(large):
    score, kind = large
    parts = metrics.aurc_parts(score, kind)
    assert list(parts) == ["far", "near", "wrong"]
    assert sum(parts.values()) == pytest.approx(metrics.aurc(score, kind == ""), abs=1e-12)
    rng = np.random.default_rng(2)
    for name, part in parts.items():
        slow = []
        for _ in range(200):  # random orders within the ties
            order = np.lexsort([rng.random(500), -score])
            slow.append((np.cumsum(kind[order] == name) / np.arange(1, 501)).mean())
        assert part == pytest.approx(np.mean(slow), abs=0.01)


@pytest.mark.parametrize("risk", [0.0, 0.05, 0.29, 0.5, 1.0])
def test_the_coverage_at_a_risk_is_the_largest_of_all_thresholds(large, sample, risk):
    for score, correct in (sample, (large[0], large[1] == "")):
        threshold, coverage = metrics.coverage_at_risk(score, correct, risk=risk)
        fits = [t for t in score if np.mean(~correct[score >= t]) <= risk + 1e-12]
        assert threshold == min(fits, default=np.inf)
        assert coverage == np.mean(score >= threshold)


def test_errors_that_are_exactly_the_risk_are_within_it():
    score, correct = np.arange(100.0), np.arange(100) >= 29  # in floats 0.29 * 100 is below 29
    assert metrics.coverage_at_risk(score, correct, risk=0.29) == (0.0, 1.0)


BAD = [
    (np.empty(0), np.empty(0, bool), "at least one; got 0 scores"),
    (np.ones(2), np.ones(3, bool), "got 2 scores, 3 booleans"),
    (np.array([np.nan]), np.ones(1, bool), "NaN"),
    (np.ones(2), np.ones(2), "booleans; got .* float64"),
]


@pytest.mark.parametrize(("score", "correct", "reason"), BAD)
def test_bad_columns_are_refused_with_the_reason(score, correct, reason):
    with pytest.raises(ValueError, match=reason):
        metrics.augrc(score, correct)
    with pytest.raises(ValueError, match=reason):
        metrics.coverage_at_risk(score, correct, risk=0.1)


@pytest.mark.parametrize("risk", [-0.1, 1.5, np.nan])
def test_a_risk_that_is_no_rate_is_refused(risk):
    with pytest.raises(ValueError, match="rate in"):
        metrics.coverage_at_risk(np.ones(1), np.ones(1, bool), risk=risk)


@pytest.mark.parametrize("kind", [np.ones(2), np.array([["a"]]), np.array(["a", np.nan], object)])
def test_kinds_that_are_no_text_are_refused(kind):
    with pytest.raises(ValueError, match=r"kind needs \(N,\) text"):
        metrics.aurc_parts(np.ones(2), kind)
