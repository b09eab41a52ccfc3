"""Tables 5 and 6 and Figures 6 and 7 of Kim et al. 2021: one task at a time.

Keys and values are an `osnb.claims.Evidence`'s: n rows, and (n, 1 + R) numbers and resamples.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from osnb import metrics
from osnb.plots.described import Figure, panels
from osnb.plots.style import (
    finite,
    label_outside,
    laid_out,
    need,
    note,
)

KEYS = ["run", "benchmark", "method", "task", "dataset", "seed"]
KINDS = {  # colour, line and marker; Okabe and Ito's colours
    "right": ("#0072b2", "-", "o"),
    "wrong": ("#d55e00", (0, (5, 1.5)), "X"),
    "near": ("#009e73", (0, (7, 1.5, 1.5, 1.5)), "s"),
    "far": ("#222222", (0, (1.5, 1.2)), "^"),
    "noise": ("#cc79a7", (0, (3, 1, 1, 1, 1, 1)), "D"),
}
DENSITY = ("benchmark", "method", "kind", "left", "right", "density", "samples")
REST = "the rest"


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
        and samples (of the kind, not of the bin).

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
        bars = {"left": edges[:-1], "right": edges[1:], "density": density, "samples": len(part)}
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


def predicted_points(scores: pd.DataFrame) -> pd.DataFrame:
    """Figure 7's cells, as far as scores tables go: the largest softmax by predicted class.

    For an unknown class u of n_u samples and a known class c,

        cell(u, c) = 1 / n_u sum_{i in u, pred_i = c} max_k softmax_k(x_i)

    the share of u that is predicted c, times the mean largest softmax of that share. It is at
    most the mean softmax of c, which Figure 7 shows; a row's sum is the mean largest softmax, and
    what is missing to 1 lies on classes that were not predicted: no scores table says on which.

    Args:
        scores: unknown samples, columns method, kind, class (the unknown one), predicted (a known
            one) and max_softmax in [0, 1]. No row gives no row.

    Returns:
        method, kind, class, predicted (a known class, or "the rest", 1 minus the row's sum),
        share, max_softmax (its mean; both NaN in the rest), value (their product), samples (n_u).

    Raises:
        ValueError: a column is missing.
    """
    columns = ["method", "kind", "class", "predicted", "max_softmax"]
    if len(scores) or set(columns) - set(scores):
        need(scores, columns)
    group = columns[:3]
    found = scores.groupby(columns[:4], sort=False)["max_softmax"]
    cells = found.agg(["size", "mean"]).reset_index().rename(columns={"mean": "max_softmax"})
    cells["samples"] = cells.groupby(group)["size"].transform("sum")
    cells["share"] = cells["size"] / cells["samples"]
    cells["value"] = cells["share"] * cells["max_softmax"]
    rest = cells.groupby([*group, "samples"], sort=False)["value"].sum().rsub(1).reset_index()
    both = pd.concat([cells, rest.assign(predicted=REST)] if len(cells) else [cells])
    return both[[*columns[:4], "share", "max_softmax", "value", "samples"]].reset_index(drop=True)


@laid_out
def predicted_softmax(points: pd.DataFrame, *, known: list[str]) -> Figure:
    """Figure 7 redrawn: a row an unknown class, a column a predicted one, a panel a method.

    Args:
        points: as from `predicted_points`; rows stand in order of appearance, panels too. No row
            gives a figure that says so.
        known: the columns: known classes, whether predicted or not. "the rest" comes last.

    Raises:
        ValueError: a column is missing, or a predicted class is not among the known ones.
    """
    import seaborn as sns  # here, because it brings pyplot, which other figures do without

    if none := _none(points, ["method", "kind", "class", "predicted", "value"]):
        return none
    if odd := sorted(set(points["predicted"]) - {*known, REST}):
        raise ValueError(f"predicted classes are among the known ones; got {odd}")
    methods = list(dict.fromkeys(points["method"]))
    points = points.assign(row=points["kind"] + ": " + points["class"])
    rows, columns = list(dict.fromkeys(points["row"])), [*known, REST]
    width, height = 1.2 + 0.3 * len(columns), 1.7 + 0.19 * len(rows)
    figure, axes = panels(1, len(methods), width=width, height=height, sharey=True)
    for ax, name in zip(axes[0], methods, strict=True):
        cells = points[points["method"] == name].pivot(index="row", columns="predicted")["value"]
        grid = cells.reindex(index=rows, columns=columns).fillna(0)
        heat = {"vmin": 0, "vmax": 1, "cmap": "cividis", "cbar": False}
        sns.heatmap(grid, ax=ax, xticklabels=True, yticklabels=True, **heat)
        ax.axvline(len(known), color="white", linewidth=2.5)
        ax.tick_params(axis="x", rotation=90)
        ax.set(title=name, xlabel="predicted class", ylabel="")
    figure.colorbar(axes[0, -1].collections[0], ax=axes, pad=0.01, label="share x mean")
    note(figure, f"{REST}: softmax of the classes that were not predicted")
    return figure


def _none(frame: pd.DataFrame, columns: list[str]) -> Figure | None:
    """What stands in the place of a figure whose runs were not made; its columns are needed."""
    if len(frame) or set(columns) - set(frame):
        return need(frame, columns)
    figure, axes = panels(1, 1, width=5, height=1)
    axes[0, 0].set_axis_off()
    axes[0, 0].text(0.5, 0.5, "no finished run", ha="center", va="center")
    return figure
