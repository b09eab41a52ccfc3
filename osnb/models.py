"""Networks: ``f(*, classes, features, ...) -> Module`` whose call gives `Outputs`.

A trunk and a head make a network: those for small images, timm's backbones, released weights.
"""

import copy
import math
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor, autocast, nn
from torch.nn.functional import softplus
from torch.nn.utils.fusion import fuse_conv_bn_eval
from torch.nn.utils.parametrizations import spectral_norm

from osnb.base import workbook
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


class Flow(nn.Module):
    """A linear layer and a density of the features, the head of OpenHybrid (Zhang et al. 2020).

    The density is that of a residual flow (Chen et al. 2019), with a standard normal at its end.
    A step moves and stretches z, and adds a g(z) that changes by less than z, so it can be undone:

        z <- y + g(y),  y = (z + b) e^a        slack = -log p(f) / D
        log p(f) = log N(z_end; 0, I) + sum_steps log det(I + dg/dy) + sum_d a_d

    The determinant is worked out, where Chen et al. estimate it: D is small.

    Attributes:
        line: f to logits.
        steps: of the flow.
    """

    def __init__(self, features: int, classes: int, bias: bool = True, steps: int = 4):
        super().__init__()
        self.line = nn.Linear(features, classes, bias=bias)
        self.steps = nn.ModuleList(_Step(features) for _ in range(steps))

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        z, volume = features, features.new_zeros(len(features))
        for step in self.steps:
            z, more = step(z)
            volume = volume + more
        normal = (z.square() + math.log(2 * math.pi)).sum(dim=1) / 2
        return self.line(features), (normal - volume)[:, None] / z.shape[1]


class _Step(nn.Module):
    """A step of `Flow` and its log det, with g(y) = 0.9 W swish(V y + v) + w and |V|, |W| <= 1."""

    def __init__(self, width: int):
        super().__init__()
        self.first, self.second = (spectral_norm(nn.Linear(width, width)) for _ in range(2))
        self.moved, self.scale = nn.Parameter(torch.zeros(width)), nn.Parameter(torch.zeros(width))

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        v, w = self.first.weight, 0.9 * self.second.weight
        y = (z + self.moved) * self.scale.exp()
        x = y @ v.T + self.first.bias
        share = x.sigmoid()
        slope = share * (1 + x * (1 - share)) / 1.1  # of x sigmoid(x) / 1.1, nowhere above 1
        change = torch.eye(z.shape[1], device=z.device) + (w * slope[:, None]) @ v
        ahead = y + (x * share / 1.1) @ w.T + self.second.bias
        return ahead, torch.linalg.slogdet(change).logabsdet + self.scale.sum()


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
    flow=Flow,  # Zhang et al. 2020: a linear layer, and the density of the features
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


class Whitening(nn.Module):
    """A convolution 2 x 2 whose outputs are uncorrelated on images; it is not trained.

    Its filters are the eigenvectors of the covariance of patches, each divided by the root of its
    eigenvalue, and their negatives (Jordan 2024, arXiv:2404.00498, Sec. 3.1, and its code).
    """

    def __init__(self, channels: int):
        super().__init__()
        self.register_buffer("filters", torch.zeros(8 * channels, channels, 2, 2))

    def begin(self, images: Tensor) -> None:
        """Take the filters from images (N, channels, H, W), as `train.begin` gives them."""
        patches = images.double().unfold(2, 2, 1).unfold(3, 2, 1).movedim(1, 3).flatten(3)
        values, vectors = torch.linalg.eigh(patches.flatten(0, 2).T.cov())
        filters = (vectors / (values + 5e-4).sqrt()).T.reshape(-1, *self.filters.shape[1:])
        self.filters.copy_(torch.cat([filters, -filters]))

    def forward(self, images: Tensor) -> Tensor:
        return nn.functional.conv2d(images, self.filters)


