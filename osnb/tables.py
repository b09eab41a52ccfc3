"""Scores tables: one row per test sample, written whole, checked, and found by what they say.

A scores table is a parquet file. Its columns are `COLUMNS` and then one float64 column per
scoring rule; its metadata holds the stamp of its run (notebook, run, parameters, hash of the
code) and the hashes of its inputs, never a clock, a commit or a device.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from osnb import repro
from osnb.labels import ROLES, roles

COLUMNS = ("sample", "source", "role", "group", "class", "label", "pred")
KEY = b"osnb"
UNCERTAIN = ("low", "high", "over", "sd_seeds", "seeds")
UNITS = {"class": "classes", "sample": "samples"}


def write(path: Path, scores: pd.DataFrame, metadata: Mapping[str, Any]) -> None:
    """Write a scores table, aside and renamed; equal content gives equal bytes.

    Args:
        path: of the parquet file.
        scores: N rows, `COLUMNS` and float64 columns of scores.
        metadata: goes into the file as json.

    Raises:
        ValueError: the frame breaks the contract; the message says where.
    """
    check(scores)
    table = pa.Table.from_pandas(scores, preserve_index=False)
    text = json.dumps(metadata, sort_keys=True).encode()
    rules = [column for column in scores if column not in COLUMNS]
    with repro.writing(path) as aside:
        pq.write_table(  # split bytes: half the size, the exponents of scores being much alike
            table.replace_schema_metadata({KEY: text}),
            aside,
            compression="zstd",
            use_dictionary=["source", "role", "group", "class"],
            use_byte_stream_split=rules,
        )


def read(path: Path) -> pd.DataFrame:
    """The scores table at `path`, checked; its metadata in `.attrs`.

    Raises:
        ValueError: the file is no whole scores table.
    """
    metadata = _metadata(path)
    scores = pq.read_table(path).to_pandas()
    check(scores)
    scores.attrs = metadata
    return scores


def _metadata(path: Path) -> dict[str, Any]:
    """Parquet keeps it at the file's end, so a file that was cut has none."""
    try:
        return json.loads(pq.read_schema(path).metadata[KEY])
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowInvalid) as error:
        raise ValueError(
            f"{path} is no whole scores table ({error}); remove it and run its notebook again"
        ) from error


def check(scores: pd.DataFrame) -> None:
    """Hold a frame against the contract of scores tables.

    Raises:
        ValueError: a column is missing or of another type, a sample appears twice, a role does
            not follow from its label, a prediction is no known class, or a score is NaN.
    """
    missing = [column for column in COLUMNS if column not in scores]
    if missing:
        raise ValueError(f"a scores table needs the columns {COLUMNS}; it lacks {missing}")
    rules = [column for column in scores if column not in COLUMNS]
    wrong = [rule for rule in rules if scores[rule].dtype != np.float64]
    if wrong or not rules:
        raise ValueError(f"scores are float64, at least one rule; got {dict(scores[rules].dtypes)}")
    if scores["sample"].duplicated().any():
        twice = scores["sample"][scores["sample"].duplicated()].iloc[0]
        raise ValueError(f"each sample has one row; {twice!r} has several")
    if (roles(scores["label"].to_numpy()) != scores["role"].to_numpy()).any():
        raise ValueError(f"roles are {ROLES}, for labels >= 0, -1 and -2; they disagree")
    if len(scores) and scores["pred"].min() < 0:
        raise ValueError(f"pred is a known class, >= 0; got {scores['pred'].min()}")
    empty = [rule for rule in rules if scores[rule].isna().any()]
    if empty:
        raise ValueError(f"scores are numbers; {empty} hold a NaN")


def collect(notebook: str, size: str, *apart: str) -> pd.DataFrame:
    """The finished runs of a training notebook, found by their metadata, never their name.

    A run is looked for in runs/ and then in figures/, where the latest good ones are kept. Only
    runs of an experiment that params/NOTEBOOK/ describes count, in any seed and split: a table
    would take a variant of it, with other epochs say, for one more seed.

    Args:
        notebook: its name, ending in _train.
        size: mini, tiny or paper.
        apart: parameters that tell the runs apart in what is made from them.

    Returns:
        One row per run, sorted by name: its parameters, `path` of its scores table, `hash` of
        that file. `.attrs["missing"]` lists the params files of that size without a run,
        `.attrs["variants"]` the finished runs that are left out.

    Raises:
        FileNotFoundError: there is none; the message says how to make them.
        ValueError: two runs have the same values of all parameters in `apart`.
    """
    among = repro.experiments(notebook)
    found = {row["run"]: row for row in _finished(notebook, size)}
    rows = {name: row for name, row in found.items() if repro.experiment(row, among)}
    wanted = [name for name, every in among.items() if every.get("size", "mini") == size]
    missing = [name for name in wanted if name not in rows]
    if not rows:
        files = f"params/{notebook}/{size}_*.yaml" if wanted else f"params/{notebook}/*.yaml"
        raise FileNotFoundError(
            f"no finished run of {notebook} with size {size!r} in runs/ or figures/; "
            f"make them with: osnb run {files}"
        )
    runs = pd.DataFrame([rows[name] for name in sorted(rows)])
    runs.attrs |= {"missing": missing, "variants": sorted(found.keys() - rows)}
    _told_apart(runs, list(apart))
    return runs


