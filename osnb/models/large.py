"""Networks for photographs of 224 px and more: timm's backbones."""

from torch import nn

from osnb import vision  # noqa: F401 - timm imports torchvision
from osnb.models.network import HEADS, Network


def resnet50(*, classes: int, features: int, head: str = "linear") -> Network:
    """ResNet-50 with the two-layer head of Palechor et al. 2023, random weights.

    The authors replace the classifier by a layer 2048 to D with bias, and put a layer D to C
    without bias behind it, nothing between. The D values are their features; they use D = C.

    Args:
        classes: C, columns of the logits.
        features: D, width of the middle layer.
        head: a name in `HEADS`; "linear" has no bias.
    """
    import timm

    backbone = timm.create_model("resnet50", num_classes=0, zero_init_last=False)
    trunk = nn.Sequential(backbone, nn.Linear(2048, features))
    chosen = HEADS.bind(head, features=features, classes=classes, bias=False)()
    return Network(trunk, chosen)


def from_timm(
    *,
    classes: int,
    features: int,
    backbone: str,
    head: str = "linear",
    pretrained: bool = False,
) -> Network:
    """Any network of timm by name, such as those of Figure 3 of Vaze et al. 2022.

    Args:
        classes: C, columns of the logits.
        features: D. Where it is not the backbone's own number, a layer with bias makes D of it.
        backbone: its name in timm: resnet18, resnet34, resnet101, resnet152, ...
        head: a name in `HEADS`; "linear" has a bias.
        pretrained: fetch timm's weights for the backbone; else they are random.

    Raises:
        RuntimeError: timm knows no such name.
    """
    import timm

    trunk = timm.create_model(backbone, pretrained=pretrained, num_classes=0)
    width = trunk.head_hidden_size  # mobilenets have a layer behind their num_features
    if features != width:
        trunk = nn.Sequential(trunk, nn.Linear(width, features))
    chosen = HEADS.bind(head, features=features, classes=classes, bias=True)()
    return Network(trunk, chosen)
