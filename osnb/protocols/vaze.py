"""Who is known and unknown in Vaze et al. 2022: their published lists.

`standard` gives the five splits of the usual small data sets, `ssb` the Semantic Shift Benchmark
with its easy and hard unknown classes. How such lists are made is in `making`.
"""

from collections.abc import Iterable

import pandas as pd

from osnb import hierarchy
from osnb.catalogue import Catalogue
from osnb.labels import UNKNOWN
from osnb.protocols.shared import CLASS_LIST
from osnb.tables import published

PAPER = "vaze2022"
COLUMNS = [*CLASS_LIST, "label", "source", "group", "bin"]
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


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
    rows = pd.DataFrame({"wnid": _ids(lists), "name": _names(lists), "role": lists["role"]})
    rows = rows.assign(source=lists["source"], group="", bin="", order=lists["order"])
    same = [s for s in _twins(dataset) if split in s]
    others = [f"split {s}" for twins in same for s in twins if s != split]
    note = f" (same known classes as {', '.join(others)})" if others else ""
    return rows_of(f"{dataset}, split {split}{note}", rows, available)


def _ids(lists: pd.DataFrame) -> pd.Series:
    """The classes' ids as the readers give them: torchvision writes 7 of MNIST as "7 - seven"."""
    names = lists["class"].astype(str)
    mnist = lists["source"] == "MNIST"
    words = names[mnist].map(lambda digit: f"{digit} - {DIGITS[int(digit)]}")
    return pd.concat([names[~mnist], words]).reindex(lists.index)


def _names(lists: pd.DataFrame) -> pd.Series:
    names = lists["class"].astype(str)
    tiny = lists["source"] == "TinyImageNet"
    words = names[tiny].map(hierarchy.name)
    return pd.concat([names[~tiny], words]).reindex(lists.index)


def rows_of(protocol: str, rows: pd.DataFrame, available: Iterable[str] | None) -> pd.DataFrame:
    """A protocol's table from its classes: sorted, labelled, restricted and described.

    Args:
        protocol: what `describe` calls it.
        rows: wnid, name, role (known or unknown), source, group, bin and order, which numbers
            the known classes.
        available: ids of the classes to keep; None: all.

    Returns:
        As `standard`. After a restriction, the known classes that are left are numbered anew.

    Raises:
        ValueError: fewer than two known classes are left, or no unknown one.
    """
    chosen = None if available is None else set(available)
    kept = rows if chosen is None else rows[rows["wnid"].isin(chosen)]
    kept = kept.assign(order=kept["order"].fillna(0))
    kept = kept.sort_values(["role", "order"], kind="stable")  # known comes before unknown
    known = kept["role"] == "known"
    if known.sum() < 2 or known.all():
        raise ValueError(
            f"{protocol} needs at least 2 known classes and 1 unknown; the available classes "
            f"give {known.sum()} known and {(~known).sum()} unknown"
        )
    label = (known.cumsum() - 1).where(known, UNKNOWN)
    above = {"superclass_wnid": kept["source"], "superclass_name": kept["source"]}
    table = kept.assign(label=label, **above)[COLUMNS].reset_index(drop=True)
    restricted = "" if len(kept) == len(rows) else f"{len(kept)} of the {len(rows)} classes"
    table.attrs = {"protocol": protocol, "restricted": restricted}
    return table


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
    if len(names) < 2:
        raise ValueError(
            f"closed needs the ids of at least 2 classes in available; got {len(names)}"
        )
    rows = pd.DataFrame({"wnid": names, "name": names, "role": "known", "label": range(len(names))})
    blank = dict.fromkeys(("superclass_wnid", "superclass_name", "source", "group", "bin"), "")
    table = rows.assign(**blank)[COLUMNS]
    table.attrs = {"protocol": "closed", "restricted": ""}
    return table


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
    make = SSB[dataset]
    lists = published(PAPER, f"splits_{dataset}")
    rows = make(lists)
    rows = rows.assign(role=lists["split"].where(lists["split"] == "known", "unknown"))
    bins = lists["split"].where(lists["split"] != "known", "")
    rows = rows.assign(bin=bins, group=bins.replace("medium", "hard"), order=lists["order"])
    return rows_of(f"SSB {dataset}", rows, available)


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
    """A data set's images in a protocol without a validation part, as Vaze et al. train.

    Args:
        classes: what a protocol gave.
        files: one row an image: sample, wnid, split (train or test).

    Returns:
        sample, wnid, role, label, source, group, bin, split, in the order of `files` and with
        its index: all training images of known classes and all test images.
    """
    about = classes.set_index("wnid")[["role", "label", "source", "group", "bin"]]
    rows = files[["sample", "wnid", "split"]].join(about, on="wnid", how="inner")
    kept = rows[(rows["split"] == "test") | (rows["role"] == "known")]
    table = kept[["sample", "wnid", *about, "split"]].copy()
    table.attrs = dict(classes.attrs)
    return table
