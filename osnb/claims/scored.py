"""Evidence from the scores tables of 12_palechor_train, and Table 2 of Palechor et al. 2023."""

import numpy as np
import pandas as pd

from osnb import metrics, tables
from osnb.claims.draws import drawn_weights
from osnb.claims.evidence import Evidence

FPRS = (1e-3, 1e-2, 1e-1, 1.0)  # columns of Table 2
RUN = ["protocol", "loss", "seed"]
ROLES = ("known", "negative", "unknown")
LOSSES = {"S": "softmax", "BG": "background", "EOS": "entropic"}  # as Table 2 abbreviates them
TABLE_2 = ["epoch", "gamma_plus", "gamma_minus_negative", *(f"ccr_at_{fpr:g}" for fpr in FPRS)]


def palechor_evidence(
    stacked: pd.DataFrame,
    *,
    rule: str,
    selection: str = "last",
    unit: str = "class",
    seed: int = 0,
    resamples: int = 1000,
) -> Evidence:
    """The numbers of Table 2 of Palechor et al. 2023 and more, for each run, with resamples.

    Resamples are drawn for each protocol and role apart and are shared by all losses, seeds and
    selections of the protocol, so that differences between them are paired.

    Args:
        stacked: scores tables of all runs, with columns run, protocol, loss and seed.
        rule: column of the score that curves and AUROC are made from.
        selection: epoch that the tables were scored at: last, or best by gamma.
        unit: column that is drawn from: "class" for an interval over other classes, "sample" for
            one over other images of the same classes.
        seed: of the draws.
        resamples: R.

    Returns:
        Keys run, selection, protocol, loss and seed. Measures: accuracy, gamma_plus; of both
        roles gamma_minus_negative and gamma_minus_unknown, auroc_*, fpr95_*, oscr_area_*;
        ccr_at_<FPR> on unknown samples and ccr_at_<FPR>_negative.

    Raises:
        ValueError: runs of a protocol have different test samples.
    """
    keys, values = [], []
    for protocol, part in stacked.groupby("protocol"):
        runs = dict(list(part.sort_values("sample", kind="stable").groupby([*RUN, "run"])))
        _same_samples(protocol, list(runs.values()))
        first = next(iter(runs.values()))
        weights = {role: _weights(first, unit, role, seed, resamples) for role in ROLES}
        for (_, loss, number, run), scores in runs.items():
            keys.append([run, selection, protocol, loss, str(number)])
            values.append(_measured(scores, rule, weights))
    frame = pd.DataFrame(keys, columns=["run", "selection", *RUN])
    return Evidence(frame, {name: np.array([each[name] for each in values]) for name in values[0]})


def _same_samples(protocol: str, runs: list[pd.DataFrame]) -> None:
    columns = ["sample", "role", "class", "label"]
    first = runs[0][columns].reset_index(drop=True)
    for run in runs[1:]:
        if not run[columns].reset_index(drop=True).equals(first):
            names = " and ".join(each["run"].iloc[0] for each in (runs[0], run))
            raise ValueError(
                f"runs of {protocol} are compared sample by sample, so they need the same test "
                f"samples; {names} have different ones"
            )


def _weights(run: pd.DataFrame, unit: str, role: str, seed: int, resamples: int) -> np.ndarray:
    """(1 + R, N) copies of each sample of a role, in the order of the rows."""
    name = f"{run['protocol'].iloc[0]} {role}"
    return drawn_weights(run[run["role"] == role], name, unit, seed, resamples)


def _measured(run: pd.DataFrame, rule: str, weights: dict) -> dict[str, np.ndarray]:
    """(1 + R,) of each measure of a run."""
    parts = {role: run[run["role"] == role] for role in ROLES}
    known = parts["known"]
    correct = (known["pred"] == known["label"]).to_numpy()
    offset = 0.0 if run["loss"].iloc[0] == "background" else 1 / (known["label"].max() + 1)
    found = {}
    for role, suffix in (("negative", "_negative"), ("unknown", "")):
        drawn, other = (weights["known"], weights[role]), parts[role]
        target, largest = known["target"], other["max_softmax"]
        gamma = metrics.bootstrap_confidence(target, largest, offset=offset, weights=drawn)
        curve = metrics.bootstrap_summary(known[rule], correct, other[rule], weights=drawn)
        found |= {"accuracy": curve["accuracy"], "gamma_plus": gamma["gamma_plus"]}
        found[f"gamma_minus_{role}"] = gamma["gamma_minus"]
        found |= {f"{name}_{role}": curve[name] for name in ("auroc", "fpr95", "oscr_area")}
        found |= {f"ccr_at_{fpr:g}{suffix}": curve[f"ccr_at_fpr_{fpr:g}"] for fpr in FPRS}
    return found


