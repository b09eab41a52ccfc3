"""Is the bundle as SHA256SUMS says? `python whole.py` asks it of the folder around it.

Runs with any Python 3 and its standard library alone, before anything is installed.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

SUMS = "SHA256SUMS"
MOST = 64 << 20  # bytes of a checksum file
LINE = re.compile(r"([0-9a-f]{64})  (.+)")
MADE_BY_USE = re.compile(r"(runs|learn)/|(.*/)?(\..+|__pycache__(/.*)?|[^/]+\.egg-info(/.*)?)$")


def in_folder(folder: Path) -> dict:
    """A function that opens each file of an unpacked bundle, by its name.

    What set-up and notebooks make in the folder is left out; no bundle holds such a file.

    Raises:
        ValueError: something in it is neither a file nor a folder.
    """
    files = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if MADE_BY_USE.match(name):
            continue
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise ValueError(f"{name} is no regular file")
        if path.is_file():
            files[name] = lambda path=path: path.open("rb")
    return files


def compare(what: str, files: dict, sums_file: str = SUMS) -> dict:
    """Hold files, opened by functions, against the checksum file among them; the checksums.

    Raises:
        ValueError: a file is missing, changed or not listed.
    """
    if sums_file not in files:
        raise ValueError(f"{what} lacks {sums_file}")
    with files[sums_file]() as file:
        lines = file.read(MOST).decode("utf8", errors="replace").splitlines()
    if bad := [line for line in lines if not (LINE.fullmatch(line) and line.isprintable())]:
        raise ValueError(f"{sums_file} has a line that is no checksum of a member: {bad[0]!r}")
    sums = {line[66:]: line[:64] for line in lines}
    if len(sums) < len(lines):
        raise ValueError(f"{sums_file} lists a member twice")
    if lost := sorted(sums.keys() ^ (files.keys() - {sums_file})):
        more = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
        raise ValueError(f"{sums_file} and the files disagree on {', '.join(lost[:5])}{more}")
    for name, expected in sums.items():
        digest = hashlib.sha256()
        with files[name]() as file:
            for piece in iter(lambda: file.read(1 << 20), b""):
                digest.update(piece)
        if digest.hexdigest() != expected:
            raise ValueError(f"{name} has not the checksum that {sums_file} gives")
    return sums


if __name__ == "__main__":
    place = Path(__file__).resolve().parents[3]
    try:
        print(f"{len(compare(str(place), in_folder(place)))} files, as {SUMS} says")
    except ValueError as error:
        sys.exit(str(error))
