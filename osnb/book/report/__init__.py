"""The report: a static site of all artefacts, built by Sphinx, read without a network."""

import json
import posixpath
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import metadata
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import pandas as pd
from filelock import FileLock
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from osnb.base import workbook
from osnb.book import record, runs
from osnb.book.archive import checking
from osnb.book.report import facts, strange
from osnb.book.verify import verify
from osnb.evidence import claims, gallery
from osnb.teach import touch

HERE = Path(__file__).parent
Files = Iterator[tuple[str, bytes]]  # by name below the source folder
DOCS = workbook.PACKAGE / "docs"
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")
TRAINING = "api/training.md"  # docstrings of modules that import torch
MATHJAX = ("tex-chtml.js", "output/chtml/fonts/woff-v2/*")  # of its 24 MB what pages need
WORDS = ("GLOSSARY.md", "REFERENCES.md")  # pages of notebooks/ to which the notebooks link


def build(processes: int = 1) -> Path:
    """Make report/ under `workbook.out()` from figures, runs, notebooks and params files.

    Nothing is executed.

    Args:
        processes: that decide claims, as `claims.decide` takes them.

    Returns:
        The path of index.html.

    Raises:
        ChildProcessError: Sphinx failed or warned; the message is what it said.
    """
    return _site(_files(processes), workbook.out() / "report")


def documentation() -> Path:
    """Make report/docs/ under `workbook.out()`: no run, no notebook and no network is needed.

    Returns and raises what `build` does.
    """
    pages = ((name.removeprefix("docs/"), text) for name, text in documents())
    return _site(chain(settings(), pages), workbook.out() / "report" / "docs")


def _site(files: Files, target: Path) -> Path:
    """Put what Sphinx makes of files in the place of `target`, which is whole before and after."""
    strange.check_ours(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".report-") as folder:
        work = Path(folder)
        for name, content in files:
            path = work / "source" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        sphinx(work)
        (workbook.out() / "runs").mkdir(exist_ok=True)
        with FileLock(workbook.out() / "runs" / ".report.lock"):  # another one may be made now
            if target.exists():
                target.rename(work / "old")
            (work / "html").rename(target)
    return target / "index.html"


def sphinx(work: Path) -> None:
    """Build work/html from work/source; a warning is an error."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-j", "2", "--no-color"]
    folders = ["-d", work / "doctrees", work / "source", work / "html"]
    ended = subprocess.run([*command, *folders], capture_output=True, text=True)
    if ended.returncode:
        said = (ended.stderr or ended.stdout).strip()
        raise ChildProcessError(f"the report was not made, the one before stays; Sphinx:\n{said}")


# Its source folder: pages made from templates, and the files that they show


def _files(processes: int = 1) -> Files:
    """Each file of the source folder: its name there and its content."""
    papers, sizes = [*gallery.PAPERS], [*claims.SIZES]
    done, decided = facts.runs(), claims.decide(papers, sizes, processes=processes)
    verdicts, notebooks = verify(), facts.notebooks(done)
    papers = facts.papers(decided, verdicts)
    yield from chain(settings(), documents(), touch.files(), *map(_notebook, notebooks))
    parts = [part for paper in papers for each in paper["done"] for part in each["parts"]]
    for made in chain(*parts):
        for name in made["files"].values():
            yield f"{made['place']}/{name}", (made["folder"] / name).read_bytes()
    yield "lists.csv", facts.LISTS.read_bytes()
    books = workbook.root() / "notebooks"
    words = [page for page in WORDS if (books / page).is_file()]
    for page in words:
        yield page, _linked((books / page).read_text(encoding="utf8"), "").encode()
    counts = {"runs": len(done), "span": facts.span(done), "sizes": facts.sizes(decided)}
    counts |= {"follows": facts.follows(verdicts), "words": [page[:-3] for page in words]}
    yield from _pages(decided, papers, notebooks, counts)


def _pages(decided: pd.DataFrame, papers: list, notebooks: list, counts: dict) -> Files:
    """The pages that templates make: of papers, notebooks, claims, own data, and the first one."""
    render = _renderer(notebooks)
    for paper in [paper for paper in papers if paper["done"]]:
        yield f"{paper['key']}.md", render("paper", paper=paper)
    for notebook in notebooks:
        yield f"{notebook['name']}/index.md", render("notebook", notebook=notebook)
    yield "claims.md", render("claims", papers=facts.claimed(decided))
    page = workbook.root() / "figures" / "README.md"  # where `make outputs` has put the table
    kept = page.read_text(encoding="utf8") if page.is_file() else ""
    blocks = {"table": "own data", "others": "no difference", "counted": "counted"}
    own = {key: gallery.block(kept, name) for key, name in blocks.items()}
    yield "own-data.md", render("own-data", **own)
    yield "quickdraw-openset.md", render("quickdraw-openset", **facts.benchmark())
    listed = gallery.artefacts(workbook.root(), workbook.out())
    counts |= {"shown": gallery.counted(gallery.shown(listed))}
    yield "index.md", render("index", papers=papers, notebooks=notebooks, **counts)


def settings() -> Files:
    """What Sphinx needs beside pages, of the report and of the documentation.

    MathJax comes from the package sphinx-mathjax-offline, so that no page asks a server.
    """
    yield "conf.py", (HERE / "conf.py").read_bytes()
    yield "_static/report.css", (HERE / "report.css").read_bytes()
    package = "sphinx-mathjax-offline"
    folder = Path(metadata.distribution(package).locate_file(f"{package}/static/mathjax"))
    for path in [path for pattern in MATHJAX for path in sorted(folder.glob(pattern))]:
        yield f"_static/mathjax/{path.relative_to(folder)}", path.read_bytes()


def _notebook(notebook: dict) -> Files:
    for page in notebook["pages"]:
        has = page["run"] in {each["run"] for each in notebook["params"]}
        anchor = f"#params-{notebook['name']}-{page['run']}" if has else ""
        content, fault = _read(page)
        content["cells"] = _titled(content["cells"], notebook["name"])
        for cell in [cell for cell in content["cells"] if cell["cell_type"] == "markdown"]:
            cell["source"] = _linked("".join(cell["source"]), "../")
        text = _shown(content, f"{page['note']} {fault}[Params](index.md{anchor}).")
        yield f"{notebook['name']}/{page['run']}.ipynb", text.encode()
    for each in notebook["params"]:
        yield f"{notebook['name']}/params/{each['run']}.yaml", each["file"].read_bytes()


def _linked(text: str, up: str) -> str:
    """Markdown of notebooks/, its links to what lies there led to the report's pages."""
    text = re.sub(r"\]\((\d\d_\w+)\.ipynb\)", rf"]({up}\1/index.md)", text)
    return re.sub(rf"\]\(({'|'.join(WORDS)})", rf"]({up}\1", text)


