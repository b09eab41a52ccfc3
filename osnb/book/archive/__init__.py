"""Finished runs as one file, for an archive with a DOI: written with checksums, read with care.

Its bytes follow from the runs alone; each comes back whole or not at all.
"""

import hashlib
import json
import shutil
import zipfile
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from osnb.base import stamps, workbook
from osnb.book import record, zips
from osnb.book.archive import publishing
from osnb.book.archive.checking import LOCK, MANIFEST, METADATA, check, made_so
from osnb.book.runs import PAPERS as DIGITS
from osnb.book.runs import altered, publish
from osnb.book.verify import otherwise, params_file
from osnb.evidence.gallery import PAPERS

REASONS = {"running": "running here", "other": "here with other content; --force replaces it"}
DATA = (
    "The code (notebooks, params) is under BSD-3-Clause. The runs are numbers and drawings that "
    "it computed: scores, histories, tables and figures. Images and data sets are not included."
)
COMPLETED = "http://schema.org/CompletedActionStatus"
FORMATS = {
    ".ipynb": "application/x-ipynb+json",
    ".parquet": "application/vnd.apache.parquet",
    ".yaml": "application/yaml",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".csv": "text/csv",
    ".tex": "application/x-tex",
}


def pack(
    names: Iterable[str], file: Path, *, force: bool = False, publish: bool = False
) -> list[str]:
    """Write finished runs with their params, notebooks and environment to the zip `file`.

    A params file that says otherwise now than its run was made stays out.

    Args:
        names: RUN or NOTEBOOK/RUN, or patterns of them with * and ?.
        file: to write, aside and renamed.
        force: whether `file` may be replaced.
        publish: whether citations, a CODECHECK manifest, model cards and lists of classes go in.

    Returns:
        One line on what it holds, and one on each thing that a reader of it will miss.

    Raises:
        ValueError: no run has such a name, one is not done or has lost files, or `file` exists.
    """
    if file.exists() and not force:
        raise ValueError(f"{file} exists; --force replaces it")
    runs = _chosen(names)
    members = dict(sorted(_members(runs).items()))
    known = {name: (x.stat().st_size, workbook.file_hash(x)) for name, x in members.items()}
    added = publishing.members(runs) if publish else {}
    known |= {name: (len(x), hashlib.sha256(x).hexdigest()) for name, x in added.items()}
    metadata = described(runs, known)
    sums = {METADATA: hashlib.sha256(metadata).hexdigest()} | {k: v[1] for k, v in known.items()}
    manifest = "".join(f"{sums[name]}  {name}\n" for name in sums).encode()
    with workbook.writing(file) as aside:
        zips.pack(aside, {METADATA: metadata, MANIFEST: manifest} | members | added)
        with zips.opened(aside) as archive:
            check(archive)  # what goes out comes in
    notes = [publishing.LACKING] if publish and not find_spec(publishing.CROISSANT) else []
    return [f"{file}: {len(runs)} runs, {len(known) + 2} files", *notes, *_notes(runs)]


