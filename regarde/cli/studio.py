"""`regarde studio`: the page that shows attention at work."""

from __future__ import annotations

import socket
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from regarde.cli import completion, options
from regarde.cli.options import argument, option
from regarde.engines.devices import CORES
from regarde.errors import FolderError, UsageError, warn

PORT = 5040
RUNS = Path("runs")


def studio(
    runs: Annotated[
        list[str] | None,
        argument(
            "[RUN...]",
            "Runs, trained or in training, or NAME=RUN to rename. Default: all in runs/.",
            complete=completion.named_runs,
        ),
    ] = None,
    port: Annotated[
        int | None,
        option("N", f"Port to listen on; 0 chooses a free port. Default: {PORT} if it is free.", least=0, most=65535),
    ] = None,
    report: Annotated[
        list[Path] | None, option("FOLDER", "Show the report of regarde lab in FOLDER. Repeatable.")
    ] = None,
    threads: options.ServerThreads = 0,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
) -> None:
    """Show in a web page how models translate: each decoder step, alignments, the search tree, and runs in training.

    Example: regarde studio runs/dates
    """
    from regarde.folder.forecasting import load_forecasters
    from regarde.serving.app import Settings, serve
    from regarde.serving.models.catalog import catalog
    from regarde.serving.routes import reports
    from regarde.serving.routes.runs import has_model, is_run
    from regarde.serving.routes.studio import StudioContent

    given = catalog(runs or _default_runs())
    for folder in given.values():
        if not is_run(folder):
            wrong = "not a run folder (no config.toml)" if folder.exists() else "no such folder"
            raise FolderError(f"{folder}: {wrong}. Give a folder that regarde train has created.")
    models = {name: folder for name, folder in given.items() if has_model(folder)}
    forecasters = load_forecasters(models)
    settings = Settings(
        {name: folder for name, folder in models.items() if name not in forecasters},
        forecasters,
        port=_free_port() if port is None else port,
        threads=threads or max(1, CORES - 1),
        studio=StudioContent(runs=given, reports=reports.read(report or [])),
    )

    def ready(address: str) -> None:
        warn(f"studio at {address}")
        if browser:  # in a thread, because some browsers block the caller
            threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()

    serve(settings, ready)


def _default_runs() -> list[str]:
    from regarde.serving.routes.runs import is_run

    found = sorted(path for path in RUNS.iterdir() if is_run(path)) if RUNS.is_dir() else []
    if not found:
        raise UsageError("No run was given, and there is none in runs/. Give RUN, or create one: regarde demo")
    return [str(path) for path in found]


def _free_port() -> int:
    """The usual port, so that links stay valid, or 0 (any free port) if it is in use."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", PORT))
        except OSError:
            return 0
    return PORT
