"""Every artefact with its value, ours, and the run it came from; the README's rows of them."""

from pathlib import Path

import pandas as pd

from osnb import repro
from osnb.gallery.artefacts import COMPARED, PAPERS, READING, SIZES, artefacts

__all__ = [
    "COMPARED",
    "MARKS",
    "PAPERS",
    "READING",
    "RESULTS",
    "SIZES",
    "SIZE_NAMES",
    "artefacts",
    "block",
    "findings",
    "markdown",
    "rows",
    "update",
]

MARKS = "<!-- {name}: start -->\n", "<!-- {name}: end -->"
SIZE_NAMES = {"mini": "miniature", "tiny": "photographs at 32 px"}
RESULTS = "figures/13_palechor_results"


def rows(root: Path, paper: str) -> pd.DataFrame:
    """One row per artefact of a paper, from the csv files in figures/.

    Args:
        root: the project's folder.
        paper: a key of `COMPARED`.

    Returns:
        artefact, compared (what the numbers are), paper, miniature, photographs, files.
    """
    found = artefacts(root)
    found = found[(found["paper"] == paper) & found["run"].isin(SIZE_NAMES)]
    table = [_row(root, part, runs) for part, runs in found.groupby("part", sort=False)]
    return pd.DataFrame(table)


def _row(root: Path, part: str, runs: pd.DataFrame) -> dict[str, str]:
    ours = dict(zip(runs["size"], runs["ours"], strict=True))
    return {
        "artefact": part,
        "compared": runs["compared"].iloc[0],
        "paper": runs["theirs"].iloc[0],
        **{name: ours.get(size, "") for size, name in SIZE_NAMES.items()},
        "files": "; ".join(_links(root, run) for run in runs.itertuples()),
    }


def _links(root: Path, run: tuple) -> str:
    kinds = ["svg", "csv"] if run.kind == "figure" else ["csv"]
    path = (run.folder / run.file).relative_to(root)
    return f"{run.run}: " + ", ".join(f"[{kind}]({path}.{kind})" for kind in kinds)


def findings(root: Path) -> pd.DataFrame:
    """What the paper found, decided on both sizes: a row per finding, protocols in one cell."""
    columns = []
    for size, name in SIZE_NAMES.items():
        table = pd.read_csv(root / RESULTS / size / "findings.csv")
        table["cell"] = [_answer(row) for row in table.itertuples()]
        columns.append(table.groupby("finding", sort=False)["cell"].agg("; ".join).rename(name))
    return pd.concat(columns, axis=1).fillna("not run").reset_index()


def _answer(row: tuple) -> str:
    """P1 yes +0.123; a question mark where the interval includes 0."""
    if row.holds == "undecided":
        return f"{row.protocol.upper()} undecided"
    unsure = "?" if row.low <= 0 <= row.high else ""
    return f"{row.protocol.upper()} {row.holds}{unsure} {row.number:+.2f}"


def markdown(table: pd.DataFrame) -> str:
    """The rows as a table in Markdown."""
    head = "| " + " | ".join(table.columns) + " |\n" + "| --- " * len(table.columns) + "|\n"
    return head + "".join("| " + " | ".join(row) + " |\n" for row in table.to_numpy())


def block(text: str, name: str) -> str:
    """What stands between the two marks of `name` in a README."""
    start, end = (mark.format(name=name) for mark in MARKS)
    return text.partition(start)[2].partition(end)[0]


def update(readme: Path, tables: dict[str, pd.DataFrame]) -> None:
    """Put each table between the two marks of its name in the README."""
    text = readme.read_text(encoding="utf8")
    for name, table in tables.items():
        start, end = (mark.format(name=name) for mark in MARKS)
        before, _, rest = text.partition(start)
        text = f"{before}{start}{markdown(table)}{end}{rest.partition(end)[2]}"
    with repro.writing(readme) as aside:
        aside.write_text(text, encoding="utf8")
