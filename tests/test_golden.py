"""Today's code computes what the goldens say; a fault in it is told by name."""

import sys
from contextlib import nullcontext
from functools import cache, wraps

import numpy as np
import pytest
import torch

from osnb import experiment, losses, metrics, scores, train
from osnb.base.workbook import digest
from osnb.book import follows, goldens
from osnb.experiment import parts, rehearsal, scored
from osnb.train import methods

TRAININGS = ("12_palechor_train", "21_vaze_train", "31_kim_train")

# what the code computes here, without a fault: asked for before one is planted
today = cache(goldens.rehearsed)


@pytest.mark.parametrize("name", goldens.names())
def test_the_code_computes_what_the_golden_says(name):
    golden, found = goldens.kept(name), today(name)
    assert golden is not None, f"{name} has no golden: make golden"
    assert goldens.agrees(golden, found, name), f"{name} is another: make golden, if on purpose"


def test_no_golden_is_left_of_what_the_code_has_no_more():
    assert follows.goldens().keys() == {*goldens.names()}


def test_the_goldens_were_held_against_the_very_code_that_is_here():
    told = follows.held().read_text().split()[:2]
    assert told == [follows.numerical(), digest(*follows._numerical())], "osnb verify --golden"


def wrongly(of, module, name):
    """A replacement that is off by a little."""
    return module, name, wraps(of)(lambda *args, **kwargs: of(*args, **kwargs) * 1.001)


def negative(of):
    """Another sign, behind the same signature."""
    return wraps(of)(lambda *args, **kwargs: -of(*args, **kwargs))


def of_module(method, name):
    """A function of the module that a method is in."""
    module = sys.modules[methods.METHODS[method].__module__]
    return wrongly(getattr(module, name), module, name)


def shorter(*args, tail, **kwargs):
    """OpenMax with a tail that lacks one image."""
    return OPENMAX(*args, tail=tail - 1, **kwargs)


def plant(fault, monkeypatch):
    """Put a replacement in the place of an entry of a dict, or of an attribute."""
    (monkeypatch.setitem if isinstance(fault[0], dict) else monkeypatch.setattr)(*fault)


OPENMAX = scores.openmax
FAULTS = {
    "loss/edl": (losses.LOSSES, "edl", negative(losses.edl)),
    "schedule/triangle": (  # its end
        *(train.SCHEDULES, "triangle"),
        lambda x: train.triangle(x) * (1 if x < 0.5 else 0.9),
    ),
    "method/crl": of_module("crl", "ranking"),
    "method/c2ae": of_module("c2ae", "error"),  # of its second stage
    "rule/openmax": (scores, "openmax", shorter),
    "measure/auroc": wrongly(metrics.auroc, metrics, "auroc"),
}
QUICK = {"loss/edl", "schedule/triangle", "rule/openmax", "measure/auroc"}  # no training


@pytest.mark.parametrize(("name", "fault"), FAULTS.items(), ids=FAULTS)
def test_a_fault_is_told_by_the_name_of_what_it_changes(name, fault, monkeypatch):
    """Against what is computed here: in goldens of another processor small faults are lost."""
    right = {x: today(x) for x in QUICK | {name}}
    plant(fault, monkeypatch)
    assert [x for x in right if not goldens.agrees(right[x], goldens.rehearsed(x), x)] == [name]


FEW_USE = {
    "sets/far": (parts, "UNKNOWN", -1),
    "sets/external": (parts.protocols, "with_negatives", lambda classes, others: classes),
    "validation/whole": (parts.VALIDATION, "whole", parts.VALIDATION["held_out"]),
    "validation/kim_cifar": (parts.VALIDATION, "kim_cifar", parts.VALIDATION["held_out"]),
    "option/bfloat16": (torch, "autocast", lambda *args, **kwargs: nullcontext()),
    "option/means": (scored.Scores, "means", lambda self: MEANS(self).assign(source="")),
}
MEANS = scored.Scores.means


@pytest.mark.parametrize(("name", "fault"), FEW_USE.items(), ids=FEW_USE)
def test_a_fault_in_what_few_runs_use_is_told(name, fault, monkeypatch):
    right = today(name)
    plant(fault, monkeypatch)
    assert not goldens.agrees(right, goldens.rehearsed(name), name)


def moved(golden, by):
    """A golden of another kind of processor, whose floats are others by a share."""
    near = {k: [x * (1 + by) for x in v] for k, v in golden["near"].items()}
    return golden | {"processor": "another", "digest": "other", "near": near}


