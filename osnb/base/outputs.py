"""What a network says about a batch."""

from typing import Any, NamedTuple


class Outputs(NamedTuple):
    """Outputs of a network: tensors in training, float32 arrays after `train.predict`.

    Attributes:
        logits: (N, C), before any softmax; the first K columns are the known classes.
        features: (N, D), the input of the last layer, or () if nothing reads them.
        slack: what a head measures for its own loss (ARPL's radius term), else ().
    """

    logits: Any
    features: Any = ()
    slack: Any = ()
