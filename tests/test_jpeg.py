"""Photographs decoded and resized: Pillow is the second voice, of every kind of file."""

import warnings
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from osnb.datasets import BrokenImage
from osnb.datasets.photographs import _decoded, decode, lengths, resized
from osnb.datasets.vision import torchvision


def scene(width, height, seed=0):
    """(height, width, 3) uint8: smooth forms under fine noise, with edges, as photographs have."""
    rng = np.random.default_rng(seed)
    form = Image.fromarray(rng.integers(0, 256, (7, 9, 3), dtype=np.uint8))
    form = np.asarray(form.resize((width, height), Image.Resampling.BICUBIC)).astype(float)
    form[height // 3 :, width // 2 :] *= 0.5
    return np.clip(form + rng.normal(0, 12, form.shape), 0, 255).astype(np.uint8)


def encoded(photo, kind="JPEG", **options):
    data = BytesIO()
    photo.save(data, kind, **options)
    return data.getvalue()


def by_pillow(data, short):
    """(3, height, width) uint8: open, convert, resize, as torchvision's Resize says it."""
    photo = Image.open(BytesIO(data)).convert("RGB")
    made = torchvision.transforms.functional.resize(photo, short)
    return np.asarray(made).transpose(2, 0, 1)


def levels(one, other):
    """Largest difference, and the share of values that differ."""
    apart = np.abs(one.astype(int) - other)
    return apart.max(), (apart > 0).mean()


COLOUR = Image.fromarray(scene(97, 71))
TURNED = Image.Exif()
TURNED[0x112] = 6  # orientation: its top is at the right
JPEGS = {
    "4:4:4": encoded(COLOUR, subsampling=0, quality=95),
    "4:2:2": encoded(COLOUR, subsampling=1),
    "4:2:0": encoded(COLOUR, subsampling=2),
    "progressive": encoded(COLOUR, progressive=True),
    "optimised": encoded(COLOUR, optimize=True, quality=30),
    "restart markers": encoded(COLOUR, restart_marker_blocks=3),
    "stored as RGB": encoded(COLOUR, keep_rgb=True),
    "greyscale": encoded(COLOUR.convert("L")),
    "turned by EXIF": encoded(COLOUR, exif=TURNED),
    "with a comment": encoded(COLOUR, comment=b"x" * 500),
    "more after its end": encoded(COLOUR) + b"more",
}
OTHERS = {
    "CMYK": encoded(COLOUR.convert("CMYK")),
    "PNG": encoded(COLOUR, "PNG"),
    "PNG with alpha": encoded(COLOUR.convert("RGBA"), "PNG"),
    "palette": encoded(COLOUR.convert("P"), "PNG"),
    "GIF": encoded(COLOUR, "GIF"),
}


@pytest.mark.parametrize("kind", JPEGS)
def test_a_jpeg_is_decoded_to_pillows_very_pixels(kind):
    assert (_decoded(JPEGS[kind]) == np.asarray(decode(JPEGS[kind], kind))).all()


@pytest.mark.parametrize("short", [20, 50, 71, 90])
@pytest.mark.parametrize("kind", JPEGS)
def test_a_jpeg_is_resized_to_within_a_level_of_pillows(kind, short):
    made, slow = resized(JPEGS[kind], kind, short), by_pillow(JPEGS[kind], short)
    assert made.shape == slow.shape
    assert made.dtype == np.uint8
    most, share = levels(made, slow)
    assert most <= 1
    assert share < 0.01


@pytest.mark.parametrize("kind", OTHERS)
def test_any_other_file_goes_pillows_way(kind):
    assert _decoded(OTHERS[kind]) is None
    slow = np.asarray(decode(OTHERS[kind], kind).resize((68, 50), Image.Resampling.BILINEAR))
    assert (resized(OTHERS[kind], kind, 50) == slow.transpose(2, 0, 1)).all()


SIZES = [(500, 375), (375, 500), (500, 333), (333, 500), (640, 480), (257, 300), (1023, 769)]
SIZES += [(160, 120), (31, 17), (8, 8), (2, 3), (1, 1), (1, 9), (900, 300), (512, 512), (256, 300)]


@pytest.mark.parametrize("subsampling", [0, 2])
@pytest.mark.parametrize("size", SIZES)
def test_every_size_comes_out_within_a_level_of_pillows(size, subsampling):
    data = encoded(Image.fromarray(scene(*size)), subsampling=subsampling, quality=90)
    most, share = levels(resized(data, "it", 256), by_pillow(data, 256))
    assert most <= 1
    assert share < 0.02


def test_lengths_are_those_of_torchvision():
    rng = np.random.default_rng(0)
    for width, height in rng.integers(1, 300, (200, 2)).tolist():
        made = torchvision.transforms.functional.resize(Image.new("1", (width, height)), 24)
        assert lengths((width, height), 24) == made.size


@pytest.mark.parametrize("size", [(500, 320), (320, 320), (288, 432), (440, 320)])
def test_where_torch_would_be_two_levels_off_the_pixels_are_pillows(size):
    """Five pixels to four, nine to eight: a sum in twelve or twenty is exactly one half."""
    rng = np.random.default_rng(0)
    data = encoded(Image.fromarray(rng.integers(0, 256, (*size[::-1], 3), np.uint8)), quality=95)
    assert (resized(data, "it", 256) == by_pillow(data, 256)).all()


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_file_is_broken_or_has_the_pixels_that_pillow_gives_it(seed):
    rng, broken = np.random.default_rng(seed), 0
    for data in list(JPEGS.values()) * 5:
        data = bytearray(data)
        for at in rng.integers(len(data), size=2):
            data[at] = rng.integers(256)
        data = bytes(data[: rng.integers(len(data))] if rng.random() < 0.3 else data)
        try:
            with warnings.catch_warnings(action="ignore"):  # Pillow's, about damaged EXIF
                slow = np.asarray(decode(data, "it"))
        except BrokenImage:
            broken += 1
            assert _decoded(data) is None
        else:
            made = _decoded(data)
            assert made is None or (made == slow).all()
    assert 5 < broken < 50


def test_a_photograph_too_large_for_pillow_is_left_to_its_judgement(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 97 * 71 - 1)
    with pytest.warns(Image.DecompressionBombWarning):
        resized(JPEGS["4:2:0"], "it", 50)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(BrokenImage, match=r"it does not decode .*decompression bomb"):
        resized(JPEGS["4:2:0"], "it", 50)


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_a_photograph_so_narrow_that_it_would_fill_the_memory_is_broken(kind):
    """65,500 x 1 pixels would become 12.9 GB."""
    data = encoded(Image.new("RGB", (65_500, 1)), kind)
    with pytest.raises(BrokenImage, match="it is too narrow: 65500 x 1 pixels would become 16768"):
        resized(data, "it", 256)
