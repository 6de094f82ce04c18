"""Finds problems of a model in the results of an inspection, each with a remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from regarde.evaluation.inspect import Inspection

MANY = 0.2  # of answers, or of unknown words
UNIFORM = 0.9  # mean entropy above which attention counts as uniform
DRIFT = 0.02  # share of unknown tokens above which text counts as unlike the training data
SHOWN = 5  # words in a finding


@dataclass(frozen=True)
class Diagnosis:
    """A problem, and what to do about it."""

    name: str  # for programs
    seen: str
    remedy: str


def diagnose(found: Inspection) -> list[Diagnosis]:
    """All problems, the worst first."""
    return [*_answers(found), *_words(found), *_attention(found)]


def _answers(found: Inspection) -> Iterator[Diagnosis]:
    counts = found.counts
    if counts.all_unknown > MANY * counts.answers:
        seen = f"{counts.all_unknown:,} of {counts.answers:,} answers consist of unknown tokens only"
        remedy = "Train on subwords (text.target.kind = sentencepiece) or characters, or with a larger vocabulary."
        yield Diagnosis("all_unknown", seen, remedy)
    elif counts.tokens and counts.unknown > DRIFT * counts.tokens:
        seen = f"{counts.unknown / counts.tokens:.1%} of the tokens it writes are unknown"
        yield Diagnosis("unknown_answers", seen, "Use translate --replace-unknown, or train on subwords.")
    if counts.empty > MANY * counts.answers:
        seen = f"{counts.empty:,} of {counts.answers:,} answers are empty"
        yield Diagnosis("empty", seen, "Train longer, or set a minimal length: translate --min-length.")
    if counts.looping > MANY * counts.answers:
        seen = f"{counts.looping:,} of {counts.answers:,} answers repeat themselves"
        remedy = "Train longer; try coverage attention (model.attention.kind) or a beam with search.beta."
        yield Diagnosis("loops", seen, remedy)
    if counts.unfinished > MANY * counts.answers:
        seen = f"{counts.unfinished:,} of {counts.answers:,} answers were ended by the length limit"
        yield Diagnosis("unfinished", seen, "Train longer, or raise search.rules.max_ratio.")


def _words(found: Inspection) -> Iterator[Diagnosis]:
    source = found.source
    words = source.words.total()
    if source.recased.total() > MANY * words:
        seen = f"{source.recased.total():,} of {words:,} unknown source words are known in another case"
        remedy = "Use the case of the training data, or train on text in both cases"
        yield Diagnosis("case", seen, f"{remedy}: {_shown(source.recased)}.")
    if source.normalized.total() > MANY * words:
        seen = f"{source.normalized.total():,} of {words:,} unknown source words are known in NFKC"
        remedy = "Normalize the text before translating, or train with text.normalize = NFKC"
        yield Diagnosis("normalization", seen, f"{remedy}: {_shown(source.normalized)}.")
    if source.rate > DRIFT:
        seen = f"{source.rate:.1%} of the source tokens are unknown: this text is unlike the training data"
        remedy = "Train on text like this, or on subwords with text.source.byte_fallback"
        yield Diagnosis("drift", seen, f"{remedy}: {_shown(source.words)}.")


def _attention(found: Inspection) -> Iterator[Diagnosis]:
    habits = found.habits
    if habits is None:
        return
    if float(habits.entropy.mean()) > UNIFORM:
        seen = f"attention is nearly uniform: its entropy is {habits.entropy.mean():.0%} of the maximum"
        yield Diagnosis(
            "uniform", seen, "Train longer, at a higher rate, or on given links: training.guided_alignment."
        )
    elif habits.dead and not found.one_row:
        layers, heads = habits.change.shape
        named = ", ".join(f"{layer}.{head}" for layer, head in habits.dead[:SHOWN])
        count = f"{len(habits.dead)} of {layers * heads} heads"
        seen = f"{count} attend to the same tokens for every word (layer.head): {named}"
        yield Diagnosis("dead_heads", seen, "They have no effect. Use fewer heads or layers.")
    if float(np.mean(habits.end)) > 0.5:
        seen = f"{float(np.mean(habits.end)):.0%} of all attention is on the end of the source"
        yield Diagnosis("end", seen, "Train longer, or exclude it from attention: model.attention.attend_eos = false.")


def _shown(words: Counter[str]) -> str:
    return ", ".join(word for word, _ in words.most_common(SHOWN))
