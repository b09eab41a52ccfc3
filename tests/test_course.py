"""The course: what students get holds no solution, what lecturers get grades it."""

import ast
import copy
import hashlib
import html
import json
import os
import re
import shutil
import sys
import zipfile
from functools import partial
from types import SimpleNamespace as Some

import nbformat
import pytest
import refusals
import test_cli
from coursework import BLANK, HIDDEN, NOTE, SOLUTION, cell, notebook, put, ran, region

from osnb.base import workbook
from osnb.book import index
from osnb.book.run import execution, kernels
from osnb.teach import course
from osnb.teach.course import term
from osnb.teach.course.leaks import leaks, without_hidden_tests
from osnb.teach.course.whole import in_folder

PUBLIC = sorted((workbook.root() / "notebooks").glob("*.ipynb"))
PACKAGE = workbook.PACKAGE
LINE = SOLUTION.splitlines()[1]
SECRET = "a secret of twenty letters"
osnb, refused = (partial(of, "course") for of in (test_cli.osnb, refusals.refused))


@pytest.fixture
def work(project, monkeypatch):
    """The project's folder, with one source notebook, its params, a figure, and little code."""
    put(project.folder)
    (project.folder / "notebooks" / "README.md").write_text("The index.")
    (project.folder / "code" / "osnb").mkdir(parents=True)
    monkeypatch.setattr(workbook, "PACKAGE", project.folder / "code" / "osnb")
    project.write("50_work", "run: small\n")
    for run in ("mini", "tiny_large"):
        (project.folder / "figures" / "50_work" / run).mkdir(parents=True)
        (project.folder / "figures" / "50_work" / run / "table.csv").write_text("a\n1\n")
    (project.folder / "requirements.lock").write_text("# every version\nnumpy==2.0\nSome_Pack==1\n")
    return project.folder


@pytest.fixture
def student(work, tmp_path):
    """The students' copy."""
    assert course.build(tmp_path / "S") == []
    return tmp_path / "S"


def book(folder):
    return json.loads((folder / "notebooks" / "50_work.ipynb").read_text())


# What a run follows from


def test_neither_solution_nor_hidden_test_nor_quiz_is_code_of_a_run(work):
    """The notebook with a stub and without a quiz has the code of the one with all of it."""
    path = work / "notebooks" / "50_work.ipynb"
    whole, bare = workbook.code_cells(path), notebook()
    del bare["cells"][-2:]
    stub, check = bare["cells"][-2:]
    stub["source"], check["source"] = BLANK + "    ...", check["source"].split("### BEGIN")[0]
    path.write_text(json.dumps(bare))
    assert [text.rstrip() for text in workbook.code_cells(path)] == [x.rstrip() for x in whole]


@pytest.mark.parametrize("stub", ["x = ''\n...", "def f():\n    ...\n\n\ndef g():\n    ...\n"])
def test_a_cleared_cell_is_what_nbgrader_makes_of_it(stub):
    from nbgrader.preprocessors import ClearHiddenTests, ClearSolutions

    full = stub.replace("    ...", region("SOLUTION", "a = 1\nreturn a", "    "))
    full = full.replace("\n...", f"\n{region('SOLUTION', 'x = 1')}")
    full += "\n" + region("HIDDEN TESTS", "f()")
    meta = {"grade_id": "f", "solution": True, "grade": True, "points": 1}
    made = nbformat.from_dict(notebook() | {"cells": [cell("code", full, **meta)]})
    for step in (ClearSolutions(code_stub={"python": "..."}), ClearHiddenTests()):
        made, _ = step.preprocess(made, {})
    assert workbook.cleared(full, name="it") == made.cells[0].source
    assert made.cells[0].source.rstrip() == stub.rstrip()


@pytest.mark.parametrize(
    "text",
    [
        "### BEGIN SOLUTION\nx = 1",
        "x = 1\n### END SOLUTION",
        "### BEGIN HIDDEN TESTS\n### BEGIN SOLUTION\n### END SOLUTION\n### END HIDDEN TESTS",
    ],
)
def test_a_region_that_is_not_closed_is_named_with_its_notebook(work, text):
    path = put(work, extra=[cell("code", text, grade_id="x", solution=True)])
    with pytest.raises(ValueError, match=r"50_work\.ipynb has (a line )?'### (BEGIN|END) "):
        workbook.code_cells(path)


# The copies


