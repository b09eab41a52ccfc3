"""Image files in folders: listed, and read as photographs that are cropped while they are read."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from PIL import Image

from osnb.datasets.images import Images, decode

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


def photographs(root: Path, table: pd.DataFrame, *, resize: int, crop: int) -> Images:
    """Images of files of any size: short side to `resize`, then a window of `crop`, in pixels.

    Raises:
        ValueError: the window is larger than the photograph.
    """
    if not 0 < crop <= resize:
        raise ValueError(f"need 0 < crop <= resize; got crop {crop} and resize {resize}")
    paths = table["path"].to_numpy()

    def read(positions: np.ndarray, places: np.ndarray | None = None) -> torch.Tensor:
        pixels = torch.empty((len(positions), crop, crop, 3), dtype=torch.uint8)
        for i, position in enumerate(positions):
            path = root / paths[position]
            photo = decode(path.read_bytes(), str(path))
            place = None if places is None else places[i]
            pixels[i] = torch.from_numpy(np.array(_window(photo, resize, crop, place)))
        return pixels.permute(0, 3, 1, 2).contiguous()

    return Images(table, read, (3, crop, crop), crops=True)


def _window(photo: Image.Image, resize: int, crop: int, place: np.ndarray | None) -> Image.Image:
    """The photograph with its short side at `resize`, cut at the place, or in the centre."""
    short = min(photo.size)
    width, height = (int(resize * side / short) for side in photo.size)
    photo = photo.resize((width, height), Image.Resampling.BILINEAR)
    if place is None:
        top, left = round((height - crop) / 2), round((width - crop) / 2)
    else:
        top, left = int(place[0] * (height - crop + 1)), int(place[1] * (width - crop + 1))
    return photo.crop((left, top, left + crop, top + crop))
