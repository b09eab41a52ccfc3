"""Calibration: does a probability mean what it says, of the known samples."""

import numpy as np

from osnb.metrics.counts import chosen, column, flags


def calibration_error(
    probability: np.ndarray, correct: np.ndarray, *, bins: int, binning: str = "width"
) -> float:
    """Expected calibration error, in Naeini et al. 2015 and Guo et al. 2017 (equation 3).

        ECE = sum_b (n_b / N) |share right in b - mean probability in b|

    - width: B bins of equal width, ((b - 1) / B, b / B], as in Guo et al.; 0 is in the first.
    - mass: B bins of equally many samples, by rank; a tie may be cut, in the order of the rows.

    Its value depends on both choices, and leans upwards where bins hold few samples.

    Args:
        probability: (N,) of the predicted class, in [0, 1].
        correct: (N,) bool, the prediction is right.
        bins: B, 15 in Guo et al.
        binning: width or mass.

    Returns:
        In [0, 1].

    Raises:
        ValueError: the columns do not fit, hold no probabilities, or there is no bin.
    """
    probability, correct = column(probability, "probability"), flags(correct)
    if not len(probability) or len(probability) != len(correct) or bins < 1:
        sizes = f"{len(probability)} probabilities, {len(correct)} booleans, {bins} bins"
        raise ValueError(f"need one boolean per probability, and at least one bin; got {sizes}")
    _inside(probability)
    if chosen(binning, "width", "mass") == "width":
        of = np.maximum(np.ceil(probability * bins).astype(int) - 1, 0)
    else:
        ranks = np.argsort(np.argsort(probability, kind="stable"), kind="stable")
        of = ranks * bins // len(ranks)
    gaps = np.bincount(of, correct - probability.astype(np.float64), minlength=bins)
    return float(np.abs(gaps).sum() / len(of))


def brier(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Brier score of several classes, in Brier 1950: mean of sum_c (p_c - [c = y])^2.

    Args:
        probabilities: (N, K) in [0, 1], of known samples.
        labels: (N,) integers, a class in [0, K).

    Returns:
        In [0, 2] if rows sum to 1; half of it is another convention of two classes.

    Raises:
        ValueError: the shapes do not fit, a label is no class, or these are no probabilities.
    """
    p, labels = np.asarray(probabilities, np.float64), np.asarray(labels)
    if p.ndim != 2 or not len(p) or labels.shape != p.shape[:1] or labels.dtype.kind not in "iu":
        raise ValueError(f"need (N, K) probabilities and N integers; got {p.shape}, {labels.shape}")
    _inside(p)
    if labels.min() < 0 or labels.max() >= p.shape[1]:
        raise ValueError(f"need labels in [0, {p.shape[1]}); got {labels.min()} to {labels.max()}")
    right = np.take_along_axis(p, labels[:, None], axis=1)[:, 0]
    return float(((p**2).sum(axis=1) + 1 - 2 * right).mean())


def _inside(p: np.ndarray) -> None:
    if not (p.min() >= 0 and p.max() <= 1):
        raise ValueError(f"need probabilities in [0, 1]; got {p.min()} to {p.max()}")
