"""What a trained network says of every image, kept beside its run, and all rules on that."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from torch import nn

from osnb import metrics, scores, train
from osnb.base import workbook
from osnb.base.labels import NEGATIVE
from osnb.base.outputs import Outputs
from osnb.scores import FITTED, POST_HOC, SCORES, Seen, features
from osnb.train import checkpoint

if TYPE_CHECKING:
    from osnb.experiment import Experiment, Machine
    from osnb.experiment.parts import Parts

FILE = "features.npz"
# of OpenMax, or as many as the class with the fewest has that are classified right; the other
# settings are those of Kim et al. 2021
TAIL = 20
GRIDS = {  # settings that are chosen on validation negatives: KNN's and NCI's are their papers'
    "gen": (features.gen, {"top": 100}, "gamma", (0.01, 0.1, 0.5, 1)),
    "knn": (features.knn, {}, "k", (1, 10, 20, 50, 100, 200, 500)),
    "residual": (features.residual, {}, "dim", (4, 8, 16, 32, 64, 128, 256, 512)),
    "vim": (features.vim, {}, "dim", (4, 8, 16, 32, 64, 128, 256, 512)),
    "nci": (features.nci, {}, "alpha", (1e-4, 1e-3, 1e-2, 1e-1)),
}


def said(experiment: "Experiment", directory: Path, machine: "Machine") -> dict[str, np.ndarray]:
    """Logits and features of training, validation and test images, with the last layer.

    They are read from features.npz if that was made of this checkpoint, else made and written.

    Returns:
        known (), weight (C, D), bias (C,); of train, val and test: logits_* (N, C), features_*
        (N, D), label_*, and of test class_* and task_*, the group or source of unknown images.

    Raises:
        ValueError: the network is an ensemble's or has no linear layer at its end, or there is no
            checkpoint in the folder.
    """
    file, made = directory / FILE, directory / checkpoint.CURRENT
    if not made.is_file():
        raise ValueError(f"need a trained network; there is no {made}")
    digest = workbook.file_hash(made)
    if file.is_file() and (found := scores.arrays(file))["checkpoint"] == digest:
        return found
    parts = experiment.parts(machine)
    network = experiment.network(parts)
    if not isinstance(layer := getattr(network, "head", None), nn.Linear):
        raise ValueError(
            f"need one network with a linear layer at its end; got {type(layer).__name__}"
        )
    network.load_state_dict(checkpoint.newest(directory)["model"])
    out = {"checkpoint": np.array(digest), "known": np.array(parts.known)}
    out |= {name: p.detach().cpu().numpy() for name, p in layer.named_parameters()}
    out |= _images(network, parts)
    with workbook.writing(file) as aside, aside.open("wb") as handle:
        np.savez(handle, **out)
    return out


def _images(network: nn.Module, parts: "Parts") -> dict[str, np.ndarray]:
    """What the network says of the images of each split, and who these are."""
    sets = [("train", "", parts.batches(parts.taught)), ("val", "", parts.validation)]
    sets += [("test", "unknown", parts.test)]
    for source, group, batches in parts.far:
        sets.append(("test", " ".join(dict.fromkeys((source, group))), batches))
    rows: dict[str, list] = {}
    groups = parts.classes.set_index("wnid").get("bin", {})  # near, easy, ...
    for name, task, batches in sets:
        answer, frame = train.predict(network, batches), batches.rows
        columns = {"logits": answer.logits, "features": answer.features}
        columns |= {"label": frame["label"].to_numpy(), "class": frame["wnid"].to_numpy(str)}
        columns["task"] = np.array([groups.get(each, task) for each in frame["wnid"]])
        for key, column in columns.items():
            rows.setdefault(f"{key}_{name}", []).append(column)
    return {key: np.concatenate(each) for key, each in rows.items()}


def rules(found: Mapping[str, np.ndarray]) -> dict[str, Callable[[Seen], Callable]]:
    """Every rule of the package and of pytorch-ood, as a fit on training images.

    Settings are chosen by AUROC of validation images, known against negative, where there are both;
    else they are those of the source. No unknown image is looked at.
    """
    from osnb.experiment import detectors

    plain = {**SCORES, **POST_HOC}
    every = {name: lambda _, rule=rule: rule for name, rule in plain.items()}
    how = {"alpha": min(10, int(found["known"])), "distance": "both", "weights": "ranked"}
    right = found["label_train"][
        scores.predicted(Outputs(found["logits_train"]), known=int(found["known"]))
        == found["label_train"]
    ]
    fewest = np.bincount(right, minlength=int(found["known"])).min()
    openmax = partial(scores.openmax, **how, tail=int(min(TAIL, fewest)), score="log_odds")
    of = {"openmax": openmax, "mahalanobis": scores.mahalanobis}
    every |= {
        name: lambda seen, fit=fit: fit(seen.out, seen.labels, known=seen.known)
        for name, fit in of.items()
    }
    negative, known = (found["label_val"] == NEGATIVE), found["label_val"] >= 0
    chosen = {}
    if negative.any() and known.any():
        sides = [
            Outputs(found["logits_val"][s], found["features_val"][s]) for s in (known, negative)
        ]
        chosen = {name: partial(_best, *GRIDS[name], sides) for name in GRIDS}
    return every | dict(FITTED) | chosen | dict(detectors.ADAPTED)


def _best(
    fit, fixed: Mapping, name: str, grid: tuple, sides: list[Outputs], seen: Seen
) -> Callable:
    """The rule with the setting that tells known from negative best, the first of several."""
    of_known = np.asarray(seen.labels) >= 0
    most = {"k": of_known.sum(), "dim": seen.out.features.shape[1] - 1}.get(name, np.inf)
    fitted = [fit(seen, **fixed, **{name: value}) for value in grid if value <= most]
    found = [metrics.auroc(*(rule(out, known=seen.known) for out in sides)) for rule in fitted]
    return fitted[int(np.argmax(found))]


def scored(found: Mapping[str, np.ndarray]) -> tuple[pd.DataFrame, pd.Series]:
    """A column for each rule on every test image, as `osnb score` reads it, and seconds of each.

    The seconds are those of fitting, choosing and scoring, on this machine.
    """
    known = int(found["known"])
    layer = found["weight"], found["bias"]
    parts = {
        name: Outputs(found[f"logits_{name}"], found[f"features_{name}"])
        for name in ("train", "test")
    }
    seen, seconds = Seen(parts["train"], found["label_train"], known, *layer), {}
    names = {"label": "label_test", "class": "class_test", "task": "task_test"}
    columns = {name: found[key] for name, key in names.items()}
    columns["pred"] = scores.predicted(parts["test"], known=known)
    for name, fit in rules(found).items():
        start = time.perf_counter()
        columns[name] = fit(seen)(parts["test"], known=known)
        seconds[name] = time.perf_counter() - start
    return pd.DataFrame(columns), pd.Series(seconds, name="seconds")


def compared(table: pd.DataFrame, seconds: pd.Series) -> pd.DataFrame:
    """AUROC of each rule against every task of negative and unknown images, the best first."""
    known = table["label"] >= 0
    task = table["task"].mask(table["label"] == NEGATIVE, "negative")
    others = {name: task.eq(name) & ~known for name in task[~known].unique()}
    others["all unknown"] = table["label"] < NEGATIVE
    auroc = {
        name: {rule: metrics.auroc(table[rule][known], table[rule][rows]) for rule in seconds.index}
        for name, rows in others.items()
    }
    found = pd.DataFrame(auroc).assign(seconds=seconds).rename_axis("rule")
    return found.sort_values("all unknown", ascending=False, kind="stable")
