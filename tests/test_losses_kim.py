"""Evidential deep learning beside integrals, torch's Dirichlet distributions, and its laws."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch.distributions import Dirichlet, kl_divergence

from osnb import losses
from osnb.base.outputs import Outputs


def edl(logits, labels, weight=0.7):
    return losses.edl(Outputs(torch.as_tensor(logits), ()), torch.tensor(labels), weight=weight)


def drawn(classes, count=20, dtype=torch.float64):
    generator = torch.Generator().manual_seed(classes)
    logits = 4 * torch.randn(count, classes, generator=generator, dtype=dtype)
    return logits, [i % classes for i in range(count)]


@pytest.mark.parametrize(("z", "y"), [((0.3, -1.0), 0), ((0.3, -1.0), 1), ((2.0, 2.5), 0)])
def test_of_two_classes_it_is_two_integrals_over_a_probability(z, y):
    alpha = 1 + np.exp(z)
    evidence = stats.beta(alpha[y], alpha[1 - y])  # density of the true class's probability
    likelihood, _ = integrate.quad(lambda p: p * evidence.pdf(p), 0, 1)
    left = stats.beta(1, alpha[1 - y])
    divergence, _ = integrate.quad(lambda p: left.pdf(p) * left.logpdf(p), 0, 1)
    found = edl([z], [y]).item()
    assert found == pytest.approx(-math.log(likelihood) + 0.7 * divergence, rel=1e-6)


@pytest.mark.parametrize("classes", [2, 5, 40])
def test_the_divergence_is_torchs_of_two_dirichlet_distributions(classes):
    logits, labels = drawn(classes)
    alpha = 1 + logits.clamp(-10, 10).exp()
    alpha[range(len(labels)), labels] = 1
    theirs = kl_divergence(Dirichlet(alpha), Dirichlet(torch.ones_like(alpha)))
    ours = edl(logits, labels, weight=1.0) - edl(logits, labels, weight=0.0)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_float32_logits_lose_nothing_where_float32_alone_would():
    """Forty classes of evidence e^10: the logs of gamma functions are near 10^7."""
    logits = torch.full((1, 40), 9.9)
    exact = edl(logits.double(), [0], weight=1.0).item()
    found = edl(logits, [0], weight=1.0)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(exact, rel=1e-6)
    alpha = 1 + logits.exp()
    alpha[0, 0] = 1
    naive = torch.lgamma(alpha.sum()) - torch.lgamma(alpha).sum() - math.lgamma(40)
    naive += ((alpha - 1) * (torch.digamma(alpha) - torch.digamma(alpha.sum()))).sum()
    naive = naive.item() + edl(logits, [0], weight=0.0).item()
    assert abs(naive - exact) > 1e-3 * exact
