"""`osnb predict`: scores of weights that are there already, as a run like any other."""

import errno
import json
from inspect import signature
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from test_cli import osnb
from torch import nn

from osnb import experiment, models, train
from osnb.base import stamps, tables, workbook
from osnb.base.outputs import Outputs
from osnb.book import predicting, run, runs
from osnb.datasets import BrokenImage
from osnb.evidence import tables as evidence
from osnb.experiment import predicted
from osnb.experiment.predicted import MOVED, Answering
from osnb.scores.own import SHARES

AUDIT = Path(__file__).parent / "audit"
SMALL = "network=conv width=4 features=8 epochs=2 also=''"
TEXT = f'run: small\nbenchmark: digits\nmethod: softmax\nregime: baseline\noverrides: "{SMALL}"\n'


def trained(plan):
    """What the cells of a training notebook do, without its kernel."""
    here, exp = runs.begin(plan.notebook, plan.parameters), experiment.of(plan.parameters)
    parts = exp.parts(experiment.Machine())
    network = exp.network(parts)
    exp.fit(network, exp.criterion(parts), parts, here.directory)
    table = exp.scores(network, parts, here.directory)["scores"]
    here.save("scores", table=table, inputs=parts.inputs)
    return {"state": "done"}


@pytest.fixture
def out(tmp_path, monkeypatch):
    """Where runs go; the params files lie in own/21_vaze_train beside them."""
    monkeypatch.setenv("OSNB_OUT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def small(out, monkeypatch):
    """A finished run of two epochs, whose params file predict finds."""
    file = out / "own" / "21_vaze_train" / "small.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(TEXT)
    monkeypatch.setattr("osnb.book.predicting.params_file", lambda *_: file)
    plan = run.plan(file)
    run.execute(plan, through=trained)
    return plan


def read(out, name):
    return tables.read(out / "runs" / "21_vaze_train" / name / "scores.parquet")


def test_another_test_set_gives_the_table_that_a_training_with_it_gives(small, out):
    code, said, _ = osnb("predict", "small", "--also", "glyphs", "--also", "font_digits")
    assert (code, "small-alsoglyphs+font_digits: " in said) == (0, True)
    ours = read(out, "small-alsoglyphs+font_digits")
    assert set(ours["source"]) == {"digits", "glyphs", "font_digits"}
    plan = run.plan(out / "own/21_vaze_train/small.yaml", {"also": "glyphs font_digits"})
    folder = plan.directory
    assert not (folder / "history.parquet").exists()  # nothing was trained
    stamp = json.loads((folder / "scores.json").read_text())
    weights = small.directory / "checkpoint.pt"
    assert stamp["inputs"]["weights/0"] == workbook.file_hash(weights)
    assert stamp["inputs"]["norms/0"] == "4 of 4 folded into convolutions"
    assert stamp["settings"] == plan.follows["settings"]
    assert (out / "figures/21_vaze_train" / plan.run / "scores.parquet").is_file()
    run.execute(plan, through=trained)
    theirs = read(out, plan.run)
    assert (ours["sample"] == theirs["sample"]).all()
    np.testing.assert_allclose(ours["max_logit"], theirs["max_logit"], atol=1e-5)
    assert ours["max_logit"].nunique() > 500


def test_the_mean_softmax_of_each_class_is_kept_where_it_is_asked_for(small, out):
    assert osnb("predict", "small", "-p", "means=true")[0] == 0
    folder = out / "figures/21_vaze_train/small-meansTrue"
    known = read(out, folder.name).query("role == 'known'")
    means = pd.read_csv(folder / "mean_softmax.csv", dtype={"class": str}).set_index("class")
    for (name, label), target in known.groupby(["class", "label"])["target"]:
        assert means.loc[name, str(label)] == pytest.approx(target.mean(), abs=1e-5)
    assert "weights/0" in stamps.read(folder / "mean_softmax.json")["inputs"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["small"], "name other test sets"),
        (["small", "-p", "epochs=3"], "name other test sets"),
        (["small", "-p", "seed=3"], "name other test sets"),
        (["small", "-p", "benchmark=cifar10"], "name other test sets"),
        (["small", "-p", "validation=whole"], "name other test sets"),
        (["smal", "--also", "glyphs"], "there are: 21_vaze_train/small"),
        ([], "need a finished RUN, or --benchmark"),
        (["--benchmark", "own/21_vaze_train/small.yaml"], "names no weights"),
        (
            ["--benchmark", "own/21_vaze_train/small.yaml", "--weights", "x.pt"],
            "no such file: x.pt",
        ),
        (["--benchmark", "x.yaml", "--weights", "x.pt"], "no such file: x.yaml"),
        (["--benchmark", "own/mine.yaml"], "give --weights FILE"),
        (["small", "--also", "glyps"], "'glyps' is not one of"),
        (["--benchmark", "own/21_vaze_train/small.yaml", "--weights", "no.pt"], "tensors by name"),
        (["small", "--weights", "x.pt"], "need a finished RUN, or --benchmark"),
    ],
)
def test_what_predict_cannot_do_is_refused_and_leaves_nothing(words, reason, small, out):
    (out / "no.pt").write_text("no weights")
    (out / "own" / "mine.yaml").write_text("protocol: roles_csv\n")
    there = sorted(out.rglob("*"))
    code, _, why = osnb("predict", *words)
    assert code == 2
    assert reason in why
    new = {*out.rglob("*")} - {*there}
    assert [file for file in new if ".locks" not in file.parts] == []


