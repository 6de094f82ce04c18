"""Recurrent cells, and running one over a sentence.

Axes: B batch, S positions, I input size, H hidden size, G gate pre-activations (3H or 4H), K state size.
The whole state of a cell is one tensor (B, K), and its output is a part of it; so the states of a stack of cells, or of
a beam of stacks, are plain tensors too. Gates are linear in the inputs: `share(i, x)` is what input i contributes to
them, for one step or for all steps at once, and a step adds these contributions up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from regarde.native import layer
from regarde.native.functions import Recurrence, recurrent, usable


class Cell(nn.Module, ABC):
    """One step of recurrence: forward(shares, state) -> state."""

    gates: ClassVar[int]  # blocks of H in the pre-activations
    blocks: ClassVar[int]  # blocks of H in the state

    def __init__(self, inputs: Sequence[int], hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.W = nn.ModuleList(nn.Linear(size, self.gates * hidden, bias=i == 0) for i, size in enumerate(inputs))

    @property
    def state_size(self) -> int:
        return self.blocks * self.hidden

    def share(self, i: int, x: Tensor) -> Tensor:
        """What input i contributes to every gate.  (…, I) -> (…, G)"""
        share: Tensor = self.W[i](x)
        return share

    def input_weight(self, i: int) -> Tensor:
        """The matrix of input i.  (G, I)"""
        weight = self.W[i].weight
        assert isinstance(weight, Tensor)
        return weight

    def bias(self) -> Tensor:
        """The bias of the gates.  (G,)"""
        bias = self.W[0].bias
        assert isinstance(bias, Tensor)
        return bias

    def recurrence(self) -> Recurrence | None:
        """What a native kernel needs to compute this cell; None if there is no kernel for it."""
        return None

    def output(self, state: Tensor) -> Tensor:
        """The part of the state that other layers get.  (…, K) -> (…, H)"""
        return state[..., : self.hidden]

    def state(self, output: Tensor) -> Tensor:
        """The state with this output; an LSTM's c is zero.  (B, H) -> (B, K)"""
        return torch.cat((output, output.new_zeros(len(output), self.state_size - self.hidden)), dim=-1)

    @abstractmethod
    def recurrent(self) -> list[Tensor]:
        """The square matrices that multiply the state, for initialization."""

    @abstractmethod
    def forward(self, shares: Tensor, state: Tensor) -> Tensor:
        """(B, G), (B, K) -> (B, K)"""


