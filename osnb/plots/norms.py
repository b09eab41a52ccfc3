"""Figure 7 of Vaze et al. 2022 (appendix B): lengths of features while a network trains."""

from collections.abc import Iterator, Sequence
from textwrap import shorten

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from osnb.plots.described import Figure, panels
from osnb.plots.style import (
    ROLE_STYLES,
    band,
    label_outside,
    laid_out,
    look,
    need,
    note,
)

# Column of a history, then colour, line, marker and label; neighbours differ in grey too.
NORMS = {f"norm_{role}": ROLE_STYLES[role] for role in ("known", "unknown")}
HEAD = {"norm_of_classes": ("0.2", "-", "v", "head's rows")}
RULES = {
    "auroc_max_logit": ("#1f77b4", "-", "o", "MLS"),
    "auroc_max_softmax": ("#e08214", (0, (5, 1.5)), "s", "MSP"),
    "auroc_feature_norm": ("#542788", (0, (1.5, 1.2)), "D", "norm alone"),
}
QUANTITIES = {"features": NORMS, "head's rows": HEAD, "AUROC": RULES}
SWEEP = {
    "norm_known": "norm of known",
    "ratio": "known / unknown",
    "norm_of_classes": "norm of head's rows",
    "auroc_max_logit": "AUROC, MLS",
}
DECAYS = [
    ("#222222", "-", "o"),
    ("#1b9e77", (0, (5, 1.5)), "s"),
    ("#c0504d", (0, (7, 1.5, 1.5, 1.5)), "^"),
    ("#7b6fb0", (0, (1.5, 1.2)), "D"),
    ("#a6761d", (0, (3, 1)), "v"),
]
CLASSES = [
    *(("#0072b2", "o"), ("#d55e00", "s"), ("#009e73", "^"), ("#cc79a7", "D"), ("#56b4e9", "v")),
    *(("#b8860b", "P"), ("#222222", "X"), ("#8c6bb1", "<"), ("#66a61e", ">"), ("#7f3b08", "h")),
]
COLUMNS = ["features", "weight_decay", "epoch", *NORMS, *HEAD, *RULES]


@laid_out
def feature_norms(history: pd.DataFrame) -> Figure:
    """Norms of features and of the head's rows, and AUROC, epoch by epoch: panels a to j.

    Panels a to c show networks with two features, d to f the others, both with the least weight
    decay that there is; g to j the others by weight decay. Several runs of one kind are drawn as
    their mean, in a band from the smallest to the largest. A kind without a run says so.

    Args:
        history: one row per run and epoch; columns features (D), weight_decay, epoch, norm_known,
            norm_unknown, norm_of_classes (>= 0, unit of the features), auroc_max_logit,
            auroc_max_softmax and auroc_feature_norm, in [0, 1]. May be without rows.

    Raises:
        ValueError: a column is missing.
    """
    history = _checked(history, COLUMNS)
    history = history.assign(ratio=history["norm_known"] / history["norm_unknown"])
    plane, wide = (history[mask] for mask in (history["features"] == 2, history["features"] != 2))
    figure = Figure(figsize=(9.2, 6.6))
    axes = list(_axes(figure))
    for part, row, other in ((plane, axes[:3], "2"), (wide, axes[3:6], "> 2")):
        part = part[part["weight_decay"] == part["weight_decay"].min()]
        size = "/".join(map(str, sorted(set(part["features"])))) or other
        for ax, (title, lines) in zip(row, QUANTITIES.items(), strict=True):
            _lines(ax, part, lines)
            ax.set(title=f"{title}, D = {size}", ylabel="AUROC" if lines is RULES else "mean norm")
    for ax, (column, label) in zip(axes[6:], SWEEP.items(), strict=True):
        _sweep(ax, wide, column)
        ax.set(title="by weight decay", ylabel=label)
    for letter, ax in zip("abcdefghij", axes, strict=True):
        _finished(ax, letter)
    label_outside(figure, axes)
    note(figure, "dotted: AUROC of chance, or equal norms")
    return figure


