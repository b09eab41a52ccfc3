"""A params file is held against its notebook before a kernel starts; then it is executed once."""

import asyncio
import errno
import json
import os
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from osnb.base import stamps, workbook
from osnb.book import follows, record, run, runs
from osnb.book.run import kernels
from osnb.datasets import photographs
from tests.tools import outputs


@pytest.fixture
def works(project):
    """The params file of a notebook that works."""
    project.add("works", "90_works")
    return project.write("90_works", "# any CPU, a second\nrun: small\nrate: 0.25\n")


@pytest.fixture
def no_kernel(monkeypatch):
    """Fails the test if a kernel would be started."""

    def started(*args, **kwargs):
        raise AssertionError("a kernel was started")

    monkeypatch.setattr(run.execution, "_papermill", started)


# Plans


def test_a_plan_has_every_parameter_and_injects_those_of_the_file(works):
    plan = run.plan(works)
    assert str(plan) == "90_works/small"
    assert plan.given == {"run": "small", "rate": 0.25}
    expected = {"run": "small", "size": "mini", "seed": 0, "rate": 0.25, "word": "blue"}
    assert plan.parameters == expected


def test_overrides_join_the_name_as_the_notebook_itself_would_say(works):
    plan = run.plan(works, {"seed": 3, "rate": 1})
    assert plan.run == "small-seed3-rate1.0"
    assert plan.given == {"run": plan.run, "rate": 1.0, "seed": 3}
    assert runs.begin("90_works", plan.parameters).name == plan.run
    as_papermill_would = plan.parameters | {"run": "small"}
    assert runs.begin("90_works", as_papermill_would).name == plan.run


def test_an_override_that_changes_nothing_leaves_the_name(works):
    assert run.plan(works, {"seed": 0}).run == "small"


def test_a_copy_elsewhere_is_told_from_the_original_by_what_it_changes(works, tmp_path):
    copy = tmp_path / "90_works" / "small.yaml"
    copy.parent.mkdir()
    copy.write_text("run: small\nrate: 0.125\n")
    assert run.plan(copy).run == "small-rate0.125"
    copy.rename(copy.with_name("mine.yaml")).write_text("run: mine\nrate: 0.125\n")
    plan = run.plan(copy.with_name("mine.yaml"), {"seed": 1})
    assert plan.run == "mine-seed1"
    assert runs.begin("90_works", plan.parameters).name == plan.run


REFUSED = {
    "misspelt": ("run: small\nrat: 1.0\n", "unknown parameter 'rat'.*did you mean 'rate'.*seed"),
    "far off": ("run: small\nzzz: 1\n", "unknown parameter 'zzz'.*valid: run, size, seed, rate"),
    "text for a number": ("run: small\nseed: three\n", "'seed' of 90_works is int.*got 'three'"),
    "1e-3": ("run: small\nrate: 1e-3\n", "write 1.0e-3"),
    "float for int": ("run: small\nseed: 1.5\n", "'seed' of 90_works is int.*got 1.5"),
    "bool for int": ("run: small\nseed: true\n", "got True"),
    "nothing": ("run: small\nword:\n", "'word' of 90_works is str.*got None"),
    "empty": ("", "is empty"),
    "comment": ("# nothing\n", "is empty"),
    "list": ("- run\n- small\n", "needs lines of 'name: value'; it holds a list"),
    "twice": ("run: small\nseed: 1\nrate: 0.1\nseed: 2\n", "line 4: 'seed' is given twice"),
    "no yaml": ("run: small\nseed: [1\n", "no valid yaml in line 3"),
    "control character": ("run: \x01\n", "no valid yaml"),
    "object": ("run: small\nword: !!python/name:os.system\n", "line 2: could not determine"),
    "other name": ("run: other\n", "needs the line 'run: small'.*got 'other'"),
    "no name": ("seed: 1\n", "needs the line 'run: small'.*got None"),
    "number as key": ("run: small\n3: 4\n", "unknown parameter '3'"),
    "list as key": ("run: small\n? [a, b]\n: 2\n", "line 2: a name must be one word"),
    "too deep": ("run: small\nrate: " + "[" * 3000, "is nested too deeply|no valid yaml"),
    "brackets": ("run: small\nword: " + "[" * 20_000 + "]" * 20_000, "is nested too deeply"),
    "aliases": (
        "a: &a [1, 1]\nb: &b [*a, *a]\nrun: small\nword: [*b, *b]\n",
        r"uses \*a, a name for other lines, in line 2",
    ),
    "no number": ("run: small\nrate: .nan\n", "'rate' of 90_works needs a finite number; got nan"),
    "infinite": ("run: small\nrate: -.inf\n", "needs a finite number; got -inf"),
    "number for a text": ("run: small\nword: 2\n", "got 2 \\(a text that .* needs quotes"),
    "a number without end": (f"run: small\nseed: {'9' * 5000}\n", "cannot be read.*4300 digits"),
    "no date": ("run: small\nword: 2001-99-99\n", "cannot be read.*month must be"),
    "no size": ("run: small\nsize: large\n", "size 'large' .* is not one of: mini, tiny, paper"),
}


