"""What computes the metrics of a sample: ours, public libraries, and the sort under all of them.

A candidate makes ready what it needs of a sample, untimed, and returns the call to be timed.
That gives values under the names of `summary`; where a library follows another rule, the name
says so in brackets, as in `expected`. To add one, write it and name it in CANDIDATES.
"""

import importlib
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Call = Callable[[], dict[str, float]]


class Sample(NamedTuple):
    """Scores of K known samples, whether their predictions are right, scores of U unknown ones."""

    known: np.ndarray
    correct: np.ndarray
    unknown: np.ndarray

    def pooled(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(score, is_known, right), (K + U,) each, as libraries want them; is_known is 1 or 0."""
        sizes, wrong = [len(self.known), len(self.unknown)], np.zeros(len(self.unknown), bool)
        score = np.append(self.known, self.unknown)
        return score, np.repeat([1, 0], sizes), np.append(self.correct, wrong)


def draw(rows: int, kind: str = "float32") -> Sample:
    """Two thirds known, four fifths of them right; normal scores, one deviation apart."""
    rng, size = np.random.default_rng(0), rows * 2 // 3
    known = rng.standard_normal(size, dtype=kind)
    known += 1
    correct = rng.integers(5, size=size, dtype=np.uint8) > 0
    return Sample(known, correct, rng.standard_normal(rows - size, dtype=kind))


def expected(sample: Sample) -> dict[str, float]:
    """`summary`, and what it would be by each rule that a library follows instead."""
    from osnb import metrics

    ours, (known, _, unknown) = metrics.summary(*sample), sample
    score, _, right = sample.pooled()
    risk, openood = metrics.risk_coverage(score, right)[1], {"convention": "openood"}
    return ours | {
        "fpr95 (of the unknown)": metrics.fpr_at_tpr(known, unknown, tpr=0.95, **openood),
        "average_precision (trapezoid)": metrics.average_precision(known, unknown, **openood),
        "aurc (trapezoid)": (risk.sum() - (risk[0] + risk[-1]) / 2) / (len(risk) - 1),
        "e_aurc (finite)": ours["aurc"] - metrics.aurc(right.astype(float), right),
    }


# The candidates.


def bare_sort(sample: Sample) -> Call:
    """What all have to do at least: `np.sort` of as many uint64."""
    keys = np.random.default_rng(0).integers(2**63, size=len(sample.pooled()[0]), dtype=np.uint64)

    def call():
        np.sort(keys)
        return {}

    return call


def ours(sample: Sample, kind: type = np.float32) -> Call:
    """`summary`."""
    from osnb import metrics

    columns = sample.known.astype(kind), sample.correct, sample.unknown.astype(kind)
    return lambda: metrics.summary(*columns)


def osr_metrics(sample: Sample) -> Call:
    """All quantities, with a sort for each; CCR is read from the curve that it returns."""
    import osr_metrics as osr

    from osnb.metrics.bootstrap import FPRS

    score, is_known, right = sample.pooled()
    minus, is_unknown, wrong = -score, 1 - is_known, 1.0 - right

    def call():
        fpr, ccr, area = osr.oscr_curve(minus, is_unknown, right)
        return {
            "oscr_area": area,
            **{f"ccr_at_fpr_{q:g}": ccr[np.searchsorted(fpr, q, "right") - 1] for q in FPRS},
            "auroc": osr.auroc(minus, is_unknown),
            "fpr95": osr.fpr_at_95tpr(score, is_known),
            "average_precision": osr.aupr_out(minus, is_unknown),
            "aurc": osr.aurc(minus, wrong),
            "e_aurc (finite)": osr.eaurc(minus, wrong),
        }

    return call


def pytorch_ood(sample: Sample) -> Call:
    """Five quantities; its collection of metrics sorts once for three of them."""
    importlib.import_module("osnb.datasets.vision")  # the guard: what follows imports torchvision
    import torch
    from pytorch_ood.metrics import AUPR, AUROC, FPRAtTPR, MetricCollection, aurra, oscr_score

    score, is_known, right = map(torch.tensor, sample.pooled())
    minus, label, predicted = -score, is_known - 1, (~right).long()

    def call():
        shared = MetricCollection([AUROC(), AUPR(), FPRAtTPR()])
        found = shared.update(scores=minus, labels=label).compute()
        return {
            "oscr_area": oscr_score(minus, predicted, label),
            "auroc": found["AUROC"],
            "fpr95 (of the unknown)": found["FPR95TPR"],
            "average_precision (trapezoid)": found["AUPR-OUT"],
            "aurc": 1 - aurra(score, right),
        }

    return call


def torch_uncertainty(sample: Sample) -> Call:
    """Four quantities, two of them by torchmetrics, as in its own evaluation."""
    importlib.import_module("osnb.datasets.vision")  # the guard: what follows imports torchvision
    import torch
    from torch_uncertainty.metrics.classification import AURC, FPR95
    from torchmetrics.functional.classification import binary_auroc, binary_average_precision

    score, is_known, right = map(torch.tensor, sample.pooled())
    score = score.unique(return_inverse=True)[1] / len(score)  # in [0, 1): it is not squashed
    minus, is_unknown, wrong = 1 - score, 1 - is_known, (~right).long()
    two = torch.stack([score, torch.full_like(score, -1)], dim=1)

    def call():
        with warnings.catch_warnings(action="ignore"):  # that it keeps what it is given
            risk, false = AURC(), FPR95(pos_label=1)
        risk.update(two, wrong)
        false.update(score, is_known)
        return {
            "auroc": float(binary_auroc(score, is_known)),
            "fpr95": float(false.compute()),
            "average_precision": float(binary_average_precision(minus, is_unknown)),
            "aurc (trapezoid)": float(risk.compute()),
        }

    return call


def scikit_learn(sample: Sample) -> Call:
    """Three quantities from two sorts."""
    from sklearn.metrics import auc, average_precision_score, roc_curve

    score, is_known, _ = sample.pooled()
    minus, is_unknown = -score, 1 - is_known

    def call():
        fpr, tpr, _ = roc_curve(is_known, score, drop_intermediate=False)
        return {
            "auroc": auc(fpr, tpr),
            "fpr95": fpr[np.searchsorted(tpr, 0.95)],
            "average_precision": average_precision_score(is_unknown, minus),
        }

    return call


SORT, OURS = "bare sort", "summary float32"
CANDIDATES = {  # libraries are called as pip knows them
    SORT: bare_sort,
    OURS: ours,
    "summary float64": lambda sample: ours(sample, np.float64),
    "osr-metrics": osr_metrics,
    "pytorch-ood": pytorch_ood,
    "torch-uncertainty[cpu]": torch_uncertainty,
    "scikit-learn": scikit_learn,
}
