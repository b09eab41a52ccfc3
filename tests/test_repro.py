"""Files are written whole, hashes see what counts, and a run is opened under its own name."""

import html
import io
import json
import os
import signal
import subprocess
import sys
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from osnb.base import stamps, workbook
from osnb.book import follows, runs


def test_the_root_is_found_from_any_folder(tmp_path, monkeypatch):
    before = workbook.root()
    monkeypatch.chdir(tmp_path)
    assert workbook.root() == before
    assert (before / "pyproject.toml").is_file()


def test_outside_of_a_project_the_root_is_missed_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "PACKAGE", tmp_path / "site-packages" / "osnb")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="work in a clone"):
        workbook.root()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "notebooks").mkdir()
    assert workbook.root() == tmp_path


def test_results_go_where_the_environment_says(project, tmp_path, monkeypatch):
    monkeypatch.setenv("OSNB_OUT", str(tmp_path / "elsewhere"))
    assert workbook.out() == tmp_path / "elsewhere"
    monkeypatch.setenv("OSNB_OUT", "")
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.chdir(own)
    assert workbook.out() == project.folder
    (own / "runs").mkdir()
    assert workbook.out() == own
    (inside := project.folder / "my" / "runs").mkdir(parents=True)
    monkeypatch.chdir(inside.parent)
    assert workbook.out() == inside.parent
    monkeypatch.chdir(project.folder)
    assert workbook.out() == project.folder


# Writing


def test_a_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "new" / "scores.csv"
    with workbook.writing(path) as aside:
        aside.write_text("whole")
        assert aside.parent == path.parent
        assert aside.suffix == ".csv"
        assert not path.exists()
    assert path.read_text() == "whole"
    assert os.listdir(path.parent) == ["scores.csv"]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_file_is_as_open_as_the_umask_says(tmp_path, mask):
    code = "import sys\nfrom pathlib import Path\nfrom osnb.base import workbook\n"
    code += "workbook.write_json(Path(sys.argv[1]), {})"
    subprocess.run([sys.executable, "-c", code, tmp_path / "x.json"], umask=mask, check=True)
    assert (tmp_path / "x.json").stat().st_mode & 0o777 == 0o666 & ~mask


