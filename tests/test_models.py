"""Shapes and parameter counts of every network; ResNet-50 beside torchvision's."""

import pytest
import torch

from osnb import models
from osnb.outputs import Outputs
from osnb.vision import torchvision

SHAPES = {"mlp": (1, 8, 8), "conv": (3, 32, 32), "resnet9": (3, 32, 32), "resnet50": (3, 64, 64)}
# Counted by hand from the layer tables; resnet50: 23,508,032 + (2048 * 5 + 5) + 5 * 7.
COUNTS = {
    "mlp": 64 * 5 + 5 + 5 * 5 + 5 + 5 * 7 + 7,
    "conv": 27 * 32 + 9 * (32 * 64 + 64 * 128 + 128 * 5) + 2 * (32 + 64 + 128 + 5) + 5 * 7 + 7,
    "resnet9": 9 * (3 * 32 + 32 * 64 + 2 * 64 * 64 + 64 * 128 + 128 * 5 + 2 * 5 * 5)
    + 2 * (32 + 3 * 64 + 128 + 3 * 5)
    + 5 * 7
    + 7,
    "resnet50": 23_508_032 + 2048 * 5 + 5 + 5 * 7,
}


@pytest.mark.parametrize("name", models.MODELS)
@pytest.mark.parametrize("training", [True, False])
def test_a_call_gives_outputs_of_the_promised_shapes(name, training):
    torch.manual_seed(0)
    model = models.MODELS[name](classes=7, features=5).train(training)
    out = model(torch.rand(2, *SHAPES[name]))
    assert isinstance(out, Outputs)
    assert out.logits.shape == (2, 7)
    assert out.features.shape == (2, 5)
    out.logits.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("name", models.MODELS)
def test_the_parameters_are_as_many_as_the_layers_say(name):
    model = models.MODELS[name](classes=7, features=5)
    assert sum(p.numel() for p in model.parameters()) == COUNTS[name]


def test_resnet50_computes_what_torchvisions_resnet50_computes():
    torch.manual_seed(0)
    ours = models.resnet50(classes=4, features=4).eval()
    theirs = torchvision.models.resnet50(num_classes=4).eval()
    backbone, middle = ours.trunk
    missing = theirs.load_state_dict(backbone.state_dict() | _renamed(middle), strict=True)
    assert not missing.missing_keys
    images = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(ours(images).features, theirs(images))


def test_resnet50_starts_like_torchvisions():
    torch.manual_seed(0)
    ours, theirs = models.resnet50(classes=4, features=4), torchvision.models.resnet50()
    other = dict(theirs.named_parameters())
    for name, p in ours.trunk[0].named_parameters():
        assert p.std().item() == pytest.approx(other[name].std().item(), rel=0.1), name


def test_the_authors_head_is_one_linear_map_of_two_layers():
    model = models.resnet50(classes=3, features=3)
    assert model.trunk[1].bias is not None
    assert model.head.bias is None


def _renamed(layer):
    return {f"fc.{key}": value for key, value in layer.state_dict().items()}
