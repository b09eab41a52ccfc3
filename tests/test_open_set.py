"""Evidence of Vaze et al. 2022 from scores tables, against counting pairs by hand."""

import numpy as np
import pandas as pd
import pytest

from osnb import claims, tables
from osnb.claims.open_set import DATASETS, METHODS, for_claims
from osnb.protocols import PROTOCOLS

RUN = {
    "protocol": "mini_tinyimagenet",
    "split": 0,
    "seed": 0,
    "recipe": "strong",
    "loss": "smoothed",
}
RUN |= {"method": "plain", "model": "conv", "width": 16, "backbone": "", "dataset": "synsets"}


@pytest.fixture
def runs(tmp_path):
    """A function that writes a run's scores table: unknown groups by name, from a seed."""
    made = []

    def add(groups=("",), others=(), seed=0, **settings):
        rng, name = np.random.default_rng(seed), f"r{len(made)}"
        parts = [("known", "synsets", "", k % 3) for k in range(60)]
        parts += [("unknown", "synsets", group, -2) for group in groups for _ in range(40)]
        parts += [("unknown", other, other, -2) for other in others for _ in range(40)]
        frame = pd.DataFrame(parts, columns=["role", "source", "group", "label"])
        frame["sample"] = [f"s{i:04}" for i in range(len(frame))]
        number = (frame.index % 10).astype(str)
        frame["class"] = frame["role"] + frame["source"] + frame["group"] + number
        frame["pred"] = np.where(rng.random(len(frame)) < 0.8, frame["label"].clip(lower=0), 1)
        for rule in ("max_softmax_log_odds", "max_logit", "own"):
            frame[rule] = (rng.normal(size=len(frame)) + (frame["role"] == "known")).round(1)
        tables.write(tmp_path / f"{name}.parquet", frame, {"parameters": {}})
        made.append(RUN | settings | {"run": name, "path": str(tmp_path / f"{name}.parquet")})
        return frame

    add.frame = lambda: pd.DataFrame(made)
    return add


def pairs_right(known, unknown):
    """The share of pairs in which the known sample scores higher; a tie is half of one."""
    first, second = np.asarray(known)[:, None], np.asarray(unknown)
    return ((first > second) + 0.5 * (first == second)).mean()


def of(table, rule, unknown):
    return pairs_right(table.loc[table["role"] == "known", rule], table.loc[unknown, rule])


def test_auroc_and_accuracy_are_those_of_the_table(runs):
    table = runs()
    found = claims.vaze_evidence(runs.frame(), resamples=20)
    key = {"benchmark": "standard", "dataset": "tinyimagenet"}
    for method, rule in (("mls", "max_logit"), ("msp+", "max_softmax_log_odds")):
        value = found("auroc", method=method, **key)
        assert value[0] == pytest.approx(of(table, rule, table["role"] == "unknown"))
        assert value.shape == (21,)
    known = table[table["role"] == "known"]
    right = (known["pred"] == known["label"]).mean()
    assert found("accuracy", method="mls", **key)[0] == pytest.approx(right)
    assert found.names("method", **key) == ["mls", "msp+"]


def test_draws_are_shared_so_that_equal_scores_differ_by_nothing(runs):
    runs(seed=3)
    runs(seed=3, loss="arpl")
    found = claims.vaze_evidence(runs.frame(), resamples=50)
    mls, arpl = (found("auroc", method=name) for name in ("mls", "arpl+"))
    assert np.ptp(mls) > 0
    np.testing.assert_array_equal(mls, arpl)


def test_hard_is_hard_and_medium_and_hardest_is_hard_alone(runs):
    table = runs(("easy", "medium", "hard"), protocol="mini_ssb_fine")
    found = claims.vaze_evidence(runs.frame(), resamples=0)
    rows = {"hard": ("medium", "hard"), "hardest": ("hard",), "easy": ("easy",)}
    for name, groups in rows.items():
        value = found("auroc", method="mls", dataset="cub", open_split=name)[0]
        assert value == pytest.approx(of(table, "max_logit", table["group"].isin(groups)))


