"""Notebooks at the dry run of a run of theirs."""

import json
import os
from collections.abc import Iterator

from conftest import Project

from osnb.base import workbook
from tests.tries import SPECIAL, command, folder, removed

NO_JSON = {
    "an object": "{}",
    "a list": "[]",
    "null": "null",
    "a number": "7",
    "empty": "",
    "a word": "hello",
    "brackets": "[" * 100000,
    "braces": '{"cells":' * 50000,
    "cells: 5": '{"cells": 5}',
}
PARAMETERS = {  # the cell that declares
    "a source that is a number": 5,
    "a source of numbers": [1, 2],
    "a call": "run: str = open('x').read()",
    "a set": "run: str='small'\nseed: int = {1, 2}",
    "bytes": "run = b'small'",
    "a complex number": "run='small'\nseed = 1j",
    "a dict": "run='small'\nseed = {}",
    "5,000 digits": "run='small'\nseed = " + "9" * 5000,
    "3,000 brackets": "run='small'\nx = " + "[" * 3000 + "]" * 3000,
}
CODE = {
    "no Python": "def (",
    "Python 2": "print 'x'",
    "an indent": "if x:\ny",
    "a magic": "%time x",
    "a shell": "!ls",
    "a zero byte": "x\0y",
    "a lone surrogate": "\ud800",
    "100,000 minus signs": "-" * 100000 + "1",
    "five million letters": "x" * 5_000_000 + "(",
    "a solution that is open": "### BEGIN SOLUTION\nx",
    "a solution that only ends": "### END SOLUTION\nx",
    "an escape": "'\x1b[2J' (",
}
FINE = {  # Python: it is one, or it is said when the cell is run
    "an ellipsis": (1, "run: str = 'small'\nseed = ..."),
    "await": (2, "await x"),
    "a coding that is none": (2, "# -*- coding: nope -*-\nx=1"),
    "a surrogate in a text": (2, "x = '\\ud800'"),
    "5,000 brackets": (2, "(" * 5000 + ")" * 5000),
}
CELL = {  # of the cell that declares: values, or what is taken away
    "no source": "source",
    "no type": "cell_type",
    "a type that is a number": {"cell_type": 3},
    "metadata that are a list": {"metadata": []},
    "no metadata": {"metadata": None},
    "tags that are a number": {"metadata": {"tags": 3}},
    "tags in a list": {"metadata": {"tags": [["parameters"]]}},
    "tags in an object": {"metadata": {"tags": [{"a": 1}]}},
}
BOOK = {
    "cells that are numbers": {"cells": [1, 2]},
    "no cells": {"cells": None},
    "cells that are a text": {"cells": "abc"},
}


def _edits(good: dict) -> dict[str, str]:
    """By name: the text of an edited notebook."""

    def edited(number: int, change) -> str:
        book = json.loads(json.dumps(good))
        if isinstance(change, dict):
            book["cells"][number] |= change
        else:
            del book["cells"][number][change]
        return json.dumps(book)

    found = {name: json.dumps(good | values) for name, values in BOOK.items()}
    found |= {name: edited(1, change) for name, change in CELL.items()}
    found |= {name: edited(1, {"source": source}) for name, source in PARAMETERS.items()}
    found |= {name: edited(2, {"source": source}) for name, source in CODE.items()}
    found |= {name: edited(n, {"source": source}) for name, (n, source) in FINE.items()}
    cells = good["cells"]
    found["two cells that declare"] = json.dumps(good | {"cells": [*cells, cells[1]]})
    found["no cell that declares"] = json.dumps(good | {"cells": [cells[0], *cells[2:]]})
    return found


def tries() -> Iterator[tuple[str, str]]:
    project = Project(folder() / "project")
    workbook.root = lambda: project.folder
    os.environ["OSNB_OUT"] = str(project.folder)
    book, params = project.add("works", "90_works"), project.write("90_works", "run: small\n")
    text = book.read_text()
    bare = text.rstrip().removesuffix("}")
    cases = NO_JSON | _edits(json.loads(text))
    cases |= {
        "half": text[:200],
        "utf-16": text.encode("utf-16"),
        "latin-1": text.encode() + b"\xe9",
    }
    cases |= {"a byte order mark": b"\xef\xbb\xbf" + text.encode()}
    cases |= {"a number of 5,000 digits": bare + ', "x": ' + "9" * 5000 + "}"}
    cases |= {"cells twice": bare + ', "cells": []}', "nan": bare + ', "x": NaN}', "whole": text}
    fine = {*FINE, "nan", "whole"}
    words = ("run", params, "--dry-run")
    for name, content in cases.items():
        data = content if isinstance(content, bytes) else content.encode("utf8", "surrogatepass")
        book.write_bytes(data)
        yield name, command(words, [book.name], taken=name in fine)
    for name, make in SPECIAL.items():
        removed(book)
        make(book)
        yield name, command(words, [book.stem])
