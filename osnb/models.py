"""Networks: ``f(*, classes, features, ...) -> Module`` whose call gives `Outputs`.

A trunk and a head make a network: those for small images, timm's backbones, released weights.
"""

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor, autocast, nn

from osnb.base.catalogue import Catalogue
from osnb.base.outputs import Outputs

BEFORE_HEAD = 0.1  # share of the features dropped where anything is, as Kim et al. release it
NORM = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
UNUSED = {f"bn10.{part}": (128,) if part != NORM[-1] else () for part in NORM}  # never called


class Network(nn.Module):
    """A trunk that gives features (N, D) and a head, in float32, that makes logits (N, C).

    A head that measures more for its own loss gives a pair, logits and slack.
    """

    def __init__(self, trunk: nn.Module, head: nn.Module):
        super().__init__()
        self.trunk, self.head = trunk, head

    def forward(self, images: Tensor) -> Outputs:
        features = self.trunk(images).float()
        with autocast(features.device.type, enabled=False):  # bfloat16 logits would tie
            answer = self.head(features)
        logits, slack = answer if isinstance(answer, tuple) else (answer, ())
        return Outputs(logits, features, slack)


class Points(nn.Module):
    """One reciprocal point per class and a radius that all share, as Chen et al. 2021 released.

    A point stands for what its class is not: the further from p_c, the more of class c.

        d_c = |x - p_c|^2 / D,   logit_c = d_c - turn x.p_c,   slack_c = d_c - R

    Attributes:
        points: (C, D), drawn from 0.1 N(0, 1).
        radius: R, learned from 0 on.
        turn: 1 with the dot product, 0 without. (Vaze et al. name the cosine; the code has this.)
    """

    def __init__(self, features: int, classes: int, turn: float):
        super().__init__()
        self.points = nn.Parameter(0.1 * torch.randn(classes, features))
        self.radius = nn.Parameter(torch.zeros(()))
        self.turn = turn

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        product, width = features @ self.points.T, features.shape[1]
        squares = features.square().sum(1, keepdim=True) + self.points.square().sum(1)
        distance = (squares - 2 * product) / width
        return distance - self.turn * product, distance - self.radius


def linear(*, features: int, classes: int, bias: bool) -> nn.Linear:
    """One layer D to C."""
    return nn.Linear(features, classes, bias=bias)


def unbiased(*, features: int, classes: int) -> nn.Linear:
    """`linear` without bias, so that a logit is two norms and an angle (Vaze et al., App. B)."""
    return linear(features=features, classes=classes, bias=False)


HEADS = Catalogue(
    linear=linear,
    unbiased=unbiased,
    arpl=partial(Points, turn=1.0),  # Chen et al. 2021: distance less dot product
    rpl=partial(Points, turn=0.0),  # Chen et al. 2020: the distance alone
)


# For images of up to 64 px.


def mlp(*, classes: int, features: int = 64, channels: int = 1, size: int = 8) -> Network:
    """Two layers with ReLU on flat pixels, for the 8 x 8 digits.

    Args:
        classes: C, columns of the logits.
        features: D, width of both layers.
        channels: of an image.
        size: edge of an image in pixels.
    """
    trunk = nn.Sequential(
        nn.Flatten(),
        nn.Linear(channels * size * size, features),
        nn.ReLU(),
        nn.Linear(features, features),
        nn.ReLU(),
    )
    return Network(trunk, nn.Linear(features, classes))


def conv(
    *,
    classes: int,
    features: int = 128,
    width: int = 32,
    channels: int = 3,
    dropout: float = 0.0,
    head: str = "linear",
) -> Network:
    """Four convolutions and a mean over places, for small images on a CPU.

    Each layer is a convolution 3 x 3, batch norm and ReLU, with width, 2 width, 4 width and D
    channels; the first three halve the edge.

    Args:
        classes: C, columns of the logits.
        features: D, channels of the last layer.
        width: channels of the first layer.
        channels: of an image.
        dropout: share of the numbers set to 0 in training after each ReLU but the last. If above
            0, `BEFORE_HEAD` of the features are too: the miniature of `resnet20` with dropout.
        head: a name in `HEADS`; "linear" has a bias.
    """
    wide = [channels, width, 2 * width, 4 * width, features]
    layers = [
        _convolution(*ends, stride=stride)
        for ends, stride in zip(pairwise(wide), (2, 2, 2, 1), strict=True)
    ]
    for layer in layers[:3] if dropout else ():
        layer.append(nn.Dropout(dropout))
    dropped = BEFORE_HEAD if dropout else None
    return Network(_pooled(layers), _head(head, features, classes, dropped=dropped))