def test_students_get_stubs_that_they_can_edit_and_no_output_or_answer(student):
    made = book(student)
    nbformat.validate(nbformat.from_dict(made))
    sources = ["".join(x["source"]) for x in made["cells"]]
    assert BLANK + "    ..." in sources
    assert not [x for x in made["cells"] if x.get("outputs") or x.get("execution_count")]
    assert not [text for text in sources if NOTE in text or "require" in text]
    graded = [x["metadata"] for x in made["cells"] if "nbgrader" in x["metadata"]]
    cells = {x["nbgrader"]["grade_id"]: x for x in graded}
    assert set(cells) == {"my_ccr", "my_ccr-check"}
    assert not any(x["deletable"] for x in cells.values())
    assert cells["my_ccr-check"]["editable"] is False
    assert "editable" not in cells["my_ccr"]


def test_a_copy_is_a_project_of_its_own(work, tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "PACKAGE", PACKAGE)
    student = tmp_path / "S"
    course.build(student)
    for name in ("pyproject.toml", "osnb/base/workbook.py", "params/50_work/small.yaml"):
        assert (student / name).is_file()
    assert (student / "figures" / "50_work" / "mini" / "table.csv").is_file()
    assert not (student / "figures" / "50_work" / "tiny_large").exists()
    code = "import osnb.base.workbook as r; print(r.root(), r.out())"
    done = ran(sys.executable, "-c", code, cwd="/", PYTHONPATH=str(student), OSNB_OUT="")
    assert done.stdout.split() == [str(student), str(student)]


def test_a_learners_folder_gets_what_it_lacks_and_keeps_what_was_written(work, tmp_path):
    (work / "notebooks" / "GLOSSARY.md").write_text("### known")
    code, out, _ = osnb("--learn", tmp_path / "learn")
    assert (code, out) == (0, f"{tmp_path / 'learn'}: 1 notebooks added\n")
    mine = tmp_path / "learn" / "50_work.ipynb"
    assert leaks(tmp_path / "learn", work / "notebooks") == []
    assert LINE not in mine.read_text()
    mine.write_text(mine.read_text().replace("...", "return 1"))
    before = mine.read_bytes()
    assert osnb("--learn", tmp_path / "learn")[1].endswith("0 notebooks added\n")
    assert mine.read_bytes() == before
    mine.unlink()
    assert course.learn(tmp_path / "learn") == ["50_work.ipynb"]
    assert {x.name for x in (tmp_path / "learn").iterdir()} == {
        *("50_work.ipynb", "README.md", "GLOSSARY.md")
    }


def test_what_is_there_is_never_replaced_and_an_error_leaves_nothing(work, tmp_path):
    (tmp_path / "S").mkdir()
    (tmp_path / "S" / "mine.txt").write_text("mine")
    assert f"{tmp_path / 'S'} is there already" in refused("--out", tmp_path / "S")
    assert [x.name for x in (tmp_path / "S").iterdir()] == ["mine.txt"]
    put(work, extra=[cell("code", "### BEGIN SOLUTION", grade_id="x", solution=True)])
    said = refused("--out", tmp_path / "T")
    assert said == "osnb: 50_work.ipynb: no end solution statement found\n"
    assert {x.name for x in tmp_path.iterdir()} == {"project", "S"}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), "needed: --out FOLDER"),
        (("--learn", "x", "--term", SECRET), "--learn FOLDER takes no other option"),
        (("--out", "x", "--term", SECRET), "--term KEY --learners FILE, without --bundle"),
        (("--out", "x", "--learners", "l.csv"), "--term KEY --learners FILE, without --bundle"),
        (("--out", "x", "--wheels", "w"), "--wheels needs --bundle"),
        (("--check", "x", "--bundle"), "takes no other option"),
        (("--learn", "x", "--bundle"), "takes no other option"),
        (("--check", "nowhere.zip"), "nowhere.zip is not there"),
    ],
)
def test_options_that_make_no_sense_are_refused_in_a_sentence(work, words, reason):
    assert reason in refused(*words)


