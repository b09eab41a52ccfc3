"""What names mean together: laws of the layers, refusals, and one run composed by hand."""

import dataclasses
import inspect
import json
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from osnb import datasets, experiment, losses, models, protocols, scores, train
from osnb.base.outputs import Outputs
from osnb.datasets.augment import AUGMENT, OPS
from osnb.experiment import Experiment, Machine, layers, rehearsal, scored, trained
from osnb.experiment.parts import enough
from osnb.train import methods

RECIPES, BENCHMARKS = layers.catalogue("recipes"), layers.catalogue("benchmarks")
SIZED = [(name, size) for name, sizes in BENCHMARKS["benchmarks"].items() for size in sizes]
KIM = {"benchmark": "imagenet200", "method": "softmax"}
P2 = {"benchmark": "p2", "method": "softmax"}


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (KIM | {"overrides": "beta=9"}, "nothing reads beta=9.*training arpl_cs.*nearest is beta"),
        (
            KIM | {"overrides": "severity=10"},
            "nothing reads severity=10.*belongs to training augmix",
        ),
        (KIM | {"overrides": "crl=5"}, "nothing reads crl=5.*belongs to training crl"),
        (P2 | {"overrides": "weight=7"}, "nothing reads weight=7.*nearest is weight_decay"),
        (P2 | {"split": 3}, "there is one split, 0, and 100 on which"),
        (P2 | {"overrides": "splits=5"}, "nothing reads splits"),
        (P2 | {"overrides": "far=x"}, "nothing reads far"),  # there are no other readers
        (P2 | {"benchmark": "px"}, "no benchmark 'px': there are digits, p1, p2"),
        (P2 | {"method": "px"}, "no method 'px': there are softmax, background"),
        (P2 | {"regime": "px"}, "no regime 'px': there are baseline, strong"),
        (P2 | {"size": "tiny"}, "no size of p2 'tiny': there are mini, paper"),
        (P2 | {"overrides": "loss=px"}, "no loss 'px': there are softmax"),
        (P2 | {"overrides": "schedule=px"}, "schedule is one of constant"),
        (P2 | {"overrides": "epochs=2.5"}, "epochs is int, such as 12; got '2.5'"),
        (P2 | {"overrides": "fused=1"}, "fused is bool"),
        (P2 | {"overrides": "learning_rate=inf"}, "needs a finite number"),
        (P2 | {"overrides": "epochs"}, "settings are NAME=VALUE"),
        (P2 | {"overrides": "epochs=0"}, "epochs is 1 or more; got 0"),
        (P2 | {"overrides": "batch_size=-1"}, "batch_size is 1 or more; got -1"),
        (P2 | {"overrides": "learning_rate=0"}, "learning_rate is 1e-12 or more; got 0.0"),
        (
            KIM | {"overrides": "tails=2,5"},
            r"tails is numbers with blanks between, as [\d ]+; got .2,5",
        ),
        (
            KIM | {"overrides": "alphas=''"},
            r"alphas is numbers with blanks between, as [\d ]+; got ..",
        ),
        (P2 | {"overrides": "smoothing=2"}, "smoothing is from 0 to 1; got 2.0"),
        (P2 | {"overrides": "beta1=1"}, "beta1 is from 0 to 0.999999; got 1.0"),
        (P2 | {"overrides": "beta2=1"}, "beta2 is from 0 to 0.999999; got 1.0"),
        (P2 | {"overrides": "augmentation=randaugment_crop_flip m=40"}, "m is from 0 to 30"),
        (P2 | {"overrides": "training=augmix severity=0.05"}, "severity is from 0.1 to 10"),
        (P2 | {"overrides": "training=augmix severity=20"}, "severity is from 0.1 to 10"),
        (P2 | {"seed": -1}, "a seed is from 0 to"),
        ({"benchmark": "mnist", "method": "oe"}, "needs negatives or external images"),
        ({"benchmark": "mnist", "method": "entropic"}, "entropic needs negatives"),
        (KIM | {"method": "ensemble", "overrides": "rules=chosen"}, "set rules=plain"),
        (KIM | {"overrides": "validation=whole"}, "leaves out: set validation=held_out"),
        (
            {"benchmark": "tinyimagenet", "method": "oe", "overrides": "validation=whole"},
            "outlier needs negatives, which validation=whole leaves out",  # external ones too
        ),
        (
            {"benchmark": "closed_ten", "method": "edl", "overrides": "watch=gamma"},
            "gamma needs neg",
        ),
        (P2 | {"overrides": "validation=whole"}, "which validation=whole .*: set watch=held_out"),
    ],
)
def test_what_nothing_reads_or_can_give_is_refused_by_name(names, reason):
    with pytest.raises(ValueError, match=reason):
        Experiment.named(**names)


