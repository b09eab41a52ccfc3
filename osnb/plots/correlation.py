"""Closed-set accuracy against AUROC, point by point: figures of Vaze et al. 2022."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from osnb import metrics
from osnb.plots import draw
from osnb.plots.style import Figure, laid_out, looks, need

MEASURES = ("accuracy", "auroc")
RHO = ["panel", "points", "rho", "low", "high", "spearman"]
LIMITS = tuple(f"{name}_{end}" for name in MEASURES for end in draw.ENDS)
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
        name: np.array([values[name][places].mean(axis=0) for places in at]).reshape(len(at), size)
        for name in MEASURES
    }
    points = pd.DataFrame([key for key, _ in parts], columns=list(group))
    points["rows"] = [len(places) for places in at]
    for name in MEASURES:
        points[name], points[f"{name}_low"], points[f"{name}_high"] = _ends(means[name].T)
    rhos = [
        {"panel": panel, "points": len(at)} | _rho(*(means[name][at] for name in MEASURES))
        for panel, at in points.groupby("panel", sort=False).indices.items()
    ]
    return points, pd.DataFrame(rhos, columns=RHO)


def _rho(accuracy: np.ndarray, auroc: np.ndarray) -> dict[str, float]:
    """Of (n, 1 + R) each."""
    if len(accuracy) < FEW:
        return {}
    rho, low, high = _ends(_pearson(accuracy, auroc))
    ranks = (pd.DataFrame(side[:, :1]).rank().to_numpy() for side in (accuracy, auroc))
    return {"rho": rho, "low": low, "high": high, "spearman": _pearson(*ranks)[0]}


def _pearson(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(1 + R,) of (n, 1 + R) each; NaN where one does not vary."""
    x, y = (side - side.mean(axis=0) for side in (x, y))
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
        need(found, RHO[:5])
        need(points, ["panel", "series", "mark", *MEASURES, *LIMITS])
    points = points.reindex(columns=[*dict.fromkeys([*points, "series", "mark"])])
    rhos = found.set_index("panel").reindex([*dict.fromkeys([*found["panel"], *empty])])
    wrap = -(-len(rhos) // -(-len(rhos) // 3))
    size = {"width": (4.6, 4, 3.2)[wrap - 1], "height": 3.6, "wrap": wrap}
    figure, parts = draw.facets(rhos.reset_index(), "panel", **size)
    for ax, rho, (name,) in parts:
        part = points[points["panel"] == name]
        _scatter(ax, part, points)
        if not len(part):
            draw.say(ax, empty[name])
            ax.set(xticks=[], yticks=[])
        ax.set_title(_title(name, rho.iloc[0]))
    _legend(parts[0][0], points)
    return draw.finished(figure, x="closed-set accuracy", y="AUROC", about=about)


def _scatter(ax: Axes, part: pd.DataFrame, points: pd.DataFrame) -> None:
    """Points in the colour of their series and the shape of their mark, and their fit."""
    colors, shapes = (looks(points[name].unique()) for name in ("series", "mark"))
    for row in part.to_dict("records"):
        look = {"color": colors[row["series"]]["color"], "marker": shapes[row["mark"]]["marker"]}
        look |= {"markerfacecolor": "white"} if row.get("hollow", False) else {}
        _point(ax, row, look | {"markersize": 6.5})
    ax.locator_params(nbins=6)
    if len(part) >= FEW and part["accuracy"].nunique() > 1:
        slope, start = np.polyfit(part["accuracy"], part["auroc"], 1)
        ends = np.array([part["accuracy"].min(), part["accuracy"].max()])
        ax.plot(ends, start + slope * ends, color="0.6", linewidth=1, zorder=1)


def _point(ax: Axes, row: dict, look: dict) -> None:
    x, y = ([row[f"{name}_{end}"] for end in draw.ENDS] for name in MEASURES)
    draw.points(ax, [row["accuracy"]], [row["auroc"]], look, x_ends=x, y_ends=y)


def _title(name: str, rho: pd.Series) -> str:
    if np.isnan(rho["points"]):
        return f"{name}\n"
    span = "" if np.isnan(rho["low"]) else f" [{rho['low']:.2f}, {rho['high']:.2f}]"
    number = "" if np.isnan(rho["rho"]) else f", $\\rho$ = {rho['rho']:.2f}{span}"
    return f"{name}\n$n$ = {rho['points']:.0f}{number}"


def _legend(ax: Axes, points: pd.DataFrame) -> None:
    """Name colours and shapes by lines without a point."""
    colors, shapes = (looks(points[name].unique()) for name in ("series", "mark"))
    dots = {"linestyle": "none", "markersize": 6.5}
    same = list(colors) == list(shapes)
    for look in colors.values():
        ax.plot([], [], **look | (dots if same else {"linestyle": "-", "marker": "", "lw": 4}))
    for look in () if same else shapes.values():
        ax.plot([], [], **look | dots | {"color": "0.4"})


@laid_out
def accuracy_and_near(points: pd.DataFrame, *, correlation: str) -> Figure:
    """Accuracy on the known classes against AUROC with a near set of unknown ones (Figure 8).

    Without rows the figure says that there is no run.

    Args:
        points: one row a network, columns network (its name), accuracy and auroc in [0, 1], and of
            both, accuracy_low, accuracy_high, auroc_low, auroc_high, the ends of an interval.
        correlation: what to say below about the points as a whole.

    Raises:
        ValueError: a column is missing.
    """
    if none := draw.absent(points, ["network", *MEASURES, *LIMITS]):
        return none
    figure, axes = draw.panels(1, 1, width=6, height=4)
    for row, look in zip(points.to_dict("records"), looks(points["network"]).values(), strict=True):
        _point(axes[0, 0], row, look)
    axes[0, 0].margins(0.08)
    names = {"x": "accuracy on known classes", "y": "AUROC, maximum logit, near unknown"}
    return draw.finished(figure, **names, about=correlation)
