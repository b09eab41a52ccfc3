"""Commands about scores of any origin: their measures, and a threshold to decide by."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from osnb.base import workbook
from osnb.book import record
from osnb.book.cli.look import Json, written

UNITS = {"sample": "samples", "class": "classes"}
AGAINST = "Second file on the same samples: FILE less this one."
UNKNOWABLE = (
    "no unknown (-2) or negative (-1) sample: OSCR, CCR, AUROC, FPR95 and average "
    "precision cannot be computed, and the risks count wrong predictions alone"
)
PROMISES = {  # what a threshold is worth, by the name in the column `promise`
    "bound": "with 95 % confidence over calibration sets, {rate} is at {side} {at:g}",
    "conformal": "on average over calibration sets, {rate} is at {side} {at:g}; about every second "
    "single set misses it",
}
NONE = "none: no threshold is shown to keep {rate} at {side} {at:g}, so everything is rejected"
BEYOND = "this is about samples drawn like these: of other unknown classes it says nothing"
CONVENTIONS = "The scores under the rules of public libraries."
CHOOSE = "Pick on half the unknown classes, report the others."
TEST = "Other samples; if left out, half of FILE, at random."
TO_COME = "Of the unknown among samples to come; as in FILE if 0."
WHOLE, EXACT = re.compile(r"[+-]?\d+"), 2.0**53  # of numbers; below it a double holds each
Known = Annotated[int, typer.Option(help="Logits or texts that are known classes; all if 0.")]
Seed = Annotated[int, typer.Option(help="Of the draws.")]
Names = Annotated[list[str] | None, typer.Option("--score", help="Score to keep; all if none.")]


def score(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="csv, parquet or npz.")],
    against: Annotated[Path | None, typer.Option(help=AGAINST)] = None,
    unit: Annotated[str, typer.Option(help=f"Drawn again: {' or '.join(UNITS)}.")] = "sample",
    resamples: Annotated[int, typer.Option(help="Draws of the bootstrap.")] = 1000,
    seed: Seed = 0,
    known: Known = 0,
    names: Names = None,
    conventions: Annotated[bool, typer.Option("--conventions", help=CONVENTIONS)] = False,
    choose: Annotated[bool, typer.Option("--choose", help=CHOOSE)] = False,
    json: Json = None,
    out: Annotated[Path | None, typer.Option(help="csv file to write as well.")] = None,
):
    """Measures of your own scores, with 95 % intervals: accuracy, OSCR, AUROC, AURC, ...

    FILE has the columns label (known class from 0, negative -1, unknown -2), pred and one or more
    of scores (higher: more known); or label and logits, logit_0 to logit_{K-1} (in npz: labels
    (N,) and logits (N, K)), of which MSP, max logit, energy and entropy are computed; or, in npz,
    labels with embeddings, images (N, D) and texts (C, D), the K known classes first, of which MCM
    is computed, and with --known K, from the texts behind these, NegLabel. label and
    pred may be names of classes, with "unknown" and "negative". Optional columns: sample (id),
    class (true class, for --unit class). Usual other names, such as y_true, do as well.

    \b
    osnb score scores.csv
    osnb score mine.npz --against theirs.npz --unit class --out differences.csv
    """
    from osnb.evidence import samples as of

    if unit not in UNITS:
        raise ValueError(f"--unit is one of {', '.join(UNITS)}; got {unit!r}")
    only_csv(out)
    files, draws = [file, against] if against else [file], {"seed": seed, "resamples": resamples}
    samples = [_own(path, known, names or ()) for path in files]
    notes = [note for sample in samples for note in sample.notes]
    if conventions or choose:
        rows, title = _apart(samples[0], choose, notes, **draws)
        return write({"files": [str(file)], "notes": notes, "rows": rows}, json, out, title)
    if against:
        samples[1] = of.matched(*samples)
    rows = list(of.measures(samples, unit, **draws))
    notes += ([UNKNOWABLE] if "none" in of.roles(samples[0]) else []) + of.turned(rows)
    about = {"files": [*map(str, files)], "unit": unit, "notes": notes, "rows": rows}
    return write(about | draws, json, out, f"95 % intervals over {UNITS[unit]}")


def _apart(own, choose: bool, notes: list[str], **draws: int) -> tuple[list[dict], str]:
    """The rows of --choose, or else of --conventions, and their title."""
    from osnb.evidence import samples as of

    if not choose:
        rows = list(of.conventions(own))
        return rows, "one set of scores, each measure under several rules"
    rows = of.choice(own, **draws)
    enough = round(2 * (len(rows) - 1) / of.LEVEL)
    if draws["resamples"] < enough:
        notes.append(f"{len(rows)} scores need --resamples {enough} for any to differ")
    return rows, "AUROC; differs: from the best, after Holm's correction"


def threshold(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="As for osnb score.")],
    tpr: Annotated[float, typer.Option(help="Share of the known to accept, at least.")] = 0,
    fpr: Annotated[float, typer.Option(help="Share of the unknown to accept, at most.")] = 0,
    risk: Annotated[float, typer.Option(help="Errors among the accepted, at most.")] = 0,
    share: Annotated[float, typer.Option(help=TO_COME)] = 0,
    test: Annotated[Path | None, typer.Option(help=TEST)] = None,
    name: Annotated[str, typer.Option("--score", help="Needed if FILE has several.")] = "",
    seed: Seed = 0,
    known: Known = 0,
    json: Json = None,
    out: Annotated[Path | None, typer.Option(help="csv file for a verdict per row.")] = None,
):
    """A threshold to decide by, what it promises, and what it does on samples it has not seen.

    FILE holds samples that were not trained on, in the form of `osnb score`. One of --tpr, --fpr
    and --risk is asked for. Accepted is a score at or above the threshold.

    \b
    osnb threshold validation.csv --test test.csv --risk .05 --share .1
    osnb threshold scores.csv --tpr .95 --score max_logit --out verdicts.csv
    """
    from osnb.evidence import samples as of

    rate, at = _asked(tpr=tpr, fpr=fpr, risk=risk)
    only_csv(out)
    samples = [_single(each, known, name) for each in ([file, test] if test else [file])]
    held_out, others = samples if test else of.halves(samples[0], seed=seed)
    rows = of.decided(rate, at, held_out, others, share=share, seed=seed)
    if out:
        _verdicts(out, others, of.verdicts(others, rows[0]["threshold"]))
    notes = [note for sample in samples for note in sample.notes]
    notes += promised(rate, at, rows)
    counts = {"calibration": len(held_out.label), "test": len(others.label)}
    about = {"files": [str(x) for x in (file, test) if x], "seed": seed, "share": share, **counts}
    title = "{calibration} samples choose, {test} test; intervals of 95 %".format(**counts)
    write(about | {"notes": notes, "rows": rows}, json, None, title)


def _asked(**rates: float) -> tuple[str, float]:
    """Which of the rates is asked for, and how much of it."""
    asked = [(name, rate) for name, rate in rates.items() if rate]
    if len(asked) != 1:
        raise ValueError(f"needed: one of --tpr, --fpr and --risk; got {len(asked)}")
    return asked[0]


def promised(rate: str, at: float, rows: list[dict[str, Any]]) -> list[str]:
    """What each threshold is worth, in a sentence."""
    words = {"rate": rate.upper() if rate != "risk" else rate, "at": at}
    words["side"] = "least" if rate == "tpr" else "most"
    sentences = []
    for name, value in {row["promise"]: row["threshold"] for row in rows}.items():
        worth = NONE if value != value else f"accept from {value!r}: {PROMISES[name]}"
        sentences.append(f"{name}: {worth.format(**words)}")
    return [*sentences, BEYOND]


def only_csv(out: Path | None) -> None:
    if out and out.suffix != ".csv":
        raise ValueError(f"--out writes .csv; got {out.name!r}")


def _single(file: Path, known: int, name: str):
    """A file's samples with one score."""
    samples = _own(file, known, [name] if name else [])
    if len(samples.scores) > 1:
        raise ValueError(f"{file}: choose one with --score: {', '.join(samples.scores)}")
    return samples


