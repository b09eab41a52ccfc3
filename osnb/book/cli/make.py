"""Commands that execute notebooks: runs of params files, or every run of a size."""

import os
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from osnb.base import workbook
from osnb.book import record
from osnb.book.cli.look import apart, regular, unheld, written
from osnb.book.runs import CROSS, OWN, PAPERS

BRIEF = ("notebook", "run", "state", "seconds")  # of a run, what --json says
NOT_BEGUN = {"state": "not begun"}
STATES = ("done", "skipped", "failed", "interrupted", "running", *NOT_BEGUN.values())
FORCE = "Repeat runs that are up to date."
WORKERS = "Runs at the same time; if 0, one for each GPU, else one."
SCHEDULER = "A dask scheduler, tls://HOST:PORT."
TLS = "Folder with ca.pem, cert.pem and key.pem for the scheduler."
LIMIT = "Seconds after which a run is stopped and has failed; 0: none."
FILES = "params/<notebook>/<run>.yaml, a folder of them, a glob ..."
REPLACE = typer.Option("-p", metavar="NAME=VALUE", help="Replace a parameter.")
Overrides = Annotated[list[str] | None, REPLACE]
REPEATS = "Train what params/repeats.yaml lists too: other seeds and splits, and more methods."
REPORT = f"File for how every run ended: {', '.join(STATES)}; - prints it, and all else to stderr."


def announced(plans: list, force: bool) -> None:
    """Print what would be done, with the seconds that runs like it took here."""
    from statistics import median

    from osnb.book.run import done, lacking

    before, times, lost = _times(), [], Counter()
    for plan in plans:
        todo, keys = force or not done(plan), _keys(plan.notebook, plan.parameters, plan.follows)
        each = next((median(before[key]) for key in keys if before[key]), None)
        seconds = each and each * _epochs(plan.follows)
        words = "no estimate" if seconds is None else f"about {seconds:.0f} s"
        if todo:
            times.append(seconds)
            lost.update(filter(None, [lacking(plan)]))
        print(f"{plan!s:50} {'would run' if todo else 'up to date':10} {words}")
    known = [seconds for seconds in times if seconds is not None]
    total = f": about {sum(known):.0f} s one after another, from earlier runs" if known else ""
    more = f"; {len(times) - len(known)} without an estimate" if len(times) > len(known) else ""
    print(f"{len(plans)} runs, {len(times)} would run{total}{more}")
    for why, count in sorted(lost.items()):
        print(f"{count} of them would fail without their data: {why}")
    own = [plan.parameters for plan in plans if plan.trains and not plan.published]
    for values in {values["benchmark"]: values for values in own}.values():
        from osnb import experiment
        from osnb.experiment import examined

        machine = experiment.Machine.of(values["machine"], data=values["data"])
        said = examined.benchmark(experiment.of(values), machine)
        print(values["benchmark"], *said, sep="\n  ")


def _times() -> dict[tuple, list[float]]:
    """Seconds an epoch of the runs that this machine has finished, by each of their `_keys`."""
    here, times = record.owner()["host"], defaultdict(list)
    for run in (run for run in record.everything() if run.get("host") == here):
        for key in _keys(run["notebook"], run["parameters"], run):
            if seconds := record.seconds(run):
                times[key].append(seconds / _epochs(run))
    return times


def _epochs(run: Mapping) -> int:
    """Of a run that trains, by what it follows from; 1 of another."""
    return run.get("settings", {}).get("epochs", 1)


def _keys(notebook: str, parameters: Mapping, follows: Mapping) -> tuple[tuple, tuple]:
    """What runs of one experiment share, and what those of one notebook, size and network do."""
    kept = {k: v for k, v in parameters.items() if k not in workbook.REPEATS}
    network = follows.get("settings", {}).get("network") or {}
    alike = notebook, parameters.get("size"), repr(sorted(network.items()))
    return (notebook, repr(sorted(kept.items()))), alike


class Lines:
    """One line for every run: its name when it begins, where that can be told, and its end."""

    def __init__(self, count: int, file: TextIO):
        self.count, self.file, self.number, self.open = count, file, 1, ""

    def told(self, plan: Any, line: str = "") -> None:
        """The run's name, if it does not stand there yet, and what ends its line."""
        if self.open != str(plan):
            name = f"[{self.number}/{self.count}] {plan!s:50} "
            print(name, end="", flush=True, file=self.file)
        if line:
            print(record.plain(line), flush=True, file=self.file)
        self.open = "" if line else str(plan)


def _ending(plan, end: Mapping) -> str:
    """How a run ended, in a line or three."""
    state = end["state"]
    if state == "skipped":
        return "skipped, up to date"
    spent = f"{state} {end['seconds']:.0f} s" if "seconds" in end else state
    if state == "done":
        large = ", ".join(end["unpublished"])
        return spent + (f"; too large for figures/: {large}" if large else "")
    if not (error := end.get("error")):
        return spent
    if error["name"] == "NotRun":
        return f"not run: {error['value']}"
    place = f"cell In [{error['cell']}], " if error["cell"] else ""
    look = plan.directory / "executed.ipynb"
    # without seconds no kernel was begun, and what lies there is of an earlier attempt
    see = f"\n    see {look}" if "seconds" in end and look.is_file() else ""
    return f"{spent}\n    {place}{error['name']}: {error['value'].partition(chr(10))[0]}{see}"