@pytest.mark.parametrize(("text", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_bad_params_file_is_refused_in_a_sentence(works, no_kernel, text, reason):
    works.write_text(text)
    with pytest.raises(run.Refused, match=reason) as refused:
        run.plan(works)
    assert "\n" not in str(refused.value)
    assert str(works) in str(refused.value)


def test_bytes_that_are_no_text_are_refused(works):
    works.write_bytes(b"run: small\nword: \xff\n")
    with pytest.raises(run.Refused, match="cannot be read"):
        run.plan(works)


def test_a_missing_file_and_a_folder_are_refused(works):
    with pytest.raises(run.Refused, match="cannot be read"):
        run.plan(works.parent)
    with pytest.raises(run.Refused, match=f"there is no params file .*; the nearest: {works.stem}"):
        run.plan(works.with_name(f"{works.stem}s.yaml"))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": 5}', '{"cells": [{}]}', "[" * 100_000])
def test_a_notebook_that_is_none_is_named(works, project, text):
    file = project.folder / "notebooks" / f"{works.parent.name}.ipynb"
    file.write_text(text)
    with pytest.raises(run.Refused, match=r"\.ipynb is no whole notebook"):
        run.plan(works)


def test_a_pipe_in_the_place_of_a_params_file_is_refused(works):
    os.mkfifo(works.with_name("pipe.yaml"))
    with pytest.raises(run.Refused, match=r"pipe\.yaml cannot be read as a params file"):
        run.plan(works.with_name("pipe.yaml"))


def test_a_folder_that_is_no_notebook_is_refused_with_the_nearest(works, tmp_path):
    copy = tmp_path / "90_work" / "small.yaml"
    copy.parent.mkdir()
    shutil.copyfile(works, copy)
    with pytest.raises(run.Refused, match=r"no '90_work'; did you mean '90_works'\? valid: 90_w"):
        run.plan(copy)


@pytest.mark.parametrize(
    ("fixture", "reason"),
    [
        ("without_parameters", "one cell tagged 'parameters'; it has 0"),
        ("two_parameters_cells", "one cell tagged 'parameters'; it has 2"),
        ("computed_default", "'half' must be a literal, .*; got rate / 2"),
        ("broken_parameters", "invalid syntax"),
    ],
)
def test_a_notebook_without_one_cell_of_literals_is_refused(project, fixture, reason):
    project.add(fixture, "90_fixture")
    with pytest.raises(run.Refused, match=reason):
        run.plan(project.write("90_fixture", "run: small\n"))


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        ({"sed": 1}, "unknown parameter 'sed'.*did you mean 'seed'"),
        ({"seed": 1.5}, "is int"),
        ({"run": "other"}, "needs the line 'run: small'"),
    ],
)
def test_overrides_are_checked_like_the_file(works, overrides, reason):
    with pytest.raises(run.Refused, match=reason):
        run.plan(works, overrides)


def test_a_text_that_was_typed_is_read_as_its_parameter_wants_it(works):
    typed = {"word": "2", "seed": "2", "rate": "1"}
    given = run.plan(works, typed).given
    assert [given["word"], given["seed"], given["rate"]] == ["2", 2, 1.0]
    assert [type(given[name]) for name in ("word", "seed", "rate")] == [str, int, float]
    assert run.plan(works, {"word": ""}).parameters["word"] == ""


def test_every_name_is_plain_and_another_for_every_text(works):
    words = ["2 5", "2+5", "2/5", "2_5", "2=5", "2=205", "2-5", "2  5", "é", "a\nb", "", "2.5"]
    names = [run.plan(works, {"word": word}).run for word in words]
    assert len(set(names)) == len(words)
    assert all(re.fullmatch(workbook.PLAIN, name) for name in names)
    assert names[0] == "small-word2+5"
    assert run.plan(works, {"rate": 1e20, "seed": -1}).run == "small-seed-1-rate1e+20"


@pytest.mark.parametrize("name", ["two words", "-p", "é", "x" * 201])
def test_a_file_whose_name_is_not_plain_is_refused(project, name):
    project.add("works", "90_works")
    with pytest.raises(run.Refused, match="a name needs at most 200 letters, digits"):
        run.plan(project.write("90_works", f"run: {name}\n", run=name))


def rewritten(project, notebook, number, *texts):
    """A notebook that works, but for the texts of code cells from a number on."""
    source = project.add("works", notebook)
    content = json.loads(source.read_text())
    code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    for cell, text in zip(code[number - 1 :], texts, strict=False):
        cell["source"] = [text]
    source.write_text(json.dumps(content))
    return project.write(notebook, "run: small\n")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = = 1", "code cell 3 is no plain Python (invalid syntax): 'x = = 1'"),
        ("a = 1\n%time f()", "code cell 3 is no plain Python (magics and shell commands hide"),
        ("!ls", "code cell 3 is no plain Python (magics"),
        ("x = '\0'", "code cell 3 is no plain Python (source code"),
        ("-" * 100_000 + "1", "code cell 3 is no plain Python ("),
        ("### BEGIN SOLUTION\nx = 1", "without its END in: '### BEGIN SOLUTION"),
        ("x = 1\n### END SOLUTION", "out of place in: 'x = 1"),
    ],
)
def test_a_cell_that_is_no_python_is_refused_by_its_number(project, text, reason):
    file = rewritten(project, "90_cell", 3, text)
    with pytest.raises(run.Refused, match=f"90_cell.ipynb.*{re.escape(reason)}") as refused:
        run.plan(file)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("default", ["{1, 2}", "{}", "None", "b'x'", "1j", "[]", "...", "{[]}"])
def test_a_default_that_no_params_file_could_give_is_refused(project, default):
    file = rewritten(project, "90_cell", 1, f"run: str = 'small'\nseed = {default}")
    with pytest.raises(run.Refused, match=r"90_cell\.ipynb: .* 'seed' must be a literal"):
        run.plan(file)


SOFTMAX = "12_palechor_train/mini_p2_softmax"


