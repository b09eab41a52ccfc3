"""Whether every figure, table and scores table still follows from what its stamp says."""

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from osnb import record, repro
from osnb.publish import NO_RESULTS

ACROSS = "4"  # first digit of notebooks that read the tables of every paper
VERDICTS = {
    "follows": "bytes, code, parameters and inputs are those of the stamp",
    "missing": "a file that the stamp lists is gone",
    "edited": "a file has other bytes than the stamp says",
    "unstamped": "no stamp explains the file",
    "code": "the notebook, or what it reaches in osnb, has changed",
    "parameters": "the params file says otherwise now",
    "inputs": "a scores table that it was computed from is another, gone, or does not follow",
    "old": "the stamp is of an earlier version, which did not hash the files",
}
DRAWN = (".svg", ".csv", ".tex")
STAMP = {"notebook": str, "run": str, "parameters": dict, "code": str}
MORE = ("inputs", "files")  # dicts that some stamps have besides


@dataclass(frozen=True)
class Artefact:
    """What one stamp explains: a figure or table in its formats, or a scores table.

    Attributes:
        path: without suffix where the stamp is a file beside it.
        stamp: none if there is none, or none that can be read.
        wrong: verdict and reason found in the files themselves, if any.
    """

    path: Path
    stamp: dict[str, Any] | None
    wrong: tuple[str, str] | None

    @property
    def key(self) -> str:
        return f"{self.path.parent.parent.name}/{self.path.parent.name}"


def verify() -> list[dict[str, str]]:
    """One row per artefact in figures/ and runs/: artefact, run, verdict (of `VERDICTS`), what."""
    artefacts = [each for folder in _folders() for each in _artefacts(folder)]
    _code.cache_clear()
    _experiments.cache_clear()
    own = {each.path: each.wrong or _own(each) for each in artefacts}
    tables = _tables(artefacts)
    rows = []
    for each in artefacts:
        found = own[each.path]
        if found[0] in {"follows", "old"}:
            found = _from_inputs(each, tables, own) or found
        verdict, what = found
        row = {"artefact": shown(each.path), "run": each.key, "verdict": verdict, "what": what}
        rows.append(row)
    return rows


def params_file(notebook: str, run: str) -> Path | None:
    """The file in params/ that a run, or the run that it is a variant of, is called after."""
    files = (repro.root() / "params" / notebook).glob("*.yaml")
    named = [file for file in files if run == file.stem or run.startswith(f"{file.stem}-")]
    return max(named, key=lambda file: len(file.stem), default=None)


def _folders() -> list[Path]:
    """Folders of runs, those of which `tables.collect` takes the last by name after the others."""
    bases = (repro.root() / "figures", repro.out() / "figures", repro.out() / "runs")
    found = [x for base in dict.fromkeys(bases) for x in sorted(base.glob("[0-9]*/[!.]*"))]
    return [folder for folder in found if folder.is_dir()]


def _artefacts(folder: Path) -> Iterator[Artefact]:
    claimed: set[str] = set()
    outputs = (record.read(folder) or {}).get("outputs")
    outputs = outputs if isinstance(outputs, dict) else {}
    for file in sorted(folder.glob("*.json")):
        if file.name not in NO_RESULTS and (stamp := _stamp(file)):
            here = [f"{file.stem}{end}" for end in DRAWN if file.with_suffix(end).is_file()]
            listed = stamp.get("files", dict.fromkeys(here))
            claimed |= {*listed}
            yield Artefact(file.with_suffix(""), stamp, _bytes(folder, listed))
    for file in sorted(file for end in DRAWN for file in folder.glob(f"*{end}")):
        if file.name not in claimed:
            yield Artefact(file, None, ("unstamped", f"no stamp lists {file.name}"))
    for file in sorted(folder.glob("scores*.parquet")):
        stamp = _stamp(file)
        wrong = None if stamp else ("edited", f"{file.name} is no whole scores table")
        recorded = {file.name: outputs[file.name]} if file.name in outputs else {}
        yield Artefact(file, stamp, wrong or _bytes(folder, recorded))


def _stamp(file: Path) -> dict[str, Any] | None:
    """The stamp in a json file, or in the metadata of a parquet file."""
    import pyarrow.parquet as pq

    try:
        text = pq.read_schema(file).metadata[b"osnb"] if file.suffix == ".parquet" else None
        found = json.loads(file.read_text() if text is None else text)
    except (OSError, ValueError, KeyError, TypeError):  # Arrow's are among them
        return None
    if not isinstance(found, dict):
        return None
    whole = all(isinstance(found.get(key), kind) for key, kind in STAMP.items())
    return found if whole and all(isinstance(found.get(key, {}), dict) for key in MORE) else None


def _bytes(folder: Path, files: dict[str, str | None]) -> tuple[str, str] | None:
    """What is wrong with the files of a stamp, which says None of what it has not hashed."""
    for name, sha256 in files.items():
        if not (folder / name).is_file():
            return "missing", f"{name} is gone"
        if sha256 and repro.file_hash(folder / name) != sha256:
            return "edited", f"{name} has other bytes than its stamp says"
    return None


def code(notebook: str, parameters: Mapping[str, Any]) -> str | None:
    """Hash of the code that a run with these parameters would have now; none if it has none.

    Raises:
        ValueError: a file that the code is in cannot be read; the message names it.
    """
    file = repro.root() / "notebooks" / f"{notebook}.ipynb"
    if not file.is_file():
        return None
    texts = {k: v for k, v in parameters.items() if isinstance(v, str) and k not in repro.LOCAL}
    found, wrong = _code(file, file.stat().st_mtime_ns, tuple(sorted(texts.items())))
    if wrong:
        raise ValueError(wrong)
    return found


