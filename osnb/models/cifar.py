"""Residual networks for photographs at 32 px, and dropout to be sampled by `train.dropout`."""

import torch
from torch import Tensor, nn

from osnb.models.network import HEADS, Network
from osnb.models.small import conv

BEFORE_HEAD = 0.1  # share of the features dropped where anything is, as Kim et al. release it


def resnet20(
    *,
    classes: int,
    features: int = 64,
    channels: int = 3,
    dropout: float = 0.0,
    head: str = "linear",
) -> Network:
    """ResNet-20 of He et al. 2016, as Kim et al. 2021 release it for CIFAR.

    A stem 3 x 3, then three stages of three blocks with 16, 32 and D channels, of which the last
    two halve the edge, and a mean over places. A convolution 1 x 1 with batch norm is the
    shortcut where the shape changes. (The paper's text says ResNet-18.)

    Args:
        classes: C, columns of the logits.
        features: D, channels of the last stage.
        channels: of an image.
        dropout: share of the numbers set to 0 in training at two places of a block: after its
            first ReLU, and before the sum. If above 0, `BEFORE_HEAD` of the features are too.
        head: a name in `HEADS`; "linear" has a bias.
    """
    layers = _stages((16, 32, features), blocks=3, channels=channels, dropout=dropout)
    return _network(layers, features=features, classes=classes, dropout=dropout, head=head)


def resnet18_cifar(
    *,
    classes: int,
    features: int = 512,
    channels: int = 3,
    dropout: float = 0.0,
    head: str = "linear",
) -> Network:
    """ResNet-18 of He et al. 2016 with a stem 3 x 3 and no pooling behind it, as used at 32 px.

    Four stages of two blocks with 64, 128, 256 and D channels, of which the last three halve the
    edge. Kim et al. 2021 name ResNet-18 for CIFAR, and release `resnet20`.

    Args:
        classes: C, columns of the logits.
        features: D, channels of the last stage.
        channels: of an image.
        dropout: as in `resnet20`.
        head: a name in `HEADS`; "linear" has a bias.
    """
    layers = _stages((64, 128, 256, features), blocks=2, channels=channels, dropout=dropout)
    return _network(layers, features=features, classes=classes, dropout=dropout, head=head)


def conv_dropout(
    *,
    classes: int,
    features: int = 128,
    width: int = 32,
    channels: int = 3,
    dropout: float = 0.1,
    head: str = "linear",
) -> Network:
    """`conv` with dropout, the miniature of `resnet20` with it.

    Args:
        classes: C, columns of the logits.
        features: D, channels of the last layer.
        width: channels of the first layer.
        channels: of an image.
        dropout: share of the numbers set to 0 in training after each ReLU but the last. If above
            0, `BEFORE_HEAD` of the features are too.
        head: a name in `HEADS`; "linear" has a bias.
    """
    plain = conv(classes=classes, features=features, width=width, channels=channels, head=head)
    for layer in plain.trunk[:3]:
        layer.append(nn.Dropout(dropout))
    return Network(plain.trunk, _dropping(plain.head, dropout))


class _Block(nn.Module):
    """Two convolutions 3 x 3 and a shortcut around them, for `resnet20`."""

    def __init__(self, inputs: int, outputs: int, *, stride: int, dropout: float):
        super().__init__()
        first = [*_convolution(inputs, outputs, 3, stride), nn.ReLU(), nn.Dropout(dropout)]
        second = [*_convolution(outputs, outputs, 3, 1), nn.Dropout(dropout)]
        self.body, self.shortcut = nn.Sequential(*first, *second), nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(*_convolution(inputs, outputs, 1, stride))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


def _convolution(inputs: int, outputs: int, size: int, stride: int) -> list[nn.Module]:
    """A convolution from normal(0, sqrt(2 / (size^2 outputs))), as released, and its norm."""
    layer = nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return [layer, nn.BatchNorm2d(outputs)]


def _stages(
    widths: tuple[int, ...], *, blocks: int, channels: int, dropout: float
) -> list[nn.Module]:
    layers, before = [*_convolution(channels, widths[0], 3, 1), nn.ReLU()], widths[0]
    for stage, width in enumerate(widths):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(_Block(before, width, stride=stride, dropout=dropout))
            before = width
    return layers


def _network(
    layers: list[nn.Module], *, features: int, classes: int, dropout: float, head: str
) -> Network:
    trunk = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    chosen = HEADS.bind(head, features=features, classes=classes, bias=True)()
    return Network(trunk, _dropping(chosen, dropout))


def _dropping(head: nn.Module, dropout: float) -> nn.Sequential:
    return nn.Sequential(nn.Dropout(BEFORE_HEAD if dropout > 0 else 0.0), head)
