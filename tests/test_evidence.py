"""Evidence from scores tables against definitions read slowly; one naming; shared draws."""

import ast
import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score
from test_cli import osnb

from osnb import metrics, plots
from osnb import scores as rules
from osnb.base import workbook
from osnb.evidence import across, build, claims, drawings, kim2021, names, own, palechor2023, tables
from osnb.evidence.across import (
    averaged,
    gains,
    inside_splits,
    kendall_w,
    mean_over,
    over_splits,
    spearman,
)
from osnb.evidence.build import Evidence, Missing, evidence, of_places, units
from osnb.evidence.names import ALL, TASKS, WITHOUT

RUN = {"benchmark": "tinyimagenet", "protocol": "quickdraw_tinyimagenet", "split": 0, "seed": 0}
RUN |= {"network": "conv 16", "regime": "baseline", "method": "softmax", "place": "tinyimagenet"}
RUN |= {"family": "standard"}
RULES = ("max_softmax_log_odds", "max_logit", "energy", "odin")


@pytest.fixture
def runs(tmp_path):
    """A function that writes a run's scores table, of whole numbers so that many tie."""
    made = []

    def add(
        groups=("near", "far"), others=("gaussian_noise",), seed=0, rules=RULES, wrong=12, **of
    ):
        rng, name = np.random.default_rng(seed), f"r{len(made)}"
        parts = [
            ("known", "quickdraw", "", k % 3, k % 3 if k >= wrong else (k + 1) % 3)
            for k in range(40)
        ]
        parts += [("unknown", "quickdraw", group, -2, 0) for group in groups for _ in range(10)]
        parts += [("unknown", other, "far", -2, 1) for other in others for _ in range(9)]
        parts += [("negative", "quickdraw", "", -1, 2)] * 12
        frame = pd.DataFrame(parts, columns=["role", "source", "group", "label", "pred"])
        frame = frame.assign(sample=[f"s{i:03}" for i in range(len(frame))])
        number = (frame.index % 5).astype(str)
        frame["class"] = frame["role"] + frame["source"] + frame["group"] + number
        for rule in (*RULES, "target", "max_softmax"):
            frame[rule] = rng.normal((frame["role"] == "known") * 2, 2, len(frame)).round()
        for rule in ("target", "max_softmax"):
            frame[rule] = frame[rule].rank(pct=True)
        frame = frame.sample(frac=1, random_state=seed)
        path = tmp_path / name / "scores.parquet"
        tables.write(path, frame, {"notebook": "n", "run": name, "parameters": {}})
        made.append(RUN | {"run": name, "path": str(path)} | of)
        return frame

    add.frame = lambda: pd.DataFrame(made)
    return add


def by_hand(known, right, unknown, inside=None):
    """Every measure from its definition, pair by pair and threshold by threshold."""
    inside = known if inside is None else inside
    pairs = [(a > b) + (a == b) / 2 for a in inside for b in unknown]
    steps = sorted({*inside, *unknown}, reverse=True)
    first = next(t for t in steps if (inside >= t).mean() >= 0.95)
    found = {"accuracy": right.mean(), "auroc": np.mean(pairs), "fpr95": (unknown >= first).mean()}
    rates = [((unknown >= t).mean(), (known[right] >= t).sum() / len(known)) for t in steps]
    area = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in itertools.pairwise([(0, 0), *rates]))
    ccr = [max([c for f, c in rates if f <= q], default=0) for q in palechor2023.FPRS]
    ccr = {f"ccr_at_{q:g}": c for q, c in zip(palechor2023.FPRS, ccr, strict=True)}
    return found | {"oscr": area} | ccr


def rows_of(scores, task, source):
    """The unknown samples that a task asks about, by its words."""
    unknown, noise = scores["role"] == "unknown", scores["source"] == "gaussian_noise"
    return {
        "negative": scores["role"] == "negative",
        "near": scores["group"] == "near",
        "far": (noise if "noise" in source else (scores["group"] == "far") & ~noise),
        "noise": noise,
        "unknown": unknown & ~(noise & (source == WITHOUT)),
    }[task]


@pytest.mark.parametrize(
    ("size", "many", "unit"), [("paper", 6, "sample"), ("paper", 5, "class"), ("mini", 6, "class")]
)
def test_of_few_classes_the_papers_own_data_draw_images(runs, monkeypatch, size, many, unit):
    monkeypatch.setattr(build, "MANY", many)  # a role has 5 here
    runs(size=size)
    runs(size=size, place="elsewhere", benchmark="elsewhere")
    drawn = {"resamples": 20, "seed": 3}
    found, over = of_places(runs.frame(), "shifts", ["odin"], unit="class", **drawn)
    expected = evidence(runs.frame(), "shifts", ["odin"], unit=unit, **drawn)
    np.testing.assert_array_equal(found.column("auroc"), expected.column("auroc"))
    assert over.to_dict() == {"tinyimagenet": unit, "elsewhere": unit}
    over["elsewhere"] = "class"
    assert units(over) == ("classes" if unit == "class" else "images (classes: elsewhere)")


@pytest.mark.parametrize("tasks", ["roles", "unified", "cross"])
def test_each_measure_of_each_task_is_the_one_by_hand(runs, tasks):
    scores = runs()
    found = evidence(runs.frame(), tasks, ["odin"], resamples=3)
    known = scores[scores["role"] == "known"]
    right = (known["pred"] == known["label"]).to_numpy()
    score = known["odin"].to_numpy()
    for at, row in found.points().iterrows():
        if row["task"] == "wrong":
            told = by_hand(score, right, score[~right], score[right])
            told |= {"aurc": metrics.aurc(score, right), "oscr": np.nan}
        else:
            unknown = scores.loc[rows_of(scores, row["task"], row["source"]), "odin"].to_numpy()
            told = by_hand(score, right, unknown)
            pool = np.r_[score, unknown], np.r_[right, np.zeros(len(unknown), bool)]
            told |= {"aurc": metrics.aurc(*pool)}
        asked = TASKS[tasks].asked
        for name in {*asked.get(row["task"], asked[""])} & set(told):
            assert row[name] == pytest.approx(told[name], nan_ok=True), (row["task"], name)
        assert found.values["accuracy"].shape == (len(found.keys), 4), at


@pytest.mark.parametrize("tasks", ["unified", "shifts"])
def test_measures_that_are_asked_for_alone_are_those_of_all(runs, tasks):
    runs()
    every = evidence(runs.frame(), tasks, ["odin"], resamples=3)
    some = evidence(runs.frame(), tasks, ["odin"], measures=["auroc"], resamples=3)
    np.testing.assert_array_equal(some.values.pop("auroc"), every.values["auroc"])
    assert not some.values
    with pytest.raises(ValueError, match=r"measures among .*auroc.*; got aurocs"):
        evidence(runs.frame(), tasks, ["odin"], measures=["aurocs"], resamples=3)


@pytest.mark.parametrize(
    "more", [{"loss": "background"}, {"training": "osrci"}, {"training": "proser"}]
)
def test_gamma_is_equation_7_and_more_outputs_than_known_classes_have_no_offset(runs, more):
    plain, kept = runs(loss="softmax", training="plain"), runs(seed=1, **more)
    points = evidence(runs.frame(), "roles", ["odin"], resamples=0).points()
    for scores, run, offset in ((plain, "r0", 1 / 3), (kept, "r1", 0.0)):
        for task in ("negative", "unknown"):
            row = points[(points["run"] == run) & (points["task"] == task)].iloc[0]
            part = scores[scores["role"] == task]
            assert row["gamma_plus"] == pytest.approx(
                scores["target"][scores["role"] == "known"].mean()
            )
            assert row["gamma_minus"] == pytest.approx(1 - part["max_softmax"].mean() + offset)
            assert row["fpr_at_0.5"] == pytest.approx((part["max_softmax"] >= 0.5).mean())


