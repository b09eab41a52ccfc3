"""What a run would be: its params file held against its notebook, before a kernel starts."""

import ast
import difflib
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from osnb import experiment
from osnb.base import stamps, workbook
from osnb.book import runs
from osnb.experiment.layers import SIZES

DEEP = 20  # nested lists and mappings in a params file
LONGEST = 200  # of a run's name, in characters: file systems hold 255, and its lock and aside more
LATER = "later"  # in params/repeats.yaml: not trained by `osnb reproduce` alone
NAMED = f"at most {LONGEST} letters, digits, _ . + = -, the first a letter, a digit or _"


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
    def known(self) -> dict[str, Any]:
        """What run.json says of a run from the first."""
        return {"notebook": self.notebook, "run": self.run, "parameters": self.parameters}

    @property
    def source(self) -> Path:
        """The notebook."""
        return workbook.root() / "notebooks" / f"{self.notebook}.ipynb"

    @property
    def directory(self) -> Path:
        """Where the run writes."""
        return workbook.out() / "runs" / self.notebook / self.run

    @property
    def size(self) -> str | None:
        """Its size; none where the notebook has no such parameter."""
        return self.parameters.get("size")

    @property
    def published(self) -> bool:
        """Whether its small results go to figures/, not those of one's own data."""
        return self.size != "own"

    @property
    def trains(self) -> bool:
        """Whether its notebook trains and writes a scores table."""
        return self.notebook.endswith("_train")

    @property
    def collects(self) -> bool:
        """Whether the notebook reads finished training runs, which only `collect` does."""
        return _collects(self.source)

    @property
    def reads(self) -> str:
        """Pattern of the training notebooks whose results it reads, its paper's, or all of them."""
        digit = self.notebook[0]
        return "*_train" if digit in (runs.CROSS, runs.OWN) else f"{digit}?_*_train"

    @cached_property
    def follows(self) -> dict[str, Any]:
        """What the run's numbers follow from besides inputs, see `runs.follows_from`."""
        return runs.follows_from(self.notebook, self.parameters)

    def code(self) -> str:
        """One digest of the code that the run follows from."""
        return stamps.of(self.follows["goldens"])

    def publish(self) -> list[str]:
        """`runs.publish` to figures/, but for what is no experiment of the workbook."""
        target = workbook.out() / "figures" / self.notebook / self.run
        return runs.publish(self.directory, target) if self.published else []


# What is read from files, once for each version of a file: a batch has thousands of plans.

_declared = workbook.once_a_version(workbook.declared)


@workbook.once_a_version
def _collects(notebook: Path) -> bool:
    trees = map(ast.parse, workbook.code_cells(notebook))
    nodes = (node for tree in trees for node in ast.walk(tree))
    return any(isinstance(node, ast.Attribute) and node.attr == "collect" for node in nodes)


# Checks. Neither papermill nor torch is imported before they have passed.


def plan(file: Path, overrides: Mapping | None = None, content: Mapping | None = None) -> Plan:
    """Hold a params file, and values that replace some of its own, against its notebook.

    Args:
        file: `<any folder>/<notebook>/<run>.yaml`.
        overrides: these join the run's name where they differ from the file; values, or texts,
            which are read as yaml where the default is no text.
        content: in the place of the file's.

    Raises:
        Refused: the file is no mapping of the notebook's parameters to values of their types,
            its `run` is not its own name, there is no such notebook, the notebook has not
            exactly one parameters cell, of literals, or has a cell that is no Python, a value
            names no size, or there is no such experiment, nothing in it reading an override.
    """
    file = Path(file).absolute()
    own, notebook = content or read(file), _notebook(file)
    benchmark = str((own | dict(overrides or {})).get("benchmark", ""))
    if benchmark.endswith(".yaml") and (workbook.out() / benchmark).exists():
        read(workbook.out() / benchmark)
    try:
        defaults = _declared(notebook)
        values = _checked(_laid_over(own, overrides or {}, defaults), defaults, file)
        _collects(notebook)  # every cell is Python
        values |= _placed(defaults | values)
    except (ValueError, SyntaxError, FileNotFoundError) as error:
        lost = getattr(error, "filename", None)
        said = f"{error.strerror}: {lost}" if lost else str(error)
        named = str(file) in said or str(notebook) in said
        raise Refused(said if named else f"{file}: {said}") from None
    if (said := values.get("run")) != file.stem:
        raise Refused(f"{file} needs the line 'run: {file.stem}', its own name; got {said!r}")
    ours = workbook.root() / "params" / notebook.stem / file.name
    base = defaults | (read(ours) if ours != file and ours.is_file() else own)
    values["run"] = experiment.variant(file.stem, base, defaults | values)
    if len(values["run"]) > LONGEST or not re.fullmatch(workbook.PLAIN, values["run"]):
        raise Refused(f"{file} would make the run {values['run']!r}; a name needs {NAMED}")
    return Plan(notebook.stem, values["run"], defaults | values, values)


