"""Rules of 2019 to 2025 that read features, the last layer or whole rows of logits.

Each is ``fit(seen, ...) -> rule``, then ``rule(out, known=K)``, higher meaning more known: a sign
is turned where a paper's score grows with novelty. Below, f is a sample's feature, z its logits, p
the softmax of the K known ones, y the largest of them; w and b are the rows of the last layer.
A matrix product stands in most of them, so last digits may depend on the rows scored together.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from osnb.base.catalogue import Catalogue
from osnb.base.labels import NEGATIVE
from osnb.base.outputs import Outputs
from osnb.scores.rules import (
    Rule,
    Score,
    _columns,
    _features,
    _log_sum,
    _logits,
    _rule,
    _whitening,
    mahalanobis,
)

BLOCK = 1 << 23  # distances at a time: 64 MiB
ROUNDING = 1e-6  # of a length: what is left of one that is 0 but for rounding, by far


class Seen(NamedTuple):
    """What rules are fitted on: training samples, and the layer that makes logits of features.

    Attributes:
        out: logits (N, C) and features (N, D), network in evaluation mode.
        labels: (N,) integers, a class in [0, K) or NEGATIVE, which is left out.
        known: K, the first columns that are known classes.
        weight: (C, D) of the last layer.
        bias: (C,) of it.
    """

    out: Outputs
    labels: np.ndarray
    known: int
    weight: np.ndarray
    bias: np.ndarray


def gen(seen: Seen, *, gamma: float, top: int) -> Rule:
    """GEN, in Liu et al. 2023: - sum over the `top` largest p_c of (p_c (1 - p_c))^gamma.

    1 - p is summed from the other classes: 1e-20 to the power of 0.1 is 0.01, and not 0.
    """

    def score(z: np.ndarray, _: np.ndarray) -> np.ndarray:
        p, best = _softmax(z), z.argmax(axis=1)[:, None]
        others = p.copy()
        np.put_along_axis(others, best, 0, axis=1)
        rest = 1 - p
        np.put_along_axis(rest, best, others.sum(axis=1, keepdims=True), axis=1)
        largest = np.argsort(-z, axis=1, kind="stable")[:, :top]
        return -(np.take_along_axis(p * rest, largest, axis=1) ** gamma).sum(axis=1)

    return _fitted(seen, score)


def knn(seen: Seen, *, k: int) -> Rule:
    """KNN, in Sun et al. 2022: - |f / |f| - g|, g the k-th nearest f / |f| of the training."""
    bank = _unit(_known(seen)[1])
    if not 1 <= k <= len(bank):
        raise ValueError(f"need k in [1, {len(bank)}], the training samples; got {k}")

    def score(_: np.ndarray, f: np.ndarray) -> np.ndarray:
        near, step = np.empty(len(f)), max(1, BLOCK // len(bank))
        for start in range(0, len(f), step):
            cosine = _unit(f[start : start + step]) @ bank.T
            near[start : start + step] = np.partition(cosine, -k, axis=1)[:, -k]
        return -np.sqrt(np.maximum(2 - 2 * near, 0))

    return _fitted(seen, score)


def residual(seen: Seen, *, dim: int) -> Rule:
    """Residual, in Wang et al. 2022 (section 4.1): - |R (f - o)|, o = - W^+ b.

    R projects off the principal subspace: the `dim` first eigenvectors of sum (f - o)(f - o)' over
    the training samples, whose mean is not taken off.
    """
    origin, off = _null(seen, dim)
    return _fitted(seen, lambda _, f: -_length((f - origin) @ off))


def vim(seen: Seen, *, dim: int) -> Rule:
    """ViM, in Wang et al. 2022: log sum_c exp z_c - alpha |R (f - o)|, R and o as in `residual`.

    alpha is the mean of the largest logit over that of |R (f - o)|, both on training samples. The
    paper's softmax of the virtual logit orders samples in the same way.

    Raises:
        ValueError: training samples lie in the subspace, so that alpha has no value.
    """
    z, f, _ = _known(seen)
    origin, off = _null(seen, dim)
    rest = _length((f - origin) @ off).mean()
    if rest <= ROUNDING * _length(f - origin).mean():
        raise ValueError(f"the training features lie in {dim} directions; need a smaller dim")
    alpha = z.max(axis=1).mean() / rest
    return _fitted(seen, lambda z, f: _log_sum(z) - alpha * _length((f - origin) @ off))


def rmd(seen: Seen) -> Rule:
    """RMD, in Ren et al. 2021: - min_c (M_c(f) - M_0(f)).

    M_c is the squared distance of `mahalanobis` to class c, M_0 that to one normal distribution of
    all known training samples.
    """
    f, near = _known(seen)[1], mahalanobis(seen.out, seen.labels, known=seen.known)
    mean = f.mean(axis=0)
    whiten = _whitening(f - mean)

    def score(z: np.ndarray, f: np.ndarray) -> np.ndarray:
        moved = (f - mean) @ whiten
        return near(Outputs(z, f), known=seen.known) + (moved**2).sum(axis=1)

    return _fitted(seen, score)


def fdbd(seen: Seen) -> Rule:
    """fDBD, in Liu & Qin 2024: mean over c != y of (z_y - z_c) / (|w_y - w_c| |f - mu|).

    This is the mean distance to the boundaries of the predicted class, over that to the mean mu of
    the training features.
    """
    mean, w = _known(seen)[1].mean(axis=0), _layer(seen)[0]
    apart = _length(w[:, None] - w)
    np.fill_diagonal(apart, 1)
    if len(w) < 2 or not apart.all():
        raise ValueError(f"need 2 classes or more whose weights differ; got {len(w)}")

    def score(z: np.ndarray, f: np.ndarray) -> np.ndarray:
        gaps = (z.max(axis=1, keepdims=True) - z) / apart[z.argmax(axis=1)]
        return gaps.sum(axis=1) / (len(w) - 1) / _positive(_length(f - mean))

    return _fitted(seen, score)


def nci(seen: Seen, *, alpha: float) -> Rule:
    """NCI, in Liu & Qin 2025: w_y (f - mu) / |f - mu| + alpha |f|_1, mu the mean in training."""
    mean, w = _known(seen)[1].mean(axis=0), _layer(seen)[0]

    def score(z: np.ndarray, f: np.ndarray) -> np.ndarray:
        along = np.vecdot(w[z.argmax(axis=1)], f - mean) / _positive(_length(f - mean))
        return along + alpha * np.abs(f).sum(axis=1)

    return _fitted(seen, score)


def she(seen: Seen) -> Rule:
    """SHE, in Zhang et al. 2023: f s_y, s_c the mean feature of c's rightly classified samples."""
    z, f, y = _known(seen)
    right = z.argmax(axis=1) == y
    count = np.bincount(y[right], minlength=seen.known)
    if not count.all():
        raise ValueError(f"need a right prediction of each class; class {count.argmin()} has none")
    patterns = np.stack([f[right & (y == c)].mean(axis=0) for c in range(seen.known)])
    return _fitted(seen, lambda z, f: np.vecdot(f, patterns[z.argmax(axis=1)]))


