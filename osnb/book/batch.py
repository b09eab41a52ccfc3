"""Many runs: training before what reads it, each made once, here or spread over workers.

Workers are those of dask.distributed: here, or of a scheduler that somebody started. The scheduler
hands a run to a worker, and to another one if that is lost. On the wire a run is a few strings:
workers read code and data from their own disk and write to a folder that all see.
"""

import logging
import os
import platform
import shutil
import signal
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import asdict
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from osnb.base import workbook
from osnb.book import record
from osnb.book.record import failed
from osnb.book.run import Plan, Refused, done, interrupt, not_run, once

WAIT = 0.5  # seconds before asking again for a run that another process is making
TLS = ("ca.pem", "cert.pem", "key.pem")
HANG_UP = [signal.SIGHUP] if hasattr(signal, "SIGHUP") else []  # Windows has none
NO_PAGE = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}  # dask's web page
HELD = "held"  # state of a run that another process is making
TOLD = ("state", "seconds", "error", "unpublished", "host")  # of run.json, to who asked for it
_stopped: set[int] = set()  # batches that this worker was told to end
End = Mapping[str, Any]
Ends = Iterator[tuple[Plan, End]]
Spread = Callable[..., Ends]


def ordered(plans: Iterable[Plan]) -> list[Plan]:
    """Training first, what reads its results last: there is no other order."""
    return sorted(plans, key=lambda plan: (plan.collects, not plan.trains))


def carry_out(
    plans: Iterable[Plan], *, spread: Spread, force: bool = False, limit: float = 0
) -> Ends:
    """Make runs, but none that reads a training of its size that failed: it has failed too.

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
    lost: list[Plan] = []
    plans = ordered(plans)
    for plan in (plan for plan in plans if force or not done(plan)):
        with suppress(OSError):  # it fails when it is made, and it alone
            record.queue(plan.directory, plan.known)
    for reads in (False, True):
        ready = []
        for plan in (plan for plan in plans if plan.collects == reads):
            culprits = [x for x in lost if x.size == plan.size and fnmatch(x.notebook, plan.reads)]
            if culprits:
                yield plan, not_run(plan, f"it reads {culprits[0]}, which failed")
            else:
                ready.append(plan)
        for plan, end in spread(ready, force=force, limit=limit):
            if plan.trains and end["state"] not in ("done", "skipped"):
                lost.append(plan)
            yield plan, end


def made(plan: Plan, **how: Any) -> End | None:
    """As `once`, and a full disk or a damaged file fails the run and not the batch."""
    try:
        return once(plan, **how)
    except (OSError, ValueError) as error:
        return failed(error)


def engine(
    plans: Iterable[Plan],
    *,
    workers: int = 0,
    scheduler: str = "",
    tls: Path | None = None,
    told: Callable = print,
) -> AbstractContextManager[Spread]:
    """A context that gives what makes runs: here one after another, or spread over workers.

    Args:
        plans: what is to be made.
        workers: processes here; if 0 as many as there are GPUs, else this process.
        scheduler: address of a dask scheduler.
        tls: folder with ca.pem, cert.pem and key.pem.
        told: as in `serially`.

    Raises:
        Refused: more than one way is asked for, a setting is wrong, or a run among those that are
            to be spread uses several devices by itself.
    """
    wide = [plan for plan in plans if plan.parameters.get("devices", 1) > 1]
    if workers and scheduler:
        raise Refused("runs are spread in one way; got --workers and --scheduler")
    if tls and not scheduler:
        raise Refused("--tls goes with --scheduler")
    if wide and (workers or scheduler):
        raise Refused(f"{wide[0]} uses several devices by itself: run it without --workers")
    if scheduler:
        return connected(scheduler, tls, encrypted(scheduler, tls))
    workers = workers or (1 if wide else len(visible()))
    return local(workers) if workers > 1 else nullcontext(partial(serially, told=told))


def serially(plans: Iterable[Plan], *, force: bool, limit: float, told: Callable) -> Ends:
    """Make runs one after another; those that another process is making are left for later.

    Args:
        plans: in their order.
        force: as in `once`.
        limit: as in `once`.
        told: called with a run as it begins; once more, with a line, if another process is at it.
    """
    waiting, busy, waits = deque(plans), 0, set()
    while waiting:
        plan = waiting.popleft()
        if str(plan) not in waits:
            told(plan)
        if end := made(plan, force=force, limit=limit):
            busy = 0
            yield plan, end
            continue
        if str(plan) not in waits:
            waits.add(str(plan))
            run = record.read(plan.directory) or {}
            who = f"process {run.get('pid')} on {run.get('host')}"
            told(plan, f"waits: {who} is making it since {run.get('started', 'just now')}")
        waiting.append(plan)
        busy += 1
        if busy >= len(waiting):
            time.sleep(WAIT)


# What a worker does


def work(plan: Mapping[str, Any], code: str, out: str, batch: int, **how: Any) -> End:
    """Make a run in a worker, if that has the same code and writes to the same folder.

    One that another process is making is given back after a while, so that others come first.

    Args:
        plan: fields of a `Plan`.
        code: its `code()` where the batch was started.
        out: its `workbook.out()` there.
        batch: a number of its own.
        how: as in `once`.
    """
    mine, me = Plan(**plan), f"the worker on {record.owner()['host']}"
    if str(workbook.out()) != out:
        return failed(Refused(f"{me} writes to {workbook.out()}: start it with OSNB_OUT={out}"))
    if mine.code() != code:
        return failed(Refused(f"{me} has other code in {workbook.root()}: update it, restart it"))
    if batch in _stopped:
        return {"state": "interrupted"}
    if end := made(mine, **how):
        return {key: end[key] for key in TOLD if key in end}
    time.sleep(WAIT)
    return {"state": HELD}


def stop(batch: int) -> None:
    """Begin no run of a batch any more in this worker, and interrupt the one that it is making."""
    _stopped.add(batch)
    interrupt()


def _guard(ours: int):
    """A plugin by which a worker that ends, or is cut off, interrupts the run it is making.

    Without it the run would go on, holding its lock, while another worker waits to take it over.
    Our own workers get their share of the machine, and do not heed a terminal's Ctrl-C or end,
    which reach them too: we tell them.
    """
    from distributed import WorkerPlugin

    class Guard(WorkerPlugin):
        name = "osnb"

        def setup(self, worker):
            """Called as a worker starts."""
            if ours:
                os.environ.update(environment(worker.name, ours))
                for sign in (signal.SIGINT, *HANG_UP):
                    signal.signal(sign, signal.SIG_IGN)

        def teardown(self, worker):  # noqa: ARG002, as dask calls it
            """Called as a worker ends."""
            interrupt()

    return Guard()


def environment(number: int, workers: int) -> dict[str, str]:
    """What a worker's notebooks see: one of the GPUs, in turn, and a share of the cores."""
    threads = max(1, workbook.cores() // workers)
    found = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(threads))}
    if names := visible():
        found["CUDA_VISIBLE_DEVICES"] = names[number % len(names)]
    return found


