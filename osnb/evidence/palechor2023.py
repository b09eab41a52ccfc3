"""Table 2 of Palechor et al. 2023, ours and printed, and what their released code counts."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from osnb import metrics
from osnb.evidence import tables
from osnb.evidence.across import gains, summary
from osnb.evidence.build import Evidence
from osnb.evidence.names import UNKNOWN

FPRS = (1e-3, 1e-2, 1e-1, 1.0)  # columns of Table 2
# its columns, each a measure on a task; the caption has gamma- on unknown images, and equation 7
# on negatives, which is a column more
TABLE_2 = {name: (name, UNKNOWN) for name in ("epoch", "gamma_plus", "gamma_minus")}
TABLE_2 |= {"gamma_minus_negatives": ("gamma_minus", "negative")}
TABLE_2 |= {f"ccr_at_{fpr:g}": (f"ccr_at_{fpr:g}", UNKNOWN) for fpr in FPRS}
# beside it: accuracy, which is the CCR at FPR 1, and what it has no column for
BESIDE = {name: (name, UNKNOWN) for name in ("accuracy", "auroc", "gamma")}
BESIDE |= {f"{name}_negatives": (name, "negative") for name in ("auroc", "gamma")}
VALIDATION = "validation"  # a task: the negatives that are watched during training, Figure 3
CCR = {"ccr_at_1e-3": "ccr_at_0.001", "ccr_at_1e-2": "ccr_at_0.01", "ccr_at_1e-1": "ccr_at_0.1"}
# what else than Table 2a shows a number of it: artefact, method, number
SHOWN = {"table_2a": ("entropic", "ccr_at_0.1"), "figure_2": ("entropic", "ccr_at_0.01")}
SHOWN |= {"figure_4": ("softmax", "gamma_plus"), "figure_5": ("softmax", "ccr_at_1")}
SHOWN |= {"figure_6": ("softmax", "ccr_at_0.1")}


def released(stacked: pd.DataFrame) -> pd.DataFrame:
    """CCR as the released code fills Table 2: BG's background column kept, nearest FPR.

    Args:
        stacked: scores tables of all runs, with columns run, benchmark and method.

    Returns:
        One row per run: run, benchmark, method, and ccr_at_<FPR>_released, NaN for a dash.
    """
    rows = []
    for run, scores in stacked.groupby("run"):
        known, unknown = (scores[scores["role"] == role] for role in ("known", "unknown"))
        target, largest, other = (
            part.get(f"{name}_with_background", part[name]).fillna(part[name]).astype(np.float32)
            for part, name in ((known, "target"), (known, "max_softmax"), (unknown, "max_softmax"))
        )  # in float32 as theirs, so that scores near 1 tie as theirs do
        correct = (known["pred"] == known["label"]).to_numpy() & (target == largest).to_numpy()
        sides = target, correct, other
        ccr = {f: metrics.ccr_at_fpr(*sides, fpr=f, convention="palechor") for f in FPRS}
        row = {"run": run} | {key: scores[key].iloc[0] for key in ("benchmark", "method")}
        rows.append(row | {f"ccr_at_{fpr:g}_released": x for fpr, x in ccr.items()})
    return pd.DataFrame(rows)


def table_2(
    numbers: Evidence, epochs: pd.Series, unknown: Mapping[str, int], *, over: str
) -> pd.DataFrame:
    """Table 2, ours: long, one number per row.

    Args:
        numbers: of the tasks negative and unknown; several seeds are averaged.
        epochs: the epoch that each run was scored at, by run.
        unknown: how many unknown test images a benchmark has, by its name.
        over: the unit that the evidence was drawn from.

    Returns:
        As `summary`, benchmark, method, and number (a key of `TABLE_2`), over. An epoch is not
        resampled; a CCR at an FPR of less than one image is a dash, NaN.
    """
    epoch = numbers.keys["run"].map(epochs).to_numpy(float)[:, None]
    values = numbers.values | {"epoch": epoch.repeat(1 + numbers.resamples, axis=1)}
    rows = _summarised(Evidence(numbers.keys, values), TABLE_2).assign(over=over)
    rows.loc[rows["number"] == "epoch", ["low", "high"]] = np.nan
    fpr = rows["number"].map({f"ccr_at_{fpr:g}": fpr for fpr in FPRS})
    dash = fpr * rows["benchmark"].map(unknown) < 1
    rows.loc[dash, ["value", "low", "high", "sd_seeds"]] = np.nan
    return rows


def beside_table_2(numbers: Evidence, *, over: str) -> pd.DataFrame:
    """Accuracy, AUROC and gamma, in the form of `table_2`.

        gamma = (gamma_plus + gamma_minus) / 2

    Args:
        numbers: as there.
        over: as there.

    Returns:
        The same columns, number first and sorted: a key of `BESIDE`, whose name ends in negatives
        where these are in the place of the unknown.
    """
    gamma = (numbers.values["gamma_plus"] + numbers.values["gamma_minus"]) / 2
    values = numbers.values | {"gamma": gamma}
    rows = _summarised(Evidence(numbers.keys, values), BESIDE).assign(over=over)
    keys = ["number", "benchmark", "method"]
    rest = ["value", "low", "high", "over", "sd_seeds", "seeds", "run"]
    return rows.sort_values(keys, ignore_index=True)[keys + rest]


def _summarised(numbers: Evidence, columns: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    """`summary` of each benchmark and method: the measures on tasks that are named in columns."""
    rows = summary(numbers, "benchmark", "method", "task")
    names = {pair: name for name, pair in columns.items()}
    pairs = zip(rows["metric"], rows["task"], strict=True)
    rows = rows.assign(number=[names.get(pair) for pair in pairs]).dropna(subset="number")
    return rows.drop(columns=["task", "metric"])


def printed_table_2(selection: str) -> pd.DataFrame:
    """Table 2a (last) or 2b (best) in the form of `table_2`."""
    printed = tables.published("palechor2023", "table2")
    printed = printed[printed["selection"] == selection].drop(columns="selection")
    names = tables.published("palechor2023", "rows").set_index("printed")["method"]
    printed["method"] = printed.pop("loss").map(names)
    printed["benchmark"] = "p" + printed.pop("protocol").astype(str)
    return printed.rename(columns=CCR).melt(["benchmark", "method"], var_name="number")


def headlines(both: Mapping[str, pd.DataFrame], history: pd.DataFrame) -> dict[str, list]:
    """What Tables 2a and 2b and the figures compare, P1 to P3, for `here.save(..., headline=)`.

    Args:
        both: of last and best the Table 2 that `tables.compare` gave.
        history: of all runs, with columns run, benchmark, method and gamma_minus.
    """
    last = []
    for artefact, (method, number) in SHOWN.items():
        rows = both["last"].query("method == @method and number == @number")
        rows = rows.sort_values("benchmark")
        what = f"{method}: {number}, last epoch"
        last += tables.headline(what, rows["paper"], rows["ours"], of=artefact)
    ends = history[history["method"] == "entropic"].groupby(["benchmark", "run"])["gamma_minus"]
    what = "entropic: gamma_minus on validation negatives, last epoch"
    means = ends.last().groupby("benchmark").mean().reindex(["p1", "p2", "p3"])
    last += tables.headline(what, np.nan, means, of="figure_3")
    rows = both["best"].query("method == 'entropic' and number == 'ccr_at_0.1'")
    best = tables.headline("entropic: ccr_at_0.1, best epoch", rows["paper"], rows["ours"])
    return {"table_2a": last, "table_2b": best}


def differences(numbers: Evidence, *measures: str, over: str) -> pd.DataFrame:
    """Every method less softmax on unknown samples, in each protocol: what a loss gains.

    Args:
        numbers: several seeds are averaged; a protocol without softmax gives no row.
        measures: names of some.
        over: the unit that the evidence was drawn from.

    Returns:
        As `gains`, and measure and over.
    """
    unknown = numbers.only(numbers.fits(task="unknown"))
    by = {"key": "method", "of": "softmax"}
    parts = [gains(unknown, m, "benchmark", **by).assign(measure=m, over=over) for m in measures]
    columns = ["benchmark", "method", "measure", "number", "low", "high", "over", "p", "run"]
    return pd.concat(parts).sort_values(columns[:2], kind="stable", ignore_index=True)[columns]
