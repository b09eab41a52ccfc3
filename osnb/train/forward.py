"""One batch through a network, and all batches of a test."""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from osnb.catalogue import Catalogue
from osnb.outputs import Outputs


def device() -> torch.device:
    """The GPU if there is one, else the CPU. With several processes, each has its own GPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@torch.inference_mode()
def predict(model: nn.Module, batches: Callable, *, precision: str = "float32") -> Outputs:
    """What the network says, in the order of the rows that the batches were made of.

    Args:
        model: is put in evaluation mode and stays on its device.
        batches: of `shuffle=False`; `batches(0)` is read once.
        precision: "float32", or "bfloat16": the trunk in autocast, the head in float32. Scores
            then differ in the third digit; use float32 for what is printed.

    Returns:
        `Outputs` of float32 arrays: logits (N, C), features (N, D).
    """
    with torch.inference_mode(False):  # weights laid out anew in that mode could not be trained
        model.eval().to(memory_format=torch.channels_last)
    where = next(model.parameters()).device
    parts = []
    for images, _ in batches(0):
        out = forward(model, images, where, precision)
        parts.append([part.float().cpu().numpy() for part in (out.logits, out.features)])
    return Outputs(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def forward(model: nn.Module, images: torch.Tensor, where: torch.device, precision: str) -> Outputs:
    """The outputs of one batch, as float32 tensors on `where`; channels last is the fast layout."""
    layout = torch.channels_last if images.ndim == 4 else torch.preserve_format
    images = images.to(where, non_blocking=True, memory_format=layout)
    low = PRECISIONS[precision]
    with torch.autocast(where.type, low or torch.bfloat16, enabled=low is not None):
        out = model(images)
    return Outputs(*(p.float() if isinstance(p, torch.Tensor) else p for p in out))


PRECISIONS = Catalogue(float32=None, bfloat16=torch.bfloat16)  # what autocast lowers to, if at all
