"""`regarde serve`: serve models over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from regarde.cli import completion, options
from regarde.cli.options import argument, flag, option
from regarde.engines.devices import CORES
from regarde.errors import UsageError, warn
from regarde.streaming.streams import write


def serve(
    runs: Annotated[
        list[str] | None,
        argument(
            "RUN...",
            "Model folders, or NAME=RUN to rename. The first model is the default.",
            complete=completion.named_runs,
        ),
    ] = None,
    host: Annotated[
        str, option("ADDRESS", "Address to listen on. All except 127.0.0.1, ::1 and localhost need --keys.")
    ] = "127.0.0.1",
    port: Annotated[int, option("N", "Port to listen on; 0 chooses a free port.", least=0, most=65535)] = 5000,
    threads: options.ServerThreads = 0,
    keys: Annotated[Path | None, option("FILE", "Require an API key listed in FILE.")] = None,
    new_key: Annotated[
        str | None, option("NAME", "Create an API key, add its hash to --keys FILE, print the key, and exit.")
    ] = None,
    allow_host: Annotated[list[str] | None, option("NAME", "Accept requests for this host name. Repeatable.")] = None,
    allow_origin: Annotated[
        list[str] | None, option("URL", "Accept requests from web pages of this origin (CORS). Repeatable.")
    ] = None,
    queue: Annotated[
        int, option("N", "Maximum number of sentences in progress; further requests get 503.", least=1, most=100_000)
    ] = 256,
    deadline: Annotated[
        float, option("S", "Maximum seconds to compute a response; then 503.", least=0.1, most=3600)
    ] = 30.0,
    patience: Annotated[
        float,
        option(
            "S",
            "Maximum seconds to receive a request (then 408), or without a client reading its response.",
            least=0.1,
            most=3600,
        ),
    ] = 10.0,
    rate: Annotated[
        int, option("N", "Maximum requests per minute of each key or address; 0: no limit.", least=0, most=1_000_000)
    ] = 0,
    notice: Annotated[
        float,
        option("S", "At shutdown, seconds between a failing /health/ready and rejecting requests.", least=0, most=600),
    ] = 0.0,
    grace: Annotated[
        float, option("S", "At shutdown, seconds until unanswered requests get 503.", least=0.1, most=3600)
    ] = 30.0,
    log: Annotated[bool, flag("--log", "Log each request, without its text.")] = False,
    log_text: Annotated[bool, flag("--log-text", "Log each request with its text.")] = False,
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

    from regarde.folder.forecasting import load_forecasters
    from regarde.serving.app import Settings
    from regarde.serving.app import serve as run
    from regarde.serving.http.keys import Keys, read
    from regarde.serving.http.limits import Limits
    from regarde.serving.http.log import Log
    from regarde.serving.http.security import LOOPBACK, Policy
    from regarde.serving.models.catalog import catalog

    named = f"[{host}]" if ":" in host else host
    folders = catalog(runs)
    forecasters = load_forecasters(folders)
    settings = Settings(
        models={name: folder for name, folder in folders.items() if name not in forecasters},
        forecasters=forecasters,
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
    return run(settings, ready=lambda address: warn(f"serving {', '.join(folders)} at {address}"))


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
