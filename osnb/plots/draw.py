"""The drawings that all figures are made of: panels, lines, points, bars, steps, cells, pictures.

A figure is a short composition: `facets` gives its panels, each with its rows of the table; one
or two drawings fill a panel; `finished` writes labels, legend and note.
"""

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from pandas import DataFrame as Frame

from osnb.evidence.frames import need
from osnb.plots.style import LOSSES, PROTOCOLS, ROLES, Figure, label, laid_out, looks, present

ORDERS = {"role": ROLES, "benchmark": PROTOCOLS, "method": LOSSES, "loss": LOSSES}
ENDS = ("low", "high")
WIDEST, ROW = 10, 0.215  # inches: a figure at most, a row of a legend


def panels(
    rows: int, columns: int, *, width: float, height: float, **shared: Any
) -> tuple[Figure, np.ndarray]:
    """A figure and its (rows, columns) array of axes; one panel measures width x height inches."""
    figure = Figure(figsize=(max(4.2, width * columns), height * rows))  # room for a legend
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def facets(
    table: Frame, *by: str, size: tuple, wrap: int = 99, **shared: Any
) -> tuple[Figure, list[tuple[Axes, Frame, tuple]]]:
    """A panel for each value of a column, or of two: rows, and columns of panels.

    Args:
        table: what is drawn.
        by: names of one column or two of the table. Panels stand as in the legends of roles,
            protocols and losses, others in the order of the rows.
        size: width, at most, and height of a panel in inches.
        wrap: panels beside each other, at most, if `by` is one column.
        shared: as for `Figure.subplots`.

    Returns:
        The figure, and of each panel (axes, its rows of the table, its value or values).
    """
    levels = [present(table[name], ORDERS.get(name, ())) for name in by]
    columns = min(wrap, len(levels[-1]))
    rows = len(levels[0]) if len(by) > 1 else -(-len(levels[0]) // columns)
    width, height = min(size[0], WIDEST / columns), size[1]
    figure, axes = panels(rows, columns, width=width, height=height, **shared)
    parts = []
    for ax, values in zip(axes.flat, product(*levels), strict=False):
        here = [table[name] == value for name, value in zip(by, values, strict=True)]
        parts.append((ax, table[np.logical_and.reduce(here)], values))
        title, most = ", ".join(label(value) for value in values[::-1]), int(12 * width + 2)
        ax.set_title("\n".join(textwrap.fill(line, most) for line in title.split("\n")))
    for ax in axes.flat[len(parts) :]:
        ax.remove()
    return figure, parts


def finished(figure: Figure, *, x: str = "", y: str = "", about: str = "") -> Figure:
    """Label the outer panels, put one legend with all labels above them and a note below."""
    places = {ax.get_subplotspec().get_geometry()[2]: ax for ax in figure.axes}
    for place, ax in places.items():
        columns = ax.get_subplotspec().get_geometry()[1]
        if x and place + columns not in places:
            ax.set_xlabel(x)
        if y and place % columns == 0:
            ax.set_ylabel(y)
    if about:
        figure.supxlabel(about, fontsize=8, color="0.4")
    legend(figure, figure.axes)
    return figure


def legend(figure: Figure, axes: Iterable[Axes]) -> None:
    """One legend above the panels, with each label of any axes; each row more makes it higher."""
    handles: dict = {}
    for ax in axes:
        for handle, text in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(text, handle)
    if handles:
        widest = 0.75 + 0.07 * max(len(text) for text in handles)  # inches, with its line
        columns = max(1, int(figure.get_figwidth() / widest))
        more = -(-len(handles) // columns) - 1
        figure.set_figheight(figure.get_figheight() + ROW * more)
        settings = {"loc": "outside upper center", "ncols": columns, "handlelength": 3.2}
        figure.legend(handles.values(), handles, **settings)


def figure_of(*columns: str, or_none: bool = False) -> Callable:
    """As `laid_out`, of a table, the first argument, that has a row and these columns.

    With `or_none` the figure of a table without rows says that there is no run.
    """

    def checked(draw: Callable[..., Figure]) -> Callable[..., Figure]:
        @wraps(draw)
        def drawn(table: Frame, *args, **settings) -> Figure:
            if or_none and table.empty and {*columns} <= {*table}:
                return _no_run()
            need(table, columns)
            return draw(table, *args, **settings)

        return laid_out(drawn)

    return checked


def _no_run() -> Figure:
    figure, axes = panels(1, 1, width=5, height=1)
    axes[0, 0].set_axis_off()
    say(axes[0, 0], "no finished run")
    return figure


def say(ax: Axes, text: str, *, y: float = 0.5) -> None:
    """A word in the middle of a panel without anything else."""
    ax.text(0.5, y, text, ha="center", va="center", color="0.4", transform=ax.transAxes)


def bare(ax: Axes) -> None:
    """Take frame, ticks and grid from a panel that has no scale."""
    ax.grid(False)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def over_seeds(table: Frame, x: str, value: str, *by: str) -> Frame:
    """Mean, low and high (smallest and largest) of `value` at each x: columns by, x and those."""
    steps = table.groupby([*by, x], sort=True)[value].agg(["mean", "min", "max"])
    return steps.set_axis([value, *ENDS], axis=1).reset_index()


def lines(
    ax: Axes, table: Frame, x: str, y: str, *, by: str, styles: Mapping, marks: int = 0, **line: Any
) -> None:
    """A line for each value of a column, in a band from low to high where there are such columns.

    Args:
        ax: where.
        table: columns x, y and by, and low and high or not.
        x, y: names of columns.
        by: name of the column that a line has one value of.
        styles: as for `looks`, or what it gave for the names of several panels.
        marks: markers on a line, about.
        line: more settings of all lines.
    """
    for k, (name, look) in enumerate(looks(present(table[by], styles), styles).items()):
        part = table[table[by] == name]
        step = max(1, len(part) // max(marks, 1))
        look = {"markevery": (3 * k % step, step)} | look | ({} if marks else {"marker": "None"})
        ax.plot(part[x], part[y], **{"linewidth": 1.6, "markersize": 4} | look | line)
        if set(ENDS) <= set(part) and (part["high"] > part["low"]).any():
            shade = {"color": look["color"], "alpha": 0.18, "linewidth": 0}
            ax.fill_between(part[x], part["low"], part["high"], **shade)


def points(ax: Axes, x: Any, y: Any, look: dict, *, x_ends: Any = None, y_ends: Any = None) -> None:
    """A marker at each (x, y), with a line from end to end of an interval where there is one."""
    span = {"color": look["color"], "linewidth": 1, "alpha": 0.6}
    if x_ends is not None:
        ax.hlines(y, *x_ends, **span)
    if y_ends is not None:
        ax.vlines(x, *y_ends, **span)
    ax.plot(x, y, **{"markersize": 5.5} | look | {"linestyle": "none"})


def ranked(
    ax: Axes,
    table: Frame,
    value: str,
    *,
    rows: str,
    names: list,
    by: str,
    styles: dict,
    apart: float = 0.0,
) -> None:
    """Points with intervals, a row for each name from the top down.

    Args:
        ax: where.
        table: columns rows, by and value, and low and high or not; NaN is not drawn.
        value: name of the column that x shows.
        rows: name of the column with the names.
        names: of the rows, in their order.
        by: name of the column that a marker's look tells.
        styles: look of each value of it, as `looks` gave.
        apart: distance between two looks of one row; a row is 1 high.
    """
    for k, (name, look) in enumerate(styles.items()):
        part = table[(table[by] == name) & table[value].notna()]
        if len(part):
            aside = apart * (k - (len(styles) - 1) / 2)
            at = np.array([list(names).index(name) + aside for name in part[rows]])
            ends = [part[end] for end in ENDS] if set(ENDS) <= set(part) else None
            points(ax, part[value], at, look, x_ends=ends)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)


def bars(
    ax: Axes,
    lengths: Frame,
    fills: Mapping,
    *,
    at: Any = None,
    size: Any = 0.8,
    upright: bool = False,
    **bar: Any,
) -> None:
    """Bars side by side, stacked in the order of the columns; from the left unless upright.

    Args:
        ax: where.
        lengths: a row a bar, a column a part of it.
        fills: settings of each part.
        at: where each bar stands; without it one below the other, named as the rows are.
        size: width of a bar, or widths.
        upright: from below.
        bar: more settings of all bars.
    """
    places, end = range(len(lengths)) if at is None else at, np.zeros(len(lengths))
    for name, fill in fills.items():
        draw = ax.bar if upright else ax.barh
        draw(places, lengths[name], size, end, **fill | bar)
        end = end + lengths[name].to_numpy()
    if at is None and not upright:
        ax.set_yticks(places, lengths.index)
        ax.set_ylim(len(lengths) - 0.4, -0.6)
    ax.grid(visible=False, axis="x" if upright else "y")


def steps(ax: Axes, table: Frame) -> None:
    """Histograms of the roles: known as a filled shape, the others as outlines, also in grey.

    Args:
        ax: where.
        table: columns role, left, right (of a bin) and density.
    """
    for role in present(table["role"], ROLES):
        part, look = table[table["role"] == role], looks([role], ROLES)[role]
        edges, _ = np.r_[part["left"], part["right"].iloc[-1]], look.pop("marker")
        look |= {"fill": True, "alpha": 0.45} if role == "known" else {}
        ax.stairs(part["density"], edges, linewidth=1.5, **look)


def heat(ax: Axes, cells: Frame, *, low: float, high: float, **settings: Any) -> None:
    """A field for each cell, coloured from low to high; fields without a number are hatched.

    Args:
        ax: where.
        cells: rows and columns as they are drawn, named as they are.
        low, high: ends of the scale.
        settings: more of `seaborn.heatmap`'s, such as annot.
    """
    import seaborn as sns  # here, because it brings pyplot, which other figures do without

    scale = {"vmin": low, "vmax": high, "cmap": "cividis", "cbar": False}
    names = {"xticklabels": True, "yticklabels": True, "linecolor": "white"}
    sns.heatmap(cells, ax=ax, **scale | names | settings)
    ax.patch.set(facecolor="0.96", edgecolor="0.8", hatch="////")
    ax.grid(False)
    ax.tick_params(length=0)
    ax.set(xlabel="", ylabel="")


def picture(ax: Axes, pixels: np.ndarray, **place: Any) -> None:
    """An image (3, H, W) or (1, H, W) of uint8, enlarged without smoothing."""
    grey = {"cmap": "gray", "vmin": 0, "vmax": 255}
    ax.imshow(pixels.transpose(1, 2, 0), interpolation="none", **grey | place)
    bare(ax)


def check_images(images: Sequence[np.ndarray], count: int) -> None:
    """Raise ValueError unless there are `count` images (3, H, W) or (1, H, W) of uint8."""
    kinds = {(pixels.shape, pixels.dtype.name) for pixels in images}
    odd = [(s, t) for s, t in kinds if len(s) != 3 or s[0] not in {1, 3} or t != "uint8"]
    if odd or len(images) != count:
        some = "; ".join(f"{shape} {kind}" for shape, kind in odd or kinds)
        raise ValueError(f"need {count} images (1 or 3, H, W) uint8; got {len(images)}: {some}")


def sheet(
    pictures: Sequence, *, columns: int, size: tuple, rows: Sequence = (), titles: Sequence = ()
) -> Figure:
    """Images side by side, row by row.

    Args:
        pictures: of each place (3, H, W) or (1, H, W) uint8, or None.
        columns: images in a row.
        size: width and height of a place, in inches.
        rows: a label of each row, or none.
        titles: one above each place, or none; fewer than places are those of the first ones.
    """
    height = -(-len(pictures) // columns)
    figure = Figure(figsize=(size[0] * columns + 1.2 * bool(len(rows)), size[1] * height))
    axes = figure.subplots(height, columns, squeeze=False)
    for ax in axes.flat:
        bare(ax)
    for ax, pixels in zip(axes.flat, pictures, strict=False):
        if pixels is not None:
            picture(ax, pixels)
    for ax, title in zip(axes.flat, titles, strict=False):
        ax.set_title(title, fontsize=8, pad=2)
    for ax, name in zip(axes[:, 0], rows, strict=False):
        ax.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)
    return figure
