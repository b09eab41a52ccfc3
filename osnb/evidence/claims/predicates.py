"""Claims whose number is more than a comparison of two others; it is above 0 if one holds.

The first line of a predicate says what its number is. Those of runs take evidence and a scope of
claims.csv; those of the papers' own tables take `printed`, which gives a table by name as
`osnb.evidence.tables.published` does. There two numbers are equal if they differ by less than half
a digit: half a unit of the last place that is printed.
"""

import re
from collections.abc import Callable
from itertools import permutations

import numpy as np
import pandas as pd

from osnb.evidence import across, tables
from osnb.evidence.build import Evidence, Missing, Same, largest, least
from osnb.evidence.kim2021 import IN_TABLE_2, TABLES
from osnb.evidence.names import WRONG
from osnb.metrics import interval
from osnb.metrics.measures import least_risk

SPREAD = 2  # standard deviations of points about a line: further off is remarkable
SIDES, MEASURES = ("easy", "hard"), ("accuracy", "auroc")
RHO_CLOSE = 0.05  # other seeds move a correlation of few points; the stated ones go from .63 to 1
# whose accuracies and AUROCs a stated correlation is over: which rows, and one point for each of
IMAGENET = {"place": "imagenet", "printed": "mls"}
POINTS = {
    "standard": ({"task": "unknown"}, ["place", "printed"]),
    "imagenet-hard": (IMAGENET | {"task": "hard"}, ["network"]),
    "imagenet-easy": (IMAGENET | {"task": "easy"}, ["network"]),
    "resnet-hard": (IMAGENET | {"task": "hard"}, ["network"]),
    "resnet-easy": (IMAGENET | {"task": "easy"}, ["network"]),
    "cifar100": ({"place": "cifar100", "source": "cifar10", "printed": "mls"}, ["network"]),
}
FIGURE_2 = ("msp", "arpl", "arpl + cs")  # its methods; its data sets are all but CIFAR+10


# Palechor et al. 2023


def not_clearly_better(evidence: Evidence, place: str) -> np.ndarray:
    """minus where the interval of the larger gain over S in OSCR area begins, of BG and EOS."""
    of = {"place": place, "task": "unknown", "selection": "last"}
    s, *others = (evidence("oscr", **of, printed=name) for name in ("S", "BG", "EOS"))
    low = interval(largest(*(other - s for other in others))).low
    if low <= 0:
        raise Same("no gain is decided, which is no proof that there is none")
    return np.array([-low])


# Vaze et al. 2022


def correlated(evidence: Evidence, where: str) -> np.ndarray:
    """0.05 plus how far Pearson's rho of accuracy and AUROC is above the stated one."""
    stated = tables.published("vaze2022", "correlations").set_index("name")["pearson_rho"]
    (points, rho), enough = _rho(evidence, where), stated[where] - RHO_CLOSE
    if not across.told_apart(rho[0], enough, points):
        raise Missing(f"{points} points of {where}: others may turn it")
    return rho - enough


def easy_correlated_less(evidence: Evidence, _: str) -> np.ndarray:
    """Pearson's rho of accuracy and AUROC, Hard minus Easy."""
    return _less(evidence, "imagenet-hard", "imagenet-easy")


def family_correlated_more(evidence: Evidence, _: str) -> np.ndarray:
    """Pearson's rho, ResNets alone minus all architectures, Easy or Hard, the lesser."""
    return least(*(_less(evidence, f"resnet-{side}", f"imagenet-{side}") for side in SIDES))


def vit_above_trend(evidence: Evidence, _: str) -> np.ndarray:
    """how far ViT's AUROC is above the line of other families, in deviations, Easy or Hard."""
    off = [_off_trend(evidence, side) for side in SIDES]
    if not all("vit" in side for side in off):
        raise Missing("no network of the family vit")
    return least(*(side["vit"] for side in off))


def no_family_stands_out(evidence: Evidence, _: str) -> np.ndarray:
    """2 deviations less how far a family is at most off the line of the others, ViT left out."""
    sides = [_off_trend(evidence, side) for side in SIDES]
    off = [far for side in sides for name, far in side.items() if name != "vit"]
    return least(*(SPREAD - np.abs(far) for far in off))


