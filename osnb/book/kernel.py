"""The kernel that a run is executed in: python -m osnb.book.kernel, and the file on standard input.

IPython's own, started and ended faster. A cell that imports runs with the collector off, and
what it has loaded is frozen: otherwise the collector walks again and again over the hundred
thousand objects of torch, none of which ever goes. At the end nothing is taken apart.
"""

import atexit
import gc
import json
import os
import resource
import signal
import sys
from pathlib import Path

from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp

ENDING = 10  # seconds that the answer to a request to end may take
USAGE = "OSNB_USAGE"  # where the kernel says at its end what it used


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

    def do_shutdown(self, restart: bool) -> dict:
        """Say what was used, then end."""
        if os.environ.get(USAGE):
            Path(os.environ[USAGE]).write_text(json.dumps(usage()))
        return super().do_shutdown(restart)


def usage() -> dict[str, int | str | None]:
    """Bytes at the peak: `memory` of this process or its largest child, `gpu` of torch's."""
    unit = 1 if sys.platform == "darwin" else 1024
    each = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    peak = max(resource.getrusage(who).ru_maxrss for who in each) * unit
    torch = sys.modules.get("torch")
    on_gpu = torch is not None and torch.cuda.is_initialized()
    return {
        "memory": peak,
        "gpu": torch.cuda.max_memory_allocated() if on_gpu else None,
        "device": torch.cuda.get_device_name() if on_gpu else "cpu",
    }


def main() -> None:
    """Wait for the name of a connection file, serve, and leave without taking modules apart."""
    gc.disable()
    file = sys.stdin.readline().strip()
    if not file:  # the owner has ended before it had anything to do
        return
    IPKernelApp.launch_instance(argv=["-f", file, *sys.argv[1:]], kernel_class=Kernel)
    # the thread that answers the request to end still writes to sockets that are closed below
    IPKernelApp.instance().control_thread.join(ENDING)
    atexit._run_exitfuncs()  # what others want done at the end
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
