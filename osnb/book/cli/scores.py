"""Commands about scores: of a trained network, or of any origin; measures, and verdicts by them."""

import builtins
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from osnb.base import workbook
from osnb.book import record
from osnb.book.cli.look import Force, Json, apart, regular, written
from osnb.book.cli.make import Overrides, at_home, here, overrides

UNITS = {"sample": "samples", "class": "classes"}
AGAINST = "Second file on the same samples: FILE less this one."
UNKNOWABLE = (
    "no unknown (-2) or negative (-1) sample: OSCR, CCR, AUROC, FPR95 and average "
    "precision cannot be computed, and the risks count wrong predictions alone"
)
PROMISES = {  # what a threshold is worth, by the name in the column `promise`
    "bound": "with 95 % confidence over calibration sets, {rate} is at {side} {at:g}",
    "conformal": "on average over calibration sets, {rate} is at {side} {at:g}; about every second "
    "single set misses it",
}
NONE = "none: no threshold is shown to keep {rate} at {side} {at:g}, so everything is rejected"
BEYOND = "this is about samples drawn like these: of other unknown classes it says nothing"
CONVENTIONS = "The scores under the rules of public libraries."
CHOOSE = "Pick on half the unknown classes, report the others."
TEST = "Other samples; if left out, half of FILE, at random."
TO_COME = "Expected share of unknown images (0: as where the threshold is chosen)."
ALSO = "Another reader whose test images are unknown too, repeatable."
WEIGHTS = "File of weights: a checkpoint, tensors by name, released ones; several are an ensemble."
BENCHMARK = "For weights: your own, my.yaml, or NOTEBOOK/RUN.yaml, a params file of an experiment."
MODEL = "Your own network, MODULE:NAME, called with classes=K; it gives logits (N, K)."
IMAGES = "A folder of images, however deep, a csv file with a column path, or one image."


def only_csv(out: Path | None) -> Path | None:
    """The file to write, if its name says what is written."""
    if out and out.suffix != ".csv":
        raise ValueError(f"--out writes .csv; got {out.name!r}")
    return regular(out)


Known = Annotated[int, typer.Option(help="Logits or texts that are known classes; all if 0.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed of the draws.")]
Names = Annotated[list[str] | None, typer.Option("--score", help="Score to keep; all if none.")]
Tpr = Annotated[float | None, typer.Option(help="Share of the known to accept, at least.")]
Fpr = Annotated[float | None, typer.Option(help="Share of the unknown to accept, at most.")]
Risk = Annotated[float | None, typer.Option(help="Largest share of errors among accepted images.")]
Share = Annotated[float, typer.Option(help=TO_COME)]
Out = Annotated[Path | None, typer.Option(help="csv file to write as well.", callback=only_csv)]
Run = Annotated[str, typer.Argument(metavar="[RUN]", help="A finished training run.")]
Weights = Annotated[list[Path] | None, typer.Option(help=WEIGHTS)]
BenchmarkFile = Annotated[Path | None, typer.Option("--benchmark", help=BENCHMARK)]
Model = Annotated[str, typer.Option(metavar="MODULE:NAME", help=MODEL)]


# Scores and verdicts of trained networks


