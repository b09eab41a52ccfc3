"""The batched transforms against a loop over images, and their laws."""

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from osnb.augment import AUGMENT, crop, crop_flip, flip


def draw(seed):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(params=[torch.uint8, torch.float32], ids=str)
def images(request):
    """(50, 3, 6, 5): not square, and no pixel black, so that padding is told from image."""
    pixels = torch.randint(1, 256, (50, 3, 6, 5), generator=draw(0), dtype=torch.uint8)
    return pixels if request.param == torch.uint8 else pixels / 255


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


def test_crop_flip_is_a_crop_by_four_pixels_and_then_a_flip(images):
    generator = draw(3)
    slow = flip(crop(images, padding=4, generator=generator), generator=generator)
    assert torch.equal(crop_flip(images, generator=draw(3)), slow)


def test_every_place_of_the_window_is_about_equally_likely():
    images = torch.zeros(32400, 1, 9, 9)
    images[:, :, 4, 4] = 1  # where it lands tells the place
    _, _, rows, columns = crop(images, padding=4, generator=draw(0)).nonzero(as_tuple=True)
    counts = torch.bincount(rows * 9 + columns, minlength=81)
    assert counts.sum() == 32400  # expected 400 each, standard deviation 20
    assert counts.min() > 310
    assert counts.max() < 490


def test_about_half_of_the_images_are_mirrored_whichever_their_place():
    images = torch.tensor([1.0, 0.0]).expand(10000, 1, 1, 2)
    mirrored = flip(images, generator=draw(0))[:, 0, 0, 1]
    assert mirrored.mean().item() == pytest.approx(0.5, abs=0.02)
    assert mirrored[:5000].mean().item() == pytest.approx(0.5, abs=0.03)


def test_flipping_twice_by_the_same_draw_changes_nothing(images):
    once = flip(images, generator=draw(2))
    assert not torch.equal(once, images)
    assert torch.equal(flip(once, generator=draw(2)), images)


def test_crop_without_padding_changes_nothing(images):
    assert torch.equal(crop(images, padding=0, generator=draw(0)), images)


@pytest.mark.parametrize("name", sorted(AUGMENT))
def test_a_transform_keeps_shape_and_dtype_and_leaves_its_input_alone(name, images):
    before = images.clone()
    made = AUGMENT[name](images, generator=draw(0))
    assert made.shape == images.shape
    assert made.dtype == images.dtype
    assert torch.equal(images, before)


@pytest.mark.parametrize("name", sorted(AUGMENT))
def test_a_transform_gives_the_same_bytes_for_the_same_seed(name, images):
    once, again = (AUGMENT[name](images, generator=draw(5)) for _ in range(2))
    assert torch.equal(once, again)
    other = AUGMENT[name](images, generator=draw(6))
    assert torch.equal(once, other) == (name == "none")


@pytest.mark.parametrize("name", sorted(AUGMENT))
def test_a_batch_stays_on_its_device_with_a_generator_from_the_cpu(name):
    batch = torch.empty(4, 3, 8, 8, device="meta")
    assert AUGMENT[name](batch, generator=draw(0)).device.type == "meta"


@pytest.mark.parametrize("name", sorted(AUGMENT))
def test_a_transform_makes_as_many_calls_for_two_images_as_for_two_hundred(name):
    class Counting(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.calls += 1
            return func(*args, **(kwargs or {}))

    counts = []
    for n in (2, 200):
        with Counting() as counting:
            AUGMENT[name](torch.zeros(n, 3, 8, 8), generator=draw(0))
        counts.append(counting.calls)
    assert counts[0] == counts[1]
