"""What all networks share: a trunk and a head, and the heads that a paper chooses among."""

import torch
from torch import Tensor, autocast, nn

from osnb.catalogue import Catalogue
from osnb.outputs import Outputs


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
            said = self.head(features)
        logits, slack = said if isinstance(said, tuple) else (said, ())
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


def arpl(*, features: int, classes: int) -> Points:
    """Adversarial reciprocal points, Chen et al. 2021: distance less dot product."""
    return Points(features, classes, turn=1.0)


def rpl(*, features: int, classes: int) -> Points:
    """Reciprocal points, Chen et al. 2020: the distance alone."""
    return Points(features, classes, turn=0.0)


HEADS = Catalogue(linear=linear, arpl=arpl, rpl=rpl)
