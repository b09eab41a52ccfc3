"""The index of the course: what every notebook teaches and needs, and paths through all.

Titles, aims and needs are read from the notebooks' first cells: nothing is typed twice.
"""

import re
from pathlib import Path

import pandas as pd

from osnb.base import workbook


def paths() -> dict[str, list]:
    """The sessions of each way through the course, by its name: topic, minutes, notebooks."""
    rows = pd.read_csv(Path(__file__).with_name("sessions.csv"))
    rows["notebooks"] = rows["notebooks"].str.split()
    return {name: [*way.itertuples()] for name, way in rows.groupby("path", sort=False)}


def about(notebook: Path) -> dict[str, str]:
    """Section, claim, learn and need, from the first cell.

    Raises:
        ValueError: the cell has no such title, or does not say what is learnt or needed.
    """
    text = workbook.cells(notebook)[0]["source"]
    title = re.match(r"# ([^:\n]+): (.+)", text)
    learn = re.search(r"\*\*You will learn\*\*(.+?)(?=\n\s*\n|\*\*You need|\Z)", text, re.S)
    need = re.search(r"\*\*You need\*\*(.+?)(?=\n\s*\n|Measured:|\Z)", text, re.S)
    if not (title and learn and need):
        wanted = "'# Section: claim', **You will learn** and **You need**"
        raise ValueError(f"the first cell of {notebook.name} needs {wanted}")
    learn, need = (" ".join(x[1].split()).replace("|", r"\|") for x in (learn, need))
    capital = {"learn": learn[:1].upper() + learn[1:], "need": need[:1].upper() + need[1:]}
    return {"section": title[1], "claim": title[2], **capital}
