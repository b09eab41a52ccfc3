"""Batched transforms, one draw per image, on whichever device the batch is on.

Every transform is `f(images, *, ..., generator) -> images` of the same shape, uint8 or float;
RandAugment and AugMix are defined on the 256 levels of uint8. The draws are made on the generator's
device, so a CPU generator, as `datasets.batches` has, gives the same ones to a batch on any device.
With it nothing here waits for a GPU, because the host knows which operation an image gets; a
generator on the GPU is waited for once per call, to learn that.

First come crop, flip and cutout, which compute no pixel, then who gets which operation and how
strong, then Pillow's operations on a batch, each image with one of its own.

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
from torch import Generator, Tensor
from torch.nn.functional import grid_sample, pad

from osnb.base.catalogue import Catalogue

# CIFAR's mean colour, with which both cutouts of Vaze et al. 2022 fill, and its grey
COLOUR = {3: (125, 123, 114), 1: (123,)}
# value at m = 0 and at m = 30, as released with Vaze et al. 2022; pixels are absolute
RANGES = Catalogue(
    autocontrast=(0, 1),
    equalize=(0, 1),
    invert=(0, 1),
    rotate=(0, 30),
    posterize=(0, 4),
    solarize=(0, 256),
    solarize_add=(0, 110),
    color=(0.1, 1.9),
    contrast=(0.1, 1.9),
    brightness=(0.1, 1.9),
    sharpness=(0.1, 1.9),
    shear_x=(0, 0.3),
    shear_y=(0, 0.3),
    cutout=(0, 40),
    translate_x=(0, 100),
    translate_y=(0, 100),
)


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


def check(images: Tensor) -> None:
    """Raise ValueError unless the images are uint8 of 1 or 3 channels."""
    if images.dtype != torch.uint8 or images.shape[1] not in COLOUR:
        raise ValueError(f"need uint8 (N, 1 or 3, H, W); got {images.dtype} {(*images.shape,)}")


def randaugment(
    images: Tensor, *, n: int, m: float, ops: Sequence[str], generator: Generator
) -> Tensor:
    """RandAugment (Cubuk et al. 2020) with the operations and ranges of Vaze et al. 2022.

    Each image gets n operations, drawn with replacement and always carried out, at

        value = m / 30 (max - min) + min

    with a random sign for rotation, shear and translation.

    Args:
        images: (N, 1 or 3, H, W) uint8.
        n: operations per image, >= 0.
        m: strength, in [0, 30]. Posterize and solarize change most at 0; color, contrast,
            brightness and sharpness change nothing at 15.
        ops: names out of `ALL`; digits take `NO_GEOMETRY`, drawings `LINES`.
        generator: draws n N operations, signs and places.

    Returns:
        (N, 1 or 3, H, W) uint8.

    Raises:
        ValueError: the images are not uint8 of 1 or 3 channels, or m is out of range.
        KeyError: an operation is none of `ALL`.
    """
    check(images)
    if not 0 <= m <= 30:
        raise ValueError(f"need m in [0, 30]; got {m}")
    values = [m / 30 * (high - low) + low for low, high in (RANGES[op] for op in ops)]
    on, size = {"generator": generator, "device": generator.device}, (n, len(images))
    kinds, coins = torch.randint(len(ops), size, **on), torch.rand(size, **on) > 0.5
    places = torch.rand(n, 2, len(images), dtype=torch.float64, **on)
    value = _signed(_of(kinds, values), kinds, coins, ops)
    drawn = torch.cat([value[:, None], places], dim=1)[..., None, None]
    for step, kind in enumerate(kinds.tolist()):
        images = apply(images, [ops[k] for k in kind], drawn[step], resample=nearest)
    return images


def randaugment_crop_flip(
    images: Tensor, *, n: int, m: float, ops: Sequence[str], generator: Generator
) -> Tensor:
    """`randaugment`, then `crop_flip`: the order of Vaze et al. 2022."""
    images = randaugment(images, n=n, m=m, ops=ops, generator=generator)
    return crop_flip(images, generator=generator)


def augmix(images: Tensor, *, severity: float, generator: Generator) -> Tensor:
    """AugMix (Hendrycks et al. 2020): each image mixed with three chains of operations.

        mixed = (1 - m) x + m sum_i w_i chain_i(x),  m ~ Beta(1, 1),  w ~ Dirichlet(1, 1, 1)

    A chain is one to three of nine operations, drawn with replacement, each with a level of its
    own, uniform in [0.1, severity], and a random sign for rotation, shear and translation.

    Args:
        images: (N, 1 or 3, H, W) uint8.
        severity: in [0.1, 10]; Kim et al. 2021 take 3 for images of 32 pixels, 1 for photographs.
        generator: draws 9 N operations, signs and levels, 3 N depths and weights w, N shares m.

    Returns:
        (N, 1 or 3, H, W) float32, in levels from 0 to 255: a mixture is not rounded. To normalise
        before or after mixing is the same, since all weights add up to one.

    Raises:
        ValueError: the images are not uint8 of 1 or 3 channels, or severity is out of range.
    """
    check(images)
    if not 0.1 <= severity <= 10:
        raise ValueError(f"need severity in [0.1, 10]; got {severity}")
    ranges = _strengths(*images.shape[2:])
    ops, count = list(ranges), len(images)
    on, size = {"generator": generator, "device": generator.device}, (3, 3 * count)
    kinds, coins = torch.randint(len(ops), size, **on), torch.rand(size, **on) > 0.5
    levels = torch.rand(size, dtype=torch.float64, **on) * (severity - 0.1) + 0.1
    depths = torch.randint(1, 4, size[1:], **on).tolist()
    weights = torch.empty(3, count, device=generator.device).exponential_(generator=generator)
    m = torch.rand(count, **on)

    low, high, whole = (_of(kinds, column) for column in zip(*ranges.values(), strict=True))
    value = levels * high / 10
    value = low + torch.where(whole > 0, value.trunc(), value)
    drawn = _signed(value, kinds, coins, ops)[:, None, :, None, None]
    chains = images.repeat(3, 1, 1, 1)
    for step, kind in enumerate(kinds.tolist()):
        names = [ops[k] if step < depth else None for k, depth in zip(kind, depths, strict=True)]
        chains = apply(chains, names, drawn[step], resample=bilinear)
    shares = torch.cat([1 - m[None], m * weights / weights.sum(0)])[..., None, None, None]
    shares = shares.to(images.device, non_blocking=True)
    mixed = images * shares[0]
    for share, made in zip(shares[1:], chains.view(3, *images.shape), strict=True):
        mixed += share * made
    return mixed


def crop_flip_augmix(images: Tensor, *, severity: float, generator: Generator) -> Tensor:
    """`crop_flip`, then `augmix`: an augmented view of Kim et al. 2021; float32, in levels."""
    images = crop_flip(images, generator=generator)
    return augmix(images, severity=severity, generator=generator)


def _strengths(height: int, width: int) -> dict[str, tuple[float, float, bool]]:
    """Value at level 0, what level 10 adds, and whether that is cut to whole steps."""
    return {
        "autocontrast": (0, 0, True),
        "equalize": (0, 0, True),
        "posterize": (4, -4, True),
        "rotate": (0, 30, True),
        "solarize": (256, -256, True),
        "shear_x": (0, 0.3, False),
        "shear_y": (0, 0.3, False),
        "translate_x": (0, width / 3, True),
        "translate_y": (0, height / 3, True),
    }


def _of(kinds: Tensor, values: Sequence[float]) -> Tensor:
    """The value of each kind, float64."""
    return torch.tensor(values, dtype=torch.float64).to(kinds.device, non_blocking=True)[kinds]


def _signed(value: Tensor, kinds: Tensor, coins: Tensor, ops: Sequence[str]) -> Tensor:
    """The value, for operations with a direction turned round where the coin says so."""
    directed = _of(kinds, [op in SHIFTS | WARPS for op in ops])
    return torch.where(coins & (directed > 0), -value, value)


# Pillow's operations.


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
ALL = tuple(RANGES)
NO_GEOMETRY = tuple(op for op in ALL if op not in {"rotate", *SHIFTS})
# What leaves white lines on black. The others grey the ground or turn it white, lay a grey square
# on it, darken all (posterize), or move all out of 32 pixels (their ranges are absolute).
LINES = ("autocontrast", "equalize", "rotate", "contrast", "brightness", "sharpness", *SHEARS)
OPS = Catalogue(all=ALL, lines=LINES, no_geometry=NO_GEOMETRY)  # for a params file
MOVES = (none, flip, crop_flip, crop_flip_cutout, randaugment_crop_flip, crop_flip_augmix)
AUGMENT = Catalogue({move.__name__: move for move in MOVES})
