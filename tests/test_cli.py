"""The command line: one sentence and an exit code for every end, one line for every run."""

import errno
import json
import os
import signal
import time
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from osnb.base import workbook
from osnb.book import cli, follows, record, run
from osnb.book.cli import app, make
from osnb.book.cli.look import UNHELD


def osnb(*words):
    """(exit code, what was printed, what was complained of) of `osnb WORDS`."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def works(project):
    """The params file of a notebook that works."""
    project.add("works", "00_works")
    return project.write("00_works", "run: small\n")


@pytest.fixture
def fails():
    """Names of runs that fail where they would have been executed."""
    return set()


@pytest.fixture
def executed(monkeypatch, fails):
    """The plans that would have been executed, in order; nothing is, and others end well."""
    plans = []

    def execute(plan, *, limit):
        plans.append(str(plan))
        end = {"state": "done", "seconds": 1.0, "unpublished": []}
        failed = {"state": "failed", "error": {"name": "KeyError", "value": "'x'", "cell": 4}}
        return end | (failed if plan.run in fails else {})

    monkeypatch.setattr(run.execution, "execute", execute)
    return plans


# Refusals


def test_help_names_every_command():
    code, out, _ = osnb("--help")
    assert code == 0
    assert {*typer.main.get_command(app).commands} <= {
        line.strip().split(" ")[0] for line in out.splitlines()
    }


@pytest.mark.parametrize(
    ("text", "words", "reason"),
    [
        ("", (), "is empty"),
        ("run: small\n", ("-p", "seed=one"), "got 'one'"),
        ("run: small\n", ("-p", "rate=1e-3"), "write 1.0e-3"),
        ("run: small\n", ("-p", "seed"), "-p needs NAME=VALUE, such as seed=3; got 'seed'"),
        ("run: small\n", ("-p", "seed=[1"), "needs a value that yaml can read"),
        ("run: small\n", ("-p", "seed=" + "[" * 3000), "needs a value that yaml can read"),
        ("run: small\n", ("-p", "seed=1", "-p", "seed=2"), "-p seed is given twice"),
        ("run: small\n", ("-p", "size=big"), "is not one of: mini, tiny, paper"),
        ("run: small\n", ("--dry-run", "--json", "-"), "--dry-run makes none"),
        ("run: small\n", ("",), "need a params file, a folder of them or a glob; got an empty"),
    ],
)
def test_bad_input_exits_with_2_and_one_sentence(works, executed, text, words, reason):
    works.write_text(text)
    code, out, err = osnb("run", works, *words)
    assert (code, out) == (2, "")
    assert reason in err
    assert err.startswith("osnb: ")
    assert err.count("\n") == 1
    assert executed == []


def test_two_files_of_one_name_and_other_values_are_refused_by_their_names(works, tmp_path):
    files = [tmp_path / letter / "00_works" / "same.yaml" for letter in "AB"]
    for seed, file in enumerate(files):
        file.parent.mkdir(parents=True)
        file.write_text(f"run: same\nseed: {seed}\n")
    code, out, err = osnb("run", *(file.parent.parent for file in files))
    assert (code, out) == (2, "")
    same = f"{files[0]} and {files[1]} would both make 00_works/same: rename one of them"
    assert err == f"osnb: {same}\n"
    files[1].write_text("run: same\nseed: 0\n")
    assert osnb("run", *files, "--dry-run")[1].splitlines()[-1].startswith("1 runs, 1 would run")


def test_a_json_file_that_cannot_be_written_is_refused_before_the_first_run(works, executed):
    pipe = works.with_name("pipe")
    os.mkfifo(pipe)
    none, read = "is no regular file", "is read by this command"
    targets = {works / "ends.json": "cannot be written: ", works: read}
    for target, reason in (targets | dict.fromkeys((works.parent, pipe), none)).items():
        code, out, err = osnb("run", works, "--json", target)
        assert (code, out) == (2, "")
        assert f"{target} {reason}" in err
        assert err.count("\n") == 1
    assert executed == []
    assert pipe.is_fifo()


def test_one_bad_file_among_several_starts_none(works, project, executed):
    assert osnb("run", works, project.write("00_works", "", run="empty"))[0] == 2
    assert executed == []


ESCAPE = "\x1b[2J\x1b]0;title\x07"


def test_the_terminal_obeys_no_error_name_or_column(project, works):
    source = project.folder / "notebooks" / f"{works.parent.name}.ipynb"
    cell = f"raise ValueError({ESCAPE!r})"
    content = json.loads(source.read_text())
    content["cells"][-1] |= {"cell_type": "code", "source": cell, "outputs": []}
    source.write_text(json.dumps(content))
    made = osnb("run", works)
    assert "\\x1b[2J" in made[1]
    table = project.folder / "x.csv"
    table.write_text(f"label,pred,{ESCAPE}[/red]\n" + "0,0,1\n1,1,2\n-2,0,0\n" * 9)
    told = osnb("score", table, "--resamples", 10)
    for _, *texts in (made, told, osnb("show", ESCAPE)):
        assert "\x1b" not in "".join(texts)
        assert "\x07" not in "".join(texts)
    assert "[/red]" in told[1]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("reproduce", "--size", "huge"), "'huge' is not one of: mini, tiny, paper"),
        (("reproduce", "--paper", "none2020"), "'none2020' is not one of: palechor2023, vaze2022"),
        (("reproduce", "--size", "own"), "'own' is not one of: mini, tiny, paper\n"),
        (("reproduce", "--size", "tiny"), "no params file has size: tiny"),
        (("import", "."), "Is a directory"),
        (("show", "absent"), "no run is called 'absent'; there are: none"),
        (("protocol", "p9"), "p1, p2, p3, quickdraw_cifar10"),
        (("protocol", "cifar10", "--split", "7"), "7"),
        (("protocol", "p2", "--split", "1"), "there is one split of p2, 0; got 1"),
        (("protocol", "p1", "--reader", "x"), "--reader goes with --images"),
        (("protocol", "p1", "--out", "x"), "need both --images DIR and --out DIR"),
        (("protocol", "p1", "--out", "x", "--images", "absent"), "absent"),
    ],
)
def test_unknown_names_are_refused_with_the_valid_ones(works, words, reason):
    code, _, err = osnb(*words)
    assert code == 2
    assert reason in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (ImportError("no timm"), 1, "no timm"),
        (ValueError("need 3; got 2"), 2, "need 3; got 2"),
        (KeyError("'x' is not one of: y"), 2, "'x' is not one of: y"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_errors_are_sentences_with_an_exit_code(works, monkeypatch, error, code, sentence):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr(make, "start", fails)
    got, _, err = osnb("run", works)
    assert got == code
    assert f"osnb: {sentence}" in err
    assert "Traceback" not in err


FULL = OSError(errno.ENOSPC, "No space left on device", "runs/x")


@pytest.mark.parametrize("error", [FULL, ValueError("No space left on device: runs/x")])
def test_a_full_disk_or_a_bad_file_fails_the_run_and_the_next_is_tried(works, monkeypatch, error):
    def fails(plan, *, limit):
        raise error

    monkeypatch.setattr(run.execution, "execute", fails)
    code, out, _ = osnb("run", works, "--seeds", 2)
    assert code == 1
    assert out.count("Error: No space left on device: runs/x") == 2
    assert "0 done, 0 skipped, 2 failed" in out


def test_the_traceback_is_shown_to_those_who_ask(works, monkeypatch):
    works.write_text("")
    monkeypatch.setenv("OSNB_DEBUG", "1")
    assert isinstance(CliRunner().invoke(app, ["run", str(works)]).exception, run.Refused)


# Runs


def test_overrides_and_seeds_make_several_runs_of_one_file(works, executed):
    code, out, _ = osnb("run", works, "-p", "word=red", "-p", "rate=1", "--seeds", 3)
    assert code == 0
    base = "00_works/small-rate1.0-wordred"
    names = ["00_works/small-seed1-rate1.0-wordred", "00_works/small-seed2-rate1.0-wordred"]
    assert executed == [base, *names]
    assert "3 done, 0 skipped, 0 failed" in out


def test_seeds_count_up_from_the_one_that_is_given(works, executed):
    osnb("run", works, "-p", "seed=5", "--seeds", 2)
    assert executed == ["00_works/small-seed5", "00_works/small-seed6"]


def test_a_run_is_made_once_then_skipped_with_its_figures_given_back_then_forced(works, project):
    figure = project.folder / "figures" / "00_works" / "small" / "figure.svg"
    for words, state in (((), "done"), ((), "skipped, up to date"), (("--force",), "done")):
        figure.unlink(missing_ok=True)
        code, out, _ = osnb("run", works, *words)
        assert figure.is_file()
        assert code == 0
        assert out.startswith("[1/1] 00_works/small ")
        assert state in out
    assert str(project.folder / "figures") in out


def test_data_lie_where_the_command_is_called(works, executed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OSNB_DATA", "sets")
    assert osnb("run", works)[0] == 0
    assert executed
    assert os.environ["OSNB_DATA"] == str(tmp_path / "sets")


def test_a_failed_run_is_told_with_its_cell_and_its_notebook(project):
    project.add("raises_in_third_cell", "00_raises")
    code, out, err = osnb("run", project.write("00_raises", "run: small\n"))
    assert code == 1
    assert "cell In [3], KeyError: 'absent'" in out
    assert str(project.folder / "runs" / "00_raises" / "small" / "executed.ipynb") in out
    assert "0 done, 0 skipped, 1 failed" in out
    assert "Traceback" not in out + err


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stopped_command_says_interrupted_and_so_does_its_run(project, sign):
    project.add("waits", "90_waits")
    process = project.start("run", project.write("90_waits", "run: small\n"), "--json", "ends.json")
    directory = project.folder / "runs" / "90_waits" / "small"
    begun = directory / "begun.txt"
    while not (begun.is_file() and begun.read_text()):
        assert process.poll() is None
        time.sleep(0.05)
    kernel = psutil.Process(int(begun.read_text()))
    family = [kernel, kernel.parent()]
    process.send_signal(sign)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert psutil.wait_procs(family, timeout=600)[1] == []
    assert err.endswith("osnb: interrupted; the same command continues\n")
    found = json.loads((directory / "run.json").read_text())
    assert found["state"] == "interrupted"
    assert found["finished"]
    told = json.loads((project.folder / "ends.json").read_text())
    assert (told["interrupted"], told["done"]) == (1, 0)
    assert [(x["run"], x["state"]) for x in told["runs"]] == [("small", "interrupted")]


# Reproduce


@pytest.fixture
def paper(project):
    """A project with a tour, a training notebook with two runs, and one that collects."""
    project.add("works", "00_tour")
    project.write("00_tour", "run: mini\n", run="mini")
    project.add("trains", "10_fixture_train")
    for name in ("mini_a", "mini_b"):
        project.write("10_fixture_train", f"run: {name}\n", run=name)
    project.write("10_fixture_train", "run: tiny_a\nsize: tiny\n", run="tiny_a")
    project.add("collects", "11_results")
    project.write("11_results", "run: mini\n", run="mini")
    project.add("works", "20_other")
    project.write("20_other", "run: mini\n", run="mini")
    return project


TRAIN = ["10_fixture_train/mini_a", "10_fixture_train/mini_b"]


def test_what_trains_comes_before_what_reads(paper, executed):
    code, out, _ = osnb("reproduce")
    assert code == 0
    assert executed == [*TRAIN, "00_tour/mini", "20_other/mini", "11_results/mini"]
    assert out.splitlines()[-1].startswith("5 done, 0 skipped, 0 failed in ")


def test_one_paper_is_its_own_notebooks_and_the_tour(paper, executed):
    osnb("reproduce", "--paper", "palechor2023")
    assert executed == [*TRAIN, "00_tour/mini", "11_results/mini"]


def test_a_size_is_what_the_files_say_and_not_their_names(paper, executed):
    paper.write("10_fixture_train", "run: mini_c\nsize: tiny\n", run="mini_c")
    osnb("reproduce", "--size", "tiny")
    assert executed == ["10_fixture_train/mini_c", "10_fixture_train/tiny_a"]


def test_a_dry_run_starts_nothing_and_says_what_it_would(paper, executed):
    code, out, _ = osnb("reproduce", "--dry-run")
    assert (code, executed) == (0, [])
    assert [line.split()[:3] for line in out.splitlines()][:2] == [
        [name, "would", "run"] for name in TRAIN
    ]


def test_other_seeds_are_made_where_asked_for_and_else_counted(paper, executed):
    asked = "10_fixture_train/mini_?: {seed: 3}\n20_other/mini: {seed: 2}\n10_*/tiny_*: {seed: 9}\n"
    (paper.folder / "params" / "repeats.yaml").write_text(asked)
    said = "of other seeds or splits or for the cross table alone, are read from figures/"
    line = f"more, {said}: see --repeats"
    assert f"5 {line}\n" in osnb("reproduce")[2]  # what is printed may be json
    first = executed.copy()
    assert len(first) == 5
    assert f"4 {line}\n" in osnb("reproduce", "--paper", "palechor2023")[2]
    executed.clear()
    assert line not in osnb("reproduce", "--repeats")[2]
    more = {f"{name}-seed{seed}" for name in TRAIN for seed in (1, 2)}
    assert {*executed} == {*first} | more | {"20_other/mini-seed1"}
    assert len(executed) == 10
    assert {*executed[:6]} == {*TRAIN} | more  # what trains comes first


def test_a_run_that_is_asked_for_later_is_made_with_the_other_seeds_alone(paper, executed):
    (paper.folder / "params" / "repeats.yaml").write_text(f"{TRAIN[0]}: later\n")
    said = "1 more, of other seeds or splits or for the cross table alone, are read"
    assert said in osnb("reproduce")[2]
    first = executed.copy()
    assert TRAIN[0] not in first
    assert len(first) == 4
    executed.clear()
    osnb("reproduce", "--repeats")
    assert {*executed} == {*first, TRAIN[0]}


def test_one_bad_file_of_any_size_starts_nothing(paper, executed):
    paper.write("10_fixture_train", "run: tiny_b\nsise: tiny\n", run="tiny_b")
    code, _, err = osnb("reproduce")
    assert (code, executed) == (2, [])
    assert "did you mean 'size'" in err


def test_after_a_failure_the_others_run_but_not_what_reads_it(paper, executed, fails):
    fails.add("mini_a")
    code, out, _ = osnb("reproduce")
    assert code == 1
    assert executed == [*TRAIN, "00_tour/mini", "20_other/mini"]
    assert "11_results/mini" in out
    assert "not run: it reads 10_fixture_train/mini_a, which failed" in out
    assert "3 done, 0 skipped, 2 failed" in out


@pytest.mark.usefixtures("executed")
def test_what_reads_one_size_does_not_wait_for_a_failed_training_of_another(paper, fails):
    fails.add("tiny_a")
    out = osnb("run", *(paper.folder / "params").glob("1*/*.yaml"))[1]
    assert "not run" not in out
    assert "3 done, 0 skipped, 1 failed" in out


def test_reproduce_names_the_command_that_scores_released_weights_and_does_not_train_them():
    _, out, err = osnb("reproduce", "--paper", "vaze2022", "--size", "paper", "--dry-run")
    name = "21_vaze_train/paper_tinyimagenet_released"
    assert f"{name} trains nothing: osnb predict --benchmark params/{name}.yaml\n" in err
    assert f"{name} " not in out
    assert "21_vaze_train/paper_tinyimagenet_softmax" in out


def test_a_notebook_across_papers_waits_for_the_training_of_each(paper, executed, fails):
    fails.add("mini_a")
    paper.add("collects", "40_across")
    paper.write("40_across", "run: mini\n", run="mini")
    across = run.plan(paper.folder / "params" / "40_across" / "mini.yaml")
    assert across.reads == "*_train"
    assert run.plan(paper.folder / "params" / "11_results" / "mini.yaml").reads == "1?_*_train"
    _, out, _ = osnb("reproduce")
    assert "40_across/mini" not in executed
    assert out.count("not run: it reads 10_fixture_train/mini_a, which failed") == 2
    assert "40_across" not in osnb("reproduce", "--paper", "palechor2023")[1]


def test_a_second_reproduction_skips_everything_and_changes_nothing(packed, project):
    (project.folder / "params" / "13_fixture_results" / "small.yaml").unlink()  # never made here
    files = {p: p.stat().st_mtime_ns for p in project.folder.rglob("*") if p.is_file()}
    code, out, _ = osnb("reproduce")
    assert code == 0
    assert "0 done, 1 skipped, 0 failed" in out
    assert files == {p: p.stat().st_mtime_ns for p in files}


# Status, show, outputs


def test_status_and_show_tell_what_run_json_knows(works):
    assert "no run in" in osnb("status")[1]
    osnb("run", works)
    row = osnb("status")[1].splitlines()[-1].split()
    assert row[:3] == ["00_works", "small", "done"]
    told = json.loads(osnb("status", "--json", "-")[1])
    assert told["counts"] == {"done": 1, "failed": 0, "interrupted": 0, "queued": 0, "running": 0}
    assert [(x["notebook"], x["run"], x["state"]) for x in told["runs"]] == [tuple(row[:3])]
    for name in ("small", "00_works/small"):
        (found,) = json.loads(osnb("show", name, "--json", "-")[1]).values()
        assert found["parameters"]["word"] == "blue"
    shown = osnb("show", "small")[1]
    for part in ("00_works/small: done in", "attempt 1", "on cpu of", "word  'blue'", "table.csv"):
        assert part in shown
    assert "there are: 00_works/small" in osnb("show", "smal")[2]


def test_a_seed_below_zero_is_refused_by_its_name():
    code, _, err = osnb("score", "x.csv", "--seed", "-1")
    assert code == 2
    assert "Invalid value for '--seed'" in err


def test_json_in_a_file_is_written_beside_what_is_printed(works, tmp_path):
    osnb("run", works)
    (tmp_path / "s.csv").write_text("label,pred,s\n0,0,3\n1,0,2\n-2,1,1\n")
    for words in (("status",), ("show", "small"), ("score", tmp_path / "s.csv")):
        file = tmp_path / f"{words[0]}.json"
        assert osnb(*words, "--json", file) == osnb(*words)
        assert osnb(*words)[1]
        assert json.loads(file.read_text()) == json.loads(osnb(*words, "--json", "-")[1])


def test_a_terminal_follows_runs_unless_json_goes_to_a_file(works, tmp_path, monkeypatch):
    osnb("run", works)
    followed = []
    monkeypatch.setattr(Console, "is_terminal", True)
    monkeypatch.setattr("rich.live.Live", lambda *_, **__: nullcontext(followed.append(1)))
    for words, follows_them in (((), 1), (("--once",), 0), (("--json", tmp_path / "s.json"), 0)):
        followed.clear()
        assert osnb("status", *words)[0] == 0
        assert len(followed) == follows_them


def test_a_run_that_began_no_kernel_names_no_notebook_of_an_earlier_one(works, monkeypatch):
    osnb("run", works)

    def fails(plan, *, limit):
        raise FULL

    monkeypatch.setattr(run.execution, "execute", fails)
    out = osnb("run", works, "--force")[1]
    assert "No space left" in out
    assert "executed.ipynb" not in out


def test_show_says_where_the_results_are_of_a_run_that_was_made_elsewhere(works, project):
    folder = project.folder / "figures" / "12_trained" / "far"
    folder.mkdir(parents=True)
    for name in ("far", "12_trained/far"):
        code, _, err = osnb("show", name)
        assert (code, err.startswith(f"osnb: {name!r} was not run here; {folder} has its")) == (
            2,
            True,
        )


@pytest.fixture
def going(works, project):
    """A run.json that says: running, by this process, for an hour; and its folder."""
    directory = run.plan(works).directory
    begun = (datetime.now(UTC) - timedelta(hours=1)).isoformat(timespec="seconds")
    content = {"notebook": "00_works", "run": "small", "parameters": {}, "started": begun}
    content |= record.owner() | {"state": "running"}
    record.write(directory, content)
    return directory, content


def test_show_says_whose_scores_a_results_notebook_has_read(going):
    directory, content = going
    record.write(directory, content | {"inputs": {"mini_b": "12", "mini_a": "34"}})
    assert "\nreads the scores of mini_a, mini_b\n" in osnb("show", "small")[1]


def test_status_of_a_training_run_counts_the_epochs_of_this_attempt(going):
    directory, content = going
    record.write(directory, content | {"settings": {"epochs": 30}, "resumed": 10})
    rows = pa.table({"epoch": [14, 15], "loss": [0.5, 0.25], "best": [0.1, 0.2]})
    pq.write_table(rows, directory / "history.parquet")
    (told,) = json.loads(osnb("status", "--json", "-")[1])["runs"]
    assert told["share"] == 0.5
    assert 3 * 3600 <= told["left"] < 3 * 3660  # 5 of 20 epochs took an hour
    assert told["measures"] == {"epoch": 15, "loss": 0.25, "best": 0.2}
    shown = osnb("status")[1]
    for part in ("1 running", "50 %", "3:0", "loss 0.250, best 0.200"):
        assert part in shown


def test_status_of_a_training_run_without_an_epoch_does_not_guess(going):
    directory, content = going
    record.write(directory, content | {"settings": {"epochs": 30}})
    (told,) = json.loads(osnb("status", "--json", "-")[1])["runs"]
    assert told["share"] == 0
    assert "left" not in told


def test_in_a_terminal_status_follows_runs_until_they_end(going, monkeypatch):
    directory, content = going
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes the output for a terminal
    naps = []

    def sleep(seconds):
        naps.append(seconds)
        if len(naps) == 3:
            record.write(directory, content | {"state": "done", "seconds": 61.0})

    monkeypatch.setattr(time, "sleep", sleep)
    other = {"notebook": "00_works", "run": "other", "state": "queued", "host": "gone"}
    record.write(directory.with_name("other"), content | other)
    shown = osnb("status")[1]
    assert naps == [1, 1, 1]
    assert shown.index("1 running") < shown.index("1 done")
    record.write(directory, content)
    osnb("status", "--once")
    assert len(naps) == 3


def test_status_shows_what_is_not_done_of_many_runs(works, project):
    for number in range(70):
        content = {"notebook": "00_works", "run": f"r{number}", "state": "done", "parameters": {}}
        content |= record.owner() | ({"state": "failed"} if number == 7 else {})
        record.write(project.folder / "runs" / "00_works" / f"r{number}", content)
    shown = osnb("status")[1]
    assert "1 failed, 69 done" in shown
    assert "r7 " in shown
    assert "r8 " not in shown
    assert "69 more: osnb status --all" in shown
    assert "r8 " in osnb("status", "--all")[1]


def test_folders_and_globs_stand_for_their_files(works, project, executed):
    project.write("00_works", "run: other\n", run="other")
    folder = project.folder / "params" / "00_works"
    for words in ((folder,), (folder / "*.yaml",), (works, folder)):
        executed.clear()
        assert osnb("run", *words)[0] == 0
        assert sorted(executed) == ["00_works/other", "00_works/small"]
    (folder.parent / "of_no_notebook.yaml").write_text("jobs: 1\n")
    for parent in (folder.parent, f"{folder.parent}/"):
        executed.clear()
        assert osnb("run", parent)[0] == 0
        assert sorted(executed) == ["00_works/other", "00_works/small"]
    code, _, err = osnb("run", folder / "absent*.yaml")
    assert (code, err) == (2, f"osnb: no params file (*.yaml) is in {folder}/absent*.yaml\n")
    bracketed = project.folder / "mine[1]" / "00_works" / "small.yaml"
    bracketed.parent.mkdir(parents=True)
    assert osnb("run", works.rename(bracketed))[0] == 0


def test_how_every_run_ended_is_written_for_programs(works, project, tmp_path, monkeypatch):
    ends = {
        "small": {"state": "done", "unpublished": []},
        "bad": {"state": "failed", "error": {"name": "KeyError", "value": "'absent'", "cell": 3}},
    }
    monkeypatch.setattr(run.execution, "execute", lambda plan, *, limit: ends[plan.run])
    bad = project.write("00_works", "run: bad\n", run="bad")
    assert osnb("run", works, bad, "--json", tmp_path / "ends.json")[0] == 1
    told = json.loads((tmp_path / "ends.json").read_text())
    assert (told["done"], told["failed"], told["skipped"]) == (1, 1, 0)
    assert told["runs"][1]["reason"] == "KeyError: 'absent'"


def test_a_lock_that_cannot_be_written_fails_its_run_and_no_other(works, project, monkeypatch):
    first, lock = project.write("00_works", "run: a\n", run="a"), record.lock

    def closed(directory):
        if directory.name == "a":
            raise PermissionError(errno.EACCES, "is another user's")
        return lock(directory)

    monkeypatch.setattr(record, "lock", closed)
    code, out, _ = osnb("run", first, works)
    assert (code, "1 done, 0 skipped, 1 failed" in out) == (1, True)


def test_runs_that_never_began_are_written_for_programs_too(works, project, tmp_path, monkeypatch):
    first, file = project.write("00_works", "run: a\n", run="a"), tmp_path / "ends.json"
    seen = []

    def execute(plan, *, limit):
        seen.append(json.loads(file.read_text()))
        raise RuntimeError("all is lost")

    monkeypatch.setattr(run.execution, "execute", execute)
    with pytest.raises(RuntimeError):
        app(["run", str(first), str(works), "--json", str(file)], standalone_mode=False)
    for told in (*seen, json.loads(file.read_text())):
        assert [(x["run"], x["state"]) for x in told["runs"]] == [
            ("a", "not begun"),
            ("small", "not begun"),
        ]
        assert (told["not begun"], told["done"], told["failed"]) == (2, 0, 0)
    assert ("error" in seen[0], told["error"]) == (False, "RuntimeError: all is lost")
    assert "not begun" in " ".join(osnb("run", "--help")[1].split())


def test_runs_that_a_lost_scheduler_s_workers_make_or_made_have_begun(
    works, project, tmp_path, monkeypatch
):
    first, file = project.write("00_works", "run: a\n", run="a"), tmp_path / "ends.json"
    states = {"a": "running", "small": "done"}

    def execute(plan, *, limit):
        begun = {"started": record.now(), "notebook": "00_works"}
        monkeypatch.setattr(
            record, "read", lambda x: begun | {"run": x.name, "state": states[x.name]}
        )
        raise RuntimeError("the scheduler is gone")

    monkeypatch.setattr(run.execution, "execute", execute)
    with pytest.raises(RuntimeError):
        app(["run", str(first), str(works), "--json", str(file)], standalone_mode=False)
    told = json.loads(file.read_text())
    assert {x["run"]: x["state"] for x in told["runs"]} == states
    assert (told["running"], told["done"], told["not begun"]) == (1, 1, 0)


def test_a_plan_tells_what_it_took_before_and_guesses_the_rest(paper):
    osnb("run", paper.folder / "params" / "10_fixture_train" / "mini_a.yaml")
    directory = paper.folder / "runs" / "10_fixture_train" / "mini_a"
    record.write(directory, record.read(directory) | {"seconds": 90.0})
    lines = osnb("reproduce", "--dry-run")[1].splitlines()
    assert lines[0].split() == [TRAIN[0], "up", "to", "date", "about", "90", "s"]
    assert lines[1].split() == [TRAIN[1], "would", "run", "about", "90", "s"]
    sums = "about 90 s one after another, from earlier runs; 3 without an estimate"
    assert lines[-1] == f"5 runs, 4 would run: {sums}"
    (large,) = osnb("reproduce", "--dry-run", "--size", "tiny")[1].splitlines()[:1]
    assert large.split() == ["10_fixture_train/tiny_a", "would", "run", "no", "estimate"]


def test_a_guess_is_that_of_the_same_experiment_first_and_of_this_machine(paper):
    file = paper.folder / "params" / "10_fixture_train" / "mini_a.yaml"
    paper.write("10_fixture_train", "run: mini_b\nrate: 0.125\n", run="mini_b")
    for name, took, more in (
        ("mini_a", 90.0, {}),
        ("mini_b", 10.0, {"rate": 0.125}),
        ("mini_c", 1.0, {"rate": 0.25}),
        ("mini_d", 9000.0, {"rate": 0.25}),
    ):
        parameters = run.plan(file).parameters | {"run": name} | more
        content = {"notebook": "10_fixture_train", "run": name, "parameters": parameters}
        content |= record.owner() | {"state": "done", "seconds": took}
        content |= {"host": "elsewhere"} if name == "mini_d" else {}
        record.write(paper.folder / "runs" / "10_fixture_train" / name, content)
    assert "about 90 s" in osnb("run", file, "-p", "seed=4", "--dry-run")[1]
    assert "about 10 s" in osnb("run", file, "-p", "word=red", "--dry-run")[1]  # median, that size


def test_no_guess_is_made_from_a_run_that_went_on_after_an_interrupt(paper):
    file = paper.folder / "params" / "10_fixture_train" / "mini_a.yaml"
    osnb("run", file)
    directory = paper.folder / "runs" / "10_fixture_train" / "mini_a"
    whole = record.read(directory) | {"seconds": 90.0}
    for more, said in (({}, "about 90 s"), ({"resumed": 11}, "no estimate")):
        record.write(directory, whole | more)
        assert said in osnb("run", file, "-p", "seed=4", "--dry-run")[1]


def test_a_guess_grows_with_the_epochs(tmp_path, monkeypatch):
    monkeypatch.setenv("OSNB_OUT", str(tmp_path))
    file = workbook.root() / "params" / "12_palechor_train" / "mini_p2_softmax.yaml"
    plan = run.plan(file, {"epochs": 4})
    end = plan.known | plan.follows | record.owner() | {"state": "done", "seconds": 60.0}
    record.write(plan.directory, end)
    for epochs, seconds in ((4, 60), (20, 300)):
        assert f"about {seconds} s" in osnb("run", file, "-p", f"epochs={epochs}", "--dry-run")[1]


def test_another_network_has_no_guess_from_the_usual_one(tmp_path, monkeypatch):
    monkeypatch.setenv("OSNB_OUT", str(tmp_path))
    file = workbook.root() / "params" / "12_palechor_train" / "mini_p2_softmax.yaml"
    plan = run.plan(file)
    end = plan.known | plan.follows | record.owner() | {"state": "done", "seconds": 60.0}
    record.write(plan.directory, end)
    for word, said in (("method=entropic", "about 60 s"), ("network=resnet9", "no estimate")):
        assert said in osnb("run", file, "-p", word, "--dry-run")[1]


def test_it_is_said_that_nobody_has_held_the_code_against_the_goldens(works, monkeypatch):
    assert osnb("run", works, "--dry-run")[2] == ""
    monkeypatch.setattr(follows, "hold", lambda: False)
    for words in (("run", works, "--dry-run"), ("verify",)):
        assert osnb(*words)[2] == f"osnb: {UNHELD}\n"


def test_a_dry_run_counts_the_runs_that_lack_their_data(project, monkeypatch):
    source = project.add("works", "00_data")
    lines = 'word: str = \\"blue\\"', 'dataset: str = \\"ilsvrc\\"\\ndata: str = \\"\\"'
    source.write_text(source.read_text().replace(*lines))
    monkeypatch.setenv("OSNB_DATA", str(project.folder / "images"))
    code, out, _ = osnb("run", project.write("00_data", "run: small\n"), "--seeds", 2, "--dry-run")
    assert code == 0
    needs = "the reader ilsvrc needs train or ILSVRC/Data/CLS-LOC/train in "
    assert f"2 of them would fail without their data: {needs}" in out.splitlines()[-1]


# Lists


def test_a_protocol_is_printed_as_csv():
    code, out, _ = osnb("protocol", "p1")
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "wnid,name,role,superclass_wnid,superclass_name"
    assert len(lines) == 1 + 116 + 67 + 166
    assert lines[1].split(",")[2:] == ["known", "n02084071", "dog"]


def test_file_lists_have_path_and_label_and_no_header(tmp_path):
    from osnb import protocols

    classes = protocols.p1()
    chosen = [*classes[classes["role"] == "known"]["wnid"][:2]]
    chosen += [classes[classes["role"] == role]["wnid"].iloc[0] for role in ("negative", "unknown")]
    for part, count in (("train", 10), ("val", 2)):
        for wnid in chosen:
            folder = tmp_path / "images" / part / wnid
            folder.mkdir(parents=True)
            for number in range(count):
                (folder / f"{wnid}_{number}.JPEG").touch()
    code, out, _ = osnb("protocol", "p1", "--images", tmp_path / "images", "--out", tmp_path)
    assert code == 0
    assert "P1, restricted to 4 of the" in out
    rows = {
        split: [line.split(",") for line in (tmp_path / f"p1_{split}.csv").read_text().splitlines()]
        for split in ("train", "val", "test")
    }
    assert {split: len(lines) for split, lines in rows.items()} == {
        "train": 24,
        "val": 6,
        "test": 8,
    }
    labels = dict(zip(sorted(chosen[:2]), "01", strict=True)) | {chosen[2]: "-1", chosen[3]: "-2"}
    for split, lines in rows.items():
        for path, label in lines:
            part, wnid, _ = path.split("/")
            assert part == ("val" if split == "test" else "train")
            assert label == labels[wnid]


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("torch", "train"),
        ("myst_nb", "report"),
        ("nbgrader.x", "teach"),
        ("numpy", ""),
        ("tor", ""),
    ],
)
def test_the_extra_that_brings_a_module_is_known(module, extra):
    assert cli.extra_with(module) == extra


def test_training_without_torch_is_refused_before_a_kernel_starts(monkeypatch):
    monkeypatch.setattr(cli.make, "find_spec", lambda name: None)
    params = workbook.root() / "params" / "12_palechor_train" / "mini_p2_softmax.yaml"
    ended = CliRunner().invoke(cli.app, ["run", str(params), "-p", "epochs=1"])
    assert ended.exit_code == 1
    assert "pip install 'osnb[train]'" in ended.output
    assert not (workbook.out() / "runs" / "12_palechor_train" / "mini_p2_softmax-epochs1").exists()


@pytest.mark.parametrize(
    ("said", "folder", "written"), [("", "there", "."), ("out", ".", "."), ("out", "there", "out")]
)
def test_ones_own_files_in_the_working_folder_are_written_beside(
    said, folder, written, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OSNB_OUT", said and str(tmp_path / said))
    file = tmp_path / folder / "21_vaze_train" / "mine.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("run: mine\nsize: own\n")
    make.at_home([file])
    assert workbook.out() == (tmp_path / written).resolve()
