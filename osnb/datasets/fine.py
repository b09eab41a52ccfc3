"""Readers of the Semantic Shift Benchmark's data sets, from their official files."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from osnb.datasets.files import by_class, need, photographs, rows
from osnb.datasets.images import Images

CUB = "CUB_200_2011 with images.txt, classes.txt, image_class_labels.txt, train_test_split.txt"
CARS = "Stanford Cars with cars_annos.mat, and the images in the folder that it names"
AIRCRAFT = "FGVC-Aircraft's data/ with images/ and images_variant_{train,val,test}.txt"
PLACES = ("imagenet21k_val", "val", "")  # of the 21K subset's test images, the first that is there

File = tuple[str, str, str, str]  # split, class, name, path


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
    root = Path(root)
    tables = [_pairs(root / f"{name}.txt") for name in ("images", "image_class_labels")]
    paths, labels, train = *tables, _pairs(root / "train_test_split.txt")
    names = _pairs(root / "classes.txt")
    if not paths.keys() == labels.keys() == train.keys():
        raise ValueError(
            f"{root}: need the same images in all lists; got {len(paths)} in images.txt, "
            f"{len(labels)} in image_class_labels.txt and {len(train)} in train_test_split.txt"
        )
    files = [
        ("train" if train[i] == "1" else "test", names[labels[i]], Path(p).name, f"images/{p}")
        for i, p in paths.items()
    ]
    return _photographs(root, files, resize=resize, crop=crop, cache=cache)


def cub_attributes(root: Path) -> pd.DataFrame:
    """CUB's attributes: a row a class, by the id that `cub` gives it; percent of annotators.

    Args:
        root: the folder CUB_200_2011.

    Raises:
        FileNotFoundError: attributes/class_attribute_labels_continuous.txt is missing.
    """
    root = Path(root)
    path = root / "attributes" / "class_attribute_labels_continuous.txt"
    _need(path, CUB)
    names = list(_pairs(root / "classes.txt").values())
    return pd.read_csv(path, sep=r"\s+", header=None).set_axis(names)


def cars(root: Path, *, resize: int = 512, crop: int = 448, cache: str = "") -> Images:
    """Stanford Cars from cars_annos.mat; `wnid` is the class's name, with - for /. See `cub`.

    Raises:
        FileNotFoundError: there is no cars_annos.mat.
    """
    from scipy.io import loadmat

    root = Path(root)
    _need(root / "cars_annos.mat", CARS)
    content = loadmat(root / "cars_annos.mat", squeeze_me=True)
    names = [str(name).replace("/", "-") for name in content["class_names"]]
    files = [
        ("test" if one["test"] else "train", names[one["class"] - 1], Path(path).name, path)
        for one in content["annotations"]
        for path in [str(one["relative_im_path"])]
    ]
    return _photographs(root, files, resize=resize, crop=crop, cache=cache)


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
    files = [
        ("test" if part == "test" else "train", label, f"{name}.jpg", f"images/{name}.jpg")
        for part in ("train", "val", "test")
        for name, label in _pairs(Path(root) / f"images_variant_{part}.txt", AIRCRAFT).items()
    ]
    return _photographs(Path(root), files, resize=resize, crop=crop, cache=cache)


def aircraft_levels(root: Path) -> pd.DataFrame:
    """Family and manufacturer of each variant, by variant, from the labels of the test images.

    Args:
        root: as for `aircraft`.

    Raises:
        FileNotFoundError: one of its lists is missing.
    """
    kinds = ("variant", "family", "manufacturer")
    lists = {kind: _pairs(Path(root) / f"images_{kind}_test.txt", AIRCRAFT) for kind in kinds}
    return pd.DataFrame(lists).drop_duplicates("variant").set_index("variant").sort_index()


def imagenet21k(
    root: Path,
    *,
    wnids: Sequence[str] = (),
    resize: int = 256,
    crop: int = 224,
    cache: str = "",
) -> Images:
    """Classes of ImageNet-21K-P in folders by wnid, as test images.

    Args:
        root: folder with imagenet21k_val/ or val/, else with the classes' own folders.
        wnids: classes to read; none: all that are there.
        resize: as for `cub`.
        crop: as for `cub`.
        cache: as for `cub`.

    Raises:
        FileNotFoundError: no such folder, or none named after a wnid.
        ValueError: a class has no folder.
    """
    root = Path(root)
    need(root, "<wnid>/*.JPEG", "ImageNet-21K-P comes from image-net.org, after registration.")
    place = next(name for name in PLACES if (root / name).is_dir())
    found = by_class(root, place)
    absent = sorted(set(wnids) - {wnid for wnid, *_ in found})
    if absent:
        raise ValueError(f"{root / place} lacks {len(absent)} of the classes: {absent[0]}, ...")
    table = rows([f for f in found if not wnids or f[0] in set(wnids)], part="", split="test")
    return photographs(root, table, resize=resize, crop=crop, cache=cache)


def _need(path: Path, layout: str) -> None:
    need(path, layout, "It comes from the data set's own page.")


def _pairs(path: Path, layout: str = CUB) -> dict[str, str]:
    """First word and rest of every line."""
    _need(path, layout)
    lines = path.read_text().splitlines()
    return dict(line.strip().split(" ", 1) for line in lines if line.strip())


def _photographs(root: Path, files: Sequence[File], **settings) -> Images:
    parts = []
    for split in ("train", "test"):
        part = [(wnid, name, path) for of, wnid, name, path in files if of == split]
        if part:
            parts.append(rows(part, part=split, split=split))
    return photographs(root, pd.concat(parts, ignore_index=True), **settings)
