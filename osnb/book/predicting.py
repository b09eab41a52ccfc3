"""Weights that are there already: their scores table, as a run, and verdicts on new images."""

import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from osnb import experiment, scores
from osnb.base import stamps, workbook
from osnb.base.tables import COLUMNS
from osnb.book import record, runs
from osnb.book.run import Plan, Refused, once, plan, read
from osnb.book.verify import params_file
from osnb.evidence import samples

UNTRAINED = ("also", "counts", "far", "tested", "means", "rules")  # settings that train nothing
SHOWN = 12  # classes whose order is printed
NOTEBOOK = "21_vaze_train"  # any that trains would do: the setting of papers' networks is not read


def of_run(name: str, overrides: Mapping[str, Any]) -> tuple[Plan, list[Path]]:
    """What a finished run would be under overrides that train nothing, and its weights.

    Raises:
        Refused: it is not done, nothing is changed, or a change would have trained otherwise.
        FileNotFoundError: its checkpoint is gone.
    """
    key, parameters, files = finished(name)
    file = params_file(*key.split("/"))  # that of a run of size own may lie anywhere
    before = {k: v for k, v in parameters.items() if k != "run"}
    own = None if file else parameters
    planned = plan(file or Path(f"{key}.yaml"), before | dict(overrides), own)
    old, new = experiment.of(parameters), experiment.of(planned.parameters)
    kept = ({k: v for k, v in x.settings.items() if k not in UNTRAINED} for x in (old, new))
    if old.settings == new.settings or next(kept) != next(kept):
        why = "name other test sets (--also) or rules (-p rules=plain), and no more"
        raise Refused(f"{key}: {why}")
    return planned, files


def of_weights(weights: Sequence[Path], benchmark: Path, overrides: Mapping[str, Any]) -> Plan:
    """What a training on a benchmark of one's own would be that gave these weights.

    Args:
        weights: the file, after which the run is called; of several, which make an ensemble, the
            first.
        benchmark: the file that the training would name, such as my.yaml.
        overrides: of its parameters and settings.

    Raises:
        Refused: there can be no such run.
    """
    run = {"run": weights[0].stem, "size": "own", "benchmark": str(benchmark)}
    run |= {"method": "softmax", "regime": "baseline"}
    if len(weights) > 1:
        run |= {"method": "ensemble", "overrides": f"members={len(weights)}"}
    return plan(Path(NOTEBOOK) / f"{weights[0].stem}.yaml", overrides, run)


def of_training(weights: Sequence[Path], file: Path, overrides: Mapping[str, Any]) -> Plan:
    """What the experiment of a params file would be with these weights, under a name of its own.

    The file's own name is that of its training, whose scores stay.

    Args:
        weights, overrides: as in `of_weights`.
        file: of the project's params/, or like one.

    Raises:
        Refused: there can be no such run.
    """
    # without "-", behind which a name says how a run differs from another (`tables.repeats`)
    name = f"{weights[0].stem.replace('-', '_')}_on_{file.stem}"
    return plan(file.with_name(f"{name}.yaml"), overrides, read(file) | {"run": name})


def unclaimed(planned: Plan, files: Sequence[Path], model: str) -> None:
    """Refuse to write over a training, or over the scores of other weights or another network.

    Raises:
        Refused: the run is there, and is not one of these files on this benchmark.
    """
    from osnb.experiment.predicted import digests

    folder, why = planned.directory, ""
    if any(folder.rglob("checkpoint.pt")):
        why = "a training"
    elif stamp := stamps.read(folder / "scores.json"):
        ours = digests(files, model)
        theirs = {k: v for k, v in stamp["inputs"].items() if k.startswith(("weights/", "model/"))}
        if ours != theirs or stamp["parameters"] != planned.follows["parameters"]:
            why = "scores of other weights, or of another network or benchmark"
    if why:
        raise Refused(f"{folder} holds {why}: give --force, or the weights another name")


def finished(name: str) -> tuple[str, dict[str, Any], list[Path]]:
    """NOTEBOOK/RUN of one training run that is done, its parameters and its weights.

    Raises:
        Refused: the name is of another run, or of several.
        FileNotFoundError: its checkpoint is gone.
    """
    (key, run), *more = record.named(name).items()
    what = run["state"] if experiment.is_training(run["parameters"]) else f"{key}, no training"
    if more or what != "done":
        what = f"{1 + len(more)} runs" if more else what
        raise Refused(f"{name} must be one training run that is done; it is {what}")
    folder = workbook.out() / "runs" / key
    files = sorted(folder.glob("member*/checkpoint.pt")) or [folder / "checkpoint.pt"]
    if not files[0].is_file():
        raise FileNotFoundError(2, "no such file", str(files[0]))
    return key, run["parameters"], files


