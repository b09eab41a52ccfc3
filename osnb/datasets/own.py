"""Images of one's own: folders of any names, or a csv file that lists them, and their division."""

import os
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from osnb.base import workbook
from osnb.base.labels import UNKNOWN, written
from osnb.datasets.images import Images, kept, like
from osnb.datasets.photographs import BROKEN, content, orientation, turned
from osnb.datasets.readers import SUFFIXES, by_class, photographs
from osnb.datasets.small import need
from osnb.protocols import read_csv
from osnb.protocols.palechor import SPLITS

LAYOUT = "<class>/*, train|val|test/<class>/*, or a csv file with the columns path and class"
ALPHA, DEEP = "images lose their alpha", "images of 16 bits keep the upper 8"
DARK = (  # of all of them together, since one may be dark among others
    "images of 16 or 32 bits come out dark, as none has a level above 4095: multiply all images by "
    "one number"
)
ROTATED = "images are turned as their camera's orientation tag says"
SEVERAL = "files hold several pictures (a stack, an animation), of which the first is read"
CONVERTED = (ALPHA, DEEP, DARK, ROTATED, SEVERAL)
DIVIDED = {"train", "training", "val", "valid", "validation", "test", "testing"}  # by anybody
FITS = 4e9  # bytes of pixels that are kept in memory once they are decoded


def own_images(
    root: Path,
    *,
    images: str,
    roles: str = "",
    shares: str = "6 2 2",
    resize: int,
    crop: int,
    window: str = "centre",
    cache: str = "",
) -> Images:
    """Images in folders named after their classes, or listed in a csv file.

    A folder holds <class>/*, or train/ and test/, perhaps val/, with such folders in them. A csv
    file has the columns path (from its own folder) and class, and perhaps split (train, val or
    test) and `unit`: what images of one patient, camera or burst share. What comes without splits
    is divided class by class, in the order of the units' SHA-256, so that no unit is on two sides
    and images that are added move few others; val, if there is none, is taken from train in the
    same way. Unknown classes are only tested. Orientation tags are obeyed, alpha is dropped, of
    16 bits the upper 8 are kept.

    Args:
        root: folder that `images` and `roles` start from.
        images: a folder or a csv file.
        roles: csv file with the classes' roles (`protocols.roles_csv`), or nothing.
        shares: of train, val and test, such as "6 2 2".
        resize: length of the short side before the window is cut, in pixels.
        crop: side of the window, in pixels, <= resize.
        window: centre, or for training random or resized (`Batches`).
        cache: as for `photographs`, where images do not fit into memory.

    Raises:
        FileNotFoundError: there is no such folder or file, or no image in it.
        ValueError: these are no three shares, a split is none, one unit is on two sides, or there
            are roles and no image is for testing.
    """
    place = Path(root) / images
    need(place, LAYOUT, "The setting images names it.")
    base, table = place.parent if place.is_file() else place, listed(place)
    tested = set()
    if roles:
        of = read_csv(Path(root) / roles, "class", "role")
        tested = set(of.loc[of["role"] == "unknown", "class"])
    table = _divided(table, tested, _shares(shares), place)
    if roles and "test" not in {*table["split"]}:
        how = "add test/<class>/*, or let shares divide <class>/*"
        if place.is_file():
            how = "give some rows the split test, or none a split, so that shares divide them"
        raise ValueError(f"{place}: no image is for testing: {how}")
    table["sample"] = table["path"]
    how = {"resize": resize, "crop": crop, "turn": True}
    found = photographs(base, table, **how, cache=cache)
    if cache or window != "centre" or 3 * len(table) * crop**2 > FITS:
        return found
    return kept(table, lambda position: found.read(np.array([position]))[0].numpy(), found.shape)


def listed(place: Path) -> pd.DataFrame:
    """path, wnid (the class), unit and split ("" if it is not said) of every image, sorted."""
    if place.is_file():
        table = read_csv(place, "path", "class").rename(columns={"class": "wnid"})
        unit = table.get("unit", table["path"])
        table["unit"] = unit.where(unit != "", table["path"])
        table["split"] = table.get("split", "")
    else:
        inside = {x.name for x in place.iterdir() if x.is_dir() and x.name[0] != "."}
        parts = sorted(inside) if set() < inside <= {*SPLITS} else [""]
        if parts == [""] and len(inside) > 1 and {x.lower() for x in inside} <= DIVIDED:
            found = ", ".join(sorted(inside))
            raise ValueError(f"{place}: divided folders are called train, val, test; got {found}")
        rows = [
            (path, of, part) for part in parts for of, _, path in by_class(place, part, wnids=False)
        ]
        table = pd.DataFrame(rows, columns=["path", "wnid", "split"])
        table["unit"] = table["path"]
    if (twice := table["path"].map(os.path.normpath).duplicated()).any():
        raise ValueError(f"{place}: {table.loc[twice, 'path'].iloc[0]!r} is listed twice")
    return table.sort_values(["wnid", "path"], ignore_index=True)


