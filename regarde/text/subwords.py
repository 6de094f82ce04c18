"""What all tokenizers of subwords share: where words begin, and which pieces go on with a word."""

from __future__ import annotations

import functools
import unicodedata
from abc import abstractmethod
from collections.abc import Sequence

from regarde.text.tokenizers import CONTROLS, NO_WORD, SILENT, UNK, UNKNOWN, Tokenizer

SPACE = "▁"  # how a piece writes a space
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")  # how characters are named


class SubwordTokenizer(Tokenizer):
    """Pieces of words; the space before a word is part of its first piece."""

    @abstractmethod
    def piece(self, number: int) -> str:
        """A piece, its spaces written as `SPACE`."""

    def silent(self, number: int) -> bool:
        """Whether a token has no text."""
        return number in SILENT

    def first(self, number: int) -> str:
        """The first character of a piece."""
        return self.piece(number)[:1]

    def words(self, ids: Sequence[int], unknown: Sequence[str] | None = None) -> list[int]:
        """A word begins at a space, which is part of the word and never of an UNK.

        Several spaces in a row begin one word; spaces at the end of a text begin none.
        """
        words: list[int] = []
        word, only_spaces = NO_WORD, False
        for i in ids:
            if self.silent(i):
                words.append(NO_WORD)
                continue
            piece = UNKNOWN if i == UNK else self.piece(i)
            if word == NO_WORD or (piece.startswith(SPACE) and not only_spaces):
                word += 1
                only_spaces = True
            only_spaces = only_spaces and not piece.strip(SPACE)
            words.append(word)
        return [NO_WORD if only_spaces and of == word else of for of in words]

    def lengthening(self, text: str) -> Sequence[int]:
        return self._inner if text and within_word(text[-1]) else ()

    @functools.cached_property
    def _inner(self) -> tuple[int, ...]:
        """Pieces that begin in the middle of a word."""
        pieces = (i for i in range(len(CONTROLS), len(self)) if not self.silent(i))
        return tuple(i for i in pieces if within_word(self.first(i)))


def within_word(character: str) -> bool:
    """A letter, digit or mark of a script that puts spaces between words."""
    word = character.isalnum() or unicodedata.category(character or " ").startswith("M")
    return word and not unicodedata.name(character, "").startswith(_UNSPACED)
