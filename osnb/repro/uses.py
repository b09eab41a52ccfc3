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
    if isinstance(node, ast.Subscript) and (words := _words(node.slice)) is not None:
        return [[*names, f"[{word}]"] for names in names_in(node.value) for word in words]
    if _binds(node) and (words := _words(node.args[0])) is not None:
        found = [[*names, f"[{word}]"] for names in names_in(node.func.value) for word in words]
        others = [*node.args[1:], *(keyword.value for keyword in node.keywords)]
        return found + [names for other in others for names in names_in(other)]
    return [names for child in ast.iter_child_nodes(node) for names in names_in(child)]


def _words(node: ast.AST) -> list[str] | None:
    """The text that a node is, or those of the set that `with_values` puts in a name's place."""
    if isinstance(node, ast.Set):
        return [each.value for each in node.elts if isinstance(each, ast.Constant)]
    is_word = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return [node.value] if is_word else None


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
    """The sources, with the run's values where a parameter names a catalogue's entry.

    So does the variable of a loop over `parameter.split()`, with a value for each word.
    """
    trees = [ast.parse(source) for source in sources]
    stored = {name for tree in trees for name in _stored(tree)}
    words = {k: [v] for k, v in parameters.items() if isinstance(v, str) and k not in stored}
    return [ast.unparse(_Values(words).visit(tree)) for tree in trees]


def _stored(node: ast.AST) -> set[str]:
    """Names that a piece of code gives values to."""
    names = (each for each in ast.walk(node) if isinstance(each, ast.Name))
    return {name.id for name in names if not isinstance(name.ctx, ast.Load)}


class _Values(ast.NodeTransformer):
    """Puts values in the place of names, where they choose an entry."""

    def __init__(self, words: Mapping[str, list[str]]):
        self.words = dict(words)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        node.slice = self._value(node.slice)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if _binds(node):
            node.args[0] = self._value(node.args[0])
        return self.generic_visit(node)

    def visit_For(self, node: ast.AST) -> ast.AST:
        """A loop, of a statement or of a comprehension: its variables stand for words inside."""
        outer = self.words
        for loop in getattr(node, "generators", [node]):
            hidden = {
                name: words for name, words in outer.items() if name not in _stored(loop.target)
            }
            self.words = hidden | self._looped(loop)
        node = self.generic_visit(node)
        self.words = outer
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_For

    def _looped(self, loop: ast.AST) -> dict[str, list[str]]:
        """The words that a loop's variable goes through: those of `parameter.split()`."""
        match loop.target, loop.iter:
            case ast.Name(id=name), ast.Call(ast.Attribute(ast.Name(id=of), "split"), [], []):
                return {name: self.words[of][0].split()} if of in self.words else {}
        return {}

    def _value(self, node: ast.expr) -> ast.expr:
        if not (isinstance(node, ast.Name) and node.id in self.words):
            return node
        return ast.Set([ast.Constant(word) for word in self.words[node.id]])
