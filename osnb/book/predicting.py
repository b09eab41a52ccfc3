"""A run of weights that are there already: its scores table and stamp are like any other's."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from osnb import experiment
from osnb.base import workbook
from osnb.book import record, runs
from osnb.book.run import Plan, Refused, execute, once, plan
from osnb.book.verify import params_file


def of_run(name: str, overrides: Mapping[str, Any]) -> tuple[Plan, list[Path]]:
    """What a finished run would be under overrides that train nothing, and its weights.

    Raises:
        Refused: it is not done, nothing is changed, or a change would have trained otherwise.
        FileNotFoundError: its checkpoint is gone.
    """
    (key, run), *more = record.named(name).items()
    if more or run["state"] != "done" or not experiment.is_training(run["parameters"]):
        raise Refused(f"{name} must be one training run that is done; it is {run['state']}")
    if (file := params_file(run["notebook"], run["run"])) is None:
        raise Refused(f"params/{run['notebook']} has no file any more that {key} is called after")
    before = {k: v for k, v in run["parameters"].items() if k != "run"}
    planned = plan(file, before | dict(overrides))
    old, new = experiment.of(run["parameters"]), experiment.of(planned.parameters)
    kept = ({k: v for k, v in x.recipe.settings.items() if k != "rules"} for x in (old, new))
    if old.settings == new.settings or next(kept) != next(kept) or old.seed != new.seed:
        raise Refused(
            f"{key}: name other test sets (--also) or rules (-p rules=plain), and no more"
        )
    folder = workbook.out() / "runs" / key
    files = sorted(folder.glob("member*/checkpoint.pt")) or [folder / "checkpoint.pt"]
    if not files[0].is_file():
        raise FileNotFoundError(2, "no such file", str(files[0]))
    return planned, files


def predict(planned: Plan, files: Sequence[Path], model: str = "") -> dict[str, Any]:
    """Make the scores table of a plan with the weights in files, as a run; its run.json.

    Args:
        planned: what experiment, where.
        files: of weights, one for each member.
        model: module:name of a network that is not the experiment's.
    """
    through = partial(_scored, files=files, model=model)
    end = once(planned, force=True, make=partial(execute, through=through))
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


def _scored(
    planned: Plan, _limit: float, _heard: Callable, *, files: Sequence[Path], model: str
) -> dict[str, Any]:
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
        table, inputs = predicted(exp, parts, files, model=model)
        here.save("scores", table=table, inputs=inputs)
    except (OSError, ValueError) as error:
        return record.failed(error)
    return {"state": "done", "unpublished": runs.publish(planned.directory, planned.figures)}
