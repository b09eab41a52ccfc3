"""Images of a data set, read by position: from files, from memory, or from a device's memory."""

import io
from collections.abc import Callable, Mapping
from threading import Lock
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import interpolate

GREY = (0.299, 0.587, 0.114)  # of red, green and blue


class Images(NamedTuple):
    """What a reader gives: a row per image, and a function that reads some of them.

    Attributes:
        rows: one row per image in a stable order; columns `sample` (unique id, str), `wnid`
            (the class's id: its name where there is no wnid), `split` (train or test) and, for
            files, `path` (relative to the reader's folder).
        read: `read(positions)`, positions (n,) int in `rows`, gives (n, channels, S, S) uint8,
            on the CPU unless the images are `resident` elsewhere.
        shape: (channels, S, S) of every image read.
        crops: whether `read(positions, places)` is understood too: photographs larger than S.
            A place (2,) in [0, 1) says where the window lies, from top to bottom and from left
            to right; without places it lies in the centre.
    """

    rows: pd.DataFrame
    read: Callable[..., Tensor]
    shape: tuple[int, int, int]
    crops: bool = False


class BrokenImage(ValueError):
    """An image that does not decode; the message names it."""


def decode(data: bytes, name: str) -> Image.Image:
    """The image in the bytes of a file, as 8-bit RGB.

    Greyscale is repeated, CMYK converted, alpha dropped; of 16 bits the upper 8 are kept.

    Args:
        data: the file's bytes, in any format that Pillow reads.
        name: what to call the image if it is broken: its path.

    Raises:
        BrokenImage: the bytes are no image, or not all of one.
    """
    try:
        return _rgb(Image.open(io.BytesIO(data)))
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise BrokenImage(
            f"{name} does not decode ({error}): fetch that file again, or pass broken='skip' to "
            "`batches` to leave such images out"
        ) from error


def _rgb(photo: Image.Image) -> Image.Image:
    if photo.mode.startswith("I"):  # convert() would clip 16 bits at 255
        photo = Image.fromarray((np.asarray(photo) >> 8).astype(np.uint8))
    if "transparency" in photo.info:  # Pillow warns when a palette's alpha is dropped in one step
        photo = photo.convert("RGBA")
    return photo.convert("RGB")


def kept(rows: pd.DataFrame, load: Callable[[int], np.ndarray], shape: tuple) -> Images:
    """Small images that stay in memory, each decoded when it is first read.

    Args:
        rows: as in `Images`, N of them.
        load: position to (channels, S, S) uint8.
        shape: (channels, S, S).
    """
    pixels = np.empty((len(rows), *shape), np.uint8)  # takes no memory before it is written to
    done = np.zeros(len(rows), bool)

    def read(positions: np.ndarray) -> Tensor:
        positions = np.array(positions)  # a copy: torch warns about read-only ones
        for position in positions[~done[positions]]:
            pixels[position] = load(int(position))
            done[position] = True
        return torch.from_numpy(pixels)[torch.from_numpy(positions)]

    return Images(rows, read, shape)


def joined(parts: Mapping[str, Images]) -> Images:
    """Several data sets as one, such as CIFAR-10 and CIFAR-100; samples begin with their names.

    Args:
        parts: by name, images of one shape, and none that are cropped while they are read.

    Raises:
        ValueError: the shapes differ.
    """
    shapes = {images.shape for images in parts.values()}
    if len(shapes) != 1:
        raise ValueError(f"need images of one shape; got {sorted(shapes)}")
    tables = {name: images.rows for name, images in parts.items()}
    tables = [rows.assign(sample=name + "/" + rows["sample"]) for name, rows in tables.items()]
    edges, (shape,) = np.cumsum([0, *map(len, tables)]), shapes

    def read(positions: np.ndarray) -> Tensor:
        positions = np.asarray(positions)
        pixels = torch.empty((len(positions), *shape), dtype=torch.uint8)
        of = np.searchsorted(edges, positions, side="right") - 1
        for i, images in enumerate(parts.values()):
            pixels[of == i] = images.read(positions[of == i] - edges[i])
        return pixels

    return Images(pd.concat(tables, ignore_index=True), read, shape)


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
        self.pixels, self.broken, self.lock = None, np.zeros(len(images.rows), bool), Lock()

    def __getstate__(self) -> tuple:
        return self.images, self.device

    def __setstate__(self, state: tuple) -> None:
        self.__init__(*state)

    def __call__(self, positions: np.ndarray) -> Tensor:
        with self.lock:
            if self.pixels is None:
                self.pixels = self._moved()
        positions = np.array(positions)  # a copy: torch warns about read-only ones
        if self.broken[positions].any():
            return self.images.read(positions).to(self.device)  # says which one is broken
        index = torch.from_numpy(positions)
        if self.device.type == "cuda":
            index = index.pin_memory()  # so that nothing waits for the copy
        return self.pixels[index.to(self.device, non_blocking=True)]

    def _moved(self) -> Tensor:
        """(N, channels, S, S) on the device; those that do not decode are noted."""
        pixels = torch.zeros(
            (len(self.broken), *self.images.shape), dtype=torch.uint8, device=self.device
        )
        for part in np.array_split(np.arange(len(pixels)), -(-len(pixels) // 1024)):
            try:
                pixels[part[0] : part[-1] + 1] = self.images.read(part)
            except BrokenImage:
                self._one_by_one(part, pixels)
        return pixels

    def _one_by_one(self, part: np.ndarray, pixels: Tensor) -> None:
        for position in part:
            try:
                pixels[position] = self.images.read(np.array([position]))[0]
            except BrokenImage:
                self.broken[position] = True
