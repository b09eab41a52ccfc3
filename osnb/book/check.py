"""The rules that a program can hold notebooks and params files to; what is broken, a sentence each.

A rule of notebooks takes a `Book` and yields what breaks it, beginning with the sentence.
"""

import ast
import base64
import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from osnb.base import workbook
from osnb.book.run import Refused, plan

MEASURED = r"Measured: about ([\d.]+) seconds? and ([\d.]+) GB on \w[^.]*\."
SECTIONS = ["## Paper and ours", "## Exercises", "## Three take-aways", "## References", "## Quiz"]
AFTER = ("## Three take-aways", "## Quiz")  # what follows the body
EXERCISE = r"^\d\. \*(read|change|build)\*(.*?)(?=^\d\. |\Z)"
SOLUTION, HIDDEN = "### BEGIN SOLUTION", "### BEGIN HIDDEN TESTS"
MOST, SHOWN = 12, 6  # parameters, and those before the comment `# advanced`
LINES, IMAGE = 15, 200_000  # of a cell; bytes
UNSTABLE = {
    "an absolute path": r"(?<![\w.:/<])/(?:[\w.-]+/)+[\w.-]+",
    "a date": r"\b20\d\d-\d\d-\d\d\b",
    "a clock": r"\b\d\d:\d\d:\d\d\b",
    "a random id": r'id="T_[0-9a-f]{5}',
    "a progress bar": r"\d+%\||it/s",
    "a fourth decimal": r"\d\.\d{4,}",
}


class Book:
    """A notebook to be checked: its cells, the source of each as one text."""

    def __init__(self, path: Path):
        self.path, self.text = path, path.read_text(encoding="utf8")
        self.content, self.cells = json.loads(self.text), workbook.cells(path)
        self.code = [cell for cell in self.cells if cell["cell_type"] == "code"]
        self.words = "\n".join(x["source"] for x in self.cells if x["cell_type"] == "markdown")
        starts = (i for i, x in enumerate(self.cells) if x["source"].startswith(AFTER))
        self.body = self.cells[: next(starts, len(self.cells))]

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Value of each parameter."""
        return workbook.declared(self.path)

    @cached_property
    def trees(self) -> list[ast.Module]:
        """Each code cell, parsed."""
        return [ast.parse(cell["source"]) for cell in self.code]


def everything() -> list[Path]:
    """The project's notebooks and params files."""
    root = workbook.root()
    return sorted([*root.glob("notebooks/*.ipynb"), *root.glob("params/*/*")])


def check(files: Iterable[Path]) -> Iterator[str]:
    """What is wrong with notebooks and params files, each line beginning with the file's name."""
    alike: dict[str, Path] = {}
    for file in map(Path, files):
        wrong = _notebook(file) if file.suffix == ".ipynb" else _params(file, alike)
        try:
            yield from (f"{file.parent.name}/{file.name}: {what}" for what in wrong)
        except (ValueError, SyntaxError, KeyError) as error:
            yield f"{file.parent.name}/{file.name}: cannot be read: {error}"


def _notebook(file: Path) -> Iterator[str]:
    book = Book(file)
    if not book.cells:
        yield "it has no cells"
        return
    for rule in RULES:
        yield from rule(book)


def _params(file: Path, alike: dict[str, Path]) -> Iterator[str]:
    """A params file is one experiment that its notebook understands, and says what it costs."""
    try:
        planned = plan(file)
    except Refused as error:
        yield str(error)
        return
    content = f"{planned.notebook} {sorted((planned.parameters | {'run': ''}).items())}"
    lines = file.read_text(encoding="utf8").splitlines()
    comment = " ".join(takewhile(lambda line: line.startswith("#"), lines))
    size = planned.parameters.get("size", "")
    if file.suffix != ".yaml":
        yield "a params file is called .yaml"
    if alike.setdefault(content, file) != file:
        yield f"repeats {alike[content].name}"
    if file.stem.split("_")[0] != size:
        yield f"its name begins with its size; that is {size}"
    if not re.search(r"\b(CPU|GPU)s?\b", comment):
        yield f"no device in its first comment: {comment!r}"
    if not re.search(r"\b(second|minute|hour|day|week)s?\b|not measured", comment):
        yield f"no time in its first comment: {comment!r}"
    if planned.trains and "size" not in workbook.params(file):
        yield "a training run says its size, because results are collected by it"


