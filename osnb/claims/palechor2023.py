"""Findings of Palechor et al. 2023, each a number that is above 0 if the finding holds.

The first line of a predicate says what its number is; `where` is a protocol, or two with a comma.
A loss is compared with others of its protocol on unknown test samples, unless it says otherwise.
"""

import numpy as np
import pandas as pd

from osnb.claims.evidence import Evidence, Same, close, least
from osnb.claims.scored import LOSSES, TABLE_2, printed_table_2

CLOSE = 0.07  # as close as the paper's own: in Table 2a accuracies differ by up to .067, in P2
LOW_FPRS = ("ccr_at_0.001", "ccr_at_0.01", "ccr_at_0.1")


def printed() -> Evidence:
    """Both parts of Table 2 under the keys of `palechor_evidence`; gamma- as its caption says."""
    parts = [printed_table_2(each).assign(selection=each) for each in ("last", "best")]
    rows = pd.concat(parts).pivot_table(
        index=["selection", "protocol", "loss"], columns="number", values="value"
    )
    rows = rows.rename(columns={name.removesuffix("_negative"): name for name in TABLE_2})
    rows["accuracy"] = rows["ccr_at_1"]
    keys = rows.index.to_frame(index=False)
    keys.insert(0, "table", keys["selection"].map({"last": "Table 2a", "best": "Table 2b"}))
    return Evidence(keys, {name: rows[[name]].to_numpy() for name in rows})


# Confidence, equation 7


def eos_gamma_minus(evidence: Evidence, protocol: str) -> np.ndarray:
    """gamma- on negatives, EOS minus S."""
    return _gain(evidence, protocol, "entropic", "gamma_minus_negative")


def eos_gamma_minus_unknown(evidence: Evidence, protocol: str) -> np.ndarray:
    """gamma- on unknowns, EOS minus S."""
    return _gain(evidence, protocol, "entropic", "gamma_minus_unknown")


def bg_gamma_minus_between(evidence: Evidence, protocol: str) -> np.ndarray:
    """gamma- on negatives, BG minus S or EOS minus BG, the lesser."""
    gain = _gain(evidence, protocol, "background", "gamma_minus_negative")
    return least(gain, eos_gamma_minus(evidence, protocol) - gain)


def s_gamma_plus(evidence: Evidence, protocol: str) -> np.ndarray:
    """gamma+ of S minus the larger one of BG and EOS."""
    return _lead(evidence, protocol, "softmax", "gamma_plus")


def s_gamma_minus_falls(evidence: Evidence, protocol: str) -> np.ndarray:
    """gamma- of S on negatives, best epoch minus last."""
    return _best(evidence, protocol, ["softmax"], "gamma_minus_negative")


# Negatives and unknowns


def eos_negatives(evidence: Evidence, protocol: str) -> np.ndarray:
    """AUROC on negatives, EOS minus S."""
    return _gain(evidence, protocol, "entropic", "auroc_negative")


def bg_negatives(evidence: Evidence, protocol: str) -> np.ndarray:
    """AUROC on negatives, BG minus S."""
    return _gain(evidence, protocol, "background", "auroc_negative")


def eos_drop(evidence: Evidence, protocol: str) -> np.ndarray:
    """gain of EOS over S in AUROC, negatives minus unknowns."""
    gain = _gain(evidence, protocol, "entropic", "auroc_unknown")
    return eos_negatives(evidence, protocol) - gain


def bg_drop(evidence: Evidence, protocol: str) -> np.ndarray:
    """gain of BG over S in AUROC, negatives minus unknowns."""
    gain = _gain(evidence, protocol, "background", "auroc_unknown")
    return bg_negatives(evidence, protocol) - gain


# CCR on unknowns


def eos_distant(evidence: Evidence, protocol: str) -> np.ndarray:
    """CCR of EOS minus S at FPR 0.001, 0.01 and 0.1, the least."""
    return least(*(_gain(evidence, protocol, "entropic", ccr) for ccr in LOW_FPRS))


