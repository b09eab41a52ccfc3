"""What is compared in each artefact of Vaze et al. 2022: the paper's numbers and ours."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from osnb import tables

BINS = ("Easy", "Medium", "Hard")
HARDNESS = ("easy", "hard")  # as artefacts name them
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


def _maximum_logits(ours: pd.DataFrame) -> tuple[str, str, str]:
    run = ours[ours["method"].eq("Baseline (MLS)") & ours["ours"].notna()]
    drawn = ", drawn images" if run["stands in"].str.startswith("mini").any() else ""
    what = "AUROC of MLS: " + " / ".join(run["dataset"])
    return what, _rates(run["paper"]), _rates(run["ours"]) + drawn


def _backbones(ours: pd.DataFrame) -> tuple[str, str, str]:
    run = ours.loc[ours["ours"].notna(), "method"].nunique()
    return "methods", f"{ours['method'].nunique()}", f"{run} run"


def _gains(ours: pd.DataFrame) -> tuple[str, str, str]:
    auroc = ours.pivot_table(index="dataset", columns="method", values="auroc", sort=False)
    auroc = auroc.dropna(subset=["MSP", "MLS"])
    printed = tables.published("vaze2022", "table1")
    printed = printed.assign(dataset=printed["dataset"].str.lower(), value=printed["auroc_pct"])
    paper = printed.pivot_table(index="dataset", columns="method", values="value") / 100
    gains = paper["Baseline (MLS)"] - paper["Baseline (MSP)"], auroc["MLS"] - auroc["MSP"]
    theirs, own = (_rates(gain[auroc.index], sign="+") for gain in gains)
    return "AUROC gained, MSP to MLS: " + " / ".join(auroc.index), theirs, own


def _rates(values: Iterable[float], *, sign: str = "") -> str:
    return " / ".join(f"{value:{sign}.3f}" for value in values)


def _correlated(ours: pd.DataFrame) -> tuple[str, str, str]:
    means = ours[ours["panel"] == "means over splits"]
    return "rho of accuracy and AUROC, method means", _stated("standard"), _rho(means)


def _architectures(ours: pd.DataFrame) -> tuple[str, str, str]:
    paper = "; ".join(_stated(f"imagenet-{name}") for name in ("hard", "easy"))
    own = (_rho(ours[ours["panel"] == f"(a) all, {name}"]) for name in ("hard", "easy"))
    return "rho over architectures, Hard; Easy", paper, "; ".join(own)


def _recipe(ours: pd.DataFrame) -> tuple[str, str, str]:
    return "rho over the recipe's steps", _stated("recipe"), _rho(ours[ours["panel"] == "ours"])


def _in_detail(ours: pd.DataFrame) -> tuple[str, str, str]:
    own = (f"{name} {_rho(part)}" for name, part in ours.groupby("panel"))
    return "rho inside a data set", "not stated", "; ".join(own)


def _over_splits(ours: pd.DataFrame) -> tuple[str, str, str]:
    what = "sd over splits, accuracy; AUROC: MSP on TinyImageNet"
    part = ours[(ours["method"] == "MSP") & (ours["dataset"] == "TinyImageNet")]
    part = part.set_index("number").loc[["accuracy_std", "auroc_std"]]
    return what, *("; ".join(map(_rate, part[side])) for side in ("paper", "ours"))


def _steps(ours: pd.DataFrame) -> tuple[str, str, str]:
    part = ours[ours["row"].isin([1, 8])].pivot(index="number", columns="row")
    both = [
        "; ".join(" to ".join(map(_rate, part.loc[name, side])) for name in ("accuracy", "auroc"))
        for side in ("paper", "ours")
    ]
    return "accuracy; AUROC: MSP to the full recipe", *both


def _stated(name: str) -> str:
    stated = tables.published("vaze2022", "correlations").set_index("name")["pearson_rho"]
    return f"{stated[name]:.2f}"


def _rho(points: pd.DataFrame) -> str:
    """Pearson's over the points, and how many there are; two lie on a line whatever they are."""
    rho = points["accuracy"].corr(points["auroc"]) if len(points) > 2 else None
    return f"{'-' if pd.isna(rho) else format(rho, '.2f')} ({len(points)} points)"


def _rate(value: float) -> str:
    return "-" if pd.isna(value) else f"{value:.3f}"


