"""Evidence against metrics called directly; claims that must turn when their numbers do."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from osnb import claims, metrics, tables
from osnb.claims import arithmetic, kim2021, palechor2023, vaze2022
from osnb.claims.decide import Basis, decision
from osnb.claims.evidence import Evidence, Missing, close, least
from osnb.cli import app

PAPERS = ("palechor2023", "vaze2022", "kim2021")
PROTOCOLS, LOSSES = ("p1", "p2", "p3"), ("softmax", "background", "entropic")
EVIDENCE = partial(claims.palechor_evidence, rule="max_softmax", resamples=200)


def table(protocol, loss, *, known, negative, unknown, seed=0, **extra):
    """A scores table whose samples have these scores; known label 0, right if >= .5, K = 2."""
    parts = [("known", 0, known), ("negative", -1, negative), ("unknown", -2, unknown)]
    rows = [
        {"role": role, "label": i % 2 if label == 0 else label, "score": s}
        for role, label, values in parts
        for i, s in enumerate(values)
    ]
    frame = pd.DataFrame(rows)
    right = frame["score"] >= 0.5
    frame["pred"] = np.where(right, frame["label"].clip(lower=0), 1 - frame["label"].clip(lower=0))
    frame["sample"] = [f"{i:04}" for i in range(len(frame))]
    frame["class"] = [f"{role}{i % 7}" for i, role in enumerate(frame["role"])]
    named = {"protocol": protocol, "loss": loss, "seed": seed, "run": f"{protocol}_{loss}_{seed}"}
    return frame.assign(target=frame["score"], max_softmax=frame["score"], **named, **extra)


def drawn(protocol, loss, seed, *, shift=0.0):
    """A scores table of random scores, some of them tied; the samples do not depend on `seed`."""
    rng = np.random.default_rng(seed)
    scores = (rng.beta(2, 2, size) for size in (140, 91, 119))
    known, negative, unknown = (each.round(2) for each in scores)
    known = np.clip(known + shift, 0, 1)
    return table(protocol, loss, known=known, negative=negative, unknown=unknown, seed=seed)


def made(rows):
    """Evidence of made-up rows: text is a key, a number a measure."""
    frame = pd.DataFrame(rows)
    text = [column for column in frame if pd.api.types.is_string_dtype(frame[column])]
    keys = frame[text].fillna("")
    return Evidence(keys, {m: frame[[m]].to_numpy(float) for m in frame if m not in text})


def said():
    """Every claim of the three papers."""
    return pd.concat([tables.published(paper, "claims").assign(paper=paper) for paper in PAPERS])


# Evidence


def test_a_call_is_the_mean_over_the_rows_with_these_keys_and_says_which_it_used():
    evidence = made([{"run": f"r{i}", "loss": loss, "x": i} for i, loss in enumerate("aab")])
    assert evidence("x", loss="a").tolist() == [0.5]
    assert evidence.read() == ["r0", "r1"]
    assert evidence.names("loss") == ["a", "b"]
    assert evidence.unread().read() == []


@pytest.mark.parametrize(
    ("measure", "where", "text"),
    [
        ("x", {"loss": "c"}, "no x of c"),
        ("y", {"loss": "a"}, "no y of a"),
        ("x", {"loss": "b"}, "no x of b"),  # a dash
        ("x", {"loss": "a", "split": "0"}, "no x of a, 0"),
    ],
)
def test_what_is_not_there_is_missing_and_named(measure, where, text):
    evidence = made([{"run": "r", "loss": "a", "x": 1.0}, {"run": "s", "loss": "b", "x": np.nan}])
    with pytest.raises(Missing, match=text):
        evidence(measure, **where)


def test_evidence_adds_up_and_what_one_side_lacks_is_missing():
    both = made([{"run": "r", "x": 1.0}]) + made([{"run": "s", "y": 2.0}])
    assert both("x", run="r") == 1
    with pytest.raises(Missing, match="no y of r"):
        both("y", run="r")
    with pytest.raises(ValueError, match="equally many resamples; got 0 and 2"):
        made([{"run": "r", "x": 1.0}]) + Evidence(
            pd.DataFrame({"run": ["s"]}), {"x": np.ones((1, 3))}
        )


def test_the_least_of_some_numbers_decides_whether_each_is_above_0():
    assert least(np.array([1.0, 2.0]), np.array([3.0, -1.0])).tolist() == [1, -1]
    assert close(np.array([0.5, 0.9]), 0.6, within=0.2) == pytest.approx([0.1, -0.1])


# Evidence from scores tables


def test_measures_are_those_of_the_definitions():
    run = table("p1", "softmax", known=[0.9, 0.8, 0.4], negative=[0.3, 0.5], unknown=[0.85, 0.1])
    row = claims.measures(run, rule="max_softmax").iloc[0]
    assert row["accuracy"] == pytest.approx(2 / 3)
    assert row["gamma_plus"] == pytest.approx(0.7)
    assert row["gamma_minus_negative"] == pytest.approx(1 - 0.4 + 1 / 2)
    assert row["gamma_minus_unknown"] == pytest.approx(1 - 0.475 + 1 / 2)
    assert row["auroc_negative"] == pytest.approx(5 / 6)
    assert row["auroc_unknown"] == pytest.approx(4 / 6)
    assert row["ccr_at_0.1"] == pytest.approx(1 / 3)  # .9 before the first unknown at .85
    assert row["ccr_at_1"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("role", ["negative", "unknown"])
def test_point_values_are_those_of_the_metrics_called_directly(role):
    run = drawn("p1", "softmax", 3)
    evidence = EVIDENCE(run.sample(frac=1, random_state=0))
    parts = {each: run[run["role"] == each] for each in ("known", role)}
    known, other = (part["max_softmax"].to_numpy() for part in parts.values())
    correct = (parts["known"]["pred"] == parts["known"]["label"]).to_numpy()
    gamma = metrics.confidence(known, other, offset=1 / 2)
    suffix = "_negative" if role == "negative" else ""
    expected = {
        "accuracy": metrics.accuracy(correct),
        "gamma_plus": gamma["gamma_plus"],
        f"gamma_minus_{role}": gamma["gamma_minus"],
        f"auroc_{role}": metrics.auroc(known, other),
        f"fpr95_{role}": metrics.fpr_at_tpr(known, other, tpr=0.95),
        f"oscr_area_{role}": metrics.oscr_area(known, correct, other),
        f"ccr_at_0.001{suffix}": metrics.ccr_at_fpr(known, correct, other, fpr=0.001),
        f"ccr_at_0.01{suffix}": metrics.ccr_at_fpr(known, correct, other, fpr=0.01),
        f"ccr_at_0.1{suffix}": metrics.ccr_at_fpr(known, correct, other, fpr=0.1),
        f"ccr_at_1{suffix}": metrics.ccr_at_fpr(known, correct, other, fpr=1.0),
    }
    assert {name: evidence(name)[0] for name in expected} == pytest.approx(expected)


def test_background_has_no_offset():
    scores = {"known": [0.9, 0.8], "negative": [0.3], "unknown": [0.2]}
    row = claims.measures(table("p1", "background", **scores), rule="max_softmax").iloc[0]
    assert row["gamma_minus_negative"] == pytest.approx(0.7)


def test_released_ccr_keeps_the_background_column_of_the_runs_that_have_one():
    scores = {"known": [0.9, 0.8, 0.7], "negative": [0.1], "unknown": [0.95, 0.85]}
    plain = table("p1", "softmax", **scores)
    kept = table("p1", "background", **scores)
    # the first known sample is taken for background, which only this run can say
    kept["target_with_background"] = kept["score"]
    kept["max_softmax_with_background"] = kept["score"].replace({0.9: 0.92})
    rows = claims.measures(pd.concat([plain, kept]), rule="max_softmax").set_index("loss")
    assert rows["ccr_at_1"].tolist() == [1.0, 1.0]
    # thresholds are .7 and .8, the largest known target being left out; both have FPR 1
    assert rows.loc["softmax", "ccr_at_1_released"] == pytest.approx(2 / 3)
    assert rows.loc["background", "ccr_at_1_released"] == pytest.approx(1 / 3)
    assert rows["ccr_at_0.1_released"].isna().all()  # no point near: a dash


def test_runs_of_a_protocol_share_their_resamples_so_that_differences_are_paired():
    first, second = drawn("p1", "softmax", 0), drawn("p1", "entropic", 0, shift=0.05)
    paired = EVIDENCE(pd.concat([first, second]))
    gain = paired("auroc_unknown", loss="entropic") - paired("auroc_unknown", loss="softmax")
    apart = EVIDENCE(second, seed=1)("auroc_unknown") - EVIDENCE(first, seed=2)("auroc_unknown")
    together, alone = (np.ptp(metrics.interval(each)[1:]) for each in (gain, apart))
    assert gain[0] == pytest.approx(apart[0])
    assert together < alone / 3


def test_runs_that_are_equal_differ_by_exactly_0():
    runs = [drawn("p1", loss, 0) for loss in ("softmax", "entropic")]
    evidence = EVIDENCE(pd.concat([runs[0], runs[1].sample(frac=1, random_state=1)]))
    for measure in evidence.values:
        if not measure.startswith("gamma"):  # a mean: the last bit depends on the order
            gain = evidence(measure, loss="entropic") - evidence(measure, loss="softmax")
            assert not gain.any()
            assert metrics.p_value(gain) == 1


def test_a_protocol_is_resampled_alike_whichever_others_there_are():
    alone = EVIDENCE(drawn("p2", "softmax", 0))
    among = EVIDENCE(pd.concat([drawn(protocol, "softmax", 0) for protocol in PROTOCOLS]))
    np.testing.assert_array_equal(alone("accuracy"), among("accuracy", protocol="p2"))
    assert (among("accuracy", protocol="p1") != among("accuracy", protocol="p2")).any()


def test_roles_are_resampled_apart():
    scores = np.linspace(0, 1, 60)
    run = table("p1", "softmax", known=scores, negative=scores, unknown=scores)
    run["class"] = [f"{i % 60}" for i in range(180)]
    evidence = EVIDENCE(run)
    assert (evidence("auroc_negative") != evidence("auroc_unknown"))[1:].mean() > 0.9


def test_intervals_over_classes_are_wider_where_classes_differ():
    run = drawn("p1", "softmax", 0)
    hard = run["class"].isin(["unknown0", "unknown1"])
    run["max_softmax"] = run["max_softmax"] + hard * 1.0
    over = {
        unit: metrics.interval(EVIDENCE(run, unit=unit)("auroc_unknown"))
        for unit in ("sample", "class")
    }
    widths = {unit: each.high - each.low for unit, each in over.items()}
    assert widths["class"] > 1.5 * widths["sample"]


def test_runs_with_different_test_samples_are_refused_and_named():
    first, second = drawn("p1", "softmax", 0), drawn("p1", "entropic", 0)
    second["sample"] = second["sample"].str.replace("0007", "x007")
    with pytest.raises(ValueError, match=r"p1_\w+_0 and p1_\w+_0 have different ones"):
        EVIDENCE(pd.concat([first, second]))


def test_differences_are_those_of_the_same_resamples_of_both_losses():
    runs = [drawn(p, x, i) for p in ("p1", "p2") for i, x in enumerate(("softmax", "mine"))]
    evidence = EVIDENCE(pd.concat([*runs, drawn("p3", "mine", 3)]))  # p3 lacks softmax
    found = claims.differences(evidence, "auroc_unknown", "accuracy", over="class")
    measures = ["auroc_unknown", "accuracy"]
    rows = [[p, "mine", m] for p in ("p1", "p2") for m in measures]
    assert found[["protocol", "loss", "measure"]].to_numpy().tolist() == rows
    mine, base = (evidence("auroc_unknown", protocol="p1", loss=x) for x in ("mine", "softmax"))
    first, gain = found.iloc[0], mine - base
    assert first["difference"] == gain[0]
    assert [first["low"], first["high"]] == np.percentile(gain[1:], [2.5, 97.5]).tolist()
    beyond = min((gain[1:] <= 0).sum(), (gain[1:] >= 0).sum())
    assert first["p"] == pytest.approx(min(1, 2 * (1 + beyond) / len(gain)))
    assert first["run"] == "p1_mine_1 less p1_softmax_0"


def test_table_2_has_a_row_for_each_number_of_the_paper():
    known = {0: [0.9, 0.8], 1: [0.9, 0.6]}
    runs = [
        table(protocol, loss, known=known[seed], negative=[0.3, 0.4], unknown=[0.2], seed=seed)
        for protocol in PROTOCOLS
        for loss in LOSSES
        for seed in known
    ]
    evidence = EVIDENCE(pd.concat(runs))
    epochs = pd.Series(7.0, index=evidence.keys["run"])
    ours = claims.table_2(evidence, epochs, over="class")
    on = ["protocol", "loss", "number"]
    assert len(claims.printed_table_2("last")) == 9 * 7
    both = claims.printed_table_2("last").merge(ours, on=on, suffixes=("_paper", "")).set_index(on)
    assert len(both) == 9 * 7
    row = both.loc["p1", "softmax", "gamma_minus"]
    assert row["value_paper"] == 0.47
    assert row["value"] == pytest.approx(1 - 0.35 + 1 / 2)
    assert row[["over", "seeds", "run"]].tolist() == ["class", 2, "p1_softmax_0, p1_softmax_1"]
    row, gamma = both.loc["p1", "softmax", "gamma_plus"], evidence.values["gamma_plus"]
    mean = evidence("gamma_plus", protocol="p1", loss="softmax")
    assert len(gamma) == 18
    assert row[["value", "low", "high"]].tolist() == list(metrics.interval(mean))
    assert row["sd_seeds"] == pytest.approx(np.std([0.85, 0.75], ddof=1))
    epoch = both.xs("epoch", level="number")
    assert (epoch["value"] == 7).all()
    assert epoch["low"].isna().all()


def test_accuracies_count_as_close_if_they_are_as_close_as_the_papers():
    accuracy = palechor2023.printed().points().query("selection == 'last'")
    spread = accuracy.groupby("protocol")["accuracy"].agg(np.ptp).max()
    assert spread < palechor2023.CLOSE < spread + 0.005


# Predicates


def world():
    """Rows of three losses in three protocols, in which every finding of Palechor et al. holds."""
    last = {
        "softmax": (0.70, 0.70, 0.3, 0.3, 0.6, 0.60, 0.10, 0.20),
        "background": (0.68, 0.65, 0.4, 0.4, 0.8, 0.65, 0.15, 0.25),
        "entropic": (0.69, 0.66, 0.8, 0.6, 0.9, 0.70, 0.20, 0.30),
    }
    at_01 = {"softmax": (0.40, 0.40, 0.40), "background": (0.45, 0.35, 0.45)}
    at_01["entropic"] = (0.60, 0.50, 0.55)
    names = ["accuracy", "gamma_plus", "gamma_minus_negative", "gamma_minus_unknown"]
    names += ["auroc_negative", "auroc_unknown", "ccr_at_0.001", "ccr_at_0.01"]
    rows = []
    for number, protocol in enumerate(PROTOCOLS):
        for loss, values in last.items():
            row = {"run": f"{protocol}_{loss}", "protocol": protocol, "loss": loss}
            row |= dict(zip(names, values, strict=True)) | {"ccr_at_1": values[0]}
            row["ccr_at_0.1"] = at_01[loss][number]
            best = {"accuracy": 0.65, "gamma_minus_negative": 0.9, "ccr_at_0.1": 0.65}
            rows += [row | {"selection": "last"}, row | best | {"selection": "best"}]
    return rows


def case(predicate, where, loss, measure, value, selection="last"):
    """A finding of Palechor et al., and the number that it is lost with."""
    change = {"protocol": where.split(",")[-1], "loss": loss, "selection": selection}
    return predicate, where, world(), change, measure, value


def rows(common, keys, measure, *values):
    """Rows that share keys; each value comes after its own ones."""
    own = [dict(zip([*keys.split(), measure], value, strict=True)) for value in values]
    return [{"table": "t"} | common | each for each in own]


def on_points(where, rho):
    """Three networks whose accuracy and AUROC correlate by rho, as the points of a figure."""
    accuracy, other = np.array([-1.0, 0, 1]), np.array([1.0, -2, 1]) / np.sqrt(3)
    auroc = rho * accuracy + np.sqrt(1 - rho**2) * other
    keys, by = vaze2022.POINTS[where]
    common = {"table": "t", "dataset": "d"} | keys
    values = zip(POINT[by[-1]], 0.7 + accuracy / 10, 0.5 + auroc / 10, strict=True)
    return [common | {by[-1]: name, "accuracy": x, "auroc": y} for name, x, y in values]


def last_point(where):
    """Keys of the last of these rows."""
    by = vaze2022.POINTS[where][1][-1]
    return {by: POINT[by][-1]}


POINT = {"method": vaze2022.FIGURE_2, "model": ("resnet18", "resnet34", "resnet50")}


STANDARD = {"benchmark": "standard", "dataset": "d"}
SSB = {"benchmark": "ssb", "dataset": "d"}
OOD = {"benchmark": "ood", "dataset": "cifar100", "unknown": "d"}
SIX = {"benchmark": "ood", "dataset": "d", "unknown": "six-sets"}
SPLITS = [("mls", "easy", 0.80), ("mls", "hard", 0.74), ("arpl+", "easy", 0.79)]
SPLITS += [("arpl+", "hard", 0.73), ("mls", "random 1k", 0.80), ("mls", "random 10k", 0.79)]
STATED = tables.published("vaze2022", "correlations").set_index("name")["pearson_rho"]
IN, ALL = {"benchmark": "b", "dataset": "in"}, {"benchmark": "b", "dataset": "all"}
ACCURACY = IN | {"task": "classification"}
UNKNOWN, WRONG = ALL | {"task": kim2021.UNKNOWN}, IN | {"task": kim2021.WRONG}
NEAR = {"benchmark": "b", "task": kim2021.NEAR, "dataset": "n"}
FAR = {"benchmark": "b", "task": kim2021.FAR}
AURCS = [(method, 0.6) for method in ("crl", "edl", "oe", "augmix", "mcdropout")]
AURCS += [("ensemble", 0.5), ("baseline", 0.7), ("odin", 0.8), ("openmax", 0.9)]


def auroc(common, **values):
    return rows(common, "method", "auroc", *values.items())


def ssb(measure="auroc"):
    return rows(SSB, "method open_split", measure, *SPLITS)


def openmax():
    far = [
        (m, d, v) for m, v in (("openmax", 0.9), ("oe", 0.8)) for d in ("caltech-45", "places-82")
    ]
    pool = rows(UNKNOWN, "method", "aurc", ("openmax", 0.9), ("oe", 0.6))
    return pool + rows(FAR, "method dataset", "auroc", *far)


def kinds(**near):
    """OE leads at misclassification and on far samples."""
    far = auroc(FAR | {"dataset": "f"}, oe=0.9, crl=0.8)
    return rows(WRONG, "method", "aurc", ("oe", 0.1), ("crl", 0.2)) + auroc(NEAR, **near) + far


# fmt: off
# predicate, where, rows in which it holds, the row to change, its measure, the value that loses it
CASES = [
    case("eos_gamma_minus", "p1", "entropic", "gamma_minus_negative", 0.3),
    case("eos_gamma_minus_unknown", "p3", "softmax", "gamma_minus_unknown", 0.7),
    case("bg_gamma_minus_between", "p1", "background", "gamma_minus_negative", 0.2),
    case("bg_gamma_minus_between", "p2", "background", "gamma_minus_negative", 0.85),
    case("s_gamma_plus", "p1", "background", "gamma_plus", 0.75),
    case("s_gamma_minus_falls", "p2", "softmax", "gamma_minus_negative", 0.1, "best"),
    case("eos_negatives", "p2", "entropic", "auroc_negative", 0.5),
    case("bg_negatives", "p3", "background", "auroc_negative", 0.5),
    case("eos_drop", "p1", "entropic", "auroc_unknown", 0.95),
    case("bg_drop", "p3", "background", "auroc_unknown", 0.9),
    case("eos_distant", "p1", "entropic", "ccr_at_0.001", 0.05),
    case("bg_distant", "p1", "background", "ccr_at_0.1", 0.3),
    case("eos_ccr_at_01", "p3", "background", "ccr_at_0.1", 0.6),
    case("eos_ccr_at_001", "p2", "softmax", "ccr_at_0.01", 0.4),
    case("bg_ccr_at_01", "p2", "background", "ccr_at_0.1", 0.45),
    case("eos_gain_fades", "p1", "entropic", "ccr_at_1", 0.95),
    case("easier", "p1,p3", "entropic", "ccr_at_0.1", 0.65),
    case("easier", "p3,p2", "entropic", "accuracy", 0.6),
    case("accuracies_close", "p3", "background", "accuracy", 0.6),
    case("s_accuracy", "p2", "entropic", "accuracy", 0.71),
    case("s_best_accuracy", "p3", "softmax", "accuracy", 0.75, "best"),
    case("gamma_picks", "p1", "entropic", "ccr_at_0.1", 0.0, "best"),
    *(("correlated", where, on_points(where, STATED[where]), last_point(where), "auroc", 0.0)
      for where in vaze2022.POINTS),
    ("easy_correlated_less", "imagenet",
     on_points("imagenet-hard", 0.9) + on_points("imagenet-easy", 0.6),
     {"model": "resnet50", "open_split": "hard"}, "auroc", 0.2),
    ("mls_over_msp", "d", auroc(STANDARD, mls=0.9, **{"msp+": 0.8}),
     {"method": "mls"}, "auroc", 0.7),
    ("marginal", "d", auroc(STANDARD, mls=0.9, **{"(arpl + cs)+": 0.905})
     + rows(STANDARD, "method", "auroc_std", ("arpl + cs", 0.01)),
     {"method": "mls"}, "auroc", 0.93),
    ("mls_oscr", "d", ssb("oscr"), {"method": "mls", "open_split": "hard"}, "oscr", 0.7),
    ("negligible", "d", ssb(), {"method": "mls", "open_split": "easy"}, "auroc", 0.9),
    ("hard_below_easy", "d", ssb(), {"method": "arpl+", "open_split": "hard"}, "auroc", 0.9),
    ("precision_falls", "d", ssb("average_precision"),
     {"method": "mls", "open_split": "easy"}, "average_precision", 0.6),
    ("easy_to_hard", "d", ssb(), {"method": "arpl+", "open_split": "hard"}, "auroc", 0.70),
    ("meaning_over_number", "d", ssb(), {"open_split": "random 10k"}, "auroc", 0.6),
    ("mls_over_arpl_cs", "d", auroc(OOD, mls=0.8, **{"arpl+cs": 0.7}),
     {"method": "mls"}, "auroc", 0.6),
    ("mls_leads_ood", "d", auroc(SIX, mls=0.9, odin=0.8, vos=0.7),
     {"method": "vos"}, "auroc", 0.95),
    ("ensemble_unified", "b", rows(UNKNOWN, "method", "aurc", *AURCS),
     {"method": "oe"}, "aurc", 0.4),
    ("figure_5_better", "b", rows(UNKNOWN, "method", "aurc", *AURCS),
     {"method": "edl"}, "aurc", 0.8),
    ("figure_5_odin", "b", rows(UNKNOWN, "method", "aurc", *AURCS),
     {"method": "odin"}, "aurc", 0.6),
    ("openmax_far_only", "b", openmax(), {"method": "oe", "dataset": "all"}, "aurc", 0.95),
    ("openmax_far_only", "b", openmax(), {"method": "oe", "dataset": "places-82"}, "auroc", 0.95),
    ("no_method_leads_all", "b", kinds(oe=0.7, crl=0.8),
     {"method": "oe", "dataset": "n"}, "auroc", 0.9),
    ("ensemble_accuracy", "b", rows(ACCURACY, "method", "accuracy", ("ensemble", 0.8), ("oe", 0.7)),
     {"method": "oe"}, "accuracy", 0.9),
    ("ensemble_misclassification", "b", rows(WRONG, "method", "aurc", *AURCS),
     {"method": "crl"}, "aurc", 0.1),
    ("misclassification_better", "b", rows(WRONG, "method", "aurc", *AURCS),
     {"method": "mcdropout"}, "aurc", 0.75),
    ("misclassification_worse", "b", rows(WRONG, "method", "aurc", *AURCS),
     {"method": "openmax"}, "aurc", 0.65),
    ("far_easier", "b", auroc(NEAR, baseline=0.7) + auroc(FAR | {"dataset": "f"}, baseline=0.9)
     + auroc(FAR | {"dataset": "g"}, baseline=0.6), {"dataset": "f"}, "auroc", 0.75),
    ("ensemble_near", "b", auroc(NEAR, ensemble=0.8, crl=0.7, oe=0.9),
     {"method": "crl"}, "auroc", 0.85),
    ("oe_near", "b", auroc(NEAR, ensemble=0.8, oe=0.9), {"method": "ensemble"}, "auroc", 0.95),
    ("oe_far", "b", auroc(FAR | {"dataset": "f"}, oe=0.9, crl=0.8)
     + auroc(FAR | {"dataset": "g"}, oe=0.7, crl=0.6),
     {"method": "crl", "dataset": "g"}, "auroc", 0.75),
    ("oe_trades", "b", auroc(NEAR, baseline=0.8, oe=0.7)
     + rows(WRONG, "method", "aurc", ("baseline", 0.1), ("oe", 0.2)),
     {"method": "oe", "dataset": "in"}, "aurc", 0.05),
]
# fmt: on


@pytest.mark.parametrize(
    ("predicate", "where", "world", "key", "measure", "value"), CASES, ids=lambda x: str(x)[:30]
)
def test_a_claim_holds_in_a_world_made_for_it_and_is_lost_when_its_number_turns(
    predicate, where, world, key, measure, value
):
    number = claims.CLAIMS[predicate]
    assert number(made(world), where)[0] > 0
    changed = [row for row in world if key.items() <= row.items() and measure in row]
    assert len(changed) == 1
    changed[0][measure] = value
    assert number(made(world), where)[0] <= 0


def test_a_correlation_leaves_out_what_its_figure_leaves_out_and_needs_three_points():
    world = on_points("standard", STATED["standard"])
    left_out = [row | {"dataset": "cifar+10", "accuracy": 0.1, "auroc": 0.9} for row in world]
    numbers = [vaze2022.correlated(made(rows), "standard") for rows in (world, world + left_out)]
    assert numbers[0] == pytest.approx(vaze2022.RHO_CLOSE)
    assert numbers[1] == pytest.approx(numbers[0])
    with pytest.raises(Missing, match="too few points of standard"):
        vaze2022.correlated(made(world[:2]), "standard")


# The papers' own tables: paper, predicate, where, changes that make it hold, one that loses it.
# A change is a table, the rows that a query finds, a column, and a value.
BEST = "selection == 'best' and protocol == {} and loss == '{}'".format
ROW = "method == '{}' and dataset == '{}'".format
TASK = "method == '{}' and task == '{}'".format
UNKNOWN_OE, DTD = TASK("OE", kim2021.UNKNOWN), " and metric == 'FPR_95TPR'"
# fmt: off
TABLE_CASES = [
    ("palechor2023", "bold_is_best", "p1", [("table2", BEST(1, "EOS"), "ccr_at_1e-2", 0.55)],
     ("table2", BEST(1, "BG"), "ccr_at_1e-2", 0.56)),
    ("palechor2023", "best_has_more_gamma", "p2", [("table2", BEST(2, "EOS"), "gamma_plus", 0.61)],
     ("table2", BEST(2, "S"), "gamma_plus", 0.1)),
    ("palechor2023", "images_per_class", "p1", [],
     ("table1", "protocol == 1 and role == 'known'", "test", 5801)),
    ("vaze2022", "above_cited", "mnist",
     [("table1", ROW("Baseline (MLS)", "MNIST"), "auroc_pct", 99.8)],
     ("table1", ROW("OSRCI", "MNIST"), "auroc_pct", 99.9)),
    ("vaze2022", "arpl_cs_boosted", "svhn", [],
     ("table1", ROW("(ARPL + CS)+", "SVHN"), "auroc_pct", 96.7)),
    ("vaze2022", "mls_gain", "all", [],
     ("table1", ROW("Baseline (MLS)", "MNIST"), "auroc_pct", 98.3)),
    ("vaze2022", "mls_over_prior", "all", [],
     ("table1", ROW("OpenHybrid", "TinyImageNet"), "auroc_pct", 80.0)),
    ("vaze2022", "arpl_cs_gap", "all", [],
     ("table1", ROW("(ARPL + CS)+", "MNIST"), "auroc_pct", 99.3)),
    ("vaze2022", "printed_deltas", "all", [],
     ("table1", ROW("OSRCI+", "MNIST"), "printed_delta", -0.4)),
    ("vaze2022", "table_6_repeats", "all", [],
     ("table6", ROW("MSP", "MNIST"), "auroc_pct", 97.9)),
    ("vaze2022", "recipe_rho", "all", [("correlations", "name == 'recipe'", "pearson_rho", 0.94)],
     ("table5", "row == 1", "auroc_pct", 75.0)),
    ("vaze2022", "recipe_auroc", "all", [("table5", "row == 8", "auroc_pct", 82.6)],
     ("table5", "row == 8", "auroc_pct", 82.7)),
    ("vaze2022", "ensemble_auroc", "all", [], ("table5", "row == 9", "auroc_pct", 84.1)),
    ("vaze2022", "recipe_is_mls", "all", [], ("table5", "row == 8", "auroc_pct", 82.6)),
    ("vaze2022", "ssb_images", "cub", [],
     ("table2", "dataset == 'CUB' and split == 'Easy'", "n_test_images", 916)),
    ("kim2021", "possible_unknown", "cifar", [("table5", UNKNOWN_OE, "mean", 701.5)],
     ("table5", UNKNOWN_OE, "mean", 701.4)),
    ("kim2021", "possible_unknown", "cifar-without-gaussian", [],
     ("table5", UNKNOWN_OE, "mean", 618.0)),
    ("kim2021", "possible_misclassification", "cifar", [],
     ("table5", TASK("OE", kim2021.WRONG), "mean", 40.0)),
    ("kim2021", "no_value_twice", "cifar", [("table5", ROW("CRL", "DTD") + DTD, "mean", 87.91)],
     ("table5", ROW("EDL", "DTD") + DTD, ["mean", "std"], [87.91, 0.93])),
    ("kim2021", "marked_is_best", "cifar", [],
     ("table5", TASK("OE", kim2021.NEAR) + " and metric == 'AUROC'", "mean", 80.0)),
    ("kim2021", "odin_keeps_accuracy", "imagenet", [],
     ("table6", TASK("ODIN", "classification"), "mean", 81.1)),
    ("kim2021", "readme_counts", "cifar", [("readme", "dataset == 'CIFAR-60'", "test", 6000)],
     ("readme", "dataset == 'SVHN'", "test", 4001)),
]
# fmt: on


def amended(paper, changes):
    """The paper's tables by name, changed."""

    def printed(name):
        frame = tables.published(paper, name)
        for table, query, column, value in changes:
            if table == name:
                at = frame.query(query).index
                assert len(at) == 1
                frame.loc[at, column] = value
        return frame

    return printed


