"""Negatives for a protocol that has none."""

import pandas as pd

from osnb.labels import NEGATIVE


def with_negatives(classes: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """A protocol's classes, and below them another one's negatives that it does not have.

    So a method that is trained on images from outside, or settings that are chosen on them, can
    be had on a benchmark that knows no such images. Whether they resemble its unknown classes is
    not asked.

    Args:
        classes: what a protocol gave.
        other: what another one gave; only its negatives are taken.

    Returns:
        As `classes`; columns that only `other` has are left out, those that it lacks are "".

    Raises:
        ValueError: `other` has no negatives, or none that `classes` does not have.
    """
    negative = other[other["role"] == "negative"]
    new = negative[~negative["wnid"].isin(classes["wnid"])].assign(label=NEGATIVE)
    if new.empty:
        named = other.attrs.get("protocol", "the other protocol")
        raise ValueError(f"need negatives from {named}; it has {len(negative)}, none of them new")
    table = pd.concat(
        [classes, new.reindex(columns=classes.columns, fill_value="")], ignore_index=True
    )
    table.attrs = dict(classes.attrs)
    return table