def test_a_run_without_errors_has_no_number_for_wrong_and_the_mean_is_of_the_others(runs):
    runs(wrong=0)
    runs(seed=1)
    found = evidence(runs.frame().assign(seed=[0, 1]), "cross", ["odin"], resamples=20)
    wrong = found.points().query("task == 'wrong'").set_index("seed")
    assert np.isnan(wrong.loc["0", "auroc"])
    assert wrong.loc["0", "aurc"] == 0
    cell = averaged(found, "method", "task").points().query("task == 'wrong'").iloc[0]
    assert cell["auroc"] == wrong.loc["1", "auroc"]
    assert cell["aurc"] == wrong["aurc"].mean()
    assert (cell["run"], cell["rows"]) == ("r0, r1", 2)


def test_a_resample_that_lacks_one_number_of_a_mean_has_none():
    keys = pd.DataFrame({"run": ["a", "b"], "place": "p"})
    numbers = Evidence(keys, {"auroc": np.array([[0.25, np.nan, 0.5], [0.5, 0.75, 1.0]])})
    found = averaged(numbers, "place").values["auroc"]
    np.testing.assert_array_equal(found, [[0.375, np.nan, 0.75]])


def test_classes_of_one_name_in_two_sources_are_two():
    rows = pd.DataFrame({"source": ["svhn", "mnist"], "class": ["0", "0"]})
    assert build._units(rows, "class").nunique() == 2


@pytest.mark.parametrize("tasks", [*TASKS])
def test_runs_of_a_benchmark_share_their_draws_so_that_differences_are_paired(runs, tasks):
    runs()
    runs(method="arpl")
    found = evidence(runs.frame(), tasks, ["odin"], resamples=40)
    for name, values in found.values.items():
        one, two = (values[found.keys["run"] == run] for run in ("r0", "r1"))
        np.testing.assert_array_equal(one, two, err_msg=name)
    assert np.nanmax(np.ptp(found.values["auroc"], axis=1)) > 0
    alone = evidence(runs.frame()[:1], tasks, ["odin"], resamples=40)
    np.testing.assert_array_equal(alone.values["auroc"], found.values["auroc"][: len(alone.keys)])


def test_tasks_benchmarks_and_seeds_of_draws_are_drawn_apart(runs):
    runs()
    one = evidence(runs.frame(), "roles", ["odin"], resamples=40)("accuracy")
    moved = evidence(runs.frame().assign(protocol="p2"), "roles", ["odin"], resamples=40)
    again = evidence(runs.frame(), "roles", ["odin"], resamples=40, seed=1)
    assert one[0] == moved("accuracy")[0] == again("accuracy")[0]
    assert (one != moved("accuracy")).any()
    assert (one != again("accuracy")).any()


def test_runs_with_different_test_samples_are_refused_and_named(runs):
    runs()
    runs(groups=("near", "far", "far"))
    with pytest.raises(ValueError, match="r0 and r1 have different ones"):
        evidence(runs.frame(), "roles", ["odin"], resamples=0)
    two = runs.frame().assign(benchmark=["cifar10", "closed_ten"])  # in one data set's place
    assert len(evidence(two, "roles", ["odin"], resamples=0).keys)
    rows, draws = pd.DataFrame({"sample": [*"ab"], "class": [*"xy"]}), build.Draws("class", 0, 0)
    draws(rows, "known", {"run": "r2"})
    with pytest.raises(ValueError, match="r2 and r3 have different ones"):  # in other classes
        draws(rows.assign(**{"class": "x"}), "known", {"run": "r3"})


def test_intervals_over_classes_are_wider_where_classes_differ(runs):
    scores = runs(groups=("",) * 9, others=())
    hard = scores["class"].isin(["unknownquickdraw0", "unknownquickdraw1"])
    scores["odin"] += 9.0 * hard
    path = Path(runs.frame()["path"][0])
    tables.write(path, scores, {"notebook": "n", "run": "r0", "parameters": {}})
    widths = []
    for unit in ("sample", "class"):
        found = evidence(runs.frame(), "roles", ["odin"], unit=unit, resamples=200)
        widths.append(np.ptp(metrics.interval(found("auroc", task="unknown"))[1:]))
    assert widths[1] > 1.5 * widths[0]


# Vaze et al.


def test_hard_is_hard_and_medium_and_a_tenth_of_the_random_classes_stands_for_1k(runs):
    scores = runs(("easy", "medium", "hard", "random"), (), family="ssb", place="imagenet")
    found = evidence(runs.frame(), "shifts", ["odin"], resamples=0)
    groups = {"hard": ["medium", "hard"], "hardest": ["hard"], "easy": ["easy"]}
    groups["random 10k"] = ["random"]
    known = scores["odin"][scores["role"] == "known"].to_numpy()
    for task, group in groups.items():
        unknown = scores["odin"][scores["group"].isin(group)].to_numpy()
        assert found("auroc", task=task)[0] == pytest.approx(metrics.auroc(known, unknown))
    each = scores[scores["group"] == "random"].groupby("class")["odin"]
    ones = [metrics.auroc(known, part.to_numpy()) for _, part in each]
    assert min(abs(found("auroc", task="random 1k")[0] - one) for one in ones) < 1e-12


def test_other_data_sets_are_apart_under_printed_names_and_six_sets_is_their_mean(runs):
    others = ("font_digits", "uniform_noise")
    runs(("near",), others, benchmark="closed", family="ood", place="cifar100")
    found = evidence(runs.frame(), "shifts", "vaze2022", resamples=5)
    assert set(found.keys["source"]) == {"cifar10", "svhn", "uniform-noise"}
    assert set(found.names("printed")) == {"msp", "mls", "odin", "energy score"}
    assert mean_over(found, "source", "six-sets", task="near") is found  # a single set
    both = mean_over(found, "source", "six-sets")
    parts = found.rows("auroc", printed="mls")
    np.testing.assert_allclose(both("auroc", printed="mls", source="six-sets"), parts.mean(axis=0))


def test_the_standard_deviation_is_over_splits_not_over_seeds(runs):
    for split, seed in ((0, 0), (0, 1), (1, 2)):
        runs(("",), (), seed=seed + 10, split=split)
    found = over_splits(evidence(runs.frame(), "shifts", ["odin"], resamples=4), "auroc")
    one, two, three = found.rows("auroc")
    spread = found.column("auroc_std")[:, 0]
    np.testing.assert_allclose(spread, (abs((one + two) / 2 - three) / np.sqrt(2))[0])
    alone = over_splits(evidence(runs.frame()[:2], "shifts", ["odin"], resamples=4), "auroc")
    with pytest.raises(Missing, match="auroc_std"):
        alone("auroc_std", task="unknown")


def test_every_rule_is_there_if_it_is_asked_for_and_none_without_a_name_otherwise(runs):
    runs(regime="cutout")
    few, every = (
        evidence(runs.frame(), "shifts", "vaze2022", every_rule=each, resamples=0)
        for each in (0, 1)
    )
    assert few.keys.empty
    assert set(RULES) <= set(every.keys["rule"])
    assert set(every.keys["printed"]) == {""}


# Kim et al.


