"""Figures 2, 3, 5 and 6 of Palechor et al. 2023: OSCR curves and confidence over epochs."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from osnb import metrics
from osnb.plots.style import (
    LOSSES,
    PROTOCOLS,
    ROLES,
    Figure,
    band,
    label_outside,
    laid_out,
    look,
    need,
    note_seeds,
    panels,
    present,
    room_above,
)

GRID = 40  # points per curve on either grid, so that Figure 2 as csv stays below 300 kB


def oscr_points(table: pd.DataFrame, *, score: str) -> pd.DataFrame:
    """The points of Figures 2, 5 and 6: CCR at fixed FPRs, for every run and either role.

    The FPRs are multiples of 1 / U, evenly spaced on a linear and on a logarithmic axis;
    CCR at FPR q belongs to the largest FPR not above q, as in `metrics.ccr_at_fpr`.
    All runs of a protocol share the FPRs, so that their mean needs no interpolation.

    Args:
        table: scores tables of all runs, with columns protocol, loss and seed.
        score: the scoring rule's column.

    Returns:
        Frame with columns protocol, role (negative, unknown), loss, seed, fpr, ccr.

    Raises:
        ValueError: a column is missing, or a run lacks known samples or the others.
    """
    need(table, ["protocol", "loss", "seed", "role", "label", "pred", score])
    if (table["role"] == "known").all():
        raise ValueError("need negative or unknown samples; all are known")
    rows = []
    for protocol, runs in table.groupby("protocol"):
        others = runs[runs["role"] != "known"]
        for role, samples in others.groupby("role"):
            largest = samples.groupby(["loss", "seed"]).size().max()
            rows += [
                _curve(run, role, score, largest).assign(
                    protocol=protocol, role=role, loss=loss, seed=seed
                )
                for (loss, seed), run in runs.groupby(["loss", "seed"])
            ]
    return pd.concat(rows, ignore_index=True)[["protocol", "role", "loss", "seed", "fpr", "ccr"]]


def _curve(run: pd.DataFrame, role: str, score: str, count: int) -> pd.DataFrame:
    known, other = run[run["role"] == "known"], run[run["role"] == role]
    correct = (known["pred"] == known["label"]).to_numpy()
    fpr, ccr = metrics.oscr(known[score].to_numpy(), correct, other[score].to_numpy())
    at = _grid(count)
    return pd.DataFrame({"fpr": at, "ccr": ccr[np.searchsorted(fpr, at, side="right") - 1]})


def _grid(count: int) -> np.ndarray:
    """Multiples of 1 / count in [0, 1], dense on a linear and on a logarithmic axis."""
    spread = np.r_[np.geomspace(1, count, GRID), np.linspace(0, count, GRID + 1)]
    return np.unique(spread.round()) / count


@laid_out
def oscr_curves(points: pd.DataFrame, *, log: bool) -> Figure:
    """Figure 2 (log) or 5 (linear): OSCR, a column per protocol, a line per loss.

    Negatives above, unknowns below, if both are there; several seeds give a mean and a band.

    Args:
        points: as from `oscr_points`.
        log: logarithmic FPR axis.
    """
    need(points, ["protocol", "role", "loss", "seed", "fpr", "ccr"])
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
    need(points, ["protocol", "role", "loss", "seed", "fpr", "ccr"])
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
        band(ax, shown[shown[by] == name], "fpr", "ccr", **look(styles, name))


def _finish(figure: Figure, axes: np.ndarray, points: pd.DataFrame, log: bool) -> Figure:
    corner = axes[0, 0]
    corner.set_ylim(0, room_above(points["ccr"]))
    corner.set_xlim(0, 1.02)
    if log:
        corner.set_xscale("log")
        corner.set_xlim(0.7 * points.loc[points["fpr"] > 0, "fpr"].min(), 1.4)
    for ax in axes[-1]:
        ax.set_xlabel("false positive rate")
    for ax in axes[:, 0]:
        ax.set_ylabel("correct classification rate")
    note_seeds(figure, points)
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
    note_seeds(figure, history)
    label_outside(figure, axes.flat)
    return figure