def test_the_secret_of_a_term_need_not_stand_in_the_command(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setenv("OSNB_TERM", SECRET)
    monkeypatch.setattr(course, "build_term", lambda *_, secret, learners: asked.append(secret))
    assert osnb("--out", tmp_path / "T", "--learners", tmp_path / "l.csv")[0] == 0
    assert asked == [SECRET]


# Leaks


def stream(text):
    return {"output_type": "stream", "name": "stdout", "text": text.splitlines(True)}


def page(text):
    data = {"text/html": [f"<pre>{line}</pre>\n" for line in text.splitlines()]}
    return {"output_type": "display_data", "data": data, "metadata": {}}


def comment(text):
    return "".join(f"#   {line}\n" for line in text.splitlines())


PLACES = {  # how a text is put into a cell, or into the notebook's metadata
    "words": lambda cell, book, text: cell.update(source=f"Look: {text}"),
    "comment": lambda cell, book, text: cell.update(source=comment(text)),
    "output": lambda cell, book, text: cell.update(outputs=[stream(f"{text}\n")]),
    "page": lambda cell, book, text: cell.update(outputs=[page(text)]),
    "metadata": lambda cell, book, text: cell.update(metadata={"nbgrader": {"source": text}}),
    "book": lambda cell, book, text: book["metadata"].update(widgets={"state": {text: 1}}),
}
PLANTED = [SOLUTION, LINE, HIDDEN, NOTE]


@pytest.mark.parametrize("place", PLACES)
def test_what_is_planted_in_a_students_notebook_is_caught(work, student, place):
    for text in PLANTED:
        made = book(student)
        PLACES[place](made["cells"][2], made, text)
        (student / "planted.ipynb").write_text(json.dumps(made))
        sentences = course.leaks(student, work / "notebooks")
        assert sentences, text
        assert all(line.startswith("planted.ipynb, ") for line in sentences)


@pytest.fixture
def added(work, student):
    """A function: the leaks of the students' notebook with another cell at its end."""

    def leaks(text, kind="markdown", tags=()):
        made = book(student)
        made["cells"].append(cell(kind, text, tags))
        (student / "planted.ipynb").write_text(json.dumps(made))
        return course.leaks(student, work / "notebooks")

    return leaks


def test_other_spellings_are_caught_too(added):
    for text in [
        SOLUTION,
        "### BEGIN SOLUTION",
        "# END HIDDEN TESTS",
        LINE.replace(" ", "").replace("0.5", "0.5 "),
    ]:
        assert added(text, "code"), text
    assert added("Hello.", tags=["teacher"]) == ["planted.ipynb, cell 10 is the teacher's"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("figures/50_work/mini/x.svg", f"<svg><g><text>{NOTE}</text></g></svg>"),
        ("figures/50_work/mini/x.svg", f"<svg><!-- {NOTE} --><path d='M 1 2'/></svg>"),
        ("README.md", f"# {SOLUTION}"),
        ("params/50_work/small.yaml", f"# {NOTE}"),
    ],
)
def test_files_beside_the_notebooks_are_read_too(work, student, name, text):
    (student / name).parent.mkdir(parents=True, exist_ok=True)
    (student / name).write_text(text)
    (sentence,) = course.leaks(student, work / "notebooks")
    assert sentence.startswith(f"{name} shows ")


def test_the_package_may_hold_what_solutions_are(work, student):
    (student / "osnb").mkdir(exist_ok=True)
    (student / "osnb" / "metrics.py").write_text(f"{SOLUTION}\n")
    assert course.leaks(student, work / "notebooks") == []


ORDINARY = """import numpy as np


def f(x, rate, logits):
    if x:
        return rate
    return x


x = 1
best = logits.max(axis=1)
rng = np.random.default_rng(0)"""


@pytest.mark.parametrize(
    "solution",
    [
        "import numpy as np\nrate = 0.5\nreturn rate",
        "x = 1\nreturn x",
        "return logits.max(axis=1)",
        "pass",
        "rng = np.random.default_rng(0)\nreturn rng",
    ],
)
def test_lines_that_anyone_writes_are_no_leak(work, tmp_path, solution):
    put(work, solution=solution, extra=[cell("code", ORDINARY)])
    assert course.build(tmp_path / "S") == []


def test_a_leak_stops_the_copy_and_leaves_nothing(work, tmp_path):
    (work / "notebooks" / "README.md").write_text(f"Write {LINE} there.")
    code, out, err = osnb("--out", tmp_path / "S")
    assert code == 1
    place = "notebooks/README.md shows a line of the solution (50_work, cell 7)"
    assert out == f"{place}: {LINE}\n"
    assert "was not written" in err
    assert [x.name for x in tmp_path.iterdir()] == ["project"]


# The bundle


@pytest.fixture
def packed(work, tmp_path):
    code, out, _ = osnb("--bundle", "--out", tmp_path / "b.zip")
    checked = osnb("--check", tmp_path / "b.zip")[1]
    assert code == 0
    assert "no report in it" in out
    assert "no wheels in it" in out
    assert re.findall(r"\d+ files", out) == re.findall(r"\d+ files", checked)
    return tmp_path / "b.zip"


