"""Methods x tasks: every number stands in its cell, and gaps stay gaps."""

import numpy as np
import pandas as pd
import pytest

from osnb import plots

TASKS = [("first", "wrong"), ("first", "unknown"), ("second benchmark", "near")]
ROWS = [(m, *task) for m in ("MSP", "MLS", "a method with a long name") for task in TASKS]
TABLE = pd.DataFrame(ROWS, columns=["printed", "benchmark", "task"])
TABLE["value"] = [0.9, 0.1, 0.5, 0.8, np.nan, 0.6, 0.7, 0.3, 0.55]


def draw(table=TABLE, **settings):
    return plots.method_tasks(table, measure="AUROC", **settings)


FIGURES = {
    "cells": draw,
    "gaps alone": lambda: draw(TABLE.assign(value=np.nan)),
    "one number": lambda: draw(TABLE.assign(value=0.5), lower_is_better=True),
}


def framed(figure):
    boxes = [p for p in figure.axes[0].patches if not p.get_fill()]
    return {(int(p.get_x()), int(p.get_y())) for p in boxes}


def test_every_number_stands_in_the_cell_of_its_method_and_task_and_gaps_are_hatched():
    ax = draw().axes[0]
    texts = {
        tuple(map(int, t.get_position())): t.get_text() for t in ax.texts if t.get_position()[1] > 0
    }
    assert texts == {(i % 3, i // 3): f"{v:.3f}" for i, v in enumerate(TABLE["value"]) if v == v}
    assert [t.get_text() for t in ax.get_yticklabels()] == [*TABLE["printed"].unique()]
    assert [t.get_text() for t in ax.get_xticklabels()] == [task for _, task in TASKS]
    assert ax.patch.get_hatch()
    assert np.ma.getmaskarray(ax.collections[0].get_array()).ravel().tolist() == [
        *TABLE["value"].isna()
    ]


def test_a_cell_that_comes_twice_is_refused():
    with pytest.raises(ValueError, match="MSP, first, wrong has several"):
        draw(pd.concat([TABLE, TABLE.head(1)]))


def test_the_best_of_each_task_is_framed_by_either_order():
    assert framed(draw()) == {(0, 0), (1, 2), (2, 1)}
    assert framed(draw(lower_is_better=True)) == {(0, 2), (1, 0), (2, 0)}
