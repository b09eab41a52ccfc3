"""Each metric beside public libraries: where they agree, and by which rule where they do not.

A sample is (known, correct, unknown), as in `tests/test_metrics.py`. Libraries ask for one column
and a label, which is made from it here; they are given float64, so that no rounding is compared.
"""

from importlib import import_module as library

import numpy as np
import pytest
import torch
from sklearn import metrics as sklearn
from test_metrics import drawn

from osnb import metrics
from osnb.datasets.vision import torchvision  # noqa: F401  # libraries, imported later, need the guard

WITHOUT_TIES = ["distinct", "float32", "mostly unknown", "mostly known", "logits"]


SETS = {
    "distinct": drawn(60, 40),
    "tied": drawn(1200, 800, digits=0),
    "float32": drawn(64, 64, kind=np.float32),
    "mostly unknown": drawn(20, 200),
    "mostly known": drawn(300, 15, seed=1),
    "logits": drawn(50, 50, shift=25),
    "two scores": (np.array([1.0, 1.0, 0.0]), np.array([True, False, True]), np.zeros(5)),
}


def ranked(known, unknown, of="unknown"):
    """(score, label): label 1 is what is looked for, whose scores should be the higher ones."""
    score, is_known = np.concatenate([known, unknown], dtype=float), np.ones(len(known), int)
    is_known = np.append(is_known, np.zeros(len(unknown), int))
    return (score, is_known) if of == "known" else (-score, 1 - is_known)


def pooled(known, correct, unknown):
    """(score, right) of unknown detection: every unknown sample is an error."""
    right = np.append(correct, np.zeros(len(unknown), bool))
    return np.concatenate([known, unknown], dtype=float), right


def osr(name, of="unknown"):
    """A detection metric of osr-metrics."""
    return lambda k, c, u: getattr(library("osr_metrics"), name)(*ranked(k, u, of))


def osr_risk(name):
    """A metric of selective prediction of osr-metrics: the loss of an error is 1."""

    def theirs(*sample):
        score, right = pooled(*sample)
        return getattr(library("osr_metrics"), name)(-score, 1.0 - right)

    return theirs


def osr_oscr(known, correct, unknown):
    """(fpr, ccr, area) of osr-metrics."""
    right = np.append(correct, np.zeros(len(unknown), bool))
    return library("osr_metrics").oscr_curve(*ranked(known, unknown), right)


def ood(name, of="unknown", **settings):
    """A detection metric of pytorch-ood, whose label of what is looked for is negative."""

    def theirs(known, correct, unknown):
        score, label = map(torch.tensor, ranked(known, unknown, of))
        functional = library("pytorch_ood.metrics.functional")
        return getattr(functional, name)(score, -label, **settings)

    return theirs


def ood_oscr(known, correct, unknown):
    score, label = map(torch.tensor, ranked(known, unknown))
    predicted = torch.tensor(np.append(~correct, np.zeros(len(unknown), int)).astype(int))
    return library("pytorch_ood.metrics").oscr_score(score, predicted, -label)


def ood_risk(score, right):
    """1 - AURRA of pytorch-ood."""
    functional = library("pytorch_ood.metrics.functional")
    return 1 - functional.aurra(torch.tensor(score), torch.tensor(right))


def torchmetric(name):
    """A detection metric of torchmetrics, on scores moved into [0, 1], their order kept."""

    def theirs(known, correct, unknown):
        score, label = ranked(known, unknown)
        ranks = np.unique(score, return_inverse=True)[1] / len(score)
        functional = library("torchmetrics.functional.classification")
        return getattr(functional, name)(torch.tensor(ranks), torch.tensor(label))

    return theirs


def scikit_fpr95(of):
    def theirs(known, correct, unknown):
        score, label = ranked(known, unknown, of)
        fpr, tpr, _ = sklearn.roc_curve(label, score, drop_intermediate=False)
        return fpr[np.argmax(tpr >= 0.95)]

    return theirs


def scikit_trapezoid(known, correct, unknown):
    score, label = ranked(known, unknown)
    precision, recall, _ = sklearn.precision_recall_curve(label, score)
    return sklearn.auc(recall, precision)


def at_ties(known, correct, unknown):
    """Our risk-coverage curve where a tie ends, and the score there, as a novelty."""
    score, right = pooled(known, correct, unknown)
    score_sorted = np.sort(-score)
    ends = np.append(np.flatnonzero(np.diff(score_sorted)), len(score) - 1)
    coverage, risk = metrics.risk_coverage(score, right)
    return coverage[ends], risk[ends], score_sorted[ends]


def roc(known, correct, unknown):
    return metrics.oscr(known, np.ones(len(known), bool), unknown)


