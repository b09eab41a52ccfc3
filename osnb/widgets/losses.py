"""The loss explorer: logits of one negative sample to move."""

from collections.abc import Sequence

from osnb import plots
from osnb.widgets.explorer import Explorer, slider

REACH = 6.0  # nats on either side of 0


class LossExplorer(Explorer):
    """What `loss_explorer` returns.

    Attributes:
        sliders: a FloatSlider for each known class's logit, then the background's.
        figure: `plots.loss_gradients` at the logits.
    """

    def __init__(self, logits: Sequence[float], *, background: float, weight: float) -> None:
        self._weight = weight
        self.show(list(logits), background)
        names = [f"logit of class {c}" for c in range(1, len(logits) + 1)]
        names.append("logit of background")
        self.sliders = [
            slider(value, -REACH, REACH, 0.25, name)
            for value, name in zip([*logits, background], names, strict=True)
        ]
        super().__init__(self.sliders, self._moved)

    def _moved(self) -> None:
        *logits, background = (each.value for each in self.sliders)
        self.show(logits, background)

    def show(self, logits: list[float], background: float) -> None:
        """Redraw the picture and rewrite the sentence for these logits, in nats."""
        points = plots.gradient_points(logits, background=background, weight=self._weight)
        sizes = points.groupby("loss", sort=False)["gradient"].apply(lambda g: g.abs().max())
        words = (f"{plots.LOSS_NAMES[name]}: {size:.3f}" for name, size in sizes.items())
        self.put(plots.loss_gradients(points), "largest gradient: " + "; ".join(words))


def loss_explorer(logits: Sequence[float], *, background: float, weight: float) -> LossExplorer:
    """The logits of one negative sample to move, and the gradient that S, BG and EOS give it.

    The static twin, for readers without a kernel, is `plots.loss_gradients` of
    `plots.gradient_points`.

    Args:
        logits: (K,) where the sliders of the known classes start, in nats, K >= 2.
        background: where the slider of BG's background logit starts.
        weight: price of a negative under BG and EOS, > 0.

    Raises:
        ValueError: fewer than two logits, one that is not finite, or a weight that is not > 0.
    """
    return LossExplorer(logits, background=background, weight=weight)
