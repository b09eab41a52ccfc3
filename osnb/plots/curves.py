"""Lines: OSCR, what happens over epochs, risks, costs, densities, norms and planes of features."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from textwrap import shorten

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from osnb.evidence.frames import BINNED, NUMBERS, POINTS, need
from osnb.evidence.selective import PERFECT
from osnb.plots import style
from osnb.plots.draw import facets, figure_of, finished, lines, over_seeds, panels, points, say
from osnb.plots.style import LOSSES, PROTOCOLS, ROLES, Figure, laid_out, looks, present

SIDES = {"gamma_plus": "γ⁺, known samples", "gamma_minus": "γ⁻, negative samples"}
MEASURES = {
    "loss": ("0.4", "-", "o", "loss"),
    "gamma_plus": ("#1f77b4", "-", "o", SIDES["gamma_plus"]),
    "gamma_minus": ("#d9822b", style.DASHED, "o", SIDES["gamma_minus"]),
    "accuracy": ("#222222", style.DASH_DOT, "o", "accuracy"),
}
NO_MEASURE = {"epoch", "learning_rate", "loss", "best", "gamma", "stage"}
KINDS = {  # Okabe and Ito's colours
    "right": ("#0072b2", "-", "o", "right"),
    "wrong": ("#d55e00", style.DASHED, "X", "wrong"),
    "near": ("#009e73", style.DASH_DOT, "s", "near"),
    "far": ("#222222", style.DOTTED, "^", "far"),
    "noise": ("#cc79a7", (0, (3, 1, 1, 1, 1, 1)), "D", "noise"),
}
# Methods of Section 5 of Vaze et al.; neighbours differ in grey too.
SERIES = {
    "MSP": ("#4f9bb5", "-", "v", "MSP"),
    "MLS": ("#8b1a4a", "-", "^", "MLS"),
    "ARPL+": ("#2a6f4e", "-", "D", "ARPL+"),
}

# Column of a history, then colour, line, marker and label; neighbours differ in grey too.
NORMS = {f"norm_{role}": ROLES[role] for role in ("known", "unknown")}
NORMS |= {"norm_of_classes": ("0.2", style.DASHED, "v", "head's rows")}
RULES = {
    "auroc_max_logit": ("#1f77b4", "-", "o", "MLS"),
    "auroc_max_softmax": ("#e08214", style.DASHED, "s", "MSP"),
    "auroc_feature_norm": ("#542788", style.DOTTED, "D", "norm alone"),
}
COLUMNS = ["features", "weight_decay", "epoch", *NORMS, *RULES]


@figure_of(*POINTS)
def oscr_curves(points: pd.DataFrame, *, log: bool, by: str = "method") -> Figure:
    """Figures 2 (log), 5 (linear) and 6 (by benchmark): OSCR, with the interval as a band.

    Negatives above, unknowns below, if both are there.

    Args:
        points: as from `oscr_points`.
        log: logarithmic FPR axis.
        by: method, a line for each and a column of panels for each benchmark; or benchmark, the
            other way round.
    """
    column, styles = {"method": ("benchmark", LOSSES), "benchmark": ("method", PROTOCOLS)}[by]
    styles = looks(present(points[by], styles), styles)  # the same in every panel
    many = points["seeds"]
    mean = "one seed" if many.max() == 1 else f"mean of {style.count(many)} seeds"
    return _rates(points, column, by=by, styles=styles, log=log, width=3, line=f"line: {mean}; ")


@figure_of(*POINTS)
def run_curves(points: pd.DataFrame) -> Figure:
    """OSCR with a logarithmic FPR axis, a line for each run; rows are roles, columns benchmarks.

    Args:
        points: as from `oscr_points`, the run's name as method.
    """
    styles = looks(points["method"].unique())
    return _rates(points, "benchmark", by="method", styles=styles, log=True, width=3.6)


def _rates(
    points: pd.DataFrame, column: str, *, by: str, styles: Mapping, log: bool, width: float, line=""
) -> Figure:
    """CCR over FPR in bands; rows of panels are roles; the note says what `line` does."""
    figure, parts = facets(points, "role", column, size=(width, 2.5), sharex=True, sharey=True)
    for ax, part, _ in parts:
        lines(ax, part[part["fpr"] > 0] if log else part, "fpr", "ccr", by=by, styles=styles)
    parts[0][0].set(xlim=(0, 1.02), ylim=(0, style.room_above(points["high"])))
    if log:
        least = 0.7 * points.loc[points["fpr"] > 0, "fpr"].min()
        parts[0][0].set(xscale="log", xlim=(least, 1.4))
    about = f"{line}band: 95 % bootstrap interval over test {style.UNITS[points['over'].iloc[0]]}"
    return finished(figure, x="false positive rate", y="correct classification rate", about=about)


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
    figure, axes = panels(1, len(others), width=3.0, height=3.1, sharey=True)
    for ax, (other, (fpr, ccr)) in zip(axes[0], others, strict=True):
        shade = {"color": "#c9d7e6", "linewidth": 0, "label": "area by the rule in the title"}
        ax.fill_between(fpr, ccr, **shade)
        ax.plot(fpr, ccr, "-o", color="#1f4e79", linewidth=1.6, markersize=4)
        text = f"{name}, area {np.trapezoid(first[1], first[0]):.3f}"
        ax.plot(*first, "--", color="#c0504d", linewidth=1.2, label=text)
        ax.set(title=f"{other}, area {np.trapezoid(ccr, fpr):.3f}")
        ax.set(xlim=(-0.04, 1.04), ylim=(-0.03, 1.03))
    return finished(figure, x="false positive rate", y="correct classification rate")


@figure_of("benchmark", "method", "seed", "epoch", *SIDES)
def confidence_history(history: pd.DataFrame) -> Figure:
    """Figure 3: confidence on the validation set, gamma+ (left) and gamma- (right), by epoch.

    Args:
        history: columns benchmark, method, seed, epoch (from 1), gamma_plus and gamma_minus in
            [0, 1]; one row of panels per benchmark, one line per method.
    """
    key = ["benchmark", "method", "seed", "epoch"]
    long = history.melt(key, [*SIDES], "side", "confidence")
    styles = looks(present(history["method"], LOSSES), LOSSES)
    figure, parts = facets(long, "benchmark", "side", size=(4, 2), sharex=True, sharey=True)
    for ax, part, (benchmark, side) in parts:
        mean = over_seeds(part, "epoch", "confidence", "method")
        lines(ax, mean, "epoch", "confidence", by="method", styles=styles)
        ax.set(title=f"{style.label(benchmark)}: {SIDES[side]}", ylim=(0, 1.02))
    parts[0][0].xaxis.get_major_locator().set_params(integer=True)
    seeds = history.groupby(["benchmark", "method"])["seed"].nunique()
    several = (
        f"line: mean of {style.count(seeds)} seeds; band: from their smallest to their largest"
    )
    about = several if seeds.max() > 1 else "one seed"
    return finished(figure, x="epoch", y="mean; higher is better", about=about)


@figure_of("epoch", "loss")
def training(history: pd.DataFrame) -> Figure:
    """Loss (left) and the measures of `validate` (right) over the epochs so far.

    Args:
        history: from `train.fit`, or history.parquet while it runs: columns epoch (from 1), loss
            in nats, and measures in [0, 1]; a dot marks the epoch with the largest `best`, if any
            epoch has one.
    """
    figure, axes = panels(1, 2, width=4, height=2.6)
    rates = history.max().between(0, 1)  # norms and logits would leave the panel
    right = [name for name in history if name not in NO_MEASURE and rates[name]]
    is_known = "best" in history and history["best"].notna().any()
    best = [int(history["best"].argmax())] if is_known else []
    dot = {"marks": len(best), "markevery": best}
    styles = {**looks(right), **MEASURES}
    for ax, names in zip(axes[0], (["loss"], right), strict=True):
        long = history[["epoch", *names]].melt("epoch", var_name="measure")
        lines(ax, long, "epoch", "value", by="measure", styles=styles, **dot)
        ax.xaxis.get_major_locator().set_params(integer=True)
    axes[0, 0].set_ylabel("mean loss, in nats")
    axes[0, 1].set(ylabel="on held-out images", ylim=(0, 1.02))
    last = history.iloc[-1]
    about = f"epoch {last['epoch']:.0f}: loss {last['loss']:.3f}"
    about += "; dot: the best epoch so far" * len(best)
    return finished(figure, x="epoch", about=about)


@figure_of("logit", "loss", "value", "gradient")
def negative_gradient(values: pd.DataFrame) -> Figure:
    """What a negative sample pays for one known class's logit, and how hard it is pushed back.

    Args:
        values: columns logit (of one known class, all others at 0), loss (softmax,
            background, ...), value (nats) and gradient (of value by logit).
    """
    figure, axes = panels(1, 2, width=4, height=3, sharex=True)
    sides = {"value": "loss, in nats", "gradient": "derivative of the loss"}
    for ax, (column, name) in zip(axes[0], sides.items(), strict=True):
        lines(ax, values.sort_values("logit"), "logit", column, by="loss", styles=LOSSES)
        ax.axhline(0, color="0.5", linewidth=0.8, zorder=1)
        ax.set_ylabel(name)
    return finished(figure, x="logit of one known class, in nats")


@figure_of("place", "printed", "kind", *BINNED, or_none=True)
def softmax_densities(points: pd.DataFrame) -> Figure:
    """Figure 6 of Kim et al.: densities of the largest softmax; a row a place, a column a method.

    A marker stands in the middle of a bin. Every panel says how many samples each kind has.

    Args:
        points: as from `histograms` by place, printed and kind; no row gives a figure that says so.

    Raises:
        ValueError: a column is missing, or a kind has no look.
    """
    if odd := sorted(set(points["kind"]) - set(KINDS)):
        raise ValueError(f"a kind is one of {', '.join(KINDS)}; got {odd}")
    points = points.assign(middle=(points["left"] + points["right"]) / 2)
    figure, parts = facets(points, "place", "printed", size=(4.6, 3.1), sharex=True, sharey=True)
    for ax, part, _ in parts:
        lines(ax, part, "middle", "density", by="kind", styles=KINDS, marks=len(part))
        sizes = part.groupby("kind")["samples"].sum()
        counts = ", ".join(f"{name} {sizes[name]}" for name in KINDS if name in sizes)
        ax.set_title(f"{ax.get_title()}\n{counts or 'not run'}")
        ax.set(xlim=(0, 1), ylim=(0, 1.1 * points["density"].max()))
    return finished(figure, x="largest softmax", y="density")


@figure_of(*NUMBERS)
def class_numbers(points: pd.DataFrame) -> Figure:
    """AUROC, its standard deviation and average precision over the number of classes drawn.

    Args:
        points: as from `number_points`.
    """
    figure, axes = panels(1, 3, width=3.2, height=3.2)
    auroc, precision = (
        points[points["measure"] == name].sort_values("classes")
        for name in ("auroc", "average_precision")
    )
    by = {"by": "printed", "styles": SERIES}
    for ax, part in ((axes[0, 0], auroc), (axes[0, 2], precision)):
        lines(ax, part, "classes", "mean", marks=99, **by)
        for _, one in part.groupby("printed"):
            ax.plot(one["classes"], one["chance"], color="0.4", linestyle=":", label="random score")
    spread = auroc.drop(columns=["low", "high"])
    lines(axes[0, 1], spread, "classes", "sd", marks=99, **by, linestyle="none")
    lines(axes[0, 1], spread, "classes", "expected_sd", **by, linestyle="--", label="")
    axes[0, 1].set_yscale("log")
    names = ("AUROC", "sd of AUROC over draws", "average precision")
    for ax, name in zip(axes[0], names, strict=True):
        ax.set(xscale="log", ylabel=name)
    about = "band: 95 % of the draws; dashed: sd of one class, divided by √n"
    return finished(figure, x="unknown classes drawn", about=about)


@figure_of("panel", "printed", "coverage", "risk")
def risk_curves(points: pd.DataFrame, *, risk: float, shown: Sequence[str] = ()) -> Figure:
    """Selective risk over coverage, a line for each method and a panel for each pool.

    Args:
        points: as from `risk_points`.
        risk: a limit, drawn as a dashed line; a rate.
        shown: methods in colour, the others are thin and grey; all in colour if empty.

    Raises:
        ValueError: a column is missing, or there is no row.
    """
    perfect = {"color": "0.6", "marker": "", "linewidth": 3, "label": PERFECT, "zorder": 1.7}
    names = [name for name in present(points["printed"]) if name != PERFECT]
    styles = looks([name for name in names if name in shown or not shown])
    styles = {PERFECT: perfect} | {name: look | {"linewidth": 1.3} for name, look in styles.items()}
    others = {"color": "0.7", "marker": "", "linewidth": 0.8, "label": "other methods"}
    others |= {"zorder": 1.8}  # below the methods in colour
    styles = dict.fromkeys(names, others) | styles
    figure, parts = facets(points, "panel", wrap=2, size=(4.4, 3.1))
    for ax, part, _ in parts:
        lines(ax, part, "coverage", "risk", by="printed", styles=styles, marks=5)
        ax.axhline(risk, color="0.3", linestyle=(0, (2, 2)), linewidth=1, label=f"risk {risk:g}")
        ax.set_ylim(-0.02, 1.02)
    return finished(figure, x="coverage", y="errors among accepted")


@figure_of("panel", "printed", "coverage", "risk", "cost", "cheapest")
def least_cost(points: pd.DataFrame, *, wrong: float, rejection: float) -> Figure:
    """The cheapest point of each method, on its risk-coverage curve (left) and cost curve (right).

    A row of panels for each pool.

    Args:
        points: as from `cost_points`.
        wrong, rejection: the costs, as said above the panels.

    Raises:
        ValueError: a column is missing.
    """
    methods = looks(present(points["printed"]))
    titles = {"risk": "errors among accepted", "cost": "cost per sample"}
    figure, axes = panels(points["panel"].nunique(), 2, width=4.6, height=2.9)
    for pair, (name, part) in zip(axes, points.groupby("panel", sort=False), strict=True):
        marks = enumerate(part.groupby("printed", sort=False)["cheapest"])
        styles = {  # a marker below another one is larger than it
            n: methods[n] | {"markevery": [int(m.argmax())], "markersize": max(12 - 2 * k, 4)}
            for k, (n, m) in marks
        }
        for ax, (value, y) in zip(pair, titles.items(), strict=True):
            line = {"linewidth": 1.2, "marks": 1, "mec": "black"}
            lines(ax, part, "coverage", value, by="printed", styles=styles, **line)
            ax.set(xlim=(-0.03, 1.03), ylabel=y)
        pair[0].set(title=name, ylim=(-0.02, 1.02))
        pair[1].set(title=f"the same: wrong costs {wrong:g}, rejection {rejection:g}")
    return finished(figure, x="coverage")


@laid_out
def feature_norms(
    history: pd.DataFrame, outputs: pd.DataFrame, *, snapshots: Sequence[int] = ()
) -> Figure:
    """Figure 7, its nine panels under the letters of its caption.

    a and c are of networks with many features, b and d to f of two, all with the weight decay of
    the latter (without those, the least); g to i the former by weight decay. Several runs of one
    kind are drawn as their mean, in a band from the smallest to the largest. A kind without a run
    says so.

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
    decay = (plane if len(plane) else wide)["weight_decay"].min()
    parts = ("a", wide, NORMS), ("b", plane, NORMS), ("c", wide, RULES)
    for ax, (letter, part, styles) in zip(axes[0], parts, strict=True):
        part = part[part["weight_decay"] == decay]
        size = "/".join(f"{x:g}" for x in sorted(set(part["features"]))) or "?"
        y = "AUROC" if styles is RULES else "mean norm"
        _epochs(ax, part.melt("epoch", [*styles], "by"), styles, f"{letter}   D = {size}", y)
    for epoch in snapshots:
        axes[0, 1].axvline(epoch, color="0.5", linestyle="--", linewidth=0.8)
    _planes(axes[1], outputs, [*snapshots], letters="def")
    decays = wide["weight_decay"].map("weight decay {:g}".format)
    styles = looks([f"weight decay {decay:g}" for decay in sorted({*wide["weight_decay"]})])
    for letter, ax, (column, look) in zip("ghi", axes[2], NORMS.items(), strict=True):
        long = wide[["epoch"]].assign(by=decays, value=wide[column])
        _epochs(ax, long, styles, f"{letter}   by weight decay", f"norm of {look[-1]}")
    for ax in (axes[0, 0], axes[0, 2], axes[1, 0], axes[2, 0]):  # b as a; e, f as d; h, i as g
        if ax.figure and ax.get_legend_handles_labels()[0]:
            _legend(ax, above=ax is not axes[1, 0])
    about = "dashed verticals in b: the epochs of d to f; " * bool(len(snapshots))
    figure.supxlabel(about + "dotted in c: AUROC of chance", fontsize=8, color="0.4")
    return figure


def _legend(ax: Axes, *, above: bool) -> None:
    """A legend, above the lines if it should not lie on them."""
    if above:
        ax.set_ylim(top=np.dot([-0.4, 1.4], ax.get_ylim()))
    ax.legend(fontsize=7, loc="upper left" if above else "upper right")


def _checked(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The frame, its columns checked; one without rows is given the columns that it lacks."""
    if len(frame):
        need(frame, columns)
        return frame
    return frame.reindex(columns=list(columns))


def _epochs(ax: Axes, long: pd.DataFrame, styles: dict, title: str, y: str) -> None:
    """Lines of epoch, by and value; what chance gives is dotted; a word if there is no run."""
    ax.set_title(title, loc="left")
    ax.set(xlabel="epoch", ylabel=y)
    if len(long):
        mean = over_seeds(long, "epoch", "value", "by")
        lines(ax, mean, "epoch", "value", by="by", styles=styles, marks=8)
    else:
        say(ax, "not run", y=0.65)
    if y == "AUROC":
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
        if letter:
            ax.set(xlabel="$f_1$", ylabel="$f_2$")
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