def _norms(ours: pd.DataFrame) -> tuple[str, str, str]:
    least = ours[ours["weight_decay"] == ours["weight_decay"].min()]
    ends = least.sort_values("epoch").groupby("features").last()  # of two features, then of more
    gain = ends["auroc_max_logit"] - ends["auroc_max_softmax"]
    own = (
        " / ".join(map(form.format, x))
        for form, x in (("{:.2f}", ends["ratio"]), ("{:+.3f}", gain))
    )
    sizes = " / ".join(map(str, ends.index))
    return (
        f"norm of known over unknown; AUROC of MLS less MSP; D = {sizes}",
        "drawn: above 1; above 0",
        "; ".join(own),
    )


def _other_data_sets(ours: pd.DataFrame) -> tuple[str, str, str]:
    what = "AUROC against Gaussian noise / SVHN / CIFAR10: ARPL+CS; MLS"
    values = ours.set_index(["method", "unknown"])
    sets = ("Gaussian Noise", "SVHN", "CIFAR10")
    paper, own = (
        "; ".join(
            " / ".join(_rate(values.loc[(method, name), side]) for name in sets)
            for method in ("ARPL+CS", "MLS")
        )
        for side in ("paper", "ours")
    )
    return what, paper, own + ", drawn images"


def _six_sets(ours: pd.DataFrame) -> tuple[str, str, str]:
    names = ("MSP", "ODIN", "Energy Score", "Mahalanobis", "MLS (Ours)")
    values = ours[ours["in_distribution"] == "CIFAR100"].set_index("method").loc[list(names)]
    paper, own = (" / ".join(map(_rate, values[side])) for side in ("paper", "ours"))
    what = "mean AUROC after CIFAR100: MSP / ODIN / energy / Mahalanobis / MLS"
    return what, paper, own + ", drawn images and noise"


def _near_set(ours: pd.DataFrame) -> tuple[str, str, str]:
    return "rho over networks, near unknown", f"{_stated('cifar100')} (4 points)", _rho(ours)


def _printed(dataset: str) -> str:
    table = tables.published("vaze2022", "table2")
    counts = table[table["dataset"] == dataset].set_index("split")["n_classes"]
    return _three(counts[name] for name in BINS)


def _three(values: Iterable[float]) -> str:
    return " / ".join("-" if pd.isna(value) else f"{value:.0f}" for value in values)


def _easy_hard(ours: pd.DataFrame) -> tuple[str, str, str]:
    return "AUROC of MLS, ImageNet: easy / hard", *_shifted(ours, number="auroc")


def _precisions(ours: pd.DataFrame) -> tuple[str, str, str]:
    return "AP of MLS, ImageNet: easy / hard", *_shifted(ours)


def _shift_gains(ours: pd.DataFrame) -> tuple[str, str, str]:
    table = ours.set_index(["method", "open_split"])[["paper", "ours"]]
    paper, own = (
        [table[side].get((name, "hard")) for name in ("MSP, weaker network", "MLS")]
        for side in ("paper", "ours")
    )
    return "AUROC on hard classes: weak MSP / MLS", *_beside(paper, own, ours)


def _shifted(ours: pd.DataFrame, **where: str) -> tuple[str, str]:
    rows = ours[(ours["dataset"] == "imagenet") & (ours["method"] == "mls")]
    for key, value in where.items():
        rows = rows[rows[key] == value]
    rows = rows.set_index("open_split")
    paper, own = ([rows[side].get(name) for name in HARDNESS] for side in ("paper", "ours"))
    return _beside(paper, own, ours)


def _beside(paper: list[float], own: list[float], ours: pd.DataFrame) -> tuple[str, str]:
    drawn = ", drawn images" if ours["run"].str.startswith("mini").any() else ""
    return " / ".join(map(_rate, paper)), " / ".join(map(_rate, own)) + drawn


OF = {
    "table_2": _numbers,
    "table_3": _easy_hard,
    "table_9": _precisions,
    "figure_1b": _shift_gains,
    "table_1": _maximum_logits,
    "table_6": _backbones,
    "figure_1a": _gains,
    "figure_2": _correlated,
    "figure_3": _architectures,
    "figure_4": _recipe,
    "figure_6": _in_detail,
    "table_4": _over_splits,
    "table_5": _steps,
    "figure_5": _pictures,
    "figure_7": _norms,
    "figure_8": _near_set,
    "table_7": _other_data_sets,
    "table_8": _six_sets,
    "figure_9": _attributes,
    "figure_10": _names_and_levels,
    "figure_11": _distances,
}
