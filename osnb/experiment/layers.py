"""How a benchmark's base, a method, a regime and overrides become one set of settings.

Settings are plain values, and parts that can be chosen: mappings of a name and the keyword
arguments that the part of that name reads, as the two files in params/ list them.
"""

import csv
import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

from osnb.base import user, workbook

SIZES = ("mini", "tiny", "paper", "own")
OWN = ".yaml"  # how the name of a benchmark ends that is a file of the reader's own
# what a benchmark is, no setting: nobody overrides it
FACTS = ("splits", "tuning", "negatives")
UNSET = ("name", "digest")  # of a part: what is no setting of it
PATHS = ("images", "roles")  # settings of a benchmark of one's own
STAGES = {"gan_epochs", "plain_epochs"}  # settings of trainings that go through several
OWN_PARTS = ("loss", "network", "rules", "reader")  # module:name may be one
# of a training notebook, beside `run`
PARAMETERS = ("size", "seed", "benchmark", "method", "regime", "split", "overrides")
PARAMETERS += ("devices", "threads", "data", "machine")


def catalogue(name: str) -> dict[str, Any]:
    """The content of params/benchmarks.yaml or params/recipes.yaml."""
    return _content(workbook.root(), name)


@cache
def _content(root: Path, name: str) -> dict[str, Any]:
    return workbook.params(root / "params" / f"{name}.yaml")


def benchmark(name: str, size: str) -> dict[str, Any]:
    """What params/benchmarks.yaml, or a file of one's own, says of a benchmark in a size.

    Raises:
        FileNotFoundError: there is no such file, or not one that it names.
        ValueError: there is no such name or size, or nothing reads a setting of the file.
    """
    if not name.endswith(OWN):
        there = one_of("benchmark", name, catalogue("benchmarks")["benchmarks"])
        return dict(one_of(f"size of {name}", size, there))
    file = workbook.out() / name
    if not file.is_file():
        raise FileNotFoundError(2, "no such benchmark", str(file))
    base = {"protocol": "roles_csv", "reader": "own_images"} | workbook.params(file)
    one_of(f"size of {name}", size, {"own": base})
    plain = catalogue("benchmarks")["base"] | catalogue("recipes")["base"]
    given = {k: v for k, v in base.items() if k not in (*FACTS, "regimes", "methods")}
    if wrong := [k for k, v in given.items() if not isinstance(v, str | int | float)]:
        raise ValueError(f"{file}: {wrong[0]} is a text or a number; got {given[wrong[0]]!r}")
    if wrong := [k for k, v in given.items() if k in ("reader", "protocol") and v != str(v)]:
        raise ValueError(f"{file}: {wrong[0]} is a name; got {given[wrong[0]]!r}")
    settings = laid([plain, {}, given])
    all_read(given, settings, name)
    if "roles" not in settings["protocol"]:
        what = settings["protocol"]["name"]
        raise ValueError(f"{file}: protocol must be roles_csv in a file of one's own; got {what!r}")
    roles = file.parent / settings["protocol"]["roles"]
    try:
        text = roles.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{roles} is no csv file in UTF-8: {error}") from None
    rows = csv.DictReader(StringIO(text, newline=""), skipinitialspace=True)
    negatives = any((row.get("role") or "").strip() == "negative" for row in rows)
    return base | {"negatives": negatives}


def placed(settings: dict[str, Any], name: str) -> dict[str, Any]:
    """Settings with `images` and `roles` as whole paths; those in one's own file start there."""
    folder = (workbook.out() / name).parent
    parts = {kind: settings[kind] for kind in ("reader", "protocol")}
    for kind, part in parts.items():
        parts[kind] = part | {k: str(folder / part[k]) for k in PATHS if k in part}
    return settings | parts


