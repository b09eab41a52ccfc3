"""AugMix's training: the divergence beside scipy's, the views, and what their agreement does."""

import math

import numpy as np
import pytest
import torch
from scipy import special
from scipy.spatial.distance import jensenshannon
from test_methods import IMAGES, LABELS, TEST, Batches, begun, fit, new_model
from torch.nn.functional import cross_entropy, kl_div

from osnb import losses, train
from osnb.datasets import augment
from osnb.train.methods import terms


def plain_model():
    return new_model(name="osrci")


def trained(directory, batches=None, loss=losses.softmax, **changes):
    model = plain_model()
    settings = {"epochs": 3, "schedule": train.constant, "validate": lambda _: {}, "seed": 0}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    settings |= {"optimizer": optimizer, "directory": directory, "severity": 3.0}
    train.fit(model, loss, batches or Batches(3), kind=terms.Mixed, **(settings | changes))
    return model


def logits_of(views, samples=7, classes=4):
    generator = torch.Generator().manual_seed(views)
    return 2 * torch.randn(views, samples, classes, generator=generator, dtype=torch.float64)


def test_of_two_views_it_is_scipys_squared_distance():
    logits = logits_of(2)
    p, q = special.softmax(logits.numpy(), axis=2)
    wanted = [jensenshannon(*pair) ** 2 for pair in zip(p, q, strict=True)]
    np.testing.assert_allclose(terms.divergence(logits), wanted, rtol=1e-9)


def test_of_three_views_its_mean_and_slope_are_the_released_terms():
    logits = logits_of(3).requires_grad_()
    p = logits.softmax(2)
    mixture = p.mean(0).clamp(1e-7, 1).log()
    theirs = sum(kl_div(mixture, each, reduction="batchmean") for each in p) / 3
    ours = terms.divergence(logits).mean()
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(*(torch.autograd.grad(each, logits)[0] for each in (ours, theirs)))


def test_probabilities_of_0_leave_value_and_slope_finite():
    logits = torch.tensor([[[1e4, -1e4]], [[1e4, -1e4]], [[-1e4, 1e4]]], requires_grad=True)
    found = terms.divergence(logits)
    found.sum().backward()
    assert found.item() == pytest.approx(math.log(3) - 2 / 3 * math.log(2), rel=1e-6)
    assert logits.grad.isfinite().all()
    assert terms.divergence(logits[:1].repeat(3, 1, 1)).item() == 0


def test_a_view_is_a_draw_of_augmix_from_torchs_generator_in_units_of_the_batch():
    images = IMAGES[:20]
    torch.manual_seed(3)
    first, second = terms.view(images, 3.0), terms.view(images, 3.0)
    generator = torch.Generator().manual_seed(3)
    levels = (images * 255).round().byte()
    for view in (first, second):
        wanted = augment.augmix(levels, severity=3.0, generator=generator)
        torch.testing.assert_close(view * 255, wanted)
    assert not torch.equal(first, second)
    assert first.shape == images.shape
    assert 0 <= first.min() < first.max() <= 1
    assert torch.rand(1) == torch.rand(1, generator=generator)


def run_of(model, directory, severity=3.0, weight=12.0):
    own = {"severity": severity, "jsd_weight": weight}
    return begun(terms.Mixed, model, directory, Batches(1), **own)


def test_a_step_is_its_formula_from_one_pass_through_the_batch_norms(tmp_path):
    model, (images, labels) = plain_model(), next(Batches(1)(1))
    torch.manual_seed(7)
    found = run_of(model, tmp_path, weight=5.0).values(images, labels).detach()
    torch.manual_seed(7)
    views = [images, terms.view(images, 3.0), terms.view(images, 3.0)]
    with torch.no_grad():
        logits = model(torch.cat(views)).logits.view(3, 32, -1)
    p = special.softmax(logits.double().numpy(), axis=2)
    mixture = p.mean(axis=0)
    distances = np.mean([special.rel_entr(each, mixture).sum(axis=1) for each in p], axis=0)
    wanted = cross_entropy(logits[0], labels, reduction="none").numpy() + 5.0 * distances
    np.testing.assert_allclose(found, wanted, rtol=1e-4)
    assert (distances > 1e-5).all()


def agreement(directory, **changes):
    """Mean divergence of held-out known digits and two views of them, and accuracy."""
    model = trained(directory, Batches(), epochs=8, **changes).eval()
    known = TEST & (LABELS < 5)
    images, labels = IMAGES[known], LABELS[known]
    torch.manual_seed(0)
    views = [images, *(terms.view(images, 10.0) for _ in range(2))]
    with torch.no_grad():
        logits = torch.stack([model(view).logits for view in views])
    right = (logits[0].argmax(1) == labels).double().mean().item()
    return terms.divergence(logits).mean().item(), right


def resumed(directory, steps):
    with pytest.raises(KeyboardInterrupt):
        trained(directory, Batches(3, steps), every=0.0)
    return trained(directory, every=0.0)


def test_a_run_that_draws_anew_after_a_kill_ends_otherwise(tmp_path, monkeypatch):
    whole = trained(tmp_path / "whole", every=0.0)
    monkeypatch.setattr("osnb.train.checkpoint.set_random_states", lambda _: None)
    other = resumed(tmp_path / "broken", 5)
    assert not torch.equal(whole.head.weight, other.head.weight)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: (x - 0.5) / 0.25, r"need images in \[0, 1\]; got -2 to 2"),
        (lambda x: 255 * x, r"need images in \[0, 1\]; got 0 to 255"),
        (lambda x: x.repeat(1, 2, 1, 1), r"need uint8 \(N, 1 or 3, H, W\)"),
    ],
    ids=["normalised", "levels", "two channels"],
)
def test_images_that_have_no_levels_are_refused(change, said, tmp_path):
    batches = Batches(1)
    batches.images = change(batches.images)
    with pytest.raises(ValueError, match=said):
        trained(tmp_path, batches)


def test_what_is_out_of_range_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"need severity in \[0.1, 10\]; got 11"):
        trained(tmp_path, severity=11)
    with pytest.raises(ValueError, match="got devices=2"):
        fit("augmix", plain_model(), tmp_path, Batches(1), devices=2)
