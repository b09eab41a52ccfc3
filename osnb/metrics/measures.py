"""Metrics of known against unknown: is a sample known, and is it classified or refused.

`auroc`, `average_precision` and `fpr_at_tpr` ask the first alone; the others ask both at once.
Selective prediction (`aurc` and its kin) accepts the surest first and watches the errors.
Calibration (`calibration_error`, `brier`): does a probability mean what it says.
"""

import numpy as np

from osnb.metrics.counts import Counts, both, chosen, column, flags, pieces, whole

EPSILON = 1e-12  # in floats 0.29 * 100 is below 29


def accuracy(correct: np.ndarray) -> float:
    """Closed-set accuracy, the share of known samples whose prediction is right.

    Args:
        correct: (K,) bool.

    Returns:
        In [0, 1].

    Raises:
        ValueError: correct is empty or not (K,) bool.
    """
    correct = flags(correct)
    if not len(correct):
        raise ValueError("need at least one known sample; got 0")
    return float(correct.mean())


def oscr(
    known: np.ndarray, correct: np.ndarray, unknown: np.ndarray, *, convention: str = "exact"
) -> tuple[np.ndarray, np.ndarray]:
    """Open-set classification rate curve, after FPR and CCR in Dhamija et al. 2018.

    A tie counts as accepted in both rates. At threshold t:

        CCR(t) = #{known: score >= t and prediction right} / #known
        FPR(t) = #{unknown: score >= t} / #unknown

    Conventions, as the authors' released code computes them:

    - exact: the origin, then every distinct score.
    - palechor: the distinct scores of the known samples but the largest, with > for >=;
      their known score is the target class's.
    - bisgin: the distinct scores of the unknown samples.
    - arpl (Chen et al. 2021, also Vaze et al. 2022): sample by sample, CCR after m - 1 samples
      against FPR after m. Where theirs depends on the order of tied rows, this is the lowest
      curve that an order can give: unknown first, then wrong, then right.

    Args:
        known: (K,) scores of known test samples, any unit.
        correct: (K,) bool, the closed-set prediction is right.
        unknown: (U,) scores of unknown or negative test samples, same unit.
        convention: exact, palechor, bisgin or arpl.

    Returns:
        (fpr, ccr), each (T,) in [0, 1] and non-decreasing, highest threshold first. Exact goes
        from (0, 0) to (1, accuracy); palechor is empty if all known scores are equal.

    Raises:
        ValueError: an input is empty, a score is NaN, or correct is not (K,) bool.
    """
    both(known, unknown)
    false, right = _points(whole(known, correct, unknown), convention)
    return false / len(unknown), right / len(known)


def oscr_area(
    known: np.ndarray, correct: np.ndarray, unknown: np.ndarray, *, convention: str = "exact"
) -> float:
    """Area under `oscr` by trapezoids, in [0, accuracy]; AUROC if every prediction is right.

    Arguments and errors are those of `oscr`.
    """
    both(known, unknown)
    if convention == "exact":
        return float(sum(map(area, pieces(known, correct, unknown))))
    fpr, ccr = oscr(known, correct, unknown, convention=convention)
    return float(np.trapezoid(ccr, fpr))


def ccr_at_fpr(
    known: np.ndarray,
    correct: np.ndarray,
    unknown: np.ndarray,
    *,
    fpr: float,
    convention: str = "exact",
) -> float:
    """Correct classification rate at a false positive rate, a column of Palechor et al.'s Table 2.

    Conventions, each on the points that `oscr` gives under the same name:

    - exact: the largest FPR not above the one asked for.
    - palechor: the nearest FPR (of two, the larger); NaN, their dash, if it is 10 % or more off.
    - bisgin: the largest FPR strictly below; NaN if there is none.

    Args:
        known: (K,) scores of known test samples, any unit.
        correct: (K,) bool, the closed-set prediction is right.
        unknown: (U,) scores of unknown or negative test samples, same unit.
        fpr: the rate asked for, in (0, 1].
        convention: exact, palechor or bisgin.

    Returns:
        In [0, accuracy], or NaN as said above.

    Raises:
        ValueError: as `oscr`, or fpr is outside (0, 1].
    """
    chosen(convention, "exact", "palechor", "bisgin")
    if not 0 < fpr <= 1:
        raise ValueError(f"fpr needs a rate in (0, 1]; got {fpr}")
    both(known, unknown)
    if convention == "exact":
        return float(right_at(whole(known, correct, unknown), fpr)[0])
    rates, ccr = oscr(known, correct, unknown, convention=convention)
    if convention == "palechor":
        return _nearest(rates, ccr, fpr)
    below = np.flatnonzero(rates < fpr)
    return float(ccr[below[-1]]) if len(below) else np.nan


