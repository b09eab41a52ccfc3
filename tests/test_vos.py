"""VOS on the digits: which features become outliers, the sum of a step, and what its price does."""

import math

import pytest
import torch
from test_methods import IMAGES, LABELS, TRAIN, Batches, begun, fit, new_model

from osnb import models
from osnb.train.methods import terms


def filled(classes=3, length=6, width=4):
    torch.manual_seed(0)
    detector = terms.Detector(classes, length, width)
    detector.queue += torch.randn(classes, length, width) + 5 * torch.randn(classes, 1, width)
    return detector


def test_queues_hold_the_newest_features_of_each_class_as_lists_would():
    torch.manual_seed(0)
    detector, lists = terms.Detector(3, 4, 2), [[], [], []]
    for size in (5, 20, 1, 7):  # 20: more of a class than a queue holds
        features, labels = torch.randn(size, 2), torch.randint(3, (size,))
        detector.remember(features, labels)
        for x, label in zip(features, labels.tolist(), strict=True):
            lists[label] = [*lists[label], tuple(x.tolist())][-4:]
    assert [{tuple(x.tolist()) for x in q} for q in detector.queue] == [set(x) for x in lists]
    assert detector.count.sum() == 33


def test_outliers_are_the_draws_of_least_density():
    detector = filled()
    torch.manual_seed(1)
    found = detector.outliers(50, 2).view(3, 2, 4)
    torch.manual_seed(1)
    e = torch.randn(3, 50, 4)
    rest = torch.cat([q - q.mean(dim=0) for q in detector.queue])
    covariance = rest.T @ rest / 18 + 1e-4 * torch.eye(4)
    for c, queue in enumerate(detector.queue):
        normal = torch.distributions.MultivariateNormal(queue.mean(dim=0), covariance)
        drawn = queue.mean(dim=0) + e[c] @ torch.linalg.cholesky(covariance).T
        least = normal.log_prob(drawn).argsort()[:2]
        torch.testing.assert_close(found[c], drawn[least])


def test_a_step_is_the_sum_written_out(tmp_path):
    torch.manual_seed(0)
    model = models.conv(classes=5, features=8, width=4, channels=1).eval()
    own = {"plain_epochs": 0, "queue": 1, "drawn": 9, "vos_weight": 0.7}
    run = begun(terms.Virtual, model, tmp_path, Batches(1), **own)
    model.eval()
    images, labels = IMAGES[TRAIN][:24], LABELS[TRAIN][:24]
    assert set(labels.tolist()) == set(range(5))
    torch.manual_seed(1)
    found = run.values(images, labels)
    detector = run.companions[terms.DETECTOR]
    torch.manual_seed(1)
    virtual = model.head(detector.outliers(9, 1))
    z = model(images).logits
    total = 0.0
    for row, image in [*((x, 1) for x in z), *((x, 0) for x in virtual)]:
        pairs = zip(detector.weight.tolist(), row.tolist(), strict=True)
        energy = math.log(sum(max(w, 0) * math.exp(x) for w, x in pairs))
        ends = zip(detector.line.weight[:, 0].tolist(), detector.line.bias.tolist(), strict=True)
        line = [a * energy + b for a, b in ends]
        total += math.log(math.exp(line[0]) + math.exp(line[1])) - line[image]
    wanted = torch.nn.functional.cross_entropy(z, labels, reduction="none") + 0.7 * total / 29
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("price", "late", "same"), [(0.0, 1, True), (0.5, 3, True), (0.5, 1, False)]
)
def test_without_a_price_or_before_its_epochs_it_is_plain_training(price, late, same, tmp_path):
    few = {"epochs": 3, "queue": 8, "plain_epochs": late, "vos_weight": price}
    fit("vos", model := new_model(), tmp_path / "vos", Batches(3), **few)
    fit("plain", plain := new_model(), tmp_path / "plain", Batches(3), epochs=3)
    pairs = zip(plain.state_dict().values(), model.state_dict().values(), strict=True)
    assert all(torch.equal(*pair) for pair in pairs) == same


@pytest.mark.parametrize("wrong", [{"queue": 0}, {"outliers": 0}, {"outliers": 101}])
def test_empty_queues_and_more_outliers_than_draws_are_refused(wrong, tmp_path):
    with pytest.raises(ValueError, match="need queue > 0 and 0 < outliers <= drawn"):
        fit("vos", new_model(), tmp_path, Batches(1), **wrong)


def test_a_step_has_as_many_outliers_of_a_class_as_are_wanted(tmp_path, monkeypatch):
    asked, plain = [], terms.Detector.outliers
    monkeypatch.setattr(terms.Detector, "outliers", lambda *of: asked.append(of[1:]) or plain(*of))
    few = {"epochs": 2, "queue": 1, "plain_epochs": 0, "drawn": 7, "outliers": 3}
    fit("vos", new_model(), tmp_path, Batches(3), **few)
    assert {*asked} == {(7, 3)}
