"""What moves: a slider over a finished scores table, a figure that follows a run.

Each has a static twin in `plots`.
"""

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ipywidgets
import pandas as pd

from osnb import plots

ACCEPTED = {
    "known": "known accepted and right (CCR)",
    "negative": "negative accepted (FPR)",
    "unknown": "unknown accepted (FPR)",
}
RISK_STEP = 0.01


class ThresholdSlider(ipywidgets.VBox):
    """What `threshold_slider` returns.

    Attributes:
        slider: the FloatSlider, moved by mouse or arrow keys; setting its value redraws.
        sentence: HTML widget, the rates at the threshold in words.
        picture: Image widget, `figure` as PNG.
        figure: `plots.operating_point` at the threshold; the one before it is dropped.
    """

    def __init__(self, table: pd.DataFrame, *, score: str, threshold: float) -> None:
        self._table, self._score = table, score
        self.sentence, self.picture = ipywidgets.HTML(), ipywidgets.Image(format="png")
        self.show(threshold)
        low, high = float(table[score].min()), float(table[score].max())
        step = (high - low) / 100 or 1.0
        # steps count from min, and a browser moves the value to a step: threshold must be one
        self.slider = ipywidgets.FloatSlider(
            value=threshold,
            min=threshold - step * max(0, math.ceil((threshold - low) / step)),
            max=max(high + step, threshold),  # so that everything can be rejected
            step=step,
            description="threshold",
            readout_format=".3f",
            layout=ipywidgets.Layout(width="700px", max_width="100%"),
        )
        self.slider.observe(lambda change: self.show(change["new"]), names="value")
        super().__init__([self.slider, self.sentence, self.picture])

    def __repr__(self) -> str:
        """What stands in a notebook that is read without a kernel."""
        return "a slider, which needs a running kernel"

    def show(self, threshold: float) -> None:
        """Redraw the picture and rewrite the sentence for this threshold."""
        drawn = {"score": self._score, "threshold": threshold}
        counts = plots.operating_counts(self._table, **drawn)
        self.figure = plots.operating_point(self._table, **drawn)
        self.sentence.value = "; ".join(
            f"{ACCEPTED[row.role]}: {row.rate:.3f} of {row.samples}" for row in counts.itertuples()
        )
        self.picture.value = self.figure._repr_png_()


def threshold_slider(table: pd.DataFrame, *, score: str, threshold: float) -> ThresholdSlider:
    """A threshold to move, seen on the OSCR curve, over the scores and in counts.

    The static twin, for readers without a kernel, is `plots.operating_point`.

    Args:
        table: the scores table of one run, with known samples and others.
        score: column of a rule that needs no label, such as max_softmax.
        threshold: where the slider starts, in the unit of the score.

    Raises:
        ValueError: a column or a role is missing, or a score is not finite.
    """
    return ThresholdSlider(table, score=score, threshold=threshold)


class EpochSlider(ipywidgets.VBox):
    """What `epoch_slider` returns.

    Attributes:
        slider: the SelectionSlider over the epochs; setting its value redraws.
        picture: Image widget, `figure` as PNG.
        figure: `plots.feature_plane` of the epoch; the one before it is dropped.
    """

    def __init__(self, outputs: pd.DataFrame, *, epoch: int) -> None:
        self._outputs, self.picture = outputs, ipywidgets.Image(format="png")
        self.show(epoch)
        self.slider = ipywidgets.SelectionSlider(
            value=epoch,
            options=sorted({*outputs["epoch"].tolist()}),
            description="epoch",
            layout=ipywidgets.Layout(width="500px", max_width="100%"),
        )
        self.slider.observe(lambda change: self.show(change["new"]), names="value")
        super().__init__([self.slider, self.picture])

    def __repr__(self) -> str:
        """What stands in a notebook that is read without a kernel."""
        return "a slider, which needs a running kernel"

    def show(self, epoch: int) -> None:
        """Redraw the picture for this epoch."""
        self.figure = plots.feature_plane(self._outputs, epochs=[epoch])
        self.picture.value = self.figure._repr_png_()


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


class RiskSlider(ipywidgets.VBox):
    """What `risk_slider` returns.

    Attributes:
        slider: the FloatSlider over the risk; setting its value redraws.
        picture: Image widget, `figure` as PNG.
        figure: `plots.accepted_at_risk` at the risk; the one before it is dropped.
    """

    def __init__(self, samples: pd.DataFrame, *, risk: float) -> None:
        self._samples, self.picture = samples, ipywidgets.Image(format="png")
        self.show(risk)
        self.slider = ipywidgets.FloatSlider(
            value=risk,
            min=max(0.0, risk - RISK_STEP * math.floor(risk / RISK_STEP)),
            max=1.0,
            step=RISK_STEP,
            description="risk",
            readout_format=".2f",
            layout=ipywidgets.Layout(width="700px", max_width="100%"),
        )
        self.slider.observe(lambda change: self.show(change["new"]), names="value")
        super().__init__([self.slider, self.picture])

    def __repr__(self) -> str:
        """What stands in a notebook that is read without a kernel."""
        return "a slider, which needs a running kernel"

    def show(self, risk: float) -> None:
        """Redraw the picture for this risk."""
        self.figure = plots.accepted_at_risk(self._samples, risk=risk)
        self.picture.value = self.figure._repr_png_()


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


@contextmanager
def live(directory: Path, *, seconds: float = 1.0) -> Iterator[None]:
    """Show `plots.training` of a run in the output of this cell, drawn again after each epoch.

    The run writes history.parquet whole after every epoch; a thread looks whether it changed.
    An interrupt ends the run after its step, which is kept: the same cell goes on from there.

        with widgets.live(here.directory):
            history = train.fit(...)

    Args:
        directory: of the run, where `fit` keeps history.parquet.
        seconds: between two looks.
    """
    from IPython.display import display

    file, over = Path(directory) / "history.parquet", threading.Event()
    follow = _Follower(file, display(display_id=True))
    thread = threading.Thread(target=follow.until, args=(over, seconds), daemon=True)
    thread.start()
    try:
        yield
    except KeyboardInterrupt as interrupt:
        print(f"interrupted: {interrupt}; run the cell again to go on from there")
        raise
    finally:
        over.set()
        thread.join()
        follow.look()


class _Follower:
    """Keeps a display at what a history file says."""

    def __init__(self, file: Path, shown):
        self.file, self.shown, self.seen = file, shown, None

    def until(self, over: threading.Event, seconds: float) -> None:
        while not over.wait(seconds):
            self.look()

    def look(self) -> None:
        """Draw again if the file is another one than at the last look."""
        seen = self.file.stat().st_mtime_ns if self.file.is_file() else None
        if seen != self.seen and self.shown:  # outside of Jupyter there is nothing to show it in
            self.seen = seen
            self.shown.update(plots.training(pd.read_parquet(self.file)))
