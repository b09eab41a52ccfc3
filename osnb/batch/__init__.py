"""Many runs: training before what reads it, each made once, here or spread over workers."""

from osnb.batch.engines import connected, local, slurm
from osnb.batch.order import carry_out, ordered, queue, serially

__all__ = ["carry_out", "connected", "local", "ordered", "queue", "serially", "slurm"]
