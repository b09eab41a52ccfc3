"""dask.distributed's workers: here, of a scheduler that somebody started, or jobs of Slurm.

The scheduler hands a run to a worker, and to another one if that is lost. On the wire a run is a
few strings: workers read code and data from their own disk and write to a folder that all see.
"""

import inspect
import ipaddress
import logging
import os
import re
import shutil
import signal
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from osnb.base import workbook
from osnb.book import record
from osnb.book.batch import WAIT, End, Spread, failed, made
from osnb.book.run import Plan, Refused, interrupt
from osnb.book.run.plans import read

TLS = ("ca.pem", "cert.pem", "key.pem")
LOOPBACK = "127.0.0.1"
NO_PAGE = {"dashboard": False, "dashboard_address": f"{LOOPBACK}:0"}  # dask's web page
WALLTIME = r"(\d+-)?\d+(:\d+){0,2}"  # of Slurm: minutes, 24:00:00, 2-12:00:00
OURS = {"self", "scheduler", "args", "kwargs", "base_class_kwargs", "security", "name"}
_stopped: set[int] = set()  # batches that this worker was told to end
TOLD = ("state", "seconds", "error", "unpublished", "host")  # of run.json, to who asked for it


def work(
    plan: Mapping[str, Any], code: str, out: str, batch: int, *, force: bool, limit: float, **how
) -> End:
    """Make a run in a worker, if that has the same code and writes to the same folder.

    Args:
        plan: fields of a `Plan`.
        code: its `code()` where the batch was started.
        out: its `workbook.out()` there.
        batch: a number of its own.
        force: as in `once`.
        limit: as in `once`.
        how: the rest of `once`.
    """
    mine, here = Plan(**plan), record.owner()["host"]
    why = ""
    if str(workbook.out()) != out:
        why = f"writes to {workbook.out()}: start it with OSNB_OUT={out}"
    elif mine.code() != code:
        why = f"has other code in {workbook.root()}: update it, restart it"
    if why:
        return failed(Refused(f"the worker on {here} {why}"))
    end = None
    while end is None and batch not in _stopped:
        if (end := made(mine, force=force, limit=limit, **how)) is None:
            time.sleep(WAIT)
    end = end or {"state": "interrupted"}
    return {key: end[key] for key in TOLD if key in end}


def stop(batch: int) -> None:
    """Begin no run of a batch any more in this worker, and interrupt the one that it is making."""
    _stopped.add(batch)
    interrupt()


def over(client, *, ours: int = 0, task: Callable = work) -> Spread:
    """The engine that hands runs to the workers of a dask client.

    Args:
        client: of dask.distributed.
        ours: how many workers are this process's children; 0 if somebody else started them.
        task: what a worker does with a run.
    """
    for name in ("distributed", "distributed.client"):  # what is lost, the runs tell
        logging.getLogger(name).setLevel(logging.CRITICAL)
    client.register_plugin(_guard(ours))

    def spread(plans: Iterable[Plan], **how) -> Iterator[tuple[Plan, End]]:
        from distributed import as_completed

        plans, batch = list(plans), time.time_ns()
        sent = [asdict(plan) for plan in plans], [plan.code() for plan in plans]
        how |= {"out": str(workbook.out()), "batch": batch, "pure": False}
        # keys of one group, so that those behind wait in the queue
        keys = [(f"osnb-{batch}", number) for number in range(len(plans))]
        futures = client.map(task, *sent, key=keys, **how) if plans else []
        of = dict(zip((future.key for future in futures), plans, strict=True))
        try:
            for future in as_completed(futures):
                error = future.exception() if future.status != "cancelled" else None
                lost = ConnectionError("the scheduler is gone; the same command continues")
                ended = future.status == "finished"
                yield of[future.key], future.result() if ended else failed(error or lost)
                future.release()
        except BaseException:
            _stop(client, futures, batch)
            raise

    return spread


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
                for sign in (signal.SIGINT, signal.SIGHUP):
                    signal.signal(sign, signal.SIG_IGN)

        def teardown(self, worker):  # noqa: ARG002, as dask calls it
            """Called as a worker ends."""
            interrupt()

    return Guard()


