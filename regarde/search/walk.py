"""Word by word in torch, one hypothesis a row.

Axes: B rows, V vocabulary, t steps so far.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from regarde.models.interface import Encoding, Model
from regarde.search.hypothesis import Hypothesis
from regarde.search.rules import Rules
from regarde.text.vocabulary import BOS, EOS

Choice = Callable[[Tensor, list[int]], Tensor]
"""(B, V) log-probabilities and each row's number -> (B,) the chosen words."""


@torch.no_grad()
def walk(model: Model, encoding: Encoding, rules: Rules, choose: Choice) -> list[Hypothesis]:
    """Step until every row has said EOS or reached its limit; rows that are done leave the batch."""
    decoder = model.decoder
    lengths = encoding.source.lengths
    longest = rules.longest(lengths).tolist()
    state, memory = decoder.start(encoding), decoder.remember(encoding)
    numbers = list(range(len(longest)))  # the sentence of each row still walking
    said: list[list[int]] = [[] for _ in numbers]
    token_scores: list[list[float]] = [[] for _ in numbers]
    done: list[Hypothesis | None] = [None] * len(numbers)
    previous = torch.full_like(lengths, BOS)
    step = 0
    while numbers:
        logits, state = decoder.step(previous, state, memory)
        scores = rules.log_probabilities(logits, step)
        previous = choose(scores, numbers)
        chosen_scores = scores.gather(1, previous.unsqueeze(1)).squeeze(1).tolist()
        step += 1
        staying = []
        for row, (number, word) in enumerate(zip(numbers, previous.tolist(), strict=True)):
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
        if len(staying) < len(numbers):
            rows = torch.tensor(staying, dtype=torch.long, device=previous.device)
            numbers = [numbers[row] for row in staying]
            previous, state, memory = previous[rows], state.select(rows), memory.select(rows)
    return [hypothesis for hypothesis in done if hypothesis is not None]
