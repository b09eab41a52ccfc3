"""A network is a trunk and a head; here are the heads, and what joins both."""

import math
from functools import partial

import torch
from torch import Tensor, autocast, nn
from torch.nn.utils.parametrizations import spectral_norm

from osnb.base.catalogue import Catalogue
from osnb.base.outputs import Outputs

BEFORE_HEAD = 0.1  # share of the features dropped where anything is, as Kim et al. release it


class Network(nn.Module):
    """A trunk that gives features (N, D) and a head, in float32, that makes logits (N, C).

    A head that measures more for its own loss gives a pair, logits and slack.
    """

    def __init__(self, trunk: nn.Module, head: nn.Module):
        super().__init__()
        self.trunk, self.head = trunk, head

    def forward(self, images: Tensor) -> Outputs:
        """Of images (N, channels, H, W): logits (N, C), features (N, D) and slack."""
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
        """Of features (N, D): logits (N, C), and slack (N, C), distances less R."""
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
        """Of features (N, D): logits (N, C), and slack (N, 1), -log density over D, in nats."""
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


def head_of(
    name: str, features: int, classes: int, *, bias: bool = True, dropped: float | None = None
) -> nn.Module:
    """A head of `HEADS`, behind dropout where a share of the features to drop is given."""
    head = HEADS.bind(name, features=features, classes=classes, bias=bias)()
    return head if dropped is None else nn.Sequential(nn.Dropout(dropped), head)


HEADS = Catalogue(
    linear=linear,
    unbiased=unbiased,
    arpl=partial(Points, turn=1.0),  # Chen et al. 2021: distance less dot product
    rpl=partial(Points, turn=0.0),  # Chen et al. 2020: the distance alone
    flow=Flow,  # Zhang et al. 2020: a linear layer, and the density of the features
)
