"""Findings of Kim et al. 2021, each a number that is above 0 if the finding holds.

The first line of a predicate says what its number is; `where` is a benchmark: cifar or imagenet.
AURC is a rate here; the paper prints it times 1000. Lower is better.
"""

import numpy as np
import pandas as pd

from osnb import tables
from osnb.claims.evidence import Evidence, Same, least

MEASURES = {"ACC": "accuracy", "AURC_x1000": "aurc", "AUROC": "auroc", "FPR_95TPR": "fpr95"}
UNITS = {"accuracy": 100, "aurc": 1000, "auroc": 100, "fpr95": 100}  # printed per rate
PRINTED = {"cifar": ("table5", "Table 5"), "imagenet": ("table6", "Table 6")}
KEYS = ["benchmark", "method", "task", "dataset"]

UNKNOWN, WRONG = "unknown_detection", "misclassification_detection"
NEAR, FAR = "near_ood_detection", "far_ood_detection"


def printed() -> Evidence:
    """Tables 5 and 6.

    Keys: benchmark (cifar, imagenet), method and dataset in lower case, and task; measures
    accuracy, aurc, auroc and fpr95, means over five trainings.
    """
    parts = [
        tables.published("kim2021", file).assign(benchmark=benchmark, table=name)
        for benchmark, (file, name) in PRINTED.items()
    ]
    rows = pd.concat(parts).replace({"metric": MEASURES})
    rows = rows.assign(method=rows["method"].str.lower(), dataset=rows["dataset"].str.lower())
    rows["mean"] /= rows["metric"].map(UNITS)
    wide = rows.pivot_table(index=["table", *KEYS], columns="metric", values="mean")
    keys = wide.index.to_frame(index=False)
    return Evidence(keys, {metric: wide[[metric]].to_numpy() for metric in wide})


# Unknown detection: all unknown samples in one pool


def ensemble_unified(evidence: Evidence, benchmark: str) -> np.ndarray:
    """AURC of unknown detection, the best other method minus Deep Ensemble."""
    return _lead(evidence, benchmark, "ensemble", "aurc", UNKNOWN)


def no_method_leads_all(evidence: Evidence, benchmark: str) -> np.ndarray:
    """how far each method is behind the best one where it is furthest behind, the least of all."""
    methods = _others(evidence, benchmark)
    return least(*(_furthest_behind(evidence, benchmark, method) for method in methods))


def figure_5_better(evidence: Evidence, benchmark: str) -> np.ndarray:
    """AURC of unknown detection, Baseline minus CRL, EDL, Ensemble, AugMix or OE, the least."""
    methods = ("crl", "edl", "ensemble", "augmix", "oe")
    return least(*(-_rise(evidence, benchmark, method, UNKNOWN) for method in methods))


def figure_5_odin(evidence: Evidence, benchmark: str) -> np.ndarray:
    """AURC of unknown detection, ODIN minus Baseline."""
    return _rise(evidence, benchmark, "odin", UNKNOWN)


def openmax_far_only(evidence: Evidence, benchmark: str) -> np.ndarray:
    """lead of OpenMax on Caltech-45 and Places-82, lag behind all in unknown detection: the least.

    Lead in AUROC over the best other method; lag in AURC behind the worst other one.
    """
    leads = (
        _lead(evidence, benchmark, "openmax", "auroc", FAR, dataset)
        for dataset in ("caltech-45", "places-82")
    )
    others = _others(evidence, benchmark, "openmax")
    worst = np.max([_aurc(evidence, benchmark, other, UNKNOWN) for other in others], axis=0)
    return least(*leads, _aurc(evidence, benchmark, "openmax", UNKNOWN) - worst)


# Its parts: misclassified, near and far samples


def ensemble_accuracy(evidence: Evidence, benchmark: str) -> np.ndarray:
    """closed-set accuracy, Deep Ensemble minus the best other method."""
    return _lead(evidence, benchmark, "ensemble", "accuracy", "classification")


def ensemble_misclassification(evidence: Evidence, benchmark: str) -> np.ndarray:
    """AURC of misclassification detection, the best other method minus Deep Ensemble."""
    return _lead(evidence, benchmark, "ensemble", "aurc", WRONG)


def misclassification_better(evidence: Evidence, benchmark: str) -> np.ndarray:
    """AURC of misclassification, Baseline minus CRL, MC dropout, Ensemble or AugMix, the least."""
    methods = ("crl", "mcdropout", "ensemble", "augmix")
    return least(*(-_rise(evidence, benchmark, method, WRONG) for method in methods))


