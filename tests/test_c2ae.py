"""C2AE on the digits: its formulas written out, what its terms are for, and its two stages."""

import numpy as np
import pandas as pd
import pytest
import torch
from test_methods import IMAGES, LABELS, TEST, Batches, assert_same, checkpoint, fit, new_model

from osnb import metrics, scores, train
from osnb.methods import OWN, c2ae

GOOD = {"epochs": 4, "gan_epochs": 12, "gan_rate": 3e-3}
SHORT = {"epochs": 2, "gan_epochs": 2, "every": 0.0}
KNOWN = (LABELS[TEST] < 5).numpy()


def rows(_):
    """All test images, in two batches."""
    return zip(IMAGES[TEST].split(500), LABELS[TEST].split(500), strict=True)


def trained(directory, **changes):
    model = new_model()
    return model, fit("c2ae", model, directory, Batches(3), **(SHORT | changes))


def own(model, directory):
    out, settings = train.predict(model, rows), {"model": model, "batches": rows, "known": 5}
    return out, OWN.bind("c2ae", directory=directory, **settings)(out)["own"]


def auroc(score):
    return metrics.auroc(score[KNOWN], score[~KNOWN])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """(model, directory) of a run on all known digits."""
    directory = tmp_path_factory.mktemp("c2ae")
    fit("c2ae", model := new_model(), directory, Batches(), **GOOD)
    return model, directory


def small(classes=3):
    torch.manual_seed(0)
    sizes = {"classes": classes, "features": 4, "channels": 1, "size": 8, "width": 2, "latent": 3}
    return c2ae.Decoder(**sizes)