def _checked(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The frame, its columns checked; one without rows is given the columns that it lacks."""
    if len(frame):
        need(frame, columns)
        return frame
    return frame.reindex(columns=list(columns))


def _axes(figure: Figure) -> Iterator[Axes]:
    """Two rows of three panels, and one of four."""
    grid = figure.add_gridspec(3, 12)
    for row, width in ((0, 4), (1, 4), (2, 3)):
        for left in range(0, 12, width):
            yield figure.add_subplot(grid[row, left : left + width])


def _finished(ax: Axes, letter: str) -> None:
    """The panel's letter, the dotted line, and a word where nothing was drawn."""
    if not ax.lines:
        _say_nothing(ax)
    ax.set_title(f"{letter}   {ax.get_title()}", loc="left")
    ax.set(title="", xlabel="epoch")
    kind = ax.get_ylabel()
    if "AUROC" in kind or "/" in kind:
        ax.axhline(0.5 if "AUROC" in kind else 1, color="0.5", linestyle=":", linewidth=1)


def _say_nothing(ax: Axes) -> None:
    ax.text(0.5, 0.65, "not run", transform=ax.transAxes, ha="center", color="0.4")


def _lines(ax: Axes, part: pd.DataFrame, lines: dict) -> None:
    for column, (*_, marker, _) in lines.items() if len(part) else ():
        band(ax, part, "epoch", column, **look(lines, column), **_marked(part, marker))


def _sweep(ax: Axes, wide: pd.DataFrame, column: str) -> None:
    for i, (decay, part) in enumerate(wide.groupby("weight_decay")):
        color, line, marker = DECAYS[i % len(DECAYS)]
        drawn = {"color": color, "linestyle": line, "label": f"weight decay {decay:g}"}
        band(ax, part, "epoch", column, **drawn, **_marked(part, marker))


def _marked(part: pd.DataFrame, marker: str) -> dict:
    return {"marker": marker, "markersize": 4, "markevery": max(1, part["epoch"].nunique() // 8)}


@laid_out
def feature_plane(outputs: pd.DataFrame, *, epochs: Sequence[int]) -> Figure:
    """Features of test images in the plane, after some epochs; arcs have the mean norms as radius.

    Args:
        outputs: one row per test image and epoch; columns epoch, role, class (the name of a known
            image's class), x and y (the two features). May be without rows.
        epochs: those to be drawn, a panel each, all to one scale.

    Raises:
        ValueError: a column is missing, or an epoch is not there.
    """
    outputs = _checked(outputs, ["epoch", "role", "class", "x", "y"])
    missing = sorted({*epochs} - {*outputs["epoch"]}) if len(outputs) else []
    if missing:
        raise ValueError(f"need one of epochs {sorted({*outputs['epoch']})}; got {missing}")
    size = {"width": 10 / max(2, len(epochs)), "height": 3.8 if len(epochs) > 1 else 5.2}
    figure, axes = panels(1, len(epochs), **size)
    figure.set_layout_engine("compressed")  # made for axes whose shape is fixed
    shown = outputs[outputs["epoch"].isin(epochs)]
    ends = [(min(0, v.min()), v.max()) for v in (shown["x"], shown["y"]) if len(v)]
    for ax, epoch in zip(axes[0], epochs, strict=True):
        _plane(ax, shown[shown["epoch"] == epoch])
        ax.set(title=f"epoch {epoch}", xlabel="$f_1$", aspect="equal")
        for (low, high), limit in zip(ends, (ax.set_xlim, ax.set_ylim), strict=bool(ends)):
            limit(low - 0.04 * (high - low), high + 0.04 * (high - low))
    axes[0, 0].set_ylabel("$f_2$")
    label_outside(figure, axes[0])
    return figure


def _plane(ax: Axes, part: pd.DataFrame) -> None:
    if not len(part):
        _say_nothing(ax)
    unknown, known = part[part["role"] == "unknown"], part[part["role"] == "known"]
    ax.plot(unknown["x"], unknown["y"], "x", color="0.6", markersize=2.5, label="unknown")
    for i, (name, points) in enumerate(known.groupby("class")):
        color, marker = CLASSES[i % len(CLASSES)]
        label = shorten(str(name), 18, placeholder=" ...")
        ax.plot(points["x"], points["y"], marker, color=color, markersize=4, label=label)
    turn = np.linspace(0, 2 * np.pi, 200)
    for role, side in (("known", known), ("unknown", unknown)):
        radius = np.hypot(side["x"], side["y"]).mean()
        drawn = look(ROLE_STYLES, role) | {"linestyle": "-" if role == "known" else "--"}
        drawn |= {"label": f"mean norm, {role}", "linewidth": 1.4}
        ax.plot(radius * np.cos(turn), radius * np.sin(turn), **drawn)