def predict(
    planned: Plan, files: Sequence[Path], model: str = "", *, publish: bool = True
) -> dict[str, Any]:
    """Make the tables of a plan with the weights in files, as a run; its run.json.

    Where that fails, a run that was not there before leaves nothing behind.

    Args:
        planned: what experiment, where.
        files: of weights, one for each member.
        model: module:name of a network that is not the experiment's.
        publish: whether the tables go to figures/ too, if the size of the run has them there.
    """
    through = partial(_scored, files=files, model=model, publish=publish)
    end, new = {}, not planned.directory.exists()
    try:
        end = once(planned, force=True, through=through)
    finally:
        if new and end is not None and end.get("state") != "done":
            shutil.rmtree(planned.directory, ignore_errors=True)
    if end is None:
        raise Refused(f"another process is making {planned}")
    return end


def released(planned: Plan) -> list[Path]:
    """The file of weights that the plan's experiment names.

    Raises:
        Refused: it names none.
    """
    settings = experiment.of(planned.parameters).settings
    if settings["training"]["name"] != "released":
        raise Refused(f"{planned} names no weights (method=released): give --weights FILE")
    folder = workbook.data(planned.parameters["data"], "weights")
    return [folder / settings["training"]["weights"].format(split=settings["split"])]


def verdicts(
    parameters: Mapping[str, Any],
    files: Sequence[Path],
    images: Path,
    *,
    score: str,
    rate: str,
    at: float,
    share: float = 0.0,
    seed: int = 0,
    model: str = "",
) -> tuple[pd.DataFrame, list[str]]:
    """A class or a rejection for each of some images that belong to no test set.

    Args:
        parameters: of a training, whose benchmark says how images are read and who is known.
        files, model: as in `predict`.
        images: a folder of them, a csv file that lists them, or one.
        score: the rule, a column of the scores table.
        rate: threshold; or what a threshold is chosen by on all test images of the benchmark,
            tpr, fpr or risk, with the bound that `samples.chosen` keeps.
        at: the threshold, or what is asked of the rate.
        share, seed: as in `samples.chosen`.

    Returns:
        A row for each image, in order: sample, class, score, verdict (accept CLASS, reject, or
        unreadable), threshold; what there is to say of them.

    Raises:
        FileNotFoundError: there are no such images.
        ValueError: there is no such score, or no threshold can be chosen.
    """
    from osnb.experiment import predicted

    exp = experiment.of(parameters)
    where = experiment.Machine.of(parameters["machine"], data=parameters["data"])
    made = predicted.loaded(exp, exp.parts(where), files, model=model)
    names, (table, batches) = made.parts.names, predicted.of_new(made, images)
    new, threshold, notes = _single(table, score), at, [*batches.skipped.values()]
    if rate != "threshold":
        tested = _single(made.table(), score)
        side = samples.side(tested, score, next(iter(samples.roles(tested))))
        threshold = samples.chosen(rate, at, side, share=share, seed=seed)["bound"]
        notes += [f"chosen on the {len(tested.label)} test images of {exp.benchmark.name}"]
    said = {"class": [names[c] for c in new.pred], "score": new.scores[score]}
    said["verdict"] = samples.verdicts(new._replace(classes=names), threshold)
    rows = batches.given[["sample"]].merge(table[["sample"]].assign(**said), how="left")
    rows = rows.fillna({"class": "", "verdict": "unreadable"})
    return rows.assign(threshold=threshold), notes


def _single(table: pd.DataFrame, score: str) -> scores.Own:
    """One score of a scores table."""
    told = [*COLUMNS, "target", "target_log_odds"]  # these two know the label
    if score not in (rules := table.columns.drop(told)):
        raise ValueError(f"there is no score {score!r}: there are {', '.join(rules)}")
    label, pred, values = (table[name].to_numpy() for name in ("label", "pred", score))
    return scores.Own(label, pred, {score: values}, 0, (), ())


def _scored(planned: Plan, *, files: Sequence[Path], model: str, publish: bool) -> dict[str, Any]:
    """In place of a kernel: what run.json says of the end."""
    import torch

    from osnb.experiment.predicted import predicted

    values = planned.parameters
    torch.set_num_threads(values["threads"])
    here, exp = runs.begin(planned.notebook, values), experiment.of(values)
    if model:
        here.follows["settings"] |= {"network": {"name": model}}
        here.follows["columns"] |= {"network": model}
    try:
        parts = exp.parts(experiment.Machine.of(values["machine"], data=values["data"]))
        if model:
            order = ", ".join(f"{i} {name}" for i, name in enumerate(parts.names[:SHOWN]))
            more = ", ..." * (len(parts.names) > SHOWN)
            shape = " x ".join(map(str, parts.images.shape))
            print(f"images of {shape}; its logits have to be, in this order: {order}{more}")
        tables, inputs = predicted(exp, parts, files, model=model)
        for name, table in tables.items():
            here.save(name, table=table, inputs=inputs)
    except (OSError, ValueError) as error:
        return record.failed(error)
    known = tables["scores"].query("label >= 0")
    right = (known["pred"] == known["label"]).mean()
    if right < 1 / len(parts.names):
        print(f"accuracy {right:.3f} is below chance: are its classes in another order?")
    return {"state": "done", "unpublished": planned.publish() if publish else []}
