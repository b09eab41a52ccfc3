"""Scores that somebody else has computed: every measure with its interval, of one file or two."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from osnb import metrics
from osnb.base import labels

TURNED = 1 / 3  # an AUROC below this is no bad luck


def matched(first, second):
    """The second file's samples in the order of the first's.

    Raises:
        ValueError: they are not the same samples with the same labels.
    """
    classes, counts = (first.known, second.known), (len(first.label), len(second.label))
    if all(classes) and classes[0] != classes[1]:
        raise ValueError(f"need as many known classes in both; got {classes[0]} and {classes[1]}")
    if counts[0] != counts[1]:
        raise ValueError(f"need the same samples in both; got {counts[0]} and {counts[1]}")
    if bool(len(first.sample)) != bool(len(second.sample)):
        raise ValueError("need a column sample in both files, or in none: then rows are matched")
    if len(first.sample):
        ids, there = pd.Index(first.sample), pd.Index(second.sample)
        if not (ids.is_unique and there.is_unique and ids.isin(there).all()):
            raise ValueError("need the same values of sample in both files, each once")
        order = there.get_indexer(ids)
        scores = {name: column[order] for name, column in second.scores.items()}
        second = second._replace(label=second.label[order], pred=second.pred[order], scores=scores)
    if (differ := first.label != second.label).any():
        raise ValueError(f"need the same labels in both; {differ.sum()} of {len(differ)} differ")
    return second


def roles(own) -> dict[str, Any]:
    """Which samples are of each role but known, where there are any; else of none."""
    of = {"unknown": own.label == labels.UNKNOWN, "negative": own.label == labels.NEGATIVE}
    there = {role: rows for role, rows in of.items() if rows.any()}
    return there or {"none": own.label != own.label}


def measures(samples: list, unit: str, **draws: int) -> Iterator[dict[str, Any]]:
    """A row for each role, measure and score; of two files, their differences.

    Args:
        samples: one or two of `scores.own`, the second as from `matched`.
        unit: sample or class, what is drawn again.
        draws: seed and resamples.

    Raises:
        ValueError: the files share no score, or say no classes of their unknown samples.
    """
    for role, other in roles(samples[0]).items():
        weights = _weights(samples[0], other, unit, draws)
        sides = {
            name: [_resampled(*each, other, weights) for each in zip(samples, pair, strict=True)]
            for name, pair in _pairs(samples).items()
        }
        for measure in next(iter(sides.values()))[0]:
            for name, drawn in sides.items():
                first, *second = [values[measure] for values in drawn]
                row = {"role": role, "measure": measure, "score": name}
                if not second:
                    yield row | _ends("value", metrics.interval(first))
                    continue
                row |= {"first": float(first[0]), "second": float(second[0][0])}
                row |= _ends("difference", metrics.interval(first - second[0]))
                yield row | {"p": metrics.p_value(first - second[0])}


def _ends(name: str, interval) -> dict[str, float]:
    return dict(zip((name, "low", "high"), map(float, interval), strict=True))


def _weights(own, other, unit: str, draws: dict[str, int]) -> tuple:
    """Of the draws, for the known samples and for those of the other role."""
    known = own.label >= 0
    if unit == "class":
        if not len(own.unit) and other.any():
            raise ValueError(
                "--unit class needs a column class, since one label is of many unknowns"
            )
        ids = own.unit if len(own.unit) else own.label
        units = ids[known], ids[other]
    else:
        units = range(int(known.sum())), range(int(other.sum()))
    if other.any():
        return metrics.role_weights(*units, **draws)
    weights = metrics.role_weights(units[0], units[0], **draws)[0]
    return weights, weights[:, :0]


def _resampled(own, name: str, other, weights: tuple) -> dict[str, Any]:
    """(1 + R,) of each measure of a score against another role."""
    known, score = own.label >= 0, own.scores[name]
    right = own.pred[known] == own.label[known]
    sides = score[known], right, score[other]
    if other.any():
        values = metrics.bootstrap_summary(*sides, weights=weights)
    else:
        values = metrics.bootstrap_aurc(*sides[:2], weights=weights[0])
    return values | {"augrc": metrics.bootstrap_augrc(*sides, weights=weights)}


def _pairs(samples: list) -> dict[str, tuple[str, ...]]:
    """What is compared: scores of one name, or the only score of the first file with each."""
    names = [[*own.scores] for own in samples]
    shared = [name for name in names[0] if all(name in each for each in names)]
    if shared:
        return {name: (name,) * len(names) for name in shared}
    if len(names[0]) == 1:
        return {f"{names[0][0]} - {name}": (names[0][0], name) for name in names[1]}
    both = " and ".join(", ".join(each) for each in names)
    raise ValueError(f"need a score of one name in both files, or one in the first; got {both}")


def turned(rows: list[dict[str, Any]]) -> list[str]:
    """Of scores whose AUROC is far below chance, a sentence that their sign may be turned."""
    low = {
        row["score"]: row["value"]
        for row in rows
        if row["measure"] == "auroc" and row.get("value", 1) < TURNED
    }
    return [
        f"AUROC of {name} is {value:.3f}: its sign may be turned; higher has to mean more known"
        for name, value in low.items()
    ]
