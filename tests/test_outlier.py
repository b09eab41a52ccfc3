"""Outlier exposure: its formula, which images from outside come when, and what they do."""

import math

import numpy as np
import pytest
import torch
from test_methods import IMAGES, LABELS, OUTSIDE, TEST, Batches, assert_same, begun, fit, new_model
from trained import Shuffled

from osnb import losses, metrics, models, scores, train
from osnb.base.labels import NEGATIVE
from osnb.base.outputs import Outputs
from osnb.train.methods import terms

EPOCHS = 3


class Twice(Shuffled):
    """Shuffled batches of digits from outside, so many an epoch; labels are nonsense."""

    def __init__(self, label=-9, batches=2, size=64):
        images = OUTSIDE.images[: size * batches]
        super().__init__(images, torch.full((len(images),), label), size, turn=-1)


def mlp():
    torch.manual_seed(0)
    return models.mlp(classes=5, features=32)


def trained(directory, batches=None, loss=losses.softmax, rate=0.1, **changes):
    model = mlp()
    settings = {"epochs": EPOCHS, "schedule": train.constant, "validate": lambda _: {}, "seed": 0}
    settings |= {"optimizer": torch.optim.SGD(model.parameters(), lr=rate), "directory": directory}
    settings |= {"outside": Twice(), "every": 0.0}
    train.fit(model, loss, batches or Batches(3), kind=terms.Exposed, **(settings | changes))
    return model


def test_unevenness_is_cross_entropy_against_the_uniform_distribution():
    logits = 3 * torch.randn(9, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = terms.unevenness(logits)
    for z, price in zip(logits.tolist(), found.tolist(), strict=True):
        total = sum(math.exp(x) for x in z)
        assert price == pytest.approx(-sum(math.log(math.exp(x) / total) for x in z) / 4)
    negative = torch.full((9,), NEGATIVE)
    torch.testing.assert_close(found, losses.entropic(Outputs(logits, ()), negative, weight=1.0))
    assert terms.unevenness(torch.full((1, 4), 7.0)).item() == pytest.approx(math.log(4))
    assert (found > math.log(4)).all()


def test_a_step_is_its_formula_from_one_pass_through_the_batch_norms(tmp_path):
    model, (images, labels) = new_model(name="osrci"), next(Batches(1)(1))
    run = begun(terms.Exposed, model, tmp_path, Batches(1), outside=Twice(), outside_weight=0.3)
    others, _ = next(Twice()(1))
    found = run.values(torch.cat([images, others]), labels)
    assert found.shape == (32,)
    z = model(torch.cat([images, others])).logits.detach().double().numpy()
    log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    wanted = -log_p[range(32), labels].mean() - 0.3 * log_p[32:].mean()
    assert found.mean().item() == pytest.approx(wanted, rel=1e-5)


def test_images_from_outside_come_pass_after_pass_across_epochs():
    both, outside = terms.Beside(Batches(3), Twice()), Twice()
    came = [images[32:] for epoch in (1, 2, 3, 4) for images, _ in both(epoch)]
    wanted = [images for number in range(1, 7) for images, _ in outside(number)]
    assert len(came) == len(wanted) == 12
    assert all(torch.equal(*pair) for pair in zip(came, wanted, strict=True))
    assert not torch.equal(wanted[0], wanted[2])


@pytest.mark.parametrize("batches", [1, 2, 3])
@pytest.mark.parametrize("start", range(4))
def test_an_epoch_goes_on_from_any_step(batches, start):
    both = terms.Beside(Batches(3), Twice(batches=batches))
    whole, rest = list(both(2)), list(both(2, start))
    assert len(both) == len(whole) == 3
    assert_same([list(pair) for pair in whole[start:]], [list(pair) for pair in rest])
    for (images, labels), (own, same) in zip(whole, Batches(3)(2), strict=True):
        assert torch.equal(images[:32], own)
        assert torch.equal(labels, same)


def told(directory, **changes):
    """AUROC of known digits against held-out ones like those outside, and others; accuracy."""
    model = trained(directory, Batches(), outside=OUTSIDE, epochs=25, rate=0.2, **changes)
    out = train.predict(model, lambda _: [(IMAGES[TEST], LABELS[TEST])])
    score, labels = scores.max_softmax(out, known=5), LABELS[TEST].numpy()
    known, like = labels < 5, (labels == 5) | (labels == 6)
    right = (out.logits.argmax(1) == labels)[known].mean()
    return [metrics.auroc(score[known], score[which]) for which in (like, labels > 6)] + [right]


def test_digits_like_those_outside_are_told_from_known_ones(tmp_path):
    (without, *_), (like, other, right) = (
        told(tmp_path / f"{price}", outside_weight=price) for price in (0.0, 0.5)
    )
    assert without < 0.93
    assert like > 0.97
    assert other < 0.93  # what is not like them gains nothing by it
    assert right > 0.95


def test_images_from_outside_that_are_known_ones_make_all_unsure(tmp_path):
    images, labels = IMAGES[TEST & (LABELS < 5)], LABELS[TEST & (LABELS < 5)]
    sure = []
    for name, outside in {"outside": OUTSIDE, "known": Batches()}.items():
        model = trained(tmp_path / name, Batches(), outside=outside, epochs=10)
        out = model(images)
        assert (out.logits.argmax(1) == labels).double().mean() > 0.9
        sure.append(out.logits.softmax(1).amax(1).mean().item())
    assert sure[1] < 0.9 * sure[0]


def test_a_run_that_begins_outside_anew_after_a_kill_ends_otherwise(tmp_path, monkeypatch):
    whole = trained(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "broken", Batches(3, 4))
    kept = terms.endless
    monkeypatch.setattr(terms, "endless", lambda batches, _: kept(batches, 0))
    resumed = trained(tmp_path / "broken")
    assert not torch.equal(whole.head.weight, resumed.head.weight)


def test_what_does_not_fit_is_refused(tmp_path):
    batches = Batches(1)
    batches.images = batches.images.repeat(1, 3, 2, 2)
    with pytest.raises(ValueError, match=r"outside images .* \(3, 16, 16\); got \(1, 8, 8\)"):
        trained(tmp_path, batches)
    with pytest.raises(ValueError, match="got devices=2"):
        fit("outlier", mlp(), tmp_path, Batches(1), devices=2)
