"""Workers that are jobs of Slurm."""

import inspect
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from osnb.batch.engines import NO_PAGE, over, security
from osnb.batch.order import Spread
from osnb.run import Refused

WALLTIME = r"(\d+-)?\d+(:\d+){0,2}"  # of Slurm: minutes, 24:00:00, 2-12:00:00


@contextmanager
def slurm(file: Path, tls: Path) -> Iterator[Spread]:
    """Workers that are jobs of Slurm, each with one run at a time.

    Args:
        file: yaml, the options of dask_jobqueue.SLURMCluster and `jobs`, how many to ask for.
        tls: folder with ca.pem, cert.pem and key.pem, which the jobs must see too.

    Raises:
        Refused: as `check_slurm`, there is no sbatch here, or it takes no job.
        ImportError: dask-jobqueue is not installed.
    """
    from distributed import Client

    options = check_slurm(file, tls)
    if not shutil.which("sbatch"):
        raise Refused("--slurm needs the command sbatch, which is not on this machine's PATH")
    jobs = options.pop("jobs")
    with slurm_cluster(options, tls) as cluster, Client(cluster) as client:
        _submit(cluster, jobs)
        yield over(client)


def check_slurm(file: Path, tls: Path) -> dict[str, Any]:
    """The options in a file for Slurm, checked as far as it goes without asking Slurm.

    Raises:
        Refused: the file is no mapping of such options, or a file of `tls` is missing.
        ImportError: dask-jobqueue is not installed.
    """
    import yaml

    try:
        options = yaml.safe_load(Path(file).read_text(encoding="utf8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        problem = getattr(error, "problem", None) or type(error).__name__
        raise Refused(f"{file} is no valid yaml: {problem}") from None
    jobs = options.get("jobs") if isinstance(options, dict) else None
    if type(jobs) is not int or jobs < 1:
        raise Refused(f"{file} needs 'jobs: NUMBER' and options of dask_jobqueue.SLURMCluster")
    valid = _valid()
    if unknown := sorted(str(name) for name in options if name not in valid):
        raise Refused(f"{file} has no use for {unknown[0]!r}; valid: {', '.join(sorted(valid))}")
    walltime = options.get("walltime", "1")
    if not (isinstance(walltime, str) and re.fullmatch(WALLTIME, walltime)):
        raise Refused(f"{file} needs a walltime in quotes such as '24:00:00'; got {walltime!r}")
    security(tls)
    return options


def _valid() -> set[str]:
    """Names that the file may hold."""
    _, job = _dask_jobqueue()
    names = {name for of in job.__mro__ for name in inspect.signature(of.__init__).parameters}
    ours = {"self", "scheduler", "args", "kwargs", "base_class_kwargs", "security", "name"}
    return names - ours | {"jobs", "scheduler_options", "shared_temp_directory"}


def _dask_jobqueue() -> tuple[type, type]:
    """The classes of a cluster and of a job."""
    try:
        from dask_jobqueue.slurm import SLURMCluster, SLURMJob
    except ImportError:
        raise ImportError("Slurm needs dask-jobqueue: pip install 'osnb[slurm]'") from None
    return SLURMCluster, SLURMJob


def slurm_cluster(options: Mapping[str, Any], tls: Path):
    """A SLURMCluster; a job books `job_cpu` cores, but its worker makes one run at a time."""
    scheduler = NO_PAGE | options.get("scheduler_options", {})
    fixed = {"cores": 1, "processes": 1, "protocol": "tls://", "scheduler_options": scheduler}
    cluster, _ = _dask_jobqueue()
    try:
        return cluster(**{**options, **fixed}, security=security(tls))
    except (TypeError, ValueError, RuntimeError) as error:
        raise Refused(f"dask_jobqueue takes no such options: {_first_line(error)}") from None


def _submit(cluster, jobs: int) -> None:
    """Ask for so many jobs, and see that Slurm took them; `scale` would not tell.

    Raises:
        Refused: sbatch has failed.
    """
    from distributed import Status

    for _ in range(jobs):
        cluster.worker_spec.update(cluster.new_worker_spec())

    async def submitted():
        await cluster

    try:
        cluster.sync(submitted)
    except (RuntimeError, ValueError, OSError) as error:
        for job in cluster.workers.values():  # it would not close with jobs that never began
            job.status = Status.failed
        cluster.worker_spec.clear()
        said = re.search(r"stderr:\n(.+)", str(error))
        raise Refused(f"sbatch takes no job: {said[1] if said else _first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
