"""Evidence from the scores tables of 31_kim_train: one row per run, method, task and data set."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from osnb import metrics, tables
from osnb.claims.draws import drawn_weights
from osnb.claims.evidence import Evidence
from osnb.claims.kim2021 import FAR, NEAR, UNKNOWN, WRONG

KEYS = ["run", "benchmark", "method", "task", "dataset", "seed"]
MEASURES = ("accuracy", "aurc", "e_aurc", "auroc", "fpr95")
# a protocol's benchmark in the paper: its own, or the one that it stands for
BENCHMARKS = {"cifar40": "cifar", "imagenet200": "imagenet", "mini_kim": "imagenet"}
BENCHMARKS |= {"mini_kim_digits": "cifar", "tiny_kim": "imagenet"}
CONFIDENCE = "max_softmax_log_odds"  # orders as the largest softmax does, and does not tie at 1
# scores of the Baseline's network that the paper counts as methods
POST_HOC = {"odin": "odin", "openmax": "openmax", "mahalanobis": "mahalanobis"}
NOISE = "gaussian_noise"
METHODS = ("baseline", "crl", "edl", "mcdropout", "ensemble", "augmix", "oe")  # trained ones
# sources of far images that the paper's tables call otherwise
PRINTED_AS = {"lsun_fix": "lsun-fix", "textures": "dtd", "food101": "food-32"}
PRINTED_AS |= {"caltech256": "caltech-45", "places365_large": "places-82"}
ALL, WITHOUT = "all", "all but gaussian noise"  # pools of unknown detection
IN_TABLE_2 = {"cifar": "CIFAR", "imagenet": "ImageNet"}


def in_paper(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs of `tables.collect` whose benchmark and method are the paper's; 40_cross has all."""
    method = runs["recipe"].str.lower()
    return runs[runs["protocol"].isin(list(BENCHMARKS)) & method.isin(METHODS)]


def kim_evidence(
    runs: pd.DataFrame, *, unit: str = "class", seed: int = 0, resamples: int = 1000
) -> Evidence:
    """The measures of Tables 5 and 6 of Kim et al. 2021, for each run, with resamples.

    Misclassification detection ranks the samples of known classes, wrong predictions being the
    errors; near and far detection tells known samples, right or wrong, from one set of unknown
    ones; unknown detection ranks all of them, every unknown sample being an error (Sec. 3).

    Args:
        runs: from `tables.collect`; their column `recipe` names the method. Those that are not
            `in_paper` are left out.
        unit: what is drawn: "class", or "sample" for other images of the same classes.
        seed: of the draws, which all methods of a benchmark share.
        resamples: R.

    Returns:
        `KEYS`, in lower case: benchmark (the miniature's are what they stand for), method, task
        (classification, misclassification_detection, near_ood_detection, far_ood_detection,
        unknown_detection), dataset ("known", "near", a far source, "all", or "all but gaussian
        noise"). Measures: accuracy, aurc and e_aurc (rates), auroc, fpr95; NaN where a task has
        no such measure, or where no prediction is wrong.
    """
    keys, values = [], []
    for run in in_paper(runs).sort_values("run").to_dict("records"):
        scores = tables.read(run["path"]).sort_values("sample", kind="stable")
        for key, found in _rows(run, scores, (unit, seed, resamples)):
            keys.append(key)
            values.append(found)
    none = np.full(1 + resamples, np.nan)
    stacked = {name: np.array([each.get(name, none) for each in values]) for name in MEASURES}
    return Evidence(pd.DataFrame(keys, columns=KEYS), stacked)


def pools(runs: pd.DataFrame) -> pd.DataFrame:
    """How many samples are pooled for unknown detection, beside Table 2 of Kim et al. 2021.

    Args:
        runs: from `tables.collect`; those that are not `in_paper` are left out.

    Returns:
        One row per benchmark that was run: benchmark, fewest and most (test samples, known and
        unknown, of its runs), paper (all test images of Table 2), and alike (whether every run has
        that many).
    """
    test = tables.published("kim2021", "table2").groupby("benchmark")["test"].sum()
    rows = []
    for benchmark, part in in_paper(runs).groupby(runs["protocol"].map(BENCHMARKS)):
        roles = [tables.read(path)["role"] for path in part["path"]]
        sizes = [int(each.isin(["known", "unknown"]).sum()) for each in roles]
        row = {"benchmark": benchmark, "fewest": min(sizes), "most": max(sizes)}
        row["paper"] = int(test[IN_TABLE_2[benchmark]])
        rows.append(row | {"alike": row["fewest"] == row["most"] == row["paper"]})
    return pd.DataFrame(rows, columns=["benchmark", "fewest", "most", "paper", "alike"])


