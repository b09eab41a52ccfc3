"""Composition of Kim et al. 2021's benchmarks: rules against lists, and the FIX resize."""

import hashlib
import re

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from osnb import gallery, hierarchy, protocols, repro
from osnb.datasets import fixed, readers
from osnb.datasets.images import kept
from osnb.labels import roles
from osnb.protocols import PROTOCOLS, kim, spelling
from osnb.tables import published
from osnb.vision import torchvision

NAMES = ("cifar40", "imagenet200", "mini_kim", "tiny_kim")
KINDS = {"known": ("known", ""), "external": ("negative", "external")}
KINDS |= {"near": ("unknown", "near"), "far": ("unknown", "far")}
TINY = hierarchy.TINY_IMAGENET


def table(name):
    return published("kim2021", name).fillna("")


def slow_ancestors(wnid):
    """Everything above, by recursion."""
    return set().union(*({p} | slow_ancestors(p) for p in hierarchy.parents(wnid)))


# Protocols.


@pytest.mark.parametrize("name", NAMES)
def test_a_protocol_is_in_the_form_of_the_others(name):
    classes = PROTOCOLS[name]()
    assert list(classes)[:6] == [*protocols.CLASS_LIST, "label"]
    assert classes["wnid"].is_unique
    assert not classes.isna().any(axis=None)
    np.testing.assert_array_equal(roles(classes["label"]), classes["role"])
    assert classes["label"].tolist()[:3] == [0, 1, 2]
    assert (classes["group"] == classes["bin"]).all()
    assert set(zip(classes["role"], classes["group"], strict=True)) == set(KINDS.values())
    pd.testing.assert_frame_equal(classes, PROTOCOLS[name]())


def test_a_restriction_is_told_and_numbers_the_known_classes_anew():
    whole = PROTOCOLS["mini_kim"]()
    part = PROTOCOLS["mini_kim"](available=whole["wnid"][3:])
    assert part["label"].max() == 6
    assert (part["label"] == -1).sum() == 20
    assert protocols.describe(part) == "mini Kim, restricted to 47 of the 50 classes"
    with pytest.raises(ValueError, match="0 known and 20 unknown"):
        PROTOCOLS["mini_kim"](available=whole["wnid"][30:])


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


@pytest.mark.parametrize("name", ["imagenet200", "mini_kim", "tiny_kim"])
def test_near_classes_share_a_parent_and_external_ones_do_not(name):
    classes = PROTOCOLS[name]()
    wnids = {k: classes.loc[classes["group"] == v[1], "wnid"] for k, v in KINDS.items()}
    above = {p for wnid in wnids["known"] for p in hierarchy.parents(wnid)}
    assert all(above & slow_ancestors(wnid) for wnid in wnids["near"])
    assert not any(above & slow_ancestors(wnid) for wnid in wnids["external"])


def test_far_classes_of_the_miniature_lie_in_other_branches():
    classes = PROTOCOLS["mini_kim"]()
    branches = {"n00015388", "n00021939"}  # animal, artefact
    for wnid, group in zip(classes["wnid"], classes["group"], strict=True):
        assert bool(branches & slow_ancestors(wnid)) == (group != "far")
    sizes = classes["group"].value_counts().to_dict()
    assert sizes == {"external": 20, "": 10, "near": 10, "far": 10}


def test_the_tiny_benchmark_divides_tiny_imagenet_and_keeps_what_cifar_10_has_alone():
    classes = PROTOCOLS["tiny_kim"]()
    tiny = classes[classes["source"] == "Tiny ImageNet"]
    assert set(tiny["wnid"]) <= set(TINY)
    assert tiny["group"].value_counts().to_dict() == {"external": 100, "": 60, "near": 40}
    far = classes.loc[classes["group"] == "far", "wnid"].tolist()
    assert far == ["airplane", "deer", "gaussian_noise"]


def test_a_draw_is_the_order_of_the_hashes():
    hexes = {w: hashlib.sha256(b"kim2021-near200:0:" + w.encode()).hexdigest() for w in TINY}
    assert kim.drawn(TINY, "near200") == sorted(TINY, key=hexes.get)
    assert kim.drawn(TINY[::-1], "near200") == kim.drawn(TINY, "near200")


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


