"""Unknown detection in one pool, after Kim et al. 2021: operating points, their risks and costs.

`samples` below is one row per test sample and method: columns panel (the pool), printed (the
method), kind ("" where accepting the sample is right, else which kind of error it is) and score.
"""

import math

import numpy as np
import pandas as pd

from osnb import metrics
from osnb.evidence.frames import need

SAMPLES = ("panel", "printed", "kind", "score")
RIGHT, PERFECT = "right", "perfect ranking"


def _ranked(samples: pd.DataFrame) -> pd.DataFrame:
    """Risk and coverage of each method after each of its samples, with the score of that one."""
    need(samples, SAMPLES)
    parts = []
    for (panel, printed), rows in samples.groupby(["panel", "printed"], sort=False):
        score = rows["score"].to_numpy(float)
        coverage, risk = metrics.risk_coverage(score, (rows["kind"] == "").to_numpy())
        curve = {"threshold": np.sort(score)[::-1], "coverage": coverage, "risk": risk}
        parts.append(pd.DataFrame({"panel": panel, "printed": printed} | curve))
    return pd.concat(parts, ignore_index=True)


def risk_points(samples: pd.DataFrame, *, most: int = 200) -> pd.DataFrame:
    """Risk-coverage curve of each method, thinned to evenly spaced coverages.

    Args:
        samples: as the module says.
        most: points of a curve, at most.

    Returns:
        panel, printed, coverage, risk (rates); "perfect ranking" has all right samples first, as
        many as the panel's most accurate method has, so that no curve is below it.

    Raises:
        ValueError: a column is missing, or a score is NaN.
    """
    need(samples, SAMPLES)
    scored = samples.assign(right=samples["kind"].eq("").astype(float))
    right = scored.groupby(["panel", "printed"], sort=False)["right"].mean()
    most_right = right.groupby("panel", sort=False).idxmax()
    perfect = scored.set_index(["panel", "printed"], drop=False).loc[most_right]
    perfect = perfect.assign(printed=PERFECT, score=perfect["right"])
    points = _ranked(pd.concat([perfect, samples])).drop(columns="threshold")
    curves = points.groupby(["panel", "printed"], sort=False)
    at, size = curves.cumcount(), curves["risk"].transform("size")
    kept = {n: np.linspace(0, n - 1, most).round() for n in size.unique()}
    return points[[i in kept[n] for i, n in zip(at, size, strict=True)]].reset_index(drop=True)


def coverage_points(samples: pd.DataFrame) -> pd.DataFrame:
    """Every operating point of each method: one for each distinct score, and rejecting all.

    Args:
        samples: as the module says.

    Returns:
        panel, printed, threshold (accept from there on; inf rejects all), coverage, risk (0
        where nothing is accepted), by falling threshold.

    Raises:
        ValueError: a column is missing, or a score is NaN.
    """
    points = _ranked(samples)
    key = ["panel", "printed"]
    none = points[key].drop_duplicates().assign(threshold=np.inf, coverage=0.0, risk=0.0)
    distinct = points.drop_duplicates([*key, "threshold"], keep="last")
    return pd.concat([none, distinct], ignore_index=True)


def risk_table(samples: pd.DataFrame, *, risk: float) -> pd.DataFrame:
    """The operating point of each method: the largest coverage with at most this risk.

    Args:
        samples: as the module says.
        risk: largest share of errors among accepted samples, a rate.

    Returns:
        One row per panel, method and kind that the panel has: panel, printed, threshold (accept
        from there on, inf where nothing can be accepted), coverage, kind ("right" or a kind of
        error), accepted (samples), of (samples of that kind).

    Raises:
        ValueError: a column is missing, a score is NaN, or risk is no rate.
    """
    need(samples, SAMPLES)
    points = []
    for (panel, printed), rows in samples.groupby(["panel", "printed"], sort=False):
        score, right = rows["score"].to_numpy(), (rows["kind"] == "").to_numpy()
        threshold, coverage = metrics.coverage_at_risk(score, right, risk=risk)
        accepted = (rows["score"] >= threshold).groupby(rows["kind"], sort=False)
        point = {"panel": panel, "printed": printed, "threshold": threshold, "coverage": coverage}
        for kind, yes in accepted:
            counts = {"kind": kind or RIGHT, "accepted": int(yes.sum()), "of": len(yes)}
            points.append(point | counts)
    return pd.DataFrame(points)


def cost_points(points: pd.DataFrame, *, wrong: float, rejection: float) -> pd.DataFrame:
    """The expected cost of a sample at each operating point, after Chow 1970.

    A wrong acceptance costs `wrong`, a rejection costs `rejection` whatever the sample was (it
    goes to somebody who looks), a right acceptance nothing. With coverage c and risk r:

        cost = wrong c r + rejection (1 - c)

    Args:
        points: as from `coverage_points`.
        wrong: any unit, >= 0.
        rejection: the same unit, >= 0.

    Returns:
        `points` with cost, in that unit, and cheapest (whether it is the least of a method; of
        equal ones that of the largest coverage).

    Raises:
        ValueError: a column is missing, or a cost is not finite or below 0.
    """
    need(points, ["panel", "printed", "threshold", "coverage", "risk"])
    for name, cost in {"wrong": wrong, "rejection": rejection}.items():
        if not (math.isfinite(cost) and cost >= 0):
            raise ValueError(f"need a finite cost of at least 0 as {name}; got {cost}")
    coverage, risk = points["coverage"], points["risk"]
    rows = points.assign(cost=wrong * coverage * risk + rejection * (1 - coverage))
    order = rows.sort_values("coverage", ascending=False, kind="stable")
    least = order.groupby(["panel", "printed"])["cost"].idxmin()
    return rows.assign(cheapest=rows.index.isin(least))
