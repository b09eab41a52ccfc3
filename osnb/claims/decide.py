"""The claims of osnb/published/<paper>/claims.csv, decided in print and on each size of data."""

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from osnb import metrics, tables
from osnb.catalogue import Catalogue
from osnb.claims import kim2021, palechor2023, vaze2022
from osnb.claims.evidence import Evidence, Missing, Same
from osnb.claims.open_set import for_claims, vaze_evidence
from osnb.claims.scored import palechor_evidence
from osnb.claims.unified import WITHOUT, kim_evidence

SIZES = Catalogue(
    printed="the paper's own numbers",
    mini="images drawn by a rule, which say nothing about photographs",
    tiny="photographs at 32 pixels, of those classes that the data set has",
    paper="the paper's experiment, run here",
)
PUBLISHED = "published"  # in the column `runs`: decided from osnb/published alone
RULE = "max_softmax_log_odds"  # the paper's score, in a unit that does not tie near 1
FILES = {"last": "scores", "best": "scores_best"}  # scores tables by the epoch they are of
EXACT = 1e-12  # in floats 0.3 - 0.2 - 0.1 is not 0


class Basis(NamedTuple):
    """What claims are decided from: evidence, or a function that gives a printed table by name.

    Attributes:
        source: the one or the other; None if there is none.
        todo: what to do about a number that is missing there.
    """

    source: Evidence | Callable[[str], pd.DataFrame] | None
    todo: str


def decide(
    papers: list[str],
    sizes: list[str],
    *,
    unit: str = "class",
    seed: int = 0,
    resamples: int = 1000,
) -> pd.DataFrame:
    """Decide the claims of some papers, in print and on our finished runs.

    A claim holds if its number is above 0. The interval has 95 % of the resamples inside; p is
    the two-sided bootstrap p-value of the number being 0. A printed number has neither.

    Args:
        papers: keys of osnb/published.
        sizes: names of `SIZES`.
        unit: what is drawn, see `palechor_evidence`.
        seed: of the draws.
        resamples: R.

    Returns:
        One row per claim, scope and size: paper, id, section, stated (where: in the abstract,
        the text, a table's numbers, or nowhere: a law), claim, where, size, answer (holds, does
        not hold, undecided), number, low, high, p, what (the number is), runs (or tables that
        decided it; if it is undecided, what is missing), todo (what makes that).

    Raises:
        KeyError: no such paper or size; the message lists the valid ones.
    """
    from osnb.claims import CLAIMS  # here, because the package imports this file first

    for size in sizes:
        SIZES[size]
    basis = cache(partial(_basis, unit=unit, seed=seed, resamples=resamples))
    rows = []
    for paper in papers:
        PRINTED[paper]
        for claim in tables.published(paper, "claims").to_dict("records"):
            predicate, scope, runs = (claim.pop(key) for key in ("predicate", "scope", "runs"))
            decided = [each for each in sizes if runs != PUBLISHED or each == "printed"]
            for where in scope.split():
                for size in decided:
                    row = {"paper": paper} | claim | {"where": where, "size": size}
                    found = decision(CLAIMS[predicate], where, basis(paper, runs, size))
                    rows.append(row | found)
    return pd.DataFrame(rows)


def decision(predicate: Callable, where: str, basis: Basis) -> dict:
    """The columns of `decide` from answer to todo."""
    what = predicate.__doc__.partition("\n")[0].removesuffix(".")
    row = {"answer": "undecided", "number": np.nan, "low": np.nan, "high": np.nan, "p": np.nan}
    if basis.source is None:
        return row | {"what": what, "runs": "no run", "todo": basis.todo}
    is_evidence = isinstance(basis.source, Evidence)
    source = basis.source.unread() if is_evidence else basis.source
    try:
        values = predicate(source, where)
    except Missing as missing:
        todo = "" if isinstance(missing, Same) else basis.todo
        return row | {"what": what, "runs": str(missing), "todo": todo}
    values = np.where(np.abs(values) < EXACT, 0.0, values)
    row |= {"answer": "holds" if values[0] > 0 else "does not hold", "number": values[0]}
    if len(values) > 1:
        _, low, high = metrics.interval(values)
        row |= {"low": low, "high": high, "p": metrics.p_value(values)}
    runs = ", ".join(source.read()) if is_evidence else "printed tables"
    return row | {"what": what, "runs": runs, "todo": ""}


