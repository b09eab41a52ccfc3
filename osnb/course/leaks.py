"""What of solutions, hidden tests, answers and teacher's cells students could read.

Three nets, each of which a leak has to pass:

1. Words that a students' copy never holds: region marks, a `teacher` cell, answers filled in.
2. The key of a quiz, in any notebook or file, also spaced, numbered or in capitals; an option of a
   quiz set in bold; a hidden seed, where words say that it is one.
3. Secret lines. A line of a region or a teacher's cell that stands nowhere else in the sources is
   secret by itself. One that also stands outside (`return x`, an import, or the whole solution
   for a second time) is not; but where one place shows half of a region, counted in words and
   signs of its telling lines, it stands there twice. A solution as short as
   `return logits.max(axis=1)` cannot be told from ordinary code, so nobody looks for a second one.

Layout, quotes, backslashes and HTML tags are no cover; a hash or another encoding is.
"""

import base64
import binascii
import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

MARK = re.compile(r"(BEGIN|END) (SOLUTION|HIDDEN TESTS)")
FILLED = re.compile(r"""\b(answers|key)\s*=\s*\\?["'][a-d]{2,}\\?["']""", re.IGNORECASE)
KEY = re.compile(r"""\b(?:answers|key)\s*=\s*["']([a-d]{2,})["']""")
SEED = re.compile(r"\bseed\s*=\s*(\d+)")
BOLD = re.compile(r"^\s*[-*] [a-d]\).*?(\*\*|__|<[a-z]|==)", re.MULTILINE | re.IGNORECASE)
WHOLE = re.compile(r"^\s*[-*] [a-d]\)\s*([*_~])(?:(?!\1).)+\1\W*$", re.MULTILINE)
TOKEN = re.compile(r"\w+|[^\w\s]")
BINARY = {
    ".png",
    ".parquet",
    ".whl",
    ".woff",
    ".woff2",
    ".xz",
    ".zip",
    ".gz",
    ".ico",
    ".inv",
}
LINE = 12  # characters of a line worth a search
TELLING, SOLUTION = 6, 12  # words and signs of a telling line, and of what a second copy shows


@dataclass(frozen=True)
class Secret:
    """Lines that students must not see: of one region, or of one teacher's cell."""

    where: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Sources:
    """What the source notebooks say, told apart.

    Attributes:
        secrets: regions and teacher's cells.
        keys: of quizzes, and the notebook of each.
        seeds: of hidden tests, and a notebook of each.
        lines: squeezed lines that stand outside of all secrets.
        text: the same, joined.
        faults: sentences on what cannot be told apart.
    """

    secrets: list[Secret]
    keys: dict[str, str]
    seeds: dict[str, str]
    lines: set[str]
    text: str
    faults: list[str]


def leaks(student_folder: Path, source_folder: Path) -> list[str]:
    """Where the students' notebooks, or other files beside them, show what they must not.

    Args:
        student_folder: all files below it are read, wheels left out; of the package `osnb` only
            keys and seeds count, since solutions are its functions.
        source_folder: holds the source notebooks.

    Returns:
        One sentence for each leak, with the place; empty if there is none.
    """
    sources = read(source_folder)
    found = list(sources.faults)
    for path in sorted(Path(student_folder).rglob("*")):
        inside = path.relative_to(student_folder).parts
        if not path.is_file() or inside[0] in {"wheels", "SHA256SUMS"}:
            continue
        if inside[0] == "osnb":
            found += _told("/".join(inside), _plain(path), sources)
        else:
            found += file_leaks(path, sources, name="/".join(inside))
    return list(dict.fromkeys(found))


def file_leaks(path: Path, sources: Sources, *, name: str) -> list[str]:
    """The leaks in one file of a students' copy."""
    if path.suffix != ".ipynb":
        return _in_text(name, _plain(path), sources)
    book, found = json.loads(path.read_text(encoding="utf8")), []
    for place, text, is_cell in _units(book):
        found += _in_text(f"{name}, {place}", text, sources, is_cell=is_cell)
    for number, cell in enumerate(book["cells"], start=1):
        if "teacher" in cell["metadata"].get("tags", []):
            found.append(f"{name}, cell {number} is the teacher's")
    return found


def read(source_folder: Path) -> Sources:
    """What the notebooks of a folder say, told apart."""
    secrets, keys, seeds, shown, faults = [], {}, {}, [], []
    for path in sorted(Path(source_folder).glob("*.ipynb")):
        for number, cell in enumerate(json.loads(path.read_text(encoding="utf8"))["cells"], 1):
            text, where = "".join(cell["source"]), f"{path.stem}, cell {number}"
            tags, nbgrader = (cell["metadata"].get(key, {}) for key in ("tags", "nbgrader"))
            if "teacher" in tags:
                secrets.append(Secret(f"the teacher's cell ({where})", _lines(text)))
                continue
            outside, regions = _told_apart(text)
            shown.append(outside)
            for kind, lines in regions:
                secrets.append(Secret(f"the {kind.lower()} ({where})", _lines(lines)))
                keys |= dict.fromkeys(KEY.findall(lines), where)
                seeds |= dict.fromkeys(SEED.findall(lines) if kind != "SOLUTION" else [], where)
            if nbgrader and nbgrader.get("solution") and "SOLUTION" not in dict(regions):
                faults.append(f"{where} is a solution without BEGIN and END SOLUTION")
            if FILLED.search(outside):
                faults.append(f"{where} has its answers outside of a region")
    lines = {squeezed(line) for text in shown for line in text.splitlines()}
    return Sources(secrets, keys, seeds, lines, "\n".join(map(squeezed, shown)), faults)