def new_images(place: Path, *, shape: tuple[int, int, int], resize: int) -> Images:
    """Images that belong to no data set, in the shape that a network wants.

    Args:
        place: a folder, of which all images count, however deep, but hidden ones; a csv file with a
            column path, from its own folder; or one image.
        shape: (channels, S, S): the window of S pixels is cut from the centre.
        resize: length of the short side before that, in pixels.

    Returns:
        Images whose rows have the path as sample, no class, and the label UNKNOWN.

    Raises:
        FileNotFoundError: there is no such place, or no image in it.
        ValueError: a file is neither csv nor image, a path is listed twice, or is no text in UTF-8.
    """
    if not place.exists():
        raise FileNotFoundError(2, "no such folder of images, csv file or image", str(place))
    base, paths = place.parent, [place.name]
    if place.is_dir():
        images = (path for path in workbook.shown(place) if path.suffix.lower() in SUFFIXES)
        base, paths = place, sorted(path.as_posix() for path in images)
    elif place.suffix.lower() == ".csv":
        paths = [*read_csv(place, "path")["path"]]
    elif place.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{place} needs a name that ends in .csv, {', '.join(SUFFIXES)}")
    if not paths:
        raise FileNotFoundError(f"{place} holds no image file ({', '.join(SUFFIXES)})")
    if len({*map(os.path.normpath, paths)}) < len(paths):
        raise ValueError(f"{place} lists an image twice")
    written(paths, f"an image of {place}")
    table = pd.DataFrame({"sample": paths, "path": paths, "wnid": "", "split": "test"})
    table = table.assign(role="unknown", label=UNKNOWN)
    return like(photographs(base, table, resize=resize, crop=shape[-1], turn=True), shape)


def write_png(images: Images, positions: np.ndarray, folder: Path) -> None:
    """Write images into a new folder, called 000.png and so on."""
    folder.mkdir(parents=True)
    for i, pixels in enumerate(images.read(positions)):
        photo = pixels.permute(1, 2, 0).squeeze(2).numpy()
        Image.fromarray(photo).save(folder / f"{i:03}.png")


def conversions(place: Path) -> dict[str, int]:
    """How many files are not read as they are, by what is done to them."""
    base, counts = place.parent if place.is_file() else place, dict.fromkeys(CONVERTED, 0)
    brightest = 0  # level of all deep ones
    read = {*listed(place)["path"]}
    for path in read:
        with suppress(*BROKEN), Image.open(base / path) as photo:
            counts[ALPHA] += photo.mode in ("RGBA", "LA", "PA") or "transparency" in photo.info
            counts[SEVERAL] += getattr(photo, "n_frames", 1) > 1
            # of a PNG tags are read from its bytes, for Pillow decodes it whole
            png = photo.format == "PNG"
            counts[ROTATED] += turned(content(base / path)) if png else orientation(photo) > 1
            if photo.mode.startswith("I"):
                counts[DEEP] += 1
                brightest = max(brightest, int(np.asarray(photo).max()))
    counts[DARK] = counts[DEEP] if brightest < 4096 else 0
    files = (x for x in workbook.shown(place) if (place / x).is_file())  # none of a csv
    others = [x.suffix for x in files if str(x) not in read]
    return counts | {f"files are left out: {', '.join(sorted({*others}))}": len(others)}


def _shares(text: str) -> np.ndarray:
    """(3,) of train, val and test, with sum 1."""
    try:
        shares = np.array([float(word) for word in text.split()])
    except ValueError:
        shares = np.empty(0)
    if len(shares) != 3 or not (shares > 0).all():
        raise ValueError(f"shares are three numbers above 0, of train, val and test; got {text!r}")
    return shares / shares.sum()


def _divided(
    table: pd.DataFrame, tested: set[str], shares: np.ndarray, place: Path
) -> pd.DataFrame:
    """The rows with a split each."""
    if wrong := set(table["split"]) - {*SPLITS, ""}:
        raise ValueError(f"{place}: a split is {', '.join(SPLITS)}; got {', '.join(sorted(wrong))}")
    open_ = table["split"] == ""
    table.loc[open_ & table["wnid"].isin(tested), "split"] = "test"
    sides = table[table["split"] != ""].groupby("unit")["split"].nunique()
    if len(across := sides[sides > 1]):
        raise ValueError(
            f"{place}: unit {across.index[0]!r} is on {across.iloc[0]} sides of the division"
        )
    _assign(table, table["split"] == "", SPLITS, shares)
    taught = ~table["wnid"].isin(tested)
    if not (taught & (table["split"] == "val")).any():
        _assign(table, taught & (table["split"] == "train"), SPLITS[:2], np.array([0.8, 0.2]))
    return table


def _assign(
    table: pd.DataFrame, chosen: pd.Series, splits: Sequence[str], shares: np.ndarray
) -> None:
    """Give the chosen rows splits, class by class: a unit goes where its middle image lies.

    A unit that others of the rows have a split for gets the same.
    """
    others = table[~chosen & (table["split"] != "")]
    of_unit = dict(zip(others["unit"], others["split"], strict=True))
    for _, rows in table[chosen].groupby("wnid"):
        sizes = rows["unit"].value_counts()
        sizes = sizes[sorted(sizes.index, key=lambda unit: sha256(unit.encode()).digest())]
        middle = (sizes.cumsum() - sizes / 2) / sizes.sum()
        sides = np.searchsorted(shares.cumsum()[:-1], middle)
        for unit, side in zip(sizes.index, sides, strict=True):
            of_unit.setdefault(unit, splits[side])
    table.loc[chosen, "split"] = table.loc[chosen, "unit"].map(of_unit)
