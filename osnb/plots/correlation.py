"""Figures 2, 3, 4 and 6 of Vaze et al. 2022: closed-set accuracy against AUROC, point by point."""

from collections.abc import Mapping, Sequence
from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from osnb import metrics
from osnb.plots.described import Figure, panels
from osnb.plots.style import (
    laid_out,
    need,
    note,
)

MEASURES = ("accuracy", "auroc")
# Neighbours differ in grey too (Okabe and Ito's colours, the light yellow left out).
COLORS = ("#222222", "#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#7f7f7f")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
FOUND = ("panel", "points", "rho", "low", "high", "spearman")
LIMITS = tuple(f"{name}_{end}" for name in MEASURES for end in ("low", "high"))
FEW = 3  # two points lie on a line whatever they are


def correlation_points(
    rows: pd.DataFrame, values: Mapping[str, np.ndarray], *, group: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Accuracy and AUROC of each point, and how they correlate over the points of a panel.

    A point is the mean of its rows (over splits, over seeds). Over the n points of a panel,

        rho = sum_i (a_i - a) (b_i - b) / sqrt(sum_i (a_i - a)^2 sum_i (b_i - b)^2)

    is Pearson's, and Spearman's with ranks in the place of a and b (ties share the mean rank).
    Its interval is that of the resamples: other classes, the same points. How rho would change
    with other points (methods, data sets, trainings) it does not say.

    Args:
        rows: one row per run and rule; its index is a position in `values`, any number of times.
        values: (n, 1 + R) of accuracy and of auroc, in [0, 1]; column 0 is the number itself.
        group: columns that a point is known by, first of all `panel`.

    Returns:
        The points: `group`, rows (how many it is the mean of), and of both measures the number,
        low and high (95 %). The panels: panel, points, rho, low, high, spearman; NaN below three
        points, or if one measure does not vary, and without resamples for low and high.

    Raises:
        ValueError: a column or a measure is missing.
    """
    missing = [n for n in group if n not in rows] + [n for n in MEASURES if n not in values]
    if missing or "panel" not in group:
        raise ValueError(f"need panel and {', '.join((*group, *MEASURES))}; missing {missing}")
    parts = list(rows.groupby(list(group), sort=False))
    at = [part.index.to_numpy() for _, part in parts]
    size = values["accuracy"].shape[1]
    means = {
        name: np.array([values[name][each].mean(axis=0) for each in at]).reshape(len(at), size)
        for name in MEASURES
    }
    points = pd.DataFrame([key for key, _ in parts], columns=list(group))
    points["rows"] = [len(each) for each in at]
    for name in MEASURES:
        points[name], points[f"{name}_low"], points[f"{name}_high"] = _ends(means[name].T)
    found = [
        {"panel": panel, "points": len(each)} | _rho(*(means[name][each] for name in MEASURES))
        for panel, each in points.groupby("panel", sort=False).indices.items()
    ]
    return points, pd.DataFrame(found, columns=list(FOUND))


def _rho(accuracy: np.ndarray, auroc: np.ndarray) -> dict[str, float]:
    """Of (n, 1 + R) each."""
    if len(accuracy) < FEW:
        return {}
    rho, low, high = _ends(_pearson(accuracy, auroc))
    ranks = (pd.DataFrame(each[:, :1]).rank().to_numpy() for each in (accuracy, auroc))
    return {"rho": rho, "low": low, "high": high, "spearman": _pearson(*ranks)[0]}


def _pearson(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(1 + R,) of (n, 1 + R) each; NaN where one does not vary."""
    x, y = (each - each.mean(axis=0) for each in (x, y))
    below = np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))
    return np.divide((x * y).sum(axis=0), below, out=np.full(len(below), np.nan), where=below > 0)


