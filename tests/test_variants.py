"""ODIN beside pytorch-ood's, dropout beside its loop written out, and what both leave alone."""

import numpy as np
import pytest
import torch

from osnb import models, scores, train
from osnb.base.outputs import Outputs
from osnb.datasets.vision import torchvision  # noqa: F401  # pytorch-ood, imported later, needs the guard

IMAGES = torch.rand(40, 3, 8, 8, generator=torch.Generator().manual_seed(1))
VARIANTS = {
    "odin": lambda *args, **more: train.odin(*args, temperature=10.0, epsilon=0.01, **more),
    "dropout": lambda *args, **more: train.dropout(*args, samples=7, seed=3, **more),
}


def in_order(_):
    return [(part, None) for part in IMAGES.split(16)]


def new_model():
    """Convolutions with batch norm that has seen something, and dropout before the head."""
    torch.manual_seed(3)
    model = models.conv(classes=4, features=8, width=4)
    model.trunk.append(torch.nn.Dropout(0.3))
    with torch.no_grad():
        for _ in range(5):
            model.train()(IMAGES)
    return model


def logits_of(model):
    """The network as other libraries want it."""
    return lambda images: model.eval()(images).logits


@pytest.mark.parametrize("temperature", [1.0, 10.0, 1000.0])
@pytest.mark.parametrize("epsilon", [0.0014, 0.05])
@pytest.mark.parametrize("std", [None, [0.2, 0.5, 3.0]])
def test_odin_matches_pytorch_ood(temperature, epsilon, std):
    from pytorch_ood.detector import odin

    model = new_model()
    steps = [epsilon / each for each in std] if std else epsilon
    out = train.odin(model, in_order, temperature=temperature, epsilon=steps)
    settings = {"eps": epsilon, "temperature": temperature, "norm_std": std}
    plain = logits_of(model)
    moved = [odin.odin_preprocessing(plain, part, **settings) for part, _ in in_order(0)]
    with torch.no_grad():
        expected = torch.cat([plain(part) for part in moved]) / temperature
    np.testing.assert_allclose(out.logits, expected, rtol=1e-4, atol=2e-6)
    detector = odin.ODIN(torch.nn.Module(), **settings)
    detector.model = plain
    theirs = -torch.cat([detector.predict(part) for part, _ in in_order(0)]).numpy()
    np.testing.assert_allclose(scores.max_softmax(out, known=4), theirs, rtol=1e-5)


@pytest.mark.parametrize("name", models.NORMALISE)
def test_odin_of_a_network_that_normalises_steps_as_code_that_normalises_first(name):
    from pytorch_ood.detector import odin

    plain = logits_of(new_model())
    mean, std = models.NORMALISE[name]
    first = (IMAGES - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]
    moved = odin.odin_preprocessing(plain, first, eps=0.02, temperature=10.0, norm_std=std)
    with torch.no_grad():
        expected = plain(moved) / 10.0
    model = models.normalising(new_model(), name, channels=3)
    out = train.odin(model, in_order, temperature=10.0, epsilon=0.02)
    np.testing.assert_allclose(out.logits, expected, rtol=1e-4, atol=2e-6)
    other = train.odin(new_model(), in_order, temperature=10.0, epsilon=0.02)
    assert np.abs(out.logits - other.logits).max() > 1e-3


def test_odin_that_takes_no_step_is_predict():
    model = new_model()
    plain = train.predict(model, in_order)
    ours = train.odin(model, in_order, temperature=1.0, epsilon=0.0)
    np.testing.assert_array_equal(ours.logits, plain.logits)
    np.testing.assert_array_equal(ours.features, plain.features)
    cooler = train.odin(model, in_order, temperature=8.0, epsilon=0.0)
    np.testing.assert_array_equal(cooler.logits, plain.logits / 8)


def test_several_odin_steps_share_a_gradient_and_are_each_step_to_the_bit(monkeypatch):
    model, steps = new_model(), [0.0, 0.02, [0.01, 0.0, 0.03]]
    alone = [train.odin(model, in_order, temperature=10.0, epsilon=step) for step in steps]
    asked, grad = [], torch.autograd.grad
    monkeypatch.setattr("torch.autograd.grad", lambda *of: asked.append(1) or grad(*of))
    together = train.odin_steps(model, in_order, temperature=10.0, epsilons=steps)
    assert len(asked) == len([*in_order(0)])
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.logits, other.logits)
        np.testing.assert_array_equal(one.features, other.features)


def test_dropout_is_the_mean_softmax_of_random_passes():
    model = new_model()
    with torch.no_grad():
        model.head.weight.mul_(30)  # so sure that the softmax of mean logits is another
    out = VARIANTS["dropout"](model, in_order)
    model.eval()
    model.trunk[-1].train()
    torch.manual_seed(3)
    p, features = [], []
    with torch.no_grad():
        for part, _ in in_order(0):
            said = [model(part.contiguous(memory_format=torch.channels_last)) for _ in range(7)]
            p.append(sum(each.logits.double().softmax(dim=1) for each in said) / 7)
            features.append(sum(each.features for each in said) / 7)
    ours = scores.softmax(out, known=4)
    np.testing.assert_allclose(ours, torch.cat(p), rtol=1e-5)
    np.testing.assert_allclose(out.features, torch.cat(features), rtol=1e-5, atol=1e-6)
    assert np.abs(ours - scores.softmax(train.predict(model, in_order), known=4)).max() > 1e-4


def test_masks_follow_from_the_seed_and_leave_the_numbers_outside_alone():
    model = new_model()
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    first = VARIANTS["dropout"](model, in_order)
    assert torch.equal(torch.rand(3), expected)
    np.testing.assert_array_equal(VARIANTS["dropout"](model, in_order).logits, first.logits)
    other = train.dropout(model, in_order, samples=7, seed=4)
    assert (other.logits != first.logits).any()


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_answers_as_predict_and_changes_neither_network_nor_images(variant):
    model, images = new_model().train(), IMAGES.clone()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    out = VARIANTS[variant](model, in_order)
    assert isinstance(out, Outputs)
    assert (out.logits.shape, out.features.shape) == ((40, 4), (40, 8))
    assert out.logits.dtype == out.features.dtype == np.float32
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in model.parameters())
    assert torch.equal(IMAGES, images)
    assert not IMAGES.requires_grad
    assert not any(module.training for module in model.modules())


@pytest.mark.parametrize(
    ("temperature", "epsilon"), [(0, 0.1), (-1, 0.1), (1, -0.1), (1, [0.1, -0.1, 0.1])]
)
def test_odins_settings_out_of_range_are_refused(temperature, epsilon):
    with pytest.raises(ValueError, match="need temperature > 0 and epsilon >= 0"):
        train.odin(new_model(), in_order, temperature=temperature, epsilon=epsilon)


def test_dropout_without_passes_or_without_anything_to_drop_is_refused():
    with pytest.raises(ValueError, match="samples >= 1 and modules that drop; got 0 and 1"):
        train.dropout(new_model(), in_order, samples=0, seed=0)
    model = models.resnet9(classes=3, features=8, width=4, dropout=0.0)
    with pytest.raises(ValueError, match="got 2 and 0 modules"):
        train.dropout(model, in_order, samples=2, seed=0)
