"""The students' and the lecturer's copy of the project, made from its notebooks by nbgrader.

A copy is a project of its own: notebooks, params, the miniatures' figures, the package and what
sets it up. Installed from there (`make lab`), the package finds that folder as its project. The
lecturer's copy is a term: one assignment of nbgrader for each session, with the term's seeds.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from string import Template
from typing import Any

from osnb.base import workbook
from osnb.book import index, zips
from osnb.teach.course import slides, term
from osnb.teach.course.leaks import REGION, file_leaks, leaks, read
from osnb.teach.course.whole import SUMS, compare, in_folder

NAME = "osnb-course"  # the folder in a zip
PAGES = ("README.md", "GLOSSARY.md", "REFERENCES.md")  # to which notebooks link
# what both copies have, beside the package and their notebooks
SHARED = ("pyproject.toml", "requirements.lock", "environment.yml", "Makefile", "LICENSE")
SHARED += ("params/**/*.yaml", "figures/*/mini*/*", "tests/golden/*")
CELL = {"tags", "nbgrader", "deletable", "editable"}  # metadata that a student's cell keeps
BOOK = {"kernelspec", "language_info"}
BANK = "teach/course/bank.yaml"  # how what counts is computed: the lecturer's
NEVER = shutil.ignore_patterns("__pycache__", "*.pyc", ".*", Path(BANK).name)
STUB = {"python": "..."}
CONFIG = '''"""Settings of nbgrader: an assignment a session, in solutions/; its stub is `...`."""

from osnb.teach.course.copies import grading

grading(get_config())  # noqa: F821
'''
# a file in the bundle's folder, on every system
INSIDE = re.compile(rf"{NAME}(/(?!\.\.?(/|$))[^/\\:\x00-\x1f]+)+")


def build(out: Path) -> list[str]:
    """Write the students' copy to the folder `out`: whole and checked for leaks, or not at all.

    Args:
        out: a folder that is not there, or empty; or a new file called .zip.

    Returns:
        What leaks, one sentence each; if anything does, nothing is written.

    Raises:
        ValueError: `out` holds something, or a notebook's regions or metadata are not whole.
    """
    with aside(out) as folder:
        make_student(folder, "student")
        return refused(folder)


def build_term(out: Path, *, secret: str, learners: Path) -> None:
    """Write the lecturer's copy: what is graded in one term, for nbgrader and for print.

    Beside the students' notebooks it has solutions/ by session, with the seeds of hidden tests
    drawn from the secret; quizzes/, a folder a learner to hand out; exam/, print/ and slides/.

    Args:
        out: as for `build`.
        secret: the term's, known to nobody else.
        learners: a csv with a column id, as `nbgrader db student import` takes it.

    Raises:
        ValueError: as for `build`; the secret is short, or an id is no name of a folder.
    """
    table = term.learners(learners)
    texts = term.exam(secret)
    with aside(out) as folder:
        make_student(folder, "teacher")
        root = workbook.root()
        shutil.copyfile(root / "notebooks" / "LECTURER.md", folder / "notebooks" / "LECTURER.md")
        shutil.copyfile(workbook.PACKAGE / BANK, folder / "osnb" / BANK)
        table.to_csv(folder / "learners.csv", index=False)  # as nbgrader reads it, in plain UTF-8
        (folder / "nbgrader_config.py").write_text(CONFIG, encoding="utf8")
        for number, session in enumerate(index.paths()["one term"], start=1):
            _session(folder, number, session.notebooks, secret, table["id"])
        for name, text in texts.items():
            _written(folder / "exam" / name, text)
        _written(folder / "print" / "ten_samples.html", page("ten_samples.html"))
        slides.build(folder / "slides")


def _session(folder: Path, number: int, notebooks: list[str], secret: str, learners: Any) -> None:
    """One assignment: its sources, and each learner's quiz."""
    import nbformat

    name, own = f"session_{number:02}", term.derived(secret, "session", number)
    for notebook in notebooks:
        book = nbformat.read(workbook.root() / "notebooks" / f"{notebook}.ipynb", as_version=4)
        for cell in book.cells:
            cell.source = term.seeded(cell.source, own, notebook)
        _written(folder / "solutions" / name / f"{notebook}.ipynb", nbformat.writes(book) + "\n")
    quiz = term.quiz_notebook(number, secret=own)
    _written(folder / "solutions" / name / "quiz.ipynb", nbformat.writes(quiz) + "\n")
    for learner in learners:
        quiz = student(term.quiz_notebook(number, secret=own, learner=learner), "quiz")
        _written(folder / "quizzes" / learner / name / "quiz.ipynb", nbformat.writes(quiz) + "\n")


