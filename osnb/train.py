"""The training loop and prediction: a run that is killed continues where its last epoch ended."""

import copy
import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn

from osnb import repro
from osnb.catalogue import Catalogue
from osnb.outputs import Outputs


def device() -> torch.device:
    """The GPU if there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def fit(
    model: nn.Module,
    loss: Callable[[Outputs, torch.Tensor], torch.Tensor],
    batches: Callable,
    *,
    epochs: int,
    optimizer: torch.optim.Optimizer,
    schedule: Callable[[float], float],
    validate: Callable[[nn.Module], dict[str, float]],
    directory: Path,
    seed: int,
    precision: str = "float32",
    patience: float = math.inf,
):
    """Train `model` where its parameters are and keep its last and its best epoch.

    Every epoch draws from a generator seeded with (seed, epoch), and its batches follow from
    the same two, so a run that continues from a checkpoint ends with the same numbers as one
    that was never interrupted.

    Args:
        model: called with images (N, ...), gives `Outputs`.
        loss: gives (N,) for outputs and labels; its mean is what a step minimises.
        batches: `batches(epoch)` gives pairs of images (N, ...) and labels (N,), `len(batches)`
            of them.
        epochs: to train for, counted from 1.
        optimizer: of the model's parameters; its learning rate is the schedule's factor 1.
        schedule: factor on the learning rate for the share of steps done, in [0, 1).
        validate: called after every epoch; `best`, if given, picks the best epoch (strictly
            larger wins).
        directory: for checkpoint.pt, best.pt and history.parquet.
        seed: of the random numbers inside the network (dropout).
        precision: "float32", or "bfloat16": autocast with the channels last in memory, which
            is about three times as fast on a CPU that has the instructions.
        patience: stop after so many epochs without a better `best`.

    Returns:
        History, one row per epoch: epoch, learning_rate (of its last step), loss (mean over
        its samples), then what `validate` gave. The model holds the last epoch's weights.

    Raises:
        FloatingPointError: the loss is no longer finite; the last checkpoint is whole.
        ValueError: the checkpoint in `directory` cannot be read.
    """
    rates = [group["lr"] for group in optimizer.param_groups]
    rows = _resumed(model, optimizer, directory)
    model.to(memory_format=PRECISIONS[precision])
    line = _Line(total=epochs, done=len(rows))
    while len(rows) < epochs and not _stale(rows, patience):
        epoch = len(rows) + 1
        torch.manual_seed(int(repro.digest(f"{seed} {epoch}")[:15], 16))
        paced = _paced(batches(epoch), len(batches), optimizer, rates, schedule, epoch, epochs)
        mean = _epoch(model, loss, paced, optimizer, precision)
        if not math.isfinite(mean):
            raise FloatingPointError(
                f"the loss of epoch {epoch} is {mean}: lower the learning rate "
                f"({optimizer.param_groups[0]['lr']:g}); epoch {epoch - 1} is kept in {directory}"
            )
        row = {"epoch": epoch, "learning_rate": optimizer.param_groups[0]["lr"], "loss": mean}
        rows.append(row | {key: float(value) for key, value in validate(model).items()})
        _keep(model, optimizer, rows, directory)
        line.step(rows[-1])
    line.close()
    return _history(rows, directory)


def _resumed(model, optimizer, directory) -> list[dict]:
    """The history of the checkpoint, if there is one, loaded into model and optimizer."""
    state = _read(directory / "checkpoint.pt")
    if not state:
        return []
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["history"]


def _paced(batches, count, optimizer, rates, schedule, epoch, epochs):
    """The batches; before each, the learning rates are set to the schedule's."""
    for step, batch in enumerate(batches):
        factor = schedule((epoch - 1 + step / count) / epochs)
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * factor
        yield batch


def _epoch(model, loss, batches, optimizer, precision) -> float:
    """One pass; the mean loss of its samples, each at the moment it was trained on."""
    model.train()
    where = next(model.parameters()).device
    total, count = torch.zeros((), device=where, dtype=torch.float64), 0
    for images, labels in batches:
        labels = labels.to(where, non_blocking=True)
        out = _forward(model, images, where, precision)
        values = loss(Outputs(*(_float(part) for part in out)), labels)
        optimizer.zero_grad()
        values.mean().backward()
        optimizer.step()
        total += values.detach().sum()
        count += len(labels)
    return total.item() / count


