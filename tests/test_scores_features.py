"""Rules that read features: each beside its definition in plain numbers and beside pytorch-ood."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from trained import KNOWN, digits

from osnb import metrics, scores
from osnb.base.labels import NEGATIVE, UNKNOWN
from osnb.base.outputs import Outputs
from osnb.datasets.vision import torchvision  # noqa: F401  # pytorch-ood needs its guard
from osnb.experiment import cached
from osnb.scores import FITTED, Seen, features

D, K, DIM, NEAREST, ALPHA = 8, 4, 3, 5, 0.01
FITS = dict(FITTED) | {
    "knn": partial(features.knn, k=NEAREST),
    "residual": partial(features.residual, dim=DIM),
    "vim": partial(features.vim, dim=DIM),
    "nci": partial(features.nci, alpha=ALPHA),
    "gen": partial(features.gen, gamma=0.1, top=3),
}


def drawn(count, *, scale=1.0, seed=0, layer=None):
    """(out, labels, weight, bias) of features around four places, as after a ReLU."""
    rng = np.random.default_rng(seed)
    places = 2 * np.abs(np.random.default_rng(9).normal(size=(K, D)))
    weight = 0.4 * (places - places.mean(axis=0)) + 0.05 * rng.normal(size=(K, D))
    weight, bias = layer or (weight, -np.vecdot(weight, places + places.mean(axis=0)) / 2)
    labels = np.arange(count) % K
    f = np.maximum(rng.normal(size=(count, D)) + places[labels], 0) * scale
    return Outputs(f @ weight.T + bias, f), labels, weight, bias


def seen(count=120, **how):
    out, labels, weight, bias = drawn(count, **how)
    return Seen(out, labels, K, weight, bias)


def others(of, *, scale=1.5):
    return drawn(30, scale=scale, seed=1, layer=(of.weight, of.bias))[0]


# The definitions, a sample at a time


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def norm(a):
    return math.sqrt(dot(a, a))


def minus(a, b):
    return [x - y for x, y in zip(a, b, strict=True)]


def mean(rows):
    return [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]


def softmax(z):
    total = math.fsum(math.exp(x - max(z)) for x in z)
    return [math.exp(x - max(z)) / total for x in z]


def log_sum(z):
    return max(z) + math.log(math.fsum(math.exp(x - max(z)) for x in z))


def best(z):
    return max(range(len(z)), key=lambda c: z[c])


def slow_gen(of, z, f):
    p = sorted(softmax(z), reverse=True)
    rest = [math.fsum(x for j, x in enumerate(p) if j != c) for c in range(len(p))]
    return -math.fsum((a * b) ** 0.1 for a, b in list(zip(p, rest, strict=True))[:3])


def slow_knn(of, z, f):
    bank = [[x / norm(g) for x in g] for g in of.out.features]
    unit = [x / norm(f) for x in f]
    return -sorted(norm(minus(unit, g)) for g in bank)[NEAREST - 1]


def off(of):
    """Origin, and R by an eigenvalue problem without symmetry, from scratch."""
    origin = -of.weight.T @ np.linalg.solve(of.weight @ of.weight.T, of.bias)  # W^+ of full rank
    moved = of.out.features - origin
    left, _, _ = np.linalg.svd(moved.T, full_matrices=True)
    return origin, left[:, DIM:]


def slow_residual(of, z, f):
    origin, directions = off(of)
    return -norm([dot(minus(f, origin), column) for column in directions.T])


def slow_vim(of, z, f):
    lengths = [-slow_residual(of, None, g) for g in of.out.features]
    largest = [max(z) for z in of.out.logits]
    alpha = math.fsum(largest) / math.fsum(lengths)
    return log_sum(z) + alpha * slow_residual(of, z, f)


def distance(f, place, rows):
    """Squared Mahalanobis distance to a place, by the covariance of centred rows."""
    covariance = sum(np.outer(row, row) for row in rows) / len(rows)
    return dot(minus(f, place), np.linalg.solve(covariance, minus(f, place)))


def slow_rmd(of, z, f):
    g, y = of.out.features, of.labels
    places = [mean(g[y == c]) for c in range(K)]
    centred = [minus(row, places[c]) for row, c in zip(g, y, strict=True)]
    background = distance(f, mean(g), [minus(row, mean(g)) for row in g])
    return -min(distance(f, place, centred) - background for place in places)


def slow_fdbd(of, z, f):
    c, away = best(z), norm(minus(f, mean(of.out.features)))
    gaps = [abs(z[c] - z[j]) / norm(minus(of.weight[c], of.weight[j])) for j in range(K) if j != c]
    return math.fsum(gaps) / len(gaps) / away


def slow_nci(of, z, f):
    moved = minus(f, mean(of.out.features))
    return dot(of.weight[best(z)], moved) / norm(moved) + ALPHA * math.fsum(abs(x) for x in f)


def slow_she(of, z, f):
    right = [best(z) == y for z, y in zip(of.out.logits, of.labels, strict=True)]
    rows = [
        g for g, r, y in zip(of.out.features, right, of.labels, strict=True) if r and y == best(z)
    ]
    return dot(f, mean(rows))


def slow_kl_matching(of, z, f):
    p, kl = softmax(z), []
    for c in range(K):
        typical = mean([softmax(row) for row in of.out.logits if best(row) == c])
        kl.append(math.fsum(a * math.log(a / b) for a, b in zip(p, typical, strict=True)))
    return -min(kl)


@pytest.mark.parametrize("name", FITTED)
def test_the_rule_is_its_definition_read_slowly(name):
    of = seen()
    out = others(of)
    slow = globals()[f"slow_{name}"]
    wanted = [slow(of, z, f) for z, f in zip(*(each.tolist() for each in out[:2]), strict=True)]
    found = FITS[name](of)(out, known=K)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9)
    assert len({*found}) == len(found)


def test_a_class_that_a_softmax_rules_out_leaves_kl_matching_a_number():
    of = seen()
    logits = np.repeat(np.eye(K) * 800, 20, axis=0)
    labels = np.arange(K).repeat(20)
    sure = Seen(Outputs(logits, of.out.features[: len(logits)]), labels, K, of.weight, of.bias)
    found = FITS["kl_matching"](sure)(Outputs(logits[::20], of.out.features[:K]), known=K)
    np.testing.assert_allclose(found, 0, atol=1e-9)


@pytest.mark.parametrize("name", FITTED)
def test_negatives_and_a_background_column_change_nothing(name):
    of = seen()
    more = drawn(20, scale=5, seed=3)[0]
    wide = Outputs(*(np.concatenate(pair) for pair in zip(of.out[:2], more[:2], strict=True)))
    z = np.column_stack([wide.logits, np.full(140, 9.0)])
    layer = np.vstack([of.weight, np.ones(D)]), np.append(of.bias, 7)
    other = Seen(Outputs(z, wide.features), np.append(of.labels, [NEGATIVE] * 20), K, *layer)
    out = others(of)
    background = Outputs(np.column_stack([out.logits, np.full(30, 50.0)]), out.features)
    found = FITS[name](other)(background, known=K)
    np.testing.assert_allclose(found, FITS[name](of)(out, known=K), rtol=1e-9)


@pytest.mark.parametrize("name", FITTED)
def test_neither_order_of_training_samples_counts_nor_are_inputs_changed(name):
    of, order = seen(), np.random.default_rng(5).permutation(120)
    copies = [np.copy(each) for each in (*of.out[:2], of.labels, of.weight, of.bias)]
    other = of._replace(out=Outputs(*(x[order] for x in of.out[:2])), labels=of.labels[order])
    out = others(of)
    found = FITS[name](of)(out, known=K)
    np.testing.assert_allclose(FITS[name](other)(out, known=K), found, rtol=1e-9)
    for each, copy in zip((*of.out[:2], of.labels, of.weight, of.bias), copies, strict=True):
        np.testing.assert_array_equal(each, copy)


# pytorch-ood 0.4: ours is theirs, turned, times a factor


def theirs(name, of):
    """(their scores of `others`, the positive factor that makes ours of them)."""
    from pytorch_ood import detector

    layer = cached.head(of)
    pair = layer.weight, layer.bias
    made = {
        "gen": (detector.GEN(None, gamma=0.1, M=3), 3),  # a mean over the M
        "knn": (detector.KNN(None, k=NEAREST), 1),
        "vim": (detector.ViM(None, DIM, *pair), 1),
        "rmd": (detector.RMD(None), len(of.labels)),  # sums in place of covariances
        "fdbd": (detector.fDBD(None, layer), 1),
        "nci": (detector.NCI(None, layer, alpha=ALPHA), 1),
        "she": (detector.SHE(None, layer), 1),
        "kl_matching": (detector.KLMatching(None), 1),
    }
    found, factor = made[name]
    return cached.adapted(found, of)(others(of), known=K), factor


@pytest.mark.parametrize("name", [name for name in FITTED if name != "residual"])
def test_pytorch_ood_says_the_same_after_a_factor(name):
    of = seen()
    out = others(of)
    ours = FITS[name](of)(out, known=K)
    said, factor = theirs(name, of)
    if name == "gen":  # theirs takes 1 - p in float32, and cuts p and 1 - p off at 1e-7
        p = np.sort(scores.softmax(out, known=K), axis=1)
        sure = (p[:, -1] > 1 - 1e-4) | (p[:, -3] < 1e-6)
        assert 5 < sure.sum() < 25
        ours, said = ours[~sure], said[~sure]
    assert np.abs(said * factor - ours).max() < 1e-3 * ours.std()


def test_their_vim_is_residual_where_logits_say_nothing():
    """It has no Residual: ViM's difference from the log-sum-exp is alpha times it."""
    of = seen()
    out = others(of)
    energy = scores.energy(out, known=K)
    ratio = (energy - theirs("vim", of)[0]) / FITS["residual"](of)(out, known=K)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-4)


