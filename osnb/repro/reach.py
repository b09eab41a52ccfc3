"""The hash of the code that a notebook follows from: the definitions that it reaches.

From the notebook's cells on, every name that a statement uses is looked up, and what binds it
is reached in turn, re-exports followed. Statements of an imported module that do more than bind
names (a call, a loop, an item that is set) are always reached. Where it cannot be told which
names of a module are used (the module itself is passed on, or a name is nowhere bound), all are.

Of a catalogue only those entries are reached whose names are written where it is used, or are the
values of the run's parameters: `MODELS["conv"]`, `LOSSES.bind(loss, ...)`. So a run does not depend
on a method that another one uses. Where it is used in any other way, all entries are reached.

Two kinds of modules are left aside (`ASIDE`), since no number follows from them: what only shows,
and how this hash is made. A better widget makes no training stale.

What a room may not do for this to hold is in `tests/test_layers.py`: look up names by text, import
by text or by a star, and let an assignment or a decorator that nobody reaches change anything.
"""

import ast
import copy
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from osnb.repro.files import digest
from osnb.repro.notebooks import code_cells
from osnb.repro.uses import entry, names_in, only, with_values

IMPORT = (ast.Import, ast.ImportFrom)
DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, *IMPORT)
ASIDE = {"osnb.widgets", "osnb.repro.reach", "osnb.repro.uses", "osnb.repro.notebooks"}
DATA = {"hierarchy": "data", "tables": "published"}  # rooms that read files of the package


class Source:
    """A module's statements, or a notebook's.

    Attributes:
        binding: by name, the statements at the top that bind it.
        bare: statements that do more than bind names, or may.
        imported: by name, (module, attribute or "") of osnb that it stands for; imports inside of
            functions count everywhere, which can only reach more.
    """

    def __init__(self, *texts: str):
        self.binding: dict[str, list[ast.stmt]] = {}
        self.bare: list[ast.stmt] = []
        self.imported: dict[str, tuple[str, str]] = {}
        for node in (node for text in texts for node in ast.parse(text).body):
            if (not isinstance(node, DEFINING) and not _is_text(node)) or _sets(node):
                self.bare.append(node)
            for name in _bound(node):
                self.binding.setdefault(name, []).append(node)
            for inner in ast.walk(node):
                self.imported |= _imported(inner)


class Reach:
    """What sources reach in the package.

    Args:
        package: the folder of osnb.
        sources: texts of code, such as the cells of a notebook.
        parameters: values of names that the sources use.

    Attributes:
        modules: those of osnb that are imported.
        found: (module, name, statement) of what is reached; no name for a bare statement.
    """

    def __init__(self, package: Path, *sources: str, parameters: Mapping[str, Any] | None = None):
        self.package, self.modules, self.found, self._seen = package, set(), set(), set()
        source = Source(*with_values(sources, parameters or {}))
        self._import_all(source)
        for node in [*source.bare, *(n for nodes in source.binding.values() for n in nodes)]:
            self._use(source, "", node)

    def definitions(self) -> list[str]:
        """Full names of what is reached, sorted; a bare statement goes by its module's."""
        return sorted({f"{module}.{name}".rstrip(".") for module, name, _ in self.found})

    def texts(self) -> list[str]:
        """Module, name and text of what is reached, sorted; docstrings if one reads `__doc__`."""
        speaks = any("__doc__" in names for *_, node in self.found for names in _names(node))
        return [
            part
            for texts in sorted((m, n, text_of(node, speaks)) for m, n, node in self.found)
            for part in texts
        ]

    def _source(self, module: str) -> Source:
        file = self._path(module)
        return _parsed(file.read_text(encoding="utf8") if file else "")

    def _path(self, module: str) -> Path | None:
        base = self.package.joinpath(*module.split(".")[1:])
        files = (base.with_name(f"{base.name}.py"), base / "__init__.py")
        return next((file for file in files if file.is_file()), None)

    def _import_all(self, source: Source) -> None:
        for module, attribute in source.imported.values():
            inner = f"{module}.{attribute}"
            self._import(inner if attribute and self._path(inner) else module)

    def _import(self, module: str) -> None:
        """What importing a module runs: its parents, its imports, its bare statements."""
        if module in self.modules | ASIDE or not self._path(module):
            return
        self.modules.add(module)
        if "." in module:
            self._import(module.rpartition(".")[0])
        source = self._source(module)
        self._import_all(source)
        for node in source.bare:
            self._take(module, "", node)

    def _take(self, module: str, name: str, node: ast.stmt) -> None:
        self.found.add((module, name, node))
        self._use(self._source(module), module, node)

    def _use(self, source: Source, module: str, node: ast.AST) -> None:
        """Reach what the names in a statement stand for."""
        for name, *rest in _names(node) if module else names_in(node):
            if module and name in source.binding:
                self._reach(module, name, entry(rest))
            if name in source.imported:
                target, attribute = source.imported[name]
                self._resolve(target, [*filter(None, [attribute]), *rest])

    def _reach(self, module: str, name: str, of: str = "") -> None:
        """Reach a name of a module, or an entry of a catalogue of that name.

        That is what binds it there, or what it is imported from.
        """
        if (module, name, of) in self._seen:
            return
        self._seen.add((module, name, of))
        source = self._source(module)
        for node in source.binding.get(name, []):
            self._take(module, name, only(node, of))
        if name in source.imported:
            target, attribute = source.imported[name]
            self.found.add((module, name, ast.Constant(f"{target}.{attribute}")))
            self._resolve(target, [*filter(None, [attribute, of])])

    def _resolve(self, module: str, names: list[str]) -> None:
        """Reach module.a.b: a definition, a module inside, or all of it if that cannot be told."""
        if {module, ".".join([module, *names[:1]])} & ASIDE:
            return
        self._import(module)
        source = self._source(module)
        known = source.binding.keys() | source.imported.keys()
        inner = bool(names and self._path(f"{module}.{names[0]}"))
        if inner:
            self._resolve(f"{module}.{names[0]}", names[1:])
            if source.imported.get(names[0]) == (module, names[0]):
                return  # a package that imports the module inside
        chosen = {names[0]} & known if names else set()
        for name in sorted(chosen or (set() if inner else known)):
            self._reach(module, name, entry(names[1:]) if chosen else "")