def confidence(
    known_target: np.ndarray, other_max: np.ndarray, *, offset: float
) -> dict[str, float]:
    """Validation confidence, equation 7 in Palechor et al. 2023.

    With s the softmax, y the target class of a known sample and c over the K known classes:

        gamma+ = mean over known samples of s_y
        gamma- = mean over the others of 1 - max_c s_c + offset
        gamma  = (gamma+ + gamma-) / 2, the best epoch has the largest

    Args:
        known_target: (N,) probability of each known sample's target class.
        other_max: (M,) largest probability of a known class, negative or unknown samples.
        offset: 1 / K for a network of K outputs, whose maximum cannot fall below that;
            0 for one with a background class.

    Returns:
        dict with gamma_plus, gamma_minus and gamma.

    Raises:
        ValueError: an input is empty, or holds no probabilities.
    """
    both(known_target, other_max)
    known, other = column(known_target, "known_target"), column(other_max, "other_max")
    inside(known)
    inside(other)
    plus = float(known.mean(dtype=np.float64))
    minus = float(1 - other.mean(dtype=np.float64) + offset)
    return {"gamma_plus": plus, "gamma_minus": minus, "gamma": (plus + minus) / 2}


def openness(*, training: int, target: int, testing: int) -> float:
    """Openness of a problem, in Scheirer et al. 2013.

        1 - sqrt(2 training / (target + testing))

    Args:
        training: classes seen in training.
        target: classes to be recognised.
        testing: classes seen in testing.

    Returns:
        Below 1; 0 if the three numbers are equal.

    Raises:
        ValueError: a number is below 1.
    """
    if min(training, target, testing) < 1:
        raise ValueError(f"need at least one class each; got {training}, {target}, {testing}")
    return 1 - (2 * training / (target + testing)) ** 0.5


def area(piece: Counts) -> np.ndarray:
    """A piece's share of `oscr_area`, whole numbers up to the division."""
    twice = np.vecdot(np.diff(piece.unknown), piece.right[..., 1:] + piece.right[..., :-1])
    return twice / (2 * piece.all_unknown * piece.all_known)


def right_at(piece: Counts, fpr: np.ndarray) -> np.ndarray:
    """Exact `ccr_at_fpr` at each of F rates, (..., F), from the last piece that starts below."""
    known, unknown = (np.expand_dims(n, -1) for n in (piece.all_known, piece.all_unknown))
    last = _places(piece.unknown / unknown, fpr, "right") - 1
    return np.take_along_axis(piece.right, last, axis=-1) / known


def _points(accepted: Counts, convention: str) -> tuple[np.ndarray, np.ndarray]:
    """(unknown, right) accepted at each point of the curve under a convention."""
    _, known, right, unknown, *_ = accepted
    if chosen(convention, "exact", "palechor", "bisgin", "arpl") == "exact":
        return unknown, right
    if convention == "palechor":  # > t accepts what the score before t does
        at = np.flatnonzero(np.diff(known))[1:]
        return unknown[at], right[at]
    if convention == "bisgin":
        at = np.flatnonzero(np.diff(unknown)) + 1
        return unknown[at], right[at]
    # Within a score: its first unknown, its last unknown, then all but its last right one.
    first = unknown[:-1] + (np.diff(unknown) > 0)
    last = right[1:] - (np.diff(right) > 0)
    false = np.column_stack([first, unknown[1:], unknown[1:]]).ravel()
    return np.r_[0, false], np.r_[0, np.column_stack([right[:-1], right[:-1], last]).ravel()]


def _nearest(rates: np.ndarray, ccr: np.ndarray, fpr: float) -> float:
    """CCR at the nearest rate, the last of several; NaN if that is 10 % or more off."""
    error = np.abs(rates - fpr)[::-1]
    if not len(error) or error.min() / fpr >= 0.1:
        return np.nan
    return float(ccr[::-1][error.argmin()])


# Known or unknown alone.


