"""One params file: checked against its notebook before a kernel starts, then executed.

`runs/<notebook>/<run>/run.json` says how it went and is the only source of status.
"""

import ast
import difflib
import json
import logging
import re
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from osnb import record, repro
from osnb.publish import publish, results

QUIET = "--log-level=50"  # what a kernel complains of is in its notebook
TAIL = 15  # lines of a failing cell's output that run.json keeps


class Refused(ValueError):
    """Input for which nothing is started; the message is a sentence for the person."""


@dataclass(frozen=True)
class Plan:
    """One run that could be made.

    Attributes:
        notebook: its name, without suffix.
        run: name of the run.
        parameters: the value of every parameter that the notebook declares.
        given: those of them that papermill injects.
    """

    notebook: str
    run: str
    parameters: dict[str, Any]
    given: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.notebook}/{self.run}"

    @property
    def source(self) -> Path:
        return repro.root() / "notebooks" / f"{self.notebook}.ipynb"

    @property
    def directory(self) -> Path:
        return repro.out() / "runs" / self.notebook / self.run

    @property
    def figures(self) -> Path:
        return repro.out() / "figures" / self.notebook / self.run

    @property
    def trains(self) -> bool:
        return self.notebook.endswith("_train")

    @property
    def collects(self) -> bool:
        """Whether the notebook reads finished training runs, which only `collect` does."""
        trees = map(ast.parse, repro.code_cells(self.source))
        nodes = (node for tree in trees for node in ast.walk(tree))
        return any(isinstance(node, ast.Attribute) and node.attr == "collect" for node in nodes)


# Checks. Neither papermill nor torch is imported before they have passed.


def plan(file: Path, overrides: Mapping[str, Any] | None = None) -> Plan:
    """Hold a params file, and values that replace some of its own, against its notebook.

    Args:
        file: `<any folder>/<notebook>/<run>.yaml`.
        overrides: these join the run's name where they differ from the file.

    Raises:
        Refused: the file is no mapping of the notebook's parameters to values of their types,
            its `run` is not its own name, there is no such notebook, or the notebook has not
            exactly one parameters cell, of literals.
    """
    file = Path(file).absolute()
    own, overrides = _read(file), dict(overrides or {})
    notebook = _notebook(file)
    try:
        defaults = repro.declared(notebook)
        values = _checked(own | overrides, defaults, file)
    except (ValueError, SyntaxError) as error:
        raise Refused(str(error)) from None
    if values.get("run") != file.stem:
        raise Refused(
            f"{file} needs the line 'run: {file.stem}', its own name; got {values.get('run')!r}"
        )
    ours = repro.root() / "params" / notebook.stem / file.name
    base = defaults | (repro.params(ours) if ours.is_file() else own)
    values["run"] = repro.variant(file.stem, base, defaults | values)
    return Plan(notebook.stem, values["run"], defaults | values, values)


def _notebook(file: Path) -> Path:
    folder = repro.root() / "notebooks"
    path = folder / f"{file.parent.name}.ipynb"
    if not path.is_file():
        valid = sorted(path.stem for path in folder.glob("*.ipynb"))
        raise Refused(
            f"the folder of {file} must be called after a notebook; there is no "
            f"'{file.parent.name}'{_near(file.parent.name, valid)}"
        )
    return path


def _checked(values: Mapping, defaults: Mapping, file: Path) -> dict[str, Any]:
    for key in values:
        if key not in defaults:
            raise Refused(f"unknown parameter '{key}' for {file}{_near(str(key), defaults)}")
    return {k: repro.checked(file.parent.name, k, v, defaults[k]) for k, v in values.items()}


def _near(name: str, valid: Iterable[str]) -> str:
    """The end of a sentence: `; did you mean 'x'? valid: x, y`."""
    close = difflib.get_close_matches(name, valid := list(valid), n=1)
    return (f"; did you mean '{close[0]}'?" if close else ";") + f" valid: {', '.join(valid)}"