def test_equal_copies_give_equal_bytes_whatever_the_times(packed, work, tmp_path):
    for path in work.rglob("*"):
        os.utime(path, (1, 1))
    osnb("--bundle", "--out", tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == packed.read_bytes()


def test_sha256sum_agrees_with_us_and_use_of_the_folder_is_no_fault(packed, tmp_path):
    zipfile.ZipFile(packed).extractall(tmp_path / "out")
    folder = tmp_path / "out" / "osnb-course"
    assert ran("sha256sum", "--check", "--quiet", "SHA256SUMS", cwd=folder).returncode == 0
    made = ["osnb/__pycache__/x.pyc", "notebooks/.ipynb_checkpoints/x.ipynb", ".venv/ready"]
    for name in [*made, "runs/50_work/x.json", "osnb.egg-info/x"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (folder / ".venv" / "python").symlink_to("/usr/bin/python3")
    outputs = [osnb("--check", place)[1].split(": ")[1] for place in (packed, folder)]
    assert outputs[0] == outputs[1] != ""
    (folder / "more").symlink_to("/etc/passwd")
    assert "more is no regular file" in osnb("--check", folder)[2]


def test_a_folder_can_be_checked_with_the_standard_library_alone(work, tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "PACKAGE", PACKAGE)
    folder = tmp_path / "a bundle"
    assert osnb("--bundle", "--out", folder)[0] == 0
    refused("--bundle", "--out", folder)
    assert "python3 osnb/teach/course/whole.py" in (folder / "README.md").read_text()
    words = [sys.executable, "-I", "-S", str(folder / "osnb" / "teach" / "course" / "whole.py")]
    done = ran(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(" files, as SHA256SUMS says\n")
    (folder / "notebooks" / "50_work.ipynb").write_text("{}")
    done = ran(*words)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "notebooks/50_work.ipynb has not the checksum that SHA256SUMS gives\n"


def wheel(folder, name):
    """A wheel that pip takes, of a package without a line of code."""
    package, version = name.split("-")[:2]
    with zipfile.ZipFile(folder / name, "w") as archive:
        info = f"{package}-{version}.dist-info"
        words = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
        archive.writestr(f"{info}/METADATA", words)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def test_wheels_are_packed_and_pip_says_what_lacks(work, tmp_path):
    (tmp_path / "w").mkdir()
    words = ["--bundle", "--wheels", tmp_path / "w", "--out"]
    assert "holds no *.whl" in osnb(*words, tmp_path / "b")[2]
    wheel(tmp_path / "w", "some_pack-1-py3-none-any.whl")
    code, out, _ = osnb(*words, tmp_path / "b")
    assert code == 0
    assert "No matching distribution found for numpy==2.0" in out.splitlines()[-1]
    assert (tmp_path / "b" / "wheels" / "some_pack-1-py3-none-any.whl").is_file()
    assert osnb("--check", tmp_path / "b")[0] == 0
    wheel(tmp_path / "w", "numpy-2.0-py3-none-any.whl")
    last = osnb(*words, tmp_path / "c")[1].splitlines()[-1]
    assert last.startswith("wheels of all that the lock needs for Python 3.")


def test_the_report_goes_without_search_and_without_pages_that_show_solutions(work, tmp_path):
    (work / "report" / "50_work").mkdir(parents=True)
    (work / "report" / "index.html").write_text("<p>All artefacts</p>")
    spans = "".join(f"<span>{html.escape(word)}</span> " for word in LINE.split(" "))
    (work / "report" / "50_work" / "small.html").write_text(f"<pre>{spans}</pre>")
    (work / "report" / "search.html").write_text('<script src="searchindex.js"></script>')
    (work / "report" / "searchindex.js").write_text(f'{{terms: ["{NOTE}"]}}')
    code, out, _ = osnb("--bundle", "--out", tmp_path / "b")
    assert code == 0
    assert "1 files of the report show solutions" in out
    report = tmp_path / "b" / "report"
    assert "leaves it out" in (report / "50_work" / "small.html").read_text()
    assert (report / "index.html").read_text() == "<p>All artefacts</p>"
    assert "searchindex" not in (report / "search.html").read_text()
    assert not (report / "searchindex.js").exists()


def listed(members, name, content=b""):
    """Put a member into the bundle and into its checksums."""
    members[name] = content
    line = f"{hashlib.sha256(content).hexdigest()}  {name.removeprefix('osnb-course/')}\n"
    members["osnb-course/SHA256SUMS"] += line.encode()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda m: listed(m, "osnb-course/../evil"), "would be unpacked outside"),
        (lambda m: listed(m, "osnb-course//evil"), "would be unpacked outside"),
        (lambda m: listed(m, "/etc/evil"), "would be unpacked outside"),
        (lambda m: listed(m, "osnb-course/..\\evil"), "would be unpacked outside"),
        (lambda m: listed(m, "C:/evil"), "would be unpacked outside"),
        (lambda m: listed(m, "other/evil"), "would be unpacked outside"),
        (lambda m: listed(m, "osnb-course/readme.MD"), "in other capitals"),
        (lambda m: m.update({"osnb-course/more": b""}), "disagree on more"),
        (lambda m: m.pop("osnb-course/README.md"), "disagree on README"),
        (lambda m: m.update({"osnb-course/README.md": b"x"}), "README.md has not the checksum"),
        (lambda m: m.pop("osnb-course/SHA256SUMS"), "lacks SHA256SUMS"),
        (lambda m: m.update({"osnb-course/SHA256SUMS": b"\xff"}), "no checksum"),
    ],
)
def test_a_bundle_that_is_not_as_it_was_written_is_refused(packed, change, reason):
    with zipfile.ZipFile(packed) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    change(members)
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    assert reason in refused("--check", packed)


