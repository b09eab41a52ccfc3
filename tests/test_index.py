"""The index of the notebooks and the lecturer's page: every table, link, sum and heading."""

import json
import math
import re
import shutil

import pandas as pd
import pytest

from osnb.base import workbook
from osnb.book import index
from osnb.evidence import gallery
from tests.tools import course_index, outputs, own_data, pages

ROOT = workbook.root()
FOLDER = ROOT / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
README, LECTURER = (
    (FOLDER / name).read_text(encoding="utf8") for name in ("README.md", "LECTURER.md")
)
PAGES = {"README.md": README, "LECTURER.md": LECTURER}
PAGES |= {x: (FOLDER / x).read_text(encoding="utf8") for x in ("GLOSSARY.md", "REFERENCES.md")}
WAYS = index.paths()


def table(text, head):
    """Rows of the Markdown table whose first head is `head`, as lists of cells."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith(f"| {head} |"):
            next(lines)
            break
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows


@pytest.mark.parametrize("name", ["notebooks", *(f"path {x}" for x in WAYS)])
def test_the_index_holds_what_notebooks_and_measurements_say(name):
    wanted = pages.markdown(course_index.blocks(ROOT)[name])
    assert gallery.block(README, name) == wanted, "run make outputs"


def test_every_notebook_is_measured_and_keeps_the_limits_of_the_course():
    costs = course_index.measured(ROOT)
    assert sorted(costs.index) == NAMES
    assert costs["seconds"].max() <= 60
    assert costs["gb"].max() <= 2


@pytest.mark.parametrize("name", NAMES)
def test_every_page_and_every_word_to_which_a_notebook_links_is_there(name):
    words = re.findall(r"^### (.+)", PAGES["GLOSSARY.md"], re.M)
    text = "\n".join(cell["source"] for cell in workbook.cells(FOLDER / f"{name}.ipynb"))
    for file, word in re.findall(r"\]\(([A-Za-z0-9_]+\.(?:md|ipynb))(?:#([^)\s]+))?\)", text):
        assert (FOLDER / file).is_file(), file
        assert not word or word in words, word


@pytest.mark.parametrize("page", PAGES)
def test_every_notebook_that_is_named_exists(page):
    named = re.findall(r"`(\d\d_[a-z_]+)`", PAGES[page])
    assert set(named) <= set(NAMES)


# Paths


@pytest.mark.parametrize("name", WAYS)
def test_sums_are_the_sums(name):
    rows = table(gallery.block(README, f"path {name}"), "session")
    *sessions, total = [list(map(int, row[2:])) for row in rows]
    assert [sum(column) for column in zip(*sessions, strict=True)] == total
    costs = course_index.measured(ROOT)["seconds"]
    for session, (run, read, rest, minutes) in zip(WAYS[name], sessions, strict=True):
        assert run == sum(costs[list(session.notebooks)])
        assert read + math.ceil(run / 60) + rest == minutes


@pytest.mark.parametrize("name", WAYS)
def test_every_session_leaves_a_quarter_for_exercises_and_talk(name):
    rows = table(gallery.block(README, f"path {name}"), "session")
    assert all(int(row[4]) >= int(row[5]) / 4 for row in rows)


def test_the_three_paths_are_two_hours_one_day_and_ten_sessions_of_all_notebooks():
    assert [sum(s.minutes for s in way) for way in WAYS.values()] == [120, 360, 900]
    term = [name for session in WAYS["one term"] for name in session.notebooks]
    assert len(WAYS["one term"]) == 10
    assert sorted(term) == NAMES
    assert term[0] == "00_why"  # and what each needs comes before it, tests/test_course.py


# The parts


def notebook(folder, *cells):
    """A notebook of markdown texts, and code where a text begins with '>'."""
    made = [
        {"cell_type": "code" if text[0] == ">" else "markdown", "source": [text.lstrip(">")]}
        for text in cells
    ]
    (folder / "x.ipynb").write_text(json.dumps({"cells": made}))
    return folder / "x.ipynb"


TOP = "# Section 4: a claim: with a colon\n\nText.\n\n**You will learn** a | b,\nc.\n**You need** "


def test_the_first_cell_tells_section_claim_learn_and_need(tmp_path):
    path = notebook(tmp_path, f"{TOP}`00_tour`. Measured: about 3 seconds.")
    assert index.about(path) == {
        "section": "Section 4",
        "claim": "a claim: with a colon",
        "learn": r"A \| b, c.",
        "need": "`00_tour`.",
    }


def test_a_first_cell_that_does_not_tell_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"first cell of x\.ipynb needs '# Section: claim'"):
        index.about(notebook(tmp_path, "# No claim"))


def test_reading_time_stops_at_the_exercises(tmp_path):
    text, code = "word " * (course_index.WORDS * 2), ">" + "x\n\n" * (60 // course_index.LINE)
    more = "## Exercises " + "word " * 1000
    assert course_index.reading(notebook(tmp_path, text, code)) == 3
    assert course_index.reading(notebook(tmp_path, text, code, more, text)) == 3


def run(seconds, memory, **more):
    machine = {"cpus": 2, "processor": "P", "used": {"memory": memory}}
    return {"run": "mini", "seconds": seconds} | machine | more


def test_measurements_are_renewed_and_the_others_kept(project):
    for name in ("a", "b", "c"):
        (project.folder / "notebooks" / f"{name}.ipynb").touch()
    course_index.measure(
        project.folder, {"b": run(2.4, 300e6), "a": run(1, 200e6), "gone": run(1, 1)}
    )
    course_index.measure(project.folder, {"a": run(59.6, 1.26e9), "c": run(9, 0)})
    course_index.measure(project.folder, {"b": run(1, 1e6, resumed=3)})
    wanted = pd.DataFrame({"seconds": [60, 2], "gb": [1.3, 0.3]}, index=["a", "b"])
    pd.testing.assert_frame_equal(course_index.measured(project.folder), wanted, check_names=False)


def test_make_outputs_measures_the_runs_and_writes_the_index(monkeypatch, project):
    monkeypatch.setattr(pages, "rows", lambda *_: pd.DataFrame({"a": []}))
    monkeypatch.setattr(pages, "findings", lambda *_: pd.DataFrame({"a": []}))
    monkeypatch.setattr(pages, "front", lambda *_: pd.DataFrame({"a": []}))
    monkeypatch.setattr(gallery, "shown", lambda *_: pd.DataFrame({"shows": ["full", "part"]}))
    names = "table counted shown front fast fast_means ingredients draws precisions norms decided"
    for name in names.split():
        monkeypatch.setattr(own_data, name, lambda *_: pd.DataFrame({"within": []}))
    files = {"README.md", "figures/README.md"}
    (project.folder / "figures").mkdir(exist_ok=True)
    for page in files:
        shutil.copy(ROOT / page, project.folder / page)  # with the marks of every table
    said = []
    monkeypatch.setattr(course_index, "measure", lambda root, runs: said.append((root, runs)))
    monkeypatch.setattr(course_index, "update", said.append)
    outputs.main()
    assert said == [(project.folder, {}), project.folder]
    made = {page: (project.folder / page).read_text() for page in files}
    assert gallery.block(made["README.md"], "results").strip() == "| within |\n| --- |"
    assert gallery.block(made["figures/README.md"], "findings").strip() == "| a |\n| --- |"