def misclassification_worse(evidence: Evidence, benchmark: str) -> np.ndarray:
    """AURC of misclassification detection, ODIN or OpenMax minus Baseline, the lesser.

    Both read Baseline's networks, so they are compared seed by seed; seeds that differ in sign, or
    a seed without a wrong prediction, decide nothing.
    """
    rises = [_rise_of_seeds(evidence, benchmark, each, WRONG) for each in ("odin", "openmax")]
    one_by_one = np.min(rises, axis=0)
    if {*np.sign(one_by_one[:, 0])} not in ({1}, {-1}):
        said = ", ".join(f"{each:.4f}" for each in one_by_one[:, 0])
        raise Same(f"no sign that all seeds share: {said}")
    return least(*(each.mean(axis=0) for each in rises))


def far_easier(evidence: Evidence, benchmark: str) -> np.ndarray:
    """AUROC of Baseline, mean of the far data sets minus near."""
    baseline = {"benchmark": benchmark, "method": "baseline"}
    return evidence("auroc", task=FAR, **baseline) - evidence("auroc", task=NEAR, **baseline)


def ensemble_near(evidence: Evidence, benchmark: str) -> np.ndarray:
    """AUROC on near samples, Deep Ensemble minus the best other method but OE."""
    return _lead(evidence, benchmark, "ensemble", "auroc", NEAR, beside="oe")


def oe_near(evidence: Evidence, benchmark: str) -> np.ndarray:
    """AUROC on near samples, OE minus the best other method."""
    return _lead(evidence, benchmark, "oe", "auroc", NEAR)


def oe_far(evidence: Evidence, benchmark: str) -> np.ndarray:
    """AUROC of OE minus that of the best other method, the least of the far data sets."""
    datasets = evidence.names("dataset", benchmark=benchmark, task=FAR)
    return least(*(_lead(evidence, benchmark, "oe", "auroc", FAR, each) for each in datasets))


def oe_trades(evidence: Evidence, benchmark: str) -> np.ndarray:
    """what OE loses against Baseline: AUROC on near samples or AURC of wrong ones, the lesser."""
    near = {"benchmark": benchmark, "task": NEAR}
    baseline, oe = (evidence("auroc", method=each, **near) for each in ("baseline", "oe"))
    return least(baseline - oe, _rise(evidence, benchmark, "oe", WRONG))


def _aurc(evidence: Evidence, benchmark: str, method: str, task: str) -> np.ndarray:
    return evidence("aurc", benchmark=benchmark, method=method, task=task)


def _rise(evidence: Evidence, benchmark: str, method: str, task: str) -> np.ndarray:
    """AURC of a method minus Baseline's."""
    return _aurc(evidence, benchmark, method, task) - _aurc(evidence, benchmark, "baseline", task)


def _rise_of_seeds(evidence: Evidence, benchmark: str, method: str, task: str) -> np.ndarray:
    """(seeds, 1 + R) of `_rise`, where the method reads Baseline's networks.

    Where it reads not all of them, Baseline's is the mean over all.
    """
    where = {"benchmark": benchmark, "task": task}
    one, base = (evidence.rows("aurc", method=each, **where) for each in (method, "baseline"))
    return one - (base if len(base) == len(one) else base.mean(axis=0))


def _others(evidence: Evidence, benchmark: str, *without: str) -> list[str]:
    """The paper's methods but for some; Mahalanobis distance is named there, and left out."""
    left_out = {*without, "mahalanobis"}
    return [x for x in evidence.names("method", benchmark=benchmark) if x not in left_out]


def _lead(
    evidence: Evidence,
    benchmark: str,
    method: str,
    measure: str,
    task: str,
    dataset: str = "",
    *,
    beside: str = "",
) -> np.ndarray:
    """How much better than the best other method, `beside` left out; in AURC less is better."""
    where = {"benchmark": benchmark, "task": task} | ({"dataset": dataset} if dataset else {})
    sign = -1 if measure == "aurc" else 1
    others = _others(evidence, benchmark, method, beside)
    found = [sign * evidence(measure, method=other, **where) for other in others]
    return sign * evidence(measure, method=method, **where) - np.max(found, axis=0)


def _furthest_behind(evidence: Evidence, benchmark: str, method: str) -> np.ndarray:
    """The largest lag of a method: in AUROC on a data set, or in AURC of misclassification."""
    lags = [-_lead(evidence, benchmark, method, "aurc", WRONG)]
    for task in (NEAR, FAR):
        for dataset in evidence.names("dataset", benchmark=benchmark, task=task):
            lags.append(-_lead(evidence, benchmark, method, "auroc", task, dataset))
    return np.max(lags, axis=0)
