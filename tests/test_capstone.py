"""The capstones: what they train with, and that their judge tells better from worse."""

import sys
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from coursework import graded
from scipy import stats

from osnb import losses, metrics, scores
from osnb.base.labels import NEGATIVE, UNKNOWN
from osnb.teach import capstone, exercise

LETTERS = "ACEFHJ"


def largest(part):
    """Log-odds of the largest softmax probability."""
    return scores.max_softmax_log_odds(part.out, known=capstone.KNOWN)


@pytest.fixture(scope="module")
def asked():
    return capstone.answers(losses.softmax, seed=0, negatives=0.0)


@pytest.fixture(scope="module")
def with_negatives():
    return capstone.answers(partial(losses.entropic, weight=1.0), seed=0, negatives=1.0)


@pytest.fixture(scope="module")
def held_and_test():
    return capstone.confidences(seed=0, letters=LETTERS)


# Training


def test_each_kind_of_image_is_asked_in_its_splits(asked):
    sides = {split: {side for s, side in asked if s == split} for split, _ in asked}
    assert sides["train"] == sides["val"] == {"known", "negative"}
    assert sides["test"] == {"known", "negative", "unknown", "letters"}


def test_answers_have_a_row_of_each_kind_for_every_image(asked):
    for (_, side), part in asked.items():
        assert part.logits.shape == (len(part.rows), 5)
        assert part.features.shape == (len(part.rows), 64)
        assert part.out.logits is part.logits
        expected = {"negative": {NEGATIVE}, "unknown": {UNKNOWN}, "letters": {UNKNOWN}}
        assert set(part.labels) == expected.get(side, set(range(5)))


def test_only_known_images_can_be_right_and_most_of_them_are(asked):
    assert asked["test", "known"].right.mean() > 0.95
    assert not asked["test", "unknown"].right.any()


def test_no_test_image_is_trained_on(asked):
    samples = {split: set() for split in ("train", "val", "test")}
    for (split, _), part in asked.items():
        samples[split] |= set(part.rows["sample"])
    assert not samples["train"] & (samples["val"] | samples["test"])


def test_the_same_seed_gives_the_same_answers_and_another_seed_other_images(monkeypatch):
    monkeypatch.setattr(capstone, "EPOCHS", 1)
    made = [capstone.answers(losses.softmax, seed=seed, negatives=0.0) for seed in (0, 0, 1)]
    first, again, other = (each["test", "known"] for each in made)
    np.testing.assert_array_equal(again.logits, first.logits)
    assert set(other.rows["sample"]) != set(first.rows["sample"])


@pytest.mark.parametrize(("negatives", "shown"), [(0.0, 0), (0.1, 16), (1.0, 145)])
def test_training_shows_the_share_of_negatives_that_is_asked_for(negatives, shown, monkeypatch):
    seen = []

    def loss(out, labels):
        seen.append(int((labels == NEGATIVE).sum()))
        return losses.softmax(out, labels)

    monkeypatch.setattr(capstone, "EPOCHS", 1)
    capstone.answers(loss, seed=0, negatives=negatives)
    assert sum(seen) == shown


@pytest.mark.parametrize("negatives", [-0.1, 1.1])
def test_a_share_of_negatives_is_a_rate(negatives):
    with pytest.raises(ValueError, match=f"a rate in .0, 1.; got {negatives}"):
        capstone.answers(losses.softmax, seed=0, negatives=negatives)


# Judging


def test_a_line_is_what_the_metrics_say(asked):
    line = capstone.line(asked, largest)
    known, unknown, letters = (asked["test", s] for s in ("known", "unknown", "letters"))
    pool = np.concatenate([largest(unknown), largest(letters)])
    assert line["accuracy"] == known.right.mean()
    assert line["auroc_pooled"] == metrics.auroc(largest(known), pool)
    assert line["oscr_unknown"] == metrics.oscr_area(largest(known), known.right, largest(unknown))
    at = capstone.ccr(asked, largest, fpr=0.1)
    assert at == metrics.ccr_at_fpr(largest(known), known.right, largest(unknown), fpr=0.1)


def test_a_loss_that_uses_negatives_gains_more_than_the_margin(with_negatives):
    before = capstone.line(capstone.answers(losses.softmax, seed=0, negatives=1.0), largest)
    after = capstone.line(with_negatives, largest)
    assert after["auroc_unknown"] - before["auroc_unknown"] > 0.01


def measured(*gains):
    """A function of the seed: a baseline of .5, and as much more as is given for that seed."""
    return lambda seed: (0.5, 0.5 + gains[seed - 7])


