"""The one sort under every metric: how many samples each threshold accepts."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

STEP = 1 << 15  # samples in a piece: small enough for its arrays to stay in the cache


class Counts(NamedTuple):
    """Samples accepted at T distinct scores, highest first, after one entry for "before them".

    The arrays are (T + 1,) whole numbers as float64, non-decreasing. Pieces of one column
    overlap by an entry: the first of a piece is the last of the piece before, or 0.

    Attributes:
        size: samples with this score or a higher one.
        known: known samples among them.
        right: known samples among them whose prediction is right.
        unknown: unknown samples among them.
        all_known: K, the known samples of all pieces.
        all_unknown: U, the unknown samples of all pieces.
    """

    size: np.ndarray
    known: np.ndarray
    right: np.ndarray
    unknown: np.ndarray
    all_known: int
    all_unknown: int


def pieces(
    known: np.ndarray, correct: np.ndarray, unknown: np.ndarray, *, step: int = STEP
) -> Iterator[Counts]:
    """What each distinct score, as a threshold, accepts; O(N log N), a cacheful at a time.

    Samples that share a score are accepted together; -0.0 equals 0.0.

    Args:
        known: (K,) scores of known samples.
        correct: (K,) bool, the prediction is right.
        unknown: (U,) scores of unknown samples; K + U is at least 1 and below 2^32.
        step: samples in a piece.

    Yields:
        `Counts`, each of at least one distinct score.

    Raises:
        ValueError: a column is not (N,) real numbers or holds a NaN, or correct is not (K,) bool.
    """
    known, correct, unknown = checked(known, correct, unknown)
    # Minus puts the highest score first; subtracting from 0 also turns -0.0 into 0.0.
    dtype = np.result_type(known, unknown, np.float32)
    scores = np.empty(len(known) + len(unknown), dtype)
    np.subtract(0, known, out=scores[: len(known)], dtype=dtype)
    np.subtract(0, unknown, out=scores[len(known) :], dtype=dtype)
    keys = (_packed if dtype == np.float32 else _merged)(scores, correct)
    for arrays in _accumulated(keys, step):
        yield Counts(*arrays, len(known), len(unknown))


def whole(known: np.ndarray, correct: np.ndarray, unknown: np.ndarray) -> Counts:
    """The `pieces` as one."""
    return next(pieces(known, correct, unknown, step=len(known) + len(unknown)))


def column(values: np.ndarray, name: str) -> np.ndarray:
    """The values as a checked (N,) array: real, at most 64 bits wide, exact as floats, no NaN."""
    values = np.asarray(values)
    if values.ndim != 1 or values.dtype.kind not in "biuf" or values.itemsize > 8:
        raise ValueError(
            f"{name} needs (N,) real numbers; got shape {values.shape} of {values.dtype}"
        )
    if np.isnan(values).any():
        raise ValueError(f"{name} needs numbers; got {np.isnan(values).sum()} NaN")
    if values.dtype.kind in "iu" and len(values) and max(values.max(), -int(values.min())) > 2**53:
        raise ValueError(f"{name} needs integers up to 2^53, exact as floats; got larger ones")
    return values


def flags(correct: np.ndarray) -> np.ndarray:
    """The flags as a checked (N,) bool array."""
    correct = np.asarray(correct)
    if correct.ndim != 1 or correct.dtype != bool:
        raise ValueError(f"need (N,) booleans; got {correct.shape} of {correct.dtype}")
    return correct


def checked(known: np.ndarray, correct: np.ndarray, unknown: np.ndarray) -> tuple[np.ndarray, ...]:
    """Scores of known and unknown samples and a flag for each known one, checked."""
    known, unknown, correct = column(known, "known"), column(unknown, "unknown"), flags(correct)
    if len(correct) != len(known):
        raise ValueError(f"need {len(known)} booleans; got {len(correct)} of {correct.dtype}")
    return known, correct, unknown


def chosen(value: str, *valid: str, name: str = "convention") -> str:
    """The value of a parameter, if it is a valid one; else a ValueError that lists them."""
    if value not in valid:
        raise ValueError(f"{name} is one of {', '.join(valid)}; got {value!r}")
    return value


def both(known: np.ndarray, unknown: np.ndarray) -> None:
    """Refuse an empty side."""
    sizes = [np.asarray(side).size for side in (known, unknown)]  # a tensor's own is a method
    if not all(sizes):
        raise ValueError(f"need both kinds; got {sizes[0]} known, {sizes[1]} unknown")


# A key holds the order of the score above two bits of code: bit 0 for a known sample, bit 1 for
# a right one. So, within a tie, the unknown (0) come first, then the wrong (1), the right (3).


def _packed(scores: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """(N,) sorted keys of float32 scores: a plain sort of integers, the fastest there is."""
    bits = scores.view(np.int32)
    bits = bits ^ (bits >> 31 | np.int32(-(2**31)))  # as unsigned, ordered like the floats
    keys = bits.view(np.uint32).astype(np.int64)
    keys <<= 2
    keys[: len(correct)] += 1 + 2 * correct
    keys.sort()
    return keys


def _merged(scores: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """(N,) sorted keys of float64 scores, which leave no room for a code: ranks instead."""
    known, unknown = scores[: len(correct)], scores[len(correct) :]
    runs = [unknown, known[~correct], known[correct]]
    sizes = [len(run) for run in runs]
    scores = np.concatenate(runs)
    for run in np.split(scores, np.cumsum(sizes[:2])):
        run.sort()
    order = np.argsort(scores, kind="stable")  # timsort: linear on the three sorted runs
    scores = scores.take(order)
    keys = np.zeros(len(scores), np.int64)
    np.cumsum(scores[1:] != scores[:-1], out=keys[1:])
    keys <<= 2
    keys |= np.repeat(np.array([0, 1, 3], np.int8), sizes).take(order)
    return keys


def _accumulated(keys: np.ndarray, step: int) -> Iterator[tuple[np.ndarray, ...]]:
    """The arrays of `Counts`, piece by piece of the sorted keys.

    One running sum carries two counters, known in its lower 32 bits and right in its upper.
    """
    running, sums, sizes = 0, np.zeros(1, np.int64), np.zeros(1)
    for start in range(0, len(keys), step):
        window = keys[start : start + step + 1]
        ends = np.flatnonzero(window[1:] ^ window[:-1] > 3)
        if start + step >= len(keys):
            ends = np.append(ends, len(window) - 1)
        codes = window[:step] & 3
        codes |= codes << 31
        codes &= 1 << 32 | 1
        codes[0] += running
        running = np.cumsum(codes, out=codes)[-1]
        if len(ends):  # else one score fills the piece and is counted where it ends
            sums = np.append(sums[-1], codes.take(ends))
            sizes = np.append(sizes[-1], ends + (start + 1.0))
            known, right = (sums & 0xFFFFFFFF).astype(float), (sums >> 32).astype(float)
            yield sizes, known, right, sizes - known
