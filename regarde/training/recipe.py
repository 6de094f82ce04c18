"""The whole configuration of a run: the model, its data, its training with optimizer, schedule and length.

A recipe is read from TOML, laid over a preset, changed by `--set`, and saved with the run as config.toml. A schedule is
a factor on the optimizer's rate, a pure function of the step: `at(step, total)`, where step counts from 0 to total - 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim import Optimizer

from regarde import config, manual
from regarde.config import Bound, Count, NonNegative, Positive, Seed, Share, Size, Table, UnknownKeyError
from regarde.data.corpus import OnError
from regarde.errors import ConfigError, UsageError
from regarde.evaluation.metrics import JudgingName
from regarde.folder.model import Blueprint
from regarde.native.settings import copies, copying
from regarde.training.checkpoint import TrainingState
from regarde.training.guided import Guide, GuidedConfig
from regarde.training.objective import ClassWeights, CoverageLoss, Objective

UNKNOWN = 10**9  # estimate of all steps before the first is done
COMMON = {  # settings that `regarde train` and `regarde.train` know by a short name
    "steps": "training.steps",
    "epochs": "training.epochs",
    "minutes": "training.minutes",
    "rate": "training.optimizer.rate",
    "batch": "training.batch_pairs",
    "hidden": "model.hidden",
    "dropout": "model.dropout",
    "seed": "training.seed",
}
TRANSFORMER_HIDDEN = "model.size"


@dataclass(frozen=True)
class Adam:
    """Kingma and Ba 2015. Vaswani et al. use beta2 = 0.98, epsilon = 1e-9."""

    kind: Literal["adam"] = "adam"
    rate: Positive = 1e-3  # Learning rate, before the schedule's factor.
    beta1: Share = 0.9  # Decay of the gradient's running mean.
    beta2: Share = 0.999  # Decay of the squared gradient's running mean.
    epsilon: Positive = 1e-8  # Constant that keeps a divisor above zero.

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
    decay: NonNegative = 0.01  # Weight decay of each step, times the rate.

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
    rho: Share = 0.95  # Decay of the running means.
    epsilon: Positive = 1e-6

    def build(self, parameters: Iterable[Parameter]) -> Optimizer:
        return torch.optim.Adadelta(parameters, lr=self.rate, rho=self.rho, eps=self.epsilon)


@dataclass(frozen=True)
class SGD:
    """Plain gradient descent; Sutskever et al. 2014 use rate 0.7 without momentum."""

    kind: Literal["sgd"] = "sgd"
    rate: Positive = 0.7
    momentum: Share = 0.0  # Momentum of the updates.

    def build(self, parameters: Iterable[Parameter]) -> Optimizer:
        return torch.optim.SGD(parameters, lr=self.rate, momentum=self.momentum)


@dataclass(frozen=True)
class Adagrad:
    """Duchi et al. 2011; the defaults are those of See et al. 2017, section 5."""

    kind: Literal["adagrad"] = "adagrad"
    rate: Positive = 0.15
    initial: NonNegative = 0.1  # Sum of squared gradients before the first step.
    epsilon: Positive = 1e-10

    def build(self, parameters: Iterable[Parameter]) -> Optimizer:
        return torch.optim.Adagrad(parameters, lr=self.rate, initial_accumulator_value=self.initial, eps=self.epsilon)


OptimizerConfig = Adam | AdamW | Adadelta | SGD | Adagrad


@dataclass(frozen=True)
class Constant:
    """Always the same, after a linear warm-up."""

    kind: Literal["constant"] = "constant"
    warmup: Count = 0  # Steps over which the rate grows linearly from 0.

    def at(self, step: int, total: int) -> float:
        return _warm(step, self.warmup)


@dataclass(frozen=True)
class Cosine:
    """Half a cosine from 1 down to `floor` at the last step."""

    kind: Literal["cosine"] = "cosine"
    warmup: Count = 0
    floor: Share = 0.0  # Share of the rate that is left at the last step.

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
    """1 up to a share of training, then halved, or divided by another factor, again and again.

    Sutskever et al. 2014 halve each half epoch after 5 of 7.5: as shares of all steps, 5 / 7.5 and 0.5 / 7.5.
    """

    kind: Literal["halving"] = "halving"
    after: Share = 5 / 7.5  # Share of the training before the first halving.
    every: Positive = 0.5 / 7.5  # Share of the training between two halvings.
    factor: Annotated[float, Bound(1.0, 1e6)] = 2.0  # Number that the rate is divided by at each halving.

    def at(self, step: int, total: int) -> float:
        done = step / max(1, total)
        return 1.0 if done < self.after else float(self.factor ** -(1 + math.floor((done - self.after) / self.every)))


ScheduleConfig = Constant | Cosine | InverseSqrt | Halving


def _warm(step: int, warmup: int) -> float:
    return min(1.0, (step + 1) / warmup) if warmup else 1.0


@dataclass(frozen=True)
class DataConfig:
    """What the model learns from, and what is left out."""

    name: str = ""  # Embedded data set, or file of pairs.
    source: str = ""  # File of source sentences, instead of a file of pairs.
    target: str = ""  # File of target sentences, line-aligned with the source.
    valid: tuple[str, ...] = ()  # Files for validation; none: pairs are held out of the training data.
    columns: str = ""  # Columns of a table with more than two, source:target, for example 1+2:3.
    header: bool | None = None  # Whether the first row names the columns; not set: an error if it looks so.
    quotes: bool | None = None  # Whether double quotes enclose fields; not set: an error if they look so.
    on_error: OnError = "stop"  # What to do with a line that is not a pair.
    max_source: Count = 0  # Longest source to train on, in tokens; 0: no limit.
    max_target: Count = 0  # Longest target to train on, in tokens; 0: no limit.
    sha256: str = ""  # SHA-256 of the training pairs; the run records it.


@dataclass(frozen=True)
class TransferConfig:
    """A model whose weights the training starts from, and how much of it is kept (transfer.py)."""

    run: str = ""  # Model folder to start from, as --from.
    sha256: str = ""  # SHA-256 of its manifest; the run records it.
    vocabulary: Literal["same", "grown"] = "same"  # Keep its tokenizers, or add the new symbols of the data to them.
    pull: NonNegative = 0.0  # Weight of the L2 pull to the weights that the training starts from; 0: none.
    mix: Annotated[float, Bound(0.0, 0.95)] = 0.0  # Share of the rows of each batch that are old data.
    data: DataConfig | None = None  # the old data; not set: those of the model

    def __post_init__(self) -> None:
        for name in ("pull", "mix"):
            if getattr(self, name) and not self.run:
                raise ConfigError(f"{name} = {getattr(self, name):g} without a model to start from. Give --from RUN.")


@dataclass(frozen=True)
class TrainingConfig:
    """How weights are learned."""

    seed: Seed = 1  # Seed of initialization, order of the data and dropout.
    steps: Count = 0  # Number of updates; 0: as tokens, minutes or epochs say.
    epochs: Count = 10  # Passes over the data; unless set, limited to 5,000 to 20,000 steps.
    tokens: Count = 0  # Target tokens to train on, without padding; 0: no limit.
    minutes: NonNegative = 0.0  # Minutes of training, without validations; 0: no limit.
    batch_pairs: Count = 64  # Largest number of pairs in a batch; 0: no limit.
    batch_tokens: Count = 8000  # Largest number of tokens in a batch, both sides with padding; 0: no limit.
    accumulate: Annotated[int, Bound(1, 10_000)] = 1  # Batches for each update, in each process.
    precision: Literal["fp32", "bf16"] = "fp32"  # Precision of matrix products; weights and updates are always fp32.
    optimizer: OptimizerConfig = field(default_factory=Adam)  # Algorithm that updates the weights.
    schedule: ScheduleConfig = field(default_factory=Constant)  # How the learning rate changes over the training.
    clip: NonNegative = 1.0  # Largest norm of the gradient; 0: no limit.
    label_smoothing: Share = 0.0  # Share of the probability that is spread over the vocabulary.
    unknown: Share = 0.0  # Probability that a source token that occurs once in the data is unknown in a batch.
    hide: Share = 0.0  # Probability that a source token is unknown in its sentence, for a model that copies it.
    class_weights: ClassWeights = "none"  # Weight of each label's loss; balanced: rare labels count more.
    truncate: Count = 0  # Target tokens that gradients flow back through; 0: all.
    sampling: Share = 0.0  # Probability, reached at the end, that the decoder reads its own output.
    guided_alignment: GuidedConfig = field(default_factory=GuidedConfig)  # attention taught by given links
    coverage: CoverageLoss = field(default_factory=CoverageLoss)  # a penalty for attention to the same again
    freeze: tuple[str, ...] = ()  # Parts of the model that stay as they are, such as encoder or embeddings.
    transfer: TransferConfig = field(default_factory=TransferConfig)  # a model to start from
    valid_every: Size = 500  # Steps between validations.
    valid_pairs: Size = 500  # Pairs translated at each validation; the loss is that of all.
    save_every: Count = 0  # Steps between checkpoints besides those of validations; 0: every ten minutes.
    patience: Count = 0  # Validations without improvement before training stops; 0: never.
    metric: JudgingName = "exact_match"  # Metric that chooses the best model.
    keep: Annotated[int, Bound(2, 1000)] = 2  # Number of newest checkpoints to keep.
    tensorboard: bool = False  # Also write the metrics for TensorBoard.

    def __post_init__(self) -> None:
        if self.truncate == 1:  # a cell whose state is first read by the next word would never learn
            raise ConfigError("truncate = 1: no gradient would reach the word before. Use 2 or more, or 0 for all.")

    def objective(self, weights: Tensor | None = None, guide: Guide | None = None) -> Objective:
        """What is minimized; `weights` of the classes and links are those of the data."""
        return Objective(self.label_smoothing, weights, guide, self.truncate, self.coverage)


def length(training: TrainingConfig) -> str:
    """How long a training may last, in words."""
    limits = [(training.steps, "step"), (training.tokens, "target token"), (training.minutes, "minute")]
    return " or ".join(
        f"{limit:,}".removesuffix(".0") + f" {unit}{'s' if limit != 1 else ''}" for limit, unit in limits if limit
    )


@dataclass(frozen=True)
class Recipe(Blueprint):
    """A blueprint, with its data and its training."""

    data: DataConfig = field(default_factory=DataConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.training.guided_alignment.links:
            self._check_attending("training.guided_alignment trains attention")
        if self.training.coverage.weight:
            self._check_attending("training.coverage penalizes attention")
        if self.training.transfer.mix and (self.task.context or self.training.guided_alignment.links):
            other = "task.context: running text" if self.task.context else "training.guided_alignment: linked pairs"
            raise ConfigError(f"training.transfer.mix mixes rows, which is not done with {other}. Leave out one.")
        self._check_copying()
        if self.task.context:
            self._check_running()
        piecemeal = [name for name in ("truncate", "sampling") if getattr(self.training, name)]
        if piecemeal and "variational" in (table := config.as_table(self.model)) and table["variational"]:
            given = f"training.{piecemeal[0]} runs the decoder piece by piece, each with dropout of its own"
            raise ConfigError(
                f"{given}, but model.variational needs one mask for a whole sentence. Switch one of them off."
            )
        if self.model.kind == "classifier" and self.model.several:
            for name in ("label_smoothing", "class_weights"):
                if (value := getattr(self.training, name)) not in (0, "none"):
                    given = f"training.{name} = {value} with several labels: it needs labels that exclude one another"
                    raise ConfigError(f"{given}. Leave it out.")

    def _check_running(self) -> None:
        training, data = self.training, self.data
        cuts = {"training.truncate": training.truncate, "training.sampling": training.sampling}
        limits = {"data.max_source": data.max_source, "data.max_target": data.max_target}
        for key, value in (cuts | limits).items():
            if value:
                given = f"{key} = {value:g} is for separate texts"
                raise ConfigError(
                    f"{given}, but task.context = {self.task.context} is for running text. Leave out one."
                )

    def _check_copying(self) -> None:
        training = self.training
        if training.hide and not copies(self.model):
            given = f"training.hide = {training.hide:g} is for a model that copies what it does not know"
            raise ConfigError(f"{given}. Set model.copying.kind=pointer, or leave it out.")
        if training.sampling and training.label_smoothing and copying(self.model) != "none":
            given = "training.sampling and training.label_smoothing with model.copying"
            raise ConfigError(f"{given}: smoothing needs the words of the target. Switch one of them off.")

    def _check_attending(self, given: str) -> None:
        if "attention" not in config.as_table(self.model):
            raise ConfigError(f"{given}, but {self.model.kind} has none. Leave it out, or choose another model.")
        if self.training.truncate:
            raise ConfigError(f"{given} on whole targets, but training.truncate cuts them. Switch one of them off.")


def parse(tables: Table) -> Recipe:
    """A recipe from raw tables, every key checked."""
    try:
        return config.parse(Recipe, tables)
    except UnknownKeyError as error:
        if elsewhere := _elsewhere(tables, error.key):
            raise UnknownKeyError(f'{error.key}: unknown key. Did you mean "{elsewhere}"?', error.key) from None
        if error.key in manual.settings(Recipe):
            raise UnknownKeyError(f"{error} It is for another kind: regarde config {error.key}", error.key) from None
        raise


def _elsewhere(tables: Table, key: str) -> str | None:
    """The full key that ends in this word, if the user left out its table or named a wrong one."""
    word = key.rpartition(".")[2]
    known, keys = manual.settings(Recipe), [COMMON.get(word, "")]
    if key not in known:  # otherwise it is for another kind
        keys += [k for k in known if k.endswith(f".{word}")]
    if word == "hidden":
        keys.append(TRANSFORMER_HIDDEN)
    value, others = _taken(tables, key)
    for found in filter(None, keys):
        *path, last = found.split(".")
        given: Table = {last: value}
        for name in reversed(path):
            given = {name: given}
        try:
            config.parse(Recipe, config.with_kinds(Recipe, config.merge(others, given)))
        except ConfigError:
            continue
        return found
    return None


def _taken(tables: Table, key: str) -> tuple[Any, Table]:
    """The value of a key, and the tables without it."""
    name, _, rest = key.partition(".")
    value, left = _taken(tables[name], rest) if rest else (tables[name], None)
    others = {other: inner for other, inner in tables.items() if other != name}
    return value, others if left is None else others | {name: left}


def common_settings(tables: Table, given: Mapping[str, float | None]) -> list[str]:
    """Common settings by their short names as KEY=VALUE, for the model of these tables; None is not given."""
    stated = {name: value for name, value in given.items() if value is not None}
    if "epochs" in stated and stated.keys() & {"steps", "minutes"}:
        raise UsageError("epochs, with steps or minutes: each sets the length of the training. Give epochs alone.")
    keys = COMMON
    if tables.get("model", {}).get("kind") in ("transformer", "transformer-lm"):
        keys = keys | {"hidden": TRANSFORMER_HIDDEN}
    cleared = [f"training.{name}=0" for name in ("steps", "tokens", "minutes") if "epochs" in stated]
    return cleared + [f"{keys[name]}={value}" for name, value in stated.items()]


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
        """The share of the budget that is spent."""
        shares = [(state.step, self.steps), (state.seen, self.tokens), (state.trained, self.minutes * 60)]
        return max(spent / limit for spent, limit in shares if limit)

    def total(self, state: TrainingState) -> int:
        """The steps in all, which schedules need; with tokens or minutes an estimate: 900 if 300 were a third."""
        if not self.tokens and not self.minutes:
            return self.steps
        share = self.share(state)
        return max(state.step + 1, math.ceil(state.step / share)) if share else self.steps or UNKNOWN
