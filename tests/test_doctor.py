"""`osnb doctor` on a healthy set-up and on broken ones, most of them broken for real.

Packages are missing in environments of their own: a venv whose packages are links to those of
this one, but for some. Read-only folders and full disks are mounts that only one process sees.
"""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from osnb import doctor, repro
from osnb.doctor import inside, places, processes, versions

COMMAND = "from osnb.cli import app; app()"
PLAIN = ("-m", "osnb.doctor")
FILES = ("pyproject.toml", "requirements.lock")
MOUNTS = {
    "read-only": 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"',
    "full": 'mount -t tmpfs -o size=32k osnb "$0" && exec "$@"',
}


def environment(**more):
    """Variables of a process that finds this package and nothing of the user's settings."""
    own = {"PYTHONPATH": str(repro.PACKAGE.parent), "OSNB_OUT": "", "OSNB_DATA": ""}
    return os.environ | own | more


def ask(*before, python=sys.executable, **more):
    """(exit code, lines by name) of `osnb doctor --json`, `before` being put before python."""
    words = [*before, python, "-P", "-c", COMMAND, "doctor", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment(**more))
    assert done.stdout, done.stderr
    said = json.loads(done.stdout)
    assert said["ready"] == (done.returncode == 0)
    assert done.stderr == ""
    return done.returncode, {line["name"]: line for line in said["lines"]}


def states(lines, state):
    """Names of the lines in that state."""
    return [name for name, line in lines.items() if line["state"] == state]


@pytest.fixture
def without(tmp_path):
    """A function: python of a new environment that lacks the packages matching a pattern."""

    def made(pattern):
        folder = str(tmp_path / "venv")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        paths = {"base": folder, "platbase": folder}
        there = Path(sysconfig.get_path("purelib", "venv", vars=paths))
        for file in Path(sysconfig.get_path("purelib")).iterdir():
            if not re.match(pattern, file.name):
                (there / file.name).symlink_to(file)
        return f"{folder}/bin/python"

    return made


@pytest.fixture
def elsewhere(tmp_path):
    """A project in a folder of its own, by links, and the variables to work in it."""
    folder = tmp_path / "a project"
    (folder / "notebooks").mkdir(parents=True)
    for name in FILES:
        shutil.copyfile(repro.PACKAGE.parent / name, folder / name)
    (folder / "osnb").symlink_to(repro.PACKAGE)
    return folder


def mounted(kind, folder):
    """Words before a command that see the folder read-only, or on a full disk; else skip."""
    words = ["unshare", "--mount", "sh", "-c", MOUNTS[kind], str(folder)]
    if (
        not shutil.which("unshare")
        or subprocess.run([*words, "true"], capture_output=True).returncode
    ):
        pytest.skip("mounts need root on Linux")
    return words


# A healthy set-up


@pytest.mark.slow
def test_a_healthy_set_up_has_no_failure_and_takes_less_than_a_minute():
    began = time.monotonic()
    code, lines = ask()
    assert time.monotonic() - began < 60  # 2 on an idle machine; a slow one is asked twice
    assert (code, states(lines, "fail")) == (0, [])
    wanted = {"python", "project", "versions", "torch", "gpu", "kernel", "jupyter", "disk"}
    wanted |= {f"write: {name}" for name in ("project folder", "runs/", "figures/")}
    assert wanted | {"write: temporary folder", "data folder", "test browser"} <= set(lines)
    assert lines["kernel"]["found"].endswith("says 1 + 1 = 2")
    assert [line["advice"] for line in lines.values() if line["state"] == "ok"] == [""] * len(
        states(lines, "ok")
    )


def test_the_table_shows_states_what_was_found_and_advice(monkeypatch, capsys):
    from typer.testing import CliRunner

    from osnb import cli

    bad = doctor.Line("kernel", doctor.FAIL, "there is [none]", "Install [one].")
    monkeypatch.setattr(doctor, "examine", lambda: [doctor.Line("python", doctor.OK, "3.11"), bad])
    done = CliRunner().invoke(cli.app, ["doctor"])
    assert done.exit_code == 1
    text = " ".join(done.output.split())
    assert "ok python 3.11 fail kernel there is [none] -> Install [one]. 1 failed:" in text


