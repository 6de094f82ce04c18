"""The whole flow: text -> tokens -> batch -> encoder -> attention -> decoder -> search -> text + alignment.

Axes: T target tokens (EOS included), S source tokens (EOS included), L attention layers, N heads.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from regarde.alignment.copied import MEAN
from regarde.errors import DataError, FolderError, UsageError, counted
from regarde.scribe import Scribe, Sentence, check_numbers
from regarde.search import Hypothesis, Search, adjusted
from regarde.search.interventions import Intervention
from regarde.search.ranking import beam_score
from regarde.search.settings import NO_PREFIX, Beam, Prefix, Sampling
from regarde.search.trace import SearchStep, Trace, ids_in
from regarde.text import EOS, NO_WORD, UNK, Text
from regarde.text.extended import known
from regarde.translation import Translation

if TYPE_CHECKING:
    from regarde.engines.continuous import Completed, PartialHypothesis
    from regarde.models.interface import Model

TEMPERATURE = 0.8  # of samples of a language model: more coherent than at 1, less repetitive than the likeliest text
SCORED = 256  # pairs scored together …
SCORED_CELLS = 1 << 18  # … or fewer, by the size of their attention, so that memory is bounded for any pairs


class Serving(Protocol):
    """An engine that accepts requests at any time. `read_end` becomes readable when there are events to collect."""

    read_end: int

    def ask(
        self, sources: Sequence[Sequence[int]], search: Search, prefixes: Sequence[Prefix], *, followed: bool = False
    ) -> int: ...

    def cancel(self, number: int) -> None: ...

    def collect(self) -> Iterator[PartialHypothesis | Completed]: ...

    def close(self) -> None: ...


class Engine(Protocol):
    """Decodes a stream of sentences; hypotheses come in the same order."""

    name: str

    @property
    def layers(self) -> int:
        """The number of attention layers; 0 for a model without attention."""

    @property
    def heads(self) -> int:
        """The number of heads in each layer."""

    @property
    def carries(self) -> bool:
        """Whether the model reads running text in one piece: not where it counts positions."""

    @property
    def formulas(self) -> Mapping[str, str]:
        """What the model computes, as its classes state it (regarde.attention.formulas)."""

    def continuous(self, *, threads: int = 1) -> Serving: ...

    def decode(
        self, sources: Iterable[Sequence[int]], search: Search, prefixes: Iterable[Prefix] | None = None
    ) -> Iterator[list[Hypothesis]]: ...

    def joined(self, others: Sequence[Any], offsets: Sequence[int]) -> Engine:
        """An ensemble of this and others of its kind; `offsets` are those of their attention."""

    def trace(
        self,
        source: Sequence[int],
        search: Search,
        candidates: int,
        *,
        prefix: Prefix = NO_PREFIX,
        target: Sequence[int] | None = None,
        interventions: Sequence[Intervention] = (),
    ) -> tuple[tuple[SearchStep, ...], list[Hypothesis]]: ...

    def states(self, source: Sequence[int]) -> NDArray[np.float32] | None: ...

    def forced(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Hypothesis]: ...


@dataclass(frozen=True, kw_only=True)
class Translator(Scribe):
    """Tokenizers, an engine and a default search: everything needed to translate."""

    engine: Engine

    def __repr__(self) -> str:
        heads = f"{self.engine.layers} x {self.engine.heads} heads" if self.engine.layers else "no attention"
        return f"<Translator for {self.task.kind}, {self.engine.name} engine, {self.search.kind} search, {heads}>"

    @property
    def model(self) -> Model:
        """The torch model behind it."""
        model: Model | None = getattr(self.engine, "model", None)
        if model is None:
            raise UsageError('This model was loaded for the native engine. Load it with engine = "torch".')
        return model

    @overload
    def predict(  # type: ignore[overload-overlap]  # a string is a sequence of strings, but one sentence to us
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
    def predict(
        self,
        sentences: Sequence[str],
        *,
        beam: int | None = None,
        n_best: int = 1,
        search: Search | None = None,
        replace_unknown: bool | None = None,
        prefix: str | Sequence[str] = "",
    ) -> list[Translation]: ...
    def predict(
        self,
        sentences: str | Sequence[str],
        *,
        beam: int | None = None,
        n_best: int = 1,
        search: Search | None = None,
        replace_unknown: bool | None = None,
        prefix: str | Sequence[str] = "",
    ) -> Translation | list[Translation]:
        """Answer one sentence or several; `search` replaces the search of the model, `beam` and `n_best` change it.

        A sentence is translated, classified or tagged, or continued by a language model; `translate` is another name
        for the same. With `n_best`, the answer stays the same, and the others are its `alternatives`. An answer begins
        with `prefix`, one for all sentences or one for each. Its words are complete: no subword may follow that makes
        the last one longer. If tokens are characters, any may follow.
        """
        if replace_unknown is not None:
            return replace(self, replace_unknown=replace_unknown).predict(
                sentences, beam=beam, n_best=n_best, search=search, prefix=prefix
            )
        chosen = search or adjusted(self.search, beam=beam, n_best=n_best)
        informed = self.informed(chosen)
        several = [sentences] if isinstance(sentences, str) else _sentences(sentences)
        prefixes = [prefix] * len(several) if isinstance(prefix, str) else _sentences(prefix)
        if len(prefixes) != len(several):
            given = f"{counted(len(prefixes), 'prefix', 'prefixes')} for {counted(len(several), 'sentence')}"
            raise UsageError(f"{given}. Give one, or one for each.")
        pairs = zip(several, prefixes, strict=True)
        first = None if search or informed != chosen else adjusted(self.search, beam=beam)
        translations = list(self.stream((self.tokens(*pair) for pair in pairs), informed, first, chosen.n_best))
        return translations[0] if isinstance(sentences, str) else translations

    translate = predict

    def generate(
        self, prompt: str = "", *, length: int | None = None, count: int = 1, search: Search | None = None
    ) -> Translation:
        """Continue a prompt with a language model: by sampling, unless `search` says otherwise.

        At most `length` tokens are added. Of several samples, the first is the likeliest, and the others are its
        `alternatives`.
        """
        self.require_language_model("generate")
        chosen = search or Sampling(n_best=count, temperature=TEMPERATURE, rules=self.search.rules)
        if length is not None:
            chosen = replace(chosen, rules=chosen.rules.up_to(length))
        (found,) = self.stream([self.prompt(prompt)], chosen)
        return found

    def require_language_model(self, verb: str, name: str = "this model") -> None:
        """Raise a UsageError that names the right method if this is no language model."""
        if not self.task.continues:
            raise UsageError(f"{verb} needs a language model: {name} is {self.task.noun}. Use predict.")

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
        of tokens as a trace has them: after a prefix of ids any token may follow. Interventions change the
        attention, and so the tokens generated (regarde.search.interventions).
        """
        if top_k < 1:
            raise UsageError(f"top_k = {top_k}: expected at least 1. Give a larger top_k.")
        chosen = search or adjusted(self.search, beam=beam, n_best=n_best)
        given = self.tokens(sentence)
        if given.empty:
            raise UsageError("There is nothing to trace in an empty sentence. Give one with words.")
        steps, found = self.engine.trace(
            given.ids,
            chosen,
            top_k,
            prefix=self._beginning(given, prefix),
            target=None if target is None else [*self._whole(target, given), EOS],
            interventions=interventions,
        )
        check_numbers(found)
        named, targets = sorted(ids_in(steps)), self.text.of(given.text).target
        attended = self.attended(given, found[0].ids)
        return Trace(
            source=given.text,
            source_tokens=attended.tokens,
            source_words=attended.words,
            search=asdict(chosen) if target is None else {"kind": "forced"},
            offset=self.offset,
            states=None if given.prompt else self.engine.states(given.ids),
            steps=steps,
            hypotheses=tuple(found),
            texts=tuple(targets.decode(hypothesis.ids) for hypothesis in found),
            words=tuple(tuple(targets.words(hypothesis.ids)) for hypothesis in found),
            tokens=dict(zip(named, targets.pieces(named), strict=True)),
            copied=tuple(self.copied(given, hypothesis) for hypothesis in found),
            interventions=tuple(interventions),
            looks_back=given.prompt,
        )

    def _beginning(self, given: Sentence, prefix: str | Sequence[int]) -> Prefix:
        """A prefix of ids is all of the beginning, also where there is a prompt."""
        if isinstance(prefix, str):
            return self.tokens(given.text, prefix).prefix if given.prompt else self.prefix(prefix, given)
        if UNK in prefix:
            raise UsageError(
                f"A prefix of ids {list(prefix)}: control tokens and unknown words cannot be generated. Use others."
            )
        return Prefix(self._known(prefix, given)) if prefix else given.prefix

    def _whole(self, target: str | Sequence[int], given: Sentence) -> Sequence[int]:
        if isinstance(target, str):
            return self.text.of(given.text).target.encode(self.text.prepare(target))
        return self._known(target, given)

    def _known(self, ids: Sequence[int], given: Sentence) -> tuple[int, ...]:
        """Ids given by a caller, checked against the vocabulary and the source."""
        if len(ids) > self.longest:
            raise DataError(f"{len(ids)} tokens are given: expected at most {self.longest}. Give fewer.")
        most = len(self.text.target) + self.text.own(given.text)
        for word in ids:
            if not 0 <= word < most:
                raise UsageError(f"Token {word}: the vocabulary has 0 to {most - 1}. Use ids from a trace.")
        return tuple(ids)

    def stream(
        self, sentences: Iterable[Sentence], search: Search, first: Search | None = None, n_best: int | None = None
    ) -> Iterator[Translation]:
        """tokens -> translations, in order, as soon as each is decoded; an empty sentence has an empty translation.

        The best translation is that of the search `first`, if given; `search` finds its alternatives. `n_best` is less
        than the search finds where a task needs more to know what it says of an answer (`informed`).
        """
        sentences = list(sentences)
        if any(sentence.windows for sentence in sentences):
            parts = (window for sentence in sentences for window in sentence.windows or (sentence,))
            answered = self.stream(parts, search, first, n_best)
            for sentence in sentences:
                yield max(islice(answered, len(sentence.windows) or 1), key=lambda found: found.score)
            return
        if first is not None and isinstance(search, Beam) and first not in (search, replace(search, n_best=1)):
            for listed, best in zip(self.stream(sentences, search), self.stream(sentences, first), strict=True):
                yield _led(listed, best, search)
            return
        spoken = [sentence for sentence in sentences if not sentence.empty]
        sources, prefixes = [sentence.ids for sentence in spoken], [sentence.prefix for sentence in spoken]
        found = self.engine.decode(sources, search, prefixes)
        probe = tuple(self.task.probe(self._labels)) if any(self.task.parts) else ()
        if probe:
            found = iter(list(found))  # an engine does one thing at a time
        probed = self._probed(spoken, probe) if probe else iter(())
        for number, sentence in enumerate(sentences, start=1):
            hypotheses = [] if sentence.empty else next(found)
            try:
                finished = self.finish(sentence, hypotheses)
            except FolderError as error:
                raise FolderError(f"Sentence {number:,}: {error}") from None
            if probe and not sentence.empty:
                finished = replace(finished, probabilities=next(probed))
            yield replace(finished, alternatives=finished.alternatives[: n_best - 1]) if n_best else finished

    def _probed(self, sentences: Iterable[Sentence], probe: tuple[int, ...]) -> Iterator[dict[str, float]]:
        """The probability of each token of a probe after those before it, the likeliest first."""
        for window in _windows((sentence, Sentence("", probe)) for sentence in sentences):
            found = self.engine.forced([sentence.ids for sentence, _ in window], [[*probe, EOS]] * len(window))
            for (sentence, _), hypothesis in zip(window, found, strict=True):
                one = self._finish(sentence, hypothesis)
                ranked = sorted(zip(one.tokens[:-1], one.token_scores, strict=False), key=lambda each: -each[1])
                yield {label: math.exp(score) for label, score in ranked}

    def score(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Translation]:
        """Scores and attention of given translations: forced decoding.

        Scored in order, a window of pairs at a time. An answer's `score` is its log-probability.
        """
        for window in _windows(self._pairs(pairs)):
            sources, targets = zip(*window, strict=True)
            found = self.engine.forced([s.ids for s in sources], [[*t.ids, EOS] for t in targets])
            for sentence, target, hypothesis in zip(sources, targets, found, strict=True):
                if np.isnan(hypothesis.score):  # -inf is the score of an impossible word
                    check_numbers([hypothesis])
                source_words = self.text.source_words(sentence.ids, self.text.source.unknown(sentence.text))
                ids = known(target.ids, len(self.text.target))
                words = self.text.target.words(ids, self.text.target.unknown(target.text))
                yield replace(
                    replace(self, replace_unknown=False)._finish(sentence, hypothesis),
                    text=target.text,
                    source_words=(NO_WORD, *words) if sentence.prompt else (*source_words, NO_WORD),
                    words=(*words, NO_WORD),
                )

    def _pairs(self, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[Sentence, Sentence]]:
        for number, (source, target) in enumerate(pairs, start=1):
            try:
                given = self.sentence(source)
                yield given, self.target_tokens(target, given)
            except DataError as error:
                raise DataError(f"Pair {number:,}: {error}") from None


