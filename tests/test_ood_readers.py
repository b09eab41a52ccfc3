"""Readers of noise and of other data sets, data sets joined and reshaped, protocols of App. F."""

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from scipy.stats import norm

from osnb import datasets, hierarchy, protocols
from osnb.claims.open_set import _unknowns
from osnb.datasets import READERS, BrokenImage
from osnb.datasets.images import Images, kept
from osnb.labels import UNKNOWN
from osnb.protocols import PROTOCOLS

NOISE = ("gaussian_noise", "uniform_noise", "rademacher_noise")
FILES = {  # a reader, its files under root (size of each), and what is expected of them
    "textures": ("dtd/images", {"striped/a_2.jpg": (40, 50), "banded/b_1.jpg": (64, 40)}),
    "places365": ("places365_standard/val", {"canyon/c.jpg": (40, 50), "airfield/a.jpg": (33, 35)}),
    "lsun_crop": ("LSUN/test", {"b.png": (36, 36), "a.png": (32, 32)}),
    "lsun_resize": ("LSUN_resize/LSUN_resize", {"1.jpg": (32, 32), "2.jpg": (32, 32)}),
    "isun": ("iSUN/iSUN_patches", {"y.jpeg": (32, 32), "x.jpeg": (32, 32)}),
}
BY_CLASS = ("textures", "places365")


