"""What the papers claim: a number, above 0 if the claim holds, in print and on each size of data.

The claims themselves are in osnb/published/<paper>/claims.csv. Most are a comparison, whose sides
are columns there (`compare`); the others are functions (`predicates`). They are decided on
`Evidence`, which is made from scores tables or from the paper's printed numbers; a claim about the
paper's own tables is decided on those.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial, reduce
from itertools import product
from multiprocessing import get_context, parent_process
from operator import add
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from osnb import metrics
from osnb.base.catalogue import Catalogue
from osnb.evidence import across, tables
from osnb.evidence.across import UNDECIDED
from osnb.evidence.build import Evidence, Missing, Same, evidence
from osnb.evidence.claims import compare, predicates
from osnb.evidence.kim2021 import SETS, TABLES, concentrated, results, whole_splits
from osnb.evidence.names import ALL, CONFIDENCE, OSCR, UNKNOWN, WITHOUT, in_print, placed
from osnb.evidence.palechor2023 import CCR, VALIDATION

SIZES = Catalogue(
    printed="the paper's own numbers",
    mini="drawings and digits in the place of photographs: they illustrate and do not decide",
    tiny="photographs at 32 pixels, of those classes that the data set has",
    paper="the paper's data; trainings may be shorter and sets missing, see figures/README.md",
)
PUBLISHED = "published"  # in the column `runs`: decided from osnb/published alone
FILES = {"last": "scores", "best": "scores_best"}  # scores tables by the epoch they are of
# what is measured after every epoch, Figure 7 of Vaze et al.
NORMS = ("norm_known", "norm_unknown", "norm_of_classes")
NORMS += ("auroc_max_logit", "auroc_max_softmax", "auroc_feature_norm")
# of Vaze et al. 2022: rows that its tables call otherwise than rows.csv
ROWS = {"baseline (mls)": "mls", "mls (ours)": "mls"}
ROWS |= {"baseline (msp+)": "msp+", "baseline (msp)": "msp"}
METRICS = {"mean_auroc": "auroc", "ap": "average_precision"}  # as columns in percent are named
STEPS = {1: "msp", 2: "mls, baseline", 8: "mls"}  # rows of Table 5 that other tables have too
YES = {across.DECIDED[0], across.ILLUSTRATED[0]}
OF_ALL = {"no_method_leads_all", "near_hardest"}  # predicates that some methods alone never decide
EXACT = 1e-12  # in floats 0.3 - 0.2 - 0.1 is not 0
FEWEST = 4  # classes of which an interval over others is one
# far sets, as the papers of 2021 and 2022 call them, and the two more of a mean over far sets
NOISE = ("gaussian noise", "gaussian-noise", "rademacher-noise", "uniform-noise")
ANSWERS = ["answer", "number", "low", "high", "p", "what", "runs", "todo"]


class Basis(NamedTuple):
    """What claims are decided from: evidence, or a function that gives a printed table by name.

    Attributes:
        source: the one or the other; None if there is none.
        todo: what to do about a number that is missing there.
    """

    source: Evidence | Callable[[str], pd.DataFrame] | None
    todo: str


def decide(
    papers: list[str], sizes: list[str], *, processes: int = 1, **draws: Any
) -> pd.DataFrame:
    """Decide the claims of some papers, in print and on our finished runs.

    A claim is right if its number is above 0. The interval has 95 % of the resamples inside; p is
    the two-sided bootstrap p-value of the number being 0. The answer is the interval's: p, which
    counts the number itself as a resample, may be slightly above .05 beside it. A printed number
    has neither.

    Args:
        papers: keys of osnb/published, one or more.
        sizes: names of `SIZES`.
        processes: more than one decide the papers beside each other. They import the calling
            script again, where the call stands below `if __name__ == "__main__":`.
        draws: unit, seed and resamples, as `osnb.evidence.build.evidence` takes them.

    Returns:
        One row per claim, scope and size: paper, id, section, stated (where: in the abstract,
        the text, a table's numbers, or nowhere: a law), claim, where, size, answer (of
        `across.verdict`), number, low, high, p, what (the number is), runs (or tables that it is
        of; if there is no number, what is missing), todo (what makes that).

    Raises:
        KeyError: no such paper or size; the message lists the valid ones.
    """
    for size in sizes:
        SIZES[size]
    for paper in papers:
        PRINTED[paper]
    decided = partial(_decided, sizes=sizes, **draws)
    if processes == 1:
        return pd.concat(map(decided, papers), ignore_index=True)
    spawn = get_context("spawn")
    with ProcessPoolExecutor(processes, spawn, initializer=_end_with_caller) as pool:
        return pd.concat(pool.map(decided, papers), ignore_index=True)


def _end_with_caller() -> None:
    """Let this process end when the one that asked was killed: it would wait for work for ever."""

    def watch(caller) -> None:
        caller.join()
        os._exit(1)

    Thread(target=watch, args=(parent_process(),), daemon=True).start()


def _decided(paper: str, *, sizes: list[str], **draws: Any) -> pd.DataFrame:
    """The rows of `decide` of one paper."""
    basis, rows = cache(partial(_basis, **draws)), []
    for claim in claims(paper).to_dict("records"):
        decided = [x for x in sizes if claim["runs"] != PUBLISHED or x == "printed"]
        shown = {name: claim[name] for name in ("id", "section", "stated", "claim")}
        for where, size in product(claim["scope"].split(), decided):
            row = {"paper": paper} | shown | {"where": where, "size": size}
            rows.append(row | decision(claim, where, basis(paper, claim["runs"], size)))
    return pd.DataFrame(rows)


def claims(paper: str) -> pd.DataFrame:
    """The claims of a paper, as text; a cell that says nothing is empty."""
    return tables.texts(paper, "claims")


def within(paper: str, benchmarks: set[str]) -> dict[str, list[str]]:
    """Claims of a paper about runs, each with the scopes that only name these benchmarks."""
    about = claims(paper).query("runs != 'published'").set_index("id")["scope"]
    return {
        name: [where for where in scope.split() if {*where.split(",")} <= benchmarks]
        for name, scope in about.items()
    }


def decision(claim: Mapping[str, str], where: str, basis: Basis) -> dict[str, Any]:
    """The columns of `decide` from answer to todo, of a row of `claims` in one of its scopes."""
    predicate, what = partial(compare.number, claim=claim), claim["number"]
    if claim["predicate"]:
        predicate = COMPUTED[claim["predicate"]]
        what = predicate.__doc__.partition("\n")[0].removesuffix(".")
    row = dict.fromkeys(ANSWERS, np.nan) | {"answer": UNDECIDED, "what": what}
    if basis.source is None:
        return row | {"runs": "no run", "todo": basis.todo}
    is_evidence = isinstance(basis.source, Evidence)
    source = basis.source.unread() if is_evidence else basis.source
    size = source.size if is_evidence else "printed"
    try:
        values = predicate(source, where)
        if is_evidence and (shared := _on_shared_splits(source)) is not source:
            source, values = shared, predicate(shared, where)
        found = _answered(values, size)
        if is_evidence and size != "printed":
            _not_of_few(source, predicate, where, found)
            _not_of_some(source, claim, where, found["answer"])
            _not_by_noise_alone(source, predicate, where, found)
    except Missing as missing:
        todo = "" if isinstance(missing, Same) else basis.todo
        return row | {"runs": str(missing), "todo": todo}
    runs = ", ".join(source.read()) + _far_sets(source) if is_evidence else "printed tables"
    return row | found | {"runs": runs, "todo": ""}


def _answered(values: np.ndarray, size: str) -> dict[str, Any]:
    """The columns of `decide` from answer to p, of a claim's number and its resamples."""
    values = across.counted(np.where(np.abs(values) < EXACT, 0.0, values))
    if np.isnan(values[0]):
        raise Missing("a side does not vary")
    row = {"number": values[0]} | dict.fromkeys(("low", "high", "p"), np.nan)
    if len(values) > 1:
        _, low, high = metrics.interval(values)
        row |= {"low": low, "high": high, "p": metrics.p_value(values)}
    answer = across.verdict(*(row[name] for name in ("number", "low", "high")), size=size)
    return {"answer": answer} | row


