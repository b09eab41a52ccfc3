"""What is tried in a process of its own: `python -m osnb.doctor.inside NAME SECONDS`.

NAME is torch or kernel, SECONDS how long a kernel may take to start, and to answer.

Prints one line of json; any error is in it, so that only a crash or a hang ends otherwise.
"""

import json
import sys

from osnb.doctor.lines import said

SUM = "print(1 + 1)"


def torch_said(_: float) -> dict[str, str]:
    """Versions of torch and torchvision as they load here, and the device that training uses."""
    import torch

    found = {"torch": torch.__version__, "device": "", "torchvision": "", "error": ""}
    try:
        from osnb.train import device
        from osnb.vision import torchvision

        found["torchvision"] = torchvision.__version__
        gpu = device().type == "cuda"
        found["device"] = torch.cuda.get_device_name() if gpu else "cpu"
    except Exception as error:
        found["error"] = said(error)
    return found


def kernel_said(patience: float) -> dict[str, str]:
    """What the kernel `python3` prints for 1 + 1, and the command that starts it."""
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import start_new_kernel

    spec = KernelSpecManager().get_kernel_spec("python3")
    manager, client = start_new_kernel(
        startup_timeout=patience, kernel_name="python3", stderr=sys.stderr, stdout=sys.stderr
    )
    heard = []
    try:
        client.execute_interactive(SUM, timeout=patience, output_hook=heard.append)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    texts = [message["content"].get("text", "") for message in heard]
    return {"answer": "".join(texts).strip(), "argv": " ".join(spec.argv[:3])}


ASKED = {"torch": torch_said, "kernel": kernel_said}


def main(name: str, patience: float) -> None:
    """Print what is found; an error becomes {"error": ..., "kind": ...}, or {"slow": ...}."""
    try:
        found = ASKED[name](patience)
    except Exception as error:
        found = {"error": said(error), "kind": type(error).__name__}
        if isinstance(error, TimeoutError) or "didn't respond in" in str(error):
            found = {"slow": f"no answer within {patience:g} s"}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
