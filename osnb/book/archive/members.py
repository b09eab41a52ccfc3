"""What an archive may hold: names of members, and what the run.json of a finished run may say."""

import json
import math
import re
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from osnb.base.workbook import PLAIN

METADATA, MANIFEST, LOCK = "ro-crate-metadata.json", "manifest-sha256.txt", "requirements.lock"
LONG = 20_000  # characters of a line
RESULT = (
    r"(?:history|outputs|scores\w*)\.parquet|(?!(?:begun|run)\.json)[\w-]+\.(?:svg|csv|tex|json)"
)
IN_RUN = re.compile(
    rf"runs/({PLAIN})/({PLAIN})/(run\.json|executed\.ipynb|{RESULT})", flags=re.ASCII
)
BESIDE = re.compile(
    rf"notebooks/{PLAIN}\.ipynb|params/{PLAIN}/{PLAIN}\.yaml"
    rf"|{re.escape(METADATA)}|{re.escape(MANIFEST)}|{re.escape(LOCK)}"
)


def parts(name: str) -> tuple[str, str, str] | None:
    """Notebook, run and file of a member; none of one that is not a run's.

    Raises:
        ValueError: no archive of this project holds such a name.
    """
    if found := IN_RUN.fullmatch(name):
        return found.groups()
    if not BESIDE.fullmatch(name):
        raise ValueError(
            f"{name!r} has no place in an archive; it holds runs/NOTEBOOK/RUN/FILE (run.json, "
            "executed.ipynb, scores, history, svg, csv, tex, json), notebooks/, params/ and "
            f"{METADATA}, {MANIFEST}, {LOCK}"
        )
    return None


def line(value: str) -> bool:
    """Whether a terminal shows a text as it is: no control character, no line break."""
    return len(value) <= LONG and value.isprintable()


def wrong(run: Mapping[str, Any]) -> list[str]:
    """Keys that a run.json lacks, has with another type or out of bounds, or should not have."""
    valid = _validator()
    lost = {*valid.schema["required"]} - run.keys()
    unknown = run.keys() - valid.schema["properties"].keys()
    bad = {error.absolute_path[0] for error in valid.iter_errors(run) if error.absolute_path}
    return sorted(lost | unknown | bad)


@cache
def _validator():
    """jsonschema's, of run.schema.json."""
    from jsonschema import Draft202012Validator, FormatChecker

    formats = FormatChecker(formats=())
    checks = {
        "line": line,
        "text": lambda value: all(map(line, re.split("[\n\t]", value))),
        "time": lambda value: (
            value.endswith("+00:00") and datetime.fromisoformat(value).isoformat() == value
        ),
    }
    for name, check in checks.items():
        formats.checks(name, raises=ValueError)(
            lambda value, check=check: not isinstance(value, str) or check(value)
        )
    formats.checks("finite")(lambda value: not isinstance(value, float) or math.isfinite(value))
    schema = json.loads(Path(__file__).with_name("run.schema.json").read_text(encoding="utf8"))
    return Draft202012Validator(schema, format_checker=formats)
