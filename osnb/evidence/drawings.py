"""Every method on the lists of `quickdraw-openset`, on drawings alone."""

import pandas as pd

from osnb.evidence import across
from osnb.evidence.build import evidence

BY = ("benchmark", "task", "network", "printed")
MEASURES = ("accuracy", "auroc", "oscr")
ENDS = ("", "_low", "_high")
COLUMNS = ("protocol", "task", "method", "network", "splits", "runs")


def results(runs: pd.DataFrame, *, unit: str, seed: int, resamples: int) -> pd.DataFrame:
    """The mean of each method over its splits and seeds, with 95 % intervals.

    Args:
        runs: on the frozen lists, from `tables.collect`; those that look at test images while
            they train are left out.
        unit: what is drawn: "class", for an interval over other classes, or "sample".
        seed: of the draws.
        resamples: their number.

    Returns:
        One row per protocol, task (unknown, or negative), method and network: splits and runs (how
        many), then accuracy, auroc and oscr (the area), each with _low and _high. The first row of
        a protocol's task has the largest oscr.
    """
    made = runs[runs["regime"] != "norms"]
    made = made.assign(benchmark=made["protocol"])
    numbers = evidence(made, "drawings", "cross", unit=unit, seed=seed, resamples=resamples)
    numbers = numbers.only(~numbers.keys["printed"].str.contains(","))
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