@pytest.mark.parametrize(
    ("file", "overrides", "reason"),
    [
        (SOFTMAX, {"weight": 7}, "nothing reads weight=7 here .* it belongs to loss entropic"),
        (SOFTMAX, {"split": 1}, "there is one split, 0, and 100 .*; got split=1"),
        (SOFTMAX, {"method": "sofmax"}, "no method 'sofmax': there are softmax, background"),
        ("31_kim_train/mini_baseline", {"beta": 9}, "it belongs to training arpl_cs"),
        ("31_kim_train/mini_baseline", {"severity": 10, "crl": 5}, "nothing reads severity=10"),
        ("31_kim_train/mini_baseline", {"crl": 5}, "nothing reads crl=5"),
        (SOFTMAX, {"machine": "fast"}, "settings are NAME=VALUE"),
        (SOFTMAX, {"machine": "color=3"}, "workers, cache, resident, captured; got 'color'"),
        (SOFTMAX, {"machine": "workers=-1"}, "workers is 0 or more; got -1"),
        (SOFTMAX, {"data": "cifar10='x"}, "data is a folder, or READER=FOLDER"),
        (SOFTMAX, {"loss": "nowhere:f"}, "no file for 'nowhere:f'"),
        (SOFTMAX, {"seed": 2**32}, "a seed is from 0 to 4294967295; got 4294967296"),
        (SOFTMAX, {"train_per_class": 0}, "train_per_class is 1 or more; got 0"),
    ],
)
def test_what_an_experiment_could_not_do_is_refused_before_it_starts(file, overrides, reason):
    path = workbook.root() / "params" / f"{file}.yaml"
    with pytest.raises(run.Refused, match=reason) as refused:
        run.plan(path, overrides)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize(
    ("key", "text", "meant"),
    [
        ("data", "all", "{here}/all"),
        ("data", "textures=~/c cifar10=a svhn=/b", "textures='~/c' cifar10={here}/a svhn=/b"),
        ("data", "/a/ ", "/a/ "),
        ("machine", "workers=2 cache=c", "workers=2 cache=c cache={here}/c"),
        ("machine", "cache=/c", "cache=/c"),
    ],
)
def test_a_folder_means_the_same_in_that_of_a_kernel(key, text, meant, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = run.plan(workbook.root() / "params" / f"{SOFTMAX}.yaml", {key: text})
    assert plan.given[key] == plan.parameters[key] == meant.format(here=tmp_path)


def test_settings_that_a_training_notebook_does_not_declare_go_into_its_overrides():
    file = workbook.root() / "params" / f"{SOFTMAX}.yaml"
    plan = run.plan(file, {"seed": "3", "epochs": "20"})
    assert plan.run == "mini_p2_softmax-epochs20-seed3"
    assert (plan.parameters["overrides"], plan.parameters["seed"]) == ("epochs=20", 3)
    assert plan.follows["settings"]["epochs"] == 20
    same = run.plan(file).follows["settings"]["epochs"]
    assert run.plan(file, {"epochs": same}).run == "mini_p2_softmax"


def test_a_run_without_its_data_fails_before_a_kernel_starts(project, monkeypatch, no_kernel):
    asks = 'run: str = "small"\nsize: str = "mini"\ndataset: str = "digits cifar10_parquet"\n'
    plan = run.plan(rewritten(project, "90_data", 1, asks + 'data: str = ""\nalso: str = ""\n'))
    monkeypatch.setenv("OSNB_DATA", str(project.folder / "images"))
    end = run.once(plan)
    assert (end["state"], end["error"]["name"]) == ("failed", "NotRun")
    needs = f"the reader cifar10_parquet needs cifar10_jpeg.parquet in {project.folder / 'images'}"
    assert end["error"]["value"].startswith(needs)
    assert record.read(plan.directory) == end
    (project.folder / "images").mkdir()
    (project.folder / "images" / "cifar10_jpeg.parquet").touch()
    assert run.lacking(plan) == ""


def test_a_finished_run_stays_one_while_its_data_are_away(works, monkeypatch, no_kernel):
    plan = run.plan(works)
    record.write(plan.directory, plan.known | {"state": "done", "seconds": 3.0})
    monkeypatch.setattr(run.execution, "lacking", lambda _: "the disk is away")
    for _ in range(2):
        assert run.once(plan, force=True)["error"]["value"] == "the disk is away"
        assert record.read(plan.directory) == plan.known | {"state": "done", "seconds": 3.0}
        record.queue(plan.directory, plan.known)  # as the next batch does first


def test_a_run_that_another_process_is_making_is_not_said_to_have_failed(works):
    plan = run.plan(works)
    record.write(plan.directory, plan.known | record.owner() | {"state": "running"})
    with record.lock(plan.directory):
        assert run.not_run(plan, "it reads what failed")["state"] == "failed"
        assert record.read(plan.directory)["state"] == "running"


def test_the_data_of_benchmarks_that_a_notebook_looks_at_are_missed_too(tmp_path, monkeypatch):
    monkeypatch.setenv("OSNB_DATA", str(tmp_path))
    folder = workbook.root() / "params" / "30_kim_benchmark"
    missing = {
        name: run.lacking(run.plan(folder / f"{name}.yaml")) for name in ("mini", "tiny", "paper")
    }
    assert missing["mini"] == ""
    assert missing["tiny"].startswith("the reader tinyimagenet_parquet needs ")
    assert missing["paper"].startswith("the reader cifar100 needs ")


# Execution


def test_a_run_is_executed_recorded_and_published(works, project):
    plan = run.plan(works, {"seed": 4})
    end = run.execute(plan)
    told_with_what(end)
    assert end == record.read(plan.directory)
    assert end["state"] == "done"
    assert (end["parameters"], end["inputs"]) == (plan.parameters, {})
    assert end["goldens"] == {"cells": follows.now("cells", "90_works", {})}
    assert end["started"] <= end["finished"]
    assert end["packages"].keys() >= {"torch", "numpy", "pandas"}
    assert (plan.directory / "table.csv").read_text() == "rate,word\n0.25,blue\n"
    published = project.folder / "figures" / "90_works" / "small-seed4"
    assert sorted(os.listdir(published)) == ["figure.json", "figure.svg", "table.csv"]
    executed = json.loads((plan.directory / "executed.ipynb").read_text())
    assert "".join(executed["cells"][-1]["outputs"][0]["text"]) == f"{sys.executable}\n"
    names = sorted(path.name for path in plan.directory.parent.iterdir())
    assert names == ["small-seed4"]


def told_with_what(end):
    """run.json says with what and how much a run was made."""
    assert end["used"]["device"] == "cpu"
    assert 30e6 < end["used"]["memory"] < 3e9
    assert end["seed"] == 4
    assert end["processor"]


def test_a_kernel_that_a_person_installed_is_not_taken(works, tmp_path, monkeypatch):
    spec = tmp_path / "jupyter" / "kernels" / "python3"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text('{"argv": ["/bin/false"], "display_name": "x"}')
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    startup = tmp_path / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "mine.py").write_text("raise SystemExit('a start-up file was run')")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    assert run.execute(run.plan(works))["state"] == "done"


