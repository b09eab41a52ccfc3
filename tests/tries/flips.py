"""Single bits of the files of finished runs, and of what was published of them."""

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import finished
from conftest import Project

from osnb.base import workbook
from osnb.book import record, runs, verify
from osnb.train import checkpoint
from tests.tries import folder

FLIPS = 100


def _kind(file: Path) -> str:
    """Files of one kind are checked alike."""
    own = file.suffix in (".pt", ".ipynb") or file.name in ("run.json", "begun.json")
    return file.name if own or file.stem in ("history", "outputs") else file.suffix


def _wrong() -> int:
    return sum(row["verdict"] != "follows" for row in verify.verify())


def _checkpoints(directory: Path) -> None:
    """Give a run the checkpoints that a training leaves."""
    for name in (checkpoint.CURRENT, checkpoint.PREVIOUS, checkpoint.BEST):
        checkpoint.save({"model": {}, "epoch": 1}, directory / name)
    found = record.read(directory)
    record.write(directory, found | {"files": runs.beside(directory)})


def tries() -> Iterator[tuple[str, str]]:
    project = Project(folder() / "project")
    workbook.root = lambda: project.folder
    os.environ["OSNB_OUT"] = str(project.folder)
    directories = finished.paper(project)
    _checkpoints(directories[0])
    places = [*directories, *(project.folder / "figures").glob("*/*")]
    kinds: dict[str, list[Path]] = {}
    for file in sorted(file for place in places for file in place.iterdir() if file.is_file()):
        kinds.setdefault(_kind(file), []).append(file)
    before, draw = _wrong(), random.Random(0)
    for number in range(FLIPS):
        kind = sorted(kinds)[number % len(kinds)]
        file = draw.choice(kinds[kind])
        content = file.read_bytes()
        flipped, at = bytearray(content), draw.randrange(len(content))
        flipped[at] ^= 1 << draw.randrange(8)
        file.write_bytes(flipped)
        found = _wrong() > before
        file.write_bytes(content)
        yield f"{number}: {kind}, {file.parent.name}, byte {at}", "" if found else "not found"
    yield "nothing flipped", "" if _wrong() == before == 0 else f"{before} do not follow"
    yield "kinds", "" if len(kinds) >= 9 else json.dumps(sorted(kinds))
