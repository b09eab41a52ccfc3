"""Two processes that share batches, beside one process that takes the same two halves."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import cloudpickle
import numpy as np
import pandas as pd
import psutil
import pytest
import torch
from trained import Shuffled, weights

from osnb import losses, models, train
from osnb.base import workbook
from osnb.losses import class_weights
from osnb.train import checkpoint, loop, ranks

pytestmark = pytest.mark.slow
for module in (sys.modules[__name__], sys.modules[Shuffled.__module__]):
    cloudpickle.register_pickle_by_value(module)  # as a notebook's functions are

IMAGES = torch.rand(50, 3, 16, 16, generator=torch.Generator().manual_seed(1))
LABELS = torch.randint(-1, 3, (50,), generator=torch.Generator().manual_seed(2))
WEIGHTS = class_weights(LABELS, classes=4)
ENTROPIC = losses.LOSSES.bind("entropic", weight=1.0)
BACKGROUND = losses.LOSSES.bind("background", weights=WEIGHTS, division="weights")


def batches(count=50):
    """Four batches, the last of 2, or of 1 where `count` is 49."""
    return Shuffled(IMAGES[:count], LABELS[:count], 16)


def mlp():
    torch.manual_seed(3)
    return models.mlp(classes=4, features=8, channels=3, size=16)


def conv():
    torch.manual_seed(3)
    return models.conv(classes=4, features=8, width=4)


def size(model):
    return {"size": sum(float(p.detach().abs().sum()) for p in model.parameters())}


def fit(model, directory, *, loss=ENTROPIC, count=50, **changes):
    settings = {
        "epochs": 3,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        "schedule": train.cosine,
        "validate": size,
        "directory": directory,
        "seed": 5,
    }
    return train.fit(model, loss, batches(count), **(settings | changes))


def drawing(out, labels):
    """The entropic loss, weighted by what Python and numpy draw, as a loss of one's own may be."""
    return ENTROPIC(out, labels) * (1 + random.random() + np.random.random())  # noqa: NPY002


LOSSES = {"entropic": ENTROPIC, "weighted background": BACKGROUND}
TRAININGS = {f"{x} {n}": (mlp, {"loss": LOSSES[x], "count": n}) for x in LOSSES for n in (49, 50)}
TRAININGS |= {"conv": (conv, {}), "longer": (conv, {"epochs": 6})}
TRAININGS |= {f"drawing {i}": (mlp, {"loss": drawing, "epochs": 1}) for i in (1, 2)}


def train_all(folder):
    fit(mlp(), folder / "seen", loss=partial(looking, folder=folder), epochs=1, devices=2)
    for name, (network, settings) in TRAININGS.items():
        fit(network(), folder / name, devices=2, **settings)


@pytest.fixture(scope="module")
def by_two(tmp_path_factory):
    """Of `TRAININGS` network, history and checkpoint that two processes keep; what was `seen`."""
    folder = tmp_path_factory.mktemp("by_two")
    ranks.launch(partial(train_all, folder), 2, folder, heard=lambda _: None)
    assert not [*folder.rglob(".*")]
    kept = {"seen": json.loads((folder / "seen.json").read_text())}
    for name, (network, _) in TRAININGS.items():
        state, model = checkpoint.newest(folder / name), network()
        model.load_state_dict(state["model"])
        kept[name] = model, pd.read_parquet(folder / name / "history.parquet"), state
    return kept


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("count", [50, 49])
def test_without_batch_norm_two_processes_train_as_one_does(tmp_path, by_two, loss, count):
    one, (two, shared, _) = mlp(), by_two[f"{loss} {count}"]
    plain = fit(one, tmp_path, loss=LOSSES[loss], count=count)
    np.testing.assert_allclose(shared["loss"], plain["loss"], rtol=1e-5)
    np.testing.assert_allclose(shared["size"], plain["size"], rtol=1e-5)
    torch.testing.assert_close(weights(two), weights(one), rtol=1e-4, atol=1e-6)


def test_with_batch_norm_they_train_as_one_that_takes_two_halves(by_two):
    other, (model, shared, _) = conv(), by_two["conv"]
    optimizer, means = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.9), []
    for epoch in (1, 2, 3):
        total = 0.0
        for step, (images, labels) in enumerate(batches()(epoch)):
            optimizer.param_groups[0]["lr"] = 0.1 * train.cosine((epoch - 1 + step / 4) / 3)
            optimizer.zero_grad()
            for rows in torch.arange(len(labels)).tensor_split(2):
                value = ENTROPIC(other(images[rows]), labels[rows]).sum()
                (value / len(labels)).backward()
                total += value.item()
            optimizer.step()
        means.append(total / 50)
    np.testing.assert_allclose(shared["loss"], means, rtol=1e-4)
    torch.testing.assert_close(weights(model), weights(other), rtol=1e-3, atol=1e-5)


def dying(out, labels, *, marker, when):
    """The entropic loss; once, in process 1, the process is killed in its `when`th batch."""
    dying.calls = getattr(dying, "calls", 0) + 1
    if ranks.number() == 1 and dying.calls == when and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return ENTROPIC(out, labels)


def test_a_killed_process_is_started_again_and_the_run_ends_as_it_would_have(tmp_path, by_two):
    model, (straight, plain, _) = conv(), by_two["conv"]
    loss = partial(dying, marker=tmp_path / "killed", when=7)
    history = fit(model, tmp_path, loss=loss, devices=2)
    assert not [*tmp_path.glob(".*")]
    assert (tmp_path / "killed").exists()
    assert torch.equal(weights(model), weights(straight))
    assert history["loss"].tolist() == plain["loss"].tolist()


