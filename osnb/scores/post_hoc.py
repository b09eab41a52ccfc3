"""Rules that a trained network needs nothing more for, and the mean of several networks."""

from collections.abc import Sequence

import numpy as np

from osnb.catalogue import Catalogue
from osnb.outputs import Outputs
from osnb.scores.rules import _logits


def energy(out: Outputs, *, known: int, temperature: float = 1.0) -> np.ndarray:
    """Minus the energy, in Liu et al. 2020: T log sum_{c < K} exp(z_c / T).

    A background column is left out: it would raise the score of a sample that is sure of it.

    Args:
        out: logits (N, C) are used.
        known: K, the first columns that are known classes, in [1, C].
        temperature: T > 0; towards 0 the score becomes `max_logit`.

    Returns:
        (N,) float64, at least `max_logit` and at most T log K above it.

    Raises:
        ValueError: as `softmax`, or the temperature is not above 0.
    """
    if not temperature > 0:
        raise ValueError(f"need a temperature above 0; got {temperature}")
    return temperature * _log_sum(_logits(out, known)[:, :known] / temperature)


def negative_entropy(out: Outputs, *, known: int) -> np.ndarray:
    """Minus the entropy of the known classes: sum_{c < K} q_c log q_c.

    Here q is the softmax of the first K columns alone; with the background column among them, a
    sample that is sure of being none of the K would count as the most known of all.

    Arguments and errors are those of `softmax`. Returns (N,) float64 in nats, in [-log K, 0].
    """
    logits = _logits(out, known)[:, :known]
    gap = logits - logits.max(axis=1, keepdims=True)
    others = np.exp(gap)
    np.put_along_axis(others, gap.argmax(axis=1)[:, None], 0, axis=1)
    rest = others.sum(axis=1)  # without the largest's 1, beside which it would be lost
    return (others * gap).sum(axis=1) / (1 + rest) - np.log1p(rest)


def feature_norm(out: Outputs, *, known: int) -> np.ndarray:
    """Euclidean length of the features, in appendix B of Vaze et al. 2022: ||f||.

    Args:
        out: features (N, D) are used; logits (N, C) are checked.
        known: K, the first columns that are known classes, in [1, C].

    Returns:
        (N,) float64, >= 0.

    Raises:
        ValueError: as `softmax`, or features are not (N, D) finite numbers.
    """
    return np.sqrt((_features(out, known) ** 2).sum(axis=1))


def ensemble(outputs: Sequence[Outputs], *, mean: str) -> Outputs:
    """Several networks on the same samples, as one; every rule that reads logits takes it.

        logits     z_c = mean_m z_mc
        softmax    z_c = log mean_m p_mc    Deep Ensembles in Lakshminarayanan et al. 2017

    The softmax of the second is the mean softmax itself.

    Args:
        outputs: M >= 1 of them, logits (N, C) each, rows and columns in the same order.
        mean: one of `MEANS`, what is averaged.

    Returns:
        logits (N, C) float64 and no features: those of different networks have no common axes.

    Raises:
        ValueError: there are none, their shapes differ, or logits are not finite.
    """
    average = MEANS[mean]
    shapes = [np.shape(out.logits) for out in outputs]
    if len(set(shapes)) != 1:
        raise ValueError(f"need logits of one shape, from at least one network; got {shapes}")
    return Outputs(average(np.stack([_logits(out, 1) for out in outputs])), ())


def _mean_softmax(logits: np.ndarray) -> np.ndarray:
    """(N, C) log of the mean softmax over the first axis; every p may underflow, no log p does."""
    log_p = logits - np.logaddexp.reduce(logits, axis=2, keepdims=True)
    return np.logaddexp.reduce(log_p, axis=0) - np.log(len(logits))


def _log_sum(logits: np.ndarray) -> np.ndarray:
    """(N,) log sum_c exp z_c; the shift is the row's maximum, so the sum is at least 1."""
    shift = logits.max(axis=1, keepdims=True)
    return shift[:, 0] + np.log(np.exp(logits - shift).sum(axis=1))


def _features(out: Outputs, known: int) -> np.ndarray:
    """(N, D) float64, checked, and the logits with them."""
    rows = len(_logits(out, known))
    features = np.asarray(out.features, np.float64, order="C")
    if features.ndim != 2 or len(features) != rows:
        came = features.shape if features.size else "none, as Outputs(logits) has"
        raise ValueError(f"need (N, D) features for {rows} logits; got {came}")
    if not np.isfinite(features).all():
        row = np.argwhere(~np.isfinite(features))[0][0]
        raise ValueError(f"need finite features; row {row} holds another")
    return features


MEANS = Catalogue(logits=lambda logits: logits.mean(axis=0), softmax=_mean_softmax)
POST_HOC = Catalogue(
    energy=energy,
    negative_entropy=negative_entropy,
    feature_norm=feature_norm,
)
