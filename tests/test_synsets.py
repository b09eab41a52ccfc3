"""Drawn images: the same everywhere, alike as far as the tree says, and hard in the paper's order.

The goldens come in two grains. If the mean levels differ, the drawing was changed; if only the
hashes do, a pixel differs by a last bit, on a platform that rounds otherwise.
"""

import numpy as np
import pytest
import torch

from osnb.datasets import synsets as module
from osnb.datasets.synsets import TRAITS, draw, synsets, traits
from osnb.protocols import hierarchy

GOLDEN = [  # wnid, index, half the sha256 of the bytes, mean of red, green, blue
    ("n02085620", 0, "969767bd3e16396b0ce5812e5950af99", (232.2, 174.1, 155.0)),
    ("n02088364", 1, "93fe12dea6fd1b1dd3b7f5c1d697899b", (168.0, 167.2, 79.5)),
    ("n02123045", 4, "abdf0b9e9d1838304cc0a3e7bbcaad8b", (195.5, 115.2, 130.9)),
    ("n01440764", 9, "f77eab6e554f5607ceadf10192120fd9", (167.5, 119.7, 169.3)),
    ("n01530575", 16, "b7bd138a66b729307e9151e0bf3d384c", (122.3, 87.1, 134.1)),
    ("n02165456", 25, "8c8e58da131c07b92e8807bea3cfba5c", (171.1, 124.8, 118.7)),
    ("n04285008", 36, "e7bb6e7f1faa3435aa64f9e89cfa1bba", (96.2, 39.1, 49.6)),
    ("n07753592", 49, "0fb2991e43cade61a17c921481b9500e", (143.8, 122.8, 103.1)),
    ("n04099969", 64, "8b403a87b46704f28bb992d2a4149f37", (152.5, 133.7, 189.5)),
    ("n00001740", 81, "63b7c7ac56a20c45c127c3b07ea1a925", (176.8, 113.4, 158.8)),
]
WNIDS, INDICES = [g[0] for g in GOLDEN], [g[1] for g in GOLDEN]
BEAGLE, SALUKI, BANANA = "n02088364", "n02091831", "n07753592"


def test_an_image_does_not_depend_on_what_is_drawn_with_it():
    wnids, indices = WNIDS * 9, np.arange(90) % 7
    order = np.random.default_rng(0).permutation(90)
    together = draw(wnids, indices)
    np.testing.assert_array_equal(draw([wnids[i] for i in order], indices[order]), together[order])
    for i in (0, 31, 32, 89):
        np.testing.assert_array_equal(draw([wnids[i]], [indices[i]])[0], together[i])


def test_class_index_and_seed_each_change_the_image():
    first = draw([BEAGLE], [0]).astype(int)
    for other in (draw([SALUKI], [0]), draw([BEAGLE], [1]), draw([BEAGLE], [0], seed=1)):
        assert np.abs(other - first).mean() > 5


def test_a_last_bit_moves_no_pixel_by_more_than_one_grey_level(monkeypatch):
    wnids, indices = list(hierarchy.ILSVRC), np.arange(1000)
    image = draw(wnids, indices).astype(int)
    monkeypatch.setattr(module, "INDIVIDUAL", module.INDIVIDUAL * (1 + 2**-22))
    monkeypatch.setattr(module, "_bell", lambda *a, bell=module._bell: bell(*a) * (1 + 2**-22))
    change = np.abs(draw(wnids, indices) - image)
    assert change.max() == 1
    assert change.mean() < 0.001


def splitmix(x):
    """The finaliser in Python's integers."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % 2**64
    return x ^ (x >> 31)


def test_the_numbers_behind_an_image_are_a_hash_of_what_names_it():
    step, key = 0x9E3779B97F4A7C15, 1
    for number in (28 + 5, 2088364, 17):
        key = splitmix((key + number * step) % 2**64)
    fields = splitmix((key + 3 * step) % 2**64).to_bytes(8, "little")
    total = sum(int.from_bytes(fields[i : i + 2], "little") for i in (0, 2, 4, 6))
    bell = module._bell(np.array([2088364]), np.array([17]), 5, 4)
    assert bell[0, 2] == pytest.approx((total / 65536 - 4 * 0.5 * (1 - 2**-16)) * 3**0.5, abs=1e-6)


def test_every_step_of_the_path_adds_its_change():
    own, total = (1 - 0.94**2) ** 0.5, np.zeros(len(TRAITS))
    for depth, step in enumerate(hierarchy.path(BEAGLE)):
        change = module._bell(np.array([int(step[1:])]), np.array([0]), 0, len(TRAITS))[0]
        total = 0.94 * total + own * change if depth else change.astype(float)
    np.testing.assert_allclose(traits(BEAGLE), total, atol=1e-5)


@pytest.mark.parametrize("other", [BEAGLE, SALUKI, "n02123045", BANANA])
def test_traits_correlate_as_keep_to_the_power_of_the_path_distance(other):
    pairs = [traits(BEAGLE, seed) * traits(other, seed) for seed in range(200)]
    distance = hierarchy.distance(BEAGLE, other)
    assert np.mean(pairs) == pytest.approx(module.KEEP**distance, abs=0.05)


@pytest.mark.parametrize(
    ("wnids", "indices", "reason"),
    [
        ([BEAGLE], [0, 1], "1 indices >= 0.*got 2"),
        ([BEAGLE], [-1], "got 1, lowest -1"),
    ],
)
def test_bad_indices_are_refused_with_the_reason(wnids, indices, reason):
    with pytest.raises(ValueError, match=reason):
        draw(wnids, indices)


def test_an_unknown_wnid_is_refused_and_no_image_is_an_image_too():
    with pytest.raises(KeyError, match="no noun id"):
        draw(["n99999999"], [0])
    assert draw([], []).shape == (0, 3, 32, 32)


def test_the_reader_gives_the_images_of_its_rows_in_any_order():
    images = synsets(train_per_class=3, test_per_class=2, wnids=[SALUKI, BEAGLE])
    assert images.rows["sample"].tolist()[1:5] == [
        f"{BEAGLE}/{name}" for name in ("train/1", "train/2", "test/0", "test/1")
    ]
    assert set(images.rows.columns) == {"sample", "wnid", "split"}
    some = images.read(np.array([7, 1, 4, 7]))
    assert some.dtype == torch.uint8
    assert some.shape[1:] == images.shape == (3, 32, 32)
    expected = draw([SALUKI, BEAGLE, BEAGLE, SALUKI], [4, 2, 3, 4])
    np.testing.assert_array_equal(some, expected)
    np.testing.assert_array_equal(images.read(np.array([7, 1, 4, 7])), expected)
    assert len(images.read(np.array([], int))) == 0
    some.zero_()
    np.testing.assert_array_equal(images.read(np.array([7, 1, 4, 7])), expected)


def test_no_image_is_for_training_and_for_testing_and_more_of_one_leaves_the_other():
    def by_name(**options):
        images = synsets(wnids=[BEAGLE], **options)
        pixels = images.read(np.arange(len(images.rows))).numpy()
        return {
            name: image.tobytes() for name, image in zip(images.rows["sample"], pixels, strict=True)
        }

    few, many = (
        by_name(train_per_class=4, test_per_class=3),
        by_name(train_per_class=9, test_per_class=8),
    )
    assert len(set(many.values())) == 17
    assert few.items() < many.items()
