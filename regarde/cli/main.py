"""The command line: one file per command, put together here. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import click
import typer

import regarde
from regarde.cli.data import data
from regarde.cli.demo import demo
from regarde.cli.doctor import doctor
from regarde.cli.show import show
from regarde.cli.train import train
from regarde.cli.translate import translate
from regarde.errors import RegardeError, missing_extra

app = typer.Typer(
    name="regarde",
    help="Attentional sequence-to-sequence learning: train, translate, and see what attention looked at.",
    epilog="First steps: regarde demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, train, translate, show, data, doctor):
    app.command()(command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"regarde {regarde.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def run() -> None:
    """Run a command; a user's mistake ends in one line and its exit code, never in a traceback."""
    try:
        code = app(standalone_mode=False)
    except RegardeError as error:
        code = _fail(str(error), error.exit_code)
    except ModuleNotFoundError as error:
        problem = missing_extra(error)
        if problem is error:
            raise
        code = _fail(str(problem), RegardeError.exit_code)
    except click.ClickException as error:
        code = _fail(error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        code = _fail("interrupted", 130)
    except BrokenPipeError:
        # the reader has left; Python flushes once more at its end: let that go nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> int:
    print(f"regarde: {' '.join(message.split())}", file=sys.stderr)
    return code
