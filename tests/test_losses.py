"""Losses against a second voice in plain Python, hand-derived gradients, and laws."""

import math
import re

import pytest
import torch
from scipy import special

from osnb import losses
from osnb.base.labels import NEGATIVE
from osnb.base.outputs import Outputs

K = 4
SETTINGS = {
    "weight": 0.7,
    "margin": 3.0,
    "scale": 0.1,
    "division": "rows",
    "weights": torch.tensor([0.5, 1.0, 2.0, 0.25, 4.0]),
    "smoothing": 0.3,
}


def columns(name):
    return K + (name == "background")


@pytest.fixture
def batch():
    """logits (9, 5), features (9, 3) and labels with two negatives, in float64."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(9, K + 1, generator=generator, dtype=torch.float64)
    features = 2 * torch.randn(9, 3, generator=generator, dtype=torch.float64)
    return logits, features, torch.tensor([0, 1, 2, 3, NEGATIVE, 0, 1, NEGATIVE, 3])


def slack_of(logits):
    """Something of the shape of a head's slack, on both sides of the margin."""
    return logits.flip(1) / 2 - 1


def softly(row):
    """Softmax of a list of floats by its definition."""
    total = sum(math.exp(z) for z in row)
    return [math.exp(z) / total for z in row]


def slow_softmax(z, f, y):
    return 0.0 if y == NEGATIVE else -math.log(softly(z)[y])


def slow_background(z, f, y):
    y = K if y == NEGATIVE else y
    return -SETTINGS["weights"][y].item() * math.log(softly(z)[y])


def slow_entropic(z, f, y):
    # cross-entropy against a target t: 1 at the class, or weight / K everywhere
    targets = [0.7 / K] * K if y == NEGATIVE else [float(c == y) for c in range(K)]
    return -sum(t * math.log(s) for t, s in zip(targets, softly(z), strict=True))


def slow_objectosphere(z, f, y):
    length = math.sqrt(sum(x * x for x in f))
    price = length**2 if y == NEGATIVE else max(3.0 - length, 0) ** 2
    return slow_entropic(z, f, y) + 0.1 * price


def slow_smoothed(z, f, y):
    if y == NEGATIVE:
        return 0.0
    targets = [0.7 if c == y else 0.3 / (K - 1) for c in range(K)]
    return -sum(t * math.log(s) for t, s in zip(targets, softly(z), strict=True))


def slow_slack(z, y):
    return list(reversed(z))[y] / 2 - 1


def slow_arpl(z, f, y):
    # torch's margin ranking: max(0, d - R + 1), of d - R = slack
    margin = max(0.0, slow_slack(z, y) + 1)
    return 0.0 if y == NEGATIVE else slow_smoothed(z, f, y) + 0.7 * margin


def slow_rpl(z, f, y):
    return 0.0 if y == NEGATIVE else slow_smoothed(z, f, y) + 0.7 * slow_slack(z, y) ** 2


def slow_edl(z, f, y):
    """Its divergence as a difference of two mean log densities."""
    if y == NEGATIVE:
        return 0.0
    alpha = [1 + math.exp(min(max(x, -10), 10)) for x in z]
    others = [1.0 if c == y else a for c, a in enumerate(alpha)]
    flat = [1.0] * len(z)
    distance = expected_log_density(others, others) - expected_log_density(others, flat)
    return math.log(sum(alpha) / alpha[y]) + 0.7 * distance


def expected_log_density(drawn, of):
    """Mean of log Dir(of) over draws from Dir(drawn), by scipy's functions of one number."""
    logs = [special.digamma(a) - special.digamma(sum(drawn)) for a in drawn]
    whole = math.lgamma(sum(of)) - sum(map(math.lgamma, of))
    return whole + sum((a - 1) * e for a, e in zip(of, logs, strict=True))


def slow_joint(z, f, y):
    """The slack's first column, by `slack_of`, is the second price."""
    return 0.0 if y == NEGATIVE else slow_softmax(z, f, y) + 0.7 * (z[-1] / 2 - 1)


SLOW = {
    "softmax": slow_softmax,
    "background": slow_background,
    "entropic": slow_entropic,
    "objectosphere": slow_objectosphere,
    "smoothed": slow_smoothed,
    "arpl": slow_arpl,
    "rpl": slow_rpl,
    "edl": slow_edl,
    "joint": slow_joint,
}


@pytest.mark.parametrize("name", losses.LOSSES)
def test_a_loss_is_trained_on_negatives_if_and_only_if_it_prices_them(name, batch):
    logits, features, labels = batch
    out = Outputs(logits[:, : columns(name)], features, slack_of(logits[:, : columns(name)]))
    priced = losses.LOSSES.bind(name, **SETTINGS)(out, labels)[labels == NEGATIVE]
    assert losses.TAUGHT.keys() == losses.LOSSES.keys()
    assert ("negative" in losses.TAUGHT[name]) == bool((priced != 0).all())


@pytest.mark.parametrize("name", losses.LOSSES)
def test_each_row_matches_the_second_voice(name, batch):
    logits, features, labels = batch
    logits = logits[:, : columns(name)]
    ours = losses.LOSSES.bind(name, **SETTINGS)(Outputs(logits, features, slack_of(logits)), labels)
    slow = [
        SLOW[name](z, f, y)
        for z, f, y in zip(logits.tolist(), features.tolist(), labels.tolist(), strict=True)
    ]
    assert ours.tolist() == pytest.approx(slow, abs=1e-12)


