"""Who is known, negative and unknown: P1, P2 and P3 of Palechor et al. 2023.

Each protocol is a rule over the hierarchy: take the ILSVRC classes below some superclasses by
the tree rule, and divide them.
"""

from collections.abc import Iterable

import pandas as pd

from osnb import hierarchy
from osnb.labels import NEGATIVE, ROLES, UNKNOWN
from osnb.protocols.shared import CLASS_LIST

# Superclasses in the printed order of the paper's Tables 3, 4 and 5.
P1_KNOWN = ("n02084071",)  # dog
P1_NEGATIVE = (
    "n02118333",  # fox
    "n02115335",  # wild dog
    "n02114100",  # wolf
    "n02120997",  # feline
    "n02131653",  # bear
    "n02441326",  # musteline mammal
    "n02370806",  # ungulate
    "n02469914",  # primate
)
P1_UNKNOWN = ("n07555863", "n03791235", "n03183080")  # food, motor vehicle, device
P2_SHARED = ("n02087122",)  # hunting dog
P2_UNKNOWN = ("n02085374", *P1_NEGATIVE[:-1])  # toy dog, then fox to ungulate
P3_SHARED = (
    "n02084071",  # dog
    "n01503061",  # bird
    "n02159955",  # insect
    "n03405725",  # furniture
    "n02512053",  # fish
    "n02484322",  # monkey
    "n02958343",  # car
    "n02120997",  # feline
    "n04490091",  # truck
    "n13134947",  # fruit
    "n12992868",  # fungus
    "n02858304",  # boat
    "n03082979",  # computer
)
P3_UNKNOWN = (
    "n01661091",  # reptile
    "n03051540",  # clothing
    "n02370806",  # ungulate
    "n07707451",  # vegetable
    "n02686568",  # aircraft
)

# The classes of a shared superclass, by wnid, take these roles in turn: even positions are known,
# odd ones unknown if divisible by 3, else negative.
P3_ROLES = ("known", "negative", "known", "unknown", "known", "negative")

Member = tuple[str, str, str]  # role, superclass, class


def p1(*, available: Iterable[str] | None = None) -> pd.DataFrame:
    """P1, easy: dogs are known, other four-legged animals negative, food and things unknown.

    Args:
        available: wnids of the classes that a data set has; None: all of ILSVRC.

    Returns:
        One row a class: wnid, name, role, superclass_wnid, superclass_name, label, in printed
        order (known, negative, unknown; by superclass, then by wnid). Known classes are labelled
        0 to K-1 by wnid, negative ones -1, unknown ones -2. `describe` tells a restriction.

    Raises:
        ValueError: fewer than two known classes are available, or no negative or unknown one.
    """
    members = _all("known", P1_KNOWN) + _all("negative", P1_NEGATIVE) + _all("unknown", P1_UNKNOWN)
    return _classes("P1", members, available)


def p2(*, available: Iterable[str] | None = None) -> pd.DataFrame:
    """P2, hard: one half of the hunting dogs is known, the other negative. See `p1`.

    The first 30 by wnid are known, the last 31 negative; toy dogs and other four-legged animals
    are unknown.
    """
    known, negative = _all("known", P2_SHARED), _all("negative", P2_SHARED)
    half = len(known) // 2
    return _classes("P2", known[:half] + negative[half:] + _all("unknown", P2_UNKNOWN), available)


def p3(*, available: Iterable[str] | None = None) -> pd.DataFrame:
    """P3, mixed: 13 superclasses shared out over the three roles, 5 more unknown. See `p1`."""
    shared = [
        (P3_ROLES[position % len(P3_ROLES)], superclass, wnid)
        for superclass in P3_SHARED
        for position, wnid in enumerate(hierarchy.leaves(superclass))
    ]
    return _classes("P3", shared + _all("unknown", P3_UNKNOWN), available)


def _all(role: str, superclasses: Iterable[str]) -> list[Member]:
    return [(role, above, wnid) for above in superclasses for wnid in hierarchy.leaves(above)]


def _classes(protocol: str, members: list[Member], available: Iterable[str] | None) -> pd.DataFrame:
    chosen = {wnid for _, _, wnid in members} if available is None else set(available)
    kept = sorted((m for m in members if m[2] in chosen), key=lambda member: ROLES.index(member[0]))
    by_role = [sorted(wnid for role, _, wnid in kept if role == each) for each in ROLES]
    sizes = [len(wnids) for wnids in by_role]
    if sizes[0] < 2 or not all(sizes):
        raise ValueError(
            f"{protocol} needs at least 2 known classes, 1 negative and 1 unknown; the "
            f"{len(chosen)} available classes give {sizes[0]} known, {sizes[1]} negative and "
            f"{sizes[2]} unknown"
        )
    rows = [
        (wnid, hierarchy.name(wnid), role, above, hierarchy.name(above))
        for role, above, wnid in kept
    ]
    classes = pd.DataFrame(rows, columns=CLASS_LIST)
    label = {"negative": NEGATIVE, "unknown": UNKNOWN}
    classes["label"] = [
        by_role[0].index(w) if role == "known" else label[role] for role, _, w in kept
    ]
    restricted = "" if len(kept) == len(members) else f"{len(kept)} of the {len(members)} classes"
    classes.attrs = {"protocol": protocol, "restricted": restricted}
    return classes


def ilsvrc_files(classes: pd.DataFrame) -> pd.DataFrame:
    """ILSVRC 2012 by its counts alone: as many made-up samples of each class as it has images.

    `counts(images(classes, ilsvrc_files(classes)))` is the paper's Table 1 without a download.
    """
    sizes = pd.read_csv(hierarchy.DATA / "ilsvrc2012_train_counts.csv", index_col="wnid")["count"]
    rows = [
        (f"{split}/{wnid}/{number:04}", wnid, split)
        for wnid in classes["wnid"]
        for split, size in (("train", sizes[wnid]), ("test", 50))
        for number in range(size)
    ]
    return pd.DataFrame(rows, columns=["sample", "wnid", "split"])
