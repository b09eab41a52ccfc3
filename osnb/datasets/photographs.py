"""Photographs decoded and resized by their short side, and kept in one file: decoded once.

An ordinary JPEG goes through simplejpeg, which gives Pillow's very pixels because both use
libjpeg-turbo, and through torch's antialiased resize of bytes, which is Pillow's with weights of
16 bits instead of 22: a pixel is at most one level off, one in 600 of a photograph's. The rest
goes through Pillow.

A cache folder holds one folder per list of photographs and length of the short side, named by a
hash of that length and of the files' paths, sizes and times: a data set that has changed has
another name, so it is never read from an old cache. Only two files of one size and time that have
changed names with each other go unseen: inodes and times of status, which would tell them, change
whenever a data set is copied. In it lie, in the order of the photographs,

    sizes.npy   (N, 2) height and width of each, from the headers: where it lies in pixels.u8
    pixels.u8   (3, height, width) bytes each, one after another
    marks.u8    a byte each: 0 to do, STORED, or LEFT in its file because it does not decode
    whole.json  written last: without it, nothing here is read

Pixels reach the disk before their marks do, so whatever was being written when the power or the
process went is written again. Images marked LEFT are read from their files, with all that
follows: a broken one is named, and stops the run or is skipped.
"""

import errno
import io
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from shutil import disk_usage

import numpy as np
import torch
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError
from simplejpeg import decode_jpeg, decode_jpeg_header
from torch.nn.functional import interpolate

from osnb.base import workbook
from osnb.datasets.images import BrokenImage

STORED, LEFT = 1, 2
CHUNK = 1024  # images between two marks: what a kill can cost
DEEPEST = (1 << 16) - 1  # level that an image may have
LARGEST = 1 << 27  # pixels that a photograph may have once it is resized
PROBES = 16  # images that are decoded again whenever a cache is opened
# how a TIFF file begins, and what any other holds that has an orientation tag
TIFF = (b"II", b"MM")
MARKS = (b"Exif", b"eXIf", b"EXIF", b"Raw profile type exif", b"XML:com.adobe.xmp")
MARKS += (b"tiff:Orientation",)
BROKEN = (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError)
REPLACE = ": replace it, or leave such images out with broken=skip"


def decode(data: bytes, name: str) -> Image.Image:
    """The image in the bytes of a file, as 8-bit RGB.

    Greyscale is repeated, CMYK converted, alpha dropped; of 16 bits the upper 8 are kept. Levels of
    32 bits count as 16.

    Args:
        data: the file's bytes, in any format that Pillow reads.
        name: what to call the image if it is broken: its path.

    Raises:
        BrokenImage: the bytes are no image, or not all of one.
    """
    try:
        return _rgb(Image.open(io.BytesIO(data)))
    except BROKEN as error:
        why = "it is no image" if isinstance(error, UnidentifiedImageError) else error
        raise BrokenImage(f"{name} does not decode ({why}){REPLACE}") from error


def content(path: str | Path) -> bytes:
    """The bytes of a file."""
    with open(path, "rb", buffering=0, opener=workbook.at_once) as file:
        return file.read() or b""


def _rgb(photo: Image.Image) -> Image.Image:
    if photo.mode == "F":  # nobody says which float is white
        raise ValueError("its levels are floats, not 8 or 16 bits")
    if photo.mode.startswith("I"):  # convert() would clip 16 bits at 255
        levels = np.asarray(photo)
        if levels.min() < 0 or levels.max() > DEEPEST:
            ends = f"from {levels.min()} to {levels.max()}"
            raise ValueError(f"its levels go {ends}, not from 0 to {DEEPEST}")
        photo = Image.fromarray((levels >> 8).astype(np.uint8))
    if "transparency" in photo.info:  # Pillow warns when a palette's alpha is dropped in one step
        photo = photo.convert("RGBA")
    return photo.convert("RGB")


