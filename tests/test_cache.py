"""A cache of resized photographs: exact, built once, whole or not there at all."""

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from collections import namedtuple
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
import torch
from PIL import Image

from osnb.augment import AUGMENT
from osnb.datasets import READERS, BrokenImage, batches, cache
from osnb.datasets.cache import Files, Stored, key, stored

A, B = "n01440764", "n02084071"
SIZES = [(40, 30), (30, 44), (33, 33), (90, 20), (20, 20), (25, 31), (64, 48), (21, 60), (50, 40)]


def noise(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


@pytest.fixture
def photos(tmp_path):
    """Nine files of several kinds and sizes in two classes; the fifth, c.JPEG of A, is broken."""
    root = tmp_path / "photos"
    for i, (width, height) in enumerate(SIZES):
        path = root / (A, B)[i // 6] / f"{'abcdefghi'[i]}.JPEG"
        path.parent.mkdir(parents=True, exist_ok=True)
        photo = Image.fromarray(noise(height, width, 3, seed=i))
        photo.convert({1: "L", 3: "CMYK"}.get(i, "RGB")).save(path, "PNG" if i == 5 else "JPEG")
    (root / A / "e.JPEG").write_bytes((root / A / "e.JPEG").read_bytes()[:-300])
    return root


GOOD = [0, 1, 2, 3, 5, 6, 7, 8]
READ = {"resize": 20, "crop": 16}


def files(photos):
    return Files(photos, READERS["folder"](photos, **READ).rows["path"].to_numpy(), 20)


def folder_of(place):
    """The one folder in a cache folder."""
    (folder,) = place.iterdir()
    return folder


def quiet(line):
    """Nobody is told."""


def decodes(monkeypatch, before=lambda count: None):
    """A list that grows with each photograph decoded; `before` is called with its length."""
    seen, lock, plain = [], threading.Lock(), cache.resized

    def counted(data, name, short):
        with lock:
            seen.append(Path(name).name)
            before(len(seen))
        return plain(data, name, short)

    monkeypatch.setattr(cache, "resized", counted)
    return seen


def same(one, other):
    """Whether every photograph that decodes is the same in both, whole."""
    return all(np.array_equal(one.whole(i), other.whole(i)) for i in GOOD)


# Exact.


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("crop", ["centre", "random"])
def test_batches_from_a_cache_are_those_without_it_bit_for_bit(crop, threads, photos, tmp_path):
    plain = READERS["folder"](photos, **READ)
    cached = READERS["folder"](photos, cache=str(tmp_path / "cache"), **READ)
    rows = plain.rows.iloc[GOOD].assign(label=range(8))
    settings = {"batch_size": 3, "seed": 0, "shuffle": True, "transform": AUGMENT["flip"]}
    made = [batches(i, rows, crop=crop, threads=threads, **settings) for i in (plain, cached)]
    for epoch in (1, 2):
        for one, other in zip(*(m(epoch) for m in made), strict=True):
            assert torch.equal(one[0], other[0])
            assert torch.equal(one[1], other[1])
    assert cached.shape == plain.shape
    assert cached.crops


@pytest.mark.parametrize("threads", [0, 2])
def test_broken_images_are_named_or_skipped_as_without_a_cache(threads, photos, tmp_path):
    images = READERS["folder"](photos, cache=str(tmp_path / "cache"), **READ)
    rows = images.rows.assign(label=range(9))
    settings = {"batch_size": 4, "seed": 0, "shuffle": False, "threads": threads}
    settings["transform"] = AUGMENT["none"]
    with pytest.raises(BrokenImage, match=r"e\.JPEG does not decode .*broken='skip'"):
        list(batches(images, rows, **settings)(0))
    made = batches(images, rows, broken="skip", **settings)
    with pytest.warns(UserWarning, match=f"1 images did not decode: {A}/e.JPEG"):
        labels = torch.cat([labels for _, labels in made(0)])
    assert labels.tolist() == GOOD == made.rows["label"].tolist()


def test_a_reader_that_is_bound_by_name_takes_the_cache(photos, tmp_path):
    READERS.bind("folder", root=photos, cache=str(tmp_path / "cache"), **READ)()
    assert (folder_of(tmp_path / "cache") / "whole.json").exists()
    READERS.bind("folder", root=photos, cache="", **READ)()
    assert len(list(tmp_path.iterdir())) == 2


# Once.


def test_it_is_filled_once_and_only_probed_afterwards(photos, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "PROBES", 3)
    seen, said = decodes(monkeypatch), []
    stored(files(photos), tmp_path / "cache", say=said.append)
    assert sorted(seen[:9]) == [f"{name}.JPEG" for name in "abcdefghi"]
    assert len(said) == 1
    seen.clear()
    made = stored(files(photos), tmp_path / "cache", say=said.append)
    assert seen == ["a.JPEG", "i.JPEG"]  # the third probe would have been the broken one
    assert len(said) == 1
    seen.clear()
    assert made.whole(6).shape == (3, 20, 26)
    assert seen == []
    with pytest.raises(BrokenImage, match=r"e\.JPEG"):
        made.whole(4)


def test_two_that_want_the_same_cache_at_once_fill_it_once(photos, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "PROBES", 0)
    seen, made = decodes(monkeypatch), []
    want = lambda: made.append(stored(files(photos), tmp_path / "cache", say=quiet))  # noqa: E731
    wanting = [threading.Thread(target=want) for _ in range(3)]
    for thread in wanting:
        thread.start()
    for thread in wanting:
        thread.join()
    assert len(seen) == 9
    assert all(same(one, files(photos)) for one in made)
    assert len(made) == 3


def test_it_is_sent_to_another_process_without_its_pixels(photos, tmp_path):
    made = stored(files(photos), tmp_path / "cache", say=quiet)
    assert same(made, files(photos))  # the pixels are mapped now
    sent = pickle.dumps(made)
    assert len(sent) < 2000
    assert same(pickle.loads(sent), files(photos))
    images = READERS["folder"](photos, cache=str(tmp_path / "cache"), **READ)
    again = pickle.loads(cloudpickle.dumps(images))
    assert torch.equal(again.read(np.array(GOOD)), images.read(np.array(GOOD)))


def test_nothing_read_from_a_cache_can_be_written_to(photos, tmp_path):
    made = stored(files(photos), tmp_path / "cache", say=quiet)
    with pytest.raises(ValueError, match="read-only"):
        made.whole(0)[:] = 0


# Its size.


def test_size_and_free_space_are_said_before_a_pixel_is_written(photos, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "disk_usage", lambda folder: Usage(free=5_000_000))
    said = []

    def say(line):
        assert not list(tmp_path.rglob("pixels.u8"))
        said.append(line)

    stored(files(photos), tmp_path / "cache", say=say)
    (line,) = said
    total = (folder_of(tmp_path / "cache") / "pixels.u8").stat().st_size
    whole = files(photos)
    broken = 3 * 20 * 20  # its header is read, so its place is kept
    assert total == sum(whole.whole(i).size for i in GOOD) + broken
    assert "9 photographs at 20 pixels" in line
    assert f"{total / 1e9:.3f} GB to write of {total / 1e9:.3f} GB" in line
    assert line.endswith("the disk has 0.005 GB free")


Usage = namedtuple("Usage", "free")


def test_a_disk_too_small_is_refused_in_a_sentence_before_anything_is_decoded(
    photos, tmp_path, monkeypatch
):
    seen = decodes(monkeypatch)
    monkeypatch.setattr(cache, "disk_usage", lambda folder: Usage(free=1_000))
    with pytest.raises(ValueError, match=r"needs 0\.0\d\d GB, but that disk has 0\.000 GB free"):
        READERS["folder"](photos, cache=str(tmp_path / "cache"), **READ)
    assert seen == []
    assert not list(tmp_path.rglob("pixels.u8"))
    monkeypatch.undo()
    assert same(stored(files(photos), tmp_path / "cache", say=quiet), files(photos))


def test_what_a_killed_process_has_written_is_not_asked_of_the_disk_again(
    photos, tmp_path, monkeypatch
):
    made = stored(files(photos), tmp_path / "cache", say=quiet)
    (made.folder / "whole.json").unlink()
    os.truncate(made.folder / "marks.u8", 0)
    monkeypatch.setattr(cache, "disk_usage", lambda folder: Usage(free=1_000))
    stored(files(photos), tmp_path / "cache", say=quiet)


# Whole or not there.


@pytest.mark.parametrize("at", range(1, 10))
def test_a_failure_at_any_photograph_leaves_no_cache_and_costs_one_chunk(
    at, photos, tmp_path, monkeypatch
):
    def fail(count):
        if count == at:
            raise RuntimeError("lightning")

    monkeypatch.setattr(cache, "CHUNK", 2)
    monkeypatch.setattr(cache, "_cores", lambda: 1)  # so that they are decoded in order
    with monkeypatch.context() as patch:
        decodes(patch, fail)
        with pytest.raises(RuntimeError, match="lightning"):
            stored(files(photos), tmp_path / "cache", say=quiet)
    folder = folder_of(tmp_path / "cache")
    assert not (folder / "whole.json").exists()
    monkeypatch.setattr(cache, "PROBES", 0)
    seen, said = decodes(monkeypatch), []
    made = stored(files(photos), tmp_path / "cache", say=said.append)
    assert len(seen) == 9 - 2 * ((at - 1) // 2)  # whole chunks of two are kept
    assert len(said) == 1
    assert same(made, files(photos))
    assert made.marks.tolist() == [1, 1, 1, 1, 2, 1, 1, 1, 1]


KILLED = """
import os, signal, sys
from osnb.datasets import READERS, cache
calls = 0
def counted(plain):
    def call(*given, **named):
        global calls
        calls += 1
        if calls == int(sys.argv[3]):
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(*given, **named)
    return call
cache.CHUNK = 2
for name in ("pwrite", "fsync", "replace", "truncate"):
    setattr(os, name, counted(getattr(os, name)))
READERS["folder"](sys.argv[1], cache=sys.argv[2], resize=20, crop=16)
print("done", calls)
"""


@pytest.mark.parametrize("at", [1, 3, 5, 8, 13, 20, 28, 29])  # of 29 writes
def test_a_kill_at_any_write_leaves_no_cache_and_the_next_run_the_right_one(at, photos, tmp_path):
    command = [sys.executable, "-c", KILLED, str(photos), str(tmp_path / "cache"), str(at)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr
    assert not (folder_of(tmp_path / "cache") / "whole.json").exists()
    made = stored(files(photos), tmp_path / "cache", say=quiet)
    assert same(made, files(photos))
    left = {path.name for path in made.folder.iterdir() if not path.name.startswith(".")}
    assert left == {"about.json", "lock", "marks.u8", "pixels.u8", "sizes.npy", "whole.json"}


def test_a_half_written_tail_is_written_again(photos, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "CHUNK", 2)
    made = stored(files(photos), tmp_path / "cache", say=quiet)
    (made.folder / "whole.json").unlink()
    os.truncate(made.folder / "marks.u8", 5)  # in the middle of the third chunk
    with (made.folder / "pixels.u8").open("r+b") as pixels:
        pixels.seek(int(made.ends[3]))
        pixels.write(b"x" * 2000)
    os.truncate(made.folder / "pixels.u8", int(made.ends[6]))
    seen = decodes(monkeypatch)
    monkeypatch.setattr(cache, "PROBES", 0)
    again = stored(files(photos), tmp_path / "cache", say=quiet)
    assert sorted(seen) == ["e.JPEG", "f.JPEG", "g.JPEG", "h.JPEG", "i.JPEG"]
    assert same(again, files(photos))


@pytest.mark.skipif(sys.platform != "linux", reason="reads the names of open files in /proc")
def test_pixels_reach_the_disk_before_their_marks(photos, tmp_path, monkeypatch):
    """So that a power cut, which a test cannot make, costs no more than a kill."""
    order, lock = [], threading.Lock()

    def noted(word, plain):
        def call(handle, *given):
            with lock:
                order.append((word, Path(os.readlink(f"/proc/self/fd/{handle}")).name))
            return plain(handle, *given)

        return call

    for word in ("pwrite", "fsync"):
        monkeypatch.setattr(cache.os, word, noted(word, getattr(os, word)))
    monkeypatch.setattr(cache, "CHUNK", 5)
    stored(files(photos), tmp_path / "cache", say=quiet)
    tail = [("fsync", "pixels.u8"), ("pwrite", "marks.u8"), ("fsync", "marks.u8")]
    written = [pair for pair in order if pair[1] in ("pixels.u8", "marks.u8")]
    assert written == [("pwrite", "pixels.u8")] * 4 + tail + [("pwrite", "pixels.u8")] * 4 + tail


def test_a_disk_that_fills_up_meanwhile_ends_it_with_the_systems_word(
    photos, tmp_path, monkeypatch
):
    monkeypatch.setattr(cache.os, "pwrite", lambda handle, data, at: len(data) // 2)
    with pytest.raises(OSError, match="No space left"):
        stored(files(photos), tmp_path / "cache", say=quiet)
    assert not list(tmp_path.rglob("whole.json"))


def test_a_file_whose_header_cannot_be_read_is_read_from_its_file(photos, tmp_path, monkeypatch):
    (photos / A / "a.JPEG").write_bytes(b"")
    made = stored(files(photos), tmp_path / "cache", say=quiet)
    assert made.marks[0] == cache.LEFT
    assert made.sizes[0].tolist() == [0, 0]
    with pytest.raises(BrokenImage, match=r"a\.JPEG"):
        made.whole(0)
    assert all(np.array_equal(made.whole(i), files(photos).whole(i)) for i in GOOD[1:])


def test_a_set_of_which_nothing_decodes_has_a_cache_too(tmp_path):
    (tmp_path / "photos" / A).mkdir(parents=True)
    (tmp_path / "photos" / A / "a.JPEG").write_bytes(b"")
    made = stored(files(tmp_path / "photos"), tmp_path / "cache", say=quiet)
    with pytest.raises(BrokenImage, match=r"a\.JPEG"):
        made.whole(0)


# Changes.


def touch(path):
    os.utime(path, ns=(1, 1))


CHANGES = {
    "another picture": lambda root: Image.fromarray(noise(30, 40, 3, seed=99)).save(
        root / A / "a.JPEG"
    ),
    "another time": lambda root: touch(root / A / "a.JPEG"),
    "one more": lambda root: shutil.copy(root / A / "a.JPEG", root / A / "aa.JPEG"),
    "one less": lambda root: (root / A / "a.JPEG").unlink(),
    "another name": lambda root: (root / A / "a.JPEG").rename(root / A / "0.JPEG"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_data_set_that_has_changed_gets_another_cache_and_the_old_one_is_named(
    change, photos, tmp_path
):
    old = stored(files(photos), tmp_path / "cache", say=quiet)
    CHANGES[change](photos)
    said = []
    new = stored(files(photos), tmp_path / "cache", say=said.append)
    assert new.folder != old.folder
    assert len(said) == 2
    assert said[1].startswith(f"{old.folder} is of the same photographs before they changed")
    plain = files(photos)
    broken = [i for i, path in enumerate(plain.paths) if path.endswith("e.JPEG")]
    for i in range(len(plain.paths)):
        assert i in broken or np.array_equal(new.whole(i), plain.whole(i))


def test_another_length_of_the_short_side_is_another_cache(photos, tmp_path):
    said = []
    paths = files(photos).paths
    folders = [
        stored(Files(photos, paths, short), tmp_path / "cache", say=said.append).folder
        for short in (20, 24, 20)
    ]
    assert folders[0] == folders[2] != folders[1]
    assert len(said) == 2
    assert not any("changed" in line for line in said)


def test_the_key_depends_on_names_sizes_times_and_length_and_on_no_folder(photos, tmp_path):
    shutil.copytree(photos, tmp_path / "copy")  # with its times
    paths = files(photos).paths
    first = key(Files(photos, paths, 20))
    assert key(Files(tmp_path / "copy", paths, 20)) == first
    assert key(Files(photos, paths, 21)) != first
    assert key(Files(photos, paths[::-1], 20)) != first
    touch(photos / A / "a.JPEG")
    assert key(Files(photos, paths, 20)) != first


def test_pixels_that_another_version_decoded_are_refused(photos, tmp_path):
    made = stored(files(photos), tmp_path / "cache", say=quiet)
    with (made.folder / "pixels.u8").open("r+b") as pixels:
        pixels.write(bytes([made.whole(0)[0, 0, 0] ^ 1]))
    with pytest.raises(ValueError, match=r"other pixels than .*a\.JPEG .*remove that folder"):
        stored(files(photos), tmp_path / "cache", say=quiet)


def test_a_cache_cut_short_is_refused(photos, tmp_path):
    made = stored(files(photos), tmp_path / "cache", say=quiet)
    os.truncate(made.folder / "pixels.u8", 100)
    with pytest.raises(ValueError, match=r"holds 100 bytes and should hold .* remove that folder"):
        stored(files(photos), tmp_path / "cache", say=quiet)


def test_a_photograph_that_is_gone_is_named(photos, tmp_path):
    gone = files(photos)
    (photos / A / "a.JPEG").unlink()
    with pytest.raises(FileNotFoundError, match=r"a\.JPEG"):
        stored(gone, tmp_path / "cache", say=quiet)


def test_about_says_what_it_is_a_cache_of(photos, tmp_path):
    made = stored(files(photos), tmp_path / "cache", say=quiet)
    about = json.loads((made.folder / "about.json").read_text())
    assert about == {"root": str(photos), "short": 20, "images": 9}
    assert isinstance(made, Stored)
