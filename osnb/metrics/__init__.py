"""Metrics of open-set recognition: functions over whole columns, known before unknown.

A score is any real number, higher meaning more known; results depend on the order of the
scores alone. One exact rule is the default everywhere: samples that share a score are
accepted together, so nothing depends on the order of the rows. Where a paper's own code
does otherwise, ``convention=`` names whose rule to follow. Rates are in [0, 1].
"""

from osnb.metrics.bootstrap import (
    MEASURES,
    Interval,
    bootstrap_augrc,
    bootstrap_aurc,
    bootstrap_confidence,
    bootstrap_oscr,
    bootstrap_summary,
    bootstrap_weights,
    interval,
    p_value,
    role_weights,
    summary,
)
from osnb.metrics.measures import (
    accuracy,
    augrc,
    aurc,
    aurc_parts,
    auroc,
    average_precision,
    brier,
    calibration_error,
    ccr_at_fpr,
    confidence,
    coverage_at_risk,
    e_aurc,
    fpr_at_tpr,
    openness,
    oscr,
    oscr_area,
    risk_coverage,
)
from osnb.metrics.thresholds import (
    exact_interval,
    fpr_threshold,
    mixture,
    risk_threshold,
    tpr_threshold,
)
