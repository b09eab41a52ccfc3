"""Published lists of Vaze et al. 2022, the ways in which they are made, and their miniatures."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from osnb import hierarchy, protocols
from osnb.datasets import synsets as synsets_reader
from osnb.datasets.small import LETTERS, digits, glyphs
from osnb.datasets.synsets import attributes
from osnb.labels import roles
from osnb.protocols import PROTOCOLS, making, miniature
from osnb.tables import published

STANDARD = {
    "mnist": "MNIST",
    "svhn": "SVHN",
    "cifar10": "CIFAR10",
    "cifar_plus_10": "CIFAR+10",
    "cifar_plus_50": "CIFAR+50",
    "tinyimagenet": "TinyImageNet",
}
SSB = {
    "ssb_cub": "CUB",
    "ssb_cars": "Stanford Cars",
    "ssb_aircraft": "FGVC-Aircraft",
    "ssb_imagenet": "ImageNet",
}
BIRDS = hierarchy.leaves("n01503061")[::2][:20]


def every():
    """Every protocol of Vaze et al. and every miniature, bound."""
    for name in PROTOCOLS:
        if name not in ("p1", "p2", "p3"):
            splits = range(5) if name in STANDARD else range(2)
            own = {"attributes": attributes(BIRDS)}
            own |= {"available": hierarchy.TINY_IMAGENET} if name == "closed" else {}
            for split in splits:
                yield name, PROTOCOLS.bind(name, split=split, **own)


def table(name):
    return published("vaze2022", f"splits_{name}")


# The lists.


@pytest.mark.parametrize("name", STANDARD)
def test_every_split_has_the_classes_and_images_of_the_summary(name):
    summary = table("summary").query(f"dataset == '{STANDARD[name]}'")
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


@pytest.mark.parametrize("name", SSB)
def test_table_2_counts_the_classes_of_the_lists(name):
    classes = PROTOCOLS[name]()
    bins = classes["bin"].where(classes["role"] == "unknown", "known").value_counts()
    merged = ("medium", "hard") if name == "ssb_cars" else ()  # Table 2 has no Medium there
    printed = published("vaze2022", "table2").query(f"dataset == '{SSB[name]}'").dropna()
    for row in printed.itertuples():
        ours = bins.reindex(merged if row.split == "Hard" and merged else [row.split.lower()]).sum()
        assert ours == row.n_classes, row.split
    if name == "ssb_imagenet":
        assert (printed["n_test_images"] == 50 * printed["n_classes"]).all()
    assert (classes["group"] == classes["bin"].replace("medium", "hard")).all()


def test_the_images_of_table_2_are_those_of_the_whole_test_sets():
    sums = published("vaze2022", "table2").groupby("dataset")["n_test_images"].sum()
    assert [sums[name] for name in ("CUB", "Stanford Cars", "FGVC-Aircraft")] == [5794, 8041, 3333]


def test_every_protocol_is_in_the_form_of_the_others():
    for name, make in every():
        classes = make()
        assert list(classes)[:6] == [*protocols.CLASS_LIST, "label"], name
        assert classes["wnid"].is_unique, name
        assert not classes.isna().any(axis=None), name
        np.testing.assert_array_equal(roles(classes["label"]), classes["role"])
        known = classes[classes["role"] == "known"]
        assert known["label"].tolist() == list(range(len(known))), name
        pd.testing.assert_frame_equal(classes, make())


def test_labels_follow_the_authors_order():
    classes = PROTOCOLS.bind("cifar10", split=0)()
    assert classes["name"].tolist()[:4] == ["airplane", "frog", "deer", "truck"]
    assert PROTOCOLS.bind("mnist", split=0)()["wnid"].tolist()[:2] == ["2 - two", "4 - four"]
    tiny = PROTOCOLS.bind("tinyimagenet", split=0)()
    assert tiny["wnid"][0] == "n03447447"
    assert set(tiny["wnid"]) == set(hierarchy.TINY_IMAGENET)
    cars = PROTOCOLS["ssb_cars"]()
    assert cars["name"][0] == "Acura RL Sedan 2012"
    assert PROTOCOLS["ssb_cub"]()["wnid"].str.match(r"\d{3}\.[A-Z]").all()


def test_unknown_classes_of_cifar_plus_n_come_from_the_other_data_set():
    for name in ("cifar_plus_10", "cifar_plus_50"):
        classes = PROTOCOLS.bind(name, split=3)()
        source = classes.groupby("role")["source"].unique()
        assert (list(source["known"]), list(source["unknown"])) == (["CIFAR10"], ["CIFAR100"])


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
    with pytest.raises(ValueError, match="1 known and 2 unknown"):
        PROTOCOLS["ssb_imagenet"](available=whole["wnid"][999:1002])


def test_a_split_or_data_set_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match=r"MNIST, .*TinyImageNet and a split 0 to 4; got .* 5"):
        PROTOCOLS.bind("mnist", split=5)()
    with pytest.raises(TypeError, match="'mnist' needs split"):
        PROTOCOLS.bind("mnist")
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


def test_no_class_is_easy_where_pairs_alone_give_more_unknown_ones_than_wanted():
    names = ["A B Sedan 2012", "A B Sedan 2007", "A C Coupe 2012", "A C Van 2012", "A D Van 2012"]
    made = making.by_name([*names, "A E Van 2012"], unknown=0)
    assert made["bin"].tolist() == ["known", "hard", "known", "medium", "known", "known"]
    assert made["order"].tolist() == [3, -1, 2, -1, 0, 1]
    one_more = making.by_name([*names, "A E Van 2012"], unknown=3)
    assert one_more["bin"].tolist() == ["known", "hard", "known", "medium", "known", "easy"]


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


def test_ancestors_and_descendants_of_known_classes_are_marked_as_published():
    lists = table("imagenet")
    made = making.relations(lists["wnid"], lists.loc[lists["split"] == "known", "wnid"])
    assert made == lists["relation"].fillna("").tolist()
    marks = lists.groupby(["split", "relation"]).size().to_dict()
    assert marks == {
        ("easy", "ancestor"): 134,
        ("hard", "ancestor"): 32,
        ("hard", "descendant"): 160,
    }


def test_each_class_is_as_similar_as_its_closest_known_one_and_hard_ones_are_the_most():
    near = making.similarity(attributes(BIRDS))
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


@pytest.mark.parametrize("by", making.SEPARATION)
def test_the_search_takes_the_best_separated_of_its_draws(by):
    near = making.similarity(attributes(BIRDS))
    settings = {"known": 10, "sizes": (3, 3, 4), "seed": 1, "by": by}
    found = []
    for draws in (1, 5, 40):
        parts = making.search(near, draws=draws, **settings).groupby("bin")["value"]
        means, gap = parts.mean(), parts.min()["hard"] - parts.max()["easy"]
        found.append(means["hard"] - means["easy"] if by == "mean" else gap)
    assert found[0] <= found[1] <= found[2]
    assert found[0] < found[2]


def test_the_published_birds_have_known_partners():
    birds = table("cub")
    open_ones = birds[birds["split"] != "known"]
    partners = birds.set_index("class_index")["split"][open_ones["paired"].astype(int)]
    assert set(partners) == {"known"}


# Miniatures.


def test_mini_digits_divide_as_mnist_does_and_the_letters_are_those_of_the_reader():
    assert miniature.LETTERS == LETTERS
    for split in (0, 1):
        mini = PROTOCOLS.bind("mini_digits", split=split, glyphs=True)()
        mnist = PROTOCOLS.bind("mnist", split=split)()
        assert mini["name"].tolist()[:10] == mnist["name"].tolist()
        ids = {*digits().rows["wnid"], *glyphs(per_class=1).rows["wnid"]}
        assert set(mini["wnid"]) == ids
        assert set(mini.loc[mini["source"] == "glyphs", "group"]) == {"glyphs"}
    with pytest.raises(ValueError, match="split 0 or 1; got 2"):
        PROTOCOLS.bind("mini_digits", split=2)()


def test_miniatures_on_drawn_synsets_can_be_drawn():
    for name in ("mini_tinyimagenet", "mini_ssb_imagenet", "mini_ssb_fine"):
        classes = PROTOCOLS.bind(name, split=1, attributes=attributes(BIRDS))()
        images = synsets_reader.synsets(train_per_class=1, test_per_class=1, wnids=classes["wnid"])
        rows = protocols.whole(classes, images.rows)
        known = (classes["role"] == "known").sum()
        assert rows["split"].value_counts().to_dict() == {"test": len(classes), "train": known}


def test_the_two_splits_of_mini_tinyimagenet_have_other_known_classes():
    one, two = (PROTOCOLS.bind("mini_tinyimagenet", split=split)() for split in (0, 1))
    known = [set(each.loc[each["role"] == "known", "wnid"]) for each in (one, two)]
    assert known[0] != known[1]
    assert known[0] | known[1] <= set(hierarchy.TINY_IMAGENET)


def test_hard_classes_of_the_miniatures_look_more_like_known_ones():
    for name in ("mini_ssb_imagenet", "mini_ssb_fine"):
        classes = PROTOCOLS.bind(name, attributes=attributes(BIRDS))()
        near = making.similarity(attributes(classes["wnid"]))
        known = (classes["role"] == "known").to_numpy()
        closest = pd.Series(near[:, known].max(axis=1)).groupby(classes["group"]).mean()
        assert closest["easy"] < closest["hard"], name
    with pytest.raises(ValueError, match="attributes of 20; got 3"):
        PROTOCOLS.bind("mini_ssb_fine", attributes=attributes(BIRDS[:3]))()
    with pytest.raises(ValueError, match="largest or smallest distance; got 'far'"):
        making.by_distance(BIRDS, known=BIRDS[:1], among=BIRDS, size=1, hard="far")
