"""Layers of recurrent cells, with dropout between them and residual connections from a given layer on.

Axes: B batch, T positions, L layers, H hidden, K state size, G gate pre-activations.

    x_1 = input,  h_l = cell_l(x_l),  x_{l+1} = h_l                for l < residual_from
                                      x_{l+1} = h_l + x_l          for l >= residual_from (Wu et al. 2016, equation 6)

Dropout is applied between layers (Zaremba et al. 2014). Variational dropout uses one mask for a whole sentence, as in
Gal and Ghahramani 2016, but only between layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regarde.errors import ConfigError
from regarde.layers.cells import CELLS, Cell, read, run
from regarde.layers.pointwise import Dropout
from regarde.native.decoders import UpperLayer

Noise = Sequence[Tensor | None]
"""One dropout mask (B, H) for the input of each layer but the first, or None for fresh dropout at each step."""


@dataclass(frozen=True)
class RecurrentShape:
    """The settings that an encoder shares with its decoder, unless its own configuration has others."""

    hidden: int
    layers: int
    cell: str
    dropout: float
    variational: bool = False


class Stack(nn.Module):
    """The inputs of `cells[0]` are the caller's; every other cell gets the output of the cell below, and a context."""

    def __init__(
        self, cells: Iterable[Cell], *, dropout: float = 0.0, variational: bool = False, residual_from: int = 0
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(cells)
        depth = len(self.layers)
        if residual_from and not 2 <= residual_from <= depth:
            raise ConfigError(f"residual_from = {residual_from}: expected a layer from 2 to {depth}, or 0 for none.")
        if variational and (depth < 2 or not dropout):
            given = f"layers = {depth}, dropout = {dropout}"
            raise ConfigError(f"variational = true drops between layers, but {given}. Raise them, or set it to false.")
        self.dropout = Dropout(dropout)
        self.variational = variational
        self.residual_from = residual_from or depth + 1

    @classmethod
    def of(cls, shape: RecurrentShape, inputs: Sequence[int], *, context: int = 0, residual_from: int = 0) -> Stack:
        """A stack of equal cells; `context` is the size of the context that enters every layer above the first."""
        above = [shape.hidden, context] if context else [shape.hidden]
        widths = [inputs, *[above] * (shape.layers - 1)]
        cells = [CELLS[shape.cell](width, shape.hidden) for width in widths]
        return cls(cells, dropout=shape.dropout, variational=shape.variational, residual_from=residual_from)

    @property
    def cells(self) -> list[Cell]:
        return [layer for layer in self.layers if isinstance(layer, Cell)]

    @property
    def hidden(self) -> int:
        return self.cells[0].hidden

    @property
    def state_size(self) -> int:
        return self.cells[0].state_size

    def rest(self, like: Tensor) -> Tensor:
        """Zero states for the batch of `like`.  -> (B, L, K)"""
        return like.new_zeros(len(like), len(self.layers), self.state_size)

    def noise(self, like: Tensor) -> Noise:
        """The masks of variational dropout for one sentence."""
        if not self.variational or not self.dropout.active:
            return [None] * len(self.layers)
        masks = [self.dropout(like.new_ones(len(like), self.hidden)) for _ in self.layers[1:]]
        return [None, *masks]

    def forward(self, x: Tensor, mask: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
        """A whole sentence, layer by layer.  (B, T, I), (B, T), (B, L, K) -> top (B, T, H), final states (B, L, K)"""
        x, final = read(self.cells[0], x, mask, start[:, 0])
        return self.climb(x, mask, start, final)

    def climb(
        self, x: Tensor, mask: Tensor, start: Tensor, final: Tensor, context: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """All layers above the first, given its outputs `x` and its last state `final`; a context enters each.

        (B, T, H), (B, T), (B, L, K), (B, K), (B, T, C) -> top (B, T, H), final states (B, L, K)
        """
        noise, finals = self.noise(x), [final]
        for layer, cell in list(enumerate(self.cells))[1:]:
            below, one_mask = x, noise[layer]
            x = self._drop(x, None if one_mask is None else one_mask.unsqueeze(1))
            if context is None:
                x, final = read(cell, x, mask, start[:, layer])
            else:
                x, final = run(cell, cell.share(0, x) + cell.share(1, context), mask, start[:, layer])
            finals.append(final)
            if layer + 1 >= self.residual_from:
                x = x + below
        return x, torch.stack(finals, dim=1)

    def step(self, shares: Tensor, states: Tensor, noise: Noise) -> tuple[Tensor, Tensor]:
        """One step through all layers.  The first layer's shares (B, G), (B, L, K) -> top (B, H), states (B, L, K)"""
        after = []
        x = shares.new_empty(0)
        for layer, cell in enumerate(self.cells):
            below = x
            if layer:
                x = self._drop(x, noise[layer])
                shares = cell.share(0, x)
            state = cell(shares, states[:, layer])
            after.append(state)
            x = cell.output(state)
            if layer + 1 >= self.residual_from:
                x = x + below
        return x, torch.stack(after, dim=1)

    def above(self, like: Tensor) -> list[UpperLayer]:
        """The layers above the first as arguments of a native decoder, for a batch (B, T, …)."""
        B, T = like.shape[:2]
        layers = []
        for cell, one_mask in list(zip(self.cells, self.noise(like), strict=True))[1:]:
            recurrence = cell.recurrence()
            assert recurrence is not None, "all cells of a stack are of one kind"
            noise = None
            if self.dropout.active:
                ones = like.new_ones(B, T, self.hidden)
                noise = self.dropout(ones) if one_mask is None else ones * one_mask.unsqueeze(1)
            layers.append(UpperLayer(recurrence, cell.input_weight(0), cell.bias(), noise))
        return layers

    def _drop(self, x: Tensor, noise: Tensor | None) -> Tensor:
        dropped: Tensor = self.dropout(x) if noise is None else x * noise
        return dropped