def _on_shared_splits(source: Evidence) -> Evidence:
    """The rows on those splits that all methods have which were read, if some have others.

    A mean over other known classes than another method's would compare classes, not methods.

    Raises:
        Missing: no split has all of them.
    """
    if not {"benchmark", "printed", "split"} <= {*source.keys}:
        return source
    used = source.keys.iloc[sorted(source.used)]
    splits = used.groupby(["benchmark", "printed"])["split"].agg(frozenset)
    shared = splits.groupby("benchmark").agg(lambda each: frozenset.intersection(*each))
    if (splits == shared.reindex(splits.index, level="benchmark")).all():
        return source
    if lone := [name for name, both in shared.items() if not both]:
        raise Missing(f"no split of {', '.join(lone)} has all of its methods")
    places = zip(source.keys["benchmark"], source.keys["split"], strict=True)
    return source.only(np.array([split in shared.get(at, {split}) for at, split in places]))


def _far_sets(source: Evidence) -> str:
    """The far sets of photographs that were read; those of the miniature are all there."""
    used = source.keys.iloc[sorted(source.used)]
    if not {"task", "source", "size"} <= {*used} or source.size == "mini":
        return ""
    sets = used.loc[used["task"] == "far", "source"]
    return "; far sets: " + ", ".join(sorted(sets.unique())) if len(sets) else ""


