"""run.json, the one source of a run's status: written whole, read so that it tells the truth."""

import errno
import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock, Timeout

from osnb.base import workbook

PACKAGES = ("torch", "torchvision", "timm", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow")
PACKAGES += ("papermill", "distributed")
KEPT = 20  # attempts that run.json remembers
CODE = ("osnb", "notebooks", "params")
STATES = ("running", "failed", "interrupted", "queued", "done")  # first what is not done
NEEDED = {"notebook": str, "run": str, "state": str, "parameters": dict}  # of every run.json
HASHES = ("files", "outputs", "goldens")  # text by name, where there is any
# what a run.json may leave out, and of which type it is
TOLD = {"seconds": 0.0, "error": {"name": "", "value": ""}, "attempts": [], "before": {}}
TOLD |= {"resumed": 0} | {key: {} for key in (*HASHES, "settings")}
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EACCES)
held: dict[Path, int] = {}  # descriptors of the locks that this process holds, by run
BRIEF = ("state", "started", "finished", "seconds", "host", "pid", "commit")  # of old attempts


def write(directory: Path, content: Mapping[str, Any]) -> None:
    """Write the run.json of the run in `directory`."""
    workbook.write_text(directory / "run.json", sealed(content))


def sealed(content: Mapping[str, Any]) -> str:
    """As json, whose last entry is the sha256 of all before it."""
    own = {key: value for key, value in content.items() if key != "sha256"}
    return _with_seal(json.dumps(own, indent=1, sort_keys=True).removesuffix("\n}"))


def _with_seal(text: str) -> str:
    return f'{text},\n "sha256": "{hashlib.sha256(text.encode()).hexdigest()}"\n}}\n'


def read(directory: Path) -> dict[str, Any] | None:
    """The run's run.json, none if it has none; without its process, `running` is `interrupted`.

    One that was queued and never began is what it was before, or `interrupted` if it was nothing.
    A run of another host is taken at its word, unless its lock is free. A run whose run.json is
    not whole has failed, with an error called `BrokenRecord`.
    """
    try:
        with open(f"{directory}/run.json", encoding="utf8", opener=workbook.at_once) as file:
            text = file.read()
        same = text == _with_seal(text[: -len(_with_seal(""))])
        found = json.loads(text) if same else None
    except OSError:
        return None
    except (ValueError, RecursionError):  # no text, or no json
        found = None
    if not _is_whole(found):
        return _broken(directory)
    del found["sha256"]
    if found["state"] in ("running", "queued") and not _has_owner(directory, found):
        before = found.get("before")
        return before if _is_whole(before) else found | {"state": "interrupted"}
    return found


def _is_whole(found: Any) -> bool:
    """Whether a run.json says what every reader of it needs."""
    if not isinstance(found, dict) or found.get("state") not in STATES:
        return False
    owned = found["state"] in ("running", "queued")
    needed = NEEDED | ({"host": str, "pid": int} if owned else {})
    needed |= {key: type(value) for key, value in TOLD.items()} | {"seconds": int | float}
    found = TOLD | found
    if not all(isinstance(found.get(key), kind) for key, kind in needed.items()):
        return False
    texts = [value for key in HASHES for value in found[key].values()]
    whole = all(isinstance(value, str) for value in texts)
    whole &= all(isinstance(attempt, dict) for attempt in found["attempts"])
    return whole and TOLD["error"].keys() <= found["error"].keys()


def _broken(directory: Path) -> dict[str, Any]:
    why = f"{directory / 'run.json'} is no whole record of a run; the next run replaces it"
    found = {"notebook": directory.parent.name, "run": directory.name, "parameters": {}}
    error = {"name": "BrokenRecord", "value": why, "cell": None}
    return found | {"host": "unknown", "state": "failed", "error": error}


def everything() -> list[dict[str, Any]]:
    """Every run.json under runs/, sorted by notebook and run."""
    found = map(read, sorted((workbook.out() / "runs").glob("*/*")))
    return [run for run in found if run is not None]


