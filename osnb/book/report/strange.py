"""Executed notebooks as pages of html: one from an archive, and those of one's own folder.

Of what came in an archive Sphinx is given no Markdown, in which a directive could read a file of
this machine, and no script: of nbconvert's html the tags of texts, tables and pictures are left.
`build` makes the report of a folder of one's own: its evaluations as pages, its runs in a table.
"""

import json
import re
import shutil
from collections import defaultdict
from html import escape
from pathlib import Path
from typing import Any

import bleach
import pandas as pd

from osnb.base import tables, workbook
from osnb.book import record, runs
from osnb.book.archive import checking
from osnb.protocols import hierarchy

TAGS = "a blockquote br code div em h1 h2 h3 h4 h5 h6 hr img li ol p pre span strong ul"
TAGS += " table tbody td th thead tr"
PICTURE = re.compile(r"data:image/(png|jpeg|svg\+xml);base64,[A-Za-z0-9+/=\s]+")
FORMS = ["image/svg+xml", "image/png", "image/jpeg", "text/html", "text/plain"]  # best first
LONG = 20_000_000  # characters of a page
STYLE = """body{max-width:60em;margin:2em auto;font-family:sans-serif}img{max-width:100%}
pre{overflow:auto;background:#f4f4f4;padding:.5em}td,th{padding:.1em .8em;text-align:left}"""
SEEN = "unknown classes in the pretraining"
# of index.html: of a report made by Sphinx, of one of a folder of one's own
MARKS = ("<title>osnb: an open-set workbook</title>", f"<title>Runs</title><style>{STYLE[:20]}")
COLUMNS = ("notebook", "run", "state", "seconds", SEEN)


def cleaned(notebook: dict[str, Any]) -> dict[str, Any]:
    """A notebook of one cell, html that shows no more than text and pictures.

    Args:
        notebook: of `checking.notebook`.

    Raises:
        ValueError: it is too long, or nbconvert cannot show it.
    """
    import nbformat
    from nbconvert import HTMLExporter
    from nbformat.v4.rwbase import rejoin_lines

    book = rejoin_lines(nbformat.from_dict(notebook))
    for output in [x for cell in book.cells for x in cell.get("outputs", []) if "data" in x]:
        texts = {form: data for form, data in output.data.items() if isinstance(data, str)}
        best = next((form for form in FORMS if form in texts), "text/plain")
        output.data = {best: texts.get(best, "")}
    try:
        html, _ = HTMLExporter(template_name="basic").from_notebook_node(book)
    except Exception as error:  # of whichever kind: it must not end the report
        raise ValueError(f"nbconvert cannot show it ({error!r})") from error
    if len(html) > LONG:
        raise ValueError(f"its page would have {len(html):,} characters; {LONG:,} are shown")
    rules = {"tags": TAGS.split(), "attributes": _allowed, "strip": True}
    html = bleach.clean(html, **rules, protocols=["http", "https", "data"]).replace("\xa0", " ")
    cell = {"cell_type": "raw", "metadata": {"format": "text/html"}, "source": record.plain(html)}
    metadata = {"kernelspec": runs.KERNEL, "language_info": {"name": "python"}}
    return {"nbformat": 4, "nbformat_minor": 4, "metadata": metadata, "cells": [cell]}


def _allowed(tag: str, name: str, value: str) -> bool:
    """Whether a tag may have an attribute: links lead to the web, pictures lie in the page."""
    if tag == "img":
        return name == "alt" or (name == "src" and bool(PICTURE.fullmatch(value)))
    if tag == "a":
        return name == "href" and value.startswith(("https://", "http://"))
    cell = tag in ("td", "th") and name in ("colspan", "rowspan") and value.isdigit()
    return cell or (tag in ("div", "span") and name == "class")


# The report of a folder of one's own


def build() -> Path:
    """Make report/ under `workbook.out()` from the finished runs of 50_own there.

    Pages show text, tables and pictures; what a notebook's outputs hold of scripts is left out.

    Returns:
        The path of index.html.
    """
    every, target = record.everything(), workbook.out() / "report"
    check_ours(target)
    done = [run for run in every if run["notebook"] == "50_own" and run["state"] == "done"]
    pages, rows = {}, []
    for run in done:
        notebook = workbook.out() / "runs" / "50_own" / run["run"] / "executed.ipynb"
        try:
            content = checking.notebook(notebook, json.loads(notebook.read_bytes()))
            pages[run["run"]] = cleaned(content)["cells"][0]["source"]
        except ValueError as error:
            pages[run["run"]] = f"<p>{escape(f'This notebook cannot be shown: {error}')}</p>"
    for run in every:
        told = run | {SEEN: _pretrained(run)}
        rows.append({name: escape(str(told.get(name, ""))) for name in COLUMNS})
        if run in done:
            rows[-1]["run"] = '<a href="{run}.html">{run}</a>'.format(**rows[-1])
    table = pd.DataFrame(rows, columns=COLUMNS).to_html(index=False, escape=False, border=0)
    shutil.rmtree(target, ignore_errors=True)  # nothing can fail any more but the disk
    _write(target / "index.html", "Runs", table)  # first: it says whose the folder is
    for name, page in pages.items():
        _write(target / f"{name}.html", name, page)
    return target / "index.html"


def check_ours(folder: Path) -> None:
    """Let a report take a folder's place if that is empty or a report.

    Raises:
        ValueError: it holds something else, which would be lost.
    """
    if not _is_ours(folder):
        raise ValueError(
            f"{folder} is no report of osnb, and a report takes its place: move it, or set OSNB_OUT"
        )


def _is_ours(folder: Path) -> bool:
    index = folder / "index.html"
    text = index.read_text(encoding="utf8", errors="replace") if index.is_file() else ""
    held = [folder] if folder.is_file() else folder.glob("*")
    docs = (each.name == "docs" and _is_ours(each) for each in held)  # of `osnb docs`
    return any(mark in text for mark in MARKS) or all(docs)


def _pretrained(run: dict[str, Any]) -> str:
    """Which unknown classes the network of a training could have seen: `hierarchy.seen`."""
    file = workbook.out() / "runs" / run["notebook"] / run["run"] / "scores.parquet"
    if not file.is_file():
        return ""
    table, of = tables.read(file), defaultdict(list)
    if "settings" not in table.attrs:  # no run of ours wrote it
        return ""
    network = table.attrs["settings"]["network"]
    if any(key.startswith("model/") for key in table.attrs["inputs"]):
        network = network | {"weights": "somebody's"}  # from elsewhere: nobody said what it saw
    for name in table.loc[table["role"] == "unknown", "class"].unique():
        of[hierarchy.seen(network, name)].append(name)
    return "; ".join(f"{answer}: {', '.join(names)}" for answer, names in sorted(of.items()))


def _write(path: Path, title: str, body: str) -> None:
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    workbook.write_text(path, f"<!doctype html>{head}<h1>{escape(title)}</h1>{body}")
