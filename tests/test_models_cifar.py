"""ResNet-20 and ResNet-18 at 32 px beside slow voices, their beginnings, and their dropout."""

import numpy as np
import pytest
import torch
from test_methods import IMAGES
from torch import nn
from torch.nn import functional

from osnb import models, train
from osnb.models import outside
from osnb.train.forward import Dropping

RESNETS = ("resnet20", "resnet18_cifar")
DROPPING = (*RESNETS, "conv_dropout")
STAGES = {"resnet20": ((16, 32, 64), 3), "resnet18_cifar": ((64, 128, 256, 512), 2)}


def made(name, classes=4, **settings):
    torch.manual_seed(0)
    return models.MODELS[name](classes=classes, **settings)


def stirred(model):
    """The model after its norms have seen something and moved away from 1 and 0."""
    torch.manual_seed(1)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            for own in (module.weight, module.bias):
                nn.init.uniform_(own, 0.5, 1.5)
            nn.init.uniform_(module.running_mean, -0.2, 0.2)
            nn.init.uniform_(module.running_var, 0.5, 2.0)
    return model.eval()


class Slow:
    """The layer table, one line after the other, on tensors in the order of `modules`."""

    def __init__(self, model):
        self.layers = iter(m for m in model.modules() if isinstance(m, nn.Conv2d | nn.BatchNorm2d))

    def convolution(self, x, stride=1, padding=1):
        return functional.conv2d(x, next(self.layers).weight, stride=stride, padding=padding)

    def norm(self, x):
        own = next(self.layers)
        parts = (own.running_mean, own.running_var, own.weight, own.bias)
        mean, var, weight, bias = (part[:, None, None] for part in parts)
        return (x - mean) / (var + 1e-5).sqrt() * weight + bias

    def both(self, x, stride=1, padding=1):
        return self.norm(self.convolution(x, stride, padding))

    def features(self, x, widths, blocks):
        x, before = self.both(x).clamp(min=0), widths[0]
        for stage, width in enumerate(widths):
            for block in range(blocks):
                stride = 2 if stage and not block else 1
                y = self.both(self.both(x, stride).clamp(min=0))
                x = self.both(x, stride, padding=0) if width != before else x
                x, before = (x + y).clamp(min=0), width
        return x.mean(dim=(2, 3))


@pytest.mark.parametrize("name", RESNETS)
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_a_network_computes_what_its_layer_table_says(name, dropout):
    model, images = stirred(made(name, dropout=dropout)), torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        out, features = model(images), Slow(model).features(images, *STAGES[name])
    torch.testing.assert_close(out.features, features, rtol=1e-4, atol=1e-4)
    layer = model.head[1]
    logits = features @ layer.weight.T + layer.bias
    torch.testing.assert_close(out.logits, logits, rtol=1e-4, atol=1e-4)


def test_resnet18_computes_what_timms_resnet18_computes_with_this_stem():
    theirs = outside._timm().create_model("resnet18", num_classes=4)
    theirs.conv1, theirs.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
    model, images = stirred(made("resnet18_cifar")), torch.rand(2, 3, 32, 32)
    values = model.state_dict().values()
    theirs.load_state_dict(dict(zip(theirs.state_dict(), values, strict=True)))
    with torch.no_grad():
        torch.testing.assert_close(
            model(images).logits, theirs.eval()(images), rtol=1e-4, atol=1e-4
        )


def test_resnet18_of_identity_mappings_computes_what_timms_second_version_computes():
    theirs = outside._timm().create_model("resnetv2_18", num_classes=4)
    theirs.stem = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1, bias=False))
    model, images = stirred(made("resnet18_identity")), torch.rand(2, 3, 32, 32)
    parts = {"first.0": "norm1", "body.0": "conv1", "body.1": "norm2", "body.4": "conv2"}
    parts |= {"shortcut": "downsample.conv", "trunk.0": "stem.0", "trunk.9": "norm"}
    parts |= {"head": "head.fc"}
    parts |= {f"trunk.{1 + i}": f"stages.{i // 2}.blocks.{i % 2}" for i in range(8)}
    state = {}
    for name, value in model.state_dict().items():
        for ours, called in parts.items():
            name = name.replace(f"{ours}.", f"{called}.")
        state[name] = value[..., None, None] if name == "head.fc.weight" else value
    theirs.load_state_dict(state)
    with torch.no_grad():
        torch.testing.assert_close(
            model(images).logits, theirs.eval()(images), rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize(("name", "blocks"), [("resnet20", 9), ("resnet18_cifar", 8)])
def test_a_block_drops_after_its_first_relu_and_before_the_sum(name, blocks):
    model = made(name, dropout=0.3)
    found = [layer for layer in model.trunk if hasattr(layer, "body")]
    assert len(found) == blocks
    for block in found:
        kinds = [type(part).__name__ for part in block.body]
        first, second = ["Conv2d", "BatchNorm2d"], ["Conv2d", "BatchNorm2d"]
        assert kinds == [*first, "ReLU", "Dropout", *second, "Dropout"]
    rates = [m.p for m in model.modules() if isinstance(m, Dropping)]
    assert rates == [0.3] * (2 * blocks) + [0.1]


@pytest.mark.parametrize("name", DROPPING)
def test_dropout_is_sampled_in_a_test_and_its_mean_is_near_the_network_without(name):
    model, images = made(name, dropout=0.1, channels=1), IMAGES[:20]
    for _ in range(3):
        model(images)

    def batches(_):
        return [(images, None)]

    plain = train.predict(model, batches)
    passes = [train.dropout(model, batches, samples=1, seed=seed).logits for seed in (0, 1, 0)]
    assert np.array_equal(passes[0], passes[2])
    assert not np.array_equal(passes[0], passes[1])
    many = train.dropout(model, batches, samples=20, seed=0)
    assert not np.array_equal(many.logits, plain.logits)
    assert np.corrcoef(many.features.ravel(), plain.features.ravel())[0, 1] > 0.8
    assert np.array_equal(train.predict(model, batches).logits, plain.logits)