def test_film_is_its_formula():
    decoder, z = small(), np.array([[1.0, -2.0, 0.5, 3.0], [0.0, 1.0, 2.0, -1.0]])
    found = decoder.film(torch.tensor(z, dtype=torch.float32), torch.tensor([2, 0]))
    weight, bias, shift, moved = (p.detach().numpy() for p in list(decoder.parameters())[:4])
    for row, z_row, told in zip(found, z, ([-1, -1, 1], [1, -1, -1]), strict=True):
        wanted = (weight @ told + bias) * z_row + (shift @ told + moved)
        np.testing.assert_allclose(row.detach().numpy(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("labels", [[0, 0, 1, 2, 4, 4], [3, 3, 3, 3, 3, 3]], ids=str)
def test_a_step_is_the_paper_s_sum_image_by_image(whole, labels, tmp_path):
    """Of one class only there is no wrong class, and the right one's price is all."""
    model, labels, images = whole[0], torch.tensor(labels), IMAGES[TEST][:6]
    decoder = c2ae.trained(whole[1])
    run = c2ae.Conditioned(
        *(model, None, Batches(1), torch.optim.Adam(decoder.parameters()), None, tmp_path),
        *("float32", 1, 1.0),
        stage=2,
        companions={"decoder": decoder},
        match=0.7,
    )
    torch.manual_seed(5)
    found = run.values(images, labels).detach().numpy()
    torch.manual_seed(5)
    other = c2ae.strangers(labels)
    for i, j in enumerate(other.tolist()):
        z = model.trunk(images[i : i + 1])
        right = np.abs((decoder(z, labels[[i]])[0] - images[i]).detach().numpy()).mean()
        wrong = np.abs((decoder(z, labels[[j]])[0] - images[j]).detach().numpy()).mean()
        wanted = 0.7 * right + 0.3 * wrong * (labels[i] != labels[j]).item()
        assert found[i] == pytest.approx(wanted, rel=1e-4)


def test_strangers_are_of_another_class_and_each_of_them_as_often():
    torch.manual_seed(0)
    labels = torch.tensor([0, 1, 1, 2])
    found = torch.stack([c2ae.strangers(labels) for _ in range(3000)])
    counts = np.array([[(found[:, i] == j).sum() for j in range(4)] for i in range(4)]) / 3000
    third = [0, 1 / 3, 1 / 3, 1 / 3]
    wanted = [third, [1 / 2, 0, 0, 1 / 2], [1 / 2, 0, 0, 1 / 2], third[::-1]]
    np.testing.assert_allclose(counts, wanted, atol=0.03)


def test_k_inference_is_the_least_error_of_a_loop_in_the_order_of_the_rows(whole):
    model, directory = whole
    _, found = own(model.train(), directory)
    decoder, images, wanted = c2ae.trained(directory), IMAGES[TEST], []
    model.eval()
    for i in range(20):
        z = model(images[i : i + 1]).features
        made = [decoder(z, torch.tensor([c]))[0].detach().double() for c in range(5)]
        wanted.append(-min((x - images[i]).abs().mean().item() for x in made))
    assert found.dtype == np.float64
    assert found.shape == KNOWN.shape
    np.testing.assert_allclose(found[:20], wanted, rtol=1e-4)


def test_only_known_classes_are_told(whole):
    model, directory = whole
    out = train.predict(model, rows)
    settings = {"model": model, "batches": rows, "directory": directory}
    fewer = c2ae.own(out, known=1, **settings)["own"]
    z, images = torch.from_numpy(out.features), IMAGES[TEST]
    made = c2ae.trained(directory)(z, torch.zeros(len(z), dtype=torch.int64)).detach()
    wanted = -(made - images).abs().mean(dim=(1, 2, 3)).numpy()
    np.testing.assert_allclose(fewer, wanted, rtol=1e-4)


def test_unknown_digits_are_rebuilt_worse_than_known_ones(whole):
    out, score = own(*whole)
    assert auroc(score) > 0.9
    assert auroc(score) > auroc(scores.max_logit(out, known=5))


def test_with_a_decoder_that_has_not_learnt_unknowns_are_not_told(tmp_path):
    fit("c2ae", model := new_model(), tmp_path, Batches(), **(GOOD | {"gan_rate": 0.0}))
    assert auroc(own(model, tmp_path)[1]) < 0.6


def told_wrong(model, directory):
    """Mean errors with the right class, with a wrong one, and of a wrong one's own image."""
    images, labels, decoder = IMAGES[TEST][KNOWN], LABELS[TEST][KNOWN], c2ae.trained(directory)
    torch.manual_seed(0)
    other = c2ae.strangers(labels)
    with torch.no_grad():
        z = model.eval()(images).features
        right, wrong = decoder(z, labels), decoder(z, labels[other])
    pairs = ((right, images), (wrong, images), (wrong, images[other]))
    return [c2ae.error(*pair).mean().item() for pair in pairs]


def test_told_a_wrong_class_it_makes_an_image_of_that_class(whole):
    right, wrong, stranger = told_wrong(*whole)
    assert wrong > 1.7 * right
    assert stranger < 1.5 * right


def test_without_a_price_of_the_wrong_class_it_makes_no_image_of_it(tmp_path):
    fit("c2ae", model := new_model(), tmp_path, Batches(), **(GOOD | {"match": 1.0}))
    right, _, stranger = told_wrong(model, tmp_path)
    assert stranger > 2 * right


def test_a_decoder_that_does_not_hear_the_class_rebuilds_any(tmp_path, monkeypatch):
    monkeypatch.setattr(c2ae.Decoder, "film", lambda _, z, _classes: z)
    fit("c2ae", model := new_model(), tmp_path, Batches(), **GOOD)
    right, wrong, stranger = told_wrong(model, tmp_path)
    assert wrong == right
    assert stranger > 2 * right


def test_stage_one_is_plain_training_and_stage_two_leaves_the_classifier(tmp_path):
    model, _ = trained(tmp_path / "c2ae")
    fit("plain", plain := new_model(), tmp_path / "plain", Batches(3), epochs=2, every=0.0)
    assert_same(*(checkpoint(tmp_path / run) for run in ("c2ae/classifier", "plain")))
    assert_same(*(dict(each.state_dict()) for each in (model, plain)))


def test_history_has_a_row_per_epoch_of_both_stages(tmp_path):
    best = iter(range(9))
    found = {"validate": lambda _: {"accuracy": 0.1 * (b := next(best)), "best": b}}
    _, history = trained(tmp_path, **found)
    assert history["epoch"].tolist() == [1, 2, 3, 4]
    assert history["stage"].tolist() == [1, 1, 2, 2]
    assert history["best"].isna().tolist() == [False, False, True, True]
    assert history["accuracy"].tolist() == [0.0, 0.1, 0.1, 0.1]
    assert next(best) == 2
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "history.parquet"), history)


