"""From scores to decisions: a threshold from held-out samples, and what it does on others."""

from typing import Any, NamedTuple

import numpy as np

from osnb import metrics
from osnb.evidence.samples import roles

RATES = ("tpr", "fpr", "risk")
CHOOSE = {"tpr": metrics.tpr_threshold, "fpr": metrics.fpr_threshold}


class Side(NamedTuple):
    """The scores of a side: K known samples, U others, and which known ones are right."""

    known: np.ndarray
    right: np.ndarray
    other: np.ndarray


def halves(own, *, seed: int) -> tuple:
    """Two halves of the rows, drawn at random: for calibration and for the test."""
    order = np.random.default_rng(seed).permutation(len(own.label))
    return tuple(taken(own, np.sort(rows)) for rows in np.array_split(order, 2))


def taken(own, rows: np.ndarray):
    """The rows of the samples."""
    scores = {name: column[rows] for name, column in own.scores.items()}
    ids = {name: each[rows] for name in ("sample", "unit") if len(each := getattr(own, name))}
    return own._replace(label=own.label[rows], pred=own.pred[rows], scores=scores, **ids)


def side(own, role: str) -> Side:
    """The only score of the samples, split by role."""
    (score,), known = own.scores.values(), own.label >= 0
    other = roles(own).get(role, np.zeros(len(known), bool))
    return Side(score[known], (own.pred == own.label)[known], score[other])


def chosen(rate: str, at: float, calibration: Side, *, share: float, seed: int) -> dict[str, float]:
    """By promise, the threshold from calibration samples.

    Args:
        rate: one of `RATES`.
        at: what is asked of it, in (0, 1).
        calibration: held-out samples.
        share: of the unknown among samples to come, for the risk; 0 takes them as they are.
        seed: of the draws.

    Raises:
        ValueError: there are too few samples, or a rate is outside (0, 1).
    """
    if rate != "risk":
        scores = calibration.known if rate == "tpr" else calibration.other
        promises = ("bound", "conformal")
        return {each: CHOOSE[rate](scores, promise=each, **{rate: at}) for each in promises}
    mixed = mixture(calibration, share=share, seed=seed)
    pooled = np.concatenate([mixed.known, mixed.other])
    right = np.append(mixed.right, np.zeros(len(mixed.other), bool))
    return {"bound": metrics.risk_threshold(pooled, right, risk=at, seed=seed)}


def mixture(samples: Side, *, share: float, seed: int) -> Side:
    """The samples with the share of unknown ones among them; 0 leaves them as they are."""
    if not share:
        return samples
    sizes = len(samples.known), len(samples.other)
    known, other = metrics.mixture(*sizes, share=share, seed=seed)
    return Side(samples.known[known], samples.right[known], samples.other[other])


def tested(threshold: float, test: Side, *, share: float, seed: int) -> dict[str, metrics.Interval]:
    """TPR, FPR, risk and coverage of a threshold on samples that have not chosen it.

    The intervals are exact, of 95 %. Risk and coverage are those of `mixture`.
    """
    known, other = test.known >= threshold, test.other >= threshold
    mixed = mixture(test, share=share, seed=seed)
    right = int((mixed.right & (mixed.known >= threshold)).sum())
    accepted = int((mixed.known >= threshold).sum() + (mixed.other >= threshold).sum())
    counts = {"tpr": (int(known.sum()), len(known)), "fpr": (int(other.sum()), len(other))}
    counts["risk"] = accepted - right, accepted
    counts["coverage"] = accepted, len(mixed.known) + len(mixed.other)
    return {
        name: metrics.Interval(count / of if of else np.nan, *metrics.exact_interval(count, of))
        for name, (count, of) in counts.items()
    }


def decided(
    rate: str, at: float, calibration, test, *, share: float, seed: int
) -> list[dict[str, Any]]:
    """A row for each promise and rate: the threshold, and what it does on the test samples.

    Args:
        rate: one of `RATES`.
        at: what is asked of it, in (0, 1).
        calibration: `scores.Own` of one score, of held-out samples.
        test: the same, of other samples.
        share: as in `chosen`.
        seed: of the draws.
    """
    role = next(iter(roles(calibration)))
    held_out, others = (side(each, role) for each in (calibration, test))
    thresholds = chosen(rate, at, held_out, share=share, seed=seed)
    return [
        {"promise": promise, "threshold": threshold, "measure": name} | found._asdict()
        for promise, threshold in thresholds.items()
        for name, found in tested(threshold, others, share=share, seed=seed).items()
    ]


def verdicts(own, threshold: float) -> list[str]:
    """`accept CLASS` or `reject`, of each row."""
    (score,) = own.scores.values()
    names = [own.classes[c] if c >= 0 else "unknown" for c in own.pred] if own.classes else own.pred
    return [
        f"accept {c}" if s >= threshold else "reject" for c, s in zip(names, score, strict=True)
    ]