def _with_options_of(start: Callable) -> Callable:
    """Decorate a command that ends in `**options`: it takes what `start` does, plans aside."""
    options = [each for name, each in signature(start).parameters.items() if name != "plans"]

    def decorate(command: Callable) -> Callable:
        own = signature(command)
        kept = [each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD]
        command.__signature__ = own.replace(parameters=kept + options)
        command.__annotations__ |= {each.name: each.annotation for each in options}
        return command

    return decorate


def start(
    plans: list,
    *,
    force: Annotated[bool, typer.Option("--force", help=FORCE)] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would run.")] = False,
    workers: Annotated[int, typer.Option(min=0, help=WORKERS)] = 0,
    scheduler: Annotated[str, typer.Option(metavar="ADDRESS", help=SCHEDULER)] = "",
    tls: Annotated[Path | None, typer.Option(help=TLS)] = None,
    time_limit: Annotated[float, typer.Option(min=0, help=LIMIT)] = 0,
    report: Annotated[Path | None, typer.Option("--json", help=REPORT, callback=regular)] = None,
) -> None:
    """Make the runs, or only say what would be done; leaves with the exit code.

    Raises:
        ValueError: the way in which runs are to be spread cannot be.
    """
    from osnb.book import batch

    if dry_run and report:
        raise ValueError("--json tells how runs ended, and --dry-run makes none: leave one out")
    _for_kernels()
    unheld()
    plans = batch.ordered(plans)
    # json alone is what a program reads
    lines = Lines(len(plans), sys.stderr if str(report) == "-" else sys.stdout)
    engine = batch.engine(plans, workers=workers, scheduler=scheduler, tls=tls, told=lines.told)
    if dry_run:
        announced(plans, force)
        raise typer.Exit(0)
    _check_report(report, plans)
    if any(plan.trains for plan in plans) and not find_spec("torch"):
        raise ModuleNotFoundError("training needs torch", name="torch")
    raise typer.Exit(_make(plans, engine, lines, report, force=force, limit=time_limit))


def _for_kernels() -> None:
    """Let folders of the environment mean the same to kernels, which work in the notebooks'."""
    if workbook.out() != workbook.root():
        os.environ["OSNB_OUT"] = str(workbook.out())
    if os.environ.get("OSNB_DATA"):
        os.environ["OSNB_DATA"] = str(workbook.data(""))


def _check_report(report: Path | None, plans: list) -> None:
    """Write what holds if we are killed; refuse a file that could not be written later."""
    if not report or str(report) == "-":
        return
    try:
        written(report, _counted({str(plan): plan.known | NOT_BEGUN for plan in plans}))
    except OSError as error:
        raise ValueError(f"--json {report} cannot be written: {error.strerror}") from None


def _make(plans: list, engine, lines: Lines, report: Path | None, **how) -> int:
    """Execute the plans, one line each; the exit code."""
    from osnb.book import batch

    # a closed terminal and SIGTERM are Ctrl-C, so that a run says interrupted
    for sign in (signal.SIGTERM, *batch.HANG_UP):
        if signal.getsignal(sign) != signal.SIG_IGN:  # as under nohup
            signal.signal(sign, signal.default_int_handler)
    since, begun, ends, stopped = time.monotonic(), record.now(), {}, {}
    try:
        with engine as spread:
            for plan, end in batch.carry_out(plans, spread=spread, **how):
                ends[str(plan)] = plan.known | end
                lines.told(plan, _ending(plan, end))
                lines.number += 1
    except Exception as error:
        why = record.failed(error)["error"]
        stopped["error"] = f"{why['name']}: {why['value']}"
        raise
    finally:
        for plan in (plan for plan in plans if str(plan) not in ends):  # we are stopped
            end = record.read(plan.directory) or {}
            ours = end.get("started", "") >= begun and end["state"] in STATES
            ends[str(plan)] = end if ours else plan.known | NOT_BEGUN
        if report:
            written(report, _counted(ends) | stopped)
    counts = _counted(ends)
    shown = [state for state in STATES if counts[state] or state in STATES[:3]]
    total = ", ".join(f"{counts[state]} {state}" for state in shown)
    spent = f"{time.monotonic() - since:.0f} s"
    place = workbook.out() / ("figures" if any(plan.published for plan in plans) else "runs")
    print(f"{total} in {spent}; figures are in {place}", file=lines.file)
    return 1 if counts["failed"] or counts["interrupted"] else 0


