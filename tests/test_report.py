"""The report: every artefact of the papers, complete, read without a network, replaced whole."""

import json
import os
import re
import shutil
from contextlib import contextmanager
from html.parser import HTMLParser
from urllib.parse import unquote

import browser
import pandas as pd
import pytest
from conftest import Project

from osnb.base import workbook
from osnb.book import record, report
from osnb.book.report import facts
from osnb.book.report import strange as strange_pages
from osnb.evidence import gallery
from osnb.experiment import layers
from osnb.protocols import quickdraw
from osnb.teach import touch

RESOURCES = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
NOTEBOOKS = ("10_palechor_protocols", "13_palechor_results", "20_vaze_splits")
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA"
    "AABJRU5ErkJggg=="
)
WIDGET = "application/vnd.jupyter.widget-view+json"


class Page(HTMLParser):
    """Of a page: ids, links, resources that a browser fetches, images without words, text."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.fetched, self.mute, self.text = set(), [], [], [], ""
        self.feed(path.read_text(encoding="utf8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids |= {found.get("id"), found.get("name")}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in RESOURCES and RESOURCES[tag] in found:
            self.fetched.append(found[RESOURCES[tag]])
        if tag == "img" and not found.get("alt"):
            self.mute.append(found["src"])

    def handle_data(self, data):
        self.text += data


KNOWN = "Of a [known](GLOSSARY.md#known) class."  # in a notebook, as these are kept


def begun(project):
    """Three notebooks, one with a run that is done, and the figures that are in git."""
    for notebook in NOTEBOOKS:
        path = project.add("works", notebook)
        shutil.copytree(
            workbook.PACKAGE.parent / "figures" / notebook, project.folder / "figures" / notebook
        )
        project.write(notebook, "# Device: any.\nrun: mini\n", "mini")
    words = f"# Glossary\n\n## Roles\n\n### known\n\nFirst in [one]({NOTEBOOKS[1]}.ipynb).\n"
    (project.folder / "notebooks" / "GLOSSARY.md").write_text(words)
    directory = project.folder / "runs" / NOTEBOOKS[1] / "mini"
    content = json.loads(path.read_text())
    output = {"data": {"image/png": PNG, WIDGET: {"model_id": "3"}}, "metadata": {}}
    content["cells"][-1]["outputs"] = [output | {"output_type": "display_data"}]
    content["cells"].append(
        {"cell_type": "markdown", "metadata": {}, "source": f"So $a^2$. {KNOWN}", "id": "x"}
    )
    content["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    directory.mkdir(parents=True)
    (directory / "executed.ipynb").write_text(json.dumps(content))
    done = {"notebook": NOTEBOOKS[1], "run": "mini", "state": "done", "host": "here"}
    done |= {"parameters": {}, "seconds": 3.2, "commit": "0a99264" * 5}
    record.write(directory, done | {"finished": "2026-11-21T20:54:22+00:00"})
    headless(project)
    return project


def headless(project):
    """Another notebook, without a heading of the first level; it shows the pad."""
    path = project.add("works", "50_fake")
    content = json.loads(path.read_text())
    content["cells"] = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    output = {"output_type": "display_data", "data": touch.show("pad")._repr_mimebundle_()[0]}
    content["cells"][-1]["outputs"] = [output | {"metadata": {}}]
    content["cells"].append({"cell_type": "markdown", "metadata": {}, "source": "#### Deep"})
    path.write_text(json.dumps(content | {"nbformat": 4, "nbformat_minor": 4}))


@contextmanager
def elsewhere(folder):
    """A project in a folder of its own, and little documentation: test_browser has all of it."""
    with pytest.MonkeyPatch.context() as patch:
        made = Project(folder / "project")
        patch.setattr(report, "documents", lambda: iter([("docs/index.md", b"# Docs\n")]))
        patch.setattr(workbook, "root", lambda: made.folder)
        patch.setenv("OSNB_OUT", str(made.folder))
        yield made


def few(patch):
    """Claims of what is printed alone, and lists of one protocol: for what looks at neither."""
    patch.setattr(report.claims, "SIZES", {"printed": report.claims.SIZES["printed"]})
    patch.setattr(quickdraw, "SPLITS", {"quickdraw_p2": quickdraw.SPLITS["quickdraw_p2"]})


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The project of `begun` and its report, built from nothing, with each of its pages."""
    with elsewhere(tmp_path_factory.mktemp("report")) as made:
        index = begun(made).folder, report.build()
    return *index, {path: Page(path) for path in sorted(index[1].parent.rglob("*.html"))}


