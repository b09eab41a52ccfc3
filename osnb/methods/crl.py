"""Correctness ranking (CRL), Moon et al. 2020, as Kim et al. 2021 run it.

Of two samples, the one that has been right more often shall be the more confident one.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from osnb.methods.common import Companions, one_device
from osnb.train.forward import forward

CORRECTNESS = "correctness"  # the record's name in the checkpoint


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
    crl: float = 1.0,
):
    """Train as `train.fit` does, on `loss` and `crl` times `ranking`.

    A sample's partner is the next one of its batch; the last one's is the first. How often a
    sample has been right is counted from what the network said in training, after each step.

    Args:
        loss: such as `losses.softmax`.
        batches: as `datasets.batches` gives them: its `labels` are those of all N samples, and a
            copy with other `labels` gives the same images.
        crl: price of the ranking; theirs is 1.

    All else, also what it returns, is as in `train.fit`.

    Raises:
        ValueError: more devices than one, batches without `labels`, or a negative's among them.
    """
    one_device(devices)
    labels = _labels_of(batches)
    where = next(model.parameters()).device
    own = {"crl": crl, "companions": {CORRECTNESS: Record(len(labels)).to(where)}}
    plain = (model, loss, numbered(batches), optimizer, schedule, Path(directory), precision)
    run = Ranked(*plain, epochs, every, true=labels.to(where), **own)
    run.train(seed, validate, patience)
    return run.frame()


class Record(nn.Module):
    """How often each of N training samples has been right: `right` (N,) int64."""

    def __init__(self, samples: int):
        super().__init__()
        self.register_buffer("right", torch.zeros(samples, dtype=torch.int64))


@dataclass(kw_only=True)
class Ranked(Companions):
    """Steps whose labels are the samples' numbers; `true` (N,) has their classes."""

    true: Tensor
    crl: float

    def values(self, images: Tensor, labels: Tensor) -> Tensor:
        """(n,) whose mean the model minimises; then the record hears who was right."""
        true, right = self.true[labels], self.companions[CORRECTNESS].right
        out = forward(self.called, images, self.where, self.precision)
        confidence = out.logits.softmax(dim=1).max(dim=1).values
        price = ranking(confidence, right[labels], epochs=self.epochs)
        right.index_add_(0, labels, (out.logits.argmax(dim=1) == true).long())
        return self.loss(out, true) + self.crl * price


def ranking(confidence: Tensor, right: Tensor, *, epochs: int) -> Tensor:
    """Correctness ranking loss of each sample i and its partner j = i + 1, as released.

        R_i = max(0, -t (k_i - k_j) + |c_i - c_j|),   c = right / epochs
        t = -1 if c_i < c_j and k_i != k_j, or c_i = c_j and k_i > k_j;   else 1

    So of two samples that were right equally often, the difference of confidence is the price;
    Moon et al. 2020 ask nothing of such a pair.

    Args:
        confidence: (n,) k, in [0, 1]; theirs is the maximum of the softmax.
        right: (n,) int64, how often each has been right before.
        epochs: of the whole run, so that c is in [0, 1).

    Returns:
        (n,) in units of confidence, >= 0.
    """
    gap, lead = confidence - confidence.roll(-1), right - right.roll(-1)
    turned = ((lead < 0) & (gap != 0)) | ((lead == 0) & (gap > 0))
    return (torch.where(turned, gap, -gap) + lead.abs() / epochs).clamp(min=0)


def numbered(batches: Callable) -> Callable:
    """The same batches, with samples' numbers for labels."""
    copied = copy.copy(batches)
    copied.labels = torch.arange(len(batches.labels))
    return copied


def _labels_of(batches: Callable) -> Tensor:
    """All labels, of which none may be a negative's: there is no class to be right about."""
    labels = getattr(batches, "labels", None)
    if labels is None or labels.min() < 0:
        came = "none" if labels is None else labels.min().item()
        raise ValueError(f"need batches with `labels` >= 0, one per sample; got {came}")
    return labels
