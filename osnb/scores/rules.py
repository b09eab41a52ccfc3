"""Scoring rules: logits to one number per sample, higher meaning more known.

Every rule is called as ``rule(out, known=K)``. The softmax runs over all C columns, then the
first K of them, the known classes, are kept: a background column is dropped after normalising
and before any maximum (equation 6 in Palechor et al. 2023). `with_background` keeps it.

Probabilities are computed in float64 from float32 logits, and still tie: any p above 1 - 1e-16
is 1.0. The log-odds of a probability p, log p - log(1 - p), order the samples in the same way
without ever saturating, because they come straight from the logits:

    log_odds_c = z_c - log sum_{j != c} exp z_j

With a single column there is no other j: p is 1 and its log-odds +inf.
"""

from collections.abc import Callable, Sequence

import numpy as np

from osnb.base.catalogue import Catalogue
from osnb.base.outputs import Outputs


def softmax(out: Outputs, *, known: int) -> np.ndarray:
    """Probabilities of the known classes, normalised over all columns.

    Args:
        out: logits (N, C) are used.
        known: K, the first columns that are known classes, in [1, C].

    Returns:
        (N, K) float64 in [0, 1]; a row sums to 1 if K = C, to less otherwise.

    Raises:
        ValueError: out is no Outputs, logits are not (N, C) finite numbers, or K is outside
            [1, C].
    """
    logits = _logits(out, known)
    weight = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weight[:, :known] / weight.sum(axis=1, keepdims=True)


def predicted(out: Outputs, *, known: int) -> np.ndarray:
    """(N,) int64, the known class with the largest logit, the first of several.

    Arguments and errors are those of `softmax`.
    """
    return _logits(out, known)[:, :known].argmax(axis=1)


def max_logit(out: Outputs, *, known: int) -> np.ndarray:
    """Maximum logit score, MLS in Vaze et al. 2022: max_{c < K} z_c.

    Arguments and errors are those of `softmax`. Returns (N,) float64.
    """
    return _logits(out, known)[:, :known].max(axis=1)


def max_softmax(out: Outputs, *, known: int) -> np.ndarray:
    """Maximum softmax probability, in Hendrycks & Gimpel 2017: max_{c < K} p_c.

    Arguments and errors are those of `softmax`. Returns (N,) float64 in [0, 1].
    """
    return softmax(out, known=known).max(axis=1)


def max_softmax_log_odds(out: Outputs, *, known: int) -> np.ndarray:
    """Log-odds of `max_softmax`.

    Arguments and errors are those of `softmax`. Returns (N,) float64 in nats.
    """
    return _log_odds(_logits(out, known), predicted(out, known=known))


def target(out: Outputs, labels: np.ndarray, *, known: int) -> np.ndarray:
    """Target score, the s of equation 6 in Palechor et al. 2023.

        p_y               if the label y is a known class
        max_{c < K} p_c   if it is negative or unknown

    Args:
        out: logits (N, C) are used.
        labels: (N,) integers, a class in [0, K), or below 0 for any other sample.
        known: K, the first columns that are known classes, in [1, C].

    Returns:
        (N,) float64 in [0, 1].

    Raises:
        ValueError: as `softmax`, or labels are not (N,) integers below K.
    """
    column = _target(out, labels, known)
    return np.take_along_axis(softmax(out, known=known), column[:, None], axis=1)[:, 0]


def target_log_odds(out: Outputs, labels: np.ndarray, *, known: int) -> np.ndarray:
    """Log-odds of `target`; same arguments and errors. Returns (N,) float64 in nats."""
    return _log_odds(_logits(out, known), _target(out, labels, known))


def with_background(rule: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """The rule with the background column, number K, counted as one more known class.

    The released code of Palechor et al. 2023 fills Table 2 in this way for BG: a known sample
    whose largest logit is the background is wrong, and an unknown sample scores high when it
    is taken for background. Equation 6 and their figures do not.

    Args:
        rule: any function of this room.

    Returns:
        A function of the same arguments, ``known`` still being K.
    """
    return lambda *args, known: rule(*args, known=known + 1)


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


def _logits(out: Outputs, known: int) -> np.ndarray:
    """(N, C) float64, checked. C order keeps each row's sum independent of the other rows."""
    if not hasattr(out, "logits"):
        raise ValueError(f"need Outputs, such as Outputs(logits); got {type(out).__name__}")
    logits = np.asarray(out.logits, dtype=np.float64, order="C")
    if logits.ndim != 2 or not 1 <= known <= logits.shape[1]:
        raise ValueError(f"need (N, C) logits and known in [1, C]; got {logits.shape}, {known}")
    if not np.isfinite(logits).all():
        row, column = np.argwhere(~np.isfinite(logits))[0]
        value = logits[row, column]
        raise ValueError(f"need finite logits; got {value} in row {row}, column {column}")
    return logits


def _target(out: Outputs, labels: np.ndarray, known: int) -> np.ndarray:
    """(N,) the column that `target` looks at."""
    labels, best = np.asarray(labels), predicted(out, known=known)
    if labels.shape != best.shape or labels.dtype.kind not in "iu":
        raise ValueError(f"need {best.shape} integers; got {labels.shape} of {labels.dtype}")
    if len(labels) and labels.max() >= known:
        raise ValueError(f"need labels below {known} known classes; got {labels.max()}")
    return np.where(labels >= 0, labels, best)


def _log_odds(logits: np.ndarray, column: np.ndarray) -> np.ndarray:
    """(N,) log p - log(1 - p) of one column in each row."""
    column = column[:, None]
    others = logits.copy()
    np.put_along_axis(others, column, -np.inf, axis=1)
    # The shift is the others' own maximum, so their sum is at least 1 and never underflows;
    # it stays finite where there are no others and the sum is 0.
    shift = others.max(axis=1, keepdims=True, initial=np.finfo(np.float64).min)
    with np.errstate(divide="ignore"):
        rest = np.log(np.exp(others - shift).sum(axis=1))
    return np.take_along_axis(logits, column, axis=1)[:, 0] - shift[:, 0] - rest


def columns(out: Outputs, labels: np.ndarray, *, known: int) -> dict[str, np.ndarray]:
    """The columns that a scores table gets from a network: `pred` and every rule of this room.

    Where the network has a background column, the two rules that the authors' Table 2 is made
    of come once more as `*_with_background`. Arguments and errors are those of `target`.
    """
    table = {"pred": predicted(out, known=known)}
    table["target"] = target(out, labels, known=known)
    table["target_log_odds"] = target_log_odds(out, labels, known=known)
    table |= {name: rule(out, known=known) for name, rule in SCORES.items()}
    if out.logits.shape[1] > known:
        table["target_with_background"] = with_background(target)(out, labels, known=known)
        table["max_softmax_with_background"] = with_background(max_softmax)(out, known=known)
    return table


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


SCORES = Catalogue(
    max_softmax=max_softmax,
    max_softmax_log_odds=max_softmax_log_odds,
    max_logit=max_logit,
)
MEANS = Catalogue(logits=lambda logits: logits.mean(axis=0), softmax=_mean_softmax)
POST_HOC = Catalogue(
    energy=energy,
    negative_entropy=negative_entropy,
    feature_norm=feature_norm,
)
