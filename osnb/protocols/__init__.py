"""Who is known, negative and unknown: rows of classes. `PROTOCOLS` names them all.

`palechor` and `kim` hold rules over the hierarchy, `vaze` the published lists of Vaze et al. 2022
and small ones on data that ships with the package, `making` the ways in which such lists are made,
`roles_csv` reads those of a csv file.
"""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from unicodedata import normalize

import pandas as pd

from osnb.base.catalogue import Catalogue
from osnb.base.labels import ROLES
from osnb.protocols import kim, quickdraw, vaze
from osnb.protocols.palechor import (
    OUT,
    P3_ROLES,
    SPLITS,
    class_counts,
    class_list,
    counts,
    describe,
    file_lists,
    ilsvrc_files,
    images,
    moved,
    p1,
    p2,
    p3,
    superclasses,
    with_negatives,
)
from osnb.protocols.vaze import closed, duplicates, rows_of, ssb, standard, whole


def roles_csv(*, roles: Path, available: Iterable[str] | None = None) -> pd.DataFrame:
    """Who is known, negative and unknown, by the columns class and role of a csv file.

    A class may stand in several rows, of one role, so that a list of images serves too. Known
    classes are numbered in the order of the file. A column `group` (near, far, ...) tells the
    unknown classes apart in the scores table.

    Args:
        roles: the file.
        available: classes of the images; None: those of the file.

    Returns:
        As `vaze.standard`; classes of role out are left out.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a column, a role, or two known classes and an unknown one are missing, a class
            has two roles, has images but no role, or a role but no images.
    """
    table = read_csv(roles, "class", "role")
    rows = table.assign(group=table.get("group", ""))[["class", "role", "group"]].drop_duplicates()
    if wrong := sorted(set(rows["role"]) - {*ROLES, OUT}):
        raise ValueError(f"{roles}: a role is {', '.join(ROLES)} or {OUT}; got {', '.join(wrong)}")
    if (twice := rows["class"].duplicated()).any():
        name = rows.loc[twice, "class"].iloc[0]
        raise ValueError(f"{roles}: a class has one role and one group; {name!r} has several")
    there = set(rows["class"] if available is None else available)
    kept = rows[rows["role"] != OUT].rename(columns={"class": "wnid"})
    sides = {"no role": there - set(rows["class"]), "no images": set(kept["wnid"]) - there}
    if wrong := [f"{', '.join(sorted(names)[:5])}: {why}" for why, names in sides.items() if names]:
        how = f"The role {OUT} leaves a class out"
        forms = ({normalize("NFC", name.strip()) for name in names} for names in sides.values())
        if set.intersection(*forms):
            how = "Two differ only in blanks or in how an accent is stored: rename the folder"
        raise ValueError(f"{roles}: {'; '.join(wrong)}. {how}")
    if "unknown" not in set(kept["role"]):
        raise ValueError(f"{roles}: no class is unknown, and nothing could be tested")
    about = {"name": kept["wnid"], "source": "", "bin": kept["group"], "order": range(len(kept))}
    return rows_of("roles of a csv file", kept.assign(**about), None)


def read_csv(file: Path, *needed: str) -> pd.DataFrame:
    """A csv file as text, every cell without blanks around it.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no csv, has no row, lacks a column that is needed, or a cell of one.
    """
    try:
        table = pd.read_csv(file, dtype=str, keep_default_na=False, skipinitialspace=True)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} is no csv file in UTF-8: {error}") from None
    if lacking := [name for name in needed if name not in table]:
        raise ValueError(
            f"{file} needs the columns {', '.join(needed)}; it lacks {', '.join(lacking)} "
            f"and has {', '.join(table)}" + "; separate cells by commas" * (";" in table.columns[0])
        )
    table = table.apply(lambda column: column.str.strip())
    if table.empty or (table[list(needed)] == "").any(axis=None):
        raise ValueError(f"{file}: every row needs {' and '.join(needed)}; some lack one")
    return table


PROTOCOLS = Catalogue(
    cifar10=partial(standard, "CIFAR10"),
    cifar40=kim.cifar40,
    cifar40_draw1=partial(kim.cifar40, draw=1),
    cifar40_draw2=partial(kim.cifar40, draw=2),
    cifar_plus_10=partial(standard, "CIFAR+10"),
    cifar_plus_50=partial(standard, "CIFAR+50"),
    closed=closed,
    digits=vaze.digit_classes,
    imagenet200=kim.imagenet200,
    mini_digits=vaze.mini_digits,
    mnist=partial(standard, "MNIST"),
    p1=p1,
    p2=p2,
    p3=p3,
    quickdraw_closed_ten=quickdraw.closed_ten,
    roles_csv=roles_csv,
    ssb_aircraft=partial(ssb, "aircraft"),
    ssb_cars=partial(ssb, "cars"),
    ssb_cub=partial(ssb, "cub"),
    ssb_imagenet=partial(ssb, "imagenet"),
    svhn=partial(standard, "SVHN"),
    tiny_kim=kim.tiny_kim,
    tinyimagenet=partial(standard, "TinyImageNet"),
    **{name: make for name, (make, _) in quickdraw.SPLITS.items()},
)
