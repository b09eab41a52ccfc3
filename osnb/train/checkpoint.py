"""Checkpoints: written aside and renamed, closed by a checksum, the one before kept."""

import copy
import hashlib
import io
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from osnb.base import workbook

CURRENT, PREVIOUS, BEST = "checkpoint.pt", "previous.pt", "best.pt"
SUM = hashlib.sha256().digest_size


def save(state: dict[str, Any], path: Path) -> None:
    """Write a state of tensors and plain values with its sha256 behind it.

    `torch.load` reads the file too; it does not look behind the end of its zip.
    """
    buffer = io.BytesIO()
    torch.save(state, buffer)
    # closed here: a view that a failing write leaves open is an error when the buffer goes
    with buffer.getbuffer() as content, workbook.writing(path) as aside:
        aside.write_bytes(content)
        with aside.open("ab") as file:
            file.write(hashlib.sha256(content).digest())


def load(path: Path) -> dict[str, Any]:
    """The state in a file of `save`, on the CPU.

    Raises:
        ValueError: the checksum does not fit: the file is truncated, corrupted or not ours.
    """
    content = memoryview(path.read_bytes())
    if len(content) < SUM or hashlib.sha256(content[:-SUM]).digest() != content[-SUM:]:
        raise ValueError(f"{path} is truncated, corrupted or no checkpoint: its checksum is wrong")
    return torch.load(io.BytesIO(content[:-SUM]), map_location="cpu", weights_only=True)


def keep(state: dict[str, Any], directory: Path) -> None:
    """Make `state` the current checkpoint, the one before it the previous one.

    A kill between the two renames leaves the previous one alone, which `newest` then finds.
    """
    fresh = directory / "next.pt"
    save(state, fresh)
    if (directory / CURRENT).is_file():
        (directory / CURRENT).replace(directory / PREVIOUS)
    fresh.replace(directory / CURRENT)


def newest(directory: Path) -> dict[str, Any] | None:
    """The last whole checkpoint in the folder; None where there is no checkpoint at all.

    Raises:
        ValueError: there are checkpoints and none is whole.
    """
    files = [file for name in (CURRENT, PREVIOUS) if (file := directory / name).is_file()]
    for i, file in enumerate(files, start=1):
        try:
            return load(file)
        except ValueError as error:
            if i == len(files):
                raise ValueError(f"{error}; remove it to train from the first epoch") from None
            warnings.warn(f"{error}; going on from the one before it", stacklevel=2)
            file.replace(directory / "broken.pt")  # so that it never becomes the previous one
    return None


def remove(directory: Path) -> None:
    """Remove the checkpoints in the folder."""
    for name in (CURRENT, PREVIOUS, BEST):
        (directory / name).unlink(missing_ok=True)


def best(model: nn.Module, directory: Path) -> nn.Module:
    """A copy of `model` with the weights of the best epoch that `fit` kept in `directory`.

    Raises:
        FileNotFoundError: no epoch was the best, since `validate` gave no `best`.
        ValueError: best.pt is not whole.
    """
    if not (directory / BEST).is_file():
        raise FileNotFoundError(f"no {BEST} in {directory}: `validate` gave no entry 'best'")
    chosen = copy.deepcopy(model)
    chosen.load_state_dict(load(directory / BEST)["model"])
    return chosen


def random_states() -> dict[str, Any]:
    """The states of Python's, numpy's and torch's global generators, as plain values."""
    name, keys, *rest = np.random.get_state()  # noqa: NPY002, libraries draw from it
    return {
        "python": random.getstate(),
        "numpy": (name, keys.tolist(), *rest),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
    }


def set_random_states(states: dict[str, Any]) -> None:
    """Put the global generators where `random_states` found them."""
    version, keys, gauss = states["python"]
    random.setstate((version, tuple(keys), gauss))
    name, numbers, *rest = states["numpy"]
    np.random.set_state((name, np.array(numbers, np.uint32), *rest))  # noqa: NPY002
    torch.set_rng_state(states["torch"])
    if states["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])


@contextmanager
def seeded(seed: int, part: str) -> Iterator[None]:
    """Random numbers that follow from (seed, part), such as a companion's first weights.

    torch's generators are afterwards where they were.
    """
    with torch.random.fork_rng():
        torch.manual_seed(int(workbook.digest(f"{seed} {part}")[:15], 16))
        yield
