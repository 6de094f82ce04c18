"""The answers of a model to a test set: its translations, and the scores of the references by forced decoding.

Texts are compared in NFC, whatever the model's own normalization, so that all models have the same references.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from regarde.errors import DataError
from regarde.evaluation.metrics import MetricCounts, Rows
from regarde.evaluation.testset import TestSet
from regarde.scribe import Sentence
from regarde.search import Search
from regarde.text import CONTROLS, UNK
from regarde.text.sides import normalized
from regarde.translate import Translator
from regarde.translation import Translation


@dataclass(frozen=True, eq=False)
class Answers:
    """One model's answers to a test set, in its order."""

    texts: tuple[str, ...]
    unfinished: int  # ended by the length limit
    unknown: NDArray[np.bool_]  # whether the source or the first reference has an unknown token
    unknown_said: int  # answers with an unknown token in them
    forced: Rows | None  # (pairs, 2) negative log-probability and tokens of the first reference, if computed

    def perplexity(self) -> MetricCounts:
        """Of the first reference, per token of the model, EOS included."""
        assert self.forced is not None
        return MetricCounts(self.forced, _perplexity)


def answers(translator: Translator, testset: TestSet, search: Search, *, perplexity: bool = True) -> Answers:
    """Translate the sources, then score the references."""
    sources = list(source_sentences(translator, testset))
    found = collected(translator, testset, sources, translator.stream(sources, search))
    if not perplexity:
        return found
    scored = translator.score(zip(testset.sources, testset.first_references, strict=True))
    return replace(found, forced=np.array([forced_score(one) for one in scored]))


def source_sentences(translator: Translator, testset: TestSet) -> Iterator[Sentence]:
    """The tokens of each source; an error names the pair."""
    return _tokens(translator.tokens, testset.sources)


def collected(
    translator: Translator, testset: TestSet, sources: Sequence[Sentence], translations: Iterable[Translation]
) -> Answers:
    """The answers, without the references' scores."""
    targets = list(_tokens(translator.target_tokens, testset.first_references))
    texts: list[str] = []
    unfinished = unknown_said = 0
    for found in translations:
        texts.append(normalized(found.text, "NFC"))
        unfinished += not found.finished
        unknown_said += CONTROLS[UNK] in found.tokens
    unknown = [UNK in source.ids or UNK in target.ids for source, target in zip(sources, targets, strict=True)]
    return Answers(tuple(texts), unfinished, np.array(unknown), unknown_said, forced=None)


def forced_score(found: Translation) -> list[float]:
    """The negative log-probability of a reference, and its number of tokens."""
    return [-found.score, float(len(found.tokens))]


def _tokens(cut: Callable[[str], Sentence], texts: Sequence[str]) -> Iterator[Sentence]:
    for number, text in enumerate(texts, start=1):
        try:
            yield cut(text)
        except DataError as error:
            raise DataError(f"Pair {number:,}: {error}") from None


def _perplexity(sums: Rows) -> float:
    with np.errstate(over="ignore"):
        return float(np.exp(sums[0] / sums[1]))
