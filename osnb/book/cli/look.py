"""Commands that look at runs: what is done, running, failed, and why."""

import json
import math
import os
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from osnb.base import workbook
from osnb.book import record

COLUMNS = ("notebook", "run", "state", "progress", "left", "last", "seconds", "finished")
STRANGE = (AttributeError, KeyError, TypeError, ValueError)  # values of other types do that
JSON = "Also write the result as JSON to this file; - prints it alone."
UNHELD = (
    "numerical code has changed since it was last held against the goldens: what is done counts by "
    "them, what is made now rests on the code as it is; osnb verify --golden holds it against them"
)
MANY = 60  # rows beyond which those that are done are only counted


def regular(file: Path | None) -> Path | None:
    """The file to write, behind a link: a device or a pipe would be replaced by it."""
    if file is None or str(file) == "-":
        return file
    if file.exists() and not file.is_file():
        raise ValueError(f"{file} is no regular file: name another")
    return Path(os.path.realpath(file)) if file.is_symlink() else file


def apart(*read: Path | None, to: tuple[Path | None, ...]) -> None:
    """Refuse to write over a file that is read."""
    there = [file for file in read if file and file.exists()]
    for file in (file for file in to if file and file.exists()):
        if any(map(file.samefile, there)):
            raise ValueError(f"{file} is read by this command: name another file to write")


Json = Annotated[Path | None, typer.Option("--json", help=JSON, callback=regular)]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]


def written(file: Path | None, content: Any) -> bool:
    """Write json to a file, or print it if that is called -; what is not finite is null.

    Returns:
        Whether it was printed, so that nothing else is.
    """
    if alone := str(file) == "-":
        print(json.dumps(_finite(content), indent=1, sort_keys=True, allow_nan=False))
    elif file:
        workbook.write_json(file, _finite(content))
    return alone