def named(*names: str) -> dict[str, dict[str, Any]]:
    """The runs that are meant by RUN or NOTEBOOK/RUN, or by patterns of them with * and ?, sorted.

    Raises:
        ValueError: a name means no run; the message lists those nearest to it, or all, or says
            where the results are of one that was run elsewhere.
    """
    there = {f"{run['notebook']}/{run['run']}": run for run in everything()}
    called = [(key, (key, run["run"])) for key, run in there.items()]
    chosen = set()
    for name in names:
        # a run's name may hold what a pattern does not mean
        meant = {k for k, of in called if name in of or any(fnmatchcase(x, name) for x in of)}
        if not meant:
            folders = sorted((workbook.root() / "figures").glob("[0-9]*/*/"))  # made here or not
            if kept := [x for x in folders if name in (x.name, f"{x.parent.name}/{x.name}")]:
                tells = "has its results, and json files that say from what they follow"
                raise ValueError(f"{name!r} was not run here; {kept[0]} {tells}")
            short = {run["run"]: key for key, run in there.items()}
            close = [short.get(x, x) for x in get_close_matches(name, [*there, *short], n=5)]
            nearest = plain(", ".join(dict.fromkeys(close) or [*there][:20])) or "none"
            raise ValueError(f"no run is called {name!r}; there are: {nearest}")
        chosen |= meant
    return {key: there[key] for key in sorted(chosen)}


def plain(text: str) -> str:
    """A text with what a terminal would obey written out: \\x1b of an escape."""
    return "".join(x if x.isprintable() or x in "\n\t" else repr(x)[1:-1] for x in text)


def rows(file: Path, *columns: str) -> list[dict[str, Any]] | None:
    """The rows of a run's parquet file, all columns or some; none if there is no whole one."""
    if not file.is_file():
        return None
    import pyarrow.parquet as pq

    try:
        return pq.read_table(file, columns=list(columns) or None).to_pylist()
    except (OSError, ValueError, KeyError):
        return None


# The lock of a run: held by the process that makes it, and free as soon as that is gone.


@contextmanager
def lock(directory: Path) -> Iterator[None]:
    """The lock of the run in `directory`; without us it is free when our run's processes ended.

    Raises:
        filelock.Timeout: another process holds it.
        OSError: the file system has no locks.
    """
    folder = directory.parent.parent / ".locks" / directory.parent.name
    folder.mkdir(parents=True, exist_ok=True)
    how = {"fallback_to_soft": False, "on_acquired": partial(held.__setitem__, directory)}
    file = FileLock(folder / f"{directory.name}.lock", 0, **how)
    try:
        file.acquire()
    except OSError as error:  # a Timeout, which has no number, among them
        number = error.errno or _denied(folder)
        if number not in NO_LOCKS:
            raise
        said = f"{folder} lies on a file system without locks: set OSNB_OUT to another one"
        as_whom = {"effective_ids": os.access in os.supports_effective_ids}
        if os.path.exists(file.lock_file) and not os.access(file.lock_file, os.W_OK, **as_whom):
            said = f"{file.lock_file} is another user's: make the run as that user, or set OSNB_OUT"
        raise OSError(number, said) from None
    try:
        yield
    finally:
        del held[directory]
        file.release()


def _denied(folder: Path) -> int:
    """EACCES if a lock that nobody can hold is not given; filelock takes that for a held one."""
    file = folder / f".{platform.node()}-{os.getpid()}.lock"
    try:
        with suppress(Timeout), FileLock(file, 0, fallback_to_soft=False):
            return 0
        return errno.EACCES
    finally:
        file.unlink(missing_ok=True)


def _has_owner(directory: Path, found: Mapping[str, Any]) -> bool:
    """Whether the process that wrote a run.json is there; on other hosts, its lock tells."""
    if found["host"] == platform.node():
        return (now := began(found["pid"])) is not None and now == found.get("began")
    if found["state"] != "queued":
        with suppress(OSError), lock(directory):  # nobody holds it
            return False
    return True


def going(run: Mapping[str, Any]) -> bool:
    """Whether a run is being made or waits for it; what another host queued may wait for ever."""
    state = run.get("state")
    return state == "running" or (state == "queued" and run["host"] == platform.node())


