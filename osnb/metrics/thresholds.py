"""Thresholds that keep a promise about samples to come, chosen on samples that were held out.

A sample is accepted where its score is at or above the threshold. Two kinds of promise are told
apart. The *bound* holds with a confidence of .95 over calibration sets: at most one set in twenty
gives a threshold that breaks the rate. The *conformal* quantile holds on average over calibration
sets, so that about every second single set breaks it. Both speak of samples drawn like those of
calibration, so of other samples of these unknown classes, not of other classes.
"""

import numpy as np

from osnb.metrics.counts import both, chosen, column, flags, whole

CONFIDENCE = 0.95  # of a bound, over calibration sets
EPSILON = 1e-12  # in floats 20 * (1 - 0.95) is above 1, and 10 * (1 - 0.9) below
LEARNT = 0.2  # share of the samples that says where testing starts
LOST = 1e-3  # chance that a drawn mixture wants more samples of a side than there are


def tpr_threshold(known: np.ndarray, *, tpr: float, promise: str = "bound") -> float:
    """The highest threshold that accepts at least a share `tpr` of the known samples to come.

    It is the k-th lowest of K scores. With m = 1 - tpr, and B(n, m) binomial:

    - bound: the largest k with P(B(K, m) < k) <= 1 - CONFIDENCE, the tolerance limit of
      Wilks 1941. Nested thresholds are one test, so nothing has to be corrected for the choice.
    - conformal: k = floor((K + 1) m), in Vovk et al. 2005. The mean TPR over sets is at least tpr.

    Args:
        known: (K,) scores of known samples that were not trained on, any unit.
        tpr: the rate asked for, in (0, 1).
        promise: bound or conformal.

    Returns:
        The threshold, one of the scores. Ties are on the safe side.

    Raises:
        ValueError: there are too few scores, one is NaN, or a rate is outside (0, 1).
    """
    known = _enough(column(known, "known"), "known", tpr, promise)
    return float(np.partition(known, k := _rank(len(known), tpr, promise) - 1)[k])


def fpr_threshold(unknown: np.ndarray, *, fpr: float, promise: str = "bound") -> float:
    """The lowest threshold that accepts at most a share `fpr` of the unknown samples to come.

    It is `tpr_threshold` of the scores with their sign turned, at 1 - fpr; the number after it, in
    floats, since a sample at the threshold is accepted; NaN, which accepts nothing, if there is
    none. Arguments and errors are those of `tpr_threshold`; unknown is (U,).
    """
    unknown = _enough(column(unknown, "unknown"), "unknown", 1 - fpr, promise)
    turned = -unknown.astype(np.float64)
    rank = _rank(len(turned), 1 - fpr, promise) - 1
    highest = -np.partition(turned, rank)[rank]
    if unknown.dtype.kind == "f":  # the next number of theirs: numpy compares in their precision
        highest = unknown.dtype.type(highest)
    return float(np.nextafter(highest, type(highest)(np.inf))) if highest < np.inf else np.nan


def risk_threshold(score: np.ndarray, correct: np.ndarray, *, risk: float, seed: int) -> float:
    """A low threshold whose share of errors among accepted samples to come is at most `risk`.

    Split fixed sequence testing: Learn then Test, in Angelopoulos et al. 2021. A fifth of the
    samples, drawn at random, says where testing starts: at its most significant threshold. On the
    others, thresholds fall from there as long as each rejects "the risk is larger" at level
    1 - CONFIDENCE. Of n accepted samples e are errors, and under that hypothesis

        p = P(B(n, risk) <= e)

    The order is fixed before the tested samples are seen, so the first true hypothesis on the way
    is one test: no correction is lost on the others, and the risk may rise and fall.

    Args:
        score: (N,) confidence, any unit, of samples mixed as those to come; see `mixture`.
        correct: (N,) bool, accepting the sample is right; False for every unknown sample.
        risk: largest share of errors among accepted samples, in (0, 1).
        seed: of the split.

    Returns:
        The threshold, or NaN, which accepts nothing, where none is shown to keep the risk.

    Raises:
        ValueError: there are fewer than 10 samples, a score is NaN, correct is not (N,) bool, or a
            rate is outside (0, 1).
    """
    from scipy.special import bdtr

    score, correct = column(score, "score"), flags(correct)
    _rates(risk=risk)
    if len(score) != len(correct) or len(score) < 10:
        raise ValueError(f"need 10 scores or more; got {len(score)}, {len(correct)} booleans")
    order = np.random.default_rng(seed).permutation(len(score))
    sides = np.split(order, [int(LEARNT * len(order))])
    falling, p = [], []
    for rows in sides:
        accepted = whole(score[rows], correct[rows], score[:0])
        falling.append(np.unique(score[rows])[::-1])
        errors, size = accepted.size - accepted.right, accepted.size.astype(np.int64)
        p.append(bdtr(errors[1:], size[1:], risk))
    start = falling[0][np.flatnonzero(p[0] == p[0].min())[-1]]
    first = int((falling[1] >= start).sum()) - 1
    shown = p[1][first:] <= 1 - CONFIDENCE if first >= 0 else np.zeros(1, bool)
    if not shown[0]:
        return np.nan
    last = first + (len(shown) if shown.all() else int(shown.argmin())) - 1
    return float(min(start, falling[1][last]))


