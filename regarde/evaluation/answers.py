"""The answers of a model to a test set: its translations, and the scores of the references by forced decoding.

Texts are compared in NFC, whatever the model's own normalization, so that all models have the same references.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from regarde.errors import DataError
from regarde.evaluation.labels import decisions_of
from regarde.evaluation.likelihood import likelihoods
from regarde.evaluation.metrics import Rows
from regarde.evaluation.supporting import supported
from regarde.evaluation.testset import TestSet
from regarde.scribe import Sentence
from regarde.search import Search
from regarde.text import CONTROLS, UNK
from regarde.text.extended import known
from regarde.text.sides import normalized
from regarde.translate import Translator
from regarde.translation import Translation


@dataclass(frozen=True, eq=False)
class Answers:
    """One model's answers to a test set, in its order."""

    texts: tuple[str, ...]
    unfinished: int  # ended by the length limit
    unknown: NDArray[np.bool_]  # whether the source or the first reference has an unknown token
    with_unknown: int  # answers with an unknown token in them
    forced: Rows | None  # (pairs, 3) negative log-probability, tokens and characters of the first reference, if scored
    unseen: Counter[str] = field(default_factory=Counter)  # labels and tags of references, never seen in training
    decisions: tuple[Sequence[tuple[float, bool]], ...] = ()  # of labels: how sure each is, and whether it is right
    absent: int = 0  # first references that are not in their source, of a model that points
    supported: tuple[bool | None, ...] = ()  # whether attention was most on a sentence that supports it


def answers(
    translator: Translator, testset: TestSet, search: Search, *, generate: bool = True, perplexity: bool = True
) -> Answers:
    """Answer the sources if the answers are compared (`generate`), then score the references if their likelihood is."""
    sources = list(source_sentences(translator, testset))
    found = collected(translator, testset, sources, translator.stream(sources, search) if generate else ())
    if not perplexity:
        return found
    if translator.task.context:
        return replace(found, forced=likelihoods(translator, testset.first_references))
    scored = translator.score(zip(testset.sources, testset.first_references, strict=True))
    return replace(found, forced=np.array([forced_score(one) for one in scored]))


def source_sentences(translator: Translator, testset: TestSet) -> Iterator[Sentence]:
    """The tokens of each source; an error names the pair."""
    return _tokens(translator.tokens, testset.sources)


def collected(
    translator: Translator, testset: TestSet, sources: Sequence[Sentence], translations: Iterable[Translation]
) -> Answers:
    """The answers, without the references' scores."""
    nothing = Sentence("", ())  # whether a token is known does not depend on what is copied
    given = iter(sources if translator.text.target.points else [nothing] * len(testset))
    targets = list(_tokens(lambda text: translator.target_tokens(text, next(given)), testset.first_references))
    texts: list[str] = []
    unfinished = with_unknown = 0
    decisions: list[Sequence[tuple[float, bool]]] = []
    support: list[bool | None] = []
    gold = testset.supporting or [()] * len(testset)
    for found, accepted, sentences in zip(translations, testset.normalized_references, gold, strict=False):
        support.append(supported(found, sentences))
        if translator.task.calibrates:
            decisions.append(decisions_of(found, accepted, several=translator.task.several))
        texts.append(normalized(found.text, "NFC"))
        unfinished += not found.finished
        with_unknown += CONTROLS[UNK] in found.tokens
    target, size = translator.text.target, len(translator.text.source)
    unknown = [UNK in (*known(one.ids, size), *other.ids) for one, other in zip(sources, targets, strict=True)]
    closed = (target.unknown(one.text) for one in targets if UNK in one.ids) if target.closed else ()
    unseen = Counter(label for labels in closed for label in labels)
    right = tuple(support) if any(one is not None for one in support) else ()
    absent = sum(UNK in one.ids for one in targets) if target.points else 0
    return Answers(
        tuple(texts), unfinished, np.array(unknown), with_unknown, None, unseen, tuple(decisions), absent, right
    )


def forced_score(found: Translation) -> list[float]:
    """The negative log-probability of a reference, and its numbers of tokens and of characters, with its end."""
    return [-found.score, float(len(found.tokens)), len(found.text) + 1.0]


def _tokens(cut: Callable[[str], Sentence], texts: Sequence[str]) -> Iterator[Sentence]:
    for number, text in enumerate(texts, start=1):
        try:
            yield cut(text)
        except DataError as error:
            raise DataError(f"Pair {number:,}: {error}") from None