def test_any_gain_that_reaches_the_margin_on_hidden_seeds_passes_and_is_said_with_its_interval(
    capsys,
):
    gains = [0.01, 0.02, 0.03, 0.04, 0.04, 0.05, 0.06, 0.07]
    capstone.require(measured(*gains), seed=7, margin=0.04, what="gain")
    low, high = stats.t.interval(0.95, 7, np.mean(gains), stats.sem(gains))
    said = f"gain: +0.040 [{low:+.3f}, {high:+.3f}] over 8 hidden seeds\n"
    assert capsys.readouterr().out == said


@pytest.mark.parametrize("gains", [(0.02,) * 8, (0.3, -0.1) * 4, (-0.1,) * 8])
def test_a_gain_below_the_margin_or_by_luck_is_refused(gains):
    with pytest.raises(AssertionError, match=r"over 8 hidden seeds; needed \+0.050"):
        capstone.require(measured(*gains), seed=7, margin=0.05, what="gain")


def test_what_is_measured_may_warn_and_say_what_goes_wrong_without_losing_points(capsys):
    def loud(seed):
        print("epoch 1", file=sys.stderr)
        warnings.warn("a copy of a tensor", stacklevel=1)
        return 0.5, 0.6 + np.log(np.zeros(1)).clip(0)[0]

    capstone.require(loud, seed=7, margin=0.05, what="gain")
    assert capsys.readouterr().err == ""


def test_the_table_has_a_row_for_each_test_image(asked):
    table = capstone.table(asked, largest)
    assert len(table) == sum(
        len(part.rows) for (split, _), part in asked.items() if split == "test"
    )
    assert table.groupby("side")["role"].unique().map(set)["letters"] == {"unknown"}
    known = table[table["role"] == "known"]
    assert (known["pred"] == known["label"]).mean() == asked["test", "known"].right.mean()


def test_the_distance_to_a_class_mean_passes_the_margin_and_the_largest_logit_does_not(asked):
    def mean(logits, features, seen, labels):
        means = np.stack([seen[labels == c].mean(axis=0) for c in range(5)])
        return -((features[:, None] - means) ** 2).sum(axis=2).min(axis=1)

    rules = largest, capstone.as_rule(mean, asked), capstone.as_rule(lambda z, *_: z.max(1), asked)
    base, near, logit = (capstone.line(asked, rule)["auroc_pooled"] for rule in rules)
    assert near > base + 0.01 > base > logit


# Choosing


def test_known_images_stand_first_and_no_letter_is_on_both_sides(held_and_test):
    for part, letters in zip(held_and_test, (6, 10), strict=True):
        assert part["side"].drop_duplicates().tolist() == ["known", "digit", "glyph"]
        assert (part["side"] == "glyph").sum() == 20 * letters
        assert not part.loc[part["side"] != "known", "right"].any()


def by(convention):
    """A choice: the lowest AURC under a convention."""

    def choice(confidences, right):
        found = {n: metrics.aurc(c, right, convention=convention) for n, c in confidences.items()}
        return min(found, key=found.get)

    return choice


def test_a_choice_by_exact_ties_helps_and_one_by_the_order_of_the_rows_hurts(held_and_test):
    held, test = held_and_test
    given = {name: held[name].to_numpy() for name in held.columns[2:]}, held["right"].to_numpy()
    found = {n: metrics.aurc(test[n], test["right"]) for n in held.columns[2:]}
    assert found[by("exact")(*given)] < found["softmax"] - 0.02
    assert found[by("kim")(*given)] > found["softmax"]


def test_made_up_confidences_tell_the_exact_choice_from_that_of_the_rows():
    rng = np.random.default_rng(0)
    given = [capstone.columns(rng) for _ in range(50)]
    assert any(by("kim")(*each) != by("exact")(*each) for each in given)
    assert len({by("exact")(*each) for each in given}) > 1


# What the notebooks show


def test_a_loss_of_the_batch_and_one_that_is_not_finite_break_the_law(capsys):
    def check(loss):
        alone = capstone.one_by_one(capstone.on_arrays(loss), rows=2)
        exercise.check(capstone.on_arrays(loss), alone, inputs=capstone.sure, own=True)
        return capsys.readouterr().out

    def naive(out, labels):
        return -out.logits.softmax(dim=1).log().mean(dim=1)

    assert check(lambda out, labels: out.logits.logsumexp(dim=1)).startswith("right")
    assert check(lambda out, labels: out.logits[:, 0] - out.logits.mean()).startswith("wrong: ")
    assert "a loss is finite for large logits too" in check(naive)
    assert check(lambda out, labels: None) == "not written yet\n"
    assert "a call of osnb.losses.softmax" in check(losses.softmax)