def resized(data: bytes, name: str, short: int) -> np.ndarray:
    """The image in the bytes of a file, its short side brought to a length.

    Args:
        data: the file's bytes.
        name: what to call the image if it is broken: its path.
        short: length wanted, in pixels; the long side follows, rounded down. 0 leaves it as it is.

    Returns:
        (3, height, width) uint8, which may be a view of (height, width, 3).

    Raises:
        BrokenImage: the bytes are no image, or not all of one.
    """
    pixels = _decoded(data)
    photo = decode(data, name) if pixels is None else None
    before = photo.size if photo else (pixels.shape[1], pixels.shape[0])
    try:
        width, height = lengths(before, short)
    except ValueError as error:
        raise BrokenImage(f"{name} is too narrow: {error}") from None
    if photo:
        return _by_pillow(photo, short)
    if _uneven(before[0], width) and _uneven(before[1], height):
        return _by_pillow(Image.fromarray(pixels), short)
    # channels last in memory, as decoded: torch has a fast way for that
    layers = torch.from_numpy(pixels)[None].permute(0, 3, 1, 2)
    return interpolate(layers, (height, width), mode="bilinear", antialias=True)[0].numpy()


def lengths(sides: tuple[int, int], short: int) -> tuple[int, int]:
    """Both sides of a photograph, in pixels, after its short one is brought to `short`, if any.

    Raises:
        ValueError: it is so narrow that it would have more than `LARGEST` pixels.
    """
    width, height = (int((short or min(sides)) * side / min(sides)) for side in sides)
    if width * height > LARGEST:
        raise ValueError(f"{sides[0]} x {sides[1]} pixels would become {width} x {height}")
    return width, height


def _by_pillow(photo: Image.Image, short: int) -> np.ndarray:
    small = photo.resize(lengths(photo.size, short), Image.Resampling.BILINEAR)
    return np.asarray(small).transpose(2, 0, 1)


def _decoded(data: bytes) -> np.ndarray | None:
    """(height, width, 3) uint8 of a JPEG of one or three channels; None if it is anything else.

    None too for a file that simplejpeg has any complaint about, and for one so large that Pillow
    would warn: Pillow then says what it always said.
    """
    with suppress(ValueError):
        height, width, colours, _ = decode_jpeg_header(data)
        usual = height * width <= (Image.MAX_IMAGE_PIXELS or math.inf)
        if usual and colours not in ("CMYK", "YCCK"):
            return decode_jpeg(data, fastdct=False, fastupsample=False)
    return None


def _uneven(before: int, after: int) -> bool:
    """Whether a resize makes so many sums of exactly one half that rounding them is a matter.

    From p to q pixels in lowest terms, about one sum in 2 p^2 / q is: 8 in 100 at 5 to 4. Torch
    rounds many of them up that Pillow rounds down, and where it does so across and again down, a
    pixel is two levels off. Halving is exact in both.
    """
    common = math.gcd(before, after)
    p, q = before // common, after // common
    return p > q and p.bit_count() > 1 and 2 * p * p < 32 * q


def turned(data: bytes) -> bool:
    """Whether the camera's orientation tag, in EXIF, XMP or TIFF, says that an image is turned."""
    if data[:2] in TIFF or any(mark in data for mark in MARKS):  # for Pillow would decode any PNG
        with suppress(*BROKEN), Image.open(io.BytesIO(data)) as photo:
            return orientation(photo) != 1
    return False


def orientation(photo: Image.Image) -> int:
    """An image's orientation tag, of those that turn it (from 5 by a quarter), 2 to 8; else 1."""
    tag = photo.getexif().get(ExifTags.Base.Orientation)
    return tag if tag in range(2, 9) else 1


def upright(data: bytes, name: str, short: int) -> np.ndarray:
    """As `resized`, turned as the camera's orientation tag says."""
    if turned(data):
        with suppress(*BROKEN), Image.open(io.BytesIO(data)) as photo:
            return _by_pillow(_rgb(ImageOps.exif_transpose(photo)), short)
    return resized(data, name, short)  # which says what is wrong with a broken one


