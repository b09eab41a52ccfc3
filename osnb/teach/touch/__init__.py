"""What a learner moves: a pad to draw on and explorers, in a notebook or as a page of its own.

Each is JavaScript (shared.js and a file of its name), touch.css, and numbers as json. A page holds
all of it, asks no server, and opens by a double click. In a notebook an anywidget runs the same
text; the numbers are sent when it asks for them, so that a saved notebook stays small.
"""

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from string import Template

import anywidget

from osnb.base.catalogue import Catalogue
from osnb.teach.touch import numbers

HERE = Path(__file__).parent
TITLES = Catalogue(
    pad="A pad: draw, and three networks answer",
    ten="Ten samples to drag",
    vectors="Maximum logit and softmax as vectors",
    near="Near and far by similarity",
    risk="Risk, coverage and what a threshold costs",
)
NUMBERS = Catalogue(
    pad=numbers.pad, ten=numbers.ten, vectors=numbers.vectors, near=numbers.near, risk=numbers.risk
)
PLACE = "_static/touch"  # of the pages in the report
# where the page is not beside the notebook, what stands inside the object is shown
FRAME = """<object data="../{place}/{name}.html" type="text/html" aria-label="{title}" \
style="width:100%;height:56rem;border:0"><p>{title}: it runs here while the notebook has a kernel, \
and in the <a href="../{place}/{name}.html">page of the report</a> without one.</p></object>"""
WIDGET = """
export default { render({ model, el }) {
  let started = false;
  model.on("msg:custom", (data) => {
    if (started) return;
    started = true;
    el.classList.add("osnb-touch");
    explorer(el, data);
  });
  model.send("data");
} };
"""


class Touch(anywidget.AnyWidget):
    """A pad or an explorer in a notebook; in a page without a kernel, the frame of its own page.

    Args:
        name: in TITLES.
    """

    def __init__(self, name: str):
        self.name = name
        self._esm, self._css = script(name) + WIDGET, (HERE / "touch.css").read_text("utf8")
        super().__init__()
        self.on_msg(lambda _, content, buffers: self.send(NUMBERS[name]()))  # noqa: ARG005 (ipywidgets)

    def __repr__(self) -> str:
        return TITLES[self.name]

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict, dict]:
        data, about = super()._repr_mimebundle_(**kwargs)
        title = escape(TITLES[self.name])
        return data | {"text/html": FRAME.format(place=PLACE, name=self.name, title=title)}, about


def show(name: str) -> Touch:
    """The pad or an explorer, for a notebook's cell.

    Args:
        name: in TITLES.

    Raises:
        KeyError: no such name; the message lists those there are.
    """
    return Touch(name)


def script(name: str) -> str:
    """The JavaScript of a pad or an explorer; it defines `explorer(root, data)`."""
    title = TITLES[name]
    files = [HERE / "shared.js", HERE / f"{name}.js"]
    return "\n".join([f"// {title}", *(file.read_text("utf8") for file in files)])


def page(name: str) -> str:
    """An html page that holds everything it needs.

    Args:
        name: in TITLES.
    """
    data = json.dumps(NUMBERS[name](), separators=(",", ":")).replace("</", r"<\/")
    return Template((HERE / "page.html").read_text("utf8")).substitute(
        title=escape(TITLES[name]),
        css=(HERE / "touch.css").read_text("utf8"),
        data=data,
        script=script(name),
    )


def files() -> Iterator[tuple[str, bytes]]:
    """The pages of the report: where each stands, and its content."""
    for name in TITLES:
        yield f"{PLACE}/{name}.html", page(name).encode()
