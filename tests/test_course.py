"""The course: what students get holds no answer, what lecturers get grades it."""

import base64
import hashlib
import html
import json
import os
import re
import subprocess
import sys
import zipfile

import nbformat
import pytest
from coursework import ANSWER, BLANK, HIDDEN, KEY, SOLUTION, cell, notebook, put, region
from typer.testing import CliRunner

from osnb import course, repro
from osnb.cli import app
from osnb.course.feedback import without_hidden_tests

PUBLIC = sorted((repro.root() / "notebooks").glob("*.ipynb"))
PACKAGE = repro.PACKAGE
LINE = SOLUTION.splitlines()[1]


def osnb(*words):
    """(exit code, what was printed, what was complained of) of `osnb course WORDS`."""
    done = CliRunner().invoke(app, ["course", *map(str, words)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def work(project, tmp_path, monkeypatch):
    """The project's folder, with one source notebook, its params, a figure, and little code."""
    put(project.folder)
    (project.folder / "code" / "osnb").mkdir(parents=True)
    monkeypatch.setattr(repro, "PACKAGE", project.folder / "code" / "osnb")
    project.write("50_work", "run: small\n")
    for run in ("mini", "tiny_large"):
        (project.folder / "figures" / "50_work" / run).mkdir(parents=True)
        (project.folder / "figures" / "50_work" / run / "table.csv").write_text("a\n1\n")
    (project.folder / "requirements.lock").write_text("# every version\nnumpy==2.0\nSome_Pack==1\n")
    return project.folder


@pytest.fixture
def student(work, tmp_path):
    """The students' copy."""
    assert course.build(tmp_path / "S", teacher=False) == []
    return tmp_path / "S"


def book(folder):
    return json.loads((folder / "notebooks" / "50_work.ipynb").read_text())


def texts(folder):
    return ["".join(each["source"]) for each in book(folder)["cells"]]


# The hash of a run's code


def hashed(path, **changes):
    put(path, **changes)
    return repro.code_hash(path / "notebooks" / "50_work.ipynb")


def test_neither_solution_nor_hidden_test_nor_quiz_changes_the_hash_of_a_run(work):
    """Today's notebook, with a stub and without a quiz, has the hash of the one with all of it."""
    with_course = hashed(work)
    bare = notebook()
    del bare["cells"][-4:]
    stub, check = bare["cells"][-2:]
    stub["source"], check["source"] = BLANK + "    ...", check["source"].split("### BEGIN")[0]
    (work / "notebooks" / "50_work.ipynb").write_text(json.dumps(bare))
    assert repro.code_hash(work / "notebooks" / "50_work.ipynb") == with_course
    stub["source"] = BLANK + "    return 1"
    (work / "notebooks" / "50_work.ipynb").write_text(json.dumps(bare))
    assert repro.code_hash(work / "notebooks" / "50_work.ipynb") != with_course


def test_another_solution_has_the_same_hash_and_another_cell_has_not(work):
    assert hashed(work, solution="return 1") == hashed(work)
    assert hashed(work, extra=[cell("code", "x = 1")]) != hashed(work)


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
    assert repro.notebooks.cleared(full, name="it") == made.cells[0].source
    assert made.cells[0].source.rstrip() == stub.rstrip()


@pytest.mark.parametrize(
    "text",
    [
        "### BEGIN SOLUTION\nx = 1",
        "x = 1\n### END SOLUTION",
        "### BEGIN SOLUTION\n### END HIDDEN TESTS",
        "### BEGIN HIDDEN TESTS\n### BEGIN HIDDEN TESTS\n### END HIDDEN TESTS",
        "### BEGIN SOLUTION\n### BEGIN HIDDEN TESTS\n### END HIDDEN TESTS\n### END SOLUTION",
    ],
)
def test_a_region_that_is_not_closed_is_named_with_its_notebook(work, tmp_path, text):
    path = put(work, extra=[cell("code", text, grade_id="x", solution=True)])
    with pytest.raises(ValueError, match=r"50_work\.ipynb has a line '### (BEGIN|END) "):
        repro.code_cells(path)


# The copies


def test_students_get_no_output_no_answer_and_a_stub(student):
    (sources, made) = (texts(student), book(student))
    assert BLANK + "    ..." in sources
    assert 'answers = ""  # five letters, such as "abcda"\n...' in sources
    assert not [x for x in made["cells"] if x.get("outputs") or x.get("execution_count")]
    assert not [text for text in sources if "**Answers" in text or "require" in text]
    nbformat.validate(nbformat.from_dict(made))


def test_students_cannot_delete_a_graded_cell_nor_edit_its_test(student):
    cells = {
        x["metadata"]["nbgrader"]["grade_id"]: x["metadata"]
        for x in book(student)["cells"]
        if "nbgrader" in x["metadata"]
    }
    assert set(cells) == {"my_ccr", "my_ccr-check", "quiz", "quiz-check"}
    assert not any(each["deletable"] for each in cells.values())
    assert cells["my_ccr-check"]["editable"] is False
    assert "editable" not in cells["my_ccr"]


def test_lecturers_get_the_notebooks_as_they_are_and_settings_of_nbgrader(work, tmp_path):
    assert course.build(tmp_path / "T", teacher=True) == []
    name = "notebooks/50_work.ipynb"
    assert (tmp_path / "T" / name).read_bytes() == (work / name).read_bytes()
    assert (tmp_path / "T" / "nbgrader_config.py").is_file()


def test_a_copy_is_a_project_with_package_params_and_the_miniatures_figures(
    work, tmp_path, monkeypatch
):
    monkeypatch.setattr(repro, "PACKAGE", PACKAGE)
    student = tmp_path / "S"
    course.build(student, teacher=False)
    assert (student / "pyproject.toml").is_file()
    assert (student / "osnb" / "repro" / "__init__.py").is_file()
    assert (student / "params" / "50_work" / "small.yaml").is_file()
    assert (student / "figures" / "50_work" / "mini" / "table.csv").is_file()
    assert not (student / "figures" / "50_work" / "tiny_large").exists()
    said = "import osnb.repro as r; print(r.root(), r.out())"
    env = {**os.environ, "PYTHONPATH": str(student)}
    env.pop("OSNB_OUT")
    done = subprocess.run(
        [sys.executable, "-c", said], cwd="/", env=env, capture_output=True, text=True
    )
    assert done.stdout.split() == [str(student), str(student)]


def test_what_is_there_is_never_replaced(work, tmp_path):
    (tmp_path / "S").mkdir()
    (tmp_path / "S" / "mine.txt").write_text("mine")
    code, out, err = osnb("--out", tmp_path / "S")
    assert (code, out) == (2, "")
    assert err == f"osnb: {tmp_path / 'S'} is there already; --out needs a new or an empty folder\n"
    assert [x.name for x in (tmp_path / "S").iterdir()] == ["mine.txt"]


def test_an_error_half_way_leaves_nothing(work, tmp_path):
    put(work, extra=[cell("code", "### BEGIN SOLUTION", grade_id="x", solution=True)])
    code, _, err = osnb("--out", tmp_path / "S")
    assert (code, err) == (2, "osnb: 50_work.ipynb: no end solution statement found\n")
    assert not [x for x in tmp_path.iterdir() if x.name != "project"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), "needed: --out FOLDER"),
        (("--out", "x", "--teacher", "--bundle"), "without --teacher"),
        (("--out", "x", "--wheels", "w"), "--wheels needs it"),
        (("--check", "x", "--bundle"), "takes no other option"),
        (("--check", "nowhere.zip"), "nowhere.zip is not there"),
    ],
)
def test_options_that_make_no_sense_are_refused_in_a_sentence(work, words, reason):
    code, out, err = osnb(*words)
    assert (code, out) == (2, "")
    assert reason in err
    assert err.count("\n") == 1