def _not_of_some(source: Evidence, claim: Mapping[str, str], where: str, answer: str) -> None:
    """Refuse an answer about all methods, or far sets, of Kim et al. that a missing one may turn.

    Some can show that one is not ahead of all others, or on all sets, but not that it is.

    Raises:
        Missing: the answer is such a one; the message has what was not run.
    """
    if "source=*" in claim["at"] and answer in YES:
        far = results().query("place == @where and task == 'far'")["source"]
        asked = [name for name, printed in SETS[where].items() if printed in {*far}]
        there = {*source.keys["source"].iloc[sorted(source.used)]}
        if absent := [name for name in asked if name not in there]:
            raise Missing(f"not run on: {', '.join(absent)}")
    is_ahead = claim["right"].startswith("others") and answer in YES
    if is_ahead or claim["predicate"] in OF_ALL:
        read = source.keys["printed"].iloc[sorted(source.used)]
        rest = {*read, "mahalanobis", *claim["right"].removeprefix("others but ").split("|")}
        methods = tables.published("kim2021", "rows")["printed"]
        if absent := [name for name in methods if name not in rest]:
            raise Missing(f"not run: {', '.join(absent)}")


def _not_of_few(
    source: Evidence, predicate: Callable, where: str, found: Mapping[str, Any]
) -> None:
    """Refuse an answer that turns without the sets of fewer than `FEWEST` classes.

    An interval over classes lies between the least and the largest of them: 95 % intervals of AUROC
    hold 62 % with two unknown classes, 77 % with three, 86 % with four (simulated).

    Raises:
        Same: as of `_turned`.
    """
    few = source.few(FEWEST, *NOISE)
    if few.any() and found["answer"] != UNDECIDED and not np.isnan(found["low"]):
        why = f"a set of fewer than {FEWEST} classes"
        _turned(source.only(~few), predicate, where, found, why)


def _not_by_noise_alone(
    source: Evidence, predicate: Callable, where: str, found: Mapping[str, Any]
) -> None:
    """Refuse an answer that turns without the noise, where a method was trained only once.

    Noise is one class, so no draw of classes tells how far another seed moves an AUROC on it, or
    the AURC of a pool with it. Print counts it among the far sets and has the mean of five seeds,
    so it is not left out.

    Raises:
        Same: as of `_turned`.
    """
    keys, quiet = source.keys, source.fits(task=WITHOUT)
    noise = np.any([source.fits(source=name) for name in NOISE], axis=0)
    if quiet.any():
        noise |= source.fits(source=ALL) & keys["place"].isin(keys.loc[quiet, "place"]).to_numpy()
    used = keys[noise & np.isin(np.arange(len(noise)), sorted(source.used))]
    if used.empty or used.groupby(["place", "printed"])["run"].nunique().min() > 1:
        return
    rest = keys[~noise].copy()
    rest.loc[quiet[~noise], ["task", "source"]] = UNKNOWN, ALL
    _turned(source.at(rest), predicate, where, found, "one training's noise")


def _turned(
    rest: Evidence, predicate: Callable, where: str, found: Mapping[str, Any], why: str
) -> None:
    """Refuse an answer that another one takes the place of where some rows are left out.

    Raises:
        Same: it is so, the message has both numbers; or these rows alone have a number.
    """
    try:
        other = _answered(predicate(rest, where), rest.size)
    except Missing:
        raise Same(f"{found['number']:+.3f}, by {why} alone") from None
    if other["answer"] != found["answer"]:
        both = f"{found['number']:+.3f}, {other['number']:+.3f} without it"
        raise Same(f"{why} turns it: {both}")


