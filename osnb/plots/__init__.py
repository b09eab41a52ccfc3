"""Figures: ``f(frame, ...) -> Figure``, drawn and returned, never saved or shown.

All are short compositions of the drawings in `draw`. A figure with a long story is a pair:
`*_points` computes the numbers, a frame to be saved as csv; the drawing takes that frame, so that
file and figure cannot differ. Importing this room changes no setting of matplotlib, and no figure
belongs to pyplot, so none has to be closed.
"""

from osnb.plots.correlation import accuracy_and_near, accuracy_auroc, correlation_points
from osnb.plots.curves import (
    confidence_history,
    oscr,
    oscr_by_loss,
    oscr_curves,
    oscr_points,
    training,
)
from osnb.plots.features import (
    LOSS_NAMES,
    distance_boxes,
    distance_summary,
    feature_norms,
    feature_plane,
    gradient_points,
    loss_gradients,
    negative_gradient,
)
from osnb.plots.methods import contrast_points, contrasts, method_gains, method_points, rules_by_set
from osnb.plots.pictures import class_sheet, contact_sheet, resize_sheet, roughness, task_sketch
from osnb.plots.risk import (
    accepted_at_risk,
    cost_points,
    cost_table,
    coverage_points,
    improvement_points,
    improvements,
    least_cost,
    risk_curves,
    risk_points,
    risk_table,
    stacked_errors,
)
from osnb.plots.semantic import (
    bin_histograms,
    bin_points,
    class_likeness,
    class_numbers,
    class_points,
    number_points,
    shared_levels,
    split_gains,
)
from osnb.plots.style import Figure, describe
from osnb.plots.tasks import (
    density_points,
    mean_softmax,
    mean_softmax_points,
    method_tasks,
    softmax_densities,
    task_points,
)
from osnb.plots.threshold import (
    histogram_points,
    judged,
    operating_counts,
    operating_point,
    score_histograms,
)
from osnb.plots.tree import class_tree, counted_tree, gathered, reduced_tree, role_tree
