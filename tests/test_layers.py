"""Data flows one way: what each room of the package may import, and from where."""

import ast
import io
import re
import sys
import tokenize
from functools import cache

import pytest

from osnb.base.workbook import PACKAGE

# room: (rooms of osnb, packages outside, packages outside that only a function may import)
ROOMS = {
    "base": (set(), {"numpy", "pandas", "pyarrow"}, {"yaml"}),
    "protocols": ({"base"}, {"numpy", "pandas"}, {"sklearn", "nltk"}),
    "metrics": ({"base"}, {"numpy"}, {"scipy"}),
    "datasets": (
        {"base", "protocols"},
        {"numpy", "pandas", "torch", "torchvision", "PIL", "simplejpeg"},
        {"sklearn", "scipy", "matplotlib", "tqdm"},
    ),
    "models": ({"base", "datasets"}, {"torch"}, {"timm"}),
    "losses": ({"base"}, {"torch"}, set()),
    "train": (
        {"base", "datasets", "models", "losses"},
        {"torch", "numpy"},
        {"pandas", "tqdm", "IPython", "cloudpickle"},
    ),
    "scores": ({"base"}, {"numpy"}, {"scipy"}),
    "experiment": (
        # what names an experiment imports none of it: tests/test_imports.py
        {"base", "protocols", "datasets", "models", "losses", "train", "scores", "metrics"},
        {"numpy", "pandas", "torch", "PIL"},
        {"imagehash", "pytorch_ood"},
    ),
    "evidence": ({"base", "metrics", "experiment"}, {"numpy", "pandas"}, {"scipy"}),
    "plots": (
        {"base", "metrics", "evidence"},
        {"numpy", "pandas", "matplotlib", "seaborn", "ipywidgets", "PIL"},
        {"IPython"},
    ),
    "book": (
        {"base", "protocols", "datasets", "models", "losses", "train", "scores", "metrics"}
        | {"experiment", "evidence", "teach"},
        {"filelock", "ipykernel", "jinja2", "numpy", "pandas", "psutil", "typer", "yaml"}
        | {"bleach"},
        {"distributed", "filelock", "jupyter_client", "papermill"}
        | {"jsonschema", "nbclient", "nbconvert", "nbformat", "nbgrader", "numpy", "pyarrow"}
        | {"rich", "rocrate", "sphinx", "torch", "threadpoolctl"}
        | {"huggingface_hub", "mlcroissant"},
    ),
    "teach": (
        {"base", "datasets", "losses", "metrics", "models", "protocols", "scores", "train", "book"}
        | {"experiment", "evidence"},
        {"anywidget", "jinja2", "nbgrader", "numpy", "pandas", "torch", "yaml"},
        {"IPython", "jupyter_client", "nbclient", "nbconvert", "nbformat"},
    ),
}
FILES = {
    path: path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for path in sorted(PACKAGE.rglob("*.py"))
    if path != PACKAGE / "__init__.py"
}


@cache
def parsed(path):
    return ast.parse(path.read_text())


def imported(path, *, at_once=False):
    """Full names of the modules that a file imports; `at_once`: outside of functions."""
    tree = parsed(path)
    later = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda)]
    hidden = {id(node) for function in later for node in ast.walk(function)} if at_once else set()
    names = set()
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are absolute"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def split(names):
    """(rooms of osnb, packages outside) among full module names, the standard library left out."""
    parts = [name.split(".") for name in names]
    rooms = {part[1] for part in parts if part[0] == "osnb"}
    outside = {part[0] for part in parts if part[0] not in {*sys.stdlib_module_names, "osnb"}}
    return rooms, outside


def test_every_room_has_a_row_and_every_row_a_room():
    assert set(FILES.values()) == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_what_its_row_says(room):
    allowed_rooms, at_once, later = ROOMS[room]
    for path in (path for path, of in FILES.items() if of == room):
        rooms, outside = split(imported(path))
        assert rooms - {room} <= allowed_rooms, path
        assert outside <= at_once | later, path
        assert split(imported(path, at_once=True))[1] <= at_once, path


def test_importing_the_package_imports_no_room():
    assert imported(PACKAGE / "__init__.py") == set()


def test_only_the_guard_imports_torchvision_and_timm_comes_after_it():
    for path in FILES:
        if path.name != "vision.py":
            assert not {x for x in imported(path) if x.split(".")[0] == "torchvision"}, path
        text = path.read_text()
        modules = re.findall(r"^ *(?:from|import) (timm|osnb.datasets import vision)", text, re.M)
        assert modules[:1] != ["timm"], path


LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


def test_a_function_is_read_at_a_glance():
    """At most 30 lines of code, blank lines, comments and docstrings aside."""
    for path in FILES:
        text = path.read_text()
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        spans = [range(t.start[0], t.end[0] + 1) for t in tokens if t.type not in LAYOUT]
        code = {line for span in spans for line in span}
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef):
                first = node.body[ast.get_docstring(node) is not None :]
                lines = [*range(node.lineno, node.body[0].lineno)]
                lines += range(first[0].lineno, node.end_lineno + 1) if first else []
                assert len(code & {*lines}) <= 30, f"{path.name}: {node.name}"


def test_names_are_found_by_reading_the_code():
    """Nothing is looked up, imported or run by text, but what a kernel before had imported."""
    never = {"eval", "exec", "globals", "vars", "__import__", "import_module", "setattr"}
    for path in FILES:
        names = {x.id for x in ast.walk(parsed(path)) if isinstance(x, ast.Name)}
        assert not names & never - ({"import_module"} if path.name == "kernel.py" else set()), path
        wrong = {
            x
            for x in imported(path)
            if x.endswith(".*") or ("import_module" in x and path.name != "kernel.py")
        }
        assert not wrong, path
