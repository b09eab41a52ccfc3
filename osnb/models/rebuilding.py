"""Networks that rebuild their image from latent numbers: those of CROSR and CGDL."""

from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, autocast, nn
from torch.nn.functional import softplus

from osnb.base.outputs import Outputs
from osnb.models.backbones import convolution


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
