"""Commands that run no notebook: archives, claims, lists, course, report, checks, new files."""

import json as text
import os
import shutil
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from inspect import signature
from keyword import iskeyword
from pathlib import Path
from typing import Annotated

import typer

from osnb.base import workbook
from osnb.book import record
from osnb.book.cli.look import Force, Json, regular, unheld, written
from osnb.book.runs import PAPERS

GOLDEN = "First check the code against stored reference numbers (goldens): a minute."
CHECKED = "Notebooks and params files; all if left out."
COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}
new = typer.Typer(no_args_is_help=True, help="Files to start from: an example, a loss ...")
TEMPLATES = workbook.PACKAGE / "book" / "new"

TERM = "Secret of a term, for the lecturer's copy; with --learners else $OSNB_TERM."
PUBLISH = "Add citations, CODECHECK manifest, model cards, Croissant."


def export(
    runs: Annotated[list[str], typer.Argument(help="RUN, NOTEBOOK/RUN, or patterns with * ...")],
    out: Annotated[Path, typer.Option(help="Zip file to write.", callback=regular)],
    force: Force = False,
    publish: Annotated[bool, typer.Option("--publish", help=PUBLISH)] = False,
) -> None:
    """Pack finished runs into one zip file.

    It holds params, environment and checksums, for an archive with a DOI.
    """
    from osnb.book import archive

    print(*archive.pack(runs, out, force=force, publish=publish), sep="\n")


def import_(
    file: Annotated[Path, typer.Argument(help="Archive that `osnb export` wrote.")],
    force: Force = False,
) -> None:
    """Check an archive and unpack its runs.

    They lie where `osnb run` would have left them.
    """
    from osnb.book import archive

    ends = archive.unpack(file, force=force)
    for run, end in ends.items():
        print(f"{run:50} {end}")
    if any("other code" in end for end in ends.values()):
        print("made with other code: results notebooks read it, osnb reproduce would train again")
    place = workbook.out() / "runs"
    print(f"{len(ends)} runs in {place}; osnb status lists them, osnb reproduce skips what is done")


def verify(
    file: Json = None,
    golden: Annotated[bool, typer.Option("--golden", help=GOLDEN)] = False,
) -> None:
    """Say which results no longer follow from code and inputs.

    Results are figures, tables and scores; inputs are params files too.
    """
    from osnb.book import goldens, verify

    if golden:
        goldens.check()
    rows = verify.verify()
    alone = written(file, rows)
    counts = Counter(row["verdict"] for row in rows)
    wrong = [row for row in rows if row["verdict"] != "follows"]
    if not alone:
        for row in wrong:
            print(f"{row['verdict']:10} {row['artefact']}: {row['what']}")
        total = ", ".join(f"{counts[name]} {name}" for name in verify.VERDICTS if counts[name])
        print(f"{len(rows)} results: {total or 'none'}")
        unheld()
    raise typer.Exit(1 if wrong else 0)


def check(
    files: Annotated[list[Path] | None, typer.Argument(help=CHECKED)] = None,
) -> None:
    """Check notebooks and params files against the rules.

    The exit code is 1 if a rule is broken.
    """
    from osnb.book import check

    wrong = list(check.check(files or check.everything()))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{len(wrong)} broken rules")
    raise typer.Exit(1 if wrong else 0)


def claims(
    paper: Annotated[str, typer.Option(help=f"One of {', '.join(PAPERS)}; all if left out.")] = "",
    size: Annotated[str, typer.Option(help="printed, mini, tiny or paper; all if left out.")] = "",
    file: Json = None,
) -> None:
    """Decide the papers' claims, in print and on finished runs."""
    from osnb.book.cli import answers
    from osnb.evidence import claims

    sizes = [size] if size else [*claims.SIZES]
    asked = [paper] if paper else [*PAPERS]
    decided = claims.decide(asked, sizes, processes=len(asked))
    if not written(file, text.loads(decided.to_json(orient="records"))):  # which has no NaN
        print(*answers.report(decided), sep="\n")


def artefacts() -> None:
    """List the papers' tables and figures, and what ours lack."""
    from osnb.evidence import gallery

    shown = gallery.shown(gallery.artefacts(workbook.root(), workbook.out()))
    for row in shown.itertuples():
        parts = f"{row.paper:12} {row.artefact:9}", f"{row.shows:8}", row.cells, row.missing
        print(*filter(None, parts))
    print(gallery.counted(shown))


def report() -> None:
    """Make report/index.html, a site of all results.

    It shows all artefacts, the papers' numbers beside ours, and the notebooks.
    In a folder of one's own, outside of the project: its evaluations (50_own) and runs.
    """
    from osnb.book import report

    own = any(run["parameters"].get("size") == "own" for run in record.everything())
    outside = workbook.out() != workbook.root()
    made = report.strange.build() if own and outside else report.build(len(PAPERS))
    print(made)


def docs() -> None:
    """Make report/docs/index.html, the documentation.

    It is made from the pages in osnb/docs and needs no run.
    """
    from osnb.book import report

    print(report.documentation())


