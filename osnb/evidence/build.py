"""Scores tables of many runs to measures with intervals: one row per run, rule and task.

Numbers stand under their keys, so that one question is put to runs and to printed tables alike.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from osnb import metrics
from osnb.evidence import tables
from osnb.evidence.names import CCR, CONFIDENCE, TASKS, Part, Tasks, printed_as
from osnb.metrics import bootstrap

OF_RUN = ["run", "size", "benchmark", "place", "split", "network", "regime", "method", "seed"]
KEYS = [*OF_RUN, "rule", "printed", "task", "source"]
MANY = 20  # classes of a role from which on other classes are drawn, not images
LONG = 4  # times as many units as there are: of two in it only one draw in 300 has too few
MORE = {"background", "osrci", "proser"}  # loss and trainings of more outputs, as `Parts.outputs`
NAMES = {"oscr_area": "oscr"} | {name.replace("at_", "at_fpr_"): name for name in CCR}


class Missing(LookupError):
    """A number that no run and no printed table gives; the message says which."""


class Same(Missing):
    """Numbers that no missing run would decide: of one network, or of seeds that differ in sign."""


@dataclass(frozen=True)
class Evidence:
    """Measures of many runs, rules and tasks, or of printed tables.

    Attributes:
        keys: n rows of text; the first column names the run or the printed table, the others say
            what the row is of, see `osnb.evidence.build.KEYS`. Where measures of one thing stand
            in several tables, a row is of one, its key `measure`.
        values: (n, 1 + R) float64 of each measure, rates in [0, 1]. Column 0 is the number
            itself, the others are its resamples; R = 0 in print. NaN is a dash.
        used: the rows read so far, by position.
        drawn: (n,) of each row the classes of both sides, if classes were drawn; else None.
    """

    keys: pd.DataFrame
    values: dict[str, np.ndarray]
    used: set[int] = field(default_factory=set, repr=False, compare=False)
    drawn: np.ndarray | None = field(default=None, repr=False, compare=False)

    def __call__(self, measure: str, **where: str) -> np.ndarray:
        """(1 + R,) mean of a measure over the rows with these keys: over seeds, then splits.

        Raises:
            Missing: no row has these keys, or one of them no such number.
        """
        at, numbers = self._read(measure, where)
        return mean(numbers, self.keys.iloc[at])

    def __add__(self, other: "Evidence") -> "Evidence":
        """The rows of both; a measure that only one of them has is a dash in the other.

        Raises:
            ValueError: they have not as many resamples.
        """
        if (mine := self.resamples) != (theirs := other.resamples):
            raise ValueError(f"need equally many resamples; got {mine} and {theirs}")
        both = {m: [side.column(m) for side in (self, other)] for m in self.values | other.values}
        values = {measure: np.concatenate(columns) for measure, columns in both.items()}
        keys = pd.concat([self.keys, other.keys], ignore_index=True)
        drawn = np.concatenate([self.sides, other.sides])
        return Evidence(keys, values, drawn=drawn)

    @property
    def resamples(self) -> int:
        """How many resamples there are, R."""
        return next(iter(self.values.values())).shape[1] - 1

    @property
    def size(self) -> str:
        """The size of the data, mini, tiny or paper; printed tables have no such key."""
        return next(iter(self.keys.get("size", ())), "printed")

    def column(self, measure: str) -> np.ndarray:
        """(n, 1 + R) of a measure; NaN if there is no such one."""
        return self.values.get(measure, np.full((len(self.keys), 1 + self.resamples), np.nan))

    def rows(self, measure: str, **where: str) -> np.ndarray:
        """(m, 1 + R) of a measure, the rows that a call takes the mean of.

        Raises:
            Missing: as a call.
        """
        return self._read(measure, where)[1]

    def _read(self, measure: str, where: Mapping[str, str]) -> tuple[np.ndarray, np.ndarray]:
        """Positions of these rows, which are used from now on, and their numbers."""
        one = {"measure": measure} if "measure" in self.keys else {}
        at = np.flatnonzero(self.fits(**where, **one))
        numbers = self.column(measure)[at]
        of = f"{measure} of {', '.join(where.values())}"
        if not len(numbers) or np.isnan(numbers[:, 0]).any():
            raise Missing(f"no {of}")
        if self.resamples and np.isnan(numbers[:, 1:]).all(axis=1).any():
            raise Same(f"no interval: {of}")
        if np.isnan(numbers).any():
            raise Missing(f"no {of}")
        self.used.update(at.tolist())
        return at, numbers

    def names(self, key: str, **where: str) -> list[str]:
        """The values of a key among the rows with these keys, sorted.

        Raises:
            Missing: there are none.
        """
        values = sorted(self.keys.loc[self.fits(**where), key].unique()) if key in self.keys else []
        if not values:
            raise Missing(f"no {key} of {', '.join(where.values())}")
        return values

    def only(self, fits: pd.Series | np.ndarray) -> "Evidence":
        """The rows where `fits` (n,) is true, none of them used."""
        return self.at(self.keys[np.asarray(fits, bool)])

    def at(self, keys: pd.DataFrame) -> "Evidence":
        """The numbers under other keys: a row each, whose index is that of a row here."""
        rows = keys.index.to_numpy(int)
        values = {name: column[rows] for name, column in self.values.items()}
        return Evidence(keys.reset_index(drop=True), values, drawn=self.sides[rows])

    def unread(self) -> "Evidence":
        """The same numbers, none of them used."""
        return replace(self, used=set())

    def read(self) -> list[str]:
        """Names of the runs or tables that were used, sorted."""
        return sorted(self.keys.iloc[sorted(self.used), 0].unique())

    def few(self, least: int, *but: str) -> np.ndarray:
        """(n,) whether a row is of a set that was read with fewer classes, of all its splits.

        Args:
            least: number of classes that are not few.
            but: sources that do not count.
        """
        keys = self.keys.reindex(columns=["benchmark", "task", "source"], fill_value="")
        of = [*keys.itertuples(index=False, name=None)]
        classes: dict[tuple, set] = {}
        for at in self.used:
            for side, names in enumerate(self.sides[at] or ()):
                classes.setdefault((of[at], side), set()).update(names)
        few = {key for (key, _), names in classes.items() if len(names) < least}
        return np.array([key in few and key[2] not in but for key in of], bool)

    @property
    def sides(self) -> np.ndarray:
        """(n,) `drawn`, of None where it is."""
        return np.full(len(self.keys), None) if self.drawn is None else self.drawn

    def points(self) -> pd.DataFrame:
        """The keys and, of each measure, the number itself."""
        return self.keys.assign(**{name: column[:, 0] for name, column in self.values.items()})

    def table(self, measure: str) -> pd.DataFrame:
        """The keys, a measure, and low and high, where 95 % of its resamples lie (NaN without)."""
        column = self.column(measure)
        ends = metrics.interval(column.T)[1:] if self.resamples else (np.nan, np.nan)
        return self.keys.assign(**{measure: column[:, 0]}, low=ends[0], high=ends[1])

    def fits(self, **where: str) -> np.ndarray:
        """(n,) whether a row has these keys; a key that the frame lacks fits none."""
        fits = np.ones(len(self.keys), bool)
        for key, value in where.items():
            fits &= (self.keys[key] == value).to_numpy() if key in self.keys else False
        return fits


def mean(numbers: np.ndarray, keys: pd.DataFrame) -> np.ndarray:
    """(1 + R,) mean of (n, 1 + R) numbers with these keys: over seeds, then splits."""
    if not (by := [key for key in ("benchmark", "split") if key in keys]):
        return numbers.mean(axis=0)  # print has means alone
    rows = keys.groupby(by)[by[0]].transform("size")
    return np.average(numbers, axis=0, weights=(1 / rows) if rows.nunique() > 1 else None)


def objects(each: Sequence[Any]) -> np.ndarray:
    """(n,) array of objects, which numpy does not look into."""
    array = np.empty(len(each), object)
    array[:] = each
    return array


def least(*numbers: np.ndarray) -> np.ndarray:
    """(1 + R,) the least of k numbers; of several the resamples are in order, paired with none.

    All numbers are above 0 where each one's interval is: the lower half has the least of the k
    quantiles. That one is below 0 has k chances to be found where all are 0, so the upper half
    has the least of the quantiles 1 - (1 - p) / k (Bonferroni; of more than R / 40 numbers the
    largest resamples, and p is too small by up to k). The least of each resample would be below 0
    for most sets of numbers that are all 0. A resample that lacks one number is left out of all.
    """
    values, resamples = np.array(numbers, float), len(numbers[0]) - 1
    least_of = values[:, 0].min(keepdims=True)
    if len(values) == 1 or not resamples:
        return np.concatenate([least_of, values[0, 1:]])
    ordered = np.sort(values[:, 1:][:, ~np.isnan(values[:, 1:]).any(axis=0)], axis=1)
    many = ordered.shape[1]
    rank = np.arange(many)
    rank = np.where(rank < many / 2, rank, many - 1 - (many - 1 - rank) // len(values))
    lacking = np.full(resamples - many, np.nan)
    return np.concatenate([least_of, ordered[:, rank].min(axis=0), lacking])


def largest(*numbers: np.ndarray) -> np.ndarray:
    """(1 + R,) the largest of several numbers, above 0 if one is: `least`, turned round."""
    return -least(*(-number for number in numbers))


def evidence(
    runs: pd.DataFrame,
    tasks: str,
    rules: str | Sequence[str],
    *,
    every_rule: bool = False,
    measures: Sequence[str] = (),
    file: str = "scores",
    unit: str = "class",
    seed: int = 0,
    resamples: int = 1000,
) -> Evidence:
    """Measures of runs, with resamples that all runs of a benchmark share.

    Test samples are drawn with replacement, known ones and those of each task and set apart. Runs
    of one benchmark have the same draws, so that differences between them are paired. Several
    splits of a benchmark are of the same images, in other roles, so these are drawn once for all.

    Args:
        runs: from `tables.collect`, with the column place of `names.placed`.
        tasks: a name in `TASKS`: roles (Palechor et al.), shifts (Vaze et al.), unified (Kim et
            al.), drawings (of the miniature alone) or cross (whatever of all three).
        rules: columns of the scores tables; or the key of a paper, those that its rows.csv has
            for a run's method and regime; or "cross", those that `method_name` needs no comma for.
        every_rule: every column that there is, named where it has a name.
        measures: those that are wanted, of the ones that a task has; none means all.
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
        gamma_minus (equation 7 of Palechor et al.), fpr_at_0.5 (the share of others whose largest
        softmax is at least one half), confidence (mean largest softmax of the unknown samples, or
        of wrong predictions) and confidence_right. Of wrong predictions auroc, fpr95 and
        confidence are NaN in resamples that have none.

    Raises:
        ValueError: two runs of a benchmark have different test samples, or no task has a measure.
    """
    of = _asked(TASKS[tasks], measures)
    draws = Draws(unit, seed, resamples, _of_splits(runs, unit) if resamples else {})
    keys, values, drawn = [], [], []
    for run in runs.sort_values("run").to_dict("records"):
        scores = tables.read(Path(run["path"]).with_name(f"{file}.parquet"))
        scores.attrs.clear()  # the stamp, which pandas would copy at every step
        scores = scores.sort_values("sample", kind="stable")
        for key, numbers, sides in _measured(run, scores, of, (rules, every_rule), draws):
            keys.append([str(run.get(name, "")) for name in OF_RUN] + key)
            values.append(numbers)
            drawn.append(sides)
    none, shape = np.full(1 + resamples, np.nan), (len(values), 1 + resamples)
    told = dict.fromkeys(name for asked in of.asked.values() for name in asked)
    stacked = {m: np.reshape([x.get(m, none) for x in values], shape) for m in told}
    return Evidence(pd.DataFrame(keys, columns=KEYS), stacked, drawn=objects(drawn))


def of_places(
    runs: pd.DataFrame, tasks: str, rules: str | Sequence[str], *, unit: str, **draws: Any
) -> tuple[Evidence, pd.Series]:
    """As `evidence`; and the unit that was drawn, by place.

    Of the papers' own data images are drawn where a role has fewer than `MANY` classes: of so few
    an interval over other classes says little.
    """
    tested = runs.groupby("place", sort=False)["path"].first().map(tables.read)
    fewest = tested.map(lambda rows: rows.groupby("role")["class"].nunique().min())
    over = fewest.map(lambda n: "sample" if n < MANY and (runs["size"] == "paper").all() else unit)
    parts = runs.groupby(runs["place"].map(over), sort=False)
    each = [evidence(part, tasks, rules, unit=one, **draws) for one, part in parts]
    return sum(each[1:], each[0]), over


def units(over: pd.Series) -> str:
    """The units of `of_places` in words: "classes", or "images (classes: tinyimagenet)"."""
    classes = ", ".join(over.index[over == "class"]) or "none"
    return "classes" if (over == "class").all() else f"images (classes: {classes})"


def _asked(tasks: Tasks, measures: Sequence[str]) -> Tasks:
    """The tasks, asked for these measures alone; for all if none are named."""
    there = {name for names in tasks.asked.values() for name in names}
    if odd := sorted({*measures} - there):
        raise ValueError(f"need measures among {', '.join(sorted(there))}; got {', '.join(odd)}")
    wanted = {*measures} or there
    asked = {task: [n for n in names if n in wanted] for task, names in tasks.asked.items()}
    return tasks._replace(asked=asked)


def _of_splits(runs: pd.DataFrame, unit: str) -> dict[str, pd.Index]:
    """The units of each benchmark that has several splits here, those of all its splits."""
    found = {}
    for benchmark, part in runs.groupby("benchmark") if "benchmark" in runs else ():
        if len(files := part.drop_duplicates("split")["path"]) > 1:
            each = [_units(tables.read(path), unit).unique() for path in files]
            found[str(benchmark)] = pd.Index(np.unique(np.concatenate(each)))
    return found


def _units(rows: pd.DataFrame, unit: str) -> pd.Series:
    """(N,) class, or sample, of each row; two sources may have one of the same name."""
    return (rows["source"].astype(str) + "/" + rows[unit].astype(str)).astype(object)


@dataclass(frozen=True)
class Draws:
    """Copies of samples that resamples draw; each name has a stream of its own.

    Attributes:
        splits: of a benchmark with several splits the units of all of them, drawn together.
    """

    unit: str
    seed: int
    resamples: int
    splits: Mapping[str, pd.Index] = field(default_factory=dict)
    known: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    shared: dict[tuple[str, bytes], tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def __call__(self, rows: pd.DataFrame, name: str, run: Mapping[str, Any]) -> np.ndarray:
        """(1 + R, N) copies of each of N samples, the same for all that ask under a name.

        Raises:
            ValueError: another run of its benchmark had other samples under this name.
        """
        benchmark = self._same(rows, name, run)
        if not self.resamples:
            return np.ones((1, len(rows)), np.uint16)
        stream = self._stream(name)
        units = rows[self.unit].to_numpy()
        copies = metrics.bootstrap_weights(units, seed=stream, resamples=self.resamples)
        if benchmark in self.splits:
            units = _units(rows, self.unit)
            self._together(copies[1:], self.splits[benchmark], units, benchmark)
        return copies

    @property
    def of_classes(self) -> bool:
        """Whether it is classes that are drawn."""
        return self.unit == "class" and self.resamples > 0

    def of_part(self, part: Part, where: str, run: Mapping[str, Any]) -> np.ndarray:
        """(1 + R, N) copies of a part's samples; of several sets each is drawn by itself."""
        if isinstance(part.draw, str):
            return self(part.rows, f"{where} {part.draw}", run)
        self._same(part.rows, f"{where} pool {part.task} {part.source}", run)

        def draw(name: str, at: np.ndarray) -> np.ndarray:
            return self(part.rows.iloc[at], f"{where} {name}", run)

        return bootstrap.of_sets(part.draw.to_numpy(), draw, resamples=self.resamples)

    def _same(self, rows: pd.DataFrame, name: str, run: Mapping[str, Any]) -> str:
        """The run's benchmark, whose runs before had these samples too under this name."""
        samples = hash((*rows["sample"].to_numpy(), *rows["class"].to_numpy()))
        benchmark = str(run.get("benchmark", ""))  # two may be in the place of one data set
        first, other = self.known.setdefault((benchmark, name), (samples, run["run"]))
        if first != samples:
            raise ValueError(
                f"runs are compared sample by sample, so they need the same test samples; "
                f"{other} and {run['run']} have different ones ({name})"
            )
        return benchmark

    def _stream(self, name: str) -> int:
        words = [self.seed, zlib.crc32(name.encode())]
        return int(np.random.SeedSequence(words).generate_state(1)[0])

    def _together(
        self, copies: np.ndarray, of_all: pd.Index, units: pd.Series, benchmark: str
    ) -> None:
        """Write into (R, N) copies those of units that all splits of a benchmark draw together.

        A resample is a row of units, drawn with replacement from those of all splits. Whoever
        asks takes the first of its own ones, as many as it has: a draw as any other, in which a
        unit has much the same number of copies whatever its role in a split.
        """
        at = of_all.get_indexer(units)
        if (at < 0).any():  # a set that the first run of a split lacks is drawn by itself
            return
        own = np.isin(np.arange(len(of_all)), at)
        if (key := (benchmark, own.tobytes())) not in self.shared:
            self.shared[key] = self._counts(own, benchmark)
        counts, enough = self.shared[key]
        copies[enough] = counts[enough].take(at, axis=1)

    def _counts(self, own: np.ndarray, benchmark: str) -> tuple[np.ndarray, np.ndarray]:
        """(R, units) copies of each of one's own units; (R,) rows that were long enough."""
        rng, many = np.random.default_rng(self._stream(f"{benchmark}, all splits")), len(own)
        counts = np.empty((self.resamples, many), np.uint16)
        for count in counts:
            row = rng.integers(many, size=LONG * many)
            count[:] = np.bincount(row[own[row]][: own.sum()], minlength=many)
        return counts, counts.sum(axis=1) == own.sum()  # in the others, apart will do


