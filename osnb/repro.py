"""Where a run lives, what it depends on, and how its files are written."""

import ast
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent
LOCAL = {"run", "data", "workers"}  # parameters that change no number: names, places, threads
DATA = {"hierarchy": "data", "tables": "published"}  # rooms that read files of the package


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


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A path to write to that becomes `path` only when the block ends well.

    The file is written beside `path`, synced and renamed, so that a reader sees the old
    file or the new one, never a part; on an error the old file stays and the part is removed.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    os.close(handle)
    aside = Path(name)
    try:
        yield aside
        with aside.open("rb+") as file:
            os.fsync(file.fileno())
        aside.chmod(0o644)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def digest(*parts: str | bytes | Path) -> str:
    """sha256, in hex, of texts, bytes and the contents of files, in the order given."""
    total = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else part
        data = data.encode() if isinstance(data, str) else data
        total.update(len(data).to_bytes(8, "big"))  # so that ("ab", "c") is not ("a", "bc")
        total.update(data)
    return total.hexdigest()


def file_hash(path: Path) -> str:
    """sha256 of a file in hex, as the command sha256sum prints it."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_json(path: Path, content: Mapping) -> None:
    """Write `content` as indented json with sorted keys, aside and renamed."""
    with writing(path) as aside:
        aside.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


# Notebooks: what a notebook declares, and the code that it depends on.


def code_cells(notebook: Path, *, parameters: bool = True) -> list[str]:
    """The source of each code cell, injected parameters left out.

    Args:
        notebook: its path.
        parameters: whether the cell tagged `parameters` is wanted too.
    """
    skipped = {"injected-parameters"} | (set() if parameters else {"parameters"})
    cells = json.loads(Path(notebook).read_text(encoding="utf8"))["cells"]
    return [
        "".join(cell["source"])
        for cell in cells
        if cell["cell_type"] == "code" and not skipped & set(cell["metadata"].get("tags", []))
    ]


def declared(notebook: Path) -> dict[str, Any]:
    """Names and defaults of the notebook's one cell tagged `parameters`.

    Raises:
        ValueError: there is no such cell, or more than one, or a default is no literal.
    """
    cells = [
        "".join(cell["source"])
        for cell in json.loads(Path(notebook).read_text())["cells"]
        if "parameters" in cell["metadata"].get("tags", [])
    ]
    if len(cells) != 1:
        raise ValueError(
            f"{Path(notebook).name} needs one cell tagged 'parameters'; it has {len(cells)}"
        )
    values = {}
    for statement in ast.parse(cells[0]).body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
                values[name] = _literal(notebook, name, value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                values[name] = _literal(notebook, name, value)
    return values


def _literal(notebook: Path, name: str, node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise ValueError(
            f"{Path(notebook).name}: the default of '{name}' must be a literal; "
            f"got {ast.unparse(node)}"
        ) from None


def rooms(*sources: str) -> list[str]:
    """Modules of osnb that the sources import, followed through, sorted."""
    found: set[str] = set()
    queue = list(sources)
    while queue:
        for module in _imported(queue.pop()) - found:
            found.add(module)
            queue.append(_module_path(module).read_text())
    return sorted(found)


def _imported(source: str) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=aliases):
                names |= {alias.name for alias in aliases}
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                names |= {module} | {f"{module}.{alias.name}" for alias in aliases}
    return {name for name in names if name.split(".")[0] == "osnb" and _module_path(name)}


def _module_path(module: str) -> Path | None:
    base = PACKAGE.joinpath(*module.split(".")[1:])
    candidates = (base.with_suffix(".py"), base / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)


@cache
def _meaning(path: Path) -> str:
    """The code of a module without comments and docstrings, which change no result."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and (
            ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:]
    return ast.dump(tree)


def code_hash(notebook: Path) -> str:
    """Hash of what a notebook computes: its code cells and every room that they reach.

    Comments, docstrings, text cells and the parameters' defaults do not count: defaults are
    part of a run's parameters.
    """
    sources = code_cells(notebook, parameters=False)
    cells, modules = [ast.dump(ast.parse(source)) for source in sources], rooms(*sources)
    files = [
        file
        for module in modules
        for file in sorted(PACKAGE.joinpath(DATA.get(module.split(".")[-1], "none")).rglob("*"))
        if file.is_file()
    ]
    return digest(*cells, *modules, *(_meaning(_module_path(m)) for m in modules), *files)


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

    def save(self, name: str, *, figure=None, table=None, inputs: Mapping | None = None) -> None:
        """Write an artefact: `name`.svg, `name`.csv and the stamp `name`.json that explains them.

        Args:
            name: of the artefact, e.g. figure_2.
            figure: a matplotlib figure, or none.
            table: the frame that the figure draws or the table itself, or none.
            inputs: hash of each scores table that it was computed from, by run.
        """
        if figure is not None:
            with writing(self.directory / f"{name}.svg") as aside:
                figure.savefig(aside, metadata={"Date": None}, bbox_inches="tight")
        if table is not None:
            with writing(self.directory / f"{name}.csv") as aside:
                table.to_csv(aside, index=False, float_format="%.6g", lineterminator="\n")
        write_json(self.directory / f"{name}.json", self.stamp() | {"inputs": dict(inputs or {})})

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
    code = code_hash(root() / "notebooks" / f"{notebook}.ipynb")
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


def variant(name: str, base: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """`name` and what tells `parameters` from those of `base`: NAME-seed3-split2."""
    changed = [key for key in parameters if key not in LOCAL and parameters[key] != base[key]]
    return "-".join([name, *(f"{key}{parameters[key]}".replace("/", "_") for key in changed)])


def params(file: Path) -> dict[str, Any]:
    """The content of a params file, read with the safe loader."""
    import yaml

    return yaml.safe_load(Path(file).read_text()) or {}


def checked(notebook: str, name: str, value: Any, default: Any) -> Any:
    """`value` if it has the type of the parameter's default; a whole number serves as float."""
    if isinstance(default, float) and type(value) is int:
        return float(value)
    if type(value) is not type(default):
        hint = ""
        if isinstance(value, str) and isinstance(default, float):
            hint = " (yaml reads 1e-3 as text; write 1.0e-3)"
        raise ValueError(
            f"parameter '{name}' of {notebook} is {type(default).__name__}, such as {default!r}; "
            f"got {value!r}{hint}"
        )
    return value


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