def _finite(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [*map(_finite, content)]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def unheld() -> None:
    """Say so, where numerical code has changed that nobody has held against the goldens."""
    from osnb.book import follows

    if not follows.hold():
        typer.echo(f"osnb: {UNHELD}", err=True)


def status(
    everything: Annotated[bool, typer.Option("--all", help="Rows for runs that are done.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Do not follow till they end.")] = False,
    file: Json = None,
) -> None:
    """Show how the runs go. In a terminal it follows them until they end."""
    from rich.console import Console
    from rich.live import Live

    runs = record.everything()
    if written(file, _counted(runs)):
        return None
    if not runs:
        print(f"no run in {workbook.out() / 'runs'} yet; make reproduce makes the miniature ones")
        return None
    screen = Console(markup=False, emoji=False)  # no word of a run is one
    if once or file or not screen.is_terminal:
        screen.width = screen.width if screen.is_terminal else 160
        return screen.print(_table(runs, everything))
    with Live(_table(runs, everything), console=screen, auto_refresh=False) as live:
        while any(map(record.going, runs)):
            time.sleep(1)
            runs = record.everything()
            live.update(_table(runs, everything), refresh=True)
    return None


def _counted(runs: list[dict]) -> dict[str, Any]:
    """What `osnb status --json` says: counts by state, and the state of every run."""
    counts = Counter(run["state"] for run in runs)
    keys = ("notebook", "run", "state", "seconds", "finished")
    rows = [{key: run.get(key) for key in keys} | _progress(run) for run in runs]
    return {"counts": {x: counts[x] for x in record.STATES}, "runs": rows}


def _table(runs: list[dict], everything: bool):
    """The table: counts on top, what is not done first."""
    from rich.table import Table

    counts = Counter(run["state"] for run in runs)
    title = ", ".join(f"{counts[state]} {state}" for state in record.STATES if counts[state])
    shown = sorted(runs, key=lambda run: record.STATES.index(run["state"]))
    if not everything and len(runs) > MANY:
        shown = [run for run in shown if run["state"] != "done"][:MANY]
    left = len(runs) - len(shown)
    rest = f"{left} more: osnb status --all" if left else None
    table = Table(*COLUMNS, box=None, title=title, caption=rest)
    for run in shown:
        cells = ("", "", "run.json says strange things")
        with suppress(*STRANGE):  # somebody else has written it
            cells = _cells(run)
        row = (run["notebook"], run["run"], run["state"], *cells)
        table.add_row(*(record.plain(str(x)) for x in row))
    return table


def _cells(run: dict) -> tuple[str, ...]:
    """Progress, left, last, seconds and finished of a run."""
    going = _progress(run)
    done = f"{100 * going['share']:.0f} %" if "share" in going else ""
    left = str(timedelta(seconds=round(going["left"]))) if "left" in going else ""
    measures = run.get("measures") or going.get("measures") or {}
    known = [key for key in ("loss", "best") if measures.get(key) is not None]
    last = ", ".join(f"{key} {measures[key]:.3f}" for key in known)
    spent = f"{run['seconds']:.0f}" if "seconds" in run else ""
    return done, left, last, spent, run.get("finished", "")[:16].replace("T", " ")


def _progress(run: Mapping) -> dict[str, Any]:
    """Share done, seconds left and last measures of a training that is running."""
    epochs, since = run.get("settings", {}).get("epochs"), run.get("resumed", 0)
    if run["state"] != "running" or not epochs:
        return {}
    file = workbook.out() / "runs" / run["notebook"] / run["run"] / "history.parquet"
    if not (rows := record.rows(file)):
        return {"share": 0.0}
    epoch = rows[-1]["epoch"]
    now = (epoch - since) / max(epochs - since, 1)
    spent = (datetime.now(UTC) - datetime.fromisoformat(run["started"])).total_seconds()
    left = {"left": round(spent * (1 - now) / now, 1)} if 0 < now <= 1 else {}
    return {"share": round(epoch / epochs, 3), "measures": rows[-1], **left}


def show(
    name: Annotated[str, typer.Argument(help="<run> or <notebook>/<run>", metavar="RUN")],
    file: Json = None,
) -> None:
    """Show one run: parameters, history, files, why it failed."""
    chosen = record.named(name)
    if written(file, chosen):
        return
    for key, run in chosen.items():
        try:
            print(record.plain("\n".join(_shown(key, run))))
        except STRANGE:
            see = f"osnb show {record.plain(name)} --json - prints it"
            print(f"its run.json says strange things; {see}")


def _shown(key: str, run: dict) -> list[str]:
    """What `osnb show` prints: a head, why it failed, parameters, history, files."""
    folder = workbook.out() / "runs" / key
    spent = f" in {run['seconds']:.0f} s" if "seconds" in run else ""
    lines = [f"{key}: {run['state']}{spent}, attempt {len(run.get('attempts', [])) + 1}"]
    used = run.get("used", {})
    peak = f", peak {used['memory'] / 1e9:.2f} GB" if used.get("memory") else ""
    on_gpu = f", {used['gpu'] / 1e9:.2f} GB on the GPU" if used.get("gpu") else ""
    where = f"{used.get('device', run.get('processor', ''))} of {run['host']}{peak}{on_gpu}"
    dirty = " with changes" if run.get("dirty") else ""
    lines.append(f"on {where}; commit {run.get('commit')}{dirty}")
    if "error" in run:
        error = run["error"]
        place = f" in cell In [{error['cell']}]" if error.get("cell") else ""
        lines.append(f"{error['name']}{place}: {error['value']}")
        lines += [f"  | {line}" for line in error.get("tail", [])]
    if run.get("inputs"):
        lines.append(f"reads the scores of {', '.join(sorted(run['inputs']))}")
    wide = max(map(len, run["parameters"]), default=0)
    lines += ["", *(f"{name:{wide}}  {value!r}" for name, value in run["parameters"].items()), ""]
    if rows := record.rows(folder / "history.parquet"):
        import pandas as pd

        chosen = [*rows[: -1 : max(1, len(rows) // 10)], rows[-1]]  # some epochs
        table = pd.DataFrame(chosen).to_string(index=False, float_format="{:.4g}".format)
        lines += [table, ""]
    kinds = (".svg", ".csv", ".ipynb")
    files = sorted(str(file) for file in folder.glob("*") if file.suffix in kinds)
    return lines + (files or [f"no figures in {folder}"])
