"""The tables of README.md and figures/README.md, from the stamps in figures/."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from osnb.base import workbook
from osnb.evidence import gallery

_PAPERS = pd.read_csv(workbook.PACKAGE / "evidence" / "papers.csv", index_col="paper")
FRONT = _PAPERS["front"].str.split("; ").to_dict()  # parts that the front page shows
SIZE_NAMES = {"mini": "miniature", "tiny": "photographs at 32 px"}
FINDINGS = "13_palechor_results"


def rows(root: Path, paper: str) -> pd.DataFrame:
    """One row per artefact of a paper, from the stamps in figures/.

    Args:
        root: the project's folder.
        paper: a key of `gallery.PAPERS`.

    Returns:
        artefact, shows (full, part or stand-in, and of how many cells), compared (what the numbers
        are), paper, miniature, photographs, files (with links from figures/).
    """
    made = gallery.artefacts(root)
    made = made[made["paper"] == paper]
    shows = gallery.shown(made).set_index("artefact")[["shows", "cells"]].agg(", ".join, axis=1)
    made = made[made["run"].isin(SIZE_NAMES)]
    table = []
    for part, runs in made.groupby("part", sort=False):
        first = runs.iloc[0]
        ours = {
            run.size: gallery.beside(first["compared"], run.compared, run.ours)
            for run in runs.itertuples()
        }
        row = {"artefact": part, "shows": shows[first["artefact"]].removesuffix(", ")}
        row |= {"compared": first["compared"], "paper": first["theirs"]}
        row |= {name: ours.get(size, "") for size, name in SIZE_NAMES.items()}
        table.append(row | {"files": "; ".join(_links(root, run) for run in runs.itertuples())})
    return pd.DataFrame(table)


def _links(root: Path, run: Any) -> str:
    kinds = ["svg", "csv"] if run.kind == "figure" else ["csv"]
    kinds = [kind for kind in kinds if (run.folder / f"{run.file}.{kind}").is_file()]  # not run
    path = (run.folder / run.file).relative_to(root / "figures")
    return f"{run.run}: " + ", ".join(f"[{kind}]({path}.{kind})" for kind in kinds)


def front(root: Path) -> pd.DataFrame:
    """The ten rows of the front page: of each part of `FRONT` the first thing that it compares."""
    parts = []
    for paper, names in FRONT.items():
        table = rows(root, paper).set_index("artefact").reindex(names, fill_value="")
        table = table.drop(columns=["shows", "files"]).map(lambda cell: cell.partition("; ")[0])
        parts.append(table.reset_index().assign(of=paper))
    return pd.concat(parts, ignore_index=True)[["of", *parts[0].columns[:-1]]]


def findings(root: Path) -> pd.DataFrame:
    """What Palechor et al. found, decided on both sizes: a row per finding."""
    columns = {}
    for size, name in SIZE_NAMES.items():
        path = root / "figures" / FINDINGS / size / "findings.json"
        told = (
            json.loads(path.read_text(encoding="utf8")).get("headline", [])
            if path.is_file()
            else []
        )
        told = pd.DataFrame(told, columns=["what", "ours"])
        columns[name] = told.groupby("what", sort=False)["ours"].agg("; ".join)
    return pd.DataFrame(columns).fillna("not run").rename_axis("finding").reset_index()


def markdown(table: pd.DataFrame) -> str:
    """The rows as a table in Markdown."""
    head = "| " + " | ".join(table.columns) + " |\n" + "| --- " * len(table.columns) + "|\n"
    return head + "".join("| " + " | ".join(row) + " |\n" for row in table.to_numpy())


def update(readme: Path, tables: dict[str, pd.DataFrame | str]) -> None:
    """Put each table, or line, between the two marks of its name in the README.

    Raises:
        ValueError: it has not both marks of a name, in their order.
    """
    text = readme.read_text(encoding="utf8")
    for name, table in tables.items():
        content = f"{table}\n" if isinstance(table, str) else markdown(table)
        start, end = (mark.format(name=name) for mark in gallery.MARKS)
        before, _, rest = text.partition(start)
        if end not in rest:
            raise ValueError(f"{readme} needs {start} and, below it, {end}")
        text = f"{before}{start}{content}{end}{rest.partition(end)[2]}"
    with workbook.writing(readme) as aside:
        aside.write_text(text, encoding="utf8")
