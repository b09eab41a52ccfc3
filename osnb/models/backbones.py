"""Networks for images of up to 64 px: with a head of `osnb.models.heads`, or that rebuild them."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, autocast, nn
from torch.nn.functional import softplus

from osnb.base.outputs import Outputs
from osnb.models.heads import BEFORE_HEAD, Network, head_of


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
        convolution(*ends, stride=stride)
        for ends, stride in zip(pairwise(wide), (2, 2, 2, 1), strict=True)
    ]
    for layer in layers[:3] if dropout else ():
        layer.append(nn.Dropout(dropout))
    dropped = BEFORE_HEAD if dropout else None
    return Network(_pooled(layers), head_of(head, features, classes, dropped=dropped))


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
        convolution(channels, width),
        _halving(width, 2 * width),
        _Residual(2 * width),
        _halving(2 * width, 4 * width),
        _halving(4 * width, features),
        _Residual(features),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
    )
    return Network(trunk, head_of(head, features, classes, dropped=dropout))


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
        """Images (N, channels, H, W) filtered: (N, 8 * channels, H - 1, W - 1)."""
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
    return Network(trunk, head_of(head, features, classes, bias=False))


class Divided(nn.Module):
    """Numbers divided by one."""

    def __init__(self, by: float):
        super().__init__()
        self.by = by

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape, divided."""
        return x / self.by

    def extra_repr(self) -> str:
        """The divisor, so that a network's text tells it."""
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
    return Network(_pooled(layers), head_of(head, features, classes, bias=False))


