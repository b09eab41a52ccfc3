"""Whether every figure, table and scores table still follows from what its stamp says."""

import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from osnb import experiment
from osnb.base import stamps, workbook
from osnb.book import follows, record, runs
from osnb.book.run import plans
from osnb.evidence.tables import described, repeats

# follows: bytes, code, settings and inputs are those of the stamp
# missing: a file that the stamp lists is gone
# edited: a file has other bytes than the stamp says, or the stamp was edited
# unstamped: no stamp explains the file
# code: what computed it computes otherwise now: the names of what changed follow
# parameters: the params file, or what its names stand for, says otherwise now
# inputs: a run that it was computed from has other data, is gone, or does not follow
VERDICTS = ("follows", "missing", "edited", "unstamped", "code", "parameters", "inputs")
# asked once for each folder, and for each notebook, by `verify`
_data, _described = cache(stamps.data), cache(described)
EXPLAINED = ("*.svg", "*.csv", "*.tex", "scores*.parquet")  # files that need a stamp


class Artefact(NamedTuple):
    """What one stamp explains: a figure or table in its formats, or a scores table.

    Attributes:
        path: without suffix, or of the file that no stamp explains.
        stamp: none if there is none, or none that is whole.
        wrong: verdict and reason found in the files themselves, if any.
    """

    path: Path
    stamp: dict[str, Any] | None
    wrong: tuple[str, str] | None

    @property
    def key(self) -> str:
        """NOTEBOOK/RUN of its folder."""
        return f"{self.path.parent.parent.name}/{self.path.parent.name}"


def verify() -> list[dict[str, str]]:
    """One row per artefact in figures/ and runs/: artefact, run, verdict (of `VERDICTS`), what."""
    for cached in (_changed, _data, _described):
        cached.cache_clear()
    # those of which `tables.collect` takes the last by name after the others
    bases = (workbook.root() / "figures", workbook.out() / "figures", workbook.out() / "runs")
    folders = [x for base in dict.fromkeys(bases) for x in sorted(base.glob("[0-9]*/[!.]*"))]
    artefacts = [each for folder in folders if folder.is_dir() for each in _artefacts(folder)]
    verdicts = {each.path: each.wrong or _own(each) for each in artefacts}
    tables, rows = {}, []  # of scores, as a results notebook finds them: by paper and run
    for each in artefacts:
        if each.path.name == "scores" and each.stamp:
            for digit in (each.stamp["notebook"][:1], runs.CROSS, runs.OWN):
                tables[digit, each.stamp["run"]] = each
    for each in artefacts:
        verdict, what = verdicts[each.path]
        if verdict == "follows":
            verdict, what = _from_inputs(each, tables, verdicts)
        row = {"artefact": shown(each.path), "run": each.key, "verdict": verdict, "what": what}
        rows.append(row)
    return rows


def params_file(notebook: str, run: str, *, base: Path | None = None) -> Path | None:
    """The file in params/ that a run, or the run that it is a variant of, is called after.

    Args:
        notebook: its name.
        run: name of the run.
        base: in the place of params/.
    """
    files = ((base or workbook.root() / "params") / notebook).glob("*.yaml")
    named = [file for file in files if run == file.stem or run.startswith(f"{file.stem}-")]
    return max(named, key=lambda file: len(file.stem), default=None)


def _artefacts(folder: Path) -> Iterator[Artefact]:
    explained: set[str] = set()
    for file in sorted(folder.glob("*.json")):
        if file.name not in stamps.RECORDS and (stamp := stamps.read(file)):
            explained |= {*stamp["files"]}
            wrong = _bytes(folder, stamp["files"])
            if file.read_text(encoding="utf8") != workbook.as_json(stamp):
                wrong = "edited", f"{file.name} is not as it was written"
            yield Artefact(file.with_suffix(""), stamp, wrong)
    if wrong := _of_run(folder):
        yield Artefact(folder / "run", None, wrong)
    for file in sorted(file for pattern in EXPLAINED for file in folder.glob(pattern)):
        if file.name not in explained:
            wrong = ("unstamped", f"no stamp lists {file.name}")
            if file.with_suffix(".json").is_file():
                wrong = ("edited", f"its stamp {file.stem}.json is not whole, or was edited")
            yield Artefact(file, None, wrong)


def _of_run(folder: Path) -> tuple[str, str] | None:
    """What is wrong with run.json, or with the files that only it lists."""
    run = record.read(folder) or {"state": ""}
    if run["state"] == "done":
        return _bytes(folder, run.get("files", {}))
    broken = run.get("error", {}).get("name") == "BrokenRecord"
    return ("edited", run["error"]["value"]) if broken else None