@pytest.fixture
def built(site, monkeypatch):
    """The folder of that report, with the project in place for another build."""
    monkeypatch.setattr(workbook, "root", lambda: site[0])
    monkeypatch.setenv("OSNB_OUT", str(site[0]))
    return site[1].parent


@pytest.fixture
def pages(site):
    return site[2]


def test_all_44_artefacts_have_a_row_and_those_of_no_figure_wait_for_their_notebook(tmp_path):
    found = gallery.artefacts(tmp_path)
    once = found.drop_duplicates(["paper", "artefact"])
    assert once["kind"].value_counts().to_dict() == {"figure": 24, "table": 20}
    assert (found["run"] == "").all()
    waits = found.set_index(["paper", "part"])["notebook"]
    assert waits["vaze2022", "Figure 1a"] == "23_vaze_max_logit"
    assert waits["vaze2022", "Figure 1b"] == "20_vaze_splits"
    assert waits["palechor2023", "Table 2b"] == "13_palechor_results"


def test_a_run_in_a_later_folder_takes_the_place_of_an_earlier_one(tmp_path):
    shutil.copytree(
        workbook.PACKAGE.parent / "figures" / NOTEBOOKS[1], tmp_path / "figures" / NOTEBOOKS[1]
    )
    found = gallery.artefacts(workbook.PACKAGE.parent, tmp_path)
    made = found[(found["paper"] == "palechor2023") & (found["part"] == "Figure 2")]
    assert made["size"].tolist() == ["mini", "tiny"]
    assert {folder.is_relative_to(tmp_path) for folder in made["folder"]} == {True}


def test_an_artefact_that_lacks_a_part_is_not_done(project):
    begun(project)
    for file in project.folder.glob("figures/13_*/*/table_2b.json"):
        file.unlink()
    found = facts.papers(report.claims.decide(["palechor2023"], ["printed"]), [])[0]
    assert [each["name"] for each in found["open"]] == ["Table 2"]
    assert found["open"][0]["waits"] == ["13_palechor_results"]
    assert found["count"] == {"figure": "6 of 6", "table": "4 of 5"}


def test_an_artefact_that_does_not_follow_is_marked_and_counted(project):
    begun(project)
    table = "figures/13_palechor_results/mini/table_2a"
    other = "figures/13_palechor_results/mini/figure_2.svg"
    verdicts = [
        {"artefact": table, "verdict": "edited"},
        {"artefact": other, "verdict": "unstamped"},
        {"artefact": table.replace("2a", "2b"), "verdict": "follows"},
    ]
    decided = report.claims.decide(["palechor2023"], ["printed"])
    paper = facts.papers(decided, verdicts)[0]
    wrong = {each["name"]: each["wrong"] for each in paper["done"] if each["wrong"]}
    assert wrong == {"Table 2": ["edited"], "Figure 2": ["without a stamp"]}
    assert paper["wrong"] == 2
    assert facts.follows(verdicts) == (
        "1 of 3 figures, tables and scores tables follow; the others: 1 edited, 1 without a stamp"
    )
    assert facts.follows(verdicts[2:]) == "1 of 1 figures, tables and scores tables follow"


@pytest.mark.parametrize(
    ("cells", "title"),
    [
        ([("markdown", ["# A *title*\n", "\n", "Text."])], "A *title*"),
        ([("markdown", "## Second"), ("markdown", "# First")], ""),
        ([("code", "# A comment\n1 + 1")], ""),
        ([("markdown", "#hashtag")], ""),
        ([], ""),
    ],
)
def test_a_notebook_without_a_title_is_shown_under_its_name(cells, title):
    cells = [{"cell_type": kind, "metadata": {}, "source": text} for kind, text in cells]
    assert facts.title(cells) == title
    first = report._titled(cells, "50_fake")[0]
    assert "".join(first["source"]).startswith(f"# {title}" if title else "# 50_fake")


