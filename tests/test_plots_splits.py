"""Figures of the semantic-shift splits: every class is drawn once, nothing is clipped."""

import numpy as np
import pandas as pd

from osnb import plots
from osnb.evidence import frames

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
        (row, name, "cat", f"{name} class number {row} of a long name", value)
        for row in (0, 1, 2)
        for name, value in (("hard", 2), ("easy", 0.714))
    ],
    columns=["row", "bin", "closest", "name", "value"],
)
IMAGES = np.random.default_rng(0).integers(0, 255, (6, 2, 3, 1, 16, 16), dtype=np.uint8)
ODD = values().replace("medium", "hard, one list only").replace("easy", "another")

FIGURES = {
    "figure_5": lambda: plots.class_sheet(NEAR, IMAGES),
    "figure_9": lambda: plots.bin_histograms(
        frames.histograms(values(), "value", "bin", bins=12), scale="similarity (cosine)"
    ),
    "figure_10": lambda: plots.shared_levels(LEVELS),
    "figure_11": lambda: plots.bin_histograms(
        frames.histograms(ODD, "value", "bin", bins=5), scale="mean distance, in edges"
    ),
}


# Numbers


def test_every_class_is_counted_once_in_its_bin_and_its_step():
    table = values()
    points = frames.histograms(table, "value", "bin", bins=7)
    assert points.groupby("bin")["samples"].sum().to_dict() == dict.fromkeys(BINS, 20)
    last = points["right"].max()
    for row in points.itertuples():
        part = table.loc[table["bin"] == row.bin, "value"]
        inside = sum(row.left <= v < row.right or v == row.right == last for v in part)
        assert row.samples == inside


def test_bins_are_stacked_so_that_heights_add_up():
    points = frames.histograms(values(), "value", "bin", bins=7)
    bars = plots.bin_histograms(points, scale="s").axes[0].patches
    tops = [max(b.get_y() + b.get_height() for b in bars[i::7]) for i in range(7)]
    assert tops == points.groupby("left")["samples"].sum().tolist()
    assert sum(b.get_height() for b in bars) == 60


def test_bars_of_levels_are_as_long_as_the_counts_and_stand_in_their_order():
    figure = plots.shared_levels(LEVELS)
    cars, aircraft = figure.axes
    assert cars.get_title() == "Stanford Cars"
    assert [t.get_text() for t in aircraft.get_yticklabels()] == ["family", "nothing"]
    assert sum(bar.get_width() for bar in cars.patches) == 98
    ends = {bar.get_x() + bar.get_width() for bar in aircraft.patches}
    assert {13, 19, 20} <= ends


def test_pictures_stand_right_of_their_known_class_in_the_order_of_the_bins():
    figure = plots.class_sheet(NEAR, IMAGES)
    rows = NEAR.sort_values(["row", "bin"]).itertuples()
    titles = [ax.get_title().splitlines() for ax in figure.axes]
    assert [first for first, *_ in titles] == ["easy, 0.714", "hard, 2"] * 3
    assert all(names == ["cat |", row.name] for (_, *names), row in zip(titles, rows, strict=True))
    shown = np.asarray(figure.axes[2].get_images()[0].get_array())  # easy of row 1, after its hard
    parts = [IMAGES[3, side, m, 0] for side in (0, 1) for m in range(3)]
    np.testing.assert_array_equal(shown[:, :48], np.hstack(parts[:3]))
    np.testing.assert_array_equal(shown[:, -48:], np.hstack(parts[3:]))
    assert (shown[:, 48:-48] == 255).all()
    left, right = (ax.get_window_extent() for ax in figure.axes[:2])
    inside = left.width * (shown.shape[1] - 96) / shown.shape[1]
    assert right.x0 - left.x1 > 1.5 * inside


def test_a_pair_without_a_number_has_its_bin_alone_and_a_row_may_have_a_name():
    pairs = NEAR.assign(value=np.nan, name="dog", row=["CUB"] * 2 + ["Cars"] * 2 + ["Aircraft"] * 2)
    figure = plots.class_sheet(pairs, IMAGES)
    assert [ax.get_title() for ax in figure.axes] == ["easy\ncat | dog", "hard\ncat | dog"] * 3
    assert [ax.get_ylabel() for ax in figure.axes[::2]] == ["CUB", "Cars", "Aircraft"]