def test_a_rule_on_the_baseline_s_network_is_a_row_in_print_with_its_accuracy(runs):
    runs(others=("svhn", "gaussian_noise"), place="imagenet")
    found = evidence(runs.frame(), "unified", "kim2021", resamples=0)
    assert found.names("printed") == ["baseline", "odin"]
    one, two = (found("accuracy", task="wrong", printed=m) for m in ("baseline", "odin"))
    assert one == two
    assert set(found.names("source", task="far")) == {"quickdraw", "svhn", "gaussian noise"}
    pools = found.keys.query("task == 'unknown'")["source"]
    assert set(pools) == {ALL, WITHOUT}


def test_the_pool_around_imagenet_has_no_noise_as_in_table_2(runs):
    runs(others=("omniglot_few", "gaussian_noise"), place="imagenet", benchmark="imagenet200")
    found = evidence(runs.frame(), "unified", ["odin"], resamples=0)
    assert set(found.names("source", task="far")) == {"places-82", "caltech-45"}
    assert found.names("source", task="unknown") == [ALL]
    assert kim2021.pools(runs.frame())["fewest"].tolist() == [40 + 20 + 9]


def test_pools_of_other_sets_are_not_compared(runs):
    runs(others=("svhn", "gaussian_noise"))
    runs(others=("svhn",))
    with pytest.raises(ValueError, match=r"r0 and r1 have different ones .* pool unknown all"):
        evidence(runs.frame(), "unified", ["odin"], resamples=2)


def test_the_classes_of_a_file_s_sets_reach_the_claims_that_they_may_turn(runs, monkeypatch):
    runs(place="cifar", benchmark="c", size="paper")
    monkeypatch.setattr(claims, "whole_splits", lambda runs: runs)
    monkeypatch.setattr(claims, "in_print", lambda runs, _: runs)
    found = claims.of_kim2021(runs.frame(), measures=["aurc", "auroc"], resamples=3)
    assert found.fits(task=WITHOUT, source=WITHOUT).any()
    assert found("auroc", task="near").shape == (4,)
    assert found.few(6).sum() == found.fits(task="near").sum() > 0
    assert not found.few(5).any()


def test_runs_of_several_splits_have_draws_of_their_own_samples(runs):
    first, second = runs(split=0), runs(split=1, groups=("far", "near"))
    assert first["class"].tolist() != second["class"].tolist()
    found = evidence(runs.frame(), "unified", ["odin"], resamples=4)
    one, two = found.rows("auroc", task="near")
    assert one[0] != two[0]


def test_confidence_is_the_mean_largest_softmax_of_each_kind(runs):
    scores = runs(others=("svhn",))
    rule = "max_softmax_log_odds"
    table = runs.frame()
    found = evidence(table, "unified", [rule], resamples=3)
    right = (scores["role"] == "known") & (scores["pred"] == scores["label"])
    kinds = {"near": scores["group"] == "near", "wrong": (scores["role"] == "known") & ~right}
    for task, at in kinds.items():
        assert found("confidence", task=task)[0] == pytest.approx(scores["max_softmax"][at].mean())
    assert found("confidence_right", task="wrong")[0] == pytest.approx(
        scores["max_softmax"][right].mean()
    )
    assert (found("confidence", task="near")[1:] != found("confidence", task="near")[0]).any()
    with pytest.raises(Missing):  # of the network, not of another rule
        evidence(table, "unified", ["odin"], resamples=0)("confidence", task="near")


@pytest.mark.parametrize("unit", ["class", "sample"])
@pytest.mark.parametrize("tasks", ["unified", "cross"])
def test_a_draw_leaves_each_set_of_a_pool_as_large_as_it_is(runs, monkeypatch, tasks, unit):
    table = runs(groups=("near", "far"), others=("svhn", "gaussian_noise"))
    seen, summary = {}, build.metrics.bootstrap_summary

    def watched(*scores, weights, names):
        seen[weights[1].shape[1]] = weights[1]
        return summary(*scores, weights=weights, names=names)

    monkeypatch.setattr(build.metrics, "bootstrap_summary", watched)
    evidence(runs.frame(), tasks, ["odin"], unit=unit, resamples=50)
    unknown = table[table["role"] == "unknown"].sort_values("sample", kind="stable")
    quiet = unknown[unknown["source"] != "gaussian_noise"]
    without = {"unified": quiet, "cross": quiet[quiet["group"] == "far"]}[tasks]
    for pool, many in ((unknown, 4), (without, {"unified": 3, "cross": 2}[tasks])):
        copies, sets = seen[len(pool)], pool["source"].astype(str) + pool["group"]
        assert sets.nunique() == many
        for at in sets.groupby(sets).indices.values():
            first = at[~pool[unit].iloc[at].duplicated()]
            assert (copies[:, first].sum(axis=1) == len(first)).all()
            assert (copies[1:, first] != 1).any()


def test_what_a_history_lacks_is_a_dash(monkeypatch):
    history = pd.DataFrame({"norm_known": [1.0, 2.0]})  # of a network without a head
    monkeypatch.setattr(across.tables, "stack", lambda *_, file: history)
    found = across.watched(pd.DataFrame([RUN]), "norm_known", "rows", task="t", resamples=1)
    assert found("norm_known", selection="last")[0] == 2
    with pytest.raises(Missing):
        found("rows", selection="last")


def test_within_takes_the_deviation_over_splits_as_it_is():
    one = np.array([[0.7, 0.1, 0.9], [0.8, 0.9, 0.1], [0.9, 0.5, 0.5]])
    keys = [{"run": "r", "place": "p", "printed": x, "split": n} for x in "ab" for n in "012"]
    numbers = Evidence(pd.DataFrame(keys), {"auroc": np.concatenate([one, one - 0.02])})
    (row,) = across.contrasts(numbers, [("f", "a", "b", "within")]).to_dict("records")
    assert [row["number"], row["low"], row["high"]] == pytest.approx([0.08] * 3)


@pytest.mark.parametrize(("known", "alike"), [(10_000, True), (9_999, False)])
def test_unified_aurcs_have_a_difference_only_where_the_pool_is_as_large_as_table_2(
    tmp_path, known, alike
):
    parts = [("known", "", 0)] * known + [("unknown", "near", -2)] * 34_792 + [("negative", "", -1)]
    frame = pd.DataFrame(parts, columns=["role", "group", "label"]).assign(
        source="i", pred=0, odin=0.0
    )
    frame["sample"], frame["class"] = frame.index.astype(str), "c"
    path = tmp_path / "scores.parquet"
    columns = [*tables.COLUMNS, "odin"]
    tables.write(path, frame[columns], {"notebook": "n", "run": "r", "parameters": {}})
    pools = kim2021.pools(pd.DataFrame([{"place": "imagenet", "path": str(path)}]))
    assert pools["alike"].tolist() == [alike]
    rows = {"place": ["imagenet", "ImageNet", "cifar"], "task": ["unknown", "near", "unknown"]}
    compared = pd.DataFrame(rows).assign(difference=0.1, within="no")
    beside = kim2021.beside(compared, pools)
    assert beside["difference"].notna().tolist() == [alike, True, False]
    assert beside["within"].tolist() == ["no" if alike else "", "no", ""]


def test_training_images_that_are_all_divided_are_counted_as_one_number():
    rows = kim2021.images("table2").set_index(["dataset", "part"])["n"]
    assert rows["CIFAR-40", kim2021.DIVIDED] == 18_000 + 2_000
    assert ("CIFAR-40", "train") not in rows.index
    assert rows["Tiny ImageNet158-FIX", "validation"] == 2_000
    table = tables.published("kim2021", "table2")[["train", "validation", "test"]]
    assert rows.sum() == table.sum().sum()


