"""Commands about trained networks: scores of test sets, verdicts on new images, many rules."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from osnb.base import workbook
from osnb.book.cli.look import Json
from osnb.book.cli.make import Overrides, at_home, overrides
from osnb.book.cli.scores import TO_COME, Seed, only_csv, promised, write

ALSO = "Another reader whose test images are unknown too, repeatable."
WEIGHTS = "File of weights: a checkpoint of ours, tensors by name, or released ones."
BENCHMARK = "For weights: your own, my.yaml, or NOTEBOOK/RUN.yaml, a params file of an experiment."
MODEL = "Your own network, MODULE:NAME, called with classes=K; it gives logits (N, K)."
IMAGES = "A folder of images, however deep, a csv file with a column path, or one image."
Run = Annotated[str, typer.Argument(metavar="[RUN]", help="A finished training run.")]
Weights = Annotated[Path | None, typer.Option(help=WEIGHTS)]
BenchmarkFile = Annotated[Path | None, typer.Option("--benchmark", help=BENCHMARK)]
Model = Annotated[str, typer.Option(metavar="MODULE:NAME", help=MODEL)]


def predict(
    run: Run = "",
    also: Annotated[list[str] | None, typer.Option(metavar="READER", help=ALSO)] = None,
    weights: Weights = None,
    benchmark: BenchmarkFile = None,
    model: Model = "",
    p: Overrides = None,
):
    """Scores of a trained network on any test set; nothing is trained.

    \b
    osnb predict paper_cifar10_softmax --also textures --also scenes
    osnb predict --benchmark params/21_vaze_train/paper_tinyimagenet_released.yaml -p split=3
    osnb predict --benchmark my.yaml --weights mine.pt --model mine:network
    """
    from osnb.book import predicting

    _one_network(run, benchmark, weights, model)
    more = {"also": " ".join(also), "counts": ""} if also else {}
    if run:
        planned, files = predicting.of_run(run, overrides(p) | more)
    else:
        planned, files = _of_weights(benchmark, weights, overrides(p) | more)
    end = predicting.predict(planned, files, model)
    if end["state"] != "done":
        raise ValueError(end["error"]["value"])
    print(f"{planned}: {planned.directory / 'scores.parquet'}, {end['seconds']:.0f} s")


def verdict(
    images: Annotated[Path, typer.Argument(metavar="IMAGES", help=IMAGES)],
    run: Run = "",
    tpr: Annotated[
        float | None, typer.Option(help="Share of the known to accept, at least.")
    ] = None,
    fpr: Annotated[
        float | None, typer.Option(help="Share of the unknown to accept, at most.")
    ] = None,
    risk: Annotated[float | None, typer.Option(help="Errors among the accepted, at most.")] = None,
    threshold: Annotated[float | None, typer.Option(help="Accept a score at or above it.")] = None,
    share: Annotated[float, typer.Option(help=TO_COME)] = 0,
    score: Annotated[str, typer.Option(help="The rule: a column of the scores.")] = "max_logit",
    weights: Weights = None,
    benchmark: BenchmarkFile = None,
    model: Model = "",
    p: Overrides = None,
    seed: Seed = 0,
    json: Json = None,
    out: Annotated[Path | None, typer.Option(help="csv file to write as well.")] = None,
):
    """A class or a rejection for each new image, by a trained network; nothing is trained.

    The threshold is given, or chosen on the benchmark's test images by --tpr, --fpr or --risk; so
    IMAGES should be none of these. They are read as the network's own images are.

    \b
    osnb verdict photos own_softmax --tpr .95 --out verdicts.csv
    osnb verdict photos --benchmark my.yaml --weights mine.pt --threshold 3.5
    """
    from osnb.book import predicting

    _one_network(run, benchmark, weights, model)
    only_csv(out)
    asked = {"tpr": tpr, "fpr": fpr, "risk": risk, "threshold": threshold}
    asked = {name: value for name, value in asked.items() if value is not None}
    if len(asked) != 1 or (run and p):
        raise ValueError("need one of --tpr, --fpr, --risk, --threshold; -p with --benchmark alone")
    if run:
        _, parameters, files = predicting.finished(run)
    else:
        planned, files = _of_weights(benchmark, weights, overrides(p))
        parameters = planned.parameters
    ((rate, at),) = asked.items()
    how = {"rate": rate, "at": at, "share": share, "seed": seed, "score": score, "model": model}
    rows, notes = predicting.verdicts(parameters, files, images, **how)
    at = float(rows["threshold"].iloc[0])
    if rate != "threshold":
        notes += promised(rate, asked[rate], [{"promise": "bound", "threshold": at}])
    accepted = rows["verdict"].str.startswith("accept").sum()
    title = f"{accepted} of {len(rows)} images are accepted, by {score} from {at}"
    about = {"run": run or str(benchmark), "score": score, "notes": notes}
    write(about | {"rows": rows.to_dict("records")}, json, out, title)


def _one_network(run: str, benchmark: Path | None, weights: Path | None, model: str) -> None:
    """Refuse what names no network, or two."""
    if bool(run) == bool(benchmark) or (run and (weights or model)):
        raise ValueError("need a finished RUN, or --benchmark FILE with what belongs to weights")


def _of_weights(benchmark: Path, weights: Path | None, given: dict[str, Any]):
    """The plan that a params file or a benchmark of one's own means, and the files of weights."""
    from osnb.book import predicting
    from osnb.book.run import plan

    notebook = workbook.root() / "notebooks" / f"{benchmark.absolute().parent.name}.ipynb"
    if weights and not notebook.is_file():
        os.environ.setdefault("OSNB_OUT", str(Path.cwd()))
        return predicting.of_weights(weights, benchmark, given), [weights]
    at_home([benchmark])
    planned = plan(benchmark, given)
    return planned, [weights] if weights else predicting.released(planned)