def kl_matching(seen: Seen) -> Rule:
    """KL matching, in Hendrycks et al. 2022: - min_c KL(p || d_c).

    d_c is the mean softmax of the samples that are predicted as c, whatever their label; classes
    that are never predicted have none. The paper takes validation samples.
    """
    z, _, _ = _known(seen)
    log_p, predicted = z - _log_sum(z)[:, None], z.argmax(axis=1)
    parts = [log_p[predicted == c] for c in np.unique(predicted)]
    typical = [_log_sum(part.T) - np.log(len(part)) for part in parts]

    def score(z: np.ndarray, _: np.ndarray) -> np.ndarray:
        p, log_p = _softmax(z), z - _log_sum(z)[:, None]
        return -np.min([np.vecdot(p, log_p - log_d) for log_d in typical], axis=0)

    return _fitted(seen, score)


def temperature(out: Outputs, labels: np.ndarray, *, known: int) -> float:
    """The T of temperature scaling, in Guo et al. 2017: likeliest softmax of z / T.

    The likelihood is concave in 1 / T; its slope, the mean of z_y - sum_c p_c z_c, has one root.

    Args:
        out: logits (N, C) of validation samples, of which the first K columns count.
        labels: (N,) integers, a class in [0, K) or NEGATIVE, which is left out.
        known: K.

    Returns:
        T > 0; above 1 the softmax was too sure.

    Raises:
        ValueError: as `mahalanobis`, or all predictions are right, so that T would be 0, or logits
            say nothing of the labels.
    """
    from scipy.optimize import brentq

    z, y = _logits(out, known)[:, :known], _columns(labels, len(out.logits), known)
    z, y = z[y < known], y[y < known]
    right = np.take_along_axis(z, y[:, None], axis=1)[:, 0]

    def slope(log_inverse: float) -> float:
        return (right - np.vecdot(_softmax(z * np.exp(log_inverse)), z)).mean()

    low, high = np.log(1e-6), np.log(1e6)
    if not len(z) or not slope(low) > 0 > slope(high):
        raise ValueError(
            "need validation samples of which some, not all, are classified rightly: no "
            f"temperature between 1e-6 and 1e6 is the likeliest for these {len(z)}"
        )
    return float(np.exp(-brentq(slope, low, high, xtol=1e-12)))


