"""Calibration beside torchmetrics, scikit-learn and the definitions read slowly."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import brier_score_loss

from osnb import metrics, scores
from osnb.base.labels import NEGATIVE
from osnb.base.outputs import Outputs
from osnb.datasets.vision import torchvision  # noqa: F401  # torchmetrics needs its guard


def drawn(size=400, heat=1.0):
    """(logits, labels), the labels drawn from the softmax of the logits over `heat`."""
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, (size, 4))
    gumbel = rng.gumbel(size=z.shape)
    return z, (z / heat + gumbel).argmax(axis=1)


def slow_error(probability, correct, bins, binning):
    rows = sorted(range(len(probability)), key=lambda i: probability[i])
    if binning == "mass":
        parts = [[i for r, i in enumerate(rows) if r * bins // len(rows) == b] for b in range(bins)]
    else:
        ends = [(b / bins, (b + 1) / bins) for b in range(bins)]
        parts = [
            [i for i in rows if a < probability[i] <= b or a == probability[i] == 0]
            for a, b in ends
        ]
    gaps = [abs(math.fsum(correct[i] - probability[i] for i in part)) for part in parts]
    return math.fsum(gaps) / len(rows)


@pytest.mark.parametrize("binning", ["width", "mass"])
@pytest.mark.parametrize("bins", [1, 7, 15])
def test_the_calibration_error_is_its_definition_read_slowly(bins, binning):
    z, labels = drawn()
    p = scores.softmax(Outputs(z), known=4)
    columns = p.max(axis=1), p.argmax(axis=1) == labels
    found = metrics.calibration_error(*columns, bins=bins, binning=binning)
    assert found == pytest.approx(slow_error(*columns, bins, binning), abs=1e-12)


@pytest.mark.parametrize("bins", [7, 15, 100])
def test_a_probability_at_the_edge_of_two_bins_is_in_the_lower_one(bins):
    p, rng = np.arange(2 * bins + 1) / (2 * bins), np.random.default_rng(0)  # edges and centres
    correct = rng.random(len(p)) < 0.5
    found = metrics.calibration_error(p, correct, bins=bins)
    assert found == pytest.approx(slow_error(p, correct, bins, "width"), abs=1e-12)


def test_bins_of_equal_width_are_those_of_torchmetrics():
    from torchmetrics.functional.classification import multiclass_calibration_error

    z, labels = drawn()
    p = scores.softmax(Outputs(z), known=4)
    theirs = multiclass_calibration_error(torch.tensor(p), torch.tensor(labels), 4, n_bins=15)
    found = metrics.calibration_error(p.max(axis=1), p.argmax(axis=1) == labels, bins=15)
    assert found == pytest.approx(float(theirs), abs=1e-6)


def test_the_ends_of_the_unit_interval_have_a_bin():
    found = metrics.calibration_error(np.array([0.0, 1.0]), np.array([True, False]), bins=10)
    assert found == 1.0


def test_the_brier_score_is_scikit_learns():
    z, labels = drawn()
    p = scores.softmax(Outputs(z), known=4)
    theirs = brier_score_loss(labels, p, scale_by_half=False, labels=[0, 1, 2, 3])
    assert metrics.brier(p, labels) == pytest.approx(theirs)


@pytest.mark.parametrize("heat", [0.5, 1.0, 3.0])
def test_the_temperature_is_found_again_and_is_the_likeliest(heat):
    z, labels = drawn(20_000, heat)
    more = np.vstack([np.column_stack([z, z[:, 0] + 9]), np.ones((5, 5))])  # a background column
    found = scores.temperature(Outputs(more), np.append(labels, [NEGATIVE] * 5), known=4)
    assert found == pytest.approx(heat, rel=0.05)

    def loss(t):
        return -np.log(scores.softmax(Outputs(z / t), known=4)[np.arange(len(z)), labels]).mean()

    assert loss(found) < min(loss(found * 1.001), loss(found / 1.001))
    p = scores.softmax(Outputs(z / found), known=4)
    assert metrics.calibration_error(p.max(axis=1), p.argmax(axis=1) == labels, bins=15) < 0.015


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: metrics.calibration_error(np.ones(2), np.ones(3, bool), bins=9), "got 2 prob"),
        (lambda: metrics.calibration_error(np.ones(2), np.ones(2, bool), bins=0), "one bin; got"),
        (lambda: metrics.calibration_error(np.full(2, 1.1), np.ones(2, bool), bins=9), "in .0, 1"),
        (
            lambda: metrics.calibration_error(np.ones(2), np.ones(2, bool), bins=9, binning="x"),
            "one of width, mass",
        ),
        (lambda: metrics.brier(np.ones((2, 3)), np.ones(3, int)), r"got \(2, 3\), \(3,\)"),
        (
            lambda: metrics.brier(np.ones((2, 3)), np.array([0, 3])),
            r"labels in \[0, 3\); got 0 to 3",
        ),
        (lambda: metrics.brier(np.full((2, 3), np.nan), np.array([0, 1])), "need probabilities"),
        (
            lambda: scores.temperature(Outputs(np.eye(3)), np.arange(3), known=3),
            "some, not all, are classified rightly",
        ),
    ],
)
def test_what_has_no_calibration_is_refused(call, reason):
    with pytest.raises(ValueError, match=reason):
        call()
