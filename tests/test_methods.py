"""Methods with companions on the digits: what they claim, what breaks it, and continuing."""

import copy
import math
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from trained import Shuffled

from osnb import losses, metrics, models, scores, train
from osnb.train.methods import METHODS, arpl_cs

DIGITS = load_digits()
IMAGES = torch.tensor(DIGITS.images[:, None] / 16, dtype=torch.float32)
LABELS = torch.tensor(DIGITS.target)
TEST = torch.arange(len(LABELS)) % 2 == 1
TRAIN = ~TEST & (LABELS < 5)  # the known digits
PAIR = {"gan_width": 8, "gan_rate": 2e-3, "latent": 16}
OSRCI = {"gan_epochs": 8, "generated": 256, "gan_rate": 2e-3, "latent": 16, "gan_width": 8}
SETTINGS = {  # one line for each method
    "plain": {},
    "openhybrid": {},
    "arpl_cs": {"beta": 0.1, **PAIR},
    "osrci": {**OSRCI, "cf_steps": 50},
    "proser": {"plain_epochs": 4, "cut": 2},
    "c2ae": {"gan_epochs": 8, "gan_width": 8},
    "crl": {},
    "augmix": {"severity": 1.0},
    "cgdl": {"elbo_weight": 0.01, "warm_up": 4},
    "vos": {"plain_epochs": 4, "queue": 32, "drawn": 100},
}
FEW = {  # where it shall be short
    "osrci": {"gan_epochs": 1, "generated": 64, "cf_steps": 2},
    "proser": {"plain_epochs": 1},
    "c2ae": {"gan_epochs": 1},
    "vos": {"plain_epochs": 1, "queue": 8},
}
SPARE = {"osrci", "proser"}  # with an output beside the known classes, and a linear head


TRAINED = [name for name in METHODS if name != "released"]  # which trains nothing


class Batches(Shuffled):
    """Shuffled batches of 32, `count` of them at most; `stop` interrupts after so many."""

    def __init__(self, count=99, stop=math.inf, rows=TRAIN):
        images, labels = (column[rows][: 32 * count] for column in (IMAGES, LABELS))
        super().__init__(images, labels, 32, stop=stop)


OUTSIDE = Batches(rows=~TEST & (LABELS > 4) & (LABELS < 7))  # the negative digits
SETTINGS["outlier"] = {"outside": OUTSIDE}


def new_model(features=32, name="plain"):
    torch.manual_seed(0)
    if name == "cgdl":
        return models.ladder(classes=5, channels=1, size=8, width=8, latent=8)
    own = {"classes": 6, "head": "linear"} if name in SPARE else {"classes": 5, "head": "arpl"}
    return models.conv(features=features, width=8, channels=1, **own)


def begun(kind, model, directory, batches, *, loss=losses.softmax, epochs=1, **own):
    """A run of the kind that has made no step."""
    how = {"optimizer": torch.optim.SGD(model.parameters(), lr=0.1), "schedule": train.constant}
    how |= {"validate": lambda _: {}, "seed": 0, "directory": directory, "epochs": epochs}
    return kind(model=model, loss=loss, batches=batches, **how | own)


def fit(name, model, directory, batches, **changes):
    settings = {
        "epochs": 8,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
        "schedule": train.cosine,
        "validate": lambda _: {},
        "directory": directory,
        "seed": 0,
    }
    settings |= SETTINGS[name] | changes
    loss = losses.softmax if name in {*SPARE, "cgdl"} else losses.LOSSES.bind("arpl", weight=0.1)
    return train.fit(model, loss, batches, kind=METHODS[name], **settings)


def checkpoint(directory):
    return torch.load(directory / "checkpoint.pt", weights_only=True)


def epochs_done(directory):
    """Epochs of the last stage, 0 if only stages before it have begun."""
    whole = (directory / "checkpoint.pt").is_file()
    return len(checkpoint(directory)["history"]) if whole else 0


def assert_same(first, second):
    """Nested states, bit for bit."""
    assert type(first) is type(second)
    if isinstance(first, dict):
        assert first.keys() == second.keys()
        first, second = list(first.values()), list(second.values())
    if isinstance(first, list | tuple):
        for pair in zip(first, second, strict=True):
            assert_same(*pair)
    elif isinstance(first, torch.Tensor):
        assert torch.equal(first, second)
    else:
        assert first == second


