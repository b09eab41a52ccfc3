"""AugMix with its Jensen-Shannon term, Hendrycks et al. 2020, as Kim et al. 2021 run it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from osnb.augment import augmix
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
    severity: float,
    jsd_weight: float = 12.0,
):
    """Train as `train.fit` does, on `loss` and `jsd_weight` times `divergence` of three views.

    The views of an image are itself, as the batch has it after crop and flip, and two draws of
    `augment.augmix` of it. They go through the network in one pass, and share its batch norms;
    `loss` is of the first view alone.

    Args:
        loss: such as `losses.softmax`.
        batches: of images in [0, 1], 1 or 3 channels; the views are made of their 256 levels.
        severity: of `augment.augmix`; theirs is 3 at 32 px, 1 for photographs.
        jsd_weight: price of the second term; theirs is 12.

    All else, also what it returns, is as in `train.fit`.

    Raises:
        ValueError: more devices than one, images outside of [0, 1] in the first batch, or what
            `augment.augmix` refuses.
    """
    one_device(devices)
    _pixels(batches)
    plain = (model, loss, batches, optimizer, schedule, Path(directory), precision, epochs, every)
    run = Mixed(*plain, severity=severity, jsd_weight=jsd_weight)
    run.train(seed, validate, patience)
    return run.frame()


@dataclass(kw_only=True)
class Mixed(Run):
    """Steps on three views; settings as in `fit`."""

    severity: float
    jsd_weight: float

    def values(self, images: Tensor, labels: Tensor) -> Tensor:
        """(N,) whose mean the model minimises."""
        views = torch.cat([images, *(view(images, self.severity) for _ in range(2))])
        out = forward(self.called, views, self.where, self.precision)
        price = divergence(out.logits.view(3, len(labels), -1))
        clean = Outputs(*(part[: len(labels)] for part in out))
        return self.loss(clean, labels) + self.jsd_weight * price


def view(images: Tensor, severity: float) -> Tensor:
    """One draw of `augment.augmix` of each image, from torch's generator, which checkpoints hold.

    Args:
        images: (N, 1 or 3, H, W) in [0, 1].
        severity: in [0.1, 10].

    Returns:
        (N, 1 or 3, H, W) float32 in [0, 1].
    """
    levels = (images * 255).round().to(torch.uint8)
    return augmix(levels, severity=severity, generator=torch.default_generator) / 255


def divergence(logits: Tensor) -> Tensor:
    """Jensen-Shannon divergence of what the network says about V views of an image.

        D(x) = (1 / V) sum_v KL(p_v || M),   M = clamp((1 / V) sum_v p_v, 1e-7, 1)

    Args:
        logits: (V, N, K).

    Returns:
        (N,) in nats, in [0, ln V] but for the clamp.
    """
    log_p = logits.log_softmax(dim=2)
    p = log_p.exp()
    mixture = p.mean(dim=0).clamp(1e-7, 1).log()
    return (p * (log_p - mixture)).sum(dim=2).mean(dim=0)


def _pixels(batches: Callable) -> None:
    """Refuse images that are not in [0, 1], such as normalised ones."""
    images, _ = next(iter(batches(1, 0)))
    low, high = images.min().item(), images.max().item()
    if low < 0 or high > 1:
        raise ValueError(f"need images in [0, 1]; got {low:g} to {high:g}")
