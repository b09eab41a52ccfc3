"""Executed notebooks of archives that are read or shown; archives: test_trust."""

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import finished
from test_report import ATTACKS, OUTPUTS

from osnb.book import report
from tests.tries import call, folder

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
    file = folder() / "executed.ipynb"
    for name, text in _notebooks().items():
        file.write_bytes(text.encode("utf8", "surrogatepass"))
        yield f"notebook: {name}", _shown(file)