def bg_distant(evidence: Evidence, protocol: str) -> np.ndarray:
    """CCR of BG minus S at FPR 0.001, 0.01 and 0.1, the least."""
    return least(*(_gain(evidence, protocol, "background", ccr) for ccr in LOW_FPRS))


def eos_ccr_at_01(evidence: Evidence, protocol: str) -> np.ndarray:
    """CCR at FPR 0.1, EOS minus the better one of S and BG."""
    return _lead(evidence, protocol, "entropic", "ccr_at_0.1")


def eos_ccr_at_001(evidence: Evidence, protocol: str) -> np.ndarray:
    """CCR at FPR 0.01, EOS minus the better one of S and BG."""
    return _lead(evidence, protocol, "entropic", "ccr_at_0.01")


def bg_ccr_at_01(evidence: Evidence, protocol: str) -> np.ndarray:
    """CCR at FPR 0.1, S minus BG."""
    return -_gain(evidence, protocol, "background", "ccr_at_0.1")


def eos_gain_fades(evidence: Evidence, protocol: str) -> np.ndarray:
    """gain of EOS over S in CCR, at FPR 0.1 minus at FPR 1."""
    gains = (_gain(evidence, protocol, "entropic", f"ccr_at_{fpr}") for fpr in ("0.1", "1"))
    return np.subtract(*gains)


def easier(evidence: Evidence, protocols: str) -> np.ndarray:
    """share of its accuracy that EOS keeps at FPR 0.1, the first protocol minus the second."""
    kept = (
        _of(evidence, each, "entropic", "ccr_at_0.1") / _of(evidence, each, "entropic", "accuracy")
        for each in protocols.split(",")
    )
    return np.subtract(*kept)


# Closed-set accuracy, and the epoch that gamma picks


def accuracies_close(evidence: Evidence, protocol: str) -> np.ndarray:
    """0.07 minus the largest difference of the three accuracies."""
    found = [_of(evidence, protocol, loss, "accuracy") for loss in LOSSES.values()]
    return close(np.max(found, axis=0), np.min(found, axis=0), within=CLOSE)


def s_accuracy(evidence: Evidence, protocol: str) -> np.ndarray:
    """closed-set accuracy, S minus the better one of BG and EOS."""
    return _lead(evidence, protocol, "softmax", "accuracy")


def s_best_accuracy(evidence: Evidence, protocol: str) -> np.ndarray:
    """closed-set accuracy of S, last epoch minus best."""
    return -_best(evidence, protocol, ["softmax"], "accuracy")


def gamma_picks(evidence: Evidence, protocol: str) -> np.ndarray:
    """CCR at FPR 0.1, mean of the three losses, best epoch minus last."""
    return _best(evidence, protocol, [*LOSSES.values()], "ccr_at_0.1")


def _of(
    evidence: Evidence, protocol: str, loss: str, measure: str, selection: str = "last"
) -> np.ndarray:
    return evidence(measure, protocol=protocol, loss=loss, selection=selection)


def _gain(evidence: Evidence, protocol: str, loss: str, measure: str) -> np.ndarray:
    """A loss minus S."""
    return _of(evidence, protocol, loss, measure) - _of(evidence, protocol, "softmax", measure)


def _lead(evidence: Evidence, protocol: str, loss: str, measure: str) -> np.ndarray:
    """A loss minus the better one of the other two."""
    others = [_of(evidence, protocol, x, measure) for x in LOSSES.values() if x != loss]
    return _of(evidence, protocol, loss, measure) - np.max(others, axis=0)


def _best(evidence: Evidence, protocol: str, losses: list[str], measure: str) -> np.ndarray:
    """Best epoch minus the last one, mean over some losses."""
    selections = ("best", "last")
    best, last = ([_of(evidence, protocol, x, measure, s) for x in losses] for s in selections)
    if np.array_equal(best, last):
        raise Same("best epoch is last")
    return np.mean(np.subtract(best, last), axis=0)
