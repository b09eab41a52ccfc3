"""P1, P2 and P3 of Palechor et al. 2023, and what the rows of every protocol can be asked for.

Each of the three is a rule over the hierarchy: take the ILSVRC classes below some superclasses by
the tree rule, and divide them. `images` divides files as the authors did.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import count, cycle

import numpy as np
import pandas as pd

from osnb.base.labels import NEGATIVE, ROLES, UNKNOWN
from osnb.protocols import hierarchy

CLASS_LIST = ["wnid", "name", "role", "superclass_wnid", "superclass_name"]
SPLITS = ["train", "val", "test"]
LEAST = 5  # training images a class needs, so that a fifth of them is one
OUT = "out"  # a role of superclasses that `moved` takes away
SHARED = "shared"  # a role of superclasses whose classes a rule divides

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
    return listed("P1", below("p1"), available)


def p2(*, available: Iterable[str] | None = None) -> pd.DataFrame:
    """P2, hard: one half of the hunting dogs is known, the other negative. See `p1`.

    The first 30 by wnid are known, the last 31 negative; toy dogs and other four-legged animals
    are unknown.
    """
    return listed("P2", halved(below("p2")), available)


def p3(*, available: Iterable[str] | None = None) -> pd.DataFrame:
    """P3, mixed: 13 superclasses shared out over the three roles, 5 more unknown. See `p1`."""
    return listed("P3", rotated(below("p3")), available)


def below(
    protocol: str, split: int = 0, leaves: Callable[[str], Iterable[str]] = hierarchy.leaves
) -> list[Member]:
    """The classes below a protocol's superclasses, each with its role, which may be `SHARED`.

    Args:
        protocol, split: as in osnb/data/superclasses.csv, which has the superclasses of the
            paper in the printed order of its Tables 3, 4 and 5.
        leaves: the classes at or below a superclass.
    """
    table = pd.read_csv(hierarchy.DATA / "superclasses.csv")
    rows = table[(table["protocol"] == protocol) & (table["split"] == split)]
    pairs = zip(rows["role"], rows["wnid"], strict=True)
    return [(role, above, wnid) for role, above in pairs for wnid in leaves(above)]


def halved(members: list[Member], roles: tuple[str, str] = ("known", "negative")) -> list[Member]:
    """P2's rule: the first half of the shared classes takes one role, the last half the other.

    The last half has one more if their number is odd.
    """
    half = sum(role == SHARED for role, _, _ in members) // 2
    places = count()
    return [(roles[next(places) >= half] if m[0] == SHARED else m[0], *m[1:]) for m in members]


def rotated(members: list[Member], start: int = 0) -> list[Member]:
    """P3's rule: the classes of each shared superclass take `P3_ROLES` in turn, from `start` on."""
    places = defaultdict(lambda: cycle(P3_ROLES[start:] + P3_ROLES[:start]))
    return [(next(places[m[1]]) if m[0] == SHARED else m[0], *m[1:]) for m in members]


def listed(protocol: str, members: list[Member], available: Iterable[str] | None) -> pd.DataFrame:
    """The rows that `p1` tells of; members come in printed order, those that are `OUT` leave."""
    kept = [member for member in members if member[0] != OUT]
    rows = pd.DataFrame(kept, columns=["role", "superclass_wnid", "wnid"])
    names = {"name": "wnid", "superclass_name": "superclass_wnid"}
    rows = rows.assign(**{new: rows[wnid].map(hierarchy.name) for new, wnid in names.items()})
    rows["order"] = rows["wnid"].rank()
    return labelled(protocol, rows, available, needs=2)[[*CLASS_LIST, "label"]]


