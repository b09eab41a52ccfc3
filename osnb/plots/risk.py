"""Unknown detection in one pool, after Kim et al. 2021: gains, curves, accepted errors, costs.

`samples` below is one row per test sample and method: columns panel (the pool), method, kind
("" where accepting the sample is right, else which kind of error it is) and score.
"""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.ticker import PercentFormatter

from osnb import metrics
from osnb.plots.draw import bars, facets, finished, lines, panels, ranked
from osnb.plots.style import COLORS, HATCHES, Figure, laid_out, looks, need, present

SAMPLES = ("panel", "method", "kind", "score")
POINTS = ("benchmark", "method", "side", "improvement", "low", "high")
BASELINE = "Baseline"
RIGHT, PERFECT = "right", "perfect ranking"
FIRST = (RIGHT, "wrong prediction", "near")  # of the kinds, in stacked bars


def _curves(samples: pd.DataFrame) -> Iterator[tuple]:
    """((panel, method), rows) of each curve."""
    need(samples, SAMPLES)
    yield from samples.groupby(["panel", "method"], sort=False)


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
    gains = []
    for (benchmark, side), part in rows.groupby(["benchmark", "side"], sort=False):
        means = {m: aurc[at.index].mean(axis=0) for m, at in part.groupby("method", sort=False)}
        base = means.pop(BASELINE, np.full(aurc.shape[1], np.nan))
        for method, mean in means.items():
            values = (base - mean) / base
            ends = metrics.interval(values)[1:] if len(values) > 1 else (np.nan, np.nan)
            names = ", ".join(part.loc[part["method"] == method, "run"].unique())
            gains.append((benchmark, side, method, values[0], *map(float, ends), names))
    columns = ["benchmark", "side", "method", "improvement", "low", "high", "run"]
    return pd.DataFrame(gains, columns=columns).dropna(subset="improvement", ignore_index=True)


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
        if not any(part["panel"].iloc[0] == panel for part in parts):
            scores = {PERFECT: right.astype(float)} | scores
        kept = np.unique(np.linspace(0, len(rows) - 1, most).round().astype(int))
        for name, score in scores.items():
            coverage, risk = metrics.risk_coverage(score, right)
            curve = {"coverage": coverage[kept], "risk": risk[kept]}
            parts.append(pd.DataFrame({"panel": panel, "method": name} | curve))
    return pd.concat(parts, ignore_index=True)


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
    points = []
    for (panel, method), rows in _curves(samples):
        score, right = rows["score"].to_numpy(), (rows["kind"] == "").to_numpy()
        threshold, coverage = metrics.coverage_at_risk(score, right, risk=risk)
        accepted = (rows["score"] >= threshold).groupby(rows["kind"], sort=False)
        point = {"panel": panel, "method": method, "threshold": threshold, "coverage": coverage}
        for kind, yes in accepted:
            counts = {"kind": kind or RIGHT, "accepted": int(yes.sum()), "of": len(yes)}
            points.append(point | counts)
    return pd.DataFrame(points)


def coverage_points(samples: pd.DataFrame) -> pd.DataFrame:
    """Every operating point of each method: one for each distinct score, and rejecting all.

    Args:
        samples: columns panel, method, kind ("" where accepting is right) and score.

    Returns:
        panel, method, threshold (accept from there on; inf rejects all), coverage, risk (0
        where nothing is accepted), by falling threshold.

    Raises:
        ValueError: a column is missing, or a score is NaN.
    """
    parts = []
    for (panel, method), rows in _curves(samples):
        score = rows["score"].to_numpy()
        coverage, risk = metrics.risk_coverage(score, (rows["kind"] == "").to_numpy())
        falling = np.sort(score)[::-1]
        last = np.r_[falling[1:] != falling[:-1], True]  # of each tie
        curve = {"threshold": np.r_[np.inf, falling[last]]}
        curve |= {"coverage": np.r_[0.0, coverage[last]], "risk": np.r_[0.0, risk[last]]}
        parts.append(pd.DataFrame({"panel": panel, "method": method} | curve))
    return pd.concat(parts, ignore_index=True)


def cost_points(points: pd.DataFrame, *, wrong: float, rejection: float) -> pd.DataFrame:
    """The expected cost of a sample at each operating point, after Chow 1970.

    A wrong acceptance costs `wrong`, a rejection costs `rejection` whatever the sample was (it
    goes to somebody who looks), a right acceptance nothing. With coverage c and risk r:

        cost = wrong c r + rejection (1 - c)

    Args:
        points: as from `coverage_points`.
        wrong: any unit, >= 0.
        rejection: the same unit, >= 0.

    Returns:
        `points` with a column cost, in that unit.

    Raises:
        ValueError: a column is missing, or a cost is not finite or below 0.
    """
    need(points, ["panel", "method", "threshold", "coverage", "risk"])
    for name, cost in {"wrong": wrong, "rejection": rejection}.items():
        if not (math.isfinite(cost) and cost >= 0):
            raise ValueError(f"need a finite cost of at least 0 as {name}; got {cost}")
    rejected = 1 - points["coverage"]
    cost = wrong * points["coverage"] * points["risk"] + rejection * rejected
    return points.assign(cost=cost)


