"""Networks for small images: digits, drawn images, and photographs of 32 or 64 px."""

from itertools import pairwise

from torch import Tensor, nn

from osnb.models.network import HEADS, Network


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
        head: a name in `HEADS`; "linear" has a bias.
    """
    wide = [channels, width, 2 * width, 4 * width, features]
    layers = [
        _convolution(*ends, stride=stride)
        for ends, stride in zip(pairwise(wide), (2, 2, 2, 1), strict=True)
    ]
    trunk = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    chosen = HEADS.bind(head, features=features, classes=classes, bias=True)()
    return Network(trunk, chosen)


def resnet9(
    *,
    classes: int,
    features: int = 256,
    width: int = 32,
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
        dropout: share of the features set to 0 before the head in training.
        head: a name in `HEADS`; "linear" has a bias.
    """
    trunk = nn.Sequential(
        _convolution(3, width),
        _halving(width, 2 * width),
        _Residual(2 * width),
        _halving(2 * width, 4 * width),
        _halving(4 * width, features),
        _Residual(features),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
    )
    chosen = HEADS.bind(head, features=features, classes=classes, bias=True)()
    return Network(trunk, nn.Sequential(nn.Dropout(dropout), chosen))


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
    trunk = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    chosen = HEADS.bind(head, features=features, classes=classes, bias=False)()
    return Network(trunk, chosen)


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
