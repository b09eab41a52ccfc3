"""What methods with companions share: networks and optimizers that train beside the model.

A stage of a method is a `Companions` whose `values` says what its step minimises; a step of a
companion (a discriminator's, say) is made inside of it, before the model's gradients are zeroed.
Several stages are several runs, each with a directory of its own.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from osnb import repro
from osnb.outputs import Outputs
from osnb.train.loop import Run


@dataclass
class Companions(Run):
    """A run whose checkpoints hold more than model and optimizer.

    Attributes:
        companions: networks and optimizers by name; networks are where the model is.
    """

    companions: dict[str, nn.Module | Optimizer] = field(default_factory=dict)

    def parts(self) -> dict[str, nn.Module | Optimizer]:
        """What has a state to keep, by its name in the checkpoint."""
        return super().parts() | self.companions


@dataclass
class Passes:
    """So many passes over the same batches as one epoch, each in an order of its own."""

    batches: Callable
    count: int

    def __len__(self) -> int:
        return self.count * len(self.batches)

    def __call__(self, epoch: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Batches of passes count (epoch - 1) + 1 to count epoch, from number `start` on."""
        each = len(self.batches)
        for i in range(start // each, self.count):
            yield from self.batches(self.count * (epoch - 1) + i + 1, max(start - i * each, 0))


def one_device(devices: int) -> None:
    """Refuse several devices: companions' gradients are not averaged over processes.

    Raises:
        ValueError: more devices than one.
    """
    if devices != 1:
        raise ValueError(f"a method with companions trains on 1 device; got devices={devices}")


def image_shape(batches: Callable) -> tuple[int, int]:
    """(channels, edge) of the images, from the first batch.

    Raises:
        ValueError: the images are not square.
    """
    images, _ = next(iter(batches(1, 0)))
    channels, height, width = images.shape[1:]
    if height != width:
        raise ValueError(f"need square images; got {height} x {width}")
    return channels, width


@contextmanager
def seeded(seed: int, part: str) -> Iterator[None]:
    """Random numbers that follow from (seed, part), such as a companion's first weights.

    torch's generators are afterwards where they were.
    """
    with torch.random.fork_rng():
        torch.manual_seed(int(repro.digest(f"{seed} {part}")[:15], 16))
        yield


@contextmanager
def beside(optimizer: Optimizer, parameters: Iterable[nn.Parameter]) -> Iterator[None]:
    """Let an optimizer move more parameters, with the settings of its first group, for a while."""
    added = list(parameters)
    settings = {k: v for k, v in optimizer.param_groups[0].items() if not k.startswith("param")}
    before = len(optimizer.param_groups)
    if added:
        optimizer.add_param_group({**settings, "params": added})
    try:
        yield
    finally:
        optimizer.param_groups[:] = optimizer.param_groups[:before]
        for parameter in added:
            optimizer.state.pop(parameter, None)


def nothing(_: Outputs) -> dict[str, np.ndarray]:
    """No column: the rules of `scores` say all that a network of this method has to say."""
    return {}
