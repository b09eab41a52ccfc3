"""What the README tells to type into Python runs as it stands."""

import re
import subprocess
import sys

import pytest

from osnb.base import workbook

BLOCKS = re.findall(r"```python\n(.*?)```", (workbook.root() / "README.md").read_text(), re.DOTALL)


def test_the_readme_shows_python():
    assert BLOCKS


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_of_the_readme_runs_by_itself_and_says_numbers(block, tmp_path):
    command = [sys.executable, "-W", "error", "-c", block]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(re.findall(r"Interval\(value=", done.stdout)) == 3
    assert re.search(r"0\.\d+\n$", done.stdout)  # the p-value
