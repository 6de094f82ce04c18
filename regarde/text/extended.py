"""The extended vocabulary of a model that copies (See et al. 2017): ids for symbols that only this source has.

    source id    0 … S-1          the source vocabulary, of S ids
                 S + v            a symbol that the source vocabulary lacks, and the target vocabulary has as v
                 S + V + k        unknown symbol k of this sentence, which neither vocabulary has
    target id    0 … V-1          the target vocabulary, of V ids
                 V + k            symbol k of this source that the target vocabulary lacks, known to the source or not

Both k count distinct symbols in the order in which they appear. Encoders read an id from S on as UNK, and decoders an
id from V on. `same` maps the source vocabulary to target ids. With it, a model computes the target id of each source
position from the ids of the sentence alone (models/copying.py, native/source/engine/copying.h).

A symbol that cannot be a token of the target, such as a feature of a table for a target of characters, has the target
id UNK: it can be attended to, but not copied. So has an unknown symbol without a text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from regarde.text.tokenizers import CONTROLS, EOS, PAD, UNK, Tokenizer


class ExtendedVocabulary:
    """Two tokenizers with tokens of one kind, and what their symbols have in common."""

    def __init__(self, source: Tokenizer, target: Tokenizer) -> None:
        self.source, self.target = source, target
        self._source_texts = source.texts()
        self._target_ids = {text: i for i, text in enumerate(target.texts(), start=len(CONTROLS))}

    def same(self) -> list[int]:
        """The target id of each source id: V if the target lacks the symbol, UNK if it cannot be a target token."""
        controls = {PAD: PAD, EOS: EOS}
        found = [controls.get(i, UNK) for i in range(len(CONTROLS))]
        return found + [self._target_id(text) for text in self._source_texts]

    def source_ids(self, text: str) -> list[int]:
        """The ids of a source."""
        S, V = len(self.source), len(self.target)
        numbers: dict[str, int] = {}
        ids = []
        for i, symbol in self._symbols(text):
            if i == UNK and (v := self._target_id(symbol)) != UNK:
                ids.append(S + v if v < V else S + V + numbers.setdefault(symbol, len(numbers)))
            else:
                ids.append(i)
        return ids

    def lacking(self, source: str) -> list[str]:
        """The symbols of a source that the target vocabulary lacks; symbol k, from 0, has the target id V + k."""
        V = len(self.target)
        return list(dict.fromkeys(symbol for _, symbol in self._symbols(source) if self._target_id(symbol) == V))

    def columns(self, source: str) -> list[int]:
        """The target id of each token of a source, its end included."""
        V = len(self.target)
        numbers = {symbol: V + k for k, symbol in enumerate(self.lacking(source))}
        return [*(numbers.get(symbol, self._target_id(symbol)) for _, symbol in self._symbols(source)), EOS]

    def target_ids(self, text: str, source: str) -> list[int]:
        """The ids of a target. A symbol that the target vocabulary lacks has an id if its source has it, else UNK."""
        ids = self.target.encode(text)
        if UNK not in ids:
            return ids
        V, unknown = len(self.target), iter(self.target.unknown(text))
        numbers = {symbol: V + k for k, symbol in enumerate(self.lacking(source))}
        return [numbers.get(next(unknown), UNK) if i == UNK else i for i in ids]

    def _target_id(self, symbol: str) -> int:
        if (known := self._target_ids.get(symbol)) is not None:
            return known
        return len(self.target) if symbol and self.target.is_token(symbol) else UNK

    def _symbols(self, text: str) -> Iterator[tuple[int, str]]:
        """Each id of a source and the text of its symbol, which is empty for a control."""
        ids = self.source.encode(text)
        unknown = iter(self.source.unknown(text) if UNK in ids else ())
        for i in ids:
            if i == UNK:
                yield i, next(unknown)
            else:
                yield i, self._source_texts[i - len(CONTROLS)] if i >= len(CONTROLS) else ""


def known(ids: Sequence[int], vocabulary: int) -> list[int]:
    """The ids, with UNK in place of those that a vocabulary lacks."""
    return [i if i < vocabulary else UNK for i in ids]