def _measured(
    run: Mapping[str, Any], scores: pd.DataFrame, tasks: Tasks, rules: tuple, draws: Draws
) -> Iterator[tuple[list[str], dict[str, np.ndarray], tuple | None]]:
    """(rule, printed, task and source; measures; classes drawn) of each part and rule of a run."""
    known = scores[scores["role"] == "known"]
    where = " ".join(str(run[name]) for name in tasks.draw)
    right = (known["pred"] == known["label"]).to_numpy()
    drawn = draws(known, f"{where} known", run)
    columns = [name for name in scores if name not in tables.COLUMNS]
    printed = printed_as(rules[0], run, columns, every=rules[1])
    for part in tasks.parts(scores, run):
        asked = tasks.asked.get(part.task, tasks.asked[""])
        names = [name for name in metrics.MEASURES if NAMES.get(name, name) in asked]
        sides = [known]
        if part.rows is not None:
            both = drawn, draws.of_part(part, where, run)
            sides.append(part.rows)
        sides = tuple({*_units(side, "class")} for side in sides) if draws.of_classes else None
        for rule, name in printed.items():
            if part.rows is None:
                numbers = _wrong(known[rule].to_numpy(), right, drawn, names)
            else:
                columns = known[rule], right, part.rows[rule]
                numbers = metrics.bootstrap_summary(*columns, weights=both, names=names)
                if "gamma_plus" in asked:
                    numbers |= _confidence(run, known, part, both)
            if "confidence" in asked and rule == CONFIDENCE:
                numbers |= _largest(known, right, part, drawn if part.rows is None else both[1])
            numbers = {NAMES.get(measure, measure): x for measure, x in numbers.items()}
            key = [rule, name, part.task, part.source]
            yield key, {name: numbers[name] for name in asked if name in numbers}, sides


