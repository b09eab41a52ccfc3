"""Methods whose training is more than a loss: each a `fit` of the signature of `train.fit`.

- `common`: what they share: a run with companions, whose states its checkpoints hold.
- `arpl_cs`: reciprocal points with confusing samples.
"""

from osnb import train
from osnb.catalogue import Catalogue
from osnb.methods import arpl_cs

__all__ = ["METHODS"]

METHODS = Catalogue(plain=train.fit, arpl_cs=arpl_cs.fit)
