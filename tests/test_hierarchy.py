import lzma
import os
from itertools import pairwise
from pathlib import Path

import nltk.data
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osnb.protocols import hierarchy

DOG, TENCH, ROOT = "n02084071", "n01440764", "n00001740"
noun = st.sampled_from(hierarchy.nouns())
leaf = st.sampled_from(hierarchy.ILSVRC)
laws = settings(derandomize=True, database=None, deadline=None)


def climbed(w):
    """A synset and all above it by the tree rule, step by step."""
    above = hierarchy.parent(w)
    return [w, *climbed(above)] if above else [w]


def test_no_ilsvrc_class_lies_above_another():
    above = {w for leaf in hierarchy.ILSVRC for w in hierarchy.ancestors(leaf)}
    assert not above & set(hierarchy.ILSVRC)


def test_a_choice_is_on_record_for_every_ilsvrc_ancestor_with_several_hypernyms():
    closure = {w for leaf in hierarchy.ILSVRC for w in (leaf, *hierarchy.ancestors(leaf))}
    several = {w for w in closure if len(hierarchy.parents(w)) > 1}
    assert several == set(hierarchy._chosen())
    assert len(several) == 75


def test_entity_is_the_one_root_and_every_other_noun_has_a_parent():
    assert [w for w in hierarchy.nouns() if hierarchy.parent(w) is None] == [ROOT]
    assert hierarchy.parents(ROOT) == hierarchy.ancestors(ROOT) == hierarchy.siblings(ROOT) == ()
    assert len(hierarchy.descendants(ROOT)) == 82_114


def test_elsewhere_the_last_listed_hypernym_is_the_parent():
    free = [
        w
        for w in hierarchy.nouns()
        if len(hierarchy.parents(w)) > 1 and w not in hierarchy._chosen()
    ]
    assert len(free) == 2213 - 75
    assert all(hierarchy.parent(w) == hierarchy.parents(w)[-1] for w in free)


@laws
@given(noun)
def test_parent_is_one_of_the_parents_and_children_are_their_inverse(w):
    assert hierarchy.parent(w) in (*hierarchy.parents(w), None)
    assert all(w in hierarchy.children(p) for p in hierarchy.parents(w))
    assert all(w in hierarchy.parents(c) for c in hierarchy.children(w))


@laws
@given(noun)
def test_a_path_climbs_from_the_root_by_single_edges(w):
    path = hierarchy.path(w)
    assert (path[0], path[-1]) == (ROOT, w)
    assert all(hierarchy.parent(b) == a for a, b in pairwise(path))
    assert set(path[:-1]) <= set(hierarchy.ancestors(w))
    assert hierarchy.distance(w, ROOT) == len(path) - 1


@laws
@given(leaf, leaf)
def test_distance_counts_the_edges_up_to_the_lowest_common_ancestor_and_down(a, b):
    up, down = climbed(a), climbed(b)
    common = next(w for w in up if w in down)
    assert hierarchy.distance(a, b) == up.index(common) + down.index(common)


@laws
@given(leaf)
def test_leaves_are_the_ilsvrc_classes_that_climb_to_it(w):
    above = hierarchy.parent(w)
    assert hierarchy.leaves(above) == tuple(x for x in hierarchy.ILSVRC if above in climbed(x))
    assert hierarchy.leaves(w) == (w,)


@pytest.mark.parametrize(
    ("wrong", "help"),
    [("n02084072", "n02084071"), ("dog", "n02084071"), (7, "n13744916"), ("", "n0")],
)
@pytest.mark.parametrize(
    "function",
    [hierarchy.name, hierarchy.parents, hierarchy.children, hierarchy.leaves, hierarchy.path],
)
def test_an_unknown_noun_is_refused_with_the_nearest(function, wrong, help):
    with pytest.raises(KeyError, match=f"no noun id of WordNet 3.0; nearest: .*{help}"):
        function(wrong)


# The builder, where WordNet's own files are installed.


@pytest.fixture(scope="session")
def corpus():
    """A folder with data.noun: in NLTK_DATA, or where Debian puts it."""
    folders = [
        Path(p, "corpora/wordnet") for p in os.environ.get("NLTK_DATA", "").split(os.pathsep) if p
    ]
    for folder in [*folders, Path("/usr/share/wordnet")]:
        if (folder / "data.noun").is_file():
            return folder
    pytest.skip(
        "NOT CHECKED: the shipped hierarchy against WordNet 3.0, which lies unpacked neither in "
        "NLTK_DATA nor in /usr/share/wordnet (Debian: wordnet-base)"
    )


def test_a_rebuild_gives_the_shipped_file(corpus, tmp_path):
    """Whatever the hash seed: every Python that tests has another one."""
    hierarchy.build(tmp_path / "nouns", folder=corpus)
    # What is packed must agree on any machine; how, only where the xz library is the same.
    rebuilt, shipped = (file.read_bytes() for file in (tmp_path / "nouns", hierarchy.NOUNS))
    assert lzma.decompress(rebuilt) == lzma.decompress(shipped)


def test_a_missing_corpus_is_refused_with_the_ways_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(nltk.data, "path", [])
    with pytest.raises(FileNotFoundError, match=r"nltk\.download.*folder='/usr/share/wordnet'"):
        hierarchy.build(tmp_path / "nouns")
    with pytest.raises(FileNotFoundError, match=r"data\.noun"):
        hierarchy.build(tmp_path / "nouns", folder=tmp_path)
    assert not list(tmp_path.iterdir())


def test_another_version_of_wordnet_is_refused(tmp_path):
    (tmp_path / "data.noun").write_text("  1 WordNet 3.1 Copyright 2011 by Princeton University\n")
    with pytest.raises(ValueError, match=r"need WordNet 3\.0; got 3\.1"):
        hierarchy.build(tmp_path / "nouns", folder=tmp_path)
    assert not (tmp_path / "nouns").exists()


def test_a_line_of_data_noun_is_read_by_the_letter_of_its_format():
    line = (
        "09213565 17 n 02 bank 0 river_bank 0 003 @ 09409512 n 0000 + 01234567 v 0101 "
        "@i 00001740 n 0000 | a | slope"
    )
    assert hierarchy._row(line) == "n09213565\tbank river_bank\tn09409512 n00001740\n"


def test_wnids_are_read_as_names_where_that_tells_them_apart():
    cranes = [wnid for wnid in hierarchy.ILSVRC if hierarchy.name(wnid) == "crane"]
    given = pd.Series(["n02084071", "scratched", *cranes, "n02084071", "n99999999"])
    assert [*hierarchy.readable(given)] == ["dog", "scratched", *cranes, "dog", "n99999999"]
    both = pd.Series(["n02084071", "dog", "n02121620"])
    assert [*hierarchy.readable(both)] == ["n02084071", "dog", "cat"]
    assert len(cranes) == 2