def protocol(
    name: Annotated[str, typer.Argument(help="p1, cifar10, ssb_cub, ...; a wrong one lists all")],
    split: Annotated[int, typer.Option(help="Split, of protocols with several: 0 to 4.")] = 0,
    images: Annotated[Path | None, typer.Option(help="Folder of the data set.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the file lists.")] = None,
    reader: Annotated[str, typer.Option(help="How to read the data set; ilsvrc if left out.")] = "",
) -> None:
    """Print a protocol's classes as csv, or write file lists."""
    from osnb import protocols

    if (images is None) != (out is None):
        raise ValueError("file lists need both --images DIR and --out DIR")
    if reader and images is None:
        raise ValueError("--reader goes with --images DIR and --out DIR")
    rule = protocols.PROTOCOLS.bind(name, split=split)
    if split and "split" not in signature(protocols.PROTOCOLS[name]).parameters:
        raise ValueError(f"there is one split of {name}, 0; got {split}")
    if images is None:
        print(protocols.class_list(rule()).to_csv(index=False, lineterminator="\n"), end="")
        return
    from osnb.datasets import READERS

    files = READERS.bind(reader or "ilsvrc", root=images)().rows
    classes = rule(available=set(files["wnid"]))
    if "path" in files:
        files = files.assign(sample=files["path"])
    for split, table in protocols.file_lists(classes, files).items():
        workbook.write_csv(out / f"{name}_{split}.csv", table, header=False)
        print(f"{out / f'{name}_{split}.csv'}: {len(table)} images")
    print(protocols.describe(classes))


def course(
    out: Annotated[Path | None, typer.Option(help="New folder, or a .zip with --bundle.")] = None,
    term: Annotated[str, typer.Option(help=TERM)] = "",
    learners: Annotated[Path | None, typer.Option(help="csv of a term's learners.")] = None,
    bundle: Annotated[bool, typer.Option("--bundle", help="For rooms without a network.")] = False,
    wheels: Annotated[Path | None, typer.Option(help="Folder of wheels to pack.")] = None,
    check: Annotated[Path | None, typer.Option(help="Check a bundle's checksums.")] = None,
    learn: Annotated[Path | None, typer.Option(help="Folder to add lacking notebooks to.")] = None,
) -> None:
    """Write a copy of the course for students or lecturers.

    Or an offline bundle.
    """
    from osnb.teach import course

    if (learn or check) and (out or term or learners or bundle or wheels or (learn and check)):
        alone = "--learn FOLDER" if learn else "--check FILE"
        raise ValueError(f"{alone} takes no other option")
    if learn or check:
        added = f"{learn}: {len(course.learn(learn))} notebooks added" if learn else ""
        print(added or f"{check}: {course.check(check)} files, as its checksum file says")
        return
    if not out:
        ways = "--out FOLDER, --bundle --out FILE.zip, --learn FOLDER, or --check FILE"
        raise ValueError(f"needed: {ways}")
    if wheels and not bundle:
        raise ValueError("--wheels needs --bundle")
    term = term or (os.environ.get("OSNB_TERM", "") if learners else "")
    if bool(learners) != bool(term) or (term and bundle):
        raise ValueError("the lecturer's copy: --term KEY --learners FILE, without --bundle")
    if learners:
        course.build_term(out, secret=term, learners=learners)
        print(f"{out}: the lecturer's copy of a term, with solutions, quizzes, exam and slides")
        return
    _students_copy(out, bundle, wheels)


def _students_copy(out: Path, bundle: bool, wheels: Path | None) -> None:
    """Write it, or print what leaks and leave with 1."""
    from osnb.teach import course

    notes = [f"{out}: the students' copy"]
    leaks, notes = course.bundle(out, wheels=wheels) if bundle else (course.build(out), notes)
    print(*(leaks or notes), sep="\n")
    if leaks:
        typer.echo(f"osnb: {len(leaks)} leaks; {out} was not written", err=True)
        raise typer.Exit(1)


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print json instead of a table.")] = False,
) -> None:
    """Say what this machine lacks, and what to do about it.

    Checked are Python, versions, torch, kernel, disk, folders and data.
    """
    from osnb.teach.doctor import examine, failed, verdict

    lines = examine()
    if json:
        content = {"ready": not failed(lines), "lines": [line._asdict() for line in lines]}
        print(text.dumps(content, indent=1))
    else:
        for line in lines:
            typer.secho(f"{line.state:5}", fg=COLOURS[line.state], nl=False)
            typer.echo(f" {line.name:24} {line.found}")
            if line.advice:
                typer.secho(f"{'':30} -> {line.advice}", bold=True)
        typer.echo(verdict(lines))
    raise typer.Exit(1 if failed(lines) else 0)


# Files to start from


@new.command()
def example(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="New or empty folder.")],
    per_class: Annotated[int, typer.Option(min=10, max=200, help="Images of each class.")] = 100,
) -> None:
    """Write an example: images, roles and trainings.

    Ten classes of drawings as folders of png, their roles in a csv, three trainings.
    """
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


def _of_kind(kind: str) -> Callable:
    """The command that writes a function of one's own and its test, with the name in them."""

    def write(name: Annotated[str, typer.Argument(help="Name of the function and of its file.")]):
        if not name.isidentifier() or iskeyword(name):
            raise ValueError(f"a {kind} has the name of a Python function; got {name!r}")
        if find_spec(name) and not Path(f"{name}.py").exists():
            raise ValueError(f"a module {name} is installed, which the file would hide: rename it")
        files = {f"{name}.py": f"{kind}.txt", f"test_{name}.py": f"test_{kind}.txt"}
        if there := [file for file in files if Path(file).exists()]:
            raise ValueError(f"{there[0]} is there already: choose another name")
        for file, template in files.items():
            text = (TEMPLATES / template).read_text(encoding="utf8").replace("NAME", name)
            Path(file).write_text(text, encoding="utf8")
            print(file)

    return write


for kind, part in {"loss": "loss", "score": "rules", "reader": "reader"}.items():
    use = f"A {kind} and its test, NAME.py and test_NAME.py; use it by -p {part}=NAME:NAME."
    new.command(kind, help=use)(_of_kind(kind))

COMMANDS = (report, docs, export, import_, verify, check, course, doctor, claims)
COMMANDS += (protocol, artefacts)