class Files:
    """Photographs in files, decoded whenever they are asked for.

    Args:
        root: folder that the paths start from.
        paths: N of them.
        short: length that the short side is brought to, in pixels.
        turn: whether a camera's orientation tag is obeyed.
    """

    def __init__(self, root: Path, paths: Sequence[str], short: int, *, turn: bool = False):
        self.root, self.paths, self.short, self.turn = Path(root), paths, short, turn

    def whole(self, position: int, *, own: bool = False) -> np.ndarray:
        """(3, height, width) uint8, the short side as wanted; `own`: as large as the file has it.

        Raises:
            BrokenImage: the file does not decode.
        """
        path = os.path.join(self.root, self.paths[position])
        return (upright if self.turn else resized)(content(path), path, 0 if own else self.short)


class Stored:
    """The same photographs from a cache folder that is whole.

    It is sent to another process without its pixels, which are mapped there anew.
    """

    def __init__(self, files: Files, folder: Path):
        self.files, self.folder = files, folder
        self.sizes = np.load(folder / "sizes.npy")
        self.ends = _ends(self.sizes)
        self.marks = np.fromfile(folder / "marks.u8", np.uint8)

    def __reduce__(self) -> tuple:
        return Stored, (self.files, self.folder)

    @cached_property
    def pixels(self) -> np.ndarray:
        """(B,) uint8 of all photographs, mapped."""
        return np.asarray(np.memmap(self.folder / "pixels.u8", np.uint8, mode="r"))

    def whole(self, position: int, *, own: bool = False) -> np.ndarray:
        """As that of `Files`, bit for bit, from which it is if `own`."""
        if own or self.marks[position] == LEFT:
            return self.files.whole(position, own=own)
        (height, width), end = self.sizes[position], self.ends[position]
        return self.pixels[end - 3 * height * width : end].reshape(3, height, width)


