"""How often a threshold breaks its promise: scores in three shapes, drawn again and again.

`python -m tests.benchmarks thresholds` runs all of it; `tests/test_thresholds.py` a part.
"""

import numpy as np

from osnb import metrics

SHAPES = ("normal", "heavy", "tied")
SIZES = (200, 1000, 5000)
MANY = 400_000  # samples that stand for all those to come
RATES = {"tpr": 0.95, "fpr": 0.1, "risk": 0.1}


def drawn(shape, size, rng):
    """(score, right, unknown) of a random mixture, three in ten unknown; half of "tied" tie."""
    unknown = rng.random(size) < 0.3
    if shape == "normal":
        score = rng.normal(size=size) + 2.5 * ~unknown
        right = rng.random(size) < 1 / (1 + np.exp(-1.5 * score))
    elif shape == "heavy":
        score = rng.standard_t(2, size) + 4 * ~unknown
        right = rng.random(size) < 0.97
    else:
        score = np.where(unknown, rng.beta(2, 3, size), rng.beta(8, 1, size)).round(2)
        right = rng.random(size) < 0.6 + 0.4 * score
    return score, right & ~unknown, unknown


def threshold(rate, promise, sample, seed):
    """The package's threshold from a calibration set."""
    score, right, unknown = sample
    if rate == "risk":
        return metrics.risk_threshold(score, right, risk=RATES[rate], seed=seed)
    of = {"tpr": metrics.tpr_threshold, "fpr": metrics.fpr_threshold}[rate]
    side = score[unknown] if rate == "fpr" else score[~unknown]
    return of(side, promise=promise, **{rate: RATES[rate]})


def rates(thresholds, shape):
    """{rate: (T,)} at each threshold, and coverage, among very many samples to come."""
    score, right, unknown = drawn(shape, MANY, np.random.default_rng(99))
    masks = {"known": ~unknown, "unknown": unknown, "wrong": ~right, "all": unknown | True}
    above = {  # NaN accepts nothing
        name: np.where(
            np.isnan(thresholds),
            0,
            mask.sum() - np.searchsorted(np.sort(score[mask]), thresholds, "left"),
        )
        for name, mask in masks.items()
    }
    risk = above["wrong"] / np.maximum(above["all"], 1)
    found = {"tpr": above["known"] / masks["known"].sum(), "risk": risk}
    return found | {"fpr": above["unknown"] / unknown.sum(), "coverage": above["all"] / MANY}


def trial(shape, size, rate, promise, *, sets, seed=0):
    """Sets whose threshold breaks its promise, the mean rate over sets, and mean coverage."""
    rng = np.random.default_rng([seed, size, SHAPES.index(shape)])
    found = [threshold(rate, promise, drawn(shape, size, rng), each) for each in range(sets)]
    came = rates(np.array(found), shape)
    broken = came[rate] < RATES[rate] if rate == "tpr" else came[rate] > RATES[rate]
    row = {"shape": shape, "images": size, "asked": f"{rate} {RATES[rate]}", "promise": promise}
    row |= {"sets": sets, "broken": int(broken.sum()), "mean rate": float(came[rate].mean())}
    return row | {"coverage": float(came["coverage"].mean())}


def trials(*, sets):
    """Every shape, size and rate; the conformal quantile beside the bound, where there is one."""
    kinds = [("tpr", "bound"), ("fpr", "bound"), ("risk", "bound")]
    kinds += [("tpr", "conformal"), ("fpr", "conformal")]
    rows = [
        trial(shape, size, *kind, sets=sets) for kind in kinds for shape in SHAPES for size in SIZES
    ]
    return {"rows": rows}


def show(report):
    """What rich prints for `trials`."""
    from rich.table import Table

    heads = [*report["rows"][0]]
    table = Table(*heads, box=None)
    for row in report["rows"]:
        table.add_row(*(f"{x:.3f}" if isinstance(x, float) else str(x) for x in row.values()))
    bounds = [row for row in report["rows"] if row["promise"] == "bound"]
    worst, sets = max(row["broken"] for row in bounds), bounds[0]["sets"]
    return [table, f"The bound is broken by at most {worst} of {sets} sets; one in twenty may."]
