"""One execution of a notebook: its folder, what it follows from, and what it saves."""

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from osnb import experiment
from osnb.base import stamps, workbook
from osnb.book import follows

KEPT = {"superseded", "run.json"}  # of a run's folder, whatever it held before


@dataclass(frozen=True)
class Run:
    """One execution of a notebook.

    Attributes:
        notebook: its name, without suffix.
        name: of the run.
        parameters: those that its numbers follow from, and `run`.
        directory: where it writes.
        settings: everything that a training's Experiment has resolved; empty for others.
        columns: benchmark, split, network, regime, method and seed of a training.
        goldens: digest of what its code computes, by name.
    """

    notebook: str
    name: str
    parameters: dict[str, Any]
    directory: Path
    settings: dict[str, Any]
    columns: dict[str, Any]
    goldens: dict[str, str]

    def save(
        self,
        name: str,
        *,
        figure=None,
        table=None,
        latex="",
        inputs: Mapping | None = None,
        headline: list[dict[str, Any]] | None = None,
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
        """
        stamp = self.stamp() | {"inputs": dict(inputs or {})}
        if name.startswith("scores"):
            from osnb.base import tables  # pandas, which a plan can do without

            tables.write(self.directory / f"{name}.parquet", table, stamp)
            return
        written = []
        for suffix, what in {".svg": figure, ".csv": table, ".tex": latex or None}.items():
            if what is not None:
                written.append(f"{name}{suffix}")
                with workbook.writing(self.directory / written[-1]) as aside:
                    _write(aside, what)
        explained = stamps.explained(self.directory, *written)
        told = {"headline": headline} if headline else {}
        stamps.write(self.directory / f"{name}.json", stamp | explained | told)

    def stamp(self) -> dict[str, Any]:
        """What the run's files follow from; no clock, commit or device, so equal runs agree."""
        return {
            "notebook": self.notebook,
            "run": self.name,
            "parameters": self.parameters,
            "settings": self.settings,
            "columns": self.columns,
            "goldens": self.goldens,
            "inputs": {},
            "versions": {name: metadata.version(name) for name in ("torch", "numpy")},
        }


def _write(path: Path, what: Any) -> None:
    """A figure, a frame or a text, so that equal content gives equal bytes."""
    if path.suffix == ".svg":
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
    file = directory / "begun.json"
    before = json.loads(file.read_text()) if file.is_file() else None
    if before != json.loads(json.dumps(begun)):
        _supersede(directory)
        workbook.write_json(file, begun)
    return Run(notebook, name, directory=directory, **begun)


def follows_from(notebook: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters, settings, columns and goldens of a run, as its stamps give them.

    Args:
        notebook: its name.
        values: of every parameter, `run` being the name of the run.
    """
    parameters = {k: v for k, v in values.items() if k not in workbook.LOCAL or k == "run"}
    settings, columns = settled(values)
    names = follows.names(notebook, parameters, settings, columns)
    there = follows.goldens()
    goldens = {name: follows.now(name, notebook, there) for name in names}
    return {"parameters": parameters, "settings": settings, "columns": columns, "goldens": goldens}


def settled(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings and columns of the experiment that a training's parameters mean; else nothing."""
    if not experiment.is_training(values):
        return {}, {}
    found = experiment.of(values)
    return json.loads(json.dumps(found.settings)), found.columns


def _supersede(directory: Path) -> None:
    """Move what the folder holds to its `superseded/`, where one generation is kept."""
    old: Iterable[Path] = [file for file in directory.glob("*") if file.name not in KEPT]
    if not old:
        return
    shutil.rmtree(directory / "superseded", ignore_errors=True)
    (directory / "superseded").mkdir()
    for file in old:
        file.rename(directory / "superseded" / file.name)
