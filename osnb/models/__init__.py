"""Networks: ``f(*, classes, features, ...) -> Module`` whose call gives `Outputs`.

- `heads`: a trunk and a head make a network.
- `backbones`: trunks for small images, and networks that rebuild their image.
- `outside`: timm's backbones, released weights, folded norms.
"""

from osnb.base.catalogue import Catalogue
from osnb.models import backbones, outside
from osnb.models.backbones import conv, conv_dropout, dhrnet, fast_conv, ladder, mlp, resnet9
from osnb.models.heads import HEADS, Flow, Network, Points
from osnb.models.outside import NORMALISE, folded, from_timm, normalising, timm_pixels, weighted

MODELS = Catalogue(
    mlp=mlp,
    conv=conv,
    conv_dropout=conv_dropout,
    resnet9=resnet9,
    resnet20=backbones.resnet20,
    resnet18_cifar=backbones.resnet18_cifar,
    resnet18_identity=backbones.resnet18_identity,
    wrn_28_10=backbones.wrn_28_10,
    wrn_40_4=backbones.wrn_40_4,
    wrn_40_2=backbones.wrn_40_2,
    wrn_10_1=backbones.wrn_10_1,
    dhrnet=dhrnet,
    ladder=ladder,
    vgg32=backbones.vgg32,
    fast_conv=fast_conv,
    resnet50=outside.resnet50,
    timm=from_timm,
)
