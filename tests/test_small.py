"""Digits and letters: size, range, who is what, and that letters are near but not the same."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from osnb import metrics
from osnb.datasets import READERS
from osnb.datasets.small import LETTERS, digit_classes


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


def test_the_digits_are_scikit_learns_at_255_for_16():
    from sklearn.datasets import load_digits

    table, images = load_digits(), READERS["digits"]()
    np.testing.assert_allclose(everything(images)[:, 0] * (16 / 255), table.images, atol=0.04)
    assert images.rows["wnid"].str[-1].astype(int).tolist() == table.target.tolist()


def test_half_of_each_digit_is_for_training():
    rows = READERS["digits"]().rows
    share = (rows["split"] == "train").groupby(rows["wnid"]).mean()
    assert share.between(0.49, 0.51).all()
    assert (READERS["digits"](seed=1).rows["split"] != rows["split"]).mean() > 0.4


def test_roles_of_the_digits_are_those_of_the_house():
    classes = digit_classes().set_index("name")["label"]
    assert classes.tolist() == [0, 1, 2, 3, 4, -1, -1, -2, -2, -2]
    assert set(digit_classes(glyphs=True)["wnid"]) >= set(READERS["glyphs"]().rows["wnid"])


def test_letters_differ_from_one_another_more_than_from_themselves():
    images = READERS["glyphs"]()
    pixels = everything(images).flatten(1).numpy() / 255
    letters = images.rows["wnid"].to_numpy()
    model = LogisticRegression(max_iter=500).fit(pixels[::2], letters[::2])
    assert model.score(pixels[1::2], letters[1::2]) > 0.7


def test_a_classifier_of_digits_tells_letters_apart_in_part():
    digits, glyphs = READERS["digits"](), READERS["glyphs"]()
    known = digits.rows["wnid"].isin([f"digit-{d}" for d in range(5)]).to_numpy()
    train = known & (digits.rows["split"] == "train").to_numpy()
    pixels = everything(digits).flatten(1).numpy() / 255
    model = LogisticRegression(max_iter=500).fit(pixels[train], digits.rows["wnid"][train])
    sure = model.predict_proba(pixels[known & ~train]).max(axis=1)
    other = model.predict_proba(everything(glyphs).flatten(1).numpy() / 255).max(axis=1)
    assert 0.6 < metrics.auroc(sure, other) < 0.995
