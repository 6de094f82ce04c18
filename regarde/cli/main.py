"""The command line: one file per command, put together here. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import copy
import errno
import os
import sys
from collections.abc import Callable
from inspect import getdoc
from typing import Annotated, Any

import typer

import regarde
from regarde.cli.aer import aer
from regarde.cli.align import align
from regarde.cli.average import average
from regarde.cli.compare import compare
from regarde.cli.data import data
from regarde.cli.demo import demo
from regarde.cli.doctor import doctor
from regarde.cli.evaluate import evaluate
from regarde.cli.inspect import inspect
from regarde.cli.lab import lab
from regarde.cli.models import models
from regarde.cli.quantize import quantize
from regarde.cli.search_params import search_params
from regarde.cli.serve import serve
from regarde.cli.shortlist import shortlist
from regarde.cli.show import show
from regarde.cli.streams import ReaderLeft, abandon, warn
from regarde.cli.studio import studio
from regarde.cli.train import train
from regarde.cli.translate import translate
from regarde.errors import DiskError, RegardeError, UsageError, is_out_of_memory, missing_extra

INTERRUPTED = 130
DEBUG = "REGARDE_DEBUG"  # set to anything, an unexpected error shows where it came from
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG}
_Misuse: Any = typer.BadParameter.__mro__[1]  # click's UsageError, be it in click or in typer's own copy of click

app = typer.Typer(
    name="regarde",
    help="Attentional sequence-to-sequence learning: train, translate, and see what attention looked at.",
    epilog="First steps: regarde demo",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"regarde {regarde.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, metavar="", help="Print the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(UsageError.exit_code)


def _add(command: Callable[..., None]) -> None:
    """The last paragraph of a command's docstring is its example and stands at the end of its help."""
    *text, example = (" ".join(part.split()) for part in (getdoc(command) or "").split("\n\n"))
    app.command(help="\n\n".join(text), epilog=example)(command)


_COMMANDS: tuple[Callable[..., None], ...] = (
    *(demo, train, translate, show),
    *(align, aer, evaluate, compare, lab, inspect),
    *(models, data, search_params, average, quantize, shortlist),
    *(serve, studio, doctor),
)
for _command in _COMMANDS:
    _add(_command)


def run() -> None:
    """Run a command; whatever goes wrong ends in one line and an exit code, never in a traceback."""
    try:
        result = _asked(sys.argv[1:])(prog_name="regarde", standalone_mode=False)
        code = result if isinstance(result, int) else 0
        if code == INTERRUPTED:  # typer caught it before we could
            raise KeyboardInterrupt
    except ReaderLeft:
        code = 0
    except RegardeError as error:
        code = _fail(str(error), error.exit_code)
    except _Misuse as error:
        path = error.ctx.command_path if error.ctx else "regarde"
        code = _fail(f"{_sentence(error.format_message())} See: {path} --help", UsageError.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        code = _fail("interrupted", INTERRUPTED)
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        code = _unexpected(error)
    sys.exit(code)


def _asked(arguments: list[str]) -> typer.Typer:
    """The app with the one command that is asked for by name: to build the others would take time."""
    given = [word.replace("-", "_") for word in arguments[:1]]
    wanted = [c for c in app.registered_commands if c.callback and [c.callback.__name__] == given]
    chosen = copy.copy(app)
    chosen.registered_commands = wanted or app.registered_commands
    return chosen


def _sentence(message: str) -> str:
    return message if message.endswith(("?", "!", ".")) else f"{message}."


def _unexpected(error: Exception) -> int:
    if isinstance(error, ModuleNotFoundError) and (missing := missing_extra(error)) is not error:
        return _fail(str(missing), RegardeError.exit_code)
    if is_out_of_memory(error):
        return _fail("out of memory. Make the model, the batch or the beam smaller.", RegardeError.exit_code)
    if isinstance(error, OSError) and error.strerror:
        abandon()
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror}.", DiskError.exit_code if error.errno in _DISK else 1)
    told = f"unexpected {type(error).__name__}: {error}. This is a mistake of ours, please report it"
    return _fail(f"{told}; {DEBUG}=1 shows where it happened.", RegardeError.exit_code)


def _fail(message: str, code: int) -> int:
    warn(message)
    return code
