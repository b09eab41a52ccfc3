"""What a person sees while a network trains, and the interrupt that ends it cleanly."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Turn the first interrupt into a wish to stop, which the function given tells.

    The loop can then finish its step and keep it. A second interrupt stops at once.
    """
    wished = []

    def wish(number, frame):
        if wished:
            signal.default_int_handler(number, frame)
        wished.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # only the main thread hears of signals
        return
    before = signal.signal(signal.SIGINT, wish)
    try:
        yield lambda: bool(wished)
    finally:
        signal.signal(signal.SIGINT, before)


class Line:
    """One line of progress: rewritten in a terminal and in a notebook, none in a log.

    It shows the epoch, images per second, the time left, and of the last epoch loss and `best`.
    """

    def __init__(self, epochs: int, done: int, steps: int):
        from tqdm import tqdm

        kernel = "ipykernel" in sys.modules and _in_kernel()
        self.epochs, self.steps, self.row = epochs, steps, {"epoch": done}
        self.images, self.began = 0, self.clock()
        self.bar = tqdm(
            total=epochs * steps,
            initial=done * steps,
            unit="step",
            file=_Display() if kernel else sys.stdout,
            disable=not kernel and not sys.stdout.isatty(),
            ncols=100,
            mininterval=0.5,
            bar_format="{percentage:3.0f}% |{bar:20}| {remaining} left{postfix}",
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.bar.close()

    @staticmethod
    def clock() -> float:
        """Seconds; only differences mean something."""
        return time.monotonic()

    def step(self, images: int) -> None:
        """A step on so many images is done."""
        self.images += images
        if not self.bar.disable:
            self.bar.set_postfix_str(self._said(), refresh=False)
            self.bar.update()

    def epoch(self, row: dict[str, float], images: int = 0) -> None:
        """An epoch is done: its row of the history, and images so far if others counted them."""
        self.row, self.images = row, images or self.images
        if not self.bar.disable:
            self.bar.n = row["epoch"] * self.steps
            self.bar.set_postfix_str(self._said())

    def _said(self) -> str:
        speed = self.images / max(self.clock() - self.began, 1e-9)
        shown = [f"{key} {self.row[key]:.3f}" for key in ("loss", "best") if key in self.row]
        return ", ".join(
            [f"epoch {self.row['epoch']}/{self.epochs}", f"{speed:,.0f} images/s", *shown]
        )


class _Display:
    """A file whose lines replace each other in one output of a notebook cell."""

    def __init__(self):
        from IPython.display import display

        self.handle = display({"text/plain": ""}, raw=True, display_id=True)

    def write(self, text: str) -> None:
        if text.strip():
            self.handle.update({"text/plain": text.strip("\r\n")}, raw=True)

    def flush(self) -> None:
        """Nothing is held back."""


def _in_kernel() -> bool:
    from IPython import get_ipython

    return hasattr(get_ipython(), "kernel")
