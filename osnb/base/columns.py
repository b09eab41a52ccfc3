"""Columns of somebody else's csv, parquet or npz file: read exactly, or refused in a sentence."""

import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as text
import pyarrow.parquet as pq

from osnb.base import workbook

DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError)  # of a zip
WHOLE, EXACT = re.compile(r"[+-]?\d+"), 2.0**53  # of numbers; below it a double holds each


def of_columns(file: Path, make: Callable[[dict[str, np.ndarray]], Any]) -> Any:
    """What `make` makes of the columns of somebody else's csv, parquet or npz file, by their names.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file cannot be read, or `make` refuses it; the message begins with its path.
    """
    try:
        return make(_columns(file))
    except (ValueError, OSError, pa.ArrowException) as error:
        if getattr(error, "filename", None):  # the system says which file is not there
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{file}: {reason}") from None


def _columns(file: Path) -> dict[str, np.ndarray]:
    readers = {".csv": text.read_csv, ".parquet": pq.read_table}
    if file.suffix not in (*readers, ".npz"):
        raise ValueError(f"needs a name that ends in .csv, .npz or .parquet; got {file.suffix!r}")
    if not file.is_file():
        raise FileNotFoundError(2, "no such file", str(file))
    if file.suffix == ".npz":
        return arrays(file)
    table = readers[file.suffix](file)
    if twice := [name for name in table.column_names if table.column_names.count(name) > 1]:
        raise ValueError(f"has more than one column {twice[0]!r}")
    columns = {name: table[name].to_numpy() for name in table.column_names}
    if file.suffix == ".csv":
        if binary := [field.name for field in table.schema if pa.types.is_binary(field.type)]:
            raise ValueError(f"column {binary[0]} is no text in UTF-8: save the file as UTF-8")
        _held(file, [k for k, v in columns.items() if v.dtype.kind == "f"], columns)
    return columns


def _held(file: Path, doubles: list[str], columns: dict[str, np.ndarray]) -> None:
    """Refuse whole numbers of a csv file that Arrow has read as doubles and that these round."""
    for name in [name for name in doubles if (abs(columns[name]) >= EXACT).any()]:
        how = text.ConvertOptions(include_columns=[name], column_types={name: pa.string()})
        words = text.read_csv(file, convert_options=how)[0].to_pylist()
        for word in filter(WHOLE.fullmatch, words):
            if Decimal(word) != Decimal(float(word)):
                raise ValueError(f"{name} needs numbers that float64 holds exactly; got {word}")


def arrays(file: Path) -> dict[str, np.ndarray]:
    """The arrays of an npz file, by name; pickled objects are refused.

    Raises:
        ValueError: the file is no npz file of plain arrays.
    """
    try:
        with zipfile.ZipFile(file) as packed:
            for member in filter(workbook.grows, packed.infolist()):
                raise ValueError(f"{member.filename} {workbook.GROWS}; np.savez packs nothing")
        with np.load(file, allow_pickle=False) as found:
            return dict(found)
    except (ValueError, TypeError, MemoryError, RuntimeError, *DAMAGED) as error:
        raise ValueError(f"is no npz file of plain arrays ({error})") from None