def fast_conv(
    *,
    classes: int,
    features: int = 256,
    width: int = 64,
    channels: int = 3,
    head: str = "linear",
    cold: float = 9.0,
) -> Network:
    """Six convolutions behind a whitening one, for photographs at 32 px in minutes on a CPU.

    After Jordan 2024 (arXiv:2404.00498): three groups of two convolutions 3 x 3, with width, D
    and D channels, first weights that pass their input on, batch norm without gain and GELU; the
    first of each halves the edge, and the largest of 3 x 3 places gives the features. They are
    divided by `cold`, which is the same as dividing the logits of a linear head without bias.

    Args:
        classes: C, columns of the logits.
        features: D, channels of the last two groups.
        width: channels of the first group.
        channels: of an image.
        head: a name in `HEADS`; "linear" has no bias.
        cold: what the features are divided by.
    """
    wide = [8 * channels, width, features, features]
    layers: list[nn.Module] = [Whitening(channels), nn.GELU()]
    for inputs, outputs in pairwise(wide):
        first, second = (nn.Conv2d(c, outputs, 3, padding=1, bias=False) for c in (inputs, outputs))
        for layer in (first, second):
            nn.init.dirac_(layer.weight[: layer.in_channels])
        layers += [first, nn.MaxPool2d(2), _without_gain(outputs), nn.GELU()]
        layers += [second, _without_gain(outputs), nn.GELU()]
    trunk = nn.Sequential(*layers, nn.AdaptiveMaxPool2d(1), nn.Flatten(), Divided(cold))
    return Network(trunk, _head(head, features, classes, bias=False))


class Divided(nn.Module):
    """Numbers divided by one."""

    def __init__(self, by: float):
        super().__init__()
        self.by = by

    def forward(self, x: Tensor) -> Tensor:
        return x / self.by

    def extra_repr(self) -> str:
        return f"by={self.by}"


def _without_gain(width: int) -> nn.BatchNorm2d:
    norm = nn.BatchNorm2d(width, momentum=0.4)
    del norm.weight
    norm.register_buffer("weight", torch.ones(width))
    return norm


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


class Rebuilding(nn.Module):
    """Deep hierarchical reconstruction, the network of CROSR (Yoshihashi et al. 2019, Sec. 3.2).

        x_{l+1} = f_l(x_l),   z_l = h_l(x_l),   r_l = g_l(r_{l+1} + h'_l(z_l))

    x_0 is the image, r_0 what is made of the narrow z_l alone. The features are the logits y and
    the mean over places of each z_l; slack is the mean of (x_0 - r_0)^2 over an image's numbers.

    Attributes:
        down: f_l, two convolutions 3 x 3 with norm and ReLU, then the largest of 2 x 2 places.
        narrow, widen: h_l, convolution 3 x 3 to few channels and ReLU, and h'_l, back.
        up: g_l, transposed convolution 2 x 2, behind ReLU.
        head: the mean over places of the last x_l to y.
    """

    def __init__(self, channels: int, classes: int, width: int, latent: int):
        super().__init__()
        ends = list(pairwise([channels, width, 2 * width, 4 * width]))
        self.down = nn.ModuleList(
            nn.Sequential(_convolution(a, b), _convolution(b, b), nn.MaxPool2d(2)) for a, b in ends
        )
        conv = partial(nn.Conv2d, kernel_size=3, padding=1)
        self.narrow = nn.ModuleList(nn.Sequential(conv(b, latent), nn.ReLU()) for _, b in ends)
        self.widen = nn.ModuleList(conv(latent, b) for _, b in ends)
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in ends)
        self.head = nn.Linear(4 * width, classes)

    def forward(self, images: Tensor) -> Outputs:
        x, z = images, []
        for down, narrow in zip(self.down, self.narrow, strict=True):
            x = down(x)
            z.append(narrow(x))
        made = self.widen[-1](z[-1])
        for i in (2, 1):
            made = self.up[i](made).relu() + self.widen[i - 1](z[i - 1])
        error = (self.up[0](made).float() - images).square().flatten(1).mean(dim=1, keepdim=True)
        with autocast(x.device.type, enabled=False):
            logits = self.head(x.mean(dim=(2, 3)).float())
        means = [each.float().mean(dim=(2, 3)) for each in z]
        return Outputs(logits, torch.cat([logits, *means], dim=1), error)


