"""Training and prediction: a run that is killed continues and ends with the same bytes."""

from osnb.train.checkpoint import best
from osnb.train.forward import PRECISIONS, device, predict
from osnb.train.loop import fit
from osnb.train.schedules import SCHEDULES, constant, cosine, triangle

__all__ = [
    "PRECISIONS",
    "SCHEDULES",
    "best",
    "constant",
    "cosine",
    "device",
    "fit",
    "predict",
    "triangle",
]
