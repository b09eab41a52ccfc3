"""Tables 5 and 6 and Figures 6 and 7 of Kim et al. 2021, one task at a time; all papers' tasks.

Keys and values are an `Evidence`'s: n rows, and (n, 1 + R) numbers and resamples.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from osnb import metrics
from osnb.plots.draw import absent, facets, finished, heat, lines, panels
from osnb.plots.style import DASH_DOT, DASHED, DOTTED, Figure, finite, laid_out, need, present

KEYS = ["run", "benchmark", "method", "task", "dataset", "seed"]
KINDS = {  # Okabe and Ito's colours
    "right": ("#0072b2", "-", "o", "right"),
    "wrong": ("#d55e00", DASHED, "X", "wrong"),
    "near": ("#009e73", DASH_DOT, "s", "near"),
    "far": ("#222222", DOTTED, "^", "far"),
    "noise": ("#cc79a7", (0, (3, 1, 1, 1, 1, 1)), "D", "noise"),
}
DENSITY = ("benchmark", "method", "kind", "left", "right", "density", "samples", "mean")
SOFTMAX = ["method", "kind", "class", "known", "softmax", "runs"]


def task_points(keys: pd.DataFrame, values: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Each measure of each method, task and data set, the mean over its seeds (Tables 5, 6).

    Args:
        keys: n rows, columns run, benchmark, method, task, dataset and seed.
        values: (n, 1 + R) of each measure, rates in [0, 1]; NaN where a task has no such one.

    Returns:
        One row per benchmark, method, task, dataset and metric, in order of appearance: these,
        value, low and high (where 95 % of the resamples of the mean lie; NaN without resamples),
        sd_seeds (divisor n - 1; NaN for one seed), seeds (how many), and run (names). A measure
        that a task lacks has no row.

    Raises:
        ValueError: a column is missing, or a measure has not one row per key.
    """
    need(keys, KEYS)
    if odd := [name for name, rows in values.items() if len(rows) != len(keys)]:
        raise ValueError(f"need {len(keys)} rows of each measure; not so in {odd}")
    group, rows = KEYS[1:5], []
    for key, part in keys.reset_index(drop=True).groupby(group, sort=False):
        at = part.index.to_numpy()
        runs = {"seeds": len(at), "run": ", ".join(part["run"])}
        for name, column in values.items():
            mean = column[at].mean(axis=0)
            if np.isnan(mean[0]):
                continue
            ends = metrics.interval(mean) if len(mean) > 1 else (mean[0], np.nan, np.nan)
            row = dict(zip(group, key, strict=True)) | {"metric": name}
            row |= dict(zip(("value", "low", "high"), ends, strict=True))
            row["sd_seeds"] = column[at, 0].std(ddof=1) if len(at) > 1 else np.nan
            rows.append(row | runs)
    ends = ["value", "low", "high", "sd_seeds", "seeds", "run"]
    return pd.DataFrame(rows, columns=[*group, "metric", *ends])


def density_points(scores: pd.DataFrame, *, bins: int) -> pd.DataFrame:
    """The lines of Figure 6: density of the largest softmax for each kind of test sample.

    Args:
        scores: one row per sample, columns benchmark, method, kind (right, wrong, near, far,
            noise) and max_softmax in [0, 1]. No row gives no row.
        bins: of equal width between 0 and 1.

    Returns:
        benchmark, method, kind, left, right (of a bin), density (per unit of softmax, area 1),
        samples and mean (both of the kind, not of the bin; the mean is of the softmax itself).

    Raises:
        ValueError: a column is missing, or a softmax is not finite.
    """
    columns = [*DENSITY[:3], "max_softmax"]
    if len(scores) or set(columns) - set(scores):
        need(scores, columns)
    finite(scores["max_softmax"])
    edges, rows = np.linspace(0, 1, bins + 1), []
    for key, part in scores.groupby(columns[:3], sort=False)["max_softmax"]:
        density, _ = np.histogram(part, edges, density=True)
        bars = {"left": edges[:-1], "right": edges[1:], "density": density}
        bars |= {"samples": len(part), "mean": part.mean()}
        rows.append(pd.DataFrame(dict(zip(columns[:3], key, strict=True)) | bars))
    return pd.concat(rows or [pd.DataFrame(columns=DENSITY)], ignore_index=True)


