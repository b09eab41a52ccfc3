"""Tables 1 and 6 of `23_vaze_max_logit` in figures/: what takes a difference to print."""

import numpy as np
import pandas as pd
import pytest

from osnb.base import workbook
from osnb.evidence import tables

FOLDER = workbook.PACKAGE.parent / "figures" / "23_vaze_max_logit"


@pytest.mark.parametrize("size", ["mini", "tiny", "paper"])
@pytest.mark.parametrize("number", [1, 6])
def test_only_five_splits_take_a_difference_and_only_to_a_number_that_print_does_not_quote(
    number, size
):
    made = pd.read_csv(FOLDER / size / f"table_{number}.csv", dtype={"splits": str, "within": str})
    printed = tables.published("vaze2022", f"table{number}")
    np.testing.assert_allclose(made["paper"], printed["auroc_pct"] / 100, atol=1e-6)
    five = made["splits"].str.count(",") == 4
    like = five & printed["citation"].isna() & (size == "paper")
    assert (made["difference"].notna() == like).all()
    barred = made["ours"].notna() & ~like & (size == "paper")
    assert made.loc[barred, "within"].isin(["cited only", "fewer splits"]).all()


def test_intervals_of_the_papers_own_data_are_over_classes_only_where_there_are_many():
    made = pd.read_csv(FOLDER / "paper" / "findings.csv")
    few = made["place"] != "tinyimagenet"  # 20 known classes and 180 unknown ones
    assert made.loc[few, "over"].eq("sample").all()
    assert made.loc[~few, "over"].eq("class").all()