def pixels(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def save(path, size, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = {".png": "PNG"}.get(path.suffix, "JPEG")
    Image.fromarray(pixels(size[1], size[0], 3, seed=seed)).save(path, kind)


def make(root, name, place=None):
    official, files = FILES[name]
    for seed, (file, size) in enumerate(files.items()):
        save(root / (official if place is None else place) / file, size, seed)
    return READERS[name](root)


def everything(images):
    return images.read(np.arange(len(images.rows))).numpy()


# How many images of a far set.


def test_far_sets_may_be_counted_and_the_others_have_all_their_images():
    readers = "svhn textures gaussian_noise"
    wanted = {"svhn": 4000, "gaussian_noise": 10_000}
    assert datasets.counted("svhn:4000 gaussian_noise:10000", of=readers) == wanted
    assert datasets.counted("", of=readers) == {}


@pytest.mark.parametrize(
    "word", ["svhn", "svhn:", "svhn:0", "svhn:-3", "svhn:4e3", "svhn:1.5", "lsun:9", "textures:2"]
)
def test_a_count_of_no_reader_or_that_is_none_is_refused(word):
    with pytest.raises(ValueError, match=f"once for each of svhn, textures; got '{word}'"):
        datasets.counted(f"textures:7 {word}", of="svhn textures")


def test_so_many_images_are_drawn_once_and_alike_in_every_run():
    rows = pd.DataFrame({"sample": [f"s{i:03}" for i in range(60)]}, index=range(5, 65))
    np.random.seed(1)  # noqa: NPY002 (what a run seeds has no part in it)
    first = datasets.some(rows, 20, name="svhn")
    np.random.seed(2)  # noqa: NPY002
    pd.testing.assert_frame_equal(datasets.some(rows, 20, name="svhn"), first)
    assert len(first) == first["sample"].nunique() == 20
    assert first.index.is_monotonic_increasing  # in the order of the rows
    assert not datasets.some(rows, 20, name="textures").equals(first)
    assert np.ptp(first.index) > 40  # not the first ones
    for count in (0, 60):
        pd.testing.assert_frame_equal(datasets.some(rows, count, name="svhn"), rows)


def test_fewer_images_than_asked_for_are_refused_with_both_numbers(tmp_path):
    images = make(tmp_path, "textures")
    assert len(datasets.some(images.rows, 2, name="textures")) == 2
    with pytest.raises(ValueError, match="need 3 test images of textures; got 2"):
        datasets.some(images.rows, 3, name="textures")


@pytest.mark.parametrize("name", NOISE)
def test_a_reader_of_noise_makes_as_many_as_are_counted(name):
    (count,) = datasets.counted(f"{name}:450", of=name).values()
    assert len(READERS.bind(name, root=None, cache="", count=count)().rows) == 450


# Noise.


@pytest.mark.parametrize("name", NOISE)
def test_noise_is_colour_for_testing_and_of_one_class(name):
    images = READERS.bind(name, root="nowhere", cache="", train_per_class=3)()
    assert images.shape == (3, 32, 32)
    small = READERS[name](size=5, count=7)
    assert small.rows["sample"].tolist() == [f"{name}/{i:06}" for i in range(7)]
    assert set(small.rows["wnid"]) == {name}
    assert set(small.rows["split"]) == {"test"}
    found = everything(small)
    assert found.shape == (7, 3, 5, 5)
    assert found.dtype == np.uint8


@pytest.mark.parametrize("name", NOISE)
def test_an_image_of_noise_follows_from_seed_and_number_alone(name):
    few, many = (everything(READERS[name](count=count)) for count in (3, 9))
    np.testing.assert_array_equal(few, many[:3])
    assert (everything(READERS[name](count=3, seed=1)) != few).any()
    assert len({image.tobytes() for image in many}) == 9
    assert len({each.tobytes() for each in many[0]}) == 3  # channels are independent


@pytest.mark.parametrize(("mean", "sd"), [(0.5, 1.0), (0.5, 0.25), (0.2, 0.1)])
def test_gaussian_noise_is_clipped_as_often_as_the_normal_distribution_says(mean, sd):
    found = everything(READERS["gaussian_noise"](count=60, mean=mean, sd=sd)).ravel() / 255
    for level in (0.1, 0.25, 0.5, 0.9):
        wanted = norm.cdf((level * 255 // 1 + 0.5) / 255, mean, sd)
        assert (found <= level).mean() == pytest.approx(wanted, abs=0.005)
    assert (found == 0).mean() == pytest.approx(norm.cdf(0.5 / 255, mean, sd), abs=0.005)


def test_uniform_noise_fills_the_range_and_rademacher_noise_has_two_values():
    uniform = everything(READERS["uniform_noise"](count=60))
    counts = np.bincount(uniform.ravel(), minlength=256)
    assert counts[1:-1].min() > 0.8 * uniform.size / 255
    assert counts[1:-1].max() < 1.2 * uniform.size / 255
    values, counts = np.unique(everything(READERS["rademacher_noise"](count=60)), return_counts=1)
    assert values.tolist() == [0, 255]
    assert counts[0] / counts.sum() == pytest.approx(0.5, abs=0.005)


@pytest.mark.parametrize("name", NOISE)
def test_noise_without_images_or_pixels_is_refused(name):
    for bad in ({"count": 0}, {"size": 0}):
        with pytest.raises(ValueError, match="at least 1; got"):
            READERS[name](**bad)


# Files.


@pytest.mark.parametrize("name", FILES)
def test_a_set_is_read_in_the_layout_of_its_archive_sorted_and_for_testing(name, tmp_path):
    images = make(tmp_path, name)
    place, files = FILES[name]
    found, again = everything(images), everything(READERS[name](tmp_path))
    assert found.shape == (2, 3, 32, 32)
    np.testing.assert_array_equal(found, again)
    assert images.rows["sample"].tolist() == [f"{name}/{file}" for file in sorted(files)]
    assert images.rows["path"].tolist() == [f"{place}/{file}" for file in sorted(files)]
    assert set(images.rows["split"]) == {"test"}
    classes = [file.split("/")[0] if name in BY_CLASS else name for file in sorted(files)]
    assert images.rows["wnid"].tolist() == classes


@pytest.mark.parametrize("name", ["lsun_crop", "lsun_resize", "isun"])
def test_images_directly_in_the_folder_have_the_same_ids_and_pixels(name, tmp_path):
    outer = FILES[name][0].split("/")[0]
    long, short = make(tmp_path / "long", name), make(tmp_path / "short", name, outer)
    np.testing.assert_array_equal(everything(long), everything(short))
    assert long.rows["sample"].tolist() == short.rows["sample"].tolist()


@pytest.mark.parametrize("name", BY_CLASS)
def test_root_may_be_the_set_itself_but_a_folder_of_another_set_is_not_read(name, tmp_path):
    long = make(tmp_path, name)
    outer, inner = FILES[name][0].split("/")
    short = READERS[name](tmp_path / outer)
    np.testing.assert_array_equal(everything(long), everything(short))
    assert long.rows["sample"].tolist() == short.rows["sample"].tolist()
    save(tmp_path / "other" / inner / "a/a.jpg", (40, 40))
    with pytest.raises(FileNotFoundError, match=f"no .*other/{outer}/{inner}"):
        READERS[name](tmp_path / "other")


@pytest.mark.parametrize("name", FILES)
def test_a_missing_folder_and_an_empty_one_say_what_was_looked_for(name, tmp_path):
    with pytest.raises(FileNotFoundError, match="OSNB_DATA") as error:
        READERS[name](tmp_path / "absent")
    assert str(tmp_path / "absent") in str(error.value)
    (tmp_path / FILES[name][0]).mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="holds no"):
        READERS[name](tmp_path)
    if name in BY_CLASS:
        (tmp_path / FILES[name][0] / "empty").mkdir()
        with pytest.raises(FileNotFoundError, match="empty holds no image"):
            READERS[name](tmp_path)


def test_a_larger_image_of_odin_gives_its_centre_and_a_smaller_one_is_named(tmp_path):
    images = make(tmp_path, "lsun_crop")
    photo = np.asarray(Image.open(tmp_path / "LSUN/test/b.png"))
    np.testing.assert_array_equal(everything(images)[1], photo[2:34, 2:34].transpose(2, 0, 1))
    save(tmp_path / "LSUN/test/c.png", (32, 31))
    with pytest.raises(BrokenImage, match=r"c\.png must have 32 pixels a side or more"):
        everything(READERS["lsun_crop"](tmp_path))


def test_photographs_of_other_sets_are_scaled_by_their_short_side(tmp_path):
    make(tmp_path, "textures")
    images = READERS["textures"](tmp_path, resize=40, crop=38)
    photo = np.asarray(Image.open(tmp_path / "dtd/images/striped/a_2.jpg"))  # 40 wide, 50 high
    np.testing.assert_array_equal(everything(images)[1], photo[6:44, 1:39].transpose(2, 0, 1))


# Data sets in another shape, and together.


def held(values):
    """Images that hold the given pixels (N, channels, S, S)."""
    rows = pd.DataFrame({"sample": [f"s{i}" for i in range(len(values))], "wnid": "a"})
    return kept(rows.assign(split="test"), values.__getitem__, values.shape[1:])


def test_images_of_the_shape_asked_for_are_the_same_object():
    images = held(pixels(2, 3, 8, 8))
    assert datasets.like(images, (3, 8, 8)) is images


def test_grey_is_repeated_and_colour_weighed_as_itu_601_says():
    grey, colour = pixels(2, 1, 8, 8), pixels(2, 3, 8, 8, seed=1)
    found = everything(datasets.like(held(grey), (3, 8, 8)))
    np.testing.assert_array_equal(found, grey.repeat(3, axis=1))
    found = everything(datasets.like(held(colour), (1, 8, 8)))
    r, g, b = colour.astype(float).transpose(1, 0, 2, 3)
    wanted = np.rint(r * 299 / 1000 + g * 587 / 1000 + b * 114 / 1000)
    np.testing.assert_allclose(found[:, 0].astype(float), wanted, atol=1)


@pytest.mark.parametrize(("side", "new"), [(8, 32), (64, 32), (20, 32)])
def test_edges_are_scaled_as_pillow_scales_them(side, new):
    values = pixels(3, 3, side, side)
    found = everything(datasets.like(held(values), (3, new, new))).astype(int)
    for image, ours in zip(values, found, strict=True):
        scaled = Image.fromarray(image.transpose(1, 2, 0)).resize((new, new), Image.BILINEAR)
        assert abs(np.asarray(scaled).transpose(2, 0, 1) - ours).max() <= 1


def test_rows_stay_and_another_number_of_channels_is_refused():
    images = held(pixels(2, 3, 8, 8))
    other = datasets.like(images, (1, 4, 4))
    pd.testing.assert_frame_equal(other.rows, images.rows)
    assert other.shape == (1, 4, 4)
    assert torch.equal(other.read(np.array([1, 0])), other.read(np.arange(2)).flip(0))
    with pytest.raises(ValueError, match="1 or 3 channels; got 3 and 4"):
        datasets.like(images, (4, 8, 8))


def test_joined_sets_are_read_as_if_they_lay_behind_each_other():
    parts = {name: pixels(n, 3, 4, 4, seed=n) for name, n in (("a", 3), ("b", 1), ("c", 5))}
    images = datasets.joined({name: held(values) for name, values in parts.items()})
    whole = np.concatenate([*parts.values()])
    order = np.random.default_rng(0).integers(0, 9, 40)
    np.testing.assert_array_equal(images.read(order).numpy(), whole[order])
    samples = [f"{name}/s{i}" for name, values in parts.items() for i in range(len(values))]
    assert images.rows["sample"].tolist() == samples
    assert images.rows.index.tolist() == list(range(9))
    assert images.shape == (3, 4, 4)
    assert images.read(np.array([], int)).shape == (0, 3, 4, 4)


def test_sets_of_other_shapes_are_not_joined():
    parts = {"a": held(pixels(1, 3, 4, 4)), "b": Images(pd.DataFrame(), None, (1, 4, 4))}
    with pytest.raises(ValueError, match=r"one shape; got \[\(1, 4, 4\), \(3, 4, 4\)\]"):
        datasets.joined(parts)


# Protocols.


def test_closed_knows_every_class_in_sorted_order():
    names = ["pear", "apple", "quince", "apple"]
    classes = PROTOCOLS["closed"](available=names)
    assert classes["wnid"].tolist() == ["apple", "pear", "quince"]
    assert classes["label"].tolist() == [0, 1, 2]
    assert set(classes["role"]) == {"known"}
    assert protocols.describe(classes) == "closed"
    files = pd.DataFrame({"sample": ["x", "y"], "wnid": "pear", "split": ["train", "test"]})
    assert protocols.whole(classes, files)["label"].tolist() == [1, 1]
    with pytest.raises(ValueError, match="at least 2 classes in available; got 1"):
        PROTOCOLS["closed"](available=["apple", "apple"])


def test_mini_closed_knows_twenty_classes_of_tiny_imagenet_and_ten_others_are_near():
    classes = PROTOCOLS.bind("mini_closed", split=0)()
    known, near = (classes[classes["role"] == role] for role in ("known", "unknown"))
    assert (len(known), len(near)) == (20, 10)
    assert known["label"].tolist() == list(range(20))
    assert set(near["label"]) == {UNKNOWN}
    assert set(near["bin"]) == set(near["group"]) == {"near"}
    assert set(known["bin"]) == set(known["group"]) == {""}
    assert classes["wnid"].is_unique
    assert set(classes["wnid"]) <= set(hierarchy.TINY_IMAGENET)
    pd.testing.assert_frame_equal(classes, PROTOCOLS.bind("mini_closed")())
    few = PROTOCOLS["mini_closed"](available=[*known["wnid"][:4], *near["wnid"][:1]])
    assert protocols.describe(few) == "mini closed, restricted to 5 of the 30 classes"


def test_random_unknown_classes_are_others_and_a_smaller_number_gives_the_first():
    tables = {n: PROTOCOLS.bind("mini_ssb_imagenet", random_unknown=n)() for n in (0, 5, 100)}
    random = {n: t.loc[t["group"] == "random", "wnid"].tolist() for n, t in tables.items()}
    assert [len(names) for names in random.values()] == [0, 5, 100]
    assert random[5] == random[100][:5]
    rest = [name for n in tables for name in tables[n].query("group != 'random'")["wnid"]]
    assert not set(rest) & set(random[100])
    assert set(random[100]) <= set(hierarchy.ILSVRC)
    assert len(set(random[100])) == 100
    assert set(tables[100].query("group == 'random'")["role"]) == {"unknown"}
    every = PROTOCOLS.bind("mini_ssb_imagenet", random_unknown=10_000)()
    assert set(every["wnid"]) == set(hierarchy.ILSVRC)


def test_sets_of_mini_closed_are_called_by_those_in_whose_place_they_are():
    rows = pd.DataFrame({"source": ["synsets", "digits", "uniform_noise"], "role": "unknown"})
    rows["group"] = ["near", "digits", "uniform_noise"]
    found = {
        protocol: [(split, other) for split, other, _ in _unknowns(rows, run)]
        for protocol in ("mini_closed", "another")
        for run in [{"dataset": "synsets", "protocol": protocol}]
    }
    assert found["mini_closed"] == [("", "cifar10"), ("", "svhn"), ("", "uniform-noise")]
    assert found["another"] == [("near", ""), ("", "digits"), ("", "uniform-noise")]