@laid_out
def softmax_densities(points: pd.DataFrame) -> Figure:
    """Figure 6: densities of the largest softmax; a row a benchmark, a column a method.

    A marker stands in the middle of a bin. The density axis is linear up to 1 and logarithmic
    above, and every panel says how many samples each kind has.

    Args:
        points: as from `density_points`; no row gives a figure that says so.

    Raises:
        ValueError: a column is missing, or a kind has no look.
    """
    if none := absent(points, DENSITY):
        return none
    if odd := sorted(set(points["kind"]) - set(KINDS)):
        raise ValueError(f"a kind is one of {', '.join(KINDS)}; got {odd}")
    points = points.assign(middle=(points["left"] + points["right"]) / 2)
    size = {"width": 4.6, "height": 3.1, "sharex": True, "sharey": True}
    figure, parts = facets(points, "benchmark", "method", **size)
    for ax, part, _ in parts:
        kinds = {"by": "kind", "styles": KINDS, "marks": len(part)}
        lines(ax, part.drop(columns=["left", "right"]), "middle", "density", **kinds)
        sizes = part.groupby("kind")["samples"].first()
        counts = ", ".join(f"{name} {sizes[name]}" for name in KINDS if name in sizes)
        ax.set_title(f"{ax.get_title()}\n{counts or 'not run'}")
        ax.set_yscale("symlog", linthresh=1)
        ax.set(xlim=(0, 1), ylim=(0, 1.3 * points["density"].max()))
    return finished(figure, x="largest softmax", y="density")


def mean_softmax_points(
    means: pd.DataFrame, classes: pd.DataFrame, *, at_most: int
) -> pd.DataFrame:
    """Figure 7's cells: the mean softmax vector of each unknown class, the mean over seeds.

    For an unknown class u of n_u samples and a known class c,

        cell(u, c) = 1 / n_u sum_{i in u} softmax_c(x_i)

    Args:
        means: one row per run and class, columns method, class, source and 0 to K - 1 (as text),
            the softmax of each known class, the mean over the class's samples. No row gives none.
        classes: columns class, source, kind (known, near, far, noise), label (of a known class,
            0 to K - 1) and name. Rows and columns of the figure stand in this order.
        at_most: classes of a kind, those whose largest cell is the largest over all methods'
            mean.

    Returns:
        method, kind, class (the name of an unknown one), known (the name of a known one), softmax
        and runs (how many it is the mean of).

    Raises:
        ValueError: a column is missing.
    """
    if means.empty:
        return pd.DataFrame(columns=SOFTMAX)
    need(classes, ["class", "source", "kind", "label", "name"])
    is_known = classes["kind"] == "known"
    names = classes[is_known].sort_values("label").astype({"label": str})
    names = dict(zip(names["label"], names["name"], strict=True))
    need(means, ["method", "class", "source", *names])
    long = classes[~is_known].merge(means, on=["class", "source"]).drop(columns=["class"])
    long = long.rename(columns={"name": "class"}).melt(SOFTMAX[:3], [*names], "known", "softmax")
    long["known"] = long["known"].map(names)
    cells = long.groupby(SOFTMAX[:4], sort=False)["softmax"].agg(["mean", "size"]).reset_index()
    surest = cells.groupby(SOFTMAX[:3])["mean"].max().groupby(["kind", "class"]).mean()
    surest = surest.groupby("kind").nlargest(at_most).index.droplevel(0)
    cells = cells[pd.MultiIndex.from_frame(cells[["kind", "class"]]).isin(surest)]
    return cells.set_axis(SOFTMAX, axis=1).reset_index(drop=True)


