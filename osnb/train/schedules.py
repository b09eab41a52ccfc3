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


SCHEDULES = Catalogue(constant=constant, cosine=cosine, triangle=triangle)
