"""`osnb predict`: scores of weights that are there already, as a run like any other."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from test_cli import osnb
from torch import nn

from osnb import experiment, models, train
from osnb.base import stamps, tables, workbook
from osnb.book import run, runs
from osnb.experiment.predicted import Answering

AUDIT = Path(__file__).parent / "audit"
SMALL = "network=conv width=4 features=8 epochs=2 also=''"
TEXT = f'run: small\nbenchmark: digits\nmethod: softmax\nregime: baseline\noverrides: "{SMALL}"\n'


def trained(plan, _limit, _heard):
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
    assert stamp["settings"] == plan.follows["settings"]
    assert (out / "figures/21_vaze_train" / plan.run / "scores.parquet").is_file()
    run.execute(plan, through=trained)
    theirs = read(out, plan.run)
    assert (ours["sample"] == theirs["sample"]).all()
    np.testing.assert_allclose(ours["max_logit"], theirs["max_logit"], atol=1e-5)
    assert ours["max_logit"].nunique() > 500


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["small"], "name other test sets"),
        (["small", "-p", "epochs=3"], "name other test sets"),
        (["small", "-p", "seed=3"], "name other test sets"),
        (["smal", "--also", "glyphs"], "there are: 21_vaze_train/small"),
        ([], "need a finished RUN, or --benchmark"),
        (["--benchmark", "own/21_vaze_train/small.yaml"], "names no weights"),
        (["small", "--weights", "x.pt"], "need a finished RUN, or --benchmark"),
    ],
)
def test_what_predict_cannot_do_is_refused(words, reason, small):
    code, _, why = osnb("predict", *words)
    assert code == 2
    assert reason in why


MINE = """from torch import nn
def network(*, classes):
    layers = [nn.Flatten(), nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, classes)]
    return nn.Sequential(*layers)
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
    assert osnb("predict", *words)[0] == 0
    table = read(out, "mine").query("source == 'digits'")
    parts = experiment.Experiment.named("digits", method="softmax").parts(experiment.Machine())
    with torch.no_grad():
        pixels = torch.cat([images for images, _ in parts.test(0)])
        features = network[:3](pixels)
        logits = network[3](features)
    np.testing.assert_allclose(table["max_logit"], logits.amax(1), atol=1e-5)
    np.testing.assert_allclose(table["feature_norm"], features.norm(dim=1), atol=1e-5)
    stamp = stamps.read(out / "runs/21_vaze_train/mine/scores.json")
    assert stamp["columns"]["network"] == "mine_here:network"
    source = stamp["inputs"]["model/mine_here:network"]
    assert source == workbook.file_hash(out / "mine_here.py")
    (out / "mine_there.py").write_text(MINE.replace("Linear(64", "Linear(65"))
    wrongs = {"mine_here:net": "no function 'net'", "nowhere:x": "no file for 'nowhere:x'"}
    wrongs |= {"mine_here": "is no MODULE:NAME", "mine_there:network": "1.weight (12, 65)"}
    wrongs |= {"mine_here:nn": "no function 'nn'"}
    for wrong, reason in wrongs.items():
        code, _, why = osnb("predict", *words[:-1], wrong)
        assert (code, reason in why) == (2, True), why
    torch.save({"other": torch.zeros(2)}, out / "mine.pt")
    code, _, why = osnb("predict", *words)
    assert (code, "on one side only: 1.bias" in why) == (2, True)


def test_logits_without_a_linear_layer_are_their_own_features():
    net = Answering(nn.Sequential(nn.Conv2d(1, 3, 8), nn.Flatten()))
    out = net(torch.rand(2, 1, 8, 8))
    assert out.features is out.logits or torch.equal(out.features, out.logits)


def test_released_weights_are_never_trained(tmp_path):
    exp = experiment.Experiment.named("digits", method="released", overrides="weights=x.pth")
    parts = exp.parts(experiment.Machine())
    with pytest.raises(ValueError, match=r"x\.pth are not trained here: osnb predict"):
        exp.fit(exp.network(parts), exp.criterion(parts), parts, tmp_path)


# Batch norm in the convolutions.


def lively(network, images, seed=0):
    """With weights and statistics of batch norm as a training leaves them."""
    torch.manual_seed(seed)
    for part in network.modules():
        if isinstance(part, nn.BatchNorm2d):
            nn.init.normal_(part.weight, 1, 0.2)
            nn.init.normal_(part.bias, 0, 0.2)
            part.momentum = 1.0
    with torch.no_grad():
        network.train()(images)
    return network.eval()


@pytest.mark.parametrize("name", ["conv", "resnet9", "resnet20", "resnet18_cifar", "vgg32"])
def test_folded_batch_norm_moves_no_logit_by_more_than_4e_6(name):
    torch.manual_seed(1)
    images = torch.rand(16, 3, 32, 32)
    network = lively(models.MODELS.bind(name, classes=6, features=64, width=8)(), images)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    still = models.folded(network)
    batches = lambda _: [(images, None)]  # noqa: E731
    plain, fast = (train.predict(each, batches).logits for each in (network, still))
    assert abs(plain - fast).max() <= 4e-6 * max(1, abs(plain).max())
    assert abs(plain).max() > 0.1
    assert not [x for x in still.modules() if isinstance(x, nn.BatchNorm2d)]
    after = network.state_dict()
    assert all(torch.equal(before[key], after[key]) for key in before)


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
    for kind, given in {"plain": content, "checkpoint": {"model": content, "epoch": 1}}.items():
        torch.save(given, tmp_path / f"{kind}.pt")
        models.weighted(second, tmp_path / f"{kind}.pt")
        assert torch.equal(second.head.weight, first.head.weight)
    (tmp_path / "no.pt").write_bytes(b"no weights")
    with pytest.raises(ValueError, match=r"no\.pt must hold tensors by name"):
        models.weighted(second, tmp_path / "no.pt")