@pytest.mark.parametrize(
    ("error", "ends"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 1),
        (PermissionError("no"), 1),
        (ValueError("no"), 2),
        (BrokenImage("a.png does not decode"), 2),
        (UnicodeDecodeError("utf-8", b"", 0, 1, "no"), 2),
        (FileNotFoundError("no photographs"), 2),
    ],
)
def test_a_full_disk_is_a_failure_and_a_broken_image_a_refusal(small, monkeypatch, error, ends):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr(predicted, "predicted", fails)
    code, _, why = osnb("predict", "small", "--also", "glyphs")
    assert (code, why) == (ends, f"osnb: {error}\n")


MINE = """from torch import nn
def network(*, classes):
    layers = [nn.Flatten(), nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, classes)]
    return nn.Sequential(*layers)
def shares(*, classes):
    return network(classes=classes).append(nn.Softmax(dim=1))
"""


def test_a_network_of_ones_own_is_scored_and_its_code_is_in_the_stamp(out):
    (out / "mine_here.py").write_text(MINE)
    space = {}
    exec(MINE, space)
    torch.manual_seed(0)
    network = space["network"](classes=5)
    torch.save(network.state_dict(), out / "mine.pt")
    file = out / "own" / "21_vaze_train" / "mine.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("run: mine\nbenchmark: digits\nmethod: softmax\nregime: baseline\n")
    words = ["--benchmark", file, "--weights", "mine.pt", "--model", "mine_here:network"]
    code, said, err = osnb("predict", *words)
    assert (code, err) == (0, "")
    assert "images of 1 x 8 x 8; its logits have to be, in this order: 0 " in said
    table = read(out, "mine_on_mine").query("source == 'digits'")
    parts = experiment.Experiment.named("digits", method="softmax").parts(experiment.Machine())
    with torch.no_grad():
        pixels = torch.cat([images for images, _ in parts.test(0)])
        features = network[:3](pixels)
        logits = network[3](features)
    np.testing.assert_allclose(table["max_logit"], logits.amax(1), atol=1e-5)
    np.testing.assert_allclose(table["feature_norm"], features.norm(dim=1), atol=1e-5)
    stamp = stamps.read(out / "runs/21_vaze_train/mine_on_mine/scores.json")
    assert not (out / "figures").exists()  # nothing of a training of that name, nor of another
    assert osnb("predict", *words)[0] == 0  # the same again
    code, _, err = osnb("predict", *words[:-1], "mine_here:shares", "--force")
    assert (code, err) == (0, f"mine_here:shares: {SHARES}\n")
    assert stamp["columns"]["network"] == "mine_here:network"
    source = stamp["inputs"]["model/mine_here:network"]
    assert source == workbook.file_hash(out / "mine_here.py")
    (out / "mine_there.py").write_text(MINE.replace("Linear(64", "Linear(65"))
    wrongs = {"mine_here:net": "no function 'net'", "nowhere:x": "no file for 'nowhere:x'"}
    wrongs |= {"mine_here": "is no MODULE:NAME", "mine_there:network": "1.weight (12, 65)"}
    wrongs |= {"mine_here:nn": "no function 'nn'"}
    for wrong, reason in wrongs.items():
        code, _, why = osnb("predict", *words[:-1], wrong, "--force")
        assert (code, reason in why) == (2, True), why
    torch.save({"other": torch.zeros(2)}, out / "mine.pt")
    code, _, why = osnb("predict", *words)
    assert (code, "holds scores of other weights" in why) == (2, True), why
    code, _, why = osnb("predict", *words, "--force")
    assert (code, "on one side only: 1.bias" in why) == (2, True)


