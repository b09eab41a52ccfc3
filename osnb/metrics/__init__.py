"""Metrics of open-set recognition: functions over whole columns, known before unknown.

A score is any real number, higher meaning more known; results depend on the order of the
scores alone. One exact rule is the default everywhere: samples that share a score are
accepted together, so nothing depends on the order of the rows. Where a paper's own code
does otherwise, ``convention=`` names whose rule to follow. Rates are in [0, 1].
"""

from osnb.metrics.bootstrap import (
    Interval,
    bootstrap_augrc,
    bootstrap_aurc,
    bootstrap_confidence,
    bootstrap_oscr,
    bootstrap_summary,
    interval,
    p_value,
)
from osnb.metrics.coverage import (
    augrc,
    aurc,
    aurc_parts,
    coverage_at_risk,
    e_aurc,
    risk_coverage,
)
from osnb.metrics.detection import auroc, average_precision, fpr_at_tpr
from osnb.metrics.openset import (
    accuracy,
    ccr_at_fpr,
    confidence,
    openness,
    oscr,
    oscr_area,
)
from osnb.metrics.overview import summary
from osnb.metrics.weights import balanced_weights, bootstrap_weights, role_weights

__all__ = [
    "Interval",
    "accuracy",
    "augrc",
    "aurc",
    "aurc_parts",
    "auroc",
    "average_precision",
    "balanced_weights",
    "bootstrap_augrc",
    "bootstrap_aurc",
    "bootstrap_confidence",
    "bootstrap_oscr",
    "bootstrap_summary",
    "bootstrap_weights",
    "ccr_at_fpr",
    "confidence",
    "coverage_at_risk",
    "e_aurc",
    "fpr_at_tpr",
    "interval",
    "openness",
    "oscr",
    "oscr_area",
    "p_value",
    "risk_coverage",
    "role_weights",
    "summary",
]
