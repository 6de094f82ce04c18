"""Recurrent encoders, shared by the papers: one direction, both, or both at the bottom only.

Axes: B batch, S source, E embedding, H hidden, D states, L layers, K state size of a cell.

    unidirectional       Sutskever et al. 2014, Luong et al. 2015: a stack, the source back to front
    bidirectional        Bahdanau et al. 2015 (one layer); stacked: both directions concatenated between layers
    bottom-bidirectional Wu et al. 2016: the first layer reads both ways, the others one way, residual from the third

Every encoder tells its decoder `size` (D) and the shape of `final`, the states of its layers after their last word:
(B, L, K). `last` is the part of the top layer's that its decoder may see; of two directions, the backward one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from regarde.config import Bound, Depth
from regarde.data.batch import Source
from regarde.errors import ConfigError
from regarde.layers import CELLS, Cell, Embedding, Stack, reversed_tokens, run
from regarde.models.interface import Encoder, Encoding

Layers = Annotated[int, Bound(0, 64)]
Hidden = Annotated[int, Bound(0, 65_536)]
ResidualFrom = Annotated[int, Bound(0, 64)]  # the first residual layer, counted from 1; 0 = none


@dataclass(frozen=True)
class Shared:
    """What an encoder shares with its decoder, unless its own configuration says otherwise."""

    hidden: int
    layers: int
    cell: str
    dropout: float
    variational: bool = False


class RecurrentEncoder(Encoder):
    """Facts a decoder is built from."""

    size: int  # D, of the states
    final_shape: tuple[int, int]  # L, K
    last: slice  # of K

    @abstractmethod
    def forward(self, source: Source) -> Encoding: ...


class UnidirectionalEncoder(RecurrentEncoder):
    """A stack over the source, back to front if so told; states stand in the order of the source all the same."""

    def __init__(self, embedding: Embedding, stack: Stack, *, reverse: bool) -> None:
        super().__init__()
        self.embedding = embedding
        self.stack = stack
        self.reverse = reverse
        self.size = stack.hidden
        self.final_shape = (len(stack.layers), stack.state_size)
        self.last = slice(0, stack.hidden)

    def forward(self, source: Source) -> Encoding:
        ids = reversed_tokens(source.ids, source.mask) if self.reverse else source.ids
        embedded = self.embedding(ids)  # (B, S, E)
        states, final = self.stack(embedded, source.mask, self.stack.rest(embedded))
        if self.reverse:
            states = reversed_tokens(states, source.mask)
        return Encoding(source=source, states=states, final=final)


class BothWays(nn.Module):
    """One layer in both directions: h_j = [->h_j ; <-h_j]"""

    def __init__(self, forwards: Cell, backwards: Cell) -> None:
        super().__init__()
        self.forwards = forwards
        self.backwards = backwards

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(B, S, I), (B, S) -> states (B, S, 2H), final states of both (B, 2K)"""
        rest = x.new_zeros(len(x), self.forwards.state_size)
        ahead, last = run(self.forwards, self.forwards.share(0, x), mask, rest)
        back, first = run(self.backwards, self.backwards.share(0, x), mask, rest, backwards=True)
        return torch.cat((ahead, back), dim=-1), torch.cat((last, first), dim=-1)


class BidirectionalEncoder(RecurrentEncoder):
    """Layers that read both ways, both directions concatenated between them."""

    def __init__(self, embedding: Embedding, layers: Sequence[BothWays], *, dropout: float) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers = nn.ModuleList(layers)
        self.dropout = nn.Dropout(dropout)
        self.size = 2 * layers[0].forwards.hidden
        K, H = layers[0].forwards.state_size, layers[0].forwards.hidden
        self.final_shape = (len(layers), 2 * K)
        self.last = slice(K, K + H)

    def forward(self, source: Source) -> Encoding:
        x = self.embedding(source.ids)  # (B, S, E)
        finals = []
        for i, layer in enumerate(self.layers):
            x, final = layer(x if i == 0 else self.dropout(x), source.mask)
            finals.append(final)
        return Encoding(source=source, states=x, final=torch.stack(finals, dim=1))


