"""The best of many scores, picked on some unknown classes and reported on others."""

from typing import Any

import numpy as np
import pandas as pd

from osnb import metrics
from osnb.evidence.decisions import taken
from osnb.evidence.samples import roles

LEVEL = 0.05  # of Holm's correction, over all comparisons together


def choice(own, *, seed: int, resamples: int) -> list[dict[str, Any]]:
    """A row for each score: AUROC where the best is picked and, with its interval, elsewhere.

    Unknown classes are split in two at random, and so are the known samples. `p` is of the paired
    difference between the best and this score on the second half; `holm` is p after the correction
    of Holm 1979, and `differs` whether it is at most 0.05.

    Raises:
        ValueError: there is no class column, or fewer than two unknown classes or scores.
    """
    (_, others), known = next(iter(roles(own).items())), own.label >= 0
    units = np.unique(own.unit[others]) if len(own.unit) else []
    if len(units) < 2 or len(own.scores) < 2:
        raise ValueError(
            "--choose needs two scores or more, and a column class with two unknown classes or "
            f"more; got {len(own.scores)} scores, {len(units)} unknown classes"
        )
    rng = np.random.default_rng(seed)
    first = others & np.isin(own.unit, rng.permutation(units)[: len(units) // 2])
    first |= known & (rng.permutation(len(known)) % 2 == 0)
    sides = taken(own, first & (known | others)), taken(own, ~first & (known | others))
    picked = {name: metrics.auroc(*_sides(sides[0], name)) for name in own.scores}
    best = max(picked, key=lambda name: picked[name])
    sizes = (range(len(side)) for side in _sides(sides[1], best))
    weights = metrics.role_weights(*sizes, seed=seed, resamples=resamples)
    drawn = {name: _auroc(*_sides(sides[1], name), weights) for name in picked}
    p = {name: metrics.p_value(drawn[best] - x) for name, x in drawn.items() if name != best}
    corrected = {best: np.nan} | dict(zip(p, holm(np.array([*p.values()])), strict=True))
    rows = []
    for name in sorted(picked, key=lambda name: -picked[name]):
        row = {"score": name, "best": name == best, "picked on": picked[name]}
        row |= {k: float(v) for k, v in metrics.interval(drawn[name])._asdict().items()}
        row |= {"p": p.get(name), "holm": float(corrected[name]) if name != best else None}
        rows.append(row | {"differs": bool(corrected[name] <= LEVEL)})
    return rows


def measured(own, groups: np.ndarray, *, seed: int, resamples: int) -> pd.DataFrame:
    """What every score is worth: AUROC against each group of unknown samples, and `choice`.

    Args:
        own: `scores.Own`, with the classes of its N samples.
        groups: (N,) which unknown samples are measured together, such as near and far.
        seed, resamples: of the draws.

    Returns:
        rule, against (a group, or "other half"), value, low, high and over (class or sample: what
        was drawn again); for the other half also what `choice` says: picked on, best, p, holm,
        differs.
    """
    known, rows = own.label >= 0, []
    for group in pd.unique(groups[~known]):
        other = ~known & (groups == group)
        units = own.unit[known], own.unit[other]
        weights = metrics.role_weights(*units, seed=seed, resamples=resamples)
        for name, score in own.scores.items():
            ends = metrics.interval(_auroc(score[known], score[other], weights))
            rows.append({"rule": name, "against": group, "over": "class"} | ends._asdict())
    for row in choice(own, seed=seed, resamples=resamples):
        about = {"rule": row.pop("score"), "against": "other half", "over": "sample"}
        rows.append(about | row)
    return pd.DataFrame(rows)


def holm(p: np.ndarray) -> np.ndarray:
    """(M,) p-values corrected for M comparisons, in Holm 1979: the smallest counts M-fold, ..."""
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return np.minimum(steps, 1)[np.argsort(order)]


def _sides(own, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the known and of the other samples."""
    known = own.label >= 0
    return own.scores[name][known], own.scores[name][~known]


def _auroc(known: np.ndarray, other: np.ndarray, weights: tuple) -> np.ndarray:
    right = np.ones(len(known), bool)
    return metrics.bootstrap_summary(known, right, other, weights=weights, names=["auroc"])["auroc"]
