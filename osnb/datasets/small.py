"""Small images: on disk, or made here; how many of them are tested, and FIX.

A resize without a low-pass filter leaves jagged edges by which a network tells another data set
from its own, however near the classes are. FIX (Kim et al. 2021) averages over what it leaves out.
"""

import zlib
from math import isqrt
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from PIL import Image, ImageDraw, ImageFont

from osnb.datasets.images import BrokenImage, Images, kept, like
from osnb.datasets.photographs import decode, lengths
from osnb.protocols.vaze import DIGITS, LETTERS

AT_HAND = "Notebooks and tests look for data in the folder that OSNB_DATA names."
FONTS = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSerif-Italic", "DejaVuSansMono")
SIZE = 8
FINE = 64  # letters are drawn this large, turned and moved, and then averaged down
KINDS = ("stripes", "checks", "rings", "blotches", "gradients")  # of patterns
BILINEAR = Image.Resampling.BILINEAR
MNIST = "mnist_png.parquet"
NAMES = {str(digit): f"{digit} - {word}" for digit, word in enumerate(DIGITS)}  # torchvision's


def counted(counts: str, *, of: str) -> dict[str, int]:
    """How many test images are asked for, by reader; the others give all that they have.

    Args:
        counts: "svhn:4000 gaussian_noise:10000", or nothing.
        of: names of the readers, with blanks between.

    Raises:
        ValueError: a word is no NAME:COUNT of one of the readers, or names it again.
    """
    asked = {}
    for word in counts.split():
        name, _, count = word.partition(":")
        if name in asked or name not in of.split() or not (count.isdecimal() and int(count)):
            raise ValueError(
                f"counts are NAME:COUNT with a count of at least 1, once for each of "
                f"{', '.join(of.split()) or 'no reader'}; got {word!r} in {counts!r}"
            )
        asked[name] = int(count)
    return asked


def some(rows: pd.DataFrame, count: int, *, name: str) -> pd.DataFrame:
    """So many of the rows, in their order: drawn once for a name and a count, in every run alike.

    Args:
        rows: of test images.
        count: how many; 0 for all.
        name: of their reader. The draw follows from it and from no seed of the run.

    Raises:
        ValueError: there are fewer rows.
    """
    if count > len(rows):
        raise ValueError(f"need {count} test images of {name}; got {len(rows)}: ask for fewer")
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    kept = np.sort(rng.choice(len(rows), count, replace=False)) if count else slice(None)
    return rows.iloc[kept]


def need(path: Path, layout: str, source: str) -> None:
    """Refuse a data set that is not there, with what was looked for and how to get it.

    Raises:
        FileNotFoundError: there is no such file or folder.
    """
    if not (path.is_file() or path.is_dir()):
        raise FileNotFoundError(f"there is no {path}: needed {layout}. {source} {AT_HAND}")


def matlab(path: Path) -> dict:
    """What a file of MATLAB holds.

    Raises:
        ValueError: scipy cannot read it.
    """
    from scipy.io import loadmat

    try:
        return loadmat(str(path), squeeze_me=True)
    except Exception as error:  # of many kinds, some with no words
        raise ValueError(f"{path} is no file of MATLAB: {error!r}") from None


def pairs(path: Path, layout: str, source: str, *, between: str = " ") -> dict[str, str]:
    """First word and rest of every line of a list, such as an image's name and its class.

    Raises:
        FileNotFoundError: there is no such file, as `need` says it.
        ValueError: it is no text in UTF-8, a line has one word alone, or a first word stands in two
            lines that differ.
    """
    need(path, layout, source)
    found: dict[str, str] = {}
    try:
        lines = path.read_text(encoding="utf8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no list in UTF-8: {error}") from None
    for line in filter(str.strip, lines):
        name, _, rest = line.strip().partition(between)
        if not rest:
            raise ValueError(f"{path} needs two words in each line; got {line!r}")
        if found.setdefault(name, rest) != rest:
            raise ValueError(f"{path} gives {name!r} twice: {found[name]!r} and {rest!r}")
    return found


TESTS = ("test", "val", "valid", "validation")  # words for the test set


