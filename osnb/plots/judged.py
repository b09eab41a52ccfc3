"""Images that a threshold judges wrongly: surest accepted unknown, least sure rejected known."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

MOST = 10
SQUARE = 0.31  # half the width of a square image, in tenths of the figure
TITLES = {
    "accepted": "surest of the accepted unknown",
    "rejected": "least sure of the rejected known",
}

Images = np.ndarray | Callable[[pd.DataFrame], np.ndarray]


def judged(
    table: pd.DataFrame, *, score: str, threshold: float, most: int = MOST
) -> dict[str, pd.DataFrame]:
    """The samples that a threshold gets wrong by most.

    Args:
        table: the scores table of one run.
        score: column of a rule that needs no label.
        threshold: a score at it is accepted.
        most: samples of each kind, at most.

    Returns:
        accepted: rows of unknown samples (of negatives where no role is unknown) with a score of
        at least the threshold, highest first; rejected: rows of known samples below it, lowest
        first. Ties keep the order of the table. A column `place` is the row's position in it.
    """
    rows = table.assign(place=range(len(table))).sort_values(score, kind="stable")
    other = "unknown" if (table["role"] == "unknown").any() else "negative"
    top = table.assign(place=range(len(table))).sort_values(score, ascending=False, kind="stable")
    accepted = top[(top["role"] == other) & (top[score] >= threshold)]
    rejected = rows[(rows["role"] == "known") & (rows[score] < threshold)]
    return {"accepted": accepted.head(most), "rejected": rejected.head(most)}


def pictures(images: Images, rows: pd.DataFrame, samples: int) -> np.ndarray:
    """(R, H, W, 3) in [0, 1] of R rows that `judged` gave, of a table of `samples` rows.

    Raises:
        ValueError: no such shape or type, a number of images other than of rows, or floats
            outside of [0, 1].
    """
    whole = images if isinstance(images, np.ndarray) else None
    if whole is not None and len(whole) != samples:
        raise ValueError(f"need an image for each of {samples} rows; got {len(whole)}")
    found = np.asarray(images(rows) if whole is None else whole[rows["place"]])
    if found.ndim not in {3, 4} or (found.ndim == 4 and found.shape[3] not in {1, 3}):
        raise ValueError(f"need images (N, H, W), (N, H, W, 1) or (N, H, W, 3); got {found.shape}")
    if len(found) != len(rows):
        raise ValueError(f"need an image for each of {len(rows)} rows; got {len(found)}")
    found = found if found.ndim == 4 else found[..., None]
    found = found / 255 if found.dtype == np.uint8 else found.astype(np.float64)
    if not ((found >= 0) & (found <= 1)).all():
        raise ValueError("need images of uint8, or of floats in [0, 1]")
    return np.broadcast_to(found, (*found.shape[:3], 3))


def strip(ax: Axes, rows: pd.DataFrame, shown: np.ndarray, *, score: str, name: str) -> None:
    """Images side by side; below each its score and what it was taken for, or is."""
    ax.set_title(TITLES[name], loc="left")
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.set(xticks=[], yticks=[])
    if not len(rows):
        ax.text(0, 0.5, "none at this threshold", transform=ax.transAxes, va="center", fontsize=8)
        return
    column, word = ("pred", "as") if name == "accepted" else ("label", "is")
    ax.set_xlim(-0.5, MOST - 0.5)
    for place, image in enumerate(shown):
        half = min(SQUARE * image.shape[1] / image.shape[0], 0.48)
        box = (place - half, place + half, 0, 1)
        ax.imshow(image, extent=box, aspect="auto", interpolation="none")
    labels = [f"{s:.3f}, {word} {c}" for s, c in zip(rows[score], rows[column], strict=True)]
    ax.set(xlim=(-0.5, MOST - 0.5), ylim=(0, 1))
    ax.set_xticks(range(len(rows)), labels, fontsize=7)
    ax.tick_params(length=0)
