"""One set of scores by the rules of public libraries: which side is positive, and what a tie is."""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from osnb import metrics
from osnb.base.catalogue import Catalogue
from osnb.evidence.samples import roles

ROWS = Path(__file__).with_name("conventions.csv")


def conventions(own) -> Iterator[dict[str, Any]]:
    """A row for each measure, positive side and rule: whose it is, and the value of each score.

    Args:
        own: `scores.Own` of any scores; the unknown samples count, or the negative if there are no
            others.

    Raises:
        ValueError: no sample is unknown or negative.
    """
    role, others = next(iter(roles(own).items()))
    if role == "none":
        raise ValueError("need unknown samples, label -2, to compare conventions; there are none")
    known = own.label >= 0
    right = (own.pred == own.label)[known]
    for row in csv.DictReader(ROWS.read_text().splitlines()):
        convention, of = row.pop("convention"), MEASURES[row["measure"]]
        sides = {name: (score[known], right, score[others]) for name, score in own.scores.items()}
        if row["measure"] == "AUPR" and row["positive"] == "known":
            sides = {name: (-other, right, -first) for name, (first, _, other) in sides.items()}
        yield row | {name: of(*each, convention=convention) for name, each in sides.items()}


def _detection(of: Callable, **settings: float) -> Callable:
    """A measure of known against others, whoever is right."""
    return lambda known, _, other, **how: of(known, other, **settings, **how)


def _aurc(known: np.ndarray, right: np.ndarray, other: np.ndarray, **how: str) -> float:
    """AURC with the others as errors."""
    pooled = np.append(right, np.zeros(len(other), bool))
    return metrics.aurc(np.concatenate([known, other]), pooled, **how)


MEASURES = Catalogue(
    {
        "AUROC": _detection(metrics.auroc),
        "FPR95": _detection(metrics.fpr_at_tpr, tpr=0.95),
        "AUPR": _detection(metrics.average_precision),
        "OSCR area": metrics.oscr_area,
        "CCR at FPR .1": lambda *sides, **how: metrics.ccr_at_fpr(*sides, fpr=0.1, **how),
        "AURC": _aurc,
    }
)
