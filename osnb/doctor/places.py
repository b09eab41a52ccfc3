"""Checks of folders: room on the disk, write access, data sets."""

import os
import shutil
import tempfile
from pathlib import Path

from osnb import repro
from osnb.doctor.lines import FAIL, OK, WARN, Line, reason

LITTLE, TOO_LITTLE = 2e9, 2e8  # bytes free
PROBE = 65_536  # bytes that are written to see whether a folder takes them
DATA = {  # data set: what one of its names in the data folder matches
    "ILSVRC 2012": ("ILSVRC*", "imagenet", "ImageNet", "train/n*"),
    "Tiny ImageNet": ("tiny-imagenet-200", "tinyimagenet*"),
    "CIFAR-10 and CIFAR-100": ("cifar*", "CIFAR*"),
    "MNIST": ("MNIST", "FashionMNIST"),
    "CUB": ("CUB_200_2011*", "cub*"),
    "Stanford Cars": ("cars*", "stanford_cars*"),
    "FGVC-Aircraft": ("fgvc-aircraft*", "aircraft*"),
    "far sets of papers 2 and 3": ("dtd", "LSUN*", "iSUN*", "places365*", "food-101", "svhn*"),
}


def disk() -> list[Line]:
    """Room where results and temporary files go."""
    places = {"disk": _nearest(_out()), "disk (temporary)": _nearest(_temporary())}
    return [_room(name, place) for name, place in places.items()]


def _room(name: str, place: Path) -> Line:
    free = shutil.disk_usage(place).free
    said = f"{free / 1e9:,.1f} GB free at {place}"
    if free < TOO_LITTLE:
        return Line(name, FAIL, said, f"Free at least {LITTLE / 1e9:g} GB there.")
    if free < LITTLE:
        return Line(name, WARN, said, f"Enough for now; free {LITTLE / 1e9:g} GB before training.")
    return Line(name, OK, said)


def write_access() -> list[Line]:
    """Whether results, figures, notebooks and temporary files can be written, by writing one."""
    elsewhere = os.environ.get("OSNB_OUT", "")
    given = "OSNB_OUT" if elsewhere else "results"
    move = "Work in a copy you own, or let results go elsewhere: export OSNB_OUT=$HOME/osnb-out"
    lines = [_writable("project folder", _project(), move, WARN if elsewhere else FAIL)]
    if elsewhere:
        lines += [_writable(given, _out(), "Let OSNB_OUT name a folder that you may write to.")]
    lines += [_writable(f"{name}/", _out() / name, move) for name in ("runs", "figures")]
    advice = "Name another one: export TMPDIR=DIR"
    return [*lines, _writable("temporary folder", _temporary(), advice)]


def _writable(name: str, folder: Path, advice: str, state: str = FAIL) -> Line:
    """A line for one folder; one that is not there yet counts as the nearest that is."""
    place = _nearest(folder)
    try:
        _probe(place)
    except OSError as error:
        return Line(f"write: {name}", state, f"{reason(error)}: {place}", advice)
    there = "" if place == folder else ", not made yet"
    return Line(f"write: {name}", OK, f"{folder}{there}")


def _probe(folder: Path) -> None:
    """Write a file in the folder and take it away again."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".osnb-doctor-") as file:
        file.write(b"\0" * PROBE)
        file.flush()
        os.fsync(file.fileno())


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest thing above it that exists."""
    return next(place for place in (folder, *folder.parents) if os.path.lexists(place))


def data() -> Line:
    """Which of the optional data sets lie in the data folder; the miniature needs none."""
    folder = repro.data("")
    where = f"{folder}, named by OSNB_DATA" if os.environ.get("OSNB_DATA") else str(folder)
    if os.environ.get("OSNB_DATA") and not folder.is_dir():
        advice = "Let OSNB_DATA name a folder that exists, or unset it: no notebook here needs it."
        return Line("data folder", WARN, f"there is no {where}", advice)
    found = [name for name, globs in DATA.items() if any(_any(folder, glob) for glob in globs)]
    if not found:
        return Line("data folder", OK, "no optional data set; the miniature ships with the package")
    return Line("data folder", OK, f"{', '.join(found)} in {where}")


def _any(folder: Path, pattern: str) -> bool:
    return next(folder.glob(pattern), None) is not None


def _project() -> Path:
    """The project's folder; without one the working folder, where a notebook would be saved."""
    try:
        return repro.root()
    except FileNotFoundError:
        return Path.cwd()


def _temporary() -> Path:
    """The folder for temporary files; `tempfile` itself refuses if it cannot write there."""
    usual = "/tmp" if os.name == "posix" else os.environ.get("TEMP", ".")
    return Path(os.environ.get("TMPDIR") or usual).absolute()


def _out() -> Path:
    return Path(os.environ["OSNB_OUT"]).absolute() if os.environ.get("OSNB_OUT") else _project()
