"""The training loop: batches in an order that (seed, epoch) fixes, an update each, a validation now and then.

The best model by the metric is the run's model; the last checkpoints lie beside it. Where a training stands between two
updates is one frozen State, so that it can be saved there and go on from there.
"""

from __future__ import annotations

import hashlib
import json
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch

from regarde import config
from regarde.errors import ConfigError, RegardeError, Stopped, is_out_of_memory
from regarde.evaluation.metrics import METRICS, Metric
from regarde.models.interface import Model
from regarde.training.budget import Budget
from regarde.training.card import model_card
from regarde.training.checkpoint import Checkpoint, Judged, Snapshot, State, spread
from regarde.training.circumstances import circumstances
from regarde.training.distributed import ALONE, World
from regarde.training.order import Order, Rows
from regarde.training.prepare import Prepared
from regarde.training.run import Record, Story
from regarde.training.signals import Signals
from regarde.training.step import NotFiniteError, Part, Stepper, StepResult, seeded
from regarde.training.validate import Validator

RECORD_EVERY = 50  # steps
SAVE_EVERY = 600.0  # seconds, where training.save_every says nothing


@dataclass(frozen=True)
class Progress:
    """Where training stands, since the last time it was told."""

    step: int
    share: float  # of all there is to do
    epoch: int
    loss: float
    rate: float
    norm: float
    tokens_per_second: float
    seconds: float


@dataclass(frozen=True)
class Validation:
    """How good the model is now."""

    step: int
    loss: float
    metric: Metric
    value: float
    best: bool
    seconds: float


class Watcher(Protocol):
    """Who is told how training goes."""

    def progressed(self, progress: Progress) -> None: ...

    def validated(self, validation: Validation) -> None: ...


@dataclass(frozen=True)
class Outcome:
    """A finished training."""

    run: Story
    best: Validation
    last: Validation
    parameters: int
    seconds: float


class Trainer:
    """One run from its first step, or from a checkpoint, to its last."""

    def __init__(self, prepared: Prepared, device: torch.device | str = "cpu", world: World = ALONE) -> None:
        self.prepared = prepared
        self.recipe = prepared.recipe
        self.device = device
        self.world = world
        self.metric = METRICS[self.recipe.training.metric]
        with seeded(self.recipe.training.seed):
            text = prepared.text
            self.model: Model = self.recipe.model.build(len(text.source), len(text.target)).to(device)
        self.budget = Budget.of(self.recipe.training)
        if self.budget.minutes and world.size > 1:
            given = f"training.minutes = {self.budget.minutes:g} with {world.size} processes, whose clocks differ"
            raise ConfigError(f"{given}. Say how long by training.steps or training.tokens.")
        self.stepper = Stepper(self.model, self.recipe.training, self.budget.total(State()), world, prepared.guide)
        self.validator = Validator(prepared, self.model, device, world)
        self.circumstances = circumstances(prepared, device, world.size)
        if world.size > 1:
            world.agree("Data and vocabularies", prepared.tokens_digest())
            settings = config.as_text(config.as_table(self.recipe))
            world.agree("Settings", hashlib.sha256(settings.encode()).hexdigest())

    def train(self, run: Story, watcher: Watcher, checkpoint: Checkpoint | None = None) -> Outcome:
        """To the last step, or until patience is at its end, or until somebody wants it to stop."""
        for note in self.prepared.notes:
            run.log(note)
        run.log(json.dumps(self.circumstances))
        state = self._restored(run, checkpoint) if checkpoint else self._begun(run)
        with Signals() as signals:
            return _Loop(self, run, watcher, signals).go_on(state)

    def snapshot(self, state: State) -> Snapshot:
        return Snapshot(
            tables=config.as_table(self.recipe),
            text=self.prepared.text,
            model=self.model,
            card=model_card(self.recipe, self.model, state),
            optimiser=self.stepper.optimiser,
            state=state,
            circumstances=self.circumstances,
        )

    def validation(self, judged: Judged, best: bool) -> Validation:
        return Validation(judged.step, judged.loss, self.metric, judged.value, best, judged.seconds)

    def _begun(self, run: Story) -> State:
        """A checkpoint before the first step: from here on a run can always be resumed."""
        state = State()
        spread(self.model, self.stepper.optimiser, self.world)
        run.save(self.snapshot(state), self.recipe.training.keep)
        return state

    def _restored(self, run: Story, checkpoint: Checkpoint) -> State:
        state = checkpoint.state
        checkpoint.restore(self.model, self.stepper.optimiser, self.world)
        if not run.rewind(state.recorded):
            run.log("warning: metrics.jsonl is shorter than it was; lines are missing")
        if state.best and state.best.step == state.step:  # it may not have come to that before
            run.publish(self.snapshot(state))
        elif state.best and not run.has_model():
            run.log(
                f"warning: the best model, of step {state.best.step}, is damaged; that of step {state.step} stands in"
            )
            run.publish(self.snapshot(state))
        run.tidy(checkpoint.path, self.recipe.training.keep)
        run.log(f"going on from step {state.step}")
        return state


