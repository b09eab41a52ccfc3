"""Commands that execute notebooks: one run, a folder of them, everything of a size."""

import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from osnb.cli.lines import Lines, announced, written
from osnb.cli.more import PAPERS

FAILED = 1
STATES = ("done", "skipped", "failed", "interrupted")

Force = Annotated[bool, typer.Option("--force", help="Repeat runs that are up to date.")]
Workers = Annotated[
    int, typer.Option(min=0, help="Runs at the same time; left out: one for each GPU, else one.")
]
Scheduler = Annotated[
    str, typer.Option(metavar="ADDRESS", help="A dask scheduler, tls://HOST:PORT.")
]
Slurm = Annotated[
    Path | None, typer.Option(help="Make runs in jobs of Slurm, as this yaml file says.")
]
Tls = Annotated[
    Path | None, typer.Option(help="Folder with ca.pem, cert.pem and key.pem for the scheduler.")
]
Limit = Annotated[
    float, typer.Option(min=0, help="Seconds after which a run is stopped and has failed; 0: none.")
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--json", help="File for how every run ended; - prints it, and all else to stderr."
    ),
]


def run(
    files: Annotated[
        list[str], typer.Argument(help="params/<notebook>/<run>.yaml, a folder of them, a glob ...")
    ],
    p: Annotated[
        list[str] | None, typer.Option("-p", metavar="NAME=VALUE", help="Replace a parameter.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds to run, from the file's own up.")] = 1,
    force: Force = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would run.")] = False,
    workers: Workers = 0,
    scheduler: Scheduler = "",
    tls: Tls = None,
    slurm: Slurm = None,
    time_limit: Limit = 0,
    report: Report = None,
):
    """Execute the notebook of each params file, after a strict check."""
    from osnb.run import plan

    overrides, named = _overrides(p or []), {}
    for file in _found(files):
        first = plan(file, overrides)
        more = range(first.parameters.get("seed", 0) + 1, first.parameters.get("seed", 0) + seeds)
        for each in (first, *(plan(file, overrides | {"seed": seed}) for seed in more)):
            same, other = named.setdefault(str(each), (each, file))
            if same.parameters != each.parameters:
                raise ValueError(f"{other} and {file} would both make {each}: rename one of them")
    plans = [each for each, _ in named.values()]
    engine = _engine(workers, scheduler, tls, slurm)
    _start(plans, engine, force=force, dry_run=dry_run, limit=time_limit, report=report)


def _found(texts: list[str]) -> list[Path]:
    """The params files that files, folders and globs stand for, without repetition.

    A folder that is not called after a notebook stands for the folders in it.
    """
    import glob

    from osnb import repro

    found = []
    for text in texts:
        if not text.strip():
            raise ValueError("need a params file, a folder of them or a glob; got an empty text")
        if (folder := Path(text)).is_dir():
            notebook = repro.root() / "notebooks" / f"{folder.absolute().name}.ipynb"
            inner = [] if notebook.is_file() else sorted(folder.glob("*/*.yaml"))
            files = inner or sorted(folder.glob("*.yaml"))
        elif glob.has_magic(text):
            files = [Path(name) for name in sorted(glob.glob(text)) if Path(name).is_file()]
        else:
            files = [Path(text)]
        if not files:
            raise ValueError(f"no params file (*.yaml) is in {text}")
        found += files
    return list(dict.fromkeys(found))


def _overrides(texts: list[str]) -> dict[str, object]:
    """Values by name, of NAME=VALUE."""
    from osnb.run import Typed

    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"-p needs NAME=VALUE, such as seed=3; got {text!r}")
        if name.strip() in found:
            raise ValueError(f"-p {name.strip()} is given twice")
        found[name.strip()] = Typed(value)
    return found


def reproduce(
    paper: Annotated[str, typer.Option(help=f"One of {', '.join(PAPERS)}; all if left out.")] = "",
    size: Annotated[str, typer.Option(help="Of the runs: mini, tiny or paper.")] = "mini",
    force: Force = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would run.")] = False,
    workers: Workers = 0,
    scheduler: Scheduler = "",
    tls: Tls = None,
    slurm: Slurm = None,
    time_limit: Limit = 0,
    report: Report = None,
):
    """Run every params file of a size: first those that train, then those that read the results."""
    from osnb import repro
    from osnb.run import CROSS, SIZES, plan

    for value, valid in ((paper, ["", *PAPERS]), (size, SIZES)):
        if value not in valid:
            raise ValueError(f"{value!r} is not one of: {', '.join(filter(None, valid))}")
    digits = f"0{PAPERS[paper]}" if paper else "".join(["0", *PAPERS.values(), CROSS])
    plans = [plan(file) for file in sorted((repro.root() / "params").glob("*/*.yaml"))]
    chosen = [x for x in plans if x.parameters.get("size") == size and x.notebook[0] in digits]
    if not chosen:
        raise ValueError(f"no params file has size: {size}" + (f" for {paper}" if paper else ""))
    engine = _engine(workers, scheduler, tls, slurm)
    _start(chosen, engine, force=force, dry_run=dry_run, limit=time_limit, report=report)


