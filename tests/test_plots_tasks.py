"""Tasks of Kim et al. 2021: points follow from their definition, and what is drawn is the table."""

import numpy as np
import pandas as pd
import pytest

from osnb import metrics, plots
from osnb.evidence import frames, kim2021
from osnb.evidence.across import summary
from osnb.evidence.build import Evidence

KEYS = pd.DataFrame(
    [("a", "edl", "0"), ("b", "edl", "1"), ("c", "ensemble", "0")],
    columns=["run", "printed", "seed"],
).assign(place="cifar", task="near", source="near")
VALUES = {
    "auroc": np.array([[0.8, 0.7, 0.9], [0.6, 0.5, 0.7], [0.9, 0.9, 0.9]]),
    "aurc": np.full((3, 3), np.nan),
}


def make_scores():
    """Test samples of two methods, known and unknown."""
    rng = np.random.default_rng(0)
    n = 240
    return pd.DataFrame(
        {
            "place": rng.choice(["digits", "drawings"], n),
            "printed": rng.choice(["Baseline", "Ensemble"], n),
            "kind": rng.choice(["right", "wrong", "near", "far", "noise"], n),
            "max_softmax": rng.uniform(0.2, 1, n),
        }
    )


CLASSES = pd.DataFrame(
    [
        ("d1", "digits", "known", 1, "digit 1"),
        ("d0", "digits", "known", 0, "digit 0"),
        ("d2", "digits", "known", 2, "digit 2"),
        ("d7", "digits", "near", -2, "digit 7"),
        ("a", "letters", "far", -2, "letter A"),
        ("b", "letters", "far", -2, "letter B"),
        ("noise", "noise", "noise", -2, "noise"),
    ],
    columns=["class", "source", "kind", "label", "name"],
)


def make_means():
    """Mean softmax of every class by two runs of Baseline and one of Ensemble."""
    rng = np.random.default_rng(1)
    parts = []
    for method in ("Baseline", "Baseline", "Ensemble"):
        softmax = pd.DataFrame(rng.dirichlet(np.ones(3), len(CLASSES)), columns=list("012"))
        parts.append(CLASSES[["class", "source"]].join(softmax).assign(printed=method))
    return pd.concat(parts, ignore_index=True)


def binned(scores, bins=10):
    edges = np.linspace(0, 1, bins + 1)
    return frames.histograms(scores, "max_softmax", "place", "printed", "kind", bins=edges)


def summed(keys, values):
    return summary(Evidence(keys, values), "place", "printed", "task", "source")


scores, means = pytest.fixture(make_scores), pytest.fixture(make_means)
FIGURES = {
    "densities": lambda: plots.softmax_densities(binned(make_scores())),
    "heat": lambda: plots.mean_softmax(kim2021.mean_softmax(make_means(), CLASSES, at_most=9)),
}

# Points


def test_a_task_is_the_mean_over_seeds_with_the_interval_of_that_mean():
    points = summed(KEYS, VALUES)
    assert points["printed"].tolist() == ["edl", "ensemble"]  # no row where there is no measure
    edl, ensemble = points.to_dict("records")
    mean = VALUES["auroc"][:2].mean(axis=0)
    assert (edl["value"], edl["low"], edl["high"]) == metrics.interval(mean)
    assert edl["sd_seeds"] == pytest.approx(np.sqrt(0.02))
    assert (edl["seeds"], edl["run"], ensemble["seeds"], ensemble["run"]) == (2, "a, b", 1, "c")
    assert np.isnan(ensemble["sd_seeds"])


def test_tasks_stand_in_order_of_appearance():
    turned = summed(KEYS[::-1].reset_index(drop=True), {"auroc": VALUES["auroc"][::-1]})
    assert turned["printed"].tolist() == ["ensemble", "edl"]
    assert turned["run"].tolist() == ["c", "b, a"]
    assert turned["value"].tolist() == pytest.approx([0.9, 0.7])


def test_without_resamples_a_task_has_no_interval():
    points = summed(KEYS, {"auroc": VALUES["auroc"][:, :1]})
    assert points[["low", "high"]].isna().all(axis=None)


def test_a_cell_is_the_mean_of_the_runs_and_a_row_adds_up_to_one(means):
    points = kim2021.mean_softmax(means, CLASSES, at_most=9)
    names = CLASSES.set_index("name")
    assert len(points) == 2 * 4 * 3  # methods, unknown classes, known classes
    for cell in points.to_dict("records"):
        column = str(names.loc[cell["known"], "label"])
        same = means[means["class"] == names.loc[cell["class"], "class"]]
        values = same.loc[same["printed"] == cell["printed"], column]
        assert cell["softmax"] == pytest.approx(values.mean())
        assert cell["runs"] == len(values) == {"Baseline": 2, "Ensemble": 1}[cell["printed"]]
        assert cell["kind"] == names.loc[cell["class"], "kind"]
    sums = points.groupby(["printed", "class"])["softmax"].sum()
    assert sums.tolist() == pytest.approx([1] * 8)


