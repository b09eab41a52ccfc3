"""Our step and our prediction beside the plain float32 loop, on one machine."""

import datetime
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from tests.benchmarks.stopwatch import Clock, interleaved, machine, versions

CLASSES = 20


class Case(NamedTuple):
    """A network of the papers, with the batch and the image that it is trained on."""

    batch: int
    pixels: int
    tested: int  # images per prediction


CASES = {"vgg32": Case(128, 32, 512), "resnet50": Case(16, 224, 32)}
ON_GPU = {"vgg32": Case(128, 32, 4096), "resnet50": Case(256, 224, 1024)}
STEPS = 100  # between two looks at the clock, where nothing waits for a step


def compare(*, rounds: int = 3, clock: Clock = time.perf_counter, cases=None) -> dict:
    """Time a training step and a prediction, plain and ours, side by side.

    Plain is float32 with the channels first, one step after another, each waiting for its loss, as
    the authors' loops do. Ours is the step of `train.fit` and `train.predict`, in bfloat16.

    Args:
        rounds: how often each is timed, in turns; a first call of each is not timed.
        clock: gives seconds.
        cases: the networks; by default those for a CPU or, with larger batches, for a GPU.

    Returns:
        The settings, the machine, the device, ratios (plain by ours: medians of the rounds'), and
        `lines` of network, what, plain and ours (images per second), ratio, and for a prediction
        the number of distinct scores and the AUROC of either. Of what `fold`, plain is
        `train.predict` in float32, and ours the same of a copy with its norms folded. On a GPU
        also of what `graph`, where images lie there and nothing waits: ours is an epoch of `fit`
        captured, plain the same kernel by kernel; and of what `timm`: plain is the step of timm's
        training script, in bfloat16 and channels last.
    """
    from osnb import train

    lines = []
    cuda = train.device().type == "cuda"
    for name, case in (cases or (ON_GPU if cuda else CASES)).items():
        calls, images = _calls(name, case, train.device()), case.batch
        lines.append(_line(name, "step", calls, images, rounds, clock))
        if cuda:
            plain, captured, timm = (_steps(name, case, how) for how in ("plain", "graph", "timm"))
            both = {"graph": {"plain": plain, "ours": captured}}
            both |= {"timm": {"plain": timm, "ours": captured}} if name == "resnet50" else {}
            lines += [_line(name, k, v, images * STEPS, rounds, clock) for k, v in both.items()]
        calls, scores = _predictions(name, case, train.device())
        line = _line(name, "predict", calls, case.tested, rounds, clock)
        lines.append(line | _ties({kind: score() for kind, score in scores.items()}))
        calls = _folded(name, case, train.device())
        lines.append(_line(name, "fold", calls, case.tested, rounds, clock))
    ratios = {_key(line): line["ratio"] for line in lines}
    settings = {"rounds": rounds, "date": f"{datetime.date.today()}", "device": _device()}
    return settings | machine() | {"versions": versions([]), "ratios": ratios, "lines": lines}


def _key(line: Mapping) -> str:
    return line["network"] + f" {line['what']}" * (line["what"] != "step")


def _line(
    name: str, what: str, calls: Mapping[str, Callable], images: int, rounds: int, clock: Clock
) -> dict:
    for call in calls.values():
        call()
    seconds = interleaved(calls, repeats=rounds, clock=clock)
    ratio = median(a / b for a, b in zip(seconds["plain"], seconds["ours"], strict=True))
    speed = {kind: images / median(found) for kind, found in seconds.items()}
    return {"network": name, "what": what, "images": images} | speed | {"ratio": ratio}


