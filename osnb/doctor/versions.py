"""Checks of what is installed: Python, the project, locked versions, Jupyter, a browser."""

import platform
import re
import shutil
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

from osnb import repro
from osnb.doctor.lines import FAIL, OK, WARN, Line
from osnb.doctor.processes import LOCKED, PYTHON

OLDEST = (3, 11, 5)  # soupsieve, which the lock names, needs it
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
SHOWN = 4  # packages named in one line


def python() -> Line:
    """The version of Python, and which one it is."""
    said = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info < OLDEST:
        needed = ".".join(map(str, OLDEST))
        advice = f"Install Python {needed} or newer and make the environment again."
        return Line("python", FAIL, said, advice)
    return Line("python", OK, said)


def project() -> Line:
    """The folder with notebooks/ that commands work in."""
    try:
        return Line("project", OK, str(repro.root()))
    except FileNotFoundError as error:
        return Line("project", FAIL, str(error), "Go to the folder of the workbook: cd FOLDER")


def locked(file: Path) -> dict[str, str]:
    """Names, normalised, and versions of a lock file.

    Raises:
        ValueError: a line is no NAME==VERSION.
    """
    lines = [line.strip() for line in file.read_text(encoding="utf8").splitlines()]
    pairs = [line.partition("==")[::2] for line in lines if line and not line.startswith("#")]
    if bad := [name for name, version in pairs if not version]:
        raise ValueError(f"{file} needs lines such as numpy==2.4.6; got {bad[0]!r}")
    return {normal(name): version for name, version in pairs}


def normal(name: str) -> str:
    """A package's name as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(file: Path) -> set[str]:
    """Normalised names of what the package itself depends on, from pyproject.toml."""
    import tomllib

    project = tomllib.loads(file.read_text(encoding="utf8"))["project"]
    found = [re.match(r"[A-Za-z0-9._-]+", text) for text in project["dependencies"]]
    return {normal(match[0]) for match in found if match}


def installed() -> dict[str, str]:
    """Normalised names and versions of what is installed, without suffixes like +cpu.

    A package whose folder is broken has no name or no version, and counts as not installed.
    """
    pairs = [(x.metadata["Name"], x.metadata["Version"]) for x in metadata.distributions()]
    found = {}
    for name, version in pairs:  # the first one on the path is the one that is imported
        if name and version:
            found.setdefault(normal(name), version.partition("+")[0])
    return found


def lock() -> Line:
    """Versions in requirements.lock against the installed ones."""
    root = repro.PACKAGE.parent
    if not (root / "requirements.lock").is_file():
        advice = "Work in a clone of the project, which has it."
        return Line("versions", WARN, f"there is no requirements.lock in {root}", advice)
    wanted, here = locked(root / "requirements.lock"), installed()
    missing = [name for name in wanted if name not in here]
    other = [f"{n} {here[n]} instead of {v}" for n, v in wanted.items() if here.get(n, v) != v]
    advice = f"Install what the lock names: {LOCKED}"
    if lacking := sorted({*missing} & needed(root / "pyproject.toml")):
        return Line("versions", FAIL, f"not installed: {_some(lacking)}", advice)
    if other or missing:
        said = [f"not installed: {_some(missing)}"] if missing else []
        return Line(
            "versions", WARN, "; ".join([*said, *([_some(other)] if other else [])]), advice
        )
    return Line("versions", OK, f"all {len(wanted)} of requirements.lock")


def _some(names: list[str]) -> str:
    rest = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + rest


def jupyter() -> Line:
    """JupyterLab is installed, and its command lies beside this Python's."""
    version = installed().get("jupyterlab")
    if not version:
        return Line("jupyter", FAIL, "JupyterLab is not installed", f"Install it: {LOCKED}")
    command = shutil.which("jupyter-lab", path=sysconfig.get_path("scripts"))
    if not command:
        advice = f"Start it as {PYTHON} -m jupyterlab, or install it again: {LOCKED}"
        return Line("jupyter", WARN, f"JupyterLab {version}, but no command jupyter-lab", advice)
    return Line("jupyter", OK, f"JupyterLab {version}, opened by make lab")


def browser() -> Line:
    """A browser without a window, for the tests only: students use the one they have."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not found:
        return Line("test browser", OK, "none, so make test skips its browser tests")
    return Line("test browser", OK, found)
