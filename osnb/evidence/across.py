"""What many runs say together: means with intervals, differences, correlations, agreement."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from osnb import metrics
from osnb.evidence import tables
from osnb.evidence.build import KEYS, Evidence, mean, objects

FEW = 3  # two points lie on a line, and two methods have one of two orders
LIMIT, SMALL = 1.96, 1e-12  # of a normal deviate, 95 %; of 1 - |rho|
RHO = ["panel", "points", "rho", "low", "high", "spearman"]
UNDECIDED = "undecided"
ILLUSTRATED = ("shows", "does not show")  # what the miniature may say
DECIDED = ("holds", "does not hold")  # print, photographs, the paper's own data


def verdict(number: float, low: float, high: float, *, size: str) -> str:
    """What a number says of a claim that is right if it is above 0, in the words of its size.

    Args:
        number: of the claim; NaN: there is none.
        low: lower end of its interval; NaN if it has none.
        high: upper end.
        size: printed, mini, tiny or paper. The miniature illustrates and does not decide.

    Returns:
        One of `DECIDED`, of the miniature one of `ILLUSTRATED`; or `UNDECIDED`, where there is no
        number or the interval includes 0.
    """
    if np.isnan(number) or low <= 0 <= high:
        return UNDECIDED
    yes, no = ILLUSTRATED if size == "mini" else DECIDED
    return yes if number > 0 else no


def averaged(numbers: Evidence, *by: str) -> Evidence:
    """One row for each value of the keys `by`, in order of appearance: the mean of its rows.

    Each split of a benchmark counts equally often, however many seeds it has. A row without a
    number, such as the AUROC of wrong predictions where there are none, is left out of that mean;
    in a resample a NaN stays one. The keys are run (names, commas between), `by` and rows (how
    many).
    """
    keys, values, drawn = [], {name: [] for name in numbers.values}, []
    for key, rows in numbers.keys.groupby([*by], sort=False):
        sides = [numbers.sides[at] or () for at in rows.index]
        drawn.append(tuple(set().union(*side) for side in zip(*sides, strict=False)))
        runs = {"run": ", ".join(rows["run"].unique()), "rows": len(rows)}
        keys.append(dict(zip(by, key, strict=True)) | runs)
        for name, column in numbers.values.items():
            has = ~np.isnan(column[rows.index, 0])
            kept = rows[has] if has.any() else rows
            values[name].append(mean(column[kept.index], kept))
    stacked = {n: np.reshape(v, (len(keys), 1 + numbers.resamples)) for n, v in values.items()}
    keys = pd.DataFrame(keys, columns=[*dict.fromkeys(["run", *by, "rows"])])
    return Evidence(keys, stacked, drawn=objects(drawn))


def over_splits(numbers: Evidence, *measures: str) -> Evidence:
    """The same rows, with <measure>_std: its standard deviation over splits.

    The divisor is n - 1; the seeds of a split are averaged, and one split has NaN. So do resamples:
    classes drawn anew add a spread of their own, and do not tell what other splits would give.
    """
    alike = [name for name in KEYS if name not in ("run", "split", "seed")]
    apart, values = averaged(numbers, *alike, "split"), dict(numbers.values)
    groups = apart.keys.groupby(alike).groups
    spreads = pd.MultiIndex.from_frame(numbers.keys[alike])
    for measure in measures:
        column = apart.column(measure)
        several = {key: at for key, at in groups.items() if len(at) > 1}
        sd = {key: np.std(column[at, 0], ddof=1) for key, at in several.items()}
        values[f"{measure}_std"] = np.full((len(spreads), column.shape[1]), np.nan)
        values[f"{measure}_std"][:, 0] = [sd.get(key, np.nan) for key in spreads]
    return replace(numbers, values=values, used=set())


def watched(runs: pd.DataFrame, *measures: str, task: str, resamples: int) -> Evidence:
    """What was measured after the first and the last epoch, and the least of all epochs.

    Args:
        runs: from `tables.collect`, with the column place.
        measures: columns of their histories.
        task: of the rows.
        resamples: R; all are the number itself, since a history has no image to draw.

    Returns:
        A row per run and selection: first, last or lowest.
    """
    keys, values = [], []
    for _, run in runs.iterrows():
        history = tables.stack(run.to_frame().T, file="history").reindex(columns=[*measures])
        ends = {"first": history.iloc[0], "last": history.iloc[-1], "lowest": history.min()}
        key = {name: str(run.get(name, "")) for name in KEYS} | {"task": task}
        keys += [key | {"selection": selection} for selection in ends]
        values += ends.values()
    rows = np.reshape(np.array(values, float), (len(keys), len(measures)))
    numbers = {m: rows[:, [i]].repeat(1 + resamples, axis=1) for i, m in enumerate(measures)}
    return Evidence(pd.DataFrame(keys, columns=[*KEYS, "selection"]), numbers)


def mean_over(numbers: Evidence, key: str, name: str, **where: str) -> Evidence:
    """The same rows, and the mean of those that differ in a key alone, under `name` there.

    Args:
        numbers: of runs.
        key: such as source.
        name: of the mean.
        where: keys that the rows have which are averaged.
    """
    alike = [column for column in KEYS if column not in ("task", key)]
    these = numbers.only(numbers.fits(**where))
    several = these.keys.groupby(alike)[key].transform("nunique") > 1
    if not several.any():
        return numbers
    means = averaged(these.only(several), *alike)
    return numbers + means.at(means.keys.assign(task="", **{key: name})[KEYS])


def summary(numbers: Evidence, *by: str, over: str = "seeds") -> pd.DataFrame:
    """Each measure of each group of rows: its mean, interval and spread, as papers' tables have.

    Args:
        numbers: of runs.
        by: keys that the rows of a group share.
        over: seeds, which takes each run for one, or splits, whose seeds are averaged first.

    Returns:
        One row per group and measure that it has, in order of appearance: run (names), `by`,
        metric, value, low and high (where 95 % of the resamples of the mean lie; NaN without
        resamples), sd_<over> (divisor n - 1; NaN for one), and seeds (how many) or splits (names).
    """
    single = {"seeds": ["benchmark", "split", "run"], "splits": ["split"]}[over]
    single = [name for name in single if name in numbers.keys]
    apart = averaged(numbers, *dict.fromkeys([*by, *single]))
    means, groups = averaged(apart, *by), [apart.keys[name] for name in by]
    many = means.keys["rows"]
    if over == "splits":
        many = apart.keys.groupby(groups, sort=False)["split"].agg(", ".join).to_numpy()
    parts = []
    for measure in numbers.values:
        spread = pd.Series(apart.column(measure)[:, 0]).groupby(groups, sort=False).std()
        rows = means.table(measure).rename(columns={measure: "value"})
        rows = rows.assign(metric=measure, **{f"sd_{over}": spread.to_numpy(), over: many})
        parts.append(rows.dropna(subset="value"))
    columns = ["metric", "value", "low", "high", f"sd_{over}", over]
    return pd.concat(parts).sort_index(kind="stable")[["run", *by, *columns]].reset_index(drop=True)


def gains(
    numbers: Evidence, measure: str, *by: str, key: str, of: str, share: bool = False
) -> pd.DataFrame:
    """What one value of a key gains over another, in each group of rows; their draws are paired.

    Args:
        numbers: of runs, or of printed tables.
        measure: several rows of one value are averaged.
        by: keys that the rows of a group share; a group without `of` gives no row.
        key: the key compared, such as method.
        of: its value that all others are compared with.
        share: of a measure that is better if it is lower, (other - one) / other in the place of
            one - other.

    Returns:
        `by`, `key`, number, low and high (95 % of the resamples) and p (two-sided), of the
        resamples that have a number, NaN without any; run ("these less those").
    """
    means, rows = averaged(numbers, *by, key), []
    column = means.column(measure)
    for _, part in means.keys.groupby([*by], sort=False):
        for base in part.index[part[key] == of]:
            for at in part.index.drop(base):
                one, other = column[at], column[base]
                gain = counted((other - one) / other if share else one - other)
                if np.isnan(gain[0]):
                    continue
                names = f"{part.loc[at, 'run']} less {part.loc[base, 'run']}"
                row = part.loc[at, [*by, key]].to_dict() | _ends(gain)
                p = metrics.p_value(gain) if len(gain) > 1 else np.nan
                rows.append(row | {"p": p, "run": names})
    columns = [*by, key, "number", "low", "high", "p", "run"]
    return pd.DataFrame(rows, columns=columns)


def counted(values: np.ndarray) -> np.ndarray:
    """A number, and those of its resamples that have one."""
    return values[np.r_[True, ~np.isnan(values[1:])]]


def _ends(values: np.ndarray) -> dict[str, float]:
    """A number and its interval, resamples without a number left out; NaN if there are none."""
    kept = counted(values)
    ends = metrics.interval(kept)[1:] if len(kept) > 1 else (np.nan, np.nan)
    return dict(zip(("number", "low", "high"), (values[0], *ends), strict=True))


def contrasts(numbers: Evidence, findings: Sequence[tuple[str, str, str, str]]) -> pd.DataFrame:
    """Findings about two methods, decided on each data set; the two are paired.

    Both are taken on the splits that they share, with the same resamples. Kind "above" has the
    number AUROC(first) - AUROC(second), "within" the standard deviation of the first over all its
    splits (divisor n - 1), taken as it is, minus the distance of the two. A finding is right if its
    number's 95 % interval lies above 0, and undecided if 0 is in it (`verdict`), or if the first
    of "within" has a single split.

    Args:
        numbers: of runs, with AUROC.
        findings: (finding in words, first and second printed name, kind) of each.

    Returns:
        finding, place, splits (shared ones), number, low, high (rates; NaN without a split
        that both have) and answer (as above; there "not run").

    Raises:
        ValueError: a kind is neither word.
    """
    if odd := {kind for *_, kind in findings} - {"above", "within"}:
        raise ValueError(f"a finding is of kind above or within; got {sorted(odd)}")
    apart, rows = averaged(numbers, "place", "printed", "split"), []
    splits, auroc = apart.keys["split"], apart.values["auroc"]
    for finding, *pair, kind in findings:
        for place in apart.keys["place"].unique():
            at = (np.flatnonzero(apart.fits(place=place, printed=name)) for name in pair)
            sides = [{splits[i]: auroc[i] for i in rows_of} for rows_of in at]
            shared = sorted(sides[0].keys() & sides[1].keys())
            key = {"finding": finding, "place": place, "splits": ", ".join(shared)}
            rows.append(key | _decided(*sides, shared, kind, numbers.size))
    return pd.DataFrame(rows)


def _decided(one: dict, two: dict, shared: list[str], kind: str, size: str) -> dict:
    if not shared or (kind == "within" and len(one) == 1):
        answer = UNDECIDED if shared else "not run"
        return dict.fromkeys(("number", "low", "high"), np.nan) | {"answer": answer}
    number = np.mean([one[split] - two[split] for split in shared], axis=0)
    if kind == "within":
        number = np.std([values[0] for values in one.values()], ddof=1) - np.abs(number)
    ends = _ends(number)
    return ends | {"answer": verdict(**ends, size=size)}


def correlations(numbers: Evidence, *by: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Accuracy and AUROC of each point, and how they correlate over the points of a panel.

    A point is the mean of its rows (over splits, over seeds). The interval of rho is that of
    `reflected` resamples: other classes, the same points. How rho would change with other points
    (methods, data sets, trainings) it does not say.

    Args:
        numbers: accuracy and AUROC; `Evidence.at` puts a row into several panels.
        by: keys that a point is known by, panel among them.

    Returns:
        The points: `by`, rows (how many it is the mean of), and of both measures the number,
        <measure>_low and <measure>_high (95 %). The panels: `RHO`, Pearson's rho and Spearman's;
        NaN below three networks (points of one run and one accuracy are one network, which two
        rules read), or if one measure does not vary; low and high also without resamples, and
        where |rho| is 1.

    Raises:
        ValueError: a key or a measure is missing.
    """
    missing = [n for n in by if n not in numbers.keys]
    missing += [n for n in ("accuracy", "auroc") if n not in numbers.values]
    if missing or "panel" not in by:
        raise ValueError(f"need panel, accuracy and auroc, and {', '.join(by)}; missing {missing}")
    means = averaged(numbers, *by)
    points, runs, panels = means.keys[[*by, "rows"]], means.keys["run"], []
    for name in ("accuracy", "auroc"):
        ends = means.table(name)[[name, "low", "high"]]
        points = points.join(ends.add_prefix(f"{name}_").rename(columns={f"{name}_{name}": name}))
    for panel, at in points.groupby("panel", sort=False).indices.items():
        sides = [means.values[name][at] for name in ("accuracy", "auroc")]
        networks = {*zip(runs.iloc[at], sides[0][:, 0], strict=True)}
        if len(networks) < FEW:
            sides = [np.full_like(side, np.nan) for side in sides]
        rho, ranked = _ends(reflected(pearson(*sides))), spearman(*(side[:, :1] for side in sides))
        panels.append([panel, len(at), *rho.values(), ranked[0]])
    return points, pd.DataFrame(panels, columns=RHO)