def test_a_split_that_lacks_a_method_is_left_out():
    rows = [("a", 0, "softmax"), ("a", 0, "oe"), ("a", 1, "oe"), ("b", 1, "softmax")]
    frame = pd.DataFrame(rows, columns=["benchmark", "split", "method"])
    frame = frame.assign(regime="baseline", epochs=[200, 60, 60, 200], precision="float32")
    frame = frame.assign(network="resnet20")
    assert kim2021.whole_splits(frame).index.tolist() == [0, 1, 3]
    unlike = frame.iloc[[0, 1, 0, 1]].assign(split=[0, 0, 1, 1])
    unlike["method"] = ["softmax", "oe", "softmax", "crl"]  # OE's mean would be of split 0 alone
    assert kim2021.whole_splits(unlike)["split"].tolist() == [0, 0]


def test_a_method_with_two_networks_is_read_on_the_one_that_the_others_have():
    frame = pd.DataFrame({"method": ["softmax", "softmax", "oe"], "benchmark": "a", "split": 0})
    frame = frame.assign(regime="baseline", epochs=200, precision="float32")
    frame["network"] = ["resnet18", "resnet20", "resnet20"]
    assert kim2021.whole_splits(frame)["network"].tolist() == ["resnet20", "resnet20"]


@pytest.mark.parametrize(
    ("others", "kept"), [([("oe", 40)], 40), ([("oe", 200)], 200), ([], 200), ([("crl", 7)], 200)]
)
def test_methods_are_compared_after_trainings_of_one_length(others, kept):
    rows = [("softmax", 40), ("softmax", 200), *others]
    frame = pd.DataFrame(rows, columns=["method", "epochs"])
    frame = frame.assign(benchmark="a", split=0, regime="baseline", precision="bfloat16")
    frame["network"] = "resnet20"
    alike = kim2021.whole_splits(frame)
    assert alike.query("method == 'softmax'")["epochs"].tolist() == [kept]
    assert len(alike) == 1 + len(others)
    both = pd.concat([frame.assign(precision="float32"), frame[1:]], ignore_index=True)
    assert set(kim2021.whole_splits(both)["precision"]) == {"float32"}
    assert len(kim2021.whole_splits(both)) == len(alike)


@pytest.mark.parametrize("notebook", ["32_kim_tasks", "33_kim_unified"])
def test_trainings_of_several_lengths_and_precisions_are_read_once_each(notebook):
    book = json.loads((workbook.root() / "notebooks" / f"{notebook}.ipynb").read_text())
    lines = [line for cell in book["cells"] for line in cell["source"]]
    (apart,) = (line.removeprefix("apart = ") for line in lines if line.startswith("apart = "))
    runs = names.in_print(
        tables.collect("31_kim_train", "paper", *ast.literal_eval(apart)), "kim2021"
    )
    assert runs.duplicated(["benchmark", "split", "seed", "method"]).any()
    assert not kim2021.whole_splits(runs).duplicated(["benchmark", "split", "seed", "method"]).any()


def test_short_trainings_of_size_paper_are_said_and_no_others():
    runs = pd.DataFrame({"place": ["cifar", "cifar", "imagenet"], "epochs": [40, 200, 90]})
    short = kim2021.shortened(runs.assign(size="paper"))
    assert short == {"cifar": "epochs 40 of 200"}
    assert kim2021.shortened(runs.assign(size="mini")) == {}
    table = pd.DataFrame({"place": ["CIFAR", "CIFAR", "ImageNet"], "run": ["r", "not run", "s"]})
    assert kim2021.labelled(table, short)["trained"].tolist() == ["epochs 40 of 200", "", ""]
    assert kim2021.labelled(table[["place"]], short)["trained"].tolist()[1] == "epochs 40 of 200"
    assert "trained" not in kim2021.labelled(table, {})
    assert kim2021.labelled(table[:0], short).empty
    found = pd.DataFrame({"where": ["cifar", "cifar"], "ours": ["holds", "not run"]})
    assert kim2021.labelled(found, short)["trained"].tolist() == ["epochs 40 of 200", ""]


def test_what_far_sets_of_photographs_lack_is_said_in_tables_and_beside_the_set():
    runs = tables.collect("31_kim_train", "paper").query("benchmark == 'cifar40'")
    lacking = kim2021.lacking(names.in_print(runs[:1], "kim2021"))["cifar"]
    assert lacking["DTD"] == "10 of 47 classes of DTD"
    assert {*lacking["CIFAR-based (all)"].split()} == {"without", "SVHN,", "LSUN-FIX"}
    assert kim2021.lacking(names.in_print(runs[:1].assign(size="mini"), "kim2021")) == {}
    rows = pd.DataFrame({"place": ["cifar", "imagenet"], "printed": "oe", "source": ["dtd", "all"]})
    own = kim2021.named(rows, size="paper", lacking={"cifar": lacking})["own"]
    assert own.tolist() == [lacking["DTD"], "ImageNet-based (all)"]
    table = kim2021.labelled(rows, {}, lacking={"cifar": lacking})
    assert table["far sets"].tolist() == [", ".join(lacking.values()), ""]
    assert "trained" not in table


def test_a_method_in_bfloat16_is_said_row_by_row():
    runs = pd.DataFrame(
        {"method": ["edl", "oe", "softmax"], "place": ["cifar", "imagenet", "cifar"]}
    )
    runs = runs.assign(precision=["bfloat16", "bfloat16", "float32"], size="paper")
    rows = [("CIFAR", "EDL"), ("cifar", "OE"), ("ImageNet", "OE"), ("cifar", "ODIN")]
    table = pd.DataFrame(rows, columns=["place", "printed"])
    found = kim2021.labelled(table, {"cifar": "short"}, kim2021.in_bfloat16(runs))
    assert found["trained"].tolist() == ["short, bfloat16", "short", "bfloat16", "short"]
    assert kim2021.in_bfloat16(runs.assign(size="tiny")) == set()


@pytest.mark.parametrize("place", ["cifar", "imagenet"])
def test_a_stand_in_stands_for_a_set_of_the_printed_tables(place):
    for stands in kim2021.STANDS.values():
        assert set(stands.get(place, ())) <= set(kim2021.SETS[place].values())
    printed = kim2021.results().query("place == @place")["source"]
    assert set(printed) <= set(kim2021.SETS[place].values())


def test_photographs_that_stand_for_others_are_called_what_they_are():
    rows = pd.DataFrame(
        {"place": "imagenet", "printed": "oe", "source": ["near", "food-32", "all"]}
    )
    lacking = {"imagenet": {"ImageNet-based (all)": "without Food-32"}}
    own = kim2021.named(rows, size="tiny", lacking=lacking)["own"]
    assert own.tolist() == ["40 others of Tiny ImageNet", "Food-32", "without Food-32"]
    assert kim2021.named(rows, size="paper")["own"].tolist()[0] == "Near ImageNet-200"


# Palechor et al.


def stacked(method, known, unknown, **more):
    """Two-class scores of P1 whose prediction is right from .5 on."""
    frame = pd.DataFrame({"role": ["known"] * len(known) + ["unknown"] * len(unknown)})
    frame = frame.assign(max_softmax=[*known, *unknown], label=0, run=method, method=method)
    frame["pred"] = (frame["max_softmax"] < 0.5).astype(int)
    return frame.assign(target=frame["max_softmax"], benchmark="p1", **more)


def test_released_ccr_keeps_the_background_column_of_the_runs_that_have_one():
    sides = [0.9, 0.8, 0.7], [0.95, 0.85]
    kept = stacked("background", *sides)
    # the first known sample is taken for background, which only this run can say
    kept["target_with_background"] = kept["target"]
    kept["max_softmax_with_background"] = kept["target"].replace({0.9: 0.92})
    both = pd.concat([stacked("softmax", *sides), kept])
    rows = palechor2023.released(both).set_index("method")
    # thresholds are .7 and .8, the largest known target being left out; both have FPR 1
    assert rows.loc["softmax", "ccr_at_1_released"] == pytest.approx(2 / 3)
    assert rows.loc["background", "ccr_at_1_released"] == pytest.approx(1 / 3)
    assert rows["ccr_at_0.1_released"].isna().all()  # no point near: a dash


