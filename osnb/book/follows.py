"""What a notebook's results follow from besides settings and inputs: names, with a digest each.

A golden, such as `loss/edl`, stands for what numerical code computes (see `osnb.book.goldens`), so
no edit of words makes a training stale. A notebook's cells, and of a notebook that trains nothing
the modules of `SHOWN` that its names lead to, are compared as parsed code: without comments,
docstrings, what is printed, and the texts of errors.
"""

import ast
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from osnb.base import workbook
from osnb.base.workbook import digest, once_a_version
from osnb.experiment.layers import STAGES

LONG = 200  # letters that a name of `names` never has
CELLS = "cells"  # a notebook's own code
# before the digest of all numerical code, for what has no golden; with the digest of one behind it
# for what was made before anybody had held that code against the golden
UNREHEARSED = "unrehearsed "
EARLIER = 19  # of the codes that were held, how many are kept besides the last
# what results are compared with as code: plots and evidence, and what no golden holds whole
SHOWN = ("osnb.plots", "osnb.evidence", "osnb.protocols", "osnb.base.tables", "osnb.base.labels")
SHOWN += ("osnb.datasets.small", "osnb.datasets.quickdraw", "osnb.teach.capstone")
NUMERICAL = ("base", "protocols", "datasets", "models", "losses.py", "train", "scores")
NUMERICAL += ("metrics", "experiment")
# goldens that a setting of an experiment names, all words of it
PARTS = {"protocol": "protocol", "external": "protocol", "reader": "reader", "also": "reader"}
PARTS |= {kind: kind for kind in ("network", "normalise", "loss", "schedule", "optimizer")}
PARTS |= {"rules": "rules", "watch": "watch", "validation": "validation", "precision": "option"}
PARTS |= {"augmentation": "augment", "training": "method", "answer": "method"}
RULES = ("target", "max_softmax", "max_logit", "energy", "negative_entropy", "feature_norm")
FITTED = dict.fromkeys(("fitted", "chosen"), ("openmax", "mahalanobis", "odin"))
FITTED |= {"latent": ("openmax",)}
METHODS = {"outlier": "oe", "plain": "softmax", "one": "softmax"}  # with other names than parts
# what computes nothing that no other golden holds
NOTHING = {"regime/baseline", "augment/none", "rules/plain", "watch/held_out", "method/released"}
NOTHING |= {"method/mirrored"}  # its rule says it
NOTHING |= {"validation/held_out", "option/float32"}  # as in every rehearsal
SETS = {"also": "sets/far", "external": "sets/external", "means": "option/means"}
LOOKED_AT = ("protocol", "reader", "network", "normalise", "rule")  # of weights that are there
LOOKED_AT += ("validation", "sets")
ASIDE = "osnb.plots.widgets"  # it only shows


class Code(NamedTuple):
    """Parsed code.

    Attributes:
        text: what of it computes.
        imports: by name, what it stands for of osnb.
        chains: what it uses of osnb, each with its first attribute: osnb.plots.bars.
        names: identifiers that it uses, and attributes.
        words: texts in it.
    """

    text: str
    imports: dict[str, str]
    chains: set[str]
    names: set[str]
    words: set[str]


def names(notebook: str, parameters: Mapping, settings: Mapping, columns: Mapping) -> list[str]:
    """Names of everything that a run's results follow from.

    Args:
        notebook: its name.
        parameters: of the run.
        settings, columns: of a training's Experiment; empty for other notebooks.

    Raises:
        ValueError: a file that the code is in cannot be read; the message names it.
    """
    if notebook.endswith("_train"):
        released = columns.get("method") == "released"  # no cell made it
        return [*([] if released else [CELLS]), *of_settings(settings, columns)]
    cells = _cells(notebook)
    files = _reached(cells)
    codes = [cells, *map(_code, files)]
    used, words = (set().union(*parts) for parts in zip(*(x[3:] for x in codes), strict=True))
    said = {x for value in parameters.values() if isinstance(value, str) for x in value.split()}
    said |= _said(cells).union(*(_said(_code(x)) for x in files if "teach" in x.parts))
    found = [CELLS, *(file.relative_to(workbook.PACKAGE.parent).as_posix() for file in files)]
    for golden in goldens():
        kind, _, short = golden.partition("/")
        found += [golden] if short in said or (kind == "measure" and short in used) else []
    published = sorted((workbook.PACKAGE / "published").glob("*/"))
    found += [f"osnb/published/{folder.name}" for folder in published if folder.name in words]
    return found + (["osnb/data"] if "hierarchy" in used else [])