def test_foreign_weights_are_no_other_seed_of_the_run_that_their_file_is_called_after():
    file = workbook.root() / "params" / "21_vaze_train" / "mini_cifar10_softmax.yaml"
    planned = predicting.of_training([Path("mini_cifar10_softmax-best.pt")], file, {})
    stamp = planned.follows | {"run": planned.run}
    assert evidence.described("21_vaze_train")["mini_cifar10_softmax"]
    assert evidence.repeats(stamp, evidence.described("21_vaze_train")) is None


def test_weights_replace_no_training_and_a_wrong_order_of_classes_is_told(small, out):
    file, weights = out / "own/21_vaze_train/small.yaml", small.directory / "checkpoint.pt"
    code, said, _ = osnb("predict", "--benchmark", file, "--weights", weights)
    assert (code, "checkpoint_on_small: " in said, "below chance" in said) == (0, True, False)
    state = torch.load(weights, weights_only=True)["model"]
    for name in [name for name in state if name.startswith("head.")]:
        state[name] = state[name].roll(1, 0)
    torch.save(state, out / "turned.pt")
    assert "below chance" in osnb("predict", "--benchmark", file, "--weights", "turned.pt")[1]
    with pytest.raises(run.Refused, match="holds a training: give --force, or the weights another"):
        predicting.unclaimed(small, [weights], "")
    predicting.unclaimed(predicting.of_training([weights], file, {}), [weights], "")  # the same
    file.write_text(TEXT.replace("digits", "closed"))
    with pytest.raises(run.Refused, match=r"holds scores of other weights.* or benchmark"):
        predicting.unclaimed(predicting.of_training([weights], file, {}), [weights], "")


def test_logits_without_a_linear_layer_are_their_own_features():
    net = Answering(nn.Sequential(nn.Conv2d(1, 3, 8), nn.Flatten()))
    out = net(torch.rand(2, 1, 8, 8))
    assert out.features is out.logits or torch.equal(out.features, out.logits)


class Projecting(nn.Module):
    """Its last layer is not the one that is registered last, which only a training calls."""

    def __init__(self):
        super().__init__()
        self.first, self.fc, self.proj = nn.Linear(64, 6), nn.Linear(6, 3), nn.Linear(6, 2)
        self.off = False

    def forward(self, images):
        """Logits (N, 3)."""
        if self.off:
            return images.flatten(1)[:, :3]
        return self.fc(input=self.first(images.flatten(1)).relu())


def test_features_are_the_input_of_the_linear_layer_that_is_called_last():
    net, images = Projecting(), torch.rand(2, 1, 8, 8)
    answering = Answering(net)
    out = answering(images)
    assert torch.equal(out.features, net.first(images.flatten(1)).relu())
    net.off = True  # nothing is left of the call before
    assert torch.equal(answering(images).features, images.flatten(1)[:, :3])


