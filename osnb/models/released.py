"""Weights that authors have published, in our networks."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from osnb.models.network import Network
from osnb.models.small import vgg32

NORM = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
UNUSED = {f"bn10.{part}": (128,) if part != NORM[-1] else () for part in NORM}  # never called


def released_vgg32(weights: Path | Mapping[str, Tensor], *, classes: int) -> Network:
    """`vgg32` with weights in the form that Vaze et al. 2022 released theirs in.

    Args:
        weights: their file or its state dict: conv1 to conv9, bn1 to bn9 and fc, behind
            "module." or not, and a tenth batch norm which their network never calls.
        classes: K, rows of fc.

    Raises:
        ValueError: names or shapes are others than those of such a file.
    """
    if isinstance(weights, Path):
        weights = torch.load(weights, map_location="cpu", weights_only=True)
    given = {key.removeprefix("module."): value for key, value in weights.items()}
    network = vgg32(classes=classes)
    ours = {_theirs(key): key for key in network.state_dict()}
    needed = {name: tuple(network.state_dict()[key].shape) for name, key in ours.items()} | UNUSED
    came = {name: tuple(value.shape) for name, value in given.items()}
    if came != needed:
        wrong = sorted(needed.items() ^ came.items())
        raise ValueError(
            f"need the {len(needed)} tensors of vgg32 with {classes} classes; got {len(came)}, and "
            f"on one side only: {', '.join(f'{name} {shape}' for name, shape in wrong[:6])}"
        )
    network.load_state_dict({key: given[name] for name, key in ours.items()})
    return network


def _theirs(key: str) -> str:
    """Their name of one of our tensors: trunk.5.1.bias, behind two dropouts, is bn4.bias."""
    if key.startswith("head."):
        return key.replace("head.", "fc.")
    _, layer, part, what = key.split(".")
    number = int(layer) - int(layer) // 4
    return f"{('conv', 'bn')[int(part)]}{number}.{what}"