@pytest.mark.parametrize(
    ("name", "within", "beyond"), [("loss/edl", 1e-6, 1e-2), ("method/crl", 1e-4, 0.5)]
)
def test_another_kind_of_processor_may_round_otherwise(name, within, beyond):
    found = goldens.kept(name)
    assert goldens.agrees(moved(found, within), found, name)
    assert not goldens.agrees(moved(found, beyond), found, name)
    assert not goldens.agrees(moved(found, 0) | {"exact": "other"}, found, name)
    here = moved(found, within) | {"processor": found["processor"]}
    assert not goldens.agrees(here, found, name)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("c2ae", of_module("c2ae", "error")),
        ("proser", (methods.terms, "runner_up", lambda out, labels: (out, labels))),
    ],
    ids=["C2AE", "PROSER"],
)
def test_a_later_stage_is_held_on_any_kind_of_processor(name, fault, monkeypatch):
    golden = moved(goldens.kept(f"stage/{name}"), 1e-6)
    assert goldens.agrees(golden, today(f"stage/{name}"), f"stage/{name}")
    monkeypatch.setattr(*fault)
    assert not goldens.agrees(golden, goldens.rehearsed(f"stage/{name}"), f"stage/{name}")


SCORES, RANKED, SOFTMAX = scored.Scores._of, scored._ranked, scores.softmax
AUROC, CONFIDENCE = metrics.auroc, metrics.confidence
UNSEEN_BY_LOSS = {
    "method/proser": (methods.OWN, "proser", negative(methods.OWN["proser"])),
    "method/osrci": (methods.OWN, "osrci", negative(methods.OWN["osrci"])),
    "rules/chosen": (scored, "_ranked", lambda of: RANKED(of)[::-1].reset_index(drop=True)),
    "rules/fitted": (scored.Scores, "_of", lambda self, rule: SCORES(self, negative(rule))),
    "rules/latent": (scored.Scores, "_of", lambda self, rule: SCORES(self, negative(rule))),
    "watch/gamma": (metrics, "confidence", lambda *a, offset: CONFIDENCE(*a, offset=0.1 - offset)),
    "watch/test": (metrics, "auroc", lambda known, unknown: AUROC(unknown, known)),
    "option/means": (scores, "softmax", lambda *args, **kwargs: 1 - SOFTMAX(*args, **kwargs)),
}


@pytest.mark.parametrize(("name", "fault"), UNSEEN_BY_LOSS.items(), ids=UNSEEN_BY_LOSS)
def test_scores_and_measures_of_a_training_are_held_on_any_kind_of_processor(
    name, fault, monkeypatch
):
    golden = moved(goldens.kept(name), 1e-6)
    assert goldens.agrees(golden, today(name), name)
    plant(fault, monkeypatch)
    assert not goldens.agrees(golden, goldens.rehearsed(name), name)


def test_c2ae_has_the_scores_of_its_best_epoch_where_gamma_chooses_it():
    how = f"augmentation=none rules=plain {rehearsal.GIVEN['methods']['c2ae']}"
    found = rehearsal.recipe("p2", more=how, method="c2ae")
    assert np.isfinite(found["scores_best max_logit"]).all()


def test_draws_are_the_same_from_one_rehearsal_to_the_next():
    first = today("method/mcdropout")
    assert first == goldens.rehearsed("method/mcdropout")
    assert all(np.isfinite(x).all() for x in first["near"].values())


def test_a_run_of_edited_code_stands_once_that_code_was_held_against_the_same_golden(
    tmp_path, monkeypatch
):
    def become(code):
        monkeypatch.setattr(follows, "numerical", lambda: code)

    def changed():
        return follows.changed({"notebook": "90_it", "goldens": made})

    monkeypatch.setattr(follows, "held", lambda: tmp_path / "held.txt")
    (tmp_path / "measure.json").write_text('{"auroc": {"digest": "abc"}}')
    become("committed")
    follows.note()
    become("reworded")
    made = {"measure/auroc": follows.now("measure/auroc", "90_it", {})}
    assert changed() == []
    become("committed")
    assert changed() == ["measure/auroc"]  # nobody has held that code
    become("reworded")
    follows.note()
    for code in ("again", "committed"):
        become(code)
        assert changed() == []
    follows.note()
    assert changed() == []
    for old in ("unrehearsed reworded", "unrehearsed "):  # of before, and damaged
        stamp = {"notebook": "90_it", "goldens": {"measure/auroc": old}}
        assert follows.changed(stamp) == ["measure/auroc"]
    (tmp_path / "measure.json").write_text('{"auroc": {"digest": "other"}}')
    assert changed() == ["measure/auroc"]


