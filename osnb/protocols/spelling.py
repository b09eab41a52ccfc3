"""Whether a class of another data set is in the hierarchy, by the words of its name.

The far sets of Kim et al. 2021 (Table 4) are made so. The rule is the reference's; with it the
printed numbers of Food-101's and Caltech-256's classes come out exactly.
"""

import re
from collections.abc import Iterable
from functools import cache

from osnb import hierarchy

VARIATIONS = ("plural", "spacing", "abbreviation_or_possessive")  # kinds of Table 4
APART = {"barndoor": "barn door", "fishpond": "fish pond", "shopfront": "shop front"}
BREAKS = re.compile("[_ /-]")  # between the words of a name or a lemma


@cache
def words_around(classes: tuple[str, ...] = hierarchy.ILSVRC) -> frozenset[str]:
    """Lemmas, and their words, of the classes, their ancestors and their siblings, lower case."""
    nodes = {n for w in classes for n in (w, *hierarchy.ancestors(w), *hierarchy.siblings(w))}
    lemmas = {lemma.lower() for node in nodes for lemma in hierarchy.lemmas(node)}
    return frozenset(lemmas.union(*map(BREAKS.split, lemmas)))


def keywords(name: str, *, variations: Iterable[str] = VARIATIONS) -> set[str]:
    """Under which words a class of another data set is looked for in the hierarchy (Table 4).

    Each word of the name, each run of words joined with "_", and by variation: "plural" adds the
    singular of the last word, "spacing" runs joined with nothing and three names taken apart,
    "abbreviation_or_possessive" chimpanzee for chimp.

    Args:
        name: of a class, such as "cup cakes" or "forest/broadleaf".
        variations: some of VARIATIONS.

    Raises:
        ValueError: another variation.
    """
    kinds = set(variations)
    if other := kinds.difference(VARIATIONS):
        raise ValueError(f"need some of {', '.join(VARIATIONS)}; got {', '.join(sorted(other))}")
    names = [name.lower(), *([APART[name]] if "spacing" in kinds and name in APART else [])]
    found = {word for each in names for word in _runs(BREAKS.split(each), kinds)}
    return found | ({"chimpanzee"} if VARIATIONS[2] in kinds and "chimp" in found else set())


def _runs(words: list[str], kinds: set[str]) -> set[str]:
    joints = ("_", "") if "spacing" in kinds else ("_",)
    found = set()
    for stop in range(1, len(words) + 1):
        last = {words[stop - 1], *(_singular(words[stop - 1]) if "plural" in kinds else ())}
        for start in range(stop):
            found |= {j.join([*words[start : stop - 1], w]) for j in joints for w in last}
    return found


def _singular(word: str) -> list[str]:
    ends = (("s", ""), ("es", ""), ("ies", "y"))
    if word.endswith("ss"):
        return []
    return [word.removesuffix(end) + new for end, new in ends if word.endswith(end)]
