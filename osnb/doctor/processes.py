"""Checks that import or start something: torch and its GPU, the kernel. Each in a process."""

import json
import os
import shlex
import subprocess
import sys

from osnb import repro
from osnb.doctor.lines import FAIL, OK, WARN, Line

LIMIT, AGAIN = 9.0, 30.0  # seconds for one process, and for it once more if it gave no answer
ENDING = 2.0  # of them, in which a process that was not answered ends by itself
TAIL = 200  # characters of what a crashed process said
SLOW = "Close other programs and run osnb doctor again: the first import of all is slow."
DEAF = (
    "Close other programs and run osnb doctor again; if it is the same, no notebook can run here: "
    "ask whether a firewall or a VPN keeps this machine from reaching itself (127.0.0.1)."
)
PYTHON = shlex.quote(sys.executable)
PIP = f"{PYTHON} -m pip install"
LOCKED = f"{PIP} -r {shlex.quote(str(repro.PACKAGE.parent / 'requirements.lock'))}"


def ask(name: str) -> dict[str, str]:
    """What `osnb.doctor.inside` finds, asked again with more time if it gave no answer."""
    found = once(name, LIMIT)
    if "slow" not in found:
        return found
    again = once(name, AGAIN)
    return {"slow": f"{found['slow']}, and {again['slow']}"} if "slow" in again else again


def once(name: str, limit: float) -> dict[str, str]:
    """What `osnb.doctor.inside` finds, {"slow": ...} or {"error": ...} if it does not end well.

    Args:
        name: torch or kernel.
        limit: seconds.
    """
    paths = [str(repro.PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-P", "-m", "osnb.doctor.inside", name, str(limit - ENDING)]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"slow": f"no answer within {limit:g} s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1][-TAIL:]
        return {"error": f"ended with code {done.returncode}: {last}", "kind": "crash"}
    return json.loads(lines[-1])


def torch() -> list[Line]:
    """torch and torchvision load together; the GPU, if there is one."""
    found = ask("torch")
    if "slow" in found:
        line = Line("torch", FAIL, found["slow"], SLOW)
        return [line, Line("gpu", WARN, "not known: torch did not answer", "See torch above.")]
    if "torch" not in found:
        advice = f"Install it again: {LOCKED}"
        unknown = Line("gpu", WARN, "not known without torch", "See torch above.")
        return [Line("torch", FAIL, found["error"], advice), unknown]
    return [_pair(found), _gpu(found)]


def _pair(found: dict[str, str]) -> Line:
    """torch beside torchvision, through the guard of `osnb.vision`."""
    if found["error"]:
        said = f"torch {found['torch']} loads, torchvision does not: {found['error']}"
        return Line("torch", FAIL, said, f"The two must match; install both again: {LOCKED}")
    return Line("torch", OK, f"torch {found['torch']}, torchvision {found['torchvision']}")


def _gpu(found: dict[str, str]) -> Line:
    if found["device"] in ("", "cpu"):
        return Line("gpu", OK, "none, and none is needed: the miniature trains on the CPU")
    return Line("gpu", OK, found["device"])


def kernel() -> Line:
    """The kernel `python3`, which every notebook names, starts and computes 1 + 1."""
    found = ask("kernel")
    install = f"{PIP} ipykernel && {PYTHON} -m ipykernel install --sys-prefix"
    if "slow" in found:
        return Line("kernel", FAIL, f"python3 gave {found['slow']}", DEAF)
    if found.get("kind") == "NoSuchKernel":
        return Line("kernel", FAIL, "there is no kernel called python3", f"Install it: {install}")
    if "error" in found:
        said = f"python3 does not start: {found['error']}"
        advice = f"Look at `jupyter kernelspec list`, then install it again: {install}"
        return Line("kernel", FAIL, said, advice)
    if found["answer"] != "2":
        said = f"python3 ({found['argv']}) says 1 + 1 = {found['answer']!r}"
        return Line("kernel", FAIL, said, f"Install it again: {install}")
    return Line("kernel", OK, f"python3 ({found['argv']}) starts and says 1 + 1 = 2")
