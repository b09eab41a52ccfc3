"""Figures: ``f(frame, ...) -> Figure``, drawn and returned, never saved or shown.

A figure with a long story is a pair: `*_points` computes the numbers, a frame to be saved as
csv; the drawing takes that frame, so that file and figure cannot differ. Importing this room
changes no setting of matplotlib, and no figure belongs to pyplot, so none has to be closed.
"""

from osnb.plots.benchmark import gathered, resize_sheet, roughness, task_sketch
from osnb.plots.correlation import accuracy_auroc, correlation_points
from osnb.plots.costs import cost_points, cost_table, coverage_points, least_cost
from osnb.plots.cross import method_tasks
from osnb.plots.curves import confidence_history, oscr_by_loss, oscr_curves, oscr_points
from osnb.plots.described import Figure, describe
from osnb.plots.gradients import LOSS_NAMES, gradient_points, loss_gradients
from osnb.plots.histograms import (
    histogram_points,
    operating_counts,
    operating_point,
    score_histograms,
)
from osnb.plots.history import training
from osnb.plots.judged import judged
from osnb.plots.lessons import (
    contact_sheet,
    distance_boxes,
    distance_summary,
    negative_gradient,
    oscr,
)
from osnb.plots.methods import contrast_points, contrasts, method_gains, method_points
from osnb.plots.norms import feature_norms, feature_plane
from osnb.plots.ood import accuracy_and_near, rules_by_set
from osnb.plots.roles import role_tree
from osnb.plots.semantic import (
    class_likeness,
    class_numbers,
    class_points,
    number_points,
    split_gains,
)
from osnb.plots.splits import bin_histograms, bin_points, class_sheet, shared_levels
from osnb.plots.tasks import (
    density_points,
    mean_softmax,
    mean_softmax_points,
    softmax_densities,
    task_points,
)
from osnb.plots.tree import class_tree, reduced_tree
from osnb.plots.unified import accepted_at_risk, improvements, risk_curves, stacked_errors
from osnb.plots.unified_points import improvement_points, risk_points, risk_table

__all__ = [
    "LOSS_NAMES",
    "Figure",
    "accepted_at_risk",
    "accuracy_and_near",
    "accuracy_auroc",
    "bin_histograms",
    "bin_points",
    "class_likeness",
    "class_numbers",
    "class_points",
    "class_sheet",
    "class_tree",
    "confidence_history",
    "contact_sheet",
    "contrast_points",
    "contrasts",
    "correlation_points",
    "cost_points",
    "cost_table",
    "coverage_points",
    "density_points",
    "describe",
    "distance_boxes",
    "distance_summary",
    "feature_norms",
    "feature_plane",
    "gathered",
    "gradient_points",
    "histogram_points",
    "improvement_points",
    "improvements",
    "judged",
    "least_cost",
    "loss_gradients",
    "mean_softmax",
    "mean_softmax_points",
    "method_gains",
    "method_points",
    "method_tasks",
    "negative_gradient",
    "number_points",
    "operating_counts",
    "operating_point",
    "oscr",
    "oscr_by_loss",
    "oscr_curves",
    "oscr_points",
    "reduced_tree",
    "resize_sheet",
    "risk_curves",
    "risk_points",
    "risk_table",
    "role_tree",
    "roughness",
    "rules_by_set",
    "score_histograms",
    "shared_levels",
    "softmax_densities",
    "split_gains",
    "stacked_errors",
    "task_points",
    "task_sketch",
    "training",
]