class BottomBidirectionalEncoder(RecurrentEncoder):
    """Wu et al. 2016, section 3.2: the first layer reads both ways, a stack reads on from there."""

    def __init__(self, embedding: Embedding, bottom: BothWays, stack: Stack) -> None:
        super().__init__()
        self.embedding = embedding
        self.bottom = bottom
        self.stack = stack
        self.size = stack.hidden
        self.final_shape = (1 + len(stack.layers), stack.state_size)
        self.last = slice(0, stack.hidden)

    def forward(self, source: Source) -> Encoding:
        embedded = self.embedding(source.ids)  # (B, S, E)
        x, both = self.bottom(embedded, source.mask)  # (B, S, 2H)
        states, finals = self.stack(self.stack.dropout(x), source.mask, self.stack.rest(x))
        backward = both[:, self.stack.state_size :]  # the direction that has seen the whole source when it meets word 1
        return Encoding(source=source, states=states, final=torch.cat((backward.unsqueeze(1), finals), dim=1))


@dataclass(frozen=True)
class UnidirectionalConfig:
    kind: Literal["unidirectional"] = "unidirectional"
    layers: Layers = 0  # 0: as many as the decoder's
    hidden: Hidden = 0  # 0: as the decoder's
    reverse: bool = True
    residual_from: ResidualFrom = 0

    def build(self, embedding: Embedding, shared: Shared) -> RecurrentEncoder:
        stack = Stack.of(
            shared.cell,
            [embedding.size],
            self.hidden or shared.hidden,
            self.layers or shared.layers,
            dropout=shared.dropout,
            variational=shared.variational,
            residual_from=self.residual_from,
        )
        return UnidirectionalEncoder(embedding, stack, reverse=self.reverse)


@dataclass(frozen=True)
class BidirectionalConfig:
    kind: Literal["bidirectional"] = "bidirectional"
    layers: Depth = 1
    hidden: Hidden = 0  # of each direction; 0: as the decoder's

    def build(self, embedding: Embedding, shared: Shared) -> RecurrentEncoder:
        if shared.variational:
            raise ConfigError("A bidirectional encoder has no variational dropout. Set model.variational = false.")
        H, cell = self.hidden or shared.hidden, CELLS[shared.cell]
        widths = [embedding.size, *[2 * H] * (self.layers - 1)]
        layers = [BothWays(cell([width], H), cell([width], H)) for width in widths]
        return BidirectionalEncoder(embedding, layers, dropout=shared.dropout)


@dataclass(frozen=True)
class BottomBidirectionalConfig:
    kind: Literal["bottom-bidirectional"] = "bottom-bidirectional"
    layers: Layers = 0  # 0: as many as the decoder's
    hidden: Hidden = 0  # 0: as the decoder's
    residual_from: ResidualFrom = 3

    def build(self, embedding: Embedding, shared: Shared) -> RecurrentEncoder:
        H, cell = self.hidden or shared.hidden, CELLS[shared.cell]
        layers = self.layers or shared.layers
        if layers < 2:
            raise ConfigError(f"layers = {layers}: one layer at the bottom and at least one above it. Use 2 or more.")
        bottom = BothWays(cell([embedding.size], H), cell([embedding.size], H))
        if self.residual_from and not 3 <= self.residual_from <= layers:
            given = f"residual_from = {self.residual_from} of {layers} layers"
            raise ConfigError(f"{given}: expected 3 (the second takes twice its width) up to the last, or 0 for none.")
        above = max(0, self.residual_from - 1)  # the stack's own first layer is the encoder's second
        stack = Stack.of(
            shared.cell,
            [2 * H],
            H,
            layers - 1,
            dropout=shared.dropout,
            variational=shared.variational,
            residual_from=above,
        )
        return BottomBidirectionalEncoder(embedding, bottom, stack)


EncoderConfig = UnidirectionalConfig | BidirectionalConfig | BottomBidirectionalConfig


class Copy(nn.Module):
    """The decoder starts where each layer of the encoder ended (Sutskever et al. 2014)."""

    def __init__(self, final: tuple[int, int], start: tuple[int, int]) -> None:
        super().__init__()
        if final != start:
            raise ConfigError(
                f"The encoder ends in {final[0]} layers of state {final[1]}, the decoder has {start[0]} of {start[1]}. "
                'Make them equal, or set model.start = "project".'
            )

    def forward(self, final: Tensor) -> Tensor:
        return final


class Project(nn.Module):
    """The decoder starts from a learned projection of all final states: tanh(W [final_1; …; final_L])"""

    def __init__(self, final: tuple[int, int], start: tuple[int, int]) -> None:
        super().__init__()
        self.shape = start
        self.W = nn.Linear(final[0] * final[1], start[0] * start[1])

    def forward(self, final: Tensor) -> Tensor:
        return torch.tanh(self.W(final.flatten(1))).reshape(-1, *self.shape)


StartName = Literal["copy", "project"]
STARTS: dict[str, type[Copy] | type[Project]] = {"copy": Copy, "project": Project}
