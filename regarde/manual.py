"""What each setting of a configuration means: the comment beside its field, its bounds and its default.

The comment at the end of a field's line, or on the lines above it, describes the setting; `regarde config` prints it.
If several kinds of a table have a field of one name, the first that has a comment describes it for all.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import textwrap
import tokenize
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from regarde import config
from regarde.config import Bound


@dataclass(frozen=True)
class Setting:
    """A key with its description; `facts` are bounds and default."""

    key: str
    sentence: str
    facts: str


@dataclass(frozen=True)
class _SettingField:
    key: str
    kind: str  # of the table that it is in; "" if that has no kinds
    sentence: str
    values: str
    default: str


@functools.cache
def settings(cls: type) -> dict[str, Setting]:
    """Every setting of a configuration by its key, in the order of the fields."""
    fields: dict[str, dict[str, _SettingField]] = {}  # by key, then by kind
    for field in _fields(cls):
        fields.setdefault(field.key, {}).setdefault(field.kind, field)
    return {key: _setting(list(kinds.values())) for key, kinds in fields.items()}


def commented(configuration: object) -> str:
    """The TOML text of a configuration, each setting below a comment that describes it."""
    cls: Any = type(configuration)
    known = settings(cls)
    lines, where = [], ""
    for line in config.dump(configuration).splitlines():
        if line.startswith("["):
            where = f"{line.strip('[]')}."
        setting = known.get(where + line.partition(" = ")[0])
        if setting:
            lines += textwrap.wrap(f"# {setting.sentence} {setting.facts}", 110, subsequent_indent="# ")
        lines.append(line)
    return "\n".join(lines) + "\n"


def _setting(fields: list[_SettingField]) -> Setting:
    sentence = next((field.sentence for field in fields if field.sentence), "")
    facts = []
    for values in dict.fromkeys(field.values for field in fields):
        alike = [field for field in fields if field.values == values]
        defaults = []
        for default in dict.fromkeys(field.default for field in alike):
            kinds = ", ".join(field.kind for field in alike if field.default == default)
            defaults.append(f"{default} ({kinds})" if kinds else default)
        facts.append(f"{values}; default: {', '.join(defaults)}.")
    return Setting(fields[0].key, sentence, " ".join(facts))


def _fields(cls: Any, where: str = "", kind: str = "") -> Iterator[_SettingField]:
    hints, sentences = typing.get_type_hints(cls, include_extras=True), _sentences(cls)
    for field in dataclasses.fields(cls):
        key, hint = f"{where}{field.name}", hints[field.name]
        default: Any = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        tables = config.tables_of(hint)
        if len(tables) > 1:
            kinds = {config.kind_of(table): table for table in tables}
            yield _SettingField(f"{key}.kind", kind, sentences[field.name], f"One of {', '.join(kinds)}", default.kind)
            for name, table in kinds.items():
                yield from _fields(table, f"{key}.", name)
        elif tables:
            yield from _fields(tables[0], f"{key}.")
        elif field.name != "kind":
            yield _SettingField(key, kind, sentences[field.name], _values(hint), _default(default))


def _values(hint: Any) -> str:
    args = typing.get_args(hint)
    if typing.get_origin(hint) is Annotated:
        bound = next(each for each in hint.__metadata__ if isinstance(each, Bound))
        return f"{config.number(bound.low)} to {config.number(bound.high)}"
    if typing.get_origin(hint) is Literal:
        return f"One of {', '.join(args)}"
    if typing.get_origin(hint) is tuple:
        return "A list of strings"
    return _values(args[0]) if args else config.NAMES[hint].capitalize()


def _default(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, str) and value:
        return value
    return f"{value:g}" if type(value) is float else config.as_text({"": value})[len('"" = ') :].strip()


@functools.cache
def _sentences(cls: type) -> dict[str, str]:
    """The comment of each field, of the classes it inherits from too."""
    found: dict[str, str] = {}
    for each in reversed([each for each in cls.__mro__ if dataclasses.is_dataclass(each)]):
        lines = textwrap.dedent(inspect.getsource(each)).splitlines(keepends=True)
        comments = {
            token.start: token.string.lstrip("# ")
            for token in tokenize.generate_tokens(iter(lines).__next__)
            if token.type == tokenize.COMMENT
        }
        (tree,) = ast.parse("".join(lines)).body
        assert isinstance(tree, ast.ClassDef)
        for node in tree.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found[node.target.id] = _comment(node, comments)
    return found


def _comment(node: ast.AnnAssign, comments: dict[tuple[int, int], str]) -> str:
    """The comment at the end of a field's line, or else the lines of comment above it."""
    beside = [text for (line, _), text in comments.items() if node.lineno <= line <= (node.end_lineno or 0)]
    above: list[str] = []
    while text := comments.get((node.lineno - 1 - len(above), node.col_offset)):
        above.insert(0, text)
    return " ".join(beside or above)
