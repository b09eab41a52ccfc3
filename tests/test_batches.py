"""Batches: their order, their randomness, what they refuse, and their threads."""

import pickle
import threading

import cloudpickle
import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from test_datasets import noise

from osnb.datasets import READERS, BrokenImage, batches, resident
from osnb.datasets.augment import AUGMENT
from osnb.datasets.images import Images, _ahead, kept
from osnb.datasets.images import joined as together

A = "n01440764"


def take(images, rows=None, **settings):
    """Batches of three with the settings of a test, but for those given."""
    rows = images.rows.assign(label=range(len(images.rows))) if rows is None else rows
    usual = {"batch_size": 3, "seed": 0, "shuffle": False, "transform": AUGMENT["none"]}
    return batches(images, rows, **usual | settings)


def joined(made):
    pixels, labels = zip(*made, strict=True)
    return torch.cat(pixels), torch.cat(labels)


@pytest.fixture
def eleven():
    """Eleven images of 6 pixels in memory; the first pixel of each is its number."""
    rows = pd.DataFrame({"sample": [f"s{i}" for i in range(11)], "wnid": A, "split": "train"})
    pixels = noise(11, 3, 6, 6)
    pixels[:, 0, 0, 0] = range(11)
    return kept(rows, lambda i: pixels[i], (3, 6, 6))


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos" / A
    folder.mkdir(parents=True)
    for i in range(11):
        Image.fromarray(noise(30, 40 + i, 3, seed=i)).save(folder / f"{i:02}.JPEG")
    return READERS["folder"](tmp_path / "photos", resize=20, crop=16)


def test_an_unshuffled_pass_gives_every_row_in_order_the_last_batch_short(eleven):
    made = take(eleven)
    assert len(made) == 4
    assert [len(labels) for _, labels in made(0)] == [3, 3, 3, 2]
    pixels, labels = joined(made(0))
    assert labels.tolist() == list(range(11))
    assert labels.dtype == torch.int64
    assert torch.equal(pixels, eleven.read(np.arange(11)) / 255)


def test_a_shuffled_pass_gives_every_row_once_with_its_own_label(eleven):
    pixels, labels = joined(take(eleven, shuffle=True)(0))
    assert labels.tolist() != list(range(11))
    assert sorted(labels.tolist()) == list(range(11))
    assert (pixels[:, 0, 0, 0] * 255).round().tolist() == labels.tolist()


@pytest.mark.parametrize("crop", ["random", "resized"])
@pytest.mark.parametrize("threads", [0, 1, 3])
def test_bytes_depend_on_seed_and_epoch_alone(threads, crop, photos):
    random = {"shuffle": True, "crop": crop, "transform": AUGMENT["flip"]}
    once = take(photos, **random)
    again = take(photos, threads=threads, **random)
    list(again(0))
    for one, two in zip(joined(once(1)), joined(again(1)), strict=True):
        assert torch.equal(one, two)
    assert not torch.equal(joined(once(1))[0], joined(once(2))[0])
    assert not torch.equal(joined(once(1))[0], joined(take(photos, **random | {"seed": 1})(1))[0])


@pytest.mark.parametrize("crop", ["random", "resized"])
def test_crops_change_with_the_epoch_when_random_and_never_in_the_centre(crop, photos):
    fixed, random = take(photos), take(photos, crop=crop)
    assert torch.equal(joined(fixed(0))[0], joined(fixed(1))[0])
    assert not torch.equal(joined(random(0))[0], joined(random(1))[0])
    assert not torch.equal(joined(random(0))[0], joined(fixed(0))[0])


def test_joined_photographs_are_cut_where_each_of_them_would_be(photos):
    both = together({"one": photos, "other": photos})
    assert both.crops
    places = np.linspace(0, 0.9, 8).reshape(4, 2)
    made = both.read(np.array([12, 3, 0, 21]), places)
    for pixels, position, place in zip(made, (1, 3, 0, 10), places, strict=True):
        assert torch.equal(pixels, photos.read(np.array([position]), place[None])[0])
    small = photos._replace(crops=False)
    assert not together({"one": photos, "other": small}).crops


