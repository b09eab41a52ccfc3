"""What only some systems have, taken away: imports and runs do without it."""

import subprocess
import sys

import pytest

from osnb.base import workbook
from osnb.book import record

# what macOS or Windows lacks, and neither subprocess nor filelock of this system needs
MISSING = """
import os, signal, sys
import psutil  # which needs `resource` on this system alone

for module, names in ((os, LACKS), (signal, ("SIGHUP", "SIGCHLD", "pthread_sigmask"))):
    for name in names:
        delattr(module, name)
sys.modules["resource"] = None
""".replace("LACKS", repr(("fork", "setsid", "killpg", "sched_getaffinity", "getloadavg")))


@pytest.fixture
def poor(project):
    """A project whose processes all start without these names."""
    (project.folder / "sitecustomize.py").write_text(MISSING)
    return project


def test_every_module_is_imported(poor):
    files = sorted(file.relative_to(workbook.PACKAGE.parent) for file in modules())
    names = [".".join(file.with_suffix("").parts).removesuffix(".__init__") for file in files]
    assert {"osnb.book.kernel", "osnb.book.batch", "osnb.train.ranks"} <= {*names}
    code = f"import os\nassert not hasattr(os, 'fork')\nfor name in {names}:\n    __import__(name)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=poor.environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def modules():
    return [f for f in workbook.PACKAGE.rglob("*.py") if "new" not in f.parts]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_is_made_and_one_that_dies_is_told(poor, workers):
    poor.add("works", "11_works")
    poor.add("raises_in_third_cell", "12_raises")
    files = [poor.write("11_works", "run: small\n"), poor.write("12_raises", "run: small\n")]
    with poor.start("run", *files, "--workers", workers) as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == 1, (out, err)
    ends = {f: record.read(poor.folder / "runs" / f / "small") for f in ("11_works", "12_raises")}
    assert [end["state"] for end in ends.values()] == ["done", "failed"]
    assert ends["11_works"]["used"]["memory"] > 1e6
    assert "Traceback" not in err
