"""Methods whose training is more than a loss: kinds of `Run`, or what makes one in stages.

- `terms`: the loop's own step with one more term: CRL, outlier exposure, AugMix, PROSER, VOS, CGDL.
- `arpl_cs`: reciprocal points with confusing samples.
- `osrci`: counterfactual images as one more class, and the networks that make them.
- `c2ae`: a decoder that is told a class, and rebuilds known images only.
"""

from functools import partial
from typing import Any

from osnb.base.catalogue import Catalogue
from osnb.train.loop import Run
from osnb.train.methods import arpl_cs, c2ae, osrci, terms


def released(*, weights: str, **_: Any) -> Run:
    """Weights that somebody else has trained are read, and never trained.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{weights} are not trained here: osnb predict makes their scores")


METHODS = Catalogue(
    plain=Run,
    arpl_cs=arpl_cs.Confusing,
    osrci=osrci.run,
    proser=terms.Placeholders,
    c2ae=c2ae.run,
    crl=terms.Ranked,
    outlier=terms.Exposed,
    augmix=terms.Mixed,
    released=released,
    vos=terms.Virtual,
    openhybrid=Run,
    cgdl=terms.Conditional,
)
# a method's own scores: f(out, *, known, ...) -> (N,), higher means more known
OWN = Catalogue(
    osrci=partial(terms.margin, temperature=1.0),
    proser=partial(terms.margin, temperature=1024.0),
    c2ae=c2ae.own,
    openhybrid=terms.density,
)
made = osrci.made