def inside_splits(points: pd.DataFrame) -> pd.DataFrame:
    """How accuracy and AUROC correlate over networks of one split, where unknowns are the same.

    The interval is Student's over the rhos of n splits, laid on the scale of Fisher's z; fewer
    than three have none, nor has a mean of 1:

        tanh(artanh(mean) +- t sd / (sqrt(n) (1 - mean^2)))

    with t the quantile .975 of Student's distribution, n - 1 degrees of freedom. It holds the
    expected mean in .88 to .95 of the cases where networks are normal (simulated).
    `pooled` is Pearson's rho of the differences from the mean of a network's split, which takes
    two networks in a split, where a rho takes three. Its interval is Student's over the
    pseudo-values of the jackknife (Tukey 1958): n times the number of all splits less n - 1 times
    that of all but one.

    Args:
        points: a row for each network, columns panel, split, accuracy and auroc.

    Returns:
        A row for each panel, in order of appearance: panel, points and splits (how many rho is
        of), rho (the mean over the splits of three networks or more; NaN if there is none), low,
        high, pooled, pooled_low, pooled_high and each (as text, the rho of every split that has
        one).
    """
    rows = []
    for panel, part in points.groupby("panel", sort=False):
        pairs = [one[["accuracy", "auroc"]].to_numpy().T for _, one in part.groupby("split")]
        rho = np.array([pearson(x[:, None], y[:, None])[0] for x, y in pairs])
        has, many = ~np.isnan(rho), np.array([pair.shape[1] for pair in pairs])
        centred = [pair - pair.mean(axis=1, keepdims=True) for pair in pairs if pair.shape[1] > 1]
        n = len(centred)
        of = np.vstack([np.ones(n), 1 - np.eye(n)])  # all splits, and all but one
        xx, xy, yy = (of @ np.reshape([(x @ x, x @ y, y @ y) for x, y in centred], (n, 3))).T
        pooled = _share(xy, np.sqrt(xx * yy))
        mean = rho[has].mean() if has.any() else np.nan
        without = n * pooled[0] - (n - 1) * pooled[1:]
        ends = *_student(mean, rho[has]), *_student(pooled[0], without)
        named = zip(part.groupby("split").groups, rho, strict=True)
        each = ", ".join(f"{split}: {x:.3f}" for split, x in named if x == x)
        rows.append((panel, many[has].sum(), has.sum(), *ends, each))
    columns = [*RHO[:2], "splits", *RHO[2:5], "pooled", "pooled_low", "pooled_high", "each"]
    return pd.DataFrame(rows, columns=columns)


