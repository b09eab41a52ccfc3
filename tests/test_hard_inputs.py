"""The first value of the bootstrap is the metric itself, on whatever a file may hold."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from test_cli import osnb
from test_metrics_libraries import THEIRS

from osnb import metrics

INF = math.inf
RNG = np.random.default_rng(0)
TINY = np.finfo(np.float64).tiny


def normal(knowns, unknowns, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(1, 1, knowns), rng.normal(0, 1, unknowns)


def split(values):
    """Known ones first, a third unknown."""
    values = np.asarray(values)
    return values[: 2 * len(values) // 3], values[2 * len(values) // 3 :]


HARD = {
    "plain": normal(40, 20),
    "one of each": (np.array([1.0]), np.array([0.0])),
    "one of each, tied": (np.array([1.0]), np.array([1.0])),
    "one known": (np.array([0.3]), RNG.normal(size=30)),
    "one unknown": (RNG.normal(size=30), np.array([0.3])),
    "all tied": (np.zeros(30), np.zeros(20)),
    "two values": split(RNG.integers(0, 2, 60)),
    "rounded": tuple(side.round(1) for side in normal(60, 30)),
    "perfect": (np.arange(1.0, 31), -np.arange(1.0, 21)),
    "turned": (-np.arange(1.0, 31), np.arange(1.0, 21)),
    "infinite": (np.r_[INF, INF, normal(20, 9)[0]], np.r_[INF, -INF, normal(20, 9)[1]]),
    "all infinite": (np.full(20, INF), np.full(10, INF)),
    "both infinities": split(np.where(RNG.random(60) < 0.5, INF, -INF)),
    "minus infinity": (np.r_[normal(20, 9)[0], -INF], np.r_[-INF, -INF, normal(20, 9)[1]]),
    "zeros of two signs": split(np.where(RNG.random(60) < 0.5, 0.0, -0.0)),
    "subnormal": split(TINY * RNG.random(60)),
    "huge": split(1.7e308 * RNG.normal(0, 0.3, 60).clip(-1, 1)),
    "huge and tiny": split(10.0 ** RNG.integers(-300, 300, 60)),
    "next to one": split(1 - RNG.integers(0, 4, 60) * 2.0**-53),
    "saturated softmax": split(1 / (1 + np.exp(-RNG.normal(30, 20, 60)))),
    "float32": split(RNG.normal(size=60).astype(np.float32)),
    "float32 of two neighbours": split(np.float32(1) + np.float32(2**-23) * (np.arange(60) % 3)),
    "float16": split(RNG.normal(size=60).astype(np.float16)),
    "int8": split(RNG.integers(-128, 128, 60, np.int8)),
    "uint8": split(RNG.integers(0, 256, 60, np.uint8)),
    "int64": split(RNG.integers(-(2**53), 2**53, 60)),
    "int64, neighbours": split(2**53 - RNG.integers(0, 3, 60)),
    "uint64": split(RNG.integers(0, 2**53, 60, np.uint64)),
    "heavy tails": split(RNG.standard_cauchy(60) ** 9),
    "strided": tuple(side[::-2] for side in normal(80, 40)),
    "mostly unknown": normal(3, 90),
    "mostly known": normal(90, 3),
}


def right(known):
    return np.arange(len(known)) % 4 > 0


NAMES = {"auroc": "auroc", "oscr area": "oscr_area", "fpr95": "fpr95"}
LIBRARIES = ("osr-metrics", "pytorch-ood", "scikit-learn")
NAMES |= {"ap of unknown": "average_precision", "aurc": "aurc"}


@pytest.mark.parametrize("name", HARD)
def test_hard_scores_have_the_values_of_three_libraries_on_their_ranks(name):
    """Ranks, since the libraries differ in what they do with infinities and narrow types."""
    known, unknown = HARD[name]
    found, held = metrics.summary(known, right(known), unknown), 0
    score = np.concatenate([known, unknown], dtype=np.float64)
    ranks = np.unique(score, return_inverse=True)[1].astype(float)
    sides = ranks[: len(known)], right(known), ranks[len(known) :]
    for (library, metric), theirs in THEIRS.items():
        if library in LIBRARIES and metric in NAMES:
            said, constant = float(theirs(*sides)), metric == "oscr area" and ranks.max() == 0
            wanted = (
                said if constant and said == 0 else found[NAMES[metric]]
            )  # one has no curve then
            assert said == pytest.approx(wanted, abs=1e-12), metric
            held += 1
    assert held == 11


NARROW = [name for name, (known, _) in HARD.items() if known.dtype != np.float64]
FORMS = [(name, "csv") for name in HARD]  # text; the others hold a float64 as it is
FORMS += [(name, kind) for name in NARROW for kind in ("parquet", "npz")]


@pytest.mark.parametrize(("name", "kind"), FORMS)
def test_a_file_of_hard_scores_says_the_same(name, kind, tmp_path):
    """The command prints the first values of the bootstrap; no CCR at less than one image."""
    known, unknown = HARD[name]
    label = np.r_[np.zeros(len(known), int), np.full(len(unknown), -2)]
    pred = np.r_[~right(known), np.zeros(len(unknown), bool)].astype(int)
    score = np.concatenate([known, unknown])
    columns, file = {"label": label, "pred": pred, "mine": score}, tmp_path / f"a.{kind}"
    if kind == "npz":
        np.savez(file, **columns)
    elif kind == "csv":
        pd.DataFrame(columns).to_csv(file, index=False)
    else:
        pd.DataFrame(columns).to_parquet(file)
    code, out, err = osnb("score", file, "--resamples", 20, "--json", "-")
    assert code == 0, err
    rows = {row["measure"]: row["value"] for row in json.loads(out)["rows"]}
    values = metrics.summary(known, right(known), unknown)
    lacking = {f"ccr_at_fpr_{fpr}" for fpr in (0.001, 0.01, 0.1) if fpr * len(unknown) < 1}
    assert {name for name in values if rows[name] is None} == lacking
    for measure in {*values} - lacking:
        value = values[measure]
        assert rows[measure] == pytest.approx(value, rel=1e-12, abs=1e-15), measure


@pytest.mark.parametrize(
    "scores",
    [
        np.array([1, 2, 3], np.uint64) + np.uint64(2**63),
        np.array([1, 2, 2**53 + 1]),
        np.array([1, 2**53, 2**53 + 2]),
        np.array([1, 2, -(2**53) - 1]),
        np.array([1 + 2j, 1 - 2j, 0]),
        np.array([1, 2, 3], np.longdouble),
        np.array([1.0, np.nan, 2.0]),
        np.array(["1", "2", "3"]),
    ],
    ids=lambda scores: str(scores.dtype),
)
def test_what_would_lose_digits_is_refused_by_both(scores):
    weights = metrics.role_weights(range(3), range(3), seed=0, resamples=30)
    for call in (
        lambda: metrics.summary(scores, np.ones(3, bool), scores),
        lambda: metrics.bootstrap_summary(scores, np.ones(3, bool), scores, weights=weights),
    ):
        with pytest.raises(
            ValueError, match=r"needs (.N,. real numbers|integers up to|numbers; got 1)"
        ):
            call()
