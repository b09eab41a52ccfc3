"""One params file: checked against its notebook before a kernel starts, then executed.

`runs/<notebook>/<run>/run.json` says how it went and is the only source of status.
"""

from osnb.run.execution import done, execute, inputs, once
from osnb.run.kernels import interrupt
from osnb.run.plans import CROSS, Plan, Refused, plan

__all__ = ["CROSS", "Plan", "Refused", "done", "execute", "inputs", "interrupt", "once", "plan"]
