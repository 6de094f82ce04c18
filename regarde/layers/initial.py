"""How parameters start, where a paper or its size says it for all of them at once."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import nn

from regarde.text.tokenizers import PAD

InitName = Literal["paper", "scaled", "torch"]


def draw(model: nn.Module, init: InitName, bound: float) -> None:
    """As a paper says, every parameter within its bound; scaled, whatever its bound; or as torch has done it."""
    if init == "paper":
        uniform(model, bound)
    elif init == "scaled":
        scaled(model)


@torch.no_grad()
def uniform(module: nn.Module, bound: float) -> None:
    """Every parameter uniform in [-bound, bound], but zero for the embedding of padding."""
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -bound, bound)
    quiet_padding(module)


@torch.no_grad()
def scaled(module: nn.Module) -> None:
    """Matrices in [-0.1, 0.1] if they have a thousand inputs, as Luong et al. 2015 have it; further if they have fewer.

    So what a matrix makes of its input is as large as in their model; torch makes it a third. With a higher rate,
    small stacks of LSTM cells learn text in minutes that they did not learn before (benchmarks/results.md). Embeddings,
    vectors and biases stay as torch draws them.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear):
            bound = 0.1 * math.sqrt(1000 / part.in_features)
            nn.init.uniform_(part.weight, -bound, bound)


@torch.no_grad()
def quiet_padding(module: nn.Module) -> None:
    """Set the embedding of padding to zero."""
    for part in module.modules():
        if isinstance(part, nn.Embedding):
            part.weight[PAD].zero_()
