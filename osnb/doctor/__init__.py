"""Is this machine ready for the workbook? One line for each thing that notebooks rely on.

Nothing outside the standard library is imported before a check asks for it, and what may crash or
hang (torch, a kernel) is tried in a process of its own, so that a broken set-up gets an answer.
"""

from osnb.doctor.lines import FAIL, OK, WARN, Line, failed
from osnb.doctor.rounds import examine

__all__ = ["FAIL", "OK", "WARN", "Line", "examine", "failed"]
