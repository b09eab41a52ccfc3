"""Is the bundle as SHA256SUMS says? `python osnb/course/whole.py` asks it of the folder around it.

Runs with any Python 3 and its standard library alone, before anything is installed.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

SUMS = "SHA256SUMS"
LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def made_by_use(name: str) -> bool:
    """Whether set-up and notebooks make such a file in the folder; no bundle holds one."""
    parts = name.split("/")
    return parts[0] == "runs" or any(
        part[0] == "." or part == "__pycache__" or part.endswith(".egg-info") for part in parts
    )


def in_folder(folder: Path) -> dict:
    """A function that opens each file of an unpacked bundle, by its name.

    Raises:
        ValueError: something in it is neither a file nor a folder.
    """
    files = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if made_by_use(name):
            continue
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise ValueError(f"{name} is no regular file")
        if path.is_file():
            files[name] = lambda path=path: path.open("rb")
    return files


def compare(what: str, files: dict) -> int:
    """Hold files, opened by functions, against the checksum file among them; their number.

    Raises:
        ValueError: a file is missing, changed or not listed.
    """
    files = dict(files)
    if SUMS not in files:
        raise ValueError(f"{what} lacks {SUMS}")
    with files.pop(SUMS)() as file:
        lines = file.read().decode("utf8", errors="replace").splitlines()
    found = [LINE.fullmatch(line) for line in lines]
    if not all(found):
        raise ValueError(f"{SUMS} has a line that is no checksum: {lines[found.index(None)]!r}")
    sums = {each[2]: each[1] for each in found}
    lost = sorted(sums.keys() ^ files.keys())
    if lost:
        more = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
        raise ValueError(f"{SUMS} and the files disagree on {', '.join(lost[:5])}{more}")
    for name, start in files.items():
        if _digest(start) != sums[name]:
            raise ValueError(f"{name} has not the checksum that {SUMS} gives")
    return len(files)


def _digest(start) -> str:
    digest = hashlib.sha256()
    with start() as file:
        for piece in iter(lambda: file.read(1 << 20), b""):
            digest.update(piece)
    return digest.hexdigest()


if __name__ == "__main__":
    place = Path(__file__).resolve().parents[2]
    try:
        print(f"{compare(str(place), in_folder(place))} files, as {SUMS} says")
    except ValueError as error:
        sys.exit(str(error))
