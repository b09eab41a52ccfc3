"""Scores, networks and readers in a file of one's own: tried, hashed, refused, and used."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from test_cli import osnb
from test_predict import trained

from osnb import experiment as ex
from osnb import train
from osnb.base import tables, user
from osnb.book import predicting
from osnb.book.run import Refused, execute, plan
from osnb.experiment import examined, predicted
from osnb.experiment.scored import Scores

HEAD = "import numpy as np\nimport pandas as pd\nimport torch\nfrom torch import nn\n"
HEAD += "from osnb.base.outputs import Outputs\nfrom osnb.datasets.images import Images, kept\n"
SCORE = """
def margin(out, *, known, power=1.0):
    logits = np.sort(out.logits[:, :known], axis=1)  # float32
    return (logits[:, -1] - logits[:, -2]) ** power
"""
NETWORK = """
class Flat(nn.Module):
    def __init__(self, pixels, classes):
        super().__init__()
        self.head = nn.Linear(pixels, classes)

    def forward(self, images):
        return Outputs(self.head(images.flatten(1)), images.flatten(1))

def net(*, classes, channels, size):
    return Flat(channels * size * size, classes)
"""
READER = """
def packed(root, *, images="mine.npz", test=3):
    found = np.load(images)
    pixels, classes = found["pixels"], pd.Series(found["classes"])
    number = classes.groupby(classes).cumcount()
    rows = pd.DataFrame({"sample": classes + "/" + number.astype(str), "wnid": classes})
    rows["split"] = np.where(number < test, "test", "train")
    return kept(rows, lambda i: pixels[i][None], (1, *pixels.shape[1:]))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Code of one's own, sixty images in one file, and a benchmark that reads them."""
    rng = np.random.default_rng(0)
    classes = np.repeat(["a", "b", "u"], 20)
    pixels = rng.integers(0, 256, (60, 8, 8), np.uint8) // 4 + 60 * (classes == "a")[:, None, None]
    np.savez(tmp_path / "mine.npz", pixels=pixels.astype(np.uint8), classes=classes)
    (tmp_path / "roles.csv").write_text("class,role\na,known\nb,known\nu,unknown\n")
    (tmp_path / "my.yaml").write_text("reader: mine:packed\nepochs: 2\nfeatures: 8\nwidth: 4\n")
    (tmp_path / "mine.py").write_text(HEAD + SCORE + NETWORK + READER)
    (tmp_path / "21_vaze_train").mkdir()
    own = "run: own\nsize: own\nbenchmark: my.yaml\n"
    (tmp_path / "21_vaze_train" / "own.yaml").write_text(own)
    monkeypatch.setenv("OSNB_OUT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def experiment(overrides=""):
    return ex.Experiment.named("my.yaml", method="softmax", size="own", overrides=overrides)


def planned(folder, **overrides):
    return plan(folder / "21_vaze_train" / "own.yaml", overrides)


@pytest.fixture
def made(folder):
    """What a network and a score of one's own say after two epochs."""
    exp = experiment("network=mine:net rules=mine:margin power=2")
    parts = exp.parts(ex.Machine())
    network = exp.network(parts)
    exp.fit(network, exp.criterion(parts), parts, folder)
    return Scores(network, parts, folder), exp.scores(network, parts, folder)["scores"]


def test_reader_network_and_score_of_ones_own_make_a_scores_table(made):
    says, table = made
    assert table["source"].unique().tolist() == ["mine:packed"]
    assert table["class"].value_counts().to_dict() == {"a": 3, "b": 3, "u": 3}
    logits = np.sort(says.says(says.parts.test).logits.astype(np.float64), axis=1)
    np.testing.assert_allclose(table["margin"], (logits[:, -1] - logits[:, -2]) ** 2, rtol=1e-5)
    tables.check(table)


def test_a_run_of_ones_own_code_goes_by_its_settings_and_all_its_texts(folder):
    run = planned(folder, rules="mine:margin", power="3", network="mine:net")
    assert run.run == "own-networkmine=3Anet-power3.0-rulesmine=3Amargin"
    names = ("network", "rules", "reader")
    before = [run.follows["settings"][name]["digest"] for name in names]
    (folder / "mine.py").write_text(HEAD + SCORE + NETWORK + READER + "\n")
    same = planned(folder, rules="mine:margin", power="3", network="mine:net")
    after = [same.follows["settings"][name]["digest"] for name in names]
    assert all(a != b for a, b in zip(before, after, strict=True))
    (folder / "mine.npz").write_bytes((folder / "mine.npz").read_bytes() + b"\n")
    settings = experiment().settings["reader"]  # the setting images names a file, whose bytes count
    assert settings["digest"] != after[2]


WRONG = {
    "score: a mean": ("rules=x:f", "def f(out, *, known): return out.logits.mean()", "one finite"),
    "score: no known": ("rules=x:f", "def f(out): return out.logits[:, 0]", "x:f is called as"),
    "score: NaN": (
        "rules=x:f",
        "def f(out, *, known): return out.logits[:, 0] * np.nan",
        "one finite value for each of 12",
    ),
    "score: of a name that is taken": (
        "rules=x:energy",
        "def energy(out, *, known): return out.logits[:, 0]",
        "'energy' is a column",
    ),
    "network: logits alone": (
        "network=x:f",
        "def f(*, classes): return nn.Sequential(nn.Flatten(), nn.Linear(64, classes))",
        "must give Outputs",
    ),
    "network: of other classes": (
        "network=x:f",
        NETWORK + "\ndef f(*, classes): return Flat(64, classes + 1)",
        r"logits \(2, 2\)",
    ),
    "network: of other pixels": (
        "network=x:f",
        NETWORK + "\ndef f(*, classes): return Flat(65, classes)",
        "x:f .*RuntimeError",
    ),
    "network: none": ("network=x:f", "def f(*, classes): return 3", "x:f .*no attribute"),
    "reader: a list": ("reader=x:f", "def f(root): return [1]", "must give osnb.datasets.Images"),
    "reader: no split": (
        "reader=x:f",
        "def f(root): return kept(pd.DataFrame({'sample': ['a'], 'wnid': ['b']}), 0, (1, 8, 8))",
        "lacks split",
    ),
    "reader: equal samples": (
        "reader=x:f",
        "def f(root): return kept(pd.DataFrame({'sample': ['a'] * 2, 'wnid': 'b', 'split': 'test'})"
        ", 0, (1, 8, 8))",
        "'a' twice",
    ),
    "reader: numbers of classes": (
        "reader=x:f",
        "def f(root): return kept(pd.DataFrame({'sample': ['a'], 'wnid': 3, 'split': 'test'})"
        ", 0, (1, 8, 8))",
        "x:f needs text in wnid, such as '3'; got 3",
    ),
    "reader: numbers of samples": (
        "reader=x:f",
        "def f(root): return kept(pd.DataFrame({'sample': [3], 'wnid': 'a', 'split': 'test'})"
        ", 0, (1, 8, 8))",
        "x:f needs text in sample, such as '3'; got 3",
    ),
    "reader: floats": (
        "reader=x:f",
        "def f(root): return Images(pd.DataFrame({'sample': ['a'], 'wnid': 'b', 'split': 'test'})"
        ", lambda at: torch.rand(len(at), 1, 8, 8), (1, 8, 8))",
        "uint8",
    ),
    "reader: it fails": ("reader=x:f", "def f(root): return {}['a']", "x:f .*KeyError"),
    "module: it ends": ("rules=x:f", "raise SystemExit(0)\ndef f(out): ...", "fails: SystemExit"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_before_a_kernel_starts(folder, name):
    override, code, reason = WRONG[name]
    (folder / "x.py").write_text(HEAD + textwrap.dedent(code))
    kind, value = override.split("=")
    with pytest.raises(ValueError, match=reason):
        planned(folder, **{kind: value})


def test_images_that_are_not_square_are_refused_where_a_part_is_made_for_one_side(folder):
    found = np.load("mine.npz")
    np.savez("mine.npz", pixels=found["pixels"][:, :, :6], classes=found["classes"])
    reason = r" needs square images; .* mine:packed are \(1, 8, 6"
    with pytest.raises(ValueError, match="mlp" + reason):
        planned(folder, network="mlp")
    for method in ("osrci", "c2ae", "arpl_cs"):
        with pytest.raises(ValueError, match=method + reason):
            planned(folder, method=method)
    for method in ("softmax", "crl", "proser", "augmix"):
        assert planned(folder, method=method, network="conv")


def test_outlier_exposure_takes_images_that_are_not_square(folder):
    found, roles = np.load("mine.npz"), "class,role\na,known\nb,known\nu,negative\nv,unknown\n"
    classes = np.where(np.arange(60) < 50, found["classes"], "v")
    np.savez("mine.npz", pixels=found["pixels"][:, :, :6], classes=classes)
    (folder / "roles.csv").write_text(roles)
    exp = ex.Experiment.named("my.yaml", method="oe", size="own", overrides="epochs=1")
    examined.code(exp, ex.Machine())
    parts = exp.parts(ex.Machine())
    assert len(exp.fit(exp.network(parts), exp.criterion(parts), parts, folder)) == 1


def test_a_loss_of_ones_own_may_teach_the_density_of_openhybrid(folder):
    (folder / "x.py").write_text("def f(out, labels): ...")
    how = {"method": "openhybrid", "size": "own"}
    assert ex.Experiment.named("my.yaml", **how, overrides="loss=x:f")


LACKS = {  # what mine:net, of logits and features alone, does not have
    "arpl": r"loss=arpl needs reciprocal points: mine:net needs Outputs whose slack is \(N, K\)",
    "crosr": "loss=joint needs a network that measures its image: mine:net needs Outputs whose",
    "openhybrid": "openhybrid needs a density of the features: mine:net needs a head that gives",
    "cgdl": r"cgdl needs a place for each class: mine:net needs Outputs whose slack is \(N, 1 \+ K",
    "proser": "proser needs layers .*: mine:net needs trunk, an nn.Sequential of more than 2",
    "mcdropout": "answer=mcdropout needs a network that drops: mine:net needs a module such as",
}
HAVING = """
class Mine(Network):
    def forward(self, images):
        out = super().forward(images)
        return out._replace(slack=torch.cat([out.slack] * 3, dim=1))

def net(*, classes, channels, size):
    layers = [nn.Flatten(), nn.Linear(channels * size * size, 5), nn.Dropout(0.1), nn.ReLU()]
    return Mine(nn.Sequential(*layers), head_of("flow", 5, classes))
"""


@pytest.mark.parametrize("method", LACKS)
def test_a_network_of_ones_own_is_asked_for_what_a_method_needs(method, folder):
    how = {"method": method, "size": "own"}
    exp = ex.Experiment.named("my.yaml", **how, overrides="network=mine:net")
    with pytest.raises(ValueError, match=LACKS[method]):
        examined.code(exp, ex.Machine())
    code = (folder / "mine.py").read_text() + "from osnb.models.heads import Network, head_of\n"
    (folder / "mine.py").write_text(code + HAVING)
    more = "network=mine:net epochs=2 rules=plain" + " plain_epochs=1" * (method == "proser")
    exp = ex.Experiment.named("my.yaml", **how, overrides=more)
    examined.code(exp, ex.Machine())
    parts = exp.parts(ex.Machine())
    network = exp.network(parts)
    exp.fit(network, exp.criterion(parts), parts, folder)
    assert len(exp.scores(network, parts, folder)["scores"]) == len(parts.test.rows)


def test_a_network_without_weights_is_tried_like_any_other(folder):
    fixed = "def f(*, classes): return Fixed(classes)\nclass Fixed(nn.Module):\n"
    fixed += "    def __init__(self, classes):\n        super().__init__()\n"
    fixed += "        self.classes = classes\n    def forward(self, images):\n"
    fixed += "        x = images.flatten(1)\n        return Outputs(x[:, : self.classes], x)\n"
    (folder / "x.py").write_text(HEAD + fixed)
    exp = experiment("network=x:f")
    examined.code(exp, ex.Machine())
    parts = exp.parts(ex.Machine())
    out = train.predict(exp.network(parts), parts.test)
    assert len(out.logits) == len(parts.test.rows)
    exp = ex.Experiment.named("my.yaml", method="vos", size="own", overrides="network=x:f")
    with pytest.raises(ValueError, match="vos needs a head that takes the features: x:f needs"):
        examined.code(exp, ex.Machine())


BAD = {
    "reader: [own": "no valid yaml in line",
    "- a": "needs lines of 'name: value'; it holds a list",
    "epochs:": "epochs is a text or a number; got None",
    "reader: 5": "reader is a name; got 5",
    "protocol: digits": "protocol must be roles_csv in a file of one's own; got 'digits'",
    "protocol: [a]": "protocol is a text or a number",
    "a: &a [1, 1]\nb: [*a, *a]": r"uses \*a, a name for other lines, in line 2",
}


@pytest.mark.parametrize("text", BAD)
def test_a_bad_benchmark_of_ones_own_is_refused_in_a_sentence(text, tmp_path, monkeypatch):
    monkeypatch.setenv("OSNB_OUT", str(tmp_path))
    (tmp_path / "my.yaml").write_text(text)
    with pytest.raises(Refused, match=BAD[text]):
        predicting.of_weights([tmp_path / "w.pt"], tmp_path / "my.yaml", {})


@pytest.mark.parametrize(
    "words", ["known, unknown", "knwon unknown", "known unknown negatives", "known", "''"]
)
def test_tested_roles_that_are_none_are_refused_before_anything_is_trained(folder, words):
    reason = r"tested is known beside unknown or negative or both, with blanks between \(.*\); got "
    reason += words if words == "''" else f"'{words}'"
    with pytest.raises(ValueError, match=reason):
        experiment(f"tested={words!r}" if words != "''" else "tested=''")
    with (folder / "my.yaml").open("a") as file:
        file.write(f"tested: {words}\n")
    with pytest.raises(Refused, match=reason):
        planned(folder)
    with pytest.raises(Refused, match=reason):
        predicting.of_weights([folder / "w.pt"], folder / "my.yaml", {})


def test_tested_roles_come_in_any_order(folder):
    assert experiment("tested='unknown  negative known'").parts(ex.Machine()).test
    # known ones alone, beside images of another set that are all unknown
    assert experiment("tested=known also=gaussian_noise counts=gaussian_noise:8").parts(
        ex.Machine()
    )


@pytest.mark.parametrize("name", ["/tmp/x:f", "../x:f", "a/b:f", "x..y:f", ":f", "x y:f"])
def test_a_module_is_a_name_and_no_path(folder, name):
    (folder.parent / "x.py").write_text("def f(out, labels): ...")
    with pytest.raises(ValueError, match="is no MODULE:NAME"):
        user.file(name)


def test_what_looks_at_a_run_runs_none_of_its_code(folder):
    (folder / "mine.py").write_text("raise SystemExit\n" + SCORE + NETWORK + READER)
    found = experiment("network=mine:net rules=mine:margin").settings
    assert [found[kind]["name"][:5] for kind in ("reader", "network", "rules")] == ["mine:"] * 3
    assert (found["reader"]["test"], found["rules"]["power"]) == (3, 1.0)


def test_a_finished_run_of_ones_own_is_scored_by_a_score_that_came_later(folder):
    run = planned(folder)
    execute(run, through=trained)
    assert osnb("predict", "own", "-p", "rules=mine:margin", "-p", "power=2")[0] == 0
    name = "own-power2.0-rulesmine=3Amargin"
    found = tables.read(run.directory.with_name(name) / "scores.parquet")
    before = tables.read(run.directory / "scores.parquet")
    np.testing.assert_allclose(found["max_logit"], before["max_logit"], atol=1e-5)
    assert (found["margin"] >= 0).all()


TRAINED = """
def trained(*, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, classes))

def broken(*, classes):
    made = trained(classes=classes)
    made.register_forward_hook(lambda *_: {}["x"])
    return made

def of_more(*, classes):
    return nn.Sequential(*trained(classes=classes), nn.Softmax(dim=1), nn.Upsample(classes + 1))
"""


def test_weights_that_are_there_are_scored_on_a_benchmark_file_of_ones_own(folder, monkeypatch):
    monkeypatch.delenv("OSNB_OUT")
    (folder / "my_module.py").write_text(HEAD + TRAINED)
    torch.manual_seed(0)
    layer = torch.nn.Linear(64, 2)
    tensors = {f"1.{name}": value.detach() for name, value in layer.named_parameters()}
    torch.save(tensors, folder / "file.pt")
    save_file(tensors, folder / "file.safetensors")
    pixels = np.load("mine.npz")["pixels"][[0, 1, 2, 20, 21, 22, 40, 41, 42]].reshape(9, 64)
    with torch.no_grad():
        logits = layer(torch.from_numpy(pixels).float() / 255).numpy()
    words = ["predict", "--model", "my_module:trained", "--benchmark", "my.yaml", "--weights"]
    for weights in ("file.pt", "file.safetensors"):
        assert osnb(*words, weights, "-p", "rules=mine:margin", "--force")[0] == 0
        place = folder / "runs" / "21_vaze_train" / "file-rulesmine=3Amargin" / "scores.parquet"
        table = tables.read(place)
        np.testing.assert_allclose(table["max_logit"], logits.max(axis=1), atol=1e-6)
        np.testing.assert_allclose(table["margin"], np.ptp(logits, axis=1), atol=1e-6)
        place.unlink()
    assert not (folder / "figures").exists()
    for name, why in {"broken": "KeyError", "of_more": "", "none": "no function 'none'"}.items():
        code, _, said = osnb(*words[:2], f"my_module:{name}", *words[3:], "file.pt")
        assert (code, why in said, "Traceback" in said) == (2, True, False), said


NORMED = """
def normed(*, classes):
    layers = [nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(144, classes))

def branching(*, classes):
    made = normed(classes=classes)
    made.register_forward_hook(lambda net, _, out: (out, out) if net.training else out)
    return made

def weighed(*, classes):
    import warnings
    made = normed(classes=classes)
    with warnings.catch_warnings(action="ignore"):
        nn.utils.weight_norm(made[0])
    return made
"""


@pytest.mark.parametrize(
    ("name", "members"),
    [("normed", 1), ("normed", 2), *((name, 1) for name in ("branching", "weighed"))],
)
def test_a_network_that_nobody_put_to_rest_is_scored_at_rest(folder, name, members):
    """Also one that gives a pair in training alone, as Inception does, and one not to be copied."""
    (folder / "normed.py").write_text(HEAD + NORMED)
    network = user.load(f"normed:{name}")(classes=2)
    torch.nn.init.uniform_(network[1].running_mean, -0.2, 0.2)
    state = {key: value.clone() for key, value in network.eval().state_dict().items()}
    torch.save(state, folder / "normed.pt")
    exp = experiment()
    if members > 1:
        exp = ex.Experiment.named("my.yaml", method="ensemble", size="own", overrides="members=2")
    parts, files = exp.parts(ex.Machine()), [folder / "normed.pt"] * members
    with torch.no_grad():
        logits = torch.cat([network(images) for images, _ in parts.test(0)]).numpy()
    for _ in range(2):
        made = predicted.loaded(exp, parts, files, model=f"normed:{name}")
        for one, still in zip(*map(predicted.members, (made.network, made.still)), strict=True):
            after = one.network.state_dict()
            assert all(torch.equal(state[key], after[key]) for key in state)
            np.testing.assert_allclose(train.predict(one, parts.test).logits, logits, atol=1e-6)
            np.testing.assert_allclose(train.predict(still, parts.test).logits, logits, atol=1e-5)


def test_several_files_of_weights_are_an_ensemble(folder, monkeypatch):
    """Kim et al. 2021 score the mean of the softmax of trained networks as one (Sec. 4.1)."""
    monkeypatch.delenv("OSNB_OUT")
    (folder / "my_module.py").write_text(HEAD + TRAINED)
    pixels = np.load("mine.npz")["pixels"][[0, 1, 2, 20, 21, 22, 40, 41, 42]].reshape(9, 64)
    images, probabilities = torch.from_numpy(pixels).double() / 255, []
    words = ["predict", "--model", "my_module:trained", "--benchmark", "my.yaml"]
    for seed in range(3):
        torch.manual_seed(seed)
        layer = torch.nn.Linear(64, 2)
        torch.save({f"1.{k}": v for k, v in layer.state_dict().items()}, folder / f"one{seed}.pt")
        probabilities.append(layer.double()(images).softmax(1).detach().numpy())
        words += ["--weights", f"one{seed}.pt"]
    code, _, why = osnb(*words)
    assert code == 0, why
    table = tables.read(folder / "runs" / "21_vaze_train" / "one0" / "scores.parquet")
    mean = np.mean(probabilities, axis=0)
    assert (table["pred"].to_numpy() == mean.argmax(axis=1)).all()
    largest = mean.max(axis=1)
    log_odds = np.log(largest / (1 - largest))
    np.testing.assert_allclose(table["max_softmax_log_odds"], log_odds, atol=1e-5)
    code, _, why = osnb(*words, "-p", "method=softmax", "-p", "overrides=")
    assert (code, "need 1 files of weights; got 3" in why) == (2, True), why


def test_each_template_is_a_function_with_a_test_that_passes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kinds = ("loss", "score", "reader")
    for kind in kinds:
        name = f"my_{kind}"
        assert osnb("new", kind, name) == (0, f"{name}.py\ntest_{name}.py\n", "")
        assert len((tmp_path / f"{name}.py").read_text().splitlines()) <= 30
        wrong = dict.fromkeys(("lambda", "my-own"), "name of a Python function")
        wrong |= {"torch": "a module torch is installed", name: f"{name}.py is there already"}
        for word, reason in wrong.items():
            code, _, said = osnb("new", kind, word)
            assert (code, reason in said) == (2, True), said
    words = [sys.executable, "-m", "pytest", "-q", "-rp", "-p", "no:cacheprovider"]
    passed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert all(f"PASSED test_my_{kind}.py::" in passed for kind in kinds)
