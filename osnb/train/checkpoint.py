"""Checkpoints: written aside and renamed, closed by a checksum, the one before kept.

What a training begins with is told in them, briefly, so that one of another training is not taken
up. Weights are told by three sums each and compared loosely, since processors draw them equal but
for the last digits. Functions are told by what they are compiled to and by what they refer to, so
that a comment changes nothing and a constant does.
"""

import copy
import hashlib
import io
import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from osnb.base import workbook

CURRENT, PREVIOUS, BEST = "checkpoint.pt", "previous.pt", "best.pt"
SUM = hashlib.sha256().digest_size
PLAIN = (int, float, str, bool, bytes, type(None), torch.dtype, torch.device)
SHARES = 64  # of a run, at which its schedule is looked at


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
        "cuda": [torch.cuda.get_rng_state()] if torch.cuda.is_initialized() else [],
    }


def set_random_states(states: dict[str, Any]) -> None:
    """Put the global generators where `random_states` found them."""
    version, keys, gauss = states["python"]
    random.setstate((version, tuple(keys), gauss))
    name, numbers, *rest = states["numpy"]
    np.random.set_state((name, np.array(numbers, np.uint32), *rest))  # noqa: NPY002
    torch.set_rng_state(states["torch"])
    if states["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"][0])  # of the one GPU that this process uses


@contextmanager
def seeded(seed: int, part: str) -> Iterator[None]:
    """Random numbers that follow from (seed, part), such as a companion's first weights.

    torch's generators are afterwards where they were.
    """
    with torch.random.fork_rng([torch.cuda.current_device()] if torch.cuda.is_available() else []):
        torch.manual_seed(int(workbook.digest(f"{seed} {part}")[:15], 16))
        yield


def placed(state: dict[str, Any], optimizer: Optimizer) -> dict[str, Any]:
    """An optimizer's state, to be loaded where it goes on: a GPU takes a step in another way.

    Learning rates are the state's; whether they are tensors, and what a step is, the optimizer's.
    """
    groups = []
    for was, group in zip(state["param_groups"], optimizer.param_groups, strict=True):
        own = {name: group[name] for name in ("fused", "foreach", "capturable") if name in group}
        rate = float(was["lr"])
        own["lr"] = group["lr"].new_full((), rate) if isinstance(group["lr"], Tensor) else rate
        groups.append(was | own)
    return state | {"param_groups": groups}


# What a training begins with.


def sums(state: Mapping[str, Any]) -> Tensor:
    """(T, 3) float64 of T tensors: sum, sum of sizes, and sum weighted by a rising ramp."""
    rows = []
    for tensor in state.values():
        if isinstance(tensor, Tensor):
            x = tensor.detach().cpu().double().flatten()
            ramp = torch.linspace(0.5, 1, len(x), dtype=x.dtype)
            rows.append(torch.stack([x.sum(), x.abs().sum(), x @ ramp]))
    return torch.stack(rows) if rows else torch.zeros(0, 3, dtype=torch.float64)


def alike(one: Tensor, other: Tensor) -> bool:
    """Whether two `sums` tell the same tensors, to a share of 1e-5 of their sizes."""
    if one.shape != other.shape:
        return False
    return bool(((one - other).abs() <= 1e-5 * one[:, 1:2]).all())


def rates(optimizer: Optimizer) -> list[float]:
    """Learning rates as they were given, before any schedule."""
    return [group.setdefault("initial_lr", group["lr"]) for group in optimizer.param_groups]


def identity(
    model: nn.Module, loss: Callable, optimizer: Optimizer, schedule: Callable[[float], float]
) -> dict[str, str]:
    """What a training is, by name, but for its first weights and its plain settings.

    Of the network and the loss it is a digest of layers, settings, code and all that it refers to,
    without weights; of the schedule, one of its factors over the run.
    """
    groups = [{"lr": rate} for rate in rates(optimizer)]
    for group, given in zip(groups, optimizer.param_groups, strict=True):
        group |= {k: v for k, v in given.items() if k not in ("params", "initial_lr", "lr")}
    return {
        "network": workbook.digest(*_told(_layers(model))),
        "loss": code(loss),
        "optimizer": f"{type(optimizer).__name__}{groups}",
        "schedule": workbook.digest(*(f"{schedule(i / SHARES):.9g}" for i in range(SHARES))),
    }


def code(value: Any) -> str:
    """Digest of a function, or of what one is made with: its code and all that it refers to."""
    return workbook.digest(*_told(value))


def _layers(model: nn.Module) -> list:
    kept = model.state_dict(keep_vars=True)  # what is not in it, no checkpoint puts back
    fixed = [item for item in model.named_buffers() if item[0] not in kept]
    return [repr(model), *fixed, *(_functions(type(part)) for part in model.modules())]


def _functions(kind: type) -> list:
    functions = [f for f in kind.__dict__.values() if isinstance(f, FunctionType)]
    return [kind.__qualname__, *functions]


def _told(value: Any) -> Iterator[str | bytes]:
    """The words that tell a value, in order; what was told before is not told again."""
    told: dict[int, Any] = {}  # holds what it has seen: an address that is free is used again
    left = [value]
    while left:
        value = left.pop()
        if isinstance(value, PLAIN):
            yield repr(value)
        elif id(value) not in told:
            told[id(value)] = value
            yield type(value).__qualname__
            left += reversed([*_parts(value)])


def _parts(value: Any) -> Iterator[Any]:
    """What a value consists of."""
    if isinstance(value, Tensor | np.ndarray):
        array = value.detach().cpu().float().numpy() if isinstance(value, Tensor) else value
        yield from (str(array.shape), np.ascontiguousarray(array).tobytes())
    elif isinstance(value, FunctionType):
        compiled, given = value.__code__, value.__globals__
        near = [x for name in _names(compiled) if _near(x := given.get(name), value.__module__)]
        filled = (x for x in value.__closure__ or () if x != CellType())
        cells = [x.cell_contents for x in filled]
        words = tuple(word for word in compiled.co_consts if word is not value.__doc__)
        yield from (compiled.replace(co_consts=words), value.__defaults__, value.__kwdefaults__)
        yield from (cells, near)
    elif isinstance(value, CodeType):
        yield from (value.co_code, value.co_names, value.co_consts)
    elif isinstance(value, partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, MethodType):
        yield from (value.__func__, value.__self__)
    elif isinstance(value, nn.Module):
        yield from (_layers(value), dict(value.state_dict()))
    elif isinstance(value, Mapping):
        yield from (x for item in value.items() for x in item)
    elif isinstance(value, frozenset):  # in another order in every process
        yield from sorted(value, key=repr)
    elif isinstance(value, list | tuple):
        yield from value
    elif hasattr(value, "__dict__") and not isinstance(value, type | ModuleType):
        yield from (_functions(type(value)), value.__dict__)


def _names(compiled: CodeType) -> Iterator[str]:
    """Names of globals that a function's code, or a function inside it, looks up."""
    yield from compiled.co_names
    for word in compiled.co_consts:
        if isinstance(word, CodeType):
            yield from _names(word)


def _near(value: Any, module: str) -> bool:
    """Whether a global is a value, or a function of the same module; modules are not followed."""
    if isinstance(value, FunctionType):
        return value.__module__ == module
    return isinstance(value, (*PLAIN, Tensor))