@pytest.mark.parametrize("sized", SIZED, ids="-".join)
def test_every_recipe_fits_every_benchmark_or_says_what_is_missing(sized):
    name, size = sized
    refused = set()
    for method, regime in product(RECIPES["methods"], RECIPES["regimes"]):
        try:
            settings = Experiment.named(name, size=size, method=method, regime=regime).settings
        except ValueError as error:
            refused.add((method, str(error).partition(" needs")[0].partition("=")[0]))
            continue
        assert json.loads(json.dumps(settings)) == settings
    priced = {(each, each) for each in ("background", "entropic", "objectosphere")}
    heads = {("arpl", "loss"), ("rpl", "loss"), ("arpl_cs", "loss"), ("openhybrid", "training")}
    lacking = priced | heads if name == "digits" else priced  # mlp: no head
    rows = {("proser", "training")} if size == "paper" else set()  # timm: no layers in a row
    assert refused <= lacking | rows | {("oe", "outlier"), ("mcdropout", "method")}


CGDL = "training=cgdl needs a place for each class: set network=ladder or"
POINTS = "needs reciprocal points: set head=arpl or head=rpl or network=MODULE:NAME"
SLACK = "loss=joint needs a network that measures its image: set head=flow or network=dhrnet or"
DROPS = "mcdropout needs a network that drops.*: set dropout>0 or"
FIXED = "vgg32 has a fixed share, 0.2, .* network vgg32 has no setting dropout, these have"
DENSITY = "training=openhybrid needs a density of the features: set head=flow or"
ONE = "needs features of one network: set answer=one or answer=mirrored or answer=mcdropout"


@pytest.mark.parametrize(
    ("method", "overrides", "reason"),
    [
        (
            "arpl",
            "network=ladder",
            f"loss=arpl {POINTS}; network ladder has no setting head, these .*: conv",
        ),
        ("arpl", "network=resnet9", f"loss=arpl {POINTS} .cifar10 in size mini, method arpl"),
        *(("arpl", how, f"loss=arpl {POINTS}") for how in ("head=flow", "network=mlp")),
        *(("softmax", f"loss={loss}", f"loss={loss} {POINTS}") for loss in ("arpl", "rpl")),
        ("softmax", "training=arpl_cs", f"training=arpl_cs {POINTS}"),
        *(
            (name, how, SLACK)
            for name, how in (("softmax", "loss=joint"), ("crosr", "network=conv"))
        ),
        ("softmax", "training=cgdl", CGDL),
        ("openhybrid", "network=dhrnet", DENSITY),
        ("openhybrid", "head=arpl", DENSITY),
        ("openhybrid", "loss=softmax", "openhybrid needs a loss that .*: set loss=joint or"),
        *((x, "answer=ensemble", f"training={x} {ONE}") for x in ("openhybrid", "c2ae")),
        ("proser", "network=dhrnet", "training=proser needs layers in a row and a cut .*: set"),
        (
            "proser",
            "network=timm backbone=resnet18 features=512 cut=1",
            "or network=resnet50 cut=1",
        ),
        ("proser", "cut=6", "a row and a cut between them: set network=conv cut<6 .cifar10"),
        *(("mcdropout", how, DROPS) for how in ("dropout=0", "network=resnet9", "network=vgg32")),
        (
            "mcdropout",
            "network=mlp",
            f"{DROPS} .*; network mlp has no setting dropout, these .*, resnet20",
        ),
        ("softmax", "answer=mcdropout", f"answer={DROPS} network=vgg32"),
        ("mcdropout", "network=vgg32", FIXED),
        ("cgdl", "normalise=kim", "training=cgdl needs pixels .*: set normalise=none "),
        ("crosr", "network=ladder normalise=kim", "network=ladder loss=joint needs pixels"),
        ("vos", "network=dhrnet", "training=vos needs a head that takes the features: set"),
    ],
)
def test_parts_that_do_not_fit_each_other_are_refused_with_what_does(method, overrides, reason):
    with pytest.raises(ValueError, match=reason):
        Experiment.named("cifar10", method=method, overrides=overrides)


