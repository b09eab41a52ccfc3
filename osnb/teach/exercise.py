"""Self-checks of the course: right, wrong where, or not written yet."""

import copy
import io
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from osnb.base.catalogue import Catalogue

FREE = {"base", "teach"}  # of the package, where nothing is computed that an exercise asks for
Maker = Callable[[np.random.Generator], tuple | dict]


def scores(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arguments of `metrics.oscr`: known scores (K,), correct (K,) bool, unknown scores (U,).

    About every second draw is rounded to one decimal, so that scores tie.
    """
    known, unknown = rng.normal(1, 1, rng.integers(2, 7)), rng.normal(0, 1, rng.integers(2, 7))
    digits = rng.choice([1, 3])
    return known.round(digits), rng.random(len(known)) < 0.7, unknown.round(digits)


def sides(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Arguments of `metrics.auroc`: known scores (K,) and unknown scores (U,)."""
    known, _, unknown = scores(rng)
    return known, unknown


def many(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """As `sides`, of known scores of which 95 % is mostly a whole number, but never all."""
    known = rng.normal(1, 1, rng.choice([20, 27, 40]))
    unknown = rng.normal(0, 1, rng.integers(6, 13))
    digits = rng.choice([1, 3])  # about every second draw has ties
    return known.round(digits), unknown.round(digits)


def ranking(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Arguments of `metrics.aurc`: scores (N,) and correct (N,) bool, right and wrong ones tied.

    About every second draw is rounded to whole numbers, so that a tie holds several samples.
    """
    known, correct, unknown = scores(rng)
    order = rng.permutation(len(known) + len(unknown))
    right = np.append(correct, np.zeros(len(unknown), bool))
    return np.append(known, unknown).round(rng.choice([0, 3]))[order], right[order]


def resamples(rng: np.random.Generator) -> tuple[np.ndarray]:
    """Arguments of `metrics.interval`: values (1 + R,) of the sample and of its resamples.

    The sample's own value lies apart, so that it shows where it is counted as a resample.
    """
    values = rng.normal(0, 1, rng.integers(5, 40)).round(3)
    values[0] = rng.choice([-5, 5])
    return (values,)


@contextmanager
def quiet() -> Iterator[None]:
    """A block without warnings and what else goes to stderr: nbgrader gives 0 points for it."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def check(mine: Callable, theirs: Callable, *, cases: int = 50, **settings: Any) -> None:
    """Print whether `mine` does what `theirs` does on random input; raise nothing.

    One line says: right; wrong, and where the values differ first; raised, and which error; or
    not written yet (`mine` gives None or Ellipsis, or raises NotImplementedError); or right, but
    by a call of the package. A second line shows the call that went wrong, a third the
    convention that `mine` follows instead.

    Args:
        mine: the reader's function.
        theirs: the package's function.
        cases: number of random inputs.
        inputs: makes one case from a generator: a tuple of arguments or a dict of keyword
            arguments; `scores`, `sides`, `ranking`, `resamples`, or the notebook's own.
        own: whether `mine` may call nothing of the package, rather than not what `theirs` calls.
        conventions: values of `theirs`' argument convention that a reader may have followed.
        seed: of the inputs, 0 if not given; the same seed gives the same inputs.
        rtol: relative tolerance, else 1e-6; the absolute one is a thousandth. NaN equals NaN.
    """
    try:
        lines = _examined(mine, theirs, cases=cases, **settings)
    except NotImplementedError:
        lines = ["not written yet"]
    except (Exception, SystemExit) as error:
        lines = [f"cannot be checked: {type(error).__name__}: {error}"]
    print("\n  ".join(lines or [f"right: the same on {cases} random inputs"]))


def require(mine: Callable, theirs: Callable, **settings: Any) -> None:
    """As `check`, with its settings, for hidden tests: silent if right, an error if not.

    Raises:
        AssertionError: `mine` is wrong, raised, or is not written yet; with check's sentence.
    """
    if lines := _examined(mine, theirs, **settings):
        raise AssertionError("\n  ".join(lines))


def _examined(
    mine, theirs, *, inputs: Maker, conventions=(), cases=50, seed=0, rtol=1e-6, own=False
) -> list[str]:
    """What `check` says of a function that is not right, by lines; none of one that is."""
    rng = np.random.default_rng(seed)
    given = [inputs(rng) for _ in range(cases)]
    wanted = [_call(theirs, case) for case in given]
    others = {}
    for name in conventions:
        others[name] = [_call(partial(theirs, convention=name), case) for case in given]
    case, verdict = _first(mine, given, wanted, rtol)
    if not verdict:
        pasted = reached(mine, given[0])
        pasted &= pasted if own else reached(theirs, given[0])
        return [f"a call of {min(pasted)}, the package's: write it out"] if pasted else []
    if verdict == "not written yet":
        return [verdict]
    call = f"{getattr(mine, '__name__', 'yours')}({_short(given[case - 1])})"
    lines = [verdict, f"on input {case} of {cases}: {call}"]
    for name, values in others.items():
        if not _first(mine, given, values, rtol)[1]:
            lines.append(f"on all {cases} inputs yours gives what convention={name!r} gives")
    return lines


def checks(*tests: Callable[[], None]) -> None:
    """Do each check of a cell, of functions that are gone too: `granted` without the number."""
    granted(*tests)


def granted(*tests: Callable[[], None]) -> int:
    """How many hidden tests are passed, the sentences of the others printed.

    As the last value of a check cell it is the cell's points, one for each function. A function
    that was deleted or renamed is one that is not written.
    """
    passed = 0
    for test in tests:
        try:
            test()
            passed += 1
        except AssertionError as error:
            print(error)
        except NameError as error:
            print(f"not written yet: {error}")
    return passed


def answered(answers: Any, *, questions: int) -> None:
    """Print how many questions of a quiz are answered, or what is wrong with the letters."""
    print(_answered(answers, questions))


def practice(answers: Any, *, notebook: str) -> Any:
    """What there is to say of each letter given in a notebook's quiz, as a page (IPython's).

    Args:
        answers: one letter from a to d for each question, - for one left out.
        notebook: whose questions they are; the reasons stand in `course/practice.yaml`.

    Raises:
        KeyError: the notebook has no quiz.
    """
    from IPython.display import Markdown

    asked = reasons()[notebook]
    letters = answers.strip().lower() if isinstance(answers, str) else ""
    lines = []
    for i, (letter, reason) in enumerate(zip(letters, asked, strict=False), start=1):
        verdict = "right" if letter == reason["right"] else "not right"
        if letter in reason:
            lines.append(f"**{i}. {letter}: {verdict}.** {reason[letter]}")
    return Markdown("\n\n".join([*lines, f"*{_answered(answers, len(asked))}*"]))


@cache
def reasons() -> Catalogue:
    """By notebook, for each question of its quiz: the reason of each letter, and which is right."""
    import yaml

    file = Path(__file__).parent / "course" / "practice.yaml"
    return Catalogue(yaml.safe_load(file.read_text(encoding="utf8")))


def _answered(answers: Any, questions: int) -> str:
    """How far a quiz is answered, in a sentence."""
    letters = answers.strip().lower() if isinstance(answers, str) else ""
    if not isinstance(answers, str) and answers is not ... and answers is not None:
        example = "".join("abcd"[i % 4] for i in range(questions))
        return f'answers is a text, such as "{example}"; got {type(answers).__name__}'
    if not letters:
        return "not answered yet"
    wrong = next((i for i, letter in enumerate(letters) if letter not in "abcd-"), None)
    if wrong is not None:
        return f"answer {wrong + 1} is {letters[wrong]!r}; needed a letter from a to d, or -"
    if len(letters) > questions:
        return f"{len(letters)} letters for {questions} questions"
    return f"{len(letters) - letters.count('-')} of {questions} answered"


def reached(function: Callable, given: tuple | dict) -> set[str]:
    """Names of the package's functions, but those of `FREE`, that a call reaches from outside."""
    names, inside = set(), None

    def watch(frame, event, _):
        nonlocal inside
        room = frame.f_globals.get("__name__", "").split(".")[:2]
        if event == "return" and frame is inside:
            inside = None
        elif event == "call" and not inside and room[0] == "osnb" and room[1] not in FREE:
            names.add(".".join([*room, frame.f_code.co_name]))
            inside = frame

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        _call(function, given)
    except Exception:
        return names
    finally:
        sys.setprofile(before)
    return names


def _first(mine: Callable, given: list, wanted: list, rtol: float) -> tuple[int, str]:
    """The first input, counted from 1, on which `mine` is wrong, and its verdict; 0 and ""."""
    verdicts = (_verdict(mine, *pair, rtol) for pair in zip(given, wanted, strict=True))
    return next(((i, text) for i, text in enumerate(verdicts, start=1) if text), (0, ""))


def _call(function: Callable, given: tuple | dict) -> Any:
    """The function's value on a copy of the arguments, without its warnings and its stderr."""
    given = copy.deepcopy(given)
    with quiet():
        return function(**given) if isinstance(given, dict) else function(*given)


def _verdict(mine: Callable, given: tuple | dict, wanted: Any, rtol: float) -> str:
    """What is wrong with `mine` on one input; "" if nothing is."""
    try:
        value = _call(mine, given)
        if value is None or value is Ellipsis:
            return "not written yet"
        difference = _difference(value, wanted, rtol)
    except NotImplementedError:
        return "not written yet"
    except (Exception, SystemExit) as error:
        return f"raised {type(error).__name__}: {error}"
    return difference and f"wrong: {difference}"


def _difference(mine: Any, theirs: Any, rtol: float) -> str:
    """The first difference in words; "" if there is none."""
    if isinstance(theirs, dict) and isinstance(mine, dict):
        if set(mine) != set(theirs):
            return f"yours has the keys {', '.join(map(str, mine))}; needed {', '.join(theirs)}"
        parts = [(f"['{key}']", mine[key], theirs[key]) for key in theirs]
    elif isinstance(theirs, tuple):
        values = _several(mine)
        if values is None or len(values) != len(theirs):
            shape = np.shape(mine) if hasattr(mine, "ndim") else ()
            got = type(mine).__name__ if values is None else f"{len(values)} values"
            got = f"an array of shape {shape}" if len(shape) > 1 else got
            return f"yours gives {got}; needed {len(theirs)} values"
        parts = [(f"value {i}", *pair) for i, pair in enumerate(zip(values, theirs, strict=True))]
    else:
        return _array_difference(np.asarray(mine), np.asarray(theirs), rtol)
    differences = ((name, _difference(a, b, rtol)) for name, a, b in parts)
    return next((f"{name}, {text}" for name, text in differences if text), "")


def _several(value: Any) -> Sequence | None:
    """The values in a sequence, in a Series or along an array's first axis; None if it is none."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return value
    return np.asarray(value) if getattr(value, "ndim", 0) else None


def _array_difference(mine: np.ndarray, theirs: np.ndarray, rtol: float) -> str:
    if mine.shape != theirs.shape:
        return f"yours has shape {mine.shape}; needed {theirs.shape}"
    if {mine.dtype.kind, theirs.dtype.kind} <= set("biuf"):
        numbers = mine.astype(float), theirs.astype(float)
        close = np.isclose(*numbers, rtol=rtol, atol=rtol / 1000, equal_nan=True)
    else:
        close = np.asarray(mine == theirs)
    if close.all():
        return ""
    at = tuple(np.argwhere(~close)[0].tolist())
    place = f"at {list(at)} " if at else ""
    return f"{place}yours is {_short(mine[at])}; needed {_short(theirs[at])}"


def _short(value: Any) -> str:
    """A value in one short line."""
    if isinstance(value, dict):
        return ", ".join(f"{key}={_short(part)}" for key, part in value.items())
    if isinstance(value, tuple):
        return ", ".join(_short(part) for part in value)
    array = np.asarray(value)
    text = np.array2string(array, precision=6, threshold=12, edgeitems=4, separator=", ")
    return " ".join(text.split())
