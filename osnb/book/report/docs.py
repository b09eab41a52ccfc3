"""The documentation: tracked Markdown and the docstrings, as pages of a site."""

import posixpath
import re
import shutil
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from osnb.base import workbook

DOCS = workbook.PACKAGE / "docs"
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")
TRAINING = "api/training.md"  # docstrings of modules that import torch


def build() -> Path:
    """Make report/docs/ under `workbook.out()`: no run, no notebook and no network is needed.

    Returns:
        The path of index.html.

    Raises:
        ChildProcessError: Sphinx failed or warned; the message is what it said.
    """
    from osnb.book import report

    target = workbook.out() / "report" / "docs"
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".docs-") as folder:
        for name, content in [*report.settings(), *files()]:
            path = Path(folder) / "source" / name.removeprefix("docs/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        report.sphinx(Path(folder))
        shutil.rmtree(target, ignore_errors=True)
        shutil.move(Path(folder) / "html", target)
    return target / "index.html"


def files() -> Iterator[tuple[str, bytes]]:
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
