"""Points with intervals: methods beside each other, accuracy against AUROC, classes one by one."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from osnb.evidence.across import FEW, RHO
from osnb.evidence.frames import need
from osnb.plots import draw
from osnb.plots.draw import ENDS, facets, figure_of, finished, panels, ranked
from osnb.plots.style import Figure, laid_out, looks, present

KINDS = {
    "cited": ("#222222", "-", "D", "printed in the paper, on its own data"),
    "baseline": ("#d9822b", "-", "o", "ours, baseline recipe"),
    "strong": ("#1f5f99", "-", "s", "ours, strong recipe"),
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
LIMITS = tuple(f"{name}_{end}" for name in MEASURES for end in ENDS)


@figure_of("place", "printed", "kind", "auroc", "low", "high", "accuracy", "splits")
def method_gains(points: pd.DataFrame) -> Figure:
    """Figure 1a: AUROC of methods, a panel a data set, accuracy in figures beside each number.

    Args:
        points: columns place, printed, kind (cited, baseline, strong), auroc, low, high, accuracy
            (rates), splits (names); the last four may be NaN. Panels, and methods from the top
            down, stand in the order of the rows.
    """
    methods = present(points["printed"])
    width = 10 / min(3, max(2, points["place"].nunique()))
    size = {"width": width, "height": 1.5 + 0.24 * len(methods), "sharey": True}
    figure, parts = facets(points, "place", wrap=3, **size)
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
    return finished(figure, x="AUROC", about="lines: 95 % over classes, a bootstrap; 0.5 is chance")


@figure_of("finding", "place", "number", "low", "high", "answer")
def contrasts(points: pd.DataFrame) -> Figure:
    """Each finding's number with its interval, a panel a data set; right of 0 it is right.

    Args:
        points: as from `across.contrasts`; what was not run has no mark.
    """
    findings = present(points["finding"])
    width, height = 9.6 / max(points["place"].nunique(), 1.4), 1.2 + 0.3 * len(findings)
    figure, parts = facets(points, "place", width=width, height=height, sharey=True)
    row = {"rows": "finding", "names": findings, "by": "answer", "styles": looks(ANSWERS, ANSWERS)}
    for ax, part, _ in parts:
        ranked(ax, part, "number", **row)
        ax.axvline(0, color="black", linewidth=0.8)
    about = "lines: 95 % over classes, the same draws for both methods"
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
    height = 0.8 + 0.42 * len(methods)
    figure, parts = facets(points, "place", width=4.3, height=height)
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
def rules_by_set(table: pd.DataFrame, singles: pd.DataFrame | None = None) -> Figure:
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
    ax, about, key = axes[0, 0], "", ["printed", "source"]
    ax.axvline(0.5, color="0.6", linewidth=0.9)
    if singles is not None and singles.duplicated(key).any():
        several = singles.loc[singles.duplicated(key, keep=False), [*key, "auroc"]]
        small = {"marker": ".", "markersize": 3, "label": ""}
        dots = {name: look | small for name, look in styles.items()}
        ranked(ax, several, "auroc", styles=dots, **row)
        about = "dots: single runs, where the marker is a mean of several"
    ranked(ax, table, "auroc", styles=styles, **row)
    ax.set_xlim(-0.03, 1.03)
    x = "AUROC, known against one set of unknown images (grey line: chance)"
    return finished(figure, x=x, y="rule", about=about)


@figure_of("data", "group", "steps", "auroc")
def class_likeness(points: pd.DataFrame) -> Figure:
    """AUROC of each unknown class over its distance to the closest known one: a panel a data set.

    Args:
        points: columns data (a panel's title), group, steps (edges in WordNet) and auroc in
            [0, 1].
    """
    figure, parts = facets(points, "data", width=4.2, height=3, wrap=2, sharey=True)
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
    size = {"width": (4.6, 4, 3.2)[wrap - 1], "height": 3.6, "wrap": wrap}
    figure, parts = facets(rhos.reset_index(), "panel", **size)
    styles = [looks(points[name].unique()) for name in ("series", "mark")]
    for ax, row, (name,) in parts:
        part = points[points["panel"] == name]
        undecided = row["low"].iloc[0] <= 0 <= row["high"].iloc[0]
        _scatter(ax, part.assign(line=np.nan) if undecided else part, *styles)
        if not len(part):
            draw.say(ax, empty[name])
            ax.set(xticks=[], yticks=[])
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
        draw.points(ax, *place, look | {"markersize": 6.5}, x_ends=x, y_ends=y)
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
