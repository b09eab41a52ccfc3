"""Pictures: sheets of images, and the tasks of Kim et al. 2021 (Figures 1 and 2)."""

from collections.abc import Mapping, Sequence
from textwrap import shorten

import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap

from osnb.plots.draw import heat, picture, sheet
from osnb.plots.semantic import BINS
from osnb.plots.style import Figure, laid_out, need, present

# What a task wants of a kind of sample: colours of the field.
ANSWERS = {"": "0.95", "accept": "#9fc5e0", "reject": "#8b1a4a"}


@laid_out
def contact_sheet(
    images: np.ndarray, *, columns: int, rows: Sequence[str] = (), titles: Sequence[str] = ()
) -> Figure:
    """Small images side by side, row by row, enlarged without smoothing.

    Args:
        images: (N, 3, S, S) or (N, 1, S, S) uint8.
        columns: images in a row.
        rows: a label for each row, or none.
        titles: (N,) one above each image, or none.

    Raises:
        ValueError: images of another shape or type, or a label too many or too few.
    """
    images = np.asarray(images)
    if images.ndim != 4 or images.shape[1] not in {1, 3} or images.dtype != np.uint8:
        raise ValueError(f"need (N, 1 or 3, S, S) uint8; got {images.shape} {images.dtype}")
    height = -(-len(images) // columns)
    for name, labels, wanted in (("rows", rows, height), ("titles", titles, len(images))):
        if len(labels) not in {0, wanted}:
            raise ValueError(f"need {wanted} {name}, or none; got {len(labels)}")
    side = min(0.8, 8.6 / columns)
    size = side, side + 0.2 * bool(titles)
    return sheet(images, columns=columns, size=size, rows=rows, titles=titles)


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
    rows, columns = present(classes["row"]), present(classes["bin"], BINS)
    places = [None] * (len(rows) * len(columns))
    titles = [""] * len(places)
    gap = ((0, 0), (0, 0), (0, 1))  # of white, between two pictures
    for pixels, row in zip(images, classes.itertuples(), strict=True):
        at = rows.index(row.row) * len(columns) + columns.index(row.bin)
        side = np.concatenate([np.pad(p, gap, constant_values=255) for p in pixels], axis=2)
        places[at] = side[:, :, :-1]
        near = "" if pd.isna(row.value) else f", {row.value:.2f}"
        titles[at] = f"{row.bin}{near}\n{shorten(row.name, 26, placeholder=' ...')}"
    return sheet(places, columns=len(columns), size=(9 / len(columns), 1.35), titles=titles)


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
    pictures = [pixels for version in images.values() for pixels in version]
    rows = list(images)
    return sheet(pictures, columns=len(names), size=(1.5, 1.6), rows=rows, titles=names)


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
    rows, kinds = present(tasks["task"]), present(tasks["kind"])
    if other := sorted(set(tasks["answer"]) - set(ANSWERS)):
        raise ValueError(f"need accept, reject or nothing as an answer; got {', '.join(other)}")
    _check(images, len(kinds))
    height = 0.42 * len(rows)
    figure = Figure(figsize=(7.4, 1.6 + height))
    grid = figure.add_gridspec(2, len(kinds), height_ratios=(1.1, height))
    for at, (kind, pixels) in enumerate(zip(kinds, images, strict=True)):
        ax = figure.add_subplot(grid[0, at])
        picture(ax, pixels)
        ax.set_title(kind)
    answers = tasks.pivot(index="task", columns="kind", values="answer").loc[rows, kinds]
    codes = answers.map(list(ANSWERS).index)
    look = {"cmap": ListedColormap([*ANSWERS.values()]), "annot": answers, "fmt": ""}
    heat(figure.add_subplot(grid[1, :]), codes, low=0, high=2, linewidths=3, **look)
    figure.axes[-1].set_xticks([])
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
