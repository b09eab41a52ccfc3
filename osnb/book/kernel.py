"""The process that a run's kernel is forked from: python -m osnb.book.kernel FOLDER.

For every connection file that standard input, a socket, names it forks a kernel and prints its
number, until the owner has ended. Then it ends whatever their notebooks have started, and takes
the folder away in which all their files lie.

What of `SLOW` a kernel had imported at its end, it imports before it forks the next one: nobody
waits for that again. Of this package a kernel takes nothing over, so that code that was edited is
read anew.

The kernel is IPython's own, started and ended faster. A cell that imports runs with the collector
off, and what it has loaded is frozen: otherwise the collector walks again and again over the
hundred thousand objects of torch, none of which ever goes. At the end nothing is taken apart.
"""

import atexit
import ctypes
import gc
import json
import os
import shutil
import signal
import socket
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile

import psutil
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp

ENDING = 10  # seconds that the answer to a request to end may take
ADOPTS = 36  # PR_SET_CHILD_SUBREAPER: whose parent has ended becomes our child
# elsewhere a library may not outlive it: one process, one kernel
FORKS = sys.platform == "linux" and hasattr(os, "fork")
# what takes long to import, and asks nothing meanwhile about the notebook that it is in; but for
# pandas, to which these are the answers
SLOW = ("numpy", "torch", "torch._dynamo", "pyarrow.parquet", "matplotlib.pyplot")
SLOW += ("scipy.stats", "tabulate", "yaml", "pandas")
IN_NOTEBOOK = ("display.max_columns", 20, "display.encoding", "UTF-8")


class Kernel(IPythonKernel):
    """IPython's kernel, with the collector off while a cell imports.

    An interrupt that comes between two cells ends the next one: IPython's kernel forgets it.
    """

    def __init__(self, **options):
        super().__init__(**options)
        self.in_cell = self.interrupted = False
        self.shell.events.register("pre_run_cell", self._before)
        self.shell.events.register("post_run_cell", self._after)
        signal.signal(signal.SIGINT, self._interrupt)
        _block_interrupt(False)

    def _interrupt(self, *_) -> None:
        if self.in_cell:
            raise KeyboardInterrupt
        self.interrupted = True

    def pre_handler_hook(self) -> None:
        """Keep our handler of interrupts while a message is handled, and after it."""

    post_handler_hook = pre_handler_hook

    def _before(self, info) -> None:
        self.in_cell = True
        if "import" in (info.raw_cell or ""):
            gc.disable()

    def _after(self, _) -> None:
        self.in_cell = False
        if not gc.isenabled():
            gc.freeze()
            gc.enable()

    async def do_execute(self, code: str, *args, **options):
        """Execute a cell; after an interrupt, fail as an interrupted one does."""
        if self.interrupted:
            self.interrupted, code = False, "raise KeyboardInterrupt"
        return await super().do_execute(code, *args, **options)


class App(IPKernelApp):
    """IPython's application."""

    def init_signal(self) -> None:
        """Forget no interrupt that has come already: the kernel heeds it."""


def usage() -> dict[str, int | str | None]:
    """Bytes at the peak: `memory` of this process or its largest child, `gpu` of torch's."""
    memory, torch = _peak(), sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return {"memory": memory, "gpu": None, "device": "cpu"}
    on_gpu = torch.cuda.max_memory_allocated()
    return {"memory": memory, "gpu": on_gpu, "device": torch.cuda.get_device_name()}


def _peak() -> int:
    """Bytes at the peak; where nobody counts them, those of now."""
    try:
        import resource
    except ImportError:  # Windows
        used = psutil.Process().memory_info()
        return getattr(used, "peak_wset", used.rss)
    each = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    peak = max(resource.getrusage(who).ru_maxrss for who in each)
    return peak * (1 if sys.platform == "darwin" else 1024)


def _block_interrupt(held: bool) -> None:
    """Hold an interrupt back, or let it come, where a system can do that."""
    if hasattr(signal, "pthread_sigmask"):
        how = signal.SIG_BLOCK if held else signal.SIG_UNBLOCK
        signal.pthread_sigmask(how, {signal.SIGINT})


def main() -> None:
    """Fork a kernel for every file that is named, or be the only one."""
    gc.disable()
    _block_interrupt(True)  # until the kernel can heed it
    if FORKS:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # none that has ended is kept as a zombie
        ctypes.CDLL(None).prctl(ADOPTS, 1, 0, 0, 0)
    answers, locks, folder = os.dup(1), [], sys.argv.pop(1)
    os.dup2(2, 1)  # what a library prints is no answer
    with TemporaryFile(buffering=0) as met:
        while file := _named(locks):
            for name in os.pread(met.fileno(), 4096, 0).decode().split():
                import_module(name)
            if "pandas" in sys.modules:
                sys.modules["pandas"].set_option(*IN_NOTEBOOK)
            gc.freeze()
            if not FORKS or not _forked():
                os.write(answers, b"%d\n" % os.getpid())
                os.close(answers)
                os.environ["OSNB_LOCK"] = " ".join(map(str, locks))
                _serve(file)
                os.pwrite(met.fileno(), " ".join(x for x in SLOW if x in sys.modules).encode(), 0)
                _leave()
        _end(folder)
    os._exit(0)


def _named(locks: list[int]) -> Path | None:
    """The next connection file; none once our owner has ended. `locks` becomes the run's lock.

    It is the owner's descriptor: without him the lock is free when we too have ended.
    """
    for lock in locks:
        os.close(lock)
    with socket.socket(fileno=os.dup(0)) as owner:
        name, locks[:], *_ = socket.recv_fds(owner, 4096, 1)
    for lock in locks:
        os.set_inheritable(lock, False)
    return Path(name.decode()) if name else None


def _end(folder: str) -> None:
    """End all that kernels have left running, and take the folder of all of them away."""
    while left := psutil.Process().children(recursive=True):
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=1)
    shutil.rmtree(folder, ignore_errors=True)


def _forked() -> int:
    """The number of a new process; 0 in that, which leads a group of its own."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        # of the thread of pyarrow's allocator, which holds still while a process is forked
        pid = os.fork()
    if not pid:
        os.setsid()
        if "numpy.random" in sys.modules:
            sys.modules["numpy.random"].seed()  # as in every new process
    return pid


def _serve(file: Path) -> None:
    """Be the kernel of a connection file, and say beside it what was used."""
    if FORKS:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    for name in [name for name in sys.modules if name.partition(".")[0] == "osnb"]:
        del sys.modules[name]
    argv = ["-f", str(file), f"--IPKernelApp.parent_handle={os.getppid()}", *sys.argv[1:]]
    App.launch_instance(argv=argv, kernel_class=Kernel)
    file.with_name("usage.json").write_text(json.dumps(usage()))


def _leave() -> None:
    """End without taking modules apart."""
    # the thread that answers the request to end still writes to sockets that are closed below
    App.instance().control_thread.join(ENDING)
    atexit._run_exitfuncs()  # what others want done at the end
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