def _ends(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The number and its interval, resamples without a number left out; NaN if there are none."""
    if len(values) == 1 or (values.ndim == 1 and np.isnan(values[1:]).all()):
        return values[0], values[0] * np.nan, values[0] * np.nan
    kept = values if values.ndim > 1 else np.r_[values[0], values[1:][~np.isnan(values[1:])]]
    return tuple(metrics.interval(kept))


@laid_out
def accuracy_auroc(
    points: pd.DataFrame, found: pd.DataFrame, *, empty: Mapping[str, str], about: str
) -> Figure:
    """Closed-set accuracy against AUROC, a panel for each row of `found`.

    Colour says the series, the marker's shape the mark; where both are the same the legend says
    so once. Bars are 95 % intervals. The grey line is that of least squares.

    Args:
        points: as from `correlation_points`, with columns series and mark, and hollow (bool) if
            some markers are not to be filled.
        found: as from `correlation_points`; panels stand in the order of its rows.
        empty: what to say in a panel without points; each gets a panel after the others.
        about: what bars and fillings are, said below.

    Raises:
        ValueError: a column is missing, or nothing is to be drawn.
    """
    if len(found) or not empty:
        need(found, FOUND[:5])
        need(points, ["panel", "series", "mark", *MEASURES, *LIMITS])
    names = list(dict.fromkeys([*found["panel"], *empty]))
    columns = -(-len(names) // (rows := -(-len(names) // 3)))
    figure, axes = panels(rows, columns, width=(4.6, 4, 3.2)[columns - 1], height=3.6)
    looks = _looks(points)
    for ax, name in zip(axes.flat, names, strict=False):
        part = points[points["panel"] == name]
        _scatter(ax, part, looks)
        if not len(part):
            ax.text(0.5, 0.5, empty[name], ha="center", va="center", transform=ax.transAxes)
            ax.set(xticks=[], yticks=[])
        ax.set(title=_title(name, found[found["panel"] == name]))
        ax.set(xlabel="closed-set accuracy", ylabel="AUROC")
    for ax in axes.flat[len(names) :]:
        ax.remove()
    _legend(figure, looks)
    note(figure, about)
    return figure


def _looks(points: pd.DataFrame) -> tuple[dict[str, str], dict[str, str]]:
    """Colour of each series, shape of each mark, in the order of the points."""
    names = [points.get(name, pd.Series(dtype=str)).unique() for name in ("series", "mark")]
    return dict(zip(names[0], cycle(COLORS))), dict(zip(names[1], cycle(MARKERS)))


def _scatter(ax: Axes, part: pd.DataFrame, looks: tuple[dict, dict]) -> None:
    for row in part.to_dict("records"):
        color, x, y = looks[0][row["series"]], row["accuracy"], row["auroc"]
        bars = {f"{axis}err": _bar(row, name) for axis, name in zip("xy", MEASURES, strict=True)}
        ax.errorbar(x, y, **bars, fmt="none", ecolor=color, elinewidth=0.7, alpha=0.4)
        face = "white" if row.get("hollow", False) else color
        shape = {"marker": looks[1][row["mark"]], "markersize": 6.5, "markerfacecolor": face}
        ax.plot(x, y, linestyle="none", color=color, zorder=3, **shape)
    ax.locator_params(nbins=6)
    if len(part) >= FEW and part["accuracy"].nunique() > 1:
        slope, start = np.polyfit(part["accuracy"], part["auroc"], 1)
        ends = np.array([part["accuracy"].min(), part["accuracy"].max()])
        ax.plot(ends, start + slope * ends, color="0.6", linewidth=1, zorder=1)


def _bar(row: Mapping, name: str) -> np.ndarray | None:
    """(2, 1) lengths below and above; None without an interval."""
    reach = np.array([row[name] - row[f"{name}_low"], row[f"{name}_high"] - row[name]])
    return None if np.isnan(reach).any() else reach.clip(min=0)[:, None]


def _title(name: str, found: pd.DataFrame) -> str:
    if found.empty:
        return f"{name}\n"
    _, n, rho, low, high = found.iloc[0][list(FOUND[:5])]
    span = "" if np.isnan(low) else f" [{low:.2f}, {high:.2f}]"
    return f"{name}\n$n$ = {n}" + ("" if np.isnan(rho) else f", $\\rho$ = {rho:.2f}{span}")


def _legend(figure: Figure, looks: tuple[dict, dict]) -> None:
    colors, shapes = looks
    dots = {"linestyle": "none", "markersize": 6.5}
    if list(colors) == list(shapes):
        handles = {n: Line2D([], [], color=colors[n], marker=shapes[n], **dots) for n in colors}
    else:
        handles = {n: Line2D([], [], color=color, linewidth=4) for n, color in colors.items()}
        handles |= {n: Line2D([], [], color="0.4", marker=m, **dots) for n, m in shapes.items()}
    columns = int(figure.get_figwidth() / 1.6)
    if handles:
        figure.legend(handles.values(), handles, loc="outside upper center", ncols=columns)
