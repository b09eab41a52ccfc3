"""All checks, at the same time, in the order in which they are read."""

from concurrent.futures import ThreadPoolExecutor

from osnb.doctor import places, processes, versions
from osnb.doctor.lines import Line, guarded

CHECKS = {
    "python": versions.python,
    "project": versions.project,
    "versions": versions.lock,
    "torch": processes.torch,
    "kernel": processes.kernel,
    "jupyter": versions.jupyter,
    "disk": places.disk,
    "write access": places.write_access,
    "data folder": places.data,
    "test browser": versions.browser,
}


def examine() -> list[Line]:
    """Every line of every check, in 2 to 3 s; in some 40 s where something does not answer."""
    with ThreadPoolExecutor(len(CHECKS)) as pool:
        waiting = [pool.submit(guarded, name, check) for name, check in CHECKS.items()]
        return [line for each in waiting for line in each.result()]
