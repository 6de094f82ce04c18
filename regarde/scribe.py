"""Text -> tokens, and hypotheses -> text + alignment: a translator without its engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from regarde.alignment.unknown import replacements
from regarde.errors import DataError, FolderError, UsageError
from regarde.search import Greedy, Hypothesis, Search
from regarde.search.settings import NO_PREFIX, Prefix
from regarde.tasks import TaskConfig, TranslationTask
from regarde.text import EOS, NO_WORD, Text, TextConfig, Tokenizer
from regarde.translation import Translation


@dataclass(frozen=True)
class ScribeConfig:
    """The part of a configuration that says how text is read and answers are searched: all but the model."""

    task: TaskConfig = field(default_factory=TranslationTask)  # What is given and what is wanted.
    source_language: str = ""  # Language code of the source (BCP 47), if known.
    target_language: str = ""  # Language code of the target (BCP 47), if known.
    text: TextConfig = field(default_factory=TextConfig)
    search: Search = field(default_factory=Greedy)  # How translations are searched.


@dataclass(frozen=True)
class Sentence:
    """A source sentence as tokens."""

    text: str
    ids: tuple[int, ...]
    prefix: Prefix = NO_PREFIX  # of its translation


@dataclass(frozen=True, kw_only=True)
class Scribe:
    """Encodes and decodes text for a model, which may run in another process."""

    text: Text
    search: Search
    offset: int  # of the model's attention
    longest: int = 1000  # tokens of a source; anything longer is refused
    replace_unknown: bool = False  # each UNK by what it looked at in the source (Luong et al. 2015, section 4.2)

    def tokens(self, text: str, prefix: str = "") -> Sentence:
        """text -> tokens; a sentence that is too long is refused."""
        found = self._tokens(text, self.text.source)
        return replace(found, prefix=self.prefix(prefix)) if prefix else found

    def prefix(self, text: str) -> Prefix:
        """The tokens that a translation must begin with; none for a blank text."""
        return self._prefix(text) if text and not text.isspace() else NO_PREFIX

    def target_tokens(self, text: str) -> Sentence:
        """The same for a text of the target side."""
        return self._tokens(text, self.text.target)

    def finish(self, sentence: Sentence, hypotheses: Sequence[Hypothesis]) -> Translation:
        """hypotheses -> text, the best with the others as its alternatives; none for an empty sentence."""
        if sentence.ids:
            check_numbers(hypotheses)
        # a truncated hypothesis never comes first if there is a whole one
        whole_first = sorted(hypotheses or [_SILENCE], key=lambda hypothesis: not hypothesis.finished)
        best, *others = [self._finish(sentence, hypothesis) for hypothesis in whole_first]
        return replace(best, alternatives=tuple(others))

    def _tokens(self, text: str, tokenizer: Tokenizer) -> Sentence:
        prepared = self.text.prepare(text)
        ids = tokenizer.encode(prepared) if prepared.strip() else []  # spaces alone have no tokens
        if len(ids) > self.longest:
            raise DataError(
                f"A sentence of {len(ids)} tokens: expected at most {self.longest}. Cut it into shorter ones."
            )
        return Sentence(prepared, tuple(ids))

    def _prefix(self, text: str) -> Prefix:
        prepared, target = self.text.prepare(text).strip(), self.text.target
        ids = target.encode(prepared)
        if len(ids) > self.longest:
            raise DataError(f"A prefix of {len(ids)} tokens: expected at most {self.longest}. Give a shorter one.")
        if unknown := target.unknown(prepared):
            raise UsageError(
                f"The prefix {text[:80]!r} holds {unknown[0]!r}, which this model cannot say. Use another."
            )
        return Prefix(tuple(ids), np.array(target.lengthening(prepared), dtype=np.int64))

    def _finish(self, sentence: Sentence, hypothesis: Hypothesis) -> Translation:
        source_ids = [*sentence.ids, EOS]
        source, target = self.text.source, self.text.target
        found = Translation(
            source=sentence.text,
            text=target.decode(hypothesis.ids),
            score=hypothesis.score,
            source_tokens=tuple(source.pieces(source_ids)),
            tokens=tuple(target.pieces(hypothesis.ids)),
            token_scores=tuple(hypothesis.token_scores.tolist()),
            heads=hypothesis.heads,
            offset=self.offset,
            source_words=(*source.words(sentence.ids), NO_WORD),
            words=tuple(target.words(hypothesis.ids)),
            finished=hypothesis.finished,
        )
        return self._without_unknown(found, hypothesis.ids) if self.replace_unknown and sentence.ids else found

    def _without_unknown(self, found: Translation, ids: Sequence[int]) -> Translation:
        if found.explained is None:
            given = "Unknown words are replaced by what attention looks at, and this model has none"
            raise UsageError(f"{given}. Leave out replace_unknown, or use a model with attention.")
        source, target = self.text.source, self.text.target
        return replace(found, text=target.decode(ids, replacements(found.explained, source, found.source, target, ids)))


def check_numbers(hypotheses: Sequence[Hypothesis]) -> None:
    """Raise a FolderError if scores are not finite: finite weights may be so large that they overflow."""
    if not hypotheses or not all(np.isfinite([h.score, *h.token_scores]).all() for h in hypotheses):
        given = "the model computes no finite scores: its weights are too large"
        raise FolderError(f"{given}. Restore the model, or train anew with a lower rate.")


_SILENCE = Hypothesis(
    ids=(EOS,),
    token_scores=np.zeros(1, dtype=np.float32),
    score=0.0,
    heads=np.zeros((0, 0, 1, 1), dtype=np.float32),
    finished=True,
)
