"""Scoring rules: logits to one number per sample, higher meaning more known.

Every rule is called as ``rule(out, known=K)``. The softmax runs over all C columns, then the
first K of them, the known classes, are kept: a background column is dropped after normalising
and before any maximum (equation 6 in Palechor et al. 2023). `with_background` keeps it.

Probabilities are computed in float64 from float32 logits, and still tie: any p above 1 - 1e-16
is 1.0. The log-odds of a probability p, log p - log(1 - p), order the samples in the same way
without ever saturating, because they come straight from the logits:

    log_odds_c = z_c - log sum_{j != c} exp z_j

With a single column there is no other j: p is 1 and its log-odds +inf.
"""

from collections.abc import Callable, Sequence

import numpy as np

from osnb.base.catalogue import Catalogue
from osnb.base.labels import NEGATIVE
from osnb.base.outputs import Outputs

Rule = Callable[..., np.ndarray]
Score = Callable[[np.ndarray, np.ndarray], np.ndarray]  # of logits (N, K) and features (N, D)
SHIFT = 10_000.0  # libMR fits distances that are moved so that the smallest of the tail is here


def softmax(out: Outputs, *, known: int) -> np.ndarray:
    """Probabilities of the known classes, normalised over all columns.

    Args:
        out: logits (N, C) are used.
        known: K, the first columns that are known classes, in [1, C].

    Returns:
        (N, K) float64 in [0, 1]; a row sums to 1 if K = C, to less otherwise.

    Raises:
        ValueError: out is no Outputs, logits are not (N, C) finite numbers, or K is outside
            [1, C].
    """
    logits = _logits(out, known)
    weight = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weight[:, :known] / weight.sum(axis=1, keepdims=True)


def predicted(out: Outputs, *, known: int) -> np.ndarray:
    """(N,) int64, the known class with the largest logit, the first of several.

    Arguments and errors are those of `softmax`.
    """
    return _logits(out, known)[:, :known].argmax(axis=1)


def max_logit(out: Outputs, *, known: int) -> np.ndarray:
    """Maximum logit score, MLS in Vaze et al. 2022: max_{c < K} z_c.

    Arguments and errors are those of `softmax`. Returns (N,) float64.
    """
    return _logits(out, known)[:, :known].max(axis=1)


def max_softmax(out: Outputs, *, known: int) -> np.ndarray:
    """Maximum softmax probability, in Hendrycks & Gimpel 2017: max_{c < K} p_c.

    Arguments and errors are those of `softmax`. Returns (N,) float64 in [0, 1].
    """
    return softmax(out, known=known).max(axis=1)


def max_softmax_log_odds(out: Outputs, *, known: int) -> np.ndarray:
    """Log-odds of `max_softmax`.

    Arguments and errors are those of `softmax`. Returns (N,) float64 in nats.
    """
    return _log_odds(_logits(out, known), predicted(out, known=known))


def target(out: Outputs, labels: np.ndarray, *, known: int) -> np.ndarray:
    """Target score, the s of equation 6 in Palechor et al. 2023.

        p_y               if the label y is a known class
        max_{c < K} p_c   if it is negative or unknown

    Args:
        out: logits (N, C) are used.
        labels: (N,) integers, a class in [0, K), or below 0 for any other sample.
        known: K, the first columns that are known classes, in [1, C].

    Returns:
        (N,) float64 in [0, 1].

    Raises:
        ValueError: as `softmax`, or labels are not (N,) integers below K.
    """
    column = _target(out, labels, known)
    return np.take_along_axis(softmax(out, known=known), column[:, None], axis=1)[:, 0]


def target_log_odds(out: Outputs, labels: np.ndarray, *, known: int) -> np.ndarray:
    """Log-odds of `target`; same arguments and errors. Returns (N,) float64 in nats."""
    return _log_odds(_logits(out, known), _target(out, labels, known))


