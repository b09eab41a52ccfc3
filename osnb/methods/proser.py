"""Placeholders for the unknown (PROSER), Zhou et al. 2021.

Spare outputs learn to be second best on known samples, and best on mixtures of two classes.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from osnb.methods.common import one_device
from osnb.outputs import Outputs
from osnb.train.forward import forward
from osnb.train.loop import Run


def fit(
    model: nn.Module,
    loss: Callable,
    batches: Callable,
    *,
    epochs: int,
    optimizer: Optimizer,
    schedule: Callable[[float], float],
    validate: Callable[[nn.Module], dict[str, float]],
    directory: Path,
    seed: int,
    precision: str = "float32",
    patience: float = math.inf,
    every: float = 300.0,
    devices: int = 1,
    plain_epochs: int,
    cut: int,
    placeholders: int = 1,
    second: float = 1.0,
    mixed: float = 0.01,
    alpha: float = 1.0,
):
    """Train as `train.fit` does, after `plain_epochs` of the `epochs` with placeholders.

    The model has K + P outputs. The last P are placeholders, of which the largest counts, f:

        logits(x) = (z_1, ..., z_K, f),   f = max_{c >= K} z_c

    Half of a batch pays `loss` on these K + 1 and `second` times `runner_up`. The other half is
    mixed with itself where `cut` says, each image with one of another class, and pays `mixed`
    times `loss` for class K. Scores drop the last column, as with `losses.background`: with P = 1
    exactly, with more a softmax also counts the placeholders that are not the largest. The
    released code scores max_{c < K} p_c - p_K at temperature 1024.

    As in the released code: halves of one batch, one share of the mixture for a batch, the
    default prices. Of two images of one class no mixture is made, as the paper says; the released
    code makes it. The released code begins with a trained network at a hundredth of its learning
    rate; here the rate is the schedule's.

    Args:
        model: with a `trunk` of layers in a row and a `head`, such as `models.conv`.
        batches: of known samples only.
        loss: for K + 1 logits and labels up to K, such as `losses.softmax`.
        epochs: in all.
        plain_epochs: epochs with `loss` on the first K logits alone.
        cut: layers of the trunk before the features are mixed.
        placeholders: P.
        second: price of the placeholder's being second best.
        mixed: price of the mixtures.
        alpha: shares of a mixture are drawn from Beta(alpha, alpha).

    All else, also what it returns and raises, is as in `train.fit`.

    Raises:
        ValueError: more devices than one, or a cut that is not inside the trunk.
    """
    one_device(devices)
    if not 0 < cut < len(model.trunk):
        raise ValueError(f"need a cut in [1, {len(model.trunk) - 1}]; got {cut}")
    own = {"plain": plain_epochs, "cut": cut, "placeholders": placeholders}
    own |= {"second": second, "mixed": mixed, "alpha": alpha}
    plain = (model, loss, batches, optimizer, schedule, Path(directory), precision, epochs, every)
    run = Placeholders(*plain, **own)
    run.train(seed, validate, patience)
    return run.frame()


@dataclass(kw_only=True)
class Placeholders(Run):
    """Plain steps in the first epochs, then steps with placeholders; settings as in `fit`."""

    plain: int
    cut: int
    placeholders: int
    second: float
    mixed: float
    alpha: float

    def values(self, images: Tensor, labels: Tensor) -> Tensor:
        """(N,) whose mean the model minimises: in later epochs, the sum of both halves' means."""
        if len(self.history) < self.plain:
            out = forward(self.called, images, self.where, self.precision)
            return self.loss(out._replace(logits=out.logits[:, : -self.placeholders]), labels)
        half, whole = len(labels) // 2, len(labels)
        mixtures = self.mixtures(images[:half], labels[:half]) * (whole / max(half, 1))
        out = self.placed(images[half:])
        known = self.loss(out, labels[half:])
        known = known + self.second * self.loss(*runner_up(out, labels[half:]))
        return torch.cat([self.mixed * mixtures, known * (whole / (whole - half))])

    def placed(self, images: Tensor) -> Outputs:
        """Outputs with K + 1 logits, the last one the largest placeholder's."""
        out = forward(self.called, images, self.where, self.precision)
        known, spare = out.logits.tensor_split([-self.placeholders], dim=1)
        return out._replace(logits=torch.cat([known, spare.amax(dim=1, keepdim=True)], dim=1))

    def mixtures(self, images: Tensor, labels: Tensor) -> Tensor:
        """(N,) price of each image's mixture as class K, 0 where both are of one class."""
        partner = torch.randperm(len(labels))
        share = torch.distributions.Beta(self.alpha, self.alpha).sample().item()
        with mixing(self.model.trunk[self.cut - 1], partner, share):
            out = self.placed(images)
        price = self.loss(out, torch.full_like(labels, out.logits.shape[1] - 1))
        return torch.where(labels == labels[partner.to(labels.device)], 0.0, price)


@contextmanager
def mixing(layer: nn.Module, partner: Tensor, share: float) -> Iterator[None]:
    """Let a layer give share x + (1 - share) x[partner] of what it gives, x, for a while."""

    def mix(_layer: nn.Module, _given: tuple, x: Tensor) -> Tensor:
        return share * x + (1 - share) * x[partner.to(x.device)]

    hook = layer.register_forward_hook(mix)
    try:
        yield
    finally:
        hook.remove()


def runner_up(out: Outputs, labels: Tensor) -> tuple[Outputs, Tensor]:
    """What is left without the true class, of which the placeholder shall be best.

    Args:
        out: logits (N, K + 1), the placeholder's last.
        labels: (N,) int64 in [0, K).

    Returns:
        Outputs with logits (N, K), and labels (N,) that name the last of them.
    """
    count, columns = out.logits.shape
    others = torch.arange(columns, device=labels.device) != labels[:, None]
    rest = out.logits[others].view(count, columns - 1)
    return out._replace(logits=rest), torch.full_like(labels, columns - 2)


def own(out: Outputs, *, known: int, temperature: float = 1024.0) -> dict[str, np.ndarray]:
    """Their score as released, max_{c < K} p_c - p_K, p the softmax of K + 1 logits over T.

    Args:
        out: logits (N, K + P), as `train.predict` gives them; the largest placeholder counts.
        known: K.
        temperature: T; at theirs p is nearly linear in the logits.

    Returns:
        own: (N,) float64 in [-1, 1], higher for known samples.
    """
    known_logits, spare = torch.from_numpy(out.logits).double().tensor_split([known], dim=1)
    logits = torch.cat([known_logits, spare.amax(dim=1, keepdim=True)], dim=1) / temperature
    share = logits.softmax(dim=1)
    return {"own": (share[:, :known].amax(dim=1) - share[:, known]).numpy()}
