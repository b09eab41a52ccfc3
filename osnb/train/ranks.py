"""Several processes that share every batch, what stops them, and what a person sees meanwhile.

It is plain DistributedDataParallel among processes of this machine.

`launch` starts them as children, so that the kernel of a notebook never forks after CUDA. Each
takes its part of the same global batches and torch averages their gradients; process 0 alone
validates and writes. If one dies, the others are ended and all go on from the last checkpoint.

No other user can send them code: they meet in a folder that is the owner's alone, speak over the
loopback, and unpickle nothing of what they exchange. Their job comes through a pipe from their
owner; they end when its other end is closed, however the owner has ended.
"""

import faulthandler
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, distributed, nn

RESTARTS = 3
TALK = 20  # steps between two of them in which processes agree on stopping
TOLD = "osnb: "
INTERRUPTED = 130  # exit code of a process that has kept its step
JOIN = 60  # seconds that processes may take to meet
LONGEST = timedelta(days=1)  # that they wait for the one that validates; NCCL's own: 10 minutes
WORK = "import sys; from osnb.train import ranks; ranks.work(sys.argv[1])"  # a process's program
LOOPBACK = "lo" if sys.platform == "linux" else "lo0"


def count() -> int:
    """Processes that share a batch; 1 outside of `launch`."""
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


def reduced(value: Tensor, how: distributed.ReduceOp = distributed.ReduceOp.SUM) -> Tensor:
    """Sum, or the maximum, over the processes, in every one of them."""
    value = value.clone()
    if count() > 1:
        distributed.all_reduce(value, how)
    return value


def gathered(value: Any) -> list:
    """Every process's value, of tensors and plain values, in every process."""
    if count() == 1:
        return [value]
    buffer = io.BytesIO()
    torch.save(value, buffer)  # torch's own way for objects unpickles what it receives
    mine = torch.frombuffer(buffer.getbuffer(), dtype=torch.uint8)
    sizes = [torch.zeros((), dtype=torch.int64, device=_where()) for _ in range(count())]
    distributed.all_gather(sizes, torch.tensor(len(mine), device=_where()))
    parts = [torch.zeros(int(max(sizes)), dtype=torch.uint8, device=_where()) for _ in sizes]
    distributed.all_gather(
        parts, nn.functional.pad(mine, (0, len(parts[0]) - len(mine))).to(_where())
    )
    whole = (part[:size].cpu().numpy().tobytes() for part, size in zip(parts, sizes, strict=True))
    return [torch.load(io.BytesIO(each), weights_only=True) for each in whole]


def _where() -> str:
    """The device through which processes talk."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def agreed(value: int, step: int) -> int:
    """Process 0's number, in every process; 0 between the steps at which they talk."""
    if count() == 1:
        return value
    if step % TALK:
        return 0
    shared = torch.tensor(value, device=_where())
    distributed.broadcast(shared, 0)
    return int(shared)


def launch(job: Callable[[], None], devices: int, directory: Path, heard: Callable) -> None:
    """Carry out `job` in `devices` processes of this machine.

    Args:
        job: called in every process once they know each other.
        devices: processes.
        directory: where they meet, in a folder that goes with them.
        heard: called with what process 0 has told.

    Raises:
        RuntimeError: the processes failed again and again; the message ends with their last lines.
        KeyboardInterrupt: this process was interrupted, and the others have ended.
    """
    import cloudpickle

    content = cloudpickle.dumps(job)  # all at once: an optimizer keeps its model's parameters
    for _ in range(1 + RESTARTS):
        with TemporaryDirectory(prefix=".ranks-", dir=directory) as folder:  # of mode 0700
            lines: deque = deque(maxlen=100)
            if _carried_out(content, devices, f"{folder}/store", heard, lines):
                return
    ended = "\n".join(lines)
    raise RuntimeError(f"{devices} processes failed {1 + RESTARTS} times:\n{ended}")