def test_what_libraries_draw_in_several_processes_follows_from_the_seed(by_two):
    (_, first, state), (_, second, other) = by_two["drawing 1"], by_two["drawing 2"]
    pd.testing.assert_frame_equal(first, second, check_exact=True)
    states = [[each["numpy"] for each in x["random"]] for x in (state, other)]
    assert states[0] == states[1]
    assert states[0][0] != states[0][1]


def test_a_training_on_more_or_fewer_devices_starts_anew(tmp_path, capsys, monkeypatch):
    """Of more, process 1 would have no random state to go on from."""
    monkeypatch.setattr(ranks, "launch", lambda train, *_, **__: train())  # here: who asks decides
    fit(mlp(), tmp_path, epochs=1)
    for devices in (2, 1):
        history = fit(mlp(), tmp_path, devices=devices, epochs=1)
        assert "starts anew, with devices not as in" in capsys.readouterr().out
        assert len(history) == 1


def failing(out, labels):
    raise ValueError("a loss that does not work")


@pytest.mark.parametrize(("given", "seen"), [(None, "1"), ("GPU-a,GPU-b", "GPU-b"), ("3", "")])
def test_each_process_sees_one_gpu(given, seen, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if given:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    monkeypatch.setattr(ranks.subprocess, "Popen", lambda *_, env, **__: env)
    assert ranks._worker(1, 2, "store", 1)["CUDA_VISIBLE_DEVICES"] == seen


def test_more_processes_than_there_are_gpus_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "device", lambda *_: torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ValueError, match="need devices from 1 to 1, the GPUs here; got devices=2"):
        fit(mlp(), tmp_path, devices=2)
    assert not [*tmp_path.iterdir()]


class Begun(Exception):
    """Raised at the first that a process does once it knows which it is."""


def test_each_process_asks_for_its_own_part_of_a_batch(tmp_path, monkeypatch):
    def begun(_):
        raise Begun

    of = batches()
    of.part = None
    monkeypatch.setattr(sys.modules[__name__], "batches", lambda _: of)
    monkeypatch.setattr(ranks, "count", lambda: 2)
    monkeypatch.setattr(ranks, "number", lambda: 1)
    monkeypatch.setattr(workbook, "seed_all", begun)
    with pytest.raises(Begun):
        fit(mlp(), tmp_path)
    assert of.part == (1, 2)


def test_processes_that_fail_say_why(tmp_path, monkeypatch):
    monkeypatch.setattr(ranks, "RESTARTS", 0)
    with pytest.raises(RuntimeError, match=r"(?s)2 processes failed 1 times.*ValueError: a loss"):
        fit(mlp(), tmp_path, loss=failing, devices=2)


def looking(out, labels, *, folder):
    """The entropic loss; process 0 notes what an outsider could find of the processes."""
    file = folder / "seen.json"
    if ranks.number() == 0 and not file.exists():
        family = [psutil.Process().parent(), *psutil.Process().parent().children()]
        sockets = [x for each in family for x in each.net_connections() if x.status == "LISTEN"]
        (met,) = folder.glob(".ranks-*")
        hosts = sorted({x.laddr.ip for x in sockets})
        file.write_text(json.dumps({"hosts": hosts, "mode": met.stat().st_mode & 0o777}))
    return ENTROPIC(out, labels)


def test_processes_meet_where_nobody_else_comes_and_unpickle_nothing(by_two):
    assert by_two["seen"] == {"hosts": ["127.0.0.1"], "mode": 0o700}


OWNER = """
import sys, time, torch
sys.path.insert(0, {tests!r})
import test_ranks
from pathlib import Path
test_ranks.fit(test_ranks.mlp(), Path({folder!r}), loss=test_ranks.slow, devices=2, epochs=10_000)
"""


def test_after_a_kill_no_process_goes_on(tmp_path):
    code = OWNER.format(tests=str(Path(__file__).parent), folder=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as owner:
        until(lambda: (tmp_path / "history.parquet").is_file())
        first = psutil.Process(owner.pid).children()
        assert len(first) == 2
        first[1].kill()
        until(lambda: not any(map(psutil.Process.is_running, first)))
        until(lambda: len(psutil.Process(owner.pid).children()) == 2)
        last = psutil.Process(owner.pid).children()
        owner.kill()
    assert psutil.wait_procs(last, timeout=600)[1] == []


def until(there, seconds=600):
    """Wait for something, which takes a minute on a busy machine."""
    late = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < late
        time.sleep(0.05)


def slow(out, labels):
    time.sleep(0.05)
    return ENTROPIC(out, labels)


def waiting(out, labels, *, folder):
    """The entropic loss; behind the first epoch it takes its time until somebody writes go.txt."""
    if (folder / "history.parquet").is_file() and not (folder / "go.txt").is_file():
        time.sleep(2)
    return ENTROPIC(out, labels)


def test_an_interrupt_stops_all_at_one_step_and_the_run_goes_on_from_there(
    tmp_path, by_two, capsys
):
    model, (straight, plain, _) = conv(), by_two["longer"]
    history, loss = tmp_path / "history.parquet", partial(waiting, folder=tmp_path)

    def interrupt():
        while not history.is_file():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        fit(conv(), tmp_path, loss=loss, devices=2, epochs=6)
    kept = len(pd.read_parquet(history))
    assert 1 <= kept < 6
    (tmp_path / "go.txt").touch()
    again = fit(model, tmp_path, loss=loss, devices=2, epochs=6)
    assert "starts anew" not in capsys.readouterr().out
    assert torch.equal(weights(model), weights(straight))
    assert again["loss"].tolist() == plain["loss"].tolist()
