"""The command `osnb`. Rooms are imported inside the commands, so that `--help` is at once."""

import errno
import os
import re
from importlib import metadata

import typer
from typer.core import TyperGroup

from osnb.book import record
from osnb.book.cli import look, make, more, scores

FAILED, REFUSED, INTERRUPTED = 1, 2, 130
REFUSALS = (ValueError, KeyError, FileNotFoundError, IsADirectoryError, NotADirectoryError)


class Polite(TyperGroup):
    """Commands whose errors are one sentence and an exit code; OSNB_DEBUG=1 shows where from."""

    def invoke(self, ctx):
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader of our output has seen enough
            raise
        except (OSError, ValueError, KeyError, ImportError) as error:
            if os.environ.get("OSNB_DEBUG"):
                raise
            typer.echo(f"osnb: {record.plain(_sentence(error))}", err=True)
            refused = isinstance(error, REFUSALS)
            raise typer.Exit(REFUSED if refused else FAILED) from None
        except KeyboardInterrupt:
            typer.echo("\nosnb: interrupted; the same command continues", err=True)
            raise typer.Exit(INTERRUPTED) from None


def _sentence(error: Exception) -> str:
    """What an error says, without the quotes of a KeyError or the number of an OSError."""
    if isinstance(error, ModuleNotFoundError) and (extra := extra_with(error.name or "")):
        return f"this needs {error.name}, of the extra {extra}: pip install 'osnb[{extra}]'"
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])
    if not isinstance(error, OSError) or not error.strerror:
        return str(error) or type(error).__name__
    full = "the disk is full, but finished files are whole"
    reason = full if error.errno == errno.ENOSPC else error.strerror
    return f"{reason}: {error.filename}" if error.filename else reason


def extra_with(module: str) -> str:
    """The extra of the package that brings a module; nothing if none does."""
    name = re.escape(module.partition(".")[0].replace("_", "-"))
    pattern = re.compile(rf"{name}\b[^-].*extra == ['\"](\w+)")
    found = map(pattern.match, metadata.requires("osnb") or ())
    return next((match[1] for match in found if match), "")


app = typer.Typer(
    cls=Polite,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Open-set recognition, reproducibly: run notebooks, make lists, see what is done.",
)
COMMANDS = (make.run, make.reproduce, *scores.COMMANDS, look.status, look.show, *more.COMMANDS)
for command in COMMANDS:
    app.command(command.__name__.rstrip("_"))(command)
app.add_typer(more.new, name="new")
