"""A cache of resized photographs: exact, built once, whole or not there at all."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from test_datasets import noise

from osnb.datasets import READERS, BrokenImage, batches
from osnb.datasets import photographs as cache
from osnb.datasets.augment import AUGMENT
from osnb.datasets.photographs import Files, stored

A, B = "n01440764", "n02084071"
SIZES = [(40, 30), (30, 44), (33, 33), (90, 20), (20, 20), (25, 31), (64, 48), (21, 60), (50, 40)]


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
    with pytest.raises(BrokenImage, match=r"e\.JPEG does not decode .*broken=skip"):
        list(batches(images, rows, **settings)(0))
    made = batches(images, rows, broken="skip", **settings)
    with pytest.warns(UserWarning, match=f"1 images did not decode: {A}/e.JPEG"):
        labels = torch.cat([labels for _, labels in made(0)])
    assert labels.tolist() == GOOD == made.rows["label"].tolist()


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


# Its size.


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


# Whole or not there.


@pytest.mark.parametrize("at", range(1, 10))
def test_a_failure_at_any_photograph_leaves_no_cache_and_costs_one_chunk(
    at, photos, tmp_path, monkeypatch
):
    def fail(count):
        if count == at:
            raise RuntimeError("lightning")

    monkeypatch.setattr(cache, "CHUNK", 2)
    monkeypatch.setattr(cache.workbook, "cores", lambda: 1)  # so that they are decoded in order
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
from pathlib import Path
from osnb.datasets import READERS
from osnb.datasets import photographs as cache
def killing(at):
    calls = 0
    def counted(plain):
        def call(*given, **named):
            nonlocal calls
            calls += 1
            if calls == at:
                os.kill(os.getpid(), signal.SIGKILL)
            return plain(*given, **named)
        return call
    for name in ("pwrite", "fsync", "replace", "truncate"):
        setattr(os, name, counted(getattr(os, name)))
cache.CHUNK, codes = 2, []
for at in map(int, sys.argv[3:]):
    if not (child := os.fork()):
        killing(at)
        READERS["folder"](sys.argv[1], cache=Path(sys.argv[2]) / str(at), resize=20, crop=16)
        os._exit(0)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(*codes)
"""


def test_a_kill_at_any_write_leaves_no_cache_and_the_next_run_the_right_one(photos, tmp_path):
    writes = [1, 3, 5, 8, 13, 20, 26, 27, 28]  # of 27
    command = [sys.executable, "-c", KILLED, str(photos), str(tmp_path), *map(str, writes)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [int(code) for code in told.splitlines()[-1].split()] == [-signal.SIGKILL] * 8 + [0]
    for at in writes[:-1]:
        cache = tmp_path / str(at)
        assert not (folder_of(cache) / "whole.json").exists()
        made = stored(files(photos), cache, say=quiet)
        assert same(made, files(photos))
        left = {path.name for path in made.folder.iterdir() if not path.name.startswith(".")}
        assert left == {"lock", "marks.u8", "pixels.u8", "sizes.npy", "whole.json"}


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
def test_a_data_set_that_has_changed_gets_another_cache(change, photos, tmp_path):
    old = stored(files(photos), tmp_path / "cache", say=quiet)
    CHANGES[change](photos)
    new = stored(files(photos), tmp_path / "cache", say=quiet)
    assert new.folder != old.folder
    plain = files(photos)
    broken = [i for i, path in enumerate(plain.paths) if path.endswith("e.JPEG")]
    for i in range(len(plain.paths)):
        assert i in broken or np.array_equal(new.whole(i), plain.whole(i))


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


def test_a_cache_that_is_continued_needs_room_for_the_rest_alone(photos, tmp_path, monkeypatch):
    stored(files(photos), tmp_path / "cache", say=quiet)
    (folder_of(tmp_path / "cache") / "whole.json").unlink()  # as a kill before the end leaves it
    monkeypatch.setattr(cache, "disk_usage", lambda folder: Usage(free=0))
    assert same(stored(files(photos), tmp_path / "cache", say=quiet), files(photos))


def test_a_photograph_whose_header_is_not_read_stays_in_its_file(photos, tmp_path, monkeypatch):
    plain = cache._header
    monkeypatch.setattr(cache, "_header", lambda of, i: (0, 0) if i == 2 else plain(of, i))
    made = stored(files(photos), tmp_path / "cache", say=quiet)
    assert made.marks.tolist() == [1, 1, cache.LEFT, 1, cache.LEFT, 1, 1, 1, 1]
    assert same(made, files(photos))
