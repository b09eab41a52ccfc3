"""Each way in which a figure stops following from what its stamp says, and nothing else."""

import json
import random
import shutil

import pytest
from finished import finish, paper, sign
from test_cli import osnb

from osnb.base import stamps, tables, workbook
from osnb.book.verify import VERDICTS, params_file, verify
from osnb.train import checkpoint

RESULT = "figures/13_fixture_results/small/table"
TRAINED = ("figures/12_fixture_train/small", "figures/12_fixture_train/small-seed1")
NAMES = ("scores", "scores_best", "table")
SCORES = "figures/12_fixture_train/small/scores"


@pytest.fixture
def folder(project):
    """figures/ of a project with two training runs and a results run, without runs/."""
    paper(project)
    shutil.rmtree(project.folder / "runs")
    return project.folder / "figures"


def wrong():
    """Verdict and reason of each artefact that does not follow."""
    rows = verify()
    assert {row["verdict"] for row in rows} <= {*VERDICTS}
    return {x["artefact"]: (x["verdict"], x["what"]) for x in rows if x["verdict"] != "follows"}


def test_all_is_well_in_figures_and_in_runs(project):
    paper(project)
    rows = verify()
    assert {row["verdict"] for row in rows} == {"follows"}
    assert len(rows) == 2 * (2 * 3 + 1)  # a table, and of training runs two scores tables
    assert {row["run"] for row in rows} == {
        "12_fixture_train/small",
        "12_fixture_train/small-seed1",
        "13_fixture_results/small",
    }


def test_a_file_that_was_edited_or_is_gone(folder):
    (folder / "13_fixture_results/small/table.csv").write_text("seed\n7\n")
    assert wrong() == {RESULT: ("edited", "table.csv has other bytes than its stamp says")}
    (folder / "13_fixture_results/small/table.csv").unlink()
    assert wrong() == {RESULT: ("missing", "table.csv is gone")}


def test_a_flipped_bit_in_any_file_of_figures_and_runs(project):
    directory = paper(project)[0]
    checkpoints = {checkpoint.CURRENT, checkpoint.PREVIOUS, checkpoint.BEST}
    for name in checkpoints:
        checkpoint.save({"model": {}, "epoch": 1}, directory / name)
    sign(directory)
    files = [x for base in ("figures", "runs") for x in (project.folder / base).rglob("*")]
    files = [x for x in files if x.is_file() and ".locks" not in x.parts]
    assert {"run.json", "begun.json", "executed.ipynb"} | checkpoints < {x.name for x in files}
    draw = random.Random(0)
    for file in files:
        content = file.read_bytes()
        for bit in draw.sample(range(8 * len(content)), 3):
            flipped = bytearray(content)
            flipped[bit // 8] ^= 1 << bit % 8
            file.write_bytes(flipped)
            assert wrong(), f"bit {bit} of {file}"
        file.write_bytes(content)
    assert wrong() == {}


def test_a_drawing_without_a_stamp(folder):
    (folder / "13_fixture_results/small/mine.svg").write_text("<svg/>")
    assert wrong() == {f"{RESULT[:-5]}mine.svg": ("unstamped", "no stamp lists mine.svg")}


def test_a_stamp_of_another_run(folder):
    shutil.copytree(folder / "13_fixture_results/small", folder / "13_fixture_results/other")
    assert wrong() == {
        RESULT.replace("small", "other"): (
            "edited",
            "its stamp is that of 13_fixture_results/small",
        )
    }


def test_other_code_in_the_notebook_and_no_notebook(folder, project):
    source = project.add("collects", "13_fixture_results")
    assert wrong() == {RESULT: ("code", "computes otherwise now: cells")}
    source.unlink()
    assert wrong() == {RESULT: ("code", "13_fixture_results is gone")}


def test_a_params_file_that_says_otherwise_with_all_that_was_made_from_its_run(folder, project):
    project.write("12_fixture_train", "run: small\nrate: 0.125\n")
    reason = "params/12_fixture_train/small.yaml says otherwise: rate"
    found = wrong()
    said = "made from 12_fixture_train/small, which does not follow (parameters)"
    assert found.pop(RESULT) == ("inputs", said)
    assert {*found} == {f"{folder}/{x}" for folder in TRAINED for x in NAMES}
    assert {*found.values()} == {("parameters", reason)}


def test_a_params_file_of_ones_own_that_says_otherwise(project):
    finish(project, "12_fixture_train", run="own", rate=0.125)
    file = project.folder / "params" / "12_fixture_train" / "own.yaml"
    own = project.folder / "12_fixture_train" / "own.yaml"
    own.parent.mkdir()
    file.rename(own)
    assert wrong() == {}
    own.write_text("run: own\nrate: 0.25\n")
    reason = "12_fixture_train/own.yaml says otherwise: rate"
    assert {*wrong().values()} == {("parameters", reason)}


def test_a_parameter_that_the_notebook_has_lost(folder, project):
    notebook = project.folder / "notebooks" / "13_fixture_results.ipynb"
    text = notebook.read_text()
    notebook.write_text(text.replace("word: str", "other: str"))
    said = "params/13_fixture_results/small.yaml says otherwise: other, word"
    assert wrong() == {RESULT: ("parameters", said)}


def test_runs_of_params_files_elsewhere_and_overrides_are_none_of_its_business(project):
    finish(project, "12_fixture_train", seed=3, rate=0.125)
    (project.folder / "params" / "12_fixture_train" / "small.yaml").unlink()
    assert wrong() == {}


def test_the_longest_name_is_the_params_file_of_a_variant(project):
    project.add("works", "90_works")
    for run in ("small", "small-fast", "smaller"):
        project.write("90_works", f"run: {run}\n", run=run)
    assert params_file("90_works", "small-fast-seed1").stem == "small-fast"
    assert params_file("90_works", "small-seed1").stem == "small"
    assert params_file("90_works", "smal") is None


def test_scores_that_were_computed_anew_or_are_gone(folder, project):
    path = folder.parent / f"{SCORES}.parquet"
    table = tables.read(path)
    stamp = table.attrs
    tables.write(path, table, stamp | {"versions": {}})  # a stamp that is renewed
    assert wrong() == {}
    tables.write(path, table.assign(max_logit=1.0), stamp)
    assert wrong() == {
        RESULT: ("inputs", "made from 12_fixture_train/small, which has other data now")
    }
    path.unlink()
    assert wrong()[SCORES] == ("missing", "scores.parquet is gone")
    path.with_suffix(".json").unlink()
    said = "made from small, which has no scores table with a whole stamp"
    assert wrong() == {RESULT: ("inputs", said)}


def test_a_run_takes_the_place_of_its_published_scores(folder, project):
    finish(project, "12_fixture_train", rate=0.125)
    shutil.rmtree(folder / "12_fixture_train" / "small")
    project.write("12_fixture_train", "run: small\nrate: 0.5\n")
    assert wrong()[RESULT][1].endswith("small, which does not follow (parameters)")


@pytest.mark.parametrize("name", ["scores.parquet", "history.parquet"])
def test_a_table_that_was_cut(folder, name):
    path = folder / "12_fixture_train/small" / name
    path.write_bytes(path.read_bytes()[:-20])
    assert wrong()[SCORES] == ("edited", f"{name} has other bytes than its stamp says")
    assert RESULT in wrong()


def test_a_stamp_that_was_edited_explains_nothing(folder):
    path = folder / "13_fixture_results/small/table.json"
    stamp = json.loads(path.read_text())
    for other in (stamp | {"run": "x"}, stamp | {"run": 3}, {}):
        workbook.write_json(path, other)
        reason = ("edited", "its stamp table.json is not whole, or was edited")
        assert {*wrong().values()} == {reason}
    path.unlink()
    assert wrong()[f"{RESULT}.csv"] == ("unstamped", "no stamp lists table.csv")


# Files that cannot be read


def test_a_notebook_that_is_no_python_hides_no_other_verdict(folder, project):
    source = project.folder / "notebooks" / "13_fixture_results.ipynb"
    good = source.read_text()
    for text, verdict, reason in (
        (good.replace("print(", "print(("), "code", "code cell 4 is no plain Python"),
        (good.replace("seed: int", "seed: = int"), "parameters", "code cell 1 is no plain"),
        (good.replace("int = 0", "int = int(0)"), "parameters", "the default of 'seed' must"),
        (good[:-9], "code", "line "),
        ("[]", "code", "list"),
    ):
        source.write_text(text)
        ((path, found),) = wrong().items()
        assert (path, found[0]) == (RESULT, verdict)
        assert found[1].startswith("13_fixture_results or what it needs cannot be read: ")
        assert reason in found[1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("run: small\nrate: [1\n", "is no valid yaml in line 3"),
        ("- a\n", "needs lines of 'name: value'; it holds a list"),
        ("run: \x00\n", "is no valid yaml"),
    ],
)
def test_a_params_file_that_is_broken_concerns_the_runs_that_are_called_after_it(
    folder, project, text, reason
):
    project.write("13_fixture_results", text)
    ((path, (verdict, what)),) = wrong().items()
    assert (path, verdict) == (RESULT, "parameters")
    assert f"params/13_fixture_results/small.yaml {reason}" in what
    project.write("12_fixture_train", text)
    assert {verdict for verdict, _ in wrong().values()} == {"parameters"}
    assert len(wrong()) == 7


