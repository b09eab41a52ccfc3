"""Accuracy against AUROC: what is drawn is what is in the table, and rho is scipy's."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from osnb import metrics, plots
from osnb.evidence import across
from osnb.evidence.build import Evidence

GROUP = ["panel", "series", "mark"]


def rows(panel="splits", n=6):
    """A row per point, whose index is its position in `values`."""
    marks = ["MNIST", "TinyImageNet"]
    methods = ["MSP", "ARPL", "ARPL + CS"]
    names = list(itertools.product(methods, marks))[:n]
    return pd.DataFrame([(panel, *each) for each in names], columns=GROUP)


def correlations(table, numbers):
    keys = pd.DataFrame({"run": [f"r{i}" for i in range(len(numbers["auroc"]))]})
    points = Evidence(keys, numbers).at(table.assign(run="r"))
    return across.correlations(points, *GROUP)


def values(n=6, resamples=40, seed=0):
    rng = np.random.default_rng(seed)
    accuracy = rng.uniform(0.5, 1, (n, 1 + resamples)).round(2)
    noise = rng.normal(0, 0.1, accuracy.shape)
    return {"accuracy": accuracy, "auroc": np.clip(accuracy - 0.1 + noise, 0, 1)}


def drawn(hollow=False, empty=None):
    table = pd.concat([rows(), rows("means", 5)])
    points, found = correlations(table, values())
    points = points.assign(hollow=points["mark"] == "MNIST") if hollow else points
    return points, plots.accuracy_auroc(points, found, empty=empty or {}, about="bars: 95 %")


FIGURES = {
    "correlation": lambda: drawn()[1],
    "hollow": lambda: drawn(hollow=True)[1],
    "a panel without points": lambda: drawn(empty={"b": "not run"})[1],
}


def test_rho_is_scipys_and_its_interval_that_of_the_resamples_turned_round_fishers_z():
    both = values(resamples=41)
    _, found = correlations(rows(), both)
    pairs = list(zip(both["accuracy"].T, both["auroc"].T, strict=True))
    each = np.array([stats.pearsonr(*pair).statistic for pair in pairs])
    assert found.loc[0, "rho"] == pytest.approx(each[0], abs=1e-12)
    assert found.loc[0, "spearman"] == pytest.approx(stats.spearmanr(*pairs[0]).statistic)
    z = np.log((1 + each) / (1 - each)) / 2
    inner = np.sort(z[1:])[[-2, 1]]  # of 41, the percentiles 97.5 and 2.5
    doubled = np.exp(2 * (2 * z[0] - inner))
    ends = (doubled - 1) / (doubled + 1)
    assert found.loc[0, ["low", "high"]].tolist() == pytest.approx(ends, abs=1e-12)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_rho_of_1_has_no_interval_and_resamples_of_1_end_one_at_1(sign):
    both = values()
    lined = both | {"auroc": 0.5 + sign * both["accuracy"] / 4}
    _, found = correlations(rows(), lined)
    assert found.loc[0, "rho"] == pytest.approx(sign)
    assert found.loc[0, ["low", "high"]].isna().all()
    lined["auroc"][:, 0] = both["auroc"][:, 0]  # the sample itself is on no line
    _, found = correlations(rows(), lined)
    assert found.loc[0, ["low", "high"]].tolist() == pytest.approx([-sign, -sign])


def test_a_point_is_the_mean_of_its_rows():
    table, both = rows().assign(panel="means", mark="all"), values()
    points, found = correlations(table, both)
    assert points["rows"].tolist() == [2, 2, 2]
    assert found["points"].tolist() == [3]
    for i, name in itertools.product(range(3), ("accuracy", "auroc")):
        mean = both[name][2 * i : 2 * i + 2].mean(axis=0)
        ends = points.loc[i, [name, f"{name}_low", f"{name}_high"]].tolist()
        assert ends == pytest.approx(list(metrics.interval(mean)))


def test_a_row_may_stand_in_several_panels_whatever_its_place_in_the_frame():
    table = pd.concat([rows(), rows("means").iloc[::-1]])
    _, found = correlations(table, values())
    assert found.loc[0, "rho"] == pytest.approx(found.loc[1, "rho"])


@pytest.mark.parametrize(("n", "accuracy"), [(2, None), (6, 0.9)])
def test_two_points_and_points_of_one_accuracy_have_no_rho(n, accuracy):
    both = values()
    both = both | ({"accuracy": np.full((6, 41), accuracy)} if accuracy else {})
    _, found = correlations(rows(n=n), both)
    assert found[["rho", "low", "high"]].isna().all(axis=None)


def test_a_network_that_two_rules_read_is_one_of_the_three_that_a_rho_needs():
    both = {name: column[[0, 0, 1]] for name, column in values().items()}
    both["auroc"] = values()["auroc"][:3]
    points = Evidence(pd.DataFrame({"run": ["a", "a", "b"]}), both)
    table = rows(n=3)
    _, found = across.correlations(points.at(table.assign(run=["a", "a", "b"])), *GROUP)
    assert found["points"].tolist() == [3]
    assert found[["rho", "low", "spearman"]].isna().all(axis=None)
    _, found = across.correlations(points.at(table.assign(run=["a", "c", "b"])), *GROUP)
    assert found["rho"].notna().all()  # two networks of one accuracy


def test_printed_numbers_have_no_interval_and_no_rows_no_points():
    points, found = correlations(rows(), values(resamples=0))
    assert found["low"].isna().all()
    assert points["auroc_low"].isna().all()
    assert found["rho"].notna().all()
    points, found = correlations(rows()[:0], values())
    assert points.empty
    assert found.empty
    figure = plots.accuracy_auroc(points, found, empty={"ResNets": "not run"}, about="")
    assert [text.get_text() for text in figure.axes[0].texts] == ["not run"]


@pytest.mark.parametrize(("points", "low", "lines"), [(6, 0.1, 1), (6, -0.1, 0), (3, 0.1, 0)])
def test_a_line_needs_more_than_three_points_and_an_interval_without_0(points, low, lines):
    accuracy = np.linspace(0.5, 0.9, points)
    ends = {f"{n}_{end}": np.nan for n in ("accuracy", "auroc") for end in ("low", "high")}
    table = pd.DataFrame({"panel": "one", "series": "s", "mark": "m", "accuracy": accuracy})
    table = table.assign(auroc=accuracy**2, **ends)
    rho = pd.DataFrame({"panel": ["one"], "points": points, "rho": 0.9, "low": low, "high": 1.0})
    (ax,) = plots.accuracy_auroc(table, rho, empty={}, about="").axes
    assert sum(len(line.get_xdata()) == 2 for line in ax.lines) == lines


def test_no_axis_of_rates_goes_beyond_1_around_a_single_point():
    ends = {f"{n}_{end}": np.nan for n in ("accuracy", "auroc") for end in ("low", "high")}
    table = pd.DataFrame({"panel": ["one"], "series": "s", "mark": "m", "accuracy": 0.996})
    rho = pd.DataFrame({"panel": ["one"], "points": 1, "rho": np.nan, "low": np.nan, "high": 0.1})
    (ax,) = plots.accuracy_auroc(table.assign(auroc=1.0, **ends), rho, empty={}, about="").axes
    for low, high in (ax.get_xlim(), ax.get_ylim()):
        assert low < 0.99
        assert 1 < high < 1.01
    assert not ax.lines[0].get_clip_on()  # the marker is whole


def test_every_point_is_drawn_once_where_it_lies():
    points, figure = drawn()
    for panel, ax in zip(("splits", "means"), figure.axes, strict=True):
        at = [
            tuple(map(float, line.get_xydata()[0]))
            for line in ax.lines
            if len(line.get_xdata()) == 1
        ]
        here = points[points["panel"] == panel]
        assert sorted(at) == sorted(zip(here["accuracy"], here["auroc"], strict=True))


def test_hollow_markers_are_not_filled():
    points, figure = drawn(hollow=True)
    faces = [line.get_markerfacecolor() for line in figure.axes[0].lines]
    assert faces.count("white") == points.query("panel == 'splits'")["hollow"].sum()
