"""The two labels that are no class, and the three roles of a sample in words."""

import numpy as np

NEGATIVE = -1
UNKNOWN = -2

ROLES = ("known", "negative", "unknown")


def roles(labels: np.ndarray) -> np.ndarray:
    """The role of each label in words: known (>= 0), negative (-1) or unknown (-2).

    Args:
        labels: (N,) integers.

    Returns:
        (N,) of str.

    Raises:
        ValueError: a label is below -2.
    """
    labels = np.asarray(labels)
    if len(labels) and labels.min() < UNKNOWN:
        raise ValueError(f"labels are >= 0, {NEGATIVE} or {UNKNOWN}; got {labels.min()}")
    return np.array(ROLES)[np.maximum(-labels, 0)]
