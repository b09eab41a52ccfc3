"""Lists of Quick, Draw!'s classes, by the code that makes the papers' lists.

Every list has splits 0, 1, ... that are reported, and the split `TUNING`, on which settings are
chosen: its known classes are no known classes of the reported ones, and as far as there are enough
classes the others differ too. Below a superclass counts by all hypernyms, near and far by
`hierarchy.shortest`. The lists are a benchmark, `NAME`: `frozen` gives their digests.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from hashlib import sha256
from itertools import chain

import numpy as np
import pandas as pd

from osnb.base.catalogue import Catalogue
from osnb.base.labels import ROLES
from osnb.protocols import hierarchy, kim, making
from osnb.protocols.palechor import OUT, below, halved, listed, rotated
from osnb.protocols.vaze import binned, rows_of, standard
from osnb.protocols.vaze import closed as all_known

NAME, VERSION = "quickdraw-openset", 1
SOURCE = "Quick, Draw!"
TUNING = 100  # as the first of the seeds with which settings are chosen

SCENES = ("shape", "sky", "landscape")  # kinds that are far from every thing
TEN = {"automobile": "car", "deer": "cow", "ship": "cruise ship"}  # others have CIFAR10's name
GROUPS = Catalogue(food="n07705711", mammals="n01861778", vehicles="n04524313")  # food: produce
IMPLEMENT = "n03563967"  # tools, pens, pans: the group of the split TUNING
DRAWS = 10  # known sets of a fine group, of which the one with the best separated bins is kept
THINGS = 50  # known classes of `ssb_things`; easy ones, hard ones, known ones of `closed`
KIM = (40, 40, 80)  # known, near and external classes
PLACES = {"ImageNet-200": (0, 3), "CIFAR-40": (3, 2)}  # first of its known sets; their number


@cache
def drawings() -> pd.DataFrame:
    """Every class that lists are made of, by wnid: name, kind, group, caution.

    Those in left_out.csv are none: two things under one name, or what in a fifth of its drawings
    or more would pass for another class, which is kept. So says the caution, of cello the eye. By
    the same count police car, bottlecap and van should be there too; version 1 has them.
    """
    folder = hierarchy.DATA / "quickdraw"
    table = pd.read_csv(folder / "synsets.csv", keep_default_na=False)
    out = table["name"].isin(pd.read_csv(folder / "left_out.csv")["name"])
    return table[(table["wnid"] != "") & ~out].set_index("wnid")


@cache
def things(*kinds: str) -> tuple[str, ...]:
    """The classes of kind thing, or of others, without another one below them, sorted by wnid."""
    wnids = drawings().query("kind in @kinds" if kinds else "kind == 'thing'").index
    above = {node for wnid in wnids for node in hierarchy.ancestors(wnid)}
    return tuple(sorted(set(wnids) - above))


def leaves(wnid: str) -> tuple[str, ...]:
    """The things at or below a synset by all hypernyms, sorted."""
    return tuple(w for w in things() if wnid in (w, *hierarchy.ancestors(w)))


def _tuning(split: int, splits: int) -> bool:
    if split not in (*range(splits), TUNING):
        last = f" to {splits - 1}" if splits > 1 else ""
        raise ValueError(f"need split 0{last}, or {TUNING} to choose settings; got {split!r}")
    return split == TUNING


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """The same rows under the names by which people were asked to draw."""
    names = table["wnid"].map(drawings()["name"])
    return table.assign(name=names)


def _title(like: str, split: int) -> str:
    which = "where settings are chosen" if split == TUNING else f"split {split}"
    return f"{SOURCE} in the place of {like}, {which}"


# Palechor et al. 2023.


def p1(*, split: int, available: Iterable[str] | None = None) -> pd.DataFrame:
    """As P1: half of the mammals known, other animals negative, food and vehicles unknown.

    The other half is known where settings are chosen, and devices are unknown; the negatives are
    the same.

    Args:
        split: 0 or `TUNING`.
        available: wnids of the classes that there are images of; None: all.

    Returns:
        As `palechor.p1`.

    Raises:
        ValueError: no such split, or too few classes are available.
    """
    members = below("quickdraw_p1", split, leaves)
    roles = (OUT, "known") if _tuning(split, 1) else ("known", OUT)
    return _named(listed(_title("P1", split), halved(members, roles), available))


def p2(*, split: int, available: Iterable[str] | None = None) -> pd.DataFrame:
    """As P2: one half of the mammals known, the other negative, other vertebrates unknown.

    The halves change places where settings are chosen, and the other animals are unknown. See
    `p1`.
    """
    members = below("quickdraw_p2", split, leaves)
    roles = ("negative", "known") if _tuning(split, 1) else ("known", "negative")
    return _named(listed(_title("P2", split), halved(members, roles), available))


def p3(*, split: int, available: Iterable[str] | None = None) -> pd.DataFrame:
    """As P3: nine superclasses shared out over the three roles, five others unknown.

    Where settings are chosen the roles start one place further, so that no class is known in
    both, and three other superclasses are unknown. See `p1`.
    """
    members = rotated(below("quickdraw_p3", split, leaves), int(_tuning(split, 1)))
    return _named(listed(_title("P3", split), members, available))


# Vaze et al. 2022.


def _of(
    title: str, known: Sequence[str], others: Mapping[str, Sequence[str]], available
) -> pd.DataFrame:
    """Rows of known classes, and of unknown ones by their bin."""
    bins = ["known"] * len(known) + [name for name, wnids in others.items() for _ in wnids]
    rows = binned([*known, *chain(*others.values())], bins, SOURCE)
    return _named(rows_of(title, rows, available))


def ten(*, tuning: bool) -> dict[str, str]:
    """CIFAR10's classes, and in the place of each the wnid of a class of drawings.

    Where settings are chosen, it is the nearest thing to that one which is not above, below or
    among the ten, nor taken before.
    """
    wnids = pd.Series(drawings().index, drawings()["name"])
    first = {name: wnids[TEN.get(name, name)] for name in kim.CIFAR10.split()}
    if not tuning:
        return first
    rest, second = _apart(first.values()), {}
    for name, wnid in first.items():
        second[name] = min(rest, key=lambda w: (hierarchy.shortest(wnid, w), w))
        rest.remove(second[name])
    return second


def _apart(wnids: Iterable[str]) -> list[str]:
    """The things that are not among these synsets, above or below one."""
    wnids = set(wnids)
    above = {*wnids, *chain.from_iterable(map(hierarchy.ancestors, wnids))}
    return [w for w in things() if w not in above and wnids.isdisjoint(hierarchy.ancestors(w))]


def cifar10(*, split: int, available: Iterable[str] | None = None) -> pd.DataFrame:
    """As CIFAR10's five splits of 6 known and 4 unknown classes, on the nearest ten. See `ten`.

    Args:
        split: 0 to 4, or `TUNING`: the first one's places on ten other classes.
        available: as for `p1`.

    Returns:
        As `vaze.standard`.

    Raises:
        ValueError: no such split, or too few classes are available.
    """
    tuning = _tuning(split, 5)
    lists = standard("CIFAR10", split=0 if tuning else split)
    wnids = lists["wnid"].map(ten(tuning=tuning))
    known = lists["role"] == "known"
    return _of(_title("CIFAR10", split), wnids[known], {"": wnids[~known]}, available)


def cifar_plus(*, size: int, split: int, available: Iterable[str] | None = None) -> pd.DataFrame:
    """As CIFAR+10 and CIFAR+50: 4 of the ten known, so many of the other things unknown.

    Args:
        size: 10 or 50; the ten are among the fifty.
        split: as for `cifar10`.
        available: as for `p1`.
    """
    tuning, name = _tuning(split, 5), f"CIFAR+{size}"
    lists = standard(name, split=0 if tuning else split).query("role == 'known'")
    places = ten(tuning=tuning)
    rest = kim.drawn(_apart(places.values()), f"quickdraw-cifar-{split}")
    return _of(_title(name, split), lists["wnid"].map(places), {"": rest[:size]}, available)


def tinyimagenet(*, split: int, available: Iterable[str] | None = None) -> pd.DataFrame:
    """As Tiny ImageNet's five splits of 20 known and 180 unknown classes, by the same places.

    The 200 are drawn. Where settings are chosen, 20 of the things outside them are known and the
    others unknown. See `cifar10`.
    """
    title, order = _title("TinyImageNet", split), kim.drawn(things(), "quickdraw-tinyimagenet")
    if _tuning(split, 5):
        return _of(title, order[200:220], {"": order[220:]}, available)
    lists = standard("TinyImageNet", split=split)
    places = dict(zip(hierarchy.TINY_IMAGENET, sorted(order[:200]), strict=True))
    wnids, known = lists["wnid"].map(places), lists["role"] == "known"
    return _of(title, wnids[known], {"": wnids[~known]}, available)


def ssb_fine(*, group: str, split: int, available: Iterable[str] | None = None) -> pd.DataFrame:
    """As CUB: half of a group known, the others easy, medium and hard by the nearest known one.

    Of many random known sets the one is kept whose hard classes are nearest, and whose easy ones
    farthest. A bin holds few classes: pool the splits, which share them.

    Args:
        group: one of GROUPS.
        split: 0 to 4, or `TUNING`: implements, whatever the group is.
        available: as for `p1`.

    Returns:
        As `vaze.ssb`.
    """
    wnids = leaves(IMPLEMENT if _tuning(split, 5) else GROUPS[group])
    steps = [[hierarchy.shortest(a, b) for b in wnids] for a in wnids]
    half = len(wnids) // 2
    third = round((len(wnids) - half) / 3)
    sizes = (third, len(wnids) - half - 2 * third, third)
    best = making.search(
        -np.array(steps, np.float64), known=half, sizes=sizes, draws=DRAWS, seed=split, by="mean"
    )
    rows = binned(wnids, best["bin"].tolist(), SOURCE)
    like = f"CUB, {'implements' if split == TUNING else group}"
    return _named(rows_of(_title(like, split), rows, available))


def ssb_things(*, split: int, available: Iterable[str] | None = None) -> pd.DataFrame:
    """As the SSB's ImageNet: 50 things known, 50 easy and 50 hard by their summed distances.

    The nearest are hard, as Sec. 5.1 means it; in the published lists the farthest are.

    Args:
        split: 0 to 2, or `TUNING`.
        available: as for `p1`.
    """
    place = 3 if _tuning(split, 3) else split
    known = kim.drawn(things(), "quickdraw-ssb")[place * THINGS : (place + 1) * THINGS]
    table = making.by_distance(things(), known=known, among=None, size=THINGS, hard="smallest")
    bins = table.groupby("bin")["wnid"].agg(list).to_dict()
    return _of(_title("the SSB's ImageNet", split), known, bins, available)


def closed(*, split: int, available: Iterable[str] | None = None) -> pd.DataFrame:
    """As CIFAR100 and CIFAR10 of appendix F: 50 things known, the nearest ten unknown, bin near.

    Args:
        split: 0 or `TUNING`: 50 other things, and ten others.
        available: as for `p1`.
    """
    tuning = _tuning(split, 1)
    near = ten(tuning=tuning)
    both = {*ten(tuning=False).values(), *ten(tuning=True).values()}
    rest = kim.drawn(_apart(both), "quickdraw-closed")
    known, near = rest[THINGS * tuning :][:THINGS], {"near": [*near.values()]}
    return _of(_title("CIFAR100 and CIFAR10", split), known, near, available)


def closed_ten(*, split: int, available: Iterable[str] | None = None) -> pd.DataFrame:
    """As CIFAR10 of appendix F: all of the nearest ten known; no drawing is unknown. See `ten`.

    Args:
        split: 0, or `TUNING`: ten other classes.
        available: as for `p1`.
    """
    wnids = set(ten(tuning=_tuning(split, 1)).values())
    return _named(all_known(available=wnids if available is None else wnids & set(available)))


# Kim et al. 2021.


def unified(
    *, like: str = "ImageNet-200", split: int, available: Iterable[str] | None = None
) -> pd.DataFrame:
    """As ImageNet-200: 40 things known, 80 external, 40 near by the paper's rules, scenes far.

    Far are shapes, the sky and landscapes. No thing is known in two splits, of CIFAR-40 neither.

    Args:
        like: ImageNet-200, or CIFAR-40, which has other splits by the same rules.
        split: 0 to 2, of CIFAR-40 0 or 1; or `TUNING`.
        available: as for `p1`.

    Returns:
        As `kim.imagenet200`.
    """
    first, splits = PLACES[like]
    place, (size, *sizes) = 5 if _tuning(split, splits) else first + split, KIM
    order = kim.drawn(things(), "quickdraw")
    known = order[place * size : (place + 1) * size]
    near, outer = kim.near_candidates(known, order), kim.external(known, order)
    parts = kim.wordnet_parts(SOURCE, known, outer[: sizes[1]], near[: sizes[0]])
    parts.append(kim.part(SOURCE, "far", things(*SCENES)))
    return _named(kim.joined(_title(like, split), parts, available))


# The benchmark.

SPLITS: dict[str, tuple[Callable[..., pd.DataFrame], int]] = {
    "quickdraw_cifar10": (cifar10, 5),
    "quickdraw_cifar_plus_10": (partial(cifar_plus, size=10), 5),
    "quickdraw_cifar_plus_50": (partial(cifar_plus, size=50), 5),
    "quickdraw_closed": (closed, 1),
    "quickdraw_kim": (unified, 3),
    "quickdraw_kim_cifar": (partial(unified, like="CIFAR-40"), 2),
    "quickdraw_p1": (p1, 1),
    "quickdraw_p2": (p2, 1),
    "quickdraw_p3": (p3, 1),
    "quickdraw_ssb_food": (partial(ssb_fine, group="food"), 5),
    "quickdraw_ssb_mammals": (partial(ssb_fine, group="mammals"), 5),
    "quickdraw_ssb_things": (ssb_things, 3),
    "quickdraw_ssb_vehicles": (partial(ssb_fine, group="vehicles"), 5),
    "quickdraw_tinyimagenet": (tinyimagenet, 5),
}


def frozen() -> pd.DataFrame:
    """Every list of the benchmark and its digest, which `osnb/data/quickdraw/lists.csv` keeps.

    Returns:
        name and version of the benchmark; protocol, split; known, negative, unknown (numbers of
        classes); sha256 of the list as csv, without its index.
    """
    rows = []
    for name, (make, splits) in SPLITS.items():
        for split in (*range(splits), TUNING):
            table = make(split=split)
            sizes = table["role"].value_counts().reindex(ROLES, fill_value=0)
            text = table.to_csv(index=False, lineterminator="\n")
            rows.append((NAME, VERSION, name, split, *sizes, sha256(text.encode()).hexdigest()))
    columns = ["name", "version", "protocol", "split", "known", "negative", "unknown", "sha256"]
    return pd.DataFrame(rows, columns=columns)
