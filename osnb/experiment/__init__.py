"""An experiment is a benchmark, a recipe and a seed: everything that is trained is trained by one.

Here are `Experiment` and what it is made of, from the names in params/; without torch, so that
what nothing reads is refused at once.

- `layers`: how params/benchmarks.yaml, params/recipes.yaml and overrides are laid over each other.
- `parts`: rows and batches of an experiment.
- `trained`: its network, its loss, the training, and what is measured after every epoch.
- `scored`: the scores table: rules, fitted and chosen ones, what a method itself has to say.
- `drawn`: what the networks of a method draw.
"""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from osnb.base import workbook
from osnb.experiment import layers

if TYPE_CHECKING:
    from numpy import ndarray
    from pandas import DataFrame
    from torch.nn import Module

    from osnb.experiment.parts import Parts

CHOSEN = ("benchmark", "size", "method", "regime", "split", "seed")  # what names an experiment
COLUMNS = ("benchmark", "split", "network", "regime", "method", "seed")
DATA = ("protocol", "reader", "validation", "tested", "means", "also", "counts", "far", "external")


@dataclass(frozen=True)
class Benchmark:
    """Who is known, on which images, and which others are tested.

    Attributes:
        name: in params/benchmarks.yaml.
        size: mini, tiny or paper.
        split: which of the protocol's divisions into known and unknown classes.
        settings: protocol, reader, other test sets, external images, tested roles.
    """

    name: str
    size: str
    split: int
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Recipe:
    """How a network is trained: a regime and a method, laid over a benchmark's base.

    Attributes:
        regime, method: in params/recipes.yaml.
        settings: by part, its name and the keyword arguments of its function.
    """

    regime: str
    method: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Machine:
    """What changes no number: where data lie, and how they are read.

    Attributes:
        data: their folder; empty: $OSNB_DATA, or data/ in the project. "cifar10=/a textures=/b"
            gives some readers folders of their own.
        workers: threads that decode ahead; none for images that are resident.
        cache: folder where photographs are kept resized; empty: none.
        resident: keep all pixels on the GPU, for small images.
        captured: a training step on a GPU is one CUDA graph.
    """

    data: str = ""
    workers: int = 0
    cache: str = ""
    resident: bool = False
    captured: bool = False

    @classmethod
    def of(cls, text: str, *, data: str = "") -> "Machine":
        """From text such as "workers=4 cache=/tmp/c resident=true".

        Raises:
            ValueError: a word is no NAME=VALUE, or names nothing of a machine.
        """
        defaults = {"workers": 0, "cache": "", "resident": False, "captured": False}
        given = layers.words(text)
        if wrong := [name for name in given if name not in defaults]:
            raise ValueError(f"a machine has {', '.join(defaults)}; got {wrong[0]!r}")
        return cls(data=data, **{k: layers.typed(k, v, defaults[k]) for k, v in given.items()})


