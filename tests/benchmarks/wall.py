"""What trainings of the papers' length cost: operations, and hours worked out of them.

Nothing is timed. Operations are counted by torch on one image; how many a machine does in a second
is given, from a step that was timed (`train`) or from what somebody claims of a GPU.
"""

import json
from collections.abc import Mapping
from typing import NamedTuple

from osnb.base import workbook
from osnb.experiment import Experiment

BACK = 3  # a training step is about three forward passes (Kaplan et al. 2020, Sec. 2.1)
OURS = 745  # images/s, a VGG32's step at 32 px on two cores: osnb/docs/performance.md
FAIR = 60  # seconds for 600 epochs of it on one H200, a step captured as one graph: not measured


class Case(NamedTuple):
    """A training of a paper: images of an epoch, their edge, known classes, how many trainings."""

    benchmark: str
    images: int
    pixels: int
    classes: int
    trainings: int
    regime: str = "strong"
    method: str = "softmax"


CASES = (  # images: classes by images of each, as the data sets' own papers say; less validation
    Case("cifar10", 6 * 5000, 32, 6, 5),
    Case("cifar10", 6 * 5000, 32, 6, 5, "baseline"),
    Case("cifar_plus_10", 4 * 5000, 32, 4, 5),
    Case("mnist", 6 * 6000, 32, 6, 5),
    Case("tinyimagenet", 20 * 500, 64, 20, 5),
    Case("cifar40", 40 * 500 - 2000, 32, 40, 5, "baseline"),
)


def operations(network: str, how: Mapping, *, classes: int, pixels: int) -> float:
    """Floating-point operations of one image in one training step, a multiply-add being two."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from osnb import models

    model = models.MODELS.bind(network, classes=classes, **how)().eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(torch.zeros(1, 3, pixels, pixels))
    return float(BACK * counter.get_total_flops())


def costs(cases=CASES, *, speed: float = OURS, fair: float = FAIR) -> dict:
    """What each case costs here and on one GPU.

    Args:
        cases: the trainings.
        speed: images/s of a VGG32's step at 32 px on this machine; others go at the same rate of
            operations.
        fair: seconds that a GPU takes for 600 epochs of CIFAR-10's first split.

    Returns:
        rates in TFLOP/s, `here` and `gpu`; `lines` of benchmark, regime, network, epochs, images,
        gflop (an image), pflop (a training), trainings, hours here and gpu minutes (of all of
        them); `runs`, seconds of finished trainings by notebook and size, see `finished`.
    """
    of_vgg = operations("vgg32", {}, classes=6, pixels=32)
    rates = {"here": speed * of_vgg, "gpu": 600 * 6 * 5000 * of_vgg / fair}
    lines = []
    for case in cases:
        how = {"method": case.method, "regime": case.regime, "size": "paper"}
        settings = Experiment.named(case.benchmark, **how).settings
        network = {k: v for k, v in settings["network"].items() if k != "name"}
        name, shape = settings["network"]["name"], {"classes": case.classes, "pixels": case.pixels}
        each = operations(name, network, **shape)
        whole = each * case.images * settings["epochs"]
        line = {"benchmark": case.benchmark, "regime": case.regime, "network": name}
        line |= {"epochs": settings["epochs"], "images": case.images, "gflop": each / 1e9}
        line |= {"pflop": whole / 1e15, "trainings": case.trainings}
        line["hours"] = case.trainings * whole / rates["here"] / 3600
        lines.append(line | {"gpu_minutes": case.trainings * whole / rates["gpu"] / 60})
    return {**{k: v / 1e12 for k, v in rates.items()}, "lines": lines, "runs": finished()}


def finished() -> list[dict]:
    """Of every notebook and size that has finished runs here: how many, and their seconds."""
    found: dict[tuple, list[float]] = {}
    for file in sorted((workbook.out() / "runs").glob("*/*/run.json")):
        run = json.loads(file.read_text())
        if run["state"] == "done":
            key = (run["notebook"], run["parameters"].get("size", ""))
            found.setdefault(key, []).append(run["seconds"])
    return [
        {"notebook": key[0], "size": key[1], "runs": len(all_of), "seconds": sum(all_of)}
        for key, all_of in found.items()
    ]


def show(report: Mapping) -> list:
    """What rich prints for a report of `costs`."""
    from rich.table import Column, Table

    heads = ["epochs", "images", "GFLOP an image", "PFLOP", "trainings", "hours here", "GPU min"]
    columns = [Column(name, justify="right", no_wrap=True) for name in heads]
    table = Table("benchmark", "regime", "network", *columns, box=None, padding=(0, 1, 0, 0))
    for line in report["lines"]:
        cells = [f"{line['epochs']}", f"{line['images']:,}", f"{line['gflop']:.2f}"]
        cells += [f"{line['pflop']:.2f}", f"{line['trainings']}", f"{line['hours']:.1f}"]
        table.add_row(*(line[k] for k in ("benchmark", "regime", "network")), *cells,
                      f"{line['gpu_minutes']:.1f}")  # fmt: skip
    runs = Table("notebook", "size", "runs", "seconds", box=None, padding=(0, 1, 0, 0))
    for run in report["runs"]:
        runs.add_row(run["notebook"], run["size"], f"{run['runs']}", f"{run['seconds']:,.0f}")
    return [
        table,
        f"Worked out of {report['here']:.2f} TFLOP/s here and {report['gpu']:.0f} on a GPU, "
        "which is not measured.",
        runs,
        "Seconds of finished runs in runs/, side by side or not; kernels' starts included.",
    ]
