"""Where features go: their norms (Figure 7 of Vaze et al. 2022), their plane."""

from collections.abc import Sequence
from itertools import zip_longest
from textwrap import shorten

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from osnb.evidence.frames import need
from osnb.plots.draw import finished, lines, over_seeds, panels, points, say
from osnb.plots.style import DASHED, DOTTED, ROLES, Figure, laid_out, looks

# Column of a history, then colour, line, marker and label; neighbours differ in grey too.
NORMS = {f"norm_{role}": ROLES[role] for role in ("known", "unknown")}
HEAD = {"norm_of_classes": ("0.2", DASHED, "v", "head's rows")}
RULES = {
    "auroc_max_logit": ("#1f77b4", "-", "o", "MLS"),
    "auroc_max_softmax": ("#e08214", DASHED, "s", "MSP"),
    "auroc_feature_norm": ("#542788", DOTTED, "D", "norm alone"),
}
SWEEP = {
    "norm_known": "norm of known",
    "norm_unknown": "norm of unknown",
    "norm_of_classes": "norm of head's rows",
}
COLUMNS = ["features", "weight_decay", "epoch", *NORMS, *HEAD, *RULES]


@laid_out
def feature_norms(
    history: pd.DataFrame, outputs: pd.DataFrame, *, snapshots: Sequence[int] = ()
) -> Figure:
    """Figure 7, its nine panels under the letters of its caption.

    a and c are of networks with many features, b and d to f of two, all with the least weight
    decay that there is; g to i the former by weight decay. Several runs of one kind are drawn as
    their mean, in a band from the smallest to the largest. A kind without a run says so.

    Args:
        history: one row per run and epoch; columns features (D), weight_decay, epoch, norm_known,
            norm_unknown, norm_of_classes (>= 0, unit of the features), auroc_max_logit,
            auroc_max_softmax and auroc_feature_norm, in [0, 1]. May be without rows.
        outputs: as `feature_plane` takes them.
        snapshots: three epochs at most, which b marks and d to f show.

    Raises:
        ValueError: a column is missing, an epoch is not there, or there are more than three.
    """
    history = _checked(history, COLUMNS)
    if len(snapshots) > 3:
        raise ValueError(f"need three snapshots at most, panels d to f; got {[*snapshots]}")
    plane, wide = (history[mask] for mask in (history["features"] == 2, history["features"] != 2))
    figure = Figure(figsize=(9, 7.2))
    axes = figure.subplots(3, 3)
    lengths = NORMS | HEAD
    parts = ("a", wide, lengths), ("b", plane, lengths), ("c", wide, RULES)
    for ax, (letter, part, styles) in zip(axes[0], parts, strict=True):
        part = part[part["weight_decay"] == part["weight_decay"].min()]
        size = "/".join(f"{x:g}" for x in sorted(set(part["features"]))) or "?"
        ax.set_ylabel("AUROC" if styles is RULES else "mean norm")
        long = part.melt("epoch", [*styles], "by")
        _epochs(ax, long, styles, f"{letter}   D = {size}")
    for epoch in snapshots:
        axes[0, 1].axvline(epoch, color="0.5", linestyle="--", linewidth=0.8)
    _planes(axes[1], outputs, [*snapshots], letters="def")
    names = [f"weight decay {decay:g}" for decay in sorted(set(wide["weight_decay"]))]
    decays = wide["weight_decay"].map("weight decay {:g}".format)
    for letter, ax, (column, name) in zip("ghi", axes[2], SWEEP.items(), strict=True):
        ax.set_ylabel(name)
        long = wide[["epoch"]].assign(by=decays, value=wide[column])
        _epochs(ax, long, looks(names), f"{letter}   by weight decay")
    for ax in (
        axes[0, 0],
        axes[0, 2],
        axes[1, 0],
        axes[2, 0],
    ):  # b is as a, e and f as d, h and i as g
        if ax.figure and ax.get_legend_handles_labels()[0]:
            ax.legend(fontsize=7)
    figure.supxlabel("dotted: AUROC of chance", fontsize=8, color="0.4")
    return figure


def _checked(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The frame, its columns checked; one without rows is given the columns that it lacks."""
    if len(frame):
        need(frame, columns)
        return frame
    return frame.reindex(columns=list(columns))


def _epochs(ax: Axes, long: pd.DataFrame, styles: dict, title: str) -> None:
    """Lines of epoch, by and value; what chance gives is dotted; a word if there is no run."""
    ax.set_title(title, loc="left")
    ax.set_xlabel("epoch")
    if len(long):
        mean = over_seeds(long, "epoch", "value", "by")
        lines(ax, mean, "epoch", "value", by="by", styles=styles, marks=8)
    else:
        say(ax, "not run", y=0.65)
    if ax.get_ylabel() == "AUROC":
        ax.axhline(0.5, color="0.5", linestyle=":", linewidth=1)


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
    size = {"width": 10 / max(2, len(epochs)), "height": 3.8 if len(epochs) > 1 else 5.2}
    figure, axes = panels(1, len(epochs), **size)
    figure.set_layout_engine("compressed")  # made for axes whose shape is fixed
    _planes(axes[0], outputs, [*epochs])
    return finished(figure, x="$f_1$", y="$f_2$")


def _planes(
    axes: Sequence[Axes], outputs: pd.DataFrame, epochs: list[int], letters: str = ""
) -> None:
    """A panel for each epoch, all to one scale; panels too many are taken away."""
    outputs = _checked(outputs, ["epoch", "role", "class", "x", "y"])
    missing = sorted({*epochs} - {*outputs["epoch"]}) if len(outputs) else []
    if missing:
        raise ValueError(f"need one of epochs {sorted({*outputs['epoch']})}; got {missing}")
    shown = outputs[outputs["epoch"].isin(epochs)]
    ends = [(min(0, v.min()), v.max()) for v in (shown["x"], shown["y"]) if len(v)]
    for ax, epoch, letter in zip_longest(axes, epochs, letters):
        if epoch is None:
            ax.remove()
            continue
        _plane(ax, shown[shown["epoch"] == epoch])
        ax.set_title(f"{letter or ''}   epoch {epoch}".strip(), loc="left" if letter else "center")
        ax.set_aspect("equal")
        for (low, high), limit in zip(ends, (ax.set_xlim, ax.set_ylim), strict=bool(ends)):
            limit(low - 0.04 * (high - low), high + 0.04 * (high - low))


def _plane(ax: Axes, part: pd.DataFrame) -> None:
    if not len(part):
        say(ax, "not run", y=0.65)
    sides = {role: part[part["role"] == role] for role in ("unknown", "known")}
    grey = {"color": "0.6", "marker": "x", "markersize": 2.5, "label": "unknown"}
    points(ax, sides["unknown"]["x"], sides["unknown"]["y"], grey)
    classes = sides["known"].groupby("class")
    for (name, here), look in zip(classes, looks([*classes.groups]).values(), strict=True):
        look |= {"label": shorten(str(name), 18, placeholder=" ..."), "markersize": 4}
        points(ax, here["x"], here["y"], look)
    turn = np.linspace(0, 2 * np.pi, 200)
    for role in ("known", "unknown"):
        radius = np.hypot(sides[role]["x"], sides[role]["y"]).mean()
        line = {"color": ROLES[role][0], "linestyle": "-" if role == "known" else "--"}
        circle = radius * np.cos(turn), radius * np.sin(turn)
        ax.plot(*circle, label=f"mean norm, {role}", linewidth=1.4, **line)
