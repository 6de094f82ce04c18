"""The settings of regarde.models, with bounds and defaults, and the formulas of regarde.attention, without torch.

Those classes import torch, which is not needed to translate. settings.json is generated from them (`described`) by
`UPDATE_DOCS=1 pytest tests/native/test_settings.py`; without UPDATE_DOCS the same test compares them. `parse` reads a
model's table with it, as regarde.config reads any other.

    "int" "float" "bool" "str"    plain values
    {"int": [low, high]}          within bounds
    ["a", "b"]                    one of a closed list
    {"kinds": ["AConfig", …]}     tables, each with its own `kind`
"""

from __future__ import annotations

import dataclasses
import functools
import json
import operator
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from regarde import config
from regarde.config import Bound, Table

PATH = Path(__file__).with_name("settings.json")
_PLAIN: dict[str, type] = {"int": int, "float": float, "bool": bool, "str": str}


def parse(table: Table) -> Any:
    """The settings of [model], checked against their bounds; a missing one has its default."""
    return config.parse(_parsed(), {"model": table}).model


def offset(model: Any) -> int:
    """Row t of the attention explains token t - offset: 1 for a Luong model with footnote 14 of its paper.

    The footnote is about content scores; a location score reads no source states. What a model copies at step t is
    token t.
    """
    late = model.kind == "luong" and model.footnote_14 and model.attention.score.kind != "location"
    return int(late and copying(model) == "none")


def copying(model: Any) -> str:
    """How a model copies, by its settings or their table; "none" of one that cannot."""
    return flattened({"model": model}).get("model.copying.kind", "none")


def copying_place(model: Any) -> tuple[int, int] | None:
    """Layer and head whose attention copies, counted from 1; head 0: all. None of a model that copies nothing."""
    flat = flattened({"model": model})
    if copying(model) == "none":
        return None
    layers = flat.get("model.decoder_layers") or flat["model.layers"] if flat["model.kind"] == "transformer" else "1"
    return int(flat["model.copying.layer"]) or int(layers), int(flat["model.copying.head"])


def copies(model: Any) -> bool:
    """Whether sentences of a model have ids of their own (regarde.text.extended)."""
    return copying(model) == "pointer"


def formulas(flat: Mapping[str, str]) -> dict[str, str]:
    """The formulas of a model's score, weights and mechanism, by its flattened settings; none for unknown kinds."""
    listed, attention = _json()["formulas"], "model.attention"
    found = {
        "score": listed["scores"].get(flat.get(f"{attention}.score.kind"), ""),
        "weights": listed["normalizers"].get(flat.get(f"{attention}.normalizer"), ""),
        **listed["mechanisms"].get(flat.get(f"{attention}.kind"), {}),
    }
    return {name: formula for name, formula in found.items() if formula}


def flattened(tables: Mapping[str, Any]) -> dict[str, str]:
    """Settings as the native engine reads them, each under its path; values may be tables or configurations."""
    found: dict[str, str] = {}
    waiting = dict(tables)
    while waiting:
        path, value = waiting.popitem()
        if dataclasses.is_dataclass(value):
            value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        if isinstance(value, Mapping):
            waiting |= {f"{path}.{key}": inner for key, inner in value.items()}
        elif value is not None:
            found[path] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def described(union: Any) -> Table:
    """Every class that a union of configurations leads to, by name."""
    found: Table = {"ModelConfig": _described(union)}
    waiting = [*typing.get_args(union)]
    while waiting:
        cls = waiting.pop(0)
        if cls.__name__ not in found:
            hints = typing.get_type_hints(cls, include_extras=True)
            types = {field.name: _described(hints[field.name]) for field in dataclasses.fields(cls)}
            found[cls.__name__] = {"types": types, "defaults": config.as_table(cls())}
            named = [one for hint in hints.values() for one in typing.get_args(hint) if isinstance(one, type)]
            waiting += [one for one in named if dataclasses.is_dataclass(one)]
    return found


def _described(hint: Any) -> Any:
    if typing.get_origin(hint) is Literal:
        return list(typing.get_args(hint))
    if typing.get_origin(hint) is Annotated:
        (bound,) = hint.__metadata__
        return {hint.__origin__.__name__: [bound.low, bound.high]}
    if not typing.get_args(hint):
        return hint.__name__
    options = [option for option in typing.get_args(hint) if option is not type(None)]
    return {"kinds": [option.__name__ for option in options]} if len(options) > 1 else _described(options[0])


@functools.cache
def _json() -> Any:
    return json.loads(PATH.read_text(encoding="utf-8"))


@functools.cache
def _parsed() -> Any:
    tables = _json()["settings"]
    return dataclasses.make_dataclass("ModelTable", [("model", _type(tables["ModelConfig"], tables, {}))])


def _type(given: Any, tables: Mapping[str, Table], made: dict[str, Any]) -> Any:
    """The type of a description."""
    if isinstance(given, list):
        return Literal[tuple(given)]
    if isinstance(given, str):
        return _PLAIN[given]
    ((word, listed),) = given.items()
    if word != "kinds":
        return Annotated[_PLAIN[word], Bound(*listed)]
    for name in listed:
        if name not in made:
            made[name] = _class(name, tables, made)
    return functools.reduce(operator.or_, [made[name] for name in listed])


def _class(name: str, tables: Mapping[str, Table], made: dict[str, Any]) -> type:
    fields: list[tuple[str, Any, Any]] = []
    for key, given in tables[name]["types"].items():
        hint, default = _type(given, tables, made), tables[name]["defaults"].get(key)
        if isinstance(default, dict):
            (chosen,) = (made[one] for one in given["kinds"] if tables[one]["types"]["kind"] == [default["kind"]])
            fields.append(
                (key, hint, dataclasses.field(default_factory=functools.partial(config.parse, chosen, default)))
            )
        else:
            fields.append((key, hint, default))
    return dataclasses.make_dataclass(name, fields, frozen=True)