@pytest.mark.parametrize(
    ("labels", "shuffle", "reason"),
    [
        ([0.0, 1.0], False, "integers; got float64"),
        ([True, False], False, "integers; got bool"),
        ([0, -3], False, ">= -2; got -3 in 1 of 2 rows"),
        ([-2, -1], True, "training .* >= -1; got -2 in 1 of 2 rows"),
        ([], False, "at least one row"),
    ],
)
def test_bad_labels_are_refused_before_any_batch(labels, shuffle, reason, eleven):
    rows = pd.DataFrame({"sample": [f"s{i}" for i in range(len(labels))], "label": labels})
    with pytest.raises(ValueError, match=reason):
        take(eleven, rows, shuffle=shuffle)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"crop": "center"}, "crop must be one of centre, random, resized; got 'center'"),
        ({"broken": "ignore"}, "broken must be one of stop, skip; got 'ignore'"),
        ({"batch_size": 0}, "batch_size >= 1"),
        ({"threads": -1}, "threads >= 0"),
    ],
)
def test_a_setting_out_of_range_is_refused_with_the_choices(settings, reason, eleven):
    with pytest.raises(ValueError, match=reason):
        take(eleven, **settings)


def test_a_sample_that_the_data_set_lacks_is_named(eleven):
    rows = pd.DataFrame({"sample": ["s1", "t1"], "label": [0, 0]})
    with pytest.raises(ValueError, match=r"1 of 2 samples .* 't1'"):
        take(eleven, rows)


@pytest.mark.parametrize("threads", [0, 2])
def test_a_broken_image_stops_the_run_by_name(threads, photos, tmp_path):
    (tmp_path / "photos" / A / "04.JPEG").write_bytes(b"")
    made = take(photos, threads=threads)(0)
    assert next(made)[1].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=r"04\.JPEG"):
        next(made)


@pytest.mark.parametrize("threads", [0, 2])
def test_broken_images_are_skipped_with_their_labels_and_the_others_stay(threads, photos, tmp_path):
    settings = {"crop": "random", "transform": AUGMENT["none"], "threads": threads}
    whole, labels = joined(take(photos, **settings)(5))
    for name in ("04", "09", "10"):  # the last two are all of the last batch
        (tmp_path / "photos" / A / f"{name}.JPEG").write_bytes(b"")
    made = take(photos, broken="skip", **settings)
    with pytest.warns(UserWarning, match=f"3 images did not decode: {A}/04.JPEG, .*/10.JPEG"):
        pixels, left = joined(made(5))
    good = [0, 1, 2, 3, 5, 6, 7, 8]
    assert left.tolist() == labels[good].tolist()
    assert torch.equal(pixels, whole[good])
    assert made.rows["sample"].tolist() == photos.rows["sample"][good].tolist()
    assert "04.JPEG does not decode" in made.skipped[f"{A}/04.JPEG"]
    assert len(list(made(6))) == 3  # again without them, and without a second warning


def test_a_data_set_of_which_nothing_decodes_stops_the_run_although_it_may_skip(photos, tmp_path):
    for path in (tmp_path / "photos" / A).iterdir():
        path.write_bytes(b"")
    with pytest.raises(BrokenImage, match=r"none of the 11 images decodes; the first: .*00\.JPEG"):
        list(take(photos, broken="skip")(0))


@pytest.mark.parametrize("ending", ["abandoned", "failed", "finished"])
def test_no_thread_outlives_an_iteration(ending):
    def make(i):
        if ending == "failed" and i == 2:
            raise RuntimeError("third")
        return i

    before = set(threading.enumerate())
    pending = _ahead(make, range(50), 3)
    assert next(pending) == 0
    if ending == "abandoned":
        pending.close()
    elif ending == "failed":
        with pytest.raises(RuntimeError, match="third"):
            list(pending)
    else:
        assert list(pending) == list(range(1, 50))
    assert set(threading.enumerate()) <= before


# A start in the middle of an epoch.


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("shuffle", [False, True])
def test_an_epoch_started_in_the_middle_is_the_tail_of_the_whole_one(shuffle, threads, photos):
    made = take(photos, shuffle=shuffle, threads=threads, crop="random", transform=AUGMENT["flip"])
    whole = list(made(3))
    for start in range(5):
        tail = list(made(3, start=start))
        assert len(tail) == 4 - start
        for one, other in zip(tail, whole[start:], strict=True):
            assert torch.equal(one[0], other[0])
            assert torch.equal(one[1], other[1])


@pytest.mark.parametrize("start", [-1, 5])
def test_a_start_beyond_the_epoch_is_refused(start, eleven):
    with pytest.raises(ValueError, match=f"from 0 to 4, the number of batches; got {start}"):
        next(take(eleven)(0, start=start))


# Images that stay on a device.