def _off_trend(evidence: Evidence, side: str) -> dict[str, np.ndarray]:
    """By family of networks, how far AUROC is above the line of all others but ViT.

    The line is that of least squares of AUROC on accuracy, the unit the standard deviation of
    its points about it.
    """
    points, x, y = _points(evidence, f"imagenet-{side}")
    family = np.array([re.split("[^a-z]", point["network"])[0] for point in points])
    off = {}
    for name in np.unique(family):
        rest, own = (family != name) & (family != "vit"), family == name
        if rest.sum() < 3:
            raise Missing("too few families of networks for a line")
        (x_0, y_0), dof = (column[rest].mean(axis=0) for column in (x, y)), rest.sum() - 2
        dx, dy = x - x_0, y - y_0
        above = dy - dx * (dx * dy)[rest].sum(axis=0) / np.square(dx)[rest].sum(axis=0)
        spread = np.sqrt(np.square(above[rest]).sum(axis=0) / dof)
        off[name] = above[own].mean(axis=0) / spread
    return off


def _less(evidence: Evidence, one: str, other: str) -> np.ndarray:
    """One panel's rho minus another's; in print, whose points are drawn only, as stated."""
    if "rho" in evidence.values:
        return evidence("rho", task=one) - evidence("rho", task=other)
    (many, rho), (rest, against) = (_rho(evidence, panel) for panel in (one, other))
    if not across.told_apart(rho[0], against[0], many, rest):
        raise Missing(f"{many} points of {one}, {rest} of {other}: others may turn it")
    return rho - against


def _rho(evidence: Evidence, panel: str) -> tuple[int, np.ndarray]:
    """How many points a figure has, and their correlation with its resamples reflected."""
    points, x, y = _points(evidence, panel)
    return len(points), across.reflected(across.pearson(x, y))


def _points(evidence: Evidence, where: str) -> tuple[list, np.ndarray, np.ndarray]:
    """A figure's points, and (points, 1 + R) of their accuracies and AUROCs."""
    rows, by = POINTS[where]
    for key in by:
        evidence.names(key, **rows)
    keys = evidence.keys.loc[evidence.fits(**rows), by].drop_duplicates().sort_values(by)
    if where == "standard":
        keys = keys[keys["printed"].isin(FIGURE_2) & (keys["place"] != "cifar+10")]
    elif where.startswith("resnet"):
        keys = keys[keys["network"].str.startswith("resnet")]
    points = keys.to_dict("records")
    if len(points) < 3:
        raise Missing(f"too few points of {where} for a correlation")
    each = [rows | point for point in points]
    # the points of Figure 2 are of different data sets, and so of different classes anyway
    splits = [{}] if where == "standard" else _shared_splits(evidence, each)
    if not splits:
        raise Missing(f"no split that all points of {where} have")
    values = [[[evidence(m, **x | split) for split in splits] for x in each] for m in MEASURES]
    return points, *(np.mean(side, axis=1) for side in values)


def _shared_splits(evidence: Evidence, points: list[dict]) -> list[dict]:
    """Keys of each split that all points have: over others, classes would be compared too."""
    if "split" not in evidence.keys:
        return [{}]
    there = ({*evidence.names("split", **point)} for point in points)
    return [{"split": split} for split in sorted(set.intersection(*there))]


def deviations_alike(evidence: Evidence, place: str) -> np.ndarray:
    """mean deviation over splits of four methods minus their range, of accuracy or AUROC."""
    methods, of = (*FIGURE_2, "osrci"), {"place": place, "task": "unknown"}
    sides = ([evidence(f"{m}_std", **of, printed=name) for name in methods] for m in MEASURES)
    return least(*(np.mean(side, axis=0) - np.ptp(side, axis=0) for side in sides))


# Kim et al. 2021


def misclassification_worse(evidence: Evidence, place: str) -> np.ndarray:
    """AURC of misclassification detection, ODIN or OpenMax minus Baseline, the lesser.

    Both read Baseline's networks, so they are compared seed by seed; seeds that differ in sign, or
    a seed without a wrong prediction, decide nothing. Where one reads not all of Baseline's
    networks, the other side is the mean over all.
    """
    rises = []
    base = evidence.rows("aurc", printed="baseline", place=place, task=WRONG)
    for name in ("odin", "openmax"):
        one = evidence.rows("aurc", printed=name, place=place, task=WRONG)
        rises.append(one - (base if len(base) == len(one) else base.mean(axis=0)))
    if len({*map(len, rises)}) > 1:
        raise Missing("ODIN and OpenMax read different numbers of networks")
    numbers = np.min([rise[:, 0] for rise in rises], axis=0)
    if {*np.sign(numbers)} not in ({1}, {-1}):
        raise Same(f"no sign that all seeds share: {', '.join(map('{:.4f}'.format, numbers))}")
    return least(*(rise.mean(axis=0) for rise in rises))


