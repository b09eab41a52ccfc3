"""Drawings by people: what ships, how it is divided, and that a drawing is what its strokes say."""

import hashlib
import platform
import shutil
import struct
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from scipy.ndimage import distance_transform_edt

from osnb.base import workbook
from osnb.base.workbook import verified
from osnb.datasets import READERS
from osnb.datasets.augment import AUGMENT, LINES, randaugment
from osnb.datasets.quickdraw import FOLDER, MOST, drawings, rendered, strokes
from osnb.datasets.quickdraw import pictures as quickdraw_pictures
from osnb.teach import doctor

TABLE = pd.read_parquet(FOLDER / "quickdraw.parquet")
DIGEST = "15b0ceabe06cd353"  # of 984 drawings, x86-64, Pillow 9.5, 10.4, 11.3, 12.0 and 13.0


def everything(images):
    return images.read(np.arange(len(images.rows)))


def slow_strokes(packed):
    """Each stroke as a list of (x, y), byte by byte."""
    ways, at = [], 0
    while at < len(packed):
        (count,) = struct.unpack_from("<H", packed, at)
        xs = struct.unpack_from(f"{count}B", packed, at + 2)
        ys = struct.unpack_from(f"{count}B", packed, at + 2 + count)
        ways.append(list(zip(xs, ys, strict=True)))
        at += 2 + 2 * count
    return ways


def slow_pictures(packed, side, *more):
    """(side, side) shares of each pixel inked by a pen so much wider than ours."""
    ways, page, pen = slow_strokes(packed), 4 * side, 0.1875 * side
    corners = np.array([point for way in ways for point in way])
    middle = (corners.min(0) + corners.max(0)) / 2
    dry = np.ones((2 * page + 1, 2 * page + 1), bool)  # borders and middles of fine pixels
    for way in ways:
        for start, end in pairwise(np.array(way)):
            places = start + (end - start) * np.linspace(0, 1, 600)[:, None]
            x, y = np.rint(page + 2 * (places - middle) * (page - 2 * pen) / 255).astype(int).T
            dry[y, x] = False
    far = distance_transform_edt(dry)[1::2, 1::2]  # from the middles, in half fine pixels
    return [(far <= pen + wider).reshape(side, 4, side, 4).mean((1, 3)) for wider in more]


# What ships


def test_none_of_the_drawings_that_were_left_out_is_in_the_package():
    left_out = (workbook.root() / "tests" / "data" / "quickdraw_left_out.txt").read_text().split()
    digests = {hashlib.sha256(str(key).encode()).hexdigest()[:12] for key in TABLE["key_id"]}
    assert len(set(left_out)) == 129
    assert not digests & set(left_out)


def test_all_others_are_there():
    assert list(TABLE) == ["label", "name", "key_id", "strokes"]
    assert TABLE["key_id"].is_unique
    counts = TABLE["name"].value_counts()
    assert (len(TABLE), len(counts), counts.min(), counts.max()) == (68_871, 345, 191, 200)
    assert counts["nose"] == 191
    assert TABLE["strokes"].duplicated().sum() == 1  # two lines, as README.md says


def test_a_broken_file_is_refused_with_its_path(tmp_path, monkeypatch):
    shutil.copytree(FOLDER, tmp_path / "data" / "quickdraw")
    broken = tmp_path / "data" / "quickdraw" / "quickdraw.parquet"
    assert verified(broken) == broken
    verified.cache_clear()
    broken.write_bytes(broken.read_bytes()[:-1] + b"?")
    with pytest.raises(ValueError, match=f"{broken} is broken: need sha256 .* fresh clone"):
        verified(broken)
    monkeypatch.setattr(workbook, "PACKAGE", tmp_path)
    assert (doctor.drawings().state, str(broken) in doctor.drawings().found) == ("fail", True)
    assert "fresh clone" in doctor.drawings().advice
    broken.unlink()
    assert (doctor.drawings().state, str(broken) in doctor.drawings().found) == ("fail", True)


def test_the_doctor_counts_them():
    assert doctor.drawings()[:3] == (
        "drawings",
        "ok",
        "Quick, Draw!, 68,871 of 345 classes, checksum right",
    )


def test_a_wheel_carries_what_readers_read():
    import tomllib

    config = tomllib.loads((workbook.root() / "pyproject.toml").read_text())
    globs = config["tool"]["setuptools"]["package-data"]["osnb"]
    shipped = {path for glob in globs for path in workbook.PACKAGE.glob(glob)}
    assert {path for path in (workbook.PACKAGE / "data").rglob("*") if path.is_file()} <= shipped


