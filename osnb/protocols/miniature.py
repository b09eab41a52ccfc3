"""Small protocols on data that ships with the package, each in the place of a published one."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from osnb import hierarchy
from osnb.labels import NEGATIVE
from osnb.protocols import making
from osnb.protocols.vaze import rows_of, standard

TINY = (6, 24)  # known and unknown classes of each split, in the place of 20 and 180
IMAGENET = (10, 6)  # known classes; easy ones, and as many hard ones
FINE = (10, (3, 3, 4))  # known classes; easy, medium and hard ones
CLOSED = (20, 10)  # known classes, in the place of CIFAR100's; near ones, in that of CIFAR10's
LETTERS = "ACEFHJKMNPRUVWXY"  # the glyphs


def mini_digits(
    *, split: int, glyphs: bool = False, available: Iterable[str] | None = None
) -> pd.DataFrame:
    """MNIST's first two splits on scikit-learn's digits: 6 known, 4 unknown.

    Args:
        split: 0 or 1.
        glyphs: whether letters are unknown classes too, in a group of their own.
        available: as for `standard`.

    Returns:
        As `standard`.

    Raises:
        ValueError: there is no such split.
    """
    _two(split)
    lists = standard("MNIST", split=split)
    names = lists["name"]
    rows = lists.assign(wnid="digit-" + names, source="digits", order=range(len(lists)))
    if glyphs:
        more = pd.DataFrame({"wnid": [f"glyph-{x}" for x in LETTERS], "name": list(LETTERS)})
        more = more.assign(role="unknown", source="glyphs", group="glyphs", bin="", order=len(rows))
        rows = pd.concat([rows, more], ignore_index=True)
    return rows_of(f"mini digits, split {split}", rows, available)


def mini_tinyimagenet(*, split: int, available: Iterable[str] | None = None) -> pd.DataFrame:
    """Two splits of 30 of Tiny ImageNet's classes as drawn synsets. See `standard`.

    Args:
        split: 0 or 1.
        available: as for `standard`.

    Raises:
        ValueError: there is no such split.
    """
    _two(split)
    order = np.random.default_rng([200, split]).permutation(len(hierarchy.TINY_IMAGENET))
    wnids = [hierarchy.TINY_IMAGENET[i] for i in order[: sum(TINY)]]
    bins = ["known"] * TINY[0] + [""] * TINY[1]
    return rows_of(f"mini TinyImageNet, split {split}", _drawn(wnids, bins), available)


def mini_ssb_imagenet(
    *, random_unknown: int = 0, available: Iterable[str] | None = None
) -> pd.DataFrame:
    """Ten ILSVRC classes known, others easy and hard by summed tree distance. See `ssb`.

    Drawn synsets look alike as far as they are near, so here the nearest ones are hard: not as in
    the published lists, see `making.by_distance`.

    Args:
        random_unknown: so many of the other ILSVRC classes are unknown too, in a group "random"
            (Vaze et al. 2022, Sec. 5.2); a smaller number gives the first of them.
        available: as for `standard`.
    """
    known = hierarchy.ILSVRC[::100][: IMAGENET[0]]
    among, size = hierarchy.nouns(), IMAGENET[1]
    found = making.by_distance(
        hierarchy.ILSVRC, known=known, among=among, size=size, hard="smallest"
    )
    rest = sorted({*hierarchy.ILSVRC} - {*known, *found["wnid"]})
    random = [rest[i] for i in np.random.default_rng(0).permutation(len(rest))[:random_unknown]]
    bins = ["known"] * len(known) + [*found["bin"]] + ["random"] * len(random)
    rows = _drawn([*known, *found["wnid"], *random], bins)
    return rows_of("mini SSB ImageNet", rows, available)


def mini_ssb_fine(
    *, attributes: pd.DataFrame, available: Iterable[str] | None = None
) -> pd.DataFrame:
    """Twenty classes of one kind, divided by their attributes as CUB is. See `ssb`.

    Args:
        attributes: 20 rows, numbers that describe a synset, indexed by its wnid.
        available: as for `standard`.

    Raises:
        ValueError: there are not 20 classes.
    """
    if len(attributes) != FINE[0] + sum(FINE[1]):
        raise ValueError(f"need attributes of {FINE[0] + sum(FINE[1])}; got {len(attributes)}")
    near = making.similarity(attributes)
    found = making.search(near, known=FINE[0], sizes=FINE[1], draws=200, seed=0, by="mean")
    return rows_of("mini SSB fine", _drawn([*attributes.index], [*found["bin"]]), available)


def mini_closed(*, available: Iterable[str] | None = None) -> pd.DataFrame:
    """Twenty of Tiny ImageNet's classes known, in the place of CIFAR100 (appendix F).

    Ten others, in the place of CIFAR10, are unknown with bin and group "near": another set of
    classes in the same style. Far ones are other data sets, see `closed`. See `standard`.

    Args:
        available: as for `standard`.
    """
    order = np.random.default_rng(100).permutation(len(hierarchy.TINY_IMAGENET))
    wnids = [hierarchy.TINY_IMAGENET[i] for i in order[: sum(CLOSED)]]
    bins = ["known"] * CLOSED[0] + ["near"] * CLOSED[1]
    return rows_of("mini closed", _drawn(wnids, bins), available)


def mini_kim_digits(*, available: Iterable[str] | None = None) -> pd.DataFrame:
    """Digits 0 to 4 known, 5 and 6 external, 7 to 9 near; letters are far, from another reader.

    In the place of the CIFAR benchmark of Kim et al. 2021, and the classes of the tour.
    """
    kinds = [("known", "")] * 5 + [("negative", "external")] * 2 + [("unknown", "near")] * 3
    rows = pd.DataFrame(kinds, columns=["role", "bin"])
    digits = [str(digit) for digit in range(10)]
    rows = rows.assign(wnid=[f"digit-{digit}" for digit in digits], name=digits, source="digits")
    rows = rows.assign(group=rows["bin"], order=range(10))
    table = rows_of("mini Kim, digits", rows, available)
    table["label"] = table["label"].mask(table["role"] == "negative", NEGATIVE)
    return table


def _two(split: int) -> None:
    if split not in (0, 1):
        raise ValueError(f"need split 0 or 1; got {split!r}")


def _drawn(wnids: list[str], bins: list[str]) -> pd.DataFrame:
    """Rows of drawn classes, known ones numbered as they come."""
    rows = pd.DataFrame({"wnid": wnids, "name": [hierarchy.name(w) for w in wnids], "bin": bins})
    rows["role"] = np.where(rows["bin"] == "known", "known", "unknown")
    rows["bin"] = rows["bin"].replace("known", "")
    return rows.assign(
        source="synsets", group=rows["bin"].replace("medium", "hard"), order=range(len(rows))
    )
