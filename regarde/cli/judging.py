"""`regarde evaluate` and `regarde compare` of forecasters: their errors beside those of the seasonal naive forecast."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regarde.display.tables import json_line, table
from regarde.errors import DataError, UsageError, counted, warn
from regarde.streaming.streams import tell, write

if TYPE_CHECKING:
    from regarde.data.series import SeriesSet
    from regarde.evaluation.bootstrap import Bootstrap
    from regarde.evaluation.forecasts import Outcomes, Predicted
    from regarde.evaluation.metrics import Metric, MetricCounts
    from regarde.folder.loading import EngineName
    from regarde.forecast import Forecaster


@dataclass(frozen=True)
class Judging:
    """What forecasters are judged on, and how."""

    data: str
    samples: int = 1000
    seed: int = 1
    device: str = "cpu"
    engine: EngineName = "auto"
    as_json: bool = False


def are_forecasters(runs: Sequence[Path], *, given: Mapping[str, object]) -> bool:
    """Whether all runs are forecasters; an error if only some are, or if an option has no meaning for them."""
    from regarde.folder.forecasting import forecasts

    found = [forecasts(run) for run in runs]
    if any(found) and not all(found):
        raise UsageError(
            f"{runs[found.index(True)]} forecasts, {runs[found.index(False)]} does not. Compare models of one task."
        )
    for option, value in given.items() if any(found) else ():
        if value:
            raise UsageError(f"{option}: not for forecasters, whose answers are numbers. Leave it out.")
    return all(found)


def evaluate_forecaster(run: Path, judging: Judging) -> None:
    """Tables of one forecaster."""
    from regarde.evaluation.bootstrap import Bootstrap
    from regarde.evaluation.forecasts import NAIVE, at_steps, counts, parts_of, seasonal_naive

    model, outcomes, predicted = _predicted(run, judging)
    naive = seasonal_naive(outcomes)
    both = {run.name or str(run): counts(predicted, outcomes), NAIVE: counts(naive, outcomes)}
    bootstrap = Bootstrap(judging.samples, judging.seed)
    by = []
    for part in parts_of(outcomes.horizon, outcomes.histories.season):
        own, beside = (counts(*at_steps(one, outcomes, part)) for one in (predicted, naive))
        by.append((f"{part.start + 1}-{part.stop}", own, beside))
    if judging.as_json:
        records = {name: _record(found, bootstrap) for name, found in both.items()}
        steps = [{"steps": label, **_values(own), NAIVE: _values(beside)} for label, own, beside in by]
        about = {"run": str(run), "task": model.task.kind, "data": judging.data or "the end of the model's histories"}
        sizes = {"series": len(outcomes.actual), "horizon": outcomes.horizon, "season": outcomes.histories.season}
        write(
            [json_line({**about, **sizes, "engine": model.engine.name, "metrics": records, "by": {"horizon": steps}})]
        )
        return
    scope = f"{counted(len(outcomes.actual), 'series', 'series')}, horizon {outcomes.horizon}"
    tell([f"{scope}, season {outcomes.histories.season}, {model.engine.name} engine\n\n"])
    tell(_table(both, bootstrap))
    tell(["\n", *_by_horizon(by)])


def compare_forecasters(runs: Sequence[Path], judging: Judging) -> None:
    """All forecasters against the first, and the seasonal naive forecast beside them."""
    from regarde.evaluation.bootstrap import Bootstrap
    from regarde.evaluation.compare import against_first
    from regarde.evaluation.forecasts import NAIVE, counts, seasonal_naive

    found = [_predicted(run, judging) for run in runs]
    outcomes = found[0][1]
    for run, (_, own, _) in zip(runs, found, strict=True):
        if own.histories.ids != outcomes.histories.ids or own.horizon != outcomes.horizon:
            raise UsageError(
                f"{run}: other series or another horizon than {runs[0]}. Compare models of the same series."
            )
    names = [*(run.name or str(run) for run in runs), NAIVE]
    all_counts = [counts(predicted, outcomes) for _, _, predicted in found]
    all_counts.append(counts(seasonal_naive(outcomes), outcomes))
    bootstrap = Bootstrap(judging.samples, judging.seed)
    shared = [metric for metric in all_counts[0] if all(metric in each for each in all_counts)]
    rows = [against_first(metric, [each[metric] for each in all_counts], bootstrap) for metric in shared]
    if judging.as_json:
        from dataclasses import asdict

        write([json_line({"runs": names, "metrics": [asdict(row) for row in rows]})])
        return
    tell([f"{counted(len(outcomes.actual), 'series', 'series')}, horizon {outcomes.horizon}\n"])
    for row in rows:
        lines = []
        for name, standing in zip(names, row.standings, strict=True):
            apart = standing.difference
            star = "*" if apart and apart.p < 0.05 else ""
            difference = [f"{apart.value:+.4f}", f"{apart.p:.3f}{star}"] if apart else ["", ""]
            lines.append([name, row.metric.written(standing.value), *difference])
        tell(["\n", *table([row.metric.label, "value", "difference", "p"], lines)])


def _predicted(run: Path, judging: Judging) -> tuple[Forecaster, Outcomes, Predicted]:
    from regarde.evaluation.forecasts import Predicted
    from regarde.folder.forecasting import load_forecaster

    model = load_forecaster(run, device=judging.device, engine=judging.engine)
    outcomes = _outcomes(model, judging.data)
    found = model.forecast(outcomes.histories, horizon=outcomes.horizon, seed=judging.seed)
    return model, outcomes, Predicted.of(run.name, found)


def _outcomes(model: Forecaster, data: str) -> Outcomes:
    """The end of the given series; or, if they are no longer than a horizon, what follows the model's histories."""
    from regarde.data.datasets import DATASETS
    from regarde.data.tables import series_of_lines
    from regarde.evaluation.forecasts import following, split_end

    given: SeriesSet
    if data in DATASETS:
        if DATASETS[data].task != model.task.kind:
            raise UsageError(
                f"{data}: data for {DATASETS[data].task}, but the model is {model.task.noun}. Give other --data."
            )
        lines = [example.target for example in DATASETS[data].split("test")]
        given = model.known(series_of_lines(lines, data, season=model.task.season))
    elif not data:
        raise UsageError("Expected --data: series whose last values are forecast, or the values after the model's own.")
    else:
        given = model.read(data)
        for note in given.notes:
            warn(note)
    if max(len(one) for one in given.series) <= model.task.horizon:
        warn(
            f"no series is longer than the horizon of {model.task.horizon}: read as what follows the model's histories"
        )
        return following(model.histories, given)
    short = [one.id for one in given.series if len(one) <= model.task.horizon]
    if short:
        warn(f"{counted(len(short), 'series', 'series')} too short for a horizon of {model.task.horizon}: left out")
    try:
        return split_end(given, model.task.horizon)
    except DataError as error:
        raise DataError(f"{data}: {error}") from None


