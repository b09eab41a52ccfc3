"""Scores that only a method's network has: their formulas written out in plain numbers."""

import math

import numpy as np
import pytest
import torch

from osnb import train
from osnb.base.labels import NEGATIVE
from osnb.base.outputs import Outputs
from osnb.train.methods import METHODS, OWN, made, osrci, terms

LOGITS = np.random.default_rng(0).normal(0, 3, (40, 6)).astype(np.float32)


def outputs(logits):
    return Outputs(np.asarray(logits, np.float32), np.zeros((len(logits), 2), np.float32))


def written_out(known, spare, temperature=1.0):
    """max_{c < K} p_c - p_K of one row, in double precision by `math`."""
    z = [float(x) / temperature for x in (*known, max(spare))]
    p = [math.exp(x) / math.fsum(map(math.exp, z)) for x in z]
    return max(p[:-1]) - p[-1]


def test_scores_of_their_own_are_methods():
    assert {*OWN} < {*METHODS}


def test_the_score_of_osrci_is_its_formula():
    found = OWN.bind("osrci", known=5)(outputs(LOGITS))
    wanted = [written_out(row[:5], row[5:]) for row in LOGITS]
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("known", [3, 5])
@pytest.mark.parametrize("temperature", [1024.0, 1.0])
def test_the_score_of_proser_is_its_formula_with_the_largest_placeholder(known, temperature):
    found = terms.margin(outputs(LOGITS), known=known, temperature=temperature)
    wanted = [written_out(row[:known], row[known:], temperature) for row in LOGITS]
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", ["osrci", "proser"])
def test_scores_change_no_logit_and_do_not_depend_on_neighbours(name):
    out, rule = outputs(LOGITS), OWN.bind(name, known=5)
    found = rule(out)
    assert np.array_equal(out.logits, LOGITS)
    np.testing.assert_array_equal(found[::-1], rule(outputs(LOGITS[::-1].copy())))


def test_images_that_a_run_has_not_made_are_not_found(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no generated images in .*counterfactuals"):
        made(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_images_that_a_run_made_come_in_order_as_negatives(tmp_path):
    images = torch.rand(600, 1, 2, 2)
    (tmp_path / osrci.COUNTERFACTUALS).mkdir()
    train.checkpoint.keep({"images": images}, tmp_path / osrci.COUNTERFACTUALS)
    for epoch in (0, 0):  # read again and again
        found, labels = map(torch.cat, zip(*made(str(tmp_path))(epoch), strict=True))
        assert torch.equal(found, images)
        assert labels.tolist() == [NEGATIVE] * 600