def began(pid: int) -> float | None:
    """When a process began, in seconds after the machine did; none if there is no such process.

    Another process with the same number has another time.
    """
    boot = psutil.boot_time()  # first: psutil 6 reckons with the last that was asked for
    try:
        return round(psutil.Process(pid).create_time() - boot, 1)
    except (psutil.Error, ValueError):  # a pid below 0
        return None


def owner() -> dict[str, Any]:
    """This process: host, pid, and when it began."""
    return {"host": platform.node(), "pid": os.getpid(), "began": began(os.getpid())}


def attempts(directory: Path) -> list[dict[str, Any]]:
    """Every earlier attempt at the run in `directory`, in brief, the oldest first."""
    found = read(directory)
    if found is None:
        return []
    before = found.get("attempts", [])
    if found["state"] == "queued" or "started" not in found:
        return before
    brief = {key: found[key] for key in BRIEF if key in found}
    if "error" in found:
        error = found["error"]
        brief["reason"] = f"{error['name']}: {error['value']}"[:200]
    return [*before, brief][-KEPT:]


def failed(error: BaseException) -> dict[str, Any]:
    """How a run ends that an error has kept from being made."""
    of_file = isinstance(error, OSError) and error.filename
    said = f"{error.strerror}: {error.filename}" if of_file else str(error)
    why = {"name": type(error).__name__, "value": said, "cell": None}
    return {"state": "failed", "error": why}


def queue(directory: Path, content: Mapping[str, Any]) -> None:
    """Say that this process is going to make the run in `directory`, unless another one is at it.

    What the run was before is kept: it is that again if this process ends before it begins.

    A run that was nothing yet is not synced to the disk, which takes most of a batch's planning:
    after a power cut it is nothing again.
    """
    with suppress(Timeout), lock(directory):
        found = {**content, **owner(), "state": "queued", "attempts": attempts(directory)}
        before = read(directory)
        if before and before["state"] == "queued":
            before = before.get("before")
        if before:
            write(directory, found | {"before": before})
            return
        directory.mkdir(parents=True, exist_ok=True)
        aside = directory / ".queued.json"
        aside.write_text(sealed(found))
        aside.replace(directory / "run.json")


def seconds(found: Mapping[str, Any] | None) -> float | None:
    """Seconds that a run took when it was last made in one go, after its run.json, or none."""
    tries = [*found.get("attempts", []), found] if found else []
    whole = (x for x in tries[::-1] if x.get("state") == "done" and not x.get("resumed"))
    return next((x.get("seconds") for x in whole), None)


# Where, when and with what a run is made.


def circumstances() -> dict[str, Any]:
    """Where, when and with what a run starts: owner, machine, versions, commit."""
    return {"started": now(), **owner(), **_here(str(workbook.root()))}


@cache
def _here(root: str) -> dict[str, Any]:
    """The machine, and the commit; asked once by each process."""
    changes = said("git", "-C", root, "status", "--porcelain", "--", *CODE)
    return {
        "commit": said("git", "-C", root, "rev-parse", "HEAD"),
        "dirty": None if changes is None else bool(changes),  # code or parameters differ from it
        "system": platform.platform(),
        "processor": cpu("model name") or platform.processor(),
        "cpus": os.cpu_count(),
        "memory": psutil.virtual_memory().total,
        "gpus": gpus(),
        "python": platform.python_version(),
        "packages": workbook.versions(*PACKAGES),
    }


def gpus() -> list[str]:
    """Names of the GPUs of this machine, as far as nvidia-smi knows them."""
    return (said("nvidia-smi", "--query-gpu=name", "--format=csv,noheader") or "").splitlines()


def cpu(what: str) -> str:
    """What /proc says of the first core, which is more than Python knows; empty elsewhere."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text(encoding="utf8").splitlines() if file.is_file() else []
    return next((x.partition(":")[2].strip() for x in lines if x.startswith(what)), "")


def now() -> str:
    """The time, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def said(*command: str) -> str | None:
    """What a command prints; none if it is missing or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
