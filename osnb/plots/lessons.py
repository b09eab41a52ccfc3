"""Small figures of the lessons: rules of OSCR, gradients, image sheets, tree distances."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from osnb.plots import described
from osnb.plots.style import LOSSES, Figure, label_outside, laid_out, look, need, present


@laid_out
def oscr(curves: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """OSCR curves of the same scores, counted by several rules: one panel for each but the first.

    The first is drawn dashed in every panel; the area under the other is filled, its number above.

    Args:
        curves: by the name of the rule, (fpr, ccr), each (T,) in [0, 1]; at least two.

    Raises:
        ValueError: there is nothing to compare.
    """
    if len(curves) < 2:
        raise ValueError(f"need at least two curves; got {', '.join(curves) or 'none'}")
    (name, first), *others = curves.items()
    figure, axes = described.panels(1, len(others), width=3.0, height=3.1, sharey=True)
    for ax, (other, (fpr, ccr)) in zip(axes[0], others, strict=True):
        ax.fill_between(
            fpr, ccr, color="#c9d7e6", linewidth=0, label="area by the rule in the title"
        )
        ax.plot(fpr, ccr, "-o", color="#1f4e79", linewidth=1.6, markersize=4)
        label = f"{name}, area {np.trapezoid(first[1], first[0]):.3f}"
        ax.plot(*first, "--", color="#c0504d", linewidth=1.2, label=label)
        ax.set(title=f"{other}, area {np.trapezoid(ccr, fpr):.3f}", xlabel="false positive rate")
        ax.set(xlim=(-0.04, 1.04), ylim=(-0.03, 1.03))
    axes[0, 0].set_ylabel("correct classification rate")
    label_outside(figure, axes[0])
    return figure


@laid_out
def negative_gradient(values: pd.DataFrame) -> Figure:
    """What a negative sample pays for one known class's logit, and how hard it is pushed back.

    Args:
        values: columns logit (of one known class, all others at 0), loss (softmax,
            background, ...), value (nats) and gradient (of value by logit).
    """
    need(values, ["logit", "loss", "value", "gradient"])
    figure, axes = described.panels(1, 2, width=4, height=3, sharex=True)
    for loss in present(values["loss"], list(LOSSES)):
        part = values[values["loss"] == loss].sort_values("logit")
        for ax, column in zip(axes[0], ("value", "gradient"), strict=True):
            ax.plot(part["logit"], part[column], linewidth=1.8, **look(LOSSES, loss))
    for ax, name in zip(axes[0], ("loss, in nats", "derivative of the loss"), strict=True):
        ax.axhline(0, color="0.5", linewidth=0.8, zorder=1)
        ax.set(xlabel="logit of one known class, in nats", ylabel=name)
    label_outside(figure, axes[0, :1])
    return figure


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
    figure = described.Figure(
        figsize=(side * columns + 1.2 * bool(rows), (side + 0.2 * bool(titles)) * height)
    )
    axes = figure.subplots(height, columns, squeeze=False)
    for ax in axes.flat:
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    for ax, image in zip(axes.flat, images, strict=False):
        ax.imshow(image.transpose(1, 2, 0), cmap="gray", vmin=0, vmax=255, interpolation="none")
    for ax, title in zip(axes.flat, titles, strict=False):
        ax.set_title(title, fontsize=7, pad=2)
    for ax, label in zip(axes[:, 0], rows, strict=False):
        ax.set_ylabel(label, rotation=0, ha="right", va="center", fontsize=8)
    return figure


def distance_summary(steps: np.ndarray, distance: np.ndarray) -> pd.DataFrame:
    """Quartiles of a distance between classes at each path length in WordNet.

    Args:
        steps: (P,) integers, edges between the two classes of a pair.
        distance: (P,) distance between their mean features, any unit.

    Returns:
        Frame with one row per path length: steps, pairs, low, q1, median, q3, high, where low
        and high are the 5 % and 95 % points.
    """
    groups = pd.Series(np.asarray(distance)).groupby(np.asarray(steps))
    quantiles = groups.quantile([0.05, 0.25, 0.5, 0.75, 0.95]).unstack()
    quantiles.columns = ["low", "q1", "median", "q3", "high"]
    quantiles.insert(0, "pairs", groups.size())
    return quantiles.rename_axis("steps").reset_index()


@laid_out
def distance_boxes(summary: pd.DataFrame, *, title: str) -> Figure:
    """Feature distance against WordNet path length: a box per length, whiskers at 5 and 95 %.

    Args:
        summary: as from `distance_summary`.
        title: what to say above, such as the rank correlation over all pairs.
    """
    need(summary, ["steps", "pairs", "low", "q1", "median", "q3", "high"])
    figure, axes = described.panels(1, 1, width=6.5, height=3.4)
    ax = axes[0, 0]
    boxes = summary.rename(columns={"low": "whislo", "median": "med", "high": "whishi"})
    ax.bxp(
        boxes.to_dict("records"),
        positions=summary["steps"],
        widths=0.6,
        showfliers=False,
        patch_artist=True,
        boxprops={"facecolor": "#c9d7e6"},
        medianprops={"color": "black"},
    )
    names = [f"{s}\n({n})" for s, n in zip(summary["steps"], summary["pairs"], strict=True)]
    ax.set_xticks(summary["steps"], names, fontsize=7)
    ax.set(xlabel="path length in WordNet, in edges (pairs of classes)", title=title)
    ax.set(ylabel="distance of mean features", ylim=(0, None))
    return figure