def rules(
    run: Annotated[str, typer.Argument(help="A training run that is done: RUN or NOTEBOOK/RUN.")],
    machine: Annotated[str, typer.Option(help="As in training notebooks: workers=4 ...")] = "",
    out: Annotated[Path | None, typer.Option(help="csv file of all scores to write.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep the measures in figures/.")] = False,
):
    """Thirty rules on one trained network: AUROC and seconds of each.

    Features are kept as features.npz beside the run. The file of --out is one for `osnb score`.
    --save writes rules.csv and its stamp: AUROC with intervals, and the best rule as picked on half
    of the unknown classes. Thirteen rules are pytorch-ood's, which has to be installed.
    """
    from osnb import experiment
    from osnb.book import predicting
    from osnb.experiment import cached

    only_csv(out)
    key, parameters, _ = predicting.finished(run)
    where = experiment.Machine.of(machine, data=parameters.get("data", ""))
    kept = cached.said(experiment.of(parameters), workbook.out() / "runs" / key, where)
    table, seconds = cached.scored(kept)
    if out:
        workbook.write_csv(out, table.drop(columns="task"))
    if save:
        _save(key, parameters, table, inputs={"checkpoint": str(kept["checkpoint"])})
    print(f"{key}: AUROC of {len(seconds)} rules, known against")
    print(cached.compared(table, seconds).to_string(float_format="{:.3f}".format))


def _save(key: str, parameters: dict[str, Any], table, inputs: dict[str, str]) -> None:
    """Measures of the rules as figures/NOTEBOOK/SIZE_rules_RUN/rules.csv, with a stamp."""
    from osnb import scores
    from osnb.book import runs
    from osnb.evidence import samples

    own = scores.own({k: x.to_numpy() for k, x in table.items() if k != "task"})
    groups = table["task"].str.split().str[-1].to_numpy()  # "letters far" and "far" are far
    measured = samples.measured(own, groups, seed=0, resamples=2000)
    notebook, run = key.split("/")
    name = run.replace("_", "_rules_", 1)  # no run of params/, and none for `tables.collect`
    follows = runs.follows_from(notebook, parameters | {"run": name})
    folder = workbook.out() / "figures" / notebook / name
    here = runs.Run(notebook, name, folder, follows)
    here.save("rules", table=measured, inputs=inputs)


COMMANDS = (predict, verdict, rules)
