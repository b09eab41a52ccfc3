"""Commands that look at runs: what is done, running, failed, and why."""

import math
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from osnb.cli.lines import written

ORDER = ("running", "failed", "interrupted", "queued", "done")
WIDE = 160  # columns where there is no terminal to ask
STRANGE = (AttributeError, KeyError, TypeError, ValueError)  # values of other types do that
MANY = 60  # rows beyond which those that are done are only counted


def status(
    everything: Annotated[bool, typer.Option("--all", help="Rows for runs that are done.")] = False,
    once: Annotated[
        bool, typer.Option("--once", help="Do not follow runs until they end.")
    ] = False,
    file: Annotated[
        Path | None, typer.Option("--json", help="File to write instead; - prints it.")
    ] = None,
):
    """A table of the runs and how they go; in a terminal it follows them until they end."""
    from rich.live import Live

    from osnb import record, repro

    runs = record.everything()
    if file:
        return written(file, _counted(runs))
    if not runs:
        print(f"no run in {repro.out() / 'runs'} yet; make reproduce makes the miniature ones")
        return None
    console = _console()
    if not console.is_terminal:
        console.width = WIDE
    if once or not console.is_terminal or not _going(runs):
        console.print(_table(runs, everything))
        return None
    with Live(_table(runs, everything), console=console, auto_refresh=False) as live:
        while _going(runs):
            time.sleep(1)
            runs = record.everything()
            live.update(_table(runs, everything), refresh=True)
    return None


def _console():
    """A console that takes no word of a run for markup or for the name of a picture."""
    from rich.console import Console

    return Console(markup=False, emoji=False)