@dataclass(frozen=True)
class Experiment:
    """One training: a benchmark, a recipe and a seed.

    Attributes:
        seed: of the initial weights, the order of images, and the augmentation.
        overrides: the text that changed settings, for the names of variants.
    """

    benchmark: Benchmark
    recipe: Recipe
    seed: int
    overrides: str = field(default="", compare=False)

    @classmethod
    def named(
        cls,
        benchmark: str,
        *,
        method: str,
        regime: str = "baseline",
        size: str = "mini",
        split: int = 0,
        seed: int = 0,
        overrides: str = "",
    ) -> "Experiment":
        """The experiment of these names, some of its settings changed.

        Args:
            benchmark: in params/benchmarks.yaml, or a file of one's own, NAME.yaml.
            method, regime: in params/recipes.yaml.
            size: mini, tiny or paper; own for a file of one's own.
            split: 0 up to the protocol's number of splits, or the one on which settings are chosen.
            seed: >= 0.
            overrides: such as "epochs=30 network=resnet9 width=8"; quotes hold blanks.

        Raises:
            ValueError: a name is none of those there are, nothing reads an override, parts do not
                fit each other, or the benchmark lacks what the recipe needs; the message says what
                there is.
        """
        benchmarks, recipes = layers.catalogue("benchmarks"), layers.catalogue("recipes")
        base = layers.benchmark(benchmark, size)
        of_method = layers.entry("method", method, size, base)
        of_regime = layers.entry("regime", regime, size, base)
        for name in {"rules", "normalise"} & of_method.keys():  # those that belong to it
            of_regime.pop(name, None)
        facts = {name: base[name] for name in layers.FACTS if name in base}
        base = {k: v for k, v in base.items() if k not in (*facts, "regimes", "methods")}
        below = [benchmarks["base"] | recipes["base"], base, of_method, of_regime]
        where = f"{benchmark} in size {size}, method {method}, regime {regime}"
        settings = layers.resolved(below, overrides, facts | {"method": method}, where)
        settings = layers.noted(settings, benchmark)
        layers.one_of_splits(split, facts, where)
        if not 0 <= seed < 2**32:  # numpy's
            raise ValueError(f"a seed is from 0 to 4294967295; got {seed}")
        data = {k: settings.pop(k) for k in DATA if k in settings}
        of_data = Benchmark(benchmark, size, split, data)
        return cls(of_data, Recipe(regime, method, settings), seed, overrides)

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that the functions of this experiment are given, ready for json.

        A part that can be chosen is a mapping with its `name`. Two experiments with equal
        settings train the same network, whatever they are called.
        """
        own = {"split": self.benchmark.split, "seed": self.seed}
        return {**self.benchmark.settings, **self.recipe.settings, **own}

    @property
    def columns(self) -> dict[str, Any]:
        """What every collected table says of the run, such as benchmark, split and network."""
        network = self.recipe.settings["network"]
        width = f" {network['width']}" if "width" in network else ""
        values = self.choices | {"network": network.get("backbone") or network["name"] + width}
        return {name: values[name] for name in COLUMNS}

    def parts(self, machine: Machine) -> "Parts":
        """Rows and batches: training, validation, test, external and far images."""
        from osnb.experiment.parts import parts

        return parts(self, machine)

    def network(self, parts: "Parts") -> "Module":
        """The network with its first weights, on the device; an ensemble's in a ModuleList."""
        from osnb.experiment import trained

        return trained.network(self, parts)

    def criterion(self, parts: "Parts") -> Callable:
        """The loss: f(out, labels) -> (N,), its mean is what a step minimises."""
        from osnb.experiment import trained

        return trained.criterion(self, parts)

    def fit(
        self,
        network: "Module",
        criterion: Callable,
        parts: "Parts",
        directory: Path,
        *,
        devices: int = 1,
    ) -> "DataFrame":
        """Train the network; its history, one row per epoch, of an ensemble the last member's.

        Args:
            network, criterion, parts: of this experiment.
            directory: for checkpoints and history, a folder each for an ensemble's members.
            devices: processes that share every batch; they change numbers.
        """
        from osnb.experiment import trained

        return trained.fit(self, network, criterion, parts, directory=directory, devices=devices)

    def scores(self, network: "Module", parts: "Parts", directory: Path) -> dict[str, "DataFrame"]:
        """`scores`, one row per test image, and the tables that come with it.

        Those are `scores_best` where an epoch was chosen as the best, `selection` where rules'
        settings were chosen, `mean_softmax` where the benchmark wants it.
        """
        from osnb.experiment.scored import scored

        return scored(self, network, parts, directory)

    def drawn(
        self, network: "Module", parts: "Parts", directory: Path, *, count: int = 10
    ) -> "dict[str, ndarray]":
        """What the networks of the trained method draw.

        Of OSRCI, and of G-OpenMax, training images and the counterfactuals that the search made of
        them; of ARPL+CS images made of noise; of C2AE held-out images, rebuilt once with their own
        class told and once with another. Other methods draw nothing.

        Args:
            network, parts, directory: of this experiment, trained.
            count: images in a row.

        Returns:
            Rows by what they are, (count, C, S, S) uint8.
        """
        from osnb.experiment.drawn import drawn

        return drawn(self, network, parts, directory, count=count)

    def __str__(self) -> str:
        """The settings, a line for each part that was chosen, and one for the plain values."""
        lines, plain = [], []
        for kind, value in self.settings.items():
            if isinstance(value, dict):
                own = ", ".join(f"{k}={layers.spelled(v)}" for k, v in value.items() if k != "name")
                lines.append(f"{kind}: {value['name']}" + f" ({own})" * bool(own))
            else:
                plain.append(f"{kind}={layers.spelled(value) or repr('')}")
        lines.append(", ".join(plain))
        return "\n".join(fill(x, 96, subsequent_indent="  ", break_long_words=False) for x in lines)

    @property
    def choices(self) -> dict[str, Any]:
        """The names and numbers that `named` takes, but for the overrides."""
        there, how = self.benchmark, self.recipe
        values = (there.name, there.size, how.method, how.regime, there.split, self.seed)
        return dict(zip(CHOSEN, values, strict=True))


