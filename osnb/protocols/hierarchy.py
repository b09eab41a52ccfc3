"""WordNet 3.0's 82,115 nouns: who is above whom, by all hypernyms and by the tree rule.

A synset goes by its wnid: "n02084071" is dog. WordNet is no tree, since a synset can have
several hypernyms (a dog is a canine and a domestic animal). `parents` gives all of them, and so do
`ancestors`, `children` and `shortest`; `parent` gives the one of the tree rule, under which all
nouns form one tree, rooted in "entity", and so do `path`, `leaves` and `distance`.

The packed file comes from `build` and is read once, on first use.
"""

import lzma
import re
from bisect import bisect
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from osnb.base.workbook import writing

DATA = Path(__file__).parent.parent / "data"
NOUNS = DATA / "wordnet_nouns.tsv.xz"
HYPERNYMS = ("@", "@i")  # wninput(5WN): is a kind of, is an instance of


ILSVRC = tuple(pd.read_csv(DATA / "ilsvrc2012_train_counts.csv")["wnid"])
"""The 1000 classes of ILSVRC 2012, sorted; none lies above another."""

TINY_IMAGENET = tuple(pd.read_csv(DATA / "tinyimagenet_classes.csv")["wnid"])
"""The 200 of them that Tiny ImageNet has, sorted."""


@cache
def _packed() -> dict[str, tuple[str, str]]:
    """Lemmas and hypernyms of each synset, space separated, in the order of the wnids."""
    text = lzma.decompress(NOUNS.read_bytes()).decode()
    rows = (line.split("\t") for line in text.splitlines())
    return {wnid: (lemmas, hypernyms) for wnid, lemmas, hypernyms in rows}


@cache
def _chosen() -> dict[str, str]:
    table = pd.read_csv(DATA / "wordnet_tree_parents.csv", index_col="wnid")
    return table["parent_wnid"].to_dict()


def _noun(wnid: str) -> tuple[str, str]:
    packed = _packed()
    if wnid not in packed:
        ids = list(packed)
        place = max(bisect(ids, str(wnid)) - 1, 0)
        near = ", ".join(f"{w} ({name(w)})" for w in (named(wnid) or ids[place : place + 2])[:5])
        raise KeyError(f"{wnid!r} is no noun id of WordNet 3.0; nearest: {near}")
    return packed[wnid]


def nouns() -> tuple[str, ...]:
    """All wnids, sorted."""
    return tuple(_packed())


def lemmas(wnid: str) -> tuple[str, ...]:
    """The synset's words as WordNet writes them: ("dog", "domestic_dog", "Canis_familiaris").

    Raises:
        KeyError: no such noun, with the nearest ones; all functions here say so.
    """
    return tuple(_noun(wnid)[0].split(" "))


def named(word: str) -> tuple[str, ...]:
    """The synsets that a word is one of, whatever its capitals; the synset itself for a wnid."""
    given = f" {str(word).strip().replace(' ', '_').lower()} "
    return tuple(w for w, (words, _) in _packed().items() if given in f" {w} {words.lower()} ")


def name(wnid: str) -> str:
    """The first lemma, with spaces. Not unique: two ILSVRC classes are called "crane"."""
    return lemmas(wnid)[0].replace("_", " ")


def readable(classes: pd.Series) -> pd.Series:
    """Names in the place of wnids; all else stays, as do wnids whose name another class has."""
    names = pd.Series({c: name(c) if c in _packed() else c for c in classes.unique()}, dtype=object)
    return classes.replace(names[~names.duplicated(keep=False)].to_dict())


def parents(wnid: str) -> tuple[str, ...]:
    """All hypernyms, in the order of WordNet's data file; () for the root.

    What a synset is an instance of counts too, else thousands of nouns that name one person,
    river or battle would be roots. Nothing at or above an ILSVRC class is an instance.
    """
    return tuple(_noun(wnid)[1].split())


