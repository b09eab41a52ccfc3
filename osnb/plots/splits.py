"""Figures 5 and 9 to 11 of Vaze et al. 2022: unknown classes by how near the known ones they are.

A bin is known, easy, medium or hard; what else a frame calls a bin is drawn in grey.
"""

from textwrap import shorten

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from osnb.plots.described import Figure, panels
from osnb.plots.style import (
    finite,
    label_outside,
    laid_out,
    need,
    present,
)

# Colour and hatch of a bin; neighbours differ in grey too.
BINS = {
    "known": ("#6b7a8f", ""),
    "easy": ("#9fc5e0", ""),
    "easy, one list only": ("#e3eef6", "////"),
    "medium": ("#d9822b", ""),
    "hard": ("#8b1a4a", ""),
    "hard, one list only": ("#e8c9d6", "\\\\\\\\"),
    "neither": ("0.85", ""),
}

WHITE = {"constant_values": 255}  # between two pictures


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
    parts = [
        {"bin": name, "left": edges[:-1], "right": edges[1:]}
        | {"classes": np.histogram(table.loc[table["bin"] == name, value], edges)[0]}
        for name in present(table["bin"], list(BINS))
    ]
    return pd.concat(map(pd.DataFrame, parts), ignore_index=True)


@laid_out
def bin_histograms(points: pd.DataFrame, *, scale: str) -> Figure:
    """Classes over a scale of likeness or distance, the bins stacked on each other.

    Args:
        points: as from `bin_points`.
        scale: what the value is, with its unit.
    """
    need(points, ["bin", "left", "right", "classes"])
    figure, axes = panels(1, 1, width=7, height=3.2)
    below = np.zeros(points.groupby("bin").size().max())
    for name in present(points["bin"], list(BINS)):
        part = points[points["bin"] == name].sort_values("left")
        width, count = part["right"] - part["left"], part["classes"].to_numpy()
        settings = _look(name) | {"label": f"{name} ({count.sum()})", "align": "edge"}
        axes[0, 0].bar(part["left"], count, width, below, **settings)
        below = below + count
    axes[0, 0].set(xlabel=scale, ylabel="classes")
    label_outside(figure, axes[0])
    return figure


def _look(name: str) -> dict:
    color, hatch = BINS.get(name, ("0.7", "...."))
    return {"facecolor": color, "hatch": hatch, "edgecolor": "0.3", "linewidth": 0.4}


@laid_out
def shared_levels(counts: pd.DataFrame) -> Figure:
    """What unknown classes have in common with their nearest known class: a panel a data set.

    Args:
        counts: columns dataset, level (what is shared, in words), bin and classes (a count);
            panels, and levels from the top down, stand in the order of the rows.
    """
    need(counts, ["dataset", "level", "bin", "classes"])
    names = list(dict.fromkeys(counts["dataset"]))
    figure, axes = panels(1, len(names), width=4.4, height=2.6)
    for ax, name in zip(axes[0], names, strict=True):
        _level_bars(ax, counts[counts["dataset"] == name])
        ax.set(title=name, xlabel="unknown classes")
    axes[0, 0].set_ylabel("shared with a known class")
    label_outside(figure, axes[0])
    return figure


def _level_bars(ax: Axes, counts: pd.DataFrame) -> None:
    levels = list(dict.fromkeys(counts["level"]))
    start = np.zeros(len(levels))
    for name in present(counts["bin"], list(BINS)):
        part = counts[counts["bin"] == name].groupby("level")["classes"].sum()
        count = part.reindex(levels, fill_value=0).to_numpy()
        ax.barh(range(len(levels)), count, left=start, label=name, **_look(name))
        start = start + count
    for row, total in enumerate(start):
        ax.annotate(f"{total:.0f}", (total, row), (3, 0), textcoords="offset points", va="center")
    ax.set_yticks(range(len(levels)), levels)
    ax.set(ylim=(len(levels) - 0.4, -0.6), xlim=(0, 1.15 * start.max()))


@laid_out
def class_sheet(classes: pd.DataFrame, images: np.ndarray) -> Figure:
    """Pictures of known classes, each beside the unknown classes that are nearest to it.

    Args:
        classes: N rows, columns row (number of the known class), bin, name and value (how near
            the class is to the known one, NaN for the known one itself).
        images: (N, M, 3, S, S) uint8, M pictures of each.

    Raises:
        ValueError: a column is missing, or images are of another shape or type.
    """
    need(classes, ["row", "bin", "name", "value"])
    images = np.asarray(images)
    if images.ndim != 5 or len(images) != len(classes) or images.dtype != np.uint8:
        raise ValueError(f"need ({len(classes)}, M, 3, S, S) uint8; got {images.shape}")
    rows, columns = list(dict.fromkeys(classes["row"])), present(classes["bin"], list(BINS))
    figure, axes = panels(len(rows), len(columns), width=9 / len(columns), height=1.35)
    for ax in axes.flat:
        ax.set_axis_off()
    for pictures, row in zip(images, classes.itertuples(), strict=True):
        ax = axes[rows.index(row.row), columns.index(row.bin)]
        strip = np.concatenate([np.pad(p, ((0, 0), (0, 0), (0, 1)), **WHITE) for p in pictures], 2)
        ax.imshow(strip[:, :, :-1].transpose(1, 2, 0), interpolation="none")
        near = "" if pd.isna(row.value) else f", {row.value:.2f}"
        ax.set_title(f"{row.bin}{near}\n{shorten(row.name, 26, placeholder=' ...')}", fontsize=8)
    return figure
