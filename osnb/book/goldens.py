"""Goldens: the numbers of rehearsals, in tests/golden, which say what today's code computes.

A golden is equal to the bit on the kind of processor that wrote it; on another one floats are
compared within a tolerance, orders and lists exactly. `make golden` writes those anew that have
changed, and the commit shows which.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import numpy as np

from osnb.base import workbook
from osnb.book import follows, record

SOME = 8  # values of an array that are kept
TRAINED = ("method", "regime", "rules", "watch", "optimizer", "option")  # that take some steps
FINE = 1e-4  # tolerance between processors, absolute and relative
DEEP = 1e-2  # of networks: gradients of fifty layers, of 44,000, differ by 2e-3
# after steps, of a column's largest value: without vector instructions one differs by 9e-3, and
# AVX2 from AVX-512 by 1.5e-3 in bfloat16; what is below the second number is rounding alone
DRIFT, NOISE = 2e-2, 1e-6


def names() -> list[str]:
    """Every golden that the code has: "loss/edl"."""
    from osnb.experiment.rehearsal import REHEARSALS

    return [f"{kind}/{name}" for kind, inner in REHEARSALS.items() for name in inner]


def rehearsed(name: str) -> dict[str, Any]:
    """What the code computes today, as a golden says it.

    Returns:
        processor, exact (digest of texts and whole numbers; none after steps), near (some floats;
        after steps whole numbers too), digest of all.
    """
    from osnb.experiment.rehearsal import REHEARSALS

    kind, _, short = name.partition("/")
    with _one_thread():
        numbers = REHEARSALS[kind][short]()
    exact, near, bits = [], {}, []
    for key, value in sorted(numbers.items()):
        text, array = isinstance(value, str), np.ascontiguousarray(value)
        bits.append(workbook.digest(key, value if text else array.tobytes()))
        if text or (array.dtype.kind in "biu" and kind not in TRAINED):
            exact.append(bits[-1])
        else:
            near[key] = _some(array)
    return {
        "processor": processor(),
        "exact": workbook.digest(*exact) if kind not in TRAINED else "",
        "near": near,
        "digest": workbook.digest(*bits),
    }


def agrees(golden: Mapping[str, Any] | None, found: Mapping[str, Any], name: str) -> bool:
    """Whether what was rehearsed is what a golden says."""
    if golden is None or golden["digest"] == found["digest"]:
        return golden is not None
    if golden["processor"] == found["processor"]:
        return False
    if golden["exact"] != found["exact"] or golden["near"].keys() != found["near"].keys():
        return False
    kind = name.partition("/")[0]
    held = golden["near"].keys()
    if kind in TRAINED:  # two logits may be nearer to each other than processors are
        held = [key for key in held if not key.endswith(" pred")]
    return all(_close(golden["near"][key], found["near"][key], kind) for key in held)


def kept(name: str) -> dict[str, Any] | None:
    """The golden of that name in tests/golden; none if there is none."""
    kind, _, short = name.partition("/")
    file = follows.held().with_name(f"{kind}.json")
    return json.loads(file.read_text()).get(short) if file.is_file() else None


def check() -> None:
    """Rehearse all that has a golden; that the code agrees with all of them is noted.

    Raises:
        ValueError: the code computes otherwise than some of them say.
    """
    wrong = [name for name in names() if not agrees(kept(name), rehearsed(name), name)]
    if wrong:
        raise ValueError(
            f"the code computes otherwise than {len(wrong)} goldens say: {', '.join(wrong)}; "
            "make golden writes them anew, if that is on purpose"
        )
    if follows.goldens().keys() <= {*names()}:
        with suppress(OSError):  # the package may not be ours to write in
            follows.note()


def _some(array: np.ndarray) -> list[float]:
    """A few values, evenly apart, those at an end of the floats aside."""
    flat = array.ravel().astype(float)
    flat = flat[np.isfinite(flat)]
    chosen = np.unique(np.linspace(0, max(len(flat) - 1, 0), SOME).astype(int))
    return [float(f"{x:.7g}") for x in flat[chosen]] if len(flat) else []


def _close(golden: list[float], found: list[float], kind: str) -> bool:
    """Whether a column is that of another kind of processor; after steps its size says how near."""
    if kind in TRAINED:
        rtol, atol = 0, NOISE + DRIFT * max(map(abs, golden), default=0)
    else:
        rtol = atol = DEEP if kind == "network" else FINE
    return len(golden) == len(found) and np.allclose(golden, found, rtol=rtol, atol=atol)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Sums in one order, whatever machine."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


@cache
def processor() -> str:
    """The kind of processor, as far as numbers depend on it: vendor, instructions, BLAS core."""
    import torch
    from threadpoolctl import threadpool_info

    cores = {x.get("architecture") for x in threadpool_info() if x["user_api"] == "blas"}
    cores = ", ".join(sorted(core for core in cores if core))
    vendor, capability = record.cpu("vendor_id") or "?", torch.backends.cpu.get_cpu_capability()
    return f"{vendor}, {capability}, {cores}, 1 thread"
