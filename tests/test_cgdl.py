"""CGDL on the digits: the ladder's sum written out, its warm-up, and its Gaussians."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from test_methods import IMAGES, LABELS, TEST, Batches, begun, fit, new_model
from torch.distributions import Normal, kl_divergence

from osnb import losses, metrics, models, scores, train
from osnb.base.outputs import Outputs
from osnb.train.methods import terms

KNOWN = (LABELS[TEST] < 5).numpy()


def test_the_slack_is_the_ladder_s_divergence_and_error_level_by_level():
    model = new_model(name="cgdl")
    model(IMAGES[:8])  # moves the norms
    images, k = IMAGES[:3], 4
    out, x, seen = model.eval()(images), images, []
    for up, look in zip(model.up, model.seen, strict=True):
        x = up(x)
        m, v = look(x.flatten(1)).chunk(2, dim=1)
        seen.append((m, torch.log1p(v.exp()) + 1e-8))
    (m, v), z = seen[2], seen[2][0]
    price = kl_divergence(Normal(m, v.sqrt()), Normal(model.place(torch.eye(5)[k]), 1.0)).sum(1)
    for level in (1, 0):
        m, v = seen[level]
        p, q = model.told[level](model.down[level + 1](z).flatten(1)).chunk(2, dim=1)
        q = torch.log1p(q.exp()) + 1e-8
        z = (m * q + p * v) / (v + q)
        both = Normal(z, (v * q / (v + q)).sqrt())
        price = price + kl_divergence(both, Normal(p, q.sqrt())).sum(1)
    error = (model.down[0](z) - images).square().sum(dim=(1, 2, 3))
    torch.testing.assert_close(out.slack[:, 1 + k], price, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(out.slack[:, 0], error)
    torch.testing.assert_close(out.features, seen[2][0])
    torch.testing.assert_close(out.logits, model.head(seen[2][0]))


def test_in_training_latent_numbers_are_drawn_with_their_own_deviation():
    model = models.ladder(classes=2, channels=1, size=8, width=2, latent=3)
    torch.manual_seed(0)
    spread = torch.tensor([0.25, 1.0, 9.0])
    found = model.train().drawn(torch.full((20_000, 3), 5.0), spread.expand(20_000, 3))
    torch.testing.assert_close(found.mean(dim=0), torch.full((3,), 5.0), atol=0.1, rtol=0)
    torch.testing.assert_close(found.var(dim=0), spread, rtol=0.05, atol=0)


@pytest.mark.parametrize(("done", "beta"), [(0, 1 / 6), (1, 5 / 6), (3, 1.0)])
def test_a_step_is_the_paper_s_sum_with_beta_growing_over_the_warm_up(done, beta, tmp_path):
    model = new_model(name="cgdl")
    own = {"elbo_weight": 0.3, "warm_up": 2}
    run = begun(terms.Conditional, model, tmp_path, Batches(3), **own)
    run.history, run.step = [{}] * done, int(done == 1)
    model.eval()
    found, out = run.values(IMAGES[:4], LABELS[:4]), model(IMAGES[:4])
    for i, label in enumerate(LABELS[:4].tolist()):
        row = out.slack[i]
        elbo = 0.3 * (row[0] + beta * row[1 + label])
        wanted = losses.softmax(out, LABELS[:4])[i] + elbo
        assert found[i].item() == pytest.approx(wanted.item(), rel=1e-5)


def test_own_scores_are_the_log_density_of_the_likeliest_class_s_gaussian():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 40)
    features = rng.normal(size=(120, 3)) * [1, 2, 0.3] + 5 * np.eye(3)[labels]
    logits = np.eye(3)[labels]
    logits[:5] = [0, 1, 0]  # of class 0, taken for class 1
    test = rng.normal(2, 3, (20, 3))
    found = scores.class_gaussians(Outputs(logits, features), labels, known=3)(
        Outputs(np.zeros((20, 3)), test), known=3
    )
    right = np.arange(120) >= 5
    parts = [features[(labels == c) & right] for c in range(3)]
    logs = [multivariate_normal(x.mean(axis=0), np.cov(x.T)).logpdf(test) for x in parts]
    np.testing.assert_allclose(found, np.max(logs, axis=0), rtol=1e-9)


def test_too_few_right_samples_of_a_class_are_refused():
    out = Outputs(np.eye(2)[[0, 0, 0, 0, 1]], np.arange(10.0).reshape(5, 2))
    with pytest.raises(ValueError, match=r"more than D = 2 .* class 1 has 1: train longer"):
        scores.class_gaussians(out, np.array([0, 0, 0, 0, 1]), known=2)


def test_unknown_digits_lie_apart_from_the_classes_gaussians(tmp_path):
    model = new_model(name="cgdl")
    adam = torch.optim.AdamW(model.parameters(), lr=3e-3)
    fit("cgdl", model, tmp_path, Batches(), optimizer=adam, epochs=12, warm_up=2)
    taught = Batches()
    seen = train.predict(model, lambda _: [(taught.images, None)])
    rule = scores.class_gaussians(seen, taught.labels.numpy(), known=5)
    score = rule(train.predict(model, lambda _: [(IMAGES[TEST], None)]), known=5)
    assert metrics.auroc(score[KNOWN], score[~KNOWN]) > 0.8