@pytest.mark.parametrize(
    ("paper", "predicate", "where", "mended", "lost"), TABLE_CASES, ids=lambda x: str(x)[:30]
)
def test_a_claim_about_a_table_holds_where_it_is_mended_and_is_lost_where_it_is_not(
    paper, predicate, where, mended, lost
):
    number = claims.CLAIMS[predicate]
    assert number(amended(paper, mended), where)[0] > 0
    assert number(amended(paper, [*mended, lost]), where)[0] <= 0


def test_every_predicate_is_claimed_and_every_claim_has_one_and_a_case():
    cased = {name for name, *_ in CASES} | {name for _, name, *_ in TABLE_CASES}
    assert set(said()["predicate"]) == set(claims.CLAIMS) == cased
    for name, predicate in claims.CLAIMS.items():
        assert predicate.__name__ == name
        assert predicate.__module__.startswith("osnb.claims.")
    published = said().query("runs == 'published'")["predicate"]
    assert {claims.CLAIMS[name].__module__ for name in published} == {arithmetic.__name__}


# Decisions


@pytest.fixture(scope="module")
def printed():
    """All claims, decided on printed numbers."""
    return claims.decide([*PAPERS], ["printed"])


def test_the_claims_that_print_contradicts_are_these(printed):
    fails = printed[printed["answer"] == "does not hold"]
    assert set(zip(fails["id"], fails["where"], strict=True)) == {
        ("palechor-bg-distant", "p1"),  # .519 below .549 at FPR .1
        ("palechor-gamma-picks", "p2"),
        ("palechor-gamma-picks", "p3"),
        ("palechor-bold", "p1"),  # .535 is bold beside .543
        ("palechor-best-gamma", "p2"),
        ("vaze-arpl-cs-boosted", "mnist"),
        ("vaze-recipe-auroc", "all"),  # 82.6 in the text, 83.0 in the table
        ("vaze-recipe-rho", "all"),  # .93 in the text
        ("vaze-ssb-negligible", "cub"),
        ("vaze-ssb-negligible", "fgvc-aircraft"),
        ("vaze-ssb-oscr", "scars"),
        ("vaze-state-of-the-art", "cifar10"),
        ("vaze-state-of-the-art", "mnist"),
        ("kim-no-value-twice", "cifar"),
        ("kim-no-value-twice", "imagenet"),
        ("kim-possible-unknown", "cifar"),  # OE is below a perfect ranking
        ("kim-readme-counts", "cifar"),
        ("kim-readme-counts", "imagenet"),
    }


