"""The pages that people read first: short, their links lead somewhere, their Python runs."""

import re
import subprocess
import sys

import pytest
import typer

from osnb.base import workbook
from osnb.book.cli import app
from osnb.evidence import gallery

ROOT = workbook.root()
NAMES = ("README.md", "CONTRIBUTING.md", "figures/README.md", "osnb/data/quickdraw/README.md")
DOCS = sorted((ROOT / "osnb" / "docs").rglob("*.md"))
NAMES += tuple(path.relative_to(ROOT).as_posix() for path in DOCS)
PAGES = {name: (ROOT / name).read_text(encoding="utf8") for name in NAMES}
BLOCKS = re.findall(r"```python\n(.*?)```", PAGES["osnb/docs/your-own.md"], re.DOTALL)


def test_the_pages_show_python():
    assert BLOCKS


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_of_python_runs_by_itself_and_says_numbers(block, tmp_path):
    command = [sys.executable, "-W", "error", "-c", block]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(re.findall(r"Interval\(value=", done.stdout)) == 3
    assert re.search(r"0\.\d+\n$", done.stdout)  # the p-value


def test_the_front_page_is_short_and_has_ten_results():
    rows = gallery.block(PAGES["README.md"], "results")
    assert len(PAGES["README.md"].split()) <= 600
    assert len(rows.splitlines()) == 2 + 10


@pytest.mark.parametrize("name", PAGES)
def test_files_and_commands_that_are_named_exist(name):
    for file in re.findall(r"params/[\w/.]+\.yaml", PAGES[name]):
        assert (ROOT / file).is_file() or "mine" in file, file
    for place in re.findall(r"`((?:osnb|tests|notebooks)/[\w./-]+)`", PAGES[name]):
        assert (ROOT / place).exists() or "mine" in place, place
    known = {command.name or command.callback.__name__ for command in app.registered_commands}
    known |= {group.name for group in app.registered_groups}
    named = {word for _, word in re.findall(r"(^|`)osnb ([a-z]+)", PAGES[name], re.MULTILINE)}
    assert named <= known


@pytest.mark.parametrize("name", [*PAGES, "notebooks/LECTURER.md", "notebooks/README.md"])
def test_options_that_are_named_exist(name):
    text = (ROOT / name).read_text(encoding="utf8").replace("\\\n", " ")
    commands = typer.main.get_command(app).commands
    for word, rest in re.findall(r"(?:^|`)osnb ([a-z]+)([^`\n#]*)", text, re.MULTILINE):
        params = getattr(commands.get(word), "params", [])
        there = {option for param in params for option in (*param.opts, *param.secondary_opts)}
        assert {*re.findall(r" (--[a-z-]+)", rest)} <= there | {"--help"}, word + rest


@pytest.mark.parametrize("name", ["README.md", "osnb/book/report/pages/index.md"])
def test_google_is_named_as_its_licence_asks(name):
    text = " ".join((ROOT / name).read_text(encoding="utf8").split())
    licence = r"\[?Creative Commons Attribution 4\.0 International"
    assert re.search(rf"\bGoogle, Inc\. under the {licence}", text)
