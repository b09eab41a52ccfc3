"""Open-set recognition, reproducibly: the rooms of the workbook.

Import the room, then call what lives there, so that a call says where it lives:
``from osnb import metrics`` and ``metrics.oscr(...)``. Nothing is imported here, which
keeps ``import osnb`` free and lets a results notebook start without torch.
"""

__version__ = "0.1.0"
