"""Every table and figure of the papers, and what in figures/ reproduces it."""

import json
from itertools import cycle
from pathlib import Path

import pandas as pd

from osnb import repro
from osnb.catalogue import Catalogue
from osnb.gallery import kim2021, palechor2023, vaze2022

SIZES = ("mini", "tiny", "paper")
NOT_MADE = dict.fromkeys(("run", "size", "folder", "compared", "theirs", "ours"), "")
# function of a paper: (folder of a run, file) -> what is compared, the paper's value, ours
COMPARED = Catalogue(
    kim2021=kim2021.compared, palechor2023=palechor2023.compared, vaze2022=vaze2022.compared
)
PAPERS = {
    "palechor2023": "Palechor, Bhoumik, Günther: Large-Scale Open-Set Classification Protocols for "
    "ImageNet (WACV 2023)",
    "vaze2022": "Vaze, Han, Vedaldi, Zisserman: Open-Set Recognition: a Good Closed-Set Classifier "
    "is All You Need? (ICLR 2022)",
    "kim2021": "Kim, Koo, Hwang: A Unified Benchmark for the Unknown Detection Capability of Deep "
    "Neural Networks (Expert Systems with Applications, 2023)",
}
READING = {  # how to read the numbers compared
    "palechor2023": "Three numbers are those of P1, P2 and P3; S is softmax, EOS entropic loss.",
}


def artefacts(*bases: Path) -> pd.DataFrame:
    """Each part of each artefact, once per run that made it, or once alone if none did.

    Args:
        bases: folders that hold figures/; a run in a later one takes an earlier one's place.

    Returns:
        paper, artefact, kind, title, part (such as Table 2a), notebook, file (without suffix),
        run, size, folder, compared, theirs, ours; the last six are empty where no run made it.
    """
    rows = []
    # not among osnb/published, on whose files training runs depend
    for row in pd.read_csv(repro.PACKAGE / "gallery" / "artefacts.csv").itertuples():
        known = {name: getattr(row, name) for name in ("paper", "artefact", "kind", "title")}
        for notebook, file in _parts(row.notebook.split(), row.files.split()):
            part = file.capitalize().replace("_", " ")
            here = known | {"part": part, "notebook": notebook, "file": file}
            made = _made(row.paper, notebook, file, bases)
            rows += [here | each for each in made or [NOT_MADE]]
    return pd.DataFrame(rows)


def _parts(notebooks: list[str], files: list[str]) -> list[tuple[str, str]]:
    """Each file with its notebook: its own, or the one that makes all of them."""
    if len(notebooks) not in {1, len(files)}:
        raise ValueError(f"one notebook, or one per file of {files}; got {notebooks}")
    return (
        list(zip(cycle(notebooks), files))
        if len(notebooks) == 1
        else list(zip(notebooks, files, strict=True))
    )


def _made(paper: str, notebook: str, file: str, bases: tuple[Path, ...]) -> list[dict]:
    """The runs whose figures hold the file, the smallest size first, with what is compared."""
    stamps = {}
    for base in bases:
        for path in sorted((base / "figures" / notebook).glob(f"*/{file}.json")):
            stamp = json.loads(path.read_text())
            stamps[stamp["run"]] = (stamp["parameters"]["size"], path.parent)
    made = []
    for run, (size, folder) in sorted(stamps.items(), key=lambda x: (SIZES.index(x[1][0]), x[0])):
        found = dict(
            zip(("compared", "theirs", "ours"), COMPARED[paper](folder, file), strict=True)
        )
        made.append({"run": run, "size": size, "folder": folder} | found)
    return made
