"""Pictures that the networks of a trained method draw."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from osnb import train
from osnb.experiment import Experiment, trained
from osnb.experiment.parts import Parts
from osnb.train import methods


@torch.no_grad()
def drawn(
    experiment: Experiment, network: nn.Module, parts: Parts, directory: Path, *, count: int
) -> dict[str, np.ndarray]:
    """See `Experiment.drawn`."""
    training, where = experiment.settings["training"], train.device()
    rows: dict[str, Tensor] = {}
    if training["name"] == "osrci":
        taught = trained.first_stages(experiment, parts, training["gan_regime"]) or parts.train[0]
        rows["training image"], _ = next(taught(1))
        rows["its counterfactual"], _ = next(methods.made(directory)(0))
    elif training["name"] == "arpl_cs":
        how = {"count": count, "seed": experiment.seed}
        rows["confusing image"] = methods.arpl_cs.made(directory, parts.images.shape, **how)
    elif training["name"] == "c2ae":
        rows["held-out image"], labels = next(parts.held_out(0))
        features = network.eval()(rows["held-out image"].to(where)).features
        decoder = methods.c2ae.trained(directory).to(where)
        rows["rebuilt, told its class"] = decoder(features, labels.to(where))
        rows["told another class"] = decoder(features, (labels.to(where) + 1) % parts.known)
    return {what: _pixels(images[:count]) for what, images in rows.items()}


def _pixels(images: Tensor) -> np.ndarray:
    """(N, C, S, S) uint8 of images in [0, 1]."""
    return (images.clamp(0, 1) * 255).round().to(torch.uint8).cpu().numpy()