# Leaks


def test_a_copy_has_none(work, student):
    assert course.leaks(student, work / "notebooks") == []


def in_cell(made, text):
    made["cells"].insert(2, cell("code", text))


def in_words(made, text):
    made["cells"][0]["source"] += f"\n\nLook: {text}"


def in_comment(made, text):
    made["cells"][2]["source"] += "".join(f"\n#   {line}" for line in text.splitlines())


def in_output(made, text):
    shown = {"output_type": "stream", "name": "stdout", "text": f"{text}\n".splitlines(True)}
    made["cells"][2]["outputs"] = [shown]


def in_html_output(made, text):
    data = {"text/html": [f"<pre>{line}</pre>\n" for line in text.splitlines()]}
    made["cells"][2]["outputs"] = [{"output_type": "display_data", "data": data, "metadata": {}}]


def in_metadata(made, text):
    made["cells"][2]["metadata"]["nbgrader"] = {"source": text}


def in_the_notebooks_metadata(made, text):
    made["metadata"]["widgets"] = {"state": {text: 1}}


def in_attachment(made, text):
    coded = base64.b64encode(text.encode()).decode()
    made["cells"][0]["attachments"] = {"x.txt": {"text/plain": coded}}


PLACES = [
    in_cell,
    in_words,
    in_comment,
    in_output,
    in_html_output,
    in_metadata,
    in_the_notebooks_metadata,
    in_attachment,
]


