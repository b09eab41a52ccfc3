"""What a statement uses: names, their attributes, and the entries of catalogues."""

import ast
from collections.abc import Iterable, Mapping
from typing import Any


def names_in(node: ast.AST) -> list[list[str]]:
    """Names that a statement uses, with the attributes taken of them: ["metrics", "auroc"].

    An entry of a catalogue stands in brackets behind its name: ["models", "MODELS", "[conv]"].
    """
    if isinstance(node, ast.Attribute):
        parts = [node.attr]
        while isinstance(node := node.value, ast.Attribute):
            parts.append(node.attr)
        if isinstance(node, ast.Name):
            return [[node.id, *reversed(parts)]]
        return names_in(node)
    if isinstance(node, ast.Name):
        return [[node.id]]
    if isinstance(node, ast.Subscript) and _is_word(node.slice):
        return [[*names, f"[{node.slice.value}]"] for names in names_in(node.value)]
    if _binds(node) and _is_word(node.args[0]):
        found = [[*names, f"[{node.args[0].value}]"] for names in names_in(node.func.value)]
        others = [*node.args[1:], *(keyword.value for keyword in node.keywords)]
        return found + [names for other in others for names in names_in(other)]
    return [names for child in ast.iter_child_nodes(node) for names in names_in(child)]


def _is_word(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _binds(node: ast.AST) -> bool:
    """Whether it is a call such as `LOSSES.bind(loss, ...)`."""
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return called and node.func.attr == "bind" and bool(node.args)


def entry(names: list[str]) -> str:
    """The entry that follows a name, in its brackets, if one does."""
    return names[0] if names and names[0].startswith("[") else ""


def only(node: ast.stmt, of: str) -> ast.stmt:
    """`Catalogue(a=f)` of `A = Catalogue(a=f, b=g)`; any other statement as it is."""
    call = getattr(node, "value", None)
    if not (of and isinstance(node, ast.Assign) and isinstance(call, ast.Call)):
        return node
    kept = [keyword for keyword in call.keywords if f"[{keyword.arg}]" == of]
    if not (isinstance(call.func, ast.Name) and call.func.id == "Catalogue" and kept):
        return node
    return ast.Expr(ast.Call(call.func, call.args, kept))


def with_values(sources: Iterable[str], parameters: Mapping[str, Any]) -> list[str]:
    """The sources, with the run's values where a parameter names a catalogue's entry."""
    trees = [ast.parse(source) for source in sources]
    stored = {
        node.id
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    words = {k: v for k, v in parameters.items() if isinstance(v, str) and k not in stored}
    return [ast.unparse(_Values(words).visit(tree)) for tree in trees]


class _Values(ast.NodeTransformer):
    """Puts values in the place of names, where they choose an entry."""

    def __init__(self, words: Mapping[str, str]):
        self.words = words

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        node.slice = self._value(node.slice)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if _binds(node):
            node.args[0] = self._value(node.args[0])
        return self.generic_visit(node)

    def _value(self, node: ast.expr) -> ast.expr:
        named = isinstance(node, ast.Name) and node.id in self.words
        return ast.Constant(self.words[node.id]) if named else node