def test_the_numbers_that_contradict_are_those_of_the_tables(printed):
    number = printed.set_index(["id", "where"])["number"]
    rows = tables.published("vaze2022", "table5")
    rho = np.corrcoef(rows["accuracy_pct"], rows["auroc_pct"])[0, 1]
    assert round(rho, 2) == 0.94
    assert number["vaze-recipe-rho", "all"] == pytest.approx(0.5 - (rho - 0.93) / 0.01)
    assert number["vaze-recipe-auroc", "all"] == pytest.approx(0.5 - (83.0 - 82.6) / 0.1)
    assert number["palechor-bold", "p1"] == pytest.approx(0.535 - 0.543)
    assert number["vaze-ssb-oscr", "scars"] == pytest.approx(0.811 - 0.823)
    pool, right = 33_640, 0.7285 * 4_000
    perfect = [0.0] * round(right) + [(i + 1) / (right + i + 1) for i in range(pool - round(right))]
    bound = np.mean(perfect)
    assert 0.7014 < bound < 0.7016
    assert number["kim-possible-unknown", "cifar"] == pytest.approx(0.69767 - bound, abs=1e-4)


def test_what_was_read_off_a_table_holds_there(printed):
    read = printed[(printed["stated"] == "table") & (printed["answer"] != "undecided")]
    assert len(read) > 50
    assert set(read["answer"]) == {"holds"}


