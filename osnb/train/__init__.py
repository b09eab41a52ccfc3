"""Training and prediction: a run that is killed continues and ends with the same bytes."""

from osnb.train.checkpoint import best
from osnb.train.forward import PRECISIONS, device, predict
from osnb.train.loop import fit
from osnb.train.schedules import (
    SCHEDULES,
    constant,
    cosine,
    restarts,
    step,
    triangle,
    warm_restarts,
    warm_restarts_released,
)
from osnb.train.variants import dropout, odin

__all__ = [
    "PRECISIONS",
    "SCHEDULES",
    "best",
    "constant",
    "cosine",
    "device",
    "dropout",
    "fit",
    "odin",
    "predict",
    "restarts",
    "step",
    "triangle",
    "warm_restarts",
    "warm_restarts_released",
]