def predict(
    run: Run = "",
    also: Annotated[list[str] | None, typer.Option(metavar="READER", help=ALSO)] = None,
    weights: Weights = None,
    benchmark: BenchmarkFile = None,
    model: Model = "",
    p: Overrides = None,
    force: Force = False,
) -> None:
    """Score a trained network on any test set. Nothing is trained.

    Logits stand in the order of the known classes: as in roles.csv, or as `osnb protocol` lists
    them.

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
        if weights and not force:
            predicting.unclaimed(planned, files, model)
    end = predicting.predict(planned, files, model, publish=not weights)
    if end["state"] != "done":
        kind = getattr(builtins, end["error"]["name"], ValueError)  # else one of ours, a refusal
        raise (kind if issubclass(kind, OSError) else ValueError)(end["error"]["value"])
    print(f"{planned}: {planned.directory / 'scores.parquet'}, {end['seconds']:.0f} s")


def verdict(
    images: Annotated[Path, typer.Argument(metavar="IMAGES", help=IMAGES)],
    run: Run = "",
    tpr: Tpr = None,
    fpr: Fpr = None,
    risk: Risk = None,
    threshold: Annotated[float | None, typer.Option(help="Accept a score at or above it.")] = None,
    share: Share = 0,
    score: Annotated[str, typer.Option(help="The rule: a column of the scores.")] = "max_logit",
    weights: Weights = None,
    benchmark: BenchmarkFile = None,
    model: Model = "",
    p: Overrides = None,
    seed: Seed = 0,
    json: Json = None,
    out: Out = None,
) -> None:
    """Give each new image a class or a rejection.

    A trained network decides; nothing is trained.

    The threshold is given, or chosen on the benchmark's test images by --tpr, --fpr or --risk; so
    IMAGES should be none of these. They are read as the network's own images are.

    \b
    osnb verdict photos own_softmax --tpr .95 --out verdicts.csv
    osnb verdict photos --benchmark my.yaml --weights mine.pt --threshold 3.5
    """
    from osnb.book import predicting

    rate, asked = _asked(share, tpr=tpr, fpr=fpr, risk=risk, threshold=threshold)
    apart(images, benchmark, *(weights or ()), to=(json, out))
    network = _network(run, benchmark, weights, model, overrides(p))
    how = {"rate": rate, "at": asked, "share": share, "seed": seed, "score": score, "model": model}
    rows, notes = predicting.verdicts(*network, images, **how)
    at = float(rows["threshold"].iloc[0])
    if rate != "threshold":
        notes += promised(rate, asked, [{"promise": "bound", "threshold": at}])
    accepted = rows["verdict"].str.startswith("accept").sum()
    about = {"run": run or str(benchmark), "score": score, "notes": notes}
    about["rows"] = rows.to_dict("records")
    write(about, json, out, f"{accepted} of {len(rows)} images are accepted, by {score} from {at}")


def _network(
    run: str,
    benchmark: Path | None,
    weights: list[Path] | None,
    model: str,
    given: dict[str, Any],
):
    """Parameters of the experiment that a network is of, and its files of weights."""
    from osnb.book import predicting

    _one_network(run, benchmark, weights, model)
    if run and given:
        raise ValueError("-p goes with --benchmark: a finished run has its settings")
    if run:
        return predicting.finished(run)[1:]
    planned, files = _of_weights(benchmark, weights, given, writes=False)
    return planned.parameters, files


def _asked(share: float, **rates: float | None) -> tuple[str, float]:
    """The one rate, or threshold, that is given."""
    given = [(name, value) for name, value in rates.items() if value is not None]
    if len(given) != 1:
        raise ValueError(f"need one of --{', --'.join(rates)}; got {len(given)}")
    name, value = given[0]
    if name != "threshold" and not 0 < value < 1:
        raise ValueError(f"--{name} needs a number in (0, 1); got {value:g}")
    if value != value:
        raise ValueError("--threshold needs a number; got nan")
    if name == "threshold" and share:
        raise ValueError("--share goes with --tpr, --fpr or --risk, by which a threshold is chosen")
    return name, value


def _one_network(run: str, benchmark: Path | None, weights: list[Path] | None, model: str) -> None:
    """Refuse what names no network, or two."""
    if bool(run) == bool(benchmark) or (run and (weights or model)):
        raise ValueError("need a finished RUN, or --benchmark FILE with what belongs to weights")


def _of_weights(
    benchmark: Path, weights: list[Path] | None, given: dict[str, Any], *, writes: bool = True
):
    """The plan that a params file or a benchmark of one's own means, and the files of weights.

    The run that it `writes` is called after the weights; where it writes none, their name is free.
    """
    from osnb.book import predicting
    from osnb.book.run import plan

    for file in (benchmark, *(weights or ())):
        if not file.is_file():
            raise FileNotFoundError(2, "no such file", str(file))
    notebook = workbook.root() / "notebooks" / f"{benchmark.absolute().parent.name}.ipynb"
    named = weights if writes or not weights else [Path("weights")] * len(weights)
    if weights and not notebook.is_file():
        here(benchmark.absolute().parent)
        out, file = workbook.out().resolve(), benchmark.resolve()
        benchmark = file.relative_to(out) if file.is_relative_to(out) else file
        return predicting.of_weights(named, benchmark, given), weights
    if not notebook.is_file():
        raise ValueError(f"{benchmark} is no params file of the project: give --weights FILE too")
    at_home([benchmark])
    if weights:
        return predicting.of_training(named, benchmark, given), weights
    planned = plan(benchmark, given)
    return planned, predicting.released(planned)


def rules(
    run: Annotated[str, typer.Argument(help="A training run that is done: RUN or NOTEBOOK/RUN.")],
    machine: Annotated[str, typer.Option(help="As in training notebooks: workers=4 ...")] = "",
    out: Out = None,
    save: Annotated[bool, typer.Option("--save", help="Keep the measures in figures/.")] = False,
) -> None:
    """Score one trained network by thirty rules.

    Printed are AUROC and seconds of each rule. Features are kept as features.npz beside the run.
    --out writes all scores, for `osnb score`.
    --save writes rules.csv and its stamp: AUROC with intervals, and the best rule as picked on half
    of the unknown classes. Thirteen rules are pytorch-ood's, which has to be installed.
    """
    from osnb import experiment
    from osnb.book import predicting
    from osnb.experiment import cached

    key, parameters, _ = predicting.finished(run)
    where = experiment.Machine.of(machine, data=parameters.get("data", ""))
    kept = cached.said(experiment.of(parameters), workbook.out() / "runs" / key, where)
    table, seconds = cached.scored(kept)
    if out:
        workbook.write_csv(out, table.rename(columns={"task": "source"}))
    if save:
        _save(key, parameters, table, inputs={"checkpoint": str(kept["checkpoint"])})
    print(f"{key}: AUROC of {len(seconds)} rules, known against")
    print(cached.compared(table, seconds).to_string(float_format="{:.3f}".format))


def _save(key: str, parameters: dict[str, Any], table, inputs: dict[str, str]) -> None:
    """Measures of the rules as figures/NOTEBOOK/SIZE_rules_RUN/rules.csv, with a stamp."""
    from osnb import scores
    from osnb.book import runs
    from osnb.evidence import samples

    own = scores.own({k: x.to_numpy() for k, x in table.rename(columns={"task": "source"}).items()})
    groups = table["task"].str.split().str[-1].to_numpy()  # "letters far" and "far" are far
    measured = samples.measured(own, groups, seed=0, resamples=2000)
    notebook, run = key.split("/")
    size = parameters["size"]
    rest = run.removeprefix(size).strip("_")
    name = f"{size}_rules_{rest}".rstrip("_")  # no run of params/, and none for `tables.collect`
    follows = runs.follows_from(notebook, parameters | {"run": name})
    folder = workbook.out() / "figures" / notebook / name
    runs.Run(notebook, name, folder, follows).save("rules", table=measured, inputs=inputs)


# Scores of any origin


def score(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="csv, parquet or npz.")],
    against: Annotated[Path | None, typer.Option(help=AGAINST)] = None,
    unit: Annotated[str, typer.Option(help=f"Drawn again: {' or '.join(UNITS)}.")] = "sample",
    resamples: Annotated[int, typer.Option(help="Draws of the bootstrap.")] = 1000,
    seed: Seed = 0,
    known: Known = 0,
    names: Names = None,
    conventions: Annotated[bool, typer.Option("--conventions", help=CONVENTIONS)] = False,
    choose: Annotated[bool, typer.Option("--choose", help=CHOOSE)] = False,
    json: Json = None,
    out: Out = None,
) -> None:
    """Measure your own scores, with 95 % intervals.

    Measures are accuracy, OSCR, AUROC, AURC and others; of AURC, AUGRC and FPR95 lower is better.

    FILE has the columns label (known class from 0, negative -1, unknown -2), pred and one or more
    of scores (higher: more known); or label and logits, logit_0 to logit_{K-1} (in npz: labels
    (N,) and logits (N, K)), of which MSP, max logit, energy and entropy are computed; or, in npz,
    labels with embeddings, images (N, D) and texts (C, D), the K known classes first, of which MCM
    is computed, and with --known K, from the texts behind these, NegLabel. label and
    pred may be names of classes, with "unknown" and "negative". Optional columns: sample (id),
    class (true class, for --unit class), source (each one's images are drawn by themselves). Usual
    other names, such as y_true, do as well.

    \b
    osnb score scores.csv
    osnb score mine.npz --against theirs.npz --unit class --out differences.csv
    """
    from osnb.evidence import samples as of

    if unit not in UNITS:
        raise ValueError(f"--unit is one of {', '.join(UNITS)}; got {unit!r}")
    apart(file, against, to=(json, out))
    files, draws = [file, against] if against else [file], {"seed": seed, "resamples": resamples}
    samples = _pair(*files, known, names or []) if against else [_own(file, known, names or [])]
    notes = [note for sample in samples for note in sample.notes]
    if conventions or choose:
        rows, title = _alone(samples, conventions, choose, notes, **draws)
        return write({"files": [str(file)], "notes": notes, "rows": rows}, json, out, title)
    if against:
        samples[1] = of.matched(*samples)
    rows = list(of.measures(samples, unit, **draws))
    notes += _remarks(samples, unit, rows, asked=bool(names))
    about = {"files": [*map(str, files)], "unit": unit, "notes": notes, "rows": rows}
    return write(about | draws, json, out, f"95 % intervals over {UNITS[unit]}")


def _remarks(samples: list, unit: str, rows: list[dict], *, asked: bool) -> list[str]:
    """What the rows do not say of themselves, in sentences."""
    from osnb.evidence import samples as of

    first, *others = samples
    notes = [note for other in others for note in of.unpaired(first, other, asked=asked)]
    notes += of.unsure(of.sourced(samples), unit, rows)
    notes += [UNKNOWABLE] * ("none" in of.roles(first))
    return notes + [note for sample in samples for note in of.turned(sample)]


def _pair(file: Path, against: Path, known: int, names: list[str]) -> list:
    """Both files' samples, each with those of the names that it has; one of both has each."""
    first, second = (_some(path, known, names) for path in (file, against))
    there = [name for name in names if name in first.scores]
    if lost := [name for name in names if not there or name not in first.scores | second.scores]:
        _own(file, known, lost)  # refuses, and says what there is
    if there and len(second.scores) > 1 and not {*names} & {*second.scores}:
        asked, its = (", ".join(each) for each in (names, second.scores))
        raise ValueError(f"{against} has no score {asked}: add one of its own by --score: {its}")
    return [first, second]


def _some(file: Path, known: int, names: list[str]):
    """A file's samples with those of the names that it has, or with all scores if with none."""
    try:
        return _own(file, known, names)
    except ValueError:
        if not names:
            raise
    samples = _own(file, known, [])
    there = {name: samples.scores[name] for name in names if name in samples.scores}
    return samples._replace(scores=there or samples.scores)


def _alone(
    samples: list, conventions: bool, choose: bool, notes: list[str], **draws: int
) -> tuple[list[dict], str]:
    """The rows of --choose, or else of --conventions, and their title."""
    from osnb.evidence import samples as of

    own, *others = samples
    if others or (conventions and choose):
        raise ValueError("need one of --against, --conventions, --choose at most")
    if not choose:
        rows = list(of.conventions(own))
        return rows, "one set of scores, each measure under several rules"
    rows = of.choice(own, **draws)
    enough = round(2 * (len(rows) - 1) / of.LEVEL)
    if draws["resamples"] < enough:
        notes.append(f"{len(rows)} scores need --resamples {enough} for any to differ")
    return rows, "AUROC; differs: from the best, after Holm's correction"


def threshold(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="As for osnb score.")],
    tpr: Tpr = None,
    fpr: Fpr = None,
    risk: Risk = None,
    share: Share = 0,
    test: Annotated[Path | None, typer.Option(help=TEST)] = None,
    name: Annotated[str, typer.Option("--score", help="Needed if FILE has several.")] = "",
    seed: Seed = 0,
    known: Known = 0,
    json: Json = None,
    out: Out = None,
) -> None:
    """Choose a threshold, and say what it promises.

    It is also tried on samples that did not choose it.

    FILE holds samples that were not trained on, in the form of `osnb score`. One of --tpr, --fpr
    and --risk is asked for. Accepted is a score at or above the threshold. --out writes a verdict
    per row.

    \b
    osnb threshold validation.csv --test test.csv --risk .05 --share .1
    osnb threshold scores.csv --tpr .95 --score max_logit --out verdicts.csv
    """
    from osnb.evidence import samples as of

    rate, at = _asked(0, tpr=tpr, fpr=fpr, risk=risk)
    if test and test.exists() and file.exists() and test.samefile(file):
        raise ValueError(f"--test needs samples that did not choose; got {file} again")
    apart(file, test, to=(json, out))
    samples = [_single(each, known, name) for each in ([file, test] if test else [file])]
    if test and {*samples[0].scores} != {*samples[1].scores}:
        raise ValueError(f"{test} has no score {', '.join(samples[0].scores)}: see --score")
    held_out, others = samples if test else of.halves(samples[0], seed=seed)
    rows = of.decided(rate, at, held_out, others, share=share, seed=seed)
    if out:
        _verdicts(out, others, of.verdicts(others, rows[0]["threshold"]))
    notes = [note for sample in samples for note in (*sample.notes, *of.turned(sample))]
    counts = {"calibration": len(held_out.label), "test": len(others.label)}
    about = {"files": [str(x) for x in (file, test) if x], "seed": seed, "share": share, **counts}
    title = "{calibration} samples choose, {test} test; intervals of 95 %".format(**counts)
    write(about | {"notes": notes + promised(rate, at, rows), "rows": rows}, json, None, title)


