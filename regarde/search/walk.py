"""Word by word in torch, one hypothesis a row.

Axes: B rows, V vocabulary, t steps so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from regarde.models.interface import Encoding, Model
from regarde.search.hypothesis import Hypothesis
from regarde.search.prefix import NO_PREFIX, Prefix
from regarde.search.rules import Rules
from regarde.search.trace import Continuation, Fate
from regarde.search.watch import Open, Watch, Watching
from regarde.text.vocabulary import BOS, EOS

Choice = Callable[[Tensor, list[int]], Tensor]
"""(B, V) log-probabilities and each row's number -> (B,) the chosen words."""


@torch.no_grad()
def walk(
    model: Model,
    encoding: Encoding,
    rules: Rules,
    choose: Choice,
    prefixes: Sequence[Prefix] | None = None,
    watch: Watching | None = None,
) -> list[Hypothesis | None]:
    """Step until every row has said EOS or reached its limit; rows that are done leave the batch.

    None for a row whose numbers overflow, however finite the weights are.
    """
    decoder = model.decoder
    lengths = encoding.source.lengths
    openings = prefixes or [NO_PREFIX] * len(lengths)
    longest = [p.longest(most) for p, most in zip(openings, rules.longest(lengths).tolist(), strict=True)]
    state, memory = decoder.start(encoding), decoder.remember(encoding)
    numbers = list(range(len(longest)))  # the sentence of each row still walking
    said: list[list[int]] = [[] for _ in numbers]
    token_scores: list[list[float]] = [[] for _ in numbers]
    done: list[Hypothesis | None] = [None] * len(numbers)
    previous = torch.full_like(lengths, BOS)
    open_rows = [Open(None, BOS, 0.0) for _ in numbers]
    step = 0
    while numbers:
        logits, state = decoder.step(previous, state, memory)
        scores = rules.log_probabilities(logits, step, [openings[number] for number in numbers])
        lost = scores.amax(dim=-1).isnan().tolist()
        previous = choose(scores, numbers)
        chosen_scores = scores.gather(1, previous.unsqueeze(1)).squeeze(1).tolist()
        step += 1
        staying = []
        for row, (number, word) in enumerate(zip(numbers, previous.tolist(), strict=True)):
            if lost[row]:
                continue
            said[number].append(word)
            token_scores[number].append(chosen_scores[row])
            if word != EOS and step < longest[number]:
                staying.append(row)
                continue
            heads = state.past[row, ..., : int(lengths[number])]
            done[number] = Hypothesis(
                ids=tuple(said[number]),
                token_scores=np.asarray(token_scores[number], dtype=np.float32),
                score=float(np.sum(token_scores[number])),
                heads=heads.cpu().numpy().copy(),
                finished=word == EOS,
            )
        if watch:
            sums = [float(np.sum(token_scores[number])) for number in numbers]
            ways = [
                Continuation(row, word, chosen_scores[row], sums[row], _fate(word, row in staying))
                for row, word in enumerate(previous.tolist())
            ]
            watch.step(open_rows, scores, state.past, ways)
            open_rows = [Open(row, ways[row].id, sums[row]) for row in staying]
        if len(staying) < len(numbers):
            rows = torch.tensor(staying, dtype=torch.long, device=previous.device)
            numbers = [numbers[row] for row in staying]
            previous, state, memory = previous[rows], state.select(rows), memory.select(rows)
    return done


@torch.no_grad()
def follow(model: Model, encoding: Encoding, target: Sequence[int], watch: Watch) -> Hypothesis:
    """The same for one sentence whose words are given, EOS included: nothing is chosen, and nothing forbidden."""
    state, memory = model.decoder.start(encoding), model.decoder.remember(encoding)
    token_scores: list[float] = []
    row = Open(None, BOS, 0.0)
    for t, word in enumerate(target):
        logits, state = model.decoder.step(encoding.source.ids.new_tensor([row.id]), state, memory)
        scores = logits.float().log_softmax(dim=-1)  # (1, V)
        token_scores.append(float(scores[0, word]))
        way = Continuation(0, word, token_scores[-1], sum(token_scores), "kept" if t + 1 < len(target) else "finished")
        watch.step([row], scores, state.past, [way])
        row = Open(0, word, way.score)
    return Hypothesis(
        ids=tuple(target),
        token_scores=np.asarray(token_scores, dtype=np.float32),
        score=sum(token_scores),
        heads=state.past[0].cpu().numpy().copy(),
        finished=True,
    )


def _fate(word: int, goes_on: bool) -> Fate:
    return "kept" if goes_on else "finished" if word == EOS else "cut"
