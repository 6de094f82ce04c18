"""The training loop: batches in an order that (seed, epoch) fixes, an update each, a validation now and then.

The best model by the metric is the run's model; the last checkpoints lie beside it.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from regarde import config, folder
from regarde.data.sampling import ordered
from regarde.evaluation.metrics import METRICS, Metric
from regarde.models.interface import Model
from regarde.search import Greedy
from regarde.training.card import model_card
from regarde.training.circumstances import circumstances
from regarde.training.loss import cross_entropy
from regarde.training.prepare import Prepared, epoch
from regarde.training.run import RunFolder
from regarde.training.step import Stepper, seeded
from regarde.translate import TorchEngine, Translator

RECORD_EVERY = 50  # steps


@dataclass(frozen=True)
class Progress:
    """Where training stands, since the last time it was told."""

    step: int
    steps: int
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

    run: RunFolder
    best: Validation
    last: Validation
    parameters: int
    seconds: float


class Trainer:
    """One run from its first step to its last."""

    def __init__(self, prepared: Prepared, path: Path, watcher: Watcher, device: torch.device | str = "cpu") -> None:
        self.prepared = prepared
        self.recipe = prepared.recipe
        self.watcher = watcher
        self.device = device
        self.metric = METRICS[self.recipe.training.metric]
        with seeded(self.recipe.training.seed):
            text = prepared.text
            self.model: Model = self.recipe.model.build(len(text.source), len(text.target)).to(device)
        self.stepper = Stepper(self.model, self.recipe.training, self.recipe.training.steps)
        self.run = RunFolder(path)  # last, so that a model that cannot be built leaves no folder behind

    def train(self) -> Outcome:
        """From the first step to the last, or until patience is at its end; its files are closed whatever comes."""
        with self.run:
            return self._train()

    def _train(self) -> Outcome:
        training = self.recipe.training
        self._record_circumstances()
        began = marked = time.perf_counter()
        best: Validation | None = None
        without_better = 0
        losses: list[float] = []
        tokens: list[int] = []
        for step, (number, rows) in enumerate(itertools.islice(self.order(), training.steps), start=1):
            result = self.stepper(self.prepared.train.batch(rows.tolist()).to(self.device), step - 1)
            losses.append(result.loss * result.tokens)
            tokens.append(result.tokens)
            if step % RECORD_EVERY == 0 or step == training.steps:
                now = time.perf_counter()
                progress = Progress(
                    step=step,
                    steps=training.steps,
                    epoch=number,
                    loss=sum(losses) / sum(tokens),
                    rate=result.rate,
                    norm=result.norm,
                    tokens_per_second=sum(tokens) / (now - marked),
                    seconds=now - began,
                )
                self._progressed(progress)
                losses, tokens, marked = [], [], now
            if step % training.valid_every == 0 or step == training.steps:
                paused = time.perf_counter()
                last = self.validate(step, best, paused - began)
                best = last if last.best else best
                without_better = 0 if last.best else without_better + 1
                marked += time.perf_counter() - paused  # a validation does not count as slow training
                if training.patience and without_better >= training.patience:
                    self.run.log(f"step {step}: no better {self.metric.label} in {without_better} validations, stopped")
                    break
        assert best is not None
        return Outcome(self.run, best, last, self.model.parameter_count(), time.perf_counter() - began)

    def order(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Batches without end: the epoch's number and the rows."""
        for number in itertools.count():
            for rows in epoch(self.recipe, self.prepared.train, number):
                yield number, rows

    def validate(self, step: int, best: Validation | None, seconds: float) -> Validation:
        """Loss over all held-out pairs, the metric over some; a better model becomes the run's model."""
        value = self._measure()
        better = best is None or (value > best.value if self.metric.higher_is_better else value < best.value)
        validation = Validation(step, self._loss(), self.metric, value, better, seconds)
        self._save(validation)
        self.run.record(
            {
                "step": step,
                "valid_loss": validation.loss,
                self.metric.name: value,
                "best": int(better),
                "seconds": seconds,
            }
        )
        self.run.log(f"step {step}: valid loss {validation.loss:.4f}, {self.metric.show(value)}")
        self.watcher.validated(validation)
        return validation

    @torch.no_grad()
    def _loss(self) -> float:
        self.model.eval()
        valid = self.prepared.valid
        total, tokens = 0.0, 0
        for rows in ordered(np.maximum(valid.sources.lengths, valid.targets.lengths), pairs=256, tokens=8192):
            batch = valid.batch(rows.tolist()).to(self.device)
            total += float(cross_entropy(self.model(batch), batch))
            tokens += int(batch.target_mask.sum())
        return total / tokens

    def _measure(self) -> float:
        chosen = self.prepared.valid_pairs[: self.recipe.training.valid_pairs]
        translator = Translator(
            text=self.prepared.text,
            engine=TorchEngine(self.model),
            search=Greedy(rules=self.recipe.search.rules),
            offset=self.model.decoder.offset,
            longest=10**9,
        )
        found = translator.translate([pair.source for pair in chosen])
        references = [self.prepared.text.prepare(pair.target) for pair in chosen]
        return self.metric([translation.text for translation in found], references)

    def _save(self, validation: Validation) -> None:
        tables = config.as_table(self.recipe)
        card = model_card(self.recipe, self.model, validation)
        folders = [self.run.checkpoint(validation.step), *([self.run.path] if validation.best else [])]
        for path in folders:
            folder.save(path, tables, self.prepared.text, self.model, card)
        self.run.prune(self.recipe.training.keep)

    def _progressed(self, progress: Progress) -> None:
        self.run.record(
            {
                "step": progress.step,
                "epoch": progress.epoch,
                "loss": progress.loss,
                "rate": progress.rate,
                "norm": progress.norm,
                "tokens_per_second": round(progress.tokens_per_second, 1),
                "seconds": round(progress.seconds, 3),
            }
        )
        self.watcher.progressed(progress)

    def _record_circumstances(self) -> None:
        for note in self.prepared.notes:
            self.run.log(note)
        self.run.log(json.dumps(circumstances(self.recipe, self.device)))
