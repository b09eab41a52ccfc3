"""Rehearsals: what numerical code computes, made small, for `osnb.book.goldens`.

`REHEARSALS[kind]()` gives, by name, a function of nothing that returns arrays by name. Losses and
rules are held on outputs that are small, saturated and tied; recipes on two epochs of at most
three batches, the last one short. All draws are seeded.
"""

import io
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from inspect import getmembers, isfunction, signature
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import torch
from PIL import Image

from osnb import datasets, losses, metrics, models, protocols, scores, train
from osnb.base import workbook
from osnb.base.outputs import Outputs
from osnb.datasets.augment import AUGMENT, OPS
from osnb.experiment import Experiment, Machine
from osnb.experiment.layers import STAGES, catalogue
from osnb.experiment.parts import VALIDATION
from osnb.train.methods import arpl_cs, osrci, terms

Numbers = Mapping[str, Any]  # arrays by name
KNOWN, ROWS = 5, 12
RIGHT = (torch.arange(ROWS) * 5 % 7).float()  # how often each was, of 7 times
GIVEN = workbook.params(Path(__file__).with_suffix(".yaml"))
OUTPUTS = {"small": 1.0, "saturated": 60.0, "tied": 0.0}  # factor on normal logits
# with the drawings below, two or three steps an epoch, the last short
FEW = "epochs=2 batch_size=48"
MINI = f"{FEW} train_per_class=12 validation_per_class=4 test_per_class=4 features=16 width=4"
LATENT = ("crosr", "cgdl")  # methods whose network has as many features as its other sizes say
TERMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {  # of methods' losses, of logits
    "arpl_cs": lambda z: arpl_cs.confusion(z),
    "augmix": lambda z: terms.divergence(z.view(3, ROWS // 3, KNOWN)),
    "crl": lambda z: terms.ranking(z.softmax(dim=1).amax(dim=1), RIGHT, epochs=7),
    "oe": lambda z: terms.unevenness(z),
    "osrci": lambda z: osrci.one_against_all(z, torch.arange(ROWS) % KNOWN),
}
RULES = ("target", "max_softmax", "max_logit", *scores.POST_HOC)
PARTS = catalogue("recipes")["parts"]
FITTED, LOOKS = ("openmax", "mahalanobis"), ("odin", "mcdropout", "mirrored", "ensemble")


def outputs(factor: float, columns: int = KNOWN) -> Outputs:
    """Logits, features and slack of some samples; with factor 0 all logits of a row are equal."""
    draw = torch.Generator().manual_seed(7)
    logits, slack = (torch.randn(ROWS, columns, generator=draw) for _ in range(2))
    features = torch.randn(ROWS, 6, generator=draw) * (factor or 1.0)
    return Outputs(logits * factor, features, slack)


def loss(name: str) -> Numbers:
    """Value and gradients, labels being known and negative."""
    settings = dict(GIVEN["losses"].get(name, PARTS["loss"].get(name, {})))
    if name == "background":
        settings["weights"] = torch.linspace(0.5, 2, KNOWN + 1)
    columns = KNOWN + (name == "background")
    labels = torch.arange(ROWS) % (KNOWN + 1) - 1
    found = {}
    for kind, factor in OUTPUTS.items():
        out = Outputs(*(part.requires_grad_() for part in outputs(factor, columns)))
        value = losses.LOSSES[name](out, labels, **settings)
        grads = torch.autograd.grad(value.sum(), tuple(out), allow_unused=True)
        found[f"{kind} value"] = value.detach().numpy()
        by = zip(out._fields, grads, strict=True)
        found |= {f"{kind} by {part}": grad.numpy() for part, grad in by if grad is not None}
    if name == "background":
        found["prices"] = losses.class_weights(labels, classes=KNOWN + 1).numpy()
        rows = losses.background(out, labels, weights=settings["weights"], division="rows")
        found["rows"] = rows.detach().numpy()
    return found


def schedule(name: str) -> Numbers:
    """32 factors over a run, and those of 600 epochs."""
    factor = train.SCHEDULES[name]
    grids = {"steps": 32, "epochs": 600}
    return {k: np.array([factor(i / n) for i in range(n)]) for k, n in grids.items()}


def augment(name: str) -> Numbers:
    """Order and pixels of batches of the first, second and last epoch."""
    images = datasets.READERS["quickdraw"](train_per_class=1, test_per_class=1)
    rows = images.rows[:20].assign(label=np.arange(20))
    transform = AUGMENT.bind(name, ops=OPS["all"], **GIVEN["transforms"].get(name, {}))
    how = {"batch_size": 8, "seed": 3, "shuffle": True, "transform": transform}
    batches, found = datasets.batches(images, rows, **how), {}
    for epoch in (0, 1, 599):
        pixels, labels = zip(*batches(epoch), strict=True)
        found[f"order {epoch}"] = torch.cat(labels).numpy()
        found[f"pixels {epoch}"] = torch.cat(pixels).numpy()
    return found


def network(name: str) -> Numbers:
    """Outputs and gradients of a batch of eight, at rest after it."""
    heads = ("arpl", "rpl", "linear") if name == "conv" else ("linear",)
    found = {}
    for head in heads:
        torch.manual_seed(5)
        how = {"classes": KNOWN, "channels": 3, "head": head, "features": 16}
        model = models.MODELS.bind(name, **how | GIVEN["networks"].get(name, {}))()
        images = torch.rand(8, 3, 32, 32, generator=torch.Generator().manual_seed(6))
        out = model.train()(images)
        (out.logits.square().sum() + sum(x.sum() for x in out[2:] if len(x))).backward()
        grads = [p.grad.norm() for p in model.parameters() if p.grad is not None]
        found[f"{head} gradients"] = torch.stack(grads).numpy()
        said = train.predict(model, lambda _, images=images: [(images, None)])
        found |= {f"{head} logits": said.logits, f"{head} features": said.features}
    return found


def normalise(name: str) -> Numbers:
    """Pixels as a network gets them."""
    images = torch.linspace(0, 1, 12).view(1, 3, 2, 2)
    return {"pixels": models.normalising(torch.nn.Identity(), name, channels=3)(images).numpy()}


def rule(name: str) -> Numbers:
    """Scores of one rule that reads outputs."""
    labels = np.arange(ROWS) % (KNOWN + 2) - 2
    found = {}
    for (kind, factor), columns in product(OUTPUTS.items(), (KNOWN, KNOWN + 1)):
        out = Outputs(*(part.numpy() for part in outputs(factor, columns)))
        if name in scores.POST_HOC:
            found[f"{kind} {columns}"] = scores.POST_HOC[name](out, known=KNOWN)
        else:
            made = scores.columns(out, labels, known=KNOWN)
            found |= {f"{kind} {columns} {k}": v for k, v in made.items() if name in k}
    return found


def clusters(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Logits of 30 samples of each class, most of them right, and their labels."""
    target = np.repeat(np.arange(KNOWN), 30)
    return rng.normal(0, 1, (len(target), KNOWN)) + 4 * np.eye(KNOWN)[target], target


def fitted(name: str) -> Numbers:
    """Scores of a rule that is fitted on training samples, in every convention."""
    rng = np.random.default_rng(2)
    seen, target = clusters(rng)
    train_out = Outputs(seen, seen @ rng.normal(size=(KNOWN, 8)))
    test = rng.normal(0, 2, (64, KNOWN))
    out = Outputs(test, test @ rng.normal(size=(KNOWN, 8)))
    if name == "mahalanobis":
        return {"scores": scores.mahalanobis(train_out, target, known=KNOWN)(out, known=KNOWN)}
    found = {}
    for distance, weights in product(scores.DISTANCES, scores.WEIGHTS):
        how = {"tail": 8, "alpha": 3, "distance": distance, "weights": weights}
        made = scores.openmax(train_out, target, known=KNOWN, score="log_odds", **how)
        found[f"{distance} {weights}"] = made(out, known=KNOWN)
    return found


def looks(name: str) -> Numbers:
    """What needs more than one look at an image, or more than one network."""
    torch.manual_seed(4)
    model = models.conv_dropout(classes=KNOWN, channels=3, width=4, features=8, dropout=0.2)
    images = torch.rand(16, 3, 32, 32, generator=torch.Generator().manual_seed(6))
    batches = lambda _: [(images[:10], None), (images[10:], None)]  # noqa: E731
    if name == "odin":
        grid = [(1.0, 0.0), (1000.0, 0.0014), (10.0, 0.05)]
        made = {f"{t} {e}": train.odin(model, batches, temperature=t, epsilon=e) for t, e in grid}
        return {key: out.logits for key, out in made.items()}
    if name == "mcdropout":
        return {"logits": train.dropout(model, batches, samples=3, seed=1).logits}
    if name == "mirrored":
        return train.mirrored(model, batches)._asdict()
    outs = [Outputs(outputs(factor).logits.numpy(), ()) for factor in (1.0, 60.0)]
    return {mean: scores.ensemble(outs, mean=mean).logits for mean in ("logits", "softmax")}


def protocol(name: str) -> Numbers:
    """Every list of a protocol: of its own classes, else of those that a few letters name.

    Raises:
        ValueError: it lists neither, and a golden would say nothing.
    """
    found, letters = {}, "abcdefghi"  # the golden of `closed` has two
    splits = 5 if "split" in signature(protocols.PROTOCOLS[name]).parameters else 1
    for split, available in product(range(splits), (None, "ab", letters)):
        if f"split {split}" in found:
            continue
        own = {"roles": io.StringIO("class,role\nb,known\na,known\nd,unknown\nc,negative\n")}
        try:
            table = protocols.PROTOCOLS.bind(name, split=split, **own)(available=available)
        except ValueError as error:  # it has no such split, or wants other classes
            if (split, available) == (0, letters):
                said = f"{name} lists neither classes of its own nor the classes a to i: {error}"
                raise ValueError(said) from error
            continue
        found[f"split {split}"] = table.to_csv(index=False)
    return found


def reader(name: str) -> Numbers:
    """Rows and some pixels of a data set that needs no file, or one that is made here."""
    few = {"train_per_class": 1, "validation_per_class": 1, "test_per_class": 1}
    few |= {"per_class": 3, "count": 40}
    with TemporaryDirectory() as folder:
        if name in GIVEN["files"]:
            file, side = GIVEN["files"][name]
            _photographs(side).to_parquet(Path(folder) / file)
        if name == "own_images":
            few |= {"images": _listed(Path(folder)).name, "resize": 40, "crop": 32}
        images = datasets.READERS.bind(name, root=Path(folder), **few)()
        places = np.linspace(0, len(images.rows) - 1, min(24, len(images.rows))).astype(int)
        pixels = images.read(places).numpy()
    return {"rows": images.rows.to_csv(index=False), "pixels": pixels}


def _listed(folder: Path) -> Path:
    """Twelve images in three units each of two classes, and the csv file that lists them."""
    photographs = pd.concat([_photographs(32)] * 3, ignore_index=True)
    for i, data in enumerate(photographs["jpeg"]):
        (folder / f"{i}.jpg").write_bytes(data)
    paths = [f"{i}.jpg" for i in photographs.index]
    units = [f"{of}{i // 4}" for i, of in enumerate(photographs["name"])]
    table = pd.DataFrame({"path": paths, "class": photographs["name"], "unit": units})
    table.to_csv(folder / "listed.csv", index=False)
    return folder / "listed.csv"


def _photographs(side: int) -> pd.DataFrame:
    """Four small ones, as the readers of a parquet file want them."""
    rng, files = np.random.default_rng(0), []
    for _ in range(4):
        smooth = rng.integers(0, 256, (4, 4, 3), np.uint8)
        smooth = smooth.repeat(side // 4, axis=0).repeat(side // 4, axis=1)
        Image.fromarray(smooth).save(file := io.BytesIO(), "jpeg")
        files.append(file.getvalue())
    names = {"wnid": ["n01", "n02"] * 2, "name": ["cat", "dog"] * 2}
    splits = ["train", "train", "test", "test"]
    return pd.DataFrame({"split": splits, **names, "jpeg": files})


def measure(name: str) -> Numbers:
    """A measure on scores with and without ties, in each of its conventions."""
    of, found = getattr(metrics, name), {}
    for digits in (9, 0):
        columns = drawn(digits, name)
        given = {k: v for k, v in columns.items() if k in signature(of).parameters}
        values = [of(**given | how) for how in GIVEN["measures"].get(name, [{}])]
        if len(values) == 1:
            (values,) = values
        elif isinstance(values[0], tuple):
            values = [part for value in values for part in value]
        if not isinstance(values, Mapping):
            values = dict(enumerate(values)) if isinstance(values, tuple | list) else {"": values}
        found |= {f"{digits} {key}": part for key, part in values.items()}
    return found


def drawn(digits: int, name: str) -> dict[str, Any]:
    """Scores of known and unknown samples, rounded, and what a measure takes besides, by name."""
    rng = np.random.default_rng(0)
    known, unknown = rng.normal(1, 1, 60).round(digits), rng.normal(0, 1, 40).round(digits)
    correct, units = rng.random(60) < 0.8, rng.integers(0, 6, 60)
    right = np.r_[correct, unknown > 1.5]
    kind = np.where(right, "", rng.choice(["near", "wrong"], 100))
    shares = [1 / (1 + np.exp(-part)) for part in (known, unknown)]
    given = {"known": known, "correct": correct, "unknown": unknown, "values": known}
    given |= {"units": units, "seed": 1, "resamples": 20, "offset": 0.2}
    given |= dict(zip(("known_target", "other_max"), shares, strict=True))
    given["weights"] = metrics.role_weights(units, units[:40], seed=1, resamples=20)
    odds = np.exp(np.outer(known, [1, 0, -1]))
    given |= {"probability": shares[0], "labels": units % 3}
    given["probabilities"] = odds / odds.sum(axis=1, keepdims=True)
    if name in GIVEN["pooled"]:
        given |= {"score": np.r_[known, unknown], "correct": right, "kind": kind}
        given["weights"] = metrics.bootstrap_weights(kind, seed=1, resamples=20)
    if name == "role_weights":
        given |= {"known": units, "unknown": units[:40]}
    return given


def method(name: str) -> Numbers:
    """A method, all its stages, on its own: neither schedule nor augmentation has a part in it."""
    parts, needs = (catalogue("recipes")[x] for x in ("methods", "needs"))
    needing = {parts[name].get("loss"), parts[name].get("training")} & {*needs["negatives"]}
    benchmark = "p2" if needing else "cifar10"
    small = GIVEN["methods"].get(name, "")
    more = f"schedule=constant augmentation=none rules=plain watch=held_out {small}"
    return recipe(benchmark, more=more, method=name) | term(name)


def term(name: str) -> Numbers:
    """Value and gradient of what a method adds to its loss."""
    found = {}
    for kind, factor in OUTPUTS.items() if name in TERMS else ():
        given = outputs(factor).logits.requires_grad_()
        value = TERMS[name](given)
        (gradient,) = torch.autograd.grad(value.sum(), given)
        found |= {f"{kind} term": value.detach().numpy(), f"{kind} slope": gradient.numpy()}
    return found


def stage(name: str) -> Numbers:
    """Losses alone of all epochs of all stages, to be held as close as a function's values."""
    found = recipe(more=f"augmentation=none rules=plain {GIVEN['methods'][name]}", method=name)
    return {key: value for key, value in found.items() if key.endswith(" loss")}


def regime(name: str) -> Numbers:
    """Plain softmax under a regime: its schedule, augmentation, smoothing and what it watches."""
    return recipe(more="rules=plain", regime=name)


def rules(name: str) -> Numbers:
    """Rules that are fitted, or chosen, after a training that knows a little."""
    if name == "gaussians":  # a small network has not as many right answers of each class
        rng = np.random.default_rng(5)
        seen, target = clusters(rng)
        rule = scores.class_gaussians(Outputs(seen, seen), target, known=KNOWN)
        test = rng.normal(0, 2, (64, KNOWN))
        return {"scores": rule(Outputs(test, test), known=KNOWN)}
    own = {"chosen": "tails='3 4' alphas='1 3' temperatures='1 10'"}
    own = own.get(name, "tail=3 alpha=2")
    return recipe("digits", more=f"rules={name} schedule=constant {own}")


def watch(name: str) -> Numbers:
    """What is measured after every epoch, and the epoch that is chosen by it."""
    return recipe("p2", more=f"watch={name} rules=plain schedule=constant features=2")


def optimizer(name: str) -> Numbers:
    """Decay, momentum and the fused step."""
    own = {"adam": "fused=true", "sgd": "nesterov=true"}[name]
    more = f"optimizer={name} {own} weight_decay=0.05 learning_rate=0.01"
    return recipe(more=f"{more} schedule=constant rules=plain")


def validation(name: str) -> Numbers:
    """Split and role of each of some images, of known, negative and unknown classes."""
    roles = {"a": "known", "b": "known", "c": "negative", "d": "negative", "e": "unknown"}
    listed = pd.DataFrame({"wnid": roles.keys(), "role": roles.values()})
    listed = listed.assign(label=[0, 1, -1, -1, -2], source="s", group="g", bin="near")
    many = {"kim_imagenet": 16_000, "kim_cifar": 2_000}.get(name, 50)
    rows = pd.DataFrame({"wnid": np.repeat([*roles], many)})
    rows = rows.assign(sample=rows.index.astype(str), split="train")
    rows.loc[rows.index % 20 == 0, "split"] = "test"
    return {"rows": VALIDATION[name](listed, rows).to_csv()}


def sets(name: str) -> Numbers:
    """Test sets of other readers, or classes of external images."""
    few = {"far": MINI, "external": MINI.replace("features=16", "")}[name]
    benchmark, method = {"far": ("imagenet200", "softmax"), "external": ("closed", "oe")}[name]
    parts = Experiment.named(benchmark, method=method, overrides=few).parts(Machine())
    if name == "external":
        return {"classes": parts.classes.to_csv(), "rows": parts.rows.to_csv()}
    found = {}
    for source, group, batches in parts.far:
        found[f"{source} rows"] = f"{group} {batches.rows.to_csv()}"
        found[f"{source} pixels"] = next(iter(batches(0)))[0][:8].numpy()
    return found


def option(name: str) -> Numbers:
    """A training whose trunk computes in fewer bits, or that keeps each class's mean softmax."""
    how = {"bfloat16": "precision=bfloat16", "means": "means=true"}[name]
    return recipe(more=f"{how} rules=plain schedule=constant")


def recipe(benchmark: str = "cifar10", *, more: str, **chosen: str) -> Numbers:
    """An experiment of two epochs: its history, stage by stage, and 64 rows of its scores."""
    few = FEW if benchmark == "digits" else MINI
    few = few.replace("features=16", "") if chosen.get("method") in LATENT else few
    exp = Experiment.named(benchmark, overrides=f"{few} {more}", **{"method": "softmax"} | chosen)
    parts = exp.parts(Machine())
    model, criterion = exp.network(parts), exp.criterion(parts)
    with TemporaryDirectory() as folder:
        exp.fit(model, criterion, parts, Path(folder))
        stages = sorted(Path(folder).rglob("*.parquet"))
        tables = {str(x.relative_to(folder)): pd.read_parquet(x) for x in stages}
        tables |= exp.scores(model, parts, Path(folder))
    found = {}
    for key, table in tables.items():
        rows = table.iloc[np.linspace(0, len(table) - 1, min(64, len(table))).astype(int)]
        found |= {f"{key} {name}": column for name, column in rows.items()}
    return {k: v.to_numpy() if v.dtype.kind in "biuf" else " ".join(v) for k, v in found.items()}


def _each(rehearsal: Callable[[str], Numbers], names: Iterable[str]) -> dict[str, Callable]:
    return {name: partial(rehearsal, name) for name in sorted(names)}


REHEARSALS: dict[str, dict[str, Callable[[], Numbers]]] = {
    "loss": _each(loss, losses.LOSSES),
    "schedule": _each(schedule, train.SCHEDULES),
    "augment": _each(augment, AUGMENT.keys() - {"none"}),
    "network": _each(network, models.MODELS),
    "normalise": _each(normalise, models.NORMALISE),
    "rule": _each(rule, RULES) | _each(fitted, FITTED) | _each(looks, LOOKS),
    "protocol": _each(protocol, protocols.PROTOCOLS),
    "reader": _each(reader, (*GIVEN["free"], *GIVEN["files"])),
    "measure": _each(measure, (name for name, _ in getmembers(metrics, isfunction))),
    "method": _each(method, catalogue("recipes")["methods"].keys() - {"released"}),
    "stage": _each(stage, (k for k, v in PARTS["training"].items() if STAGES & v.keys())),
    "regime": _each(regime, catalogue("recipes")["regimes"].keys() - {"baseline"}),
    "rules": _each(rules, ("fitted", "latent", "gaussians", "chosen")),
    "watch": _each(watch, ("gamma", "test")),
    "optimizer": _each(optimizer, ("adam", "sgd")),
    "validation": _each(validation, VALIDATION.keys() - {"held_out"}),
    "sets": _each(sets, ("external", "far")),
    "option": _each(option, ("bfloat16", "means")),
}