def cost_table(points: pd.DataFrame, *, wrong: float, rejection: float) -> pd.DataFrame:
    """The cheapest point of each method: rows of `cost_points`; of equal ones the last.

    Arguments and errors are those of `cost_points`.
    """
    rows = cost_points(points, wrong=wrong, rejection=rejection)
    order = rows.sort_values("coverage", ascending=False, kind="stable")
    least = order.groupby(["panel", "method"], sort=False)["cost"].idxmin()
    return rows.loc[sorted(least)].reset_index(drop=True)


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
    methods, sides = present(points["method"]), present(points["side"])
    height = 0.8 + 0.42 * len(methods)
    figure, parts = facets(points, "benchmark", width=4.3, height=height)
    row = {"rows": "method", "names": methods, "by": "side", "styles": looks(sides)}
    for ax, part, _ in parts:
        ranked(ax, part, "improvement", apart=0.24, **row)
        here = part.loc[part["side"] != sides[0], "method"].unique()
        labels = [m if m in here or len(sides) == 1 else f"{m} (not run)" for m in methods]
        ax.set_yticks(range(len(methods)), labels)
        ax.axvline(0, color="0.4", linewidth=1)
        ax.xaxis.set_major_formatter(PercentFormatter(1, symbol=""))
    return finished(figure, x="AURC lower than Baseline's, in %", about=about)


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
    perfect = {"color": "0.6", "marker": "", "linewidth": 3, "label": PERFECT}
    styles = looks(name for name in present(points["method"]) if name != PERFECT)
    styles = {PERFECT: perfect} | {name: look | {"linewidth": 1.3} for name, look in styles.items()}
    figure, parts = facets(points, "panel", wrap=2, width=4.4, height=3.1)
    for ax, part, _ in parts:
        lines(ax, part, "coverage", "risk", by="method", styles=styles, marks=5)
        ax.axhline(risk, color="0.3", linestyle=(0, (2, 2)), linewidth=1, label=f"risk {risk:g}")
        ax.set_ylim(-0.02, 1.02)
    return finished(figure, x="coverage", y="errors among accepted")


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
    kinds = present([RIGHT, *table["kind"]], FIRST)  # so that a kind keeps its look without it
    colors, fills = ("0.8", *COLORS[1:]), {}
    for k, kind in enumerate(kinds):
        look = {"color": colors[k % len(colors)], "hatch": HATCHES[k % len(HATCHES)]}
        fills[kind] = look | {"label": kind}
    most = table.groupby("panel")["method"].nunique().max()
    height = max(2.2, 0.9 + 0.22 * most)
    figure, parts = facets(table, "panel", wrap=2, width=4.4, height=height)
    for ax, part, _ in parts:
        wide = part.pivot(index="method", columns="kind", values=value).fillna(0)
        here = {kind: fill for kind, fill in fills.items() if kind in wide}
        bars(ax, wide.loc[present(part["method"])], here, size=0.75, edgecolor="white", lw=0.4)
    return finished(figure, x=label)


def accepted_at_risk(samples: pd.DataFrame, *, risk: float) -> Figure:
    """`risk_table` as bars: what each method accepts at a risk, by kind, in samples."""
    label = f"accepted samples, risk at most {risk:g}"
    return stacked_errors(risk_table(samples, risk=risk), value="accepted", label=label)


@laid_out
def least_cost(points: pd.DataFrame, *, wrong: float, rejection: float) -> Figure:
    """The cheapest point of each method, on its risk-coverage curve (left) and cost curve (right).

    A row of panels for each pool. Arguments and errors are those of `cost_points`.
    """
    rows = cost_points(points, wrong=wrong, rejection=rejection)
    best = cost_table(points, wrong=wrong, rejection=rejection)
    pools, methods = present(rows["panel"]), looks(present(rows["method"]))
    figure, axes = panels(len(pools), 2, width=4.6, height=2.9)
    for pair, name in zip(axes, pools, strict=True):
        part, styles = rows[rows["panel"] == name], {}
        for at in best[best["panel"] == name].itertuples():
            curve = part.loc[part["method"] == at.method, "threshold"].to_numpy()
            place = [int(np.argmax(curve == at.threshold))]
            styles[at.method] = methods[at.method] | {"markevery": place}
        for ax, value in zip(pair, ("risk", "cost"), strict=True):
            line = {"linewidth": 1.2, "marks": 1, "markersize": 8, "mec": "black"}
            lines(ax, part, "coverage", value, by="method", styles=styles, **line)
            ax.set_xlim(-0.03, 1.03)
        pair[0].set(title=name, ylabel="errors among accepted", ylim=(-0.02, 1.02))
        pair[1].set(title=f"wrong costs {wrong:g}, rejection {rejection:g}", ylabel="cost a sample")
    return finished(figure, x="coverage")
