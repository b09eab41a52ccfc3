"""Scores tables: one row per test sample, written whole and checked; and tables as printed.

A scores table is a parquet file. Its columns are `COLUMNS` and then one float64 column per
scoring rule. What it follows from is said by the stamp beside it, see `osnb.base.stamps`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from osnb.base import stamps, workbook
from osnb.base.labels import ROLES, roles

COLUMNS = ("sample", "source", "role", "group", "class", "label", "pred")
BESIDE = ("history.parquet", "outputs.parquet")  # tables that the stamp of the scores explains too


def write(path: Path, scores: pd.DataFrame, stamp: Mapping[str, Any]) -> None:
    """Write a scores table, aside and renamed, and its stamp; equal content gives equal bytes.

    Args:
        path: of the parquet file.
        scores: N rows, `COLUMNS` and float64 columns of scores.
        stamp: of the run, see `osnb.base.stamps`; the files are added here.

    Raises:
        ValueError: the frame breaks the contract; the message says where.
    """
    check(scores)
    table = pa.Table.from_pandas(scores, preserve_index=False)
    rules = [column for column in scores if column not in COLUMNS]
    with workbook.writing(path) as aside:
        pq.write_table(  # split bytes: half the size, the exponents of scores being much alike
            table.replace_schema_metadata(None),
            aside,
            compression="zstd",
            use_dictionary=["source", "role", "group", "class"],
            use_byte_stream_split=rules,
        )
    others = BESIDE if path.stem == "scores" else ()
    names = [path.name, *(name for name in others if path.with_name(name).is_file())]
    stamps.write(path.with_suffix(".json"), dict(stamp) | stamps.explained(path.parent, *names))


def read(path: Path) -> pd.DataFrame:
    """The scores table at `path`, checked; its stamp in `.attrs`.

    Raises:
        ValueError: the file is no whole scores table.
    """
    try:
        scores = pq.read_table(path).to_pandas()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise ValueError(
            f"{path} is no whole scores table ({error}); remove it and run its notebook again"
        ) from error
    check(scores)
    scores.attrs = stamps.read(Path(path).with_suffix(".json")) or {}
    return scores


def check(scores: pd.DataFrame) -> None:
    """Hold a frame against the contract of scores tables.

    Raises:
        ValueError: a column is missing or of another type, a sample appears twice, a role does
            not follow from its label, a prediction is no known class, or a score is NaN.
    """
    missing = [column for column in COLUMNS if column not in scores]
    if missing:
        raise ValueError(f"a scores table needs the columns {COLUMNS}; it lacks {missing}")
    rules = [column for column in scores if column not in COLUMNS]
    wrong = [rule for rule in rules if scores[rule].dtype != np.float64]
    if wrong or not rules:
        raise ValueError(f"scores are float64, at least one rule; got {dict(scores[rules].dtypes)}")
    if scores["sample"].duplicated().any():
        twice = scores["sample"][scores["sample"].duplicated()].iloc[0]
        raise ValueError(f"each sample has one row; {twice!r} has several")
    if (roles(scores["label"].to_numpy()) != scores["role"].to_numpy()).any():
        raise ValueError(f"roles are {ROLES}, for labels >= 0, -1 and -2; they disagree")
    if len(scores) and scores["pred"].min() < 0:
        raise ValueError(f"pred is a known class, >= 0; got {scores['pred'].min()}")
    empty = [rule for rule in rules if scores[rule].isna().any()]
    if empty:
        raise ValueError(f"scores are numbers; {empty} hold a NaN")


def published(paper: str, table: str) -> pd.DataFrame:
    """A table of a paper as printed, from osnb/published.

    Raises:
        FileNotFoundError: no such table; the message lists the paper's.
    """
    folder = workbook.PACKAGE / "published" / paper
    path = folder / f"{table}.csv"
    if not path.is_file():
        names = ", ".join(sorted(file.stem for file in folder.glob("*.csv")))
        raise FileNotFoundError(f"no table {table!r} of {paper!r}; there are: {names or 'none'}")
    return pd.read_csv(path)
