"""The rows of `osnb score --conventions` are what the libraries named in them compute."""

import numpy as np
import pytest
from test_metrics_libraries import SETS, THEIRS

from osnb import scores
from osnb.evidence.samples import conventions

# (measure, positive side, rule begins with): the metric in `test_metrics_libraries`
SAME = {
    ("AUROC", "either", "ties"): "auroc",
    ("FPR95", "known", "first"): "fpr95",
    ("FPR95", "unknown", "first"): "fpr95 of unknown",
    ("AUPR", "unknown", "steps"): "ap of unknown",
    ("AUPR", "unknown", "trapezoids"): "trapezoid of unknown",
    ("AUPR", "known", "steps"): "ap of known",
    ("AUPR", "known", "trapezoids"): "trapezoid of known",
    ("OSCR area", "known", "ties together"): "oscr area",
    ("AURC", "right", "mean"): "aurc",
}


def rows(name, order=slice(None)):
    """The table of a set of scores, two of them: as they are, and turned."""
    known, correct, unknown = SETS[name]
    label = np.r_[np.zeros(len(known), int), np.full(len(unknown), -2)]
    pred, score = np.r_[~correct, np.zeros(len(unknown))].astype(int), np.r_[known, unknown]
    columns = {"label": label, "pred": pred, "mine": score, "turned": -score}
    return list(conventions(scores.own({k: v[order] for k, v in columns.items()})))


@pytest.mark.parametrize("name", SETS)
def test_a_row_is_what_each_library_in_it_computes(name):
    found, held = rows(name), set()
    for (measure, positive, rule), metric in SAME.items():
        (row,) = [
            row
            for row in found
            if (row["measure"], row["positive"]) == (measure, positive)
            and row["rule"].startswith(rule)
        ]
        for (library, of), theirs in THEIRS.items():
            if of == metric and library in row["of"]:
                assert row["mine"] == pytest.approx(float(theirs(*SETS[name])), abs=1e-9)
                held.add((library, of))
    assert len(held) == 13


def test_conventions_move_the_same_scores_apart():
    found = rows("tied")
    for measure in ("AUROC", "FPR95", "AUPR", "OSCR area"):
        assert len({row["mine"] for row in found if row["measure"] == measure}) > 1
    turned = {row["rule"]: row for row in found if row["measure"] == "AUROC"}["ties count half"]
    assert turned["mine"] + turned["turned"] == pytest.approx(1)


def test_only_a_rule_that_says_so_depends_on_the_order_of_rows():
    first, other = (rows("tied", order=slice(None, None, step)) for step in (1, -1))
    moved = [
        a["rule"] for a, b in zip(first, other, strict=True) if repr(a["mine"]) != repr(b["mine"])
    ]
    assert moved == ["ties in the order of the rows"]


def test_known_samples_alone_have_no_conventions():
    own = scores.own({"label": np.zeros(3, int), "pred": np.zeros(3), "mine": np.arange(3.0)})
    with pytest.raises(ValueError, match="need unknown samples, label -2"):
        list(conventions(own))