def findings(
    paper: str, numbers: Evidence, asked: Mapping[str, Sequence[str]] | Sequence[str], *, over: str
) -> pd.DataFrame:
    """Some claims, decided on the runs of one size and in print: what a results notebook lists.

    Args:
        paper: a key of osnb/published.
        numbers: ours.
        asked: ids of claims; as a mapping with the scopes that each is asked about, else all.
        over: the unit that was drawn.

    Returns:
        id, claim, where, what, number, low, high, over, p, ours and in print (the answers, of
        `across.verdict`), printed (the number there) and runs.
    """
    said, rows = claims(paper).set_index("id", drop=False), []
    bases = Basis(numbers, ""), Basis(PRINTED[paper](), "")
    for name in asked:
        claim = said.loc[name]
        for where in asked[name] if isinstance(asked, Mapping) else claim["scope"].split():
            ours, theirs = (decision(claim, where, basis) for basis in bases)
            row = {"id": name, "claim": claim["claim"], "where": where, "what": ours["what"]}
            row |= {key: ours[key] for key in ("number", "low", "high")} | {"over": over}
            row |= {"p": ours["p"], "ours": ours["answer"], "in print": theirs["answer"]}
            rows.append(row | {"printed": theirs["number"], "runs": ours["runs"]})
    return pd.DataFrame(rows)


def _basis(paper: str, runs: str, size: str, **draws: Any) -> Basis:
    if runs == PUBLISHED:
        return Basis(partial(tables.published, paper), "")
    if size == "printed":
        return Basis(PRINTED[paper](), "not printed")
    command = f"osnb run params/{runs}/{{}}.yaml"
    try:
        found = tables.collect(runs, size)
    except FileNotFoundError:
        return Basis(None, command.format(f"{size}_*"))
    missing = [command.format(name) for name in found.attrs["missing"]]
    none = f"no file in params/{runs} makes such a run of size {size}"
    numbers = RUNS[paper](found, measures=ASKED[paper], **draws)
    return Basis(numbers, "; ".join(missing) or none)


def of_palechor2023(runs: pd.DataFrame, *, rule: str = CONFIDENCE, **draws: Any) -> Evidence:
    """Runs at their last epochs and at their best, key selection; and what their histories say."""
    runs = in_print(runs, "palechor2023", others=True)
    names = tables.published("palechor2023", "rows").set_index("method")["printed"]
    parts = [evidence(runs, "roles", [rule], file=file, **draws) for file in FILES.values()]
    for selection, part in zip(FILES, parts, strict=True):
        part.keys["selection"] = selection
    both = parts[0] + parts[1]
    both += across.watched(runs, "gamma_minus", task=VALIDATION, resamples=both.resamples)
    both.keys["printed"] = both.keys["method"].map(names).fillna("")
    return both


def of_vaze2022(runs: pd.DataFrame, **draws: Any) -> Evidence:
    """With deviations over splits, the mean over several other data sets, and Figure 7's norms."""
    runs = placed(runs, "vaze2022")
    # CIFAR10 is a place of Table 1 and of Table 8, with other classes and so other draws
    families = (part for _, part in runs.groupby("family"))
    found = reduce(add, (evidence(part, "shifts", "vaze2022", **draws) for part in families))
    found = across.over_splits(found, "accuracy", "auroc")
    found = across.mean_over(found, "source", "six-sets", task="far")
    norms = runs[runs["watch"] == "test"]
    decays = norms.loc[norms["features"] == 2, "weight_decay"]  # Figure 7a to 7f are of one
    norms = norms[norms["weight_decay"].isin(decays)]
    norms = norms.assign(printed=norms["features"].map("D = {:g}".format))
    norms = across.watched(norms, *NORMS, task="watched", resamples=found.resamples)
    norms.values["norm_gap"] = norms.values["norm_known"] - norms.values["norm_unknown"]
    return found + norms


def of_kim2021(runs: pd.DataFrame, **draws: Any) -> Evidence:
    """Unknown detection in the pools of Table 2, with noise around CIFAR."""
    runs = whole_splits(in_print(runs, "kim2021"))
    found = evidence(runs, "unified", "kim2021", **draws)
    return noise_apart(found) + concentrated(runs, found.resamples)


def noise_apart(found: Evidence) -> Evidence:
    """The same, pools without noise a task of their own by that name: what turns without noise."""
    task = found.keys["task"].mask(found.keys["source"] == WITHOUT, WITHOUT)
    return found.at(found.keys.assign(task=task))


def print_palechor2023() -> Evidence:
    """Both parts of Table 2, all of it on unknown images, gamma- too, as its caption says."""
    rows = tables.published("palechor2023", "table2").drop(columns="epoch")
    rows["table"] = rows["selection"].map({"last": "Table 2a", "best": "Table 2b"})
    rows = rows.assign(place="p" + rows["protocol"].astype(str), accuracy=rows["ccr_at_1"])
    rows = rows.drop(columns="protocol").rename(columns={"loss": "printed"} | CCR)
    keys = ["table", "selection", "place", "printed", "task"]
    return _evidence(rows.assign(task=UNKNOWN), keys)


