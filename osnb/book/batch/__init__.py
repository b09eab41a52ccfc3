"""Many runs: training before what reads it, each made once, here or spread over workers."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

from osnb.book import record
from osnb.book.run import Plan, Refused, done, not_run, once

WAIT = 0.5  # seconds before asking again for a run that another process is making
End = Mapping[str, Any]
Spread = Callable[..., Iterator[tuple[Plan, End]]]


def ordered(plans: Iterable[Plan]) -> list[Plan]:
    """Training first, what reads its results last: there is no other order."""
    return sorted(plans, key=lambda plan: (plan.collects, not plan.trains))


def carry_out(
    plans: Iterable[Plan], *, spread: Spread, force: bool = False, limit: float = 0
) -> Iterator[tuple[Plan, End]]:
    """Make runs; what reads a training run that failed is not made, and has failed too.

    First run.json of every run that has to be made says that it is queued.

    Args:
        plans: in any order.
        spread: what `engine` gives.
        force: make those that are done as well.
        limit: seconds that one attempt may take; 0 for no limit.

    Yields:
        A run and how it ended: `state` is done, skipped, failed or interrupted; of a run that
        was made, the content of its run.json.
    """
    lost: dict[str, Plan] = {}
    plans = ordered(plans)
    for plan in (plan for plan in plans if force or not done(plan)):
        known = {"notebook": plan.notebook, "run": plan.run, "parameters": plan.parameters}
        record.queue(plan.directory, known)
    for reads in (False, True):
        ready = []
        for plan in (plan for plan in plans if plan.collects == reads):
            culprits = [each for each in lost.values() if fnmatch(each.notebook, plan.reads)]
            if reads and culprits:
                yield plan, not_run(plan, f"it reads {culprits[0]}, which failed")
            else:
                ready.append(plan)
        for plan, end in spread(ready, force=force, limit=limit):
            if plan.trains and end["state"] not in ("done", "skipped"):
                lost.setdefault(plan.notebook, plan)
            yield plan, end


def made(plan: Plan, **how) -> End | None:
    """As `once`, and a disk that is full or gone fails the run and not the batch."""
    try:
        return once(plan, **how)
    except OSError as error:
        return failed(error)


def failed(error: BaseException) -> End:
    """The end of a run that an error has kept from being made."""
    why = {"name": type(error).__name__, "value": str(error), "cell": None}
    return {"state": "failed", "error": why}


def serially(
    plans: Iterable[Plan], *, force: bool, limit: float, told: Callable[[Plan, str], None]
) -> Iterator[tuple[Plan, End]]:
    """Make runs one after another; those that another process is making are left for later.

    Args:
        plans: in their order.
        force: as in `once`.
        limit: as in `once`.
        told: called with "begins" before an attempt and "busy" if another process is at it.
    """
    waiting, busy = deque(plans), 0
    while waiting:
        told(plan := waiting.popleft(), "begins")
        end = made(plan, force=force, limit=limit)
        if end is not None:
            busy = 0
            yield plan, end
            continue
        told(plan, "busy")
        waiting.append(plan)
        busy += 1
        if busy >= len(waiting):
            time.sleep(WAIT)


def engine(
    plans: Iterable[Plan],
    *,
    workers: int = 0,
    scheduler: str = "",
    tls: Path | None = None,
    slurm: Path | None = None,
    told: Callable = print,
):
    """A context that gives what makes runs: here one after another, or spread over workers.

    Args:
        plans: what is to be made.
        workers: processes here; if 0 as many as there are GPUs, else this process.
        scheduler: address of a dask scheduler.
        tls: folder with ca.pem, cert.pem and key.pem.
        slurm: yaml file for jobs of Slurm.
        told: as in `serially`.

    Raises:
        Refused: more than one way is asked for, a setting is wrong, or a run among those that are
            to be spread uses several devices by itself.
    """
    from osnb.book.batch import engines  # which imports this module

    asked = {"--workers": workers, "--scheduler": scheduler, "--slurm": slurm}
    given = [name for name, value in asked.items() if value]
    if len(given) > 1:
        raise Refused(f"runs are spread in one way; got {' and '.join(given)}")
    if tls and not (scheduler or slurm):
        raise Refused("--tls goes with --scheduler or --slurm")
    if slurm and not tls:
        raise Refused("--slurm needs --tls FOLDER, which the jobs must see too")
    wide = [plan for plan in plans if plan.parameters.get("devices", 1) > 1]
    if given and wide:
        raise Refused(f"{wide[0]} uses several devices by itself: run it without --workers")
    if slurm:
        return engines.slurm(engines.options(slurm, tls), tls)
    if scheduler:
        return engines.connected(scheduler, tls)
    workers = workers or len(record.gpus())
    return engines.local(workers) if workers > 1 else nullcontext(partial(serially, told=told))