def _read(page: dict) -> tuple[dict, str]:
    """The notebook of a page, and why it is not shown, if it is no notebook."""
    try:
        content = checking.notebook(page["source"].name, json.loads(page["source"].read_bytes()))
        return (strange.cleaned(content) if page["imported"] else content), ""
    except (ValueError, RecursionError) as error:
        empty = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": []}
        return empty, f"It is not shown: {_literal(error)}. "


def _titled(cells: list[dict], name: str) -> list[dict]:
    """The cells, behind a title where none of them begins with one: a page needs it."""
    return cells if facts.title(cells) else [_text("osnb-title", f"# {name}"), *cells]


def _text(name: str, source: str) -> dict:
    return {"cell_type": "markdown", "metadata": {}, "id": name, "source": source}


def _shown(content: dict, note: str) -> str:
    """A notebook to be read: with the note under its title, without what needs a kernel."""
    for cell in [cell for cell in content["cells"] if cell["cell_type"] == "code"]:
        for output in cell["outputs"]:
            output.get("data", {}).pop(runs.WIDGET, None)
        last = "".join(cell["source"]).strip().rpartition("\n")[2].strip()
        cell["metadata"]["mystnb"] = {"image": {"alt": f"Output of {last}"}}
    content["metadata"].pop("widgets", None)
    content["cells"].insert(1, _text("osnb-note", f":::{{note}}\n{note}\n:::"))
    for cell in content["cells"] if content["nbformat_minor"] < 5 else ():  # they had no ids then
        cell.pop("id", None)
    return json.dumps(content, indent=1)


def _renderer(notebooks: list[dict]) -> Callable[..., bytes]:
    """A function that fills a template of pages/."""
    pages = {(each["name"], page["run"]) for each in notebooks for page in each["pages"]}
    params = {(each["name"], file["run"]) for each in notebooks for file in each["params"]}
    how = {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(loader=FileSystemLoader(HERE / "pages"), **how)

    def links(made: dict) -> str:
        notebook, run = made["notebook"], made["run"]
        here, index = (notebook, run) in pages, f"{notebook}/index.md"
        copy = f"[notebook]({notebook}/{run}.ipynb)" if here else f"[elsewhere]({index})"
        anchor = f"#params-{notebook}-{run}" if (notebook, run) in params else ""
        return f"{copy}, [params]({index}{anchor})"

    environment.filters |= {"links": links, "preview": _preview, "literal": _literal}
    return lambda name, **known: environment.get_template(f"{name}.md").render(**known).encode()


def _preview(table: pd.DataFrame, rows: int, columns: int) -> str:
    """The upper left corner of a table, whose cells are shown as they are and not parsed."""
    corner = table.iloc[:rows, :columns]
    corner = corner.astype(object).where(corner.notna(), "").map(lambda x: record.plain(str(x)))
    html = corner.to_html(index=False, border=0, classes="docutils data")
    wide = f'<div class="table-wrapper">\n{html.replace("`", "&#96;")}\n</div>'
    return f"```{{raw}} html\n{wide}\n```"


def _literal(text: object) -> str:
    """A text for Markdown, in which nothing of it means anything."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", " ".join(record.plain(str(text)).split()))


# The documentation: tracked Markdown and the docstrings, as pages of a site


def documents() -> Files:
    """Each page: its name in the folder of sources, and its text."""
    for page in sorted(DOCS.rglob("*.md")):
        name, text = page.relative_to(DOCS).as_posix(), page.read_text(encoding="utf8")
        if name == TRAINING and find_spec("torch") is None:
            text = text.partition("```")[0]
        yield f"docs/{name}", LINK.sub(lambda link, page=page: _within(page, link), text).encode()


def _within(page: Path, link: re.Match) -> str:
    """A link as it is if it leads to a page; else its words, and the file by its name."""
    target = Path(posixpath.normpath(page.parent / link[2]))
    if target.is_relative_to(DOCS):
        return link[0]
    name = target.relative_to(DOCS.parent.parent).as_posix()
    return f"`{name}`" if link[1] == target.name else f"{link[1]} (`{name}`)"
