"""Cells against torch's own, stacks against loops, dropout and residuals against their definitions."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from regarde.layers import CELLS, LSTM, RecurrentShape, Simple, Stack, TorchGRU, run
from regarde.training.step import seeded

B, T, I, H = 2, 5, 3, 4
EVERYWHERE = torch.ones(B, T, dtype=torch.bool)


@pytest.fixture
def x() -> Tensor:
    with seeded(1):
        return torch.randn(B, T, I, dtype=torch.float64)


def copied(cell: nn.Module, torch_cell: nn.RNNBase, order: list[int]) -> None:
    """Give a cell the weights of torch's, whose gates stand in another order."""
    blocks = [torch_cell.weight_ih_l0.chunk(len(order))[i] for i in order]
    hidden = [torch_cell.weight_hh_l0.chunk(len(order))[i] for i in order]
    bias = [(torch_cell.bias_ih_l0 + torch_cell.bias_hh_l0).chunk(len(order))[i] for i in order]
    with torch.no_grad():
        cell.W[0].weight.copy_(torch.cat(blocks))
        cell.W[0].bias.copy_(torch.cat(bias))
        if isinstance(cell, TorchGRU):
            cell.U_gates.weight.copy_(torch.cat(hidden[:2]))
            cell.U.weight.copy_(hidden[2])
            cell.U.bias.copy_(torch_cell.bias_hh_l0.chunk(3)[2])
            cell.W[0].bias[2 * H :].copy_(torch_cell.bias_ih_l0.chunk(3)[2])
        else:
            cell.U.weight.copy_(torch.cat(hidden))


@pytest.mark.parametrize(
    ("cell", "torch_cell", "order"),
    [
        (Simple([I], H), nn.RNN(I, H, batch_first=True), [0]),
        (TorchGRU([I], H), nn.GRU(I, H, batch_first=True), [0, 1, 2]),
        (LSTM([I], H), nn.LSTM(I, H, batch_first=True), [0, 1, 3, 2]),  # torch: i f g o, here: i f o g
    ],
    ids=["simple", "torch-gru", "lstm"],
)
@torch.no_grad()
def test_a_cell_equals_that_of_torch(cell: nn.Module, torch_cell: nn.RNNBase, order: list[int], x: Tensor) -> None:
    cell, torch_cell = cell.double(), torch_cell.double()
    copied(cell, torch_cell, order)
    states, final = run(cell, cell.share(0, x), EVERYWHERE, x.new_zeros(B, cell.state_size))
    expected, _ = torch_cell(x)
    torch.testing.assert_close(states, expected)
    torch.testing.assert_close(cell.output(final), expected[:, -1])


@pytest.mark.parametrize("name", CELLS)
@torch.no_grad()
def test_padding_passes_the_state_on(name: str, x: Tensor) -> None:
    cell = CELLS[name]([I], H).double()
    mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
    for backwards in (False, True):
        _, padded = run(cell, cell.share(0, x), mask, x.new_zeros(B, cell.state_size), backwards=backwards)
        short = x[1:, :3]
        rest = x.new_zeros(1, cell.state_size)
        _, alone = run(cell, cell.share(0, short), EVERYWHERE[:1, :3], rest, backwards=backwards)
        torch.testing.assert_close(padded[1:], alone)


@pytest.mark.parametrize("residual_from", [0, 2, 3])
@torch.no_grad()
def test_a_whole_sentence_equals_its_steps(residual_from: int, x: Tensor) -> None:
    stack = Stack.of(RecurrentShape(H, 4, "gru", dropout=0.0), [I], residual_from=residual_from).double().eval()
    top, final = stack(x, EVERYWHERE, stack.rest(x))
    states = stack.rest(x)
    for t in range(T):
        output, states = stack.step(stack.cells[0].share(0, x[:, t]), states, stack.noise(x))
        torch.testing.assert_close(output, top[:, t])
    torch.testing.assert_close(states, final)


@torch.no_grad()
def test_a_residual_layer_adds_its_input_to_its_output(x: Tensor) -> None:
    plain = Stack.of(RecurrentShape(H, 3, "lstm", dropout=0.0), [I]).double().eval()
    residual = Stack(plain.cells, residual_from=3).eval()
    below, _ = Stack(plain.cells[:2]).eval()(x, EVERYWHERE, plain.rest(x)[:, :2])
    top, _ = plain(x, EVERYWHERE, plain.rest(x))
    torch.testing.assert_close(residual(x, EVERYWHERE, plain.rest(x))[0], top + below)


def test_variational_dropout_keeps_its_mask_through_a_sentence() -> None:
    with seeded(2):
        stack = Stack.of(RecurrentShape(H, 2, "simple", dropout=0.5, variational=True), [I]).train()
        first, second = stack.noise(torch.zeros(B, I)), stack.noise(torch.zeros(B, I))
    assert first[0] is None  # the first layer's input is the embedding's business
    assert set(first[1].flatten().tolist()) == {0.0, 2.0}
    assert not first[1].equal(second[1])


@torch.no_grad()
def test_variational_dropout_is_the_same_at_every_step(x: Tensor) -> None:
    with seeded(2):
        stack = Stack.of(RecurrentShape(H, 2, "simple", dropout=0.5, variational=True), [I]).double().train()
    below, above = stack.cells
    with seeded(3):
        mask = stack.noise(x)[1]
    with seeded(3):
        top, _ = stack(x, EVERYWHERE, stack.rest(x))
    first, _ = run(below, below.share(0, x), EVERYWHERE, x.new_zeros(B, H))
    expected, _ = run(above, above.share(0, first * mask.unsqueeze(1)), EVERYWHERE, x.new_zeros(B, H))
    torch.testing.assert_close(top, expected)


def test_ordinary_dropout_is_drawn_anew_at_each_step() -> None:
    stack = Stack.of(RecurrentShape(H, 2, "simple", dropout=0.5), [I]).train()
    assert stack.noise(torch.zeros(B, I)) == [None, None]
