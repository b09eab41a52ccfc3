"""What all explorers are: controls, below them a sentence and a described picture."""

import base64
import html
import math
from collections.abc import Callable

import ipywidgets

from osnb.plots import Figure, describe

PICTURE = (
    '<p role="status" aria-live="polite" style="line-height:1.4;margin:4px 0">{}</p>'
    # a picture that is too wide for its letters to be read is scrolled; it widens no cell
    '<div tabindex="0" style="overflow-x:auto;contain:inline-size">'
    '<img alt="{}" src="data:image/png;base64,{}" '
    'style="min-width:640px;max-width:100%;height:auto"></div>'
)
WIDEST = "calc(100% - 4px)"  # of a control, which has a margin of 2 pixels on each side
STYLE = {"description_width": "initial"}  # as wide as its words, so that none is cut


class Explorer(ipywidgets.VBox):
    """Controls above a sentence and a picture; setting the value of a control redraws.

    Attributes:
        figure: the static twin at the controls' values; the one before it is dropped.
        picture: `figure` as PNG.
        sentence: what the picture says, in words that a screen reader reads out at each change.
        shown: HTML widget with both; the picture's alternative text is `plots.describe` of it.
    """

    kind = "sliders, which need"

    def __init__(self, controls: list[ipywidgets.Widget], redraw: Callable[[], None]) -> None:
        for control in controls:
            control.observe(lambda _: redraw(), names="value")
        super().__init__([*controls, self.shown])

    def __repr__(self) -> str:
        """What stands in a notebook that is read without a kernel."""
        return f"{self.kind} a running kernel"

    def put(self, figure: Figure, sentence: str = "") -> None:
        """Show a figure and a sentence (HTML) in place of the ones before."""
        if not hasattr(self, "shown"):
            self.shown = ipywidgets.HTML()
        self.figure, self.sentence, self.picture = figure, sentence, figure._repr_png_()
        alt, png = html.escape(describe(figure)), base64.b64encode(self.picture).decode()
        self.shown.value = PICTURE.format(sentence, alt, png)


def slider(value: float, low: float, high: float, step: float, name: str, form: str = ".2f"):
    """A FloatSlider whose steps meet `value`: a browser moves a value to a step, from min on.

    Args:
        value: where it starts.
        low: min, at most; as many whole steps below value as needed.
        high: max, at least.
        step: of an arrow key.
        name: shown before it.
        form: of the number shown after it.
    """
    least = value - step * max(0, math.ceil(round((value - low) / step, 9)))
    return ipywidgets.FloatSlider(
        value=value,
        min=low if math.isclose(least, low, abs_tol=1e-9) else least,
        max=max(high, value),
        step=step,
        description=name,
        readout_format=form,
        style=STYLE,
        layout=ipywidgets.Layout(width="700px", max_width=WIDEST),
    )


def lowest(value: float, step: float) -> float:
    """The smallest number of at least 0 that whole steps lead to from `value`."""
    return max(0.0, value - step * math.floor(round(value / step, 9)))
