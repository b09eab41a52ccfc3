"""Where the project lies, what its params files describe, and how its files are written.

What asks for `root` or `PACKAGE` calls it through this module, so that replacing `workbook.root`
replaces it everywhere; the rest comes from the files beside it.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any

from osnb.base.files import digest, file_hash, write_json, writing
from osnb.base.notebooks import (
    LOCAL,
    PLAIN,
    checked,
    code_cells,
    declared,
    difference,
    params,
    variant,
)

PACKAGE = Path(__file__).parent.parent
# what two runs of one experiment may differ in: chance, and how a machine does the work
REPEATS = LOCAL | {"seed", "split", "devices", "threads"}

__all__ = [
    "LOCAL",
    "PACKAGE",
    "PLAIN",
    "checked",
    "code_cells",
    "data",
    "declared",
    "difference",
    "digest",
    "experiments",
    "file_hash",
    "out",
    "params",
    "root",
    "seed_all",
    "variant",
    "write_json",
    "writing",
]


def root() -> Path:
    """The project's folder, whatever the working folder: the nearest one with pyproject.toml.

    Raises:
        FileNotFoundError: neither the package nor the working folder lies in a project.
    """
    return _above(PACKAGE, Path.cwd())


@cache
def _above(*starts: Path) -> Path:
    for start in starts:
        for folder in (start, *start.parents):
            if (folder / "pyproject.toml").is_file() and (folder / "notebooks").is_dir():
                return folder
    raise FileNotFoundError(
        f"no project (pyproject.toml beside notebooks/) above {' or '.join(map(str, starts))}: "
        "work in a clone of the project"
    )


def out() -> Path:
    """The folder that runs/ and figures/ are written under: $OSNB_OUT, else the project."""
    return Path(os.environ["OSNB_OUT"]).resolve() if os.environ.get("OSNB_OUT") else root()


def data(folder: str) -> Path:
    """Where data sets lie: the folder given, else $OSNB_DATA, else data/ in the project."""
    return Path(folder or os.environ.get("OSNB_DATA") or root() / "data").resolve()


def experiments(notebook: str) -> dict[str, dict[str, Any]]:
    """All parameters that each params file of a notebook describes, by the file's stem."""
    files = sorted((root() / "params" / notebook).glob("*.yaml"))
    book = root() / "notebooks" / f"{notebook}.ipynb"
    defaults = declared(book) if book.is_file() else {}
    return {file.stem: defaults | params(file) for file in files}


def seed_all(seed: int) -> None:
    """Seed Python, numpy's global generator and, if it is loaded, torch."""
    import random
    import sys

    import numpy as np

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002, for libraries that draw from it
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)
