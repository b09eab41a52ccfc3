"""What is compared in each artefact of Kim et al. 2021: the paper's numbers and ours."""

from pathlib import Path

import pandas as pd

from osnb import tables

KINDS = {"known": "known", "negative": "external", "unknown": "near"}


def compared(folder: Path, file: str) -> tuple[str, str, str]:
    """What is compared in an artefact, the paper's value and ours.

    Args:
        folder: of a run in figures/ that made the artefact.
        file: the artefact's, without suffix.

    Raises:
        ValueError: no rule says what to compare in this artefact.
    """
    if file not in OF:
        raise ValueError(f"need one of {', '.join(OF)}; got {file!r}")
    return OF[file](pd.read_csv(folder / f"{file}.csv"))


def _tasks(ours: pd.DataFrame) -> tuple[str, str, str]:
    return (
        "tasks",
        "of earlier studies",
        f"{ours['task'].nunique()} of this paper; studies not known",
    )


def _images(ours: pd.DataFrame) -> tuple[str, str, str]:
    printed = ours["paper"].notna()
    equal = (ours["paper"] == ours["ours"]).sum()
    missing = (printed & ours["ours"].isna()).sum()
    return "numbers", f"{printed.sum()}", f"{equal} equal, derived; {missing} no rule gives"


def _divided(ours: pd.DataFrame) -> tuple[str, str, str]:
    counts = [ours[part].str.split(", ").str.len().sum() for part in ("CIFAR-40", "CIFAR-60")]
    return "classes: known / near", _sizes("CIFAR-40", "CIFAR-60"), "{} / {}, drawn".format(*counts)


def _spellings(ours: pd.DataFrame) -> tuple[str, str, str]:
    found = ours["found only varied"].notna().sum()
    printed = len(tables.published("kim2021", "table4"))
    return "spellings; that find more", f"{printed}; -", f"{len(ours)}; {found}"


def _sketch(ours: pd.DataFrame) -> tuple[str, str, str]:
    size = f"{ours['task'].nunique()} x {ours['kind'].nunique()}"
    return "tasks x kinds of sample", "a sketch", f"{size}, redrawn"


def _resized(ours: pd.DataFrame) -> tuple[str, str, str]:
    mean = ours.mean(numeric_only=True)
    own = f"{mean['FIX, 32']:.1f} / {mean['nearest, 32']:.1f}, drawn"
    return "step between pixels: FIX / nearest", "photographs", own


def _tree(ours: pd.DataFrame) -> tuple[str, str, str]:
    counts = ours.groupby("role")["classes"].sum()
    own = " / ".join(f"{counts[role]:.0f}" for role in KINDS)
    return f"classes: {' / '.join(KINDS.values())}", "a class tree", f"{own}, derived"


def _sizes(*sets: str) -> str:
    """The sizes in the names of printed data sets."""
    names = tables.published("kim2021", "table2")["dataset"].tolist()
    return " / ".join(names[names.index(each)].split("-")[-1] for each in sets)


OF = {
    "table_1": _tasks,
    "table_2": _images,
    "table_3": _divided,
    "table_4": _spellings,
    "figure_1": _sketch,
    "figure_2": _resized,
    "figure_3": _tree,
    "figure_4": _tree,
}
