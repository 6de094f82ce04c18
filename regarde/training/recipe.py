"""The whole configuration of a run: the model, its data, its training with optimizer, schedule and length.

A recipe is read from TOML, laid over a preset, changed by `--set`, and saved with the run as config.toml. A schedule is
a factor on the optimizer's rate, a pure function of the step: `at(step, total)`, where step counts from 0 to total - 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Literal

import torch
from torch.nn import Parameter
from torch.optim import Optimizer

from regarde import config
from regarde.config import Bound, Count, NonNegative, Positive, Seed, Share, Size, Table
from regarde.data.corpus import OnError
from regarde.errors import ConfigError
from regarde.evaluation.metrics import MetricName
from regarde.folder.model import Blueprint
from regarde.training.checkpoint import TrainingState
from regarde.training.guided import GuidedConfig

UNKNOWN = 10**9  # steps, before anything is spent


@dataclass(frozen=True)
class Adam:
    """Kingma and Ba 2015. Vaswani et al. use beta2 = 0.98, epsilon = 1e-9."""

    kind: Literal["adam"] = "adam"
    rate: Positive = 1e-3
    beta1: Share = 0.9
    beta2: Share = 0.999
    epsilon: Positive = 1e-8

    def build(self, parameters: Iterable[Parameter]) -> Optimizer:
        betas = (self.beta1, self.beta2)
        return torch.optim.Adam(parameters, lr=self.rate, betas=betas, eps=self.epsilon, fused=True)


@dataclass(frozen=True)
class AdamW:
    """Loshchilov and Hutter 2019: Adam with weight decay apart from the gradient."""

    kind: Literal["adamw"] = "adamw"
    rate: Positive = 1e-3
    beta1: Share = 0.9
    beta2: Share = 0.999
    epsilon: Positive = 1e-8
    decay: NonNegative = 0.01

    def build(self, parameters: Iterable[Parameter]) -> Optimizer:
        betas = (self.beta1, self.beta2)
        return torch.optim.AdamW(
            parameters, lr=self.rate, betas=betas, eps=self.epsilon, weight_decay=self.decay, fused=True
        )


@dataclass(frozen=True)
class Adadelta:
    """Zeiler 2012; the defaults are those of Bahdanau et al. 2015, appendix B.2."""

    kind: Literal["adadelta"] = "adadelta"
    rate: Positive = 1.0
    rho: Share = 0.95
    epsilon: Positive = 1e-6

    def build(self, parameters: Iterable[Parameter]) -> Optimizer:
        return torch.optim.Adadelta(parameters, lr=self.rate, rho=self.rho, eps=self.epsilon)


@dataclass(frozen=True)
class SGD:
    """Plain gradient descent; Sutskever et al. 2014 use rate 0.7 without momentum."""

    kind: Literal["sgd"] = "sgd"
    rate: Positive = 0.7
    momentum: Share = 0.0

    def build(self, parameters: Iterable[Parameter]) -> Optimizer:
        return torch.optim.SGD(parameters, lr=self.rate, momentum=self.momentum)


OptimizerConfig = Adam | AdamW | Adadelta | SGD


@dataclass(frozen=True)
class Constant:
    """Always the same, after a linear warm-up."""

    kind: Literal["constant"] = "constant"
    warmup: Count = 0

    def at(self, step: int, total: int) -> float:
        return _warm(step, self.warmup)


@dataclass(frozen=True)
class Cosine:
    """Half a cosine from 1 down to `floor` at the last step."""

    kind: Literal["cosine"] = "cosine"
    warmup: Count = 0
    floor: Share = 0.0

    def at(self, step: int, total: int) -> float:
        done = (step - self.warmup) / max(1, total - self.warmup)
        fall = 0.5 * (1 + math.cos(math.pi * min(1.0, max(0.0, done))))
        return _warm(step, self.warmup) * (self.floor + (1 - self.floor) * fall)


@dataclass(frozen=True)
class InverseSqrt:
    """Vaswani et al. 2017, equation 3, scaled to 1 at the end of the warm-up: min(n / w, sqrt(w / n))."""

    kind: Literal["inverse-sqrt"] = "inverse-sqrt"
    warmup: Count = 4000

    def at(self, step: int, total: int) -> float:
        n, w = step + 1, max(1, self.warmup)
        return min(n / w, math.sqrt(w / n))


@dataclass(frozen=True)
class Halving:
    """1 up to a share of training, then halved again and again.

    Sutskever et al. 2014 halve each half epoch after 5 of 7.5: as shares of all steps, 5 / 7.5 and 0.5 / 7.5.
    """

    kind: Literal["halving"] = "halving"
    after: Share = 5 / 7.5
    every: Positive = 0.5 / 7.5

    def at(self, step: int, total: int) -> float:
        done = step / max(1, total)
        return 1.0 if done < self.after else float(0.5 ** (1 + math.floor((done - self.after) / self.every)))


ScheduleConfig = Constant | Cosine | InverseSqrt | Halving


def _warm(step: int, warmup: int) -> float:
    return min(1.0, (step + 1) / warmup) if warmup else 1.0


@dataclass(frozen=True)
class DataConfig:
    """What the model learns from, and what is left out."""

    name: str = ""  # an embedded data set, or the file that was given
    source: str = ""  # or two line-aligned files
    target: str = ""
    valid: tuple[str, ...] = ()  # files for validation; none: held out of the training data
    columns: str = ""  # of a table with more than two, for example "1+2:3"
    header: bool | None = None  # whether the first row names the columns; left out: asked, where it seems to
    quotes: bool | None = None  # whether double quotes enclose fields; left out: asked, where they seem to
    on_error: OnError = "stop"
    max_source: Count = 0  # tokens; 0 = no limit. Bahdanau et al. trained up to 30 or 50 words
    max_target: Count = 0
    sha256: str = ""  # of the training pairs, recorded by the run


@dataclass(frozen=True)
class TrainingConfig:
    """How weights are learned."""

    seed: Seed = 1
    steps: Count = 0  # updates in all; 0: as many as `tokens` or `minutes` allow, or as `epochs` need
    epochs: Count = 10  # if none of these is given, bounded to 5,000 to 20,000 steps
    tokens: Count = 0  # of the target that are learned from, padding apart; 0 = no limit
    minutes: NonNegative = 0.0  # spent on updates, validations apart; 0 = no limit. Schedules end with them
    batch_pairs: Count = 64  # sentences in a batch at most
    batch_tokens: Count = 8000  # padded positions of both sides in a batch at most
    accumulate: Annotated[int, Bound(1, 10_000)] = 1  # batches of an update, for each process
    precision: Literal["fp32", "bf16"] = "fp32"  # of the products; weights and their updates are always fp32
    optimizer: OptimizerConfig = field(default_factory=Adam)
    schedule: ScheduleConfig = field(default_factory=Constant)
    clip: NonNegative = 1.0  # norm of the gradient; 0 = never
    label_smoothing: Share = 0.0
    truncate: Count = 0  # target words that gradients go back through; 0 = all
    sampling: Share = 0.0  # how often the decoder reads its own word, rising from 0 to this over all steps
    guided_alignment: GuidedConfig = field(default_factory=GuidedConfig)  # attention taught by given links
    valid_every: Size = 500  # steps
    valid_pairs: Size = 500  # translated at each validation; the loss is taken over all
    save_every: Count = 0  # steps between checkpoints, besides those of the validations; 0: every ten minutes
    patience: Count = 0  # validations without a better metric before stopping; 0 = never stop early
    metric: MetricName | Literal["perplexity"] = "exact_match"
    keep: Annotated[int, Bound(2, 1000)] = 2  # checkpoints, the newest ones; to average them later
    tensorboard: bool = False  # the metrics also as TensorBoard reads them

    def __post_init__(self) -> None:
        if self.truncate == 1:  # a cell whose state is first read by the next word would never learn
            raise ConfigError("truncate = 1: no gradient would reach the word before. Use 2 or more, or 0 for all.")


def length(training: TrainingConfig) -> str:
    """How long a training may last, in words."""
    limits = [(training.steps, "steps"), (training.tokens, "target tokens"), (training.minutes, "minutes")]
    return " or ".join(
        f"{limit:,g} {unit}" if unit == "minutes" else f"{limit:,} {unit}" for limit, unit in limits if limit
    )


@dataclass(frozen=True)
class Recipe(Blueprint):
    """A blueprint, with its data and its training."""

    data: DataConfig = field(default_factory=DataConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.training.guided_alignment.links:
            self._check_guided()
        piecemeal = [name for name in ("truncate", "sampling") if getattr(self.training, name)]
        if piecemeal and "variational" in (table := config.as_table(self.model)) and table["variational"]:
            given = f"training.{piecemeal[0]} runs the decoder piece by piece, each with dropout of its own"
            raise ConfigError(f"{given}, but model.variational wants one mask for a sentence. Switch one of them off.")

    def _check_guided(self) -> None:
        given = "training.guided_alignment teaches attention"
        if "attention" not in config.as_table(self.model):
            raise ConfigError(f"{given}, and {self.model.kind} has none. Leave it out, or choose another model.")
        if self.training.truncate:
            raise ConfigError(f"{given} over whole targets, and training.truncate cuts them. Switch one of them off.")


def parse(tables: Table) -> Recipe:
    """A recipe from raw tables, every key checked."""
    return config.parse(Recipe, tables)


@dataclass(frozen=True)
class Budget:
    """How long a training lasts: steps, target tokens or minutes, whichever ends first; 0 = no limit."""

    steps: int
    tokens: int = 0
    minutes: float = 0.0

    @classmethod
    def of(cls, training: TrainingConfig) -> Budget:
        return cls(training.steps, training.tokens, training.minutes)

    def share(self, state: TrainingState) -> float:
        """The share of it that is spent."""
        shares = [(state.step, self.steps), (state.seen, self.tokens), (state.trained, self.minutes * 60)]
        return max(spent / limit for spent, limit in shares if limit)

    def total(self, state: TrainingState) -> int:
        """The steps in all, which schedules need; tokens or minutes give an estimate (300 for a third: 900)."""
        if not self.tokens and not self.minutes:
            return self.steps
        share = self.share(state)
        return max(state.step + 1, math.ceil(state.step / share)) if share else self.steps or UNKNOWN
