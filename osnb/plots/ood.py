"""Appendix F of Vaze et al. 2022: rules on other data sets, and accuracy beside a near one."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from osnb.plots.described import Figure, panels
from osnb.plots.style import (
    label_outside,
    laid_out,
    need,
    note,
)

# Colour and marker of a set, in the order of the table; colours after Okabe and Ito.
LOOKS = (
    *(("#000000", "o"), ("#0072b2", "s"), ("#d55e00", "^"), ("#009e73", "D")),
    *(("#cc79a7", "v"), ("#56b4e9", "P"), ("#999999", "X"), ("#e69f00", "*")),
)
CHANCE = 0.5
ENDS = ("low", "high")


@laid_out
def rules_by_set(table: pd.DataFrame, singles: pd.DataFrame | None = None) -> Figure:
    """AUROC of every rule on every set of unknown images: a row a rule, a marker a set.

    Near sets have filled markers, far ones hollow. The best rule in the mean over all sets
    stands above. Without rows the figure says that there is no run.

    Args:
        table: one row per rule and set, columns rule, unknown (the set), near (bool) and auroc in
            [0, 1], with optional low and high of an interval. Sets stand in the order of the rows.
        singles: what the numbers are means of, such as single seeds: columns rule, unknown and
            auroc, several rows per rule and set. They are small dots in the set's colour; a rule
            and set with a single row has none, and no table is as one without rows.

    Raises:
        ValueError: a column is missing, or there are more sets than looks.
    """
    if _nothing(table, ["rule", "unknown", "near", "auroc"]):
        return _blank()
    sets = list(dict.fromkeys(table["unknown"]))
    if len(sets) > len(LOOKS):
        raise ValueError(f"need at most {len(LOOKS)} sets; got {len(sets)}: {', '.join(sets)}")
    singles = table[:0] if singles is None else singles
    several = singles[singles.duplicated(["rule", "unknown"], keep=False)]
    rules = table.groupby("rule")["auroc"].mean().sort_values(ascending=False).index
    figure, axes = panels(1, 1, width=8, height=1.6 + 0.36 * len(rules))
    ax = axes[0, 0]
    ax.axvline(CHANCE, color="0.6", linewidth=0.9)
    for number, (name, look) in enumerate(zip(sets, LOOKS, strict=False)):
        offset = (number - (len(sets) - 1) / 2) * 0.7 / len(sets)
        rows = {rule: at + offset for at, rule in enumerate(rules)}
        part, dots = (each[each["unknown"] == name] for each in (table, several))
        _markers(ax, part, part["rule"].map(rows).to_numpy(), look)
        if len(dots):
            dot = {"marker": "o", "markersize": 2.2, "color": look[0], "zorder": 3}
            ax.plot(dots["auroc"], dots["rule"].map(rows), linestyle="none", **dot)
    ax.set_yticks(range(len(rules)), rules)
    ax.set(ylim=(len(rules) - 0.4, -0.6), xlim=(-0.03, 1.03), ylabel="rule")
    ax.set_xlabel("AUROC, known against one set of unknown images (grey line: chance)")
    label_outside(figure, [ax])
    if len(several):
        note(figure, "dots: single seeds, where the marker is a mean of several")
    return figure


def _markers(ax: Axes, part: pd.DataFrame, at: np.ndarray, look: tuple[str, str]) -> None:
    """One set's AUROC over the rules; a line from low to high where there are such."""
    color, marker = look
    near = bool(part["near"].iloc[0])
    if set(ENDS) <= set(part):
        ax.hlines(at, part["low"], part["high"], color=color, linewidth=0.9)
    label = f"{part['unknown'].iloc[0]} ({'near' if near else 'far'})"
    fill = {"markerfacecolor": color if near else "white", "markeredgecolor": color}
    ax.plot(part["auroc"], at, linestyle="none", marker=marker, markersize=5, label=label, **fill)


@laid_out
def accuracy_and_near(points: pd.DataFrame, *, correlation: str) -> Figure:
    """Accuracy on the known classes against AUROC with a near set of unknown ones (Figure 8).

    Without rows the figure says that there is no run.

    Args:
        points: one row a network, columns network (its name), accuracy and auroc in [0, 1], and of
            both, accuracy_low, accuracy_high, auroc_low, auroc_high, the ends of an interval.
        correlation: what to say below about the points as a whole.

    Raises:
        ValueError: a column is missing, or there are more networks than looks.
    """
    ends = [f"{name}_{end}" for name in ("accuracy", "auroc") for end in ENDS]
    if _nothing(points, ["network", "accuracy", "auroc", *ends]):
        return _blank()
    if len(points) > len(LOOKS):
        raise ValueError(f"need at most {len(LOOKS)} networks; got {len(points)}")
    figure, axes = panels(1, 1, width=6, height=4)
    ax = axes[0, 0]
    for row, (color, marker) in zip(points.to_dict("records"), LOOKS, strict=False):
        ax.hlines(row["auroc"], row["accuracy_low"], row["accuracy_high"], color, linewidth=0.9)
        ax.vlines(row["accuracy"], row["auroc_low"], row["auroc_high"], color, linewidth=0.9)
        look = {"color": color, "marker": marker, "linestyle": "none", "markersize": 7}
        ax.plot([row["accuracy"]], [row["auroc"]], label=row["network"], **look)
    ax.margins(0.08)
    ax.set(xlabel="accuracy on known classes", ylabel="AUROC, maximum logit, near unknown")
    label_outside(figure, [ax])
    note(figure, correlation)
    return figure


def _nothing(frame: pd.DataFrame, columns: list[str]) -> bool:
    """Whether there are the columns, but no row; the columns are needed."""
    if len(frame) or set(columns) - set(frame):
        need(frame, columns)
    return not len(frame)


def _blank() -> Figure:
    """What stands in the place of a figure whose runs were not made."""
    figure, axes = panels(1, 1, width=5, height=1)
    axes[0, 0].set_axis_off()
    axes[0, 0].text(0.5, 0.5, "no finished run", ha="center", va="center")
    return figure