def dhrnet(*, classes: int, width: int = 64, latent: int = 32, channels: int = 3) -> Rebuilding:
    """`Rebuilding` with three levels.

    Yoshihashi et al. put two layers of 4,096 units before the last one; here is a mean over places.

    Args:
        classes: C, columns of the logits.
        width: channels of the first level, half of those of the second.
        latent: channels of each z_l.
        channels: of an image, whose edge is a multiple of 8 px.
    """
    return Rebuilding(channels, classes, width, latent)


class Ladder(nn.Module):
    """A ladder of latent Gaussians, one about a place of its own for each class: CGDL's network.

    Sun et al. 2020, after Sonderby et al. 2016. On the way up, level l sees N(m_l, v_l) of the
    image. The highest latent z_L is drawn from its level's, and is classified. On the way down each
    level is told N(m'_l, v'_l) by z_{l+1}, and z_l is drawn from what both say together:

        N((m_l / v_l + m'_l / v'_l) u_l, u_l),   u_l = 1 / (1 / v_l + 1 / v'_l)

    z_1 rebuilds the image. In evaluation mode each draw is its mean. The features are m_L; slack
    (N, 1 + K) is the sum of the squared errors of what is rebuilt, then for each class k

        KL(N(m_L, v_L) || N(W e_k, I)) + sum_{l < L} KL(N(.., u_l) || N(m'_l, v'_l))   in nats

    Attributes:
        up, seen: a convolution that halves the edge, with norm and PReLU; its map to (m_l, v_l).
        down, told: z_{l+1} to a map twice as large, and that to (m'_l, v'_l); the last of `down`
            makes the image.
        head: z_L to logits.
        place: W, of a class.
    """

    def __init__(self, channels: int, size: int, classes: int, width: int, latent: int):
        super().__init__()
        wide, edges = [width, 2 * width, 4 * width], [size // 2, size // 4, size // 8]
        flat = [w * e * e for w, e in zip(wide, edges, strict=True)]
        codes = [4 * latent, 2 * latent, latent]
        halve, double = {"stride": 2, "padding": 1, "bias": False}, {"stride": 2, "bias": False}
        self.up = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3, **halve), nn.BatchNorm2d(b), nn.PReLU())
            for a, b in pairwise([channels, *wide])
        )
        self.seen = nn.ModuleList(map(nn.Linear, flat, (2 * code for code in codes)))
        self.told = nn.ModuleList(map(nn.Linear, flat[:2], (2 * code for code in codes)))
        self.down = nn.ModuleList()
        for i, narrow in enumerate([channels, *wide[:2]]):
            grown = [nn.Linear(codes[i], flat[i]), nn.Unflatten(1, (wide[i], edges[i], edges[i]))]
            grown += [nn.PReLU(), nn.ConvTranspose2d(wide[i], narrow, 2, **double)]
            self.down.append(nn.Sequential(*grown, nn.BatchNorm2d(narrow) if i else nn.Sigmoid()))
        self.head, self.place = nn.Linear(latent, classes), nn.Linear(classes, latent)

    def forward(self, images: Tensor) -> Outputs:
        x, seen = images, []
        for up, look in zip(self.up, self.seen, strict=True):
            x = up(x)
            seen.append(_moments(look(x.flatten(1)).float()))
        mean, spread = seen[-1]
        z = self.drawn(mean, spread)
        logits, one = self.head(z.float()), torch.ones((), device=z.device)
        places = self.place(torch.eye(self.place.in_features, device=z.device)).float()
        price = _divergence(mean[:, None], spread[:, None], places, one)
        for i in (1, 0):
            x, (m, v) = self.down[i + 1](z), seen[i]
            told, wide = _moments(self.told[i](x.flatten(1)).float())
            both = 1 / (1 / v + 1 / wide)
            mid = (m / v + told / wide) * both
            z = self.drawn(mid, both)
            price = price + _divergence(mid, both, told, wide)[:, None]
        error = (self.down[0](z).float() - images).square().flatten(1).sum(dim=1, keepdim=True)
        return Outputs(logits, mean, torch.cat([error, price], dim=1))

    def drawn(self, mean: Tensor, spread: Tensor) -> Tensor:
        """A draw from N(mean, spread) in training, else the mean."""
        return mean + spread.sqrt() * torch.randn_like(mean) if self.training else mean


