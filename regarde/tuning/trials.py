"""A hyperparameter search: trial after trial, each a run that can be resumed.

FOLDER/  search.toml      the settings of the search; the same command resumes it, a different one is rejected
         trials.db        the trials that have ended (see history.py)
         trials/0001/     the run of a trial; its checkpoints are removed at its end, its model if another is better
         trials.tsv       all trials as a table; report.json: the same with the importance of settings
         best.toml        the recipe of the best trial, for regarde train --recipe
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from regarde import config
from regarde.config import Table
from regarde.errors import ConfigError, DataError, DiskError, RegardeError, Stopped, UsageError
from regarde.evaluation.metrics import JUDGING, Metric
from regarde.folder.manifest import CHECKPOINTS, LOCK, LOG_FILE, METRICS_FILE, alone, remove_folder, replace_file
from regarde.training.prepare import prepare
from regarde.training.resume import differences
from regarde.training.run import Progress, Validation, refuse_existing
from regarde.training.start import TrainingRequest, ready
from regarde.tuning.history import Ended, EndedTrial, History, ProposedTrial, best, library
from regarde.tuning.space import Space

SETTINGS = "search.toml"
_FEWEST_VALIDATIONS = 2  # before a trial may be pruned
_KEPT = (METRICS_FILE, LOG_FILE)  # of a trial that is not the best


class SearchObserver(Protocol):
    """Gets the progress of a search."""

    def noted(self, note: str) -> None: ...

    def began(self, number: int, values: Mapping[str, Any]) -> None: ...

    def progressed(self, progress: Progress) -> None: ...

    def ended(self, finding: EndedTrial, best: EndedTrial | None, metric: Metric) -> None: ...


@dataclass(frozen=True)
class SearchPlan:
    """The settings of a search: recipe, space and seed."""

    tables: Table
    space: Space
    seed: int = 1
    prune: bool = True
    device: str = "cpu"
    threads: int = 0


@dataclass(frozen=True)
class SearchResult:
    """All trials of a search."""

    folder: Path
    metric: Metric
    findings: list[EndedTrial]
    importance: dict[str, float]

    @property
    def best(self) -> EndedTrial | None:
        return best(self.findings, higher_is_better=self.metric.higher_is_better)


def search(plan: SearchPlan, folder: Path, trials: int, watcher: SearchObserver) -> SearchResult:
    """Run trials until there are `trials` of them, including those of an earlier call."""
    library()
    plan.space.check(plan.tables)
    if plan.tables["data"].get("name") == "-":
        raise UsageError("-: every trial reads the data, but standard input can be read only once. Give a file.")
    if not (folder / SETTINGS).exists():
        refuse_existing(folder, but=(LOCK, f".{SETTINGS}.new"))
    with _disk(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with alone(folder):
            return _Search(plan, folder, watcher).until(trials)


@contextlib.contextmanager
def _disk(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DiskError(f"{folder}: not written ({error.strerror or error}). The same command resumes.") from None


class _Search:
    """A search while its folder is locked."""

    def __init__(self, plan: SearchPlan, folder: Path, watcher: SearchObserver) -> None:
        self.folder = folder
        self.watcher = watcher
        self.plan = plan
        settings = self._settings()
        self.metric = JUDGING[settings["metric"]]
        self.sha256 = settings["sha256"]
        judged = {"training": {"metric": settings["metric"]}}  # the same for all trials
        self.tables = config.merge(plan.tables, judged)
        self.history = History(folder, plan.space, higher_is_better=self.metric.higher_is_better)

    def until(self, trials: int) -> SearchResult:
        self._tidy()
        first = self.plan.space.there(self.tables)
        while len(self.history.findings()) < trials:
            candidate = self.history.next(self.plan.seed, first)
            self.watcher.began(candidate.number, candidate.values)
            finding = self._made(candidate)
            self.history.add(finding)
            self._tidy()
            found = self._report()
            self.watcher.ended(finding, found.best, self.metric)
        return self._report()

    def _settings(self) -> Table:
        """The settings in the folder, compared with the given ones; written first if the folder is new."""
        path = self.folder / SETTINGS
        expected = {"seed": self.plan.seed, "prune": self.plan.prune, "recipe": self.plan.tables}
        expected["space"] = self.plan.space.table()
        if path.exists():
            settings = config.read(path)
            kept = {key: settings.get(key) for key in expected}
            for found in differences(kept, expected):
                reason = f"{found.key} is {found.given}, but this search was started with {found.expected}"
                raise UsageError(f"{self.folder}: {reason}. Give the same settings, or another --out.")
            if settings.get("metric") in JUDGING and isinstance(settings.get("sha256"), str):
                return settings
            raise ConfigError(f"{path}: not as it was written. Give another --out.")
        prepared = prepare(self.plan.tables)  # errors in the data are reported before the first trial
        for note in prepared.notes:
            if note.startswith("warning: "):
                self.watcher.noted(note)
        recipe = prepared.recipe
        settings = {"metric": recipe.training.metric, "sha256": recipe.data.sha256, **expected}
        replace_file(path, config.as_text(settings).encode())
        return settings

    def _made(self, candidate: ProposedTrial) -> EndedTrial:
        """Run a trial, or resume it, to its end."""
        watched = _Watched(candidate, self.watcher, self.plan.prune)
        path = self._run(candidate.number)
        reason = ""
        ended: Ended = "complete"
        try:
            watched.recall(path, self.metric)
            self._train(candidate, path, watched)
        except _HopelessError:
            ended = "pruned"
        except Stopped as stopped:
            reason = f"stopped in trial {candidate.number}, and saved. The same command resumes"
            raise Stopped(f"{reason}.", stopped.exit_code - 128) from None
        except (DataError, DiskError):
            raise
        except RegardeError as error:  # an invalid combination, or a loss that is not finite
            reason, ended = str(error), "failed"
        step = watched.best(self.metric)
        return EndedTrial(
            number=candidate.number,
            ended=ended,
            value=watched.validations.get(step),
            step=step,
            seconds=round(watched.seconds, 1),
            values=candidate.values,
            validations=watched.validations,
            reason=reason,
        )

    def _train(self, candidate: ProposedTrial, path: Path, watched: _Watched) -> None:
        tables = self.plan.space.laid(candidate.values, self.tables)
        request = TrainingRequest(tables, path, resume=True, device=self.plan.device, threads=self.plan.threads)
        with ready(request) as job:
            if job.trainer.recipe.data.sha256 != self.sha256:
                reason = f"{self.folder}: the training pairs have changed"
                raise DataError(f"{reason}. Give the same data, or another --out.")
            job.train(watched)

    def _run(self, number: int) -> Path:
        return self.folder / "trials" / f"{number:04}"

    def _tidy(self) -> None:
        """Of ended trials, keep the model of the best one, and metrics and log of the others."""
        findings = self.history.findings()
        winner = best(findings, higher_is_better=self.metric.higher_is_better)
        for finding in findings:
            path = self._run(finding.number)
            if finding is winner:
                if (path / CHECKPOINTS).is_dir():
                    remove_folder(path / CHECKPOINTS)
            elif path.is_dir():
                for item in sorted(path.iterdir()):
                    if item.is_dir():
                        remove_folder(item)
                    elif item.name not in _KEPT:
                        item.unlink()

    def _report(self) -> SearchResult:
        """Write the reports and the best recipe."""
        found = SearchResult(self.folder, self.metric, self.history.findings(), self.history.importance())
        keys = list(self.plan.space.parameters)
        head = ["trial", "ended", self.metric.name, "step", "seconds", *keys, "reason"]
        rows: list[list[object]] = [
            [f.number, f.ended, f.value, f.step, f.seconds, *(f.values[key] for key in keys), f.reason]
            for f in found.findings
        ]
        lines = ["\t".join(head) + "\n", *("\t".join(_cell(value) for value in row) + "\n" for row in rows)]
        replace_file(self.folder / "trials.tsv", "".join(lines).encode())
        record = {
            "metric": self.metric.name,
            "higher_is_better": self.metric.higher_is_better,
            "best": found.best.number if found.best else None,
            "importance": found.importance,
            "trials": [asdict(finding) for finding in found.findings],
        }
        replace_file(self.folder / "report.json", f"{json.dumps(record, indent=1, ensure_ascii=False)}\n".encode())
        if found.best and found.best.value is not None:
            comment = f"# {self.metric.show(found.best.value)}: trial {found.best.number} of {len(found.findings)}\n"
            recipe = config.as_text(self.plan.space.laid(found.best.values, self.plan.tables))
            replace_file(self.folder / "best.toml", f"{comment}{recipe}".encode())
        return found


class _HopelessError(Exception):
    """A trial is pruned."""


class _Watched:
    """Observes the training of a trial, and ends it if it is to be pruned."""

    def __init__(self, candidate: ProposedTrial, watcher: SearchObserver, prune: bool) -> None:
        self.candidate = candidate
        self.watcher = watcher
        self.prune = prune
        self.validations: dict[int, float] = {}
        self.seconds = 0.0  # of training, until the last validation

    def progressed(self, progress: Progress) -> None:
        self.watcher.progressed(progress)

    def validated(self, validation: Validation) -> None:
        self._judge(validation.step, validation.value, validation.seconds)

    def recall(self, run: Path, metric: Metric) -> None:
        """Read the validations of an interrupted run."""
        with contextlib.suppress(FileNotFoundError):
            for line in (run / METRICS_FILE).read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(ValueError):  # an incomplete last line
                    record = json.loads(line)
                    if metric.name in record:
                        self._judge(record["step"], record[metric.name], record["seconds"])

    def best(self, metric: Metric) -> int:
        """The step of the best validation, of equal ones the first; 0 if there was none."""
        sign = 1 if metric.higher_is_better else -1
        return max(self.validations, key=lambda step: (sign * self.validations[step], -step), default=0)

    def _judge(self, step: int, value: float, seconds: float) -> None:
        if step in self.validations:
            return
        self.validations[step] = value
        self.seconds = seconds
        trial = self.candidate.trial  # pruned if its best validation so far is worse than the median of others here
        trial.report(value, step)
        if self.prune and len(self.validations) >= _FEWEST_VALIDATIONS and trial.should_prune():
            raise _HopelessError


def _cell(value: object) -> str:
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value)
    return " ".join(text.split())