def mixture(known: int, unknown: int, *, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a sample in which each is unknown with chance `share`, as binomial tests want it.

    The number of rows is fixed first, so large that one draw in a thousand wants more of a side
    than there is (it then gets all there is); how many are unknown is binomial; which, by chance.

    Args:
        known: K, known samples that there are.
        unknown: U, unknown ones.
        share: of the unknown among samples to come, in (0, 1).
        seed: of the draw.

    Returns:
        Places among the known samples and among the unknown ones, each at most once.

    Raises:
        ValueError: the share is outside (0, 1), or a side is empty.
    """
    from scipy.special import bdtr

    _rates(share=share)
    both(np.empty(known), np.empty(unknown))
    rng, sizes = np.random.default_rng(seed), np.arange(1, known + unknown + 1)
    fits = [
        bdtr(np.minimum(count, sizes), sizes, part) >= 1 - LOST / 2
        for count, part in ((known, 1 - share), (unknown, share))
    ]
    size = int(np.logical_and(*fits).sum())
    others = int(np.clip(rng.binomial(size, share), size - known, unknown))
    drawn = zip((known, unknown), (size - others, others), strict=True)
    first, second = (rng.permutation(count)[:taken] for count, taken in drawn)
    return first, second


def exact_interval(count: int, of: int, *, level: float = 0.95) -> tuple[float, float]:
    """Interval of a share, in Clopper & Pearson 1934, at a threshold that others have chosen.

    Args:
        count: samples that are counted.
        of: samples in all; of 0 nothing is known.
        level: chance, at least, that the interval holds the true share, in (0, 1).

    Returns:
        (low, high) in [0, 1].

    Raises:
        ValueError: more are counted than there are, or fewer than none, or level is outside (0, 1).
    """
    if not 0 <= count <= of:
        raise ValueError(f"count is from 0 to {of}; got {count}")
    _rates(level=level)
    from scipy.special import bdtri

    tail, low, high = (1 - level) / 2, 0.0, 1.0
    if count > 0:  # bdtri: the p at which P(B(n, p) <= k) is the tail
        low = float(bdtri(count - 1, of, 1 - tail))
    if count < of:
        high = float(bdtri(count, of, tail))
    return low, high


def _rank(size: int, kept: float, promise: str) -> int:
    """k of `tpr_threshold`; 0 if the lowest of the scores is too high."""
    from scipy.special import bdtr

    missed = (1 - kept) * (1 + EPSILON)
    if chosen(promise, "bound", "conformal", name="promise") == "conformal":
        return int((size + 1) * missed)
    below = bdtr(np.arange(size + 1), size, 1 - kept)
    return int(np.searchsorted(below, 1 - CONFIDENCE, "right"))


def _enough(scores: np.ndarray, name: str, kept: float, promise: str) -> np.ndarray:
    """The scores, if there are enough of them for any threshold."""
    _rates(rate=kept)
    if not _rank(len(scores), kept, promise):
        few = np.log(1 - CONFIDENCE) / np.log(kept)
        few = few if promise == "bound" else kept / (1 - kept) * (1 - EPSILON)
        raise ValueError(
            f"need {int(np.ceil(few))} {name} samples or more for {1 - kept:.3g} on the wrong "
            f"side ({promise}); got {len(scores)}"
        )
    return scores


def _rates(**rates: float) -> None:
    for name, rate in rates.items():
        if not 0 < rate < 1:
            raise ValueError(f"{name} needs a number in (0, 1); got {rate:g}")