def test_a_claim_is_about_the_artefacts_that_its_section_names():
    assert facts._about("Tables 5, 6", "Table 6")
    assert facts._about("Table 2a", "Table 2")
    assert not facts._about("Tables 5, 6", "Figure 5")
    assert not facts._about("Sec. 3, App. F.1", "Table 3")
    assert not facts._about("Table 12", "Table 2")
    assert facts._about("App. B, Figure 7a", "Figure 7")
    assert facts._about("Tables 5, 6, Sec. 4.2", "Table 6")
    assert not facts._about("Tables 5, 6, Sec. 4.2", "Table 4")


def test_the_benchmark_s_page_reads_what_its_notebook_saved(project, tmp_path, monkeypatch):
    rows = pd.DataFrame({"protocol": "quickdraw_kim", "task": "unknown", "method": ["a", "b"]})
    rows = rows.assign(auroc=[0.61234, 0.5], auroc_low=0.5051, auroc_high=0.7)
    folders = {"elsewhere": workbook.root(), "here": tmp_path / "out"}
    for where, folder in folders.items():
        file = folder / "figures" / facts.RESULTS
        file.parent.mkdir(parents=True)
        rows.assign(protocol=where).to_csv(file, index=False)
    assert [*facts.benchmark()["results"]] == ["elsewhere"]
    monkeypatch.setenv("OSNB_OUT", str(folders["here"]))
    few(monkeypatch)
    ((protocol, table),) = facts.benchmark()["results"].items()
    assert (protocol, [*table]) == ("here", ["task", "method", "auroc"])
    assert table["auroc"].tolist() == ["0.612 [0.51, 0.70]", "0.500 [0.51, 0.70]"]


def test_the_benchmark_s_page_has_every_list_and_does_without_runs(project):
    page = facts.benchmark()
    assert page["results"] == {}
    frozen = pd.read_csv(workbook.PACKAGE / "data" / "quickdraw" / "lists.csv")
    assert set(page["lists"]["sha256"]) == set(frozen["sha256"])
    assert len(page["lists"]) == len(frozen) == 61
    assert set(frozen["name"]) == {page["title"]}
    assert set(frozen["version"]) == {page["version"]}
    each = [row[["protocol", "split"]] for _, row in frozen.iterrows()]
    lists = [quickdraw.SPLITS[protocol][0](split=split) for protocol, split in each]
    assert page["classes"] == len({wnid for table in lists for wnid in table["wnid"]})


def test_the_benchmark_s_page_and_notebook_say_where_our_networks_had_fewer_drawings():
    benchmarks = layers.catalogue("benchmarks")["benchmarks"].values()
    setups = [each["mini"] for each in benchmarks if "train_per_class" in each.get("mini", {})]
    told = {f"{each['train_per_class']} on `{each['protocol']}`" for each in setups}
    notebook = workbook.root() / "notebooks" / f"{facts.RESULTS.parts[0]}.ipynb"
    for page in (report.HERE / "pages" / "quickdraw-openset.md", notebook):
        assert told <= set(re.findall(r"\d+ on `quickdraw_\w+`", page.read_text()))


@pytest.mark.slow
def test_the_benchmark_has_a_page_that_says_how_to_compare(pages, built):
    assert "quickdraw-openset.html" in pages[built / "index.html"].links
    text = " ".join(pages[built / "quickdraw-openset.html"].text.split())
    assert "quickdraw_tinyimagenet 0 20 0 180" in text
    assert "osnb score mine.csv --against" in text
    assert "The notebook has not been executed here." in text
    assert "Google, Inc." in text


@pytest.mark.slow
def test_the_front_page_lists_every_artefact_with_what_it_waits_for(pages, built):
    text = " ".join(pages[built / "index.html"].text.split())
    assert "Three papers on open-set recognition: 16 of 44 tables and figures" in text
    counted = gallery.counted(gallery.shown(gallery.artefacts(workbook.root())))
    assert counted.endswith("27 are not made.")
    assert counted.replace("'", "’") in text
    assert "6 of 6 5 of 5" in text
    assert "4 of 11 1 of 9" in text
    assert "8 pairs, drawings" in text
    made = gallery.artefacts(workbook.root())
    assert all(title.replace("'", "’") in text for title in made["title"])
    for title, row in made[made["run"] == ""].groupby("title"):
        awaited = " , ".join(row["notebook"].unique())
        assert f"{title.replace(chr(39), chr(8217))} {awaited}" in text
    assert "0.409 / 0.233 / 0.298" in text
    assert "Runs finished here: 1;" in text
    assert re.search(r"0 of \d+ figures, tables and scores tables follow; the others: \d+", text)
    assert "palechor2023: 11 of 11, 11 with parts that do not follow" in text
    assert re.search(r"notebook, params; does not follow: \w+", text)
    assert "13_palechor_results/mini, commit 0a99264" in text