PLANTED = [SOLUTION, LINE, HIDDEN, ANSWER, f'answers = "{KEY}"', KEY, "answers='aabbc'"]


@pytest.mark.parametrize("place", PLACES)
def test_what_is_planted_in_a_students_notebook_is_caught(work, student, place):
    for text in PLANTED:
        made = book(student)
        place(made, text)
        (student / "planted.ipynb").write_text(json.dumps(made))
        found = course.leaks(student, work / "notebooks")
        assert found, text
        assert all(line.startswith("planted.ipynb, ") for line in found)


@pytest.mark.parametrize(
    "text",
    [
        "### BEGIN SOLUTION",
        "# END HIDDEN TESTS",
        f"the answers are {KEY.upper()}",
        "b d a c b",
        "b, d, a, c, b",
        "1b 2d 3a 4c 5b",
        "1. b\n2. d\n3. a\n4. c\n5. b",
        '["b", "d", "a", "c", "b"]',
        LINE.replace(" ", "").replace("0.5", "0.5 "),
        "**Answers.** none",
        'KEY = "abcd"',
    ],
)
def test_other_spellings_are_caught_too(work, student, text):
    made = book(student)
    made["cells"].append(cell("markdown", text))
    (student / "notebooks" / "50_work.ipynb").write_text(json.dumps(made))
    assert course.leaks(student, work / "notebooks")


def test_a_teachers_cell_is_caught_whatever_it_says(work, student):
    made = book(student)
    made["cells"].append(cell("markdown", "Hello.", ["teacher"]))
    (student / "notebooks" / "50_work.ipynb").write_text(json.dumps(made))
    assert course.leaks(student, work / "notebooks") == [
        f"notebooks/50_work.ipynb, cell {len(made['cells'])} is the teacher's"
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("osnb/exercise.py", f'SHOWN = "{KEY}"  # of the example\n'),
        ("osnb/data/table.csv", f"name,key\nwork,{KEY.upper()}\n"),
        ("figures/50_work/mini/x.svg", f"<svg><g><text>{KEY}</text></g></svg>"),
        ("figures/50_work/mini/x.svg", f"<svg><!-- {KEY} --><path d='M 1 2'/></svg>"),
        ("figures/50_work/mini/x.svg", "<svg>" + "".join(f"<text>{x}</text>" for x in KEY)),
    ],
)
def test_a_key_is_caught_in_the_package_and_in_a_figure(work, student, name, text):
    (student / name).parent.mkdir(parents=True, exist_ok=True)
    (student / name).write_text(text)
    assert course.leaks(student, work / "notebooks") == [
        f"{name} shows the key of the quiz (50_work, cell 10)"
    ]


