"""What a run's texts choose: entries of catalogues, and data that its readers find or do not.

No room is imported: names are read from the source of the package.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from osnb import repro
from osnb.repro.uses import names_in, with_values

# what a reader of osnb.datasets needs in its folder, any of: patterns, as far as a name tells
NEEDS = {
    "aircraft": ("images_variant_train.txt",),
    "caltech256": ("256_ObjectCategories", "*.*"),
    "cars": ("cars_annos.mat",),
    "cifar10": ("cifar-10-batches-py",),
    "cifar10_parquet": ("cifar10_jpeg.parquet",),
    "cifar100": ("cifar-100-python",),
    "cub": ("images.txt",),
    "fashion_mnist": ("FashionMNIST",),
    "folder": ("n*",),
    "food101": ("food-101/images", "images"),
    "ilsvrc": ("train", "ILSVRC/Data/CLS-LOC/train"),
    "imagenet21k": ("imagenet21k_val", "val", "n*"),
    "isun": ("iSUN",),
    "lsun_crop": ("LSUN",),
    "lsun_fix": ("*",),
    "lsun_resize": ("LSUN_resize",),
    "mnist": ("MNIST",),
    "places365": ("places365_standard/val", "val"),
    "places365_large": ("places365_standard/val", "val"),
    "svhn": ("train_32x32.mat",),
    "textures": ("dtd/images", "images"),
    "tinyimagenet": ("train",),
    "tinyimagenet_fix": ("train",),
    "tinyimagenet_parquet": ("tinyimagenet32_jpeg.parquet",),
}


def checked_choices(notebook: Path, parameters: Mapping[str, Any]) -> None:
    """Refuse a text that is no entry of the catalogue in which the notebook looks it up.

    Raises:
        ValueError: such a text; the message lists the entries.
    """
    for name, word, of in _chosen(notebook, parameters):
        valid = _catalogue(repro.PACKAGE, of)
        if valid and word not in valid:
            sentence = f"{name} {word!r} of {notebook.stem} is not one of: "
            raise ValueError(sentence + ", ".join(sorted(valid)))


def lacking(plan) -> str:
    """A sentence on the data that a run's readers would not find; empty if nothing is missing."""
    if "data" not in plan.parameters:
        return ""
    folder = repro.data(plan.parameters["data"])
    texts = " ".join(str(plan.parameters.get(name, "")) for name in ("dataset", "also"))
    for reader in sorted({*texts.split()} & NEEDS.keys()):
        if not any(any(folder.glob(pattern)) for pattern in NEEDS[reader]):
            places = " or ".join(NEEDS[reader])
            return f"the reader {reader} needs {places} in {folder} (data, else $OSNB_DATA)"
    return ""


def _chosen(notebook: Path, parameters: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(parameter, a word of its value, catalogue) wherever a parameter chooses an entry."""
    texts = tuple(name for name, value in parameters.items() if isinstance(value, str))
    found = notebook.stat()
    for name, of, whole in _places(notebook, texts, found.st_mtime_ns, found.st_size):
        value = parameters[name]
        yield from ((name, word, of) for word in ([value] if whole else value.split()))


@cache
def _places(notebook: Path, texts: tuple, *_version) -> list[tuple[str, str, bool]]:
    """(parameter, catalogue, whether its whole text is an entry) of a notebook's cells.

    They are found as the code's hash finds them, with two words in the place of every value.
    """
    marked = {name: f"{name}:1 {name}:2" for name in texts}
    sources = with_values(repro.code_cells(notebook, parameters=False), marked)
    found = set()
    for names in (names for source in sources for names in names_in(ast.parse(source))):
        for of, entry in pairwise(names):
            if mark := re.fullmatch(r"\[(\w+):1( .*)?\]", entry):
                found.add((mark[1], of, mark[2] is not None))
    return sorted(found)


@cache
def _catalogue(package: Path, name: str) -> set[str]:
    """The entries of a catalogue that is written as one call; nothing where it cannot be told."""
    for text in _texts(package):
        if re.search(rf"^{name} = (Catalogue|Transforms)\(", text, flags=re.MULTILINE):
            made = (node for node in ast.parse(text).body if isinstance(node, ast.Assign))
            call = next(node.value for node in made if ast.unparse(node.targets[0]) == name)
            keys = {keyword.arg for keyword in call.keywords}
            return keys if not call.args and None not in keys else set()
    return set()


@cache
def _texts(package: Path) -> list[str]:
    """The source of every module that makes a catalogue."""
    texts = (file.read_text(encoding="utf8") for file in sorted(package.rglob("*.py")))
    return [text for text in texts if "Catalogue" in text]