def test_released_weights_are_never_trained(tmp_path):
    exp = experiment.Experiment.named("digits", method="released", overrides="weights=x.pth")
    parts = exp.parts(experiment.Machine())
    with pytest.raises(ValueError, match=r"x\.pth are not trained here: osnb predict"):
        exp.fit(exp.network(parts), exp.criterion(parts), parts, tmp_path)


# Batch norm in the convolutions.

DUMMY = Outputs(np.zeros((1, 5), np.float32), np.zeros((1, 8), np.float32))
SMALL_ONES = {"features": 64, "width": 8}
NORMED = {  # every network of the room that has batch norm, and how many of its norms stay
    **dict.fromkeys(("conv", "conv_dropout", "resnet9", "dhrnet"), (SMALL_ONES, 0)),
    **dict.fromkeys(("resnet20", "resnet18_cifar", "vgg32"), (SMALL_ONES, 0)),
    "fast_conv": (SMALL_ONES, 3),  # those behind a pooling
    "resnet18_identity": (SMALL_ONES, 9),  # those before a block's first layer, and the last
    "wrn_10_1": ({}, 4),  # the same
    "wrn_40_2": ({}, 18),
    "wrn_40_4": ({}, 18),
    "ladder": ({"width": 8}, 2),  # those behind a transposed convolution
    "resnet50": ({"features": 6}, 0),
    "timm": ({"features": 64, "backbone": "resnet18"}, 0),
}
WITHOUT = {"mlp"}
LARGE = {"wrn_28_10"}  # the class of wrn_40_4, by other numbers


def lively(network, images, seed=0):
    """With weights and statistics of batch norm as a training leaves them."""
    torch.manual_seed(seed)
    train.begin(network, lambda *_: iter([(images, torch.zeros(len(images)))]))
    for part in network.modules():
        if isinstance(part, nn.BatchNorm2d):
            nn.init.uniform_(part.bias, -0.2, 0.2)
            if isinstance(part.weight, nn.Parameter):
                nn.init.uniform_(part.weight, 0.7, 1.3)
            part.momentum = 1.0
    with torch.no_grad():
        network.train()(images)
    return network.eval()


def small_one(name):
    takes = signature(models.MODELS[name]).parameters
    how = {key: value for key, value in NORMED[name][0].items() if key in takes}
    return models.MODELS.bind(name, classes=6, **how)()


def photographs(count, side):
    """Smooth images, which leave some contrast at every depth of a network."""
    torch.manual_seed(1)
    images = nn.functional.interpolate(torch.rand(count, 3, 8, 8), side, mode="bilinear")
    return (images + 0.2 * torch.rand(count, 3, side, side)).clamp(0, 1)


def test_every_network_with_batch_norm_is_folded_below():
    assert {*NORMED} | WITHOUT | LARGE == {*models.MODELS}
    assert not models.outside.norms(models.mlp(classes=6, channels=3, size=32))


@pytest.mark.parametrize("name", NORMED)
def test_folded_batch_norm_moves_no_logit_by_more_than_4e_6(name):
    images = photographs(*{"resnet50": (4, 64), "timm": (8, 128)}.get(name, (8, 32)))
    network = lively(small_one(name), images)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    still = models.folded(network)
    after = network.state_dict()
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert (models.outside.norms(still), models.outside.norms(network) > 0) == (
        NORMED[name][1],
        True,
    )
    if name == "resnet50":  # its own rounding, with random weights, is 1e-4: see below
        one = network.double()
        one, other = (x.trunk(images.double()) for x in (one, models.folded(one)))
        assert abs(one - other).max() <= 1e-10 * abs(one).max()
        return
    batches = lambda _: [(images, None)]  # noqa: E731
    plain, fast = (train.predict(each, batches).logits for each in (network, still))
    assert 0 < abs(plain - fast).max() <= MOVED * max(1, abs(plain).max())
    assert abs(plain).max() > 0.1


