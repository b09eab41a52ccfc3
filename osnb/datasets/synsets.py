"""Small images drawn for any WordNet noun, from traits inherited along its path.

Every step of the path from the root to a synset adds its own small change to a
vector of traits (layout, shape, colour, texture), so classes that share
ancestors look alike. An image is its class's traits, an individual's deviation
from them, and a pose, light and clutter of its own.

This is a drawn miniature, not the paper's photographs. The sizes of the steps
(`STEP`, `FADE`) and of the individual's deviation (`INDIVIDUAL`) were set by hand
so that classes at the foot of a deep subtree (dogs) are told apart with effort
and distant classes at a glance; nothing about them is measured on ImageNet.

Only integers and single float32 operations that IEEE 754 rounds exactly
(+ - * / sqrt, comparisons) make a pixel: no sin, exp, sum or matrix product,
whose last bit depends on the processor. Edges are ramps, never thresholds, so
one bit of difference could move a pixel by one grey level at most.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from osnb import hierarchy

_RGB = ("light", "warm", "green")
GROUPS = {
    "scene": ["horizon", "ground_u", "ground_v", "relief"]
    + [f"{part}_{c}" for part in ("sky", "ground") for c in _RGB],
    "layout": [f"{part}_{c}" for part in ("head", "limb", "tail", "eye") for c in "uvr"],
    "shape": ["size", "aspect", "c2", "s2", "c3", "s3", "c4", "s4", "c5", "s5"],
    "colour": [f"{part}_{c}" for part in ("body", "mark", "end") for c in _RGB],
    "texture": ["stripe_u", "stripe_v", "spot_u", "spot_v", "stripes", "spots", "belly", "rim"],
}
TRAITS = [name for names in GROUPS.values() for name in names]
TRAIT = {name: i for i, name in enumerate(TRAITS)}

CAST = 0.1
# Share of a trait that a step down the path keeps, and how far individuals stand from their class.
KEEP = {"scene": 0.95, "layout": 0.95, "shape": 0.93, "colour": 0.85, "texture": 0.85}
INDIVIDUAL = {"scene": 0.4, "layout": 0.3, "shape": 0.3, "colour": 0.3, "texture": 0.3}


def _per_trait(table: dict[str, float]) -> np.ndarray:
    """(T,) float32, each trait's value by its group."""
    return np.repeat(np.array([table[g] for g in GROUPS], np.float32), [len(n) for n in GROUPS.values()])


_POSE = ["turn", "flip", "scale", "shift_u", "shift_v", "gain", "light_u", "light_v", "warm", "green"]
_POSE += ["phase_a", "phase_b", "phase_c", "phase_d"]
_POSE += [f"{blob}_{what}" for blob in "ab" for what in ("u", "v", "r", "light", "warm", "green")]
POSE = {name: i for i, name in enumerate(_POSE)}


