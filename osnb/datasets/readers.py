"""Readers of ImageNet and its parts, and what all readers of photographs in folders share."""

import csv
import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch.nn.functional import interpolate

from osnb.base.labels import written
from osnb.datasets.images import Images, kept, one_each
from osnb.datasets.photographs import Files, content, stored
from osnb.datasets.small import fix_all, matlab, need, packed, pairs, square

SUFFIXES = (".jpeg", ".jpg", ".png", ".webp", ".bmp", ".tif", ".tiff")
WNID = re.compile(r"n\d{8}")
TINY = "tinyimagenet64_jpeg.parquet"
DEVKIT = "ILSVRC2012_devkit_t12/data"


def names_in(folder: Path) -> list[str]:
    """The image files of a folder, sorted by full name.

    Raises:
        FileNotFoundError: it holds none.
        ValueError: the name of one has a lone surrogate in it.
    """
    names = [name for name in os.listdir(folder) if name.lower().endswith(SUFFIXES)]
    names = sorted(name for name in names if not name.startswith("."))  # macOS leaves ._name
    if not names:
        raise FileNotFoundError(f"{folder} holds no image file ({', '.join(SUFFIXES)})")
    written(names, f"an image of {folder}")
    return names


def by_class(
    root: Path, folder: str = "", inner: str = "", *, wnids: bool = True
) -> list[tuple[str, str, str]]:
    """(class, name, path) of root/folder/<class>/inner/*, sorted; the path is relative to root.

    Args:
        root: folder that the paths start from.
        folder: below it, where the classes' folders are.
        inner: folder of the images in each of them.
        wnids: only folders named after a wnid are classes; else all are but hidden ones.

    Raises:
        FileNotFoundError: there is no such folder, or an empty one.
        ValueError: a name has a lone surrogate in it.
    """
    names = sorted(name for name in os.listdir(root / folder) if not name.startswith("."))
    is_class = WNID.fullmatch if wnids else lambda name: (root / folder / name).is_dir()
    classes = [name for name in names if is_class(name)]
    if not classes:
        kind = "a wnid (n02084071)" if wnids else "a class"
        raise FileNotFoundError(f"{root / folder} holds no folder named after {kind}")
    written(classes, f"a class of {root / folder}")
    places = {label: "/".join(filter(None, (folder, label, inner))) for label in classes}
    return [
        (label, name, f"{place}/{name}")
        for label, place in places.items()
        for name in names_in(root / place)
    ]


def rows(files: Sequence[tuple[str, str, str]], *, part: str, split: str) -> pd.DataFrame:
    """Rows of `Images` from (wnid, name, path), sorted by class and name.

    The sample's id is part/<wnid>/<name> however the files lie on disk.
    """
    wnids, names, paths = zip(*sorted(files), strict=True)
    prefix = f"{part}/" if part else ""
    samples = [f"{prefix}{wnid}/{name}" for wnid, name in zip(wnids, names, strict=True)]
    return pd.DataFrame({"sample": samples, "wnid": wnids, "split": split, "path": paths})


def divided(
    train: Sequence[tuple[str, str, str]], test: Sequence[tuple[str, str, str]], *, tested: str
) -> pd.DataFrame:
    """`rows` of training files, then of test files, whose ids begin with train and `tested`."""
    parts = {("train", "train"): train, (tested, "test"): test}
    tables = [rows(files, part=p, split=split) for (p, split), files in parts.items() if files]
    return pd.concat(tables, ignore_index=True)


