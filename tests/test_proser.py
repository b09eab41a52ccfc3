"""PROSER on the digits: what its two placeholders do, and what it is without them."""

import pytest
import torch
from test_methods import IMAGES, LABELS, TRAIN, Batches, assert_same, begun, fit, new_model

from osnb import losses, models, train
from osnb.train.methods import terms


def trained(directory, **changes):
    fit("proser", model := new_model(name="proser"), directory, Batches(), **changes)
    return model.eval()


def mixtures_called_unknown(model):
    """Mean p_K of halfway mixtures of two classes, and of the images themselves."""
    images, labels = IMAGES[TRAIN], LABELS[TRAIN]
    partner = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        plain = model(images).logits.softmax(1)[:, -1]
        with terms.mixing(model.trunk[1], partner, 0.5):
            mixed = model(images).logits.softmax(1)[:, -1]
    return mixed[labels != labels[partner]].mean().item(), plain.mean().item()


@pytest.mark.parametrize(("mixed", "learned"), [(0.3, True), (0.0, False)])
def test_mixtures_go_to_the_placeholder_if_they_have_a_price(mixed, learned, tmp_path):
    mixture, image = mixtures_called_unknown(trained(tmp_path, mixed=mixed))
    assert (mixture > 0.3) == learned
    assert image < 0.2


@pytest.mark.parametrize(("second", "learned"), [(1.0, True), (0.0, False)])
def test_the_placeholder_is_second_best_if_that_has_a_price(second, learned, tmp_path):
    model = trained(tmp_path, second=second)
    with torch.no_grad():
        found, wanted = terms.runner_up(model(IMAGES[TRAIN]), LABELS[TRAIN])
    share = (found.logits.argmax(1) == wanted).float().mean().item()
    assert (share > 0.9) == learned


def test_before_its_later_epochs_it_is_plain_training_on_the_known_outputs(tmp_path):
    model, plain = new_model(name="proser"), new_model(name="proser")
    fit("proser", model, tmp_path / "proser", Batches(3), epochs=2, plain_epochs=2)
    train.fit(
        plain,
        lambda out, labels: losses.softmax(out._replace(logits=out.logits[:, :5]), labels),
        Batches(3),
        epochs=2,
        optimizer=torch.optim.SGD(plain.parameters(), lr=0.05, momentum=0.9),
        schedule=train.cosine,
        validate=lambda _: {},
        directory=tmp_path / "plain",
        seed=0,
    )
    assert_same(dict(plain.state_dict()), dict(model.state_dict()))


def written_out(model, images, labels):
    """The loss of a step in plain words, sample by sample, on the same random numbers."""
    partner = torch.randperm(4)
    share = torch.distributions.Beta(1.0, 1.0).sample()
    front = model.trunk[:2](images[:4])
    mixed = model.head(model.trunk[2:](share * front + (1 - share) * front[partner]))
    total = 0.0
    for i in range(4):
        if labels[i] != labels[partner[i]]:
            z = [*mixed[i, :5], mixed[i, 5:].max()]
            total += 0.5 / 4 * (torch.stack(z).logsumexp(0) - z[5])
    for z, label in zip(model(images[4:]).logits, labels[4:].tolist(), strict=True):
        z = [*z[:5], z[5:].max()]
        total += 1 / 4 * (torch.stack(z).logsumexp(0) - z[label])
        z.pop(label)
        total += 0.25 / 4 * (torch.stack(z).logsumexp(0) - z[-1])
    return total


def test_a_step_is_the_paper_s_sum_with_the_largest_of_two_placeholders(tmp_path):
    torch.manual_seed(0)
    model = models.conv(classes=7, features=8, width=4, channels=1).eval()
    own = {"plain_epochs": 0, "cut": 2, "placeholders": 2, "second": 0.25, "mixed": 0.5}
    run = begun(terms.Placeholders, model, tmp_path, Batches(1), **own, alpha=1.0)
    images, labels = IMAGES[TRAIN][:8], torch.tensor([0, 0, 1, 2, 3, 4, 0, 1])
    torch.manual_seed(1)
    found = run.values(images, labels)
    torch.manual_seed(1)
    assert found.shape == (8,)
    torch.testing.assert_close(found.mean(), written_out(model, images, labels))


@pytest.mark.parametrize("cut", [0, 6])
def test_a_cut_outside_of_the_trunk_is_refused(cut, tmp_path):
    with pytest.raises(ValueError, match=r"need a cut in \[1, 5\]"):
        fit("proser", new_model(name="proser"), tmp_path, Batches(3), cut=cut)


def test_shares_of_a_mixture_are_drawn_as_alpha_says(tmp_path, monkeypatch):
    drawn, plain = [], torch.distributions.Beta
    monkeypatch.setattr(torch.distributions, "Beta", lambda *of: drawn.append(of) or plain(*of))
    few = {"epochs": 1, "plain_epochs": 0, "alpha": 0.3}
    fit("proser", new_model(name="proser"), tmp_path, Batches(3), **few)
    assert {*drawn} == {(0.3, 0.3)}
