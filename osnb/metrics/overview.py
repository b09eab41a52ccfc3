"""All metrics of one scores column at the price of one sort."""

import numpy as np

from osnb.metrics.counts import both, pieces
from osnb.metrics.coverage import least_risk, risks
from osnb.metrics.detection import false_at, precision, roc_area
from osnb.metrics.openset import area, right_at

FPRS = 1e-3, 1e-2, 1e-1, 1.0
TPR = 0.95


def summary(known: np.ndarray, correct: np.ndarray, unknown: np.ndarray) -> dict[str, float]:
    """Every exact metric of this room from one sort.

    Args:
        known: (K,) scores of known test samples, any unit.
        correct: (K,) bool, the closed-set prediction is right.
        unknown: (U,) scores of unknown test samples, same unit.

    Returns:
        accuracy, oscr_area, ccr_at_fpr_0.001, _0.01, _0.1 and _1, auroc, fpr95,
        average_precision, aurc and e_aurc, the last two with the unknown samples as errors.

    Raises:
        ValueError: an input is empty, a score is NaN, or correct is not (K,) bool.
    """
    both(known, unknown)
    sums, ccr = np.zeros(4), {}
    for piece in pieces(known, correct, unknown):
        sums += area(piece), roc_area(piece), precision(piece), risks(piece)
        # The last piece that starts below a rate holds it.
        ccr |= {q: right_at(piece, q) for q in FPRS if piece.unknown[0] / len(unknown) <= q}
        if piece.known[0] / len(known) < TPR <= piece.known[-1] / len(known):
            fpr = false_at(piece, TPR)
    samples, right = len(known) + len(unknown), piece.right[-1]
    found = {
        "accuracy": right / len(known),
        "oscr_area": sums[0],
        **{f"ccr_at_fpr_{q:g}": ccr[q] for q in FPRS},
        "auroc": sums[1],
        "fpr95": fpr,
        "average_precision": sums[2],
        "aurc": sums[3] / samples,
        "e_aurc": sums[3] / samples - least_risk(1 - right / samples),
    }
    return {name: float(value) for name, value in found.items()}