def test_a_run_is_done_once_until_something_changes(works, project, monkeypatch):
    plan = run.plan(works)
    assert not run.done(plan)
    run.execute(plan)
    assert run.done(plan)
    for place in ({"machine": "workers=2"}, {"data": "/elsewhere"}):
        moved = replace(plan, parameters=plan.parameters | place)
        assert run.done(moved)
        with monkeypatch.context() as patch:  # of one's own: other images lie there
            patch.setattr(type(plan), "published", False)
            assert run.done(moved) == ("machine" in place)
    assert not run.done(run.plan(works, {"seed": 1}))
    works.write_text("run: small\nrate: 0.75\n")
    assert not run.done(run.plan(works))
    project.add("trains_without_scores", "90_works")
    assert not run.done(plan)


def test_a_run_made_anew_is_not_said_to_have_gone_on(works, project, monkeypatch):
    plan, cell = run.plan(works), {"state": "done"}
    seen = []

    def through(plan):
        here = runs.begin(plan.notebook, plan.parameters)
        seen.append(record.read(here.directory)["resumed"])
        pq.write_table(pa.table({"epoch": [1, 2]}), here.directory / "history.parquet")
        return cell

    run.execute(plan, through=through)
    run.execute(plan, through=through)
    project.add("trains_without_scores", "90_works")  # other code
    run.execute(run.plan(works), through=through)
    assert seen == [0, 2, 0]


def test_seconds_of_grace_that_are_no_number_are_refused_by_name():
    code = [sys.executable, "-c", "import osnb.book.run.kernels"]
    env = os.environ | {"OSNB_GRACE": "soon"}
    ended = subprocess.run(code, capture_output=True, text=True, env=env)
    assert "OSNB_GRACE is a number of seconds; got 'soon'" in ended.stderr


@pytest.mark.parametrize("limit", [1e10, float("inf"), float("nan")])
def test_a_time_limit_beyond_all_time_is_none(limit, monkeypatch):
    raised = []
    monkeypatch.setattr("threading.excepthook", raised.append)
    with kernels.limited(limit) as reached:
        time.sleep(0.05)
        assert not reached()
    assert raised == []
    monkeypatch.setenv("OSNB_GRACE", str(limit))
    assert kernels._grace() <= kernels.LONGEST


@pytest.mark.parametrize("letters", [77, 100])  # with 77 there is room for a socket's path
def test_a_kernel_starts_where_the_temporary_folder_has_a_long_name(tmp_path, monkeypatch, letters):
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        os.mkdir(long := os.path.join(short, "x" * (letters - len(short) - 1)))
        monkeypatch.setattr("tempfile.tempdir", long)
        with kernels.started(tmp_path) as kernel:
            assert told(kernel, "said = 1") == [("ok", "1")]
            assert (str(kernel.folder).startswith(long)) == (letters == 77)
            assert len(f"{kernel.folder}/kernel-5") <= 107


def test_a_run_that_lost_a_file_or_a_part_of_one_is_not_done(works):
    plan = run.plan(works)
    run.execute(plan)
    for name in ("executed.ipynb", "figure.svg", "run.json"):
        path = (plan.directory / name).rename(plan.directory / "hidden")
        assert not run.done(plan)
        path.rename(plan.directory / name)
        assert run.done(plan)
    (plan.directory / "table.csv").write_text("rate,wo")
    assert not run.done(plan)


def test_a_cell_that_raises_fails_the_run_and_is_named(project):
    project.add("raises_in_third_cell", "90_raises")
    plan = run.plan(project.write("90_raises", "run: small\n"))
    end = run.execute(plan)
    assert end["state"] == record.read(plan.directory)["state"] == "failed"
    error = end["error"]
    assert (error["name"], error["value"], error["cell"]) == ("KeyError", "'absent'", 3)
    assert error["tail"][0] == "so far so good"
    assert error["tail"][-1] == "KeyError: 'absent'"
    assert "so far so good" in (plan.directory / "executed.ipynb").read_text()
    assert not (project.folder / "figures").exists()
    assert not run.done(plan)


def test_a_full_disk_fails_the_run_and_leaves_no_part_of_a_notebook(works, monkeypatch):
    from papermill import execute

    def fills(source, aside, *args, **kwargs):
        aside.write_text('{"cells": [')
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(execute, "execute_notebook", fills)
    plan = run.plan(works)
    end = run.execute(plan)
    assert (end["state"], end["error"]["name"]) == ("failed", "OSError")
    assert "No space left" in end["error"]["value"]
    assert os.listdir(plan.directory) == ["run.json"]
    assert os.listdir(plan.directory.parent) == ["small"]


def test_a_notebook_that_leaves_before_its_end_has_failed(project):
    """papermill alone says nothing of the cells that were not executed."""
    end = run.execute(run.plan(rewritten(project, "90_leaves", 3, "import sys\nsys.exit(0)")))
    assert end["state"] == "failed"
    assert end["error"]["value"] == "the notebook was left before cell In [5] of 5"


def test_the_collector_is_off_in_cells_that_import_and_on_in_the_others(project):
    imports, on = "import gc\nassert not gc.isenabled()", "assert gc.isenabled()"
    cells = imports, f"{on}\nassert gc.get_freeze_count() > 10_000", on
    end = run.execute(run.plan(rewritten(project, "90_imports", 2, *cells)))
    assert end["state"] == "done", end["error"]


@pytest.mark.slow
def test_a_training_of_the_first_paper_ends_on_digits_without_negatives(tmp_path, monkeypatch):
    """Its cells that teach speak of negatives, of WordNet, and of one network."""
    monkeypatch.setenv("OSNB_OUT", str(tmp_path))
    other = {"benchmark": "mnist", "method": "ensemble", "members": 2, "epochs": 1}
    plan = run.plan(workbook.root() / "params" / f"{SOFTMAX}.yaml", other | {"rules": "plain"})
    assert run.execute(plan)["state"] == "done"


def test_a_training_run_without_scores_has_failed(project):
    project.add("trains_without_scores", "90_fixture_train")
    end = run.execute(run.plan(project.write("90_fixture_train", "run: small\n")))
    assert end["state"] == "failed"
    assert "wrote no scores.parquet" in end["error"]["value"]


