"""What others have made: timm's networks, their normalised pixels, their released weights."""

import copy
import re
from collections import Counter
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from osnb.base import workbook
from osnb.base.catalogue import Catalogue
from osnb.models.heads import BEFORE_HEAD, Network, head_of

NORM = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
NESTED = ("model", "state_dict", "model_state_dict")  # where checkpoints keep their tensors
UNUSED = {f"bn10.{part}": (128,) if part != NORM[-1] else () for part in NORM}  # never called


def _timm() -> ModuleType:
    """timm, behind the guard of the torchvision that it imports; seconds that no other pays."""
    from osnb.datasets import vision  # noqa: F401, I001
    import timm

    return timm


def _check_name(backbone: str) -> None:
    """Refuse what timm does not have."""
    if not _timm().is_model(backbone):
        near = get_close_matches(backbone.partition(".")[0], _timm().list_models())
        raise ValueError(f"timm has no network {backbone!r}; the nearest: {', '.join(near)}")


def resnet50(*, classes: int, features: int, head: str = "linear", channels: int = 3) -> Network:
    """ResNet-50 with the two-layer head of Palechor et al. 2023, random weights.

    The authors replace the classifier by a layer 2048 to D with bias, and put a layer D to C
    without bias behind it, nothing between. The D values are their features; they use D = C.

    Args:
        classes: C, columns of the logits.
        features: D, width of the middle layer.
        head: a name in `HEADS`; "linear" has no bias.
        channels: of an image.
    """
    how = {"num_classes": 0, "zero_init_last": False, "in_chans": channels}
    backbone = _timm().create_model("resnet50", **how)
    trunk = nn.Sequential(backbone, nn.Linear(2048, features))
    return Network(trunk, head_of(head, features, classes, bias=False))


def from_timm(
    *,
    classes: int,
    features: int,
    backbone: str,
    head: str = "linear",
    dropout: float = 0.0,
    weights: str = "",
    frozen: bool = False,
    channels: int = 3,
    size: int = 0,
) -> Network:
    """Any network of timm by name, such as those of Figure 3 of Vaze et al. 2022.

    Args:
        classes: C, columns of the logits.
        features: D. Where it is not the backbone's own number, a layer with bias makes D of it.
        backbone: its name in timm: resnet18, resnet152, vgg16_bn, efficientnet_b0,
            vit_base_patch16_224, mixer_b16_224, ...
        head: a name in `HEADS`; "linear" has a bias.
        dropout: share of the numbers set to 0 in training in each residual block, after its
            ReLUs and before the sum, as Kim et al. 2021 release it; ResNets only. If above 0,
            some of the features are too, as in `residual`.
        weights: file of the backbone's weights under timm's names, from `workbook.out()`:
            safetensors, or what torch.load reads with weights_only; "": none.
        frozen: leave the backbone as it is, and train what lies behind it.
        channels: of an image.
        size: side of an image in pixels, for backbones that have to know; 0: their own.

    Raises:
        ValueError: timm has no such network, dropout is above 0 and the backbone has no such
            blocks, the file lacks some of its tensors, or only random weights would be frozen.
    """
    if frozen and not weights:
        raise ValueError("frozen=true keeps random weights: name a file, weights=FILE")
    _check_name(backbone)
    how = {"in_chans": channels, "pretrained": bool(weights)}
    if weights:
        how["pretrained_cfg_overlay"] = {"state_dict": _weights(weights, backbone)}
    about = _timm().get_pretrained_cfg(backbone) if size else None
    if about and about.fixed_input_size and size != about.input_size[1]:
        how["img_size"] = size
    trunk = _timm().create_model(backbone, num_classes=0, **how)
    if dropout:
        _drop_in_blocks(trunk, backbone, dropout)
    width = trunk.head_hidden_size  # mobilenets have a layer behind their num_features
    trunk = Frozen(trunk) if frozen else trunk
    if features != width:
        trunk = nn.Sequential(trunk, nn.Linear(width, features))
    dropped = BEFORE_HEAD if dropout else None
    return Network(trunk, head_of(head, features, classes, dropped=dropped))


def _weights(name: str, backbone: str) -> dict[str, Tensor]:
    """Tensors by name, all that the backbone has among them."""
    path = workbook.out() / name
    if not path.is_file():
        raise FileNotFoundError(2, "no such weights", str(path))
    given = _timm().models.load_state_dict(str(path), weights_only=True)
    needed = _timm().create_model(backbone, num_classes=0).state_dict().keys()
    if lacking := sorted(needed - given.keys()):
        some = ", ".join(lacking[:3])
        raise ValueError(f"{path} lacks {len(lacking)} of {len(needed)} of {backbone}: {some}, ...")
    return given


