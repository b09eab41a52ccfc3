"""The training loop: plain steps, a checkpoint per epoch and every few minutes."""

import errno
import math
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import nn
from torch.optim import Optimizer

from osnb import repro
from osnb.outputs import Outputs
from osnb.train import checkpoint, ranks
from osnb.train.forward import device, forward
from osnb.train.progress import Line, interruptible

KEEP, STOP = 1, 2


def fit(
    model: nn.Module,
    loss: Callable[[Outputs, torch.Tensor], torch.Tensor],
    batches: Callable,
    *,
    epochs: int,
    optimizer: Optimizer,
    schedule: Callable[[float], float],
    validate: Callable[[nn.Module], dict[str, float]],
    directory: Path,
    seed: int,
    precision: str = "float32",
    patience: float = math.inf,
    every: float = 300.0,
    devices: int = 1,
):
    """Train `model` where its parameters are and keep its last and its best epoch.

    An epoch starts from generators seeded with (seed, epoch), its batches follow from the same
    two, and a checkpoint within an epoch holds the generators' states. So a run that was killed
    or interrupted ends with the same numbers as one that was not: bit for bit on a CPU with the
    same number of threads.

    Args:
        model: called with images (N, ...), gives `Outputs`.
        loss: gives (N,) for outputs and labels; its mean is what a step minimises.
        batches: `batches(epoch, start)` gives pairs of images (N, ...) and labels (N,), from
            the batch with number `start` on; an epoch has `len(batches)` of them.
        epochs: to train for, counted from 1.
        optimizer: of the model's parameters; its learning rate is the schedule's factor 1.
        schedule: factor on the learning rate for the share of steps done, in [0, 1).
        validate: called after every epoch; `best`, if given, picks the best epoch (strictly
            larger wins).
        directory: for checkpoint.pt, previous.pt, best.pt and history.parquet.
        seed: of the random numbers inside the network (dropout).
        precision: "float32", or "bfloat16": the trunk in autocast, head and loss in float32,
            which needs no loss scaling.
        patience: stop after so many epochs without a better `best`.
        every: seconds between checkpoints within an epoch; when they fall changes no number.
        devices: processes that share every batch, one per GPU, or on the CPU (see `ranks`).

    Returns:
        History, one row per epoch: epoch, learning_rate (of its last step), loss (mean over
        its samples), then what `validate` gave. The model holds the last epoch's weights.

    Raises:
        FloatingPointError: the loss is no longer finite; the last checkpoint is whole.
        MemoryError: a step needs more memory than there is.
        KeyboardInterrupt: after an interrupt, once the step is done and kept.
        ValueError: no checkpoint in `directory` is whole.
    """
    run = Run(model, loss, batches, optimizer, schedule, Path(directory), precision, epochs, every)
    if devices == 1 or ranks.count() > 1:
        run.train(seed, validate, patience)
        return run.frame()
    run.resume()
    with Line(epochs, len(run.history), len(batches)) as line:
        job = partial(run.train, seed, validate, patience)
        ranks.launch(job, devices, run.directory, heard=lambda told: line.epoch(**told))
    run.resume()
    return run.frame()