class GRU(Cell):
    """The GRU of Bahdanau et al. 2015, appendix A.1.1: the reset gate acts BEFORE the recurrent product.

        r  = sigmoid(W_r x + U_r s)         z = sigmoid(W_z x + U_z s)
        s~ = tanh(W x + U [r o s])          s = (1 - z) o s_prev + z o s~

    In torch's GRU, r acts after U, and z keeps the old state. Gate order: r, z, candidate.
    """

    gates = 3
    blocks = 1

    def __init__(self, inputs: Sequence[int], hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.U_gates = nn.Linear(hidden, 2 * hidden, bias=False)
        self.U = nn.Linear(hidden, hidden, bias=False)

    def recurrent(self) -> list[Tensor]:
        return [*self.U_gates.weight.chunk(2), self.U.weight]

    def recurrence(self) -> Recurrence | None:
        return Recurrence("gru", self.U.weight, self.U_gates.weight)

    def forward(self, shares: Tensor, state: Tensor) -> Tensor:
        for_gates, for_candidate = shares[..., : 2 * self.hidden], shares[..., 2 * self.hidden :]
        reset, update = torch.sigmoid(for_gates + self.U_gates(state)).chunk(2, dim=-1)
        candidate = torch.tanh(for_candidate + self.U(reset * state))
        return self.mix(state, candidate, update)

    def mix(self, state: Tensor, candidate: Tensor, update: Tensor) -> Tensor:
        """(1 - z) o s_prev + z o s~"""
        return state + update * (candidate - state)


class LSTM(Cell):
    """The LSTM of Sutskever et al. 2014 (Graves 2013, without peepholes).

        i, f, o = sigmoid(W x + U h)        g = tanh(W x + U h)
        c = f o c_prev + i o g              h = o o tanh(c)

    The state is [h; c], the output h. Gate order: i, f, o, g.
    """

    gates = 4
    blocks = 2

    def __init__(self, inputs: Sequence[int], hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.U = nn.Linear(hidden, 4 * hidden, bias=False)

    def recurrent(self) -> list[Tensor]:
        return list(self.U.weight.chunk(4))

    def recurrence(self) -> Recurrence:
        return Recurrence("lstm", self.U.weight)

    def forward(self, shares: Tensor, state: Tensor) -> Tensor:
        h, c = state.chunk(2, dim=-1)
        total = shares + self.U(h)
        write, forget, show = torch.sigmoid(total[..., : 3 * self.hidden]).chunk(3, dim=-1)
        c = forget * c + write * torch.tanh(total[..., 3 * self.hidden :])
        return torch.cat((show * torch.tanh(c), c), dim=-1)


class TorchGRU(Cell):
    """The GRU as torch and cuDNN have it, and Nematus (Sennrich et al. 2017): the reset gate acts AFTER the product.

        r = sigmoid(W_r x + U_r s)          z = sigmoid(W_z x + U_z s)
        s~ = tanh(W x + r o (U s + b))      s = z o s_prev + (1 - z) o s~

    Both cells of Cho et al. 2014 (models/cho.py) differ from it: in the encoder's, r acts before the product; in the
    decoder's, r also acts on the summary. Gate order: r, z, candidate.
    """

    gates = 3
    blocks = 1

    def __init__(self, inputs: Sequence[int], hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.U_gates = nn.Linear(hidden, 2 * hidden, bias=False)
        self.U = nn.Linear(hidden, hidden)

    def recurrent(self) -> list[Tensor]:
        return [*self.U_gates.weight.chunk(2), self.U.weight]

    def forward(self, shares: Tensor, state: Tensor) -> Tensor:
        for_gates, for_candidate = shares[..., : 2 * self.hidden], shares[..., 2 * self.hidden :]
        reset, keep = torch.sigmoid(for_gates + self.U_gates(state)).chunk(2, dim=-1)
        candidate = torch.tanh(for_candidate + reset * self.U(state))
        return candidate + keep * (state - candidate)


class Simple(Cell):
    """The simple recurrent network of Elman 1990: s = tanh(W x + U s)"""

    gates = 1
    blocks = 1

    def __init__(self, inputs: Sequence[int], hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.U = nn.Linear(hidden, hidden, bias=False)

    def recurrent(self) -> list[Tensor]:
        return [self.U.weight]

    def recurrence(self) -> Recurrence:
        return Recurrence("simple", self.U.weight)

    def forward(self, shares: Tensor, state: Tensor) -> Tensor:
        return torch.tanh(shares + self.U(state))


CellName = Literal["simple", "gru", "torch-gru", "lstm"]
CELLS: dict[str, type[Cell]] = {"simple": Simple, "gru": GRU, "torch-gru": TorchGRU, "lstm": LSTM}


def run(cell: Cell, shares: Tensor, mask: Tensor, state: Tensor, *, backwards: bool = False) -> tuple[Tensor, Tensor]:
    """The cell over a whole sentence; padding leaves the state unchanged.

    (B, S, G), (B, S), (B, K) -> outputs (B, S, H), the state after the last token (B, K)
    """
    recurrence = cell.recurrence()
    if recurrence is not None and shares.shape[1] > 1 and usable(shares, state, recurrence.U):
        return recurrent(recurrence, shares, mask, state, backwards=backwards)
    if torch.compiler.is_exporting():
        return _scanned(cell, shares, mask, state, backwards=backwards)
    # in batches of similar lengths, most steps need no torch.where; for one step, reading would cost more than it saves
    unpadded = mask.all(dim=0).tolist() if shares.shape[1] > 1 else [False]
    steps = list(zip(shares.unbind(1), mask.unsqueeze(-1).unbind(1), unpadded, strict=True))
    outputs = []
    for share, is_token, all_tokens in reversed(steps) if backwards else steps:
        after = cell(share, state)
        state = after if all_tokens else torch.where(is_token, after, state)
        outputs.append(cell.output(state))
    return torch.stack(outputs[::-1] if backwards else outputs, dim=1), state


def read(cell: Cell, x: Tensor, mask: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """`run` of a cell that has one input.  (B, S, I), (B, S), (B, K) -> (B, S, H), (B, K)"""
    recurrence = cell.recurrence()
    if recurrence is not None and x.shape[1] > 1 and layer.fits(recurrence, cell.input_weight(0), x, state):
        return layer.read(recurrence, cell.input_weight(0), cell.bias(), x, mask, state)
    return run(cell, cell.share(0, x), mask, state)


def _scanned(cell: Cell, shares: Tensor, mask: Tensor, state: Tensor, *, backwards: bool) -> tuple[Tensor, Tensor]:
    """The same as a loop that is part of a graph, for sentences of any length."""
    from torch._higher_order_ops.scan import scan  # not public yet, and needed by an export only

    def step(state: Tensor, given: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        share, is_token = given
        after = torch.where(is_token, cell(share, state), state)
        return after, cell.output(after).clone()

    final, outputs = scan(step, state.contiguous(), (shares.transpose(0, 1), mask.t().unsqueeze(-1)), reverse=backwards)
    return outputs.transpose(0, 1), final


def reversed_tokens(x: Tensor, mask: Tensor) -> Tensor:
    """Each sentence in reverse order, with EOS and padding in place; its own inverse.  (B, S, …)"""
    words = mask.sum(dim=1, keepdim=True) - 1  # (B, 1) without EOS
    position = torch.arange(mask.shape[1], device=mask.device).expand_as(mask)  # (B, S)
    order = torch.where(position < words, words - 1 - position, position)
    return x.gather(1, order.reshape(*order.shape, *[1] * (x.dim() - 2)).expand_as(x))
