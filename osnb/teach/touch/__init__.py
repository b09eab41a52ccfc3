"""What a learner moves: a pad to draw on and explorers, in a notebook or as a page of its own.

Each is JavaScript (shared.js and a file of its name), touch.css, and numbers as json. A page holds
all of it, asks no server, and opens by a double click. In a notebook an anywidget runs the same
text; the numbers are sent when it asks for them, so that a saved notebook stays small.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from html import escape
from pathlib import Path
from string import Template

import anywidget

from osnb.base.catalogue import Catalogue
from osnb.teach.touch import numbers

HERE = Path(__file__).parent
SHOWN = Catalogue(  # its title, and the function that gives its numbers
    pad=("A pad: draw, and three networks answer", numbers.pad),
    ten=("Ten samples to drag", numbers.ten),
    vectors=("Maximum logit and softmax as vectors", numbers.vectors),
    near=("Near and far by similarity", numbers.near),
    risk=("Risk, coverage and what a threshold costs", numbers.risk),
)


class Touch(anywidget.AnyWidget):
    """A pad or an explorer in a notebook; where there is no kernel, a frame with its page.

    Args:
        name: in SHOWN.
    """

    def __init__(self, name: str):
        self.name, (self.title, given) = name, SHOWN[name]
        self._esm, self._css = script(name) + _read("widget.js"), _read("touch.css")
        super().__init__()
        self.on_msg(lambda *_: self.send(given()))

    def __repr__(self) -> str:
        return self.title

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict, dict]:
        data, about = super()._repr_mimebundle_(**kwargs)
        return data | {"text/html": _filled("frame.html", name=self.name)}, about


def show(name: str) -> Touch:
    """The pad or an explorer, for a notebook's cell.

    Args:
        name: in SHOWN.

    Raises:
        KeyError: no such name; the message lists those there are.
    """
    return Touch(name)


def script(name: str) -> str:
    """The JavaScript of a pad or an explorer; it defines `explorer(root, data)`."""
    return _read("shared.js") + _read(f"{name}.js")


def page(name: str) -> str:
    """An html page that holds everything it needs.

    Args:
        name: in SHOWN.
    """
    data = json.dumps(SHOWN[name][1](), separators=(",", ":")).replace("</", r"<\/")
    parts = {"css": _read("touch.css"), "data": data, "script": script(name)}
    return _filled("page.html", name=name, **parts)


def files() -> Iterator[tuple[str, bytes]]:
    """Pages of the report: where each stands, and its content; none without the runs it shows."""
    for name in SHOWN:
        with suppress(FileNotFoundError):
            yield f"_static/touch/{name}.html", page(name).encode()


def _filled(file: str, *, name: str, **parts: str) -> str:
    return Template(_read(file)).substitute(name=name, title=escape(SHOWN[name][0]), **parts)


def _read(file: str) -> str:
    return (HERE / file).read_text("utf8")