def test_the_package_may_hold_what_solutions_are_and_words_with_a_keys_letters(work, student):
    (student / "osnb").mkdir(exist_ok=True)
    (student / "osnb" / "metrics.py").write_text(f"{SOLUTION}\nx{KEY} = 'a{KEY}'  # {KEY}s\n")
    assert course.leaks(student, work / "notebooks") == []


@pytest.mark.parametrize("seed", ["7", "101"])
@pytest.mark.parametrize(
    "text",
    [
        "The hidden seed is {}.",
        "Hidden tests draw with\nthe *seed* `{}`.",
        "Seed {} is the hidden one.",
        "hidden_seed = {}",
    ],
)
def test_a_hidden_seed_is_caught_where_words_say_that_it_is_one(work, student, seed, text):
    put(work, hidden=HIDDEN.replace("seed=7", f"seed={seed}"))
    made = book(student)
    made["cells"].append(cell("markdown", text.format(seed)))
    (student / "notebooks" / "50_work.ipynb").write_text(json.dumps(made))
    assert course.leaks(student, work / "notebooks") == [
        "notebooks/50_work.ipynb, cell 11 tells the hidden seed (50_work, cell 7)"
    ]


@pytest.mark.parametrize("text", ["seed 7", "The hidden seed is not 8.", "hidden tests: 7 cases"])
def test_a_seed_of_which_nothing_is_said_is_no_leak(work, student, text):
    made = book(student)
    made["cells"].append(cell("markdown", text))
    (student / "notebooks" / "50_work.ipynb").write_text(json.dumps(made))
    assert course.leaks(student, work / "notebooks") == []


@pytest.mark.parametrize(
    "option", ["**that**", "that, __surely__", "<b>that</b>", "<mark>that</mark>", "*that*."]
)
def test_an_option_that_is_set_apart_stops_the_copy(work, tmp_path, option):
    text = f"## Quiz\n\n1. Which?\n   - a) this\n   - b) {option}"
    put(work, extra=[cell("markdown", text)])
    assert course.build(tmp_path / "S", teacher=False) == [
        "notebooks/50_work.ipynb, cell 5 sets an option of a quiz apart from the others"
    ]


@pytest.mark.parametrize("option", ["a *greyhound* is a dog", "`a` and `b`", "$x_1 < x_2$, $a_1$"])
def test_a_word_in_italics_code_or_an_equation_sets_no_option_apart(work, tmp_path, option):
    put(work, extra=[cell("markdown", f"## Quiz\n\n1. Which?\n   - a) this\n   - b) {option}")])
    assert course.build(tmp_path / "S", teacher=False) == []


@pytest.mark.parametrize("name", ["README.md", "params/50_work/small.yaml", "notebooks/x.md"])
@pytest.mark.parametrize("text", [SOLUTION, KEY, ANSWER])
def test_files_beside_the_notebooks_are_read_too(work, student, name, text):
    (student / name).open("a").close()
    (student / name).write_text(
        (student / name).read_text() + "".join(f"# {x}\n" for x in text.splitlines())
    )
    found = course.leaks(student, work / "notebooks")
    assert found
    assert found[0].startswith(name)


TRIVIAL = "import numpy as np\nrate = 0.5\nreturn rate"
USUAL = "x = 1\nreturn x"
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
        TRIVIAL,
        USUAL,
        "return logits.max(axis=1)",
        "pass",
        "rng = np.random.default_rng(0)\nreturn rng",
    ],
)
def test_lines_that_anyone_writes_are_no_leak(work, tmp_path, solution):
    put(work, solution=solution, extra=[cell("code", ORDINARY)])
    assert course.build(tmp_path / "S", teacher=False) == []


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        (
            cell(
                "code", f"def f(known, correct, unknown):\n    {SOLUTION}".replace("\n", "\n    ")
            ),
            "shows a line of the solution",
        ),
        (cell("code", SOLUTION.replace("return", "f =")), "shows a line of the solution"),
        (cell("markdown", "\n".join(SOLUTION.splitlines()[:2])), "shows a line of the solution"),
        (cell("code", "def f(): return 1", grade_id="f", solution=True), "without BEGIN and END"),
        (cell("code", 'answers = "abcda"'), "outside of a region"),
        (cell("markdown", f"Last year's key was {KEY}."), "shows the key of the quiz"),
        (cell("markdown", f"Mind this. {ANSWER}"), "shows a line of the teacher's cell"),
    ],
)
def test_what_stands_twice_in_a_source_stops_the_copy(work, tmp_path, extra, reason):
    put(work, extra=[extra])
    code, out, err = osnb("--out", tmp_path / "S")
    assert code == 1
    assert reason in out
    assert "was not written" in err
    assert not [x for x in tmp_path.iterdir() if x.name != "project"]