def of(parameters: Mapping[str, Any]) -> Experiment:
    """The experiment that a training notebook's parameters mean.

    Raises:
        ValueError: as `Experiment.named`.
    """
    for name in ("devices", "threads"):
        if parameters.get(name, 1) < 1:
            raise ValueError(f"{name} is 1 or more; got {parameters[name]}")
    names = [name for name in (*CHOSEN, "overrides") if name in parameters]
    return Experiment.named(**{name: parameters[name] for name in names})


def is_training(parameters: Mapping[str, Any]) -> bool:
    """Whether a notebook's parameters are those of an experiment."""
    return {"benchmark", "method", "regime"} <= parameters.keys()


def folded(parameters: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a training notebook whose overrides say `more`, in the words of `named`."""
    words = [f"{name}={shlex.quote(layers.spelled(value))}" for name, value in more.items()]
    return {**parameters, "overrides": " ".join([parameters.get("overrides", ""), *words]).strip()}


def described(notebook: str) -> dict[str, Experiment]:
    """The experiment of each params file of a training notebook, by the file's stem."""
    return {stem: of(found) for stem, found in workbook.experiments(notebook).items()}


def variant(name: str, base: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """`name`, and what tells a run from the one of that name: NAME-seed3-weight_decay0.1.

    That is what was chosen otherwise, and which settings then differ from those that this choice
    has with the overrides of `base`; in alphabetical order.

    Args:
        name: of the params file.
        base: parameters that the params file describes.
        parameters: of the run.
    """
    if not is_training(parameters):
        return workbook.variant(name, base, parameters)
    old, new = of(base), of(parameters)
    chosen = {k: v for k, v in new.choices.items() if v != old.choices[k]}
    try:
        expected = Experiment.named(**new.choices, overrides=old.overrides)
    except ValueError:  # what they changed is not there any more
        expected = Experiment.named(**new.choices)
    plain = {"normalise": "none", "counts": "", "far": ""}
    before, now = (plain | dict(layers.flat(x.settings)) for x in (expected, new))
    for kind, part in new.settings.items():  # another part differs by its name, not by its defaults
        if isinstance(part, dict) and part["name"] != before[kind]:
            before |= layers.defaults(layers.parts(), kind, part["name"])
    changed = {k: v for k, v in now.items() if k not in before or before[k] != v}
    others = {k for k in parameters if k in ("devices", "threads") and parameters[k] != base[k]}
    differ = chosen | changed | {k: parameters[k] for k in others}
    return "".join([name, *(workbook.difference(k, differ[k]) for k in sorted(differ))])


def run_name(notebook: str, parameters: Mapping[str, Any]) -> str:
    """The name of a run: that of its params file, or of a variant of it."""
    name = parameters["run"]
    file = workbook.root() / "params" / notebook / f"{name}.yaml"
    if not file.is_file():
        return name
    base = workbook.declared(workbook.root() / "notebooks" / f"{notebook}.ipynb")
    return variant(name, base | workbook.params(file), parameters)