@laid_out
def mean_softmax(points: pd.DataFrame) -> Figure:
    """Figure 7: a row an unknown class, a column a known one, a panel a method.

    All panels share one scale from 0 to 1, of colours that get lighter in grey too. A white line
    parts near, far and noise.

    Args:
        points: as from `mean_softmax_points`; rows, columns and panels stand in order of
            appearance. No row gives a figure that says so.

    Raises:
        ValueError: a column is missing.
    """
    if none := absent(points, SOFTMAX):
        return none
    points = points.assign(row=points["kind"] + ": " + points["class"])
    rows, columns = present(points["row"]), present(points["known"])
    starts = np.flatnonzero(~points.drop_duplicates("row")["kind"].duplicated())[1:]
    size = {"width": 1.2 + 0.3 * len(columns), "height": 1.7 + 0.19 * len(rows)}
    figure, parts = facets(points, "method", **size, sharey=True, widest=np.inf)
    for ax, part, _ in parts:
        grid = part.pivot(index="row", columns="known", values="softmax")
        heat(ax, grid.reindex(index=rows, columns=columns), low=0, high=1)
        ax.hlines(starts, 0, len(columns), color="white", linewidth=2.5)
        ax.tick_params(axis="x", rotation=90)
    axes = list(figure.axes)
    finished(figure, x="known class")
    figure.colorbar(axes[-1].collections[0], ax=axes, pad=0.01, label="mean softmax")
    return figure


@laid_out
def method_tasks(table: pd.DataFrame, *, measure: str, lower_is_better: bool = False) -> Figure:
    """One cell per method and task: the number, its colour, and a frame around a task's best.

    Bright is better within a figure, whose scale goes from its worst number to its best. Cells
    without a number are hatched. Methods and tasks stand in the order of the rows.

    Args:
        table: one row per cell, columns method, benchmark, task (a column of the figure is a task
            of a benchmark) and value in [0, 1], NaN where nothing was run.
        measure: what the numbers are, said below.
        lower_is_better: true of FPR and AURC.

    Raises:
        ValueError: a column is missing, there is no row, or a cell comes twice.
    """
    key = ["method", "benchmark", "task"]
    need(table, [*key, "value"])
    if (twice := table.duplicated(key)).any():
        first = table.loc[twice, key].iloc[0]
        raise ValueError(f"each cell has one row; {', '.join(first)} has several")
    tasks = list(table.groupby(key[1:], sort=False).groups)
    cells = table.pivot(index="method", columns=key[1:], values="value").astype(float)
    cells = cells.reindex(index=present(table["method"]), columns=pd.MultiIndex.from_tuples(tasks))
    good = -cells if lower_is_better else cells
    size = {"width": 2.0 + 0.78 * len(tasks), "height": 1.4 + 0.25 * len(cells)}
    figure, axes = panels(1, 1, **size)
    ax, scale = axes[0, 0], {"low": good.min(axis=None), "high": good.max(axis=None)}
    heat(ax, good.to_numpy(), **scale, annot=cells.to_numpy(), fmt=".3f", linewidths=1)
    _inked(ax, good)
    ax.set_yticks(np.arange(len(cells)) + 0.5, cells.index, rotation=0)
    ax.set_xticks(np.arange(len(tasks)) + 0.5, [task for _, task in tasks])
    names = [name for name, _ in tasks]
    for name in dict.fromkeys(names):  # above its columns, a gap of white before the first
        start = names.index(name)
        ax.text(start + names.count(name) / 2, -0.25, name, ha="center", va="bottom", fontsize=9)
        ax.axvline(start, color="white", linewidth=6 * bool(start))
    order = "lower" if lower_is_better else "higher"
    about = f"{measure}, {order} is better; framed: best of the task; hatched: not run"
    return finished(figure, about=about)


def _inked(ax: Axes, good: pd.DataFrame) -> None:
    """Letters that the field lets read, and a frame around the best of each column."""
    for text in ax.texts:
        column, row = map(int, text.get_position())
        is_dark = good.iloc[row, column] <= 0.45 * good.min(axis=None) + 0.55 * good.max(axis=None)
        text.set_color("white" if is_dark else "black")
    for row, column in np.argwhere((good == good.max()).to_numpy()):
        frame = {"fill": False, "edgecolor": "#d55e00", "linewidth": 1.8, "zorder": 4}
        ax.add_patch(Rectangle((column + 0.05, row + 0.06), 0.9, 0.88, **frame))
