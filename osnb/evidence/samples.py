"""Scores that somebody else has computed: measures, thresholds, the best of many, conventions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from osnb import metrics
from osnb.base import labels
from osnb.base.catalogue import Catalogue
from osnb.metrics.bootstrap import FPRS, apart_sets

TURNED = 1 / 3  # an AUROC below this is no bad luck
CHOOSE = {"tpr": metrics.tpr_threshold, "fpr": metrics.fpr_threshold}
LEVEL = 0.05  # of Holm's correction, over all comparisons together
CCR = {f"ccr_at_fpr_{fpr:g}": fpr for fpr in FPRS}
SHARES = {"accuracy", "ccr_at_fpr_1"}  # one share of the known samples under two names
ENOUGH = 10  # unknown samples accepted, below which a drawn interval of a CCR is far too narrow
MANY = 20  # classes of a role, from which on an interval over classes is what it says
FEW = "of 2, 3, 4, 10 classes such an interval holds the truth about .65, .80, .85, .90 of the time"


class Side(NamedTuple):
    """The scores of a side: K known samples, U others, and which known ones are right."""

    known: np.ndarray
    right: np.ndarray
    other: np.ndarray


def matched(first, second):
    """The second file's samples in the order of the first's.

    Where one file has names as labels and the other has numbers, they are the same if they group
    the samples alike.

    Raises:
        ValueError: they are not the same samples with the same labels.
    """
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
        second = taken(second, there.get_indexer(ids))
    mixed = bool(first.classes) != bool(second.classes)
    called = [_called(own) for own in (first, second)]
    exact = [np.minimum(own.label, 0) for own in (first, second)] if mixed else called
    if (differ := exact[0] != exact[1]).any():
        raise ValueError(f"need the same labels in both; {differ.sum()} of {len(differ)} differ")
    if mixed:
        _alike("labels", first, called)
    return second


def _called(own) -> np.ndarray:
    """The labels as their file has them: names of the known classes, or numbers."""
    if not own.classes:
        return own.label
    return np.array([own.classes[label] if label >= 0 else str(label) for label in own.label])


def _alike(what: str, own, groups: list[np.ndarray]) -> None:
    """Refuse groups of the same samples that are not the same, one to one."""
    ids = [f"sample {x}" for x in own.sample] or [f"row {x}" for x in range(len(own.label))]
    columns = {name: [*map(str, x)] for name, x in zip(("first", "second"), groups, strict=True)}
    pairs = pd.DataFrame(columns, index=ids).drop_duplicates()
    for name in pairs:
        for group in pairs.loc[pairs.duplicated(name), name].iloc[:1]:
            two = pairs[pairs[name] == group].iloc[:2].itertuples()
            said = [f"{x} is {a!r} in the first and {b!r} in the second" for x, a, b in two]
            raise ValueError(f"need the same {what} in both, under any names; {', '.join(said)}")


def roles(own) -> dict[str, Any]:
    """Which samples are of each role but known, where there are any; else of none."""
    of = {"unknown": own.label == labels.UNKNOWN, "negative": own.label == labels.NEGATIVE}
    there = {role: rows for role, rows in of.items() if rows.any()}
    return there or {"none": own.label != own.label}


def side(own, name: str, role: str) -> Side:
    """A score of the samples, split into the known ones and those of a role."""
    known, score = own.label >= 0, own.scores[name]
    other = roles(own).get(role, np.zeros(len(known), bool))
    return Side(score[known], (own.pred == own.label)[known], score[other])


def measures(samples: list, unit: str, **draws: int) -> Iterator[dict[str, Any]]:
    """A row for each role, measure and score; of two files, their differences.

    Args:
        samples: one or two of `scores.own`, the second as from `matched`.
        unit: sample or class, what is drawn again.
        draws: seed and resamples.

    Raises:
        ValueError: the files share no score, do not tell classes of unknown samples apart, or,
            where classes are drawn, have others; each file may name them in its own way.

    A CCR at an FPR of less than one sample is NaN; of fewer than `ENOUGH` it has no interval
    (`unsure` says so). The accuracy over samples has the exact interval of a share.
    """
    if unit == "class" and len(samples) == 2 and all(len(own.unit) for own in samples):
        _alike("classes", samples[0], [own.unit for own in samples])
    if unit == "class":
        _several(samples[0], " (--unit sample draws samples)")
    for role, other in roles(samples[0]).items():
        weights = _weights(sourced(samples), other, unit, draws)
        drawn = {}
        for name, pair in _pairs(samples).items():
            sides = (side(*each, role) for each in zip(samples, pair, strict=True))
            drawn[name] = [_resampled(each, weights) for each in sides]
        exact = _exact(samples[0]) if unit == "sample" and len(samples) == 1 else {}
        for measure, name in product(next(iter(drawn.values()))[0], drawn):
            row = {"role": role, "measure": measure, "score": name}
            row |= _row(*(values[measure] for values in drawn[name]))
            yield row | exact if measure in SHARES else row


def sourced(samples: list):
    """The first, with the sources of whichever has some."""
    sources = (own.source for own in samples if len(own.source))
    return samples[0]._replace(source=next(sources, ()))


def _row(first: np.ndarray, second: np.ndarray | None = None) -> dict[str, float]:
    """A measure with its interval, or of two (1 + R,) the difference with its own and p."""
    if second is None:
        return metrics.interval(first)._asdict()
    difference, low, high = metrics.interval(gain := first - second)
    row = {"first": first[0], "second": second[0], "difference": difference}
    p = np.nan if np.isnan(low) else metrics.p_value(gain)
    return row | {"low": low, "high": high, "p": p}


def _exact(own) -> dict[str, float]:
    """The exact interval of the accuracy, of which the bootstrap's is too narrow near 1."""
    right = (own.pred == own.label)[own.label >= 0]
    low, high = metrics.exact_interval(int(right.sum()), len(right))
    return {"low": low, "high": high}