def _mix(x: np.ndarray) -> np.ndarray:
    """splitmix64's finaliser: uint64 to uint64, every input bit moves every output bit."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _bits(numbers: np.ndarray, indices: np.ndarray, seed: int, columns: int) -> np.ndarray:
    """(N, columns) uint64, a function of (number, index, seed, column) and nothing else."""
    step = np.uint64(0x9E3779B97F4A7C15)
    key = _mix(np.full(1, seed, np.uint64) * step + np.uint64(1))
    key = _mix(key + numbers.astype(np.uint64) * step)
    key = _mix(key + indices.astype(np.uint64) * step)
    return _mix(key[:, None] + np.arange(1, columns + 1, dtype=np.uint64) * step)


def _bell(bits: np.ndarray) -> np.ndarray:
    """Nearly normal numbers, mean 0, variance 1, within 3.5: four 16-bit fields summed."""
    fields = [(bits >> np.uint64(s)) & np.uint64(0xFFFF) for s in (0, 16, 32, 48)]
    total = (fields[0] + fields[1] + fields[2] + fields[3]).astype(np.int64)
    return ((total - 131070) * (3**0.5 / 65536)).astype(np.float32)


@lru_cache(maxsize=4096)
def traits(wnid: str, seed: int = 0) -> np.ndarray:
    """(T,) float32 traits of a synset: the steps of its path summed, root first."""
    numbers = np.array([int(step[1:]) for step in hierarchy.path(wnid)])
    steps = _bell(_bits(numbers, np.zeros_like(numbers), seed, len(TRAITS)))
    keep = _per_trait(KEEP)
    total = steps[0]
    for step in steps[1:]:
        total = keep * total + np.sqrt(1 - keep * keep) * step
    total.flags.writeable = False
    return total


def _squash(x: np.ndarray) -> np.ndarray:
    """Any number to (-1, 1), slope 1 at 0."""
    return x / np.sqrt(1 + x * x)


def _ramp(x: np.ndarray) -> np.ndarray:
    """0 below 0, 1 above 1, smooth between."""
    x = np.clip(x, 0, 1)
    return x * x * (3 - 2 * x)


def _wave(x: np.ndarray) -> np.ndarray:
    """A sine of period 1 made of two parabolas, continuous with its slope."""
    x = x - np.floor(x + np.float32(0.5))
    return x * (8 - 16 * np.abs(x))


def _colour(trait, part: str) -> np.ndarray:
    """(n, 3, 1) red, green, blue of a part, about 0.1 to 0.9."""
    light, warm, green = (_squash(trait(f"{part}_{c}")) for c in ("light", "warm", "green"))
    light = np.float32(0.5) + np.float32(0.3) * light
    warm, green = np.float32(0.22) * warm, np.float32(0.14) * green
    return np.stack([light + warm - green, light + green, light - warm - green], axis=1)


def _paint(image: np.ndarray, cover: np.ndarray, colour: np.ndarray) -> None:
    """Lay a colour over the image where the cover (n, P) is 1, in place."""
    image += cover[:, None] * (colour - image)


def _blob(x, y, radius, edge) -> np.ndarray:
    """(n, P) cover of a disc, its rim as wide as the edge."""
    return _ramp((radius - np.sqrt(x * x + y * y)) / edge + np.float32(0.5))


def _scene(trait, pose, x, y) -> np.ndarray:
    """(n, 3, P) sky and ground with its relief, and two blobs of clutter."""
    f = np.float32
    height = f(0.35) * _squash(trait("horizon")) + f(0.1) * pose("shift_v")
    relief = _wave(
        f(1.2) * trait("ground_u") * x + f(1.2) * trait("ground_v") * y + pose("phase_a")
    )
    depth = _ramp((y - height) * f(1.2) + f(0.5)) + f(0.22) * _squash(trait("relief")) * relief
    sky, ground = _colour(trait, "sky"), _colour(trait, "ground")
    image = sky + depth[:, None] * (ground - sky)
    for blob in "ab":
        where = _blob(
            x - f(0.6) * pose(f"{blob}_u"), y - f(0.6) * pose(f"{blob}_v"),
            f(0.22) + f(0.08) * pose(f"{blob}_r"), f(0.3),
        )  # fmt: skip
        _paint(image, f(0.6) * where, _colour(pose, blob))
    return image


def _contour(trait, u, v, r) -> np.ndarray:
    """(n, P) radius of the body in each pixel's direction: a circle and harmonics 2 to 5."""
    cos, sin = u / r, v / r
    c, s = cos, sin
    radius = np.float32(1)
    for k in (2, 3, 4, 5):
        c, s = c * cos - s * sin, s * cos + c * sin
        weight = np.float32(0.28 / k**0.5)
        radius = radius + weight * (_squash(trait(f"c{k}")) * c + _squash(trait(f"s{k}")) * s)
    return radius


def _coat(trait, pose, u, v, inside) -> np.ndarray:
    """(n, 3, P) colours of the body: base and mark, mixed by stripes, spots and a belly."""
    f = np.float32
    along, across = _squash(trait("stripe_u")), _squash(trait("stripe_v"))
    stripes = _wave(f(2) * (along * u + across * v) + f(0.3) * pose("phase_b"))
    a = _wave((f(1.3) + _squash(trait("spot_u"))) * u + f(0.3) * pose("phase_c"))
    b = _wave((f(1.3) + _squash(trait("spot_v"))) * v + f(0.3) * pose("phase_d"))
    mix = f(0.35) + f(0.5) * _squash(trait("stripes")) * stripes
    mix += f(0.5) * _squash(trait("spots")) * a * b + f(0.3) * _squash(trait("belly")) * v
    body, mark = _colour(trait, "body"), _colour(trait, "mark")
    coat = body + np.clip(mix, 0, 1)[:, None] * (mark - body)
    rim = f(0.25) * _squash(trait("rim")) * _ramp(1 - 4 * inside)
    dome = f(0.25) * (pose("light_u") * u + pose("light_v") * v) + rim
    return coat + dome[:, None] * f(0.6)


