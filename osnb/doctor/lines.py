"""What the doctor says of one thing, and how an error becomes such a line."""

import errno
import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

OK, WARN, FAIL = "ok", "warn", "fail"


class Line(NamedTuple):
    """One thing that was looked at.

    Attributes:
        name: of the thing.
        state: ok, warn (something will be missing) or fail (notebooks will not run).
        found: what is there.
        advice: what to do about it, in one sentence; empty if nothing has to be done.
    """

    name: str
    state: str
    found: str
    advice: str = ""


def failed(lines: Iterable[Line]) -> bool:
    """Whether any of the lines says fail."""
    return any(line.state == FAIL for line in lines)


def guarded(name: str, check: Callable[[], Line | list[Line]]) -> list[Line]:
    """The lines of a check; one that itself breaks is a line that says fail, never an exception."""
    try:
        found = check()
    except Exception as error:
        found = Line(name, FAIL, said(error), "Show this line to whoever set up the workbook.")
    return [found] if isinstance(found, Line) else found


def said(error: BaseException) -> str:
    """An error in one line: its kind and the first line of what it says."""
    if isinstance(error, OSError) and error.errno:
        return reason(error) + (f": {error.filename}" if error.filename else "")
    first = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def reason(error: OSError) -> str:
    """Why a file cannot be written or read, in the words of the system."""
    known = {
        errno.EROFS: "the file system is read-only",
        errno.EACCES: "no permission",
        errno.EPERM: "no permission",
        errno.ENOSPC: "the disk is full",
        errno.EDQUOT: "the quota is used up",
        errno.ENOTDIR: "a file stands where a folder should be",
        errno.EEXIST: "a file stands where a folder should be",
    }
    return known.get(error.errno or 0) or os.strerror(error.errno or 0)