def test_half_a_zip_is_refused(packed):
    packed.write_bytes(packed.read_bytes()[:-100])
    assert "is no whole zip file" in osnb("--check", packed)[2]


# Feedback


def test_feedback_shows_no_line_of_a_hidden_test_in_cells_and_outputs():
    made = notebook()
    seen, stay = stream(f"In: {HIDDEN}\n"), stream("3 of 5 answered\n")
    red = HIDDEN.replace("(", "\x1b[31m(\x1b[0m")
    error = {"output_type": "error", "ename": "AssertionError", "evalue": "wrong on input 1"}
    made["cells"][-1]["outputs"] = [stay, seen]
    made["cells"][2]["outputs"] = [error | {"traceback": ["---> 9 " + red, "wrong on input 1"]}]
    made["cells"][3]["outputs"] = [error | {"traceback": ["my own line", "wrong on input 1"]}]
    made["cells"][7]["outputs"] = [error | {"traceback": ["anything", "wrong on input 1"]}]
    before = nbformat.from_dict(made)
    cells = without_hidden_tests(before).cells
    assert before == nbformat.from_dict(made)
    text = json.dumps(cells)
    assert not [x for x in ("HIDDEN TESTS", "exercise.require") if x in text]
    assert cells[7].source.endswith("inputs=exercise.scores)")
    assert cells[-1].outputs == [stay]
    assert cells[2].outputs[0].traceback == ["AssertionError: wrong on input 1"]
    assert cells[3].outputs[0].traceback == ["my own line", "wrong on input 1"]
    assert cells[7].outputs[0].traceback == ["AssertionError: wrong on input 1"]


# The real notebooks


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """The students' copy of this project, which leaks nothing."""
    folder = tmp_path_factory.mktemp("course") / "S"
    assert course.build(folder) == []
    return folder


def test_a_learners_folder_made_in_the_students_copy_has_its_notebooks(real, tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "root", lambda: real)
    for name in course.learn(tmp_path / "learn"):
        files = (folder / name for folder in (tmp_path / "learn", real / "notebooks"))
        mine, theirs = ([x.source for x in nbformat.read(f, as_version=4).cells] for f in files)
        assert mine == theirs
    shutil.copytree(tmp_path / "learn", tmp_path / "bundle" / "learn")
    assert in_folder(tmp_path / "bundle") == {}  # it may be a bundle that is whole


def test_a_notebook_without_an_exercise_loses_outputs_and_the_teachers_cells_too():
    shown = nbformat.v4.new_code_cell("1", outputs=[nbformat.v4.new_output("stream", text="1")])
    note = nbformat.v4.new_markdown_cell("a note", metadata={"tags": ["teacher"]})
    made = course.copies.student(nbformat.v4.new_notebook(cells=[shown, note]), "mine")
    assert [(cell.source, cell.outputs) for cell in made.cells] == [("1", [])]


def test_a_quiz_says_how_many_questions_it_asks_of_a_bank_that_was_edited(monkeypatch):
    bank = term.bank()
    numeric = next(x for x in bank if "answer" in x and x["session"] == 1)
    monkeypatch.setattr(term, "bank", lambda: [*bank, numeric | {"name": "another"}])
    for session in (1, 2):
        many = len(term.quiz(SECRET, session, "ann"))
        (head, *_) = term.quiz_notebook(session, secret=SECRET, learner="ann").cells
        assert f"{many} questions" in head.source