def _written(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf8")


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
    """Fill the folder with the students' copy: set-up, package, params, the miniatures' results.

    Args:
        folder: an empty one.
        readme: the page that is its README.
    """
    root = workbook.root()
    for path in sorted(path for pattern in SHARED for path in root.glob(pattern)):
        target = folder / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    shutil.copytree(workbook.PACKAGE, folder / "osnb", ignore=NEVER)
    (folder / "README.md").write_text(page(f"{readme}.md"), encoding="utf8")
    learn(folder / "notebooks")


def learn(folder: Path) -> list[str]:
    """Put the index and the students' notebooks that are not in the folder yet there; their names.

    What a learner has written stays; whoever wants a notebook afresh removes it.
    """
    import nbformat

    folder.mkdir(parents=True, exist_ok=True)
    added = []
    for source in sorted((workbook.root() / "notebooks").glob("*.ipynb")):
        if not (target := folder / source.name).exists():
            book = student(nbformat.read(source, as_version=4), source.name)
            nbformat.validate(book)
            workbook.write_text(target, nbformat.writes(book) + "\n")
            added.append(source.name)
    for name in PAGES:
        if (source := workbook.root() / "notebooks" / name).is_file():
            shutil.copyfile(source, folder / name)
    return added


def _cleared(cell: Any) -> bool:
    """Whether a cell has no solution, or has the stub in its place, as in a students' copy."""
    solution = cell.metadata.get("nbgrader", {}).get("solution")
    has_stub = re.search(rf"^\s*{re.escape(STUB['python'])}$", cell.source, re.M)
    return not REGION.search(cell.source) and (not solution or bool(has_stub))


def student(book: Any, name: str) -> Any:
    """A notebook (nbformat's) without outputs, solutions, hidden tests and teacher's cells.

    Raises:
        ValueError: nbgrader refuses its regions or its metadata; `name` says whose.
    """
    from nbconvert.preprocessors import ClearMetadataPreprocessor, TagRemovePreprocessor
    from nbgrader import preprocessors as steps

    resources = {}
    # nbgrader would make a stub alone of what it has cleared once
    stubs = [] if all(map(_cleared, book.cells)) else [steps.ClearSolutions(code_stub=STUB)]
    try:
        for step in (
            TagRemovePreprocessor(remove_cell_tags={"teacher"}),
            steps.LockCells(),
            *stubs,
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
        raise ValueError(f"{name}: {str(error) or type(error).__name__}") from error
    return book


def page(name: str) -> str:
    """A text that a copy holds, from pages/; what both copies say of their set-up is put in."""
    pages = Path(__file__).parent / "pages"
    text = Template((pages / name).read_text(encoding="utf8"))
    return text.safe_substitute(start=(pages / "start.md").read_text(encoding="utf8").rstrip("\n"))


def grading(settings: Any) -> None:
    """nbgrader's settings for the lecturer's copy, in which a session is an assignment.

    Args:
        settings: traitlets' configuration, changed in place as its files do.
    """
    from nbconvert.preprocessors import TagRemovePreprocessor
    from nbgrader.converters import Autograde, GenerateAssignment, GenerateFeedback

    from osnb.teach.course.grades import Afresh, HideTests

    # nbgrader calls alembic by its name, which is found only where the environment is activated
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    settings.CourseDirectory.course_id = "osnb"
    settings.CourseDirectory.source_directory = "solutions"
    settings.ClearSolutions.code_stub = {"python": "..."}
    settings.TagRemovePreprocessor.enabled = True
    settings.TagRemovePreprocessor.remove_cell_tags = {"teacher"}
    steps = GenerateAssignment.preprocessors.default_args[0]
    settings.GenerateAssignment.preprocessors = [TagRemovePreprocessor, *steps]
    settings.Autograde.create_student = False  # a folder that is no learner's id is named
    steps = Autograde.sanitize_preprocessors.default_args[0]
    settings.Autograde.sanitize_preprocessors = [*steps[:2], Afresh, *steps[2:]]
    steps = GenerateFeedback.preprocessors.default_args[0]
    settings.GenerateFeedback.preprocessors = [HideTests, *steps]
    settings.ExecutePreprocessor.timeout = 600


# The students' copy for a room without a network: one zip or folder, with a checksum file


def bundle(out: Path, *, wheels: Path | None = None) -> tuple[list[str], list[str]]:
    """Write the students' copy, the report and wheels, with checksums; equal input, equal bytes.

    Args:
        out: a new file called .zip, or a new or empty folder.
        wheels: a folder of *.whl to pack, or none.

    Returns:
        What leaks, one sentence each (nothing is written then), and notes for the lecturer.

    Raises:
        ValueError: `out` is there, or `wheels` holds no wheel.
    """
    with aside(out) as folder:
        make_student(folder, "bundle")
        notes = [*_report(folder), *_wheels(folder, wheels)]
        if sentences := refused(folder):
            return sentences, []
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        sums = [f"{workbook.file_hash(x)}  {x.relative_to(folder).as_posix()}\n" for x in paths]
        (folder / SUMS).write_text("".join(sums), encoding="utf8")
    return [], [f"{out}: {len(paths)} files", *notes]


def _report(folder: Path) -> list[str]:
    """Copy the report, if there is one, without its search and what shows solutions."""
    report, target = workbook.out() / "report", folder / "report"
    if not (report / "index.html").is_file():
        return ["no report in it: osnb report makes one"]
    shutil.copytree(report, target, ignore=shutil.ignore_patterns(".*", "searchindex.js"))
    (target / "search.html").write_text(page("no_search.html"), encoding="utf8")
    sources, taken = read(workbook.root() / "notebooks"), 0
    for path in sorted(target.rglob("*")):
        quiet = not path.is_file() or "_static" in path.parts
        if quiet or not file_leaks(path, sources, name=path.name):
            continue
        taken += 1
        path.unlink()
        if path.suffix == ".html":
            path.write_text(page("removed.html"), encoding="utf8")
    return [f"{taken} files of the report show solutions and were taken out"] if taken else []


def _wheels(folder: Path, wheels: Path | None) -> list[str]:
    """Copy wheels, and say what pip lacks of the lock on this system."""
    if not wheels:
        return ["no wheels in it: README.md says how to fetch them"]
    paths = sorted(wheels.glob("*.whl"))
    if not paths:
        raise ValueError(f"{wheels} holds no *.whl")
    (folder / "wheels").mkdir()
    for path in paths:
        shutil.copyfile(path, folder / "wheels" / path.name)
    words = ["install", "--dry-run", "--ignore-installed", "--no-index", "--only-binary", ":all:"]
    words += ["--find-links", folder / "wheels", "--requirement", folder / "requirements.lock"]
    done = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True)
    faults = [line for line in done.stderr.splitlines() if line.startswith("ERROR: No matching")]
    here = f"for Python {sys.version_info[0]}.{sys.version_info[1]} on {sys.platform}"
    if done.returncode:
        return [f"pip finds no wheel {here}: {(faults or done.stderr.splitlines())[-1]}"]
    return [f"wheels of all that the lock needs {here}"]


def check(place: Path) -> int:
    """Hold every file of a bundle, zip or folder, against its checksum file.

    Returns:
        The number of files, without the checksum file and what use of a folder makes in it.

    Raises:
        ValueError: a file is missing, changed, not listed, or would be unpacked elsewhere.
        FileNotFoundError: there is no such bundle.
    """
    if place.is_dir():
        return len(compare(f"{place}", in_folder(place)))
    if not place.is_file():
        raise FileNotFoundError(f"{place} is not there")
    with zips.opened(place) as archive:
        members = zips.members(archive, _check_inside)
        files = {x.removeprefix(f"{NAME}/"): partial(archive.open, members[x]) for x in members}
        return len(compare("it", files))


def _check_inside(name: str, _size: int) -> None:
    if not INSIDE.fullmatch(name):
        raise ValueError(f"{name!r} would be unpacked outside of {NAME}/")
