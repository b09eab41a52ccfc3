"""Who is known and unknown in Vaze et al. 2022: their published lists, and miniatures of them.

`standard` gives the five splits of the usual small data sets, `ssb` the Semantic Shift Benchmark
with its easy and hard unknown classes. How such lists are made is in `making`; the miniatures of
the same lists on drawings are in `quickdraw`, those on digits here.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from osnb.base.catalogue import Catalogue
from osnb.base.tables import published
from osnb.protocols import hierarchy
from osnb.protocols.palechor import CLASS_LIST, labelled

PAPER = "vaze2022"
COLUMNS = [*CLASS_LIST, "label", "source", "group", "bin"]
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
# The glyphs: capitals that no digit looks like, without B D G I L O Q S T Z and their like.
LETTERS = "ACEFHJKMNPRUVWXY"


def standard(dataset: str, *, split: int, available: Iterable[str] | None = None) -> pd.DataFrame:
    """One of the five published splits of a small data set.

    Two splits of a data set may hold the same known classes (see `duplicates`): then `describe`
    says so under every table, since results on them are not independent.

    Args:
        dataset: MNIST, SVHN, CIFAR10, CIFAR+10, CIFAR+50 or TinyImageNet.
        split: 0 to 4.
        available: ids of the classes that there are images of; None: all of the list.

    Returns:
        One row a class: wnid (its id as the readers give it), name, role, superclass_wnid and
        superclass_name (the data set it comes from), label, source (the same data set), group
        and bin (both empty). Known classes come first, labelled in the authors' order; unknown
        ones are -2.

    Raises:
        ValueError: no such data set or split, or too few classes are available.
    """
    table = published(PAPER, "splits_standard")
    lists = table[(table["dataset"] == dataset) & (table["split"] == split)]
    if lists.empty:
        raise ValueError(
            f"need one of {', '.join(table['dataset'].unique())} and a split 0 to 4; "
            f"got {dataset!r} and {split!r}"
        )
    classes = [*zip(lists["class"].astype(str), lists["source"], strict=True)]
    rows = pd.DataFrame({"role": lists["role"], "source": lists["source"], "order": lists["order"]})
    # torchvision writes 7 of MNIST as "7 - seven"
    rows["wnid"] = [f"{c} - {DIGITS[int(c)]}" if of == "MNIST" else c for c, of in classes]
    rows["name"] = [hierarchy.name(c) if of == "TinyImageNet" else c for c, of in classes]
    rows = rows.assign(group="", bin="")
    same = [s for s in _twins(dataset) if split in s]
    others = [f"split {s}" for twins in same for s in twins if s != split]
    note = f" (same known classes as {', '.join(others)})" if others else ""
    return rows_of(f"{dataset}, split {split}{note}", rows, available)


def rows_of(protocol: str, rows: pd.DataFrame, available: Iterable[str] | None) -> pd.DataFrame:
    """A protocol's table from its classes: sorted, labelled, restricted and described.

    Args:
        protocol: what `describe` calls it.
        rows: wnid, name, role (known, negative or unknown), source, group, bin and order, which
            numbers the known classes.
        available: ids of the classes to keep; None: all.

    Returns:
        As `standard`. After a restriction, the known classes that are left are numbered anew.

    Raises:
        ValueError: fewer than two known classes are left, or no unknown one.
    """
    above = {"superclass_wnid": rows["source"], "superclass_name": rows["source"]}
    rows = rows.assign(**above, order=rows["order"].fillna(0))
    return labelled(protocol, rows.sort_values("order", kind="stable"), available)[COLUMNS]


def binned(wnids: Sequence[str], bins: Sequence[str], source: str) -> pd.DataFrame:
    """Rows for `rows_of`: classes of the bin "known", numbered as they come, and unknown ones."""
    rows = pd.DataFrame({"wnid": wnids, "name": [hierarchy.name(w) for w in wnids], "bin": bins})
    rows["role"] = np.where(rows["bin"] == "known", "known", "unknown")
    rows["bin"] = rows["bin"].replace("known", "")
    return rows.assign(
        source=source, group=rows["bin"].replace("medium", "hard"), order=range(len(rows))
    )


def closed(*, available: Iterable[str] | None = None) -> pd.DataFrame:
    """All classes of a data set known; what is unknown comes from other data sets (appendix F).

    Args:
        available: ids of its classes, which are labelled in sorted order.

    Returns:
        As `standard`, without unknown classes.

    Raises:
        ValueError: there are fewer than two classes.
    """
    names = sorted(set(available or ()))
    rows = pd.DataFrame({"wnid": names, "name": names, "role": "known", "order": range(len(names))})
    blank = dict.fromkeys(("superclass_wnid", "superclass_name", "source", "group", "bin"), "")
    return labelled("closed", rows.assign(**blank), names, needs=0)[COLUMNS]


def duplicates() -> pd.DataFrame:
    """Splits that hold the same known classes in another order: columns dataset, splits."""
    names = published(PAPER, "splits_standard")["dataset"].unique()
    rows = [(name, ", ".join(map(str, twins))) for name in names for twins in _twins(name)]
    return pd.DataFrame(rows, columns=["dataset", "splits"])


def _twins(dataset: str) -> list[tuple[int, ...]]:
    """Groups of two or more splits whose known classes are the same."""
    table = published(PAPER, "splits_standard").query("role == 'known'")
    part = table[table["dataset"] == dataset]
    sets = part.groupby("split")["class"].agg(lambda names: " ".join(sorted(map(str, names))))
    groups = sets.index.to_series().groupby(sets).agg(tuple)
    return sorted(group for group in groups if len(group) > 1)


def ssb(dataset: str, *, available: Iterable[str] | None = None) -> pd.DataFrame:
    """A data set of the Semantic Shift Benchmark: known classes, easy and hard unknown ones.

    ImageNet's list is that of the Fall 2011 release. Restrict it to the classes that there are
    images of: 20 of its 1,000 hard classes are no longer in the benchmark's package.

    Args:
        dataset: cub, cars, aircraft or imagenet.
        available: as for `standard`.

    Returns:
        As `standard`. `bin` is easy, medium or hard as published; `group` is what results are
        about: easy or hard, medium counted as hard. Both are empty for known classes.

    Raises:
        KeyError: no such data set.
        ValueError: too few classes are available.
    """
    of = SSB[dataset]
    lists = published(PAPER, f"splits_{dataset}")
    known = lists["split"] == "known"
    roles, bins = known.map({True: "known", False: "unknown"}), lists["split"].mask(known, "")
    about = {"role": roles, "bin": bins, "group": bins.replace("medium", "hard")}
    return rows_of(f"SSB {dataset}", of(lists).assign(**about, order=lists["order"]), available)


def _cub(lists: pd.DataFrame) -> pd.DataFrame:
    numbers = (lists["class_index"] + 1).map("{:03}.".format)
    names = lists["class"].str.replace("_", " ")
    return pd.DataFrame({"wnid": numbers + lists["class"], "name": names, "source": "CUB"})


def _cars(lists: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"wnid": lists["class"], "name": lists["class"], "source": "Stanford Cars"})


def _aircraft(lists: pd.DataFrame) -> pd.DataFrame:
    names = lists["manufacturer"] + " " + lists["variant"]
    return pd.DataFrame({"wnid": lists["variant"], "name": names, "source": "FGVC-Aircraft"})


def _imagenet(lists: pd.DataFrame) -> pd.DataFrame:
    rows = pd.DataFrame({"wnid": lists["wnid"], "name": lists["wnid"].map(hierarchy.name)})
    known = lists["split"] == "known"
    return rows.assign(source=known.map({True: "ImageNet", False: "ImageNet-21K-P"}))


SSB = Catalogue(aircraft=_aircraft, cars=_cars, cub=_cub, imagenet=_imagenet)


def whole(classes: pd.DataFrame, files: pd.DataFrame) -> pd.DataFrame:
    """A data set's images in a protocol, none held out of the training, as Vaze et al. train.

    Args:
        classes: what a protocol gave.
        files: one row an image: sample, wnid, split (train, test, or val of a set that has one).

    Returns:
        sample, wnid, role, label, source, group and bin where the protocol has them, split, in the
        order of `files` and with its index: all training and val images of known classes and all
        test images.
    """
    there = [name for name in ("role", "label", "source", "group", "bin") if name in classes]
    about = classes.set_index("wnid")[there]
    rows = files[["sample", "wnid", "split"]].join(about, on="wnid", how="inner")
    kept = rows[(rows["split"] == "test") | (rows["role"] == "known")]
    table = kept[["sample", "wnid", *about, "split"]].copy()
    table.attrs = dict(classes.attrs)
    return table


# Miniatures.


def digit_classes(*, available: Iterable[str] | None = None) -> pd.DataFrame:
    """The protocol of the digits: 0 to 4 known, 5 and 6 negative, 7 to 9 unknown.

    Args:
        available: as for `standard`.

    Returns:
        One row a class in the form of a protocol: wnid, name, role, superclass_wnid,
        superclass_name, label.
    """
    roles = ["known"] * 5 + ["negative"] * 2 + ["unknown"] * 3
    names = [(f"digit-{digit}", str(digit), role, "digit") for digit, role in enumerate(roles)]
    rows = pd.DataFrame(names, columns=["wnid", "name", "role", "superclass_wnid"])
    rows = rows.assign(superclass_name=rows["superclass_wnid"], order=rows.index)
    return labelled("digits", rows, available)[[*CLASS_LIST, "label"]]


def mini_digits(*, split: int, available: Iterable[str] | None = None) -> pd.DataFrame:
    """MNIST's splits on scikit-learn's digits: 6 known, 4 unknown.

    Args:
        split: 0 to 4.
        available: as for `standard`.

    Returns:
        As `standard`.

    Raises:
        ValueError: there is no such split.
    """
    lists = standard("MNIST", split=split)
    wnids = "digit-" + lists["name"]
    rows = lists.assign(wnid=wnids, source="digits", order=range(len(lists)))
    return rows_of(f"mini digits, split {split}", rows, available)