def parent(wnid: str) -> str | None:
    """The one hypernym of the tree rule, None for the root.

    The only hypernym. Among several, the one that ImageNet's own tree keeps, known for the 75
    such synsets at or above ILSVRC classes; elsewhere the last one, the custom of trees over
    all of ImageNet (Ridnik et al. 2021), which the Semantic Shift Benchmark builds on.
    """
    above = parents(wnid)
    return _chosen().get(wnid, above[-1]) if above else None


@cache
def _below() -> dict[str, list[str]]:
    """`children` of every synset that has any."""
    below: dict[str, list[str]] = {}
    for wnid in _packed():
        for above in parents(wnid):
            below.setdefault(above, []).append(wnid)
    return below


def children(wnid: str) -> tuple[str, ...]:
    """The synsets that have this one among their `parents`, sorted."""
    _noun(wnid)
    return tuple(_below().get(wnid, ()))


def siblings(wnid: str) -> tuple[str, ...]:
    """The other children of all its parents, sorted."""
    return tuple(sorted({w for p in parents(wnid) for w in children(p)} - {wnid}))


def _reached(start: str, step: Callable[[str], tuple[str, ...]]) -> dict[str, int]:
    """Everything that repeated steps lead to, the start too, and how few steps; nearest first."""
    reached, queue = {start: 0}, [start]
    for wnid in queue:
        new = [w for w in dict.fromkeys(step(wnid)) if w not in reached]
        reached |= dict.fromkeys(new, reached[wnid] + 1)
        queue += new
    return reached


@cache
def _above(wnid: str) -> dict[str, int]:
    return _reached(wnid, parents)


def ancestors(wnid: str) -> tuple[str, ...]:
    """All synsets above this one, by all hypernyms, itself left out, nearest first."""
    return tuple(_above(wnid))[1:]


def descendants(wnid: str) -> tuple[str, ...]:
    """All synsets below this one, itself left out, sorted."""
    return tuple(sorted(_reached(wnid, children).keys() - {wnid}))


def shortest(a: str, b: str) -> int:
    """The fewest edges from one synset up to what both are, and down to the other.

    Over all hypernyms, so at most `distance`, and no metric: a pear is near to a string bean as
    produce and to a peanut as a fruit, which are far apart.
    """
    first, second = _above(a), _above(b)
    return min(first[w] + second[w] for w in first.keys() & second.keys())


def leaves(wnid: str) -> tuple[str, ...]:
    """The ILSVRC classes at or below this synset by the tree rule, sorted."""
    _noun(wnid)
    return tuple(w for w in ILSVRC if wnid in path(w))


@cache
def path(wnid: str) -> tuple[str, ...]:
    """From the root to this synset, both included, by the tree rule."""
    above = parent(wnid)
    return (*path(above), wnid) if above else (wnid,)


def distance(a: str, b: str) -> int:
    """The number of edges between two synsets in the tree: 0 for the same, a metric."""
    shared = sum(x == y for x, y in zip(path(a), path(b), strict=False))
    return len(path(a)) + len(path(b)) - 2 * shared


# Whether a backbone could have seen a class before: as far as timm's tags and WordNet tell.

LISTS = {  # files of timm with the classes of a data set, by the word of a tag that names it
    "in1k": "imagenet_synsets",
    "in12k": "imagenet12k_synsets",
    "in21k": "imagenet21k_goog_synsets",
    "in22k": "imagenet22k_synsets",
}
OTHERS = re.compile(  # words of tags that name images without a list of classes
    "webli|laion|clip|openai|datacomp|lvd|dfn|yfcc|ig1b|swsl|wsl|ssl|swag|seer|jft|merged|radio|sam"
    "|sail|pali|dino|eupe|qwen|gemma|naver|cc12m|inat|cvnets|snap|apple"
)


