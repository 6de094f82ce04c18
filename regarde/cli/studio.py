"""`regarde studio`: the page where one watches attention work."""

from __future__ import annotations

import socket
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from regarde.engines.devices import CORES, MOST_THREADS
from regarde.errors import FolderError, UsageError
from regarde.streaming.streams import warn

PORT = 5040
RUNS = Path("runs")


def studio(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN...]", help="Runs, trained or in training; or NAME=RUN. All in runs/ unless said."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, metavar="N", help=f"Port; {PORT} unless said, or a free one.")
    ] = None,
    report: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="What regarde lab has written: quality by length. May be given again."),
    ] = None,
    threads: Annotated[
        int, typer.Option(min=0, max=MOST_THREADS, metavar="N", help="Threads of each model; 0: all cores but one.")
    ] = 0,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
) -> None:
    """Open the page that shows how models translate: step by step, aligned, as a search tree, while they train.

    Example: regarde studio runs/dates
    """
    from regarde.serving import reports
    from regarde.serving.catalog import catalog
    from regarde.serving.runs import is_run, with_model
    from regarde.serving.server import Settings, serve
    from regarde.serving.studio import Shown

    given = catalog(runs or _there())
    for name, folder in given.items():
        if not is_run(folder):
            raise FolderError(f"{folder}: no run. Give a folder that regarde train has made; {name} has no config.toml")
    settings = Settings(
        {name: folder for name, folder in given.items() if with_model(folder)},
        port=_free() if port is None else port,
        threads=threads or max(1, CORES - 1),
        studio=Shown(runs=given, reports=reports.read(report or [])),
    )

    def ready(address: str) -> None:
        warn(f"studio at {address}")
        if browser:  # some browsers keep who opens them waiting
            threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()

    serve(settings, ready)


def _there() -> list[str]:
    from regarde.serving.runs import is_run

    found = sorted(path for path in RUNS.iterdir() if is_run(path)) if RUNS.is_dir() else []
    if not found:
        raise UsageError("No run was given and there is none in runs/. Give RUN, or make one: regarde demo")
    return [str(path) for path in found]


def _free() -> int:
    """The usual port, so that links stay good; any other where it is taken."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", PORT))
        except OSError:
            return 0
    return PORT