# Anatomy


def _length(book: Book) -> Iterator[str]:
    body = [cell for cell in book.body if "touch.show(" not in cell["source"]]  # one line each
    kinds = [cell["cell_type"] for cell in body]
    if not 20 <= len(kinds) <= 35:
        yield f"20 to 35 cells before the take-aways; got {len(kinds)}"
    if not 0.35 <= (share := kinds.count("markdown") / max(len(kinds), 1)) <= 0.65:
        yield f"about half of the cells are text; got {share:.2f}"


def _top(book: Book) -> Iterator[str]:
    text = book.cells[0]["source"]
    if not re.match(r"# [^#\n]+: [^\n]+\n\n\S", text):
        yield "the first cell begins with '# Section: claim' and a paragraph"
    for head in ("**You will learn**", "**You need**"):
        if head not in text:
            yield f"the first cell lacks {head}"
    costs = re.search(MEASURED, " ".join(text.split()))
    if not costs or float(costs[1]) > 60 or float(costs[2]) > 2:
        yield "the first cell says 'Measured: about N seconds and N GB on ...', at most 60 and 2"


def _sections(book: Book) -> Iterator[str]:
    titles = [line for line in book.words.splitlines() if line.startswith("## ")]
    if titles[-5:] != SECTIONS:
        yield f"the last five sections are {', '.join(SECTIONS)}; got {', '.join(titles[-5:])}"
    if not re.search(r"\]\(https://(doi|arxiv)\.org/", book.words.partition(SECTIONS[-2])[2]):
        yield "the references link to a DOI or to arXiv"
    asked = [i for i, cell in enumerate(book.body) if "**Predict" in cell["source"]]
    kinds = "".join(cell["cell_type"][0] for cell in book.body)
    if sum(book.body[i]["source"].count("**Predict") for i in asked) < 2:
        yield "the reader predicts at least twice"
    if not all(re.search("c.*m", kinds[i:]) for i in asked):
        yield "a prediction stands before a cell that is run, and an observation after it"


# Exercises


def _exercises(book: Book) -> Iterator[str]:
    text = book.words.partition("## Exercises")[2].partition(SECTIONS[2])[0]
    asked = re.findall(EXERCISE, text, re.M | re.S)
    kinds = [kind for kind, _ in asked]
    checks = sum(cell["source"].count("exercise.check(") for cell in book.code)
    if not 3 <= len(kinds) <= 5 or "build" not in kinds or checks != kinds.count("build"):
        yield "three to five exercises, one of them a build, each of which exercise.check checks"
    for kind, task in asked:
        if kind != "build" and "*Check:*" not in task:
            yield f"an exercise to {kind} says how to tell a right answer: *Check:*"


def _graded(book: Book) -> Iterator[str]:
    import nbformat
    from nbgrader.nbgraderformat.v3 import MetadataValidatorV3

    try:
        MetadataValidatorV3().validate_nb(nbformat.from_dict(book.content))
    except Exception as error:  # several, of nbgrader and jsonschema
        yield f"nbgrader refuses its cells: {str(error).partition(chr(10))[0]}"
        return
    for cell in book.cells:
        known = cell["metadata"].get("nbgrader", {"solution": False, "grade": False})
        marks = {"solution": SOLUTION in cell["source"], "grade": HIDDEN in cell["source"]}
        if any(known[key] != there for key, there in marks.items()):
            yield f"nbgrader's metadata and regions agree; not in: {_first(cell)}"
    graded = [cell for cell in book.cells if "nbgrader" in cell["metadata"]]
    names = [cell["metadata"]["nbgrader"]["grade_id"] for cell in graded]
    if names[1::2] != [f"{name}-check" for name in names[::2]]:
        yield f"a solution and its check follow each other, NAME and NAME-check; got {names}"
        return
    for name, (solution, test) in zip(names[::2], list(pairwise(graded))[::2], strict=True):
        shown, _, hidden = test["source"].partition(HIDDEN)
        counts = {shown.count("exercise.check("), hidden.count("exercise.require(")}
        counts |= {solution["source"].count(SOLUTION)}
        seeded = len(re.findall(r"\bseed=", hidden)) >= max(counts)
        if len(counts) > 1 or 0 in counts or not seeded:
            yield f"{name} needs as many solutions as checks and hidden tests, each with its seed"


