"""Figures 2, 3, 5 and 6 of Palechor et al. 2023: OSCR curves and confidence over epochs."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from osnb import metrics
from osnb.plots.described import Figure, panels
from osnb.plots.style import (
    LOSSES,
    PROTOCOLS,
    ROLES,
    band,
    count,
    label_outside,
    laid_out,
    look,
    need,
    note,
    present,
    room_above,
)

GRID = 40  # points per curve on either grid, so that Figure 2 as csv stays below 300 kB
UNITS = {"class": "classes", "sample": "images"}
POINTS = [
    *("protocol", "role", "loss", "fpr", "ccr", "low", "high", "over", "sd_seeds", "seeds"),
]


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
        known = _ordered(runs, "known")
        weights = _weights(known, unit, [seed, number, 0], resamples)
        for role in present(runs.loc[runs["role"] != "known", "role"], ROLES):
            other = _ordered(runs, role)
            both = weights, _weights(other, unit, [seed, number, ROLES.index(role)], resamples)
            rows += [
                _curve(part, other.loc[loss], score, both).assign(
                    protocol=protocol, role=role, loss=loss, over=unit
                )
                for loss, part in known.groupby(level="loss")
            ]
    return pd.concat(rows, ignore_index=True)[POINTS]


def _ordered(runs: pd.DataFrame, role: str) -> pd.DataFrame:
    """A role's rows, by loss and seed, each run's in the order of its samples."""
    rows = runs[runs["role"] == role].sort_values(["loss", "seed", "sample"])
    samples = rows.groupby(["loss", "seed"])["sample"].agg(tuple)
    if samples.nunique() != 1 or len(samples) < len(runs.groupby(["loss", "seed"])):
        raise ValueError(f"need the same {role} samples, at least one, in all runs of a protocol")
    return rows.set_index(["loss", "seed"])


def _weights(rows: pd.DataFrame, unit: str, seed: list[int], resamples: int) -> np.ndarray:
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
    found = {"fpr": at, "ccr": ccr, "low": low, "high": high, "sd_seeds": spread}
    return pd.DataFrame(found).assign(seeds=len(seeds))


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
    need(points, POINTS)
    roles, protocols = present(points["role"], ROLES), present(points["protocol"], list(PROTOCOLS))
    figure, axes = panels(len(roles), len(protocols), width=3, height=2.5, sharex=True, sharey=True)
    for row, role in zip(axes, roles, strict=True):
        for ax, protocol in zip(row, protocols, strict=True):
            here = points[(points["role"] == role) & (points["protocol"] == protocol)]
            _lines(ax, here, "loss", LOSSES, log)
            ax.set_title(f"{look(PROTOCOLS, protocol)['label']}, {role} samples")
    return _finish(figure, axes, points, log)


@laid_out
def oscr_by_loss(points: pd.DataFrame, *, log: bool) -> Figure:
    """Figure 6: OSCR, a column per loss, a line per protocol.

    Args:
        points: as from `oscr_points`.
        log: logarithmic FPR axis.
    """
    need(points, POINTS)
    roles, losses = present(points["role"], ROLES), present(points["loss"], list(LOSSES))
    width = min(3, 10 / len(losses))
    figure, axes = panels(
        len(roles), len(losses), width=width, height=2.5, sharex=True, sharey=True
    )
    for row, role in zip(axes, roles, strict=True):
        for ax, loss in zip(row, losses, strict=True):
            here = points[(points["role"] == role) & (points["loss"] == loss)]
            _lines(ax, here, "protocol", PROTOCOLS, log)
            ax.set_title(f"{look(LOSSES, loss)['label']}, {role}")
    return _finish(figure, axes, points, log)


def _lines(ax: Axes, points: pd.DataFrame, by: str, styles: dict, log: bool) -> None:
    shown = points[points["fpr"] > 0] if log else points
    for name in present(shown[by], list(styles)):
        line = shown[shown[by] == name]
        ax.plot(line["fpr"], line["ccr"], linewidth=1.6, **look(styles, name))
        color = look(styles, name)["color"]
        ax.fill_between(line["fpr"], line["low"], line["high"], color=color, alpha=0.18, lw=0)


def _finish(figure: Figure, axes: np.ndarray, points: pd.DataFrame, log: bool) -> Figure:
    corner = axes[0, 0]
    corner.set_ylim(0, room_above(points["high"]))
    corner.set_xlim(0, 1.02)
    if log:
        corner.set_xscale("log")
        corner.set_xlim(0.7 * points.loc[points["fpr"] > 0, "fpr"].min(), 1.4)
    for ax in axes[-1]:
        ax.set_xlabel("false positive rate")
    for ax in axes[:, 0]:
        ax.set_ylabel("correct classification rate")
    unit = UNITS[points["over"].iloc[0]]
    lines = "one seed" if points["seeds"].max() == 1 else f"mean of {count(points['seeds'])} seeds"
    note(figure, f"line: {lines}; band: 95 % bootstrap interval over test {unit}")
    label_outside(figure, axes.flat)
    return figure


@laid_out
def confidence_history(history: pd.DataFrame) -> Figure:
    """Figure 3: confidence on the validation set, gamma+ (left) and gamma- (right), by epoch.

    Args:
        history: columns protocol, loss, seed, epoch (from 1), gamma_plus and gamma_minus in
            [0, 1]; one row of panels per protocol, one line per loss.
    """
    sides = {"gamma_plus": "γ⁺, known samples", "gamma_minus": "γ⁻, negative samples"}
    need(history, ["protocol", "loss", "seed", "epoch", *sides])
    protocols = present(history["protocol"], list(PROTOCOLS))
    figure, axes = panels(len(protocols), 2, width=4, height=2, sharex=True, sharey=True)
    for row, protocol in zip(axes, protocols, strict=True):
        runs = history[history["protocol"] == protocol]
        for ax, (column, title) in zip(row, sides.items(), strict=True):
            for loss in present(runs["loss"], list(LOSSES)):
                band(ax, runs[runs["loss"] == loss], "epoch", column, **look(LOSSES, loss))
            ax.set(title=f"{look(PROTOCOLS, protocol)['label']}: {title}", ylim=(0, 1.02))
        row[0].set_ylabel("mean confidence")
    axes[0, 0].xaxis.get_major_locator().set_params(integer=True)
    for ax in axes[-1]:
        ax.set_xlabel("epoch")
    seeds = history.groupby(["protocol", "loss"])["seed"].nunique()
    several = f"line: mean of {count(seeds)} seeds; band: from the least seed to the largest"
    note(figure, several if seeds.max() > 1 else "one seed")
    label_outside(figure, axes.flat)
    return figure