# How it is divided


def test_classes_are_one_synset_each_and_none_is_two_things():
    synsets = pd.read_csv(FOLDER / "synsets.csv")
    assert set(synsets["name"]) == set(TABLE["name"])
    table = drawings()
    pairs = table[["name", "wnid"]].drop_duplicates()
    assert len(pairs) == pairs["name"].nunique() == pairs["wnid"].nunique() == 339
    assert pairs["wnid"].str.fullmatch(r"n\d{8}").all()
    assert pairs.merge(synsets, on=["name", "wnid"])["name"].tolist() == pairs["name"].tolist()
    unused = {"mouse", "nail", "ceiling fan", "animal migration", "smiley face", "The Mona Lisa"}
    assert set(synsets["name"]) - set(pairs["name"]) == unused


def test_a_class_has_a_hundred_drawings_to_train_then_forty_to_validate_then_the_rest_to_test():
    rows = READERS["quickdraw"]().rows
    sizes = pd.crosstab(rows["wnid"], rows["split"])
    assert (sizes["train"] == 100).all()
    assert (sizes["val"] == 40).all()
    assert (sizes["test"].min(), sizes["test"].max()) == (51, 60)
    assert rows["sample"].is_unique
    parts = rows["sample"].str.split("/", expand=True)
    zebras = TABLE[TABLE["name"] == "zebra"]["key_id"].sort_values().tolist()
    assert parts.loc[parts[1] == "zebra", 2].astype(int).tolist() == zebras


def test_fewer_drawings_are_the_first_of_each_part_with_the_same_pixels():
    few = READERS["quickdraw"](train_per_class=3, validation_per_class=0, test_per_class=2)
    rows = READERS["quickdraw"]().rows.set_index("sample")["split"]
    assert len(few.rows) == 5 * 339
    assert (rows[few.rows["sample"]].to_numpy() == few.rows["split"]).all()
    other = READERS["quickdraw"](channels=3)
    places = pd.Index(other.rows["sample"]).get_indexer(few.rows["sample"][:20])
    pixels, alike = few.read(np.arange(20)), other.read(places)
    assert pixels.shape == (20, 1, 32, 32)
    assert torch.equal(pixels.expand(-1, 3, -1, -1), alike)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"side": 0}, "side of at least 1, 1 or 3 channels; got 0 and 1"),
        ({"channels": 2}, "got 32 and 2"),
        ({"train_per_class": 101}, f"at most {MOST} drawings of a class; got .*101"),
        ({"test_per_class": -1}, "got .*-1"),
    ],
)
def test_numbers_out_of_range_are_refused(settings, reason):
    with pytest.raises(ValueError, match=reason):
        READERS["quickdraw"](**settings)


# What a drawing looks like


def test_strokes_are_what_a_slow_voice_reads():
    for packed in TABLE["strokes"][::500]:
        assert [list(map(tuple, way.tolist())) for way in strokes(packed)] == slow_strokes(packed)


@pytest.mark.parametrize("side", [28, 32])
def test_a_picture_lies_between_those_of_a_thinner_and_a_thicker_pen(side):
    for packed in TABLE["strokes"][100:69_000:9_000]:
        thin, thick = slow_pictures(packed, side, -4.5, 3.5)  # half fine pixels
        picture = rendered(packed, side) / 255
        assert (thin - 0.003 <= picture).all()
        assert (picture <= thick + 0.003).all()


def test_a_drawing_lies_in_the_middle_and_a_dot_is_seen():
    dot = bytes([2, 0, 7, 7, 9, 9])
    picture = rendered(dot, 32).astype(int)
    assert np.count_nonzero(picture) == 4
    assert picture[15:17, 15:17].min() > 90
    bar = bytes([2, 0, 0, 255, 0, 0])
    rows, columns = np.nonzero(rendered(bar, 32))
    assert (columns.min(), columns.max()) == (0, 31)
    assert set(rows) <= {15, 16}


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="tried on x86-64 only")
def test_pixels_are_the_same_to_the_bit():
    pixels = np.stack([rendered(packed, 32) for packed in TABLE["strokes"][::70]])
    assert hashlib.sha256(pixels.tobytes()).hexdigest()[:16] == DIGEST


