"""Features that are kept beside a run, and thirty rules on them."""

import numpy as np
import pandas as pd
import pytest
import torch
from refusals import refused
from test_cli import osnb

from osnb import metrics, scores
from osnb.base import stamps, workbook
from osnb.base.outputs import Outputs
from osnb.book import record
from osnb.book.cli.scores import _own
from osnb.evidence import samples
from osnb.experiment import Experiment, Machine, cached
from osnb.scores import Seen, features
from osnb.train import checkpoint

SETTINGS = "epochs=3 rules=fitted"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """(experiment, folder, its scores table) of a network that has learnt the digits a little."""
    folder = tmp_path_factory.mktemp("digits")
    exp = Experiment.named("digits", method="softmax", overrides=SETTINGS)
    parts = exp.parts(Machine())
    network = exp.network(parts)
    exp.fit(network, exp.criterion(parts), parts, folder)
    return exp, folder, exp.scores(network, parts, folder)["scores"]


@pytest.fixture(scope="module")
def found(run):
    return cached.said(*run[:2], Machine())


def test_rules_need_no_validation_images(tmp_path):
    exp = Experiment.named("mnist", method="softmax", overrides="epochs=3 validation=whole")
    parts = exp.parts(Machine())
    network = exp.network(parts)
    exp.fit(network, exp.criterion(parts), parts, tmp_path)
    assert not (parts.rows["split"] == "val").any()
    table, _ = cached.scored(cached.said(exp, tmp_path, Machine()))
    assert {"max_logit", "openmax"} <= {*table}


def test_thirty_rules_score_the_images_of_the_scores_table(run, found):
    table, seconds = cached.scored(found)
    assert len(seconds) == 30
    assert (seconds > 0).all()
    of_run = run[2]
    for name in ("label", "class", "pred"):
        assert table[name].tolist() == of_run[name].tolist()
    shared = [name for name in seconds.index if name in of_run and name != "openmax"]
    assert {"max_logit", "energy", "feature_norm", "mahalanobis"} < {*shared}
    for name in shared:
        # a run scores each source alone, and Mahalanobis is one matrix product of all rows
        close = 1e-13 if name == "mahalanobis" else 0
        np.testing.assert_allclose(table[name], of_run[name], rtol=close)
    assert np.isfinite(table[seconds.index]).all(axis=None)


def test_each_auroc_is_that_of_the_task(found):
    table, seconds = cached.scored(found)
    compared = cached.compared(table, seconds)
    known, glyphs = table["label"] >= 0, table["task"] == "glyphs"
    assert {"negative", "glyphs", "all unknown", "seconds"} <= {*compared}
    for rule in ("gen", "react"):
        by_hand = metrics.auroc(table[rule][known], table[rule][glyphs])
        assert compared.loc[rule, "glyphs"] == by_hand
    assert compared["all unknown"].is_monotonic_decreasing


def test_settings_are_chosen_on_validation_negatives_and_on_nothing_else(found):
    seen = Seen(
        Outputs(found["logits_train"], found["features_train"]),
        found["label_train"],
        int(found["known"]),
        found["weight"],
        found["bias"],
    )
    held_out = {
        sign: Outputs(found["logits_val"][rows], found["features_val"][rows])
        for sign, rows in (("+", found["label_val"] >= 0), ("-", found["label_val"] == -1))
    }
    auroc = {}
    for k in cached.GRIDS["knn"][-1]:
        if k <= (seen.labels >= 0).sum():
            rule = features.knn(seen, k=k)
            auroc[k] = metrics.auroc(*(rule(held_out[s], known=seen.known) for s in "+-"))
    best = features.knn(seen, k=max(auroc, key=auroc.get))
    test = Outputs(found["logits_test"], found["features_test"])
    chosen = cached.rules(found)["knn"](seen)(test, known=seen.known)
    np.testing.assert_array_equal(chosen, best(test, known=seen.known))
    assert len({*auroc.values()}) > 1
    # without negatives: KNN's own k
    known = found["label_val"] >= 0
    none = {**found, "label_val": found["label_val"][known]}
    default = cached.rules(none)["knn"](seen)(test, known=seen.known)
    np.testing.assert_array_equal(default, features.knn(seen, k=50)(test, known=seen.known))


@pytest.mark.parametrize("name", ["vim", "residual"])
def test_of_few_features_a_rule_has_the_dim_of_its_source(found, name):
    few = {k: x[:, :4] if k.startswith(("features", "weight")) else x for k, x in found.items()}
    out = {s: Outputs(few[f"logits_{s}"], few[f"features_{s}"]) for s in ("train", "test")}
    known = int(few["known"])
    seen = Seen(out["train"], few["label_train"], known, few["weight"], few["bias"])
    chosen, default = (of[name](seen) for of in (cached.rules(few), features.FITTED))
    wanted = default(out["test"], known=known)
    np.testing.assert_array_equal(chosen(out["test"], known=known), wanted)


