"""A limit of `LIMIT` seconds begins where a notebook writes begun.txt, however busy a machine is.

A process finds this as its sitecustomize; a test of this process puts `wait` into the Event.
"""

import os
import threading
import time
from pathlib import Path

LIMIT = 4.0
real, seen = threading.Event.wait, set()


def begun():
    """The files begun.txt of all runs that no limit has waited for."""
    return {*Path(os.environ["OSNB_OUT"]).glob("runs/*/*/begun.txt")} - seen


def wait(event, timeout=None):
    """Instead of `Event.wait`."""
    if timeout != LIMIT:
        return real(event, timeout)
    while not event.is_set() and not begun():
        time.sleep(0.05)
    seen.update(begun())
    return real(event, 0.1)


if __name__ == "sitecustomize":
    threading.Event.wait = wait
