"""What a trained network says of every image, kept beside its run, and all rules on that.

Those of pytorch-ood are among the rules; it is no dependency: ``pip install pytorch-ood``.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from osnb import metrics, scores, train
from osnb.base import workbook
from osnb.base.columns import arrays
from osnb.base.labels import NEGATIVE
from osnb.base.outputs import Outputs
from osnb.experiment import Experiment, Machine
from osnb.experiment.parts import Parts
from osnb.scores import FITTED, POST_HOC, SCORES, Seen, features
from osnb.train import checkpoint

Rule = Callable[..., np.ndarray]
FILE = "features.npz"
# of OpenMax, or as many, from 2, as the class with the fewest has that are classified right; the
# other settings are those of Kim et al. 2021
TAIL = 20
GRIDS = {  # settings that are chosen on validation negatives: KNN's and NCI's are their papers'
    "gen": (features.gen, {"top": 100}, "gamma", (0.01, 0.1, 0.5, 1)),
    "knn": (features.knn, {}, "k", (1, 10, 20, 50, 100, 200, 500)),
    "residual": (features.residual, {}, "dim", (4, 8, 16, 32, 64, 128, 256, 512)),
    "vim": (features.vim, {}, "dim", (4, 8, 16, 32, 64, 128, 256, 512)),
    "nci": (features.nci, {}, "alpha", (1e-4, 1e-3, 1e-2, 1e-1)),
}
KINDS = ("features", "feature_maps", "logits")  # what a detector reads: its methods' names end so


def said(experiment: Experiment, directory: Path, machine: Machine) -> dict[str, np.ndarray]:
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
    if file.is_file() and (found := arrays(file))["checkpoint"] == digest:
        return found
    parts = experiment.parts(machine)
    network = experiment.network(parts)
    layer = getattr(network, "head", None)
    if isinstance(layer, nn.Sequential):  # behind a dropout, which passes all at rest
        layer = layer[-1]
    if not isinstance(layer, nn.Linear):
        raise ValueError(
            f"need one network with a linear layer at its end; got {type(layer).__name__}"
        )
    network.load_state_dict(checkpoint.newest(directory)["model"])
    out = {"checkpoint": np.array(digest), "known": np.array(parts.known)}
    out |= {"bias": np.zeros(layer.out_features, np.float32)}  # where it has none
    out |= {name: p.detach().cpu().numpy() for name, p in layer.named_parameters()}
    out |= _images(network, parts)
    with workbook.writing(file) as aside, aside.open("wb") as handle:
        np.savez(handle, **out)
    return out


def _images(network: nn.Module, parts: Parts) -> dict[str, np.ndarray]:
    """What the network says of the images of each split, and who these are."""
    sets = [("train", "", parts.batches(parts.taught))]
    if (parts.rows["split"] == "val").any():
        sets.append(("val", "", parts.validation))
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


def _says(found: Mapping[str, np.ndarray], split: str) -> Outputs:
    return Outputs(found[f"logits_{split}"], found[f"features_{split}"])


def rules(found: Mapping[str, np.ndarray]) -> dict[str, Callable[[Seen], Callable]]:
    """Every rule of the package and of pytorch-ood, as a fit on training images.

    Settings are chosen by AUROC of validation images, known against negative, where there are both;
    else they are those of the source. No unknown image is looked at.
    """
    known = int(found["known"])
    labels, held_out = found["label_train"], found.get("label_val", np.array([]))
    every = {name: lambda _, rule=rule: rule for name, rule in (SCORES | POST_HOC).items()}
    columns = found["logits_train"].shape[1]
    column = np.where(labels == NEGATIVE, known, labels)  # a background's is K, as in OpenMax
    right = column[found["logits_train"].argmax(axis=1) == column]
    tail = np.clip(np.bincount(right, minlength=columns).min(), 2, TAIL)
    how = {"alpha": min(10, known), "distance": "both", "weights": "ranked", "score": "log_odds"}
    of = {"openmax": partial(scores.openmax, tail=int(tail), **how)}
    for name, fit in (of | {"mahalanobis": scores.mahalanobis}).items():
        every[name] = lambda seen, fit=fit: fit(seen.out, seen.labels, known=seen.known)
    chosen = {}
    if (held_out == NEGATIVE).any() and (held_out >= 0).any():
        out = _says(found, "val")[:2]
        sides = [Outputs(*(part[s] for part in out)) for s in (held_out >= 0, held_out == NEGATIVE)]
        chosen = {name: partial(_best, *GRIDS[name], sides) for name in GRIDS}
    return every | FITTED | chosen | detectors()


def _best(
    fit, fixed: Mapping, name: str, grid: tuple, sides: list[Outputs], seen: Seen
) -> Callable:
    """The rule with the setting that tells known from negative best, the first of several.

    Where none of them fits, such as a dim of few features, it is the source's.
    """
    of_known = np.asarray(seen.labels) >= 0
    most = {"k": of_known.sum(), "dim": seen.out.features.shape[1] - 1}.get(name, np.inf)
    fitted = []
    for value in (value for value in grid if value <= most):
        with suppress(ValueError):  # ViM's, where the features lie in so many directions
            fitted.append(fit(seen, **fixed, **{name: value}))
    fitted = fitted or [FITTED[fit.__name__](seen)]
    found = [metrics.auroc(*(rule(out, known=seen.known) for out in sides)) for rule in fitted]
    return fitted[int(np.argmax(found))]


def scored(
    found: Mapping[str, np.ndarray], *, say: Callable[[str], None] = print
) -> tuple[pd.DataFrame, pd.Series]:
    """A column for each rule on every test image, as `osnb score` reads it, and seconds of each.

    The seconds are those of fitting, choosing and scoring, on this machine. A rule that cannot be
    fitted is left out, and `say` is told which and why, in one line.

    Raises:
        ValueError: no rule can be fitted.
    """
    known = int(found["known"])
    learnt, test = _says(found, "train"), _says(found, "test")
    seen = Seen(learnt, found["label_train"], known, found["weight"], found["bias"])
    names = {"label": "label_test", "class": "class_test", "task": "task_test"}
    columns = {name: found[key] for name, key in names.items()}
    columns["pred"], seconds, errors = scores.predicted(test, known=known), {}, {}
    for name, fit in rules(found).items():
        start = time.perf_counter()
        try:
            columns[name] = _numbers(fit(seen)(test, known=known))
        except (ValueError, torch.linalg.LinAlgError) as error:
            errors[name] = error
        else:
            seconds[name] = time.perf_counter() - start
    if not seconds:
        raise next(iter(errors.values()))
    if errors:
        why = (f"{name} ({str(error).splitlines()[0]})" for name, error in errors.items())
        say(f"left out, as they cannot be fitted: {'; '.join(why)}")
    return pd.DataFrame(columns), pd.Series(seconds, name="seconds")


def _numbers(values: np.ndarray) -> np.ndarray:
    if missing := np.isnan(values).sum():
        raise ValueError(f"it gives NaN for {missing} of {len(values)} images")
    return values


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


# pytorch-ood's detectors as rules of ours.


def head(seen: Seen) -> nn.Linear:
    """The last layer of the known classes, which also takes feature maps of one pixel."""
    layer = nn.Linear(seen.weight.shape[1], seen.known)
    with torch.no_grad():
        layer.weight.copy_(torch.as_tensor(seen.weight[: seen.known]))
        layer.bias.copy_(torch.as_tensor(seen.bias[: seen.known]))
    return layer


def adapted(of: Any, seen: Seen) -> Rule:
    """A detector of pytorch-ood as a rule, fitted on the training samples of known classes.

    Args:
        of: one with `predict_features`, `predict_feature_maps` or `predict_logits`.
        seen: what rules are fitted on; as everywhere there, in float32.

    Raises:
        ValueError: it reads something else, such as images.
    """
    kind = next((kind for kind in KINDS if hasattr(of, f"predict_{kind}")), None)
    if kind is None:
        raise ValueError(f"need a detector that predicts {', '.join(KINDS)}; got {of}")

    def read(out: Outputs) -> Tensor:
        given = torch.as_tensor(np.float32(out.logits if kind == "logits" else out.features))
        return given[:, :, None, None] if kind == "feature_maps" else given

    known = np.asarray(seen.labels) >= 0
    if of.requires_fit:
        part = Outputs(seen.out.logits[known, : seen.known], seen.out.features[known])
        getattr(of, f"fit_{kind}")(read(part), torch.as_tensor(seen.labels[known]))

    def rule(out: Outputs, *, known: int) -> np.ndarray:
        found = getattr(of, f"predict_{kind}")(read(Outputs(out.logits[:, :known], out.features)))
        return -found.detach().double().numpy()

    return rule


def grad_norm(seen: Seen) -> Rule:
    """GradNorm, in Huang et al. 2021, of the last layer's weights, whose input the features are."""
    from pytorch_ood.detector import GradNorm

    made = GradNorm(head(seen), param_filter=lambda name: name == "weight")
    return lambda out, *, known: (  # noqa: ARG005  # all of the head's columns are known
        -made.predict(torch.as_tensor(np.float32(out.features))).detach().double().numpy()
    )


