"""The fields of a request: each validates its value, and describes itself in the OpenAPI document."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from regarde.serving.http.limits import UNPROCESSABLE, RequestError


class Field(Protocol):
    """One field of a JSON object."""

    @property
    def description(self) -> str: ...

    def check(self, name: str, value: Any) -> Any:
        """The value; an error 422 if it is not valid."""

    def schema(self) -> dict[str, Any]:
        """The JSON schema of valid values."""


@dataclass(frozen=True)
class Integer:
    """An integer within bounds."""

    description: str
    low: int
    high: int

    def check(self, name: str, value: Any) -> int:
        if type(value) is not int or not self.low <= value <= self.high:
            raise invalid(name, f"an integer from {self.low} to {self.high}", value)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True)
class Number:
    """A number within bounds."""

    description: str
    low: float
    high: float

    def check(self, name: str, value: Any) -> float:
        if type(value) not in (int, float) or not self.low <= value <= self.high:
            raise invalid(name, f"a number from {self.low:g} to {self.high:g}", value)
        return float(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "number", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True)
class Boolean:
    description: str

    def check(self, name: str, value: Any) -> bool:
        if type(value) is not bool:
            raise invalid(name, "true or false", value)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True)
class String:
    description: str
    longest: int

    def check(self, name: str, value: Any) -> str:
        if type(value) is not str or len(value) > self.longest:
            raise invalid(name, f"a string of at most {self.longest:,} characters", value)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "maxLength": self.longest}


@dataclass(frozen=True)
class Strings:
    """A string, or a list of strings."""

    description: str
    longest: int  # characters of all strings together
    most: int  # strings

    def check(self, name: str, value: Any) -> str | list[str]:
        strings = value if type(value) is list else [value]
        if len(strings) > self.most:
            raise RequestError(
                UNPROCESSABLE, f"{name}: {len(strings):,} texts, expected at most {self.most}. Send fewer."
            )
        for text in strings:
            if type(text) is not str:
                raise invalid(name, "a string, or a list of strings", text)
        if (length := sum(map(len, strings))) > self.longest:
            expected = f"expected at most {self.longest:,}"
            raise RequestError(UNPROCESSABLE, f"{name}: {length:,} characters, {expected}. Send less at once.")
        return strings if type(value) is list else strings[0]

    def schema(self) -> dict[str, Any]:
        text = {"type": "string", "maxLength": self.longest}
        return {"oneOf": [text, {"type": "array", "items": text, "maxItems": self.most}]}


@dataclass(frozen=True)
class Numbers:
    """A list of numbers within bounds."""

    description: str
    low: float
    high: float
    most: int

    def check(self, name: str, value: Any) -> list[float]:
        if not isinstance(value, list) or not 1 <= len(value) <= self.most:
            raise invalid(name, f"a list of 1 to {self.most:,} numbers")
        one = Number(self.description, self.low, self.high)
        return [one.check(name, number) for number in value]

    def schema(self) -> dict[str, Any]:
        items = Number(self.description, self.low, self.high).schema()
        return {"type": "array", "items": items, "minItems": 1, "maxItems": self.most}


def parse(fields: Mapping[str, Field], into: type[Any], given: Mapping[str, Any]) -> Any:
    """A dataclass from the given values and its own defaults; an unknown or missing field is an error."""
    for name in given:
        if name not in fields:
            raise RequestError(UNPROCESSABLE, f"{_shown(name)}: unknown field, expected one of: {', '.join(fields)}.")
    required = [f.name for f in dataclasses.fields(into) if f.default is dataclasses.MISSING]
    for name in required:
        if name not in given:
            raise RequestError(UNPROCESSABLE, f"{name}: missing. Expected: {fields[name].description}")
    return into(**{name: fields[name].check(name, value) for name, value in given.items()})


def schema(fields: Mapping[str, Field], into: type[Any]) -> dict[str, Any]:
    """The JSON schema of a request."""
    defaults = {f.name: f.default for f in dataclasses.fields(into)}
    properties = {}
    for name, field in fields.items():
        default = defaults[name]
        stated = {} if default in (dataclasses.MISSING, None) else {"default": default}
        properties[name] = field.schema() | {"description": field.description} | stated
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in fields if defaults[name] is dataclasses.MISSING],
        "additionalProperties": False,
    }


def invalid(name: str, expected: str, value: Any = None) -> RequestError:
    """The error of a field. It repeats numbers but no text, which may be anything."""
    given = f" = {value}" if type(value) in (int, float, bool) and abs(value) < 10**12 else ""
    return RequestError(UNPROCESSABLE, f"{name}{given}: expected {expected}.")


def _shown(name: str) -> str:
    """The name of an unknown field, if it is a plain name."""
    return name if name.isidentifier() and name.isascii() and len(name) <= 40 else "A field"