@pytest.mark.parametrize("name", TRAINED)
def test_knowns_rank_above_unknowns_on_the_digits(name, tmp_path):
    model = new_model(name=name)
    fit(name, model, tmp_path, Batches())
    out = train.predict(model, lambda _: [(IMAGES[TEST], LABELS[TEST])])
    known, rule = LABELS[TEST].numpy() < 5, "max_softmax" if name in SPARE else "max_logit"
    score = scores.SCORES[rule](out, known=5)
    assert metrics.auroc(score[known], score[~known]) > 0.8
    assert np.mean(out.logits[:, :5].argmax(1)[known] == LABELS[TEST].numpy()[known]) > 0.9


def short(name):
    """Settings of three epochs, as short as they can be."""
    return {"epochs": 3, "every": 0.0} | FEW.get(name, {})


@pytest.fixture(scope="module", params=TRAINED)
def whole(request, tmp_path_factory):
    """A method's name, and the folder and the model of a run that nobody has killed."""
    name, directory = request.param, tmp_path_factory.mktemp(request.param)
    fit(name, model := new_model(name=name), directory, Batches(3), **short(name))
    return name, directory, model


@pytest.mark.parametrize("stop", [2, 8])  # in the first and in the last stage, or epoch
def test_a_run_that_is_killed_and_resumed_ends_with_the_same_bytes(whole, stop, tmp_path):
    name, directory, model = whole
    with pytest.raises(KeyboardInterrupt):
        fit(name, new_model(name=name), tmp_path, Batches(3, stop), **short(name))
    assert epochs_done(tmp_path) < 3
    fit(name, resumed := new_model(name=name), tmp_path, Batches(3), **short(name))
    assert_same(dict(model.state_dict()), dict(resumed.state_dict()))
    assert_same(checkpoint(directory), checkpoint(tmp_path))


def generated(model, directory):
    """Images of the trained generator, and how sure the model is of them."""
    state = checkpoint(directory)
    generator = arpl_cs.generator(1, 8, width=PAIR["gan_width"], latent=PAIR["latent"])
    generator.load_state_dict(state["generator"])
    model = copy.deepcopy(model).eval()
    own = {key.rpartition(".")[2] for key in state["norms"]}
    assert own >= {"weight", "bias", "running_mean", "running_var"}
    norms = torch.nn.ModuleList(copy.deepcopy(arpl_cs.norms_of(model)))
    norms.load_state_dict(state["norms"])
    noise = torch.randn(200, PAIR["latent"], 1, 1, generator=torch.Generator().manual_seed(1))
    with torch.no_grad(), arpl_cs.exchanged(arpl_cs.norms_of(model), norms):
        images = generator(noise)
        return images, arpl_cs.confusion(model(images).slack).item()


def trained_without_term(directory):
    """(plain training for two passes an epoch, ARPL+CS at a price of 0), as states."""
    fit("plain", plain := new_model(), directory / "plain", arpl_cs.Passes(Batches(3), 2), epochs=2)
    fit("arpl_cs", other := new_model(), directory / "cs", Batches(3), epochs=2, beta=0.0)
    return dict(plain.state_dict()), dict(other.state_dict())


def test_without_its_term_arpl_cs_is_two_plain_passes(tmp_path):
    assert_same(*trained_without_term(tmp_path))


def test_without_batch_norms_of_their_own_generated_images_change_the_model(tmp_path, monkeypatch):
    monkeypatch.setattr(arpl_cs, "exchanged", lambda *_: nullcontext())
    plain, other = trained_without_term(tmp_path)
    assert not torch.equal(plain["trunk.0.1.running_mean"], other["trunk.0.1.running_mean"])