@pytest.mark.parametrize("name", cached.detectors())
def test_what_pytorch_ood_has_besides_tells_digits_apart(name):
    found = digits()
    layer = [part.detach().numpy() for part in found.model.head.parameters()]
    of = Seen(found.train, found.labels, KNOWN, *layer)
    score = cached.detectors()[name](of)(found.test, known=KNOWN)
    assert score.dtype == np.float64
    assert np.isfinite(score).all()
    known, unknown = score[found.tested >= 0], score[found.tested == UNKNOWN]
    assert metrics.auroc(known, unknown) > 0.75  # every rule here is between .81 and .97


def test_a_detector_that_reads_images_is_no_rule():
    from pytorch_ood.detector import MCD

    with pytest.raises(ValueError, match="need a detector that predicts features, feature_maps, l"):
        cached.adapted(MCD(torch.nn.Identity()), seen())


# Errors that public implementations have had


def test_logits_beyond_a_hundred_are_not_cut_off_in_vim():
    """pytorch-ood before 0.4 clamped them (kkirchheim/pytorch-ood, pull request 154)."""
    of = seen(scale=60)
    out = others(of, scale=60)
    assert (np.abs(out.logits) > 100).mean() > 0.5
    slow = [slow_vim(of, z, f) for z, f in zip(out.logits, out.features, strict=True)]
    np.testing.assert_allclose(FITS["vim"](of)(out, known=K), slow, rtol=1e-9)


