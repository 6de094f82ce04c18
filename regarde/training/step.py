"""One update: forward, loss, backward, clip, optimizer step. All its random numbers are functions of (seed, batch)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from regarde.data.batch import Batch, Batched
from regarde.errors import RegardeError
from regarde.models.interface import Model, State, Trainable
from regarde.native.library import keep_memory
from regarde.training.distributed import ALONE, GradientSum, World
from regarde.training.objective import Objective
from regarde.training.prepared import Minimized, NumberedBatch
from regarde.training.recipe import TrainingConfig
from regarde.training.scheduled import SampledDecoder


@dataclass(frozen=True)
class StepResult:
    """The figures of one update."""

    loss: float  # per target token or value, all terms of the objective included
    tokens: int  # of the target, EOS included
    norm: float  # of the gradient before clipping
    rate: float
    stop: bool = False  # whether any process received a signal


class NotFiniteError(RegardeError):
    """A loss or a gradient was NaN or infinite; nothing was updated."""

    def __init__(self, message: str, numbers: list[int]) -> None:
        super().__init__(message)
        self.numbers = numbers  # of the batches whose own loss was not finite


class Stepper:
    """A model, its optimizer and its schedule; for texts that continue from batch to batch, also a state."""

    def __init__(
        self,
        model: Trainable,
        config: TrainingConfig,
        total: int,
        world: World = ALONE,
        objective: Minimized | None = None,
        *,
        carries: bool = False,
    ) -> None:
        self.model = model
        self.config = config
        self.total = total
        self.world = world
        self.objective = objective or config.objective()
        self.carries = carries
        self.carried: State | None = None  # after the last batch
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.origin: dict[str, Tensor] = {}  # the weights that parameters are pulled to
        self.gradients = GradientSum(world, self.parameters)
        self.optimizer = config.optimizer.build(self.parameters)
        keep_memory()

    def __call__(self, batch: Batch, step: int) -> StepResult:
        """Update number `step`, counted from 0, on one batch."""
        return self.update([NumberedBatch(batch, step)], step, tokens=int(batch.target_mask.sum()))

    def update(self, batches: Sequence[NumberedBatch], step: int, *, tokens: int, stop: bool = False) -> StepResult:
        """Update on the batches of this process. `tokens`: target tokens of all batches of all processes together.

        A loss or gradient that is not finite raises an error before the update.
        """
        rate = self.config.optimizer.rate * self.config.schedule.at(step, self.total)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        losses = []
        for one in batches:
            whole = one is batches[-1] and not self.config.truncate  # a truncated pass is one of several
            sending = self.gradients.during() if whole else nullcontext()
            with seeded(self.config.seed, one.number), self._precision(one.batch), sending:
                losses.append(self._backward(one, step, tokens))
        loss, stop = self._add_up(losses, stop)
        self._pull()
        gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        length = torch.nn.utils.get_total_norm(gradients)
        norm = float(length)
        if not math.isfinite(loss) or not math.isfinite(norm):
            given = f"Step {step + 1}: loss {loss}, gradient norm {norm}"
            remedy = "Lower training.optimizer.rate or training.clip."
            bad = [one.number for one, own in zip(batches, losses, strict=True) if not own.isfinite()]
            raise NotFiniteError(f"{given}: not finite. {remedy}", bad)
        if self.config.clip and norm > self.config.clip:  # otherwise gradients would be multiplied by 1
            torch.nn.utils.clip_grads_with_norm_(self.parameters, self.config.clip, length)
        self.optimizer.step()
        return StepResult(loss=loss, tokens=tokens, norm=norm, rate=rate, stop=stop)

    def _backward(self, one: NumberedBatch, step: int, tokens: int) -> Tensor:
        """Add the gradients of the loss per token to the parameters'; returns that loss."""
        model = self.model
        if probability := self.config.sampling * step / self.total:
            assert isinstance(model, Model), "scheduled sampling is for models of texts"
            model = Model(model.encoder, SampledDecoder(model.decoder, probability))
        if not self.carries:
            done = step / self.total
            return self.objective.backward(model, one.batch, tokens=tokens, gold=one.gold, done=done)
        assert isinstance(model, Model), "only models of texts carry a state to the next batch"
        assert isinstance(one.batch, Batch)
        assert isinstance(self.objective, Objective)
        logits, self.carried = model.carry(one.batch, None if one.batch.starts else self.carried)
        loss = self.objective.words(logits, one.batch, tokens)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def _add_up(self, losses: Sequence[Tensor], stop: bool) -> tuple[float, bool]:
        """Add up gradients, and loss and stop requests, of all batches and all processes."""
        loss = losses[0] if len(losses) == 1 else torch.stack(list(losses)).sum()
        if self.world.size == 1:
            return loss.item(), stop
        shared = torch.stack([loss.float(), torch.full_like(loss, stop, dtype=torch.float32)])
        self.gradients.finish(shared)
        return shared[0].item(), shared[1].item() > 0

    @torch.no_grad()
    def _pull(self) -> None:
        """Add the gradient of pull / 2 |w - w_0|^2, once for all processes and batches."""
        pull, parameters = self.config.transfer.pull, dict(self.model.named_parameters())
        for name, weights in self.origin.items():
            parameter = parameters[name]
            away = parameter - weights
            parameter.grad = pull * away if parameter.grad is None else parameter.grad.add_(away, alpha=pull)

    def _precision(self, batch: Batched) -> AbstractContextManager[object]:
        if self.config.precision == "fp32":
            return nullcontext()
        return torch.autocast(batch.tensors()[0].device.type, dtype=torch.bfloat16)


@contextmanager
def seeded(seed: int, number: int = 0) -> Iterator[None]:
    """Within it, torch's random numbers depend only on (seed, number); the global generator is restored at its end."""
    devices = range(torch.cuda.device_count())  # manual_seed seeds every device
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed((seed * 1_000_003 + number) % 2**63)
        yield