def test_printed_numbers_have_no_interval_and_name_their_table(printed):
    assert printed[["low", "high", "p"]].isna().all(axis=None)
    runs = printed.set_index(["id", "where"])["runs"]
    assert runs["palechor-gamma-picks", "p1"] == "Table 2a, Table 2b"
    assert runs["vaze-marginal", "mnist"] == "Table 1, Table 4"
    assert runs["kim-oe-trades", "cifar"] == "Table 5"


def test_a_dash_in_print_leaves_a_claim_undecided(printed):
    row = printed.set_index(["id", "where"]).loc["palechor-eos-ccr-0.01", "p3"]
    assert row["answer"] == "undecided"
    assert row["runs"] == "no ccr_at_0.01 of p3, softmax, last"
    assert row["todo"] == "not printed"


def test_a_wrong_paper_or_size_lists_the_valid_ones():
    with pytest.raises(KeyError, match="kim2021, palechor2023, vaze2022"):
        claims.decide(["kim2022"], ["printed"])
    with pytest.raises(KeyError, match="mini, paper, printed, tiny"):
        claims.decide(["kim2021"], ["huge"])


def test_a_number_of_exactly_0_does_not_hold_whatever_floats_make_of_it():
    def number(source, where):
        """nothing."""
        return np.array([0.3 - 0.2 - 0.1 + 1e-16])

    row = decision(number, "p1", Basis(len, ""))
    assert (row["answer"], row["number"], row["what"]) == ("does not hold", 0, "nothing")


