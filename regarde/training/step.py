"""One update: forward, loss, backward, clip, move. Everything random in it is a function of (seed, step)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from regarde.data.batch import Batch
from regarde.errors import RegardeError
from regarde.models.interface import Model
from regarde.training import truncated
from regarde.training.loss import cross_entropy
from regarde.training.recipe import TrainingConfig
from regarde.training.scheduled import SampledDecoder


@dataclass(frozen=True)
class StepResult:
    """What one update saw."""

    loss: float  # per target token, smoothing included
    tokens: int  # of the target, EOS included
    norm: float  # of the gradient before clipping
    rate: float


class Stepper:
    """A model, its optimiser and its schedule."""

    def __init__(self, model: Model, config: TrainingConfig, total: int) -> None:
        self.model = model
        self.config = config
        self.total = total
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.optimiser = config.optimiser.build(self.parameters)

    def __call__(self, batch: Batch, step: int) -> StepResult:
        """Update number `step`, counted from 0; a loss or gradient that is not finite stops before the update."""
        rate = self.config.optimiser.rate * self.config.schedule.at(step, self.total)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        tokens = int(batch.target_mask.sum())
        self.model.train()
        self.optimiser.zero_grad(set_to_none=True)
        with seeded(self.config.seed, step):
            loss = self._backward(batch, step, tokens)
        norm = float(torch.nn.utils.clip_grad_norm_(self.parameters, self.config.clip or math.inf))
        if not math.isfinite(loss.item()) or not math.isfinite(norm):
            given = f"loss {loss.item()}, gradient norm {norm}"
            raise RegardeError(f"Step {step + 1}: {given}: not finite. Lower training.optimiser.rate or training.clip.")
        self.optimiser.step()
        return StepResult(loss=loss.item(), tokens=tokens, norm=norm, rate=rate)

    def _backward(self, batch: Batch, step: int, tokens: int) -> Tensor:
        """The gradients of the loss per token, which it gives."""
        model, smoothing = self.model, self.config.label_smoothing
        if probability := self.config.sampling * step / self.total:
            model = Model(model.encoder, SampledDecoder(model.decoder, probability))
        if self.config.truncate:
            return truncated.backward(model, batch, words=self.config.truncate, tokens=tokens, smoothing=smoothing)
        loss = cross_entropy(model(batch), batch, smoothing=smoothing) / tokens
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()


@contextmanager
def seeded(seed: int, step: int = 0) -> Iterator[None]:
    """Inside, torch's random numbers depend on (seed, step) alone; outside, nobody's are touched."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed((seed * 1_000_003 + step) % 2**63)
        yield