def _quiz(book: Book) -> Iterator[str]:
    from osnb.teach import exercise

    text, code = (cell["source"] for cell in book.cells[-2:])
    questions = re.findall(r"^(\d)\. ", text, re.M), re.findall(r"^   - ([a-d])\) \S", text, re.M)
    if questions != (list("12345"), list("abcd") * 5):
        yield "the quiz has five questions of four options each"
    reasons = exercise.reasons().get(book.path.stem, [])
    if [sorted(reason) for reason in reasons] != [[*"abcd", "right"]] * 5:
        yield "each letter of the quiz has its reason in osnb/teach/course/practice.yaml"
    call = f'exercise.practice(answers, notebook="{book.path.stem}")'
    if not re.search(rf'^answers = ""  # .*\n{re.escape(call)}\Z', code, re.M):
        yield f'the quiz ends in a cell with answers = "" and {call}'
    if book.cells[-1]["metadata"].get("tags") != ["course"]:
        yield "the quiz ends in a cell tagged course"


def _course(book: Book) -> Iterator[str]:
    """Cells of the course are left out of a run's code, so nothing may hang on them."""
    course = [i for i, cell in enumerate(book.code) if "course" in cell["tags"]]
    if course != [*range(len(book.code) - len(course), len(book.code))]:
        yield "cells of the course come last"
    bound = [{*_bound(tree)} for tree in book.trees]
    rest = [i for i in range(len(book.code)) if i not in course]
    ours = set().union(*(bound[i] for i in course)) - set().union(*(bound[i] for i in rest))
    for i in rest:
        if used := _names(book.trees[i]) & ours:
            yield f"{min(used)} is defined in the course only; used in: {_first(book.code[i])}"


