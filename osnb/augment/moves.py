"""Crop, flip and cutout: what moves or hides pixels and computes none."""

from collections.abc import Sequence

import torch
from torch import Generator, Tensor
from torch.nn.functional import pad

# CIFAR's mean colour, with which both cutouts of Vaze et al. 2022 fill, and its grey
COLOUR = {3: (125, 123, 114), 1: (123,)}


def none(images: Tensor, *, generator: Generator) -> Tensor:  # noqa: ARG001 (one signature)
    """The images as they are."""
    return images


def crop(images: Tensor, *, padding: int, generator: Generator) -> Tensor:
    """Each image moved by up to `padding` pixels either way, what enters being black.

    This is a window of the image's own size at a uniform place in the image padded with zeros.

    Args:
        images: (N, channels, H, W).
        padding: pixels added to each side, >= 0.
        generator: draws N places.

    Returns:
        (N, channels, H, W), same dtype.
    """
    draw = torch.randint(
        2 * padding + 1, (2, len(images)), generator=generator, device=generator.device
    )
    top, left = draw.to(images.device, non_blocking=True)
    padded = pad(images, [padding] * 4).contiguous()
    steps, size = padded.stride(), images.shape[1:]
    reach = sum((length - 1) * step for length, step in zip(size, steps[1:], strict=True))
    # a view: window k begins at element k, wherever that lies
    windows = padded.as_strided((max(padded.numel() - reach, 0), *size), (1, *steps[1:]))
    corner = torch.arange(len(images), device=images.device) * steps[0] + top * steps[2] + left
    return windows.index_select(0, corner)


def flip(images: Tensor, *, generator: Generator) -> Tensor:
    """Each image mirrored left to right with probability 1/2.

    Args:
        images: (N, channels, H, W).
        generator: draws N coins.

    Returns:
        (N, channels, H, W), same dtype.
    """
    coins = torch.rand(len(images), generator=generator, device=generator.device) < 0.5
    row = torch.arange(len(images), device=images.device)
    row += coins.to(images.device, non_blocking=True) * len(images)
    return torch.cat([images, images.flip(3)]).index_select(0, row)


def crop_flip(images: Tensor, *, generator: Generator) -> Tensor:
    """`crop` with four pixels of padding, then `flip`: the usual pair for images of 32 pixels.

    Photographs are cropped while they are read (`datasets.batches(crop='random')`): for them,
    `flip` is the rest of the paper's training transform.
    """
    return flip(crop(images, padding=4, generator=generator), generator=generator)


def cutout(images: Tensor, *, length: int, colour: Sequence[float], generator: Generator) -> Tensor:
    """A square of each image hidden, after DeVries & Taylor 2017; the border may cut it.

    Its centre is uniform: among the W x H pixels for odd lengths, among the (W + 1) x (H + 1)
    corners of pixels for even ones, so that both sides are alike (as released for Vaze et al.
    2022; the original puts the centre of an even square on a pixel).

    Args:
        images: (N, channels, H, W).
        length: side of the square, in pixels, >= 0.
        colour: what hides it, one value per channel, in the unit of the images.
        generator: draws N centres.

    Returns:
        (N, channels, H, W), same dtype.
    """
    height, width = images.shape[2:]
    draw = torch.rand(
        (2, len(images), 1, 1), generator=generator, device=generator.device, dtype=torch.float64
    )
    x, y = draw.to(images.device, non_blocking=True)
    even = 1 - length % 2
    left, top = (
        (place * (side + even)).floor() - length // 2 for place, side in ((x, width), (y, height))
    )
    return fill(images, left, top, left + length - 1, top + length - 1, colour)


def crop_flip_cutout(images: Tensor, *, generator: Generator) -> Tensor:
    """`crop_flip`, then `cutout` of half the side in `COLOUR`, as in Vaze et al. 2022; uint8."""
    check(images)
    images = crop_flip(images, generator=generator)
    length, colour = images.shape[3] // 2, COLOUR[images.shape[1]]
    return cutout(images, length=length, colour=colour, generator=generator)


def fill(
    images: Tensor, left: Tensor, top: Tensor, right: Tensor, bottom: Tensor, colour: Sequence
) -> Tensor:
    """A rectangle of each image in one colour.

    Args:
        images: (N, channels, H, W).
        left: (N, 1, 1) first column; `right` is the last one, itself hidden; as `top` and `bottom`.
        colour: one value per channel.
    """
    height, width = images.shape[2:]
    rows = torch.arange(height, device=images.device)[:, None]
    columns = torch.arange(width, device=images.device)
    across, down = (columns >= left) & (columns <= right), (rows >= top) & (rows <= bottom)
    hidden = (across & down)[:, None].to(images.dtype)
    ink = torch.tensor(colour, dtype=images.dtype).to(images.device, non_blocking=True)
    # on a CPU two products are nine times as fast as one `where`
    return images * (1 - hidden) + ink[:, None, None] * hidden


def check(images: Tensor) -> None:
    """Raise ValueError unless the images are uint8 of 1 or 3 channels."""
    if images.dtype != torch.uint8 or images.shape[1] not in COLOUR:
        raise ValueError(f"need uint8 (N, 1 or 3, H, W); got {images.dtype} {(*images.shape,)}")
