"""Losses: ``f(out, labels, **settings) -> (N,)``, one value per sample, the mean is the loop's.

Labels are (N,), or a ValueError says so. Their values are trusted here: they are checked once,
where batches are made, because a check inside the step would wait for the device.
"""

import math

from torch import Tensor, bincount, distributed, stack, where
from torch.nn.functional import one_hot
from torch.special import digamma, gammaln

from osnb.base import user
from osnb.base.catalogue import Catalogue
from osnb.base.labels import NEGATIVE
from osnb.base.outputs import Outputs


def softmax(out: Outputs, labels: Tensor) -> Tensor:
    """Cross-entropy over the known classes, equations 1 to 3 of Palechor et al. 2023 (S).

        J(x) = -log s_y(x)   if y >= 0,   0   if y == NEGATIVE

    Args:
        out: logits (N, K) are used.
        labels: (N,) int64, a class in [0, K) or NEGATIVE, which costs nothing.

    Returns:
        (N,) in nats, >= 0.
    """
    return where(labels == NEGATIVE, 0.0, _cross_entropy(out.logits, labels))


def background(out: Outputs, labels: Tensor, *, weights: Tensor, division: str) -> Tensor:
    """Weighted cross-entropy with the negatives as class K, equations 1 and 4 (BG).

        J(x) = -w_y log s_y(x),   y = K if negative

    Args:
        out: logits (N, K + 1), the background class last.
        labels: (N,) int64, a class in [0, K) or NEGATIVE.
        weights: (K + 1,) price of each class, such as `class_weights`.
        division: "rows", the mean divides by N as equation 1 says; "weights", it divides by
            the batch's sum of weights as the released code does: then a row's value depends
            on the other rows.

    Returns:
        (N,) in nats, >= 0.
    """
    target = where(labels == NEGATIVE, out.logits.shape[1] - 1, labels)
    weight = weights.to(out.logits)[target]
    return weight * _cross_entropy(out.logits, target) * DIVISIONS[division](weight)


def entropic(out: Outputs, labels: Tensor, *, weight: float) -> Tensor:
    """Entropic open-set loss, J_E in Dhamija et al. 2018, equation 5 of Palechor et al. (EOS).

    A known sample pays cross-entropy. A negative sample pays cross-entropy against the
    uniform distribution, so it is cheapest when all K known classes are equally likely.

        J(x) = -log s_y(x)                      if y >= 0
        J(x) = -(weight / K) sum_c log s_c(x)   if y == NEGATIVE

    Args:
        out: logits (N, K) are used.
        labels: (N,) int64, a class in [0, K) or NEGATIVE.
        weight: price of one negative, in units of one known sample, > 0.

    Returns:
        (N,) in nats, >= 0.
    """
    log_s = out.logits.log_softmax(dim=1)
    known = -_named(log_s, labels)
    return where(labels == NEGATIVE, -weight * log_s.mean(dim=1), known)


def objectosphere(
    out: Outputs, labels: Tensor, *, weight: float, margin: float, scale: float
) -> Tensor:
    """Objectosphere loss, J_R in Dhamija et al. 2018: `entropic` and a price on feature length.

        J(x) = J_E(x) + scale max(margin - |f(x)|, 0)^2   if y >= 0
        J(x) = J_E(x) + scale |f(x)|^2                    if y == NEGATIVE

    Args:
        out: logits (N, K) and features (N, D) are used.
        labels: (N,) int64, a class in [0, K) or NEGATIVE.
        weight: as in `entropic`.
        margin: length that a known sample's features should reach, xi, > 0.
        scale: price of the second term, lambda, > 0.

    Returns:
        (N,) in nats, >= 0.
    """
    known = entropic(out, labels, weight=weight)
    square = out.features.square().sum(dim=1)
    # a gradient of sqrt exists everywhere but at 0, where a dead network's features lie
    short = (margin - square.clamp(min=1e-12).sqrt()).clamp(min=0)
    price = where(labels == NEGATIVE, square, short.square())
    return known + scale * price


