"""A class conditioned autoencoder (C2AE), Oza and Patel 2019.

Stage one trains the classifier. Stage two freezes it, and trains a decoder that is told a class to
rebuild an image from its features if told the right one, and another image if told a wrong one.
What no class lets the decoder rebuild is unknown.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Adam

from osnb.base.outputs import Outputs
from osnb.train import checkpoint
from osnb.train.forward import device, first_look, forward, image_shape
from osnb.train.loop import constant
from osnb.train.methods.osrci import Stage, generator

CLASSIFIER, DECODER = "classifier", "decoder"  # stage one's folder, and what stage two trains


def run(
    *,
    gan_epochs: int,
    gan_width: int = 64,
    gan_rate: float = 3e-4,
    latent: int = 64,
    match: float = 0.9,
    **plain: Any,
) -> "Conditioned":
    """Stage two, after stage one, whose `epochs`, `optimizer`, `schedule` and `patience` are given.

    Stage one is `train.fit`. Stage two minimises by Adam, for the decoder alone, Sec. 3.2.1:

        match |x - G(z, y)|_1 + (1 - match) |x' - G(z, y')|_1

    with z the features of x, y its class, and x' an image of another class y', drawn from the rest
    of the batch: all of them equally likely, where the paper draws y' first. The networks are not
    the paper's: z are the features of any model, and `Decoder` ends as `osrci`'s generator.

    Args:
        batches: of known samples only, square images of 8, 16, 32, ... px.
        directory: of stage two; stage one has the folder `classifier` in it, with its best.pt, and
            is skipped when done.
        gan_epochs: of stage two.
        gan_width: channels of the decoder's layer nearest to the image.
        gan_rate: learning rate of stage two, the paper's.
        latent: channels of the decoder at 4 x 4 places.
        match: price of the right class, in [0, 1], the paper's alpha; the wrong one has the rest.
        plain: what any `Run` is made with.

    Returns:
        A run whose history is that of both stages, a row per epoch, numbered on, and the column
        `stage`, 1 or 2. Stage two's rows repeat what `validate` last said of the classifier, but
        for `best`.

    Raises:
        ValueError: images of another shape.
    """
    directory, (channels, size) = Path(plain["directory"]), image_shape(plain["batches"])
    first = Stage(**plain | {"directory": directory / CLASSIFIER}, stage=1)
    first.train()
    out, _ = first_look(first.model, first.batches)
    sizes = {"channels": channels, "size": size, "width": gan_width, "latent": latent}
    sizes |= {"classes": out.logits.shape[1], "features": out.features.shape[1]}
    with checkpoint.seeded(plain["seed"], DECODER):
        decoder = Decoder(**sizes).to(first.where)
    told = ("epoch", "learning_rate", "loss", "best")
    repeated = {k: v for k, v in first.history[-1].items() if k not in told}
    plain |= {"epochs": gan_epochs, "optimizer": Adam(decoder.parameters(), lr=gan_rate)}
    plain |= {"schedule": constant, "validate": lambda _: repeated, "patience": math.inf}
    own = {"stage": 2, "before": first.history, "companions": {DECODER: decoder}, "match": match}
    return Conditioned(**plain, **own)


class Decoder(nn.Module):
    """Features and a class to an image, G(z, c) of Sec. 3.2.1, with FiLM as Perez et al. 2018.

        G(z, c) = g(gamma(l) * z + beta(l)),   l_j = 1 if j = c else -1

    gamma and beta are one layer each. g gives [0, 1].
    """

    def __init__(
        self, *, classes: int, features: int, channels: int, size: int, width: int, latent: int
    ):
        """As many classes and features; all else as `osrci.generator` and `run` take it."""
        super().__init__()
        self.made_of = {"classes": classes, "features": features, "channels": channels}
        self.made_of |= {"size": size, "width": width, "latent": latent}
        self.gamma, self.beta = nn.Linear(classes, features), nn.Linear(classes, features)
        self.grow = nn.Sequential(
            nn.Unflatten(1, (features, 1, 1)),
            nn.ConvTranspose2d(features, latent, 4),
            generator(channels, size, width=width, latent=latent),
        )

    def forward(self, features: Tensor, classes: Tensor) -> Tensor:
        """(N, channels, size, size) of features (N, D) and classes (N,) in [0, K)."""
        return self.grow(self.film(features, classes))

    def film(self, features: Tensor, classes: Tensor) -> Tensor:
        """Features (N, D) stretched and moved as the class says."""
        every = torch.arange(self.gamma.in_features, device=classes.device)
        condition = torch.where(classes[:, None] == every, 1.0, -1.0)
        return self.gamma(condition) * features + self.beta(condition)

    def get_extra_state(self) -> dict:
        """What it takes to make this decoder again, kept with its weights."""
        return self.made_of

    def set_extra_state(self, state: dict) -> None:
        """Nothing: the weights fit or they do not."""


@dataclass(kw_only=True)
class Conditioned(Stage):
    """Stage two: steps of the decoder behind a frozen classifier."""

    match: float

    def values(self, images: Tensor, labels: Tensor) -> Tensor:
        """(N,) whose mean the decoder minimises."""
        images, decoder = images.to(self.where), self.companions[DECODER]
        self.model.eval()  # the loop has put it in training mode; the decoder is in it from birth
        with torch.no_grad():
            z = forward(self.model, images, self.where, self.precision).features
        other = strangers(labels)
        made = decoder(torch.cat([z, z]), torch.cat([labels, labels[other]]))
        right, wrong = error(made, torch.cat([images, images[other]])).chunk(2)
        wrong = torch.where(labels == labels[other], 0.0, wrong)  # of one class only: no stranger
        return self.match * right + (1 - self.match) * wrong


def strangers(labels: Tensor) -> Tensor:
    """(N,) int64, for every row one of another class, or any where all are of its class."""
    other = labels[:, None] != labels
    return torch.multinomial((other | ~other.any(dim=1, keepdim=True)).float(), 1)[:, 0]


def error(made: Tensor, images: Tensor) -> Tensor:
    """(N,) mean absolute difference of a number of an image, in units of the images."""
    return (made - images).abs().flatten(1).mean(dim=1)


@torch.no_grad()
def own(
    out: Outputs, *, known: int, model: nn.Module, batches: Callable, directory: Path
) -> np.ndarray:
    """k-inference, Sec. 3.3: the least error of rebuilding an image, over the classes told.

        own(x) = -min_{c < K} |x - G(z, c)|_1

    The paper accepts x, as the classifier's class, where the error is below a threshold.

    Args:
        out: features (N, D), as `train.predict` gives them for `model` and `batches`.
        known: K.
        model: says on which device the decoder works.
        batches: the images of the rows; `batches(0)` is read once.
        directory: of a finished run, which may have been another process's.

    Returns:
        (N,) float64, mean absolute difference times -1, higher for known samples.

    Raises:
        FileNotFoundError: there is no decoder in the directory.
    """
    where = device(model)
    decoder, rest, errors = trained(directory).to(where), torch.from_numpy(out.features), []
    for images, _ in batches(0):
        z, rest = rest.tensor_split([len(images)])
        z, images = z.to(where), images.to(where)
        told = [torch.full((len(z),), c, device=where) for c in range(known)]
        errors.append(torch.stack([error(decoder(z, c), images) for c in told]).amin(dim=0).cpu())
    return -torch.cat(errors).double().numpy()


def trained(directory: Path) -> Decoder:
    """The decoder of a finished run, in evaluation mode, on the CPU.

    Raises:
        FileNotFoundError: there is none.
    """
    kept = checkpoint.newest(Path(directory)) or {}
    if DECODER not in kept:
        raise FileNotFoundError(f"no decoder in {directory}: train it with method c2ae first")
    decoder = Decoder(**kept[DECODER]["_extra_state"])
    decoder.load_state_dict(kept[DECODER])
    return decoder.eval()
