"""Sets that ship with the dependencies: scikit-learn's digits, letters of matplotlib's fonts."""

from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw, ImageFont

from osnb.datasets.images import Images, kept
from osnb.labels import NEGATIVE, UNKNOWN

# Letters that no digit looks like, in capitals: without B D G I L O Q S T Z and their like.
LETTERS = "ACEFHJKMNPRUVWXY"
FONTS = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSerif-Italic", "DejaVuSansMono")
SIZE = 8
FINE = 64  # letters are drawn this large, turned and moved, and then averaged down


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
    rows = pd.DataFrame(
        {
            "sample": [f"digits/{i:04}" for i in row],
            "wnid": [f"digit-{digit}" for digit in table.target],
            "split": np.where(np.isin(row, train), "train", "test"),
        }
    )
    pixels = (table.images[:, None] * (255 / 16)).round().astype(np.uint8)
    return kept(rows, pixels.__getitem__, (1, SIZE, SIZE))


def digit_classes(glyphs: bool = False) -> pd.DataFrame:
    """The protocol of the digits: 0 to 4 known, 5 and 6 negative, 7 to 9 unknown.

    Args:
        glyphs: whether the letters of `glyphs` are unknown classes too.

    Returns:
        One row a class in the form of a protocol: wnid, name, role, superclass_wnid,
        superclass_name, label.
    """
    role = ["known"] * 5 + ["negative"] * 2 + ["unknown"] * 3
    names = [(f"digit-{digit}", str(digit), role[digit], "digit") for digit in range(10)]
    if glyphs:
        names += [(f"glyph-{letter}", letter, "unknown", "glyph") for letter in LETTERS]
    classes = pd.DataFrame(names, columns=["wnid", "name", "role", "superclass_wnid"])
    classes["superclass_name"] = classes["superclass_wnid"]
    classes["label"] = [*range(5), NEGATIVE, NEGATIVE, *[UNKNOWN] * (len(classes) - 7)]
    classes.attrs = {"protocol": "digits", "restricted": ""}
    return classes


def glyphs(root: Path | None = None, *, per_class: int = 20, seed: int = 0) -> Images:  # noqa: ARG001
    """Capital letters in matplotlib's DejaVu fonts, turned and moved, in the style of `digits`.

    They are all for testing. `wnid` is glyph-A ...; samples are glyphs/<letter>/<number>.

    Args:
        root: not used; the fonts come with matplotlib.
        per_class: images of each letter.
        seed: of font, size, turn, place and weight.
    """
    pairs = [(letter, number) for letter in LETTERS for number in range(per_class)]
    rows = pd.DataFrame(
        {
            "sample": [f"glyphs/{letter}/{number:03}" for letter, number in pairs],
            "wnid": [f"glyph-{letter}" for letter, _ in pairs],
            "split": "test",
        }
    )
    return kept(rows, lambda i: _glyph(*pairs[i], seed), (1, SIZE, SIZE))


def _glyph(letter: str, number: int, seed: int) -> np.ndarray:
    """(1, 8, 8) uint8; a function of its arguments and of the version of Pillow."""
    rng = np.random.default_rng([seed, ord(letter), number])
    font = _font(FONTS[rng.integers(len(FONTS))], int(rng.integers(58, 70)))
    page = Image.new("L", (FINE, FINE))
    middle = tuple(FINE / 2 + rng.uniform(-3, 3, 2))
    weight = int(rng.integers(0, 3))
    ImageDraw.Draw(page).text(middle, letter, 255, font, "mm", stroke_width=weight)
    page = page.rotate(rng.uniform(-12, 12), Image.Resampling.BILINEAR)
    small = np.asarray(page.reduce(FINE // SIZE), np.float64)
    # pen strokes of the digits are full at the centre: 16 of 16 in a third of the inked pixels
    return np.clip(small * 1.3, 0, 255).round().astype(np.uint8)[None]


def _font(name: str, size: int) -> ImageFont.FreeTypeFont:
    import matplotlib

    return ImageFont.truetype(Path(matplotlib.get_data_path(), "fonts", "ttf", f"{name}.ttf"), size)