def test_stages_that_are_done_are_skipped(tmp_path):
    model, history = trained(tmp_path)
    files = {file: file.read_bytes() for file in sorted(tmp_path.rglob("*.p*"))}
    again, same = trained(tmp_path)
    assert_same(dict(model.state_dict()), dict(again.state_dict()))
    pd.testing.assert_frame_equal(history, same)
    assert files == {file: file.read_bytes() for file in sorted(tmp_path.rglob("*.p*"))}


@pytest.mark.parametrize("stop", [3, 7, 9, 13])  # 1 read, 6 steps, 1 read, 6 steps
def test_every_stage_resumes_to_the_same_bytes(stop, tmp_path):
    model, history = trained(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        fit("c2ae", new_model(), tmp_path / "broken", Batches(3, stop), **SHORT)
    resumed, same = trained(tmp_path / "broken")
    for folder in ("classifier", "."):
        assert_same(*(checkpoint(tmp_path / run / folder) for run in ("whole", "broken")))
    pd.testing.assert_frame_equal(history, same)
    scored = [own(model, tmp_path / "whole")[1], own(resumed, tmp_path / "broken")[1]]
    assert np.array_equal(*scored)


@pytest.mark.parametrize("size", [8, 16, 32, 64])
def test_decoders_make_square_images_normalised_as_the_real_ones(size):
    sizes = {"classes": 2, "features": 5, "channels": 3, "size": size, "width": 2, "latent": 4}
    plain, made = c2ae.Decoder(**sizes), c2ae.Decoder(**sizes, mean=(0.1, 0.2, 0.3), std=(0.5,))
    made.load_state_dict(plain.state_dict())
    asked = torch.randn(3, 5), torch.tensor([0, 1, 1])
    pixels, found = plain(*asked), made(*asked)
    assert pixels.shape == (3, 3, size, size)
    assert 0 <= pixels.min() < pixels.max() <= 1
    wanted = 2 * (pixels - torch.tensor([0.1, 0.2, 0.3])[:, None, None])
    torch.testing.assert_close(found, wanted)


def test_the_decoder_comes_back_with_what_it_was_made_of(tmp_path):
    own = {"gan_width": 4, "latent": 6, "mean": [0.5], "std": [0.25]}
    trained(tmp_path, **own)
    found = c2ae.trained(tmp_path)
    wanted = {"classes": 5, "features": 32, "channels": 1, "size": 8, "width": 4, "latent": 6}
    assert found.made_of == wanted | {"mean": (0.5,), "std": (0.25,)}
    assert not any(module.training for module in found.modules())


def test_without_a_decoder_a_score_says_what_to_do(tmp_path):
    model = new_model()
    with pytest.raises(FileNotFoundError, match=r"no decoder in .* methods.c2ae.fit first"):
        own(model, tmp_path)
    fit("plain", model, tmp_path, Batches(1), epochs=1)
    with pytest.raises(FileNotFoundError, match="no decoder in"):
        own(model, tmp_path)


def test_several_devices_are_refused(tmp_path):
    with pytest.raises(ValueError, match="got devices=2"):
        trained(tmp_path, devices=2)


def test_an_error_is_a_mean_of_absolute_differences():
    made, images = torch.tensor([[[[1.0, -1.0]]]]), torch.tensor([[[[0.5, 1.0]]]])
    assert c2ae.error(made, images).tolist() == [1.25]
