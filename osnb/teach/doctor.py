"""Is this machine ready for the workbook? One line for each thing that notebooks rely on.

Nothing outside the standard library is imported before a check asks for it, and what may crash or
hang (torch, a kernel) is tried in a process of its own, so that a broken set-up gets an answer.
`python -m osnb.teach.doctor` gives the lines even where the command line cannot start; with NAME
and SECONDS, torch or kernel and how long a kernel may take, it is that process, and prints json.
"""

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

OLDEST = (3, 11, 5)  # soupsieve, which the lock names, needs it


def newer() -> str:
    """What to do about an older Python."""
    return f"Install Python {'.'.join(map(str, OLDEST))} or newer and make the environment again."


if __name__ != "__main__" or sys.version_info >= OLDEST:
    from osnb.base import workbook
else:  # to an older one, what is imported and what stands below may be no Python
    sys.exit(f"This is Python {platform.python_version()} at {sys.executable}. {newer()}")

OK, WARN, FAIL = "ok", "warn", "fail"
LITTLE, TOO_LITTLE = 2e9, 2e8  # bytes free
PROBE = 65_536  # bytes that are written to see whether a folder takes them
SHOWN = 4  # packages named in one line
PYTHON = shlex.quote(sys.executable)
PIP = f"{PYTHON} -m pip install"
LOCKED = f"{PIP} -r {shlex.quote(str(workbook.PACKAGE.parent / 'requirements.lock'))}"
SLOW = "Close other programs and run osnb doctor again: the first import of all is slow."
DEAF = (
    "Close other programs and run osnb doctor again; if it is the same, no notebook can run here: "
    "ask whether a firewall or a VPN keeps this machine from reaching itself (127.0.0.1)."
)
MOVE = "Work in a copy you own, or let results go elsewhere: export OSNB_OUT=$HOME/osnb-out"
LIMIT = 60.0  # seconds for one process: the first import of all is slow
ENDING = 2.0  # of them, in which a process that was not answered ends by itself
TAIL = 200  # characters of what a crashed process said


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


def examine() -> list[Line]:
    """Every line of every check, in 2 to 3 s; in a minute where something does not answer."""
    with ThreadPoolExecutor(len(CHECKS)) as pool:
        return [line for lines in pool.map(guarded, CHECKS) for line in lines]


def guarded(check: Callable[[], Line | list[Line]]) -> list[Line]:
    """The lines of a check; one that itself breaks is a line that says fail, never an exception."""
    try:
        lines = check()
    except Exception as error:
        advice = "Show this line to whoever set up the workbook."
        lines = Line(check.__name__, FAIL, sentence(error), advice)
    return [lines] if isinstance(lines, Line) else lines


def failed(lines: Iterable[Line]) -> bool:
    """Whether any of the lines says fail."""
    return any(line.state == FAIL for line in lines)


def verdict(lines: Iterable[Line]) -> str:
    """Whether notebooks will run, in a sentence."""
    counts = Counter(line.state for line in lines)
    if counts[FAIL]:
        return f"{counts[FAIL]} failed: notebooks will not run until what the arrows say is done."
    if counts[WARN]:
        return f"Ready, with {counts[WARN]} to look at."
    return "Ready: make lab opens the index of the notebooks."


# What is installed


def python() -> Line:
    """The version of Python, and which one it is."""
    version = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info >= OLDEST:
        return Line("python", OK, version)
    return Line("python", FAIL, version, newer())


def project() -> Line:
    """The folder with notebooks/ that commands work in."""
    try:
        return Line("project", OK, str(workbook.root()))
    except FileNotFoundError as error:
        return Line("project", FAIL, str(error), "Go to the folder of the workbook: cd FOLDER")


def locked(file: Path) -> dict[str, str]:
    """Names and versions of a lock file.

    Raises:
        ValueError: a line is no NAME==VERSION.
    """
    lines = [line.strip() for line in file.read_text(encoding="utf8").splitlines()]
    pairs = [line.partition("==")[::2] for line in lines if line and not line.startswith("#")]
    if bad := [name for name, version in pairs if not version]:
        raise ValueError(f"{file} needs lines such as numpy==2.4.6; got {bad[0]!r}")
    return dict(pairs)


def installed(name: str) -> str:
    """The version of a package, without suffixes like +cpu; "" if it is not there, or broken."""
    try:
        return (metadata.version(name) or "").partition("+")[0]
    except (metadata.PackageNotFoundError, KeyError):
        return ""