@pytest.mark.slow
def test_each_artefact_links_to_its_notebook_and_its_params_file(pages, built):
    links = pages[built / "index.html"].links
    for notebook in NOTEBOOKS:
        assert f"{notebook}/index.html#params-{notebook.replace('_', '-')}-mini" in links
    assert "13_palechor_results/mini.html" in links
    assert "# Device: any." in pages[built / "13_palechor_results" / "index.html"].text


@pytest.mark.slow
def test_a_notebook_says_whether_it_was_executed_here(pages, built):
    executed, kept = (
        pages[built / notebook / "small.html"]
        if notebook == NOTEBOOKS[0]
        else pages[built / notebook / "mini.html"]
        for notebook in NOTEBOOKS[1::-1]
    )
    assert "Executed here, 2026-11-21 20:54 UTC, in 3 s, commit 0a99264." in executed.text
    assert "Not executed here" in kept.text


def asked(page):
    """What a page fetches from a server."""
    return [x for x in page.fetched if re.match("(https?:)?//", x)]


def lost(path, pages):
    """Of a page: links and resources that lead to no file, or to no place in one."""
    for link in [x for x in pages[path].links + pages[path].fetched if not re.match("[a-z]+:", x)]:
        name, _, anchor = unquote(link).partition("#")
        target = (path.parent / name.partition("?")[0]).resolve() if name else path
        if not target.is_file() or (anchor and anchor not in pages[target].ids):
            yield link


@pytest.mark.slow
def test_no_page_asks_a_server_for_anything(pages, built):
    for path, page in pages.items():
        assert asked(page) == [], path
        assert "requirejs" not in path.read_text().lower()
        assert WIDGET not in path.read_text()
    for path in built.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", path.read_text()), path


@pytest.mark.slow
def test_every_link_leads_to_a_file_and_to_a_place_in_it(pages):
    for path in pages:
        assert [*lost(path, pages)] == [], path


@pytest.mark.slow
def test_a_notebook_s_words_lead_to_the_glossary_and_the_glossary_to_the_notebook(pages, built):
    page = pages[built / NOTEBOOKS[1] / "mini.html"]
    assert "../GLOSSARY.html#known" in page.links
    assert f"{NOTEBOOKS[1]}/index.html" in pages[built / "GLOSSARY.html"].links


@pytest.mark.slow
def test_every_image_has_words_in_its_place(pages):
    assert not [page.mute for page in pages.values() if page.mute]
    assert any("Output of" in path.read_text() for path in pages)


@pytest.mark.slow
def test_equations_are_set_by_a_script_that_lies_beside_the_page(pages, built):
    page = pages[built / "13_palechor_results" / "mini.html"]
    script = [x for x in page.fetched if "tex-chtml" in x]
    assert len(script) == 1
    assert (built / "13_palechor_results" / script[0].partition("?")[0]).is_file()
    assert len(list((built / "_static" / "mathjax").rglob("*.woff"))) > 10


@pytest.mark.slow
def test_a_number_that_was_edited_is_said_to_be_and_a_run_that_is_gone_is_in_no_list(
    built, tmp_path, monkeypatch
):
    few(monkeypatch)
    run = workbook.out() / "runs" / NOTEBOOKS[1]
    assert (built / NOTEBOOKS[1] / "mini.html").is_file()
    shutil.move(run, tmp_path / "gone")
    table = workbook.root() / "figures" / NOTEBOOKS[1] / "mini" / "table_2a.csv"
    good = table.read_text()
    table.write_text(good.replace("0.", "1."))
    files = dict(report._files())
    pages = {name: text.decode() for name, text in files.items() if name.endswith(".md")}
    assert re.search(r"0 of \d+ figures.* follow; the others: .*\d+ edited", pages["index.md"])
    assert "**does not follow: edited**" in pages["index.md"]
    assert "**Does not follow: edited.**" in pages["palechor2023.md"]
    assert "No run is finished here" in pages["index.md"]
    assert f"{NOTEBOOKS[1]}/mini.ipynb" not in files
    assert f"({NOTEBOOKS[1]}/mini." not in pages["index.md"]
    table.write_text(good)
    shutil.move(tmp_path / "gone", run)


