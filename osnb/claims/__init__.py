"""What the papers claim, as predicates: a number, above 0 if the claim holds.

The claims themselves are in osnb/published/<paper>/claims.csv. A predicate is decided on
`Evidence`, which is made from scores tables or from the paper's printed numbers; a claim about
the paper's own tables is decided on those.
"""

from osnb.catalogue import Catalogue
from osnb.claims import arithmetic, kim2021, palechor2023, vaze2022
from osnb.claims.cross import EXPOSED, command, cross_cells, cross_evidence, kendall_w, spearman
from osnb.claims.decide import SIZES, decide, palechor
from osnb.claims.evidence import Evidence, Missing
from osnb.claims.open_set import training, vaze_evidence
from osnb.claims.report import report
from osnb.claims.scored import (
    FPRS,
    differences,
    measures,
    palechor_evidence,
    printed_table_2,
    table_2,
)
from osnb.claims.unified import kim_evidence

__all__ = [
    "CLAIMS",
    "EXPOSED",
    "FPRS",
    "SIZES",
    "Evidence",
    "Missing",
    "command",
    "cross_cells",
    "cross_evidence",
    "decide",
    "differences",
    "kendall_w",
    "kim_evidence",
    "measures",
    "palechor",
    "palechor_evidence",
    "printed_table_2",
    "report",
    "spearman",
    "table_2",
    "training",
    "vaze_evidence",
]

CLAIMS = Catalogue(
    # Palechor et al. 2023
    accuracies_close=palechor2023.accuracies_close,
    best_has_more_gamma=arithmetic.best_has_more_gamma,
    bg_ccr_at_01=palechor2023.bg_ccr_at_01,
    bg_distant=palechor2023.bg_distant,
    bg_drop=palechor2023.bg_drop,
    bg_gamma_minus_between=palechor2023.bg_gamma_minus_between,
    bg_negatives=palechor2023.bg_negatives,
    bold_is_best=arithmetic.bold_is_best,
    easier=palechor2023.easier,
    eos_ccr_at_001=palechor2023.eos_ccr_at_001,
    eos_ccr_at_01=palechor2023.eos_ccr_at_01,
    eos_distant=palechor2023.eos_distant,
    eos_drop=palechor2023.eos_drop,
    eos_gain_fades=palechor2023.eos_gain_fades,
    eos_gamma_minus=palechor2023.eos_gamma_minus,
    eos_gamma_minus_unknown=palechor2023.eos_gamma_minus_unknown,
    eos_negatives=palechor2023.eos_negatives,
    gamma_picks=palechor2023.gamma_picks,
    images_per_class=arithmetic.images_per_class,
    s_accuracy=palechor2023.s_accuracy,
    s_best_accuracy=palechor2023.s_best_accuracy,
    s_gamma_minus_falls=palechor2023.s_gamma_minus_falls,
    s_gamma_plus=palechor2023.s_gamma_plus,
    # Vaze et al. 2022
    above_cited=arithmetic.above_cited,
    arpl_cs_boosted=arithmetic.arpl_cs_boosted,
    arpl_cs_gap=arithmetic.arpl_cs_gap,
    correlated=vaze2022.correlated,
    easy_correlated_less=vaze2022.easy_correlated_less,
    easy_to_hard=vaze2022.easy_to_hard,
    ensemble_auroc=arithmetic.ensemble_auroc,
    hard_below_easy=vaze2022.hard_below_easy,
    marginal=vaze2022.marginal,
    meaning_over_number=vaze2022.meaning_over_number,
    mls_gain=arithmetic.mls_gain,
    mls_leads_ood=vaze2022.mls_leads_ood,
    mls_oscr=vaze2022.mls_oscr,
    mls_over_arpl_cs=vaze2022.mls_over_arpl_cs,
    mls_over_msp=vaze2022.mls_over_msp,
    mls_over_prior=arithmetic.mls_over_prior,
    negligible=vaze2022.negligible,
    precision_falls=vaze2022.precision_falls,
    printed_deltas=arithmetic.printed_deltas,
    recipe_auroc=arithmetic.recipe_auroc,
    recipe_is_mls=arithmetic.recipe_is_mls,
    recipe_rho=arithmetic.recipe_rho,
    ssb_images=arithmetic.ssb_images,
    table_6_repeats=arithmetic.table_6_repeats,
    # Kim et al. 2021
    ensemble_accuracy=kim2021.ensemble_accuracy,
    ensemble_misclassification=kim2021.ensemble_misclassification,
    ensemble_near=kim2021.ensemble_near,
    ensemble_unified=kim2021.ensemble_unified,
    far_easier=kim2021.far_easier,
    figure_5_better=kim2021.figure_5_better,
    figure_5_odin=kim2021.figure_5_odin,
    marked_is_best=arithmetic.marked_is_best,
    misclassification_better=kim2021.misclassification_better,
    misclassification_worse=kim2021.misclassification_worse,
    no_method_leads_all=kim2021.no_method_leads_all,
    no_value_twice=arithmetic.no_value_twice,
    odin_keeps_accuracy=arithmetic.odin_keeps_accuracy,
    oe_far=kim2021.oe_far,
    oe_near=kim2021.oe_near,
    oe_trades=kim2021.oe_trades,
    openmax_far_only=kim2021.openmax_far_only,
    possible_misclassification=arithmetic.possible_misclassification,
    possible_unknown=arithmetic.possible_unknown,
    readme_counts=arithmetic.readme_counts,
)
