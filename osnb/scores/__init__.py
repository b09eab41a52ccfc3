"""Scoring rules: logits or features to one number per sample, higher meaning more known.

`SCORES` is what every training run of Palechor et al. 2023 writes into its scores table, `POST_HOC`
what Vaze et al. 2022 and Kim et al. 2021 look at besides. Both hold rules ``rule(out, known=K)``.
`openmax`, `mahalanobis` and all of `FITTED` make such a rule from the outputs on training samples.
`own` reads scores and logits of other origin.
"""

from osnb.scores.features import FITTED, Seen, temperature, zero_shot
from osnb.scores.own import RULES, Own, own
from osnb.scores.rules import (
    DISTANCES,
    MEANS,
    POST_HOC,
    READ,
    SCORES,
    WEIGHTS,
    class_gaussians,
    columns,
    energy,
    ensemble,
    feature_norm,
    mahalanobis,
    max_logit,
    max_softmax,
    max_softmax_log_odds,
    negative_entropy,
    openmax,
    predicted,
    softmax,
    target,
    target_log_odds,
    with_background,
)