def noted(settings: dict[str, Any], name: str) -> dict[str, Any]:
    """Settings with a digest of each file of one's own that they name: roles, images, a module.

    Of a folder of images it is that of their names.
    """
    for kind, part in placed(settings, name).items():
        if isinstance(part, dict):
            files = [Path(part[key]) for key in PATHS if key in part]
            files += [user.file(name) for name in part["name"].split() if ":" in name]
            if kind == "network" and part.get("weights"):  # those of a training are its own affair
                files += [workbook.out() / part["weights"]]
            if files:
                settings[kind] |= {"digest": workbook.digest(*map(_content_of, files))[:16]}
    return settings


def _content_of(file: Path) -> Path | str:
    """A file; of a folder the paths of what is shown in it, such as ./a and b/c."""
    if not file.is_dir():
        return file
    return "\n".join(sorted(str(x) if x.parts[1:] else f"./{x}" for x in workbook.shown(file)))


def parts() -> dict[str, dict[str, dict]]:
    """The settings, with defaults, of every part that can be chosen, by kind and name."""
    return catalogue("benchmarks")["parts"] | catalogue("recipes")["parts"]


def one_of(kind: str, name: str, there: Mapping[str, Any]) -> Any:
    """What a name stands for.

    Raises:
        ValueError: there is no such name; the message lists those there are.
    """
    if name not in there:
        raise ValueError(f"no {kind} {name!r}: there are {', '.join(there)}")
    return there[name]


def entry(kind: str, name: str, size: str, base: Mapping[str, Any]) -> dict[str, Any]:
    """A regime or method: what it says in general, for the size, and for the benchmark."""
    general = dict(one_of(kind, name, catalogue("recipes")[f"{kind}s"]))
    sizes = {each: general.pop(each, {}) for each in SIZES}
    return general | sizes[size] | base.get(f"{kind}s", {}).get(name, {})


