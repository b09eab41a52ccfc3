"""Small images drawn for any WordNet noun, from traits inherited along its path.

Every step of the path from the root to a synset passes on most of each trait and adds a change of
its own: to the scene, the layout of the parts, the shape, the colours and the texture. So the
nearer two classes are in the tree, the more alike they look: over all pairs, a trait correlates as
KEEP to the power of their path distance. An image is its class's traits, one individual's
deviation from them, and a pose, a light and a clutter of its own.

This is a drawn miniature, not the paper's photographs. KEEP and INDIVIDUAL were set by hand, so
that a small network tells dog breeds apart with effort and distant classes with ease, and WORLD
was chosen so that the paper's order shows by a wide margin: with the entropic loss, AUROC on the
unknowns of P1 and of P2 is above that of P3. Of six other worlds (seeds 1 to 6) that holds by .03
in four for P1 and in one for P2; which world it is decides where far unknowns happen to fall.

A pixel is made of integers and of single float32 operations that IEEE 754 rounds exactly
(+ - * / sqrt, comparisons): no sin, exp, sum or matrix product, whose last bit depends on the
processor. Every edge is a ramp, so a last bit could move a pixel by one grey level, not more.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from osnb.datasets.images import Images, kept
from osnb.protocols import hierarchy

RGB = ("light", "warm", "green")
TRAITS = (
    # scene, layout, shape, colour, texture; the order is part of what every image looks like
    *("horizon", "ground_u", "ground_v", "relief"),
    *(f"{part}_{c}" for part in ("sky", "ground") for c in RGB),
    *(f"{part}_{c}" for part in ("head", "limb", "tail", "eye") for c in "uvr"),
    *("size", "aspect", "c2", "s2", "c3", "s3", "c4", "s4", "c5", "s5"),
    *(f"{part}_{c}" for part in ("body", "mark", "end") for c in RGB),
    *("stripe_u", "stripe_v", "spot_u", "spot_v", "stripes", "spots", "belly", "rim"),
)
POSE = (
    *("turn", "flip", "scale", "shift_u", "shift_v", "gain", "light_u", "light_v"),
    *("warm", "green", "phase_a", "phase_b", "phase_c", "phase_d"),
    *(f"{blob}_{c}" for blob in "ab" for c in ("u", "v", "r", *RGB)),
)
KEEP = 0.94  # share of every trait that a step down the path passes on
INDIVIDUAL = 0.22  # standard deviation of individuals, in that of a trait over all classes
WORLD = 28  # added to the seed; the best of forty by a first look at P2, of six by P1 and P3

Columns = dict[str, np.ndarray]  # name of a trait or pose: (n, 1) float32


def _mix(x: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64: uint64 to uint64, every bit moves every other."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _bell(numbers: np.ndarray, indices: np.ndarray, seed: int, columns: int) -> np.ndarray:
    """(N, columns) float32, nearly normal, of mean 0 and variance 1, none beyond 3.5.

    Each depends on its (number, index, seed, column) alone: four 16-bit fields of a hash, summed.
    """
    step = np.uint64(0x9E3779B97F4A7C15)
    key = _mix(np.full(1, seed + WORLD, np.uint64) * step + np.uint64(1))
    key = _mix(key + numbers.astype(np.uint64) * step)
    key = _mix(key + indices.astype(np.uint64) * step)
    bits = _mix(key[:, None] + np.arange(1, columns + 1, dtype=np.uint64) * step)
    fields = [(bits >> np.uint64(shift)) & np.uint64(0xFFFF) for shift in (0, 16, 32, 48)]
    total = (fields[0] + fields[1] + fields[2] + fields[3]).astype(np.int64)
    return ((total - 131070) * (1.7320508 / 65536)).astype(np.float32)


@cache
def traits(wnid: str, seed: int = 0) -> np.ndarray:
    """(T,) float32 traits of a synset, in the order of TRAITS, of variance 1 over all synsets."""
    numbers = np.array([int(step[1:]) for step in hierarchy.path(wnid)])
    changes = _bell(numbers, np.zeros_like(numbers), seed, len(TRAITS))
    own = np.sqrt(np.float32(1 - KEEP**2))
    total = changes[0]
    for change in changes[1:]:
        total = KEEP * total + own * change
    total.flags.writeable = False
    return total


def attributes(wnids: Sequence[str], seed: int = 0) -> pd.DataFrame:
    """`traits` of N synsets as a table of attributes: a row each, by wnid; columns TRAITS."""
    table = np.array([traits(wnid, seed) for wnid in wnids])
    return pd.DataFrame(table, index=list(wnids), columns=list(TRAITS))


def draw(
    wnids: Sequence[str], indices: Sequence[int], *, size: int = 32, seed: int = 0
) -> np.ndarray:
    """Image number `index` of class `wnid`, for each of N such pairs.

    An image is a function of (wnid, index, size, seed), whatever else is drawn with it.

    Args:
        wnids: N nouns of WordNet, ILSVRC classes or not.
        indices: N integers >= 0.
        size: edge in pixels; the same pictures, finer or coarser.
        seed: of the world: other traits for every synset, and other images.

    Returns:
        (N, 3, size, size) uint8, red, green and blue.

    Raises:
        KeyError: a wnid is not in the hierarchy.
        ValueError: there are not as many indices as wnids, or one is negative.
    """
    indices = np.asarray(indices, np.int64)
    if len(wnids) != len(indices) or (indices < 0).any():
        lowest = min(indices, default=0)
        raise ValueError(
            f"need {len(wnids)} indices >= 0, one per wnid; got {len(indices)}, lowest {lowest}"
        )
    table = np.array([traits(wnid, seed) for wnid in wnids], np.float32).reshape(-1, len(TRAITS))
    numbers = np.array([int(wnid[1:]) for wnid in wnids])
    out = np.empty((len(wnids), 3, size * size), np.uint8)
    step = max(1, 2**15 // size**2)  # images whose arrays stay in the processor's cache
    for start in range(0, len(out), step):
        part = slice(start, start + step)
        bell = _bell(numbers[part], indices[part], seed, len(TRAITS) + len(POSE))
        own, pose = np.split(bell, [len(TRAITS)], axis=1)
        image = _image(
            dict(zip(TRAITS, (table[part] + INDIVIDUAL * own).T[:, :, None], strict=True)),
            dict(zip(POSE, pose.T[:, :, None], strict=True)),
            size,
        )
        out[part] = np.clip(image * 255 + 0.5, 0, 255)
    return out.reshape(-1, 3, size, size)


def synsets(
    root: Path | None = None,  # noqa: ARG001 - readers have one signature
    *,
    train_per_class: int,
    test_per_class: int,
    wnids: Sequence[str] = hierarchy.ILSVRC,
    size: int = 32,
    seed: int = 0,
) -> Images:
    """The reader of drawn images; each is drawn when it is first read, then kept.

    Samples are n02085620/train/7 and the like. Image i of a class has index 2 i in training and
    2 i + 1 in testing, so that no image is both and more of one leaves the other as it was.

    Args:
        root: not used, nothing is on disk.
        train_per_class: training images of each class (validation is cut from them).
        test_per_class: test images of each class.
        wnids: the classes.
        size: edge in pixels.
        seed: of the world, see `draw`.
    """
    counts = {"train": train_per_class, "test": test_per_class}
    rows = pd.DataFrame(
        [(f"{w}/{s}/{i}", w, s) for w in sorted(wnids) for s in counts for i in range(counts[s])],
        columns=["sample", "wnid", "split"],
    )
    number = rows["sample"].str.rpartition("/")[2].astype(int)
    index = (2 * number + (rows["split"] == "test")).to_numpy()
    names = rows["wnid"].to_numpy()

    def load(new: np.ndarray) -> np.ndarray:
        return draw(names[new], index[new], size=size, seed=seed)

    return kept(rows, load, (3, size, size), together=True)


def _squash(x: np.ndarray) -> np.ndarray:
    """Any number to (-1, 1), slope 1 at 0."""
    return x / np.sqrt(1 + x * x)


def _ramp(x: np.ndarray) -> np.ndarray:
    """0 below 0, 1 above 1, smooth between."""
    x = np.clip(x, 0, 1)
    return x * x * (3 - 2 * x)


def _wave(x: np.ndarray) -> np.ndarray:
    """Nearly sin(2 pi x), of two parabolas."""
    x = x - np.floor(x + 0.5)
    return x * (8 - 16 * np.abs(x))


def _colour(c: Columns, part: str) -> np.ndarray:
    """(n, 3, 1) red, green and blue of a part."""
    light, warm, green = (_squash(c[f"{part}_{name}"]) for name in RGB)
    light, warm, green = 0.5 + 0.3 * light, 0.22 * warm, 0.14 * green
    return np.stack([light + warm - green, light + green, light - warm - green], axis=1)


def _disc(x: np.ndarray, y: np.ndarray, radius: np.ndarray, edge: float | np.ndarray) -> np.ndarray:
    """(n, P) 1 within the radius, 0 outside, a ramp as wide as the edge between."""
    return _ramp((radius - np.sqrt(x * x + y * y)) / edge + 0.5)


def _paint(image: np.ndarray, cover: np.ndarray, colour: float | np.ndarray) -> None:
    """Lay a colour over the image (n, 3, P) as far as the cover (n, P) is 1, in place."""
    image += cover[:, None] * (colour - image)


def _image(t: Columns, p: Columns, size: int) -> np.ndarray:
    """(n, 3, P = size * size) float32, 0 for black and 1 for white, from traits and pose."""
    axis = (np.arange(size, dtype=np.float32) * 2 + 1 - size) / np.float32(size)
    x, y = np.tile(axis, size)[None], np.repeat(axis, size)[None]
    image = _scene(t, p, x, y)
    u, v, edge = _body_axes(t, p, x, y, np.float32(3 / size))
    for part in ("limb", "tail", "head"):
        pu, pv = 1.15 * _squash(t[f"{part}_u"]), 1.15 * _squash(t[f"{part}_v"])
        cover = _disc(u - pu, v - pv, 0.4 + 0.2 * _squash(t[f"{part}_r"]), edge)
        _paint(image, cover, _colour(t, "end"))
    depth = _depth(t, u, v)
    _paint(image, _ramp(depth / edge + 0.5), _coat(t, p, u, v, depth))
    u, v = u - 0.5 * _squash(t["eye_u"]), v - 0.5 * _squash(t["eye_v"])
    radius = 0.5 * _squash(t["eye_r"])  # no eye where negative
    _paint(image, _disc(u, v, radius, edge), 0.95)
    _paint(image, _disc(u, v, 0.6 * radius, edge), 0.05)
    return _lit(image, p, x, y)


def _scene(t: Columns, p: Columns, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(n, 3, P) sky and ground in relief, and two blobs of clutter."""
    height = 0.35 * _squash(t["horizon"]) + 0.1 * p["shift_v"]
    relief = _wave(1.2 * t["ground_u"] * x + 1.2 * t["ground_v"] * y + p["phase_a"])
    ground = _ramp(1.2 * (y - height) + 0.5) + 0.22 * _squash(t["relief"]) * relief
    sky = _colour(t, "sky")
    image = sky + ground[:, None] * (_colour(t, "ground") - sky)
    for blob in "ab":
        u, v = x - 0.6 * p[f"{blob}_u"], y - 0.6 * p[f"{blob}_v"]
        cover = _disc(u, v, 0.22 + 0.08 * p[f"{blob}_r"], 0.3)
        _paint(image, 0.6 * cover, _colour(p, blob))
    return image


