"""The tables of notebooks/README.md: what every notebook teaches, needs and costs, and the paths.

Seconds and memory are those of the runs that `make outputs` keeps, reading time follows from the
length of the text; see `osnb.book.index` for the rest.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from osnb.base import workbook
from osnb.book import index
from osnb.book.runs import PAPERS
from tests.tools import pages

MEASURED = "measured.csv"
CITED = {digit: f"{name[:-4].capitalize()} et al. {name[-4:]}" for name, digit in PAPERS.items()}
HEADS = ["notebook", "paper, section", "what you learn", "what you need before"]
HEADS += ["run, s", "memory, GB", "read, min"]
WORDS, LINE = 130, 4  # words of text read in a minute, seconds for a line of code


def reading(notebook: Path) -> int:
    """Minutes to read a notebook up to its exercises, from its words and lines of code."""
    words = lines = 0
    for cell in workbook.cells(notebook):
        before, end, _ = cell["source"].partition("## Exercises")
        code = cell["cell_type"] == "code"
        words += 0 if code else len(before.split())
        lines += sum(bool(line.strip()) for line in before.splitlines()) if code else 0
        if end:
            break
    return math.ceil(words / WORDS + lines * LINE / 60)


# What it costs


def measured(root: Path) -> pd.DataFrame:
    """Seconds and gigabytes (both whole or to one decimal) of each notebook's default run."""
    found = pd.read_csv(root / "notebooks" / MEASURED, index_col="notebook")
    seconds, gigabytes = found["seconds"].round().astype(int), (found["memory"] / 1e9).round(1)
    return pd.DataFrame({"seconds": seconds, "gb": gigabytes})


def measure(root: Path, runs: Mapping[str, Mapping]) -> None:
    """Put the costs of runs into the file of measurements; other notebooks keep theirs.

    Args:
        root: the project's folder.
        runs: content of run.json by notebook; one that was resumed, or does not say its memory,
            is passed over.
    """
    file = root / "notebooks" / MEASURED
    old = pd.read_csv(file, index_col="notebook") if file.is_file() else pd.DataFrame()
    rows = {}
    for name, run in runs.items():
        memory = int(run.get("used", {}).get("memory") or 0)
        if memory and not run.get("resumed"):
            costs = {"run": run["run"], "seconds": run.get("seconds", 0), "memory": memory}
            rows[name] = costs | {"cores": run.get("cpus"), "processor": run.get("processor")}
    new = pd.DataFrame.from_dict(rows, orient="index")
    table = pd.concat([old.drop(index=[*rows], errors="ignore"), new])
    there = sorted(path.stem for path in (root / "notebooks").glob("*.ipynb"))
    table = table[table.index.isin(there)].sort_index().rename_axis("notebook")
    workbook.write_csv(file, table, index=True)


# Tables


def notebooks(root: Path) -> pd.DataFrame:
    """A row of text per notebook: what it is, teaches, needs and costs."""
    costs, rows = measured(root), []
    for path in sorted((root / "notebooks").glob("*.ipynb")):
        said, paper = index.about(path), CITED.get(path.stem[0], "all three")
        cost = ("-", "-")
        if path.stem in costs.index:
            cost = f"{costs.at[path.stem, 'seconds']}", f"{costs.at[path.stem, 'gb']:.1f}"
        row = [f"[{path.stem}]({path.name})", f"{paper}: {said['section']}", said["learn"]]
        rows.append([*row, said["need"], *cost, str(reading(path))])
    return pd.DataFrame(rows, columns=HEADS)


def path(root: Path, sessions: Sequence) -> pd.DataFrame:
    """A row of text per session and one of sums; what time is left is for exercises and talk."""
    costs, rows = measured(root)["seconds"], []
    for session in sessions:
        run = int(costs.reindex(session.notebooks).fillna(0).sum())
        read = sum(reading(root / "notebooks" / f"{name}.ipynb") for name in session.notebooks)
        rows.append([run, read, session.minutes - read - math.ceil(run / 60), session.minutes])
    rows.append([sum(column) for column in zip(*rows, strict=True)])
    heads = ["run, s", "read, min", "exercises and talk, min", "in all, min"]
    table = pd.DataFrame(rows, columns=heads).astype(str)
    links = [", ".join(f"[{n}]({n}.ipynb)" for n in session.notebooks) for session in sessions]
    topics = [f"{i}. {session.topic}" for i, session in enumerate(sessions, start=1)]
    table.insert(0, "notebooks", [*links, f"{sum(len(s.notebooks) for s in sessions)} notebooks"])
    table.insert(0, "session", [*topics, "**sum**"])
    return table


def blocks(root: Path) -> dict[str, pd.DataFrame]:
    """Every table of the index, by the name of its place in notebooks/README.md."""
    ways = {f"path {name}": path(root, sessions) for name, sessions in index.paths().items()}
    return {"notebooks": notebooks(root), **ways}


def update(root: Path) -> None:
    """Write the tables into notebooks/README.md."""
    pages.update(root / "notebooks" / "README.md", blocks(root))
