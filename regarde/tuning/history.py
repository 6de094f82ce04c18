"""The trials of a hyperparameter search, stored by Optuna in an SQLite file.

A trial is written when it has ended, in one transaction, so a killed search leaves no incomplete trial. The next trial
is a function of the seed and of the trials so far, so a resumed search has the same trials as an uninterrupted one.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from regarde.errors import DiskError, FolderError, missing_extra
from regarde.tuning.space import Space, Value

if TYPE_CHECKING:
    from optuna.storages import RDBStorage
    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial

FILE = "trials.db"
_NAME = "regarde"
_RANDOM_TRIALS = 8  # drawn at random, before others guide the choice
_UNPRUNED_TRIALS = 4  # that are never pruned: there is no median yet
Ended = Literal["complete", "pruned", "failed"]
_ENDED: dict[str, Ended] = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}


@dataclass(frozen=True)
class EndedTrial:
    """A trial that has ended."""

    number: int  # from 1
    ended: Ended
    value: float | None  # of the best validation, if there was one
    step: int  # of that validation
    seconds: float
    values: Mapping[str, Value]
    validations: Mapping[int, float] = field(default_factory=dict)  # by step
    reason: str = ""  # why it failed


def library() -> Any:
    """Optuna without its own messages; an error that says how to install it."""
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise missing_extra(error) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


class History:
    """The trials so far, and the choice of the next."""

    def __init__(self, folder: Path, space: Space, *, higher_is_better: bool) -> None:
        self.space = space
        self.direction: Literal["maximize", "minimize"] = "maximize" if higher_is_better else "minimize"
        self.path = folder / FILE
        self._optuna = library()
        self._study = self._opened()

    def findings(self) -> list[EndedTrial]:
        """All trials in their order."""
        return [self._finding(trial) for trial in self._study.get_trials(deepcopy=False)]

    def add(self, finding: EndedTrial) -> None:
        states = self._optuna.trial.TrialState
        state = {"complete": states.COMPLETE, "pruned": states.PRUNED, "failed": states.FAIL}[finding.ended]
        trial = self._optuna.trial.create_trial(
            state=state,
            value=finding.value if finding.ended == "complete" else None,
            params=dict(finding.values),
            distributions=self.space.distributions(),
            intermediate_values=dict(finding.validations),
            user_attrs={
                "value": finding.value,
                "step": finding.step,
                "seconds": finding.seconds,
                "told": finding.reason,
            },
        )
        try:
            self._study.add_trial(trial)
        except self._optuna.exceptions.StorageInternalError:
            raise DiskError(
                f"{self.path}: trial {finding.number} not written. Free some space; the same command resumes."
            ) from None

    def next(self, seed: int, first: Mapping[str, Value] | None) -> ProposedTrial:
        """The next trial, a function of the seed and the trials so far; `first` are the values of the first trial."""
        samplers, pruners = self._optuna.samplers, self._optuna.pruners
        past = self._study.get_trials(deepcopy=False)
        drawn = hashlib.sha256(f"{seed} {len(past)}".encode()).digest()[:4]
        study = self._optuna.create_study(
            direction=self.direction,
            sampler=samplers.TPESampler(seed=int.from_bytes(drawn), n_startup_trials=_RANDOM_TRIALS),
            pruner=pruners.MedianPruner(n_startup_trials=_UNPRUNED_TRIALS),
        )
        study.add_trials(past)
        if not past and first is not None:
            study.enqueue_trial(dict(first))
        trial = study.ask(self.space.distributions())
        return ProposedTrial(trial.number + 1, self.space.rounded(trial.params), trial)

    def importance(self) -> dict[str, float]:
        """How much each setting contributes to good trials (PED-ANOVA, Watanabe et al. 2023)."""
        evaluate = self._optuna.importance
        values = [finding.value for finding in self.findings() if finding.ended == "complete"]
        if len(set(values)) < 2:  # all trials are equal
            return {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the small number of trials
            found = evaluate.get_param_importances(self._study, evaluator=evaluate.PedAnovaImportanceEvaluator())
        return {key: float(share) for key, share in found.items()}

    def _finding(self, trial: FrozenTrial) -> EndedTrial:
        kept = trial.user_attrs
        if (
            trial.params.keys() != self.space.parameters.keys()
            or not {"value", "step", "seconds", "told"} <= kept.keys()
        ):
            raise FolderError(f"{self.path}: trial {trial.number + 1} is not as it was written. Give another --out.")
        return EndedTrial(
            number=trial.number + 1,
            ended=_ENDED[trial.state.name],
            value=kept["value"],
            step=kept["step"],
            seconds=kept["seconds"],
            values=trial.params,
            validations=trial.intermediate_values,
            reason=kept["told"],
        )

    def _opened(self) -> Study:
        """The study in its file; a new file is renamed when it is complete."""
        try:
            if not self.path.exists():
                beside = self.path.with_name(f".{FILE}.new")
                beside.unlink(missing_ok=True)
                made = self._storage(beside)
                self._optuna.create_study(storage=made, study_name=_NAME, direction=self.direction)
                made.remove_session()
                made.engine.dispose()
                beside.rename(self.path)
            study: Study = self._optuna.load_study(storage=self._storage(self.path), study_name=_NAME)
            return study
        except OSError:
            raise
        except Exception as error:  # SQLite, SQLAlchemy and Optuna each raise their own for a damaged file
            reason = " ".join(str(error).split())[:80]
            raise FolderError(f"{self.path}: no trials can be read from it ({reason}). Give another --out.") from None

    def _storage(self, path: Path) -> RDBStorage:
        storage: RDBStorage = self._optuna.storages.RDBStorage(f"sqlite:///{path.absolute()}")
        return storage


@dataclass(frozen=True)
class ProposedTrial:
    """A trial to run, which may be pruned."""

    number: int  # from 1
    values: Mapping[str, Value]
    trial: Trial


def best(findings: Sequence[EndedTrial], *, higher_is_better: bool) -> EndedTrial | None:
    """The best complete trial; of equal ones the first."""
    done = [finding for finding in findings if finding.ended == "complete" and finding.value is not None]
    sign = 1 if higher_is_better else -1
    return max(done, key=lambda finding: (sign * (finding.value or 0.0), -finding.number), default=None)
