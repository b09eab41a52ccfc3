"""What is compared in each artefact of Kim et al. 2021: the paper's numbers and ours."""

from pathlib import Path

import pandas as pd

from osnb import tables

KINDS = {"known": "known", "negative": "external", "unknown": "near"}
ANSWERS = ("yes", "no", "not established")
DRAWN = ("Baseline", "Ensemble", "OE")  # in Figure 7


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


def _studies(ours: pd.DataFrame) -> tuple[str, str, str]:
    cells = ours[["misclassification", "near", "far"]].stack().value_counts()
    counts = " / ".join(f"{cells.get(word, 0)}" for word in ANSWERS)
    what = f"studies; their tasks: {' / '.join(ANSWERS)}"
    return what, "not read", f"{len(ours)}; {counts}, gathered here"


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


def _single_tasks(ours: pd.DataFrame) -> tuple[str, str, str]:
    rows = ours[ours["metric"].isin(["aurc", "auroc"]) & (ours["task"] != "unknown_detection")]
    rows = rows[~rows["task"].str.startswith("far")]
    cells = rows.assign(size=rows["metric"].map({"aurc": 1000, "auroc": 100}))
    what = "AURC x 1000 of errors, AUROC of near in %: Baseline; Ensemble"
    drawn = ", stand-ins" if ours["run"].str.startswith("mini").any() else ""
    return what, _two_methods(cells, "paper"), _two_methods(cells, "ours") + drawn


def _two_methods(cells: pd.DataFrame, side: str) -> str:
    """Of Baseline and of Ensemble, AURC and AUROC as they are printed."""
    values = (cells[side] * cells["size"]).set_axis([cells["method"], cells["metric"]])
    found = [
        [values.get((method, name), float("nan")) for name in ("aurc", "auroc")]
        for method in ("Baseline", "Ensemble")
    ]
    text = "; ".join(" / ".join("-" if x != x else f"{x:.1f}" for x in pair) for pair in found)
    return "not run" if set(text) <= set("-; /") else text


def _densities(ours: pd.DataFrame) -> tuple[str, str, str]:
    group = ours.drop_duplicates(["benchmark", "method", "kind"])
    group = group.assign(sum=group["mean"] * group["samples"]).groupby(["method", "kind"])
    each = group["sum"].sum() / group["samples"].sum()
    kinds = ("right", "wrong", "near", "far")
    own = "; ".join(
        " / ".join("-" if (x := each.get((method, k))) is None else f"{x:.2f}" for k in kinds)
        for method in ("Baseline", "Ensemble")
    )
    return "mean largest softmax, right / wrong / near / far: Baseline; Ensemble", "drawn", own


def _mean_softmax(ours: pd.DataFrame) -> tuple[str, str, str]:
    surest = ours.groupby(["method", "kind", "class"])["softmax"].max().groupby("method").mean()
    cells = [f"{surest[name]:.2f}" if name in surest else "-" for name in DRAWN]
    what = f"largest mean softmax, mean over unknown classes: {' / '.join(DRAWN)}"
    return what, "drawn", " / ".join(cells) if len(surest) else "not run"


def _improved(ours: pd.DataFrame) -> tuple[str, str, str]:
    what = "AURC below Baseline's, %, CIFAR / ImageNet: Ensemble; OE; ODIN"
    percent = 100 * ours.set_index(["side", "benchmark", "method"])["improvement"]
    paper, own = (
        "; ".join(
            " / ".join(
                _percent(percent.get((side, where, method))) for where in ("CIFAR", "ImageNet")
            )
            for method in ("Ensemble", "OE", "ODIN")
        )
        for side in ("paper", "ours, all")
    )
    drawn = ", stand-ins" if ours["run"].str.startswith("mini").any() else ""
    return what, paper, own + drawn


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1f}"


def _sizes(*sets: str) -> str:
    """The sizes in the names of printed data sets."""
    names = tables.published("kim2021", "table2")["dataset"].tolist()
    return " / ".join(names[names.index(each)].split("-")[-1] for each in sets)


OF = {
    "table_1": _studies,
    "table_2": _images,
    "table_3": _divided,
    "table_4": _spellings,
    "table_5": _single_tasks,
    "table_6": _single_tasks,
    "figure_1": _sketch,
    "figure_2": _resized,
    "figure_3": _tree,
    "figure_4": _tree,
    "figure_5": _improved,
    "figure_6": _densities,
    "figure_7": _mean_softmax,
}