def beside(compared: pd.DataFrame, pools: pd.DataFrame) -> pd.DataFrame:
    """A comparison without the differences of unified AURCs whose pools are not the paper's.

    Errors are counted by images, so two pools of other sizes have other AURCs for one and the same
    ranking.

    Args:
        compared: from `tables.compare`, with a column benchmark (in any case); its column task says
            which rows are of unknown detection, and without one all are.
        pools: from `pools`.
    """
    alike = set(pools.loc[pools["alike"], "benchmark"])
    other = ~compared["benchmark"].str.lower().isin(alike)
    other &= compared["task"] == UNKNOWN if "task" in compared else True
    gone = {"difference": compared["difference"].mask(other)}
    return compared.assign(**gone, within=compared["within"].mask(other, ""))


def pool_sizes(pools: pd.DataFrame) -> str:
    """A line for each benchmark that says whether unified AURCs can be subtracted."""
    of = {False: "so unified AURCs have no difference", True: "as many"}
    rows = pools.to_dict("records")
    sizes = [" to ".join(f"{n}" for n in dict.fromkeys((x["fewest"], x["most"]))) for x in rows]
    return "\n".join(
        f"{x['benchmark']}: {size} samples in the pool, {x['paper']} in Table 2, {of[x['alike']]}"
        for x, size in zip(rows, sizes, strict=True)
    )


def _rows(run: Mapping[str, Any], scores: pd.DataFrame, draws: tuple) -> Iterator[tuple]:
    """(key, measures) of each method, task and data set of a run."""
    benchmark = BENCHMARKS[run["protocol"]]
    name = run["recipe"].lower()
    methods = {name: CONFIDENCE}
    if name == "baseline":
        methods |= {method: rule for rule, method in POST_HOC.items() if rule in scores}
    known = scores[scores["role"] == "known"]
    drawn = drawn_weights(known, f"{run['protocol']} known", *draws)
    tasks = list(_tasks(scores))
    weights = {
        data: drawn_weights(rows, f"{run['protocol']} {data}", *draws) for _, data, rows in tasks
    }
    for method, rule in methods.items():
        key = [run["run"], benchmark, method]
        for task, data, found in _of_known(known, rule, drawn):
            yield [*key, task, data, str(run["seed"])], found
        for task, data, rows in tasks:
            found = _of_unknown(known, rows, rule, (drawn, weights[data]))
            kept = ("aurc", "e_aurc") if task == UNKNOWN else ("auroc", "fpr95")
            yield [*key, task, data, str(run["seed"])], {n: found[n] for n in kept}


def _tasks(scores: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """(task, data set, rows) of each set of unknown samples, one by one and then pooled."""
    unknown = scores[scores["role"] == "unknown"]
    far = unknown["group"] == "far"
    if (~far).any():
        yield NEAR, "near", unknown[~far]
    for source, rows in unknown[far].groupby("source"):
        yield FAR, PRINTED_AS.get(source, source.replace("_", " ")), rows
    yield UNKNOWN, ALL, unknown
    quiet = unknown[unknown["source"] != NOISE]
    if len(quiet):
        yield UNKNOWN, WITHOUT, quiet


def _of_known(known: pd.DataFrame, rule: str, weights: np.ndarray) -> Iterator[tuple]:
    right = (known["pred"] == known["label"]).to_numpy()
    found = metrics.bootstrap_aurc(known[rule], right, weights=weights)
    yield "classification", "known", {"accuracy": found["accuracy"]}
    yield WRONG, "known", {name: found[name] for name in ("aurc", "e_aurc")}


def _of_unknown(
    known: pd.DataFrame, unknown: pd.DataFrame, rule: str, weights: tuple
) -> dict[str, np.ndarray]:
    right = (known["pred"] == known["label"]).to_numpy()
    return metrics.bootstrap_summary(known[rule], right, unknown[rule], weights=weights)
