"""The README's rows: every artefact of a paper with its value, ours, and the run it came from."""

from pathlib import Path

import pandas as pd

from osnb import repro, tables

MARKS = "<!-- {name}: start -->\n", "<!-- {name}: end -->"
HEAD = "compared (P1 / P2 / P3)"
PROTOCOLS = ("p1", "p2", "p3")
RESULTS = "figures/13_palechor_results"
LISTS = "figures/10_palechor_protocols/mini"

# artefact, its file, what the three numbers (P1 / P2 / P3) are, and where Table 2 has them
FROM_TABLE_2 = [
    ("Figure 2", "figure_2", "EOS: CCR at FPR 0.01", ("2a", "entropic", "ccr_at_0.01")),
    ("Figure 3", "figure_3", "EOS: gamma-, last epoch", ("2a", "entropic", "gamma_minus")),
    ("Figure 4", "figure_4", "S: gamma+, last epoch", ("2a", "softmax", "gamma_plus")),
    ("Figure 5", "figure_5", "S: CCR at FPR 1", ("2a", "softmax", "ccr_at_1")),
    ("Figure 6", "figure_6", "S: CCR at FPR 0.1", ("2a", "softmax", "ccr_at_0.1")),
    ("Table 2a", "table_2a", "EOS: CCR at FPR 0.1", ("2a", "entropic", "ccr_at_0.1")),
    ("Table 2b", "table_2b", "EOS: CCR at FPR 0.1", ("2b", "entropic", "ccr_at_0.1")),
]
# artefact, its file, what the numbers are; `_derived` compares the file with the paper's list
DERIVED = [
    ("Figure 1", "figure_1", "known classes"),
    ("Table 1", "table_1", "numbers"),
    ("Table 3", "table_3", "classes of P1, in order"),
    ("Table 4", "table_4", "classes of P2, in order"),
    ("Table 5", "table_5", "classes of P3, in order"),
]


def rows(root: Path) -> pd.DataFrame:
    """One row per artefact of Palechor et al. 2023, from the csv files in figures/.

    Args:
        root: the project's folder.

    Returns:
        artefact, compared (what the numbers are), paper, miniature, photographs, files.
    """
    found = [_derived(root, *entry) for entry in DERIVED]
    found += [_from_table_2(root, *entry) for entry in FROM_TABLE_2]
    return pd.DataFrame(found).sort_values("artefact").reset_index(drop=True)


def findings(root: Path) -> pd.DataFrame:
    """What the paper found, decided on both sizes: a row per finding, protocols in one cell."""
    sizes = {"mini": "miniature", "tiny": "photographs at 32 px"}
    columns = []
    for size, name in sizes.items():
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


def _from_table_2(root: Path, artefact: str, file: str, compared: str, where: tuple) -> dict:
    part, loss, number = where
    cells = {}
    for size in ("mini", "tiny"):
        table = pd.read_csv(root / RESULTS / size / f"table_{part}.csv")
        table = table[(table["loss"] == loss) & (table["number"] == number)].set_index("protocol")
        cells[size] = _three(table["ours"])
    return {
        "artefact": artefact,
        HEAD: compared,
        "paper": _three(table["paper"]),
        "miniature": cells["mini"],
        "photographs at 32 px": cells["tiny"],
        "files": "; ".join(_links(f"{RESULTS}/{size}", file, size) for size in cells),
    }


def _derived(root: Path, artefact: str, file: str, compared: str) -> dict:
    ours = pd.read_csv(root / LISTS / f"{file}.csv")
    paper, derived = _compared(file, ours)
    return {
        "artefact": artefact,
        HEAD: compared,
        "paper": paper,
        "miniature": derived,
        "photographs at 32 px": "",
        "files": _links(LISTS, file, "mini"),
    }


def _compared(file: str, ours: pd.DataFrame) -> tuple[str, str]:
    """What the paper has, and how much of it our file has too."""
    if file == "figure_1":
        paper = tables.published("palechor2023", "table1")
        known = [frame[frame["role"] == "known"] for frame in (paper, ours)]
        counts = [frame.groupby("protocol")["classes"].sum() for frame in known]
        return tuple(" / ".join(f"{count:.0f}" for count in column) for column in counts)
    if file == "table_1":
        paper, ours = (
            frame[["classes", "train", "val", "test"]].fillna(0).to_numpy()
            for frame in (tables.published("palechor2023", "table1"), ours)
        )
        printed = paper > 0
        return f"{printed.sum()}", f"{(printed & (paper == ours)).sum()} equal, derived"
    paper = tables.published("palechor2023", "classes")
    paper = paper[paper["protocol"] == int(file[-1]) - 2].drop(columns="protocol")
    columns = ["role", "superclass_wnid", "wnid", "name"]
    equal = (paper[columns].to_numpy() == ours[columns].to_numpy()).all(axis=1).sum()
    return f"{len(paper)}", f"{equal} equal, derived"


def _three(values: pd.Series) -> str:
    numbers = (values.get(protocol) for protocol in PROTOCOLS)
    return " / ".join("-" if pd.isna(number) else f"{number:.3f}" for number in numbers)


def _links(folder: str, file: str, run: str) -> str:
    parts = [f"[{kind}]({folder}/{file}.{kind})" for kind in ("svg", "csv")]
    return f"{run}: " + ", ".join(parts if file.startswith("figure") else parts[1:])
