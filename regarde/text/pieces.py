"""Tokenizers of models that others trained: a table of tokens, whose ids no other file knows, and how text is split.

pieces       a sentencepiece model splits text, and the table says which id a piece has; a piece that it lacks is UNK.
             `>>fra<<` at the beginning of a text is one token, if the table has it: the language to translate to
byte-pairs   merges of bytes split text (bytepairs.py)

Special tokens have no text. They are never matched against text; `before` and `after` name those that each text gets.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from regarde.config import Checked
from regarde.errors import ConfigError, FolderError
from regarde.text.sentencepieces import any_processor, model_path
from regarde.text.subwords import SPACE, SubwordTokenizer
from regarde.text.tokenizers import (
    CONTROLS,
    EOS,
    SILENT,
    UNK,
    UNKNOWN,
    Tokenizer,
    VocabularySize,
    printable,
    read_file,
    vocabulary_path,
    write_file,
)

OPEN, CLOSE = ">>", "<<"  # around a language


class TokenTable:
    """Tokens in order; the id of the first one is `len(CONTROLS)`."""

    def __init__(self, tokens: Sequence[str], special: Iterable[str] = ()) -> None:
        self.tokens = tuple(tokens)
        self._ids = {token: number for number, token in enumerate(self.tokens, start=len(CONTROLS))}
        if len(self._ids) != len(self.tokens):
            raise ValueError("a token is there twice")
        self.special = frozenset(special)
        if not self.special <= self._ids.keys():
            raise ValueError("a special token that is not in the table")
        self.silent = SILENT | {self._ids[token] for token in self.special}

    @classmethod
    def load(cls, path: Path) -> Self:
        try:
            tables = json.loads(read_file(path))
            tokens, special = tables["tokens"], tables["special"]
            if any(type(token) is not str for token in (*tokens, *special)):
                raise ValueError
            return cls(tokens, special)
        except (ValueError, KeyError, TypeError, RecursionError):
            raise FolderError(f"{path}: not a table of tokens. Restore the file of the model.") from None

    def save(self, path: Path) -> Path:
        special = [token for token in self.tokens if token in self.special]
        text = json.dumps({"tokens": self.tokens, "special": special}, ensure_ascii=False, indent=0)
        return write_file(path, f"{text}\n".encode())

    def __contains__(self, token: str) -> bool:
        return token in self._ids

    def id(self, token: str) -> int:
        """The id of a token, `UNK` if it is unknown."""
        return self._ids.get(token, UNK)

    def token(self, number: int) -> str:
        return CONTROLS[number] if number < len(CONTROLS) else self.tokens[number - len(CONTROLS)]

    def named(self, names: str) -> tuple[int, ...]:
        """The ids of tokens that are named one after the other; </s> is EOS, unless the table has it."""
        found = []
        for name in names.split():
            if name not in self and name != CONTROLS[EOS]:
                raise ValueError(f"the table has no token {name!r}")
            found.append(self.id(name) if name in self else EOS)
        return tuple(found)

    def __len__(self) -> int:
        return len(CONTROLS) + len(self.tokens)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TokenTable):
            return NotImplemented
        return self.tokens == other.tokens and self.special == other.special

    def __hash__(self) -> int:
        return hash(self.tokens)


class TableTokenizer(SubwordTokenizer):
    """Splits text by a model, and looks the pieces up in a table."""

    def __init__(self, table: TokenTable, model: bytes, before: str = "", after: str = "") -> None:
        self.table, self.model = table, model
        self.before, self.after = table.named(before), table.named(after)

    @abstractmethod
    def tokens(self, text: str) -> list[str]:
        """The tokens of a text, known or not."""

    @abstractmethod
    def joined(self, tokens: Sequence[str]) -> str:
        """The text of tokens."""

    @abstractmethod
    def shown(self, token: str) -> str:
        """The text of one token, and the spaces before it."""

    def encode(self, text: str) -> list[int]:
        return [*self.before, *map(self.table.id, self.tokens(text)), *self.after]

    def decode(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> str:
        written = iter([UNKNOWN] * len(ids) if unknown is None else unknown)
        parts: list[str] = []
        run: list[str] = []
        for i in ids:
            if i == UNK:
                parts += [self.joined(run), next(written)] if run else [next(written)]
                run = []
            elif not self.silent(i):
                run.append(self.table.token(i))
        return "".join([*parts, self.joined(run)])

    def unknown(self, text: str) -> list[str]:
        return [self.shown(token) for token in self.tokens(text) if self.table.id(token) == UNK]

    def texts(self) -> Sequence[str]:
        return [self.shown(token) for token in self.table.tokens]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self.table.token(i) if self.silent(i) or i == UNK else printable(self.piece(i)) for i in ids]

    def piece(self, number: int) -> str:
        return self.shown(self.table.token(number)).replace(" ", SPACE)

    def silent(self, number: int) -> bool:
        return number in self.table.silent

    def __len__(self) -> int:
        return len(self.table)

    def save(self, path_stem: Path) -> Path:
        write_file(model_path(path_stem), self.model)
        return self.table.save(vocabulary_path(path_stem))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TableTokenizer):
            return NotImplemented
        parts = ((t.table, t.model, t.before, t.after) for t in (self, other))
        return next(parts) == next(parts)

    def __hash__(self) -> int:
        return hash(self.model)


class PiecesTokenizer(TableTokenizer):
    """Split by a sentencepiece model."""

    def __init__(self, table: TokenTable, model: bytes, before: str = "", after: str = "") -> None:
        super().__init__(table, model, before, after)
        self._processor = any_processor(model)

    def tokens(self, text: str) -> list[str]:
        code, rest = self._language(text)
        return [*code, *self._processor.encode_as_pieces(rest)]

    def decode(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> str:
        return super().decode(ids, unknown).strip()

    def joined(self, tokens: Sequence[str]) -> str:
        text: str = self._processor.decode_pieces(list(tokens))
        return f" {text}" if tokens and tokens[0].startswith(SPACE) else text  # it drops the first space

    def shown(self, token: str) -> str:
        return token.replace(SPACE, " ")

    def _language(self, text: str) -> tuple[list[str], str]:
        """The language that a text begins with, and the rest of it."""
        code, close, rest = text.partition(CLOSE)
        if code.startswith(OPEN) and close and (code := f"{code}{close}") in self.table:
            return [code], rest
        return [], text


class TableConfig(Checked):
    """What the tokenizers of this module have in common: `load` reads two files, and nothing is ever trained."""

    size: int
    before: str
    after: str

    def made(self, table: TokenTable, model: bytes) -> TableTokenizer:
        raise NotImplementedError

    def train(self, texts: Iterable[str]) -> Tokenizer:
        given = (
            "A tokenizer of another toolkit comes with its model: it is not trained, and its vocabulary does not grow"
        )
        raise ConfigError(f"{given}. Use regarde train --from RUN as it is, or another kind of tokenizer.")

    def load(self, path_stem: Path) -> Tokenizer:
        path = model_path(path_stem)
        table, model = TokenTable.load(vocabulary_path(path_stem)), read_file(path)
        try:
            return self.made(table, model)
        except ValueError as error:
            raise FolderError(f"{path}: {error}. Restore the file of the model.") from None

    def filename(self, stem: str) -> str:
        return f"{stem}.vocab"


@dataclass(frozen=True)
class PiecesConfig(TableConfig):
    """Subwords of a sentencepiece model that others trained, with ids of their own."""

    kind: Literal["pieces"] = "pieces"
    size: VocabularySize = 5  # not used: the table has as many tokens as the model knows
    before: str = ""  # Tokens that each text begins with, such as that of its language, separated by spaces.
    after: str = ""  # Tokens that follow each text.

    def made(self, table: TokenTable, model: bytes) -> TableTokenizer:
        return PiecesTokenizer(table, model, self.before, self.after)