def no_method_leads_all(evidence: Evidence, place: str) -> np.ndarray:
    """how far each method is behind the best one where it is furthest behind, the least of all."""
    names = [x for x in evidence.names("printed", place=place) if x != "mahalanobis"]
    asked = [(-1, "aurc", {"task": WRONG})]
    for task in ("near", "far"):
        sources = evidence.names("source", place=place, task=task)
        asked += [(1, "auroc", {"task": task, "source": source}) for source in sources]
    if len(names) < 2:
        raise Missing(f"no method but {', '.join(names) or 'mahalanobis'}")
    lags = {name: [] for name in names}
    for sign, measure, at in asked:
        values = {x: sign * evidence(measure, place=place, printed=x, **at) for x in names}
        for one, other in permutations(names, 2):
            lags[one].append(values[other] - values[one])
    return least(*(largest(*each) for each in lags.values()))


def near_hardest(evidence: Evidence, place: str) -> np.ndarray:
    """largest gain over Baseline in AUROC, mean of the far data sets minus near samples."""
    names = [x for x in evidence.names("printed", place=place) if x != "mahalanobis"]
    if "baseline" not in names or len(names) < 2:
        raise Missing("no Baseline with another method beside it")
    gains = {}
    for task in ("near", "far"):
        auroc = {x: evidence("auroc", place=place, printed=x, task=task) for x in names}
        base = auroc.pop("baseline")
        gains[task] = [y - base for y in auroc.values()]
    return largest(*(least(*(far - near for near in gains["near"])) for far in gains["far"]))


# The papers' own tables: what their numbers obey, and what the text says of them

TEST_IMAGES = 50  # of each class: the test images are the validation images of ILSVRC 2012
SSB = {  # the data set's name in Table 2, and all its test images
    "cub": ("CUB", 5794),
    "scars": ("Stanford Cars", 8041),
    "fgvc-aircraft": ("FGVC-Aircraft", 3333),
}
OLDER = {  # the cited row that a printed improvement is over
    "OSRCI+": "OSRCI",
    "(ARPL + CS)+": "ARPL + CS",
    "Baseline (MSP+)": "Baseline (MSP)",
    "Baseline (MLS)": "Baseline (MSP)",
}
MLS, ARPL_CS = "Baseline (MLS)", "(ARPL + CS)+"


# Palechor et al. 2023


def bold_is_best(printed: Callable, protocol: str) -> np.ndarray:
    """CCR at FPR 0.01 in Table 2b, EOS minus the better one of S and BG."""
    rows = printed("table2").query("selection == 'best'").set_index(["protocol", "loss"])
    ccr = rows.loc[int(protocol[1:]), "ccr_at_1e-2"]
    return np.array([ccr["EOS"] - ccr.drop("EOS").max()])


def images_per_class(printed: Callable, protocol: str) -> np.ndarray:
    """half an image minus the largest difference from 50 test images per class."""
    rows = printed("table1").query(f"protocol == {protocol[1:]}")
    return _equal(rows["test"], TEST_IMAGES * rows["classes"], digit=1)


# Vaze et al. 2022


def mls_gain(printed: Callable, _: str) -> np.ndarray:
    """half a digit minus how far the mean gain of MLS over cited MSP is from the stated 15.6."""
    auroc = _table_1(printed)
    return _stated(printed, "mls_gain", (auroc[MLS] - auroc["Baseline (MSP)"]).mean(), digit=0.1)


def mls_over_prior(printed: Callable, _: str) -> np.ndarray:
    """half a digit minus how far the mean gain of MLS over the best is from the stated 0.7."""
    gain = _table_1(printed)[MLS] - _best_cited(printed)
    return _stated(printed, "mls_over_prior", gain.mean(), digit=0.1)


def arpl_cs_gap(printed: Callable, _: str) -> np.ndarray:
    """half a digit minus how far the mean gap of MLS and (ARPL + CS)+ is from the stated 0.03."""
    auroc = _table_1(printed)
    return _stated(printed, "arpl_cs_gap", (auroc[MLS] - auroc[ARPL_CS]).mean(), digit=0.01)