def resolved(
    layers: Sequence[Mapping[str, Any]], overrides: str, facts: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """The settings of a base, a benchmark, a method and a regime under overrides.

    Raises:
        ValueError: nothing reads what a method or an override sets, parts do not fit each other,
            or the benchmark lacks what the recipe needs; the message ends with `where`.
    """
    changed = words(overrides)
    settings = laid([*layers, changed])
    all_read(changed, settings, where)
    fitting(settings, facts["method"], where)
    all_read({k: v for k, v in layers[2].items() if k not in changed}, laid(layers), where)
    feasible(settings, changed, facts, where)
    if settings["normalise"] == "none":  # as every run before there was a choice
        del settings["normalise"]
    return settings


def laid(layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Settings laid over each other: a part by the last that chose it, since whom settings count.

    A choice that is a mapping swaps: {conv: conv_dropout} takes the second where the first was
    chosen, and keeps its settings. The first two layers say which plain settings there are.
    """
    kinds, choices = parts(), catalogue("recipes")["choices"]
    chosen: dict[str, str] = {}
    since: dict[str, int] = {}
    for i, layer in enumerate(layers):
        for kind in (each for each in kinds if each in layer):
            choice = layer[kind]
            if isinstance(choice, dict):
                chosen[kind] = choice.get(chosen[kind], chosen[kind])
            elif choice != chosen.get(kind):
                chosen[kind], since[kind] = choice, i
    settings = {kind: defaults(kinds, kind, choice) for kind, choice in chosen.items()}
    for kind, values in settings.items():
        _lay(values, layers[since[kind] :], choices)
    parted = {*kinds, *(k for kind in kinds.values() for values in kind.values() for k in values)}
    plain = {k: v for layer in layers[:2] for k, v in layer.items() if k not in parted}
    if any("external" in layer for layer in layers[2:]):  # for one method of a benchmark, say
        plain.setdefault("external", "")
    _lay(plain, layers, choices)
    settings = {k: {"name": chosen[k]} | v for k, v in settings.items()} | plain
    if not settings["also"]:
        del settings["counts"], settings["far"]
    return settings


def _lay(values: dict[str, Any], layers: Sequence[Mapping[str, Any]], choices: Mapping) -> None:
    for layer in layers:
        named = (k for k in values if k in layer)
        values |= {k: typed(k, layer[k], values[k], choices.get(k, ())) for k in named}


def defaults(kinds: Mapping[str, dict], kind: str, choice: str) -> dict[str, Any]:
    """The settings that a chosen part reads, with their defaults.

    Raises:
        ValueError: there is no such part.
    """
    there, found = kinds[kind], {}
    for name in choice.split() if kind == "reader" else [choice]:  # several may be chosen
        if kind in OWN_PARTS and ":" in name:
            found |= user.settings(name)
        elif kind in ("reader", "protocol"):  # most have no settings
            found |= there.get(name, {})
        else:
            found |= one_of(kind, name, there)
    return found


def all_read(given: Mapping[str, Any], settings: Mapping[str, Any], where: str) -> None:
    """Refuse what no chosen part reads.

    Raises:
        ValueError: with the name, the parts that would read it, and the settings that there are,
            and a run's parameters, of which one may be meant.
    """
    there = sorted({name for name, _ in flat(settings)})
    for name in (each for each in given if each not in there):
        kinds = parts().items()
        owners = [f"{k} {n}" for k, each in kinds for n, values in each.items() if name in values]
        owned = f"; it belongs to {', '.join(owners)}" if owners else ""
        if name in PARAMETERS:
            raise ValueError(
                f"{name} is a parameter of the run, no setting of its experiment: "
                f"give it by itself, -p {name}={spelled(given[name])} ({where})"
            )
        close = get_close_matches(name, [*PARAMETERS, *there], n=1, cutoff=0.0)
        raise ValueError(
            f"nothing reads {name}={spelled(given[name])} here ({where}){owned}; "
            f"the nearest is {close[0]}; there are {', '.join(there)}; "
            f"a run's parameters are {', '.join(PARAMETERS)}"
        )


def fitting(settings: Mapping[str, Any], method: str, where: str) -> None:
    """Refuse parts that do not fit each other; `fits` in params/recipes.yaml says which do.

    Raises:
        ValueError: with what a part, or the method, needs, and what gives it.
    """
    there = dict(flat(settings)) | {"method": method}
    for kind in ("network", "loss"):
        if ":" in there[kind]:
            there[kind] = "MODULE:NAME"  # who knows what one's own has
    for part, what, ways in needed(settings, method):
        if any(_holds(way, there) for way in ways):
            continue
        ways = [way for way in ways if f"network={there['network']} " in way] or ways
        key, lacks = re.split("[=<>]", ways[0])[0], ""
        if key not in there:
            having = ", ".join(n for n, values in parts()["network"].items() if key in values)
            lacks = f"; network {there['network']} has no setting {key}, these have: {having}"
        raise ValueError(f"{part} needs {what}: set {' or '.join(ways)}{lacks} ({where})")


def needed(settings: Mapping[str, Any], method: str) -> Iterator[tuple[str, str, list[str]]]:
    """(part, what it needs, what gives it) of each row of `fits` that is about these settings."""
    there = dict(flat(settings)) | {"method": method}
    for part, needs in catalogue("recipes")["fits"].items():
        if _holds(part, there):
            yield from ((part, what, ways) for what, ways in needs.items())


def _holds(words: str, there: Mapping[str, Any]) -> bool:
    """Whether each of some words, such as `network=conv cut<6`, is true of settings."""
    for name, sign, value in (re.split("([=<>])", word, maxsplit=1) for word in words.split()):
        compare = {"=": lambda x, y: spelled(x) == y, "<": lambda x, y: x < float(y)}
        compare[">"] = lambda x, y: x > float(y)
        if name not in there or not compare[sign](there[name], value):
            return False
    return True


def feasible(settings: dict[str, Any], changed: Mapping, facts: Mapping, where: str) -> None:
    """Give external images to what needs some, and refuse what a benchmark cannot give.

    Raises:
        ValueError: a part needs negatives and there are none, a rule needs one network, or what
            is tested are no roles.
    """
    names = [value["name"] for value in settings.values() if isinstance(value, dict)]
    needing = [name for name in names if name in catalogue("recipes")["needs"]["negatives"]]
    others = {*settings["tested"].split()} - {"known"}
    if (
        "known" not in settings["tested"].split()
        or others - {"negative", "unknown"}
        or not (others or settings.get("also"))
    ):
        roles = "known beside unknown or negative or both, with blanks between (known alone: also)"
        raise ValueError(f"tested is {roles}; got {settings['tested']!r}: {where}")
    if "external" in settings and not needing and "external" not in changed:
        settings["external"] = ""
    if needing and not facts.get("negatives") and not settings.get("external"):
        raise ValueError(
            f"{needing[0]} needs negatives or external images, and there are none: {where}"
        )
    if needing and settings["validation"] == "whole":
        why = f"{needing[0]} needs negatives, which validation=whole leaves out"
        remedy = "watch" if needing == ["gamma"] else "validation"
        raise ValueError(f"{why}: set {remedy}=held_out ({where})")
    if settings["normalise"] == "timm" and settings["network"]["name"] != "timm":
        raise ValueError(f"normalise=timm needs network=timm, whose backbone says it: {where}")
    rules, answer = settings["rules"]["name"], settings["answer"]["name"]
    if rules != "plain" and answer != "one":
        raise ValueError(
            f"rules {rules} read one network at rest, and {answer} is none: set rules=plain"
        )


def one_of_splits(split: int, facts: Mapping[str, Any], where: str) -> None:
    """Refuse a split that a benchmark does not have.

    Raises:
        ValueError: it is none of those that are reported, nor the one on which settings are chosen.
    """
    last, tuning = facts.get("splits", 1) - 1, facts.get("tuning")
    if 0 <= split <= last or split == tuning:
        return
    there = f"are splits 0 to {last}" if last else "is one split, 0"
    chosen = "" if tuning is None else f", and {tuning} on which settings are chosen"
    raise ValueError(f"there {there}{chosen}; got split={split}: {where}")


def named(part: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name of a chosen part, and its settings."""
    return part["name"], {k: v for k, v in part.items() if k not in UNSET}


def flat(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """(name, value) of every setting, digests aside; of a chosen part its own name first."""
    for name, value in settings.items():
        if isinstance(value, dict):
            chosen, own = named(value)
            yield from {name: chosen, **own}.items()
        else:
            yield name, value


def words(text: str) -> dict[str, str]:
    """NAME=VALUE words; quotes hold blanks, and of several values of a name the last counts.

    Raises:
        ValueError: a word is none.
    """
    try:
        pairs = [word.partition("=") for word in shlex.split(text)]
    except ValueError as error:
        raise ValueError(f"{error} in {text!r}") from None
    if wrong := [name for name, sign, _ in pairs if not sign or not name]:
        raise ValueError(f"settings are NAME=VALUE with blanks between; got {wrong[0]!r}")
    return {name: value for name, _, value in pairs}


def typed(name: str, value: Any, default: Any, choices: Sequence[str] = ()) -> Any:
    """A value, or its spelling, as what the default is; one of the choices if there are any.

    Raises:
        ValueError: it is none.
    """
    kind = type(default)
    try:
        if isinstance(value, str) and kind is not str:
            value = {"true": True, "false": False}[value.lower()] if kind is bool else kind(value)
    except (KeyError, ValueError):
        raise ValueError(f"{name} is {kind.__name__}, such as {default}; got {value!r}") from None
    if _numbers(default) and not _numbers(value):
        raise ValueError(f"{name} is numbers with blanks between, as {default}; got {value!r}")
    if choices and value not in choices:
        raise ValueError(f"{name} is one of {', '.join(choices)}; got {value!r}")
    least, *largest = catalogue("recipes")["ranges"].get(name, [-math.inf])
    if kind in (int, float) and not least <= value <= (largest or [math.inf])[0]:
        end = f"from {least} to {largest[0]}" if largest else f"{least} or more"
        raise ValueError(f"{name} is {end}; got {value!r}")
    return workbook.checked("an experiment", name, value, default)


def _numbers(text: Any) -> bool:
    """Whether a text is one or more numbers with blanks between."""
    with suppress(ValueError, AttributeError):
        return bool([float(word) for word in text.split()])
    return False


def spelled(value: Any) -> str:
    """A value as `words` reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
