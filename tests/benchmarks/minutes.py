"""AUROC over minutes: the fast recipe beside the plain network of Vaze et al., CIFAR-10's splits.

Nothing is trained to its end. A step of each recipe is timed, augmentation included, in turns; from
that and its epochs follow the minutes of a training here. What finished trainings reached is
measured on their scores tables. The third party's runs of VGG32 are in osnb/published.
"""

import datetime
import time
from collections.abc import Callable, Mapping
from itertools import chain, islice
from pathlib import Path
from statistics import median

import pandas as pd

from osnb import experiment, train
from osnb.base import stamps, tables
from osnb.experiment import layers, trained
from osnb.train.loop import Run
from tests.benchmarks.stopwatch import Clock, interleaved, machine, versions
from tests.tools import own_data

REGIMES = {"fast": "small network", "baseline": "VGG32"}
THIRD = "VGG32, third party"
LOOKS = {  # of the figure's lines
    "small network, MLS": {"color": "C0", "marker": "o", "linestyle": "-"},
    "small network, MSP": {"color": "C0", "marker": "o", "linestyle": "--"},
    "VGG32, MLS": {"color": "C1", "marker": "s", "linestyle": "-"},
    "VGG32, MSP": {"color": "C1", "marker": "s", "linestyle": "--"},
    f"{THIRD}, MSP": {"color": "C1", "marker": "D", "linestyle": "none"},
}
SPLITS = (2, 3, 4)  # on 0, with the classes of 1, the recipe was chosen
STEPS = 20  # that a call takes


def compare(
    *, rounds: int = 3, threads: int = 2, data: str = "", clock: Clock = time.perf_counter
) -> dict:
    """Time a step of either recipe, and set the minutes of whole trainings beside their AUROC.

    Args:
        rounds: how often each is timed, in turns; a first call of each is not timed.
        threads: of the CPU.
        data: folder of CIFAR-10; $OSNB_DATA if empty.
        clock: gives seconds.

    Returns:
        The machine; `speed`, images/s of either network; `lines` as from `reached`, with minutes.
    """
    import torch

    torch.set_num_threads(threads)
    calls = {name: _steps(regime, data) for regime, name in REGIMES.items()}
    images = {name: call() for name, call in calls.items()}
    seconds = interleaved(calls, repeats=rounds, clock=clock)
    speed = {name: images[name] / median(found) for name, found in seconds.items()}
    rows = reached()
    of = rows["network"].replace(THIRD, REGIMES["baseline"]).map(speed)
    rows["minutes"] = rows["epochs"] * rows["images"] / of / 60
    found = {"rounds": rounds, "date": f"{datetime.date.today()}"} | machine()
    found |= {"threads": threads, "versions": versions([]), "speed": speed}
    return found | {"lines": rows.to_dict("records")}


def _steps(regime: str, data: str) -> Callable[[], int]:
    """A call that makes `STEPS` steps of a recipe and gives the number of images."""
    import torch

    named = {"method": "softmax", "regime": regime, "size": "paper", "split": SPLITS[0]}
    exp = experiment.Experiment.named("cifar10", **named)
    parts = exp.parts(experiment.Machine.of("resident=true", data=data))
    network, loss = exp.network(parts), exp.criterion(parts)
    how = {"optimizer": trained.optimizer(exp.settings["optimizer"], network), "epochs": 1}
    how |= {"schedule": train.constant, "validate": None, "seed": 0, "directory": Path()}
    how |= {"precision": "bfloat16", "batches": parts.train[0]}
    run = Run(model=network, loss=loss, **how)
    network.train().to(memory_format=torch.channels_last)

    def call():
        run.step = 0
        for images, labels in islice(parts.train[0](1, 0), STEPS):
            run.train_on(images, labels, 1)
        return STEPS * len(labels)

    return call


def reached() -> pd.DataFrame:
    """What trainings of either recipe reached, as they are but for their length.

    Returns:
        A row a network, split and number of epochs: images (of an epoch), runs (seeds), and
        their mean accuracy and AUROC (MSP, MLS) in [0, 1]; of the third party's no MLS is known.
    """
    rows, sizes = [], ("paper", "tiny")
    for path, stamp in chain(*(stamps.finished("21_vaze_train", size) for size in sizes)):
        columns, changed = stamp["columns"], layers.words(stamp["parameters"]["overrides"])
        if (columns["benchmark"], columns["method"]) != ("cifar10", "softmax"):
            continue
        if columns["regime"] not in REGIMES or {*changed} - {"answer", "epochs"}:
            continue
        row = {"network": REGIMES[columns["regime"]], "split": int(columns["split"])}
        row["epochs"] = stamp["settings"]["epochs"]
        rates = own_data.rates(tables.read(path), "max_softmax_log_odds", "max_logit")
        rows.append(row | dict(zip(own_data.FAST, rates, strict=True)))
    key = ["network", "split", "epochs"]
    found = pd.DataFrame(rows).groupby(key, as_index=False).mean()
    found["runs"] = pd.DataFrame(rows).groupby(key).size().to_numpy()
    third = own_data.cells().query("artefact == @own_data.THIRD").astype({"split": int})
    third = third.pivot_table("value", ["split", "epochs"], "metric").reset_index()
    third = third.rename(columns={"auroc": "MSP"}).drop(columns="oscr")
    found = pd.concat([found, third.assign(network=THIRD, runs=1)], ignore_index=True)
    images = 6 * 5000  # six known classes, all their training images
    counted = found["split"].isin(SPLITS)
    return found[counted].assign(images=images).reset_index(drop=True)


def drawn(report: Mapping):
    """A panel a split: AUROC over minutes, a line a network and rule."""
    from osnb.plots import draw

    rows = pd.DataFrame(report["lines"]).melt(
        ["network", "split", "minutes"], ["MLS", "MSP"], "rule", "auroc"
    )
    rows = rows.dropna(subset="auroc").assign(line=lambda x: x["network"] + ", " + x["rule"])
    rows = rows.rename(columns={"split": "panel"}).sort_values("minutes")
    rows["panel"] = "split " + rows["panel"].astype(str)

    @draw.figure_of("panel", "minutes", "auroc")
    def figure(table):
        fig, places = draw.facets(table, "panel", size=(2.9, 3), sharey=True)
        for ax, part, _ in places:
            for name, line in part.groupby("line", sort=False):
                ax.plot(line["minutes"], line["auroc"], label=name, markersize=4, **LOOKS[name])
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter("{x:g}")
        about = f"means over seeds; minutes: epochs at the speed of {report['threads']} threads"
        return draw.finished(
            fig, x="minutes of training", y="AUROC", about=f"{about}, {report['cpu']}"
        )

    return figure(rows)


def show(report: Mapping) -> list:
    """What rich prints for a report of `compare`."""
    from rich.table import Column, Table

    heads = ["split", "epochs", "runs", "minutes", "accuracy", "MSP", "MLS"]
    table = Table("network", *(Column(name, justify="right") for name in heads), box=None)
    for line in report["lines"]:
        numbers = [f"{line[k]:.3f}" if line[k] == line[k] else "" for k in heads[4:]]
        whole = [str(line[k]) for k in heads[:3]] + [f"{line['minutes']:.1f}"]
        table.add_row(line["network"], *whole, *numbers)
    speeds = ", ".join(f"{name} {value:.0f}" for name, value in report["speed"].items())
    return [table, f"Images/s of a step, {report['threads']} threads, bfloat16: {speeds}."]
