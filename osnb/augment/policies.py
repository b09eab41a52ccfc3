"""RandAugment and AugMix: which image gets which operations, and how strong."""

from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from osnb.augment.moves import check, crop_flip
from osnb.augment.operations import SHIFTS, WARPS, apply, bilinear, nearest
from osnb.catalogue import Catalogue

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
OPS = Catalogue(all=ALL, no_geometry=NO_GEOMETRY)  # for a params file


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
        ops: names out of `ALL`; digits take `NO_GEOMETRY`.
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
