"""Tables 5 and 6 and Figures 6 and 7 of Kim et al. 2021: one task at a time.

Keys and values are an `osnb.claims.Evidence`'s: n rows, and (n, 1 + R) numbers and resamples.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from osnb import metrics
from osnb.plots.described import Figure, panels
from osnb.plots.style import finite, label_outside, laid_out, need

KEYS = ["run", "benchmark", "method", "task", "dataset", "seed"]
KINDS = {  # colour, line and marker; Okabe and Ito's colours
    "right": ("#0072b2", "-", "o"),
    "wrong": ("#d55e00", (0, (5, 1.5)), "X"),
    "near": ("#009e73", (0, (7, 1.5, 1.5, 1.5)), "s"),
    "far": ("#222222", (0, (1.5, 1.2)), "^"),
    "noise": ("#cc79a7", (0, (3, 1, 1, 1, 1, 1)), "D"),
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
    if odd := [name for name, each in values.items() if len(each) != len(keys)]:
        raise ValueError(f"need {len(keys)} rows of each measure; not so in {odd}")
    group, rows = KEYS[1:5], []
    for key, part in keys.reset_index(drop=True).groupby(group, sort=False):
        at = part.index.to_numpy()
        runs = {"seeds": len(at), "run": ", ".join(part["run"])}
        for name, each in values.items():
            mean = each[at].mean(axis=0)
            if np.isnan(mean[0]):
                continue
            ends = metrics.interval(mean) if len(mean) > 1 else (mean[0], np.nan, np.nan)
            row = dict(zip(group, key, strict=True)) | {"metric": name}
            row |= dict(zip(("value", "low", "high"), ends, strict=True))
            row["sd_seeds"] = each[at, 0].std(ddof=1) if len(at) > 1 else np.nan
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
    if none := _none(points, [*DENSITY]):
        return none
    if odd := sorted(set(points["kind"]) - set(KINDS)):
        raise ValueError(f"a kind is one of {', '.join(KINDS)}; got {odd}")
    benchmarks, methods = (list(dict.fromkeys(points[n])) for n in ("benchmark", "method"))
    shape = {"width": 4.6, "height": 3.1, "sharex": True, "sharey": True}
    figure, axes = panels(len(benchmarks), len(methods), **shape)
    for (row, column), ax in np.ndenumerate(axes):
        is_here = (points["benchmark"] == benchmarks[row]) & (points["method"] == methods[column])
        part = points[is_here]
        sizes = part.groupby("kind")["samples"].first()
        for name in (each for each in KINDS if each in sizes):
            color, line, marker = KINDS[name]
            bars = part[part["kind"] == name]
            middle = (bars["left"] + bars["right"]) / 2
            look = {"color": color, "linestyle": line, "marker": marker, "markersize": 4}
            ax.plot(middle, bars["density"], label=name, linewidth=1.3, **look)
        counts = ", ".join(f"{name} {sizes[name]}" for name in KINDS if name in sizes)
        ax.set_title(f"{methods[column]}, {benchmarks[row]}\n{counts or 'not run'}")
        ax.set_yscale("symlog", linthresh=1)
        ax.set_xlim(0, 1)
    axes[0, 0].set_ylim(0, 1.3 * points["density"].max())  # the panels share it
    for ax in axes[-1]:
        ax.set_xlabel("largest softmax")
    for ax in axes[:, 0]:
        ax.set_ylabel("density")
    label_outside(figure, axes.flat)
    return figure


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
    import seaborn as sns  # here, because it brings pyplot, which other figures do without

    if none := _none(points, SOFTMAX):
        return none
    points = points.assign(row=points["kind"] + ": " + points["class"])
    methods, rows, columns = (list(dict.fromkeys(points[n])) for n in ("method", "row", "known"))
    starts = np.flatnonzero(~points.drop_duplicates("row")["kind"].duplicated())[1:]
    width, height = 1.2 + 0.3 * len(columns), 1.7 + 0.19 * len(rows)
    figure, axes = panels(1, len(methods), width=width, height=height, sharey=True)
    for ax, name in zip(axes[0], methods, strict=True):
        grid = points[points["method"] == name].pivot(index="row", columns="known")["softmax"]
        heat = {"vmin": 0, "vmax": 1, "cmap": "cividis", "cbar": False}
        grid = grid.reindex(index=rows, columns=columns)
        sns.heatmap(grid, ax=ax, xticklabels=True, yticklabels=True, **heat)
        ax.hlines(starts, 0, len(columns), color="white", linewidth=2.5)
        ax.tick_params(axis="x", rotation=90)
        ax.set(title=name, xlabel="known class", ylabel="")
    figure.colorbar(axes[0, -1].collections[0], ax=axes, pad=0.01, label="mean softmax")
    return figure


def _none(frame: pd.DataFrame, columns: list[str]) -> Figure | None:
    """What stands in the place of a figure whose runs were not made; its columns are needed."""
    if len(frame) or set(columns) - set(frame):
        return need(frame, columns)
    figure, axes = panels(1, 1, width=5, height=1)
    axes[0, 0].set_axis_off()
    axes[0, 0].text(0.5, 0.5, "no finished run", ha="center", va="center")
    return figure
