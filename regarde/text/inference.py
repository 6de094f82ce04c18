"""The tokenizer for one side of a corpus, inferred from its texts.

fields          the texts have TAB-separated columns
words           a small closed set of space-separated symbols: phonemes, commands, labels
sentencepiece   several words a text, and many different ones: sentences
characters      the rest: names, words, dates
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regarde.errors import DataError, counted
from regarde.text.sentencepieces import SentencepieceConfig
from regarde.text.sides import TokenizerConfig
from regarde.text.tokenizers import CharactersConfig, FieldsConfig, Words, WordsConfig

CLOSED_TYPES = 200  # largest number of symbols in a closed set …
CLOSED_NEW = 0.02  # … largest share of them that occur only in the second half of the texts …
CLOSED_REPEATS = 5  # … and least number of occurrences of each, on average
SENTENCE_WORDS = 4.5  # least mean length of sentences, in words …
SENTENCE_CHARACTERS = 60  # … or in characters, in scripts without spaces between words
SIZES = {
    5_000: 1_000,
    20_000: 4_000,
    500_000: 8_000,
    5_000_000: 16_000,
}  # pieces to learn from at most so many sentences
LARGEST_SIZE = 32_000


@dataclass(frozen=True)
class Inference:
    """A tokenizer, and the reason in a short phrase."""

    config: TokenizerConfig
    reason: str


def infer(texts: Sequence[str]) -> Inference:
    """The tokenizer for one side of a corpus."""
    if not texts:
        raise DataError("There is no text to choose a tokenizer for. Give a corpus that is not empty.")
    if 2 * sum("\t" in text for text in texts) > len(texts):
        columns = max(text.count("\t") for text in texts) + 1
        return Inference(FieldsConfig(), f"fields: {columns} TAB-separated columns")
    return _closed_set(texts) or _sentences(texts) or _strings(texts)


def _closed_set(texts: Sequence[str]) -> Inference | None:
    first: set[str] = set()
    second: set[str] = set()
    count = 0
    for place, text in enumerate(texts):
        words = Words().split(text)
        (first if place < len(texts) // 2 else second).update(words)
        count += len(words)
        if len(first) + len(second) > 2 * CLOSED_TYPES:
            return None  # the union is larger than allowed already
    types, new = len(first | second), len(second - first)
    if types > CLOSED_TYPES or new > CLOSED_NEW * types or count < CLOSED_REPEATS * types:
        return None
    fresh = f"{new} new in the second half" if new else "no new ones in the second half"
    return Inference(WordsConfig(), f"words: {types} space-separated symbols, {fresh}")


def _sentences(texts: Sequence[str]) -> Inference | None:
    words = sum(len(Words().split(text)) for text in texts) / len(texts)
    if words < SENTENCE_WORDS and _mean_length(texts) < SENTENCE_CHARACTERS:
        return None
    size = next((size for bound, size in SIZES.items() if len(texts) < bound), LARGEST_SIZE)
    reason = (
        f"sentencepiece: {counted(len(texts), 'sentence')} of {words:.1f} words on average, {size:,} pieces at most"
    )
    return Inference(SentencepieceConfig(size=size), reason)


def _strings(texts: Sequence[str]) -> Inference:
    return Inference(CharactersConfig(), f"characters: short strings, {_mean_length(texts):.1f} characters on average")


def _mean_length(texts: Sequence[str]) -> float:
    return sum(map(len, texts)) / len(texts)
