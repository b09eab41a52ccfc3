"""The page of the benchmark `quickdraw-openset`: its frozen lists, what our methods reach."""

from contextlib import suppress

import pandas as pd

from osnb.base import workbook
from osnb.evidence import across, tables
from osnb.evidence.build import evidence
from osnb.protocols import quickdraw

LISTS = workbook.PACKAGE / "data" / "quickdraw" / "lists.csv"
NOTEBOOKS = ("12_palechor_train", "21_vaze_train", "31_kim_train")
BY = ("benchmark", "task", "network", "printed")
MEASURES = ("accuracy", "auroc", "oscr")
RESAMPLES = 200  # draws: two digits of an interval


def page() -> dict:
    """What the template shows: lists, results of each protocol (empty without runs), how many."""
    lists = pd.read_csv(LISTS)
    found = results()
    shown = {name: part.drop(columns="protocol") for name, part in found.groupby("protocol")}
    known = {"title": quickdraw.NAME, "version": quickdraw.VERSION, "tuning": quickdraw.TUNING}
    known |= {"lists": lists.drop(columns=["name", "version"]), "resamples": RESAMPLES}
    return known | {"results": {name: shown[name] for name in quickdraw.SPLITS if name in shown}}


def results() -> pd.DataFrame:
    """Every method on every protocol, the mean over its splits and seeds, on drawings alone.

    Returns:
        protocol, task (unknown, or negative), method, network, splits, runs (how many), then
        accuracy, auroc and oscr as text: number and 95 % interval over classes.
    """
    parts = []
    for notebook in NOTEBOOKS:
        with suppress(FileNotFoundError):  # no such run yet
            parts.append(tables.collect(notebook, "mini"))
    runs = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["protocol"])
    runs = runs[runs["protocol"].isin([*quickdraw.SPLITS])]
    if runs.empty:
        return runs
    runs = runs[runs["regime"] != "norms"].assign(benchmark=runs["protocol"])
    draws = {"unit": "class", "seed": 0, "resamples": RESAMPLES}
    numbers = evidence(runs, "drawings", "cross", **draws)
    numbers = numbers.only(~numbers.keys["printed"].str.contains(","))
    means = across.averaged(numbers, *BY)
    splits = numbers.keys.groupby([*BY], sort=False)["split"].agg(lambda x: ", ".join(x.unique()))
    table = means.keys.rename(columns={"benchmark": "protocol", "printed": "method"})
    table = table.assign(runs=means.keys["rows"], splits=splits.to_numpy())
    for measure in MEASURES:
        rows = means.table(measure)[[measure, "low", "high"]].to_numpy()
        table[measure] = [f"{value:.3f} [{low:.2f}, {high:.2f}]" for value, low, high in rows]
    table = table.assign(rank=means.points()["oscr"]).sort_values(
        ["task", "rank"], ascending=False, kind="stable"
    )
    return table[["protocol", "task", "method", "network", "splits", "runs", *MEASURES]]
