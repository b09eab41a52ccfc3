"""What the papers found, as predicates over scores tables: a number, and yes or no."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from osnb import metrics, tables

FPRS = (1e-3, 1e-2, 1e-1, 1.0)  # columns of Table 2 of Palechor et al. 2023
RUN = ["protocol", "loss", "seed"]
LOSSES = {"S": "softmax", "BG": "background", "EOS": "entropic"}  # as Table 2 abbreviates them
TABLE_2 = ["epoch", "gamma_plus", "gamma_minus_negative", *(f"ccr_at_{fpr:g}" for fpr in FPRS)]


def measures(stacked: pd.DataFrame, *, rule: str) -> pd.DataFrame:
    """The numbers of Table 2 of Palechor et al. 2023, and AUROC, for each run.

    Args:
        stacked: scores tables of all runs, with columns run, protocol, loss and seed.
        rule: column of the score that curves and AUROC are made from.

    Returns:
        One row per run: run, protocol, loss, seed, accuracy, gamma_plus, gamma_minus_negative
        (as the table's caption says), gamma_minus_unknown (as the released code computes),
        auroc_negative, auroc_unknown, fpr95_unknown, oscr_area_unknown, then ccr_at_<FPR> on
        unknown samples and ccr_at_<FPR>_released, the authors' own convention, NaN for a dash.
    """
    rows = [
        dict(zip(["run", *RUN], key, strict=True)) | _measured(run, rule)
        for key, run in stacked.groupby(["run", *RUN])
    ]
    return pd.DataFrame(rows).sort_values([*RUN]).reset_index(drop=True)


def _measured(run: pd.DataFrame, rule: str) -> dict[str, float]:
    known, negative, unknown = (run[run["role"] == r] for r in ("known", "negative", "unknown"))
    correct = (known["pred"] == known["label"]).to_numpy()
    offset = 0.0 if run["loss"].iloc[0] == "background" else 1 / (known["label"].max() + 1)
    row = {"accuracy": metrics.accuracy(correct)}
    for role, part in (("negative", negative), ("unknown", unknown)):
        gamma = metrics.confidence(known["target"], part["max_softmax"], offset=offset)
        row["gamma_plus"], row[f"gamma_minus_{role}"] = gamma["gamma_plus"], gamma["gamma_minus"]
        row[f"auroc_{role}"] = metrics.auroc(known[rule], part[rule])
    row["fpr95_unknown"] = metrics.fpr_at_tpr(known[rule], unknown[rule], tpr=0.95)
    row["oscr_area_unknown"] = metrics.oscr_area(known[rule], correct, unknown[rule])
    for fpr in FPRS:
        name = f"ccr_at_{fpr:g}"
        row[name] = metrics.ccr_at_fpr(known[rule], correct, unknown[rule], fpr=fpr)
        row[f"{name}_released"] = _released(known, unknown, fpr)
    return row


def _released(known: pd.DataFrame, unknown: pd.DataFrame, fpr: float) -> float:
    """CCR as the released code fills Table 2: BG's background column kept, nearest FPR."""
    target, largest, other = (
        part.get(f"{name}_with_background", part[name]).fillna(part[name]).astype(np.float32)
        for part, name in ((known, "target"), (known, "max_softmax"), (unknown, "max_softmax"))
    )  # in float32 as theirs, so that scores near 1 tie as theirs do
    correct = (known["pred"] == known["label"]).to_numpy() & (target == largest).to_numpy()
    return metrics.ccr_at_fpr(target, correct, other, fpr=fpr, convention="palechor")


def table_2(found: pd.DataFrame, epochs: pd.Series) -> pd.DataFrame:
    """Table 2 of Palechor et al. 2023, ours: long, one number per row.

    Args:
        found: from `measures`; several seeds are averaged.
        epochs: the epoch that each run was scored at, by run.

    Returns:
        protocol, loss, number (a column's name in the paper), value, run.
    """
    columns = {name.removesuffix("_negative"): name for name in TABLE_2}
    wide = found.assign(epoch=found["run"].map(epochs))
    groups = wide.groupby(["protocol", "loss"])
    mean = groups[list(columns.values())].mean().rename(columns={v: k for k, v in columns.items()})
    mean["run"] = groups["run"].agg(", ".join)
    return mean.reset_index().melt(["protocol", "loss", "run"], var_name="number")


def printed_table_2(selection: str) -> pd.DataFrame:
    """Table 2a (last) or 2b (best) of Palechor et al. 2023 in the form of `table_2`."""
    printed = tables.published("palechor2023", "table2")
    printed = printed[printed["selection"] == selection].drop(columns="selection")
    printed = printed.rename(columns=lambda c: c.replace("1e-3", "0.001").replace("1e-2", "0.01"))
    printed = printed.rename(columns={"ccr_at_1e-1": "ccr_at_0.1"}).replace({"loss": LOSSES})
    printed["protocol"] = "p" + printed["protocol"].astype(str)
    return printed.melt(["protocol", "loss"], var_name="number")


def palechor(found: pd.DataFrame) -> pd.DataFrame:
    """Findings of Palechor et al. 2023 that scores tables can decide.

    Args:
        found: from `measures`; several seeds of a run are averaged first.

    Returns:
        One row per finding and protocol: finding, protocol, what (the number is), number,
        holds (yes or no, or undecided where runs are missing).
    """
    mean = found.groupby(["protocol", "loss"]).mean(numeric_only=True)
    rows = [
        {"finding": finding, "protocol": protocol, "what": what} | _decided(mean, number, protocol)
        for finding, what, number, scope in PALECHOR
        for protocol in scope(sorted(found["protocol"].unique()))
    ]
    return pd.DataFrame(rows)


def _decided(mean: pd.DataFrame, number: Callable, protocol: str) -> dict:
    try:
        value = float(number(mean, protocol))
    except KeyError:
        return {"number": np.nan, "holds": "undecided"}
    return {"number": value, "holds": "yes" if value > 0 else "no"}


def _gain(mean: pd.DataFrame, protocol: str, loss: str, column: str) -> float:
    return mean.loc[(protocol, loss), column] - mean.loc[(protocol, "softmax"), column]


def _more_on_negatives(loss: str) -> Callable:
    return lambda mean, protocol: (
        _gain(mean, protocol, loss, "auroc_negative") - _gain(mean, protocol, loss, "auroc_unknown")
    )


def _closeness(mean: pd.DataFrame, protocol: str) -> float:
    accuracy = mean.loc[protocol].loc[["softmax", "background", "entropic"], "accuracy"]
    return CLOSE - (accuracy.max() - accuracy.min())


def _easier(mean: pd.DataFrame, _: str) -> float:
    return (
        mean.loc[("p1", "entropic"), "auroc_unknown"]
        - mean.loc[("p3", "entropic"), "auroc_unknown"]
    )


def _each(protocols: list[str]) -> list[str]:
    return protocols


CLOSE = 0.07  # as close as the paper's own: in Table 2a they differ by up to .067, in P2

# finding, what the number is (the finding holds if it is above 0), the number, the protocols
PALECHOR = [
    (
        "EOS raises gamma- over S on negatives",
        "gamma- of EOS minus S",
        lambda mean, p: _gain(mean, p, "entropic", "gamma_minus_negative"),
        _each,
    ),
    (
        "EOS raises gamma- over S on unknowns",
        "gamma- of EOS minus S",
        lambda mean, p: _gain(mean, p, "entropic", "gamma_minus_unknown"),
        _each,
    ),
    (
        "BG gains more on negatives than on unknowns",
        "gain in AUROC, negatives minus unknowns",
        _more_on_negatives("background"),
        _each,
    ),
    (
        "EOS gains more on negatives than on unknowns",
        "gain in AUROC, negatives minus unknowns",
        _more_on_negatives("entropic"),
        _each,
    ),
    (
        "P1's unknowns are easier to reject than P3's",
        "AUROC of EOS on unknowns, P1 minus P3",
        _easier,
        lambda _: ["p1, p3"],
    ),
    (
        "closed-set accuracies of the losses stay close",
        f"{CLOSE} minus largest difference",
        _closeness,
        _each,
    ),
]
