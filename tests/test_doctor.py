"""`osnb doctor` on a healthy set-up and on broken ones, most of them broken for real.

Packages are missing in environments of their own: a venv whose packages are links to those of
this one, but for some. Read-only folders and full disks are mounts that only one process sees.
"""

import ast
import json
import re
import shutil
import sys
import sysconfig
import tempfile
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from coursework import ran
from packaging.specifiers import SpecifierSet
from typer.testing import CliRunner

from osnb.base import workbook
from osnb.teach import doctor

OWN = {"PYTHONPATH": str(workbook.PACKAGE.parent), "OSNB_OUT": "", "OSNB_DATA": ""}
MOUNTS = {
    "read-only": 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"',
    "full": 'mount -t tmpfs -o size=32k osnb "$0" && exec "$@"',
}


def states(lines, state):
    """Names of the lines in that state."""
    return [line.name for line in lines if line.state == state]


def checked(*checks, before=(), python=sys.executable, **more):
    """The lines of these checks, by a process with `before` put before python."""
    code = "import json, sys\nfrom osnb.teach import doctor\n"
    code += "lines = [x for name in sys.argv[1:] for x in doctor.guarded(getattr(doctor, name))]\n"
    code += "print(json.dumps(lines))"
    done = ran(*before, python, "-P", "-c", code, *checks, **(OWN | more))
    assert (done.returncode, done.stderr) == (0, "")
    return [doctor.Line(*line) for line in json.loads(done.stdout)]


@pytest.fixture
def without(tmp_path):
    """A function: python of a new environment that lacks the packages matching a pattern."""

    def python_without(pattern):
        folder = str(tmp_path / "venv")
        assert ran(sys.executable, "-m", "venv", "--without-pip", folder).returncode == 0
        paths = {"base": folder, "platbase": folder}
        there = Path(sysconfig.get_path("purelib", "venv", vars=paths))
        for file in Path(sysconfig.get_path("purelib")).iterdir():
            if not re.match(pattern, file.name):
                (there / file.name).symlink_to(file)
        return f"{folder}/bin/python"

    return python_without


@pytest.fixture
def elsewhere(tmp_path):
    """A project in a folder of its own, by links."""
    folder = tmp_path / "a project"
    (folder / "notebooks").mkdir(parents=True)
    (folder / "pyproject.toml").touch()
    (folder / "osnb").symlink_to(workbook.PACKAGE)
    return folder


def unshared(*words):
    """Words before a command that take something of the machine from it; else skip."""
    words = ["unshare", *words]
    if not shutil.which("unshare") or ran(*words, "true").returncode:
        pytest.skip("this needs root on Linux")
    return words


def mounted(kind, folder):
    """Words before a command that see the folder read-only, or on a full disk; else skip."""
    return unshared("--mount", "sh", "-c", MOUNTS[kind], str(folder))


# A healthy set-up


@pytest.mark.slow
def test_a_healthy_set_up_is_ready():
    command = "from osnb.book.cli import app; app()"
    done = ran(sys.executable, "-P", "-c", command, "doctor", "--json", **OWN)
    answer = json.loads(done.stdout)
    lines = [doctor.Line(**line) for line in answer["lines"]]
    assert (done.returncode, answer["ready"], states(lines, "fail")) == (0, True, [])
    wanted = {"python", "project", "versions", "torch", "gpu", "kernel", "disk"}
    wanted |= {f"write: {name}" for name in ("project folder", "runs/", "temporary folder")}
    assert wanted <= {line.name for line in lines}
    assert not [line for line in lines if (line.state == "ok") != (line.advice == "")]


def test_the_table_shows_states_what_was_found_and_advice(monkeypatch):
    from osnb.book import cli

    bad = doctor.Line("kernel", doctor.FAIL, "there is [none]", "Install [one].")
    monkeypatch.setattr(doctor, "examine", lambda: [doctor.Line("python", doctor.OK, "3.11"), bad])
    done = CliRunner().invoke(cli.app, ["doctor"])
    assert done.exit_code == 1
    text = " ".join(done.output.split())
    assert "ok python 3.11 fail kernel there is [none] -> Install [one]. 1 failed:" in text


# Broken ones


@pytest.mark.slow
def test_even_the_command_line_s_own_libraries_may_be_missing(without):
    python = without(r"(torch|pandas|typer|ipykernel|jupyter_client|jupyterlab)(-|$|gen)")
    done = ran(python, "-m", "osnb.teach.doctor", **OWN)
    assert (done.returncode, done.stderr) == (1, "")
    assert "fail  versions             not installed: ipykernel, jupyterlab, pandas" in done.stdout
    assert "fail  torch                ModuleNotFoundError: No module named 'torch'" in done.stdout
    assert "No module named 'jupyter_client'" in done.stdout
    assert "pip install -r" in done.stdout


@pytest.mark.slow
def test_no_kernel(without):
    python = without(r"ipykernel")
    (line,) = checked("kernel", python=python, JUPYTER_PATH="", JUPYTER_DATA_DIR="/nowhere")
    assert line.state == doctor.FAIL
    assert "No such kernel named python3" in line.found
    assert "-m ipykernel install --sys-prefix" in line.advice