def _moments(both: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance, the second above 0."""
    mean, spread = both.chunk(2, dim=1)
    return mean, softplus(spread) + 1e-8


def _divergence(m: Tensor, v: Tensor, p: Tensor, q: Tensor) -> Tensor:
    """KL(N(m, v) || N(p, q)) over the last axis, in nats."""
    return ((q / v).log() + (v + (m - p).square()) / q - 1).sum(dim=-1) / 2


def ladder(
    *, classes: int, width: int = 64, latent: int = 32, channels: int = 3, size: int = 32
) -> Ladder:
    """`Ladder` of three levels; Sun et al. have five, of two convolutions each.

    Args:
        classes: K, columns of the logits.
        width: channels of the first level, half of those of the second.
        latent: numbers of the highest latent, half of those below it.
        channels: of an image.
        size: edge of an image, a multiple of 8 px.
    """
    return Ladder(channels, size, classes, width, latent)


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


def wide(
    *,
    depth: int,
    widen: int,
    classes: int,
    channels: int = 3,
    dropout: float = 0.0,
    head: str = "linear",
) -> Network:
    """A wide residual network, WRN-depth-widen of Zagoruyko & Komodakis 2016, for small images.

    A stem of 16 channels, then three stages of 16, 32 and 64 times `widen` channels, all but the
    first halving the edge; batch norm and ReLU stand before each convolution, and once more before
    the mean over places, whose 64 `widen` numbers are the features.

    Args:
        depth: layers with weights, 6 n + 4 for n blocks a stage.
        widen: factor on the channels.
        classes: C, columns of the logits.
        channels: of an image.
        dropout: share of the numbers set to 0 in training between a block's convolutions.
        head: a name in `HEADS`; "linear" has a bias.

    Raises:
        ValueError: there is no network of that depth.
    """
    blocks, rest = divmod(depth - 4, 6)
    if rest or blocks < 1:
        raise ValueError(f"need a depth of 10, 16, 22, 28, 34, 40, ...; got {depth}")
    layers: list[nn.Module] = [_kaiming(channels, 16, 3, 1)[0]]
    before = 16
    for stage, width in enumerate((16 * widen, 32 * widen, 64 * widen)):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(_Wide(before, width, stride=stride, dropout=dropout))
            before = width
    layers += [nn.BatchNorm2d(before), nn.ReLU()]
    return Network(_pooled(layers), _head(head, before, classes))


# Table 6 of Vaze et al. 2022 has the first two, Table 8 the third; the fourth is their miniature
wrn_28_10, wrn_40_4 = partial(wide, depth=28, widen=10), partial(wide, depth=40, widen=4)
wrn_40_2, wrn_10_1 = partial(wide, depth=40, widen=2), partial(wide, depth=10, widen=1)


class _Wide(nn.Module):
    """Norm, ReLU and convolution, twice, for `wide`; the shortcut leaves behind the first ReLU."""

    def __init__(self, inputs: int, outputs: int, *, stride: int, dropout: float):
        super().__init__()
        self.first = nn.Sequential(nn.BatchNorm2d(inputs), nn.ReLU())
        between = [nn.BatchNorm2d(outputs), nn.ReLU(), nn.Dropout(dropout)]
        start, end = (_kaiming(n, outputs, 3, s)[0] for n, s in ((inputs, stride), (outputs, 1)))
        self.body = nn.Sequential(start, *between, end)
        self.shortcut = None if inputs == outputs else _kaiming(inputs, outputs, 1, stride)[0]

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        return self.body(y) + (x if self.shortcut is None else self.shortcut(y))


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
    weights: str = "",
    frozen: bool = False,
    channels: int = 3,
    size: int = 0,
) -> Network:
    """Any network of timm by name, such as those of Figure 3 of Vaze et al. 2022.

    Args:
        classes: C, columns of the logits.
        features: D. Where it is not the backbone's own number, a layer with bias makes D of it.
        backbone: its name in timm: resnet18, resnet152, vgg16_bn, efficientnet_b0,
            vit_base_patch16_224, mixer_b16_224, ...
        head: a name in `HEADS`; "linear" has a bias.
        pretrained: fetch timm's weights for the backbone; else they are random.
        dropout: share of the numbers set to 0 in training in each residual block, after its
            ReLUs and before the sum, as Kim et al. 2021 release it; ResNets only. If above 0,
            some of the features are too, as in `residual`.
        weights: file of the backbone's weights under timm's names, from `workbook.out()`:
            safetensors, or what torch.load reads with weights_only; "": none.
        frozen: leave the backbone as it is, and train what lies behind it.
        channels: of an image.
        size: side of an image in pixels, for backbones that have to know; 0: their own.

    Raises:
        RuntimeError: timm knows no such name.
        ValueError: dropout is above 0 and the backbone has no such blocks, the file lacks some of
            its tensors, or nothing but random weights would be frozen.
    """
    timm = _timm()
    if frozen and not (weights or pretrained):
        raise ValueError("frozen=true keeps random weights: name a file, weights=FILE")
    how = {"num_classes": 0, "in_chans": channels}
    about = timm.get_pretrained_cfg(backbone) if size else None
    if about and about.fixed_input_size and size != about.input_size[1]:
        how["img_size"] = size
    if weights:
        how["pretrained_cfg_overlay"] = {"state_dict": _weights(weights, backbone)}
    trunk = timm.create_model(backbone, pretrained=pretrained or bool(weights), **how)
    if dropout:
        _drop_in_blocks(trunk, backbone, dropout)
    width = trunk.head_hidden_size  # mobilenets have a layer behind their num_features
    trunk = Frozen(trunk) if frozen else trunk
    if features != width:
        trunk = nn.Sequential(trunk, nn.Linear(width, features))
    dropped = BEFORE_HEAD if dropout else None
    return Network(trunk, _head(head, features, classes, dropped=dropped))


def _weights(name: str, backbone: str) -> dict[str, Tensor]:
    """Tensors by name, all that the backbone has among them."""
    path = workbook.out() / name
    if not path.is_file():
        raise FileNotFoundError(2, "no such weights", str(path))
    given = _timm().models.load_state_dict(str(path), weights_only=True)
    needed = _timm().create_model(backbone, num_classes=0).state_dict().keys()
    if lacking := sorted(needed - given.keys()):
        some = ", ".join(lacking[:3])
        raise ValueError(f"{path} lacks {len(lacking)} of {len(needed)} of {backbone}: {some}, ...")
    return given


class Frozen(nn.Module):
    """A trunk at rest: no gradient, and batch norm as it came."""

    def __init__(self, trunk: nn.Module):
        super().__init__()
        self.trunk = trunk.eval().requires_grad_(False)

    def train(self, mode: bool = True) -> "Frozen":
        """Nothing changes in the trunk."""
        super().train(mode)
        self.trunk.eval()
        return self

    def forward(self, images: Tensor) -> Tensor:
        with torch.no_grad():
            return self.trunk(images)


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


def weighted(network: nn.Module, weights: Path | Mapping[str, Tensor]) -> nn.Module:
    """The network, given weights that somebody has trained.

    Args:
        network: with names of its own; a `vgg32` takes those of `released_vgg32` too.
        weights: a file of torch or its content: tensors by name, behind "module." or not, or a
            checkpoint, which has them under "model".

    Raises:
        ValueError: names or shapes are others, or the file holds more than tensors.
    """
    if isinstance(weights, Path):
        try:
            weights = torch.load(weights, map_location="cpu", weights_only=True)
        except OSError:
            raise
        except Exception:  # of pickle's own kinds too, and this package imports no pickle
            raise ValueError(f"{weights} must hold tensors by name, and nothing else") from None
    given = weights.get("model", weights)
    given = {key.removeprefix("module."): value for key, value in given.items()}
    theirs = {_theirs(key): key for key in network.state_dict()} if "conv9.weight" in given else {}
    names = theirs or {key: key for key in network.state_dict()}
    needed = {name: tuple(network.state_dict()[key].shape) for name, key in names.items()}
    needed |= UNUSED if theirs else {}
    came = {name: tuple(value.shape) for name, value in given.items()}
    if came != needed:
        wrong = sorted(needed.items() ^ came.items())
        raise ValueError(
            f"need the {len(needed)} tensors of this network; got {len(came)}, and on one side "
            f"only: {', '.join(f'{name} {shape}' for name, shape in wrong[:6])}"
        )
    network.load_state_dict({key: given[name] for name, key in names.items()})
    return network


def released_vgg32(weights: Path | Mapping[str, Tensor], *, classes: int) -> nn.Module:
    """`vgg32` with weights in the form that Vaze et al. 2022 released theirs in.

    Args:
        weights: their file or its state dict: conv1 to conv9, bn1 to bn9 and fc, behind
            "module." or not, and a tenth batch norm which their network never calls.
        classes: K, rows of fc.

    Raises:
        ValueError: names or shapes are others than those of such a file.
    """
    return weighted(vgg32(classes=classes), weights)


def _theirs(key: str) -> str:
    """Their name of one of our tensors: trunk.5.1.bias, behind two dropouts, is bn4.bias."""
    if key.startswith("head."):
        return key.replace("head.", "fc.")
    _, layer, part, what = key.split(".")
    number = int(layer) - int(layer) // 4
    return f"{('conv', 'bn')[int(part)]}{number}.{what}"


def folded(network: nn.Module) -> nn.Module:
    """A copy at rest whose batch norms are part of the convolutions before them.

    Of neighbours in an `nn.Sequential`, which is every batch norm of this room's own networks. In
    float32 the logits of a trained `vgg32` move by 4e-6 at most, and a pass takes less time.

    Args:
        network: stays as it is.
    """
    still = copy.deepcopy(network).eval()
    for part in [part for part in still.modules() if isinstance(part, nn.Sequential)]:
        for i, (first, second) in enumerate(pairwise(part)):
            if isinstance(first, nn.Conv2d) and isinstance(second, nn.BatchNorm2d):
                part[i], part[i + 1] = fuse_conv_bn_eval(first, second), nn.Identity()
    return still


MODELS = Catalogue(
    mlp=mlp,
    conv=conv,
    conv_dropout=conv_dropout,
    resnet9=resnet9,
    resnet20=resnet20,
    resnet18_cifar=resnet18_cifar,
    wrn_28_10=wrn_28_10,
    wrn_40_4=wrn_40_4,
    wrn_40_2=wrn_40_2,
    wrn_10_1=wrn_10_1,
    dhrnet=dhrnet,
    ladder=ladder,
    vgg32=vgg32,
    fast_conv=fast_conv,
    resnet50=resnet50,
    timm=from_timm,
)
