"""The set-up: pyproject.toml, requirements.lock and environment.yml say the same."""

import os
import re
import runpy
import subprocess
import tomllib
from types import SimpleNamespace

import nbval.kernel
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from osnb.base import workbook

ROOT = workbook.PACKAGE.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = [
    line for line in (ROOT / "requirements.lock").read_text().splitlines() if line[:1] not in "#"
]
VERSIONS = {canonicalize_name(line.split("==")[0]): line.split("==")[1] for line in LOCK}
EXTRAS = PROJECT["optional-dependencies"]
LOCKED = [x for name, texts in EXTRAS.items() if name not in ("croissant", "audit") for x in texts]
EXTERNAL = [x for x in LOCKED if not x.startswith("osnb[")]
RANGES = [Requirement(text) for text in [*PROJECT["dependencies"], *EXTERNAL]]
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
ENV = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL")}


def test_every_dependency_is_locked_within_its_range():
    for requirement in RANGES:
        locked = VERSIONS[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(locked), f"{requirement} does not admit {locked}"


def test_every_line_of_the_lock_is_a_name_and_one_public_version():
    for line in LOCK:
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*", line), line


def test_the_lock_has_the_build_backend_so_that_the_package_installs_without_a_network():
    backend = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    for requirement in map(Requirement, backend):
        assert requirement.specifier.contains(VERSIONS[requirement.name])


def test_the_ranges_admit_torch_from_2_8_to_the_newest():
    ranges = {requirement.name: requirement.specifier for requirement in RANGES}
    assert ranges["torch"].contains("2.8.0")
    assert ranges["torch"].contains("2.99.0")
    assert not ranges["torch"].contains("2.7.1")


def test_the_base_brings_no_torch_and_all_brings_every_extra_of_a_user():
    base = {Requirement(text).name for text in PROJECT["dependencies"]}
    assert not base & {"torch", "torchvision", "timm", "nbgrader", "sphinx"}
    (whole,) = map(Requirement, EXTRAS["all"])
    assert whole.extras == set(EXTRAS) - {"all", "test", "croissant", "audit"}


def test_conda_takes_a_python_that_the_package_admits():
    (python,) = [
        x.split("=")[1] for x in ENVIRONMENT if isinstance(x, str) and x.startswith("python")
    ]
    assert SpecifierSet(PROJECT["requires-python"]).contains(python)


def test_conda_installs_the_lock_and_then_this_package():
    (pip,) = [entry["pip"] for entry in ENVIRONMENT if isinstance(entry, dict)]
    assert pip == ["-r requirements.lock", "-e ."]
    assert "pip" in ENVIRONMENT


def planned(*words):
    """What make would do."""
    how = {"cwd": ROOT, "capture_output": True, "text": True, "check": True, "env": ENV}
    return subprocess.run(["make", "--dry-run", *words], **how).stdout


@pytest.mark.parametrize("goal", ["reproduce", "test", "quick", "lab", "outputs"])
def test_every_goal_sets_up_the_environment_first(goal):
    plan = planned("--always-make", goal)
    assert -1 < plan.find("-m venv .venv") < plan.find("requirements.lock") < len(plan)
    assert plan.rfind("> .venv/ready") < plan.rfind(".venv/bin/")


def test_every_notebook_is_checked_and_results_never_see_what_training_has_just_made():
    plan = planned("test")
    notebooks = re.findall(r"notebooks/\w+\.ipynb", plan)
    names = sorted(f"notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb"))
    assert sorted(notebooks) == names
    train, rest = plan.split('rm -rf "$OSNB_OUT/runs"')
    assert "_train.ipynb" not in rest
    assert "mktemp" in train


def test_kernels_of_nbval_take_no_port(monkeypatch):
    """Of two that start together one may be given a port that the other then takes."""

    def start_kernel(manager, **_):
        raise InterruptedError(manager.transport)

    monkeypatch.setattr("jupyter_client.manager.KernelManager.start_kernel", start_kernel)
    monkeypatch.setattr(nbval.kernel, "KernelManager", None)  # which is put back
    config, ends = runpy.run_path(f"{ROOT}/notebooks/conftest.py"), []
    config["pytest_configure"](SimpleNamespace(add_cleanup=ends.append))
    with pytest.raises(InterruptedError, match="ipc"):
        nbval.kernel.start_new_kernel(kernel_name="python3")
    ends.pop()()