def test_table_2_and_differences_are_means_of_seeds_with_paired_intervals(runs):
    for seed, method in ((0, "softmax"), (1, "softmax"), (2, "mine")):
        runs(benchmark="p1", seed=seed, method=method)
    found = evidence(runs.frame(), "roles", ["odin"], resamples=50)
    epochs, unknown = pd.Series(7.0, index=["r0", "r1", "r2"]), {"p1": 99}
    ours = palechor2023.table_2(found, epochs, unknown, over="class")
    both = palechor2023.printed_table_2("last").merge(
        ours, on=["benchmark", "method", "number"], suffixes=("_paper", "")
    )
    assert len(both) == 7
    row = both.set_index("number").loc["gamma_minus"]
    mean = found("gamma_minus", method="softmax", task="unknown")
    assert row["value_paper"] == 0.47
    assert row[["value", "low", "high"]].tolist() == list(metrics.interval(mean))
    more = ours.query("method == 'softmax'").set_index("number")["value"]
    mean = found("gamma_minus", method="softmax", task="negative")[0]
    assert more["gamma_minus_negatives"] == mean != row["value"]
    dashes = more.index[more.isna()]  # 1 % of 99 images is less than one
    assert dashes.tolist() == ["ccr_at_0.001", "ccr_at_0.01"]
    assert row[["over", "seeds", "run"]].tolist() == ["class", 2, "r0, r1"]
    beside = palechor2023.beside_table_2(found, over="class")
    assert sorted(beside) == sorted(ours)
    assert set(beside["number"]) == {*palechor2023.BESIDE}
    beside = beside.query("method == 'softmax'").set_index("number")
    for task, end in (("unknown", ""), ("negative", "_negatives")):
        where = {"method": "softmax", "task": task}
        halves = found("gamma_plus", **where), found("gamma_minus", **where)
        pair = {"gamma": np.mean(halves, axis=0), "auroc": found("auroc", **where)}
        for name, mean in pair.items():
            told = beside.loc[name + end, ["value", "low", "high"]].tolist()
            assert told == pytest.approx([*metrics.interval(mean)])
    each = found.rows("accuracy", method="softmax", task="unknown")[:, 0]
    told = beside.loc["accuracy", ["value", "sd_seeds", "seeds"]].tolist()
    assert told == pytest.approx([each.mean(), each.std(ddof=1), 2])
    (gain,) = palechor2023.differences(found, "auroc", over="class").itertuples()
    mine, base = (found("auroc", method=m, task="unknown") for m in ("mine", "softmax"))
    assert gain.number == (mine - base)[0]
    assert [gain.low, gain.high] == list(metrics.interval(mine - base)[1:])
    assert (gain.p, gain.run) == (metrics.p_value(mine - base), "r2 less r0, r1")


def test_a_resample_without_a_number_speaks_neither_for_a_gain_nor_against_it():
    told = np.array([0.0, -1.0, *range(1, 10)])
    values = {"softmax": np.zeros(31), "mine": np.r_[0.5, told, [np.nan] * 19]}
    values["none"] = np.full(31, np.nan)
    keys = pd.DataFrame({"run": [*values], "method": [*values], "place": "p1"})
    numbers = Evidence(keys, {"auroc": np.array([*values.values()])})
    (gain,) = gains(numbers, "auroc", "place", key="method", of="softmax").itertuples()
    assert (gain.method, gain.number) == ("mine", 0.5)
    assert [gain.low, gain.high] == list(metrics.interval(np.r_[0.5, told])[1:])
    assert gain.p == metrics.p_value(np.r_[0.5, told])


def test_headlines_are_the_printed_numbers_of_table_2_beside_ours_in_the_order_of_protocols():
    printed = {name: palechor2023.printed_table_2(name) for name in ("last", "best")}
    both = {
        name: rows.assign(paper=rows["value"], ours=0.5)[::-1] for name, rows in printed.items()
    }
    ends = {"benchmark": ["p1", "p1", "p3"], "run": ["a", "a", "b"], "method": "entropic"}
    history = pd.DataFrame(ends | {"gamma_minus": [0.9, 0.8, 0.6]})
    told = palechor2023.headlines(both, history)
    ends = [(row["paper"], row["ours"]) for row in told["table_2a"] if row["of"] == "figure_3"]
    # the last epoch of each run, no run of P2, no number in print
    assert ends == [(None, 0.8), (None, None), (None, 0.6)]
    own = [row["paper"] for row in told["table_2a"] if row["of"] == "table_2a"]
    assert own == [0.667, 0.476, 0.568]  # Table 2a, EOS at FPR 0.1
    assert [row["ours"] for row in told["table_2b"]] == [0.5] * 3


# Names

NAMES = [
    (("softmax", "baseline"), "max_softmax_log_odds", "MSP"),
    (("softmax", "baseline"), "mahalanobis", "Mahalanobis"),
    (("softmax", "strong"), "max_logit", "strong"),
    (("softmax", "warm_up"), "max_logit", "softmax (warm up training), MLS"),
    (("entropic", "baseline"), "max_softmax_log_odds", "EOS / OE"),
    (("oe", "baseline"), "max_softmax_log_odds", "EOS / OE"),
    (("background", "baseline"), "max_logit", "BG, MLS"),
    (("arpl", "strong"), "max_logit", "ARPL+"),
    (("arpl_cs", "baseline"), "energy", "ARPL + CS, energy"),
    (("osrci", "baseline"), "openmax", "G-OpenMax"),
    (("c2ae", "baseline"), "own", "C2AE"),
    (("cgdl", "baseline"), "own", "CGDL"),
    (("crosr", "baseline"), "openmax", "CROSR"),
    (("vos", "baseline"), "energy", "VOS"),
    (("ensemble", "strong"), "max_softmax_log_odds", "Ensemble+"),
    (("mcdropout", "baseline"), "max_logit", "MC dropout, MLS"),
    (("mine", "baseline"), "max_softmax_log_odds", "mine"),
]


@pytest.mark.parametrize(("trained", "rule", "name"), NAMES)
def test_one_naming_serves_all_three_papers(trained, rule, name):
    assert names.method_name(*trained, rule) == name


def test_cross_reads_a_method_by_its_paper_s_rule_and_the_plain_network_by_all(runs):
    runs()
    runs(method="arpl", seed=1)
    found = evidence(runs.frame(), "cross", "cross", resamples=0)
    assert set(found.keys["printed"]) == {"MSP", "MLS", "energy", "ODIN", "ARPL", "ARPL, MSP"}


def test_a_paper_s_runs_are_those_of_its_benchmarks_methods_and_regime():
    rows = [("p1", "softmax", "baseline"), ("p1", "softmax", "strong"), ("p1", "mine", "strong")]
    frame = pd.DataFrame([*rows, ("cifar40", "softmax", "baseline")])
    frame.columns = ["benchmark", "method", "regime"]
    assert names.in_print(frame, "palechor2023").index.tolist() == [0]
    assert names.in_print(frame, "palechor2023", others=True).index.tolist() == [0, 2]
    assert names.placed(frame, "kim2021")["place"].tolist() == ["cifar"]