def _bound(tree: ast.Module) -> Iterator[str]:
    """Names that a code cell defines."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name.partition(".")[0] for alias in names)


# Parameters and code


def _parameters(book: Book) -> Iterator[str]:
    names = [*book.defaults]  # refuses other than one tagged cell of literals
    (text,) = (cell["source"] for cell in book.code if "parameters" in cell["tags"])
    if len(names) > MOST:
        yield f"at most {MOST} parameters; got {len(names)}"
    if (shown := len(re.findall(r"^\w+:", text.partition("# advanced")[0], re.M))) > SHOWN:
        yield f"at most {SHOWN} parameters before '# advanced'; got {shown}"
    if names[:2] != ["run", "size"] or "seed" not in names:
        yield "the first parameters are run and size, and one is the seed"
    for statement in ast.parse(text).body:
        name = ast.unparse(statement).partition(":")[0]
        comment = text.splitlines()[statement.end_lineno - 1][statement.end_col_offset :]
        kind = ast.unparse(getattr(statement, "annotation", ast.Constant(""))).split("[")[0]
        if kind != type(book.defaults.get(name)).__name__ or not re.match(r"  # \S", comment):
            yield f"a parameter has its type and a comment behind it; not so: {name}"
    file = workbook.root() / "params" / book.path.stem / f"{book.defaults.get('run')}.yaml"
    if not file.is_file() or plan(file).parameters != book.defaults | {"size": "mini"}:
        yield f"the defaults are those of a params file of the miniature, {file.name}"
    call = f'book.begin("{book.path.stem}", globals())'
    if sum(call in cell["source"] for cell in book.code) != 1:
        yield f"the run is opened once, by {call}"


def _cells(book: Book) -> Iterator[str]:
    for cell, tree in zip(book.code, book.trees, strict=True):
        # without solutions and hidden tests
        text = workbook.cleared(cell["source"], name=book.path.name).strip()
        lines = len(text.splitlines())
        if lines > LINES and "parameters" not in cell["tags"]:
            yield f"a cell has at most {LINES} lines; got {lines}, in: {_first(cell)}"
        faults = [*map(_fault, ast.walk(tree))]
        for node in tree.body:
            loop = isinstance(node, ast.For | ast.While)
            if loop and "epoch" in ast.unparse(node).split("\n")[0]:
                faults.append("no loop over epochs")
            if isinstance(node, ast.If) and _names(node.test) & {*book.defaults}:
                faults.append("no branch on a parameter")
        yield from (f"{fault}, in: {_first(cell)}" for fault in faults if fault)


def _fault(node: ast.AST) -> str:
    """What no cell may hold; empty if it is something else. A magic is no Python at all."""
    match node:
        case ast.Try() | ast.TryStar():
            return "no try"
        case ast.ImportFrom(names=[ast.alias(name="*")]):
            return "no star import"
        case ast.ImportFrom(module=str(name)) | ast.Import(names=[ast.alias(name=name)]):
            guarded = name.partition(".")[0] in {"torchvision", "timm"}
            return "torchvision and timm come through their guard" * guarded
        case ast.Name(id="get_ipython"):
            return "no magic"
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.NamedExpr():
            return "widgets show and give nothing back" * ("widgets" in _names(node.value))
    return ""


def _names(node: ast.AST | None) -> set[str]:
    return {x.id for x in ast.walk(node or ast.Pass()) if isinstance(x, ast.Name)}


def _first(cell: dict) -> str:
    return repr(cell["source"].partition("\n")[0])


# Outputs


def _outputs(book: Book) -> Iterator[str]:
    if book.content["metadata"].get("kernelspec", {}).get("name") != "python3":
        yield "the kernel is called python3"
    if '"papermill"' in book.text or "injected-parameters" in book.text:
        yield "nothing of papermill is left"
    counts = [cell["execution_count"] for cell in book.code]
    if counts != [*range(1, len(counts) + 1)]:
        yield "cells were executed in order, from 1"
    for cell in book.code:
        checked = "nbval-check-output" in cell["tags"]
        if checked and not cell["outputs"]:
            yield f"a checked cell has an output, {_first(cell)}"
        for output in cell["outputs"]:
            yield from (f"{fault}, of: {_first(cell)}" for fault in _faults(output, checked))


def _faults(output: dict, checked: bool) -> Iterator[str]:
    """What is wrong with one output."""
    if output["output_type"] == "error" or output.get("name") == "stderr":
        yield "no error and no stderr"
    text = "".join(output.get("text", ""))
    for kind, content in output.get("data", {}).items():
        raw = "".join(content)
        if not kind.startswith("image/"):
            text += "\n" + raw
            continue
        size = len(raw) if "svg" in kind else len(base64.b64decode(raw))
        if size >= IMAGE:
            yield f"an image has less than {IMAGE:,} bytes; got {size:,}"
        if not output["metadata"].get(kind, {}).get("alt", "").strip():
            yield "an image has words in its place"
    if re.search(r"0x[0-9a-f]{6,}" if checked else r" at 0x[0-9a-f]{6,}", text):
        yield "no address of an object"
    for what, pattern in UNSTABLE.items():
        if checked and (found := re.search(pattern, text)):
            yield f"a checked output holds nothing that changes; {what}: {found[0]!r}"


RULES = (_length, _top, _sections, _exercises, _graded, _quiz, _course)
RULES += (_parameters, _cells, _outputs)
