"""Tasks of Kim et al. 2021: points follow from their definition, and what is drawn is the table."""

import itertools

import numpy as np
import pandas as pd
import pytest
from test_plots import svg, visible_texts

from osnb import metrics, plots

KEYS = pd.DataFrame(
    [("a", "edl", "0"), ("b", "edl", "1"), ("c", "ensemble", "0")],
    columns=["run", "method", "seed"],
).assign(benchmark="cifar", task="near_ood_detection", dataset="near")
VALUES = {
    "auroc": np.array([[0.8, 0.7, 0.9], [0.6, 0.5, 0.7], [0.9, 0.9, 0.9]]),
    "aurc": np.full((3, 3), np.nan),
}


@pytest.fixture(scope="module")
def scores():
    """Test samples of two methods, known and unknown."""
    rng = np.random.default_rng(0)
    n = 240
    return pd.DataFrame(
        {
            "benchmark": rng.choice(["digits", "drawn synsets"], n),
            "method": rng.choice(["Baseline", "Ensemble"], n),
            "kind": rng.choice(["right", "wrong", "near", "far", "noise"], n),
            "class": rng.choice(["letter A", "letter B"], n),
            "predicted": rng.choice(["digit 0", "digit 1"], n),
            "max_softmax": rng.uniform(0.2, 1, n),
        }
    )


@pytest.fixture(params=["densities", "heat"])
def figure(request, scores):
    return draw(request.param, scores), lambda: draw(request.param, scores)


def draw(name, scores):
    if name == "densities":
        return plots.softmax_densities(plots.density_points(scores, bins=10))
    unknown = scores[scores["kind"].isin(["near", "far"])]
    points = plots.predicted_points(unknown)
    return plots.predicted_softmax(points, known=["digit 0", "digit 1", "digit 2"])


# Points


def test_a_task_is_the_mean_over_seeds_with_the_interval_of_that_mean():
    points = plots.task_points(KEYS, VALUES)
    assert points["method"].tolist() == ["edl", "ensemble"]  # no row where there is no measure
    edl, ensemble = points.to_dict("records")
    mean = VALUES["auroc"][:2].mean(axis=0)
    assert (edl["value"], edl["low"], edl["high"]) == metrics.interval(mean)
    assert edl["sd_seeds"] == pytest.approx(np.sqrt(0.02))
    assert (edl["seeds"], edl["run"], ensemble["seeds"], ensemble["run"]) == (2, "a, b", 1, "c")
    assert np.isnan(ensemble["sd_seeds"])


def test_tasks_stand_in_order_of_appearance():
    turned = plots.task_points(KEYS[::-1], {"auroc": VALUES["auroc"][::-1]})
    assert turned["method"].tolist() == ["ensemble", "edl"]
    assert turned["run"].tolist() == ["c", "b, a"]
    assert turned["value"].tolist() == pytest.approx([0.9, 0.7])


def test_without_resamples_a_task_has_no_interval():
    points = plots.task_points(KEYS, {"auroc": VALUES["auroc"][:, :1]})
    assert points[["low", "high"]].isna().all(axis=None)


def test_a_density_has_area_one_and_counts_its_samples(scores):
    points = plots.density_points(scores, bins=7)
    for key, part in points.groupby(["benchmark", "method", "kind"]):
        width = part["right"] - part["left"]
        assert (part["density"] * width).sum() == pytest.approx(1)
        same = (scores[["benchmark", "method", "kind"]] == list(key)).all(axis=1)
        assert (part["samples"] == same.sum()).all()


def test_a_cell_is_the_share_times_the_mean_and_a_row_adds_up_to_one(scores):
    points = plots.predicted_points(scores)
    for key, row in points.groupby(["method", "kind", "class"]):
        same = scores[(scores[["method", "kind", "class"]] == list(key)).all(axis=1)]
        cells = row[row["predicted"] != "the rest"]
        for cell in cells.to_dict("records"):
            there = same[same["predicted"] == cell["predicted"]]["max_softmax"]
            assert cell["share"] == len(there) / len(same)
            assert cell["value"] == pytest.approx(cell["share"] * there.mean())
        assert cells["value"].sum() == pytest.approx(same["max_softmax"].mean())
        assert row["value"].sum() == pytest.approx(1)


