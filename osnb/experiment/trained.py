"""The network of an experiment, its loss, the training, and what is measured after each epoch."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import nn
from torch.optim import Optimizer

from osnb import losses, metrics, models, scores, train
from osnb.base import workbook
from osnb.base.outputs import Outputs
from osnb.datasets import Batches
from osnb.experiment import Experiment, layers
from osnb.experiment.parts import Parts, augmented
from osnb.train import methods

SEEN = {"max_logit": scores.max_logit, "max_softmax": scores.max_softmax_log_odds}
SEEN |= {"feature_norm": scores.feature_norm}


def network(experiment: Experiment, parts: Parts) -> nn.Module:
    """The network with its first weights, drawn from the seed, on the device.

    Those of an ensemble are drawn one after the other, and come in a ModuleList.
    """
    settings = experiment.settings
    name, how = layers.named(settings["network"])
    shape = {"classes": parts.outputs, "channels": parts.images.shape[0]}
    build = models.MODELS.bind(name, **how, **shape, size=parts.images.shape[1])
    where = train.device()
    workbook.seed_all(experiment.seed)
    networks = [normalised(build(), parts).to(where) for _ in parts.train]
    for each, batches in zip(networks, parts.train, strict=True):
        train.begin(each, batches)
    return nn.ModuleList(networks) if settings["answer"]["name"] == "ensemble" else networks[0]


def normalised(network: nn.Module, parts: Parts) -> nn.Module:
    """The network, which normalises its images if the settings say so."""
    if not (norm := parts.settings.get("normalise")):
        return network
    backbone = parts.settings["network"].get("backbone", "")
    return models.normalising(network, norm, channels=parts.images.shape[0], backbone=backbone)


def criterion(experiment: Experiment, parts: Parts) -> Callable:
    """The loss: f(out, labels) -> (N,).

    Smoothed cross-entropy is a loss of its own, and the background's weights follow from the
    training images (equation 4 of Palechor et al. 2023).
    """
    name, how = layers.named(experiment.settings["loss"])
    if name == "softmax":
        return partial(losses.smoothed, **how) if how["smoothing"] else losses.softmax
    if name == "background":
        labels = torch.tensor(parts.taught["label"].to_numpy())
        how["weights"] = losses.class_weights(labels, classes=parts.outputs).to(train.device())
    return partial(losses.LOSSES[name], **how)


def fit(
    experiment: Experiment,
    network: nn.Module,
    criterion: Callable,
    parts: Parts,
    *,
    directory: Path,
    devices: int,
) -> pd.DataFrame:
    """Train every network of the run; see `Experiment.fit`.

    Members of an ensemble have first weights of their own. They share order, crops and flips of
    their images, which are the same, or drawn anew for each as Vaze et al. 2022 have it: then they
    share the seed of their trainings too, which says what else is drawn, such as dropout.
    """
    settings, directory = experiment.settings, Path(directory)
    name, how = layers.named(settings["training"])
    if name == "outlier":
        how["outside"] = parts.outside
    if name == "osrci":
        how["gan_batches"] = first_stages(experiment, parts, how.pop("gan_regime"))
    how |= {k: settings[k] for k in ("epochs", "precision")}
    how |= {"schedule": train.SCHEDULES[settings["schedule"]], "devices": devices}
    how |= {"captured": parts.captured}
    how |= {"patience": settings["watch"].get("patience") or math.inf}
    networks = members(network)
    step = 0 if settings["answer"].get("resampled") else 1
    for i, (member, batches) in enumerate(zip(networks, parts.train, strict=True)):
        folder = directory / f"member{i}" if len(networks) > 1 else directory
        folder.mkdir(exist_ok=True)
        own = {"optimizer": optimizer(settings["optimizer"], member), "directory": folder}
        own |= {"validate": validate(settings["watch"]["name"], parts, folder)}
        own["seed"] = experiment.seed + i * step
        history = train.fit(member, criterion, batches, kind=methods.METHODS[name], **own, **how)
    return history


def first_stages(experiment: Experiment, parts: Parts, regime: str) -> Batches | None:
    """OSRCI's training images, augmented and in batches as the benchmark has them under a regime.

    Of overrides, what these say of it counts too. None if there is no regime: they are as those of
    its last stage.
    """
    if not regime:
        return None
    own, changed = experiment.settings, layers.words(experiment.overrides).keys()
    settings = experiment.named(**experiment.choices | {"regime": regime}).settings
    settings |= {name: own[name] for name in ("batch_size", "augmentation") if name in changed}
    settings["reader"] = own["reader"]  # no regime has another
    how, last = settings["augmentation"], own["augmentation"]
    settings["augmentation"] = how | {k: last[k] for k in how.keys() & last.keys() & changed}
    return parts.batches(parts.taught, **augmented(settings))


def members(network: nn.Module) -> list[nn.Module]:
    """The networks of a run: an ensemble's members, or the one."""
    return list(network) if isinstance(network, nn.ModuleList) else [network]