def test_after_an_error_the_old_file_is_there_and_the_part_is_gone(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("old")

    def write():
        with workbook.writing(path) as aside:
            aside.write_text("ne")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["scores.csv"]


def test_a_killed_writer_leaves_the_old_file_whole(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("old")
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom osnb.base import workbook\n"
        "with workbook.writing(Path(sys.argv[1])) as aside:\n"
        "    aside.write_text('ne')\n    print('half', flush=True)\n    time.sleep(60)"
    )
    command = [sys.executable, "-c", code, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "half\n"
        writer.send_signal(signal.SIGKILL)
    assert writer.returncode == -signal.SIGKILL
    assert path.read_text() == "old"


def test_readers_see_the_old_file_until_the_new_one_is_whole(tmp_path, monkeypatch):
    path, seen, rename = tmp_path / "numbers.json", [], Path.replace

    def replace(aside, there):
        seen.append([json.loads(file.read_text())["n"] for file in (there, aside)])
        return rename(aside, there)

    workbook.write_json(path, {"n": 0})
    monkeypatch.setattr(Path, "replace", replace)
    for n in (1, 2):
        workbook.write_json(path, {"n": n})
    assert seen == [[0, 1], [1, 2]]
    assert json.loads(path.read_text()) == {"n": 2}


def test_equal_content_gives_equal_json_whatever_its_order(tmp_path):
    workbook.write_json(tmp_path / "a", {"x": 1, "y": [2]})
    workbook.write_json(tmp_path / "b", {"y": [2], "x": 1})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# Hashes


def test_a_digest_knows_where_its_parts_end(tmp_path):
    (tmp_path / "file").write_text("ab")
    assert workbook.digest("ab", "c") != workbook.digest("a", "bc")
    assert (
        workbook.digest("ab", "c")
        == workbook.digest(b"ab", "c")
        == workbook.digest(tmp_path / "file", "c")
    )
    assert workbook.digest("ab") != workbook.digest("ab", "")


def test_a_file_hash_is_that_of_sha256sum(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")  # the example of FIPS 180-2
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert workbook.file_hash(tmp_path / "file") == expected


def test_a_digest_of_columns_knows_names_and_values_and_not_the_file(tmp_path):
    frame = pd.DataFrame({"x": [1.0, np.nan], "name": ["a", "b"]})
    frame.to_parquet(tmp_path / "x.parquet", compression="none")
    same = stamps.columns(frame)
    assert stamps.columns(pd.read_parquet(tmp_path / "x.parquet")) == same
    others = [frame[:1], frame[["x"]], frame.rename(columns={"x": "y"}), frame.assign(name="a")]
    others += [frame.astype({"x": "float32"}), frame.iloc[::-1]]
    assert len({same, *map(stamps.columns, others)}) == 1 + len(others)


def test_a_stamp_that_was_edited_is_none(tmp_path):
    whole = {key: {} for key in stamps.NEEDED} | {"notebook": "x", "run": "y"}
    stamps.write(tmp_path / "a.json", whole)
    assert stamps.read(tmp_path / "a.json")["run"] == "y"
    text = (tmp_path / "a.json").read_text()
    for broken in (text.replace('"y"', '"z"'), text[:-9], "[]", "{}", "["):
        (tmp_path / "a.json").write_text(broken)
        assert stamps.read(tmp_path / "a.json") is None


# What a notebook follows from


ROOMS = {
    "plots/__init__.py": "from osnb.plots.curves import oscr\nfrom osnb.plots.other import bars\n",
    "plots/curves.py": "from osnb.plots.style import grid\n\ndef oscr(x):\n    return grid(x)\n",
    "plots/style.py": "import re\nWIDTH = 2\n\ndef grid(x):\n    return WIDTH * x\n",
    "plots/other.py": "def bars(x):\n    return x\n",
    "evidence/__init__.py": "",
    "evidence/tables.py": "from osnb.base.tables import published\n\nPAPER = 'vaze2022'\n",
    "base/tables.py": "def published(x):\n    return x\n",
    "protocols/__init__.py": "from osnb.protocols.making import distances\n",
    "protocols/making.py": "def distances(x):\n    return x\n",
    "protocols/hierarchy.py": "x = 1\n",
    "datasets/small.py": "def fixed(x):\n    return x\n",
    "metrics/__init__.py": "def auroc(x):\n    return x\n",
    "published/vaze2022/table.csv": "1\n",
    "published/kim2021/table.csv": "1\n",
    "data/tree.csv": "1\n",
}
CELL = "from osnb import metrics, plots\nplots.oscr(metrics.auroc(1))"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes a file of a package that `workbook` takes for ours, each time a newer one."""
    monkeypatch.setattr(workbook, "PACKAGE", tmp_path / "osnb")
    times = count(1)

    def write(name, text):
        path = tmp_path / "osnb" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, ns=(next(times),) * 2)

    for name, text in ROOMS.items():
        write(name, text)
    return write


@pytest.fixture
def follows_from(project, package):
    """Names and digests of a notebook of these cells."""
    times = count(1)

    def found(*cells, notebook="90_it"):
        path = project.folder / "notebooks" / f"{notebook}.ipynb"
        cells = [{"cell_type": "code", "metadata": {}, "source": cell} for cell in cells]
        path.write_text(json.dumps({"cells": cells}))
        os.utime(path, ns=(next(times),) * 2)
        names = follows.names(notebook, {}, {}, {})
        return {name: follows.now(name, notebook, follows.goldens()) for name in names}

    return found


def test_a_results_notebook_follows_from_the_modules_that_its_names_lead_to(follows_from):
    modules = {"cells", "osnb/plots/curves.py", "osnb/plots/style.py"}
    assert follows_from(CELL).keys() == modules
    more = "from osnb.evidence import tables\nfrom osnb.protocols import hierarchy\nhierarchy.x"
    evidence = {"osnb/evidence/tables.py", "osnb/published/vaze2022", "osnb/data"}
    evidence |= {"osnb/protocols/hierarchy.py", "osnb/base/tables.py"}
    more = more.replace("hierarchy.x", "(hierarchy.x, tables.y)")
    assert follows_from(f"{CELL}\n{more}").keys() == modules | evidence


STYLE = ROOMS["plots/style.py"]


@pytest.mark.parametrize(
    ("file", "text", "changes"),
    [
        ("plots/style.py", STYLE.replace("2", "3"), True),
        ("plots/style.py", STYLE.replace("2\n", "2  # cm\n"), False),
        ("plots/other.py", "def bars(x):\n    return 2 * x\n", False),
        ("metrics/__init__.py", "def auroc(x):\n    return -x\n", False),  # of a golden
    ],
)
def test_a_change_counts_where_something_else_is_computed(
    follows_from, package, file, text, changes
):
    before = follows_from(CELL)
    package(file, text)
    assert (follows_from(CELL) != before) == changes


@pytest.mark.parametrize(
    ("file", "cell"),
    [
        ("protocols/making.py", "from osnb import protocols\nprotocols.distances(1)"),
        ("protocols/hierarchy.py", "from osnb.protocols import hierarchy\nhierarchy.x"),
        ("datasets/small.py", "from osnb.datasets.small import fixed\nfixed(1)"),
        ("base/tables.py", "from osnb.evidence import tables\ntables.published(1)"),
    ],
)
def test_results_follow_from_code_that_no_golden_holds_whole(follows_from, package, file, cell):
    before = follows_from(cell)
    package(file, ROOMS[file].replace("return x", "return 2 * x").replace("= 1", "= 2"))
    assert follows_from(cell)[f"osnb/{file}"] != before[f"osnb/{file}"]


def test_a_module_that_is_no_python_is_named(follows_from, package):
    package("plots/style.py", "\ndef broken(:\n")
    with pytest.raises(ValueError, match=r"osnb/plots/style\.py, line 2: "):
        follows_from(CELL)


def test_neither_docstrings_nor_what_is_printed_nor_the_texts_of_errors_count(follows_from):
    cell = """
def f(x):
    'One.'
    if x:
        raise ValueError(f"one {x}")
    print("one")
"""
    other = cell.replace("one", "two").replace("One", "Two") + "# a comment\n"
    assert follows_from(cell) == follows_from(other)
    assert follows_from(cell) != follows_from(cell.replace("if x", "if not x"))


def test_a_training_follows_from_its_cells_up_to_those_that_save(follows_from):
    follows_from = partial(follows_from, notebook="90_train")
    cells = "x = 1", "here.save('scores', table=x)", "last = scored['scores']", "y = 1"
    first = follows_from(*cells)
    assert first.keys() == {"cells"}
    assert follows_from(*cells[:2], "x = 2; here.save('more', table=x)") == first
    assert follows_from("x = 2", *cells[1:]) != first


def test_goldens_stand_for_what_is_measured(follows_from, project):
    golden = project.folder / "tests" / "golden" / "measure.json"
    golden.parent.mkdir(parents=True)
    golden.write_text(json.dumps({"auroc": {"digest": "abc"}, "aurc": {"digest": "def"}}))
    found = follows_from(CELL)
    assert found["measure/auroc"] == "abc"
    assert "measure/aurc" not in found
    stamp = {"notebook": "90_it", "goldens": found}
    assert follows.changed(stamp) == []
    golden.write_text(json.dumps({"auroc": {"digest": "ghi"}, "aurc": {"digest": "def"}}))
    os.utime(golden, ns=(7, 7))
    assert follows.changed(stamp) == ["measure/auroc"]


def test_what_has_no_golden_is_compared_by_all_numerical_code(project, package):
    then = follows.now("loss/mine", "90_it", {})
    stamp = {"notebook": "90_it", "goldens": {"loss/mine": then}}
    package("plots/style.py", "")
    assert follows.changed(stamp) == []
    package("losses.py", "def mine(): ...\n")
    assert follows.changed(stamp) == ["loss/mine"]


@pytest.fixture
def made(follows_from, project, package):
    """What a run follows from: of a notebook that a golden stands for, with a loss as given."""
    folder = project.folder / "tests" / "golden"
    folder.mkdir(parents=True)
    (folder / "measure.json").write_text(json.dumps({"auroc": {"digest": "abc"}}))
    follows_from(CELL)

    def made(loss):
        package("losses.py", loss)
        follows._hold.cache_clear()  # as in another process
        return json.loads(json.dumps(runs.follows_from("90_it", {"run": "small"})))

    made('def mine():\n    "1"\n    return 1\n')
    follows.note()
    return made


def test_a_run_of_code_that_no_golden_was_held_against_rests_on_that_code_alone(made):
    before = made('def mine():\n    "1"\n    return 1\n')
    assert before == made('def mine():\n    "one"\n    return 1\n')
    assert before["goldens"]["measure/auroc"] == "abc"
    edited = made("def mine():\n    return 2\n")
    stamps = [each | {"notebook": "90_it"} for each in (before, edited)]
    assert [follows.changed(stamp) for stamp in stamps] == [[], []]
    made('def mine():\n    "1"\n    return 1\n')  # taken back
    assert [follows.changed(stamp) for stamp in stamps] == [[], ["measure/auroc"]]


def test_a_run_goes_on_if_its_code_was_held_against_the_goldens_meanwhile(made, project):
    directory, edited = project.folder / "runs" / "90_it" / "small", "def mine():\n    return 2\n"
    workbook.write_json(directory / "begun.json", made(edited))
    follows.note()
    later = made(edited)
    assert later["goldens"]["measure/auroc"] == "abc"
    assert runs.goes_on(directory, later)
    assert not runs.goes_on(directory, later | {"parameters": {"run": "small", "seed": 1}})
    workbook.write_json(directory / "begun.json", later)
    assert not runs.goes_on(directory, made("def mine():\n    return 3\n"))


@pytest.mark.parametrize("text", ['{"goldens": {', "[]", "{}", '{"goldens": {"cells": 3}}', "\0"])
def test_nothing_goes_on_with_a_damaged_folder(made, project, text):
    directory, now = project.folder / "runs" / "90_it" / "small", made("def mine(): ...\n")
    workbook.write_json(directory / "begun.json", now)
    assert runs.goes_on(directory, now)
    (directory / "begun.json").write_text(text)
    assert not runs.goes_on(directory, now)


# Parameters


@pytest.mark.parametrize(
    ("value", "default", "expected"),
    [(3, 0, 3), (2, 0.5, 2.0), (0.25, 0.5, 0.25), ("a", "b", "a"), (True, False, True)],
)
def test_a_value_of_the_right_type_passes(value, default, expected):
    passed = workbook.checked("90_works", "x", value, default)
    assert passed == expected
    assert type(passed) is type(default)


@pytest.mark.parametrize(
    ("value", "default", "reason"),
    [
        (True, 0.5, "'x' of 90_works is float, such as 0.5; got True"),
        (1, True, "is bool"),
        ("a", ["a"], "is list"),
    ],
)
def test_a_value_of_another_type_is_refused(value, default, reason):
    with pytest.raises(ValueError, match=reason):
        workbook.checked("90_works", "x", value, default)


# Runs


@pytest.fixture
def names(project):
    """What globals() of a notebook of the project holds."""
    project.add("works", "90_works")
    project.write("90_works", "run: small\nrate: 0.25\n")
    return {"run": "small", "size": "mini", "seed": 0, "rate": 0.25, "word": "blue", "np": None}


def test_a_run_is_called_after_its_params_file(names, project):
    run = runs.begin("90_works", names)
    assert run.name == "small"
    assert run.directory == project.folder / "runs" / "90_works" / "small"
    assert run.follows["parameters"] == {name: names[name] for name in names if name != "np"}


def test_a_default_that_the_params_file_replaces_counts_as_a_difference(names):
    run = runs.begin("90_works", names | {"rate": 0.5})
    assert run.name == run.follows["parameters"]["run"] == "small-rate0.5"


def test_a_value_of_another_type_opens_no_run(names, project):
    with pytest.raises(ValueError, match="'seed' of 90_works is int"):
        runs.begin("90_works", names | {"seed": "3"})
    assert not (project.folder / "runs").exists()


def test_a_run_that_is_opened_again_keeps_its_files(names):
    (runs.begin("90_works", names).directory / "history.parquet").write_text("rows")
    again = runs.begin("90_works", names).directory
    assert (again / "history.parquet").read_text() == "rows"


def test_files_of_other_code_are_put_aside(names, project):
    directory = runs.begin("90_works", names).directory
    (directory / "checkpoint.pt").write_text("old")
    (directory / "run.json").write_text("{}")
    project.add("trains", "90_works")
    assert runs.begin("90_works", names).directory == directory
    assert (directory / "superseded" / "checkpoint.pt").read_text() == "old"
    assert sorted(path.name for path in directory.iterdir()) == [
        *("begun.json", "run.json", "superseded")
    ]


def test_saved_results_have_a_stamp_and_no_clock(names):
    run = runs.begin("90_works", names)
    run.save("table_2", table=pd.DataFrame({"x": [1 / 3]}), latex="x & y", inputs={"other": "abc"})
    first = {path.name: path.read_bytes() for path in run.directory.glob("table_2*")}
    assert first["table_2.csv"] == b"x\n0.333333\n"
    stamp = json.loads(first["table_2.json"])
    assert stamp["parameters"] == run.follows["parameters"]
    assert (stamp["notebook"], stamp["run"], stamp["inputs"]) == (
        "90_works",
        "small",
        {"other": "abc"},
    )
    assert first["table_2.tex"] == b"x & y"
    run.save("table_2", table=pd.DataFrame({"x": [1 / 3]}), latex="x & y", inputs={"other": "abc"})
    assert first == {path.name: path.read_bytes() for path in run.directory.glob("table_2*")}


def test_a_text_that_is_not_so_of_the_scores_is_said_and_stops_those_that_ship(
    tmp_path, monkeypatch, capsys
):
    mini, other = (runs.Run("33_kim_unified", name, tmp_path, {}) for name in ("mini", "tiny"))
    monkeypatch.delenv("OSNB_STRICT", raising=False)
    mini.text_says(True)
    other.text_says(False)
    assert capsys.readouterr().out == ""
    mini.text_says(np.bool_(False))
    assert capsys.readouterr().out.startswith("Not so here")
    monkeypatch.setenv("OSNB_STRICT", "1")
    mini.text_says(True)
    other.text_says(False)
    with pytest.raises(ValueError, match="text says otherwise"):
        mini.text_says(False)


def test_equal_figures_are_equal_bytes(names):
    from osnb.plots.style import Figure

    run = runs.begin("90_works", names)

    def svg():
        figure = Figure()
        figure.subplots().plot([1, 2])
        run.save("figure_1", figure=figure)
        return (run.directory / "figure_1.svg").read_bytes()

    assert svg() == svg()


@pytest.mark.parametrize(
    ("notebook", "size", "inputs", "about", "told"),
    [
        ("13_palechor_results", "mini", {"a": "1"}, "", 1),
        ("13_palechor_results", "mini", {"a": "1"}, "drawings in the place of ImageNet", 0),
        ("13_palechor_results", "mini", {}, "", 0),  # of lists, not of images
        ("13_palechor_results", "paper", {"a": "1"}, "", 0),
        ("50_own", "mini", {"a": "1"}, "", 0),
    ],
)
def test_a_miniature_s_artefact_says_once_what_its_images_stand_for(
    tmp_path, notebook, size, inputs, about, told
):
    from osnb.evidence import tables
    from osnb.plots.style import Figure

    follows = {"parameters": {"size": size}, "settings": {}, "goldens": {}, "columns": {}}
    run, figure = runs.Run(notebook, "mini", tmp_path, follows), Figure()
    figure.supxlabel(about)
    table = pd.DataFrame({"paper": [0.5], "ours": [0.6], "run": "r"})
    table = table.assign(**{"on": about} if about else {})
    what = {"figure": figure, "table": table, "latex": tables.latex(table), "inputs": inputs}
    for _ in range(2):
        run.save("figure_1", **what)
    assert (tmp_path / "figure_1.svg").read_text().count(f"<!-- {runs.STANDS_IN} -->") == told
    assert ("images" in pd.read_csv(tmp_path / "figure_1.csv")) == told
    note = rf"\multicolumn{{{table.shape[1]}}}{{l}}{{{runs.STANDS_IN}}} \\" + "\n\\bottomrule"
    assert (tmp_path / "figure_1.tex").read_text().count(note) == told


@pytest.mark.parametrize(
    ("notebook", "images", "told"),
    [("20_vaze_splits", True, True), ("20_vaze_splits", False, False), ("41_it", True, False)],
)
def test_what_images_stand_for_is_seen_and_said_in_the_notebook_too(
    tmp_path, notebook, images, told
):
    from osnb import plots

    follows = {"parameters": {"size": "mini"}, "settings": {}, "goldens": {}, "columns": {}}
    figure = plots.Figure(figsize=(3, 2))
    ax = figure.subplots()
    ax.imshow([[0]]) if images else ax.plot([1, 2])
    before = figure._repr_png_()
    runs.Run(notebook, "mini", tmp_path, follows).save("figure_5", figure=figure)
    bundle, _ = figure._repr_mimebundle_()
    assert (runs.STANDS_IN in html.unescape(bundle["text/html"])) == told
    sizes = [Image.open(io.BytesIO(png)).size for png in (before, figure._repr_png_())]
    assert sizes[1][0] == sizes[0][0]
    assert (sizes[1][1] > sizes[0][1] + 10) == told  # a line below what was there


def test_a_picture_that_may_not_be_passed_on_stays_in_the_run_and_in_no_stamp(names, tmp_path):
    from osnb.plots.style import Figure

    run = runs.begin("90_works", names)
    run.save("figure_1", figure=Figure(), table=pd.DataFrame({"x": [1]}), passed_on=False)
    assert (run.directory / "figure_1.png").read_bytes()[1:4] == b"PNG"
    assert not (run.directory / "figure_1.svg").exists()
    assert "png" not in (run.directory / "figure_1.json").read_text()
    assert runs.results(run.directory).keys() == {"figure_1.csv", "figure_1.json"}
    runs.publish(run.directory, tmp_path / "figures")
    names_there = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names_there == {"figure_1.csv", "figure_1.json"}


def test_equal_seeds_give_equal_draws():
    import random

    import torch

    def draws():
        workbook.seed_all(7)
        return random.random(), np.random.rand(), torch.rand(1).item()  # noqa: NPY002

    assert draws() == draws()


@pytest.mark.parametrize("name", ["osnb/../../outside.py", f"osnb/{'x' * 300}"])
def test_names_of_a_strange_archive_lead_to_no_file_outside_of_the_package(name):
    assert follows.now(name, "90_it", {}) == ""
