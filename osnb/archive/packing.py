"""Finished runs to one zip, whose bytes follow from the runs alone."""

import hashlib
import zipfile
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from osnb import record, repro
from osnb.archive.checking import check, made_so
from osnb.archive.crate import described
from osnb.archive.names import LOCK, MANIFEST, METADATA, parts
from osnb.publish import results
from osnb.verify import params_file

EPOCH = (1980, 1, 1, 0, 0, 0)  # the first time that a zip can hold


def pack(names: Iterable[str], file: Path, *, force: bool = False) -> list[str]:
    """Write finished runs with their params, notebooks and environment to the zip `file`.

    Args:
        names: RUN or NOTEBOOK/RUN, or patterns of them with * and ?.
        file: to write, aside and renamed.
        force: whether `file` may be replaced.

    Returns:
        One line on what it holds, and one on each thing that a reader of it will miss.

    Raises:
        ValueError: no run has such a name, one is not done or has lost files, or `file` exists.
    """
    if file.exists() and not force:
        raise ValueError(f"{file} exists; --force replaces it")
    runs = _chosen(names)
    members = dict(sorted(_members(runs).items()))
    known = {name: (path.stat().st_size, repro.file_hash(path)) for name, path in members.items()}
    metadata = described(runs, known)
    sums = {METADATA: hashlib.sha256(metadata).hexdigest()} | {k: v[1] for k, v in known.items()}
    manifest = "".join(f"{sums[name]}  {name}\n" for name in sums).encode()
    with repro.writing(file) as aside, zipfile.ZipFile(aside, "w") as archive:
        _add(archive, METADATA, metadata)
        _add(archive, MANIFEST, manifest)
        for name, path in members.items():
            _add(archive, name, path.read_bytes())
        check(archive)  # what goes out comes in
    return [f"{file}: {len(runs)} runs, {len(members) + 2} files", *_notes(runs)]


def _chosen(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """run.json of the runs that the names mean, and their params file, by NOTEBOOK/RUN."""
    there = {f"{x['notebook']}/{x['run']}": x for x in record.everything()}
    chosen = set()
    for name in names:
        found = {key for key, x in there.items() if _means(name, key) or _means(name, x["run"])}
        if not found:
            raise ValueError(f"no run is called {name!r}; there are: {', '.join(there) or 'none'}")
        chosen |= found
    runs = {key: there[key] for key in sorted(chosen)}
    for key, run in runs.items():
        _check_whole(key, run)
        params = params_file(run["notebook"], run["run"])
        run["params"] = f"params/{run['notebook']}/{params.name}" if params else None
    return runs


def _means(pattern: str, name: str) -> bool:
    return pattern == name or fnmatchcase(name, pattern)


def _check_whole(key: str, run: dict[str, Any]) -> None:
    if run["state"] != "done":
        raise ValueError(f"only finished runs go into an archive; {key} is {run['state']}")
    folder = repro.out() / "runs" / key
    now = results(folder)
    lost = {name for name, _ in now.items() ^ run["outputs"].items()}
    if not (folder / "executed.ipynb").is_file():
        lost.add("executed.ipynb")
    if lost:
        raise ValueError(
            f"{key} is not what its run.json says ({', '.join(sorted(lost))}); run it again"
        )


def _members(runs: dict[str, dict[str, Any]]) -> dict[str, Path]:
    """Path of each member by name, the metadata left out."""
    root = repro.root()
    lock = root / LOCK
    members = {LOCK: lock} if lock.is_file() else {}
    for key, run in runs.items():
        for name in ("run.json", "executed.ipynb", *run["outputs"]):
            members[f"runs/{key}/{name}"] = repro.out() / "runs" / key / name
        for name in filter(None, (f"notebooks/{run['notebook']}.ipynb", run["params"])):
            members[name] = root / name
    for name in members:
        parts(name)
    return members


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, EPOCH)
    info.create_system, info.external_attr = 3, 0o100644 << 16  # a regular file, on any system
    archive.writestr(info, content, zipfile.ZIP_DEFLATED)


def _notes(runs: dict[str, dict[str, Any]]) -> list[str]:
    scores = {run["outputs"].get("scores.parquet") for run in runs.values()}
    notes = []
    for key, run in runs.items():
        away = [name for name, sha in run["inputs"].items() if sha not in scores]
        if away:
            notes.append(f"{key} was made from runs that are not in it: {', '.join(away)}")
        if not made_so(run):
            notes.append(f"{key} was made with other code than the notebook that goes with it")
    return notes