@torch.inference_mode()
def predict(model: nn.Module, batches: Callable, *, precision: str = "float32") -> Outputs:
    """What the network says, in the order of the rows that the batches were made of.

    Args:
        model: is put in evaluation mode and stays on its device.
        batches: of `shuffle=False`; `batches(0)` is read once.
        precision: "float32" or "bfloat16" (autocast).

    Returns:
        `Outputs` of float32 arrays: logits (N, C), features (N, D).
    """
    model.eval()
    where = next(model.parameters()).device
    parts = []
    for images, _ in batches(0):
        out = _forward(model, images, where, precision)
        parts.append([part.float().cpu().numpy() for part in (out.logits, out.features)])
    return Outputs(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _forward(model, images, where, precision) -> Outputs:
    layout = PRECISIONS[precision] if images.ndim == 4 else torch.preserve_format
    images = images.to(where, non_blocking=True, memory_format=layout)
    with torch.autocast(where.type, torch.bfloat16, enabled=precision == "bfloat16"):
        return model(images)


def best(model: nn.Module, directory: Path) -> nn.Module:
    """A copy of `model` with the weights of the best epoch that `fit` kept in `directory`."""
    state = _read(directory / "best.pt")
    if not state:
        raise FileNotFoundError(f"no best.pt in {directory}: `validate` gave no entry 'best'")
    chosen = copy.deepcopy(model)
    chosen.load_state_dict(state["model"])
    return chosen


def constant(_: float) -> float:
    """The learning rate as given, all the way."""
    return 1.0


def cosine(done: float) -> float:
    """Half a cosine from 1 to 0 over the run."""
    return (1 + math.cos(math.pi * done)) / 2


def triangle(done: float) -> float:
    """Up from 0.1 to 1 over the first fifth of the run, then in a straight line towards 0."""
    return 0.1 + 4.5 * done if done < 0.2 else (1 - done) / 0.8


def _float(part):
    return part.float() if isinstance(part, torch.Tensor) else part


def _best(rows: list[dict]) -> int:
    """The epoch with the largest `best`, the first one on ties; 0 if there is none."""
    values = [row.get("best", -math.inf) for row in rows]
    largest = max(values, default=-math.inf)
    return values.index(largest) + 1 if largest > -math.inf else 0


def _stale(rows: list[dict], patience: float) -> bool:
    return len(rows) - _best(rows) >= patience and _best(rows) > 0


def _keep(model, optimizer, rows, directory) -> None:
    """The best epoch first: killed in between, the run repeats this epoch and writes it again."""
    if _best(rows) == len(rows):
        _write({"model": model.state_dict(), "epoch": len(rows)}, directory / "best.pt")
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "history": rows}
    _write(state, directory / "checkpoint.pt")
    _history(rows, directory)


def _history(rows: list[dict], directory: Path):
    import pandas as pd

    history = pd.DataFrame(rows)
    with repro.writing(directory / "history.parquet") as aside:
        history.to_parquet(aside, index=False)
    return history


def _write(state: dict, path: Path) -> None:
    with repro.writing(path) as aside:
        torch.save(state, aside)


def _read(path: Path) -> dict | None:
    """The checkpoint, on the CPU; None where there is none."""
    if not path.is_file():
        return None
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise ValueError(
            f"{path} cannot be read as a checkpoint ({type(error).__name__}: truncated or not "
            "ours); remove it to train from the first epoch"
        ) from error


class _Line:
    """One line of progress: rewritten in a terminal and in a notebook, printed once in a log."""

    def __init__(self, *, total: int, done: int):
        from tqdm import tqdm

        self.kernel = "ipykernel" in sys.modules and _in_kernel()
        quiet = not self.kernel and not sys.stdout.isatty()
        file = _Display() if self.kernel else sys.stdout
        self.bar = tqdm(total=total, initial=done, unit="epoch", file=file, disable=quiet, ncols=96)

    def step(self, row: dict) -> None:
        shown = {key: f"{row[key]:.3f}" for key in ("loss", "best") if key in row}
        self.bar.set_postfix(shown, refresh=False)
        self.bar.update()

    def close(self) -> None:
        self.bar.close()


class _Display:
    """A file whose lines replace each other in one output of a notebook cell."""

    def __init__(self):
        from IPython.display import display

        self.handle = display({"text/plain": ""}, raw=True, display_id=True)

    def write(self, text: str) -> None:
        if text.strip():
            self.handle.update({"text/plain": text.strip("\r\n")}, raw=True)

    def flush(self) -> None:
        """Nothing is held back."""


def _in_kernel() -> bool:
    from IPython import get_ipython

    return hasattr(get_ipython(), "kernel")


PRECISIONS = Catalogue(float32=torch.preserve_format, bfloat16=torch.channels_last)
SCHEDULES = Catalogue(constant=constant, cosine=cosine, triangle=triangle)