@pytest.mark.parametrize("paper", ["palechor2023", "vaze2022", "kim2021"])
def test_rows_in_print_mean_methods_and_benchmarks_that_there_are(paper):
    import yaml

    from osnb.base import workbook

    folder = workbook.root() / "params"
    known, parts = (
        yaml.safe_load((folder / f"{n}.yaml").read_text()) for n in ("recipes", "benchmarks")
    )
    rows = tables.texts(paper, "rows")
    assert set(rows["method"]) <= set(known["methods"])
    assert set(rows["regime"]) <= set(known["regimes"])
    there = set(tables.published(paper, "benchmarks")["benchmark"])
    assert there <= set(parts["benchmarks"])


# Ranks


@pytest.fixture(params=[9, 0], ids=["distinct", "tied"])
def table(request):
    """(tasks, methods, 1 + R)."""
    return np.random.default_rng(1).normal(0, 1, (4, 7, 5)).round(request.param)


def test_splits_of_the_same_classes_draw_them_together_so_their_mean_is_no_surer_than_one(runs):
    runs(split=0)
    runs(split=1)  # the same table: a second split that says nothing new
    both = evidence(runs.frame(), "shifts", ("max_logit",), resamples=200)
    one, other = (both.only(both.keys["split"] == split).values["auroc"] for split in "01")
    assert np.mean(one == other) > 0.99  # but where the row of classes is too short
    spread = [np.nanstd(values, axis=1) for values in ((one + other) / 2, one)]
    assert (spread[0] > 0.95 * spread[1]).all()


def test_images_of_several_splits_are_drawn_together_too(runs):
    runs(split=0)
    runs(split=1)
    both = evidence(runs.frame(), "shifts", ("max_logit",), unit="sample", resamples=200)
    one, other = (both.only(both.keys["split"] == split).values["auroc"] for split in "01")
    assert np.array_equal(one, other)


def test_a_class_has_much_the_same_copies_in_each_split_whatever_its_role():
    rows = pd.DataFrame(
        {"sample": list("abcdefghijkl"), "class": list("112233445566"), "source": "s"}
    )
    run, many = {"benchmark": "b", "run": "r"}, 4000
    draws = build.Draws("class", 0, many, {"b": pd.Index(build._units(rows, "class").unique())})
    known, unknown = draws(rows[:8], "0 known", run)[1:], draws(rows[4:], "1 unknown", run)[1:]
    for copies in (known, unknown):  # as many as ever, in the shares of a multinomial draw
        assert (copies.sum(axis=1) == 8).all()
        assert copies.mean(axis=0) == pytest.approx(np.ones(8), abs=0.05)
        assert copies.var(axis=0) == pytest.approx(np.full(8, 0.75), abs=0.06)
    assert np.corrcoef(known[:, 4], unknown[:, 0])[0, 1] > 0.6  # class 3 in both
    copies = draws(rows.assign(source="in the last run alone"), "far", run)
    assert (copies.sum(axis=1) == len(rows)).all()
    apart = build.Draws("class", 0, many)
    drawn = [apart(part, name, run)[1:] for part, name in ((rows[:8], "k"), (rows[4:], "u"))]
    assert abs(np.corrcoef(drawn[0][:, 4], drawn[1][:, 0])[0, 1]) < 0.05


def test_a_row_of_units_that_is_too_short_for_those_that_ask_is_not_taken():
    counts, enough = build.Draws("class", 0, 3000)._counts(np.array([True, False]), "b")
    assert not enough.all()  # one in 256 has none
    assert (counts[enough].sum(axis=1) == 1).all()


def test_a_split_with_more_seeds_counts_as_often_as_one_with_fewer():
    rows = [("0", "0", "a", 0.1), ("0", "1", "a", 0.1), ("1", "0", "a", 0.3)]
    rows += [("0", "0", "b", 0.1), ("1", "0", "b", 0.3)]
    keys = pd.DataFrame(rows, columns=["split", "seed", "method", "value"]).assign(benchmark="x")
    keys.insert(0, "run", [*"vwxyz"])
    alike = Evidence(keys.drop(columns="value"), {"aurc": keys[["value"]].to_numpy()})
    assert averaged(alike, "method").values["aurc"] == pytest.approx(np.array([[0.2], [0.2]]))
    (gain,) = gains(alike, "aurc", "benchmark", key="method", of="b")["number"]
    assert gain == pytest.approx(0)
    for over in ("seeds", "splits"):
        found = across.summary(alike, "method", over=over)
        assert found["value"].tolist() == pytest.approx([0.2, 0.2])
    assert across.summary(alike, "method")["seeds"].tolist() == [3, 2]


def test_classes_drawn_anew_do_not_tell_how_a_deviation_over_splits_would_differ():
    keys = pd.DataFrame([dict.fromkeys(build.KEYS, "x") | {"split": x} for x in "012"])
    numbers = Evidence(
        keys, {"auroc": np.array([[0.7, 0.6, 0.9], [0.8, 0.9, 0.2], [0.9, 0.9, 0.9]])}
    )
    spread = over_splits(numbers, "auroc").values["auroc_std"]
    assert spread[:, 0] == pytest.approx(np.full(3, 0.1))
    assert np.isnan(spread[:, 1:]).all()


def test_the_limit_of_chance_is_the_quantile_of_rho_itself():
    n = np.arange(3, 100)  # over unrelated normal points (rho + 1) / 2 is beta distributed
    exact = stats.beta(n / 2 - 1, n / 2 - 1, loc=-1, scale=2).ppf(0.975)
    assert across.by_chance(n) == pytest.approx(exact)
    assert np.isnan(across.by_chance(2))


def test_spearman_and_w_are_those_of_scipy(table):
    rho = spearman(table[0], table[1])
    assert rho == pytest.approx([stats.spearmanr(*table[:2, :, r])[0] for r in range(5)])
    friedman = [stats.friedmanchisquare(*table[:, :, r].T)[0] for r in range(5)]
    assert kendall_w(table) == pytest.approx([x / (4 * 6) for x in friedman])


def test_too_few_methods_a_gap_or_no_order_give_no_number(table):
    gap = table[0].copy()
    gap[2, 1] = np.nan
    assert np.isnan(spearman(table[0, :2], table[1, :2])).all()
    assert np.isnan(spearman(gap, table[1])).tolist() == [False, True, *[False] * 3]
    assert np.isnan(spearman(np.ones((7, 5)), table[1])).all()
    assert np.isnan(kendall_w(np.array([gap, table[1]]))).sum() == 1


def students(values, mean):
    """scipy's interval of the mean of values, as a factor on the odds (1 + rho) / (1 - rho)."""
    low, high = stats.ttest_1samp(values, 0).confidence_interval()
    odds = (1 + mean) / (1 - mean) * np.exp(np.array([low - high, high - low]) / (1 - mean**2))
    return (odds - 1) / (odds + 1)