def _render(trait, pose, size: int) -> np.ndarray:
    """(n, 3, size * size) float32 images, about 0 to 1."""
    f = np.float32
    axis = (np.arange(size, dtype=f) * 2 + 1 - size) / f(size)
    x, y = np.tile(axis, size)[None], np.repeat(axis, size)[None]
    image = _scene(trait, pose, x, y)

    turn = f(0.17) * pose("turn")  # tan of half the angle: cos and sin without their functions
    cos, sin = (1 - turn * turn) / (1 + turn * turn), 2 * turn / (1 + turn * turn)
    flip = np.where(pose("flip") > 0, f(1), f(-1))
    scale = (f(1.9) + f(0.25) * pose("scale")) * (1 + f(0.25) * _squash(trait("size")))
    x, y = x - f(0.13) * pose("shift_u"), y - f(0.13) * pose("shift_v")
    stretch = 1 + f(0.4) * _squash(trait("aspect"))
    u, v = flip * scale * (cos * x + sin * y) * stretch, scale * (cos * y - sin * x) / stretch
    edge = f(3.0) / f(size) * scale

    for part in ("limb", "tail", "head"):
        pu, pv = _squash(trait(f"{part}_u")), _squash(trait(f"{part}_v"))
        radius = f(0.4) + f(0.2) * _squash(trait(f"{part}_r"))
        cover = _blob(u - f(1.15) * pu, v - f(1.15) * pv, radius, edge)
        _paint(image, cover, _colour(trait, "end"))
    r = np.sqrt(u * u + v * v) + f(1e-3)
    inside = _contour(trait, u, v, r) - r
    coat = _coat(trait, pose, u, v, inside)
    _paint(image, _ramp(inside / edge + f(0.5)), coat)
    eu, ev = u - f(0.5) * _squash(trait("eye_u")), v - f(0.5) * _squash(trait("eye_v"))
    radius = f(0.5) * _squash(trait("eye_r"))
    _paint(image, _blob(eu, ev, radius, edge), f(0.95))
    _paint(image, _blob(eu, ev, radius * f(0.6) , edge), f(0.05))

    light = 1 + f(0.12) * pose("gain") + f(0.1) * (pose("light_u") * x + pose("light_v") * y)
    image *= light[:, None]
    warm, green = f(CAST) * pose("warm"), f(CAST) * pose("green")
    cast = np.stack([warm - green, green, -warm - green], axis=1)
    image *= 1 + cast
    return image


def draw(
    wnids: Sequence[str], indices: Sequence[int], *, size: int = 32, seed: int = 0
) -> np.ndarray:
    """Draw image number `index` of class `wnid`, for each pair."""
    numbers = np.array([int(w[1:]) for w in wnids])
    indices = np.asarray(indices)
    names, which = np.unique(np.asarray(wnids), return_inverse=True)
    table = np.stack([traits(str(w), seed) for w in names])
    out = np.empty((len(numbers), 3, size * size), np.uint8)
    step = max(1, 2**15 // (size * size))
    for start in range(0, len(out), step):
        part = slice(start, start + step)
        bell = _bell(_bits(numbers[part], indices[part], seed, len(TRAITS) + len(POSE)))
        values = table[which[part]] + _per_trait(INDIVIDUAL) * bell[:, : len(TRAITS)]
        poses = bell[:, len(TRAITS) :]
        image = _render(
            lambda name, v=values: v[:, TRAIT[name], None],
            lambda name, p=poses: p[:, POSE[name], None],
            size,
        )
        np.clip(image * np.float32(255) + np.float32(0.5), 0, 255, out=image)
        out[part] = image
    return out.reshape(-1, 3, size, size)