def _weights(own, other, unit: str, draws: dict[str, int]) -> tuple:
    """Of the draws, for the known samples and for those of the other role, by source."""
    known = own.label >= 0
    ids = _ids(own, unit)
    if unit == "class" and other.any() and not len(own.unit):
        raise ValueError("--unit class needs a column class, since one label is of many unknowns")
    sides = known, other if other.any() else known
    sets = [own.source[rows] if len(own.source) else None for rows in sides]
    weights = metrics.role_weights(*(ids[rows] for rows in sides), sets=sets, **draws)
    return weights if other.any() else (weights[0], weights[0][:, :0])


def _several(own, otherwise: str = "") -> None:
    """Refuse draws of classes where a role has one; of unknown ones only names tell."""
    for role, rows in {"known": own.label >= 0, "unknown": own.label == labels.UNKNOWN}.items():
        one = {*map(str, _ids(own, "class")[rows])}
        if len(one) == 1 and (role == "known" or len(own.unit)):
            why = f"all are {one.pop()!r}{otherwise}"
            raise ValueError(f"draws of classes need two {role} classes or more; {why}")


def _ids(own, unit: str) -> np.ndarray:
    """(N,) units that are drawn: rows, or classes, by label if they have no names."""
    if unit == "sample":
        return np.arange(len(own.label))
    return own.unit if len(own.unit) else own.label


def _resampled(of: Side, weights: tuple) -> dict[str, Any]:
    """(1 + R,) of each measure of a score against another role; NaN is no number or no interval."""
    if len(of.other):
        values = metrics.bootstrap_summary(*of, weights=weights)
    else:
        values = metrics.bootstrap_aurc(of.known, of.right, weights=weights[0])
    for measure, accepted in _accepted(len(of.other)).items() if len(of.other) else ():
        values[measure][int(accepted >= 1) :] = np.nan
    return values | {"augrc": metrics.bootstrap_augrc(*of, weights=weights)}


def _accepted(others: int) -> dict[str, float]:
    """How many others each CCR rests on that too few decide; all of them leave the accuracy."""
    return {name: q * others for name, q in CCR.items() if q < 1 and q * others < ENOUGH}


def _pairs(samples: list) -> dict[str, tuple[str, ...]]:
    """What is compared: scores of one name, or the only score of the first file with each."""
    names = [[*own.scores] for own in samples]
    shared = [name for name in names[0] if all(name in each for each in names)]
    if shared:
        return {name: (name,) * len(names) for name in shared}
    if len(names[0]) == 1:
        return {f"{names[0][0]} - {name}": (names[0][0], name) for name in names[1]}
    both = " and ".join(", ".join(each) for each in names)
    why = "--score chooses by name"
    raise ValueError(
        f"need a score of one name in both files, or one in the first; got {both}: {why}"
    )


