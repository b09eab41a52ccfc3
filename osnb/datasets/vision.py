"""torchvision, imported so that it also loads beside a torch it was not compiled for.

torchvision's wheel on PyPI is compiled for CUDA. Beside a CPU-only torch its library of
operators does not load, and torchvision then fails on import because it describes two
operators that were never declared (``operator torchvision::nms does not exist``). Declaring
them is enough: nothing here, and nothing that timm's networks need, ever calls them.
"""

import sys

import torch

SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_declared = []  # a torch Library undoes its declarations when it is collected

try:
    import torchvision
except RuntimeError as error:
    if "operator torchvision::" not in str(error):
        raise
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]
    _declared.append(torch.library.Library("torchvision", "FRAGMENT"))
    for schema in SCHEMAS:
        _declared[0].define(schema)
    import torchvision

__all__ = ["torchvision"]
