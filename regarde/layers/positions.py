"""Positions for a model that reads all words at once.

Axes: B batch, T words, D model size, N heads, K = D / N head size. The positions of a call are first, first + 1, …

    sinusoidal   p(pos, 2i) = sin(pos / 10000^(2i / D)),  p(pos, 2i + 1) = cos(…), added      Vaswani et al. 2017, 3.5
    fairseq      the same with 10000^(2i / (D - 2)), and the first position is 2: as fairseq computes them
    learned      a vector for each position, added                                            Vaswani et al. 2017, 3.5
    rotary       q and k turned by pos * 10000^(-2i / K), pair by pair, in each layer         Su et al. 2021, 3.2.2

Angles are computed when needed, so a model contains only weights and there is no maximal length.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from regarde.errors import DataError

PositionsName = Literal["sinusoidal", "fairseq", "learned", "rotary"]
WAVES = frozenset({"sinusoidal", "fairseq"})  # pairs of a sine and a cosine, so that sizes are even
BASE = 10_000.0
FAIRSEQ_BEFORE = 2  # positions of fairseq that no word has


class Positions(nn.Module):
    """Positions enter in two ways: `place` changes embeddings, `turn` queries and keys in each self-attention."""

    longest = 10**6  # positions there are

    def place(self, x: Tensor, first: int) -> Tensor:
        """(B, T, D) -> (B, T, D)"""
        return x

    def turn(self, x: Tensor, first: int) -> Tensor:
        """Queries, keys and values, (B, T, 3, N, K); values are not turned."""
        return x


class Sinusoidal(Positions):
    """Sines at even, cosines at odd places, added to the embeddings. Places follow `before` others, which are not used.

    The last pair turns `BASE` times as slowly as the first one if `whole`.
    """

    def __init__(self, before: int = 0, *, whole: bool = False) -> None:
        super().__init__()
        self.before, self.whole = before, whole

    def place(self, x: Tensor, first: int) -> Tensor:
        angle = angles(x, first + self.before, whole=self.whole)  # (T, D / 2)
        waves = torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)  # (T, D) sin, cos, sin, cos, …
        return x + waves.to(x.dtype)


class Learned(Positions):
    """A vector for each position, added to the embeddings; there are `longest` of them.

    Training on longer sentences is an error. In a search, all later positions use the last vector, so that one endless
    hypothesis does not end the translation of other sentences.
    """

    def __init__(self, longest: int, size: int) -> None:
        super().__init__()
        self.table, self.longest = nn.Embedding(longest, size), longest

    def place(self, x: Tensor, first: int) -> Tensor:
        T, longest = x.shape[1], self.table.num_embeddings
        if self.training and first + T > longest:
            remedy = f"Use --set model.longest={first + T}, or lower data.max_source and data.max_target"
            raise DataError(f"A sentence of {first + T} tokens, but model.longest = {longest} positions. {remedy}.")
        places = torch.arange(first, first + T, device=x.device).clamp_max(longest - 1)
        vectors: Tensor = self.table(places)  # (T, D)
        return x + vectors


class Rotary(Positions):
    """Each pair of places (2i, 2i + 1) of a query or key is turned by an angle that grows with the position.

    A product of two turned vectors depends on their distance, not on their positions.
    """

    def turn(self, x: Tensor, first: int) -> Tensor:
        compared, values = x[:, :, :2], x[:, :, 2:]
        angle = angles(x, first)[:, None, None]  # (T, 1, 1, K / 2)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        even, odd = compared[..., 0::2], compared[..., 1::2]
        turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)
        return torch.cat((turned, values), dim=2)


def angles(x: Tensor, first: int, *, whole: bool = False) -> Tensor:
    """pos / 10000^(2i / n) for the T positions and n / 2 pairs of places of x.  (B, T, …, n) -> (T, n / 2)

    If `whole`, the exponents reach 1: 2i / (n - 2).
    """
    dtype = torch.promote_types(x.dtype, torch.float32)  # half precision cannot distinguish late positions
    T, n = x.shape[1], x.shape[-1]
    position = torch.arange(first, first + T, device=x.device, dtype=dtype)
    exponent = torch.arange(0, n, 2, device=x.device, dtype=dtype) / (max(2, n - 2) if whole else n)
    return position.unsqueeze(1) / BASE**exponent


def positions(name: PositionsName, longest: int, size: int) -> Positions:
    """The positions of one side of a model."""
    if name == "learned":
        return Learned(longest, size)
    if name == "fairseq":
        return Sinusoidal(FAIRSEQ_BEFORE, whole=True)
    return Sinusoidal() if name == "sinusoidal" else Rotary()
