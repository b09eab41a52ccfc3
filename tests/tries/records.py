"""Edits of a run.json, sealed again, under every command that reads it."""

import json
import os
from collections.abc import Iterator

import finished
from conftest import Project

from osnb.base import workbook
from osnb.book import record
from tests.tries import SPECIAL, LateError, folder, removed, said

KEYS = "state parameters notebook run seconds started outputs files settings goldens error used"
KEYS = [*KEYS.split(), "attempts", "measures", "host", "pid", "inputs"]
VALUES = (None, 5, "x", [], {}, [3], {"a": {"b": 1}}, float("nan"), "\x1b[2J", -1)
DEEP = json.loads('{"before":' * 300 + "{}" + "}" * 300)
GONE = 99999999  # a process that is not there
FAR = "elsewhere"
RUNNING = {  # edits of a run that is being made
    "pid -1": {"pid": -1},
    "pid 2^70": {"pid": 2**70},
    "pid a text": {"pid": "1"},
    "pid 1.5": {"pid": 1.5},
    "before that is nothing": {"state": "queued", "before": {"x": 1}, "pid": GONE},
    "before that was done": {"state": "queued", "before": {"state": "done"}, "pid": GONE},
    "before before before": {"state": "queued", "before": DEEP, "pid": GONE},
    "began null": {"began": None, "pid": GONE},
    "began a text": {"began": "x"},
    "no host": {"host": None},
    "another host": {"host": FAR},
    "queued by another host": {"host": FAR, "state": "queued"},
    "started yesterday": {"started": "yesterday"},
    "started in no zone": {"started": "2026-01-01T00:00:00"},
    "started far away": {"started": "9999-12-31T23:59:59+00:00"},
}
DONE = {
    "failed without error": {"state": "failed"},
    "an error of a kind": {"state": "failed", "error": {"name": "\x1b", "value": 3, "tail": 5}},
    "an error of a list": {"state": "failed", "error": []},
    "half an error": {"state": "failed", "error": {"name": "X"}},
    "a run elsewhere": {"run": "../../x"},
    "a notebook elsewhere": {"notebook": "../x"},
    "parameters of objects": {"parameters": {"x": {"y": []}}},
}
NO_JSON = {
    "empty": b"",
    "zero bytes": bytes(50),
    "a list": b"[]",
    "an object": b"{}",
    "null": b"null",
    "brackets": b"[" * 100000,
    "a number of 5,000 digits": b'{"a": ' + b"9" * 5000 + b"}",
}


def _edits(whole: bytes, content: dict) -> dict[str, bytes]:
    cases = {f"{key} {value!r:.20}": {key: value} for key in KEYS for value in VALUES}
    running = {"state": "running", **record.owner()}
    cases |= {name: running | values for name, values in RUNNING.items()} | DONE
    found = {name: record.sealed(content | values).encode() for name, values in cases.items()}
    found |= NO_JSON | {"half": whole[: len(whole) // 2], "latin-1": whole + b"\xe9"}
    found |= {"utf-16": whole.decode().encode("utf-16"), "twice": whole + whole}
    found |= {"nan": whole.replace(b'"seconds": 1.0', b'"seconds": NaN')}
    found |= {"without seal": json.dumps(content).encode(), "spaces": whole + b"  "}
    found |= {"a number edited": whole.replace(b"1.0", b"2.0", 1)}
    found |= {"a state edited": whole.replace(b'"done"', b'"diet"')}
    return found | {"line ends": whole.replace(b"\n", b"\r\n"), "whole": whole}


def _wrong(commands: tuple, run: str) -> str:
    """What is wrong with how the commands answer."""
    for words in commands:
        try:
            code, out, err, error = said(*words)
        except LateError:
            return f"{words[0]}: no answer in time"
        if error is not None:
            return f"{words[0]}: a traceback of {type(error).__name__}: {str(error)[:120]}"
        if "\x1b" in out + err:
            return f"{words[0]}: an escape reaches the terminal"
        named = err.count("\n") == 1 and ("run.json" in err or run in err)
        if code not in (0, 1) and not named:
            return f"{words[0]}: ended with {code}: {err[:200]!r}"
    return ""


def tries() -> Iterator[tuple[str, str]]:
    project = Project(folder() / "project")
    workbook.root = lambda: project.folder
    os.environ["OSNB_OUT"] = str(project.folder)
    directory = finished.paper(project)[0]
    file = directory / "run.json"
    params = project.folder / "params" / directory.parent.name / "small.yaml"
    show = ("show", f"{directory.parent.name}/{directory.name}")
    commands = (("status",), ("status", "--json", "-"), show, ("run", params, "--dry-run"))
    commands += (("verify",), ("verify", "--json", "-"))
    for name, content in _edits(file.read_bytes(), record.read(directory)).items():
        file.write_bytes(content)
        yield name, _wrong(commands, directory.name)
    for name, make in SPECIAL.items():
        removed(file)
        make(file)
        yield name, _wrong(commands, directory.name)
