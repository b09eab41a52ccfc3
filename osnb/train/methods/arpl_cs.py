"""Reciprocal points with confusing samples (ARPL+CS), Chen et al. 2021, as Vaze et al. 2022 run it.

Beside the classifier train a generator G and a discriminator D. G shall please D, and make images
of which the classifier cannot tell the class; the classifier learns not to be sure of them.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.optim import Optimizer

from osnb.train import checkpoint
from osnb.train.forward import forward, image_shape
from osnb.train.loop import Run
from osnb.train.methods.osrci import halvings, with_adam


@dataclass
class Passes:
    """So many passes over the same batches as one epoch, each in an order of its own."""

    batches: Callable
    count: int

    def __len__(self) -> int:
        return self.count * len(self.batches)

    def __call__(self, epoch: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Batches of passes count (epoch - 1) + 1 to count epoch, from number `start` on."""
        steps = len(self.batches)
        for i in range(start // steps, self.count):
            yield from self.batches(self.count * (epoch - 1) + i + 1, max(start - i * steps, 0))


@dataclass(kw_only=True)
class Confusing(Run):
    """Train as `train.fit` does; an epoch is a pass with confusing samples, then a plain one.

    A step of the first pass, for N images: D learns real from generated; G minimises
    -log D(G(z)) + beta `confusion`; the model minimises its loss on the images plus beta
    `confusion` on N other generated ones. Generated images go through batch norms of their own,
    which train with the model and are not part of it.

    Attributes:
        model: with a head that fills `Outputs.slack`, such as `models.HEADS["arpl"]`.
        loss: such as `losses.arpl`.
        batches: of square images of 8, 16, 32, 64, ... px, in [0, 1] as G's are. As released by
            Vaze et al. the real ones are normalised before D sees them, so that it tells at once.
        beta: price of `confusion`; theirs is 0.1.
        gan_rate: learning rate of G and D, each Adam with betas 0.5 and 0.999.
        gan_width: a quarter of the channels of D's second layer, an eighth of G's first.
        latent: numbers that G makes an image from.

    Raises:
        ValueError: images of another shape.
    """

    beta: float
    gan_rate: float = 2e-4
    gan_width: int = 64
    latent: int = 100

    def __post_init__(self):
        channels, size = image_shape(self.batches)
        with checkpoint.seeded(self.seed, "arpl_cs"):
            made = {
                "generator": generator(channels, size, width=self.gan_width, latent=self.latent),
                "discriminator": discriminator(channels, size, width=self.gan_width),
            }
        super().__post_init__()
        self.companions = with_adam(made, self.model, rate=self.gan_rate)
        self.companions["norms"] = nn.ModuleList(copy.deepcopy(norms_of(self.model)))
        self.batches = Passes(self.batches, 2)

    def train(self):
        """The history, as of any run; the generated images' batch norms train with the model."""
        with beside(self.optimizer, self.companions["norms"].parameters()):
            self.rates = checkpoint.rates(self.optimizer)
            return super().train()

    def values(self, images: Tensor, labels: Tensor) -> Tensor:
        """(N,) whose mean the model minimises, after a step of D and one of G."""
        if self.step >= len(self.batches) // 2:
            return super().values(images, labels)
        images = images.to(self.where)
        self.deceive(self.discern(images))
        with torch.no_grad():
            generated = self.generate(len(images))
        return super().values(images, labels) + self.beta * self.confused(generated)

    def generate(self, count: int) -> Tensor:
        """New images."""
        noise = torch.randn(count, self.latent, 1, 1, device=self.where)
        return self.companions["generator"](noise)

    def discern(self, images: Tensor) -> Tensor:
        """A step of D; the generated images that it was made on."""
        generated, judge = self.generate(len(images)), self.companions["discriminator"]
        error = _says(judge(images), 1.0) + _says(judge(generated.detach()), 0.0)
        self.step_of(error, "discriminator")
        return generated

    def deceive(self, generated: Tensor) -> None:
        """A step of G, on the images that D has just seen."""
        error = _says(self.companions["discriminator"](generated), 1.0)
        error = error + self.beta * self.confused(generated)
        self.step_of(error, "generator")

    def confused(self, generated: Tensor) -> Tensor:
        """`confusion` of the model, through the generated images' own batch norms."""
        with exchanged(norms_of(self.model), self.companions["norms"]):
            return confusion(forward(self.model, generated, self.where, self.precision).slack)


@torch.no_grad()
def made(directory: Path, shape: Sequence[int], *, count: int, seed: int) -> Tensor:
    """Images (count, channels, size, size) that the generator of a finished run makes of noise.

    Raises:
        FileNotFoundError: there is no generator in the directory.
    """
    kept = (checkpoint.newest(Path(directory)) or {}).get("generator")
    if kept is None:
        raise FileNotFoundError(f"no generator in {directory}: train it with method arpl_cs first")
    latent, first = kept["0.weight"].shape[:2]
    makes = generator(*shape[:2], width=first // 8, latent=latent).eval()
    makes.load_state_dict(kept)
    return makes(torch.randn(count, latent, 1, 1, generator=torch.Generator().manual_seed(seed)))


def confusion(slack: Tensor) -> Tensor:
    """How sure a classifier is of images that it should not be sure of.

        exp(mean_x sum_c s_c log s_c),   s the softmax of the distances

    from 1 / K where all classes are equally likely to 1. The radius in slack cancels. A class of
    probability 0 adds 0, where the released formula gives NaN. Where D is large the
    distances, means over D, lie close together, and the value near 1 / K at any beta: below 0.21
    on the digits with D = 32 and K = 5.

    Args:
        slack: (N, K) distances to the points, or these less the radius.

    Returns:
        A number in [1 / K, 1].
    """
    log_s = slack.log_softmax(dim=1)
    return (log_s.exp() * log_s).sum(dim=1).mean().exp()


def generator(channels: int, size: int, *, width: int, latent: int) -> nn.Sequential:
    """The generator of Chen et al. 2021, with a layer for every doubling from 4 px on.

    Args:
        channels: of an image.
        size: edge of an image, 4 times a power of two and more than 4, in pixels.
        width: an eighth of the channels of the first layer; theirs is 64.
        latent: numbers that an image is made from; theirs is 100.

    Returns:
        Takes (N, latent, 1, 1), gives (N, channels, size, size) in [0, 1].

    Raises:
        ValueError: another edge.
    """
    wide = [8 * width // 2**i for i in range(halvings(size))]
    layers = [nn.ConvTranspose2d(latent, wide[0], 4, bias=False)]
    for ends in pairwise([*wide, channels]):
        layers += [nn.BatchNorm2d(ends[0]), nn.ReLU()]
        layers += [nn.ConvTranspose2d(*ends, 4, stride=2, padding=1, bias=False)]
    return nn.Sequential(*layers, nn.Sigmoid()).apply(_drawn)


def discriminator(channels: int, size: int, *, width: int) -> nn.Sequential:
    """The discriminator of Chen et al. 2021, with fewer layers for small images.

    Args:
        channels: of an image.
        size: as in `generator`.
        width: half the channels of the first layer; theirs is 64.

    Returns:
        Takes (N, channels, size, size), gives (N, 1), the log odds of being real.

    Raises:
        ValueError: another edge.
    """
    wide = [channels, *[2 * width * 2**i for i in range(min(halvings(size), 3))]]
    layers: list[nn.Module] = []
    for i, ends in enumerate(pairwise(wide)):
        norm = [nn.BatchNorm2d(ends[1])] if i else []
        layers += [nn.Conv2d(*ends, 4, stride=2, padding=1, bias=False), *norm, nn.LeakyReLU(0.2)]
    layers += [nn.Conv2d(wide[-1], 16 * width, 4, bias=False), nn.Sigmoid()]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16 * width, 1)]
    return nn.Sequential(*layers).apply(_drawn)


@contextmanager
def exchanged(first: Sequence[nn.Module], second: Sequence[nn.Module]) -> Iterator[None]:
    """Two rows of modules with each other's parameters and buffers, for a while."""

    def exchange() -> None:
        for a, b in zip(first, second, strict=True):
            a._parameters, b._parameters = b._parameters, a._parameters
            a._buffers, b._buffers = b._buffers, a._buffers

    exchange()
    try:
        yield
    finally:
        exchange()


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


def norms_of(model: nn.Module) -> list[nn.Module]:
    """The batch norms of a network, in the order of its layers."""
    kinds = nn.BatchNorm1d | nn.BatchNorm2d
    return [module for module in model.modules() if isinstance(module, kinds)]


def _says(log_odds: Tensor, real: float) -> Tensor:
    """Price of the discriminator's answers where all images are real, or none is."""
    return binary_cross_entropy_with_logits(log_odds, torch.full_like(log_odds, real))


def _drawn(module: nn.Module) -> None:
    """First weights, from their normal distributions."""
    if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
        nn.init.normal_(module.weight, 0, 0.02)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1, 0.02)
