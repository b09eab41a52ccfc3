"""What an archive may hold, and one from somewhere held against it before a byte of it is used.

This tells that the archive is whole, agrees with itself and can only write where it should. That
its numbers are true, only running the notebooks tells.
"""

import hashlib
import json
import math
import re
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from osnb.base import stamps, workbook
from osnb.base.workbook import PLAIN
from osnb.book import record, zips
from osnb.book.follows import changed
from osnb.teach.course.whole import compare

METADATA, MANIFEST, LOCK = "ro-crate-metadata.json", "manifest-sha256.txt", "requirements.lock"
LONG = 20_000  # characters of a line
RESULT = (
    r"(?:history|outputs|scores\w*)\.parquet|(?!(?:begun|run)\.json)[\w-]+\.(?:svg|csv|tex|json)"
)
IN_RUN = re.compile(
    rf"runs/({PLAIN})/({PLAIN})/(run\.json|executed\.ipynb|{RESULT})", flags=re.ASCII
)
BESIDE = re.compile(
    rf"notebooks/{PLAIN}\.ipynb|params/{PLAIN}/{PLAIN}\.yaml"
    rf"|{re.escape(METADATA)}|{re.escape(MANIFEST)}|{re.escape(LOCK)}"
    rf"|CITATION\.cff|methods\.bib|codecheck\.yml|cards/{PLAIN}\.md|protocols/{PLAIN}\.(?:csv|json)"
)

TEXT, TABLE = 64 << 20, 1 << 30  # bytes that one member may have
NO_OUTPUTS = {"run.json", "executed.ipynb"}
EPOCHS = 1_000_000  # rows that a history may have


def parts(name: str) -> tuple[str, str, str] | None:
    """Notebook, run and file of a member; none of one that is not a run's.

    Raises:
        ValueError: no archive of this project holds such a name.
    """
    if found := IN_RUN.fullmatch(name):
        return found.groups()
    if not BESIDE.fullmatch(name):
        raise ValueError(
            f"{name!r} has no place in an archive; it holds runs/NOTEBOOK/RUN/FILE (run.json, "
            "executed.ipynb, scores, history, svg, csv, tex, json), notebooks/, params/ and "
            f"{METADATA}, {MANIFEST}, {LOCK}, and what `osnb export --publish` adds"
        )
    return None


def line(value: str) -> bool:
    """Whether a terminal shows a text as it is: no control character, no line break."""
    return len(value) <= LONG and value.isprintable()


def wrong(run: Mapping[str, Any]) -> list[str]:
    """Keys that a run.json lacks, has with another type or out of bounds, or should not have."""
    valid = _validator()
    lost = {*valid.schema["required"]} - run.keys()
    unknown = run.keys() - valid.schema["properties"].keys()
    bad = {error.absolute_path[0] for error in valid.iter_errors(run) if error.absolute_path}
    return sorted(lost | unknown | bad)


@cache
def _validator(part: str = ""):
    """jsonschema's, of run.schema.json or one of its definitions."""
    from jsonschema import Draft202012Validator, FormatChecker

    formats, text = FormatChecker(formats=()), re.compile("[\n\t]")
    checks = {
        "line": lambda x: not isinstance(x, str) or line(x),
        "text": lambda x: not isinstance(x, str) or all(map(line, text.split(x))),
        "time": lambda x: not isinstance(x, str) or _is_time(x),
        "finite": lambda x: not isinstance(x, float) or math.isfinite(x),
    }
    for name, check in checks.items():
        formats.checks(name, raises=ValueError)(check)
    schema = json.loads(Path(__file__).with_name("run.schema.json").read_text(encoding="utf8"))
    schema = {"$defs": schema["$defs"], **schema["$defs"][part]} if part else schema
    return Draft202012Validator(schema, format_checker=formats)


def _is_time(text: str) -> bool:
    return text.endswith("+00:00") and datetime.fromisoformat(text).isoformat() == text