def labelled(
    protocol: str, rows: pd.DataFrame, available: Iterable[str] | None, *, needs: int = 1
) -> pd.DataFrame:
    """A protocol's table from its classes: restricted, sorted by role, labelled and described.

    Args:
        protocol: what `describe` calls it.
        rows: wnid, role and other columns; `order` numbers the known classes.
        available: ids of the classes to keep; None: all.
        needs: how many of the roles negative and unknown must have a class.

    Returns:
        The rows and `label`. After a restriction, the known classes that are left are numbered
        anew.

    Raises:
        ValueError: fewer than two known classes are left, or too few roles.
    """
    chosen = set(rows["wnid"] if available is None else available)
    kept = rows[rows["wnid"].isin(chosen)]
    kept = kept.sort_values("role", kind="stable", ignore_index=True)  # its names sort as ROLES
    sizes = kept["role"].value_counts().reindex(ROLES, fill_value=0)
    if sizes["known"] < 2 or (sizes.iloc[1:] > 0).sum() < needs:
        wanted = ("", ", 1 negative or unknown", ", 1 negative and 1 unknown")[needs]
        raise ValueError(
            f"{protocol} needs at least 2 known classes{wanted}; the {len(chosen)} available "
            "classes give {known} known, {negative} negative and {unknown} unknown".format(**sizes)
        )
    known = kept["role"] == "known"
    number = kept["order"].where(known).rank(method="first") - 1
    label = number.fillna(kept["role"].map({"negative": NEGATIVE, "unknown": UNKNOWN}))
    restricted = "" if len(kept) == len(rows) else f"{len(kept)} of the {len(rows)} classes"
    table = kept.assign(label=label.astype(np.int64))
    table.attrs = {"protocol": protocol, "restricted": restricted}
    return table


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


def moved(classes: pd.DataFrame, roles: Mapping[str, str]) -> pd.DataFrame:
    """P1, P2 or P3 after superclasses were moved between roles.

    A moved superclass gives its role to the ILSVRC classes below it by the tree rule, but for
    those that have a superclass of their own further down: the nearest one decides, moved or
    not. So moving *dog* in P2 leaves the hunting dogs where they are.

    Args:
        classes: what `p1`, `p2` or `p3` gave.
        roles: by the wnid of a superclass, which may be any synset: known, negative, unknown or
            out.

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
    name = classes.attrs["protocol"].removesuffix(", moved") + ", moved"
    return listed(name, list(members.values()), None)


def _depth(wnid: str) -> int:
    return len(hierarchy.path(wnid))


# What every protocol's rows can be asked for.


def describe(table: pd.DataFrame) -> str:
    """For captions: "P1", or "P1, restricted to 58 of the 349 classes".

    Args:
        table: what a protocol, `images`, `counts`, `superclasses` or `class_list` gave.
    """
    restricted = table.attrs["restricted"]
    return table.attrs["protocol"] + (f", restricted to {restricted}" if restricted else "")


def class_list(classes: pd.DataFrame) -> pd.DataFrame:
    """The printed class list: `CLASS_LIST`, and group and bin where a protocol has them."""
    more = [name for name in ("group", "bin") if name in classes and classes[name].ne("").any()]
    return classes[[*CLASS_LIST, *more]]


def superclasses(classes: pd.DataFrame) -> pd.DataFrame:
    """Columns superclass_wnid, superclass_name, role, classes (their number), in printed order."""
    columns = ["superclass_wnid", "superclass_name", "role"]
    table = classes.groupby(columns, sort=False).size().reset_index(name="classes")
    table.attrs = dict(classes.attrs)
    return table


def images(
    classes: pd.DataFrame,
    files: pd.DataFrame,
    *,
    seed: int = 42,
    held_out: Mapping[str, int] | None = None,
) -> pd.DataFrame:
    """A data set's images in a protocol, divided by the authors' rule.

    The training files of known and negative classes together are split 80 to 20 into train and
    val, stratified by class. Unknown classes are only tested. On ILSVRC this gives the
    authors' lists row by row. Where the files come with a split val, that is the validation part,
    and nothing is drawn.

    Args:
        classes: what a protocol gave.
        files: one row a file: sample (its name with extension, which orders the files of a
            class), wnid, split (train, test, or val). Files of other classes are left out.
        seed: 42 is the released program's; lists in its history were drawn with 4242.
        held_out: how many images of a role are val, in the place of a fifth of each.

    Returns:
        sample, wnid, role, label, split (train, val, test), indexed as `files`: train and val
        in shuffled order if they were drawn, then test by role, wnid and sample. Without training
        files, or without test files, only the rest.

    Raises:
        ValueError: a split is none of train, val and test, or a class has too few images.
    """
    splits = set(files["split"].unique())
    if other := splits - set(SPLITS):
        raise ValueError(f"need the splits train, val and test; got {', '.join(sorted(other))}")
    by_wnid = classes.set_index("wnid")[["role", "label"]]
    rows = files[["sample", "wnid", "split"]].join(by_wnid, on="wnid", how="inner")
    rows = rows.sort_values(["role", "wnid", "sample"])  # the roles' names sort as in ROLES
    parts = [rows[rows["split"] == "test"]]
    if "test" in splits:
        _require(1, "test", classes, parts[0])
    if "train" in splits:
        train = rows[(rows["split"] == "train") & (rows["role"] != "unknown")]
        _require(LEAST, "train", classes[classes["role"] != "unknown"], train)
        val = rows[(rows["split"] == "val") & (rows["role"] != "unknown")]
        if val.empty:
            train, val = _drawn(train, seed, held_out)
        parts = [train, val.assign(split="val"), *parts]
    table = pd.concat(parts)[["sample", "wnid", "role", "label", "split"]]
    table.attrs = dict(classes.attrs)
    return table


def _drawn(
    train: pd.DataFrame, seed: int, held_out: Mapping[str, int] | None
) -> tuple[pd.DataFrame, ...]:
    """Training and validation rows: of each class a fifth, or of each role so many, validate."""
    from sklearn.model_selection import train_test_split

    shares = [(train, {"train_size": 0.8})]
    if held_out:
        shares = [(train[train["role"] == r], {"test_size": n}) for r, n in held_out.items()]
    halves = [
        train_test_split(rows, stratify=rows["wnid"], random_state=seed, **size)
        for rows, size in shares
    ]
    return tuple(pd.concat(half) for half in zip(*halves, strict=True))


def _require(least: int, split: str, classes: pd.DataFrame, rows: pd.DataFrame) -> None:
    sizes = rows["wnid"].value_counts().reindex(classes["wnid"], fill_value=0)
    few = sizes[sizes < least]
    if len(few):
        first, name = few.index[0], classes.set_index("wnid")["name"][few.index[0]]
        first += f" ({name})" if name != first else ""
        more = f", and {len(few) - 1} other classes have too few" if len(few) > 1 else ""
        raise ValueError(
            f"{describe(classes)} needs {least} {split} images or more of each of {len(sizes)} "
            f"classes; {first} has {few.iloc[0]}{more}: leave such classes out"
            + " (validation has a fifth of train where it has none of its own)"
            * (split == "train")
        )


def file_lists(classes: pd.DataFrame, files: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The authors' file lists train, val and test: columns path and label, written without header.

    Args:
        classes: what a protocol gave.
        files: as for `images`; `sample` is the path.
    """
    rows = images(classes, files).rename(columns={"sample": "path"})
    return {split: rows.loc[rows["split"] == split, ["path", "label"]] for split in SPLITS}


