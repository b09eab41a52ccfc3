"""Each scoring rule beside the same formula in 400-digit arithmetic, and its laws."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from osnb import scores
from osnb.base import columns
from osnb.base.labels import NEGATIVE, UNKNOWN
from osnb.base.outputs import Outputs
from osnb.datasets.vision import torchvision  # noqa: F401  # pytorch-ood, imported later, needs the guard
from osnb.scores import MEANS, POST_HOC, SCORES

RULES = [*SCORES.values(), *POST_HOC.values(), scores.predicted, scores.softmax]
LABELLED = [scores.target, scores.target_log_odds]


def outputs(logits, dtype=np.float32):
    logits = np.asarray(logits, dtype)
    return Outputs(logits, features=logits)


@pytest.fixture(params=[1, 8, 60], ids=lambda scale: f"scale {scale}")
def sample(request):
    """(out, labels): 12 samples, 5 columns of which 4 are known; the largest scale saturates."""
    rng = np.random.default_rng(0)
    logits = rng.normal(0, request.param, (12, 5))
    return outputs(logits), rng.integers(UNKNOWN, 4, 12)


def slow(logits, column):
    """(p, log p - log(1 - p)) of one column, with enough digits for 1 - p to exist."""
    with localcontext() as context:
        context.prec = 400
        weights = [Decimal(float(z)).exp() for z in logits]
        p = weights[column] / sum(weights)
        rest = sum(w for c, w in enumerate(weights) if c != column) / sum(weights)
        return float(p), float(p.ln() - rest.ln())


def best(logits, known):
    return max(range(known), key=lambda c: logits[c])


def test_every_rule_matches_long_arithmetic(sample):
    out, labels = sample
    columns = [best(z, 4) for z in out.logits]
    expected = np.array([slow(z, c) for z, c in zip(out.logits, columns, strict=True)])
    np.testing.assert_allclose(scores.max_softmax(out, known=4), expected[:, 0], rtol=1e-13)
    np.testing.assert_allclose(
        scores.max_softmax_log_odds(out, known=4), expected[:, 1], rtol=1e-13, atol=1e-13
    )
    np.testing.assert_array_equal(scores.max_logit(out, known=4), out.logits[:, :4].max(axis=1))
    np.testing.assert_array_equal(scores.predicted(out, known=4), columns)

    columns = [y if y >= 0 else c for y, c in zip(labels, columns, strict=True)]
    expected = np.array([slow(z, c) for z, c in zip(out.logits, columns, strict=True)])
    np.testing.assert_allclose(scores.target(out, labels, known=4), expected[:, 0], rtol=1e-13)
    np.testing.assert_allclose(
        scores.target_log_odds(out, labels, known=4), expected[:, 1], rtol=1e-13, atol=1e-13
    )


def test_log_odds_tell_apart_what_softmax_calls_certain():
    out = outputs([[gap, 0, 0] for gap in (50, 200, 200.5, 2000, 1e38)])
    labels = np.zeros(5, int)
    assert (scores.max_softmax(out, known=3) == 1).all()
    expected = [gap - np.log(2) for gap in (50, 200, 200.5, 2000)]
    for ours in (
        scores.max_softmax_log_odds(out, known=3),
        scores.target_log_odds(out, labels, known=3),
    ):
        np.testing.assert_allclose(ours[:4], expected, rtol=1e-15)
        assert ours[4] == np.float32(1e38)
        assert (np.diff(ours) > 0).all()


def test_the_background_column_is_dropped_after_normalising_and_before_the_maximum():
    out = outputs([[2, 1, 5]])
    weights = np.exp([2, 1, 5])
    assert scores.max_softmax(out, known=2) == pytest.approx(weights[0] / weights.sum())
    assert scores.predicted(out, known=2) == 0
    assert scores.max_logit(out, known=2) == 2
    odds = 2 - np.log(weights[1] + weights[2])
    assert scores.max_softmax_log_odds(out, known=2) == pytest.approx(odds)


def test_with_background_counts_that_column_as_a_class():
    out = outputs([[2, 1, 5], [2, 1, 5], [2, 1, 0]])
    labels = np.array([0, NEGATIVE, UNKNOWN])
    p = scores.softmax(out, known=3)
    np.testing.assert_array_equal(
        scores.with_background(scores.target)(out, labels, known=2), [p[0, 0], p[1, 2], p[2, 0]]
    )
    np.testing.assert_array_equal(scores.with_background(scores.predicted)(out, known=2), [2, 2, 0])
    np.testing.assert_array_equal(
        scores.with_background(scores.max_softmax)(out, known=2), p.max(axis=1)
    )
    with pytest.raises(ValueError, match=r"known in \[1, C\]; got \(3, 3\), 4"):
        scores.with_background(scores.max_logit)(out, known=3)


def test_target_is_the_maximum_for_negative_and_unknown_samples(sample):
    out, _ = sample
    for label in (NEGATIVE, UNKNOWN):
        labels = np.full(12, label)
        np.testing.assert_array_equal(
            scores.target(out, labels, known=4), scores.max_softmax(out, known=4)
        )
        np.testing.assert_array_equal(
            scores.target_log_odds(out, labels, known=4), scores.max_softmax_log_odds(out, known=4)
        )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_row_is_scored_without_regard_to_its_neighbours(rule):
    out = outputs(np.random.default_rng(0).normal(0, 3, (12, 50)))
    together = rule(out, known=40)
    for row in range(12):
        alone = rule(outputs(out.logits[row : row + 1]), known=40)
        np.testing.assert_array_equal(alone[0], together[row])
    columns = outputs(np.asfortranarray(out.logits))
    np.testing.assert_array_equal(rule(columns, known=40), together)


def test_logits_are_left_as_they_were(sample):
    out, labels = sample
    copy = out.logits.copy()
    double = Outputs(*[out.logits.astype(np.float64)] * 2)  # no conversion that would copy
    for kept in (out, double):
        kept.logits.flags.writeable = False
        for rule in RULES:
            rule(kept, known=4)
        for rule in LABELLED:
            rule(kept, labels, known=4)
        np.testing.assert_array_equal(kept.logits, copy)


@pytest.mark.parametrize(
    ("logits", "known", "reason"),
    [
        (np.zeros((2, 3)), 0, r"known in \[1, C\]; got \(2, 3\), 0"),
        (np.zeros((2, 3)), 4, r"known in \[1, C\]; got \(2, 3\), 4"),
        (np.zeros(3), 1, r"need \(N, C\) logits .* got \(3,\)"),
        ([[0, 1], [2, np.nan]], 2, "finite logits; got nan in row 1, column 1"),
        ([[0, 1], [-np.inf, 2]], 2, "finite logits; got -inf in row 1, column 0"),
    ],
)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_bad_logits_are_refused_with_the_reason(rule, logits, known, reason):
    with pytest.raises(ValueError, match=reason):
        rule(outputs(logits), known=known)


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ([0, 3], "labels below 3 known classes; got 3"),
        ([0], r"need \(2,\) integers; got \(1,\) of int64"),
        ([0.0, 1.0], r"need \(2,\) integers; got \(2,\) of float64"),
    ],
)
@pytest.mark.parametrize("rule", LABELLED, ids=lambda rule: rule.__name__)
def test_bad_labels_are_refused_with_the_reason(rule, labels, reason):
    with pytest.raises(ValueError, match=reason):
        rule(outputs(np.zeros((2, 4))), np.array(labels), known=3)


# Post-hoc rules and ensembles


def decimals(logits, temperature=1):
    """(log sum exp, sum q log q) of a row's logits, with enough digits for every weight."""
    with localcontext() as context:
        context.prec = 400
        weights = [(Decimal(float(z)) / temperature).exp() for z in logits]
        total = sum(weights)
        entropy = sum(w / total * (w / total).ln() for w in weights)
        return float(total.ln() * temperature), float(entropy)


