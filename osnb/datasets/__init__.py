"""Rows to batches: readers of data on disk, sets that ship with the package, and `batches`."""

from osnb.datasets.epochs import Batches, batches
from osnb.datasets.images import BrokenImage, Images, joined, like, resident
from osnb.datasets.ood import counted, some
from osnb.datasets.readers import READERS
from osnb.datasets.small import digit_classes

__all__ = [
    "READERS",
    "Batches",
    "BrokenImage",
    "Images",
    "batches",
    "counted",
    "digit_classes",
    "joined",
    "like",
    "resident",
    "some",
]
