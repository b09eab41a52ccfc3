"""Drawings by people that ship with the package: Quick, Draw! and some characters of Omniglot.

What they are, where they come from and what was left out stands in osnb/data/*/README.md.
"""

from collections.abc import Iterable
from functools import cache

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw

from osnb.base.workbook import PACKAGE, verified
from osnb.datasets.images import Images, kept

FOLDER = PACKAGE / "data" / "quickdraw"
CHARACTERS = PACKAGE / "data" / "omniglot" / "characters.png"
MOST = {"train": 100, "val": 40, "test": 60}  # drawings of a class, in the order of key_id
# two things each, and one that has the synset of `fan`
LEFT_OUT = ("mouse", "nail", "ceiling fan")
FINE, PEN = 4, 6  # drawn so many times larger, with a pen so wide where the side is 32


@cache
def drawings() -> pd.DataFrame:
    """All drawings of classes with a synset of their own: name, wnid, key_id, split and strokes.

    A class's drawings are in the order of their key_id, its classes in that of their names. Of
    the last split, some classes have fewer than 60 drawings: README.md says why.

    Raises:
        ValueError: the file is not the one that the package came with.
    """
    table = pd.read_parquet(verified(FOLDER / "quickdraw.parquet"))
    synsets = pd.read_csv(FOLDER / "synsets.csv").set_index("name")["wnid"].dropna()
    table = table[table["name"].isin(synsets.index.drop(list(LEFT_OUT)))]
    table = table.sort_values(["name", "key_id"], ignore_index=True)
    rank = table.groupby("name").cumcount()
    split = np.repeat(list(MOST), list(MOST.values()))[rank]
    return table.assign(wnid=table["name"].map(synsets), split=split)


def quickdraw(
    *,
    side: int = 32,
    channels: int = 1,
    train_per_class: int = MOST["train"],
    validation_per_class: int = MOST["val"],
    test_per_class: int = MOST["test"],
) -> Images:
    """Quick, Draw!: drawings by people, white on black, each rendered when it is first read.

    Of a class, the first 100 drawings by key_id are for training, the next 40 for validation and
    the last 60 for testing; of each part the first ones are taken, so that no drawing changes
    sides with the number asked for. Samples are quickdraw/<name>/<key_id>; the validation
    drawings' split is val.

    Args:
        side: S of the images in pixels.
        channels: 1, or 3 that are alike.
        train_per_class: at most 100.
        validation_per_class: at most 40.
        test_per_class: at most 60; of some classes there are a few less.

    Returns:
        Images (channels, S, S) uint8 of 339 classes, a synset each.

    Raises:
        ValueError: a number is out of range, or the file is broken.
    """
    counts = dict(zip(MOST, (train_per_class, validation_per_class, test_per_class), strict=True))
    if side < 1 or channels not in (1, 3):
        raise ValueError(f"need a side of at least 1, 1 or 3 channels; got {side} and {channels}")
    if any(not 0 <= counts[split] <= most for split, most in MOST.items()):
        raise ValueError(f"need at most {MOST} drawings of a class; got {counts}")
    table = drawings()
    number = table.groupby(["name", "split"]).cumcount()
    table = table[number < table["split"].map(counts)].reset_index(drop=True)
    sample = "quickdraw/" + table["name"] + "/" + table["key_id"].astype(str)
    packed = table["strokes"].to_numpy()
    return kept(
        table[["wnid", "split"]].assign(sample=sample)[["sample", "wnid", "split"]],
        lambda i: np.broadcast_to(rendered(packed[i], side), (channels, side, side)),
        (channels, side, side),
    )


def pictures(wnids: Iterable[str], number: int, *, side: int = 32, channels: int = 1) -> np.ndarray:
    """(C, number, channels, side, side) uint8: test drawings of each of C classes.

    First come those of shown.csv, chosen by eye so that none is unreadable by accident; then the
    others, by key_id.

    Args:
        wnids: of the classes.
        number: of drawings, at most as many as a class has to test.
        side, channels: as for `quickdraw`.
    """
    images, listed = quickdraw(side=side, channels=channels), pd.read_csv(FOLDER / "shown.csv")
    chosen = "quickdraw/" + listed["name"] + "/" + listed["key_id"].astype(str)
    rows = images.rows[images.rows["split"] == "test"]
    places = rows.assign(later=~rows["sample"].isin(chosen)).sort_values("later", kind="stable")
    places = places.groupby("wnid").groups
    return np.stack([images.read(np.asarray(places[w][:number])).numpy() for w in wnids])


def strokes(packed: bytes) -> list[np.ndarray]:
    """The way of the pen in each stroke: (n, 2) int64, x to the right and y down, in [0, 255].

    Args:
        packed: for every stroke two bytes n, the low one first, n bytes of x and n of y.
    """
    data, ways = np.frombuffer(packed, np.uint8).astype(np.int64), []
    while len(data):
        count = int(data[0] + 256 * data[1])
        ways.append(data[2 : 2 + 2 * count].reshape(2, count).T)
        data = data[2 + 2 * count :]
    return ways


def rendered(packed: bytes, side: int) -> np.ndarray:
    """(side, side) uint8 of a drawing in the middle, its lines 1.6 pixels wide where side is 32.

    It is drawn four times larger, by a pen with a round point (so that a dot is a dot), and then
    averaged. Places are integers; Pillow draws the lines.

    Args:
        packed: strokes as for `strokes`.
        side: in pixels.
    """
    page = FINE * side
    pen = max(1, PEN * side // 32)
    ways, before = strokes(packed), pen // 2
    points = np.concatenate(ways)
    twice_middle = points.min(axis=0) + points.max(axis=0)
    sheet = Image.new("L", (page, page))
    pencil, after = ImageDraw.Draw(sheet), pen - 1 - before
    for way in ways:
        way = (page * 255 + (2 * way - twice_middle) * (page - 2 * pen) + 255) // 510
        pencil.line(way.ravel().tolist(), 255, pen)
        for x, y in way.tolist():
            pencil.ellipse((x - before, y - before, x + after, y + after), 255)
    return np.asarray(sheet.reduce(FINE))


def omniglot_few() -> Images:
    """Every fourth of Omniglot's 1,623 characters, one drawing of each, all for testing.

    Returns:
        406 images (1, 28, 28) uint8, white on black; `wnid` and sample are those of its place in
        Omniglot: omniglot-0001, omniglot-0005, ...

    Raises:
        ValueError: the file is broken.
    """
    with Image.open(verified(CHARACTERS)) as sheet:
        pixels = np.asarray(sheet).reshape(14, 28, 29, 28).swapaxes(1, 2).reshape(-1, 1, 28, 28)
    names = [f"omniglot-{place:04}" for place in range(1, 1624, 4)]
    rows = pd.DataFrame({"sample": names, "wnid": names, "split": "test"})
    return kept(rows, pixels.__getitem__, (1, 28, 28))
