"""Every step of a search: attention, candidates, and what became of each continuation.

Axes: L attention layers, N heads, S source tokens (EOS included).

    step t      branches        the beginnings that are open: one for greedy search, up to K in a beam, one for a sample
                continuations   what the search considered, best first, and the fate of each:
                                kept       the branch of the next step at the same place among those kept
                                finished   ended here, and is a hypothesis
                                cut        kept as a hypothesis although the length limit cut it short
                                pruned     given up; a branch all of whose continuations are pruned ends here

Energies are what attention weighs: the score of each source position, before window, mask and normalizer, so they are
defined where the weight is zero too (outside the window of a local attention, say). Coverage is part of them, and for
monotonic attention so is r: sigmoid(energy) is the probability to stop there. Where a score does not reach they are
-inf (`location` beyond its length, words before the window of a language model). An ensemble's attention is a mean of
others' and has none; nor has one without a score: a tag's to its word, and self-attention.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regarde.errors import counted, short
from regarde.search.hypothesis import Hypothesis
from regarde.search.interventions import Intervention

Fate = Literal["kept", "finished", "pruned", "cut"]
Weights = NDArray[np.float32]


@dataclass(frozen=True)
class Candidate:
    """A word that might come next."""

    id: int
    log_probability: float


@dataclass(frozen=True, eq=False)
class Branch:
    """An open hypothesis before the step."""

    parent: int | None  # its place among the branches of the step before
    id: int  # the word said last; BOS at the first step
    score: float  # log-probability so far
    energies: Weights | None  # (L, N, S)
    weights: Weights  # (L, N, S)
    context_norms: Weights | None  # (L,) Euclidean, of what attention brought back
    candidates: tuple[Candidate, ...]  # the likeliest words, best first, of those that may be said
    p_gen: float | None = None  # probability that the next word is one of the vocabulary, and not copied

    def __repr__(self) -> str:
        return f"<Branch {self.id}, score {self.score:.4f}, {counted(len(self.candidates), 'candidate')}>"


@dataclass(frozen=True)
class Continuation:
    """A branch and the word that follows it."""

    branch: int
    id: int
    log_probability: float  # of the word
    score: float  # log-probability of everything up to it
    fate: Fate


@dataclass(frozen=True, eq=False)
class SearchStep:
    branches: tuple[Branch, ...]
    continuations: tuple[Continuation, ...]

    def __repr__(self) -> str:
        return f"<Step, {len(self.branches):,} open, {counted(len(self.continuations), 'continuation')}>"


@dataclass(frozen=True, eq=False)
class Trace:
    """A search from its first step to its last, and what it found."""

    source: str
    source_tokens: tuple[str, ...]  # S
    source_words: tuple[int, ...]  # S word of each token, -1 for none
    search: Mapping[str, Any]  # its settings
    offset: int  # weights of step t explain the word said at step t - offset
    states: Weights | None  # (S, D) the encoder's, which attention looks at; none of an ensemble
    steps: tuple[SearchStep, ...]
    hypotheses: tuple[Hypothesis, ...]  # best first
    texts: tuple[str, ...]  # of each hypothesis
    words: tuple[tuple[int, ...], ...]  # of each hypothesis: the word of each token, -1 for none
    tokens: Mapping[int, str]  # every id in here, as text
    copied: tuple[tuple[int | None, ...] | None, ...] = ()  # of each hypothesis: where tokens were copied from
    interventions: tuple[Intervention, ...] = ()  # in what attention looks at
    looks_back: bool = False  # weights are over BOS and the words of a branch; source tokens are those of the best

    def __repr__(self) -> str:
        best = f" -> {short(self.texts[0])}" if self.texts else ""
        found = f"{counted(len(self.steps), 'step')}, {len(self.hypotheses):,} found"
        return f"<Trace {short(self.source)}{best}, {self.search['kind']}, {found}>"

    def path(self, hypothesis: Hypothesis) -> list[int]:
        """The branch that each word of a hypothesis was said from, step by step."""
        beginnings: list[tuple[int, ...]] = [()]
        path = []
        for t, step in enumerate(self.steps[: len(hypothesis.ids)]):
            if t:
                beginnings = [(*beginnings[b.parent or 0], b.id) for b in step.branches]
            path.append(beginnings.index(hypothesis.ids[:t]))
        return path

    def as_json(self) -> dict[str, Any]:
        """The trace as JSON knows it: lists and numbers, null where a number is not finite or there is none."""
        return {
            "source": self.source,
            "source_tokens": list(self.source_tokens),
            "source_words": list(self.source_words),
            "search": dict(self.search),
            "interventions": [each.as_json() for each in self.interventions],
            "offset": self.offset,
            "looks_back": self.looks_back,
            "states": _lists(self.states, 4),
            "steps": [
                {
                    "branches": [self._branch(branch) for branch in step.branches],
                    "continuations": [self._continuation(each) for each in step.continuations],
                }
                for step in self.steps
            ],
            "hypotheses": [
                self._hypothesis(hypothesis, text, words) | ({} if places is None else {"copied": list(places)})
                for hypothesis, text, words, places in zip(
                    self.hypotheses, self.texts, self.words, self.copied or [None] * len(self.texts), strict=True
                )
            ],
        }

    def _branch(self, branch: Branch) -> dict[str, Any]:
        return {
            "parent": branch.parent,
            "id": branch.id,
            "token": self.tokens[branch.id],
            "score": _number(branch.score),
            "energies": _lists(branch.energies),
            "weights": _lists(branch.weights),
            "context_norms": _lists(branch.context_norms),
            **({} if branch.p_gen is None else {"p_gen": _number(branch.p_gen)}),
            "candidates": [
                {"id": c.id, "token": self.tokens[c.id], "log_probability": _number(c.log_probability)}
                for c in branch.candidates
            ],
        }

    def _continuation(self, each: Continuation) -> dict[str, Any]:
        return {
            "branch": each.branch,
            "id": each.id,
            "token": self.tokens[each.id],
            "log_probability": _number(each.log_probability),
            "score": _number(each.score),
            "fate": each.fate,
        }

    def _hypothesis(self, hypothesis: Hypothesis, text: str, words: tuple[int, ...]) -> dict[str, Any]:
        return {
            "text": text,
            "ids": list(hypothesis.ids),
            "tokens": [self.tokens[i] for i in hypothesis.ids],
            "words": list(words),
            "token_scores": _lists(hypothesis.token_scores),
            "score": _number(hypothesis.score),
            "finished": hypothesis.finished,
            "path": self.path(hypothesis),
        }


def ids_in(steps: tuple[SearchStep, ...]) -> set[int]:
    """Every token in a trace."""
    branches = [branch for step in steps for branch in step.branches]
    found = {branch.id for branch in branches} | {each.id for step in steps for each in step.continuations}
    return found | {candidate.id for branch in branches for candidate in branch.candidates}


def side_by_side(walks: list[tuple[SearchStep, ...]]) -> tuple[SearchStep, ...]:
    """Several walks of one branch each as one search: those that have ended leave, the others move up."""
    steps = []
    for t in range(max(len(walk) for walk in walks)):
        walking = [walk[t] for walk in walks if t < len(walk)]
        before = [walk for walk in walks if t and t <= len(walk)]  # those there were at the step before
        parents = [place for place, walk in enumerate(before) if t < len(walk)]
        branches, continuations = [], []
        for place, step in enumerate(walking):
            (branch,) = step.branches
            branches.append(replace(branch, parent=parents[place] if t else None))
            continuations += [replace(each, branch=place) for each in step.continuations]
        steps.append(SearchStep(tuple(branches), tuple(continuations)))
    return tuple(steps)


def _number(value: float, digits: int = 6) -> float | None:
    return round(value, digits) if math.isfinite(value) else None


def _lists(values: Weights | None, digits: int = 6) -> Any:
    """Nested lists of numbers."""
    if values is None:
        return None
    if values.ndim == 1:
        return [_number(value, digits) for value in values.tolist()]
    return [_lists(part, digits) for part in values]
