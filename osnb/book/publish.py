"""What of a finished run goes into git: small results in figures/, outputs in notebooks/."""

import json
import shutil
from pathlib import Path

from osnb.base import workbook
from osnb.base.stamps import RECORDS

RESULTS = ("*.svg", "*.csv", "*.tex", "*.json", "scores*.parquet", "history.parquet")
RESULTS += ("outputs.parquet",)
SMALL = 2_000_000  # bytes
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
KEPT = ("tags", "nbgrader")  # of a cell's metadata; the second makes it an exercise
WIDGET = "application/vnd.jupyter.widget-view+json"  # a random id, dead without its kernel


def results(directory: Path) -> dict[str, str]:
    """Hash of each file of a run that is a result: figures, tables, stamps, scores, history."""
    names = {file.name for pattern in RESULTS for file in directory.glob(pattern)} - RECORDS
    return {name: workbook.file_hash(directory / name) for name in sorted(names)}


def publish(directory: Path, target: Path) -> list[str]:
    """Make the results in `target` those of the run in `directory`, as far as they are small.

    A file that is there and the same is not touched; one of an earlier run is taken away.

    Returns:
        Names of the results that are larger than `SMALL`, which stay where they are.
    """
    found, there = results(directory), results(target)
    large = [name for name in found if (directory / name).stat().st_size > SMALL]
    small = {name: found[name] for name in found if name not in large}
    for name in small:
        if there.get(name) != small[name]:
            with workbook.writing(target / name) as aside:
                shutil.copyfile(directory / name, aside)
    for name in there.keys() - small.keys():
        (target / name).unlink()
    return large


def keep_outputs(notebook: Path, executed: Path) -> None:
    """Give a notebook the outputs of its executed copy and nothing else of it.

    Cells are numbered from 1, metadata keep what `KEPT` names, the kernel is python3; what
    papermill and widgets left behind stays out.

    Raises:
        ValueError: the copy has other code.
    """
    ours, theirs = (json.loads(path.read_text()) for path in (notebook, executed))
    pairs = zip(_code(ours), _code(theirs), strict=True)
    for number, (cell, ran) in enumerate(pairs, start=1):
        if "".join(cell["source"]) != "".join(ran["source"]):
            raise ValueError(f"{executed} has other code than {notebook} in code cell {number}")
        cell |= {
            "execution_count": number,
            "outputs": [_clean(out, number) for out in ran["outputs"]],
        }
    for cell in ours["cells"]:
        cell["metadata"] = {k: v for k, v in cell["metadata"].items() if k in KEPT}
    ours["metadata"] = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    with workbook.writing(notebook) as aside:
        text = json.dumps(ours, indent=1, sort_keys=True, ensure_ascii=False)
        aside.write_text(text + "\n", encoding="utf8")


def _code(notebook: dict) -> list[dict]:
    """The code cells, without the one that papermill injected."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [x for x in cells if "injected-parameters" not in x["metadata"].get("tags", [])]


def _clean(output: dict, number: int) -> dict:
    output = dict(output)
    if "execution_count" in output:
        output["execution_count"] = number
    if "data" in output:
        output["data"] = {k: v for k, v in output["data"].items() if k != WIDGET}
    return output