def _stop(client, futures: list, batch: int) -> None:
    """Interrupt what the workers are making and wait for them to keep a step."""
    from distributed import wait

    with suppress(Exception):  # of a scheduler that is gone: nothing is left to be lost
        client.run(stop, batch)
        wait(futures, timeout=30)


@contextmanager
def local(workers: int, *, task: Callable = work) -> Iterator[Spread]:
    """So many worker processes here, each with one GPU and its share of the cores.

    Everything listens on loopback only, and speaks over keys that are made for this cluster and
    kept in memory: no other user of the machine can send it code. A worker that dies is started
    again.
    """
    from distributed import Client, LocalCluster
    from distributed.security import Security

    _track()
    here = {"host": LOOPBACK, "dashboard_address": f"{LOOPBACK}:0", "silence_logs": 50}
    here |= {"worker_dashboard_address": f"{LOOPBACK}:0", "scheduler_kwargs": NO_PAGE}
    here |= {"security": Security.temporary(), "protocol": "tls://"}
    with (
        LocalCluster(workers, threads_per_worker=1, memory_limit=0, **here) as cluster,
        Client(cluster) as client,
    ):
        yield over(client, ours=workers, task=task)


def _track() -> None:
    """Start the process that tracks multiprocessing's semaphores so that a hang-up leaves it be.

    It is deaf to Ctrl-C by itself. If it ends before us, Python complains at length behind our
    last line.
    """
    from multiprocessing import resource_tracker

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # which a new process inherits
    try:
        resource_tracker.ensure_running()
    finally:
        signal.signal(signal.SIGHUP, before)


def environment(number: int, workers: int) -> dict[str, str]:
    """What a worker's notebooks see: one of the GPUs, in turn, and a share of the cores."""
    threads = max(1, len(os.sched_getaffinity(0)) // workers)
    found = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(threads))}
    if gpus := len(record.gpus()):
        visible = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(gpus)))
        names = visible.split(",")
        found["CUDA_VISIBLE_DEVICES"] = names[number % len(names)]
    return found


@contextmanager
def connected(address: str, tls: Path | None = None) -> Iterator[Spread]:
    """The workers of a scheduler that runs somewhere already.

    Args:
        address: tls://host:port; tcp:// only on this machine.
        tls: folder with ca.pem, cert.pem and key.pem; none for dask's own configuration.

    Raises:
        Refused: the address is another machine's and not encrypted, or a file of certificates is
            missing or none.
        OSError: nobody answers there.
    """
    from distributed import Client

    parts = urlsplit(address)
    if parts.scheme not in ("tls", "tcp") or not parts.hostname or not parts.port:
        raise Refused(f"a scheduler's address is tls://HOST:PORT; got {address!r}")
    if parts.scheme != "tls" and not _loopback(parts.hostname):
        raise Refused(
            f"{address} is another machine: its scheduler must be started with TLS, tls://"
        )
    held = security(tls)
    if parts.scheme == "tls" and not (held.tls_ca_file and held.tls_client_cert):
        raise Refused(f"{address} needs --tls FOLDER with {', '.join(TLS)}")
    try:
        client = Client(address, security=held, timeout=20)
    except ssl.SSLError as error:
        raise Refused(f"{tls} holds no certificates: {error.reason or error}") from None
    with client:
        yield over(client)


def security(tls: Path | None):
    """dask's, from a folder of certificates; from its own configuration if there is none."""
    from distributed import Security

    if tls is None:
        return Security()
    missing = [name for name in TLS if not (Path(tls) / name).is_file()]
    if missing:
        raise Refused(f"{tls} needs {', '.join(TLS)}; it lacks {', '.join(missing)}")
    ca, cert, key = (str(Path(tls).resolve() / name) for name in TLS)
    pairs = {
        f"tls_{who}_{what}": path
        for who in ("client", "worker", "scheduler")
        for what, path in (("cert", cert), ("key", key))
    }
    return Security(tls_ca_file=ca, require_encryption=True, **pairs)


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