def test_the_key_of_one_notebook_is_caught_in_another(work, tmp_path):
    other = notebook("51_other", extra=[cell("markdown", f"{KEY}")])
    other["cells"] = other["cells"][:5]
    (work / "notebooks" / "51_other.ipynb").write_text(json.dumps(other))
    found = course.build(tmp_path / "S", teacher=False)
    assert found == [
        "notebooks/51_other.ipynb, cell 5 shows the key of the quiz (50_work, cell 10)"
    ]


# The bundle


@pytest.fixture
def packed(work, tmp_path):
    code, out, _ = osnb("--bundle", "--out", tmp_path / "b.zip")
    assert code == 0
    assert "no report in it" in out
    assert "no wheels in it" in out
    return tmp_path / "b.zip"


def test_equal_copies_give_equal_bytes_whatever_the_times(packed, work, tmp_path):
    for path in work.rglob("*"):
        os.utime(path, (1, 1))
    osnb("--bundle", "--out", tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == packed.read_bytes()


def test_sha256sum_agrees_and_so_do_we(packed, tmp_path):
    zipfile.ZipFile(packed).extractall(tmp_path / "out")
    folder = tmp_path / "out" / "osnb-course"
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=True)
    assert osnb("--check", packed)[0] == osnb("--check", folder)[0] == 0
    (folder / "README.md").write_text("other")
    code, _, err = osnb("--check", folder)
    assert code == 2
    assert "README.md has not the checksum" in err


def test_what_use_of_the_folder_makes_is_no_fault(work, tmp_path):
    osnb("--bundle", "--out", tmp_path / "b")
    number = osnb("--check", tmp_path / "b")[1].split(": ")[1]
    for name in ("osnb/__pycache__/x.pyc", "notebooks/.ipynb_checkpoints/x.ipynb", ".venv/ready"):
        (tmp_path / "b" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "b" / name).touch()
    for name in ("runs/50_work", "osnb.egg-info"):
        (tmp_path / "b" / name).mkdir(parents=True)
        (tmp_path / "b" / name / "x.json").touch()
    (tmp_path / "b" / ".venv" / "python").symlink_to("/usr/bin/python3")
    assert osnb("--check", tmp_path / "b")[1].split(": ")[1] == number
    (tmp_path / "b" / "notebooks" / "more.ipynb").touch()
    assert "disagree on notebooks/more.ipynb" in osnb("--check", tmp_path / "b")[2]