def counts(rows: pd.DataFrame) -> pd.DataFrame:
    """Table 1 of the paper for any data set: role, classes, then images in train, val, test.

    Args:
        rows: what `images` gave.
    """
    table = pd.crosstab(rows["role"], rows["split"]).reindex(ROLES, fill_value=0)
    table = table.reindex(columns=SPLITS, fill_value=0).rename_axis(columns=None)
    table.insert(0, "classes", rows.groupby("role")["wnid"].nunique().reindex(ROLES, fill_value=0))
    table = table.reset_index()
    table.attrs = dict(rows.attrs)
    return table


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


def with_negatives(classes: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """A protocol's classes, and below them another one's negatives that it does not have.

    So a method that is trained on images from outside, or settings that are chosen on them, can
    be had on a benchmark that knows no such images. Whether they resemble its unknown classes is
    not asked.

    Args:
        classes: what a protocol gave.
        other: what another one gave; only its negatives are taken.

    Returns:
        As `classes`; columns that only `other` has are left out, those that it lacks are "".

    Raises:
        ValueError: `other` has no negatives, or none that `classes` does not have.
    """
    negative = other[other["role"] == "negative"]
    new = negative[~negative["wnid"].isin(classes["wnid"])].assign(label=NEGATIVE)
    if new.empty:
        named = other.attrs.get("protocol", "the other protocol")
        raise ValueError(f"need negatives from {named}; it has {len(negative)}, none of them new")
    table = pd.concat(
        [classes, new.reindex(columns=classes.columns, fill_value="")], ignore_index=True
    )
    table.attrs = dict(classes.attrs)
    return table