def photographs(
    root: Path,
    table: pd.DataFrame,
    *,
    resize: int,
    crop: int,
    cache: str | Path = "",
    turn: bool = False,
) -> Images:
    """Images of files of any size: short side to `resize`, then a window of `crop`, in pixels.

    A window of random size and shape is cut from the photograph as the file has it, which is
    decoded each time, with a cache too.

    Args:
        root: folder that the paths start from.
        table: rows with column `path`.
        resize: length of the short side, in pixels.
        crop: side of the window, in pixels, <= resize.
        cache: folder where the resized photographs are kept (`datasets.photographs`); empty:
            they are decoded whenever they are read. No pixel differs.
        turn: whether a camera's orientation tag is obeyed.

    Raises:
        ValueError: the window is larger than the photograph, or the cache's disk too small.
    """
    if not 0 < crop <= resize:
        raise ValueError(f"need 0 < crop <= resize; got crop {crop} and resize {resize}")
    source = Files(root, table["path"].to_numpy(), resize, turn=turn)
    if cache:
        source = stored(source, Path(cache))

    def read(positions: np.ndarray, places: np.ndarray | None = None) -> torch.Tensor:
        pixels = np.empty((len(positions), 3, crop, crop), np.uint8)
        sized = places is not None and places.ndim == 3
        for i, position in enumerate(positions):
            photo = source.whole(position, own=sized)
            np.copyto(pixels[i], _window(photo, crop, None if places is None else places[i]))
        return torch.from_numpy(pixels)

    return Images(one_each(table, root), read, (3, crop, crop), crops=True)


def _window(photo: np.ndarray, crop: int, place: np.ndarray | None) -> np.ndarray:
    """(3, crop, crop) of a photograph (3, height, width), at the place, or in the centre."""
    height, width = photo.shape[1:]
    if place is None:
        top, left = round((height - crop) / 2), round((width - crop) / 2)
    elif place.ndim == 2:
        return resized_window(photo, crop, place)
    else:
        top, left = int(place[0] * (height - crop + 1)), int(place[1] * (width - crop + 1))
    return photo[:, top : top + crop, left : left + crop]


def resized_window(photo: np.ndarray, side: int, draws: np.ndarray) -> np.ndarray:
    """A window of random size, shape and place, scaled: torchvision's RandomResizedCrop.

    Its area is uniform in .08 to 1 of the photograph's, the logarithm of width by height in that
    of 3/4 to 4/3. The first try that fits is taken; if none does, the largest window of such a
    shape in the centre.

    Args:
        photo: (3, height, width) uint8.
        side: S, of the result, in pixels.
        draws: (T, 4) in [0, 1), a row a try: area, shape, from top to bottom, from left to right.

    Returns:
        (3, S, S) uint8, bilinear and antialiased.
    """
    sides = np.array(photo.shape[1:])
    area = (0.08 + 0.92 * draws[:, 0]) * sides.prod()
    shape = np.exp((2 * draws[:, 1] - 1) * np.log(4 / 3))
    sizes = np.sqrt(np.stack([area / shape, area * shape], axis=1)).round().astype(int)
    fits = ((sizes > 0) & (sizes <= sides)).all(axis=1)
    size = sizes[fits.argmax()] if fits.any() else np.minimum(sides, (sides[::-1] * 4 / 3).round())
    at = draws[fits.argmax(), 2:] * (sides - size + 1) if fits.any() else (sides - size) // 2
    (top, left), (height, width) = at.astype(int), size.astype(int)
    cut = torch.from_numpy(np.array(photo[None, :, top : top + height, left : left + width]))
    return interpolate(cut, (side, side), mode="bilinear", antialias=True)[0].numpy()


