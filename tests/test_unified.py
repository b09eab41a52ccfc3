"""Evidence of Kim et al. 2021 from scores tables, against slow sums; and what its notebook sees."""

import ast
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from osnb import claims, repro, tables
from osnb.claims import unified
from osnb.claims.kim2021 import FAR, NEAR, UNKNOWN, WRONG
from osnb.claims.unified import ALL, BENCHMARKS, WITHOUT
from osnb.protocols import PROTOCOLS

RUN = {"protocol": "mini_kim", "seed": 0, "recipe": "Baseline"}


@pytest.fixture
def runs(tmp_path):
    """A function that writes a run's scores table and gives it back."""
    made = []

    def add(seed=0, far=("svhn", "gaussian_noise"), **settings):
        rng, name = np.random.default_rng(seed), f"r{len(made)}"
        parts = [("known", "synsets", "", k % 3) for k in range(60)]
        parts += [("unknown", "synsets", "near", -2)] * 30
        parts += [("unknown", each, "far", -2) for each in far for _ in range(20)]
        frame = pd.DataFrame(parts, columns=["role", "source", "group", "label"])
        frame["sample"] = [f"s{i:04}" for i in range(len(frame))]
        frame["class"] = frame["source"] + frame["group"] + (frame.index % 5).astype(str)
        right = rng.random(len(frame)) < 0.7
        frame["pred"] = np.where(right, frame["label"], (frame["label"] + 1) % 3).clip(min=0)
        frame["max_softmax_log_odds"] = rng.normal(size=len(frame)) + (frame["role"] == "known")
        frame["odin"] = frame["max_softmax_log_odds"].round()
        tables.write(tmp_path / f"{name}.parquet", frame, {"parameters": {}})
        made.append(RUN | settings | {"run": name, "path": str(tmp_path / f"{name}.parquet")})
        return frame

    add.frame = lambda: pd.DataFrame(made)
    return add


def slow_aurc(score, wrong):
    """The mean over prefixes of the most confident samples of their share of errors; no ties."""
    errors = np.asarray(wrong)[np.argsort(-np.asarray(score))]
    return np.mean([errors[: i + 1].mean() for i in range(len(errors))])


def of(table, **where):
    return table[np.logical_and.reduce([table[key] == value for key, value in where.items()])]


def test_misclassification_ranks_known_samples_alone(runs):
    known = of(runs(), role="known")
    found = claims.kim_evidence(runs.frame(), resamples=3)
    wrong = known["pred"] != known["label"]
    key = {"benchmark": "imagenet", "method": "baseline"}
    value = found("aurc", task=WRONG, **key)
    assert value[0] == pytest.approx(slow_aurc(known["max_softmax_log_odds"], wrong))
    assert value.shape == (4,)
    assert found("accuracy", task="classification", **key)[0] == pytest.approx(1 - wrong.mean())
    risk = wrong.mean()
    least = risk + (1 - risk) * np.log1p(-risk)
    assert found("e_aurc", task=WRONG, **key)[0] == pytest.approx(value[0] - least, abs=2e-3)


def test_unknown_detection_pools_every_unknown_sample_as_an_error(runs):
    table = runs()
    found = claims.kim_evidence(runs.frame(), resamples=0)
    wrong = (table["pred"] != table["label"]) | (table["role"] == "unknown")
    key = {"task": UNKNOWN, "method": "baseline"}
    value = slow_aurc(table["max_softmax_log_odds"], wrong)
    assert found("aurc", dataset=ALL, **key)[0] == pytest.approx(value)
    quiet = table["source"] != "gaussian_noise"
    value = slow_aurc(table.loc[quiet, "max_softmax_log_odds"], wrong[quiet])
    assert found("aurc", dataset=WITHOUT, **key)[0] == pytest.approx(value)


def test_near_and_far_sets_are_told_from_all_known_samples(runs):
    table = runs()
    found = claims.kim_evidence(runs.frame(), resamples=0)
    known = of(table, role="known")["max_softmax_log_odds"].to_numpy()
    sets = {(NEAR, "near"): of(table, group="near")}
    sets |= {(FAR, "svhn"): of(table, source="svhn")}
    sets |= {(FAR, "gaussian noise"): of(table, source="gaussian_noise")}
    for (task, name), rows in sets.items():
        pairs = known[:, None] > rows["max_softmax_log_odds"].to_numpy()
        value = found("auroc", task=task, dataset=name, method="baseline")[0]
        assert value == pytest.approx(pairs.mean())
    assert set(found.names("dataset", task=FAR)) == {"svhn", "gaussian noise"}


def test_a_score_of_the_baselines_network_is_a_method_with_its_accuracy(runs):
    runs()
    runs(recipe="CRL", seed=1)
    found = claims.kim_evidence(runs.frame(), resamples=0)
    assert found.names("method") == ["baseline", "crl", "odin"]
    one, two = (found("accuracy", task="classification", method=m) for m in ("baseline", "odin"))
    assert one == two


def test_draws_are_shared_by_methods(runs):
    runs(seed=4)
    runs(seed=4, recipe="CRL")
    found = claims.kim_evidence(runs.frame(), resamples=30)
    for task, measure in ((WRONG, "aurc"), (NEAR, "auroc"), (UNKNOWN, "aurc")):
        one, two = (found(measure, task=task, method=m) for m in ("baseline", "crl"))
        np.testing.assert_array_equal(one, two)
        assert np.ptp(one) > 0


