"""The command for scores that somebody else has computed: every measure with its interval."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from osnb.cli.lines import written

UNITS = {"sample": "samples", "class": "classes"}
HEADS = {
    "one": ("role", "measure", "score", "value", "low", "high"),
    "two": ("role", "measure", "score", "first", "second", "difference", "low", "high", "p"),
}


def score(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="csv, parquet or npz.")],
    against: Annotated[
        Path | None, typer.Option(help="Second file on the same samples: FILE less this one.")
    ] = None,
    unit: Annotated[str, typer.Option(help=f"Drawn again: {' or '.join(UNITS)}.")] = "sample",
    resamples: Annotated[int, typer.Option(help="Draws of the bootstrap.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the draws.")] = 0,
    known: Annotated[int, typer.Option(help="Logits that are known classes; all if 0.")] = 0,
    names: Annotated[
        list[str] | None, typer.Option("--score", help="Score to keep, repeatable; all if none.")
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", help="File to write instead; - prints it.")
    ] = None,
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
    drawn = dict(_drawn(samples[0], unit, resamples, seed))
    rows = list(_rows(samples, drawn))
    notes = [*_notes(samples[0])]
    head = HEADS["two" if against else "one"]
    if out:
        _to_csv(out, head, rows)
    if json:
        said = {"files": [*map(str, files)], "unit": unit, "resamples": resamples, "seed": seed}
        return written(json, said | {"notes": notes, "rows": rows})
    _print(head, rows, f"95 % intervals over {UNITS[unit]}")
    for note in notes:
        typer.echo(f"osnb: {note}", err=True)
    return None


def _own(file: Path, known: int, names: list[str]):
    """A file's samples; what is wrong with it begins with its name."""
    from osnb import scores

    try:
        return scores.own(_columns(file), known=known, names=names)
    except ValueError as error:
        said = str(error).splitlines()[0] or type(error).__name__
        raise ValueError(f"{file}: {said}") from None


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
    classes = first.known, second.known
    if all(classes) and classes[0] != classes[1]:
        raise ValueError(f"need as many known classes in both; got {classes[0]} and {classes[1]}")
    if len(first.label) != len(second.label):
        raise ValueError(
            f"need the same samples in both; got {len(first.label)} and {len(second.label)}"
        )
    if bool(len(first.sample)) != bool(len(second.sample)):
        raise ValueError("need a column sample in both files, or in none: then rows are matched")
    if len(first.sample):
        places = [{s: i for i, s in enumerate(each.sample.tolist())} for each in (first, second)]
        if len(places[0]) < len(first.sample) or places[0].keys() != places[1].keys():
            raise ValueError("need the same values of sample in both files, each once")
        order = [places[1][s] for s in places[0]]
        found = {name: column[order] for name, column in second.scores.items()}
        second = second._replace(label=second.label[order], pred=second.pred[order], scores=found)
    if (differ := first.label != second.label).any():
        raise ValueError(f"need the same labels in both; {differ.sum()} of {len(differ)} differ")
    return second


def _roles(own) -> dict[str, Any]:
    """Which samples are of each role but known, where there are any; else of none."""
    from osnb import labels

    of = {"unknown": own.label == labels.UNKNOWN, "negative": own.label == labels.NEGATIVE}
    there = {role: rows for role, rows in of.items() if rows.any()}
    return there or {"none": own.label != own.label}


def _drawn(own, unit: str, resamples: int, seed: int) -> Iterator[tuple]:
    """By role, weights of the known samples and of that role's."""
    from osnb import metrics

    known, options = own.label >= 0, {"seed": seed, "resamples": resamples}
    roles = _roles(own)
    ids = own.unit if len(own.unit) else own.label
    if unit == "class" and not len(own.unit) and "none" not in roles:
        raise ValueError("--unit class needs a column class, since one label is of many unknowns")
    for role, rows in roles.items():
        if unit == "class":
            units = ids[known], ids[rows]
        else:
            units = range(int(known.sum())), range(int(rows.sum()))
        if role == "none":
            weights = metrics.role_weights(units[0], units[0], **options)[0]
            yield role, (weights, weights[:, :0])
        else:
            yield role, metrics.role_weights(*units, **options)


def _resampled(own, name: str, role: str, weights: tuple) -> dict[str, Any]:
    """(1 + R,) of each measure of a score against a role."""
    from osnb import metrics

    known, score = own.label >= 0, own.scores[name]
    sides = score[known], own.pred[known] == own.label[known], score[_roles(own)[role]]
    if role == "none":
        found = metrics.bootstrap_aurc(*sides[:2], weights=weights[0])
    else:
        found = metrics.bootstrap_summary(*sides, weights=weights)
    return found | {"augrc": metrics.bootstrap_augrc(*sides, weights=weights)}


def _rows(samples: list, drawn: dict[str, tuple]) -> Iterator[dict[str, Any]]:
    """One for each role, measure and score; of two files, their differences."""
    from osnb import metrics

    for role, weights in drawn.items():
        found = {
            name: [_resampled(own, n, role, weights) for own, n in zip(samples, pair, strict=True)]
            for name, pair in _pairs(samples).items()
        }
        for measure in next(iter(found.values()))[0]:
            for name, sides in found.items():
                row = {"role": role, "measure": measure, "score": name}
                values = [side[measure] for side in sides]
                ends = metrics.interval(values[0] if len(values) == 1 else values[0] - values[1])
                low_high = {"low": float(ends.low), "high": float(ends.high)}
                if len(values) == 1:
                    yield row | {"value": float(ends.value)} | low_high
                else:
                    both = {"first": float(values[0][0]), "second": float(values[1][0])}
                    p = metrics.p_value(values[0] - values[1])
                    yield row | both | {"difference": float(ends.value)} | low_high | {"p": p}


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


def _notes(own) -> Iterator[str]:
    if "none" in _roles(own):
        yield (
            "no unknown (-2) or negative (-1) sample: OSCR, CCR, AUROC, FPR95 and average "
            "precision cannot be computed, and the risks count wrong predictions alone"
        )


def _to_csv(out: Path, head: tuple[str, ...], rows: list[dict]) -> None:
    from osnb import repro

    with repro.writing(out) as aside, aside.open("w", newline="", encoding="utf8") as file:
        table = csv.DictWriter(file, head, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def _print(head: tuple[str, ...], rows: list[dict], title: str) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(*head, box=None, title=title)
    for row in rows:
        cells = (row[name] for name in head)
        table.add_row(*(f"{x:.4f}" if isinstance(x, float) else x for x in cells))
    console = Console()
    if not console.is_terminal:
        console.width = 160
    console.print(table)


COMMANDS = {"score": score}