def _verdicts(out: Path, samples, verdicts: list[str]) -> None:
    """A row per sample, in the order of the file: its id or row, its score and the verdict."""
    import pandas as pd

    ids = {"sample": samples.sample} if len(samples.sample) else {}
    rows = ids | samples.scores | {"pred": samples.pred, "verdict": verdicts}
    workbook.write_csv(out, pd.DataFrame(rows))


def write(content: dict[str, Any], json: Path | None, out: Path | None, title: str) -> None:
    """The rows as a csv file, if one is wanted, and as json or else as a table."""
    import pandas as pd

    table = pd.DataFrame(content["rows"])
    if out:
        workbook.write_csv(out, table)
    if json:  # which has no NaN
        rows = [{k: None if v != v else v for k, v in row.items()} for row in content["rows"]]
        return written(json, content | {"rows": rows})
    print(title)
    print(record.plain(table.to_string(index=False, float_format="{:.4f}".format)))
    for note in content["notes"]:
        typer.echo(f"osnb: {note}", err=True)
    return None


def _own(file: Path, known: int, names: list[str]):
    """A file's samples; what is wrong with it begins with its name."""
    from pyarrow import ArrowException

    from osnb import scores

    try:
        return scores.own(_columns(file), known=known, names=names)
    except (ValueError, OSError, ArrowException) as error:
        if getattr(error, "filename", None):  # the system says which file is not there
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{file}: {reason}") from None


def _columns(file: Path) -> dict[str, Any]:
    """Arrays by name."""
    import pyarrow.csv as text
    from pyarrow import parquet

    from osnb import scores

    readers = {".csv": text.read_csv, ".parquet": parquet.read_table}
    if file.suffix not in (*readers, ".npz"):
        raise ValueError(f"needs a name that ends in .csv, .npz or .parquet; got {file.suffix!r}")
    if not file.is_file():
        raise FileNotFoundError(2, "no such file", str(file))
    if file.suffix == ".npz":
        return scores.arrays(file)
    table = readers[file.suffix](file)
    if twice := [name for name in table.column_names if table.column_names.count(name) > 1]:
        raise ValueError(f"has more than one column {twice[0]!r}")
    columns = {name: table[name].to_numpy() for name in table.column_names}
    if file.suffix == ".csv":
        _held(file, [k for k, v in columns.items() if v.dtype.kind == "f"], columns)
    return columns


def _held(file: Path, doubles: list[str], columns: dict[str, Any]) -> None:
    """Refuse whole numbers of a csv file that Arrow has read as doubles and that these round."""
    import pyarrow as pa
    import pyarrow.csv as text

    for name in [name for name in doubles if (abs(columns[name]) >= EXACT).any()]:
        how = text.ConvertOptions(include_columns=[name], column_types={name: pa.string()})
        for word in filter(
            WHOLE.fullmatch, text.read_csv(file, convert_options=how)[0].to_pylist()
        ):
            if Decimal(word) != Decimal(float(word)):
                raise ValueError(f"{name} needs numbers that float64 holds exactly; got {word}")


COMMANDS = (score, threshold)
