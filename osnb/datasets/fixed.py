"""Images made small without artefacts (FIX, Kim et al. 2021), and the far data sets of that paper.

A resize without a low-pass filter leaves jagged edges by which a network tells another data set
from its own, however near the classes are. FIX averages over what it leaves out.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from osnb.datasets.files import names_in, need
from osnb.datasets.images import Images, decode, kept
from osnb.datasets.jpeg import lengths
from osnb.datasets.ood import _by_folder, _first

FOOD = "Food-101 as food-101/images/<class>/*.jpg, or images/<class>/*.jpg"
CALTECH = "Caltech-256 as 256_ObjectCategories/<number>.<class>/*.jpg, or the classes themselves"
LSUN = "photographs of LSUN as lsun/<scene>/*.jpg (or .png)"
NEAREST, BILINEAR = Image.Resampling.NEAREST, Image.Resampling.BILINEAR


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
    return np.asarray(photo.resize((size, size), NEAREST)).transpose(2, 0, 1)


def fix_all(images: Images, *, size: int = 32) -> Images:
    """Images after the FIX resize, each when it is first read.

    Args:
        images: in colour.
        size: side of the result, in pixels.

    Raises:
        ValueError: the images are grey.
    """
    if images.shape[0] != 3:
        raise ValueError(f"need images in colour; got {images.shape[0]} channel")

    def load(position: int) -> np.ndarray:
        pixels = images.read(np.array([position]))[0]
        return fixed(Image.fromarray(pixels.permute(1, 2, 0).cpu().numpy()), size=size)

    return kept(images.rows, load, (3, size, size))


def tinyimagenet_fix(root: Path) -> Images:
    """`tinyimagenet` after the FIX resize: the images of Tiny ImageNet158-FIX, and 42 classes more.

    Raises:
        FileNotFoundError: train or val/val_annotations.txt is missing.
    """
    from osnb.datasets.readers import tinyimagenet  # which lists this reader

    return fix_all(tinyimagenet(root))


def lsun_fix(root: Path) -> Images:
    """Scenes of LSUN after the FIX resize, all of them for testing; `wnid` is lsun-<scene>.

    LSUN itself comes as databases; the paper took 1000 photographs of each of ten scenes from
    them, seed 0, which are not published. Files that are 32 x 32 already are read as they are.

    Args:
        root: the folder lsun, or the one that holds it.

    Raises:
        FileNotFoundError: there is no folder, or no image in one.
    """
    place = Path(root) / _first(root, "lsun", ".")
    need(place, LSUN, "It comes from github.com/fyu/lsun, to be exported.")
    scenes = sorted(each.name for each in place.iterdir() if each.is_dir())
    if not scenes:
        raise FileNotFoundError(f"{place} holds no folder named after a scene")
    files = [(scene, place / scene / name) for scene in scenes for name in names_in(place / scene)]
    samples = [f"lsun_fix/{scene}/{path.name}" for scene, path in files]
    wnids = [f"lsun-{scene}" for scene, _ in files]
    rows = pd.DataFrame({"sample": samples, "wnid": wnids, "split": "test"})
    return kept(rows, lambda i: _fixed_file(files[i][1]), (3, 32, 32))


def _fixed_file(path: Path) -> np.ndarray:
    photo = decode(path.read_bytes(), str(path))
    return np.asarray(photo).transpose(2, 0, 1) if photo.size == (32, 32) else fixed(photo)


def food101(root: Path, *, resize: int = 256, crop: int = 224, cache: str = "") -> Images:
    """All 1000 photographs of each class of Food-101, for testing; `wnid` is the folder's name.

    The official division into training and test is not used: the paper takes 10,000 of all.

    Args:
        root: the folder food-101, or the one that holds it.
        resize: length of the short side before the window is cut, in pixels.
        crop: side of the window, in pixels, <= resize.
        cache: folder where the resized photographs are kept; empty: none is.

    Raises:
        FileNotFoundError: there is no such folder, or a class's is empty.
        ValueError: crop is larger than resize, or the cache's disk too small.
    """
    place = _first(root, "food-101/images", "images")
    need(Path(root) / place, FOOD, "It is food-101.tar.gz, unpacked.")
    return _by_folder(Path(root), place, "food101", resize=resize, crop=crop, cache=cache)


def caltech256(root: Path, *, resize: int = 256, crop: int = 224, cache: str = "") -> Images:
    """All photographs of Caltech-256, for testing; `wnid` is "022.buddha" for 022.buddha-101.

    Arguments and errors are those of `food101`; `root` is 256_ObjectCategories, or holds it.
    """
    need(Path(root), CALTECH, "It is 256_ObjectCategories.tar, unpacked.")
    place, settings = _first(root, "256_ObjectCategories", "."), {"resize": resize, "crop": crop}
    images = _by_folder(Path(root), place, "caltech256", cache=cache, **settings)
    names = images.rows["wnid"].str.removesuffix("-101")
    return images._replace(rows=images.rows.assign(wnid=names))
