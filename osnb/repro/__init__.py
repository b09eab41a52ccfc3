"""Where a run lives, what it depends on, and how its files are written.

What asks for `root` or `PACKAGE` stands in this file, so that replacing `repro.root` replaces
it everywhere; the rest comes from the files beside it.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osnb.repro import reach
from osnb.repro.files import digest, file_hash, write_json, writing
from osnb.repro.notebooks import (
    LOCAL,
    PLAIN,
    checked,
    code_cells,
    declared,
    difference,
    params,
    variant,
)

PACKAGE = Path(__file__).parent.parent
# what two runs of one experiment may differ in: chance, and how a machine does the work
REPEATS = LOCAL | {"seed", "split", "devices", "threads"}

__all__ = [
    "LOCAL",
    "PACKAGE",
    "PLAIN",
    "Run",
    "begin",
    "checked",
    "code_cells",
    "code_hash",
    "data",
    "declared",
    "difference",
    "digest",
    "experiment",
    "experiments",
    "file_hash",
    "out",
    "params",
    "reached",
    "rooms",
    "root",
    "run_name",
    "seed_all",
    "variant",
    "write_json",
    "writing",
]


def root() -> Path:
    """The project's folder, whatever the working folder: the nearest one with pyproject.toml.

    Raises:
        FileNotFoundError: neither the package nor the working folder lies in a project.
    """
    for start in (PACKAGE, Path.cwd()):
        for folder in (start, *start.parents):
            if (folder / "pyproject.toml").is_file() and (folder / "notebooks").is_dir():
                return folder
    raise FileNotFoundError(
        f"no project (pyproject.toml beside notebooks/) above {PACKAGE} or {Path.cwd()}: "
        "work in a clone of the project"
    )


def out() -> Path:
    """The folder that runs/ and figures/ are written under: $OSNB_OUT, else the project."""
    return Path(os.environ["OSNB_OUT"]).resolve() if os.environ.get("OSNB_OUT") else root()


def data(folder: str) -> Path:
    """Where data sets lie: the folder given, else $OSNB_DATA, else data/ in the project."""
    return Path(folder or os.environ.get("OSNB_DATA") or root() / "data").resolve()


# Code: what a notebook's numbers follow from.


def code_hash(notebook: Path, parameters: Mapping[str, Any] | None = None) -> str:
    """Hash of what a notebook computes: its code cells and every definition that they reach.

    `reached` tells which definitions those are. Files in the package count too, where a room
    that reads them is imported. Comments, docstrings that no code reads, text cells and the
    parameters' defaults do not count: defaults are part of a run's parameters.

    Args:
        notebook: its path.
        parameters: a run's, which choose among a catalogue's entries; none: all count.
    """
    return reach.code_hash(notebook, package=PACKAGE, parameters=parameters)


def reached(*sources: str) -> list[str]:
    """Definitions of osnb that the sources use, followed through: "osnb.train.fit", sorted."""
    return reach.Reach(PACKAGE, *sources).definitions()


def rooms(*sources: str) -> list[str]:
    """Modules of osnb that the sources import, followed through, sorted."""
    return sorted(reach.Reach(PACKAGE, *sources).modules)


# Runs: one notebook with one set of parameters, in one folder.


@dataclass(frozen=True)
class Run:
    """One execution of a notebook.

    Attributes:
        notebook: its name, without suffix.
        name: of the run.
        parameters: those that its numbers follow from, and `run`.
        directory: where it writes.
        code: hash of the code that it follows from.
    """

    notebook: str
    name: str
    parameters: dict[str, Any]
    directory: Path
    code: str

    def save(
        self, name: str, *, figure=None, table=None, latex="", inputs: Mapping | None = None
    ) -> None:
        """Write an artefact: `name`.svg, .csv, .tex and the stamp `name`.json that explains them.

        The stamp holds what they follow from and the hash of each of them.

        Args:
            name: of the artefact, e.g. figure_2.
            figure: a matplotlib figure, or none.
            table: the frame that the figure draws or the table itself, or none.
            latex: the table as a LaTeX tabular, or nothing.
            inputs: hash of each scores table that it was computed from, by run.
        """
        written = {}
        if figure is not None:
            with self._writing(f"{name}.svg", written) as aside:
                figure.savefig(aside, metadata={"Date": None}, bbox_inches="tight")
        if table is not None:
            with self._writing(f"{name}.csv", written) as aside:
                table.to_csv(aside, index=False, float_format="%.6g", lineterminator="\n")
        if latex:
            with self._writing(f"{name}.tex", written) as aside:
                aside.write_text(latex, encoding="utf8")
        known = {"inputs": dict(inputs or {}), "files": written}
        write_json(self.directory / f"{name}.json", self.stamp() | known)

    @contextmanager
    def _writing(self, name: str, written: dict[str, str]) -> Iterator[Path]:
        """As `writing`, and note the file's hash."""
        with writing(self.directory / name) as aside:
            yield aside
            written[name] = file_hash(aside)

    def stamp(self) -> dict[str, Any]:
        """What the run's files follow from; no clock, commit or device, so equal runs agree."""
        return {
            "notebook": self.notebook,
            "run": self.name,
            "parameters": self.parameters,
            "code": self.code,
        }


