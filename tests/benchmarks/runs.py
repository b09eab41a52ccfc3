"""What stands around a notebook's own work."""

import datetime
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from unittest.mock import patch

from tests.benchmarks.stopwatch import Clock, interleaved, machine, versions

PARAMS = "params/12_palechor_train/mini_p1_entropic.yaml"
CELLS = [
    'run: str = "full"\nsize: str = "mini"\nseed: int = 0',
    "import pandas, matplotlib.pyplot, seaborn, sklearn, scipy.stats, ipywidgets, torch\n"
    "from osnb import book, datasets, losses, metrics, models, plots, protocols, scores, train\n"
    "from osnb.evidence import claims, tables\n"
    "from osnb.plots import widgets\n"
    "from osnb.teach import exercise",
    "print(torch.ones(2).sum())",
]
TOOLS = ["papermill", "nbclient", "ipykernel", "distributed", "filelock"]


# One run: a kernel that imports the full stack, ours beside plain papermill.


def start(*, rounds: int = 5, clock: Clock = time.perf_counter) -> dict:
    """Time a notebook that only imports, by `osnb run` and by plain papermill, in turns.

    Returns:
        The settings, the machine, seconds of each round, and the ratio: median over rounds.
    """
    with tempfile.TemporaryDirectory() as place:
        calls = commands(Path(place))
        for call in calls.values():
            call()
        seconds = interleaved(calls, repeats=rounds, clock=clock)
    pairs = zip(seconds["osnb run"], seconds["papermill"], strict=True)
    ratio = median(ours / plain for ours, plain in pairs)
    settings = {"rounds": rounds, "date": f"{datetime.date.today()}", "ratio": ratio}
    return settings | machine() | {"versions": versions(TOOLS), "seconds": seconds}


def commands(place: Path) -> dict[str, Callable]:
    """Both ways to execute the notebook of `CELLS` in a project made in `place`."""
    from osnb.base import workbook

    (place / "osnb").symlink_to(workbook.PACKAGE)
    (place / "pyproject.toml").touch()
    cells = [_cell(text, number) for number, text in enumerate(CELLS)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}}
    source = place / "notebooks" / "90_full.ipynb"
    workbook.write_json(source, notebook | {"nbformat": 4, "nbformat_minor": 5})
    params = place / "params" / "90_full" / "full.yaml"
    params.parent.mkdir(parents=True)
    params.write_text("run: full\n")
    ours = [
        sys.executable,
        "-c",
        "from osnb.book.cli import app; app()",
        "run",
        "--force",
        str(params),
    ]
    plain = [sys.executable, "-m", "papermill", "--no-progress-bar", str(source)]
    plain += [str(place / "out.ipynb"), "-f", str(params)]
    env = os.environ | {"PYTHONPATH": str(place), "OSNB_OUT": str(place)}
    return {"osnb run": lambda: _said(ours, env), "papermill": lambda: _said(plain, env)}


def _cell(text: str, number: int) -> dict:
    tags = {"tags": ["parameters"]} if number == 0 else {}
    cell = {"cell_type": "code", "execution_count": None, "metadata": tags, "outputs": []}
    return cell | {"id": f"cell-{number}", "source": text}


def _said(command: list[str], env: Mapping[str, str]) -> str:
    found = subprocess.run(command, env=env, cwd=env["OSNB_OUT"], capture_output=True, text=True)
    if found.returncode:
        raise RuntimeError(f"{' '.join(command[:4])} failed: {found.stderr[-500:]}")
    return found.stdout


def show_start(found: dict) -> list[str]:
    """The lines of `start`."""
    lines = [f"A notebook that imports the full stack; {found['rounds']} rounds; {_where(found)}"]
    for name, seconds in found["seconds"].items():
        lines.append(
            f"  {name:10} {median(seconds):6.2f} s ({min(seconds):.2f}-{max(seconds):.2f})"
        )
    return [*lines, f"  ratio      {found['ratio']:6.2f}"]


def _where(found: dict) -> str:
    return f"{found['cpu']}, {found['cores']} cores, {found['date']}"


# Many runs: the engine with nothing to do.


def batch(*, runs: int = 10_000, tables: int = 1_000, workers: int = 2) -> dict:
    """Plan, spread, look at and collect runs whose notebook does nothing.

    Everything is as in `osnb run --workers`, but for the kernel: plans, locks, run.json, the
    workers' processes, files of results.

    Args:
        runs: how many are spread.
        tables: how many finished training runs are collected into one frame.
        workers: processes that make them.

    Returns:
        The settings, the machine, and seconds of each part; peak memory of this process.
    """
    with _apart() as place:
        found = _spread(runs, workers) | _looked(place)
    with _apart():
        found |= _collected(tables)
    settings = {"runs": runs, "tables": tables, "workers": workers}
    settings |= {"date": f"{datetime.date.today()}"}
    return settings | machine() | {"versions": versions(TOOLS)} | found