def test_texts_are_held_against_scores_unless_these_are_known_to_be_others(tmp_path):
    plan = planned("test")
    (asked,) = set(re.findall(r"(OSNB_STRICT=\$\(.*echo 1\)) ", plan))
    assert plan.count(asked) == plan.count("--nbval-lax") == 2

    def strict():
        said = subprocess.run(
            ["bash", "-c", f"{asked}; echo $OSNB_STRICT"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            env=ENV | {"GIT_CEILING_DIRECTORIES": str(tmp_path.parent)},
        )
        return said.stdout.strip()

    (file := tmp_path / "figures" / "scores.csv").parent.mkdir()
    file.write_text("as committed")
    assert strict() == "1"  # an archive without history
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    assert strict() == "1"
    file.write_text("trained again")
    assert strict() == ""


@pytest.mark.parametrize(
    ("said", "code", "audited"),
    [
        ("No known vulnerabilities found", 0, True),
        ("Found 1 known vulnerability in 1 package", 1, True),
        ("ERROR:pip_audit._cli:torch: Dependency not found and could not be audited", 1, False),
        ("ERROR:pip_audit._cli:Couldn't connect to PyPI's vulnerability feed", 1, False),
    ],
)
def test_an_audit_passes_where_there_is_no_hole_and_says_where_nothing_was_audited(
    tmp_path, said, code, audited
):
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    (tmp_path / ".venv" / "ready").write_text(f"{tmp_path}\n")
    tool = tmp_path / ".venv" / "bin" / "pip-audit"
    tool.write_text(f'#!/bin/sh\necho "$@" > asked.txt\necho "{said}" >&2\nexit {code}\n')
    tool.chmod(0o755)
    made = subprocess.run(["make", "holes"], cwd=tmp_path, capture_output=True, text=True, env=ENV)
    assert bool(made.returncode) == bool(code)
    assert said in made.stdout
    assert ("not audited" in made.stdout) != audited
    assert "--strict" in (tmp_path / "asked.txt").read_text()


def make(folder, *words, path="", **tools):
    """`make WORDS` in a copy of the project's Makefile, with scripts under these names."""
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        (folder / name).write_text((ROOT / name).read_text())
    for name, text in tools.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    env = ENV | {"PATH": path + ENV["PATH"]}
    how = {"cwd": folder, "capture_output": True, "text": True, "env": env}
    return subprocess.run(["make", *words], **how)


def test_too_old_a_python_is_named_in_a_sentence_and_no_environment_is_touched(tmp_path):
    for there in (False, True):
        made = make(tmp_path, "quick", "PYTHONS=./python", python="exit 1")
        assert made.returncode == 2
        assert "needs Python 3.11.5 or newer" in made.stderr
        assert (tmp_path / ".venv").exists() == there
        (tmp_path / ".venv").mkdir(exist_ok=True)


def test_the_environment_of_another_is_moved_and_an_unfinished_one_made_anew(tmp_path):
    (tmp_path / ".venv" / "mine").mkdir(parents=True)
    for _ in range(2):  # pip is missing: neither is finished
        assert make(tmp_path, "quick", "PYTHONS=./python", python="exit 0").returncode == 2
        assert (tmp_path / ".venv.before" / "mine").exists()
        assert not (tmp_path / ".venv" / "half").exists()
        (tmp_path / ".venv" / "half").touch()
    (tmp_path / ".venv" / "ours").unlink()
    made = make(tmp_path, "quick", "PYTHONS=./python", python="exit 0")
    assert "move one of them away" in made.stderr
    assert (tmp_path / ".venv" / "half").exists()


def test_an_environment_that_is_active_is_none_to_make_another_with(tmp_path):
    tools = {".venv/bin/python3.11": "exit 0", "other/python3.11": "echo made by other; exit 0"}
    path = f"{tmp_path}/.venv/bin:{tmp_path}/other:"
    made = make(tmp_path, "quick", "PYTHONS=python3.11", path=path, **tools)
    assert "made by other" in made.stdout
    assert (tmp_path / ".venv.before" / "bin").exists()


def test_an_environment_that_make_made_is_never_anothers(tmp_path):
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "ready").write_text(f"{tmp_path}\n")
    os.utime(tmp_path / ".venv" / "ready", (1, 1))  # the lock is newer
    for _ in range(2):  # pip is missing
        make(tmp_path, "quick", "PYTHONS=./python", python="exit 0")
        assert not (tmp_path / ".venv.before").exists()


def test_a_folder_may_have_a_blank_in_its_name(tmp_path):
    folder = tmp_path / "with blank"
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "ready").write_text(f"{folder}\n")
    tools = {".venv/bin/osnb": "", ".venv/bin/python": ""}
    tools[".venv/bin/jupyter"] = 'echo "$OSNB_OUT" >out; echo "$2" >root'
    assert make(folder, "lab", **tools).returncode == 0
    assert (folder / "out").read_text() == f"{folder}/learn\n"
    assert (folder / "root").read_text() == f"--ServerApp.root_dir={folder}/learn\n"


def test_seeds_that_make_does_not_know_are_refused():
    assert "--repeats" in planned("reproduce", "SEEDS=all")
    with pytest.raises(subprocess.CalledProcessError) as refused:
        planned("reproduce", "SEEDS=3")
    assert "SEEDS is all" in refused.value.stderr
