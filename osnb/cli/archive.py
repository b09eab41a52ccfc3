"""Commands on finished runs: to and from an archive, and whether their results still follow."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from osnb.cli.lines import written

Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]


def export(
    runs: Annotated[list[str], typer.Argument(help="RUN, NOTEBOOK/RUN, or patterns with * ...")],
    out: Annotated[Path, typer.Option(help="Zip file to write.")],
    force: Force = False,
):
    """Pack finished runs with params, environment and checksums, for an archive with a DOI."""
    from osnb import archive

    print(*archive.pack(runs, out, force=force), sep="\n")


def import_(
    file: Annotated[Path, typer.Argument(help="Archive that `osnb export` wrote.")],
    force: Force = False,
):
    """Check an archive and put its runs where `osnb run` would have left them."""
    from osnb import archive

    found = archive.unpack(file, force=force)
    for run, word in found.items():
        print(f"{run:50} {word}")
    if any("other code" in word for word in found.values()):
        print("made with other code: results notebooks read it, osnb reproduce would train again")
    print(f"{len(found)} runs; osnb status lists them, osnb reproduce skips what is up to date")


def verify(
    file: Annotated[
        Path | None, typer.Option("--json", help="File to write as well; - prints it alone.")
    ] = None,
):
    """Say which figures, tables and scores no longer follow from code, params and inputs."""
    from osnb.verify import VERDICTS
    from osnb.verify import verify as verified

    rows = verified()
    if file:
        written(file, rows)
    counts = Counter(row["verdict"] for row in rows)
    if str(file) != "-":
        for row in rows:
            if row["verdict"] != "follows":
                print(f"{row['verdict']:10} {row['artefact']}: {row['what']}")
        said = ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name])
        print(f"{len(rows)} artefacts: {said or 'none'}")
    raise typer.Exit(0 if counts["follows"] == len(rows) else 1)


COMMANDS = {"export": export, "import": import_, "verify": verify}