def test_without_noise_both_pools_are_the_same(runs):
    runs(far=("lsun_fix", "places365_large"))
    found = claims.kim_evidence(runs.frame(), resamples=0)
    of = found.keys["task"] == UNKNOWN
    assert set(found.keys[of]["dataset"]) == {ALL, WITHOUT}
    values = found.values["aurc"][of][:, 0]
    assert len({*values[::2]} ^ {*values[1::2]}) == 0
    assert {"lsun-fix", "places-82"} <= set(found.keys["dataset"])  # as the tables call them


def test_other_methods_and_protocols_are_no_part_of_the_paper(runs):
    runs(far=("svhn",))
    frame = runs.frame()
    more = [frame.assign(recipe="ARPL"), frame.assign(protocol="p2")]
    assert unified.in_paper(pd.concat([frame, *more])).equals(frame)


def pool(runs, many, protocol="imagenet200"):
    """A run of that many test samples, half of them known, and some negative ones."""
    parts = [("known", "ilsvrc", "", 0)] * (many // 2) + [("negative", "ilsvrc", "", -1)] * 3
    parts += [("unknown", "ilsvrc", "near", -2)] * (many - many // 2)
    frame = pd.DataFrame(parts, columns=["role", "source", "group", "label"])
    frame = frame.assign(sample=frame.index.astype(str), pred=0, **{"class": "c"})
    runs(protocol=protocol)
    row = runs.frame().iloc[-1]
    scores = frame.assign(max_softmax_log_odds=0.0)[[*tables.COLUMNS, "max_softmax_log_odds"]]
    tables.write(Path(row["path"]), scores, {"parameters": {}})


COMPARED = pd.DataFrame(
    {
        "benchmark": ["imagenet", "imagenet", "cifar"],
        "task": [UNKNOWN, NEAR, UNKNOWN],
        "difference": [0.1, 0.2, 0.3],
        "within": ["no", "no", "no"],
    }
)


@pytest.mark.parametrize(
    ("sizes", "alike"), [([44_792], True), ([44_792, 43_292], False), ([44_792, 44_800], False)]
)
def test_unified_aurcs_have_a_difference_only_where_every_pool_is_as_large_as_table_2(
    runs, sizes, alike
):
    for size in sizes:
        pool(runs, size)
    found = unified.pools(runs.frame())
    row = {"benchmark": "imagenet", "fewest": min(sizes), "most": max(sizes), "paper": 44_792}
    assert found.to_dict("records") == [row | {"alike": alike}]
    beside = unified.beside(COMPARED, found)
    assert beside["difference"].notna().tolist() == [alike, True, False]
    assert beside["within"].tolist() == ["no" if alike else "", "no", ""]
    capitals = COMPARED.assign(benchmark=["ImageNet", "ImageNet", "CIFAR"]).drop(columns="task")
    assert unified.beside(capitals, found)["difference"].notna().tolist() == [alike, alike, False]


def test_the_sizes_of_pools_are_said_beside_those_of_table_2(runs):
    pool(runs, 44_792)
    runs(protocol="mini_kim_digits")
    said = unified.pool_sizes(unified.pools(runs.frame())).splitlines()
    assert said == [
        "cifar: 130 samples in the pool, 33640 in Table 2, so unified AURCs have no difference",
        "imagenet: 44792 samples in the pool, 44792 in Table 2, as many",
    ]


@pytest.mark.parametrize("name", ["32_kim_tasks", "33_kim_unified"])
def test_a_notebook_that_subtracts_unified_aurcs_asks_for_the_size_of_the_pool(name):
    text = (repro.root() / "notebooks" / f"{name}.ipynb").read_text()
    assert text.count("unified.beside(") == text.count("unified.pool_sizes(pools)") == 1


def test_benchmarks_are_those_of_the_protocols():
    assert set(BENCHMARKS) <= set(PROTOCOLS)
    classes = PROTOCOLS["mini_kim_digits"]()
    assert classes.groupby("role", sort=False).size().to_dict() == {
        "known": 5,
        "negative": 2,
        "unknown": 3,
    }
    assert classes["label"].tolist() == [0, 1, 2, 3, 4, -1, -1, -2, -2, -2]
    assert classes["group"].tolist() == [""] * 5 + ["external"] * 2 + ["near"] * 3


# What settings are chosen on


def cells():
    notebook = json.loads((repro.root() / "notebooks" / "31_kim_train.ipynb").read_text())
    return ["".join(x["source"]) for x in notebook["cells"] if x["cell_type"] == "code"]


def names_in(source):
    return [node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)]


def test_nothing_looks_at_test_images_before_everything_is_chosen():
    """The batches of test images are made once, and first used where the scores table is."""
    code = cells()
    first = next(i for i, text in enumerate(code) if "def scored(" in text)
    uses = [i for i, text in enumerate(code[: first + 1]) for n in names_in(text) if n == "test"]
    assert len(uses) == 1
    assert "test = datasets.batches(images, part" in code[uses[0]]
    quoted = [text for text in code[:first] if 'part("test"' in text]
    assert quoted == [code[uses[0]]]


def test_settings_are_chosen_by_the_two_validation_parts():
    (chosen,) = (text for text in cells() if "def chosen(" in text)
    tree = next(x for x in ast.parse(chosen).body if getattr(x, "name", "") == "chosen")
    free = {name for name in names_in(ast.unparse(tree)) if name in {"inner", "outer", "test"}}
    assert free == {"inner", "outer"}
    (made,) = (text for text in cells() if "inner, outer" in text)
    assert 'part("val", r), **plain) for r in ("known", "negative")' in made