def ilsvrc(root: Path, *, resize: int = 256, crop: int = 224, cache: str = "") -> Images:
    """ILSVRC 2012: the training set, and the validation set as the test set.

    `root`, or ILSVRC/Data/CLS-LOC in it (Kaggle's archive), holds train/<wnid>/*.JPEG and val/,
    which is sorted by wnid too, or flat. The classes of a flat one come from the first of these
    in `root`, beside val, in val or in the devkit's folder: Kaggle's LOC_val_solution.csv;
    imagenet_2012_validation_synset_labels.txt, one wnid per line; the devkit's
    ILSVRC2012_validation_ground_truth.txt with its meta.mat. Ids and order of the samples,
    train|val/<wnid>/<name>, are the same for all of them.

    Args:
        root: the folder.
        resize: length of the short side before the window is cut, in pixels.
        crop: side of the window, in pixels, <= resize.
        cache: folder on a disk with about 360 GB free, where the resized photographs are kept
            so that each is decoded once; empty: none is.

    Raises:
        FileNotFoundError: train, val, or the classes of val are missing.
        ValueError: the classes of val do not belong to the files in it, or the cache's disk is
            too small.
    """
    root, kaggle = Path(root), "ILSVRC/Data/CLS-LOC"
    base = kaggle if (root / kaggle).is_dir() else ""
    layout = "ILSVRC 2012 as train/<wnid>/*.JPEG and val/, by wnid or flat"
    for part in ("train", "val"):
        need(root / base / part, layout, "It comes from image-net.org, after registration.")
    train, val = (f"{base}/{part}".strip("/") for part in ("train", "val"))
    flat = not any(map(WNID.fullmatch, os.listdir(root / val)))
    test = _flat(root, val) if flat else by_class(root, val)
    table = divided(by_class(root, train), test, tested="val")
    return photographs(root, table, resize=resize, crop=crop, cache=cache)


def _flat(root: Path, val: str) -> list[tuple[str, str, str]]:
    """(wnid, name, path) of a flat validation folder, as `by_class` gives them."""
    names = names_in(root / val)
    places = [root, (root / val).parent, root / val, root / DEVKIT]
    truths = [(place / name, f) for name, f in TRUTHS.items() for place in places]
    path, wnids_of = next(((path, f) for path, f in truths if path.is_file()), (None, None))
    if path is None:
        raise FileNotFoundError(
            f"{root / val} is flat, and none of {', '.join(TRUTHS)} is in "
            f"{', '.join(map(str, dict.fromkeys(places)))}. The last is in ILSVRC2012_devkit_t12, "
            "beside the images on image-net.org; or sort the files into folders named by wnid"
        )
    try:
        wnids = wnids_of(path, names)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is no list in UTF-8: {error}") from None
    if wrong := [wnid for wnid in wnids if not WNID.fullmatch(wnid)]:
        raise ValueError(f"{path} needs classes such as n01440764; got {wrong[0]!r}")
    if len(wnids) != len(names):
        raise ValueError(
            f"need one class per file of {root / val}: {len(names)} files, "
            f"but {len(wnids)} classes in {path}"
        )
    return [(wnid, name, f"{val}/{name}") for wnid, name in zip(wnids, names, strict=True)]


def _kaggle(path: Path, names: list[str]) -> list[str]:
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        if not {"ImageId", "PredictionString"} <= {*(reader.fieldnames or ())}:
            raise ValueError(f"{path} needs columns ImageId,PredictionString")
        lines = [(x["ImageId"], (x["PredictionString"] or "").split()[:1]) for x in reader]
    boxes: dict[str, list[str]] = {}
    for image, wnid in lines:
        if not wnid or boxes.setdefault(image, wnid) != wnid:
            said = f"two classes, {boxes[image][0]} and {wnid[0]}" if wnid else "no class"
            raise ValueError(f"{path} gives {image!r} {said}")
    return [boxes[stem][0] for name in names if (stem := Path(name).stem) in boxes]


def _devkit(path: Path, names: list[str]) -> list[str]:  # noqa: ARG001 (one signature)
    meta = path.with_name("meta.mat")
    need(meta, "the devkit's list of classes beside its ground truth", "It is in the same archive.")
    synsets = matlab(meta)["synsets"]
    wnids = {str(int(synset["ILSVRC2012_ID"])): str(synset["WNID"]) for synset in synsets}
    words = path.read_text().split()
    if wrong := [word for word in words if word not in wnids]:
        raise ValueError(f"{path} needs numbers of classes in {meta}; got {wrong[0][:60]!r}")
    return [wnids[word] for word in words]


