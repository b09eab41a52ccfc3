"""Photographs decoded and resized by their short side: JPEG quickly, the rest by Pillow.

An ordinary JPEG goes through simplejpeg, which gives Pillow's very pixels because both use
libjpeg-turbo, and through torch's antialiased resize of bytes, which is Pillow's with weights of
16 bits instead of 22: a pixel is at most one level off, one in 600 of a photograph's.
"""

import math

import numpy as np
import torch
from PIL import Image
from simplejpeg import decode_jpeg, decode_jpeg_header
from torch.nn.functional import interpolate

from osnb.datasets.images import decode


def resized(data: bytes, name: str, short: int) -> np.ndarray:
    """The image in the bytes of a file, its short side brought to a length.

    Args:
        data: the file's bytes.
        name: what to call the image if it is broken: its path.
        short: length wanted, in pixels; the long side follows, rounded down.

    Returns:
        (3, height, width) uint8, which may be a view of (height, width, 3).

    Raises:
        BrokenImage: the bytes are no image, or not all of one.
    """
    pixels = _decoded(data)
    if pixels is None:
        return _by_pillow(decode(data, name), short)
    before = pixels.shape[1], pixels.shape[0]
    width, height = lengths(before, short)
    if _uneven(before[0], width) and _uneven(before[1], height):
        return _by_pillow(Image.fromarray(pixels), short)
    # channels last in memory, as decoded: torch has a fast way for that
    layers = torch.from_numpy(pixels)[None].permute(0, 3, 1, 2)
    return interpolate(layers, (height, width), mode="bilinear", antialias=True)[0].numpy()


def lengths(sides: tuple[int, int], short: int) -> tuple[int, int]:
    """Both sides of a photograph, in pixels, after its short one is brought to `short`."""
    width, height = (int(short * side / min(sides)) for side in sides)
    return width, height


def _by_pillow(photo: Image.Image, short: int) -> np.ndarray:
    made = photo.resize(lengths(photo.size, short), Image.Resampling.BILINEAR)
    return np.asarray(made).transpose(2, 0, 1)


def _decoded(data: bytes) -> np.ndarray | None:
    """(height, width, 3) uint8 of a JPEG of one or three channels; None if it is anything else.

    None too for a file that simplejpeg has any complaint about, and for one so large that Pillow
    would warn: Pillow then says what it always said.
    """
    try:
        height, width, colours, _ = decode_jpeg_header(data)
        if colours in ("CMYK", "YCCK") or height * width > (Image.MAX_IMAGE_PIXELS or math.inf):
            return None
        return decode_jpeg(data, fastdct=False, fastupsample=False)
    except ValueError:
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