def versions() -> Line:
    """Versions in requirements.lock against the installed ones; a dependency must be there."""
    import tomllib

    root = workbook.PACKAGE.parent
    if not (root / "requirements.lock").is_file():
        advice = "Work in a clone of the project, which has it."
        return Line("versions", WARN, f"there is no requirements.lock in {root}", advice)
    wanted = locked(root / "requirements.lock")
    here = {name: installed(name) for name in wanted}
    stated = tomllib.loads((root / "pyproject.toml").read_text("utf8"))["project"]["dependencies"]
    needed = [re.match(r"[A-Za-z0-9._-]+", text)[0] for text in stated]
    missing = [name for name, version in here.items() if not version]
    lacking = sorted(name for name in needed if not installed(name))
    other = [f"{n} {here[n]} instead of {v}" for n, v in wanted.items() if here[n] not in ("", v)]
    if not missing and not other:
        return Line("versions", OK, f"all {len(wanted)} of requirements.lock")
    parts = [f"not installed: {_some(lacking or missing)}"] if missing else []
    parts += [_some(other)] if other and not lacking else []
    advice = f"Install what the lock names: {LOCKED}"
    return Line("versions", FAIL if lacking else WARN, "; ".join(parts), advice)


def _some(names: list[str]) -> str:
    rest = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + rest


# What has to start


def torch() -> list[Line]:
    """torch and torchvision load together; the GPU, if there is one."""
    answer = ask("torch")
    if "torch" not in answer:
        line = Line("torch", FAIL, answer.get("error", ""), f"Install it again: {LOCKED}")
        if "slow" in answer:  # a busy machine is no broken one
            line = Line("torch", WARN, answer["slow"], SLOW)
        return [line, Line("gpu", WARN, "not known without torch", "See torch above.")]
    line = Line("torch", OK, f"torch {answer['torch']}, torchvision {answer['torchvision']}")
    if answer["error"]:
        text = f"torch {answer['torch']} loads, torchvision does not: {answer['error']}"
        line = Line("torch", FAIL, text, f"The two must match; install both again: {LOCKED}")
    none = "none, and none is needed: the miniature trains on the CPU"
    gpu = none if answer["device"] in ("", "cpu") else answer["device"]
    return [line, Line("gpu", OK, gpu)]


def kernel() -> Line:
    """The kernel `python3`, which every notebook names, starts and computes 1 + 1."""
    answer = ask("kernel")
    install = f"{PIP} ipykernel && {PYTHON} -m ipykernel install --sys-prefix"
    if "slow" in answer:
        return Line("kernel", FAIL, f"python3 gave {answer['slow']}", DEAF)
    if "error" in answer:
        advice = f"Look at `jupyter kernelspec list`, then install it again: {install}"
        return Line("kernel", FAIL, f"python3 does not start: {answer['error']}", advice)
    return Line("kernel", OK, f"python3 ({answer['kernel']}) starts and says 1 + 1 = 2")


# Folders


def disk() -> list[Line]:
    """Room where results and temporary files go."""
    lines = []
    for name, folder in {"disk": _or_here(workbook.out), "disk (temporary)": _temporary()}.items():
        place = _nearest(folder)
        free = shutil.disk_usage(place).free
        state = FAIL if free < TOO_LITTLE else WARN if free < LITTLE else OK
        need = f"{LITTLE / 1e9:g} GB"
        advice = {OK: "", WARN: f"Enough for now; free {need} before training."}
        advice = advice.get(state, f"Free at least {need} there.")
        lines.append(Line(name, state, f"{free / 1e9:,.1f} GB free at {place}", advice))
    return lines


def write_access() -> list[Line]:
    """Whether results, figures, notebooks and temporary files can be written, by writing one."""
    out, project = _or_here(workbook.out), _or_here(workbook.root)
    lines = [_writable("project folder", project, MOVE, FAIL if out == project else WARN)]
    if os.environ.get("OSNB_OUT"):
        advice = "Let OSNB_OUT name a folder that you may write to."
        lines.append(_writable("OSNB_OUT", out, advice))
    lines += [_writable(f"{name}/", out / name, MOVE) for name in ("runs", "figures")]
    advice = "Name another one: export TMPDIR=DIR"
    return [*lines, _writable("temporary folder", _temporary(), advice)]