# Figures


def test_no_text_is_clipped_and_none_lies_on_another(figure):
    drawn, _ = figure
    width, height = drawn.bbox.size
    texts = visible_texts(drawn)
    for text, box in texts:
        assert 0 <= box.x0 <= box.x1 <= width, text
        assert 0 <= box.y0 <= box.y1 <= height, text
    for (one, a), (two, b) in itertools.combinations(texts, 2):
        assert not a.padded(-0.5).overlaps(b.padded(-0.5)), (one, two)


def test_two_drawings_give_the_same_bytes(figure):
    drawn, again = figure
    assert svg(again()) == svg(drawn)


def test_every_density_is_drawn_in_its_panel_inside_the_axes(scores):
    points = plots.density_points(scores, bins=10)
    figure = plots.softmax_densities(points)
    drawn = {}
    for ax in figure.axes:
        method, benchmark = ax.get_title().split("\n")[0].split(", ")
        for line in ax.lines:
            drawn[benchmark, method, line.get_label()] = line.get_ydata()
            assert line.get_ydata().max() < ax.get_ylim()[1]
    found = points.groupby(["benchmark", "method", "kind"])["density"]
    assert set(drawn) == set(found.groups)
    for key, density in found:
        np.testing.assert_array_equal(drawn[key], density)
    lines = figure.axes[0].lines
    for looks in ([x.get_color() for x in lines], [x.get_marker() for x in lines]):
        assert len(set(looks)) == len(lines)


def test_every_cell_of_the_heat_map_has_its_value_and_no_prediction_is_0(scores):
    unknown = scores[scores["kind"].isin(["near", "far"])]
    points = plots.predicted_points(unknown)
    known = ["digit 0", "digit 1", "digit 2"]
    figure = plots.predicted_softmax(points, known=known)
    rows = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    for ax in figure.axes[:2]:
        grid = np.asarray(ax.collections[0].get_array()).reshape(len(rows), 4)
        assert (grid[:, 2] == 0).all()
        part = points[points["method"] == ax.get_title()]
        for cell in part.to_dict("records"):
            row = rows.index(f"{cell['kind']}: {cell['class']}")
            assert grid[row, [*known, "the rest"].index(cell["predicted"])] == cell["value"]


# Bad input


def test_missing_columns_and_odd_names_are_named(scores):
    with pytest.raises(ValueError, match="columns run, benchmark"):
        plots.task_points(KEYS.drop(columns="seed"), VALUES)
    with pytest.raises(ValueError, match=r"3 rows of each measure; not so in \['auroc'\]"):
        plots.task_points(KEYS, {"auroc": VALUES["auroc"][:2]})
    with pytest.raises(ValueError, match="columns benchmark, method, kind"):
        plots.density_points(scores.drop(columns="kind"), bins=5)
    with pytest.raises(ValueError, match=r"got \['odd'\]"):
        plots.softmax_densities(plots.density_points(scores.assign(kind="odd"), bins=5))
    with pytest.raises(ValueError, match="columns method, kind, class"):
        plots.predicted_points(scores.drop(columns="predicted"))
    with pytest.raises(ValueError, match=r"among the known ones; got \['digit 1'\]"):
        plots.predicted_softmax(plots.predicted_points(scores), known=["digit 0"])


def test_without_a_run_a_figure_says_so(scores):
    none = scores.head(0)
    density = plots.softmax_densities(plots.density_points(none, bins=5))
    heat = plots.predicted_softmax(plots.predicted_points(none), known=[])
    assert all(f.axes[0].texts[0].get_text() == "no finished run" for f in (density, heat))


def test_inputs_are_left_as_they_were(scores):
    before, keys = scores.copy(), KEYS.copy()
    plots.predicted_points(scores)
    plots.density_points(scores, bins=5)
    plots.task_points(KEYS, VALUES)
    pd.testing.assert_frame_equal(scores, before)
    pd.testing.assert_frame_equal(keys, KEYS)