@pytest.mark.slow
@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["no-such-python", "{connection_file}"], "FileNotFoundError|No such file"),
        ([sys.executable, "-c", "raise SystemExit(3)"], "RuntimeError: Kernel died"),
    ],
)
def test_a_kernel_that_does_not_start(tmp_path, monkeypatch, argv, reason):
    spec = tmp_path / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps({"argv": argv, "display_name": "broken", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    line = doctor.kernel()
    assert line.state == doctor.FAIL
    assert re.search(reason, line.found)
    assert "jupyter kernelspec list" in line.advice


def test_a_machine_that_cannot_reach_itself_is_not_ready(monkeypatch):
    words = unshared("--net")
    code = "from osnb.teach import doctor; print(doctor.ask('kernel', 6.0))"
    done = ran(*words, sys.executable, "-c", code)
    answer = {"slow": done.stdout[10:-3]}
    assert re.fullmatch(r"no answer within [46] s", answer["slow"])
    monkeypatch.setattr(doctor, "ask", lambda name: answer)
    assert doctor.kernel().state == doctor.FAIL
    assert "127.0.0.1" in doctor.kernel().advice


def test_a_busy_machine_is_warned_and_not_failed_for_torch(monkeypatch):
    monkeypatch.setattr(doctor, "ask", lambda name: {"slow": "no answer within 60 s"})
    torch, gpu = doctor.torch()
    assert (torch.state, gpu.state) == (doctor.WARN, doctor.WARN)
    assert torch.found == "no answer within 60 s"
    assert "run osnb doctor again" in torch.advice
    monkeypatch.setattr(doctor, "ask", lambda name: {"error": "ended with code -9"})
    assert doctor.torch()[0].state == doctor.FAIL


@pytest.mark.parametrize(
    ("code", "limit", "state", "word"),
    [
        ("import os; os.kill(os.getpid(), 9)", 600, "error", "ended with code -9"),
        (
            "print('a')\nraise SystemExit('no libcudart')",
            600,
            "error",
            "code 1: SystemExit: no libcudart",
        ),
        ("import time; time.sleep(60)", 1, "slow", "no answer within 1 s"),
    ],
)
def test_a_crash_or_a_hang_of_what_is_tried_is_an_answer(
    tmp_path, monkeypatch, code, limit, state, word
):
    (tmp_path / "sitecustomize.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    answer = doctor.ask("torch", limit=limit)
    assert answer.keys() == {state}
    assert word in answer[state]


def test_an_error_of_what_is_tried_is_an_answer(monkeypatch):
    monkeypatch.setitem(doctor.TRIALS, "torch", lambda patience: 1 / 0)
    assert doctor.answer("torch", 1.0) == {"error": "ZeroDivisionError: division by zero"}


@pytest.mark.parametrize(
    ("change", "torch", "gpu"),
    [
        ({}, "torch 2.8.0, torchvision 0.23", "none"),
        ({"device": "NVIDIA H100"}, "torch 2.8.0, torchvision 0.23", "NVIDIA H100"),
        ({"error": "RuntimeError: no nms"}, "torchvision does not: RuntimeError: no nms", "none"),
    ],
)
def test_torch_is_held_against_torchvision_and_a_gpu_is_named(monkeypatch, change, torch, gpu):
    answer = {"torch": "2.8.0", "torchvision": "0.23", "device": "cpu", "error": ""} | change
    monkeypatch.setattr(doctor, "ask", lambda name: answer)
    lines = doctor.torch()
    assert doctor.failed(lines) == ("error" in change)
    assert lines[0].found.endswith(torch)
    assert lines[1].found.startswith(gpu)


def test_a_read_only_project_is_ready_only_if_results_go_elsewhere(elsewhere, tmp_path):
    words = mounted("read-only", elsewhere)
    there = {"PYTHONPATH": str(elsewhere), "cwd": elsewhere}
    lines = checked("write_access", before=words, **there)
    names = [f"write: {name}" for name in ("project folder", "runs/", "figures/")]
    assert states(lines, "fail") == names
    assert lines[0].found == f"Read-only file system: {elsewhere}"
    assert "OSNB_OUT" in lines[0].advice
    out = str(tmp_path / "new" / "out")
    lines = checked("write_access", before=words, **there, OSNB_OUT=out)
    assert (states(lines, "fail"), states(lines, "warn")) == ([], names[:1])
    assert not (tmp_path / "new").exists()


def test_a_full_disk(tmp_path):
    (tmp_path / "out").mkdir()
    words = mounted("full", tmp_path / "out")
    lines = checked("write_access", "disk", before=words, OSNB_OUT=str(tmp_path / "out"))
    names = [f"write: {name}" for name in ("OSNB_OUT", "runs/", "figures/")]
    assert states(lines, "fail") == [*names, "disk"]
    assert lines[1].found == f"No space left on device: {tmp_path / 'out'}"


def test_a_file_in_the_place_of_a_folder_and_nothing_left_behind(tmp_path, monkeypatch):
    (tmp_path / "figures").touch()
    monkeypatch.setenv("OSNB_OUT", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert states(doctor.write_access(), "fail") == ["write: figures/"]
    assert [path.name for path in tmp_path.iterdir()] == ["figures"]


def test_results_are_tried_where_runs_write_them(tmp_path, monkeypatch):
    monkeypatch.setenv("OSNB_OUT", "")
    monkeypatch.chdir(tmp_path)
    project = workbook.root()
    (tmp_path / "runs").mkdir()
    found = {line.name: line.found.partition(",")[0] for line in doctor.write_access()}
    assert found["write: runs/"] == str(tmp_path / "runs")
    assert found["write: project folder"] == str(project)
    assert doctor.disk()[0].found.endswith(str(tmp_path))
    (tmp_path / "runs").rmdir()
    assert doctor.disk()[0].found.endswith(str(project))
    installed = tmp_path / "site-packages" / "project"  # no clone: what is installed is not written
    monkeypatch.setattr(workbook, "INSTALLED", installed)
    monkeypatch.setattr(workbook, "root", lambda: installed)
    assert doctor.disk()[0].found.endswith(str(tmp_path))
    installed.mkdir(parents=True)

    temporary = tempfile.NamedTemporaryFile

    def refused(*, dir, prefix):
        if dir == installed:
            raise PermissionError(13, "Permission denied")
        return temporary(dir=dir, prefix=prefix)

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refused)
    assert states(doctor.write_access(), "fail") == []
    assert states(doctor.write_access(), "warn") == ["write: project folder"]
    monkeypatch.setattr(workbook, "root", lost)
    assert doctor.disk()[0].found.endswith(str(tmp_path))


def lost():
    raise FileNotFoundError("no project")


@pytest.mark.parametrize(
    ("lock", "here", "state", "words"),
    [
        ("# comment\nNumPy==2.4.6\n\npytest==9.0\n", {}, "ok", "all 2 of requirements.lock"),
        ("numpy==2.0.0\npytest==9.0\n", {}, "warn", "numpy 2.4.6 instead of 2.0.0"),
        ("numpy==2.4.6\nruff==0.17.5\n", {}, "warn", "not installed: ruff"),
        ("numpy==2.4.6\nruff==0.17.5\n", {"numpy": None}, "fail", "not installed: numpy"),
        ("numpy\n", {}, "fail", "needs lines such as numpy==2.4.6; got 'numpy'"),
        (None, {}, "warn", "there is no requirements.lock"),
    ],
)
def test_installed_versions_are_held_against_the_lock(
    project, monkeypatch, lock, here, state, words
):
    (project.folder / "pyproject.toml").write_text('[project]\ndependencies = ["numpy>=2"]\n')
    if lock:
        (project.folder / "requirements.lock").write_text(lock)
    here = {"numpy": "2.4.6", "NumPy": "2.4.6", "pytest": "9.0"} | here
    monkeypatch.setattr(workbook, "PACKAGE", project.folder / "osnb")
    monkeypatch.setattr(doctor, "installed", lambda name: here.get(name) or "")
    (line,) = doctor.guarded(doctor.versions)
    assert (line.name, line.state) == ("versions", state)
    assert words in line.found
    assert line.advice or state == "ok"


def test_what_is_installed_counts_without_the_suffix_of_its_build_however_it_is_spelled():
    assert doctor.installed("torch").replace(".", "").isdigit()
    assert doctor.installed("IPython_pygments.lexers") == doctor.installed(
        "ipython-pygments-lexers"
    )
    assert doctor.installed("ipython-pygments-lexers")
    assert doctor.installed("no-such-package") == ""


def test_an_old_python_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr(doctor, "OLDEST", (9, 9))
    assert doctor.python().state == doctor.FAIL
    assert "Python 9.9" in doctor.python().advice


def test_a_python_that_cannot_read_the_package_is_told_what_to_install():
    ast.parse(Path(doctor.__file__).read_text(), feature_version=(3, 8))
    code = "import runpy, sys; sys.version_info = (3, 9, 2); sys.modules['osnb.base'] = None\n"
    code += "runpy.run_module('osnb.teach.doctor', run_name='__main__')"
    done = ran(sys.executable, "-P", "-c", code, **OWN)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(f". {doctor.newer()}\n")
    assert "Install Python 3.11.5 or newer" in done.stderr


def test_the_oldest_python_is_the_same_wherever_it_is_stated_and_serves_the_lock():
    root = workbook.PACKAGE.parent
    oldest = ".".join(map(str, doctor.OLDEST))
    stated = tomllib.loads((root / "pyproject.toml").read_text())["project"]["requires-python"]
    assert stated == f">={oldest}"
    assert f"sys.version_info < {doctor.OLDEST}" in (root / "Makefile").read_text()
    wanted = doctor.locked(root / "requirements.lock")
    same = [name for name, version in wanted.items() if doctor.installed(name) == version]
    needs = {name: metadata.metadata(name).get("Requires-Python") or "" for name in same}
    assert needs
    assert [name for name, text in needs.items() if not SpecifierSet(text).contains(oldest)] == []