def unpaired(first, second, *, asked: bool) -> list[str]:
    """Of scores that only one of two files has, a sentence, if others are compared by name.

    Args:
        first, second: of `scores.own`.
        asked: whether the second file's scores were chosen by name; else it may have more.
    """
    one, other = first.scores, second.scores
    alone = {"second": [x for x in one if x not in other]}
    alone["first"] = [x for x in other if asked and x not in one]
    return [
        f"not compared, no column of that name in the {where} file: {', '.join(names)}"
        for where, names in alone.items()
        if names and any(x in other for x in one)
    ]


def unsure(own, unit: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Where an interval of `measures` is missing, or less than it seems, a sentence."""
    sentences = []
    of = {"known": own.label >= 0} | {role: at for role, at in roles(own).items() if at.any()}
    for role, at in of.items():
        dash, bare = [], []
        for name, accepted in _accepted(at.sum()).items() if role != "known" else ():
            (bare if accepted >= 1 else dash).append(f"{CCR[name]:g}")
        if dash:
            why = f"that is less than one of {at.sum()} {role} images"
            sentences.append(f"no CCR at FPR {', '.join(dash)}: {why}")
        if bare:
            why = f"fewer than {ENOUGH} of {at.sum()} {role} images decide it"
            sentences.append(f"no interval of CCR at FPR {', '.join(bare)}: {why}")
        if at.sum() == 1:
            sentences.append(f"one {role} image: the intervals leave its choice out")
    if unit == "class":
        sentences += _undivided(own, of)
    flat = [row for row in rows if row["low"] == row["high"] and row.get("difference") != 0]
    if names := [*dict.fromkeys(f"{row['measure']} of {row['score']}" for row in flat)]:
        sentences.append(f"low equals high, so the draws tell nothing: {', '.join(names)}")
    return sentences


def _undivided(own, of: Mapping[str, np.ndarray]) -> list[str]:
    """Where draws of classes are not what they seem, a sentence."""
    sentences, empty = [], sum(x == "" or x != x for x in own.unit)
    if empty:
        rows = f"{empty} of {len(own.unit)} rows"
        sentences.append(f"class is empty in {rows}: these are drawn as one class")
    classes = pd.Series(_ids(own, "class")).astype(str)
    counts = {role: classes[at].nunique() for role, at in of.items()}
    if few := [f"{count} {role}" for role, count in counts.items() if count < MANY]:
        sentences.append(f"few classes, {', '.join(few)}: {FEW}")
    why = "their intervals leave its choice out"
    if counts.get("negative") == 1:
        one = classes[of["negative"]].iloc[0]
        sentences.append(f"all negative samples are of class {one!r}: {why}")
    alone = []
    for at in of.values() if len(own.source) else ():
        codes, names = pd.factorize(classes[at])[0], own.source[at]
        apart = apart_sets(codes, names)
        if len({*apart}) > 1:
            alone += [*pd.unique(names[pd.Series(codes).groupby(apart).transform("nunique") == 1])]
    if alone:
        sentences.append(f"sources of one class, {', '.join(map(str, alone))}: {why}")
    return sentences


def turned(own) -> list[str]:
    """Of scores whose AUROC is far below chance, a sentence that their sign may be turned."""
    role, sentences = next(iter(roles(own))), []
    for name in own.scores if role != "none" else ():
        of = side(own, name, role)
        if (auroc := metrics.auroc(of.known, of.other)) < TURNED:
            why = "its sign may be turned; higher has to mean more known"
            sentences.append(f"AUROC of {name} is {auroc:.3f}: {why}")
    return sentences


def halves(own, *, seed: int) -> tuple:
    """Two halves of the rows, drawn at random: for calibration and for the test."""
    order = np.random.default_rng(seed).permutation(len(own.label))
    return tuple(taken(own, np.sort(rows)) for rows in np.array_split(order, 2))


def taken(own, rows: np.ndarray):
    """The rows of the samples."""
    scores = {name: column[rows] for name, column in own.scores.items()}
    ids = {
        name: each[rows] for name in ("sample", "unit", "source") if len(each := getattr(own, name))
    }
    return own._replace(label=own.label[rows], pred=own.pred[rows], scores=scores, **ids)


def chosen(rate: str, at: float, calibration: Side, *, share: float, seed: int) -> dict[str, float]:
    """By promise, the threshold from calibration samples.

    Args:
        rate: tpr, fpr or risk.
        at: what is asked of it, in (0, 1).
        calibration: held-out samples.
        share: of the unknown among samples to come, for the risk; 0 takes them as they are.
        seed: of the draws.

    Raises:
        ValueError: there are too few samples, or a rate is outside (0, 1).
    """
    if rate != "risk":
        scores = calibration.known if rate == "tpr" else calibration.other
        promises = ("bound", "conformal")
        return {each: CHOOSE[rate](scores, promise=each, **{rate: at}) for each in promises}
    mixed = mixture(calibration, share=share, seed=seed)
    pooled = np.concatenate([mixed.known, mixed.other])
    right = np.append(mixed.right, np.zeros(len(mixed.other), bool))
    return {"bound": metrics.risk_threshold(pooled, right, risk=at, seed=seed)}


def mixture(samples: Side, *, share: float, seed: int) -> Side:
    """The samples with the share of unknown ones among them; 0 leaves them as they are."""
    if not share:
        return samples
    sizes = len(samples.known), len(samples.other)
    known, other = metrics.mixture(*sizes, share=share, seed=seed)
    return Side(samples.known[known], samples.right[known], samples.other[other])


def tested(threshold: float, test: Side, *, share: float, seed: int) -> dict[str, metrics.Interval]:
    """TPR, FPR, risk and coverage of a threshold on samples that have not chosen it.

    The intervals are exact, of 95 %. Risk and coverage are those of `mixture`.
    """
    known, other = test.known >= threshold, test.other >= threshold
    mixed = mixture(test, share=share, seed=seed)
    right = int((mixed.right & (mixed.known >= threshold)).sum())
    accepted = int((mixed.known >= threshold).sum() + (mixed.other >= threshold).sum())
    counts = {"tpr": (int(known.sum()), len(known)), "fpr": (int(other.sum()), len(other))}
    counts["risk"] = accepted - right, accepted
    counts["coverage"] = accepted, len(mixed.known) + len(mixed.other)
    return {
        name: metrics.Interval(count / of if of else np.nan, *metrics.exact_interval(count, of))
        for name, (count, of) in counts.items()
    }


def decided(
    rate: str, at: float, calibration, test, *, share: float, seed: int
) -> list[dict[str, Any]]:
    """A row for each promise and rate: the threshold, and what it does on the test samples.

    Args:
        rate: tpr, fpr or risk.
        at: what is asked of it, in (0, 1).
        calibration: `scores.Own` of one score, of held-out samples.
        test: the same, of other samples.
        share: as in `chosen`.
        seed: of the draws.
    """
    role = next(iter(roles(calibration)))
    (name,) = calibration.scores
    held_out, others = (side(each, name, role) for each in (calibration, test))
    thresholds = chosen(rate, at, held_out, share=share, seed=seed)
    return [
        {"promise": promise, "threshold": threshold, "measure": measure} | rate._asdict()
        for promise, threshold in thresholds.items()
        for measure, rate in tested(threshold, others, share=share, seed=seed).items()
    ]


def verdicts(own, threshold: float) -> list[str]:
    """`accept CLASS` or `reject`, of each row."""
    (score,) = own.scores.values()
    names = [own.classes[c] if c >= 0 else "unknown" for c in own.pred] if own.classes else own.pred
    return [
        f"accept {c}" if s >= threshold else "reject" for c, s in zip(names, score, strict=True)
    ]


def choice(own, *, seed: int, resamples: int) -> list[dict[str, Any]]:
    """A row for each score: AUROC where the best is picked and, with its interval, elsewhere.

    Unknown classes are split in two at random, and so are the known samples. `p` is of the paired
    difference between the best and this score on the second half; `holm` is p after the correction
    of Holm 1979, and `differs` whether it is at most 0.05.

    Raises:
        ValueError: there is no class column, or fewer than two unknown classes or scores.
    """
    (role, others), known = next(iter(roles(own).items())), own.label >= 0
    units = np.unique(own.unit[others]) if len(own.unit) else []
    if len(units) < 2 or len(own.scores) < 2:
        raise ValueError(
            "--choose needs two scores or more, and a column class with two unknown classes or "
            f"more; got {len(own.scores)} scores, {len(units)} unknown classes"
        )
    rng = np.random.default_rng(seed)
    first = others & np.isin(own.unit, rng.permutation(units)[: len(units) // 2])
    first |= known & (rng.permutation(len(known)) % 2 == 0)
    picks, rest = (taken(own, at & (known | others)) for at in (first, ~first))
    picked = {name: metrics.auroc(*side(picks, name, role)[::2]) for name in own.scores}
    best = max(picked, key=picked.get)
    halves = {name: side(rest, name, role) for name in picked}
    weights = _weights(rest, rest.label < 0, "sample", {"seed": seed, "resamples": resamples})
    of = {"weights": weights, "names": ["auroc"]}
    drawn = {name: metrics.bootstrap_summary(*x, **of)["auroc"] for name, x in halves.items()}
    p = {name: metrics.p_value(drawn[best] - x) for name, x in drawn.items() if name != best}
    corrected = {best: np.nan} | dict(zip(p, holm(np.array([*p.values()])), strict=True))
    rows = []
    for name in sorted(picked, key=picked.get, reverse=True):
        row = {"score": name, "best": name == best, "picked on": picked[name]}
        row |= metrics.interval(drawn[name])._asdict()
        row |= {"p": p.get(name), "holm": float(corrected[name]) if name != best else None}
        rows.append(row | {"differs": bool(corrected[name] <= LEVEL)})
    return rows


def measured(own, groups: np.ndarray, *, seed: int, resamples: int) -> pd.DataFrame:
    """What every score is worth: AUROC against each group of unknown samples, and `choice`.

    Args:
        own: `scores.Own`, with the classes of its N samples.
        groups: (N,) which unknown samples are measured together, such as near and far.
        seed, resamples: of the draws.

    Returns:
        rule, against (a group, or "other half"), value, low, high and over (class or sample: what
        was drawn again); for the other half also what `choice` says: picked on, best, p, holm,
        differs.
    """
    _several(own)
    known, rows = own.label >= 0, []
    for group in pd.unique(groups[~known]):
        other = ~known & (groups == group)
        weights = _weights(own, other, "class", {"seed": seed, "resamples": resamples})
        for name, score in own.scores.items():
            right = np.ones(int(known.sum()), bool)
            sides = score[known], right, score[other]
            drawn = metrics.bootstrap_summary(*sides, weights=weights, names=["auroc"])
            row = {"rule": name, "against": group, "over": "class"}
            rows.append(row | metrics.interval(drawn["auroc"])._asdict())
    for row in choice(own, seed=seed, resamples=resamples):
        about = {"rule": row.pop("score"), "against": "other half", "over": "sample"}
        rows.append(about | row)
    return pd.DataFrame(rows)


def holm(p: np.ndarray) -> np.ndarray:
    """(M,) p-values corrected for M comparisons, in Holm 1979: the smallest counts M-fold, ..."""
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return np.minimum(steps, 1)[np.argsort(order)]


def conventions(own) -> Iterator[dict[str, Any]]:
    """A row for each measure, positive side and rule: whose it is, and the value of each score.

    Args:
        own: `scores.Own` of any scores; the unknown samples count, or the negative if there are no
            others.

    Raises:
        ValueError: no sample is unknown or negative.
    """
    role = next(iter(roles(own)))
    if role == "none":
        raise ValueError("need unknown samples, label -2, to compare conventions; there are none")
    sides = {name: side(own, name, role) for name in own.scores}
    turned = {name: Side(-x.other, x.right, -x.known) for name, x in sides.items()}
    listed = pd.read_csv(Path(__file__).with_name("conventions.csv"), keep_default_na=False)
    for row in listed.to_dict("records"):
        convention, of = row.pop("convention"), MEASURES[row["measure"]]
        of_known = row["measure"] == "AUPR" and row["positive"] == "known"
        asked = turned if of_known else sides
        yield row | {name: of(*each, convention=convention) for name, each in asked.items()}


def _detection(of: Callable, **settings: float) -> Callable:
    """A measure of known against others, whoever is right."""
    return lambda known, _, other, **how: of(known, other, **settings, **how)


def _aurc(known: np.ndarray, right: np.ndarray, other: np.ndarray, **how: str) -> float:
    """AURC with the others as errors."""
    pooled = np.append(right, np.zeros(len(other), bool))
    return metrics.aurc(np.concatenate([known, other]), pooled, **how)


MEASURES = Catalogue(
    {
        "AUROC": _detection(metrics.auroc),
        "FPR95": _detection(metrics.fpr_at_tpr, tpr=0.95),
        "AUPR": _detection(metrics.average_precision),
        "OSCR area": metrics.oscr_area,
        "CCR at FPR .1": lambda *sides, **how: metrics.ccr_at_fpr(*sides, fpr=0.1, **how),
        "AURC": _aurc,
    }
)