def test_inside_splits_forgets_what_splits_differ_by_and_has_students_interval_over_them():
    rng = np.random.default_rng(0)
    accuracy, noise = rng.random((2, 4, 5))
    auroc = 0.5 * accuracy + 0.3 * noise
    far = 10 * np.arange(4)[:, None]  # turns round a correlation over all networks
    points = {"accuracy": (accuracy - far).ravel(), "auroc": (auroc + far).ravel()}
    points = pd.DataFrame(points | {"panel": "a", "split": np.repeat(range(4), 5)})
    assert points["accuracy"].corr(points["auroc"]) < -0.9
    (row,) = inside_splits(points).itertuples()
    rhos = [stats.pearsonr(x, y)[0] for x, y in zip(accuracy, auroc, strict=True)]
    assert (row.points, row.splits) == (20, 4)
    assert row.rho == pytest.approx(np.mean(rhos))
    assert row.each == ", ".join(f"{i}: {rho:.3f}" for i, rho in enumerate(rhos))
    assert (row.low, row.high) == pytest.approx(tuple(students(rhos, row.rho)))
    centred = [side - side.mean(axis=1, keepdims=True) for side in (accuracy, auroc)]
    assert row.pooled == pytest.approx(stats.pearsonr(*map(np.ravel, centred))[0])
    without = ([np.delete(side, i, axis=0).ravel() for side in centred] for i in range(4))
    pseudo = [4 * row.pooled - 3 * stats.pearsonr(*sides)[0] for sides in without]
    ends = students(pseudo, row.pooled)
    assert (row.pooled_low, row.pooled_high) == pytest.approx(tuple(ends))
    two = points.groupby("split").head(2)
    (row,) = inside_splits(two).itertuples()
    assert np.isnan(row.rho)
    assert row.each == ""
    assert row.pooled_low <= row.pooled <= row.pooled_high


@pytest.mark.parametrize(("few", "has_ends"), [(3, True), (2, False)])
def test_inside_splits_counts_what_enters_and_has_an_interval_from_three_splits_on(few, has_ends):
    rng = np.random.default_rng(0)
    split = np.repeat(range(4), [4, 5, few, 1])
    points = pd.DataFrame(rng.random((len(split), 2)), columns=["accuracy", "auroc"])
    points = points.assign(panel="a", split=split)
    (row,) = inside_splits(points).itertuples()
    whole = points[points["split"].isin([0, 1, 2] if has_ends else [0, 1])]
    rhos = [stats.pearsonr(x["accuracy"], x["auroc"])[0] for _, x in whole.groupby("split")]
    assert (row.points, row.splits) == (len(whole), len(rhos))
    assert row.rho == pytest.approx(np.mean(rhos))
    assert np.isfinite([row.low, row.high]).all() == has_ends
    assert row.pooled_low < row.pooled < row.pooled_high
    if has_ends:
        assert (row.low, row.high) == pytest.approx(tuple(students(rhos, row.rho)))
    for two in (points[split < 2], points[split != 2]):  # the last split is of one network
        (row,) = inside_splits(two).itertuples()
        assert np.isfinite([row.rho, row.pooled]).all()
        assert np.isnan([row.low, row.high, row.pooled_low, row.pooled_high]).all()


def measured(split):
    """The rows that notebook 30 makes of images of four levels, so that steps tie."""
    rng = np.random.default_rng(split)
    rows = pd.DataFrame({"role": ["known"] * 9 + ["unknown"] * 14})
    rows["group"] = [""] * 9 + ["near"] * 6 + ["far"] * 8
    rows["source"] = ["quickdraw"] * 15 + ["font_digits"] * 4 + ["gaussian_noise"] * 4
    images = rng.integers(0, 4, (23, 1, 3, 3)).astype(np.uint8)
    images[-4:] = images[-4:] // 2 * 85  # a noise of larger steps
    rows["variation"] = plots.roughness(images)
    return rows.assign(size="mini", benchmark="cifar40", split=split)


def test_total_variation_alone_is_the_share_of_pairs_in_which_the_known_image_is_smoother():
    rows = measured(0)
    stacked = rows.set_index(np.zeros(len(rows), int))  # as pd.concat gives them
    found = kim2021.variation_alone(stacked).set_index("images")["auroc"]
    steps = rows["variation"]
    sets = {"quickdraw": range(9, 15), "font_digits": range(15, 19)}
    sets["gaussian_noise"] = range(19, 23)
    assert {*found.index} == {*sets}
    for name, others in sets.items():
        pairs = [(steps[k], steps[u]) for k in range(9) for u in others]
        right = sum((k < u) + (k == u) / 2 for k, u in pairs) / len(pairs)
        assert found[name] == pytest.approx(right)


def test_a_far_set_is_solved_by_total_variation_in_either_direction(tmp_path, monkeypatch):
    monkeypatch.setattr(kim2021.workbook, "root", lambda: tmp_path)
    monkeypatch.setattr(kim2021.workbook, "out", lambda: tmp_path)
    assert kim2021.variation("mini").empty
    rows = kim2021.variation_alone(pd.concat([measured(i) for i in (0, 1)]))
    digits = rows["images"] == "font_digits"
    rows["auroc"] = rows["auroc"].mask(digits, [0.1] * len(rows))
    rows.loc[digits & (rows["split"] == 1), "auroc"] = 0.08
    file = tmp_path / "figures" / "30_kim_benchmark" / "small" / "total_variation.csv"
    file.parent.mkdir(parents=True)
    rows.to_csv(file, index=False)
    found = kim2021.variation("mini").set_index("source")
    assert set(found["place"]) == {"cifar"}
    svhn, noise = found.loc["SVHN"], found.loc["Gaussian Noise"]
    assert (svhn["variation"], svhn["rougher"], svhn["solved"]) == (
        pytest.approx(0.91),
        "known",
        "solved",
    )
    assert (noise["rougher"], found.loc["CIFAR-60", "task"]) == ("unknown", "near")
    assert (found["variation"] >= kim2021.SOLVED).equals(found["solved"] == "solved")
    assert [*kim2021.variation("mini").attrs["inputs"]] == [
        "30_kim_benchmark/small/total_variation.csv"
    ]
    assert kim2021.variation("tiny").empty


def test_in_print_baseline_is_below_what_counts_as_solved_in_every_far_cell():
    rows = kim2021.results().query("printed == 'Baseline' and task == 'far' and metric == 'auroc'")
    assert len(rows) == 7
    assert rows["value"].max() < kim2021.SOLVED


# One's own scores


@pytest.mark.parametrize("size", [3, 20, 100, 1000])
@pytest.mark.parametrize("tpr", [0.05, 0.55, 0.7, 0.95, 1.0])
def test_a_threshold_accepts_the_share_that_is_asked_for_and_no_sample_more(size, tpr):
    table = pd.DataFrame({"role": "known", "mine": np.arange(size) / size})
    accepted = (table["mine"] >= own.accepting(table, score="mine", tpr=tpr)).sum()
    hundredths = round(100 * tpr) * size  # a whole number, which rates in floats are not
    assert 100 * (accepted - 1) < hundredths <= 100 * accepted


def test_two_files_of_one_name_are_not_taken_for_one(tmp_path, monkeypatch):
    monkeypatch.setenv("OSNB_OUT", str(tmp_path))
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "scores.csv").write_text("label,pred,mine\n0,0,1\n-2,0,0\n")
    assert set(collected("a/scores.csv")["run"]) == {"scores"}
    with pytest.raises(ValueError, match="two are called scores: rename a file"):
        collected("a/scores.csv b/scores.csv")


