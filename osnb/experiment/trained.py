"""The network of an experiment, its loss, and the training."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch
from torch import nn
from torch.optim import Optimizer

from osnb import losses, models, train
from osnb.base import workbook
from osnb.experiment import watched
from osnb.experiment.parts import Parts
from osnb.train import methods

if TYPE_CHECKING:
    from osnb.experiment.named import Experiment


def network(experiment: "Experiment", parts: Parts) -> nn.Module:
    """The network with its first weights, drawn from the seed, on the device.

    Those of an ensemble are drawn one after the other, and come in a ModuleList.
    """
    settings = experiment.settings
    name, how = _named(settings["network"])
    shape = {"classes": parts.outputs, "channels": parts.images.shape[0]}
    make = models.MODELS.bind(name, **how, **shape, size=parts.images.shape[1])
    workbook.seed_all(experiment.seed)
    if settings["answer"]["name"] != "ensemble":
        return make().to(train.device())
    return nn.ModuleList(make().to(train.device()) for _ in parts.train)


def criterion(experiment: "Experiment", parts: Parts) -> Callable:
    """The loss: f(out, labels) -> (N,).

    Smoothed cross-entropy is a loss of its own, and the background's weights follow from the
    training images (equation 4 of Palechor et al. 2023).
    """
    name, how = _named(experiment.settings["loss"])
    if name == "softmax" and not how.pop("smoothing"):
        return losses.softmax
    if name == "softmax":
        return partial(losses.smoothed, **_named(experiment.settings["loss"])[1])
    if name == "background":
        labels = torch.tensor(parts.taught["label"].to_numpy())
        how["weights"] = losses.class_weights(labels, classes=parts.outputs)
    return partial(losses.LOSSES[name], **how)


def fit(
    experiment: "Experiment",
    network: nn.Module,
    criterion: Callable,
    parts: Parts,
    *,
    directory: Path,
    devices: int,
) -> pd.DataFrame:
    """Train every network of the run; see `Experiment.fit`.

    Members of an ensemble that see images drawn anew share the seed of their trainings, as Vaze et
    al. 2022 have it; the others have a seed each.
    """
    settings, directory = experiment.settings, Path(directory)
    name, how = _named(settings["training"])
    if name == "outlier":
        how["outside"] = parts.outside
    how |= {k: settings[k] for k in ("epochs", "precision")}
    how |= {"schedule": train.SCHEDULES[settings["schedule"]], "devices": devices}
    how |= {"patience": settings["watch"].get("patience") or math.inf}
    networks = members(network)
    step = 0 if settings["answer"].get("resampled") else 1
    for i, (member, batches) in enumerate(zip(networks, parts.train, strict=True)):
        folder = directory / f"member{i}" if len(networks) > 1 else directory
        folder.mkdir(exist_ok=True)
        own = {"optimizer": optimizer(settings["optimizer"], member), "directory": folder}
        own |= {"validate": watched.validate(settings["watch"]["name"], parts, folder)}
        own["seed"] = experiment.seed + i * step
        history = train.fit(member, criterion, batches, kind=methods.METHODS[name], **own, **how)
    return history


def members(network: nn.Module) -> list[nn.Module]:
    """The networks of a run: an ensemble's members, or the one."""
    return list(network) if isinstance(network, nn.ModuleList) else [network]


def optimizer(settings: Mapping[str, Any], network: nn.Module) -> Optimizer:
    """AdamW, or SGD with momentum, of a network's weights."""
    name, how = _named(settings)
    rate = how.pop("learning_rate")
    if name == "sgd":
        return torch.optim.SGD(network.parameters(), lr=rate, **how)
    betas = how.pop("beta1"), how.pop("beta2")
    fused = {"fused": True} if how.pop("fused") else {}
    return torch.optim.AdamW(network.parameters(), lr=rate, betas=betas, **how, **fused)


def _named(part: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    return part["name"], {k: v for k, v in part.items() if k != "name"}