def optimizer(settings: Mapping[str, Any], network: nn.Module) -> Optimizer:
    """AdamW, or SGD with momentum, of a network's weights."""
    name, how = layers.named(settings)
    rate = how.pop("learning_rate")
    if name == "sgd":
        return torch.optim.SGD(network.parameters(), lr=rate, **how)
    how |= {"betas": (how.pop("beta1"), how.pop("beta2")), "fused": how["fused"] or None}
    how["foreach"] = not how["fused"]  # a third less time on a CPU, the same bits
    return torch.optim.AdamW(network.parameters(), lr=rate, **how)


# What is measured after every epoch; gamma alone says which epoch is the best.


def validate(name: str, parts: Parts, directory: Path) -> Callable[[nn.Module], dict[str, float]]:
    """The measures gamma, held_out or test, as `train.fit` asks for them."""
    measure = {"gamma": gamma, "held_out": held_out, "test": partial(on_test, directory=directory)}
    return partial(measure[name], parts=parts)


def gamma(network: nn.Module, parts: Parts) -> dict[str, float]:
    """Equation 7 of Palechor et al. 2023 and accuracy, on all validation images; `best` is gamma.

    The offset is 1 / K where the largest known probability cannot fall below that, and 0 for a
    network with more outputs than known classes.
    """
    batches, known = parts.validation, parts.known
    out, labels = train.predict(network, batches), batches.rows["label"].to_numpy()
    target, is_known = scores.target(out, labels, known=known), labels >= 0
    offset = 1 / known if parts.outputs == known else 0.0
    measured = metrics.confidence(target[is_known], target[~is_known], offset=offset)
    right = scores.predicted(out, known=known) == labels
    accuracy = metrics.accuracy(right[is_known])
    return measured | {"accuracy": accuracy, "best": measured["gamma"]}


def held_out(network: nn.Module, parts: Parts) -> dict[str, float]:
    """Accuracy, mean feature norm and mean largest logit on held-out known images."""
    batches, known = parts.held_out, parts.known
    out, labels = train.predict(network, batches), batches.rows["label"].to_numpy()
    right = scores.predicted(out, known=known) == labels
    norm, top = scores.feature_norm(out, known=known), scores.max_logit(out, known=known)
    measured = {"accuracy": right, "feature_norm": norm, "max_logit": top}
    return {name: float(value.mean()) for name, value in measured.items()}


def on_test(network: nn.Module, parts: Parts, directory: Path) -> dict[str, float]:
    """`held_out`; AUROC and norms of features on all test images; mean norm of the head's rows.

    Without unknown test images there is no AUROC, and no norm of theirs; without a head, none of
    rows. Two features of every test image are kept in outputs.parquet, epoch by epoch.
    """
    out, known = train.predict(network, parts.test), parts.known
    of_known = (parts.test.rows["label"] >= 0).to_numpy()
    values = {name: rule(out, known=known) for name, rule in SEEN.items()}
    sides = {name: (x[of_known], x[~of_known]) for name, x in values.items()}
    both = not of_known.all()
    measured = {f"auroc_{n}": metrics.auroc(*x) for n, x in sides.items() if both}
    norms = dict(zip(("norm_known", "norm_unknown"), sides["feature_norm"], strict=True))
    measured |= {name: norm.mean() for name, norm in norms.items() if len(norm)}
    if out.features.shape[1] == 2:
        _keep(out, parts.test.rows, directory)
    if hasattr(network, "head"):
        rows = next(network.head.parameters()).detach()
        measured["norm_of_classes"] = rows.norm(dim=1).mean()
    return held_out(network, parts) | measured


def _keep(out: Outputs, rows: pd.DataFrame, directory: Path) -> None:
    """Add both features of every test image after this epoch to outputs.parquet."""
    path, history = directory / "outputs.parquet", directory / "history.parquet"
    done = len(pd.read_parquet(history)) if history.is_file() else 0
    before = [pd.read_parquet(path).query(f"epoch <= {done}")] if done else []
    new = rows[["sample", "role", "label"]].reset_index(drop=True)
    new[["x", "y"]] = out.features
    with workbook.writing(path) as aside:
        pd.concat([*before, new.assign(epoch=done + 1)]).to_parquet(aside, index=False)