def test_energy_and_entropy_match_long_arithmetic_over_the_known_columns(sample):
    out, _ = sample
    expected = np.array([decimals(z[:4]) for z in out.logits])
    np.testing.assert_allclose(scores.energy(out, known=4), expected[:, 0], rtol=1e-13)
    np.testing.assert_allclose(scores.negative_entropy(out, known=4), expected[:, 1], rtol=1e-12)
    for temperature in (0.25, 8):
        expected = [decimals(z[:4], Decimal(temperature))[0] for z in out.logits]
        ours = scores.energy(out, known=4, temperature=temperature)
        np.testing.assert_allclose(ours, expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("features", "reason"),
    [
        ((), r"need \(N, D\) features for 2 logits; got none"),
        (np.zeros((3, 4)), r"need \(N, D\) features for 2 logits; got \(3, 4\)"),
        ([[0, 1], [np.inf, 0]], "finite features; row 1 holds another"),
    ],
)
def test_bad_features_are_refused_with_the_reason(features, reason):
    with pytest.raises(ValueError, match=reason):
        scores.feature_norm(Outputs(np.zeros((2, 3)), features), known=3)


@pytest.mark.parametrize("temperature", [0, -1, np.nan])
def test_a_temperature_that_is_not_above_0_is_refused(temperature):
    with pytest.raises(ValueError, match="temperature above 0"):
        scores.energy(outputs([[0, 1]]), known=2, temperature=temperature)