_names = cache(names_in)  # of a module's statements, which are parsed once


def code_hash(notebook: Path, *, package: Path, parameters: Mapping[str, Any] | None) -> str:
    """Hash of the notebook's code cells, of what they reach in the package, and of its files.

    Args:
        notebook: its path.
        package: the folder of osnb.
        parameters: of a run; none to reach every entry of the catalogues.
    """
    cells = code_cells(notebook, parameters=False)
    reach = Reach(package, *cells, parameters=parameters)
    said = [text_of(ast.parse(cell), docstrings=False) for cell in cells] + reach.texts()
    rooms = {module.split(".")[1] for module in reach.modules if "." in module}
    folders = [package / DATA[room] for room in sorted(rooms & DATA.keys())]
    files = [file for folder in folders for file in sorted(folder.rglob("*")) if file.is_file()]
    # of folders inside, those whose name is written somewhere: osnb/published/<paper>
    named = [f for f in files if f.parent in folders or any(f.parent.name in text for text in said)]
    data = [part for file in named for part in (file.relative_to(package).as_posix(), file)]
    return digest(*said, *data)


@cache
def _parsed(text: str) -> Source:
    return Source(text)


def _bound(node: ast.stmt) -> set[str]:
    """Names that a statement at the top of a module gives to it, but for imports of osnb."""
    names, waiting = set(), [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(each.name)
        elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            names.add(each.id)
        elif isinstance(each, IMPORT) and not _imported(each):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in each.names}
        elif not isinstance(each, ast.Lambda | ast.comprehension):
            waiting += ast.iter_child_nodes(each)
    return names


def _sets(node: ast.stmt) -> bool:
    """Whether it sets an item or an attribute of something."""
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    return any(isinstance(each, ast.Subscript | ast.Attribute) for each in targets)


def _imported(node: ast.AST) -> dict[str, tuple[str, str]]:
    """What the names of an import statement stand for, as far as they are osnb's."""
    if isinstance(node, ast.ImportFrom):
        pairs = {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
    elif isinstance(node, ast.Import):
        pairs = {f"{alias.name}!": (alias.name, "") for alias in node.names}  # it is run
        for alias in node.names:
            name = alias.name.partition(".")[0]
            pairs[alias.asname or name] = (alias.name if alias.asname else name, "")
    else:
        return {}
    return {name: pair for name, pair in pairs.items() if pair[0].split(".")[0] == "osnb"}


@cache  # of a module's statements, which are parsed once, for each run's hash
def text_of(node: ast.AST, docstrings: bool) -> str:
    """The code without comments and layout, and mostly without docstrings: they change nothing."""
    return ast.unparse(node if docstrings else _Silent().visit(copy.deepcopy(node)))


class _Silent(ast.NodeTransformer):
    """Takes away what is only text: docstrings, and texts under an assignment."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        return ast.Pass() if _is_text(node) else node


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
