"""The training loop: plain steps along a schedule, a checkpoint per epoch and every few minutes.

`fit` is all that most trainings need. A method whose training is more than a loss is a kind of
`Run`, whose `values` says what its step minimises.
"""

import errno
import math
from collections.abc import Callable, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path

import torch
from torch import nn
from torch.optim import Optimizer

from osnb.base import workbook
from osnb.base.catalogue import Catalogue
from osnb.base.outputs import Outputs
from osnb.train import checkpoint, graph, ranks
from osnb.train.forward import device, forward
from osnb.train.ranks import Line, interruptible

KEEP, STOP = 1, 2
FREE = ("patience", "every", "captured")  # settings that a resumed run may have otherwise
MAX = torch.distributed.ReduceOp.MAX


def fit(
    model: nn.Module,
    loss: Callable[[Outputs, torch.Tensor], torch.Tensor],
    batches: Callable,
    *,
    kind: Callable[..., "Run"] | None = None,
    devices: int = 1,
    **settings,
):
    """Train `model` where its parameters are and keep its last and its best epoch.

    A checkpoint in the directory is taken up only if network, loss, optimizer, schedule and
    settings are those that it was kept with; else training starts anew and says what differs.

    An epoch starts from generators seeded with (seed, epoch), its batches follow from the same
    two, and a checkpoint within an epoch holds the generators' states. So a run that was killed
    or interrupted ends with the same numbers as one that was not: bit for bit on a CPU with the
    same number of threads.

    Args:
        model: called with images (N, ...), gives `Outputs`.
        loss: gives (N,) for outputs and labels; its mean is what a step minimises.
        batches: `batches(epoch, start)` gives pairs of images (N, ...) and labels (N,), from
            the batch with number `start` on; an epoch has `len(batches)` of them.
        kind: of run, from `osnb.train.methods`, for a method that is more than a loss.
        devices: processes that share every batch, one per GPU, or on the CPU (see `ranks`).
        settings: those of `Run`, and of its kind.

    Returns:
        History, one row per epoch: epoch, learning_rate (of its last step), loss (mean over
        its samples), then what `validate` gave. The model holds the last epoch's weights.

    Raises:
        FloatingPointError: the loss is no longer finite; the last checkpoint is whole.
        MemoryError: a step needs more memory than there is.
        KeyboardInterrupt: after an interrupt, once the step is done and kept.
        ValueError: no checkpoint in `directory` is whole, there are not so many GPUs, or a method
            that is more than a loss is asked for more than one device: processes average the
            model's gradients alone.
    """
    if devices != 1 and kind not in (None, Run):
        raise ValueError(f"what is more than a loss trains on 1 device; got devices={devices}")
    if device().type == "cuda" and devices > (gpus := torch.cuda.device_count()):
        raise ValueError(f"need devices from 1 to {gpus}, the GPUs here; got devices={devices}")
    run = (kind or Run)(model=model, loss=loss, batches=batches, **settings)
    if devices == 1 or ranks.count() > 1:
        return run.train()
    run.identity["devices"] = devices
    run.resume()
    with Line(run.epochs, len(run.history), len(batches)) as line:
        ranks.launch(run.train, devices, run.directory, heard=lambda told: line.epoch(**told))
    run.resume()
    return run.frame()