@pytest.fixture
def limit(project, monkeypatch):
    """Seconds that begin where a notebook writes begun.txt, however busy a machine is."""
    limit, real = 4.0, threading.Event.wait

    def wait(event, timeout=None):
        if timeout != limit:
            return real(event, timeout)
        while not event.is_set() and not [*project.folder.glob("runs/*/*/begun.txt")]:
            time.sleep(0.05)
        return real(event, 0.1)

    monkeypatch.setattr("threading.Event.wait", wait)
    return limit


def test_a_run_that_is_too_late_is_interrupted_and_has_failed(project, limit):
    project.add("waits", "90_waits")
    plan = run.plan(project.write("90_waits", "run: small\n"))
    end = run.execute(plan, limit=limit)
    assert end["state"] == "failed"
    assert (end["error"]["name"], end["error"]["value"]) == ("TimeLimit", "not done after 4 s")
    assert end["error"]["cell"] == 4


def test_one_that_does_not_heed_the_interrupt_is_killed(project, limit, monkeypatch):
    monkeypatch.setattr(run.kernels, "GRACE", 0.5)
    project.add("hangs", "90_hangs")
    end = run.once(run.plan(project.write("90_hangs", "run: small\n")), limit=limit)
    assert (end["state"], end["error"]["name"]) == ("failed", "TimeLimit")
    assert (end["error"]["cell"], end["attempts"]) == (4, [])


def test_a_kernel_that_died_is_started_again_but_not_for_ever_and_its_cell_is_named(project):
    project.add("kernel_dies", "90_dies")
    plan = run.plan(project.write("90_dies", "run: small\n"))
    end = run.once(plan)
    assert (end["state"], end["error"]["name"]) == ("failed", "DeadKernelError")
    assert end["error"]["cell"] == 3
    assert (plan.directory / "executed.ipynb").is_file()
    assert [each["state"] for each in end["attempts"]] == ["failed", "failed"]


def test_a_run_is_made_by_one_process_at_a_time(works):
    plan = run.plan(works)
    with record.lock(plan.directory):
        assert run.once(plan) is None
    assert not plan.directory.exists()
    assert run.once(plan)["state"] == "done"
    assert run.once(plan)["state"] == "skipped"
    assert run.once(plan, force=True)["state"] == "done"


