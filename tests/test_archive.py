"""Finished runs go out as one zip and come back as they were; sha256sum and rocrate read it too."""

import json
import os
import platform
import re
import shutil
import subprocess
import zipfile
from functools import reduce
from urllib.parse import unquote

import pytest
import refusals
from finished import EMPTY, finish, scores, sign
from rocrate.rocrate import ROCrate
from test_cli import osnb
from test_trust import RUN, Forger, refused

from osnb.base import workbook
from osnb.book import archive, record, runs
from osnb.book.archive.checking import wrong
from osnb.book.run import done, execute, plan
from osnb.evidence import gallery, tables


def empty(project):
    """Take away every run and figure."""
    for name in ("runs", "figures"):
        shutil.rmtree(project.folder / name)


def contents(folder):
    """Bytes of every file below a folder, but run.json and locks, by path."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "run.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


# Out


def test_an_archive_holds_runs_params_notebooks_and_environment_and_no_checkpoint(packed):
    names = zipfile.ZipFile(packed).namelist()
    assert names[:2] == ["ro-crate-metadata.json", "manifest-sha256.txt"]
    assert [name for name in names if not name.startswith("runs/")][2:] == [
        "notebooks/12_fixture_train.ipynb",
        "notebooks/13_fixture_results.ipynb",
        "params/12_fixture_train/small.yaml",
        "params/13_fixture_results/small.yaml",
        "requirements.lock",
    ]
    own = [name.rpartition("/")[2] for name in names if "/small-seed1/" in name]
    said = "executed.ipynb history.parquet run.json scores.json scores.parquet scores_best.json"
    assert own == f"{said} scores_best.parquet table.csv table.json table.tex".split()


def test_the_same_runs_give_the_same_bytes_whatever_the_files_times(packed, project, tmp_path):
    for path in project.folder.rglob("*"):
        os.utime(path, (1e9, 1e9))
    archive.pack(["13*", "12*", "*"], tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == packed.read_bytes()


@pytest.mark.parametrize(
    ("names", "runs"),
    [
        (["small-seed1"], ["12_fixture_train/small-seed1"]),
        (["small"], ["12_fixture_train/small", "13_fixture_results/small"]),
        (["12_fixture_train/small"], ["12_fixture_train/small"]),
        (["12_*/*", "13_fixture_results/sm?ll"], None),
    ],
)
def test_runs_are_chosen_by_name_or_pattern(packed, tmp_path, names, runs):
    archive.pack(names, tmp_path / "some.zip")
    found = {name.rpartition("/")[0] for name in zipfile.ZipFile(tmp_path / "some.zip").namelist()}
    every = ["12_fixture_train/small", "12_fixture_train/small-seed1", "13_fixture_results/small"]
    assert {x for x in found if "runs" in x} == {f"runs/{run}" for run in runs or every}


def test_a_name_that_means_no_run_is_answered_with_the_valid_ones(packed, tmp_path):
    with pytest.raises(ValueError, match=r"no run is called 'smal'; there are: 1._fixture_"):
        archive.pack(["small", "smal"], tmp_path / "x.zip")
    assert not (tmp_path / "x.zip").exists()


def test_a_run_that_is_not_done_or_not_whole_is_refused_by_name(packed, project, tmp_path):
    folder = project.folder / "runs" / "12_fixture_train" / "small"
    (folder / "table.csv").write_text("edited")
    with pytest.raises(ValueError, match=r"12_fixture_train/small is not what .*table\.csv"):
        archive.pack(["*"], tmp_path / "x.zip")
    archive.pack(["small-seed1"], tmp_path / "other.zip")
    (folder.with_name("small-seed1") / "executed.ipynb").unlink()
    with pytest.raises(ValueError, match=r"small-seed1 is not what .*\(executed\.ipynb\)"):
        archive.pack(["small-seed1"], tmp_path / "x.zip")
    record.write(folder, record.read(folder) | {"state": "failed"})
    with pytest.raises(ValueError, match=r"only finished runs .*12_fixture_train/small is failed"):
        archive.pack(["*"], tmp_path / "x.zip")
    assert not (tmp_path / "x.zip").exists()


def test_an_archive_is_replaced_only_by_force(packed):
    before = packed.stat().st_ino
    with pytest.raises(ValueError, match=r"all\.zip exists; --force replaces it"):
        archive.pack(["*"], packed)
    assert packed.stat().st_ino == before
    archive.pack(["*"], packed, force=True)
    assert packed.stat().st_ino != before


def test_what_a_reader_will_miss_is_said(packed, project, tmp_path):
    _, note = archive.pack(["13*"], tmp_path / "a.zip")
    assert "13_fixture_results/small was made from runs that are not in it: small, small-s" in note
    project.add("collects", "13_fixture_results")
    assert "with other code" in archive.pack(["*"], tmp_path / "b.zip")[1]


@pytest.mark.parametrize(
    ("text", "why"), [("rate: 0.125", "says otherwise: rate"), ("- rate", "it holds a list")]
)
def test_a_params_file_that_says_otherwise_stays_out_and_it_is_said(
    packed, project, tmp_path, text, why
):
    project.write("12_fixture_train", text)
    _, note = archive.pack(["12_fixture_train/small"], tmp_path / "x.zip")
    assert note.startswith("12_fixture_train/small goes without its params file: ")
    assert why in note
    crate = ROCrate(tmp_path / "x.zip")
    assert not [x for x in zipfile.ZipFile(tmp_path / "x.zip").namelist() if "params" in x]
    (action,) = crate.root_dataset["mentions"]
    assert not action.get("object")


def test_a_run_that_printed_one_line_a_million_times_goes_out_and_comes_in(project, tmp_path):
    folder = finish(project, "90_works")
    said = {"output_type": "stream", "name": "stdout", "text": "one line, over and over\n" * 10**6}
    cell = {"cell_type": "code", "metadata": {}, "source": "", "outputs": [said]}
    cell["execution_count"] = 1
    (folder / "executed.ipynb").write_text(json.dumps(EMPTY | {"cells": [cell]}))
    sign(folder)
    archive.pack(["*"], tmp_path / "x.zip")
    assert (tmp_path / "x.zip").stat().st_size < 200_000
    empty(project)
    assert {*archive.unpack(tmp_path / "x.zip").values()} == {"imported"}


def test_a_run_with_outputs_beside_its_scores_goes_out_and_comes_in(project, tmp_path):
    folder = finish(project, "12_fixture_train")
    outputs = scores(0)[["sample", "role", "label"]].assign(x=0.5, epoch=1)
    outputs.to_parquet(folder / "outputs.parquet")
    record.write(folder, record.read(folder) | {"outputs": runs.results(folder)})
    archive.pack(["*"], tmp_path / "x.zip")
    empty(project)
    assert {*archive.unpack(tmp_path / "x.zip").values()} == {"imported"}


def test_a_run_of_ones_own_goes_out_and_comes_in_and_stays_out_of_figures(project, tmp_path):
    finish(project, "12_fixture_train", size="own")
    archive.pack(["*"], tmp_path / "x.zip")
    empty(project)
    assert {*archive.unpack(tmp_path / "x.zip").values()} == {"imported"}
    assert not [*(project.folder / "figures").rglob("*.parquet")]


def test_every_key_that_a_run_writes_of_itself_is_known(project):
    """The kernel stands aside; all else of run.json is there, and an attempt before it."""
    project.add("works", "90_works")
    small = plan(project.write("90_works", "run: small\n"))
    error = {"name": "E", "value": "\x1b[31mred", "cell": 1, "tail": []}
    done = {"state": "done", "unpublished": ["a.csv"], "used": {"memory": 1, "gpu": None}}
    for end in ({"state": "failed", "error": error}, done):
        found = execute(small, through=lambda *_, end=end: end)
    assert len(found["attempts"]) == 1
    assert wrong(found) == []
    for key in found:
        assert wrong(found | {key: [{"x": []}]}) == [key]


# Second voices


def test_sha256sum_finds_every_member_as_the_manifest_says(packed, tmp_path):
    subprocess.run(["unzip", "-q", packed, "-d", tmp_path / "out"], check=True)
    command = ["sha256sum", "--check", "--strict", "manifest-sha256.txt"]
    said = subprocess.run(command, cwd=tmp_path / "out", capture_output=True, text=True, check=True)
    names = {line.removesuffix(": OK") for line in said.stdout.splitlines()}
    assert names == {*zipfile.ZipFile(packed).namelist()} - {"manifest-sha256.txt"}


def test_rocrate_reads_files_runs_and_what_they_were_made_from(packed, tmp_path):
    crate = ROCrate(packed)
    names = {*zipfile.ZipFile(packed).namelist()} - {"ro-crate-metadata.json"}
    files = {unquote(file.id): file for file in crate.data_entities}
    assert files.keys() == names
    read = zipfile.ZipFile(packed).read
    for name in names - {"manifest-sha256.txt"}:
        (tmp_path / "one").write_bytes(read(name))
        assert files[name]["sha256"] == workbook.file_hash(tmp_path / "one")
        assert int(files[name]["contentSize"]) == len(read(name))
    root = crate.root_dataset
    assert [x["name"] for x in root["citation"]] == [gallery.PAPERS["palechor2023"]]
    assert "BSD-3-Clause" in root["license"].id
    assert "images and data sets are not included" in root["license"]["description"].lower()
    context = json.loads(read("ro-crate-metadata.json"))["@context"]
    assert context[-1] == {"sha256": "https://schema.org/sha256"}
    action = {x.id: x for x in root["mentions"]}["#13_fixture_results/small"]
    run = json.loads(read("runs/13_fixture_results/small/run.json"))
    assert (action["startTime"], action["endTime"]) == (run["started"], run["finished"])
    assert root["datePublished"] == run["finished"]
    assert action["instrument"].id == "notebooks/13_fixture_results.ipynb"
    assert [unquote(x.id) for x in action["object"]] == [
        "params/13_fixture_results/small.yaml",
        "runs/12_fixture_train/small/scores.parquet",
        "runs/12_fixture_train/small-seed1/scores.parquet",
    ]
    assert {x.id for x in action["result"]} == {x for x in names if x.startswith("runs/13_")}


# And in


def test_runs_come_back_as_they_were_are_done_and_are_collected(packed, project):
    before = contents(project.folder)
    runs = {run["run"]: run for run in record.everything()}
    empty(project)
    assert {*archive.unpack(packed).values()} == {"imported"}
    after = contents(project.folder)
    gone = before.keys() - after.keys()
    assert gone == {name for name in before if name.endswith(("checkpoint.pt", "begun.json"))}
    assert all(after[name] == before[name] for name in after if "/.locks/" not in name)
    assert done(plan(project.folder / "params" / "12_fixture_train" / "small.yaml", {"seed": 1}))
    assert list(tables.collect("12_fixture_train", "mini")["run"]) == ["small", "small-seed1"]
    for run in record.everything():
        source = run.pop("imported")
        assert (source["archive"], source["sha256"]) == ("all.zip", workbook.file_hash(packed))
        assert run.keys() >= runs[run["run"]].keys()


def test_what_is_here_already_is_left_alone_but_published(packed, project):
    folder = project.folder / "runs" / "12_fixture_train" / "small"
    before = (folder / "run.json").read_bytes()
    shutil.rmtree(project.folder / "figures")
    assert {*archive.unpack(packed).values()} == {"here already, the same"}
    assert (folder / "run.json").read_bytes() == before
    assert (folder / "checkpoint.pt").exists()
    assert (project.folder / "figures" / "12_fixture_train" / "small" / "table.csv").exists()


def test_another_run_of_that_name_is_replaced_only_by_force_and_kept_aside(packed, project):
    folder = finish(project, "12_fixture_train", rate=0.125)
    before = contents(project.folder)
    with pytest.raises(ValueError, match="12_fixture_train/small is here with other content"):
        archive.unpack(packed)
    assert contents(project.folder) == before
    found = archive.unpack(packed, force=True)
    assert found["12_fixture_train/small"] == "imported, replacing another"
    assert found["13_fixture_results/small"] == "here already, the same"
    assert (folder / "superseded" / "checkpoint.pt").exists()
    assert record.read(folder)["parameters"]["rate"] == 0.5
    assert sorted(os.listdir(folder.parent)) == ["small", "small-seed1"]


def test_a_run_that_is_being_made_here_is_never_replaced(packed, project):
    folder = finish(project, "12_fixture_train", rate=0.125)
    record.write(folder, record.read(folder) | {"state": "running"})
    with pytest.raises(ValueError, match="12_fixture_train/small is running here"):
        archive.unpack(packed, force=True)
    record.write(folder, record.read(folder) | {"state": "queued", "host": "gone"})
    assert archive.unpack(packed, force=True)["12_fixture_train/small"].startswith("imported")


@pytest.mark.parametrize("state", ["queued", "failed"])
def test_a_run_that_never_began_makes_way_and_one_that_did_does_not(packed, project, state):
    folder = project.folder / "runs" / "12_fixture_train" / "small"
    found = {key: record.read(folder)[key] for key in ("notebook", "run", "parameters")}
    shutil.rmtree(folder)
    folder.mkdir()
    record.write(folder, found | {"state": state, "host": platform.node(), "pid": 0})
    (folder / "begun.json").touch()
    with pytest.raises(ValueError, match="12_fixture_train/small is here with other content"):
        archive.unpack(packed)
    (folder / "begun.json").unlink()
    assert archive.unpack(packed)["12_fixture_train/small"] == "imported"


def test_what_a_killed_import_had_moved_is_kept_by_the_next(packed, project):
    folder = finish(project, "12_fixture_train", rate=0.125)
    (folder.parent / ".small-k1ll3d__" / "made").mkdir(parents=True)
    folder.rename(folder.parent / ".small-k1ll3d__" / "made" / "superseded")
    archive.unpack(packed, force=True)
    assert (folder / "superseded" / "checkpoint.pt").exists()
    assert sorted(os.listdir(folder.parent)) == ["small", "small-seed1"]


def test_a_run_keeps_its_place_if_its_successor_cannot_be_written(packed, project, monkeypatch):
    folder = finish(project, "12_fixture_train", rate=0.125)
    before = contents(folder)
    rename = archive.Path.rename

    def full(path, target):
        if path.name == "made":
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(archive.Path, "rename", full)
    with pytest.raises(OSError, match="No space"):
        archive.unpack(packed, force=True)
    assert contents(folder) == before


def test_runs_of_other_code_are_imported_and_it_is_said(packed, project):
    empty(project)
    project.add("collects", "13_fixture_results")
    found = archive.unpack(packed)
    assert found["13_fixture_results/small"] == "imported; made with other code"
    assert found["12_fixture_train/small"] == "imported"
    assert not done(plan(project.folder / "params" / "13_fixture_results" / "small.yaml"))


def test_runs_of_a_notebook_that_cannot_be_read_go_out_and_come_in(packed, project, tmp_path):
    source = project.folder / "notebooks" / "13_fixture_results.ipynb"
    source.write_text(source.read_text().replace("print(", "print(("))
    said = archive.pack(["*"], tmp_path / "x.zip")
    assert said[1].startswith("13_fixture_results/small was made with other code")
    empty(project)
    found = archive.unpack(tmp_path / "x.zip")
    assert found["13_fixture_results/small"] == "imported; made with other code"


def test_an_imported_run_is_exported_again(packed, project, tmp_path):
    empty(project)
    archive.unpack(packed)
    archive.pack(["*"], tmp_path / "again.zip")
    empty(project)
    assert len(archive.unpack(tmp_path / "again.zip")) == 3


# Edited, with a new manifest: a file's own checksum tells, unless that was made anew as well

META, PARAMS, TABLE = "ro-crate-metadata.json", "params/12_fixture_train/small.yaml", "table.json"


def sealed(forger, **values):
    """Set values in run.json, and seal it anew."""
    content = json.loads(forger.members[RUN + "run.json"]) | values
    forger.members[RUN + "run.json"] = record.sealed(content).encode()


def edited(name, old, new):
    """Replace bytes of a file of the run; run.json gives its new checksum, and is sealed anew."""

    def change(forger):
        forger.output(name, re.sub(old, new, forger.members[RUN + name]))
        sealed(forger)

    return change


def unsealed(forger):
    content = json.loads(forger.members[RUN + "run.json"])
    del content["sha256"]
    forger.members[RUN + "run.json"] = workbook.as_json(content).encode()


EDITED = {
    "run.json": (lambda f: f.edit(RUN + "run.json", seconds=2.0), r"small/run\.json was edited"),
    "run.json without a seal": (unsealed, r"small/run\.json was edited"),
    "a stamp": (edited(TABLE, rb'"torch": "', b'"torch": "9'), r"small/table\.json was edited"),
    "blanks of a stamp": (edited(TABLE, rb"\n ", b"\n  "), r"small/table\.json was edited"),
    "a stamp without digest": (edited(TABLE, rb' "digest".*\n', b""), r"table\.json was edited"),
    "settings too deep to be checked": (
        lambda f: f.edit(RUN + "run.json", settings=reduce(lambda x, _: {"x": x}, range(300), {})),
        "json file of runs/12_fixture_train/small is nested too deeply",
    ),
    "params": (
        lambda f: f.members.update({PARAMS: b"rate: 0.125\n"}),
        rf"{META} gives another checksum than {PARAMS} has",
    ),
    "run.json and its seal": (lambda f: sealed(f, seconds=2.0), r"checksum than runs/.*/run\.json"),
    "metadata of no list": (lambda f: f.edit(META, **{"@graph": 5}), f"{META} gives another"),
    "metadata of numbers": (lambda f: f.edit(META, **{"@graph": [5, {"@id": 5}]}), f"{META} gives"),
}


@pytest.mark.parametrize(("change", "reason"), EDITED.values(), ids=EDITED)
def test_an_archive_with_an_edited_file_is_refused(packed, project, tmp_path, change, reason):
    empty(project)
    forger = Forger(packed)
    change(forger)
    forger.write(tmp_path / "x.zip")
    refused(project, tmp_path / "x.zip", reason)


# Commands


def test_the_commands_say_in_lines_what_they_did(packed, project, tmp_path):
    code, out, _ = osnb("export", "12*", "--out", tmp_path / "x.zip")
    assert (code, out) == (0, f"{tmp_path / 'x.zip'}: 2 runs, 25 files\n")
    refusals.refused("export", "12*", "--out", tmp_path / "x.zip")
    empty(project)
    project.add("collects", "12_fixture_train")
    code, out, _ = osnb("import", tmp_path / "x.zip")
    assert code == 0
    assert out.count("imported; made with other code") == 2
    assert "results notebooks read" in out


def test_a_file_that_is_missing_or_no_zip_is_one_sentence(tmp_path, project):
    (tmp_path / "x.zip").write_text("hello")
    assert "x.zip is no whole zip file" in refusals.refused("import", tmp_path / "x.zip")
    assert "absent.zip" in refusals.refused("import", tmp_path / "absent.zip")


def test_a_run_without_an_executed_notebook_is_refused_by_name(packed, tmp_path):
    folder = workbook.out() / "runs" / "12_fixture_train" / "small"
    found = record.read(folder)
    (folder / "executed.ipynb").unlink()
    record.write(folder, found | {"files": {}})  # as osnb predict leaves one
    with pytest.raises(ValueError, match="12_fixture_train/small has no executed notebook"):
        archive.pack(["12_fixture_train/small"], tmp_path / "new.zip")
    assert not (tmp_path / "new.zip").exists()
