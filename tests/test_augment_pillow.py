"""Each operation against Pillow's own, called as RandAugment and AugMix are released."""

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageEnhance, ImageOps

from osnb.datasets.augment import (
    ALL,
    NO_GEOMETRY,
    RANGES,
    SHIFTS,
    WARPS,
    apply,
    augmix,
    bilinear,
    nearest,
    randaugment,
)

SIZES = [(32, 32), (27, 45)]  # height, width


def draw(seed):
    return torch.Generator().manual_seed(seed)


def affine(image, resample, entry, value):
    matrix = [1, 0, 0, 0, 1, 0]
    matrix[entry] = value
    return image.transform(image.size, Image.Transform.AFFINE, matrix, resample)


def solarize_add(image, value):
    raised = (np.array(image).astype(int) + value).clip(0, 255).astype(np.uint8)
    return ImageOps.solarize(Image.fromarray(raised), 128)


def cutout(image, value, x, y):
    image, (width, height) = image.copy(), image.size
    x, y = width - (width - 1) * x, height - (height - 1) * y  # np.random.uniform(side)
    left, top = int(max(0, x - value / 2)), int(max(0, y - value / 2))
    colour = (125, 123, 114) if image.mode == "RGB" else 123
    box = left, top, min(width, left + value), min(height, top + value)
    ImageDraw.Draw(image).rectangle(box, colour)
    return image


PILLOW = {
    "autocontrast": lambda image, *_: ImageOps.autocontrast(image),
    "equalize": lambda image, *_: ImageOps.equalize(image),
    "invert": lambda image, *_: ImageOps.invert(image),
    "rotate": lambda image, resample, v, *_: image.rotate(v, resample),
    "posterize": lambda image, resample, v, *_: ImageOps.posterize(image, max(1, int(v))),
    "solarize": lambda image, resample, v, *_: ImageOps.solarize(image, v),
    "solarize_add": lambda image, resample, v, *_: solarize_add(image, v),
    "color": lambda image, resample, v, *_: ImageEnhance.Color(image).enhance(v),
    "contrast": lambda image, resample, v, *_: ImageEnhance.Contrast(image).enhance(v),
    "brightness": lambda image, resample, v, *_: ImageEnhance.Brightness(image).enhance(v),
    "sharpness": lambda image, resample, v, *_: ImageEnhance.Sharpness(image).enhance(v),
    "shear_x": lambda image, resample, v, *_: affine(image, resample, 1, v),
    "shear_y": lambda image, resample, v, *_: affine(image, resample, 3, v),
    "translate_x": lambda image, resample, v, *_: affine(image, resample, 2, v),
    "translate_y": lambda image, resample, v, *_: affine(image, resample, 5, v),
    "cutout": lambda image, resample, v, x, y: cutout(image, v, x, y),
}
RESAMPLE = {nearest: Image.Resampling.NEAREST, bilinear: Image.Resampling.BILINEAR}


def to_pil(image):
    return Image.fromarray(image.movedim(0, 2).squeeze(2).contiguous().numpy())


def from_pil(image):
    return torch.from_numpy(np.array(image).reshape(*image.size[::-1], -1)).movedim(2, 0)


def gallery(size, channels):
    """(12, channels, H, W): noise, and what trips statistics: few levels, one level, a ramp."""
    pixels = torch.randint(0, 256, (12, channels, *size), generator=draw(0), dtype=torch.uint8)
    pixels[1] = pixels[1] // 8 + 100  # narrow
    pixels[2] = 77  # one level
    pixels[3] = pixels[3] // 128 * 200  # two levels
    pixels[4, :, 1:] = 5  # nearly all pixels alike
    pixels[5] = torch.linspace(0, 255, size[1]).to(torch.uint8)
    pixels[6] = pixels[6].sort(dim=1).values // 2  # smooth from top to bottom
    pixels[7] = 255
    return pixels


def strengths(name):
    """Values at thirteen of the magnitudes 0 to 30, and their negatives where there is a sign."""
    low, high = RANGES[name]
    values = [m / 30 * (high - low) + low for m in (0, 1, 2, 5, 6, 8, 9, 14, 15, 18, 22, 29, 30)]
    return values + [-v for v in values] if name in SHIFTS | WARPS else values


def apart(name, values, images, resample):
    """Levels between ours and Pillow's, for every value and image."""
    levels = []
    for i, value in enumerate(values):
        places = torch.rand(2, len(images), generator=draw(i), dtype=torch.float64)
        drawn = torch.cat([torch.full((1, len(images)), value, dtype=torch.float64), places])
        made = apply(images, [name] * len(images), drawn[..., None, None], resample=resample)
        for ours, image, (x, y) in zip(made, images, places.T.tolist(), strict=True):
            theirs = from_pil(PILLOW[name](to_pil(image), RESAMPLE[resample], value, x, y))
            levels.append((ours.int() - theirs.int()).abs())
    return torch.stack(levels)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", ALL)
