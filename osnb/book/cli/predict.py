"""The command that scores weights which are there already."""

from pathlib import Path
from typing import Annotated

import typer

from osnb.book.cli.make import overrides

ALSO = "Another reader whose test images are unknown too, repeatable."
WEIGHTS = "File of weights: a checkpoint of ours, tensors by name, or released ones."
BENCHMARK = "For weights: FOLDER/NOTEBOOK/RUN.yaml, a params file of an experiment."
MODEL = "Your own network, MODULE:NAME, called with classes=K; it gives logits (N, K)."


def predict(
    run: Annotated[str, typer.Argument(metavar="[RUN]", help="A finished training run.")] = "",
    also: Annotated[list[str] | None, typer.Option(metavar="READER", help=ALSO)] = None,
    weights: Annotated[Path | None, typer.Option(help=WEIGHTS)] = None,
    benchmark: Annotated[Path | None, typer.Option(help=BENCHMARK)] = None,
    model: Annotated[str, typer.Option(metavar="MODULE:NAME", help=MODEL)] = "",
    p: Annotated[
        list[str] | None, typer.Option("-p", metavar="NAME=VALUE", help="Replace a parameter.")
    ] = None,
):
    """Scores of a trained network on any test set; nothing is trained.

    \b
    osnb predict paper_cifar10_softmax --also textures --also scenes
    osnb predict --benchmark params/21_vaze_train/paper_tinyimagenet_released.yaml -p split=3
    osnb predict --benchmark own/21_vaze_train/mine.yaml --weights mine.pt --model mine:network
    """
    from osnb.book import predicting
    from osnb.book.run import plan

    if bool(run) == bool(benchmark) or (run and (weights or model)):
        raise ValueError("need a finished RUN, or --benchmark FILE with what belongs to weights")
    more = {"also": " ".join(also), "counts": ""} if also else {}
    if run:
        planned, files = predicting.of_run(run, overrides(p or []) | more)
    else:
        planned = plan(benchmark, overrides(p or []) | more)
        files = [weights] if weights else predicting.released(planned)
    end = predicting.predict(planned, files, model)
    if end["state"] != "done":
        raise ValueError(end["error"]["value"])
    print(f"{planned}: {planned.directory / 'scores.parquet'}, {end['seconds']:.0f} s")
