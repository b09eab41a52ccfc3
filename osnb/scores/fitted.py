"""Rules that are fitted on the outputs of training samples: ``fit(train, labels, ...) -> rule``."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from osnb.base.catalogue import Catalogue
from osnb.base.labels import NEGATIVE
from osnb.base.outputs import Outputs
from osnb.scores.rules import _features, _logits, max_softmax

Rule = Callable[..., np.ndarray]
SHIFT = 10_000.0  # libMR fits distances that are moved so that the smallest of the tail is here


def openmax(
    train: Outputs,
    labels: np.ndarray,
    *,
    known: int,
    tail: int,
    alpha: int,
    distance: str,
    weights: str,
    score: str,
) -> Rule:
    """OpenMax, in Bendale & Boult 2016, with the settings of Kim et al. 2021.

    Of each class c, mu_c is the mean of the logits z of the training samples that are classified
    rightly, and W_c a Weibull distribution of the `tail` largest of their distances to mu_c. A
    sample's `alpha` largest logits then hand over what their distance speaks against, w_i being
    the weight of rank i:

        z'_c = z_c (1 - w_i W_c(d(z, mu_c)))        z_unknown = sum_c (z_c - z'_c)

    and P is the softmax over z' and z_unknown. Among equal logits the first ranks first.

    With one column more than known classes this is G-OpenMax (Ge et al. 2017): column K has
    learnt generated images, whose label here is NEGATIVE. It is calibrated as a class like any
    other, and P(unknown) is then its P and that of z_unknown together.

    Args:
        train: logits (N, C) of training samples, C = K or K + 1, network in evaluation mode.
        labels: (N,) integers, a class in [0, K) or NEGATIVE, which without a column is left out.
        known: K, the first columns that are known classes.
        tail: distances per class to fit, >= 2; each class needs as many right samples.
        alpha: how many logits are recalibrated, in [1, C].
        distance: one of `DISTANCES`; Kim et al. take "both".
        weights: one of `WEIGHTS`; the original's are "ranked", Kim et al. use "half" for CIFAR.
        score: one of `READ`: "probability", 1 - P(unknown); "log_odds" of it, which orders the
            samples in the same way and never ties at 1; or "max_softmax", max_{c < K} P(c).

    Returns:
        A rule that takes outputs of C columns and the same `known`.

    Raises:
        ValueError: as `softmax`; a label or setting is out of range, a class has fewer than
            `tail` right samples, or all distances in its tail are equal.
    """
    logits, measure, read = _logits(train, known), DISTANCES[distance], READ[score]
    size = (known, logits.shape[1])
    if size[1] > known + 1 or not 1 <= alpha <= size[1] or tail < 2:
        raise ValueError(
            f"need up to {known + 1} columns, alpha from 1 to their number, tail >= 2; "
            f"got {size[1]}, {alpha}, {tail}"
        )
    share, column = WEIGHTS[weights](alpha), _columns(labels, len(logits), known)
    right = logits.argmax(axis=1) == column
    parts = [logits[right & (column == c)] for c in range(size[1])]
    fits = [_fit_tail(part, c, tail, measure) for c, part in enumerate(parts)]
    tails = _Tails(*(np.stack(values) for values in zip(*fits, strict=True)))

    def rule(out: Outputs, *, known: int) -> np.ndarray:
        logits = _logits(out, known)
        _same(size, (known, logits.shape[1]))
        return read(Outputs(_recalibrated(logits, share, tails, measure), ()), known=known)

    return rule


def mahalanobis(train: Outputs, labels: np.ndarray, *, known: int) -> Rule:
    """Minus the squared Mahalanobis distance to the nearest class, in Lee et al. 2018.

        max_{c < K} -(f - mu_c)' S^-1 (f - mu_c)

    mu_c is the mean of the features of class c, S the covariance about these means that all
    classes share, divided by the number of samples. Where S is singular its pseudo-inverse is
    taken: directions in which no training sample leaves its mean count for nothing.

    Args:
        train: features (N, D) of training samples, network in evaluation mode; rightly classified
            or not.
        labels: (N,) integers, a class in [0, K) or NEGATIVE, which is left out.
        known: K, the first columns that are known classes.

    Returns:
        A rule that takes outputs of D features and the same `known`. Its last digits may depend
        on how many rows are scored together: they pass through one matrix product.

    Raises:
        ValueError: as `feature_norm`; a label is out of range, a class has no sample, or there
            are fewer than K + D samples.
    """
    features = _features(train, known)
    column, size = _columns(labels, len(features), known), (known, features.shape[1])
    features, column = features[column < known], column[column < known]
    count = np.bincount(column, minlength=known)
    if count.min() < 1 or count.sum() < sum(size):
        raise ValueError(
            f"need a sample of each class and {sum(size)} in all for {size[0]} means and "
            f"{size[1]} features; got {count.min()} of class {count.argmin()}, {count.sum()} in all"
        )
    mean = np.stack([features[column == c].mean(axis=0) for c in range(known)])
    whiten = _whitening(features - mean[column])
    places = (mean - mean[0]) @ whiten

    def rule(out: Outputs, *, known: int) -> np.ndarray:
        features = _features(out, known)
        _same(size, (known, features.shape[1]))
        moved = (features - mean[0]) @ whiten
        return -np.min([((moved - place) ** 2).sum(axis=1) for place in places], axis=0)

    return rule


class _Tails(NamedTuple):
    """What `openmax` knows of C classes: mean logits (C, C), the rest (C,)."""

    mean: np.ndarray
    lowest: np.ndarray
    shape: np.ndarray
    scale: np.ndarray


def _fit_tail(logits: np.ndarray, c: int, tail: int, measure: Callable) -> tuple:
    """`_Tails` of one class: the likeliest Weibull distribution of its largest distances.

    The derivative of the likelihood has one root in the shape, which is searched for. Nelder and
    Mead's method, as in scipy.stats.weibull_min.fit, stops short of it for distances below 0.1.
    """
    from scipy.optimize import brentq

    if len(logits) < tail:
        raise ValueError(
            f"need {tail} rightly classified training samples of each class; "
            f"class {c} has {len(logits)}: train longer, fit a shorter tail, or leave OpenMax out"
        )
    mean = logits.mean(axis=0)
    far = np.sort(measure(logits, mean))[-tail:]
    largest = far[-1] - far[0] + SHIFT
    log = np.log1p((far - far[-1]) / largest)  # of each over the largest
    if not log.mean() < 0:
        raise ValueError(f"need distances that differ; the {tail} of class {c} are all {far[0]}")

    def slope(shape: float) -> float:
        power = np.exp(shape * log)
        return (power * log).sum() / power.sum() - 1 / shape - log.mean()

    low = high = -1 / log.mean()  # below the root, since slope <= -1 / shape - mean log = 0
    while slope(high) <= 0:
        high *= 2
    shape = brentq(slope, low, high)
    return mean, far[0], shape, largest * np.mean(np.exp(shape * log)) ** (1 / shape)


def _recalibrated(
    logits: np.ndarray, share: np.ndarray, tails: _Tails, measure: Callable
) -> np.ndarray:
    """(N, C + 1) logits z' and, last, that of the unknown."""
    ranked = np.argsort(-logits, axis=1, kind="stable")[:, : len(share)]
    revised = np.column_stack([logits, np.zeros(len(logits))])
    rows = np.arange(len(logits))
    for weight, c in zip(share, ranked.T, strict=True):
        moved = measure(logits, tails.mean[c]) - tails.lowest[c] + SHIFT
        power = tails.shape[c] * np.log(np.maximum(moved, 1e-300) / tails.scale[c])
        taken = weight * logits[rows, c] * -np.expm1(-np.exp(np.minimum(power, 700)))
        revised[rows, c] -= taken
        revised[:, -1] += taken
    return revised


