"""Unknown detection in one pool, after Kim et al. 2021: Figure 5, curves, shares of the AURC.

`samples` below is one row per test sample and method: columns panel, method, kind ("" where
accepting the sample is right, else which kind of error it is) and score.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.ticker import PercentFormatter

from osnb import metrics
from osnb.plots.style import Figure, label_outside, laid_out, need, note, panels, present

SAMPLES = ("panel", "method", "kind", "score")
POINTS = ("benchmark", "method", "side", "improvement", "low", "high")
BASELINE = "Baseline"
# Okabe and Ito's colours, the light yellow left out; colour, line and marker of a method
COLORS = [
    "#222222",
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#d55e00",
    "#56b4e9",
    "#cc79a7",
    "#7f7f7f",
    "#8b1a4a",
]
LINES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
HATCHES = ("", "///", "...", "xxx", "\\\\\\")
RIGHT, PERFECT = "right", "perfect ranking"
FIRST = (RIGHT, "wrong prediction", "near")  # of the kinds, in stacked bars


def improvement_points(rows: pd.DataFrame, aurc: np.ndarray) -> pd.DataFrame:
    """How much lower a method's AURC is than Baseline's, as a share of Baseline's (Figure 5).

        improvement = (AURC of Baseline - AURC of the method) / AURC of Baseline

    Args:
        rows: one row per run, its index a position in `aurc`; columns benchmark, side (whose
            numbers, in which pool), method (one of them Baseline) and run.
        aurc: (n, 1 + R) rates in (0, 1]; column 0 is the number itself, the others its resamples,
            shared by all methods of a benchmark. A method's runs are averaged.

    Returns:
        One row per benchmark, side and method but Baseline, in order of appearance: benchmark,
        side, method, improvement, low, high (95 % of the resamples; NaN without), run (names).
        A side without Baseline, or a method without a number, has no row.

    Raises:
        ValueError: a column is missing.
    """
    need(rows, ["benchmark", "side", "method", "run"])
    found = []
    for (benchmark, side), part in rows.groupby(["benchmark", "side"], sort=False):
        means = {m: aurc[at.index].mean(axis=0) for m, at in part.groupby("method", sort=False)}
        base = means.pop(BASELINE, np.full(aurc.shape[1], np.nan))
        for method, mean in means.items():
            values = (base - mean) / base
            ends = metrics.interval(values)[1:] if len(values) > 1 else (np.nan, np.nan)
            names = ", ".join(part.loc[part["method"] == method, "run"].unique())
            found.append((benchmark, side, method, values[0], *map(float, ends), names))
    columns = ["benchmark", "side", "method", "improvement", "low", "high", "run"]
    return pd.DataFrame(found, columns=columns).dropna(subset="improvement", ignore_index=True)


@laid_out
def improvements(points: pd.DataFrame, *, about: str) -> Figure:
    """Improvement of each method over Baseline, in percent, a panel for each benchmark.

    A side has a colour, a marker and a row of its own within the method; lines are 95 %
    intervals. A method that the panel's first side has and no other is marked "not run".

    Args:
        points: columns benchmark, method, side, improvement, low and high, as rates.
        about: what the lines are, said below.

    Raises:
        ValueError: a column is missing, or there is no row.
    """
    need(points, POINTS)
    names = points["benchmark"].unique()
    methods, sides = points["method"].unique(), points["side"].unique()
    figure, axes = panels(1, len(names), width=4.3, height=0.8 + 0.42 * len(methods))
    for ax, name in zip(axes.flat, names, strict=True):
        part = points[points["benchmark"] == name]
        for k, side in enumerate(sides):
            rows = part[part["side"] == side]
            at = np.array([list(methods).index(m) for m in rows["method"]], float)
            at += 0.24 * (k - (len(sides) - 1) / 2)
            style = {"color": COLORS[k], "marker": MARKERS[k], "markersize": 5.5}
            ax.hlines(at, rows["low"], rows["high"], color=COLORS[k], linewidth=1, alpha=0.6)
            ax.plot(rows["improvement"], at, linestyle="none", label=side, **style)
        here = part.loc[part["side"] != sides[0], "method"].unique()
        labels = [m if m in here else f"{m} (not run)" for m in methods]
        ax.set_yticks(range(len(methods)), labels if len(sides) > 1 else methods)
        ax.set(title=name, xlabel="AURC lower than Baseline's, in %  (right: better)")
        ax.axvline(0, color="0.4", linewidth=1)
        ax.xaxis.set_major_formatter(PercentFormatter(1, symbol=""))
        ax.invert_yaxis()
    label_outside(figure, axes.flat)
    note(figure, about)
    return figure


def risk_points(samples: pd.DataFrame, *, most: int = 200) -> pd.DataFrame:
    """Risk-coverage curve of each method, thinned to evenly spaced coverages.

    Args:
        samples: as the module says.
        most: points of a curve, at most.

    Returns:
        panel, method, coverage, risk (rates); method "perfect ranking" has all right samples
        first, as many as those of the panel's first method.

    Raises:
        ValueError: a column is missing, or a score is NaN.
    """
    parts = []
    for (panel, method), rows in _curves(samples):
        right = (rows["kind"] == "").to_numpy()
        scores = {method: rows["score"].to_numpy()}
        if not any(each["panel"].iloc[0] == panel for each in parts):
            scores = {PERFECT: right.astype(float)} | scores
        kept = np.unique(np.linspace(0, len(rows) - 1, most).round().astype(int))
        for name, score in scores.items():
            coverage, risk = metrics.risk_coverage(score, right)
            curve = {"coverage": coverage[kept], "risk": risk[kept]}
            parts.append(pd.DataFrame({"panel": panel, "method": name} | curve))
    return pd.concat(parts, ignore_index=True)


@laid_out
def risk_curves(points: pd.DataFrame, *, risk: float) -> Figure:
    """Selective risk over coverage, a line for each method and a panel for each pool.

    Args:
        points: as from `risk_points`.
        risk: a limit, drawn as a dashed line; a rate.

    Raises:
        ValueError: a column is missing, or there is no row.
    """
    need(points, ["panel", "method", "coverage", "risk"])
    methods = [each for each in points["method"].unique() if each != PERFECT]
    figure, parts = _grid(points, height=3.1)
    for ax, part in parts:
        for method, line in part.groupby("method", sort=False):
            style = {"color": "0.6", "linewidth": 3}
            if method != PERFECT:
                k = methods.index(method)
                style = {"color": COLORS[k % len(COLORS)], "linestyle": LINES[k % len(LINES)]}
                style |= {"marker": MARKERS[k % len(MARKERS)], "markersize": 4, "linewidth": 1.3}
                style["markevery"] = (3 * k, max(1, len(line) // 5))
            ax.plot(line["coverage"], line["risk"], label=method, **style)
        ax.axhline(risk, color="0.3", linestyle=(0, (2, 2)), linewidth=1, label=f"risk {risk:g}")
        ax.set(xlabel="coverage", ylabel="errors among accepted", ylim=(-0.02, 1.02))
    label_outside(figure, figure.axes)
    return figure


@laid_out
def stacked_errors(table: pd.DataFrame, *, value: str, label: str) -> Figure:
    """A bar for each method, stacked by the kind of sample, a panel for each pool.

    Args:
        table: columns panel, method, kind and `value` (>= 0), one row for each of the three.
        value: column that the lengths show.
        label: of the axis, with its unit.

    Raises:
        ValueError: a column is missing, or there is no row.
    """
    need(table, ["panel", "method", "kind", value])
    kinds = present(table["kind"], FIRST)
    rows = table.groupby("panel")["method"].nunique().max()
    figure, parts = _grid(table, height=0.9 + 0.22 * rows)
    for ax, part in parts:
        left = pd.Series(0.0, part["method"].unique())
        for kind in present(part["kind"], kinds):
            k = kinds.index(kind) + (RIGHT not in kinds)
            lengths = part[part["kind"] == kind].set_index("method")[value]
            lengths = lengths.reindex(left.index, fill_value=0)
            style = {"color": COLORS[k] if k else "0.8", "hatch": HATCHES[k % len(HATCHES)]}
            style |= {"label": kind, "edgecolor": "white", "linewidth": 0.4, "height": 0.75}
            ax.barh(list(left.index), lengths, left=left, **style)
            left += lengths
        ax.set(xlabel=label)
        ax.grid(visible=False, axis="y")
        ax.invert_yaxis()
    label_outside(figure, figure.axes)
    return figure


def risk_table(samples: pd.DataFrame, *, risk: float) -> pd.DataFrame:
    """The operating point of each method: the largest coverage with at most this risk.

    Args:
        samples: as the module says.
        risk: largest share of errors among accepted samples, a rate.

    Returns:
        One row per panel, method and kind that the panel has: panel, method, threshold (accept
        from there on, inf where nothing can be accepted), coverage, kind ("right" or a kind of
        error), accepted (samples), of (samples of that kind).

    Raises:
        ValueError: a column is missing, a score is NaN, or risk is no rate.
    """
    found = []
    for (panel, method), rows in _curves(samples):
        score, right = rows["score"].to_numpy(), (rows["kind"] == "").to_numpy()
        threshold, coverage = metrics.coverage_at_risk(score, right, risk=risk)
        accepted = (rows["score"] >= threshold).groupby(rows["kind"], sort=False)
        point = {"panel": panel, "method": method, "threshold": threshold, "coverage": coverage}
        for kind, each in accepted:
            counts = {"kind": kind or RIGHT, "accepted": int(each.sum()), "of": len(each)}
            found.append(point | counts)
    return pd.DataFrame(found)


def accepted_at_risk(samples: pd.DataFrame, *, risk: float) -> Figure:
    """`risk_table` as bars: what each method accepts at a risk, by kind, in samples."""
    label = f"accepted samples, risk at most {risk:g}"
    return stacked_errors(risk_table(samples, risk=risk), value="accepted", label=label)


def _curves(samples: pd.DataFrame) -> Iterator[tuple]:
    """((panel, method), rows) of each curve."""
    need(samples, SAMPLES)
    yield from samples.groupby(["panel", "method"], sort=False)


def _grid(table: pd.DataFrame, *, height: float) -> tuple[Figure, list[tuple]]:
    """A figure, and (axes, rows) of each panel of the table, two beside each other."""
    parts = list(table.groupby("panel", sort=False))
    columns = min(2, len(parts))
    figure, axes = panels(-(-len(parts) // columns), columns, width=4.4, height=height)
    for ax, (name, _) in zip(axes.flat, parts, strict=False):
        ax.set(title=name)
    for ax in axes.flat[len(parts) :]:
        ax.remove()
    return figure, [(ax, rows) for ax, (_, rows) in zip(axes.flat, parts, strict=False)]
