"""Every method on the lists of `quickdraw-openset`, on drawings alone."""

import pandas as pd

from osnb.evidence import across
from osnb.evidence.build import Evidence, evidence

BY = ("benchmark", "task", "network", "printed")
MEASURES = ("accuracy", "auroc", "oscr")
ENDS = ("", "_low", "_high")
COLUMNS = ("protocol", "task", "method", "network", "splits", "runs")


def numbers(runs: pd.DataFrame, *, unit: str, seed: int, resamples: int) -> Evidence:
    """Measures of each method on each list; draws of the runs on one list are paired.

    Args:
        runs: on the frozen lists, from `tables.collect`; those that look at test images while
            they train are left out.
        unit: what is drawn: "class", for an interval over other classes, or "sample".
        seed: of the draws.
        resamples: their number.
    """
    made = runs[runs["regime"] != "norms"]
    made = made.assign(benchmark=made["protocol"])
    found = evidence(made, "drawings", "cross", unit=unit, seed=seed, resamples=resamples)
    return found.only(~found.keys["printed"].str.contains(","))


def gaps(numbers: Evidence, rule: str, *, runs: pd.Series) -> pd.DataFrame:
    """What AUROC a rule gains over each other one on unknown drawings; their draws are paired.

    Args:
        numbers: from `numbers`.
        rule: its printed name.
        runs: names of those that are read, of one method.

    Returns:
        One row per protocol (its last words) and other rule: protocol, less (the other), number,
        low, high (95 %).
    """
    keys = numbers.keys
    read = numbers.only(keys["run"].isin(runs) & keys["task"].eq("unknown"))
    found = across.gains(read, "auroc", "benchmark", key="printed", of=rule)
    ends = {"number": -found["number"], "low": -found["high"], "high": -found["low"]}
    protocol = found["benchmark"].str.removeprefix("quickdraw_")
    return pd.DataFrame({"protocol": protocol, "less": found["printed"]} | ends)


def results(numbers: Evidence) -> pd.DataFrame:
    """The mean of each method over its splits and seeds, with 95 % intervals.

    Args:
        numbers: from `numbers`.

    Returns:
        One row per protocol, task (unknown, or negative), method and network: splits and runs (how
        many), then accuracy, auroc and oscr (the area), each with _low and _high. The first row of
        a protocol's task has the largest oscr.
    """
    means = across.averaged(numbers, *BY)
    splits = numbers.keys.groupby([*BY], sort=False)["split"].agg(lambda x: ", ".join(x.unique()))
    table = means.keys.rename(columns={"benchmark": "protocol", "printed": "method"})
    table = table.assign(runs=means.keys["rows"], splits=splits.to_numpy())
    for measure in MEASURES:
        rows = means.table(measure)[[measure, "low", "high"]].to_numpy()
        table[[measure + end for end in ENDS]] = rows
    order = {"by": ["protocol", "task", "oscr"], "ascending": [True, False, False]}
    table = table.sort_values(**order, kind="stable", ignore_index=True)
    return table[[*COLUMNS, *(name + end for name in MEASURES for end in ENDS)]]
