"""The README's rows: every artefact of a paper with its value, ours, and the run it came from."""

from pathlib import Path

import pandas as pd

from osnb import repro

START, END = "<!-- artefacts: start -->", "<!-- artefacts: end -->"
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
# artefact, file, what the numbers are: counted in the file, column `paper` beside `ours`
COUNTED = [
    ("Figure 1", "figure_1", "known classes"),
    ("Table 1", "table_1", "numbers that are the paper's"),
    ("Table 3", "table_3", "classes of P1 in the printed order"),
    ("Table 4", "table_4", "classes of P2 in the printed order"),
    ("Table 5", "table_5", "classes of P3 in the printed order"),
]


def rows(root: Path) -> pd.DataFrame:
    """One row per artefact of Palechor et al. 2023, from the csv files in figures/.

    Args:
        root: the project's folder.

    Returns:
        artefact, compared (what the numbers are), paper, miniature, photographs, files.
    """
    found = [_counted(root, *entry) for entry in COUNTED]
    found += [_from_table_2(root, *entry) for entry in FROM_TABLE_2]
    return pd.DataFrame(found).sort_values("artefact").reset_index(drop=True)


def markdown(table: pd.DataFrame) -> str:
    """The rows as a table in Markdown."""
    head = "| " + " | ".join(table.columns) + " |\n" + "| --- " * len(table.columns) + "|\n"
    return head + "".join("| " + " | ".join(row) + " |\n" for row in table.to_numpy())


def update(readme: Path, table: pd.DataFrame) -> None:
    """Put the rows between the two marks of the README."""
    text = readme.read_text(encoding="utf8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    with repro.writing(readme) as aside:
        aside.write_text(f"{before}{START}\n{markdown(table)}{END}{after}", encoding="utf8")


def _from_table_2(root: Path, artefact: str, file: str, compared: str, where: tuple) -> dict:
    part, loss, number = where
    cells = {}
    for size in ("mini", "tiny"):
        table = pd.read_csv(root / RESULTS / size / f"table_{part}.csv")
        table = table[(table["loss"] == loss) & (table["number"] == number)].set_index("protocol")
        cells[size] = _three(table["ours"])
    return {
        "artefact": artefact,
        "compared (P1 / P2 / P3)": compared,
        "paper": _three(table["paper"]),
        "miniature": cells["mini"],
        "photographs at 32 px": cells["tiny"],
        "files": f"{_links(f'{RESULTS}/mini', file, 'mini')}; {_links(f'{RESULTS}/tiny', file, 'tiny')}",
    }


def _counted(root: Path, artefact: str, file: str, compared: str) -> dict:
    table = pd.read_csv(root / LISTS / f"{file}.csv")
    return {
        "artefact": artefact,
        "compared (P1 / P2 / P3)": compared,
        "paper": _count(table, "paper"),
        "miniature": f"{_count(table, 'ours')} (derived)",
        "photographs at 32 px": "",
        "files": _links(LISTS, file, "mini"),
    }


def _three(values: pd.Series) -> str:
    numbers = (values.get(protocol) for protocol in PROTOCOLS)
    return " / ".join("-" if pd.isna(number) else f"{number:.3f}" for number in numbers)


def _links(folder: str, file: str, run: str) -> str:
    parts = [f"[{kind}]({folder}/{file}.{kind})" for kind in ("svg", "csv")]
    return f"{run}: " + ", ".join(parts if file.startswith("figure") else parts[1:])
