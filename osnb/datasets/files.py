"""Image files in folders: listed, and read as photographs that are cropped while they are read."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from osnb.datasets.cache import Files, stored
from osnb.datasets.images import Images

SUFFIXES = (".jpeg", ".jpg", ".png")
WNID = re.compile(r"n\d{8}")
AT_HAND = "Notebooks and tests look for data in the folder that OSNB_DATA names."


def need(path: Path, layout: str, source: str) -> None:
    """Refuse a data set that is not there, with what was looked for and how to get it.

    Raises:
        FileNotFoundError: there is no such file or folder.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no {path}: needed {layout}. {source} {AT_HAND}")


def names_in(folder: Path) -> list[str]:
    """The image files of a folder, sorted by full name.

    Raises:
        FileNotFoundError: it holds none.
    """
    names = [name for name in os.listdir(folder) if name.lower().endswith(SUFFIXES)]
    names = sorted(name for name in names if not name.startswith("."))  # macOS leaves ._name
    if not names:
        raise FileNotFoundError(f"{folder} holds no image file ({', '.join(SUFFIXES)})")
    return names


def by_class(root: Path, folder: str = "", inner: str = "") -> list[tuple[str, str, str]]:
    """(wnid, name, path) of root/folder/<wnid>/inner/*, sorted; the path is relative to root.

    Raises:
        FileNotFoundError: there is no folder named after a wnid, or an empty one.
    """
    wnids = sorted(filter(WNID.fullmatch, os.listdir(root / folder)))
    if not wnids:
        raise FileNotFoundError(f"{root / folder} holds no folder named after a wnid (n02084071)")
    found = []
    for wnid in wnids:
        place = "/".join(filter(None, (folder, wnid, inner)))
        found += [(wnid, name, f"{place}/{name}") for name in names_in(root / place)]
    return found


def rows(files: Sequence[tuple[str, str, str]], *, part: str, split: str) -> pd.DataFrame:
    """Rows of `Images` from (wnid, name, path), sorted by class and name.

    The sample's id is part/<wnid>/<name> however the files lie on disk.
    """
    wnids, names, paths = zip(*sorted(files), strict=True)
    prefix = f"{part}/" if part else ""
    samples = [f"{prefix}{wnid}/{name}" for wnid, name in zip(wnids, names, strict=True)]
    return pd.DataFrame({"sample": samples, "wnid": wnids, "split": split, "path": paths})


def photographs(
    root: Path, table: pd.DataFrame, *, resize: int, crop: int, cache: str | Path = ""
) -> Images:
    """Images of files of any size: short side to `resize`, then a window of `crop`, in pixels.

    Args:
        root: folder that the paths start from.
        table: rows with column `path`.
        resize: length of the short side, in pixels.
        crop: side of the window, in pixels, <= resize.
        cache: folder where the resized photographs are kept, see `osnb.datasets.cache`; empty:
            they are decoded whenever they are read. No pixel differs.

    Raises:
        ValueError: the window is larger than the photograph, or the cache's disk too small.
    """
    if not 0 < crop <= resize:
        raise ValueError(f"need 0 < crop <= resize; got crop {crop} and resize {resize}")
    source = Files(root, table["path"].to_numpy(), resize)
    if cache:
        source = stored(source, Path(cache))

    def read(positions: np.ndarray, places: np.ndarray | None = None) -> torch.Tensor:
        pixels = np.empty((len(positions), 3, crop, crop), np.uint8)
        for i, position in enumerate(positions):
            window = _window(source.whole(position), crop, None if places is None else places[i])
            np.copyto(pixels[i], window)
        return torch.from_numpy(pixels)

    return Images(table, read, (3, crop, crop), crops=True)


def _window(photo: np.ndarray, crop: int, place: np.ndarray | None) -> np.ndarray:
    """(3, crop, crop) of a photograph (3, height, width), at the place, or in the centre."""
    height, width = photo.shape[1:]
    if place is None:
        top, left = round((height - crop) / 2), round((width - crop) / 2)
    else:
        top, left = int(place[0] * (height - crop + 1)), int(place[1] * (width - crop + 1))
    return photo[:, top : top + crop, left : left + crop]
