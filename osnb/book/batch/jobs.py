"""Workers that are jobs of Slurm."""

import inspect
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from osnb.book.batch import Spread
from osnb.book.batch.engines import NO_PAGE, over, security
from osnb.book.run import Refused

WALLTIME = r"(\d+-)?\d+(:\d+){0,2}"  # of Slurm: minutes, 24:00:00, 2-12:00:00
OURS = {"self", "scheduler", "args", "kwargs", "base_class_kwargs", "security", "name"}


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
    import yaml

    try:
        job = library().SLURMJob
    except ImportError:
        raise ImportError("Slurm needs dask-jobqueue: pip install 'osnb[slurm]'") from None
    try:
        found = yaml.safe_load(Path(file).read_text(encoding="utf8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        problem = getattr(error, "problem", None) or type(error).__name__
        raise Refused(f"{file} is no valid yaml: {problem}") from None
    jobs = found.get("jobs") if isinstance(found, dict) else None
    if type(jobs) is not int or jobs < 1:
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
