"""What students get back: nbgrader's feedback without hidden tests. Its settings import this."""

import copy
import re
from typing import Any

REGION = re.compile(r"^[^\n]*BEGIN HIDDEN TESTS(.*?)END HIDDEN TESTS[^\n]*\n?", re.S | re.M)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
SHORT = 8  # characters of a line that is too common to be looked for


def without_hidden_tests(book: Any) -> Any:
    """A notebook (nbformat's) without hidden tests, and without outputs that show a line of them.

    Of an error in a cell with hidden tests the traceback goes, since it prints the cell; what the
    error says stays.
    """
    book = copy.deepcopy(book)
    regions = [text for cell in book.cells for text in REGION.findall(cell.source)]
    lines = {line.strip() for text in regions for line in text.splitlines()}
    hidden = {line for line in lines if len(line) >= SHORT}
    for cell in book.cells:
        tested = bool(REGION.search(cell.source))
        cell.source = REGION.sub("", cell.source).rstrip("\n")
        if "outputs" in cell:
            cell.outputs = [each for each in cell.outputs if not _hidden(each, hidden, tested)]
    return book


def _hidden(output: Any, lines: set[str], tested: bool) -> bool:
    """Whether an output shows a hidden line; an error is first cut to what it says."""
    if output.output_type == "error":
        if tested or _shows(output.traceback, lines):
            output.traceback = [f"{output.ename}: {output.evalue}"]
        return _shows(output.traceback, lines)
    return _shows([output.get("text", ""), *map(str, output.get("data", {}).values())], lines)


def _shows(texts: list[str], lines: set[str]) -> bool:
    plain = COLOUR.sub("", "\n".join(texts))
    return any(line in plain for line in lines)
