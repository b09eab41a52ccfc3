"""Schedules: ``f(done) -> factor`` on the learning rate, done being the share of steps done."""

import math

from osnb.catalogue import Catalogue


def constant(_: float) -> float:
    """The learning rate as given, all the way."""
    return 1.0


def cosine(done: float) -> float:
    """Half a cosine from 1 to 0 over the run."""
    return (1 + math.cos(math.pi * done)) / 2


def triangle(done: float) -> float:
    """Up from 0.1 to 1 over the first fifth of the run, then in a straight line towards 0."""
    return 0.1 + 4.5 * done if done < 0.2 else (1 - done) / 0.8


def step(done: float) -> float:
    """Ten times less from 30, 60 and 90 percent of the run on: Chen et al. 2021, Table 5."""
    return 0.1 ** sum(done >= edge for edge in (0.3, 0.6, 0.9))


def restarts(done: float) -> float:
    """`cosine` three times: Table 5 of Vaze et al. 2022, rows with two restarts, no warm-up."""
    return cosine(3 * done % 1)


def warm_restarts(done: float) -> float:
    """`restarts` with the warm-up that Vaze et al. 2022 describe (Sec. D.2).

    From 0 in a straight line to 1 in 20 of 600 epochs, then half a cosine to epoch 200. The
    very first step is at 0.
    """
    warm = 20 / 600
    if done < 1 / 3:
        return done / warm if done < warm else cosine((done - warm) / (1 / 3 - warm))
    return restarts(done)


def warm_restarts_released(done: float) -> float:
    """`warm_restarts` as the code of Vaze et al. 2022 ran it.

    Constant through each 600th of the run, and late by one of them: the scheduler steps after
    the epoch. A floor of 1/1000; 10 epochs of warm-up in a straight line from there to the
    cosine's value, .994; the restarts at epochs 201 and 401, counted from 0.
    """
    epoch = math.floor(600 * done + 1e-6)  # 600 (3 / 600) may lie just below 3
    late = max(epoch, 10 + 1) - 1
    value = 0.001 + 0.999 * cosine(late % 200 / 200)
    return 0.001 + (value - 0.001) * min(epoch, 10) / 10


def steps_60_80(done: float) -> float:
    """Ten times less from 60 and 80 percent of the run on: epochs 120 and 160 of 200.

    As Kim et al. 2021 release it for CIFAR. Their scheduler steps once per epoch; where the edges
    fall between epochs, as in 200 of them, it is the same.
    """
    return 0.1 ** sum(done >= edge for edge in (0.6, 0.8))


def steps_33_67(done: float) -> float:
    """Ten times less from a third and two thirds of the run on: epochs 30 and 60 of 90.

    As Kim et al. 2021 release it for ImageNet; see `steps_60_80`.
    """
    return 0.1 ** sum(done >= edge for edge in (1 / 3, 2 / 3))


SCHEDULES = Catalogue(
    constant=constant,
    cosine=cosine,
    triangle=triangle,
    step=step,
    steps_33_67=steps_33_67,
    steps_60_80=steps_60_80,
    restarts=restarts,
    warm_restarts=warm_restarts,
    warm_restarts_released=warm_restarts_released,
)
