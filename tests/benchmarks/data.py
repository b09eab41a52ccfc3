"""Our way from files and pixels to batches beside the per-image Pillow way."""

import datetime
import random
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

import numpy as np

from tests.benchmarks.stopwatch import Clock, interleaved, machine, versions

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)  # CIFAR-10's, as released
BATCH, PHOTOGRAPHS = 128, 24
SHORT, WINDOW = 256, 224  # pixels
SEED = 0


def compare(*, rounds: int = 5, folder: Path | None = None, clock: Clock = time.perf_counter):
    """Time small images from memory and photographs from files, Pillow and ours side by side.

    Args:
        rounds: how often each is timed, in turns; a first call of each is not timed.
        folder: with photographs (*.JPEG or *.jpg, also in folders inside); some are drawn if
            there is none.
        clock: gives seconds.

    Returns:
        The settings, the machine, ratios (a way's images per second by Pillow's: medians of the
        rounds'), and `lines` of what, threads, way, images per second and ratio.
    """
    import torch

    before, lines = torch.get_num_threads(), []
    cores = machine()["cores"]
    with tempfile.TemporaryDirectory() as place:
        files, source = _photographs(folder, Path(place))
        tasks = {
            "32 px: crop, flip, normalise": (cores, lambda: _small(32), BATCH),
            "photographs to 224 px": (1, lambda: _large(files, Path(place)), len(files)),
        }
        for what, (threads, ready, images) in tasks.items():
            torch.set_num_threads(threads)
            lines += _lines(what, threads, ready(), images, rounds, clock)
    torch.set_num_threads(before)
    ratios = {f"{line['what']}: {line['way']}": line["ratio"] for line in lines}
    settings = {"rounds": rounds, "date": f"{datetime.date.today()}", "photographs": source}
    tools = versions(["pillow", "simplejpeg", "torchvision"])
    return settings | machine() | {"versions": tools, "ratios": ratios, "lines": lines}


def _lines(
    what: str, threads: int, calls: Mapping, images: int, rounds: int, clock: Clock
) -> list[dict]:
    for call in calls.values():
        call()
    seconds = interleaved(calls, repeats=rounds, clock=clock)
    base = seconds["Pillow"]
    return [
        {"what": what, "threads": threads, "way": way, "speed": images / median(found)}
        | {"ratio": median(a / b for a, b in zip(base, found, strict=True))}
        for way, found in seconds.items()
    ]


# Small images from memory: a batch of uint8 in, a normalised batch out.


def _small(side: int) -> dict[str, Callable]:
    import torch
    from PIL import Image

    from osnb.datasets.augment import AUGMENT
    from osnb.datasets.vision import torchvision

    generator = torch.Generator().manual_seed(SEED)
    images = torch.randint(0, 256, (BATCH, 3, side, side), generator=generator, dtype=torch.uint8)
    photos = [Image.fromarray(i.movedim(0, 2).contiguous().numpy()) for i in images]
    scale = torch.tensor(1 / 255 / np.array(STD), dtype=torch.float32)[:, None, None]
    shift = torch.tensor(-np.array(MEAN) / STD, dtype=torch.float32)[:, None, None]
    transforms, rng = torchvision.transforms, random.Random(SEED)
    moves = transforms.RandomCrop(side, padding=4), transforms.RandomHorizontalFlip()
    usual = transforms.Compose([*moves, transforms.ToTensor(), transforms.Normalize(MEAN, STD)])

    def lean(photo):
        """The least that Pillow needs."""
        left, top = rng.randrange(9) - 4, rng.randrange(9) - 4
        photo = photo.crop((left, top, left + side, top + side))  # what enters is black
        if rng.random() < 0.5:
            photo = photo.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(np.array(photo)).permute(2, 0, 1)
        return pixels.float().mul_(scale).add_(shift)

    def ours():
        moved = AUGMENT["crop_flip"](images, generator=generator)
        return moved.float().mul_(scale).add_(shift)

    return {
        "Pillow": lambda: torch.stack([lean(photo) for photo in photos]),
        "torchvision on Pillow": lambda: torch.stack([usual(photo) for photo in photos]),
        "ours": ours,
    }


# Photographs: open, decode, short side to 256 pixels, the window of 224 in the centre.


def _large(files: list[Path], place: Path) -> dict[str, Callable]:
    from osnb.datasets.photographs import Files, stored

    ours = Files(Path("/"), [str(file) for file in files], SHORT)
    cache = stored(ours, place / "cache", say=lambda _: None)
    return {
        "Pillow": lambda: [_by_pillow(file) for file in files],
        "ours": lambda: [_window(ours.whole(i)) for i in range(len(files))],
        "ours, from the cache": lambda: [_window(cache.whole(i)) for i in range(len(files))],
    }


def _by_pillow(file: Path) -> np.ndarray:
    from PIL import Image

    with Image.open(file) as opened:
        photo = opened.convert("RGB")
    width, height = (int(SHORT * side / min(photo.size)) for side in photo.size)
    photo = photo.resize((width, height), Image.Resampling.BILINEAR)
    left, top = (width - WINDOW) // 2, (height - WINDOW) // 2
    photo = photo.crop((left, top, left + WINDOW, top + WINDOW))
    return np.ascontiguousarray(np.asarray(photo).transpose(2, 0, 1))


def _window(pixels: np.ndarray) -> np.ndarray:
    top, left = ((side - WINDOW) // 2 for side in pixels.shape[1:])
    return np.ascontiguousarray(pixels[:, top : top + WINDOW, left : left + WINDOW])


def _photographs(folder: Path | None, place: Path) -> tuple[list[Path], str]:
    """Some of a folder's photographs, or drawn ones, and which."""
    if folder is None:
        return [_drawn(place / f"{i}.jpg", i) for i in range(PHOTOGRAPHS)], "drawn, 500 x 375"
    found = sorted(p.resolve() for p in Path(folder).rglob("*") if p.suffix in {".JPEG", ".jpg"})
    if not found:
        raise ValueError(f"no *.JPEG or *.jpg in {folder}")
    return found[:: -(-len(found) // PHOTOGRAPHS)], f"of {folder.name}"


def _drawn(file: Path, seed: int) -> Path:
    """A photograph's size and roughness: noise of several scales, quality 90."""
    from PIL import Image

    rng, picture = np.random.default_rng(seed), np.zeros((375, 500, 3))
    for scale in (4, 16, 64):
        small = rng.integers(0, 256, (375 // scale + 2, 500 // scale + 2, 3), dtype=np.uint8)
        picture += np.asarray(Image.fromarray(small).resize((500, 375), Image.Resampling.BICUBIC))
    Image.fromarray((picture / 3).astype(np.uint8)).save(file, quality=90)
    return file


def show(report: Mapping) -> list:
    """What rich prints for a report of `compare`."""
    from rich.table import Column, Table

    table = Table(Column("what", no_wrap=True), "threads", Column("way", no_wrap=True), box=None)
    for head in ("images/s", "by Pillow's"):
        table.add_column(head, justify="right")
    for line in report["lines"]:
        cells = [line["what"], f"{line['threads']}", line["way"]]
        table.add_row(*cells, f"{line['speed']:,.0f}", f"{line['ratio']:.2f}")
    tools = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    return [
        table,
        f"Pillow works in one process, an image at a time. Photographs: {report['photographs']}.",
        f"Medians of {report['rounds']} rounds in turns; --rounds for more.",
        f"{report['cpu']}, {report['cores']} cores, {report['gib']} GiB; GPU: not measured; "
        f"{tools}; {report['date']}",
    ]
