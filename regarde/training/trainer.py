"""The training loop: updates on batches in an order fixed by (seed, epoch), with validations and checkpoints.

The best model by the metric is the run's model; its last checkpoints are kept too. The state of a training between two
updates is one frozen TrainingState, so that it can be saved and resumed there. Ctrl-C and SIGTERM stop it there too.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from types import FrameType
from typing import Any, Self

import torch

from regarde import config
from regarde.data.batch import Rows
from regarde.errors import ConfigError, RegardeError, Stopped, counted, is_out_of_memory
from regarde.evaluation.metrics import JUDGING
from regarde.folder.manifest import CHECKPOINTS
from regarde.models.interface import Trainable
from regarde.training.checkpoint import Checkpoint, Snapshot, TrainingState, ValidationResult, spread
from regarde.training.distributed import ALONE, World
from regarde.training.prepared import Order, Prepared
from regarde.training.recipe import Budget
from regarde.training.run import (
    Outcome,
    Progress,
    Record,
    RunWriter,
    TrainingObserver,
    Validation,
    circumstances,
    model_card,
)
from regarde.training.step import NotFiniteError, Stepper, StepResult, seeded
from regarde.training.transfer import freeze

RECORD_EVERY = 50  # steps
SAVE_EVERY = 600.0  # seconds, if training.save_every is 0


class Trainer:
    """One run from its first step, or from a checkpoint, to its last."""

    def __init__(self, prepared: Prepared, device: torch.device | str = "cpu", world: World = ALONE) -> None:
        self.prepared = prepared
        self.recipe = prepared.recipe
        self.device = device
        self.world = world
        self.metric = JUDGING[self.recipe.training.metric]
        with seeded(self.recipe.training.seed):
            self.model: Trainable = prepared.build().to(device)
        if self.recipe.training.freeze:
            freeze(self.model, self.recipe.training.freeze)
        self.budget = Budget.of(self.recipe.training)
        if self.budget.minutes and world.size > 1:
            given = f"training.minutes = {self.budget.minutes:g} with {world.size} processes, whose clocks differ"
            raise ConfigError(f"{given}. Set training.steps or training.tokens instead.")
        if prepared.corpus.carries and world.size > 1:
            given = f"{world.size} processes, but each batch starts from the state of the one before"
            raise ConfigError(f"{given}. Train in one process, on lines (task.context=0), or a transformer-lm.")
        self.stepper = Stepper(
            self.model,
            self.recipe.training,
            self.budget.total(TrainingState()),
            world,
            prepared.objective(device),
            carries=prepared.corpus.carries,
        )
        self.circumstances = circumstances(prepared, device, world.size)
        if world.size > 1:
            world.agree("Data and vocabularies", prepared.digest())
            settings = config.as_text(config.as_table(self.recipe))
            world.agree("Settings", hashlib.sha256(settings.encode()).hexdigest())

    def train(self, run: RunWriter, observer: TrainingObserver, checkpoint: Checkpoint | None = None) -> Outcome:
        """Train to the last step, or until training.patience or a signal ends it."""
        for note in self.prepared.notes:
            run.log(note)
        run.log(json.dumps(self.circumstances))
        state = self._restored(run, checkpoint) if checkpoint else self._begun(run)
        with Signals() as signals:
            return _Loop(self, run, observer, signals).go_on(state)

    def snapshot(self, state: TrainingState) -> Snapshot:
        return Snapshot(
            tables=self.prepared.tables,
            kept=self.prepared.kept,
            model=self.model,
            card=model_card(self.prepared, self.model, state),
            optimizer=self.stepper.optimizer,
            state=state,
            carried=self.stepper.carried,
            circumstances=self.circumstances,
            origin=self.stepper.origin,
        )

    def validation(self, judged: ValidationResult, best: bool) -> Validation:
        return Validation(judged.step, judged.loss, self.metric, judged.value, best, judged.seconds)

    def _begun(self, run: RunWriter) -> TrainingState:
        """Save a checkpoint before the first step, so that a run can always be resumed."""
        state = TrainingState()
        spread(self.model, self.stepper.optimizer, self.world)
        if self.prepared.pretrained and self.recipe.training.transfer.pull:
            self.stepper.origin = {
                name: parameter.detach().clone()
                for name, parameter in self.model.named_parameters()
                if parameter.requires_grad and self.prepared.pretrained.covers(name)
            }
        run.save(self.snapshot(state), self.recipe.training.keep)
        return state

    def _restored(self, run: RunWriter, checkpoint: Checkpoint) -> TrainingState:
        state = checkpoint.state
        checkpoint.restore(self.model, self.stepper.optimizer, self.world)
        self.stepper.carried = checkpoint.carried(self.model, self.device)
        self.stepper.origin = checkpoint.origin(self.model, self.world)
        if not run.rewind(state.recorded):
            run.log("warning: metrics.jsonl is shorter than it was; lines are missing")
        if state.best and state.best.step == state.step:  # the run may have been killed before it was published
            run.publish(self.snapshot(state))
        elif state.best and not run.has_model():
            best = f"the best model, of step {state.best.step}, is damaged"
            run.log(f"warning: {best} and replaced by that of step {state.step}")
            run.publish(self.snapshot(state))
        run.tidy(checkpoint.path, self.recipe.training.keep)
        run.log(f"resuming from step {state.step}")
        return state


class _Loop:
    """The loop while it runs, with its clocks."""

    def __init__(self, trainer: Trainer, run: RunWriter, observer: TrainingObserver, signals: Signals) -> None:
        self.trainer = trainer
        self.training = trainer.recipe.training
        self.budget = trainer.budget
        self.run = run
        self.observer = observer
        self.signals = signals
        self.at_once = trainer.world.size * self.training.accumulate  # batches of an update
        self.began = self.marked = self.saved = time.perf_counter()

    def go_on(self, state: TrainingState) -> Outcome:
        self.began -= state.seconds
        prepared = self.trainer.prepared
        order = Order(prepared.recipe, prepared.corpus, state.epoch, state.position)
        while not self._finished(state):
            began = time.perf_counter()
            self.trainer.stepper.total = self.budget.total(state)
            result = self._update(order.take(self.at_once), state.step)
            state = replace(
                state,
                step=state.step + 1,
                epoch=order.epoch,
                position=order.position,
                loss=state.loss + result.loss * result.tokens,
                tokens=state.tokens + result.tokens,
                seen=state.seen + result.tokens,
                trained=state.trained + time.perf_counter() - began,
            )
            last = self.budget.share(state) >= 1
            # several processes agree in the update
            stop = result.stop if self.trainer.world.size > 1 else bool(self.signals.received)
            if last or state.step % RECORD_EVERY == 0:
                state = self._record(state, result)
            if last or state.step % self.training.valid_every == 0:
                state = self._validate(state)
            elif stop or self._save_is_due(state.step):
                self._save(state)
            if stop and not self._finished(state):
                raise self._stopped(state)
        assert state.best is not None
        assert state.last is not None
        return Outcome(
            run=self.run,
            best=self.trainer.validation(state.best, best=True),
            last=self.trainer.validation(state.last, best=state.last.step == state.best.step),
            parameters=self.trainer.model.parameter_count(),
            seconds=time.perf_counter() - self.began,
        )

    def _finished(self, state: TrainingState) -> bool:
        impatient = self.training.patience and state.without_better >= self.training.patience
        return bool(impatient) or self.budget.share(state) >= 1

    def _update(self, taken: Sequence[Rows], step: int) -> StepResult:
        """An update on this process's share of the batches; an error names the batch."""
        train, world = self.trainer.prepared.corpus, self.trainer.world
        first = step * self.at_once
        mine = [(first + i, rows) for i, rows in enumerate(taken) if i % world.size == world.rank]
        tokens = sum(train.count(rows) for rows in taken)
        try:
            prepared, device = self.trainer.prepared, self.trainer.device
            batches = [prepared.batch(number, rows, device) for number, rows in mine]
            return self.trainer.stepper.update(batches, step, tokens=tokens, stop=bool(self.signals.received))
        except NotFiniteError as error:
            bad = sorted(number for numbers in world.gather(error.numbers) for number in numbers)
            rows = [taken[number - first] for number in bad or range(first, first + self.at_once)]
            raise RegardeError(f"{error} The batch: {self.trainer.prepared.named(rows)}. {self._kept()}") from None
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise RegardeError(self._out_of_memory(step, [rows for _, rows in mine])) from None

    def _record(self, state: TrainingState, result: StepResult) -> TrainingState:
        now = time.perf_counter()
        progress = Progress(
            step=state.step,
            share=self.budget.share(state),
            epoch=state.epoch,
            loss=state.loss / state.tokens,
            rate=result.rate,
            norm=result.norm,
            tokens_per_second=state.tokens / (now - self.marked),
            seconds=now - self.began,
        )
        self.run.record(
            {
                "step": progress.step,
                "epoch": progress.epoch,
                "loss": progress.loss,
                "rate": progress.rate,
                "norm": progress.norm,
                "tokens_per_second": round(progress.tokens_per_second, 1),
                "seconds": round(progress.seconds, 3),
                "trained": round(state.trained, 3),
            }
        )
        self.observer.progressed(progress)
        self.marked = now
        return replace(state, loss=0.0, tokens=0)

    def _validate(self, state: TrainingState) -> TrainingState:
        """Validate, save a checkpoint, and publish the model if it is the best so far."""
        paused = time.perf_counter()
        trainer, metric = self.trainer, self.trainer.metric
        found = trainer.prepared.judge(trainer.model, trainer.device, trainer.world)
        loss, value = found.loss, found.value
        judged = ValidationResult(state.step, loss, value, paused - self.began)
        better = state.best is None or (
            value > state.best.value if metric.higher_is_better else value < state.best.value
        )
        state = replace(
            state,
            last=judged,
            best=judged if better else state.best,
            without_better=0 if better else state.without_better + 1,
        )
        record: Record = {"step": judged.step, "valid_loss": loss, metric.name: value, "best": int(better)}
        self.run.record(record | {"seconds": judged.seconds, "trained": round(state.trained, 3)})
        self.run.log(f"step {judged.step}: valid loss {loss:.4f}, {metric.show(value)}")
        self._save(state)
        if better:
            self.run.publish(self.trainer.snapshot(state))
        self.observer.validated(self.trainer.validation(judged, better))
        if self.training.patience and state.without_better >= self.training.patience:
            waited = f"no better {metric.label} in {counted(state.without_better, 'validation')}"
            self.run.log(f"step {state.step}: {waited}, stopped")
        self.marked += time.perf_counter() - paused  # validations do not count as training time
        return state

    def _save_is_due(self, step: int) -> bool:
        if self.training.save_every:
            return step % self.training.save_every == 0
        return time.perf_counter() - self.saved > SAVE_EVERY

    def _save(self, state: TrainingState) -> None:
        self.saved = time.perf_counter()
        state = replace(state, recorded=self.run.recorded(), seconds=self.saved - self.began)
        self.run.save(self.trainer.snapshot(state), self.training.keep)

    def _stopped(self, state: TrainingState) -> Stopped:
        number = self.signals.received or signal.SIGTERM  # or another process received it
        self.run.log(f"step {state.step}: stopped by {number.name}")
        how = f"Go on with: regarde train --resume {self.run.path}"
        return Stopped(f"stopped by {number.name} after step {state.step:,}, and saved. {how}", number)

    def _out_of_memory(self, step: int, batches: Sequence[Rows]) -> str:
        """Advise half of the positions that were too many."""
        positions = max(self.trainer.prepared.corpus.positions(rows) for rows in batches)
        given = f"Step {step + 1}: out of memory on a batch of {positions:,} positions"
        setting = f"--set training.batch_tokens={max(1, positions // 2)}"
        return f"{given}. Train anew with {setting}, and training.accumulate=2 for updates of the same size."

    def _kept(self) -> str:
        return f"The checkpoints before it are in {self.run.path / CHECKPOINTS}."


class Signals:
    """Inside, SIGINT and SIGTERM are noted in `received`; a second SIGINT interrupts at once."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # other threads may not set handlers
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            with contextlib.suppress(TypeError):  # a handler that Python did not set cannot be restored
                signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and self.received == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = self.received or signal.Signals(number)
