"""Scores of any runs or files side by side, class by class: what 50_own shows."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from osnb import experiment
from osnb.base import labels, stamps, workbook
from osnb.base.columns import of_columns
from osnb.evidence import tables

COLUMNS = ("share", "images", "class", "taken for")


def collect(runs: str, size: str, *, score: str, read: Callable[..., Any]) -> pd.DataFrame:
    """The scores of finished runs, and of files, below each other.

    Args:
        runs: names of training runs, and paths of scores files (csv, parquet or npz, from
            `workbook.out()`), with blanks between.
        size: of the runs: mini, tiny, paper or own.
        score: the scoring rule's column, the only one that is taken of a file.
        read: reads the columns of a file, `scores.own`.

    Returns:
        Scores tables with columns run, benchmark, method (the run's name) and seed;
        `.attrs["inputs"]` has the digest of each one's data, `.attrs["stamps"]` the stamps of runs,
        `.attrs["classes"]` the names of known classes of files that have them, `.attrs["notes"]`
        lines on how files were read.

    Raises:
        ValueError: a word is neither, two are of one name, a table is another than its stamp
            says, or a file cannot be read.
    """
    found = {stamp["run"]: (path, stamp) for path, stamp in stamps.finished("*_train", size)}
    words, parts, inputs, notes, classes = runs.split(), [], {}, "", {}
    if not words or len(set(words)) < len(words):
        raise ValueError(f"runs names some, each once; got {runs!r}")
    for word in words:
        file = workbook.out() / word
        name = word if word in found else file.stem
        if name in inputs:
            raise ValueError(f"two are called {name}: rename a file; got {runs!r}")
        if word in found:
            path, stamp = found[word]
            tables.as_stamped(path, stamp)
            part, of = tables.read(path), stamp["columns"]["benchmark"]
            inputs[name] = stamps.data(path.parent)
        elif file.is_file():
            part, samples = _own(file, score, read)
            of, inputs[name] = f"{len(part)} samples", workbook.digest(file)
            classes[name] = samples.classes
            notes += "".join(f"{file.name}: {note}\n" for note in samples.notes)
        else:
            there = ", ".join(sorted(found)) or "none"
            raise ValueError(f"{word!r} is no file, and no finished run of size {size}: {there}")
        parts.append(part.assign(run=name, benchmark=of, method=name, seed=0))
    table = pd.concat(parts, ignore_index=True)
    known = {word: found[word][1] for word in words if word in found}
    table.attrs = {"inputs": inputs, "stamps": known, "classes": classes, "notes": notes}
    return table


def _own(file: Path, score: str, read: Callable[..., Any]) -> tuple[pd.DataFrame, Any]:
    """A file of somebody else's as a scores table, and as it was read."""

    def made(columns: Mapping[str, np.ndarray]) -> tuple[pd.DataFrame, Any]:
        own = read(columns, names=[score])
        words = dict(enumerate(own.classes))
        classes = np.array([words.get(label, str(label)) for label in own.label], object)
        sample = own.sample if len(own.sample) else np.arange(len(own.label))
        rows = {"sample": sample.astype(str), "source": _text(columns.get("source"), file.stem)}
        rows |= {"role": labels.roles(own.label), "group": _text(columns.get("group"), "")}
        rows |= {"class": _text(own.unit, classes), "label": own.label, "pred": own.pred}
        return pd.DataFrame(rows | own.scores), own

    return of_columns(file, made)


def _text(column: np.ndarray | None, empty: np.ndarray | str) -> np.ndarray | str:
    """(N,) words of a column, those of `empty` where it says nothing or is not there."""
    if column is None or not np.size(column):
        return empty
    words = pd.Series(column, dtype=object)
    return np.where(words.isna() | (words == ""), empty, words.astype(str))


def accepting(table: pd.DataFrame, *, score: str, tpr: float) -> float:
    """The largest threshold at which a share of the known samples is accepted: score >= it.

    Args:
        table: scores of one run.
        score: the scoring rule's column.
        tpr: the share, in (0, 1].
    """
    known = np.sort(table.loc[table["role"] == "known", score].to_numpy())[::-1]
    return float(known[max(int(np.ceil(tpr * len(known) - 1e-9)), 1) - 1])  # .55 * 100 > 55


def pairs(table: pd.DataFrame, *, score: str, threshold: float) -> pd.DataFrame:
    """Which unknown class is accepted as which known class, and how often; the worst pair first.

    Args:
        table: from `collect`, one run of it.
        score: the scoring rule's column.
        threshold: a score at it is accepted.

    Returns:
        `COLUMNS`: share of the unknown class's images, in (0, 1], how many, both classes. A known
        class without a test image has its number in the place of a name that the table lacks.
    """
    known, unknown = (table[table["role"] == role] for role in ("known", "unknown"))
    names = dict(enumerate(table.attrs["classes"].get(table["run"].iloc[0], ())))
    names |= dict(zip(known["label"], known["class"], strict=True))
    taken = unknown[unknown[score] >= threshold]
    known_as = taken["pred"].map(lambda pred: names.get(pred, f"{pred:.0f}")).rename("taken for")
    rows = taken.groupby(["class", known_as]).size().rename("images").reset_index()
    sizes = rows["class"].map(unknown["class"].value_counts()).astype(float)  # of no row: text
    rows["share"] = rows["images"] / sizes
    order = {"by": ["share", "images", "class"], "ascending": [False, False, True]}
    return rows.sort_values(**order, ignore_index=True)[[*COLUMNS]]


def pictures(
    table: pd.DataFrame, rows: pd.DataFrame, *, score: str, each: int, data: str = ""
) -> Sequence[np.ndarray]:
    """Images of pairs: the unknown ones with the largest scores, then known ones.

    Args:
        table: from `collect`, one run of it.
        rows: from `pairs`.
        score: the scoring rule's column.
        each: images of each class of a pair.
        data: folder of the data sets.

    Returns:
        2 * each images a pair, (channels, S, S) uint8, white where there are fewer; none of a pair
        without known images, nor for a file without a run.
    """
    stamp = table.attrs["stamps"].get(table["run"].iloc[0])
    ranked, found = table.sort_values(score, ascending=False, kind="stable"), []
    for pair in rows.to_dict("records"):
        known = ranked[(ranked["role"] == "known") & (ranked["class"] == pair["taken for"])]
        taken = ranked["pred"].isin(known["label"])
        unknown = ranked[(ranked["class"] == pair["class"]) & taken]
        for part in (unknown, known) if len(known) else ():
            found += [*part["sample"].head(each), *[""] * (each - len(part))]
    if not stamp or not found:
        return []
    parts = experiment.of(stamp["parameters"]).parts(experiment.Machine(data=data))
    places = pd.Series(range(len(parts.images.rows)), parts.images.rows["sample"])
    there = [sample for sample in found if sample]
    read = dict(zip(there, parts.images.read(places[there].to_numpy()).numpy(), strict=True))
    return [read.get(sample, np.full(parts.images.shape, 255, np.uint8)) for sample in found]
