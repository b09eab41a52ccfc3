"""Counterfactual images as an unknown class (OSRCI), Neal et al. 2018, as Vaze et al. 2022 cite it.

Stage one trains an autoencoder with a discriminator beside the classifier. Stage two moves images'
latent numbers until the classifier knows no class. Stage three trains on those images as class K.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, softplus
from torch.optim import Adam, Optimizer

from osnb.base import workbook
from osnb.base.labels import NEGATIVE
from osnb.train import checkpoint
from osnb.train.forward import device, first_look, forward, image_shape
from osnb.train.loop import Run, constant

GAN, COUNTERFACTUALS = "gan", "counterfactuals"  # folders of the first two stages
GAN_STAGE = {"schedule": constant, "patience": math.inf}  # what stage one has for its own
BETAS = (0.5, 0.999)  # of every Adam beside a discriminator


def run(
    *,
    gan_epochs: int,
    generated: int,
    gan_rate: float = 1e-4,
    latent: int = 64,
    gan_width: int = 64,
    cf_steps: int = 100,
    cf_speed: float = 0.1,
    cf_distance: float = 1.0,
    gan_batches: Callable | None = None,
    **plain: Any,
) -> "Tuned":
    """Stage three, after the first two; `epochs`, `optimizer`, `schedule`, `patience` are its own.

    The model has K + 1 outputs. Softmax over them is softmax over the K numbers z_c - z_K and a
    zero, which is the implicit zero logit of the paper: stage one prices z_c - z_K by
    `one_against_all`, stage two lowers -log p_K, and stage three starts from stage one's weights.
    Scores drop the last column after the softmax, as with `losses.background`; the paper's is
    max_{c < K} p_c - p_K. Neal et al. train stage three for 3 epochs with Adam at 1e-5.

    Args:
        model: with K + 1 outputs, the last one for counterfactuals.
        loss: of stage three, for labels up to K: `losses.softmax`, as theirs, or `smoothed`.
        batches: of square images of 8, 16, 32, ... px.
        directory: of stage three; stages one and two have folders in it, and are skipped when done.
        gan_epochs: of stage one; theirs is 30.
        generated: how many counterfactuals; theirs is 3,200.
        gan_rate: learning rate of all in stage one, each Adam with betas 0.5 and 0.999.
        latent: channels of the latent numbers, which have 4 x 4 places.
        gan_width: channels of the companions' layer nearest to the image.
        cf_steps: of the search for a counterfactual.
        cf_speed: length of a step, in gradients.
        cf_distance: price of the squared distance to where the search began.
        gan_batches: the same images for stages one and two, such as with less augmentation than
            `batches` (Vaze et al. 2022, D.2); None: `batches`.
        plain: what any `Run` is made with.

    Returns:
        A run whose history is that of stages one and three, a row per epoch, numbered on from
        stage to stage, and the column `stage`, 1 or 3. `best` is stage three's alone.

    Raises:
        ValueError: images of another shape, or a label that is not below K in the first batch.
    """
    model, directory = plain["model"], Path(plain["directory"])
    out, labels = first_look(model, plain["batches"])
    if labels.max() >= (columns := out.logits.shape[1]) - 1:
        raise ValueError(f"need labels below K of K + 1 = {columns} outputs; got {labels.max()}")
    ended = checkpoint.newest(directory) if (directory / GAN).is_dir() else None
    if ended and checkpoint.alike(*map(checkpoint.sums, (ended["model"], model.state_dict()))):
        model.load_state_dict(checkpoint.newest(directory / GAN)["model"])  # called once more
    own = {"gan_rate": gan_rate, "gan_width": gan_width, "latent": latent, "epochs": gan_epochs}
    own |= {"optimizer": adam(model, rate=gan_rate), "batches": gan_batches or plain["batches"]}
    validate = plain["validate"]  # no epoch of stage one is chosen
    own["validate"] = lambda x: {k: v for k, v in validate(x).items() if k != "best"}
    first = Gan(**plain | GAN_STAGE | own | {"directory": directory / GAN})
    first.train()
    with checkpoint.seeded(plain["seed"], COUNTERFACTUALS):
        images = first.searched(generated, steps=cf_steps, speed=cf_speed, distance=cf_distance)
    return Tuned(**plain, stage=3, before=first.history, generated=images)


@dataclass(kw_only=True)
class Stage(Run):
    """A run that is one stage of several, whose history follows the history of those before.

    Attributes:
        stage: its number.
        before: rows of stage 1, if this is a later one.
    """

    stage: int
    before: Sequence[dict[str, float]] = ()

    def frame(self):
        """The history of all stages so far, written where the last stage has it."""
        import pandas as pd

        rows = [row | {"stage": 1} for row in self.before]
        rows += [row | {"stage": self.stage} for row in self.history]
        history = pd.DataFrame(rows)
        history["epoch"] = range(1, len(rows) + 1)
        folder = self.directory.parent if self.stage == 1 else self.directory
        with workbook.writing(folder / "history.parquet") as aside:
            history.to_parquet(aside, index=False)
        return history


@dataclass(kw_only=True)
class Gan(Stage):
    """Stage one: steps of discriminator, generator and autoencoder, then one of the classifier."""

    stage: int = 1
    gan_rate: float
    gan_width: int
    latent: int

    def __post_init__(self):
        super().__post_init__()
        shape, sizes = image_shape(self.batches), {"width": self.gan_width}
        with checkpoint.seeded(self.seed, "osrci"):
            parts = {
                "encoder": encoder(*shape, **sizes, latent=self.latent),
                "generator": generator(*shape, **sizes, latent=self.latent),
                "discriminator": discriminator(*shape, **sizes),
            }
        self.companions = with_adam(parts, self.model, rate=self.gan_rate)

    def values(self, images: Tensor, labels: Tensor) -> Tensor:
        """(N,) whose mean the model minimises, after the companions' steps."""
        images = images.to(self.where)
        self.discern(images)
        self.deceive(images)
        self.rebuild(images)
        out = forward(self.called, images, self.where, self.precision)
        return one_against_all(out.logits, labels)

    def generate(self, z: Tensor) -> Tensor:
        """Images (N, channels, size, size) of z (N, latent, 4, 4)."""
        return self.companions["generator"](z)

    def encode(self, images: Tensor) -> Tensor:
        """(N, latent, 4, 4), of length 1 at each place."""
        return normalize(self.companions["encoder"](images), dim=1)

    def discern(self, images: Tensor) -> None:
        """A step of D on real images and images of noise."""
        judge = self.companions["discriminator"]
        noise = torch.randn(len(images), self.latent, 4, 4, device=self.where)
        with torch.no_grad():
            made = self.generate(normalize(noise, dim=1))
        error = softplus(judge(made)).mean() + 0.01 * softplus(-judge(images)).mean()
        self.step_of(error + 10 * steepness(judge, images, made), "discriminator")

    def deceive(self, images: Tensor) -> None:
        """A step of G: D should take rebuilt images for real."""
        made = self.generate(self.encode(images))
        self.step_of(-0.01 * self.companions["discriminator"](made).mean(), "generator")

    def rebuild(self, images: Tensor) -> None:
        """A step of E and G towards images that are rebuilt to the pixel."""
        made = self.generate(self.encode(images))
        self.step_of((made - images).abs().mean(), "encoder", "generator")

    def searched(self, count: int, **search: float) -> Tensor:
        """Stage two: counterfactuals of the first `count` images, kept in a file of their own."""
        folder = self.directory.parent / COUNTERFACTUALS
        folder.mkdir(exist_ok=True)
        networks = self.model, *map(self.companions.get, ("encoder", "generator"))
        of = torch.cat([checkpoint.sums(part.state_dict()) for part in networks])
        kept, asked = checkpoint.newest(folder) or {}, search | {"count": count}
        same = kept.get("asked") == asked and checkpoint.alike(kept["of"], of)
        if not same:  # none yet, or of other networks, or found by another search
            if "asked" in kept:  # stage three was trained on these
                checkpoint.remove(folder.parent)
            for part in networks:
                part.eval()
            real = (batch.to(self.where) for batch in _first(self.batches, count))
            how = search | {"encode": self.encode, "generate": self.generate, "model": self.model}
            made = torch.cat([counterfactuals(x, **how) for x in real]).cpu()
            kept = {"images": made, "of": of, "asked": asked}
            checkpoint.keep(kept, folder)
        return kept["images"].to(self.where)


