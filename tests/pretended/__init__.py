"""A pretended GPU: tensors that say 'cuda', are computed on the CPU, and never meet CPU tensors.

It refuses what CUDA refuses: operations between the two, numpy arrays of tensors that lie there,
and fused optimizers whose state does not. It cannot show what a real one does in parallel (streams,
graphs, several ranks), nor its numbers or its speed.

`library` compiles what torch's own library asks for; torch must be imported after it is loaded.
"""

import ctypes
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

SOURCE = Path(__file__).with_name("gpu.cpp")


def library(folder: Path) -> Path:
    """The compiled library, made in the folder with g++ against the torch that is installed."""
    torch, made = Path(find_spec("torch").origin).parent, folder / "gpu.so"
    where = [f"-I{torch}/include", f"-L{torch}/lib", f"-Wl,-rpath,{torch}/lib"]
    how = ["-std=c++20", "-fPIC", "-shared", SOURCE, "-o", made, *where, "-lc10", "-ltorch_cpu"]
    subprocess.run(["g++", *how], check=True, capture_output=True)
    return made


def load(library: Path) -> None:
    """Say that there is a GPU, before anything has imported torch."""
    assert "torch" not in sys.modules
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL).pretend()
    from tests.pretended import tensors

    tensors.begin()


@contextmanager
def gpu() -> Iterator[None]:
    """Meanwhile torch sees one, and tensors that are sent there are pretended ones."""
    from tests.pretended import tensors

    with ExitStack() as patches:
        for owner, name, value in tensors.instead():
            patches.enter_context(mock.patch.object(owner, name, value))
        patches.enter_context(tensors.Mode())
        yield


def inference(mode=True):
    """In the place of torch.inference_mode, whose tensors cannot be wrapped: no gradients."""
    import torch

    if callable(mode):
        return torch.no_grad()(mode)
    return torch.no_grad() if mode else nullcontext()
