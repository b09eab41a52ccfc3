"""Unknown classes near the known ones, and many of them: Section 5 of Vaze et al. 2022.

A bin is known, easy, medium or hard; what else a frame calls a bin is drawn in grey.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from osnb import metrics
from osnb.plots import draw
from osnb.plots.draw import ENDS, bars, facets, finished, lines, panels
from osnb.plots.style import UNITS, Figure, finite, laid_out, looks, need, present

# Colour, line, marker and label of one series each; neighbours differ in grey too.
SERIES = {
    "MSP, weaker network": ("#9a9a9a", "-", "o", "MSP, weaker network"),
    "MLS, weaker network": ("#d9822b", "-", "s", "MLS, weaker network"),
    "MSP": ("#4f9bb5", "-", "v", "MSP"),
    "MLS": ("#8b1a4a", "-", "^", "MLS"),
    "ARPL+": ("#2a6f4e", "-", "D", "ARPL+"),
}
GROUPS = {
    "random": ("0.72", "-", ".", "random"),
    "easy": ("#4f9bb5", "-", "o", "easy"),
    "medium": ("#d9822b", "-", "s", "medium"),
    "hard": ("#8b1a4a", "-", "^", "hard"),
    "": ("0.4", "-", "x", "unknown"),
}
BINS = {  # colour and hatch; neighbours differ in grey too
    "known": ("#6b7a8f", ""),
    "easy": ("#9fc5e0", ""),
    "easy, one list only": ("#e3eef6", "////"),
    "medium": ("#d9822b", ""),
    "hard": ("#8b1a4a", ""),
    "hard, one list only": ("#e8c9d6", "\\\\\\\\"),
    "neither": ("0.85", ""),
}
SIDES = {"paper": "ImageNet, as printed", "ours": "our runs, in its place"}
MEASURES = ("auroc", "average_precision")
LABELS = ("AUROC", "sd of AUROC over draws", "average precision")
NUMBERS = ["method", "measure", "classes", "mean", "low", "high", "sd", "expected_sd", "chance"]


def bin_points(table: pd.DataFrame, *, value: str, bins: int) -> pd.DataFrame:
    """How many classes of each bin lie where on a scale; the edges are common to all.

    Args:
        table: one row a class, columns bin and `value`.
        value: the column to be counted, any unit.
        bins: number of steps of the scale, >= 1.

    Returns:
        One row per bin and step: bin, left, right (in the unit of `value`) and classes (a count).
        A value at an edge counts above it, the largest one in the last step.

    Raises:
        ValueError: a column is missing, or a value is not finite.
    """
    need(table, ["bin", value])
    finite(table[value])
    edges = np.histogram_bin_edges(table[value], bins)
    parts = []
    for name in present(table["bin"], BINS):
        classes, _ = np.histogram(table.loc[table["bin"] == name, value], edges)
        steps = {"bin": name, "left": edges[:-1], "right": edges[1:], "classes": classes}
        parts.append(pd.DataFrame(steps))
    return pd.concat(parts, ignore_index=True)


def _fills(column: pd.Series, sizes: pd.Series | None = None) -> dict[str, dict]:
    """Settings of bars of each bin; its label says how many classes it has."""
    fills = {}
    for name in present(column, BINS):
        color, hatch = BINS.get(name, ("0.7", "...."))
        fills[name] = {"facecolor": color, "hatch": hatch, "edgecolor": "0.3", "linewidth": 0.4}
        fills[name]["label"] = name if sizes is None else f"{name} ({sizes[name]})"
    return fills


@laid_out
def bin_histograms(points: pd.DataFrame, *, scale: str) -> Figure:
    """Classes over a scale of likeness or distance, the bins stacked on each other.

    Args:
        points: as from `bin_points`.
        scale: what the value is, with its unit.
    """
    need(points, ["bin", "left", "right", "classes"])
    figure, axes = panels(1, 1, width=7, height=3.2)
    counts = points.pivot(index=["left", "right"], columns="bin", values="classes")
    left, right = (counts.index.get_level_values(end) for end in ("left", "right"))
    fills = _fills(points["bin"], counts.sum())
    bars(axes[0, 0], counts, fills, at=left, size=right - left, upright=True, align="edge")
    return finished(figure, x=scale, y="classes")


@laid_out
def shared_levels(counts: pd.DataFrame) -> Figure:
    """What unknown classes have in common with their nearest known class: a panel a data set.

    Args:
        counts: columns dataset, level (what is shared, in words), bin and classes (a count);
            panels, and levels from the top down, stand in the order of the rows.
    """
    need(counts, ["dataset", "level", "bin", "classes"])
    figure, parts = facets(counts, "dataset", width=4.4, height=2.6)
    for ax, part, _ in parts:
        cells = {"index": "level", "columns": "bin", "values": "classes"}
        wide = part.pivot_table(**cells, aggfunc="sum", fill_value=0, sort=False)
        bars(ax, wide, _fills(part["bin"]))
        ax.bar_label(ax.containers[-1], [f"{n:.0f}" for n in wide.sum(axis=1)], padding=3)
        ax.set_xlim(0, 1.15 * wide.sum(axis=1).max())
    return finished(figure, x="unknown classes", y="shared with a known class")


@laid_out
def split_gains(table: pd.DataFrame) -> Figure:
    """Figure 1b: AUROC on easy and on hard unknown classes, the paper's beside ours.

    Args:
        table: columns method, open_split, paper, ours, low and high, rates in [0, 1]; NaN is not
            drawn; and over (what was resampled). Splits stand in the order of the rows.
    """
    need(table, ["method", "open_split", *SIDES, "low", "high", "over"])
    splits, methods = present(table["open_split"]), present(table["method"], SERIES)
    figure, axes = panels(1, 2, width=4, height=3.3, sharey=True)
    for ax, (side, title) in zip(axes[0], SIDES.items(), strict=True):
        for place, (method, look) in enumerate(looks(methods, SERIES).items()):
            rows = table[table["method"] == method].dropna(subset=side)
            aside = 0.14 * (place - (len(methods) - 1) / 2)
            at = [splits.index(name) + aside for name in rows["open_split"]]
            ends = [rows[end] for end in ENDS] if side == "ours" else None
            draw.points(ax, at, rows[side], look, y_ends=ends)
        ax.set(title=title, xlim=(-0.6, len(splits) - 0.4))
        ax.set_xticks(range(len(splits)), [name.capitalize() for name in splits])
    units = [UNITS.get(unit, unit) for unit in table["over"].dropna().unique()]
    about = f"bar: 95 % bootstrap interval over test {' or '.join(units)}"
    return finished(figure, y="AUROC", about=about)


def class_points(table: pd.DataFrame, *, score: str) -> pd.DataFrame:
    """AUROC of each unknown class alone, against all known samples.

    Args:
        table: scores tables of all runs, with a column run.
        score: the scoring rule's column.

    Returns:
        One row per run and unknown class: run, group, class, images (a count), auroc in [0, 1].

    Raises:
        ValueError: a column is missing, or a run has no known sample.
    """
    need(table, ["run", "role", "group", "class", score])
    rows = []
    for run, part in table.groupby("run"):
        known = part.loc[part["role"] == "known", score].to_numpy()
        unknown = part[part["role"] == "unknown"]
        for (group, name), one in unknown.groupby(["group", "class"], observed=True):
            rows.append((run, group, name, len(one), metrics.auroc(known, one[score].to_numpy())))
    return pd.DataFrame(rows, columns=["run", "group", "class", "images", "auroc"])


@laid_out
def class_likeness(points: pd.DataFrame) -> Figure:
    """AUROC of each unknown class over its likeness to the closest known one: a panel a data set.

    Args:
        points: columns data (a panel's title), group, similarity (cosine) and auroc in [0, 1].
    """
    need(points, ["data", "group", "similarity", "auroc"])
    figure, parts = facets(points, "data", width=4.2, height=3.3, sharey=True)
    for ax, part, _ in parts:
        for group, look in looks(present(part["group"], GROUPS), GROUPS).items():
            place = part.loc[part["group"] == group, ["similarity", "auroc"]]
            draw.points(ax, *place.to_numpy().T, look)
        ax.axhline(0.5, color="0.4", linewidth=0.8, linestyle=(0, (1, 2)), label="random score")
    return finished(figure, x="cosine of traits, closest known class", y="AUROC of the class")


def number_points(
    table: pd.DataFrame, *, score: str, numbers: Sequence[int], draws: int, seed: int
) -> pd.DataFrame:
    """AUROC and average precision if n unknown classes are drawn, with replacement.

    If all classes have as many images, AUROC is the mean of the AUROCs of the classes drawn, so
    its mean over draws does not depend on n and its standard deviation is that of one class
    divided by the root of n. Methods share the draws.

    Args:
        table: scores tables, with a column method; all unknown rows are drawn from.
        score: the scoring rule's column.
        numbers: of classes, each >= 1.
        draws: for each number.
        seed: of the draws.

    Returns:
        `NUMBERS`: one row per method, measure (auroc, average_precision) and number of classes;
        mean, the range low to high of 95 % of the draws, their sd, expected_sd (by the root law;
        NaN for average precision) and chance (a random score's value), all in [0, 1].

    Raises:
        ValueError: a column is missing, or a method lacks known or unknown samples.
    """
    need(table, ["method", "role", "label", "pred", "class", score])
    rows = []
    for method, part in table.groupby("method", sort=False):
        known, unknown = (part[part["role"] == role] for role in ("known", "unknown"))
        sides = known[score].to_numpy(), unknown[score].to_numpy()
        right = (known["pred"] == known["label"]).to_numpy()
        names, of = np.unique(unknown["class"].to_numpy(str), return_inverse=True)
        one = np.std([metrics.auroc(sides[0], sides[1][of == c]) for c in range(len(names))])
        for n in numbers:
            drawn = np.random.default_rng([seed, n]).integers(len(names), size=(draws, n))
            copies = np.array([np.bincount(row, minlength=len(names))[of] for row in drawn])
            weights = np.ones((draws, len(known)), np.uint16), copies.astype(np.uint16)
            values = metrics.bootstrap_summary(sides[0], right, sides[1], weights=weights)
            share = (copies.sum(axis=1) / (copies.sum(axis=1) + len(known))).mean()
            more = (one / np.sqrt(n), 0.5), (np.nan, share)
            for measure, (sd, chance) in zip(MEASURES, more, strict=True):
                value = values[measure]
                row = (value.mean(), *np.percentile(value, [2.5, 97.5]), value.std())
                rows.append((method, measure, n, *row, sd, chance))
    return pd.DataFrame(rows, columns=NUMBERS)


@laid_out
def class_numbers(points: pd.DataFrame) -> Figure:
    """AUROC, its standard deviation and average precision over the number of classes drawn.

    Args:
        points: as from `number_points`.
    """
    need(points, NUMBERS)
    figure, axes = panels(1, 3, width=3.2, height=3.2)
    auroc, precision = (points[points["measure"] == m].sort_values("classes") for m in MEASURES)
    by = {"by": "method", "styles": SERIES}
    for ax, part in ((axes[0, 0], auroc), (axes[0, 2], precision)):
        lines(ax, part, "classes", "mean", marks=99, **by)
        for _, one in part.groupby("method"):
            ax.plot(one["classes"], one["chance"], color="0.4", linestyle=":", label="random score")
    spread = auroc.drop(columns=[*ENDS])
    lines(axes[0, 1], spread, "classes", "sd", marks=99, **by, linestyle="none")
    lines(axes[0, 1], spread, "classes", "expected_sd", **by, linestyle="--", label="")
    axes[0, 1].set_yscale("log")
    for ax, name in zip(axes[0], LABELS, strict=True):
        ax.set(xscale="log", ylabel=name)
    about = "band: 95 % of the draws; dashed: sd of one class by the root of n"
    return finished(figure, x="unknown classes drawn", about=about)