@pytest.mark.parametrize(
    ("method", "overrides"),
    [
        ("arpl", "network=conv head=arpl"),
        ("arpl", "loss=softmax head=linear network=conv"),
        ("mcdropout", "network=resnet9 dropout=0.2"),
        ("softmax", "network=vgg32 answer=mcdropout"),
        ("softmax", "network=ladder loss=joint"),
        *((name, "network=ladder normalise=kim") for name in ("softmax", "edl", "crl", "vos")),
    ],
)
def test_an_override_can_give_what_a_part_needs_or_choose_one_that_needs_it_not(method, overrides):
    assert Experiment.named("digits", method=method, overrides=overrides)


@pytest.mark.slow
@pytest.mark.parametrize("name", layers.parts()["network"])
def test_proser_trains_networks_of_layers_in_a_row_up_to_the_last_cut_that_fits(name, tmp_path):
    with torch.device("meta"):
        how = layers.parts()["network"][name] | {"classes": 3, "channels": 3, "size": 32}
        trunk = getattr(models.MODELS.bind(name, **how)(), "trunk", None)
    (ways,) = RECIPES["fits"]["training=proser"].values()
    length = len(trunk) if isinstance(trunk, torch.nn.Sequential) else 0
    ends = {f"network={name} cut<{length}", f"network={name} cut={length - 1}"}.intersection(ways)
    assert [way for way in ways if f"network={name} " in f"{way} "] == [*ends]
    assert bool(length) == bool(ends)
    if not length:
        return
    few = "train_per_class=5 validation_per_class=4 test_per_class=4 batch_size=30 side=16"
    more = f"network={name} channels=3 epochs=2 plain_epochs=1 {few} cut="
    exp = Experiment.named("cifar10", method="proser", overrides=f"{more}{length - 1}")
    parts = exp.parts(Machine())
    exp.fit(exp.network(parts), exp.criterion(parts), parts, tmp_path)
    with pytest.raises(ValueError, match="training=proser needs layers in a row and a cut between"):
        Experiment.named("cifar10", method="proser", overrides=f"{more}{length}")


@pytest.mark.parametrize("regime", RECIPES["regimes"])
@pytest.mark.parametrize("name", ["cifar40", "imagenet200", "closed", "cifar10"])
def test_cgdl_draws_the_pixels_that_it_sees_in_every_benchmark_and_regime(name, regime):
    made = Experiment.named(name, size="paper", method="cgdl", regime=regime)
    assert "normalise" not in made.settings


def test_another_part_brings_its_own_settings_and_drops_those_of_the_one_before():
    strong = {"regime": "strong", "benchmark": "tinyimagenet"}
    assert Experiment.named(method="softmax", **strong).settings["loss"]["smoothing"] == 0.1
    assert Experiment.named(method="edl", **strong).settings["loss"] == {
        "name": "edl",
        "weight": 0.1,
    }
    assert Experiment.named(method="arpl", **strong).settings["loss"]["smoothing"] == 0.1
    sgd = Experiment.named(**P2, overrides="optimizer=sgd").settings["optimizer"]
    assert sgd == {"name": "sgd"} | RECIPES["parts"]["optimizer"]["sgd"]
    same = Experiment.named(**P2, overrides="optimizer=adam").settings["optimizer"]
    assert same == Experiment.named(**P2).settings["optimizer"]  # chosen already: nothing is reset


@pytest.mark.parametrize(
    ("more", "name", "batch"),
    [
        ("", "crop_flip", 32),
        ("m=3", "crop_flip", 32),  # which the baseline does not read
        ("batch_size=7", "crop_flip", 7),
        ("augmentation=randaugment_crop_flip m=3", "randaugment_crop_flip", 32),
    ],
)
def test_the_first_stages_of_osrci_plus_are_augmented_as_the_baseline_is_or_an_override_says(
    more, name, batch, monkeypatch, tmp_path
):
    given = {}
    monkeypatch.setattr(train, "fit", lambda *_, **how: given.update(how))
    few = "train_per_class=8 validation_per_class=8 test_per_class=8"
    exp = Experiment.named(
        "tinyimagenet", method="osrci", regime="strong", overrides=few + f" {more}"
    )
    parts = exp.parts(Machine())
    exp.fit(torch.nn.Linear(1, 1), None, parts, tmp_path)
    first = given["gan_batches"]
    assert first.transform.func is AUGMENT[name]
    assert first.transform.keywords.get("m") == (3 if "aug" in more else None)
    assert parts.train[0].transform.func is AUGMENT["randaugment_crop_flip"]
    assert first.batch_size == parts.train[0].batch_size == batch
    pd.testing.assert_frame_equal(first.given, parts.train[0].given)


