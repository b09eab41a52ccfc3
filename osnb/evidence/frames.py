"""From scores tables to what figures show: curves, histograms, classes, one threshold."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from osnb import metrics

GRID = 40  # points per curve on either grid, so that Figure 2 as csv stays below 300 kB
ROLES = ("known", "negative", "unknown")
BINNED = ["left", "right", "samples", "density"]
POINTS = ["benchmark", "role", "method", "fpr", "ccr", "low", "high", "over", "sd_seeds", "seeds"]
NUMBERS = ["printed", "measure", "classes", "mean", "low", "high", "sd", "expected_sd", "chance"]


def need(frame: pd.DataFrame, columns: Sequence[str]) -> None:
    """Raise ValueError unless `frame` has a row and these columns."""
    missing = [column for column in columns if column not in frame]
    if missing or not len(frame):
        raise ValueError(
            f"need at least one row with columns {', '.join(columns)}; "
            f"got {len(frame)} rows with {', '.join(map(str, frame))}"
        )


def finite(scores: pd.Series) -> None:
    """Raise ValueError if a score is NaN or infinite."""
    if bad := int((~np.isfinite(scores)).sum()):
        raise ValueError(f"need finite scores in '{scores.name}'; {bad} of {len(scores)} are not")


def histograms(
    table: pd.DataFrame, value: str, *by: str, bins: int | np.ndarray, edges: str = "common"
) -> pd.DataFrame:
    """How many rows of each group lie where on a scale.

    Args:
        table: scores tables of all runs, or one row a class; no row gives none.
        value: the column to be counted, any unit; "target" is the true class's score for known
            samples and the largest over the known classes for the others.
        by: columns that the rows of a group share.
        bins: number of bins, or their edges. A value at an edge counts above it, the largest one
            in the last bin.
        edges: "common", one set of bins for everything; "own", each histogram over its own
            range, so that bin widths differ.

    Returns:
        One row per group and bin, groups in order of appearance: `by`, column (its name),
        edges, left, right (in the unit of `value`), samples (a count) and density (per unit).

    Raises:
        ValueError: a column is missing, a value is not finite, or edges is neither word.
    """
    if len(table) or {*by, value} - {*table}:
        need(table, [*by, value])
    if edges not in {"common", "own"}:
        raise ValueError(f"edges is 'common' or 'own'; got {edges!r}")
    finite(table[value])
    key, parts = [*by, "column", "edges"], []
    for values, part in table.groupby([*by], sort=False)[value]:
        ends = np.histogram_bin_edges(part if edges == "own" else table[value], bins)
        samples, _ = np.histogram(part, ends)
        density = samples / samples.sum() / np.diff(ends)
        rows = {"left": ends[:-1], "right": ends[1:], "samples": samples, "density": density}
        parts.append(pd.DataFrame(dict(zip(key, (*values, value, edges), strict=True)) | rows))
    return pd.concat(parts or [pd.DataFrame(columns=[*key, *BINNED])], ignore_index=True)


def oscr_points(
    table: pd.DataFrame, *, score: str, unit: str = "class", seed: int = 0, resamples: int = 1000
) -> pd.DataFrame:
    """CCR at fixed FPRs, with a bootstrap interval (Figures 2, 5 and 6 of Palechor et al. 2023).

    The FPRs are multiples of 1 / U, evenly spaced on a linear and on a logarithmic axis;
    CCR at FPR q belongs to the largest FPR not above q, as in `metrics.ccr_at_fpr`. All runs of
    a benchmark share FPRs and resamples, so their mean needs no interpolation.

    Args:
        table: scores tables of all runs, with columns benchmark, method and seed.
        score: the scoring rule's column.
        unit: what is drawn with replacement within each role: class or sample. Of several sources
            (column source, if there is one) each is drawn by itself.
        seed: of the draws.
        resamples: their number.

    Returns:
        `POINTS`: benchmark, role (negative, unknown), method, fpr, ccr (mean over the seeds), low
        and high (where 95 % of the resamples of that mean lie), over (the unit), sd_seeds
        (standard deviation, NaN for one seed) and seeds (their number).

    Raises:
        ValueError: a column is missing, or the score in some run; a run lacks known samples or the
            others, or runs of a benchmark have different test samples.
    """
    need(table, ["benchmark", "method", "seed", "role", "label", "pred", "sample", unit, score])
    if (table["role"] == "known").all():
        raise ValueError("need negative or unknown samples; all are known")
    if (lacks := table[score].isna()).any():
        runs = table.loc[lacks, ["benchmark", "method", "seed"]].drop_duplicates().astype(str)
        names = ", ".join(runs.agg(" ".join, axis=1))
        raise ValueError(f"need a number in '{score}' of each run; there is none in: {names}")
    parts = []
    for number, (benchmark, runs) in enumerate(table.groupby("benchmark")):
        sides = {role: _ordered(runs, role) for role in ROLES if role in {*runs["role"], "known"}}
        known, weights = sides["known"], {}
        for role, rows in sides.items():
            first = rows.loc[[rows.index[0]]]
            stream = {"seed": [seed, number, ROLES.index(role)], "resamples": resamples}
            stream["sets"] = first["source"].to_numpy(str) if "source" in first else None
            weights[role] = metrics.bootstrap_weights(first[unit].to_numpy(), **stream)
        for role in [*sides][1:]:
            both = weights["known"], weights[role]
            for method, part in known.groupby(level="method"):
                curve = _curve(part, sides[role].loc[method], score, both)
                parts.append(curve.assign(benchmark=benchmark, role=role, method=method, over=unit))
    return pd.concat(parts, ignore_index=True)[POINTS]


def _ordered(runs: pd.DataFrame, role: str) -> pd.DataFrame:
    """A role's rows, by method and seed, each run's in the order of its samples."""
    rows = runs[runs["role"] == role].sort_values(["method", "seed", "sample"])
    samples = rows.groupby(["method", "seed"])["sample"].agg(tuple)
    if samples.nunique() != 1 or len(samples) < len(runs.groupby(["method", "seed"])):
        raise ValueError(f"need the same {role} samples, at least one, in all runs of a benchmark")
    return rows.set_index(["method", "seed"])


def _curve(known: pd.DataFrame, other: pd.DataFrame, score: str, weights: tuple) -> pd.DataFrame:
    """CCR of one method, the mean over its seeds, at each FPR."""
    unknown, seeds = weights[1].shape[1], []
    spread = np.r_[np.geomspace(1, unknown, GRID), np.linspace(0, unknown, GRID + 1)]
    fpr = np.unique(spread.round()) / unknown  # dense on a linear and on a logarithmic axis
    for (_, seed), run in known.groupby(level=["method", "seed"]):
        correct = (run["pred"] == run["label"]).to_numpy()
        columns = run[score].to_numpy(), correct, other.loc[[seed], score].to_numpy()
        seeds.append(metrics.bootstrap_oscr(*columns, fpr=fpr, weights=weights))
    ccr, low, high = metrics.interval(np.mean(seeds, axis=0))
    spread = np.std([curve[0] for curve in seeds], axis=0, ddof=1) if len(seeds) > 1 else np.nan
    curve = {"fpr": fpr, "ccr": ccr, "low": low, "high": high, "sd_seeds": spread}
    return pd.DataFrame(curve).assign(seeds=len(seeds))


def class_points(table: pd.DataFrame, *, score: str) -> pd.DataFrame:
    """AUROC of each unknown class alone, against all known samples.

    Args:
        table: scores tables of all runs, with a column run.
        score: the scoring rule's column.

    Returns:
        One row per run and unknown class: run, group, class, images (a count), auroc in [0, 1].

    Raises:
        ValueError: a column is missing, or a run has no known sample.
    """
    need(table, ["run", "role", "group", "class", score])
    rows = []
    for run, part in table.groupby("run"):
        known = part.loc[part["role"] == "known", score].to_numpy()
        unknown = part[part["role"] == "unknown"]
        for (group, name), one in unknown.groupby(["group", "class"], observed=True):
            rows.append((run, group, name, len(one), metrics.auroc(known, one[score].to_numpy())))
    return pd.DataFrame(rows, columns=["run", "group", "class", "images", "auroc"])


def number_points(
    table: pd.DataFrame, *, score: str, numbers: Sequence[int], draws: int, seed: int
) -> pd.DataFrame:
    """AUROC and average precision if n unknown classes are drawn, with replacement.

    If all classes have as many images, AUROC is the mean of the AUROCs of the classes drawn, so
    its mean over draws does not depend on n and its standard deviation is that of one class
    divided by the root of n. All that is printed shares the draws.

    Args:
        table: scores tables, with a column printed; all unknown rows are drawn from.
        score: the scoring rule's column.
        numbers: of classes, each >= 1.
        draws: for each number.
        seed: of the draws.

    Returns:
        `NUMBERS`: one row per printed name, measure (auroc, average_precision) and number of
        classes; mean, the range low to high of 95 % of the draws, their sd, expected_sd (by the
        root law; NaN for average precision) and chance (a random score's value), in [0, 1].

    Raises:
        ValueError: a column is missing, or known or unknown samples are.
    """
    need(table, ["printed", "role", "label", "pred", "class", score])
    rows = []
    for name, part in table.groupby("printed", sort=False):
        known, unknown = (part[part["role"] == role] for role in ("known", "unknown"))
        sides = known[score].to_numpy(), unknown[score].to_numpy()
        right = (known["pred"] == known["label"]).to_numpy()
        classes, of = np.unique(unknown["class"].to_numpy(str), return_inverse=True)
        one = np.std([metrics.auroc(sides[0], sides[1][of == c]) for c in range(len(classes))])
        for n in numbers:
            drawn = np.random.default_rng([seed, n]).integers(len(classes), size=(draws, n))
            copies = np.array([np.bincount(row, minlength=len(classes))[of] for row in drawn])
            weights = np.ones((draws, len(known)), np.uint16), copies.astype(np.uint16)
            values = metrics.bootstrap_summary(sides[0], right, sides[1], weights=weights)
            share = (copies.sum(axis=1) / (copies.sum(axis=1) + len(known))).mean()
            more = {"auroc": (one / np.sqrt(n), 0.5), "average_precision": (np.nan, share)}
            for measure, (sd, chance) in more.items():
                value = values[measure]
                row = (value.mean(), *np.percentile(value, [2.5, 97.5]), value.std())
                rows.append((name, measure, n, *row, sd, chance))
    return pd.DataFrame(rows, columns=NUMBERS)


def operating_counts(table: pd.DataFrame, *, score: str, threshold: float) -> pd.DataFrame:
    """What a threshold does to each role of one run's test samples.

    A sample is accepted if its score is at or above the threshold. Accepting a negative or
    an unknown sample is wrong whichever class it is given.

    Args:
        table: the scores table of one run.
        score: column of a rule that needs no label, such as max_softmax.
        threshold: in the unit of the score.

    Returns:
        Frame, one row per role: role, samples, right, wrong, rejected (counts) and rate, which
        is CCR for known samples and FPR for the others, in [0, 1].

    Raises:
        ValueError: a column is missing, or a score is not finite.
    """
    need(table, ["role", "label", "pred", score])
    finite(table[score])
    accepted = table[score] >= threshold
    right = accepted & (table["role"] == "known") & (table["pred"] == table["label"])
    outcome = pd.DataFrame({"right": right, "wrong": accepted & ~right, "rejected": ~accepted})
    counts = outcome.groupby(table["role"]).sum()
    counts = counts.loc[[role for role in ROLES if role in counts.index]]
    counts.insert(0, "samples", table["role"].value_counts())
    rate = counts["wrong"].where(counts.index != "known", counts["right"]) / counts["samples"]
    return counts.assign(rate=rate).reset_index()


def judged(
    table: pd.DataFrame, *, score: str, threshold: float, most: int = 10
) -> dict[str, pd.DataFrame]:
    """The samples that a threshold gets wrong by most.

    Args:
        table: the scores table of one run.
        score: column of a rule that needs no label.
        threshold: a score at it is accepted.
        most: samples of each kind, at most.

    Returns:
        accepted: rows of unknown samples (of negatives where no role is unknown) with a score of
        at least the threshold, highest first; rejected: rows of known samples below it, lowest
        first. Ties keep the order of the table. A column `place` is the row's position in it.
    """
    rows = table.assign(place=range(len(table)))
    other = "unknown" if (table["role"] == "unknown").any() else "negative"
    accepted = rows[(rows["role"] == other) & (rows[score] >= threshold)]
    rejected = rows[(rows["role"] == "known") & (rows[score] < threshold)]
    return {
        "accepted": accepted.sort_values(score, ascending=False, kind="stable").head(most),
        "rejected": rejected.sort_values(score, kind="stable").head(most),
    }