def test_the_folder_can_be_checked_with_the_standard_library_alone(work, tmp_path, monkeypatch):
    monkeypatch.setattr(repro, "PACKAGE", PACKAGE)
    folder = tmp_path / "a bundle"
    assert osnb("--bundle", "--out", folder)[0] == 0
    readme = (folder / "README.md").read_text()
    assert -1 < readme.find("python3 osnb/course/whole.py") < readme.find("make lab")
    words = [sys.executable, "-I", "-S", str(folder / "osnb" / "course" / "whole.py")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(" files, as SHA256SUMS says\n")
    (folder / "LICENSE").unlink(missing_ok=True)
    (folder / "notebooks" / "50_work.ipynb").write_text("{}")
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "notebooks/50_work.ipynb has not the checksum that SHA256SUMS gives\n"


def test_a_bundle_may_be_a_folder(work, tmp_path):
    assert osnb("--bundle", "--out", tmp_path / "b")[0] == 0
    assert osnb("--check", tmp_path / "b")[0] == 0
    assert osnb("--bundle", "--out", tmp_path / "b")[0] == 2
    (tmp_path / "b" / "evil").symlink_to("/etc/passwd")
    assert "evil is no regular file" in osnb("--check", tmp_path / "b")[2]


def test_wheels_are_packed_and_what_lacks_one_is_named(work, tmp_path):
    (tmp_path / "w").mkdir()
    assert (
        "holds no *.whl" in osnb("--bundle", "--out", tmp_path / "b", "--wheels", tmp_path / "w")[2]
    )
    (tmp_path / "w" / "some_pack-1-py3-none-any.whl").write_bytes(b"wheel")
    code, out, _ = osnb("--bundle", "--out", tmp_path / "b", "--wheels", tmp_path / "w")
    assert (code, out.splitlines()[-1]) == (0, "no wheel of numpy==2.0")
    assert (tmp_path / "b" / "wheels" / "some_pack-1-py3-none-any.whl").read_bytes() == b"wheel"
    assert osnb("--check", tmp_path / "b")[0] == 0


def wheel(folder, name, needs=()):
    """A file called as a wheel that states what it needs."""
    with zipfile.ZipFile(folder / name, "w") as archive:
        lines = "".join(f"Requires-Dist: {each}\n" for each in needs)
        archive.writestr("x-1.dist-info/METADATA", f"Name: x\n{lines}")


LINUX, WINDOWS = "Python 3.11 on Linux x86_64", "Python 3.11 on Windows amd64"


def test_a_wheel_for_another_system_does_not_count(work, tmp_path):
    wheel(tmp_path, "numpy-2.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl")
    wheel(tmp_path, "other-3-cp311-cp311-win_amd64.whl")
    wheel(tmp_path, "some_pack-1-cp39-abi3-win_amd64.whl")
    out = osnb("--bundle", "--out", tmp_path / "b", "--wheels", tmp_path)[1].splitlines()
    assert out[-4:] == [
        f"wheels for {LINUX}",
        f"no wheel of some-pack==1 for {LINUX}",
        f"wheels for {WINDOWS}",
        f"no wheel of numpy==2.0 for {WINDOWS}",
    ]


def test_what_only_windows_needs_is_asked_for_where_there_are_wheels_for_windows(work, tmp_path):
    needs = [
        'Colorama>=0.4; sys_platform == "win32"',
        "pywinpty ; os_name == 'nt'",
        'unix; sys_platform != "win32"',
        'tests; sys_platform == "win32" and extra == "test"',
    ]
    wheel(tmp_path, "some_pack-1-py3-none-any.whl", needs)
    for system in ("win_amd64", "manylinux_2_28_x86_64"):
        wheel(tmp_path, f"numpy-2.0-cp311-cp311-{system}.whl")
    wheel(tmp_path, "pywinpty-2-cp311-cp311-win_amd64.whl")
    out = osnb("--bundle", "--out", tmp_path / "b", "--wheels", tmp_path)[1].splitlines()
    assert out[-3:] == [
        f"wheels for {LINUX}",
        f"wheels for {WINDOWS}",
        f"no wheel of colorama for {WINDOWS}",
    ]


def test_the_report_goes_without_the_pages_that_show_solutions(work, tmp_path):
    (work / "report" / "50_work").mkdir(parents=True)
    (work / "report" / "index.html").write_text("<p>All artefacts</p>")
    spans = "".join(f"<span>{html.escape(word)}</span> " for word in LINE.split(" "))
    (work / "report" / "50_work" / "small.html").write_text(f"<pre>{spans}</pre>")
    (work / "report" / "searchindex.js").write_text(f'{{terms: ["{KEY}"]}}')
    code, out, _ = osnb("--bundle", "--out", tmp_path / "b")
    assert code == 0
    assert "1 files of the report show solutions" in out
    assert "leaves it out" in (tmp_path / "b" / "report" / "50_work" / "small.html").read_text()
    assert (tmp_path / "b" / "report" / "index.html").read_text() == "<p>All artefacts</p>"


def test_the_bundles_report_has_no_search_and_no_page_that_asks_for_its_index(work, tmp_path):
    (work / "report").mkdir()
    (work / "report" / "index.html").write_text('<form action="search.html"></form>')
    (work / "report" / "search.html").write_text('<script src="searchindex.js"></script>')
    (work / "report" / "searchindex.js").write_text("words of every page")
    assert osnb("--bundle", "--out", tmp_path / "b")[0] == 0
    made = tmp_path / "b" / "report"
    assert sorted(path.name for path in made.iterdir()) == ["index.html", "search.html"]
    assert "searchindex" not in (made / "search.html").read_text()
    assert "has no search" in (made / "search.html").read_text()


def repacked(packed, change):
    """The bundle with `change(members)` done to a dict of bytes by name."""
    with zipfile.ZipFile(packed) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    change(members)
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def listed(members, name, content):
    """Put a member into the bundle and into its checksums."""
    members[name] = content
    line = f"{hashlib.sha256(content).hexdigest()}  {name.removeprefix('osnb-course/')}\n"
    members["osnb-course/SHA256SUMS"] += line.encode()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda m: listed(m, "osnb-course/../evil", b""), "would be unpacked outside"),
        (lambda m: listed(m, "/etc/evil", b""), "would be unpacked outside"),
        (lambda m: listed(m, "osnb-course/..\\evil", b""), "would be unpacked outside"),
        (lambda m: listed(m, "C:/evil", b""), "would be unpacked outside"),
        (lambda m: listed(m, "other/evil", b""), "would be unpacked outside"),
        (lambda m: listed(m, "osnb-course/readme.MD", b""), "in other capitals"),
        (lambda m: m.update({"osnb-course/more": b""}), "disagree on more"),
        (
            lambda m: m.pop("osnb-course/LICENSE", m.pop("osnb-course/README.md")),
            "disagree on README",
        ),
        (lambda m: m.update({"osnb-course/README.md": b"x"}), "README.md has not the checksum"),
        (lambda m: m.pop("osnb-course/SHA256SUMS"), "lacks SHA256SUMS"),
        (lambda m: m.update({"osnb-course/SHA256SUMS": b"\xff"}), "no checksum"),
    ],
)
def test_a_bundle_that_is_not_as_it_was_written_is_refused(packed, change, reason):
    repacked(packed, change)
    code, out, err = osnb("--check", packed)
    assert (code, out) == (2, "")
    assert reason in err
    assert err.count("\n") == 1