def test_the_first_stages_of_osrci_read_images_as_an_override_says():
    names = {"benchmark": "ssb_imagenet", "size": "paper", "method": "osrci"}
    exp = Experiment.named(**names, regime="strong", overrides="window=resized")
    parts = SimpleNamespace(taught=None, batches=lambda _, **how: how)
    assert trained.first_stages(exp, parts, "baseline")["crop"] == "resized"


def test_a_network_that_drops_takes_the_place_of_one_that_does_not_and_keeps_its_size():
    plain, dropping = (
        Experiment.named("p2", method=method).settings["network"]
        for method in ("softmax", "mcdropout")
    )
    assert dropping == plain | {"name": "conv_dropout", "dropout": 0.1}


def test_external_images_come_with_what_needs_some_or_when_asked_for():
    of = {name: Experiment.named("tinyimagenet", method=name) for name in ("edl", "oe")}
    assert [each.settings["external"] for each in of.values()] == ["", "quickdraw_kim"]
    assert Experiment.named("closed", method="oe").settings["external"] == "quickdraw_kim"
    assert "external" not in Experiment.named("closed", method="softmax").settings
    asked = Experiment.named("tinyimagenet", method="edl", overrides="external=quickdraw_kim")
    assert asked.settings["external"] == "quickdraw_kim"
    with pytest.raises(ValueError, match="outlier needs negatives"):
        Experiment.named("tinyimagenet", method="oe", overrides="external=''")


OBJECTS = {
    "network": models.MODELS,
    "loss": losses.LOSSES | {"softmax": losses.smoothed},
    "training": methods.METHODS,
    "optimizer": {"adam": torch.optim.AdamW, "sgd": torch.optim.SGD},
    "augmentation": AUGMENT,
    "reader": datasets.READERS,
    "protocol": protocols.PROTOCOLS,
    "answer": {"mcdropout": train.dropout, "ensemble": scores.ensemble},
}
ELSEWHERE = {  # settings that reach their function by another name, or through `Parts`
    *("learning_rate", "beta1", "beta2", "window", "broken", "members", "resampled", "gan_regime"),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_every_setting_of_the_two_files_is_an_argument_of_the_function_that_reads_it(kind):
    there = layers.parts()[kind]
    if kind not in ("answer", "reader", "protocol"):
        assert {*there} == {*OBJECTS[kind]} - {"smoothed"}  # the softmax's own, see `criterion`
    for name, values in there.items():
        if values:
            asked = inspect.signature(OBJECTS[kind][name]).parameters
            assert {*values} - ELSEWHERE <= {*asked}, name


def test_every_word_that_may_be_chosen_is_in_its_catalogue():
    catalogues = {
        "head": models.HEADS,
        "division": losses.DIVISIONS,
        "ops": OPS,
        "mean": scores.MEANS,
        "recalibrated": scores.WEIGHTS,
        "distance": scores.DISTANCES,
        "precision": train.PRECISIONS,
        "schedule": train.SCHEDULES,
    }
    for name, entries in catalogues.items():
        assert {*RECIPES["choices"][name]} == {*entries}, name
    needing = {name for name, roles in losses.TAUGHT.items() if "negative" in roles}
    assert {*RECIPES["needs"]["negatives"]} == needing | {"outlier", "chosen", "gamma"}


@pytest.mark.parametrize("notebook", ["12_palechor_train", "21_vaze_train", "31_kim_train"])
def test_no_two_runs_are_one_experiment_and_spelling_all_settings_out_changes_none(notebook):
    seen = {}
    for stem, found in experiment.described(notebook).items():
        text = json.dumps(found.settings, sort_keys=True)
        assert seen.setdefault(text, stem) == stem
        spelled = experiment.folded({"overrides": ""}, dict(layers.flat(found.settings)))
        words = layers.words(spelled["overrides"])
        own = {k: words.pop(k) for k in ("split", "seed")}
        assert own == {k: str(found.settings[k]) for k in own}
        assert "--" not in stem


BASE = P2 | {"regime": "baseline", "size": "mini", "split": 0, "seed": 0, "overrides": ""}
BASE |= {"devices": 1, "threads": 1}


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({}, "x"),
        ({"overrides": "epochs=12"}, "x"),  # as it is
        ({"seed": 3}, "x-seed3"),
        (
            {"seed": 3, "overrides": "learning_rate=.01 epochs=3"},
            "x-epochs3-learning_rate0.01-seed3",
        ),
        ({"method": "arpl", "threads": 2}, "x-methodarpl-threads2"),
        ({"overrides": "network=resnet9 width=8"}, "x-networkresnet9-width8"),
    ],
)
def test_a_variant_is_called_after_what_differs_in_alphabetical_order(changed, name):
    assert experiment.variant("x", BASE, BASE | changed) == name


