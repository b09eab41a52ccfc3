"""Batches of one epoch after another, which training and testing take."""

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from osnb import repro
from osnb.datasets.images import BrokenImage, Images
from osnb.labels import UNKNOWN

Transform = Callable[..., Tensor]


def batches(
    images: Images,
    rows: pd.DataFrame,
    *,
    batch_size: int,
    seed: int,
    shuffle: bool,
    transform: Transform,
    crop: str = "centre",
    threads: int = 0,
    broken: str = "stop",
) -> "Batches":
    """Batches of the images that `rows` names; labels are checked here, once and for all.

    Args:
        images: what a reader gave.
        rows: N rows with columns `sample` (as in `images.rows`) and `label`.
        batch_size: images per batch; the last batch holds what is left over.
        seed: with the epoch, all that order and augmentation depend on.
        shuffle: a new order every epoch, for training: no label may then be UNKNOWN.
        transform: one of `augment.AUGMENT`, called on every uint8 batch with its own generator.
        crop: where the window lies in a photograph larger than it: 'centre', or 'random' for
            training. An image of the window's own size has one place, so it makes no difference.
        threads: batches made ahead at the same time, 0 for none; never changes a byte. Pays
            where `read` decodes files.
        broken: on an image that does not decode, 'stop' or 'skip' it and its label.

    Raises:
        ValueError: a setting is none of its choices, `rows` is empty or names a sample that
            `images` lacks, or a label is no integer, below -2, or UNKNOWN in training.
    """
    _one_of("crop", crop, ("centre", "random"))
    _one_of("broken", broken, ("stop", "skip"))
    if batch_size < 1 or threads < 0:
        raise ValueError(f"need batch_size >= 1, threads >= 0; got {batch_size} and {threads}")
    if rows.empty:
        raise ValueError("need at least one row to make batches of; got none")
    labels = _labels(rows["label"], training=shuffle)
    positions = pd.Index(images.rows["sample"]).get_indexer(rows["sample"])
    if (positions < 0).any():
        absent = rows["sample"][positions < 0]
        raise ValueError(
            f"{len(absent)} of {len(rows)} samples are not in the data set: {absent.iloc[0]!r}, ..."
        )
    return Batches(
        images, rows, positions, labels, batch_size, seed, shuffle, transform, crop, threads, broken
    )


@dataclass
class Batches:
    """Batches of one epoch after another, made by `batches`; calling it with an epoch starts one.

    It holds no random state. The order is drawn from (seed, epoch), crops and transform of batch
    i from (seed, epoch, i), each by a generator of its own: a run that is resumed sees the same
    bytes, with any number of threads, and so does one that starts in the middle of an epoch.
    The last batch is kept however short, so that every row is seen once an epoch. (BatchNorm2d
    works on a batch of one image, over its pixels; BatchNorm1d refuses it.)

    After an unshuffled pass, `rows` are the rows of what it gave, one for one: take labels from
    there and not from the rows given, among which broken images still are (broken='skip').

    Attributes:
        skipped: sample to reason, for each image left out so far (broken='skip').
    """

    images: Images
    given: pd.DataFrame
    positions: np.ndarray
    labels: Tensor
    batch_size: int
    seed: int
    shuffle: bool
    transform: Transform
    crop: str
    threads: int
    broken: str
    skipped: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return -(-len(self.labels) // self.batch_size)

    @property
    def rows(self) -> pd.DataFrame:
        """The rows as given but for the images skipped so far: what an unshuffled pass yields."""
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
        mixed = repro.digest(f"{int(self.seed)} {int(epoch)} {part}")
        return torch.Generator().manual_seed(int(mixed[:15], 16))

    def _batch(self, epoch: int, i: int, chosen: Tensor) -> tuple[Tensor, Tensor]:
        generator = self._generator(epoch, i)
        places = torch.rand(len(chosen), 2, generator=generator, dtype=torch.float64).numpy()
        try:
            pixels = self._read(chosen, places)
        except BrokenImage:
            if self.broken == "stop":
                raise
            chosen, pixels = self._whole(chosen, places)
        pixels = self.transform(pixels, generator=generator).float()
        # a GPU multiplies by 1/255 where it divides by a number: a tensor gives the CPU's bits
        return pixels.div_(torch.full((), 255.0, device=pixels.device)), self.labels[chosen]

    def _read(self, chosen: Tensor, places: np.ndarray) -> Tensor:
        positions = self.positions[chosen.numpy()]
        if self.images.crops and self.crop == "random":
            return self.images.read(positions, places)
        return self.images.read(positions)

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


def _labels(column: pd.Series, *, training: bool) -> Tensor:
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


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}")
