"""One batch through a network, all batches of a test, and a second look at each: ODIN, dropout."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

import numpy as np
import torch
from torch import Tensor, nn

from osnb.base.catalogue import Catalogue
from osnb.base.outputs import Outputs

SLOPES = 64  # images whose gradients a GPU computes at once: they take more than a training's


def device(model: nn.Module | None = None) -> torch.device:
    """Where a network's numbers are; of one without any, or without a network, where it would go:
    the GPU if there is one, else the CPU. With several processes, each has its own GPU."""
    tensors = chain(model.parameters(), model.buffers()) if model else ()
    usual = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return next((tensor.device for tensor in tensors), usual)


@torch.inference_mode()
def predict(
    model: nn.Module,
    batches: Callable,
    *,
    precision: str = "float32",
    look: Callable[[Tensor], Outputs] | None = None,
) -> Outputs:
    """What the network says, in the order of the rows that the batches were made of.

    Args:
        model: is put in evaluation mode and stays on its device.
        batches: of `shuffle=False`; `batches(0)` is read once.
        precision: "float32", or "bfloat16": the trunk in autocast, the head in float32. Scores
            then differ in the third digit; use float32 for what is printed.
        look: gives the outputs of a batch in the model's place, such as after several passes.

    Returns:
        `Outputs` of float32 arrays: logits (N, C), features (N, D), or () where it gives none.

    Raises:
        ValueError: the model gives no `Outputs`.
    """
    with torch.inference_mode(False):  # weights laid out anew in that mode could not be trained
        model.eval().to(memory_format=torch.channels_last)
    where = device(model)
    parts = []
    with _all_bits(where):
        for images, _ in batches(0):
            out = forward(look or model, images, where, precision)
            given = (part for part in out[:2] if isinstance(part, Tensor))
            parts.append([part.float().cpu().numpy() for part in given])
    return Outputs(*(np.concatenate(column) for column in zip(*parts, strict=True)))


@contextmanager
def _all_bits(where: torch.device) -> Iterator[None]:
    """Meanwhile a GPU's float32 convolutions keep 24 bits of a number; torch's usual TF32, 11."""
    switch = getattr(torch.backends.cudnn, "conv", None)  # torch before 2.9 has none
    if where.type != "cuda" or not switch:
        yield
        return
    usual, switch.fp32_precision = switch.fp32_precision, "ieee"
    try:
        yield
    finally:
        switch.fp32_precision = usual


def forward(model: Callable, images: Tensor, where: torch.device, precision: str) -> Outputs:
    """The outputs of one batch, as float32 tensors on `where`; channels last is the fast layout."""
    layout = torch.channels_last if images.ndim == 4 else torch.preserve_format
    images = images.to(where, non_blocking=True, memory_format=layout)
    low = PRECISIONS[precision]
    with torch.autocast(where.type, low or torch.bfloat16, enabled=low is not None):
        out = model(images)
    if not isinstance(out, tuple):
        raise ValueError(f"need Outputs(logits, features); got {type(out).__name__}")
    return Outputs(*(p.float() if isinstance(p, Tensor) else p for p in out))


def image_shape(batches: Callable) -> tuple[int, int]:
    """(channels, edge) of the images, from the first batch.

    Raises:
        ValueError: the images are not square.
    """
    images, _ = next(iter(batches(1, 0)))
    channels, height, width = images.shape[1:]
    if height != width:
        raise ValueError(f"need square images; got {height} x {width}")
    return channels, width


def first_look(model: nn.Module, batches: Callable) -> tuple[Outputs, Tensor]:
    """Outputs and labels of the first batch; the model is put in evaluation mode."""
    images, labels = next(iter(batches(1, 0)))
    with torch.no_grad():
        return forward(model.eval(), images, device(model), "float32"), labels


def begin(model: nn.Module, batches: Callable) -> None:
    """Let layers that take something from images have their part of the first batch, once."""
    layers = [layer for layer in model.modules() if hasattr(layer, "begin")]
    handles = [x.register_forward_pre_hook(lambda x, given: x.begin(given[0])) for x in layers]
    if layers:
        first_look(model, batches)
    for handle in handles:
        handle.remove()


def mirrored(model: nn.Module, batches: Callable) -> Outputs:
    """`predict`, the mean over an image and its mirror image, of logits and of features."""

    def look(images: Tensor) -> Outputs:
        one, other = model(images), model(images.flip(3))
        means = ((one[part] + other[part]) / 2 for part in (0, 1))
        return Outputs(*means)

    return predict(model, batches, look=look)


PRECISIONS = Catalogue(float32=None, bfloat16=torch.bfloat16)  # what autocast lowers to, if at all


# Prediction that needs more than one look at an image answers as `predict` does, in `Outputs` of
# float32 arrays in the order of the rows, so that a rule such as `max_softmax` reads them.

Dropping = nn.modules.dropout._DropoutNd  # what all of torch's kinds of dropout are


def odin(
    model: nn.Module, batches: Callable, *, temperature: float, epsilon: float | Sequence[float]
) -> Outputs:
    """ODIN, in Liang et al. 2018; `max_softmax` of it is the paper's score.

    Every image takes a step that makes its predicted class y likelier, and is then looked at
    again. With p the softmax of the logits z over T, over all columns:

        x' = x + epsilon sign(d log p_y(x) / dx)        logits z(x') / T, features f(x')

    So max p may belong to another class than y: accuracy is that of `predict` (Kim et al. 2021).

    Args:
        model: is put in evaluation mode and stays on its device; its weights get no gradient.
        batches: of `shuffle=False`; `batches(0)` is read once.
        temperature: T > 0.
        epsilon: >= 0, in the unit of the images that the batches hold; one for all or one per
            channel. Kim et al. step in normalised pixels by it over the channel's standard
            deviation, which is epsilon in pixels (`models.normalising`).

    Returns:
        As `predict`. With T = 1 and epsilon = 0 the same bytes.

    Raises:
        ValueError: a setting is out of range.
    """
    return odin_steps(model, batches, temperature=temperature, epsilons=[epsilon])[0]


def odin_steps(
    model: nn.Module,
    batches: Callable,
    *,
    temperature: float,
    epsilons: Sequence[float | Sequence[float]],
) -> list[Outputs]:
    """`odin` for each of several epsilons, whose steps go along one gradient, computed once.

    Arguments and errors are those of `odin`.
    """
    steps = [torch.as_tensor(epsilon, dtype=torch.float32) for epsilon in epsilons]
    if not temperature > 0 or not all((step >= 0).all() for step in steps):
        raise ValueError(f"need temperature > 0 and epsilon >= 0; got {temperature}, {epsilons}")

    def stepped(images: Tensor) -> Outputs:
        with torch.inference_mode(False), torch.enable_grad():
            images = images.clone().requires_grad_()
            log_p = (model(images).logits.float() / temperature).log_softmax(dim=1)
            (slope,) = torch.autograd.grad(log_p.max(dim=1).values.sum(), images)
        images, sign = images.detach(), slope.sign()
        lengths = (step.to(sign.device).reshape(-1, *[1] * (sign.ndim - 2)) for step in steps)
        outs = [model(images + length * sign) for length in lengths]
        logits = torch.stack([out.logits / temperature for out in outs], dim=1)
        return Outputs(logits, torch.stack([out.features for out in outs], dim=1))

    def look(images: Tensor) -> Outputs:
        parts = [
            stepped(part)[:2] for part in images.split(SLOPES if images.is_cuda else len(images))
        ]
        return Outputs(*map(torch.cat, zip(*parts, strict=True)))

    out = predict(model, batches, look=look)
    return [Outputs(out.logits[:, i], out.features[:, i]) for i in range(len(steps))]


def dropout(model: nn.Module, batches: Callable, *, samples: int, seed: int) -> Outputs:
    """Monte Carlo dropout, in Gal & Ghahramani 2016: the mean softmax over random networks.

    Only modules of `Dropping` are random; batch norm and all else stay in evaluation mode.

    Args:
        model: is put in evaluation mode, and left there, on its device.
        batches: of `shuffle=False`; `batches(0)` is read once.
        samples: passes of each batch, >= 1; Kim et al. 2021 take 50.
        seed: of the masks, which also follow from how the rows are cut into batches. The random
            numbers outside are left as they were.

    Returns:
        Logits: log of the mean softmax, whose softmax is the mean itself; features: their mean.

    Raises:
        ValueError: samples is below 1, or nothing in the model drops anything.
    """
    dropping = [m for m in model.modules() if isinstance(m, Dropping) and m.p > 0]
    if samples < 1 or not dropping:
        raise ValueError(
            f"need samples >= 1 and modules that drop; got {samples} and {len(dropping)} modules"
        )

    def look(images: Tensor) -> Outputs:
        for module in dropping:
            module.train()
        outs = [model(images) for _ in range(samples)]
        model.eval()
        log_p = torch.stack([out.logits.double().log_softmax(dim=1) for out in outs])
        mean = log_p.logsumexp(dim=0) - math.log(samples)
        return Outputs(mean, torch.stack([out.features.float() for out in outs]).mean(dim=0))

    where = device(model)
    with torch.random.fork_rng([where] if where.type == "cuda" else []):
        torch.manual_seed(seed)
        return predict(model, batches, look=look)