def test_of_dims_in_which_the_features_lie_vim_takes_none(found):
    alive = np.arange(found["weight"].shape[1]) < 5  # and a sixth direction, the origin of logits
    dead = {k: x * alive if k.startswith("features") else x for k, x in found.items()}
    seen = Seen(
        Outputs(dead["logits_train"], dead["features_train"]),
        dead["label_train"],
        int(dead["known"]),
        dead["weight"],
        dead["bias"],
    )
    with pytest.raises(ValueError, match="lie in 8 directions"):
        features.vim(seen, dim=8)
    out = Outputs(dead["logits_test"], dead["features_test"])
    chosen = cached.rules(dead)["vim"](seen)(out, known=seen.known)
    np.testing.assert_array_equal(chosen, features.vim(seen, dim=4)(out, known=seen.known))


def test_features_are_read_again_unless_the_checkpoint_is_another(run, found):
    exp, folder, _ = run
    file = folder / cached.FILE
    written = file.stat().st_mtime_ns
    again = cached.said(exp, folder, Machine())
    assert file.stat().st_mtime_ns == written
    for name, values in found.items():
        np.testing.assert_array_equal(again[name], values)
    state = checkpoint.newest(folder)
    state["model"]["head.bias"] += 1
    checkpoint.keep(state, folder)
    other = cached.said(exp, folder, Machine())
    np.testing.assert_allclose(other["logits_test"], found["logits_test"] + 1, atol=1e-5)


def test_without_a_trained_linear_layer_there_are_no_features(run, tmp_path):
    with pytest.raises(ValueError, match=r"need a trained network; there is no .*checkpoint.pt"):
        cached.said(run[0], tmp_path, Machine())
    (tmp_path / checkpoint.CURRENT).touch()
    of = Experiment.named("digits", method="ensemble", overrides="epochs=1 rules=plain")
    with pytest.raises(
        ValueError, match="need one network with a linear layer at its end; got Non"
    ):
        cached.said(of, tmp_path, Machine())


def test_the_command_prints_every_rule_and_writes_a_file_for_osnb_score(run, tmp_path, monkeypatch):
    exp, folder, _ = run
    place = tmp_path / "runs" / "12_train" / "digits"
    place.parent.mkdir(parents=True)
    place.symlink_to(folder)
    parameters = {**exp.choices, "overrides": SETTINGS}
    runs = {"12_train/digits": {"parameters": parameters}, "13/results": {"parameters": {}}}
    runs = {name: run | {"state": "done"} for name, run in runs.items()}
    runs["12_train/mini_digits"] = runs["12_train/digits"]
    monkeypatch.setattr(record, "named", lambda name: {name: runs[name]})
    monkeypatch.setenv("OSNB_OUT", str(tmp_path))
    code, out, err = osnb("rules", "12_train/digits", "--out", tmp_path / "all.csv")
    assert (code, err) == (0, "")
    assert out.startswith("12_train/digits: AUROC of 30 rules, known against\n")
    table, seconds = cached.scored(cached.said(exp, folder, Machine()))
    assert all(f"\n{name} " in out for name in seconds.index)
    read = _own(tmp_path / "all.csv", 0, [])
    assert {*read.scores} == {*seconds.index}
    assert read.source.tolist() == table["task"].tolist()
    np.testing.assert_allclose(read.scores["vim"], table["vim"])
    (place.parent / "mini_digits").symlink_to(folder)
    assert osnb("rules", "12_train/mini_digits", "--save")[0] == 0
    saved = tmp_path / "figures" / "12_train" / "mini_rules_digits" / "rules.csv"
    measured, known = pd.read_csv(saved), table["label"] >= 0
    stamp = stamps.read(saved.with_suffix(".json"))
    assert stamp["files"] == {"rules.csv": workbook.file_hash(saved)}
    assert stamp["inputs"] == {"checkpoint": workbook.file_hash(folder / checkpoint.CURRENT)}
    glyphs = measured[measured["against"] == "glyphs"].set_index("rule")["value"]
    by_hand = metrics.auroc(table["vim"][known], table["vim"][table["task"] == "glyphs"])
    assert glyphs["vim"] == pytest.approx(by_hand, abs=1e-5)
    columns = {k: x.to_numpy() for k, x in table.rename(columns={"task": "source"}).items()}
    own = samples.measured(scores.own(columns), table["task"].to_numpy(), seed=0, resamples=2000)
    numbers = ["value", "low", "high"]
    np.testing.assert_allclose(measured[numbers], own[numbers], atol=1e-5)
    assert len(measured) == 30 * measured["against"].nunique()
    said = refused("rules", "13/results")
    assert "13/results must be one training run that is done; it is" in said


