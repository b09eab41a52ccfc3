"""Claims that must turn when their numbers do; decisions, and what is printed of them."""

import itertools
import json
import re
import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import psutil
import pytest
import refusals
import test_cli
from finished import collecting

from osnb import metrics
from osnb.book.cli import answers
from osnb.evidence import across, build, claims, kim2021, tables
from osnb.evidence.build import Evidence, Missing, Same, largest, least
from osnb.evidence.claims import Basis, compare, decision, predicates
from osnb.evidence.names import TASKS
from osnb.evidence.palechor2023 import VALIDATION

PAPERS = ("palechor2023", "vaze2022", "kim2021")
METHODS = tables.published("kim2021", "rows")["printed"].drop_duplicates().tolist()
PLACES, LOSSES = ("p1", "p2", "p3"), ("S", "BG", "EOS")
CLAIMS = {row["id"]: row for paper in PAPERS for row in claims.claims(paper).to_dict("records")}


def made(rows):
    """Evidence of made-up rows: text is a key, a number a measure."""
    frame = pd.DataFrame(rows)
    text = [column for column in frame if pd.api.types.is_string_dtype(frame[column])]
    keys = frame[text].fillna("")
    return Evidence(keys, {m: frame[[m]].to_numpy(float) for m in frame if m not in text})


def answer(name, where, source):
    """A claim decided on rows, or on tables."""
    return decision(CLAIMS[name], where, Basis(source, ""))


# What a number is, in words


WORDS = {"auroc": "AUROC", "oscr": "OSCR area", "accuracy": "accurac", "gamma_minus": "gamma-"}
WORDS |= {"gamma_plus": "gamma+", "average_precision": "average precision", "aurc": "AURC"}
COMPARED = [name for name, row in CLAIMS.items() if not row["predicate"]]


@pytest.mark.parametrize("name", COMPARED)
def test_the_words_for_a_number_name_its_measures_its_rates_and_its_margin(name):
    row = CLAIMS[name]
    for measure in row["measure"].replace(" and ", "|").replace("; ", "|").split("|"):
        kind, at, rate = measure.partition("_at_")
        assert WORDS.get(measure, "CCR" if kind == "ccr" else "") in row["number"]
        assert rate in row["number"] if at else True
    assert row["margin"].lstrip("-") in row["number"] or " " in row["margin"]


@pytest.mark.parametrize("name", [name for name in COMPARED if name.startswith("palechor")])
def test_the_words_for_a_number_say_whether_it_is_of_negatives_or_of_unknowns(name):
    row = CLAIMS[name]
    asked = row["at"] + row["left"] + row["right"]
    if row["measure"] not in ("accuracy", "gamma_plus"):  # these are of known images
        for task, word in (("negative", "negatives"), ("unknown", "unknowns")):
            assert f"task={task}" not in asked or word in row["number"]
    assert ("validation" in row["number"]) == ("task=validation" in asked)


@pytest.mark.parametrize("name", [name for name in COMPARED if "cub" in CLAIMS[name]["scope"]])
def test_the_words_for_a_number_tell_hard_alone_from_hard_with_medium(name):
    row = CLAIMS[name]
    tasks = [x.split()[0] for side in ("at", "left", "right") for x in row[side].split("task=")[1:]]
    tasks += ["hard"] * ("easy and hard" in row["at"])
    assert ("Hard+Medium" in row["number"]) == any(x in ("hard", "easy|hard") for x in tasks)


# Evidence


def test_a_call_is_the_mean_over_the_rows_with_these_keys_and_says_which_it_used():
    evidence = made([{"run": f"r{i}", "loss": loss, "x": i} for i, loss in enumerate("aab")])
    assert evidence("x", loss="a").tolist() == [0.5]
    assert evidence.read() == ["r0", "r1"]
    assert evidence.names("loss") == ["a", "b"]
    assert evidence.unread().read() == []


def test_a_call_takes_the_mean_over_seeds_before_that_over_splits():
    rows = [("0", 1.0), ("0", 2.0), ("0", 3.0), ("1", 6.0)]
    named = [{"run": f"r{i}", "split": split, "x": x} for i, (split, x) in enumerate(rows)]
    assert made(named)("x").tolist() == [4.0]


def test_methods_are_compared_on_the_splits_that_all_of_them_have():
    common = {"place": "cub", "network": "n", "benchmark": "ssb_cub", "size": "tiny", "source": ""}
    numbers = [("mls", "0", 0.5), ("mls", "1", 0.9), ("arpl+", "0", 0.6), ("arpl+", "1", 0.8)]
    rows = [
        {"run": name + split, **common, "printed": name, "split": split, "task": task, "oscr": x}
        for name, split, x in numbers
        for task in ("easy", "hard")
    ]
    assert answer("vaze-ssb-oscr", "cub", made(rows))["number"] == pytest.approx(0)
    found = answer("vaze-ssb-oscr", "cub", made(rows[:6]))
    assert found["number"] == pytest.approx(-0.1)  # over all splits of MLS it would be +.1
    assert found["runs"] == "arpl+0, mls0"
    lone = answer("vaze-ssb-oscr", "cub", made([*rows[:2], *rows[6:]]))
    assert (lone["answer"], lone["runs"]) == (
        "undecided",
        "no split of ssb_cub has all of its methods",
    )


def test_best_on_every_far_set_needs_every_far_set_and_says_which_were_read():
    common = {"place": "cifar", "network": "n", "benchmark": "cifar40", "split": "0", "seed": "0"}
    common |= {"task": "far", "size": "paper"}
    rows = [
        {"run": name, **common, "printed": name, "source": of, "auroc": 0.9 - 0.4 * (name != "oe")}
        for of in ("svhn", "lsun-fix", "gaussian noise", "dtd")
        for name in METHODS
    ]
    whole = answer("kim-oe-far", "cifar", made(rows))
    assert whole["number"] == pytest.approx(0.4)
    assert whole["runs"].endswith("; far sets: dtd, gaussian noise, lsun-fix, svhn")
    some = answer("kim-oe-far", "cifar", made(rows[len(METHODS) :]))
    assert (some["answer"], some["runs"]) == ("undecided", "not run on: svhn")


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
    one, other = np.array([1.0, 2.0, 0.5]), np.array([3.0, -1.0, 4.0])
    assert least(one, other)[0] == 1
    assert largest(one, other)[0] == 3
    assert least(one).tolist() == one.tolist()
    assert least(one[:1], other[:1]).tolist() == [1]


def test_a_resample_that_lacks_one_number_leaves_the_ends_of_the_others():
    rng = np.random.default_rng(0)
    one, other = rng.normal([[1.0], [3]], size=(2, 1001))
    lacking = np.where(np.arange(1001) % 5 == 1, np.nan, other)
    found = least(one, lacking)
    assert np.isnan(found).sum() == 200
    kept = ~np.isnan(lacking)
    assert found[~np.isnan(found)].tolist() == least(one[kept], other[kept]).tolist()


def test_the_ends_of_a_least_are_those_of_its_parts():
    rng = np.random.default_rng(0)
    parts = np.hstack(
        [np.array([[1.0], [1.2], [4]]), rng.normal([[1.0], [1.2], [4]], size=(3, 4000))]
    )
    low = min(np.quantile(part[1:], 0.025) for part in parts)
    high = min(np.quantile(part[1:], 1 - 0.025 / 3) for part in parts)
    assert metrics.interval(least(*parts)) == pytest.approx((1, low, high), abs=0.02)
    assert metrics.interval(largest(*-parts)) == pytest.approx((-1, -high, -low), abs=0.02)


def test_numbers_that_are_all_0_are_rarely_found_to_have_a_least_below_it_or_a_largest_above():
    rng, found = np.random.default_rng(0), []
    noise = rng.normal(size=(6, 2000))
    for numbers in rng.normal(size=(1000, 6, 1)):
        both = np.hstack([numbers, numbers + noise])
        ends = metrics.interval(least(*both)), metrics.interval(largest(*both))
        plain = metrics.interval(both.min(axis=0))  # of the least in each resample
        found.append([ends[0].low > 0, ends[0].high < 0, ends[1].high < 0, ends[1].low > 0])
        found[-1].append(plain.high < 0)
    *rates, of_plain = np.mean(found, axis=0)
    assert max(rates) < 0.04
    assert of_plain > 0.4