@cache
def _code(file: Path, _version: int, texts: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    """The hash, or why there is none."""
    try:
        return repro.code_hash(file, dict(texts)), ""
    except Exception as error:  # whatever a broken file does to its reader
        return "", _unreadable(_broken(file, error), error)


def _broken(notebook: Path, error: Exception) -> Path:
    """The file that an error of the parser is about: one of the package, or the notebook."""
    line = (getattr(error, "text", None) or "").strip()
    for file in sorted(repro.PACKAGE.rglob("*.py")):
        try:
            if line in (text := file.read_text(encoding="utf8")):
                ast.parse(text)
        except (SyntaxError, ValueError) as found:
            if found.args == error.args:
                return file
    return notebook


def _unreadable(file: Path, error: Exception) -> str:
    """A sentence: which file cannot be read, in which line, and why."""
    mark = getattr(error, "problem_mark", None)  # of yaml
    line = mark.line + 1 if mark else getattr(error, "lineno", None)
    said = getattr(error, "problem", None) or getattr(error, "msg", None) or str(error)
    said = said if isinstance(error, ValueError | SyntaxError) or mark else repr(error)
    said = said.partition("\n")[0].removeprefix(f"{file.name}: ")
    where = f", line {line}" if line else ""
    return f"cannot be read: {shown(file)}{where}: {said}"


def _own(artefact: Artefact) -> tuple[str, str]:
    """The verdict as far as the stamp, the notebook and the params file tell."""
    stamp, key = artefact.stamp, artefact.key
    notebook, run = stamp["notebook"], stamp["run"]
    if f"{notebook}/{run}" != key:
        return "edited", f"its stamp is that of {notebook}/{run}"
    try:
        now = code(notebook, stamp["parameters"])
    except ValueError as error:
        return "code", str(error)
    if now != stamp["code"]:
        return "code", f"{notebook} {'is gone' if now is None else 'computes otherwise now'}"
    if wrong := _parameters(params_file(notebook, run), stamp):
        return "parameters", wrong
    if artefact.path.suffix != ".parquet" and "files" not in stamp:
        return "old", "stamp of an earlier version"
    return "follows", ""


def _parameters(file: Path | None, stamp: dict[str, Any]) -> str:
    """How the params file no longer says what the run was made with, if so."""
    if file is None:
        return ""
    notebook = repro.root() / "notebooks" / f"{stamp['notebook']}.ipynb"
    for each, reader in ((notebook, repro.declared), (file, _params)):
        try:
            reader(each)
        except Exception as error:  # whatever a broken file does to its reader
            return _unreadable(each, error)
    changed = _changed(file, stamp)
    said = f"params/{stamp['notebook']}/{file.name} says otherwise: {', '.join(changed)}"
    return said if changed else ""


def _params(file: Path) -> dict[str, Any]:
    if isinstance(content := repro.params(file), dict):
        return content
    raise ValueError(f"it needs lines of 'name: value', and holds a {type(content).__name__}")


def _changed(file: Path, stamp: dict[str, Any]) -> list[str]:
    """Parameters that a run of this params file, with the run's overrides, would have otherwise."""
    now = repro.declared(repro.root() / "notebooks" / f"{stamp['notebook']}.ipynb")
    now |= repro.params(file)
    then = stamp["parameters"]
    if names := (now.keys() ^ then.keys()) - repro.LOCAL:
        return sorted(names)
    ordered = {name: then[name] for name in now if name in then}  # json has sorted them
    if repro.variant(file.stem, now, ordered) == stamp["run"]:
        return []
    differ = [name for name in ordered if name not in repro.LOCAL and then[name] != now[name]]
    named = {x for x in differ if repro.difference(x, then[x]) in stamp["run"]}
    return [x for x in differ if x not in named] or ["the run's name"]


def _tables(artefacts: list[Artefact]) -> dict[tuple[str, str], Artefact]:
    """The scores table that a results notebook finds, by digit of the paper and run."""
    return {
        (digit, each.stamp["run"]): each
        for each in artefacts
        if each.path.name == "scores.parquet" and each.stamp
        for digit in (each.stamp["notebook"][:1], ACROSS)
    }


@cache
def _experiments(notebook: str) -> dict[str, dict[str, Any]]:
    return repro.experiments(notebook)


def _counts(table: Artefact) -> bool:
    """Whether `tables.collect` takes the run for one of an experiment in params/."""
    stamp = table.stamp
    try:
        among = _experiments(stamp["notebook"])
        return repro.experiment(stamp["parameters"] | {"run": stamp["run"]}, among) is not None
    except Exception:  # of a broken file, which the table's own verdict tells of
        return True


def _from_inputs(
    artefact: Artefact, tables: dict[tuple[str, str], Artefact], own: dict[Path, tuple[str, str]]
) -> tuple[str, str] | None:
    """What is wrong with the runs that a results notebook has read, if anything."""
    stamp = artefact.stamp
    if stamp["notebook"].endswith("_train"):  # its inputs are images, not runs
        return None
    for run, sha256 in stamp.get("inputs", {}).items():
        table = tables.get((stamp["notebook"][:1], run))
        if table is None:
            return "inputs", f"made from {run}, whose scores table is gone"
        path = table.path
        name = f"{path.parent.parent.name}/{run}"
        if repro.file_hash(path) != sha256:
            return "inputs", f"made from {name}, which has another scores table now"
        if own[path][0] != "follows":
            return "inputs", f"made from {name}, which no longer follows ({own[path][0]})"
        if not _counts(table):
            return "inputs", f"made from {name}, a variant of what params/ describes, left out now"
    return None


def shown(path: Path) -> str:
    """A path as the rows of `verify` give it: below the project's folder, or whole."""
    root = repro.root()
    return str(path.relative_to(root) if path.is_relative_to(root) else path)