@pytest.fixture
def runs(project):
    """Finished runs of size mini: P1 of all losses, P3 of softmax alone; P3's other two are due."""
    for protocol, loss in [*(("p1", loss) for loss in LOSSES), ("p3", "softmax")]:
        name = f"mini_{protocol}_{loss}"
        parameters = {"run": name, "size": "mini", "protocol": protocol, "loss": loss, "seed": 0}
        for shift, file in enumerate(("scores", "scores_best")):
            scores = drawn(protocol, loss, LOSSES.index(loss), shift=0.02 * shift)
            scores = scores.drop(columns=["protocol", "loss", "seed", "run", "score"])
            scores = scores.assign(source="s", group="", max_softmax_log_odds=scores["target"])
            folder = project.folder / "runs" / "12_palechor_train" / name
            tables.write(folder / f"{file}.parquet", scores, {"parameters": parameters})
        project.write("12_palechor_train", "size: mini", run=name)
    for loss in ("background", "entropic"):
        project.write("12_palechor_train", "size: mini", run=f"mini_p3_{loss}")


def test_runs_decide_with_an_interval_a_p_value_and_their_names(runs):
    rows = claims.decide(["palechor2023"], ["mini"], resamples=50).set_index(["id", "where"])
    row = rows.loc["palechor-eos-negatives", "p1"]
    assert row["answer"] in ("holds", "does not hold")
    assert row["low"] < row["number"] < row["high"]
    assert 2 / 51 <= row["p"] <= 1
    assert row["runs"] == "mini_p1_entropic, mini_p1_softmax"
    assert row["what"] == "AUROC on negatives, EOS minus S"
    assert "palechor-bold" not in rows.index
    last, best = (drawn("p1", "softmax", 0, shift=shift)[:140] for shift in (0, 0.02))
    costs = (last["pred"] == last["label"]).mean() - (best["pred"] == best["label"]).mean()
    assert rows.loc[("palechor-s-best-accuracy", "p1"), "number"] == pytest.approx(costs)