@pytest.mark.parametrize("m", [1.0, 9.0, 20.0, 30.0])
@pytest.mark.parametrize("op", LINES)
def test_operations_for_lines_leave_lines_on_a_dark_ground(op, m):
    images = READERS["quickdraw"](train_per_class=0, validation_per_class=0, test_per_class=1)
    images = images.read(np.arange(0, 339, 10))
    made = randaugment(images, n=1, m=m, ops=[op], generator=torch.Generator().manual_seed(0))
    before, after = (batch.flatten(1).float() for batch in (images, made))
    assert after.median(dim=1).values.max() < 64
    assert (after.amax(dim=1) - after.median(dim=1).values).min() > 20
    assert ((after > 127).sum(1) < 2.5 * (before > 0).sum(1)).all()


@pytest.mark.parametrize("name", ["crop_flip", "randaugment_crop_flip", "crop_flip_augmix"])
def test_training_transforms_keep_a_drawing_s_shape_and_kind(name):
    images = READERS["quickdraw"]().read(np.arange(50))
    more = {"randaugment_crop_flip": {"n": 2, "m": 9.0, "ops": LINES}}
    more["crop_flip_augmix"] = {"severity": 3.0}
    draw = torch.Generator().manual_seed(0)
    made = AUGMENT[name](images, **more.get(name, {}), generator=draw).float()
    assert made.shape == images.shape
    assert made.amax(dim=(1, 2, 3)).min() > 20
    assert 0.6 < made.mean() / images.float().mean() < 1.4


# Beside them


def test_characters_are_those_of_the_sheet():
    images = READERS["omniglot_few"]()
    sheet = np.asarray(Image.open(workbook.PACKAGE / "data" / "omniglot" / "characters.png"))
    pixels = everything(images)[:, 0].numpy()
    assert pixels.shape == (406, 28, 28)
    assert (pixels[30] == sheet[28:56, 28:56]).all()
    assert pixels.max(axis=(1, 2)).min() > 150
    assert images.rows["wnid"].is_unique


def test_patterns_are_a_function_of_their_number_and_side_changes_only_how_fine_they_are():
    images = READERS["patterns"](count=40)
    pixels = everything(images)
    assert torch.equal(pixels[:7], everything(READERS["patterns"](count=7)))
    assert not torch.equal(pixels, everything(READERS["patterns"](count=40, seed=1)))
    assert images.rows["wnid"].value_counts().eq(8).all()
    fine = everything(READERS["patterns"](count=40, side=64))[:, 0].numpy().astype(float)
    coarse = fine.reshape(40, 32, 2, 32, 2).mean((2, 4))
    assert np.abs(coarse - pixels[:, 0].numpy()).mean() < 12
    for kind in ("stripes", "checks", "rings", "blotches"):
        chosen = pixels.numpy()[images.rows["wnid"] == f"pattern-{kind}"]
        assert 0.3 < (chosen > 127).mean() < 0.7


@pytest.mark.parametrize("settings", [{"side": 0}, {"count": 0}])
def test_patterns_need_a_side_and_a_count(settings):
    with pytest.raises(ValueError, match="side and count of at least 1"):
        READERS["patterns"](**settings)


def test_letters_of_another_side_are_the_same_letters():
    small, large = everything(READERS["glyphs"]()), everything(READERS["font_letters"]())
    mean = large.float().reshape(-1, 8, 4, 8, 4).mean((2, 4))
    assert (small[:, 0] - mean).abs().mean() < 12
    assert everything(READERS["font_digits"]()).shape == (200, 1, 32, 32)
    with pytest.raises(ValueError, match="a side that divides 64; got 28"):
        READERS["glyphs"](side=28)


def test_figures_show_the_drawings_that_were_chosen_then_the_others_by_key_id():
    shown = pd.read_csv(FOLDER / "shown.csv")
    table = drawings().query("split == 'test'")
    assert not shown.duplicated().any()
    both = shown.merge(table, on=["name", "key_id"])
    assert len(both) == len(shown)  # each is a test drawing of its class
    tigers = table[table["name"] == "tiger"]
    chosen = tigers["key_id"].isin(shown["key_id"]).to_numpy()
    assert chosen.sum() == 3
    order = [*tigers["strokes"][chosen], *tigers["strokes"][~chosen]][:5]
    found = quickdraw_pictures(["n02129604"], 5, side=28, channels=3)
    assert found.shape == (1, 5, 3, 28, 28)
    for made, packed in zip(found[0], order, strict=True):
        assert (made == rendered(packed, 28)).all()