def palechor(evidence: Evidence) -> pd.DataFrame:
    """Findings of Palechor et al. 2023 on the runs of one size.

    Args:
        evidence: from `palechor_evidence`; add that of the best epochs to that of the last ones,
            else findings about the choice of the epoch are undecided.

    Returns:
        One row per finding and protocol that the evidence has: finding, protocol, what (the
        number is), number, low, high, p, holds (yes, no, or undecided where a run is missing).
    """
    from osnb.claims import CLAIMS

    said = tables.published("palechor2023", "claims").query(f"runs != '{PUBLISHED}'")
    answers = {"holds": "yes", "does not hold": "no", "undecided": "undecided"}
    present, rows = set(evidence.names("protocol")), []
    for claim in said.itertuples():
        for where in claim.scope.split():
            if present.issuperset(where.split(",")):
                found = decision(CLAIMS[claim.predicate], where, Basis(evidence, ""))
                found["holds"] = answers[found["answer"]]
                found |= {"finding": claim.claim, "protocol": where.replace(",", ", ")}
                rows.append(found)
    columns = ["finding", "protocol", "what", "number", "low", "high", "p", "holds"]
    return pd.DataFrame(rows)[columns]


def _basis(paper: str, runs: str, size: str, **settings) -> Basis:
    if runs == PUBLISHED:
        return Basis(partial(tables.published, paper), "")
    if size == "printed":
        return Basis(PRINTED[paper](), "not printed")
    return _finished(runs, size, **settings)


def _palechor_runs(runs: pd.DataFrame, **settings) -> Evidence:
    """Runs of 12_palechor_train, at their last epochs and at their best."""
    last, best = (
        palechor_evidence(
            tables.stack(runs, "protocol", "loss", "seed", file=file),
            rule=RULE,
            selection=selection,
            **settings,
        )
        for selection, file in FILES.items()
    )
    return last + best


def _vaze_runs(runs: pd.DataFrame, **settings) -> Evidence:
    return for_claims(vaze_evidence(runs, **settings))


def _kim_runs(runs: pd.DataFrame, **settings) -> Evidence:
    """Unknown detection in one pool, with the noise, as in Table 2; the notebook has both."""
    found = kim_evidence(runs, **settings)
    kept = (found.keys["dataset"] != WITHOUT).to_numpy()
    values = {name: each[kept] for name, each in found.values.items()}
    return Evidence(found.keys[kept].reset_index(drop=True), values)


def _finished(notebook: str, size: str, **settings) -> Basis:
    """What the finished runs of a training notebook say, and what would make those missing."""
    command = f"osnb run params/{notebook}/{{}}.yaml"
    try:
        runs = tables.collect(notebook, size, *APART.get(notebook, ()))
    except FileNotFoundError:
        return Basis(None, command.format(f"{size}_*"))
    missing = [command.format(name) for name in runs.attrs["missing"]]
    none = f"no file in params/{notebook} makes such a run of size {size}"
    return Basis(FINISHED[notebook](runs, **settings), "; ".join(missing) or none)


PRINTED = Catalogue(
    palechor2023=palechor2023.printed, vaze2022=vaze2022.printed, kim2021=kim2021.printed
)
APART = {  # what tells runs apart in claims
    "12_palechor_train": ("protocol", "loss", "seed"),
    "31_kim_train": ("protocol", "split", "seed", "recipe"),
}
FINISHED = {
    "12_palechor_train": _palechor_runs,
    "21_vaze_train": _vaze_runs,
    "31_kim_train": _kim_runs,
}