@pytest.mark.parametrize("name", losses.LOSSES)
@pytest.mark.parametrize("kept", ["both", "known", "negative"])
def test_gradient_is_finite_and_agrees_with_differences(name, kept, batch):
    logits, features, labels = batch
    rows = {"both": labels > -9, "known": labels >= 0, "negative": labels == NEGATIVE}[kept]
    logits = logits[rows, : columns(name)].requires_grad_()
    features = features[rows].requires_grad_()
    loss = losses.LOSSES.bind(name, **SETTINGS)
    assert torch.autograd.gradcheck(
        lambda z, f: loss(Outputs(z, f, slack_of(z)), labels[rows]), (logits, features)
    )


def test_gradient_of_a_negative_pulls_entropic_to_uniform_and_background_to_its_column(batch):
    logits, _, _ = batch
    z = logits[:1, :K].clone().requires_grad_()
    losses.entropic(Outputs(z, ()), torch.tensor([NEGATIVE]), weight=1.0).sum().backward()
    torch.testing.assert_close(z.grad, z.detach().softmax(1) - 1 / K)
    z = logits[:1].clone().requires_grad_()
    weights = torch.ones(K + 1)
    loss = losses.background(
        Outputs(z, ()), torch.tensor([NEGATIVE]), weights=weights, division="rows"
    )
    loss.sum().backward()
    expected = z.detach().softmax(1) - torch.eye(K + 1, dtype=torch.float64)[K]
    torch.testing.assert_close(z.grad, expected)


@pytest.mark.parametrize("smoothing", [0.0, 0.3, 0.9])
def test_smoothed_is_torchs_with_its_share_for_the_true_class_too(smoothing, batch):
    logits, _, labels = batch
    logits, known = logits[:, :K], labels >= 0
    share = smoothing * K / (K - 1)  # torch gives the true class 1 - share + share / K
    if share > 1:  # torch refuses; its formula, by hand
        log_s = logits[known].log_softmax(1)
        true = log_s.gather(1, labels[known][:, None])[:, 0]
        theirs = -(1 - share) * true - share * log_s.mean(1)
    else:
        theirs = torch.nn.functional.cross_entropy(
            logits[known], labels[known], reduction="none", label_smoothing=share
        )
    ours = losses.smoothed(Outputs(logits, ()), labels, smoothing=smoothing)
    torch.testing.assert_close(ours[known], theirs)
    alone = losses.smoothed(Outputs(logits[:, :1], ()), labels.clamp(max=0), smoothing=smoothing)
    assert (alone == 0).all()  # of one class there is nothing to learn


def test_background_divided_by_weights_has_the_mean_of_torchs_weighted_cross_entropy(batch):
    logits, _, labels = batch
    weights = SETTINGS["weights"].double()
    ours = losses.background(Outputs(logits, ()), labels, weights=weights, division="weights")
    target = labels.where(labels != NEGATIVE, K)
    theirs = torch.nn.functional.cross_entropy(logits, target, weight=weights)
    torch.testing.assert_close(ours.mean(), theirs)


@pytest.mark.parametrize("name", losses.LOSSES)
def test_huge_logits_stay_finite(name):
    logits = torch.tensor([[1e4, -1e4, 0, 0, 0], [1e4, -1e4, 0, 0, 0]])[:, : columns(name)]
    features = torch.zeros(2, 3, requires_grad=True)
    out = Outputs(logits.requires_grad_(), features, slack_of(logits))
    loss = losses.LOSSES.bind(name, **SETTINGS)(out, torch.tensor([1, NEGATIVE])).mean()
    loss.backward()
    assert loss.isfinite()
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("name", losses.LOSSES)
@pytest.mark.parametrize("shape", [(8,), (1,), (10,)])
def test_labels_of_another_shape_are_refused_with_both(name, shape, batch):
    logits, features, _ = batch
    logits = logits[:, : columns(name)]
    out = Outputs(logits, features, slack_of(logits))
    loss = losses.LOSSES.bind(name, **SETTINGS)
    with pytest.raises(ValueError, match=re.escape(f"labels {shape} for outputs (9, ")):
        loss(out, torch.zeros(shape, dtype=torch.int64))


def test_class_weights_are_equation_4():
    labels = torch.tensor([0] * 6 + [1] * 3 + [NEGATIVE])
    assert losses.class_weights(labels, classes=3).tolist() == pytest.approx(
        [10 / (3 * 6), 10 / (3 * 3), 10 / (3 * 1)]
    )


def test_class_weights_refuse_an_empty_class():
    with pytest.raises(ValueError, match=r"none of 4 has label \[2\]"):
        losses.class_weights(torch.tensor([0, 1, NEGATIVE]), classes=4)


@pytest.mark.parametrize("odd", [-2, 2, 5])
def test_class_weights_refuse_a_label_that_is_no_class(odd):
    with pytest.raises(ValueError, match=rf"got \[{odd}\]"):
        losses.class_weights(torch.tensor([0, 1, NEGATIVE, odd]), classes=3)
