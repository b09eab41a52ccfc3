"""Scores tables of many runs: found by what they say, set below each other, held against print."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from osnb import experiment
from osnb.base import stamps, workbook
from osnb.base.tables import COLUMNS, check, published, read, write  # noqa: F401
from osnb.experiment import layers

UNCERTAIN = ("low", "high", "over", "sd_seeds", "seeds")
UNITS = {"class": "classes", "sample": "samples"}


def collect(notebook: str, size: str, *apart: str) -> pd.DataFrame:
    """The finished runs of a training notebook, found by their stamps, never their name.

    A run is looked for in runs/ and then in figures/, where the latest good ones are kept. Only
    runs of an experiment that params/NOTEBOOK/ describes count, in any seed and split: a table
    would take a variant of it, with other epochs say, for one more seed.

    Args:
        notebook: its name, ending in _train.
        size: mini, tiny or paper.
        apart: parameters that tell the runs apart in what is made from them.

    Returns:
        One row per run, sorted by name: its parameters, settings and columns, `path` of its
        scores table, `hash` of its data. `.attrs["missing"]` lists the params files of that size
        without a run, `.attrs["variants"]` the finished runs that are left out.

    Raises:
        FileNotFoundError: there is none; the message says how to make them.
        ValueError: two runs have the same values of all parameters in `apart`, or a table is
            another than its stamp says.
    """
    among, wanted = described(notebook), expected(notebook, size)
    found = {x["run"]: (path, x) for path, x in stamps.finished(notebook, size)}
    rows = {name: _row(*found[name]) for name in found if repeats(found[name][1], among)}
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


def some(runs: pd.DataFrame, files: str) -> pd.DataFrame:
    """Those of the runs of `collect` that a notebook reads, if there are any.

    Args:
        runs: a part of what `collect` found.
        files: whose runs they would be, such as 21_vaze_train/paper_ssb_*.

    Raises:
        FileNotFoundError: there is none; the message says how to make them.
    """
    if runs.empty:
        raise FileNotFoundError(
            f"no finished run of {files}; make them with: osnb run params/{files}.yaml"
        )
    return runs


def described(notebook: str) -> dict[str, dict[str, Any]]:
    """What each params file of a training notebook describes, by its stem.

    These are an experiment's settings; of a notebook without experiments, its parameters.
    """
    return {
        stem: experiment.of(found).settings if experiment.is_training(found) else found
        for stem, found in workbook.experiments(notebook).items()
    }


def repeats(stamp: Mapping[str, Any], among: Mapping[str, Mapping]) -> str | None:
    """Which experiment a run repeats: the one it is called after, but for chance and machine.

    None if there is no such experiment. Then the run is a variant, and no table may take it for
    another seed of what it was varied from.

    Args:
        stamp: of the run.
        among: from `described`.
    """
    name, said = stamp["run"], stamp["settings"] or stamp["parameters"]
    said = {k: v for k, v in said.items() if k not in workbook.REPEATS}
    for stem, base in among.items():
        called = name == stem or name.startswith(f"{stem}-")
        if called and all(base.get(k, v) == v for k, v in said.items()):
            return stem
    return None


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
    missing, variants = (", ".join(runs.attrs[name]) for name in ("missing", "variants"))
    left_out = f"; variants left out: {variants}" if variants else ""
    return f"missing: {missing or 'none'}{left_out}"


def expected(notebook: str, size: str) -> list[str]:
    """The runs that params/NOTEBOOK/ describes for a size, sorted; mini is the default."""
    files = sorted((workbook.root() / "params" / notebook).glob("*.yaml"))
    return [file.stem for file in files if workbook.params(file).get("size", "mini") == size]


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

    Its stamp has to name the same code and settings as that of the scores. `.attrs["missing"]`
    lists the runs that have none such.
    """
    parts, missing = [], []
    for row in runs.to_dict("records"):
        folder = Path(row["path"]).parent
        kept = Path("figures", folder.parent.name, folder.name)
        folders = folder, workbook.out() / kept, workbook.root() / kept
        files = [file for x in folders if (file := x / f"{name}.csv").is_file()]
        scores = _made_by(folder / "scores.json")
        of_scores = [file for file in files if _made_by(file.with_suffix(".json")) == scores]
        if of_scores:
            part = pd.read_csv(of_scores[0])
            parts.append(part.assign(**{key: row[key] for key in ("run", *columns)}))
        else:
            missing.append(row["run"])
    none = pd.DataFrame(columns=["run", *columns])
    stacked = pd.concat(parts or [none], ignore_index=True)
    stacked.attrs = {"missing": missing}
    return stacked


def _made_by(file: Path) -> tuple | None:
    """Code and settings in a stamp; none of a file that is no whole one."""
    stamp = stamps.read(file)
    return stamp and (stamp["goldens"], stamp["settings"], stamp["parameters"])