def _student(mean: float, values: np.ndarray) -> tuple[float, float, float]:
    """A mean rho and Student's 95 % interval of its (n,) values, on the scale of Fisher's z."""
    from scipy.special import stdtrit

    if (n := len(values)) < FEW or abs(mean) > 1 - SMALL:
        return mean, np.nan, np.nan
    half = stdtrit(n - 1, 0.975) * np.std(values, ddof=1) / np.sqrt(n)
    z, wide = np.arctanh(mean), half / (1 - mean**2)
    return mean, np.tanh(z - wide), np.tanh(z + wide)


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole, NaN where the whole is 0."""
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


def pearson(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """(1 + R,) correlation over n points of (n, 1 + R) each.

        rho = sum_i (a_i - a) (b_i - b) / sqrt(sum_i (a_i - a)^2 sum_i (b_i - b)^2)

    NaN with fewer than three points, with a NaN among them, or where one side does not vary.
    """
    x, y = (side - side.mean(axis=0) for side in (one, other))
    below = np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))
    return _share((x * y).sum(axis=0), np.where(len(x) >= FEW, below, 0.0))


def reflected(rho: np.ndarray) -> np.ndarray:
    """(1 + R,) a correlation, and its resamples turned round it on the scale of Fisher's z.

        tanh(2 artanh(rho) - artanh(rho_r))

    Noise of the draws pulls the resamples towards 0, as that of the test classes pulled rho: the
    interval of these (a basic bootstrap, Davison & Hinkley 1997, eq. 5.6) lies higher than that of
    the resamples; where noise is large it may lie beyond rho itself. NaN where |rho| is 1.
    """
    z = np.arctanh(np.clip(rho, SMALL - 1, 1 - SMALL))
    inside = np.abs(rho[0]) < 1 - SMALL
    return np.r_[rho[0], np.tanh(2 * z[0] - z[1:]) if inside else np.full(len(z) - 1, np.nan)]


def by_chance(points: np.ndarray | int) -> np.ndarray | float:
    """|rho| that one of twenty correlations of as many unrelated points is beyond.

        t / sqrt(n - 2 + t^2), with t the quantile .975 of Student's distribution, n - 2 degrees

    NaN with fewer than three points.
    """
    from scipy.special import stdtrit

    freedom = np.asarray(points, float) - 2
    t = stdtrit(np.where(freedom > 0, freedom, np.nan), 0.975)
    return t / np.sqrt(freedom + t**2)


def told_apart(one: float, other: float, *points: int) -> bool:
    """Whether more lies between two correlations than other points would put there: Fisher's z.

        |artanh(one) - artanh(other)| > 1.96 sqrt(sum_n 1 / (n - 3))

    With one n the other is a given number. Correlations whose points are related, as of the same
    networks, are nearer to each other by chance than this says. Three points tell nothing.
    """
    if min(points) <= FEW:
        return False
    z = np.arctanh(np.clip([one, other], -1 + SMALL, 1 - SMALL))
    return bool(abs(z[0] - z[1]) > LIMIT * np.sqrt(sum(1 / (n - FEW) for n in points)))


def spearman(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """As `pearson`, of the ranks; ties share their mean rank."""
    return pearson(_ranks(one), _ranks(other))


def kendall_w(values: np.ndarray) -> np.ndarray:
    """(1 + R,) concordance of m tasks about n methods: 1 if all rank alike, near 1 / m by chance.

    With R_i the sum of method i's ranks and T the sum of t^3 - t over the ties of a task,

        W = 12 sum_i (R_i - m (n + 1) / 2)^2 / (m^2 (n^3 - n) - m sum T)

    Without ties the mean of Spearman's rho over all pairs of tasks is (m W - 1) / (m - 1).

    Args:
        values: (m, n, 1 + R) of any unit, m >= 2. A resample with a NaN gives NaN.
    """
    ranks = np.array([_ranks(task) for task in values])
    m, n, _ = ranks.shape
    spread = ((ranks.sum(axis=0) - m * (n + 1) / 2) ** 2).sum(axis=0)
    below = m * ((ranks - (n + 1) / 2) ** 2).sum(axis=(0, 1))  # (m (n^3 - n) - sum T) m / 12
    return np.divide(spread, below, out=np.full(len(below), np.nan), where=below > 0)


def _ranks(values: np.ndarray) -> np.ndarray:
    """(n, 1 + R) ranks from 1 within each column, NaN throughout one with a NaN."""
    ranks = pd.DataFrame(values).rank().to_numpy()
    return np.where(np.isnan(values).any(axis=0), np.nan, ranks)
