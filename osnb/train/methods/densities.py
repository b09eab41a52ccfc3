"""Methods that say where features lie: by what is drawn where few lie, or as a density.

- `Virtual`: VOS, virtual outliers among the features, and a detector that tells them from images.
- `Conditional`: CGDL, for `models.ladder`, which has a place for each class.
- `density`: OpenHybrid's score, after plain steps with a flow over the features.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from osnb.base.outputs import Outputs
from osnb.train import checkpoint
from osnb.train.forward import first_look, forward
from osnb.train.loop import Run
from osnb.train.methods.arpl_cs import beside

DETECTOR = "detector"  # what is kept beside the model


class Detector(nn.Module):
    """Which of two an image's logits z come from: an image, or a virtual outlier.

        E(z) = log sum_c max(w_c, 0) e^z_c,   (outlier, image) = softmax(a E + b)

    Attributes:
        weight: w (K,), drawn from U(0, 1).
        line: a and b, two each.
        queue: (K, Q, D), the newest features of each class.
        count: (K,) int64, how many of each class have been seen.
    """

    queue: Tensor
    count: Tensor

    def __init__(self, classes: int, length: int, features: int):
        super().__init__()
        self.weight, self.line = nn.Parameter(torch.rand(classes)), nn.Linear(1, 2)
        self.register_buffer("queue", torch.zeros(classes, length, features))
        self.register_buffer("count", torch.zeros(classes, dtype=torch.int64))

    def forward(self, logits: Tensor) -> Tensor:
        """(N, 2) logits of outlier and image, of logits (N, K)."""
        top = logits.amax(dim=1, keepdim=True)
        energy = (self.weight.relu() * (logits - top).exp()).sum(dim=1, keepdim=True).log() + top
        return self.line(energy)

    def remember(self, features: Tensor, labels: Tensor) -> None:
        """Put a batch's features (N, D) in the queues, each in the place of its class's oldest."""
        same, length = labels[:, None] == labels, self.queue.shape[1]
        place = (self.count[labels] + same.tril(-1).sum(dim=1)) % length
        kept = same.triu(1).sum(dim=1) < length  # no two of a batch fall on one place
        self.queue[labels[kept], place[kept]] = features[kept]
        self.count += torch.bincount(labels, minlength=len(self.count))

    def outliers(self, drawn: int, chosen: int) -> Tensor:
        """(K chosen, D): of `drawn` features of each class, those where the density is least.

        Of class c they are mu_c + L e, with e ~ N(0, I), mu_c the mean of its queue, and L L' the
        covariance about these means of all queues, plus 0.0001 I. Their density falls with |e|.
        """
        mean, width = self.queue.mean(dim=1), self.queue.shape[2]
        rest = (self.queue - mean[:, None]).flatten(0, 1)
        covariance = rest.T @ rest / len(rest) + 1e-4 * torch.eye(width, device=rest.device)
        e = torch.randn(len(mean), drawn, width, device=rest.device)
        far = e.square().sum(dim=2).topk(chosen, dim=1).indices
        e = e.gather(1, far[:, :, None].expand(-1, -1, width))
        return (mean[:, None] + e @ torch.linalg.cholesky(covariance).T).flatten(0, 1)


@dataclass(kw_only=True)
class Virtual(Run):
    """Virtual outlier synthesis (VOS), Du et al. 2022, as released for classification.

    The classifier trains beside a detector that tells images from virtual outliers: features drawn
    from a Gaussian about each class's mean, where that Gaussian is thinnest. It trains on `loss`,
    and after `plain_epochs`, once all queues are full, on its sum with

        vos_weight mean_{x, v} (-log p(image | x), -log p(outlier | v))

    where x is an image of the batch, v an outlier, which goes through the head alone, and p the
    detector's softmax. The score of Du et al. is the energy, without the detector's weights.

    Attributes:
        model: with a `head` of features, such as `models.conv`.
        batches: of known samples only.
        plain_epochs: theirs are 40 of 100.
        vos_weight: price of the detector's cross-entropy; theirs is 0.1.
        queue: features kept of each class; theirs are 1,000.
        drawn: features drawn of each class in a step; theirs are 10,000.
        outliers: of these, how many become outliers; theirs is 1.

    Raises:
        ValueError: a queue holds nothing, or more outliers are wanted than are drawn.
    """

    plain_epochs: int
    vos_weight: float = 0.1
    queue: int = 1000
    drawn: int = 10_000
    outliers: int = 1

    def __post_init__(self):
        if self.queue < 1 or not 0 < self.outliers <= self.drawn:
            raise ValueError(
                f"need queue > 0 and 0 < outliers <= drawn; got queue={self.queue}, "
                f"outliers={self.outliers}, drawn={self.drawn}"
            )
        out, _ = first_look(self.model, self.batches)
        super().__post_init__()
        with checkpoint.seeded(self.seed, DETECTOR):
            sizes = (out.logits.shape[1], self.queue, out.features.shape[1])
            self.companions[DETECTOR] = Detector(*sizes).to(self.where)

    def train(self):
        """The history, as of any run; the detector's weights train with the model's."""
        with beside(self.optimizer, self.companions[DETECTOR].parameters()):
            self.rates = [group["lr"] for group in self.optimizer.param_groups]
            return super().train()

    def values(self, images: Tensor, labels: Tensor) -> Tensor:
        """(N,) whose mean the model and the detector minimise."""
        detector = self.companions[DETECTOR]
        out = forward(self.called, images, self.where, self.precision)
        detector.remember(out.features.detach(), labels)
        known = self.loss(out, labels)
        if len(self.history) < self.plain_epochs or detector.count.min() < self.queue:
            return known
        virtual = self.headed(detector.outliers(self.drawn, self.outliers))
        said = detector(torch.cat([out.logits, virtual]))
        real = torch.arange(len(said), device=self.where) < len(labels)
        return known + self.vos_weight * cross_entropy(said, real.long())

    def headed(self, features: Tensor) -> Tensor:
        """Logits of features; a head that measures more gives a pair."""
        answer = self.model.head(features)
        return answer[0] if isinstance(answer, tuple) else answer


@dataclass(kw_only=True)
class Conditional(Run):
    """Conditional Gaussian distribution learning (CGDL), Sun et al. 2020, for `models.ladder`.

    Each class's images shall lie about a place of their own among the latent numbers, and be
    rebuilt from there. The score is the density of the likeliest class's Gaussian,
    `scores.class_gaussians`. It trains on `loss` and the price of rebuilding:

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


@torch.no_grad()
def density(out: Outputs, *, model: nn.Module) -> np.ndarray:
    """log p of the features by number of a feature, (N,) float64 in nats, higher for known samples.

    The own score of OpenHybrid (Zhang et al. 2020), whose classifier and flow train together on
    `losses.joint`, by plain steps, through the same features: the head `models.HEADS["flow"]` gives
    the logits and -log p of the features, by number of a feature. An image is unknown where p is
    small. No code was released; the encoders are those of `models`.

    Args:
        out: features (N, D), as `train.predict` gives them.
        model: with the head "flow"; is put in evaluation mode.
    """
    where = next(model.parameters()).device
    parts = torch.from_numpy(out.features).split(1024)
    slack = [model.eval().head(part.to(where))[1][:, 0].cpu() for part in parts]
    return -torch.cat(slack).double().numpy()