def detectors() -> dict[str, Callable[[Seen], Rule]]:
    """pytorch-ood's detectors that the package lacks, with its settings, each a fit of a rule."""
    from osnb.datasets.vision import torchvision  # noqa: F401, I001  # pytorch-ood needs its guard
    from pytorch_ood import detector as of

    made = {  # of the last layer, which those of feature maps see behind maps of one pixel
        "react": lambda layer: of.ReAct(None, _of_maps(layer)),
        "vra": lambda layer: of.VRA(None, _of_maps(layer)),
        "scale": lambda layer: of.SCALE(None, _of_maps(layer)),
        "ash_s": lambda layer: of.ASH(None, _of_maps(layer), variant="ash-s"),
        "ash_p": lambda layer: of.ASH(None, _of_maps(layer), variant="ash-p"),
        "ash_b": lambda layer: of.ASH(None, _of_maps(layer), variant="ash-b"),
        "lts": lambda layer: of.LTS(None, layer),
        "nnguide": lambda layer: of.NNGuide(None, layer),
        "pnml": lambda layer: of.PNML(None, layer),
        "dice": lambda layer: of.DICE(None, layer.weight, layer.bias, p=0.7),
        "gmm": lambda _: of.GMM(None),
        "temperature": lambda _: of.TemperatureScaling(None),
    }
    fits = {name: partial(_fitted, make) for name, make in made.items()}
    return fits | {"grad_norm": grad_norm}


def _fitted(make: Callable[[nn.Linear], Any], seen: Seen) -> Rule:
    return adapted(make(head(seen)), seen)


def _of_maps(layer: nn.Linear) -> Callable[[Tensor], Tensor]:
    return lambda maps: layer(maps.flatten(1))