def test_a_tenth_of_the_random_classes_stands_for_1k(runs):
    table = runs(("easy", "random"), protocol="mini_ssb_imagenet")
    points = claims.vaze_evidence(runs.frame(), resamples=0).points()
    points = points[points["method"] == "mls"].set_index("open_split")["auroc"]
    assert set(points.index) == {"easy", "random 1k", "random 10k"}
    random = table[table["group"] == "random"]
    each = {of(table, "max_logit", rows.index) for _, rows in random.groupby("class")}
    assert points["random 10k"] == pytest.approx(of(table, "max_logit", random.index))
    assert min(abs(points["random 1k"] - value) for value in each) < 1e-12


def test_other_data_sets_are_apart_and_six_sets_is_their_mean(runs):
    table = runs(("near",), ("svhn", "uniform_noise"), protocol="mini_closed", recipe="baseline")
    plain = claims.vaze_evidence(runs.frame(), resamples=5)
    assert set(plain.names("method")) == {"msp", "mls, baseline"}
    found = for_claims(plain)
    key = {"benchmark": "ood", "dataset": "cifar100", "method": "mls"}
    names = set(found.names("unknown", **key))
    assert names > {"svhn", "uniform-noise", "six-sets"}
    value = found("auroc", unknown="uniform-noise", **key)[0]
    assert value == pytest.approx(of(table, "max_logit", table["source"] == "uniform_noise"))
    parts = [found("auroc", unknown=name, **key) for name in sorted(names - {"six-sets"})]
    np.testing.assert_allclose(found("auroc", unknown="six-sets", **key), np.mean(parts, axis=0))


def test_the_standard_deviation_is_over_splits_not_over_seeds(runs):
    for split, seed in ((0, 0), (0, 1), (1, 2)):
        runs(seed=seed + 10, split=split)
    found = claims.vaze_evidence(runs.frame(), resamples=4)
    one, two, three = found.rows("auroc", method="mls")
    wanted = abs((one + two) / 2 - three) / np.sqrt(2)
    np.testing.assert_allclose(found("auroc_std", method="mls"), wanted)
    alone = claims.vaze_evidence(runs.frame().iloc[:2], resamples=4)
    with pytest.raises(claims.Missing, match="auroc_std"):
        alone("auroc_std", method="mls")


def test_every_rule_is_there_if_it_is_asked_for_and_none_without_a_name_otherwise(runs):
    runs(recipe="cutout")
    few, all_ = (claims.vaze_evidence(runs.frame(), every_rule=e, resamples=0) for e in (0, 1))
    assert few.keys.empty
    assert set(all_.keys["rule"]) == {"max_softmax_log_odds", "max_logit", "own"}
    assert set(all_.keys["method"]) == {""}


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"method": "plain", "loss": "softmax"}, "softmax"),
        ({"method": "plain", "loss": "smoothed"}, "softmax"),
        ({"method": "plain", "loss": "arpl"}, "ARPL"),
        ({"method": "plain", "loss": "rpl"}, "RPL"),
        ({"method": "arpl_cs", "loss": "arpl"}, "ARPL + CS"),
        ({"method": "osrci", "loss": "smoothed"}, "OSRCI"),
        ({"method": "c2ae", "loss": "softmax"}, "C2AE"),
    ],
)
def test_a_network_is_called_as_the_paper_calls_it(settings, name):
    assert claims.training(settings) == name


def test_names_of_methods_and_data_sets_are_those_of_the_papers_tables():
    printed = pd.concat([tables.published("vaze2022", f"table{n}") for n in (1, 3, 4, 6, 8)])
    known = set(printed["method"].str.removeprefix("Baseline (").str.rstrip(")"))
    ours = set(METHODS.values()) - {"MLS, baseline", "feature norm", "MLS"}
    assert {name.rstrip(")") for name in ours} <= known
    datasets = {name for benchmark, name in DATASETS.values() if benchmark != "ood"}
    assert datasets <= set(printed["dataset"].dropna().str.lower())
    assert set(DATASETS) - {"mini_closed"} <= set(PROTOCOLS)


def test_every_method_of_the_miniature_ranks_known_above_unknown():
    """On the splits that each method was trained for; other data sets are another question."""
    points = claims.vaze_evidence(tables.collect("21_vaze_train", "mini"), resamples=0).points()
    points = points[(points["benchmark"] == "standard") & (points["method"] != "")]
    wanted = {name.lower() for name in METHODS.values()}
    assert set(points["method"]) == wanted
    assert (points["auroc"] > 0.5).all(), points[points["auroc"] <= 0.5]
