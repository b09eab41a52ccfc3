"""What the papers claim: a number, above 0 if the claim holds.

The claims themselves are in osnb/published/<paper>/claims.csv. Most are a comparison, whose sides
are columns there (`compare`); the others are functions (`computed`, `arithmetic`). They are decided
on `Evidence`, which is made from scores tables or from the paper's printed numbers; a claim about
the paper's own tables is decided on those.
"""

from osnb.evidence.claims.decide import COMPUTED as COMPUTED
from osnb.evidence.claims.decide import SIZES as SIZES
from osnb.evidence.claims.decide import Basis as Basis
from osnb.evidence.claims.decide import claims as claims
from osnb.evidence.claims.decide import decide as decide
from osnb.evidence.claims.decide import decision as decision
from osnb.evidence.claims.decide import findings as findings
from osnb.evidence.claims.decide import of_kim2021 as of_kim2021
from osnb.evidence.claims.decide import of_palechor2023 as of_palechor2023
from osnb.evidence.claims.decide import of_vaze2022 as of_vaze2022
from osnb.evidence.claims.decide import within as within
from osnb.evidence.claims.report import report as report
