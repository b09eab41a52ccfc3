"""The students' and the lecturer's copy of the project, made from its notebooks by nbgrader.

A copy is a project of its own: notebooks, params, the miniatures' figures, the package and what
sets it up. Installed from there (`make lab`), the package finds that folder as its project.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from osnb import repro
from osnb.course import pages
from osnb.course.leaks import leaks

TOP = ("pyproject.toml", "requirements.lock", "environment.yml", "Makefile", "LICENSE")
CELL = {"tags", "nbgrader", "deletable", "editable"}  # metadata that a student's cell keeps
BOOK = {"kernelspec", "language_info"}
NEVER = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")


def build(out: Path, *, teacher: bool) -> list[str]:
    """Write the copy to the folder `out`: whole and checked for leaks, or not at all.

    Args:
        out: a folder that is not there, or empty.
        teacher: whether solutions, hidden tests, outputs and answers stay.

    Returns:
        What leaks, one sentence each; if anything does, nothing is written.

    Raises:
        ValueError: `out` holds something, or a notebook's regions or metadata are not whole.
    """
    with aside(out) as folder:
        (make_teacher if teacher else make_student)(folder)
        found = [] if teacher else leaks(folder, repro.root() / "notebooks")
        if found:
            shutil.rmtree(folder)
    return found


@contextmanager
def aside(out: Path) -> Iterator[Path]:
    """A folder that becomes `out` when the block ends well, unless the block took it away.

    Raises:
        ValueError: `out` is a file, or a folder that holds something.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"{out} is there already; --out needs a new or an empty folder")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as place:
        folder = Path(place) / "made"
        folder.mkdir()
        yield folder
        if folder.exists():
            folder.replace(out)


def make_student(folder: Path) -> None:
    """Fill the folder with the students' copy."""
    _shared(folder, pages.STUDENT)
    for source in sources():
        _write(folder / "notebooks" / source.name, student(source))


def make_teacher(folder: Path) -> None:
    """Fill the folder with the lecturer's copy, which is also nbgrader's course folder."""
    _shared(folder, pages.TEACHER)
    (folder / "nbgrader_config.py").write_text(pages.CONFIG, encoding="utf8")
    for source in (repro.root() / "notebooks").glob("*"):
        if source.suffix in {".ipynb", ".md"}:
            shutil.copyfile(source, folder / "notebooks" / source.name)


def sources() -> list[Path]:
    """The project's notebooks, sorted."""
    return sorted((repro.root() / "notebooks").glob("*.ipynb"))


def student(source: Path) -> Any:
    """A notebook (nbformat's) without outputs, solutions, hidden tests and teacher's cells.

    Raises:
        ValueError: nbgrader refuses its regions or its metadata.
    """
    import nbformat
    from nbconvert.preprocessors import TagRemovePreprocessor
    from nbgrader import preprocessors as steps

    book, known = nbformat.read(source, as_version=4), {}
    try:
        for step in (
            TagRemovePreprocessor(remove_cell_tags={"teacher"}),
            steps.LockCells(),
            steps.ClearSolutions(code_stub={"python": "..."}),
            steps.ClearOutput(),
            steps.ClearHiddenTests(),
            steps.CheckCellMetadata(),
            steps.ComputeChecksums(),
        ):
            book, known = step.preprocess(book, known)
    except Exception as error:  # RuntimeError, ValidationError and others of nbgrader
        raise ValueError(f"{source.name}: {str(error) or type(error).__name__}") from error
    for cell in book.cells:
        cell.metadata = {key: cell.metadata[key] for key in cell.metadata if key in CELL}
    book.metadata = {key: book.metadata[key] for key in book.metadata if key in BOOK}
    return book


def _write(path: Path, book: Any) -> None:
    import nbformat

    nbformat.validate(book)
    path.write_text(nbformat.writes(book) + "\n", encoding="utf8")


def _shared(folder: Path, readme: str) -> None:
    """What both copies have: set-up, package, params, the miniatures' results, a README."""
    root = repro.root()
    (folder / "README.md").write_text(readme, encoding="utf8")
    (folder / "notebooks").mkdir()
    for name in filter(lambda name: (root / name).is_file(), TOP):
        shutil.copyfile(root / name, folder / name)
    if (root / "notebooks" / "README.md").is_file():
        shutil.copyfile(root / "notebooks" / "README.md", folder / "notebooks" / "README.md")
    if (root / "binder").is_dir():
        shutil.copytree(root / "binder", folder / "binder", ignore=NEVER)
    shutil.copytree(repro.PACKAGE, folder / "osnb", ignore=NEVER)
    for each in sorted(root.glob("params/*/*.yaml")):
        _copy(each, folder / each.relative_to(root))
    for each in sorted(root.glob("figures/*/mini*/*")):
        _copy(each, folder / each.relative_to(root))


def _copy(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)