# Workers that are jobs of Slurm


def library():
    """The module `dask_jobqueue.slurm`, whose import would turn every later Ctrl-C into an exit."""
    before = signal.getsignal(signal.SIGINT)
    try:
        from dask_jobqueue import slurm as module
    finally:
        signal.signal(signal.SIGINT, before)
    return module


def options(file: Path, tls: Path) -> dict[str, Any]:
    """The options in a file for Slurm, checked as far as it goes without asking Slurm.

    Args:
        file: yaml, the options of dask_jobqueue.SLURMCluster and `jobs`, how many to ask for.
        tls: folder with ca.pem, cert.pem and key.pem, which the jobs must see too.

    Raises:
        Refused: the file is no mapping of such options, or a file of `tls` is missing.
        ImportError: dask-jobqueue is not installed.
    """
    try:
        job = library().SLURMJob
    except ImportError:
        raise ImportError("Slurm needs dask-jobqueue: pip install 'osnb[slurm]'") from None
    found = read(Path(file))
    if type(found.get("jobs")) is not int or found["jobs"] < 1:
        raise Refused(f"{file} needs 'jobs: NUMBER' and options of dask_jobqueue.SLURMCluster")
    names = {name for of in job.__mro__ for name in inspect.signature(of.__init__).parameters}
    valid = names - OURS | {"jobs", "scheduler_options", "shared_temp_directory"}
    if unknown := sorted(str(name) for name in found if name not in valid):
        raise Refused(f"{file} has no use for {unknown[0]!r}; valid: {', '.join(sorted(valid))}")
    walltime = found.get("walltime", "1")
    if not (isinstance(walltime, str) and re.fullmatch(WALLTIME, walltime)):
        raise Refused(f"{file} needs a walltime in quotes such as '24:00:00'; got {walltime!r}")
    security(tls)
    return found


@contextmanager
def slurm(options: dict[str, Any], tls: Path) -> Iterator[Spread]:
    """Workers that are jobs of Slurm, each with one run at a time.

    Args:
        options: of `options`.
        tls: the folder given there.

    Raises:
        Refused: there is no sbatch here, or it takes no job.
    """
    from distributed import Client, Status

    if not shutil.which("sbatch"):
        raise Refused("--slurm needs the command sbatch, which is not on this machine's PATH")
    with cluster(options, tls) as made, Client(made) as client:
        for _ in range(options["jobs"]):
            made.worker_spec.update(made.new_worker_spec())

        async def submitted():
            await made

        try:  # `scale` would not tell that Slurm took none
            made.sync(submitted)
        except (RuntimeError, ValueError, OSError) as error:
            for job in made.workers.values():  # it would not close with jobs that never began
                job.status = Status.failed
            made.worker_spec.clear()
            reason = str(error).partition("stderr:\n")[2] or str(error)
            raise Refused(f"sbatch takes no job: {reason.partition(chr(10))[0]}") from None
        yield over(client)


def cluster(options: dict[str, Any], tls: Path):
    """A SLURMCluster; a job books `job_cpu` cores, but its worker makes one run at a time."""
    scheduler = NO_PAGE | options.get("scheduler_options", {})
    fixed = {"cores": 1, "processes": 1, "protocol": "tls://", "scheduler_options": scheduler}
    given = {key: value for key, value in options.items() if key != "jobs"} | fixed
    try:
        return library().SLURMCluster(**given, security=security(tls))
    except (TypeError, ValueError, RuntimeError) as error:
        raise Refused(f"dask_jobqueue takes no such options: {error}".splitlines()[0]) from None
