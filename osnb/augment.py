"""Batched transforms, one draw per image, on whichever device the batch is on.

Every transform is `f(images, *, generator) -> images` of the same shape and dtype, uint8 or float.
The draws are made on the generator's device, so a CPU generator gives the same crops and flips
to a batch on any device.
"""

import torch
from torch import Generator, Tensor
from torch.nn.functional import pad

from osnb.catalogue import Catalogue


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
    top, left = draw.to(images.device)
    height, width = images.shape[2:]
    windows = pad(images, [padding] * 4).unfold(2, height, 1).unfold(3, width, 1)  # a view
    return windows[torch.arange(len(images), device=images.device), :, top, left]


def flip(images: Tensor, *, generator: Generator) -> Tensor:
    """Each image mirrored left to right with probability 1/2.

    Args:
        images: (N, channels, H, W).
        generator: draws N coins.

    Returns:
        (N, channels, H, W), same dtype.
    """
    coins = torch.rand(len(images), generator=generator, device=generator.device) < 0.5
    return torch.where(coins.to(images.device)[:, None, None, None], images.flip(3), images)


def crop_flip(images: Tensor, *, generator: Generator) -> Tensor:
    """`crop` with four pixels of padding, then `flip`: the usual pair for images of 32 pixels.

    Photographs are cropped while they are read (`datasets.batches(crop='random')`): for them,
    `flip` is the rest of the paper's training transform.
    """
    return flip(crop(images, padding=4, generator=generator), generator=generator)


AUGMENT = Catalogue(none=none, flip=flip, crop_flip=crop_flip)
