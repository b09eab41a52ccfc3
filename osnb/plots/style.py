"""The house style: one look for every figure, on paper and in grey, without pyplot."""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps

import matplotlib.figure
import matplotlib.style
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes

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

ROLES = ("known", "negative", "unknown")

# Colour, line style and marker of one line each; neighbours differ in grey too.
LOSSES = {
    "softmax": ("#1f77b4", "-", "o", "softmax (S)"),
    "background": ("#ff7f0e", (0, (5, 1.5)), "s", "background (BG)"),
    "entropic": ("#2ca02c", (0, (7, 1.5, 1.5, 1.5)), "^", "entropic (EOS)"),
    "objectosphere": ("#9467bd", (0, (1.5, 1.2)), "D", "objectosphere (OBJ)"),
}
PROTOCOLS = {
    "p1": ("#222222", "-", "o", "P1"),
    "p2": ("#c0504d", (0, (5, 1.5)), "s", "P2"),
    "p3": ("#4f9bb5", (0, (7, 1.5, 1.5, 1.5)), "^", "P3"),
}
ROLE_STYLES = {
    "known": ("#6b7a8f", "-", "o", "known"),
    "negative": ("#d9822b", (0, (5, 1.5)), "s", "negative"),
    "unknown": ("#8b1a4a", "-", "^", "unknown"),
}

SCORES = {
    "target": "softmax score: $s_y$ (known), largest $s_k$ (others)",
    "target_log_odds": "log odds, in nats, of $s_y$ (known), of the largest $s_k$ (others)",
    "max_softmax": "maximum softmax score",
    "max_softmax_log_odds": "log odds of the maximum softmax score, in nats",
    "max_logit": "maximum logit, in nats",
}


class Figure(matplotlib.figure.Figure):
    """A matplotlib figure that saves in the house style and shows itself in a notebook.

    It belongs to no pyplot window, so nothing has to be closed. Saving the same figure
    twice gives the same bytes.
    """

    def savefig(self, fname, **options) -> None:
        """As in matplotlib, in the house style and without the clock or the version."""
        kind = options.get("format", str(fname).rpartition(".")[2])
        nothing = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}.get(kind, {})
        options["metadata"] = nothing | (options.get("metadata") or {})
        with house():
            super().savefig(fname, **options)

    def _repr_png_(self) -> bytes:
        """The PNG that Jupyter shows."""
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


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


def panels(rows: int, columns: int, *, width: float, height: float, **shared):
    """A figure and its (rows, columns) array of axes; one panel measures width x height inches."""
    figure = Figure(figsize=(max(4.2, width * columns), height * rows))  # room for a legend
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def need(frame: pd.DataFrame, columns: Sequence[str]) -> None:
    """Raise ValueError unless `frame` has a row and these columns."""
    missing = [column for column in columns if column not in frame]
    if missing or not len(frame):
        raise ValueError(
            f"need at least one row with columns {', '.join(columns)}; "
            f"got {len(frame)} rows with {', '.join(map(str, frame))}"
        )


def finite(scores: pd.Series) -> None:
    """Raise ValueError if a score is NaN or infinite."""
    if bad := int((~np.isfinite(scores)).sum()):
        raise ValueError(f"need finite scores in '{scores.name}'; {bad} of {len(scores)} are not")


def present(column: pd.Series, order: Sequence[str]) -> list[str]:
    """The values of `column`: first those in `order`, in that order, then the others, sorted."""
    found = set(column)
    return [v for v in order if v in found] + sorted(found - set(order))


def look(styles: dict, name: str) -> dict:
    """Line settings of a loss, a protocol or a role; a name without a style is drawn in grey."""
    color, line, _, label = styles.get(name, ("0.5", (0, (1, 1)), "x", name))
    return {"color": color, "linestyle": line, "label": label}


def label_outside(figure: Figure, axes: Iterable[Axes]) -> None:
    """One legend above the panels, with each label that any of the axes has."""
    handles: dict[str, Artist] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    columns = int(figure.get_figwidth() / 1.8)
    figure.legend(
        handles.values(), handles, loc="outside upper center", ncols=columns, handlelength=3.2
    )


def band(axes: Axes, frame: pd.DataFrame, x: str, y: str, **line) -> None:
    """Mean of `y` over the seeds as a line; a band from the smallest to the largest seed."""
    seeds = frame.groupby(x)[y].agg(["mean", "min", "max"])
    at = seeds.index.to_numpy()
    axes.plot(at, seeds["mean"], linewidth=1.6, **line)
    if (seeds["max"] > seeds["min"]).any():
        axes.fill_between(at, seeds["min"], seeds["max"], color=line["color"], alpha=0.18, lw=0)


def note(figure: Figure, text: str) -> None:
    """Say under the panels what lines and bands are."""
    figure.supxlabel(text, fontsize=8, color="0.4")


def count(numbers: pd.Series) -> str:
    """One number, or from which to which."""
    least, most = numbers.min(), numbers.max()
    return f"{most}" if least == most else f"{least} to {most}"


def room_above(values: np.ndarray) -> float:
    """Upper limit for an axis that starts at 0: a little above the largest value, at most 1.02."""
    return min(1.02, 1.08 * float(np.max(values)) + 0.01)