class _Loop:
    """The loop while it runs."""

    def __init__(self, trainer: Trainer, run: Story, watcher: Watcher, signals: Signals) -> None:
        self.trainer = trainer
        self.training = trainer.recipe.training
        self.budget = trainer.budget
        self.run = run
        self.watcher = watcher
        self.signals = signals
        self.at_once = trainer.world.size * self.training.accumulate  # batches of an update
        self.began = self.marked = self.saved = time.perf_counter()

    def go_on(self, state: State) -> Outcome:
        self.began -= state.seconds
        prepared = self.trainer.prepared
        order = Order(prepared.recipe, prepared.train, state.epoch, state.position)
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
            # what several processes do, they have agreed on in the update
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

    def _finished(self, state: State) -> bool:
        impatient = self.training.patience and state.without_better >= self.training.patience
        return bool(impatient) or self.budget.share(state) >= 1

    def _update(self, taken: Sequence[Rows], step: int) -> StepResult:
        """An update on this process's share of the batches; what goes wrong is told with the batch it went wrong on."""
        train, world = self.trainer.prepared.train, self.trainer.world
        first = step * self.at_once
        mine = [(first + i, rows) for i, rows in enumerate(taken) if i % world.size == world.rank]
        tokens = sum(train.targets.count(rows) for rows in taken)
        try:
            parts = [self._part(number, rows.tolist()) for number, rows in mine]
            return self.trainer.stepper.update(parts, step, tokens=tokens, stop=bool(self.signals.received))
        except NotFiniteError as error:
            bad = sorted(number for numbers in world.gather(error.numbers) for number in numbers)
            rows = [row for number in bad or range(first, first + self.at_once) for row in taken[number - first]]
            raise RegardeError(f"{error} The batch: {self.trainer.prepared.named(rows)}. {self._kept()}") from None
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise RegardeError(self._out_of_memory(step, [rows for _, rows in mine])) from None

    def _part(self, number: int, rows: Sequence[int]) -> Part:
        prepared = self.trainer.prepared
        batch = prepared.train.batch(rows).to(self.trainer.device)
        return Part(batch, number, prepared.guide.gold(rows, batch) if prepared.guide else None)

    def _record(self, state: State, result: StepResult) -> State:
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
        self.watcher.progressed(progress)
        self.marked = now
        return replace(state, loss=0.0, tokens=0)

    def _validate(self, state: State) -> State:
        """A validation, a checkpoint of it, and, if it is the best so far, the run's model."""
        paused = time.perf_counter()
        metric, validator = self.trainer.metric, self.trainer.validator
        value, loss = validator.value(), validator.loss()
        judged = Judged(state.step, loss, value, paused - self.began)
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
        self.watcher.validated(self.trainer.validation(judged, better))
        if self.training.patience and state.without_better >= self.training.patience:
            waited = f"no better {metric.label} in {state.without_better} validations"
            self.run.log(f"step {state.step}: {waited}, stopped")
        self.marked += time.perf_counter() - paused  # a validation does not count as slow training
        return state

    def _save_is_due(self, step: int) -> bool:
        if self.training.save_every:
            return step % self.training.save_every == 0
        return time.perf_counter() - self.saved > SAVE_EVERY

    def _save(self, state: State) -> None:
        self.saved = time.perf_counter()
        state = replace(state, recorded=self.run.recorded(), seconds=self.saved - self.began)
        self.run.save(self.trainer.snapshot(state), self.training.keep)

    def _stopped(self, state: State) -> Stopped:
        number = self.signals.received or signal.SIGTERM  # or another process has got it
        self.run.log(f"step {state.step}: stopped by {number.name}")
        how = f"Go on with: regarde train --resume {self.run.path}"
        return Stopped(f"stopped by {number.name} after step {state.step:,}, and saved. {how}", number)

    def _out_of_memory(self, step: int, batches: Sequence[Rows]) -> str:
        """With half of the positions that were too many."""
        train = self.trainer.prepared.train
        sides = (train.sources.lengths, train.targets.lengths)
        positions = max(len(rows) * sum(int(side[rows].max()) for side in sides) for rows in batches)
        given = f"Step {step + 1}: out of memory on a batch of {positions:,} positions"
        setting = f"--set training.batch_tokens={max(1, positions // 2)}"
        return f"{given}. Train anew with {setting}, and training.accumulate=2 for updates of the same size."

    def _kept(self) -> str:
        return f"The checkpoints before it are in {self.run.path / 'checkpoints'}."