conv_dropout = partial(conv, dropout=0.1)


def resnet9(
    *,
    classes: int,
    features: int = 256,
    width: int = 32,
    channels: int = 3,
    dropout: float = 0.0,
    head: str = "linear",
) -> Network:
    """Nine-layer residual network for photographs at 32 px.

    A stem, then three stages that halve the edge by pooling; the first and the last stage
    add a residual pair of convolutions.

    Args:
        classes: C, columns of the logits.
        features: D, channels of the last stage.
        width: channels of the stem.
        channels: of an image.
        dropout: share of the features set to 0 before the head in training.
        head: a name in `HEADS`; "linear" has a bias.
    """
    trunk = nn.Sequential(
        _convolution(channels, width),
        _halving(width, 2 * width),
        _Residual(2 * width),
        _halving(2 * width, 4 * width),
        _halving(4 * width, features),
        _Residual(features),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
    )
    return Network(trunk, _head(head, features, classes, dropped=dropout))


def vgg32(*, classes: int, features: int = 128, channels: int = 3, head: str = "linear") -> Network:
    """The nine convolutions that Neal et al. 2018 named and Vaze et al. 2022 train, as released.

    Convolutions 3 x 3 without bias, batch norm, leaky ReLU 0.2; the third, sixth and ninth halve
    the edge; a mean over places gives the features, and the head has no bias. Whole channels
    are dropped with probability 0.2 in the image and before the fourth and the seventh layer.

    Args:
        classes: C, columns of the logits.
        features: D, channels of the last layer.
        channels: of an image.
        head: a name in `HEADS`; "linear" has no bias.
    """
    wide = [channels, 64, 64, *[128] * 6, features]
    layers: list[nn.Module] = []
    for i, ends in enumerate(pairwise(wide)):
        dropped = [nn.Dropout2d(0.2)] if i % 3 == 0 else []
        layers += [*dropped, _leaky(*ends, stride=2 if i % 3 == 2 else 1)]
    return Network(_pooled(layers), _head(head, features, classes, bias=False))


def _pooled(layers: list[nn.Module]) -> nn.Sequential:
    """Layers, and a mean over places."""
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def _head(
    name: str, features: int, classes: int, *, bias: bool = True, dropped: float | None = None
) -> nn.Module:
    """A head of `HEADS`, behind dropout where a share of the features to drop is given."""
    head = HEADS.bind(name, features=features, classes=classes, bias=bias)()
    return head if dropped is None else nn.Sequential(nn.Dropout(dropped), head)