def test_equal_experiments_have_equal_settings_whatever_they_were_called():
    first = Experiment.named(**P2, overrides="epochs=12")
    second = Experiment.named(**P2, overrides="batch_size=32 'epochs=12'")
    assert first == second == Experiment.named(**P2)
    assert first.settings == second.settings
    assert first != Experiment.named(**P2, seed=1)


def test_a_machine_is_read_from_a_text_and_changes_no_setting():
    found = Machine.of("workers=4 cache='/tmp/a b' resident=true", data="there")
    assert found == Machine("there", 4, "/tmp/a b", True)
    with pytest.raises(ValueError, match="cache, resident, captured; got 'devices'"):
        Machine.of("devices=2")


# Composition


def test_an_experiment_is_what_its_rooms_give_when_they_are_called_by_hand(tmp_path):
    """Two epochs of softmax on the digits, in the open."""
    exp = Experiment.named("mnist", method="softmax", overrides="epochs=2 rules=plain")
    parts = exp.parts(Machine())
    network = exp.network(parts)
    exp.fit(network, exp.criterion(parts), parts, tmp_path)
    table = exp.scores(network, parts, tmp_path)["scores"]

    images = datasets.READERS["digits"]()
    classes = protocols.PROTOCOLS["mini_digits"](split=0, available=set(images.rows["wnid"]))
    rows = protocols.images(classes, images.rows)
    of = {split: rows[rows["split"] == split] for split in ("train", "test")}
    how = {"seed": 0, "transform": AUGMENT["none"]}
    training = datasets.batches(images, of["train"], batch_size=64, shuffle=True, **how)
    torch.manual_seed(0)
    ours = models.conv(classes=6, features=64, width=16, channels=1)
    adam = torch.optim.AdamW(ours.parameters(), lr=0.004, weight_decay=0.0)
    settings = {"epochs": 2, "optimizer": adam, "schedule": train.triangle, "seed": 0}
    settings |= {"validate": lambda _: {}, "directory": tmp_path / "by_hand"}
    train.fit(ours, losses.softmax, training, **settings)
    out = train.predict(
        ours, datasets.batches(images, of["test"], batch_size=256, shuffle=False, **how)
    )
    assert list(table["sample"]) == list(of["test"]["sample"])
    for rule in ("max_logit", "energy", "feature_norm"):
        theirs = (scores.POST_HOC | scores.SCORES)[rule](out, known=6)
        np.testing.assert_array_equal(table[rule], theirs)


def thirds(*, split=0, available=None):
    """A protocol that divides whatever classes there are."""
    if split not in (0, 1, 2):
        raise ValueError(f"split is 0, 1 or 2; got {split}")
    names = sorted(available or ())
    rows = pd.DataFrame({"wnid": names, "name": names, "order": range(len(names))})
    rows["role"] = ["unknown" if i % 3 == split else "known" for i in range(len(names))]
    return protocols.rows_of("thirds", rows.assign(source="", group="", bin=""), available)


@pytest.mark.parametrize("name", ["closed", "thirds"])
def test_a_protocol_that_divides_whatever_classes_there_are_can_be_an_experiments(
    name, monkeypatch
):
    monkeypatch.setitem(protocols.PROTOCOLS, "thirds", thirds)
    few = "train_per_class=2 test_per_class=2 validation=whole counts=gaussian_noise:8"
    more = f"protocol={name} also=gaussian_noise {few}"
    exp = Experiment.named("closed", method="softmax", overrides=more)
    parts = exp.parts(Machine())
    assert len(parts.classes) == parts.images.rows["wnid"].nunique()
    assert [source for source, _, _ in parts.far] == ["gaussian_noise"]