def test_what_runs_do_not_decide_says_which_are_missing_and_what_makes_them(runs):
    rows = claims.decide(["palechor2023", "kim2021"], ["mini", "paper"], resamples=10)
    rows = rows.set_index(["id", "where", "size"])
    row = rows.loc["palechor-eos-negatives", "p3", "mini"]
    assert (row["answer"], row["runs"]) == ("undecided", "no auroc_negative of p3, entropic, last")
    command = "osnb run params/12_palechor_train"
    assert row["todo"] == f"{command}/mini_p3_background.yaml; {command}/mini_p3_entropic.yaml"
    row = rows.loc["palechor-eos-negatives", "p1", "paper"]
    assert (row["runs"], row["todo"]) == ("no run", f"{command}/paper_*.yaml")
    row = rows.loc["kim-oe-near", "imagenet", "mini"]
    assert (row["answer"], row["runs"]) == ("undecided", "no run")
    assert row["todo"] == "osnb run params/31_kim_train/mini_*.yaml"


def test_a_best_epoch_that_is_the_last_one_decides_nothing():
    rows = [row | {"selection": each} for row in world()[::2] for each in ("last", "best")]
    found = claims.palechor(made(rows)).set_index(["finding", "protocol"])["holds"]
    costs = "The epoch that gamma picks costs S closed-set accuracy."
    assert found[costs].tolist() == ["undecided"] * 3