@contextmanager
def _apart() -> Iterator[str]:
    """An empty folder for what is written, gone afterwards."""
    before = os.environ.get("OSNB_OUT")
    with tempfile.TemporaryDirectory() as place:
        os.environ["OSNB_OUT"] = place
        try:
            yield place
        finally:
            os.environ.pop("OSNB_OUT")
            if before is not None:
                os.environ["OSNB_OUT"] = before


def _spread(runs: int, workers: int) -> dict[str, float]:
    from osnb.base import workbook
    from osnb.book import batch
    from osnb.book.run import plan

    begun = time.perf_counter()
    file = workbook.root() / PARAMS
    plans = [plan(file, {"seed": number}) for number in range(runs)]
    planned = time.perf_counter()
    with patch.object(batch, "work", pretend), batch.local(workers) as spread:
        ready = time.perf_counter()
        ends = [end for _, end in batch.carry_out(plans, spread=spread)]
        done = time.perf_counter()
    wrong = [end for end in ends if end["state"] != "done"]
    if wrong or len(ends) != runs:
        raise RuntimeError(f"{len(wrong)} of {len(ends)} runs are not done: {wrong[:1]}")
    parts = {"plan": planned - begun, "workers up": ready - planned, "engine": done - ready}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # before any is collected
    return parts | {"memory": memory}


def pretend(*sent, **how) -> dict:
    """What a worker does here in place of `batch.work`: the same without a kernel."""
    from osnb.book.batch import work

    return work(*sent, **how, through=_nothing)


def _nothing(plan) -> dict:
    for name in ("executed.ipynb", "scores.parquet"):
        (plan.directory / name).write_text("{}")
    return {"state": "done", "unpublished": plan.publish()}


def _looked(place: str) -> dict[str, float]:
    """Seconds of `osnb status`, with its start."""
    env = os.environ | {"OSNB_OUT": place}
    begun = time.perf_counter()
    _said([sys.executable, "-c", "from osnb.book.cli import app; app()", "status", "--once"], env)
    return {"status": time.perf_counter() - begun}


def _collected(count: int) -> dict[str, float]:
    """Seconds for one frame of so many scores tables, copies of a committed one."""
    import pandas as pd

    from osnb.base import stamps, workbook
    from osnb.evidence import tables

    source = workbook.root() / "figures" / "12_palechor_train" / Path(PARAMS).stem
    stamp = stamps.read(source / "scores.json")
    if stamp is None:
        raise FileNotFoundError(f"no whole stamp of a scores table in {source}")
    table = pd.read_parquet(source / "scores.parquet")
    for seed in range(1, 1 + count):
        name = f"{stamp['run']}-seed{seed}"
        folder = workbook.out() / "runs" / stamp["notebook"] / name
        folder.mkdir(parents=True)
        shutil.copy(source / "scores.parquet", folder)
        told = {key: stamp[key] | {"seed": seed} for key in ("parameters", "columns")}
        told["parameters"]["run"] = name
        stamps.write(folder / "scores.json", stamp | {"run": name} | told)
    begun = time.perf_counter()
    runs = tables.collect(stamp["notebook"], stamp["parameters"]["size"])
    frame = tables.stack(runs[runs["run"].str.startswith(f"{stamp['run']}-")], "seed")
    seconds = time.perf_counter() - begun
    if len(frame) != count * len(table):
        raise RuntimeError(f"need {count * len(table)} rows; got {len(frame)}")
    return {"collect": seconds, "rows": len(frame)}


def show_batch(found: dict) -> list[str]:
    """The lines of `batch`."""
    each = 1000 * found["engine"] / found["runs"]
    return [
        f"{found['runs']:,} runs of nothing on {found['workers']} workers; {_where(found)}",
        f"  planned in              {found['plan']:7.2f} s",
        f"  workers started in      {found['workers up']:7.2f} s",
        f"  queued and made in      {found['engine']:7.2f} s, {each:.1f} ms a run",
        f"  osnb status answers in  {found['status']:7.2f} s",
        f"  peak memory             {found['memory'] / 1e6:7.0f} MB of this process",
        f"  {found['tables']:,} finished runs as one frame of {found['rows']:,} rows in "
        f"{found['collect']:.2f} s",
    ]