def test_42_classes_of_tiny_imagenet_are_in_cifar_100_under_the_names_of_the_list():
    ours, lists = kim.tinyimagenet158(), table("classes_tinyimagenet158")
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


def test_ids_are_those_of_the_readers():
    ids = {s: kim.far_classes(s).set_index("name")["wnid"] for s in kim.FAR}
    assert ids["Food-101"]["foie gras"] == "foie_gras"
    assert ids["Places-365"]["escalator/indoor"] == "escalator-indoor"
    assert ids["Caltech-256"][["ak47", "waterfall", "toad"]].tolist() == [
        *("001.ak47", "241.waterfall", "256.toad"),
    ]


def test_words_around_are_the_words_of_classes_ancestors_and_siblings():
    (bat,) = (w for w in hierarchy.ILSVRC if hierarchy.name(w) == "baseball")
    words = spelling.words_around((bat,))
    siblings = {c for p in hierarchy.parents(bat) for c in hierarchy.children(p)}
    nodes = siblings | slow_ancestors(bat) | {bat}
    lemmas = [lemma.lower() for node in nodes for lemma in hierarchy.lemmas(node)]
    slow = {w for lemma in lemmas for w in (lemma, *re.findall(r"[^_ /-]+", lemma))}
    assert words == slow


@pytest.mark.parametrize("row", range(22))
def test_each_variation_of_table_4_is_looked_for(row):
    kind, _, original, variation = table("table4").iloc[row]
    words = variation.replace("'s", "").split()  # of "artist loft" each word is looked for
    found = spelling.keywords(original)
    assert {"_".join(words), "".join(words)} & found or set(words) <= found
    left = spelling.keywords(original, variations=set(spelling.VARIATIONS) - {kind})
    assert kind == "spacing" or "_".join(words) not in left or "'s" in variation


def test_keywords_are_words_and_runs_in_every_spelling():
    assert spelling.keywords("hot dogs", variations=()) == {"hot", "dogs", "hot_dogs"}
    assert spelling.keywords("hot dogs", variations=["plural"]) == {
        *("hot", "dogs", "hot_dogs", "dog", "hot_dog"),
    }
    assert spelling.keywords("a_b/c", variations=["spacing"]) == {
        *("a", "b", "c", "a_b", "ab", "b_c", "bc", "a_b_c", "abc"),
    }
    assert {"cherry", "berri"} & spelling.keywords("cherries") == {"cherry"}
    assert spelling.keywords("glass") == {"glass"}


def test_another_variation_or_data_set_is_refused_with_the_valid_ones():
    with pytest.raises(ValueError, match=r"plural, spacing, abbrev.*; got dialect"):
        spelling.keywords("colour", variations=["dialect"])
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
    np.testing.assert_array_equal(fixed.fixed(photo(*size)), theirs)