class Frozen(nn.Module):
    """A trunk at rest: no gradient, and batch norm as it came."""

    def __init__(self, trunk: nn.Module):
        super().__init__()
        self.trunk = trunk.eval().requires_grad_(False)

    def train(self, mode: bool = True) -> "Frozen":
        """Nothing changes in the trunk."""
        super().train(mode)
        self.trunk.eval()
        return self

    def forward(self, images: Tensor) -> Tensor:
        """Features (N, D) of images (N, C, H, W)."""
        with torch.no_grad():
            return self.trunk(images)


def _drop_in_blocks(trunk: nn.Module, name: str, dropout: float) -> None:
    """Put dropout after each inner ReLU of timm's residual blocks, and before the sum."""
    from timm.models.resnet import BasicBlock, Bottleneck

    blocks = [module for module in trunk.modules() if isinstance(module, BasicBlock | Bottleneck)]
    if not blocks:
        raise ValueError(f"dropout needs residual blocks, as in resnet50; {name} has none")
    for block in blocks:
        block.act1 = nn.Sequential(block.act1, nn.Dropout(dropout))
        if isinstance(block, Bottleneck):  # the other kind's second ReLU is behind the sum
            block.act2 = nn.Sequential(block.act2, nn.Dropout(dropout))
        block.drop_path = nn.Dropout(dropout)


# Pixels that authors have normalised.

