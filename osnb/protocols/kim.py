"""Who is known, near, far and external in Kim et al. 2021, by the paper's rules over WordNet.

A class is near when one of its ancestors is a parent of a known class, external when it is not
(Sec. 3), far when no keyword of its name is a word of the hierarchy around ImageNet (Table 4).
External classes, role negative, may be used in training. What the paper draws at random and does
not publish is drawn here by hashes: those classes are a proposal, `DRAWN` names them.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256
from itertools import count, islice

import pandas as pd

from osnb.base.tables import published
from osnb.protocols import hierarchy
from osnb.protocols.vaze import rows_of

PAPER = "kim2021"
DRAWN = ("cifar40", "near200")  # keys of `drawn` in the place of the authors' random numbers
FAR = ("Food-101", "Caltech-256", "Places-365")
CIFAR10 = "airplane automobile bird cat deer dog frog horse ship truck"
TINY = 60  # known classes of `tiny_kim`
VARIATIONS = ("plural", "spacing", "abbreviation_or_possessive")  # kinds of Table 4
APART = {"barndoor": "barn door", "fishpond": "fish pond", "shopfront": "shop front"}
BREAKS = re.compile("[_ /-]")  # between the words of a name or a lemma


def drawn(items: Iterable[str], key: str, seed: int = 0) -> list[str]:
    """In the place of a random order: by the SHA-256 of "kim2021-<key>:<seed>:<item>"."""
    return sorted(items, key=lambda item: sha256(f"{PAPER}-{key}:{seed}:{item}".encode()).digest())


def near_candidates(known: Iterable[str], among: Iterable[str]) -> list[str]:
    """The other synsets that have a direct hypernym of a known one among their ancestors.

    All hypernyms count, not only those of the tree rule.

    Args:
        known: wnids.
        among: wnids, whose order is kept; known ones are passed over.
    """
    known = set(known)
    above = {parent for wnid in known for parent in hierarchy.parents(wnid)}
    rest = [wnid for wnid in among if wnid not in known]
    return [wnid for wnid in rest if above.intersection(hierarchy.ancestors(wnid))]


def external(known: Iterable[str], among: Iterable[str]) -> list[str]:
    """What is neither known nor near, nor called like a known class.

    The last is not in the paper. It takes away one class, the bird "crane" (the machine is
    known), without which the printed 394 would be 395.
    """
    known, among = set(known), list(among)
    names = {hierarchy.name(wnid) for wnid in known}
    out = known.union(near_candidates(known, among))
    return [wnid for wnid in among if wnid not in out and hierarchy.name(wnid) not in names]


def tinyimagenet158() -> pd.DataFrame:
    """Tiny ImageNet's classes, and which CIFAR-100 class each one is, or is a kind of.

    Names are compared with all lemmas of the class and of its ancestors, in any sense of the
    word. The paper gave CIFAR-100's classes their wnids by hand, which is not published.

    Returns:
        wnid, name, matched ("spider@n01772222": CIFAR-100's class and the synset of that name,
        or "" for the 158 that stay).
    """
    words = set(published(PAPER, "table3")["class"].str.removesuffix("_tree"))
    wnids = list(hierarchy.TINY_IMAGENET)
    matched = [next(_called(wnid, words), "") for wnid in wnids]
    names = [hierarchy.name(wnid) for wnid in wnids]
    return pd.DataFrame({"wnid": wnids, "name": names, "matched": matched})


def _called(wnid: str, words: set[str]):
    for node in (wnid, *hierarchy.ancestors(wnid)):
        for lemma in hierarchy.lemmas(node):
            if lemma.lower() in words:
                yield f"{lemma.lower()}@{node}"


def far_classes(
    source: str, *, variations: Iterable[str] = VARIATIONS, below: bool = False
) -> pd.DataFrame:
    """A data set's classes, and by which keyword each one is in the hierarchy around ImageNet.

    The paper keeps 32 of Food-101, 45 of Caltech-256 (whose "clutter" is no class) and 82 of
    Places-365. The rule keeps 32, 45 and 85; with `below` it keeps 32, 41 and 82.

    Args:
        source: Food-101, Caltech-256 or Places-365.
        variations: as for `keywords`.
        below: whether a keyword may be a lemma below an ILSVRC class too, as a whole.

    Returns:
        wnid (the class's id as its reader gives it), name, keyword ("" if the class is kept; of
        several the first in the alphabet).

    Raises:
        ValueError: another data set.
    """
    if source not in FAR:
        raise ValueError(f"need one of {', '.join(FAR)}; got {source!r}")
    table = published(PAPER, "classes_far")
    names = table.loc[table["source"] == source, "class"].tolist()
    around = words_around() | (_words_below() if below else set())
    hits = [min(keywords(n, variations=variations) & around, default="") for n in names]
    # Food-101 and Places-365 name folders without blanks and strokes, Caltech-256 counts them
    ids = [name.replace(" ", "_").replace("/", "-") for name in names]
    if source == "Caltech-256":
        ids = [f"{number:03}.{name}" for number, name in enumerate(names, 1)]
    return pd.DataFrame({"wnid": ids, "name": names, "keyword": hits})


def imagenet200(*, available: Iterable[str] | None = None) -> pd.DataFrame:
    """ImageNet-200 known, 394 external, 200 near and the far classes of three data sets.

    Which 200 of the 405 near candidates the authors drew is not published.

    Args:
        available: ids of the classes that there are images of; None: all.

    Returns:
        As `vaze.standard`. Known classes have neither group nor bin; of the others both are
        external (role negative, label -1), near or far (role unknown, label -2).

    Raises:
        ValueError: too few classes are available.
    """
    known, among = hierarchy.TINY_IMAGENET, hierarchy.ILSVRC
    near = drawn(near_candidates(known, among), DRAWN[1])[:200]
    parts = wordnet_parts("ImageNet", known, external(known, among), sorted(near))
    for source in FAR:
        kept = far_classes(source).query("keyword == ''")
        parts.append(part(source, "far", kept["wnid"], kept["name"]))
    return joined("Kim ImageNet-200", parts, available)


def divided(draw: int = 0) -> pd.DataFrame:
    """Table 3: CIFAR-100's superclass and class, and its part, CIFAR-40 or CIFAR-60.

    Two classes of each superclass are known. The paper draws them and shows them by colours;
    only that "forest" is known can be read. Ours are the draws with that, in the order of seeds:
    0 is the proposal, the next ones show what the draw is worth.
    """
    table = published(PAPER, "table3")[["superclass", "class", "fine_label"]]
    groups = table.groupby("superclass", sort=False)["class"]
    draws = ({x for _, names in groups for x in drawn(names, DRAWN[0], i)[:2]} for i in count())
    known = next(islice((names for names in draws if "forest" in names), draw, None))
    part = table["class"].isin(known).map({True: "CIFAR-40", False: "CIFAR-60"})
    return table.assign(part=part)


def cifar40(*, draw: int = 0, available: Iterable[str] | None = None) -> pd.DataFrame:
    """CIFAR-40 known, Tiny ImageNet158 external, CIFAR-60 near; LSUN, SVHN, DTD and noise far.

    Arguments, rows and errors are those of `imagenet200`; CIFAR-100's classes have their
    superclass there. LSUN's "bridge" is a class of CIFAR-100 too, as in the paper.

    Args:
        draw: of the known classes, see `divided`.
    """
    lists = divided(draw).sort_values("fine_label").set_index("class")
    tiny = tinyimagenet158().query("matched == ''")
    parts = [
        part("CIFAR-100", "", lists.index[lists["part"] == "CIFAR-40"]),
        part("Tiny ImageNet", "external", tiny["wnid"], tiny["name"]),
        part("CIFAR-100", "near", lists.index[lists["part"] == "CIFAR-60"]),
    ]
    far = pd.read_csv(hierarchy.DATA / "cifar40_far.csv", dtype=str).groupby("source", sort=False)
    parts += [part(source, "far", names) for source, names in far["class"]]
    table = joined("Kim CIFAR-40", parts, available)
    above = table["wnid"].map(lists["superclass"]).fillna(table["source"])
    table["superclass_wnid"] = table["superclass_name"] = above
    return table


def tiny_kim(*, available: Iterable[str] | None = None) -> pd.DataFrame:
    """60 of Tiny ImageNet's classes known, the others near or external; CIFAR-10 and noise far.

    Of CIFAR-10 those classes are far that no keyword finds around Tiny ImageNet's classes. See
    `imagenet200`.
    """
    known = drawn(hierarchy.TINY_IMAGENET, "tiny")[:TINY]
    all_200, around = hierarchy.TINY_IMAGENET, words_around(hierarchy.TINY_IMAGENET)
    near, outer = near_candidates(known, all_200), external(known, all_200)
    parts = [
        *wordnet_parts("Tiny ImageNet", known, outer, near),
        part("CIFAR-10", "far", [name for name in CIFAR10.split() if not keywords(name) & around]),
        part("Gaussian", "far", ["gaussian_noise"]),
    ]
    return joined("tiny Kim", parts, available)


def wordnet_parts(
    source: str, known: Sequence[str], outer: Sequence[str], near: Sequence[str]
) -> list[pd.DataFrame]:
    """`part` of each kind that follows from the hierarchy: known, external, near."""
    kinds = {"": known, "external": outer, "near": near}
    return [
        part(source, group, wnids, map(hierarchy.name, wnids)) for group, wnids in kinds.items()
    ]


def part(
    source: str, group: str, ids: Iterable[str], names: Iterable[str] | None = None
) -> pd.DataFrame:
    """Rows of a data set's classes of one group: known (""), external, near or far."""
    ids = list(ids)
    role = {"": "known", "external": "negative"}.get(group, "unknown")
    rows = pd.DataFrame({"wnid": ids, "name": ids if names is None else list(names)})
    return rows.assign(role=role, source=source, group=group, bin=group)


