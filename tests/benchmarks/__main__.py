"""Ours beside the alternatives: tables printed, and written as json.

    python -m tests.benchmarks metrics   all metrics of a column beside public libraries and a sort
    python -m tests.benchmarks train     a step and a prediction beside the plain float32 loop
    python -m tests.benchmarks data      pixels and photographs to batches beside Pillow
    python -m tests.benchmarks start     a notebook that only imports beside plain papermill
    python -m tests.benchmarks batch     runs of nothing through the engine
    python -m tests.benchmarks wall      what full trainings cost here and on a GPU, worked out
    python -m tests.benchmarks minutes   AUROC over minutes: the fast recipe beside VGG32, CIFAR-10
    python -m tests.benchmarks codec     what finished trainings say of known images saved as JPEG
    python -m tests.benchmarks thresholds   how often a promise is broken, 1,000 sets each

Each has --help. Run it from the top of the project, with nothing else running.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from osnb.book.cli.look import written


class Listed(TyperGroup):
    """Commands that answer a wrong name with the right ones."""

    def get_command(self, ctx, name):
        from osnb.base.catalogue import Catalogue

        return Catalogue(self.commands)[name]


app = typer.Typer(cls=Listed, no_args_is_help=True, help="Time this package beside others.")
Json = Annotated[
    Path | None, typer.Option("--json", help="File to write as well; - prints it alone.")
]
Rounds = Annotated[int, typer.Option(min=1, help="How often each is timed, in turns.")]


def _report(found: dict, show: Callable[[dict], list], file: Path | None) -> None:
    """Write a report, if a file is given, and print it."""
    from rich.console import Console

    if file:
        written(file, found)
    if str(file) != "-":
        Console(markup=False, highlight=False, soft_wrap=True).print(*show(found), sep="\n")


@app.command("metrics")
def bench_metrics(
    rows: Annotated[list[int] | None, typer.Option(min=100, help="A size; may repeat.")] = None,
    repeats: Rounds = 5,
    memory: Annotated[int | None, typer.Option(min=100, help="Take one size's memory.")] = None,
    double: Annotated[bool, typer.Option("--double", help="--memory of float64 scores.")] = False,
    file: Json = None,
):
    """Time all metrics of one scores column beside public libraries and a bare sort."""
    from tests.benchmarks import metrics

    if memory:
        found = metrics.memory(memory, kind="float64" if double else "float32")
        _report(found, metrics.show_memory, file)
    else:
        _report(metrics.compare(rows or metrics.ROWS, repeats=repeats), metrics.show, file)


@app.command("train")
def bench_train(rounds: Rounds = 3, file: Json = None):
    """Time a training step and a prediction beside the plain float32 loop."""
    from tests.benchmarks import train

    _report(train.compare(rounds=rounds), train.show, file)


@app.command("data")
def bench_data(
    rounds: Rounds = 5,
    folder: Annotated[
        Path | None, typer.Option(help="Photographs to read; drawn ones if left out.")
    ] = None,
    file: Json = None,
):
    """Time small images from memory and photographs from files beside Pillow's way."""
    from tests.benchmarks import data

    _report(data.compare(rounds=rounds, folder=folder), data.show, file)


@app.command("start")
def bench_start(rounds: Rounds = 5, file: Json = None):
    """Time a notebook that only imports, by osnb run and by plain papermill."""
    from tests.benchmarks import runs

    _report(runs.start(rounds=rounds), runs.show_start, file)


@app.command("batch")
def bench_batch(
    runs: Annotated[int, typer.Option(min=1, help="Runs of nothing.")] = 10_000,
    tables: Annotated[int, typer.Option(min=1, help="Finished runs to collect.")] = 1_000,
    workers: Annotated[int, typer.Option(min=1, help="Processes that make them.")] = 2,
    file: Json = None,
):
    """Time planning, spreading, looking at and collecting runs that do nothing."""
    from tests.benchmarks import runs as bench

    _report(bench.batch(runs=runs, tables=tables, workers=workers), bench.show_batch, file)


@app.command("thresholds")
def bench_thresholds(
    sets: Annotated[int, typer.Option(min=1, help="Calibration sets of each kind.")] = 1_000,
    file: Json = None,
):
    """Count how often thresholds break what they promise, on scores of three shapes."""
    from tests.benchmarks import thresholds

    _report(thresholds.trials(sets=sets), thresholds.show, file)


@app.command("codec")
def bench_codec(
    runs: Annotated[list[str], typer.Argument(help="Finished training runs.")],
    data: Annotated[str, typer.Option(help="Folder of the data; $OSNB_DATA if empty.")] = "",
    file: Json = None,
):
    """Ask trained networks about known test images that are saved once more as JPEG."""
    from tests.benchmarks import codec

    rows = [row for run in runs for row in codec.asked(run, data=data)]
    _report({"rows": rows}, codec.show, file)


@app.command("minutes")
def bench_minutes(
    rounds: Rounds = 3,
    data: Annotated[str, typer.Option(help="Folder of the data; $OSNB_DATA if empty.")] = "",
    figure: Annotated[Path | None, typer.Option(help="An svg to draw.")] = None,
    file: Json = None,
):
    """Set AUROC of finished trainings on CIFAR-10 beside the minutes that they take here."""
    from tests.benchmarks import minutes

    found = minutes.compare(rounds=rounds, data=data)
    if figure:
        minutes.drawn(found).savefig(figure)
    _report(found, minutes.show, file)


@app.command("wall")
def bench_wall(
    speed: Annotated[float, typer.Option(min=1, help="Images/s of a VGG32's step here.")] = 745,
    fair: Annotated[float, typer.Option(min=1, help="GPU seconds for its 600 epochs.")] = 60,
    file: Json = None,
):
    """Work out what the papers' trainings cost; add up the seconds of finished runs."""
    from tests.benchmarks import wall

    _report(wall.costs(speed=speed, fair=fair), wall.show, file)


if __name__ == "__main__":
    try:
        app(prog_name="python -m tests.benchmarks")
    except (KeyError, OSError, RuntimeError, ValueError) as error:
        sys.exit(f"benchmarks: {error.args[0] if isinstance(error, KeyError) else error}")
