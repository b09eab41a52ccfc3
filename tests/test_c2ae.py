"""C2AE on the digits: its formulas written out, what its terms are for, and its two stages."""

import numpy as np
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

from osnb import metrics, scores, train
from osnb.train.methods import OWN, c2ae

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
    return out, OWN.bind("c2ae", directory=directory, **settings)(out)


def auroc(score):
    return metrics.auroc(score[KNOWN], score[~KNOWN])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """(model, directory) of a run on all known digits."""
    directory = tmp_path_factory.mktemp("c2ae")
    fit("c2ae", model := new_model(), directory, Batches(), **GOOD)
    return model, directory


@pytest.mark.parametrize("labels", [[0, 0, 1, 2, 4, 4], [3, 3, 3, 3, 3, 3]], ids=str)
def test_a_step_is_the_paper_s_sum_image_by_image(whole, labels, tmp_path):
    """Of one class only there is no wrong class, and the right one's price is all."""
    model, labels, images = whole[0], torch.tensor(labels), IMAGES[TEST][:6]
    decoder = c2ae.trained(whole[1])
    own = {"stage": 2, "companions": {"decoder": decoder}, "match": 0.7}
    run = begun(c2ae.Conditioned, model, tmp_path, Batches(1), **own)
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
    states = [checkpoint(tmp_path / run) for run in ("c2ae/classifier", "plain")]
    assert states[0]["identity"].pop("stage") == 1
    assert_same(*states)
    assert_same(*(dict(each.state_dict()) for each in (model, plain)))


@pytest.mark.parametrize("stop", [7, 13])  # 1 read, 6 steps, 1 read, 6 steps
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


def test_without_a_decoder_a_score_says_what_to_do(tmp_path):
    model = new_model()
    with pytest.raises(FileNotFoundError, match=r"no decoder in .* with method c2ae first"):
        own(model, tmp_path)
    fit("plain", model, tmp_path, Batches(1), epochs=1)
    with pytest.raises(FileNotFoundError, match="no decoder in"):
        own(model, tmp_path)
