"""Fields in double quotes, as spreadsheets and CSV writers make them: "a ""b"" c" for a "b" c.

Whether quotes belong to the text or enclose it cannot be known from one field, but from all of a file: a program that
encloses fields leaves no quote that does not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from regarde.errors import DataError

ENOUGH = 10  # enclosed fields that are not chance, in a file where no other field holds a quote
_ENCLOSED = re.compile(r'"((?:[^"]|"")*+)"')
_FIELD = re.compile(r'(?:"((?:[^"]|"")*+)"|([^\t"][^\t]*|))(\t|\Z)')
_SAMPLE = 24  # characters of a field shown in a message


def fields_of(text: str) -> list[str] | None:
    """The TAB-separated fields of a line, those in quotes without them; None where a quote does not end its field.

    An enclosed field may hold a TAB. A quote within a field that does not begin with one is a character of it.
    """
    if '"' not in text:
        return text.split("\t")
    fields: list[str] = []
    place = 0
    while found := _FIELD.match(text, place):
        enclosed, plain, separator = found.groups()
        fields.append(plain if enclosed is None else enclosed.replace('""', '"'))
        if not separator:
            return fields
        place = found.end()
    return None


def unquoted(text: str) -> str | None:
    """What double quotes enclose; None where they do not enclose the whole text."""
    found = _ENCLOSED.fullmatch(text)
    return found[1].replace('""', '"') if found else None


@dataclass
class QuoteCount:
    """How the fields of a file hold double quotes."""

    name: str  # of the file
    fields: int = 0
    enclosed: int = 0
    other: int = 0  # that hold a quote but are not enclosed
    sample: str = ""  # the first enclosed one, and where

    def add(self, text: str, line: int) -> None:
        """Count the fields of one side of a pair."""
        if '"' not in text:
            self.fields += 1 + text.count("\t")
            return
        for field in text.split("\t"):
            self.fields += 1
            if _ENCLOSED.fullmatch(field):
                self.enclosed += 1
                self.sample = self.sample or f"line {line:,}: {_short(field)}"
            else:
                self.other += '"' in field

    @property
    def throughout(self) -> bool:
        """Whether that many fields, and all of them, are enclosed that no more need be read."""
        return self.enclosed == self.fields >= 2 * ENOUGH

    def ask(self) -> None:
        """Raise a DataError where quotes seem to enclose fields: whether they do, only the user can say."""
        if self.enclosed and not self.other and self.enclosed >= min(ENOUGH, self.fields / 2):
            given = f"{self.name}: double quotes enclose fields ({self.enclosed:,} of {self.fields:,}; {self.sample})"
            raise DataError(f"{given}. Say what they are: --quotes removes them, --no-quotes keeps them as text.")


def _short(field: str) -> str:
    return field if len(field) <= _SAMPLE else f"{field[:_SAMPLE]}…"