@dataclass(kw_only=True)
class Tuned(Stage):
    """Stage three: for every image of a batch a counterfactual, drawn with replacement."""

    generated: Tensor

    def values(self, images: Tensor, labels: Tensor) -> Tensor:
        """(N,), an image's loss and a counterfactual's, from one pass through the batch norms."""
        rows = torch.randint(len(self.generated), labels.shape)
        both = torch.cat([images.to(self.where), self.generated[rows.to(self.where)]])
        out = forward(self.called, both, self.where, self.precision)
        wanted = torch.full_like(labels, out.logits.shape[1] - 1)
        return self.loss(out, torch.cat([labels, wanted])).view(2, -1).sum(dim=0)


def one_against_all(logits: Tensor, labels: Tensor) -> Tensor:
    """K separate decisions, each against the last column, as Neal et al. 2018 release it.

        J(x) = mean_{c < K} softplus(-t_c (z_c - z_K)),   t_c = 1 if c = y else -1

    Args:
        logits: (N, K + 1).
        labels: (N,) int64 in [0, K), or NEGATIVE, which is none of the K.

    Returns:
        (N,) in nats, >= 0.
    """
    margin = logits[:, :-1] - logits[:, -1:]
    true = labels[:, None] == torch.arange(margin.shape[1], device=labels.device)
    return softplus(torch.where(true, -margin, margin)).mean(dim=1)


