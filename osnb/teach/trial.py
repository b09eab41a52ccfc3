"""What may crash or hang, tried in a process of its own: `python -m osnb.teach.trial NAME SECONDS`.

NAME is torch or kernel, SECONDS how long a kernel may take to start, and to answer. Prints one
line of json; any error is in it, so that only a crash or a hang ends otherwise.
"""

import json
import os
import subprocess
import sys

from osnb.base import workbook

LIMIT = 60.0  # seconds for one process: the first import of all is slow
ENDING = 2.0  # of them, in which a process that was not answered ends by itself
TAIL = 200  # characters of what a crashed process said


def ask(name: str, limit: float = LIMIT) -> dict[str, str]:
    """What a trial answers.

    Args:
        name: torch or kernel.
        limit: seconds.

    Returns:
        The answer, {"slow": ...} if there was none, or {"error": ...}.
    """
    paths = [str(workbook.PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-P", "-m", "osnb.teach.trial", name, str(limit - ENDING)]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"slow": f"no answer within {limit:g} s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1][-TAIL:]
        return {"error": f"ended with code {done.returncode}: {last}"}
    return json.loads(lines[-1])


def sentence(error: BaseException) -> str:
    """An error in one line: its kind and the first line of what it says."""
    first = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def try_torch(_: float) -> dict[str, str]:
    """Versions of torch and torchvision as they load here, and the device that training uses."""
    import torch

    answer = {"torch": torch.__version__, "device": "", "torchvision": "", "error": ""}
    try:
        from osnb.datasets.vision import torchvision
        from osnb.train import device

        answer["torchvision"] = torchvision.__version__
        gpu = device().type == "cuda"
        answer["device"] = torch.cuda.get_device_name() if gpu else "cpu"
    except Exception as error:
        answer["error"] = sentence(error)
    return answer


def try_kernel(patience: float) -> dict[str, str]:
    """What the kernel `python3` prints for 1 + 1, and the command that starts it."""
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import start_new_kernel

    spec, messages = KernelSpecManager().get_kernel_spec("python3"), []
    manager, client = start_new_kernel(
        startup_timeout=patience, kernel_name="python3", stderr=sys.stderr, stdout=sys.stderr
    )
    try:
        client.execute_interactive("print(1 + 1)", timeout=patience, output_hook=messages.append)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    answer = "".join(message["content"].get("text", "") for message in messages).strip()
    command = " ".join(spec.argv[:3])
    if answer != "2":
        raise RuntimeError(f"{command} says 1 + 1 = {answer!r}")
    return {"kernel": command}


TRIALS = {"torch": try_torch, "kernel": try_kernel}


def main(name: str, patience: float) -> None:
    """Print what a trial answers; an error becomes {"error": ...}, or {"slow": ...}."""
    try:
        answer = TRIALS[name](patience)
    except Exception as error:
        answer = {"error": sentence(error)}
        if isinstance(error, TimeoutError) or "didn't respond in" in str(error):
            answer = {"slow": f"no answer within {patience:g} s"}
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
