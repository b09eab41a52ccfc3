"""The kernel of a run as its owner sees it: started, timed, interrupted, and at its end asked."""

import atexit
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import psutil

from osnb.base import workbook

QUIET = "--log-level=50"  # what a kernel complains of is in its notebook
# a training step frees what the next one asks for: glibc need not give it back in between, page by
# page (8 GB a second for VGG32), and changes no number
KEPT = dict.fromkeys(["MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"], str(2**32))
KEPT["MALLOC_TOP_PAD_"] = str(2**26)
# numpy's sums in one order, whatever machine: what is fitted then has equal bytes
FIXED = {"OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "module://matplotlib_inline.backend_inline"}

LONGEST = threading.TIMEOUT_MAX / 2  # seconds that a thread can wait, by far
PATH = 77  # bytes of a temporary folder in which a socket's path has no more than 107


def _grace() -> float:
    told = os.environ.get("OSNB_GRACE") or "30"
    try:
        return min(LONGEST, float(told))
    except ValueError:
        raise ValueError(f"OSNB_GRACE is a number of seconds; got {told!r}") from None


# seconds between an interrupt, after which a training run keeps its step, and the end
GRACE = _grace()
_running: set = set()  # the kernels that this process owns
_numbers = itertools.count(1)  # of their folders
_sources: dict = {}  # the one process that forks them
_asking = threading.Lock()


def interrupt(number: int = signal.SIGINT) -> None:
    """Interrupt every kernel of this process, as Ctrl-C would in it, or send another signal."""
    for kernel in list(_running):
        if kernel.process is None:
            kernel.missed = number
        elif kernel.process.poll() is None:
            kernel.process.send_to_group(number)


class Forked(psutil.Process):
    """A kernel, our child's child or our child, with what jupyter asks of a Popen."""

    stdin = stdout = stderr = None

    def poll(self) -> int | None:
        """None while it runs."""
        try:
            return self.wait(0) or 0
        except psutil.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        """Nothing, if it has ended."""
        with suppress(psutil.NoSuchProcess):
            super().send_signal(number)

    def send_to_group(self, number: int) -> None:
        """To all that it has started too, where processes have groups."""
        if not hasattr(os, "killpg"):
            self.send_signal(number)
            return
        with suppress(ProcessLookupError):  # it has just ended
            os.killpg(self.pid, number)


@dataclass(eq=False)
class Kernel:
    """A kernel that is forked once somebody knows where it is to listen.

    Attributes:
        source: the process that forks it.
        locks: the descriptor of its run's lock, which it is to hold too, if there is one.
        folder: for its sockets, and for what it used.
        process: of the kernel, once there is one.
        missed: a signal that came before.
    """

    source: subprocess.Popen
    locks: list[int]
    folder: Path
    process: Forked | None = None
    missed: int = 0

    def used(self) -> dict[str, int | str | None]:
        """What the kernel wrote at its end; nothing of one that was killed."""
        try:
            return json.loads((self.folder / "usage.json").read_text())
        except (OSError, ValueError):
            return {}

    def manager(self) -> type:
        """The class of a jupyter manager that takes this kernel and starts no other.

        It talks through files in `folder`: no port, and no kernel answers for another.
        """
        from jupyter_client.kernelspec import KernelSpec
        from jupyter_client.manager import AsyncKernelManager
        from jupyter_client.provisioning import LocalProvisioner

        kernel = self

        class Waiting(LocalProvisioner):
            async def launch_kernel(self, cmd, **_):
                self.process = kernel.process = _fork(kernel, cmd[0])
                self.pid = self.pgid = self.process.pid
                if kernel.missed:
                    kernel.process.send_to_group(kernel.missed)
                return self.connection_info

        class Manager(AsyncKernelManager):
            kernel_spec = KernelSpec(argv=["{connection_file}"], language="python")

            def __init__(self, **options):
                options |= {"connection_file": f"{kernel.folder}/connection.json"}
                super().__init__(**options, transport="ipc", ip=f"{kernel.folder}/kernel")
                self.provisioner = Waiting(kernel_spec=self.kernel_spec, parent=self)

        return Manager


def _source(cwd: Path) -> subprocess.Popen:
    """What forks kernels of this Python, whatever kernels and start-up files a person has.

    They inherit its folder and its environment: if either is another, so is it.
    """
    env = KEPT | os.environ | FIXED | {"IPYTHONDIR": str(workbook.out() / "runs" / ".ipython")}
    options = {"stdout": subprocess.PIPE, "bufsize": 0}
    options |= {"cwd": cwd, "env": env, "start_new_session": True}
    key = os.getpid(), cwd, *sorted(env.items())
    with _asking:
        if key not in _sources or _sources[key].poll() is not None:
            _end()
            ours, its = socket.socketpair()
            place = "/tmp" if len(os.fsencode(gettempdir())) > PATH else None
            folder = TemporaryDirectory(prefix="osnb-", dir=place, ignore_cleanup_errors=True)
            command = [sys.executable, "-m", "osnb.book.kernel", folder.name, QUIET]
            with its:
                _sources[key] = subprocess.Popen(command, stdin=its, **options)
            _sources[key].stdin, _sources[key].folder = ours, folder
        return _sources[key]


def _fork(kernel: Kernel, file: str) -> Forked:
    """A kernel that listens where a connection file says."""
    from nbclient.exceptions import DeadKernelError

    try:
        with _asking:
            socket.send_fds(kernel.source.stdin, [file.encode()], kernel.locks)
            return Forked(int(kernel.source.stdout.readline()))
    except BaseException as error:
        _end()  # if only we were interrupted, its answer would be taken for the next one's
        if isinstance(error, (OSError, ValueError, psutil.NoSuchProcess)):
            raise DeadKernelError("Kernel died") from None
        raise


@atexit.register
def _end() -> None:
    while _sources:
        with _sources.popitem()[1] as process:
            process.kill()
        process.folder.cleanup()


@contextmanager
def started(cwd: Path, lock: int | None = None) -> Iterator[Kernel]:
    """A kernel, which ends with the block, as does whatever its notebook has started.

    If it is the first of this process, what it is forked from starts while papermill is imported.
    """
    source = _source(cwd)
    # its name is short, for a socket's path has 107 bytes at most
    folder = Path(source.folder.name) / str(next(_numbers))
    folder.mkdir(mode=0o700)
    kernel = Kernel(source, [] if lock is None else [lock], folder)
    _running.add(kernel)
    try:
        yield kernel
    finally:
        _running.discard(kernel)
        if kernel.process:
            kernel.process.send_signal(signal.SIGKILL)
            kernel.process.wait()
        with suppress(psutil.NoSuchProcess):
            for left in psutil.Process(kernel.source.pid).children(recursive=True):
                left.kill()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def limited(seconds: float) -> Iterator[Callable[[], bool]]:
    """Interrupt the kernels of this process after so many seconds, and later kill them.

    Args:
        seconds: 0 for no limit.

    Yields:
        A function that tells whether the limit was reached.
    """
    reached, over = threading.Event(), threading.Event()

    def end():
        if not over.wait(min(LONGEST, seconds)):
            reached.set()
            interrupt()
            if not over.wait(GRACE):
                interrupt(signal.SIGKILL)

    if seconds:
        threading.Thread(target=end, daemon=True).start()
    try:
        yield reached.is_set
    finally:
        over.set()