def joined(
    protocol: str, parts: Sequence[pd.DataFrame], available: Iterable[str] | None
) -> pd.DataFrame:
    """The protocol that its parts make, known classes labelled as they come."""
    rows = pd.concat(parts, ignore_index=True)
    return rows_of(protocol, rows.assign(order=range(len(rows))), available)


# Whether a class of another data set is in the hierarchy, by the words of its name. With the
# reference's rule the printed numbers of Food-101's and Caltech-256's classes come out exactly.


@cache
def words_around(classes: tuple[str, ...] = hierarchy.ILSVRC) -> frozenset[str]:
    """Lemmas, and their words, of the classes, their ancestors and their siblings, lower case."""
    nodes = {n for w in classes for n in (w, *hierarchy.ancestors(w), *hierarchy.siblings(w))}
    lemmas = {lemma.lower() for node in nodes for lemma in hierarchy.lemmas(node)}
    return frozenset(lemmas.union(*map(BREAKS.split, lemmas)))


@cache
def _words_below() -> frozenset[str]:
    nodes = {node for wnid in hierarchy.ILSVRC for node in hierarchy.descendants(wnid)}
    return frozenset(lemma.lower() for node in nodes for lemma in hierarchy.lemmas(node))


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
    words = {word for spelling in names for word in _runs(BREAKS.split(spelling), kinds)}
    return words | ({"chimpanzee"} if VARIATIONS[2] in kinds and "chimp" in words else set())


def _runs(words: list[str], kinds: set[str]) -> set[str]:
    joints = ("_", "") if "spacing" in kinds else ("_",)
    runs = set()
    for stop in range(1, len(words) + 1):
        last = {words[stop - 1], *(_singular(words[stop - 1]) if "plural" in kinds else ())}
        for start in range(stop):
            runs |= {j.join([*words[start : stop - 1], w]) for j in joints for w in last}
    return runs


def _singular(word: str) -> list[str]:
    ends = (("s", ""), ("es", ""), ("ies", "y"))
    if word.endswith("ss"):
        return []
    return [word.removesuffix(end) + new for end, new in ends if word.endswith(end)]
