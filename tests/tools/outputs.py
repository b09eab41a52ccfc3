"""Put results into notebooks and READMEs: python -m tests.tools.outputs, or make outputs."""

import argparse
import json
from pathlib import Path

from osnb.base import workbook
from osnb.book import record
from osnb.book.run import done, plan
from osnb.book.runs import KERNEL, WIDGET
from osnb.evidence import gallery
from tests.tools import course_index, own_data, pages

CELL = ("tags", "nbgrader")  # of a cell's metadata; the second makes it an exercise


def keep_outputs(notebook: Path, executed: Path) -> None:
    """Give a notebook the outputs of its executed copy and nothing else of it.

    Cells are numbered from 1, metadata keep what `CELL` names, the kernel is python3; what
    papermill and widgets left behind stays out.

    Raises:
        ValueError: the copy has other code.
    """
    ours = json.loads(notebook.read_text(encoding="utf8"))
    code = [cell for cell in ours["cells"] if cell["cell_type"] == "code"]
    # without the one that papermill injected
    made = [x for x in workbook.cells(executed, "code") if "injected-parameters" not in x["tags"]]
    for number, (cell, ran) in enumerate(zip(code, made, strict=True), start=1):
        if "".join(cell["source"]) != ran["source"]:
            raise ValueError(f"{executed} has other code than {notebook} in code cell {number}")
        for output in ran["outputs"]:
            output.get("data", {}).pop(WIDGET, None)
            if "execution_count" in output:
                output["execution_count"] = number
        cell |= {"execution_count": number, "outputs": ran["outputs"]}
    for cell in ours["cells"]:
        cell["metadata"] = {k: v for k, v in cell["metadata"].items() if k in CELL}
    ours["metadata"] = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    with workbook.writing(notebook) as aside:
        text = json.dumps(ours, indent=1, sort_keys=True, ensure_ascii=False)
        aside.write_text(text + "\n", encoding="utf8")


def kept(root: Path) -> dict[str, dict]:
    """Keep the outputs of default runs that are done, a printed line a notebook; their run.json."""
    found = {}
    for notebook in sorted((root / "notebooks").glob("*.ipynb")):
        defaults = workbook.declared(notebook)
        planned = plan(file := root / "params" / notebook.stem / f"{defaults['run']}.yaml")
        end = f"left as it is: its run {planned.run} is not done"
        if planned.parameters != defaults:
            end = f"left as it is: {file} sets other values than the notebook's defaults"
        elif done(planned):
            keep_outputs(notebook, planned.directory / "executed.ipynb")
            found[notebook.stem], end = record.read(planned.directory), "outputs kept"
        print(f"{notebook.stem:30} {end}")
    return found


def main() -> None:
    """Outputs of the default runs go to notebooks/, their numbers into the tables of READMEs."""
    root = workbook.root()
    runs = kept(root)
    tables = {paper: pages.rows(root, paper) for paper in gallery.PAPERS}
    own = own_data.table()
    pages.update(root / "README.md", {"results": own_data.front(own, pages.front(root))})
    taken = own["within"] != ""
    tables |= {"counted": own_data.counted(own), "own data": own_data.shown(own[taken])}
    tables |= {"no difference": own_data.shown(own[~taken]), "draws": own_data.draws()}
    tables |= {"fast": own_data.fast(), "fast means": own_data.fast_means()}
    tables |= {"ingredients": own_data.ingredients()}
    tables |= {"precisions": own_data.precisions(), "norms": own_data.norms()}
    tables |= {"findings": pages.findings(root), "decided": own_data.decided()}
    tables["shown"] = gallery.counted(gallery.shown(gallery.artefacts(root)))
    pages.update(root / "figures" / "README.md", tables)
    course_index.measure(root, runs)
    course_index.update(root)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()  # --help changes nothing
    main()
