"""Metrics that ask one thing: is the sample known or unknown."""

from bisect import bisect_left

import numpy as np

from osnb.metrics.counts import Counts, both, chosen, pieces, whole


def auroc(known: np.ndarray, unknown: np.ndarray, *, convention: str = "exact") -> float:
    """Area under the ROC curve: the chance that a known sample outscores an unknown one.

        exact: P(known > unknown) + P(known = unknown) / 2
        kim:   P(known > unknown); every tie counts against the detector

    The code of Kim et al. 2021 and of ARPL (so of Vaze et al. 2022) follows kim.

    Args:
        known: (K,) scores of known test samples, rightly classified or not, any unit.
        unknown: (U,) scores of unknown test samples, same unit.
        convention: exact or kim.

    Returns:
        In [0, 1]; 1/2 means no better than chance.

    Raises:
        ValueError: an input is empty or a score is NaN.
    """
    chosen(convention, "exact", "kim")
    both(known, unknown)
    wrong = np.zeros(len(known), bool)
    return float(sum(roc_area(piece, convention) for piece in pieces(known, wrong, unknown)))


def average_precision(
    known: np.ndarray, unknown: np.ndarray, *, convention: str = "exact"
) -> float:
    """Average precision of finding the unknown samples, lowest score first.

    With P and R the precision and recall of refusing all scores up to the i-th lowest:

        exact:   sum_i (R_i - R_{i-1}) P_i
        openood: sum_i (R_i - R_{i-1}) (P_i + P_{i-1}) / 2, P_0 = 1

    Args:
        known: (K,) scores of known test samples, any unit.
        unknown: (U,) scores of unknown test samples, same unit.
        convention: exact (also scikit-learn, Vaze et al. 2022) or openood (OpenOOD v1.5).

    Returns:
        In [0, 1]; chance is U / (K + U).

    Raises:
        ValueError: an input is empty or a score is NaN.
    """
    chosen(convention, "exact", "openood")
    both(known, unknown)
    wrong = np.zeros(len(known), bool)
    if convention == "exact":
        return float(sum(map(precision, pieces(known, wrong, unknown))))
    accepted = whole(known, wrong, unknown)
    recall = 1 - accepted.unknown / len(unknown)
    return float(-np.trapezoid(np.append(_precisions(accepted), 1.0), recall))


def fpr_at_tpr(
    known: np.ndarray, unknown: np.ndarray, *, tpr: float, convention: str = "exact"
) -> float:
    """False positive rate at a true positive rate; FPR95 is the one at 0.95.

    - exact: share of unknowns accepted at the highest threshold that accepts at least
      ``tpr`` of the knowns.
    - kim: the same where the accepted share of knowns, counted sample by sample, is nearest to
      ``tpr`` (of two, the larger), at the lowest threshold that has it. Ties count against
      the detector.
    - openood (OpenOOD v1.5): unknown is the positive class. Share of knowns refused at the
      lowest threshold that refuses at least ``tpr`` of the unknowns.

    Args:
        known: (K,) scores of known test samples, any unit.
        unknown: (U,) scores of unknown test samples, same unit.
        tpr: the rate asked for, in (0, 1].
        convention: exact, kim or openood.

    Returns:
        In [0, 1], lower is better.

    Raises:
        ValueError: an input is empty, a score is NaN, or tpr is outside (0, 1].
    """
    if not 0 < tpr <= 1:
        raise ValueError(f"tpr needs a rate in (0, 1]; got {tpr}")
    chosen(convention, "exact", "kim", "openood")
    both(known, unknown)
    accepted = whole(known, np.zeros(len(known), bool), unknown)
    if convention == "kim":
        return _false_nearest(accepted, tpr)
    return false_at(accepted, tpr) if convention == "exact" else _false_refused(accepted, tpr)


def roc_area(piece: Counts, convention: str = "exact") -> np.ndarray:
    """A piece's share of `auroc`, whole numbers up to the division."""
    tied = piece.known[..., :-1] if convention == "kim" else piece.known[..., 1:]
    twice = np.vecdot(np.diff(piece.unknown), piece.known[..., :-1] + tied)
    return twice / (2 * piece.all_known * piece.all_unknown)


def precision(piece: Counts) -> np.ndarray:
    """A piece's share of exact `average_precision`."""
    return np.vecdot(np.diff(piece.unknown), _precisions(piece)) / piece.all_unknown


def false_at(piece: Counts, tpr: float) -> float:
    """Exact `fpr_at_tpr`, from the piece that reaches it."""
    at = bisect_left(piece.known, tpr, key=lambda count: count / piece.all_known)
    return float(piece.unknown[at] / piece.all_unknown)


def _precisions(piece: Counts) -> np.ndarray:
    """(..., T) share of unknowns among all samples with this score or a lower one."""
    known, unknown = (np.expand_dims(n, -1) for n in (piece.all_known, piece.all_unknown))
    refused = known + unknown - piece.size[..., :-1]  # 0 where a resample lacks the lowest scores
    return (unknown - piece.unknown[..., :-1]) / np.maximum(refused, 1)


def _false_nearest(accepted: Counts, tpr: float) -> float:
    """`fpr_at_tpr` after kim: all that lies above the next known sample, or ties with it."""
    taken = np.arange(accepted.all_known, -1, -1)
    taken = taken[np.abs(taken / accepted.all_known - tpr).argmin()]
    following = np.searchsorted(accepted.known[:-1], taken, "right")
    return float(accepted.unknown[following] / accepted.all_unknown)


def _false_refused(accepted: Counts, tpr: float) -> float:
    """`fpr_at_tpr` after openood."""
    refused = (accepted.all_unknown - accepted.unknown) / accepted.all_unknown
    at = np.flatnonzero(refused >= tpr)[-1]
    return float((accepted.all_known - accepted.known[at]) / accepted.all_known)