def seen(network: Mapping[str, Any], name: str) -> str:
    """Whether the pretraining of a network could have seen a class: yes, no or not known.

    Yes: a noun of the class's name is a class of a data set in the backbone's tag (of
    `vit_tiny_patch16_224.augreg_in21k_ft_in1k`, in21k and in1k), or lies above or below one in
    WordNet. No: there are no weights in a file, or all data sets in the tag have lists and none
    has such a noun. Not known: there is no tag, or one of other data sets, or WordNet has no such
    noun. Images without a label in a data set may show anything, so no is no proof.

    Args:
        network: settings of an experiment's network.
        name: of the class, or its wnid.
    """
    if not network.get("weights"):
        return "no"
    tag = network.get("backbone", "").partition(".")[2]
    there = [_listed(LISTS[word]) for word in tag.split("_") if word in LISTS]
    nouns = named(name)
    near = {*nouns}.union(*map(ancestors, nouns), *map(descendants, nouns))
    if any(near & classes for classes in there):
        return "yes"
    return "no" if nouns and all(there) and there and not OTHERS.search(tag) else "not known"


@cache
def _listed(name: str) -> frozenset[str]:
    """The wnids of a file of timm, whose import would take seconds; none without timm."""
    timm = find_spec("timm")
    file = Path(str(timm.origin)).parent / "data" / "_info" / f"{name}.txt" if timm else Path(name)
    return frozenset(file.read_text().split()) if file.is_file() else frozenset()


def build(path: Path, *, folder: Path | None = None) -> None:
    """Write WordNet's noun hierarchy, one line a synset: `wnid, lemmas, hypernyms`.

    Tabs stand between fields, spaces within them, and xz packs the whole. Everything keeps
    the order of WordNet's data file: NLTK's `hypernyms()` come from a set, whose order
    follows PYTHONHASHSEED, so NLTK finds, opens and decodes the corpus, and its lines are
    read here.

    Args:
        path: the file to write, aside and renamed.
        folder: where WordNet's dict files are, data.noun among them; None: NLTK's corpus.

    Raises:
        FileNotFoundError: there is no corpus; the message says how to get it.
        ValueError: the corpus is not version 3.0, whose offsets are ImageNet's ids.
    """
    lines = _data_noun(folder).splitlines()
    header = "\n".join(line for line in lines if line.startswith("  "))
    version = re.search(r"WordNet (\S+) Copyright", header)
    if not version or version[1] != "3.0":
        raise ValueError(f"need WordNet 3.0; got {version[1] if version else 'no version'}")
    text = "".join(_row(line) for line in lines if not line.startswith("  "))
    with writing(path) as aside:
        aside.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def _data_noun(folder: Path | None) -> str:
    if folder is not None:
        return (Path(folder) / "data.noun").read_text(encoding="utf8")
    from nltk.corpus import LazyCorpusLoader
    from nltk.corpus.reader import CorpusReader

    try:
        return LazyCorpusLoader("wordnet", CorpusReader, ["data.noun"]).raw("data.noun")
    except (LookupError, OSError) as error:
        raise FileNotFoundError(
            "NLTK has no corpus 'wordnet': with a network, run "
            "python -c \"import nltk; nltk.download('wordnet')\"; without one, install Debian's "
            "package wordnet-base and pass folder='/usr/share/wordnet', or any folder with "
            "WordNet 3.0's data.noun"
        ) from error


def _row(line: str) -> str:
    """One line of the packed file from one line of data.noun, whose format is wndb(5WN)."""
    offset, _, _, count, *fields = line.split(" | ")[0].split()
    end = 2 * int(count, 16)  # words, each with a number; then the pointers and their count
    pointers = fields[end + 1 :]  # by fours: symbol, offset, part of speech, words
    above = zip(pointers[::4], pointers[1::4], strict=True)
    hypernyms = " ".join(f"n{target}" for symbol, target in above if symbol in HYPERNYMS)
    return f"n{offset}\t{' '.join(fields[:end:2])}\t{hypernyms}\n"
