"""Published lists of Vaze et al. 2022, the ways in which they are made, and their miniatures."""

from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from osnb import protocols
from osnb.datasets.small import digits
from osnb.evidence.tables import published
from osnb.protocols import PROTOCOLS, hierarchy, making

SUMMARY = Path(__file__).parent / "data" / "splits_summary.csv"
STANDARD = {
    "mnist": "MNIST",
    "svhn": "SVHN",
    "cifar10": "CIFAR10",
    "cifar_plus_10": "CIFAR+10",
    "cifar_plus_50": "CIFAR+50",
    "tinyimagenet": "TinyImageNet",
}


def table(name):
    return published("vaze2022", f"splits_{name}")


# The lists.


@pytest.mark.parametrize("name", STANDARD)
def test_every_split_has_the_classes_and_images_of_the_summary(name):
    summary = pd.read_csv(SUMMARY).query(f"dataset == '{STANDARD[name]}'")
    lists = table("standard").query(f"dataset == '{STANDARD[name]}'")
    assert len(summary) == 5
    for row in summary.itertuples():
        classes = PROTOCOLS.bind(name, split=row.split)()
        sizes = classes["role"].value_counts()
        assert (sizes["known"], sizes["unknown"]) == (row.known_classes, row.unknown_classes)
        here = lists[lists["split"] == row.split].groupby("role")
        assert here["train_images"].sum()["known"] == row.known_train_images
        test = here["test_images"].sum()
        assert [test["known"], test["unknown"]] == [row.known_test_images, row.unknown_test_images]


def test_splits_with_the_same_known_classes_are_told_in_every_table():
    twins = protocols.duplicates().to_numpy().tolist()
    assert twins == [
        ["SVHN", "0, 1"],
        ["CIFAR10", "0, 1"],
        ["CIFAR+10", "1, 2"],
        ["CIFAR+50", "1, 2"],
    ]
    words = "SVHN, split 1 (same known classes as split 0)"
    classes = PROTOCOLS.bind("svhn", split=1)()
    files = pd.DataFrame({"sample": ["a"], "wnid": ["5"], "split": ["test"]})
    for each in (classes, protocols.class_list(classes), protocols.whole(classes, files)):
        assert protocols.describe(each) == words
    assert protocols.describe(PROTOCOLS.bind("svhn", split=2)()) == "SVHN, split 2"


def test_a_restriction_is_told_and_numbers_the_known_classes_anew():
    whole = PROTOCOLS["ssb_imagenet"]()
    lists = table("imagenet")
    packed = lists.loc[(lists["split"] == "known") | (lists["in_ssb_package"] == 1), "wnid"]
    part = PROTOCOLS["ssb_imagenet"](available=packed)
    assert part["group"].value_counts().to_dict() == {"": 1000, "easy": 1000, "hard": 980}
    assert protocols.describe(part).endswith("restricted to 2980 of the 3000 classes")
    fewer = PROTOCOLS["ssb_imagenet"](available=whole["wnid"][3:1010])
    assert fewer["label"].max() == 996
    with pytest.raises(ValueError, match="1 known, 0 negative and 2 unknown"):
        PROTOCOLS["ssb_imagenet"](available=whole["wnid"][999:1002])


def test_a_split_or_data_set_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match=r"MNIST, .*TinyImageNet and a split 0 to 4; got .* 5"):
        PROTOCOLS.bind("mnist", split=5)()
    with pytest.raises(TypeError, match=r"missing .* 'split'"):
        PROTOCOLS.bind("mnist")()
    with pytest.raises(KeyError, match="aircraft, cars, cub, imagenet"):
        protocols.ssb("dogs")


def test_all_training_images_of_known_classes_train_and_all_others_only_test():
    classes = PROTOCOLS.bind("mini_digits", split=0)()
    files = digits().rows
    rows = protocols.whole(classes, files)
    assert rows.loc[rows["split"] == "train", "role"].unique().tolist() == ["known"]
    assert (rows["split"] == "test").sum() == (files["split"] == "test").sum()
    known = files["wnid"].isin(classes.loc[classes["role"] == "known", "wnid"])
    assert (rows["split"] == "train").sum() == (known & (files["split"] == "train")).sum()
    assert list(rows.index) == sorted(rows.index)


# How they are made.


def test_all_of_the_cars_list_follows_from_the_names():
    cars = table("cars")
    made = making.by_name(cars["class"], unknown=98)
    assert made["bin"].tolist() == cars["split"].tolist()
    assert made["order"].tolist() == cars["order"].fillna(-1).astype(int).tolist()


def test_all_bins_and_pairs_of_the_aircraft_list_follow_from_its_levels():
    aircraft = table("aircraft")
    assert aircraft[["variant", "family", "manufacturer"]].nunique().tolist() == [100, 70, 30]
    known = aircraft.index[aircraft["split"] == "known"]
    made = making.by_levels(aircraft, set(known))
    assert made["bin"].tolist() == aircraft["split"].tolist()
    pairs = (
        aircraft["paired"]
        .fillna("")
        .map(lambda text: sorted(map(int, text.split("|"))) if text else [])
    )
    assert made["paired"].tolist() == pairs.tolist()


