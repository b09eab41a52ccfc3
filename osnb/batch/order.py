"""In what order runs are made, and what is not made because something failed."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatch
from typing import Any

from osnb import record
from osnb.run import Plan, done, not_run, once

WAIT = 0.5  # seconds before asking again for a run that another process is making
End = Mapping[str, Any]
Spread = Callable[..., Iterator[tuple[Plan, End]]]


def ordered(plans: Iterable[Plan]) -> list[Plan]:
    """Training first, what reads its results last: there is no other order."""
    return sorted(plans, key=lambda plan: (plan.collects, not plan.trains))


def queue(plans: Iterable[Plan], *, force: bool = False) -> int:
    """Say in run.json of every run that has to be made that it is queued; how many there are."""
    count = 0
    for plan in plans:
        if force or not done(plan):
            said = {"notebook": plan.notebook, "run": plan.run, "parameters": plan.parameters}
            record.queue(plan.directory, said)
            count += 1
    return count


def carry_out(
    plans: Iterable[Plan],
    *,
    spread: Spread,
    force: bool = False,
    limit: float = 0,
) -> Iterator[tuple[Plan, End]]:
    """Make runs; what reads a training run that failed is not made, and has failed too.

    Args:
        plans: in any order.
        spread: `serially`, or what `local`, `connected` and `slurm` give.
        force: make those that are done as well.
        limit: seconds that one attempt may take; 0 for no limit.

    Yields:
        A run and how it ended: `state` is done, skipped, failed or interrupted; of a run that
        was made, the content of its run.json.
    """
    lost: dict[str, Plan] = {}
    plans = ordered(plans)
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
    why = {"name": type(error).__name__, "value": str(error), "cell": None}
    return {"state": "failed", "error": why}


def serially(
    plans: Iterable[Plan],
    *,
    force: bool,
    limit: float,
    told: Callable[[Plan, str], None] = print,
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
