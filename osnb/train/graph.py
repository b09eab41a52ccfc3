"""A training step on a GPU as one CUDA graph: its launches, some hundreds, become one.

A graph repeats fixed kernels at fixed addresses. So images and labels are copied to where it reads
them, the optimizer reads its learning rate from the GPU, and a batch of another shape, such as the
last one of an epoch, takes the step as it is. The batch itself is made outside: order, crops and
operations are drawn on the host, so that every device gets the same bytes.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.optim import Optimizer

EAGER = 3  # steps before the capture, in which libraries and optimizer take the memory they need


class Graph:
    """`step(images, labels, share)`, replayed for batches of the shape that it was captured with.

    The numbers are those of the step itself. To be used inside `alone`.

    Args:
        step: waits for nothing on the GPU; the tensor that it gives is overwritten by the next.
    """

    def __init__(self, step: Callable[[Tensor, Tensor, float], Tensor]):
        self.step, self.graph, self.done, self.shape = step, None, 0, None

    def __call__(self, images: Tensor, labels: Tensor, share: float) -> Tensor:
        """What the step gives."""
        if not self.graph:
            self.done += 1
            self.shape = self.shape or images.shape
            if self.done > EAGER and images.shape == self.shape:
                self._capture(images, labels, share)
        if not self.graph or images.shape != self.shape:
            return self.step(images, labels, share)
        self.images.copy_(images, non_blocking=True)
        self.labels.copy_(labels, non_blocking=True)
        self.graph.replay()
        return self.values

    def _capture(self, images: Tensor, labels: Tensor, share: float) -> None:
        """Record the step without carrying it out."""
        layout = torch.channels_last if images.ndim == 4 else torch.contiguous_format
        self.images = torch.empty_like(images, device=labels.device, memory_format=layout)
        self.labels = torch.empty_like(labels)
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        # threads that make batches ahead may use the GPU meanwhile
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            self.values = self.step(self.images, self.labels, share)
        self.graph = graph


@contextmanager
def alone() -> Iterator[None]:
    """A stream of its own for what is done meanwhile: on the usual one nothing can be captured."""
    usual, own = torch.cuda.current_stream(), torch.cuda.Stream()
    own.wait_stream(usual)
    try:
        with torch.cuda.stream(own):
            yield
    finally:
        usual.wait_stream(own)


@contextmanager
def fused(optimizer: Optimizer, *, captured: bool) -> Iterator[None]:
    """Meanwhile the optimizer's step is one kernel, which reads its learning rate on the GPU.

    With `captured` it may be part of a graph; torch warns of that where there is none.
    """
    names = ("fused", "foreach", *["capturable"] * captured)
    names = [name for name in names if name in optimizer.defaults]
    before = [{name: group[name] for name in names} for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        rate = torch.tensor(float(group["lr"]), device=group["params"][0].device)
        group |= {name: name != "foreach" for name in names} | {"lr": rate}
    try:
        yield
    finally:
        for group, given in zip(optimizer.param_groups, before, strict=True):
            group |= given | {"lr": float(group["lr"])}
