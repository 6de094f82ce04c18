"""`regarde serve`: models behind HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from regarde.cli.devices import cores
from regarde.cli.streams import warn
from regarde.training.threads import MOST_THREADS


def serve(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN", help="Model folders, served by their names; or NAME=RUN.")
    ],
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Port; 0 takes a free one.")] = 5000,
    threads: Annotated[
        int, typer.Option(min=0, max=MOST_THREADS, metavar="N", help="Threads of each model; 0: all cores but one.")
    ] = 0,
) -> None:
    """Serve models over HTTP: LibreTranslate's API, and one with scores, tokens and attention.

    Example: regarde serve runs/dates
    """
    from regarde.serving.catalogue import catalogue
    from regarde.serving.server import Settings
    from regarde.serving.server import serve as run

    settings = Settings(catalogue(runs), host=host, port=port, threads=threads or max(1, cores() - 1))
    run(settings, ready=lambda address: warn(f"serving {', '.join(settings.models)} at {address}"))
