"""Composition of Kim et al. 2021's benchmarks: rules against lists, and the FIX resize."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from osnb.datasets import READERS, small
from osnb.datasets.images import kept
from osnb.datasets.vision import torchvision
from osnb.evidence.tables import published
from osnb.protocols import PROTOCOLS, hierarchy, kim

KINDS = {"known": ("known", ""), "external": ("negative", "external")}
KINDS |= {"near": ("unknown", "near"), "far": ("unknown", "far")}
TINY = hierarchy.TINY_IMAGENET
DATA = Path(__file__).parent / "data"


def table(name):
    return published("kim2021", name).fillna("")


def slow_ancestors(wnid):
    """Everything above, by recursion."""
    return set().union(*({p} | slow_ancestors(p) for p in hierarchy.parents(wnid)))


# Protocols.


def test_each_class_of_imagenet_has_the_role_of_the_list():
    classes = PROTOCOLS["imagenet200"]()
    lists = table("classes_imagenet").set_index("wnid")["role"]
    ours = classes[classes["source"] == "ImageNet"].set_index("wnid")["group"]
    words = {"": "in-distribution", "external": "external", "near": "near proposed"}
    assert ours.map(words).to_dict() == lists[lists.isin(words.values())].to_dict()
    assert lists.value_counts().to_dict() == {
        "external": 394,
        "near discarded": 205,
        "in-distribution": 200,
        "near proposed": 200,
        "dropped": 1,
    }


def test_near_candidates_agree_with_the_definition_read_slowly():
    known, among = TINY[::20], hierarchy.ILSVRC[::7]
    slow = []
    for wnid in among:
        shared = [k for k in known if set(hierarchy.parents(k)) & slow_ancestors(wnid)]
        if shared and wnid not in known:
            slow.append(wnid)
    assert kim.near_candidates(known, among) == slow
    assert len(slow) > 5


def test_405_classes_are_near_and_only_the_crane_is_neither_near_nor_external():
    near = kim.near_candidates(TINY, hierarchy.ILSVRC)
    outer = kim.external(TINY, hierarchy.ILSVRC)
    assert (len(near), len(outer)) == (405, 394)
    (left,) = set(hierarchy.ILSVRC) - {*TINY, *near, *outer}
    assert hierarchy.lemmas(left)[0] == "crane"


@pytest.mark.parametrize("name", ["imagenet200", "tiny_kim"])
def test_near_classes_share_a_parent_and_external_ones_do_not(name):
    classes = PROTOCOLS[name]()
    wnids = {k: classes.loc[classes["group"] == v[1], "wnid"] for k, v in KINDS.items()}
    above = {p for wnid in wnids["known"] for p in hierarchy.parents(wnid)}
    assert all(above & slow_ancestors(wnid) for wnid in wnids["near"])
    assert not any(above & slow_ancestors(wnid) for wnid in wnids["external"])


def test_the_tiny_benchmark_divides_tiny_imagenet_and_keeps_what_cifar_10_has_alone():
    classes = PROTOCOLS["tiny_kim"]()
    tiny = classes[classes["source"] == "Tiny ImageNet"]
    assert set(tiny["wnid"]) <= set(TINY)
    assert tiny["group"].value_counts().to_dict() == {"external": 100, "": 60, "near": 40}
    far = classes.loc[classes["group"] == "far", "wnid"].tolist()
    assert far == ["airplane", "deer", "gaussian_noise"]


def test_cifar_100_is_divided_as_proposed_two_and_three_of_each_superclass():
    lists, ours = table("table3"), kim.divided()
    assert ours["part"].tolist() == lists["split_proposed"].tolist()
    established = lists["split_established"] != ""
    assert lists.loc[established, "class"].tolist() == ["forest"]
    assert (ours["part"] == lists["split_established"])[established].all()
    sizes = ours.groupby(["superclass", "part"]).size().unstack()
    assert sizes.drop_duplicates().to_numpy().tolist() == [[2, 3]]
    assert len(sizes) == 20


def test_cifar_40_is_labelled_in_the_order_of_cifar_100_and_keeps_its_superclasses():
    classes = PROTOCOLS["cifar40"]()
    lists = table("table3").set_index("class")
    known = classes[classes["role"] == "known"]
    assert known["wnid"].map(lists["fine_label"]).is_monotonic_increasing
    above = lists.loc[known["wnid"], "superclass"].tolist()
    assert known["superclass_name"].tolist() == above
    sizes = classes.groupby("source")["wnid"].size().to_dict()
    far = {"LSUN": 10, "SVHN": 10, "DTD": 47, "Gaussian": 1}
    assert sizes == {"CIFAR-100": 100, "Tiny ImageNet": 158} | far


def test_other_draws_of_cifar_40_have_two_of_each_superclass_and_forest_among_them():
    names = ("cifar40", "cifar40_draw1", "cifar40_draw2")
    draws = [PROTOCOLS[name]().query("role == 'known'") for name in names]
    assert len({frozenset(known["wnid"]) for known in draws}) == 3
    for known in draws:
        assert set(known["superclass_name"].value_counts()) == {2}
        assert "forest" in set(known["wnid"])
    proposed = table("table3").query("split_proposed == 'CIFAR-40'")["class"]
    assert set(draws[0]["wnid"]) == set(proposed)


def test_of_the_packed_file_the_classes_that_train_stay_each_image_as_alone(tmp_path):
    rng, files = np.random.default_rng(0), []
    for _ in range(5):
        pixels = Image.fromarray(rng.integers(0, 256, (64, 64, 3), np.uint8))
        pixels.save(file := io.BytesIO(), "jpeg")
        files.append(file.getvalue())
    splits = ["val", "train", "train", "val", "val"]
    table = {"split": splits, "wnid": ["n3", "n1", "n2", "n1", "n3"], "jpeg": files}
    pd.DataFrame(table).to_parquet(tmp_path / "tinyimagenet64_jpeg.parquet")
    images = READERS["tinyimagenet_fix"](tmp_path)
    assert images.rows["wnid"].tolist() == ["n1", "n2", "n1"]
    for i, place in enumerate((1, 2, 3)):
        alone = small.fixed(Image.open(io.BytesIO(files[place])).convert("RGB"), size=32)
        np.testing.assert_array_equal(images.read(np.array([i]))[0].numpy(), alone)


def test_42_classes_of_tiny_imagenet_are_in_cifar_100_under_the_names_of_the_list():
    lists = pd.read_csv(DATA / "classes_tinyimagenet158.csv", keep_default_na=False)
    ours = kim.tinyimagenet158()
    assert ours["wnid"].tolist() == lists["wnid"].tolist()
    removed = ours["matched"] != ""
    assert removed.tolist() == (lists["role"] == "removed").tolist()
    assert removed.sum() == 42
    assert ours.loc[removed, "matched"].tolist() == lists["matched_cifar100_name"][removed].tolist()


# Far classes, by their names.


@pytest.mark.parametrize(
    ("source", "size", "count"),
    [("Food-101", 101, 32), ("Caltech-256", 256, 45), ("Places-365", 365, 85)],
)
def test_far_classes_are_those_of_the_list(source, size, count):
    ours = kim.far_classes(source)
    lists = table("classes_far").query(f"source == '{source}'")
    assert ours["name"].tolist() == lists["class"].tolist()
    assert (ours["keyword"] == "").tolist() == (lists["role"] == "kept").tolist()
    assert (len(ours), (ours["keyword"] == "").sum()) == (size, count)


@pytest.mark.parametrize(
    ("source", "more"),
    [
        ("Food-101", []),
        ("Caltech-256", ["blimp", "bulldozer", "kayak", "tambourine"]),
        ("Places-365", ["cafeteria", "canyon", "supermarket"]),
    ],
)
def test_kinds_of_an_ilsvrc_class_take_away_three_more_places(source, more):
    usual, ours = (kim.far_classes(source, below=below) for below in (False, True))
    kept = usual.loc[usual["keyword"] == "", "name"]
    gone = sorted(set(kept) - set(ours.loc[ours["keyword"] == "", "name"]))
    nodes = {name: [n for w in kim.keywords(name) for n in hierarchy.named(w)] for name in kept}
    kinds = [
        name
        for name, called in nodes.items()
        if any({*hierarchy.ILSVRC} & {*hierarchy.ancestors(node)} for node in called)
    ]
    assert gone == sorted(kinds) == more


@pytest.mark.parametrize("row", range(22))
def test_each_variation_of_table_4_is_looked_for(row):
    kind, _, original, variation = table("table4").iloc[row]
    words = variation.replace("'s", "").split()  # of "artist loft" each word is looked for
    found = kim.keywords(original)
    assert {"_".join(words), "".join(words)} & found or set(words) <= found
    left = kim.keywords(original, variations=set(kim.VARIATIONS) - {kind})
    assert kind == "spacing" or "_".join(words) not in left or "'s" in variation


def test_keywords_are_words_and_runs_in_every_spelling():
    assert kim.keywords("hot dogs", variations=()) == {"hot", "dogs", "hot_dogs"}
    assert kim.keywords("hot dogs", variations=["plural"]) == {
        *("hot", "dogs", "hot_dogs", "dog", "hot_dog"),
    }
    assert kim.keywords("a_b/c", variations=["spacing"]) == {
        *("a", "b", "c", "a_b", "ab", "b_c", "bc", "a_b_c", "abc"),
    }
    assert {"cherry", "berri"} & kim.keywords("cherries") == {"cherry"}
    assert kim.keywords("glass") == {"glass"}


def test_another_variation_or_data_set_is_refused_with_the_valid_ones():
    with pytest.raises(ValueError, match=r"plural, spacing, abbrev.*; got dialect"):
        kim.keywords("colour", variations=["dialect"])
    with pytest.raises(ValueError, match=r"Food-101, Caltech-256, Places-365; got 'Food'"):
        kim.far_classes("Food")


# The FIX resize.


def photo(width, height, seed=0):
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    return Image.fromarray(pixels)


@pytest.mark.parametrize("size", [(300, 500), (501, 299), (64, 64), (40, 33), (256, 256)])
def test_the_fix_resize_is_torchvisions_on_pillow_images(size):
    steps = torchvision.transforms
    chain = steps.Compose([steps.Resize(256), steps.CenterCrop(256), steps.Resize(32)])
    theirs = np.asarray(chain(photo(*size))).transpose(2, 0, 1)
    np.testing.assert_array_equal(small.fixed(photo(*size)), theirs)


def test_a_result_larger_than_the_square_is_refused():
    with pytest.raises(ValueError, match="got size 64 and through 32"):
        small.fixed(photo(9, 9), through=32, size=64)


def test_images_of_a_reader_are_fixed_one_by_one():
    rows = pd.DataFrame({"sample": ["a", "b"], "wnid": "x", "split": "test"})
    photos = [np.asarray(photo(64, 64, seed)).transpose(2, 0, 1) for seed in range(2)]
    images = small.fix_all(kept(rows, lambda i: photos[i], (3, 64, 64)))
    ours = images.read(np.array([1, 0]))
    assert (images.shape, ours.dtype) == ((3, 32, 32), torch.uint8)
    for seed in range(2):
        np.testing.assert_array_equal(ours[1 - seed], small.fixed(photo(64, 64, seed)))
    with pytest.raises(ValueError, match="in colour; got 1"):
        small.fix_all(kept(rows, lambda i: photos[i][:1], (1, 64, 64)))


def test_scenes_are_fixed_and_small_ones_read_as_they_are(tmp_path):
    for scene, size in (("bridge", (90, 70)), ("tower", (32, 32))):
        (tmp_path / "lsun" / scene).mkdir(parents=True)
        photo(*size).save(tmp_path / "lsun" / scene / "a.png")
    images = READERS["lsun_fix"](tmp_path)
    assert images.rows["wnid"].tolist() == ["lsun-bridge", "lsun-tower"]
    first, second = images.read(np.arange(2)).numpy()
    np.testing.assert_array_equal(first, small.fixed(photo(90, 70)))
    np.testing.assert_array_equal(second, np.asarray(photo(32, 32)).transpose(2, 0, 1))
    assert set(images.rows["wnid"]) <= set(PROTOCOLS["cifar40"]()["wnid"])