def test_the_learners_copy_has_nothing_of_the_bank_of_what_counts(real):
    said = [x for entry in term.bank() for x in entry.get("wrong", [])]
    reasons = [x["why"] for x in said] + [x["because"] for x in term.bank() if "because" in x]
    assert len(reasons) == 80
    files = [x for x in real.rglob("*") if x.suffix in {".py", ".ipynb", ".md", ".yaml", ".html"}]
    assert real / "osnb" / "teach" / "course" / "practice.yaml" in files
    assert real / "osnb" / "teach" / "course" / "bank.yaml" not in files
    for file in files:
        text = file.read_text(encoding="utf8")
        assert not [reason for reason in reasons if reason in text], file


RUN = {"00_tour": {"epochs": 2}}  # with what makes it shorter
RUN |= {name: {"more_seeds": 1} for name in ("27_vaze_capstone", "34_kim_capstone")}


def test_only_check_cells_use_what_students_write_but_where_a_test_runs_them(real):
    assert {path.name for path in PUBLIC} == {path.name for path in real.glob("notebooks/*.ipynb")}
    for path in real.glob("notebooks/*.ipynb"):
        written = set()
        for number, made in enumerate(nbformat.read(path, as_version=4).cells, start=1):
            nodes = [*ast.walk(ast.parse(made.source))] if made.cell_type == "code" else []
            names = [node for node in nodes if isinstance(node, ast.Name)]
            grading = made.metadata.get("nbgrader", {})
            if grading.get("solution"):
                written |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
                written |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
            elif path.stem not in RUN and not grading.get("grade"):
                assert not written.intersection(node.id for node in names), (path.name, number)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "shorter"), RUN.items())
def test_the_students_notebook_runs_to_its_end_in_its_own_folder(
    real, tmp_path, name, shorter, monkeypatch
):
    """nbval runs the sources, solutions and hidden tests included; this runs what is left."""
    monkeypatch.setenv("PYTHONPATH", str(real))
    monkeypatch.setenv("OSNB_OUT", "")
    book, out = real / "notebooks" / f"{name}.ipynb", tmp_path / "out.ipynb"
    options = {"cwd": book.parent, "progress_bar": False, "kernel_name": "python3"}
    with kernels.started(book.parent) as kernel:
        options |= {"kernel_manager_class": kernel.manager(), "language": "python"}
        execution._imported()(book, out, shorter, **options)
    assert list((real / "runs" / name).glob("*/begun.json"))


# A term


@pytest.fixture
def short(work, tmp_path, monkeypatch):
    """A term of one session, whose notebook is the small one; its folder."""
    way = [index.paths()["one term"][0]._replace(notebooks=["50_work"])]
    monkeypatch.setattr(index, "paths", lambda: {"one term": way})
    monkeypatch.setattr(workbook, "PACKAGE", PACKAGE)
    monkeypatch.setattr(course.copies.slides, "build", lambda folder: folder.mkdir())
    (work / "notebooks" / "LECTURER.md").write_text("for the lecturer")
    (tmp_path / "l.csv").write_text("id,first_name\nada,Ada\nblaise,Blaise\n", "utf-8-sig")
    words = ["--term", SECRET, "--learners", tmp_path / "l.csv", "--out", tmp_path / "T"]
    assert osnb(*words)[0] == 0
    return tmp_path / "T"


def test_a_term_has_solutions_with_its_own_seeds_quizzes_exam_and_print(short):
    source = (short / "solutions" / "session_01" / "50_work.ipynb").read_text()
    assert LINE in source
    assert "seed=7)" not in source
    assert re.search(r"seed=\d+\)", source)
    assert "exercise.check(my_ccr, theirs, inputs=exercise.scores)" in source
    assert LINE not in (short / "notebooks" / "50_work.ipynb").read_text()
    for name in ("exam/exam.md", "exam/rubric.md", "print/ten_samples.html", "nbgrader_config.py"):
        assert (short / name).is_file()
    assert (short / "learners.csv").read_bytes() == b"id,first_name\nada,Ada\nblaise,Blaise\n"
    quizzes = [short / "quizzes" / who / "session_01" / "quiz.ipynb" for who in ("ada", "blaise")]
    assert len({path.read_text() for path in quizzes}) == 2


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("id,first_name\nzoe,Zoë\n".encode("cp1252"), "can't decode byte"),
        (b"id,first_name\nada,Ada\nzoe,Zoe,zoe@example.org\n", "Expected 2 fields in line 3"),
        (b"id,first_name\nzoe,Zoe,zoe@example.org\n", "a row has more fields than the first line"),
        (b"", "No columns to parse"),
    ],
)
def test_learners_that_cannot_be_read_are_refused_with_file_and_remedy(tmp_path, content, reason):
    (tmp_path / "l.csv").write_bytes(content)
    with pytest.raises(ValueError, match=reason) as caught:
        term.learners(tmp_path / "l.csv")
    assert str(caught.value).startswith(f"{tmp_path / 'l.csv'} cannot be read (")
    assert 'save it as "CSV UTF-8"' in str(caught.value)