@pytest.mark.slow
def test_a_notebook_without_a_heading_is_in_the_report_under_its_name(pages, built):
    page = pages[built / "50_fake" / "small.html"]
    assert "50_fake" in page.text
    assert "Not executed here" in page.text


@pytest.mark.slow
def test_a_report_replaces_the_one_before_and_a_build_that_fails_says_why_and_leaves_it(project):
    (old := project.folder / "report" / "old.html").parent.mkdir()
    old.touch()
    old.with_name("index.html").write_text(report.strange.MARKS[0])
    index, wrong = ("index.md", b"# Index\n"), ("index.md", b"# Index\n\n[x](nowhere.md)\n")
    made = report._site([*report.settings(), index], old.parent)
    assert "Index" in Page(made).text
    assert not old.exists()
    files = lambda: {x: x.read_bytes() for x in old.parent.rglob("*") if x.is_file()}  # noqa: E731
    before = files()
    for _ in range(2):  # not forgotten at the second try
        with pytest.raises(ChildProcessError, match=r"nowhere\.md"):
            report._site([*report.settings(), wrong], old.parent)
    assert files() == before
    assert not [name for name in os.listdir(project.folder) if name.startswith(".report-")]


@pytest.mark.parametrize(
    "name", ["report", "report/thesis.tex", "report/docs/mine.md", "report/index.html"]
)
def test_nothing_but_a_report_is_replaced_by_one(project, name):
    (mine := project.folder / name).parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("<title>Runs</title>")
    for build in (report.strange.build, lambda: report._site(iter(()), project.folder / "report")):
        with pytest.raises(ValueError, match="is no report of osnb"):
            build()
    assert mine.is_file()


SVG = '<svg xmlns="http://www.w3.org/2000/svg" onload="STOLEN()"><script>STOLEN()</script></svg>'
ATTACKS = [  # of Markdown; %s is a file of this machine
    "```{include} %s\n```",
    "```{literalinclude} %s\n```",
    "```{raw} html\n:file: %s\n```",
    "```{raw} html\n<script>STOLEN()</script>\n```",
    "```{code-cell}\nprint(open('%s').read())\n```",
    ":::{figure} %s\n:::",
    "{download}`%s`",
    "[x](%s) ![x](%s) [x](file://%s) [x](javascript:STOLEN()) <file://%s>",
    "<script>STOLEN()</script><img src=x onerror=STOLEN()><iframe src='file://%s'></iframe>",
    "---\nmyst:\n  substitutions:\n    x: '```{include} %s'\n---\n{{ x }}",
    "<a href='java\nscript:STOLEN()'>x</a> <svg onload=STOLEN()></svg> <style>@import '%s'</style>",
    "<base href='file://%s'><meta http-equiv=refresh content='0;url=file://%s'>",
    "<link rel=stylesheet href='http://127.0.0.2/x'><img src='http://127.0.0.2/x.png' srcset=//x>",
    "<form action='file://%s'><input autofocus onfocus=STOLEN()><button formaction=//x>y</form>",
    "<details open ontoggle=STOLEN()>x</details><video src=x onerror=STOLEN()></video>",
    "<math><a xlink:href='javascript:STOLEN()'>x</a></math> $\\href{javascript:STOLEN()}{x}$",
    "<svg><animate onbegin=STOLEN() attributeName=x dur=1s /></svg><template><script>STOLEN()",
]
OUTPUTS = [
    {"text/html": "<b onclick=STOLEN()>x</b><script>STOLEN()</script><object data='%s'></object>"},
    {"application/javascript": "STOLEN()", "text/plain": "\x1b]0;STOLEN\x07\x1b[31mred"},
    {"text/markdown": "```{include} %s\n```"},
    {"text/latex": "$\\href{javascript:STOLEN()}{x}$"},
    {"image/svg+xml": SVG},
    {"image/png": "no base64 %s"},
    {"image/png": PNG},
]