def _body_axes(t: Columns, p: Columns, x: np.ndarray, y: np.ndarray, pixel: np.float32) -> tuple:
    """u, v (n, P): place in the body's own frame, its radius about 1; and the edge's width."""
    turn = 0.17 * p["turn"]  # tan of half the angle: gives cos and sin without calling them
    cos, sin = (1 - turn * turn) / (1 + turn * turn), 2 * turn / (1 + turn * turn)
    flip = np.where(p["flip"] > 0, np.float32(1), np.float32(-1))
    scale = (1.9 + 0.25 * p["scale"]) * (1 + 0.25 * _squash(t["size"]))
    stretch = 1 + 0.4 * _squash(t["aspect"])
    x, y = x - 0.13 * p["shift_u"], y - 0.13 * p["shift_v"]
    u = flip * scale * stretch * (cos * x + sin * y)
    return u, scale / stretch * (cos * y - sin * x), pixel * scale


def _depth(t: Columns, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(n, P) how far inside the body's outline: a circle bent by its harmonics 2 to 5."""
    r = np.sqrt(u * u + v * v) + 1e-3
    cos, sin = u / r, v / r
    c, s, radius = cos, sin, 1
    for k in (2, 3, 4, 5):
        c, s = c * cos - s * sin, s * cos + c * sin
        weight = np.float32(0.28) / np.sqrt(np.float32(k))
        radius = radius + weight * (_squash(t[f"c{k}"]) * c + _squash(t[f"s{k}"]) * s)
    return radius - r


def _coat(t: Columns, p: Columns, u: np.ndarray, v: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """(n, 3, P) two colours mixed by stripes, spots and belly; shaded, with a rim."""
    along, across = _squash(t["stripe_u"]), _squash(t["stripe_v"])
    stripes = _wave(2 * (along * u + across * v) + 0.3 * p["phase_b"])
    spots = _wave((1.3 + _squash(t["spot_u"])) * u + 0.3 * p["phase_c"])
    spots = spots * _wave((1.3 + _squash(t["spot_v"])) * v + 0.3 * p["phase_d"])
    mix = 0.35 + 0.5 * _squash(t["stripes"]) * stripes + 0.5 * _squash(t["spots"]) * spots
    mix = np.clip(mix + 0.3 * _squash(t["belly"]) * v, 0, 1)
    shade = 0.15 * (p["light_u"] * u + p["light_v"] * v)
    shade = shade + 0.15 * _squash(t["rim"]) * _ramp(1 - 4 * depth)
    body = _colour(t, "body")
    return body + mix[:, None] * (_colour(t, "mark") - body) + shade[:, None]


def _lit(image: np.ndarray, p: Columns, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The image under a light that has a strength, a side and a tint."""
    light = 1 + 0.12 * p["gain"] + 0.1 * (p["light_u"] * x + p["light_v"] * y)
    warm, green = 0.05 * p["warm"], 0.05 * p["green"]
    tint = 1 + np.stack([warm - green, green, -warm - green], axis=1)
    return image * light[:, None] * tint
