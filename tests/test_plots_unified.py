"""Unknown detection in one pool: what is drawn is what is in the table, nothing is clipped."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from osnb import metrics, plots
from osnb.evidence import selective, tables
from osnb.evidence.across import gains
from osnb.evidence.build import Evidence

PRINTED = {  # Figure 5, in percent: by hand from Tables 5 and 6
    ("cifar", "CRL"): 1.1258,
    ("cifar", "Ensemble"): 5.7118,
    ("cifar", "ODIN"): -1.0918,
    ("imagenet", "OE"): 1.6697,
    ("imagenet", "OpenMax"): -6.0675,
}
KINDS = ("", "wrong prediction", "near", "far: letters")


@cache
def make_samples():
    """Two pools, three methods, 120 samples each."""
    rng = np.random.default_rng(0)
    parts = []
    for panel in ("CIFAR, all", "ImageNet, all but gaussian noise"):
        kind = rng.choice(KINDS, 120)
        for method in ("Baseline", "Ensemble", "a method with a long name"):
            score = rng.normal(kind == "", 1).round(1)
            parts.append(pd.DataFrame({"kind": kind, "score": score, "panel": panel}))
            parts[-1]["printed"] = method
    return pd.concat(parts, ignore_index=True)


@cache
def make_points():
    """Figure 5 of the paper, and one method of ours."""
    parts = [tables.published("kim2021", f"table{n}") for n in (5, 6)]
    rows = pd.concat(parts, keys=["cifar", "imagenet"], names=["place"]).reset_index(level=0)
    rows = rows[(rows["metric"] == "AURC_x1000") & (rows["task"] == "unknown_detection")]
    rows = rows.assign(run="tables", printed=rows["method"]).reset_index(drop=True)
    printed = improved(rows, rows[["mean"]].to_numpy() / 1000).assign(side="paper")
    ours = pd.DataFrame({"printed": ["Baseline", "OE", "OE"], "run": ["a", "b", "c"]})
    ours = ours.assign(place="cifar")
    aurc = np.array([[0.4, 0.5, 0.4, 0.4], [0.3, 0.3, 0.3, 0.3], [0.2, 0.2, 0.3, 0.4]])
    return pd.concat([printed, improved(ours, aurc).assign(side="ours, all")], ignore_index=True)


def improved(rows, aurc):
    numbers = Evidence(rows, {"aurc": aurc})
    return gains(numbers, "aurc", "place", key="printed", of="Baseline", share=True)


samples = pytest.fixture(make_samples)
points = pytest.fixture(make_points)
FIGURES = {
    "figure 5": lambda: plots.improvements(make_points(), about="lines: 95 % over classes"),
    "curves": lambda: plots.risk_curves(selective.risk_points(make_samples(), most=20), risk=0.1),
    "accepted": lambda: plots.accepted_at_risk(make_samples(), risk=0.4),
}


def test_the_papers_improvements_follow_from_its_tables(points):
    found = points[points["side"] == "paper"].set_index(["place", "printed"])["number"]
    assert len(found) == 16
    for key, percent in PRINTED.items():
        assert 100 * found[key] == pytest.approx(percent, abs=1e-4)


def test_an_improvement_is_of_the_mean_over_runs_with_shared_draws(points):
    (ours,) = points[points["side"] == "ours, all"].to_dict("records")
    draws = [0.375, (0.5 - 0.25) / 0.5, 0.25, (0.4 - 0.35) / 0.4]
    assert ours["number"] == pytest.approx(draws[0])
    assert (ours["low"], ours["high"]) == pytest.approx(metrics.interval(np.array(draws))[1:])
    assert ours["run"] == "b, c less a"


def test_without_a_baseline_there_is_no_improvement():
    rows = pd.DataFrame({"printed": ["OE"], "run": "a", "place": "cifar"})
    assert improved(rows, np.array([[0.3, 0.3]])).empty


def test_figure_5_shows_every_point_and_names_what_was_not_run(points):
    figure = FIGURES["figure 5"]()
    for ax, name in zip(figure.axes, ("cifar", "imagenet"), strict=True):
        drawn = np.concatenate(
            [line.get_xdata() for line in ax.lines if line.get_marker() not in {"None", "", None}]
        )
        wanted = points.loc[points["place"] == name, "number"]
        np.testing.assert_allclose(np.sort(drawn), np.sort(wanted))
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert "OE" in labels
    assert "EDL (not run)" in labels


def test_curves_are_those_of_the_metric_and_none_is_below_the_perfect_one(samples):
    found = selective.risk_points(samples, most=1000)
    part = samples.query("panel == 'CIFAR, all' and printed == 'Ensemble'")
    wanted = metrics.risk_coverage(part["score"], (part["kind"] == "").to_numpy())
    ours = found.query("panel == 'CIFAR, all' and printed == 'Ensemble'")
    np.testing.assert_array_equal(ours[["coverage", "risk"]].to_numpy().T, wanted)
    best = found[found["printed"] == "perfect ranking"].set_index(["panel", "coverage"])["risk"]
    both = found.join(best.rename("least"), on=["panel", "coverage"])
    assert len(best) == 240
    assert (both["risk"] >= both["least"] - 1e-12).all()


def test_no_method_is_below_the_perfect_ranking_where_another_has_fewer_right_samples(samples):
    worse = (samples["printed"] == "Baseline") & (samples.index % 2 == 0)
    samples = samples.assign(kind=samples["kind"].mask(worse, "wrong prediction"))
    samples["score"] = samples["kind"].eq("").astype(float)  # each as good as it can be
    found = selective.risk_points(samples, most=1000)
    best = found[found["printed"] == "perfect ranking"].set_index(["panel", "coverage"])["risk"]
    least = found.join(best.rename("least"), on=["panel", "coverage"])
    apart = (least["risk"] - least["least"]).groupby(least["printed"]).max()
    assert (least["risk"] >= least["least"] - 1e-12).all()
    assert apart["Ensemble"] == 0
    assert apart["Baseline"] > 0


def test_methods_that_are_not_shown_are_grey_and_share_one_name(samples):
    points = selective.risk_points(samples, most=20)
    figure = plots.risk_curves(points, risk=0.1, shown=["Ensemble"])
    for ax in figure.axes:
        drawn = {x.get_label(): x for x in ax.lines}
        grey = [x for x in ax.lines if x.get_color() == "0.7"]
        assert {x.get_label() for x in grey} == {"other methods"}
        assert len(grey) == 2  # Baseline and the long name
        assert drawn["Ensemble"].get_color() != "0.7"
        assert drawn["Ensemble"].get_zorder() > max(x.get_zorder() for x in grey)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts.count("other methods") == 1
    assert "Baseline" not in texts


def test_operating_points_keep_the_risk_and_bars_show_them(samples):
    table = selective.risk_table(samples, risk=0.4)
    assert table["of"].sum() == len(samples)
    for (_, _), part in table.groupby(["panel", "printed"]):
        errors = part.loc[part["kind"] != "right", "accepted"].sum()
        assert errors <= 0.4 * part["accepted"].sum()
        assert part["coverage"].iloc[0] == part["accepted"].sum() / 120
    axes = plots.accepted_at_risk(samples, risk=0.4).axes
    for ax, (_, part) in zip(axes, table.groupby("panel", sort=False), strict=True):
        widths = [bar.get_width() for bar in ax.patches]
        assert sorted(widths) == sorted(part["accepted"])
        ends = max(bar.get_x() + bar.get_width() for bar in ax.patches)
        assert ends == part.groupby("printed")["accepted"].sum().max()


def test_no_count_lies_below_0_where_nothing_is_accepted(samples):
    wrong = samples.assign(kind="wrong")
    for ax in plots.accepted_at_risk(wrong, risk=0.0).axes:
        assert ax.get_xlim()[0] >= 0


def test_a_kind_keeps_its_colour_whether_right_samples_are_shown_or_not(samples):
    table = selective.risk_table(samples, risk=0.4)
    colors = []
    for part in (table, table[table["kind"] != "right"]):
        figure = plots.stacked_errors(part, value="accepted", label="x")
        handles, labels = figure.axes[0].get_legend_handles_labels()
        colors.append(
            {n: h.patches[0].get_facecolor() for n, h in zip(labels, handles, strict=True)}
        )
    assert colors[1].items() <= colors[0].items()
    assert len(set(colors[0].values())) == 4
