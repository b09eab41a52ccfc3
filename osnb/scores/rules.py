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

from collections.abc import Callable

import numpy as np

from osnb.catalogue import Catalogue
from osnb.outputs import Outputs


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
    found = {"pred": predicted(out, known=known)}
    found["target"] = target(out, labels, known=known)
    found["target_log_odds"] = target_log_odds(out, labels, known=known)
    found |= {name: rule(out, known=known) for name, rule in SCORES.items()}
    if out.logits.shape[1] > known:
        found["target_with_background"] = with_background(target)(out, labels, known=known)
        found["max_softmax_with_background"] = with_background(max_softmax)(out, known=known)
    return found


SCORES = Catalogue(
    max_softmax=max_softmax,
    max_softmax_log_odds=max_softmax_log_odds,
    max_logit=max_logit,
)