def test_a_finished_run_whose_lock_cannot_be_had_is_skipped_and_another_is_not(works, monkeypatch):
    plan = run.plan(works)
    run.once(plan)

    def flock(*_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("fcntl.flock", flock)
    assert run.once(plan) == {"state": "skipped"}
    for other, how in ((plan, {"force": True}), (run.plan(works, {"seed": 1}), {})):
        with pytest.raises(OSError, match="Read-only"):
            run.once(other, **how)


@pytest.mark.parametrize("name", ["figure.svg", "executed.ipynb"])
def test_a_run_with_a_file_that_cannot_be_read_is_not_done(works, monkeypatch, name):
    plan = run.plan(works)
    run.once(plan)
    closed(monkeypatch, plan.directory / name)
    assert not run.done(plan)
    assert runs.changed(plan.directory, {name: "", "table.csv": ""}) == [name, "table.csv"]


def closed(monkeypatch, path):
    """Let a file be one that another user keeps to himself."""
    opened = workbook.file_hash

    def file_hash(file):
        if file == path:
            raise PermissionError(errno.EACCES, "Permission denied", str(file))
        return opened(file)

    monkeypatch.setattr(workbook, "file_hash", file_hash)
    monkeypatch.setattr(stamps, "file_hash", file_hash)


def told(kernel, *cells, signals=lambda: None):
    """How a kernel ends each cell, and what `said` then is in it."""

    async def ends():
        manager = kernel.manager()()
        if kernel.process is None:
            signals()
        await manager.start_kernel()
        client = manager.client()
        client.start_channels()
        await client.wait_for_ready(timeout=600)
        ends = []
        while len(ends) < len(cells):
            options = {"user_expressions": {"said": "said"}, "reply": True, "timeout": 600}
            end = (await client.execute(cells[len(ends)], **options))["content"]
            if end["status"] != "aborted":  # what comes right behind an error
                said = end.get("user_expressions", {}).get("said", {}).get("data", {})
                ends.append((end["status"], end.get("ename", said.get("text/plain"))))
        client.stop_channels()
        await manager.shutdown_kernel()
        return ends

    return asyncio.run(ends())


KILLED = """
import os, signal, sys
from pathlib import Path
from osnb.book.run import kernels
with kernels.started(Path(sys.argv[1])):
    print(*os.listdir(sys.argv[1]), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_kill_before_a_kernel_has_begun_leaves_no_folder(tmp_path):
    env = os.environ | {"TMPDIR": str(tmp_path)}
    words = [sys.executable, "-c", KILLED, str(tmp_path)]
    killed = subprocess.run(words, env=env, capture_output=True, text=True, timeout=600)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert killed.stdout.startswith("osnb-")
    for _ in range(600):
        if not [*tmp_path.glob("osnb-*")]:
            break
        time.sleep(0.1)
    assert not [*tmp_path.glob("osnb-*")]


@pytest.mark.slow
def test_an_interrupt_before_a_cell_ends_it_even_one_before_the_kernel(tmp_path):
    """IPython's kernel ignores it then, and a run would go on that somebody has stopped."""
    cell = "import os\nsaid = os.environ['OPENBLAS_NUM_THREADS']"
    with kernels.started(tmp_path) as kernel:
        ends = told(kernel, cell, cell, signals=kernels.interrupt)
    assert ends == [("error", "KeyboardInterrupt"), ("ok", "'1'")]


FAULTS = """
import resource
said = []
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    len(b"x" * 2**26)
    said.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another library's memory")
@pytest.mark.slow
def test_a_kernel_keeps_the_memory_that_a_step_frees_unless_told_otherwise(tmp_path, monkeypatch):
    def faults():
        with kernels.started(tmp_path) as kernel:
            ((end, said),) = told(kernel, FAULTS)
        assert end == "ok"
        return json.loads(said)

    first, *later = faults()
    assert 10 * max(later) < first, later
    for name in kernels.KEPT:  # as glibc does by itself
        monkeypatch.setenv(name, str(2**17))
    first, *later = faults()
    assert 2 * min(later) > first


FIRST = "import os, numpy, tabulate, osnb, subprocess\nfrom osnb.book import part\n"
FIRST += "said = os.getppid(), part.value, numpy.random.rand(), subprocess.call('false')"


@pytest.mark.slow
def test_the_next_kernel_has_what_took_long_and_reads_our_own_code_anew(tmp_path):
    book = tmp_path / "osnb" / "book"
    book.mkdir(parents=True)
    (book.parent / "__init__.py").touch()
    (book / "__init__.py").write_text("from osnb.book import part\n")
    shutil.copy(workbook.PACKAGE / "book" / "kernel.py", book)
    made, ends = [], []
    for value in ("1", "22"):
        (book / "part.py").write_text(f"value = {value}\n")
        with kernels.started(tmp_path) as kernel:
            ends += told(kernel, "import sys\nsaid = 'tabulate' in sys.modules", FIRST)
        made.append(kernel)
    assert [end[0] for end in ends] == ["ok"] * 4, ends
    assert [ends[0][1], ends[2][1]] == ["False", "True"]
    (source, value, drawn, code), second = (eval(ends[n][1]) for n in (1, 3))
    assert source == made[0].source.pid
    assert second[:2] == (source, 22)
    assert (value, code, second[3]) == (1, 1, 1)
    assert drawn != second[2]  # who forgets a seed sees it
    assert not any(kernel.folder.exists() for kernel in made)
    assert not any(psutil.pid_exists(kernel.process.pid) for kernel in made)


@pytest.mark.slow
def test_a_kernel_sees_the_environment_of_now(tmp_path, monkeypatch):
    cell, pids, ends = "import os\nsaid = os.environ['CUDA_VISIBLE_DEVICES']", [], []
    for device in ("0", "1"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", device)
        with kernels.started(tmp_path) as kernel:
            ends += told(kernel, cell)
        pids.append(kernel.source.pid)
    assert ends == [("ok", "'0'"), ("ok", "'1'")]
    assert not psutil.pid_exists(pids[0])


@pytest.mark.slow
def test_a_run_goes_on_if_what_its_kernel_was_forked_from_is_killed(project):
    kills = "import os, signal, time\nfrom pathlib import Path\nif not Path('../pid').exists():\n"
    kills += "    Path('../pid').write_text(str(os.getpid()))\n"
    kills += "    os.kill(os.getppid(), signal.SIGKILL)\n    time.sleep(60)"
    end = run.once(run.plan(rewritten(project, "90_kills", 3, kills)))
    assert (end["state"], [each["state"] for each in end["attempts"]]) == ("done", ["failed"])
    assert not psutil.pid_exists(int((project.folder / "pid").read_text()))


# What a results notebook reads


@pytest.fixture
def collects(project):
    """The plan of a notebook that collects, and a writer of what it collects."""
    project.add("collects", "91_collects")
    file = project.write("91_collects", "run: small\n")

    def scores(value, base="runs", name="one", size="mini", **more):
        if not more:
            project.write("90_fixture_train", f"run: {name}\nsize: {size}\n", run=name)
        path = project.folder / base / "90_fixture_train" / name / "scores.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"score": [value]}), path)
        stamp = {"notebook": "90_fixture_train", "run": name, "parameters": {"size": size, **more}}
        stamp |= {"settings": {}, "columns": {}, "inputs": {}, "goldens": {}}
        explained = stamps.explained(path.parent, path.name)
        stamps.write(path.with_suffix(".json"), stamp | explained)
        return stamps.data(path.parent)

    return run.plan(file), scores


def test_the_inputs_of_a_results_notebook_are_the_scores_of_its_paper_and_size(collects):
    plan, scores = collects
    assert run.inputs(plan) == {}
    expected = {"one": scores(0.5), "two": scores(0.25, base="figures", name="two")}
    scores(0.125, name="large", size="paper")
    assert run.inputs(plan) == expected


def test_a_variant_is_no_input_and_another_seed_is_one(collects, project):
    plan, scores = collects
    first = scores(0.5)
    file = project.folder / "params" / "90_fixture_train" / "one.yaml"
    file.write_text("run: one\nsize: mini\nepochs: 10\n")
    second = scores(0.25, name="one-seed3", epochs=10, seed=3)
    scores(0.125, name="one-epochs20", epochs=20)
    assert run.inputs(plan) == {"one": first, "one-seed3": second}


def test_a_results_notebook_is_done_until_its_inputs_change(collects):
    plan, scores = collects
    scores(0.5)
    run.execute(plan)
    assert run.done(plan)
    scores(0.25)
    assert not run.done(plan)


def test_a_table_that_is_not_whole_counts_as_an_input_that_changed(collects, project):
    plan, scores = collects
    before = scores(0.5)
    path = project.folder / "runs" / "90_fixture_train" / "one" / "scores.parquet"
    path.write_bytes(path.read_bytes()[:50])
    assert run.inputs(plan)["one"] != before


def test_other_notebooks_have_no_inputs(works):
    assert not run.plan(works).collects
    assert run.inputs(run.plan(works)) == {}


# Publishing


def test_figures_hold_the_small_results_of_the_latest_run_and_nothing_else(tmp_path):
    made, target = tmp_path / "run", tmp_path / "figures"
    made.mkdir()
    small = ("a.svg", "a.csv", "a.json", "scores.parquet", "history.parquet", "outputs.parquet")
    for name in small:
        (made / name).write_text(name)
    for name in ("begun.json", "run.json", "checkpoint.pt", "executed.ipynb"):
        (made / name).write_text(name)
    (made / "large.csv").write_bytes(b"0" * (runs.SMALL + 1))
    target.mkdir()
    (target / "stale.svg").touch()
    (target / "large.csv").touch()
    assert runs.publish(made, target) == ["large.csv"]
    assert sorted(os.listdir(target)) == sorted(small)
    assert all((target / name).read_text() == name for name in small)


def test_what_is_published_already_is_not_touched(tmp_path):
    made, target = tmp_path / "run", tmp_path / "figures"
    made.mkdir()
    (made / "a.svg").write_text("same")
    runs.publish(made, target)
    before = (target / "a.svg").stat().st_ino
    runs.publish(made, target)
    assert (target / "a.svg").stat().st_ino == before


def test_a_notebook_keeps_outputs_of_its_own_code_and_nothing_else_of_its_execution(works):
    plan = run.plan(works)
    run.execute(plan)
    before = json.loads(plan.source.read_text())
    outputs.keep_outputs(plan.source, plan.directory / "executed.ipynb")
    after = json.loads(plan.source.read_text())
    code = [cell for cell in after["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == [1, 2, 3, 4]
    assert code[-1]["outputs"][0]["text"] == [f"{sys.executable}\n"]
    assert [cell["source"] for cell in after["cells"]] == [x["source"] for x in before["cells"]]
    assert "papermill" not in plan.source.read_text()
    assert after["metadata"]["kernelspec"]["name"] == "python3"
    assert workbook.declared(plan.source)["rate"] == 0.5
    once = plan.source.read_bytes()
    outputs.keep_outputs(plan.source, plan.directory / "executed.ipynb")
    assert plan.source.read_bytes() == once
    plan.source.write_text(once.decode().replace("print(sys.executable)", "print(1)"))
    with pytest.raises(ValueError, match=r"other code .* in code cell 4"):
        outputs.keep_outputs(plan.source, plan.directory / "executed.ipynb")


def test_outputs_are_kept_of_default_runs_that_are_done(works, project, capsys):
    works.write_text("run: small\n")
    source = run.plan(works).source
    before = source.read_text()
    assert outputs.kept(project.folder) == {}
    assert "its run small is not done" in capsys.readouterr().out
    assert source.read_text() == before
    run.execute(run.plan(works))
    assert outputs.kept(project.folder)["90_works"]["state"] == "done"
    assert "outputs kept" in capsys.readouterr().out
    assert json.loads(source.read_text())["cells"][-1]["execution_count"] == 4


def test_outputs_of_other_values_than_the_defaults_are_not_kept(works, project, capsys):
    works.write_text("run: small\nseed: 3\n")
    outputs.kept(project.folder)
    assert "sets other values than the notebook's defaults" in capsys.readouterr().out


def test_neither_widget_ids_nor_other_numbers_nor_stray_metadata_are_kept(tmp_path):
    widget = "application/vnd.jupyter.widget-view+json"
    data = {"text/plain": "interactive(...)", widget: {"model_id": "random"}}
    output = {"output_type": "execute_result", "execution_count": 9, "data": data, "metadata": {}}
    cell = {"cell_type": "code", "source": "1", "execution_count": 9, "outputs": [output]}
    kept_too = {"tags": ["nbval-check-output"], "nbgrader": {"grade_id": "it", "solution": True}}
    for name, metadata in (
        ("ours", kept_too | {"collapsed": True}),
        ("theirs", {"papermill": {"duration": 1}}),
    ):
        content = {"cells": [cell | {"metadata": metadata}], "metadata": {"widgets": {}}}
        (tmp_path / name).write_text(json.dumps(content))
    outputs.keep_outputs(tmp_path / "ours", tmp_path / "theirs")
    (kept,) = json.loads((tmp_path / "ours").read_text())["cells"]
    assert kept["metadata"] == kept_too
    assert kept["outputs"][0]["data"] == {"text/plain": "interactive(...)"}
    assert kept["execution_count"] == kept["outputs"][0]["execution_count"] == 1


# run.json


RUN = {"notebook": "90_works", "run": "small", "parameters": {}}


@pytest.mark.parametrize("state", ["done", "failed", None])
def test_a_run_that_was_queued_and_never_began_is_what_it_was_before(tmp_path, state):
    directory = tmp_path / "runs" / "90_works" / "small"
    before = RUN | {"state": state, "seconds": 3.0, "started": record.now(), **record.owner()}
    if state:
        record.write(directory, before)
    for _ in range(2):  # queued again by the next command
        record.queue(directory, RUN)
        found = json.loads((directory / "run.json").read_text())
        assert len(found.pop("sha256")) == 64
        assert record.read(directory)["state"] == found["state"] == "queued"
        assert [each["state"] for each in found["attempts"]] == [state] * bool(state)
    record.write(directory, found | {"pid": 2**22 + 1})
    gone = found | {"pid": 2**22 + 1, "state": "interrupted"}
    assert record.read(directory) == (before if state else gone)


def test_running_is_interrupted_once_its_process_is_gone(tmp_path):
    directory = tmp_path / "runs" / "90_works" / "small"
    content = RUN | record.owner() | {"state": "running"}
    for state in ("running", "queued"):
        record.write(directory, content | {"state": state})
        assert record.read(directory)["state"] == state
        for gone in ({"pid": 2**22 + 1}, {"began": content["began"] - 10}):  # a pid comes again
            record.write(directory, content | {"state": state} | gone)
            assert record.read(directory)["state"] == "interrupted"


def test_a_run_goes_on_when_the_clock_is_set(monkeypatch):
    before, create_time, boot_time = record.owner(), psutil.Process.create_time, psutil.boot_time()
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: create_time(process) + 1)
    monkeypatch.setattr(psutil, "boot_time", lambda: boot_time + 1)
    assert record.owner() == before


def test_the_lock_tells_whether_a_run_of_another_host_goes_on(tmp_path):
    directory = tmp_path / "runs" / "90_works" / "small"
    record.write(directory, RUN | record.owner() | {"state": "running", "host": "elsewhere"})
    with record.lock(directory):
        assert record.read(directory)["state"] == "running"
    assert record.read(directory)["state"] == "interrupted"


def test_every_attempt_is_remembered_in_brief_and_a_queued_one_is_none(project):
    project.add("raises_in_third_cell", "90_works")
    file = project.write("90_works", "run: small\n")
    run.execute(run.plan(file))
    project.add("works", "90_works")
    record.queue(run.plan(file).directory, RUN)
    end = run.execute(run.plan(file))
    assert end["state"] == "done"
    assert "error" not in end
    (before,) = end["attempts"]
    assert (before["state"], before["reason"]) == ("failed", "KeyError: 'absent'")
    assert record.seconds(record.read(run.plan(file).directory)) == end["seconds"]
    record.write(run.plan(file).directory, end | {"attempts": [before] * 30})
    assert len(record.attempts(run.plan(file).directory)) == record.KEPT


def test_a_run_that_another_process_makes_is_not_queued(works):
    directory = run.plan(works).directory
    record.write(directory, RUN | record.owner() | {"state": "running"})
    with record.lock(directory):
        record.queue(directory, RUN)
    assert record.read(directory)["state"] == "running"


WHOLE = {"notebook": "90_works", "run": "small", "parameters": {}, "state": "done"}


@pytest.mark.parametrize(
    "text",
    [
        '{"state": "do',
        "[]",
        '{"state": "done"}',
        json.dumps(WHOLE | {"state": "dnoe"}),
        json.dumps(WHOLE | {"state": "running"}),
        json.dumps(WHOLE | {"state": "running", "host": "here", "pid": "x"}),
        json.dumps(WHOLE | {"parameters": []}),
        "[" * 100_000,
    ],
)
def test_a_broken_run_json_is_a_failure_that_names_the_file(tmp_path, text):
    directory = tmp_path / "90_works" / "small"
    directory.mkdir(parents=True)
    record.write(directory, WHOLE)
    assert record.read(directory) == WHOLE
    (directory / "run.json").write_text(text)
    found = record.read(directory)
    assert (found["notebook"], found["run"], found["state"]) == ("90_works", "small", "failed")
    assert found["error"]["name"] == "BrokenRecord"
    assert str(directory / "run.json") in found["error"]["value"]
    assert record.attempts(directory) == []


TYPED = ("seconds", "resumed", "settings", "files", "outputs", "goldens", "error", "attempts")


@pytest.mark.parametrize("key", TYPED)
def test_a_sealed_run_json_with_a_value_of_another_type_is_broken_too(tmp_path, key):
    for value in ("x", None, [3], *([{"a": {"b": 1}}] if key != "settings" else [])):
        record.write(tmp_path, WHOLE | {key: value})
        assert record.read(tmp_path)["error"]["name"] == "BrokenRecord"


@pytest.fixture
def bounded():
    """4 GB of memory more than now: what reads without end does not take the machine with it."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + (4 << 30), -1))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def test_a_pipe_or_a_device_in_the_place_of_a_file_is_read_as_an_empty_one(tmp_path, bounded):
    file = tmp_path / "run.json"
    for make in (os.mkfifo, lambda file: file.symlink_to("/dev/zero")):
        make(file)
        assert record.read(tmp_path)["error"]["name"] == "BrokenRecord"
        assert stamps.read(file) is None
        assert photographs.content(file) == b""
        file.unlink()


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EACCES])
def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch, number):
    def flock(*_):
        raise OSError(number, "no")

    monkeypatch.setattr("fcntl.flock", flock)
    said = f"{tmp_path}/runs/.locks/90_works lies on a file system without locks: set OSNB_OUT"
    with pytest.raises(OSError, match=said), record.lock(tmp_path / "runs/90_works/small"):
        pass


