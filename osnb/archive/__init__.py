"""Finished runs as one file, for an archive with a DOI: written with checksums, read with care."""

from osnb.archive.packing import pack
from osnb.archive.unpacking import unpack

__all__ = ["pack", "unpack"]
