"""Methods of all papers on tasks of all benchmarks: one cell each, and what was not run."""

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from osnb.plots.described import Figure, panels
from osnb.plots.style import (
    laid_out,
    need,
    note,
)

COLUMNS = ["method", "benchmark", "task", "value"]
MAP = "cividis"  # one that a colour-blind reader sees as others do
DARK = 0.55  # up to this share of the scale letters are white


@laid_out
def method_tasks(table: pd.DataFrame, *, measure: str, lower_is_better: bool = False) -> Figure:
    """One cell per method and task: the number, its colour, and a frame around a task's best.

    Bright is better within a figure, whose scale goes from its worst number to its best. Cells
    without a number are hatched. Methods and tasks stand in the order of the rows.

    Args:
        table: one row per cell, columns method, benchmark, task (a column of the figure is a task
            of a benchmark) and value in [0, 1], NaN where nothing was run.
        measure: what the numbers are, said below.
        lower_is_better: true of FPR and AURC.

    Raises:
        ValueError: a column is missing, there is no row, or a cell comes twice.
    """
    need(table, COLUMNS)
    if (twice := table.duplicated(COLUMNS[:3])).any():
        first = table.loc[twice, COLUMNS[:3]].iloc[0]
        raise ValueError(f"each cell has one row; {', '.join(first)} has several")
    rows = list(dict.fromkeys(table["method"]))
    tasks = list(dict.fromkeys(zip(table["benchmark"], table["task"], strict=True)))
    cells = np.full((len(rows), len(tasks)), np.nan)
    for method, benchmark, task, value in table[COLUMNS].itertuples(index=False):
        cells[rows.index(method), tasks.index((benchmark, task))] = value
    width = 2.0 + 0.78 * len(tasks)
    figure, axes = panels(1, 1, width=width, height=1.4 + 0.25 * len(rows))
    ax = axes[0, 0]
    _fill(ax, cells, lower_is_better)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xticks(range(len(tasks)), [task for _, task in tasks])
    ax.tick_params(length=0)
    _heads(ax, [benchmark for benchmark, _ in tasks])
    order = "lower" if lower_is_better else "higher"
    note(figure, f"{measure}, {order} is better; framed: best of the task; hatched: not run")
    return figure


def _fill(ax: Axes, cells: np.ndarray, lower_is_better: bool) -> None:
    """Draw every cell at (column, row), the first row above."""
    shades = _shades(-cells if lower_is_better else cells)
    colors = matplotlib.colormaps[MAP]
    for (row, column), value in np.ndenumerate(cells):
        place, shade = (column - 0.5, row - 0.5), shades[row, column]
        if np.isnan(value):
            ax.add_patch(Rectangle(place, 1, 1, facecolor="0.96", edgecolor="0.8", hatch="////"))
            continue
        ax.add_patch(Rectangle(place, 1, 1, facecolor=colors(shade), edgecolor="white"))
        ink = "white" if shade <= DARK else "black"
        text = {"ha": "center", "va": "center", "fontsize": 8, "color": ink}
        ax.text(column, row, f"{value:.3f}", **text)
        if shade == np.nanmax(shades[:, column]):
            inner = (column - 0.43, row - 0.42)
            ax.add_patch(
                Rectangle(inner, 0.86, 0.84, fill=False, edgecolor=ink, linewidth=1.4, zorder=4)
            )
    ax.set(xlim=(-0.5, cells.shape[1] - 0.5), ylim=(cells.shape[0] - 0.5, -0.5))
    ax.grid(False)
    ax.spines[:].set_visible(False)


def _shades(good: np.ndarray) -> np.ndarray:
    """The scale from the worst number, 0, to the best, 1; 1 where all are equal."""
    if np.isnan(good).all():
        return good
    low, high = np.nanmin(good), np.nanmax(good)
    return (good - low) / (high - low) if high > low else good - low + 1


def _heads(ax: Axes, benchmarks: list[str]) -> None:
    """Name each benchmark above its columns, and leave a gap of white between two."""
    for name in dict.fromkeys(benchmarks):
        at = [i for i, each in enumerate(benchmarks) if each == name]
        ax.text(np.mean(at), -0.75, name, ha="center", va="bottom", fontsize=9)
        if at[0]:
            ax.axvline(at[0] - 0.5, color="white", linewidth=6, zorder=2)
