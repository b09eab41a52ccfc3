"""Evidence from the scores tables of 21_vaze_train: one row per run, rule and set of unknowns."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from osnb import metrics, tables
from osnb.claims.draws import drawn_weights
from osnb.claims.evidence import Evidence

KEYS = ["run", "benchmark", "dataset", "split", "seed", "method", "open_split", "unknown"]
KEYS += ["training", "recipe", "rule", "model"]
MEASURES = {"accuracy": "accuracy", "auroc": "auroc", "oscr": "oscr_area"}
MEASURES |= {"average_precision": "average_precision", "fpr95": "fpr95"}
# a protocol's benchmark, and the data set of the paper that it is, or that it stands for
DATASETS = {
    "mnist": ("standard", "mnist"),
    "mini_digits": ("standard", "mnist"),
    "svhn": ("standard", "svhn"),
    "cifar10": ("standard", "cifar10"),
    "cifar_plus_10": ("standard", "cifar+10"),
    "cifar_plus_50": ("standard", "cifar+50"),
    "tinyimagenet": ("standard", "tinyimagenet"),
    "mini_tinyimagenet": ("standard", "tinyimagenet"),
    "ssb_cub": ("ssb", "cub"),
    "mini_ssb_fine": ("ssb", "cub"),
    "ssb_cars": ("ssb", "scars"),
    "ssb_aircraft": ("ssb", "fgvc-aircraft"),
    "ssb_imagenet": ("ssb", "imagenet"),
    "mini_ssb_imagenet": ("ssb", "imagenet"),
    "mini_closed": ("ood", "cifar100"),
}
TRAININGS = {"arpl": "ARPL", "rpl": "RPL", "arpl_cs": "ARPL + CS", "osrci": "OSRCI"}
TRAININGS |= {"proser": "PROSER", "c2ae": "C2AE", "plain": "softmax"}
# what the paper calls a network, its recipe (+ for the strong one) and the rule that reads it
METHODS = {
    ("softmax", "", "max_softmax_log_odds"): "MSP",
    ("softmax", "+", "max_softmax_log_odds"): "MSP+",
    ("softmax", "+", "max_logit"): "MLS",
    ("softmax", "", "max_logit"): "MLS, baseline",
    ("softmax", "", "openmax"): "OpenMax",
    ("softmax", "", "odin"): "ODIN",
    ("softmax", "", "energy"): "Energy Score",
    ("softmax", "", "mahalanobis"): "Mahalanobis",
    ("softmax", "", "feature_norm"): "feature norm",
    ("OSRCI", "", "openmax"): "G-OpenMax",
    ("OSRCI", "", "own"): "OSRCI",
    ("OSRCI", "+", "own"): "OSRCI+",
    ("C2AE", "", "own"): "C2AE",
    ("PROSER", "", "own"): "PROSER",
    ("RPL", "", "max_logit"): "RPL",
    ("ARPL", "", "max_logit"): "ARPL",
    ("ARPL", "+", "max_logit"): "ARPL+",
    ("ARPL + CS", "", "max_logit"): "ARPL + CS",
    ("ARPL + CS", "+", "max_logit"): "(ARPL + CS)+",
}
OOD = {"mls, baseline": "mls", "arpl + cs": "arpl+cs"}  # as Tables 7 and 8 call them
IN_PLACE = {"near": "cifar10", "digits": "svhn"}  # sets of mini_closed in the place of Table 7's
RECIPES = {"baseline": "", "strong": "+"}
HARD = ("medium", "hard")  # what results on hard classes are about (Sec. 5.2)
FEW = 10  # times fewer random classes: 1,000 of 10,000


def vaze_evidence(
    runs: pd.DataFrame,
    *,
    every_rule: bool = False,
    unit: str = "class",
    seed: int = 0,
    resamples: int = 1000,
) -> Evidence:
    """Accuracy, AUROC, OSCR, AP and FPR95 of runs of 21_vaze_train, with resamples.

    Classes are drawn once for each data set, split and set of unknowns, so that differences
    between methods are paired.

    Args:
        runs: from `tables.collect`.
        every_rule: every column of scores; else those that have a name in the paper, `METHODS`.
        unit: what is drawn: "class", or "sample" for other images of the same classes.
        seed: of the draws.
        resamples: R.

    Returns:
        `KEYS`: benchmark (standard, ssb, ood), dataset (as the paper's tables call it; the
        miniature's are what they stand for), split, seed, method (empty without a name),
        open_split (easy, medium, hard, which is both, hardest, random 1k and 10k, or empty),
        unknown (another data set's name, in mini_closed that of the paper's in whose place it is,
        see `IN_PLACE`; or empty), training, recipe, rule and model, in lower case but for
        training. Measures: accuracy, auroc, oscr, average_precision, fpr95; and
        accuracy_std and auroc_std over the splits of a data set, NaN for one.
    """
    keys, values = [], []
    for run in runs.sort_values("run").to_dict("records"):
        scores = tables.read(run["path"]).sort_values("sample", kind="stable")
        for key, found in _rows(run, scores, every_rule, (unit, seed, resamples)):
            keys.append(key)
            values.append(found)
    frame = pd.DataFrame(keys, columns=KEYS)
    stacked = {name: np.array([each[of] for each in values]) for name, of in MEASURES.items()}
    spread = {f"{name}_std": _over_splits(frame, stacked[name]) for name in ("accuracy", "auroc")}
    return Evidence(frame, stacked | spread)


def training(run: Mapping[str, Any]) -> str:
    """What the paper calls a network that was trained in this way; see `TRAININGS`."""
    plain = run["method"] == "plain"
    return TRAININGS.get(run["loss"] if plain else run["method"], TRAININGS["plain"])


def _rows(run: Mapping, scores: pd.DataFrame, every_rule: bool, draws: tuple) -> Iterator[tuple]:
    known = scores[scores["role"] == "known"]
    right = (known["pred"] == known["label"]).to_numpy()
    trained, plus = training(run), RECIPES.get(run["recipe"])
    benchmark, dataset = DATASETS.get(run["protocol"], ("ood", run["dataset"]))
    where = f"{dataset} {run['split']}"
    weights = drawn_weights(known, f"{where} known", *draws)
    model = run["backbone"] or f"{run['model']} {run['width']}"
    for open_split, other, unknown in _unknowns(scores, run):
        drawn = weights, drawn_weights(unknown, f"{where} {open_split} {other}", *draws)
        for rule in (c for c in scores if c not in tables.COLUMNS):
            method = METHODS.get((trained, plus, rule), "")
            if method or every_rule:
                key = [run["run"], benchmark, dataset, str(run["split"]), str(run["seed"])]
                key += [method.lower(), open_split, other, trained, run["recipe"], rule, model]
                score = known[rule], right, unknown[rule]
                yield key, metrics.bootstrap_summary(*score, weights=drawn)


def _unknowns(scores: pd.DataFrame, run: Mapping) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """(open_split, other data set, rows) of each set of unknown samples."""
    unknown = scores[scores["role"] == "unknown"]
    other = unknown["source"] != run["dataset"]
    place = IN_PLACE if run["protocol"] == "mini_closed" else {}
    groups = dict(list(unknown[~other].groupby("group")))
    if "hard" in groups and "medium" in groups:
        yield "hardest", "", groups["hard"]
        groups["hard"] = unknown[~other & unknown["group"].isin(HARD)]
    if "random" in groups:
        many = groups.pop("random")
        yield "random 10k", "", many
        names = np.random.default_rng(0).permutation(many["class"].unique())
        yield "random 1k", "", many[many["class"].isin(names[: max(len(names) // FEW, 1)])]
    for name, rows in groups.items():
        yield ("", place[name], rows) if name in place else (name, "", rows)
    for name, rows in unknown[other].groupby("source"):
        yield "", place.get(name, name.replace("_", "-")), rows


def _over_splits(keys: pd.DataFrame, values: np.ndarray) -> np.ndarray:
    """Standard deviation (divisor n - 1) over splits, in each of their rows; NaN for one split."""
    found = np.full(values.shape, np.nan)
    alike = [name for name in KEYS if name not in ("run", "split", "seed")]
    for rows in keys.groupby(alike, sort=False).indices.values():
        splits = keys["split"].to_numpy()[rows]
        means = [values[rows[splits == each]].mean(axis=0) for each in sorted(set(splits))]
        if len(means) > 1:
            found[rows] = np.std(means, axis=0, ddof=1)
    return found


def for_claims(evidence: Evidence) -> Evidence:
    """The same rows, those of other data sets under the names of Tables 7 and 8.

    There the paper's MLS is a network of the usual recipe, and of a network that was tested on
    several data sets the mean AUROC is one row more, unknown "six-sets".
    """
    keys, ood = evidence.keys.copy(), (evidence.keys["benchmark"] == "ood").to_numpy()
    keys.loc[ood, "method"] = keys.loc[ood, "method"].replace(OOD)
    several = keys[ood].groupby("run")["unknown"].transform("nunique") > 1
    alike = [name for name in KEYS if name not in ("open_split", "unknown")]
    groups = keys[ood][several].groupby(alike, sort=False).groups
    mean = {
        name: np.array([each[list(rows)].mean(axis=0) for rows in groups.values()])
        for name, each in evidence.values.items()
    }
    if not groups:
        return Evidence(keys, evidence.values)
    found = pd.DataFrame(list(groups), columns=alike).assign(open_split="", unknown="six-sets")
    return Evidence(keys, evidence.values) + Evidence(found[KEYS], mean)