def _carried_out(job: bytes, devices: int, store: str, heard: Callable, lines: deque) -> bool:
    """Whether every process has done the job. An interrupt reaches them and is waited for."""
    inside, outside = os.pipe()
    processes = [_worker(number, devices, store, outside) for number in range(devices)]
    os.close(outside)
    for process in processes:
        threading.Thread(target=_given, args=(process, job, processes), daemon=True).start()
    with open(inside, encoding="utf8", errors="replace") as said:
        try:
            for line in said:
                told = _told(line)
                if "row" in told:
                    heard(told)
                elif line.strip():
                    lines.append(told.get("error", line).rstrip())
            return all(process.wait() == 0 for process in processes)
        except KeyboardInterrupt:
            for process in processes:
                process.send_signal(signal.SIGINT)
            for process in processes:
                process.wait()
            raise
        finally:
            _end(processes)


def _worker(number: int, devices: int, store: str, out: int) -> subprocess.Popen:
    """A process that holds the run's lock too: until it has ended, nobody else makes the run."""
    named = {"OSNB_RANK": f"{number} {devices}", "OMP_NUM_THREADS": str(torch.get_num_threads())}
    named |= {"GLOO_SOCKET_IFNAME": LOOPBACK, "NCCL_SOCKET_IFNAME": LOOPBACK}
    # each sees one GPU alone, on which it unpickles what lies on its owner's
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(devices)))).split(",")
    named["CUDA_VISIBLE_DEVICES"] = gpus[number] if number < len(gpus) else ""
    return subprocess.Popen(
        [sys.executable, "-c", WORK, store],
        env=os.environ | named,
        stdin=subprocess.PIPE,
        stdout=out,
        stderr=out,
        start_new_session=True,
        pass_fds=[int(lock) for lock in os.environ.get("OSNB_LOCK", "").split()],
    )


def work(store: str) -> None:
    """Join the others through the file `store`, then do the job that our owner has written."""
    import cloudpickle

    size = int.from_bytes(sys.stdin.buffer.read(8), "big")
    content = sys.stdin.buffer.read(size)
    threading.Thread(target=_end_with_owner, daemon=True).start()
    rank, world = map(int, os.environ["OSNB_RANK"].split())
    cuda = torch.cuda.is_available()
    # gloo sometimes waits for ever; who does not meet the others starts again
    faulthandler.dump_traceback_later(JOIN, exit=True)
    meet = {"store": distributed.FileStore(store, world), "rank": rank, "world_size": world}
    meet["timeout"] = LONGEST
    distributed.init_process_group("nccl" if cuda else "gloo", **meet)
    faulthandler.cancel_dump_traceback_later()
    try:
        cloudpickle.loads(content)()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        tell({"error": f"{type(error).__name__}: {error}"[:2000]}, every=True)
        raise
    finally:
        distributed.destroy_process_group()


def _end_with_owner() -> None:
    """End as soon as the owner's end of the pipe is closed, by itself or by its death."""
    os.read(0, 1)
    os._exit(1)


def _given(process: subprocess.Popen, job: bytes, processes: list[subprocess.Popen]) -> None:
    """Give a process its job and wait for it; one that fails takes the others down."""
    with suppress(OSError, ValueError):  # it has ended before it has read all
        process.stdin.write(len(job).to_bytes(8, "big") + job)
        process.stdin.flush()
    if process.wait() not in (0, INTERRUPTED):
        _end(processes)


def _end(processes: list[subprocess.Popen]) -> None:
    for process in processes:
        process.kill()
    for process in processes:
        process.wait()
        with suppress(OSError):
            process.stdin.close()


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

        ipython = sys.modules.get("IPython")
        kernel = ipython is not None and hasattr(ipython.get_ipython(), "kernel")
        self.epochs, self.steps, self.row = epochs, steps, {"epoch": done}
        self.images, self.began = 0, self.clock()
        self.bar = tqdm(
            total=epochs * steps,
            initial=done * steps,
            unit="step",
            file=_Display() if kernel else sys.stdout,
            disable=done == epochs or not (kernel or sys.stdout.isatty()),
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
        """Show a line in the place of the one before."""
        if text.strip():
            self.handle.update({"text/plain": text.strip("\r\n")}, raw=True)

    def flush(self) -> None:
        """Nothing is held back."""
