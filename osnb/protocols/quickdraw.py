"""Lists of Quick, Draw!'s classes, made once by the rules of the papers' lists, and frozen.

Every list has splits 0, 1, ... that are reported, and the split `TUNING`, on which settings are
chosen: its known classes are no known classes of the reported ones, and as far as there are enough
classes the others differ too. Below a superclass counts by all hypernyms, near and far by
`hierarchy.shortest`. The lists are a benchmark, `NAME`: classes.csv holds them, lists.csv their
digests, and a test makes them anew by their rules.
"""

from collections.abc import Callable, Iterable
from functools import cache, partial

import pandas as pd

from osnb.base.catalogue import Catalogue
from osnb.protocols import hierarchy
from osnb.protocols.palechor import listed
from osnb.protocols.vaze import rows_of

NAME, VERSION = "quickdraw-openset", 1
SOURCE = "Quick, Draw!"
TUNING = 100  # as the first of the seeds with which settings are chosen
FOLDER = hierarchy.DATA / "quickdraw"
GROUPS = Catalogue(food="n07705711", mammals="n01861778", vehicles="n04524313")  # food: produce
LISTS = {  # what each is in the place of, and its reported splits
    "quickdraw_cifar10": ("CIFAR10", 5),
    "quickdraw_cifar_plus_10": ("CIFAR+10", 5),
    "quickdraw_cifar_plus_50": ("CIFAR+50", 5),
    "quickdraw_closed": ("CIFAR100 and CIFAR10", 1),
    "quickdraw_kim": ("ImageNet-200", 3),
    "quickdraw_kim_cifar": ("CIFAR-40", 2),
    "quickdraw_p1": ("P1", 1),
    "quickdraw_p2": ("P2", 1),
    "quickdraw_p3": ("P3", 1),
    "quickdraw_ssb_food": ("CUB, food", 5),
    "quickdraw_ssb_mammals": ("CUB, mammals", 5),
    "quickdraw_ssb_things": ("the SSB's ImageNet", 3),
    "quickdraw_ssb_vehicles": ("CUB, vehicles", 5),
    "quickdraw_tinyimagenet": ("TinyImageNet", 5),
}


@cache
def drawings() -> pd.DataFrame:
    """Every class that lists are made of, by wnid: name, kind, group, caution.

    Those in left_out.csv are none: two things under one name, or what in a fifth of its drawings
    or more would pass for another class, which is kept. So says the caution, of cello the eye.
    """
    table = pd.read_csv(FOLDER / "synsets.csv", keep_default_na=False)
    out = table["name"].isin(pd.read_csv(FOLDER / "left_out.csv")["name"])
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


@cache
def _classes() -> pd.DataFrame:
    """protocol, split, role, bin, above and wnid of every list, known classes in their order."""
    return pd.read_csv(FOLDER / "classes.csv", keep_default_na=False)


def frozen(name: str, *, split: int, available: Iterable[str] | None = None) -> pd.DataFrame:
    """One list of the benchmark, its classes under the names by which people were asked to draw.

    Args:
        name: in `LISTS`.
        split: one of its reported ones, from 0 on, or `TUNING`.
        available: wnids of the classes that there are images of; None: all.

    Returns:
        As `palechor.p1` for its P1 to P3, all others as `vaze.ssb`.

    Raises:
        ValueError: no such split, or too few classes are available.
    """
    like, splits = LISTS[name]
    if split not in (*range(splits), TUNING):
        last = f" to {splits - 1}" if splits > 1 else ""
        raise ValueError(f"need split 0{last}, or {TUNING} to choose settings; got {split!r}")
    which = f"split {split}"
    if split == TUNING:  # where fine groups are implements, whichever the group is
        which = "where settings are chosen"
        like = "CUB, implements" if like.startswith("CUB") else like
    title = f"{SOURCE} in the place of {like}, {which}"
    rows = _classes().query("protocol == @name and split == @split")
    if rows["above"].any():
        members = rows[["role", "above", "wnid"]].itertuples(index=False, name=None)
        table = listed(title, [*members], available)
        return table.assign(name=table["wnid"].map(drawings()["name"]))
    about = {"name": rows["wnid"].map(drawings()["name"]), "source": SOURCE}
    about |= {"group": rows["bin"].replace("medium", "hard"), "order": range(len(rows))}
    return rows_of(title, rows.assign(**about), available)


def ssb_fine(*, group: str, split: int, available: Iterable[str] | None = None) -> pd.DataFrame:
    """As CUB: half of one of `GROUPS` known, the others easy, medium and hard; see `frozen`.

    Where settings are chosen the classes are implements, whatever the group is. A bin holds few
    classes: pool the splits, which share them.
    """
    return frozen(FINE[group], split=split, available=available)


FINE = Catalogue({group: f"quickdraw_ssb_{group}" for group in GROUPS})
ssb_things = partial(frozen, "quickdraw_ssb_things")

SPLITS: dict[str, tuple[Callable[..., pd.DataFrame], int]] = {
    name: (partial(frozen, name), splits) for name, (_, splits) in LISTS.items()
}
