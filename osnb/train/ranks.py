"""Several processes that share every batch, what stops them, and what a person sees meanwhile.

It is plain DistributedDataParallel under torchrun.

`launch` writes the run to a file and starts `torchrun` on it as a child process, so that the
kernel of a notebook never forks after CUDA. Each process takes its part of the same global
batches and torch averages their gradients; process 0 alone validates and writes. A process that
dies takes the others down, and torchrun starts all of them again from the last checkpoint.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn

from osnb.base import workbook

RESTARTS = 3
TALK = 20  # steps between two of them in which processes agree on stopping
TOLD = "osnb: "
# a store of its own for every start: in a shared one, addresses of processes that died are found
FRESH = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


def count() -> int:
    """Processes that share a batch; 1 outside of torchrun."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def number() -> int:
    """This process among them, from 0."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def share(images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, int]:
    """This process's part of a batch, and what its summed loss counts.

    Gradients are averaged over the processes: a sum over a part counts as often as there are
    processes. A batch of fewer samples than processes goes to all of them, and counts once.
    """
    if len(labels) < count():
        return images, labels, 1
    part = [column.tensor_split(count())[number()] for column in (images, labels)]
    return *part, count()


def wrapped(model: nn.Module) -> nn.Module:
    """The model with gradients averaged over the processes; itself if there is one."""
    return model if count() == 1 else nn.parallel.DistributedDataParallel(model)


def total(value: Tensor) -> Tensor:
    """Sum over the processes, in every one of them."""
    return _reduced(value, distributed.ReduceOp.SUM)


def largest(value: Tensor) -> Tensor:
    """Maximum over the processes, in every one of them."""
    return _reduced(value, distributed.ReduceOp.MAX)


def _reduced(value: Tensor, how) -> Tensor:
    value = value.clone()
    if count() > 1:
        distributed.all_reduce(value, how)
    return value


def from_first(compute: Callable[[], Any]) -> Any:
    """What process 0 computes, in every process."""
    shared = [compute() if number() == 0 else None]
    if count() > 1:
        distributed.broadcast_object_list(shared)
    return shared[0]


def gathered(value: Any) -> list:
    """Every process's value, in every process."""
    values = [value] * count()
    if count() > 1:
        distributed.all_gather_object(values, value)
    return values


def agreed(value: int, step: int) -> int:
    """Process 0's number, in every process; 0 between the steps at which they talk."""
    if count() == 1:
        return value
    if step % TALK:
        return 0
    shared = torch.tensor(value, device="cuda" if torch.cuda.is_available() else "cpu")
    distributed.broadcast(shared, 0)
    return int(shared)


def launch(job: Callable[[], None], devices: int, directory: Path, heard: Callable) -> None:
    """Carry out `job` in `devices` processes of this machine, under torchrun.

    $OSNB_TORCHRUN adds options, such as those for several machines.

    Args:
        job: called in every process once they know each other.
        devices: processes on this machine.
        directory: where the job is kept for the processes to read.
        heard: called with what process 0 has told.

    Raises:
        RuntimeError: the processes failed again and again; the message ends with their last lines.
        KeyboardInterrupt: this process was interrupted, and the others have ended.
    """
    import cloudpickle

    file = Path(directory) / "ranks.pkl"
    with workbook.writing(file) as aside:  # all at once: an optimizer keeps its model's parameters
        aside.write_bytes(cloudpickle.dumps(job))
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={devices}"]
    command += shlex.split(os.environ.get("OSNB_TORCHRUN", "--standalone"))
    command += [f"--max-restarts={RESTARTS}", "-m", "osnb.train.worker", str(file)]
    try:
        code, lines = _relayed(command, heard)
    finally:
        file.unlink()
    if code:
        ended = "\n".join(lines)
        raise RuntimeError(f"{devices} processes failed {1 + RESTARTS} times:\n{ended}")


def _relayed(command: list[str], heard: Callable) -> tuple[int, deque]:
    """Run a command; its exit code and last lines. An interrupt reaches it and is waited for."""
    lines: deque = deque(maxlen=100)
    threads = {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(
        command, **pipes, env=os.environ | threads | FRESH, start_new_session=True
    ) as child:
        try:
            for line in child.stdout:
                told = _told(line)
                if "row" in told:
                    heard(told)
                elif line.strip():
                    lines.append(told.get("error", line).rstrip())
        except KeyboardInterrupt:
            child.send_signal(signal.SIGINT)
            child.wait()
            raise
    return child.returncode, lines


def _told(line: str) -> dict:
    """What a process has told in a line; nothing if it is another line, or a torn one."""
    try:
        return json.loads(line.removeprefix(TOLD)) if line.startswith(TOLD) else {}
    except ValueError:
        return {}


def tell(what: Any, *, every: bool = False) -> None:
    """Say something that json can hold to the process that launched these.

    Args:
        what: to be said.
        every: by every process, not by process 0 alone.
    """
    if count() > 1 and (every or number() == 0):
        # in one piece, on a line of its own: the processes share a pipe
        os.write(1, f"\n{TOLD}{json.dumps(what)}\n".encode())


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
