"""Fitted rules beside slow and public ones, and what every rule makes of the digits."""

from decimal import MAX_EMAX, Decimal, localcontext
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.covariance import EmpiricalCovariance
from trained import KNOWN, digits

from osnb import metrics, scores
from osnb.base.labels import NEGATIVE, UNKNOWN
from osnb.base.outputs import Outputs
from osnb.datasets.vision import torchvision  # noqa: F401  # pytorch-ood, imported later, needs the guard
from osnb.scores import DISTANCES, POST_HOC, READ, SCORES, WEIGHTS

SETTINGS = {"tail": 8, "alpha": 3, "distance": "both", "weights": "ranked", "score": "log_odds"}
FITS = {"openmax": partial(scores.openmax, **SETTINGS), "mahalanobis": scores.mahalanobis}


def drawn(count, columns, *, seed=0, scale=1.0):
    """(out, column): logits whose largest is its column's, and features around its class."""
    rng = np.random.default_rng(seed)
    column = np.arange(count) % columns
    logits = rng.normal(0, scale, (count, columns))
    logits[np.arange(count), column] += 6 * scale
    features = rng.normal(0, 1, (count, 6)) @ rng.normal(0, 1, (6, 6)) + column[:, None]
    return Outputs(logits.astype(np.float32), features.astype(np.float32)), column


@pytest.fixture(params=FITS)
def fitted(request):
    """(fit, rule, tested): 4 classes, of which 160 samples are fitted and 30 others tested."""
    fit = FITS[request.param]
    rule = fit(*drawn(160, 4), known=4)
    return fit, rule, Outputs(*(3 * np.asarray(part) for part in drawn(30, 4, seed=1)[0][:2]))


# OpenMax


def slow_distance(z, mean, kind):
    euclidean = sum((a - b) ** 2 for a, b in zip(z, mean, strict=True)) ** 0.5
    dot = sum(a * b for a, b in zip(z, mean, strict=True))
    cosine = 1 - dot / (sum(a * a for a in z) * sum(b * b for b in mean)) ** 0.5
    return {"euclidean": euclidean, "cosine": cosine, "both": euclidean / 200 + cosine}[kind]


def slow_weibull(tail):
    """(shape, scale) by bisection of the likelihood's derivative in 60 digits."""
    with localcontext() as context:
        context.prec, context.Emax = 60, MAX_EMAX
        x = [Decimal(float(d)) + 10_000 - Decimal(float(min(tail))) for d in tail]
        log = [each.ln() for each in x]
        low, high = Decimal(1), Decimal(10) ** 9
        for _ in range(120):
            k = (low + high) / 2
            power = [(k * each).exp() for each in log]
            mean = sum(p * each for p, each in zip(power, log, strict=True)) / sum(power)
            low, high = (k, high) if mean - 1 / k - sum(log) / len(log) <= 0 else (low, k)
        return k, (sum(power) / len(power)) ** (1 / k)


def slow_openmax(train, column, tested, *, tail, alpha, distance, weights):
    """(N, C + 1) probabilities, a sample and a class at a time, that of the unknown last."""
    logits, classes = train.logits.astype(float), range(train.logits.shape[1])
    right = [row for row, z in enumerate(logits) if z.argmax() == column[row]]
    means, fits = [], []
    for c in classes:
        own = [logits[row] for row in right if column[row] == c]
        means.append([sum(values) / len(own) for values in zip(*own, strict=True)])
        far = sorted(slow_distance(z, means[c], distance) for z in own)[-tail:]
        fits.append((min(far), *slow_weibull(far)))
    found = []
    for z in tested.logits.astype(float):
        revised, unknown = list(z), 0.0
        for rank, c in enumerate(sorted(classes, key=lambda c: -z[c])[:alpha], start=1):
            least, shape, scale = fits[c]
            x = Decimal(float(slow_distance(z, means[c], distance) - least)) + 10_000
            chance = 1 - float((-((x / scale) ** shape)).exp())
            weight = (alpha + 1 - rank) / alpha if weights == "ranked" else 0.5
            revised[c] = z[c] * (1 - weight * chance)
            unknown += z[c] - revised[c]
        power = np.exp(np.array([*revised, unknown]) - max(*revised, unknown))
        found.append(power / power.sum())
    return np.array(found)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_openmax_matches_its_definition_written_out(distance, weights):
    train, column = drawn(90, 4)
    column = np.where(np.arange(90) % 10, column, 0)  # so that some are classified wrongly
    tested = drawn(20, 4, seed=1, scale=1.5)[0]
    settings = {"tail": 8, "alpha": 3, "distance": distance, "weights": weights}
    p = slow_openmax(train, column, tested, **settings)
    expected = {
        "probability": 1 - p[:, -1],
        "log_odds": np.log(p[:, :-1].sum(axis=1)) - np.log(p[:, -1]),
        "max_softmax": p[:, :-1].max(axis=1),
    }
    assert np.ptp(p[:, -1]) > 0
    for score in READ:
        rule = scores.openmax(train, column, known=4, score=score, **settings)
        np.testing.assert_allclose(rule(tested, known=4), expected[score], rtol=1e-7)


@pytest.mark.parametrize("spread", [1e-3, 0.1, 10])
def test_the_weibull_distribution_is_at_least_as_likely_as_scipys(spread):
    from scipy.stats import weibull_min

    far = spread * np.random.default_rng(0).gamma(5, 1, 40)
    logits = np.column_stack([far, np.zeros(40)])
    _, least, shape, scale = scores.rules._fit_tail(logits, 0, 20, lambda z, mean: z[:, 0])
    x = np.sort(far)[-20:] - least + 10_000
    theirs = weibull_min.fit(x, floc=0)
    ours = weibull_min.logpdf(x, shape, 0, scale).sum()
    assert ours >= weibull_min.logpdf(x, *theirs).sum() - 1e-9