def test_the_discriminator_sees_pixels_where_the_classifier_sees_them_normalised(tmp_path):
    torch.manual_seed(0)
    model = models.conv(classes=5, features=8, width=8, channels=3, head="arpl")
    model = models.normalising(model, "cifar", channels=3)
    batches = Batches(1)
    batches.images = batches.images.expand(-1, 3, -1, -1)
    images, labels = next(iter(batches(1)))
    own = {"gan_width": 4, "beta": 0.1, "latent": 16}
    run = begun(arpl_cs.Confusing, model, tmp_path, batches, **own)
    run.batches, seen = range(2), {"judge": [], "trunk": []}
    for name, part in (("judge", run.companions["discriminator"]), ("trunk", model.trunk)):
        part.register_forward_pre_hook(lambda _, given, name=name: seen[name].extend(given))
    run.values(images, labels)
    pixels, normalised = (torch.stack(x).detach() for x in (seen["judge"], seen["trunk"]))
    assert len(pixels) == len(normalised) == 3  # real, generated, and generated once more
    assert 0 <= pixels.min() < pixels.max() <= 1
    mean, std = torch.tensor(models.NORMALISE["cifar"])[..., None, None]
    for seen_so, were in ((normalised[1], images), (normalised[0], pixels[2])):
        torch.testing.assert_close(seen_so, (were - mean) / std)


def test_confusion_is_its_definition_and_finite_where_a_probability_is_0():
    rows = [[0.3, 1.2, -0.4], [2.0, 0.1, 0.1]]
    total = 0.0
    for row in rows:
        p = [math.exp(x) / sum(map(math.exp, row)) for x in row]
        total += sum(x * math.log(x) for x in p)
    found = arpl_cs.confusion(torch.tensor(rows, dtype=torch.float64))
    assert found.item() == pytest.approx(math.exp(total / 2), rel=1e-12)
    assert arpl_cs.confusion(torch.zeros(2, 4)).item() == pytest.approx(1 / 4)
    sure = torch.tensor([[1e4, 0.0, -1e4]], requires_grad=True)
    arpl_cs.confusion(sure).backward()
    assert arpl_cs.confusion(sure).item() == pytest.approx(1)
    assert sure.grad.isfinite().all()


@pytest.mark.parametrize("shape", [(3, 4, 4), (3, 24, 24), (3, 8, 16)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match=r"need square images|need images of 8, 16"):
        arpl_cs.generator(
            *train.forward.image_shape(lambda *_: [(torch.zeros(1, *shape), 0)]), width=2, latent=2
        )


def test_several_devices_are_refused(tmp_path):
    with pytest.raises(ValueError, match="got devices=2"):
        fit("arpl_cs", new_model(), tmp_path, Batches(3), devices=2)


def test_the_optimizer_and_the_model_are_afterwards_as_wide_as_before(tmp_path):
    model = new_model()
    optimizer, names = torch.optim.Adam(model.parameters()), list(model.state_dict())
    fit("arpl_cs", model, tmp_path, Batches(3), epochs=1, optimizer=optimizer)
    assert list(model.state_dict()) == names
    assert len(optimizer.param_groups) == 1
    assert set(optimizer.state) == set(model.parameters())


@pytest.mark.parametrize("name", ["arpl_cs", "vos"])
def test_an_optimizer_that_was_used_before_begins_at_its_first_rate(name, tmp_path):
    optimizer, rates = torch.optim.SGD((model := new_model()).parameters(), lr=0.1), []
    how = {"optimizer": optimizer, "schedule": train.SCHEDULES["step"], "epochs": 2}
    for folder in ("first", "second"):
        history = fit(name, model, tmp_path / folder, Batches(2), **how)
        rates.append(history["learning_rate"].tolist())
    assert rates[0] == rates[1]
    assert min(rates[0]) < 0.1


@pytest.mark.parametrize("start", range(7))
def test_passes_go_on_from_any_batch(start):
    passes = arpl_cs.Passes(Batches(3), 2)
    assert len(passes) == 6
    whole, rest = list(passes(2)), list(passes(2, start))
    assert_same([list(pair) for pair in whole[start:]], [list(pair) for pair in rest])
    assert not torch.equal(whole[0][1], whole[3][1])


def test_only_the_first_pass_of_an_epoch_has_confusing_samples(tmp_path, monkeypatch):
    steps, plain = [], arpl_cs.Confusing.discern
    told = lambda run, images: steps.append(run.step) or plain(run, images)  # noqa: E731
    monkeypatch.setattr(arpl_cs.Confusing, "discern", told)
    fit("arpl_cs", new_model(), tmp_path, Batches(3), epochs=2)
    assert steps == [0, 1, 2] * 2