def test_half_a_zip_is_refused(packed):
    packed.write_bytes(packed.read_bytes()[:-100])
    assert "is no whole zip file" in osnb("--check", packed)[2]


# Feedback


def test_feedback_shows_no_line_of_a_hidden_test_in_cells_and_outputs():
    made = notebook()
    seen = {"output_type": "stream", "name": "stdout", "text": f"In: {HIDDEN}\n"}
    stay = {"output_type": "stream", "name": "stdout", "text": "3 of 5 answered\n"}
    red = HIDDEN.replace("(", "\x1b[31m(\x1b[0m")
    error = {"output_type": "error", "ename": "AssertionError", "evalue": "wrong on input 1"}
    made["cells"][-4]["outputs"] = [stay, seen]
    made["cells"][2]["outputs"] = [error | {"traceback": ["---> 9 " + red, "wrong on input 1"]}]
    made["cells"][3]["outputs"] = [error | {"traceback": ["my own line", "wrong on input 1"]}]
    made["cells"][6]["outputs"] = [error | {"traceback": ["anything", "wrong on input 1"]}]
    before = nbformat.from_dict(made)
    cells = without_hidden_tests(before).cells
    assert before == nbformat.from_dict(made)
    texts = json.dumps(cells)
    assert not [x for x in ("HIDDEN TESTS", "exercise.require", f'key=\\"{KEY}') if x in texts]
    assert cells[6].source.endswith("inputs=exercise.scores)")
    assert cells[-4].outputs == [stay]
    assert cells[2].outputs[0].traceback == ["AssertionError: wrong on input 1"]
    assert cells[3].outputs[0].traceback == ["my own line", "wrong on input 1"]
    assert cells[6].outputs[0].traceback == ["AssertionError: wrong on input 1"]


