"""The students' copy for a room without a network: one zip or folder, with a checksum file."""

import re
import shutil
from collections.abc import Iterable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from osnb.base import workbook
from osnb.book import zips
from osnb.teach.course.build import NAME, aside, make_student, page, refused
from osnb.teach.course.leaks import BINARY, file_leaks, read
from osnb.teach.course.whole import SUMS, compare, in_folder

# a file in the bundle's folder, on every system
INSIDE = re.compile(rf"{NAME}(/(?!\.\.?(/|$))[^/\\:\x00-\x1f]+)+")
PLATFORM = re.compile(r"(win|macosx|manylinux|musllinux).*?(x86_64|universal2|[a-z0-9]+)$")
SYSTEMS = {  # of a wheel's name: what it is called, and what dependencies' markers say of it
    "win": ("Windows", "win32", "nt"),
    "macosx": ("macOS", "darwin", "posix"),
    "manylinux": ("Linux", "linux", "posix"),
    "musllinux": ("Linux (musl)", "linux", "posix"),
}


def bundle(out: Path, *, wheels: Path | None = None) -> tuple[list[str], list[str]]:
    """Write the students' copy, the report and wheels, with checksums; equal input, equal bytes.

    Args:
        out: a new file called .zip, or a new or empty folder.
        wheels: a folder of *.whl to pack, or none.

    Returns:
        What leaks, one sentence each (nothing is written then), and notes for the lecturer.

    Raises:
        ValueError: `out` is there, or `wheels` holds no wheel.
    """
    with aside(out) as folder:
        make_student(folder, "bundle")
        notes = [*_report(folder), *_wheels(folder, wheels)]
        if sentences := refused(folder):
            return sentences, []
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        sums = [f"{workbook.file_hash(x)}  {x.relative_to(folder).as_posix()}\n" for x in paths]
        (folder / SUMS).write_text("".join(sums), encoding="utf8")
    return [], [f"{out}: {len(paths) + 1} files", *notes]


def _report(folder: Path) -> list[str]:
    """Copy the report, if there is one, without its search and what shows solutions."""
    report, target = workbook.out() / "report", folder / "report"
    if not (report / "index.html").is_file():
        return ["no report in it: osnb report makes one"]
    shutil.copytree(report, target, ignore=shutil.ignore_patterns(".*", "searchindex.js"))
    (target / "search.html").write_text(page("no_search.html"), encoding="utf8")
    sources, taken = read(workbook.root() / "notebooks"), 0
    for path in sorted(target.rglob("*")):
        quiet = not path.is_file() or path.suffix in BINARY or "_static" in path.parts
        if quiet or not file_leaks(path, sources, name=path.name):
            continue
        taken += 1
        path.unlink()
        if path.suffix == ".html":
            path.write_text(page("removed.html"), encoding="utf8")
    return [f"{taken} files of the report show solutions and were taken out"] if taken else []


def _wheels(folder: Path, wheels: Path | None) -> list[str]:
    """Copy wheels, and say which packages of the lock have none."""
    if not wheels:
        return ["no wheels in it: README.md says how to fetch them"]
    paths = sorted(wheels.glob("*.whl"))
    if not paths:
        raise ValueError(f"{wheels} holds no *.whl")
    (folder / "wheels").mkdir()
    for path in paths:
        shutil.copyfile(path, folder / "wheels" / path.name)
    return lacking(paths, folder / "requirements.lock")


def lacking(wheels: Iterable[Path], lock: Path) -> list[str]:
    """Sentences on the packages without a wheel, for each Python and system that some wheel is for.

    Wanted is what the lock names, and what the wheels themselves need on that system: a lock made
    on Linux does not name what only Windows needs.

    Raises:
        ValueError: the name of a wheel, or a line of the lock, is not as packaging has them.
    """
    lines = [line for line in lock.read_text("utf8").splitlines() if line and line[0] != "#"]
    locked = {canonicalize_name(line.name): line.specifier for line in map(Requirement, lines)}
    there, sentences = [_wheel(path) for path in wheels], []
    pairs = {(x, system) for wheel in there for x in wheel.pythons for system in wheel.systems}
    for python, system in sorted(pair for pair in pairs if all(pair)) or [("", "")]:
        fit = [x for x in there if {python, ""} & x.pythons and {system, ""} & x.systems]
        lost = [
            f"{name}{versions}"
            for name, versions in locked.items()
            if not any(x.name == name and x.version in versions for x in fit)
        ]
        lost += sorted(_asked(fit, python, system) - locked.keys() - {x.name for x in fit})
        where = f" for Python {python[2]}.{python[3:]} on {system}" if python else ""
        sentences += [f"wheels{where}"] if where else []
        sentences += [f"no wheel of {', '.join(lost)}{where}"] if lost else []
    return sentences


class Wheel(NamedTuple):
    """A wheel's name taken apart; "" among `pythons` or `systems` stands for every one.

    Attributes:
        path: of the file.
        name: of the package, normalised.
        version: of it.
        pythons: such as cp311.
        systems: such as Linux x86_64.
    """

    path: Path
    name: str
    version: Version
    pythons: set[str]
    systems: set[str]


def _wheel(path: Path) -> Wheel:
    name, version, _, tags = parse_wheel_filename(path.name)
    exact = {tag.interpreter if tag.abi != "abi3" else "" for tag in tags}
    systems = set()
    for match in (PLATFORM.match(tag.platform) for tag in tags):
        processors = match[2].replace("universal2", "arm64 x86_64").split() if match else []
        systems |= {f"{SYSTEMS[match[1]][0]} {processor}" for processor in processors} or {""}
    return Wheel(path, name, version, {x if x.startswith("cp3") else "" for x in exact}, systems)


def _asked(wheels: Iterable[Wheel], python: str, system: str) -> set[str]:
    """Names of packages that wheels need on that Python and system."""
    where = {"extra": ""}
    if python:
        where["python_version"] = f"{python[2]}.{python[3:]}"
    for name, sys_platform, os_name in SYSTEMS.values():
        if system.startswith(f"{name} "):
            where |= {"sys_platform": sys_platform, "os_name": os_name}
            where["platform_system"] = name.replace("macOS", "Darwin")
    stated = [x for wheel in wheels for x in metadata.distributions(path=[str(wheel.path)])]
    needs = [Requirement(text) for wheel in stated for text in wheel.requires or []]
    return {canonicalize_name(x.name) for x in needs if not x.marker or x.marker.evaluate(where)}


def check(place: Path) -> int:
    """Hold every file of a bundle, zip or folder, against its checksum file.

    Returns:
        The number of files, without the checksum file and what use of a folder makes in it.

    Raises:
        ValueError: a file is missing, changed, not listed, or would be unpacked elsewhere.
        FileNotFoundError: there is no such bundle.
    """
    if place.is_dir():
        return len(compare(f"{place}", in_folder(place)))
    if not place.is_file():
        raise FileNotFoundError(f"{place} is not there")
    with zips.opened(place) as archive:
        members = zips.members(archive, _check_inside)
        files = {x.removeprefix(f"{NAME}/"): partial(archive.open, members[x]) for x in members}
        return len(compare("it", files))


def _check_inside(name: str, _size: int) -> None:
    if not INSIDE.fullmatch(name):
        raise ValueError(f"{name!r} would be unpacked outside of {NAME}/")
