"""Figures that say in words what they show, for readers who do not see them.

JupyterLab 4.6 and nbconvert 7.17 show an image/png without alternative text, whatever the
output's metadata say; an image in text/html keeps its own. A figure gives both, so that what
exports to paper still finds the PNG.
"""

import base64
import html
import re

from matplotlib.axes import Axes
from matplotlib.collections import PathCollection

from osnb.plots import style

LENGTH = 300  # characters that a description aims at
IMAGE = '<img alt="{}" src="data:image/png;base64,{}" style="max-width:100%;height:auto">'


class Figure(style.Figure):
    """A `style.Figure` with its description: in notebooks as `alt`, in svg files as title."""

    def savefig(self, fname, **options) -> None:
        """As in `style.Figure`; an svg file begins with its description."""
        if options.get("format", str(fname).rpartition(".")[2]) == "svg":
            options["metadata"] = {"Title": describe(self)} | (options.get("metadata") or {})
        super().savefig(fname, **options)

    def _repr_mimebundle_(self, **_) -> tuple[dict, dict]:
        """What Jupyter shows: data and metadata by kind."""
        alt, png = describe(self), base64.b64encode(self._repr_png_()).decode()
        data = {"text/html": IMAGE.format(html.escape(alt), png), "image/png": png}
        return data, {"image/png": {"alt": alt}}


def panels(rows: int, columns: int, *, width: float, height: float, **shared):
    """As `style.panels`, of a figure that describes itself."""
    figure = Figure(figsize=(max(4.2, width * columns), height * rows))
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def describe(figure: style.Figure) -> str:
    """Alternative text: panels, axis labels, what is drawn, legend, titles.

    It comes from the figure alone. Every axis label and every legend entry is in it; titles
    are left out from where the text would be longer than `LENGTH` characters.

    Args:
        figure: any figure of this room.

    Returns:
        One line without markup.
    """
    axes = [ax for ax in figure.axes if ax.get_visible()]
    labels = [_axes_in_words(ax) for ax in axes]
    labels += [plain(text) for text in (figure.get_supxlabel(), figure.get_supylabel())]
    legends = [*figure.legends, *(ax.get_legend() for ax in axes if ax.get_legend())]
    entries = [plain(text.get_text()) for legend in legends for text in legend.get_texts()]
    said = [f"Figure, {len(axes)} panel{'s' * (len(axes) != 1)}: {_drawn(axes)}"]
    said += [*_once(labels), *(["legend: " + ", ".join(_once(entries))] if entries else [])]
    for title in _once([plain(ax.get_title()) for ax in axes]):
        if len("; ".join([*said, title])) >= LENGTH:
            break
        said.append(title)
    return "; ".join(said) + "."


def plain(text: str) -> str:
    """A label without mathematical markup and line breaks."""
    return " ".join(re.sub(r"[${}\\]", "", text).split())


def _once(texts: list[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, texts)))


def _axes_in_words(ax: Axes) -> str:
    x, y = plain(ax.get_xlabel()), plain(ax.get_ylabel())
    return f"{y} over {x}" if x and y else x or y


def _drawn(axes: list[Axes]) -> str:
    """How many of which things are in the panels."""
    lines = [line for ax in axes for line in ax.lines if len(line.get_xdata(orig=True)) > 1]
    many = {
        "line": sum(line.get_linestyle() != "None" for line in lines),
        "bar": sum(len(box) for ax in axes for box in ax.containers),
        "histogram": sum(
            type(patch).__name__ == "StepPatch" for ax in axes for patch in ax.patches
        ),
        "cloud of points": sum(
            isinstance(c, PathCollection) for ax in axes for c in ax.collections
        ),
        "image": sum(len(ax.images) for ax in axes),
        "label": sum(bool(text.get_text()) for ax in axes for text in ax.texts),
    }
    words = [f"{n} {_plural(name, n)}" for name, n in many.items() if n]
    return ", ".join(words) or "nothing drawn"


def _plural(name: str, count: int) -> str:
    first, *rest = name.split(" ", 1)
    return " ".join([first + "s" * (count != 1), *rest])
