"""One execution of a notebook: its folder, what it follows from, and what it saves."""

import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

from osnb import experiment
from osnb.base import stamps, workbook
from osnb.book import follows

# tens digit of each paper's notebooks, of those that read the results of all, and of any
PAPERS, CROSS, OWN = {"palechor2023": "1", "vaze2022": "2", "kim2021": "3"}, "4", "5"
BEGUN = "begun.json"  # what the files of a run's folder follow from
KEPT = {"superseded", "run.json"}  # of a run's folder, whatever it held before
RESULTS = ("*.svg", "*.csv", "*.tex", "*.json", "scores*.parquet", "history.parquet")
RESULTS += ("outputs.parquet",)
SMALL = 2_000_000  # bytes
WORDS = "in the place of"
STANDS_IN = "miniature: drawings (Quick, Draw!), digits or letters in the place of papers' images"
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
WIDGET = "application/vnd.jupyter.widget-view+json"  # a random id, dead without its kernel


@dataclass(frozen=True)
class Run:
    """One execution of a notebook.

    Attributes:
        notebook: its name, without suffix.
        name: of the run.
        directory: where it writes.
        follows: what its numbers follow from besides inputs, of `follows_from`.
    """

    notebook: str
    name: str
    directory: Path
    follows: dict[str, dict[str, Any]]

    def save(
        self,
        name: str,
        *,
        figure: Any = None,
        table: Any = None,
        latex: str = "",
        inputs: Mapping | None = None,
        headline: list[dict[str, Any]] | None = None,
        passed_on: bool = True,
    ) -> None:
        """Write an artefact and the stamp `name`.json beside it that explains it.

        A scores table (`name` begins with "scores") is written as parquet; its stamp explains the
        run's history and outputs too. Anything else becomes `name`.svg, .csv and .tex.

        Args:
            name: of the artefact, e.g. figure_2.
            figure: a matplotlib figure, or none.
            table: the frame that the figure draws or the table itself, or none.
            latex: the table as a LaTeX tabular, or nothing.
            inputs: digest of what it was computed from, by name: of runs, `tables.inputs`.
            headline: what it compares with print, from `tables.headline`.
            passed_on: whether the figure may be; photographs of some data sets may not, and it is
                `name`.png, which stays in the run's folder.
        """
        stamp = self.stamp() | {"inputs": dict(inputs or {})}
        pictures = figure is not None and any(ax.images for ax in figure.axes)
        shows = inputs or (pictures and self.notebook[:1] in PAPERS.values())
        of_a_paper = self.notebook[:1] in (*PAPERS.values(), CROSS)
        if shows and of_a_paper and stamp["parameters"].get("size") == "mini":
            figure, table, latex = _standing_in(figure, table, latex)
        if name.startswith("scores"):
            from osnb.base import tables  # pandas, which a plan can do without

            tables.write(self.directory / f"{name}.parquet", table, stamp)
            return
        drawn = f"{name}.{'svg' if passed_on else 'png'}"
        given = {drawn: figure, f"{name}.csv": table, f"{name}.tex": latex or None}
        written = {file: what for file, what in given.items() if what is not None}
        for file, what in written.items():
            with workbook.writing(self.directory / file) as aside:
                _write(aside, what)
        explained = stamps.explained(self.directory, *(x for x in written if x[-4:] != ".png"))
        told = {"headline": headline} if headline else {}
        stamps.write(self.directory / f"{name}.json", stamp | explained | told)

    def text_says(self, holds: bool) -> None:
        """Tell the reader where what the text says of the miniature's scores is not so of these.

        They may be of networks that are trained again, on another kind of processor for example.

        Raises:
            ValueError: it is not so of the scores that ship; `make test` sets OSNB_STRICT for them.
        """
        if holds or self.name != "mini":
            return
        if os.environ.get("OSNB_STRICT"):
            raise ValueError("the notebook's text says otherwise of these scores")
        print("Not so here: the text tells of the scores that ship with the package.")

    def stamp(self) -> dict[str, Any]:
        """What the run's files follow from; no clock, commit or device, so equal runs agree."""
        versions = workbook.versions("torch", "numpy")
        own = {"notebook": self.notebook, "run": self.name}
        return own | self.follows | {"inputs": {}, "versions": versions}


def _standing_in(figure, table, latex: str) -> tuple:
    """The three of an artefact, with what their images stand for where they do not say it yet."""
    if figure is not None:
        texts = figure.findobj(lambda part: hasattr(part, "get_text"))
        if WORDS not in " ".join(part.get_text() for part in texts):
            note = fill(STANDS_IN, int(14 * figure.get_figwidth()))
            figure.text(0.5, 0, note, ha="center", va="top", fontsize=8, color="0.4")
    if table is not None and {"paper", "ours"} <= {*table} and WORDS not in table.to_csv():
        table = table.assign(images=STANDS_IN)
    columns = re.search(r"\\begin\{tabular\}\{(\w+)\}", latex)
    if columns and WORDS not in latex:
        note = f"\\midrule\n\\multicolumn{{{len(columns[1])}}}{{l}}{{{STANDS_IN}}} \\\\\n"
        latex = latex.replace("\\bottomrule", note + "\\bottomrule")
    return figure, table, latex


def _write(path: Path, what: Any) -> None:
    """A figure, a frame or a text, so that equal content gives equal bytes."""
    if path.suffix in (".svg", ".png"):
        what.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    elif path.suffix == ".csv":
        what.to_csv(path, index=False, float_format="%.6g", lineterminator="\n")
    else:
        path.write_text(what, encoding="utf8")


