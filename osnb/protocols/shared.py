"""What every protocol's rows can be asked for; `images` divides files as Palechor et al. did."""

import pandas as pd

from osnb import hierarchy
from osnb.labels import ROLES

CLASS_LIST = ["wnid", "name", "role", "superclass_wnid", "superclass_name"]
SPLITS = ["train", "val", "test"]
LEAST = 5  # training images a class needs, so that a fifth of them is one


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


def images(classes: pd.DataFrame, files: pd.DataFrame, *, seed: int = 42) -> pd.DataFrame:
    """A data set's images in a protocol, divided by the authors' rule.

    The training files of known and negative classes together are split 80 to 20 into train and
    val, stratified by class. Unknown classes are only tested. On ILSVRC this gives the
    authors' lists row by row.

    Args:
        classes: what a protocol gave.
        files: one row a file: sample (its name with extension, which orders the files of a
            class), wnid, split (train or test). Files of other classes are left out.
        seed: 42 is the released program's; lists in its history were drawn with 4242.

    Returns:
        sample, wnid, role, label, split (train, val, test), indexed as `files`: train and val
        in shuffled order, then test by role, wnid and sample. Without training files, or
        without test files, only the rest.

    Raises:
        ValueError: a split is neither train nor test, or a class has too few images.
    """
    splits = set(files["split"])
    if other := splits - {"train", "test"}:
        raise ValueError(f"need the splits train and test; got {', '.join(sorted(other))}")
    roles = classes.set_index("wnid")[["role", "label"]]
    rows = files[["sample", "wnid", "split"]].join(roles, on="wnid", how="inner")
    rows = rows.sort_values(["role", "wnid", "sample"])  # the roles' names sort as in ROLES
    parts = [rows[rows["split"] == "test"]]
    if "test" in splits:
        _require(1, "test", classes, parts[0])
    if "train" in splits:
        train = rows[(rows["split"] == "train") & (rows["role"] != "unknown")]
        _require(LEAST, "train", classes[classes["role"] != "unknown"], train)
        parts = [*_train_val(train, seed), *parts]
    table = pd.concat(parts)[["sample", "wnid", "role", "label", "split"]]
    table.attrs = dict(classes.attrs)
    return table


def _require(least: int, split: str, classes: pd.DataFrame, rows: pd.DataFrame) -> None:
    found = rows["wnid"].value_counts().reindex(classes["wnid"], fill_value=0)
    few = found[found < least]
    if len(few):
        first = f"{few.index[0]} ({hierarchy.name(few.index[0])})"
        raise ValueError(
            f"{describe(classes)} needs {least} {split} images or more of each of {len(found)} "
            f"classes; {first} has {few.iloc[0]}, and {len(few) - 1} other classes have too few: "
            "restrict the protocol with available="
        )


def _train_val(rows: pd.DataFrame, seed: int) -> list[pd.DataFrame]:
    from sklearn.model_selection import train_test_split

    parts = train_test_split(rows, train_size=0.8, stratify=rows["wnid"], random_state=seed)
    return [part.assign(split=split) for part, split in zip(parts, SPLITS, strict=False)]


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
