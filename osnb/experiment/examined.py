"""What is checked of a benchmark and of code of one's own before anything is trained."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from PIL import Image

from osnb import datasets, losses, scores, train
from osnb.base import tables, workbook
from osnb.base.outputs import Outputs
from osnb.datasets.photographs import REPLACE
from osnb.experiment import Experiment, Machine, layers, trained
from osnb.experiment.parts import STILL, Parts, read, sized
from osnb.protocols import hierarchy
from osnb.train.forward import Dropping

ROWS, CLASSES, WIDTH = 12, 5, 8  # of the outputs that a loss or a score is tried on
# networks of layers that see every pixel, and trainings that draw images, are made for one side
SQUARE = {"network": ("mlp", "ladder"), "training": ("osrci", "c2ae", "arpl_cs")}
NEAR = 8  # of 64 bits of each perceptual hash that nearly equal images may differ in
SHOWN = 5  # pairs of them that are named
ADVICE = "Where two are one picture, remove one, or give both one `unit` in a csv"
EXTRA = "needs imagehash, of the extra train: pip install 'osnb[train]'"


def code(experiment: Experiment, machine: Machine) -> None:
    """Try every part that is a function of one's own, called module:name.

    Raises:
        FileNotFoundError: there is no such file, or none that a reader needs.
        ValueError: it does not take what it is given, or gives something else than is needed; the
            message says which.
    """
    for kind, tried in {"loss": _loss, "rules": _score, "reader": _read, "network": _net}.items():
        for name in experiment.settings[kind]["name"].split():
            if ":" in name:
                tried(name, experiment, machine)


def _loss(name: str, experiment: Experiment, _: Machine) -> None:
    """On random outputs: one finite value for each, with a finite gradient."""
    function = partial(losses.LOSSES[name], **layers.named(experiment.settings["loss"])[1])
    out = Outputs(*(torch.from_numpy(x).requires_grad_() for x in _random(CLASSES)))
    negatives = "negative" in losses.TAUGHT[name]
    labels = torch.arange(ROWS) % (CLASSES + negatives) - int(negatives)
    form = f"loss(out, labels, **settings), out.logits (N, C) and labels (N,) from {labels.min()}"
    value = _one_each(name, called(name, form, function, out, labels))
    if not value.requires_grad:
        raise ValueError(f"{name} has no gradient: a network could not be trained by it")
    grads = torch.autograd.grad(value.sum(), tuple(out), allow_unused=True)
    if not all(grad.isfinite().all() for grad in grads if grad is not None):
        raise ValueError(f"{name} has a gradient that is not finite")


def _score(name: str, experiment: Experiment, _: Machine) -> None:
    """On random outputs, one column more than known classes: one finite value for each."""
    column = name.partition(":")[2]
    if column in {*tables.COLUMNS, *scores.SCORES, *scores.POST_HOC, "target", "target_log_odds"}:
        raise ValueError(f"{name}: {column!r} is a column of every scores table: rename it")
    function = partial(scores.POST_HOC[name], **layers.named(experiment.settings["rules"])[1])
    form = "score(out, *, known, **settings), out.logits (N, C) and out.features (N, D) of numpy"
    out = Outputs(*_random(CLASSES + 1)[:2])
    value = called(name, form, lambda: np.asarray(function(out, known=CLASSES), np.float64))
    _one_each(name, torch.from_numpy(value))


def _read(name: str, experiment: Experiment, machine: Machine) -> None:
    """Its rows, and the pixels of the first two."""
    settings = sized(layers.placed(experiment.settings, experiment.benchmark.name))
    form = "reader(root, **settings) -> osnb.datasets.Images"
    images = called(name, form, read, name, machine, settings)
    if not isinstance(images, datasets.Images):
        raise ValueError(f"{name} must give osnb.datasets.Images; got {type(images).__name__}")
    rows = images.rows
    for kind, made in SQUARE.items():
        part = experiment.settings[kind]["name"]
        if part in made and images.shape[1] != images.shape[2]:
            raise ValueError(f"{part} needs square images; those of {name} are {images.shape}")
    if lacking := {"sample", "wnid", "split"} - {*rows}:
        raise ValueError(f"{name} needs rows of sample, wnid and split; it lacks {min(lacking)}")
    for column in ("sample", "wnid"):
        if wrong := [x for x in rows[column] if not isinstance(x, str)]:
            raise ValueError(f"{name} needs text in {column}, such as '3'; got {wrong[0]!r}")
    if (twice := rows["sample"].duplicated()).any():
        raise ValueError(f"{name} has the sample {rows.loc[twice, 'sample'].iloc[0]!r} twice")
    places = np.arange(min(len(rows), 2))
    pixels, expected = called(name, form, images.read, places), (len(places), *images.shape)
    if getattr(pixels, "dtype", None) != torch.uint8 or tuple(pixels.shape) != expected:
        raise ValueError(f"{name}: read(positions) must give a tensor {expected} of uint8")


def _net(name: str, experiment: Experiment, machine: Machine) -> None:
    """On random images."""
    parts = experiment.parts(machine)
    form = "network(*, classes, channels, size, **settings) -> torch.nn.Module"
    made = called(name, form, experiment.network, parts)
    network = trained.members(made)[0]
    has = _has(network, answered(name, form, network, parts), parts)
    for part, what, ways in layers.needed(experiment.settings, experiment.choices["method"]):
        how, given = has.get(part, ("", True))
        if "network=MODULE:NAME" in ways and not given:
            raise ValueError(f"{part} needs {what}: {name} needs {how}")


def _has(network: torch.nn.Module, out: Outputs, parts: Parts) -> dict[str, tuple[str, bool]]:
    """What a part of `fits` asks of a network, and whether this one, which said `out`, has it."""
    wide = out.slack.shape[1] if getattr(out.slack, "ndim", 0) == 2 else 0
    row, cut = getattr(network, "trunk", None), parts.settings["training"].get("cut", 0)
    length = len(row) if isinstance(row, torch.nn.Sequential) else 0
    said = None
    with suppress(Exception):  # of any kind: it is a person's code
        said = network.head(out.features)
    drops = any(isinstance(m, Dropping) and m.p > 0 for m in network.modules())
    points = "Outputs whose slack is (N, K), K classes", wide >= parts.outputs
    return {
        **dict.fromkeys(("loss=arpl", "loss=rpl", "training=arpl_cs"), points),
        "loss=joint": ("Outputs whose slack is (N, 1)", wide > 0),
        "training=openhybrid": (
            "a head that gives logits and slack (N, 1) of features",
            isinstance(said, tuple) and len(said) == 2,
        ),
        "training=vos": ("a head that gives logits of features", said is not None),
        "training=cgdl": ("Outputs whose slack is (N, 1 + K), K classes", wide > parts.outputs),
        "training=proser": (f"trunk, an nn.Sequential of more than {cut} layers", length > cut),
        "answer=mcdropout": ("a module such as nn.Dropout with p > 0", drops),
    }


def answered(name: str, form: str, network: torch.nn.Module, parts: Parts) -> Outputs:
    """What a network says of two random images, in the mode it is in, held to what is needed.

    Raises:
        ValueError: these are no finite logits for each class, with features.
    """
    images = torch.rand(2, *parts.images.shape, device=train.device(network))
    with torch.no_grad():
        out, shape = called(name, form, network, images), (2, parts.outputs)
    if not isinstance(out, Outputs) or len(out.features) != 2:
        raise ValueError(f"{name} must give Outputs(logits, features) for images")
    if (came := tuple(out.logits.shape)) != shape:
        classes = f"needs logits {shape} of 2 images, one for each class that is taught"
        raise ValueError(f"{name} {classes}; it gave {came}")
    if not out.logits.isfinite().all():
        raise ValueError(f"{name} needs finite logits of 2 images; it gave some that are not")
    return out


def _random(columns: int) -> list[np.ndarray]:
    """Logits, features and slack that a loss or a score is tried on."""
    draw = np.random.default_rng(0)
    return [draw.normal(size=(ROWS, n)).astype(np.float32) for n in (columns, WIDTH, columns)]


def called(name: str, form: str, function: Callable, *given: Any, **more: Any) -> Any:
    """What a person's function gives.

    Raises:
        ValueError: it raises something; FileNotFoundError stays, for it names what is not there.
    """
    try:
        return function(*given, **more)
    except FileNotFoundError:
        raise
    except Exception as error:  # whatever a person's code may raise
        raise ValueError(
            f"{name} is called as {form}; it gave {type(error).__name__}: {error}"
        ) from error


def _one_each(name: str, value: Any) -> torch.Tensor:
    """The values, if there is a finite one for each row."""
    if not isinstance(value, torch.Tensor) or value.shape != (ROWS,) or not value.isfinite().all():
        came = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
        raise ValueError(
            f"{name} needs one finite value for each of {ROWS} samples; it gave {came}"
        )
    return value


def benchmark(experiment: Experiment, machine: Machine) -> Iterator[str]:
    """Read once what a benchmark of one's own names, and build its network; sentences on it.

    Raises:
        FileNotFoundError: a file is not there.
        ValueError: roles or a division are wrong, images do not decode, the same pixels are on
            two sides of the division, or there is no such network; the message names them.
    """
    parts = experiment.parts(machine)
    rows = parts.rows
    table = pd.crosstab(rows["role"], rows["split"])
    for role, counts in table.iterrows():
        classes = rows.loc[rows["role"] == role, "wnid"].nunique()
        yield f"{role}: {classes} classes; " + ", ".join(
            f"{n} {part}" for part, n in counts.items()
        )
    reader = layers.placed(experiment.settings, experiment.benchmark.name)["reader"]
    if alone := [name for name, n in rows["wnid"].value_counts().items() if n == 1]:
        yield f"of one image alone: {', '.join(alone)}"
    if reader["name"] == "own_images":
        changed = datasets.conversions(Path(reader["images"]))
        yield from (f"{count} {what}" for what, count in changed.items() if count)
    digests, hashes = _digests(parts)
    if skipped := len(rows) - len(digests):
        yield f"{skipped} images do not decode and are left out"
    rows = rows.loc[digests.index]
    yield from _duplicates(rows, digests)
    yield from _near(rows, hashes)
    made = experiment.network(parts)
    yield f"the network has {sum(x.numel() for x in made.parameters()):,} weights"
    network = experiment.settings["network"]
    if network.get("weights"):
        classes = rows.loc[rows["role"] == "unknown", "wnid"].unique()
        answers = [f"{name} {hierarchy.seen(network, name)}" for name in classes]
        yield f"could the pretraining have seen the unknown classes? {', '.join(answers)}"


def _digests(parts: Parts) -> tuple[pd.Series, np.ndarray]:
    """Of each row's pixels: a digest, and perceptual hashes (N, H); H = 0 without imagehash.

    Images that do not decode have neither, where the benchmark skips them.

    Raises:
        ValueError: images do not decode, and are not to be skipped.
    """
    batches = parts.batches(parts.rows, batch_size=STILL, shuffle=False, broken="skip")
    with warnings.catch_warnings(action="ignore"):  # all are named below
        every = (x.cpu().numpy() for pixels, _ in batches(0) for x in pixels)
        found = [(workbook.digest(x.tobytes()), _hashes(x)) for x in every]
    if batches.skipped and parts.settings["reader"].get("broken") != "skip":
        reasons = "; ".join(x.removesuffix(REPLACE) for x in [*batches.skipped.values()][:5])
        raise ValueError(f"{len(batches.skipped)} images: {reasons}{REPLACE}")
    digests, hashes = zip(*found, strict=True)
    return pd.Series(digests, batches.rows.index), np.array(hashes, np.uint64)


def _hashes(image: np.ndarray) -> list[int]:
    """Two hashes of 64 bits of an image (channels, S, S) in [0, 1]; none without imagehash.

    They are of the grey image's low frequencies and of its gradients from left to right: stripes
    are alike in the first, whatever they look like.
    """
    if not find_spec("imagehash"):
        return []
    from imagehash import dhash, phash

    grey = Image.fromarray((255 * image.mean(axis=0)).round().astype(np.uint8))
    return [int(str(of(grey)), 16) for of in (phash, dhash)]


def _duplicates(rows: pd.DataFrame, digests: pd.Series) -> Iterator[str]:
    """A sentence on equal images.

    Raises:
        ValueError: some are on two sides of the division, or of two classes.
    """
    same = rows.assign(pixels=digests)[digests.duplicated(keep=False)]
    for _, group in same.groupby("pixels"):
        if group["split"].nunique() > 1 or group["wnid"].nunique() > 1:
            names = ", ".join(f"{x.sample} ({x.wnid}, {x.split})" for x in group.itertuples())
            raise ValueError(
                f"the same pixels: {names}. Remove all but one, or give them one `unit` in a csv"
            )
    if len(same):
        yield f"{len(same)} images have the pixels of another one of their class and split"


def _near(rows: pd.DataFrame, hashes: np.ndarray) -> Iterator[str]:
    """A sentence on images that look nearly the same, on two sides of the division."""
    if not hashes.size:
        yield f"nearly equal images were not looked for, which {EXTRA}"
        return
    splits, pairs = rows["split"].to_numpy(), []
    for i, own in enumerate(hashes):
        alike = (np.bitwise_count(hashes[:i] ^ own) <= NEAR).all(axis=1)
        pairs += [(j, i) for j in np.flatnonzero(alike & (splits[:i] != splits[i]))]
    names = [f"{x.sample} ({x.split})" for x in rows.itertuples()]
    if pairs:
        shown = "; ".join(f"{names[j]} and {names[i]}" for j, i in pairs[:SHOWN])
        yield f"on two sides and nearly the same: {shown} ({len(pairs)} in all). {ADVICE}"
