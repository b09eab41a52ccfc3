"""File systems and files by which no run can be locked."""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator

from conftest import Project

from osnb.base import workbook
from tests.tries import LateError, folder, said

NUMBERS = ("ENOSYS", "ENOLCK", "EIO", "EOPNOTSUPP", "EACCES")
PLACES = {  # what stands in the place of the folder of locks, or of the lock
    "a file as folder": lambda folder, lock: folder.parent.write_text("x"),
    "a folder as lock": lambda folder, lock: lock.mkdir(parents=True),
    "a link to nothing": lambda folder, lock: _parent(folder) or lock.symlink_to("/nowhere/x"),
    "a pipe": lambda folder, lock: _parent(folder) or os.mkfifo(lock),
    "a lock that is free": lambda folder, lock: _parent(folder) or lock.write_text("stale"),
}


def _parent(folder) -> None:
    folder.mkdir(parents=True)


def _ends(*words, with_code: tuple[int, ...]) -> str:
    try:
        code, out, err, error = said(*words)
    except LateError:
        return "no answer in time"
    if error is not None:
        return f"a traceback of {type(error).__name__}: {str(error)[:120]}"
    return "" if code in with_code else f"ended with {code}: {(out + err)[-200:]}"


def tries() -> Iterator[tuple[str, str]]:
    project = Project(folder() / "project")
    workbook.root = lambda: project.folder
    os.environ["OSNB_OUT"] = str(project.folder)
    project.add("works", "00_works")
    params = project.write("00_works", "run: small\n")
    runs = project.folder / "runs"
    real = fcntl.flock
    for name in NUMBERS:
        number = getattr(errno, name)

        def flock(*_, number=number):
            raise OSError(number, os.strerror(number))

        fcntl.flock = flock
        try:
            yield name, _ends("run", params, with_code=(1, 2))
            yield f"{name}, status", _ends("status", with_code=(0, 1))
        finally:
            fcntl.flock = real
    for name, make in PLACES.items():
        shutil.rmtree(runs, ignore_errors=True)
        locks = runs / ".locks" / "00_works"
        runs.mkdir()
        make(locks, locks / "small.lock")
        free = name in ("a lock that is free", "a pipe")
        yield name, _ends("run", params, with_code=(0, 1, 2) if free else (1, 2))
