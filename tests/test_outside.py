"""Negatives that a protocol borrows from another one."""

import pandas as pd
import pytest

from osnb import protocols
from osnb.base.labels import NEGATIVE

ROWS = pd.DataFrame(
    {"wnid": ["a", "b"], "name": ["A", "B"], "role": ["known", "unknown"], "label": [0, -2]}
)
ROWS.attrs = {"protocol": "one", "restricted": ""}


def other(*wnids, role="negative"):
    table = pd.DataFrame({"wnid": wnids, "role": role, "label": 7, "group": "external"})
    table.attrs = {"protocol": "two", "restricted": ""}
    return table


def test_new_negatives_stand_below_and_all_else_stays():
    table = protocols.with_negatives(ROWS, other("c", "b", "d"))
    pd.testing.assert_frame_equal(table[:2], ROWS)
    assert table[2:]["wnid"].tolist() == ["c", "d"]
    assert table[2:]["label"].tolist() == [NEGATIVE] * 2
    assert table[2:]["name"].tolist() == ["", ""]
    assert list(table) == list(ROWS)
    assert table.attrs == ROWS.attrs


@pytest.mark.parametrize(
    ("given", "reason"),
    [(other("b"), "two; it has 1, none"), (other("c", role="known"), "two; it has 0, none")],
)
def test_a_protocol_without_new_negatives_is_refused(given, reason):
    with pytest.raises(ValueError, match=reason):
        protocols.with_negatives(ROWS, given)
