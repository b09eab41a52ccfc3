"""An executed notebook from an archive as data: text and pictures, whatever its author meant.

Sphinx is given no Markdown of it, in which a directive could read a file of this machine, and of
its outputs no script: what was html is left with the tags of tables and texts.
"""

import base64
import re
from typing import Any

import bleach
from markdown_it import MarkdownIt

from osnb.book import record, runs

TAGS = "a blockquote br code em h1 h2 h3 h4 h5 h6 hr li ol p pre strong ul"
TAGS += " table tbody td th thead tr"
LONG = 50_000  # characters of one text that are shown
PICTURES = {"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8", "image/svg+xml": b"<"}


def cleaned(notebook: dict[str, Any]) -> dict[str, Any]:
    """A notebook that shows no more than text and pictures.

    Args:
        notebook: of `checking.notebook`.
    """
    metadata = {"kernelspec": runs.KERNEL, "language_info": {"name": "python"}}
    cells = [_cell(cell) for cell in notebook["cells"]]
    return {"nbformat": 4, "nbformat_minor": 4, "metadata": metadata, "cells": cells}


def _cell(cell: dict[str, Any]) -> dict[str, Any]:
    if cell["cell_type"] != "code":
        html = (
            MarkdownIt("commonmark", {"html": False}).enable("table").render(_text(cell["source"]))
        )
        return {
            "cell_type": "raw",
            "metadata": {"format": "text/html"},
            "source": _html(html),
        }
    outputs = [shown for out in cell["outputs"] if (shown := _output(out))]
    number = cell["execution_count"]
    known = {"cell_type": "code", "metadata": {}, "execution_count": number}
    return known | {"source": _text(cell["source"]), "outputs": outputs}


def _output(output: dict[str, Any]) -> dict[str, Any] | None:
    """An output with the best of its forms that can be shown; none if it has none."""
    if output["output_type"] == "stream":
        return {"output_type": "stream", "name": "stdout", "text": _text(output["text"])}
    if output["output_type"] == "error":
        text = _text("\n".join(output["traceback"]))
        return {"output_type": "stream", "name": "stderr", "text": text}
    data = output["data"]
    pictures = [_picture(kind, data[kind]) for kind in PICTURES if kind in data]
    if html := next(filter(None, pictures), "") or _html(_text(data.get("text/html", ""))):
        shown = {"text/html": html}
    else:
        shown = {"text/plain": _text(data.get("text/plain", ""))}
    return {"output_type": "display_data", "metadata": {}, "data": shown}


def _picture(kind: str, content: str | list[str]) -> str:
    """A picture in the page, where no script of it runs; nothing if it is none."""
    content = "".join(content)
    try:
        svg = kind == "image/svg+xml"
        data = (
            content.encode() if svg else base64.b64decode("".join(content.split()), validate=True)
        )
    except ValueError:
        return ""
    if not data.startswith(PICTURES[kind]):
        return ""
    return f'<img alt="Picture" src="data:{kind};base64,{base64.b64encode(data).decode()}">'


def _html(html: str) -> str:
    """Html with the tags of text and tables, whose links lead to the web or nowhere."""

    def allowed(tag: str, name: str, value: str) -> bool:
        if tag in ("td", "th"):
            return name in ("colspan", "rowspan") and value.isdigit()
        return tag == "a" and name == "href" and value.startswith(("https://", "http://"))

    return bleach.clean(html, tags=TAGS.split(), attributes=allowed, strip=True)


def _text(text: str | list[str]) -> str:
    """A text without colours, with other control characters written out, and not endless."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", "".join(text))
    return record.plain(text[:LONG]) + (" ..." if len(text) > LONG else "")
