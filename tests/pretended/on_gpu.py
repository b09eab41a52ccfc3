"""What a GPU asks of the code, on a pretended one. `tests/test_gpu.py` runs it in a process of its
own, since torch must find the GPU when it is imported."""

import json
from contextlib import nullcontext

import numpy as np
import pytest
import torch
import yaml
from IPython.core.interactiveshell import InteractiveShell

from osnb import models, train
from osnb.base import workbook
from osnb.experiment import Experiment, Machine, examined, rehearsal
from osnb.train import loop
from tests.pretended import gpu

FEW = f"{rehearsal.MINI} schedule=constant augmentation=none rules=plain"
RESIDENT = Machine.of("resident=true")


def test_it_refuses_what_a_gpu_refuses():
    with gpu():
        there = torch.ones(2).to("cuda")
        assert there.is_cuda
        assert (there * 2).sum().item() == 4
        for wrong in (lambda: there + torch.ones(2), lambda: torch.nn.Linear(2, 2)(there)):
            with pytest.raises(RuntimeError, match="on cuda:0 and cpu"):
                wrong()
        with pytest.raises(TypeError, match="can't convert cuda"):
            there.numpy()


@pytest.mark.parametrize("name", rehearsal.REHEARSALS["method"])
def test_a_method_trains_and_scores_there_as_on_the_cpu(name, monkeypatch):
    rehearse = rehearsal.REHEARSALS["method"][name]
    expected = rehearse()
    monkeypatch.setattr(rehearsal, "Machine", lambda: RESIDENT)
    with gpu():
        found = rehearse()
    for key, value in expected.items():
        if isinstance(value, str) or value.dtype.kind != "f":
            assert np.array_equal(found[key], value), key
        else:
            np.testing.assert_allclose(found[key], value, rtol=1e-4, atol=1e-5, err_msg=key)


@pytest.mark.parametrize("name", ["fitted", "chosen", "latent"])
def test_rules_are_fitted_there_as_on_the_cpu(name):
    expected = rehearsal.rules(name)
    with gpu():
        found = rehearsal.rules(name)
    for key, value in expected.items():
        if not isinstance(value, str):
            np.testing.assert_allclose(found[key], value, rtol=1e-3, atol=1e-4, err_msg=key)


def test_images_that_lie_there_have_the_digests_of_those_on_the_cpu():
    exp = Experiment.named("cifar10", method="softmax", overrides=FEW)
    on_cpu = exp.parts(Machine())
    with gpu():
        parts = exp.parts(RESIDENT)
        assert parts.images.read(np.arange(2)).is_cuda
        assert parts.inputs == on_cpu.inputs
        assert examined._digests(parts)[0].equals(examined._digests(on_cpu)[0])


def test_batches_are_made_in_threads_unless_images_lie_there_and_are_pinned_on_a_gpu_alone():
    exp = Experiment.named("cifar10", method="softmax", overrides=FEW)
    for machine, threads in (("workers=2", 2), ("workers=2 resident=true", 0)):
        assert not exp.parts(Machine.of(machine)).test.pinned
        with gpu():
            parts = exp.parts(Machine.of(machine))
        assert parts.test.pinned
        assert {x.threads for x in (parts.test, *parts.train)} == {threads}


def test_predictions_have_all_bits_there_and_odin_takes_few_images_at_once():
    sizes, bits, switch = [], [], torch.backends.cudnn.conv
    network = models.MODELS.bind("conv", classes=3, channels=1, features=4, width=2)()

    def noted(_, images):
        bits.append(switch.fp32_precision)
        sizes.append(len(images[0]))

    network.register_forward_pre_hook(noted)
    batch = torch.rand(100, 1, 32, 32)
    usual = switch.fp32_precision
    assert usual != "ieee"
    for where in (nullcontext(), gpu()):
        with where:
            network.to(train.device())
            train.odin(network, lambda _: [(batch, None)], temperature=10.0, epsilon=0.1)
    assert sizes == [100, 100, 64, 64, 36, 36]
    assert bits == [usual] * 2 + ["ieee"] * 4
    assert switch.fp32_precision == usual


def trained(folder, where, *, stop=0, step=0):
    """Scores of a training of two epochs with AdamW; interrupted after an epoch, or a step."""
    exp = Experiment.named("p2", method="softmax", overrides=f"{FEW} optimizer=adam fused=false")
    with gpu() if where == "gpu" else nullcontext(), pytest.MonkeyPatch.context() as patch:
        parts = exp.parts(Machine())
        model = exp.network(parts)
        train_on = loop.Run.train_on

        def interrupted(run, *batch):
            train_on(run, *batch)
            if len(run.history) == stop and run.step == step:
                run.keep()
                raise KeyboardInterrupt

        if step:
            patch.setattr(loop.Run, "train_on", interrupted)
        exp.fit(model, exp.criterion(parts), parts, folder)
        return exp.scores(model, parts, folder)["scores"]


@pytest.mark.parametrize(("first", "then"), [("gpu", "gpu"), ("gpu", "cpu"), ("cpu", "gpu")])
@pytest.mark.parametrize("stop", [0, 1])
def test_a_training_goes_on_where_it_did_not_begin(tmp_path, first, then, stop):
    expected = trained(tmp_path / "whole", "cpu")
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "twice", first, stop=stop, step=1)
    found = trained(tmp_path / "twice", then)
    for name in ("max_softmax", "max_logit"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-4)


@pytest.mark.parametrize("name", ["00_why/mini", "31_kim_train/mini_baseline"])
def test_a_notebook_runs_to_its_end_there(name, tmp_path, monkeypatch):
    notebook = name.split("/")[0]
    given = yaml.safe_load((workbook.root() / "params" / f"{name}.yaml").read_text()) or {}
    if notebook.endswith("_train"):
        given |= {"overrides": FEW, "machine": "resident=true"}
    monkeypatch.chdir(workbook.root() / "notebooks")
    monkeypatch.setenv("OSNB_OUT", str(tmp_path))
    shell = InteractiveShell.instance()
    cells = json.loads((workbook.root() / "notebooks" / f"{notebook}.ipynb").read_text())["cells"]
    with gpu():
        for cell in (cell for cell in cells if cell["cell_type"] == "code"):
            lines = ["".join(cell["source"])]
            if "parameters" in cell["metadata"].get("tags", ()):
                lines += [f"{key} = {value!r}" for key, value in given.items()]
            shell.run_cell("\n".join(lines)).raise_error()
