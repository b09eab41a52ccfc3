"""Images of a data set, read by position, and the batches that training and testing take.

They are read from files, from memory, or from a device's memory.
"""

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from osnb.base import workbook
from osnb.base.labels import UNKNOWN

GREY = (0.299, 0.587, 0.114)  # of red, green and blue
TRIES = 10  # windows of random size drawn for an image, of which the first that fits is cut
# where a training window lies: the draws that an image takes
PLACES = {"centre": (2,), "random": (2,), "resized": (TRIES, 4)}


class Images(NamedTuple):
    """What a reader gives: a row per image, and a function that reads some of them.

    Attributes:
        rows: one row per image in a stable order; columns `sample` (unique id, str), `wnid`
            (the class's id: its name where there is no wnid), `split` (train, val or test) and,
            for files, `path` (relative to the reader's folder).
        read: `read(positions)`, positions (n,) int in `rows`, gives (n, channels, S, S) uint8,
            on the CPU unless the images are `resident` elsewhere.
        shape: (channels, S, S) of every image read.
        crops: whether `read(positions, places)` is understood too: photographs larger than S.
            A place (2,) in [0, 1) says where the window lies, from top to bottom and from left
            to right; one of shape (TRIES, 4) how large it is too (`readers.resized_window`);
            without places it lies in the centre.
    """

    rows: pd.DataFrame
    read: Callable[..., Tensor]
    shape: tuple[int, int, int]
    crops: bool = False


class BrokenImage(ValueError):
    """An image that does not decode; the message names it."""


def one_each(rows: pd.DataFrame, place: Path | str) -> pd.DataFrame:
    """The rows of a data set, if each of its files is one image.

    Raises:
        ValueError: a file is two, such as one under two classes.
    """
    if "path" in rows and (twice := rows["path"].duplicated()).any():
        path = rows.loc[twice, "path"].iloc[0]
        under = ", ".join(rows.loc[rows["path"] == path, "sample"])
        raise ValueError(f"{place} needs one class and split for each image; {path!r} is {under}")
    return rows


def kept(rows: pd.DataFrame, load: Callable[[int], np.ndarray], shape: tuple) -> Images:
    """Small images that stay in memory, each made when it is first read.

    Args:
        rows: as in `Images`, N of them.
        load: position to (channels, S, S) uint8.
        shape: (channels, S, S).
    """
    pixels = np.empty((len(rows), *shape), np.uint8)  # takes no memory before it is written to
    done = np.zeros(len(rows), bool)

    def read(positions: np.ndarray) -> Tensor:
        positions = np.array(positions)  # a copy: torch warns about read-only ones
        new = positions[~done[positions]]
        for position in new.tolist():
            pixels[position] = load(position)
            done[position] = True
        return torch.from_numpy(pixels)[torch.from_numpy(positions)]

    return Images(one_each(rows, "a data set"), read, shape)


def joined(parts: Mapping[str, Images]) -> Images:
    """Several data sets as one, such as CIFAR-10 and CIFAR-100; samples begin with their names.

    Args:
        parts: by name, images of one shape. They are cropped in places only if all can be.

    Raises:
        ValueError: the shapes differ.
    """
    shapes = {images.shape for images in parts.values()}
    if len(shapes) != 1:
        raise ValueError(f"need images of one shape; got {sorted(shapes)}")
    tables = {name: images.rows for name, images in parts.items()}
    tables = [rows.assign(sample=name + "/" + rows["sample"]) for name, rows in tables.items()]
    edges, (shape,) = np.cumsum([0, *map(len, tables)]), shapes

    def read(positions: np.ndarray, *places: np.ndarray) -> Tensor:
        positions = np.asarray(positions)
        pixels = torch.empty((len(positions), *shape), dtype=torch.uint8)
        of = np.searchsorted(edges, positions, side="right") - 1
        for i, images in enumerate(parts.values()):
            at = [place[of == i] for place in places]
            pixels[of == i] = images.read(positions[of == i] - edges[i], *at)
        return pixels

    crops = all(images.crops for images in parts.values())
    return Images(pd.concat(tables, ignore_index=True), read, shape, crops)