def _told_apart(text: str) -> tuple[str, list[tuple[str, str]]]:
    """A cell's text outside of regions, and kind and text of each region."""
    outside, regions, inside = [], [], ""
    for line in text.splitlines():
        mark = MARK.search(line)
        if mark:
            inside = mark[2] if mark[1] == "BEGIN" else ""
            regions += [(inside, "")] if inside else []
        elif inside:
            regions[-1] = (inside, f"{regions[-1][1]}{line}\n")
        else:
            outside.append(line)
    return "\n".join(outside), regions


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def squeezed(text: str) -> str:
    """A text without what layout and quoting change."""
    return re.sub(r"[\s\\]+", "", text).replace("'", '"')


def _units(book: dict[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """(place, text, whether it is a cell's own) of everything that a notebook says."""
    for number, cell in enumerate(book["cells"], start=1):
        yield f"cell {number}", "".join(cell["source"]), True
        for part in cell.keys() - {"source", "cell_type", "execution_count"}:
            yield f"the {part} of cell {number}", "\n".join(_strings(cell[part])), False
    for part in book.keys() - {"cells", "nbformat", "nbformat_minor"}:
        yield f"the {part} of the notebook", "\n".join(_strings(book[part])), False


def _strings(value: Any) -> Iterator[str]:
    """Every text in a json value, keys included, lists of lines joined; base64 is opened."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = "".join(line if line.endswith("\n") else f"{line}\n" for line in value)
    if isinstance(value, str):
        yield value
        yield from _opened(value)
    elif isinstance(value, dict):
        for key in value:
            yield key
            yield from _strings(value[key])
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)


def _opened(text: str) -> Iterator[str]:
    try:
        yield base64.b64decode("".join(text.split()), validate=True).decode("utf8")
    except (binascii.Error, ValueError):
        return


def _plain(path: Path) -> str:
    """The text of a file; "" if it holds none. Of a page, what a reader sees."""
    if path.suffix in BINARY:
        return ""
    text = path.read_text(encoding="utf8", errors="replace")
    if path.suffix not in {".html", ".svg"}:
        return text
    return html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"<!--|-->", "", text)))


def _in_text(where: str, text: str, sources: Sources, *, is_cell: bool = False) -> list[str]:
    """The leaks in one text; in a cell also of lines too short to be searched for elsewhere."""
    found = [f"{where} has the words {mark[0]!r}" for mark in MARK.finditer(text)]
    found += [f"{where} has answers filled in" for _ in FILLED.finditer(text)]
    if re.match(r"\*\*Answers\.?\*\*", text):
        found.append(f"{where} begins as a teacher's cell does")
    if BOLD.search(text) or WHOLE.search(text):
        found.append(f"{where} sets an option of a quiz apart from the others")
    found += _told(where, text, sources)
    whole, own = squeezed(text), {squeezed(line) for line in text.splitlines()} if is_cell else ()
    for secret in sources.secrets:
        if line := _shown(secret, whole, own, sources):
            found.append(f"{where} shows a line of {secret.where}: {line}")
    return found


def _told(where: str, text: str, sources: Sources) -> list[str]:
    """The keys and the hidden seeds that a text tells."""
    plain = text.replace("_", " ")
    keys = [of for key, of in sources.keys.items() if _key(key).search(text)]
    seeds = [of for seed, of in sources.seeds.items() if _seed(seed).search(plain)]
    return [f"{where} shows the key of the quiz ({of})" for of in keys] + [
        f"{where} tells the hidden seed ({of})" for of in seeds
    ]


@cache
def _seed(seed: str) -> re.Pattern:
    """Finds "the hidden seed is N", "hidden tests use the seed N" and "seed N is hidden"."""
    few = r"(?:\W+\w+){0,4}?\W+"
    told = rf"hidden{few}seeds?{few}{seed}|seeds?{few}{seed}{few}hidden"
    return re.compile(rf"\b(?:{told})\b", re.IGNORECASE)


@cache
def _key(key: str) -> re.Pattern:
    """Finds abcd, ABCD, a b c d, "a", "b", ... and 1. a 2. b ..."""
    gap = r"\W{0,4}"
    plain = gap.join(key)
    counted = r"\W{1,6}".join(rf"{i}\W{{0,4}}{letter}" for i, letter in enumerate(key, start=1))
    return re.compile(rf"(?<!\w)(?:{plain}|{counted})(?!\w)", re.IGNORECASE)


def _shown(secret: Secret, whole: str, own: set[str], sources: Sources) -> str:
    """A line of the secret that a text shows; "" if none."""
    twice = []
    for line in secret.lines:
        small, needle, weight = _line(line)
        if small in own and small not in sources.lines:
            return line
        if len(small) >= LINE and small in whole and small not in sources.text:
            return line
        if weight and needle in whole:
            twice.append((line, weight))
    total = sum(_line(line)[2] for line in secret.lines) if twice else 0
    if twice and sum(weight for _, weight in twice) >= max(SOLUTION, total / 2):
        return twice[0][0]
    return ""


@cache
def _line(line: str) -> tuple[str, str, int]:
    """A line squeezed, the same without `return`, and the words and signs in it.

    The latter is 0 of a line that tells nothing: an import, a comment, or a short one.
    """
    weight = len(TOKEN.findall(line))
    tells = weight >= TELLING and not re.match(r"(import|from|def)\b|#", line)
    return squeezed(line), squeezed(line.removeprefix("return ")), weight * tells