def _told_apart(runs: pd.DataFrame, by: list[str]) -> None:
    same = runs[runs.duplicated(by, keep=False)] if by else runs[:0]
    if len(same):
        alike = same.iloc[0]
        names = same.loc[(same[by] == alike[by]).all(axis=1), "run"]
        values = ", ".join(f"{name} {alike[name]}" for name in by)
        raise ValueError(
            f"{' and '.join(names)} are both {values}: no table can tell them apart, so only one "
            "of them may stand in params/ with this size"
        )


def gaps(runs: pd.DataFrame) -> str:
    """One line: the runs that `collect` did not find, and those that it left out."""
    missing, variants = (", ".join(runs.attrs[each]) for each in ("missing", "variants"))
    return f"missing: {missing or 'none'}" + (
        f"; variants left out: {variants}" if variants else ""
    )


def expected(notebook: str, size: str) -> list[str]:
    """The runs that params/NOTEBOOK/ describes for a size, sorted; mini is the default."""
    files = sorted((repro.root() / "params" / notebook).glob("*.yaml"))
    return [file.stem for file in files if repro.params(file).get("size", "mini") == size]


def stack(runs: pd.DataFrame, *columns: str, file: str = "scores") -> pd.DataFrame:
    """The tables of several runs below each other, with the run's parameters as columns.

    Args:
        runs: from `collect`.
        columns: parameters to repeat on every row, such as protocol, loss and seed.
        file: "scores" (last epoch), "scores_best", "history", or "outputs", which only runs with
            two features have. No run at all gives no row.
    """
    first = COLUMNS if file.startswith("scores") else ()
    parts = [pd.DataFrame(columns=[*first, "run", *columns])] if runs.empty else []
    for row in runs.to_dict("records"):
        path = Path(row["path"]).with_name(f"{file}.parquet")
        part = pd.read_parquet(path) if file in ("history", "outputs") else read(path)
        parts.append(part.assign(**{name: row[name] for name in ("run", *columns)}))
    stacked = pd.concat(parts, ignore_index=True)
    stacked.attrs = {}
    return stacked


def artefacts(runs: pd.DataFrame, name: str, *columns: str) -> pd.DataFrame:
    """As `stack`, of the csv `name` that lies beside a scores table, or else in figures/.

    Its stamp has to name the code that made the scores. `.attrs["missing"]` lists the runs that
    have none such.
    """
    parts, missing = [], []
    for row in runs.to_dict("records"):
        folder = Path(row["path"]).parent
        bases = [base / "figures" for base in (repro.out(), repro.root())]
        kept = [base / folder.parent.name / folder.name for base in bases]
        found = [each / f"{name}.csv" for each in (folder, *kept)]
        code = _metadata(Path(row["path"]))["code"]
        if file := next((each for each in found if _made_by(each) == code), None):
            part = pd.read_csv(file)
            parts.append(part.assign(**{key: row[key] for key in ("run", *columns)}))
        else:
            missing.append(row["run"])
    parts = parts or [pd.DataFrame(columns=["run", *columns])]
    stacked = pd.concat(parts, ignore_index=True)
    stacked.attrs = {"missing": missing}
    return stacked


def _made_by(file: Path) -> str | None:
    """The hash of the code in the stamp beside a csv; none without one."""
    stamp = file.with_suffix(".json")
    return json.loads(stamp.read_text())["code"] if file.is_file() and stamp.is_file() else None


def inputs(runs: pd.DataFrame) -> dict[str, str]:
    """Hash of each run's scores table, for the stamp of what is made from them."""
    return dict(zip(runs["run"], runs["hash"], strict=True))


