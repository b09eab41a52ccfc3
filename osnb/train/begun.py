"""What a training begins with, told briefly: a checkpoint of another training is not taken up.

Weights are told by three sums each and compared loosely, since processors draw them equal but for
the last digits. Functions are told by what they are compiled to and by what they refer to, so that
a comment changes nothing and a constant does.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from osnb.base import workbook

PLAIN = (int, float, str, bool, bytes, type(None), torch.dtype, torch.device)
SHARES = 64  # of a run, at which its schedule is looked at


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


def optimizer(given: Optimizer) -> str:
    """Kind and settings of an optimizer, as given."""
    told = [{"lr": rate} for rate in rates(given)]
    for group, own in zip(given.param_groups, told, strict=True):
        own |= {k: v for k, v in group.items() if k not in ("params", "initial_lr", "lr")}
    return f"{type(given).__name__}{told}"


def schedule(given: Callable[[float], float]) -> str:
    """Digest of a schedule's factors over the run."""
    return workbook.digest(*(f"{given(i / SHARES):.9g}" for i in range(SHARES)))


def network(model: nn.Module) -> str:
    """Digest of a network's layers, their settings and their code, without its weights."""
    return workbook.digest(*_told(_layers(model)))


def code(value: Any) -> str:
    """Digest of a function, or of what one is made with: its code and all that it refers to."""
    return workbook.digest(*_told(value))


def _layers(model: nn.Module) -> list:
    return [repr(model), *(_functions(type(part)) for part in model.modules())]


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
        cells = [
            x.cell_contents for x in value.__closure__ or () if x != CellType()
        ]  # not empty ones
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
    elif isinstance(value, list | tuple | frozenset):
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