def test_two_hosts_whose_processes_have_one_number_do_not_take_each_other_s_probe(
    tmp_path, monkeypatch
):
    ended, lock = [], record.FileLock

    def other(file, *words, **how):
        monkeypatch.setattr(platform, "node", lambda: "elsewhere")
        monkeypatch.setattr(record, "FileLock", lock)
        with lock(file, *words, **how):  # it asks while we hold ours
            ended.append(record._denied(tmp_path))
        return lock(file, *words, **how)

    monkeypatch.setattr(record, "FileLock", other)
    assert (record._denied(tmp_path), ended) == (0, [0])


@pytest.mark.skipif(os.geteuid() > 0, reason="only root can become another user")
def test_a_lock_of_another_user_is_said_to_be_one(tmp_path):
    run_of_root = tmp_path / "runs/90_works/small"
    with record.lock(run_of_root):
        pass
    (file,) = (tmp_path / "runs/.locks/90_works").iterdir()
    file.chmod(0o644)
    for folder in (tmp_path, *tmp_path.parents):
        folder.chmod(folder.stat().st_mode | 0o755)
    os.seteuid(65534)
    try:
        with pytest.raises(OSError, match=f"{file} is another user's"), record.lock(run_of_root):
            pass
    finally:
        os.seteuid(0)


