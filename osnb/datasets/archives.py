"""Readers of other data sets, as their archives unpack: fine-grained ones, and far test sets.

CUB, Stanford Cars and FGVC-Aircraft are those of the Semantic Shift Benchmark, whose ImageNet-21K-P
is read by `readers`.
The far ones are all for testing; they are looked for in `root`, which may hold several data sets,
each in the folder that its archive unpacks to.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from osnb.base.labels import written
from osnb.datasets.images import BrokenImage, Images, kept, like
from osnb.datasets.photographs import content, decode
from osnb.datasets.readers import by_class, divided, names_in, photographs, rows
from osnb.datasets.small import fixed, matlab, need, packed, pairs

PAGE = "It comes from the data set's own page."
CUB = "CUB_200_2011 with images.txt, classes.txt, image_class_labels.txt, train_test_split.txt"
CARS = "Stanford Cars with cars_annos.mat, and the images in the folder that it names"
AIRCRAFT = "FGVC-Aircraft's data/ with images/ and images_variant_{train,val,test}.txt"
# folders of ODIN's archives: what its release calls each set, and the folder inside, if any
ODIN = {
    "lsun_crop": ("LSUN", "test"),
    "lsun_resize": ("LSUN_resize", "LSUN_resize"),
    "isun": ("iSUN", "iSUN_patches"),
}
# far sets in folders of classes: the folder that the archive unpacks to, the one inside that holds
# the classes, and where it comes from
FAR = {
    "caltech256": ("256_ObjectCategories", ".", "Caltech-256 is a tar of that name, unpacked."),
    "food101": ("food-101", "images", "Food-101 is food-101.tar.gz, unpacked."),
    "places365": ("places365_standard", "val", "Of Places365 take the easy directories."),
    "textures": ("dtd", "images", "Describable Textures (DTD) are dtd-r1.0.1.tar.gz, unpacked."),
}
LSUN = "photographs of LSUN as lsun/<scene>/*.jpg (or .png)"


def cub(root: Path, *, resize: int = 512, crop: int = 448, cache: str = "") -> Images:
    """CUB-200-2011; `wnid` is the class's folder, such as 001.Black_footed_Albatross.

    Args:
        root: the folder CUB_200_2011.
        resize: length of the short side before the window is cut, in pixels.
        crop: side of the window, in pixels, <= resize.
        cache: folder where the resized photographs are kept; empty: none is.

    Raises:
        FileNotFoundError: one of its lists is missing.
        ValueError: the lists do not name the same images, or the cache's disk is too small.
    """
    root, lists = Path(root), ("images", "image_class_labels", "train_test_split", "classes")
    paths, labels, train, names = (pairs(root / f"{name}.txt", CUB, PAGE) for name in lists)
    if not paths.keys() == labels.keys() == train.keys():
        raise ValueError(
            f"{root}: need the same images in all lists; got {len(paths)} in images.txt, "
            f"{len(labels)} in image_class_labels.txt and {len(train)} in train_test_split.txt"
        )
    if lost := {*labels.values()} - names.keys():
        raise ValueError(f"{root / 'classes.txt'} needs class {min(lost)!r} of an image")
    files = [
        ("train" if train[i] == "1" else "test", names[labels[i]], Path(p).name, f"images/{p}")
        for i, p in paths.items()
    ]
    return _divided(root, files, resize=resize, crop=crop, cache=cache)


def cars(root: Path, *, resize: int = 512, crop: int = 448, cache: str = "") -> Images:
    """Stanford Cars from cars_annos.mat; `wnid` is the class's name, with - for /. See `cub`.

    Raises:
        FileNotFoundError: there is no cars_annos.mat.
    """
    root = Path(root)
    need(root / "cars_annos.mat", CARS, PAGE)
    listed = matlab(root / "cars_annos.mat")
    names = [str(name).replace("/", "-") for name in listed["class_names"]]
    written(names, f"a class of {root / 'cars_annos.mat'}")
    files = [
        ("test" if one["test"] else "train", names[one["class"] - 1], Path(path).name, path)
        for one in listed["annotations"]
        for path in [str(one["relative_im_path"])]
    ]
    return _divided(root, files, resize=resize, crop=crop, cache=cache)


def aircraft(root: Path, *, resize: int = 512, crop: int = 448, cache: str = "") -> Images:
    """FGVC-Aircraft by variant, which is `wnid`; its training and validation set train. See `cub`.

    Args:
        root: the folder data of fgvc-aircraft-2013b.
        resize: as for `cub`.
        crop: as for `cub`.
        cache: as for `cub`.

    Raises:
        FileNotFoundError: one of its lists is missing.
    """
    root = Path(root)
    files = [
        ("test" if part == "test" else "train", label, f"{name}.jpg", f"images/{name}.jpg")
        for part in ("train", "val", "test")
        for name, label in pairs(root / f"images_variant_{part}.txt", AIRCRAFT, PAGE).items()
    ]
    return _divided(root, files, resize=resize, crop=crop, cache=cache)


def _divided(root: Path, files: Sequence[tuple[str, str, str, str]], **settings) -> Images:
    """Photographs of (split, class, name, path)."""
    train, test = ([f[1:] for f in files if f[0] == split] for split in ("train", "test"))
    return photographs(root, divided(train, test, tested="test"), **settings)


# Far test sets.


def far(root: Path, *, name: str, resize: int = 32, crop: int = 32, cache: str = "") -> Images:
    """All photographs of one of FAR, for testing, sorted by class and name; `wnid` is the folder's.

    Of Places365 they are the validation set, sorted into folders. The division of Food-101 into
    training and test is not used: Kim et al. 2021 take 10,000 of all its images.

    Args:
        root: the folder that the set's archive unpacks to, or the one that holds it.
        name: caltech256, food101, places365 or textures.
        resize: length of the short side before the window is cut, in pixels.
        crop: side of the window, in pixels, <= resize.
        cache: folder where the resized photographs are kept; empty: none is.

    Raises:
        FileNotFoundError: there is no such folder, or a class's is empty.
        ValueError: crop is larger than resize, or the cache's disk too small.
    """
    outer, inner, source = FAR[name]
    root, place = Path(root), _place(root, outer, inner)
    need(root / place, f"{place}/<class>/*.jpg", source)
    table = rows(by_class(root, place, wnids=False), part=name, split="test")
    return photographs(root, table, resize=resize, crop=crop, cache=cache)


def textures(root: Path, *, resize: int = 32, crop: int = 32, cache: str = "") -> Images:
    """Describable Textures (DTD), all images of all splits; `wnid` is the texture. See `far`.

    Without its folder, ten of the 47 textures, packed at 128 pixels and squeezed to `crop`.
    """
    root, file = Path(root), "dtd10_128px_q85.parquet"
    if not (root / _place(root, *FAR["textures"][:2])).is_dir() and (root / file).is_file():
        return like(packed(root, file=file, column="name", side=128), (3, crop, crop))
    return far(root, name="textures", resize=resize, crop=crop, cache=cache)


def caltech256(root: Path, *, resize: int = 256, crop: int = 224, cache: str = "") -> Images:
    """Caltech-256; `wnid` is "022.buddha" for 022.buddha-101. See `far`."""
    images = far(root, name="caltech256", resize=resize, crop=crop, cache=cache)
    names = images.rows["wnid"].str.removesuffix("-101")
    return images._replace(rows=images.rows.assign(wnid=names))


def scenes(root: Path) -> Images:
    """Buildings, glaciers and streets at 64 pixels, packed, for testing; `wnid` is scene-<name>.

    Test images of Intel's classification of scenes, where there is no LSUN. Its other classes,
    forest, mountain and sea, are classes of CIFAR-100: they are marked as training images.

    Raises:
        FileNotFoundError: there is no intel_scenes_64px_test.parquet.
    """
    images = packed(root, file="intel_scenes_64px_test.parquet", column="name", side=64)
    far = images.rows["wnid"].isin(["buildings", "glacier", "street"])
    own = {"wnid": "scene-" + images.rows["wnid"], "split": np.where(far, "test", "train")}
    return images._replace(rows=images.rows.assign(**own))


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
    within = Path(root) / outer / inner
    folder = within if within.is_dir() else within.parent
    need(folder, f"{outer}/*.png", "It comes with ODIN (github.com/facebookresearch/odin).")
    files = names_in(folder)
    samples = [f"{name}/{file}" for file in files]
    paths = [str((folder / file).relative_to(root)) for file in files]
    rows = pd.DataFrame({"sample": samples, "wnid": name, "split": "test", "path": paths})
    return kept(rows, lambda i: _centre(folder / files[i], size), (3, size, size))


def _centre(path: Path, size: int) -> np.ndarray:
    """(3, size, size) uint8."""
    pixels = np.asarray(decode(content(path), str(path))).transpose(2, 0, 1)
    top, left = ((side - size) // 2 for side in pixels.shape[1:])
    if min(top, left) < 0:
        raise BrokenImage(f"{path} must have {size} pixels a side or more; got {pixels.shape[1:]}")
    return pixels[:, top : top + size, left : left + size]


def _place(root: Path, name: str, inner: str) -> str:
    """`inner` if root itself has the name: another data set may have a val/, or folders."""
    return inner if Path(root).absolute().name == name else Path(name, inner).as_posix()


def lsun_fix(root: Path) -> Images:
    """Scenes of LSUN after the FIX resize, all of them for testing; `wnid` is lsun-<scene>.

    LSUN itself comes as databases; the paper took 1000 photographs of each of ten scenes from
    them, seed 0, which are not published. Files that are 32 x 32 already are read as they are.

    Args:
        root: the folder lsun, or the one that holds it.

    Raises:
        FileNotFoundError: there is no folder, or no image in one.
    """
    folder = Path(root) / _place(root, "lsun", ".")
    need(folder, LSUN, "It comes from github.com/fyu/lsun, to be exported.")
    table = rows(by_class(folder, wnids=False), part="lsun_fix", split="test")
    paths = [folder / path for path in table.pop("path")]
    return kept(table.assign(wnid="lsun-" + table["wnid"]), lambda i: _fixed(paths[i]), (3, 32, 32))


def _fixed(path: Path) -> np.ndarray:
    photo = decode(content(path), str(path))
    return np.asarray(photo).transpose(2, 0, 1) if photo.size == (32, 32) else fixed(photo)
