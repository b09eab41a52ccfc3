"""Scores of any runs or files side by side, class by class: what 50_own shows."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from osnb import experiment
from osnb.base import labels, stamps, workbook
from osnb.evidence import tables
from osnb.evidence.frames import need

COLUMNS = ("share", "images", "class", "taken for")


def collect(runs: str, size: str) -> pd.DataFrame:
    """The scores of finished runs, and of files, below each other.

    Args:
        runs: names of training runs, and paths of scores files (parquet or csv, from
            `workbook.out()`), with blanks between. A file needs the columns label (class from 0,
            negative -1, unknown -2), pred and scores; class names the true class.
        size: of the runs: mini, tiny, paper or own.

    Returns:
        Scores tables with columns run, benchmark, method (the run's name) and seed;
        `.attrs["inputs"]` has the digest of each one's data, `.attrs["stamps"]` the stamps of runs.

    Raises:
        ValueError: a word is neither, two are of one name, or a table is another than its stamp
            says.
    """
    found = {stamp["run"]: (path, stamp) for path, stamp in stamps.finished("*_train", size)}
    words, parts, inputs = runs.split(), [], {}
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
            part = _own(file)
            of, inputs[name] = f"{len(part)} samples", workbook.digest(file)
        else:
            there = ", ".join(sorted(found)) or "none"
            raise ValueError(f"{word!r} is no file, and no finished run of size {size}: {there}")
        parts.append(part.assign(run=name, benchmark=of, method=name, seed=0))
    table = pd.concat(parts, ignore_index=True)
    known = {word: found[word][1] for word in words if word in found}
    table.attrs = {"inputs": inputs, "stamps": known}
    return table


def _own(file: Path) -> pd.DataFrame:
    """A file of somebody else's as a scores table: what it does not say is empty."""
    table = pd.read_csv(file) if file.suffix == ".csv" else pd.read_parquet(file)
    need(table, ["label", "pred"])
    if not all(pd.api.types.is_numeric_dtype(table[name]) for name in ("label", "pred")):
        raise ValueError(
            f"{file.name} needs whole numbers in label and pred; names of classes are "
            "read by osnb score"
        )
    given = {"sample": table.index.astype(str), "source": file.stem, "group": ""}
    given |= {"role": labels.roles(table["label"].to_numpy())}
    given["class"] = table["label"].astype(str)
    return table.assign(**{name: x for name, x in given.items() if name not in table})


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
        table: scores of one run, with a column class.
        score: the scoring rule's column.
        threshold: a score at it is accepted.

    Returns:
        `COLUMNS`: share of the unknown class's images, in (0, 1], how many, both classes.
    """
    known, unknown = (table[table["role"] == role] for role in ("known", "unknown"))
    names = known.drop_duplicates("label").set_index("label")["class"]
    taken = unknown[unknown[score] >= threshold]
    counts = taken.groupby(["class", taken["pred"].map(names).rename("taken for")]).size()
    rows = counts.rename("images").reset_index()
    rows["share"] = rows["images"] / rows["class"].map(unknown["class"].value_counts())
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
        2 * each images a pair, (channels, S, S) uint8; none for a file without a run.
    """
    stamp = table.attrs["stamps"].get(table["run"].iloc[0])
    if not stamp:
        return []
    parts = experiment.of(stamp["parameters"]).parts(experiment.Machine(data=data))
    places = pd.Series(range(len(parts.images.rows)), parts.images.rows["sample"])
    ranked, found = table.sort_values(score, ascending=False, kind="stable"), []
    for pair in rows.to_dict("records"):
        known = ranked[(ranked["role"] == "known") & (ranked["class"] == pair["taken for"])]
        taken = known["label"].iloc[0] == ranked["pred"]
        unknown = ranked[(ranked["class"] == pair["class"]) & taken]
        found += [*unknown["sample"].head(each), *known["sample"].head(each)]
    return list(parts.images.read(places[found].to_numpy()).numpy())