def visible() -> list[str]:
    """The GPUs of this machine, by their names for CUDA, but for those that it was told to hide."""
    there = [str(number) for number in range(len(record.gpus()))]
    told = os.environ.get("CUDA_VISIBLE_DEVICES")
    return there if told is None or not there else [x for x in told.split(",") if x]


# Where workers come from


def over(client, *, ours: int = 0) -> Spread:
    """The engine that hands runs to the workers of a dask client.

    Args:
        client: of dask.distributed.
        ours: how many workers are this process's children; 0 if somebody else started them.
    """
    from distributed import as_completed, wait

    for name in ("distributed", "distributed.client"):  # what is lost, the runs tell
        logging.getLogger(name).setLevel(logging.CRITICAL)
    client.register_plugin(_guard(ours))

    def spread(plans: Iterable[Plan], **how) -> Ends:
        plans, batch = list(plans), time.time_ns()
        how |= {"out": str(workbook.out()), "batch": batch, "pure": False}
        # keys of one group, so that those behind wait in the queue
        keys = [(f"osnb-{batch}", number) for number in range(len(plans))]
        sent = zip(*map(_sent, plans), strict=True)
        futures = client.map(work, *sent, key=keys, **how) if plans else []
        of = dict(zip((future.key for future in futures), plans, strict=True))
        try:
            for future in (going := as_completed(futures)):
                plan, end = of[future.key], _end(future)
                if end["state"] == HELD:
                    key = f"osnb-{batch}", len(of)
                    futures.append(client.submit(work, *_sent(plan), key=key, **how))
                    of[futures[-1].key] = plan
                    going.add(futures[-1])
                else:
                    yield plan, end
                future.release()
        except BaseException:
            with suppress(Exception):  # of a scheduler that is gone: nothing is left to be lost
                if client.run(stop, batch):  # where there are workers
                    wait(futures, timeout=30)  # they keep a step
            raise

    return spread


def _sent(plan: Plan) -> tuple[dict[str, Any], str]:
    return asdict(plan), plan.code()


