"""Claims whose number is more than a comparison of two others; it is above 0 if one holds.

The first line of a predicate says what its number is; `where` is a scope of claims.csv.
"""

import re

import numpy as np

from osnb.evidence import tables
from osnb.evidence.across import pearson
from osnb.evidence.build import Evidence, Missing, Same, close, least
from osnb.evidence.claims.compare import shared
from osnb.evidence.kim2021 import CONCENTRATION
from osnb.evidence.palechor2023 import VALIDATION
from osnb.evidence.tasks import WRONG
from osnb.metrics import interval

SIMILAR = 0.1  # of accuracies: ten points; in Table 2a they differ by up to .067
COMPARABLE = 0.02  # of CCRs: two points
SPREAD = 2  # standard deviations of points about a line: further off is remarkable
FURTHER = 0.1  # of AP and AUROC: ten points are substantial
TABLE_4 = ("mnist", "svhn", "cifar10", "cifar+50", "tinyimagenet")  # its data sets
SIDES = ("easy", "hard")
RISE = 0.05  # of an AUROC that would count as a significant improvement: five points
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

LAST = {"task": "unknown", "selection": "last"}
METHODS = ("S", "BG", "EOS")


def easier(evidence: Evidence, places: str) -> np.ndarray:
    """share of its accuracy that EOS keeps at FPR 0.1, the first protocol minus the second."""
    eos = {"printed": "EOS"} | LAST
    kept = [
        evidence("ccr_at_0.1", place=place, **eos) / evidence("accuracy", place=place, **eos)
        for place in places.split(",")
    ]
    return np.subtract(*kept)


def accuracies_close(evidence: Evidence, place: str) -> np.ndarray:
    """0.1 minus the largest difference of the three accuracies."""
    accuracies = [evidence("accuracy", place=place, printed=name, **LAST) for name in METHODS]
    return close(np.max(accuracies, axis=0), np.min(accuracies, axis=0), within=SIMILAR)


def some_gain_accuracy(evidence: Evidence, places: str) -> np.ndarray:
    """closed-set accuracy, BG or EOS minus S, the most of all protocols."""
    gains = [
        evidence("accuracy", place=place, printed=name, **LAST)
        - evidence("accuracy", place=place, printed="S", **LAST)
        for place in places.split(",")
        for name in ("BG", "EOS")
    ]
    return np.max(gains, axis=0)


def not_clearly_better(evidence: Evidence, place: str) -> np.ndarray:
    """minus the lower end of the gain over S in OSCR area, of BG and EOS the less."""
    area = {name: evidence("oscr", place=place, printed=name, **LAST) for name in METHODS}
    lows = [interval(area[name] - area["S"]).low for name in ("BG", "EOS")]
    return -np.max(lows, keepdims=True)


def suppressed(evidence: Evidence, place: str) -> np.ndarray:
    """share of unknowns scored 1/2 or more, S or BG minus 1/2, or 1/2 minus EOS, the least."""
    share = {name: evidence("fpr_at_0.5", place=place, printed=name, **LAST) for name in METHODS}
    return least(share["S"] - 0.5, share["BG"] - 0.5, 0.5 - share["EOS"])


def no_worse_at_best(evidence: Evidence, place: str) -> np.ndarray:
    """0.02 plus what EOS gains in CCR by its best epoch, mean over FPR 0.01, 0.1 and 1."""
    ccrs = [
        [
            evidence(f"ccr_at_{fpr}", place=place, printed="EOS", task="unknown", selection=each)
            for fpr in ("0.01", "0.1", "1")
        ]
        for each in ("best", "last")
    ]
    if np.array_equal(*ccrs):
        raise Same("best is last")
    return COMPARABLE + np.mean(np.subtract(*ccrs), axis=0)


def starts_high(evidence: Evidence, place: str) -> np.ndarray:
    """gamma- on validation negatives, first epoch minus last, the least of the three losses."""
    return least(
        *(_watched(evidence, place, x, "first") - _watched(evidence, place, x) for x in METHODS)
    )