def like(images: Images, shape: tuple[int, int, int]) -> Images:
    """The same images in another shape, for a network that was trained on such ones.

    Edges are scaled, antialiased; grey is repeated for three channels, and three are averaged
    for grey with the weights of ITU-R 601.

    Args:
        images: of one size.
        shape: (1 or 3, S, S).

    Raises:
        ValueError: the number of channels is another.
    """
    if {shape[0], images.shape[0]} - {1, 3}:
        raise ValueError(f"need 1 or 3 channels; got {images.shape[0]} and {shape[0]}")

    def read(positions: np.ndarray) -> Tensor:
        pixels = images.read(positions).float()
        if (shape[0], images.shape[0]) == (1, 3):
            pixels = (pixels * pixels.new_tensor(GREY)[:, None, None]).sum(dim=1, keepdim=True)
        pixels = pixels.expand(-1, shape[0], -1, -1)
        pixels = interpolate(pixels, shape[1:], mode="bilinear", antialias=True)
        return pixels.round().clamp(0, 255).to(torch.uint8)

    return images if images.shape == shape else Images(images.rows, read, shape)


def of_classes(images: Images, wnids: Iterable[str], number: int) -> np.ndarray:
    """(C, number, channels, S, S) uint8: the last images of each of C classes."""
    places = images.rows.groupby("wnid").groups
    return np.stack([images.read(np.asarray(places[w][-number:])).numpy() for w in wnids])


def resident(images: Images, device: torch.device | str) -> Images:
    """The same images as one uint8 tensor on a device, so that batches are made there.

    All are read and moved when the first batch is: in a process that was sent the object, on the
    device of that name there. `batches` then cuts, augments and converts on the device, while
    its order and draws come from the CPU, so that no byte differs from those without it; and no
    step waits for the device. Keep `threads=0`: there is nothing to decode ahead.

    Args:
        images: N small images, which take N * channels * S * S bytes of the device's memory.
        device: 'cuda', 'cpu', ...: a name without a number is the process's own such device.

    Raises:
        ValueError: these are photographs that are cropped while they are read.
    """
    if images.crops:
        raise ValueError(
            "resident needs images of one size; photographs are cropped while they are read: "
            "give their reader a cache, a folder for pixels that are decoded once"
        )
    return images._replace(read=_Resident(images, torch.device(device)))


