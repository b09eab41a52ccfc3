"""What a scores table is asked: which rows are set against the known samples, under which name."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from osnb.base.catalogue import Catalogue
from osnb.evidence import tables

WRONG, UNKNOWN = "wrong", "unknown"
NOISE, QUIET = "gaussian_noise", "imagenet200"  # whose pool has no noise in Table 2 of Kim et al.
ALL, WITHOUT = "all", "all but gaussian noise"  # pools of unknown detection
HARD = ("medium", "hard")  # what results on hard classes are about (Vaze et al., Sec. 5.2)
FEW = 10  # times fewer random classes: 1,000 of 10,000
OSCR = ("accuracy", "auroc", "oscr", "fpr95")
CCR = ("ccr_at_0.001", "ccr_at_0.01", "ccr_at_0.1", "ccr_at_1")
CHECKED = ("accuracy", "gamma_plus", "gamma_minus", "fpr_at_0.5", "auroc", "fpr95", "oscr", *CCR)


class Part(NamedTuple):
    """Rows of a scores table that known samples are told from.

    Attributes:
        task: what is asked, such as negative, near or hard.
        source: whose images, where a task has several sets; else "".
        rows: of the scores table; None for wrong predictions, which are known samples.
        draw: last words of the name of their draw, see `osnb.evidence.build.Draws`.
    """

    task: str
    source: str
    rows: pd.DataFrame | None
    draw: str


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
    for name, rows in unknown[far].groupby("source"):
        source = printed.get(name, name.replace("_", " "))
        yield Part("far", source, rows, source)
    yield Part(UNKNOWN, ALL, unknown, ALL)
    if noise.any() and not noise.all():
        yield Part(UNKNOWN, WITHOUT, unknown[~noise], WITHOUT)


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
    yield Part(WRONG, "", None, "")
    yield from (Part(task, "", scores[at], task) for task, at in rows.items() if at.any())


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

TASKS = Catalogue(
    drawings=Tasks(_drawings, ("protocol", "split"), {"": OSCR}),
    roles=Tasks(_roles, ("protocol",), {"": CHECKED}),
    shifts=Tasks(_shifts, ("place", "split"), {"": (*OSCR, "average_precision")}),
    unified=Tasks(_unified, ("protocol", "split"), OF_KIM),
    cross=Tasks(_cross, ("protocol", "split"), {"": (*OSCR, "aurc")}),
)
