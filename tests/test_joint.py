"""CROSR and OpenHybrid on the digits: what their networks measure, and what its price is for."""

import numpy as np
import pytest
import torch
from test_c2ae import KNOWN, auroc
from test_methods import IMAGES, LABELS, TEST, Batches, begun
from torch.autograd.functional import jacobian
from torch.nn.functional import conv2d, conv_transpose2d, max_pool2d

from osnb import losses, models, scores, train
from osnb.base.outputs import Outputs
from osnb.train.loop import Run
from osnb.train.methods import OWN


def rows(_):
    return [(IMAGES[TEST], LABELS[TEST])]


def trained(model, directory, *, weight, epochs=8):
    own = {"loss": losses.LOSSES.bind("joint", weight=weight), "epochs": epochs}
    own["optimizer"] = torch.optim.AdamW(model.parameters(), lr=3e-3)
    begun(Run, model, directory, Batches(), **own).train()
    return model


# CROSR


def new_dhrnet():
    torch.manual_seed(0)
    return models.dhrnet(classes=5, channels=1, width=4, latent=3)


def test_an_image_is_rebuilt_as_the_paper_s_recursion_says():
    model, images = new_dhrnet(), IMAGES[:6]
    model(images)  # moves the norms
    out = model.eval()(images)

    def conv(layer, x):
        return conv2d(x, layer.weight, layer.bias, padding=layer.padding)

    x, levels, z = images, [], []
    for down, narrow in zip(model.down, model.narrow, strict=True):
        for layer, norm, _ in down[:2]:
            x = norm(conv(layer, x)).clamp(min=0)
        x = max_pool2d(x, 2)
        z.append(conv(narrow[0], x).clamp(min=0))
        levels.append(x)
    made = 0.0
    for i in (2, 1, 0):
        up = model.up[i]
        made = conv_transpose2d(made + conv(model.widen[i], z[i]), up.weight, up.bias, stride=2)
        made = made.clamp(min=0) if i else made
    means = [values.mean(dim=(2, 3)) for values in z]
    torch.testing.assert_close(out.slack[:, 0], ((made - images) ** 2).mean(dim=(1, 2, 3)))
    torch.testing.assert_close(out.features, torch.cat([out.logits, *means], dim=1))
    torch.testing.assert_close(out.logits, model.head(levels[2].mean(dim=(2, 3))))


@pytest.mark.parametrize(("weight", "learned"), [(1.0, True), (0.0, False)])
def test_images_are_rebuilt_if_that_has_a_price(weight, learned, tmp_path):
    model = trained(new_dhrnet(), tmp_path, weight=weight)
    images = IMAGES[TEST][KNOWN]
    with torch.no_grad():
        error = model.eval()(images).slack.mean()
    assert (error < 0.9 * images.var(dim=0).mean()) == learned


def test_openmax_of_features_measures_distances_between_features():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 30)
    logits = rng.normal(size=(90, 3)) + 4 * np.eye(3)[labels]
    how = {"known": 3, "tail": 8, "alpha": 2, "distance": "euclidean", "weights": "ranked"}
    how["score"] = "log_odds"
    test = rng.normal(0, 2, (40, 3))
    wide = scores.openmax(Outputs(logits, np.c_[logits, 0 * logits]), labels, **how, of="features")
    plain = scores.openmax(Outputs(logits), labels, **how)
    same = wide(Outputs(test, np.c_[test, 0 * test]), known=3)
    np.testing.assert_allclose(same, plain(Outputs(test), known=3), rtol=1e-12)
    test = logits[::3]
    same, far = (wide(Outputs(test, np.c_[test, z + 0 * test]), known=3) for z in (0, 9))
    assert (far < same).mean() > 0.9  # z speaks where y does not


# OpenHybrid


def new_flow(features=6):
    torch.manual_seed(0)
    return models.HEADS["flow"](features=features, classes=3)


def test_the_slack_of_a_flow_is_its_density_by_its_jacobian():
    flow = new_flow().double().eval()
    for step in flow.steps:
        for own in (step.scale, step.moved):
            torch.nn.init.normal_(own, 0, 0.3)
    f = torch.randn(4, 6, dtype=torch.float64)

    def end(x):
        for step in flow.steps:
            x = step(x[None])[0][0]
        return x

    _, slack = flow(f)
    for row, found in zip(f, slack[:, 0], strict=True):
        volume = jacobian(end, row).det().abs().log()
        log_p = torch.distributions.Normal(0, 1).log_prob(end(row)).sum() + volume
        assert found.item() == pytest.approx(-log_p.item() / 6, rel=1e-9)


def test_a_flow_s_density_sums_to_1_and_each_step_can_be_undone():
    flow = new_flow(features=2).eval()
    grid = torch.cartesian_prod(*[torch.linspace(-12, 12, 401)] * 2)
    with torch.no_grad():
        area = (-2 * flow(grid)[1]).exp().sum().item() * 0.06**2
        assert area == pytest.approx(1, abs=0.01)
        step, few = flow.steps[0], grid[::97]
        x = y = step(few)[0]
        for _ in range(300):  # the fixed point of x = y - g(x)
            x = y - (step(x)[0] - x)
    torch.testing.assert_close(x, few, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize(("weight", "learned"), [(0.1, True), (0.0, False)])
def test_known_digits_are_denser_than_unknown_ones_if_density_has_a_price(
    weight, learned, tmp_path
):
    torch.manual_seed(0)
    model = models.conv(classes=5, features=16, width=8, channels=1, head="flow")
    trained(model, tmp_path, weight=weight, epochs=12)
    out = train.predict(model, rows)
    score = OWN.bind("openhybrid", model=model, known=5)(out)
    with torch.no_grad():
        direct = -model(IMAGES[TEST]).slack[:, 0]
    np.testing.assert_allclose(score, direct.numpy(), rtol=1e-3, atol=1e-4)
    assert (auroc(score) > 0.6) == learned
    assert np.mean(out.logits.argmax(1)[KNOWN] == LABELS[TEST].numpy()[KNOWN]) > 0.9
