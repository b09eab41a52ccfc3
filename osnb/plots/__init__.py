"""Figures: ``f(frame, ...) -> Figure``, drawn and returned, never saved or shown.

All are short compositions of the drawings in `draw`, of frames that `osnb.evidence` computes, so
that a file and its figure cannot differ. Importing this room changes no setting of matplotlib, and
no figure belongs to pyplot, so none has to be closed.
"""

from osnb.plots.bars import (
    LOSS_NAMES,
    accepted_at_risk,
    accuracy_auroc,
    bin_histograms,
    class_likeness,
    contrasts,
    distance_boxes,
    distance_summary,
    gradient_points,
    improvements,
    loss_gradients,
    method_gains,
    rules_by_set,
    score_histograms,
    shared_levels,
    stacked_errors,
)
from osnb.plots.curves import (
    class_numbers,
    confidence_history,
    feature_norms,
    feature_plane,
    least_cost,
    negative_gradient,
    oscr,
    oscr_curves,
    risk_curves,
    run_curves,
    softmax_densities,
    training,
)
from osnb.plots.pictures import (
    class_sheet,
    confidence_scale,
    contact_sheet,
    mean_softmax,
    method_tasks,
    operating_point,
    roughness,
    timeline,
)
from osnb.plots.style import Figure, describe
from osnb.plots.tree import (
    class_tree,
    counted_tree,
    gathered,
    marked_tree,
    marked_trees,
    reduced_tree,
    role_tree,
)
