"""How parameters start: within a paper's bound, or as large as they would be in a model of the paper's width."""

import pytest
import torch
from torch import nn

from regarde.layers.initial import draw


def drawn(width: int, init: str) -> nn.ModuleList:
    torch.manual_seed(0)
    parts = nn.ModuleList([nn.Linear(width, 500), nn.Embedding(50, 40)])
    draw(parts, init, bound=0.1)  # type: ignore[arg-type]
    return parts


@pytest.mark.parametrize("width", [32, 256, 1000])
def test_sums_are_as_large_at_any_width(width: int) -> None:
    linear, _ = drawn(width, "scaled")
    given = torch.randn(2000, width)
    assert (given @ linear.weight.T).std().item() == pytest.approx(0.1 * (1000 / 3) ** 0.5, rel=0.03)


def test_at_the_width_of_the_paper_matrices_are_the_papers() -> None:
    scaled, paper = (drawn(1000, init)[0].weight for init in ("scaled", "paper"))
    assert scaled.abs().max().item() == pytest.approx(0.1, rel=1e-3)
    assert scaled.std().item() == pytest.approx(paper.std().item(), rel=0.01)


def test_embeddings_and_biases_stay_as_torch_draws_them() -> None:
    left, scaled = drawn(32, "torch"), drawn(32, "scaled")
    assert left[1].weight.equal(scaled[1].weight)
    assert left[0].bias.equal(scaled[0].bias)
    assert not left[0].weight.equal(scaled[0].weight)