def auroc(known: np.ndarray, unknown: np.ndarray, *, convention: str = "exact") -> float:
    """Area under the ROC curve: the chance that a known sample outscores an unknown one.

        exact: P(known > unknown) + P(known = unknown) / 2
        kim:   P(known > unknown); every tie counts against the detector

    The code of Kim et al. 2021 and of ARPL (so of Vaze et al. 2022) follows kim.

    Args:
        known: (K,) scores of known test samples, rightly classified or not, any unit.
        unknown: (U,) scores of unknown test samples, same unit.
        convention: exact or kim.

    Returns:
        In [0, 1]; 1/2 means no better than chance.

    Raises:
        ValueError: an input is empty or a score is NaN.
    """
    chosen(convention, "exact", "kim")
    both(known, unknown)
    wrong = np.zeros(len(known), bool)
    return float(sum(roc_area(piece, convention) for piece in pieces(known, wrong, unknown)))


def average_precision(
    known: np.ndarray, unknown: np.ndarray, *, convention: str = "exact"
) -> float:
    """Average precision of finding the unknown samples, lowest score first.

    With P and R the precision and recall of refusing all scores up to the i-th lowest:

        exact:   sum_i (R_i - R_{i-1}) P_i
        openood: sum_i (R_i - R_{i-1}) (P_i + P_{i-1}) / 2, P_0 = 1

    Args:
        known: (K,) scores of known test samples, any unit.
        unknown: (U,) scores of unknown test samples, same unit.
        convention: exact (also scikit-learn, Vaze et al. 2022) or openood (OpenOOD v1.5).

    Returns:
        In [0, 1]; chance is U / (K + U).

    Raises:
        ValueError: an input is empty or a score is NaN.
    """
    chosen(convention, "exact", "openood")
    both(known, unknown)
    wrong = np.zeros(len(known), bool)
    if convention == "exact":
        return float(sum(map(precision, pieces(known, wrong, unknown))))
    accepted = whole(known, wrong, unknown)
    recall = 1 - accepted.unknown / len(unknown)
    return float(-np.trapezoid(np.append(_precisions(accepted), 1.0), recall))


def fpr_at_tpr(
    known: np.ndarray, unknown: np.ndarray, *, tpr: float, convention: str = "exact"
) -> float:
    """False positive rate at a true positive rate; FPR95 is the one at 0.95.

    - exact: share of unknowns accepted at the highest threshold that accepts at least
      ``tpr`` of the knowns.
    - kim: the same where the accepted share of knowns, counted sample by sample, is nearest to
      ``tpr``, at the lowest threshold that has it. Of two as near in floats, it is the larger;
      of 9 and 10 of 10 knowns at .95, floats say 9. Ties count against the detector.
    - openood (OpenOOD v1.5): unknown is the positive class. Share of knowns refused at the
      lowest threshold that refuses at least ``tpr`` of the unknowns.

    Args:
        known: (K,) scores of known test samples, any unit.
        unknown: (U,) scores of unknown test samples, same unit.
        tpr: the rate asked for, in (0, 1].
        convention: exact, kim or openood.

    Returns:
        In [0, 1], lower is better.

    Raises:
        ValueError: an input is empty, a score is NaN, or tpr is outside (0, 1].
    """
    if not 0 < tpr <= 1:
        raise ValueError(f"tpr needs a rate in (0, 1]; got {tpr}")
    chosen(convention, "exact", "kim", "openood")
    both(known, unknown)
    accepted = whole(known, np.zeros(len(known), bool), unknown)
    if convention == "kim":
        return _false_nearest(accepted, tpr)
    exact = convention == "exact"
    return float(false_at(accepted, tpr)) if exact else _false_refused(accepted, tpr)


def roc_area(piece: Counts, convention: str = "exact") -> np.ndarray:
    """A piece's share of `auroc`, whole numbers up to the division."""
    tied = piece.known[..., :-1] if convention == "kim" else piece.known[..., 1:]
    twice = np.vecdot(np.diff(piece.unknown), piece.known[..., :-1] + tied)
    return twice / (2 * piece.all_known * piece.all_unknown)


def precision(piece: Counts) -> np.ndarray:
    """A piece's share of exact `average_precision`."""
    return np.vecdot(np.diff(piece.unknown), _precisions(piece)) / piece.all_unknown


def false_at(piece: Counts, tpr: float) -> np.ndarray:
    """Exact `fpr_at_tpr`, (...), from the piece that reaches it."""
    first = _places(piece.known / np.expand_dims(piece.all_known, -1), tpr, "left")
    return np.take_along_axis(piece.unknown, first, axis=-1)[..., 0] / piece.all_unknown


def _places(rates: np.ndarray, wanted: np.ndarray, side: str) -> np.ndarray:
    """(..., F) where each of F rates belongs in every row of rising ones."""
    places = [np.searchsorted(row, wanted, side) for row in np.atleast_2d(rates)]
    return np.reshape(places, (*rates.shape[:-1], -1))


