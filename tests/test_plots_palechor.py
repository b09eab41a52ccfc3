"""Figures of Palechor et al. 2023 show the numbers that metrics gives."""

import itertools
from functools import cache

import numpy as np
import pandas as pd
import pytest

from osnb import metrics, plots
from osnb.evidence import frames

PROTOCOLS, LOSSES = ("p1", "p2", "p3"), ("softmax", "background", "entropic")
FOUR = (*LOSSES, "objectosphere")


def one_run(protocol="p1", loss="softmax", seed=0, samples=40, digits=2):
    """The scores table of one run: scores rise from unknown to negative to known."""
    rng = np.random.default_rng([PROTOCOLS.index(protocol), len(loss), seed])
    role = np.repeat(["known", "negative", "unknown"], [samples, samples // 2, samples - 7])
    logit = rng.normal(np.select([role == "known", role == "negative"], [2, 1], 0), 1.5)
    label = np.select(
        [role == "known", role == "negative"], [rng.integers(0, 5, len(role)), -1], -2
    )
    pred = np.where(rng.random(len(role)) < 0.7, label.clip(0), 4)
    score = (1 / (1 + np.exp(-logit))).round(digits)
    return pd.DataFrame(
        {"benchmark": protocol, "method": loss, "seed": seed, "role": role, "label": label}
        | {"pred": pred, "max_softmax": score, "sample": [f"i{i:04}" for i in range(len(role))]}
        | {"class": [f"{name}{i % 7}" for i, name in enumerate(role)]}
        | {"target": np.where((label >= 0) & (pred != label), score / 5, score)}
    )


@cache
def many_runs(seeds=2, losses=LOSSES, protocols=PROTOCOLS, **sizes):
    runs = itertools.product(protocols, losses, range(seeds))
    return pd.concat([one_run(*run, **sizes) for run in runs], ignore_index=True)


def named(runs, more=""):
    """Runs of one loss under long names, as own runs have."""
    names = (f"paper_cifar10_fast-{more}epochs8-seed{i}" for i in range(runs))
    return pd.concat([one_run().assign(method=name) for name in names], ignore_index=True)


def history():
    rng = np.random.default_rng(0)
    rows = [(*run, e) for run in itertools.product(PROTOCOLS, LOSSES, (0, 1)) for e in (1, 2, 3)]
    frame = pd.DataFrame(rows, columns=["benchmark", "method", "seed", "epoch"])
    return frame.assign(gamma_plus=rng.random(54), gamma_minus=rng.random(54))


def progress():
    """The history of one run, as `train.fit` writes it."""
    return pd.DataFrame(
        {"epoch": [1, 2, 3], "learning_rate": 0.1, "loss": [3.0, 2.0, 1.5]}
        | {"gamma_plus": [0.1, 0.4, 0.3], "accuracy": [0.2, 0.5, 0.6], "best": [0.55, 0.7, 0.65]}
    )


PATHS = {
    "n3": [("n0", "entity"), ("n1", "whole"), ("n2", "animal"), ("n3", "dog")],
    "n6": [("n0", "entity"), ("n1", "whole"), ("n2", "animal"), ("n5", "feline"), ("n6", "lion")],
    "n5": [("n0", "entity"), ("n1", "whole"), ("n2", "animal"), ("n5", "feline")],
    "n8": [("n0", "entity"), ("n1", "whole"), ("n7", "device"), ("n8", "computer")],
}
COUNTS = pd.DataFrame(
    [
        ("p1", "known", "n3", 116),
        ("p1", "unknown", "n8", 121),
        ("p2", "negative", "n5", 8),
        ("p3", "known", "n6", 4),
        ("p3", "negative", "n6", 3),
        ("p3", "unknown", "n6", 1),
    ],
    columns=["protocol", "role", "superclass_wnid", "classes"],
)
KNOWN, UNKNOWN = np.array([0.9, 0.8, 0.7, 0.6, 0.3]), np.array([0.85, 0.5, 0.4, 0.2, 0.1])
CORRECT = np.array([True, True, False, True, True])


def rules(*names):
    """The same scores under each convention of OSCR."""
    names = names or ("exact", "palechor", "bisgin", "arpl")
    return {c: metrics.oscr(KNOWN, CORRECT, UNKNOWN, convention=c) for c in names}


def binned(table, *, bins=30, edges="common"):
    by = "benchmark", "method", "role"
    return frames.histograms(table, "target", *by, bins=bins, edges=edges)


def gradients():
    z = np.linspace(-4, 4, 9)
    rows = [pd.DataFrame({"logit": z, "loss": x, "value": z**2, "gradient": 2 * z}) for x in LOSSES]
    return pd.concat(rows)


def distances():
    rng = np.random.default_rng(0)
    steps = rng.integers(2, 24, 900)
    return plots.distance_summary(steps, steps**0.5 + rng.random(900))


IMAGES = np.random.default_rng(0).integers(0, 256, (8, 3, 16, 16), dtype=np.uint8)

FIGURES = {
    "figure_1": lambda: plots.class_tree(plots.reduced_tree(PATHS), COUNTS),
    "figure_2": lambda: plots.oscr_curves(
        frames.oscr_points(many_runs(), score="target"), log=True
    ),
    "figure_3": lambda: plots.confidence_history(history()),
    "figure_4": lambda: plots.score_histograms(binned(many_runs())),
    "figure_5": lambda: plots.oscr_curves(
        frames.oscr_points(many_runs(seeds=1), score="target"), log=False
    ),
    "figure_6": lambda: plots.oscr_curves(
        frames.oscr_points(many_runs(losses=FOUR), score="target"), log=True, by="benchmark"
    ),
    "oscr": lambda: plots.oscr(rules()),
    "negative_gradient": lambda: plots.negative_gradient(gradients()),
    "contact_sheet": lambda: plots.contact_sheet(
        IMAGES, columns=4, rows=["Chihuahua", "airliner"], titles=[f"no. {i}" for i in range(8)]
    ),
    "distance_boxes": lambda: plots.distance_boxes(distances(), title="rank correlation 0.9"),
    "training": lambda: plots.training(progress()),
    "twelve runs": lambda: plots.run_curves(frames.oscr_points(named(12), score="target")),
    "long names": lambda: plots.score_histograms(binned(named(3, "augmentationcrop_flip-"))),
    "operating_point": lambda: plots.operating_point(one_run(), score="max_softmax", threshold=0.6),
}


# Curves


def test_every_point_is_the_metrics_ccr_at_that_fpr():
    table = many_runs()
    points = frames.oscr_points(table, score="target")
    runs = dict(list(table.groupby(["benchmark", "method", "seed"])))
    for row in points[points["fpr"] > 0].itertuples():
        ccr = []
        for seed in range(row.seeds):
            run = runs[row.benchmark, row.method, seed]
            known, other = run[run["role"] == "known"], run[run["role"] == row.role]
            correct = (known["pred"] == known["label"]).to_numpy()
            columns = known["target"].to_numpy(), correct, other["target"].to_numpy()
            ccr.append(metrics.ccr_at_fpr(*columns, fpr=row.fpr))
        assert row.ccr == pytest.approx(np.mean(ccr))
        assert row.seeds < 2 or row.sd_seeds == pytest.approx(np.std(ccr, ddof=1))


def test_points_go_from_no_false_positive_to_the_closed_set_accuracy():
    table = one_run()
    points = frames.oscr_points(table, score="max_softmax").query("role == 'unknown'")
    known = table[table["role"] == "known"]
    assert points["fpr"].iloc[[0, -1]].tolist() == [0, 1]
    assert points["ccr"].iloc[-1] == (known["pred"] == known["label"]).mean()
    np.testing.assert_allclose(points["fpr"] * 33, (points["fpr"] * 33).round(), atol=1e-12)


def test_a_rule_that_ties_all_samples_has_no_point_before_the_tie():
    table = one_run().assign(max_softmax=1.0)
    points = frames.oscr_points(table, score="max_softmax").query("role == 'unknown'")
    assert (points["ccr"][:-1] == 0).all()
    assert points["ccr"].iloc[-1] > 0


def test_a_score_that_a_run_lacks_is_named_with_the_run():
    table = many_runs(protocols=("p1", "p2"))
    mine = table["target"].where((table["benchmark"] != "p2") | (table["method"] != "entropic"))
    with pytest.raises(ValueError, match="in 'mine' of each run; there is none in: p2 entropic 0"):
        frames.oscr_points(table.assign(mine=mine), score="mine")


@pytest.mark.parametrize("by", ["method", "benchmark"])
@pytest.mark.parametrize("log", [True, False])
def test_lines_and_bands_are_those_of_the_points(by, log):
    points = frames.oscr_points(many_runs(seeds=3, protocols=("p1", "p2")), score="target")
    figure = plots.oscr_curves(points, log=log, by=by)
    corner = points.query("role == 'negative' and benchmark == 'p1' and method == 'softmax'")
    corner = corner[corner["fpr"] >= 1 / 100 * log]
    line, band = figure.axes[0].lines[0], figure.axes[0].collections[0].get_paths()[0].vertices
    np.testing.assert_array_equal(line.get_xydata(), corner[["fpr", "ccr"]])
    at = corner["fpr"].iloc[len(corner) // 2]
    ends = corner.loc[corner["fpr"] == at, ["low", "high"]].to_numpy()[0]
    assert sorted(set(band[band[:, 0] == at, 1])) == list(ends)
    assert figure.axes[0].get_xscale() == ("log" if log else "linear")
    drawn = [len(ax.lines) for ax in figure.axes]
    assert drawn == ([3] * 4 if by == "method" else [2] * 6)


def test_losses_without_a_style_differ_and_are_drawn_alike_in_every_panel():
    names = {"background": "mine", "entropic": "yours"}
    table = many_runs(seeds=1, protocols=("p1", "p2")).replace({"method": names})
    table = table.query("benchmark == 'p2' or method != 'mine'").reset_index(drop=True)
    figure = plots.oscr_curves(frames.oscr_points(table, score="target"), log=False)
    drawn = [line for ax in figure.axes for line in ax.lines]
    looks = {(line.get_label(), line.get_color(), str(line._dash_pattern)) for line in drawn}
    assert len(looks) == len({look[1:] for look in looks}) == 3


def test_a_point_is_the_mean_of_the_seeds_and_its_interval_that_of_the_means_resamples():
    table = many_runs(seeds=3, protocols=("p1",))
    points = frames.oscr_points(table, score="target", unit="sample", resamples=50)
    row = points.query("role == 'unknown' and method == 'entropic' and fpr > 0.5").iloc[0]
    runs = table.query("method == 'entropic'").sort_values(["seed", "sample"])
    known, other = (runs[runs["role"] == role] for role in ("known", "unknown"))
    weights = [
        metrics.bootstrap_weights(part["sample"].unique(), seed=[0, 0, role], resamples=50)
        for part, role in ((known, 0), (other, 2))
    ]
    means = np.zeros(51)
    for seed in range(3):
        k, u = (part[part["seed"] == seed] for part in (known, other))
        correct = (k["pred"] == k["label"]).to_numpy()
        for i in range(51):
            copies = zip((k["target"], correct, u["target"]), [*weights[:1], *weights], strict=True)
            columns = (np.repeat(column, w[i]) for column, w in copies)
            means[i] += metrics.ccr_at_fpr(*columns, fpr=row["fpr"]) / 3
    assert row["ccr"] == pytest.approx(means[0])
    assert [row["low"], row["high"]] == pytest.approx(list(np.percentile(means[1:], [2.5, 97.5])))
    assert row["seeds"] == 3
    assert row["sd_seeds"] > 0


def test_a_curve_s_band_leaves_each_source_as_large_as_it_is():
    table = many_runs(seeds=1, protocols=("p1",)).query("role != 'negative'")
    far = (table["role"] == "unknown") & (np.arange(len(table)) % 2 == 0)
    table = table.assign(target=np.where(far, 2.0, table["target"]))  # every second one is accepted
    ends = {}
    for name, source in {"one": "a", "two": np.where(far, "far", "a")}.items():
        points = frames.oscr_points(table.assign(source=source), score="target", unit="sample")
        ends[name] = points.query("method == 'softmax' and 0.4 < fpr < 0.7")
    pd.testing.assert_series_equal(ends["one"]["ccr"], ends["two"]["ccr"])
    width = {name: (rows["high"] - rows["low"]).mean() for name, rows in ends.items()}
    assert width["one"] > 1.3 * width["two"]


def test_history_lines_are_the_mean_over_seeds():
    frame = history()
    figure = plots.confidence_history(frame)
    assert len(figure.axes) == 6
    part = frame.query("benchmark == 'p2' and method == 'background'")
    line = figure.axes[3].lines[1]
    np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3])
    np.testing.assert_allclose(line.get_ydata(), part.groupby("epoch")["gamma_minus"].mean())


# Histograms and one threshold


def test_densities_count_every_sample_once_and_have_area_one():
    table = many_runs()
    for edges in ({"bins": np.linspace(0, 1, 8)}, {"edges": "common"}, {"edges": "own"}):
        bars = binned(table, **edges)
        widths = (bars["right"] - bars["left"]) * bars["density"]
        keys = [bars[column] for column in ("benchmark", "method", "role")]
        np.testing.assert_allclose(widths.groupby(keys).sum(), 1)
        assert bars["samples"].sum() == len(table)
    one = bars.query("benchmark == 'p1' and method == 'softmax' and role == 'known'")
    values = table.query("benchmark == 'p1' and method == 'softmax' and role == 'known'")["target"]
    theirs, at = np.histogram(values, 30, density=True)
    np.testing.assert_allclose(one["density"], theirs)
    np.testing.assert_allclose(one["left"], at[:-1])


def test_common_edges_are_shared_and_own_edges_are_not():
    table = one_run()
    common = binned(table, bins=7)
    own = binned(table, edges="own", bins=7)
    assert common["left"].nunique() == 7 < own["left"].nunique()
    assert "own range" in plots.score_histograms(own).get_supxlabel()
    assert "own range" not in plots.score_histograms(common).get_supxlabel()


def test_histograms_draw_the_densities_with_a_look_of_their_own():
    bars = binned(many_runs())
    figure = plots.score_histograms(bars)
    assert len(figure.axes) == 9
    known, negative, unknown = figure.axes[4].patches
    part = bars.query("benchmark == 'p2' and method == 'background' and role == 'unknown'")
    np.testing.assert_array_equal(unknown.get_data().values, part["density"])
    assert known.get_fill() and not negative.get_fill() and not unknown.get_fill()  # noqa: PT018
    assert negative.get_linestyle() != unknown.get_linestyle()


def test_benchmarks_that_are_binned_apart_share_no_score_axis_and_a_gap_is_said():
    table = many_runs().query("benchmark != 'p1' or method != 'entropic'").reset_index(drop=True)
    table.loc[table["benchmark"] == "p1", "target"] *= 9
    bars = pd.concat([binned(part) for _, part in table.groupby("benchmark", sort=False)])
    axes = np.reshape(plots.score_histograms(bars).axes, (3, 3))
    ends = [[round(ax.get_xlim()[1], 6) for ax in row] for row in axes]
    assert all(len({*row}) == 1 for row in ends)
    assert len({row[0] for row in ends}) > 1
    for words, empty in (("not run", {}), ("collapsed", {("p1", "entropic"): "collapsed"})):
        axes = plots.score_histograms(bars, empty=empty).axes
        assert [text.get_text() for ax in axes for text in ax.texts] == [words]


@pytest.mark.parametrize("threshold", [-1, 0.5, 0.9, 2])
def test_counts_at_a_threshold_match_the_definition(threshold):
    table = one_run(digits=1)
    table.loc[table["role"] != "known", "pred"] = -1  # no known class, and still no rejection
    counts = frames.operating_counts(table, score="max_softmax", threshold=threshold)
    for row in counts.itertuples():
        samples = [s for s in table.itertuples() if s.role == row.role]
        taken = [s for s in samples if s.max_softmax >= threshold]
        right = sum(s.pred == s.label and s.role == "known" for s in taken)
        assert (row.samples, row.right) == (len(samples), right)
        assert (row.wrong, row.rejected) == (len(taken) - right, len(samples) - len(taken))
        assert row.rate == (right if row.role == "known" else len(taken)) / len(samples)


def test_the_marks_of_a_threshold_lie_on_the_metrics_curve():
    table = one_run()
    threshold = table["max_softmax"].iloc[3]
    axes = plots.operating_point(table, score="max_softmax", threshold=threshold).axes[0]
    known = table[table["role"] == "known"]
    correct = (known["pred"] == known["label"]).to_numpy()
    for role, curve, mark in zip(
        ("negative", "unknown"), axes.lines[::2], axes.lines[1::2], strict=True
    ):
        other = table.loc[table["role"] == role, "max_softmax"].to_numpy()
        fpr, ccr = metrics.oscr(known["max_softmax"].to_numpy(), correct, other)
        np.testing.assert_array_equal(curve.get_xydata(), np.c_[fpr, ccr])
        distinct = np.unique(np.r_[known["max_softmax"], other])[::-1]
        index = np.searchsorted(-distinct, -threshold, side="right")
        assert mark.get_xydata().tolist() == [[fpr[index], ccr[index]]]


def test_the_cells_of_a_threshold_hold_the_counts():
    figure = plots.operating_point(one_run(), score="max_softmax", threshold=0.6)
    counts = frames.operating_counts(one_run(), score="max_softmax", threshold=0.6)
    cells = [text.get_text().split("\n")[0] for text in figure.axes[2].texts]
    wanted = counts[["right", "wrong", "rejected"]].to_numpy().ravel().astype(str)
    wanted[[3, 6]] = "–"
    assert cells == wanted.tolist()
    assert figure.axes[1].lines[0].get_xdata()[0] == 0.6


# The tree


def test_the_reduced_tree_keeps_the_asked_and_where_paths_part():
    tree = plots.reduced_tree(PATHS)
    assert list(tree.itertuples(index=False, name=None)) == [
        ("n1", "", "whole", 0, 0),
        ("n2", "n1", "animal", 1, 1),
        ("n3", "n2", "dog", 2, 1),
        ("n5", "n2", "feline", 2, 1),
        ("n6", "n5", "lion", 3, 1),
        ("n8", "n1", "computer", 1, 2),
    ]


def test_the_reduced_tree_keeps_every_distance_of_a_random_tree():
    rng = np.random.default_rng(0)
    above = {f"n{i}": f"n{rng.integers(i)}" for i in range(1, 60)}

    def path(node):
        return [*path(above[node]), (node, node)] if node in above else [(node, node)]

    asked = [f"n{i}" for i in rng.choice(np.arange(1, 60), 15, replace=False)]
    tree = plots.reduced_tree({node: path(node) for node in asked}).set_index("wnid")
    assert set(asked) <= set(tree.index)
    children = tree["parent"].value_counts()
    assert all(children.get(node, 0) > 1 for node in set(tree.index) - set(asked))
    for node in asked:
        steps, at = 0, node
        while tree["parent"][at]:
            steps, at = steps + tree["steps"][at], tree["parent"][at]
        assert steps == len(path(node)) - len(path(at))


# Lessons


def test_each_rule_is_drawn_over_the_first_with_its_area():
    figure, curves = plots.oscr(rules()), rules()
    for ax, name in zip(figure.axes, ("palechor", "bisgin", "arpl"), strict=True):
        np.testing.assert_array_equal(ax.lines[0].get_xydata(), np.transpose(curves[name]))
        np.testing.assert_array_equal(ax.lines[1].get_xydata(), np.transpose(curves["exact"]))
        area = metrics.oscr_area(KNOWN, CORRECT, UNKNOWN, convention=name)
        assert ax.get_title() == f"{name}, area {area:.3f}"
        assert ax.collections[0].get_datalim(ax.transData).x0 == curves[name][0][0]
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts[1] == f"exact, area {metrics.oscr_area(KNOWN, CORRECT, UNKNOWN):.3f}"


def test_a_sheet_shows_each_image_in_its_place():
    sheet = plots.contact_sheet(IMAGES[:7], columns=4)
    shown = [ax.get_images()[0].get_array() if ax.get_images() else None for ax in sheet.axes]
    np.testing.assert_array_equal(shown[6], IMAGES[6].transpose(1, 2, 0))
    assert len(shown) == 8
    assert shown[7] is None
    grey = plots.contact_sheet(IMAGES[:1, :1] // 2, columns=1).axes[0].get_images()[0]
    assert grey.get_clim() == (0, 255)


def test_distance_summary_gives_numpys_quantiles():
    rng = np.random.default_rng(0)
    steps, distance = rng.integers(1, 4, 60), rng.random(60)
    summary = plots.distance_summary(steps, distance)
    assert summary["steps"].tolist() == [1, 2, 3]
    assert summary["pairs"].sum() == 60
    expected = np.quantile(distance[steps == 2], [0.05, 0.25, 0.5, 0.75, 0.95])
    np.testing.assert_allclose(summary.iloc[1, 2:].to_numpy(float), expected)


# Bad input, and input left alone


def test_a_run_is_drawn_as_far_as_it_went_with_a_dot_at_its_best_epoch():
    figure = plots.training(progress())
    left, right = (ax.lines for ax in figure.axes)
    assert [line.get_xydata().tolist() for line in left] == [[[1, 3], [2, 2], [3, 1.5]]]
    assert [line.get_ydata().tolist() for line in right] == [[0.1, 0.4, 0.3], [0.2, 0.5, 0.6]]
    assert [line.get_markevery() for line in (*left, *right)] == [[1]] * 3
    assert figure.get_supxlabel() == "epoch 3: loss 1.500; dot: the best epoch so far"
    assert len(plots.training(progress()[["epoch", "loss"]][:1]).axes[1].lines) == 0


def test_measures_of_a_training_have_a_look_each_and_no_best_epoch_no_dot():
    rates = {f"auroc_{rule}": [0.5, 0.6, 0.7] for rule in ("max_logit", "max_softmax", "norm")}
    figure = plots.training(progress().assign(**rates, best=np.nan))
    lines = figure.axes[1].lines
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == len(lines) == 5
    assert {line.get_marker() for line in lines} == {"None"}
    assert figure.get_supxlabel() == "epoch 3: loss 1.500"
    assert figure.axes[1].get_ylabel() == "on held-out images"  # validation, or test images
