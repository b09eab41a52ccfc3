"""Shapes and parameter counts of every network; ResNet-50 beside torchvision's."""

import copy
import pickle
from itertools import pairwise

import pytest
import torch
from test_models_cifar import Slow
from torch.nn import functional

from osnb import models, train
from osnb.datasets.vision import torchvision

SMALL, LARGE = (3, 32, 32), (3, 64, 64)
SHAPES = {"mlp": (1, 8, 8), "conv": SMALL, "resnet9": SMALL, "vgg32": SMALL, "fast_conv": SMALL}
SHAPES |= {"conv_dropout": SMALL, "resnet20": SMALL, "resnet18_cifar": SMALL}
SHAPES |= {"resnet18_identity": SMALL, "resnet50": LARGE, "timm": LARGE}
WIDE = {"wrn_40_4": (40, 4), "wrn_40_2": (40, 2), "wrn_10_1": (10, 1)}
SHAPES |= dict.fromkeys(WIDE, SMALL)
OWN_HEAD = ("mlp", "dhrnet", "ladder")
LARGE = ("wrn_28_10",)  # the class of wrn_40_4, by other numbers
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
    "fast_conv": 9 * (24 * 64 + 64 * 64 + 64 * 5 + 3 * 5 * 5) + 2 * (64 + 5 + 5) + 5 * 7,
    "resnet20": 9 * (3 * 16 + 6 * 16 * 16 + 16 * 32 + 5 * 32 * 32 + 32 * 5 + 5 * 5 * 5)
    + (16 * 32 + 32 * 5)  # shortcuts
    + 2 * (7 * 16 + 7 * 32 + 7 * 5)
    + 5 * 7
    + 7,
    "resnet18_cifar": 9 * (3 * 64 + 4 * 64 * 64 + 64 * 128 + 3 * 128 * 128)
    + 9 * (128 * 256 + 3 * 256 * 256 + 256 * 5 + 3 * 5 * 5)
    + (64 * 128 + 128 * 256 + 256 * 5)  # shortcuts
    + 2 * (5 * 64 + 5 * 128 + 5 * 256 + 5 * 5)
    + 5 * 7
    + 7,
    "resnet50": 23_508_032 + 2048 * 5 + 5 + 5 * 7,
    "timm": 11_176_512 + 512 * 5 + 5 + 5 * 7 + 7,
}
for name, (depth, k) in WIDE.items():
    wide = [16, *depth // 6 * [16 * k], *depth // 6 * [32 * k], *depth // 6 * [64 * k]]
    convolutions = 9 * 3 * 16 + sum(
        9 * (a * b + b * b) + a * b * (a != b) for a, b in pairwise(wide)
    )
    norms = 2 * (sum(a + b for a, b in pairwise(wide)) + 64 * k)
    COUNTS[name] = convolutions + norms + 64 * k * 7 + 7
# norms before the convolutions: one at the end, none beside the shortcuts
COUNTS["resnet18_identity"] = COUNTS["resnet18_cifar"] - 2 * (128 + 256 + 5)
COUNTS["conv_dropout"] = COUNTS["conv"]  # dropout has no parameters


def small(name, **settings):
    """A network of 7 classes and 5 features."""
    return models.MODELS.bind(name, classes=7, features=5, backbone="resnet18", **settings)()


@pytest.mark.parametrize("head", ["arpl", "rpl"])
@pytest.mark.parametrize("name", [name for name in models.MODELS if name not in OWN_HEAD + LARGE])
def test_a_head_of_points_replaces_the_linear_one_and_fills_the_slack(name, head):
    torch.manual_seed(0)
    model = small(name, head=head)
    out = model(torch.rand(2, *SHAPES[name]))
    assert out.logits.shape == out.slack.shape == (2, 7)
    bias = 0 if name in ("vgg32", "fast_conv", "resnet50") else 7
    points = COUNTS[name] - bias + 1
    assert sum(p.numel() for p in model.parameters()) == points
    (out.logits + out.slack).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("name", models.NORMALISE)
def test_normalising_is_another_first_layer_and_no_other_weights(name):
    torch.manual_seed(0)
    plain = models.mlp(classes=4, features=16, channels=3, size=8)
    images = torch.rand(5, 3, 8, 8)
    model = models.normalising(copy.deepcopy(plain), name, channels=3)
    said = pickle.loads(pickle.dumps(copy.deepcopy(model)))(images).logits
    assert not torch.allclose(said, plain(images).logits, atol=0.1)
    assert list(model.state_dict()) == list(plain.state_dict())
    first = plain.trunk[1]
    mean, std = (torch.tensor(x).repeat_interleave(64) for x in models.NORMALISE[name])
    first.weight.data /= std
    first.bias.data -= first.weight.data @ mean
    torch.testing.assert_close(said, plain(images).logits, rtol=1e-4, atol=1e-5)


def test_images_of_other_channels_than_the_mean_are_refused():
    with pytest.raises(ValueError, match="cifar needs 3 channels, images have 1: normalise=none"):
        models.normalising(small("conv"), "cifar", channels=1)


@pytest.mark.parametrize(("name", "turn"), [("arpl", 1), ("rpl", 0)])
def test_points_measure_what_chen_et_al_define(name, turn):
    torch.manual_seed(0)
    head = models.HEADS[name](features=5, classes=3)
    assert head.radius.item() == 0
    head.radius.data.fill_(0.25)
    x = torch.randn(4, 5)
    logits, slack = head(x)
    for n in range(4):
        for c in range(3):
            p = head.points[c].tolist()
            distance = sum((a - b) ** 2 for a, b in zip(x[n].tolist(), p, strict=True)) / 5
            product = sum(a * b for a, b in zip(x[n].tolist(), p, strict=True))
            assert logits[n, c].item() == pytest.approx(distance - turn * product, abs=1e-5)
            assert slack[n, c].item() == pytest.approx(distance - 0.25, abs=1e-5)


def test_a_resnet9_of_grey_images_is_one_of_colour_whose_channels_are_alike():
    grey, colour = (small("resnet9", channels=channels).eval() for channels in (1, 3))
    state = colour.state_dict()
    stem = next(key for key, value in state.items() if value.ndim == 4)
    grey.load_state_dict(state | {stem: state[stem].sum(dim=1, keepdim=True)})
    assert sum(p.numel() for p in grey.parameters()) == COUNTS["resnet9"] - 9 * 2 * 32
    images = torch.rand(2, 1, 32, 32)
    ours, theirs = grey(images).logits, colour(images.expand(2, 3, 32, 32)).logits
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(
    ("name", "millions"), [("wrn_28_10", 36.5), ("wrn_40_4", 8.9), ("wrn_40_2", 2.2)]
)
def test_wide_networks_have_as_many_parameters_as_their_paper_prints(name, millions):
    with torch.device("meta"):
        network = models.MODELS[name](classes=10)
    count = sum(p.numel() for p in network.parameters())
    assert round(count / 1e6, 1) == millions  # Table 5 there, with 10 classes


def test_a_wide_network_computes_what_its_layer_table_says():
    torch.manual_seed(0)
    model = models.MODELS["wrn_10_1"](classes=4, channels=1)
    images = torch.rand(4, 1, 16, 16)
    model(images)  # moves the norms away from 0 and 1
    slow = Slow(model.eval())

    def norm(x):
        return slow.norm(x).clamp(min=0)

    with torch.no_grad():
        x = slow.convolution(images)
        for stride, changes in ((1, False), (2, True), (2, True)):
            y = norm(x)
            z = slow.convolution(norm(slow.convolution(y, stride)))
            x = z + (slow.convolution(y, stride, 0) if changes else x)
        torch.testing.assert_close(model(images).features, norm(x).mean(dim=(2, 3)))


@pytest.mark.parametrize("depth", [4, 12, 20])
def test_a_wide_network_of_another_depth_is_refused(depth):
    with pytest.raises(ValueError, match=f"need a depth of 10, 16, 22, .*; got {depth}"):
        models.backbones.wide(depth=depth, widen=1, classes=3)


@pytest.mark.parametrize(
    "name", ["vit_tiny_patch16_224", "mixer_s32_224", "efficientnet_b0", "vgg11_bn"]
)
def test_other_families_of_timm_take_grey_images_of_another_size(name):
    model = models.from_timm(classes=3, features=8, backbone=name, channels=1, size=64).eval()
    out = model(torch.rand(2, 1, 64, 64))
    assert (out.logits.shape, out.features.shape) == ((2, 3), (2, 8))


def test_whitened_patches_are_uncorrelated_and_of_deviation_one():
    generator = torch.Generator().manual_seed(1)
    rough = torch.rand(20, 3, 9, 9, generator=generator)
    images = rough.cumsum(2).cumsum(3) / 9  # neighbours are alike
    layer = models.backbones.Whitening(3)
    layer.begin(images)
    seen = layer(images).movedim(1, 3).flatten(0, 2)
    assert torch.equal(seen[:, 12:], -seen[:, :12])
    own = 1 - 5e-4 / (5e-4 + torch.linalg.eigvalsh(_patches(images).T.cov()))
    torch.testing.assert_close(seen[:, :12].T.cov(), own.diag(), atol=2e-3, rtol=0)


def _patches(images):
    """Every 2 x 2 patch as a row, by torch's own unfold."""
    return functional.unfold(images, 2).movedim(1, 2).flatten(0, 1)


def test_what_a_layer_takes_at_the_beginning_is_its_own_input():
    model = models.normalising(
        models.fast_conv(classes=3, width=4, features=4), "cifar", channels=3
    )
    images = torch.rand(8, 3, 32, 32, generator=torch.Generator().manual_seed(2))
    train.begin(model, lambda *_: [(images, torch.zeros(8))])
    other = models.backbones.Whitening(3)
    mean, std = (torch.tensor(x)[:, None, None] for x in models.NORMALISE["cifar"])
    other.begin((images - mean) / std)
    torch.testing.assert_close(model.trunk[0].filters, other.filters, rtol=1e-3, atol=1e-3)
    state = {name: x.clone() for name, x in model.state_dict().items()}  # batch norm's too
    del state["trunk.0.filters"]
    train.begin(model.train(), lambda *_: [(images / 2, torch.zeros(8))])
    assert all(torch.equal(x, model.state_dict()[name]) for name, x in state.items())


def test_resnet50_takes_grey_images_too():
    model = models.MODELS["resnet50"](classes=4, features=3, channels=1).eval()
    assert model(torch.rand(2, 1, 32, 32)).logits.shape == (2, 4)


def test_resnet50_computes_what_torchvisions_resnet50_computes():
    torch.manual_seed(0)
    ours = models.MODELS["resnet50"](classes=4, features=4).eval()
    theirs = torchvision.models.resnet50(num_classes=4).eval()
    backbone, middle = ours.trunk
    missing = theirs.load_state_dict(backbone.state_dict() | _renamed(middle), strict=True)
    assert not missing.missing_keys
    images = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(ours(images).features, theirs(images))


def _renamed(layer):
    return {f"fc.{key}": value for key, value in layer.state_dict().items()}


def released(classes):
    """Random weights of the names and shapes that the authors' files have."""
    draw, state = torch.Generator().manual_seed(0), {}
    widths = [3, 64, 64, *[128] * 7]
    for i, (inputs, outputs) in enumerate(pairwise(widths), start=1):
        state[f"conv{i}.weight"] = 0.05 * torch.randn(outputs, inputs, 3, 3, generator=draw)
    for i, width in enumerate([*widths[1:], 128], start=1):
        values = {"weight": 1 + torch.rand(width, generator=draw)}
        values |= {"bias": torch.rand(width, generator=draw)}
        values |= {"running_mean": torch.rand(width, generator=draw)}
        values |= {"running_var": 1 + torch.rand(width, generator=draw)}
        values |= {"num_batches_tracked": torch.tensor(47400)}
        state |= {f"bn{i}.{key}": value for key, value in values.items()}
    state["fc.weight"] = torch.randn(classes, 128, generator=draw)
    return {f"module.{key}": value for key, value in state.items()}


def slow_vgg32(state, x):
    """The layer table, one line after the other: (logits, features)."""
    for i in range(1, 10):
        x = functional.conv2d(x, state[f"module.conv{i}.weight"], stride=2 - (i % 3 > 0), padding=1)
        mean, var, weight, bias = (
            state[f"module.bn{i}.{key}"][:, None, None]
            for key in ("running_mean", "running_var", "weight", "bias")
        )
        x = (x - mean) / (var + 1e-5).sqrt() * weight + bias
        x = torch.where(x > 0, x, 0.2 * x)
    features = x.mean(dim=(2, 3))
    return features @ state["module.fc.weight"].T, features


@pytest.mark.parametrize("prefix", ["module.", ""])
def test_released_weights_compute_what_their_layer_table_says(prefix, tmp_path):
    state = released(20)
    counted = [v for k, v in state.items() if k.rpartition(".")[2] in ("weight", "bias")]
    assert (len(state), sum(v.numel() for v in counted)) == (60, 1_001_920)
    torch.save({f"{prefix}{k[7:]}": v for k, v in state.items()}, tmp_path / "tiny.pth")
    model = models.weighted(models.MODELS["vgg32"](classes=20), tmp_path / "tiny.pth").eval()
    images = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    logits, features = slow_vgg32(state, images)
    with torch.no_grad():
        out = model(images)
    torch.testing.assert_close(out.features, features, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(out.logits, logits, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda s: s.pop("module.bn10.weight"),
            r"need the 60 tensors.*got 59.*bn10.weight \(128,\)",
        ),
        (lambda s: s.update({"module.fc.bias": torch.zeros(20)}), r"got 61.*fc.bias \(20,\)"),
        (lambda s: s.update({"module.fc.weight": torch.zeros(6, 128)}), r"fc.weight \(6, 128\)"),
    ],
)
def test_weights_of_another_network_are_refused(change, said):
    state = released(20)
    change(state)
    with pytest.raises(ValueError, match=said):
        models.weighted(models.MODELS["vgg32"](classes=20), state)


