"""Unknown detection in one pool, after Kim et al. 2021: the numbers that `unified` draws.

`samples` below is one row per test sample and method: columns panel (the pool), method, kind
("" where accepting the sample is right, else which kind of error it is) and score.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from osnb import metrics
from osnb.plots.style import need

SAMPLES = ("panel", "method", "kind", "score")
BASELINE = "Baseline"
RIGHT, PERFECT = "right", "perfect ranking"


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


def _curves(samples: pd.DataFrame) -> Iterator[tuple]:
    """((panel, method), rows) of each curve."""
    need(samples, SAMPLES)
    yield from samples.groupby(["panel", "method"], sort=False)