def test_a_hand_in_that_lacks_a_grade_has_no_mark_and_is_named(tmp_path, monkeypatch, capsys):
    from osnb.teach.course.grades import Platforms

    def student(who):
        return Some(id=who, first_name="", last_name="", email="", lms_user_id="")

    def submission(who, *grades):
        """Of a notebook whose checks have these grades: by nbgrader, by a person."""
        part = Some(name="50_work")
        part.grades = [
            Some(name=f"f{i}-check", notebook=part, auto_score=auto, manual_score=manual)
            for i, (auto, manual) in enumerate(grades)
        ]
        return Some(student=student(who), notebooks=[part], score=3.0)

    handed_in = [submission("ada", (2, None), (None, 1)), submission("carl", (None, None), (3, 0))]
    session = Some(name="session_01", max_score=4, submissions=handed_in)
    students = [student(who) for who in ("ada", "carl", "dora")]
    monkeypatch.chdir(tmp_path)
    Platforms().export(Some(assignments=[session], students=students))
    said = "carl, session_01: no mark, since f0-check of 50_work has no grade\n"
    assert capsys.readouterr().out == said
    lines = (tmp_path / "moodle.csv").read_text().splitlines()
    assert [line.split(",")[-1] for line in lines[1:]] == ["3.0", "", ""]


@pytest.mark.parametrize("path", ["two hours", "one day", "one term"])
def test_a_path_has_each_notebook_after_what_it_needs(path):
    names = [name for session in index.paths()[path] for name in session.notebooks]
    for place, name in enumerate(names):
        need = index.about(workbook.root() / "notebooks" / f"{name}.ipynb")["need"]
        parts = [part for part in need.split(";") if "help" not in part]
        needed = set(re.findall(r"`(\d\d_\w+)`", " ".join(parts)))
        assert needed <= set(names[:place]), name


def test_the_index_names_no_file_that_students_lack(real):
    text = (real / "notebooks" / "README.md").read_text()
    named = re.findall(r"`([\w./-]+\.(?:csv|md|py|lock|yml|ipynb))`", text)
    named += re.findall(r"\]\(([^)\s:#]+)[^)\s:]*\)", text)
    assert named
    places = [real, real / "notebooks"]
    assert [x for x in named if not any((place / x).is_file() for place in places)] == []


def test_quizzes_are_at_most_three_tenths_of_the_points():
    points = {"quiz": 10}
    for source in PUBLIC:
        for made in nbformat.read(source, as_version=4).cells:
            points[source.stem] = points.get(source.stem, 0)
            points[source.stem] += made.metadata.get("nbgrader", {}).get("points", 0)
    assert points["quiz"] / sum(points.values()) <= 0.3


@pytest.mark.slow
def test_every_session_has_slides_that_ask_no_server(tmp_path):
    course.copies.slides.build(tmp_path / "slides")
    pages = sorted((tmp_path / "slides" / "html").glob("session_*.html"))
    assert len(pages) == 10
    for page in pages:
        text = page.read_text()
        links = re.findall(r'(?:src|href)="([^"#?]*)', text)
        assert [x for x in links if x.startswith(("http", "//"))] == []
        assert [x for x in links if x and not (page.parent / x).exists()] == []
        assert "Predict" in text
        assert "<img" in text


STEPS = ("db student import learners.csv", "generate_assignment session_01", "autograde session_01")
STEPS += ("generate_feedback session_01", "export --exporter osnb.teach.course.grades.Platforms")
NBGRADER = """
import sys
sys.modules["rfc3987_syntax"] = None  # a grammar of IRIs: a second that nothing here needs
from nbgrader.apps import NbGraderApp
for step in sys.argv[1:]:
    NbGraderApp.clear_instance()
    NbGraderApp.launch_instance(step.split())
"""