# How runs are spread.


def _engine(workers: int, scheduler: str, tls: Path | None, slurm: Path | None) -> dict:
    """What was asked for, if it is one thing."""
    asked = {"--workers": workers, "--scheduler": scheduler, "--slurm": slurm}
    given = [name for name, value in asked.items() if value]
    if len(given) > 1:
        raise ValueError(f"runs are spread in one way; got {' and '.join(given)}")
    if tls and not (scheduler or slurm):
        raise ValueError("--tls goes with --scheduler or --slurm")
    if slurm and not tls:
        raise ValueError("--slurm needs --tls FOLDER, which the jobs must see too")
    return {"workers": workers, "scheduler": scheduler, "tls": tls, "slurm": slurm}


@contextmanager
def _spread(engine: Mapping, told: Callable) -> Iterator[Callable]:
    """The engine: this process unless workers, a scheduler or several GPUs are there."""
    from functools import partial

    from osnb import batch, record

    workers = engine["workers"] or max(1, len(record.gpus()))
    if engine["slurm"]:
        with batch.slurm(engine["slurm"], engine["tls"]) as spread:
            yield spread
    elif engine["scheduler"]:
        with batch.connected(engine["scheduler"], engine["tls"]) as spread:
            yield spread
    elif workers > 1:
        with batch.local(workers) as spread:
            yield spread
    else:
        yield partial(batch.serially, told=told)


def _start(plans: list, engine: Mapping, *, force, dry_run, limit, report) -> None:
    """Make the runs, or only say what would be done; leaves with the exit code."""
    from osnb import batch

    if engine["slurm"]:
        batch.check_slurm(engine["slurm"], engine["tls"])
    spreads = any(engine.values())
    shared = [plan for plan in plans if plan.parameters.get("devices", 1) > 1]
    if spreads and shared:
        raise ValueError(f"{shared[0]} uses several devices by itself: run it without --workers")
    plans = batch.ordered(plans)
    code = announced(plans, force) if dry_run else _make(plans, engine, force, limit, report)
    raise typer.Exit(code)


def _make(plans: list, engine: Mapping, force: bool, limit: float, report: Path | None) -> int:
    """Execute the plans, one line each; the exit code."""
    from osnb import batch, record, repro

    _heed_signals()
    if report and str(report) != "-":
        _try_writing(report)
    start, begun, counts, ends = time.monotonic(), record.now(), Counter(), {}
    spoken = sys.stderr if str(report) == "-" else sys.stdout  # json alone is what a program reads
    lines = Lines(len(plans), spoken)
    try:
        with _spread(engine, lines.told) as spread:
            batch.queue(plans, force=force)
            for plan, end in batch.carry_out(plans, spread=spread, force=force, limit=limit):
                ends[str(plan)] = _brief(plan, end)
                lines.ended(plan, end)
                counts[end["state"]] += 1
    except BaseException:
        for plan in plans:
            if str(plan) not in ends and (end := _stopped(plan, begun)):
                ends[str(plan)] = _brief(plan, end)
                counts["interrupted"] += 1
        raise
    finally:
        if report:
            told = {"runs": [*ends.values()], **{state: counts[state] for state in STATES}}
            written(report, told)
    shown = [state for state in STATES if counts[state] or state != "interrupted"]
    total = ", ".join(f"{counts[state]} {state}" for state in shown)
    spent = f"{time.monotonic() - start:.0f} s"
    print(f"{total} in {spent}; figures are in {repro.out() / 'figures'}", file=spoken)
    return FAILED if counts["failed"] or counts["interrupted"] else 0


def _heed_signals() -> None:
    """A closed terminal and SIGTERM are Ctrl-C, so that a run says interrupted."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as under nohup
        signal.signal(signal.SIGHUP, signal.default_int_handler)


def _try_writing(report: Path) -> None:
    """Refuse a file that could not be written when the runs are made; it holds none as yet."""
    try:
        written(report, {"runs": [], **dict.fromkeys(STATES, 0)})
    except OSError as error:
        raise ValueError(f"--json {report} cannot be written: {error.strerror}") from None


def _stopped(plan, begun: str) -> Mapping | None:
    """How a run ended that was being made when the command was stopped, if it was."""
    from osnb import record

    found = record.read(plan.directory) or {}
    ours = found.get("state") == "interrupted" and found.get("started", "") >= begun
    return found if ours else None


def _brief(plan, end: Mapping) -> dict:
    error = end.get("error")
    reason = {"reason": f"{error['name']}: {error['value']}"} if error else {}
    kept = {key: end[key] for key in ("state", "seconds") if key in end}
    return {"notebook": plan.notebook, "run": plan.run, **kept, **reason}


COMMANDS = {"run": run, "reproduce": reproduce}
