"""`regarde serve`: serve models over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regarde.engines.devices import CORES, MOST_THREADS
from regarde.errors import UsageError
from regarde.streaming.streams import warn, write


def serve(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN...", help="Model folders, or NAME=RUN to rename. The first model is the default."),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Address to listen on. All except 127.0.0.1, ::1 and localhost need --keys."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Port to listen on; 0 chooses a free port.")
    ] = 5000,
    threads: Annotated[
        int, typer.Option(min=0, max=MOST_THREADS, metavar="N", help="Threads for each model; 0: all cores but one.")
    ] = 0,
    keys: Annotated[Path | None, typer.Option(metavar="FILE", help="Require an API key listed in FILE.")] = None,
    new_key: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Create an API key, add its hash to --keys FILE, print the key, and exit."),
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Accept requests for this host name. Repeatable.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="Accept requests from web pages of this origin (CORS). Repeatable."),
    ] = None,
    queue: Annotated[
        int,
        typer.Option(
            min=1, max=100_000, metavar="N", help="Maximum number of sentences in progress; further requests get 503."
        ),
    ] = 256,
    deadline: Annotated[
        float, typer.Option(min=0.1, max=3600, metavar="S", help="Maximum seconds to compute a response; then 503.")
    ] = 30.0,
    patience: Annotated[
        float,
        typer.Option(
            min=0.1,
            max=3600,
            metavar="S",
            help="Maximum seconds for a client to send a request (then 408), or to read nothing.",
        ),
    ] = 10.0,
    rate: Annotated[
        int,
        typer.Option(
            min=0, max=1_000_000, metavar="N", help="Maximum requests per minute of each key or address; 0: no limit."
        ),
    ] = 0,
    notice: Annotated[
        float,
        typer.Option(
            min=0,
            max=600,
            metavar="S",
            help="At shutdown, seconds between a failing /health/ready and rejecting requests.",
        ),
    ] = 0.0,
    grace: Annotated[
        float,
        typer.Option(min=0.1, max=3600, metavar="S", help="At shutdown, seconds until unanswered requests get 503."),
    ] = 30.0,
    log: Annotated[bool, typer.Option("--log", metavar="", help="Log each request, without its text.")] = False,
    log_text: Annotated[bool, typer.Option("--log-text", metavar="", help="Log each request with its text.")] = False,
) -> None:
    """Serve models over HTTP, with LibreTranslate's API and an API that adds scores, tokens, attention and traces.

    The page / of the server lists its models and gives examples; /docs describes every route. On Ctrl-C or SIGTERM,
    /health/ready fails, requests in progress are answered, and the server exits with code 130 or 143.

    Example: regarde serve runs/dates
    """
    if new_key is not None:
        return _create_key(new_key, keys)
    if not runs:
        raise UsageError("There is nothing to serve: no model folder was given. Try: regarde serve runs/dates")
    _check_address(host, keys)

    from regarde.serving.app import Settings
    from regarde.serving.app import serve as run
    from regarde.serving.http.keys import Keys, read
    from regarde.serving.http.limits import Limits
    from regarde.serving.http.log import Log
    from regarde.serving.http.security import LOOPBACK, Policy
    from regarde.serving.models.catalog import catalog

    named = f"[{host}]" if ":" in host else host
    settings = Settings(
        models=catalog(runs),
        host=host,
        port=port,
        threads=threads or max(1, CORES - 1),
        limits=Limits(queue=queue, deadline=deadline, patience=patience, rate=rate),
        policy=Policy(
            hosts=LOOPBACK | {named.lower()} | {name.lower() for name in allow_host or ()},
            origins=frozenset(allow_origin or ()),
            keys=read(keys) if keys else Keys(),
        ),
        log=Log(requests=log or log_text, texts=log_text),
        notice=notice,
        grace=grace,
    )
    return run(settings, ready=lambda address: warn(f"serving {', '.join(settings.models)} at {address}"))


def _create_key(name: str, file: Path | None) -> None:
    from regarde.serving.http.keys import add

    if file is None:
        raise UsageError("--new-key needs a file for the hash of the key. Add --keys FILE.")
    write([f"{add(file, name)}\n"])
    warn(f"added {name} to {file}; the key is not shown again")


def _check_address(host: str, keys: Path | None) -> None:
    if host not in ("127.0.0.1", "::1", "localhost") and keys is None:
        remedy = "Add --keys FILE, or leave out --host"
        raise UsageError(f"--host {host}: other machines can reach this address, so keys are required. {remedy}.")
