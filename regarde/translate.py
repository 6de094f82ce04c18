"""The whole way in one place: text -> tokens -> batch -> encoder -> attention -> decoder -> search -> text + alignment.

Axes: T target tokens (EOS included), S source tokens (EOS included), L attention layers, N heads.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from regarde.alignment.links import Link, argmax_links, merge, shift
from regarde.alignment.unknown import replacements
from regarde.errors import DataError, UsageError
from regarde.search import Hypothesis, Search, adjusted
from regarde.search.interventions import Intervention
from regarde.search.prefix import NO_PREFIX, Prefix
from regarde.search.trace import Step, Trace, ids_in
from regarde.text import EOS, NO_WORD, Text, Tokenizer

if TYPE_CHECKING:
    from regarde.models.interface import Model

Weights = NDArray[np.floating[Any]]

SCORED = 256  # pairs scored together …
SCORED_CELLS = 1 << 18  # … or fewer, by the size of their attention, so that memory is bounded whatever the pairs


@dataclass(frozen=True, eq=False)
class Translation:
    """A translation and what attention looked at for each of its tokens."""

    source: str
    text: str
    score: float
    source_tokens: tuple[str, ...]  # S
    tokens: tuple[str, ...]  # T
    token_scores: tuple[float, ...]  # T log-probabilities
    heads: Weights  # (L, N, T, S) all attention there is; L = N = 0 for a model without
    offset: int  # row t of the attention explains token t - offset
    source_words: tuple[int, ...]  # S word of each token, -1 for none
    words: tuple[int, ...]  # T
    finished: bool = True  # False where the length limit cut it short
    alternatives: tuple[Translation, ...] = ()  # the next best, where they were asked for

    @property
    def attention(self) -> Weights | None:
        """(T, S): the mean over layers and heads, a row for each token including EOS; None for a model without."""
        return self.heads.mean(axis=(0, 1)) if self.heads.shape[0] else None

    def attention_rows(self) -> list[list[float]] | None:
        """The same as JSON knows it."""
        return None if self.attention is None else [[round(w, 6) for w in row] for row in self.attention.tolist()]

    @property
    def explained(self) -> Weights | None:
        """Attention moved by the model's own offset, so that row t speaks of token t."""
        return None if self.attention is None else shift(self.attention, self.offset)

    def links(self, threshold: float = 0.0) -> list[Link]:
        """For each token the source token it looked at most; EOS is linked to nothing."""
        if self.explained is None:
            return []
        return self._without_eos(argmax_links(self.explained, threshold=threshold))

    def word_links(self, threshold: float = 0.0) -> list[Link]:
        """The same between words: what their pieces looked at, merged."""
        if self.explained is None:
            return []
        return argmax_links(merge(self.explained, self.source_words, self.words), threshold=threshold)

    def _without_eos(self, links: list[Link]) -> list[Link]:
        S, T = len(self.source_tokens) - 1, len(self.tokens) - self.finished
        return [link for link in links if link.source < S and link.target < T]

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        if self.attention is None:
            return f'<bdi dir="auto">{html.escape(self.text)}</bdi>'
        from regarde.visualise.heatmap import Heatmap  # a notebook asks; nobody else pays for pictures
        from regarde.visualise.html import fragment

        return fragment(Heatmap.of(self))


class Engine(Protocol):
    """What decodes: a stream of sentences in, their hypotheses out in the same order."""

    name: str

    def decode(
        self, sources: Iterable[Sequence[int]], search: Search, prefixes: Iterable[Prefix] | None = None
    ) -> Iterator[list[Hypothesis]]: ...

    def joined(self, others: Sequence[Any], offsets: Sequence[int]) -> Engine:
        """One that says the mean of what this and others of its kind say; the offset of each one's attention."""

    def trace(
        self,
        source: Sequence[int],
        search: Search,
        candidates: int,
        *,
        prefix: Prefix = NO_PREFIX,
        target: Sequence[int] | None = None,
        interventions: Sequence[Intervention] = (),
    ) -> tuple[tuple[Step, ...], list[Hypothesis]]: ...

    def states(self, source: Sequence[int]) -> NDArray[np.float32] | None: ...

    def forced(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Hypothesis]: ...


