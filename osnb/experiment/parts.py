"""Rows and batches of an experiment: training, validation, test, external and far images."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import pandas as pd

from osnb import datasets, losses, models, protocols, train
from osnb.base import workbook
from osnb.base.labels import UNKNOWN
from osnb.datasets.augment import AUGMENT, OPS
from osnb.experiment import Experiment, Machine, layers

# how many images of a role are validation images; those of Kim et al. 2021 are in their Table 2
VALIDATION = {"held_out": protocols.images, "whole": protocols.whole}
KIM = {"kim_cifar": (2_000, 2_000), "kim_imagenet": (10_000, 19_700)}
VALIDATION |= {
    name: partial(protocols.images, held_out={"known": known, "negative": negative})
    for name, (known, negative) in KIM.items()
}
STILL = 256  # images per batch where nothing is trained
SIDE = 64  # of the window of images of one's own, in pixels, where nothing says it


@dataclass(frozen=True)
class Parts:
    """Who is known, and the images of an experiment as batches.

    Attributes:
        classes: rows of the protocol, restricted to the classes that there are.
        rows: every image with its role, label and split.
        images: their pixels.
        known: K, how many classes are known.
        far: other test sets: reader's name, group in the scores table, batches.
        batches: f(rows, ...) -> batches, in the experiment's way of reading.
        augmented: what a training batch adds to that.
        settings: of the experiment.
        captured: whether a training step on a GPU is one CUDA graph.
    """

    classes: pd.DataFrame
    rows: pd.DataFrame
    images: datasets.Images
    known: int
    far: tuple[tuple[str, str, datasets.Batches], ...]
    batches: Callable[..., datasets.Batches]
    augmented: Mapping[str, Any]
    settings: Mapping[str, Any]
    captured: bool

    def of(self, split: str, *roles: str) -> pd.DataFrame:
        """Rows of a split and of some roles, in the order of `rows`."""
        return self.rows[(self.rows["split"] == split) & self.rows["role"].isin(roles)]

    @property
    def outputs(self) -> int:
        """C, columns of the logits: K, one for the background, spare ones of a training."""
        training, loss = self.settings["training"], self.settings["loss"]["name"]
        spare = training.get("placeholders", int(training["name"] == "osrci"))
        return self.known + spare + (loss == "background")

    @property
    def names(self) -> tuple[str, ...]:
        """Of the known classes, in the order of their labels; an id where there is no name."""
        known = self.classes[self.classes["role"] == "known"].sort_values("label")
        return tuple(known["name"].where(known["name"] != "", known["wnid"]))

    @property
    def taught(self) -> pd.DataFrame:
        """Rows that the loss is trained on, those of known classes, and negatives if it has use."""
        return self.of("train", *losses.TAUGHT[self.settings["loss"]["name"]])

    @cached_property
    def train(self) -> tuple[datasets.Batches, ...]:
        """Training batches of each member: of one, unless members see images drawn anew."""
        answer, rows = self.settings["answer"], self.taught
        members, seed = answer.get("members", 1), self.settings["seed"]
        if not answer.get("resampled"):
            return (self.batches(rows, **self.augmented),) * members
        drawn = [rows.sample(frac=1.0, replace=True, random_state=seed + i) for i in range(members)]
        return tuple(self.batches(each, **self.augmented) for each in drawn)

    @cached_property
    def outside(self) -> datasets.Batches:
        """External images for a training that wants some beside its own, twice as many a step."""
        twice = {**self.augmented, "batch_size": 2 * self.settings["batch_size"]}
        return self.batches(self.of("train", "negative"), **twice)

    @cached_property
    def test(self) -> datasets.Batches:
        """The test images of the tested roles."""
        return self.batches(self.of("test", *self.settings["tested"].split()))

    @property
    def tests(self) -> list[tuple[str, pd.Series | str, datasets.Batches]]:
        """Of every test set: source, group of each image (easy, near, far, ... or empty), batches.

        The first set's groups are what the protocol has for each image's class.
        """
        rows, group = self.test.rows, ""
        if "bin" in self.classes:
            group = rows["wnid"].map(self.classes.set_index("wnid")["bin"]).fillna("")
        return [(self.settings["reader"]["name"], group, self.test), *self.far]

    @cached_property
    def validation(self) -> datasets.Batches:
        """All images that are held out: of known classes, and negatives."""
        return self.batches(self.rows[self.rows["split"] == "val"])

    @cached_property
    def held_out(self) -> datasets.Batches:
        """Known images outside the training: test images where none are held out."""
        rows = self.of("val", "known")
        return self.batches(rows if len(rows) else self.of("test", "known"))

    @cached_property
    def inputs(self) -> dict[str, str]:
        """Digests of the list of images and of the first pixels of the test."""
        pixels = self.images.read(self.test.rows.index[:64].to_numpy()).cpu().numpy()
        lists = workbook.digest(self.rows.to_csv())
        return {"rows": lists, "pixels": workbook.digest(pixels.tobytes())}


def parts(experiment: Experiment, machine: Machine) -> Parts:
    """Rows and batches of an experiment.

    Raises:
        FileNotFoundError: a data set is not there.
        ValueError: it has too few images of a class, or settings are out of range.
    """
    settings = layers.placed(experiment.settings, experiment.benchmark.name)
    images = _images(settings, machine)
    name, options = layers.named(settings["protocol"])
    make = protocols.PROTOCOLS.bind(name, **options, split=settings["split"])
    classes = make(available=set(images.rows["wnid"].unique()))
    if other := settings.get("external"):
        others = protocols.PROTOCOLS.bind(other, split=settings["split"])
        others = others(available=set(images.rows["wnid"].unique()))
        classes = protocols.with_negatives(classes, others)
    enough(settings["validation"], classes, images.rows)
    divide = VALIDATION[settings["validation"]]
    # the device makes batches of images that are resident; threads would not wait for it
    threads = 0 if machine.resident else machine.workers
    shared = {"seed": settings["seed"], "threads": machine.workers}
    shared |= {"broken": settings["reader"].get("broken", "stop")}
    shared |= {"pinned": train.device().type == "cuda"}
    still = shared | {"batch_size": STILL, "transform": AUGMENT["none"], "shuffle": False}
    return Parts(
        classes,
        divide(classes, images.rows),
        images,
        int(classes["label"].max()) + 1,
        tuple(_far(settings, machine, images.shape, make, still)),
        lambda rows, **more: datasets.batches(images, rows, **still | {"threads": threads} | more),
        augmented(settings),
        experiment.settings,
        machine.captured,
    )


def enough(validation: str, classes: pd.DataFrame, files: pd.DataFrame) -> None:
    """Refuse a validation that holds out more images than there are, less one of each class.

    Raises:
        ValueError: with how many it holds out, of how many.
    """
    held_out = dict(zip(("known", "negative"), KIM.get(validation, ()), strict=False))
    if {*files["split"]} & {"train", "val"} != {"train"}:  # nothing is drawn
        return
    found = files[files["split"] == "train"].merge(classes[["wnid", "role"]], on="wnid")
    for role, count in held_out.items():
        wnids = found["wnid"][found["role"] == role]
        if len(wnids) < count + wnids.nunique() or not len(wnids):
            raise ValueError(
                f"validation={validation} holds out {count} {role} images, and there are "
                f"{len(wnids)} to train on: set validation=held_out"
            )


def sized(settings: Mapping[str, Any]) -> dict[str, Any]:
    """A reader's settings, with the length and the window that 0 stands for.

    With normalise=timm the backbone's own (`models.timm_pixels`), else a window of `SIDE` pixels
    and a short side as long as the window.
    """
    reader = settings["reader"]
    if not {"crop", "resize"} <= reader.keys():
        return reader
    side, share = reader["crop"] or SIDE, 1.0
    if settings.get("normalise") == "timm":
        pixels = models.timm_pixels(settings["network"]["backbone"])
        side, share = reader["crop"] or pixels["input_size"][-1], pixels["crop_pct"]
    return reader | {"crop": side, "resize": reader["resize"] or int(side / share)}


def augmented(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What training batches add to still ones, as settings say it."""
    name, how = layers.named(settings["augmentation"])
    if "ops" in how:
        how["ops"] = OPS[how["ops"]]
    transform = partial(AUGMENT[name], **how)
    crop = settings["reader"].get("window", "centre")
    size = settings["batch_size"]
    return {"batch_size": size, "transform": transform, "crop": crop, "shuffle": True}