def test_vim_and_residual_measure_from_the_origin_of_the_logits_and_not_from_the_mean():
    """Any feature may move along the bias if the origin moves too; centring would not see it."""
    of = seen()
    out, shift = others(of), np.random.default_rng(2).normal(size=D)
    shift = np.linalg.pinv(of.weight) @ (of.weight @ shift)  # within the rows of W
    moved = of._replace(
        out=Outputs(of.out.logits, of.out.features + shift), bias=of.bias - of.weight @ shift
    )
    for name in ("residual", "vim"):
        found = FITS[name](moved)(Outputs(out.logits, out.features + shift), known=K)
        np.testing.assert_allclose(found, FITS[name](of)(out, known=K), rtol=1e-9)
        centred = of._replace(bias=of.bias + 3)
        assert not np.allclose(FITS[name](centred)(out, known=K), FITS[name](of)(out, known=K))


def test_vim_has_the_directions_of_its_source_by_the_number_of_features():
    def directions(size):
        return features._principal(seen()._replace(out=Outputs(np.eye(2), np.eye(2, size))))

    sizes = (64, 512, 513, 1500, 1501)
    assert [*map(directions, sizes)] == [32, 256, 512, 512, 1000]


def test_the_directions_of_vim_are_real_where_features_are_not_of_full_rank():
    """numpy's `eig`, which the released code and OpenOOD call, may give complex ones."""
    of = seen()
    flat = of.out.features.copy()
    flat[:, 5:] = flat[:, :3]
    of = of._replace(out=Outputs(flat @ of.weight.T + of.bias, flat))
    assert np.isfinite(FITS["vim"](of)(others(of), known=K)).all()