TRUTHS = {  # file name: function giving the class of each file, in the order of the names
    "LOC_val_solution.csv": _kaggle,
    "imagenet_2012_validation_synset_labels.txt": lambda path, _names: path.read_text().split(),
    "ILSVRC2012_validation_ground_truth.txt": _devkit,
}


def folder(
    root: Path, *, split: str = "test", resize: int = 256, crop: int = 224, cache: str = ""
) -> Images:
    """Photographs in <root>/<wnid>/, all counted as one split.

    Args:
        root: the folder.
        split: train or test.
        resize: length of the short side before the window is cut, in pixels.
        crop: side of the window, in pixels, <= resize.
        cache: folder where the resized photographs are kept, 0.26 MB each, so that each is
            decoded once; empty: none is.

    Raises:
        FileNotFoundError: there is no such folder, or no image in it.
        ValueError: the split is neither, or the cache's disk is too small.
    """
    if split not in ("train", "test"):
        raise ValueError(f"split must be train or test; got {split!r}")
    root = Path(root)
    need(root, "<wnid>/*.JPEG", "Any photographs sorted into folders named by wnid will do.")
    table = rows(by_class(root), part="", split=split)
    return photographs(root, table, resize=resize, crop=crop, cache=cache)


def tinyimagenet(root: Path) -> Images:
    """Tiny ImageNet's own folders, 64 pixels; the validation set is the test set.

    Without them, its files packed as tinyimagenet64_jpeg.parquet (`small.packed`).

    Raises:
        FileNotFoundError: train or val/val_annotations.txt is missing, and the packed file.
    """
    root, notes = Path(root), Path(root) / "val" / "val_annotations.txt"
    if not notes.exists() and (root / TINY).is_file():
        return packed(root, file=TINY, column="wnid", side=64)
    layout = "Tiny ImageNet as train/<wnid>/images/, val/images/ and val/val_annotations.txt"
    source = "It is cs231n.stanford.edu/tiny-imagenet-200.zip, unpacked."
    need(root / "train", layout, source)
    lines = pairs(notes, layout, source, between="\t").items()
    val = [(rest.split("\t")[0], name, f"val/images/{name}") for name, rest in lines]
    table = divided(by_class(root, "train", "images"), val, tested="val")
    paths = [root / path for path in table["path"]]
    return kept(table, lambda i: square(content(paths[i]), paths[i], 64), (3, 64, 64))


def tinyimagenet_fix(root: Path) -> Images:
    """`tinyimagenet` after the FIX resize: the images of Tiny ImageNet158-FIX, and 42 classes more.

    Of the packed file those 80 classes stay that it has training images of.

    Raises:
        FileNotFoundError: train or val/val_annotations.txt is missing, and the packed file.
    """
    images = tinyimagenet(root)
    taught = images.rows.loc[images.rows["split"] == "train", "wnid"]
    places = np.flatnonzero(images.rows["wnid"].isin(taught))
    rows = images.rows.iloc[places].reset_index(drop=True)
    return fix_all(images._replace(rows=rows, read=lambda at: images.read(places[at])))


def imagenet21k(root: Path, *, resize: int = 256, crop: int = 224, cache: str = "") -> Images:
    """Classes of ImageNet-21K-P in folders by wnid, as test images.

    Args:
        root: folder with imagenet21k_val/ or val/, else with the classes' own folders.
        resize: as for `cub`.
        crop: as for `cub`.
        cache: as for `cub`.

    Raises:
        FileNotFoundError: no such folder, or none named after a wnid.
    """
    root = Path(root)
    need(root, "<wnid>/*.JPEG", "ImageNet-21K-P comes from image-net.org, after registration.")
    places = ("imagenet21k_val", "val", "")  # of the 21K subset's test images
    place = next(name for name in places if (root / name).is_dir())
    table = rows(by_class(root, place), part="", split="test")
    return photographs(root, table, resize=resize, crop=crop, cache=cache)