def _pooled(layers: list[nn.Module]) -> nn.Sequential:
    """Layers, and a mean over places."""
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def convolution(inputs: int, outputs: int, *, stride: int = 1) -> nn.Sequential:
    """A convolution 3 x 3 without bias, batch norm and ReLU."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


def _leaky(inputs: int, outputs: int, *, stride: int) -> nn.Sequential:
    """A layer of `vgg32`, from its normal distributions (Sec. D.2's code)."""
    layer = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
    norm = nn.BatchNorm2d(outputs)
    nn.init.normal_(layer.weight, 0, 0.05)
    nn.init.normal_(norm.weight, 1, 0.02)
    return nn.Sequential(layer, norm, nn.LeakyReLU(0.2))


def _halving(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(convolution(inputs, outputs), nn.MaxPool2d(2))


class _Residual(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.pair = nn.Sequential(convolution(width, width), convolution(width, width))

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
    layers = [*_kaiming(channels, widths[0], 3, 1), nn.ReLU()]
    layers += _stages(_Block, widths[0], (*widths, features), blocks, dropout)
    dropped = BEFORE_HEAD if dropout else 0.0
    return Network(_pooled(layers), head_of(head, features, classes, dropped=dropped))


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
    of = {"classes": classes, "channels": channels, "dropout": dropout, "head": head}
    return preactivated((16, 16 * widen, 32 * widen), blocks, features=64 * widen, **of)


# Table 6 of Vaze et al. 2022 has the first two, Table 8 the third; the fourth is their miniature
wrn_28_10, wrn_40_4 = partial(wide, depth=28, widen=10), partial(wide, depth=40, widen=4)
wrn_40_2, wrn_10_1 = partial(wide, depth=40, widen=2), partial(wide, depth=10, widen=1)


def preactivated(
    widths: Sequence[int],
    blocks: int,
    *,
    classes: int,
    features: int,
    channels: int = 3,
    dropout: float = 0.0,
    head: str = "linear",
) -> Network:
    """A residual network with identity mappings (He et al. 2016, ECCV), as `wide` describes it.

    Args:
        widths: channels of the stem, then of the stages but the last.
        blocks: of each stage.
        classes: C, columns of the logits.
        features: D, channels of the last stage.
        channels: of an image.
        dropout: share of the numbers set to 0 in training between a block's convolutions.
        head: a name in `HEADS`; "linear" has a bias.
    """
    stem, *stages = *widths, features
    layers: list[nn.Module] = [_kaiming(channels, stem, 3, 1)[0]]
    layers += _stages(_Wide, stem, stages, blocks, dropout)
    trunk = _pooled([*layers, nn.BatchNorm2d(features), nn.ReLU()])
    return Network(trunk, head_of(head, features, classes))


# cited by Kim et al.
resnet18_identity = partial(preactivated, (64, 64, 128, 256), 2, features=512)


class _Wide(nn.Module):
    """Norm, ReLU and convolution, twice; the shortcut leaves behind the first ReLU."""

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


def _stages(
    block: Callable[..., nn.Module], before: int, widths: Sequence[int], count: int, dropout: float
) -> list[nn.Module]:
    """So many blocks of each width, the first of every stage but the first halving the edge."""
    blocks = []
    for stage, width in enumerate(widths):
        for i in range(count):
            stride = 2 if stage > 0 and i == 0 else 1
            blocks.append(block(before, width, stride=stride, dropout=dropout))
            before = width
    return blocks


def _kaiming(inputs: int, outputs: int, size: int, stride: int) -> list[nn.Module]:
    """A convolution from normal(0, sqrt(2 / (size^2 outputs))), as released, and its norm."""
    layer = nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return [layer, nn.BatchNorm2d(outputs)]


# Networks that rebuild their image from latent numbers: those of CROSR and CGDL.


class Rebuilding(nn.Module):
    """Deep hierarchical reconstruction, the network of CROSR (Yoshihashi et al. 2019, Sec. 3.2).

        x_{l+1} = f_l(x_l),   z_l = h_l(x_l),   r_l = g_l(r_{l+1} + h'_l(z_l))

    x_0 is the image, r_0 what is made of the narrow z_l alone. The features are the logits y and
    the mean over places of each z_l; slack is the mean of (x_0 - r_0)^2 over an image's numbers.
    Yoshihashi et al. put two layers of 4,096 units before the last one; here is a mean over places.

    Args:
        classes: C, columns of the logits.
        width: channels of the first of three levels, half of those of the second.
        latent: channels of each z_l.
        channels: of an image, whose edge is a multiple of 8 px.

    Attributes:
        down: f_l, two convolutions 3 x 3 with norm and ReLU, then the largest of 2 x 2 places.
        narrow, widen: h_l, convolution 3 x 3 to few channels and ReLU, and h'_l, back.
        up: g_l, transposed convolution 2 x 2, behind ReLU.
        head: the mean over places of the last x_l to y.
    """

    def __init__(self, *, classes: int, width: int = 64, latent: int = 32, channels: int = 3):
        super().__init__()
        ends = list(pairwise([channels, width, 2 * width, 4 * width]))
        self.down = nn.ModuleList(
            nn.Sequential(convolution(a, b), convolution(b, b), nn.MaxPool2d(2)) for a, b in ends
        )
        conv = partial(nn.Conv2d, kernel_size=3, padding=1)
        self.narrow = nn.ModuleList(nn.Sequential(conv(b, latent), nn.ReLU()) for _, b in ends)
        self.widen = nn.ModuleList(conv(latent, b) for _, b in ends)
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in ends)
        self.head = nn.Linear(4 * width, classes)

    def forward(self, images: Tensor) -> Outputs:
        """Of images (N, channels, H, W): logits, features, and slack (N, 1), the mean error."""
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


class Ladder(nn.Module):
    """A ladder of latent Gaussians, one about a place of its own for each class: CGDL's network.

    Sun et al. 2020, after Sonderby et al. 2016. On the way up, level l sees N(m_l, v_l) of the
    image. The highest latent z_L is drawn from its level's, and is classified. On the way down each
    level is told N(m'_l, v'_l) by z_{l+1}, and z_l is drawn from what both say together:

        N((m_l / v_l + m'_l / v'_l) u_l, u_l),   u_l = 1 / (1 / v_l + 1 / v'_l)

    z_1 rebuilds the image. In evaluation mode each draw is its mean. The features are m_L; slack
    (N, 1 + K) is the sum of the squared errors of what is rebuilt, then for each class k

        KL(N(m_L, v_L) || N(W e_k, I)) + sum_{l < L} KL(N(.., u_l) || N(m'_l, v'_l))   in nats

    Here are three levels; Sun et al. have five, of two convolutions each.

    Args:
        classes: K, columns of the logits.
        width: channels of the first level, half of those of the second.
        latent: numbers of the highest latent, half of those below it.
        channels: of an image.
        size: edge of an image, a multiple of 8 px.

    Attributes:
        up, seen: a convolution that halves the edge, with norm and PReLU; its map to (m_l, v_l).
        down, told: z_{l+1} to a map twice as large, and that to (m'_l, v'_l); the last of `down`
            makes the image.
        head: z_L to logits.
        place: W, of a class.
    """

    def __init__(
        self, *, classes: int, width: int = 64, latent: int = 32, channels: int = 3, size: int = 32
    ):
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
        """Of images (N, channels, size, size): logits, features and slack, as above."""
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


dhrnet, ladder = Rebuilding, Ladder