def test_an_operation_is_equal_to_pillows_in_every_pixel(name, size, channels):
    assert apart(name, strengths(name), gallery(size, channels), nearest).max() == 0


# strengths as AugMix draws them: whole degrees, shears that are no round numbers
DEGREES = [float(degrees) for degrees in range(-30, 31)]
SLOPES = (0.6 * torch.rand(60, generator=draw(0), dtype=torch.float64) - 0.3).tolist()


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(
    ("name", "values", "most", "share"),
    [
        ("shear_x", SLOPES, 0, 0),
        ("shear_y", SLOPES, 0, 0),
        # Pillow weighs two rows and then two columns, we four pixels at once: where the exact
        # value is a whole level, the last digit decides whether truncation keeps it
        ("rotate", DEGREES, 1, 1e-5),
    ],
)
def test_an_interpolated_operation_is_equal_to_pillows_but_for_ties(
    name, values, most, share, size, channels
):
    levels = apart(name, values, gallery(size, channels), bilinear)
    assert levels.max() <= most
    assert (levels > 0).double().mean() <= share


@pytest.mark.parametrize("ops", [ALL, NO_GEOMETRY], ids=["all", "no_geometry"])
@pytest.mark.parametrize(("channels", "m"), [(1, 9), (3, 9), (3, 0), (3, 30)])
def test_randaugment_agrees_with_a_loop_over_images(channels, m, ops):
    images = gallery((32, 32), channels).repeat(8, 1, 1, 1)
    generator = draw(1)
    kinds = torch.randint(len(ops), (3, 96), generator=generator)
    coins = torch.rand(3, 96, generator=generator) > 0.5
    places = torch.rand(3, 2, 96, generator=generator, dtype=torch.float64)
    slow = []
    for i, image in enumerate(map(to_pil, images)):
        for kind, coin, place in zip(kinds[:, i], coins[:, i], places[..., i], strict=True):
            low, high = RANGES[ops[kind]]
            value = m / 30 * (high - low) + low
            if coin and ops[kind] in ("rotate", "shear_x", "shear_y", "translate_x", "translate_y"):
                value = -value
            image = PILLOW[ops[kind]](image, Image.Resampling.NEAREST, value, *place.tolist())
        slow.append(from_pil(image))
    fast = randaugment(images, n=3, m=m, ops=ops, generator=draw(1))
    assert torch.equal(fast, torch.stack(slow))


def released(op, level, coin, size):
    """An operation's value at a level, as released with AugMix."""
    whole = {"posterize": 4, "rotate": 30, "solarize": 256}
    whole |= {"translate_x": size[1] / 3, "translate_y": size[0] / 3}
    value = int(level * whole[op] / 10) if op in whole else level * 0.3 / 10
    if op in ("posterize", "solarize"):
        return whole[op] - value
    return -value if coin else value


MIXED = "autocontrast equalize posterize rotate solarize shear_x shear_y translate_x translate_y"


@pytest.mark.parametrize("severity", [1, 3])
@pytest.mark.parametrize("channels", [1, 3])
def test_augmix_agrees_with_a_loop_over_images(channels, severity):
    images, ops = gallery((27, 45), channels).repeat(2, 1, 1, 1), MIXED.split()
    generator = draw(2)
    kinds = torch.randint(9, (3, 72), generator=generator)
    coins = torch.rand(3, 72, generator=generator) > 0.5
    uniform = torch.rand(3, 72, generator=generator, dtype=torch.float64)
    depths = torch.randint(1, 4, (72,), generator=generator)
    weights = torch.empty(3, 24).exponential_(generator=generator)
    m = torch.rand(24, generator=generator)
    slow = images * (1 - m[:, None, None, None])
    for chain in range(3):
        for i, image in enumerate(map(to_pil, images)):
            column = chain * 24 + i
            for step in range(depths[column]):
                op, coin = ops[kinds[step, column]], coins[step, column]
                level = 0.1 + (severity - 0.1) * uniform[step, column].item()
                value = released(op, level, coin, (27, 45))
                image = PILLOW[op](image, Image.Resampling.BILINEAR, value)
            slow[i] += m[i] * weights[chain, i] / weights[:, i].sum() * from_pil(image)
    mixed = augmix(images, severity=severity, generator=draw(2))
    torch.testing.assert_close(mixed, slow, rtol=0, atol=1e-3)  # in levels; float32
