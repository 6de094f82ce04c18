"""The command line: one file for each command, imported only if it is used; heavy modules when a command needs them."""

from __future__ import annotations

import errno
import keyword
import os
import sys
import warnings
from importlib import import_module
from inspect import getdoc
from typing import Annotated, Any

import typer

import regarde
from regarde.errors import DiskError, RegardeError, UsageError, is_out_of_memory, missing_extra, show_warning, warn
from regarde.process import SAFE_PATH
from regarde.streaming.streams import ReaderLeft, abandon

INTERRUPTED = 130
DEBUG = "REGARDE_DEBUG"  # if set, an unexpected error prints its traceback
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG}
_Misuse: Any = typer.BadParameter.__mro__[1]  # click's UsageError, be it in click or in typer's own copy of click

COMMANDS = (
    *("demo", "train", "translate", "predict", "generate", "forecast", "score", "show"),
    *("align", "aer", "evaluate", "compare", "lab", "inspect"),
    *("models", "config", "data", "search-params", "average", "calibrate", "quantize", "shortlist", "import", "export"),
    *("serve", "studio", "doctor"),
)  # each a function in a module of its name; import_ where the name is a word of Python
RENAMED = {"--symmetrise": "--symmetrize", "--tokenise": "--tokenize"}  # British spelling


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"regarde {regarde.__version__}")
        raise typer.Exit


def _alone(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, metavar="", help="Print the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(UsageError.exit_code)


def app(names: tuple[str, ...] = COMMANDS) -> typer.Typer:
    """The app with these commands, or with a list of all. A docstring ends with the example of its command."""
    made = typer.Typer(
        name="regarde",
        help="Train models with attention, translate, tag, write and forecast with them, and see what they attend to.",
        epilog="First steps: regarde demo. Complete commands, presets, data sets and runs: --install-completion",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback(invoke_without_command=True)(_alone)
    for name in names or COMMANDS:
        own = f"{name}_" if keyword.iskeyword(name) else name.replace("-", "_")
        command = getattr(import_module(f"regarde.cli.{own}"), own)
        *text, example = (" ".join(part.split()) for part in (getdoc(command) or "").split("\n\n"))
        made.command(name, help="\n\n".join(text), epilog=example)(command if names else _listed)
    return made


def _listed() -> None:
    """A command in the list of all, which needs no options: to read those of all commands would take time."""


def run() -> None:
    """Run a command; any error is one line and an exit code, never a traceback."""
    os.environ[SAFE_PATH] = "1"  # also for the Python processes that a library starts
    with warnings.catch_warnings():
        warnings.showwarning = show_warning
        sys.exit(_run())


def _run() -> int:
    sys.argv[1:] = [_renamed(word) for word in sys.argv[1:]]
    try:
        words = _completed() or [word for word in sys.argv[1:] if not word.startswith("-")][:1]
        used = tuple(name for name in COMMANDS if words == [name])  # to build the others would take time
        result = app(used)(prog_name="regarde", standalone_mode=False)
        code = result if isinstance(result, int) else 0
        if code == INTERRUPTED:  # typer caught it before we could
            raise KeyboardInterrupt
    except (ReaderLeft, SystemExit):  # rich exits where the reader of a help text has left
        code = 0
    except RegardeError as error:
        code = _fail(str(error), error.exit_code)
    except _Misuse as error:
        path = error.ctx.command_path if error.ctx else "regarde"
        message = error.format_message()
        stop = "" if message.endswith(("?", "!", ".")) else "."
        code = _fail(f"{message}{stop} See: {path} --help", UsageError.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        code = _fail("interrupted", INTERRUPTED)
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        code = _unexpected(error)
    return code


def _completed() -> list[str]:
    """The command whose arguments a shell completes; none unless it does."""
    words = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    return words.split()[1:2] if "_REGARDE_COMPLETE" in os.environ else []


def _renamed(word: str) -> str:
    """An option of version 0.1 by its name of today."""
    option, equals, value = word.partition("=")
    return f"{RENAMED.get(option, option)}{equals}{value}"


def _unexpected(error: Exception) -> int:
    if isinstance(error, ModuleNotFoundError) and (missing := missing_extra(error)) is not error:
        return _fail(str(missing), RegardeError.exit_code)
    if is_out_of_memory(error):
        return _fail("out of memory. Make the model, the batch or the beam smaller.", RegardeError.exit_code)
    if isinstance(error, OSError) and error.strerror:
        abandon()
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror}.", DiskError.exit_code if error.errno in _DISK else 1)
    message = f"unexpected {type(error).__name__}: {error}. This is a bug of Regarde, please report it"
    return _fail(f"{message}; {DEBUG}=1 prints the traceback.", RegardeError.exit_code)


def _fail(message: str, code: int) -> int:
    warn(message)
    return code
