"""Pictures: sheets of images, on a scale of confidence too, heat maps, one threshold seen whole."""

from collections.abc import Callable, Sequence
from textwrap import fill, shorten

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from osnb import metrics
from osnb.evidence.frames import histograms, judged, operating_counts
from osnb.plots import draw
from osnb.plots.bars import BINS
from osnb.plots.style import ROLES, SCORES, Figure, laid_out, looks, present, room_above

# Figure 1: where a kind of sample comes from, in the colour of the paper's box.
KINDS = {"far": ("far-OoD", "#009e73"), "near": ("near-OoD", "#7a4fbf")}
KINDS |= dict.fromkeys(("wrong", "right"), ("in-distribution", "#d55e00"))
GAP, APART = 3, 0.15  # white: pixels inside a pair, half of the inches between pairs
OUTCOMES = {"right": "accepted,\nright", "wrong": "accepted,\nwrong", "rejected": "rejected"}
MOST = 10
SQUARE = 0.31  # half the width of a square image, in tenths of the figure
STRIPS = {  # title, and the column that a sample is shown with, under this word
    "accepted": ("surest of the accepted unknown", "pred", "as"),
    "rejected": ("least sure of the rejected known", "label", "is"),
}

Images = np.ndarray | Callable[[pd.DataFrame], np.ndarray]
SOFTMAX = ["printed", "kind", "class", "known", "softmax"]