def _euclidean(logits: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return np.sqrt(((logits - mean) ** 2).sum(axis=1))


def _cosine(logits: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """1 - cosine; of a vector without length, 1."""
    length = np.sqrt((logits**2).sum(axis=1) * (mean**2).sum(axis=-1))
    return 1 - (logits * mean).sum(axis=1) / np.maximum(length, 1e-300)


def _both(logits: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return 0.005 * _euclidean(logits, mean) + _cosine(logits, mean)


def _log_odds_known(out: Outputs, *, known: int) -> np.ndarray:
    """Log-odds of the first K columns together against the others."""
    sides = out.logits[:, :known], out.logits[:, known:]
    return np.subtract(*(np.logaddexp.reduce(side, axis=1) for side in sides))


def _probability_known(out: Outputs, *, known: int) -> np.ndarray:
    odds = _log_odds_known(out, known=known)
    return np.exp(-np.logaddexp(0, -odds))


def _whitening(centred: np.ndarray) -> np.ndarray:
    """(D, R) matrix W with W W' the pseudo-inverse of the covariance, of rank R."""
    values, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    kept = values > values[-1] * len(values) * np.finfo(np.float64).eps
    return vectors[:, kept] / np.sqrt(values[kept])


def _columns(labels: np.ndarray, count: int, known: int) -> np.ndarray:
    """(N,) the column that each sample was trained towards; K for a negative one."""
    labels = np.asarray(labels)
    if labels.shape != (count,) or labels.dtype.kind not in "iu":
        raise ValueError(f"need {(count,)} integers; got {labels.shape} of {labels.dtype}")
    wrong = labels[(labels < NEGATIVE) | (labels >= known)]
    if len(wrong):
        raise ValueError(f"need labels of training, from {NEGATIVE} to {known - 1}; got {wrong[0]}")
    return np.where(labels == NEGATIVE, known, labels)


def _same(fitted: tuple[int, int], given: tuple[int, int]) -> None:
    """Hold (known, columns) against those that a rule was fitted for."""
    if fitted != given:
        raise ValueError(f"fitted for (known, columns) {fitted}; got {given}")


DISTANCES = Catalogue(euclidean=_euclidean, cosine=_cosine, both=_both)
WEIGHTS = Catalogue(  # of the ranks 1 to alpha
    ranked=lambda alpha: np.arange(alpha, 0, -1) / alpha,
    half=lambda alpha: np.full(alpha, 0.5),
)
READ = Catalogue(probability=_probability_known, log_odds=_log_odds_known, max_softmax=max_softmax)
FITTED = Catalogue(openmax=openmax, mahalanobis=mahalanobis)
