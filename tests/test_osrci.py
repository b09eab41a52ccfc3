"""OSRCI on the digits: its three stages, and what each is for."""

import math
from itertools import islice

import pandas as pd
import pytest
import torch
from test_methods import (
    IMAGES,
    LABELS,
    TEST,
    Batches,
    assert_same,
    begun,
    checkpoint,
    fit,
    new_model,
)
from torch import nn

from osnb import metrics, scores, train
from osnb.train.methods import osrci

SHORT = {"gan_epochs": 2, "epochs": 2, "generated": 64, "cf_steps": 3, "every": 0.0}


@pytest.mark.parametrize("start", range(8))
def test_images_without_end_go_on_in_the_middle_of_an_epoch(start):
    class Numbered:
        def __len__(self):
            return 3

        def __call__(self, epoch, first):
            return ((10 * epoch + i, None) for i in range(first, 3))

    whole = [10 * epoch + i for epoch in range(1, 6) for i in range(3)]
    assert [*islice(osrci.endless(Numbered(), start), 6)] == whole[start : start + 6]


def trained(directory, **changes):
    model = new_model(name="osrci")
    return model, fit("osrci", model, directory, Batches(3), **(SHORT | changes))


def replaced(kind):
    """Counterfactuals, or what they are compared with."""
    fakes = {
        "originals": lambda images, **_: images,
        "noise": lambda images, **_: torch.rand_like(images),
    }
    return fakes.get(kind, osrci.counterfactuals)


@pytest.fixture(scope="module")
def first_stage(tmp_path_factory):
    """A trained `Gan` and its classifier, in evaluation mode."""
    model = new_model(name="osrci")
    own = {"gan_rate": 2e-3, "gan_width": 8, "latent": 16}
    own |= {"optimizer": osrci.adam(model, rate=2e-3), "epochs": 8}
    run = begun(osrci.Gan, model, tmp_path_factory.mktemp("run") / "gan", Batches(), **own)
    run.train()
    for part in (model, run.companions["encoder"], run.companions["generator"]):
        part.eval()
    return run


def search(run, images, kind="", **changes):
    settings = {"steps": 50, "speed": 0.1, "distance": 1.0} | changes
    own = {"encode": run.encode, "generate": run.generate, "model": run.model}
    return replaced(kind)(images, **own, **settings)


@pytest.mark.parametrize(
    ("kind", "steps", "unknown", "near"),
    [
        ("", 50, True, True),
        ("", 0, False, True),
        ("originals", 50, False, True),
        ("noise", 50, None, False),
    ],
    ids=["counterfactuals", "without search", "originals", "noise"],
)
def test_counterfactuals_are_near_an_image_and_of_no_class(first_stage, kind, steps, unknown, near):
    images = IMAGES[~TEST & (LABELS < 5)][:100]
    torch.manual_seed(0)
    found = search(first_stage, images, kind, steps=steps)
    p = first_stage.model(found).logits.softmax(1)[:, -1].mean().item()
    if unknown is not None:
        assert (p > 0.4) == unknown
    assert ((found - images).abs().mean().item() < 0.15) == near


def test_one_step_of_the_search_is_the_gradient_written_out():
    """A linear world: image = z, logits = weight z, in double precision."""
    torch.manual_seed(0)
    z0 = nn.functional.normalize(torch.randn(3, 2, 4, 4, dtype=torch.float64), dim=1)
    model = nn.Sequential(nn.Flatten(), nn.Linear(32, 3).double())

    def wrapped(images):
        return type("Out", (), {"logits": model(images)})

    found = osrci.counterfactuals(z0, lambda x: x, lambda z: z, wrapped, steps=1, speed=0.3,
                                  distance=5.0)  # fmt: skip
    p = model(z0).softmax(1)
    wanted = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
    slope = ((p - wanted) @ model[1].weight).view_as(z0)  # of -log p_K; the distance's is 0
    moved = z0 - 0.3 * slope
    torch.testing.assert_close(found, moved / moved.norm(dim=1, keepdim=True))


def auroc(model):
    out = train.predict(model, lambda _: [(IMAGES[TEST], LABELS[TEST])])
    known, score = LABELS[TEST].numpy() < 5, scores.max_softmax(out, known=5)
    return metrics.auroc(score[known], score[~known])


def test_with_the_originals_as_counterfactuals_knowns_no_longer_rank_above(tmp_path, monkeypatch):
    monkeypatch.setattr(osrci, "counterfactuals", replaced("originals"))
    fit("osrci", model := new_model(name="osrci"), tmp_path, Batches())
    assert auroc(model) < 0.8


