"""`osnb new`: what a person starts from with images or a loss of their own."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from osnb.base import workbook

TEMPLATES = workbook.PACKAGE / "book" / "new"
new = typer.Typer(no_args_is_help=True, help="Files to start from: an example, a loss.")


@new.command()
def example(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="New or empty folder.")],
    per_class: Annotated[int, typer.Option(min=10, max=200, help="Images of each class.")] = 100,
):
    """Ten classes of drawings as folders of png, their roles in a csv, three trainings."""
    from osnb import datasets, protocols

    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty: name a new folder")
    shutil.copytree(TEMPLATES / "example", folder, dirs_exist_ok=True)
    drawn = protocols.quickdraw.drawings().reset_index().set_index("name")["wnid"]
    images = datasets.READERS["quickdraw"](side=64)
    for name in protocols.read_csv(folder / "roles.csv", "class", "role")["class"]:
        rows = images.rows[images.rows["wnid"] == drawn[name]].head(per_class)
        datasets.write_png(images, rows.index.to_numpy(), folder / "images" / name)
    print(f"{folder}: roles.csv, my.yaml, ten folders of images, three trainings. Next:")
    print(f"cd {folder}\nosnb run 21_vaze_train --dry-run\nosnb run 21_vaze_train 50_own")


@new.command()
def loss(name: Annotated[str, typer.Argument(help="Of the function, and of its file.")]):
    """A loss and its test, NAME.py and test_NAME.py; use it by -p loss=NAME:NAME."""
    if not name.isidentifier():
        raise ValueError(f"a loss has the name of a Python function; got {name!r}")
    files = {f"{name}.py": "loss.txt", f"test_{name}.py": "test_loss.txt"}
    if there := [file for file in files if Path(file).exists()]:
        raise ValueError(f"{there[0]} is there already: choose another name")
    for file, template in files.items():
        text = (TEMPLATES / template).read_text(encoding="utf8").replace("NAME", name)
        Path(file).write_text(text, encoding="utf8")
        print(file)