@pytest.fixture(scope="module")
def imagenet21k():
    """The 11,221 synsets of ImageNet-21K-P, Fall 2011, from timm's list."""
    folder = Path(find_spec("timm").submodule_search_locations[0])
    return (folder / "data" / "_info" / "imagenet21k_miil_synsets.txt").read_text().split()


def test_96_in_a_hundred_of_the_imagenet_lists_follow_from_summed_distances(imagenet21k):
    lists = table("imagenet").groupby("split")["wnid"].agg(set)
    made = making.by_distance(imagenet21k, known=lists["known"], among=imagenet21k, size=1000)
    found = made.groupby("bin")["wnid"].agg(set)
    assert {name: len(found[name] & lists[name]) for name in found.index} == {
        "easy": 968,
        "hard": 959,
    }


def test_no_class_is_easy_and_hard():
    names = hierarchy.ILSVRC[:60:2]
    how = {"known": names[:1], "among": None}
    assert making.by_distance(names, **how, size=5)["wnid"].is_unique
    with pytest.raises(ValueError, match=r"need 30 classes .*; got 29, and \d+ would be easy and"):
        making.by_distance(names, **how, size=15)
    with pytest.raises(ValueError, match=r"need 4 classes .*; got 5, and \d would be easy and"):
        making.by_distance(names[11:16], **how, size=2)  # of one distance


def test_summed_distances_agree_with_a_walk_from_class_to_class(imagenet21k):
    among, known = set(imagenet21k), imagenet21k[5::900]

    def up(wnid):
        found = [wnid]
        while hierarchy.parents(found[-1]):
            found.append(hierarchy.parents(found[-1])[-1])
        return [each for each in found if each in among]

    def steps(a, b):
        a, b = up(a), up(b)
        shared = len(set(a) & set(b))
        return len(a) + len(b) - 2 * shared + (a[-1] != b[-1])

    some = imagenet21k[::400]
    slow = [sum(steps(w, k) for k in known) for w in some]
    assert making.total_distances(some, known=known, among=among).tolist() == slow
    assert making.total_distances(["n00021939"], known=[], among=among).tolist() == [0]


def test_each_class_is_as_similar_as_its_closest_known_one_and_hard_ones_are_the_most():
    table = np.random.default_rng(0).normal(size=(20, 7))
    near = making.similarity(pd.DataFrame(table))
    a, b = table[3], table[11]
    assert near[3, 11] == pytest.approx(sum(a * b) / (sum(a**2) * sum(b**2)) ** 0.5)
    assert np.diag(near) == pytest.approx(1)
    known, sizes = [0, 5, 9, 14], (6, 5, 5)
    made = making.by_attributes(near, known, sizes=sizes)
    for i, row in made.iterrows():
        if i in known:
            assert (row["bin"], row["paired"]) == ("known", -1)
        else:
            assert row["value"] == max(near[i, k] for k in known) == near[i, row["paired"]]
    parts = made.groupby("bin")["value"]
    assert parts.size()[["easy", "medium", "hard"]].tolist() == list(sizes)
    assert parts.max()["easy"] <= parts.min()["medium"] <= parts.max()["medium"]
    assert parts.max()["medium"] <= parts.min()["hard"]
    with pytest.raises(ValueError, match="add up to 16 classes"):
        making.by_attributes(near, known, sizes=(5, 5, 5))


@pytest.mark.parametrize(("by", "hard", "easy"), [("gap", "min", "max"), ("mean", "mean", "mean")])
def test_a_search_keeps_the_known_set_whose_hard_and_easy_classes_are_furthest_apart(
    by, hard, easy
):
    near = making.similarity(pd.DataFrame(np.random.default_rng(1).normal(size=(10, 3))))

    def apart(made):
        parts = made.groupby("bin")["value"]
        return parts.agg(hard)["hard"] - parts.agg(easy)["easy"]

    sizes = (3, 2, 3)
    every = [making.by_attributes(near, two, sizes=sizes) for two in combinations(range(10), 2)]
    made = making.search(near, known=2, sizes=sizes, draws=300, seed=0, by=by)
    assert apart(made) == pytest.approx(max(map(apart, every)))


# Miniatures.


@pytest.mark.parametrize("split", range(5))
def test_the_digits_of_a_miniature_are_known_where_those_of_mnist_are(split):
    ours = PROTOCOLS.bind("mini_digits", split=split)()
    lists = table("standard").query(f"dataset == 'MNIST' and split == {split}")
    known = {f"digit-{name}" for name in lists.query("role == 'known'")["class"]}
    assert set(ours.query("role == 'known'")["wnid"]) == known
    assert set(ours["wnid"]) == {f"digit-{i}" for i in range(10)} == set(digits().rows["wnid"])
    assert len(known) == 6
