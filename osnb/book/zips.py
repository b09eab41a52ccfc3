"""Zip files for other people: equal contents give equal bytes, and what could hurt is refused."""

import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from osnb.base import workbook

EPOCH = (1980, 1, 1, 0, 0, 0)  # the first time that a zip can hold
STORED = (".parquet", ".png", ".whl")  # these are compressed
DEFLATED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
NO_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, struct.error, NotImplementedError)


def pack(file: Path, members: Mapping[str, Path | bytes]) -> None:
    """Write members, files or their bytes by name, in the order given."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, EPOCH)
            info.create_system, info.external_attr = 3, 0o100644 << 16  # a file, on any system
            stored = name.endswith(STORED)
            info.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
            if isinstance(content, bytes):
                archive.writestr(info, content)
            else:
                with content.open("rb") as source, archive.open(info, "w", force_zip64=True) as to:
                    shutil.copyfileobj(source, to, 1 << 20)


@contextmanager
def opened(file: Path) -> Iterator[zipfile.ZipFile]:
    """The zip; whatever is wrong with it, then or in the block, is one sentence.

    Raises:
        ValueError: `file` is refused, and why.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except NO_ZIP as error:
        raise ValueError(f"{file} is no whole zip file: {error}") from None
    except ValueError as error:
        raise ValueError(f"{file} is refused: {error}") from None


def members(archive: zipfile.ZipFile, check: Callable) -> dict[str, zipfile.ZipInfo]:
    """The members by name, none of which can hurt by what the zip says of it.

    Args:
        archive: an open zip.
        check: of a name and its bytes; raises ValueError if it has no place here, or too many.

    Raises:
        ValueError: a member is refused; the message names it.
    """
    found: dict[str, zipfile.ZipInfo] = {}
    folded: set[str] = set()  # as a disk that knows no capitals has them
    for info in archive.infolist():
        name = info.orig_filename  # zipfile cuts `filename` at a zero byte
        check(name, info.file_size)
        faults = {
            "is no regular file": stat.S_IFMT(info.external_attr >> 16) not in {0, stat.S_IFREG},
            "starts before the file does": info.header_offset < 0,
            "is encrypted": info.flag_bits & 1,
            "is compressed in another way than deflate": info.compress_type not in DEFLATED,
            workbook.GROWS: workbook.grows(info),
        }
        if fault := next((fault for fault, there in faults.items() if there), ""):
            raise ValueError(f"{name} {fault}")
        if name.casefold() in folded:
            raise ValueError(f"{name!r} is in it twice, or in other capitals")
        folded.add(name.casefold())
        found[name] = info
    return found
