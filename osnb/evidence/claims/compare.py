"""A claim that is a comparison, as columns of claims.csv; its `number` is above 0 if it holds.

    measure   auroc, ... ; a|b asks for each, "a and b" for their mean
    at        keys of both sides, "task=easy|hard" for each of them, "task=easy and hard" for their
              mean, "source=*" for each that there is; "source=." is the claim's scope, .1 and .2
              the parts of one with a comma; place is the scope unless it is said; "drawn=no": there
              were no images to draw, so there is no interval, and all seeds with every name have to
              agree
    left      printed names, a|b for each of them, "a and b" for their mean, "a less b" for a
              difference, "a over b" for a share; or a number; behind an @ stand keys: of one name
              alone, or at the end of the whole side
    relation  > or < : left is more, or less, than each of right, by the margin where there is one;
              "some >" : one of them is; ~ : they differ by no more than the margin, or by apart no
              more than that
    right     as left, keys a|b for each of them; "same" is what stands left, "others" every other
              name, "others but a|b": it holds only where all methods were run
    margin    as one name on the right

Parts between semicolons belong together and each has to hold. Of all that is asked the least
number counts.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain, product

import numpy as np

from osnb.evidence.build import Evidence, Missing, Same, largest, least

FEW, DIGITS = 3, 12  # comparisons that have to agree where nothing is drawn; of a sign
PARTS = ("measure", "at", "left", "relation", "right")
Keys = dict[str, str]


def number(evidence: Evidence, where: str, claim: Mapping[str, str]) -> np.ndarray:
    """(1 + R,) the number of a claim, in the unit of its measure; (1,) where nothing was drawn.

    Args:
        evidence: of runs, or of printed tables.
        where: one of the claim's scopes.
        claim: the columns above and apart, and no NaN.

    Raises:
        Missing: a number that it needs is not there.
        Same: both sides are one and the same numbers, so that no other run would decide it.
    """
    numbers, drawn = _numbers(evidence, where, claim)
    if claim["relation"].startswith("some"):
        combined = largest(*(least(*each) for each in numbers))
    else:
        combined = least(*chain(*numbers))
    if drawn:
        return combined
    if "seed" in evidence.keys:
        _one_sign(evidence, where, claim, combined[0])
    return combined[:1]


def _numbers(
    evidence: Evidence, where: str, claim: Mapping[str, str]
) -> tuple[list[list[np.ndarray]], bool]:
    """Of each name on the left what it is ahead of each rival; and whether images were drawn."""
    scope = {".": where} | {f".{i}": part for i, part in enumerate(where.split(","), 1)}
    cells = [claim[name].split("; ") for name in PARTS]
    many = max(map(len, cells))
    numbers = []
    for measure, at, *parts in zip(*(c * (many // len(c)) for c in cells), strict=True):
        keys = {"measure": measure, "place": where} | _keys(at, scope)
        drawn = keys.pop("drawn", "") != "no"
        for one in _each(evidence, keys):
            numbers += _compared(evidence, one, scope, claim, *parts)
    return numbers, drawn


def _one_sign(evidence: Evidence, where: str, claim: Mapping[str, str], combined: float) -> None:
    """Refuse a number without an interval, unless three comparisons or more share its sign.

    Each name on the left, rival and seed that has them all is one. Two share a sign as often as
    not, three one time in four.

    Raises:
        Same: fewer do, or one has another sign than the number.
    """
    signs = []
    for seed in evidence.keys["seed"].iloc[sorted(evidence.used)].unique():
        alone = evidence.only(evidence.fits(seed=seed))
        with suppress(Missing):  # not every method was trained with this seed
            numbers, _ = _numbers(alone, where, claim)
            signs += [np.sign(each[0].round(DIGITS)) for part in numbers for each in part]
    if len(signs) < FEW or {*signs} != {np.sign(combined.round(DIGITS))} or 0 in signs:
        said = ", ".join(map("{:+.0f}".format, signs))
        raise Same(f"no interval, and signs {said} beside {combined:+.3f}")


def _each(evidence: Evidence, keys: Keys) -> Iterator[Keys]:
    """Every combination of the keys that both sides share."""
    if keys.get("network") == "shared":
        keys = shared(evidence, keys)
    for name in [name for name, value in keys.items() if value == "*"]:
        rest = {k: v for k, v in keys.items() if k not in (name, "measure")}
        keys = keys | {name: "|".join(evidence.names(name, **rest))}
    yield from _choices(keys, "|")


def shared(evidence: Evidence, keys: Mapping[str, str]) -> Keys:
    """The keys, and the network there that most methods share, so that they are compared on one.

    Print has one network for each data set and no such key.
    """
    rest = {name: value for name, value in keys.items() if name != "network"}
    if "network" not in evidence.keys:
        return rest
    of = {k: re.split(r"\|| and ", v) for k, v in rest.items() if k in evidence.keys and v != "*"}
    rows = evidence.keys[evidence.keys[[*of]].isin(of).all(axis=1)]
    methods = rows.groupby("network")["printed"].nunique()
    return rest | ({"network": methods.idxmax()} if len(methods) else {})


def _compared(
    evidence: Evidence, keys: Keys, scope: Keys, claim: Mapping[str, str], *parts: str
) -> list[list[np.ndarray]]:
    """What each name on the left is ahead of each rival; parts are left, relation and right."""
    left, relation, right = parts
    (names, own), (against, others) = _side(left, scope), _side(right, scope)
    name, of = _side(claim["margin"] or "0", scope)
    margin, numbers = _value(evidence, name, keys | of), []
    for name in names.split("|"):
        one = _value(evidence, name, keys | own)
        asked = product(_rivals(evidence, name, against, keys), _choices(others, "|"))
        rest = [_value(evidence, rival, keys | each) for rival, each in asked]
        if against == "same" and np.array_equal(one, rest[0]):
            raise Same(f"{' '.join(own.values())} is {' '.join(others.values())}")
        if relation == "~":
            apart = float(claim["apart"] or 0)
            numbers.append([margin - np.abs(one - each - apart) for each in rest])
        else:
            sign = -1 if relation == "<" else 1
            numbers.append([sign * (one - each) - margin for each in rest])
    return numbers


def _rivals(evidence: Evidence, name: str, against: str, keys: Keys) -> list[str]:
    """The names that one on the left is held against."""
    if not against.startswith("others"):
        return against.replace("same", name).split("|")
    but = {name, *against.removeprefix("others").removeprefix(" but ").split("|")}
    place = {k: v for k, v in keys.items() if k != "measure"}
    if rivals := [x for x in evidence.names("printed", **place) if x not in but]:
        return rivals
    raise Missing(f"no method but {name}")


def _value(evidence: Evidence, name: str, keys: Keys) -> np.ndarray:
    """(1 + R,) of a printed name or a number, of the mean of several, or of two against each other.

    A name's own keys stand behind its @.
    """
    for word, combined in ((" less ", np.subtract), (" over ", np.divide)):
        if word in name:
            return combined(*(_value(evidence, part, keys) for part in name.split(word)))
    if " and " in name:
        return np.mean([_value(evidence, part, keys) for part in name.split(" and ")], axis=0)
    if re.fullmatch(r"-?\d+(\.\d+)?", name):
        return np.full(1 + evidence.resamples, float(name))
    name, own = _side(name, {})
    each = _choices(keys | own | {"printed": name}, " and ")
    return np.mean([evidence(**where) for where in each], axis=0)


def _side(text: str, scope: Keys) -> tuple[str, Keys]:
    """Names, and keys behind the last @."""
    names, at, keys = text.rpartition(" @ ")
    return (names, _keys(keys, scope)) if at else (keys, {})


def _keys(text: str, scope: Keys) -> Keys:
    """Words key=value as such; a value may have blanks, and dots stand for the scope."""
    words = re.findall(r"(\w+)=(.*?)(?= \w+=|$)", text)
    return {name: scope.get(value, value) for name, value in words}


def _choices(keys: Keys, apart: str) -> list[Keys]:
    """Every combination of values between which there is a word."""
    values = product(*(value.split(apart) for value in keys.values()))
    return [dict(zip(keys, each, strict=True)) for each in values]
