"""The students' and the lecturer's copy of the project, made from its notebooks by nbgrader.

A copy is a project of its own: notebooks, params, the miniatures' figures, the package and what
sets it up. Installed from there (`make lab`), the package finds that folder as its project.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Template
from typing import Any

from osnb.base import workbook
from osnb.book import zips
from osnb.teach.course.leaks import leaks, without_hidden_tests

NAME = "osnb-course"  # the folder in a zip
SHARED = (  # what both copies have, beside the package and their notebooks
    *("pyproject.toml", "requirements.lock", "environment.yml", "Makefile", "LICENSE", "binder/*"),
    *("notebooks/README.md", "params/**/*.yaml", "figures/*/mini*/*", "tests/golden/*"),
)
CELL = {"tags", "nbgrader", "deletable", "editable"}  # metadata that a student's cell keeps
BOOK = {"kernelspec", "language_info"}
NEVER = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")
CONFIG = '''"""Settings of nbgrader: notebooks/ is the assignment, its stub is `...`."""

from osnb.teach.course.build import grading

grading(get_config())  # noqa: F821
'''


def build(out: Path, *, teacher: bool) -> list[str]:
    """Write the copy to the folder `out`: whole and checked for leaks, or not at all.

    Args:
        out: a folder that is not there, or empty; or a new file called .zip.
        teacher: whether solutions, hidden tests, outputs and answers stay.

    Returns:
        What leaks, one sentence each; if anything does, nothing is written.

    Raises:
        ValueError: `out` holds something, or a notebook's regions or metadata are not whole.
    """
    with aside(out) as folder:
        if not teacher:
            make_student(folder, "student")
            return refused(folder)
        _shared(folder, "teacher")
        (folder / "nbgrader_config.py").write_text(CONFIG, encoding="utf8")
        for source in workbook.root().glob("notebooks/*"):
            if source.suffix in {".ipynb", ".md"}:
                shutil.copyfile(source, folder / "notebooks" / source.name)
    return []


@contextmanager
def aside(out: Path) -> Iterator[Path]:
    """A folder that becomes `out`, or is packed to it if that is called .zip.

    That is when the block ends well, unless the block took the folder away.

    Raises:
        ValueError: `out` is a file, or a folder that holds something.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"{out} is there already; --out needs a new file or an empty folder")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as place:
        folder = Path(place) / NAME
        folder.mkdir()
        yield folder
        if folder.exists() and out.suffix == ".zip":
            files = sorted(path for path in folder.rglob("*") if path.is_file())
            with workbook.writing(out) as packed:
                zips.pack(packed, {path.relative_to(place).as_posix(): path for path in files})
        elif folder.exists():
            folder.replace(out)


def refused(folder: Path) -> list[str]:
    """What leaks in a students' copy, one sentence each; the folder of one that leaks goes."""
    sentences = leaks(folder, workbook.root() / "notebooks")
    if sentences:
        shutil.rmtree(folder)
    return sentences


def make_student(folder: Path, readme: str) -> None:
    """Fill the folder with the students' copy; `readme`: the page that is its README."""
    import nbformat

    _shared(folder, readme)
    for source in sorted(workbook.root().glob("notebooks/*.ipynb")):
        book = student(source)
        nbformat.validate(book)
        text = nbformat.writes(book) + "\n"
        (folder / "notebooks" / source.name).write_text(text, encoding="utf8")


def student(source: Path) -> Any:
    """A notebook (nbformat's) without outputs, solutions, hidden tests and teacher's cells.

    Raises:
        ValueError: nbgrader refuses its regions or its metadata.
    """
    import nbformat
    from nbconvert.preprocessors import ClearMetadataPreprocessor, TagRemovePreprocessor
    from nbgrader import preprocessors as steps

    book, resources = nbformat.read(source, as_version=4), {}
    try:
        for step in (
            TagRemovePreprocessor(remove_cell_tags={"teacher"}),
            steps.LockCells(),
            steps.ClearSolutions(code_stub={"python": "..."}),
            steps.ClearOutput(),
            steps.ClearHiddenTests(),
            steps.CheckCellMetadata(),
            steps.ComputeChecksums(),
            ClearMetadataPreprocessor(
                preserve_cell_metadata_mask=CELL, preserve_nb_metadata_mask=BOOK
            ),
        ):
            book, resources = step.preprocess(book, resources)
    except Exception as error:  # RuntimeError, ValidationError and others of nbgrader
        raise ValueError(f"{source.name}: {str(error) or type(error).__name__}") from error
    return book


def page(name: str) -> str:
    """A text that a copy holds, from pages/; what both copies say of their set-up is put in."""
    pages = Path(__file__).parent / "pages"
    text = Template((pages / name).read_text(encoding="utf8"))
    return text.substitute(start=(pages / "start.md").read_text(encoding="utf8").rstrip("\n"))


def _shared(folder: Path, readme: str) -> None:
    """What both copies have: set-up, package, params, the miniatures' results, a README."""
    root = workbook.root()
    (folder / "notebooks").mkdir()
    for path in sorted(path for pattern in SHARED for path in root.glob(pattern)):
        target = folder / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    shutil.copytree(workbook.PACKAGE, folder / "osnb", ignore=NEVER)
    (folder / "README.md").write_text(page(f"{readme}.md"), encoding="utf8")


def grading(settings: Any) -> None:
    """nbgrader's settings for the lecturer's copy, which is a course of one assignment.

    Args:
        settings: traitlets' configuration, changed in place as its files do.
    """
    from nbconvert.preprocessors import TagRemovePreprocessor
    from nbgrader.converters import GenerateAssignment, GenerateFeedback
    from nbgrader.preprocessors import NbGraderPreprocessor

    class HideTests(NbGraderPreprocessor):
        """Students get their feedback without hidden tests and keys of quizzes."""

        def preprocess(self, nb, resources):
            return without_hidden_tests(nb), resources

    # nbgrader calls alembic by its name, which is found only where the environment is activated
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    settings.CourseDirectory.course_id = "osnb"
    settings.CourseDirectory.source_directory = "."
    ignored = [".ipynb_checkpoints", "*.pyc", "__pycache__", "feedback", "LECTURER.md"]
    settings.CourseDirectory.ignore = ignored
    settings.ClearSolutions.code_stub = {"python": "..."}
    settings.TagRemovePreprocessor.enabled = True
    settings.TagRemovePreprocessor.remove_cell_tags = {"teacher"}
    steps = GenerateAssignment.preprocessors.default_args[0]
    settings.GenerateAssignment.preprocessors = [TagRemovePreprocessor, *steps]
    steps = GenerateFeedback.preprocessors.default_args[0]
    settings.GenerateFeedback.preprocessors = [HideTests, *steps]
    settings.ExecutePreprocessor.timeout = 600