def test_such_a_protocol_has_a_golden_of_each_split_and_one_without_a_list_is_refused(monkeypatch):
    monkeypatch.setitem(protocols.PROTOCOLS, "thirds", thirds)
    found = rehearsal.protocol("thirds")
    assert list(found) == ["split 0", "split 1", "split 2"]
    assert len({*found.values()}) == 3
    lost = lambda *, available=None: thirds(split=3, available=available)  # noqa: E731
    monkeypatch.setitem(protocols.PROTOCOLS, "thirds", lost)
    with pytest.raises(ValueError, match=r"thirds lists neither .*split is 0, 1 or 2; got 3"):
        rehearsal.protocol("thirds")


def test_settings_are_chosen_on_a_split_of_their_own_and_no_other_one_is_let_in():
    """It divides what stands on drawings, and their lists have it too; the digits have none."""
    for name, sizes in BENCHMARKS["benchmarks"].items():
        facts = sizes.get("mini")
        if facts is None:
            continue
        drawn = facts["protocol"].startswith("quickdraw_")
        assert facts.get("tuning") == (protocols.quickdraw.TUNING if drawn else None), name
        last = facts.get("splits", 1) - 1
        there = f"are splits 0 to {last}" if last else "is one split, 0"
        there += ", and 100 on which settings are chosen" if drawn else ""
        for split in (99, last + 1, -1):
            with pytest.raises(ValueError, match=f"there {there}; got split={split}: {name} in"):
                Experiment.named(name, method="softmax", split=split)
        if drawn:
            lists = protocols.quickdraw.SPLITS | {"quickdraw_closed_ten": (None, 1)}
            assert lists[facts["protocol"]][1] == last + 1
            assert Experiment.named(name, method="softmax", split=100).settings["split"] == 100


@pytest.mark.parametrize(("text", "nesterov"), [("nesterov=true", True), ("", False)])
def test_sgd_has_momentum_and_nesterov_where_it_is_asked_for(text, nesterov):
    exp = Experiment.named(**P2, overrides=f"optimizer=sgd weight_decay=0.01 {text}")
    (group,) = trained.optimizer(exp.settings["optimizer"], torch.nn.Linear(1, 1)).param_groups
    assert (group["momentum"], group["nesterov"]) == (0.9, nesterov)
    assert (group["lr"], group["weight_decay"]) == (0.1, 0.01)


def test_openmax_names_the_class_that_lacks_right_images_and_settings_beyond_the_classes():
    rules = {"alphas": "8 9", "tails": "5", "distance": "euclidean", "recalibrated": "half"}
    made = SimpleNamespace(known=2, settings={"rules": rules}, _seen=lambda: (None, None), _of=None)
    pred, apart = [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0], np.arange(12)[:, None] ** 2 / 1000
    wrong = Outputs(np.eye(2)[pred] + apart, ())
    with pytest.raises(ValueError, match=r"class 1 has 4: train longer, .* set rules=plain"):
        scored.Scores._openmax(made, wrong, np.repeat([0, 1], 6), 5, 1)
    with pytest.raises(ValueError, match="at most K = 2 classes; got 8 9"):
        scored.Scores.chosen(made)


def test_members_that_see_images_drawn_anew_each_have_their_own(tmp_path):
    exp = Experiment.named("mnist", method="ensemble", overrides="members=2 epochs=1")
    parts = exp.parts(Machine())
    drawn = [batches.rows["sample"] for batches in parts.train]
    assert [len(each) for each in drawn] == [len(parts.taught)] * 2
    assert not drawn[0].equals(drawn[1])
    assert all(each.duplicated().any() for each in drawn)
    network = exp.network(parts)
    history = exp.fit(network, exp.criterion(parts), parts, tmp_path)
    assert len(history) == 1
    assert [(tmp_path / f"member{i}" / "checkpoint.pt").is_file() for i in range(3)] == [
        True,
        True,
        False,
    ]
    table = exp.scores(network, parts, tmp_path)["scores"]
    assert "feature_norm" not in table  # an ensemble has no features of its own


