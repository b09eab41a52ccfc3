from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from osnb import protocols
from osnb.base.labels import roles
from osnb.protocols import PROTOCOLS, hierarchy

RULES = ("p1", "p2", "p3")
PUBLISHED = Path(protocols.__file__).parents[1] / "published" / "palechor2023"

# Classes of the first lines of p1_val.csv and p2_val.csv in the history of the authors'
# repository (commit d50df10), drawn with seed 4242.
AUTHORS_VAL = {
    "p1": "n02398521 n02095314 n02095314 n02099429 n02134084 n02112137 n02114712 n02093754 "
    "n02092339 n02107908 n02488291 n02441942 n02106382 n02101556 n02093647 n02488702",
    "p2": "n02098286 n02099601 n02094433 n02097658 n02100583 n02093991 n02095570 n02097209 "
    "n02097658 n02100583 n02101388 n02097130 n02089867 n02096051 n02093991 n02096585",
    "p3": "n02112350 n12985857 n01833805 n13037406 n03131574 n02128925 n02009912 n13054560 "
    "n01855672 n04550184 n02093647 n02113712 n02256656 n02280649 n02096051 n02109961",
}
# The numbers in the names of n02087394's first files in that p2_val.csv.
AUTHORS_RIDGEBACKS = (17337, 1845, 10880, 11710, 20657, 3275, 25964, 12821, 1250, 5004, 9449)


@pytest.fixture(scope="module")
def published():
    table = pd.read_csv(PUBLISHED / "classes.csv")
    return {f"p{number}": rows for number, rows in table.groupby("protocol")}


@pytest.fixture(scope="module")
def listings():
    """For each protocol, its classes, made-up files in ILSVRC's numbers, and their division."""
    found = {}
    for name in RULES:
        classes = PROTOCOLS[name]()
        files = protocols.ilsvrc_files(classes)
        found[name] = classes, files, protocols.images(classes, files)
    return found


def toy(train=10, test=2):
    """Files of P2's classes, the same number of each."""
    wnids = protocols.p2()["wnid"]
    rows = [(f"{w}_{i}.JPEG", w, "train") for w in wnids for i in range(train)]
    rows += [(f"{w}_{i}.val", w, "test") for w in wnids for i in range(test)]
    return pd.DataFrame(rows, columns=["sample", "wnid", "split"])


# Who is what.


@pytest.mark.parametrize("name", RULES)
def test_the_derived_lists_are_the_printed_ones_in_the_printed_order(name, published):
    ours = protocols.class_list(PROTOCOLS[name]())
    assert list(ours) == ["wnid", "name", "role", "superclass_wnid", "superclass_name"]
    printed = published[name][list(ours)].reset_index(drop=True)
    pd.testing.assert_frame_equal(ours, printed, check_dtype=False)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("available", [None, hierarchy.ILSVRC[::2]])
def test_known_labels_count_up_by_wnid_and_the_others_tell_the_role(name, available):
    classes = PROTOCOLS[name](available=available)
    known = classes[classes["role"] == "known"].sort_values("wnid")
    assert list(known["label"]) == list(range(len(known)))
    np.testing.assert_array_equal(roles(classes["label"]), classes["role"])


# Restricted to what a data set has.


@pytest.mark.parametrize(
    ("name", "sizes", "words"),
    [
        ("p1", (6, 12, 40), "P1, restricted to 58 of the 349 classes"),
        ("p3", (15, 12, 35), "P3, restricted to 62 of the 412 classes"),
    ],
)
def test_tiny_imagenet_restricts_a_protocol_and_every_table_says_so(name, sizes, words):
    classes = PROTOCOLS[name](available=hierarchy.TINY_IMAGENET)
    assert tuple((classes["role"] == r).sum() for r in ("known", "negative", "unknown")) == sizes
    rows = protocols.images(classes, protocols.ilsvrc_files(classes))
    lists = protocols.class_list(classes), protocols.superclasses(classes)
    for table in (classes, rows, protocols.counts(rows), *lists):
        assert protocols.describe(table) == words


@pytest.mark.parametrize("name", RULES)
def test_a_restricted_protocol_keeps_each_role_and_the_order(name):
    whole, part = PROTOCOLS[name](), PROTOCOLS[name](available=hierarchy.ILSVRC[1::2])
    kept = whole[whole["wnid"].isin(hierarchy.ILSVRC[1::2])].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept.drop(columns="label"), part.drop(columns="label"))


def test_a_protocol_without_two_known_classes_and_one_of_each_other_role_is_refused():
    reason = "P2 needs at least 2 known .* 200 available classes give 1 known, 2 negative and 10 un"
    with pytest.raises(ValueError, match=reason):
        protocols.p2(available=hierarchy.TINY_IMAGENET)
    with pytest.raises(ValueError, match=r"P1 .* 116 known, 0 negative and 0 unknown"):
        protocols.p1(available=hierarchy.leaves("n02084071"))


# The division of the files.


def test_table_1_follows_from_the_rule_and_the_number_of_images_of_each_class(listings):
    table = pd.read_csv(PUBLISHED / "table1.csv").fillna(0)
    for number, (name, (_, _, rows)) in enumerate(listings.items(), start=1):
        printed = table[table["protocol"] == number].drop(columns="protocol")
        ours = protocols.counts(rows)
        assert list(ours) == ["role", "classes", "train", "val", "test"]
        assert ours.to_numpy().tolist() == printed.to_numpy().tolist(), name


