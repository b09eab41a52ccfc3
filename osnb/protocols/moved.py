"""A protocol with some superclasses in other roles than the paper gave them."""

from collections.abc import Iterable, Mapping

import pandas as pd

from osnb import hierarchy
from osnb.labels import ROLES
from osnb.protocols.palechor import _classes

OUT = "out"


def moved(
    classes: pd.DataFrame, roles: Mapping[str, str], *, available: Iterable[str] | None = None
) -> pd.DataFrame:
    """P1, P2 or P3 after superclasses were moved between roles.

    A moved superclass gives its role to the ILSVRC classes below it by the tree rule, but for
    those that have a superclass of their own further down: the nearest one decides, moved or
    not. So moving *dog* in P2 leaves the hunting dogs where they are.

    Args:
        classes: what `p1`, `p2` or `p3` gave.
        roles: by the wnid of a superclass, which may be any synset: known, negative, unknown or
            out.
        available: wnids of the classes that a data set has; None: all of ILSVRC.

    Returns:
        As from `p1`, labels counted anew; with no moves equal to `classes`.

    Raises:
        ValueError: a role is none of the four, or fewer than two known classes, no negative or
            no unknown one are left.
        KeyError: no such synset.
    """
    if wrong := {role for role in roles.values() if role not in {*ROLES, OUT}}:
        raise ValueError(f"a role is {', '.join(ROLES)} or {OUT}; got {', '.join(sorted(wrong))}")
    if not roles:
        return classes.copy()
    printed = classes[["role", "superclass_wnid", "wnid"]].itertuples(index=False, name=None)
    members = {wnid: (role, above, wnid) for role, above, wnid in printed}
    for above in sorted(roles, key=lambda wnid: (_depth(wnid), wnid)):
        for wnid in hierarchy.leaves(above):
            if wnid not in members or _depth(members[wnid][1]) <= _depth(above):
                members[wnid] = (roles[above], above, wnid)
    kept = [member for member in members.values() if member[0] != OUT]
    name = classes.attrs["protocol"].removesuffix(", moved") + ", moved"
    return _classes(name, kept, available)


def _depth(wnid: str) -> int:
    return len(hierarchy.path(wnid))


def class_counts(classes: pd.DataFrame, sizes: pd.DataFrame) -> pd.DataFrame:
    """How many classes and images each role has, without dividing the training files.

    Of unknown classes only test images count. "train and val" is what `counts` of `images` gives
    for the two together, test the same.

    Args:
        classes: what a protocol or `moved` gave.
        sizes: number of files, a row for each wnid, columns train and test.

    Returns:
        Role, classes, train and val, test; a row for each of the three roles.

    Raises:
        KeyError: a class has no row in `sizes`.
    """
    rows = sizes.loc[classes["wnid"], ["train", "test"]].reset_index(drop=True)
    rows.loc[classes["role"].to_numpy() == "unknown", "train"] = 0
    groups = rows.groupby(classes["role"].to_numpy())
    table = groups.sum().reindex(ROLES, fill_value=0).astype(int)
    table.insert(0, "classes", groups.size().reindex(ROLES, fill_value=0))
    table = table.rename(columns={"train": "train and val"})
    return table.rename_axis("role").reset_index()
