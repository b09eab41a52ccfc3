"""The report of a folder of one's own: its evaluations as pages, its runs in a table."""

import shutil
from html import escape
from pathlib import Path

from osnb.base import workbook
from osnb.book import record

STYLE = "body{max-width:60em;margin:2em auto;font-family:sans-serif}img{max-width:100%}"
STYLE += (
    "pre{overflow:auto;background:#f4f4f4;padding:.5em}td,th{padding:.1em .8em;text-align:left}"
)
COLUMNS = ("notebook", "run", "state", "seconds")


def build() -> Path:
    """Make report/ under `workbook.out()` from the finished runs of 50_own there.

    Pages show text, tables and pictures; what a notebook's outputs hold of scripts is left out.

    Returns:
        The path of index.html.
    """
    from nbconvert import HTMLExporter

    runs, target = record.everything(), workbook.out() / "report"
    done = [run for run in runs if run["notebook"] == "50_own" and run["state"] == "done"]
    shutil.rmtree(target, ignore_errors=True)
    exporter = HTMLExporter(template_name="basic", sanitize_html=True)
    for run in done:
        notebook = workbook.out() / "runs" / "50_own" / run["run"] / "executed.ipynb"
        _write(target / f"{run['run']}.html", run["run"], exporter.from_filename(str(notebook))[0])
    pages = {run["run"] for run in done}
    _write(target / "index.html", "Runs", _table(runs, pages))
    return target / "index.html"


def _table(runs: list[dict], pages: set[str]) -> str:
    rows = ["".join(f"<th>{name}</th>" for name in COLUMNS)]
    for run in runs:
        cells = {name: escape(str(run.get(name, ""))) for name in COLUMNS}
        if run["notebook"] == "50_own" and run["run"] in pages:
            cells["run"] = f'<a href="{cells["run"]}.html">{cells["run"]}</a>'
        rows.append("".join(f"<td>{cell}</td>" for cell in cells.values()))
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"


def _write(path: Path, title: str, body: str) -> None:
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    with workbook.writing(path) as aside:
        aside.write_text(f"<!doctype html>{head}<h1>{escape(title)}</h1>{body}", encoding="utf8")
