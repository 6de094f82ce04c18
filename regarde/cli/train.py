"""`regarde train`: from data to a model, with everything that was inferred printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regarde.cli.streams import warn, write
from regarde.errors import UsageError


def train(
    data: Annotated[
        str | None, typer.Argument(help="An embedded data set (dates, copy, reverse, sort), a file of pairs, or -.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="A published model, for example rnnsearch-small.")] = None,
    recipe: Annotated[Path | None, typer.Option(help="A TOML file of settings.")] = None,
    source: Annotated[Path | None, typer.Option(help="Source sentences, line-aligned with --target.")] = None,
    target: Annotated[Path | None, typer.Option(help="Target sentences, line-aligned with --source.")] = None,
    valid: Annotated[
        list[Path] | None, typer.Option(help="Pairs to validate on; twice for a source and a target file.")
    ] = None,
    columns: Annotated[str, typer.Option(help="Columns of a table, source:target, for example 1+2:3.")] = "",
    on_error: Annotated[str, typer.Option(help="A line that is no pair: stop, or skip and count it.")] = "stop",
    out: Annotated[Path | None, typer.Option(help="The run folder; runs/NAME if not given.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Change a setting, for example model.hidden=256.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "cpu",
    threads: Annotated[int, typer.Option(min=0, help="Threads; 0 for torch's own choice.")] = 0,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the resolved settings, train nothing.")
    ] = False,
) -> None:
    """Train a model on pairs of text. Tokenizers, split and sizes are inferred and printed unless you say them.

    Example: regarde train my.tsv --set training.steps=2000 --out runs/mine
    """
    import torch

    from regarde import config
    from regarde.cli.display import TrainingDisplay
    from regarde.training.prepare import prepare
    from regarde.training.start import compose, default_folder, start

    if threads:
        torch.set_num_threads(threads)
    given = {
        "name": data or "",
        "source": str(source or ""),
        "target": str(target or ""),
        "valid": [str(path) for path in valid or []],
        "columns": columns,
        "on_error": on_error,
    }
    path = out or default_folder(data or str(source or "run"))
    if not print_config and path.exists() and any(path.iterdir() if path.is_dir() else [path]):
        raise UsageError(f"{path}: exists already and is never overwritten. Give another --out, or move it away.")
    prepared = prepare(compose(given, preset=preset, recipe=recipe, settings=settings or []))
    if print_config:
        write([config.dump(prepared.recipe)])
        return
    for note in prepared.notes:
        warn(note)
    with TrainingDisplay(prepared.recipe.training.steps) as display:
        run = start(prepared, path, display, device=_device(device))
    best = run.outcome.best
    warn(f"{best.metric.show(best.value)} after {best.step:,} steps, {run.outcome.seconds:.0f} s in all")
    warn(f"the model is in {run.folder}. Try: echo TEXT | regarde translate {run.folder}")


def _device(name: str) -> str:
    import torch

    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return next(device for device in ("cuda", "mps", "cpu") if available[device])
    if not available.get(name, False):
        have = ", ".join(device for device, there in available.items() if there)
        raise UsageError(f"--device {name}: not available here. Available: {have}.")
    return name
