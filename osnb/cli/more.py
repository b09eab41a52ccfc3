"""Commands that run no notebook: claims, class lists, and what ships with the package."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from osnb.cli.lines import written

PAPERS = {"palechor2023": "1", "vaze2022": "2", "kim2021": "3"}  # tens digit of their notebooks
data = typer.Typer(no_args_is_help=True, help="Build the data that ships with the package.")


def claims(
    paper: Annotated[str, typer.Option(help=f"One of {', '.join(PAPERS)}; all if left out.")] = "",
    size: Annotated[str, typer.Option(help="printed, mini, tiny or paper; all if left out.")] = "",
    file: Annotated[
        Path | None, typer.Option("--json", help="File to write as well; - prints it alone.")
    ] = None,
):
    """Decide what the papers claim: on their printed numbers and on the finished runs."""
    from osnb import claims

    sizes = [size] if size else [*claims.SIZES]
    decided = claims.decide([paper] if paper else [*PAPERS], sizes)
    if file:
        written(file, json.loads(decided.to_json(orient="records")))  # which has no NaN
    if str(file) != "-":
        print(*claims.report(decided), sep="\n")


def outputs():
    """For developers: keep default runs' outputs in notebooks/, their numbers in both READMEs."""
    from osnb import gallery, index, record, repro
    from osnb.publish import keep_outputs

    kept = {}
    for notebook in sorted((repro.root() / "notebooks").glob("*.ipynb")):
        executed, reason = _default_run(notebook)
        if not reason:
            keep_outputs(notebook, executed)
            kept[notebook.stem] = record.read(executed.parent) or {}
        print(f"{notebook.stem:30} {reason or 'outputs kept'}")
    root = repro.root()
    found = {paper: gallery.rows(root, paper) for paper in gallery.COMPARED}
    found["findings"] = gallery.findings(root)
    gallery.update(root / "README.md", found)
    index.measure(root, kept)
    index.update(root)


def _default_run(notebook: Path) -> tuple[Path, str]:
    """The executed copy with the notebook's own parameters, and why it cannot serve, if so."""
    from osnb import repro
    from osnb.run import done, plan

    defaults = repro.declared(notebook)
    file = repro.root() / "params" / notebook.stem / f"{defaults['run']}.yaml"
    found = plan(file)
    executed = found.directory / "executed.ipynb"
    if found.parameters != defaults:
        return executed, f"left as it is: {file} sets other values than the notebook's defaults"
    return executed, "" if done(found) else f"left as it is: its run {found.run} is not done"


def protocol(
    name: Annotated[str, typer.Argument(help="p1, cifar10, ssb_cub, ...; a wrong one lists all")],
    split: Annotated[int, typer.Option(help="Of protocols that have several: 0 to 4.")] = 0,
    images: Annotated[Path | None, typer.Option(help="Folder of the data set.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the file lists.")] = None,
    reader: Annotated[str, typer.Option(help="How to read the data set.")] = "ilsvrc",
):
    """Print a protocol's classes as csv, or write the file lists of a data set in it."""
    from osnb import protocols

    if (images is None) != (out is None):
        raise ValueError("file lists need both --images DIR and --out DIR")
    try:
        rule = protocols.PROTOCOLS.bind(name, split=split)
    except TypeError as error:
        raise ValueError(f"protocol {error}, so it can only be made in a notebook") from None
    if images is None:
        print(protocols.class_list(rule()).to_csv(index=False, lineterminator="\n"), end="")
        return
    _file_lists(name, rule, images, out, reader)


def _file_lists(name: str, rule: Callable, images: Path, out: Path, reader: str) -> None:
    from osnb import protocols, repro
    from osnb.datasets import READERS

    files = READERS[reader](images).rows
    classes = rule(available=set(files["wnid"]))
    if "path" in files:
        files = files.assign(sample=files["path"])
    for split, table in protocols.file_lists(classes, files).items():
        with repro.writing(out / f"{name}_{split}.csv") as aside:
            table.to_csv(aside, index=False, header=False, lineterminator="\n")
        print(f"{out / f'{name}_{split}.csv'}: {len(table)} images")
    print(protocols.describe(classes))


@data.command()
def wordnet(
    wordnet: Annotated[Path | None, typer.Option(help="WordNet 3.0's dict folder.")] = None,
    out: Annotated[Path | None, typer.Option(help="File to write.")] = None,
):
    """Build the noun hierarchy from WordNet 3.0, by default in its place in the package."""
    from osnb import hierarchy
    from osnb.wordnet import build

    path = out or hierarchy.NOUNS
    build(path, folder=wordnet)
    print(f"{path}: {path.stat().st_size:,} bytes")


COMMANDS = {"claims": claims, "outputs": outputs, "protocol": protocol}
