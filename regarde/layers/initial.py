"""How parameters start, where a paper says so for all of them alike."""

from __future__ import annotations

import torch
from torch import nn

from regarde.text.vocabulary import PAD


@torch.no_grad()
def uniform(module: nn.Module, bound: float) -> None:
    """Every parameter uniform in [-bound, bound]; the embedding of padding stays zero."""
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -bound, bound)
    quiet_padding(module)


@torch.no_grad()
def quiet_padding(module: nn.Module) -> None:
    """The embedding of padding is zero."""
    for part in module.modules():
        if isinstance(part, nn.Embedding):
            part.weight[PAD].zero_()