def check(archive: zipfile.ZipFile) -> dict[str, dict[str, Any]]:
    """Content of each run.json, by NOTEBOOK/RUN, once every member has been read and is right.

    Raises:
        ValueError: a member is not as `pack` writes it; the message names it.
    """
    members = zips.members(archive, _check_member)
    total, free = sum(info.file_size for info in members.values()), _free()
    if total > free:
        raise ValueError(f"it needs {total:,} bytes; the disk has {free:,}")
    if METADATA not in members:
        raise ValueError(f"it lacks {METADATA}")
    openers = {name: partial(archive.open, info) for name, info in members.items()}
    sums = compare("it", openers, MANIFEST)
    runs: dict[str, dict[str, Any]] = {}
    for name, info in members.items():
        with archive.open(info) as file:
            stated = _stated(name, file.read(info.file_size))
        if found := parts(name):
            runs.setdefault("/".join(found[:2]), {})[found[2]] = stated
        elif name == METADATA:
            metadata = stated
    for key, files in runs.items():
        try:
            of_run = {name: sums[f"runs/{key}/{name}"] for name in files}
            _check_run(key, files, of_run)
            _check_seals(key, files, of_run)
        except RecursionError:
            raise ValueError(f"a json file of runs/{key} is nested too deeply") from None
    _check_described(metadata, sums)
    return {key: files["run.json"] for key, files in runs.items()}


def made_so(run: dict[str, Any]) -> bool:
    """Whether the notebook here computes what it computed when the run was made."""
    with suppress(ValueError):  # of a file that cannot be read, which computes nothing
        return not changed(run)
    return False


def _check_member(name: str, size: int) -> None:
    """Refuse a name that has no place here, or too many bytes."""
    found, most = parts(name), TABLE if name.endswith(".parquet") else TEXT
    if size > most:
        raise ValueError(f"{name} has {size:,} bytes; {most:,} are allowed")
    valid = sorted(path.stem for path in (workbook.root() / "notebooks").glob("*.ipynb"))
    if found and found[0] not in valid:
        raise ValueError(f"{name} is of no notebook of this project; there are: {', '.join(valid)}")


def _free() -> int:
    """Bytes that the disk has left."""
    out = workbook.out()
    nearest = next(folder for folder in (out, *out.parents) if folder.is_dir())
    return shutil.disk_usage(nearest).free


def _stated(name: str, content: bytes) -> dict[str, Any]:
    """The object in a json file; of a table the digest of its columns; {} of other files."""
    if name.endswith(".parquet"):
        return {"is": _digest(name, content)}
    if not name.endswith((".json", ".ipynb")):
        return {}
    try:
        stated = json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError(f"{name} is no json") from None
    if not isinstance(stated, dict):
        raise ValueError(f"{name} holds a {type(stated).__name__}, not an object")
    return notebook(name, stated) if name.endswith(".ipynb") else stated


def notebook(name: str | Path, stated: Any) -> dict[str, Any]:
    """What a file states, once it is known to be a notebook.

    Raises:
        ValueError: it is none, after the schema of its nbformat; the message names the place.
    """
    from nbformat.validator import iter_validate

    minor = stated.get("nbformat_minor") if isinstance(stated, dict) else None
    if not isinstance(minor, int) or stated.get("nbformat") != 4:
        raise ValueError(f"{name} is no notebook of format 4")
    faults = iter_validate(stated, version=4, version_minor=min(minor, 5), relax_add_props=True)
    if fault := next(faults, None):
        place = ".".join(map(str, fault.absolute_path)) or "its top"
        raise ValueError(f"{name} is no notebook: {place} is not as notebooks have it")
    return stated