def begin(notebook: str, names: Mapping[str, Any]) -> Run:
    """Open the run of `notebook` whose parameters have the values in `names` (globals()).

    The run is called after the parameter `run`. Where params/NOTEBOOK/RUN.yaml exists and a
    value differs from it, the difference joins the name, so that a changed seed never
    overwrites the run it was changed from. Files that other code or other parameters left in
    the folder are moved to its `superseded/`.

    Raises:
        ValueError: a parameter has another type than its default, or no experiment has it.
    """
    defaults = workbook.declared(workbook.root() / "notebooks" / f"{notebook}.ipynb")
    values = {k: workbook.checked(notebook, k, names[k], defaults[k]) for k in defaults}
    name = experiment.run_name(notebook, values)
    directory = workbook.out() / "runs" / notebook / name
    begun = follows_from(notebook, values | {"run": name})
    if not goes_on(directory, begun):
        if old := [file for file in directory.glob("*") if file.name not in KEPT]:
            aside = directory / "superseded"  # where one generation is kept
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir()
            for left in old:
                left.rename(aside / left.name)
        workbook.write_json(directory / BEGUN, begun)
    return Run(notebook, name, directory, begun)


def goes_on(directory: Path, begun: Mapping[str, Any]) -> bool:
    """Whether a run that follows from `begun` goes on with what lies in its folder."""
    then, now = _begun(directory / BEGUN), json.loads(json.dumps(begun))
    alike = {**then, "goldens": {}} == {**now, "goldens": {}}
    return alike and (then["goldens"] == now["goldens"] or _held_since(directory, then["goldens"]))


def _begun(file: Path) -> dict[str, Any]:
    """What the files of a run's folder follow from; nothing if nobody said so, or it is damaged."""
    if not file.is_file():
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf8"))
        whole = all(isinstance(each, str) for each in found["goldens"].values())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    return found if whole else {}


def _held_since(directory: Path, goldens: Mapping[str, str]) -> bool:
    """Whether a run began with code that goldens stand for since then, as they do for today's."""
    unheld = any(then.startswith(follows.UNREHEARSED) for then in goldens.values())
    since = {"notebook": directory.parent.name, "goldens": goldens}
    return unheld and follows.hold() and not follows.changed(since)


def follows_from(notebook: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters, settings, columns and goldens of a run, as its stamps give them.

    Args:
        notebook: its name.
        values: of every parameter, `run` being the name of the run.
    """
    parameters = {k: v for k, v in values.items() if k not in workbook.LOCAL or k == "run"}
    settings, columns = settled(values)
    names = follows.names(notebook, parameters, settings, columns)
    there = follows.goldens() if follows.hold() else {}
    goldens = {name: follows.now(name, notebook, there) for name in names}
    return {"parameters": parameters, "settings": settings, "columns": columns, "goldens": goldens}


def settled(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings and columns of the experiment that a training's parameters mean; else nothing."""
    if not experiment.is_training(values):
        return {}, {}
    found = experiment.of(values)
    return json.loads(json.dumps(found.settings)), found.columns


def sweep(directory: Path) -> None:
    """Take away what killed processes have left in a folder of a run: files half written."""
    for left in directory.glob(".*-*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()


# What of a finished run goes into git: small results in figures/


def results(directory: Path) -> dict[str, str]:
    """Hash of each file of a run that is a result: figures, tables, stamps, scores, history."""
    names = {file.name for pattern in RESULTS for file in directory.glob(pattern)} - stamps.RECORDS
    return hashes(directory, names)


def beside(directory: Path) -> dict[str, str]:
    """Hash of each file of a run that is no result: its notebook, checkpoints, how it began."""
    files = {file.name for file in directory.glob("[!.]*") if file.is_file()}
    return hashes(directory, files - {"run.json"} - results(directory).keys())


def hashes(directory: Path, names: Iterable[str]) -> dict[str, str]:
    """sha256 of files of a folder, by name, sorted."""
    return {name: workbook.file_hash(directory / name) for name in sorted(names)}


def changed(directory: Path, files: Mapping[str, str]) -> list[str]:
    """Those of the files, by name their hash, that are gone, unreadable or have other bytes now."""
    return [name for name, sha256 in files.items() if _hash(directory / name) != sha256]


def _hash(file: Path) -> str | None:
    """sha256 of a file; none if it is gone, or another user keeps it to himself."""
    try:
        return workbook.file_hash(file) if file.is_file() else None
    except OSError:
        return None


def altered(directory: Path, run: Mapping[str, Any]) -> list[str]:
    """Files of a finished run that are gone, new or other than its run.json says.

    Checkpoints are passed over: they end in checksums of their own.
    """
    files = {k: v for k, v in run.get("files", {}).items() if not k.endswith(".pt")}
    others = results(directory).items() ^ run.get("outputs", {}).items()
    return sorted({name for name, _ in others} | {*changed(directory, files)})


def publish(directory: Path, target: Path) -> list[str]:
    """Make the results in `target` those of the run in `directory`, as far as they are small.

    A file that is there and the same is not touched; one of an earlier run is taken away.

    Returns:
        Names of the results that are larger than `SMALL`, which stay where they are.
    """
    sweep(target)
    found, there = results(directory), results(target)
    large = [name for name in found if (directory / name).stat().st_size > SMALL]
    small = {name: found[name] for name in found if name not in large}
    for name, _ in sorted(small.items() - there.items()):
        with workbook.writing(target / name) as aside:
            shutil.copyfile(directory / name, aside)
    for name in there.keys() - small.keys():
        (target / name).unlink()
    return large
