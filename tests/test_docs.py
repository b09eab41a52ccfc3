"""The documentation: its links lead somewhere, its files to copy work, Sphinx makes pages of it."""

import os
import re
import shutil
import subprocess
import sys
from functools import cache

import pytest
from markdown_it import MarkdownIt

from osnb import losses, models
from osnb.base import workbook
from osnb.book import report

ROOT = workbook.PACKAGE.parent
TEMPLATES = ROOT / "osnb" / "book" / "report" / "pages"  # filled before they are Markdown
LISTED = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True)
PAGES = [path for path in map(ROOT.joinpath, LISTED.stdout.split()) if path.parent != TEMPLATES]
EXTEND = sorted(path for path in (report.DOCS / "extend").glob("*.md") if path.stem != "index")


@cache
def tokens(page):
    return MarkdownIt().enable("table").parse(page.read_text(encoding="utf8"))


def links(page):
    """Targets of links and pictures, those in code left out."""
    inner = [part for token in tokens(page) for part in token.children or ()]
    targets = [part.attrGet("href") or part.attrGet("src") for part in inner]
    return [target for target in targets if target]


def anchors(page):
    """Names of its headings, as GitHub and MyST give them."""
    pairs = zip(tokens(page), tokens(page)[1:], strict=False)
    heads = [text.content for opened, text in pairs if opened.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def broken(page):
    """Links of a page to no file, or to no heading of one."""
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if link.startswith(("https://", "http://")):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


def test_all_pages_are_looked_at():
    assert {ROOT / "README.md", report.DOCS / "index.md", *EXTEND} <= set(PAGES)
    assert len(EXTEND) == 8


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page):
    assert list(broken(page)) == []


def test_a_link_to_nowhere_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A b\n\n[1](#a-b) [2](#c) [3](page.md#a-b) [4](none.md) ![5](none.svg) `[6](x)`"
    )
    assert list(broken(page)) == ["#c", "none.md", "none.svg"]


def test_the_front_page_leads_to_every_page_in_two_steps():
    there, reached = report.DOCS / "index.md", set()
    assert there in {(ROOT / link).resolve() for link in links(ROOT / "README.md")}
    for page in (there, *report.DOCS.glob("*/index.md")):
        reached |= {(page.parent / link.partition("#")[0]).resolve() for link in links(page)}
    assert set(report.DOCS.rglob("*.md")) <= reached | {there}


def code(page):
    """The pieces of Python on a page; the first is the file to copy."""
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf8"), re.DOTALL)


def test_each_file_to_copy_passes_its_own_test(tmp_path):
    files = [f"{page.stem}/mine.py" for page in EXTEND]
    for page, file in zip(EXTEND, files, strict=True):
        (tmp_path / page.stem).mkdir()
        (tmp_path / file).write_text(code(page)[0])
    command = [sys.executable, "-m", "pytest", "-q", "-rp", "-p", "no:cacheprovider"]
    command += ["--import-mode=importlib", *files]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    assert {*re.findall(r"^PASSED (.*?)::", done.stdout, re.M)} == {*files}


@pytest.mark.parametrize(
    ("page", "room", "line"),
    [
        ("reader", "datasets", "READERS['packed'] = packed"),
        ("protocol", "protocols", "PROTOCOLS['thirds'] = thirds"),
    ],
)
def test_a_file_to_copy_can_be_part_of_the_package(page, room, line, tmp_path):
    """Its room imports it beside its own modules, before the catalogue."""
    shutil.copytree(report.DOCS.parent, tmp_path / "osnb", copy_function=os.symlink)
    (tmp_path / "osnb" / room / "mine.py").write_text(
        code(report.DOCS / "extend" / f"{page}.md")[0]
    )
    init = tmp_path / "osnb" / room / "__init__.py"
    text, name = init.read_text(), line.rpartition(" ")[2]
    init.unlink()
    text = text.replace("\nfrom osnb", f"\nfrom osnb.{room}.mine import {name}\nfrom osnb", 1)
    init.write_text(f"{text}\n{line}\n")
    done = subprocess.run(
        [sys.executable, "-c", f"import osnb.{room}; print(osnb.__file__)"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith(str(tmp_path)), done.stderr[-2000:]


def test_the_metric_of_its_page_is_called_on_the_scores_of_finished_runs(tmp_path):
    for name, text in zip(
        ("mine.py", "use.py"), code(report.DOCS / "extend" / "metric.md"), strict=True
    ):
        (tmp_path / name).write_text(text)
    done = subprocess.run([sys.executable, "use.py"], cwd=tmp_path, capture_output=True, text=True)
    assert re.search(r"^mini_p2_entropic 0\.[1-4]\d*$", done.stdout, re.M), done.stderr[-2000:]


def test_pages_name_goals_of_make_that_there_are():
    goals = {*re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M), ".venv/ready"}
    for page in report.DOCS.rglob("*.md"):
        text = page.read_text(encoding="utf8")
        assert {*re.findall(r"`make ([^` ]+)", text)} <= goals
        assert not re.search(r"`make`[^.`]* installs", text), page  # alone it lists the goals


def test_a_page_links_to_pages_and_names_other_files():
    texts = {name: text.decode() for name, text in report.documents()}
    assert "[Operations](operations.md)" in texts["docs/reproduction.md"]
    assert "`figures/README.md`" in texts["docs/reproduction.md"]
    assert "](../" not in texts["docs/reproduction.md"] + texts["docs/index.md"]


def test_without_torch_no_page_of_the_api_needs_it(monkeypatch):
    assert b"osnb.losses" in dict(report.documents())["docs/api/training.md"]
    monkeypatch.setattr(report, "find_spec", lambda name: None)
    modules = r":: osnb\.(losses|train|models|datasets|experiment)"
    assert not [name for name, text in report.documents() if re.search(modules, text.decode())]


@pytest.mark.slow
def test_the_site_is_made_without_a_warning_and_its_links_lead_to_files(tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "out", lambda: tmp_path)
    index = report.documentation()
    pages = {path.relative_to(index.parent).as_posix() for path in index.parent.rglob("*.html")}
    assert {f"{name.removeprefix('docs/')[:-3]}.html" for name, _ in report.documents()} <= pages
    for page in index.parent.rglob("*.html"):
        text = page.read_text(encoding="utf8")
        for link in re.findall(r'(?:href|src)="([^"#?]+)', text):
            assert link.startswith("https://") or (page.parent / link).exists(), (page, link)
    api = "".join(page.read_text(encoding="utf8") for page in index.parent.glob("api/*.html"))
    named = ["osnb.metrics.oscr", "osnb.scores.max_logit", "osnb.base.tables.read"]
    for make in (*losses.LOSSES.values(), *models.MODELS.values()):
        made = getattr(make, "func", make)
        named.append(f"{made.__module__}.{made.__qualname__}")
    for name in named:
        assert f'id="{name}"' in api
