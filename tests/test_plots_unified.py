"""Unknown detection in one pool: what is drawn is what is in the table, nothing is clipped."""

import numpy as np
import pandas as pd
import pytest
from test_plots import svg, visible_texts

from osnb import metrics, plots, tables
from osnb.claims import kim2021

PRINTED = {  # Figure 5, in percent: by hand from Tables 5 and 6
    ("cifar", "CRL"): 1.1258,
    ("cifar", "Ensemble"): 5.7118,
    ("cifar", "ODIN"): -1.0918,
    ("imagenet", "OE"): 1.6697,
    ("imagenet", "OpenMax"): -6.0675,
}
KINDS = ("", "wrong prediction", "near", "far: letters")


@pytest.fixture(scope="module")
def samples():
    """Two pools, three methods, 120 samples each."""
    rng = np.random.default_rng(0)
    parts = []
    for panel in ("CIFAR, all", "ImageNet, all but gaussian noise"):
        kind = rng.choice(KINDS, 120)
        for method in ("Baseline", "Ensemble", "a method with a long name"):
            score = rng.normal(kind == "", 1).round(1)
            parts.append(pd.DataFrame({"kind": kind, "score": score, "panel": panel}))
            parts[-1]["method"] = method
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def points():
    """Figure 5 of the paper, and one method of ours."""
    theirs = kim2021.printed()
    names = {n.lower(): n for n in tables.published("kim2021", "table5")["method"]}
    rows = theirs.keys[theirs.keys["task"] == kim2021.UNKNOWN].replace({"method": names})
    rows = rows.assign(side="paper", run="tables")
    printed = plots.improvement_points(rows, theirs.values["aurc"])
    ours = pd.DataFrame({"method": ["Baseline", "OE", "OE"], "run": ["a", "b", "c"]})
    ours = ours.assign(benchmark="cifar", side="ours, all")
    aurc = np.array([[0.4, 0.5, 0.4, 0.4], [0.3, 0.3, 0.3, 0.3], [0.2, 0.2, 0.3, 0.4]])
    return pd.concat([printed, plots.improvement_points(ours, aurc)], ignore_index=True)


@pytest.fixture(scope="module")
def figures(samples, points):
    curves = plots.risk_points(samples, most=20)
    return {
        "figure_5": lambda: plots.improvements(points, about="lines: 95 % over classes"),
        "curves": lambda: plots.risk_curves(curves, risk=0.1),
        "accepted": lambda: plots.accepted_at_risk(samples, risk=0.4),
    }


@pytest.mark.parametrize("name", ["figure_5", "curves", "accepted"])
def test_no_text_is_clipped_and_two_drawings_give_the_same_bytes(figures, name):
    figure = figures[name]()
    width, height = figure.bbox.size
    for text, box in visible_texts(figure):
        assert 0 <= box.x0 <= box.x1 <= width, text
        assert 0 <= box.y0 <= box.y1 <= height, text
    assert svg(figures[name]()) == svg(figure)


def test_the_papers_improvements_follow_from_its_tables(points):
    found = points[points["side"] == "paper"].set_index(["benchmark", "method"])["improvement"]
    assert len(found) == 16
    for key, percent in PRINTED.items():
        assert 100 * found[key] == pytest.approx(percent, abs=1e-4)


def test_an_improvement_is_of_the_mean_over_runs_with_shared_draws(points):
    (ours,) = points[points["side"] == "ours, all"].to_dict("records")
    draws = [0.375, (0.5 - 0.25) / 0.5, 0.25, (0.4 - 0.35) / 0.4]
    assert ours["improvement"] == pytest.approx(draws[0])
    assert (ours["low"], ours["high"]) == pytest.approx(metrics.interval(np.array(draws))[1:])
    assert ours["run"] == "b, c"


def test_without_a_baseline_there_is_no_improvement():
    rows = pd.DataFrame({"method": ["OE"], "run": "a", "benchmark": "cifar", "side": "ours"})
    assert plots.improvement_points(rows, np.array([[0.3, 0.3]])).empty


def test_figure_5_shows_every_point_and_names_what_was_not_run(figures, points):
    figure = figures["figure_5"]()
    for ax, name in zip(figure.axes, ("cifar", "imagenet"), strict=True):
        drawn = np.concatenate(
            [line.get_xdata() for line in ax.lines if line.get_marker() != "None"]
        )
        wanted = points.loc[points["benchmark"] == name, "improvement"]
        np.testing.assert_allclose(np.sort(drawn), np.sort(wanted))
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert "OE" in labels
    assert "EDL (not run)" in labels


def test_curves_are_those_of_the_metric_and_none_is_below_the_perfect_one(samples):
    found = plots.risk_points(samples, most=1000)
    part = samples.query("panel == 'CIFAR, all' and method == 'Ensemble'")
    wanted = metrics.risk_coverage(part["score"], (part["kind"] == "").to_numpy())
    ours = found.query("panel == 'CIFAR, all' and method == 'Ensemble'")
    np.testing.assert_array_equal(ours[["coverage", "risk"]].to_numpy().T, wanted)
    best = found[found["method"] == "perfect ranking"].set_index(["panel", "coverage"])["risk"]
    both = found.join(best.rename("least"), on=["panel", "coverage"])
    assert len(best) == 240
    assert (both["risk"] >= both["least"] - 1e-12).all()


def test_operating_points_keep_the_risk_and_bars_show_them(samples):
    table = plots.risk_table(samples, risk=0.4)
    assert table["of"].sum() == len(samples)
    for (_, _), part in table.groupby(["panel", "method"]):
        errors = part.loc[part["kind"] != "right", "accepted"].sum()
        assert errors <= 0.4 * part["accepted"].sum()
        assert part["coverage"].iloc[0] == part["accepted"].sum() / 120
    axes = plots.accepted_at_risk(samples, risk=0.4).axes
    for ax, (_, part) in zip(axes, table.groupby("panel", sort=False), strict=True):
        widths = [bar.get_width() for bar in ax.patches]
        assert sorted(widths) == sorted(part["accepted"])
        ends = max(bar.get_x() + bar.get_width() for bar in ax.patches)
        assert ends == part.groupby("method")["accepted"].sum().max()


def test_a_kind_keeps_its_colour_whether_right_samples_are_shown_or_not(samples):
    table = plots.risk_table(samples, risk=0.4)
    colors = []
    for part in (table, table[table["kind"] != "right"]):
        figure = plots.stacked_errors(part, value="accepted", label="x")
        handles, labels = figure.axes[0].get_legend_handles_labels()
        colors.append(
            {n: h.patches[0].get_facecolor() for n, h in zip(labels, handles, strict=True)}
        )
    assert colors[1].items() <= colors[0].items()
    assert len(set(colors[0].values())) == 4


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda s: plots.risk_points(s.drop(columns="kind")), "kind, score; got"),
        (lambda s: plots.risk_table(s.drop(columns="score"), risk=0.1), "score; got"),
        (lambda s: plots.risk_table(s, risk=2), "rate in"),
        (lambda s: plots.risk_curves(s, risk=0.1), "coverage, risk; got"),
        (lambda s: plots.stacked_errors(s, value="part", label=""), "part; got"),
        (lambda s: plots.improvements(s, about=""), "improvement, low, high; got"),
        (lambda s: plots.improvement_points(s, np.ones((1, 1))), "side, method, run; got"),
    ],
)
def test_a_missing_column_is_named(samples, call, reason):
    with pytest.raises(ValueError, match=reason):
        call(samples)
