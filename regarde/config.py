"""TOML <-> frozen dataclasses: strict keys, bounds, nearest names, dotted overrides.

A configuration is a frozen dataclass. The types of its fields define the allowed values; its defaults are written
nowhere else. The comment beside a field describes it to users (manual.py). This module does not depend on any model: a
field typed as a union of dataclasses is a choice among their `kind`s.

    int, float, bool, str      plain values (a float may be written as an int)
    Annotated[int, Bound(…)]   the same, within bounds
    Literal["a", "b"]          one of a closed list
    tuple[str, ...]            a list
    X | None                   may be left out
    A | B                      dataclasses, each with its own `kind: Literal["…"]`
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import numbers
import re
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import tomli_w

from regarde.errors import ConfigError, unreadable

Config = TypeVar("Config")
Table = dict[str, Any]
LARGEST = 1 << 20  # bytes of a TOML file
DEEPEST = 16  # tables within tables
RENAMED = {"normalise": "normalize", "normaliser": "normalizer", "optimiser": "optimizer"}  # keys of version 0.1
_LONGEST = 60  # characters of a value in a message
# a key with very many parts; possessive (*+), and no match starts at a space: otherwise time would not be linear
_DOTTED = re.compile(rf"""(?<![\w-])(?![ \t])(?:["']?+[\w-]*+["']?+[ \t]*+\.[ \t]*+){{{2 * DEEPEST}}}""")


class UnknownWordError(ConfigError):
    """A key, a kind or a value that is not in the list of known ones."""


class UnknownKeyError(UnknownWordError):
    """A key that its table does not have."""

    def __init__(self, message: str, key: str) -> None:
        super().__init__(message)
        self.key = key  # with its tables: path.to.key


@dataclass(frozen=True)
class Bound:
    """The smallest and the largest value allowed."""

    low: float
    high: float


Size = Annotated[int, Bound(1, 65_536)]  # a width, a number of units
Depth = Annotated[int, Bound(1, 64)]  # a number of layers
Count = Annotated[int, Bound(0, 10**12)]  # a number of steps, pairs, tokens; 0 often means "no limit"
Share = Annotated[float, Bound(0.0, 1.0)]  # a probability
Positive = Annotated[float, Bound(1e-12, 1e12)]
NonNegative = Annotated[float, Bound(0.0, 1e12)]
Seed = Annotated[int, Bound(0, 2**63 - 1)]


def read(path: Path) -> Table:
    """The raw tables of a TOML file."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)  # the path may be a device without an end
        if len(content) > LARGEST:
            raise ConfigError(f"{path}: larger than {LARGEST:,} bytes. Give the path of a TOML file.")
        return read_text(str(path), content.decode("utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file. Give the path of a TOML file.") from None
    except OSError as error:
        raise ConfigError(unreadable(path, error, "Give the path of a TOML file.")) from None
    except UnicodeDecodeError as error:
        where = f"byte {error.object[error.start]:#04x} at offset {error.start:,}"
        raise ConfigError(f"{path}: not valid UTF-8 ({where}). Give the path of a TOML file.") from None


def read_text(name: str, text: str) -> Table:
    """The raw tables of a TOML text; `name` is its name in messages."""
    try:
        if _DOTTED.search(text):  # tomllib takes hours for a key of many thousand dots
            raise RecursionError
        table = tomllib.loads(text)
    except RecursionError:
        raise ConfigError(f"{name}: nested too deep. Use at most {DEEPEST} levels of tables.") from None
    except ValueError as error:  # includes numbers of thousands of digits
        raise ConfigError(f"{name}: not valid TOML: {error}.") from None
    layer: list[Any] = [table]
    for _ in range(DEEPEST):
        layer = [inner for value in layer if isinstance(value, dict) for inner in value.values()]
    if layer:
        raise ConfigError(f"{name}: nested too deep. Use at most {DEEPEST} levels of tables.")
    return _renamed(table)


def override(table: Table, settings: Iterable[str]) -> Table:
    """A copy of `table` in which each `path.to.key=value` is set. A value is TOML, otherwise a plain string."""
    for setting in settings:
        path, equals, text = setting.partition("=")
        keys = [RENAMED.get(key, key) for key in path.strip().split(".")]
        if not equals or not all(keys):
            raise ConfigError(f"--set {_cut(setting)}: expected path.to.key=value, for example model.hidden=256.")
        if len(keys) > DEEPEST:
            raise ConfigError(f"--set {_cut(setting)}: nested too deep. Expected a key such as model.hidden.")
        inner = table
        for key in keys[:-1]:
            inner = inner.get(key, {})
            if not isinstance(inner, dict):
                raise ConfigError(f"--set {_cut(setting)}: {key} is a value, not a table. Leave out what follows it.")
        above = _value(text.strip())
        for key in reversed(keys):
            above = {key: above}
        table = merge(table, _renamed(above))
    return table


def _renamed(table: Table) -> Table:
    """The same table with old keys renamed. If it has both names, the old one stays and is an unknown key."""
    return {
        key if (name := RENAMED.get(key, key)) in table else name: _renamed(value) if isinstance(value, dict) else value
        for key, value in table.items()
    }


def merge(below: Table, above: Table) -> Table:
    """`below` with the values of `above`, table by table. A table whose `kind` changes is replaced."""
    if "kind" in above and above["kind"] != below.get("kind", above["kind"]):
        return _copy(above)
    merged = _copy(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def stated(table: Table, *keys: str) -> bool:
    """Whether a table has the key at that path, so that its default is not used."""
    inner: Any = table
    for key in keys:
        if key not in inner:
            return False
        inner = inner[key]
    return True


def with_kinds(cls: type, table: Mapping[str, Any]) -> Table:
    """A copy of `table` in which tables without a kind are completed from the default of their field."""
    hints, filled = typing.get_type_hints(cls), _copy(table)
    for field in dataclasses.fields(cls):
        value = filled.get(field.name)
        tables = tables_of(hints[field.name])
        if not tables or not isinstance(value, dict):
            continue
        if len(tables) > 1:
            if "kind" not in value and field.default_factory is not dataclasses.MISSING:
                value = merge(as_table(field.default_factory()), value)
            tables = [each for each in tables if kind_of(each) == value.get("kind")]
        filled[field.name] = with_kinds(tables[0], value) if tables else value
    return filled


def parse(cls: type[Config], table: Mapping[str, Any], where: str = "") -> Config:
    """Build `cls` from a raw table; errors name the path, the given value and the allowed ones."""
    hints = typing.get_type_hints(cls, include_extras=True)
    fields = {field.name: field for field in dataclasses.fields(cls) if field.init}  # type: ignore[arg-type]
    for key in table:
        if key not in fields:
            raise UnknownKeyError(unknown(_join(where, key), key, fields, "key"), _join(where, key))
    values = {key: typed(hints[key], value, _join(where, key)) for key, value in table.items()}
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in values:
            raise ConfigError(f"{_join(where, name)}: missing. Add it to the configuration.")
    try:
        return cls(**values)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}" if where else str(error)) from None


class Checked:
    """A configuration that checks its bounds when it is created in code, as `parse` does for a file."""

    def __post_init__(self) -> None:
        check(self)


def check(config: object) -> None:
    """Check the bounds of a configuration; a number out of bounds is a ConfigError."""
    cls: Any = type(config)
    for name, (kind, bound) in _bounds(cls).items():
        value = getattr(config, name)
        number = isinstance(value, numbers.Integral if kind is int else numbers.Real) and not isinstance(value, bool)
        if not number:
            raise ConfigError(f"{name} = {_shown(value)}: expected {NAMES[kind]}.")
        _within((bound,), value, name)


@functools.cache
def _bounds(cls: type) -> dict[str, tuple[type, Bound]]:
    hints = typing.get_type_hints(cls, include_extras=True)
    bounded = {name: hint for name, hint in hints.items() if typing.get_origin(hint) is Annotated}
    return {name: (hint.__origin__, hint.__metadata__[0]) for name, hint in bounded.items()}


def dump(config: object) -> str:
    """The TOML text of a configuration, defaults included, None excluded."""
    return as_text(as_table(config))


def as_text(table: Table) -> str:
    """The TOML text of raw tables."""
    return tomli_w.dumps(table)


def as_table(config: object) -> Table:
    """The raw tables of a configuration."""
    table: Table = {}
    for field in dataclasses.fields(config):  # type: ignore[arg-type]
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            table[field.name] = as_table(value)
        elif isinstance(value, tuple):
            table[field.name] = list(value)
        elif value is not None:
            table[field.name] = value
    return table


def unknown(given: str, word: str, known: Iterable[str], noun: str) -> str:
    """The message for a word that is not in a closed list, with the nearest known one."""
    known = list(known)
    return f"{_cut(given)}: unknown {noun}.{did_you_mean(word, known)} Known: {', '.join(known)}."


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The nearest of the known words as a question, to follow the sentence of an error; "" if none is near."""
    near = difflib.get_close_matches(word[:_LONGEST], known, n=1)
    return f' Did you mean "{near[0]}"?' if near else ""


def typed(hint: Any, value: Any, where: str) -> Any:
    """A value of a raw table, checked and converted to the type `hint`. `where` is its path, for messages."""
    origin = typing.get_origin(hint)
    if origin is Annotated:
        return _within(hint.__metadata__, typed(hint.__origin__, value, where), where)
    if origin is Literal:
        allowed = typing.get_args(hint)
        if type(value) is not str or value not in allowed:
            shown = _shown(value)
            raise UnknownWordError(unknown(f"{where} = {shown}", shown.strip("'"), [str(a) for a in allowed], "value"))
        return value
    if origin in (typing.Union, types.UnionType):
        return _choose([a for a in typing.get_args(hint) if a is not type(None)], value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise ConfigError(f"{where} = {_shown(value)}: expected a list.")
        return tuple(typed(typing.get_args(hint)[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, dict):
            raise ConfigError(f"{where} = {_shown(value)}: expected a table, [{where}].")
        return parse(typing.cast(type, hint), value, where)
    return _plain(hint, value, where)


def _plain(hint: Any, value: Any, where: str) -> Any:
    if hint is float and type(value) is int:
        return float(value) if abs(value) < 10**300 else math.inf * (1 if value > 0 else -1)
    if type(value) is not hint:
        given = NAMES.get(type(value), "a date or time")
        raise ConfigError(f"{where} = {_shown(value)}: expected {NAMES[hint]}, got {given}.")
    return value


def _within(metadata: tuple[Any, ...], value: Any, where: str) -> Any:
    for bound in metadata:
        if isinstance(bound, Bound) and not bound.low <= value <= bound.high:
            raise ConfigError(
                f"{where} = {_shown(value)}: expected a value from {number(bound.low)} to {number(bound.high)}."
            )
    return value


def _choose(options: list[Any], value: Any, where: str) -> Any:
    if len(options) == 1:
        return typed(options[0], value, where)
    if not isinstance(value, dict):
        raise ConfigError(f"{where} = {_shown(value)}: expected a table, [{where}], with a kind.")
    kinds = {kind_of(option): option for option in options}
    kind = value.get("kind")
    if type(kind) is not str or kind not in kinds:
        if kind is None:
            raise ConfigError(f"{_join(where, 'kind')}: missing. Known: {', '.join(kinds)}.")
        raise UnknownWordError(unknown(f"{_join(where, 'kind')} = {_shown(kind)}", str(kind), kinds, "kind"))
    return parse(kinds[kind], value, where)


def tables_of(hint: Any) -> list[Any]:
    """The dataclasses of a field's type: none, one, or several of different kinds."""
    options = (hint, *typing.get_args(hint))
    return [each for each in options if isinstance(each, type) and dataclasses.is_dataclass(each)]


def kind_of(option: Any) -> str:
    """The `kind` of a dataclass, which is different for each member of a union."""
    return str(typing.get_args(typing.get_type_hints(option)["kind"])[0])


def _value(text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return parsed["value"] if len(parsed) == 1 else text  # a second line is not a second setting


def _shown(value: Any) -> str:
    """A value for a message, shortened to fit on a line."""
    try:
        return _cut(repr(value))
    except (ValueError, RecursionError):  # a number of thousands of digits, a table nested too deep
        return "…"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def number(value: float) -> str:
    """A bound for a message."""
    return str(int(value)) if value == int(value) and abs(value) < 10**9 else f"{value:g}"


def _join(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _copy(table: Mapping[str, Any]) -> Table:
    return {key: _copy(value) if isinstance(value, dict) else value for key, value in table.items()}


NAMES: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a string",
    list: "a list",
    dict: "a table",
}