def _images(settings: Mapping[str, Any], machine: Machine) -> datasets.Images:
    """The pixels of one reader, or of several as one data set."""
    roles = {k: v for k, v in settings["protocol"].items() if k == "roles"}
    reader = sized(settings) | roles
    every = {name: read(name, machine, reader) for name in reader["name"].split()}
    images = datasets.joined(every) if len(every) > 1 else every[reader["name"]]
    return datasets.resident(images, train.device()) if machine.resident else images


def read(name: str, machine: Machine, settings: Mapping[str, Any]) -> datasets.Images:
    """The images of one reader, of whose settings it takes those that it declares."""
    where = {"root": workbook.data(machine.data, name), "cache": machine.cache}
    own = {k: v for k, v in settings.items() if k not in layers.UNSET}
    return datasets.READERS.bind(name, **own | where)()


def _far(settings, machine, shape, every: Callable[[], pd.DataFrame], still):
    """(name, group, batches) of other readers' test images, all of them unknown."""
    names = settings["also"].split()
    asked = datasets.counted(settings.get("counts", ""), of=settings["also"])
    group = settings.get("far", "")
    for name in names:
        wanted = {"count": asked[name]} if name in asked else {}
        images = read(name, machine, wanted)
        images = datasets.joined({name: datasets.like(images, shape)})
        rows = images.rows[images.rows["split"] == "test"].assign(role="unknown", label=UNKNOWN)
        # all of a protocol's classes, which one that divides those there are does not know
        among = rows["wnid"].isin(every()["wnid"] if group else [])
        rows = datasets.some(rows[among] if among.any() else rows, asked.get(name, 0), name=name)
        yield name, group or name, datasets.batches(images, rows, **still)