Found = Mapping["Metric", "MetricCounts"]


def _table(both: Mapping[str, Found], bootstrap: Bootstrap) -> Iterator[str]:
    from regarde.evaluation.bootstrap import interval

    own, naive = both.values()
    samples = bootstrap.values(list(own.values()))
    rows = []
    for i, (metric, found) in enumerate(own.items()):
        sure = interval(samples[:, i]) if len(samples) else None
        between = f"{metric.written(sure.low)} to {metric.written(sure.high)}" if sure else ""
        other = metric.written(naive[metric].value()) if metric in naive else "-"
        rows.append([metric.label, metric.written(found.value()), between, other])
    yield from table(["", "value", "95% interval", list(both)[1]], rows)


def _by_horizon(by: Sequence[tuple[str, Found, Found]]) -> Iterator[str]:
    metrics = list(by[0][1])
    head = ["steps"]
    rows = [[label] for label, _, _ in by]
    for metric in metrics:
        head.append(metric.label)
        for row, (_, own, _) in zip(rows, by, strict=True):
            row.append(metric.written(own[metric].value()))
        if metric in by[0][2]:
            head.append("naive")
            for row, (_, _, beside) in zip(rows, by, strict=True):
                row.append(metric.written(beside[metric].value()))
    yield from table(head, rows)


def _values(found: Found) -> dict[str, float]:
    return {metric.name: one.value() for metric, one in found.items()}


def _record(found: Found, bootstrap: Bootstrap) -> dict[str, Any]:
    from regarde.evaluation.bootstrap import interval

    samples = bootstrap.values(list(found.values()))
    record: dict[str, Any] = {}
    for i, (metric, one) in enumerate(found.items()):
        sure = interval(samples[:, i]) if len(samples) else None
        record[metric.name] = {"value": one.value(), **({"low": sure.low, "high": sure.high} if sure else {})}
    return record
