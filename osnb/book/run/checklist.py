"""What a program can fill in of the machine learning reproducibility checklist.

After Pineau et al. 2021, "Improving Reproducibility in Machine Learning Research", appendix A:
its questions about data, code and results. What only a person knows is not asked here.
"""

import shlex
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from osnb.base import workbook
from osnb.book.run.plans import Plan


def checklist(plan: Plan, content: Mapping[str, Any]) -> dict[str, Any]:
    """The answers for one run.

    Args:
        plan: the run.
        content: of its run.json, as far as it is known.
    """
    lock = workbook.root() / "requirements.lock"
    used = content.get("used", {})
    return {
        "code": f"notebooks/{plan.notebook}.ipynb at commit {content['commit']}",
        "command": f"papermill notebooks/{plan.notebook}.ipynb OUT.ipynb"
        + "".join(map(_option, plan.given.items())),
        "dependencies": workbook.file_hash(lock) if lock.is_file() else None,
        "hyperparameters": {k: v for k, v in plan.parameters.items() if k not in workbook.LOCAL},
        "random seed": plan.parameters.get("seed"),
        "examples": _examples(plan),
        "measures at the end": _last(plan),
        "training runs": 1 + len(content["attempts"]) if plan.trains else 0,
        "runtime in seconds": content.get("seconds"),
        "infrastructure": {key: content[key] for key in ("processor", "cpus", "memory", "gpus")}
        | {"peak": used},
    }


def _option(item: tuple[str, Any]) -> str:
    """papermill's, of a name and a value: -r keeps a text that looks like a number."""
    name, value = item
    return f" {'-r' if isinstance(value, str) else '-p'} {name} {shlex.quote(str(value))}"


def _examples(plan: Plan) -> dict[str, int] | None:
    """Test samples by role."""
    rows = _rows(plan.directory / "scores.parquet", ["role"])
    return rows and {f"test, {role}": n for role, n in Counter(r["role"] for r in rows).items()}


def _last(plan: Plan) -> dict[str, float] | None:
    """The last row of the history."""
    rows = _rows(plan.directory / "history.parquet")
    return rows and rows[-1]


def epochs(plan: Plan) -> int:
    """Epochs that a training run has behind it, as its history says."""
    return (_last(plan) or {}).get("epoch", 0)


def _rows(path: Path, columns: list[str] | None = None) -> list[dict[str, Any]] | None:
    """The rows of a parquet file; none if there is no whole one."""
    if not path.is_file():
        return None
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path, columns=columns).to_pylist()
    except (OSError, ValueError, KeyError):
        return None
