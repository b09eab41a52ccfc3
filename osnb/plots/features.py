"""What a loss asks for, and where features go: gradients, norms (Figure 7 of Vaze et al. 2022)."""

from collections.abc import Sequence
from textwrap import shorten

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from osnb.plots.draw import bars, facets, finished, lines, over_seeds, panels, points, say
from osnb.plots.style import DASHED, DOTTED, LOSSES, ROLES, Figure, laid_out, looks, need

LOSS_NAMES = {"softmax": "S", "background": "BG", "entropic": "EOS"}
LOSS_HATCHES = {"background": "///", "entropic": "..."}
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
def negative_gradient(values: pd.DataFrame) -> Figure:
    """What a negative sample pays for one known class's logit, and how hard it is pushed back.

    Args:
        values: columns logit (of one known class, all others at 0), loss (softmax,
            background, ...), value (nats) and gradient (of value by logit).
    """
    need(values, ["logit", "loss", "value", "gradient"])
    figure, axes = panels(1, 2, width=4, height=3, sharex=True)
    sides = {"value": "loss, in nats", "gradient": "derivative of the loss"}
    for ax, (column, name) in zip(axes[0], sides.items(), strict=True):
        lines(ax, values.sort_values("logit"), "logit", column, by="loss", styles=LOSSES)
        ax.axhline(0, color="0.5", linewidth=0.8, zorder=1)
        ax.set_ylabel(name)
    return finished(figure, x="logit of one known class, in nats")


def gradient_points(logits: Sequence[float], *, background: float, weight: float) -> pd.DataFrame:
    """The derivative of S, BG and EOS by each logit of one negative sample.

    With s the softmax of the logits, for BG of those of the K known classes and the background
    (equations 3, 4 and 5 of Palechor et al. 2023):

        S:    dJ/dz_c = 0
        BG:   dJ/dz_c = weight (s_c - [c is the background])
        EOS:  dJ/dz_c = weight (s_c - 1 / K)

    Args:
        logits: (K,) of the known classes, in nats, K >= 2.
        background: the background's logit, in nats, which only BG has.
        weight: price of a negative, > 0: BG's weight of the background class, EOS's weight.

    Returns:
        loss, output (class 1, ..., background), logit, probability, gradient; a row for each
        output of each loss.

    Raises:
        ValueError: fewer than two logits, one that is not finite, or a weight that is not > 0.
    """
    known = np.asarray(logits, np.float64)
    if known.ndim != 1 or len(known) < 2 or not np.isfinite([*known, background]).all():
        raise ValueError(f"need two or more finite logits; got {logits} and {background}")
    if not (np.isfinite(weight) and weight > 0):
        raise ValueError(f"need a finite weight above 0; got {weight}")
    K, every = len(known), np.r_[known, background]
    parts = {  # logits, and what their softmax should be
        "softmax": (known, _softmax(known), 0.0),
        "background": (every, np.arange(K + 1) == K, weight),
        "entropic": (known, np.full(K, 1 / K), weight),
    }
    names = [*(f"class {c}" for c in range(1, K + 1)), "background"]
    frames = []
    for loss, (z, target, price) in parts.items():
        s = _softmax(z)
        columns = {"logit": z, "probability": s, "gradient": price * (s - target)}
        frames.append(pd.DataFrame({"loss": loss, "output": names[: len(z)]} | columns))
    return pd.concat(frames, ignore_index=True)


def _softmax(z: np.ndarray) -> np.ndarray:
    shifted = np.exp(z - z.max())
    return shifted / shifted.sum()


@laid_out
def loss_gradients(points: pd.DataFrame) -> Figure:
    """The gradients as bars, a panel for each loss, on one scale.

    A step of training moves each logit against its bar.

    Args:
        points: as from `gradient_points`.

    Raises:
        ValueError: a column is missing.
    """
    need(points, ["loss", "output", "logit", "gradient"])
    figure, parts = facets(points, "loss", width=3.2, height=2.9, sharey=True)
    limit = 1.25 * max(0.4, points["gradient"].abs().max())
    for ax, part, (loss,) in parts:
        look = {"color": looks([loss], LOSSES)[loss]["color"], "hatch": LOSS_HATCHES.get(loss, "")}
        places = range(len(part))
        bars(ax, part, {"gradient": look}, at=places, upright=True, edgecolor="white")
        texts = [f"{height:+.2f}" for height in part["gradient"]]
        ax.bar_label(ax.containers[0], texts, padding=2, fontsize=8)
        names = [f"{o}\n{z:+.2f}" for o, z in zip(part["output"], part["logit"], strict=True)]
        ax.set_xticks(places, names, fontsize=8)
        ax.axhline(0, color="0.3", linewidth=0.8)
        ax.set_ylim(-limit, limit)
    return finished(figure, x="output and its logit, in nats", y="derivative of the loss")


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
    grid, letters = figure.add_gridspec(3, 12), iter("abcdefghij")
    for row, part, other in ((0, plane, "2"), (1, wide, "> 2")):
        part = part[part["weight_decay"] == part["weight_decay"].min()]
        size = "/".join(map(str, sorted(set(part["features"])))) or other
        for k, (title, styles) in enumerate(QUANTITIES.items()):
            ax = figure.add_subplot(grid[row, 4 * k : 4 * k + 4])
            ax.set_ylabel("AUROC" if styles is RULES else "mean norm")
            long = part.melt("epoch", [*styles], "by")
            _epochs(ax, long, styles, f"{next(letters)}   {title}, D = {size}")
    names = [f"weight decay {decay:g}" for decay in sorted(set(wide["weight_decay"]))]
    decays = wide["weight_decay"].map("weight decay {:g}".format)
    for k, (column, name) in enumerate(SWEEP.items()):
        ax = figure.add_subplot(grid[2, 3 * k : 3 * k + 3])
        ax.set_ylabel(name)
        long = wide[["epoch"]].assign(by=decays, value=wide[column])
        _epochs(ax, long, looks(names), f"{next(letters)}   by weight decay")
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
    figure, axes = panels(1, 1, width=6.5, height=3.4)
    ax = axes[0, 0]
    boxes = summary.rename(columns={"low": "whislo", "median": "med", "high": "whishi"})
    fill = {"patch_artist": True, "boxprops": {"facecolor": "#c9d7e6"}}
    look = {"widths": 0.6, "showfliers": False, "medianprops": {"color": "black"}}
    ax.bxp(boxes.to_dict("records"), positions=summary["steps"], **fill | look)
    names = [f"{s}\n({n})" for s, n in zip(summary["steps"], summary["pairs"], strict=True)]
    ax.set_xticks(summary["steps"], names, fontsize=7)
    ax.set(title=title, ylim=(0, None))
    x = "path length in WordNet, in edges (pairs of classes)"
    return finished(figure, x=x, y="distance of mean features")
