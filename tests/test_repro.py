"""Files are written whole, hashes see what counts, and a run is opened under its own name."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from osnb import repro


def test_the_root_is_found_from_any_folder(tmp_path, monkeypatch):
    before = repro.root()
    monkeypatch.chdir(tmp_path)
    assert repro.root() == before
    assert (before / "pyproject.toml").is_file()


def test_outside_of_a_project_the_root_is_missed_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(repro, "PACKAGE", tmp_path / "site-packages" / "osnb")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="work in a clone"):
        repro.root()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "notebooks").mkdir()
    assert repro.root() == tmp_path


def test_results_go_where_the_environment_says(project, tmp_path, monkeypatch):
    monkeypatch.setenv("OSNB_OUT", str(tmp_path / "elsewhere"))
    assert repro.out() == tmp_path / "elsewhere"
    monkeypatch.setenv("OSNB_OUT", "")
    assert repro.out() == project.folder


# Writing


def test_a_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "new" / "scores.csv"
    with repro.writing(path) as aside:
        aside.write_text("whole")
        assert aside.parent == path.parent
        assert aside.suffix == ".csv"
        assert not path.exists()
    assert path.read_text() == "whole"
    assert os.listdir(path.parent) == ["scores.csv"]


def test_after_an_error_the_old_file_is_there_and_the_part_is_gone(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("old")

    def write():
        with repro.writing(path) as aside:
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
        "import sys, time\nfrom pathlib import Path\nfrom osnb import repro\n"
        "with repro.writing(Path(sys.argv[1])) as aside:\n"
        "    aside.write_text('ne')\n    print('half', flush=True)\n    time.sleep(60)"
    )
    writer = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True)
    assert writer.stdout.readline() == "half\n"
    writer.send_signal(signal.SIGKILL)
    assert writer.wait() == -signal.SIGKILL
    writer.stdout.close()
    assert path.read_text() == "old"


def test_readers_never_see_a_part(tmp_path):
    path, sizes = tmp_path / "numbers.json", set()
    repro.write_json(path, {"n": [0] * 20_000})
    code = (
        "import sys\nfrom pathlib import Path\nfrom osnb import repro\n"
        "for n in range(60):\n    repro.write_json(Path(sys.argv[1]), {'n': [n % 10] * 20_000})"
    )
    writer = subprocess.Popen([sys.executable, "-c", code, path])
    while writer.poll() is None:
        sizes.add(len(json.loads(path.read_text())["n"]))
        time.sleep(0.001)
    assert sizes == {20_000}


def test_equal_content_gives_equal_json_whatever_its_order(tmp_path):
    repro.write_json(tmp_path / "a", {"x": 1, "y": [2]})
    repro.write_json(tmp_path / "b", {"y": [2], "x": 1})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# Hashes


def test_a_digest_knows_where_its_parts_end(tmp_path):
    (tmp_path / "file").write_text("ab")
    assert repro.digest("ab", "c") != repro.digest("a", "bc")
    assert (
        repro.digest("ab", "c") == repro.digest(b"ab", "c") == repro.digest(tmp_path / "file", "c")
    )
    assert repro.digest("ab") != repro.digest("ab", "")


def test_a_file_hash_is_that_of_sha256sum(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")  # the example of FIPS 180-2
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert repro.file_hash(tmp_path / "file") == expected


def test_rooms_are_followed_through():
    assert repro.rooms("from osnb import tables") == [
        *("osnb", "osnb.labels", "osnb.repro", "osnb.tables")
    ]
    assert "osnb.datasets.images" in repro.rooms("import osnb.datasets")
    assert repro.rooms("import numpy\nfrom pathlib import Path") == []


def notebook(*sources, **parameters):
    """Text of a notebook with these code cells after a parameters cell."""
    lines = "\n".join(f"{name} = {value!r}" for name, value in parameters.items())
    cells = [("code", ["parameters"], lines), *(("code", [], text) for text in sources)]
    cells.append(("markdown", [], "# Words"))
    return json.dumps(
        {"cells": [{"cell_type": k, "metadata": {"tags": t}, "source": s} for k, t, s in cells]}
    )


@pytest.fixture
def code_hash(tmp_path):
    """The hash of a notebook made of the given cells and parameters."""

    def hashed(*sources, **parameters):
        (tmp_path / "it.ipynb").write_text(notebook(*sources, **parameters))
        return repro.code_hash(tmp_path / "it.ipynb")

    return hashed


def test_the_code_hash_sees_code_and_neither_comments_nor_defaults(code_hash):
    before = code_hash("x = 1", run="a", rate=0.1)
    assert code_hash("x = 1  # one\n", run="a", rate=0.2) == before
    assert code_hash("x = 2", run="a", rate=0.1) != before
    assert code_hash("x = 1", "x = 1", run="a", rate=0.1) != before


def test_the_code_hash_sees_the_code_of_rooms_and_not_their_docstrings(
    code_hash, tmp_path, monkeypatch
):
    package = tmp_path / "osnb"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.setattr(repro, "PACKAGE", package)

    def with_room(text):
        (package / "room.py").write_text(text)
        repro._meaning.cache_clear()
        return code_hash("from osnb import room", run="a")

    before = with_room('"""A room."""\n\ndef f(x):\n    """Adds."""\n    return x + 1\n')
    assert before == with_room('"""My room."""\n\n\ndef f(x):\n    # why\n    return x + 1\n')
    assert before != with_room('"""A room."""\n\ndef f(x):\n    """Adds."""\n    return x + 2\n')
    repro._meaning.cache_clear()


def test_the_code_hash_sees_the_data_that_a_room_reads(code_hash, tmp_path, monkeypatch):
    package = tmp_path / "osnb"
    (package / "data").mkdir(parents=True)
    (package / "hierarchy.py").touch()
    (package / "data" / "nouns.tsv").write_text("dog")
    monkeypatch.setattr(repro, "PACKAGE", package)
    before = code_hash("from osnb import hierarchy", run="a")
    (package / "data" / "nouns.tsv").write_text("cat")
    assert code_hash("from osnb import hierarchy", run="a") != before
    repro._meaning.cache_clear()


# Parameters


def test_what_a_notebook_declares_are_names_and_literals(project):
    path = project.add("works", "90_works")
    expected = {"run": "small", "size": "mini", "seed": 0, "rate": 0.5, "word": "blue"}
    assert repro.declared(path) == expected


@pytest.mark.parametrize(
    ("fixture", "reason"),
    [
        ("without_parameters", "it has 0"),
        ("two_parameters_cells", "it has 2"),
        ("computed_default", "default of 'half' must be a literal; got rate / 2"),
    ],
)
def test_a_notebook_declares_its_parameters_in_one_cell_of_literals(project, fixture, reason):
    path = project.add(fixture, "90_fixture")
    with pytest.raises(ValueError, match=reason):
        repro.declared(path)


@pytest.mark.parametrize(
    ("value", "default", "expected"),
    [(3, 0, 3), (2, 0.5, 2.0), (0.25, 0.5, 0.25), ("a", "b", "a"), (True, False, True)],
)
def test_a_value_of_the_right_type_passes(value, default, expected):
    passed = repro.checked("90_works", "x", value, default)
    assert passed == expected
    assert type(passed) is type(default)


@pytest.mark.parametrize(
    ("value", "default", "reason"),
    [
        ("1e-3", 0.5, "write 1.0e-3"),
        (0.5, 3, "'x' of 90_works is int, such as 3; got 0.5"),
        (True, 3, "got True"),
        (True, 0.5, "got True"),
        (3, "a", "is str"),
        (None, "a", "got None"),
        (1, True, "is bool"),
        ("a", ["a"], "is list"),
    ],
)
def test_a_value_of_another_type_is_refused(value, default, reason):
    with pytest.raises(ValueError, match=reason):
        repro.checked("90_works", "x", value, default)


# Runs


@pytest.fixture
def names(project):
    """What globals() of a notebook of the project holds."""
    project.add("works", "90_works")
    project.write("90_works", "run: small\nrate: 0.25\n")
    return {"run": "small", "size": "mini", "seed": 0, "rate": 0.25, "word": "blue", "np": None}


def test_a_run_is_called_after_its_params_file(names, project):
    run = repro.begin("90_works", names)
    assert run.name == "small"
    assert run.directory == project.folder / "runs" / "90_works" / "small"
    assert run.parameters == {name: names[name] for name in names if name != "np"}


def test_what_differs_from_the_params_file_joins_the_name(names):
    run = repro.begin("90_works", names | {"seed": 3, "word": "a/b"})
    assert run.name == "small-seed3-worda_b"
    assert run.parameters["run"] == run.name


def test_a_run_that_is_called_by_its_full_name_keeps_it(names):
    assert repro.begin("90_works", names | {"run": "small-seed3", "seed": 3}).name == "small-seed3"


def test_a_default_that_the_params_file_replaces_counts_as_a_difference(names):
    assert repro.begin("90_works", names | {"rate": 0.5}).name == "small-rate0.5"


def test_a_value_of_another_type_opens_no_run(names, project):
    with pytest.raises(ValueError, match="'seed' of 90_works is int"):
        repro.begin("90_works", names | {"seed": "3"})
    assert not (project.folder / "runs").exists()


def test_a_run_that_is_opened_again_keeps_its_files(names):
    (repro.begin("90_works", names).directory / "history.parquet").write_text("rows")
    again = repro.begin("90_works", names).directory
    assert (again / "history.parquet").read_text() == "rows"


def test_files_of_other_code_are_put_aside(names, project):
    directory = repro.begin("90_works", names).directory
    (directory / "checkpoint.pt").write_text("old")
    (directory / "run.json").write_text("{}")
    project.add("trains", "90_works")
    assert repro.begin("90_works", names).directory == directory
    assert (directory / "superseded" / "checkpoint.pt").read_text() == "old"
    assert sorted(path.name for path in directory.iterdir()) == [
        *("begun.json", "run.json", "superseded")
    ]


def test_saved_results_have_a_stamp_and_no_clock(names):
    import pandas as pd

    run = repro.begin("90_works", names)
    run.save("table_2", table=pd.DataFrame({"x": [1 / 3]}), inputs={"other": "abc"})
    first = {path.name: path.read_bytes() for path in run.directory.glob("table_2*")}
    assert first["table_2.csv"] == b"x\n0.333333\n"
    stamp = json.loads(first["table_2.json"])
    assert stamp["parameters"] == run.parameters
    assert (stamp["notebook"], stamp["run"], stamp["inputs"]) == (
        "90_works",
        "small",
        {"other": "abc"},
    )
    run.save("table_2", table=pd.DataFrame({"x": [1 / 3]}), inputs={"other": "abc"})
    assert first == {path.name: path.read_bytes() for path in run.directory.glob("table_2*")}


def test_equal_figures_are_equal_bytes(names):
    from osnb.plots.style import Figure

    run = repro.begin("90_works", names)

    def svg():
        figure = Figure()
        figure.subplots().plot([1, 2])
        run.save("figure_1", figure=figure)
        return (run.directory / "figure_1.svg").read_bytes()

    assert svg() == svg()


def test_equal_seeds_give_equal_draws():
    import random

    import numpy as np
    import torch

    def draws():
        repro.seed_all(7)
        return random.random(), np.random.rand(), torch.rand(1).item()  # noqa: NPY002

    assert draws() == draws()
