"""Lines: OSCR (Figures 2, 5 and 6 of Palechor et al. 2023), and what happens over epochs."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from osnb import metrics
from osnb.plots.draw import facets, finished, lines, over_seeds, panels
from osnb.plots.style import (
    DASH_DOT,
    DASHED,
    LOSSES,
    PROTOCOLS,
    ROLES,
    UNITS,
    Figure,
    count,
    label,
    laid_out,
    need,
    present,
    room_above,
)

GRID = 40  # points per curve on either grid, so that Figure 2 as csv stays below 300 kB
POINTS = [*("protocol", "role", "loss", "fpr", "ccr", "low", "high", "over", "sd_seeds", "seeds")]
SIDES = {"gamma_plus": "γ⁺, known samples", "gamma_minus": "γ⁻, negative samples"}
MEASURES = {
    "loss": ("0.4", "-", "o", "loss"),
    "gamma_plus": ("#1f77b4", "-", "o", SIDES["gamma_plus"]),
    "gamma_minus": ("#d9822b", DASHED, "o", SIDES["gamma_minus"]),
    "accuracy": ("#222222", DASH_DOT, "o", "accuracy"),
}
NO_MEASURE = {"epoch", "learning_rate", "loss", "best", "gamma", "stage"}


def oscr_points(
    table: pd.DataFrame, *, score: str, unit: str = "class", seed: int = 0, resamples: int = 1000
) -> pd.DataFrame:
    """The points of Figures 2, 5 and 6: CCR at fixed FPRs, with a bootstrap interval.

    The FPRs are multiples of 1 / U, evenly spaced on a linear and on a logarithmic axis;
    CCR at FPR q belongs to the largest FPR not above q, as in `metrics.ccr_at_fpr`. All runs of
    a protocol share FPRs and resamples, so their mean needs no interpolation.

    Args:
        table: scores tables of all runs, with columns protocol, loss and seed.
        score: the scoring rule's column.
        unit: what is drawn with replacement within each role: class or sample.
        seed: of the draws.
        resamples: their number.

    Returns:
        Frame with columns protocol, role (negative, unknown), loss, fpr, ccr (mean over the
        seeds), low and high (where 95 % of the resamples of that mean lie), over (the unit),
        sd_seeds (standard deviation, NaN for one seed) and seeds (their number).

    Raises:
        ValueError: a column is missing, or the score in some run; a run lacks known samples or the
            others, or runs of a protocol have different test samples.
    """
    need(table, ["protocol", "loss", "seed", "role", "label", "pred", "sample", unit, score])
    if (table["role"] == "known").all():
        raise ValueError("need negative or unknown samples; all are known")
    if (lacks := table[score].isna()).any():
        runs = table.loc[lacks, ["protocol", "loss", "seed"]].drop_duplicates().astype(str)
        names = ", ".join(runs.agg(" ".join, axis=1))
        raise ValueError(f"need a number in '{score}' of each run; there is none in: {names}")
    rows = []
    for number, (protocol, runs) in enumerate(table.groupby("protocol")):
        known, *others = (_ordered(runs, r) for r in present([*runs["role"], "known"], ROLES))
        draw = {"unit": unit, "resamples": resamples}
        weights = _weights(known, [seed, number, 0], **draw)
        for other in others:
            role = other["role"].iloc[0]
            both = weights, _weights(other, [seed, number, [*ROLES].index(role)], **draw)
            for loss, part in known.groupby(level="loss"):
                curve = _curve(part, other.loc[loss], score, both)
                rows.append(curve.assign(protocol=protocol, role=role, loss=loss, over=unit))
    return pd.concat(rows, ignore_index=True)[POINTS]


def _ordered(runs: pd.DataFrame, role: str) -> pd.DataFrame:
    """A role's rows, by loss and seed, each run's in the order of its samples."""
    rows = runs[runs["role"] == role].sort_values(["loss", "seed", "sample"])
    samples = rows.groupby(["loss", "seed"])["sample"].agg(tuple)
    if samples.nunique() != 1 or len(samples) < len(runs.groupby(["loss", "seed"])):
        raise ValueError(f"need the same {role} samples, at least one, in all runs of a protocol")
    return rows.set_index(["loss", "seed"])


def _weights(rows: pd.DataFrame, seed: list[int], *, unit: str, resamples: int) -> np.ndarray:
    first = rows.loc[[rows.index[0]], unit].to_numpy()
    return metrics.bootstrap_weights(first, seed=seed, resamples=resamples)


def _curve(known: pd.DataFrame, other: pd.DataFrame, score: str, weights: tuple) -> pd.DataFrame:
    """CCR of one loss, the mean over its seeds, at each FPR."""
    at = _grid(weights[1].shape[1])
    seeds = []
    for (_, seed), run in known.groupby(level=["loss", "seed"]):
        correct = (run["pred"] == run["label"]).to_numpy()
        columns = run[score].to_numpy(), correct, other.loc[[seed], score].to_numpy()
        seeds.append(metrics.bootstrap_oscr(*columns, fpr=at, weights=weights))
    ccr, low, high = metrics.interval(np.mean(seeds, axis=0))
    spread = np.std([curve[0] for curve in seeds], axis=0, ddof=1) if len(seeds) > 1 else np.nan
    curve = {"fpr": at, "ccr": ccr, "low": low, "high": high, "sd_seeds": spread}
    return pd.DataFrame(curve).assign(seeds=len(seeds))


def _grid(count: int) -> np.ndarray:
    """Multiples of 1 / count in [0, 1], dense on a linear and on a logarithmic axis."""
    spread = np.r_[np.geomspace(1, count, GRID), np.linspace(0, count, GRID + 1)]
    return np.unique(spread.round()) / count


@laid_out
def oscr_curves(points: pd.DataFrame, *, log: bool) -> Figure:
    """Figure 2 (log) or 5 (linear): OSCR, a column per protocol, a line per loss.

    Negatives above, unknowns below, if both are there; a band is the interval of `oscr_points`.

    Args:
        points: as from `oscr_points`.
        log: logarithmic FPR axis.
    """
    return _oscr(points, "protocol", "loss", LOSSES, log)


@laid_out
def oscr_by_loss(points: pd.DataFrame, *, log: bool) -> Figure:
    """Figure 6: OSCR, a column per loss, a line per protocol.

    Args:
        points: as from `oscr_points`.
        log: logarithmic FPR axis.
    """
    return _oscr(points, "loss", "protocol", PROTOCOLS, log)


def _oscr(points: pd.DataFrame, column: str, by: str, styles: dict, log: bool) -> Figure:
    need(points, POINTS)
    size = {"width": 3, "height": 2.5, "sharex": True, "sharey": True}
    figure, parts = facets(points, "role", column, **size)
    for ax, part, _ in parts:
        lines(ax, part[part["fpr"] > 0] if log else part, "fpr", "ccr", by=by, styles=styles)
    corner = parts[0][0]
    corner.set(xlim=(0, 1.02), ylim=(0, room_above(points["high"])))
    if log:
        corner.set(xscale="log", xlim=(0.7 * points.loc[points["fpr"] > 0, "fpr"].min(), 1.4))
    unit = UNITS[points["over"].iloc[0]]
    mean = "one seed" if points["seeds"].max() == 1 else f"mean of {count(points['seeds'])} seeds"
    about = f"line: {mean}; band: 95 % bootstrap interval over test {unit}"
    names = {"x": "false positive rate", "y": "correct classification rate"}
    return finished(figure, **names, about=about)


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


@laid_out
def confidence_history(history: pd.DataFrame) -> Figure:
    """Figure 3: confidence on the validation set, gamma+ (left) and gamma- (right), by epoch.

    Args:
        history: columns protocol, loss, seed, epoch (from 1), gamma_plus and gamma_minus in
            [0, 1]; one row of panels per protocol, one line per loss.
    """
    key = ["protocol", "loss", "seed", "epoch"]
    need(history, [*key, *SIDES])
    long = history[[*key, *SIDES]].melt(key, var_name="side", value_name="confidence")
    size = {"width": 4, "height": 2, "sharex": True, "sharey": True}
    figure, parts = facets(long, "protocol", "side", **size)
    for ax, part, (protocol, side) in parts:
        mean = over_seeds(part, "epoch", "confidence", "loss")
        lines(ax, mean, "epoch", "confidence", by="loss", styles=LOSSES)
        ax.set(title=f"{label(protocol)}: {SIDES[side]}", ylim=(0, 1.02))
    parts[0][0].xaxis.get_major_locator().set_params(integer=True)
    seeds = history.groupby(["protocol", "loss"])["seed"].nunique()
    several = f"line: mean of {count(seeds)} seeds; band: from the least seed to the largest"
    about = several if seeds.max() > 1 else "one seed"
    return finished(figure, x="epoch", y="mean confidence", about=about)


@laid_out
def training(history: pd.DataFrame) -> Figure:
    """Loss (left) and the measures of `validate` (right) over the epochs so far.

    Args:
        history: from `train.fit`, or history.parquet while it runs: columns epoch (from 1), loss
            in nats, and measures in [0, 1]; a dot marks the epoch with the largest `best`.
    """
    need(history, ["epoch", "loss"])
    figure, axes = panels(1, 2, width=4, height=2.6)
    rates = history.max().between(0, 1)  # norms and logits would leave the panel
    right = [name for name in history if name not in NO_MEASURE and rates[name]]
    best = [int(history["best"].argmax())] if "best" in history else []
    dot = {"marks": len(best), "markevery": best}
    for ax, names in zip(axes[0], (["loss"], right), strict=True):
        long = history[["epoch", *names]].melt("epoch", var_name="measure")
        styles = MEASURES | {n: ("0.4", "-", "o", n) for n in names if n not in MEASURES}
        lines(ax, long, "epoch", "value", by="measure", styles=styles, **dot)
        ax.xaxis.get_major_locator().set_params(integer=True)
    axes[0, 0].set_ylabel("mean loss, in nats")
    axes[0, 1].set(ylabel="on validation images", ylim=(0, 1.02))
    last = history.iloc[-1]
    about = f"epoch {last['epoch']:.0f}: loss {last['loss']:.3f}"
    return finished(figure, x="epoch", about=about)