def smoothed(out: Outputs, labels: Tensor, *, smoothing: float) -> Tensor:
    """Cross-entropy against softened labels, as Vaze et al. 2022 state and run it (Sec. D.2).

        J(x) = -sum_c t_c log s_c(x),   t_y = 1 - s,   t_c = s / (K - 1) for the others

    torch spreads its own s over all K classes: there this is label_smoothing = s K / (K - 1).

    Args:
        out: logits (N, K) are used.
        labels: (N,) int64, a class in [0, K) or NEGATIVE, which costs nothing.
        smoothing: s, what the true class gives to the others, in [0, 1]; 0 is `softmax`.

    Returns:
        (N,) in nats, >= 0.
    """
    log_s = out.logits.log_softmax(dim=1)
    true = _named(log_s, labels)
    others = (log_s.sum(dim=1) - true) / max(log_s.shape[1] - 1, 1)
    return where(labels == NEGATIVE, 0.0, -(1 - smoothing) * true - smoothing * others)


def arpl(out: Outputs, labels: Tensor, *, weight: float, smoothing: float = 0.0) -> Tensor:
    """Adversarial reciprocal points, Chen et al. 2021, as they and Vaze et al. 2022 run it.

    The head `models.HEADS["arpl"]` has the points and the radius R. A sample should lie within
    R of its class's point, less a margin of 1:

        J(x) = `smoothed` + weight max(0, d_y - R + 1),   d_c = |x - p_c|^2 / D

    Args:
        out: logits (N, K) and slack (N, K), which is d - R, are used.
        labels: (N,) int64, a class in [0, K) or NEGATIVE, which costs nothing.
        weight: price of the second term, lambda; theirs is 0.1.
        smoothing: as in `smoothed`.

    Returns:
        (N,) in nats, >= 0.
    """
    price = (_named(out.slack, labels) + 1).clamp(min=0)
    known = smoothed(out, labels, smoothing=smoothing) + weight * price
    return where(labels == NEGATIVE, 0.0, known)


def rpl(out: Outputs, labels: Tensor, *, weight: float, smoothing: float = 0.0) -> Tensor:
    """Reciprocal points, Chen et al. 2020, as Chen et al. 2021 release it.

    The head `models.HEADS["rpl"]` has the points and the radius R:

        J(x) = `smoothed` + weight (d_y - R)^2,   d_c = |x - p_c|^2 / D

    Args:
        out: logits (N, K) and slack (N, K), which is d - R, are used.
        labels: (N,) int64, a class in [0, K) or NEGATIVE, which costs nothing.
        weight: price of the second term, lambda; theirs is 0.1.
        smoothing: as in `smoothed`.

    Returns:
        (N,) in nats, >= 0.
    """
    price = _named(out.slack, labels).square()
    known = smoothed(out, labels, smoothing=smoothing) + weight * price
    return where(labels == NEGATIVE, 0.0, known)


def joint(out: Outputs, labels: Tensor, *, weight: float) -> Tensor:
    """Cross-entropy and a second price of the image, which the network itself measures.

        J(x) = -log s_y(x) + weight r(x),   s the softmax of the logits

    In CROSR (Yoshihashi et al. 2019) r is how badly x is rebuilt, see `models.dhrnet`; in
    OpenHybrid (Zhang et al. 2020) it is -log p of the features of x, see `models.Flow`.

    Args:
        out: logits (N, C) and slack (N, 1), which is r, are used.
        labels: (N,) int64, a class in [0, C) or NEGATIVE, which costs nothing.
        weight: price of the second term.

    Returns:
        (N,) in nats, plus `weight` times the unit of r.
    """
    known = softmax(out, labels) + weight * out.slack[:, 0]
    return where(labels == NEGATIVE, 0.0, known)