def stays_high(evidence: Evidence, place: str) -> np.ndarray:
    """least gamma- of all epochs on validation negatives, EOS minus the larger one of S and BG."""
    s, bg, eos = (_watched(evidence, place, name, "lowest") for name in METHODS)
    return eos - np.maximum(s, bg)


def stays_highest(evidence: Evidence, places: str) -> np.ndarray:
    """least gamma- of EOS of all epochs on negatives, the first protocol minus the second."""
    return np.subtract(*(_watched(evidence, x, "EOS", "lowest") for x in places.split(",")))


def _watched(evidence: Evidence, place: str, name: str, selection: str = "last") -> np.ndarray:
    """(1,) gamma- of Figure 3, where nothing was drawn."""
    keys = {"place": place, "printed": name, "task": VALIDATION, "selection": selection}
    return evidence("gamma_minus", **keys)[:1]


# Vaze et al. 2022


def correlated(evidence: Evidence, where: str) -> np.ndarray:
    """0.05 plus how far Pearson's rho of accuracy and AUROC is above the stated one."""
    stated = tables.published("vaze2022", "correlations").set_index("name")["pearson_rho"]
    return RHO_CLOSE + _rho(evidence, where) - stated[where]


def easy_correlated_less(evidence: Evidence, _: str) -> np.ndarray:
    """Pearson's rho of accuracy and AUROC, Hard minus Easy."""
    return _rho(evidence, "imagenet-hard") - _rho(evidence, "imagenet-easy")


def family_correlated_more(evidence: Evidence, _: str) -> np.ndarray:
    """Pearson's rho, ResNets alone minus all architectures, Easy or Hard, the lesser."""
    kinds = ("resnet", "imagenet")
    return least(*(np.subtract(*(_rho(evidence, f"{k}-{x}") for k in kinds)) for x in SIDES))


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
    return SPREAD - np.max(np.abs(off), axis=0)


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


def _rho(evidence: Evidence, where: str) -> np.ndarray:
    return pearson(*_points(evidence, where)[1:])


def _points(evidence: Evidence, where: str) -> tuple[list, np.ndarray, np.ndarray]:
    """A figure's points, and (points, 1 + R) of their accuracies and AUROCs."""
    rows, by = POINTS[where]
    for key in by:
        evidence.names(key, **rows)
    keys = evidence.keys.loc[evidence.fits(**rows), by].drop_duplicates().sort_values(by)
    points = [point for point in keys.to_dict("records") if _counts(where, point)]
    if len(points) < 3:
        raise Missing(f"too few points of {where} for a correlation")
    sides = [[evidence(m, **rows | point) for point in points] for m in ("accuracy", "auroc")]
    return points, *map(np.array, sides)


def _counts(where: str, point: dict[str, str]) -> bool:
    """Whether a point is one of the figure's."""
    if where == "standard":
        return point["printed"] in FIGURE_2 and point["place"] != "cifar+10"
    return not where.startswith("resnet") or point["network"].startswith("resnet")


def marginal(evidence: Evidence, place: str) -> np.ndarray:
    """standard deviation of ARPL + CS over splits minus the distance of (ARPL + CS)+ from MLS."""
    here = {"place": place, "task": "unknown"}
    spread = evidence("auroc_std", printed="arpl + cs", **here)
    both = (evidence("auroc", printed=name, **here) for name in ("mls", "(arpl + cs)+"))
    return close(*both, within=spread)


def deviations_alike(evidence: Evidence, place: str) -> np.ndarray:
    """mean deviation over splits of four methods minus their range, of accuracy or AUROC."""
    found = _deviations(evidence, place)
    return least(*(found.mean(axis=1) - np.ptp(found, axis=1)))


def deviations_largest(evidence: Evidence, place: str) -> np.ndarray:
    """mean deviation over splits of four methods minus that elsewhere, of accuracy or AUROC."""
    here, *others = (
        _deviations(evidence, name).mean(axis=1)
        for name in (place, *(name for name in TABLE_4 if name != place))
    )
    return least(*(here - np.max(others, axis=0)))


