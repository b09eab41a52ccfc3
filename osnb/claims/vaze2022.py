"""Findings of Vaze et al. 2022, each a number that is above 0 if the finding holds.

The first line of a predicate says what its number is; `where` is a data set as its table calls it,
in lower case, or the name of a stated correlation. Rates, not percent: a point is 0.01.
"""

import numpy as np
import pandas as pd

from osnb import tables
from osnb.claims.evidence import Evidence, Missing, close, least

KEYS = ["benchmark", "dataset", "method", "open_split", "unknown"]
METHODS = {"baseline (mls)": "mls", "mls (ours)": "mls", "baseline (msp+)": "msp+"}
# whose accuracies and AUROCs a stated correlation is over: which rows, and one point for each of
IMAGENET = {"benchmark": "ssb", "dataset": "imagenet", "method": "mls"}
CIFAR100 = {"benchmark": "ood", "dataset": "cifar100", "unknown": "cifar10", "method": "mls"}
POINTS = {
    "standard": ({"benchmark": "standard"}, ["dataset", "method"]),
    "imagenet-hard": (IMAGENET | {"open_split": "hard"}, ["model"]),
    "imagenet-easy": (IMAGENET | {"open_split": "easy"}, ["model"]),
    "resnet-hard": (IMAGENET | {"open_split": "hard"}, ["model"]),
    "resnet-easy": (IMAGENET | {"open_split": "easy"}, ["model"]),
    "cifar100": (CIFAR100, ["model"]),
}
FIGURE_2 = ("msp", "arpl", "arpl + cs")  # its methods; its data sets are all but CIFAR+10

RHO_CLOSE = 0.05  # other seeds move a correlation of few points; the stated ones go from .63 to 1
NEGLIGIBLE = 0.017  # no more than AUROC differs between splits: 1.68 points, ARPL + CS in Table 4
ABOUT = 0.01  # "about 6 points" is 5 to 7


def printed() -> Evidence:
    """Tables 1, 3, 4, 7, 8 and 9, but for the rows that Table 1 cites.

    Keys: benchmark (standard, ssb, ood), dataset, method, open_split and unknown, in lower case;
    measures accuracy, auroc, oscr, average_precision, accuracy_std and auroc_std over splits.
    """
    parts = [
        _long("1", benchmark="standard", metric="auroc").query("source == 'this paper'"),
        _long("4", benchmark="standard"),
        _long("3", benchmark="ssb"),
        _long("9", benchmark="ssb", metric="average_precision"),
        _long("7", benchmark="ood", metric="auroc"),
        _long("8", benchmark="ood", metric="auroc", unknown="six-sets"),
    ]
    rows = pd.concat(parts)[["table", *KEYS, "metric", "value"]].dropna(subset="value")
    rows = rows.fillna("").assign(value=rows["value"] / 100)
    wide = rows.pivot_table(index=KEYS, columns="metric", values="value")
    keys = rows.groupby(KEYS)["table"].agg(lambda names: ", ".join(names.unique())).reset_index()
    return Evidence(keys[["table", *KEYS]], {metric: wide[[metric]].to_numpy() for metric in wide})


def _long(number: str, **settings: str) -> pd.DataFrame:
    """A printed table under the names of `printed`; its column of points is `value`."""
    rows = tables.published("vaze2022", f"table{number}")
    names = {"in_distribution": "dataset", "ood": "unknown"}
    rows = rows.rename(columns=lambda c: "value" if c.endswith("_pct") else names.get(c, c))
    for key in {*KEYS} & {*rows}:
        rows[key] = rows[key].str.lower().str.replace("gaussian noise", "gaussian-noise")
    return rows.replace({"method": METHODS}).assign(table=f"Table {number}", **settings)


# Accuracy and AUROC


def correlated(evidence: Evidence, where: str) -> np.ndarray:
    """0.05 minus how far Pearson's rho of accuracy and AUROC is from the stated one."""
    stated = tables.published("vaze2022", "correlations").set_index("name")["pearson_rho"]
    return close(_rho(evidence, where), stated[where], within=RHO_CLOSE)


def easy_correlated_less(evidence: Evidence, _: str) -> np.ndarray:
    """Pearson's rho of accuracy and AUROC, Hard minus Easy."""
    return _rho(evidence, "imagenet-hard") - _rho(evidence, "imagenet-easy")


def _rho(evidence: Evidence, where: str) -> np.ndarray:
    rows, by = POINTS[where]
    points = [each for each in _combinations(evidence, rows, by) if _counts(where, each)]
    if len(points) < 3:
        raise Missing(f"too few points of {where} for a correlation")
    pairs = [[evidence(m, **rows | point) for point in points] for m in ("accuracy", "auroc")]
    x, y = (np.array(each) - np.mean(each, axis=0) for each in pairs)
    return (x * y).sum(axis=0) / np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))


def _combinations(evidence: Evidence, rows: dict[str, str], by: list[str]) -> list[dict[str, str]]:
    """The values of the keys `by` that occur together in rows with these keys."""
    for key in by:
        evidence.names(key, **rows)
    keys = evidence.keys
    fits = (keys[list(rows)] == pd.Series(rows)).all(axis=1)
    return keys.loc[fits, by].drop_duplicates().sort_values(by).to_dict("records")