def zero_shot(images: np.ndarray, texts: np.ndarray, *, temperature: float) -> Outputs:
    """Logits of a network that compares images with texts: cos(image, text) / temperature.

    `max_softmax` of the known names alone is MCM, in Ming et al. 2022. With negative words behind
    them, ``READ["probability"]`` is NegLabel, in Jiang et al. 2024, without its groups.

    Args:
        images: (N, D) embeddings.
        texts: (C, D) embeddings, the K known classes first.
        temperature: > 0.

    Returns:
        logits (N, C) and no features.

    Raises:
        ValueError: shapes do not fit, or the temperature is not above 0.
    """
    images, texts = (np.asarray(each, np.float64) for each in (images, texts))
    if images.ndim != 2 or texts.ndim != 2 or images.shape[1] != texts.shape[1]:
        raise ValueError(f"need (N, D) images and (C, D) texts; got {images.shape}, {texts.shape}")
    if not temperature > 0:
        raise ValueError(f"need a temperature above 0; got {temperature}")
    return Outputs(_unit(images) @ _unit(texts).T / temperature)


def _fitted(seen: Seen, score: Score) -> Rule:
    """The score as a rule for outputs as those in training."""
    return _rule((seen.known, _known(seen)[1].shape[1]), score)


def _known(seen: Seen) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logits (M, K), features (M, D) and labels (M,) of the known training samples, checked."""
    features = _features(seen.out, seen.known)
    labels = _columns(seen.labels, len(features), seen.known)
    kept = np.asarray(seen.labels) != NEGATIVE
    if not kept.any():
        raise ValueError(f"need training samples of known classes; got none in {len(kept)}")
    return _logits(seen.out, seen.known)[kept, : seen.known], features[kept], labels[kept]


def _layer(seen: Seen) -> tuple[np.ndarray, np.ndarray]:
    """(K, D) weights and (K,) biases of the known classes, checked."""
    weight, bias = (np.asarray(each, np.float64) for each in (seen.weight, seen.bias))
    wanted = seen.out.logits.shape[1], seen.out.features.shape[1]
    if weight.shape != wanted or bias.shape != wanted[:1]:
        raise ValueError(f"need weights {wanted} and biases; got {weight.shape}, {bias.shape}")
    return weight[: seen.known], bias[: seen.known]


def _null(seen: Seen, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Origin (D,), and (D, D - dim) directions off the principal subspace."""
    f = _known(seen)[1]
    weight, bias = _layer(seen)
    if not 1 <= dim < f.shape[1]:
        raise ValueError(f"need a dim in [1, {f.shape[1]}), below the features'; got {dim}")
    origin = -np.linalg.pinv(weight) @ bias
    _, vectors = np.linalg.eigh((f - origin).T @ (f - origin))
    return origin, vectors[:, : f.shape[1] - dim]


def _softmax(z: np.ndarray) -> np.ndarray:
    return np.exp(z - _log_sum(z)[:, None])


def _length(rows: np.ndarray) -> np.ndarray:
    return np.sqrt((rows**2).sum(axis=-1))


def _positive(length: np.ndarray) -> np.ndarray:
    return np.maximum(length, np.finfo(np.float64).tiny)


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / _positive(_length(rows))[:, None]


def _principal(seen: Seen) -> int:
    """ViM's 1000 of more than 1500 features, 512 of fewer; of few, as pytorch-ood, a half."""
    size = seen.out.features.shape[1]
    return 1000 if size > 1500 else 512 if size > 512 else size // 2


# with the settings of their sources: of KNN those for CIFAR-10; of NCI OpenOOD's
FITTED = Catalogue(
    gen=partial(gen, gamma=0.1, top=100),
    knn=partial(knn, k=50),
    residual=lambda seen: residual(seen, dim=_principal(seen)),
    vim=lambda seen: vim(seen, dim=_principal(seen)),
    rmd=rmd,
    fdbd=fdbd,
    nci=partial(nci, alpha=1e-4),
    she=she,
    kl_matching=kl_matching,
)
