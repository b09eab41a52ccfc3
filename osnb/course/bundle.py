"""The students' copy for a room without a network: one zip or folder, with a checksum file."""

import shutil
import stat
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from osnb import repro
from osnb.archive.checking import opened
from osnb.course import pages
from osnb.course.build import aside, make_student
from osnb.course.leaks import BINARY, file_leaks, leaks, read
from osnb.course.wheels import lacking
from osnb.course.whole import SUMS, compare, in_folder

NAME = "osnb-course"  # the folder in a zip
EPOCH = (1980, 1, 1, 0, 0, 0)  # the first time that a zip can hold
SEARCH = ("search.html", "searchindex.js")  # the index holds every word of the pages left out


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
    with _place(out) as folder:
        make_student(folder)
        (folder / "README.md").write_text(pages.BUNDLE, encoding="utf8")
        notes = [*_report(folder), *_wheels(folder, wheels)]
        found = leaks(folder, repro.root() / "notebooks")
        if found:
            shutil.rmtree(folder)
            return found, []
        _sums(folder)
        files = sum(path.is_file() for path in folder.rglob("*"))
    return [], [f"{out}: {files} files", *notes]


@contextmanager
def _place(out: Path) -> Iterator[Path]:
    """A folder that becomes `out`, or is packed to it if that is a zip."""
    if out.suffix != ".zip":
        with aside(out) as folder:
            yield folder
        return
    if out.exists():
        raise ValueError(f"{out} is there already; --out needs a new file")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as place:
        folder = Path(place) / NAME
        folder.mkdir()
        yield folder
        if folder.exists():
            with repro.writing(out) as made:
                _zip(folder, made)


def _report(folder: Path) -> list[str]:
    """Copy the report, if there is one, without its search and what shows solutions."""
    made = repro.out() / "report"
    if not (made / "index.html").is_file():
        return ["no report in it: osnb report makes one"]
    shutil.copytree(made, folder / "report", ignore=shutil.ignore_patterns(".*"))
    page, index = (folder / "report" / name for name in SEARCH)
    page.write_text(pages.NO_SEARCH, encoding="utf8")
    index.unlink(missing_ok=True)
    sources, taken = read(repro.root() / "notebooks"), 0
    for path in sorted((folder / "report").rglob("*")):
        inside = path.relative_to(folder).as_posix()
        if path.is_file() and path.suffix not in BINARY and _bad(path, sources, inside):
            taken += 1
            if path.suffix == ".html":
                path.write_text(pages.REMOVED, encoding="utf8")
            else:
                path.unlink()
    return [f"{taken} files of the report show solutions and were taken out"] if taken else []


def _bad(path: Path, sources, name: str) -> bool:
    return "_static" not in path.parts and bool(file_leaks(path, sources, name=name))


def _wheels(folder: Path, wheels: Path | None) -> list[str]:
    """Copy wheels, and say which packages of the lock have none."""
    if not wheels:
        return ["no wheels in it: README.md says how to fetch them"]
    there = sorted(wheels.glob("*.whl"))
    if not there:
        raise ValueError(f"{wheels} holds no *.whl")
    (folder / "wheels").mkdir()
    for path in there:
        shutil.copyfile(path, folder / "wheels" / path.name)
    return lacking(there, folder / "requirements.lock")


def _sums(folder: Path) -> None:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{repro.file_hash(path)}  {path.relative_to(folder).as_posix()}\n" for path in paths]
    (folder / SUMS).write_text("".join(lines), encoding="utf8")


def _zip(folder: Path, file: Path) -> None:
    """Pack a folder; the bytes follow from names and contents alone."""
    with zipfile.ZipFile(file, "w") as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            info = zipfile.ZipInfo(f"{NAME}/{path.relative_to(folder).as_posix()}", EPOCH)
            info.create_system, info.external_attr = 3, 0o100644 << 16  # a regular file anywhere
            stored = path.suffix in {".whl", ".parquet", ".png"}  # these are compressed
            info.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
            with path.open("rb") as source, archive.open(info, "w", force_zip64=True) as target:
                shutil.copyfileobj(source, target, 1 << 20)


def check(place: Path) -> int:
    """Hold every file of a bundle, zip or folder, against its checksum file.

    Returns:
        The number of files, without the checksum file and what use of a folder makes in it.

    Raises:
        ValueError: a file is missing, changed, not listed, or would be unpacked elsewhere.
        FileNotFoundError: there is no such bundle.
    """
    if place.is_dir():
        return compare(f"{place}", in_folder(place))
    if not place.is_file():
        raise FileNotFoundError(f"{place} is not there")
    with opened(place) as archive:
        return compare("it", _in_zip(archive))


def _in_zip(archive: zipfile.ZipFile) -> dict[str, Callable[[], BinaryIO]]:
    files, seen = {}, set()
    for info in archive.infolist():
        name = info.orig_filename  # zipfile cuts `filename` at a zero byte
        _check_name(name)
        if stat.S_IFMT(info.external_attr >> 16) not in {0, stat.S_IFREG}:
            raise ValueError(f"{name} is no regular file")
        if info.flag_bits & 1:
            raise ValueError(f"{name} is encrypted")
        if name.casefold() in seen:
            raise ValueError(f"{name!r} is in it twice, or in other capitals")
        seen.add(name.casefold())
        files[name.removeprefix(f"{NAME}/")] = lambda info=info: archive.open(info)
    return files


def _check_name(name: str) -> None:
    """Only names that stay in the bundle's folder, on every system."""
    parts = PurePosixPath(name).parts
    odd = "\\" in name or ":" in name or any(ord(sign) < 32 for sign in name)
    if odd or name != "/".join(parts) or ".." in parts or parts[0] != NAME:
        raise ValueError(f"{name!r} would be unpacked outside of {NAME}/")