def test_a_score_that_looks_at_the_batch_breaks_the_law(capsys):
    for score, word in (
        (lambda z, *_: z.max(axis=1), "right"),
        (lambda z, *_: z[:, 0] - z.mean(), "wrong"),
    ):
        exercise.check(score, capstone.one_by_one(score, rows=2), inputs=capstone.outputs, own=True)
        assert capsys.readouterr().out.startswith(word)


@pytest.mark.parametrize("stub", [lambda _: None, lambda _: ...])
def test_a_stub_is_not_written(stub):
    assert not capstone.written(stub, 1)


def test_a_function_that_says_so_is_not_written_and_one_that_fails_is():
    def unwritten():
        raise NotImplementedError

    assert not capstone.written(unwritten)
    assert capstone.written(lambda: 1 / 0)
    assert capstone.written(sys.exit)
    assert capstone.written(lambda: np.zeros(3))


def test_a_line_without_numbers_reads_not_written_yet():
    table = capstone.beside({"one": {"auroc": 0.12345}, "other": None})
    assert table["auroc"].tolist() == ["0.123", "not written yet"]
    assert capstone.beside({"other": None}).to_numpy().tolist() == [["not written yet"]]


def test_a_loss_of_tensors_can_be_checked_on_arrays():
    z, labels = capstone.sure(np.random.default_rng(0))
    loss = partial(losses.entropic, weight=1.0)
    by_hand = loss(capstone.Outputs(torch.from_numpy(z), None), torch.from_numpy(labels))
    np.testing.assert_array_equal(capstone.on_arrays(loss)(z, labels), by_hand)
    assert capstone.on_arrays(loss).__name__ == "entropic"


def test_a_logarithm_of_the_softmax_fails_on_the_made_up_logits_and_the_loss_does_not():
    rng = np.random.default_rng(0)
    given = [capstone.sure(rng) for _ in range(50)]
    naive = [torch.from_numpy(z).softmax(dim=1).log() for z, _ in given]
    assert 10 < sum(bool(torch.isinf(each).any()) for each in naive) < 40
    loss = capstone.on_arrays(partial(losses.entropic, weight=1.0))
    assert all(torch.isfinite(loss(*each)).all() for each in given)
    assert {-1, 0} <= {int(label) for _, labels in given for label in labels}


def test_made_up_outputs_hold_every_class_five_times_or_more():
    rng = np.random.default_rng(0)
    for _ in range(20):
        logits, features, seen, labels = capstone.outputs(rng)
        assert len(logits) == len(features)
        assert len(seen) == len(labels)
        assert np.bincount(labels, minlength=5).min() >= 5


@pytest.mark.parametrize("each", ["weight", "1 / len(classes)"])  # over classes no mean; unweighted
def test_a_loss_that_trains_well_and_is_not_equation_5_gets_no_points(each, monkeypatch):
    monkeypatch.setattr(capstone, "require", lambda *_, **__: None)  # whatever is trained gains
    cells, space = graded("14_palechor_capstone"), {"seed": 0, "weight": 1.0}
    space |= {"capstone": capstone, "exercise": exercise, "losses": losses, "partial": partial}
    space |= {"torch": torch, "NEGATIVE": NEGATIVE}
    exec(cells["my_loss"], space)
    exec(cells["my_loss-check"], space)
    exec(cells["my_loss"].replace("weight / len(classes)", each), space)
    with pytest.raises(AssertionError, match="wrong: "):
        exec(cells["my_loss-check"], space)


def with_the_best_last(*, seed, letters):
    """Two parts in which the confidence that knows who is right stands behind three of chance."""
    rng = np.random.default_rng(seed)
    right = rng.random((2, 200)) < 0.7
    by_chance = dict(zip(("softmax", "b", "c"), rng.random((3, 200)), strict=True))
    parts = [by_chance | {"d": 2 * each + rng.random(200)} for each in right]
    return [pd.DataFrame({"right": each, **x}) for each, x in zip(right, parts, strict=True)]


@pytest.mark.parametrize(
    "choice",
    [
        lambda confidences, right: [*confidences][-1],
        lambda confidences, right: max(confidences, key=lambda name: np.ptp(confidences[name])),
    ],
    ids=["place", "range"],
)
def test_a_choice_by_place_or_range_of_the_confidences_gets_no_points(choice, monkeypatch):
    monkeypatch.setattr(capstone, "confidences", with_the_best_last)
    cells, space = graded("34_kim_capstone"), {"seed": 0, "names": ["softmax", "b", "c", "d"]}
    space |= {"capstone": capstone, "exercise": exercise, "metrics": metrics, "np": np}
    for name in ("my_aurc", "my_choice", "my_choice-check"):
        exec(cells[name], space)
    space["my_choice"] = choice
    with pytest.raises(AssertionError, match="over 8 hidden seeds"):
        exec(cells["my_choice-check"], space)