def test_each_class_gets_its_share_by_largest_remainder(listings):
    """Floor of the total, shared out in proportion: the one that rounding would miss is in P3."""
    for _, files, rows in listings.values():
        trainable = rows[rows["split"] != "test"]
        sizes = files[files["split"] == "train"].groupby("wnid").size()[trainable["wnid"].unique()]
        total = 8 * sizes.sum() // 10
        exact = sizes * total / sizes.sum()
        shares = np.floor(exact).astype(int)
        largest = (exact - shares).sort_values(ascending=False).index[: total - shares.sum()]
        shares[largest] += 1
        train = trainable[trainable["split"] == "train"].groupby("wnid").size()
        pd.testing.assert_series_equal(train, shares.sort_index(), check_names=False)
    snowplough = listings["p3"][2].query("wnid == 'n04238763'")["split"].value_counts()
    assert (snowplough["train"], snowplough["val"]) == (929, 233)


@pytest.mark.parametrize("name", RULES)
def test_with_their_seed_the_validation_list_begins_as_the_authors_did(name, listings):
    classes, files, _ = listings[name]
    rows = protocols.images(classes, files, seed=4242)
    ours = rows.loc[rows["split"] == "val", "wnid"]
    assert list(ours.head(16)) == AUTHORS_VAL[name].split()


def test_within_a_class_the_files_are_the_authors_in_the_order_of_their_names(listings):
    classes, files, _ = listings["p2"]
    rows = protocols.images(classes, files, seed=4242).query("split == 'val'")
    ours = rows.loc[rows["wnid"] == "n02087394", "sample"].head(len(AUTHORS_RIDGEBACKS))
    theirs = [f"{number}.JPEG" for number in AUTHORS_RIDGEBACKS]
    np.testing.assert_array_equal(np.argsort(ours.to_numpy()), np.argsort(theirs))


def test_the_division_does_not_depend_on_the_order_of_the_files():
    classes, files = protocols.p2(), toy()
    before = files.copy()
    rows = protocols.images(classes, files)
    shuffled = protocols.images(classes, files.sample(frac=1, random_state=0))
    pd.testing.assert_frame_equal(rows, shuffled)
    pd.testing.assert_frame_equal(files, before)


def test_too_few_images_are_refused_with_the_class_and_its_number():
    files = toy()
    ridgeback = files["wnid"] == "n02087394"
    short = files.drop(files[ridgeback & (files["split"] == "train")].index[4:])
    reason = r"P2 needs 5 train images .* of 61 classes; n02087394 \(Rhodesian ridgeback\) has 4"
    with pytest.raises(ValueError, match=reason):
        protocols.images(protocols.p2(), short)
    without = files.drop(files[ridgeback & (files["split"] == "test")].index)
    with pytest.raises(ValueError, match=r"P2 needs 1 test images .* of 116 classes; n02087394"):
        protocols.images(protocols.p2(), without)


def test_as_many_images_of_a_role_are_held_out_as_are_asked_for_and_evenly_by_class():
    roles = {"n01440764": "known", "n01443537": "known", "n01484850": "negative"}
    classes = pd.DataFrame(roles.items(), columns=["wnid", "role"]).assign(label=[0, 1, -1])
    files = pd.DataFrame({"wnid": np.repeat([*roles], 64)})
    files["split"] = np.where(files.index % 64 < 60, "train", "test")
    files["sample"] = files.index.astype(str)
    rows = protocols.images(classes, files, held_out={"known": 10, "negative": 7})
    assert rows["sample"].is_unique
    counts = rows.groupby(["split", "wnid"]).size().to_dict()
    assert [counts["val", wnid] for wnid in roles] == [5, 5, 7]
    assert [counts["train", wnid] for wnid in roles] == [55, 55, 53]
    assert [counts["test", wnid] for wnid in roles] == [4, 4, 4]


def test_a_split_that_is_none_of_the_three_is_refused():
    with pytest.raises(ValueError, match="need the splits train, val and test; got extra"):
        protocols.images(protocols.p2(), toy().replace({"split": {"test": "extra"}}))


def test_the_validation_part_of_a_data_set_that_has_one_is_kept_as_it_is():
    files = toy()
    files.loc[files["split"].eq("train") & (files.groupby("wnid").cumcount() < 2), "split"] = "val"
    for seed in (0, 1):
        rows = protocols.images(protocols.p2(), files, seed=seed)
        assert (rows["split"] == files.loc[rows.index, "split"]).all()
        assert set(rows.loc[rows["split"] != "test", "role"]) == {"known", "negative"}


def test_file_lists_hold_paths_and_labels_as_the_authors_write_them():
    lists = protocols.file_lists(protocols.p2(), toy())
    assert list(lists) == ["train", "val", "test"]
    assert all(list(table) == ["path", "label"] for table in lists.values())
    assert [len(table) for table in lists.values()] == [61 * 8, 61 * 2, 116 * 2]
    assert set(lists["train"]["label"]) == set(lists["val"]["label"]) == {*range(30), -1}
    labels = lists["test"]["label"].to_list()
    assert labels[:3] == [0, 0, 1]  # known, negative, unknown, each by wnid
    assert labels == sorted(labels[:60]) + [-1] * 62 + [-2] * 110
    first = lists["test"].head(2).to_csv(header=False, index=False, lineterminator="\n")
    assert first == "n02087394_0.val,0\nn02087394_1.val,0\n"
