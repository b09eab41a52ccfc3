"""run.json, the one source of a run's status: written whole, read so that it tells the truth."""

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from osnb import repro

PACKAGES = ("torch", "torchvision", "timm", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow")


def write(directory: Path, content: Mapping[str, Any]) -> None:
    """Write the run.json of the run in `directory`."""
    repro.write_json(directory / "run.json", content)


def read(directory: Path) -> dict[str, Any] | None:
    """The run's run.json, none if it has none; `running` without its process is `interrupted`."""
    try:
        found = json.loads((directory / "run.json").read_text())
    except (OSError, ValueError):
        return None
    here = found["host"] == platform.node()
    if found["state"] == "running" and here and not _alive(found["pid"]):
        found["state"] = "interrupted"
    return found


def everything() -> list[dict[str, Any]]:
    """Every run.json under runs/, sorted by notebook and run."""
    files = sorted((repro.out() / "runs").glob("*/*/run.json"))
    return [found for file in files if (found := read(file.parent)) is not None]


def circumstances() -> dict[str, Any]:
    """Where, when and with what a run starts: host, process, versions, devices, commit."""
    root = str(repro.root())
    changes = _said("git", "-C", root, "status", "--porcelain")
    gpus = _said("nvidia-smi", "--query-gpu=name", "--format=csv,noheader") or ""
    return {
        "started": now(),
        "host": platform.node(),
        "pid": os.getpid(),
        "cpus": os.cpu_count(),
        "gpus": gpus.splitlines(),
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in PACKAGES},
        "commit": _said("git", "-C", root, "rev-parse", "HEAD"),
        "dirty": None if changes is None else bool(changes),
    }


def now() -> str:
    """The time, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's process
        return True
    return True


def _said(*command: str) -> str | None:
    """What a command prints; none if it is missing or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
