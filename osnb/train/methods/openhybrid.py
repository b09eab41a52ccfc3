"""A density of features beside the classifier (OpenHybrid), Zhang et al. 2020.

Classifier and flow train together on `losses.joint`, by plain steps, through the same features:
the head `models.HEADS["flow"]` gives the logits and -log p of the features, by number of a feature.
An image is unknown where p is small. No code was released; the encoders are those of `models`.
"""

import numpy as np
import torch
from torch import nn

from osnb.base.outputs import Outputs


@torch.no_grad()
def density(out: Outputs, *, model: nn.Module) -> np.ndarray:
    """log p of the features by number of a feature, (N,) float64 in nats, higher for known samples.

    Args:
        out: features (N, D), as `train.predict` gives them.
        model: with the head "flow"; is put in evaluation mode.
    """
    where = next(model.parameters()).device
    parts = torch.from_numpy(out.features).split(1024)
    slack = [model.eval().head(part.to(where))[1][:, 0].cpu() for part in parts]
    return -torch.cat(slack).double().numpy()
