"""The whole configuration of a run: what the model is, what it learns from, how it is trained.

A recipe is read from TOML, laid over a preset, changed by `--set`, and saved with the run as config.toml.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from regarde import config
from regarde.config import Bound, Count, NonNegative, Seed, Share, Size, Table
from regarde.data.corpus import OnError
from regarde.errors import ConfigError
from regarde.evaluation.metrics import MetricName
from regarde.folder import Blueprint
from regarde.training.guided import GuidedConfig
from regarde.training.optimiser import Adam, OptimiserConfig
from regarde.training.schedule import Constant, ScheduleConfig


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
    epochs: Count = 10  # if nothing of this is said, in 5,000 to 20,000 steps
    tokens: Count = 0  # of the target that are learned from, padding apart; 0 = no limit
    minutes: NonNegative = 0.0  # spent on updates, validations apart; 0 = no limit. Schedules end with them
    batch_pairs: Count = 64  # sentences in a batch at most
    batch_tokens: Count = 8000  # padded positions of both sides in a batch at most
    accumulate: Annotated[int, Bound(1, 10_000)] = 1  # batches of an update, for each process
    precision: Literal["fp32", "bf16"] = "fp32"  # of the products; weights and their updates are always fp32
    optimiser: OptimiserConfig = field(default_factory=Adam)
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
    metric: MetricName = "exact_match"
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