def strange(secret):
    """An executed notebook in which everything is an attack."""
    named = lambda text: text.replace("%s", str(secret))  # noqa: E731
    cells = [{"cell_type": "markdown", "metadata": {}, "source": named(x)} for x in ATTACKS]
    raw = {"format": "text/html"}
    cells.append({"cell_type": "raw", "metadata": raw, "source": "<script>STOLEN()</script>"})
    data = [{kind: named(x) for kind, x in out.items()} for out in OUTPUTS]
    outputs = [{"output_type": "display_data", "metadata": {}, "data": x} for x in data]
    outputs.append({"output_type": "stream", "name": "stdout", "text": "\x1b[2Jx"})
    outputs.append({"output_type": "error", "ename": "E", "evalue": "", "traceback": ["\x1b[1mT"]})
    code = {"metadata": {"mystnb": {"code_prompt_show": "<script>STOLEN()"}}, "outputs": outputs}
    code |= {"cell_type": "code", "execution_count": 1, "source": "?? <script> no Python"}
    nested = {
        "mystnb": {"render_markdown_format": "myst"},
        "kernelspec": {"name": "x", "display_name": "x"},
    }
    return {"nbformat": 4, "nbformat_minor": 4, "metadata": nested, "cells": [*cells, code]}


NONE = ["{}", "[" * 100_000, '{"cells": 5}', "not json"]


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """The report of runs that were imported: one all of attacks, others of no notebook at all."""
    folder = tmp_path_factory.mktemp("imported")
    (folder / "secret.txt").write_text("the secret of this machine")
    secret = folder / "secret.txt"
    with elsewhere(folder) as made, pytest.MonkeyPatch.context() as patch:
        few(patch)
        runs = begun(made).folder / "runs" / NOTEBOOKS[1]
        found = record.read(runs / "mini") | {"imported": {"archive": "x.zip"}}
        texts = {"mini": json.dumps(strange(secret))} | {f"none{i}": x for i, x in enumerate(NONE)}
        for name, text in texts.items():
            record.write(runs / name, found | {"run": name})
            (runs / name / "executed.ipynb").write_text(text)
        table = made.folder / "figures" / NOTEBOOKS[1] / "mini" / "table_2b.csv"
        table.write_text(f'a\n"```\n\n```{{include}} {secret}\n```"\n{{download}}`{secret}`\n')
        return report.build().parent


def shown(**cell):
    """The html of an imported notebook of one cell."""
    whole = {"metadata": {}, "source": "", "execution_count": 1, "outputs": []} | cell
    book = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [whole]}
    return strange_pages.cleaned(book)["cells"][0]["source"]


@pytest.mark.parametrize("lines", [lambda text: text, lambda text: text.splitlines(True)])
def test_texts_of_an_imported_notebook_may_be_lists_of_lines_as_jupyter_writes_them(lines):
    assert "one\n  two" in shown(cell_type="markdown", source=lines("    one\n      two"))
    said = {"output_type": "stream", "name": "stdout", "text": lines("three\nfour")}
    drawn = {"output_type": "display_data", "metadata": {}, "data": {"text/html": lines("a\n<b>b")}}
    found = shown(cell_type="code", source=lines("five\nsix"), outputs=[said, drawn])
    assert all(x in found for x in ("three\nfour", "a\nb", "five", "six"))


@pytest.mark.parametrize("value", [5, None, {"a": 1}, [1], True])
def test_an_output_of_an_imported_notebook_that_is_no_text_is_left_out(value):
    for kind in ("image/svg+xml", "image/png", "text/html", "text/plain"):
        data = {kind: value, "application/x": "y"}
        out = {"output_type": "display_data", "metadata": {}, "data": data}
        assert "<pre></pre>" in shown(cell_type="code", outputs=[out])


def test_what_nbconvert_cannot_show_is_a_sentence(monkeypatch):
    def fails(*_):
        raise KeyError("x")

    monkeypatch.setattr("nbconvert.HTMLExporter.from_notebook_node", fails)
    with pytest.raises(ValueError, match=r"^nbconvert cannot show it \(KeyError\('x'\)\)$"):
        shown(cell_type="markdown")


