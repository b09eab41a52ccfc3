"""Images that need no file: letters and digits in fonts, scikit-learn's digits, noise, patterns."""

import zlib
from collections.abc import Callable
from math import isqrt
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw, ImageFont

from osnb.datasets.images import Images, kept
from osnb.protocols.vaze import LETTERS

FONTS = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSerif-Italic", "DejaVuSansMono")
SIZE = 8
FINE = 64  # letters are drawn this large, turned and moved, and then averaged down
KINDS = ("stripes", "checks", "rings", "blotches", "gradients")  # of patterns


def digits(root: Path | None = None, *, seed: int = 0) -> Images:  # noqa: ARG001 (one signature)
    """scikit-learn's 1,797 handwritten digits, 8 x 8, one grey channel.

    Half of each class is for training, the other half for testing, drawn with `seed`. `wnid` is
    digit-0 to digit-9; samples are digits/<row of scikit-learn's table>.
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    table = load_digits()
    row = np.arange(len(table.target))
    train, _ = train_test_split(row, train_size=0.5, stratify=table.target, random_state=seed)
    rows = pd.DataFrame({"sample": [f"digits/{i:04}" for i in row]})
    rows["wnid"] = [f"digit-{digit}" for digit in table.target]
    rows["split"] = np.where(np.isin(row, train), "train", "test")
    pixels = (table.images[:, None] * (255 / 16)).round().astype(np.uint8)
    return kept(rows, pixels.__getitem__, (1, SIZE, SIZE))


def glyphs(
    root: Path | None = None,  # noqa: ARG001 (one signature)
    *,
    characters: str = LETTERS,
    side: int = SIZE,
    per_class: int = 20,
    seed: int = 0,
) -> Images:
    """Capital letters, or digits, in matplotlib's DejaVu fonts, turned and moved.

    They are all for testing. `wnid` is glyph-A ...; samples are glyphs/<character>/<number>.

    Args:
        root: not used; the fonts come with matplotlib.
        characters: a class each; the default leaves out letters that look like digits.
        side: S of the images (1, S, S) in pixels, a divisor of 64; 8 is the style of `digits`.
        per_class: images of each character.
        seed: of font, size, turn, place and weight.

    Raises:
        ValueError: the side is none of those.
    """
    if side < 1 or FINE % side:
        raise ValueError(f"need a side that divides {FINE}; got {side}")
    pairs = [(letter, number) for letter in characters for number in range(per_class)]
    rows = pd.DataFrame({"sample": [f"glyphs/{letter}/{number:03}" for letter, number in pairs]})
    rows = rows.assign(wnid=[f"glyph-{letter}" for letter, _ in pairs], split="test")
    return kept(rows, lambda i: _glyph(*pairs[i], side, seed), (1, side, side))


def _glyph(letter: str, number: int, side: int, seed: int) -> np.ndarray:
    """(1, side, side) uint8; a function of its arguments and of the version of Pillow."""
    import matplotlib

    rng = np.random.default_rng([seed, ord(letter), number])
    name, height = FONTS[rng.integers(len(FONTS))], int(rng.integers(58, 70))
    folder = Path(matplotlib.get_data_path(), "fonts", "ttf")
    font = ImageFont.truetype(folder / f"{name}.ttf", height)
    page = Image.new("L", (FINE, FINE))
    middle = tuple(FINE / 2 + rng.uniform(-3, 3, 2))
    weight = int(rng.integers(0, 3))
    ImageDraw.Draw(page).text(middle, letter, 255, font, "mm", stroke_width=weight)
    page = page.rotate(rng.uniform(-12, 12), Image.Resampling.BILINEAR)
    small = np.asarray(page.reduce(FINE // side), np.float64)
    # pen strokes of the digits are full at the centre: 16 of 16 in a third of the inked pixels
    return np.clip(small * 1.3, 0, 255).round().astype(np.uint8)[None]


def gaussian_noise(
    root: Path | None = None,  # noqa: ARG001 (one signature)
    *,
    size: int = 32,
    count: int = 400,
    seed: int = 0,
    mean: float = 0.5,
    sd: float = 1.0,
) -> Images:
    """Independent Gaussian values in every pixel and channel, clipped to [0, 1].

    Neither Vaze et al. 2022 nor Kim et al. 2021 give the parameters. The defaults are those of
    ODIN (Liang et al. 2018): mean 0.5, variance 1, so that about 62 % of the values are clipped.
    Outlier Exposure (Hendrycks et al. 2019) takes a standard deviation of 0.5 in [-1, 1],
    which is `sd=0.25`.

    Args:
        root: not used, nothing is read.
        size: S, side of the images in pixels.
        count: N images; the first of them are the same for every count.
        seed: of the values.
        mean: of the values before they are clipped, where pixels lie in [0, 1].
        sd: standard deviation of the values before they are clipped, in the same unit.

    Returns:
        N images (3, S, S) uint8; `wnid` is gaussian_noise, samples are gaussian_noise/<number>.

    Raises:
        ValueError: `size` or `count` is below 1.
    """
    return _noise("gaussian_noise", size, count, seed, lambda rng, s: rng.normal(mean, sd, s))


def other_noise(
    root: Path | None = None,  # noqa: ARG001 (one signature)
    *,
    name: str,
    size: int = 32,
    count: int = 400,
    seed: int = 0,
) -> Images:
    """Independent values in every pixel and channel; arguments and errors as for `gaussian_noise`.

    Args:
        name: uniform_noise, uniform in [0, 1] as in ODIN, or rademacher_noise, black or white
            with probability 1/2 as in Outlier Exposure.
    """
    draws = {"uniform_noise": lambda rng, s: rng.random(s)}
    draws["rademacher_noise"] = lambda rng, s: rng.integers(0, 2, s)
    return _noise(name, size, count, seed, draws[name])


def _noise(name: str, size: int, count: int, seed: int, draw: Callable) -> Images:
    if size < 1 or count < 1:
        raise ValueError(f"need size and count of at least 1; got {size} and {count}")
    shape = (3, size, size)

    def load(number: int) -> np.ndarray:
        rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
        return np.clip(draw(rng, shape) * 255.0, 0, 255).round().astype(np.uint8)

    samples = [f"{name}/{number:06}" for number in range(count)]
    return kept(pd.DataFrame({"sample": samples, "wnid": name, "split": "test"}), load, shape)


def patterns(
    root: Path | None = None,  # noqa: ARG001 (one signature)
    *,
    side: int = 32,
    count: int = 400,
    seed: int = 0,
) -> Images:
    """Textures that we make: stripes, checks, rings and blotches, white on black, and gradients.

    Each kind is as frequent; direction, width and place are drawn. They are integers, or square
    roots rounded down, so that they are the same on any machine. They are all for testing.

    Args:
        root: not used, nothing is read.
        side: S of the images in pixels.
        count: N images; the first of them are the same for every count.
        seed: of the draws.

    Returns:
        N images (1, S, S) uint8; `wnid` is pattern-stripes ..., samples are patterns/<number>.

    Raises:
        ValueError: `side` or `count` is below 1.
    """
    if side < 1 or count < 1:
        raise ValueError(f"need side and count of at least 1; got {side} and {count}")
    kinds = [KINDS[number % len(KINDS)] for number in range(count)]
    rows = pd.DataFrame({"sample": [f"patterns/{number:06}" for number in range(count)]})
    rows = rows.assign(wnid=[f"pattern-{kind}" for kind in kinds], split="test")
    return kept(rows, lambda i: _pattern(kinds[i], i, side, seed), (1, side, side))


def _pattern(kind: str, number: int, side: int, seed: int) -> np.ndarray:
    """(1, side, side) uint8: a page of 1024 x 1024 places, looked at four times in each pixel."""
    rng, fine = np.random.default_rng([seed, number]), 4 * side
    y, x = np.mgrid[:fine, :fine] * 1024 // fine
    a, b, width = (int(rng.integers(*ends)) for ends in ((1, 9), (-8, 9), (40, 160)))
    middle_x, middle_y = rng.integers(0, 1024, 2)
    length = isqrt(100 * (a * a + b * b))  # of (a, b), in tenths
    along, across = 10 * (a * x + b * y) // length, 10 * (b * x - a * y) // length
    noise = Image.fromarray(rng.integers(0, 256, (8, 8), np.uint8))
    if kind == "gradients":
        page = (along - along.min()) * 255 // max(1, np.ptp(along))
    elif kind == "blotches":
        page = 255 * (np.asarray(noise.resize((fine, fine), Image.Resampling.BICUBIC)) > 127)
    else:
        far = np.sqrt((x - middle_x) ** 2 + (y - middle_y) ** 2).astype(int)
        bands = {"stripes": along // width, "rings": far // width}
        bands["checks"] = along // width + across // width
        page = 255 * (bands[kind] % 2)
    return (page.reshape(side, 4, side, 4).sum((1, 3)) // 16).astype(np.uint8)[None]
