"""A run is made at most once at a time, and says in run.json how it went."""

import csv
import logging
import re
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any

from filelock import Timeout

from osnb.base import stamps, workbook
from osnb.book import follows, record, runs
from osnb.book.run import kernels
from osnb.book.run.plans import Plan
from osnb.experiment import layers

TAIL = 15  # lines of a failing cell's output that run.json keeps
AGAIN = 2  # times that a run whose kernel died goes on from its checkpoint


def inputs(plan: Plan) -> dict[str, str]:
    """Digest of the data of every run that the notebook collects; {} if it collects none.

    Variants of what params/ describes are none: `tables.collect` leaves them out; of one's own all
    count.
    """
    if not plan.collects:
        return {}
    from osnb.evidence.tables import repeats

    version = _version()
    return {
        stamp["run"]: stamps.data(path.parent)
        for path, stamp in stamps.finished(plan.reads, plan.parameters["size"])
        if not plan.published or repeats(stamp, _described(stamp["notebook"], version))
    }


def _version() -> tuple[tuple[str, int], ...]:
    """When params files and notebooks were last written: till then they say the same."""
    root = workbook.root()
    files = [*(root / "params").rglob("*.yaml"), *(root / "notebooks").glob("*.ipynb")]
    return tuple((str(file), file.stat().st_mtime_ns) for file in sorted(files))


@cache
def _described(notebook: str, _version: tuple) -> dict[str, dict[str, Any]]:
    from osnb.evidence.tables import described

    return described(notebook)


def done(plan: Plan) -> bool:
    """Whether the run ended well with these parameters and inputs, follows, and is all there."""
    found = record.read(plan.directory) or {}
    try:
        return (
            found.get("state") == "done"
            and "executed.ipynb" in found.get("files", {})
            and not runs.altered(plan.directory, found)
            and _compared(plan, found["parameters"]) == _compared(plan, plan.parameters)
            and found.get("inputs") == inputs(plan)
            and found.get("settings") == plan.follows["settings"]
            and not follows.changed(found)
        )
    except OSError:  # a file that another user keeps to himself, of this run or of one it reads
        return False


def _compared(plan: Plan, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Those that change a number: a place does where one's own images lie in it."""
    places = workbook.LOCAL if plan.published else {"machine"}
    return {name: value for name, value in parameters.items() if name not in places}


def once(plan: Plan, *, force: bool = False, **how: Any) -> dict[str, Any] | None:
    """Make a run that is not done, unless another process is at it.

    A run whose kernel died, killed perhaps for memory, goes on from its checkpoint, `AGAIN`
    times. Figures that somebody took away are put back. Without its data no kernel is started.
    One that is done is left alone where its lock cannot be had: another user's, a read-only disk.

    Args:
        plan: what to make.
        force: even if it is done.
        how: as in `execute`.

    Returns:
        run.json's content, whose `state` is skipped if nothing had to be made; none if another
        process holds the run's lock.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(record.lock(plan.directory))
        except Timeout:
            return None
        except OSError:
            if force or not done(plan):
                raise
            return {"state": "skipped"}
        if not force and done(plan):
            plan.publish()
            return {"state": "skipped"}
        why = lacking(plan)
        for _ in range(0 if why else 1 + AGAIN):
            end = execute(plan, **how)
            if end.get("error", {}).get("name") != "DeadKernelError":
                break
    return not_run(plan, why) if why else end


def not_run(plan: Plan, why: str) -> dict[str, Any]:
    """Say in run.json that a run has failed before it began; gives its content.

    The record of a finished run stays: its files are there. So does that of a run which another
    process is making.
    """
    end = plan.known | record.owner() | {"attempts": record.attempts(plan.directory)}
    end |= {"state": "failed", "error": {"name": "NotRun", "value": why, "cell": None}}
    with suppress(OSError), record.lock(plan.directory):  # held, or a full disk
        found = record.read(plan.directory) or {}
        before = found.get("before", found)  # of one that is queued
        record.write(plan.directory, before if before.get("state") == "done" else end)
    return end


def execute(plan: Plan, *, limit: float = 0, through: Callable | None = None) -> dict[str, Any]:
    """Execute the notebook with the plan's parameters and say in run.json how it went.

    A failed run keeps its executed notebook too, so that people can look at it.

    Args:
        plan: what to make.
        limit: seconds after which the kernel is interrupted and, soon after, killed; 0: never.
        through: in place of a kernel.

    Returns:
        The content of run.json; `state` is done, failed or interrupted.
    """
    lock = record.held.get(plan.directory)
    begin = kernels.started(plan.source.parent, lock) if through is None else nullcontext()
    with begin as kernel:  # at once: it starts while we find out what it is to do
        runs.sweep(plan.directory)
        content = plan.follows | plan.known | {"seed": plan.parameters.get("seed")}
        content |= {"code": plan.code(), "inputs": inputs(plan)}
        content |= {"attempts": record.attempts(plan.directory)} | record.circumstances()
        before = _last(plan) if runs.goes_on(plan.directory, plan.follows) else None
        content["resumed"] = (before or {}).get("epoch", 0)
        begun = time.monotonic()
        record.write(plan.directory, content | {"state": "running"})
        content["state"] = "interrupted"
        try:
            content |= through(plan) if through else _papermill(plan, limit, kernel)
        finally:
            content |= {"finished": record.now(), "seconds": round(time.monotonic() - begun, 1)}
            content |= {"outputs": runs.results(plan.directory), "measures": _last(plan)}
            content["files"] = runs.beside(plan.directory)
            record.write(plan.directory, content)
    return content


def _papermill(plan: Plan, limit: float, kernel: kernels.Kernel) -> dict[str, Any]:
    """What run.json says of the end: the state and, of a failed run, the error."""
    execute_notebook = _imported()
    # beside the run's folder, which the notebook clears of what other code left there
    aside, kept = plan.directory.with_name(f".{plan.run}.ipynb"), plan.directory / "executed.ipynb"
    for old in (aside, kept):
        old.unlink(missing_ok=True)
    options = {"progress_bar": False, "kernel_name": "python3", "language": "python"}
    options |= {"start_timeout": 120, "kernel_manager_class": kernel.manager()}
    with kernels.limited(limit) as reached:
        try:
            execute_notebook(plan.source, aside, plan.given, cwd=plan.source.parent, **options)
            _check_whole(aside)
            if plan.trains and not (plan.directory / "scores.parquet").is_file():
                raise FileNotFoundError(f"{plan} wrote no scores.parquet in {plan.directory}")
            end = {"state": "done", "unpublished": plan.publish()}
        except Exception as error:
            explained = _explained(error, aside)
            if reached():
                explained |= {"name": "TimeLimit", "value": f"not done after {limit:g} s"}
            stopped = explained["name"] == "KeyboardInterrupt"
            end = {"state": "interrupted" if stopped else "failed", "error": explained}
        finally:
            if _code(aside):
                aside.replace(kept)
            aside.unlink(missing_ok=True)  # a part of a notebook, on a full disk
        return end | {"used": kernel.used()}


def _imported() -> Callable:
    """papermill's, imported without the grammar of IRIs, a second that nothing here needs."""
    before = sys.modules.setdefault("rfc3987_syntax", None)  # jsonschema then does without
    from papermill.execute import execute_notebook

    if before is None:
        del sys.modules["rfc3987_syntax"]
    logging.getLogger("papermill").setLevel(logging.CRITICAL)  # run.json and the caller tell
    return execute_notebook


def _explained(error: Exception, executed: Path) -> dict[str, Any]:
    """The error, and the cell that was running with the last lines of its output."""
    name, value = getattr(error, "ename", type(error).__name__), getattr(error, "evalue", error)
    explained = {"name": name, "value": str(value), "cell": None, "tail": []}
    for number, cell in enumerate(_code(executed), start=1):
        if cell["metadata"].get("papermill", {}).get("start_time"):
            parts = ["".join(out.get("text", "")) for out in cell["outputs"]]
            parts += [line for out in cell["outputs"] for line in out.get("traceback", [])]
            lines = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(parts)).splitlines()
            explained |= {"cell": number, "tail": lines[-TAIL:]}
    if name == "CellExecutionError" and "KeyboardInterrupt" in explained["tail"]:
        explained["name"] = "KeyboardInterrupt"  # IPython prints it and raises nothing
    return explained