OURS = {
    "accuracy": lambda k, c, u: metrics.accuracy(c),
    "oscr": metrics.oscr,
    "oscr area": metrics.oscr_area,
    "roc": roc,
    "auroc": lambda k, c, u: metrics.auroc(k, u),
    "fpr95": lambda k, c, u: metrics.fpr_at_tpr(k, u, tpr=0.95),
    "fpr95 of unknown": lambda k, c, u: metrics.fpr_at_tpr(k, u, tpr=0.95, convention="openood"),
    "ap of unknown": lambda k, c, u: metrics.average_precision(k, u),
    "ap of known": lambda k, c, u: metrics.average_precision(-u, -k),
    "trapezoid of unknown": lambda k, c, u: metrics.average_precision(k, u, convention="openood"),
    "trapezoid of known": lambda k, c, u: metrics.average_precision(-u, -k, convention="openood"),
    "aurc": lambda k, c, u: metrics.aurc(*pooled(k, c, u)),
    "aurc of known": lambda k, c, u: metrics.aurc(k, c),
    "risk-coverage": at_ties,
}

# (library, metric of OURS): theirs
THEIRS = {
    ("osr-metrics", "oscr"): lambda *sample: osr_oscr(*sample)[:2],
    ("osr-metrics", "oscr area"): lambda *sample: osr_oscr(*sample)[2],
    ("osr-metrics", "auroc"): osr("auroc"),
    ("osr-metrics", "fpr95"): osr("fpr_at_95tpr", of="known"),
    ("osr-metrics", "fpr95 of unknown"): osr("fpr_at_95tpr"),
    ("osr-metrics", "ap of unknown"): osr("aupr_out"),
    ("osr-metrics", "ap of known"): osr("aupr_in"),
    ("osr-metrics", "aurc"): osr_risk("aurc"),
    ("osr-metrics", "risk-coverage"): osr_risk("rc_curve"),
    ("pytorch-ood", "oscr area"): ood_oscr,
    ("pytorch-ood", "roc"): lambda *sample: ood("roc_curve", of="known")(*sample)[:2],
    ("pytorch-ood", "auroc"): ood("auroc"),
    ("pytorch-ood", "fpr95"): ood("fpr_at_tpr", of="known", tpr=0.95),
    ("pytorch-ood", "fpr95 of unknown"): ood("fpr_at_tpr", tpr=0.95),
    ("pytorch-ood", "trapezoid of unknown"): ood("aupr"),
    ("pytorch-ood", "trapezoid of known"): ood("aupr", positive="id"),
    ("scikit-learn", "accuracy"): lambda k, c, u: sklearn.accuracy_score(np.ones(len(c), bool), c),
    ("scikit-learn", "auroc"): lambda k, c, u: sklearn.roc_auc_score(*ranked(k, u)[::-1]),
    ("scikit-learn", "fpr95"): scikit_fpr95("known"),
    ("scikit-learn", "fpr95 of unknown"): scikit_fpr95("unknown"),
    ("scikit-learn", "ap of unknown"): lambda k, c, u: sklearn.average_precision_score(
        *ranked(k, u)[::-1]
    ),
    ("scikit-learn", "trapezoid of unknown"): scikit_trapezoid,
}
ONLY_WITHOUT_TIES = {
    ("pytorch-ood", "aurc"): lambda *sample: ood_risk(*pooled(*sample)),
    ("pytorch-ood", "aurc of known"): lambda k, c, u: ood_risk(k.astype(float), c),
}


IN_FLOAT32 = {  # rates of 24 bits, whatever they are given
    ("torchmetrics", "auroc"): torchmetric("binary_auroc"),
    ("torchmetrics", "ap of unknown"): torchmetric("binary_average_precision"),
}


def close(ours, theirs, tolerance=1e-9):
    np.testing.assert_allclose(np.asarray(theirs), np.asarray(ours), rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("voice", THEIRS, ids=" ".join)
def test_a_library_finds_the_same(voice, name):
    close(OURS[voice[1]](*SETS[name]), THEIRS[voice](*SETS[name]))


@pytest.mark.parametrize("name", WITHOUT_TIES)
@pytest.mark.parametrize("voice", ONLY_WITHOUT_TIES, ids=" ".join)
def test_a_library_finds_the_same_where_no_scores_tie(voice, name):
    close(OURS[voice[1]](*SETS[name]), ONLY_WITHOUT_TIES[voice](*SETS[name]))


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("voice", IN_FLOAT32, ids=" ".join)
def test_a_library_finds_the_same_as_far_as_float32_goes(voice, name):
    close(OURS[voice[1]](*SETS[name]), IN_FLOAT32[voice](*SETS[name]), tolerance=5e-7)


@pytest.mark.parametrize(("training", "testing", "target"), [(12, 50, 12), (6, 10, 6), (5, 5, 5)])
def test_pytorch_ood_finds_the_same_openness(training, testing, target):
    theirs = library("pytorch_ood.metrics").calc_openness(training, testing, target)
    close(metrics.openness(training=training, target=target, testing=testing), theirs)


# Where definitions differ: that they do, and that the rule named is the reason.


# torch-uncertainty brings 23 packages and another rich, so the lock leaves it out; to see these:
# pip install 'torch-uncertainty[cpu]==0.13.0' in an environment of its own.