class Twice(nn.Module):
    """A convolution that is called twice, one that is read twice."""

    def __init__(self):
        super().__init__()
        self.first, self.other = (nn.Conv2d(3, 3, 3, padding=1) for _ in range(2))
        self.norm, self.last = nn.BatchNorm2d(3), nn.BatchNorm2d(3)
        self.seen = None

    def forward(self, x):
        """Logits (N, 3)."""
        self.seen = self.first(self.norm(self.first(x)))
        y = self.other(self.seen)
        return (self.last(y) + y).mean(dim=(2, 3))


def test_a_convolution_that_others_need_too_keeps_its_norm():
    images = photographs(8, 32)
    network = lively(Twice(), images)
    still = models.folded(network)
    assert models.outside.norms(still) == 2
    assert torch.equal(still(images), network(images))


def test_a_network_that_cannot_be_copied_is_left_alone():
    network = nn.Sequential(nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3)).eval()
    with pytest.warns(FutureWarning, match="weight_norm"):
        nn.utils.weight_norm(network[0])
    assert models.folded(network) is network


def test_a_network_that_folding_moves_too_far_is_left_alone():
    images = photographs(8, 64)
    network = lively(small_one("resnet50"), images)
    parts = SimpleNamespace(test=lambda *_: [(images, None)])
    assert not predicted._alike(network, models.folded(network), parts)
    assert predicted._alike(network, network, parts)


def test_odin_reads_the_network_itself_and_plain_passes_the_folded_one(small, monkeypatch):
    exp = experiment.of(small.parameters)
    parts = exp.parts(experiment.Machine())
    made = predicted.loaded(exp, parts, [small.directory / "checkpoint.pt"])
    norms = {}
    for name, said in {"odin_steps": [DUMMY], "predict": DUMMY}.items():
        monkeypatch.setattr(
            train,
            name,
            lambda model, *_, name=name, said=said, **__: norms.update({name: model}) or said,
        )
    made.says(parts.test)
    made._stepped(1.0, 0.01)(parts.test, None)
    norms = {name: models.outside.norms(model) for name, model in norms.items()}
    assert norms == {"odin_steps": 4, "predict": 0}


@pytest.mark.parametrize("file", sorted(AUDIT.glob("weights-*")), ids=lambda file: file.name)
def test_what_an_audit_found_is_refused_by_its_name_as_weights(file):
    network = models.mlp(classes=3, features=4, channels=1, size=4)
    with pytest.raises(ValueError, match=f"{file.name}(:| must hold tensors by name)"):
        models.weighted(network, file)


@pytest.mark.parametrize(
    "content", [[], torch.zeros(3), {"a": 3}, {3: torch.zeros(3)}, {"model": 3}]
)
def test_a_file_that_holds_anything_but_tensors_by_name_is_no_weights(content, tmp_path):
    torch.save(content, tmp_path / "x.pt")
    with pytest.raises(ValueError, match=r"x\.pt must hold tensors by name, and nothing else"):
        models.weighted(models.mlp(classes=3, features=4, channels=1, size=4), tmp_path / "x.pt")


def test_a_checkpoint_and_tensors_behind_a_prefix_are_weights(tmp_path):
    torch.manual_seed(0)
    first, second = (models.conv(classes=3, features=4, width=2) for _ in range(2))
    content = {f"module.{key}": value for key, value in first.state_dict().items()}
    nested = {name: {name: content, "epoch": 1} for name in models.outside.NESTED}
    for kind, given in {"plain": content, **nested}.items():
        second.head.weight.data.zero_()
        torch.save(given, tmp_path / f"{kind}.pt")
        models.weighted(second, tmp_path / f"{kind}.pt")
        assert torch.equal(second.head.weight, first.head.weight)
    models.weighted(second, {"model": "conv", "state_dict": content})
    around = nn.DataParallel(second)  # whose own names have the prefix
    models.weighted(around, content)
    models.weighted(around, {f"module.{key}": value for key, value in content.items()})
    (tmp_path / "no.pt").write_bytes(b"no weights")
    with pytest.raises(ValueError, match=r"no\.pt must hold tensors by name"):
        models.weighted(second, tmp_path / "no.pt")
