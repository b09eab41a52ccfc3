"""Tensors on the pretended GPU, and what stands in the place of torch's functions meanwhile."""

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from tests.pretended import inference

COPY, MOVE = torch.ops.aten.copy_.default, torch.ops.aten._to_copy.default
INDEX = ("aten::index.Tensor", "aten::index_put_", "aten::index_put", "aten::_index_put_impl_")


class OnGpu(Tensor):
    """A tensor that lies on 'cuda:0'; `inner` holds its numbers."""

    @staticmethod
    def __new__(cls, inner: Tensor):
        how = {"strides": inner.stride(), "storage_offset": inner.storage_offset()}
        how |= {"dtype": inner.dtype, "layout": inner.layout, "device": "cuda:0"}
        self = Tensor._make_wrapper_subclass(cls, inner.size(), **how)
        self.inner = inner
        return self

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return carried_out(func, args, kwargs or {})

    def __deepcopy__(self, memo):
        copied = OnGpu(self.inner.detach().clone())
        if isinstance(self, nn.Parameter):
            copied = nn.Parameter(copied, self.requires_grad)
        memo[id(self)] = copied
        return copied

    def __reduce_ex__(self, protocol):
        return self.inner.detach().clone().__reduce_ex__(protocol)

    def tolist(self):
        return self.inner.tolist()

    @property
    def data(self):
        return self.detach()

    @data.setter
    def data(self, other):
        self.inner = other.inner
        Tensor.data.__set__(self, other)


class Mode(TorchDispatchMode):
    """Sees what makes tensors, or moves them."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return carried_out(func, args, kwargs or {})


def carried_out(func, args: tuple, kwargs: dict) -> Any:
    """An operation on the CPU, with its answer where a GPU's would lie.

    Raises:
        RuntimeError: its tensors lie on two devices.
    """
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    there = [x for x in tensors if isinstance(x, OnGpu)]
    here = [x for x in tensors if not isinstance(x, OnGpu)]
    if there and here and not _may_meet(func, args, here):
        shapes = [tuple(x.shape) for x in here]
        raise RuntimeError(f"{func}: tensors on cuda:0 and cpu, the latter of shapes {shapes}")
    on_gpu, kwargs = bool(there), dict(kwargs)
    if kwargs.get("device") is not None:
        on_gpu = torch.device(kwargs["device"]).type == "cuda"
        kwargs["device"] = torch.device("cpu")
    if func is COPY:
        on_gpu = isinstance(args[0], OnGpu)
    inner = tree_map_only(OnGpu, lambda x: x.inner, (args, kwargs))
    with torch.no_grad():
        answer = func(*inner[0], **inner[1])
    if not on_gpu:
        return answer
    return _written(func._schema, args, kwargs, tree_map_only(Tensor, OnGpu, answer))


def _may_meet(func, args: tuple, here: list[Tensor]) -> bool:
    """Whether CUDA allows tensors of the CPU here: single numbers, indices, and what is copied."""
    if func in (COPY, MOVE):
        return True
    if func.name().startswith(INDEX) and isinstance(args[0], OnGpu):
        return "put" not in func.name() or isinstance(args[2], OnGpu) or not args[2].dim()
    return "_fused_" not in func.name() and not any(x.dim() for x in here)


def _written(schema, args: tuple, kwargs: dict, answer: Any) -> Any:
    """The answer, or the arguments themselves that were written to."""
    said = {argument.name: value for argument, value in zip(schema.arguments, args, strict=False)}
    said |= kwargs
    of = {}
    for argument in schema.arguments:
        if argument.alias_info is not None and argument.alias_info.is_write:
            of |= dict.fromkeys(argument.alias_info.before_set, said[argument.name])
    values = [
        of[next(iter(to.alias_info.before_set))]
        if to.alias_info is not None and to.alias_info.is_write
        else value
        for to, value in zip(
            schema.returns, answer if len(schema.returns) > 1 else (answer,), strict=False
        )
    ]
    return tuple(values) if len(values) > 1 else (values or [answer])[0]


class Stream(SimpleNamespace):
    """One on which all is done at once."""

    cuda_stream = 0

    def wait_stream(self, other) -> None:
        """Nothing is left to wait for."""


def begin() -> None:
    """What stands for the whole process, before anything else takes torch's own."""
    torch.inference_mode = inference
    alike = torch._has_compatible_shallow_copy_type

    def together(*tensors: Tensor, **_: Tensor) -> bool:
        return len({isinstance(x, OnGpu) for x in tensors}) == 1 and alike(*tensors)

    torch._has_compatible_shallow_copy_type = together


def instead() -> Iterator[tuple[object, str, Any]]:
    """Owner, name and value of what torch answers while there is a GPU."""
    state = torch.zeros(16, dtype=torch.uint8)
    answers = {"is_available": True, "is_initialized": True, "device_count": 1}
    answers |= {"current_device": 0, "is_bf16_supported": True, "max_memory_allocated": 1}
    answers |= {"get_device_name": "pretended", "get_rng_state": state, "current_stream": Stream()}
    nothing = ("_lazy_init", "set_rng_state", "manual_seed", "manual_seed_all", "synchronize")
    for name, answer in (answers | dict.fromkeys(nothing)).items():
        yield torch.cuda, name, lambda *_, answer=answer, **__: answer
    yield Tensor, "pin_memory", lambda self: self
    yield Tensor, "numpy", lambda self, of=Tensor.numpy, **how: of(_here(self), **how)
    for name in ("tensor", "as_tensor"):
        yield torch, name, partial(_made, getattr(torch, name))


def _here(tensor: Tensor) -> Tensor:
    if isinstance(tensor, OnGpu):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")
    return tensor


def _made(of, data: Any, *, dtype=None, device=None, **how) -> Tensor:
    """torch.tensor moves what it makes without asking a mode; so that is done here."""
    if isinstance(data, OnGpu):
        device = device or data.device
    host = data if isinstance(data, Tensor) else of(data, dtype=dtype, **how)
    return host.to(device=device, dtype=dtype) if device or dtype else host
