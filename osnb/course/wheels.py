"""Which packages of the lock a folder of wheels lacks, for each Python and system in it."""

import re
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

SYSTEMS = {"win": "Windows", "macosx": "macOS", "manylinux": "Linux", "musllinux": "Linux (musl)"}
MARKERS = {  # a dependency's marker for a system on which the lock was not made
    "Windows": re.compile(r"""==\s*["'](win32|Windows|nt)["']"""),
    "macOS": re.compile(r"""==\s*["'](darwin|Darwin)["']"""),
}


class Wheel(NamedTuple):
    """A wheel's name taken apart.

    Attributes:
        path: of the file.
        name: of the package, normalised.
        version: without a suffix like +cpu.
        python: such as cp311; "" if it fits more than one.
        systems: such as Linux x86_64; empty if it fits all.
    """

    path: Path
    name: str
    version: str
    python: str
    systems: tuple[str, ...]


def lacking(wheels: Iterable[Path], lock: Path) -> list[str]:
    """Sentences on what wheels are there, and which are not, for the lecturer."""
    there = [_read(path) for path in wheels]
    locked = [line.strip().split("==") for line in lock.read_text(encoding="utf8").splitlines()]
    wanted = {normal(each[0]): each[1] for each in locked if len(each) == 2 and each[0][0] != "#"}
    return [text for kind in _kinds(there) for text in _of_kind(there, wanted, *kind)]


def normal(name: str) -> str:
    """A package's name as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _of_kind(there: list[Wheel], wanted: dict[str, str], python: str, system: str) -> list[str]:
    """The sentences for one Python and one system; both "" if all wheels fit everything."""
    fit = [
        each
        for each in there
        if each.python in ("", python) and (not each.systems or system in each.systems)
    ]
    have = {(each.name, each.version) for each in fit}
    lost = [f"{name}=={version}" for name, version in wanted.items() if (name, version) not in have]
    lost += sorted(_asked(fit, system) - {each.name for each in fit})
    where = f" for Python {python[2]}.{python[3:]} on {system}" if python else ""
    where = where or (f" for {system}" if system else "")
    found = [f"wheels{where}"] if where else []
    return [*found, f"no wheel of {', '.join(lost)}{where}"] if lost else found


def _kinds(there: list[Wheel]) -> list[tuple[str, str]]:
    """Every Python and system that some wheel is made for; else every system; else none."""
    pairs = {(each.python, system) for each in there for system in each.systems}
    exact = {pair for pair in pairs if pair[0]}
    rest = {pair for pair in pairs if pair[1] not in {system for _, system in exact}}
    return sorted(exact | rest) or [("", "")]


def _asked(fit: list[Wheel], system: str) -> set[str]:
    """Names of packages that some wheel needs on that system only, so that no lock names them."""
    marker = MARKERS.get(system.split(" ")[0])
    if not marker:
        return set()
    lines = [line for each in fit for line in _needs(each.path)]
    asked = [line for line in lines if marker.search(line) and "extra ==" not in line]
    return {normal(re.match(r"[A-Za-z0-9._-]+", line)[0]) for line in asked}


def _needs(path: Path) -> list[str]:
    """The dependencies that a wheel states, as they stand there; none of a broken one."""
    if not zipfile.is_zipfile(path):
        return []
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        text = archive.read(names[0]).decode("utf8", errors="replace") if names else ""
    return re.findall(r"^Requires-Dist: (.+)$", text, re.MULTILINE)


def _read(path: Path) -> Wheel:
    """A wheel by its name, NAME-VERSION[-BUILD]-PYTHON-ABI-SYSTEM.whl."""
    name, version, *_, python, abi, platform = path.stem.split("-")
    exact = python if re.fullmatch(r"cp3\d+", python) and abi != "abi3" else ""
    systems = {each for part in platform.split(".") for each in _systems(part)}
    return Wheel(path, normal(name), version.partition("+")[0], exact, tuple(sorted(systems)))


def _systems(platform: str) -> list[str]:
    """System and processor of a tag; of `any` none, of universal2 both of Apple's."""
    found = re.match(rf"({'|'.join(SYSTEMS)})", platform)
    if not found:
        return []
    if platform.endswith("universal2"):
        return ["macOS arm64", "macOS x86_64"]
    processor = re.search(r"(x86_64|[a-z0-9]+)$", platform)[1]
    return [f"{SYSTEMS[found[1]]} {processor}"]