@dataclass(kw_only=True)
class Run:
    """A training run and where it is, which is what a checkpoint holds.

    Attributes:
        model, loss, batches: as in `fit`.
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
        captured: whether a GPU carries out a step as one CUDA graph (`graph`), which changes no
            number either; a step that is more than a loss is carried out kernel by kernel.
        companions: networks and optimizers that train beside the model, by name, where the model
            is. A step of one is made inside `values`, before the model's gradients are zeroed.
    """

    model: nn.Module
    loss: Callable
    batches: Callable
    epochs: int
    optimizer: Optimizer
    schedule: Callable
    validate: Callable
    directory: Path
    seed: int
    precision: str = "float32"
    patience: float = math.inf
    every: float = 300.0
    captured: bool = False
    companions: dict[str, nn.Module | Optimizer] = field(default_factory=dict)

    def __post_init__(self):
        self.directory = Path(self.directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.rates = checkpoint.rates(self.optimizer)
        self.history: list[dict[str, float]] = []
        self.called = self.model  # in several processes, what averages their gradients
        self.minimised = self.minimise  # on a GPU, its graph
        self.first_weights = checkpoint.sums(self.model.state_dict())
        parts = self.model, self.loss, self.optimizer, self.schedule
        self.identity = checkpoint.identity(*parts) | {"batches of an epoch": len(self.batches)}
        names = [field.name for field in fields(self) if field.name not in FREE]
        own = {name: getattr(self, name) for name in names}
        self.identity |= {k: v for k, v in own.items() if isinstance(v, int | float | str)}
        self._begin()

    def _begin(self) -> None:
        self.where = device(self.model)
        self.step = 0  # steps of this epoch that are done
        self.loss_sum = torch.zeros((), device=self.where, dtype=torch.float64)
        self.first_bad = torch.full((), -1, device=self.where)  # step whose loss is not finite
        self.samples = 0

    def train(self):
        """Epoch after epoch, from where the newest checkpoint stands; the history, as a frame."""
        if ranks.count() > 1:
            self.model.to(device())  # each process has its own, and has just begun
            if hasattr(self.batches, "part"):  # it need not decode what the others train on
                self.batches.part = ranks.number(), ranks.count()
            workbook.seed_all(self._seed(0) % 2**32)
        self._begin()
        with self._on_gpu():
            self.resume()
            self.model.to(memory_format=torch.channels_last)
            self.called = ranks.wrapped(self.model)
            self._epochs()
        return self.frame()

    def _epochs(self) -> None:
        """Those that are left."""
        done, steps = len(self.history), len(self.batches)
        with Line(self.epochs, done, steps) as line, interruptible() as stop:
            while len(self.history) < self.epochs and not self._stale():
                self.epoch(line, stop)
                told = {"row": self.finish(), "images": line.images}
                line.epoch(told["row"])
                ranks.tell(told)
                if ranks.agreed(STOP * stop(), 0) and len(self.history) < self.epochs:
                    raise KeyboardInterrupt(f"kept after epoch {len(self.history)}")

    @contextmanager
    def _on_gpu(self):
        """Meanwhile a step that is a loss alone is few launches on a GPU, or one."""
        plain = self.where.type == "cuda" and type(self).values is Run.values
        whole = plain and self.captured and ranks.count() == 1
        self.minimised = graph.Graph(self.minimise) if whole else self.minimise
        rates = graph.fused(self.optimizer, captured=whole) if plain else nullcontext()
        with rates, graph.alone() if whole else nullcontext():
            yield
        self.minimised = self.minimise

    def _stale(self) -> bool:
        best = _best(self.history)
        return best > 0 and len(self.history) - best >= self.patience

    def parts(self) -> dict[str, nn.Module | Optimizer]:
        """What has a state to keep, by its name in the checkpoint."""
        return {"model": self.model, "optimizer": self.optimizer, **self.companions}

    def changed(self, state: dict) -> list[str]:
        """What of this training differs from the one that kept a checkpoint.

        The network may stand where that one began, or where it has come to, as it does when a
        cell is run again.
        """
        own, was = ({"devices": 1} | x for x in (self.identity, state.get("identity", {})))
        names = [name for name, told in own.items() if told != was.get(name)]
        starts = (state.get("first_weights", torch.empty(0)), checkpoint.sums(state["model"]))
        fits = any(checkpoint.alike(self.first_weights, start) for start in starts)
        return names if fits else [*names, "weights at the start"]

    def resume(self) -> None:
        """Take up the newest checkpoint, if there is one and it is of this training."""
        state = checkpoint.newest(self.directory)
        if state and (changed := self.changed(state)):
            told = f"training starts anew, with {', '.join(changed)} not as in the checkpoint in"
            print(told, self.directory)
            checkpoint.remove(self.directory)
            state = None
        if not state:
            (self.directory / "history.parquet").unlink(missing_ok=True)  # of another training
            return
        for name, part in self.parts().items():
            placed = isinstance(part, Optimizer)
            part.load_state_dict(checkpoint.placed(state[name], part) if placed else state[name])
        self.history, self.step, self.samples = (state[k] for k in ("history", "step", "samples"))
        if ranks.number() == 0:  # sums over all processes; the others start from 0
            self.loss_sum = state["loss_sum"].to(self.where)
        self.first_bad = state["first_bad"].to(self.where)
        checkpoint.set_random_states(state["random"][ranks.number()])
        self.frame()  # a run killed between checkpoint and file lacks its last row

    def epoch(self, line: Line, stop: Callable[[], bool]) -> None:
        """The steps of this epoch that are not done yet."""
        number, kept = len(self.history) + 1, line.clock()
        if not self.step:
            torch.manual_seed(self._seed(number))
        self.model.train()
        for images, labels in self.batches(number, self.step):
            with self._explained(number, len(labels)):
                self.train_on(images, labels, number)
            line.step(len(labels))
            wish = STOP if stop() else KEEP * (line.clock() - kept > self.every)
            if wish := ranks.agreed(wish, self.step):
                self.refuse_infinite(number)
                self.keep()
                kept = line.clock()
                if wish == STOP:
                    raise KeyboardInterrupt(f"kept after step {self.step} of epoch {number}")
        self.refuse_infinite(number)

    def refuse_infinite(self, number: int) -> None:
        """End where the loss of a step was not finite, before its weights are kept.

        Raises:
            FloatingPointError: it was not.
        """
        step = int(ranks.reduced(self.first_bad, MAX))
        if step >= 0:
            kept = f"; epoch {number - 1} is kept in {self.directory}" if number > 1 else ""
            raise FloatingPointError(
                f"the loss is not finite at step {step + 1} of epoch {number}: lower the learning "
                f"rate ({self.optimizer.param_groups[0]['lr']:g}){kept}"
            )

    def _seed(self, epoch: int) -> int:
        """Of an epoch in this process; epoch 0 is what comes before all of them."""
        return int(workbook.digest(f"{self.seed} {epoch} {ranks.number()}")[:15], 16)

    def train_on(self, images: torch.Tensor, labels: torch.Tensor, number: int) -> None:
        """One step; nothing in it waits for the device."""
        factor = self.schedule((number - 1 + self.step / len(self.batches)) / self.epochs)
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(rate * factor)
            else:
                group["lr"] = rate * factor
        whole = len(labels)
        images, labels, times = ranks.share(images, labels)
        labels = labels.to(self.where, non_blocking=True)
        values = self.minimised(images, labels, times / whole)
        total = values.sum() * (times / ranks.count())
        bad = ~total.isfinite() & (self.first_bad < 0)
        self.first_bad = torch.where(bad, self.step, self.first_bad)
        self.loss_sum += total
        self.samples, self.step = self.samples + whole, self.step + 1

    def minimise(self, images: torch.Tensor, labels: torch.Tensor, share: float) -> torch.Tensor:
        """A step down the sum of `values` times `share`; the values (N,)."""
        values = self.values(images, labels)
        self.optimizer.zero_grad()
        (values.sum() * share).backward()
        self.optimizer.step()
        return values.detach()

    def values(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """(N,) whose mean this step minimises; a method with a step of its own says another."""
        return self.loss(forward(self.called, images, self.where, self.precision), labels)

    def step_of(self, error: torch.Tensor, *names: str) -> None:
        """One step of the named companions down the error, each by its NAME_optimizer."""
        optimizers = [self.companions[f"{name}_optimizer"] for name in names]
        for optimizer in optimizers:
            optimizer.zero_grad()
        error.backward()
        for optimizer in optimizers:
            optimizer.step()

    def finish(self) -> dict[str, float]:
        """Close the epoch: its row of the history, the best weights, checkpoint and files."""
        row = {
            "epoch": len(self.history) + 1,
            "learning_rate": float(self.optimizer.param_groups[0]["lr"]),
            "loss": ranks.reduced(self.loss_sum).item() / self.samples,
        }
        if ranks.number() == 0:
            row |= {key: float(value) for key, value in self.validate(self.model).items()}
        self.history.append(ranks.gathered(row)[0])
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
        loss_sum, first_bad = ranks.reduced(self.loss_sum), ranks.reduced(self.first_bad, MAX)
        if ranks.number():
            return
        state = {name: part.state_dict() for name, part in self.parts().items()}
        state |= {"history": self.history, "step": self.step, "samples": self.samples}
        state |= {"loss_sum": loss_sum, "first_bad": first_bad, "random": states}
        state |= {"identity": self.identity, "first_weights": self.first_weights}
        try:
            checkpoint.keep(state, self.directory)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise OSError(
                errno.ENOSPC,
                f"the disk was full after step {self.step or len(self.batches)} of epoch "
                f"{len(self.history) + bool(self.step)}: the checkpoint before it is whole; free "
                "some space and start again",
                str(self.directory),
            ) from error

    def frame(self):
        """The history so far as a frame, written to history.parquet."""
        import pandas as pd

        history = pd.DataFrame(self.history)
        if ranks.number() == 0:
            with workbook.writing(self.directory / "history.parquet") as aside:
                history.to_parquet(aside, index=False)
        return history

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


# Schedules: f(done) -> factor on the learning rate, done being the share of steps done.


def constant(_: float) -> float:
    """The learning rate as given, all the way."""
    return 1.0


def cosine(done: float) -> float:
    """Half a cosine from 1 to 0 over the run."""
    return (1 + math.cos(math.pi * done)) / 2


def triangle(done: float) -> float:
    """Up from 0.1 to 1 over the first fifth of the run, then in a straight line towards 0."""
    return 0.1 + 4.5 * done if done < 0.2 else (1 - done) / 0.8


def step(done: float, *, edges: Sequence[float] = (0.3, 0.6, 0.9)) -> float:
    """Ten times less from each edge of the run on; as given, Chen et al. 2021, by their code.

    Kim et al. 2021 release two edges: .6 and .8 for CIFAR, epochs 120 and 160 of 200, and a third
    and two thirds for ImageNet, epochs 30 and 60 of 90. Their scheduler steps once per epoch;
    where the edges fall between epochs, as in 200 and 90 of them, it is the same.
    """
    return 0.1 ** sum(done >= edge for edge in edges)


def restarts(done: float) -> float:
    """`cosine` three times: Table 5 of Vaze et al. 2022, rows with two restarts, no warm-up."""
    return cosine(3 * done % 1)


def warm_restarts(done: float) -> float:
    """`restarts` with the warm-up that Vaze et al. 2022 describe (Sec. D.2).

    From 0 in a straight line to 1 in 20 of 600 epochs, then half a cosine to epoch 200. The
    very first step is at 0.
    """
    warm = 20 / 600
    if done < 1 / 3:
        return done / warm if done < warm else cosine((done - warm) / (1 / 3 - warm))
    return restarts(done)


def warm_restarts_released(done: float) -> float:
    """`warm_restarts` as the code of Vaze et al. 2022 ran it.

    Constant through each 600th of the run, and late by one of them: the scheduler steps after
    the epoch. A floor of 1/1000; 10 epochs of warm-up in a straight line from there to the
    cosine's value, .994; the restarts at epochs 201 and 401, counted from 0.
    """
    epoch = math.floor(600 * done + 1e-6)  # 600 (3 / 600) may lie just below 3
    late = max(epoch, 10 + 1) - 1
    value = 0.001 + 0.999 * cosine(late % 200 / 200)
    return 0.001 + (value - 0.001) * min(epoch, 10) / 10


SCHEDULES = Catalogue(
    constant=constant,
    cosine=cosine,
    triangle=triangle,
    step=step,
    steps_33_67=partial(step, edges=(1 / 3, 2 / 3)),
    steps_60_80=partial(step, edges=(0.6, 0.8)),
    restarts=restarts,
    warm_restarts=warm_restarts,
    warm_restarts_released=warm_restarts_released,
)
