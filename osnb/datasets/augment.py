"""Batched transforms, one draw per image, on whichever device the batch is on.

Every transform is `f(images, *, ..., generator) -> images` of the same shape, uint8 or float;
RandAugment and AugMix are defined on the 256 levels of uint8. The draws are made on the generator's
device, so a CPU generator, as `datasets.batches` has, gives the same ones to a batch on any device.
With it nothing here waits for a GPU, because the host knows which operation an image gets; a
generator on the GPU is waited for once per call, to learn that.

First come crop, flip and cutout, which compute no pixel, then who gets which of the `operations`
and how strong.
"""

from collections.abc import Sequence

import torch
from torch import Generator, Tensor
from torch.nn.functional import pad

from osnb.base.catalogue import Catalogue
from osnb.datasets.operations import COLOUR, SHEARS, SHIFTS, WARPS, apply, bilinear, fill, nearest

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
ALL = tuple(RANGES)
NO_GEOMETRY = tuple(op for op in ALL if op not in {"rotate", *SHIFTS})
# What leaves white lines on black. The others grey the ground or turn it white, lay a grey square
# on it, darken all (posterize), or move all out of 32 pixels (their ranges are absolute).
LINES = ("autocontrast", "equalize", "rotate", "contrast", "brightness", "sharpness", *SHEARS)
OPS = Catalogue(all=ALL, lines=LINES, no_geometry=NO_GEOMETRY)  # for a params file


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


MOVES = (none, flip, crop_flip, crop_flip_cutout, randaugment_crop_flip, crop_flip_augmix)
AUGMENT = Catalogue({move.__name__: move for move in MOVES})