def _plain(value: Any) -> Any:
    """A value of a run.json with what a terminal would obey written out: \\x1b of an escape."""
    if isinstance(value, Mapping):
        return {_plain(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if not isinstance(value, str) or value.isprintable():
        return value
    return "".join(x if x.isprintable() or x in "\n\t" else repr(x)[1:-1] for x in value)


def _going(runs: list[dict]) -> bool:
    return any(run["state"] in ("running", "queued") for run in runs)


def _counted(runs: list[dict]) -> dict[str, Any]:
    """What `osnb status --json` says: counts by state, and the state of every run."""
    counts = Counter(run["state"] for run in runs)
    return {
        "counts": {state: counts[state] for state in ORDER},
        "gpus": _gpus(),
        "runs": [
            {key: run.get(key) for key in ("notebook", "run", "state", "seconds", "finished")}
            | (_progress(run) if run["state"] == "running" else {})
            for run in runs
        ],
    }


def _table(runs: list[dict], everything: bool):
    """The table: counts on top, what is not done first."""
    from rich.table import Table

    counts = Counter(run["state"] for run in runs)
    title = ", ".join(f"{counts[state]} {state}" for state in ORDER if counts[state])
    few = everything or len(runs) <= MANY
    shown = [run for run in runs if few or run["state"] != "done"]
    shown = sorted(shown, key=lambda run: ORDER.index(run["state"]))[: None if few else MANY]
    rest = f"{len(runs) - len(shown)} more: osnb status --all" if len(shown) < len(runs) else None
    columns = ("notebook", "run", "state", "progress", "left", "last", "seconds", "finished")
    table = Table(*columns, box=None, title="\n".join([title, *_gpus()]), caption=rest)
    for run in shown:
        table.add_row(*(_plain(str(cell)) for cell in _row(run)))
    return table


def _row(run: dict) -> tuple[str, ...]:
    """The cells of a run; of one whose run.json somebody else has written, perhaps a few."""
    try:
        return _cells(run)
    except STRANGE:
        return run["notebook"], run["run"], run["state"], "", "", "run.json says strange things"


def _cells(run: dict) -> tuple[str, ...]:
    going = _progress(run) if run["state"] == "running" else {}
    done = f"{100 * going['share']:.0f} %" if "share" in going else ""
    left = _duration(going["left"]) if "left" in going else ""
    measures = run.get("checklist", {}).get("measures at the end") or going.get("measures") or {}
    known = [key for key in ("loss", "best") if measures.get(key) is not None]
    last = ", ".join(f"{key} {measures[key]:.3f}" for key in known)
    spent = f"{run['seconds']:.0f}" if "seconds" in run else ""
    end = run.get("finished", "")[:16].replace("T", " ")
    return run["notebook"], run["run"], run["state"], done, left, last, spent, end


def _progress(run: Mapping) -> dict[str, Any]:
    """Share done, seconds left and last measures of a run that is running, as far as it tells.

    Of a training run the epochs count, of others the cells.
    """
    from osnb import repro

    file = repro.out() / "runs" / run["notebook"] / run["run"] / "history.parquet"
    epochs, since = run["parameters"].get("epochs"), run.get("resumed", 0)
    if epochs and file.is_file():
        import pyarrow.parquet as pq

        last = pq.read_table(file).to_pylist()[-1]
        share, now = last["epoch"] / epochs, (last["epoch"] - since) / max(epochs - since, 1)
        measures = {"measures": last}
    elif run["notebook"].endswith("_train"):  # cells tell nothing of what training takes
        return {"share": 0.0}
    elif "progress" in run:
        share = now = (run["progress"]["cell"] - 1) / run["progress"]["of"]
        measures = {}
    else:
        return {}
    spent = (datetime.now(UTC) - datetime.fromisoformat(run["started"])).total_seconds()
    left = {"left": round(spent * (1 - now) / now, 1)} if 0 < now <= 1 else {}
    return {"share": round(share, 3), **left, **measures}


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def _gpus() -> list[str]:
    """What each GPU of this machine is doing, in a line."""
    from osnb import record

    asked = "--query-gpu=index,name,utilization.gpu,memory.used,memory.total"
    lines = (record.said("nvidia-smi", asked, "--format=csv,noheader") or "").splitlines()
    return [f"GPU {line}" for line in lines]


def show(
    name: Annotated[str, typer.Argument(help="<run> or <notebook>/<run>", metavar="RUN")],
    file: Annotated[
        Path | None, typer.Option("--json", help="File for all of run.json; - prints it.")
    ] = None,
):
    """How a run went: parameters, history, figures, and why it failed."""
    from osnb import record

    runs = record.everything()
    found = [x for x in runs if name in (x["run"], f"{x['notebook']}/{x['run']}")]
    if not found:
        raise ValueError(f"no run is called {name!r}; {_plain(_nearest(name, runs))}")
    if file:
        return written(file, {f"{x['notebook']}/{x['run']}": x for x in found})
    for each in found:
        try:
            parts = [*_shown(_plain(each))]
        except STRANGE:
            parts = [f"its run.json says strange things; osnb show {name} --json - prints it"]
        for part in parts:
            _console().print(part)
    return None


def _nearest(name: str, runs: list[dict]) -> str:
    from difflib import get_close_matches

    names = [f"{x['notebook']}/{x['run']}" for x in runs]
    runs_only = {x["run"]: f"{x['notebook']}/{x['run']}" for x in runs}
    close = [runs_only.get(x, x) for x in get_close_matches(name, [*names, *runs_only], n=5)]
    return f"there are: {', '.join(close or names[:20]) or 'none'}"


def _shown(run: dict):
    """The parts of what `osnb show` prints: a head, why it failed, parameters, history, files."""
    from rich.table import Table

    from osnb import repro

    folder = repro.out() / "runs" / run["notebook"] / run["run"]
    spent = f" in {run['seconds']:.0f} s" if "seconds" in run else ""
    tries = len(run.get("attempts", []))
    yield f"{run['notebook']}/{run['run']}: {run['state']}{spent}, attempt {tries + 1}"
    yield _made(run)
    if "error" in run:
        error = run["error"]
        place = f" in cell In [{error['cell']}]" if error.get("cell") else ""
        yield f"{error['name']}{place}: {error['value']}"
        yield from (f"  | {line}" for line in error.get("tail", []))
    parameters = Table("parameter", "value", box=None)
    for key, value in run["parameters"].items():
        parameters.add_row(key, repr(value))
    yield parameters
    if (folder / "history.parquet").is_file():
        yield _history(folder / "history.parquet")
    files = sorted(
        file for pattern in ("*.svg", "*.csv", "*.ipynb") for file in folder.glob(pattern)
    )
    yield "\n".join(map(str, files)) or f"no figures in {folder}"


def _made(run: dict) -> str:
    """Where, with what and from what it was made."""
    used = run.get("used", {})
    peak = f", peak {used['memory'] / 1e9:.2f} GB" if used.get("memory") else ""
    on_gpu = f", {used['gpu'] / 1e9:.2f} GB on the GPU" if used.get("gpu") else ""
    dirty = " with changes" if run.get("dirty") else ""
    where = f"{used.get('device', run.get('processor', ''))} of {run['host']}{peak}{on_gpu}"
    return f"on {where}; commit {run.get('commit')}{dirty}"


def _history(file: Path):
    """The epochs, the first, the last and some between."""
    import pyarrow.parquet as pq
    from rich.table import Table

    rows = pq.read_table(file).to_pylist()
    step = max(1, len(rows) // 10)
    table = Table(*_plain([*rows[0]]), box=None)
    for row in [*rows[:-1:step], rows[-1]]:
        table.add_row(*(f"{math.nan if value is None else value:.4g}" for value in row.values()))
    return table


COMMANDS = {"status": status, "show": show}
