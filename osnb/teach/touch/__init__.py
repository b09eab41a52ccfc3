"""What a learner moves: a pad to draw on and explorers, in a notebook or as a page of its own.

Each is JavaScript (shared.js and a file of its name), touch.css, and numbers as json. A page holds
all of it, asks no server, and opens by a double click. In a notebook an anywidget runs the same
text; the numbers are sent when it asks for them, so that a saved notebook stays small.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from html import escape
from pathlib import Path
from string import Template

import anywidget
import numpy as np
import pandas as pd

from osnb.base import workbook
from osnb.base.catalogue import Catalogue
from osnb.evidence.names import DRAWINGS, NOISE

HERE = Path(__file__).parent
KINDS = "kkuwkkukuu"  # of notebook 01's samples: known, classified wrong, unknown
SCORES = (0.95, 0.9, 0.8, 0.75, 0.7, 0.6, 0.6, 0.45, 0.3, 0.2)
PAIR = "mini_tinyimagenet_strong-split4"  # the network of notebook 23's two images
# of notebook 24
PLACES = {k: v.replace(", for ", ", in the place of ") for k, v in DRAWINGS.items()}
POOLS = {"mini": "in the place of ImageNet", "mini_cifar": "in the place of CIFAR, without noise"}
ODDS = "max_softmax_log_odds"
RUNS = ("Baseline", "CRL", "EDL", "MCdropout", "Ensemble", "Augmix", "OE")  # of notebook 33
RULES = ("ODIN", "OpenMax")  # read from Baseline's network


class Touch(anywidget.AnyWidget):
    """A pad or an explorer in a notebook; where there is no kernel, a frame with its page.

    Args:
        name: in SHOWN.
    """

    def __init__(self, name: str):
        self.name, (self.title, given) = name, SHOWN[name]
        self._esm, self._css = script(name) + _read("widget.js"), _read("touch.css")
        super().__init__()
        self.on_msg(lambda *_: self.send(given()))

    def __repr__(self) -> str:
        return self.title

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict, dict]:
        data, about = super()._repr_mimebundle_(**kwargs)
        return data | {"text/html": _filled("frame.html", name=self.name)}, about


def show(name: str) -> Touch:
    """The pad or an explorer, for a notebook's cell.

    Args:
        name: in SHOWN.

    Raises:
        KeyError: no such name; the message lists those there are.
    """
    return Touch(name)


def script(name: str) -> str:
    """The JavaScript of a pad or an explorer; it defines `explorer(root, data)`."""
    return _read("shared.js") + _read(f"{name}.js")


def page(name: str) -> str:
    """An html page that holds everything it needs.

    Args:
        name: in SHOWN.
    """
    data = json.dumps(SHOWN[name][1](), separators=(",", ":")).replace("</", r"<\/")
    return _filled("page.html", name=name, css=_read("touch.css"), data=data, script=script(name))


def files() -> Iterator[tuple[str, bytes]]:
    """Pages of the report: where each stands, and its content; none without the runs it shows."""
    for name in SHOWN:
        with suppress(FileNotFoundError):
            yield f"_static/touch/{name}.html", page(name).encode()


def _filled(file: str, *, name: str, **parts: str) -> str:
    return Template(_read(file)).substitute(name=name, title=escape(SHOWN[name][0]), **parts)


def _read(file: str) -> str:
    return (HERE / file).read_text("utf8")


# What is shown: numbers ready for json, from files that are in git


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
    table = _scores("21_vaze_train", PAIR)
    odds, logit = table[ODDS].to_numpy(), table["max_logit"].to_numpy()
    known = (table["role"] == "known").to_numpy()
    early = (table.groupby("role").cumcount() < 1000).to_numpy()  # where notebook 23 looks
    one, other = np.flatnonzero(known & early), np.flatnonzero(~known & early)
    alike = np.abs(np.subtract.outer(odds[one], odds[other])) <= 0.05
    apart = np.where(alike, np.subtract.outer(logit[one], logit[other]), -np.inf)
    first, second = np.unravel_index(apart.argmax(), apart.shape)
    points = np.column_stack([logit, logit - odds]).round(4)
    pair = [points[one[first]].tolist(), points[other[second]].tolist()]
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


SHOWN = Catalogue(  # its title, and the function that gives its numbers
    pad=("A pad: draw, and three networks answer", pad),
    ten=("Ten samples to drag", ten),
    vectors=("Maximum logit and softmax as vectors", vectors),
    near=("Near and far by similarity", near),
    risk=("Risk, coverage and what a threshold costs", risk),
)
