"""How files are written, and what tells one from another."""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A path to write to that becomes `path` only when the block ends well.

    The file is written beside `path`, synced and renamed, so that a reader sees the old
    file or the new one, never a part; on an error the old file stays and the part is removed.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    os.close(handle)
    aside = Path(name)
    try:
        yield aside
        with aside.open("rb+") as file:
            os.fsync(file.fileno())
        aside.chmod(0o644)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def digest(*parts: str | bytes | Path) -> str:
    """sha256, in hex, of texts, bytes and the contents of files, in the order given."""
    total = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else part
        data = data.encode() if isinstance(data, str) else data
        total.update(len(data).to_bytes(8, "big"))  # so that ("ab", "c") is not ("a", "bc")
        total.update(data)
    return total.hexdigest()


def file_hash(path: Path) -> str:
    """sha256 of a file in hex, as the command sha256sum prints it."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def verified(path: Path) -> Path:
    """The path of a file that ships with the package, once its bytes are the right ones.

    They are compared with SHA256SUMS beside it (`sha256sum -c` reads that too), once a process.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: its bytes are others.
    """
    sums = (path.parent / "SHA256SUMS").read_text().split()
    expected = dict(zip(sums[1::2], sums[::2], strict=True))[path.name]
    if (actual := file_hash(path)) != expected:
        raise ValueError(
            f"{path} is broken: need sha256 {expected}; got {actual}: take it from a fresh clone"
        )
    return path


def write_json(path: Path, content: Mapping) -> None:
    """Write `content` as indented json with sorted keys, aside and renamed."""
    with writing(path) as aside:
        aside.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