def begin(notebook: str, names: Mapping[str, Any]) -> Run:
    """Open the run of `notebook` whose parameters have the values in `names` (globals()).

    The run is called after the parameter `run`. Where params/NOTEBOOK/RUN.yaml exists and a
    value differs from it, the difference joins the name, so that a changed seed never
    overwrites the run it was changed from. Files that another code or other parameters left in
    the folder are moved to its `superseded/`.

    Raises:
        ValueError: a parameter has another type than its default.
    """
    defaults = declared(root() / "notebooks" / f"{notebook}.ipynb")
    parameters = {name: checked(notebook, name, names[name], defaults[name]) for name in defaults}
    name = run_name(notebook, parameters)
    parameters = {key: parameters[key] for key in parameters if key not in LOCAL} | {"run": name}
    code = code_hash(root() / "notebooks" / f"{notebook}.ipynb", parameters)
    directory = out() / "runs" / notebook / name
    begun = {"parameters": parameters, "code": code}
    if _content(directory / "begun.json") != begun:
        _supersede(directory)
        write_json(directory / "begun.json", begun)
    return Run(notebook, name, parameters, directory, code)


def run_name(notebook: str, parameters: Mapping[str, Any]) -> str:
    """NAME, or NAME-seed3-split2 where seed and split differ from the params file of NAME."""
    name = parameters["run"]
    file = root() / "params" / notebook / f"{name}.yaml"
    if not file.is_file():
        return name
    base = declared(root() / "notebooks" / f"{notebook}.ipynb") | params(file)
    return variant(name, base, parameters)


def experiments(notebook: str) -> dict[str, dict[str, Any]]:
    """All parameters that each params file of a notebook describes, by the file's stem."""
    files = sorted((root() / "params" / notebook).glob("*.yaml"))
    book = root() / "notebooks" / f"{notebook}.ipynb"
    defaults = declared(book) if book.is_file() else {}
    return {file.stem: defaults | params(file) for file in files}


def experiment(parameters: Mapping[str, Any], among: Mapping[str, Mapping]) -> str | None:
    """Which experiment a run repeats: the one it is called after, in all but `REPEATS` equal.

    None if there is no such experiment. Then the run is a variant, and no table may take it for
    another seed of what it was varied from.

    Args:
        parameters: of the run.
        among: from `experiments`.
    """
    name = parameters["run"]
    for stem, base in among.items():
        called = name == stem or name.startswith(f"{stem}-")
        if called and all(base.get(k, v) == v for k, v in parameters.items() if k not in REPEATS):
            return stem
    return None


def _content(file: Path) -> Any:
    return json.loads(file.read_text()) if file.is_file() else None


def _supersede(directory: Path) -> None:
    """Move what the folder holds to its `superseded/`, where one generation is kept."""
    old = [file for file in directory.glob("*") if file.name not in {"superseded", "run.json"}]
    if not old:
        return
    shutil.rmtree(directory / "superseded", ignore_errors=True)
    (directory / "superseded").mkdir()
    for file in old:
        file.rename(directory / "superseded" / file.name)


def seed_all(seed: int) -> None:
    """Seed Python, numpy's global generator and, if it is loaded, torch."""
    import random
    import sys

    import numpy as np

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002, for libraries that draw from it
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)
