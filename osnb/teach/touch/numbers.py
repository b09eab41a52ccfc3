"""What the pad and the explorers show: numbers ready for json, from files that are in git."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from osnb.base import workbook
from osnb.evidence.tasks import NOISE

HERE = Path(__file__).parent
METHODS = ("softmax", "background", "entropic")  # in the order in which they are shown
NOTES = (
    "A threshold is chosen on held-out drawings of the known classes, as by osnb threshold --tpr "
    "{tpr:g}: with 95 % confidence it accepts at least {tpr:.0%} of further such drawings. It is "
    "compared with MSP, the largest probability of a known class.",
    "The networks have {count:,} numbers at most and were trained on 100 drawings of each class. "
    "Accuracy on held-out drawings: {accuracy}. Held-out drawings of negative classes that are "
    "accepted: {fpr}. Background and entropic were shown other drawings of these classes, as "
    "drawings of no known class.",
    "The drawings are from Quick, Draw!, made available by Google, Inc. under CC BY 4.0. Nothing "
    "that you draw leaves this page.",
)
SAMPLES = (  # of notebook 01: name, known, right, score
    *(("a", True, True, 0.95), ("b", True, True, 0.9), ("c", False, False, 0.8)),
    *(("d", True, False, 0.75), ("e", True, True, 0.7), ("f", True, True, 0.6)),
    *(("g", False, False, 0.6), ("h", True, True, 0.45), ("i", False, False, 0.3)),
    ("j", False, False, 0.2),
)
PAIR = "mini_tinyimagenet_strong-split4"  # the network of notebook 23's two images
PLACES = {  # of notebook 24
    "cub": "mammals, in the place of CUB",
    "scars": "vehicles, in the place of Stanford Cars",
    "fgvc-aircraft": "food, in the place of FGVC-Aircraft",
    "imagenet": "things, in the place of ImageNet",
}
POOLS = {"mini": "in the place of ImageNet", "mini_cifar": "in the place of CIFAR, without noise"}
ODDS = "max_softmax_log_odds"
RUNS = {  # of notebook 33, split 0: a run and its column, both log odds
    "Baseline": ("baseline", ODDS),
    "CRL": ("crl", ODDS),
    "EDL": ("edl", ODDS),
    "MCdropout": ("mcdropout", ODDS),
    "Ensemble": ("ensemble", ODDS),
    "Augmix": ("augmix", ODDS),
    "ODIN": ("baseline", "odin"),
    "OE": ("oe", ODDS),
    "OpenMax": ("baseline", "openmax"),
}


def pad() -> dict:
    """Classes, networks and drawings of pad.json, and what has to be said of them."""
    content = json.loads((HERE / "pad.json").read_text("utf8"))
    made = content.pop("made")
    networks = {name: content["networks"][name] for name in METHODS}
    said = {
        what: ", ".join(f"{name} {each[what]:.2f}" for name, each in networks.items())
        for what in ("accuracy", "fpr")
    }
    said |= {"tpr": made["tpr"], "count": max(map(parameters, networks.values()))}
    return content | {"networks": networks, "notes": [note.format(**said) for note in NOTES]}


def parameters(network: dict) -> int:
    """How many numbers a network of pad.json has."""
    return sum(
        (9 if x["stride"] else 1) * x["inputs"] * x["outputs"] + x["outputs"]
        for x in network["layers"]
    )


def ten() -> dict:
    """The ten samples of notebook 01, and the rates at which its curves are read."""
    names = ("name", "known", "right", "score")
    samples = [dict(zip(names, sample, strict=True)) | {"target": 0.1} for sample in SAMPLES]
    return {"samples": samples, "fpr": 0.5, "tpr": 0.95}


def vectors() -> dict:
    """Test images of a network: largest logit, all others as one, known or not; two to begin with.

    The others are log sum exp of their logits, so that MSP is that of two logits. The two images
    have nearly the same MSP, and largest logits as far apart as there are.
    """
    roles = _scores("21_vaze_train", PAIR).groupby("role", sort=False)
    table = roles.head(1000)  # of each role, as notebook 23 takes them
    odds = table[ODDS].to_numpy()
    logit, known = table["max_logit"].to_numpy(), (table["role"] == "known").to_numpy()
    alike = np.abs(np.subtract.outer(odds[known], odds[~known])) <= 0.05
    apart = np.where(alike, np.subtract.outer(logit[known], logit[~known]), -np.inf)
    first, second = np.unravel_index(apart.argmax(), apart.shape)
    points = np.column_stack([logit, logit - odds]).round(4)
    pair = [points[known][first].tolist(), points[~known][second].tolist()]
    sides = {"known": points[known].tolist(), "unknown": points[~known].tolist()}
    return {"run": PAIR, "pair": pair} | sides


def near() -> dict:
    """AUROC of each unknown class and its steps to the closest known one, by data and split."""
    path = workbook.root() / "figures" / "24_vaze_semantic_shift" / "mini" / "likeness.csv"
    table = pd.read_csv(path).query("printed == 'mls'")
    columns = ["split", "unknown", "closest", "steps", "auroc"]
    return {
        title: table.loc[table["place"] == place, columns].to_dict("records")
        for place, title in PLACES.items()
    }


def risk() -> dict:
    """By pool and method, the test samples from the surest on: log odds, and 1 if it is right."""
    return {title: dict(_ranked(prefix)) for prefix, title in POOLS.items()}


def _ranked(prefix: str):
    for name, (run, column) in RUNS.items():
        table = _scores("31_kim_train", f"{prefix}_{run}")
        table = table[table["source"] != NOISE].sort_values(column, ascending=False)
        right = (table["role"] == "known") & (table["pred"] == table["label"])
        yield (
            name,
            {"right": "".join(right.map({True: "1", False: "0"})), "odds": _short(table[column])},
        )


def _short(odds: pd.Series) -> list[float]:
    return odds.round(5).tolist()


def _scores(notebook: str, run: str) -> pd.DataFrame:
    return pd.read_parquet(workbook.root() / "figures" / notebook / run / "scores.parquet")