def printed_deltas(printed: Callable, _: str) -> np.ndarray:
    """half a digit minus how far a printed gain is at most from the difference of its rows."""
    auroc, delta = _table_1(printed), _table_1(printed, "printed_delta")
    gain = auroc[[*OLDER]].to_numpy() - auroc[[*OLDER.values()]].to_numpy()
    return _equal(delta[[*OLDER]].to_numpy(), gain, digit=0.1)


def above_cited(printed: Callable, dataset: str) -> np.ndarray:
    """AUROC, MLS minus the best cited method of Table 1."""
    gain = _table_1(printed)[MLS] - _best_cited(printed)
    return np.array([gain[dataset] / 100])


def almost_all_boosted(printed: Callable, _: str) -> np.ndarray:
    """a quarter of the cases and half a one, minus those in which a + row is not above its own."""
    gains = _boosts(printed)
    return np.array([gains.size / 4 + 0.5 - (gains <= 0).sum(axis=None)])


def osrci_boosted_more(printed: Callable, _: str) -> np.ndarray:
    """mean gain in AUROC of OSRCI+ over OSRCI, minus that of (ARPL + CS)+ over ARPL + CS."""
    osrci, arpl_cs = _boosts(printed).mean(axis=0) / 100
    return np.array([osrci - arpl_cs])


def best_of_table(printed: Callable, dataset: str) -> np.ndarray:
    """AUROC, (ARPL + CS)+ minus the best other row of Table 1."""
    auroc = _table_1(printed).loc[dataset] / 100
    return np.array([auroc[ARPL_CS] - auroc.drop(ARPL_CS).max()])


def _boosts(printed: Callable) -> np.ndarray:
    """(data sets, 2) points of AUROC that the better recipe adds to OSRCI and to ARPL + CS."""
    auroc = _table_1(printed)
    newer = ["OSRCI+", ARPL_CS]
    return auroc[newer].to_numpy() - auroc[[OLDER[name] for name in newer]].to_numpy()


def table_6_repeats(printed: Callable, _: str) -> np.ndarray:
    """half a digit minus how far a number of Table 1 is at most from its place in Table 6."""
    rows = printed("table6").replace({"method": {"MSP": "Baseline (MSP)"}})
    rows = rows[rows["backbone"] == "VGG32"].set_index(["method", "dataset"])["auroc_pct"]
    ours = printed("table1").set_index(["method", "dataset"])["auroc_pct"]
    return _equal(ours, rows.reindex(ours.index), digit=0.1)


def recipe_rho(printed: Callable, _: str) -> np.ndarray:
    """half a digit minus how far Pearson's rho of Table 5's rows is from the stated 0.93."""
    rows = printed("table5")
    stated = printed("correlations").set_index("name")["pearson_rho"]["recipe"]
    return _equal(rows["accuracy_pct"].corr(rows["auroc_pct"]), stated, digit=0.01)


def recipe_auroc(printed: Callable, _: str) -> np.ndarray:
    """half a digit minus how far the full recipe's AUROC in Table 5 is from the stated 82.6."""
    return _stated(printed, "recipe_auroc", _recipe(printed, ensemble=0), digit=0.1)


def ensemble_auroc(printed: Callable, _: str) -> np.ndarray:
    """half a digit minus how far the ensemble's AUROC in Table 5 is from the stated 84.0."""
    return _stated(printed, "ensemble_auroc", _recipe(printed, ensemble=1), digit=0.1)


def recipe_is_mls(printed: Callable, _: str) -> np.ndarray:
    """half a digit minus how far the full recipe's AUROC in Table 5 is from MLS in Table 1."""
    ours = _table_1(printed).loc["tinyimagenet", MLS]
    return _equal(_recipe(printed, ensemble=0), ours, digit=0.1)


def ssb_images(printed: Callable, dataset: str) -> np.ndarray:
    """half an image minus how far the counts of Table 2 are from the whole test set."""
    name, images = SSB[dataset]
    return _equal(printed("table2").set_index("dataset")["n_test_images"][name].sum(), images)


def _table_1(printed: Callable, values: str = "auroc_pct") -> pd.DataFrame:
    """A column of it in points: a row for each data set in lower case, a column for each method."""
    rows = printed("table1").assign(dataset=lambda rows: rows["dataset"].str.lower())
    return rows.pivot_table(index="dataset", columns="method", values=values)