def packed(root: Path, *, file: str, column: str, side: int = 32, channels: int = 3) -> Images:
    """Small images from one parquet file, one row for each; samples are <split>/<row>.

    Args:
        root: folder of the file.
        file: its name. Its columns are `split` (train, or one of `TESTS`), the class's and
            `jpeg` or `png` (bytes).
        column: name of the class's column, which is our `wnid`.
        side: S, edge of the images in pixels.
        channels: 3, or 1 for grey images.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it lacks a column, has another split, or is no parquet file.
    """
    path = Path(root) / file
    layout = f"a parquet file with columns split, {column} and jpeg or png (bytes)"
    need(path, layout, "It is packed from the data set's images, one row for each.")
    try:
        table = pd.read_parquet(path)
        coded = "png" if "png" in table else "jpeg"
        table = table[["split", column, coded]].reset_index(drop=True)
    except Exception as error:  # Arrow's are of many kinds
        said = " ".join(str(error).split())  # Arrow speaks in several lines
        raise ValueError(f"{path} must be {layout}; it cannot be read: {said}") from error
    part = table["split"].astype(str)
    sample = part + "/" + pd.Series(range(len(table))).astype(str).str.zfill(6)
    if wrong := sorted({*part} - {"train", *TESTS}):
        raise ValueError(f"{path} needs splits train or {', '.join(TESTS)}; got {wrong[0]!r}")
    split = part.where(part == "train", "test")
    wnid = table[column].astype(str)
    data = table[coded].to_numpy()
    return kept(
        pd.DataFrame({"sample": sample, "wnid": wnid, "split": split}),
        lambda i: square(data[i], f"row {i} of {path}", side)[:channels],
        (channels, side, side),
    )


def square(data: bytes, name: str | Path, side: int) -> np.ndarray:
    """(3, side, side) uint8 of the bytes of a file that is so large.

    Raises:
        BrokenImage: it has another size, or does not decode.
    """
    photo = decode(data, str(name))
    if photo.size != (side, side):
        raise BrokenImage(f"{name} must be {side} x {side} pixels; got {photo.size}")
    return np.asarray(photo).transpose(2, 0, 1)


def torchvision_set(root: Path, *, name: str, file: str = "") -> Images:
    """One of torchvision's small data sets, from its own files; nothing is downloaded.

    Samples are <split>/<row>; `wnid` is the class's name, for SVHN its digit. The shape is the
    data set's own: (1, 28, 28) or (3, 32, 32). Without its own files a parquet file will do
    (`packed`), whose order, and whose codec if it is none without loss, are others: a run's stamp
    has a digest of the list and of pixels.

    Args:
        root: what torchvision's class of that name takes as `root`, or the folder of the file.
        name: MNIST, FashionMNIST, CIFAR10, CIFAR100 or SVHN.
        file: name of the parquet file; its column `name` has the class, of MNIST the digit.

    Raises:
        FileNotFoundError: torchvision finds no whole copy there, and there is no such file.
    """
    from osnb.datasets.vision import torchvision  # a second that no other reader has to pay

    make = getattr(torchvision.datasets, name)
    key, values = ("split", ("train", "test")) if name == "SVHN" else ("train", (True, False))
    try:
        halves = [make(root, download=False, **{key: value}) for value in values]
    except RuntimeError as error:
        if file and (Path(root) / file).is_file():
            grey = {"side": 28, "channels": 1} if name == "MNIST" else {}
            images = packed(root, file=file, column="name", **grey)
            wnids = images.rows["wnid"].replace(NAMES if grey else {})
            return images._replace(rows=images.rows.assign(wnid=wnids))
        halves = [f"split={value!r}, " for value in values] if name == "SVHN" else [""]
        calls = (f"torchvision.datasets.{name}({str(root)!r}, {x}download=True)" for x in halves)
        raise FileNotFoundError(
            f"torchvision finds no whole copy of {name} in {root}"
            f"{f', and there is no {file}' * bool(file)}. "
            f"To fetch one: {' and '.join(calls)}. {AT_HAND}"
        ) from error
    except Exception as error:  # of a file without a checksum: of pickle, struct, an assertion
        raise ValueError(f"{root} has no whole copy of {name}: {error!r}") from error
    tables = [_numbered(half, split) for half, split in zip(halves, ("train", "test"), strict=True)]
    pixels = torch.cat([_channels_first(half.data) for half in halves])
    table = pd.concat(tables, ignore_index=True)
    return Images(table, lambda positions: pixels[np.array(positions)], tuple(pixels.shape[1:]))


def mnist_rgb(root: Path) -> Images:
    """MNIST (3, 32, 32), grey in three channels: what Chen et al. 2021 and Vaze et al. 2022 train.

    Pillow makes theirs larger and torch ours, both bilinear: pixels differ by at most 1 of 255.

    Raises:
        FileNotFoundError: as `torchvision_set`.
    """
    return like(torchvision_set(root, name="MNIST", file=MNIST), (3, 32, 32))


def _numbered(half, split: str) -> pd.DataFrame:
    labels = np.asarray(half.labels if hasattr(half, "labels") else half.targets)
    names = np.array(getattr(half, "classes", range(10))).astype(str)
    samples = [f"{split}/{row:06}" for row in range(len(labels))]
    return pd.DataFrame({"sample": samples, "wnid": names[labels], "split": split})