def with_background(rule: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """The rule with the background column, number K, counted as one more known class.

    The released code of Palechor et al. 2023 fills Table 2 in this way for BG: a known sample
    whose largest logit is the background is wrong, and an unknown sample scores high when it
    is taken for background. Equation 6 and their figures do not.

    Args:
        rule: any function of this room.

    Returns:
        A function of the same arguments, ``known`` still being K.
    """
    return lambda *args, known: rule(*args, known=known + 1)


def energy(out: Outputs, *, known: int, temperature: float = 1.0) -> np.ndarray:
    """Minus the energy, in Liu et al. 2020: T log sum_{c < K} exp(z_c / T).

    A background column is left out: it would raise the score of a sample that is sure of it.

    Args:
        out: logits (N, C) are used.
        known: K, the first columns that are known classes, in [1, C].
        temperature: T > 0; towards 0 the score becomes `max_logit`.

    Returns:
        (N,) float64, at least `max_logit` and at most T log K above it.

    Raises:
        ValueError: as `softmax`, or the temperature is not above 0.
    """
    if not temperature > 0:
        raise ValueError(f"need a temperature above 0; got {temperature}")
    return temperature * _log_sum(_logits(out, known)[:, :known] / temperature)


def negative_entropy(out: Outputs, *, known: int) -> np.ndarray:
    """Minus the entropy of the known classes: sum_{c < K} q_c log q_c.

    Here q is the softmax of the first K columns alone; with the background column among them, a
    sample that is sure of being none of the K would count as the most known of all.

    Arguments and errors are those of `softmax`. Returns (N,) float64 in nats, in [-log K, 0].
    """
    logits = _logits(out, known)[:, :known]
    gap = logits - logits.max(axis=1, keepdims=True)
    others = np.exp(gap)
    np.put_along_axis(others, gap.argmax(axis=1)[:, None], 0, axis=1)
    rest = others.sum(axis=1)  # without the largest's 1, beside which it would be lost
    return (others * gap).sum(axis=1) / (1 + rest) - np.log1p(rest)


def feature_norm(out: Outputs, *, known: int) -> np.ndarray:
    """Euclidean length of the features, in appendix B of Vaze et al. 2022: ||f||.

    Args:
        out: features (N, D) are used; logits (N, C) are checked.
        known: K, the first columns that are known classes, in [1, C].

    Returns:
        (N,) float64, >= 0.

    Raises:
        ValueError: as `softmax`, or features are not (N, D) finite numbers.
    """
    return np.sqrt((_features(out, known) ** 2).sum(axis=1))


def ensemble(outputs: Sequence[Outputs], *, mean: str) -> Outputs:
    """Several networks on the same samples, as one; every rule that reads logits takes it.

        logits     z_c = mean_m z_mc
        softmax    z_c = log mean_m p_mc    Deep Ensembles in Lakshminarayanan et al. 2017

    The softmax of the second is the mean softmax itself.

    Args:
        outputs: M >= 1 of them, logits (N, C) each, rows and columns in the same order.
        mean: one of `MEANS`, what is averaged.

    Returns:
        logits (N, C) float64 and no features: those of different networks have no common axes.

    Raises:
        ValueError: there are none, their shapes differ, or logits are not finite.
    """
    average = MEANS[mean]
    shapes = [np.shape(out.logits) for out in outputs]
    if len(set(shapes)) != 1:
        raise ValueError(f"need logits of one shape, from at least one network; got {shapes}")
    return Outputs(average(np.stack([_logits(out, 1) for out in outputs])), ())


def _logits(out: Outputs, known: int) -> np.ndarray:
    """(N, C) float64, checked. C order keeps each row's sum independent of the other rows."""
    if not hasattr(out, "logits"):
        raise ValueError(f"need Outputs, such as Outputs(logits); got {type(out).__name__}")
    logits = np.asarray(out.logits, dtype=np.float64, order="C")
    if logits.ndim != 2 or not 1 <= known <= logits.shape[1]:
        raise ValueError(f"need (N, C) logits and known in [1, C]; got {logits.shape}, {known}")
    if not np.isfinite(logits).all():
        row, column = np.argwhere(~np.isfinite(logits))[0]
        value = logits[row, column]
        raise ValueError(f"need finite logits; got {value} in row {row}, column {column}")
    return logits


def _target(out: Outputs, labels: np.ndarray, known: int) -> np.ndarray:
    """(N,) the column that `target` looks at."""
    labels, best = np.asarray(labels), predicted(out, known=known)
    if labels.shape != best.shape or labels.dtype.kind not in "iu":
        raise ValueError(f"need {best.shape} integers; got {labels.shape} of {labels.dtype}")
    if len(labels) and labels.max() >= known:
        raise ValueError(f"need labels below {known} known classes; got {labels.max()}")
    return np.where(labels >= 0, labels, best)


def _log_odds(logits: np.ndarray, column: np.ndarray) -> np.ndarray:
    """(N,) log p - log(1 - p) of one column in each row."""
    column = column[:, None]
    others = logits.copy()
    np.put_along_axis(others, column, -np.inf, axis=1)
    # The shift is the others' own maximum, so their sum is at least 1 and never underflows;
    # it stays finite where there are no others and the sum is 0.
    shift = others.max(axis=1, keepdims=True, initial=np.finfo(np.float64).min)
    with np.errstate(divide="ignore"):
        rest = np.log(np.exp(others - shift).sum(axis=1))
    return np.take_along_axis(logits, column, axis=1)[:, 0] - shift[:, 0] - rest


def columns(out: Outputs, labels: np.ndarray, *, known: int) -> dict[str, np.ndarray]:
    """The columns that a scores table gets from a network: `pred` and every rule of this room.

    Where the network has a background column, the two rules that the authors' Table 2 is made
    of come once more as `*_with_background`. Arguments and errors are those of `target`.
    """
    table = {"pred": predicted(out, known=known)}
    table["target"] = target(out, labels, known=known)
    table["target_log_odds"] = target_log_odds(out, labels, known=known)
    table |= {name: rule(out, known=known) for name, rule in SCORES.items()}
    if out.logits.shape[1] > known:
        table["target_with_background"] = with_background(target)(out, labels, known=known)
        table["max_softmax_with_background"] = with_background(max_softmax)(out, known=known)
    return table


def _mean_softmax(logits: np.ndarray) -> np.ndarray:
    """(N, C) log of the mean softmax over the first axis; every p may underflow, no log p does."""
    log_p = logits - np.logaddexp.reduce(logits, axis=2, keepdims=True)
    return np.logaddexp.reduce(log_p, axis=0) - np.log(len(logits))


def _log_sum(logits: np.ndarray) -> np.ndarray:
    """(N,) log sum_c exp z_c; the shift is the row's maximum, so the sum is at least 1."""
    shift = logits.max(axis=1, keepdims=True)
    return shift[:, 0] + np.log(np.exp(logits - shift).sum(axis=1))


def _features(out: Outputs, known: int) -> np.ndarray:
    """(N, D) float64, checked, and the logits with them."""
    rows = len(_logits(out, known))
    features = np.asarray(out.features, np.float64, order="C")
    if features.ndim != 2 or len(features) != rows:
        came = features.shape if features.size else "none, as Outputs(logits) has"
        raise ValueError(f"need (N, D) features for {rows} logits; got {came}")
    if not np.isfinite(features).all():
        row = np.argwhere(~np.isfinite(features))[0][0]
        raise ValueError(f"need finite features; row {row} holds another")
    return features


# Rules that are fitted on the outputs of training samples: ``fit(train, labels, ...) -> rule``.


def openmax(
    train: Outputs,
    labels: np.ndarray,
    *,
    known: int,
    tail: int,
    alpha: int,
    distance: str,
    weights: str,
    score: str,
    of: str = "logits",
) -> Rule:
    """OpenMax, in Bendale & Boult 2016, with the settings of Kim et al. 2021.

    Of each class c, mu_c is the mean of the logits z of the training samples that are classified
    rightly, and W_c a Weibull distribution of the `tail` largest of their distances to mu_c. A
    sample's `alpha` largest logits then hand over what their distance speaks against, w_i being
    the weight of rank i:

        z'_c = z_c (1 - w_i W_c(d(z, mu_c)))        z_unknown = sum_c (z_c - z'_c)

    and P is the softmax over z' and z_unknown. Among equal logits the first ranks first.

    With one column more than known classes this is the rule of G-OpenMax (Ge et al. 2017): column
    K has learnt generated images (here OSRCI's, not theirs), whose label is NEGATIVE. It is
    calibrated as a class like any other, and P(unknown) is then its P and that of z_unknown
    together.

    In CROSR (Yoshihashi et al. 2019) distances are between features, which hold the logits and
    the latent numbers:

        d(x, c) = |[y, z] - mu_c|

    Args:
        train: logits (N, C) of training samples, C = K or K + 1, network in evaluation mode.
        labels: (N,) integers, a class in [0, K) or NEGATIVE, which without a column is left out.
        known: K, the first columns that are known classes.
        tail: distances per class to fit, >= 2; each class needs as many right samples.
        alpha: how many logits are recalibrated, in [1, C].
        distance: one of `DISTANCES`; Kim et al. take "both".
        weights: one of `WEIGHTS`; the original's are "ranked", Kim et al. use "half" for CIFAR.
        score: one of `READ`: "probability", 1 - P(unknown); "log_odds" of it, which orders the
            samples in the same way and never ties at 1; or "max_softmax", max_{c < K} P(c).
        of: what distances are between, "logits" or "features".

    Returns:
        A rule that takes outputs of C columns and the same `known`.

    Raises:
        ValueError: as `softmax`; a label or setting is out of range, a class has fewer than
            `tail` right samples, or all distances in its tail are equal.
    """
    logits, measure, read = _logits(train, known), DISTANCES[distance], READ[score]
    vectors = VECTORS[of](train, known)
    size = (known, logits.shape[1])
    if size[1] > known + 1 or not 1 <= alpha <= size[1] or tail < 2:
        raise ValueError(
            f"need up to {known + 1} columns, alpha from 1 to their number, tail >= 2; "
            f"got {size[1]}, {alpha}, {tail}"
        )
    share, column = WEIGHTS[weights](alpha), _columns(labels, len(logits), known)
    parts = _by_class(vectors, column, logits.argmax(axis=1) == column, size[1])
    fits = [_fit_tail(part, c, tail, measure) for c, part in enumerate(parts)]
    tails = [np.stack(values) for values in zip(*fits, strict=True)]

    def rule(out: Outputs, *, known: int) -> np.ndarray:
        logits = _logits(out, known)
        _same(size, (known, logits.shape[1]))
        places = VECTORS[of](out, known)
        return read(Outputs(_recalibrated(logits, places, share, tails, measure), ()), known=known)

    return rule


def mahalanobis(train: Outputs, labels: np.ndarray, *, known: int) -> Rule:
    """Minus the squared Mahalanobis distance to the nearest class, in Lee et al. 2018.

        max_{c < K} -(f - mu_c)' S^-1 (f - mu_c)

    mu_c is the mean of the features of class c, S the covariance about these means that all
    classes share, divided by the number of samples. Where S is singular its pseudo-inverse is
    taken: directions in which no training sample leaves its mean count for nothing.

    Args:
        train: features (N, D) of training samples, network in evaluation mode; rightly classified
            or not.
        labels: (N,) integers, a class in [0, K) or NEGATIVE, which is left out.
        known: K, the first columns that are known classes.

    Returns:
        A rule that takes outputs of D features and the same `known`. Its last digits may depend
        on how many rows are scored together: they pass through one matrix product.

    Raises:
        ValueError: as `feature_norm`; a label is out of range, a class has no sample, or there
            are fewer than K + D samples.
    """
    features = _features(train, known)
    column, size = _columns(labels, len(features), known), (known, features.shape[1])
    features, column = features[column < known], column[column < known]
    count = np.bincount(column, minlength=known)
    if count.min() < 1 or count.sum() < sum(size):
        raise ValueError(
            f"need a sample of each class and {sum(size)} in all for {size[0]} means and "
            f"{size[1]} features; got {count.min()} of class {count.argmin()}, {count.sum()} in all"
        )
    mean = np.stack([features[column == c].mean(axis=0) for c in range(known)])
    whiten = _whitening(features - mean[column])
    places = (mean - mean[0]) @ whiten

    def score(_: np.ndarray, features: np.ndarray) -> np.ndarray:
        moved = (features - mean[0]) @ whiten
        return -np.min([((moved - place) ** 2).sum(axis=1) for place in places], axis=0)

    return _rule(size, score)


def class_gaussians(train: Outputs, labels: np.ndarray, *, known: int) -> Rule:
    """Log density under the likeliest class's Gaussian, CGDL (Sun et al. 2020), as released.

        max_{c < K} log N(f; mu_c, S_c)

    mu_c and S_c are mean and covariance of the features of class c's training samples that are
    classified rightly; each class has its own S_c, where `mahalanobis` has one for all.

    Args:
        train: features (N, D) of training samples, network in evaluation mode.
        labels: (N,) integers, a class in [0, K) or NEGATIVE, which is left out.
        known: K.

    Returns:
        A rule that takes outputs with D features and the same `known`.

    Raises:
        ValueError: as `mahalanobis`, or a class has no more than D right samples.
    """
    features, column = _features(train, known), _columns(labels, len(train.logits), known)
    parts = _by_class(features, column, predicted(train, known=known) == column, known)
    size, few = (known, features.shape[1]), min(range(known), key=lambda c: len(parts[c]))
    if len(parts[few]) <= size[1]:
        raise ValueError(
            f"need more than D = {size[1]} rightly classified training samples of each "
            f"class; class {few} has {len(parts[few])}: train longer, or with fewer features"
        )
    gaussians = [_gaussian(part, c) for c, part in enumerate(parts)]
    return _rule(size, lambda _, f: np.max([_log_density(f, *each) for each in gaussians], axis=0))


def _rule(size: tuple[int, int], score: Score) -> Rule:
    """The score, of known logits (N, K) and features (N, D), for outputs as those in training."""

    def rule(out: Outputs, *, known: int) -> np.ndarray:
        features = _features(out, known)
        _same(size, (known, features.shape[1]))
        return score(_logits(out, known)[:, :known], features)

    return rule


def _by_class(rows: np.ndarray, column: np.ndarray, right: np.ndarray, count: int) -> list:
    """The rows of each class that are classified rightly."""
    return [rows[right & (column == c)] for c in range(count)]


def _gaussian(features: np.ndarray, c: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean (D,) and lower root (D, D) of the covariance of class c's features (N, D)."""
    size = features.shape[1]
    spread = np.cov(features.T, ddof=1).reshape(size, size)
    if np.linalg.matrix_rank(spread) < size:
        raise ValueError(
            f"the features of class {c} do not vary in all {size} directions: its Gaussian "
            "has no density; use a network whose features are not cut at 0, such as ladder"
        )
    return features.mean(axis=0), np.linalg.cholesky(spread)


def _log_density(features: np.ndarray, mean: np.ndarray, root: np.ndarray) -> np.ndarray:
    """(N,) log N(f; mean, root root') in nats."""
    apart = np.linalg.solve(root, (features - mean).T)
    constant = len(mean) / 2 * np.log(2 * np.pi)
    return -(apart**2).sum(axis=0) / 2 - np.log(root.diagonal()).sum() - constant


def _fit_tail(logits: np.ndarray, c: int, tail: int, measure: Callable) -> tuple:
    """Mean, and lowest, shape and scale of the likeliest Weibull distribution of a class's tail.

    The derivative of the likelihood has one root in the shape, which is searched for. Nelder and
    Mead's method, as in scipy.stats.weibull_min.fit, stops short of it for distances below 0.1.
    """
    from scipy.optimize import brentq

    if len(logits) < tail:
        raise ValueError(
            f"need {tail} rightly classified training samples of each class; "
            f"class {c} has {len(logits)}: train longer, fit a shorter tail, or set rules=plain"
        )
    mean = logits.mean(axis=0)
    far = np.sort(measure(logits, mean))[-tail:]
    largest = far[-1] - far[0] + SHIFT
    log = np.log1p((far - far[-1]) / largest)  # of each over the largest
    if not log.mean() < 0:
        raise ValueError(f"need distances that differ; the {tail} of class {c} are all {far[0]}")

    def slope(shape: float) -> float:
        power = np.exp(shape * log)
        return (power * log).sum() / power.sum() - 1 / shape - log.mean()

    low = high = -1 / log.mean()  # below the root, since slope <= -1 / shape - mean log = 0
    while slope(high) <= 0:
        high *= 2
    shape = brentq(slope, low, high)
    return mean, far[0], shape, largest * np.mean(np.exp(shape * log)) ** (1 / shape)


def _recalibrated(
    logits: np.ndarray, places: np.ndarray, share: np.ndarray, tails: Sequence, measure: Callable
) -> np.ndarray:
    """(N, C + 1) logits z' and, last, that of the unknown; `tails`, by class, from `_fit_tail`."""
    mean, lowest, shape, scale = tails
    ranked = np.argsort(-logits, axis=1, kind="stable")[:, : len(share)]
    revised = np.column_stack([logits, np.zeros(len(logits))])
    rows = np.arange(len(logits))
    for weight, c in zip(share, ranked.T, strict=True):
        moved = measure(places, mean[c]) - lowest[c] + SHIFT
        power = shape[c] * np.log(np.maximum(moved, 1e-300) / scale[c])
        taken = weight * logits[rows, c] * -np.expm1(-np.exp(np.minimum(power, 700)))
        revised[rows, c] -= taken
        revised[:, -1] += taken
    return revised


def _euclidean(logits: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return np.sqrt(((logits - mean) ** 2).sum(axis=1))


def _cosine(logits: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """1 - cosine; of a vector without length, 1."""
    length = np.sqrt((logits**2).sum(axis=1) * (mean**2).sum(axis=-1))
    return 1 - (logits * mean).sum(axis=1) / np.maximum(length, 1e-300)


def _both(logits: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return 0.005 * _euclidean(logits, mean) + _cosine(logits, mean)


def _log_odds_known(out: Outputs, *, known: int) -> np.ndarray:
    """Log-odds of the first K columns together against the others."""
    sides = out.logits[:, :known], out.logits[:, known:]
    return np.subtract(*(np.logaddexp.reduce(side, axis=1) for side in sides))


def _probability_known(out: Outputs, *, known: int) -> np.ndarray:
    odds = _log_odds_known(out, known=known)
    return np.exp(-np.logaddexp(0, -odds))


def _whitening(centred: np.ndarray) -> np.ndarray:
    """(D, R) matrix W with W W' the pseudo-inverse of the covariance, of rank R."""
    values, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    kept = values > values[-1] * len(values) * np.finfo(np.float64).eps
    return vectors[:, kept] / np.sqrt(values[kept])


def _columns(labels: np.ndarray, count: int, known: int) -> np.ndarray:
    """(N,) the column that each sample was trained towards; K for a negative one."""
    labels = np.asarray(labels)
    if labels.shape != (count,) or labels.dtype.kind not in "iu":
        raise ValueError(f"need {(count,)} integers; got {labels.shape} of {labels.dtype}")
    wrong = labels[(labels < NEGATIVE) | (labels >= known)]
    if len(wrong):
        raise ValueError(f"need labels of training, from {NEGATIVE} to {known - 1}; got {wrong[0]}")
    return np.where(labels == NEGATIVE, known, labels)


def _same(fitted: tuple[int, int], given: tuple[int, int]) -> None:
    """Hold (known, columns) against those that a rule was fitted for."""
    if fitted != given:
        raise ValueError(f"fitted for (known, columns) {fitted}; got {given}")


DISTANCES = Catalogue(euclidean=_euclidean, cosine=_cosine, both=_both)
VECTORS = Catalogue(logits=_logits, features=_features)
WEIGHTS = Catalogue(  # of the ranks 1 to alpha
    ranked=lambda alpha: np.arange(alpha, 0, -1) / alpha,
    half=lambda alpha: np.full(alpha, 0.5),
)
READ = Catalogue(probability=_probability_known, log_odds=_log_odds_known, max_softmax=max_softmax)
SCORES = Catalogue({f.__name__: f for f in (max_softmax, max_softmax_log_odds, max_logit)})
MEANS = Catalogue(logits=lambda logits: logits.mean(axis=0), softmax=_mean_softmax)
POST_HOC = Catalogue(energy=energy, negative_entropy=negative_entropy, feature_norm=feature_norm)
