"""Networks: ``f(*, classes, features, ...) -> Module`` whose call gives `Outputs`."""

from osnb.base.catalogue import Catalogue
from osnb.models.networks import (
    HEADS,
    Network,
    conv,
    conv_dropout,
    from_timm,
    mlp,
    released_vgg32,
    resnet9,
    resnet18_cifar,
    resnet20,
    resnet50,
    vgg32,
)

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
