"""What is measured after every epoch of a training; gamma alone says which epoch is the best."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
from torch import nn

from osnb import metrics, scores, train
from osnb.base import workbook
from osnb.base.outputs import Outputs
from osnb.experiment.parts import Parts

SEEN = {"max_logit": scores.max_logit, "max_softmax": scores.max_softmax_log_odds}
SEEN |= {"feature_norm": scores.feature_norm}


def validate(name: str, parts: Parts, directory: Path) -> Callable[[nn.Module], dict[str, float]]:
    """The measures gamma, held_out or test, as `train.fit` asks for them."""
    measure = {"gamma": gamma, "held_out": held_out, "test": partial(on_test, directory=directory)}
    return partial(measure[name], parts=parts)


def gamma(network: nn.Module, parts: Parts) -> dict[str, float]:
    """Equation 7 of Palechor et al. 2023 and accuracy, on all validation images; `best` is gamma.

    The offset is 1 / K where the largest known probability cannot fall below that, and 0 for a
    network with more outputs than known classes.
    """
    batches, known = parts.validation, parts.known
    out, labels = train.predict(network, batches), batches.rows["label"].to_numpy()
    target, is_known = scores.target(out, labels, known=known), labels >= 0
    offset = 1 / known if parts.outputs == known else 0.0
    measured = metrics.confidence(target[is_known], target[~is_known], offset=offset)
    right = scores.predicted(out, known=known) == labels
    accuracy = metrics.accuracy(right[is_known])
    return measured | {"accuracy": accuracy, "best": measured["gamma"]}


def held_out(network: nn.Module, parts: Parts) -> dict[str, float]:
    """Accuracy, mean feature norm and mean largest logit on held-out known images."""
    batches, known = parts.held_out, parts.known
    out, labels = train.predict(network, batches), batches.rows["label"].to_numpy()
    right = scores.predicted(out, known=known) == labels
    norm, top = scores.feature_norm(out, known=known), scores.max_logit(out, known=known)
    measured = {"accuracy": right, "feature_norm": norm, "max_logit": top}
    return {name: float(value.mean()) for name, value in measured.items()}


def on_test(network: nn.Module, parts: Parts, directory: Path) -> dict[str, float]:
    """`held_out`; AUROC and norms of features on all test images; mean norm of the head's rows.

    Two features of every test image are kept in outputs.parquet, epoch by epoch.
    """
    out, known = train.predict(network, parts.test), parts.known
    of_known = (parts.test.rows["label"] >= 0).to_numpy()
    values = {name: rule(out, known=known) for name, rule in SEEN.items()}
    measured = {f"auroc_{n}": metrics.auroc(x[of_known], x[~of_known]) for n, x in values.items()}
    norm = values["feature_norm"]
    measured |= {"norm_known": norm[of_known].mean(), "norm_unknown": norm[~of_known].mean()}
    if out.features.shape[1] == 2:
        _keep(out, parts.test.rows, directory)
    rows = next(network.head.parameters()).detach().norm(dim=1).mean()
    return held_out(network, parts) | measured | {"norm_of_classes": rows}


def _keep(out: Outputs, rows: pd.DataFrame, directory: Path) -> None:
    """Add both features of every test image after this epoch to outputs.parquet."""
    path, history = directory / "outputs.parquet", directory / "history.parquet"
    done = len(pd.read_parquet(history)) if history.is_file() else 0
    before = [pd.read_parquet(path).query(f"epoch <= {done}")] if done else []
    new = rows[["sample", "role", "label"]].reset_index(drop=True)
    new[["x", "y"]] = out.features
    with workbook.writing(path) as aside:
        pd.concat([*before, new.assign(epoch=done + 1)]).to_parquet(aside, index=False)
