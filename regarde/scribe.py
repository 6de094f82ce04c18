"""Text -> tokens, and hypotheses -> text + alignment: a translator without its engine.

The text given to a language model, its prompt, is the beginning of the answer: a prefix of it, with no source. A prompt
may end inside a word. Where tokens are characters, any may follow. Of subwords also those that make the last word
longer may follow, unless the prompt ends in a space; but a model has mostly seen words cut in another way, so that a
prompt of whole words is continued better. Where tokens are words, the last one is whole.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from regarde.alignment.copied import MEAN, CopyWeights, Origins, mapped, pointed
from regarde.alignment.unknown import replacements
from regarde.errors import DataError, FolderError, UsageError
from regarde.search import Greedy, Hypothesis, Search
from regarde.search.settings import NO_PREFIX, Prefix
from regarde.tasks import TRANSLATION, TaskConfig, TranslationTask
from regarde.text import BOS, CONTROLS, EOS, NO_WORD, UNK, UNKNOWN, Text, TextConfig
from regarde.text.extended import known
from regarde.text.tokenizers import positions
from regarde.translation import Translation


@dataclass(frozen=True)
class ScribeConfig:
    """The part of a configuration for text and search: all but the model."""

    task: TaskConfig = field(default_factory=TranslationTask)  # Task: what the source is and what the target is.
    source_language: str = ""  # Language code of the source (BCP 47), if known.
    target_language: str = ""  # Language code of the target (BCP 47), if known.
    text: TextConfig = field(default_factory=TextConfig)
    search: Search = field(default_factory=Greedy)  # How translations are searched.


@dataclass(frozen=True)
class Sentence:
    """A source sentence as tokens; or a prompt, whose tokens are the prefix."""

    text: str
    ids: tuple[int, ...]
    prefix: Prefix = NO_PREFIX  # of its translation
    prompt: bool = False  # nothing is given but the beginning of the answer, which may be empty
    windows: tuple[Sentence, ...] = ()  # parts of a text that is too long; the best answer to one of them is the answer

    @property
    def empty(self) -> bool:
        """Whether there is nothing to answer."""
        return not self.ids and not self.prompt

    @property
    def size(self) -> int:
        """Tokens that are given."""
        return len(self.prefix.ids) if self.prompt else positions(self.ids)


@dataclass(frozen=True)
class AttendedTokens:
    """What attention looks at: the columns of its picture."""

    tokens: tuple[str, ...]  # S
    words: tuple[int, ...]  # S word of each token, -1 for none


@dataclass(frozen=True, kw_only=True)
class Scribe:
    """Encodes and decodes text for a model, which may run in another process."""

    text: Text
    search: Search
    offset: int  # of the model's attention
    task: TaskConfig = TRANSLATION
    longest: int = 1000  # tokens of a source or a prompt; a longer one is an error
    copying: CopyWeights | None = None  # which weights copy; None of a model that copies nothing
    replace_unknown: bool = False  # each UNK by the source word with most attention (Luong et al. 2015, section 4.2)

    def tokens(self, text: str, prefix: str = "") -> Sentence:
        """text -> tokens; of a passage that is too long, those of overlapping windows, if the task has them."""
        try:
            return self.sentence(text, prefix)
        except DataError:
            windows = () if prefix else self.windows(text)
            if not windows:
                raise
        return replace(windows[0], text=self.text.prepare(text), windows=windows)

    def sentence(self, text: str, prefix: str = "") -> Sentence:
        """text -> tokens; a text that is too long raises an error."""
        if self.task.continues:
            return self._prompt(text + prefix)
        given = self.task.given(text) if self.task.lines else text
        if given is None:
            raise DataError(f"{text[:80]!r}: expected {self.task.lines}. Give both.")
        found = self._tokens(given)
        return replace(found, prefix=self.prefix(prefix, found)) if prefix else found

    def windows(self, text: str, limit: int = sys.maxsize) -> tuple[Sentence, ...]:
        """The tokens of overlapping parts of a text that is too long, if the task has them; `limit` is of each."""

        def fits(part: str) -> bool:
            try:
                return self.sentence(part).size <= limit
            except DataError:
                return False

        return tuple(map(self.sentence, self.task.windows(text, fits)))

    def prefix(self, text: str, source: Sentence) -> Prefix:
        """The tokens that a translation of a source must begin with; none for a blank text."""
        return self._prefix(text, source) if text and not text.isspace() else NO_PREFIX

    def prompt(self, text: str) -> Sentence:
        """The tokens of a prompt; one of which the model knows nothing is refused."""
        found = self.sentence(text)
        if not self.knows(found):
            raise UsageError(f"The model knows no token of the prompt {text[:80]!r}. Use another, or none.")
        return found

    def knows(self, sentence: Sentence) -> bool:
        """Whether the model knows any token of a sentence or prompt, spaces apart; also where there is none."""
        if sentence.empty:
            return True
        ids, tokenizer = sentence.ids, self.text.source
        if sentence.prompt:
            ids, tokenizer = sentence.prefix.ids, self.text.target
        if not self.text.plain:
            ids = tuple(known(ids, len(tokenizer)))
        return UNK not in ids or bool(tokenizer.decode(ids, [""] * ids.count(UNK)).strip())

    def target_tokens(self, text: str, source: Sentence) -> Sentence:
        """The same for a text of the target side, of a source."""
        return self._tokens(text, source.text)

    def finish(self, sentence: Sentence, hypotheses: Sequence[Hypothesis]) -> Translation:
        """hypotheses -> text, the best with the others as its alternatives; none for an empty sentence."""
        if not sentence.empty:
            check_numbers(hypotheses)
        # a truncated hypothesis never comes first if there is a whole one
        whole_first = sorted(hypotheses or [_SILENCE], key=lambda hypothesis: not hypothesis.finished)
        best, *others = [self._finish(sentence, hypothesis) for hypothesis in whole_first]
        found = replace(best, alternatives=tuple(others))
        return self.task.annotated(found, self._labels) if any(self.task.parts) else found  # labels or tags

    def informed(self, search: Search) -> Search:
        """The search for answers with all that the task says of them: for labels their probabilities."""
        return self.task.informed(search, self._labels)

    @property
    def _labels(self) -> int:
        return len(self.text.target) - len(CONTROLS)

    def _tokens(self, text: str, source: str | None = None) -> Sentence:
        """The tokens of a source, or of a target of `source`, which is prepared."""
        prepared = self.text.prepare(text)
        side = self.text.of(prepared).source if source is None else self.text.of(source).target
        ids = side.encode(prepared) if prepared.strip() else []  # only spaces: no tokens
        found = Sentence(prepared, tuple(ids))
        if positions(ids) > self.longest:
            raise DataError(
                f"A sentence of {found.size} tokens: expected at most {self.longest}. Cut it into shorter ones."
            )
        return found

    def _prompt(self, text: str) -> Sentence:
        prepared, target = self.text.prepare(text), self.text.target
        # of subwords the next one brings its space, and must begin a word
        barred = target.lengthening(prepared.rstrip(" ")) if prepared.endswith(" ") else ()
        ids = target.encode(prepared.removesuffix(" ") if barred else prepared) if prepared else []
        if len(ids) > (most := min(self.longest, self.search.rules.context - 1)):
            raise DataError(f"A prompt of {len(ids)} tokens: expected at most {most}. Give a shorter one.")
        return Sentence(prepared, (), Prefix(tuple(ids), np.array(barred, dtype=np.int64)), prompt=True)

    def _prefix(self, text: str, source: Sentence) -> Prefix:
        prepared, target = self.text.prepare(text).strip(), self.text.target
        ids = self.text.of(source.text).target.encode(prepared)
        if len(ids) > self.longest:
            raise DataError(f"A prefix of {len(ids)} tokens: expected at most {self.longest}. Give a shorter one.")
        if UNK in ids:
            unlisted = [i for i in ids if i == UNK or i >= len(target)]
            unknown = target.unknown(prepared)[unlisted.index(UNK)]
            raise UsageError(
                f"The prefix {text[:80]!r} holds {unknown!r}, which is not in the vocabulary. Use another."
            )
        return Prefix(tuple(ids), np.array(target.lengthening(prepared), dtype=np.int64))

    def _finish(self, sentence: Sentence, hypothesis: Hypothesis) -> Translation:
        ids, given, target = hypothesis.ids, sentence.prefix.ids, self.text.of(sentence.text).target
        attended = self.attended(sentence, ids)
        found = Translation(
            source=sentence.text,
            text=self.text_of(sentence, ids) if sentence.prompt else target.decode(ids),
            score=hypothesis.score,
            source_tokens=attended.tokens,
            tokens=tuple(target.pieces(ids)),
            token_scores=tuple(hypothesis.token_scores.tolist()),
            heads=hypothesis.heads,
            offset=self.offset,
            source_words=attended.words,
            words=tuple(target.words(ids)),
            finished=hypothesis.finished,
            task=self.task.kind,
            looks_back=sentence.prompt,
            prompt_tokens=len(given),
            prompt_length=len(self.text_of(sentence, given)) if sentence.prompt else 0,
            p_gen=None if hypothesis.p_gen is None else tuple(hypothesis.p_gen.tolist()),
            copied=self.copied(sentence, hypothesis) if self.copying else None,
            weights=self.copying or MEAN,
        )
        return self._without_unknown(found, ids) if self.replace_unknown and sentence.ids else found

    def text_of(self, sentence: Sentence, ids: Sequence[int]) -> str:
        """The text of ids; where they begin with a prompt, its unknown characters or words are as they were given."""
        unknown = self.text.target.unknown(sentence.text)[: ids.count(UNK)] if sentence.prompt else []
        return self.text.of(sentence.text).target.decode(ids, [*unknown, *[UNKNOWN] * (ids.count(UNK) - len(unknown))])

    def copied(self, sentence: Sentence, hypothesis: Hypothesis) -> Origins | None:
        """Where each token was copied from; None of a model that copies nothing."""
        p_gen, scores = hypothesis.p_gen, hypothesis.token_scores
        if p_gen is None or self.copying is None:
            return None
        weights = self.copying.of(hypothesis.heads)
        if not self.text.copies:
            return mapped(p_gen, weights)
        return pointed(hypothesis.ids, scores, p_gen, weights, self.text.extended.columns(sentence.text))

    def attended(self, sentence: Sentence, ids: Sequence[int]) -> AttendedTokens:
        """What attention looks at: the source with its EOS, or, where it looks back, BOS and all said but the last."""
        if sentence.prompt:
            target = self.text.target
            return AttendedTokens(tuple(target.pieces([BOS, *ids[:-1]])), (NO_WORD, *target.words(ids)[:-1]))
        source, ids = self.text.of(sentence.text).source, sentence.ids
        return AttendedTokens(tuple(source.pieces([*ids, EOS])), (*source.words(ids), NO_WORD))

    def _without_unknown(self, found: Translation, ids: Sequence[int]) -> Translation:
        if found.explained is None:
            given = "Unknown words are replaced by what attention looks at, and this model has none"
            raise UsageError(f"{given}. Leave out replace_unknown, or use a model with attention.")
        source, target = self.text.source, self.text.target
        unknown = replacements(found.explained, source, found.source, target, known(ids, len(target)))
        places = [i for i in ids if i == UNK or i >= len(target)]
        written = [text for i, text in zip(places, unknown, strict=True) if i == UNK]  # the others are copied
        return replace(found, text=self.text.of(found.source).target.decode(ids, written))


def check_numbers(hypotheses: Sequence[Hypothesis]) -> None:
    """Raise a FolderError if scores are not finite: finite weights may be so large that they overflow."""
    if not hypotheses or not all(np.isfinite([h.score, *h.token_scores]).all() for h in hypotheses):
        given = "the model computes no finite scores: its weights are too large"
        raise FolderError(f"{given}. Restore the model, or train again with a lower rate.")


_SILENCE = Hypothesis(
    ids=(EOS,),
    token_scores=np.zeros(1, dtype=np.float32),
    score=0.0,
    heads=np.zeros((0, 0, 1, 1), dtype=np.float32),
    finished=True,
)
