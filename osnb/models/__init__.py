"""Networks: ``f(*, classes, features, ...) -> Module`` whose call gives `Outputs`.

- `network`: what they share, and the heads.
- `small`: for images up to 64 px.
- `cifar`: residual networks for 32 px, with dropout if wanted.
- `large`: timm's backbones.
- `released`: weights that authors have published.
"""

from osnb.catalogue import Catalogue
from osnb.models.cifar import conv_dropout, resnet18_cifar, resnet20
from osnb.models.large import from_timm, resnet50
from osnb.models.network import HEADS, Network
from osnb.models.released import released_vgg32
from osnb.models.small import conv, mlp, resnet9, vgg32

__all__ = [
    "HEADS",
    "MODELS",
    "Network",
    "conv",
    "conv_dropout",
    "from_timm",
    "mlp",
    "released_vgg32",
    "resnet9",
    "resnet18_cifar",
    "resnet20",
    "resnet50",
    "vgg32",
]

MODELS = Catalogue(
    mlp=mlp,
    conv=conv,
    conv_dropout=conv_dropout,
    resnet9=resnet9,
    resnet20=resnet20,
    resnet18_cifar=resnet18_cifar,
    vgg32=vgg32,
    resnet50=resnet50,
    timm=from_timm,
)
