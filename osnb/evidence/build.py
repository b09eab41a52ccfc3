"""Scores tables of many runs to measures with intervals: one row per run, rule and task."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from osnb import metrics
from osnb.evidence import tables
from osnb.evidence.names import printed_as
from osnb.evidence.numbers import Evidence
from osnb.evidence.tasks import CCR, TASKS, Part, Tasks

KEYS = ["run", "benchmark", "place", "split", "network", "regime", "method", "seed"]
KEYS += ["rule", "printed", "task", "source"]
NAMES = {"oscr_area": "oscr"} | {name.replace("at_", "at_fpr_"): name for name in CCR}


def evidence(
    runs: pd.DataFrame,
    tasks: str,
    rules: str | Sequence[str],
    *,
    every_rule: bool = False,
    file: str = "scores",
    unit: str = "class",
    seed: int = 0,
    resamples: int = 1000,
) -> Evidence:
    """Measures of runs, with resamples that all runs of a benchmark share.

    Test samples are drawn with replacement, known ones and those of each task apart. Runs of one
    benchmark have the same draws, so that differences between them are paired.

    Args:
        runs: from `tables.collect`, with the column place of `names.placed`.
        tasks: a name in `TASKS`: roles (Palechor et al.), shifts (Vaze et al.), unified (Kim et
            al.) or cross (whatever of all three).
        rules: columns of the scores tables; or the key of a paper, those that its rows.csv has
            for a run's method and regime; or "cross", those that `method_name` needs no comma for.
        every_rule: every column that there is, named where it has a name.
        file: which scores table of a run: scores (last epoch) or scores_best.
        unit: what is drawn: "class" for an interval over other classes, or "sample" for one over
            other images of the same classes.
        seed: of the draws.
        resamples: R.

    Returns:
        `KEYS`, all text: of the run, then rule, printed (what the paper calls a network that is
        read by this rule, or nothing), task and source (whose images, where there are several
        sets). Measures, rates in [0, 1], NaN where a task has no such one: accuracy, auroc,
        fpr95, oscr (area), average_precision, aurc and e_aurc, ccr_at_<FPR>, gamma_plus and
        gamma_minus (equation 7 of Palechor et al.). Of wrong predictions auroc and fpr95 are NaN
        in resamples that have none.

    Raises:
        ValueError: two runs of a benchmark have different test samples.
    """
    of, draws = TASKS[tasks], Draws(unit, seed, resamples)
    keys, values = [], []
    for run in runs.sort_values("run").to_dict("records"):
        scores = tables.read(Path(run["path"]).with_name(f"{file}.parquet"))
        scores = scores.sort_values("sample", kind="stable")
        for key, numbers in _measured(run, scores, of, (rules, every_rule), draws):
            keys.append([str(run.get(name, "")) for name in KEYS[:8]] + key)
            values.append(numbers)
    none, shape = np.full(1 + resamples, np.nan), (len(values), 1 + resamples)
    measures = dict.fromkeys(name for asked in of.asked.values() for name in asked)
    stacked = {m: np.reshape([x.get(m, none) for x in values], shape) for m in measures}
    return Evidence(pd.DataFrame(keys, columns=KEYS), stacked)


@dataclass(frozen=True)
class Draws:
    """Copies of samples that resamples draw; each name has a stream of its own."""

    unit: str
    seed: int
    resamples: int
    known: dict[str, tuple[int, str]] = field(default_factory=dict)

    def __call__(self, rows: pd.DataFrame, name: str, run: str) -> np.ndarray:
        """(1 + R, N) copies of each of N samples, the same for all that ask under a name.

        Raises:
            ValueError: another run had other samples under this name.
        """
        samples = hash((*rows["sample"], *rows["class"]))
        first, other = self.known.setdefault(name, (samples, run))
        if first != samples:
            raise ValueError(
                f"runs are compared sample by sample, so they need the same test samples; "
                f"{other} and {run} have different ones ({name})"
            )
        if not self.resamples:
            return np.ones((1, len(rows)), np.uint16)
        words = [self.seed, zlib.crc32(name.encode())]
        stream = int(np.random.SeedSequence(words).generate_state(1)[0])
        units = rows[self.unit].to_numpy()
        return metrics.bootstrap_weights(units, seed=stream, resamples=self.resamples)


def _measured(
    run: Mapping[str, Any], scores: pd.DataFrame, tasks: Tasks, rules: tuple, draws: Draws
) -> Iterator[tuple[list[str], dict[str, np.ndarray]]]:
    """(rule, printed, task and source; measures) of each part and rule of a run."""
    known = scores[scores["role"] == "known"]
    where = " ".join(str(run[name]) for name in tasks.draw)
    right = (known["pred"] == known["label"]).to_numpy()
    drawn = draws(known, f"{where} known", run["run"])
    columns = [name for name in scores if name not in tables.COLUMNS]
    printed = printed_as(rules[0], run, columns, every=rules[1])
    for part in tasks.parts(scores, run):
        asked = tasks.asked.get(part.task, tasks.asked[""])
        if part.rows is not None:
            both = drawn, draws(part.rows, f"{where} {part.draw}", run["run"])
        for rule, name in printed.items():
            if part.rows is None:
                numbers = _wrong(known[rule].to_numpy(), right, drawn)
            else:
                columns = known[rule], right, part.rows[rule]
                numbers = metrics.bootstrap_summary(*columns, weights=both)
                if "gamma_plus" in asked:
                    numbers |= _confidence(run, known, part, both)
            numbers = {NAMES.get(measure, measure): x for measure, x in numbers.items()}
            key = [rule, name, part.task, part.source]
            yield key, {measure: numbers[measure] for measure in asked if measure in numbers}


def _confidence(
    run: Mapping[str, Any], known: pd.DataFrame, part: Part, weights: tuple
) -> dict[str, np.ndarray]:
    """gamma_plus and gamma_minus; a network with a background class has no offset."""
    offset = 0.0 if run["method"] == "background" else 1 / (known["label"].max() + 1)
    target, largest = known["target"], part.rows["max_softmax"]
    gamma = metrics.bootstrap_confidence(target, largest, offset=offset, weights=weights)
    return {name: gamma[name] for name in ("gamma_plus", "gamma_minus")}


def _wrong(score: np.ndarray, right: np.ndarray, weights: np.ndarray) -> dict[str, np.ndarray]:
    """The measures of right predictions against wrong ones; NaN where one side is empty."""
    numbers = metrics.bootstrap_aurc(score, right, weights=weights)
    numbers |= {name: np.full(len(weights), np.nan) for name in ("auroc", "fpr95")}
    sides = weights[:, right], weights[:, ~right]
    both = np.all([side.sum(axis=1) > 0 for side in sides], axis=0)
    if both[0]:
        of = score[right], np.ones(int(right.sum()), bool), score[~right]
        told = metrics.bootstrap_summary(*of, weights=tuple(side[both] for side in sides))
        for name in ("auroc", "fpr95"):
            numbers[name][both] = told[name]
    return numbers
