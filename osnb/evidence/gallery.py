"""Every table and figure of the papers, and what in figures/ reproduces it.

What an artefact compares stands in its stamp, where its notebook saved it: `tables.headline`.
"""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from osnb.base import workbook

SIZES = ("mini", "tiny", "paper")
SHOWS = {"full": "show what the paper's does", "part": "are parts", "stand-in": "are stand-ins"}
SHOWS |= {"not made": "are not made"}
NOT_MADE = dict.fromkeys(("run", "size", "folder", "compared", "theirs", "ours"), "")
_TEXTS = pd.read_csv(workbook.PACKAGE / "evidence" / "papers.csv", index_col="paper").fillna("")
PAPERS = _TEXTS["title"].to_dict()
READING = _TEXTS["reading"].to_dict()  # how to read the numbers compared
LISTED = workbook.PACKAGE / "evidence" / "artefacts.csv"
MARKS = "<!-- {name}: start -->\n", "<!-- {name}: end -->"


def artefacts(*bases: Path) -> pd.DataFrame:
    """Each part of each artefact, once per run that made it, or once alone if none did.

    Args:
        bases: folders that hold figures/; a run in a later one takes an earlier one's place.

    Returns:
        paper, artefact, kind, title, shows and missing (as `artefacts.csv` has them, see `shown`),
        part (such as Table 2a), notebook, file (without suffix), run, size, folder, compared,
        theirs, ours; the last six are empty where no run made it.
    """
    rows = []
    for row in pd.read_csv(LISTED, keep_default_na=False).to_dict("records"):
        files, notebooks = row.pop("files").split(), row.pop("notebook").split()
        for notebook, file in zip(notebooks * (len(files) // len(notebooks)), files, strict=True):
            part = file.capitalize().replace("_", " ")
            here = row | {"part": part, "notebook": notebook, "file": file}
            rows += [here | run for run in _made(notebook, file, bases) or [NOT_MADE]]
    return pd.DataFrame(rows)


def _made(notebook: str, file: str, bases: tuple[Path, ...]) -> list[dict]:
    """The runs whose figures hold the file, the smallest size first, with what is compared."""
    runs = {}
    for base in bases:
        for path in sorted((base / "figures" / notebook).glob(f"*/{file}.json")):
            stamp = json.loads(path.read_text(encoding="utf8"))
            size, told = stamp["parameters"]["size"], headline(path.parent, file)
            runs[stamp["run"]] = {"run": stamp["run"], "size": size, "folder": path.parent} | told
    return sorted(runs.values(), key=lambda run: (SIZES.index(run["size"]), run["run"]))


def shown(made: pd.DataFrame) -> pd.DataFrame:
    """What each artefact shows of the paper's, a row an artefact.

    `artefacts.csv` says what it shows at best: full (all that the paper's does), part (some of it)
    or stand-in (the same of other images or of other trainings). A full one with an empty cell is
    a part, and what no run made is not made.

    Args:
        made: from `artefacts`.

    Returns:
        paper, artefact, shows (a key of `SHOWS`), cells (such as "53 of 56", the printed numbers
        that stand beside one of ours in the run that has most of them; empty of a figure, and
        where a table has no columns paper and ours) and missing (a sentence, or nothing).
    """
    rows = []
    for (paper, name), parts in made.groupby(["paper", "artefact"], sort=False):
        runs = parts.assign(cells=[_cells(run) for run in parts.itertuples()])
        filled, printed = map(sum, zip(*runs.groupby("part")["cells"].max(), strict=True))
        shows = parts["shows"].iloc[0]
        shows = "part" if shows == "full" and filled < printed else shows
        shows = shows if parts["run"].any() else "not made"
        cells = f"{filled} of {printed}" if printed else ""
        rows.append([paper, name, shows, cells, parts["missing"].iloc[0]])
    return pd.DataFrame(rows, columns=["paper", "artefact", "shows", "cells", "missing"])


def _cells(run: Any) -> tuple[int, int]:
    """Printed numbers of a run's table that have ours beside them, and all of them."""
    file = Path(run.folder) / f"{run.file}.csv"
    table = pd.read_csv(file) if run.run and file.is_file() else pd.DataFrame()
    if run.kind != "table" or not {"paper", "ours"} <= {*table}:
        return 0, 0
    printed = table["paper"].notna()
    return int(table.loc[printed, "ours"].notna().sum()), int(printed.sum())


def counted(shown: pd.DataFrame) -> str:
    """How many artefacts show what the paper's does, and how many do not, as a sentence."""
    counts = shown["shows"].value_counts()
    told = [f"{counts[key]} {words}" for key, words in SHOWS.items() if key in counts]
    return f"{len(shown)} artefacts: {', '.join(told)}."


def headline(folder: Path, file: str) -> dict[str, str]:
    """What an artefact compares, as text: compared, theirs and ours.

    Args:
        folder: of a run in figures/.
        file: the artefact's, without suffix; other stamps of the run may tell of it too.
    """
    groups: dict[str, list[dict]] = {}
    for path in sorted(folder.glob("*.json")):
        for row in json.loads(path.read_text(encoding="utf8")).get("headline") or []:
            if row.get("of", path.stem) == file:
                groups.setdefault(row["what"], []).append(row)
    theirs, ours = [], []
    for rows in groups.values():
        theirs.append(_joined(" / ", [_text(row["paper"], "") for row in rows]))
        ours.append(" / ".join(_text(row["ours"], row.get("unit", "")) for row in rows))
    return {"compared": "; ".join(groups), "theirs": _joined("; ", theirs), "ours": "; ".join(ours)}


def _joined(between: str, texts: list[str]) -> str:
    """The texts, one behind the other, or once if all are the same."""
    return between.join(texts if len({*texts}) > 1 else texts[:1])


def _text(value: Any, unit: str) -> str:
    """A rate with three digits, a count as it is, a dash for what is not there."""
    text = "-" if value is None else f"{value:.3f}" if isinstance(value, float) else f"{value}"
    return f"{text} ({unit})" if unit else text


def beside(compared: str, has: str, ours: str) -> str:
    """The numbers of a run, of what it has, for each thing compared; a dash for one it lacks."""
    if has == compared or not ours:
        return ours
    has = dict(zip(has.split("; "), ours.split("; "), strict=True))
    return "; ".join(has.get(name, "-") for name in compared.split("; "))


def block(text: str, name: str) -> str:
    """What stands between the two marks of `name` in a README."""
    start, end = (mark.format(name=name) for mark in MARKS)
    return text.partition(start)[2].partition(end)[0]
