"""Metrics of selective prediction: accept the surest first and watch the errors."""

import numpy as np

from osnb.metrics.counts import Counts, chosen, column, flags, pieces, whole

EPSILON = 1e-12  # in floats 0.29 * 100 is below 29


def risk_coverage(score: np.ndarray, correct: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Risk-coverage curve, in Geifman & El-Yaniv 2017, over all orders within a tie.

    With the samples sorted by falling score and e(i) the errors among the first i, in the mean
    over the orders of samples that share a score:

        coverage_i = i / N        risk_i = e(i) / i

    Args:
        score: (N,) confidence, any unit.
        correct: (N,) bool, accepting the sample is right; False for every unknown sample.

    Returns:
        (coverage, risk), each (N,) in [0, 1].

    Raises:
        ValueError: score is empty or holds a NaN, or correct is not (N,) bool.
    """
    score, correct = _checked(score, correct)
    accepted = whole(score, correct, score[:0])
    first = np.arange(1, len(score) + 1)
    errors = np.interp(first, accepted.size, accepted.size - accepted.right)
    return first / len(score), errors / first


def aurc(score: np.ndarray, correct: np.ndarray, *, convention: str = "exact") -> float:
    """Area under the risk-coverage curve: the mean of its N risks.

    For unknown detection (Kim et al. 2021), pool the unknown samples as errors.

    - exact: the mean over the orders within each tie.
    - kim: ties stay in the order of the rows, as in the authors' stable sort.

    Args:
        score: (N,) confidence, any unit.
        correct: (N,) bool, accepting the sample is right; False for every unknown sample.
        convention: exact or kim.

    Returns:
        In [0, 1], lower is better; the papers print it times 1000.

    Raises:
        ValueError: score is empty or holds a NaN, or correct is not (N,) bool.
    """
    score, correct = _checked(score, correct)
    if chosen(convention, "exact", "kim") == "exact":
        return sum(map(risks, pieces(score, correct, score[:0]))) / len(score)
    order = np.argsort(-score.astype(np.float64), kind="stable")
    errors = np.cumsum(~correct[order])
    return float((errors / np.arange(1, len(score) + 1)).mean())


def e_aurc(score: np.ndarray, correct: np.ndarray, *, convention: str = "exact") -> float:
    """Excess AURC over a perfect ranking, in Geifman et al. 2019.

    With r the risk at full coverage:

        E-AURC = AURC - (r + (1 - r) ln(1 - r))

    Arguments and errors are those of `aurc`. The subtracted area is the limit of large N, so
    a perfect ranking of few samples is slightly above 0.
    """
    least = least_risk(np.mean(~flags(correct)))
    return aurc(score, correct, convention=convention) - float(least)


def augrc(score: np.ndarray, correct: np.ndarray) -> float:
    """Area under the generalised risk-coverage curve, in Traub et al. 2024 (arXiv 2407.01032).

    The generalised risk is the rate of samples that are accepted and wrong: coverage times
    selective risk. With e(c) the errors among the surest share c of the N samples, straight
    between neighbouring samples and within a tie, its mean over all coverages is

        AUGRC = integral over c in [0, 1] of e(c) / N
              = (1 - AUROC) a (1 - a) + (1 - a)^2 / 2

    with a the share of right samples and AUROC that of right against wrong ones, ties counting
    half. Each error counts by how many samples follow it, and not, as in `aurc`, by how few stand
    before it.

    Args:
        score: (N,) confidence, any unit.
        correct: (N,) bool, accepting the sample is right; False for every unknown sample.

    Returns:
        In [0, 1/2], lower is better; 0 if nothing is wrong, 1/2 if everything is.

    Raises:
        ValueError: score is empty or holds a NaN, or correct is not (N,) bool.
    """
    score, correct = _checked(score, correct)
    areas = (np.trapezoid(p.size - p.right, p.size) for p in pieces(score, correct, score[:0]))
    return float(sum(areas)) / len(score) ** 2


def aurc_parts(score: np.ndarray, kind: np.ndarray) -> dict[str, float]:
    """What each kind of error adds to exact `aurc`; the parts sum to it.

    An AURC is a mean over prefixes of errors per accepted sample, and errors add up over kinds:

        part_k = (1 / N) sum_i e_k(i) / i,    e_k(i) the errors of kind k among the first i

    Args:
        score: (N,) confidence, any unit.
        kind: (N,) text, "" where accepting the sample is right, else which kind of error it is.

    Returns:
        Of each kind that occurs, sorted, its part, in [0, AURC].

    Raises:
        ValueError: score is empty or holds a NaN, or kind is not (N,) text.
    """
    kind = np.asarray(kind)
    if kind.ndim != 1 or not all(isinstance(word, str) for word in kind.tolist()):
        raise ValueError(f"kind needs (N,) text; got shape {kind.shape} of {kind.dtype}")
    names = sorted({*kind.tolist()} - {""})
    return {name: aurc(score, np.asarray(kind != name, bool)) for name in names}


def coverage_at_risk(score: np.ndarray, correct: np.ndarray, *, risk: float) -> tuple[float, float]:
    """The largest coverage whose selective risk is at most `risk`, in Geifman & El-Yaniv 2017.

    Samples that share a score are accepted together, so that a threshold gives the coverage:

        threshold = min {t : #{score >= t and wrong} <= risk #{score >= t}}

    The curve may rise and fall, so a higher threshold may break the limit. Chosen on the samples
    on which it is then reported, the coverage is on the optimistic side.

    Args:
        score: (N,) confidence, any unit.
        correct: (N,) bool, accepting the sample is right; False for every unknown sample.
        risk: largest share of errors among accepted samples, in [0, 1].

    Returns:
        (threshold, coverage): accept where score >= threshold; coverage in [0, 1]. (inf, 0.0) if
        no threshold stays within the risk.

    Raises:
        ValueError: score is empty or holds a NaN, correct is not (N,) bool, or risk is no rate.
    """
    score, correct = _checked(score, correct)
    if not 0 <= risk <= 1:
        raise ValueError(f"risk is a rate in [0, 1]; got {risk}")
    accepted = whole(score, correct, score[:0])
    size, right = accepted.size[1:], accepted.right[1:]
    within = np.flatnonzero(size - right <= risk * size * (1 + EPSILON))
    if not len(within):
        return np.inf, 0.0
    last = within[-1]
    return float(np.unique(score)[::-1][last]), float(size[last] / len(score))


def risks(piece: Counts) -> float:
    """A piece's share of the sum of the N risks of exact `aurc`; unknown samples are errors.

    A tie of m samples with e errors, after a samples with E errors, holds on average E + j e / m
    errors at its j-th place. With H the harmonic numbers its m risks add up to

        sum_j (E + j e / m) / (a + j) = e + (E - a e / m) (H_{a+m} - H_a)
    """
    errors = piece.size - piece.right
    sums = errors[1:] / piece.size[1:]  # where m = 1
    tied = np.flatnonzero(np.diff(piece.size) > 1)
    before, after = piece.size[tied], piece.size[tied + 1]
    wrong = errors[tied + 1] - errors[tied]
    at_first = errors[tied] - before * wrong / (after - before)
    sums[tied] = wrong + at_first * (harmonic(after) - harmonic(before))
    return float(sums.sum())


def least_risk(risk: np.ndarray) -> np.ndarray:
    """The AURC of a perfect ranking in the limit of large N, r + (1 - r) ln(1 - r)."""
    right = np.maximum(1 - np.asarray(risk), np.finfo(float).tiny)  # 0 ln 0 is 0
    return risk + right * np.log(right)


def harmonic(n: np.ndarray) -> np.ndarray:
    """The harmonic numbers H_n to about 1e-15, by a table and then by Euler and Maclaurin."""
    large = np.maximum(n, len(_HARMONIC))  # the first term left out, 1 / 252 n^6, is 1e-17
    tail = (1 / 2 - (1 / 12 - 1 / 120 / large**2) / large) / large
    small = _HARMONIC[np.minimum(n, len(_HARMONIC) - 1).astype(np.int64)]
    return np.where(n < len(_HARMONIC), small, np.log(large) + np.euler_gamma + tail)


_HARMONIC = np.cumsum(np.r_[0.0, 1 / np.arange(1, 256)])


def _checked(score: np.ndarray, correct: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both columns as arrays of one length, at least 1."""
    score, correct = column(score, "score"), flags(correct)
    if not len(score) or len(score) != len(correct):
        raise ValueError(
            f"need one boolean per score, at least one; got {len(score)} scores, "
            f"{len(correct)} booleans"
        )
    return score, correct
