"""The students' and the lecturer's copy of the project, made from its notebooks by nbgrader.

A copy is a project of its own: notebooks, params, the miniatures' figures, the package and what
sets it up. Installed from there (`make lab`), the package finds that folder as its project.
"""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import metadata
from itertools import product
from pathlib import Path
from string import Template
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from osnb.base import workbook
from osnb.book import zips
from osnb.teach import doctor
from osnb.teach.course.leaks import BINARY, file_leaks, leaks, read, without_hidden_tests
from osnb.teach.course.whole import SUMS, compare, in_folder

NAME = "osnb-course"  # the folder in a zip
SHARED = (  # what both copies have, beside the package and their notebooks
    *("pyproject.toml", "requirements.lock", "environment.yml", "Makefile", "LICENSE", "binder/*"),
    *("notebooks/README.md", "params/**/*.yaml", "figures/*/mini*/*", "tests/golden/*"),
)
CELL = {"tags", "nbgrader", "deletable", "editable"}  # metadata that a student's cell keeps
BOOK = {"kernelspec", "language_info"}
NEVER = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")
CONFIG = '''"""Settings of nbgrader: notebooks/ is the assignment, its stub is `...`."""

from osnb.teach.course.copies import grading

grading(get_config())  # noqa: F821
'''
# a file in the bundle's folder, on every system
INSIDE = re.compile(rf"{NAME}(/(?!\.\.?(/|$))[^/\\:\x00-\x1f]+)+")
PLATFORM = re.compile(r"(win|macosx|manylinux|musllinux).*?(x86_64|universal2|[a-z0-9]+)$")
SYSTEMS = {  # of a wheel's name: what it is called, and what dependencies' markers say of it
    "win": ("Windows", "win32", "nt"),
    "macosx": ("macOS", "darwin", "posix"),
    "manylinux": ("Linux", "linux", "posix"),
    "musllinux": ("Linux (musl)", "linux", "posix"),
}


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


def learn(folder: Path) -> list[str]:
    """Put the index and the students' notebooks that are not in the folder yet there; their names.

    What a learner has written stays; whoever wants a notebook afresh removes it.
    """
    import nbformat

    folder.mkdir(parents=True, exist_ok=True)
    added = []
    for source in sorted((workbook.root() / "notebooks").glob("*.ipynb")):
        if not (target := folder / source.name).exists():
            with workbook.writing(target) as file:
                file.write_text(nbformat.writes(student(source)) + "\n", encoding="utf8")
            added.append(source.name)
    shutil.copyfile(workbook.root() / "notebooks" / "README.md", folder / "README.md")
    return added


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
    return [], [f"{out}: {len(paths) + 1} files", *notes]


def _report(folder: Path) -> list[str]:
    """Copy the report, if there is one, without its search and what shows solutions."""
    report, target = workbook.out() / "report", folder / "report"
    if not (report / "index.html").is_file():
        return ["no report in it: osnb report makes one"]
    shutil.copytree(report, target, ignore=shutil.ignore_patterns(".*", "searchindex.js"))
    (target / "search.html").write_text(page("no_search.html"), encoding="utf8")
    sources, taken = read(workbook.root() / "notebooks"), 0
    for path in sorted(target.rglob("*")):
        quiet = not path.is_file() or path.suffix in BINARY or "_static" in path.parts
        if quiet or not file_leaks(path, sources, name=path.name):
            continue
        taken += 1
        path.unlink()
        if path.suffix == ".html":
            path.write_text(page("removed.html"), encoding="utf8")
    return [f"{taken} files of the report show solutions and were taken out"] if taken else []


def _wheels(folder: Path, wheels: Path | None) -> list[str]:
    """Copy wheels, and say which packages of the lock have none."""
    if not wheels:
        return ["no wheels in it: README.md says how to fetch them"]
    paths = sorted(wheels.glob("*.whl"))
    if not paths:
        raise ValueError(f"{wheels} holds no *.whl")
    (folder / "wheels").mkdir()
    for path in paths:
        shutil.copyfile(path, folder / "wheels" / path.name)
    return lacking(paths, folder / "requirements.lock")


def lacking(wheels: Iterable[Path], lock: Path) -> list[str]:
    """Sentences on the packages without a wheel, for each Python and system that some wheel is for.

    Wanted is what the lock names, and what the wheels themselves need on that system: a lock made
    on Linux does not name what only Windows needs.

    Raises:
        ValueError: the name of a wheel, or a line of the lock, is not as packaging has them.
    """
    locked, targets = doctor.locked(lock), {path: _targets(path) for path in wheels}
    pairs = {pair for of in targets.values() for pair in of if all(pair)}
    sentences = []
    for python, system in sorted(pairs) or [("", "")]:
        alike = {(python, system), (python, ""), ("", system), ("", "")}
        fit = [path for path, of in targets.items() if of & alike]
        packed = {parse_wheel_filename(path.name)[:2] for path in fit}
        there = {(name, Version(version.public)) for name, version in packed}
        lost = [f"{x}=={v}" for x, v in locked.items() if (x, Version(v)) not in there]
        lost += sorted(_asked(fit, python, system) - locked.keys() - dict(there).keys())
        where = f" for Python {python[2]}.{python[3:]} on {system}" if python else ""
        sentences += [f"wheels{where}"] if where else []
        sentences += [f"no wheel of {', '.join(lost)}{where}"] if lost else []
    return sentences


def _targets(path: Path) -> set[tuple[str, str]]:
    """Pythons, such as cp311, and systems, such as Linux x86_64, of a wheel; "" is every one."""
    tags = parse_wheel_filename(path.name)[3]
    exact = {tag.interpreter if tag.abi != "abi3" else "" for tag in tags}
    systems = set()
    for match in (PLATFORM.match(tag.platform) for tag in tags):
        processors = match[2].replace("universal2", "arm64 x86_64").split() if match else []
        systems |= {f"{SYSTEMS[match[1]][0]} {processor}" for processor in processors} or {""}
    return {*product((x if x.startswith("cp3") else "" for x in exact), systems)}


def _asked(wheels: Iterable[Path], python: str, system: str) -> set[str]:
    """Names of packages that wheels need on that Python and system."""
    where = {"extra": ""}
    if python:
        where["python_version"] = f"{python[2]}.{python[3:]}"
    for name, sys_platform, os_name in SYSTEMS.values():
        if system.startswith(f"{name} "):
            where |= {"sys_platform": sys_platform, "os_name": os_name}
            where["platform_system"] = name.replace("macOS", "Darwin")
    stated = [x for path in wheels for x in metadata.distributions(path=[str(path)])]
    needs = [Requirement(text) for wheel in stated for text in wheel.requires or []]
    return {canonicalize_name(x.name) for x in needs if not x.marker or x.marker.evaluate(where)}


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