@pytest.mark.slow
def test_of_an_imported_run_nothing_but_text_and_pictures_is_shown(imported):
    for file in imported.rglob("*"):
        assert not file.is_file() or b"the secret of this" not in file.read_bytes(), file
    page = Page(path := imported / NOTEBOOKS[1] / "mini.html")
    text = re.search(r"<article.*</article>", path.read_text(), re.DOTALL)[0]
    assert not re.search(r"<(script|iframe|object|style|svg)|<[^>]*\son\w+=", text)
    assert not [x for x in page.links if x.startswith(("file:", "javascript:")) or "secret" in x]
    assert "include" in page.text
    assert "red" in page.text
    assert "\x1b" not in text
    assert [x[:25] for x in page.fetched if x.startswith("data:image")] == [
        "data:image/svg+xml;base64",
        "data:image/png;base64,iVB",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(NONE)))
def test_an_executed_notebook_that_is_none_is_named_and_the_report_is_made(imported, number):
    assert "It is not shown: " in Page(imported / NOTEBOOKS[1] / f"none{number}.html").text


@pytest.mark.slow
@pytest.mark.skipif(not browser.CHROME, reason="no browser is installed")
def test_browsers_frame_the_pad_which_answers_without_a_kernel(built, page):
    page.context.set_offline(True)
    page.goto((built / "50_fake" / "small.html").as_uri())
    browser.until(page, lambda: len(page.frames) == 2, browser.START)
    page.frames[1].locator("select").select_option(label="banana")
    card = page.frames[1].locator("[data-network=softmax]")
    browser.until(page, lambda: "banana" in card.inner_text(), browser.START)
    if browser.SHOTS:
        page.screenshot(path=f"{browser.SHOTS}/pad-report.png", full_page=True)
    assert (page.said, page.asked) == ([], [])


@pytest.mark.slow
@pytest.mark.skipif(not browser.CHROME, reason="no browser is installed")
def test_browsers_run_no_script_of_an_imported_run_and_ask_for_nothing(imported, page, tmp_path):
    """Each attack, in the browser that it is meant for."""
    stolen, asked = [], []
    page.expose_function("STOLEN", lambda: stolen.append(page.url))
    page.on("request", lambda request: asked.append(request.url))
    everywhere = (
        "all => all.forEach(x => ['click', 'mouseover', 'focus', 'toggle', 'error', 'load']"
    )
    everywhere += ".forEach(kind => x.dispatchEvent(new Event(kind))))"
    for path in (imported / "index.html", *sorted((imported / NOTEBOOKS[1]).glob("*.html"))):
        page.goto(path.as_uri(), wait_until="networkidle")
        page.eval_on_selector_all("article *", everywhere)
        links = page.eval_on_selector_all("a", "all => all.map(x => x.getAttribute('href') || '')")
        assert not [x for x in links if re.match(r"\s*(javascript|file|data):", x)], path
        assert "the secret of" not in page.content()
        assert page.url == path.as_uri()
    assert stolen == []
    assert not [url for url in asked if not url.startswith((imported.as_uri(), "data:"))]
    (tmp_path / "bad.html").write_text("<b onclick=STOLEN()>x</b><script>STOLEN()</script>")
    page.goto((tmp_path / "bad.html").as_uri())
    page.eval_on_selector_all("b", everywhere)
    browser.until(page, lambda: len(stolen) == 2, browser.START)  # so it would have been seen


def test_numbers_of_a_run_stand_under_what_they_are_of_and_else_apart(tmp_path):
    cells = {
        "mini": ("a; b", "1; 2"),
        "tiny": ("b", "3"),
        "paper": ("c", "4"),
        "own": ("b; d", "5; 6"),
    }
    columns = {"name": "x", "paper": "vaze2022", "kind": "table", "title": "", "missing": ""}
    columns |= {"shows": "part", "cells": "", "notebook": "n", "file": "t", "folder": tmp_path}
    columns |= {"part": "Table 1", "theirs": "", "wrong": ""}
    runs = [{"run": k, "size": k, "compared": of, "ours": o} for k, (of, o) in cells.items()]
    decided = pd.DataFrame({"section": [], "size": [], "answer": []})
    (tmp_path / "t.csv").write_text("a\n")
    made = facts._artefact("Table 1", pd.DataFrame(runs).assign(**columns), decided)
    told = [[(each["size"], each["beside"]) for each in part] for part in made["parts"]]
    assert told == [[("mini", "1; 2"), ("tiny", "-; 3")], [("paper", "4")], [("own", "5; 6")]]