def _writable(name: str, folder: Path, advice: str, state: str = FAIL) -> Line:
    """A line for one folder; one that is not there yet counts as the nearest that is."""
    place = _nearest(folder)
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".osnb-doctor-") as file:
            file.write(b"\0" * PROBE)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return Line(f"write: {name}", state, f"{error.strerror}: {place}", advice)
    there = "" if place == folder else ", not made yet"
    return Line(f"write: {name}", OK, f"{folder}{there}")


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest thing above it that exists."""
    return next(place for place in (folder, *folder.parents) if os.path.lexists(place))


def drawings() -> Line:
    """The drawings that the miniature stands on are there, byte by byte."""
    import pandas as pd

    folder = workbook.PACKAGE / "data" / "quickdraw"
    try:
        table = pd.read_parquet(workbook.verified(folder / "quickdraw.parquet"), columns=["name"])
    except (OSError, ValueError) as error:
        advice = "Take that folder from a fresh clone; notebooks with drawings will not run."
        return Line("drawings", FAIL, str(error), advice)
    counts = f"{len(table):,} of {table['name'].nunique()} classes"
    return Line("drawings", OK, f"Quick, Draw!, {counts}, checksum right")


def _or_here(folder: Callable[[], Path]) -> Path:
    """`workbook.root` or `out`; without a project the working folder, where notebooks are saved."""
    with suppress(FileNotFoundError):
        return folder()
    return Path.cwd()


def _temporary() -> Path:
    """The folder for temporary files; `tempfile` itself refuses if it cannot write there."""
    usual = "/tmp" if os.name == "posix" else os.environ.get("TEMP", ".")
    return Path(os.environ.get("TMPDIR") or usual).absolute()


# What may crash or hang, tried in a process of its own


def ask(name: str, limit: float = LIMIT) -> dict[str, str]:
    """What a trial answers.

    Args:
        name: torch or kernel.
        limit: seconds.

    Returns:
        The answer, {"slow": ...} if there was none, or {"error": ...}.
    """
    paths = [str(workbook.PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-P", "-m", "osnb.teach.doctor", name, str(limit - ENDING)]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"slow": f"no answer within {limit:g} s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1][-TAIL:]
        return {"error": f"ended with code {done.returncode}: {last}"}
    return json.loads(lines[-1])


def sentence(error: BaseException) -> str:
    """An error in one line: its kind and the first line of what it says."""
    first = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def try_torch(_: float) -> dict[str, str]:
    """Versions of torch and torchvision as they load here, and the device that training uses."""
    import torch

    answer = {"torch": torch.__version__, "device": "", "torchvision": "", "error": ""}
    try:
        from osnb.datasets.vision import torchvision
        from osnb.train import device

        answer["torchvision"] = torchvision.__version__
        gpu = device().type == "cuda"
        answer["device"] = torch.cuda.get_device_name() if gpu else "cpu"
    except Exception as error:
        answer["error"] = sentence(error)
    return answer


def try_kernel(patience: float) -> dict[str, str]:
    """What the kernel `python3` says of 1 + 1, and the command that starts it."""
    from jupyter_client.kernelspec import KernelSpecManager
    from nbclient import NotebookClient
    from nbformat.v4 import new_code_cell, new_notebook

    command = " ".join(KernelSpecManager().get_kernel_spec("python3").argv[:3])
    book = new_notebook(cells=[new_code_cell("1 + 1")])
    settings = {"timeout": patience, "startup_timeout": patience, "kernel_name": "python3"}
    (output,) = NotebookClient(book, **settings).execute().cells[0].outputs
    if (answer := output.get("data", {}).get("text/plain")) != "2":
        raise RuntimeError(f"{command} says 1 + 1 = {answer!r}")
    return {"kernel": command}


TRIALS = {"torch": try_torch, "kernel": try_kernel}


def answer(name: str, patience: float) -> dict[str, str]:
    """What a trial answers; an error becomes {"error": ...}, or {"slow": ...}."""
    try:
        return TRIALS[name](patience)
    except Exception as error:
        if isinstance(error, TimeoutError) or "didn't respond in" in str(error):
            return {"slow": f"no answer within {patience:g} s"}
        return {"error": sentence(error)}


CHECKS = (python, project, versions, torch, kernel, disk, write_access, drawings)

if __name__ == "__main__" and sys.argv[1:]:  # a trial: NAME SECONDS
    print(json.dumps(answer(sys.argv[1], float(sys.argv[2]))))
elif __name__ == "__main__":
    LINES = examine()
    for line in LINES:
        print(f"{line.state:5} {line.name:20} {line.found}")
        if line.advice:
            print(f"{'':26} -> {line.advice}")
    sys.exit(failed(LINES))
