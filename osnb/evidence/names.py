"""What runs are called, in print and across papers, and what their scores tables are asked.

osnb/published/<paper>/ says which benchmark, method, regime and rule a printed row means, in
benchmarks.csv and rows.csv; an empty cell stands for any.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from osnb.base.catalogue import Catalogue
from osnb.evidence import tables

WRONG, UNKNOWN = "wrong", "unknown"
NOISE, QUIET = "gaussian_noise", "imagenet200"  # whose pool has no noise in Table 2 of Kim et al.
ALL, WITHOUT = "all", "all but gaussian noise"  # pools of unknown detection
HARD = ("medium", "hard")  # what results on hard classes are about (Vaze et al., Sec. 5.2)
DRAWINGS = {  # of the miniature of Vaze et al., by the place that they stand in
    "cub": "mammals, for CUB",
    "scars": "vehicles, for Stanford Cars",
    "fgvc-aircraft": "food, for FGVC-Aircraft",
    "imagenet": "things, for ImageNet",
}
FEW = 10  # times fewer random classes: 1,000 of 10,000
OSCR = ("accuracy", "auroc", "oscr", "fpr95")
CCR = ("ccr_at_0.001", "ccr_at_0.01", "ccr_at_0.1", "ccr_at_1")
CHECKED = ("accuracy", "gamma_plus", "gamma_minus", "fpr_at_0.5", "auroc", "fpr95", "oscr", *CCR)
CONFIDENCE = "max_softmax_log_odds"  # orders as the largest softmax does, and does not tie at 1


def placed(runs: pd.DataFrame, paper: str) -> pd.DataFrame:
    """The runs of a paper's benchmarks, with what they are or stand for in print.

    Args:
        runs: from `tables.collect`.
        paper: a key of osnb/published.

    Returns:
        The same columns, and those of benchmarks.csv: place, as the paper's tables call it in
        lower case, and what else is said there.
    """
    named = tables.texts(paper, "benchmarks").set_index("benchmark")
    here = runs[runs["benchmark"].isin(named.index)]
    return here.assign(**{name: here["benchmark"].map(column) for name, column in named.items()})


def in_print(runs: pd.DataFrame, paper: str, *, others: bool = False) -> pd.DataFrame:
    """As `placed`, and of the paper's methods in the paper's regimes alone.

    Args:
        runs: from `tables.collect`.
        paper: a key of osnb/published.
        others: whether methods stay that the paper does not have, such as one of your own.
    """
    here, rows = placed(runs, paper), tables.texts(paper, "rows")
    same = here["method"].isin(rows["method"])
    pairs = set(zip(rows["method"], rows["regime"], strict=True))
    fits = [{(m, r), (m, "")} & pairs for m, r in zip(here["method"], here["regime"], strict=True)]
    return here[pd.Series(map(bool, fits), here.index, dtype=bool) | (~same & others)]


def printed_as(
    rules: str | Sequence[str], run: Mapping[str, Any], columns: list[str], *, every: bool
) -> dict[str, str]:
    """{rule: what this run's network is called when it is read by it}, as `evidence` asks."""
    if rules == "cross":
        named = {rule: method_name(run["method"], run["regime"], rule) for rule in RULES}
        kept = {r: name for r, name in named.items() if every or r == CONFIDENCE or "," not in name}
    elif isinstance(rules, str):
        rows = tables.texts(rules, "rows")
        for key in ("place", "regime", "method"):
            rows = rows[rows[key].isin(["", run[key]])]
        kept = dict.fromkeys(columns if every else (), "")
        kept |= dict(zip(rows["rule"], rows["printed"], strict=True))
    else:
        kept = dict.fromkeys(rules, "")
    return {rule: kept[rule] for rule in columns if rule in kept}


# One naming for the methods of all three papers

EXPOSED = "EOS / OE"  # one loss: outlier exposure's second term is that of J_E
METHODS = {"background": "BG", "entropic": EXPOSED, "oe": EXPOSED, "arpl_cs": "ARPL + CS"}
METHODS |= {name: name.upper() for name in ("arpl", "rpl", "osrci", "proser", "c2ae", "crl", "edl")}
METHODS |= {"vos": "VOS", "crosr": "CROSR", "cgdl": "CGDL", "openhybrid": "OpenHybrid"}
METHODS |= {"augmix": "AugMix", "mcdropout": "MC dropout", "ensemble": "Ensemble"}
RULES = {CONFIDENCE: "MSP", "max_logit": "MLS", "energy": "energy", "negative_entropy": "entropy"}
RULES |= {"feature_norm": "feature norm", "odin": "ODIN", "openmax": "OpenMax"}
RULES |= {"mahalanobis": "Mahalanobis", "own": "own"}
# the rule by which its paper reads a method; all others by the largest softmax
READ_BY = dict.fromkeys(("rpl", "arpl", "arpl_cs"), "max_logit")
READ_BY |= dict.fromkeys(("osrci", "proser", "c2ae", "cgdl", "openhybrid"), "own")
READ_BY |= {"crosr": "openmax", "vos": "energy"}


def network_name(method: str, regime: str) -> str:
    """What a training is called beside those of the other papers; softmax is the plain one.

    A + is the strong regime, which is called by its name where the method is softmax. The
    entropic open-set loss (EOS) and outlier exposure (OE) are one row: both add, to the
    cross-entropy of known samples, a price times the cross-entropy of others against the uniform
    distribution; they differ in that price and in how the others come into a batch.
    """
    if (method, regime) == ("softmax", "strong"):
        return "strong"
    end = {"baseline": "", "strong": "+"}.get(regime, f" ({regime} training)".replace("_", " "))
    return METHODS.get(method, method) + end


def method_name(method: str, regime: str, rule: str) -> str:
    """The name of a network that is read by a rule.

    On the plain network the rule is the method (MSP, MLS, energy, ...), except that MSP is what
    every paper calls the baseline. A network that is a method keeps its name under the rule that
    its paper reads it by, else the rule is named behind a comma. OSRCI by OpenMax is
    called G-OpenMax, whose own images another generator makes.
    """
    if (method, regime) == ("softmax", "baseline"):
        return RULES[rule]
    if (method, regime, rule) == ("osrci", "baseline", "openmax"):
        return "G-OpenMax"
    strong = (method, regime) == ("softmax", "strong")
    usual = "max_logit" if strong else READ_BY.get(method, CONFIDENCE)
    name = network_name(method, regime)
    return name if rule == usual else f"{name}, {RULES[rule]}"


class Part(NamedTuple):
    """Rows of a scores table that known samples are told from.

    Attributes:
        task: what is asked, such as negative, near or hard.
        source: whose images, where a task has several sets; else "".
        rows: of the scores table; None for wrong predictions, which are known samples.
        draw: last words of the name of their draw, see `osnb.evidence.build.Draws`; of several
            sets those of each row, since a draw leaves each set as large as it is.
    """

    task: str
    source: str
    rows: pd.DataFrame | None
    draw: str | pd.Series


class Tasks(NamedTuple):
    """The tasks of a paper.

    Attributes:
        parts: (scores, run) -> its parts.
        draw: columns of a run that name its draws: runs that agree in them share draws.
        asked: task -> the measures that it has, "" for all other tasks; the rest is NaN.
    """

    parts: Callable[[pd.DataFrame, Mapping[str, Any]], Iterator[Part]]
    draw: tuple[str, ...]
    asked: Mapping[str, tuple[str, ...]]


def _roles(scores: pd.DataFrame, _: Mapping[str, Any]) -> Iterator[Part]:
    """Negatives and unknown samples, each in one pool."""
    for role in ("negative", UNKNOWN):
        yield Part(role, "", scores[scores["role"] == role], role)


def _shifts(scores: pd.DataFrame, run: Mapping[str, Any]) -> Iterator[Part]:
    """By how far unknown classes are; networks of all classes by data set.

    Hard holds Medium too, as in the paper, and hardest is Hard alone. In the miniature sets are
    called by the paper's in whose place they are, see sources.csv.
    """
    unknown = scores[scores["role"] == UNKNOWN]
    reader = scores.loc[scores["role"] == "known", "source"].iloc[0]
    own = (unknown["source"] == reader) | (run["family"] != "ood")
    groups = dict(list(unknown[own].groupby("group")))
    if "hard" in groups and "medium" in groups:
        yield Part("hardest", "", groups["hard"], "hardest ")
        groups["hard"] = unknown[own & unknown["group"].isin(HARD)]
    if "random" in groups:
        many = groups.pop("random")
        names = np.random.default_rng(0).permutation(many["class"].unique())
        few = many[many["class"].isin(names[: max(len(names) // FEW, 1)])]
        yield Part("random 10k", "", many, "random 10k ")
        yield Part("random 1k", "", few, "random 1k ")
    printed = printed_sources("vaze2022", run)
    for name, rows in groups.items():
        source = printed.get(name, "")
        yield Part(name or UNKNOWN, source, rows, f" {source}" if source else f"{name} ")
    for name, rows in unknown[~own].groupby("source"):
        source = printed.get(name, name.replace("_", "-"))
        yield Part("far", source, rows, f" {source}")


def _unified(scores: pd.DataFrame, run: Mapping[str, Any]) -> Iterator[Part]:
    """Wrong predictions, near classes, each far set, and all of them, as Table 2 lists them.

    Where noise is one of the sets, there is a pool without it too. In the miniature sets are
    called by the paper's in whose place they are, see sources.csv.
    """
    yield Part(WRONG, "known", None, "")
    unknown = scores[scores["role"] == UNKNOWN]
    if run["benchmark"] == QUIET:
        unknown = unknown[unknown["source"] != NOISE]
    far, noise = unknown["group"] == "far", unknown["source"] == NOISE
    if (~far).any():
        yield Part("near", "near", unknown[~far], "near")
    printed = printed_sources("kim2021", run)
    called = {x: x.removesuffix("_parquet").replace("_", " ") for x in unknown["source"].unique()}
    called |= {x: name for x, name in printed.items() if x in called}
    for source, rows in unknown[far].groupby("source"):
        yield Part("far", called[source], rows, called[source])
    sets = unknown["source"].map(called).astype(object).where(far, "near")
    yield Part(UNKNOWN, ALL, unknown, sets)
    if noise.any() and not noise.all():
        yield Part(UNKNOWN, WITHOUT, unknown[~noise], sets[~noise])


def _cross(scores: pd.DataFrame, _: Mapping[str, Any]) -> Iterator[Part]:
    """Whatever a benchmark has of all papers' tasks; noise is apart from far images."""
    unknown, noise = scores["role"] == UNKNOWN, scores["source"] == NOISE
    rows = {
        "negative": scores["role"] == "negative",
        "near": unknown & (scores["group"] == "near"),
        "far": unknown & (scores["group"] == "far") & ~noise,
        "noise": unknown & noise,
        UNKNOWN: unknown,
    }
    sets = pd.Series(UNKNOWN, scores.index, dtype=object).mask(rows["near"], "near")
    sets = sets.mask(rows["far"], "far " + scores["source"].astype(str)).mask(
        rows["noise"], "noise"
    )
    yield Part(WRONG, "", None, "")
    for task, at in rows.items():
        if at.any():
            yield Part(task, "", scores[at], sets[at] if task in ("far", UNKNOWN) else task)


def _drawings(scores: pd.DataFrame, run: Mapping[str, Any]) -> Iterator[Part]:
    """As `roles`, of Quick, Draw! alone: what `quickdraw-openset` lists, no other set."""
    parts = _roles(scores[scores["source"] == "quickdraw"], run)
    yield from (part for part in parts if len(part.rows))


def printed_sources(paper: str, run: Mapping[str, Any]) -> dict[str, str]:
    """What the paper calls sources and groups, by the names that scores tables have."""
    rows = tables.texts(paper, "sources")
    rows = rows[rows["benchmark"].isin(["", run["benchmark"]])]
    return dict(zip(rows["source"], rows["printed"], strict=True))


# as Tables 5 and 6 of Kim et al. print them, E-AURC, and the means of Figure 6
OF_KIM = {WRONG: ("accuracy", "aurc", "e_aurc", "confidence", "confidence_right")}
OF_KIM |= {UNKNOWN: ("aurc", "e_aurc")}
OF_KIM |= {"": ("auroc", "fpr95", "confidence")}
# average precision in Table 9 of Vaze et al. alone, by how far unknown classes are
OF_VAZE = dict.fromkeys(("easy", "medium", "hard", "hardest"), (*OSCR, "average_precision"))
OF_VAZE |= {"": OSCR}

TASKS = Catalogue(
    drawings=Tasks(_drawings, ("protocol", "split"), {"": OSCR}),
    roles=Tasks(_roles, ("protocol",), {"": CHECKED}),
    shifts=Tasks(_shifts, ("place", "split"), OF_VAZE),
    unified=Tasks(_unified, ("protocol", "split"), OF_KIM),
    cross=Tasks(_cross, ("protocol", "split"), {"": (*OSCR, "aurc")}),
)
