"""RandAugment and AugMix: how often, how strong, how different; and what leaves images alone."""

import pytest
import torch

from osnb.datasets import augment as policies
from osnb.datasets.augment import ALL, NO_GEOMETRY, SHIFTS, WARPS, augmix, randaugment


def draw(seed):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def images():
    return torch.randint(0, 256, (40, 3, 16, 12), generator=draw(0), dtype=torch.uint8)


@pytest.fixture
def applied(monkeypatch):
    """What the policies hand to `apply`: (names, drawn) per step, and no image is changed."""
    calls = []

    def note(images, names, drawn, *, resample):
        calls.append((names, drawn))
        return images

    monkeypatch.setattr(policies, "apply", note)
    return calls


def chi_square(names, kinds):
    counts = torch.tensor([float(names.count(kind)) for kind in kinds])
    expected = counts.sum() / len(kinds)
    return ((counts - expected) ** 2 / expected).sum()


@pytest.mark.parametrize("ops", [ALL, NO_GEOMETRY], ids=["all", "no_geometry"])
def test_randaugment_draws_every_operation_about_equally_often(ops, applied):
    randaugment(torch.zeros(8000, 1, 2, 2).byte(), n=2, m=9, ops=ops, generator=draw(0))
    assert len(applied) == 2
    for names, _ in applied:
        assert set(names) == set(ops)
        assert chi_square(names, ops) < 35  # 15 degrees of freedom: 99.7 % of draws
    same = sum(
        first == second for first, second in zip(*(names for names, _ in applied), strict=True)
    )
    assert same / 8000 == pytest.approx(1 / len(ops), abs=0.01)  # with replacement


@pytest.mark.parametrize("m", [0, 6, 9, 15, 18, 30])
def test_randaugment_draws_the_value_of_its_magnitude_and_a_sign_for_geometry(m, applied):
    randaugment(torch.zeros(8000, 1, 2, 2).byte(), n=1, m=m, ops=ALL, generator=draw(0))
    ((names, drawn),) = applied
    for op, (low, high) in policies.RANGES.items():
        values = drawn[0, [name == op for name in names]].flatten()
        torch.testing.assert_close(
            values.abs(), torch.full_like(values, low + (high - low) * m / 30)
        )
        negative = (values < 0).double().mean().item()
        assert negative == pytest.approx(0.5 if m and op in SHIFTS | WARPS else 0, abs=0.1)
    places = drawn[1:].flatten(1)
    assert 0 <= places.min() < 0.01
    assert 0.99 < places.max() < 1


def test_augmix_draws_one_to_three_of_nine_operations_at_levels_up_to_the_severity(applied):
    augmix(torch.zeros(3000, 1, 60, 30).byte(), severity=3, generator=draw(0))
    steps = [names for names, _ in applied]
    assert not steps[0].count(None)
    depth = sum(torch.tensor([name is not None for name in names]) for names in steps)
    assert chi_square(depth.tolist(), [1, 2, 3]) < 12
    assert chi_square(steps[0], sorted({*steps[0]})) < 22  # 8 degrees
    values = applied[0][1].flatten()
    reached = {op: values[[name == op for name in steps[0]]] for op in {*steps[0]}}
    assert len(reached) == 9
    for op, (low, high) in {
        "posterize": (3, 4),
        "solarize": (180, 254),
        "rotate": (-8, 8),
        "translate_x": (-2, 2),
        "translate_y": (-5, 5),
    }.items():
        assert (reached[op].min(), reached[op].max()) == (low, high)
    for op in ("shear_x", "shear_y"):
        assert 0.003 <= reached[op].abs().min() < 0.004
        assert 0.088 < reached[op].abs().max() <= 0.09


def test_augmix_weighs_three_chains_by_a_symmetric_dirichlet_and_a_uniform_share(monkeypatch):
    def one_channel_each(images, names, drawn, *, resample):
        chain = torch.arange(len(images)) // (len(images) // 3)
        return (torch.eye(3)[chain][:, :, None, None] * 255).byte().expand_as(images)

    monkeypatch.setattr(policies, "apply", one_channel_each)
    shares = augmix(torch.zeros(20000, 3, 1, 1).byte(), severity=1, generator=draw(0))
    shares = shares.flatten(1) / 255  # m w
    m = shares.sum(dim=1)
    assert m.mean().item() == pytest.approx(1 / 2, abs=0.01)  # Beta(1, 1)
    assert m.var().item() == pytest.approx(1 / 12, abs=0.005)
    weights = shares / m[:, None]
    assert weights.mean(dim=0).tolist() == pytest.approx([1 / 3] * 3, abs=0.01)
    assert weights.var(dim=0).tolist() == pytest.approx([1 / 18] * 3, abs=0.003)


@pytest.mark.parametrize("m", [-1, 31])
def test_a_magnitude_out_of_range_is_refused(m, images):
    with pytest.raises(ValueError, match=rf"need m in \[0, 30\]; got {m}"):
        randaugment(images, n=1, m=m, ops=ALL, generator=draw(0))


def test_a_severity_out_of_range_is_refused(images):
    with pytest.raises(ValueError, match=r"need severity in \[0.1, 10\]; got 11"):
        augmix(images, severity=11, generator=draw(0))


def test_an_unknown_operation_is_answered_with_the_known_ones(images):
    with pytest.raises(KeyError, match="'colour' is not one of: autocontrast, brightness"):
        randaugment(images, n=1, m=9, ops=["colour"], generator=draw(0))
