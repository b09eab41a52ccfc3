"""Methods x tasks: every number stands in its cell, and gaps stay gaps."""

import itertools

import numpy as np
import pandas as pd
import pytest
from test_plots import svg, visible_texts

from osnb import plots

TASKS = [("first", "wrong"), ("first", "unknown"), ("second benchmark", "near")]
ROWS = [(m, *task) for m in ("MSP", "MLS", "a method with a long name") for task in TASKS]
TABLE = pd.DataFrame(ROWS, columns=["method", "benchmark", "task"])
TABLE["value"] = [0.9, 0.1, 0.5, 0.8, np.nan, 0.6, 0.7, 0.3, 0.55]


def draw(table=TABLE, **settings):
    return plots.method_tasks(table, measure="AUROC", **settings)


def numbers(figure):
    """The text of each cell by (column, row)."""
    texts = [t for t in figure.axes[0].texts if t.get_position()[1] >= 0]
    return {t.get_position(): t.get_text() for t in texts}


def framed(figure):
    boxes = [p for p in figure.axes[0].patches if not p.get_fill()]
    return {(round(p.get_x()), round(p.get_y())) for p in boxes}


def test_every_number_stands_in_the_cell_of_its_method_and_task():
    figure = draw()
    wanted = {(i % 3, i // 3): f"{v:.3f}" for i, v in enumerate(TABLE["value"]) if v == v}
    assert numbers(figure) == wanted
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == [*TABLE["method"].unique()]
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()] == [task for _, task in TASKS]


def test_a_cell_without_a_number_is_hatched_and_none_other():
    hatched = [p.get_xy() for p in draw().axes[0].patches if p.get_hatch()]
    assert hatched == [(0.5, 0.5)]


def test_the_best_of_each_task_is_framed_by_either_order():
    assert framed(draw()) == {(0, 0), (1, 2), (2, 1)}
    assert framed(draw(lower_is_better=True)) == {(0, 2), (1, 0), (2, 0)}


def test_no_text_is_clipped_or_lies_on_another_and_two_drawings_are_the_same():
    figure = draw()
    width, height = figure.bbox.size
    texts = visible_texts(figure)
    for text, box in texts:
        assert 0 <= box.x0 <= box.x1 <= width, text
        assert 0 <= box.y0 <= box.y1 <= height, text
    for (one, a), (two, b) in itertools.combinations(texts, 2):
        assert not a.padded(-0.5).overlaps(b.padded(-0.5)), (one, two)
    assert svg(draw()) == svg(figure)


def test_missing_columns_empty_tables_and_cells_that_come_twice_are_refused():
    with pytest.raises(ValueError, match="columns method, benchmark, task, value"):
        draw(TABLE.drop(columns="task"))
    with pytest.raises(ValueError, match="got 0 rows"):
        draw(TABLE.head(0))
    with pytest.raises(ValueError, match="MSP, first, wrong has several"):
        draw(pd.concat([TABLE, TABLE.head(1)]))


def test_a_table_of_gaps_alone_or_of_one_number_is_drawn_and_left_as_it_was():
    before = TABLE.copy()
    for value in (np.nan, 0.5):
        draw(TABLE.assign(value=value))
    draw()
    pd.testing.assert_frame_equal(TABLE, before)