def test_a_table_made_from_a_variant_is_told_from_one_made_from_another_seed(project):
    finish(project, "12_fixture_train", run="small")
    made = finish(project, "12_fixture_train", seed=1)
    read = {made.name: stamps.data(made)}
    finish(project, "13_fixture_results", inputs=read)
    assert wrong() == {}
    varied = project.folder / "params" / "12_fixture_train" / "other.yaml"
    (project.folder / "params" / "12_fixture_train" / "small.yaml").rename(varied)
    found = wrong()
    assert {*found} == {RESULT, RESULT.replace("figures", "runs")}
    assert found[RESULT][1].startswith("made from 12_fixture_train/small-seed1, a variant of what")


def test_a_table_made_from_a_run_of_ones_own_follows(project):
    made = finish(project, "12_fixture_train", run="mine", size="own")
    finish(project, "13_fixture_results", inputs={made.name: stamps.data(made)})
    (project.folder / "params" / "12_fixture_train" / "mine.yaml").unlink()
    assert wrong() == {}


def test_a_table_made_from_another_notebooks_csv_follows_while_that_is_the_same(project):
    other = finish(project, "10_fixture_rules")
    name = f"10_fixture_rules/{other.name}/table.csv"
    finish(project, "13_fixture_results", inputs={name: workbook.file_hash(other / "table.csv")})
    assert wrong() == {}
    finish(project, "13_fixture_results", inputs={name: "0" * 64})
    said = f"made from {name}, which is gone or other now"
    assert {*wrong().values()} == {("inputs", said)}


def test_the_command_prints_json_alone_or_writes_a_file_as_well(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (folder / "13_fixture_results/small/table.csv").write_text("seed\n7\n")
    code, out, err = osnb("verify", "--json", "-")
    assert (code, err) == (1, "")
    assert json.loads(out) == verify()
    assert not (tmp_path / "-").exists()
    out = osnb("verify", "--json", "x.json")[1]
    assert json.loads((tmp_path / "x.json").read_text()) == verify()
    assert out.splitlines()[-1] == "7 results: 6 follows, 1 edited"