@dataclass(frozen=True)
class Sentence:
    """A source on its way."""

    text: str
    ids: tuple[int, ...]
    prefix: Prefix = NO_PREFIX  # of its translation


@dataclass(frozen=True)
class Translator:
    """Tokenizers, an engine and a default search: all that it takes to translate."""

    text: Text
    engine: Engine
    search: Search
    offset: int  # of the model's attention
    longest: int = 1000  # tokens of a source; anything longer is refused
    replace_unknown: bool = False  # each UNK by what it looked at in the source (Luong et al. 2015, section 4.2)

    @property
    def model(self) -> Model:
        """The torch model behind it."""
        model: Model | None = getattr(self.engine, "model", None)
        if model is None:
            raise UsageError('This model was loaded for the native engine. Load it with engine = "torch".')
        return model

    @overload
    def translate(  # type: ignore[overload-overlap]  # a string is a sequence of strings, but one sentence to us
        self,
        sentences: str,
        *,
        beam: int | None = None,
        n_best: int = 1,
        search: Search | None = None,
        replace_unknown: bool | None = None,
        prefix: str | Sequence[str] = "",
    ) -> Translation: ...
    @overload
    def translate(
        self,
        sentences: Sequence[str],
        *,
        beam: int | None = None,
        n_best: int = 1,
        search: Search | None = None,
        replace_unknown: bool | None = None,
        prefix: str | Sequence[str] = "",
    ) -> list[Translation]: ...
    def translate(
        self,
        sentences: str | Sequence[str],
        *,
        beam: int | None = None,
        n_best: int = 1,
        search: Search | None = None,
        replace_unknown: bool | None = None,
        prefix: str | Sequence[str] = "",
    ) -> Translation | list[Translation]:
        """Translate one sentence or several; `search` says all, `beam` and `n_best` change the model's own search.

        A translation begins with `prefix`, one for all sentences or one for each. Its words are whole: no subword
        follows that would make the last one longer. Where tokens are characters, any may follow.
        """
        if replace_unknown is not None:
            return replace(self, replace_unknown=replace_unknown).translate(
                sentences, beam=beam, n_best=n_best, search=search, prefix=prefix
            )
        chosen = search or adjusted(self.search, beam=beam, n_best=n_best)
        several = [sentences] if isinstance(sentences, str) else _sentences(sentences)
        prefixes = [prefix] * len(several) if isinstance(prefix, str) else _sentences(prefix)
        if len(prefixes) != len(several):
            raise UsageError(f"{len(prefixes):,} prefixes for {len(several):,} sentences. Give one, or one for each.")
        pairs = zip(several, prefixes, strict=True)
        translations = list(self.stream((self.tokens(*pair) for pair in pairs), chosen))
        return translations[0] if isinstance(sentences, str) else translations

    def trace(
        self,
        sentence: str,
        *,
        beam: int | None = None,
        n_best: int = 1,
        search: Search | None = None,
        prefix: str | Sequence[int] = "",
        target: str | Sequence[int] | None = None,
        top_k: int = 8,
        interventions: Sequence[Intervention] = (),
    ) -> Trace:
        """Every step of a search, with the `top_k` likeliest words at each; of forced decoding where `target` is given.

        The search is chosen as in `translate`; with a `target` nothing is searched. Prefix and target are text, or ids
        of tokens as a trace has them: after a prefix of ids any token may follow. Interventions change what attention
        looks at, and so what is said (regarde.search.interventions).
        """
        if top_k < 1:
            raise UsageError(f"top_k = {top_k}: expected at least 1. Ask for more candidates.")
        chosen = search or adjusted(self.search, beam=beam, n_best=n_best)
        given, text = self.tokens(sentence), self.text.target
        if not given.ids:
            raise UsageError("There is nothing to trace in an empty sentence. Give one with words.")
        steps, found = self.engine.trace(
            given.ids,
            chosen,
            top_k,
            prefix=self._beginning(prefix),
            target=None if target is None else [*self._whole(target), EOS],
            interventions=interventions,
        )
        named = sorted(ids_in(steps))
        return Trace(
            source=given.text,
            source_tokens=tuple(self.text.source.pieces([*given.ids, EOS])),
            source_words=(*self.text.source.words(given.ids), NO_WORD),
            search=asdict(chosen) if target is None else {"kind": "forced"},
            offset=self.offset,
            states=self.engine.states(given.ids),
            steps=steps,
            hypotheses=tuple(found),
            texts=tuple(text.decode(hypothesis.ids) for hypothesis in found),
            words=tuple(tuple(text.words(hypothesis.ids)) for hypothesis in found),
            tokens=dict(zip(named, text.pieces(named), strict=True)),
            interventions=tuple(interventions),
        )

    def _beginning(self, prefix: str | Sequence[int]) -> Prefix:
        if isinstance(prefix, str):
            return self._prefix(prefix) if prefix.strip() else NO_PREFIX
        return Prefix(self._known(prefix))

    def _whole(self, target: str | Sequence[int]) -> Sequence[int]:
        return self.text.target.encode(self.text.prepare(target)) if isinstance(target, str) else self._known(target)

    def _known(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Ids that a caller names, if they are the model's."""
        if len(ids) > self.longest:
            raise DataError(f"{len(ids)} tokens are given: expected at most {self.longest}. Give fewer.")
        for word in ids:
            if not 0 <= word < len(self.text.target):
                raise UsageError(
                    f"Token {word}: this model can say 0 to {len(self.text.target) - 1}. Use ids of a trace of it."
                )
        return tuple(ids)

    def tokens(self, text: str, prefix: str = "") -> Sentence:
        """text -> tokens; a sentence that is too long is refused."""
        found = self._tokens(text, self.text.source)
        return replace(found, prefix=self._prefix(prefix)) if prefix and not prefix.isspace() else found

    def _tokens(self, text: str, tokenizer: Tokenizer) -> Sentence:
        prepared = self.text.prepare(text)
        ids = tokenizer.encode(prepared) if prepared.strip() else []  # nothing but spaces says nothing
        if len(ids) > self.longest:
            raise DataError(
                f"A sentence of {len(ids)} tokens: expected at most {self.longest}. Cut it into shorter ones."
            )
        return Sentence(prepared, tuple(ids))

    def _prefix(self, text: str) -> Prefix:
        said, target = self.text.prepare(text).strip(), self.text.target
        ids = target.encode(said)
        if len(ids) > self.longest:
            raise DataError(f"A prefix of {len(ids)} tokens: expected at most {self.longest}. Give a shorter one.")
        if unknown := target.unknown(said):
            raise UsageError(
                f"The prefix {text[:80]!r} holds {unknown[0]!r}, which this model cannot say. Use another."
            )
        return Prefix(tuple(ids), np.array(target.lengthening(said), dtype=np.int64))

    def stream(self, sentences: Iterable[Sentence], search: Search) -> Iterator[Translation]:
        """tokens -> translations, in order and as they come; nothing said gives nothing to say."""
        waiting, decoding = itertools.tee(sentences)
        asked, begun = itertools.tee(sentence for sentence in decoding if sentence.ids)
        prefixes = (sentence.prefix for sentence in begun)
        found = self.engine.decode((sentence.ids for sentence in asked), search, prefixes)
        for sentence in waiting:
            yield self.finish(sentence, next(found) if sentence.ids else [])

    def finish(self, sentence: Sentence, hypotheses: Sequence[Hypothesis]) -> Translation:
        """hypotheses -> text, the best with the others as its alternatives; none for a sentence that says nothing."""
        # nobody wants to read half an answer first
        whole_first = sorted(hypotheses or [_SILENCE], key=lambda hypothesis: not hypothesis.finished)
        best, *others = [self._finish(sentence, hypothesis) for hypothesis in whole_first]
        return replace(best, alternatives=tuple(others))

    def score(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Translation]:
        """What the model thinks of given translations, and what it looks at while saying them: forced decoding.

        In order and as they come; a window of pairs at a time is held. An answer's `score` is its log-probability.
        """
        for window in _windows(self._pairs(pairs)):
            sources, targets = zip(*window, strict=True)
            found = self.engine.forced([s.ids for s in sources], [[*t.ids, EOS] for t in targets])
            for sentence, target, hypothesis in zip(sources, targets, found, strict=True):
                source_words = self.text.source.words(sentence.ids, self.text.source.unknown(sentence.text))
                words = self.text.target.words(target.ids, self.text.target.unknown(target.text))
                yield replace(
                    replace(self, replace_unknown=False)._finish(sentence, hypothesis),
                    text=target.text,
                    source_words=(*source_words, NO_WORD),
                    words=(*words, NO_WORD),
                )

    def _pairs(self, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[Sentence, Sentence]]:
        for number, (source, target) in enumerate(pairs, start=1):
            try:
                yield self.tokens(source), self.target_tokens(target)
            except DataError as error:
                raise DataError(f"Pair {number:,}: {error}") from None

    def target_tokens(self, text: str) -> Sentence:
        """The same for a text of the target side."""
        return self._tokens(text, self.text.target)

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


def ensemble(translators: Sequence[Translator]) -> Translator:
    """One translator that asks several models and takes the mean of their probabilities; the first says how to search.

    All must read and write the same tokens. One alone stays as it is, with all its heads.
    """
    if not translators:
        raise UsageError("An ensemble of no models. Give at least one.")
    first, *others = translators
    if not others:
        return first
    for number, other in enumerate(others, start=2):
        if difference := first_difference(first.text, other.text):
            raise UsageError(f"Model {number} of the ensemble: {difference} Use models trained on the same vocabulary.")
    if len(names := sorted({translator.engine.name for translator in translators})) > 1:
        raise UsageError(f'Models loaded for {" and ".join(names)} make no ensemble. Load all with engine = "torch".')
    offsets = [translator.offset for translator in translators]
    engine = first.engine.joined([other.engine for other in others], offsets)
    longest = min(translator.longest for translator in translators)
    return replace(first, engine=engine, offset=max(offsets), longest=longest)


def first_difference(expected: Text, given: Text) -> str:
    """The first thing in which two models' text differs, as a sentence; nothing where tokens are the same."""
    if given.normalise != expected.normalise:
        return f"text is normalised as {given.normalise}, expected {expected.normalise}."
    sides = {"source": (expected.source, given.source), "target": (expected.target, given.target)}
    for side, (one, other) in sides.items():
        if other == one:
            continue
        for i, (a, b) in enumerate(zip(one.pieces(range(len(one))), other.pieces(range(len(other))), strict=False)):
            if a != b:
                return f"{side} token {i} is {b!r}, expected {a!r}."
        if len(other) != len(one):
            return f"the {side} has {len(other):,} tokens, expected {len(one):,}."
        return f"the {side} text is cut into tokens in another way."
    return ""


def _windows(pairs: Iterable[tuple[Sentence, Sentence]]) -> Iterator[list[tuple[Sentence, Sentence]]]:
    window: list[tuple[Sentence, Sentence]] = []
    cells = 0
    for source, target in pairs:
        window.append((source, target))
        cells += (len(source.ids) + 1) * (len(target.ids) + 1)
        if len(window) == SCORED or cells > SCORED_CELLS:
            yield window
            window, cells = [], 0
    if window:
        yield window


def _sentences(given: object) -> list[str]:
    """What the caller calls sentences, if that is what they are."""
    if not isinstance(given, Iterable) or isinstance(given, bytes):
        raise UsageError(f"translate was given {_named(given)}. Give a string, or a list of strings.")
    sentences = list(given)
    for number, sentence in enumerate(sentences, start=1):
        if not isinstance(sentence, str):
            raise UsageError(f"Sentence {number} of {len(sentences):,} is {_named(sentence)}, expected a string.")
    return sentences


def _named(value: object) -> str:
    return "None" if value is None else f"something of type {type(value).__name__}"


_SILENCE = Hypothesis(
    ids=(EOS,),
    token_scores=np.zeros(1, dtype=np.float32),
    score=0.0,
    heads=np.zeros((0, 0, 1, 1), dtype=np.float32),
    finished=True,
)
