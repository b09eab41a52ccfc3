"""A claim that is a comparison, as columns of claims.csv; its `number` is above 0 if it holds.

    measure   auroc, ... ; a|b asks for each
    at        keys of both sides, "task=easy|hard" for each of them, "task=easy+hard" for their
              mean, "source=*" for each that there is, "source=." for the claim's scope; place is
              the scope unless it is said
    left      printed names, a|b for each of them, "a+b" for their mean, "a less b" for a
              difference; behind an @ the keys of this side alone
    relation  > or < : left is more, or less, than each of right; ~ : they differ by no more than
              margin, or by apart no more than that
    right     as left; "same" is what stands left, "others" every other name, "others but a|b"

Parts between semicolons belong together and each has to hold. Of all that is asked the least
number counts.
"""

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np

from osnb.evidence.build import Evidence, Same, least

PARTS = ("measure", "at", "left", "right")


def number(evidence: Evidence, where: str, claim: Mapping[str, str]) -> np.ndarray:
    """(1 + R,) the number of a claim, in the unit of its measure.

    Args:
        evidence: of runs, or of printed tables.
        where: one of the claim's scopes.
        claim: the columns above, relation, margin and apart, and no NaN.

    Raises:
        Missing: a number that it needs is not there.
        Same: both sides are one and the same numbers, so that no other run would decide it.
    """
    cells = [claim[name].split("; ") for name in PARTS]
    many = max(map(len, cells))
    numbers = []
    for measure, at, left, right in zip(*(c * (many // len(c)) for c in cells), strict=True):
        for keys in _each(evidence, measure, at, where):
            numbers += _compared(evidence, keys, (left, right), claim)
    return least(*numbers)


def _each(evidence: Evidence, measure: str, at: str, where: str) -> Iterator[dict[str, str]]:
    """Every combination of the keys that both sides share."""
    keys = {"place": where} | _keys(at)
    keys = {name: where if value == "." else value for name, value in keys.items()}
    if keys.get("network") == "shared":
        keys = shared(evidence, keys)
    choices = {"measure": measure.split("|")} | {k: v.split("|") for k, v in keys.items()}
    for name in [name for name, value in keys.items() if value == "*"]:
        rest = {k: v for k, v in keys.items() if k != name}
        choices[name] = evidence.names(name, **rest)
    yield from (dict(zip(choices, values, strict=True)) for values in product(*choices.values()))


def shared(evidence: Evidence, keys: Mapping[str, str]) -> dict[str, str]:
    """The keys, and the network there that most methods share, so that they are compared on one.

    Print has one network for each data set and no such key.
    """
    rest = {name: value for name, value in keys.items() if name != "network"}
    if "network" not in evidence.keys:
        return rest
    rows = evidence.keys[evidence.keys["place"] == keys["place"]]
    methods = rows.groupby("network")["printed"].nunique()
    return rest | ({"network": methods.idxmax()} if len(methods) else {})


def _compared(
    evidence: Evidence, keys: dict[str, str], sides: tuple[str, str], claim: Mapping[str, str]
) -> list[np.ndarray]:
    """The number of each name on the left."""
    (names, own), (against, others) = (_side(side) for side in sides)
    numbers = []
    for name in names.split("|"):
        left = _value(evidence, name, keys | own)
        if against.startswith("others"):
            but = {name, *against.removeprefix("others").removeprefix(" but ").split("|")}
            place = {k: v for k, v in keys.items() if k != "measure"}
            rivals = [x for x in evidence.names("printed", **place) if x not in but]
        else:
            rivals = against.replace("same", name).split("|")
        right = [_value(evidence, rival, keys | others) for rival in rivals]
        if against == "same" and np.array_equal(left, right[0]):
            raise Same(f"{' '.join(own.values())} is {' '.join(others.values())}")
        numbers.append(_number(left, right, claim))
    return numbers


def _number(left: np.ndarray, right: list[np.ndarray], claim: Mapping[str, str]) -> np.ndarray:
    if claim["relation"] == "~":
        apart = left - right[0] - float(claim["apart"] or 0)
        return float(claim["margin"]) - np.abs(apart)
    sign = {">": 1, "<": -1}[claim["relation"]]
    return sign * left - np.max([sign * each for each in right], axis=0)


def _value(evidence: Evidence, name: str, keys: dict[str, str]) -> np.ndarray:
    """(1 + R,) of a printed name, of the mean of several, or of what one has less another."""
    if " less " in name:
        one, other = (_value(evidence, part, keys) for part in name.split(" less "))
        return one - other
    measure, rest = keys["measure"], {k: v for k, v in keys.items() if k != "measure"}
    known = set(evidence.keys["printed"])
    names = [name] if name in known else name.split("+")
    several = {k: v.split("+") for k, v in rest.items() if "+" in v and k == "task"}
    choices = {"printed": names} | several
    values = [
        evidence(measure, **rest | dict(zip(choices, each, strict=True)))
        for each in product(*choices.values())
    ]
    return np.mean(values, axis=0) if len(values) > 1 else values[0]


def _side(text: str) -> tuple[str, dict[str, str]]:
    """Names, and keys behind an @."""
    names, _, keys = text.partition(" @ ")
    return names, _keys(keys)


def _keys(text: str) -> dict[str, str]:
    return dict(word.split("=") for word in text.split())
