"""The recurrent encoders of all papers: one direction, both, or both only in the bottom layer.

Axes: B batch, S source, E embedding, H hidden, D states, L layers, K state size of a cell.

    unidirectional       Sutskever et al. 2014, Luong et al. 2015: a stack, the source in reverse order
    bidirectional        Bahdanau et al. 2015 (one layer); stacked: both directions concatenated between layers
    bottom-bidirectional Wu et al. 2016: the first layer bidirectional, the others not, residual from the third

Stacked bidirectional layers can have residual connections from the second on, where input and output have equal sizes.

    x_1 = e(word),  h_l = [->h_l ; <-h_l] over x_l,  x_{l+1} = h_l          for l < residual_from
                                                     x_{l+1} = h_l + x_l    for l >= residual_from, 2 at least

Dropout is applied between layers; variational dropout uses one mask for a whole sentence.

A decoder is built from an encoder's `size` (D) and `final_shape`, the shape of `final`: the states of all layers after
their last word, (B, L, K). `last` is the output of the top layer within K; of two directions, the backward one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from regarde.config import Bound, Depth
from regarde.data.batch import Source
from regarde.errors import ConfigError
from regarde.layers import CELLS, Cell, Dropout, Embedding, RecurrentShape, Stack, reversed_tokens, run
from regarde.models.interface import Encoder, Encoding

Layers = Annotated[int, Bound(0, 64)]
Hidden = Annotated[int, Bound(0, 65_536)]
ResidualFrom = Annotated[int, Bound(0, 64)]  # the first residual layer, counted from 1; 0 = none


class RecurrentEncoder(Encoder):
    """An encoder with the sizes that a decoder is built from."""

    final_shape: tuple[int, int]  # L, K
    last: slice  # of K


class UnidirectionalEncoder(RecurrentEncoder):
    """A stack over the source, in reverse order if `reverse`; states are in the order of the source in any case."""

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

    def summary(self, encoding: Encoding) -> Tensor:
        return encoding.states[:, 0] if self.reverse else super().summary(encoding)


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


class Between(nn.Module):
    """Dropout between two layers; variational: the same units at every word."""

    def __init__(self, dropout: float, *, variational: bool) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.variational = variational

    def forward(self, x: Tensor) -> Tensor:
        """(B, S, I) -> (B, S, I)"""
        passed: Tensor = x * self.dropout(torch.ones_like(x[:, :1])) if self.variational else self.dropout(x)
        return passed


class BidirectionalEncoder(RecurrentEncoder):
    """Bidirectional layers; the next layer gets both directions, concatenated."""

    def __init__(self, embedding: Embedding, layers: Sequence[BothWays], between: Between, residual_from: int) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers = nn.ModuleList(layers)
        self.between = between
        self.residual_from = residual_from or len(layers) + 1
        self.size = 2 * layers[0].forwards.hidden
        K, H = layers[0].forwards.state_size, layers[0].forwards.hidden
        self.final_shape = (len(layers), 2 * K)
        self.last = slice(K, K + H)

    def forward(self, source: Source) -> Encoding:
        x = self.embedding(source.ids)  # (B, S, E)
        finals = []
        for number, layer in enumerate(self.layers, start=1):
            below = x
            x, final = layer(x if number == 1 else self.between(x), source.mask)
            finals.append(final)
            if number >= self.residual_from:
                x = x + below
        return Encoding(source=source, states=x, final=torch.stack(finals, dim=1))

    def summary(self, encoding: Encoding) -> Tensor:
        """Each direction where it ends: [->h_S ; <-h_1]"""
        H = self.size // 2
        return torch.cat((super().summary(encoding)[:, :H], encoding.states[:, 0, H:]), dim=-1)


class BottomBidirectionalEncoder(RecurrentEncoder):
    """Wu et al. 2016, section 3.2: a bidirectional layer, and a unidirectional stack above it."""

    def __init__(self, embedding: Embedding, bottom: BothWays, between: Between, stack: Stack) -> None:
        super().__init__()
        self.embedding = embedding
        self.bottom = bottom
        self.between = between  # the bottom layer and the stack
        self.stack = stack
        self.size = stack.hidden
        self.final_shape = (1 + len(stack.layers), stack.state_size)
        self.last = slice(0, stack.hidden)

    def forward(self, source: Source) -> Encoding:
        embedded = self.embedding(source.ids)  # (B, S, E)
        x, both = self.bottom(embedded, source.mask)  # (B, S, 2H)
        states, finals = self.stack(self.between(x), source.mask, self.stack.rest(x))
        backward = both[:, self.stack.state_size :]  # has read the whole source
        return Encoding(source=source, states=states, final=torch.cat((backward.unsqueeze(1), finals), dim=1))


@dataclass(frozen=True)
class UnidirectionalConfig:
    kind: Literal["unidirectional"] = "unidirectional"
    layers: Layers = 0  # Number of layers of the encoder; 0: as many as the decoder's.
    hidden: Hidden = 0  # Units of each layer and direction of the encoder; 0: as many as the decoder's.
    reverse: bool = True  # Read the source from its end.
    residual_from: ResidualFrom = 0  # First layer of the encoder with a residual connection, from 2 on; 0: none.

    def build(self, embedding: Embedding, shape: RecurrentShape) -> RecurrentEncoder:
        layers = self.layers or shape.layers
        variational = shape.variational and layers > 1
        shape = replace(shape, hidden=self.hidden or shape.hidden, layers=layers, variational=variational)
        stack = Stack.of(shape, [embedding.size], residual_from=self.residual_from)
        return UnidirectionalEncoder(embedding, stack, reverse=self.reverse)


@dataclass(frozen=True)
class BidirectionalConfig:
    kind: Literal["bidirectional"] = "bidirectional"
    layers: Depth = 1
    hidden: Hidden = 0  # of each direction; 0: as the decoder's
    residual_from: ResidualFrom = 0

    def build(self, embedding: Embedding, shape: RecurrentShape) -> RecurrentEncoder:
        H, cell = self.hidden or shape.hidden, CELLS[shape.cell]
        if self.residual_from and not 2 <= self.residual_from <= self.layers:
            given = f"residual_from = {self.residual_from} of {self.layers} layers"
            raise ConfigError(f"{given}: expected 2 (the first takes embeddings) up to the last, or 0 for none.")
        widths = [embedding.size, *[2 * H] * (self.layers - 1)]
        layers = [BothWays(cell([width], H), cell([width], H)) for width in widths]
        between = Between(shape.dropout, variational=shape.variational)
        return BidirectionalEncoder(embedding, layers, between, self.residual_from)


@dataclass(frozen=True)
class BottomBidirectionalConfig:
    kind: Literal["bottom-bidirectional"] = "bottom-bidirectional"
    layers: Layers = 0  # 0: as the decoder
    hidden: Hidden = 0  # 0: as the decoder's
    residual_from: ResidualFrom = 3

    def build(self, embedding: Embedding, shape: RecurrentShape) -> RecurrentEncoder:
        H, cell = self.hidden or shape.hidden, CELLS[shape.cell]
        layers = self.layers or shape.layers
        if layers < 2:
            raise ConfigError(f"layers = {layers}: one layer at the bottom and at least one above it. Use 2 or more.")
        bottom = BothWays(cell([embedding.size], H), cell([embedding.size], H))
        if self.residual_from and not 3 <= self.residual_from <= layers:
            given = f"residual_from = {self.residual_from} of {layers} layers"
            raise ConfigError(f"{given}: expected 3 (the second takes twice its width) up to the last, or 0 for none.")
        above = max(0, self.residual_from - 1)  # the first layer of the stack is the second of the encoder
        between = Between(shape.dropout, variational=shape.variational)
        # a stack of one layer has no dropout of its own
        shape = replace(shape, hidden=H, layers=layers - 1, variational=shape.variational and layers > 2)
        stack = Stack.of(shape, [2 * H], residual_from=above)
        return BottomBidirectionalEncoder(embedding, bottom, between, stack)


EncoderConfig = UnidirectionalConfig | BidirectionalConfig | BottomBidirectionalConfig


class Copy(nn.Module):
    """Each layer of the decoder starts from the final state of the same encoder layer (Sutskever et al. 2014)."""

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
