"""Forged archives at the import, and executed notebooks that are read or shown."""

import json
import os
import random
import shutil
import warnings
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import finished
from conftest import Project
from test_report import ATTACKS, OUTPUTS
from test_trust import FORGED, Forger

from osnb.base import workbook
from osnb.book import archive, report
from tests.tries import call, folder

FLIPS = 60  # of single bits
HTML = "<script>alert(1)</script><img src=file:///etc/passwd onerror=alert(1)>"
WORDS = (
    "\x1b[2J",
    "[" * 20000,
    ">" * 20000,
    "\ud800",
    "$\\href{javascript:alert(1)}{x}$",
    "{{ x }}",
)
MORE = (  # outputs beside those of test_report
    {"image/svg+xml": 5},
    {"image/png": "A" * 1000 + "<script>"},
    {"text/plain": "\x1b[2J" * 1000},
    {"application/vnd.jupyter.widget-view+json": {"model_id": HTML}},
)
NO_NOTEBOOK = ("", "{}", "[]", "7", '{"cells": 5}', "[" * 100000, "{", "\ud800")


def _received(place: Path) -> tuple[Project, Path]:
    """A project without runs, and an archive of three."""
    project = Project(place / "project")
    workbook.root = lambda: project.folder
    os.environ["OSNB_OUT"] = str(project.folder)
    finished.paper(project)
    (project.folder / "requirements.lock").write_text("numpy==2.0\n")
    archive.pack(["*"], place / "all.zip")
    shutil.rmtree(project.folder / "runs")
    return project, place / "all.zip"


def _listing(place: Path) -> dict[str, bytes | None]:
    return {str(x): x.read_bytes() if x.is_file() else None for x in place.rglob("*")}


def _imported(project: Project, file: Path, *, taken: bool = False) -> str:
    """What is wrong with how an archive is imported; a refused one writes nothing."""
    before = _listing(project.folder)
    why = call(lambda: archive.unpack(file, force=True), str(file), taken=taken)
    runs = project.folder / "runs"
    whole = len([*runs.glob("*/*/run.json")]) == 3
    if not why and not whole and _listing(project.folder) != before:
        why = "refused, and yet it wrote"
    shutil.rmtree(runs, ignore_errors=True)
    return why


def _forged(project: Project, whole: Path) -> Iterator[tuple[str, str]]:
    file = whole.with_name("x.zip")
    for name, (change, _) in FORGED.items():
        forger = Forger(whole)
        change(forger)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a name that is in it twice
            forger.write(file)
        yield name, _imported(project, file)
    content, draw = whole.read_bytes(), random.Random(0)
    for end in (0, 1, 100, len(content) // 2, len(content) - 30, len(content) - 1):
        file.write_bytes(content[:end])
        yield f"cut at {end}", _imported(project, file)
    for _ in range(FLIPS):
        flipped, at = bytearray(content), draw.randrange(len(content))
        flipped[at] ^= 1 << draw.randrange(8)
        file.write_bytes(flipped)
        yield f"bit of byte {at}", _imported(project, file, taken=True)


class Tags(HTMLParser):
    """What of a page is more than text and pictures."""

    def __init__(self, page: str):
        super().__init__()
        self.wrong = ["an escape"] * ("\x1b" in page)
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        plain = {"class", "alt", "colspan", "rowspan"}
        more = {key: value or "" for key, value in attrs if key not in plain}
        kept = {"a": ("href", "http"), "img": ("src", "data:image/")}.get(tag)
        if kept and more.get(kept[0], "").startswith(kept[1]):
            del more[kept[0]]
        if more or tag in {"script", "style", "iframe", "object", "svg", "form", "input", "base"}:
            self.wrong.append(f"<{tag} {more}>")


def _notebooks() -> dict[str, str]:
    """By name, the text of an executed notebook."""
    found = {f"no notebook {text!r:.12}": text for text in NO_NOTEBOOK}
    texts = [*(text.replace("%s", "/etc/passwd") for text in ATTACKS), *WORDS, HTML]
    for number, text in enumerate(texts):
        cell = {"cell_type": "markdown", "metadata": {}, "source": text}
        printed = {"output_type": "stream", "name": "stdout", "text": text}
        found |= {f"text {number}": _book(cell), f"print {number}": _book(_code(printed))}
    for number, data in enumerate([*OUTPUTS, *MORE]):
        shown = {"output_type": "display_data", "data": data, "metadata": {}}
        found[f"output {number}"] = _book(_code(shown))
    return found


def _code(output: dict) -> dict:
    cell = {"cell_type": "code", "metadata": {}, "source": HTML, "execution_count": 1}
    return cell | {"outputs": [output]}


def _shown(file: Path) -> str:
    """What is wrong with how the report reads an executed notebook from somewhere else."""
    read = []
    page = {"source": file, "imported": True}
    why = call(lambda: read.append(report._read(page)), str(file), taken=True)
    if why or not read:
        return why or "it raises"
    content, fault = read[0]
    if fault:
        return "" if fault.startswith("It is not shown: ") else f"no reason: {fault[:200]}"
    return "; ".join(Tags("".join(cell["source"] for cell in content["cells"])).wrong)


def _book(*cells: dict) -> str:
    return json.dumps(finished.EMPTY | {"cells": [*cells]})


def tries() -> Iterator[tuple[str, str]]:
    project, whole = _received(folder())
    yield from _forged(project, whole)
    for name, text in _notebooks().items():
        file = whole.with_name("executed.ipynb")
        file.write_bytes(text.encode("utf8", "surrogatepass"))
        yield f"notebook: {name}", _shown(file)
