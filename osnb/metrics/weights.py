"""Test sets drawn anew: how many copies of each sample they hold, row 0 one of each."""

import numpy as np


def bootstrap_weights(units: np.ndarray, *, seed: int, resamples: int = 1000) -> np.ndarray:
    """How many copies of each sample of one role each resample holds.

    Units are drawn with replacement, as many as there are; samples of one unit come together.

    Args:
        units: (N,) ids: the column `sample` for a bootstrap over samples, `class` for one over
            classes.
        seed: of the draws; each role needs its own, which `role_weights` sees to.
        resamples: R.

    Returns:
        (1 + R, N) uint16; row 0 is all ones.

    Raises:
        ValueError: there is no sample, or no resample is asked for.
    """
    codes = np.unique(np.asarray(units), return_inverse=True)[1]
    if not len(codes) or resamples < 1:
        raise ValueError(f"need samples and resamples; got {len(codes)} and {resamples}")
    size, rng = codes.max() + 1, np.random.default_rng(seed)
    weights = np.ones((1 + resamples, len(codes)), np.uint16)
    for row in weights[1:]:
        row[:] = np.bincount(rng.integers(size, size=size, dtype=np.int32), minlength=size)[codes]
    return weights


def role_weights(
    known: np.ndarray, unknown: np.ndarray, *, seed: int, resamples: int = 1000
) -> tuple[np.ndarray, np.ndarray]:
    """`bootstrap_weights` of both roles, drawn apart.

    Each role's seed is spawned from the one given. With one seed for both and equally many units
    the roles would be drawn alike, and the interval be too narrow or too wide.

    Args:
        known: (K,) ids of the units of the known samples, as in `bootstrap_weights`.
        unknown: (U,) those of the unknown samples.
        seed: of the draws.
        resamples: R.

    Returns:
        (1 + R, K) and (1 + R, U) uint16 for `bootstrap_summary`; rows 0 are all ones.

    Raises:
        ValueError: a role has no sample, or no resample is asked for.
    """
    seeds = np.random.SeedSequence(seed).spawn(2)
    return tuple(
        bootstrap_weights(units, seed=each, resamples=resamples)
        for units, each in zip((known, unknown), seeds, strict=True)
    )


def balanced_weights(known: int, unknown: int, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights with as many known as unknown samples, as Vaze et al. 2022 evaluate in training.

    The larger side is drawn with replacement down to the size of the smaller one, which stays.
    AUROC and accuracy are the same but for the draw; average precision, whose value depends on the
    share of unknown samples, is another. Full test sets are the rule here.

    Args:
        known: number of known test samples, >= 1.
        unknown: number of unknown ones, >= 1.
        seed: of the draw.

    Returns:
        (2, known) and (2, unknown) uint16 for `bootstrap_summary`: row 0 is the full test set, all
        ones; row 1 the balanced one.

    Raises:
        ValueError: a side is empty.
    """
    if min(known, unknown) < 1:
        raise ValueError(f"need samples on both sides; got {known} and {unknown}")
    sides, size = [], min(known, unknown)
    for number in (known, unknown):
        drawn = np.random.default_rng(seed).integers(number, size=size)
        copies = np.bincount(drawn, minlength=number) if number > size else np.ones(number)
        sides.append(np.stack([np.ones(number), copies]).astype(np.uint16))
    return tuple(sides)
