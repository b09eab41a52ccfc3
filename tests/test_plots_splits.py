"""Figures of the semantic-shift splits: every class is drawn once, nothing is clipped."""

import itertools

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from test_plots import svg, visible_texts

from osnb import plots

BINS = ("easy", "medium", "hard")


def values(seed=0, classes=60):
    """Unknown classes cut in three by their similarity, as from `making.by_attributes`."""
    value = np.sort(np.random.default_rng(seed).normal(0.8, 0.1, classes))
    return pd.DataFrame({"bin": np.repeat(BINS, classes // 3), "value": value})


LEVELS = pd.DataFrame(
    [
        ("Stanford Cars", "all but the year", "hard", 7),
        ("Stanford Cars", "make and model", "medium", 15),
        ("Stanford Cars", "make", "easy", 76),
        ("FGVC-Aircraft", "family", "hard", 13),
        ("FGVC-Aircraft", "nothing", "easy", 19),
        ("FGVC-Aircraft", "nothing", "medium", 1),
    ],
    columns=["dataset", "level", "bin", "classes"],
)
NEAR = pd.DataFrame(
    [
        (row, name, f"{name} class number {row} of a long name", value)
        for row in (0, 1, 2)
        for name, value in (("known", np.nan), ("easy", 0.71), ("hard", 0.93))
    ],
    columns=["row", "bin", "name", "value"],
)
IMAGES = np.random.default_rng(0).integers(0, 255, (9, 2, 3, 16, 16), dtype=np.uint8)
ODD = values().replace("medium", "hard, one list only").replace("easy", "another")

FIGURES = {
    "figure_5": lambda: plots.class_sheet(NEAR, IMAGES),
    "figure_9": lambda: plots.bin_histograms(
        plots.bin_points(values(), value="value", bins=12), scale="similarity (cosine)"
    ),
    "figure_10": lambda: plots.shared_levels(LEVELS),
    "figure_11": lambda: plots.bin_histograms(
        plots.bin_points(ODD, value="value", bins=5), scale="mean distance, in edges"
    ),
}


@pytest.fixture(scope="module", params=FIGURES)
def figure(request):
    drawn = FIGURES[request.param]()
    drawn.name = request.param
    return drawn


def test_no_text_is_clipped_and_none_lies_on_another(figure):
    width, height = figure.bbox.size
    texts = visible_texts(figure)
    for text, box in texts:
        assert 0 <= box.x0 <= box.x1 <= width, text
        assert 0 <= box.y0 <= box.y1 <= height, text
    for (one, a), (two, b) in itertools.combinations(texts, 2):
        assert not a.padded(-0.5).overlaps(b.padded(-0.5)), (one, two)


def test_a_figure_fits_a_page_and_both_axes_of_a_scale_are_labelled(figure):
    assert figure.get_figwidth() <= 10
    assert len(figure._repr_png_()) < 200_000
    for ax in figure.axes if figure.name != "figure_5" else []:
        assert ax.get_xlabel()
        assert ax.get_ylabel() or not ax.get_subplotspec().is_first_col()


def test_two_drawings_give_the_same_bytes_whatever_the_readers_settings(figure):
    with mpl.rc_context({"font.size": 20, "axes.grid": False, "svg.hashsalt": None}):
        assert svg(FIGURES[figure.name]()) == svg(figure)


# Numbers


def test_every_class_is_counted_once_in_its_bin_and_its_step():
    table = values()
    points = plots.bin_points(table, value="value", bins=7)
    assert points.groupby("bin")["classes"].sum().to_dict() == dict.fromkeys(BINS, 20)
    last = points["right"].max()
    for row in points.itertuples():
        part = table.loc[table["bin"] == row.bin, "value"]
        inside = sum(row.left <= v < row.right or v == row.right == last for v in part)
        assert row.classes == inside


def test_bins_are_stacked_so_that_heights_add_up():
    points = plots.bin_points(values(), value="value", bins=7)
    bars = plots.bin_histograms(points, scale="s").axes[0].patches
    tops = [max(b.get_y() + b.get_height() for b in bars[i::7]) for i in range(7)]
    assert tops == points.groupby("left")["classes"].sum().tolist()
    assert sum(b.get_height() for b in bars) == 60


def test_bars_of_levels_are_as_long_as_the_counts_and_stand_in_their_order():
    figure = plots.shared_levels(LEVELS)
    cars, aircraft = figure.axes
    assert cars.get_title() == "Stanford Cars"
    assert [t.get_text() for t in aircraft.get_yticklabels()] == ["family", "nothing"]
    assert sum(bar.get_width() for bar in cars.patches) == 98
    ends = {bar.get_x() + bar.get_width() for bar in aircraft.patches}
    assert {13, 19, 20} <= ends


def test_pictures_stand_beside_their_known_class_in_the_order_of_the_bins():
    figure = plots.class_sheet(NEAR, IMAGES)
    titles = [ax.get_title().splitlines()[0] for ax in figure.axes]
    assert titles == ["known", "easy, 0.71", "hard, 0.93"] * 3
    shown = figure.axes[5].get_images()[0].get_array()
    np.testing.assert_array_equal(shown[:, :16], IMAGES[5, 0].transpose(1, 2, 0))
    np.testing.assert_array_equal(shown[:, 17:], IMAGES[5, 1].transpose(1, 2, 0))


def test_inputs_are_left_as_they_were():
    table, images = values(), IMAGES.copy()
    plots.bin_points(table, value="value", bins=3)
    plots.class_sheet(NEAR, images)
    pd.testing.assert_frame_equal(table, values())
    np.testing.assert_array_equal(images, IMAGES)


def test_bad_input_is_refused_with_the_reason():
    with pytest.raises(ValueError, match="columns bin, value"):
        plots.bin_points(values().drop(columns="bin"), value="value", bins=3)
    with pytest.raises(ValueError, match="1 of 60 are not"):
        plots.bin_points(values().replace(values()["value"][0], np.nan), value="value", bins=3)
    with pytest.raises(ValueError, match=r"need \(9, M, 3, S, S\) uint8"):
        plots.class_sheet(NEAR, IMAGES[:4])
