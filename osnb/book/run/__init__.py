"""One params file: checked against its notebook before a kernel starts, then executed.

`runs/<notebook>/<run>/run.json` says how it went and is the only source of status.
"""

from osnb.book.run.execution import done, execute, inputs, lacking, needs, not_run, once
from osnb.book.run.kernels import interrupt
from osnb.book.run.plans import SIZES, Plan, Refused, later, plan, read, repeated