def test_an_ensemble_is_the_mean_of_logits_or_of_softmax(sample):
    members = [outputs(sample[0].logits * scale) for scale in (1, -0.5, 2)]
    logits = scores.ensemble(members, mean="logits").logits
    np.testing.assert_allclose(logits, sum(m.logits.astype(float) for m in members) / 3, rtol=1e-14)
    joint = scores.ensemble(members, mean="softmax")
    expected = sum(scores.softmax(member, known=4) for member in members) / 3
    np.testing.assert_allclose(scores.softmax(joint, known=4), expected, rtol=1e-11, atol=1e-300)
    assert np.isfinite(joint.logits).all()


@pytest.mark.parametrize("mean", MEANS)
def test_an_ensemble_knows_no_order_and_one_network_alone_is_itself(sample, mean):
    members = [sample[0], outputs(sample[0].logits[::-1].copy()), outputs(np.eye(12, 5))]
    ours, turned = (scores.ensemble(each, mean=mean).logits for each in (members, members[::-1]))
    np.testing.assert_allclose(ours, turned, rtol=1e-13, atol=1e-13)
    assert ours.dtype == np.float64
    for alone in (members[:1], members[:1] * 2):
        single = scores.ensemble(alone, mean=mean)
        odds = scores.max_softmax_log_odds(single, known=4)
        expected = scores.max_softmax_log_odds(sample[0], known=4)
        np.testing.assert_allclose(odds, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shapes", [[], [(2, 3), (2, 4)], [(2, 3), (1, 3)]])
def test_an_ensemble_of_unequal_shapes_or_of_none_is_refused(shapes):
    with pytest.raises(ValueError, match="logits of one shape, from at least one network"):
        scores.ensemble([outputs(np.zeros(shape)) for shape in shapes], mean="logits")


# Logits and scores of other origin.


@pytest.mark.parametrize("rule", RULES)
def test_a_bare_array_is_refused_and_told_what_to_write(rule):
    with pytest.raises(ValueError, match=r"need Outputs, such as Outputs\(logits\); got ndarray"):
        rule(np.zeros((2, 3)), known=3)


def test_own_scores_are_kept_beside_those_of_the_logits():
    logits = np.array([[2.0, 1, 0], [0, 3, 1], [0, 1, 0.5]])
    columns = {f"logit_{c}": logits[:, c] for c in (2, 0, 1)}  # in the order of their numbers
    columns |= {"label": np.array([0.0, 1, UNKNOWN]), "mine": np.arange(3), "": np.arange(3)}
    found = scores.own(columns | {"class": np.array(["a", "b", "u"])})
    assert list(found.scores) == [*scores.RULES, "mine"]
    assert (found.known, found.pred.tolist(), found.unit.tolist()) == (
        3,
        [0, 1, 1],
        ["a", "b", "u"],
    )
    np.testing.assert_array_equal(found.scores["max_logit"], [2, 3, 1])
    assert found.scores["mine"].dtype == np.float64
    assert list(scores.own(columns, names=["mine", "energy"]).scores) == ["mine", "energy"]
    whole = scores.own({"labels": columns["label"], "logits": logits}, known=2)
    np.testing.assert_array_equal(whole.scores["energy"], scores.energy(Outputs(logits), known=2))


def test_an_npz_file_that_holds_objects_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", labels=np.array([0, None], object))
    with pytest.raises(ValueError, match="no npz file of plain arrays"):
        columns.arrays(tmp_path / "a.npz")
