"""Test images of other data sets, to be told from the known: noise, and what OoD papers test on.

All of them are for testing. Files are looked for in `root`, which may hold several data sets, each
in the folder that its archive unpacks to.
"""

import os
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from osnb.datasets.files import names_in, need, photographs
from osnb.datasets.images import BrokenImage, Images, decode, kept

DTD = "Describable Textures as dtd/images/<texture>/*.jpg"
PLACES = "Places365 as places365_standard/val/<category>/*.jpg"
# folders of ODIN's archives: what its release calls each set, and the folder inside, if any
ODIN = {
    "lsun_crop": ("LSUN", "test"),
    "lsun_resize": ("LSUN_resize", "LSUN_resize"),
    "isun": ("iSUN", "iSUN_patches"),
}


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


def uniform_noise(
    root: Path | None = None,  # noqa: ARG001 (one signature)
    *,
    size: int = 32,
    count: int = 400,
    seed: int = 0,
) -> Images:
    """Independent values uniform in [0, 1] in every pixel and channel, as in ODIN.

    Arguments, rows and errors are those of `gaussian_noise`.
    """
    return _noise("uniform_noise", size, count, seed, lambda rng, s: rng.random(s))


def rademacher_noise(
    root: Path | None = None,  # noqa: ARG001 (one signature)
    *,
    size: int = 32,
    count: int = 400,
    seed: int = 0,
) -> Images:
    """Black or white with probability 1/2 in every pixel and channel, as in Outlier Exposure.

    Arguments, rows and errors are those of `gaussian_noise`.
    """
    return _noise("rademacher_noise", size, count, seed, lambda rng, s: rng.integers(0, 2, s))


def _noise(name: str, size: int, count: int, seed: int, draw: Callable) -> Images:
    if size < 1 or count < 1:
        raise ValueError(f"need size and count of at least 1; got {size} and {count}")
    shape = (3, size, size)

    def load(number: int) -> np.ndarray:
        rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
        return np.clip(draw(rng, shape) * 255.0, 0, 255).round().astype(np.uint8)

    samples = [f"{name}/{number:06}" for number in range(count)]
    return kept(pd.DataFrame({"sample": samples, "wnid": name, "split": "test"}), load, shape)


def counted(counts: str, *, of: str) -> dict[str, int]:
    """How many test images are asked for, by reader; the others give all that they have.

    Args:
        counts: "svhn:4000 gaussian_noise:10000", or nothing.
        of: names of the readers, with blanks between.

    Raises:
        ValueError: a word is no NAME:COUNT of one of the readers, or names it again.
    """
    found = {}
    for word in counts.split():
        name, _, count = word.partition(":")
        if name in found or name not in of.split() or not (count.isdecimal() and int(count)):
            raise ValueError(
                f"counts are NAME:COUNT with a count of at least 1, once for each of "
                f"{', '.join(of.split()) or 'no reader'}; got {word!r} in {counts!r}"
            )
        found[name] = int(count)
    return found


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


def textures(root: Path, *, resize: int = 32, crop: int = 32, cache: str = "") -> Images:
    """Describable Textures (DTD), all images of all splits; `wnid` is the texture.

    Args:
        root: the folder dtd, or the one that holds it.
        resize: length of the short side before the window is cut, in pixels.
        crop: side of the window, in pixels, <= resize.
        cache: folder where the resized photographs are kept; empty: none is.

    Raises:
        FileNotFoundError: there is no such folder, or a texture's is empty.
        ValueError: crop is larger than resize, or the cache's disk too small.
    """
    place, source = _place(root, "dtd", "images"), "It is dtd-r1.0.1.tar.gz, unpacked."
    need(Path(root) / place, DTD, source)
    return _by_folder(Path(root), place, "textures", resize=resize, crop=crop, cache=cache)


def places365(root: Path, *, resize: int = 32, crop: int = 32, cache: str = "") -> Images:
    """The validation set of Places365, sorted into folders; `wnid` is the category.

    Arguments and errors are those of `textures`; `root` is places365_standard, or holds it.
    """
    place, source = _place(root, "places365_standard", "val"), "Take the easy directories."
    need(Path(root) / place, PLACES, source)
    return _by_folder(Path(root), place, "places365", resize=resize, crop=crop, cache=cache)


def odin_set(root: Path, *, name: str, size: int = 32) -> Images:
    """One of the sets that ODIN's authors cut or scaled to small images; `wnid` is its name.

    Images that are larger, such as 36 pixels of LSUN (crop), give their centre: nothing is scaled.

    Args:
        root: folder that holds LSUN, LSUN_resize or iSUN, with the images in it or in the folder
            inside that the archive has.
        name: lsun_crop, lsun_resize or isun.
        size: side of the window, in pixels.

    Raises:
        FileNotFoundError: there is no such folder, or no image in it.
        BrokenImage: an image, when it is read, is smaller than the window.
    """
    outer, inner = ODIN[name]
    folder = Path(root) / _first(root, f"{outer}/{inner}", outer)
    need(folder, f"{outer}/*.png", "It comes with ODIN (github.com/facebookresearch/odin).")
    files = names_in(folder)
    samples = [f"{name}/{file}" for file in files]
    paths = [str((folder / file).relative_to(root)) for file in files]
    rows = pd.DataFrame({"sample": samples, "wnid": name, "split": "test", "path": paths})
    return kept(rows, lambda i: _centre(folder / files[i], size), (3, size, size))


def _centre(path: Path, size: int) -> np.ndarray:
    """(3, size, size) uint8."""
    pixels = np.asarray(decode(path.read_bytes(), str(path))).transpose(2, 0, 1)
    top, left = ((side - size) // 2 for side in pixels.shape[1:])
    if min(top, left) < 0:
        raise BrokenImage(f"{path} must have {size} pixels a side or more; got {pixels.shape[1:]}")
    return pixels[:, top : top + size, left : left + size]


def _first(root: Path, *places: str) -> str:
    """The first of the folders that is there; the last if none is."""
    return next((place for place in places if (Path(root) / place).is_dir()), places[-1])


def _place(root: Path, name: str, inner: str) -> str:
    """`inner` if root itself has the name, for val/ alone may be another data set's."""
    return inner if Path(root).absolute().name == name else f"{name}/{inner}"


def _by_folder(root: Path, place: str, name: str, **settings) -> Images:
    """Photographs in root/place/<class>/*, sorted by class and name."""
    classes = sorted(each for each in os.listdir(root / place) if (root / place / each).is_dir())
    if not classes:
        raise FileNotFoundError(f"{root / place} holds no folder named after a class")
    files = [(label, file) for label in classes for file in names_in(root / place / label)]
    rows = {
        "sample": [f"{name}/{label}/{file}" for label, file in files],
        "wnid": [label for label, _ in files],
        "split": "test",
        "path": [f"{place}/{label}/{file}" for label, file in files],
    }
    return photographs(root, pd.DataFrame(rows), **settings)


lsun_crop, lsun_resize, isun = (partial(odin_set, name=name) for name in ODIN)
