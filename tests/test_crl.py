"""Correctness ranking: its rule case by case, who is counted when, and what the ranking does."""

import itertools

import numpy as np
import pytest
import torch
from scipy import stats
from test_methods import IMAGES, LABELS, TRAIN, Batches, begun, checkpoint
from torch.nn.functional import cross_entropy, margin_ranking_loss

from osnb import datasets, losses, models, train
from osnb.datasets import augment
from osnb.train.methods import METHODS, arpl_cs, terms

EPOCHS = 4


def real(seed=0, shuffle=True):
    """Batches of the known digits as a notebook makes them."""
    images = datasets.READERS["digits"]()
    rows = images.rows.assign(label=LABELS.numpy())[TRAIN.numpy()]
    settings = {"batch_size": 64, "seed": seed, "shuffle": shuffle}
    return datasets.batches(images, rows, transform=augment.none, **settings)


def new_model(features=32):
    torch.manual_seed(0)
    return models.mlp(classes=5, features=features)


def trained(directory, batches=None, model=None, loss=losses.softmax, **changes):
    model = model or new_model()
    rate = changes.pop("rate", 0.1)
    settings = {"epochs": EPOCHS, "schedule": train.constant, "validate": lambda _: {}, "seed": 0}
    settings |= {"optimizer": torch.optim.SGD(model.parameters(), lr=rate), "directory": directory}
    train.fit(model, loss, batches or real(), kind=METHODS["crl"], **(settings | changes))
    return model


def counts(directory):
    return checkpoint(directory)["correctness"]["right"]


def slow_price(k_i, k_j, c_i, c_j):
    """The released rule as a table of cases."""
    t = 1
    if c_i == c_j and k_i > k_j:
        t = -1
    if c_i < c_j and (k_i > k_j or k_i < k_j):
        t = -1
    return max(0.0, -t * (k_i - k_j) + abs(c_i - c_j))


def test_a_price_is_the_rule_s_in_every_case():
    for k_i, k_j, n_i, n_j in itertools.product((0.2, 0.5, 0.9), (0.2, 0.5, 0.9), *[range(4)] * 2):
        confidence = torch.tensor([k_i, k_j], dtype=torch.float64)
        found = terms.ranking(confidence, torch.tensor([n_i, n_j]), epochs=4)
        wanted = [slow_price(k_i, k_j, n_i / 4, n_j / 4), slow_price(k_j, k_i, n_j / 4, n_i / 4)]
        assert found.tolist() == pytest.approx(wanted, abs=1e-15)


def test_the_ranking_is_torchs_margin_ranking_with_the_next_of_the_batch():
    rng = np.random.default_rng(0)
    k, right = (
        torch.tensor(rng.random(30), requires_grad=True),
        torch.tensor(rng.integers(0, 5, 30)),
    )
    theirs, c = [], right / 7
    for i in range(30):
        j = (i + 1) % 30
        t = -1.0 if c[i] < c[j] or (c[i] == c[j] and k[i] > k[j]) else 1.0
        pair = k[i : i + 1], k[j : j + 1] + (c[i] - c[j]).abs() / t
        theirs.append(margin_ranking_loss(*pair, torch.tensor([t])))
    ours = terms.ranking(k, right, epochs=7)
    torch.testing.assert_close(ours, torch.stack(theirs))
    slopes = [torch.autograd.grad(each, k)[0] for each in (ours.sum(), sum(theirs))]
    torch.testing.assert_close(*slopes)


def run_of(model, directory, price=2.0):
    """A `Ranked` run that has not begun."""
    return begun(terms.Ranked, model, directory, Batches(2), crl=price, epochs=EPOCHS)


def test_a_step_is_its_formula_and_counts_after_it(tmp_path):
    run, images, labels = run_of(new_model(), tmp_path), IMAGES[TRAIN][:64], LABELS[TRAIN][:64]
    rows = torch.arange(64).flip(0)[:40]
    logits = run.model(images[rows]).logits
    confidence, correct = logits.softmax(1).amax(1), logits.argmax(1) == labels[rows]
    plain = cross_entropy(logits, labels[rows], reduction="none")
    for seen in (0, 1, 2):  # with the same weights, each time more have been right once more
        right = seen * correct.long()
        wanted = plain + 2.0 * terms.ranking(confidence, right, epochs=EPOCHS)
        torch.testing.assert_close(run.values(images[rows], rows), wanted)
        record = run.companions["correctness"].right
        assert record[rows].tolist() == ((seen + 1) * correct).tolist()
        assert record[:24].sum() == 0  # who was not in the batch
    assert 0 < correct.sum() < 40


def order_of(directory, **changes):
    """Rank correlation of confidence with how often a training sample was right."""
    model = trained(directory, epochs=20, **changes)
    out = train.predict(model, real(shuffle=False))
    confidence = torch.from_numpy(out.logits).softmax(1).amax(1)
    return stats.spearmanr(confidence, counts(directory)).statistic, confidence.std().item()


def test_with_the_ranking_confidence_follows_correctness(tmp_path):
    (without, _), (ranked, _) = (order_of(tmp_path / f"{p}", crl=p) for p in (0.0, 3.0))
    assert ranked > 0.7 > 0.6 > without


def test_a_run_that_forgets_who_was_right_ends_otherwise(tmp_path, monkeypatch):
    whole = trained(tmp_path / "whole", Batches(), every=0.0)
    forgetful = lambda run: {"model": run.model, "optimizer": run.optimizer}  # noqa: E731
    monkeypatch.setattr(terms.Ranked, "parts", forgetful)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "broken", Batches(stop=20), every=0.0)
    assert len(checkpoint(tmp_path / "broken")["history"]) < EPOCHS
    resumed = trained(tmp_path / "broken", Batches(), every=0.0)
    assert not torch.equal(whole.head.weight, resumed.head.weight)


@pytest.mark.parametrize(
    ("labels", "said"),
    [(None, "got none"), (torch.tensor([0, -1, 2]), "got -1")],
    ids=["none", "a negative's"],
)
def test_batches_whose_samples_have_no_class_are_refused(labels, said, tmp_path):
    batches = arpl_cs.Passes(Batches(1), 2) if labels is None else Batches(1)
    if labels is not None:
        batches.labels = labels
    with pytest.raises(ValueError, match=f"need batches with `labels` >= 0.*{said}"):
        trained(tmp_path, batches)
