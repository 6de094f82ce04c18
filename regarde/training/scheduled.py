"""Scheduled sampling: Bengio et al. 2015, "Scheduled Sampling for Sequence Prediction with Recurrent Neural Networks".

Axes: B batch, T target, V vocabulary.

In training a decoder reads the words of the target, in translation those it has predicted. With scheduled sampling,
each word it reads in training is, with a given probability, drawn from its own distribution (section 2.4). PAD, BOS and
EOS are never drawn. No gradient passes through the draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regarde.data.batch import Batch, Batched
from regarde.models.interface import Decoder, Encoding, State
from regarde.text.tokenizers import BOS, EOS, PAD


@dataclass(frozen=True, eq=False)
class SampledState(State):
    """A decoder's state, and the word drawn from its distribution."""

    inner: State
    own: Tensor  # (B,)


class SampledDecoder(Decoder[SampledState, Batched]):
    """A decoder that reads its own word with a given probability, otherwise the word of the target."""

    def __init__(self, decoder: Decoder[Any, Any], probability: float) -> None:
        super().__init__()
        self.decoder = decoder
        self.probability = probability
        self.offset = decoder.offset
        self.penalizes = decoder.penalizes
        self.looked = decoder.looked  # type: ignore[method-assign]

    def remember(self, encoding: Encoding) -> Batched:
        memory: Batched = self.decoder.remember(encoding)
        return memory

    def start(self, encoding: Encoding) -> SampledState:
        inner = self.decoder.start(encoding)
        own = torch.full_like(encoding.source.ids[:, 0], BOS)  # the first input
        return SampledState(past=inner.past, inner=inner, own=own)

    def penalty(self, attention: Tensor, batch: Batch) -> Tensor:
        return self.decoder.penalty(attention, batch)

    def unroll(self, previous: Tensor, state: SampledState, memory: Batched) -> tuple[Tensor, SampledState]:
        steps = []
        for given in previous.unbind(1):
            coin = torch.rand(len(given), device=given.device) < self.probability
            logits, inner = self.decoder.step(torch.where(coin, state.own, given), state.inner, memory)
            state = SampledState(past=inner.past, inner=inner, own=draw(logits))
            steps.append(logits)
        return torch.stack(steps, dim=1), state


@torch.no_grad()
def draw(logits: Tensor) -> Tensor:
    """Draw the next word.  (B, V) -> (B,)"""
    going_on = logits.float().index_fill(1, torch.tensor([PAD, BOS, EOS], device=logits.device), float("-inf"))
    # exponential races; unlike multinomial, NaN passes through, and the step reports it
    clocks = torch.empty_like(going_on).exponential_()
    return (going_on.softmax(dim=-1) / clocks).argmax(dim=-1)
