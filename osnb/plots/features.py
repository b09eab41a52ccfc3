"""Where features go: their norms (Figure 7 of Vaze et al. 2022), their plane."""

from collections.abc import Sequence
from textwrap import shorten

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from osnb.evidence.frames import need
from osnb.plots.draw import finished, lines, over_seeds, panels, points, say
from osnb.plots.style import DASHED, DOTTED, ROLES, Figure, laid_out, looks

# Column of a history, then colour, line, marker and label; neighbours differ in grey too.
NORMS = {f"norm_{role}": ROLES[role] for role in ("known", "unknown")}
HEAD = {"norm_of_classes": ("0.2", "-", "v", "head's rows")}
RULES = {
    "auroc_max_logit": ("#1f77b4", "-", "o", "MLS"),
    "auroc_max_softmax": ("#e08214", DASHED, "s", "MSP"),
    "auroc_feature_norm": ("#542788", DOTTED, "D", "norm alone"),
}
QUANTITIES = {"features": NORMS, "head's rows": HEAD, "AUROC": RULES}
SWEEP = {
    "norm_known": "norm of known",
    "ratio": "known / unknown",
    "norm_of_classes": "norm of head's rows",
    "auroc_max_logit": "AUROC, MLS",
}
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
    mosaic = figure.subplot_mosaic("aaaabbbbcccc\nddddeeeeffff\nggghhhiiijjj")
    axes = iter(mosaic.items())
    for part, other in ((plane, "2"), (wide, "> 2")):
        part = part[part["weight_decay"] == part["weight_decay"].min()]
        size = "/".join(map(str, sorted(set(part["features"])))) or other
        for (title, styles), (letter, ax) in zip(QUANTITIES.items(), axes, strict=False):
            ax.set_ylabel("AUROC" if styles is RULES else "mean norm")
            long = part.melt("epoch", [*styles], "by")
            _epochs(ax, long, styles, f"{letter}   {title}, D = {size}")
    names = [f"weight decay {decay:g}" for decay in sorted(set(wide["weight_decay"]))]
    decays = wide["weight_decay"].map("weight decay {:g}".format)
    for (column, name), (letter, ax) in zip(SWEEP.items(), axes, strict=True):
        ax.set_ylabel(name)
        long = wide[["epoch"]].assign(by=decays, value=wide[column])
        _epochs(ax, long, looks(names), f"{letter}   by weight decay")
    return finished(figure, about="dotted: AUROC of chance, or equal norms")


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
    kind = ax.get_ylabel()
    if "AUROC" in kind or "/" in kind:
        ax.axhline(0.5 if "AUROC" in kind else 1, color="0.5", linestyle=":", linewidth=1)


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
        ax.set(title=f"epoch {epoch}", aspect="equal")
        for (low, high), limit in zip(ends, (ax.set_xlim, ax.set_ylim), strict=bool(ends)):
            limit(low - 0.04 * (high - low), high + 0.04 * (high - low))
    return finished(figure, x="$f_1$", y="$f_2$")


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
