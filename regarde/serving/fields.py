"""The fields of a question: each says what it accepts, and writes the same into the OpenAPI document."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from regarde.serving.limits import Refusal

UNPROCESSABLE = 422


class Field(Protocol):
    """One field of a JSON object."""

    @property
    def about(self) -> str: ...

    def taken(self, name: str, value: Any) -> Any:
        """The value, or a refusal."""

    def schema(self) -> dict[str, Any]:
        """The same as JSON schema."""


@dataclass(frozen=True)
class Whole:
    """A whole number within bounds."""

    about: str
    low: int
    high: int

    def taken(self, name: str, value: Any) -> int:
        if type(value) is not int or not self.low <= value <= self.high:
            raise _unfit(name, value, f"a whole number from {self.low} to {self.high}")
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True)
class Flag:
    about: str

    def taken(self, name: str, value: Any) -> bool:
        if type(value) is not bool:
            raise _unfit(name, value, "true or false")
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True)
class String:
    about: str
    longest: int

    def taken(self, name: str, value: Any) -> str:
        if type(value) is not str or len(value) > self.longest:
            raise _unfit(name, value, f"a string of at most {self.longest:,} characters")
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "maxLength": self.longest}


@dataclass(frozen=True)
class Strings:
    """A string, or a list of them."""

    about: str
    longest: int  # characters of each, and of all together
    most: int

    def taken(self, name: str, value: Any) -> str | list[str]:
        several = value if type(value) is list else [value]
        if len(several) > self.most:
            raise Refusal(UNPROCESSABLE, f"{name}: {len(several):,} texts, expected at most {self.most}. Send fewer.")
        for text in several:
            if type(text) is not str:
                raise _unfit(name, text, "a string, or a list of strings")
        if sum(map(len, several)) > self.longest:
            raise Refusal(UNPROCESSABLE, f"{name}: more than {self.longest:,} characters. Send less at once.")
        return several if type(value) is list else several[0]

    def schema(self) -> dict[str, Any]:
        text = {"type": "string", "maxLength": self.longest}
        return {"oneOf": [text, {"type": "array", "items": text, "maxItems": self.most}]}


def taken(fields: Mapping[str, Field], into: type[Any], given: Mapping[str, Any]) -> Any:
    """A dataclass from what was given, whose defaults stand for what was not; unknown fields are refused."""
    for name in given:
        if name not in fields:
            raise Refusal(UNPROCESSABLE, f"A field that is not known. Known: {', '.join(fields)}.")
    required = [f.name for f in dataclasses.fields(into) if f.default is dataclasses.MISSING]
    for name in required:
        if name not in given:
            raise Refusal(UNPROCESSABLE, f"{name}: missing. Add it.")
    return into(**{name: fields[name].taken(name, value) for name, value in given.items()})


def schema(fields: Mapping[str, Field], into: type[Any]) -> dict[str, Any]:
    """The JSON schema of such a question."""
    defaults = {f.name: f.default for f in dataclasses.fields(into)}
    properties = {}
    for name, field in fields.items():
        default = defaults[name]
        stated = {} if default in (dataclasses.MISSING, None) else {"default": default}
        properties[name] = field.schema() | {"description": field.about} | stated
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in fields if defaults[name] is dataclasses.MISSING],
        "additionalProperties": False,
    }


def _unfit(name: str, value: Any, expected: str) -> Refusal:
    """Numbers are repeated, text is not: it is somebody's, and may be anything."""
    shown = f" = {value}" if type(value) in (int, bool) and abs(value) < 10**12 else ""
    return Refusal(UNPROCESSABLE, f"{name}{shown}: expected {expected}.")