def test_what_does_not_answer_needs_no_library_to_say_so():
    code = "import sys; import osnb.doctor; print({x.split('.')[0] for x in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(re.findall(r"'(\w+)'", done.stdout))
    assert not loaded & {"torch", "pandas", "numpy", "rich", "typer", "jupyter_client", "yaml"}


# Broken ones


@pytest.mark.slow
def test_torch_missing(without):
    code, lines = ask(python=without(r"torch(-|$|gen)"))
    assert (code, states(lines, "fail")) == (1, ["versions", "torch"])
    assert lines["torch"]["found"] == "ModuleNotFoundError: No module named 'torch'"
    assert "pip install -r" in lines["torch"]["advice"]
    assert lines["gpu"]["state"] == "warn"


@pytest.mark.slow
def test_no_kernel(without):
    code, lines = ask(python=without(r"ipykernel"), JUPYTER_PATH="", JUPYTER_DATA_DIR="/nowhere")
    assert (code, states(lines, "fail")) == (1, ["versions", "kernel"])
    assert lines["kernel"]["found"] == "there is no kernel called python3"
    assert "-m ipykernel install --sys-prefix" in lines["kernel"]["advice"]


@pytest.mark.slow
def test_even_the_command_line_s_own_libraries_may_be_missing(without):
    python = without(r"(pandas|typer|rich|jupyter_client|jupyterlab)(-|$)")
    done = subprocess.run(
        [python, *PLAIN], capture_output=True, text=True, env=environment(), check=False
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert (
        "fail  versions             not installed: jupyterlab, pandas, rich, typer" in done.stdout
    )
    assert "No module named 'jupyter_client'" in done.stdout
    assert "JupyterLab is not installed" in done.stdout


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["no-such-python", "{connection_file}"], "FileNotFoundError|No such file"),
        (
            [sys.executable, "-c", "raise SystemExit(3)"],
            "RuntimeError: Kernel died",
        ),
    ],
)
@pytest.mark.slow
def test_a_kernel_that_does_not_start(tmp_path, monkeypatch, argv, reason):
    spec = tmp_path / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps({"argv": argv, "display_name": "broken", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    line = processes.kernel()
    assert line.state == doctor.FAIL
    assert re.search(reason, line.found)
    assert "jupyter kernelspec list" in line.advice


def test_a_kernel_that_computes_nothing_is_no_kernel(monkeypatch):
    monkeypatch.setattr(processes, "ask", lambda name: {"answer": "", "argv": "sh"})
    assert processes.kernel().state == doctor.FAIL


@pytest.mark.slow
def test_a_machine_that_cannot_reach_itself_is_not_ready():
    words = ["unshare", "--net"]
    if not shutil.which("unshare") or subprocess.run([*words, "true"]).returncode:
        pytest.skip("a network of one's own needs root on Linux")
    code = """
from osnb.doctor import processes
processes.LIMIT, processes.AGAIN = 5.0, 6.0
print(*processes.kernel(), sep="\\n")"""
    done = subprocess.run(
        [*words, sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
    )
    _, state, found, advice = done.stdout.splitlines()
    assert state == doctor.FAIL
    assert re.fullmatch(r"python3 gave no answer within [35] s, and no answer within [46] s", found)
    assert "127.0.0.1" in advice


def test_what_gives_no_answer_is_asked_once_more_with_more_time(monkeypatch):
    answers = {processes.LIMIT: {"slow": "no answer within 9 s"}, processes.AGAIN: {"answer": "2"}}
    monkeypatch.setattr(processes, "once", lambda name, limit: answers[limit] | {"argv": "sh"})
    assert processes.kernel().state == doctor.OK
    assert processes.AGAIN >= 3 * processes.LIMIT


@pytest.mark.parametrize("check", [processes.kernel, processes.torch])
def test_what_never_answers_is_not_known_and_so_not_ready(monkeypatch, check):
    monkeypatch.setattr(processes, "once", lambda name, limit: {"slow": f"none in {limit:g} s"})
    lines = check() if check is processes.torch else [check()]
    assert doctor.failed(lines)
    assert lines[0].found.endswith("none in 9 s, and none in 30 s")
    assert "run osnb doctor again" in lines[0].advice


def test_an_answer_is_asked_for_only_once(monkeypatch):
    asked = []
    monkeypatch.setattr(processes, "once", lambda *given: asked.append(given) or {"answer": "2"})
    processes.ask("kernel")
    assert asked == [("kernel", processes.LIMIT)]


@pytest.mark.slow
def test_a_read_only_project(elsewhere):
    words = mounted("read-only", elsewhere)
    code, lines = ask(*words, PYTHONPATH=str(elsewhere))
    failed = [f"write: {name}" for name in ("project folder", "runs/", "figures/")]
    assert (code, states(lines, "fail")) == (1, failed)
    assert lines[failed[0]]["found"] == f"the file system is read-only: {elsewhere}"
    assert "OSNB_OUT" in lines[failed[0]]["advice"]


@pytest.mark.slow
def test_a_read_only_project_whose_results_go_elsewhere_is_ready(elsewhere, tmp_path):
    words = mounted("read-only", elsewhere)
    code, lines = ask(*words, PYTHONPATH=str(elsewhere), OSNB_OUT=str(tmp_path / "new" / "out"))
    assert (code, states(lines, "fail")) == (0, [])
    assert lines["write: project folder"]["state"] == "warn"
    assert lines["write: OSNB_OUT"]["found"].endswith("out, not made yet")
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_a_full_disk(tmp_path):
    (tmp_path / "out").mkdir()
    words = mounted("full", tmp_path / "out")
    code, lines = ask(*words, OSNB_OUT=str(tmp_path / "out"))
    names = [f"write: {name}" for name in ("OSNB_OUT", "runs/", "figures/")]
    assert (code, states(lines, "fail")) == (1, ["disk", *names])
    assert lines["write: OSNB_OUT"]["found"] == f"the disk is full: {tmp_path / 'out'}"
    assert "Free at least" in lines["disk"]["advice"]


def test_a_file_in_the_place_of_a_folder(tmp_path, monkeypatch):
    (tmp_path / "figures").touch()
    monkeypatch.setenv("OSNB_OUT", str(tmp_path))
    lines = {line.name: line for line in places.write_access()}
    assert lines["write: runs/"].state == doctor.OK
    assert lines["write: figures/"].state == doctor.FAIL
    assert lines["write: figures/"].found.startswith("a file stands where a folder should be")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EACCES, "no permission"),
        (errno.EROFS, "the file system is read-only"),
        (errno.ENOSPC, "the disk is full"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_what_the_system_refuses_is_said_in_words(tmp_path, monkeypatch, number, words):
    def refuse(folder):
        raise OSError(number, "")

    monkeypatch.setattr(places, "_probe", refuse)
    monkeypatch.setenv("OSNB_OUT", str(tmp_path))
    assert {line.found.partition(":")[0] for line in places.write_access()} == {words}


def test_checking_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("OSNB_OUT", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    places.write_access()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def lock(project, monkeypatch):
    """A function that writes a lock beside a package that needs numpy."""
    (project.folder / "pyproject.toml").write_text('[project]\ndependencies = ["numpy>=2"]\n')
    monkeypatch.setattr(repro, "PACKAGE", project.folder / "osnb")
    monkeypatch.setattr(versions, "installed", lambda: {"numpy": "2.4.6", "pytest": "9.0"})
    return (project.folder / "requirements.lock").write_text


def test_versions_as_locked(lock):
    lock("# comment\nNumPy==2.4.6\n\npytest==9.0\n")
    assert versions.lock() == doctor.Line("versions", doctor.OK, "all 2 of requirements.lock")


def test_another_version_is_a_warning(lock):
    lock("numpy==2.0.0\npytest==9.0\n")
    line = versions.lock()
    assert (line.state, line.found) == (doctor.WARN, "numpy 2.4.6 instead of 2.0.0")
    assert "pip install -r" in line.advice


def test_a_missing_tool_is_a_warning_a_missing_dependency_a_failure(lock, monkeypatch):
    lock("numpy==2.4.6\npytest==9.0\nruff==0.17.5\n")
    assert versions.lock()[1:3] == (doctor.WARN, "not installed: ruff")
    monkeypatch.setattr(versions, "installed", dict)
    assert versions.lock()[1:3] == (doctor.FAIL, "not installed: numpy")


def test_a_broken_lock_is_one_line_that_fails(lock):
    lock("numpy\n")
    (line,) = doctor.lines.guarded("versions", versions.lock)
    assert line.state == doctor.FAIL
    assert "needs lines such as numpy==2.4.6; got 'numpy'" in line.found


def test_no_lock_is_a_warning(lock):
    assert versions.lock().state == doctor.WARN


def test_what_is_installed_counts_without_the_suffix_of_its_build():
    found = versions.installed()
    assert found["torch"].replace(".", "").isdigit()
    assert found["ipython-pygments-lexers"]


def test_an_old_python_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr(versions, "OLDEST", (9, 9))
    assert versions.python().state == doctor.FAIL
    assert "Python 9.9" in versions.python().advice


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "ended with code -9"),
        ("print('hello')\nraise SystemExit('libcudart is missing')", "libcudart is missing"),
        ("import time; time.sleep(60)", "no answer within 1 s"),
    ],
)
def test_a_crash_or_a_hang_of_what_is_tried_is_a_line(tmp_path, monkeypatch, code, word):
    (tmp_path / "sitecustomize.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = processes.once("torch", limit=1)
    assert word in found.get("error", found.get("slow", ""))


def test_a_torchvision_that_does_not_match_is_named(monkeypatch):
    found = {"torch": "2.8.0", "torchvision": "", "device": "", "error": "RuntimeError: no nms"}
    monkeypatch.setattr(processes, "ask", lambda name: found)
    torch, gpu = processes.torch()
    assert (torch.state, gpu.state) == (doctor.FAIL, doctor.OK)
    assert torch.found == "torch 2.8.0 loads, torchvision does not: RuntimeError: no nms"


def test_a_gpu_is_named(monkeypatch):
    found = {"torch": "2.8.0", "torchvision": "0.23", "device": "NVIDIA H100", "error": ""}
    monkeypatch.setattr(processes, "ask", lambda name: found)
    assert processes.torch()[1] == doctor.Line("gpu", doctor.OK, "NVIDIA H100")


def test_an_error_inside_is_json(capsys, monkeypatch):
    monkeypatch.setitem(inside.ASKED, "torch", lambda patience: 1 / 0)
    inside.main("torch", 1.0)
    assert json.loads(capsys.readouterr().out)["kind"] == "ZeroDivisionError"


def test_data_sets_that_are_there_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("OSNB_DATA", str(tmp_path))
    assert places.data().found.startswith("no optional data set")
    (tmp_path / "tiny-imagenet-200").mkdir()
    (tmp_path / "cifar10_jpeg.parquet").touch()
    said = places.data()
    assert said.state == doctor.OK
    assert said.found.startswith("Tiny ImageNet, CIFAR-10 and CIFAR-100 in ")


def test_a_data_folder_that_is_named_and_not_there_is_a_warning(tmp_path, monkeypatch):
    monkeypatch.setenv("OSNB_DATA", str(tmp_path / "absent"))
    assert places.data().state == doctor.WARN


def test_the_oldest_python_is_the_same_wherever_it_is_stated():
    root = repro.PACKAGE.parent
    oldest = ".".join(map(str, versions.OLDEST))
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">={oldest}"
    makefile = (root / "Makefile").read_text()
    assert f"sys.version_info < {versions.OLDEST}" in makefile
    assert f"this needs Python {oldest} or newer" in makefile


def test_every_locked_package_that_is_installed_takes_the_oldest_python():
    oldest = ".".join(map(str, versions.OLDEST))
    wanted = versions.locked(repro.PACKAGE.parent / "requirements.lock")
    needs = {
        f"{name} {wanted[name]}": each.metadata["Requires-Python"] or ""
        for each in metadata.distributions()
        if (name := versions.normal(each.metadata["Name"] or "")) in wanted
        and each.version.partition("+")[0] == wanted[name]
    }
    assert needs
    assert [name for name, text in needs.items() if not SpecifierSet(text).contains(oldest)] == []