def _said(part: Code) -> set[str]:
    """What code says of goldens: its texts, and what it uses of osnb; no variable of its own."""
    return part.words | {chain.rpartition(".")[2] for chain in part.chains}


def now(name: str, notebook: str, there: Mapping[str, str]) -> str:
    """What stands behind a name today, as a digest; empty if there is nothing of that name.

    Args:
        name: of `names`.
        notebook: whose cells are meant.
        there: goldens that count; in place of others all numerical code.
    """
    path = workbook.PACKAGE.parent / name
    if name == CELLS:
        return digest(_cells(notebook).text)
    if name.startswith("osnb/"):
        if ".." in name or len(name) > LONG:  # of a strange archive
            return ""
        files = [path] if path.is_file() else sorted(x for x in path.rglob("*") if x.is_file())
        return digest(*(_code(x).text if x.suffix == ".py" else x for x in files)) if files else ""
    golden = there.get(name)
    return golden or f"{UNREHEARSED}{numerical()} {goldens().get(name, '')}".strip()


def changed(stamp: Mapping[str, Any]) -> list[str]:
    """The names in a stamp, or in a run.json, behind which something else stands today.

    Raises:
        ValueError: a file that the code is in cannot be read; the message names it.
    """
    notebook, there, found = stamp["notebook"], goldens(), []
    for name, then in stamp["goldens"].items():
        if str(then).startswith(UNREHEARSED):
            _, parsed, golden, *_ = f"{then}  ".split(" ")
            held_since = golden and golden == there.get(name) and parsed in _held_codes()
            stands = parsed == numerical() or held_since
        else:
            stands = now(name, notebook, there) == then
        found += [] if stands else [name]
    return found


def goldens() -> dict[str, str]:
    """Digest of each golden by name, from tests/golden."""
    pairs = [(x.stem, _json(x)) for x in sorted(held().parent.glob("*.json"))]
    return {f"{kind}/{x}": entry["digest"] for kind, of in pairs for x, entry in of.items()}


def held() -> Path:
    """The file that says for which numerical code the goldens were last found to hold.

    It has the digest of the code as parsed, behind it that of its bytes, which takes no second, and
    the digests of earlier code, as parsed, for which these same goldens were found to hold.
    """
    return workbook.root() / "tests" / "golden" / "held.txt"


def hold() -> bool:
    """Whether goldens stand for today's numerical code; asked once by each process.

    Where nobody has held them against it, what is made rests on that code alone, whole.
    """
    return not held().is_file() or _hold(held())


@cache
def _hold(file: Path) -> bool:
    lines = file.read_text(encoding="utf8").split()
    return digest(*_numerical()) in lines[1:2] or numerical() in lines[:1] + lines[2:]


def of_settings(settings: Mapping[str, Any], columns: Mapping[str, Any]) -> list[str]:
    """The goldens that a training uses, as its settings name them."""
    if not settings:
        return []
    chosen = {k: v["name"] if isinstance(v, Mapping) else v for k, v in settings.items()}
    found = {f"{kind}/{columns[kind]}" for kind in ("method", "regime")}
    words = [(part, x) for kind, part in PARTS.items() for x in str(chosen.get(kind, "")).split()]
    for part, name in words:
        if ":" not in name:  # a file of one's own is in the settings, with its digest
            found.add(f"{part}/{METHODS.get(name, name) if part == 'method' else name}")
    found |= {golden for setting, golden in SETS.items() if settings.get(setting)}
    if STAGES & settings["training"].keys():
        found.add(f"stage/{chosen['training']}")
    if settings["loss"].get("smoothing") and chosen["loss"] == "softmax":
        found.add("loss/smoothed")
    fitted = FITTED.get(chosen["rules"], ())
    answer = (chosen["answer"],) if chosen["answer"] != "one" else ()
    if chosen["training"] == "released":  # nothing was trained here
        found = {name for name in found if name.partition("/")[0] in LOOKED_AT}
    return sorted((found | {f"rule/{x}" for x in (*RULES, *fitted, *answer)}) - NOTHING)