def test_the_fix_resize_is_three_steps_of_pillow():
    image = photo(400, 300)
    large = image.resize((341, 256), Image.Resampling.BILINEAR)  # 256 * 400 / 300 = 341.3
    square = large.crop((42, 0, 298, 256))  # round(85 / 2) = 42, to even
    small = square.resize((32, 32), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(fixed.fixed(image), np.asarray(small).transpose(2, 0, 1))


def test_a_fine_pattern_is_averaged_by_fix_and_kept_by_the_naive_resize():
    stripes = np.zeros((256, 256, 3), np.uint8)
    stripes[:, ::3] = 255
    assert np.ptp(fixed.fixed(Image.fromarray(stripes))) < 40
    assert np.ptp(fixed.naive(Image.fromarray(stripes))) == 255
    assert abs(fixed.fixed(Image.fromarray(stripes)).mean() - 85) < 2


def test_a_naive_pixel_is_a_pixel_of_the_photograph():
    image = photo(64, 96)
    every = np.asarray(image)[1::3, 1::2]
    np.testing.assert_array_equal(fixed.naive(image), every.transpose(2, 0, 1))


def test_a_result_larger_than_the_square_is_refused():
    with pytest.raises(ValueError, match="got size 64 and through 32"):
        fixed.fixed(photo(9, 9), through=32, size=64)


def test_images_of_a_reader_are_fixed_one_by_one():
    rows = pd.DataFrame({"sample": ["a", "b"], "wnid": "x", "split": "test"})
    photos = [np.asarray(photo(64, 64, seed)).transpose(2, 0, 1) for seed in range(2)]
    images = fixed.fix_all(kept(rows, lambda i: photos[i], (3, 64, 64)))
    ours = images.read(np.array([1, 0]))
    assert (images.shape, ours.dtype) == ((3, 32, 32), torch.uint8)
    for seed in range(2):
        np.testing.assert_array_equal(ours[1 - seed], fixed.fixed(photo(64, 64, seed)))
    with pytest.raises(ValueError, match="in colour; got 1"):
        fixed.fix_all(kept(rows, lambda i: photos[i][:1], (1, 64, 64)))


def test_scenes_are_fixed_and_small_ones_read_as_they_are(tmp_path):
    for scene, size in (("bridge", (90, 70)), ("tower", (32, 32))):
        (tmp_path / "lsun" / scene).mkdir(parents=True)
        photo(*size).save(tmp_path / "lsun" / scene / "a.png")
    images = readers.READERS["lsun_fix"](tmp_path)
    assert images.rows["wnid"].tolist() == ["lsun-bridge", "lsun-tower"]
    first, second = images.read(np.arange(2)).numpy()
    np.testing.assert_array_equal(first, fixed.fixed(photo(90, 70)))
    np.testing.assert_array_equal(second, np.asarray(photo(32, 32)).transpose(2, 0, 1))
    assert set(images.rows["wnid"]) <= set(PROTOCOLS["cifar40"]()["wnid"])


def test_caltechs_suffix_of_another_data_set_is_cut_off(tmp_path):
    (tmp_path / "022.buddha-101").mkdir()
    photo(9, 9).save(tmp_path / "022.buddha-101" / "022_0001.jpg")
    rows = readers.READERS["caltech256"](tmp_path).rows
    assert rows["wnid"].tolist() == ["022.buddha"]
    assert rows["sample"].tolist() == ["caltech256/022.buddha-101/022_0001.jpg"]


# What the gallery says of them.


@pytest.mark.parametrize(
    ("part", "theirs", "ours"),
    [
        ("Figure 1", "a sketch", "4 x 4, redrawn"),
        ("Figure 3", "a class tree", "59 / 219 / 53, derived"),
        ("Figure 4", "a class tree", "141 / 175 / 147, derived"),
        ("Table 2", "19", "12 equal, derived; 7 no rule gives"),
        ("Table 3", "40 / 60", "40 / 60, drawn"),
        ("Table 4", "22; -", "22; 14"),
    ],
)
def test_the_composition_is_compared_with_the_paper(part, theirs, ours):
    found = gallery.artefacts(repro.root()).query("notebook == '30_kim_benchmark'")
    row = found.set_index("part").loc[part]
    assert (row["theirs"], row["ours"]) == (theirs, ours)


def test_both_trees_together_hold_every_class_of_the_imagenet_benchmark():
    folder = repro.root() / "figures" / "30_kim_benchmark" / "mini"
    trees = [pd.read_csv(folder / f"figure_{n}.csv") for n in (3, 4)]
    counts = pd.concat(trees).groupby("role")["classes"].sum()
    classes = PROTOCOLS["imagenet200"]().query("source == 'ImageNet'")
    assert counts.to_dict() == classes["role"].value_counts().to_dict()


def test_the_readme_deviates_from_table_2_in_four_cells():
    found = pd.read_csv(repro.root() / "figures/30_kim_benchmark/mini/table_2.csv")
    cells = found.query("deviates == 'yes'")[["dataset", "part"]].to_numpy().tolist()
    assert sorted(cells) == [
        ["CIFAR-60", "test"],
        ["External ImageNet-394", "train"],
        ["External ImageNet-394", "validation"],
        ["ImageNet-200", "validation"],
    ]


def test_an_artefact_without_a_rule_of_comparison_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"need one of table_1, .*figure_7; got 'figure_9'"):
        gallery.COMPARED["kim2021"](tmp_path, "figure_9")
