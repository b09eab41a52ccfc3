"""Functions in a Python file of one's own, by "module:function"; the file lies in `workbook.out()`.

No archive can bring such a file: its runs name one that is there, or nothing. Only `load` runs it.
Settings and texts are read from it as from any text, so that what looks at runs, such as those of
an archive, executes nothing.
"""

import ast
import runpy
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from osnb.base import workbook

TRAINED = ("known", "negative")  # roles of the images that a loss may be trained on


def file(name: str) -> Path:
    """The file of "module:function".

    Raises:
        FileNotFoundError: there is none.
        ValueError: these are no names, such as a path.
    """
    module, _, function = name.partition(":")
    if not all(word.isidentifier() for word in (*module.split("."), function)):
        raise ValueError(f"{name!r} is no MODULE:NAME, such as mine:mine of the file mine.py")
    path = workbook.out() / (module.replace(".", "/") + ".py")
    if not path.is_file():
        raise FileNotFoundError(2, f"no file for {name!r}", str(path))
    return path


def load(name: str) -> Callable:
    """The function itself; this runs its file.

    Raises:
        ValueError: the file fails, or has no such function.
    """
    path, function = file(name), name.partition(":")[2]
    try:
        there = runpy.run_path(str(path), run_name=path.stem)
    except (Exception, SystemExit) as error:  # whatever a person's code may raise
        raise ValueError(f"{path} fails: {type(error).__name__}: {error}") from error
    if not callable(there.get(function)):
        raise ValueError(f"{path} defines no function {function!r}")
    return there[function]


def settings(name: str) -> dict[str, Any]:
    """Keyword arguments of the function that have a literal as default.

    Raises:
        ValueError: the file is no Python, or defines no such function at its top, or a default is
            no literal.
    """
    for node in _tree(name):
        if isinstance(node, ast.FunctionDef) and node.name == name.partition(":")[2]:
            pairs = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            needs = "needs a plain value, such as 0.5"
            return {x.arg: _plain(value, name, f"{x.arg} {needs}") for x, value in pairs if value}
    raise ValueError(f"{file(name)} defines no function {name.partition(':')[2]!r}")


def taught(name: str) -> tuple[str, ...]:
    """Roles of the images that a loss is trained on: the file's ROLES, or known ones alone.

    Raises:
        ValueError: the file is no Python, or its ROLES are no tuple or list of "known" and
            "negative".
    """
    for node in _tree(name):
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="ROLES")], value=ast.expr() as value)
                | ast.AnnAssign(target=ast.Name(id="ROLES"), value=ast.expr() as value)
            ):
                return tuple(_plain(value, name, f"ROLES is a tuple or list of {TRAINED}", _roles))
    return ("known",)


def _roles(value: Any) -> bool:
    return isinstance(value, tuple | list) and set() < {*value} <= {*TRAINED}


def _plain(node: ast.expr, name: str, needs: str, fits: Callable = lambda _: True) -> Any:
    """The value that an expression in the file of "module:function" spells, if it fits."""
    with suppress(ValueError, TypeError):
        if fits(value := ast.literal_eval(node)):
            return value
    raise ValueError(f"{file(name)}, line {node.lineno}: {needs}; got {ast.unparse(node)}")


def _tree(name: str) -> list[ast.stmt]:
    path = file(name)
    try:
        return ast.parse(path.read_text(encoding="utf8")).body
    except SyntaxError as error:
        raise ValueError(f"{path}, line {error.lineno}: {error.msg}") from None
