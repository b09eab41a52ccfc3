"""One threshold of one run, seen on curve, scores, counts and images."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from osnb import metrics
from osnb.evidence.frames import histograms, judged, operating_counts
from osnb.plots.draw import bare, check_images, heat, legend, picture, steps
from osnb.plots.style import ROLES, SCORES, Figure, laid_out, looks, room_above

OUTCOMES = {"right": "accepted,\nright", "wrong": "accepted,\nwrong", "rejected": "rejected"}
MOST = 10
SQUARE = 0.31  # half the width of a square image, in tenths of the figure
TITLES = {
    "accepted": "surest of the accepted unknown",
    "rejected": "least sure of the rejected known",
}

Images = np.ndarray | Callable[[pd.DataFrame], np.ndarray]


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
        check_images(images, len(table))
    strips = 0 if images is None else 2
    figure = Figure(figsize=(10, 3.1 + 1.15 * strips))
    grid = figure.add_gridspec(1 + strips, 3, height_ratios=[3.1, *[0.75] * strips])
    curve, scores, cells = (figure.add_subplot(grid[0, k]) for k in range(3))
    _curves(curve, table, score, counts)
    steps(scores, histograms(table, score, "role", bins=30))
    scores.axvline(threshold, color="black", linewidth=1)
    scores.set(xlabel=SCORES.get(score, score), ylabel="density", ylim=(0, None))
    scores.set_title(f"threshold {threshold:.3g}")
    _cells(cells, counts)
    wrong = judged(table, score=score, threshold=threshold, most=MOST) if strips else {}
    for place, (name, rows) in enumerate(wrong.items(), 1):
        ax = figure.add_subplot(grid[place, :])
        pixels = images(rows) if callable(images) else images[rows["place"]]
        check_images(pixels, len(rows))
        _strip(ax, rows, pixels, score=score, name=name)
    legend(figure, [scores])
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
    ax.set(xlabel="false positive rate", ylabel="correct classification rate", title="OSCR")
    ax.set(xlim=(-0.02, 1.02), ylim=(0, room_above(correct.mean())))


def _cells(ax: Axes, counts: pd.DataFrame) -> None:
    """Counts and shares of a role, shaded by the share."""
    counts = counts.set_index("role")
    shares = counts[[*OUTCOMES]].div(counts["samples"], axis=0)
    texts = counts[[*OUTCOMES]].astype(str) + "\n" + shares.map("{:.2f}".format)
    texts.loc[texts.index != "known", "right"] = "–"  # not possible
    look = {"cmap": "Greys", "annot": texts, "fmt": "", "annot_kws": {"color": "black"}}
    heat(ax, shares.rename(columns=OUTCOMES), low=0, high=2, **look)  # black stays readable
    ax.set_title("samples, and share of the role")


def _strip(ax: Axes, rows: pd.DataFrame, images: np.ndarray, *, score: str, name: str) -> None:
    """Images side by side; below each its score and what it was taken for, or is."""
    bare(ax)
    ax.set_title(TITLES[name], loc="left")
    if not len(rows):
        ax.text(0, 0.5, "none at this threshold", transform=ax.transAxes, va="center", fontsize=8)
    for place, pixels in enumerate(images):
        half = min(SQUARE * pixels.shape[2] / pixels.shape[1], 0.48)
        picture(ax, pixels, extent=(place - half, place + half, 0, 1), aspect="auto")
    column, word = ("pred", "as") if name == "accepted" else ("label", "is")
    labels = [f"{s:.3f}, {word} {c}" for s, c in zip(rows[score], rows[column], strict=True)]
    ax.set(xlim=(-0.5, MOST - 0.5), ylim=(0, 1))
    ax.set_xticks(range(len(rows)), labels, fontsize=7)
    ax.tick_params(length=0)
