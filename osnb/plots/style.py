"""The house style: one look for every figure, on paper and in grey, without pyplot."""

import base64
import html
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from itertools import cycle
from typing import Any

import matplotlib.figure
import matplotlib.style
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.patches import PathPatch, StepPatch
from matplotlib.transforms import Bbox
from PIL import Image

RC = {
    "figure.constrained_layout.use": True,
    "figure.dpi": 100,
    "savefig.dpi": 100,
    "font.family": "DejaVu Sans",  # ships with matplotlib
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "0.9",
    "legend.frameon": False,
    "hatch.linewidth": 0.5,
    "svg.hashsalt": "osnb",  # ids in the svg follow from the drawing alone
    "svg.fonttype": "path",  # letters as shapes: the same wherever it is opened
}

DASHED, DOTTED, DASH_DOT = (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (7, 1.5, 1.5, 1.5))
# Colour, line style, marker and label; neighbours differ in grey too.
Styles = Mapping[str, tuple]
LOSSES = {
    "softmax": ("#1f77b4", "-", "o", "softmax (S)"),
    "background": ("#ff7f0e", DASHED, "s", "background (BG)"),
    "entropic": ("#2ca02c", DASH_DOT, "^", "entropic (EOS)"),
    "objectosphere": ("#9467bd", DOTTED, "D", "objectosphere (OBJ)"),
}
PROTOCOLS = {
    "p1": ("#222222", "-", "o", "P1"),
    "p2": ("#c0504d", DASHED, "s", "P2"),
    "p3": ("#4f9bb5", DASH_DOT, "^", "P3"),
}
ROLES = {
    "known": ("#6b7a8f", "-", "o", "known"),
    "negative": ("#d9822b", DASHED, "s", "negative"),
    "unknown": ("#8b1a4a", "-", "^", "unknown"),
}
# What has no style of its own is drawn by its place: colours after Okabe and Ito.
COLORS = ("#222222", "#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#7f7f7f")
LINES = ("-", DASHED, DOTTED)  # eight colours and three lines: 24 pairs before one comes again
GREYS, GREY_LINES = ("0.5", "0.3", "0.7", "0.15"), ((0, (1, 1)), DASHED, DASH_DOT)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "++", "oo", "--")

UNITS = {"class": "classes", "sample": "images"}
SCORES = {
    "target": "softmax score: $s_y$ (known), largest $s_k$ (others)",
    "target_log_odds": "log odds, in nats, of $s_y$ (known), of the largest $s_k$ (others)",
    "max_softmax": "maximum softmax score",
    "max_softmax_log_odds": "log odds of the maximum softmax score, in nats",
    "max_logit": "maximum logit, in nats",
}
LENGTH = 300  # characters that a description aims at
WIDE = 11 / 9 * 100  # pixels of a page per inch of a figure: its letters of 9 points look like 11
IMAGE = '<img alt="{}" src="data:image/png;base64,{}" width="{:.0f}" style="{}">'
FITS = "max-width:100%;height:auto"


class Figure(matplotlib.figure.Figure):
    """A figure that saves in the house style, and says in words what it shows.

    It belongs to no pyplot window, so nothing has to be closed. Saving the same figure
    twice gives the same bytes. JupyterLab 4.6 and nbconvert 7.17 show an image/png without
    alternative text, whatever the output's metadata say; an image in text/html keeps its own. A
    figure gives both, so that what exports to paper still finds the PNG.
    """

    def savefig(self, fname: Any, **options: Any) -> None:
        """As in matplotlib, without clock and version; an svg begins with its description."""
        kind = options.get("format", str(fname).rpartition(".")[2])
        texts = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}.get(kind, {})
        if kind == "svg":
            texts["Title"] = describe(self)
        options["metadata"] = texts | (options.get("metadata") or {})
        with house():
            super().savefig(fname, **options)

    def _repr_png_(self) -> bytes:
        """The PNG that Jupyter shows: two pixels for one of the page, in 256 colours."""
        buffer, small = io.BytesIO(), io.BytesIO()
        self.savefig(buffer, format="png", dpi=2 * WIDE, bbox_inches=self._with_notes())
        with Image.open(buffer) as drawn:
            drawn.convert("RGB").quantize(256).save(small, "png", optimize=True)
        return small.getvalue()

    def _with_notes(self) -> Bbox | None:
        """The canvas and the lines that were written below it, in inches, if there are any."""
        low = min([0.0, *(text.get_window_extent().y0 for text in self.texts)])
        return Bbox([[0, low / self.dpi], self.get_size_inches()]) if low else None

    def _repr_mimebundle_(self, **_) -> tuple[dict, dict]:
        """What Jupyter shows: data and metadata by kind."""
        alt, png = describe(self), base64.b64encode(self._repr_png_()).decode()
        width = WIDE * self.get_figwidth()
        data = {"text/html": IMAGE.format(html.escape(alt), png, width, FITS), "image/png": png}
        return data, {"image/png": {"alt": alt}}


