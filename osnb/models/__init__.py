"""Networks: ``f(*, classes, features, ...) -> Module`` whose call gives `Outputs`.

- `network`: what they share, and the heads.
- `small`: for images up to 64 px.
- `large`: timm's backbones.
- `released`: weights that authors have published.
"""

from osnb.catalogue import Catalogue
from osnb.models.large import from_timm, resnet50
from osnb.models.network import HEADS, Network
from osnb.models.released import released_vgg32
from osnb.models.small import conv, mlp, resnet9, vgg32

__all__ = [
    "HEADS",
    "MODELS",
    "Network",
    "conv",
    "from_timm",
    "mlp",
    "released_vgg32",
    "resnet9",
    "resnet50",
    "vgg32",
]

MODELS = Catalogue(
    mlp=mlp, conv=conv, resnet9=resnet9, vgg32=vgg32, resnet50=resnet50, timm=from_timm
)
