"""What needs a GPU, on a pretended one: see `tests/pretended`."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from osnb.base import workbook
from tests import pretended

RUN = """
import sys
from pathlib import Path
from tests.pretended import load
load(Path(sys.argv[1]))
import pytest
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *sys.argv[2:]]))
"""


TORCH = Path(find_spec("torch").origin).parent
REAL = [*(TORCH / "lib").glob("*torch_cuda*")]  # which says itself that there is a GPU


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
@pytest.mark.skipif(bool(REAL), reason="needs torch without CUDA")
@pytest.mark.skipif(not version("torch").startswith("2.13."), reason="needs the torch of the lock")
def test_what_a_gpu_asks_of_the_code(tmp_path):
    tests = pretended.SOURCE.with_name("on_gpu.py")
    command = [sys.executable, "-c", RUN, pretended.library(tmp_path), tests]
    told = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(workbook.root())}
    done = subprocess.run(
        command, cwd=workbook.root(), env=os.environ | told, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