def stored(files: Files, cache: Path, *, say: Callable[[str], None] = print) -> Stored:
    """The photographs from their folder in `cache`, which is filled first if need be.

    One process fills it, by as many threads as it has cores; others that want the same one wait.
    A process that was killed is continued from its last mark.

    Args:
        files: the photographs.
        cache: folder for caches of any data sets.
        say: told the size and the free space before anything is written.

    Raises:
        ValueError: the disk is too small, or a cache's pixels are not those that its files give.
        FileNotFoundError: a photograph is not there.
    """
    import fcntl

    folder = Path(cache).resolve() / key(files)[:16]
    if not (folder / "whole.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # a process that is killed lets go
            if not (folder / "whole.json").exists():
                _fill(files, folder, say)
    cached = Stored(files, folder)
    _check(cached)
    return cached


def key(files: Files) -> str:
    """Hash of the length of the short side and of every file's path, size and time of change."""
    stats = (os.stat(files.root / path) for path in files.paths)
    lines = [
        f"{path} {stat.st_size} {stat.st_mtime_ns}"
        for path, stat in zip(files.paths, stats, strict=True)
    ]
    turned = " upright" * files.turn
    return workbook.digest(f"short side {files.short}{turned}", "\n".join(lines))


def _fill(files: Files, folder: Path, say: Callable[[str], None]) -> None:
    sizes = _measured(files, folder)
    total, file = int(_ends(sizes)[-1]), folder / "pixels.u8"
    held = file.stat().st_blocks * 512 if file.exists() else 0
    missing, free = max(0, total - held), disk_usage(folder).free
    about = f"a cache of {len(files.paths):,} photographs at {files.short} pixels in {folder}"
    if missing > free:
        raise ValueError(
            f"{about} needs {_size(missing)}, but that disk has {_size(free)} free: name a folder "
            "on a larger one, or no cache, and they are decoded whenever they are read"
        )
    say(f"{about}: {_size(missing)} to write of {_size(total)}; the disk has {_size(free)} free")
    with file.open("ab") as pixels:
        pixels.truncate(total)
    _store(files, folder, sizes)
    workbook.write_json(folder / "whole.json", {"bytes": total})


def _measured(files: Files, folder: Path) -> np.ndarray:
    """(N, 2) int64, height and width of each at its short side's length; 0 without a header."""
    from tqdm import tqdm

    path, count = folder / "sizes.npy", len(files.paths)
    if not path.exists():
        with ThreadPoolExecutor(workbook.cores()) as pool:
            headers = pool.map(partial(_header, files), range(count))
            sizes = list(tqdm(headers, total=count, unit="header", disable=None))  # in a terminal
        with workbook.writing(path) as aside:
            np.save(aside, np.array(sizes, np.int64).reshape(-1, 2))
    return np.load(path)


def _header(files: Files, position: int) -> tuple[int, int]:
    path = files.root / files.paths[position]
    try:
        with Image.open(path) as photo:
            tagged = files.turn and photo.format != "TIFF"  # whose size Pillow turns itself
            if tagged and photo.format == "PNG":  # which Pillow decodes for its tags
                tagged = turned(content(path))
            sides = photo.size[::-1] if tagged and orientation(photo) >= 5 else photo.size
            width, height = lengths(sides, files.short)
    except FileNotFoundError:
        raise
    except BROKEN:
        return 0, 0
    return height, width


def _store(files: Files, folder: Path, sizes: np.ndarray) -> None:
    """Decode what has no mark yet, in order, a chunk at a time: pixels first, then marks."""
    from tqdm import tqdm

    path, count = folder / "marks.u8", len(sizes)
    path.touch()
    marks = np.fromfile(path, np.uint8, count)
    marks = np.pad(marks, (0, count - len(marks)))
    chunks = [range(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK)]
    todo = [chunk for chunk in chunks if not marks[chunk].all()]
    with (
        ThreadPoolExecutor(workbook.cores()) as pool,
        (folder / "pixels.u8").open("r+b", buffering=0) as pixels,
        path.open("r+b", buffering=0) as marked,
        tqdm(total=sum(map(len, todo)), unit="photograph", disable=None) as line,
    ):
        one = partial(_put, files, pixels.fileno(), sizes, _ends(sizes))
        for chunk in todo:
            made = bytes(pool.map(one, chunk))
            os.fsync(pixels.fileno())
            os.pwrite(marked.fileno(), made, chunk.start)
            os.fsync(marked.fileno())
            line.update(len(chunk))


def _put(files: Files, handle: int, sizes: np.ndarray, ends: np.ndarray, position: int) -> int:
    """Decode one photograph into its place in the open file; its mark."""
    try:
        pixels = files.whole(position)
    except BrokenImage:
        return LEFT
    if pixels.shape[1:] != tuple(sizes[position]):  # the header could not be read, the rest can
        return LEFT
    if os.pwrite(handle, pixels.tobytes(), int(ends[position]) - pixels.size) < pixels.size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return STORED


def _check(made: Stored) -> None:
    """Refuse a cache that was cut short, or whose pixels another version has decoded."""
    held, total = (made.folder / "pixels.u8").stat().st_size, int(made.ends[-1])
    reason = f"holds {held:,} bytes and should hold {total:,}" if held != total else ""
    for position in np.linspace(0, len(made.sizes) - 1, PROBES).astype(int):
        if reason or made.marks[position] == LEFT:
            continue
        if not np.array_equal(made.whole(position), made.files.whole(position)):
            path = made.files.paths[position]
            reason = f"gives other pixels than {path} does now (another version decoded it)"
    if reason:
        raise ValueError(f"the cache {made.folder} {reason}: remove that folder to have it remade")


def _ends(sizes: np.ndarray) -> np.ndarray:
    """(N,) int64, byte after the last one of each photograph, from (N, 2) heights and widths."""
    return np.cumsum(3 * sizes.prod(axis=1))


def _size(count: int) -> str:
    return f"{count / 1e9:,.3f} GB"
