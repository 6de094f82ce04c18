"""Beam search in torch: the K best beginnings of each sentence, side by side, their attention with them.

Axes: n sentences still searched, K beam, V vocabulary, t steps so far; a row is one beam of one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regarde.errors import ConfigError
from regarde.models.interface import Encoding, Model, State
from regarde.search.hypothesis import Hypothesis
from regarde.search.ranking import beam_score, length_penalty, log_probabilities
from regarde.search.recording import OpenHypothesis, StepObserver
from regarde.search.settings import NO_PREFIX, Beam, Greedy, Prefix, Sampling
from regarde.search.trace import Continuation, Fate
from regarde.search.walk import Floats, greedily, histories, sampled, steps_ahead
from regarde.text.tokenizers import BOS, EOS, PAD

DEAD = float("-inf")
History = tuple[Floats, Floats | None]  # attention and p_gen of a row


@dataclass(frozen=True)
class Expansion:
    """A row, and the word that might follow it."""

    row: int
    word: int
    score: float  # of all words
    own: float  # of the word


@dataclass(frozen=True)
class Opened:
    """The words of a row so far."""

    ids: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()

    def then(self, c: Expansion) -> Opened:
        return Opened((*self.ids, c.word), (*self.scores, c.own))


@dataclass(frozen=True)
class BeamStep:
    """A step of all beams, on the device."""

    known: (
        Tensor  # (4, n, 2K) the best continuations of each sentence, best first: row, word, score of all, of the word
    )
    scores: Tensor  # (n * K, V)
    state: State  # after it, each row as it was before it


class BeamSearch:
    """One search by its settings.

    What becomes of a sentence is decided from the numbers of each step. On a device that is no CPU, several steps are
    computed before their numbers are read: whatever is decided, the K best open continuations are those that go on.
    """

    def __init__(self, settings: Beam) -> None:
        self.settings = settings
        self.size, self.n_best, self.rules = settings.size, settings.n_best, settings.rules
        self.beta, self.prune = settings.beta, settings.prune

    @torch.no_grad()
    def __call__(
        self, model: Model, encoding: Encoding, prefixes: Sequence[Prefix] | None, observer: StepObserver | None
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each sentence, none where its numbers overflow; only one sentence alone is watched."""
        decoder = model.decoder
        lengths = encoding.source.lengths.tolist()
        openings = prefixes or [NO_PREFIX] * len(lengths)
        limits = [self.rules.limit(n, prefix) for n, prefix in zip(lengths, openings, strict=True)]
        state = decoder.start(encoding).repeat(self.size)
        if self.beta and not state.past.shape[1]:
            given = f"search.beta = {self.beta:g}: the coverage penalty reads attention, and this model has none"
            raise ConfigError(f"{given}. Set search.beta to 0.")
        memory = decoder.remember(encoding).repeat(self.size)
        numbers = list(range(len(lengths)))  # the sentences still searched, K rows each
        found: list[list[Hypothesis]] = [[] for _ in numbers]
        opened = [Opened()] * (len(numbers) * self.size)
        previous = encoding.source.lengths.new_full((len(opened),), BOS)
        so_far = torch.full((len(opened),), DEAD, device=previous.device)
        so_far[:: self.size] = 0.0  # all beams start equal, so only one may expand
        open_rows = [OpenHypothesis(None, BOS, 0.0)]
        begun = 0  # steps
        while numbers:
            ahead = steps_ahead(previous.device, max(limits[number] for number in numbers) - begun)
            ahead = 1 if observer or self.prune else ahead  # pruning decides which beams go on
            own = [openings[number] for number in numbers for _ in range(self.size)]
            taken: list[BeamStep] = []
            for step in range(begun, begun + ahead):
                if taken:
                    rows, previous, so_far = self._going(taken[-1])
                    state = state.select(rows)
                logits, state = decoder.step(previous, state, memory)
                scores = log_probabilities(self.rules, logits, step, own)  # (n * K, V)
                taken.append(BeamStep(self._ranked(scores, so_far), scores, state))
            known = torch.stack([one.known for one in taken]).cpu().numpy()  # (steps, 4, n, 2K)
            ranked = [[self._expansions(known[i, :, place]) for place in range(len(numbers))] for i in range(ahead)]
            lost = np.isnan(known[:, 2]).any(axis=-1)  # (steps, n)
            heads = self._heads(taken, ranked, [limits[number] - begun for number in numbers])
            going = {
                place: [Expansion(-1, PAD, DEAD, DEAD)] for place in range(len(numbers))
            }  # of sentences that go on
            for i, step in enumerate(range(begun + 1, begun + ahead + 1)):
                after = list(opened)
                for place in list(going):
                    number = numbers[place]
                    if lost[i, place]:
                        found[number] = []
                        del going[place]
                        continue
                    width = decoder.width(lengths[number], step)
                    last = self.settings.cut and step == limits[number]
                    ended = [c for c in ranked[i][place][: self.size] if last or c.word == EOS]
                    open_ = [] if last else [c for c in ranked[i][place] if c.word != EOS][: self.size]
                    found[number] += [self._hypothesis(c, opened, heads[i, c.row], width) for c in ended]
                    if self.prune:
                        least = self._nearest(found[number])
                        new = found[number][len(found[number]) - len(ended) :]
                        ended = [c for c, one in zip(ended, new, strict=True) if one.score >= least]
                        found[number] = [one for one in found[number] if one.score >= least]
                        penalty = length_penalty(self.settings, limits[number])
                        open_ = [c for c in open_ if c.score / penalty >= least]
                    found[number] = self._best(found[number])
                    on = step < limits[number] and bool(open_) and self._unsettled(found[number], open_[0], step)
                    cut = not on and len(found[number]) < self.n_best
                    if observer:
                        on_going: Fate = "kept" if on else "cut"
                        ways = _continuations(ranked[i][place], ended, open_ if on or cut else [], on_going)
                        observer.step(open_rows, taken[i].scores, taken[i].state, ways)
                        open_rows = [OpenHypothesis(c.row, c.word, c.score) for c in open_]
                    if on:  # a small vocabulary may leave fewer than K open beams: the rest hold nothing
                        nothing = Expansion(open_[0].row, PAD, DEAD, DEAD)
                        going[place] = open_ + [nothing] * (self.size - len(open_))
                        after[place * self.size : (place + 1) * self.size] = [
                            opened[c.row].then(c) for c in going[place]
                        ]
                        continue
                    del going[place]
                    if cut:  # what the limit cut short fills the places that are left
                        found[number] += [self._hypothesis(c, opened, heads[i, c.row], width) for c in open_]
                        least = self._nearest(found[number])
                        found[number] = [one for one in found[number] if one.score >= least]
                opened = after
            begun += ahead
            numbers = [numbers[place] for place in going]
            opened = [opened[place * self.size + k] for place in going for k in range(self.size)]
            chosen = [c for place in going for c in going[place]]
            if chosen:
                rows = torch.tensor([c.row for c in chosen], device=previous.device)
                previous = torch.tensor([c.word for c in chosen], device=previous.device)
                so_far = torch.tensor([c.score for c in chosen], device=previous.device)
                state = state.select(rows)
                if len(rows) < len(scores):  # the beams of one sentence remember the same source
                    memory = memory.select(rows)
        behind = not self.settings.cut
        kept = (sorted(group, key=lambda h: (behind and not h.finished, -h.score))[: self.n_best] for group in found)
        return [sorted(group, key=lambda h: -h.score) for group in kept]

    def _ranked(self, scores: Tensor, so_far: Tensor) -> Tensor:
        """The 2K best continuations of each sentence; NaN where its numbers overflow.  -> (4, n, 2K)"""
        of_words = scores.view(-1, self.size, scores.shape[1])  # (n, K, V)
        before = so_far.view(-1, self.size, 1)
        lost = of_words.amax(dim=(1, 2)).isnan().unsqueeze(1)
        if self.prune:
            likeliest = of_words.masked_fill(before == DEAD, DEAD).amax(dim=(1, 2), keepdim=True)
            of_words = of_words.masked_fill(of_words < likeliest - self.prune, DEAD)
        total = (before + of_words).flatten(1)  # (n, K * V)
        best, at = total.topk(min(2 * self.size, total.shape[1]))
        firsts = torch.arange(0, len(scores), self.size, device=scores.device).unsqueeze(1)
        rows, words = firsts + at // scores.shape[1], at % scores.shape[1]
        known = (rows.double(), words.double(), best.double(), scores[rows, words].double())
        return torch.stack(known).masked_fill(lost, torch.nan)

    def _going(self, step: BeamStep) -> tuple[Tensor, Tensor, Tensor]:
        """Rows, words and scores of the K best open continuations of each sentence.  -> (n * K,) each"""
        rows, words, scores, _ = step.known  # (n, 2K)
        open_ = (words != EOS) & (scores > DEAD)
        first = (~open_).byte().argsort(dim=1, stable=True)[:, : self.size]  # (n, K)
        alive = open_.gather(1, first)
        own = torch.arange(0, len(step.scores), self.size, device=rows.device).unsqueeze(1)
        return (
            torch.where(alive, rows.gather(1, first), own).long().flatten(),
            torch.where(alive, words.gather(1, first), PAD).long().flatten(),
            torch.where(alive, scores.gather(1, first), DEAD).float().flatten(),
        )

    def _expansions(self, known: NDArray[np.float64]) -> list[Expansion]:
        """The continuations of a sentence that are possible.  (4, 2K)"""
        return [
            Expansion(int(row), int(word), score, own) for row, word, score, own in known.T.tolist() if score > DEAD
        ]

    def _heads(
        self, taken: list[BeamStep], ranked: list[list[list[Expansion]]], left: list[int]
    ) -> dict[tuple[int, int], History]:
        """Attention and p_gen of each row from which a hypothesis may come, by step and row."""
        found: dict[tuple[int, int], History] = {}
        for i, step in enumerate(taken):
            rows = sorted(
                {
                    c.row
                    for of_sentence, steps in zip(ranked[i], left, strict=True)
                    for place, c in enumerate(of_sentence)
                    if (c.word == EOS and place < self.size) or (c.word != EOS and steps == i + 1)
                }
            )
            read = zip(*histories(step.state, rows), strict=True)
            found |= {(i, row): history for row, history in zip(rows, read, strict=True)}
        return found

    def _best(self, found: list[Hypothesis]) -> list[Hypothesis]:
        """All hypotheses of a search that ends early, otherwise the K best."""
        return found if self.settings.early else sorted(found, key=lambda h: -h.score)[: self.size]

    def _unsettled(self, found: list[Hypothesis], ahead: Expansion, step: int) -> bool:
        """Whether a sentence goes on: too few are finished, or the best open one would be among the best."""
        if len(found) < self.size:
            return True
        return not self.settings.early and ahead.score / length_penalty(self.settings, step) > found[-1].score

    def _nearest(self, found: list[Hypothesis]) -> float:
        """The score below which a hypothesis is given up."""
        best = max((hypothesis.score for hypothesis in found if hypothesis.finished), default=DEAD)
        return best - self.prune if self.prune else DEAD

    def _hypothesis(self, candidate: Expansion, opened: list[Opened], history: History, width: int) -> Hypothesis:
        words, (heads, p_gen) = opened[candidate.row].then(candidate), history
        heads = heads[..., :width].copy()
        return Hypothesis(
            ids=words.ids,
            token_scores=np.asarray(words.scores, dtype=np.float32),
            score=beam_score(self.settings, candidate.score, len(words.ids), heads),
            heads=heads,
            finished=candidate.word == EOS,
            p_gen=None if p_gen is None else p_gen.copy(),
        )


def _continuations(
    ranked: list[Expansion], ended: list[Expansion], open_: list[Expansion], of_open: Fate
) -> list[Continuation]:
    """Each continuation, and what becomes of it."""

    def fate(c: Expansion) -> Fate:
        if c in ended:
            return "finished" if c.word == EOS else "cut"
        return of_open if c in open_ else "pruned"

    return [Continuation(c.row, c.word, c.own, c.score, fate(c)) for c in ranked]


SEARCHES: dict[type[Any], Callable[..., list[list[Hypothesis]]]] = {
    Greedy: greedily,
    Sampling: sampled,
    Beam: lambda search, *given: BeamSearch(search)(*given),
}