def describe(figure: matplotlib.figure.Figure) -> str:
    """Alternative text: panels, what is drawn, axis labels, legend, titles, notes.

    It comes from the figure alone. Every axis label, legend entry and note is in it; titles
    are left out from where the text would be longer than `LENGTH` characters.

    Args:
        figure: any figure of this room.

    Returns:
        One line without markup.
    """
    axes = [ax for ax in figure.axes if ax.get_visible()]
    labels = []
    for ax in axes:
        x, y = plain(ax.get_xlabel()), plain(ax.get_ylabel())
        labels.append(f"{y} over {x}" if x and y else x or y)
    labels += [plain(figure.get_supxlabel()), plain(figure.get_supylabel())]
    legends = [*figure.legends, *(ax.get_legend() for ax in axes if ax.get_legend())]
    entries = _once(plain(text.get_text()) for legend in legends for text in legend.get_texts())
    parts = [f"Figure, {len(axes)} panel{'s' * (len(axes) != 1)}: {_counts(axes)}", *_once(labels)]
    parts += ["legend: " + ", ".join(entries)] if entries else []
    for title in _once(plain(ax.get_title()) for ax in axes):
        if len("; ".join([*parts, title])) >= LENGTH:
            break
        parts.append(title)
    notes = (plain(text.get_text()) for text in figure.texts)
    return "; ".join(_once([*parts, *notes])) + "."


def plain(text: str) -> str:
    """A label without mathematical markup and line breaks."""
    return " ".join(re.sub(r"[${}\\]", "", text).split())


def _once(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, texts)))


def _counts(axes: list[Axes]) -> str:
    """How many of which things are in the panels; lines across a panel are none of the data."""
    boxes = [sum(type(patch) is PathPatch for patch in ax.patches) for ax in axes]
    plain_axes = [ax for ax, boxed in zip(axes, boxes, strict=True) if not boxed]
    lines = [x for ax in plain_axes for x in ax.lines if x.get_transform() is ax.transData]
    sizes = [(line, len(line.get_xdata(orig=True))) for line in lines]
    dots = [n for line, n in sizes if n == 1 or line.get_linestyle() == "None"]
    many = {
        "line": sum(n > 1 and line.get_linestyle() != "None" for line, n in sizes),
        "point": sum(dots),
        "box": sum(boxes),
        "bar": sum(len(box) for ax in axes for box in ax.containers),
        "histogram": sum(isinstance(p, StepPatch) for ax in axes for p in ax.patches),
        "heat map": sum(isinstance(c, QuadMesh) for ax in axes for c in ax.collections),
        "image": sum(len(ax.images) for ax in axes),
        "label": sum(bool(text.get_text()) for ax in axes for text in ax.texts),
    }
    ends = {"box": "es"}
    words = [f"{n} {name}{ends.get(name, 's') * (n > 1)}" for name, n in many.items() if n]
    return ", ".join(words) or "nothing drawn"


@contextmanager
def house() -> Iterator[None]:
    """Matplotlib's defaults and the house style, inside the block only."""
    with matplotlib.style.context(["default", RC]):
        yield


def laid_out(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Draw in the house style and fix the layout, which matplotlib would refine at every save."""

    @wraps(draw)
    def drawn(*args, **settings) -> Figure:
        with house():
            figure = draw(*args, **settings)
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
        return figure

    return drawn


def present(column: pd.Series, order: Iterable[str] = ()) -> list:
    """The values of `column`: by `order`, then the others as they come."""
    values = dict.fromkeys(column)
    return [*dict.fromkeys([*(v for v in order if v in values), *values])]


def looks(names: Iterable[str], styles: Styles | None = None) -> dict[str, dict]:
    """Line settings of each name: from `styles`, which may be what this gave, or by its place.

    Beside styles, what is not among them is grey, each in a line of its own.
    """
    keys = ("color", "linestyle", "marker", "label")
    cycles = (COLORS, LINES, MARKERS) if styles is None else (GREYS, GREY_LINES, ("x", *MARKERS))
    names, styles = dict.fromkeys(names), styles or {}
    others = [name for name in names if name not in styles]
    places = zip(others, *map(cycle, cycles), strict=False)
    every = {**styles, **{name: (*place, name) for name, *place in places}}
    chosen = ((name, every[name]) for name in names)
    return {n: dict(x if isinstance(x, dict) else zip(keys, x, strict=True)) for n, x in chosen}


def label(name: str) -> str:
    """What a loss or a protocol is called in a figure; any other name as it is."""
    return (LOSSES | PROTOCOLS).get(name, (name,))[-1]


def count(numbers: pd.Series) -> str:
    """One number, or from which to which."""
    least, most = numbers.min(), numbers.max()
    return f"{most}" if least == most else f"{least} to {most}"


def room_above(values: np.ndarray) -> float:
    """Upper limit for an axis that starts at 0: a little above the largest value, at most 1.02."""
    return min(1.02, 1.08 * float(np.max(values)) + 0.01)