@pytest.mark.parametrize("name", ["resnet20", "conv"])
def test_released_weights_are_refused_by_a_network_of_another_kind(name):
    with pytest.raises(ValueError, match="tensors of this network; got 60, and on one side only"):
        models.weighted(models.MODELS[name](classes=20), released(20))


def test_a_file_that_holds_code_is_not_loaded(tmp_path):
    torch.save({"module.fc.weight": print}, tmp_path / "code.pth")
    with pytest.raises(ValueError, match="and nothing else"):
        models.weighted(models.MODELS["vgg32"](classes=20), tmp_path / "code.pth")


def test_dropout_in_timms_blocks_is_where_kims_code_has_it():
    torch.manual_seed(0)
    setting = {"classes": 3, "features": 2048, "backbone": "resnet50"}
    network = models.from_timm(**setting, dropout=0.1)
    dropped = [each.p for each in network.modules() if isinstance(each, torch.nn.Dropout)]
    assert dropped == [0.1] * 3 * (3 + 4 + 6 + 3) + [0.1]  # three in each block, before the head
    images = torch.rand(2, 3, 64, 64)
    torch.manual_seed(0)
    plain = models.from_timm(**setting).eval()
    torch.testing.assert_close(network.eval()(images).logits, plain(images).logits)
    assert not torch.equal(*(network.train()(images).logits for _ in range(2)))
    with pytest.raises(ValueError, match=r"residual blocks.*mobilenetv3_small_100 has none"):
        models.from_timm(classes=3, features=8, backbone="mobilenetv3_small_100", dropout=0.1)


@pytest.mark.parametrize("name", ["wrn_10_1", "wrn_40_4"])
def test_dropout_of_a_wide_network_is_in_each_block(name):
    model = models.MODELS.bind(name, classes=2, dropout=0.3)()
    dropped = [part.p for part in model.modules() if isinstance(part, torch.nn.Dropout)]
    assert dropped == [0.3] * len(dropped) != []


def test_features_are_divided_by_what_a_setting_says():
    assert models.fast_conv(classes=2, features=4, width=4, cold=3.0).trunk[-1].by == 3.0
