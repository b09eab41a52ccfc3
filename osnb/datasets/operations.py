"""Pillow's operations on a batch, each image with an operation and a strength of its own.

What a point operation makes of a pixel depends on its level alone, once the image's own statistics
are known: 256 numbers per image and channel say it all. So eight operations are written down as
*tables*, and one look-up carries out whichever mixture of them a batch drew. Five more are
*matrices*, which say where a pixel comes from, and share a gather in the same way; the last three
make the whole image themselves.

An operation is `f(images, drawn)`: images (n, 1 or 3, H, W) uint8, those that drew it, and drawn
(1 or 3, n, 1, 1) float64: its value, and for cutout a place. Tables are (n, 1 or channels, 256),
matrices (n, 6, 1, 1). Arithmetic and rounding are Pillow's; the tests hold both side by side.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

# CIFAR's mean colour, with which both cutouts of Vaze et al. 2022 fill, and its grey
COLOUR = {3: (125, 123, 114), 1: (123,)}


def apply(
    images: Tensor, names: Sequence[str | None], drawn: Tensor, *, resample: Callable
) -> Tensor:
    """One operation on each image.

    Args:
        images: (N, 1 or 3, H, W) uint8.
        names: N of `TABLES`, `SHIFTS`, `WARPS` and `WHOLE`, known to the host; None does nothing.
        drawn: (1 or 3, N, 1, 1) float64: value, and a place x, y in [0, 1) if there is a cutout.
        resample: `nearest` or `bilinear`, for `WARPS`; `SHIFTS` take the nearest pixel, which is
            the same for shifts by whole pixels.

    Returns:
        (N, 1 or 3, H, W) uint8.
    """
    families = (TABLES, look_up), (SHIFTS, nearest), (WARPS, resample), (WHOLE, whole)
    rows = defaultdict(list)
    for row, name in enumerate(names):
        rows[name].append(row)
    drawn = drawn.to(images.device, non_blocking=True)
    order, pieces = [], [images[:0]]
    for makers, finish in families:
        here = {name: rows[name] for name in makers if name in rows}
        if here:
            sizes = [len(where) for where in here.values()]
            chosen = [row for where in here.values() for row in where]
            index = torch.tensor(chosen).to(images.device, non_blocking=True)
            picked, strengths = images.index_select(0, index), drawn.index_select(1, index)
            parts = zip(here, picked.split(sizes), strengths.split(sizes, dim=1), strict=True)
            pieces.append(finish(picked, [makers[name](*part) for name, *part in parts]))
            order += chosen
    back = torch.tensor(order, dtype=torch.long).argsort()
    return torch.cat(pieces).index_select(0, back.to(images.device, non_blocking=True))


# Tables: eight operations on levels.


def look_up(images: Tensor, tables: Sequence[Tensor]) -> Tensor:
    """Each pixel replaced by its entry in its image's and channel's table."""
    channels = images.shape[1]
    table = torch.cat([part.to(torch.uint8).expand(-1, channels, -1) for part in tables])
    return table.gather(2, images.flatten(2).long()).view_as(images)


def autocontrast(images: Tensor, _drawn: Tensor) -> Tensor:
    """Each channel stretched so that its extremes become 0 and 255."""
    levels = _levels(images)
    low, high = (extreme.double() for extreme in images.flatten(2).aminmax(dim=2, keepdim=True))
    scale = torch.full_like(low, 255) / (high - low)  # not 255 / x, which torch rounds twice
    stretched = (levels * scale + -low * scale).clamp(0, 255)
    return torch.where(high > low, stretched, levels)


def equalize(images: Tensor, _drawn: Tensor) -> Tensor:
    """Each channel's levels spread so that its histogram is about flat."""
    flat = images.flatten(2).long()
    counts = flat.new_zeros(*flat.shape[:2], 256).scatter_add_(2, flat, torch.ones_like(flat))
    last = counts.gather(2, flat.amax(dim=2, keepdim=True))
    step = (flat.shape[2] - last) // 255
    spread = (step // 2 + counts.cumsum(2) - counts) // step.clamp(min=1)
    return torch.where(step > 0, spread.clamp(max=255).double(), _levels(images))


def invert(images: Tensor, _drawn: Tensor) -> Tensor:
    """255 minus the level."""
    return (255 - _levels(images)).expand(len(images), 1, -1)


def posterize(images: Tensor, drawn: Tensor) -> Tensor:
    """The upper bits kept: as many as the value's whole part, at least one."""
    step = 2 ** (8 - drawn[0].trunc().clamp(1, 8))
    return _levels(images) // step * step


def solarize(images: Tensor, drawn: Tensor) -> Tensor:
    """Levels from the value on inverted."""
    levels = _levels(images)
    return torch.where(levels < drawn[0], levels, 255 - levels)


def solarize_add(images: Tensor, drawn: Tensor) -> Tensor:
    """The value added, then levels from 128 on inverted."""
    raised = (_levels(images) + drawn[0]).clamp(0, 255).trunc()
    return torch.where(raised < 128, raised, 255 - raised)


def brightness(images: Tensor, drawn: Tensor) -> Tensor:
    """Away from black."""
    levels = _levels(images)
    return blend(torch.zeros_like(levels), levels, drawn[0])


def contrast(images: Tensor, drawn: Tensor) -> Tensor:
    """Away from the image's mean grey."""
    pixels = images.shape[2] * images.shape[3]
    mean = (2 * grey(images).flatten(1).sum(1) + pixels) // (2 * pixels)
    return blend(mean[:, None, None], _levels(images), drawn[0])


def _levels(images: Tensor) -> Tensor:
    return torch.arange(256, dtype=torch.float64, device=images.device)


def grey(images: Tensor) -> Tensor:
    """(n, H, W) int: Pillow's luma, ITU-R 601-2; a grey image's one channel."""
    if images.shape[1] == 1:
        return images[:, 0].int()
    red, green, blue = images.int().unbind(1)
    return (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16


def blend(base: Tensor, images: Tensor, factor: Tensor) -> Tensor:
    """base + factor (images - base) in float32, then cut off to [0, 255], as `Image.blend`."""
    base = base.float()
    return (base + factor.float() * (images.float() - base)).clamp(0, 255)


# Matrices: five operations on places. (x, y) comes from (a x + b y + c, d x + e y + f).


def nearest(images: Tensor, matrices: Sequence[Tensor]) -> Tensor:
    """Each pixel from the nearest one, in Pillow's 16.16 fixed-point steps; black from outside."""
    a, b, c, d, e, f = torch.cat(matrices).unbind(1)
    height, width = images.shape[2:]
    columns = torch.arange(width, device=images.device)
    rows = torch.arange(height, device=images.device)[:, None]
    x = (_fixed(c + a * 0.5 + b * 0.5) + _fixed(a) * columns + _fixed(b) * rows) >> 16
    y = (_fixed(f + d * 0.5 + e * 0.5) + _fixed(d) * columns + _fixed(e) * rows) >> 16
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    source = torch.where(inside, y * width + x, 0).flatten(1)[:, None]
    moved = images.flatten(2).gather(2, source.expand(-1, images.shape[1], -1))
    return moved.view_as(images).mul_(inside[:, None])


def bilinear(images: Tensor, matrices: Sequence[Tensor]) -> Tensor:
    """Each pixel from the four around its place, truncated; black from outside the image."""
    a, b, c, d, e, f = torch.cat(matrices).unbind(1)
    height, width = images.shape[2:]
    columns = torch.arange(width, device=images.device) + 0.5
    rows = torch.arange(height, device=images.device)[:, None] + 0.5
    x, y = a * columns + b * rows + c, d * columns + e * rows + f
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    grid = torch.stack([x * (2 / width), y * (2 / height)], dim=3).sub_(1)
    moved = grid_sample(images.double(), grid, padding_mode="border", align_corners=False)
    # weights that should add up to a whole level may fall short of it in the last digits
    return moved.add_(1e-9).to(torch.uint8).mul_(inside[:, None])


def rotate(images: Tensor, drawn: Tensor) -> Tensor:
    """Counterclockwise about the middle; the value in degrees."""
    height, width = images.shape[2:]
    angle = -drawn[0].deg2rad()
    cos, sin = angle.cos(), angle.sin()
    c = cos * (-width / 2) + sin * (-height / 2) + width / 2
    f = -sin * (-width / 2) + cos * (-height / 2) + height / 2
    return torch.stack([cos, sin, c, -sin, cos, f], dim=1)


def _entry(_images: Tensor, drawn: Tensor, *, entry: int) -> Tensor:
    """The identity but for one entry, which is the value: in pixels, or pixels per pixel."""
    zero, one = torch.zeros_like(drawn[0]), torch.ones_like(drawn[0])
    entries = [one, zero, zero, zero, one, zero]
    entries[entry] = drawn[0]
    return torch.stack(entries, dim=1)


def _fixed(values: Tensor) -> Tensor:
    return (values * 65536 + 0.5).floor().long()


# The rest make the image.


def whole(_images: Tensor, made: Sequence[Tensor]) -> Tensor:
    """The images that the operations made."""
    return torch.cat(made)


def color(images: Tensor, drawn: Tensor) -> Tensor:
    """Away from the grey image; a grey image stays as it is."""
    return blend(grey(images)[:, None], images, drawn[0][..., None]).to(torch.uint8)


def sharpness(images: Tensor, drawn: Tensor) -> Tensor:
    """Away from the image smoothed by a 3 x 3 window, 5 in the middle, 1 around; edges stay."""
    pixels = images.float()
    tall = pixels[..., :-2, :] + pixels[..., 1:-1, :] + pixels[..., 2:, :]
    window = tall[..., :-2] + tall[..., 1:-1] + tall[..., 2:] + 4 * pixels[..., 1:-1, 1:-1]
    smooth = pixels.clone()
    smooth[..., 1:-1, 1:-1] = (window / 13).round()  # of an integer over 13: never a tie
    return blend(smooth, pixels, drawn[0][..., None]).to(torch.uint8)


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


def cutout_abs(images: Tensor, drawn: Tensor) -> Tensor:
    """A square of value + 1 pixels hidden, cut by the border; its place as in the released code."""
    value, *place = drawn
    box = []
    for draw, side in zip(place, images.shape[:1:-1], strict=True):
        centre = side - (side - 1) * draw  # in (1, side]
        first = (centre - value / 2).clamp(min=0).trunc()
        box.append((first, (first + value).clamp(max=side).trunc()))
    (left, right), (top, bottom) = box
    return fill(images, left, top, right, bottom, COLOUR[images.shape[1]])


LEVELS = (autocontrast, equalize, invert, posterize, solarize, solarize_add, contrast, brightness)
TABLES = {operation.__name__: operation for operation in LEVELS}
SHIFTS = {"translate_x": partial(_entry, entry=2), "translate_y": partial(_entry, entry=5)}
SHEARS = {"shear_x": partial(_entry, entry=1), "shear_y": partial(_entry, entry=3)}
WARPS = {"rotate": rotate, **SHEARS}
WHOLE = {None: lambda images, _: images, "color": color, "sharpness": sharpness}
WHOLE["cutout"] = cutout_abs
