"""What runs are called: in the papers' tables, and in one table of all three papers.

osnb/published/<paper>/ says which benchmark, method, regime and rule a printed row means, in
benchmarks.csv and rows.csv; an empty cell stands for any.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from osnb.evidence import tables

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
    end = {"baseline": "", "strong": "+"}.get(regime, f" with {regime}".replace("_", " "))
    return METHODS.get(method, method) + end


def method_name(method: str, regime: str, rule: str) -> str:
    """The name of a network that is read by a rule.

    On the plain network the rule is the method (MSP, MLS, energy, ...), except that MSP is what
    every paper calls the baseline. A network that is a method keeps its name under the rule that
    its paper reads it by, else the rule is named behind a comma. OSRCI by OpenMax is G-OpenMax.
    """
    if (method, regime) == ("softmax", "baseline"):
        return RULES[rule]
    if (method, regime, rule) == ("osrci", "baseline", "openmax"):
        return "G-OpenMax"
    strong = (method, regime) == ("softmax", "strong")
    usual = "max_logit" if strong else READ_BY.get(method, CONFIDENCE)
    name = network_name(method, regime)
    return name if rule == usual else f"{name}, {RULES[rule]}"