def _bytes(folder: Path, files: Mapping[str, str]) -> tuple[str, str] | None:
    """What is wrong with the files of a stamp."""
    for name in runs.changed(folder, files)[:1]:
        if not (folder / name).is_file():
            return "missing", f"{name} is gone"
        if not os.access(folder / name, os.R_OK):
            return "edited", f"{name} may be: it cannot be read"
        return "edited", f"{name} has other bytes than its stamp says"
    return None


def _own(artefact: Artefact) -> tuple[str, str]:
    """The verdict as far as the stamp, the code and the params file tell."""
    stamp, key = artefact.stamp, artefact.key
    notebook, run = stamp["notebook"], stamp["run"]
    if f"{notebook}/{run}" != key:
        return "edited", f"its stamp is that of {notebook}/{run}"
    if not (workbook.root() / "notebooks" / f"{notebook}.ipynb").is_file():
        return "code", f"{notebook} is gone"
    verdict = "code"
    try:
        if names := _changed(notebook, tuple(sorted(stamp["goldens"].items()))):
            return "code", f"computes otherwise now: {', '.join(names)}"
        verdict = "parameters"
        return ("parameters", wrong) if (wrong := otherwise(stamp)) else ("follows", "")
    except Exception as error:  # whatever a broken file does to its reader
        return verdict, f"{notebook} or what it needs cannot be read: {error}".partition("\n")[0]


@cache
def _changed(notebook: str, goldens: tuple[tuple[str, str], ...]) -> list[str]:
    return follows.changed({"notebook": notebook, "goldens": dict(goldens)})


def otherwise(stamp: Mapping[str, Any]) -> str:
    """How the params file no longer says what a run was made with; empty if it does, or is none.

    It lies in params/, or under the folder that runs/ is in.

    Args:
        stamp: of the run, or its run.json.

    Raises:
        Exception: of any kind, if the file, or what its names stand for, cannot be read.
    """
    notebook, then = stamp["notebook"], stamp["parameters"]
    file = params_file(notebook, stamp["run"])
    own = None if file else params_file(notebook, stamp["run"], base=workbook.out())
    if not (file := file or own):
        return ""
    called = f"{'' if own else 'params/'}{notebook}/{file.name}"
    now = workbook.declared(workbook.root() / "notebooks" / f"{notebook}.ipynb")
    now |= plans.read(file)
    values = {name: then.get(name, now[name]) for name in now}  # json has sorted them
    names = sorted((now.keys() ^ then.keys()) - workbook.LOCAL)
    if not names and experiment.variant(file.stem, now, values) != stamp["run"]:
        differ = [x for x in now if x not in workbook.LOCAL and then[x] != now[x]]
        named = {x for x in differ if workbook.difference(x, then[x]) in stamp["run"]}
        names = [x for x in differ if x not in named] or ["the run's name"]
    if names:
        return f"{called} says otherwise: {', '.join(names)}"
    if runs.settled(values)[0] != stamp["settings"]:
        return f"the names in {called} stand for other settings"
    return ""


def _from_inputs(artefact: Artefact, tables: Mapping, verdicts: Mapping) -> tuple[str, str]:
    """The verdict on the runs that a results notebook has read."""
    stamp = artefact.stamp
    if stamp["notebook"].endswith("_train"):  # its inputs are images, not runs
        return "follows", ""
    for run, digest in stamp["inputs"].items():
        if run.endswith(".csv"):  # of another notebook, by its name below figures/
            bases = (workbook.root() / "figures", workbook.out() / "figures")
            if all(runs.changed(base, {run: digest}) for base in bases):
                return "inputs", f"made from {run}, which is gone or other now"
            continue
        table = tables.get((stamp["notebook"][:1], run))
        if table is None:
            return "inputs", f"made from {run}, which has no scores table with a whole stamp"
        verdict, why = verdicts[table.path][0], ""
        if verdict != "follows":
            why = f"which does not follow ({verdict})"
        elif _data(table.path.parent) != digest:
            why = "which has other data now"
        elif not _counts(table.stamp):
            why = "a variant of what params/ describes, left out now"
        if why:
            return "inputs", f"made from {table.key}, {why}"
    return "follows", ""


def _counts(stamp: Mapping[str, Any]) -> bool:
    """Whether `tables.collect` takes the run for one of an experiment in params/, or it is own."""
    try:
        if stamp["parameters"].get("size") == "own":
            return True
        return repeats(stamp, _described(stamp["notebook"])) is not None
    except Exception:  # of a broken file, which the table's own verdict tells of
        return True


def shown(path: Path) -> str:
    """A path as the rows of `verify` give it: below the project's folder, or whole."""
    root = workbook.root()
    return str(path.relative_to(root) if path.is_relative_to(root) else path)
