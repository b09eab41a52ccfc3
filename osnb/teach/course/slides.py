"""Slides of the ten sessions, made from the notebooks: claims, predictions, figures, take-aways."""

import base64
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jinja2

from osnb.base import workbook
from osnb.book import index

PAGES = Path(__file__).parent / "pages"
PREDICT = re.compile(r"\*\*Predict\.?\*\*.+?(?=\n\s*\n|\Z)", re.S)
TAKE = re.compile(r"^## (?:Three )?take-aways\n(.+?)(?=^## |\Z)", re.S | re.M | re.I)
CONF = """project = "osnb"
extensions = ["myst_parser", "sphinx_revealjs", "sphinx-mathjax-offline"]
myst_enable_extensions = ["dollarmath"]
suppress_warnings = ["myst.header", "myst.xref_missing"]
revealjs_style_theme = "white"
revealjs_script_conf = {"slideNumber": True, "hash": True}
revealjs_static_path = ["_static"]
revealjs_css_files = ["slides.css"]
"""


def build(folder: Path) -> None:
    """Write a deck a session to a new folder; index.html lists them. Nothing asks a server.

    Raises:
        ChildProcessError: Sphinx made none; it says why.
    """
    source = folder / "source"
    (source / "_static").mkdir(parents=True)
    (source / "conf.py").write_text(CONF, encoding="utf8")
    (source / "_static" / "slides.css").write_bytes((PAGES / "slides.css").read_bytes())
    page = jinja2.Template((PAGES / "slides.md").read_text(encoding="utf8"), trim_blocks=True)
    sessions = index.paths()["one term"]
    for number, session in enumerate(sessions, start=1):
        books = [_book(source, name) for name in session.notebooks]
        text = page.render(number=number, topic=session.topic, books=books)
        (source / f"session_{number:02}.md").write_text(text, encoding="utf8")
    names = [f"[{s.topic}](session_{i:02}.md)" for i, s in enumerate(sessions, 1)]
    contents = "# Open-set recognition\n\n" + "".join(f"{i}. {x}\n" for i, x in enumerate(names, 1))
    (source / "index.md").write_text(contents, encoding="utf8")
    words = [sys.executable, "-m", "sphinx", "-q", "-b", "revealjs", source, folder / "html"]
    ended = subprocess.run(words, capture_output=True, text=True)
    if ended.returncode:
        raise ChildProcessError(f"no slides were made; Sphinx:\n{ended.stderr.strip()}")


def _book(source: Path, name: str) -> dict:
    """What the template needs of a notebook; its figures are written beside."""
    notebook = workbook.root() / "notebooks" / f"{name}.ipynb"
    return index.about(notebook) | {"name": name, "slides": [*_slides(source, notebook)]}


def _slides(source: Path, notebook: Path) -> Iterator[tuple[str, str]]:
    """Head and text of each slide: predictions and figures in their order, then take-aways."""
    head = ""
    for number, cell in enumerate(workbook.cells(notebook)):
        text = cell["source"]
        if cell["cell_type"] == "markdown":
            head = [head, *re.findall(r"^## (.+)$", text, re.M)][-1]
            yield from ((head, found) for found in PREDICT.findall(text))
            yield from (("Take-aways", found.strip()) for found in TAKE.findall(text))
        for output in cell.get("outputs", []):
            for kind, suffix in {"image/svg+xml": "svg", "image/png": "png"}.items():
                if content := "".join(output.get("data", {}).get(kind, "")):
                    file = source / f"{notebook.stem}-{number}.{suffix}"
                    raw = content.encode() if suffix == "svg" else base64.b64decode(content)
                    file.write_bytes(raw)
                    alt = output["metadata"].get(kind, {}).get("alt", "").replace("\n", " ")
                    yield head, f"![{alt.replace(']', ')').replace('[', '(')}]({file.name})"
                    break
