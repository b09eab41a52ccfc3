"""What the pad and the explorers show: numbers ready for json, from files that are in git."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from osnb.base import workbook
from osnb.evidence.names import NOISE

HERE = Path(__file__).parent
KINDS = "kkuwkkukuu"  # of notebook 01's samples: known, classified wrong, unknown
SCORES = (0.95, 0.9, 0.8, 0.75, 0.7, 0.6, 0.6, 0.45, 0.3, 0.2)
PAIR = "mini_tinyimagenet_strong-split4"  # the network of notebook 23's two images
PLACES = {  # of notebook 24
    "cub": "mammals, in the place of CUB",
    "scars": "vehicles, in the place of Stanford Cars",
    "fgvc-aircraft": "food, in the place of FGVC-Aircraft",
    "imagenet": "things, in the place of ImageNet",
}
POOLS = {"mini": "in the place of ImageNet", "mini_cifar": "in the place of CIFAR, without noise"}
ODDS = "max_softmax_log_odds"
RUNS = ("Baseline", "CRL", "EDL", "MCdropout", "Ensemble", "Augmix", "OE")  # of notebook 33
RULES = ("ODIN", "OpenMax")  # read from Baseline's network


def pad() -> dict:
    """Classes, networks and drawings of pad.json."""
    return json.loads((HERE / "pad.json").read_text("utf8"))


def ten() -> dict:
    """The ten samples of notebook 01, and the rates at which its curves are read.

    `target` is the score of a known sample's true class where another class was named.
    """
    samples = [
        {"name": name, "known": kind != "u", "right": kind == "k", "score": score, "target": 0.1}
        for name, kind, score in zip("abcdefghij", KINDS, SCORES, strict=True)
    ]
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


def _ranked(prefix: str) -> Iterator[tuple[str, dict]]:
    for name in (*RUNS, *RULES):
        run, column = ("Baseline", name.lower()) if name in RULES else (name, ODDS)
        table = _scores("31_kim_train", f"{prefix}_{run.lower()}")
        table = table[table["source"] != NOISE].sort_values(column, ascending=False)
        right = (table["role"] == "known") & (table["pred"] == table["label"])
        yield name, {"right": right.astype(int).tolist(), "odds": table[column].round(5).tolist()}


def _scores(notebook: str, run: str) -> pd.DataFrame:
    return pd.read_parquet(workbook.root() / "figures" / notebook / run / "scores.parquet")
