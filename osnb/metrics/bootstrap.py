"""All metrics of a column from one sort, once and on samples or classes drawn anew (Efron 1979).

A resample is a row of weights: how many copies of each sample it holds. Row 0 is the sample
itself, one of each. Weights are drawn for each role apart (stratified); methods that are given
the same weights are compared on the same resamples (paired). Drawn over the column `sample`, an
interval speaks of other images of these classes; drawn over `class`, of other classes.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from osnb.metrics import measures
from osnb.metrics.counts import Counts, both, checked, column, pieces

FPRS = np.array([1e-3, 1e-2, 1e-1, 1.0])
TPR = 0.95
SHARES = measures.area, measures.roc_area, measures.precision, measures.risks  # add up over pieces
MEASURES = ("accuracy", "oscr_area", *(f"ccr_at_fpr_{q:g}" for q in FPRS), "auroc", "fpr95")
MEASURES += ("average_precision", "aurc", "e_aurc")
PAIRED = {"accuracy", "oscr_area", "auroc"}  # sums over samples, or over pairs of them
SLOWER = 16  # a known sample among the scores of a unit, against a sample in a resample
ENOUGH = 20  # resamples after which two roles are drawn alike by chance once in 10^8
Weights = tuple[np.ndarray, np.ndarray]  # of known and of unknown samples, as from `role_weights`
CACHED = 1 << 16  # weights in a piece: small enough for its arrays to stay in the cache


class Interval(NamedTuple):
    """A metric of the sample itself, and the range that resamples give it; floats or arrays.

    Attributes:
        value: of the sample itself, in the metric's own unit.
        low: lower end of the range, at most `high`.
        high: upper end; the `level` of `interval` says which share of the resamples lies between.
    """

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


def summary(known: np.ndarray, correct: np.ndarray, unknown: np.ndarray) -> dict[str, float]:
    """Every exact metric of this room from one sort.

    Args:
        known: (K,) scores of known test samples, any unit.
        correct: (K,) bool, the closed-set prediction is right.
        unknown: (U,) scores of unknown test samples, same unit.

    Returns:
        accuracy, oscr_area, ccr_at_fpr_0.001, _0.01, _0.1 and _1, auroc, fpr95,
        average_precision, aurc and e_aurc, the last two with the unknown samples as errors.

    Raises:
        ValueError: an input is empty, a score is NaN, or correct is not (K,) bool.
    """
    both(known, unknown)
    sums, ccr = np.zeros(4), np.zeros(len(FPRS))
    for piece in pieces(known, correct, unknown):
        sums += [share(piece) for share in SHARES]
        # The last piece that starts below a rate holds it.
        ccr = np.where(piece.unknown[0] / len(unknown) <= FPRS, measures.right_at(piece, FPRS), ccr)
        if piece.known[0] / len(known) < TPR <= piece.known[-1] / len(known):
            fpr = measures.false_at(piece, TPR)
    samples, accuracy = len(known) + len(unknown), piece.right[-1] / len(known)
    aurc, risk = sums[3] / samples, 1 - piece.right[-1] / samples
    values = accuracy, sums[0], *ccr, sums[1], fpr, sums[2], aurc, aurc - measures.least_risk(risk)
    return dict(zip(MEASURES, map(float, values), strict=True))


def bootstrap_summary(
    known: np.ndarray,
    correct: np.ndarray,
    unknown: np.ndarray,
    *,
    weights: Weights,
    names: Collection[str] = MEASURES,
) -> dict[str, np.ndarray]:
    """`summary` of the sample and of each resample, all from one sort.

    Args:
        known: (K,) scores of known test samples, any unit.
        correct: (K,) bool, the closed-set prediction is right.
        unknown: (U,) scores of unknown test samples, same unit.
        weights: (1 + R, K) and (1 + R, U), from `role_weights`.
        names: of `summary`, those that are wanted; few take less time.

    Returns:
        These names, (1 + R,) each, in the order of `summary`; row 0 is `summary` itself.

    Raises:
        ValueError: an input is empty, a score is NaN, the shapes do not fit, weights are no
            integers, both roles have the same draws, or a name is none of `summary`.
    """
    both(known, unknown)
    if odd := {*names} - {*MEASURES}:
        raise ValueError(f"need names among {', '.join(MEASURES)}; got {', '.join(sorted(odd))}")
    values = _paired(known, correct, unknown, weights) if not PAIRED.isdisjoint(names) else {}
    if rest := {*names} - {*values}:
        pieces = _resampled(known, correct, unknown, weights)
        values |= _joined(map(partial(_summary, names=rest), pieces))
    return {name: values[name] for name in MEASURES if name in names}


def bootstrap_oscr(
    known: np.ndarray,
    correct: np.ndarray,
    unknown: np.ndarray,
    *,
    fpr: np.ndarray,
    weights: Weights,
) -> np.ndarray:
    """Exact `ccr_at_fpr` of the sample and of each resample, at each of F rates.

    Args:
        known: (K,) scores of known test samples, any unit.
        correct: (K,) bool, the closed-set prediction is right.
        unknown: (U,) scores of unknown test samples, same unit.
        fpr: (F,) rates in [0, 1].
        weights: (1 + R, K) and (1 + R, U), from `bootstrap_weights`.

    Returns:
        (1 + R, F) in [0, accuracy].

    Raises:
        ValueError: an input is empty, a score is NaN, the shapes do not fit, both roles have
            the same draws, or a rate is outside [0, 1].
    """
    both(known, unknown)
    measures.inside(np.asarray(fpr), "rates")
    pieces = _resampled(known, correct, unknown, weights)
    return np.concatenate([measures.right_at(piece, fpr) for piece in pieces])


def bootstrap_aurc(
    score: np.ndarray, correct: np.ndarray, *, weights: np.ndarray
) -> dict[str, np.ndarray]:
    """Exact `accuracy`, `aurc` and `e_aurc` of the sample and of each resample.

    Args:
        score: (N,) confidence, any unit.
        correct: (N,) bool, accepting the sample is right.
        weights: (1 + R, N), from `bootstrap_weights`.

    Returns:
        accuracy, aurc and e_aurc, (1 + R,) each.

    Raises:
        ValueError: score is empty or holds a NaN, or the shapes do not fit.
    """
    if not np.asarray(score).size:
        raise ValueError("need at least one score; got 0")
    none = np.ones((len(weights), 0), np.uint16)
    return _joined(map(_coverage, _resampled(score, correct, np.zeros(0), (weights, none))))


def bootstrap_augrc(
    known: np.ndarray, correct: np.ndarray, unknown: np.ndarray, *, weights: Weights
) -> np.ndarray:
    """Exact `augrc` of the sample and of each resample, with the unknown samples as errors.

    Arguments and errors are those of `bootstrap_summary`, but unknown may be empty: then this is
    about wrong predictions alone. Returns (1 + R,) in [0, 1/2].
    """
    if not np.asarray(known).size:
        raise ValueError("need a known sample; got 0")
    pieces = _resampled(known, correct, unknown, weights)
    areas = [np.trapezoid(p.size - p.right, p.size, axis=1) / p.size[:, -1] ** 2 for p in pieces]
    return np.concatenate(areas)


def bootstrap_confidence(
    known_target: np.ndarray, other_max: np.ndarray, *, offset: float, weights: Weights
) -> dict[str, np.ndarray]:
    """`confidence` of the sample and of each resample.

    Args:
        known_target: (N,) probability of each known sample's target class.
        other_max: (M,) largest probability of a known class, negative or unknown samples.
        offset: as in `confidence`.
        weights: (1 + R, N) and (1 + R, M), from `bootstrap_weights`.

    Returns:
        gamma_plus, gamma_minus and gamma, (1 + R,) each.

    Raises:
        ValueError: an input is empty or holds no probabilities, the shapes do not fit, or both
            roles have the same draws.
    """
    both(known_target, other_max)
    columns = column(known_target, "known_target"), column(other_max, "other_max")
    _fitting(weights, *columns)
    for values in columns:
        measures.inside(values)
    plus, largest = (
        w.astype(np.float32) @ values.astype(np.float64) / w.sum(axis=1)
        for w, values in zip(weights, columns, strict=True)
    )
    minus = 1 - largest + offset
    return {"gamma_plus": plus, "gamma_minus": minus, "gamma": (plus + minus) / 2}


def interval(
    values: np.ndarray | Mapping[str, np.ndarray], *, level: float = 0.95
) -> Interval | dict[str, Interval]:
    """Percentile interval of a bootstrap (Efron 1979), or of each of several.

    Args:
        values: (1 + R, ...) a metric of the sample and of each resample, or the paired
            difference of two: a - b, both from the same weights; or such arrays by name, as
            `bootstrap_summary` gives them.
        level: share of the resamples inside, in (0, 1).

    Returns:
        value (the sample's), low and high, (...) each, in the metric's unit; by name if the
        values are.
    """
    if isinstance(values, Mapping):
        return {name: interval(column, level=level) for name, column in values.items()}
    values, tail = np.asarray(values), 50 * (1 - level)
    return Interval(values[0], *np.percentile(values[1:], [tail, 100 - tail], axis=0))


def p_value(values: np.ndarray) -> float:
    """Two-sided p-value of a difference being 0, from its bootstrap.

    Twice the smaller share of resamples at or beyond 0, the sample itself counted on either
    side (Davison & Hinkley 1997, eq. 4.11).

    Args:
        values: (1 + R,) paired differences, both sides from the same weights.

    Returns:
        In [2 / (1 + R), 1].

    Raises:
        ValueError: the differences are not (1 + R,), or one is NaN.
    """
    values = column(values, "values")
    beyond = min(np.sum(values[1:] <= 0), np.sum(values[1:] >= 0))
    return float(min(1.0, 2 * (1 + beyond) / len(values)))


def _resampled(
    known: np.ndarray, correct: np.ndarray, unknown: np.ndarray, weights: Weights
) -> Iterator[Counts]:
    """Counts of a few resamples at a time: (rows, T + 1) arrays and (rows,) totals."""
    known, correct, unknown = checked(known, correct, unknown)
    _fitting(weights, known, unknown)
    scores = np.concatenate([known, unknown], dtype=np.float64)
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]  # compared, not subtracted: equal infinities are a tie
    ends = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(order) - 1)
    is_known = order < len(known)
    is_right = np.append(correct, np.zeros(len(unknown), bool))[order]
    step = max(1, CACHED // len(order))
    for start in range(0, len(weights[0]), step):
        w = np.concatenate([part[start : start + step] for part in weights], axis=1)
        w = w.take(order, axis=1)
        sizes, knowns, rights = (_accepted(w, flag, ends) for flag in (True, is_known, is_right))
        unknowns = sizes - knowns
        yield Counts(sizes, knowns, rights, unknowns, knowns[:, -1], unknowns[:, -1])


def _paired(
    known: np.ndarray, correct: np.ndarray, unknown: np.ndarray, weights: Weights
) -> dict[str, np.ndarray]:
    """The measures that are sums over pairs of samples; {} if there are too many units for it.

    Samples of a unit are copied together, so the pairs in their right order are counted once for
    each two units, and a resample weighs these counts: whole numbers up to the division.
    """
    known, correct, unknown = checked(known, correct, unknown)
    _fitting(weights, known, unknown)
    for rows in (ENOUGH + 1, None):  # a few resamples tell already that there are too many
        first, second = (_units(side[:rows]) for side in weights)
        if SLOWER * len(known) * len(second) > len(weights[0]) * (len(known) + len(unknown)):
            return {}
    sides = map(np.sort, np.split(unknown, second[1:]))
    below = [s.searchsorted(known, "left") + s.searchsorted(known, "right") for s in sides]
    columns = [np.ones(len(known)), correct, *below, *(correct * pairs for pairs in below)]
    sums = np.add.reduceat(np.array(columns), first, axis=1).T
    drawn, others = weights[0][:, first].astype(float), weights[1][:, second].astype(float)
    knowns, rights, *pairs = (drawn @ sums).T
    ordered, named = (np.vecdot(np.transpose(n), others) for n in np.split(np.array(pairs), 2))
    every = 2 * knowns * weights[1].sum(axis=1)
    return {"accuracy": rights / knowns, "oscr_area": named / every, "auroc": ordered / every}


def _units(weights: np.ndarray) -> np.ndarray:
    """Where neighbours begin that all resamples copy alike, such as a class's samples in a row."""
    return np.flatnonzero(np.append(True, (weights[:, 1:] != weights[:, :-1]).any(axis=0)))


def _fitting(weights: Weights, *columns: np.ndarray) -> None:
    """Refuse weights of another number of samples or resamples, of shares, or of one seed's draws.

    Alike by chance are few resamples; alike by right are those of one unit each, all ones.
    """
    shapes = [np.shape(w) for w in weights]
    if shapes != [(shapes[0][0], len(values)) for values in columns]:
        sizes = ", ".join(f"(1 + R, {len(values)})" for values in columns)
        raise ValueError(f"need weights of shapes {sizes}; got {shapes}")
    if odd := [w.dtype for w in map(np.asarray, weights) if w.dtype.kind not in "biu"]:
        raise ValueError(f"need weights that are integers, copies of a sample; got {odd[0]}")
    first, second = (np.asarray(w[1 : ENOUGH + 1]) for w in weights)
    if len(first) == ENOUGH and np.array_equal(first, second) and (first != 1).any():
        raise ValueError("need draws of each role's own, as role_weights; got the same for both")


def _accepted(weights: np.ndarray, flag: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """(rows, T + 1) flagged copies up to the end of each tie, after a 0."""
    copies = np.cumsum(weights * flag, axis=1, dtype=np.int32)
    sums = np.zeros((len(weights), len(ends) + 1))
    sums[:, 1:] = copies.take(ends, axis=1) if len(ends) < copies.shape[1] else copies
    return sums


def _joined(parts: Iterable[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    parts = list(parts)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _summary(piece: Counts, names: Collection[str]) -> dict[str, np.ndarray]:
    values = {}
    for group, measured in GROUPS.items():
        if not {*names}.isdisjoint(group):
            values |= dict(zip(group, measured(piece), strict=True))
    return values


def _coverage(piece: Counts) -> dict[str, np.ndarray]:
    """Accuracy, AURC and E-AURC with everything but the right ones as errors.

    The sum within a tie is that of `osnb.metrics.measures.risks`; its harmonic numbers are of
    whole numbers up to the largest resample, so a table serves all rows.
    """
    samples, errors = piece.size[:, -1], piece.size - piece.right
    wrong, sizes = np.diff(errors), np.diff(piece.size)
    at_first = errors[:, :-1] - piece.size[:, :-1] * wrong / np.maximum(sizes, 1)
    table = _harmonics(int(samples.max()).bit_length())
    sums = wrong.sum(axis=1) + np.vecdot(at_first, np.diff(table.take(piece.size.astype(np.intp))))
    risk = errors[:, -1] / samples
    return {
        "accuracy": 1 - risk,
        "aurc": sums / samples,
        "e_aurc": sums / samples - measures.least_risk(risk),
    }


@cache
def _harmonics(bits: int) -> np.ndarray:
    """H_n of every n below 2 ** bits."""
    return measures.harmonic(np.arange(1 << bits))


# What is computed together: the names of `summary`, and their (rows,) of a piece.
GROUPS: dict[tuple[str, ...], Callable[[Counts], Iterable[np.ndarray]]] = {
    MEASURES[:1]: lambda piece: [piece.right[:, -1] / piece.all_known],
    MEASURES[1:2]: lambda piece: [measures.area(piece)],
    MEASURES[2:6]: lambda piece: measures.right_at(piece, FPRS).T,
    MEASURES[6:7]: lambda piece: [measures.roc_area(piece)],
    MEASURES[7:8]: lambda piece: [measures.false_at(piece, TPR)],
    MEASURES[8:9]: lambda piece: [measures.precision(piece)],
    MEASURES[9:]: lambda piece: [*_coverage(piece).values()][1:],
}


# Test sets drawn anew: how many copies of each sample they hold, row 0 one of each.


def bootstrap_weights(
    units: np.ndarray, *, seed: int, resamples: int = 1000, sets: np.ndarray | None = None
) -> np.ndarray:
    """How many copies of each sample of one role each resample holds.

    Units are drawn with replacement, as many as there are; samples of one unit come together.

    Args:
        units: (N,) ids: the column `sample` for a bootstrap over samples, `class` for one over
            classes.
        seed: of the draws; each role needs its own, which `role_weights` sees to.
        resamples: R.
        sets: (N,) names of the sets that samples are of, such as their sources; each is drawn by
            itself. Sets that share a unit are one, and all are if none has two units. None is one.

    Returns:
        (1 + R, N) uint16; row 0 is all ones.

    Raises:
        ValueError: there is no sample, or no resample is asked for.
    """
    codes = np.unique(np.asarray(units), return_inverse=True)[1]
    if not len(codes) or resamples < 1:
        raise ValueError(f"need samples and resamples; got {len(codes)} and {resamples}")
    size, rng = codes.max() + 1, np.random.default_rng(seed)
    if sets is not None:
        draw = partial(bootstrap_weights, seed=rng, resamples=resamples)
        return of_sets(apart_sets(codes, sets), lambda _, at: draw(codes[at]), resamples=resamples)
    weights = np.ones((1 + resamples, len(codes)), np.uint16)
    step = max(1, CACHED // size)
    for start in range(1, len(weights), step):
        rows = weights[start : start + step]
        drawn = rng.integers(size, size=(len(rows), size), dtype=np.int32)
        drawn = drawn + size * np.arange(len(rows))[:, None]  # of each row numbers of its own
        copies = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)
        rows[:] = copies.take(codes, axis=1)
    return weights


def of_sets(
    sets: np.ndarray, draw: Callable[[str, np.ndarray], np.ndarray], *, resamples: int
) -> np.ndarray:
    """(1 + R, N) copies of samples of several sets, each drawn by itself: it keeps its size.

    Drawn as one, a set of few large classes would be now half and now twice as large, and what is
    measured is as much which sets were drawn as how well they are told apart.

    Args:
        sets: (N,) names, of each sample its set's.
        draw: (name, (n,) places of the set's samples) to their (1 + R, n) copies.
        resamples: R.
    """
    names, of = np.unique(sets, return_inverse=True)
    copies = np.empty((1 + resamples, len(of)), np.uint16)
    for i, name in enumerate(names):
        at = np.flatnonzero(of == i)
        copies[:, at] = draw(name, at)
    return copies


def apart_sets(units: np.ndarray, sets: np.ndarray) -> np.ndarray:
    """(N,) numbers of the sets that can be drawn apart, of samples of units (N,) from 0."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    names, of = np.unique(sets, return_inverse=True)
    first, size = len(names), len(names) + units.max() + 1  # units are numbered behind the sets
    joined = coo_array((np.ones(len(of)), (of, first + units)), (size, size))
    count, number = connected_components(joined, directed=False)
    return np.zeros_like(of) if count == size - first else number[of]


def role_weights(
    known: np.ndarray,
    unknown: np.ndarray,
    *,
    seed: int,
    resamples: int = 1000,
    sets: tuple[np.ndarray | None, np.ndarray | None] = (None, None),
) -> Weights:
    """`bootstrap_weights` of both roles, drawn apart.

    Each role's seed is spawned from the one given. With one seed for both and equally many units
    the roles would be drawn alike, and the interval be too narrow or too wide.

    Args:
        known: (K,) ids of the units of the known samples, as in `bootstrap_weights`.
        unknown: (U,) those of the unknown samples.
        seed: of the draws.
        resamples: R.
        sets: of both, as in `bootstrap_weights`.

    Returns:
        (1 + R, K) and (1 + R, U) uint16 for `bootstrap_summary`; rows 0 are all ones.

    Raises:
        ValueError: a role has no sample, or no resample is asked for.
    """
    seeds = np.random.SeedSequence(seed).spawn(2)
    return tuple(
        bootstrap_weights(units, seed=spawned, resamples=resamples, sets=of)
        for units, spawned, of in zip((known, unknown), seeds, sets, strict=True)
    )
