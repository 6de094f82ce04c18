"""`regarde forecast`: continue the series of a model, or newer ones, with quantiles from sampled paths."""

from __future__ import annotations

import csv
import io
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from regarde.cli import options
from regarde.cli.options import flag, option
from regarde.display.tables import json_line
from regarde.engines.devices import choose
from regarde.errors import UsageError, warn
from regarde.streaming.streams import tell, write

if TYPE_CHECKING:
    from regarde.data.series import SeriesSet
    from regarde.forecast import Forecast

DRAWN = 3  # fans on a terminal, unless --series names others


def forecast(
    run: options.Run,
    horizon: Annotated[
        int, option("N", "Values to forecast. Default: those that the model was trained for.", least=0, most=10_000)
    ] = 0,
    quantiles: Annotated[str, option("LIST", "Quantiles, separated by commas.")] = ".1,.5,.9",
    data: Annotated[
        str, option("FILE", "Forecast from these newer histories, - for standard input. Default: those of the model.")
    ] = "",
    series: Annotated[list[str] | None, option("NAME", "Forecast this series only. Repeatable.")] = None,
    paths: Annotated[int, option("N", "Paths to sample for each series.", least=1, most=10_000)] = 100,
    seed: Annotated[int, option("N", "Seed of the paths.", least=0)] = 1,
    picture: Annotated[
        Path | None, option("FILE", "Draw the fans of at most 12 series: .svg; .png and .pdf with matplotlib.")
    ] = None,
    attention: Annotated[
        bool,
        flag(
            "--attention", "Show how much each forecast attends to each past value: a map, or with --json the weights."
        ),
    ] = False,
    as_json: Annotated[bool, flag("--json", "Print a JSON object for each series.")] = False,
    device: options.Device = "cpu",
    engine: options.Engine = "auto",
) -> None:
    """Forecast time series: CSV with the mean and quantiles of sampled paths on standard output.

    The model's folder contains the last values of the series that it was trained on; forecasts continue these values.
    With --data they continue the series of a file, in any form that regarde train reads. A model without a vector for
    each series (model.embedding=0) also forecasts series that it was not trained on.

    On a terminal, the output is a fan chart of the first series instead. The same seed gives the same paths.

    Example: regarde forecast runs/demand --horizon 48
    """
    from regarde.folder.forecasting import load_forecaster

    levels = _levels(quantiles)
    device = choose(device) if device != "cpu" else device
    model = load_forecaster(run, device=device, engine=engine)
    given = model.read(data) if data else model.histories
    if series and not data:
        given = model.chosen(series)
    elif series:
        given = _among(given, series)
    for note in given.notes if data else ():
        warn(note)
    shown = sys.stdout is not None and sys.stdout.isatty() and not as_json
    if shown and not series:
        given = _first(given, DRAWN)
    if picture:
        from regarde.visualize.fan import MOST

        if len(given) > MOST:
            problem = f"--picture: {len(given):,} series, expected at most {MOST}"
            raise UsageError(f"{problem}. Choose some: --series {given.ids[0]} --series {given.ids[1]}")
    found = model.stream(given, horizon or model.task.horizon, levels, paths, seed)
    if picture or attention or shown:
        found = iter(several := list(found))
        if picture:
            from regarde.visualize.fan import save_fans

            for note in save_fans(several, picture):
                warn(f"warning: {note}")
            warn(f"wrote {picture}")
        if (attention or shown) and not as_json:
            _draw(several, attention=attention)
            return
    if as_json:
        write(json_line(one.as_json(attention=attention)) for one in found)
        return
    write(_rows(found, levels))


def _levels(text: str) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise UsageError(f"--quantiles {text}: expected numbers between 0 and 1, for example .1,.5,.9.") from None
    if not found:
        raise UsageError("--quantiles: none given. Expected numbers between 0 and 1, for example .1,.5,.9.")
    return found


def _first(given: SeriesSet, count: int) -> SeriesSet:
    if len(given) > count:
        warn(f"{count} of {len(given):,} series. Others: --series NAME; all of them as CSV: | cat")
    return replace(given, series=given.series[:count])


def _among(given: SeriesSet, names: Sequence[str]) -> SeriesSet:
    for name in names:
        if name not in given.ids:
            raise UsageError(f"--series {name}: not in the data. Known: {', '.join(given.ids[:5])} …")
    return replace(given, series=tuple(one for one in given.series if one.id in names))


def _draw(several: Sequence[Forecast], *, attention: bool) -> None:
    from regarde.cli.show import colored
    from regarde.visualize.fan import attention_map, terminal
    from regarde.visualize.terminal import heatmap

    width = shutil.get_terminal_size().columns
    for one in several:
        tell([terminal(one, width=width), "\n"])
        if attention:
            tell([heatmap(attention_map(one), width=width, color=colored()), "\n"])


def _rows(found: Iterator[Forecast], levels: Sequence[float]) -> Iterator[str]:
    yield _row(["series", "time", "mean", *(f"{level:g}" for level in levels)])
    for one in found:
        columns = [one.quantiles[level] for level in levels]
        for t, time in enumerate(one.times):
            yield _row([one.series, time, f"{one.mean[t]:.8g}", *(f"{column[t]:.8g}" for column in columns)])


def _row(cells: list[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()
