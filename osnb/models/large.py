"""Networks for photographs of 224 px and more: timm's backbones."""

from torch import nn

from osnb import vision  # noqa: F401 - timm imports torchvision
from osnb.models.cifar import BEFORE_HEAD
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
    dropout: float = 0.0,
) -> Network:
    """Any network of timm by name, such as those of Figure 3 of Vaze et al. 2022.

    Args:
        classes: C, columns of the logits.
        features: D. Where it is not the backbone's own number, a layer with bias makes D of it.
        backbone: its name in timm: resnet18, resnet34, resnet101, resnet152, ...
        head: a name in `HEADS`; "linear" has a bias.
        pretrained: fetch timm's weights for the backbone; else they are random.
        dropout: share of the numbers set to 0 in training in each residual block, after its
            ReLUs and before the sum, as Kim et al. 2021 release it; ResNets only. If above 0,
            some of the features are too, as in `resnet20`.

    Raises:
        RuntimeError: timm knows no such name.
        ValueError: dropout is above 0 and the backbone has no such blocks.
    """
    import timm

    trunk = timm.create_model(backbone, pretrained=pretrained, num_classes=0)
    if dropout:
        _drop_in_blocks(trunk, backbone, dropout)
    width = trunk.head_hidden_size  # mobilenets have a layer behind their num_features
    if features != width:
        trunk = nn.Sequential(trunk, nn.Linear(width, features))
    chosen = HEADS.bind(head, features=features, classes=classes, bias=True)()
    before = [nn.Dropout(BEFORE_HEAD)] if dropout else []
    return Network(trunk, nn.Sequential(*before, chosen) if dropout else chosen)


def _drop_in_blocks(trunk: nn.Module, name: str, dropout: float) -> None:
    """Put dropout after each inner ReLU of timm's residual blocks, and before the sum."""
    from timm.models.resnet import BasicBlock, Bottleneck

    blocks = [each for each in trunk.modules() if isinstance(each, BasicBlock | Bottleneck)]
    if not blocks:
        raise ValueError(f"dropout needs residual blocks, as in resnet50; {name} has none")
    for block in blocks:
        block.act1 = nn.Sequential(block.act1, nn.Dropout(dropout))
        if isinstance(block, Bottleneck):  # the other kind's second ReLU is behind the sum
            block.act2 = nn.Sequential(block.act2, nn.Dropout(dropout))
        block.drop_path = nn.Dropout(dropout)