def test_code_that_was_held_before_the_last_one_is_held(tmp_path, monkeypatch):
    file = tmp_path / "held.txt"
    file.write_text("last bytes_of_last before\n")
    for code, is_held in (("last", True), ("before", True), ("bytes_of_last", False), ("", False)):
        monkeypatch.setattr(follows, "numerical", lambda code=code: code)
        follows._hold.cache_clear()
        assert follows._hold(file) == is_held


def test_a_class_that_is_nearly_another_is_no_other_code():
    kept = {"processor": "a", "digest": "1", "exact": "", "near": {"scores pred": [5.0]}}
    kept["near"]["scores max_logit"] = [2.0]
    flipped = kept | {
        "processor": "b",
        "digest": "2",
        "near": kept["near"] | {"scores pred": [6.0]},
    }
    assert goldens.agrees(kept, flipped, "method/rpl")
    flipped["near"]["scores max_logit"] = [2.2]
    assert not goldens.agrees(kept, flipped, "method/rpl")


def test_codes_that_were_held_are_forgotten_with_the_goldens_and_with_time(tmp_path, monkeypatch):
    monkeypatch.setattr(follows, "held", lambda: tmp_path / "held.txt")
    for number in range(25):
        monkeypatch.setattr(follows, "numerical", lambda code=f"code{number}": code)
        follows.note()
    parsed, raw, *earlier = follows.held().read_text().split()
    assert (parsed, len(raw)) == ("code24", 64)
    assert earlier == [f"code{number}" for number in range(23, 4, -1)]
    follows.note(afresh=True)
    assert follows.held().read_text().split() == ["code24", raw]


def test_every_training_in_params_names_goldens_that_there_are():
    wanted = {
        name
        for notebook in TRAININGS
        for exp in experiment.described(notebook).values()
        for name in follows.of_settings(exp.settings, exp.columns)
    }
    without = {name for name in wanted - follows.goldens().keys() if "reader/" not in name}
    assert not without
    assert {"method/crl", "loss/smoothed", "rules/chosen", "reader/quickdraw"} <= wanted


def test_a_training_follows_from_what_its_settings_name_and_from_nothing_else():
    exp = experiment.Experiment.named("p2", method="entropic")
    names = follows.of_settings(exp.settings, exp.columns)
    assert {"method/entropic", "loss/entropic", "protocol/quickdraw_p2", "watch/gamma"} <= {*names}
    assert not [name for name in names if "edl" in name or "crl" in name]


def test_the_fitted_rules_of_a_training_are_those_that_its_settings_fit():
    fitted = {"openmax", "mahalanobis", "odin"}
    for method, expected in {"softmax": fitted, "crosr": {"openmax"}, "cgdl": set()}.items():
        exp = experiment.Experiment.named("cifar10", method=method)
        names = follows.of_settings(exp.settings, exp.columns)
        assert {name for name in fitted if f"rule/{name}" in names} == expected


def test_a_capstone_follows_from_what_its_judge_uses_and_no_notebook_from_a_variable_s_name():
    judged = {"network/mlp", "rule/mahalanobis", "rule/feature_norm", "reader/glyphs"}
    assert judged <= {*follows.names("34_kim_capstone", {}, {}, {})}
    assert "regime/short" not in follows.names("20_vaze_splits", {}, {}, {})


def test_a_training_follows_from_its_far_sets_external_images_and_options():
    def kinds(benchmark, **chosen):
        exp = experiment.Experiment.named(benchmark, **{"method": "softmax"} | chosen)
        names = follows.of_settings(exp.settings, exp.columns)
        return {x for x in names if x.partition("/")[0] in ("sets", "validation", "option")}

    assert kinds("p2") == set()
    assert kinds("imagenet200") == {"sets/far", "option/means"}
    assert kinds("closed", method="oe") == {"sets/far", "sets/external"}
    assert kinds("cifar10", size="paper") == {"validation/whole", "option/bfloat16"}


def test_a_training_of_several_stages_follows_from_the_losses_of_each():
    for method in ("osrci", "proser", "c2ae", "softmax"):
        exp = experiment.Experiment.named("cifar10", method=method)
        stages = [x for x in follows.of_settings(exp.settings, exp.columns) if "stage/" in x]
        assert stages == [f"stage/{method}"] * (method != "softmax")