def _end(future) -> End:
    """What a worker has said, or that it is lost."""
    if future.status == "finished":
        return future.result()
    lost = ConnectionError("the scheduler is gone; the same command continues")
    return failed((future.exception() if future.status != "cancelled" else None) or lost)


@contextmanager
def local(workers: int) -> Iterator[Spread]:
    """So many worker processes here, each with one GPU and its share of the cores.

    Everything listens on loopback only, and speaks over keys that are made for this cluster and
    that nobody else can read: no other user of the machine can send it code. A worker that dies
    is started again.
    """
    from distributed import Client, LocalCluster

    _track()
    here = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    here |= {"worker_dashboard_address": "127.0.0.1:0", "scheduler_kwargs": NO_PAGE}
    with _keys() as folder:
        here |= {"security": security(folder), "protocol": "tls://"}
        try:
            cluster = LocalCluster(workers, threads_per_worker=1, memory_limit=0, **here)
        except RuntimeError as error:  # one was killed as it began, or the machine is too busy
            raise ConnectionError(f"{error} Try again: the same command continues") from None
        with cluster, Client(cluster) as client:
            yield over(client, ours=workers)


@contextmanager
def _keys() -> Iterator[Path]:
    """A folder of certificates for a cluster of this process, closed to all other users.

    dask writes keys that it has in memory alone to the temporary folder, for as long as it takes
    to read them, and a kill may come then. What killed commands have left here goes first.
    """
    from distributed.security import Security

    made, node = Security.temporary(), platform.node()
    place = workbook.out() / "runs" / ".keys"
    for left in place.glob(f"{node}-*"):
        host, _, pid = left.name.rpartition("-")
        if host == node and not psutil.pid_exists(int(pid)):
            shutil.rmtree(left, ignore_errors=True)
    folder = place / f"{node}-{os.getpid()}"
    place.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    try:
        texts = made.tls_ca_file, made.tls_client_cert, made.tls_client_key
        for file, text in zip(TLS, texts, strict=True):
            (folder / file).write_text(text)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _track() -> None:
    """Start the process that tracks multiprocessing's semaphores so that a hang-up leaves it be.

    It is deaf to Ctrl-C by itself. If it ends before us, Python complains at length behind our
    last line.
    """
    from multiprocessing import resource_tracker

    before = {sign: signal.signal(sign, signal.SIG_IGN) for sign in HANG_UP}  # inherited
    try:
        resource_tracker.ensure_running()
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)


def encrypted(address: str, tls: Path | None) -> Any:
    """dask's security for a scheduler at tls://host:port, or tcp:// on this machine alone.

    Args:
        address: of the scheduler.
        tls: folder with ca.pem, cert.pem and key.pem; none for dask's own configuration.

    Raises:
        Refused: the address is another machine's and not encrypted, or a file of certificates is
            missing.
    """
    parts = urlsplit(address)
    if parts.scheme not in ("tls", "tcp") or not parts.hostname or not parts.port:
        raise Refused(f"a scheduler's address is tls://HOST:PORT; got {address!r}")
    if parts.scheme != "tls" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        how = "its scheduler must be started with TLS, tls://"
        raise Refused(f"{address} is another machine: {how}")
    held = security(tls)
    if parts.scheme == "tls" and not (held.tls_ca_file and held.tls_client_cert):
        raise Refused(f"{address} needs --tls FOLDER with {', '.join(TLS)}")
    return held


@contextmanager
def connected(address: str, tls: Path | None, held) -> Iterator[Spread]:
    """The workers of a scheduler that runs somewhere already.

    Args:
        address: of the scheduler.
        tls: the folder of `encrypted`.
        held: what that gave.

    Raises:
        Refused: the files of certificates hold none.
        OSError: nobody answers there.
    """
    from distributed import Client

    try:
        client = Client(address, security=held, timeout=20)
    except ssl.SSLError as error:
        raise Refused(f"{tls} holds no certificates: {error.reason or error}") from None
    with client:
        yield over(client)


def security(tls: Path | None) -> Any:
    """dask's, from a folder of certificates; from its own configuration if there is none."""
    from distributed import Security

    if tls is None:
        return Security()
    if missing := [name for name in TLS if not (Path(tls) / name).is_file()]:
        raise Refused(f"{tls} needs {', '.join(TLS)}; it lacks {', '.join(missing)}")
    ca, cert, key = (str(Path(tls).resolve() / name) for name in TLS)
    who = ("client", "worker", "scheduler")
    pairs = {f"tls_{one}_cert": cert for one in who} | {f"tls_{one}_key": key for one in who}
    return Security(tls_ca_file=ca, require_encryption=True, **pairs)
