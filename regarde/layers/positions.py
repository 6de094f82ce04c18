"""Where a word stands, told to a model that reads all words at once.

Axes: B batch, T words, D model size, N heads, K = D / N head size. The words of a call stand at first, first + 1, …

    sinusoidal   p(pos, 2i) = sin(pos / 10000^(2i / D)),  p(pos, 2i + 1) = cos(…), added      Vaswani et al. 2017, 3.5
    learned      a vector per position, added                                                 Vaswani et al. 2017, 3.5
    rotary       q and k turned by pos * 10000^(-2i / K), pair by pair, in each layer         Su et al. 2021, 3.2.2

Angles are computed when they are needed, so that nothing but weights is kept and no length is the longest.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from regarde.errors import DataError

PositionsName = Literal["sinusoidal", "learned", "rotary"]
BASE = 10_000.0


class Positions(nn.Module):
    """Two places to tell a position: `place` on embeddings; `turn` on queries and keys, in each self-attention."""

    def place(self, x: Tensor, first: int) -> Tensor:
        """(B, T, D) -> (B, T, D)"""
        return x

    def turn(self, x: Tensor, first: int) -> Tensor:
        """Queries, keys and values, (B, T, 3, N, K); values are not turned."""
        return x


class Sinusoidal(Positions):
    """Sines at even, cosines at odd places, added to the embeddings."""

    def place(self, x: Tensor, first: int) -> Tensor:
        angle = angles(x, first)  # (T, D / 2)
        waves = torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)  # (T, D) sin, cos, sin, cos, …
        return x + waves.to(x.dtype)


class Learned(Positions):
    """A vector per position, added to the embeddings; `longest` of them.

    Training on longer sentences is refused. A search may go on for longer, and what lies beyond shares the last vector:
    one hypothesis that runs away must not end the translation of the others.
    """

    def __init__(self, longest: int, size: int) -> None:
        super().__init__()
        self.table = nn.Embedding(longest, size)

    def place(self, x: Tensor, first: int) -> Tensor:
        T, longest = x.shape[1], self.table.num_embeddings
        if self.training and first + T > longest:
            remedy = f"Use --set model.longest={first + T}, or leave out long pairs with data.max_source and max_target"
            raise DataError(f"A sentence of {first + T} tokens, but model.longest = {longest} positions. {remedy}.")
        places = torch.arange(first, first + T, device=x.device).clamp_max(longest - 1)
        vectors: Tensor = self.table(places)  # (T, D)
        return x + vectors


class Rotary(Positions):
    """Each pair of places (2i, 2i + 1) of a query or key is turned by an angle that grows with the position.

    A product of two turned vectors depends on how far apart they stand, not on where.
    """

    def turn(self, x: Tensor, first: int) -> Tensor:
        compared, values = x[:, :, :2], x[:, :, 2:]
        angle = angles(x, first)[:, None, None]  # (T, 1, 1, K / 2)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        even, odd = compared[..., 0::2], compared[..., 1::2]
        turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)
        return torch.cat((turned, values), dim=2)


def angles(x: Tensor, first: int) -> Tensor:
    """pos / 10000^(2i / n) for the T positions and n / 2 pairs of places of x.  (B, T, …, n) -> (T, n / 2)"""
    dtype = torch.promote_types(x.dtype, torch.float32)  # half precision cannot tell late positions apart
    T, n = x.shape[1], x.shape[-1]
    position = torch.arange(first, first + T, device=x.device, dtype=dtype)
    exponent = torch.arange(0, n, 2, device=x.device, dtype=dtype) / n
    return position.unsqueeze(1) / BASE**exponent


def positions(name: PositionsName, longest: int, size: int) -> Positions:
    """The positions of one side of a model."""
    if name == "learned":
        return Learned(longest, size)
    return Sinusoidal() if name == "sinusoidal" else Rotary()