def counterfactuals(
    images: Tensor,
    encode: Callable[[Tensor], Tensor],
    generate: Callable[[Tensor], Tensor],
    model: nn.Module,
    *,
    steps: int,
    speed: float,
    distance: float,
) -> Tensor:
    """Images near the given ones that belong to no known class, Neal et al. 2018, Sec. 3.2.

    Gradient steps on z, of length 1 at each of its 16 places, from z_0 = encode(x) down

        -log p_K(generate(z)) + distance |z - z_0|^2

    In the released code four things differ, by mistake it seems: the distance is a single number
    of the whole batch's mean z; the gradient is multiplied by the loss; the networks are in
    training mode; z has length 1 in each of 4 parts, which are not places. (Their mean over
    places may have been meant as the distance; here all of z counts, as in the paper.)

    Args:
        images: (N, channels, size, size).
        encode: images to z (N, D, 4, 4).
        generate: z to images.
        model: its last logit is class K's. It and the two others are in evaluation mode, so
            that an image does not depend on its neighbours.
        steps: of the search; 0 gives the images rebuilt.
        speed: length of a step, in gradients.
        distance: price of the distance.

    Returns:
        (N, channels, size, size), without gradient.
    """
    with torch.no_grad():
        z = start = encode(images)
    for _ in range(steps):
        z = z.detach().requires_grad_()
        unknown = model(generate(z)).logits.log_softmax(dim=1)[:, -1]
        price = distance * (z - start).square().flatten(1).sum(dim=1) - unknown
        (slope,) = torch.autograd.grad(price.sum(), z)
        z = normalize(z - speed * slope, dim=1)
    with torch.no_grad():
        return generate(z)


def endless(batches: Callable, start: int) -> Iterator[Tensor]:
    """Images of epoch after epoch, from batch number `start` on, counted through all epochs."""
    done, first = divmod(start, len(batches))
    while True:
        done += 1
        yield from (images for images, _ in batches(done, first))
        first = 0


def _first(batches: Callable, count: int) -> Iterator[Tensor]:
    """Images of the first batches, `count` in all, from as many epochs as that takes."""
    for images in endless(batches, 0):
        yield images[:count]
        count -= len(images)
        if count <= 0:
            return


