"""Which settings two configurations do not share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from regarde.config import Table


@dataclass(frozen=True)
class Difference:
    """A setting by its dotted key, as it is expected and as it is given."""

    key: str
    expected: object
    given: object


def differences(expected: Table, given: Table) -> Iterator[Difference]:
    """All of them in the order of their keys."""
    ours, theirs = dict(_settings(expected)), dict(_settings(given))
    for key in sorted(ours.keys() | theirs.keys()):
        if ours.get(key) != theirs.get(key):
            yield Difference(key, ours.get(key), theirs.get(key))


def _settings(table: Table, where: str = "") -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _settings(value, f"{where}{key}.")
        else:
            yield f"{where}{key}", value
