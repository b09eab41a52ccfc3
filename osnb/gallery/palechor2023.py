"""What is compared in each artefact of Palechor et al. 2023: the paper's numbers and ours."""

from pathlib import Path

import pandas as pd

from osnb import tables

PROTOCOLS = ("p1", "p2", "p3")

# file: what the numbers (P1 / P2 / P3) are, and where Table 2 has them: part, loss, number
FROM_TABLE_2 = {
    "figure_2": ("EOS: CCR at FPR 0.01", ("2a", "entropic", "ccr_at_0.01")),
    "figure_3": ("EOS: gamma-, last epoch", ("2a", "entropic", "gamma_minus")),
    "figure_4": ("S: gamma+, last epoch", ("2a", "softmax", "gamma_plus")),
    "figure_5": ("S: CCR at FPR 1", ("2a", "softmax", "ccr_at_1")),
    "figure_6": ("S: CCR at FPR 0.1", ("2a", "softmax", "ccr_at_0.1")),
    "table_2a": ("EOS: CCR at FPR 0.1", ("2a", "entropic", "ccr_at_0.1")),
    "table_2b": ("EOS: CCR at FPR 0.1", ("2b", "entropic", "ccr_at_0.1")),
}
LISTS = {"table_3": 1, "table_4": 2, "table_5": 3}  # the class list of a protocol


def compared(folder: Path, file: str) -> tuple[str, str, str]:
    """What is compared in an artefact, the paper's value and ours.

    Args:
        folder: of a run in figures/ that made the artefact.
        file: the artefact's, without suffix.
    """
    if file in FROM_TABLE_2:
        what, (part, loss, number) = FROM_TABLE_2[file]
        table = pd.read_csv(folder / f"table_{part}.csv")
        table = table[(table["loss"] == loss) & (table["number"] == number)].set_index("protocol")
        return what, _three(table["paper"]), _three(table["ours"])
    ours = pd.read_csv(folder / f"{file}.csv")
    if file in LISTS:
        return f"classes of P{LISTS[file]}, in order", *_classes(ours, LISTS[file])
    paper = tables.published("palechor2023", "table1")
    return ("known classes", *_known(paper, ours)) if file == "figure_1" else _counts(paper, ours)


def _known(paper: pd.DataFrame, ours: pd.DataFrame) -> tuple[str, ...]:
    known = [frame[frame["role"] == "known"] for frame in (paper, ours)]
    counts = [frame.groupby("protocol")["classes"].sum() for frame in known]
    return tuple(" / ".join(f"{count:.0f}" for count in column) for column in counts)


def _counts(paper: pd.DataFrame, ours: pd.DataFrame) -> tuple[str, str, str]:
    columns = ["classes", "train", "val", "test"]
    theirs, own = (frame[columns].fillna(0).to_numpy() for frame in (paper, ours))
    printed = theirs > 0
    return "numbers", f"{printed.sum()}", f"{(printed & (theirs == own)).sum()} equal, derived"


def _classes(ours: pd.DataFrame, protocol: int) -> tuple[str, str]:
    paper = tables.published("palechor2023", "classes")
    paper = paper[paper["protocol"] == protocol]
    columns = ["role", "superclass_wnid", "wnid", "name"]
    equal = (paper[columns].to_numpy() == ours[columns].to_numpy()).all(axis=1).sum()
    return f"{len(paper)}", f"{equal} equal, derived"


def _three(values: pd.Series) -> str:
    numbers = (values.get(protocol) for protocol in PROTOCOLS)
    return " / ".join("-" if pd.isna(number) else f"{number:.3f}" for number in numbers)
