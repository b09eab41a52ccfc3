"""A small network trained on the digits, for tests of scoring rules; batches for all trainings."""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch

from osnb import train
from osnb.base.outputs import Outputs
from osnb.datasets import READERS
from osnb.models import Network
from osnb.protocols.vaze import digit_classes

KNOWN = 5  # digits 0 to 4; 5 and 6 are negative, 7 to 9 unknown


class Shuffled:
    """Batches whose order follows from the epoch; `stop` interrupts after so many.

    Args:
        turn: of the seeds' sign, for another order than that of others.
    """

    def __init__(self, images, labels, size, *, stop=math.inf, turn=1):
        self.images, self.labels, self.size = images, labels, size
        self.left, self.turn = stop, turn

    def __len__(self):
        return -(-len(self.labels) // self.size)

    def __call__(self, epoch, start=0):
        seeded = torch.Generator().manual_seed(self.turn * epoch)
        order = torch.randperm(len(self.labels), generator=seeded)
        for rows in order.split(self.size)[start:]:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
            yield self.images[rows], self.labels[rows]


def weights(model):
    """All of them, as one row."""
    return torch.cat([p.detach().flatten() for p in model.parameters()])


class Trained(NamedTuple):
    """A network and what it says, half of the digits being for training."""

    model: Network
    train: Outputs
    labels: np.ndarray
    test: Outputs
    tested: np.ndarray
    batches: Any


@cache
def digits(columns=KNOWN, seed=0):
    """60 steps of Adam on all known training digits; with a column more, on the negative too."""
    images = READERS["digits"]()
    label = digit_classes().set_index("wnid")["label"][images.rows["wnid"]].to_numpy()
    pixels = images.read(np.arange(len(label))).float() / 255
    training = (images.rows["split"] == "train").to_numpy()
    of = training & (label >= (0 if columns == KNOWN else -1))
    model = network(columns, seed)
    target = torch.from_numpy(np.where(label < 0, KNOWN, label))[of]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(pixels[of]).logits, target).backward()
        optimizer.step()

    def batches(_):
        return [(part, None) for part in pixels[~training].split(200)]

    fitted = train.predict(model, lambda _: [(pixels[of], None)])
    said = train.predict(model, batches)
    return Trained(model, fitted, label[of], said, label[~training], batches)


def network(columns, seed=0):
    """8 x 8 pixels, batch norm and dropout: what must be still in a test and what may not."""
    torch.manual_seed(seed)
    nn = torch.nn
    trunk = [nn.Flatten(), nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2)]
    return Network(nn.Sequential(*trunk), nn.Linear(32, columns))
