"""What of solutions, hidden tests and teacher's cells students could read.

nbgrader clears what regions and tags mark. This looks into every file for what was not marked:
the mark of a region, and a line of a region or of a teacher's cell that stands nowhere else in the
sources. A line that also stands outside of all regions (`return x`) is no secret. What counts in
a quiz stands in no file: it follows from the term's secret.
"""

import copy
import html
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from osnb.base import workbook

REGION = re.compile(r"^.*BEGIN (SOLUTION|HIDDEN TESTS).*\n((?s:.*?))^.*END \1.*\n?", re.M)
HIDDEN = re.compile(r"^.*BEGIN HIDDEN TESTS.*\n((?s:.*?))^.*END HIDDEN TESTS.*\n?", re.M)
MARK = re.compile(r"(BEGIN|END) (SOLUTION|HIDDEN TESTS)")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
BINARY = {".png", ".parquet", ".whl", ".woff", ".woff2", ".xz", ".zip", ".gz", ".ico", ".inv"}
Secrets = list[tuple[str, list[str]]]  # where, and the lines, of each region and teacher's cell
LINE, SHORT = 12, 8  # letters and signs of a line worth a search, and of a hidden test's line


def leaks(student_folder: Path, source_folder: Path) -> list[str]:
    """Where the students' notebooks, or other files beside them, show what they must not.

    Args:
        student_folder: all files below it are read, but wheels and the package `osnb`, whose
            functions the solutions are.
        source_folder: holds the source notebooks.

    Returns:
        One sentence for each leak, with the place; empty if there is none.
    """
    secrets, sentences = read(source_folder), []
    for path in sorted(path for path in Path(student_folder).rglob("*") if path.is_file()):
        name = path.relative_to(student_folder).as_posix()
        top = name.partition("/")[0]
        if top not in {"osnb", "wheels", "SHA256SUMS"}:
            sentences += file_leaks(path, secrets, name=name)
    return list(dict.fromkeys(sentences))


def file_leaks(path: Path, secrets: Secrets, *, name: str) -> list[str]:
    """The leaks in one file of a students' copy, called `name` in the sentences."""
    if path.suffix != ".ipynb":
        return _in_text(name, _plain(path), secrets)
    book = json.loads(path.read_text(encoding="utf8"))
    sentences = []
    for number, cell in enumerate(book.pop("cells"), start=1):
        if "teacher" in cell["metadata"].get("tags", []):
            sentences.append(f"{name}, cell {number} is the teacher's")
        sentences += _in_text(f"{name}, cell {number}", "\n".join(_texts(cell)), secrets)
    return sentences + _in_text(f"{name}, its metadata", "\n".join(_texts(book)), secrets)


def read(source_folder: Path) -> Secrets:
    """What the notebooks of a folder keep: lines that stand outside of all secrets are none."""
    secrets, shown = [], []
    for path in sorted(Path(source_folder).glob("*.ipynb")):
        for number, cell in enumerate(workbook.cells(path), 1):
            text, where = cell["source"], f"{path.stem}, cell {number}"
            if "teacher" in cell["tags"]:
                secrets.append((f"the teacher's cell ({where})", text))
                continue
            found = REGION.findall(text)
            secrets += [(f"the {kind.lower()} ({where})", secret) for kind, secret in found]
            shown.append(squeezed(REGION.sub("", text)))
    known = "\n".join(shown)

    def secret(line: str) -> bool:
        return len(squeezed(line)) >= LINE and squeezed(line) not in known

    return [(where, [*filter(secret, _lines(text))]) for where, text in secrets]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


@cache
def squeezed(text: str) -> str:
    """A text without what layout and quoting change."""
    return re.sub(r"[\s\\]+", "", text).replace("'", '"')


def _texts(value: Any) -> Iterator[str]:
    """Every text in a json value, keys included, lists of lines joined."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        value = "".join(line if line.endswith("\n") else f"{line}\n" for line in value)
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _plain(path: Path) -> str:
    """The text of a file; "" if it holds none. Of a page, what a reader sees."""
    if path.suffix in BINARY:
        return ""
    text = path.read_text(encoding="utf8", errors="replace")
    if path.suffix not in {".html", ".svg"}:
        return text
    return html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"<!--|-->", "", text)))


def _in_text(where: str, text: str, secrets: Secrets) -> list[str]:
    """The leaks in one text."""
    sentences = [f"{where} has the mark of a region"] if MARK.search(text) else []
    whole = squeezed(text)
    for secret, lines in secrets:
        if line := next((line for line in lines if squeezed(line) in whole), ""):
            sentences.append(f"{where} shows a line of {secret}: {line}")
    return sentences


def without_hidden_tests(book: Any) -> Any:
    """A notebook (nbformat's) without hidden tests, and without outputs that show a line of them.

    Of an error in a cell with hidden tests the traceback goes, since it prints the cell; what the
    error says stays. nbgrader's feedback goes through this: it would show them.
    """
    book = copy.deepcopy(book)
    lines = _lines("\n".join(text for cell in book.cells for text in HIDDEN.findall(cell.source)))
    hidden = {line for line in lines if len(line) >= SHORT}

    def shows(output: Any) -> bool:
        plain = COLOUR.sub("", "\n".join(_texts(output)))
        return any(line in plain for line in hidden)

    for cell in book.cells:
        tested = HIDDEN.search(cell.source)
        cell.source = HIDDEN.sub("", cell.source).rstrip("\n")
        for output in cell.get("outputs", []):
            if output.output_type == "error" and (tested or shows(output)):
                output.traceback = [f"{output.ename}: {output.evalue}"]
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if not shows(output)]
    return book
