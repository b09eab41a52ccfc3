"""Readers: a folder or a file on disk to `Images`. `READERS` names them all."""

import csv
import os
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from osnb.catalogue import Catalogue
from osnb.datasets.files import AT_HAND, WNID, by_class, names_in, need, photographs, rows
from osnb.datasets.fine import aircraft, cars, cub, imagenet21k
from osnb.datasets.fixed import caltech256, food101, lsun_fix, tinyimagenet_fix
from osnb.datasets.images import BrokenImage, Images, decode, kept
from osnb.datasets.ood import (
    gaussian_noise,
    isun,
    lsun_crop,
    lsun_resize,
    places365,
    rademacher_noise,
    textures,
    uniform_noise,
)
from osnb.datasets.small import digits, glyphs
from osnb.datasets.synsets import synsets

DEVKIT = "ILSVRC2012_devkit_t12/data"


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
    parts = [
        rows(by_class(root, train), part="train", split="train"),
        rows(test, part="val", split="test"),
    ]
    table = pd.concat(parts, ignore_index=True)
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
    wnids = wnids_of(path, names)
    if len(wnids) != len(names):
        raise ValueError(
            f"need one class per file of {root / val}: {len(names)} files, "
            f"but {len(wnids)} classes in {path}"
        )
    return [(wnid, name, f"{val}/{name}") for wnid, name in zip(wnids, names, strict=True)]


def _kaggle(path: Path, names: list[str]) -> list[str]:
    with path.open(newline="") as file:
        boxes = {line["ImageId"]: line["PredictionString"] for line in csv.DictReader(file)}
    return [boxes[stem].split()[0] for name in names if (stem := Path(name).stem) in boxes]


def _listed(path: Path, names: list[str]) -> list[str]:  # noqa: ARG001 (one signature)
    return path.read_text().split()


def _devkit(path: Path, names: list[str]) -> list[str]:  # noqa: ARG001 (one signature)
    from scipy.io import loadmat

    meta = path.with_name("meta.mat")
    need(meta, "the devkit's list of classes beside its ground truth", "It is in the same archive.")
    synsets = loadmat(meta, squeeze_me=True)["synsets"]
    wnids = {int(synset["ILSVRC2012_ID"]): str(synset["WNID"]) for synset in synsets}
    return [wnids[int(number)] for number in path.read_text().split()]