@pytest.mark.slow
def test_nbgrader_gives_each_what_is_due_with_which_and_why(short, tmp_path):
    from nbgrader.api import Gradebook

    own = term.derived(SECRET, "session", 1)
    right = "".join(question.letter for question in term.quiz(own, 1, "ada"))
    full = (short / "solutions" / "session_01" / "50_work.ipynb").read_text()
    blank = (short / "notebooks" / "50_work.ipynb").read_text()
    for who, text, letters in (("ada", full, right), ("blaise", blank, "")):
        home = short / "submitted" / who / "session_01"
        home.mkdir(parents=True)
        (home / "50_work.ipynb").write_text(text)
        quiz = (short / "quizzes" / who / "session_01" / "quiz.ipynb").read_text()
        (home / "quiz.ipynb").write_text(
            quiz.replace('answers = \\"\\"', f'answers = \\"{letters}\\"')
        )
    more = {"PYTHONPATH": str(short), "HOME": str(tmp_path), "PATH": os.defpath, "OSNB_OUT": ""}
    done = ran(sys.executable, "-c", NBGRADER, *STEPS, cwd=short, **more)
    assert done.returncode == 0, done.stderr[-2000:]
    with Gradebook(f"sqlite:///{short / 'gradebook.db'}", "osnb") as grades:
        submissions = grades.assignment_submissions("session_01")
        scores = {submission.student.id: submission.score for submission in submissions}
    assert scores == {"ada": 2, "blaise": 0}
    pages = [short / "feedback" / who / "session_01" for who in ("ada", "blaise")]
    seen = [html.unescape(re.sub(r"<[^>]*>", "", (x / "quiz.html").read_text())) for x in pages]
    assert f"1. {right[0]}: right" in seen[0]
    assert "1. no letter: wrong; right is " in seen[1]
    for text in [*seen, *((x / "50_work.html").read_text() for x in pages)]:
        assert not [x for x in ("HIDDEN", "exercise.require", own) if x in text]
    lines = (short / "canvas.csv").read_text().splitlines()
    assert lines[0] == "Student,ID,SIS Login ID,Section,session_01"
    assert lines[1].strip().startswith("Points Possible,")
    assert (short / "moodle.csv").read_text().splitlines()[1] == "ada,Ada,,,2.0"


def handed_in(short, who, change=lambda cells: None):
    """Put the solved notebook into a folder of hand-ins, as `change` leaves its cells."""
    home = short / "submitted" / who / "session_01"
    home.mkdir(parents=True, exist_ok=True)
    made = json.loads((short / "solutions" / "session_01" / "50_work.ipynb").read_text())
    change(made["cells"])
    (home / "50_work.ipynb").write_text(json.dumps(made))


def check_cells(cells):
    return [x for x in cells if x["metadata"].get("nbgrader", {}).get("grade")]


@pytest.mark.slow
def test_nbgrader_goes_on_after_a_copied_cell_and_a_stranger_and_forgets_an_earlier_mark(
    short, tmp_path
):
    from nbgrader.api import Gradebook

    def step(words):
        return ran(sys.executable, "-c", NBGRADER, *words, cwd=short, **more)

    def scores():
        with Gradebook(f"sqlite:///{short / 'gradebook.db'}", "osnb") as grades:
            grade = partial(grades.find_grade, "my_ccr-check", "50_work", "session_01")
            return {x.id: grade(x.id).auto_score for x in grades.students}

    more = {"PYTHONPATH": str(short), "HOME": str(tmp_path), "PATH": os.defpath, "OSNB_OUT": ""}
    handed_in(short, "ada", lambda cells: cells.extend(copy.deepcopy(check_cells(cells))))
    handed_in(short, "blaise")
    assert step(STEPS[:3]).returncode == 0
    assert scores() == {"ada": 1, "blaise": 1}
    handed_in(short, "blaise", lambda cells: cells.remove(*check_cells(cells)))
    (short / "submitted" / "ada").rename(short / "submitted" / "Ada Lovelace")
    done = step(["autograde session_01 --force"])
    assert "No student with ID 'Ada Lovelace' exists" in done.stderr
    assert scores() == {"ada": 1, "blaise": None}
    done = step(STEPS[-1:])
    assert "blaise, session_01: no mark, since my_ccr-check of 50_work has no" in done.stdout


def test_each_session_has_a_secret_of_its_own(tmp_path):
    secrets = set()
    for number in (1, 2):
        course.copies._session(tmp_path, number, [], SECRET, [])
        quiz = tmp_path / "solutions" / f"session_{number:02}" / "quiz.ipynb"
        secrets |= {*re.findall(r"[0-9a-f]{64}", quiz.read_text())}
    assert len(secrets) == 2
