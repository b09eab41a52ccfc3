"""A step as one CUDA graph: what a CPU can show of it, and on a GPU that no number changes."""

import math
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from trained import Shuffled

from osnb import losses, models, train
from osnb.train import graph
from osnb.train.loop import Run

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
FULL, LAST = torch.zeros(4, 3, 8, 8), torch.zeros(2, 3, 8, 8)


class Recorder:
    """A graph of one call, which a replay carries out with what lies in its buffers by then."""

    def __init__(self):
        self.recording, self.told = False, []

    def step(self, images, labels, share):
        if self.recording:
            self.captured = images, labels, share
            return labels.new_zeros(len(labels))
        self.told.append(("step", len(images), labels.sum().item(), share))
        return labels * 1

    def replay(self):
        images, labels, share = self.captured
        self.told.append(("replay", len(images), labels.sum().item(), share))

    def record(self, *_, **how):
        assert how["capture_error_mode"] == "thread_local"
        recorder = self

        class Recording(nullcontext):
            def __enter__(self):
                recorder.recording = True

            def __exit__(self, *_):
                recorder.recording = False

        return Recording()


@pytest.fixture
def recorder(monkeypatch):
    recorder = Recorder()
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: recorder)
    monkeypatch.setattr(torch.cuda, "graph", recorder.record)
    monkeypatch.setattr(torch.cuda, "current_stream", SimpleNamespace)
    return recorder


def test_full_batches_are_replayed_after_a_few_steps_and_others_never(recorder):
    captured = graph.Graph(recorder.step)
    for i, images in enumerate([FULL, LAST, FULL, FULL, LAST, FULL, FULL]):
        captured(images, torch.full((len(images),), i), 1 / len(images))
    assert recorder.told == [
        ("step", 4, 0, 1 / 4),
        ("step", 2, 2, 1 / 2),
        ("step", 4, 8, 1 / 4),
        ("replay", 4, 12, 1 / 4),
        ("step", 2, 8, 1 / 2),
        ("replay", 4, 20, 1 / 4),
        ("replay", 4, 24, 1 / 4),
    ]


def test_a_replay_reads_the_images_that_it_is_given(recorder):
    captured = graph.Graph(recorder.step)
    for i in range(6):
        captured(FULL + i, torch.zeros(4, dtype=torch.int64), 1.0)
    images, _, _ = recorder.captured
    assert images.is_contiguous(memory_format=torch.channels_last)
    assert (images == 5).all()


@pytest.mark.parametrize("captured", [True, False])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_an_optimizer_is_as_it_was_once_its_rate_is_no_tensor_any_more(kind, captured):
    layer = torch.nn.Linear(3, 2)
    optimizer = kind(layer.parameters(), lr=0.5)
    before = {k: v for k, v in optimizer.param_groups[0].items() if k != "params"}
    with graph.fused(optimizer, captured=captured):
        (group,) = optimizer.param_groups
        assert group.get("capturable", captured) == captured  # torch warns of it outside a graph
        assert isinstance(group["lr"], torch.Tensor)
        assert group["fused"]
        group["lr"].fill_(0.25)
        layer(torch.ones(1, 3)).sum().backward()
        expected = layer.bias.detach() - 0.25 * layer.bias.grad
        if kind is torch.optim.SGD:
            optimizer.step()
            torch.testing.assert_close(layer.bias.detach(), expected)
    after = {k: v for k, v in optimizer.param_groups[0].items() if k != "params"}
    assert after == before | {"lr": 0.25}


def trained(directory, *, captured, stop=math.inf):
    """Weights after three epochs of ten batches on a GPU, the last of which is short."""
    torch.manual_seed(0)
    network = models.MODELS.bind("vgg32", classes=4, features=8)().to("cuda")
    draw = torch.Generator().manual_seed(0)
    images, labels = torch.rand(75, 3, 32, 32, generator=draw), torch.arange(75) % 4
    batches = Shuffled(images.to("cuda"), labels, 8, stop=stop)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    how = {"epochs": 3, "schedule": train.cosine, "validate": lambda _: {}, "seed": 1}
    how |= {"directory": directory, "captured": captured, "every": 0.0, "precision": "bfloat16"}
    history = train.fit(network, losses.softmax, batches, optimizer=optimizer, **how)
    assert np.isfinite(history["loss"]).all()
    return list(network.state_dict().values())


@gpu
def test_a_captured_training_ends_with_the_weights_of_one_that_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    replays = []
    replay = torch.cuda.CUDAGraph.replay
    monkeypatch.setattr(
        torch.cuda.CUDAGraph, "replay", lambda self: (replays.append(1), replay(self))
    )
    plain = trained(tmp_path / "plain", captured=False)
    assert not replays
    whole = trained(tmp_path / "whole", captured=True)
    assert len(replays) == 3 * 9 - graph.EAGER
    assert all(torch.equal(*pair) for pair in zip(plain, whole, strict=True))


@gpu
def test_a_captured_training_that_was_stopped_ends_as_one_that_was_not(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    whole = trained(tmp_path / "whole", captured=True)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "twice", captured=True, stop=16)
    again = trained(tmp_path / "twice", captured=True)
    assert all(torch.equal(*pair) for pair in zip(whole, again, strict=True))


@pytest.mark.parametrize("captured", [True, False])
def test_a_step_is_told_to_be_capturable_where_it_is_captured(captured, monkeypatch):
    monkeypatch.setattr(graph, "alone", nullcontext)
    run = object.__new__(Run)
    run.where, run.captured = SimpleNamespace(type="cuda"), captured
    run.optimizer = torch.optim.AdamW(torch.nn.Linear(3, 2).parameters())
    with run._on_gpu():
        assert run.optimizer.param_groups[0]["capturable"] == captured


def test_only_a_step_that_is_a_loss_alone_is_captured_and_on_a_cpu_none(monkeypatch):
    class More(Run):
        def values(self, images, labels):
            return super().values(images, labels) * 2

    made = []
    monkeypatch.setattr(graph, "Graph", lambda step: made.append(step) or step)
    monkeypatch.setattr(graph, "alone", nullcontext)
    for kind, where, captures in ((Run, "cuda", 1), (More, "cuda", 0), (Run, "cpu", 0)):
        network = torch.nn.Linear(3, 2)
        run = object.__new__(kind)
        run.where, run.captured = SimpleNamespace(type=where), True
        run.optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        made.clear()
        with run._on_gpu():
            assert isinstance(run.optimizer.param_groups[0]["lr"], torch.Tensor) == captures
        assert len(made) == captures
