"""Table 2 of Palechor et al. 2023, ours and printed, and what their released code counts."""

import numpy as np
import pandas as pd

from osnb import metrics
from osnb.evidence import tables
from osnb.evidence.numbers import Evidence

FPRS = (1e-3, 1e-2, 1e-1, 1.0)  # columns of Table 2
TABLE_2 = {"gamma_plus": "negative", "gamma_minus": "negative"}  # measures, and their task
TABLE_2 |= {f"ccr_at_{fpr:g}": "unknown" for fpr in FPRS}
CCR = {"ccr_at_1e-3": "ccr_at_0.001", "ccr_at_1e-2": "ccr_at_0.01", "ccr_at_1e-1": "ccr_at_0.1"}


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


def table_2(evidence: Evidence, epochs: pd.Series, *, over: str) -> pd.DataFrame:
    """Table 2, ours: long, one number per row.

    Args:
        evidence: of the tasks negative and unknown; several seeds are averaged.
        epochs: the epoch that each run was scored at, by run.
        over: the unit that the evidence was drawn from.

    Returns:
        benchmark, method, number (a column's name in the paper), value (mean over the seeds), low
        and high (where 95 % of the resamples of that mean lie), over, sd_seeds (NaN for one
        seed), seeds, run. An epoch is not resampled.
    """
    rows = []
    keys = evidence.keys.drop_duplicates("run")
    for (benchmark, method), runs in keys.groupby(["benchmark", "method"]):
        key = {"benchmark": benchmark, "method": method}
        numbers = {m: evidence.rows(m, task=task, **key) for m, task in TABLE_2.items()}
        numbers = {"epoch": runs["run"].map(epochs).to_numpy(float)[:, None]} | numbers
        shared = {"over": over, "seeds": len(runs), "run": ", ".join(runs["run"])}
        rows += [key | {"number": name} | _of_seeds(v) | shared for name, v in numbers.items()]
    return pd.DataFrame(rows)


def _of_seeds(values: np.ndarray) -> dict[str, float]:
    """Mean, interval of the mean and standard deviation of (seeds, 1 + R) values."""
    mean = values.mean(axis=0)
    low, high = metrics.interval(mean)[1:] if len(mean) > 1 else (np.nan, np.nan)
    spread = values[:, 0].std(ddof=1) if len(values) > 1 else np.nan
    return {"value": mean[0], "low": low, "high": high, "sd_seeds": spread}


def printed_table_2(selection: str) -> pd.DataFrame:
    """Table 2a (last) or 2b (best) in the form of `table_2`."""
    printed = tables.published("palechor2023", "table2")
    printed = printed[printed["selection"] == selection].drop(columns="selection")
    names = tables.published("palechor2023", "rows").set_index("printed")["method"]
    printed["method"] = printed.pop("loss").map(names)
    printed["benchmark"] = "p" + printed.pop("protocol").astype(str)
    return printed.rename(columns=CCR).melt(["benchmark", "method"], var_name="number")


def differences(evidence: Evidence, *names: str, of: str = "softmax", over: str) -> pd.DataFrame:
    """Every method less one of them, in each protocol: what a loss of one's own gains.

    Args:
        evidence: several seeds are averaged.
        names: measures on unknown samples.
        of: the method that is subtracted; a protocol without it gives no row.
        over: the unit that the evidence was drawn from.

    Returns:
        benchmark, method, measure, difference, low and high (95 % of its paired resamples), over,
        p (two-sided), run.

    Raises:
        Missing: there is no such measure.
    """
    rows = []
    keys = evidence.keys.drop_duplicates("run")
    runs = keys.groupby(["benchmark", "method"])["run"].agg(", ".join)
    for (benchmark, method), run in runs.items():
        if method == of or (benchmark, of) not in runs:
            continue
        for name in names:
            at = {"benchmark": benchmark, "task": "unknown"}
            gain = evidence(name, method=method, **at) - evidence(name, method=of, **at)
            value, low, high = metrics.interval(gain)
            key = {"benchmark": benchmark, "method": method, "measure": name, "difference": value}
            key |= {"low": low, "high": high, "over": over, "p": metrics.p_value(gain)}
            rows.append(key | {"run": f"{run} less {runs[benchmark, of]}"})
    return pd.DataFrame(rows)
