"""What is compared in each artefact of Vaze et al. 2022: the paper's numbers and ours."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from osnb import tables

BINS = ("Easy", "Medium", "Hard")
MADE = "unknown classes, {}: easy / medium / hard"


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


def _numbers(ours: pd.DataFrame) -> tuple[str, str, str]:
    printed = ours["paper"].notna()
    equal = (ours["paper"] == ours["ours"]).sum()
    missing = (printed & ours["ours"].isna()).sum()
    return "numbers", f"{printed.sum()}", f"{equal} equal, derived; {missing} need the images"


def _pictures(ours: pd.DataFrame) -> tuple[str, str, str]:
    return "pictures", "photographs", f"{ours['wnid'].nunique()} drawn classes"


def _attributes(ours: pd.DataFrame) -> tuple[str, str, str]:
    counts = ours.groupby("bin")["classes"].sum()
    own = _three(counts[name.lower()] for name in BINS)
    return MADE.format("CUB"), _printed("CUB"), f"{own}, drawn birds"


def _names_and_levels(ours: pd.DataFrame) -> tuple[str, str, str]:
    paper = "; ".join(map(_printed, ("Stanford Cars", "FGVC-Aircraft")))
    counts = ours.groupby(["dataset", "group"])["classes"].sum()
    own = (
        _three(counts.get((name, each.lower())) for each in BINS)
        for name in ("Stanford Cars", "FGVC-Aircraft")
    )
    return MADE.format("Cars; Aircraft"), paper, "; ".join(own) + ", derived"


def _distances(ours: pd.DataFrame) -> tuple[str, str, str]:
    counts = ours.groupby("bin")["classes"].sum()
    own = f"{counts['easy']} / {counts['hard']} equal, derived"
    return "ImageNet classes: easy / hard", _printed("ImageNet").replace(" / - / ", " / "), own


def _printed(dataset: str) -> str:
    table = tables.published("vaze2022", "table2")
    counts = table[table["dataset"] == dataset].set_index("split")["n_classes"]
    return _three(counts[name] for name in BINS)


def _three(values: Iterable[float]) -> str:
    return " / ".join("-" if pd.isna(value) else f"{value:.0f}" for value in values)


OF = {
    "table_2": _numbers,
    "figure_5": _pictures,
    "figure_9": _attributes,
    "figure_10": _names_and_levels,
    "figure_11": _distances,
}
