"""Shapes and parameter counts of every network; ResNet-50 beside torchvision's."""

import pytest
import torch

from osnb import models
from osnb.outputs import Outputs
from osnb.vision import torchvision

SMALL, LARGE = (3, 32, 32), (3, 64, 64)
SHAPES = {"mlp": (1, 8, 8), "conv": SMALL, "resnet9": SMALL, "vgg32": SMALL, "resnet50": LARGE}
# Counted by hand from the layer tables; resnet50: 23,508,032 + (2048 * 5 + 5) + 5 * 7.
COUNTS = {
    "mlp": 64 * 5 + 5 + 5 * 5 + 5 + 5 * 7 + 7,
    "conv": 27 * 32 + 9 * (32 * 64 + 64 * 128 + 128 * 5) + 2 * (32 + 64 + 128 + 5) + 5 * 7 + 7,
    "resnet9": 9 * (3 * 32 + 32 * 64 + 2 * 64 * 64 + 64 * 128 + 128 * 5 + 2 * 5 * 5)
    + 2 * (32 + 3 * 64 + 128 + 3 * 5)
    + 5 * 7
    + 7,
    "vgg32": 9 * (3 * 64 + 64 * 64 + 64 * 128 + 5 * 128 * 128 + 128 * 5)
    + 2 * (2 * 64 + 6 * 128 + 5)
    + 5 * 7,
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


def test_vgg32_has_the_papers_layers():
    torch.manual_seed(0)
    model = models.vgg32(classes=20)
    assert sum(p.numel() for p in model.parameters()) == 1_001_664
    assert model.head.bias is None
    sizes, image = [], torch.rand(2, 3, 32, 32)
    for layer in model.trunk:
        image = layer(image)
        kind = type(layer).__name__
        sizes.append((kind[0], *image.shape[1:3]))
    large = [("S", 64, 32), ("S", 64, 32), ("S", 128, 16)]
    middle = [("S", 128, 16), ("S", 128, 16), ("S", 128, 8)]
    small = [("S", 128, 8), ("S", 128, 8), ("S", 128, 4)]
    dropped = [("D", 3, 32)], [("D", 128, 16)], [("D", 128, 8)]
    expected = [*dropped[0], *large, *dropped[1], *middle, *dropped[2], *small]
    assert sizes[:-2] == expected


def test_vgg32_starts_from_its_normal_distributions():
    torch.manual_seed(0)
    for layer in models.vgg32(classes=20).trunk.modules():
        if isinstance(layer, torch.nn.Conv2d):
            assert layer.weight.std().item() == pytest.approx(0.05, rel=0.1)
        if isinstance(layer, torch.nn.BatchNorm2d):
            assert layer.weight.mean().item() == pytest.approx(1, abs=0.01)
            assert layer.weight.std().item() == pytest.approx(0.02, rel=0.5)


@pytest.mark.parametrize("name", models.MODELS)
def test_in_autocast_the_head_still_computes_in_float32(name):
    torch.manual_seed(0)
    model = models.MODELS[name](classes=7, features=5).eval()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        out = model(torch.rand(2, *SHAPES[name]))
    assert out.logits.dtype == out.features.dtype == torch.float32
    assert (out.logits != out.logits.bfloat16().float()).any()


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