def test_a_class_with_few_right_images_shortens_the_tail_of_openmax(found):
    logits, label = found["logits_train"], found["label_train"]
    right = label == logits[:, : int(found["known"])].argmax(axis=1)
    first = np.flatnonzero(right & (label == 0))
    keep = np.setdiff1d(np.arange(len(label)), first[8:])
    few = {k: x[keep] if k.endswith("_train") else x for k, x in found.items()}
    table, _ = cached.scored(few)
    assert np.isfinite(table["openmax"]).all()


def few_right(found):
    """Its first class has one right training image."""
    label = found["label_train"]
    right = label == found["logits_train"][:, : int(found["known"])].argmax(axis=1)
    first = np.flatnonzero(right & (label == 0))
    keep = np.setdiff1d(np.arange(len(label)), first[1:])
    return {k: x[keep] if k.endswith("_train") else x for k, x in found.items()}


def few_images(found):
    """20 training images, no validation negative, and of the first class none that is right."""
    keep = np.flatnonzero(found["label_train"] > 0)[:20]
    few = {k: x[keep] if k.endswith("_train") else x for k, x in found.items()}
    return few | {"label_val": np.array([], int)}


def with_background(found):
    """A column more, which is never the largest."""
    last = {k: np.full((len(x), 1), -1e3) for k, x in found.items() if k.startswith("logits")}
    more = {k: np.hstack([found[k], x]) for k, x in last.items()}
    layer = {"weight": np.pad(found["weight"], ((0, 1), (0, 0))), "bias": np.pad(found["bias"], 1)}
    return found | more | layer | {"bias": layer["bias"][1:]}


@pytest.mark.parametrize(
    ("changed", "out"),
    [
        (few_right, {"openmax"}),
        (few_images, {"openmax", "mahalanobis", "rmd", "she", "vim", "knn"}),
        (with_background, {"openmax"}),
    ],
)
def test_a_rule_that_cannot_be_fitted_is_left_out_and_said_in_one_line(found, changed, out):
    lines = []
    few = changed(found)
    table, seconds = cached.scored(few, say=lines.append)
    (line,) = lines
    assert line.startswith("left out, as they cannot be fitted: openmax (need 2 rightly classified")
    assert {*cached.rules(few)} - {*seconds.index} == out
    assert all(f"{name} (" in line and name not in table for name in out)
    assert {*cached.compared(table, seconds).index} == {*seconds.index}


@pytest.mark.parametrize("many", [5, 30])
def test_images_of_a_background_are_right_in_its_column(found, many, monkeypatch):
    monkeypatch.setattr(cached.scores, "openmax", lambda *_, tail, **__: tail)
    logits, label = np.pad(found["logits_train"], ((0, 0), (0, 1))), found["label_train"].copy()
    logits[:many, -1], label[:many] = 1e3, -1
    right = label[many:][logits[many:].argmax(axis=1) == label[many:]]
    seen = Seen(None, None, int(found["known"]), None, None)
    tail = cached.rules(found | {"logits_train": logits, "label_train": label})["openmax"](seen)
    assert tail == min(many, *np.bincount(right), cached.TAIL) > 2


def test_a_rule_that_gives_nan_or_no_inverse_is_left_out_and_said(found, monkeypatch):
    def singular(_):
        raise torch.linalg.LinAlgError("singular\nmatrix")

    def missing(_):
        return lambda out, known: np.where(np.arange(len(out.logits)) < 2, np.nan, 0)

    fits = {"a": lambda _: scores.max_logit, "b": missing, "c": singular}
    monkeypatch.setattr(cached, "rules", lambda _: fits)
    lines = []
    table, seconds = cached.scored(found, say=lines.append)
    assert ([*seconds.index], "b" in table, "c" in table) == (["a"], False, False)
    why = f"b (it gives NaN for 2 of {len(table)} images); c (singular)"
    assert lines == [f"left out, as they cannot be fitted: {why}"]


def test_where_no_rule_can_be_fitted_its_refusal_is_the_answer(found, monkeypatch):
    def fit(_):
        raise ValueError("need more")

    monkeypatch.setattr(cached, "rules", lambda _: {"a": fit})
    with pytest.raises(ValueError, match="need more"):
        cached.scored(found)


@pytest.mark.parametrize("how", ["network=conv width=4 head=unbiased", "network=resnet9 width=4"])
def test_a_last_layer_without_bias_or_behind_a_dropout_is_read(tmp_path, how):
    exp = Experiment.named("digits", method="softmax", overrides=f"epochs=6 also='' {how}")
    parts = exp.parts(Machine())
    network = exp.network(parts)
    exp.fit(network, exp.criterion(parts), parts, tmp_path)
    found = cached.said(exp, tmp_path, Machine())
    logits = found["features_test"] @ found["weight"].T + found["bias"]
    np.testing.assert_allclose(logits, found["logits_test"], atol=1e-4)
    table, _ = cached.scored(found)
    assert np.isfinite(table["vim"]).all()
