"""`regarde search-params`: hyperparameter search."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from regarde.cli import completion, options
from regarde.cli.options import argument, flag, option
from regarde.display.tables import table
from regarde.engines.devices import choose
from regarde.errors import RegardeError, counted, warn
from regarde.streaming.streams import tell

if TYPE_CHECKING:
    from regarde.evaluation.metrics import Metric
    from regarde.training.run import Progress
    from regarde.tuning.history import EndedTrial
    from regarde.tuning.trials import SearchResult

MOST_SHOWN = 10


def search_params(
    space: Annotated[Path, option("FILE", "TOML file with the settings to search and their ranges.")],
    out: Annotated[Path, option("FOLDER", "Folder of the search. Repeat the command to resume it.")],
    data: Annotated[
        str | None, argument("[DATA]", "Embedded data set, or file of pairs.", complete=completion.data)
    ] = None,
    trials: Annotated[int, option("N", "Number of trials in all; each is one training.", least=1, most=10_000)] = 20,
    minutes: Annotated[
        float | None,
        option(
            "M",
            "Minutes to train in each trial. Default: the length in the recipe.",
            "--minutes-per-trial",
            least=0.01,
            check=options.number,
        ),
    ] = None,
    start_from: options.StartFrom = None,
    preset: options.Preset = None,
    recipe: options.Recipe = None,
    source: options.Source = None,
    target: options.Target = None,
    valid: options.Valid = None,
    columns: options.Columns = None,
    header: options.Header = None,
    quotes: options.Quotes = None,
    on_error: options.OnErrorOrRecipe = "",
    settings: options.Settings = None,
    seed: Annotated[int, option("N", "Seed of the search.", least=0)] = 1,
    keep_all: Annotated[bool, flag("--keep-all", "Finish every trial, also those worse than the median.")] = False,
    device: options.Device = "cpu",
    threads: options.Threads = 0,
) -> None:
    """Search for the best hyperparameters with Optuna (the extra "search").

    The space is a TOML file with a table for each setting to search, such as space."training.optimizer.rate", with
    low and high, optionally log = true or step; or with a list of choices. The first trial is the recipe itself, if it
    lies in the space. A trial whose validation is worse than the median of the others stops early.

    After an interruption, the same command resumes in the middle of a trial and ends with the same trials. A larger
    --trials adds some. The best recipe is best.toml in the folder, for regarde train --recipe.

    Example: regarde search-params my.tsv --space space.toml --out searches/my
    """
    device = choose(device)

    from regarde.training.start import compose
    from regarde.training.transfer import continued
    from regarde.tuning import space as spaces
    from regarde.tuning.trials import SearchPlan, search

    given = options.data_fields(data, source, target, valid, columns, header, quotes, on_error)
    chosen = [*(settings or []), *([f"training.minutes={minutes}"] if minutes else [])]
    base = continued(start_from) if start_from else None
    tables = compose(given, base=base, preset=preset, recipe=recipe, settings=chosen)
    plan = SearchPlan(tables, spaces.read(space), seed, not keep_all, device, threads)
    found = search(plan, out, trials, _Lines(trials))
    if found.best is None:
        reason = next((finding.reason for finding in found.findings if finding.reason), "all stopped early")
        raise RegardeError(f"{out}: none of {counted(len(found.findings), 'trial')} is complete: {reason}")
    tell(_tables(found))
    warn(f"the best recipe is in {out / 'best.toml'}. Try: regarde train --recipe {out / 'best.toml'}")


class _Lines:
    """A line for each trial."""

    def __init__(self, trials: int) -> None:
        self.trials = trials

    def noted(self, note: str) -> None:
        warn(note)

    def began(self, number: int, values: Mapping[str, Any]) -> None:
        warn(f"trial {number} of {max(self.trials, number)}: {_written(values)}")

    def progressed(self, progress: Progress) -> None: ...

    def ended(self, finding: EndedTrial, best: EndedTrial | None, metric: Metric) -> None:
        shown = metric.show(finding.value) if finding.value is not None else finding.reason
        how = {"complete": "", "pruned": ", stopped early", "failed": ", failed"}[finding.ended]
        leader = f"; the best is trial {best.number}" if best and best.number != finding.number else ""
        spent = f"{counted(finding.step, 'step')}, {finding.seconds:.0f} s"
        warn(f"trial {finding.number}: {shown} after {spent}{how}{leader}")


def _tables(found: SearchResult) -> list[str]:
    """The best trials, and the importance of each setting."""
    sign = -1 if found.metric.higher_is_better else 1
    done = [finding for finding in found.findings if finding.ended == "complete" and finding.value is not None]
    done.sort(key=lambda finding: (sign * (finding.value or 0.0), finding.number))
    keys = list(done[0].values)
    rows = [
        [str(f.number), found.metric.written(f.value or 0.0), *(_value(f.values[key]) for key in keys)]
        for f in done[:MOST_SHOWN]
    ]
    counts = {ended: sum(f.ended == ended for f in found.findings) for ended in ("complete", "pruned", "failed")}
    lines = [*table(["trial", found.metric.label, *keys], rows)]
    done_count = counted(counts["complete"], "trial")
    lines.append(f"{done_count} complete, {counts['pruned']} stopped early, {counts['failed']} failed\n")
    if found.importance:
        shares = [[key, f"{share:.0%}"] for key, share in found.importance.items()]
        lines += ["\n", *table(["setting", "importance"], shares)]
    return lines


def _written(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={_value(value)}" for key, value in values.items())


def _value(value: Any) -> str:
    return f"{value:g}" if type(value) is float else str(value).lower() if type(value) is bool else str(value)