def collected(runs, score="mine"):
    return own.collect(runs, "own", score=score, read=rules.own)


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Writes a file of scores, and reads it as 50_own does."""
    monkeypatch.setenv("OSNB_OUT", str(tmp_path))

    def put(text, score="mine", name="scores.csv"):
        (tmp_path / name).write_text(text, encoding="latin-1")
        return collected(name, score)

    return put


def test_a_file_is_read_as_osnb_score_reads_it_and_what_that_says_is_kept(file):
    table = file("y_true,pred,mine,path,class\n0,0,1,a,NA\n1,0,.5,b,\n-1,1,3,c,None\n")
    assert table["role"].tolist() == ["known", "known", "unknown"]
    assert table["class"].tolist() == ["NA", "1", "None"]
    assert table["sample"].tolist() == ["a", "b", "c"]
    notes = table.attrs["notes"].splitlines()
    assert notes[0] == "scores.csv: column y_true is read as label"
    assert notes[-1].startswith("scores.csv: label -1 is read as unknown, since no label is -2")


def test_names_of_classes_and_logits_are_read_from_a_file_too(file):
    table = file("label,pred,mine\ncat,cat,1\ndog,cat,0\nunknown,owl,0\n")
    assert table["label"].tolist() == [0, 1, -2]
    assert table["class"].tolist() == ["cat", "dog", "-2"]
    assert table.attrs["classes"] == {"scores": ("cat", "dog", "owl")}
    (row,) = own.pairs(table, score="mine", threshold=0).to_dict("records")
    assert row == {"share": 1, "images": 1, "class": "-2", "taken for": "owl"}
    table = file("label,logit_0,logit_1\n0,2,1\n1,0,3\n-2,1,1\n", score="max_logit")
    assert table["max_logit"].tolist() == [2, 3, 1]


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        ("label,pred,mine\n0,0,nan\n-2,0,0\n", "a.csv", "mine needs .*; 1 of 2 are NaN"),
        ("label,pred,mine\n0.5,0,1\n-2,0,0\n", "a.csv", "label needs whole numbers; got 0.5"),
        ("label,pred,yours\n0,0,1\n-2,0,0\n", "a.csv", "needs a column mine; there are: label"),
        ("", "a.npz", "is no npz file of plain arrays"),
        ("label,pred,mine\n0,0,1\n", "a.CSV", r"needs a name that ends in \.csv, \.npz or"),
        ("label,pred,mine,mine\n0,0,1,2\n", "a.csv", "has more than one column 'mine'"),
        ("label,pred,mine,class\n0,0,1,caf\xe9\n", "a.csv", "column class is no text in UTF-8"),
        ("", "a.csv", "Empty CSV file"),
        ("", "a.parquet", "Parquet"),
    ],
)
def test_a_file_that_osnb_score_refuses_is_refused_by_its_name(file, text, name, reason, tmp_path):
    with pytest.raises(ValueError, match=f"{name}: .*{reason}") as why:
        file(text, name=name)
    code, _, said = osnb("score", tmp_path / name, "--score", "mine")
    assert (code, said) == (2, f"osnb: {why.value}\n")


def test_an_empty_source_is_the_file_and_an_empty_group_none(file):
    table = file("label,pred,mine,source,group\n0,0,1,,\n-2,0,0,far,easy\n")
    assert table["source"].tolist() == ["scores", "far"]
    assert table["group"].tolist() == ["", "easy"]
    table = file("label,pred,mine,source,group\n0,0,1,,\n-2,0,0,,\n")
    assert table[["source", "group"]].values.tolist() == 2 * [["scores", ""]]


def test_arrays_are_read_as_a_table_is_and_one_of_another_shape_is_refused_by_the_file(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("OSNB_OUT", str(tmp_path))
    given = {"labels": np.array([0, 1, -2]), "logits": 5 * np.eye(3)[:, :2]}
    np.savez(tmp_path / "a.npz", **given)
    assert collected("a.npz", "max_logit")["max_logit"].tolist() == [5, 5, 0]
    for wrong in (np.array(["x", "y"]), np.array("x"), np.array([["x"]] * 3)):
        np.savez(tmp_path / "a.npz", **given, source=wrong)
        with pytest.raises(ValueError, match=r"/a\.npz: "):
            collected("a.npz", "max_logit")


def test_a_pair_keeps_the_number_of_a_class_that_the_test_lacks_and_no_pair_is_no_row(file):
    table = file("label,pred,mine,class\n0,0,1,cat\n-2,0,2,owl\n-2,7,2,owl\n")
    rows = own.pairs(table, score="mine", threshold=2)
    assert rows.values.tolist() == [[0.5, 1, "owl", "7"], [0.5, 1, "owl", "cat"]]
    none = own.pairs(table, score="mine", threshold=3)
    assert [*none] == [*own.COLUMNS]
    assert none.empty
    assert own.pictures(table, none, score="mine", each=2) == []


def test_pictures_of_a_pair_stand_in_their_places_and_a_class_without_images_has_none(
    file, monkeypatch
):
    from types import SimpleNamespace as of

    table = file("label,pred,mine,class,sample\n0,0,1,cat,a\n-2,0,2,owl,b\n-2,7,2,owl,c\n")
    table.attrs["stamps"] = {"scores": {"parameters": {}}}
    images = of(rows=pd.DataFrame({"sample": ["a", "b", "c"]}), shape=(1, 2, 2))
    images.read = lambda at: of(numpy=lambda: np.uint8(at)[:, None, None, None] + np.zeros(4))
    monkeypatch.setattr(own.experiment, "of", lambda _: of(parts=lambda _: of(images=images)))
    rows = own.pairs(table, score="mine", threshold=2)
    shown = own.pictures(table, rows, score="mine", each=2)
    assert [int(x.max()) for x in shown] == [1, 255, 0, 255]


def test_results_on_drawings_are_means_over_splits_of_drawings_alone(tmp_path):
    made, aurocs, accuracy = [], [], []
    for split in (0, 1):
        rng, roles = np.random.default_rng(split), ["known"] * 60 + ["unknown"] * 60
        frame = pd.DataFrame({"role": roles, "source": "quickdraw", "group": ""})
        frame.loc[90:, "source"] = "gaussian_noise"
        frame["label"] = np.where(frame["role"] == "known", frame.index % 3, -2)
        frame["pred"] = np.where(rng.random(120) < 0.7, frame["label"].clip(lower=0), 1)
        frame["class"] = frame["role"] + (frame.index % 5).astype(str)
        frame["sample"] = [f"{split} {i}" for i in frame.index]
        frame["max_softmax_log_odds"] = rng.normal(size=120) + (frame["role"] == "known")
        frame["max_logit"] = -frame["max_softmax_log_odds"]
        path = tmp_path / f"r{split}" / "scores.parquet"
        tables.write(path, frame, {"notebook": "n", "run": f"r{split}", "parameters": {}})
        row = {"run": f"r{split}", "path": str(path), "protocol": "quickdraw_kim", "split": split}
        row |= {"benchmark": "imagenet200", "network": "conv 16", "regime": "baseline"}
        made.append(row | {"method": "softmax", "seed": 0, "size": "mini"})
        drawn, known = frame[frame["source"] == "quickdraw"], frame[frame["role"] == "known"]
        score = drawn["max_softmax_log_odds"]
        aurocs.append(roc_auc_score(drawn["role"] == "known", score))
        accuracy.append((known["pred"] == known["label"]).mean())
    looking = made[0] | {"regime": "norms", "path": "nowhere"}
    runs = pd.DataFrame([*made, looking])
    numbers = drawings.numbers(runs, unit="class", seed=0, resamples=200)
    table = drawings.results(numbers)
    (gap,) = drawings.gaps(numbers, "MLS", runs=runs["run"]).to_dict("records")
    assert (gap["protocol"], gap["less"]) == ("kim", "MSP")
    assert gap["number"] == pytest.approx(1 - 2 * np.mean(aurocs))
    assert gap["low"] < gap["number"] < gap["high"] < 0
    row, last = table.to_dict("records")
    assert last["method"] == "MLS"
    assert last["oscr"] < row["oscr"]
    assert (row["protocol"], row["task"], row["method"]) == ("quickdraw_kim", "unknown", "MSP")
    assert (row["splits"], row["runs"]) == ("0, 1", 2)
    assert row["auroc"] == pytest.approx(np.mean(aurocs))
    assert row["accuracy"] == pytest.approx(np.mean(accuracy))
    assert row["auroc_low"] < row["auroc"] < row["auroc_high"]
