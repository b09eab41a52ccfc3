"""Conditional Gaussian distribution learning (CGDL), Sun et al. 2020, for `models.ladder`.

Each class's images shall lie about a place of their own among the latent numbers, and be rebuilt
from there. The score is the density of the likeliest class's Gaussian, `scores.class_gaussians`.
"""

from dataclasses import dataclass

from torch import Tensor

from osnb.train.forward import forward
from osnb.train.loop import Run


@dataclass(kw_only=True)
class Conditional(Run):
    """Train on `loss` and the price of rebuilding an image from where its class lies:

        J(x) = loss(x) + elbo_weight (|x - r(x)|^2 + beta KL_y(x))

    with beta going from 0 to 1 in a straight line over `warm_up` epochs. Sun et al. multiply `loss`
    by lambda = 100, which is the same but for the scale; their code counts the warm-up in steps.
    The second threshold of theirs, on |x - r(x)|^2, is not part of the score.

    Attributes:
        model: gives slack (N, 1 + K), the squared error and KL_k for each class k.
        elbo_weight: 1 / lambda.
        warm_up: epochs, theirs 50.
    """

    elbo_weight: float = 0.01
    warm_up: int = 50

    def values(self, images: Tensor, labels: Tensor) -> Tensor:
        """(N,) whose mean the model minimises."""
        out = forward(self.called, images, self.where, self.precision)
        epochs = len(self.history) + (self.step + 1) / len(self.batches)
        nearness = out.slack.gather(1, labels[:, None] + 1)[:, 0]
        elbo = out.slack[:, 0] + min(1.0, epochs / self.warm_up) * nearness
        return self.loss(out, labels) + self.elbo_weight * elbo
