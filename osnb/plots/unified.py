"""Unknown detection in one pool, after Kim et al. 2021: Figure 5, curves, stacked errors."""

import numpy as np
import pandas as pd
from matplotlib.ticker import PercentFormatter

from osnb.plots.correlation import COLORS as OKABE_ITO
from osnb.plots.correlation import MARKERS
from osnb.plots.described import Figure, panels
from osnb.plots.style import (
    label_outside,
    laid_out,
    need,
    note,
    present,
)
from osnb.plots.unified_points import PERFECT, RIGHT, risk_table

POINTS = ("benchmark", "method", "side", "improvement", "low", "high")
COLORS = (*OKABE_ITO, "#8b1a4a")
LINES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)))
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "++", "oo", "--")
FIRST = (RIGHT, "wrong prediction", "near")  # of the kinds, in stacked bars


@laid_out
def improvements(points: pd.DataFrame, *, about: str) -> Figure:
    """Improvement of each method over Baseline, in percent, a panel for each benchmark.

    A side has a colour, a marker and a row of its own within the method; lines are 95 %
    intervals. A method that the panel's first side has and no other is marked "not run".

    Args:
        points: columns benchmark, method, side, improvement, low and high, as rates.
        about: what the lines are, said below.

    Raises:
        ValueError: a column is missing, or there is no row.
    """
    need(points, POINTS)
    names = points["benchmark"].unique()
    methods, sides = points["method"].unique(), points["side"].unique()
    figure, axes = panels(1, len(names), width=4.3, height=0.8 + 0.42 * len(methods))
    for ax, name in zip(axes.flat, names, strict=True):
        part = points[points["benchmark"] == name]
        for k, side in enumerate(sides):
            rows = part[part["side"] == side]
            at = np.array([list(methods).index(m) for m in rows["method"]], float)
            at += 0.24 * (k - (len(sides) - 1) / 2)
            style = {"color": COLORS[k], "marker": MARKERS[k], "markersize": 5.5}
            ax.hlines(at, rows["low"], rows["high"], color=COLORS[k], linewidth=1, alpha=0.6)
            ax.plot(rows["improvement"], at, linestyle="none", label=side, **style)
        here = part.loc[part["side"] != sides[0], "method"].unique()
        labels = [m if m in here else f"{m} (not run)" for m in methods]
        ax.set_yticks(range(len(methods)), labels if len(sides) > 1 else methods)
        ax.set(title=name, xlabel="AURC lower than Baseline's, in %")
        ax.axvline(0, color="0.4", linewidth=1)
        ax.xaxis.set_major_formatter(PercentFormatter(1, symbol=""))
        ax.invert_yaxis()
    label_outside(figure, axes.flat)
    note(figure, about)
    return figure


@laid_out
def risk_curves(points: pd.DataFrame, *, risk: float) -> Figure:
    """Selective risk over coverage, a line for each method and a panel for each pool.

    Args:
        points: as from `risk_points`.
        risk: a limit, drawn as a dashed line; a rate.

    Raises:
        ValueError: a column is missing, or there is no row.
    """
    need(points, ["panel", "method", "coverage", "risk"])
    methods = [each for each in points["method"].unique() if each != PERFECT]
    figure, parts = _grid(points, height=3.1)
    for ax, part in parts:
        for method, line in part.groupby("method", sort=False):
            style = {"color": "0.6", "linewidth": 3}
            if method != PERFECT:
                k = methods.index(method)
                style = {"color": COLORS[k % len(COLORS)], "linestyle": LINES[k % len(LINES)]}
                style |= {"marker": MARKERS[k % len(MARKERS)], "markersize": 4, "linewidth": 1.3}
                style["markevery"] = (3 * k, max(1, len(line) // 5))
            ax.plot(line["coverage"], line["risk"], label=method, **style)
        ax.axhline(risk, color="0.3", linestyle=(0, (2, 2)), linewidth=1, label=f"risk {risk:g}")
        ax.set(xlabel="coverage", ylabel="errors among accepted", ylim=(-0.02, 1.02))
    label_outside(figure, figure.axes)
    return figure


@laid_out
def stacked_errors(table: pd.DataFrame, *, value: str, label: str) -> Figure:
    """A bar for each method, stacked by the kind of sample, a panel for each pool.

    Args:
        table: columns panel, method, kind and `value` (>= 0), one row for each of the three.
        value: column that the lengths show.
        label: of the axis, with its unit.

    Raises:
        ValueError: a column is missing, or there is no row.
    """
    need(table, ["panel", "method", "kind", value])
    kinds = present(table["kind"], FIRST)
    rows = table.groupby("panel")["method"].nunique().max()
    figure, parts = _grid(table, height=max(2.2, 0.9 + 0.22 * rows))
    for ax, part in parts:
        left = pd.Series(0.0, part["method"].unique())
        for kind in present(part["kind"], kinds):
            k = kinds.index(kind) + (RIGHT not in kinds)
            lengths = part[part["kind"] == kind].set_index("method")[value]
            lengths = lengths.reindex(left.index, fill_value=0)
            style = {"color": COLORS[k] if k else "0.8", "hatch": HATCHES[k % len(HATCHES)]}
            style |= {"label": kind, "edgecolor": "white", "linewidth": 0.4, "height": 0.75}
            ax.barh(list(left.index), lengths, left=left, **style)
            left += lengths
        ax.set(xlabel=label)
        ax.grid(visible=False, axis="y")
        ax.invert_yaxis()
    label_outside(figure, figure.axes)
    return figure


def accepted_at_risk(samples: pd.DataFrame, *, risk: float) -> Figure:
    """`risk_table` as bars: what each method accepts at a risk, by kind, in samples."""
    label = f"accepted samples, risk at most {risk:g}"
    return stacked_errors(risk_table(samples, risk=risk), value="accepted", label=label)


def _grid(table: pd.DataFrame, *, height: float) -> tuple[Figure, list[tuple]]:
    """A figure, and (axes, rows) of each panel of the table, two beside each other."""
    parts = list(table.groupby("panel", sort=False))
    columns = min(2, len(parts))
    figure, axes = panels(-(-len(parts) // columns), columns, width=4.4, height=height)
    for ax, (name, _) in zip(axes.flat, parts, strict=False):
        ax.set(title=name)
    for ax in axes.flat[len(parts) :]:
        ax.remove()
    return figure, [(ax, rows) for ax, (_, rows) in zip(axes.flat, parts, strict=False)]
