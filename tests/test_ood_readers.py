"""Readers of noise and of other data sets, data sets joined and reshaped."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from test_datasets import noise

from osnb import datasets
from osnb.datasets import READERS, BrokenImage
from osnb.datasets.images import Images, kept

NOISE = ("gaussian_noise", "uniform_noise", "rademacher_noise")
FILES = {  # a reader, its files under root (size of each), and what is expected of them
    "textures": ("dtd/images", {"striped/a_2.jpg": (40, 50), "banded/b_1.jpg": (64, 40)}),
    "places365": ("places365_standard/val", {"canyon/c.jpg": (40, 50), "airfield/a.jpg": (33, 35)}),
    "lsun_crop": ("LSUN/test", {"b.png": (36, 36), "a.png": (32, 32)}),
    "lsun_resize": ("LSUN_resize/LSUN_resize", {"1.jpg": (32, 32), "2.jpg": (32, 32)}),
    "isun": ("iSUN/iSUN_patches", {"y.jpeg": (32, 32), "x.jpeg": (32, 32)}),
}
BY_CLASS = ("textures", "places365")


def save(path, size, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = {".png": "PNG"}.get(path.suffix, "JPEG")
    Image.fromarray(noise(size[1], size[0], 3, seed=seed)).save(path, kind)


def make(root, name, place=None):
    official, files = FILES[name]
    for seed, (file, size) in enumerate(files.items()):
        save(root / (official if place is None else place) / file, size, seed)
    return READERS[name](root)


def everything(images):
    return images.read(np.arange(len(images.rows))).numpy()


# How many images of a far set.


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


# Data sets in another shape, and together.


def held(values):
    """Images that hold the given pixels (N, channels, S, S)."""
    rows = pd.DataFrame({"sample": [f"s{i}" for i in range(len(values))], "wnid": "a"})
    return kept(rows.assign(split="test"), values.__getitem__, values.shape[1:])


def test_grey_is_repeated_and_colour_weighed_as_itu_601_says():
    grey, colour = noise(2, 1, 8, 8), noise(2, 3, 8, 8, seed=1)
    found = everything(datasets.like(held(grey), (3, 8, 8)))
    np.testing.assert_array_equal(found, grey.repeat(3, axis=1))
    found = everything(datasets.like(held(colour), (1, 8, 8)))
    r, g, b = colour.astype(float).transpose(1, 0, 2, 3)
    wanted = np.rint(r * 299 / 1000 + g * 587 / 1000 + b * 114 / 1000)
    np.testing.assert_allclose(found[:, 0].astype(float), wanted, atol=1)


def test_joined_sets_are_read_as_if_they_lay_behind_each_other():
    parts = {name: noise(n, 3, 4, 4, seed=n) for name, n in (("a", 3), ("b", 1), ("c", 5))}
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
    parts = {"a": held(noise(1, 3, 4, 4)), "b": Images(pd.DataFrame(), None, (1, 4, 4))}
    with pytest.raises(ValueError, match=r"one shape; got \[\(1, 4, 4\), \(3, 4, 4\)\]"):
        datasets.joined(parts)


def test_gaussian_noise_has_the_mean_and_deviation_that_are_asked_for():
    for mean, sd in ((0.5, 0.1), (0.25, 0.05)):
        pixels = everything(READERS["gaussian_noise"](count=9, mean=mean, sd=sd)) / 255
        assert (pixels.mean().item(), pixels.std().item()) == pytest.approx((mean, sd), abs=0.01)