def test_a_lead_is_of_the_class_that_baseline_has_most_on_in_the_same_split(monkeypatch):
    keys = ["run", "benchmark", "place", "split", "method"]
    rows = [("a", 0, "softmax", 0.6, 0.3, 0.1), ("b", 0, "oe", 0.2, 0.5, 0.3)]
    rows += [
        ("c", 1, "softmax", 0.1, 0.2, 0.7),
        ("d", 1, "oe", 0.1, 0.3, 0.6),
        ("e", 2, "oe", 1, 0, 0),
    ]
    means = pd.DataFrame(rows, columns=["run", "split", "method", "0", "1", "2"])
    means = means.assign(benchmark="cifar40", place="cifar", source="patterns")
    monkeypatch.setattr(tables, "artefacts", lambda *_: means)
    found = kim2021.concentrated(means[keys], resamples=2)
    assert found.keys["run"].tolist() == ["a", "b", "c", "d"]  # split 2 has no Baseline
    assert set(found.keys["source"]) == {"dtd"}
    assert found("lead", printed="baseline", split="0") == pytest.approx([0.3] * 3)
    assert found("lead", printed="oe", split="0") == pytest.approx([-0.3] * 3)
    assert found("lead", printed="oe", split="1") == pytest.approx([0.3] * 3)
    monkeypatch.setattr(tables, "artefacts", lambda *_: means[[]])
    assert len(kim2021.concentrated(means[keys], resamples=2).keys) == 0


# Predicates


