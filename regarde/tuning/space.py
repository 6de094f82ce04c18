"""The space of a hyperparameter search, in TOML: a table for each dotted key of a recipe.

[space."training.optimizer.rate"]      a number from low to high; log: uniform in the logarithm
low = 1e-4
high = 1e-2
log = true

[space."model.hidden"]                 an integer if both ends are; step: the distance of values
low = 128
high = 512
step = 64

[space."model.cell"]                   one of a list: strings, numbers, true or false
choices = ["gru", "lstm"]
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regarde import config
from regarde.config import Table
from regarde.errors import ConfigError
from regarde.training import recipe as recipes

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Value = str | int | float | bool
_KEY = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)+")
_JUDGED = ("data.", "training.metric", "training.seed")  # settings by which trials are compared
_DIGITS = 4  # significant digits of a sampled number


@dataclass(frozen=True)
class NumberRange:
    """A number from low to high, both included."""

    low: float
    high: float
    log: bool = False
    step: float | None = None

    def __post_init__(self) -> None:
        for name, number in (("low", self.low), ("high", self.high), ("step", self.step)):
            if number is not None and (type(number) not in (int, float) or not math.isfinite(number)):
                raise ConfigError(f"{name} = {number!r}: expected a number.")
        if not self.low < self.high:
            raise ConfigError(f"low = {self.low}, high = {self.high}: expected low to be less than high.")
        if self.log and self.low <= 0:
            raise ConfigError(f"low = {self.low} with log: expected more than 0, because 0 has no logarithm.")
        if self.step is not None and (self.log or not 0 < self.step <= self.high - self.low):
            raise ConfigError(f"step = {self.step}: expected a step of at most high - low, without log.")
        if self.whole and type(self.step) is float:
            raise ConfigError(f"step = {self.step}: expected a whole number, like low and high.")

    @property
    def whole(self) -> bool:
        return type(self.low) is int and type(self.high) is int

    def distribution(self) -> BaseDistribution:
        from optuna.distributions import FloatDistribution, IntDistribution

        if self.whole:
            high = self.high if self.step is None else self.high - (self.high - self.low) % self.step
            return IntDistribution(int(self.low), int(high), log=self.log, step=int(self.step or 1))
        high = self.high
        if self.step is not None:  # otherwise Optuna warns for every trial
            high = round(self.low + math.floor((self.high - self.low) / self.step + 1e-9) * self.step, 12)
        return FloatDistribution(self.low, high, log=self.log, step=self.step)

    def rounded(self, value: Value) -> Value:
        if self.whole:
            return int(value)
        return min(max(float(f"{value:.{_DIGITS}g}"), float(self.low)), float(self.high))

    def holds(self, value: Any) -> bool:
        return type(value) in ((int,) if self.whole else (int, float)) and self.distribution()._contains(value)

    def ends(self) -> tuple[Value, ...]:
        return (self.low, self.high)

    def table(self) -> Table:
        return {"low": self.low, "high": self.high, "log": self.log} | (
            {} if self.step is None else {"step": self.step}
        )


@dataclass(frozen=True)
class Choices:
    """One of several values."""

    choices: tuple[Value, ...]

    def __post_init__(self) -> None:
        if len(self.choices) < 2 or any(type(choice) not in (str, int, float, bool) for choice in self.choices):
            raise ConfigError("choices: expected a list of two or more strings, numbers, true or false.")
        if len({(type(choice), choice) for choice in self.choices}) < len(self.choices):
            raise ConfigError("choices: one value occurs twice. Remove it.")

    def distribution(self) -> BaseDistribution:
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(self.choices)

    def rounded(self, value: Value) -> Value:
        return value

    def holds(self, value: Any) -> bool:
        return any(type(value) is type(choice) and value == choice for choice in self.choices)

    def ends(self) -> tuple[Value, ...]:
        return self.choices

    def table(self) -> Table:
        return {"choices": list(self.choices)}


Parameter = NumberRange | Choices  # the possible values of a setting


@dataclass(frozen=True)
class Space:
    """The settings that are searched, by their dotted keys."""

    parameters: Mapping[str, Parameter]

    def distributions(self) -> dict[str, BaseDistribution]:
        return {key: parameter.distribution() for key, parameter in self.parameters.items()}

    def rounded(self, values: Mapping[str, Value]) -> dict[str, Value]:
        return {key: self.parameters[key].rounded(value) for key, value in values.items()}

    def laid(self, values: Mapping[str, Value], below: Table) -> Table:
        """The tables of a recipe with these values in them."""
        above: Table = {}
        for key, value in values.items():
            inner = above
            *tables, last = key.split(".")
            for name in tables:
                inner = inner.setdefault(name, {})
            inner[last] = value
        return config.merge(below, above)

    def there(self, tables: Table) -> dict[str, Value] | None:
        """The values of the recipe, if all of them are in the space."""
        whole = config.as_table(recipes.parse(tables))
        values = {key: _found(whole, key) for key in self.parameters}
        return values if all(self.parameters[key].holds(value) for key, value in values.items()) else None

    def check(self, tables: Table) -> None:
        """Check that every key exists, and that the ends of every range and every choice are valid values.

        Values are checked one at a time; invalid combinations make a trial fail.
        """
        for key, parameter in self.parameters.items():
            errors = []
            for value in parameter.ends():
                try:
                    recipes.parse(self.laid({key: value}, tables))
                except ConfigError as error:
                    errors.append(error)
            own = [error for error in errors if str(error).startswith(key)]
            if own or len(errors) == len(parameter.ends()):
                raise (own or errors)[0]

    def table(self) -> Table:
        return {key: parameter.table() for key, parameter in self.parameters.items()}


def read(path: Path) -> Space:
    """The space that a TOML file declares."""
    tables = config.read(path)
    for name in tables:
        if name != "space":
            raise ConfigError(f"{path}: {config.unknown(name, name, ['space'], 'table')}")
    declared = tables.get("space")
    if not isinstance(declared, dict) or not declared:
        raise ConfigError(f'{path}: nothing to search. Expected tables such as [space."training.optimizer.rate"].')
    return Space({key: _parameter(f'{path}: space."{key}"', key, table) for key, table in _flat(declared).items()})


def _flat(tables: Table, where: str = "") -> dict[str, Any]:
    """Accept [space.model.hidden] for [space."model.hidden"]."""
    found: dict[str, Any] = {}
    for name, value in tables.items():
        key = f"{where}{name}"
        inner = isinstance(value, dict) and value and all(isinstance(item, dict) for item in value.values())
        found |= _flat(value, f"{key}.") if inner else {key: value}
    return found


def _parameter(where: str, key: str, table: Any) -> Parameter:
    if not _KEY.fullmatch(key):
        raise ConfigError(f"{where}: not a key of a recipe. Expected a dotted key, such as training.optimizer.rate.")
    if key.startswith(_JUDGED):
        raise ConfigError(f"{where}: trials that differ in it cannot be compared. Leave it out.")
    if not isinstance(table, dict):
        raise ConfigError(f"{where}: expected a table with low and high, or with choices.")
    known = ("choices",) if "choices" in table else ("low", "high", "log", "step")
    for name in table:
        if name not in known:
            raise ConfigError(f"{where}: {config.unknown(name, name, known, 'key')}")
    try:
        if "choices" in table:
            listed = table["choices"]
            return Choices(tuple(listed) if isinstance(listed, list) else ())
        if not {"low", "high"} <= table.keys():
            raise ConfigError("expected low and high, or choices.")
        if type(table.get("log", False)) is not bool:
            raise ConfigError(f"log = {table['log']!r}: expected true or false.")
        return NumberRange(**table)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _found(tables: Table, key: str) -> Any:
    inner: Any = tables
    for name in key.split("."):
        inner = inner.get(name) if isinstance(inner, dict) else None
    return inner