def _channels_first(data: np.ndarray | torch.Tensor) -> torch.Tensor:
    """(N, H, W), (N, H, W, 3) or (N, 3, H, W) uint8 to (N, channels, H, W)."""
    data = torch.as_tensor(data)
    if data.ndim == 3:
        return data[:, None]
    return data.permute(0, 3, 1, 2).contiguous() if data.shape[3] == 3 else data


def fixed(photo: Image.Image, *, through: int = 256, size: int = 32) -> np.ndarray:
    """The FIX resize: short side to 256, the centre of 256, then 32, bilinear and antialiased.

    Args:
        photo: 8-bit RGB, any size.
        through: side of the square in between, in pixels.
        size: S, side of the result in pixels, <= through.

    Returns:
        (3, S, S) uint8.

    Raises:
        ValueError: the result would be larger than the square in between.
    """
    if not 0 < size <= through:
        raise ValueError(f"need 0 < size <= through; got size {size} and through {through}")
    photo = photo.resize(lengths(photo.size, through), BILINEAR)
    left, top = (round((side - through) / 2) for side in photo.size)
    square = photo.crop((left, top, left + through, top + through))
    return np.asarray(square.resize((size, size), BILINEAR)).transpose(2, 0, 1)


def naive(photo: Image.Image, *, size: int = 32) -> np.ndarray:
    """(3, S, S) uint8: one pixel in so many, the rest dropped, as `fixed` must not do."""
    return np.asarray(photo.resize((size, size), Image.Resampling.NEAREST)).transpose(2, 0, 1)


def fix_all(images: Images) -> Images:
    """Images after the FIX resize, each when it is first read.

    Args:
        images: in colour.

    Returns:
        They with (3, 32, 32) pixels.

    Raises:
        ValueError: the images are grey.
    """
    if images.shape[0] != 3:
        raise ValueError(f"need images in colour; got {images.shape[0]} channel")

    def load(position: int) -> np.ndarray:
        pixels = images.read(np.array([position]))[0]
        return fixed(Image.fromarray(pixels.permute(1, 2, 0).cpu().numpy()))

    return kept(images.rows, load, (3, 32, 32))


# Images that need no file: letters and digits in fonts, scikit-learn's digits, noise, patterns.


def digits(*, seed: int = 0) -> Images:
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
    *, characters: str = LETTERS, side: int = SIZE, per_class: int = 20, seed: int = 0
) -> Images:
    """Capital letters, or digits, in matplotlib's DejaVu fonts, turned and moved.

    They are all for testing. `wnid` is glyph-A ...; samples are glyphs/<character>/<number>.

    Args:
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


def noise(
    *, name: str, size: int = 32, count: int = 400, seed: int = 0, mean: float = 0.5, sd: float = 1
) -> Images:
    """Independent values in every pixel and channel: Gaussian, uniform, or black or white.

    Neither Vaze et al. 2022 nor Kim et al. 2021 give the parameters of Gaussian noise, clipped to
    [0, 1]. The defaults are those of ODIN (Liang et al. 2018): mean 0.5, variance 1, so that about
    62 % of the values are clipped. Outlier Exposure (Hendrycks et al. 2019) takes a standard
    deviation of 0.5 in [-1, 1], which is `sd=0.25`.

    Args:
        name: gaussian_noise; uniform_noise, in [0, 1] as in ODIN; or rademacher_noise, 0 or 1 with
            probability 1/2 as in Outlier Exposure.
        size: S, side of the images in pixels.
        count: N images; the first of them are the same for every count.
        seed: of the values.
        mean: of Gaussian values before they are clipped, where pixels lie in [0, 1].
        sd: standard deviation of Gaussian values before they are clipped, in the same unit.

    Returns:
        N images (3, S, S) uint8; `wnid` is the name, samples are <name>/<number>.

    Raises:
        ValueError: `size` or `count` is below 1.
    """
    if size < 1 or count < 1:
        raise ValueError(f"need size and count of at least 1; got {size} and {count}")
    shape = (3, size, size)
    draw = {
        "gaussian_noise": lambda rng: rng.normal(mean, sd, shape),
        "uniform_noise": lambda rng: rng.random(shape),
        "rademacher_noise": lambda rng: rng.integers(0, 2, shape),
    }[name]

    def load(number: int) -> np.ndarray:
        rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
        return np.clip(draw(rng) * 255.0, 0, 255).round().astype(np.uint8)

    samples = [f"{name}/{number:06}" for number in range(count)]
    return kept(pd.DataFrame({"sample": samples, "wnid": name, "split": "test"}), load, shape)


def patterns(*, side: int = 32, count: int = 400, seed: int = 0) -> Images:
    """Textures that we make: stripes, checks, rings and blotches, white on black, and gradients.

    Each kind is as frequent; direction, width and place are drawn. They are integers, or square
    roots rounded down, so that they are the same on any machine. They are all for testing.

    Args:
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