def _precisions(piece: Counts) -> np.ndarray:
    """(..., T) share of unknowns among all samples with this score or a lower one."""
    known, unknown = (np.expand_dims(n, -1) for n in (piece.all_known, piece.all_unknown))
    refused = known + unknown - piece.size[..., :-1]  # 0 where a resample lacks the lowest scores
    return (unknown - piece.unknown[..., :-1]) / np.maximum(refused, 1)


def _false_nearest(accepted: Counts, tpr: float) -> float:
    """`fpr_at_tpr` after kim: all that lies above the next known sample, or ties with it."""
    taken = np.arange(accepted.all_known, -1, -1)
    taken = taken[np.abs(taken / accepted.all_known - tpr).argmin()]
    following = np.searchsorted(accepted.known[:-1], taken, "right")
    return float(accepted.unknown[following] / accepted.all_unknown)


def _false_refused(accepted: Counts, tpr: float) -> float:
    """`fpr_at_tpr` after openood."""
    refused = (accepted.all_unknown - accepted.unknown) / accepted.all_unknown
    at = np.flatnonzero(refused >= tpr)[-1]
    return float((accepted.all_known - accepted.known[at]) / accepted.all_known)


# Selective prediction.


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


# Calibration: does a probability mean what it says, of the known samples.


def calibration_error(
    probability: np.ndarray, correct: np.ndarray, *, bins: int, binning: str = "width"
) -> float:
    """Expected calibration error, in Naeini et al. 2015 and Guo et al. 2017 (equation 3).

        ECE = sum_b (n_b / N) |share right in b - mean probability in b|

    - width: B bins of equal width, ((b - 1) / B, b / B], as in Guo et al.; 0 is in the first.
    - mass: B bins of equally many samples, by rank; a tie may be cut, in the order of the rows.

    Its value depends on both choices, and leans upwards where bins hold few samples.

    Args:
        probability: (N,) of the predicted class, in [0, 1].
        correct: (N,) bool, the prediction is right.
        bins: B, 15 in Guo et al.
        binning: width or mass.

    Returns:
        In [0, 1].

    Raises:
        ValueError: the columns do not fit, hold no probabilities, or there is no bin.
    """
    probability, correct = column(probability, "probability"), flags(correct)
    if not len(probability) or len(probability) != len(correct) or bins < 1:
        sizes = f"{len(probability)} probabilities, {len(correct)} booleans, {bins} bins"
        raise ValueError(f"need one boolean per probability, and at least one bin; got {sizes}")
    inside(probability)
    if chosen(binning, "width", "mass", name="binning") == "width":
        of = np.searchsorted(np.arange(1, bins) / bins, probability)  # 0.07 * 100 is above 7
    else:
        ranks = np.argsort(np.argsort(probability, kind="stable"), kind="stable")
        of = ranks * bins // len(ranks)
    gaps = np.bincount(of, correct - probability.astype(np.float64), minlength=bins)
    return float(np.abs(gaps).sum() / len(of))


def brier(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Brier score of several classes, in Brier 1950: mean of sum_c (p_c - [c = y])^2.

    Args:
        probabilities: (N, K) in [0, 1], of known samples.
        labels: (N,) integers, a class in [0, K).

    Returns:
        In [0, 2] if rows sum to 1; half of it is another convention of two classes.

    Raises:
        ValueError: the shapes do not fit, a label is no class, or these are no probabilities.
    """
    p, labels = np.asarray(probabilities, np.float64), np.asarray(labels)
    if p.ndim != 2 or not len(p) or labels.shape != p.shape[:1] or labels.dtype.kind not in "iu":
        raise ValueError(f"need (N, K) probabilities and N integers; got {p.shape}, {labels.shape}")
    inside(p)
    if labels.min() < 0 or labels.max() >= p.shape[1]:
        raise ValueError(f"need labels in [0, {p.shape[1]}); got {labels.min()} to {labels.max()}")
    right = np.take_along_axis(p, labels[:, None], axis=1)[:, 0]
    return float(((p**2).sum(axis=1) + 1 - 2 * right).mean())


def inside(p: np.ndarray, what: str = "probabilities") -> None:
    """Refuse numbers outside [0, 1], and NaN."""
    if not (p.min() >= 0 and p.max() <= 1):
        raise ValueError(f"need {what} in [0, 1]; got {p.min()} to {p.max()}")
