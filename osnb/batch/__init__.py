"""Many runs: training before what reads it, each made once, here or spread over workers."""

from osnb.batch.engines import connected, local
from osnb.batch.jobs import check_slurm, slurm
from osnb.batch.order import carry_out, ordered, queue, serially

__all__ = [
    "carry_out",
    "check_slurm",
    "connected",
    "local",
    "ordered",
    "queue",
    "serially",
    "slurm",
]
