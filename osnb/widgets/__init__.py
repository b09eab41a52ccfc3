"""What moves: explorers of a finished table, a figure that follows a run.

Each explorer is controls above a picture with alternative text, moved by mouse or by keyboard (Tab
from one control to the next, arrow keys within). Each has a static twin in `plots`.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from osnb import plots
from osnb.widgets.costs import CostSliders, cost_sliders
from osnb.widgets.losses import LossExplorer, loss_explorer
from osnb.widgets.roles import ProtocolExplorer, protocol_explorer
from osnb.widgets.sliders import (
    EpochSlider,
    RiskSlider,
    ThresholdSlider,
    epoch_slider,
    risk_slider,
    threshold_slider,
)

__all__ = [
    "CostSliders",
    "EpochSlider",
    "LossExplorer",
    "ProtocolExplorer",
    "RiskSlider",
    "ThresholdSlider",
    "cost_sliders",
    "epoch_slider",
    "live",
    "loss_explorer",
    "protocol_explorer",
    "risk_slider",
    "threshold_slider",
]


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