@pytest.mark.parametrize("threads", [0, 2])
def test_batches_of_resident_images_are_those_without_bit_for_bit(threads, eleven):
    settings = {"shuffle": True, "crop": "random", "transform": AUGMENT["crop_flip"]}
    plain = take(eleven, **settings)
    moved = take(resident(eleven, "cpu"), threads=threads, **settings)
    for epoch in (0, 1):
        for one, other in zip(plain(epoch), moved(epoch), strict=True):
            assert torch.equal(one[0], other[0])
            assert torch.equal(one[1], other[1])
            assert one[0].dtype == other[0].dtype


def test_resident_images_are_read_by_one_thread_however_many_ask_first(eleven):
    seen = []

    def read(positions):
        seen.append(len(positions))
        return eleven.read(positions)

    made = resident(eleven._replace(read=read), "cpu")
    list(take(made, threads=4, batch_size=1)(0))
    assert seen == [11]


def test_resident_images_are_sent_to_another_process_without_their_pixels():
    rows = pd.DataFrame({"sample": ["a", "b"]})
    made = resident(Images(rows, drawn, (3, 64, 64)), "cpu")
    before = len(pickle.dumps(made))
    first = made.read(np.array([1]))
    assert len(pickle.dumps(made)) == before < 3 * 64 * 64
    for sent in (pickle.dumps(made), cloudpickle.dumps(made)):
        again = pickle.loads(sent)
        assert again.read.pixels is None
        assert again.read.device == torch.device("cpu")
        assert torch.equal(again.read(np.array([1])), first)


def drawn(positions):
    return torch.from_numpy(np.stack([noise(3, 64, 64, seed=int(i)) for i in positions]))


@pytest.mark.parametrize("threads", [0, 2])
def test_broken_resident_images_are_named_or_skipped_as_without(threads, eleven):
    def read(positions):
        if 4 in positions:
            raise BrokenImage("number 4 does not decode")
        return eleven.read(positions)

    made = [eleven._replace(read=read), resident(eleven._replace(read=read), "cpu")]
    for images in made:
        started = take(images, threads=threads)(0)
        next(started)
        with pytest.raises(BrokenImage, match="number 4"):
            next(started)
    skipping = [take(images, threads=threads, broken="skip") for images in made]
    with pytest.warns(UserWarning, match="1 images did not decode: s4"):
        plain, moved = (joined(each(0)) for each in skipping)
    assert torch.equal(plain[0], moved[0])
    assert torch.equal(plain[1], moved[1])
    assert skipping[0].skipped == skipping[1].skipped


@pytest.mark.parametrize("crop", ["centre", "random"])
def test_a_part_of_each_batch_is_as_in_the_whole_and_nothing_else_is_read(photos, crop):
    read = []
    counted = photos._replace(read=lambda at, *how: read.append(len(at)) or photos.read(at, *how))
    how = {"shuffle": True, "crop": crop, "transform": AUGMENT["flip"], "batch_size": 4}
    whole = list(take(photos, **how)(1))
    for number, own in ((0, slice(0, 2)), (1, slice(2, 4))):
        read.clear()
        for (one, label), (other, told) in zip(
            whole, take(counted, part=(number, 2), **how)(1), strict=True
        ):
            assert torch.equal(label, told)
            assert torch.equal(one[own], other[own])
        assert read == [2, 2, 2 - number]
    read.clear()
    list(take(counted, part=(0, 5), **how)(1))
    assert read == [4, 4, 3]  # fewer images than parts: each takes all
    read.clear()
    list(take(counted, part=(0, 2), broken="skip", **how)(1))
    assert read == [4, 4, 3]  # what others leave out, each must know


def test_photographs_that_are_cropped_while_they_are_read_cannot_be_resident(photos):
    with pytest.raises(ValueError, match=r"images of one size; .* cache"):
        resident(photos, "cpu")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_batches_made_on_a_gpu_have_the_bits_of_those_made_on_the_cpu(eleven):
    settings = {"shuffle": True, "transform": AUGMENT["crop_flip"]}
    moved = take(resident(eleven, "cuda"), **settings)
    for one, other in zip(take(eleven, **settings)(1), moved(1), strict=True):
        assert other[0].is_cuda
        assert torch.equal(one[0], other[0].cpu())
        assert torch.equal(one[1], other[1])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_no_batch_of_resident_images_waits_for_the_gpu(eleven):
    made = take(resident(eleven, "cuda"), shuffle=True)
    list(made(0))
    torch.cuda.set_sync_debug_mode("error")
    try:
        assert len(list(made(1))) == 4
    finally:
        torch.cuda.set_sync_debug_mode("default")
