"""What was broken on purpose by hand, tried again: python -m tests.tries [KIND ...].

Part of make audit. Each kind is a module whose `tries` yields, for one strange file after another,
its name and what is wrong with the answer, empty if nothing is. A good answer comes within ten
seconds of a processor: the file is used, where that is right, or it is refused in one line that
names it.
"""

import os
import resource
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # conftest and the tests import each other so

from typer.testing import CliRunner

from osnb.book.cli import app

LIMIT, WAIT = 10, 120  # seconds of a processor, and of a clock, where an answer may wait for ever
MEMORY = 1.2  # GB that one answer may add
KINDS = ("params", "notebooks", "scorefiles", "images", "records", "locks", "archives")


class LateError(BaseException):
    """There was no answer in time; nothing that expects an error catches it."""


def _late(*_):
    raise LateError


def answered(do: Callable):
    """What a call gives; its time is limited."""
    signal.signal(signal.SIGPROF, _late)
    signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    signal.setitimer(signal.ITIMER_REAL, WAIT)
    try:
        return do()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def said(*words) -> tuple[int, str, str, BaseException | None]:
    """Exit code, output, complaints and the error that ended it, of `osnb WORDS`."""
    done = answered(lambda: CliRunner().invoke(app, [str(word) for word in words]))
    error = None if isinstance(done.exception, SystemExit) else done.exception
    return done.exit_code, done.stdout, done.stderr, error


def command(words: Iterable, names: Iterable[str], *, taken: bool = False) -> str:
    """What is wrong with how `osnb WORDS` answers; `taken`: the file may be used."""
    try:
        code, out, err, error = said(*words)
    except LateError:
        return "no answer in time"
    lines = err.strip("\n").split("\n")
    if error is not None:
        return f"a traceback of {type(error).__name__}: {str(error)[:150]}"
    if "\x1b" in out + err:
        return "an escape reaches the terminal"
    if code == 0:
        notes = all(line.startswith("osnb: ") for line in lines if line)
        return "" if taken and notes else f"taken: {(out + err).strip()[:150]}"
    if len(lines) != 1 or not err.startswith("osnb: "):
        return f"not one sentence: {err[:300]!r}"
    return "" if any(name in err for name in names) else f"names no file: {err.strip()[:200]}"


def call(do: Callable, name: str, *, errors=(ValueError, OSError), taken: bool = False) -> str:
    """The same of a function: what it may raise is one of `errors`."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answered(do)
    except LateError:
        return "no answer in time"
    except errors as error:
        text = str(error).strip()
        if "\n" in text:
            return f"two lines: {text[:200]!r}"
        if name not in text:
            return f"names no file: {type(error).__name__}: {text[:200]}"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    else:
        if not taken:
            return "taken"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e6
    return f"{grown:.1f} GB more memory" if grown > MEMORY else ""


def folder() -> Path:
    """An empty folder, gone with the process's own."""
    return Path(tempfile.mkdtemp(dir=os.environ["TMPDIR"]))


SPECIAL = {  # what may stand in a file's place
    "missing": lambda file: None,
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "loop": lambda file: file.symlink_to(file.name),
    "device": lambda file: file.symlink_to("/dev/zero"),
}


def removed(file: Path) -> None:
    """Take away a file, or what stands in its place."""
    if file.is_dir() and not file.is_symlink():
        file.rmdir()
    else:
        file.unlink(missing_ok=True)