def published(paper: str, table: str) -> pd.DataFrame:
    """A table of a paper as printed, from osnb/published.

    Raises:
        FileNotFoundError: no such table; the message lists the paper's.
    """
    folder = repro.PACKAGE / "published" / paper
    path = folder / f"{table}.csv"
    if not path.is_file():
        names = ", ".join(sorted(file.stem for file in folder.glob("*.csv")))
        raise FileNotFoundError(f"no table {table!r} of {paper!r}; there are: {names or 'none'}")
    return pd.read_csv(path)


def compare(
    theirs: pd.DataFrame,
    ours: pd.DataFrame,
    *,
    on: list[str],
    value: str,
    comparable: bool,
    tolerance: float,
    more: bool = False,
) -> pd.DataFrame:
    """Published numbers beside ours, one row each.

    Args:
        theirs: columns `on` and `value`, as printed; NaN is a dash in the paper.
        ours: columns `on`, `value` and `run`; a mean over seeds names them all in `run`. Those
            of `UNCERTAIN` that it has come along: low and high of a bootstrap interval, over
            which unit, sd_seeds and seeds.
        on: columns that tell which numbers belong together.
        value: the column that both frames have.
        comparable: whether ours is the paper's experiment; if not, there is no difference.
        tolerance: a difference up to this is within.
        more: whether rows follow that only ours has, such as those of a loss of one's own.

    Returns:
        `on`, paper, ours, those of `UNCERTAIN` that ours has, difference, within (yes, no, or
        empty where there is no difference), run.
    """
    uncertain = [name for name in UNCERTAIN if name in ours]
    theirs = theirs[[*on, value]]
    if more:
        keys = [frame.set_index(on).index for frame in (ours, theirs)]
        theirs = pd.concat([theirs, ours.loc[~keys[0].isin(keys[1]), on]], ignore_index=True)
    both = theirs.merge(
        ours[[*on, value, *uncertain, "run"]], on=on, how="left", suffixes=("_paper", "_ours")
    )
    both = both.rename(columns={f"{value}_paper": "paper", f"{value}_ours": "ours"})
    both["difference"] = both["ours"] - both["paper"] if comparable else np.nan
    size = both["difference"].abs()
    both["within"] = np.where(size.isna(), "", np.where(size <= tolerance, "yes", "no"))
    both["run"] = both["run"].fillna("not run")
    return both[[*on, "paper", "ours", *uncertain, "difference", "within", "run"]]


def shown(frame: pd.DataFrame, *, digits: int = 3) -> pd.DataFrame:
    """A frame to be read: an interval in one column, whose head says what was resampled.

    Columns low, high and over become "95 % over classes" (or samples), a bootstrap interval;
    sd_seeds and seeds become "sd over seeds", a standard deviation. The two are never one.
    Numbers are rounded; NaN, a dash in print or a number that is not there, is "-".
    """
    cells = {}
    for name, column in frame.items():
        if name == "low":
            ends = zip(frame["low"], frame["high"], strict=True)
            head = "95 % over " + " or ".join(
                UNITS.get(u, u) for u in frame["over"].dropna().unique()
            )
            cells[head] = [_range(*pair, digits) for pair in ends]
        elif name == "sd_seeds":
            pairs = zip(column, frame["seeds"], strict=True)
            cells["sd over seeds"] = [_spread(sd, seeds, digits) for sd, seeds in pairs]
        elif name not in {"high", "over", "seeds"}:
            cells[name] = [_cell(value, digits) for value in column]
    return pd.DataFrame(cells)


def latex(frame: pd.DataFrame, *, digits: int = 3) -> str:
    """`shown` as a LaTeX tabular with booktabs rules."""
    return shown(frame, digits=digits).to_latex(index=False, escape=True)


def _cell(value: Any, digits: int) -> str:
    if isinstance(value, float):
        return "-" if np.isnan(value) else f"{value:.{digits}f}"
    return str(value)


def _range(low: float, high: float, digits: int) -> str:
    return "-" if np.isnan(low) else f"[{low:.{digits}f}, {high:.{digits}f}]"


def _spread(sd: float, seeds: float, digits: int) -> str:
    if np.isnan(sd):
        return "one seed" if seeds == 1 else "-"
    return f"{sd:.{digits}f} ({seeds:.0f})"


def _finished(notebook: str, size: str) -> Iterator[dict[str, Any]]:
    """Figures first, so that a run in runs/ takes the place of its published copy."""
    for base in (repro.root() / "figures", repro.out() / "figures", repro.out() / "runs"):
        for path in sorted((base / notebook).glob("*/scores.parquet")):
            metadata = _metadata(path)
            if metadata["parameters"]["size"] == size:
                yield metadata["parameters"] | {"path": str(path), "hash": repro.file_hash(path)}