def _deviations(evidence: Evidence, place: str) -> np.ndarray:
    """(2, 4, 1 + R) of accuracy and AUROC, of the methods of Table 4."""
    methods = (*FIGURE_2, "osrci")
    return np.array(
        [
            [evidence(m, place=place, printed=name, task="unknown") for name in methods]
            for m in ("accuracy_std", "auroc_std")
        ]
    )


def precision_below_auroc(evidence: Evidence, place: str) -> np.ndarray:
    """AUROC minus average precision on Hard classes, of MLS or ARPL+, the lesser, less 0.1."""
    hard = shared(evidence, {"place": place})
    gaps = [
        evidence("auroc", printed=name, task="hard", **hard)
        - evidence("average_precision", printed=name, task="hardest", **hard)
        for name in ("mls", "arpl+")
    ]
    return least(*gaps) - FURTHER


def softmax_reduces(evidence: Evidence, place: str) -> np.ndarray:
    """AUROC after the last epoch with 128 features, MLS minus MSP."""
    return _at_end(evidence, place, "auroc_max_logit") - _at_end(
        evidence, place, "auroc_max_softmax"
    )


def norm_tells(evidence: Evidence, place: str) -> np.ndarray:
    """AUROC after the last epoch of the norm alone, less half-way from chance to MLS."""
    half = (_at_end(evidence, place, "auroc_max_logit") + 0.5) / 2
    return _at_end(evidence, place, "auroc_feature_norm") - half


def _at_end(evidence: Evidence, place: str, measure: str) -> np.ndarray:
    """(1,) of Figure 7c, where nothing was drawn."""
    keys = {"place": place, "printed": "D = 128", "task": "watched", "selection": "last"}
    return evidence(measure, **keys)[:1]


def meaning_over_number(evidence: Evidence, place: str) -> np.ndarray:
    """drop in AUROC of MLS from Easy to Hard minus that from 1K to 10K random classes."""
    mls = shared(evidence, {"place": place}) | {"printed": "mls"}
    easy, hard, few, many = (
        evidence("auroc", task=task, **mls) for task in ("easy", "hard", "random 1k", "random 10k")
    )
    return (easy - hard) - (few - many)


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
    numbers = least(*(rise[:, 0] for rise in rises))
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
    lags = []
    for sign, measure, at in asked:
        values = [sign * evidence(measure, place=place, printed=name, **at) for name in names]
        rest = [np.max(values[:i] + values[i + 1 :], axis=0) for i in range(len(names))]
        lags.append(np.subtract(rest, values))
    return least(*np.max(lags, axis=0))


def near_hardest(evidence: Evidence, place: str) -> np.ndarray:
    """largest gain over Baseline in AUROC, mean of the far data sets minus near samples."""
    names = evidence.names("printed", place=place)
    gains = {}
    for task in ("near", "far"):
        auroc = {x: evidence("auroc", place=place, printed=x, task=task) for x in names}
        base = auroc.pop("baseline")
        gains[task] = np.max([y - base for x, y in auroc.items() if x != "mahalanobis"], axis=0)
    return gains["far"] - gains["near"]


def none_improves_near(evidence: Evidence, place: str) -> np.ndarray:
    """0.05 minus the largest gain over Baseline in AUROC on near samples, of all methods."""
    near = {"place": place, "task": "near"}
    names = [x for x in evidence.names("printed", **near) if x not in ("baseline", "mahalanobis")]
    if not names:
        raise Missing("no method but Baseline")
    gains = [evidence("auroc", printed=name, **near) for name in names]
    return RISE - (np.max(gains, axis=0) - evidence("auroc", printed="baseline", **near))


def on_one_class(evidence: Evidence, place: str) -> np.ndarray:
    """mean softmax on textures, the class that Baseline has most on minus the next, the least."""
    dtd = {"place": place, "task": CONCENTRATION, "source": "dtd"}
    return least(*(evidence("lead", printed=x, **dtd)[:1] for x in ("baseline", "ensemble", "oe")))