TRUTHS = {  # file name: function giving the class of each file, in the order of the names
    "LOC_val_solution.csv": _kaggle,
    "imagenet_2012_validation_synset_labels.txt": _listed,
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

    Raises:
        FileNotFoundError: train or val/val_annotations.txt is missing.
    """
    root, notes = Path(root), Path(root) / "val" / "val_annotations.txt"
    layout = "Tiny ImageNet as train/<wnid>/images/, val/images/ and val/val_annotations.txt"
    for path in (root / "train", notes):
        need(path, layout, "It is cs231n.stanford.edu/tiny-imagenet-200.zip, unpacked.")
    fields = [line.split("\t") for line in notes.read_text().splitlines()]
    val = [(wnid, name, f"val/images/{name}") for name, wnid, *_ in fields]
    train = rows(by_class(root, "train", "images"), part="train", split="train")
    table = pd.concat([train, rows(val, part="val", split="test")], ignore_index=True)
    paths = [root / path for path in table["path"]]
    return kept(table, lambda i: _square(paths[i].read_bytes(), paths[i], 64), (3, 64, 64))


def tinyimagenet_parquet(root: Path) -> Images:
    """Tiny ImageNet at 32 pixels from one file, tinyimagenet32_jpeg.parquet in `root`.

    Its columns are `split` (val is our test), `wnid` and `jpeg`; samples are <split>/<row>.

    Raises:
        FileNotFoundError: there is no such file.
    """
    return _parquet(Path(root) / "tinyimagenet32_jpeg.parquet", "wnid")


def cifar10_parquet(root: Path) -> Images:
    """CIFAR-10 from one file, cifar10_jpeg.parquet in `root`; `name` is our `wnid`.

    Its columns are `split`, `name` and `jpeg`; samples are <split>/<row>.

    Raises:
        FileNotFoundError: there is no such file.
    """
    return _parquet(Path(root) / "cifar10_jpeg.parquet", "name")


def _parquet(path: Path, column: str) -> Images:
    layout = f"a parquet file with columns split, {column} and jpeg (bytes)"
    need(path, layout, "It is packed from the data set's images, one row for each.")
    try:
        table = pd.read_parquet(path, columns=["split", column, "jpeg"])
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{path} must be {layout}; it cannot be read: {error}") from error
    part = table["split"].astype(str)
    sample = part + "/" + pd.Series(range(len(table))).astype(str).str.zfill(6)
    split = part.where(part == "train", "test")
    wnid = table[column].astype(str)
    jpeg = table["jpeg"].to_numpy()
    return kept(
        pd.DataFrame({"sample": sample, "wnid": wnid, "split": split}),
        lambda i: _square(jpeg[i], f"row {i} of {path}", 32),
        (3, 32, 32),
    )


def _square(data: bytes, name: str | Path, side: int) -> np.ndarray:
    """(3, side, side) uint8."""
    photo = decode(data, str(name))
    if photo.size != (side, side):
        raise BrokenImage(f"{name} must be {side} x {side} pixels; got {photo.size}")
    return np.asarray(photo).transpose(2, 0, 1)


def torchvision_set(root: Path, *, name: str) -> Images:
    """One of torchvision's small data sets, from its own files; nothing is downloaded.

    Samples are <split>/<row>; `wnid` is the class's name, for SVHN its digit. The shape is the
    data set's own: (1, 28, 28) or (3, 32, 32).

    Args:
        root: what torchvision's class of that name takes as `root`.
        name: MNIST, FashionMNIST, CIFAR10, CIFAR100 or SVHN.

    Raises:
        FileNotFoundError: torchvision finds no whole copy there.
    """
    from osnb.vision import torchvision  # a second that no other reader has to pay

    make = getattr(torchvision.datasets, name)
    key, values = ("split", ("train", "test")) if name == "SVHN" else ("train", (True, False))
    try:
        halves = [make(root, download=False, **{key: value}) for value in values]
    except RuntimeError as error:
        raise FileNotFoundError(
            f"torchvision finds no whole copy of {name} in {root}. To fetch one: "
            f"torchvision.datasets.{name}({str(root)!r}, download=True). {AT_HAND}"
        ) from error
    tables = [_numbered(half, split) for half, split in zip(halves, ("train", "test"), strict=True)]
    pixels = torch.cat([_channels_first(half.data) for half in halves])
    table = pd.concat(tables, ignore_index=True)
    return Images(table, lambda positions: pixels[np.array(positions)], tuple(pixels.shape[1:]))


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


READERS = Catalogue(
    aircraft=aircraft,
    caltech256=caltech256,
    cars=cars,
    cifar10=partial(torchvision_set, name="CIFAR10"),
    cifar10_parquet=cifar10_parquet,
    cifar100=partial(torchvision_set, name="CIFAR100"),
    cub=cub,
    digits=digits,
    fashion_mnist=partial(torchvision_set, name="FashionMNIST"),
    folder=folder,
    food101=food101,
    gaussian_noise=gaussian_noise,
    glyphs=glyphs,
    ilsvrc=ilsvrc,
    imagenet21k=imagenet21k,
    isun=isun,
    lsun_crop=lsun_crop,
    lsun_fix=lsun_fix,
    lsun_resize=lsun_resize,
    mnist=partial(torchvision_set, name="MNIST"),
    places365=places365,
    places365_large=partial(places365, resize=256, crop=224),
    rademacher_noise=rademacher_noise,
    svhn=partial(torchvision_set, name="SVHN"),
    synsets=synsets,
    textures=textures,
    tinyimagenet=tinyimagenet,
    tinyimagenet_fix=tinyimagenet_fix,
    tinyimagenet_parquet=tinyimagenet_parquet,
    uniform_noise=uniform_noise,
)
