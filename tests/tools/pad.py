"""The networks of the pad, trained through `Experiment`, their thresholds, and drawings to choose.

``python -m tests.tools.pad`` writes pad.json again, in about two minutes of one core.
Weights are rounded to 16 bits first: what is written is what is tested, here and in the page.
"""

import argparse
import base64
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn

from osnb import metrics, scores, train
from osnb.base import workbook
from osnb.datasets import quickdraw
from osnb.evidence import samples
from osnb.experiment import Experiment, Machine
from osnb.experiment.parts import Parts
from osnb.teach import touch

FILE = touch.HERE / "pad.json"
# the base of the miniature, narrower, and twice its epochs: held-out accuracy on split 100, where
# settings are chosen, is .73 in the place of .69
RECIPE = {"benchmark": "p3", "overrides": "features=48 epochs=24"}
METHODS = ("softmax", "background", "entropic")
TPR = 0.8  # share of drawings of known classes to come that a threshold accepts, at least
KEPT_OFF = ("rifle", "underwear", "yoga")  # of the drawings to choose
DIGITS = 3


def folded(network: nn.Module) -> list[tuple[np.ndarray, np.ndarray, int]]:
    """Each layer's weights, inputs before outputs, and bias as float16, and its stride; 0: linear.

    The batch norm is part of its convolution. The network is changed: its numbers are those.
    """
    network.eval()
    layers = []
    for block in [x for x in network.trunk if isinstance(x, nn.Sequential)]:
        block[0] = nn.utils.fuse_conv_bn_eval(block[0], block[1])
        block[1] = nn.Identity()
        layers.append(block[0])
    for layer in (*layers, network.head):
        for numbers in layer.parameters():
            numbers.data = numbers.data.half().float()
    return [_numbers(layer) for layer in (*layers, network.head)]


def _numbers(layer: nn.Module) -> tuple[np.ndarray, np.ndarray, int]:
    tensors = layer.weight, layer.bias
    weight, bias = (x.detach().half().cpu().contiguous().numpy() for x in tensors)
    return weight.transpose(*range(2, weight.ndim), 1, 0), bias, getattr(layer, "stride", (0,))[0]


def trained(method: str, **changed: str) -> tuple[Experiment, Parts, nn.Module]:
    """One of the networks after its last epoch.

    Args:
        method: one of METHODS.
        changed: names that `Experiment.named` takes, in the place of RECIPE's.
    """
    experiment = Experiment.named(method=method, **RECIPE | changed)
    parts = experiment.parts(Machine())
    network = experiment.network(parts)
    with tempfile.TemporaryDirectory() as folder:
        experiment.fit(network, experiment.criterion(parts), parts, Path(folder))
    return experiment, parts, network


def measured(parts: Parts, network: nn.Module) -> dict[str, float]:
    """The threshold on MSP from held-out drawings, and what the network does on these.

    The threshold is that of `osnb threshold --tpr`. AUROC and FPR are known against negative.
    """
    rows = parts.of("val", "known", "negative")
    out, label = train.predict(network, parts.batches(rows)), rows["label"].to_numpy()
    msp, known = scores.max_softmax(out, known=parts.known), label >= 0
    right = scores.predicted(out, known=parts.known)[known] == label[known]
    side = samples.Side(msp[known], right, msp[~known])
    threshold = samples.chosen("tpr", TPR, side, share=0, seed=0)["bound"]
    accuracy, auroc = right.mean(), metrics.auroc(side.known, side.other)
    fpr = (side.other >= threshold).mean()
    rounded = {"accuracy": accuracy, "auroc": auroc, "fpr": fpr}
    return {"threshold": threshold} | {k: round(float(v), DIGITS) for k, v in rounded.items()}


def packed(layers: list[tuple[np.ndarray, np.ndarray, int]]) -> dict:
    """Layers as the page reads them: shapes, and all numbers in one text."""
    parts = [x for weight, bias, _ in layers for x in (weight.ravel(), bias)]
    numbers = np.concatenate(parts).astype("<f2").tobytes()
    shapes = [
        {"inputs": w.shape[-2], "outputs": w.shape[-1], "stride": stride} for w, _, stride in layers
    ]
    return {"layers": shapes, "weights": base64.b64encode(numbers).decode()}


def drawings(parts: Parts) -> Iterator[dict[str, str]]:
    """The first test drawing of each class: its name, role and strokes."""
    table = quickdraw.drawings()
    first = table[table["split"] == "test"].drop_duplicates("name").set_index("wnid")
    classes = parts.classes.sort_values("name").set_index("wnid")
    for wnid, role in classes["role"].items():
        if (name := first.loc[wnid, "name"]) not in KEPT_OFF:
            strokes = base64.b64encode(first.loc[wnid, "strokes"]).decode()
            yield {"name": name, "role": role, "strokes": strokes}


def content() -> dict:
    """What pad.json holds; every network is trained for it."""
    networks, made = {}, {}
    for method in METHODS:
        experiment, parts, network = trained(method)
        layers = folded(network)
        networks[method] = packed(layers) | measured(parts, network)
        made[method] = {"settings": experiment.settings} | parts.inputs
        made[method]["weights"] = workbook.digest(networks[method]["weights"])
    classes = parts.classes[parts.classes["role"] == "known"].sort_values("label")["name"]
    made["torch"] = torch.__version__
    shown = {"classes": [*classes], "networks": networks, "drawings": [*drawings(parts)]}
    return shown | {"tpr": TPR, "made": made}


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()  # --help changes nothing
    torch.set_num_threads(1)
    workbook.write_json(FILE, content())
