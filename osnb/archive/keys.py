"""What the run.json of a finished run may say, so that who shows it finds what it expects."""

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

LONG, LARGE = 20_000, 1 << 64  # characters of a text; bytes, seconds, seeds
Check = Callable[[Any], bool]


def line(value: Any) -> bool:
    """Whether it is a text that a terminal shows as it is: no control character, no line break."""
    return isinstance(value, str) and len(value) <= LONG and value.isprintable()


def wrong(run: Mapping[str, Any]) -> list[str]:
    """Keys that a run.json lacks, has with another type or out of bounds, or should not have."""
    lost = NEEDED - run.keys()
    return sorted(lost | {key for key, x in run.items() if key not in KEYS or not KEYS[key](x)})


def _text(value: Any) -> bool:
    return isinstance(value, str) and all(map(line, re.split("[\n\t]", value)))


def _quoted(value: Any) -> bool:
    """The start of an error's text, which may hold anything and is never printed as it is."""
    return isinstance(value, str) and len(value) <= LONG


def _sha256(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _time(value: Any) -> bool:
    """A time of `record.now`: UTC, to the second."""
    try:
        return datetime.fromisoformat(value).isoformat() == value and value.endswith("+00:00")
    except (ValueError, TypeError):
        return False


def _number(value: Any) -> bool:
    return type(value) in {int, float} and -LARGE <= value <= LARGE


def _measure(value: Any) -> bool:
    """A number, or what a training run has where it found none."""
    return value is None or _number(value) or (type(value) is float and not math.isfinite(value))


def _amount(value: Any) -> bool:
    return _number(value) and value >= 0


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LARGE


def _yes_or_no(value: Any) -> bool:
    return isinstance(value, bool)


def _plain(value: Any) -> bool:
    """A parameter: what a notebook can declare in a line."""
    if isinstance(value, list):
        return all(_yes_or_no(x) or _number(x) or _text(x) for x in value)
    return _yes_or_no(value) or _number(value) or _text(value)


def _maybe(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _list(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _named(check: Check) -> Check:
    """An object of any keys, with values of one kind."""
    return lambda x: isinstance(x, dict) and all(line(k) and check(v) for k, v in x.items())


def _object(**checks: Check) -> Check:
    """An object of these keys or fewer."""
    return lambda value: (
        isinstance(value, dict)
        and value.keys() <= checks.keys()
        and all(checks[key](x) for key, x in value.items())
    )


USED = _object(memory=_maybe(_count), gpu=_maybe(_count), device=_maybe(line))
MACHINE = {
    "processor": _maybe(line),
    "cpus": _maybe(_count),
    "memory": _maybe(_count),
    "gpus": _list(line),
}
WHEN = {
    **dict.fromkeys(("started", "finished"), _time),
    "seconds": _amount,
    "state": line,
    "host": line,
    "pid": _count,
    "commit": _maybe(line),
}
CHECKLIST = {
    "code": _text,
    "command": _text,
    "dependencies": _maybe(line),
    "hyperparameters": _named(_plain),
    "random seed": _maybe(_number),
    "examples": _maybe(_named(_count)),
    "measures at the end": _maybe(_named(_measure)),
    "training runs": _count,
    "runtime in seconds": _maybe(_amount),
    "infrastructure": _object(**MACHINE, peak=USED),
}
NEEDED = {"notebook", "run", "state", "code", "started", "finished", "host", "seconds", "python"}
NEEDED |= {"parameters", "inputs", "outputs", "packages"}
KEYS = WHEN | MACHINE
KEYS |= {
    **dict.fromkeys(("notebook", "run", "python", "system"), line),
    **dict.fromkeys(("code", "hash"), _sha256),
    **dict.fromkeys(("inputs", "outputs"), _named(_sha256)),
    "parameters": lambda value: _named(_plain)(value) and _is_run(value),
    "packages": _named(line),
    "seed": _maybe(_number),
    "attempts": _list(_object(**WHEN, reason=_quoted)),
    "began": _maybe(_number),
    "dirty": _maybe(_yes_or_no),
    "resumed": _count,
    "unpublished": _list(line),
    "used": USED,
    "checklist": _object(**CHECKLIST),
    "imported": _object(archive=line, sha256=_sha256, when=_time),
}


def _is_run(parameters: Mapping[str, Any]) -> bool:
    """Whether the parameters are there by which tables are collected."""
    words = all(line(parameters.get(name)) for name in ("run", "size"))
    return words and type(parameters.get("seed")) is int