class _Resident:
    """`read` of images that lie on a device; pickled without them."""

    def __init__(self, images: Images, device: torch.device):
        self.images, self.device = images, device
        self.pixels, self.broken, self.lock = None, np.ones(len(images.rows), bool), Lock()

    def __reduce__(self) -> tuple:
        return _Resident, (self.images, self.device)

    def __call__(self, positions: np.ndarray) -> Tensor:
        with self.lock:
            if self.pixels is None:
                shape = (len(self.broken), *self.images.shape)
                pixels = torch.zeros(shape, dtype=torch.uint8, device=self.device)
                for part in np.array_split(np.arange(len(pixels)), -(-len(pixels) // 1024)):
                    self._move(part, pixels)
                for alone in np.flatnonzero(self.broken):
                    self._move(alone[None], pixels)
                self.pixels = pixels
        positions = np.array(positions)  # a copy: torch warns about read-only ones
        if self.broken[positions].any():
            return self.images.read(positions).to(self.device)  # says which one is broken
        index = torch.from_numpy(positions)
        if self.device.type == "cuda":
            index = index.pin_memory()  # so that nothing waits for the copy
        return self.pixels[index.to(self.device, non_blocking=True)]

    def _move(self, part: np.ndarray, pixels: Tensor) -> None:
        """Read neighbouring images into their places, if all of them decode."""
        with suppress(BrokenImage):
            pixels[part[0] : part[-1] + 1] = self.images.read(part)
            self.broken[part] = False


@dataclass
class Batches:
    """Batches of one epoch after another, of the images that rows name; a call starts an epoch.

    It holds no random state. The order is drawn from (seed, epoch), crops and transform of batch
    i from (seed, epoch, i), each by a generator of its own: a run that is resumed sees the same
    bytes, with any number of threads, and so does one that starts in the middle of an epoch.
    The last batch is kept however short, so that every row is seen once an epoch. (BatchNorm2d
    works on a batch of one image, over its pixels; BatchNorm1d refuses it.)

    Labels are checked here, once and for all. After an unshuffled pass, `rows` are the rows of
    what it gave, one for one: take labels from there and not from the rows given, among which
    broken images still are (broken='skip').

    Args:
        images: what a reader gave.
        given: N rows with columns `sample` (as in `images.rows`) and `label`.
        batch_size: images per batch; the last batch holds what is left over.
        seed: with the epoch, all that order and augmentation depend on.
        shuffle: a new order every epoch, for training: no label may then be UNKNOWN.
        transform: one of `augment.AUGMENT`, called on every uint8 batch with its own generator.
        crop: where the window lies in a photograph larger than it: 'centre', or for training
            'random', or 'resized', a window of random size and shape too, which is scaled. An
            image of the window's own size has one place, and is read as it is.
        threads: batches made ahead at the same time, 0 for none; never changes a byte. Pays
            where `read` decodes files.
        broken: on an image that does not decode, 'stop' or 'skip' it and its label.
        pinned: whether batches made on the CPU lie where a GPU copies from while both go on.
        part: which one, from 0, of how many parts of each batch is wanted: others' pixels are not
            read but 0, unless the batch has fewer images than parts, or broken='skip'.

    Attributes:
        labels: (N,) int64.
        skipped: sample to reason, for each image left out so far (broken='skip').

    Raises:
        ValueError: a setting is none of its choices, there are no rows, they name a sample that
            `images` lacks, or a label is no integer, below -2, or UNKNOWN in training.
    """

    images: Images
    given: pd.DataFrame
    _: KW_ONLY
    batch_size: int
    seed: int
    shuffle: bool
    transform: Callable[..., Tensor]
    crop: str = "centre"
    threads: int = 0
    broken: str = "stop"
    pinned: bool = False
    part: tuple[int, int] = (0, 1)

    def __post_init__(self):
        for name, choices in {"crop": PLACES, "broken": ("stop", "skip")}.items():
            if (value := getattr(self, name)) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}")
        if self.batch_size < 1 or self.threads < 0:
            raise ValueError(
                f"need batch_size >= 1, threads >= 0; got {self.batch_size} and {self.threads}"
            )
        if self.given.empty:
            raise ValueError("need at least one row to make batches of; got none")
        self.labels, samples = _labels(self.given["label"], self.shuffle), self.given["sample"]
        self.positions = pd.Index(self.images.rows["sample"]).get_indexer(samples)
        self.skipped: dict[str, str] = {}
        if len(absent := samples[self.positions < 0]):
            raise ValueError(
                f"{len(absent)} of {len(samples)} samples are not in the data set: "
                f"{absent.iloc[0]!r}, ..."
            )

    def __len__(self) -> int:
        return -(-len(self.labels) // self.batch_size)

    @property
    def rows(self) -> pd.DataFrame:
        """What an unshuffled pass yields, the rows as given but for the images skipped so far."""
        return self.given[~self.given["sample"].isin(list(self.skipped))]

    def __call__(self, epoch: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield images (n, channels, S, S) float32 in [0, 1] and labels (n,) int64, per batch.

        They are on the device that the images are read on, the CPU but for `resident` ones;
        labels are on the CPU.

        Args:
            epoch: which order, crops and augmentation.
            start: batches to leave out at the beginning, in [0, len]; they are not read. A batch
                of which no image decodes is not given, but counts.

        Raises:
            ValueError: there are not so many batches.
            BrokenImage: an image does not decode, when its batch's turn comes (broken='stop'),
                or not one does, at the end (broken='skip').
        """
        if not 0 <= start <= len(self):
            raise ValueError(
                f"start must be from 0 to {len(self)}, the number of batches; got {start}"
            )
        count, before = len(self.labels), len(self.skipped)
        order = torch.arange(count)
        if self.shuffle:
            order = torch.randperm(count, generator=self._generator(epoch, "order"))
        chunks = order.split(self.batch_size)
        todo = range(start, len(chunks))
        made = _ahead(lambda i: self._batch(epoch, i, chunks[i]), todo, self.threads)
        with closing(made):
            yield from (batch for batch in made if len(batch[1]))
        if self.rows.empty:
            reason = next(iter(self.skipped.values()))
            raise BrokenImage(f"none of the {count} images decodes; the first: {reason}")
        if len(self.skipped) > before:
            names = ", ".join(sorted(self.skipped))
            warnings.warn(f"{len(self.skipped)} images did not decode: {names}", stacklevel=2)

    def _generator(self, epoch: int, part: str | int) -> torch.Generator:
        """Seed, epoch and part mixed: 60 bits of the sha256 of the three as text."""
        mixed = workbook.digest(f"{int(self.seed)} {int(epoch)} {part}")
        return torch.Generator().manual_seed(int(mixed[:15], 16))

    def _batch(self, epoch: int, i: int, chosen: Tensor) -> tuple[Tensor, Tensor]:
        generator = self._generator(epoch, i)
        size = len(chosen), *PLACES[self.crop]
        places = torch.rand(size, generator=generator, dtype=torch.float64).numpy()
        try:
            pixels = self._read(chosen, places)
        except BrokenImage:
            if self.broken == "stop":
                raise
            chosen, pixels = self._whole(chosen, places)
        pixels = self.transform(pixels, generator=generator).float()
        # a GPU multiplies by 1/255 where it divides by a number: a tensor gives the CPU's bits
        pixels = pixels.div_(torch.full((), 255.0, device=pixels.device))
        pin = self.pinned and pixels.device.type == "cpu"
        return pixels.pin_memory() if pin else pixels, self.labels[chosen]

    def _read(self, chosen: Tensor, places: np.ndarray) -> Tensor:
        (number, parts), count = self.part, len(chosen)
        if parts > 1 and count >= parts and self.broken == "stop":
            own = np.array_split(np.arange(count), parts)[number]
            pixels = self._pixels(chosen[own], places[own])
            whole = pixels.new_zeros(count, *pixels.shape[1:])
            whole[own[0] : own[-1] + 1] = pixels
            return whole
        return self._pixels(chosen, places)

    def _pixels(self, chosen: Tensor, places: np.ndarray) -> Tensor:
        positions = self.positions[chosen.numpy()]
        at_random = self.images.crops and self.crop != "centre"
        return self.images.read(positions, *([places] if at_random else []))

    def _whole(self, chosen: Tensor, places: np.ndarray) -> tuple[Tensor, Tensor]:
        """Those of a batch that decode, one by one, and their pixels; the others are noted."""
        good, pixels = [], []
        for i in range(len(chosen)):
            try:
                pixels.append(self._read(chosen[i : i + 1], places[i : i + 1]))
                good.append(i)
            except BrokenImage as error:
                self.skipped[self.given["sample"].iloc[int(chosen[i])]] = str(error)
        none = torch.empty((0, *self.images.shape), dtype=torch.uint8)
        return chosen[good], torch.cat(pixels or [none])


def _ahead(make: Callable, todo: Iterable, threads: int) -> Iterator:
    """make(i) for each i of todo in order, at most `threads` + 1 of them made ahead.

    What a thread raises is raised here in its turn; no thread outlives the iteration, whether it
    ends, fails or is abandoned.
    """
    if not threads:
        yield from map(make, todo)
        return
    pool, waiting = ThreadPoolExecutor(threads), deque()
    try:
        for i in todo:
            waiting.append(pool.submit(make, i))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _labels(column: pd.Series, training: bool) -> Tensor:
    labels = column.to_numpy()
    if not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"labels must be integers; got {labels.dtype}")
    lowest = UNKNOWN + 1 if training else UNKNOWN
    if labels.min() < lowest:
        purpose = "training (shuffle=True)" if training else "testing"
        raise ValueError(
            f"labels for {purpose} must be >= {lowest}; got {labels.min()} "
            f"in {(labels < lowest).sum()} of {len(labels)} rows"
        )
    return torch.from_numpy(labels.astype(np.int64))


batches = Batches