def note(*, afresh: bool = False) -> None:
    """Say in that file that the goldens hold for today's code; `afresh`, that they are others."""
    earlier = [] if afresh else [parsed for parsed in _held_codes() if parsed != numerical()]
    lines = [numerical(), digest(*_numerical()), *earlier[:EARLIER]]
    workbook.write_text(held(), "".join(f"{line}\n" for line in lines))
    _hold.cache_clear()


def _held_codes() -> list[str]:
    """Digests of the codes, as parsed, that today's goldens were found to hold for; last first."""
    lines = held().read_text(encoding="utf8").split() if held().is_file() else []
    return lines[:1] + lines[2:]  # the second is of bytes


def numerical() -> str:
    """Digest of the code of the rooms that goldens stand for, as parsed."""
    return digest(*(_code(file).text for file in _numerical()))


def _numerical() -> list[Path]:
    places = [workbook.PACKAGE / room for room in NUMERICAL]
    files = [file for place in places for file in (sorted(place.rglob("*.py")) or [place])]
    return [file for file in files if file.is_file()]


# Code as it is parsed, once for each version of a file.


_json = once_a_version(lambda file: json.loads(file.read_text(encoding="utf8")))


@once_a_version
def _code(file: Path) -> Code:
    try:
        return code(file.read_text(encoding="utf8"))
    except SyntaxError as error:
        raise ValueError(f"{file}, line {error.lineno}: {error.msg}") from None


def _cells(notebook: str) -> Code:
    file = workbook.root() / "notebooks" / f"{notebook}.ipynb"
    return _of_cells(file) if file.is_file() else code("")


@once_a_version
def _of_cells(file: Path) -> Code:
    """Of a training's cells, those up to the first that saves its results: the others teach."""
    cells = workbook.code_cells(file, parameters=False)
    if file.stem.endswith("_train"):
        saving = [i + 1 for i, cell in enumerate(cells) if "save" in code(cell).names]
        cells = cells[: min(saving, default=None)]
    return code("\n".join(cells))


def code(text: str) -> Code:
    """What there is to know of a module's text."""
    tree = _Silent().visit(ast.parse(text))
    nodes, imports, chains, used = list(ast.walk(tree)), {}, set(), set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "osnb":
            imports |= {x.asname or x.name: f"{node.module}.{x.name}" for x in node.names}
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in imports:
                chains.add(f"{imports[name]}.{attr}")
                used.add(attr)
            case ast.Attribute(attr=name) | ast.Name(id=name):
                used.add(name)
    constants = (node.value for node in nodes if isinstance(node, ast.Constant))
    words = {value for value in constants if isinstance(value, str)}
    return Code(ast.unparse(tree), imports, chains | {*imports.values()}, used, words)


class _Silent(ast.NodeTransformer):
    """Takes away what computes nothing: docstrings, what is printed, and the texts of errors."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        match node.value:
            case ast.Constant() | ast.Call(func=ast.Name(id="print")):
                return ast.Pass()
        return self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        for inner in ast.walk(node):
            if isinstance(inner, ast.JoinedStr):
                inner.values = []
            elif isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                inner.value = ""
        return node


def _reached(cells: Code) -> list[Path]:
    """Modules of `SHOWN` that a notebook's names lead to, followed through, sorted."""
    found: set[Path] = set()
    waiting = [cells]
    while waiting:
        for chain in waiting.pop().chains:
            file = _file_of(chain)
            if file and file not in found:
                found.add(file)
                waiting.append(_code(file))
    return sorted(found)


def _file_of(chain: str) -> Path | None:
    """The module that a chain ends in, re-exports followed; none outside of `SHOWN`."""
    if not chain.startswith(SHOWN) or chain.startswith(ASIDE):
        return None
    base, parts = workbook.PACKAGE, chain.split(".")[1:]
    for part, following in zip(parts, [*parts[1:], ""], strict=True):
        base = base / part
        if (file := base.with_suffix(".py")).is_file():
            return file
        inner = base / (following or "__init__")
        if not (inner.is_dir() or inner.with_suffix(".py").is_file()):
            init = base / "__init__.py"
            target = _code(init).imports.get(following) if init.is_file() else None
            return _file_of(target) if target else init
    return None
