"""What a model says of a test set: its translations, and by forced decoding what it thinks of the references.

Texts are compared in NFC, whatever the model's own normalisation: what looks the same is the same, and every model is
measured against the same references.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regarde.errors import DataError
from regarde.evaluation.metrics import Counts, Metric, Rows
from regarde.evaluation.testset import TestSet
from regarde.scribe import Sentence
from regarde.search import Search
from regarde.text import UNK, normalisation
from regarde.translate import Translator

PERPLEXITY = Metric("perplexity", "perplexity", False, digits=3)


@dataclass(frozen=True, eq=False)
class Answers:
    """One model's answers to a test set, in its order."""

    texts: tuple[str, ...]
    unfinished: int  # cut short by the length limit
    unknown: NDArray[np.bool_]  # is there a token the model does not know, in the source or the first reference?
    unknown_said: int  # answers with an unknown token in them
    forced: Rows | None  # (pairs, 2) minus log-probability and tokens of the first reference; None where not asked for

    def perplexity(self) -> Counts:
        """Of the first reference, per token of the model's own, the end of the sentence included."""
        assert self.forced is not None
        return Counts(self.forced, _perplexity)


def answers(translator: Translator, testset: TestSet, search: Search, *, perplexity: bool = True) -> Answers:
    """Translate the sources, then score the references."""
    first = [references[0] for references in testset.references]
    sources = list(_tokens(translator.tokens, testset.sources))
    targets = list(_tokens(translator.target_tokens, first))
    texts: list[str] = []
    unfinished = unknown_said = 0
    for found in translator.stream(sources, search):
        texts.append(normalised(found.text))
        unfinished += not found.finished
        unknown_said += "<unk>" in found.tokens
    pairs = zip(testset.sources, first, strict=True)
    forced = [[-found.score, len(found.tokens)] for found in translator.score(pairs)] if perplexity else None
    unknown = [UNK in source.ids or UNK in target.ids for source, target in zip(sources, targets, strict=True)]
    return Answers(
        texts=tuple(texts),
        unfinished=unfinished,
        unknown=np.array(unknown),
        unknown_said=unknown_said,
        forced=None if forced is None else np.array(forced),
    )


def normalised(text: str) -> str:
    return normalisation.normalised(text, "NFC")


def _tokens(cut: Callable[[str], Sentence], texts: Sequence[str]) -> Iterator[Sentence]:
    for number, text in enumerate(texts, start=1):
        try:
            yield cut(text)
        except DataError as error:
            raise DataError(f"Pair {number:,}: {error}") from None


def _perplexity(sums: Rows) -> float:
    with np.errstate(over="ignore"):
        return float(np.exp(sums[0] / sums[1]))