def _best_cited(printed: Callable) -> pd.Series:
    cited = printed("table1").query("source == 'cited'")["method"].unique()
    return _table_1(printed)[cited].max(axis=1)


def _recipe(printed: Callable, *, ensemble: int) -> float:
    """AUROC in percent of the last step of Table 5, without or with the ensemble."""
    return printed("table5").query(f"ensemble == {ensemble}")["auroc_pct"].iloc[-1]


def _stated(printed: Callable, name: str, number: float, *, digit: float) -> np.ndarray:
    stated = printed("text_claims").set_index("name")["value"][name]
    return _equal(number, float(stated), digit=digit)


# Kim et al. 2021


def possible_unknown(printed: Callable, where: str) -> np.ndarray:
    """AURC of unknown detection minus that of a perfect ranking of Table 2's pool, the least.

    A perfect ranking has all right predictions first, then wrong ones and unknowns as errors.
    Its AURC is convex in the accuracy, so that of the mean accuracy is not above the mean, and
    taking the limit of large N makes it smaller still: nothing can be below it.
    """
    benchmark, _, left_out = where.partition("-without-")
    name = IN_TABLE_2[benchmark]
    pool = printed("table2").query(f"benchmark == '{name}'")
    pool = pool[pool["dataset"].str.lower() != left_out].set_index("role")["test"]
    right = _kim(printed, benchmark, "classification") * pool["in-distribution"] / 100
    least = least_risk(1 - right / pool.sum())
    return np.array([(_kim(printed, benchmark, "unknown_detection") / 1000 - least).min()])


def possible_misclassification(printed: Callable, benchmark: str) -> np.ndarray:
    """AURC of misclassification detection minus that of a perfect ranking, the least."""
    least = least_risk(1 - _kim(printed, benchmark, "classification") / 100)
    found = _kim(printed, benchmark, "misclassification_detection") / 1000
    return np.array([(found - least).min()])


def no_value_twice(printed: Callable, benchmark: str) -> np.ndarray:
    """half a value minus those that two methods share, mean and deviation, accuracy left out."""
    rows = printed(f"table{TABLES[benchmark]}").query("metric != 'ACC'").dropna(subset="std")
    return np.array([0.5 - rows.duplicated(["task", "dataset", "metric", "mean", "std"]).sum()])


def marked_is_best(printed: Callable, benchmark: str) -> np.ndarray:
    """half a mark minus the marks that are not on the best number of their column."""
    rows = printed(f"table{TABLES[benchmark]}")
    columns = rows.groupby(["task", "dataset", "metric"])
    return np.array([0.5 - sum(_wrong_marks(column) for _, column in columns)])


def odin_keeps_accuracy(printed: Callable, benchmark: str) -> np.ndarray:
    """half a digit minus how far the accuracy of ODIN is from Baseline's, whose network it uses."""
    accuracy = _kim(printed, benchmark, "classification")
    return _equal(accuracy["ODIN"], accuracy["Baseline"], digit=0.01)


def readme_counts(printed: Callable, benchmark: str) -> np.ndarray:
    """half a count minus those of Table 2 that the authors' README gives otherwise."""
    name = IN_TABLE_2[benchmark]
    theirs, ours = (printed(x).query(f"benchmark == '{name}'") for x in ("readme", "table2"))
    parts = ["train", "validation", "test"]
    other = theirs[parts].fillna(0).to_numpy() != ours[parts].fillna(0).to_numpy()
    return np.array([0.5 - other.sum()])


def _kim(printed: Callable, benchmark: str, task: str) -> pd.Series:
    """The printed numbers of a task that has one for each method, by method."""
    rows = printed(f"table{TABLES[benchmark]}")
    return rows[rows["task"] == task].set_index("method")["mean"]


def _wrong_marks(column: pd.DataFrame) -> int:
    """Marks of a column that are not on its best number: of all methods, or without OE."""
    sign = 1 if column["better"].iloc[0] == "up" else -1
    mean = sign * column.set_index("method")["mean"]
    best = {"best": mean.max(), "best_without_OE": mean.drop("OE").max()}
    marks = column.set_index("method")["printed_emphasis"].dropna()
    return sum(mean[method] < best[mark] for method, mark in marks.items())


def _equal(numbers, others, *, digit: float = 1.0) -> np.ndarray:
    """(1,) half a digit minus the largest difference, in digits of this worth."""
    apart = np.abs(np.subtract(numbers, others)) / digit
    return np.array([0.5 - np.max(apart)])