def _placed(values: Mapping) -> dict[str, str]:
    """Those of `data` and `machine` that would mean other folders in the kernel's, as here.

    The experiment is held against the machine meanwhile, and code of one's own is tried.
    """
    settings = runs.settled(values)[0]
    where = {"machine": "", "data": ""} | values
    machine = experiment.Machine.of(where["machine"], data=where["data"])
    if any(isinstance(part, dict) and ":" in part["name"] for part in settings.values()):
        from osnb.experiment import examined  # torch, which a plan can do without

        # one's own, tried: this alone runs a person's code before a kernel does
        examined.code(experiment.of(values), machine)
    here = {"data": workbook.anywhere(where["data"]), "machine": where["machine"]}
    if not os.path.isabs(machine.cache or "/"):
        cache = os.path.abspath(machine.cache)
        here["machine"] += f" cache={shlex.quote(cache)}"  # of two words the last counts
    return {key: text for key, text in here.items() if text != where[key]}


def repeated(first: Plan) -> list[Plan]:
    """The other seeds or splits of a run that params/repeats.yaml asks for."""
    file = workbook.root() / "params" / first.notebook / f"{first.run}.yaml"
    counts = (of.items() for of in _listed(first) if of != LATER)
    changes = [{key: n} for items in counts for key, count in items for n in range(1, count)]
    return [plan(file, change) for change in changes]


def later(first: Plan) -> bool:
    """Whether params/repeats.yaml leaves a run to those who train the other seeds too."""
    return LATER in _listed(first)


def _listed(first: Plan) -> list[Any]:
    """What params/repeats.yaml says of a run."""
    listed = workbook.root() / "params" / "repeats.yaml"
    said = read(listed) if listed.is_file() else {}
    return [of for name, of in said.items() if fnmatchcase(str(first), name)]


def _laid_over(own: Mapping, overrides: Mapping, defaults: Mapping) -> dict[str, Any]:
    """A file's values and those that replace some; a training's settings go into `overrides`."""
    declared = {k: _typed(k, v, defaults[k]) for k, v in overrides.items() if k in defaults}
    others = {k: str(v) for k, v in overrides.items() if k not in defaults}
    if others and experiment.is_training(defaults):
        return experiment.folded(defaults | own | declared, others)
    return {**own, **declared, **others}


def _notebook(file: Path) -> Path:
    folder, name = workbook.root() / "notebooks", file.parent.name
    path = folder / f"{name}.ipynb"
    if not path.is_file():
        near = _near(name, sorted(path.stem for path in folder.glob("*.ipynb")))
        lacking = f"there is no '{name}'{near}"
        raise Refused(f"the folder of {file} must be called after a notebook; {lacking}")
    return path


def _checked(values: Mapping, defaults: Mapping, file: Path) -> dict[str, Any]:
    for key in values:
        if key not in defaults:
            raise Refused(f"unknown parameter '{key}' for {file}{_near(str(key), defaults)}")
    if "size" in defaults and (size := values.get("size", defaults["size"])) not in SIZES:
        raise Refused(f"size {size!r} of {file} is not one of: {', '.join(SIZES)}")
    return {k: workbook.checked(file.parent.name, k, v, defaults[k]) for k, v in values.items()}


def _typed(name: str, value: Any, default: Any) -> Any:
    """The value of an override."""
    if not isinstance(value, str) or isinstance(default, str):
        return value
    with suppress(yaml.YAMLError, RecursionError, ValueError):
        return yaml.load(value, _Loader)
    raise Refused(f"-p {name} needs a value that yaml can read; got {value[:60]!r}")


def _near(name: str, valid: Iterable[str]) -> str:
    """The end of a sentence: `; did you mean 'x'? valid: x, y`."""
    close = difflib.get_close_matches(name, valid := list(valid), n=1)
    return (f"; did you mean '{close[0]}'?" if close else ";") + f" valid: {', '.join(valid)}"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """The safe loader, which alone would keep the last of two equal keys without a word."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, _ in node.value:
            word = isinstance(key.value, str)
            if not word or key.value in seen:
                wrong = f"'{key.value}' is given twice" if word else "a name must be one word"
                raise yaml.constructor.ConstructorError(None, None, wrong, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def read(file: Path) -> dict[str, Any]:
    """The content of a params file.

    Raises:
        Refused: it is no mapping of names to values, each once; the message says where.
    """
    if not file.exists():
        there = difflib.get_close_matches(file.stem, [x.stem for x in file.parent.glob("*.yaml")])
        near = f"; the nearest: {', '.join(there)}" if there else ""
        raise Refused(f"there is no params file {file}{near}")
    if not file.is_file():
        raise Refused(f"{file} cannot be read as a params file: it is no file")
    return _parsed(file)


def _fault(text: str) -> str:
    """What of a yaml text could grow without end when it is read; empty if nothing does."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            return f"uses *{event.anchor}, a name for other lines, in line {line}"
        if depth > DEEP:
            return "is nested too deeply"
    return ""


@workbook.once_a_version
def _parsed(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf8")
        fault = _fault(text)
        content = None if fault else yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise Refused(f"{file} is no valid yaml{line}: {problem}") from None
    except (OSError, ValueError) as error:  # of a number or a date that is none, too
        text = "it is no text in UTF-8" if isinstance(error, UnicodeError) else str(error)
        reason = getattr(error, "strerror", text)
        raise Refused(f"{file} cannot be read as a params file: {reason}") from None
    if fault:
        raise Refused(f"{file} {fault}; it needs lines of 'name: value'")
    if not content:
        raise Refused(f"{file} is empty; it needs lines such as 'run: {file.stem}'")
    if not isinstance(content, dict):
        raise Refused(f"{file} needs lines of 'name: value'; it holds a {type(content).__name__}")
    return content