def _confidence(
    run: Mapping[str, Any], known: pd.DataFrame, part: Part, weights: tuple
) -> dict[str, np.ndarray]:
    """gamma_plus, gamma_minus, fpr_at_0.5; a network of more outputs than K has no offset."""
    has_more = not MORE.isdisjoint((run.get("loss"), run.get("training")))
    offset = 0.0 if has_more else 1 / (known["label"].max() + 1)
    target, largest = known["target"], part.rows["max_softmax"]
    gamma = metrics.bootstrap_confidence(target, largest, offset=offset, weights=weights)
    sure = weights[1] @ (largest >= 0.5).to_numpy(float) / weights[1].sum(axis=1)
    return {name: gamma[name] for name in ("gamma_plus", "gamma_minus")} | {"fpr_at_0.5": sure}


def _largest(
    known: pd.DataFrame, right: np.ndarray, part: Part, weights: np.ndarray
) -> dict[str, np.ndarray]:
    """The mean largest softmax of a part's samples; of wrong predictions that of right ones too."""
    if part.rows is not None:
        return {"confidence": _mean(part.rows["max_softmax"], weights)}
    sides = {"confidence": ~right, "confidence_right": right}
    return {n: _mean(known["max_softmax"][at], weights[:, at]) for n, at in sides.items()}


def _mean(values: pd.Series, weights: np.ndarray) -> np.ndarray:
    """(1 + R,) mean of N values in each draw; NaN where it has none of them."""
    many = weights.sum(axis=1, dtype=float)
    total = weights @ values.to_numpy(float)
    return np.divide(total, many, out=np.full(len(many), np.nan), where=many > 0)


def _wrong(
    score: np.ndarray, right: np.ndarray, weights: np.ndarray, asked: Sequence[str]
) -> dict[str, np.ndarray]:
    """The measures of right predictions against wrong ones; NaN where one side is empty."""
    numbers = metrics.bootstrap_aurc(score, right, weights=weights)
    names = [name for name in ("auroc", "fpr95") if name in asked]
    numbers |= {name: np.full(len(weights), np.nan) for name in names}
    sides = weights[:, right], weights[:, ~right]
    both = np.all([side.sum(axis=1) > 0 for side in sides], axis=0)
    if names and both[0]:
        of = score[right], np.ones(int(right.sum()), bool), score[~right]
        drawn = tuple(side[both] for side in sides)
        told = metrics.bootstrap_summary(*of, weights=drawn, names=names)
        for name, values in told.items():
            numbers[name][both] = values
    return numbers
