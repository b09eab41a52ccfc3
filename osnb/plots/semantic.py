"""Section 5 of Vaze et al. 2022: unknown classes near the known ones, and many of them."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from osnb import metrics
from osnb.plots.described import Figure, panels
from osnb.plots.style import (
    label_outside,
    laid_out,
    need,
    note,
    present,
)

# Colour and marker of one series each; neighbours differ in grey too.
SERIES = {
    "MSP, weaker network": ("#9a9a9a", "o"),
    "MLS, weaker network": ("#d9822b", "s"),
    "MSP": ("#4f9bb5", "v"),
    "MLS": ("#8b1a4a", "^"),
    "ARPL+": ("#2a6f4e", "D"),
}
GROUPS = {
    "random": ("0.72", "."),
    "easy": ("#4f9bb5", "o"),
    "medium": ("#d9822b", "s"),
    "hard": ("#8b1a4a", "^"),
}
SIDES = {"paper": "ImageNet, as printed", "ours": "our runs, in its place"}
LABELS = ("AUROC", "sd of AUROC over draws", "average precision")
MEASURES = ("auroc", "average_precision")
UNITS = {"class": "classes", "sample": "images"}
NUMBERS = ["method", "measure", "classes", "mean", "low", "high", "sd", "expected_sd", "chance"]


@laid_out
def split_gains(table: pd.DataFrame) -> Figure:
    """Figure 1b: AUROC on easy and on hard unknown classes, the paper's beside ours.

    Args:
        table: columns method, open_split, paper, ours, low and high, rates in [0, 1]; NaN is not
            drawn; and over (what was resampled). Splits stand in the order of the rows.
    """
    need(table, ["method", "open_split", *SIDES, "low", "high", "over"])
    splits, methods = list(dict.fromkeys(table["open_split"])), present(table["method"], [*SERIES])
    figure, axes = panels(1, 2, width=4, height=3.3, sharey=True)
    for ax, (side, title) in zip(axes[0], SIDES.items(), strict=True):
        for place, method in enumerate(methods):
            rows = table[table["method"] == method].dropna(subset=side)
            aside = 0.14 * (place - (len(methods) - 1) / 2)
            at = [splits.index(name) + aside for name in rows["open_split"]]
            spread = (rows[side] - rows["low"], rows["high"] - rows[side])
            bars = np.maximum(spread, 0) if side == "ours" else None
            ax.errorbar(at, rows[side], yerr=bars, linestyle="none", **_marks(SERIES, method))
        ax.set(title=title, xlim=(-0.6, len(splits) - 0.4))
        ax.set_xticks(range(len(splits)), [name.capitalize() for name in splits])
    axes[0, 0].set_ylabel("AUROC")
    units = [UNITS.get(unit, unit) for unit in table["over"].dropna().unique()]
    note(figure, f"bar: 95 % bootstrap interval over test {' or '.join(units)}")
    label_outside(figure, axes[0])
    return figure


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
    names = list(dict.fromkeys(points["data"]))
    figure, axes = panels(1, len(names), width=4.2, height=3.3, sharey=True)
    for ax, name in zip(axes[0], names, strict=True):
        part = points[points["data"] == name]
        for group in present(part["group"], [*GROUPS]):
            place = part.loc[part["group"] == group, ["similarity", "auroc"]].to_numpy().T
            ax.plot(*place, linestyle="none", **_marks(GROUPS, group))
        ax.axhline(0.5, color="0.4", linewidth=0.8, linestyle=(0, (1, 2)), label="random score")
        ax.set(title=name, xlabel="cosine of traits, closest known class")
    axes[0, 0].set_ylabel("AUROC of the class")
    label_outside(figure, axes[0])
    return figure


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
            copies = np.array([np.bincount(each, minlength=len(names))[of] for each in drawn])
            weights = np.ones((draws, len(known)), np.uint16), copies.astype(np.uint16)
            found = metrics.bootstrap_summary(sides[0], right, sides[1], weights=weights)
            share = (copies.sum(axis=1) / (copies.sum(axis=1) + len(known))).mean()
            more = (one / np.sqrt(n), 0.5), (np.nan, share)
            for measure, (sd, chance) in zip(MEASURES, more, strict=True):
                value = found[measure]
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
    for method in present(points["method"], [*SERIES]):
        rows = points[points["method"] == method].sort_values("classes")
        auroc, precision = (rows[rows["measure"] == measure] for measure in MEASURES)
        _draws(axes[0, 0], auroc, method)
        _draws(axes[0, 2], precision, method)
        marks = _marks(SERIES, method)
        axes[0, 1].plot(auroc["classes"], auroc["sd"], linestyle="none", **marks)
        axes[0, 1].plot(auroc["classes"], auroc["expected_sd"], "--", color=marks["color"])
    axes[0, 1].set_yscale("log")
    for ax, label in zip(axes[0], LABELS, strict=True):
        ax.set(xscale="log", xlabel="unknown classes drawn", ylabel=label)
    note(figure, "band: 95 % of the draws; dashed: sd of one class by the root of n")
    label_outside(figure, axes[0])
    return figure


def _draws(ax: Axes, rows: pd.DataFrame, method: str) -> None:
    marks = _marks(SERIES, method)
    ax.plot(rows["classes"], rows["mean"], **marks)
    ax.fill_between(rows["classes"], rows["low"], rows["high"], color=marks["color"], alpha=0.15)
    ax.plot(rows["classes"], rows["chance"], color="0.4", linestyle=":", label="random score")


def _marks(styles: dict, name: str) -> dict:
    look = dict(zip(("color", "marker"), styles.get(name, ("0.4", "x")), strict=True))
    return look | {"label": name or "unknown"}
