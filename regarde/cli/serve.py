"""`regarde serve`: models behind HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regarde.engines.devices import CORES, MOST_THREADS
from regarde.errors import UsageError
from regarde.streaming.streams import warn, write


def serve(
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="RUN...", help="Model folders, served by their names; or NAME=RUN.")
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen at; any but 127.0.0.1 and ::1 needs --keys.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Port; 0 takes a free one.")] = 5000,
    threads: Annotated[
        int, typer.Option(min=0, max=MOST_THREADS, metavar="N", help="Threads of each model; 0: all cores but one.")
    ] = 0,
    keys: Annotated[Path | None, typer.Option(metavar="FILE", help="Require a key listed in FILE.")] = None,
    new_key: Annotated[
        str | None, typer.Option(metavar="NAME", help="Make a key, add its hash to --keys, print it, and end.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A name under which clients reach it; again for several.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(metavar="URL", help="An origin whose pages may ask; again for several.")
    ] = None,
    queue: Annotated[
        int, typer.Option(min=1, max=100_000, metavar="N", help="Sentences under way at most; more get 503.")
    ] = 256,
    deadline: Annotated[
        float, typer.Option(min=0.1, max=3600, metavar="S", help="Seconds of work for an answer; then 503.")
    ] = 30.0,
    patience: Annotated[
        float,
        typer.Option(min=0.1, max=3600, metavar="S", help="Seconds to send a request (then 408) or pause reading."),
    ] = 10.0,
    rate: Annotated[
        int, typer.Option(min=0, max=1_000_000, metavar="N", help="Requests of a key or address a minute; 0: no limit.")
    ] = 0,
    notice: Annotated[
        float, typer.Option(min=0, max=600, metavar="S", help="Seconds of not being ready before the end begins.")
    ] = 0.0,
    grace: Annotated[
        float, typer.Option(min=0.1, max=3600, metavar="S", help="Seconds from the signal until the rest gets 503.")
    ] = 30.0,
    log: Annotated[bool, typer.Option("--log", metavar="", help="Log each request, without what it says.")] = False,
    log_text: Annotated[bool, typer.Option("--log-text", metavar="", help="Log the texts too.")] = False,
) -> None:
    """Serve models over HTTP: LibreTranslate's API, and one with scores, tokens, attention and every step.

    Clients of LibreTranslate work with any model whose languages are stated. /docs describes the rest. Ctrl-C and
    SIGTERM end it in order: readiness fails, whoever was let in is answered; the exit codes are 130 and 143.

    Example: regarde serve runs/dates
    """
    if new_key is not None:
        return _make(new_key, keys)
    if not runs:
        raise UsageError("There is nothing to serve. Give a model folder: regarde serve runs/dates")
    _check_address(host, keys)

    from regarde.serving.catalog import catalog
    from regarde.serving.journal import Journal
    from regarde.serving.keys import Keys, read
    from regarde.serving.limits import Limits
    from regarde.serving.security import LOOPBACK, Policy
    from regarde.serving.server import Settings
    from regarde.serving.server import serve as run

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
        journal=Journal(requests=log or log_text, texts=log_text),
        notice=notice,
        grace=grace,
    )
    return run(settings, ready=lambda address: warn(f"serving {', '.join(settings.models)} at {address}"))


def _make(name: str, file: Path | None) -> None:
    from regarde.serving.keys import add

    if file is None:
        raise UsageError("--new-key needs a file to keep its hash in. Add --keys FILE.")
    write([f"{add(file, name)}\n"])
    warn(f"added {name} to {file}; the key itself is shown this once")


def _check_address(host: str, keys: Path | None) -> None:
    if host not in ("127.0.0.1", "::1", "localhost") and keys is None:
        remedy = "Add --keys FILE, or leave out --host"
        raise UsageError(f"--host {host}: others could reach this address, and there are no keys. {remedy}.")