def test_openmax_log_odds_order_as_probability_and_never_tie_at_1():
    train, column = drawn(160, 4)
    tested = Outputs(np.float32([[gap, 1, 0, 0] for gap in (60, 80, 100)]), None)
    p, odds = (
        scores.openmax(train, column, known=4, **{**SETTINGS, "tail": 2, "score": score})
        for score in ("probability", "log_odds")
    )
    many = drawn(50, 4, seed=2)[0]
    order = np.argsort(odds(many, known=4))
    assert (np.diff(p(many, known=4)[order]) >= 0).all()
    assert np.isfinite(odds(tested, known=4)).all()


def test_a_generated_class_is_one_more_and_counts_as_unknown():
    train, column = drawn(200, 5)
    labels = np.where(column == 4, NEGATIVE, column)
    settings = SETTINGS | {"alpha": 5}
    tested = drawn(20, 5, seed=1)[0]
    p = slow_openmax(
        train, column, tested, tail=8, alpha=5, distance="both", weights=settings["weights"]
    )
    rule = scores.openmax(train, labels, known=4, **settings | {"score": "probability"})
    np.testing.assert_allclose(rule(tested, known=4), p[:, :4].sum(axis=1), rtol=1e-7)
    rule = scores.openmax(train, labels, known=4, **settings)
    assert rule(tested, known=4)[4::5].max() < rule(tested, known=4)[:4].min()


# Mahalanobis


def test_mahalanobis_matches_scikit_learn_and_pytorch_ood():
    from pytorch_ood.detector import Mahalanobis

    train, column = drawn(160, 4)
    tested = drawn(30, 4, seed=1)[0]
    ours = scores.mahalanobis(train, column, known=4)(tested, known=4)
    f = train.features.astype(float)
    mean = np.stack([f[column == c].mean(axis=0) for c in range(4)])
    shared = EmpiricalCovariance(assume_centered=True).fit(f - mean[column])
    far = [shared.mahalanobis(tested.features - each) for each in mean]
    np.testing.assert_allclose(ours, -np.min(far, axis=0), rtol=1e-9)

    theirs = Mahalanobis(None)  # half the distance, by the sum and not the mean of squares
    theirs.fit_features(torch.from_numpy(train.features), torch.from_numpy(column))
    expected = -2 * 160 * theirs.predict_features(torch.from_numpy(tested.features)).numpy()
    np.testing.assert_allclose(ours, expected, rtol=1e-2)  # float32


# Laws of all


def test_a_rule_is_for_the_classes_and_columns_that_it_was_fitted_for(fitted):
    _, rule, tested = fitted
    with pytest.raises(ValueError, match=r"fitted for \(known, columns\) \(4, .\); got \(3, .\)"):
        rule(tested, known=3)
    wide = Outputs(*(np.column_stack([part, part]) for part in tested[:2]))
    with pytest.raises(ValueError, match=r"fitted for .*; got \(4, (8|12)\)"):
        rule(wide, known=4)


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (np.full(160, UNKNOWN), "labels of training, from -1 to 3; got -2"),
        (np.full(160, 4), "labels of training, from -1 to 3; got 4"),
        (np.zeros(160), r"need \(160,\) integers; got \(160,\) of float64"),
        (np.zeros(9, int), r"need \(160,\) integers; got \(9,\)"),
    ],
)
def test_labels_that_no_training_has_are_refused(fitted, labels, reason):
    with pytest.raises(ValueError, match=reason):
        fitted[0](drawn(160, 4)[0], labels, known=4)


@pytest.mark.parametrize(
    ("name", "count", "reason"),
    [
        ("openmax", 31, "8 rightly classified training samples of each class; class 3 has 7"),
        ("mahalanobis", 9, "10 in all for 4 means and 6 features; got 2 of class 1, 9 in all"),
        ("mahalanobis", 3, "a sample of each class and 10 in all .* got 0 of class 3"),
    ],
)
def test_too_few_samples_are_refused(name, count, reason):
    train, column = drawn(count, 4)
    with pytest.raises(ValueError, match=reason):
        FITS[name](train, column, known=4)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"alpha": 0}, "alpha from 1 to their number, tail >= 2; got 4, 0, 8"),
        ({"alpha": 5}, "got 4, 5, 8"),
        ({"tail": 1}, "got 4, 3, 1"),
        ({"known": 2}, "need up to 3 columns"),
    ],
)
def test_settings_of_openmax_out_of_range_are_refused(changes, reason):
    train, column = drawn(160, 4)
    with pytest.raises(ValueError, match=reason):
        scores.openmax(train, column, **{"known": 4} | SETTINGS | changes)


def test_a_tail_without_a_spread_is_refused():
    train = Outputs(np.repeat(np.eye(4), 9, axis=0), None)
    with pytest.raises(ValueError, match="distances that differ; the 8 of class 0 are all"):
        scores.openmax(train, np.repeat(np.arange(4), 9), known=4, **SETTINGS)


# Digits


def rules():
    """Every rule by name, the fitted ones on the training digits."""
    net = digits()
    found = {**SCORES, **POST_HOC}
    for name, fit in FITS.items():
        found[name] = fit(net.train, net.labels, known=KNOWN)
    return found


@pytest.mark.parametrize("name", [*SCORES, *POST_HOC, *FITS])
def test_known_digits_rank_above_unknown_ones(name):
    net = digits()
    score = rules()[name](net.test, known=KNOWN)
    assert metrics.auroc(score[net.tested >= 0], score[net.tested < 0]) > 0.8