def ensemble(translators: Sequence[Translator]) -> Translator:
    """One translator for several models, with the mean of their probabilities and the search of the first.

    All must have the same vocabularies. A single model is returned unchanged, with all its heads.
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
    copying = None if first.copying is None else MEAN  # of the members' attention
    return replace(first, engine=engine, offset=max(offsets), longest=longest, copying=copying)


def first_difference(expected: Text, given: Text) -> str:
    """The first thing in which two models' text differs, as a sentence; empty if they are equal."""
    if given.normalize != expected.normalize:
        return f"text is normalized as {given.normalize}, expected {expected.normalize}."
    if given.copies != expected.copies:
        return "one model copies from the source, and another does not."
    sides = {"source": (expected.source, given.source), "target": (expected.target, given.target)}
    for side, (one, other) in sides.items():
        if other == one:
            continue
        for i, (a, b) in enumerate(zip(one.symbols(), other.symbols(), strict=False)):
            if a != b:
                return f"{side} token {i} is {b!r}, expected {a!r}."
        if len(other) != len(one):
            return f"the {side} has {len(other):,} tokens, expected {len(one):,}."
        return f"the {side} text is split into tokens in another way."
    return ""


def _led(found: Translation, best: Translation, search: Beam) -> Translation:
    """An n-best list with `best` moved or added to its beginning; its score is as those of the list."""
    listed = [replace(each, alternatives=()) for each in (found, *found.alternatives)]
    score = beam_score(search, sum(best.token_scores), len(best.tokens), best.heads)
    first = next((each for each in listed if each.tokens == best.tokens), replace(best, score=score))
    others = [each for each in listed if each.tokens != best.tokens]
    return replace(first, alternatives=tuple(others[: search.n_best - 1]))


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
    """The sentences, checked to be strings."""
    if not isinstance(given, Iterable) or isinstance(given, bytes):
        raise UsageError(f"translate was given {_named(given)}. Give a string, or a list of strings.")
    sentences = list(given)
    for number, sentence in enumerate(sentences, start=1):
        if not isinstance(sentence, str):
            raise UsageError(f"Sentence {number} of {len(sentences):,} is {_named(sentence)}, expected a string.")
    return sentences


def _named(value: object) -> str:
    return "None" if value is None else f"something of type {type(value).__name__}"