def _check_whole(executed: Path) -> None:
    """papermill takes a notebook for done that has left by sys.exit().

    Raises:
        RuntimeError: a code cell was not executed.
    """
    for number, cell in enumerate(code := _code(executed), start=1):
        if cell["source"].strip() and cell["execution_count"] is None:
            raise RuntimeError(f"the notebook was left before cell In [{number}] of {len(code)}")


def _code(notebook: Path) -> list[dict[str, Any]]:
    """The code cells of a notebook, none if there is no whole one."""
    try:
        return workbook.cells(notebook, "code")
    except (OSError, ValueError):
        return []


def lacking(plan: Plan) -> str:
    """A sentence on the data that a run's readers would not find; empty if nothing is missing."""
    if "data" not in plan.parameters:
        return ""
    wanted = _readers(plan)
    for name, patterns in needs().items():
        folder, places = workbook.data(plan.parameters["data"], name), " or ".join(patterns)
        if name in wanted and not any(any(folder.glob(x)) for x in patterns):
            return f"the reader {name} needs {places} in {folder} (data, else $OSNB_DATA)"
    return ""


def _readers(plan: Plan) -> set[str]:
    """Names of the readers that a run uses: of its experiment, or of the benchmarks it looks at."""
    values = plan.parameters
    settings = runs.settled(values)[0] or values
    texts = [settings.get("reader", {"name": ""})["name"], settings.get("also", "")]
    texts.append(values.get("dataset", ""))
    for name in values.get("benchmarks", "").split():
        given = layers.benchmark(name, values["size"]) | layers.words(values.get("readers", ""))
        texts += [given["reader"], given.get("also", "")]
    return {*" ".join(texts).split()}


def needs() -> dict[str, list[str]]:
    """What a reader of osnb.datasets needs in its folder, any of: patterns, by its name."""
    with (workbook.PACKAGE / "book" / "needs.csv").open(encoding="utf8") as file:
        return {row["reader"]: row["any of"].split() for row in csv.DictReader(file)}


def _last(plan: Plan) -> dict[str, float] | None:
    """The last row of the history."""
    rows = record.rows(plan.directory / "history.parquet")
    return rows and rows[-1]
