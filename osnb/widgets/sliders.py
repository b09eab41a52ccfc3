"""One slider each: over the threshold, the epoch, the risk."""

from collections.abc import Callable

import ipywidgets
import numpy as np
import pandas as pd

from osnb import plots
from osnb.widgets.explorer import STYLE, WIDEST, Explorer, lowest, slider

ACCEPTED = {
    "known": "known accepted and right (CCR)",
    "negative": "negative accepted (FPR)",
    "unknown": "unknown accepted (FPR)",
}
RISK_STEP = 0.01


class ThresholdSlider(Explorer):
    """What `threshold_slider` returns.

    Attributes:
        slider: the FloatSlider, moved by mouse or arrow keys; setting its value redraws.
        sentence: the rates at the threshold in words.
        figure: `plots.operating_point` at the threshold.
    """

    kind = "a slider, which needs"

    def __init__(self, table: pd.DataFrame, *, score: str, threshold: float, images) -> None:
        self._table, self._drawn = table, {"score": score, "images": images}
        self.show(threshold)
        low, high = float(table[score].min()), float(table[score].max())
        step = (high - low) / 100 or 1.0
        # the end is above all scores, so that everything can be rejected
        self.slider = slider(threshold, low, high + step, step, "threshold", ".3f")
        super().__init__([self.slider], lambda: self.show(self.slider.value))

    def show(self, threshold: float) -> None:
        """Redraw the picture and rewrite the sentence for this threshold."""
        score = self._drawn["score"]
        counts = plots.operating_counts(self._table, score=score, threshold=threshold)
        words = "; ".join(
            f"{ACCEPTED[row.role]}: {row.rate:.3f} of {row.samples}" for row in counts.itertuples()
        )
        figure = plots.operating_point(self._table, threshold=threshold, **self._drawn)
        self.put(figure, words)


def threshold_slider(
    table: pd.DataFrame,
    *,
    score: str,
    threshold: float,
    images: np.ndarray | Callable[[pd.DataFrame], np.ndarray] | None = None,
) -> ThresholdSlider:
    """A threshold to move, seen on the OSCR curve, over the scores, in counts and in images.

    The static twin, for readers without a kernel, is `plots.operating_point`.

    Args:
        table: the scores table of one run, with known samples and others.
        score: column of a rule that needs no label, such as max_softmax.
        threshold: where the slider starts, in the unit of the score.
        images: of the samples, as for the twin; None for none.

    Raises:
        ValueError: a column or a role is missing, a score is not finite, or the images do not
            fit the rows.
    """
    return ThresholdSlider(table, score=score, threshold=threshold, images=images)


class EpochSlider(Explorer):
    """What `epoch_slider` returns.

    Attributes:
        slider: the SelectionSlider over the epochs; setting its value redraws.
        figure: `plots.feature_plane` of the epoch.
    """

    kind = "a slider, which needs"

    def __init__(self, outputs: pd.DataFrame, *, epoch: int) -> None:
        self._outputs = outputs
        self.show(epoch)
        self.slider = ipywidgets.SelectionSlider(
            value=epoch,
            options=sorted({*outputs["epoch"].tolist()}),
            description="epoch",
            style=STYLE,
            layout=ipywidgets.Layout(width="500px", max_width=WIDEST),
        )
        super().__init__([self.slider], lambda: self.show(self.slider.value))

    def show(self, epoch: int) -> None:
        """Redraw the picture for this epoch."""
        self.put(plots.feature_plane(self._outputs, epochs=[epoch]), f"after epoch {epoch}")


def epoch_slider(outputs: pd.DataFrame, *, epoch: int) -> EpochSlider:
    """An epoch to move, and where the features of test images lie after it, to its own scale.

    The static twin, for readers without a kernel, is `plots.feature_plane`.

    Args:
        outputs: one row per test image and epoch, as for the twin.
        epoch: where the slider starts.

    Raises:
        ValueError: a column or that epoch is missing.
    """
    return EpochSlider(outputs, epoch=epoch)


class RiskSlider(Explorer):
    """What `risk_slider` returns.

    Attributes:
        slider: the FloatSlider over the risk; setting its value redraws.
        figure: `plots.accepted_at_risk` at the risk.
    """

    kind = "a slider, which needs"

    def __init__(self, samples: pd.DataFrame, *, risk: float) -> None:
        self._samples = samples
        self.show(risk)
        self.slider = slider(risk, lowest(risk, RISK_STEP), 1.0, RISK_STEP, "risk")
        super().__init__([self.slider], lambda: self.show(self.slider.value))

    def show(self, risk: float) -> None:
        """Redraw the picture for this risk."""
        figure = plots.accepted_at_risk(self._samples, risk=risk)
        self.put(figure, f"errors among accepted samples: at most {risk:.2f}")


def risk_slider(samples: pd.DataFrame, *, risk: float) -> RiskSlider:
    """A risk to move, and what each method then accepts, by kind.

    The static twin, for readers without a kernel, is `plots.accepted_at_risk`.

    Args:
        samples: columns panel, method, kind ("" where accepting is right) and score.
        risk: where the slider starts, a rate: the largest share of errors among accepted samples.

    Raises:
        ValueError: a column is missing, a score is NaN, or risk is no rate.
    """
    return RiskSlider(samples, risk=risk)
