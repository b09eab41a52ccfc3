"""What the networks of a method draw, as pictures of a short training."""

import numpy as np
import pytest
import torch

from osnb.experiment import Experiment, Machine
from osnb.train import checkpoint, methods
from osnb.train.methods import arpl_cs, osrci

FEW = "epochs=1 rules=plain train_per_class=8 validation_per_class=4 test_per_class=2 width=4"


def trained(tmp_path, method, more=""):
    exp = Experiment.named("tinyimagenet", method=method, overrides=f"{FEW} {more}".strip())
    parts = exp.parts(Machine())
    network = exp.network(parts)
    exp.fit(network, exp.criterion(parts), parts, tmp_path)
    return exp, network, parts


def pixels(images):
    return np.rint(images.detach().numpy().clip(0, 1) * 255).astype(np.uint8)


@pytest.mark.slow
def test_counterfactuals_stand_below_the_images_that_the_search_began_at(tmp_path):
    few = "gan_epochs=1 gan_width=2 generated=40"
    exp, network, parts = trained(tmp_path, "osrci", few)
    before, after = exp.drawn(network, parts, tmp_path, count=6).values()
    began = torch.cat([*osrci._first(parts.train[0], 40)])
    assert np.array_equal(before, pixels(began[:6]))
    kept = checkpoint.newest(tmp_path / osrci.COUNTERFACTUALS)["images"]
    assert len(kept) == 40
    assert np.array_equal(after, pixels(kept[:6]))


def test_confusing_images_are_those_of_the_trained_generator(tmp_path):
    exp, network, parts = trained(tmp_path, "arpl_cs", "gan_width=2")
    (made,) = exp.drawn(network, parts, tmp_path, count=5).values()
    generator = arpl_cs.generator(1, 32, width=2, latent=100).eval()
    generator.load_state_dict(checkpoint.newest(tmp_path)["generator"])
    noise = torch.randn(5, 100, 1, 1, generator=torch.Generator().manual_seed(0))
    assert np.array_equal(made, pixels(generator(noise)))
    other = arpl_cs.made(tmp_path, (1, 32, 32), count=5, seed=1)
    assert not np.array_equal(made, pixels(other))


def test_c2ae_rebuilds_held_out_images_as_the_class_that_it_is_told(tmp_path, monkeypatch):
    exp, network, parts = trained(tmp_path, "c2ae", "gan_epochs=1 gan_width=2")
    images, own, _ = exp.drawn(network, parts, tmp_path, count=7).values()
    held, labels = next(iter(parts.held_out(0)))
    assert np.array_equal(images, pixels(held[:7]))
    features = network.eval()(held[:7]).features
    found = pixels(methods.c2ae.trained(tmp_path)(features, labels[:7]))
    assert np.abs(found.astype(int) - own).max() <= 1  # of another batch

    class Told(torch.nn.Module):  # a decoder whose image is the class that it is told
        def forward(self, features, told):
            return told[:, None, None, None].expand(-1, 1, 32, 32) / 255

    monkeypatch.setattr(methods.c2ae, "trained", lambda directory: Told())
    _, *told = exp.drawn(network, parts, tmp_path, count=80).values()
    assert [rows[:, 0, 0, 0].tolist() for rows in told] == [
        labels[:80].tolist(),
        ((labels[:80] + 1) % parts.known).tolist(),
    ]


def test_a_method_without_a_generator_draws_nothing(tmp_path):
    exp = Experiment.named("tinyimagenet", method="arpl", overrides=FEW)
    assert exp.drawn(None, None, tmp_path) == {}
    with pytest.raises(FileNotFoundError, match="train it with method arpl_cs first"):
        arpl_cs.made(tmp_path, (1, 32, 32), count=1, seed=0)