@laid_out
def contact_sheet(
    images: Sequence[np.ndarray],
    *,
    columns: int,
    side: float = 0.8,
    rows: Sequence[str] = (),
    titles: Sequence[str] = (),
) -> Figure:
    """Images side by side, row by row, enlarged without smoothing.

    Args:
        images: N of them, (3, H, W) or (1, H, W) uint8.
        columns: images in a row.
        side: of a place in inches, at most.
        rows: a label for each row, or none.
        titles: one above each image, or above those of the first row, or none.

    Raises:
        ValueError: an image of another shape or type, or a label too many or too few.
    """
    draw.check_images(images, len(images))
    wanted = {"rows": {-(-len(images) // columns)}, "titles": {len(images), columns}}
    for name, labels in (("rows", rows), ("titles", titles)):
        if len(labels) not in {0, *wanted[name]}:
            raise ValueError(f"need {max(wanted[name])} {name}, or none; got {len(labels)}")
    side = min(side, 8.6 / columns)
    size = side, side + 0.2 * bool(titles)
    return draw.sheet(images, columns=columns, size=size, rows=rows, titles=titles)


@draw.figure_of("row", "bin", "closest", "name", "value")
def class_sheet(classes: pd.DataFrame, images: np.ndarray) -> Figure:
    """Figures 1b, 5, 9 to 11: open classes, left of each the closed class that is nearest to it.

    Args:
        classes: N rows, columns row (a number, or a text, which is shown), bin, closest (the closed
            class), name (the open one) and value (how near, or how far, they are; or NaN).
        images: (N, 2, M, 1 or 3, S, S) uint8, M pictures of either.

    Raises:
        ValueError: a column is missing, or images are of another shape or type.
    """
    of = 2 * images.shape[2]
    every = [pixels for pair in images for side in pair for pixels in side]
    draw.check_images(every, len(classes) * of)
    rows, columns = present(classes["row"]), present(classes["bin"], BINS)
    places = [None] * (len(rows) * len(columns))
    titles = [""] * len(places)
    strips = [[np.concatenate(list(side), axis=2) for side in pair] for pair in images]
    for (left, right), row in zip(strips, classes.itertuples(), strict=True):
        at = rows.index(row.row) * len(columns) + columns.index(row.bin)
        gap = np.full((*left.shape[:2], GAP), 255, np.uint8)
        places[at] = np.concatenate([left, gap, right], axis=2)
        names = [shorten(name, 40, placeholder=" ...") for name in (row.closest, row.name)]
        between = " | " if max(map(len, names)) <= 20 else " |\n"
        number = f", {row.value:.3g}" * pd.notna(row.value)
        titles[at] = f"{row.bin}{number}\n{between.join(names)}"
    wide, labels = 9 / len(columns), [fill(x, 14) for x in rows if isinstance(x, str)]
    size = wide, 0.5 + wide / of
    figure = draw.sheet(places, columns=len(columns), size=size, rows=labels, titles=titles)
    figure.get_layout_engine().set(w_pad=APART)
    return figure


@draw.figure_of("name", "kind", "prediction")
def confidence_scale(samples: pd.DataFrame, images: np.ndarray) -> Figure:
    """Figure 1: test samples in the order of the confidence that a model should give them.

    A frame says where a sample comes from; what stands right of the dashed line is accepted.

    Args:
        samples: N rows, the least sure first, columns name, kind (far, near, wrong or right) and
            prediction; right ones last.
        images: (N, 1 or 3, S, S) uint8.

    Raises:
        ValueError: a column is missing, a kind is another or out of order, or there are not N
            images.
    """
    ranks = [list(KINDS).index(kind) if kind in KINDS else -1 for kind in samples["kind"]]
    if -1 in ranks or ranks != sorted(ranks):
        came = ", ".join(samples["kind"])
        raise ValueError(f"need the kinds {', '.join(KINDS)}, in this order; got {came}")
    draw.check_images(images, len(samples))
    titles = samples["name"] + "\n\N{RIGHTWARDS ARROW} " + samples["prediction"]
    figure = draw.sheet(images, columns=len(images), size=(1.15, 2.0), titles=titles)
    for ax, kind in zip(figure.axes, samples["kind"], strict=True):
        word, color = KINDS[kind]
        ax.set_xlabel(f"{kind}\n{word}")
        ax.spines[:].set(visible=True, color=color, linewidth=3)
    at = sum(kind != "right" for kind in samples["kind"]) / len(samples)
    line = {"transform": figure.transFigure, "color": "black", "linestyle": "--"}
    figure.add_artist(Line2D([at, at], [0.12, 1], gid="threshold", **line))
    figure.supxlabel("least confident \N{LONG RIGHTWARDS ARROW} most confident")
    return figure


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


@draw.figure_of(*SOFTMAX, or_none=True)
def mean_softmax(points: pd.DataFrame) -> Figure:
    """Figure 7: a row of panels a kind, a column a method; in a panel a row an unknown class.

    All panels share one scale from 0 to 1, of colours that get lighter in grey too, and the known
    classes, which are named below.

    Args:
        points: as from `kim2021.mean_softmax`; rows, columns and panels stand in order of
            appearance. No row gives a figure that says so.

    Raises:
        ValueError: a column is missing.
    """
    columns = present(points["known"])
    most = points.groupby("kind")["class"].nunique().max()
    size = (0.8 + 0.15 * len(columns), 0.5 + 0.18 * most)
    figure, parts = draw.facets(points, "kind", "printed", size=size, sharex=True, sharey="row")
    for ax, part, (kind, _) in parts:
        grid = part.pivot(index="class", columns="known", values="softmax")
        rows = present(points.loc[points["kind"] == kind, "class"])
        draw.heat(ax, grid.reindex(index=rows, columns=columns), low=0, high=1)
        ax.tick_params(axis="x", rotation=90, labelsize=8)
        ax.tick_params(axis="y", rotation=0, labelsize=8)
    axes = list(figure.axes)
    draw.finished(figure, x="known class")
    figure.colorbar(axes[-1].collections[0], ax=axes, pad=0.01, label="mean softmax")
    return figure


@draw.figure_of("printed", "benchmark", "task", "value")
def method_tasks(table: pd.DataFrame, *, measure: str, lower_is_better: bool = False) -> Figure:
    """One cell per method and task: the number, its colour, and a frame around a task's best.

    Bright is better within a figure, whose scale goes from its worst number to its best. Cells
    without a number are hatched. Methods and tasks stand in the order of the rows.

    Args:
        table: one row per cell, columns printed, benchmark, task (a column of the figure is a task
            of a benchmark) and value in [0, 1], NaN where nothing was run.
        measure: what the numbers are, said below.
        lower_is_better: true of FPR and AURC.

    Raises:
        ValueError: a column is missing, there is no row, or a cell comes twice.
    """
    key = ["printed", "benchmark", "task"]
    if (twice := table.duplicated(key)).any():
        first = table.loc[twice, key].iloc[0]
        raise ValueError(f"each cell has one row; {', '.join(first)} has several")
    tasks = list(table.groupby(key[1:], sort=False).groups)
    cells = table.pivot(index="printed", columns=key[1:], values="value").astype(float)
    cells = cells.reindex(index=present(table["printed"]), columns=pd.MultiIndex.from_tuples(tasks))
    good = -cells if lower_is_better else cells
    figure, axes = draw.panels(1, 1, width=2 + 0.78 * len(tasks), height=1.4 + 0.25 * len(cells))
    ax, scale = axes[0, 0], {"low": good.min(axis=None), "high": good.max(axis=None)}
    draw.heat(ax, good.to_numpy(), **scale, annot=cells.to_numpy(), fmt=".3f", linewidths=1)
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
    return draw.finished(figure, about=about)


@draw.figure_of("year", "who", "word", "tasks")
def timeline(works: pd.DataFrame) -> Figure:
    """Works by year, oldest on top, with a marker for each task that a work speaks of.

    Args:
        works: a row for each: year, who, word (what it calls the task) and tasks, split by "; ".

    Raises:
        ValueError: a column is missing.
    """
    tasks = works["tasks"].str.split("; ")
    lanes, places = list(tasks.explode().unique()), range(len(works))
    figure, axes = draw.panels(1, 1, width=9, height=1 + 0.32 * len(works))
    for place, names in zip(places, tasks, strict=True):
        x, y = [lanes.index(name) for name in names], [place] * len(names)
        axes[0, 0].plot(x, y, marker="o", markersize=8, linewidth=3, color="#0072b2")
    labels = [f"{work.who}: {work.word}  {work.year}" for work in works.itertuples()]
    axes[0, 0].set_yticks(places, labels, fontsize=11)
    axes[0, 0].set_xticks(range(len(lanes)), [fill(lane, 17) for lane in lanes], fontsize=11)
    axes[0, 0].set(xlim=(-0.5, len(lanes) - 0.5), ylim=(len(works) - 0.5, -0.5))
    axes[0, 0].tick_params(bottom=False, top=True, labelbottom=False, labeltop=True)
    return figure


def _inked(ax: Axes, good: pd.DataFrame) -> None:
    """Letters that the field lets read, and a frame around the best of each column."""
    for text in ax.texts:
        column, row = map(int, text.get_position())
        is_dark = good.iloc[row, column] <= 0.45 * good.min(axis=None) + 0.55 * good.max(axis=None)
        text.set_color("white" if is_dark else "black")
    for row, column in np.argwhere((good == good.max()).to_numpy()):
        frame = {"fill": False, "edgecolor": "#d55e00", "linewidth": 1.8, "zorder": 4}
        ax.add_patch(Rectangle((column + 0.05, row + 0.06), 0.9, 0.88, **frame))


@laid_out
def operating_point(
    table: pd.DataFrame, *, score: str, threshold: float, images: Images | None = None
) -> Figure:
    """One threshold three times: on the OSCR curve, over the scores, and in counts.

    With images, two rows of them below: the unknown samples that are accepted with the highest
    scores, and the known ones that are rejected with the lowest.

    Args:
        table: the scores table of one run, with known samples and others.
        score: column of a rule that needs no label, such as max_softmax.
        threshold: in the unit of the score; a score at it is accepted.
        images: (N, 3, H, W) or (N, 1, H, W) uint8, one for each row of the table; or a function
            that gives those of some of its rows; or none.

    Raises:
        ValueError: a column, the known or the other samples are missing, a score is not
            finite, or the images do not fit the rows.
    """
    counts = operating_counts(table, score=score, threshold=threshold)
    if "known" not in set(counts["role"]) or len(counts) == 1:
        raise ValueError(f"need known samples and others; got {', '.join(counts['role'])}")
    if not callable(images) and images is not None:
        draw.check_images(images, len(table))
    strips = 0 if images is None else 2
    figure = Figure(figsize=(10, 3.1 + 1.15 * strips))
    grid = figure.add_gridspec(1 + strips, 3, height_ratios=[3.1, *[0.75] * strips])
    curve, scores, cells = (figure.add_subplot(grid[0, k]) for k in range(3))
    _curves(curve, table, score, counts)
    draw.steps(scores, histograms(table, score, "role", bins=30))
    scores.axvline(threshold, color="black", linewidth=1)
    scores.set(xlabel=SCORES.get(score, score), ylabel="density", ylim=(0, None))
    scores.set_title(f"threshold {threshold:.3g}")
    _cells(cells, counts)
    wrong = judged(table, score=score, threshold=threshold, most=MOST) if strips else {}
    for place, (name, rows) in enumerate(wrong.items(), 1):
        ax = figure.add_subplot(grid[place, :])
        pixels = images(rows) if callable(images) else images[rows["place"]]
        draw.check_images(pixels, len(rows))
        _strip(ax, rows, pixels, score=score, name=name)
    draw.legend(figure, [scores])
    return figure


def _curves(ax: Axes, table: pd.DataFrame, score: str, counts: pd.DataFrame) -> None:
    """OSCR of each role, a mark where the threshold is."""
    known = table[table["role"] == "known"]
    correct = (known["pred"] == known["label"]).to_numpy()
    rate = counts.set_index("role")["rate"]
    for role, look in looks(counts["role"][1:], ROLES).items():
        other = table.loc[table["role"] == role, score].to_numpy()
        marker = look.pop("marker")
        ax.plot(*metrics.oscr(known[score].to_numpy(), correct, other), **look)
        ax.plot(rate[role], rate["known"], marker, color=look["color"], mec="black", ms=8)
    ax.set(xlabel="false positive rate", ylabel="correct classification rate")
    ax.set(xlim=(-0.02, 1.02), ylim=(0, room_above(correct.mean())))
    ax.set_title("OSCR, and the threshold")


def _cells(ax: Axes, counts: pd.DataFrame) -> None:
    """Counts and shares of a role, shaded by the share."""
    counts = counts.set_index("role")
    shares = counts[[*OUTCOMES]].div(counts["samples"], axis=0)
    texts = counts[[*OUTCOMES]].astype(str) + "\n" + shares.map("{:.2f}".format)
    texts.loc[texts.index != "known", "right"] = "–"  # not possible
    look = {"cmap": "Greys", "annot": texts, "fmt": "", "annot_kws": {"color": "black"}}
    draw.heat(ax, shares.rename(columns=OUTCOMES), low=0, high=2, **look)  # black stays readable
    ax.set_title("images, and share of the row")


def _strip(ax: Axes, rows: pd.DataFrame, images: np.ndarray, *, score: str, name: str) -> None:
    """Images side by side; below each its score and what it was taken for, or is."""
    title, column, word = STRIPS[name]
    draw.bare(ax)
    ax.set_title(title, loc="left")
    if not len(rows):
        ax.text(0, 0.5, "none at this threshold", transform=ax.transAxes, va="center", fontsize=8)
    for place, pixels in enumerate(images):
        half = min(SQUARE * pixels.shape[2] / pixels.shape[1], 0.48)
        draw.picture(ax, pixels, extent=(place - half, place + half, 0, 1), aspect="auto")
    labels = [f"{s:.3f}, {word} {c}" for s, c in zip(rows[score], rows[column], strict=True)]
    ax.set(xlim=(-0.5, MOST - 0.5), ylim=(0, 1))
    ax.set_xticks(range(len(rows)), labels, fontsize=7)
    ax.tick_params(length=0)