def _calls(name: str, case: Case, device) -> dict[str, Callable]:
    """One training step, plain and ours, on the same images from memory."""
    import torch

    from osnb import losses
    from osnb.base.outputs import Outputs
    from osnb.train import constant
    from osnb.train.loop import Run

    images, labels = _images(case.batch, case.pixels), torch.arange(case.batch) % CLASSES
    plain, ours = (_network(name, device) for _ in range(2))
    optimizer = _optimizer(plain)

    def plain_step():
        out = plain(images.to(device))
        loss = torch.nn.functional.cross_entropy(out.logits, labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    def softmax(out: Outputs, labels):
        return losses.softmax(out, labels)

    how = {"optimizer": _optimizer(ours), "schedule": constant, "validate": None, "seed": 0}
    how |= {"directory": Path(), "precision": "bfloat16", "epochs": 1, "every": np.inf}
    run = Run(model=ours, loss=softmax, batches=[None], **how)
    ours.train().to(memory_format=torch.channels_last)

    def our_step():
        run.step = 0
        run.train_on(images, labels, 1)
        _wait(device)

    return {"plain": plain_step, "ours": our_step}


class Same(NamedTuple):
    """Training batches that are one and the same."""

    images: Any
    labels: Any

    def __len__(self):
        return STEPS

    def __call__(self, _epoch, start):
        return iter([tuple(self)] * (STEPS - start))


def _steps(name: str, case: Case, how: str) -> Callable:
    """`STEPS` steps in a row on images that lie on the GPU, after which it is waited for."""
    import torch

    from osnb import losses, train

    images = _images(case.batch, case.pixels).cuda().contiguous(memory_format=torch.channels_last)
    labels = (torch.arange(case.batch) % CLASSES).cuda()
    if how == "timm":
        return _timm(name, images, labels)
    network = _network(name, torch.device("cuda"))
    settings = {"epochs": 1, "schedule": train.constant, "seed": 0, "precision": "bfloat16"}
    settings |= {"validate": lambda _: {}, "captured": how == "graph"}

    def epoch():
        with TemporaryDirectory() as folder:
            own = {"optimizer": _optimizer(network), "directory": folder}
            train.fit(network, losses.softmax, Same(images, labels), **own, **settings)
        torch.cuda.synchronize()

    return epoch


def _timm(name: str, images, labels) -> Callable:
    import timm
    import torch
    from timm.optim import create_optimizer_v2

    network = timm.create_model(name, num_classes=CLASSES).cuda().train()
    network.to(memory_format=torch.channels_last)
    optimizer = create_optimizer_v2(network, opt="sgd", lr=0.01, momentum=0.9)

    def steps():
        for _ in range(STEPS):
            with torch.autocast("cuda", torch.bfloat16):
                loss = torch.nn.functional.cross_entropy(network(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.cuda.synchronize()

    return steps


def _predictions(name: str, case: Case, device) -> tuple[dict[str, Callable], dict]:
    """The prediction of some batches, plain and ours; what scores each of their images gets."""
    import torch

    from osnb import scores, train
    from osnb.base.outputs import Outputs

    images = _images(case.tested, case.pixels)
    network = _network(name, device).eval()
    ours = _network(name, device)

    def batches(_):
        return [(part, None) for part in images.split(case.batch)]

    @torch.inference_mode()
    def plain():
        found = [network(part.to(device)).logits.cpu().numpy() for part, _ in batches(0)]
        return np.concatenate(found)

    def low():
        return train.predict(ours, batches, precision="bfloat16").logits

    def scored(logits):
        return scores.max_softmax_log_odds(Outputs(logits, ()), known=CLASSES)

    calls = {"plain": plain, "ours": low}
    return calls, {kind: lambda call=call: scored(call()) for kind, call in calls.items()}


def _folded(name: str, case: Case, device) -> dict[str, Callable]:
    """`train.predict` in float32 with the norms as layers, and folded, as `osnb predict` has it."""
    from osnb import models, train

    network = _network(name, device)
    parts = [(part, None) for part in _images(case.tested, case.pixels).split(case.batch)]
    both = {"plain": network, "ours": models.folded(network)}
    return {
        kind: lambda each=each: train.predict(each, lambda _: parts) for kind, each in both.items()
    }


def _ties(found: Mapping[str, np.ndarray]) -> dict:
    """Distinct scores of either kind, and how well they tell the two kinds of image apart."""
    from osnb import metrics

    half = len(found["plain"]) // 2
    return {
        "distinct": {kind: len(np.unique(values)) for kind, values in found.items()},
        "auroc": {kind: metrics.auroc(v[:half], v[half:]) for kind, v in found.items()},
    }


def _images(count: int, pixels: int):
    """Noise of some contrast, which is larger on average in the second half of the images."""
    import torch

    draw = torch.Generator().manual_seed(0)
    contrast = (
        torch.rand(count, 1, 1, 1, generator=draw)
        + 0.5 * (torch.arange(count) >= count // 2)[:, None, None, None]
    )
    return torch.rand(count, 3, pixels, pixels, generator=draw) * contrast


def _network(name: str, device):
    import torch

    from osnb import models

    torch.manual_seed(0)
    return models.MODELS.bind(name, classes=CLASSES, features=128)().to(device).train()


def _optimizer(network):
    import torch

    return torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)


def _wait(device) -> None:
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize()


def _device() -> str:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU; GPU: not measured"


def show(report: Mapping) -> list:
    """What rich prints for a report of `compare`."""
    from rich.table import Column, Table

    heads = ["plain", "ours", "ratio", "scores", "distinct", "", "AUROC", ""]
    columns = [Column(name, justify="right", no_wrap=True) for name in heads]
    table = Table("network", "what", *columns, box=None, padding=(0, 1, 0, 0))
    for line in report["lines"]:
        cells = [*(f"{line[kind]:,.1f}" for kind in ("plain", "ours")), f"{line['ratio']:.2f}"]
        if "auroc" in line:
            cells += [f"{line['images']}", *(f"{n}" for n in line["distinct"].values())]
            cells += [f"{area:.4f}" for area in line["auroc"].values()]
        table.add_row(line["network"], line["what"], *cells)
    tools = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    return [
        table,
        "images/s. plain: float32, channels first, waiting for every loss; ours: the step of",
        "train.fit, and train.predict, in bfloat16. Distinct scores and AUROC: plain, then ours.",
        "fold: train.predict in float32, and with batch norm in the convolutions.",
        f"Medians of {report['rounds']} rounds in turns; --rounds for more.",
        f"{report['cpu']}, {report['cores']} cores, {report['gib']} GiB, threads "
        f"{report['threads']}; {report['device']}; {tools}; {report['date']}",
    ]
