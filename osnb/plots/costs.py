"""Where to accept when errors and rejections have a price: the risk-coverage chooser's twin."""

import math

import numpy as np
import pandas as pd

from osnb import metrics
from osnb.plots.correlation import MARKERS
from osnb.plots.described import Figure, panels
from osnb.plots.style import label_outside, laid_out, need
from osnb.plots.unified import COLORS, LINES
from osnb.plots.unified_points import _curves


def coverage_points(samples: pd.DataFrame) -> pd.DataFrame:
    """Every operating point of each method: one for each distinct score, and rejecting all.

    Args:
        samples: columns panel, method, kind ("" where accepting is right) and score.

    Returns:
        panel, method, threshold (accept from there on; inf rejects all), coverage, risk (0
        where nothing is accepted), by falling threshold.

    Raises:
        ValueError: a column is missing, or a score is NaN.
    """
    parts = []
    for (panel, method), rows in _curves(samples):
        score = rows["score"].to_numpy()
        coverage, risk = metrics.risk_coverage(score, (rows["kind"] == "").to_numpy())
        falling = np.sort(score)[::-1]
        last = np.r_[falling[1:] != falling[:-1], True]  # of each tie
        curve = {"threshold": np.r_[np.inf, falling[last]]}
        curve |= {"coverage": np.r_[0.0, coverage[last]], "risk": np.r_[0.0, risk[last]]}
        parts.append(pd.DataFrame({"panel": panel, "method": method} | curve))
    return pd.concat(parts, ignore_index=True)


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
        `points` with a column cost, in that unit.

    Raises:
        ValueError: a column is missing, or a cost is not finite or below 0.
    """
    need(points, ["panel", "method", "threshold", "coverage", "risk"])
    for name, cost in {"wrong": wrong, "rejection": rejection}.items():
        if not (math.isfinite(cost) and cost >= 0):
            raise ValueError(f"need a finite cost of at least 0 as {name}; got {cost}")
    rejected = 1 - points["coverage"]
    cost = wrong * points["coverage"] * points["risk"] + rejection * rejected
    return points.assign(cost=cost)


def cost_table(points: pd.DataFrame, *, wrong: float, rejection: float) -> pd.DataFrame:
    """The cheapest point of each method: rows of `cost_points`; of equal ones the last.

    Arguments and errors are those of `cost_points`.
    """
    rows = cost_points(points, wrong=wrong, rejection=rejection)
    order = rows.sort_values("coverage", ascending=False, kind="stable")
    least = order.groupby(["panel", "method"], sort=False)["cost"].idxmin()
    return rows.loc[sorted(least)].reset_index(drop=True)


@laid_out
def least_cost(points: pd.DataFrame, *, wrong: float, rejection: float) -> Figure:
    """The cheapest point of each method, on its risk-coverage curve (left) and cost curve (right).

    A row of panels for each pool. Arguments and errors are those of `cost_points`.
    """
    rows = cost_points(points, wrong=wrong, rejection=rejection)
    best = cost_table(points, wrong=wrong, rejection=rejection)
    names, methods = list(rows["panel"].unique()), list(rows["method"].unique())
    figure, axes = panels(len(names), 2, width=4.6, height=2.9)
    for pair, name in zip(axes, names, strict=True):
        for k, method in enumerate(methods):
            curve, at = (t[(t["panel"] == name) & (t["method"] == method)] for t in (rows, best))
            style = {"color": COLORS[k % len(COLORS)], "linestyle": LINES[k % len(LINES)]}
            style |= {"marker": MARKERS[k % len(MARKERS)], "markersize": 8, "mec": "black"}
            style["markevery"] = np.flatnonzero(curve["threshold"].isin(at["threshold"])).tolist()
            for ax, value in zip(pair, ("risk", "cost"), strict=True):
                ax.plot(curve["coverage"], curve[value], linewidth=1.2, label=method, **style)
        pair[0].set(title=name, ylabel="errors among accepted", ylim=(-0.02, 1.02))
        pair[1].set(title=f"wrong costs {wrong:g}, rejection {rejection:g}", ylabel="cost a sample")
        for ax in pair:
            ax.set(xlabel="coverage", xlim=(-0.03, 1.03))
    label_outside(figure, axes.flat)
    return figure
