"""A project in a temporary folder, with the notebooks of tests/notebooks in it."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

# before torch is imported: tests run side by side, and threads that outnumber cores wait for
# each other
os.environ.setdefault("OMP_NUM_THREADS", "1")

# a shell ignores SIGINT in what it puts in the background, nohup SIGHUP, and children inherit that:
# the tests that send one would wait for ever
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

import browser

from osnb.base import workbook

FIXTURES = Path(__file__).parent / "notebooks"


class Project:
    """A folder that `workbook.root` takes for the project's."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.started = []
        (folder / "notebooks").mkdir(parents=True)
        (folder / "pyproject.toml").touch()

    def add(self, fixture: str, notebook: str) -> Path:
        """Put a fixture among the notebooks, under that name, which it calls NOTEBOOK."""
        path = self.folder / "notebooks" / f"{notebook}.ipynb"
        path.write_text((FIXTURES / f"{fixture}.ipynb").read_text().replace("NOTEBOOK", notebook))
        return path

    def write(self, notebook: str, text: str, run: str = "small") -> Path:
        """Write the params file of a run."""
        path = self.folder / "params" / notebook / f"{run}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def environment(self, **more: str) -> dict[str, str]:
        """For processes of their own: they find this project, and the package in it."""
        if not (self.folder / "osnb").exists():
            (self.folder / "osnb").symlink_to(workbook.PACKAGE)
        path = f"{self.folder}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}"
        own = {"PYTHONPATH": str(self.folder), "OSNB_OUT": str(self.folder)}
        return {**os.environ, **own, "PATH": path + os.environ["PATH"], **more}

    def start(self, *words, env: dict[str, str] | None = None, **options) -> subprocess.Popen:
        """`osnb WORDS` in a process of its own."""
        command = [sys.executable, "-c", "from osnb.book.cli import app; app()", *map(str, words)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        options = {"cwd": self.folder, **pipes, **options}
        process = subprocess.Popen(command, env=self.environment(**(env or {})), **options)
        self.started.append(process)
        return process

    def end(self):
        """End what a failed test left running, and close its pipes: the next test is not told."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
            for pipe in filter(None, (process.stdout, process.stderr)):
                pipe.close()


@pytest.fixture
def project(tmp_path, monkeypatch):
    made = Project(tmp_path / "project")
    monkeypatch.setattr(workbook, "root", lambda: made.folder)
    monkeypatch.setenv("OSNB_OUT", str(made.folder))
    yield made
    made.end()


@pytest.fixture(scope="session")
def shipped(tmp_path_factory):
    """A project with a paper's three runs, made once, and an archive of them beside it."""
    import finished

    from osnb.book import archive

    folder = tmp_path_factory.mktemp("shipped")
    with pytest.MonkeyPatch.context() as patch:
        made = Project(folder / "project")
        patch.setattr(workbook, "root", lambda: made.folder)
        patch.setenv("OSNB_OUT", str(made.folder))
        finished.paper(made)
        (made.folder / "requirements.lock").write_text("numpy==2.0\n")
        archive.pack(["*"], folder / "all.zip")
    return folder


@pytest.fixture
def packed(shipped, project, tmp_path):
    """An archive of a paper's three runs, which are still there in a project of the test's own."""
    shutil.copytree(shipped / "project", project.folder, dirs_exist_ok=True)
    return Path(shutil.copy(shipped / "all.zip", tmp_path))


@pytest.fixture
def no_official_hashes(monkeypatch):
    """The readers of CIFAR and SVHN do not ask for hashes that no made-up file can have."""
    from osnb.datasets.vision import torchvision

    there = lambda path, md5=None: os.path.isfile(path)  # noqa: E731
    monkeypatch.setattr(torchvision.datasets.cifar, "check_integrity", there)
    monkeypatch.setattr(torchvision.datasets.svhn, "check_integrity", there)


@pytest.fixture(scope="module")
def chromium():
    """A browser; of a module, since nobody else can use asyncio meanwhile."""
    with browser.launched() as launched:
        yield launched


@pytest.fixture
def page(chromium):
    """A page of a browser, see browser.py."""
    with browser.paged(chromium, **browser.VIEW) as page:
        yield page


def pytest_terminal_summary(terminalreporter):
    """Say loudly, at the end, that the tests which need a browser did not run."""
    skipped = terminalreporter.stats.get("skipped", [])
    if lost := [report for report in skipped if "test_browser" in report.nodeid]:
        line = f"WARNING: {len(lost)} browser tests did not run: no Chromium or Chrome was found"
        terminalreporter.write_line(line, red=True, bold=True)
