"""Batched transforms, one draw per image, on whichever device the batch is on.

Every transform is `f(images, *, ..., generator) -> images` of the same shape, uint8 or float;
RandAugment and AugMix are defined on the 256 levels of uint8. The draws are made on the generator's
device, so a CPU generator, as `datasets.batches` has, gives the same ones to a batch on any device.
With it nothing here waits for a GPU, because the host knows which operation an image gets; a
generator on the GPU is waited for once per call, to learn that.

- `moves`: crop, flip, cutout.
- `operations`: Pillow's operations, a different one for every image of a batch.
- `policies`: who gets which operation and how strong: RandAugment, AugMix.
"""

from collections.abc import Callable

from torch import Tensor

from osnb.augment.moves import crop, crop_flip, crop_flip_cutout, cutout, flip, none
from osnb.augment.policies import (
    ALL,
    NO_GEOMETRY,
    OPS,
    augmix,
    crop_flip_augmix,
    randaugment,
    randaugment_crop_flip,
)
from osnb.catalogue import Catalogue

__all__ = [
    "ALL",
    "AUGMENT",
    "NO_GEOMETRY",
    "OPS",
    "augmix",
    "crop",
    "crop_flip",
    "cutout",
    "flip",
    "none",
    "randaugment",
]


class Transforms(Catalogue):
    """A catalogue whose functions get their generator with every call."""

    def bind(self, name: str, **settings) -> Callable[..., Tensor]:
        """As `Catalogue.bind`, for settings such as n, m, ops and severity."""
        return super().bind(name, generator=None, **settings)


AUGMENT = Transforms(
    none=none,
    flip=flip,
    crop_flip=crop_flip,
    crop_flip_cutout=crop_flip_cutout,
    randaugment_crop_flip=randaugment_crop_flip,
    crop_flip_augmix=crop_flip_augmix,
)
