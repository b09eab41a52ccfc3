"""Any method of the three papers on any of their benchmarks: one row per run, rule and task."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from osnb import metrics, tables
from osnb.claims.draws import drawn_weights
from osnb.claims.evidence import Evidence
from osnb.claims.open_set import RECIPES, training
from osnb.claims.unified import CONFIDENCE, NOISE

KEYS = ["run", "benchmark", "network", "rule", "method", "task", "seed"]
MEASURES = {"accuracy": "accuracy", "auroc": "auroc", "oscr": "oscr_area"}
MEASURES |= {"fpr95": "fpr95", "aurc": "aurc"}
# a protocol, and the benchmark that it is one of
BENCHMARKS = {"p2": "palechor2023", "mini_tinyimagenet": "vaze2022", "mini_kim": "kim2021"}
BENCHMARKS |= {"tinyimagenet": "vaze2022", "tiny_kim": "kim2021", "imagenet200": "kim2021"}
WRONG, UNKNOWN = "wrong", "unknown"
TASKS = (WRONG, "negative", "near", "far", "noise", UNKNOWN)
EXPOSED = "EOS / OE"  # one loss: outlier exposure's second term is that of J_E, see `network`
PALECHOR = {"softmax": "softmax", "background": "BG", "entropic": EXPOSED}
KIM = {"Baseline": "softmax", "MCdropout": "MC dropout", "OE": EXPOSED}
RULES = {CONFIDENCE: "MSP", "max_logit": "MLS", "energy": "energy", "negative_entropy": "entropy"}
RULES |= {"feature_norm": "feature norm", "odin": "ODIN", "openmax": "OpenMax"}
RULES |= {"mahalanobis": "Mahalanobis", "own": "own"}
# the rule by which its paper reads a network that is a method; all others by the largest softmax
READ_BY = {"strong": "max_logit", "RPL": "max_logit", "ARPL": "max_logit", "OSRCI": "own"}
READ_BY |= {"ARPL + CS": "max_logit", "PROSER": "own", "C2AE": "own"}
# a run of 31_kim_train on each benchmark, and what makes of it a network that was not run there
BASES = {"palechor2023": "mini_p2_edl", "vaze2022": "mini_tinyimagenet_edl", "kim2021": "mini_edl"}
PLAIN = {"loss": "softmax", "method": "plain", "head": "linear"}
SETTINGS = {
    "AugMix": {"method": "augmix"},
    "ARPL": {"loss": "arpl", "head": "arpl"},
    "ARPL + CS": {"loss": "arpl", "head": "arpl", "method": "arpl_cs"},
    "BG": {"loss": "background"},
    "C2AE": {"method": "c2ae"},
    "CRL": {"method": "crl"},
    "EDL": {"loss": "edl"},
    "Ensemble": {"members": 3},
    "MC dropout": {"model": "conv_dropout", "dropout": 0.1, "samples": 20},
    "OSRCI": {"method": "osrci", "extra": 1},
    "PROSER": {"method": "proser", "extra": 4},
    "RPL": {"loss": "rpl", "head": "rpl"},
}
FEW = 3  # two methods have one of two orders


def cross_evidence(
    runs: pd.DataFrame,
    *,
    every_rule: bool = False,
    unit: str = "class",
    seed: int = 0,
    resamples: int = 1000,
) -> Evidence:
    """Rules of every network on its benchmark's tasks, all by the same measures.

    The tasks: known samples that are predicted right against those that are not ("wrong", Kim et
    al. 2021, Sec. 3.1), and known samples, right or not, against negatives, against near, far and
    noise images, and against all unknown ones. Scores above mean more known.

    Args:
        runs: from `tables.collect`, of any of the three training notebooks, below each other with
            a column `notebook`; runs of other protocols, and of other splits than 0, are left out.
        every_rule: all of `RULES` on each network; else the largest softmax and the rule by which
            its paper reads it, and all on the plain network.
        unit: what is drawn: "class", or "sample" for other images of the same classes.
        seed: of the draws, which all networks of a benchmark share.
        resamples: R.

    Returns:
        `KEYS`: benchmark (the key of its paper), network, rule (its column), method (see
        `method`), task (of `TASKS`). Measures, rates: accuracy on the known classes; auroc and
        fpr95 of the task; oscr, the area under CCR over FPR, and aurc with all but right
        predictions as errors. For "wrong" oscr is NaN, aurc that of known samples, and auroc and
        fpr95 are NaN where no prediction is wrong, or all are; so too in such resamples.
    """
    keys, values = [], []
    for run in runs.sort_values("run").to_dict("records"):
        if run["protocol"] in BENCHMARKS and not run.get("split", 0) > 0:  # NaN: there are none
            scores = tables.read(run["path"]).sort_values("sample", kind="stable")
            for key, found in _rows(run, scores, every_rule, (unit, seed, resamples)):
                keys.append(key)
                values.append(found)
    stacked = {
        name: np.array([each[of] for each in values]).reshape(len(values), 1 + resamples)
        for name, of in MEASURES.items()
    }
    return Evidence(pd.DataFrame(keys, columns=KEYS), stacked)


def cross_cells(evidence: Evidence) -> Evidence:
    """The mean of each measure over the seeds of a method: one row per method and task.

    A run without a number, such as the AUROC of wrong predictions where there are none, is left
    out of that mean.

    Args:
        evidence: from `cross_evidence`.

    Returns:
        Keys runs (names, with blanks between), benchmark, network, rule, method, task and seeds
        (how many); the measures of `cross_evidence`. In a resample a NaN stays one.
    """
    by = ["benchmark", "network", "rule", "method", "task"]
    keys, values = [], {name: [] for name in evidence.values}
    for key, rows in evidence.keys.groupby(by, sort=False):
        keys.append([" ".join(rows["run"]), *key, str(len(rows))])
        for name, each in evidence.values.items():
            part = each[rows.index]
            kept = part[~np.isnan(part[:, 0])]
            values[name].append((kept if len(kept) else part).mean(axis=0))
    stacked = {n: np.reshape(v, (len(keys), 1 + evidence.resamples)) for n, v in values.items()}
    return Evidence(pd.DataFrame(keys, columns=["runs", *by, "seeds"]), stacked)


def network(run: Mapping[str, Any]) -> str:
    """What a training is called in all three papers' tables: "softmax" is the plain one.

    The entropic open-set loss (EOS) and outlier exposure (OE) are one row. Both add, to the
    cross-entropy of known samples, a price times the cross-entropy of others against the uniform
    distribution; they differ in that price and in how the others come into a batch.
    """
    if run["notebook"] == "12_palechor_train":
        return PALECHOR.get(run["loss"], run["loss"])
    if run["notebook"] == "31_kim_train":
        return KIM.get(run["recipe"], run["recipe"])
    trained, recipe = training(run), run["recipe"]
    if recipe not in RECIPES:
        return {"ensemble": "Ensemble"}.get(recipe, f"softmax with {recipe}".replace("_", " "))
    return "strong" if (trained, recipe) == ("softmax", "strong") else trained + RECIPES[recipe]


def method(network: str, rule: str) -> str:
    """The name of a network that is read by a rule: the one naming of all tables.

    On the plain network the rule is the method (MSP, MLS, energy, ...), except that MSP is what
    every paper calls the baseline. A network that is a method keeps its name under the rule that
    its paper reads it by, else the rule is named behind a comma. OSRCI by OpenMax is G-OpenMax.
    """
    named = RULES.get(rule, rule.replace("_", " "))
    if network == "softmax":
        return named
    if (network, rule) == ("OSRCI", "openmax"):
        return "G-OpenMax"
    usual = READ_BY.get(network.rstrip("+").strip(), CONFIDENCE)
    return network if rule == usual else f"{network}, {named}"


def command(network: str, benchmark: str) -> str:
    """What trains a network in miniature on a benchmark, by 31_kim_train; "" for one it cannot.

    It cannot train those with the strong recipe, whose augmentation it has no settings for, and
    it does not read OSRCI by OpenMax.

    Args:
        network: as `network` names it.
        benchmark: a key of `BASES`.
    """
    if network not in SETTINGS:
        return ""
    settings = PLAIN | SETTINGS[network] | {"recipe": network}
    words = " ".join(f'-p "{key}={value}"' for key, value in settings.items())
    return f"osnb run params/31_kim_train/{BASES[benchmark]}.yaml {words}"


def spearman(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """(1 + R,) rank correlation over n methods of (n, 1 + R) each; ties share their mean rank.

    NaN with fewer than three methods, with a NaN among them, or where one side does not vary.
    """
    x, y = (_ranks(each) - (len(each) + 1) / 2 for each in (one, other))
    below = np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))
    fits = (below > 0) & (len(x) >= FEW)
    return np.divide((x * y).sum(axis=0), below, out=np.full(x.shape[1], np.nan), where=fits)


def kendall_w(values: np.ndarray) -> np.ndarray:
    """(1 + R,) concordance of m tasks about n methods: 1 if all rank alike, near 1 / m by chance.

    With R_i the sum of method i's ranks and T the sum of t^3 - t over the ties of a task,

        W = 12 sum_i (R_i - m (n + 1) / 2)^2 / (m^2 (n^3 - n) - m sum T)

    Without ties the mean of Spearman's rho over all pairs of tasks is (m W - 1) / (m - 1).

    Args:
        values: (m, n, 1 + R) of any unit, m >= 2. A resample with a NaN gives NaN.
    """
    ranks = np.array([_ranks(each) for each in values])
    m, n, _ = ranks.shape
    spread = ((ranks.sum(axis=0) - m * (n + 1) / 2) ** 2).sum(axis=0)
    below = m * ((ranks - (n + 1) / 2) ** 2).sum(axis=(0, 1))  # (m (n^3 - n) - sum T) m / 12
    return np.divide(spread, below, out=np.full(len(below), np.nan), where=below > 0)


def _ranks(values: np.ndarray) -> np.ndarray:
    """(n, 1 + R) ranks from 1 within each column, NaN throughout one with a NaN."""
    ranks = pd.DataFrame(values).rank().to_numpy()
    return np.where(np.isnan(values).any(axis=0), np.nan, ranks)


def _rows(
    run: Mapping[str, Any], scores: pd.DataFrame, every_rule: bool, draws: tuple
) -> Iterator[tuple]:
    """(key, measures) of each rule and task of a run."""
    known, named = scores[scores["role"] == "known"], network(run)
    right = (known["pred"] == known["label"]).to_numpy()
    where = f"{run['protocol']} "
    drawn = drawn_weights(known, where + "known", *draws)
    parts = [(task, rows) for task, rows in _tasks(scores) if len(rows)]
    weights = {task: drawn_weights(rows, where + task, *draws) for task, rows in parts}
    usual = [name for name in RULES if name == CONFIDENCE or "," not in method(named, name)]
    for rule in (name for name in (RULES if every_rule else usual) if name in scores):
        key = [run["run"], BENCHMARKS[run["protocol"]], named, rule, method(named, rule)]
        score = known[rule].to_numpy()
        yield [*key, WRONG, str(run["seed"])], _of_wrong(score, right, drawn)
        for task, rows in parts:
            both = drawn, weights[task]
            found = metrics.bootstrap_summary(score, right, rows[rule].to_numpy(), weights=both)
            yield [*key, task, str(run["seed"])], found


def _tasks(scores: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    unknown, noise = scores["role"] == "unknown", scores["source"] == NOISE
    yield "negative", scores[scores["role"] == "negative"]
    yield "near", scores[unknown & (scores["group"] == "near")]
    yield "far", scores[unknown & (scores["group"] == "far") & ~noise]
    yield "noise", scores[unknown & noise]
    yield UNKNOWN, scores[unknown]


def _of_wrong(score: np.ndarray, right: np.ndarray, weights: np.ndarray) -> dict[str, np.ndarray]:
    """The measures of right predictions against wrong ones; NaN where one side is empty."""
    none = np.full(len(weights), np.nan)
    risk = metrics.bootstrap_aurc(score, right, weights=weights)
    found = risk | {"oscr_area": none, "auroc": none.copy(), "fpr95": none.copy()}
    sides = weights[:, right], weights[:, ~right]
    both = np.all([each.sum(axis=1) > 0 for each in sides], axis=0)
    if both[0]:
        of = score[right], np.ones(int(right.sum()), bool), score[~right]
        told = metrics.bootstrap_summary(*of, weights=tuple(each[both] for each in sides))
        for name in ("auroc", "fpr95"):
            found[name][both] = told[name]
    return found