def measures(stacked: pd.DataFrame, *, rule: str) -> pd.DataFrame:
    """The numbers of `palechor_evidence` without resamples, for each run.

    Args:
        stacked: scores tables of all runs, with columns run, protocol, loss and seed.
        rule: column of the score that curves and AUROC are made from.

    Returns:
        One row per run: run, protocol, loss, seed; the measures, where gamma_minus_negative is
        as the table's caption says and gamma_minus_unknown as the released code computes; then
        ccr_at_<FPR>_released, the authors' own convention, NaN for a dash.
    """
    points = palechor_evidence(stacked, rule=rule, resamples=0).points().drop(columns="selection")
    rows = [{"run": name} | _released(run) for name, run in stacked.groupby("run")]
    points["seed"] = points["seed"].astype(int)
    return points.merge(pd.DataFrame(rows), on="run")


def _released(run: pd.DataFrame) -> dict[str, float]:
    """CCR as the released code fills Table 2: BG's background column kept, nearest FPR."""
    known, unknown = (run[run["role"] == role] for role in ("known", "unknown"))
    target, largest, other = (
        part.get(f"{name}_with_background", part[name]).fillna(part[name]).astype(np.float32)
        for part, name in ((known, "target"), (known, "max_softmax"), (unknown, "max_softmax"))
    )  # in float32 as theirs, so that scores near 1 tie as theirs do
    correct = (known["pred"] == known["label"]).to_numpy() & (target == largest).to_numpy()
    return {
        f"ccr_at_{fpr:g}_released": metrics.ccr_at_fpr(
            target, correct, other, fpr=fpr, convention="palechor"
        )
        for fpr in FPRS
    }


def table_2(evidence: Evidence, epochs: pd.Series, *, over: str) -> pd.DataFrame:
    """Table 2 of Palechor et al. 2023, ours: long, one number per row.

    Args:
        evidence: from `palechor_evidence`; several seeds are averaged.
        epochs: the epoch that each run was scored at, by run.
        over: the unit that the evidence was drawn from.

    Returns:
        protocol, loss, number (a column's name in the paper), value (mean over the seeds), low
        and high (where 95 % of the resamples of that mean lie), over, sd_seeds (NaN for one
        seed), seeds, run. An epoch is not resampled.
    """
    columns = {name.removesuffix("_negative"): name for name in TABLE_2[1:]}
    rows = []
    for (protocol, loss), runs in evidence.keys.groupby(["protocol", "loss"]):
        key = {"protocol": protocol, "loss": loss}
        found = {name: evidence.rows(measure, **key) for name, measure in columns.items()}
        found = {"epoch": runs["run"].map(epochs).to_numpy(float)[:, None]} | found
        shared = {"over": over, "seeds": len(runs), "run": ", ".join(runs["run"])}
        rows += [key | {"number": name} | _of_seeds(v) | shared for name, v in found.items()]
    return pd.DataFrame(rows)


def _of_seeds(values: np.ndarray) -> dict[str, float]:
    """Mean, interval of the mean and standard deviation of (seeds, 1 + R) values."""
    mean = values.mean(axis=0)
    low, high = metrics.interval(mean)[1:] if len(mean) > 1 else (np.nan, np.nan)
    spread = values[:, 0].std(ddof=1) if len(values) > 1 else np.nan
    return {"value": mean[0], "low": low, "high": high, "sd_seeds": spread}


def differences(evidence: Evidence, *names: str, of: str = "softmax", over: str) -> pd.DataFrame:
    """Every loss less one of them, in each protocol: what a loss of one's own gains.

    Args:
        evidence: from `palechor_evidence`; several seeds are averaged.
        names: measures.
        of: the loss that is subtracted; a protocol without it gives no row.
        over: the unit that the evidence was drawn from.

    Returns:
        protocol, loss, measure, difference, low and high (95 % of its paired resamples), over, p
        (two-sided), run.

    Raises:
        Missing: there is no such measure.
    """
    rows = []
    runs = evidence.keys.groupby(["protocol", "loss"])["run"].agg(", ".join)
    for (protocol, loss), run in runs.items():
        if loss == of or (protocol, of) not in runs:
            continue
        for name in names:
            mine, base = (evidence(name, protocol=protocol, loss=x) for x in (loss, of))
            value, low, high = metrics.interval(mine - base)
            key = {"protocol": protocol, "loss": loss, "measure": name, "difference": value}
            key |= {"low": low, "high": high, "over": over, "p": metrics.p_value(mine - base)}
            rows.append(key | {"run": f"{run} less {runs[protocol, of]}"})
    return pd.DataFrame(rows)


def printed_table_2(selection: str) -> pd.DataFrame:
    """Table 2a (last) or 2b (best) of Palechor et al. 2023 in the form of `table_2`."""
    printed = tables.published("palechor2023", "table2")
    printed = printed[printed["selection"] == selection].drop(columns="selection")
    printed = printed.rename(columns=lambda c: c.replace("1e-3", "0.001").replace("1e-2", "0.01"))
    printed = printed.rename(columns={"ccr_at_1e-1": "ccr_at_0.1"}).replace({"loss": LOSSES})
    printed["protocol"] = "p" + printed["protocol"].astype(str)
    return printed.melt(["protocol", "loss"], var_name="number")
