"""An archive from somewhere, held against what `pack` writes before a byte of it is used.

This tells that the archive is whole, agrees with itself and can only write where it should. That
its numbers are true, only running the notebooks tells.
"""

import hashlib
import json
import re
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from osnb.base import workbook
from osnb.book.archive.members import MANIFEST, METADATA, line, parts, wrong
from osnb.book.follows import changed

TEXT, TABLE = 64 << 20, 1 << 30  # bytes that one member may have
NO_OUTPUTS = {"run.json", "executed.ipynb"}
FREE, RATIO = TEXT, 200  # of a member larger than FREE: its bytes by those in the archive
EPOCHS = 1_000_000  # rows that a history may have


@contextmanager
def opened(file: Path) -> Iterator[zipfile.ZipFile]:
    """The zip; whatever is wrong with it, then or in the block, is one sentence.

    Raises:
        ValueError: `file` is refused, and why.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, struct.error, NotImplementedError) as error:
        raise ValueError(f"{file} is no whole zip file: {error}") from None
    except ValueError as error:
        raise ValueError(f"{file} is refused: {error}") from None


def check(archive: zipfile.ZipFile) -> dict[str, dict[str, Any]]:
    """Content of each run.json, by NOTEBOOK/RUN, once every member has been read and is right.

    Raises:
        ValueError: a member is not as `pack` writes it; the message names it.
    """
    members = _members(archive)
    sums = _manifest(archive, members)
    runs: dict[str, dict[str, Any]] = {}
    for name, info in members.items():
        content = read(archive, info)
        if name != MANIFEST and hashlib.sha256(content).hexdigest() != sums[name]:
            raise ValueError(f"{name} has not the checksum that {MANIFEST} gives")
        stated = _stated(name, content)
        if found := parts(name):
            runs.setdefault("/".join(found[:2]), {})[found[2]] = stated
    for key, files in runs.items():
        _check_run(key, files, {name: sums[f"runs/{key}/{name}"] for name in files})
    return {key: files["run.json"] for key, files in runs.items()}


def made_so(run: dict[str, Any]) -> bool:
    """Whether the notebook here computes what it computed when the run was made."""
    with suppress(ValueError):  # of a file that cannot be read, which computes nothing
        return not changed(run)
    return False


def read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """A member's bytes, never more than it declares."""
    with archive.open(info) as file:
        content = file.read(info.file_size)
        if len(content) != info.file_size or file.read(1):  # the latter checks its CRC
            raise ValueError(f"{info.filename} is not of the size that the zip declares")
    return content


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The members by name, none of which can hurt."""
    members = {info.filename: info for info in archive.infolist()}
    seen = set()
    for info in archive.infolist():
        _check_member(info)
        if info.filename.casefold() in seen:
            raise ValueError(f"{info.filename!r} is in it twice, or in other capitals")
        seen.add(info.filename.casefold())
    total, free = sum(info.file_size for info in members.values()), _free()
    if total > free:
        raise ValueError(f"it needs {total:,} bytes; the disk has {free:,}")
    for name in (METADATA, MANIFEST):
        if name not in members:
            raise ValueError(f"it lacks {name}")
    return members


def _free() -> int:
    """Bytes that the disk has left."""
    folder = workbook.out()
    while not folder.is_dir():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def _check_member(info: zipfile.ZipInfo) -> None:
    """Refuse a member by what the zip says of it."""
    name = info.orig_filename  # zipfile cuts `filename` at a zero byte
    found, most = parts(name), TABLE if name.endswith(".parquet") else TEXT
    deflated = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
    faults = {
        "is no regular file": stat.S_IFMT(info.external_attr >> 16) not in {0, stat.S_IFREG},
        "starts before the file does": info.header_offset < 0,
        "is encrypted": info.flag_bits & 1,
        "is compressed in another way than deflate": info.compress_type not in deflated,
        f"has {info.file_size:,} bytes; {most:,} are allowed": info.file_size > most,
        f"would grow more than {RATIO}-fold when it is unpacked": (
            info.file_size > max(FREE, RATIO * info.compress_size)
        ),
    }
    for fault, there in faults.items():
        if there:
            raise ValueError(f"{name} {fault}")
    valid = sorted(path.stem for path in (workbook.root() / "notebooks").glob("*.ipynb"))
    if found and found[0] not in valid:
        raise ValueError(f"{name} is of no notebook of this project; there are: {', '.join(valid)}")


def _manifest(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> dict[str, str]:
    """Checksum by name, of every member but the manifest itself."""
    sums = {}
    for text in read(archive, members[MANIFEST]).decode("utf8").splitlines():
        found = re.fullmatch(r"([0-9a-f]{64})  (.+)", text)
        if not found or found[2] in sums:
            raise ValueError(f"{MANIFEST} has a line that is no checksum of a member: {text!r}")
        parts(found[2])
        sums[found[2]] = found[1]
    unlisted = sorted(sums.keys() ^ (members.keys() - {MANIFEST}))
    if unlisted:
        raise ValueError(f"{MANIFEST} and the members disagree on {', '.join(unlisted)}")
    return sums


def _stated(name: str, content: bytes) -> dict[str, Any]:
    """The object in a json file; {} of other files."""
    if name.endswith(".parquet"):
        _check_table(name, content)
    if not name.endswith((".json", ".ipynb")):
        return {}
    try:
        stated = json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError(f"{name} is no json") from None
    if not isinstance(stated, dict):
        raise ValueError(f"{name} holds a {type(stated).__name__}, not an object")
    return stated


def _check_table(name: str, content: bytes) -> None:
    """Refuse a parquet file that holds neither scores, outputs nor a history."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from osnb.base.tables import COLUMNS

    needed = {"sample", "role", "label"} if name.endswith("/outputs.parquet") else {*COLUMNS}
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        rows, schema = file.metadata.num_rows, file.schema_arrow
        history = name.endswith("/history.parquet") and _is_history(schema, rows)
        known = history or needed <= {*schema.names}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # Arrow's are among them
        known = False
    if not known:
        raise ValueError(f"{name} is no table of scores, outputs or history")


