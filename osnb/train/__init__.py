"""Training and prediction: a run that is killed continues and ends with the same bytes."""

from osnb.train.checkpoint import best
from osnb.train.forward import (
    PRECISIONS,
    begin,
    device,
    dropout,
    mirrored,
    odin,
    odin_steps,
    predict,
)
from osnb.train.loop import SCHEDULES, constant, cosine, fit, triangle, warm_restarts_released