def test_the_best_epoch_is_scored_too_where_gamma_chooses_one(tmp_path):
    settings = "watch=gamma epochs=2 rules=fitted tail=3 alpha=2 means=true"
    exp = Experiment.named("digits", method="entropic", overrides=settings)
    parts = exp.parts(Machine())
    network = exp.network(parts)
    history = exp.fit(network, exp.criterion(parts), parts, tmp_path)
    made = exp.scores(network, parts, tmp_path)
    assert {"scores", "scores_best", "mean_softmax"} == {*made}
    same = made["scores"]["max_logit"].equals(made["scores_best"]["max_logit"])
    assert same == (history["gamma"].idxmax() == len(history) - 1)
    fitted = {"openmax", "mahalanobis", "odin"}  # at a best epoch the plain rules alone
    assert {*made["scores"]} - {*made["scores_best"]} == fitted
    halves = (history["gamma_plus"] + history["gamma_minus"]) / 2
    np.testing.assert_allclose(history["gamma"], halves)
    assert history["gamma"].max() <= 1
    assert pd.isna(history).sum().sum() == 0


def test_at_the_best_epoch_c2ae_has_no_score_of_a_decoder_that_is_not_there(tmp_path):
    exp = Experiment.named("digits", method="c2ae", overrides="watch=gamma epochs=2 gan_epochs=1")
    parts = exp.parts(Machine())
    network = exp.network(parts)
    exp.fit(network, exp.criterion(parts), parts, tmp_path)
    made = exp.scores(network, parts, tmp_path)
    assert {*made["scores"]} - {*made["scores_best"]} == {"own"}


def test_without_unknown_test_images_norms_are_watched_and_no_auroc(tmp_path):
    few = "epochs=1 train_per_class=5 validation_per_class=4 test_per_class=4 also=gaussian_noise"
    more = f"{few} counts=gaussian_noise:8"
    exp = Experiment.named("closed_ten", method="softmax", regime="norms", overrides=more)
    parts = exp.parts(Machine())
    network = exp.network(parts)
    history = exp.fit(network, exp.criterion(parts), parts, tmp_path)
    assert {"norm_known", "norm_of_classes"} <= {*history}
    assert not [name for name in history if "unknown" in name or "auroc" in name]


@pytest.mark.parametrize("benchmark", ["p1", "p2", "p3", "digits"])
def test_a_protocol_without_bins_can_hold_out_nothing(benchmark):
    few = (
        "" if benchmark == "digits" else "train_per_class=4 validation_per_class=4 test_per_class=4"
    )
    settings = f"validation=whole watch=held_out {few}"
    parts = Experiment.named(benchmark, method="softmax", overrides=settings).parts(Machine())
    assert {*parts.rows["split"]} <= {"train", "val", "test"}
    assert {*parts.of("test", "negative")["label"]} == {-1}


def test_a_validation_of_more_images_than_there_are_is_refused_by_name():
    exp = Experiment.named("digits", method="softmax", overrides="validation=kim_cifar")
    with pytest.raises(ValueError, match="validation=kim_cifar holds out 2000 known images, and"):
        exp.parts(Machine())


def test_a_data_set_without_training_images_has_none_to_hold_out():
    files = pd.DataFrame({"wnid": ["a"], "split": ["test"]})
    classes = pd.DataFrame({"wnid": ["a"], "role": ["known"]})
    assert enough("kim_cifar", classes, files) is None


def test_settings_are_chosen_by_the_validation_parts_and_no_test_image(tmp_path):
    """Other test images change no choice and no AUROC of it; other validation images do."""
    grid = "temperatures='1 100' epsilons='0 0.02' tails='2 5' alphas='1 2'"
    settings = f"rules=chosen epochs=8 {grid}"
    exp = Experiment.named("digits", method="softmax", overrides=settings)
    parts = exp.parts(Machine())
    network = exp.network(parts)
    exp.fit(network, exp.criterion(parts), parts, tmp_path)

    def selection(split):
        """What is chosen where a dozen images of each class of a split are gone."""
        of = parts.rows["split"] == split
        gone = parts.rows[of].groupby("label").head(12).index
        fewer = dataclasses.replace(parts, rows=parts.rows.drop(gone))
        return exp.scores(network, fewer, tmp_path)["selection"]

    whole = exp.scores(network, parts, tmp_path)["selection"]
    pd.testing.assert_frame_equal(selection("test"), whole)
    assert not selection("val").equals(whole)


def test_what_is_not_normalised_has_no_such_setting_and_a_run_that_changes_it_a_name():
    strong = {"benchmark": "cifar10", "method": "softmax", "regime": "strong", "size": "paper"}
    assert experiment.of(strong).settings["normalise"] == "cifar"
    bare = experiment.of(strong | {"overrides": "normalise=none"})
    assert "normalise" not in bare.settings
    assert "normalise" not in experiment.of(strong | {"regime": "baseline"}).settings
    changed = strong | {"overrides": "normalise=none"}
    assert experiment.variant("x", strong, changed) == "x-normalisenone"
    with pytest.raises(ValueError, match="is one of none, cifar, kim, imagenet, timm; got"):
        experiment.of(strong | {"overrides": "normalise=mnist"})


