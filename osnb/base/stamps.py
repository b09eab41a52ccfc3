"""Stamps: what a figure, a table or a scores table follows from, in a json file beside it.

`name`.json explains `name`.svg, .csv, .tex or .parquet. It never stands in their bytes, so that
renewing a stamp turns no other one stale:

    notebook, run, parameters   of the run, those that change a number
    settings, columns           of a training's Experiment; empty for other notebooks
    goldens                     by name, digest of what the run's code computes
    inputs                      by run, digest of the data that it was computed from
    files, content              by file, sha256 of its bytes; digest of its columns (parquet)
    versions                    of torch and numpy, noted and never compared
    digest                      of all that
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osnb.base import workbook
from osnb.base.workbook import digest, file_hash, write_json

if TYPE_CHECKING:
    import pandas as pd

NEEDED = {"notebook": str, "run": str, "digest": str}
NEEDED |= dict.fromkeys(("parameters", "settings", "columns", "goldens"), dict)
NEEDED |= dict.fromkeys(("inputs", "files", "content"), dict)
RECORDS = {"run.json", "begun.json"}  # json files of a run's folder that are no stamps
TABLES = (".parquet", ".csv")


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Write a stamp with its own digest."""
    write_json(path, dict(content) | {"digest": of(content)})


def of(content: Mapping[str, Any]) -> str:
    """Digest of a mapping, whatever the order of its keys."""
    return digest(json.dumps({k: v for k, v in content.items() if k != "digest"}, sort_keys=True))


def read(path: Path) -> dict[str, Any] | None:
    """The stamp in a json file; none if there is none, or it is not whole."""
    try:
        with open(path, encoding="utf8", opener=workbook.at_once) as file:
            stamp = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(stamp, dict):
        return None
    whole = all(isinstance(stamp.get(key), kind) for key, kind in NEEDED.items())
    return stamp if whole and stamp["digest"] == of(stamp) else None


def explained(folder: Path, *names: str) -> dict[str, dict[str, str]]:
    """`files` and `content` of a stamp that explains these files of a folder."""
    import pandas as pd

    tables = [name for name in names if name.endswith(".parquet")]
    return {
        "files": {name: file_hash(folder / name) for name in names},
        "content": {name: columns(pd.read_parquet(folder / name)) for name in tables},
    }


def columns(frame: "pd.DataFrame") -> str:
    """Digest of a frame's columns: their names and values, not how a file holds them."""
    import numpy as np

    parts: list[str | bytes] = [str(len(frame))]
    for name, column in frame.items():
        if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
            parts += [f"{name} {column.dtype.str}", column.to_numpy().tobytes()]
        else:
            parts += [str(name), *column.astype(str)]
    return digest(*parts)


def altered(folder: Path, stamp: Mapping[str, Any]) -> list[str]:
    """Those of the files of a stamp that are there with other bytes than it says."""
    files = {name: folder / name for name in stamp["files"]}
    there = (name for name, file in files.items() if file.is_file())
    return [name for name in there if file_hash(files[name]) != stamp["files"][name]]


def data(folder: Path) -> str:
    """Digest of every table that the stamps of a run's folder explain; of other bytes, another."""
    found = {}
    for file in sorted(folder.glob("*.json")):
        if file.name not in RECORDS and (stamp := read(file)):
            for name in filter(lambda name: name.endswith(TABLES), stamp["files"]):
                sha256 = file_hash(folder / name) if (folder / name).is_file() else ""
                same = sha256 == stamp["files"][name]
                found[name] = stamp["content"].get(name, sha256) if same else sha256
    return of(found)


def finished(pattern: str, size: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Scores table and stamp of every finished run of a size, in training notebooks that match.

    A run in runs/ takes the place of its copy in figures/.

    Args:
        pattern: of the notebooks' names.
        size: mini, tiny or paper.
    """
    found = {}
    for base in (workbook.root() / "figures", workbook.out() / "figures", workbook.out() / "runs"):
        for path in sorted(base.glob(f"{pattern}/*/scores.parquet")):
            stamp = read(path.with_suffix(".json"))
            if stamp and stamp["parameters"].get("size") == size:
                found[stamp["notebook"], stamp["run"]] = path, stamp
    yield from found.values()