# The real notebooks


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """The students' copy of this project."""
    folder = tmp_path_factory.mktemp("course") / "S"
    assert course.build(folder, teacher=False) == []
    return folder


def test_every_notebook_is_in_the_students_copy_parses_and_leaks_nothing(real):
    made = sorted((real / "notebooks").glob("*.ipynb"))
    assert [path.name for path in made] == [path.name for path in PUBLIC]
    for path in made:
        nbformat.validate(nbformat.read(path, as_version=4))
    assert course.leaks(real, repro.root() / "notebooks") == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [path.stem for path in PUBLIC])
def test_the_students_notebook_runs_to_its_end_in_its_own_folder(real, tmp_path, name):
    """nbval runs the sources, solutions and hidden tests included; this runs what is left."""
    env = {**os.environ, "PYTHONPATH": str(real)}
    env.pop("OSNB_OUT", None)
    if name.endswith("_train"):  # the others read the committed scores, not what this makes
        env["OSNB_OUT"] = str(tmp_path)
    command = [sys.executable, "-m", "papermill", "--no-progress-bar", "--log-level", "ERROR"]
    done = subprocess.run(
        [*command, f"{name}.ipynb", tmp_path / "out.ipynb"],
        cwd=real / "notebooks",
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    folder = (tmp_path if name.endswith("_train") else real) / "runs" / name
    assert list(folder.glob("*/begun.json"))


@pytest.mark.slow
def test_nbgrader_gives_nothing_for_a_blank_and_all_points_for_the_solution(
    work, tmp_path, monkeypatch
):
    monkeypatch.setattr(repro, "PACKAGE", PACKAGE)
    home = tmp_path / "T"
    course.build(home, teacher=True)
    course.build(tmp_path / "S", teacher=False)
    half = (tmp_path / "S" / "notebooks" / "50_work.ipynb").read_text()
    half = half.replace('answers = \\"\\"', 'answers = \\"bdaXX\\"')
    full = (home / "notebooks" / "50_work.ipynb").read_text()
    blank = (tmp_path / "S" / "notebooks" / "50_work.ipynb").read_text()
    (home / "notebooks" / "LECTURER.md").write_text("wrong answers")
    for who, text in {"blank": blank, "full": full, "half": half}.items():
        (home / "submitted" / who / "notebooks").mkdir(parents=True)
        (home / "submitted" / who / "notebooks" / "50_work.ipynb").write_text(text)
    env = {**os.environ, "PYTHONPATH": str(home), "HOME": str(tmp_path), "PATH": os.defpath}
    env.pop("OSNB_OUT")
    for words in (["generate_assignment"], ["autograde"], ["generate_feedback"]):
        command = [sys.executable, "-m", "nbgrader", *words, "notebooks"]
        done = subprocess.run(command, cwd=home, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
    released = home / "release" / "notebooks" / "50_work.ipynb"
    cells = [x["source"] for x in nbformat.read(released, as_version=4).cells]
    assert cells == ["".join(x["source"]) for x in book(tmp_path / "S")["cells"]]
    assert graded(home) == {"blank": 0, "full": 6, "half": 3}
    assert not list(home.glob("[rf]e*/**/LECTURER.md"))
    assert KEY in (home / "autograded" / "half" / "notebooks" / "50_work.ipynb").read_text()
    for who in ("blank", "half"):
        page = (home / "feedback" / who / "notebooks" / "50_work.html").read_text()
        seen = re.sub(r"\s", "", html.unescape(re.sub(r"<[^>]*>", "", page)))
        assert "(Score:" in seen
        assert "AssertionError" in seen
        assert not [x for x in (KEY, "HIDDEN", "exercise.require", "seed=7") if x in seen]


def graded(home):
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{home / 'gradebook.db'}", "osnb") as book:
        found = book.assignment_submissions("notebooks")
        return {each.student.id: each.score for each in found}