@dataclass
class Run:
    """A training run and where it is, which is what a checkpoint holds."""

    model: nn.Module
    loss: Callable
    batches: Callable
    optimizer: Optimizer
    schedule: Callable
    directory: Path
    precision: str
    epochs: int
    every: float

    def __post_init__(self):
        self.rates = [group["lr"] for group in self.optimizer.param_groups]
        self.history: list[dict[str, float]] = []
        self.called = self.model  # in several processes, what averages their gradients
        self._begin()

    def _begin(self) -> None:
        self.where = next(self.model.parameters()).device
        self.step = 0  # steps of this epoch that are done
        self.loss_sum = torch.zeros((), device=self.where, dtype=torch.float64)
        self.first_bad = torch.full((), -1, device=self.where)  # step whose loss is not finite
        self.samples = 0

    def train(self, seed: int, validate: Callable, patience: float) -> None:
        """Epoch after epoch, from where the newest checkpoint stands."""
        if ranks.count() > 1:
            self.model.to(device())  # each process has its own
        self._begin()
        self.resume()
        self.model.to(memory_format=torch.channels_last)
        self.called = ranks.wrapped(self.model)
        done, steps = len(self.history), len(self.batches)
        with Line(self.epochs, done, steps) as line, interruptible() as stop:
            while len(self.history) < self.epochs and not _stale(self.history, patience):
                self.epoch(seed, line, stop)
                told = {"row": self.finish(validate), "images": line.images}
                line.epoch(told["row"])
                ranks.tell(told)
                if ranks.agreed(STOP * stop(), 0) and len(self.history) < self.epochs:
                    raise KeyboardInterrupt(f"kept after epoch {len(self.history)}")

    def parts(self) -> dict[str, nn.Module | Optimizer]:
        """What has a state to keep, by its name in the checkpoint."""
        return {"model": self.model, "optimizer": self.optimizer}

    def resume(self) -> None:
        """Take up the newest checkpoint, if there is one."""
        state = checkpoint.newest(self.directory)
        if not state:
            return
        for name, part in self.parts().items():
            part.load_state_dict(state[name])
        self.history, self.step, self.samples = (state[k] for k in ("history", "step", "samples"))
        if ranks.number() == 0:  # sums over all processes; the others start from 0
            self.loss_sum = state["loss_sum"].to(self.where)
        self.first_bad = state["first_bad"].to(self.where)
        checkpoint.set_random_states(state["random"][ranks.number()])
        self.frame()  # a run killed between checkpoint and file lacks its last row

    def epoch(self, seed: int, line: Line, stop: Callable[[], bool]) -> None:
        """The steps of this epoch that are not done yet."""
        number, kept = len(self.history) + 1, line.clock()
        if not self.step:
            torch.manual_seed(int(repro.digest(f"{seed} {number} {ranks.number()}")[:15], 16))
        self.model.train()
        for images, labels in self.batches(number, self.step):
            with self._explained(number, len(labels)):
                self.train_on(images, labels, number)
            line.step(len(labels))
            wish = STOP if stop() else KEEP * (line.clock() - kept > self.every)
            if wish := ranks.agreed(wish, self.step):
                self.keep()
                kept = line.clock()
                if wish == STOP:
                    raise KeyboardInterrupt(f"kept after step {self.step} of epoch {number}")
        self._finite(number)

    def train_on(self, images: torch.Tensor, labels: torch.Tensor, number: int) -> None:
        """One step; nothing in it waits for the device."""
        factor = self.schedule((number - 1 + self.step / len(self.batches)) / self.epochs)
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * factor
        whole = len(labels)
        images, labels, times = ranks.share(images, labels)
        labels = labels.to(self.where, non_blocking=True)
        values = self.values(images, labels)
        self.optimizer.zero_grad()
        (values.sum() * (times / whole)).backward()
        self.optimizer.step()
        total = values.detach().sum() * (times / ranks.count())
        bad = ~total.isfinite() & (self.first_bad < 0)
        self.first_bad = torch.where(bad, self.step, self.first_bad)
        self.loss_sum += total
        self.samples, self.step = self.samples + whole, self.step + 1

    def values(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """(N,) whose mean this step minimises; a method with a step of its own says another."""
        return self.loss(forward(self.called, images, self.where, self.precision), labels)

    def finish(self, validate: Callable[[nn.Module], dict[str, float]]) -> dict[str, float]:
        """Close the epoch: its row of the history, the best weights, checkpoint and files."""
        row = {
            "epoch": len(self.history) + 1,
            "learning_rate": self.optimizer.param_groups[0]["lr"],
            "loss": ranks.total(self.loss_sum).item() / self.samples,
        }
        found = ranks.from_first(lambda: validate(self.model))
        self.history.append(row | {key: float(value) for key, value in found.items()})
        self._begin()
        if ranks.number() == 0 and _best(self.history) == len(self.history):
            # first, so that a run killed in between repeats this epoch and writes it again
            state = {"model": self.model.state_dict(), "epoch": len(self.history)}
            checkpoint.save(state, self.directory / checkpoint.BEST)
        self.keep()
        self.frame()
        return self.history[-1]

    def keep(self) -> None:
        """Write the checkpoint: one process does, with what all of them know."""
        states = ranks.gathered(checkpoint.random_states())
        loss_sum, first_bad = ranks.total(self.loss_sum), ranks.largest(self.first_bad)
        if ranks.number():
            return
        state = {name: part.state_dict() for name, part in self.parts().items()}
        state |= {"history": self.history, "step": self.step, "samples": self.samples}
        state |= {"loss_sum": loss_sum, "first_bad": first_bad, "random": states}
        try:
            checkpoint.keep(state, self.directory)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise OSError(
                errno.ENOSPC,
                f"the disk was full after step {self.step} of epoch {len(self.history) + 1}: the "
                "checkpoint before it is whole; free some space and start again",
                str(self.directory),
            ) from error

    def frame(self):
        """The history so far as a frame, written to history.parquet."""
        import pandas as pd

        history = pd.DataFrame(self.history)
        if ranks.number() == 0:
            with repro.writing(self.directory / "history.parquet") as aside:
                history.to_parquet(aside, index=False)
        return history

    def _finite(self, number: int) -> None:
        step = int(ranks.largest(self.first_bad))
        if step >= 0:
            raise FloatingPointError(
                f"the loss is not finite at step {step + 1} of epoch {number}: lower the learning "
                f"rate ({self.optimizer.param_groups[0]['lr']:g}); epoch {number - 1} is kept in "
                f"{self.directory}"
            )

    @contextmanager
    def _explained(self, number: int, images: int):
        """Say where and what to do if the memory does not suffice."""
        try:
            yield
        except (MemoryError, torch.OutOfMemoryError, RuntimeError) as error:
            if type(error) is RuntimeError and "allocate memory" not in str(error):
                raise
            raise MemoryError(
                f"out of memory at step {self.step + 1} of epoch {number} with {images} images a "
                f"batch: lower batch_size, or set precision to bfloat16; what was kept in "
                f"{self.directory} is whole"
            ) from error


def _best(history: list[dict]) -> int:
    """The epoch with the largest `best`, the first one on ties; 0 if there is none."""
    values = [row.get("best", -math.inf) for row in history]
    largest = max(values, default=-math.inf)
    return values.index(largest) + 1 if largest > -math.inf else 0


def _stale(history: list[dict], patience: float) -> bool:
    return len(history) - _best(history) >= patience and _best(history) > 0
