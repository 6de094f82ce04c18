"""Several models as one: at each step the mean of their probabilities (Sutskever et al. 2014, section 3.6).

Axes: B batch, S source, T target, t steps so far, V vocabulary.

    p(y_i) = 1/M sum_m p_m(y_i)

Members may be of any kind, with the same vocabularies. The ensemble's attention is the mean over the members that have
attention, each first averaged over layers and heads. If the members' offsets differ, rows are shifted by the
difference, so that a row explains the same word for all members.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from regarde.attention.interface import Attention
from regarde.data.batch import Batched, Source
from regarde.errors import UsageError
from regarde.models.interface import Decoder, Encoder, Encoding, Model, State


@dataclass(frozen=True, eq=False)
class Encodings(Encoding):
    """The source after each member's encoder; `states` and `final` of the ensemble have width 0."""

    members: tuple[Encoding, ...]


@dataclass(frozen=True, eq=False)
class Memories(Batched):
    members: tuple[Batched, ...]


@dataclass(frozen=True, eq=False)
class States(State):
    """`past` is the mean of the members' attention, (B, 1, 1, t, S), `p_gen` that of the members that copy."""

    members: tuple[State, ...]


class EnsembleEncoder(Encoder):
    """Every member's encoder."""

    def __init__(self, encoders: Sequence[Encoder]) -> None:
        super().__init__()
        self.members = cast(Sequence[Encoder], nn.ModuleList(encoders))  # a ModuleList has no element type

    def forward(self, source: Source) -> Encodings:
        members = tuple(member(source) for member in self.members)
        none = members[0].states[..., :0]  # (B, S, 0)
        return Encodings(source=members[0].source, states=none, final=none[:, 0], members=members)


class EnsembleDecoder(Decoder[States, Memories]):
    """Every member's decoder, and the mean of their probabilities."""

    def __init__(self, decoders: Sequence[Decoder[Any, Any]]) -> None:
        super().__init__()
        self.members = cast(Sequence[Decoder[Any, Any]], nn.ModuleList(decoders))
        self.offset = max(decoder.offset for decoder in decoders)
        self.looks_back = decoders[0].looks_back
        self.carries = all(decoder.carries for decoder in decoders)

    def attentions(self) -> list[Attention]:
        return []  # none of the members' is the ensemble's

    def remember(self, encoding: Encoding) -> Memories:
        pairs = zip(self.members, _members(encoding), strict=True)
        return Memories(tuple(member.remember(own) for member, own in pairs))

    def start(self, encoding: Encoding) -> States:
        pairs = zip(self.members, _members(encoding), strict=True)
        return self._states([member.start(own) for member, own in pairs])

    def unroll(self, previous: Tensor, state: States, memory: Memories) -> tuple[Tensor, States]:
        trios = zip(self.members, state.members, memory.members, strict=True)
        answers = [member.unroll(previous, own, remembered) for member, own, remembered in trios]
        scores = [logits.float().log_softmax(dim=-1) for logits, _ in answers]
        sizes = {score.shape[-1] for score in scores}
        if len(sizes) > 1:
            given = " and ".join(f"{V:,}" for V in sorted(sizes))
            raise UsageError(f"Members of an ensemble know {given} words. Use models of one vocabulary.")
        mean = torch.stack(scores).logsumexp(dim=0) - math.log(len(scores))  # (B, T, V)
        return mean, self._states([own for _, own in answers])

    def _states(self, members: Sequence[State]) -> States:
        gates = [member.p_gen for member in members if member.p_gen is not None]
        p_gen = torch.stack(gates).mean(dim=0) if gates else None
        return States(past=self._past([member.past for member in members]), p_gen=p_gen, members=tuple(members))

    def _past(self, pasts: Sequence[Tensor]) -> Tensor:
        """The mean over the members with attention, in each row over those that have one yet.  -> (B, 1, 1, t, S)"""
        late = [self.offset - member.offset for member in self.members]
        attending = [(past.mean(dim=(1, 2)), wait) for past, wait in zip(pasts, late, strict=True) if past.shape[1]]
        if not attending:
            return pasts[0]
        t = pasts[0].shape[3]
        moved = torch.stack([functional.pad(rows, (0, 0, wait, 0))[:, :t] for rows, wait in attending])  # (M, B, t, S)
        speaking = [sum(step >= wait for _, wait in attending) for step in range(t)]
        mean = moved.sum(dim=0) / moved.new_tensor(speaking).unsqueeze(1)  # (B, t, S)
        return mean[:, None, None]


class Ensemble(Model):
    """Several models with the interface of one."""

    def __init__(self, models: Sequence[Model]) -> None:
        if not models:
            raise UsageError("An ensemble of no models. Give at least one.")
        super().__init__(
            EnsembleEncoder([model.encoder for model in models]), EnsembleDecoder([model.decoder for model in models])
        )


def _members(encoding: Encoding) -> tuple[Encoding, ...]:
    return cast(Encodings, encoding).members  # of the ensemble's own encoder