def test_the_first_two_stages_can_read_batches_of_their_own(tmp_path):
    first, last = Batches(3, stop=99), Batches(3, stop=99)
    fit("osrci", new_model(name="osrci"), tmp_path, last, gan_batches=first, **SHORT)
    assert 99 - first.left == 1 + 2 * 3 + 2  # their shape, two epochs, two batches to search from
    assert 99 - last.left == 1 + 2 * 3  # their labels, two epochs


def test_stages_that_are_done_are_skipped(tmp_path, monkeypatch):
    model, history = trained(tmp_path)
    files = {file: file.read_bytes() for file in sorted(tmp_path.rglob("*.p*"))}
    monkeypatch.setattr(osrci, "counterfactuals", pytest.fail)
    again, same = trained(tmp_path)
    fit(
        "osrci", again, tmp_path, Batches(3), **SHORT
    )  # with the trained network, as a cell run twice
    assert_same(dict(model.state_dict()), dict(again.state_dict()))
    pd.testing.assert_frame_equal(history, same)
    assert files == {file: file.read_bytes() for file in sorted(tmp_path.rglob("*.p*"))}


@pytest.mark.parametrize("changed", [{"cf_steps": 5}, {"cf_distance": 9.0}, {"generated": 32}])
def test_another_search_makes_other_images_and_trains_on_them(changed, tmp_path):
    trained(tmp_path / "both")
    again, _ = trained(tmp_path / "both", **changed)
    once, _ = trained(tmp_path / "once", **changed)
    images = [checkpoint(tmp_path / run / "counterfactuals")["images"] for run in ("both", "once")]
    assert torch.equal(*images)
    assert_same(dict(again.state_dict()), dict(once.state_dict()))


@pytest.mark.parametrize("stop", [6, 8, 9])  # 2 reads, 6 steps, 1 read of 2 batches, 6 steps
def test_every_stage_resumes_to_the_same_bytes(stop, tmp_path):
    trained(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        fit("osrci", new_model(name="osrci"), tmp_path / "broken", Batches(3, stop), **SHORT)
    trained(tmp_path / "broken")
    for folder in ("gan", "counterfactuals", "."):
        assert_same(*(checkpoint(tmp_path / run / folder) for run in ("whole", "broken")))


def test_one_against_all_is_its_definition_and_a_negative_is_none_of_them():
    logits = torch.tensor([[1.0, -0.5, 0.3], [0.2, 2.0, -1.0]], dtype=torch.float64)
    found = osrci.one_against_all(logits, torch.tensor([0, -1])).tolist()

    def price(x):
        return math.log1p(math.exp(x))

    assert found[0] == pytest.approx((price(-0.7) + price(-0.8)) / 2)
    assert found[1] == pytest.approx((price(1.2) + price(3.0)) / 2)


def test_steepness_of_a_plane_is_known():
    judge = nn.Sequential(nn.Flatten(), nn.Linear(4, 1))
    nn.init.constant_(judge[1].weight, 1.5)  # a gradient of length 3
    found = osrci.steepness(judge, torch.zeros(5, 1, 2, 2), torch.ones(5, 1, 2, 2))
    assert found.item() == pytest.approx(4.0)


@pytest.mark.parametrize("size", [4, 24])
def test_other_edges_are_refused(size):
    with pytest.raises(ValueError, match="need images of 8, 16"):
        osrci.encoder(3, size, width=2, latent=2)


def test_a_model_without_a_spare_output_is_refused(tmp_path):
    with pytest.raises(ValueError, match="need labels below K of"):
        fit("osrci", new_model(), tmp_path, Batches(3))


def test_a_search_is_as_fast_as_it_is_told_to_be(tmp_path):
    images = []
    for speed in (9.0, 0.1):
        trained(tmp_path / f"{speed}", cf_speed=speed, epochs=1)
        images.append(checkpoint(tmp_path / f"{speed}" / "counterfactuals")["images"])
    assert not torch.equal(*images)


def test_only_the_last_stage_has_a_best_epoch(tmp_path):
    _, history = trained(tmp_path, validate=lambda _: {"best": 1.0})
    assert history.groupby("stage")["best"].count().to_dict() == {1: 0, 3: 2}
    assert not (tmp_path / "gan" / "best.pt").exists()


def test_a_price_of_the_distance_keeps_counterfactuals_nearer(first_stage):
    images = IMAGES[~TEST & (LABELS < 5)][:100]
    rebuilt = search(first_stage, images, steps=0)
    near, free = (
        (search(first_stage, images, distance=x) - rebuilt).abs().mean() for x in (5.0, 0.0)
    )
    assert near < free