def _convolution(inputs: int, outputs: int, *, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


def _leaky(inputs: int, outputs: int, *, stride: int) -> nn.Sequential:
    """A layer of `vgg32`, from its normal distributions (Sec. D.2's code)."""
    convolution = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
    norm = nn.BatchNorm2d(outputs)
    nn.init.normal_(convolution.weight, 0, 0.05)
    nn.init.normal_(norm.weight, 1, 0.02)
    return nn.Sequential(convolution, norm, nn.LeakyReLU(0.2))


def _halving(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(_convolution(inputs, outputs), nn.MaxPool2d(2))


class _Residual(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.pair = nn.Sequential(_convolution(width, width), _convolution(width, width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.pair(x)


# For photographs of 32 px, with dropout to be sampled by `train.dropout` if wanted.


def residual(
    widths: tuple[int, ...],
    blocks: int,
    *,
    classes: int,
    features: int,
    channels: int = 3,
    dropout: float = 0.0,
    head: str = "linear",
) -> Network:
    """A residual network of He et al. 2016 for small images: a stem 3 x 3, no pooling behind it.

    Every stage but the first halves the edge; a mean over places gives the features. A
    convolution 1 x 1 with batch norm is the shortcut where the shape changes.

    Args:
        widths: channels of the stages but the last.
        blocks: of each stage.
        classes: C, columns of the logits.
        features: D, channels of the last stage.
        channels: of an image.
        dropout: share of the numbers set to 0 in training at two places of a block: after its
            first ReLU, and before the sum. If above 0, `BEFORE_HEAD` of the features are too.
        head: a name in `HEADS`; "linear" has a bias.
    """
    layers, before = [*_kaiming(channels, widths[0], 3, 1), nn.ReLU()], widths[0]
    for stage, width in enumerate((*widths, features)):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(_Block(before, width, stride=stride, dropout=dropout))
            before = width
    dropped = BEFORE_HEAD if dropout else 0.0
    return Network(_pooled(layers), _head(head, features, classes, dropped=dropped))


# Kim et al. 2021 name ResNet-18 for CIFAR, and release ResNet-20
resnet20 = partial(residual, (16, 32), 3, features=64)
resnet18_cifar = partial(residual, (64, 128, 256), 2, features=512)


class _Block(nn.Module):
    """Two convolutions 3 x 3 and a shortcut around them, for `residual`."""

    def __init__(self, inputs: int, outputs: int, *, stride: int, dropout: float):
        super().__init__()
        first = [*_kaiming(inputs, outputs, 3, stride), nn.ReLU(), nn.Dropout(dropout)]
        second = [*_kaiming(outputs, outputs, 3, 1), nn.Dropout(dropout)]
        self.body, self.shortcut = nn.Sequential(*first, *second), nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(*_kaiming(inputs, outputs, 1, stride))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


def _kaiming(inputs: int, outputs: int, size: int, stride: int) -> list[nn.Module]:
    """A convolution from normal(0, sqrt(2 / (size^2 outputs))), as released, and its norm."""
    layer = nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return [layer, nn.BatchNorm2d(outputs)]


# For photographs of 224 px and more.


def _timm() -> ModuleType:
    """timm, behind the guard of the torchvision that it imports; seconds that no other pays."""
    from osnb.datasets import vision  # noqa: F401, I001
    import timm

    return timm


def resnet50(*, classes: int, features: int, head: str = "linear") -> Network:
    """ResNet-50 with the two-layer head of Palechor et al. 2023, random weights.

    The authors replace the classifier by a layer 2048 to D with bias, and put a layer D to C
    without bias behind it, nothing between. The D values are their features; they use D = C.

    Args:
        classes: C, columns of the logits.
        features: D, width of the middle layer.
        head: a name in `HEADS`; "linear" has no bias.
    """
    timm = _timm()

    backbone = timm.create_model("resnet50", num_classes=0, zero_init_last=False)
    trunk = nn.Sequential(backbone, nn.Linear(2048, features))
    return Network(trunk, _head(head, features, classes, bias=False))


def from_timm(
    *,
    classes: int,
    features: int,
    backbone: str,
    head: str = "linear",
    pretrained: bool = False,
    dropout: float = 0.0,
) -> Network:
    """Any network of timm by name, such as those of Figure 3 of Vaze et al. 2022.

    Args:
        classes: C, columns of the logits.
        features: D. Where it is not the backbone's own number, a layer with bias makes D of it.
        backbone: its name in timm: resnet18, resnet34, resnet101, resnet152, ...
        head: a name in `HEADS`; "linear" has a bias.
        pretrained: fetch timm's weights for the backbone; else they are random.
        dropout: share of the numbers set to 0 in training in each residual block, after its
            ReLUs and before the sum, as Kim et al. 2021 release it; ResNets only. If above 0,
            some of the features are too, as in `residual`.

    Raises:
        RuntimeError: timm knows no such name.
        ValueError: dropout is above 0 and the backbone has no such blocks.
    """
    timm = _timm()

    trunk = timm.create_model(backbone, pretrained=pretrained, num_classes=0)
    if dropout:
        _drop_in_blocks(trunk, backbone, dropout)
    width = trunk.head_hidden_size  # mobilenets have a layer behind their num_features
    if features != width:
        trunk = nn.Sequential(trunk, nn.Linear(width, features))
    dropped = BEFORE_HEAD if dropout else None
    return Network(trunk, _head(head, features, classes, dropped=dropped))


def _drop_in_blocks(trunk: nn.Module, name: str, dropout: float) -> None:
    """Put dropout after each inner ReLU of timm's residual blocks, and before the sum."""
    from timm.models.resnet import BasicBlock, Bottleneck

    blocks = [module for module in trunk.modules() if isinstance(module, BasicBlock | Bottleneck)]
    if not blocks:
        raise ValueError(f"dropout needs residual blocks, as in resnet50; {name} has none")
    for block in blocks:
        block.act1 = nn.Sequential(block.act1, nn.Dropout(dropout))
        if isinstance(block, Bottleneck):  # the other kind's second ReLU is behind the sum
            block.act2 = nn.Sequential(block.act2, nn.Dropout(dropout))
        block.drop_path = nn.Dropout(dropout)


# Pixels that authors have normalised.

NORMALISE = Catalogue(  # mean and standard deviation of each channel, as released
    cifar=((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),  # Vaze et al. 2022, all data sets
    kim=((0.507, 0.487, 0.441), (0.267, 0.256, 0.276)),  # Kim et al. 2021, CIFAR
    imagenet=((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),  # Kim et al. 2021, ImageNet
)


def normalising(network: nn.Module, name: str, *, channels: int) -> nn.Module:
    """The network, which from now on normalises the images of each call, (x - mean) / std.

    Everywhere outside images stay in [0, 1]: in caches, for generators, AugMix and ODIN, whose
    step in pixels is the one of code that normalises first and divides the step by std. The
    names of the weights stay, too.

    Args:
        network: called with images (N, 3, H, W) in [0, 1].
        name: in `NORMALISE`.
        channels: of the images to come.

    Raises:
        ValueError: the images have other channels than the mean.
    """
    mean, std = (torch.tensor(values)[:, None, None] for values in NORMALISE[name])
    if channels != len(mean):
        raise ValueError(
            f"normalise={name} needs {len(mean)} channels, images have {channels}: normalise=none"
        )
    network.register_buffer("pixel_mean", mean, persistent=False)
    network.register_buffer("pixel_std", std, persistent=False)
    network.register_forward_pre_hook(_normalise)
    return network


def _normalise(network: nn.Module, given: tuple[Tensor]) -> Tensor:
    return (given[0] - network.pixel_mean) / network.pixel_std


# Weights that authors have published.


def released_vgg32(weights: Path | Mapping[str, Tensor], *, classes: int) -> Network:
    """`vgg32` with weights in the form that Vaze et al. 2022 released theirs in.

    Args:
        weights: their file or its state dict: conv1 to conv9, bn1 to bn9 and fc, behind
            "module." or not, and a tenth batch norm which their network never calls.
        classes: K, rows of fc.

    Raises:
        ValueError: names or shapes are others than those of such a file.
    """
    if isinstance(weights, Path):
        weights = torch.load(weights, map_location="cpu", weights_only=True)
    given = {key.removeprefix("module."): value for key, value in weights.items()}
    network = vgg32(classes=classes)
    ours = {_theirs(key): key for key in network.state_dict()}
    needed = {name: tuple(network.state_dict()[key].shape) for name, key in ours.items()} | UNUSED
    came = {name: tuple(value.shape) for name, value in given.items()}
    if came != needed:
        wrong = sorted(needed.items() ^ came.items())
        raise ValueError(
            f"need the {len(needed)} tensors of vgg32 with {classes} classes; got {len(came)}, and "
            f"on one side only: {', '.join(f'{name} {shape}' for name, shape in wrong[:6])}"
        )
    network.load_state_dict({key: given[name] for name, key in ours.items()})
    return network


def _theirs(key: str) -> str:
    """Their name of one of our tensors: trunk.5.1.bias, behind two dropouts, is bn4.bias."""
    if key.startswith("head."):
        return key.replace("head.", "fc.")
    _, layer, part, what = key.split(".")
    number = int(layer) - int(layer) // 4
    return f"{('conv', 'bn')[int(part)]}{number}.{what}"


MODELS = Catalogue(
    mlp=mlp,
    conv=conv,
    conv_dropout=conv_dropout,
    resnet9=resnet9,
    resnet20=resnet20,
    resnet18_cifar=resnet18_cifar,
    vgg32=vgg32,
    resnet50=resnet50,
    timm=from_timm,
)