def test_a_network_of_an_experiment_normalises_and_none_of_an_ensemble_is_left_out():
    more = "channels=3 normalise=kim train_per_class=5 validation_per_class=5 test_per_class=5"
    for method in ("softmax", "ensemble"):
        exp = Experiment.named("cifar10", method=method, overrides=f"{more} rules=plain")
        parts = exp.parts(Machine())
        images = torch.full((1, 3, 32, 32), 0.5)
        mean, std = torch.tensor(models.NORMALISE["kim"])[..., None, None]
        for network in trained.members(exp.network(parts)):
            seen = []
            network.trunk.register_forward_pre_hook(lambda _, given, to=seen: to.extend(given))
            network(images)
            torch.testing.assert_close(seen[0], (images - mean) / std)


@pytest.mark.parametrize(("method", "rules"), [("cgdl", "gaussians"), ("crosr", "latent")])
@pytest.mark.parametrize("regime", RECIPES["regimes"])
def test_a_method_keeps_the_score_that_belongs_to_it_in_every_regime(method, rules, regime):
    names = {"benchmark": "cifar10", "method": method, "regime": regime}
    assert Experiment.named(**names).settings["rules"]["name"] == rules


def test_features_of_an_earlier_training_are_not_taken_for_the_first_epoch(tmp_path):
    overrides, early = "watch=test features=2 network=conv also='' epochs={}", []
    for epochs, seed in ((1, 0), (2, 1)):
        exp = Experiment.named(
            "digits", method="softmax", seed=seed, overrides=overrides.format(epochs)
        )
        parts = exp.parts(Machine())
        network = exp.network(parts)
        exp.fit(network, exp.criterion(parts), parts, tmp_path)
        early.append(pd.read_parquet(tmp_path / "outputs.parquet").query("epoch == 1")[["x", "y"]])
    assert not np.allclose(*early)  # another seed
    kept = pd.read_parquet(tmp_path / "outputs.parquet")
    assert kept.groupby("epoch").size().tolist() == [len(parts.test.rows)] * 2
    last = train.predict(network, parts.test).features
    assert np.abs(kept.query("epoch == 2")[["x", "y"]].to_numpy() - last).max() < 1e-5


def test_a_network_without_a_head_is_watched_too(tmp_path):
    exp = Experiment.named("digits", method="softmax", overrides="watch=test also=''")
    parts = exp.parts(Machine())
    network = exp.network(parts)
    bare = torch.nn.Sequential(network)
    measured, without = (
        trained.validate("test", parts, tmp_path)(each) for each in (network, bare)
    )
    assert without == {k: v for k, v in measured.items() if k != "norm_of_classes"} != measured


def test_images_that_a_network_made_count_as_unknown_where_openmax_settings_are_chosen(tmp_path):
    chosen = "rules=chosen tails=2 alphas=1 epsilons=0 temperatures=1"
    how = "epochs=3 gan_epochs=1 generated=64 also=''"
    exp = Experiment.named("digits", method="osrci", overrides=f"{chosen} {how}")
    parts = exp.parts(Machine())
    network = exp.network(parts)
    exp.fit(network, exp.criterion(parts), parts, tmp_path)
    tables = exp.scores(network, parts, tmp_path)
    assert np.isfinite(tables["scores"]["openmax"]).all()
    assert set(tables["selection"]["rule"]) == {"odin", "openmax"}


def test_the_names_in_a_folder_have_the_digest_that_earlier_runs_had(tmp_path):
    for name in ("README.txt", "cat/1.png", ".hidden", "cat/.hidden/2.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert layers._content_of(tmp_path) == "./README.txt\ncat/1.png"


def test_an_ensemble_answers_with_the_mean_that_its_setting_names(tmp_path):
    exp = Experiment.named("digits", method="ensemble", overrides="members=2 mean=logits")
    parts = exp.parts(Machine())
    network = exp.network(parts)
    said = scored.Scores(network, parts, tmp_path).says(parts.test)
    each = [train.predict(member, parts.test).logits for member in network]
    np.testing.assert_allclose(said.logits, np.mean(each, axis=0), atol=1e-6)