NORMALISE = Catalogue(  # mean and standard deviation of each channel, as released
    cifar=((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),  # Vaze et al. 2022, all data sets
    kim=((0.507, 0.487, 0.441), (0.267, 0.256, 0.276)),  # Kim et al. 2021, CIFAR
    imagenet=((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),  # Kim et al. 2021, ImageNet
)


def timm_pixels(backbone: str) -> dict[str, Any]:
    """How the pixels of a backbone's own images are prepared, as timm's `resolve_data_config` says.

    Args:
        backbone: its name in timm, perhaps with a tag: vit_tiny_patch16_224.augreg_in21k.

    Returns:
        input_size (channels, side, side), crop_pct (window over short side), mean, std, and others.

    Raises:
        RuntimeError: timm knows no such tag.
        ValueError: timm says nothing of the backbone.
    """
    about = _timm().get_pretrained_cfg(backbone)
    if about is None:
        raise ValueError(f"normalise=timm: timm says nothing of the pixels of {backbone!r}")
    return _timm().data.resolve_data_config(pretrained_cfg=about.to_dict())


def normalising(network: nn.Module, name: str, *, channels: int, backbone: str = "") -> nn.Module:
    """The network, which from now on normalises the images of each call, (x - mean) / std.

    Everywhere outside images stay in [0, 1]: in caches, for generators, AugMix and ODIN, whose
    step in pixels is the one of code that normalises first and divides the step by std. Inside, a
    network that rebuilds its image rebuilds the normalised one: `dhrnet` can, `ladder`, which
    draws in [0, 1], cannot. The names of the weights stay, too.

    Args:
        network: called with images (N, 3, H, W) in [0, 1].
        name: in `NORMALISE`, or timm for the backbone's own.
        channels: of the images to come.
        backbone: its name in timm.

    Raises:
        ValueError: the images have other channels than the mean.
    """
    pixels = timm_pixels(backbone) if name == "timm" else {}
    given = (pixels["mean"], pixels["std"]) if pixels else NORMALISE[name]
    mean, std = (torch.tensor(values)[:, None, None] for values in given)
    if channels != len(mean):
        raise ValueError(
            f"normalise={name} needs {len(mean)} channels, images have {channels}: normalise=none"
        )
    network.register_buffer("pixel_mean", mean, persistent=False)
    network.register_buffer("pixel_std", std, persistent=False)
    network.register_forward_pre_hook(_normalise)
    return network


def _normalise(network: nn.Module, given: tuple[Tensor]) -> Tensor:
    return (given[0] - network.pixel_mean) / network.pixel_std


# Weights that authors have published.


def weighted(network: nn.Module, weights: Path | Mapping[str, Tensor]) -> nn.Module:
    """The network, given weights that somebody has trained.

    Args:
        network: with names of its own; a `vgg32` takes those of Vaze et al. 2022 too: conv1 to
            conv9, bn1 to bn9 and fc, and a tenth batch norm which their network never calls.
        weights: a file of torch or safetensors, or its content: tensors by name, behind "module."
            or not, or a checkpoint, which has them under a name of `NESTED`.

    Raises:
        ValueError: names or shapes are others, or the file holds more than tensors.
    """
    said = f"{weights}: " if isinstance(weights, Path) else ""
    if isinstance(weights, Path):
        weights = _loaded(weights)
    given = _tensors(weights)
    if given.keys() != network.state_dict().keys():  # its own names may begin with module. too
        given = {key.removeprefix("module."): value for key, value in given.items()}
    theirs = {_theirs(key): key for key in network.state_dict()} if "conv9.weight" in given else {}
    names = theirs or {key: key for key in network.state_dict()}
    needed = {name: tuple(network.state_dict()[key].shape) for name, key in names.items()}
    needed |= UNUSED if theirs else {}
    came = {name: tuple(value.shape) for name, value in given.items()}
    if came != needed:
        wrong = sorted(needed.items() ^ came.items())
        raise ValueError(
            f"{said}need the {len(needed)} tensors of this network; got {len(came)}, and on one "
            f"side only: {', '.join(f'{name} {shape}' for name, shape in wrong[:6])}"
        )
    network.load_state_dict({key: given[name] for name, key in names.items()})
    return network


def _loaded(file: Path) -> dict[str, Any]:
    """The content of a file that can hold no code: tensors by name, or a checkpoint."""
    try:
        if file.suffix == ".safetensors":
            return _timm().models.load_state_dict(str(file), device="cpu")
        content = torch.load(file, map_location="cpu", weights_only=True)
        given = _tensors(content).items()
        if all(isinstance(k, str) and isinstance(v, Tensor) for k, v in given):
            return content
    except Exception as error:  # of pickle's own kinds too, and this package imports no pickle
        if getattr(error, "filename", None):  # the system says which file is not there
            raise
    raise ValueError(f"{file} must hold tensors by name, and nothing else: network.state_dict()")


def _tensors(content: Mapping[str, Any]) -> Mapping[str, Tensor]:
    """Those of a checkpoint, wherever it keeps them."""
    found = (content.get(name) for name in NESTED)
    return next((tensors for tensors in found if isinstance(tensors, Mapping)), content)


def _theirs(key: str) -> str:
    """Their name of one of our tensors: trunk.5.1.bias, behind two dropouts, is bn4.bias."""
    found = re.fullmatch(r"trunk\.(\d+)\.([01])\.(\w+)", key)
    if not found:  # of the last layer, or of another network
        return key.replace("head.", "fc.")
    layer, part, what = int(found[1]), int(found[2]), found[3]
    return f"{('conv', 'bn')[part]}{layer - layer // 4}.{what}"


def folded(network: nn.Module) -> nn.Module:
    """A copy at rest whose batch norms are part of the convolutions before them.

    torch.fx says which norm reads which convolution, torch's `fuse_conv_bn_eval` makes one of both.
    A norm stays that follows no convolution, or one that is called or read elsewhere too.

    Args:
        network: at rest; stays as it is. One that cannot be copied is given back.
    """
    try:
        still = copy.deepcopy(network).eval()
    except Exception:  # of any kind: weight_norm keeps tensors that torch does not copy
        return network
    for first, second in _neighbours(still):
        fused = fuse_conv_bn_eval(still.get_submodule(first), still.get_submodule(second))
        still.set_submodule(first, fused)
        still.set_submodule(second, nn.Identity())
    return still


def _neighbours(network: nn.Module) -> list[tuple[str, str]]:
    """Names of each convolution and the norm that alone reads it; what fx cannot trace is cut."""
    try:  # a copy, for a network may keep what it was called with
        nodes = fx.Tracer().trace(copy.deepcopy(network)).nodes
    except Exception:  # of any kind: the network's own code is run on a stand-in for images
        parts = {name: _neighbours(part) for name, part in network.named_children()}
        return [(f"{n}.{a}", f"{n}.{b}") for n, pairs in parts.items() for a, b in pairs]
    called = [node for node in nodes if node.op == "call_module"]
    calls = Counter(node.target for node in called)
    of = {node: network.get_submodule(node.target) for node in called}
    return [
        (before.target, node.target)
        for node in called
        if isinstance(of[node], nn.BatchNorm2d) and of[node].track_running_stats
        if isinstance(of.get(before := node.args[0]), nn.Conv2d) and len(before.users) == 1
        if calls[before.target] == calls[node.target] == 1
    ]


def norms(network: nn.Module) -> int:
    """How many batch norms a network has."""
    return sum(key.endswith("running_mean") for key in network.state_dict())