class _Loader(yaml.SafeLoader):
    """The safe loader, which alone would keep the last of two equal keys without a word."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                problem = f"'{key.value}' is given twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value if isinstance(key.value, str) else id(key))
        return super().construct_mapping(node, deep)


def _read(file: Path) -> dict[str, Any]:
    try:
        content = yaml.load(file.read_text(encoding="utf8"), _Loader)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", "it is no text in UTF-8")
        raise Refused(f"{file} cannot be read as a params file: {reason}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise Refused(f"{file} is no valid yaml{line}: {problem}") from None
    if not content:
        raise Refused(f"{file} is empty; it needs lines such as 'run: {file.stem}'")
    if not isinstance(content, dict):
        raise Refused(f"{file} needs lines of 'name: value'; it holds a {type(content).__name__}")
    return content


# Execution, and what a run was made from.


def inputs(plan: Plan) -> dict[str, str]:
    """Hash of every scores table that the notebook collects, by run; {} if it collects none."""
    if not plan.collects:
        return {}
    import pyarrow.parquet as pq

    found = {}
    # in the order of tables.collect: a run in runs/ takes the place of its published copy
    for base in (repro.root() / "figures", repro.out() / "figures", repro.out() / "runs"):
        for path in sorted(base.glob(f"{plan.notebook[0]}?_*_train/*/scores.parquet")):
            try:
                stamp = json.loads(pq.read_schema(path).metadata[b"osnb"])
            except (ValueError, KeyError, TypeError):  # not whole: its reader will say so
                stamp = {"parameters": plan.parameters, "run": path.parent.name}
            if stamp["parameters"]["size"] == plan.parameters["size"]:
                found[stamp["run"]] = repro.file_hash(path)
    return found


def done(plan: Plan) -> bool:
    """Whether the run ended well with this code, these parameters and inputs, and is all there."""
    found = record.read(plan.directory)
    return (
        found is not None
        and found["state"] == "done"
        and (plan.directory / "executed.ipynb").is_file()
        and found.get("outputs") == results(plan.directory)
        and all(found.get(key) == value for key, value in _content(plan).items())
    )


def _content(plan: Plan) -> dict[str, Any]:
    code = repro.code_hash(plan.source)
    return {"parameters": plan.parameters, "code": code, "inputs": inputs(plan)}


def execute(plan: Plan) -> dict[str, Any]:
    """Execute the notebook with the plan's parameters and say in run.json how it went.

    A failed run keeps its executed notebook too, so that people can look at it.

    Returns:
        The content of run.json; `state` is done or failed.
    """
    content = {"notebook": plan.notebook, "run": plan.run} | _content(plan)
    content |= record.circumstances()
    record.write(plan.directory, content | {"state": "running"})
    start = time.monotonic()
    end = {"state": "interrupted"}
    try:
        end = _papermill(plan)
    finally:
        spent = {"finished": record.now(), "seconds": round(time.monotonic() - start, 1)}
        content |= end | spent | {"outputs": results(plan.directory)}
        record.write(plan.directory, content)
    return content


def _papermill(plan: Plan) -> dict[str, Any]:
    """What run.json says of the end: the state and, of a failed run, the error."""
    from papermill.execute import execute_notebook

    logging.getLogger("papermill").setLevel(logging.CRITICAL)  # run.json and the caller tell
    # beside the run's folder, which the notebook clears of what other code left there
    aside = plan.directory.with_name(f".{plan.run}.ipynb")
    for old in (aside, plan.directory / "executed.ipynb"):
        old.unlink(missing_ok=True)
    options = {"progress_bar": False, "kernel_name": "python3", "language": "python"}
    try:
        with TemporaryDirectory(prefix="osnb-") as sockets:
            options |= {"start_timeout": 120, "kernel_manager_class": _kernel_manager(sockets)}
            execute_notebook(plan.source, aside, plan.given, cwd=plan.source.parent, **options)
        if plan.trains and not (plan.directory / "scores.parquet").is_file():
            raise FileNotFoundError(f"{plan} wrote no scores.parquet in {plan.directory}")
        return {"state": "done", "unpublished": publish(plan.directory, plan.figures)}
    except Exception as error:
        return {"state": "failed", "error": _explained(error, aside)}
    finally:
        if _cells(aside):
            aside.replace(plan.directory / "executed.ipynb")
        aside.unlink(missing_ok=True)  # a part of a notebook, on a full disk


def _kernel_manager(sockets: str) -> type:
    """A manager whose kernel is this Python, whatever kernels and start-up files a person has.

    It talks through files in the folder `sockets`: no port, and no kernel answers for another.
    """
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", QUIET]
    env = {
        "IPYTHONDIR": str(repro.out() / "runs" / ".ipython"),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    }

    class ThisPython(AsyncKernelManager):
        def __init__(self, **options):
            super().__init__(**options, transport="ipc", ip=f"{sockets}/kernel")

        kernel_spec = KernelSpec(argv=command, env=env, display_name="Python 3", language="python")

    return ThisPython


def _explained(error: Exception, executed: Path) -> dict[str, Any]:
    """The error, and the cell that was running with the last lines of its output."""
    name, value = getattr(error, "ename", type(error).__name__), getattr(error, "evalue", error)
    explained = {"name": name, "value": str(value), "cell": None, "tail": []}
    code = [cell for cell in _cells(executed) if cell["cell_type"] == "code"]
    for number, cell in enumerate(code, start=1):
        if cell["metadata"].get("papermill", {}).get("start_time"):
            parts = ["".join(out.get("text", "")) for out in cell["outputs"]]
            parts += [line for out in cell["outputs"] for line in out.get("traceback", [])]
            lines = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(parts)).splitlines()
            explained |= {"cell": number, "tail": lines[-TAIL:]}
    return explained


def _cells(notebook: Path) -> list[dict[str, Any]]:
    """The cells of a notebook, none if there is no whole one."""
    try:
        return json.loads(notebook.read_text())["cells"]
    except (OSError, ValueError):
        return []
