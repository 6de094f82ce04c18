"""Initialization of all parameters of a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from regarde.text.tokenizers import PAD

InitName = Literal["paper", "scaled", "torch"]


def draw(model: nn.Module, init: InitName, bound: float) -> None:
    """paper: uniform in [-bound, bound]; scaled: by the number of inputs; torch: unchanged."""
    if init == "paper":
        uniform(model, bound)
    elif init == "scaled":
        scaled(model)


@torch.no_grad()
def uniform(module: nn.Module, bound: float) -> None:
    """All parameters uniform in [-bound, bound], except the embedding of padding, which is zero."""
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -bound, bound)
    quiet_padding(module)


@torch.no_grad()
def scaled(module: nn.Module) -> None:
    """Matrices uniform in [-b, b], b = 0.1 sqrt(1000 / inputs): for 1000 inputs this is the bound of Luong et al. 2015.

    The products of small matrices are then as large as in their model; torch's initialization makes them a third of
    that. With it and a higher rate, small stacks of LSTM cells learn text in minutes (benchmarks/results.md).
    Embeddings, vectors and biases keep torch's initialization.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear):
            bound = 0.1 * math.sqrt(1000 / part.in_features)
            nn.init.uniform_(part.weight, -bound, bound)


@torch.no_grad()
def normal_and_orthogonal(sides: Sequence[nn.Module], recurrent: Sequence[Tensor]) -> None:
    """Recurrent matrices orthogonal, biases 0, all else N(0, 0.01^2); the parameters of attention are left unchanged.

    Cho et al. 2014, section 4.1, which take the left singular vectors of white noise; Bahdanau et al. 2015, B.1.
    """
    for name, parameter in [named for side in sides for named in side.named_parameters()]:
        if name.startswith("attention."):
            continue
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        else:
            nn.init.normal_(parameter, std=0.01)
    for square in recurrent:
        square.copy_(nn.init.orthogonal_(torch.empty_like(square)))
    for side in sides:
        quiet_padding(side)


@torch.no_grad()
def quiet_padding(module: nn.Module) -> None:
    """Set the embedding of padding to zero."""
    for part in module.modules():
        if isinstance(part, nn.Embedding):
            part.weight[PAD].zero_()