def _chosen(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """run.json of the runs that the names mean, their params file and digest, by NOTEBOOK/RUN."""
    runs = record.named(*names)
    for key, run in runs.items():
        if run["state"] != "done":
            raise ValueError(f"only finished runs go into an archive; {key} is {run['state']}")
        if "executed.ipynb" not in run.get("files", {}):
            raise ValueError(
                f"{key} has no executed notebook, as archives need: osnb predict made it"
            )
        if lost := altered(_folder(key), run):
            files = ", ".join(lost)
            raise ValueError(f"{key} is not what its run.json says ({files}); run it again")
        run["otherwise"] = _fault(run)
        params = None if run["otherwise"] else params_file(run["notebook"], run["run"])
        run["params"] = f"params/{run['notebook']}/{params.name}" if params else None
        run["data"] = stamps.data(_folder(key))
    return runs


def _fault(run: dict[str, Any]) -> str:
    """Why the params file does not tell how a run was made; empty if it does, or there is none."""
    try:
        return otherwise({"settings": {}} | run)
    except Exception as error:  # whatever a broken file does to its reader
        return f"it cannot be read: {error}".partition("\n")[0]


def _members(runs: dict[str, dict[str, Any]]) -> dict[str, Path]:
    """Path of each member by name, the metadata left out."""
    root = workbook.root()
    members = {LOCK: root / LOCK} if (root / LOCK).is_file() else {}
    for key, run in runs.items():
        for name in ("run.json", "executed.ipynb", *run["outputs"]):
            members[f"runs/{key}/{name}"] = _folder(key) / name
        for name in filter(None, (f"notebooks/{run['notebook']}.ipynb", run["params"])):
            members[name] = root / name
    return members


def _notes(runs: dict[str, dict[str, Any]]) -> list[str]:
    """What a reader of the archive will miss."""
    there, notes = {run["data"] for run in runs.values()}, []
    for key, run in runs.items():
        if away := [name for name, sha in run["inputs"].items() if sha not in there]:
            notes.append(f"{key} was made from runs that are not in it: {', '.join(away)}")
        if not made_so(run):
            notes.append(f"{key} was made with other code than the notebook that goes with it")
        if run["otherwise"]:
            notes.append(f"{key} goes without its params file: {run['otherwise']}")
    return notes


def unpack(file: Path, *, force: bool = False) -> dict[str, str]:
    """Put the runs of an archive where `osnb run` would have left them.

    Everything is checked before anything is written.

    Args:
        file: an archive that `pack` wrote.
        force: whether other runs of these names may be replaced; they go to `superseded/`.

    Returns:
        What became of each run, by NOTEBOOK/RUN.

    Raises:
        ValueError: the archive is refused; the message says why.
    """
    with zips.opened(file) as archive:
        runs = check(archive)
        here = {key: _standing(key, run) for key, run in runs.items()}
        for standing, why in REASONS.items():
            keys = ", ".join(key for key, word in here.items() if word == standing)
            if keys and not (force and standing == "other"):
                raise ValueError(f"{keys} is {why}")
        source = {"archive": file.name, "sha256": workbook.file_hash(file), "when": record.now()}
        for key, run in runs.items():
            if here[key] != "same":
                files = {"executed.ipynb": run["files"]["executed.ipynb"]}  # all that comes along
                _place(archive, key, run | {"imported": source, "files": files})
            if run["parameters"].get("size") != "own":
                publish(_folder(key), workbook.out() / "figures" / key)
    words = {"same": "here already, the same", "other": "imported, replacing another"}
    return {
        key: words.get(here[key], "imported") + ("" if made_so(run) else "; made with other code")
        for key, run in runs.items()
    }


def _folder(key: str) -> Path:
    return workbook.out() / "runs" / key


def _standing(key: str, run: dict[str, Any]) -> str:
    """What is here under that name: nothing, the same, another run, or one that is running."""
    folder = _folder(key)
    found = record.read(folder) or {}
    if record.going(found):
        return "running"
    if found.get("state") != "done" and {x.name for x in folder.glob("[!.]*")} <= {"run.json"}:
        return "nothing"  # at most a run that was queued, or refused, and never began
    alike = all(found.get(k) == run[k] for k in ("state", "code", "inputs", "outputs"))
    return "same" if alike and not altered(folder, found) else "other"


def _place(archive: zipfile.ZipFile, key: str, run: dict[str, Any]) -> None:
    """Write the run aside, run.json last, and rename it into its place."""
    target = _folder(key)
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{target.name}-"
    with record.lock(target), TemporaryDirectory(dir=target.parent, prefix=prefix) as aside:
        _put_back(target, but=Path(aside))
        made, old = Path(aside) / "made", Path(aside) / "made" / "superseded"
        made.mkdir()
        for file in (*run["outputs"], *run["files"]):  # as `check` has found them
            info = archive.getinfo(f"runs/{key}/{file}")
            (made / file).write_bytes(archive.open(info).read(info.file_size))
        record.write(made, run)
        if target.exists():
            target.rename(old)
        try:
            made.rename(target)
        except BaseException:
            if old.exists():
                old.rename(target)
            raise
    shutil.rmtree(target / "superseded" / "superseded", ignore_errors=True)  # one is kept


def _put_back(target: Path, *, but: Path) -> None:
    """Sweep what killed imports of a run have left beside it; the run that one moved comes back."""
    for left in {*target.parent.glob(f".{target.name}-????????")} - {but}:  # as tempfile names it
        if (old := left / "made" / "superseded").exists() and not target.exists():
            old.rename(target)
        shutil.rmtree(left, ignore_errors=True)


# The archive described as an RO-Crate 1.1: what each file is, what made it, from what, when


def described(runs: Mapping[str, dict], files: Mapping[str, tuple[int, str]]) -> bytes:
    """The content of ro-crate-metadata.json; equal arguments give equal bytes.

    Args:
        runs: by NOTEBOOK/RUN content of run.json, `params`, the params file's member or none, and
            `data`, the digest by which others name it among their inputs.
        files: bytes and sha256 of every other member but the manifest, by name.
    """
    from rocrate.rocrate import ROCrate

    crate = ROCrate(version="1.1")
    crate.metadata.extra_terms["sha256"] = "https://schema.org/sha256"  # 1.1 lacks it
    kept = {name: _file(crate, name, *known) for name, known in files.items()}
    crate.add_file(dest_path=MANIFEST, properties={"description": "for sha256sum -c"})
    papers = {x: PAPERS[x] for x in PAPERS if DIGITS[x] in {key[0] for key in runs}}
    root = crate.root_dataset
    root["name"] = f"Finished runs of osnb: {', '.join(papers) or 'lessons'}"
    root["description"] = f"{len(runs)} runs of an open-set recognition workbook. {DATA}"
    root["datePublished"] = max(run["finished"] for run in runs.values())
    terms = {"@id": publishing.LICENCE, "@type": "CreativeWork", "name": "BSD 3-Clause"}
    root["license"] = crate.add_jsonld(terms | {"description": DATA})
    cited = [{"@id": f"#{name}", "name": title} for name, title in papers.items()]
    root["citation"] = [crate.add_jsonld(x | {"@type": "ScholarlyArticle"}) for x in cited]
    root["mentions"] = [_action(crate, key, runs, kept) for key in runs]
    return json.dumps(crate.metadata.generate(), indent=1, sort_keys=True).encode() + b"\n"


def _file(crate, name: str, size: int, sha256: str):
    kind = FORMATS.get(PurePosixPath(name).suffix, "text/plain")
    known = {"contentSize": str(size), "sha256": sha256, "encodingFormat": kind}
    if name.startswith("notebooks/"):
        known |= {"@type": ["File", "SoftwareSourceCode"], "programmingLanguage": "Python"}
    if name == LOCK:
        known["description"] = "Every package with its version, for pip"
    return crate.add_file(dest_path=name, properties=known | {"name": name})


def _action(crate, key: str, runs: Mapping[str, dict], kept: Mapping[str, Any]):
    """The execution of a notebook that made a run, from its params file and other runs' scores."""
    run = runs[key]
    results = [file for name, file in kept.items() if name.startswith(f"runs/{key}/")]
    scores = {each["data"]: f"runs/{name}/scores.parquet" for name, each in runs.items()}
    read = [run["params"], *(scores.get(digest) for digest in run["inputs"].values())]
    objects = [kept[name] for name in read if name]
    about = {"name": f"execution of {key}", "startTime": run["started"]}
    about |= {"description": f"code {run['code']}, commit {run.get('commit')}"}
    about |= {"endTime": run["finished"], "actionStatus": {"@id": COMPLETED}}
    notebook = kept[f"notebooks/{run['notebook']}.ipynb"]
    return crate.add_action(notebook, f"#{key}", object=objects, result=results, properties=about)