def world():
    """Rows of three losses in three protocols, in which every finding of Palechor et al. holds."""
    negative = {"S": (0.60, 0.10, 0.3), "BG": (0.65, 0.15, 0.4), "EOS": (0.70, 0.30, 0.8)}
    names = ["gamma_plus", "gamma_minus", "accuracy", "ccr_at_1", "ccr_at_0.01", "fpr_at_0.5"]
    unknown = {"S": (0.70, 0.3, 0.70, 0.70, 0.20, 0.7), "BG": (0.65, 0.4, 0.68, 0.68, 0.25, 0.6)}
    unknown["EOS"] = (0.66, 0.6, 0.69, 0.69, 0.30, 0.1)
    at_01 = {"S": (0.40, 0.45, 0.40), "BG": (0.45, 0.35, 0.41), "EOS": (0.60, 0.50, 0.45)}
    best = {"gamma_minus": 0.9, "accuracy": 0.65, "ccr_at_1": 0.70, "ccr_at_0.01": 0.40}
    watched = {"S": (0.9, 0.3, 0.2), "BG": (0.9, 0.4, 0.3), "EOS": (0.95, 0.8, 0.7)}
    rows = []
    for number, (place, name) in enumerate(itertools.product(PLACES, LOSSES)):
        key = {"run": f"{place}_{name}", "place": place, "printed": name}
        part = dict(zip(names, unknown[name], strict=True))
        part |= {"ccr_at_0.1": at_01[name][number // 3], "oscr": 0.5}
        other = dict(zip(["oscr", "ccr_at_0.01", "gamma_minus"], negative[name], strict=True))
        if place == "p3":
            part["accuracy"] = {"S": 0.72, "BG": 0.68, "EOS": 0.69}[name]
        if place == "p1":
            part["accuracy"] = {"S": 0.68, "BG": 0.67, "EOS": 0.69}[name]
        for selection, more in (("last", {}), ("best", best | {"ccr_at_0.1": 0.65})):
            at = key | {"selection": selection}
            rows += [at | {"task": "negative"} | other, at | {"task": "unknown"} | part | more]
        for selection, gamma in zip(("first", "last", "lowest"), watched[name], strict=True):
            gamma += 0.02 * (place == "p1")
            rows.append(key | {"selection": selection, "task": "validation", "gamma_minus": gamma})
    return rows


def case(name, where, loss, measure, value, selection="last", place=""):
    """A finding of Palechor et al., and the number that it is lost with."""
    measure, _, task = measure.partition("@")
    place = place or where.split(",")[-1]
    change = {"place": place, "printed": loss, "selection": selection}
    change |= {"task": task or "unknown"}
    return f"palechor-{name}", where, world(), change, measure, value


def rows(common, keys, measure, *values):
    """Rows that share keys; each value comes after its own ones."""
    own = [dict(zip([*keys.split(), measure], value, strict=True)) for value in values]
    return [{"table": "t"} | common | each for each in own]


def on_points(where, rho):
    """Twelve points of a figure, three places four times, that correlate by rho."""
    accuracy, other = np.array([-1.0, 0, 1]), np.array([1.0, -2, 1]) / np.sqrt(3)
    auroc = rho * accuracy + np.sqrt(1 - rho**2) * other
    common = {"table": "t", "place": "d"} | predicates.POINTS[where][0]
    measured = zip(np.tile(0.7 + accuracy / 10, 4), np.tile(0.5 + auroc / 10, 4), strict=True)
    values = zip(points_of(where), measured, strict=True)
    return [common | point | {"accuracy": x, "auroc": y} for point, (x, y) in values]


def points_of(where):
    """Keys that tell these rows apart."""
    if where != "standard":
        return [{"network": f"resnet{depth}"} for depth in range(10, 22)]
    pairs = itertools.product(("mnist", "svhn", "cifar10", "cifar+50"), predicates.FIGURE_2)
    return [dict(zip(("place", "printed"), pair, strict=True)) for pair in pairs]


STANDARD = {"place": "d", "task": "unknown"}
SSB = {"place": "d"}
SPLITS = [("mls", "easy", 0.80), ("mls", "hard", 0.74), ("arpl+", "easy", 0.79)]
SPLITS += [("arpl+", "hard", 0.73), ("mls", "random 1k", 0.80), ("mls", "random 10k", 0.79)]
FALLING = [
    (m, t, v)
    for m in ("mls", "arpl+")
    for t, v in zip(("easy", "medium", "hardest"), (0.7, 0.6, 0.5), strict=True)
]
STATED = tables.published("vaze2022", "correlations").set_index("name")["pearson_rho"]
UNKNOWN, WRONG = ({"place": "b", "task": task} for task in ("unknown", "wrong"))
NEAR = {"place": "b", "task": "near", "source": "n"}
FAR = {"place": "b", "task": "far"}
AURCS = [(method, 0.6) for method in ("crl", "edl", "oe", "augmix", "mcdropout")]
AURCS += [("ensemble", 0.5), ("baseline", 0.7), ("odin", 0.8), ("openmax", 0.9)]


def architectures():
    """Five families along one line on ImageNet, ResNets on it, ViT above it."""
    places = {"vgg16": (0.71, 0.02), "vgg19": (0.72, -0.02), "efficientnet_b0": (0.78, 0.02)}
    places |= {"efficientnet_b1": (0.79, -0.02), "mixer_b16": (0.76, 0.01), "vit_base": (0.8, 0.2)}
    places |= {f"resnet{n}": (0.69 + n / 1000, 0) for n in range(21, 102, 8)}
    places |= {f"squeezenet{n}": (0.3 + n / 50, 0.01 * (-1) ** n) for n in range(10)}
    common = {"table": "t", "place": "imagenet", "printed": "mls"}
    found = ((name, task, x, y) for task in ("easy", "hard") for name, (x, y) in places.items())
    keys = ("network", "task", "accuracy", "auroc")
    return [common | dict(zip(keys, (n, t, x, x + y), strict=True)) for n, t, x, y in found]


def deviations():
    """The four methods of Table 4 on its data sets; TinyImageNet's are the largest."""
    places = [(place, 0.01) for place in ("mnist", "svhn", "cifar10", "cifar+50")] + [
        ("tinyimagenet", 0.03)
    ]
    keys = {"table": "t", "task": "unknown"}
    named = [(p, m, x) for p, x in places for m in (*predicates.FIGURE_2, "osrci")]
    return [
        keys | {"place": p, "printed": m, "accuracy_std": x, "auroc_std": x} for p, m, x in named
    ]


def watched():
    """Figure 7 as the paper tells it."""
    common = {"table": "t", "place": "d", "task": "watched"}
    first = {"norm_known": 1.0, "norm_gap": 0.1, "norm_of_classes": 1.0}
    last = {"norm_known": 3.0, "norm_gap": 1.0, "norm_of_classes": 2.0, "auroc_max_logit": 0.9}
    last |= {"auroc_max_softmax": 0.8, "auroc_feature_norm": 0.85}
    ends = {"first": first, "last": last}
    dims = ("D = 2", "D = 128")
    return [common | {"printed": d, "selection": x} | ends[x] for d in dims for x in ends]


def auroc(common, **values):
    return rows(common, "printed", "auroc", *values.items())


def confidence(common, **values):
    return rows(common, "printed", "confidence", *values.items())


def ssb(measure="auroc"):
    return rows(SSB, "printed task", measure, *SPLITS)


def kinds(**near):
    """OE leads at misclassification and on far samples."""
    far = auroc(FAR | {"source": "f"}, oe=0.9, crl=0.8)
    return rows(WRONG, "printed", "aurc", ("oe", 0.1), ("crl", 0.2)) + auroc(NEAR, **near) + far


# fmt: off
# predicate, where, rows in which it holds, the row to change, its measure, the value that loses it
CASES = [
    case("eos-negatives", "p2", "EOS", "oscr@negative", 0.5),
    case("bg-negatives", "p3", "BG", "oscr@negative", 0.5),
    case("eos-over-bg", "p1", "BG", "oscr@negative", 0.8),
    case("eos-negatives-0.01", "p1", "BG", "ccr_at_0.01@negative", 0.4),
    case("eos-drop", "p1", "EOS", "oscr", 0.7),
    case("bg-drop", "p3", "BG", "oscr", 0.6),
    case("eos-distant", "p1", "EOS", "ccr_at_0.1", 0.42),
    case("accuracies-close", "p3", "BG", "accuracy", 0.6),
    case("accuracy-gained", "p1,p2,p3", "EOS", "accuracy", 0.6, place="p1"),
    case("gamma-minus-starts-high", "p1", "BG", "gamma_minus@validation", 0.3, "first"),
    case("eos-stays-high", "p2", "BG", "gamma_minus@validation", 0.75, "lowest"),
    case("eos-stays-highest", "p1,p3", "EOS", "gamma_minus@validation", 0.75, "lowest"),
    case("bg-gamma-minus-low", "p1", "BG", "gamma_minus@negative", 0.9),
    case("eos-suppresses", "p1", "EOS", "fpr_at_0.5", 0.6),
    case("eos-suppresses", "p1", "BG", "fpr_at_0.5", 0.4),
    case("gamma-picks-bg", "p2", "BG", "ccr_at_0.01", 0.2, "best"),
    case("gamma-picks-eos", "p1", "EOS", "ccr_at_0.1", 0.3, "best"),
    case("difficulty", "p1,p2", "EOS", "ccr_at_0.1", 0.69),
    case("difficulty", "p2,p3", "EOS", "ccr_at_0.1", 0.65),
    case("closed-difficulty", "p1,p3", "S", "accuracy", 0.6),
    case("s-gamma-plus", "p1", "BG", "gamma_plus", 0.75),
    case("eos-ccr-0.1", "p3", "BG", "ccr_at_0.1", 0.6),
    case("bg-ccr-0.1", "p2", "BG", "ccr_at_0.1", 0.47),
    case("s-accuracy", "p2", "EOS", "accuracy", 0.71),
    *(("vaze-correlation", where, on_points(where, 0.999), points_of(where)[-1], "auroc", -3.0)
      for where in predicates.POINTS),
    ("vaze-correlation-easy", "imagenet",
     on_points("imagenet-hard", 0.99) + on_points("imagenet-easy", 0.6),
     {"network": "resnet21", "task": "hard"}, "auroc", -3.0),
    ("vaze-ssb-oscr", "d", ssb("oscr"), {"printed": "mls", "task": "hard"}, "oscr", 0.7),
    ("vaze-ssb-negligible", "d", ssb(), {"printed": "mls", "task": "easy"}, "auroc", 0.9),
    ("vaze-hard-below-easy", "d", ssb(), {"printed": "arpl+", "task": "hard"}, "auroc", 0.9),
    *(("vaze-precision-falls", "d", rows(SSB, "printed task", "average_precision", *FALLING),
       {"printed": name, "task": task}, "average_precision", value)
      for name, task, value in (("mls", "medium", 0.4), ("arpl+", "hardest", 0.65))),
    ("vaze-precision-falls-imagenet", "d", ssb("average_precision"),
     {"printed": "mls", "task": "easy"}, "average_precision", 0.6),
    ("vaze-precision-below-auroc", "d",
     ssb() + rows(SSB, "printed task", "average_precision", *FALLING),
     {"printed": "arpl+", "task": "hardest"}, "average_precision", 0.64),
    ("vaze-family-correlated-more", "imagenet", architectures(),
     {"network": "resnet101", "task": "hard"}, "auroc", 0.55),
    ("vaze-vit-above-trend", "imagenet", architectures(),
     {"network": "vit_base", "task": "easy"}, "auroc", 0.6),
    ("vaze-no-family-stands-out", "imagenet", architectures(),
     {"network": "vgg16", "task": "hard"}, "auroc", 0.9),
    ("vaze-deviations-alike", "svhn", deviations(), {"place": "svhn", "printed": "osrci"},
     "auroc_std", 0.05),
    ("vaze-deviations-tinyimagenet", "tinyimagenet", deviations(),
     {"place": "mnist", "printed": "arpl"}, "accuracy_std", 0.2),
    ("vaze-norm-gap-widens", "d", watched(),
     {"printed": "D = 2", "selection": "last"}, "norm_gap", 0.05),
    ("vaze-norms-grow", "d", watched(),
     {"printed": "D = 128", "selection": "last"}, "norm_of_classes", 0.5),
    ("vaze-softmax-reduces", "d", watched(),
     {"printed": "D = 128", "selection": "last"}, "auroc_max_softmax", 0.95),
    ("vaze-norm-tells", "d", watched(),
     {"printed": "D = 128", "selection": "last"}, "auroc_feature_norm", 0.6),
    ("vaze-easy-to-hard", "d", ssb(), {"printed": "arpl+", "task": "hard"}, "auroc", 0.70),
    ("vaze-meaning-over-number", "d", ssb(), {"task": "random 10k"}, "auroc", 0.6),
    ("kim-figure-5-better", "b", rows(UNKNOWN, "printed", "aurc", *AURCS),
     {"printed": "edl"}, "aurc", 0.8),
    ("kim-three-improve", "b", rows(UNKNOWN, "printed", "aurc", *AURCS),
     {"printed": "augmix"}, "aurc", 0.8),
    ("kim-no-method-leads-all", "b", kinds(oe=0.7, crl=0.8),
     {"printed": "oe", "source": "n"}, "auroc", 0.9),
    ("kim-ensemble-misclassification", "b", rows(WRONG, "printed", "aurc", *AURCS),
     {"printed": "crl"}, "aurc", 0.1),
    ("kim-misclassification-better", "b", rows(WRONG, "printed", "aurc", *AURCS),
     {"printed": "mcdropout"}, "aurc", 0.75),
    ("kim-misclassification-worse", "b", rows(WRONG, "printed", "aurc", *AURCS),
     {"printed": "openmax"}, "aurc", 0.65),
    ("kim-near-confident", "b", confidence(WRONG, baseline=0.5, ensemble=0.4)
     + confidence(NEAR, baseline=0.6, ensemble=0.5), {"printed": "ensemble", "task": "near"},
     "confidence", 0.3),
    ("kim-near-above-far", "b", confidence(NEAR, baseline=0.6, ensemble=0.5)
     + confidence(FAR | {"source": "f"}, baseline=0.5, ensemble=0.3)
     + confidence(FAR | {"source": "g"}, baseline=0.5, ensemble=0.5),
     {"printed": "ensemble", "source": "f"}, "confidence", 0.6),
    ("kim-ensemble-raises", "b", confidence(NEAR, baseline=0.6, ensemble=0.58)
     + rows(WRONG, "printed", "confidence_right", ("baseline", 0.8), ("ensemble", 0.9)),
     {"printed": "ensemble", "task": "near"}, "confidence", 0.4),
    ("kim-oe-even", "b", confidence(NEAR, baseline=0.6, oe=0.5)
     + confidence(FAR | {"source": "svhn"}, baseline=0.6, oe=0.3)
     + confidence(FAR | {"source": "dtd"}, baseline=0.6, oe=0.4),
     {"printed": "oe", "source": "dtd"}, "confidence", 0.7),
    ("kim-near-hardest", "b", auroc(NEAR, baseline=0.7, oe=0.75, crl=0.6)
     + auroc(FAR | {"source": "f"}, baseline=0.8, oe=0.7, crl=0.9),
     {"printed": "crl", "task": "far"}, "auroc", 0.84),
    ("kim-md-near-far", "b", auroc(NEAR, baseline=0.7, crl=0.8, edl=0.8)
     + auroc(FAR | {"source": "f"}, baseline=0.7, crl=0.8, edl=0.8),
     {"printed": "edl", "task": "far"}, "auroc", 0.6),
    ("kim-no-method-improves-near", "b", auroc(NEAR, baseline=0.7, oe=0.74, crl=0.6),
     {"printed": "oe"}, "auroc", 0.76),
    ("kim-dtd-on-one-class", "b",
     rows({"place": "b", "task": "concentration", "source": "dtd"}, "printed", "lead",
          ("baseline", 0.3), ("ensemble", 0.2), ("oe", 0.1)), {"printed": "oe"}, "lead", -0.1),
]
# fmt: on


@pytest.mark.parametrize(
    ("name", "where", "world", "key", "measure", "value"), CASES, ids=lambda x: str(x)[:30]
)
def test_a_claim_holds_in_a_world_made_for_it_and_is_lost_when_its_number_turns(
    name, where, world, key, measure, value
):
    assert answer(name, where, made(world))["answer"] == "holds"
    changed = [row for row in world if key.items() <= row.items() and measure in row]
    assert len(changed) == 1
    changed[0][measure] = value
    assert answer(name, where, made(world))["answer"] == "does not hold"


@pytest.mark.parametrize("paper", claims.ASKED)
def test_claims_are_decided_on_every_measure_that_they_name(paper):
    tasks = {"palechor2023": "roles", "vaze2022": "shifts", "kim2021": "unified"}[paper]
    there = {name for names in TASKS[tasks].asked.values() for name in names}
    compared = claims.claims(paper).query("runs != 'published'")["measure"]
    named = {name for cell in compared for name in re.split(r"\|| and |; ", cell)}
    assert named & there <= {*claims.ASKED[paper]} <= there


def test_a_method_that_stands_alone_is_held_against_nothing():
    row = answer("kim-no-method-improves-near", "b", made(auroc(NEAR, baseline=0.7)))
    assert (row["answer"], row["runs"]) == ("undecided", "no method but baseline")


def test_a_correlation_leaves_out_what_its_figure_leaves_out_and_needs_three_points():
    world = on_points("standard", 0.999)
    left_out = [row | {"place": "cifar+10", "accuracy": 0.1, "auroc": 0.9} for row in world[:3]]
    numbers = [predicates.correlated(made(rows), "standard") for rows in (world, world + left_out)]
    assert numbers[0] == pytest.approx(0.05 + 0.999 - 0.95)  # higher than stated is as high
    assert numbers[1] == pytest.approx(numbers[0])
    with pytest.raises(Missing, match="too few points of standard"):
        predicates.correlated(made(world[:2]), "standard")


@pytest.mark.parametrize(("rho", "points"), [(0.999, 3), (0.5, 3), (0.95, 12), (0.5, 4)])
def test_a_correlation_that_other_networks_may_turn_decides_nothing(rho, points):
    world = on_points("resnet-hard", rho)[:points]
    with pytest.raises(Missing, match=f"{points} points of resnet-hard: others may turn it"):
        predicates.correlated(made(world), "resnet-hard")


def test_the_resamples_of_a_correlation_that_is_claimed_are_turned_round_it():
    alike, drawn = (made(on_points("resnet-hard", rho)) for rho in (0.999, 0.9))
    both = {m: np.hstack([alike.values[m], drawn.values[m]]) for m in predicates.MEASURES}
    odds = 1999**2 / 19  # (1 + rho) / (1 - rho), squared, over that of the resample
    turned = np.array([0.999, (odds - 1) / (odds + 1)])
    numbers = predicates.correlated(Evidence(alike.keys, both), "resnet-hard")
    assert numbers == pytest.approx(turned - STATED["resnet-hard"] + 0.05, abs=1e-9)


def test_two_correlations_that_other_networks_may_turn_are_not_compared():
    hard, easy = on_points("imagenet-hard", 0.99), on_points("imagenet-easy", 0.6)
    assert predicates.easy_correlated_less(made(hard + easy), "") == pytest.approx(0.99 - 0.6)
    with pytest.raises(Missing, match="4 points of imagenet-hard, 4 of imagenet-easy"):
        predicates.easy_correlated_less(made(hard[:4] + easy[:4]), "")
    for row in hard[3:] + easy[3:]:
        row["network"] = row["network"].replace("resnet", "vgg")
    with pytest.raises(Missing, match="3 points of resnet-easy, 12 of imagenet-easy"):
        predicates.family_correlated_more(made(hard + easy), "")


def test_a_correlation_over_networks_is_of_the_splits_that_all_of_them_have():
    world = [row | {"split": "0"} for row in on_points("imagenet-hard", 0.999)]
    other = world[0] | {"split": "1", "accuracy": 0.9, "auroc": 0.1}
    number = predicates.correlated(made([*world, other]), "imagenet-hard")
    assert number == pytest.approx(0.05 + 0.999 - STATED["imagenet-hard"])
    with pytest.raises(Missing, match="no split that all points"):
        predicates.correlated(made([other, *world[1:]]), "imagenet-hard")


# The papers' own tables: paper, predicate, where, changes that make it hold, one that loses it.
# A change is a table, the rows that a query finds, a column, and a value.
BEST = "selection == 'best' and protocol == {} and loss == '{}'".format
ROW = "method == '{}' and dataset == '{}'".format
TASK = "method == '{}' and task == '{}'".format
UNKNOWN_OE, DTD = TASK("OE", "unknown_detection"), " and metric == 'FPR_95TPR'"
# fmt: off
TABLE_CASES = [
    ("palechor2023", "bold_is_best", "p1", [("table2", BEST(1, "EOS"), "ccr_at_1e-2", 0.55)],
     ("table2", BEST(1, "BG"), "ccr_at_1e-2", 0.56)),
    ("palechor2023", "images_per_class", "p1", [],
     ("table1", "protocol == 1 and role == 'known'", "test", 5801)),
    ("vaze2022", "above_cited", "mnist",
     [("table1", ROW("Baseline (MLS)", "MNIST"), "auroc_pct", 99.8)],
     ("table1", ROW("OSRCI", "MNIST"), "auroc_pct", 99.9)),
    ("vaze2022", "almost_all_boosted", "all", [],
     ("table1", ROW("(ARPL + CS)+", "SVHN"), "auroc_pct", 96.7)),
    ("vaze2022", "osrci_boosted_more", "all", [],
     ("table1", ROW("OSRCI+", "CIFAR10"), "auroc_pct", 61.0)),
    ("vaze2022", "best_of_table", "cifar+10", [],
     ("table1", ROW("Baseline (MLS)", "CIFAR+10"), "auroc_pct", 98.1)),
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
     ("table5", TASK("OE", "misclassification_detection"), "mean", 40.0)),
    ("kim2021", "no_value_twice", "cifar", [("table5", ROW("CRL", "DTD") + DTD, "mean", 87.91)],
     ("table5", ROW("EDL", "DTD") + DTD, ["mean", "std"], [87.91, 0.93])),
    ("kim2021", "marked_is_best", "cifar", [],
     ("table5", TASK("OE", "near_ood_detection") + " and metric == 'AUROC'", "mean", 80.0)),
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
    number = claims.COMPUTED[predicate]
    assert number(amended(paper, mended), where)[0] > 0
    assert number(amended(paper, [*mended, lost]), where)[0] <= 0


def test_every_claim_has_a_case_or_is_a_comparison_that_print_decides(printed):
    cased = {name for name, *_ in CASES} | {name for _, name, *_ in TABLE_CASES}
    cased |= {"palechor-not-clearly-better"}  # asks for intervals, below
    names = {x["predicate"] if x["runs"] == "published" else n for n, x in CLAIMS.items()}
    assert cased <= names
    settled = printed.query("answer != 'undecided'")["id"]
    assert names - cased <= {*COMPARED} & {*settled}
    assert printed["answer"].value_counts().to_dict() == {
        "holds": 142,
        "undecided": 49,
        "does not hold": 14,
    }


# Decisions


@pytest.fixture(scope="module")
def printed():
    """All claims, decided on printed numbers."""
    return claims.decide([*PAPERS], ["printed"])


def test_papers_are_decided_beside_each_other_as_each_alone(printed):
    beside = claims.decide([*PAPERS], ["printed"], processes=2)
    pd.testing.assert_frame_equal(printed, beside)


def test_the_claims_that_print_contradicts_are_these(printed):
    fails = printed[printed["answer"] == "does not hold"]
    assert set(zip(fails["id"], fails["where"], strict=True)) == {
        ("palechor-difficulty", "p2,p3"),  # EOS keeps .717 of its accuracy in P2, .744 in P3
        ("palechor-bold", "p1"),  # .535 is bold beside .543
        ("vaze-deviations-alike", "cifar+50"),  # AUROC: .23 to 1.47
        ("vaze-deviations-alike", "svhn"),  # AUROC: .31 to 2.97
        ("vaze-recipe-auroc", "all"),  # 82.6 in the text, 83.0 in the table
        ("vaze-recipe-rho", "all"),  # .93 in the text
        ("vaze-ssb-negligible", "cub"),
        ("vaze-ssb-negligible", "fgvc-aircraft"),
        ("vaze-ssb-oscr", "scars"),
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
    assert number["vaze-family-correlated-more", "imagenet"] == pytest.approx(0.99 - 0.88)
    assert number["vaze-correlation-easy", "imagenet"] == pytest.approx(0.88 - 0.63)
    assert number["vaze-ssb-oscr", "scars"] == pytest.approx(0.811 - 0.823)
    pool, right = 33_640, 0.7285 * 4_000
    perfect = [0.0] * round(right) + [(i + 1) / (right + i + 1) for i in range(pool - round(right))]
    bound = np.mean(perfect)
    assert 0.7014 < bound < 0.7016
    assert number["kim-possible-unknown", "cifar"] == pytest.approx(0.69767 - bound, abs=1e-4)


def test_what_was_read_off_a_table_holds_there(printed):
    read = printed[(printed["stated"] == "table") & (printed["answer"] != "undecided")]
    assert len(read) >= 37
    assert set(read["answer"]) == {"holds"}


def test_printed_numbers_have_no_interval_and_name_their_table(printed):
    assert printed[["low", "high", "p"]].isna().all(axis=None)
    runs = printed.set_index(["id", "where"])["runs"]
    assert runs["palechor-gamma-picks-bg", "p1"] == "Table 2a, Table 2b"
    assert runs["vaze-marginal", "mnist"] == "Table 1, Table 4"
    assert runs["vaze-hard-below-easy", "cub"] == "Table 3"  # average precision is in Table 9
    assert runs["vaze-precision-falls", "cub"] == "Table 9"
    assert runs["vaze-logit-auroc", "tinyimagenet"] == "Table 5"  # and its deviation in Table 4
    assert runs["kim-oe-trades", "cifar"] == "Table 5"
    assert runs["vaze-family-correlated-more", "imagenet"] == "Figure 3a, Figure 3b"


def test_a_dash_in_print_leaves_a_claim_undecided(printed):
    row = printed.set_index(["id", "where"]).loc["palechor-eos-ccr-0.01", "p3"]
    assert row["answer"] == "undecided"
    assert row["runs"] == "no ccr_at_0.01 of p3, unknown, last, S"
    assert row["todo"] == "not printed"


def test_a_number_of_exactly_0_does_not_hold_whatever_floats_make_of_it():
    three = rows(STANDARD, "printed", "auroc", ("mls", 0.3), ("msp+", 0.2 + 0.1 - 1e-16))
    row = answer("vaze-mls-over-msp", "d", made(three))
    assert (row["answer"], row["number"]) == ("does not hold", 0)


def test_a_resample_without_a_number_counts_neither_way():
    values = np.r_[0.01, np.random.default_rng(0).normal(0.01, 0.05, 200)]
    found = claims._answered(np.r_[values, np.full(50, np.nan)], "paper")
    assert found == claims._answered(values, "paper")
    with pytest.raises(Missing):
        claims._answered(np.full(9, np.nan), "paper")


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Finished runs of size mini: P1 of all losses, P3 of softmax alone; P3's other two are due."""
    made_of = []
    methods = ("softmax", "background", "entropic")
    for place, method in [*(("p1", method) for method in methods), ("p3", "softmax")]:
        run = f"mini_{place}_{method}"
        for shift, file in enumerate(("scores", "scores_best")):
            rng = np.random.default_rng(methods.index(method))
            roles = [("known", k % 2) for k in range(140)] + [("negative", -1)] * 91
            frame = pd.DataFrame(roles + [("unknown", -2)] * 119, columns=["role", "label"])
            score = rng.beta(2, 2, len(frame)) + (frame["role"] == "known") * 0.02 * shift
            frame = frame.assign(source="s", group="", sample=frame.index.astype(str))
            frame["class"] = frame["role"] + (frame.index % 7).astype(str)
            label = frame["label"].clip(lower=0)
            frame["pred"] = np.where(score >= 0.5, label, 1 - label)
            for rule in ("target", "max_softmax", "max_softmax_log_odds"):
                frame[rule] = score.clip(0, 1)
            path = tmp_path / run / f"{file}.parquet"
            tables.write(path, frame, {"notebook": "n", "run": run, "parameters": {}})
        history = pd.DataFrame({"epoch": [1, 2, 3], "gamma_minus": [0.9, 0.5, 0.7]})
        history.to_parquet(path.with_name("history.parquet"))
        row = {"run": run, "path": str(path.with_name("scores.parquet")), "benchmark": place}
        row["size"] = "mini"
        row |= {"protocol": place, "split": 0, "network": "conv 16", "regime": "baseline"}
        made_of.append(row | {"method": method, "seed": 0})
    missing = ["mini_p3_background", "mini_p3_entropic"]
    collecting(monkeypatch, ("12_palechor_train", "mini"), made_of, missing=missing)
    return made_of


def test_runs_decide_with_an_interval_a_p_value_and_their_names(runs):
    rows = claims.decide(["palechor2023"], ["mini"], resamples=50).set_index(["id", "where"])
    row = rows.loc["palechor-eos-negatives", "p1"]
    assert row["low"] < row["number"] < row["high"]
    open_ = (rows["low"] <= 0) & (rows["high"] >= 0) | rows["number"].isna()
    assert set(rows.loc[open_, "answer"]) == {"undecided"}
    assert set(rows.loc[~open_ & (rows["number"] > 0), "answer"]) == {"shows"}
    assert set(rows.loc[~open_ & (rows["number"] <= 0), "answer"]) == {"does not show"}
    assert 2 / 51 <= row["p"] <= 1
    assert row["runs"] == "mini_p1_entropic, mini_p1_softmax"
    assert row["what"] == "OSCR area on negatives, EOS minus S"
    assert "palechor-bold" not in rows.index
    last, best = (
        tables.read(runs[0]["path"].replace("scores.", f"{file}."))[:140]
        for file in ("scores", "scores_best")
    )
    costs = (last["pred"] == last["label"]).mean() - (best["pred"] == best["label"]).mean()
    assert rows.loc[("palechor-s-best-accuracy", "p1"), "number"] == pytest.approx(costs)


def test_gamma_of_the_history_needs_three_that_agree_since_it_has_no_interval(runs):
    rows = claims.decide(["palechor2023"], ["mini"], resamples=10).set_index(["id", "where"])
    row = rows.loc["palechor-gamma-minus-starts-high", "p1"]
    assert (row["answer"], row["runs"]) == (
        "undecided",
        "no interval, and signs +1, +1 beside +0.200",
    )
    of = {"place": "p1", "task": VALIDATION, "run": "r", "size": "mini"}
    seeds = [(str(seed), loss) for seed in (0, 1) for loss in ("S", "BG")]

    def decided(*firsts):
        world = [
            of | {"seed": seed, "printed": loss, "selection": selection, "gamma_minus": gamma}
            for (seed, loss), first in zip(seeds, firsts, strict=True)
            for selection, gamma in (("first", first), ("last", 0.5))
        ]
        return answer("palechor-gamma-minus-starts-high", "p1", made(world))

    row = decided(0.9, 0.8, 0.7, 0.8)
    assert (row["answer"], row["number"]) == ("shows", pytest.approx(0.3))
    assert all(np.isnan(row[name]) for name in ("low", "high", "p"))
    said = "no interval, and signs {} beside {}".format
    row = decided(0.9, 0.8, 0.7, 0.4)
    assert (row["answer"], row["runs"]) == ("undecided", said("+1, +1, +1, -1", "+0.100"))
    row = decided(*[0.5 + 1e-15] * 4)  # no rise at all, three times and more
    assert (row["answer"], row["runs"]) == ("undecided", said("+0, +0, +0, +0", "+0.000"))


def test_three_that_agree_decide_no_number_of_another_sign():
    of = {"place": "b", "task": VALIDATION, "run": "r", "size": "mini"}
    gammas = {"S": (0.9, 0.1, 0.1, 0.1), "BG": (0.8,), "more": (0.7,)}  # BG has one seed
    claim = dict(CLAIMS["palechor-gamma-minus-starts-high"])
    claim["left"] = claim["left"].replace("S|BG", "S|BG|more")
    world = [
        of | {"seed": str(seed), "printed": loss, "selection": at, "gamma_minus": gamma}
        for loss, firsts in gammas.items()
        for seed, first in enumerate(firsts)
        for at, gamma in (("first", first), ("last", 0.5))
    ]
    with pytest.raises(Same, match=r"signs \+1, \+1, \+1 beside -0\.200"):
        compare.number(made(world), "b", claim)


def test_without_an_interval_the_sign_is_that_of_every_rival_and_not_of_the_first():
    values = {"a": 0.5, "b": 0.4, "c": 0.6}  # a is ahead of b alone
    of = {"run": "r", "place": "p1"}
    world = [
        of | {"printed": name, "seed": seed, "auroc": value}
        for name, value in values.items()
        for seed in "123"
    ]
    claim = dict.fromkeys(("margin", "apart"), "") | {"measure": "auroc", "at": "drawn=no"}
    claim |= {"left": "a", "relation": ">"}
    for rivals in ("b|c", "c|b"):
        with pytest.raises(Same, match="no interval, and signs"):
            compare.number(made(world), "p1", claim | {"right": rivals})


def test_the_runs_that_are_kept_decide_claims_of_vaze_et_al(monkeypatch):
    every = tables.collect("21_vaze_train", "mini")
    few = every[every["run"].str.startswith(("mini_norms", "mini_closed_ten_"))]
    monkeypatch.setattr(tables, "collect", lambda *_: few)
    rows = claims.decide(["vaze2022"], ["mini"], resamples=1).set_index("id")
    assert rows.loc["vaze-norms-grow", "runs"] == "mini_norms, mini_norms_plane"
    norms = rows[rows.index.str.contains("vaze-norm|softmax-reduces")]  # no image is drawn again
    assert norms["low"].isna().all()
    decided = norms.index[norms["number"].notna()]  # by three comparisons or more that agree
    assert decided.tolist() == ["vaze-norms-grow"]
    assert len(norms) == 4
    ten = [f"mini_closed_ten_{name}" for name in ("softmax", "strong", "vos")]
    assert rows.loc["vaze-ood-mls-leads", "runs"] == ", ".join(ten)


def test_methods_share_a_network_among_the_rows_that_are_asked_for():
    keys = pd.DataFrame(
        [("wrn", "mls", "six-sets"), *(("vgg32", name, "") for name in ("mls", "msp"))],
        columns=["network", "printed", "source"],
    )
    both = Evidence(keys.assign(place="cifar10"), {"auroc": np.full((3, 1), 0.5)})
    asked = {"measure": "auroc", "place": "cifar10", "network": "shared"}
    assert compare.shared(both, asked)["network"] == "vgg32"
    assert compare.shared(both, asked | {"source": "six-sets|svhn"})["network"] == "wrn"


def test_a_gain_is_clear_if_its_interval_lies_above_0():
    keys = pd.DataFrame({"printed": ["S", "BG", "EOS"]})
    keys = keys.assign(run="r", place="p2", task="unknown", selection="last")
    gains = np.random.default_rng(0).normal(
        [[0], [0.1], [0.05]], [[0], [0.02], [0.01]], (2000, 3, 1)
    )
    area = np.hstack([[[0.5], [0.6], [0.55]], 0.5 + gains[:, :, 0].T])
    number = predicates.not_clearly_better(Evidence(keys, {"oscr": area}), "p2")
    low = max(np.quantile(row[1:] - 0.5, 0.025 / 2) for row in area[1:])  # either may be larger
    assert number == pytest.approx(-low, abs=0.001)
    area[1:, 1:] -= 0.06
    with pytest.raises(Same, match="no proof"):  # a test that does not find one
        predicates.not_clearly_better(Evidence(keys, {"oscr": area}), "p2")


def test_what_runs_do_not_decide_says_which_are_missing_and_what_makes_them(runs):
    papers = ("palechor2023", "kim2021")
    rows = pd.concat(claims.decide([x], ["mini", "paper"], resamples=10) for x in papers)
    rows = rows.set_index(["id", "where", "size"])
    row = rows.loc["palechor-eos-negatives", "p3", "mini"]
    assert (row["answer"], row["runs"]) == ("undecided", "no oscr of p3, negative, last, EOS")
    command = "osnb run params/12_palechor_train"
    assert row["todo"] == f"{command}/mini_p3_background.yaml; {command}/mini_p3_entropic.yaml"
    row = rows.loc["palechor-eos-negatives", "p1", "paper"]
    assert (row["runs"], row["todo"]) == ("no run", f"{command}/paper_*.yaml")
    row = rows.loc["kim-oe-near", "imagenet", "mini"]
    assert (row["answer"], row["runs"]) == ("undecided", "no run")
    assert row["todo"] == "osnb run params/31_kim_train/mini_*.yaml"


def test_a_best_epoch_that_is_the_last_one_decides_nothing():
    last = [row for row in world() if row["selection"] == "last"]
    both = [row | {"selection": each} for row in last for each in ("last", "best")]
    for name, said in (("s-best-accuracy", "last is best"), ("gamma-picks-eos", "best is last")):
        row = answer(f"palechor-{name}", "p1", made(both))
        assert (row["answer"], row["runs"], row["todo"]) == ("undecided", said, "")


def seeds_of_one_network(odin, openmax):
    """Evidence of Baseline, ODIN and OpenMax: AURCs of wrong predictions, a number per seed."""
    found = {"baseline": np.zeros(len(odin)), "odin": odin, "openmax": openmax}
    keys = [
        {"run": f"r{i}", "place": "b", "printed": name, "task": "wrong"}
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
    row = decision(CLAIMS["kim-misclassification-worse"], "b", basis)
    assert row["answer"] == answer
    if answer == "undecided":
        least = np.minimum(odin, openmax)
        assert row["runs"] == f"no sign that all seeds share: {least[0]:.4f}, {least[1]:.4f}"
        assert row["todo"] == ""  # no run would decide it


def test_odin_of_fewer_networks_than_baseline_s_is_held_against_their_mean():
    both = seeds_of_one_network([0.002, 0.004], [0.002, 0.004])
    kept = [0, 1, 2, 4]  # two of Baseline, one of ODIN and of OpenMax
    one = Evidence(both.keys.iloc[kept].reset_index(drop=True), {"aurc": both.values["aurc"][kept]})
    assert predicates.misclassification_worse(one, "b")[0] == pytest.approx(0.002)


def test_odin_of_fewer_networks_than_openmax_decides_nothing():
    both = seeds_of_one_network([0.002, 0.004], [0.002, 0.004])
    kept = [0, 1, 2, 4, 5]  # two of Baseline and of OpenMax, one of ODIN
    one = Evidence(both.keys.iloc[kept].reset_index(drop=True), {"aurc": both.values["aurc"][kept]})
    row = decision(CLAIMS["kim-misclassification-worse"], "b", Basis(one, "not run"))
    assert row["runs"] == "ODIN and OpenMax read different numbers of networks"


@pytest.mark.parametrize("size", ["paper", "mini"])
@pytest.mark.parametrize(
    ("far", "noise", "seeds", "ours"),
    [
        (0.9, 0.5, [0], "undecided"),
        (0.9, 0.5, [0, 1], "no"),
        (0.7, 0.5, [0], "no"),
        (0.9, 0.9, [0], "yes"),
    ],
)
def test_an_answer_that_the_noise_of_one_training_turns_is_none(size, far, noise, seeds, ours):
    of = {"size": size, "place": "cifar", "task": "far"}
    others, noisy = [name for name in METHODS if name != "oe"], claims.NOISE[0]
    sets = dict.fromkeys(("dtd", "svhn", "lsun-fix"), far) | {noisy: noise}
    rows = [(*x, 0.8, n) for x in itertools.product(others, sets) for n in (0, 1)]
    rows += [("oe", x, auroc, n) for n in seeds for x, auroc in sets.items()]
    world = [of | {"run": f"{x}{n}", "printed": x, "source": s, "auroc": y} for x, s, y, n in rows]
    row = answer("kim-oe-far", "cifar", made(world))
    words = across.ILLUSTRATED if size == "mini" else across.DECIDED
    assert row["answer"] == dict(zip(("yes", "no"), words, strict=True)).get(ours, ours)
    if ours == "undecided":
        said = "one training's noise turns it: -0.300, +0.100 without it"
        assert (row["runs"], row["todo"]) == (said, "")
    rows = made([{k: v for k, v in row.items() if k != "size"} for row in world])
    assert answer("kim-oe-far", "cifar", rows)["answer"] != "undecided"  # as print, means of five


def test_an_answer_about_a_pool_that_the_noise_of_one_training_turns_is_none():
    of = {"size": "paper", "place": "cifar"}
    pools = (claims.UNKNOWN, claims.ALL, 0.2), (claims.WITHOUT, claims.WITHOUT, -0.1)
    world = [
        of | {"run": name, "printed": name, "task": task, "source": source, "aurc": 0.5 + x * more}
        for task, source, more in pools
        for x, name in enumerate(("ensemble", "oe"))
    ]
    row = answer("kim-ensemble-over-oe", "cifar", made(world))
    said = "one training's noise turns it: +0.200, -0.100 without it"
    assert (row["answer"], row["runs"]) == ("undecided", said)
    quiet = [x for x in world if x["task"] != claims.WITHOUT]
    assert answer("kim-ensemble-over-oe", "cifar", made(quiet))["answer"] == "holds"


@pytest.mark.parametrize(
    ("behind", "classes", "ours"),
    [
        ("svhn", 3, "undecided"),
        ("svhn", 4, "does not hold"),
        ("svhn", 0, "does not hold"),  # images were drawn
        (claims.NOISE[0], 1, "does not hold"),  # of two trainings
    ],
)
def test_an_answer_that_a_set_of_a_handful_of_classes_turns_is_none(behind, classes, ours):
    source, claim = far_sets(behind, classes), CLAIMS["kim-oe-far"]
    row = decision(claim, "cifar", Basis(source, "not run"))
    assert row["answer"] == ours
    if classes == 3:
        said = "a set of fewer than 4 classes turns it: -0.500, +0.100 without it"
        assert row["runs"] == said
    claim = claim | {"at": f"task=far source={behind} drawn=no"}  # no interval, so of no classes
    assert decision(claim, "cifar", Basis(source, ""))["answer"] == "does not hold"


def far_sets(behind, classes):
    """Evidence of all methods on far sets: OE is ahead on all but one, of so many classes."""
    of = {"size": "paper", "place": "cifar", "benchmark": "c", "task": "far"}
    sets = dict.fromkeys(("svhn", "dtd", "lsun-fix", claims.NOISE[0]), 0.1) | {behind: -0.5}
    grid = [*itertools.product("01", sets, METHODS)]
    keys = [of | {"run": x + n, "seed": n, "printed": x, "source": s} for n, s, x in grid]
    values = np.array([[0.7 + sets[s] * (x == "oe")] * 3 for _, s, x in grid])
    sides = [({*range(40)}, {*range(classes if s == behind else 9)}) for _, s, _ in grid]
    drawn = build.objects(sides) if classes else None
    return Evidence(pd.DataFrame(keys), {"auroc": values}, drawn=drawn)


def test_classes_of_a_set_are_those_of_all_splits_and_of_what_is_averaged():
    keys = pd.DataFrame([dict.fromkeys(build.KEYS, "x") | {"split": x} for x in "01"])
    sides = build.objects([({1}, {2, 3}), ({1}, {3, 4})])
    numbers = Evidence(keys, {"auroc": np.ones((2, 3))}, drawn=sides)
    both = numbers + Evidence(keys.assign(printed="y"), {"auroc": np.ones((2, 3))})
    for found in (numbers, both.only(both.keys["printed"] == "x")):
        found("auroc", printed="x")
        assert found.few(1).tolist() == [False, False]
        assert found.few(2).tolist() == [True, True]  # one known class
        assert found.few(2, "x").tolist() == [False, False]
    assert not both.few(9).any()  # none of it was read
    known = Evidence(keys, {"auroc": np.ones((2, 3))}, drawn=build.objects([x[1:] for x in sides]))
    known("auroc")
    assert (known.few(3).any(), known.few(4).all()) == (False, True)
    mean = across.averaged(known, "printed")
    mean("auroc")
    assert (mean.few(3).any(), mean.few(4).all()) == (False, True)


def test_a_number_whose_resamples_are_all_missing_decides_nothing():
    row = decision(*of_two([[0.1, np.nan], [0.2, np.nan]]))
    assert (row["answer"], row["runs"]) == (
        "undecided",
        "no interval: aurc of cifar, unknown, ensemble",
    )


def of_two(aurc, **how):
    """A claim that the Ensemble is ahead of OE, and what it is decided from."""
    of, names = {"size": "tiny", "place": "cifar", "task": "unknown"}, ("ensemble", "oe")
    keys = pd.DataFrame([{"run": name, "printed": name} | of for name in names])
    source = Evidence(keys, {"aurc": np.array(aurc)}, **how)
    return CLAIMS["kim-ensemble-over-oe"], "cifar", Basis(source, "not run")


@pytest.mark.parametrize("size", ["paper", "mini"])
@pytest.mark.parametrize(
    ("name", "best", "ours"),
    [
        ("kim-ensemble-near", 0.9, "undecided"),
        ("kim-ensemble-near", 0.5, "no"),  # one that is ahead of it is enough
        ("kim-no-method-leads-all", 0.9, "undecided"),
        ("kim-no-method-leads-all", 0.5, "undecided"),
    ],
)
def test_an_answer_about_all_methods_that_one_which_was_not_run_may_turn_is_none(
    size, name, best, ours
):
    yes, no = across.ILLUSTRATED if size == "mini" else across.DECIDED
    of = dict.fromkeys(METHODS, 0.7) | {"ensemble": best}
    world = auroc(NEAR, **of) + auroc(FAR | {"source": "f"}, **of)
    world += rows(WRONG, "printed", "aurc", *of.items())
    world = [row | {"size": size} for row in world]
    some = [row for row in world if row["printed"] not in ("edl", "oe")]
    row = answer(name, "b", made(some))
    assert row["answer"] == {"no": no}.get(ours, ours)
    assert row["runs"].startswith("not run: edl") == (ours == "undecided")
    assert answer(name, "b", made(world))["answer"] in (yes, no)


@pytest.mark.parametrize("names", [["oe"], ["baseline"], ["mahalanobis"], ["mahalanobis", "oe"]])
@pytest.mark.parametrize("predicate", [predicates.no_method_leads_all, predicates.near_hardest])
def test_claims_about_all_methods_need_more_than_one(predicate, names):
    keys = [{"printed": x, "place": "b", "task": task} for x in names for task in ("near", "far")]
    values = {m: np.full((len(keys), 1), 0.5) for m in ("auroc", "aurc")}
    with pytest.raises(Missing):
        predicate(Evidence(pd.DataFrame(keys), values), "b")


def test_findings_stand_beside_print_and_are_undecided_where_nothing_decides():
    asked = {"palechor-eos-ccr-0.1": ["p2", "p9"], "palechor-difficulty": ["p1,p2"]}
    found = claims.findings("palechor2023", made(world()), asked, over="class")
    assert found["where"].tolist() == ["p2", "p9", "p1,p2"]
    assert found["ours"].tolist() == ["holds", "undecided", "holds"]
    assert found["in print"].tolist() == ["holds", "undecided", "holds"]
    assert found["printed"].iloc[0] == pytest.approx(0.476 - 0.443)
    whole = claims.findings("palechor2023", made(world()), ["palechor-eos-drop"], over="class")
    assert whole["where"].tolist() == ["p1", "p2", "p3"]


@pytest.mark.parametrize(
    ("size", "yes", "no"),
    [
        ("mini", "shows", "does not show"),
        ("tiny", "holds", "does not hold"),
        ("paper", "holds", "does not hold"),
        ("printed", "holds", "does not hold"),
    ],
)
def test_the_miniature_shows_and_only_other_sizes_decide(size, yes, no):
    nan = float("nan")
    assert across.verdict(0.2, 0.1, 0.3, size=size) == yes
    assert across.verdict(0.2, nan, nan, size=size) == yes
    assert across.verdict(-0.2, -0.3, -0.1, size=size) == no
    assert across.verdict(0.0, nan, nan, size=size) == no
    assert across.verdict(0.2, 0.0, 0.3, size=size) == "undecided"
    assert across.verdict(nan, nan, nan, size=size) == "undecided"


def test_findings_of_the_miniature_are_shown_beside_print_that_decides():
    mini = made([row | {"size": "mini"} for row in world()])
    found = claims.findings("palechor2023", mini, {"palechor-eos-ccr-0.1": ["p1"]}, over="class")
    assert found[["ours", "in print"]].to_numpy().tolist() == [["shows", "holds"]]


# What is printed


osnb = partial(test_cli.osnb, "claims")


def test_each_claim_is_reported_once_in_lines_that_fit_a_terminal(runs):
    lines = [*answers.report(claims.decide([*PAPERS], [*claims.SIZES]))]
    assert max(map(len, lines)) <= 100
    for name in CLAIMS:
        assert sum(line.startswith(f"{name} (") for line in lines) == 1


@pytest.fixture
def ready(printed, monkeypatch):
    """Lets the command have `printed` for what it decides, of the papers that it asks for."""

    def decide(papers, sizes, *, processes):
        assert (sizes, processes) == (["printed"], len(papers))
        return printed.query("paper in @papers")

    monkeypatch.setattr(claims, "decide", decide)


def test_the_command_prints_what_all_papers_claim(printed, ready):
    assert osnb("--size", "printed") == (0, "\n".join([*answers.report(printed), ""]), "")


def test_the_command_ends_with_counts_and_what_to_run(runs):
    lines = osnb("--paper", "palechor2023", "--size", "mini")[1].splitlines()
    decided = claims.decide(["palechor2023"], ["mini"])["answer"]
    counts = next(line.split() for line in lines if line.split()[1:2] == ["mini"])
    kinds = ("shows", "does not show", "undecided")
    assert counts[2:] == [str((decided == answer).sum()) for answer in kinds]
    run = [
        f"  osnb run params/12_palechor_train/mini_p3_{x}.yaml" for x in ("background", "entropic")
    ]
    assert lines[-2:] == run


def decided(**columns):
    """One decided claim; a list makes a row of each value."""
    row = {"paper": "p", "id": "p-x", "section": "Table 1", "stated": "law", "claim": "It is so."}
    row |= {"where": "a", "size": "mini", "answer": "holds", "number": 0.2, "low": 0.1, "high": 0.3}
    row |= {"p": 0.1, "what": "x", "runs": "r", "todo": ""}
    return pd.DataFrame(row | columns)


def test_an_answer_has_its_number_and_interval_and_undecided_says_which_it_lacks():
    numbers = {"number": [0.2, 0.2, 0.0001, np.nan], "low": [-0.1, 0.1, np.nan, np.nan]}
    numbers |= {"high": [0.3, 0.3, np.nan, np.nan], "runs": ["r", "r", "r", "no auroc"]}
    numbers |= {"answer": ["undecided", "shows", "shows", "undecided"]}
    lines = list(answers.report(decided(where=["a", "b", "c", "d"], **numbers)))
    assert "  a undecided +0.200 [-0.100,+0.300]" in lines
    assert "  b shows +0.200 [+0.100,+0.300]" in lines
    assert "  c shows +1e-04" in lines
    assert "  d undecided: no auroc" in lines
    assert ["p", "mini", "2", "0", "2"] in [line.split() for line in lines]
    (note,) = (line for line in lines if line.startswith("undecided"))
    assert re.search(r"\bnumber\b.*\binterval\b.*\b0\b", note)


def test_sizes_stand_beside_each_other_and_go_on_below_where_the_line_is_full():
    sizes = ["printed", "mini", "tiny", "paper"]
    lines = list(answers.report(decided(size=sizes, answer="does not hold")))
    cell = "does not hold +0.200 [+0.100,+0.300]"
    at = lines.index(f"  a {cell} {cell}")
    assert lines[at + 1] == f"    {cell} {cell}"
    assert lines[1:3] == [f"    {'printed':36} mini", f"    {'tiny':36} paper"]


def test_a_size_that_decides_nothing_has_no_column_but_is_counted():
    lines = list(answers.report(decided(size=["mini", "tiny"], answer=["holds", "undecided"])))
    assert lines[1] == "    mini"
    assert [line.split() for line in lines if line.split()[1:2] == ["tiny"]] == [
        ["p", "tiny", "0", "0", "1"]
    ]


def test_the_command_writes_json_of_the_same_decisions_or_prints_it_alone(
    printed, ready, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    asked = ("--paper", "kim2021", "--size", "printed", "--json")
    found = json.loads(osnb(*asked, "-")[1])
    assert not [*tmp_path.iterdir()]
    file = tmp_path / "deep" / "claims.json"
    assert osnb(*asked, file)[0] == 0
    assert json.loads(file.read_text()) == found
    decided = printed.query("paper == 'kim2021'")
    assert [row["id"] for row in found] == decided["id"].tolist()
    assert [row["answer"] for row in found] == decided["answer"].tolist()
    assert {row["p"] for row in found} == {None}


@pytest.mark.parametrize(
    ("words", "valid"),
    [
        (["--paper", "kim"], "'kim' is not one of: kim2021, palechor2023, vaze2022"),
        (["--size", "big"], "'big' is not one of: mini, paper, printed, tiny"),
    ],
)
def test_a_wrong_paper_or_size_is_refused_with_the_valid_ones(words, valid):
    assert valid in refusals.refused("claims", *words)


def test_its_processes_end_with_a_command_that_was_killed():
    command = [sys.executable, "-c", "from osnb.book.cli import app; app()", "claims"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        while len(psutil.Process(process.pid).children()) < 3:  # one tracks semaphores
            assert process.poll() is None
        process.kill()
        process.communicate(timeout=300)  # they have its output open, and so it ends with them


def test_a_family_is_off_the_line_of_the_others_in_their_standard_deviations_about_it():
    world = [row for row in architectures() if row["task"] == "easy"]
    vit = [row["network"].startswith("vit") for row in world]
    x, y = (np.array([row[m] for row in world]) for m in ("accuracy", "auroc"))
    rest = ~np.array(vit)
    line = np.polyfit(x[rest], y[rest], 1)
    above = y - np.polyval(line, x)
    spread = np.sqrt(np.square(above[rest]).sum() / (rest.sum() - 2))
    off = predicates._off_trend(made(world), "easy")["vit"]
    assert off[0] == pytest.approx(above[~rest].mean() / spread)
