"""Digits and letters: size, range, who is what, and that letters are near but not the same."""

import io

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from osnb.datasets import READERS
from osnb.protocols.vaze import LETTERS, digit_classes


def everything(images):
    return images.read(np.arange(len(images.rows)))


@pytest.mark.parametrize(("name", "count"), [("digits", 1797), ("glyphs", 20 * len(LETTERS))])
def test_images_have_the_promised_size_and_range_and_two_reads_agree(name, count):
    first, second = READERS[name](), READERS[name]()
    pixels = everything(first)
    assert pixels.shape == (count, *first.shape) == (count, 1, 8, 8)
    assert pixels.dtype.itemsize == 1
    assert pixels.float().amax(dim=(1, 2, 3)).min() > 150
    assert (pixels == everything(second)).all()
    assert first.rows.equals(second.rows)
    assert first.rows["sample"].is_unique


def test_rows_of_a_packed_file_keep_their_images_whatever_its_index(tmp_path):
    levels, jpegs = [0, 60, 120, 180, 240], []
    for level in levels:
        Image.new("RGB", (32, 32), (level,) * 3).save(file := io.BytesIO(), "jpeg")
        jpegs.append(file.getvalue())
    table = pd.DataFrame({"split": "train", "wnid": [f"n{x}" for x in levels], "jpeg": jpegs})
    table.iloc[[3, 1, 4]].to_parquet(tmp_path / "tinyimagenet32_jpeg.parquet")
    images = READERS["tinyimagenet_parquet"](tmp_path)
    assert [*images.rows["wnid"]] == ["n180", "n60", "n240"]
    assert everything(images).float().mean(dim=(1, 2, 3)).tolist() == pytest.approx([180, 60, 240])


def test_half_of_each_digit_is_for_training():
    rows = READERS["digits"]().rows
    share = (rows["split"] == "train").groupby(rows["wnid"]).mean()
    assert share.between(0.49, 0.51).all()
    assert (READERS["digits"](seed=1).rows["split"] != rows["split"]).mean() > 0.4


def test_roles_of_the_digits_are_those_of_the_house():
    classes = digit_classes().set_index("name")["label"]
    assert classes.tolist() == [0, 1, 2, 3, 4, -1, -1, -2, -2, -2]


def test_letters_of_another_seed_are_drawn_otherwise():
    assert (everything(READERS["glyphs"](seed=1)) != everything(READERS["glyphs"]())).any()
