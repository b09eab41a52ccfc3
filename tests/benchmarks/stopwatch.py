"""How to time fairly, and on what it was timed."""

import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

ROUND = 0.05  # seconds; a faster call is repeated for so long

Clock = Callable[[], float]


def interleaved(
    calls: Mapping[str, Callable], *, repeats: int, clock: Clock
) -> dict[str, list[float]]:
    """Seconds of each call in each round; each round starts one further down the list."""
    names, seconds = list(calls), {name: [] for name in calls}
    for turn in range(repeats):
        for at in range(len(names)):
            name = names[(turn + at) % len(names)]
            seconds[name].append(_seconds(calls[name], clock))
    return seconds


def _seconds(call: Callable, clock: Clock) -> float:
    """Seconds of a call, in the mean over as many as fill ROUND."""
    start, count = clock(), 0
    while not count or clock() - start < ROUND:
        call()
        count += 1
    return (clock() - start) / count


def machine() -> dict:
    """cpu, cores that this process may use, GiB of memory, and the threads that are asked for."""
    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    name = info.partition("model name")[2].partition("\n")[0].lstrip("\t: ")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": name or platform.processor(),
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "gib": round(memory / 2**30),
        "threads": os.environ.get("OMP_NUM_THREADS", "not limited"),
    }


def versions(names: Iterable[str]) -> dict[str, str]:
    """Versions of numpy, torch and those names that are installed packages."""
    found = {}
    for name in ["numpy", "torch", *(name.partition("[")[0] for name in names)]:
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found