def test_nnguide_scales_its_bank_by_energy_and_takes_the_mean_of_the_nearest():
    """OpenOOD divides by the length and then adds 1e-10, and takes the first of ordered rows."""
    of = seen()
    out, k = others(of), 10  # pytorch-ood's
    bank = [
        [x / norm(g) * log_sum(z) for x in g]
        for z, g in zip(of.out.logits, of.out.features, strict=True)
    ]
    wanted = []
    for z, f in zip(out.logits, out.features, strict=True):
        near = sorted((dot([x / norm(f) for x in f], g) for g in bank), reverse=True)[:k]
        wanted.append(math.fsum(near) / k * log_sum(z))
    found = cached.detectors()["nnguide"](of)(out, known=K)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_gen_still_orders_samples_whose_softmax_is_one():
    z = np.array([[50.0, 0, 0, 0], [60, 0, 0, 0], [70, 0, 0, 0]])
    of = seen()
    score = FITS["gen"](of)(Outputs(z, np.ones((3, D))), known=K)
    assert score[0] < score[1] < score[2] < 0


# Zero-shot


def test_mcm_is_the_largest_softmax_of_cosines_and_neglabel_the_share_of_known_names():
    rng = np.random.default_rng(0)
    images, texts = rng.normal(size=(20, 6)), rng.normal(size=(9, 6))
    mcm = scores.max_softmax(scores.zero_shot(images, texts[:3], temperature=0.5), known=3)
    out = scores.zero_shot(images, texts, temperature=0.01)
    neglabel = scores.READ["probability"](out, known=3)
    for row, image in enumerate(images):
        cosines = [dot(image, text) / norm(image) / norm(text) for text in texts]
        assert mcm[row] == pytest.approx(max(softmax([c / 0.5 for c in cosines[:3]])))
        shares = softmax([c / 0.01 for c in cosines])
        assert neglabel[row] == pytest.approx(math.fsum(shares[:3]), abs=1e-12)


# Refusals


def flat():
    """Training samples with three features that live; the origin of the logits is a fourth."""
    of, alive = seen(), np.arange(D) < 3
    return of._replace(out=of.out._replace(features=of.out.features * alive))


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (
            lambda: features.knn(seen(), k=121),
            r"need k in \[1, 120\], the training samples; got 121",
        ),
        (
            lambda: features.vim(seen(), dim=D),
            r"need a dim in \[1, 8\), below the features'; got 8",
        ),
        (
            lambda: features.vim(seen()._replace(bias=np.ones(3)), dim=2),
            r"need weights \(4, 8\) and biases; got \(4, 8\), \(3,\)",
        ),
        (lambda: features.vim(flat(), dim=4), "lie in 4 directions"),
        (lambda: features.fdbd(seen()._replace(weight=np.ones((K, D)))), "whose weights differ"),
        (
            lambda: features.she(seen()._replace(labels=np.zeros(120, int))),
            "need a right prediction of each class; class 1 has none",
        ),
        (
            lambda: features.gen(seen()._replace(labels=np.full(120, NEGATIVE)), gamma=1, top=1),
            "need training samples of known classes; got none in 120",
        ),
        (lambda: features.rmd(seen())(Outputs(np.ones((2, K))), known=K), "need .N, D. features"),
        (
            lambda: features.she(seen())(Outputs(np.ones((2, K)), np.ones((2, 5))), known=K),
            r"fitted for \(known, columns\) \(4, 8\); got \(4, 5\)",
        ),
        (
            lambda: scores.zero_shot(np.ones((2, 3)), np.ones((2, 4)), temperature=1),
            "need .N, D. im",
        ),
        (
            lambda: scores.zero_shot(np.ones((2, 3)), np.ones((2, 3)), temperature=0),
            "above 0; got 0",
        ),
    ],
)
def test_bad_input_is_refused_with_the_reason(call, reason):
    with pytest.raises(ValueError, match=reason):
        call()


def test_the_farthest_training_sample_may_be_asked_for():
    of = seen()
    farthest, nearer = (features.knn(of, k=k)(of.out, known=K) for k in (120, 119))
    assert (farthest <= nearer).all()