def inputs(runs: pd.DataFrame) -> dict[str, str]:
    """Digest of each run's data, for the stamp of what is made from them."""
    return dict(zip(runs["run"], runs["hash"], strict=True))


def texts(paper: str, table: str) -> pd.DataFrame:
    """A table of osnb/published as text; an empty cell is an empty text."""
    rows = published(paper, table).astype(object)
    return rows.where(rows.notna(), "").astype(str)


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
    theirs = theirs[[*on, value]].rename(columns={value: "paper"})
    ours = ours[[*on, value, *uncertain, "run"]].rename(columns={value: "ours"})
    if more:
        keys = [frame.set_index(on).index for frame in (ours, theirs)]
        theirs = pd.concat([theirs, ours.loc[~keys[0].isin(keys[1]), on]], ignore_index=True)
    both = theirs.merge(ours, on=on, how="left")
    both["difference"] = both["ours"] - both["paper"] if comparable else np.nan
    size = both["difference"].abs()
    both["within"] = np.where(size.isna(), "", np.where(size <= tolerance, "yes", "no"))
    both["run"] = both["run"].fillna("not run")
    return both[[*on, "paper", "ours", *uncertain, "difference", "within", "run"]]


def headline(
    what: str | pd.Series, paper: Any, ours: Any, *, of: str = "", **more: Any
) -> list[dict[str, Any]]:
    """What an artefact compares, for `here.save(..., headline=)`: READMEs and report show it.

    Args:
        what: the numbers are; rows of the same `what` are shown beside each other.
        paper: one value, or one of each row; text, or a number (NaN where print has none).
        ours: as paper.
        of: another artefact of the same run that this is about.
        more: low, high and unit, as paper.
    """
    columns = {"what": what, "paper": paper, "ours": ours} | more
    sizes = [np.size(column) for column in columns.values()]
    size = max(sizes) if all(sizes) else 0  # of no row there is nothing to compare
    rows = pd.DataFrame({n: list(np.resize(x, size)) for n, x in columns.items()}).astype(object)
    rows = rows.where(rows.notna(), None)
    return [row | ({"of": of} if of else {}) for row in rows.to_dict("records")]


def shown(frame: pd.DataFrame, *, digits: int = 3, sd_over: str = "seeds") -> pd.DataFrame:
    """A frame to be read: an interval in one column, whose head says what was resampled.

    Columns low, high and over become "95 % over classes" (or samples), a bootstrap interval;
    sd_seeds and seeds become "sd over seeds", a standard deviation. The two are never one. Where
    what counts as seeds are runs of other splits too, `sd_over` is "runs".
    Numbers are rounded; NaN, a dash in print or a number that is not there, is "-".
    """
    cells = {}
    for name, column in frame.items():
        if name == "low":
            ends = zip(frame["low"], frame["high"], strict=True)
            units = " or ".join(UNITS.get(u, u) for u in frame["over"].dropna().unique())
            cells[f"95 % over {units}"] = [_range(*pair, digits) for pair in ends]
        elif name == "sd_seeds":
            pairs = zip(column, frame["seeds"], strict=True)
            one = f"one {sd_over.removesuffix('s')}"
            cells[f"sd over {sd_over}"] = [_spread(*pair, digits, one) for pair in pairs]
        elif name not in {"high", "over", "seeds"}:
            cells[name] = [_cell(value, digits) for value in column]
    return pd.DataFrame(cells)


def latex(frame: pd.DataFrame, *, digits: int = 3, sd_over: str = "seeds") -> str:
    """`shown` as a LaTeX tabular with booktabs rules."""
    return shown(frame, digits=digits, sd_over=sd_over).to_latex(index=False, escape=True)


def _cell(value: Any, digits: int) -> str:
    if isinstance(value, float):
        return "-" if np.isnan(value) else f"{value:.{digits}f}"
    return str(value)


def _range(low: float, high: float, digits: int) -> str:
    return "-" if np.isnan(low) else f"[{low:.{digits}f}, {high:.{digits}f}]"


def _spread(sd: float, seeds: float, digits: int, one: str) -> str:
    if np.isnan(sd):
        return one if seeds == 1 else "-"
    return f"{sd:.{digits}f} ({seeds:.0f})"


def as_stamped(path: Path, stamp: Mapping[str, Any]) -> None:
    """Refuse a scores table that is another than its stamp says: no number is made of it.

    Raises:
        ValueError: of the files that the stamp explains, one has other bytes.
    """
    if altered := stamps.altered(path.parent, stamp):
        raise ValueError(
            f"{stamp['notebook']}/{stamp['run']}: {', '.join(altered)} in {path.parent} has other "
            "bytes than its stamp says; put it back, or run its params file anew (osnb run --force)"
        )


def _row(path: Path, stamp: Mapping[str, Any]) -> dict[str, Any]:
    as_stamped(path, stamp)
    row = stamp["parameters"] | dict(layers.flat(stamp["settings"])) | stamp["columns"]
    return row | {"path": str(path), "hash": stamps.data(path.parent)}
