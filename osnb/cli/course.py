"""The command that makes copies of the course."""

from pathlib import Path
from typing import Annotated

import typer


def course(
    out: Annotated[Path | None, typer.Option(help="New folder, or a .zip with --bundle.")] = None,
    teacher: Annotated[bool, typer.Option("--teacher", help="Keep solutions, answers.")] = False,
    bundle: Annotated[bool, typer.Option("--bundle", help="For rooms without a network.")] = False,
    wheels: Annotated[Path | None, typer.Option(help="Folder of wheels to pack.")] = None,
    check: Annotated[Path | None, typer.Option(help="Bundle to hold against its sums.")] = None,
):
    """Write the students' copy of the course, the lecturer's, or an offline bundle."""
    from osnb import course

    if check:
        if out or teacher or bundle or wheels:
            raise ValueError("--check FILE takes no other option")
        print(f"{check}: {course.check(check)} files, as its checksum file says")
        return
    if not out:
        raise ValueError("needed: --out FOLDER, --bundle --out FILE.zip, or --check FILE")
    if (teacher and bundle) or (wheels and not bundle):
        raise ValueError("--bundle is the students', so without --teacher; --wheels needs it")
    found, notes = course.bundle(out, wheels=wheels) if bundle else (None, [])
    found = course.build(out, teacher=teacher) if found is None else found
    if found:
        print(*found, sep="\n")
        typer.echo(f"osnb: {len(found)} leaks; {out} was not written", err=True)
        raise typer.Exit(1)
    whose = "the lecturer's copy, with all solutions" if teacher else "the students' copy"
    print(*(notes or [f"{out}: {whose}"]), sep="\n")


COMMANDS = {"course": course}