def seeds_of_one_network(odin, openmax):
    """Evidence of Baseline, ODIN and OpenMax: AURCs of wrong predictions, a number per seed."""
    found = {"baseline": np.zeros(len(odin)), "odin": odin, "openmax": openmax}
    keys = [
        {"run": f"r{i}", "benchmark": "b", "method": name, "task": kim2021.WRONG}
        for name, values in found.items()
        for i in range(len(values))
    ]
    values = np.concatenate([np.asarray(each, float) for each in found.values()])
    return Evidence(pd.DataFrame(keys), {"aurc": np.stack([values, values], axis=1)})


@pytest.mark.parametrize(
    ("odin", "openmax", "answer"),
    [
        ([0.002, 0.004], [0.001, 0.003], "holds"),
        ([0.002, -0.001], [0.004, 0.004], "undecided"),
        ([0.0, 0.004], [0.0, 0.003], "undecided"),  # one seed without a wrong prediction
        ([0.0, 0.0], [0.0, 0.0], "undecided"),
        ([-0.002, 0.001], [-0.004, -0.004], "does not hold"),
    ],
)
def test_odin_and_openmax_make_errors_worse_only_if_every_seed_says_so(odin, openmax, answer):
    basis = Basis(seeds_of_one_network(odin, openmax), "not run")
    row = decision(claims.CLAIMS["misclassification_worse"], "b", basis)
    assert row["answer"] == answer
    if answer == "undecided":
        least = np.minimum(odin, openmax)
        assert row["runs"] == f"no sign that all seeds share: {least[0]:.4f}, {least[1]:.4f}"
        assert row["todo"] == ""  # no run would decide it