def edl(out: Outputs, labels: Tensor, *, weight: float) -> Tensor:
    """Evidential deep learning, equation 3 of Sensoy et al. 2018 and their divergence (EDL).

    Logits z are evidence for a Dirichlet distribution over the classes' probabilities. Evidence
    for the true class is wanted, and none for the others:

        alpha_c = 1 + exp(clamp(z_c, -10, 10)),   S = sum_c alpha_c
        J(x) = ln S - ln alpha_y + weight KL(Dir(alpha~) || Dir(1)),   alpha~ is alpha, but 1 at y

    Computed in float64: the divergence is what numbers of 10^5 leave of each other.

    Args:
        out: logits (N, K) are used.
        labels: (N,) int64, a class in [0, K) or NEGATIVE, which costs nothing.
        weight: price of the divergence, lambda, constant; that of Kim et al. 2021 is not published.

    Returns:
        (N,) in nats, >= 0, of the logits' dtype.
    """
    alpha = 1 + out.logits.double().clamp(-10, 10).exp()
    known = alpha.sum(dim=1).log() - _named(alpha, labels).log()
    others = where(one_hot(labels.clamp(min=0), alpha.shape[1]) > 0, 1.0, alpha)
    price = known + weight * _from_flat(others)
    return where(labels == NEGATIVE, 0.0, price).to(out.logits.dtype)


def class_weights(labels: Tensor, *, classes: int) -> Tensor:
    """Weights of equation 4: w_c = N / (C N_c), so that every class weighs the same.

    Args:
        labels: (N,) int64 training labels in [0, C - 1), NEGATIVE is class C - 1.
        classes: C, the background class counted.

    Returns:
        (C,) float32; their mean over the samples is 1.

    Raises:
        ValueError: a class has no sample, or a label is out of range.
    """
    if (odd := (labels < NEGATIVE) | (labels >= classes - 1)).any():
        came = labels[odd].unique().tolist()
        raise ValueError(f"need labels in [0, {classes - 1}), or {NEGATIVE}; got {came}")
    target = where(labels == NEGATIVE, classes - 1, labels)
    counts = bincount(target, minlength=classes)
    if (counts == 0).any():
        empty = (counts == 0).nonzero().flatten().tolist()
        raise ValueError(f"every class needs a sample; none of {classes} has label {empty}")
    return len(labels) / (classes * counts.float())


def _cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return -_named(logits.log_softmax(dim=1), labels)


def _named(values: Tensor, labels: Tensor) -> Tensor:
    """(N,) of values (N, C), each row's at its label; of a negative's, the first.

    Raises:
        ValueError: labels are not (N,); `gather` would leave rows out, or give one for all.
    """
    if labels.shape != values.shape[:1]:
        came = f"{tuple(labels.shape)} for outputs {tuple(values.shape)}"
        raise ValueError(f"need one label for each row; got labels {came}")
    return values.gather(1, labels.clamp(min=0)[:, None]).squeeze(1)


def _from_flat(alpha: Tensor) -> Tensor:
    """(N,) KL(Dir(alpha) || Dir(1)) in nats, of alpha (N, K)."""
    total = alpha.sum(dim=1)
    scale = gammaln(total) - gammaln(alpha).sum(dim=1) - math.lgamma(alpha.shape[1])
    return scale + ((alpha - 1) * (digamma(alpha) - digamma(total)[:, None])).sum(dim=1)


def _by_weights(weight: Tensor) -> Tensor:
    """Rows by sum of weights, of the whole batch where processes share it."""
    sums = stack([weight.new_full((), len(weight)), weight.sum()])
    if distributed.is_initialized():
        distributed.all_reduce(sums)
    return sums[0] / sums[1]


DIVISIONS = Catalogue(rows=lambda _: 1.0, weights=_by_weights)

LOSSES = Catalogue(
    softmax=softmax,
    background=background,
    entropic=entropic,
    objectosphere=objectosphere,
    smoothed=smoothed,
    arpl=arpl,
    rpl=rpl,
    edl=edl,
    joint=joint,
)


class Taught(Catalogue):
    """Roles of the images that a loss is trained on, by its name; one's own says it in its file."""

    def __missing__(self, name):
        return user.taught(name) if ":" in name else super().__missing__(name)


# some price negatives, the others never see one
TAUGHT = Taught(dict.fromkeys(LOSSES, ("known",)))
TAUGHT |= dict.fromkeys(("background", "entropic", "objectosphere"), ("known", "negative"))