def _is_history(schema, rows: int) -> bool:
    """Whether a table has numbers only, under names that can be shown."""
    from pyarrow import types

    kinds = (types.is_integer, types.is_floating, types.is_null)
    numbers = all(any(is_kind(field.type) for is_kind in kinds) for field in schema)
    return numbers and all(map(line, schema.names)) and 0 < rows <= EPOCHS


def _check_run(key: str, files: dict[str, dict], sums: dict[str, str]) -> None:
    """One run's files against its run.json, and its stamps, by which the others find it."""
    run, name = files.get("run.json"), f"runs/{key}/run.json"
    if run is None or "executed.ipynb" not in files:
        raise ValueError(f"{key} lacks run.json or executed.ipynb")
    if bad := wrong(run):
        keys = ", ".join(each if line(each) else repr(each) for each in bad)
        raise ValueError(f"{name} lacks what a run has, or says what no run says: {keys}")
    if (run["state"], run["notebook"], run["run"]) != ("done", *key.split("/")):
        raise ValueError(f"{name} is of {run['notebook']}/{run['run']}, {run['state']}; not done")
    if run["outputs"] != {file: sums[file] for file in files if file not in NO_OUTPUTS}:
        raise ValueError(f"{name} gives other outputs or checksums than the files have")
    explained = set()
    for file in files.keys() - NO_OUTPUTS:
        if files[file] and _stamp(files[file]) != _stamp(run):
            raise ValueError(f"runs/{key}/{file} bears the stamp of another run than {name}")
        listed = files[file].get("files", {})
        if not isinstance(listed, dict) or any(sums.get(x) != sha for x, sha in listed.items()):
            raise ValueError(f"runs/{key}/{file} gives other checksums than its files have")
        explained |= {*listed}
    for file in sorted(files.keys() - explained):
        if file.startswith("scores") and file.endswith(".parquet"):
            raise ValueError(f"no stamp explains runs/{key}/{file}")


def _stamp(stated: dict[str, Any]) -> dict[str, Any]:
    """What a run.json and the stamps of its files have to agree on."""
    values = stated.get("parameters")
    values = values if isinstance(values, dict) else {}
    stamp = {key: stated.get(key) for key in ("notebook", "run", "goldens", "settings")}
    return stamp | {"parameters": {k: values[k] for k in values if k not in workbook.LOCAL}}