def print_vaze2022() -> Evidence:
    """Tables 1, 3, 4, 7, 8, 9 but for what Table 1 cites, two rows of Table 5, all stated rho.

    Hard is Medium and Hard in Table 3, and Hard alone, here hardest, in Table 9.
    """
    nine = vaze_table("9")
    has_medium = nine["place"].isin(nine.dropna(subset="value").query("task == 'medium'")["place"])
    nine.loc[has_medium & (nine["task"] == "hard"), "task"] = "hardest"
    parts = [
        vaze_table("1", task=UNKNOWN).query("source == 'this paper'"),
        vaze_table("4", task=UNKNOWN),
        vaze_table("3"),
        nine,
        vaze_table("7", task="far").assign(source=lambda x: x["ood"]),
        vaze_table("8", task="far", source="six-sets"),
        steps().query("row <= 2"),
    ]
    keys = ["place", "printed", "task", "source", "measure"]
    rows = pd.concat(parts).assign(measure=lambda rows: rows["metric"])
    rows = rows[["table", *keys, "metric", "value"]].dropna(subset="value")
    rows = rows.fillna("").assign(value=rows["value"] / 100)
    rows["table"] = rows.groupby(keys)["table"].transform(lambda names: ", ".join(names.unique()))
    wide = rows.pivot_table(index=["table", *keys], columns="metric", values="value")
    names = {"where": "table", "name": "task", "pearson_rho": "rho"}
    rhos = tables.published("vaze2022", "correlations").rename(columns=names)
    rhos = rhos[[*names.values()]].assign(place="", printed="", source="", measure="rho")
    return _evidence(wide.reset_index(), ["table", *keys]) + _evidence(rhos, ["table", *keys])


def steps() -> pd.DataFrame:
    """Those of Table 5 that `STEPS` names, in the form of `vaze_table`."""
    rows = vaze_table("5", place="tinyimagenet", task=UNKNOWN)
    return rows.assign(printed=rows["row"].map(STEPS)).dropna(subset="printed")


def vaze_table(number: str, **settings: str) -> pd.DataFrame:
    """A printed table under the names of `vaze2022`, a row a number, in points: `value`."""
    rows = in_points(tables.published("vaze2022", f"table{number}"))
    return rows.assign(table=f"Table {number}", **settings)


def in_points(rows: pd.DataFrame) -> pd.DataFrame:
    """A table of Vaze et al. in that form; each column in percent becomes rows of one metric."""
    names = {"dataset": "place", "in_distribution": "place", "method": "printed"}
    rows = rows.rename(columns=names | {"open_split": "task", "value_pct": "value"})
    if points := [name for name in rows if name.endswith("_pct")]:
        rows = rows.melt([name for name in rows if name not in points], points, "metric")
        rows["metric"] = rows["metric"].str.removesuffix("_pct").replace(METRICS)
    for key in {"place", "printed", "task", "ood"} & {*rows}:
        rows[key] = rows[key].str.lower().str.replace("gaussian noise", "gaussian-noise")
    return rows.replace({"printed": ROWS})


def print_kim2021() -> Evidence:
    """Tables 5 and 6, means over five trainings."""
    rows = results().assign(table=lambda x: "Table " + x["place"].map(TABLES).astype(str))
    rows = rows.assign(**{key: rows[key].str.lower() for key in ("printed", "source")})
    keys = ["table", "place", "printed", "task", "source"]
    wide = rows.pivot_table(index=keys, columns="metric", values="value")
    return _evidence(wide.reset_index(), keys)


def _evidence(rows: pd.DataFrame, keys: list[str]) -> Evidence:
    values = {name: rows[[name]].to_numpy() for name in rows if name not in keys}
    return Evidence(rows[keys].reset_index(drop=True), values)


PRINTED = Catalogue(palechor2023=print_palechor2023, vaze2022=print_vaze2022, kim2021=print_kim2021)
# what claims ask of test samples: fewer measures take less time
RATES = ("ccr_at_0.01", "ccr_at_0.1", "ccr_at_1")
ASKED: dict[str, tuple[str, ...]] = {
    "palechor2023": ("accuracy", "oscr", *RATES, "gamma_plus", "gamma_minus", "fpr_at_0.5"),
    "vaze2022": ("accuracy", "auroc", "oscr", "average_precision"),
    "kim2021": ("accuracy", "auroc", "aurc", "confidence", "confidence_right"),
}
RUNS = {"palechor2023": of_palechor2023, "vaze2022": of_vaze2022, "kim2021": of_kim2021}
COMPUTED = Catalogue(predicates.__dict__)