def test_odin_of_fewer_networks_than_baseline_s_is_held_against_their_mean():
    both = seeds_of_one_network([0.002, 0.004], [0.002, 0.004])
    kept = [0, 1, 2, 4]  # two of Baseline, one of ODIN and of OpenMax
    one = Evidence(both.keys.iloc[kept].reset_index(drop=True), {"aurc": both.values["aurc"][kept]})
    assert claims.CLAIMS["misclassification_worse"](one, "b")[0] == pytest.approx(0.002)


def test_findings_of_a_notebook_are_those_of_the_protocols_that_it_has():
    found = claims.palechor(made([row for row in world() if row["protocol"] != "p2"]))
    assert list(found) == ["finding", "protocol", "what", "number", "low", "high", "p", "holds"]
    assert set(found["protocol"]) == {"p1", "p3", "p1, p3"}
    assert set(found["holds"]) == {"yes"}
    last = claims.palechor(made([row for row in world() if row["selection"] == "last"]))
    assert set(last["holds"]) == {"yes", "undecided"}


# What is printed


def osnb(*words):
    """(exit code, what was printed, what was complained of) of `osnb claims WORDS`."""
    done = CliRunner().invoke(app, ["claims", *map(str, words)])
    return done.exit_code, done.stdout, done.stderr


def test_the_command_prints_each_claim_once_in_lines_that_fit_a_terminal(runs):
    code, out, _ = osnb()
    assert code == 0
    lines = out.splitlines()
    assert max(map(len, lines)) <= 100
    for name in said()["id"]:
        assert sum(line.startswith(f"{name} (") for line in lines) == 1


def test_the_command_ends_with_counts_and_what_to_run(runs):
    lines = osnb("--paper", "palechor2023", "--size", "mini")[1].splitlines()
    decided = claims.decide(["palechor2023"], ["mini"])["answer"]
    answers = ("holds", "does not hold", "undecided")
    counts = next(line.split() for line in lines if line.split()[1:2] == ["mini"])
    assert counts[2:] == [str((decided == answer).sum()) for answer in answers]
    run = [f"  osnb run params/12_palechor_train/mini_p3_{x}.yaml" for x in LOSSES[1:]]
    assert lines[-2:] == run


def decided(**columns):
    """One decided claim; a list makes a row of each value."""
    row = {"paper": "p", "id": "p-x", "section": "Table 1", "stated": "law", "claim": "It is so."}
    row |= {"where": "a", "size": "mini", "answer": "holds", "number": 0.2, "low": 0.1, "high": 0.3}
    row |= {"p": 0.1, "what": "x", "runs": "r", "todo": ""}
    return pd.DataFrame(row | columns)


def test_an_interval_that_includes_0_is_marked_and_the_mark_explained():
    numbers = {"number": [0.2, 0.2, 0.0001, -0.2], "low": [-0.1, 0.1, np.nan, -0.3]}
    numbers["high"] = [0.3, 0.3, np.nan, -0.1]
    lines = list(claims.report(decided(where=["a", "b", "c", "d"], **numbers)))
    assert "  a holds +0.200~[-0.10,+0.30]" in lines
    assert "  b holds +0.200 [+0.10,+0.30]" in lines
    assert "  c holds +1e-04" in lines
    assert "  d holds -0.200 [-0.30,-0.10]" in lines
    assert "~ the interval includes 0: on other classes the answer may turn" in lines


def test_sizes_stand_beside_each_other_and_go_on_below_where_the_line_is_full():
    sizes = ["printed", "mini", "tiny", "paper"]
    lines = list(claims.report(decided(size=sizes, answer="does not hold")))
    cell = "does not hold +0.200 [+0.10,+0.30]"
    at = lines.index(f"  a {cell} {cell}")
    assert lines[at + 1] == f"    {cell} {cell}"
    assert lines[1:3] == [f"    {'printed':34} mini", f"    {'tiny':34} paper"]


def test_a_size_that_decides_nothing_has_no_column_but_is_counted():
    lines = list(claims.report(decided(size=["mini", "tiny"], answer=["holds", "undecided"])))
    assert lines[1] == "    mini"
    assert [line.split() for line in lines if line.split()[1:2] == ["tiny"]] == [
        ["p", "tiny", "0", "0", "1"]
    ]


def test_the_command_writes_json_of_the_same_decisions(tmp_path):
    file = tmp_path / "deep" / "claims.json"
    assert osnb("--paper", "kim2021", "--size", "printed", "--json", file)[0] == 0
    written = json.loads(file.read_text())
    decided = claims.decide(["kim2021"], ["printed"])
    assert [row["id"] for row in written] == decided["id"].tolist()
    assert [row["answer"] for row in written] == decided["answer"].tolist()
    assert {row["p"] for row in written} == {None}


def test_the_command_prints_json_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = json.loads(osnb("--paper", "kim2021", "--size", "printed", "--json", "-")[1])
    assert {row["size"] for row in printed} == {"printed"}
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("words", "valid"),
    [
        (["--paper", "kim"], "'kim' is not one of: kim2021, palechor2023, vaze2022"),
        (["--size", "big"], "'big' is not one of: mini, paper, printed, tiny"),
    ],
)
def test_a_wrong_paper_or_size_is_refused_with_the_valid_ones(words, valid):
    code, out, complaint = osnb(*words)
    assert (code, out) == (2, "")
    assert valid in complaint
