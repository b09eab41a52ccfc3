"""Bars, histograms and boxes; points with intervals; accuracy against AUROC, classes one by one."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from osnb.evidence.across import FEW, RHO
from osnb.evidence.frames import BINNED, need
from osnb.evidence.selective import RIGHT, risk_table
from osnb.plots import draw
from osnb.plots.draw import ENDS, bars, facets, figure_of, finished, panels, ranked, steps
from osnb.plots.style import COLORS, HATCHES, LOSSES, SCORES, Figure, laid_out, looks, present

LOSS_NAMES = {"softmax": "S", "background": "BG", "entropic": "EOS"}
LOSS_HATCHES = {"background": "///", "entropic": "..."}
FIRST = (RIGHT, "wrong prediction", "near")  # of the kinds, in stacked bars
BINS = {  # colour and hatch; neighbours differ in grey too
    "known": ("#6b7a8f", ""),
    "easy": ("#9fc5e0", ""),
    "easy, one list only": ("#e3eef6", "////"),
    "medium": ("#d9822b", ""),
    "hard": ("#8b1a4a", ""),
    "hard, one list only": ("#e8c9d6", "\\\\\\\\"),
    "neither": ("0.85", ""),
}
KINDS = {
    "cited": ("#222222", "-", "D", "printed in the paper, on its own data"),
    "baseline": ("#d9822b", "-", "o", "ours, baseline recipe"),
    "strong": ("#1f5f99", "-", "s", "ours, strong recipe"),
    "released": ("#009e73", "-", "^", "the authors' weights"),
}
ANSWERS = {yes: ("#1f5f99", "-", "o", yes) for yes in ("holds", "shows")}
ANSWERS |= {no: ("#8b1a4a", "-", "X", no) for no in ("does not hold", "does not show")}
ANSWERS["undecided"] = ("#8a8a8a", "-", "s", "undecided")
GROUPS = {
    "random": ("0.72", "-", ".", "random"),
    "easy": ("#4f9bb5", "-", "o", "easy"),
    "medium": ("#d9822b", "-", "s", "medium"),
    "hard": ("#8b1a4a", "-", "^", "hard"),
    "": ("0.4", "-", "x", "unknown"),
}
MEASURES = ("accuracy", "auroc")
TOP = 1.005  # of an axis of rates, beyond the line of a point at 1
LIMITS = tuple(f"{name}_{end}" for name in MEASURES for end in ENDS)


@laid_out
def score_histograms(
    points: pd.DataFrame, *, column: str = "method", empty: Mapping[tuple, str] | None = None
) -> Figure:
    """Figure 4: score densities of known, negative and unknown; rows benchmarks, columns methods.

    The panels share the score axis, those of a row alone if each benchmark was binned over its own
    range; each has a density axis of its own.

    Args:
        points: as from `histograms` by benchmark, method and role.
        column: what the columns of panels are, in the place of method.
        empty: what to say in the panel of a (benchmark, column) without points, where it was run.
    """
    need(points, ["benchmark", column, "role", "column", "edges", *BINNED])
    score, edges = points.iloc[0][["column", "edges"]]
    alike = edges == "own" or points.groupby("benchmark")["right"].max().nunique() == 1
    shared = True if alike else "row"
    figure, parts = facets(points, "benchmark", column, size=(3, 2.1), sharex=shared)
    for ax, part, values in parts:
        steps(ax, part)
        if part.empty:
            draw.say(ax, (empty or {}).get(values, "not run"))
    own = ", each histogram over its own range" if edges == "own" else ""
    figure.supxlabel(SCORES.get(score, score) + own, fontsize=9)
    return finished(figure, y="density")


def _fills(column: pd.Series, sizes: pd.Series | None = None) -> dict[str, dict]:
    """Settings of bars of each bin; its label says how many classes it has."""
    fills = {}
    for name in present(column, BINS):
        color, hatch = BINS.get(name, ("0.7", "...."))
        fills[name] = {"facecolor": color, "hatch": hatch, "edgecolor": "0.3", "linewidth": 0.4}
        fills[name]["label"] = name if sizes is None else f"{name} ({sizes[name]})"
    return fills


@figure_of("bin", *BINNED)
def bin_histograms(points: pd.DataFrame, *, scale: str) -> Figure:
    """Classes over a scale of likeness or distance, the bins stacked on each other.

    Args:
        points: as from `histograms` by bin, of a table with a row a class. A bin is known, easy,
            medium or hard; what else it is called is drawn in grey.
        scale: what the value is, with its unit.
    """
    figure, axes = panels(1, 1, width=7, height=3.2)
    counts = points.pivot(index=["left", "right"], columns="bin", values="samples")
    left, right = (counts.index.get_level_values(end) for end in ("left", "right"))
    fills = _fills(points["bin"], counts.sum())
    bars(axes[0, 0], counts, fills, at=left, size=right - left, upright=True, align="edge")
    return finished(figure, x=scale, y="classes")


@figure_of("dataset", "level", "bin", "classes")
def shared_levels(counts: pd.DataFrame) -> Figure:
    """What unknown classes have in common with their nearest known class: a panel a data set.

    Args:
        counts: columns dataset, level (what is shared, in words), bin and classes (a count);
            panels, and levels from the top down, stand in the order of the rows.
    """
    figure, parts = facets(counts, "dataset", size=(4.4, 2.6))
    for ax, part, _ in parts:
        cells = {"index": "level", "columns": "bin", "values": "classes"}
        wide = part.pivot_table(**cells, aggfunc="sum", fill_value=0, sort=False)
        bars(ax, wide, _fills(part["bin"]))
        ax.bar_label(ax.containers[-1], [f"{n:.0f}" for n in wide.sum(axis=1)], padding=3)
        ax.set_xlim(0, 1.15 * wide.sum(axis=1).max())
    return finished(figure, x="unknown classes", y="shared with a known class")


@laid_out
def stacked_errors(table: pd.DataFrame, *, value: str, label: str) -> Figure:
    """A bar for each method, stacked by the kind of sample, a panel for each pool.

    Args:
        table: columns panel, printed, kind and `value` (>= 0), one row for each of the three.
        value: column that the lengths show.
        label: of the axis, with its unit.

    Raises:
        ValueError: a column is missing, or there is no row.
    """
    need(table, ["panel", "printed", "kind", value])
    fills = {}  # a kind keeps its look in a table without right samples
    for k, kind in enumerate(present([RIGHT, *sorted(table["kind"])], FIRST)):
        color = COLORS[k % len(COLORS)] if k else "0.8"
        fills[kind] = {"color": color, "hatch": HATCHES[k % len(HATCHES)], "label": kind}
    most = table.groupby("panel")["printed"].nunique().max()
    figure, parts = facets(table, "panel", wrap=2, size=(4.4, max(2.2, 0.9 + 0.22 * most)))
    for ax, part, _ in parts:
        wide = part.pivot(index="printed", columns="kind", values=value).fillna(0)
        here = {kind: fill for kind, fill in fills.items() if kind in wide}
        bars(ax, wide.loc[present(part["printed"])], here, size=0.75, edgecolor="white", lw=0.4)
        if not wide.to_numpy().any():
            ax.set_xlim(0, 1)  # a count is not below 0
    return finished(figure, x=label)


def accepted_at_risk(samples: pd.DataFrame, *, risk: float) -> Figure:
    """`risk_table` as bars: what each method accepts at a risk, by kind, in samples."""
    label = f"accepted samples, risk at most {risk:g}"
    return stacked_errors(risk_table(samples, risk=risk), value="accepted", label=label)


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


@figure_of("loss", "output", "logit", "gradient")
def loss_gradients(points: pd.DataFrame) -> Figure:
    """The gradients as bars, a panel for each loss, on one scale.

    A step of training moves each logit against its bar.

    Args:
        points: as from `gradient_points`.

    Raises:
        ValueError: a column is missing.
    """
    figure, parts = facets(points, "loss", size=(3.2, 2.9), sharey=True)
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


@figure_of("steps", "pairs", "low", "q1", "median", "q3", "high")
def distance_boxes(summary: pd.DataFrame, *, title: str) -> Figure:
    """Feature distance against WordNet path length: a box per length, whiskers at 5 and 95 %.

    Args:
        summary: as from `distance_summary`.
        title: what to say above, such as the rank correlation over all pairs.
    """
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


@figure_of("place", "printed", "kind", "auroc", "low", "high", "accuracy", "splits")
def method_gains(points: pd.DataFrame, *, over: str = "classes") -> Figure:
    """Figure 1a: AUROC of methods, a panel a data set, accuracy in figures beside each number.

    Args:
        points: columns place, printed, kind (of `KINDS`), auroc, low, high, accuracy (rates) and
            splits (names); the last four may be NaN. Panels, and methods from the top down, stand
            in the order of the rows.
        over: what the intervals were drawn over.
    """
    methods = present(points["printed"])
    size = 10 / min(3, max(2, points["place"].nunique())), 1.5 + 0.24 * len(methods)
    figure, parts = facets(points, "place", wrap=3, size=size, sharey=True)
    styles = looks(KINDS, KINDS)
    styles["cited"]["markerfacecolor"] = "white"
    row = {"rows": "printed", "names": methods, "by": "kind", "styles": styles}
    for ax, part, (name,) in parts:
        ranked(ax, part, "auroc", **row)
        for one in part.dropna(subset="accuracy").itertuples():
            at = methods.index(one.printed)
            text = f"{one.accuracy:.3f} ({one.splits.count(',') + 1})"
            ax.text(1.02, at, text, transform=ax.get_yaxis_transform(), va="center", fontsize=8)
        ax.axvline(0.5, color="0.6", linewidth=0.8)
        ax.set_title("")
        ax.set_title(name, loc="left")
        above = {"transform": ax.transAxes, "va": "bottom", "fontsize": 8, "color": "0.4"}
        ax.text(1.02, 1.02, "accuracy\n(splits)", **above)
    return finished(figure, x="AUROC", about=f"lines: 95 % over {over}, a bootstrap; 0.5 is chance")


@figure_of("finding", "place", "number", "low", "high", "answer")
def contrasts(points: pd.DataFrame, *, over: str = "classes") -> Figure:
    """Each finding's number with its interval, a panel a data set; right of 0 it is right.

    Args:
        points: as from `across.contrasts`; what was not run has no mark.
        over: what the intervals were drawn over.
    """
    findings = present(points["finding"])
    size = 9.6 / max(points["place"].nunique(), 1.4), 1.2 + 0.3 * len(findings)
    figure, parts = facets(points, "place", size=size, sharey=True)
    row = {"rows": "finding", "names": findings, "by": "answer", "styles": looks(ANSWERS, ANSWERS)}
    for ax, part, _ in parts:
        ranked(ax, part, "number", **row)
        ax.axvline(0, color="black", linewidth=0.8)
    about = f"lines: 95 % over {over}, the same draws for both methods"
    return finished(figure, x="AUROC, difference", about=about)


@figure_of("place", "printed", "side", "number", *ENDS)
def improvements(points: pd.DataFrame, *, about: str) -> Figure:
    """Improvement of each method over Baseline, in percent, a panel for each benchmark.

    A side has a colour, a marker and a row of its own within the method; lines are 95 %
    intervals. A method that the panel's first side has and no other is marked "not run".

    Args:
        points: columns place, printed, side, number, low and high, as rates.
        about: what the lines are, said below.

    Raises:
        ValueError: a column is missing, or there is no row.
    """
    methods, sides = present(points["printed"]), present(points["side"])
    figure, parts = facets(points, "place", size=(4.3, 0.8 + 0.42 * len(methods)))
    row = {"rows": "printed", "names": methods, "by": "side", "styles": looks(sides)}
    for ax, part, _ in parts:
        ranked(ax, part, "number", apart=0.24, **row)
        here = part.loc[part["side"] != sides[0], "printed"].unique()
        labels = [m if m in here or len(sides) == 1 else f"{m} (not run)" for m in methods]
        ax.set_yticks(range(len(methods)), labels)
        ax.axvline(0, color="0.4", linewidth=1)
        ax.xaxis.set_major_formatter(PercentFormatter(1, symbol=""))
    return finished(figure, x="AURC lower than Baseline's, in %", about=about)


@figure_of("printed", "source", "near", "auroc", or_none=True)
def rules_by_set(
    table: pd.DataFrame, singles: pd.DataFrame | None = None, *, over: str = "classes"
) -> Figure:
    """AUROC of every rule on every set of unknown images: a row a rule, a marker a set.

    Near sets have filled markers, far ones hollow. The best rule in the mean over all sets
    stands above. Without rows the figure says that there is no run.

    Args:
        table: one row per rule and set, columns printed (the rule), source (the set), near (bool)
            and auroc in [0, 1], with optional low and high of an interval. Sets stand in the order
            of the rows.
        singles: what the numbers are means of, such as single runs: columns printed, source and
            auroc, several rows per rule and set. They are small dots in the set's colour; a rule
            and set with a single row has none, and no table is as one without rows.
        over: what the intervals are over, said below if there are any.

    Raises:
        ValueError: a column is missing.
    """
    rules = table.groupby("printed")["auroc"].mean().sort_values(ascending=False).index
    near = table.groupby("source", sort=False)["near"].first()
    styles = looks(near.index)
    for name in styles:
        styles[name]["label"] = f"{name} ({'near' if near[name] else 'far'})"
        styles[name]["markerfacecolor"] = styles[name]["color"] if near[name] else "white"
    figure, axes = panels(1, 1, width=8, height=1.6 + 0.36 * len(rules))
    row = {"rows": "printed", "names": rules, "by": "source", "apart": 0.7 / len(near)}
    ax, key = axes[0, 0], ["printed", "source"]
    about = f"lines: 95 % over {over}" if "low" in table and table["low"].notna().any() else ""
    ax.axvline(0.5, color="0.6", linewidth=0.9)
    if singles is not None and singles.duplicated(key).any():
        several = singles.loc[singles.duplicated(key, keep=False), [*key, "auroc"]]
        small = {"marker": ".", "markersize": 3, "label": ""}
        dots = {name: look | small for name, look in styles.items()}
        ranked(ax, several, "auroc", styles=dots, **row)
        about += "; " * bool(about) + "dots: single runs, where the marker is a mean of several"
    ranked(ax, table, "auroc", styles=styles, **row)
    ax.set_xlim(-0.03, 1.03)
    x = "AUROC, known against one set of unknown images (grey line: chance)"
    return finished(figure, x=x, y="rule or method", about=about)


@figure_of("data", "group", "steps", "auroc")
def class_likeness(points: pd.DataFrame) -> Figure:
    """AUROC of each unknown class over its distance to the closest known one: a panel a data set.

    Args:
        points: columns data (a panel's title), group, steps (edges in WordNet) and auroc in
            [0, 1].
    """
    figure, parts = facets(points, "data", size=(4.2, 3), wrap=2, sharey=True)
    for ax, part, _ in parts:
        groups = looks(present(part["group"], GROUPS), GROUPS)
        for k, (group, look) in enumerate(groups.items()):
            place = part.loc[part["group"] == group, ["steps", "auroc"]].to_numpy()
            beside = 0.2 * (k - (len(groups) - 1) / 2)  # the groups of a step stand side by side
            draw.points(ax, place[:, 0] + beside, place[:, 1], look)
        ax.axhline(0.5, color="0.4", linewidth=0.8, linestyle=(0, (1, 2)), label="random score")
        ax.locator_params(axis="x", integer=True)
    x = "steps in WordNet to the closest known class"
    about = "the bins of a step stand side by side"
    return finished(figure, x=x, y="AUROC of the class", about=about)


@laid_out
def accuracy_auroc(
    points: pd.DataFrame, rho: pd.DataFrame, *, empty: Mapping[str, str], about: str
) -> Figure:
    """Closed-set accuracy against AUROC, a panel for each row of `rho`.

    Colour says the series, the marker's shape the mark; where both are the same the legend says
    so once. Bars are 95 % intervals. The grey line is that of least squares; there is none of three
    points or fewer, nor where the interval of rho includes 0.

    Args:
        points: from `across.correlations`, with columns series and mark, and hollow (bool) if some
            markers are not to be filled; and line, if the points that share a value have a line
            of their own, and those without one none.
        rho: as from `across.correlations`; panels stand in the order of its rows.
        empty: what to say in a panel without points; each gets a panel after the others.
        about: what bars and fillings are, said below.

    Raises:
        ValueError: a column is missing, or nothing is to be drawn.
    """
    if len(rho) or not empty:
        need(rho, RHO[:5])
        need(points, ["panel", "series", "mark", *MEASURES, *LIMITS])
    points = points.reindex(columns=[*dict.fromkeys([*points, "series", "mark"])])
    rhos = rho.set_index("panel").reindex([*dict.fromkeys([*rho["panel"], *empty])])
    wrap = -(-len(rhos) // -(-len(rhos) // 3))
    size = (4.6, 4, 3.2)[wrap - 1], 3.6
    figure, parts = facets(rhos.reset_index(), "panel", wrap=wrap, size=size)
    styles = [looks(points[name].unique()) for name in ("series", "mark")]
    for ax, row, (name,) in parts:
        part = points[points["panel"] == name]
        undecided = row["low"].iloc[0] <= 0 <= row["high"].iloc[0]
        _scatter(ax, part.assign(line=np.nan) if undecided else part, *styles)
        if not len(part):
            draw.say(ax, empty[name])
            ax.set(xticks=[], yticks=[])
        ax.set(xlim=(None, min(TOP, ax.get_xlim()[1])), ylim=(None, min(TOP, ax.get_ylim()[1])))
        ax.set_title(_title(name, row.iloc[0]))
    _legend(parts[0][0], *styles)
    return finished(figure, x="closed-set accuracy", y="AUROC", about=about)


def _scatter(ax: Axes, part: pd.DataFrame, colors: dict, shapes: dict) -> None:
    """Points in the colour of their series and the shape of their mark, and their fit."""
    for row in part.to_dict("records"):
        look = {"color": colors[row["series"]]["color"], "marker": shapes[row["mark"]]["marker"]}
        look |= {"markerfacecolor": "white"} if row.get("hollow", False) else {}
        x, y = ([row[f"{name}_{end}"] for end in ENDS] for name in MEASURES)
        place = [row["accuracy"]], [row["auroc"]]
        look |= {"markersize": 6.5, "clip_on": False, "in_layout": False}  # whole at 1
        draw.points(ax, *place, look, x_ends=x, y_ends=y)
    ax.locator_params(nbins=6)
    lined = part if "line" in part else part.assign(line="")
    for _, line in lined.groupby("line"):
        if len(line) > FEW and line["accuracy"].nunique() > 1:
            slope, start = np.polyfit(line["accuracy"], line["auroc"], 1)
            ends = np.array([line["accuracy"].min(), line["accuracy"].max()])
            ax.plot(ends, start + slope * ends, color="0.6", linewidth=1, zorder=1)


def _title(name: str, rho: pd.Series) -> str:
    if np.isnan(rho["points"]):
        return f"{name}\n"
    span = "" if np.isnan(rho["low"]) else f" [{rho['low']:.2f}, {rho['high']:.2f}]"
    number = "" if np.isnan(rho["rho"]) else f", $\\rho$ = {rho['rho']:.2f}{span}"
    return f"{name}\n$n$ = {rho['points']:.0f}{number}"


def _legend(ax: Axes, colors: dict, shapes: dict) -> None:
    """Name colours and shapes by lines without a point."""
    dots = {"linestyle": "none", "markersize": 6.5}
    same = list(colors) == list(shapes)
    for look in colors.values():
        ax.plot([], [], **look | (dots if same else {"linestyle": "-", "marker": "", "lw": 4}))
    for look in () if same else shapes.values():
        ax.plot([], [], **look | dots | {"color": "0.4"})