def _counts(where: str, point: dict[str, str]) -> bool:
    """Whether a point is one of the figure's."""
    if where == "standard":
        return point["method"] in FIGURE_2 and point["dataset"] != "cifar+10"
    return not where.startswith("resnet") or point["model"].startswith("resnet")


# Standard benchmarks


def mls_over_msp(evidence: Evidence, dataset: str) -> np.ndarray:
    """AUROC, MLS minus MSP+."""
    return _standard(evidence, dataset, "mls") - _standard(evidence, dataset, "msp+")


def marginal(evidence: Evidence, dataset: str) -> np.ndarray:
    """standard deviation of ARPL + CS over splits minus the distance of (ARPL + CS)+ from MLS."""
    spread = _standard(evidence, dataset, "arpl + cs", "auroc_std")
    both = (_standard(evidence, dataset, method) for method in ("mls", "(arpl + cs)+"))
    return close(*both, within=spread)


def _standard(evidence: Evidence, dataset: str, method: str, measure: str = "auroc") -> np.ndarray:
    return evidence(measure, benchmark="standard", dataset=dataset, method=method)


# Semantic shift benchmark


def mls_oscr(evidence: Evidence, dataset: str) -> np.ndarray:
    """OSCR, MLS minus ARPL+, on Easy or on Hard, the lesser."""
    return least(*(_over_arpl(evidence, dataset, split, "oscr") for split in ("easy", "hard")))


def negligible(evidence: Evidence, dataset: str) -> np.ndarray:
    """0.017 minus how far the AUROCs of MLS and ARPL+ are apart, Easy and Hard averaged."""
    apart = [_over_arpl(evidence, dataset, split, "auroc") for split in ("easy", "hard")]
    return close(np.mean(apart, axis=0), 0, within=NEGLIGIBLE)


def hard_below_easy(evidence: Evidence, dataset: str) -> np.ndarray:
    """AUROC, Easy minus Hard, of MLS or of ARPL+, the lesser."""
    return least(*(_drop(evidence, dataset, method) for method in ("mls", "arpl+")))


def precision_falls(evidence: Evidence, dataset: str) -> np.ndarray:
    """average precision, Easy minus Hard, of MLS or of ARPL+, the lesser."""
    methods = ("mls", "arpl+")
    return least(*(_drop(evidence, dataset, each, "average_precision") for each in methods))


def easy_to_hard(evidence: Evidence, dataset: str) -> np.ndarray:
    """0.01 minus how far a drop in AUROC from Easy to Hard is from the stated 0.06, at most."""
    drops = (_drop(evidence, dataset, method) for method in ("mls", "arpl+"))
    said = tables.published("vaze2022", "text_claims").set_index("name")["value"]
    stated = float(said["easy_to_hard"]) / 100
    return least(*(close(drop, stated, within=ABOUT) for drop in drops))


def meaning_over_number(evidence: Evidence, dataset: str) -> np.ndarray:
    """drop in AUROC of MLS from Easy to Hard minus that from 1K to 10K random classes."""
    few, many = (_ssb(evidence, dataset, "mls", f"random {number}") for number in ("1k", "10k"))
    return _drop(evidence, dataset, "mls") - (few - many)


def _ssb(
    evidence: Evidence, dataset: str, method: str, split: str, measure: str = "auroc"
) -> np.ndarray:
    where = _network(evidence, benchmark="ssb", dataset=dataset)
    return evidence(measure, method=method, open_split=split, **where)


def _network(evidence: Evidence, **where: str) -> dict[str, str]:
    """The keys, and the network that most methods share, so that they are compared on one.

    Print has one network for each data set and no such key.
    """
    if "model" not in evidence.keys:
        return where
    rows = evidence.keys[(evidence.keys[list(where)] == pd.Series(where)).all(axis=1)]
    methods = rows.groupby("model")["method"].nunique()
    return where | ({"model": methods.idxmax()} if len(methods) else {})


def _over_arpl(evidence: Evidence, dataset: str, split: str, measure: str) -> np.ndarray:
    mls, arpl = (_ssb(evidence, dataset, method, split, measure) for method in ("mls", "arpl+"))
    return mls - arpl


def _drop(evidence: Evidence, dataset: str, method: str, measure: str = "auroc") -> np.ndarray:
    easy, hard = (_ssb(evidence, dataset, method, split, measure) for split in ("easy", "hard"))
    return easy - hard


# Detecting other data sets


def mls_over_arpl_cs(evidence: Evidence, unknown: str) -> np.ndarray:
    """AUROC of CIFAR100 against another data set, MLS minus ARPL+CS."""
    other = _network(evidence, benchmark="ood", dataset="cifar100") | {"unknown": unknown}
    return evidence("auroc", method="mls", **other) - evidence("auroc", method="arpl+cs", **other)


def mls_leads_ood(evidence: Evidence, dataset: str) -> np.ndarray:
    """mean AUROC over six data sets, MLS minus the best other method."""
    table = _network(evidence, benchmark="ood", dataset=dataset) | {"unknown": "six-sets"}
    others = [name for name in evidence.names("method", **table) if name != "mls"]
    found = [evidence("auroc", method=name, **table) for name in others]
    return evidence("auroc", method="mls", **table) - np.max(found, axis=0)
