"""The two labels that are no class, and the three roles of a sample in words."""

from collections.abc import Iterable

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


def written(words: Iterable[str], what: str) -> None:
    """Refuse names that no file and no terminal can hold, as bytes of another encoding give them.

    Args:
        words: names of classes or samples.
        what: they are, for the error.

    Raises:
        ValueError: one has a lone surrogate in it.
    """
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{what} needs names that UTF-8 can write; got {word!r}") from None