def test_a_class_of_the_same_name_in_another_source_is_another_class(means):
    twin = means[means["class"] == "a"].assign(source="elsewhere")
    both = pd.concat([means, twin.assign(**{"0": 9.0})])
    points = kim2021.mean_softmax(both, CLASSES, at_most=9)
    pd.testing.assert_frame_equal(points, kim2021.mean_softmax(means, CLASSES, at_most=9))


def test_of_many_classes_of_a_kind_the_surest_ones_stay(means):
    every = kim2021.mean_softmax(means, CLASSES, at_most=9)
    kept = kim2021.mean_softmax(means, CLASSES, at_most=1)
    largest = every.groupby(["kind", "class", "printed"])["softmax"].max().unstack().mean(axis=1)
    sure = "letter A" if largest["far", "letter A"] > largest["far", "letter B"] else "letter B"
    assert list(dict.fromkeys(kept["class"])) == ["digit 7", sure, "noise"]


# Figures


def test_every_density_is_drawn_in_its_panel_inside_the_axes(scores):
    points = binned(scores)
    figure = plots.softmax_densities(points)
    drawn = {}
    for ax in figure.axes:
        method, benchmark = ax.get_title().split("\n")[0].split(", ")
        for line in ax.lines:
            drawn[benchmark, method, line.get_label()] = line.get_ydata()
            assert line.get_ydata().max() < ax.get_ylim()[1]
    found = points.groupby(["place", "printed", "kind"])["density"]
    assert set(drawn) == set(found.groups)
    for key, density in found:
        np.testing.assert_array_equal(drawn[key], density)
    lines = figure.axes[0].lines
    for looks in ([x.get_color() for x in lines], [x.get_marker() for x in lines]):
        assert len(set(looks)) == len(lines)


def test_every_cell_of_the_heat_map_has_its_value_on_one_scale(means):
    points = kim2021.mean_softmax(means, CLASSES, at_most=9)
    figure = plots.mean_softmax(points)
    titles = [f"{m}, {k}" for k in ("near", "far", "noise") for m in ("Baseline", "Ensemble")]
    assert [ax.get_title() for ax in figure.axes[:6]] == titles
    for ax in figure.axes[:6]:
        method, kind = ax.get_title().split(", ")
        part = points[(points["printed"] == method) & (points["kind"] == kind)]
        rows = list(dict.fromkeys(part["class"]))
        assert ax.collections[0].get_clim() == (0, 1)
        grid = np.asarray(ax.collections[0].get_array()).reshape(len(rows), 3)
        for cell in part.to_dict("records"):  # columns by label, whatever the order of rows
            column = int(cell["known"].removeprefix("digit "))
            assert grid[rows.index(cell["class"]), column] == cell["softmax"]
    names = [text.get_text() for text in figure.axes[2].get_yticklabels()]
    assert names == ["letter A", "letter B"]
    names = [text.get_text() for text in figure.axes[4].get_xticklabels()]
    assert names == ["digit 0", "digit 1", "digit 2"]


def test_a_heat_map_of_twenty_known_classes_fits_a_page_in_letters_that_can_be_read(means):
    points = kim2021.mean_softmax(means, CLASSES, at_most=9)
    wide = pd.concat([points.assign(known=points["known"] + f" {i}") for i in range(7)])
    third = wide.query("printed == 'Ensemble'").assign(printed="OE")
    figure = plots.mean_softmax(pd.concat([wide, third]))
    assert figure.get_figwidth() <= 10
    assert {text.get_fontsize() for text in figure.axes[6].get_xticklabels()} == {8}


# Bad input


def test_without_a_run_a_figure_says_so(scores):
    none = scores.head(0)
    density = plots.softmax_densities(binned(none))
    heat = plots.mean_softmax(kim2021.mean_softmax(pd.DataFrame(), CLASSES, at_most=9))
    assert all(f.axes[0].texts[0].get_text() == "no finished run" for f in (density, heat))


def test_stand_ins_are_named_beside_the_papers_sets_in_a_miniature_alone():
    rows = pd.DataFrame({"place": ["cifar", "imagenet"], "printed": ["oe", "openmax"]})
    rows["source"] = ["svhn", "near"]
    mini, paper = (kim2021.named(rows, size=size) for size in ("mini", "paper"))
    assert mini["printed"].tolist() == ["OE", "OpenMax"]
    assert mini["source"].tolist() == paper["own"].tolist() == ["SVHN", "Near ImageNet-200"]
    assert mini["own"].tolist() == ["digits in fonts", "near drawn things"]