def _digest(name: str, content: bytes) -> str:
    """Digest of the columns of a parquet file that holds scores, outputs or a history.

    Raises:
        ValueError: it holds none of them, breaks the contract of scores tables, or means more than
            its bytes can.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from osnb.base import tables

    kind, texts = name.rpartition("/")[2], [*tables.COLUMNS[:5]]
    texts = {"history.parquet": [], "outputs.parquet": ["sample", "role"]}.get(kind, texts)
    try:
        file = pq.ParquetFile(pa.BufferReader(content), read_dictionary=texts)
        known = _numbers(file, texts)
        known &= kind != "history.parquet" or 0 < file.metadata.num_rows <= EPOCHS
        if known and (fits := _fits(file, len(content))):
            frame = file.read().to_pandas()
            words = [x for text in texts for x in frame[text].value_counts(dropna=False).items()]
            fits = sum(len(word) * rows for word, rows in words) <= TABLE
            fits &= all(len(word) <= LONG for word, _ in words)
    except Exception:  # whatever somebody's file does to its reader
        known = False
    if not known:
        raise ValueError(f"{name} is no table of scores, outputs or history")
    if not fits:
        raise ValueError(f"{name} holds more than a table of {len(content):,} bytes can")
    if kind.startswith("scores"):
        try:
            tables.check(frame)
        except Exception as error:  # of columns that hold other types, of any kind
            raise ValueError(f"{name}: {' '.join(str(error).split())}") from None
    return stamps.columns(frame)


def _fits(file, size: int) -> bool:
    """Whether a parquet file of so many bytes says of no more rows, and of at most `TABLE` bytes.

    Equal values cost a file nothing, but an honest row has a name or a number of its own.
    """
    groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
    counts = [group.column(j).num_values for group in groups for j in range(group.num_columns)]
    grown = sum(group.total_byte_size for group in groups)
    return max([file.metadata.num_rows, *counts]) <= size and grown <= TABLE


def _numbers(file, texts: Sequence[str]) -> bool:
    """Whether a parquet file has these columns, and numbers under names that can be shown."""
    from pyarrow import types

    kinds, schema = (types.is_integer, types.is_floating), file.schema_arrow
    others = [field for field in schema if field.name not in texts]
    numbers = all(any(is_kind(field.type) for is_kind in kinds) for field in others)
    numbers &= len({*schema.names}) == len(schema.names)
    return numbers and {*texts} <= {*schema.names} and all(map(line, schema.names))


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
    if run["files"].get("executed.ipynb") != sums["executed.ipynb"]:
        raise ValueError(f"{name} gives another checksum than executed.ipynb has")
    explained = set()
    for file in files.keys() - NO_OUTPUTS:
        stamp, place = files[file], f"runs/{key}/{file}"
        if file.endswith(".json") and _stamp(stamp) != _stamp(run):
            raise ValueError(f"{place} bears the stamp of another run than {name}")
        listed = stamp.get("files", {})
        if not isinstance(listed, dict) or any(sums.get(x) != sha for x, sha in listed.items()):
            raise ValueError(f"{place} gives other checksums than its files have")
        told = stamp.get("content", {})
        if not isinstance(told, dict) or any(files.get(x, {}).get("is") != told[x] for x in told):
            raise ValueError(f"{place} tells of other columns than its tables have")
        if not _validator("headline").is_valid(stamp.get("headline", [])):
            raise ValueError(f"{place} has a headline that cannot be shown")
        explained |= {*listed}
    for file in sorted(files.keys() - explained):
        if file.startswith("scores") and file.endswith(".parquet"):
            raise ValueError(f"no stamp explains runs/{key}/{file}")


def _check_seals(key: str, files: dict[str, dict], sums: dict[str, str]) -> None:
    """Refuse a run.json or a stamp that has not the checksum which it gives of itself.

    That tells a slip or an edit by hand, of nobody who has made the checksum anew as well. It is
    told here because the import seals run.json anew: nothing after it could tell.
    """
    for file in sorted(file for file in files if file.endswith(".json")):
        stated = files[file]
        written = workbook.as_json(stated | {"digest": stamps.of(stated)})
        if file == "run.json":
            written = record.sealed(stated)
        if hashlib.sha256(written.encode()).hexdigest() != sums[file]:
            raise ValueError(f"runs/{key}/{file} was edited: its own checksum is another")


def _check_described(metadata: dict[str, Any], sums: dict[str, str]) -> None:
    """Refuse a member that the RO-Crate does not list, or lists with another checksum."""
    graph = metadata.get("@graph")
    listed = [each for each in graph if isinstance(each, dict)] if isinstance(graph, list) else []
    told = {unquote(str(each.get("@id"))): each.get("sha256") for each in listed}
    for name in sorted(sums.keys() - {METADATA}):
        if told.get(name) != sums[name]:
            raise ValueError(f"{METADATA} gives another checksum than {name} has, or none")


def _stamp(stated: dict[str, Any]) -> dict[str, Any]:
    """What a run.json and the stamps of its files have to agree on."""
    values = stated.get("parameters")
    values = values if isinstance(values, dict) else {}
    stamp = {key: stated.get(key) for key in ("notebook", "run", "goldens", "settings", "columns")}
    return stamp | {"parameters": {k: values[k] for k in values if k not in workbook.LOCAL}}
