"""The command for scores that somebody else has computed: every measure with its interval."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from osnb.book.cli.lines import Json, written

UNITS = {"sample": "samples", "class": "classes"}
AGAINST = "Second file on the same samples: FILE less this one."
UNKNOWABLE = (
    "no unknown (-2) or negative (-1) sample: OSCR, CCR, AUROC, FPR95 and average "
    "precision cannot be computed, and the risks count wrong predictions alone"
)


def score(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="csv, parquet or npz.")],
    against: Annotated[Path | None, typer.Option(help=AGAINST)] = None,
    unit: Annotated[str, typer.Option(help=f"Drawn again: {' or '.join(UNITS)}.")] = "sample",
    resamples: Annotated[int, typer.Option(help="Draws of the bootstrap.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the draws.")] = 0,
    known: Annotated[int, typer.Option(help="Logits that are known classes; all if 0.")] = 0,
    names: Annotated[
        list[str] | None, typer.Option("--score", help="Score to keep, repeatable; all if none.")
    ] = None,
    json: Json = None,
    out: Annotated[Path | None, typer.Option(help="csv file to write as well.")] = None,
):
    """Measures of your own scores, with 95 % intervals: accuracy, OSCR, AUROC, AURC, ...

    FILE has the columns label (known class from 0, negative -1, unknown -2), pred and one or more
    of scores (higher: more known); or label and logits, logit_0 to logit_{K-1} (in npz: labels
    (N,) and logits (N, K)), of which MSP, max logit, energy and entropy are computed. Optional
    columns: sample (id), class (true class, for --unit class).

    \b
    osnb score scores.csv
    osnb score mine.npz --against theirs.npz --unit class --out differences.csv
    """
    if unit not in UNITS:
        raise ValueError(f"--unit is one of {', '.join(UNITS)}; got {unit!r}")
    if out and out.suffix != ".csv":
        raise ValueError(f"--out writes .csv; got {out.name!r}")
    files = [file, against] if against else [file]
    samples = [_own(each, known, names or ()) for each in files]
    if against:
        samples[1] = _matched(*samples)
    rows = list(_rows(samples, unit, seed=seed, resamples=resamples))
    notes = [UNKNOWABLE] if "none" in _roles(samples[0]) else []
    if out:
        _to_csv(out, rows)
    if json:
        about = {"files": [*map(str, files)], "unit": unit, "resamples": resamples, "seed": seed}
        return written(json, about | {"notes": notes, "rows": rows})
    _print(rows, f"95 % intervals over {UNITS[unit]}", notes)
    return None


def _own(file: Path, known: int, names: list[str]):
    """A file's samples; what is wrong with it begins with its name."""
    from osnb import scores

    try:
        return scores.own(_columns(file), known=known, names=names)
    except ValueError as error:
        reason = str(error).splitlines()[0] or type(error).__name__
        raise ValueError(f"{file}: {reason}") from None


def _columns(file: Path) -> dict[str, Any]:
    """Arrays by name."""
    import pyarrow.csv as text
    from pyarrow import parquet

    from osnb import scores

    readers = {".csv": text.read_csv, ".parquet": parquet.read_table}
    if file.suffix == ".npz":
        return scores.arrays(file)
    if file.suffix not in readers:
        raise ValueError(f"needs a name that ends in .csv, .npz or .parquet; got {file.suffix!r}")
    if not file.is_file():
        raise FileNotFoundError(2, "no such file", str(file))
    table = readers[file.suffix](file)
    if twice := [name for name in table.column_names if table.column_names.count(name) > 1]:
        raise ValueError(f"has more than one column {twice[0]!r}")
    return {name: table[name].to_numpy() for name in table.column_names}


def _matched(first, second):
    """The second file's samples in the order of the first's."""
    import pandas as pd

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


def _roles(own) -> dict[str, Any]:
    """Which samples are of each role but known, where there are any; else of none."""
    from osnb.base import labels

    of = {"unknown": own.label == labels.UNKNOWN, "negative": own.label == labels.NEGATIVE}
    there = {role: rows for role, rows in of.items() if rows.any()}
    return there or {"none": own.label != own.label}


def _rows(samples: list, unit: str, **draws: int) -> Iterator[dict[str, Any]]:
    """One for each role, measure and score; of two files, their differences."""
    from osnb import metrics

    for role, other in _roles(samples[0]).items():
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
    from osnb import metrics

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
    from osnb import metrics

    known, score = own.label >= 0, own.scores[name]
    right = own.pred[known] == own.label[known]
    sides = score[known], right, score[other]
    if other.any():
        values = metrics.bootstrap_summary(*sides, weights=weights)
    else:
        values = metrics.bootstrap_aurc(*sides[:2], weights=weights[0])
    return values | {"augrc": metrics.bootstrap_augrc(*sides, weights=weights)}


def _pairs(samples: list) -> dict[str, tuple[str, ...]]:
    """What is compared: scores of one name, or the only score of each file."""
    names = [[*own.scores] for own in samples]
    shared = [name for name in names[0] if all(name in each for each in names)]
    if shared:
        return {name: (name,) * len(names) for name in shared}
    if all(len(each) == 1 for each in names):
        return {" - ".join(each[0] for each in names): tuple(each[0] for each in names)}
    both = " and ".join(", ".join(each) for each in names)
    raise ValueError(f"need a score of one name in both files, or one score each; got {both}")


def _to_csv(out: Path, rows: list[dict]) -> None:
    import pandas as pd

    from osnb.base import workbook

    with workbook.writing(out) as aside:
        pd.DataFrame(rows).to_csv(aside, index=False, lineterminator="\n")


def _print(rows: list[dict], title: str, notes: list[str]) -> None:
    import pandas as pd

    print(title, pd.DataFrame(rows).to_string(index=False, float_format="{:.4f}".format), sep="\n")
    for note in notes:
        typer.echo(f"osnb: {note}", err=True)