def _counted(ends: Mapping[str, dict]) -> dict:
    """What --json says: how every run ended, and how many ended so."""
    counts, rows = Counter(end["state"] for end in ends.values()), []
    for end in ends.values():
        rows.append({key: end[key] for key in BRIEF if key in end})
        if error := end.get("error"):
            rows[-1]["reason"] = f"{error['name']}: {error['value']}"
    return {"runs": rows, **{state: counts[state] for state in STATES}}


@_with_options_of(start)
def run(
    files: Annotated[list[str], typer.Argument(help=FILES)],
    p: Overrides = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds to run, from the file's own up.")] = 1,
    **options,
) -> None:
    """Run the notebook of each params file, after strict checks.

    Runs of size own leave their results under runs/ in the folder where this is called.
    """
    from osnb.book.run import plan

    given, named, there = overrides(p), {}, _files(files)
    at_home(there)
    for file in there:
        apart(file, to=(options["report"],))
        first = plan(file, given)
        seed = first.parameters.get("seed", 0)
        more = (plan(file, given | {"seed": seed + n}) for n in range(1, seeds))
        for each in (first, *more):
            same, other = named.setdefault(str(each), (each, file))
            if same.parameters != each.parameters:
                raise ValueError(f"{other} and {file} would both make {each}: rename one of them")
    start([each for each, _ in named.values()], **options)


def at_home(files: list[Path]) -> None:
    """Let the working folder be the one that is written under if a params file is of size own."""
    from osnb.book.run import read

    for file in [file for file in files if read(file).get("size") == "own"]:
        here(file.absolute().parent.parent)


def here(folder: Path) -> None:
    """Write under the working folder: if $OSNB_OUT names none, or if one's own files lie here."""
    told, cwd = os.environ.get("OSNB_OUT"), Path.cwd()
    if not told or folder.resolve() == cwd.resolve():
        if told and Path(told).resolve() != cwd.resolve():
            where = f"runs of your own files lie under {cwd}, not under OSNB_OUT={told}"
            print(f"{where}: unset it to see them", file=sys.stderr)
        os.environ["OSNB_OUT"] = str(cwd)


def _files(texts: list[str]) -> list[Path]:
    """The params files that files, folders and globs stand for, without repetition.

    A folder that is not called after a notebook stands for the folders in it.
    """
    import glob

    chosen = {}
    for text in texts:
        if not text.strip():
            raise ValueError("need a params file, a folder of them or a glob; got an empty text")
        files = [Path(text)]
        if files[0].is_dir():
            notebook = workbook.root() / "notebooks" / f"{files[0].absolute().name}.ipynb"
            inner = [] if notebook.is_file() else sorted(files[0].glob("*/*.yaml"))
            files = inner or sorted(files[0].glob("*.yaml"))
        elif not files[0].exists() and glob.has_magic(text):
            files = [Path(name) for name in sorted(glob.glob(text)) if Path(name).is_file()]
        if not files:
            raise ValueError(f"no params file (*.yaml) is in {text}")
        chosen |= dict.fromkeys(files)
    return [*chosen]


def overrides(texts: list[str] | None) -> dict[str, str]:
    """Values by name, of NAME=VALUE."""
    values = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"-p needs NAME=VALUE, such as seed=3; got {text!r}")
        if name.strip() in values:
            raise ValueError(f"-p {name.strip()} is given twice")
        values[name.strip()] = value
    return values


@_with_options_of(start)
def reproduce(
    paper: Annotated[str, typer.Option(help=f"One of {', '.join(PAPERS)}; all if left out.")] = "",
    size: Annotated[str, typer.Option(help="Size of the runs: mini, tiny or paper.")] = "mini",
    repeats: Annotated[bool, typer.Option("--repeats", help=REPEATS)] = False,
    **options,
) -> None:
    """Make all runs of a size: trainings first, then results."""
    from osnb.book.run import SIZES, later, plan, repeated

    sizes = [each for each in SIZES if each != "own"]
    for value, valid in ((paper, ["", *PAPERS]), (size, sizes)):
        if value not in valid:
            raise ValueError(f"{value!r} is not one of: {', '.join(filter(None, valid))}")
    digits = f"0{PAPERS[paper]}" if paper else "".join(["0", *PAPERS.values(), CROSS, OWN])
    plans = [plan(file) for file in sorted((workbook.root() / "params").glob("*/*.yaml"))]
    chosen = [x for x in plans if x.size == size and x.notebook[0] in digits]
    if not chosen:
        raise ValueError(f"no params file has size: {size}" + (f" for {paper}" if paper else ""))
    for given in [x for x in chosen if x.parameters.get("method") == "released"]:
        chosen.remove(given)
        told = f"{given} trains nothing: osnb predict --benchmark params/{given}.yaml"
        typer.echo(told, err=True)
    rest = [x for x in chosen if later(x)] + [again for each in chosen for again in repeated(each)]
    if rest and not repeats:
        said = "of other seeds or splits or for the cross table alone, are read from figures/"
        typer.echo(f"{len(rest)} more, {said}: see --repeats", err=True)
    first = [x for x in chosen if not later(x)]
    start([*first, *(rest if repeats else [])], **options)
