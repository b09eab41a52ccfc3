"""The kernel of a run as its owner sees it: started, timed, interrupted, and at its end asked."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from osnb.base import workbook

QUIET = "--log-level=50"  # what a kernel complains of is in its notebook
# seconds between an interrupt, after which a training run keeps its step, and the end
GRACE = float(os.environ.get("OSNB_GRACE") or 30)
_running: set = set()  # managers of the kernels that this process owns


def interrupt() -> int:
    """Interrupt every kernel of this process, as Ctrl-C would in it; how many there are."""
    for manager in list(_running):
        _signal(manager, signal.SIGINT)
    return len(_running)


def _signal(manager, number: int) -> None:
    with suppress(ProcessLookupError, AttributeError):  # it has ended, or not yet started
        os.killpg(manager.provisioner.pgid, number)


@dataclass(frozen=True)
class Kernel:
    """A kernel that waits to be told where to listen.

    Attributes:
        process: of `python -m osnb.book.kernel`.
        folder: for its sockets, and for what it used.
    """

    process: subprocess.Popen
    folder: Path

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

        process, folder = self.process, self.folder

        class Waiting(LocalProvisioner):
            async def launch_kernel(self, cmd, **_):
                self.process, self.pid, self.pgid = process, process.pid, process.pid
                process.stdin.write(f"{cmd[0]}\n".encode())
                process.stdin.close()
                return self.connection_info

        class Manager(AsyncKernelManager):
            kernel_spec = KernelSpec(argv=["{connection_file}"], language="python")

            def __init__(self, **options):
                super().__init__(**options, transport="ipc", ip=f"{folder}/kernel")
                self.provisioner = Waiting(kernel_spec=self.kernel_spec, parent=self)
                _running.add(self)

            async def _async_cleanup_resources(self, restart: bool = False) -> None:
                _running.discard(self)
                await super()._async_cleanup_resources(restart=restart)

            cleanup_resources = _async_cleanup_resources

        return Manager


@contextmanager
def started(cwd: Path) -> Iterator[Kernel]:
    """A kernel of this Python, whatever kernels and start-up files a person has.

    It starts while its owner still imports papermill, and ends with the block.
    """
    env = {
        "IPYTHONDIR": str(workbook.out() / "runs" / ".ipython"),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "JPY_PARENT_PID": str(os.getpid()),  # it ends when that is gone
        # numpy's sums in one order, whatever machine: what is fitted then has equal bytes
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "osnb.book.kernel", QUIET]
    options = {"cwd": cwd, "stdin": subprocess.PIPE, "start_new_session": True}
    with TemporaryDirectory(prefix="osnb-") as folder:
        env["OSNB_USAGE"] = f"{folder}/usage.json"
        process = subprocess.Popen(command, env=os.environ | env, **options)
        try:
            yield Kernel(process, Path(folder))
        finally:
            process.stdin.close()
            process.kill()
            process.wait()


@contextmanager
def limited(seconds: float) -> Iterator[Callable[[], bool]]:
    """Interrupt the kernels of this process after so many seconds, and later kill them.

    Args:
        seconds: 0 for no limit.

    Yields:
        A function that tells whether the limit was reached.
    """
    reached = threading.Event()

    def end():
        reached.set()
        interrupt()
        late.start()

    late = threading.Timer(GRACE, lambda: [_signal(each, signal.SIGKILL) for each in _running])
    timer = threading.Timer(seconds, end)
    for each in (timer, late):
        each.daemon = True
    if seconds:
        timer.start()
    try:
        yield reached.is_set
    finally:
        timer.cancel()
        late.cancel()