OPTIONS = "from pandas._config import config\n"
OPTIONS += "said = {name: config.get_option(name) for name in config._registered_options}"


@pytest.mark.slow
def test_pandas_prints_in_the_next_kernel_as_in_the_first(tmp_path):
    """It asks when it is imported whether that is in a notebook: the next kernel finds it there."""
    ends = []
    for _ in range(2):
        with kernels.started(tmp_path) as kernel:
            ends += told(kernel, "import sys\nsaid = 'pandas' in sys.modules", OPTIONS)
    assert [ends[0], ends[2]] == [("ok", "False"), ("ok", "True")]
    assert ends[1] == ends[3]
    assert "'display.max_columns': 20," in ends[1][1]


def test_every_run_of_ones_own_is_an_input_and_of_others_those_that_repeat(monkeypatch, tmp_path):
    from types import SimpleNamespace

    from osnb.book.run import execution

    file, stamp = tmp_path / "scores.json", {"run": "a-width8", "notebook": "n"}
    monkeypatch.setattr(execution.stamps, "finished", lambda *_: [(file, stamp)])
    monkeypatch.setattr(execution.stamps, "data", lambda _: "d")
    monkeypatch.setattr(execution, "_described", lambda *_: {})
    monkeypatch.setattr("osnb.evidence.tables.repeats", lambda *_: None)
    made = {"collects": True, "reads": "*", "parameters": {"size": "own"}}
    for published, found in ((False, {"a-width8": "d"}), (True, {})):
        assert execution.inputs(SimpleNamespace(**made, published=published)) == found
