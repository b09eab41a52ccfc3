"""Figures 1 to 4 of Kim et al. 2021: what the tasks ask for, FIX images, and where classes lie."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure
from matplotlib.patches import Rectangle

from osnb.plots.described import Figure, panels
from osnb.plots.style import (
    laid_out,
    need,
)

# What a task wants of a kind of sample: colours of the field and of the word in it.
ANSWERS = {"accept": ("#9fc5e0", "black"), "reject": ("#8b1a4a", "white"), "": ("0.95", "black")}
SPLIT = 0.27  # share of the sketch's width left of its columns


@laid_out
def task_sketch(tasks: pd.DataFrame, images: np.ndarray) -> Figure:
    """Figure 1: a row a task, a column a kind of test sample, with a picture of it above.

    Args:
        tasks: columns task, kind and answer (accept, reject, or empty where the task has no such
            samples); tasks and kinds stand in the order of the rows.
        images: (K, 3, S, S) uint8, one for each kind.

    Raises:
        ValueError: a column is missing, an answer is another, or there are not K images.
    """
    need(tasks, ["task", "kind", "answer"])
    rows, kinds = (list(dict.fromkeys(tasks[name])) for name in ("task", "kind"))
    if other := sorted(set(tasks["answer"]) - set(ANSWERS)):
        raise ValueError(f"need accept, reject or nothing as an answer; got {', '.join(other)}")
    _check(images, len(kinds))
    height = 0.42 * len(rows)
    figure = Figure(figsize=(7.4, 1.6 + height))
    above, below = figure.subfigures(2, 1, height_ratios=(1.3, height), hspace=0)
    _pictures(above, kinds, images)
    ax = below.add_axes((SPLIT, 0.02, 1 - SPLIT, 0.94))
    for row in tasks.itertuples():
        _answer(ax, kinds.index(row.kind), rows.index(row.task), row.answer)
    ax.set(xlim=(0, len(kinds)), ylim=(len(rows), 0), xticks=[])
    ax.set_yticks(np.arange(len(rows)) + 0.5, rows)
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    return figure


def _pictures(part: SubFigure, kinds: Sequence[str], images: np.ndarray) -> None:
    width = (1 - SPLIT) / len(kinds)
    for at, (kind, image) in enumerate(zip(kinds, images, strict=True)):
        ax = part.add_axes((SPLIT + at * width, 0.0, width, 0.78))
        ax.imshow(image.transpose(1, 2, 0), interpolation="none")
        ax.set_axis_off()
        ax.set_title(kind)


def _answer(ax: Axes, column: int, row: int, answer: str) -> None:
    color, ink = ANSWERS[answer]
    ax.add_patch(Rectangle((column + 0.03, row + 0.06), 0.94, 0.88, facecolor=color, linewidth=0))
    ax.text(column + 0.5, row + 0.5, answer, ha="center", va="center", color=ink)


@laid_out
def resize_sheet(images: Mapping[str, np.ndarray], names: Sequence[str]) -> Figure:
    """Figure 2: the same pictures in several versions; a row a version, a column a picture.

    Args:
        images: by version, (N, 3, S, S) uint8, S of each version's own.
        names: of the N pictures.

    Raises:
        ValueError: there is no version, or one has another shape or type.
    """
    if not images:
        raise ValueError("need at least one version of the pictures; got none")
    for version in images.values():
        _check(version, len(names))
    figure, axes = panels(len(images), len(names), width=1.6, height=1.7)
    for row, (version, pictures) in zip(axes, images.items(), strict=True):
        for ax, picture in zip(row, pictures, strict=True):
            ax.imshow(picture.transpose(1, 2, 0), interpolation="none")
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        row[0].set_ylabel(version)
    for ax, name in zip(axes[0], names, strict=True):
        ax.set_title(name)
    return figure


def _check(images: np.ndarray, count: int) -> None:
    images = np.asarray(images)
    if images.ndim != 4 or images.shape[:2] != (count, 3) or images.dtype != np.uint8:
        raise ValueError(f"need ({count}, 3, S, S) uint8; got {images.shape} of {images.dtype}")


def roughness(images: np.ndarray) -> np.ndarray:
    """How jagged images are: mean absolute difference between neighbours, in grey levels.

    Args:
        images: (N, 3, S, S) uint8.

    Returns:
        (N,) in [0, 255], over channels and over neighbours to the right and below.
    """
    pixels = np.asarray(images, float)
    steps = [np.abs(np.diff(pixels, axis=axis)).reshape(len(pixels), -1) for axis in (2, 3)]
    return np.concatenate(steps, axis=1).mean(axis=1)


def gathered(
    paths: Mapping[str, Sequence[tuple[str, str]]], *, least: int
) -> dict[str, tuple[tuple[str, str], ...]]:
    """For each class, the path to the lowest node above it that has `least` classes below.

    With it, hundreds of classes become a tree of few rows: see `reduced_tree` and `class_tree`.

    Args:
        paths: for each class its (wnid, name) steps from the root down to the class itself.
        least: number of classes, >= 1; where not even the root has so many, the root.

    Raises:
        ValueError: `least` is below 1.
    """
    if least < 1:
        raise ValueError(f"need at least 1 class; got {least}")
    below = Counter(step for path in paths.values() for step in path[:-1])
    found = {}
    for wnid, path in paths.items():
        full = sum(below[step] >= least for step in path[:-1])  # falls from the root down
        found[wnid] = tuple(path[: max(full, 1)])
    return found