def made(directory: Path) -> Callable[[int], Iterator[tuple[Tensor, Tensor]]]:
    """Batches of the generated images that a finished run trained on, for `train.predict`.

    Raises:
        FileNotFoundError: the run has made none.
    """
    kept = checkpoint.newest(Path(directory) / COUNTERFACTUALS)
    if kept is None:
        raise FileNotFoundError(f"no generated images in {Path(directory) / COUNTERFACTUALS}")
    images = kept["images"]
    return lambda _: ((x, torch.full((len(x),), NEGATIVE)) for x in images.split(256))


# Networks, own and smaller than those of Neal et al. 2018, whose layers follow 32 px.


def generator(channels: int, size: int, *, width: int, latent: int) -> nn.Sequential:
    """From (N, latent, 4, 4) to images in [0, 1], a layer for every doubling of the edge.

    Arguments and errors are those of `encoder`.
    """
    wide = [latent, *_widths(size, width)[::-1]]
    layers: list[nn.Module] = []
    for ends in pairwise(wide):
        layers += [nn.ConvTranspose2d(*ends, 4, stride=2, padding=1, bias=False)]
        layers += [nn.BatchNorm2d(ends[1]), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Conv2d(wide[-1], channels, 3, padding=1), nn.Sigmoid())


def encoder(channels: int, size: int, *, width: int, latent: int) -> nn.Sequential:
    """From images to (N, latent, 4, 4), a layer for every halving of the edge.

    Args:
        channels: of an image.
        size: edge of an image, 8, 16, 32, ... px.
        width: channels of the layer nearest to the image; they double to 4 times that at most.
        latent: channels of the latent numbers.

    Raises:
        ValueError: another edge.
    """
    return nn.Sequential(
        *_shrinking(channels, size, width, nn.BatchNorm2d),
        nn.Conv2d(_widths(size, width)[-1], latent, 3, padding=1),
    )


def discriminator(channels: int, size: int, *, width: int) -> nn.Sequential:
    """From images to (N, 1), log odds of being real; without norms, for a penalty by image."""
    last = nn.Linear(16 * _widths(size, width)[-1], 1)
    return nn.Sequential(*_shrinking(channels, size, width, None), nn.Flatten(), last)


def _shrinking(
    channels: int, size: int, width: int, norm: Callable[[int], nn.Module] | None
) -> Iterator[nn.Module]:
    for ends in pairwise([channels, *_widths(size, width)]):
        yield nn.Conv2d(*ends, 4, stride=2, padding=1)
        if norm:
            yield norm(ends[1])
        yield nn.LeakyReLU(0.2)


def _widths(size: int, width: int) -> list[int]:
    """Channels after each halving of the edge, down to 4 places."""
    return [width * min(2**i, 4) for i in range(halvings(size))]


def halvings(size: int) -> int:
    """How often an edge is halved down to 4 pixels, at least once.

    Raises:
        ValueError: the edge is not 8, 16, 32, ... pixels.
    """
    count = size.bit_length() - 3
    if count < 1 or size != 4 << count:
        raise ValueError(f"need images of 8, 16, 32, 64, ... px; got {size}")
    return count


def steepness(judge: nn.Module, real: Tensor, made: Tensor) -> Tensor:
    """Gradient penalty of Gulrajani et al. 2017: E (|grad D(x)| - 1)^2 between real and made."""
    share = torch.rand(len(real), 1, 1, 1, device=real.device)
    between = (share * real + (1 - share) * made).requires_grad_()
    (slope,) = torch.autograd.grad(judge(between).sum(), between, create_graph=True)
    return (slope.flatten(1).norm(dim=1) - 1).square().mean()


def with_adam(
    parts: dict[str, nn.Module], model: nn.Module, *, rate: float
) -> dict[str, nn.Module | Optimizer]:
    """The networks, moved to where the model is, and an `adam` of each as NAME_optimizer."""
    where = device(model)
    moved = {name: part.to(where) for name, part in parts.items()}
    return moved | {f"{name}_optimizer": adam(part, rate=rate) for name, part in moved.items()}


def adam(part: nn.Module, *, rate: float) -> Adam:
    """Adam with the momentum that is usual beside a discriminator."""
    return Adam(part.parameters(), lr=rate, betas=BETAS)