def _verdicts(out: Path, samples, verdicts: list[str]) -> None:
    """A row per sample, in the order of the file: its id or row, its score and the verdict."""
    import pandas as pd

    ids = {"sample": samples.sample} if len(samples.sample) else {}
    rows = ids | samples.scores | {"pred": samples.pred, "verdict": verdicts}
    workbook.write_csv(out, pd.DataFrame(rows))


def promised(rate: str, at: float, rows: list[dict[str, Any]]) -> list[str]:
    """What each threshold is worth, in a sentence."""
    words = {"rate": rate.upper() if rate != "risk" else rate, "at": at}
    words["side"] = "least" if rate == "tpr" else "most"
    sentences = []
    for name, value in {row["promise"]: row["threshold"] for row in rows}.items():
        worth = NONE if value != value else f"accept from {value!r}: {PROMISES[name]}"
        sentences.append(f"{name}: {worth.format(**words)}")
    return [*sentences, BEYOND]


def _single(file: Path, known: int, name: str):
    """A file's samples with one score."""
    samples = _own(file, known, [name] if name else [])
    if len(samples.scores) > 1:
        raise ValueError(f"{file}: choose one with --score: {', '.join(samples.scores)}")
    return samples


def write(content: dict[str, Any], json: Path | None, out: Path | None, title: str) -> None:
    """The rows as a csv file, if one is wanted, and as json or else as a table."""
    import pandas as pd

    table = pd.DataFrame(content["rows"])
    if out:
        workbook.write_csv(out, table)
    if written(json, content):
        return
    print(title)
    print(record.plain(table.to_string(index=False, float_format="{:.4f}".format)))
    for note in content["notes"]:
        typer.echo(f"osnb: {record.plain(note)}", err=True)


def _own(file: Path, known: int, names: list[str]):
    """A file's samples; what is wrong with it begins with its name."""
    from osnb import scores
    from osnb.base import columns

    return columns.of_columns(file, partial(scores.own, known=known, names=names))


COMMANDS = (predict, verdict, rules, score, threshold)
