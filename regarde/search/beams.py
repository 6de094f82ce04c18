"""Beam search in torch: the K best beginnings of each sentence, side by side, their attention with them.

Axes: n sentences still searched, K beam, V vocabulary, t steps so far; a row is one beam of one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regarde.data.batch import Batched
from regarde.errors import ConfigError
from regarde.models.interface import Encoding, Model, State
from regarde.search.hypothesis import Hypothesis
from regarde.search.ranking import beam_score, length_penalty, log_probabilities
from regarde.search.recording import OpenHypothesis, StepObserver
from regarde.search.settings import NO_PREFIX, Beam, Greedy, Prefix, Sampling
from regarde.search.trace import Continuation, Fate
from regarde.search.walk import gates, greedily, sampled
from regarde.text.tokenizers import BOS, EOS, PAD

DEAD = float("-inf")


@dataclass(frozen=True, eq=False)
class Beams(Batched):
    """What is known of each row, apart from the decoder's state."""

    words: Tensor  # (n * K, t)
    token_scores: Tensor  # (n * K, t)
    scores: Tensor  # (n * K,) log-probability so far; -inf for a beam that holds nothing


@dataclass(frozen=True)
class Expansion:
    """A row, and the word that might follow it."""

    row: int
    word: int
    score: float


class BeamSearch:
    """One search by its settings."""

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
        beams = self._begin(encoding)
        numbers = list(range(len(lengths)))  # the sentences still searched, K rows each
        found: list[list[Hypothesis]] = [[] for _ in numbers]
        previous = beams.words.new_full((len(beams.words),), BOS)
        open_rows = [OpenHypothesis(None, BOS, 0.0)]
        step = 0
        while numbers:
            logits, state = decoder.step(previous, state, memory)
            own = [openings[number] for number in numbers for _ in range(self.size)]
            scores = log_probabilities(self.rules, logits, step, own)  # (n * K, V)
            step += 1
            going: list[Expansion] = []
            staying = []
            lost = scores.view(len(numbers), -1).amax(dim=-1).isnan().tolist()
            for place, number in enumerate(numbers):
                if lost[place]:
                    found[number] = []
                    continue
                ranked = self._rank(scores, beams.scores, place)
                last = self.settings.cut and step == limits[number]
                ended = [c for c in ranked[: self.size] if last or c.word == EOS]
                open_ = [] if last else [c for c in ranked if c.word != EOS][: self.size]
                width = decoder.width(lengths[number], step)
                found[number] += [self._hypothesis(c, beams, scores, state, width) for c in ended]
                if self.prune:
                    least = self._nearest(found[number])
                    new = found[number][len(found[number]) - len(ended) :]
                    ended = [c for c, hypothesis in zip(ended, new, strict=True) if hypothesis.score >= least]
                    found[number] = [hypothesis for hypothesis in found[number] if hypothesis.score >= least]
                    penalty = length_penalty(self.settings, limits[number])
                    open_ = [c for c in open_ if c.score / penalty >= least]
                found[number] = self._best(found[number])
                on = step < limits[number] and bool(open_) and self._unsettled(found[number], open_[0], step)
                cut = not on and len(found[number]) < self.n_best
                if observer:
                    on_going: Fate = "kept" if on else "cut"
                    ways = _continuations(ranked, scores, ended, open_ if on or cut else [], on_going)
                    observer.step(open_rows, scores, state, ways)
                    open_rows = [OpenHypothesis(c.row, c.word, c.score) for c in open_]
                if on:
                    staying.append(number)
                    # a small vocabulary may leave fewer than K open beams: the rest hold nothing
                    going += open_ + [Expansion(open_[0].row, PAD, DEAD)] * (self.size - len(open_))
                elif cut:  # what the limit cut short fills the places that are left
                    found[number] += [self._hypothesis(c, beams, scores, state, width) for c in open_]
                    least = self._nearest(found[number])
                    found[number] = [hypothesis for hypothesis in found[number] if hypothesis.score >= least]
            numbers = staying
            if going:
                rows = torch.tensor([c.row for c in going], device=previous.device)
                previous = torch.tensor([c.word for c in going], device=previous.device)
                beams = self._extend(beams, scores, rows, previous, going)
                state = state.select(rows)
                if len(rows) < len(scores):  # the beams of one sentence remember the same source
                    memory = memory.select(rows)
        behind = not self.settings.cut
        kept = (sorted(group, key=lambda h: (behind and not h.finished, -h.score))[: self.n_best] for group in found)
        return [sorted(group, key=lambda h: -h.score) for group in kept]

    def _begin(self, encoding: Encoding) -> Beams:
        rows = len(encoding.source.ids) * self.size
        device = encoding.source.ids.device
        scores = torch.full((rows,), DEAD, device=device)
        scores[:: self.size] = 0.0  # all beams start equal, so only one may expand
        return Beams(
            words=torch.empty(rows, 0, dtype=torch.long, device=device),
            token_scores=torch.empty(rows, 0, device=device),
            scores=scores,
        )

    def _rank(self, scores: Tensor, so_far: Tensor, place: int) -> list[Expansion]:
        """The 2K best continuations of one sentence, best first."""
        rows = slice(place * self.size, (place + 1) * self.size)
        of_words = scores[rows]  # (K, V)
        if self.prune:
            likeliest = of_words[so_far[rows] != DEAD].max()  # word of this step, whichever hypothesis it follows
            of_words = of_words.masked_fill(of_words < likeliest - self.prune, DEAD)
        total = (so_far[rows].unsqueeze(1) + of_words).flatten()  # (K * V,)
        best, at = total.topk(min(2 * self.size, len(total)))
        V = scores.shape[1]
        pairs = zip(best.tolist(), at.tolist(), strict=True)
        return [Expansion(rows.start + i // V, i % V, score) for score, i in pairs if score > DEAD]

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

    def _extend(self, beams: Beams, scores: Tensor, rows: Tensor, words: Tensor, chosen: list[Expansion]) -> Beams:
        kept = beams.select(rows)
        added = scores[rows, words]
        return Beams(
            words=torch.cat((kept.words, words.unsqueeze(1)), dim=1),
            token_scores=torch.cat((kept.token_scores, added.unsqueeze(1)), dim=1),
            scores=torch.tensor([c.score for c in chosen], device=scores.device),
        )

    def _hypothesis(self, candidate: Expansion, beams: Beams, scores: Tensor, state: State, width: int) -> Hypothesis:
        row, word = candidate.row, candidate.word
        ids = (*beams.words[row].tolist(), word)
        token_scores = [*beams.token_scores[row].tolist(), float(scores[row, word])]
        heads = state.past[row, ..., :width].cpu().numpy().copy()
        return Hypothesis(
            ids=ids,
            token_scores=np.asarray(token_scores, dtype=np.float32),
            score=beam_score(self.settings, candidate.score, len(ids), heads),
            heads=heads,
            finished=word == EOS,
            p_gen=gates(state, row),
        )


def _continuations(
    ranked: list[Expansion], scores: Tensor, ended: list[Expansion], open_: list[Expansion], of_open: Fate
) -> list[Continuation]:
    """Each continuation, and what becomes of it."""

    def fate(c: Expansion) -> Fate:
        if c in ended:
            return "finished" if c.word == EOS else "cut"
        return of_open if c in open_ else "pruned"

    return [Continuation(c.row, c.word, float(scores[c.row, c.word]), c.score, fate(c)) for c in ranked]


SEARCHES: dict[type[Any], Callable[..., list[list[Hypothesis]]]] = {
    Greedy: greedily,
    Sampling: sampled,
    Beam: lambda search, *given: BeamSearch(search)(*given),
}
