"""Outlier exposure (OE), Hendrycks et al. 2019, as Kim et al. 2021 run it from scratch.

Beside every batch goes one of images from outside, of which no class shall be the likeliest.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from osnb.methods.common import image_shape, one_device
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
    outside: Callable,
    outside_weight: float = 0.5,
):
    """Train as `train.fit` does, on `loss` and `outside_weight` times the mean of `unevenness`.

    Both kinds go through the network in one pass, and share its batch norms, as released. Each
    epoch goes on with the images from outside where the epoch before it ended, and begins
    them anew, in another order, when all are used; as released it begins anew every epoch, and
    ends when either kind does.

    Args:
        loss: such as `losses.softmax`, of the given batches alone.
        outside: batches of external images, made as `batches` are; labels are not read. Theirs
            are twice as large as those of `batches`.
        outside_weight: price of the second term; theirs is 0.5.

    All else, also what it returns, is as in `train.fit`.

    Raises:
        ValueError: more devices than one, or images from outside of another shape.
    """
    one_device(devices)
    shape, found = image_shape(batches), image_shape(outside)
    if shape != found:
        raise ValueError(f"need outside images of (channels, edge) {shape}; got {found}")
    both = Beside(batches, outside)
    plain = (model, loss, both, optimizer, schedule, Path(directory), precision, epochs, every)
    run = Exposed(*plain, outside_weight=outside_weight)
    run.train(seed, validate, patience)
    return run.frame()


@dataclass
class Beside:
    """Batches whose images are followed by those of a batch from outside; labels as they were."""

    batches: Callable
    outside: Callable

    def __len__(self) -> int:
        return len(self.batches)

    def __call__(self, epoch: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Images (n + m, ...) and labels (n,); which m follows from epoch and step."""
        others = endless(self.outside, (epoch - 1) * len(self) + start)
        for images, labels in self.batches(epoch, start):
            yield torch.cat([images, next(others).to(images.device)]), labels


def endless(batches: Callable, start: int) -> Iterator[Tensor]:
    """Images of epoch after epoch, from batch number `start` on, counted through all epochs."""
    done, first = divmod(start, len(batches))
    while True:
        done += 1
        yield from (images for images, _ in batches(done, first))
        first = 0


@dataclass(kw_only=True)
class Exposed(Run):
    """Steps on images of which there are labels for the first n only."""

    outside_weight: float

    def values(self, images: Tensor, labels: Tensor) -> Tensor:
        """(n,) whose mean the model minimises."""
        out, known = forward(self.called, images, self.where, self.precision), len(labels)
        price = self.outside_weight * unevenness(out.logits[known:]).mean()
        return self.loss(Outputs(*(part[:known] for part in out)), labels) + price


def unevenness(logits: Tensor) -> Tensor:
    """Cross-entropy against the uniform distribution, ln sum_c e^z_c - mean_c z_c.

    Args:
        logits: (N, K).

    Returns:
        (N,) in nats, >= ln K, which it is where all logits are equal.
    """
    return logits.logsumexp(dim=1) - logits.mean(dim=1)
