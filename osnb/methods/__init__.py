"""Methods whose training is more than a loss: each a `fit` of the signature of `train.fit`.

- `common`: what they share: a run with companions, whose states its checkpoints hold.
- `arpl_cs`: reciprocal points with confusing samples.
- `osrci`: counterfactual images as one more class.
- `autoencoder`: the networks that `osrci` makes them with.
- `c2ae`: a decoder that is told a class, and rebuilds known images only.
- `proser`: placeholders, spare outputs that are best on mixtures of classes.
- `crl`: confidence in the order of how often samples were right.
- `outlier`: images from outside, on which no class is likelier than another.
- `augmix`: three views of an image, about which the network says the same.
"""

from osnb import train
from osnb.catalogue import Catalogue
from osnb.methods import arpl_cs, augmix, c2ae, crl, osrci, outlier, proser
from osnb.methods.common import nothing

__all__ = ["METHODS", "OWN", "made"]

METHODS = Catalogue(
    plain=train.fit,
    arpl_cs=arpl_cs.fit,
    osrci=osrci.fit,
    proser=proser.fit,
    c2ae=c2ae.fit,
    crl=crl.fit,
    outlier=outlier.fit,
    augmix=augmix.fit,
)
# columns of scores that only a method's network has: f(out, *, known, ...), higher more known
OWN = Catalogue(
    plain=nothing,
    arpl_cs=nothing,
    osrci=osrci.own,
    proser=proser.own,
    c2ae=c2ae.own,
    crl=nothing,
    outlier=nothing,
    augmix=nothing,
)
made = osrci.made
