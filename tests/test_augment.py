"""The batched transforms against a loop over images, and their laws."""

import numpy as np
import pytest
import torch
from test_augment_pillow import draw

from osnb.datasets.augment import ALL, AUGMENT, crop, cutout, flip

SETTINGS = {"n": 2, "m": 9.0, "ops": ALL, "severity": 3.0}  # a transform takes its own
LEVELS = {"crop_flip_cutout", "randaugment_crop_flip", "crop_flip_augmix"}  # of uint8 alone
CASES = [
    (name, dtype)
    for name in sorted(AUGMENT)
    for dtype in (torch.uint8, torch.float32)
    if dtype == torch.uint8 or name not in LEVELS
]


def transform(name):
    return AUGMENT.bind(name, **SETTINGS)


def pixels(dtype):
    """(50, 3, 6, 5): not square, and no pixel black, so that padding is told from image."""
    levels = torch.randint(1, 256, (50, 3, 6, 5), generator=draw(0), dtype=torch.uint8)
    return levels if dtype == torch.uint8 else levels / 255


@pytest.fixture(params=[torch.uint8, torch.float32], ids=str)
def images(request):
    return pixels(request.param)


def test_crop_agrees_with_a_loop_that_cuts_one_image_at_a_time(images):
    top, left = torch.randint(5, (2, 50), generator=draw(1)).tolist()
    padded = np.pad(images.numpy(), [(0, 0), (0, 0), (2, 2), (2, 2)])
    slow = [padded[i, :, top[i] : top[i] + 6, left[i] : left[i] + 5] for i in range(50)]
    torch.testing.assert_close(
        crop(images, padding=2, generator=draw(1)), torch.from_numpy(np.stack(slow)), rtol=0, atol=0
    )


def test_flip_agrees_with_a_loop_that_mirrors_one_image_at_a_time(images):
    coins = (torch.rand(50, generator=draw(1)) < 0.5).tolist()
    slow = [
        image[:, :, ::-1] if coin else image
        for image, coin in zip(images.numpy(), coins, strict=True)
    ]
    assert (flip(images, generator=draw(1)).numpy() == np.stack(slow)).all()


def test_cutout_agrees_with_a_loop_that_hides_one_square_at_a_time(images):
    places = torch.rand(2, 50, 1, 1, generator=draw(1), dtype=torch.float64).flatten(1)
    for length, x, y in ((4, 6, 7), (3, 5, 6)):  # columns and rows that the centre may take
        slow = images.clone()
        for image, left, top in zip(
            slow, (places[0] * x).int(), (places[1] * y).int(), strict=True
        ):
            left, top = int(left) - length // 2, int(top) - length // 2
            window = slice(max(top, 0), top + length), slice(max(left, 0), left + length)
            image[:, *window] = torch.tensor([1, 2, 3])[:, None, None]
        made = cutout(images, length=length, colour=(1, 2, 3), generator=draw(1))
        assert torch.equal(made, slow)


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_a_transform_keeps_shape_and_range_and_leaves_its_input_alone(name, dtype):
    images = pixels(dtype)
    before = images.clone()
    made = transform(name)(images, generator=draw(0))
    assert made.shape == images.shape
    assert made.dtype == (torch.float32 if name == "crop_flip_augmix" else dtype)
    assert made.min() >= 0
    assert made.max() <= (255 if dtype == torch.uint8 else 1)
    assert torch.equal(images, before)


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_a_transform_gives_the_same_bytes_for_the_same_seed(name, dtype):
    once, again = (transform(name)(pixels(dtype), generator=draw(5)) for _ in range(2))
    assert torch.equal(once, again)
    other = transform(name)(pixels(dtype), generator=draw(6))
    assert torch.equal(once, other) == (name == "none")


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_what_becomes_of_an_image_does_not_depend_on_the_others(name, dtype):
    images = pixels(dtype)
    others = torch.cat([images[:1], images[1:].flip(0)])
    made, again = (transform(name)(batch, generator=draw(7)) for batch in (images, others))
    assert torch.equal(made[0], again[0])


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_a_transform_takes_grey_images_and_empty_batches_and_any_layout(name, dtype):
    images = pixels(dtype)
    assert transform(name)(images[:, :1], generator=draw(0)).shape == (50, 1, 6, 5)
    assert transform(name)(images[:0], generator=draw(0)).shape == (0, 3, 6, 5)
    made = transform(name)(images, generator=draw(0))
    laid_out = images.to(memory_format=torch.channels_last)
    assert torch.equal(transform(name)(laid_out, generator=draw(0)), made)


@pytest.mark.parametrize("name", sorted(LEVELS))
@pytest.mark.parametrize("images", [torch.zeros(2, 3, 4, 4), torch.zeros(2, 2, 4, 4).byte()])
def test_a_transform_of_levels_refuses_other_images(name, images):
    with pytest.raises(ValueError, match=r"need uint8 \(N, 1 or 3, H, W\); got torch"):
        transform(name)(images, generator=draw(0))


@pytest.mark.parametrize("name", sorted(AUGMENT))
def test_a_batch_stays_on_its_device_and_no_pixel_of_it_reaches_the_host(name):
    batch = torch.empty(40, 3, 8, 8, device="meta", dtype=torch.uint8)  # reading one would raise
    assert transform(name)(batch, generator=draw(0)).device.type == "meta"
